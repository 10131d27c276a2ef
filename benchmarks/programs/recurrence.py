"""A sequential recurrence: Newton's method in a `while`, a branch on its solution, each step fed by the one before."""

import numpy as np

SIZE = "steps"
SIZES = (100, 1_000, 10_000)
WRT = ("a", "r")


def arguments(size):
    return np.random.default_rng(1).uniform(-1.0, 3.0, size), 1.7


def primal(a, r):
    x = 0.3
    total = 0.0
    for i in range(a.shape[0]):
        c = x + a[i]
        y = 0.5 * c
        residual = y * y * y + y - c
        while abs(residual) > 1e-9:
            y = y - residual / (3.0 * y * y + 1.0)
            residual = y * y * y + y - c
        if y > 0.5:
            x = r * y * (1.0 - y)
        else:
            x = r * y + 0.1 * y * y
        total += x * x
    return total
