"""The logarithm of a determinant by Cholesky's factorisation, by loops and in place."""

import numpy as np

SIZE = "rows"
SIZES = (10, 30, 90)
WRT = ("a0",)


def arguments(size):
    m = np.random.default_rng(9).standard_normal((size, size))
    return (m @ m.T + size * np.eye(size),)


def primal(a0):
    a = a0.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        total += 2.0 * np.log(a[i, i])
    return total
