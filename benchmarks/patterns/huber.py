"""A kink by a branch: Huber's loss, a parabola near zero and a line further out."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (50, 100_000)
WRT = ("slope", "offset")


def arguments(size):
    random = np.random.default_rng(35)
    return 1.5, -0.2, random.standard_normal(size), random.standard_normal(size), 0.8


def primal(slope, offset, x, y, delta):
    total = 0.0
    for i in range(len(x)):
        r = slope * x[i] + offset - y[i]
        if abs(r) <= delta:
            total += 0.5 * r * r
        else:
            total += delta * (abs(r) - 0.5 * delta)
    return total


@compiled
def hand(slope, offset, x, y, delta):
    total = slope_bar = offset_bar = 0.0
    for i in range(len(x)):
        r = slope * x[i] + offset - y[i]
        clipped = min(max(r, -delta), delta)
        total += clipped * (r - 0.5 * clipped)
        slope_bar += clipped * x[i]
        offset_bar += clipped
    return total, (slope_bar, offset_bar)


def in_jax(slope, offset, x, y, delta):
    import jax.numpy as jnp

    r = slope * x + offset - y
    return jnp.sum(jnp.where(jnp.abs(r) <= delta, 0.5 * r * r, delta * (jnp.abs(r) - 0.5 * delta)))
