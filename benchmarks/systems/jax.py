"""The programs for JAX: pure functions of whole arrays, loops as `scan`, compiled by `jit`.

Reverse mode refuses `while_loop`, so loops of unknown length are scans of a sufficient length, with the iterations that
are too many masked out. Integers and index arrays are known when the function is compiled, as they are with
`static_argnums`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs import Program
from benchmarks.systems import RefusedError

jax.config.update("jax_enable_x64", True)
# compiled code is cached for the next process, whose first call is measured too
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def version() -> str:
    return f"jax {jax.__version__}"


def tiny(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def recurrence(a, r):
    def step(x, a_i):
        c = x + a_i

        def newton(y, _):
            residual = y * y * y + y - c
            return jnp.where(jnp.abs(residual) > 1e-9, y - residual / (3.0 * y * y + 1.0), y), None

        y, _ = lax.scan(newton, 0.5 * c, length=8)  # five times faster than written out
        x = jnp.where(y > 0.5, r * y * (1.0 - y), r * y + 0.1 * y * y)
        return x, x * x

    return jnp.sum(lax.scan(step, jnp.float64(0.3), a)[1])


def adaptive_ode(rates, start, duration, tolerance):
    def slope(p, h):
        return rates[0] * p - rates[1] * p * h, rates[2] * p * h - rates[3] * h

    def iteration(state, _):
        prey, hunters, time, step, effort = state
        going = time < duration
        step = jnp.where(time + step > duration, duration - time, step)
        a1, b1 = slope(prey, hunters)
        a2, b2 = slope(prey + 0.5 * step * a1, hunters + 0.5 * step * b1)
        a3, b3 = slope(prey + 0.75 * step * a2, hunters + 0.75 * step * b2)
        p = prey + step * (2.0 * a1 + 3.0 * a2 + 4.0 * a3) / 9.0
        h = hunters + step * (2.0 * b1 + 3.0 * b2 + 4.0 * b3) / 9.0
        a4, b4 = slope(p, h)
        error_p = step * (-5.0 * a1 / 72.0 + a2 / 12.0 + a3 / 9.0 - a4 / 8.0)
        error_h = step * (-5.0 * b1 / 72.0 + b2 / 12.0 + b3 / 9.0 - b4 / 8.0)
        squared = error_p * error_p + error_h * error_h
        error = jnp.sqrt(jnp.where(going, squared, 1.0)) + 1e-14
        accepted = error <= tolerance
        factor = 0.9 * (tolerance / error) ** (1.0 / 3.0)
        new = (
            jnp.where(accepted, p, prey),
            jnp.where(accepted, h, hunters),
            jnp.where(accepted, time + step, time),
            step * jnp.minimum(5.0, jnp.maximum(0.2, factor)),
            jnp.where(accepted, effort + step * p * h, effort),
        )
        return tuple(jnp.where(going, n, o) for n, o in zip(new, state, strict=True)), None

    begin = (start[0], start[1], jnp.float64(0.0), jnp.float64(0.01), jnp.float64(0.0))
    # 42 iterations for each unit of time are enough for this accuracy
    (prey, hunters, _, _, effort), _ = lax.scan(iteration, begin, length=int(42 * duration))
    return effort / duration + prey * hunters


def burgers(u0, steps, c, d):
    def step(u, _):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        inner = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
        return jnp.concatenate((u[:1], inner, u[-1:])), None

    u, _ = lax.scan(step, u0, length=steps)
    return jnp.sum(u * u)


def gauss_seidel(source, reaction, sweeps):
    def point(left, given):
        above, below, right, own, force = given
        new = 0.25 * (above + below + left + right + force - reaction * own**3)
        return new, new

    def row(above, given):
        own, below, force = given
        given = (above[1:-1], below[1:-1], own[2:], own[1:-1], force[1:-1])
        _, inner = lax.scan(point, own[0], given)
        new = jnp.concatenate((own[:1], inner, own[-1:]))
        return new, new

    def sweep(u, _):
        _, inner = lax.scan(row, u[0], (u[1:-1], u[2:], source[1:-1]))
        return jnp.concatenate((u[:1], inner, u[-1:])), None

    u, _ = lax.scan(sweep, jnp.zeros_like(source), length=sweeps)
    return jnp.sum(u * u)


def jacobi(u0, source, sweeps):
    def sweep(u, _):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(inner), None

    u, _ = lax.scan(sweep, u0, length=sweeps)
    return jnp.sum(u * u)


def lennard_jones(p):
    difference = p[:, :, None] - p[:, None, :]
    itself = jnp.eye(p.shape[1], dtype=bool)
    s = 1.0 / jnp.where(itself, 1.0, jnp.sum(difference**2, axis=0))
    s6 = s * s * s
    return 0.5 * jnp.sum(jnp.where(itself, 0.0, 4.0 * (s6 * s6 - s6)))


def cholesky(a0):
    symmetric = jnp.tril(a0) + jnp.tril(a0, -1).T  # the program reads the lower half
    factor = jnp.linalg.cholesky(symmetric, symmetrize_input=False)
    return 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))


def sparse_product(data, x0, starts, columns, power):
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    x = x0
    for _ in range(power):
        products = data * x[columns]
        x = jax.ops.segment_sum(products, rows, num_segments=len(starts) - 1, indices_are_sorted=True)
    return jnp.sum(x * x)


def bundle_adjustment(cameras, points, weights, seen_by, seen_point, features):
    def error(camera, point, weight, feature):
        moved = point - camera[3:6] * jnp.array([1.0, 1.0, -1.0])
        theta = jnp.sqrt(jnp.sum(camera[:3] ** 2))
        axis = camera[:3] / theta
        cos, sin = jnp.cos(theta), jnp.sin(theta)
        x, y, z = moved * cos + jnp.cross(axis, moved) * sin + axis * (jnp.dot(axis, moved) * (1.0 - cos))
        p = jnp.stack((x / z, y / z))
        r2 = jnp.sum(p * p)
        distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
        e = weight * (camera[6] * p * distortion + camera[7:9] - feature)
        return jnp.sum(e * e) + (1.0 - weight * weight) ** 2

    return jnp.sum(jax.vmap(error)(cameras[seen_by], points[seen_point], weights, features))


def barrier(spot, rate, volatility, strike, barrier, maturity, noise):
    step = maturity / noise.shape[1]
    drift = (rate - 0.5 * volatility * volatility) * step
    prices = spot * jnp.exp(jnp.cumsum(drift + volatility * jnp.sqrt(step) * noise, axis=1))
    alive = jnp.all(prices >= barrier, axis=1)
    return jnp.exp(-rate * maturity) * jnp.mean(jnp.where(alive, jnp.maximum(prices[:, -1] - strike, 0.0), 0.0))


def normal_cdf(x):
    t = 1.0 / (1.0 + 0.2316419 * jnp.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = 0.3989422804014327 * jnp.exp(-0.5 * x * x) * series
    return jnp.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(spot, volatility, rate, strike, time):
    spread = volatility * jnp.sqrt(time)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
    d2 = d1 - spread
    return jnp.mean(spot * normal_cdf(d1) - strike * jnp.exp(-rate * time) * normal_cdf(d2))


def logistic_regression(w, b, x, y, ridge):
    z = x @ w + b
    losses = jnp.log1p(jnp.exp(-jnp.abs(z))) + jnp.maximum(z, 0.0) - y * z
    return jnp.mean(losses) + 0.5 * ridge * jnp.sum(w * w)


def mlp(w1, b1, w2, b2, w3, b3, x, y):
    first = jnp.tanh(x @ w1 + b1)
    second = jax.nn.relu(first @ w2 + b2)
    return jnp.mean((second @ w3 + b3 - y) ** 2)


def gaussian_mixture(weights, means, factors, x):
    n, d = x.shape

    def score(weight, mean, factor):
        centred = (x - mean) @ factor
        return weight + jnp.sum(jnp.log(jnp.abs(jnp.diag(factor)))) - 0.5 * jnp.sum(centred**2, axis=1)

    scores = jax.vmap(score)(weights, means, factors)
    normaliser = jax.nn.logsumexp(weights) + 0.5 * d * jnp.log(2.0 * jnp.pi)
    return jnp.sum(jax.nn.logsumexp(scores, axis=0)) - n * normaliser


def lstm(main, out_scale, out_bias, sequence):
    def step(state, given):
        hidden, cell = state
        x, following = given
        forget = jax.nn.sigmoid(x * main[0] + main[4])
        into = jax.nn.sigmoid(hidden * main[1] + main[5])
        outof = jax.nn.sigmoid(x * main[2] + main[6])
        change = jnp.tanh(hidden * main[3] + main[7])
        cell = cell * forget + into * change
        hidden = outof * jnp.tanh(cell)
        guess = hidden * out_scale + out_bias
        return (hidden, cell), jnp.sum(guess * following) - jnp.log(jnp.sum(jnp.exp(guess)))

    zeros = jnp.zeros(sequence.shape[1])
    _, losses = lax.scan(step, (zeros, zeros), (sequence[:-1], sequence[1:]))
    return -jnp.sum(losses) / sequence.shape[0]


def hidden_markov(initial, transition, emission, observed):
    def scaled(alpha):
        scale = jnp.sum(alpha)
        return alpha / scale, jnp.log(scale)

    def step(alpha, likely):
        return scaled((alpha @ transition) * likely)

    alpha, first = scaled(initial * emission[:, observed[0]])
    _, rest = lax.scan(step, alpha, emission.T[observed[1:]])
    return first + jnp.sum(rest)


def kalman(motion, motion_noise, measure, measure_noise, measured):
    def step(given, y):
        state, covariance = given
        state = motion @ state
        covariance = motion @ covariance @ motion.T + motion_noise
        seen = covariance @ measure
        spread = measure @ seen + measure_noise
        surprise = y - measure @ state
        state = state + seen * (surprise / spread)
        covariance = covariance - jnp.outer(seen, seen) / spread
        return (state, covariance), 0.5 * (jnp.log(2.0 * jnp.pi * spread) + surprise * surprise / spread)

    _, terms = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), measured)
    return jnp.sum(terms)


#: Arguments that have to be known when the function is compiled: they are lengths, or become indices.
STATIC = {
    "adaptive_ode": ("duration",),
    "burgers": ("steps",),
    "gauss_seidel": ("sweeps",),
    "jacobi": ("sweeps",),
    "sparse_product": ("starts", "power"),
}


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    if hasattr(program.module, "by_jax"):
        call = program.module.by_jax()
        own = tuple(jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments)
        return lambda: jax.block_until_ready(call(*own))
    function = globals().get(program.name) or getattr(program.module, "in_jax", None)
    if function is None:
        raise RefusedError("not written for JAX")
    names = list(program.names)
    static = STATIC.get(program.name) or getattr(program.module, "STATIC", ())
    fixed = {name: value for name, value in zip(names, arguments, strict=True) if name in static}
    moving = {name: jnp.asarray(value) for name, value in zip(names, arguments, strict=True) if name not in static}
    chosen = tuple(moving.pop(name) for name in program.wrt)

    def of_chosen(chosen, moving):
        return function(**dict(zip(program.wrt, chosen, strict=True)), **moving, **fixed)

    differentiated = jax.jit(jax.value_and_grad(of_chosen))
    return lambda: jax.block_until_ready(differentiated(chosen, moving))


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value), [np.asarray(g) for g in gradients]
