"""A gradient that compiled code calls in a loop: descent on Rosenbrock's function in the user's own `@njit`."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "steps"
SIZES = (5, 1_000)
WRT = ("x",)
IS_GRADIENT = False


def arguments(size):
    return np.linspace(-0.5, 0.9, 20), size


def primal(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


@compiled
def hand(start, steps):
    n = len(start)
    x, x_bar = np.empty(n), np.empty(n)
    for i in range(n):
        x[i] = start[i]
    total = 0.0
    for _ in range(steps):
        total = 0.0
        x_bar[0] = 0.0
        for i in range(n - 1):
            bend, left = x[i + 1] - x[i] * x[i], 1.0 - x[i]
            total += 100.0 * bend * bend + left * left
            x_bar[i] -= 400.0 * bend * x[i] + 2.0 * left
            x_bar[i + 1] = 200.0 * bend
        for i in range(n):
            x[i] -= 1e-4 * x_bar[i]
    return total, (x,)


def by_srcdiff():
    import numba

    import srcdiff

    gradient = srcdiff.value_and_grad(primal)

    @numba.njit
    def descend(start, steps):
        x = start.copy()
        total = 0.0
        for _ in range(steps):
            total, x_bar = gradient(x)
            for i in range(len(x)):
                x[i] -= 1e-4 * x_bar[i]
        return total, (x,)

    return descend


def by_jax():
    import jax
    import jax.numpy as jnp

    def rosenbrock(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def step(x, _):
        value, x_bar = jax.value_and_grad(rosenbrock)(x)
        return x - 1e-4 * x_bar, value

    def descend(start, steps):
        x, values = jax.lax.scan(step, start, length=steps)
        return values[-1], (x,)

    return jax.jit(descend, static_argnums=1)
