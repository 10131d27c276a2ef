"""Gauss-Seidel for a nonlinear Poisson equation: every sweep overwrites the grid that it reads."""

import numpy as np

SIZE = "grid points a side"
SIZES = (10, 30, 90)
WRT = ("source", "reaction")


def arguments(size):
    random = np.random.default_rng(2)
    return random.standard_normal((size, size)), 0.3, 20


def primal(source, reaction, sweeps):
    n = source.shape[0]
    u = np.zeros((n, n))
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                u[i, j] = 0.25 * (around + source[i, j] - reaction * u[i, j] ** 3)
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += u[i, j] * u[i, j]
    return total
