"""A recursive function that calls itself twice: what it costs should grow with the number of calls."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "levels"
SIZES = (4, 14)
WRT = ("x",)


def arguments(size):
    return np.linspace(0.2, 0.3, size + 1), size


def primal(x, level):
    if level == 0:
        return x[0]
    return x[level] + primal(x, level - 1) * primal(x, level - 1)


@compiled
def forward(x, level, kept, top):
    if level == 0:
        return x[0], top
    left, top = forward(x, level - 1, kept, top)
    right, top = forward(x, level - 1, kept, top)
    kept[top, 0] = left
    kept[top, 1] = right
    return x[level] + left * right, top + 1


@compiled
def reverse(level, out_bar, kept, top, x_bar):
    x_bar[level] += out_bar
    if level == 0:
        return top
    top -= 1
    left, right = kept[top, 0], kept[top, 1]
    top = reverse(level - 1, out_bar * left, kept, top, x_bar)  # the right one was called last
    return reverse(level - 1, out_bar * right, kept, top, x_bar)


@compiled
def hand(x, level):
    kept = np.empty((2**level, 2))
    value, top = forward(x, level, kept, 0)
    x_bar = np.zeros_like(x)
    reverse(level, 1.0, kept, top, x_bar)
    return value, (x_bar,)
