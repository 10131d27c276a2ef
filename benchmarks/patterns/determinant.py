"""A recursive function that passes arrays to itself: a determinant, expanded along the first row."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "rows"
SIZES = (4, 7)
WRT = ("a",)


def arguments(size):
    return (np.random.default_rng(34).standard_normal((size, size)),)


def primal(a):
    n = a.shape[0]
    if n == 1:
        return a[0, 0]
    total = 0.0
    sign = 1.0
    for j in range(n):
        minor = np.empty((n - 1, n - 1))
        for r in range(n - 1):
            for c in range(n - 1):
                minor[r, c] = a[r + 1, c if c < j else c + 1]
        total += sign * a[0, j] * primal(minor)
        sign = -sign
    return total


@compiled
def expand(n, a, a_bar):
    """The determinant of the first n rows and columns of a[n - 1]; its gradient goes to a_bar[n - 1]."""
    own, own_bar = a[n - 1], a_bar[n - 1]
    if n == 1:
        own_bar[0, 0] = 1.0
        return own[0, 0]
    minor, minor_bar = a[n - 2], a_bar[n - 2]
    for r in range(1, n):
        for c in range(n):
            own_bar[r, c] = 0.0
    total, sign = 0.0, 1.0
    for j in range(n):
        for r in range(n - 1):
            for c in range(j):
                minor[r, c] = own[r + 1, c]
            for c in range(j, n - 1):
                minor[r, c] = own[r + 1, c + 1]
        cofactor = sign * expand(n - 1, a, a_bar)
        total += own[0, j] * cofactor
        own_bar[0, j] = cofactor
        factor = sign * own[0, j]
        for r in range(n - 1):
            for c in range(j):
                own_bar[r + 1, c] += factor * minor_bar[r, c]
            for c in range(j, n - 1):
                own_bar[r + 1, c + 1] += factor * minor_bar[r, c]
        sign = -sign
    return total


@compiled
def hand(a):
    n = a.shape[0]
    levels, bars = np.empty((n, n, n)), np.empty((n, n, n))
    for r in range(n):
        for c in range(n):
            levels[n - 1, r, c] = a[r, c]
    value = expand(n, levels, bars)
    a_bar = np.empty_like(a)
    for r in range(n):
        for c in range(n):
            a_bar[r, c] = bars[n - 1, r, c]
    return value, (a_bar,)
