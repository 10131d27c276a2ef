"""A state that each step overwrites in place, on whole arrays: Burgers' equation with slices."""

import numpy as np

from benchmarks.patterns import burgers_in_place

SIZE, SIZES, WRT, STATIC = (getattr(burgers_in_place, name) for name in ("SIZE", "SIZES", "WRT", "STATIC"))
arguments, hand, in_jax = burgers_in_place.arguments, burgers_in_place.hand, burgers_in_place.in_jax


def primal(u0, steps, c, d):
    u = u0.copy()
    for _ in range(steps):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        u[1:-1] = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
    return np.sum(u**2)
