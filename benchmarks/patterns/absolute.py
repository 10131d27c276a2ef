"""The kink of `abs` in a loop: the sum of absolute deviations from a line."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (50, 100_000)
WRT = ("slope", "offset", "x")


def arguments(size):
    random = np.random.default_rng(23)
    return 1.5, -0.2, random.standard_normal(size), random.standard_normal(size)


def primal(slope, offset, x, y):
    total = 0.0
    for i in range(len(x)):
        total += abs(slope * x[i] + offset - y[i])
    return total


@compiled
def hand(slope, offset, x, y):
    n = len(x)
    total = slope_bar = offset_bar = 0.0
    x_bar = np.empty(n)
    for i in range(n):
        deviation = slope * x[i] + offset - y[i]
        total += abs(deviation)
        sign = 1.0 if deviation > 0.0 else (-1.0 if deviation < 0.0 else 0.0)
        slope_bar += sign * x[i]
        offset_bar += sign
        x_bar[i] = sign * slope
    return total, (slope_bar, offset_bar, x_bar)


def in_jax(slope, offset, x, y):
    import jax.numpy as jnp

    return jnp.sum(jnp.abs(slope * x + offset - y))
