"""More than 32 MB kept: an array that a long loop replaces, 80 MB of states and sines."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "steps"
SIZES = (5, 500)
WRT = ("x",)
STATIC = ("steps",)


def arguments(size):
    return np.linspace(0.5, 1.5, 10_000 if size > 50 else 20), size


def primal(x, steps):
    for _ in range(steps):
        x = x + 0.01 * np.sin(x) * x
    return np.sum(x)


def workspace(x, steps):
    return np.zeros((steps + 1, len(x))), np.zeros((steps, len(x)))


@compiled
def hand(x, steps, kept, kept_sine):
    n = len(x)
    for i in range(n):
        kept[0, i] = x[i]
    for t in range(steps):
        before, after, sine = kept[t], kept[t + 1], kept_sine[t]
        for i in range(n):
            sine[i] = math.sin(before[i])
            after[i] = before[i] + 0.01 * sine[i] * before[i]
    total = 0.0
    x_bar = np.empty(n)
    for i in range(n):
        total += kept[steps, i]
        x_bar[i] = 1.0
    for t in range(steps - 1, -1, -1):
        before, sine = kept[t], kept_sine[t]
        for i in range(n):
            x_bar[i] *= 1.0 + 0.01 * (math.cos(before[i]) * before[i] + sine[i])
    return total, (x_bar,)


def in_jax(x, steps):
    import jax.numpy as jnp
    from jax import lax

    return jnp.sum(lax.scan(lambda x, _: (x + 0.01 * jnp.sin(x) * x, None), x, length=steps)[0])
