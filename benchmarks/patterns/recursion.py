"""A recursive function that calls itself twice: its cost should be proportional to the number of calls."""

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


# the calls are nodes of a binary tree: those of node k are the nodes 2 k + 1 and 2 k + 2
@compiled
def forward(x, level, k, kept):
    if level == 0:
        return x[0]
    left = forward(x, level - 1, 2 * k + 1, kept)
    right = forward(x, level - 1, 2 * k + 2, kept)
    kept[k, 0] = left
    kept[k, 1] = right
    return x[level] + left * right


@compiled
def reverse(level, out_bar, k, kept, x_bar):
    x_bar[level] += out_bar
    if level == 0:
        return
    reverse(level - 1, out_bar * kept[k, 1], 2 * k + 1, kept, x_bar)
    reverse(level - 1, out_bar * kept[k, 0], 2 * k + 2, kept, x_bar)


@compiled
def hand(x, level):
    kept = np.empty((2**level, 2))
    value = forward(x, level, 0, kept)
    x_bar = np.zeros_like(x)
    reverse(level, 1.0, 0, kept, x_bar)
    return value, (x_bar,)
