"""The kink of `np.where` on whole arrays: an exponential on one side, a parabola on the other."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (50, 100_000)
WRT = ("x", "scale")


def arguments(size):
    return np.random.default_rng(26).standard_normal(size), 0.7


def primal(x, scale):
    return np.sum(np.where(x > 0.0, 0.5 * x * x + x, scale * (np.exp(x) - 1.0)))


@compiled
def hand(x, scale):
    n = len(x)
    total = scale_bar = 0.0
    x_bar = np.empty(n)
    for i in range(n):
        left, right = min(x[i], 0.0), max(x[i], 0.0)
        power = math.exp(left)
        total += 0.5 * right * right + right
        scale_bar += power - 1.0
        x_bar[i] = right + 1.0 if x[i] > 0.0 else scale * power
    return total + scale * scale_bar, (x_bar, scale_bar)


def in_jax(x, scale):
    import jax.numpy as jnp

    return jnp.sum(jnp.where(x > 0.0, 0.5 * x * x + x, scale * (jnp.exp(x) - 1.0)))
