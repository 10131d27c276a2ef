"""Rosenbrock's function of a few numbers: the overhead of a call."""

import numpy as np

SIZE = "numbers"
SIZES = (2, 4, 8)
WRT = ("x",)


def arguments(size):
    return (np.linspace(-0.5, 1.5, size),)


def primal(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2
    return total
