"""Burgers' equation in one dimension: a nonlinear stencil, stepped through two buffers that are swapped."""

import numpy as np

SIZE = "grid points"
SIZES = (64, 256, 1_024)
WRT = ("u0",)


def arguments(size):
    x = np.linspace(0.0, 2.0 * np.pi, size)
    return np.sin(x) + 0.5 * np.sin(3.0 * x), 50, 0.1, 0.2


def primal(u0, steps, c, d):
    u = u0.copy()
    v = np.empty_like(u)
    n = u.shape[0]
    for _ in range(steps):
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + d * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        u, v = v, u
    total = 0.0
    for i in range(n):
        total += u[i] * u[i]
    return total
