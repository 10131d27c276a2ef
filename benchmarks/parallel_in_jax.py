"""The programs of `benchmarks.parallel` for JAX: whole arrays, and `scan` for time steps.

JAX uses as many threads as the process may use cores, so `limit` must run before JAX is imported.
"""

import os
import sys

import numpy as np


def limit(threads):
    """Let the process use this number of cores, if there are more; None if JAX is not installed."""
    if "jax" in sys.modules:
        raise RuntimeError("JAX is imported already, and has its threads")
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))[:threads]
        os.sched_setaffinity(0, cores)
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    return jax


def functions(jax):
    """The programs by their names."""
    jnp, lax = jax.numpy, jax.lax

    def black_scholes(s, k, sigma, r):
        d1 = (jnp.log(s / k) + r + 0.5 * sigma * sigma) / sigma
        first, second = (0.5 + 0.5 * jnp.tanh(0.8 * d) for d in (d1, d1 - sigma))
        return jnp.sum(s * first - k * jnp.exp(-r) * second)

    def logistic_regression(w, x, y):
        return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ w))))

    def lennard_jones(x):
        same = jnp.eye(len(x), dtype=bool)
        r2 = jnp.where(same, 1.0, jnp.sum((x[:, None] - x[None]) ** 2, axis=-1))
        return jnp.sum(jnp.where(same, 0.0, 1.0 / r2**6 - 1.0 / r2**3))

    def jacobi(u, steps):
        def step(u, _):
            inner = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            return u.at[1:-1, 1:-1].set(0.25 * around + 0.01 * inner**2), None

        return jnp.sum(lax.scan(step, u, None, length=steps)[0])

    def monte_carlo(sigma, r, noise):
        s = jnp.prod(jnp.exp(r - 0.5 * sigma * sigma + sigma * noise), axis=1)
        return jnp.mean(jnp.maximum(s - 1.0, 0.0))

    def k_means(centers, x):
        d = jnp.sum((x[:, None] - centers[None]) ** 2, axis=-1)
        return jnp.sum(jnp.min(d, axis=1))

    def kalman_filters(q, r, series):
        def step(state, z):
            m, p, total = state
            p = p + q
            s = p + r
            e = z - m
            total = total + 0.5 * jnp.sum(jnp.log(s) + e * e / s)
            return (m + p / s * e, p * (1.0 - p / s), total), None

        start = jnp.zeros(series.shape[0]), jnp.ones(()), jnp.zeros(())
        return lax.scan(step, start, series.T)[0][2]

    found = black_scholes, logistic_regression, lennard_jones, jacobi, monte_carlo, k_means, kalman_filters
    return {f.__name__: f for f in found}


def gradient_of(jax, name, args, wrt):
    """The compiled gradient, as a function of nothing that waits for the result; integers are constants."""
    static = tuple(k for k, a in enumerate(args) if isinstance(a, int))
    compiled = jax.jit(jax.grad(functions(jax)[name], wrt), static_argnums=static)
    given = [a if k in static else jax.device_put(np.asarray(a)) for k, a in enumerate(args)]
    return lambda: jax.block_until_ready(compiled(*given))
