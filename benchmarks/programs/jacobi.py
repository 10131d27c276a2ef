"""Jacobi sweeps in two dimensions: whole slices of one buffer computed from slices of the other."""

import numpy as np

SIZE = "grid points a side"
SIZES = (16, 48, 144)
WRT = ("u0", "source")


def arguments(size):
    random = np.random.default_rng(3)
    return random.standard_normal((size, size)), random.standard_normal((size, size)), 20


def primal(u0, source, sweeps):
    u = u0.copy()
    v = u0.copy()
    for _ in range(sweeps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        u, v = v, u
    return np.sum(u * u)
