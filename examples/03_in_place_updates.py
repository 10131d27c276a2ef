"""Overwritten arrays: in-place updates, writes through views, and swapped buffers."""

import numpy as np

import srcdiff


def log_determinant(matrix):
    """The Cholesky factorisation in place. It overwrites every element, most of them many times."""
    a = matrix.copy()
    n = len(a)
    total = 0.0
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
        total += 2.0 * np.log(a[i, i])
    return total


def smooth(signal, steps):
    """Two buffers that are swapped after each step."""
    old = signal.copy()
    new = signal.copy()
    for _ in range(steps):
        for i in range(1, len(old) - 1):
            new[i] = 0.25 * old[i - 1] + 0.5 * old[i] + 0.25 * old[i + 1]
        old, new = new, old
    energy = 0.0
    for i in range(len(old)):
        energy += old[i] * old[i]
    return energy


def normalise_rows(a):
    """A row is a view: a write into it changes the array."""
    for i in range(len(a)):
        row = a[i]
        scale = 0.0
        for j in range(len(row)):
            scale += row[j] * row[j]
        for j in range(len(row)):
            row[j] /= scale
    return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]


# The gradient of log det is the inverse. This program reads only the lower triangle, so each element below the diagonal
# stands for two elements of the symmetric matrix.
random = np.random.default_rng(0)
factor = random.standard_normal((4, 4))
matrix = factor @ factor.T + 4.0 * np.eye(4)
matrix_bar = srcdiff.grad(log_determinant)(matrix)
inverse = np.linalg.inv(matrix)
print("gradient of log det:\n", matrix_bar)
# Both come from factorisations of a well-conditioned matrix, so they differ only by rounding errors.
assert np.allclose(matrix_bar, 2.0 * np.tril(inverse) - np.diag(np.diag(inverse)), rtol=1e-12, atol=1e-14)

# The energy is quadratic in the signal, so the gradient times the signal is twice the energy.
signal = random.standard_normal(12)
energy, signal_bar = srcdiff.value_and_grad(smooth)(signal, 5)
print("energy after five steps:", energy, "and half the gradient times the signal:", 0.5 * np.dot(signal_bar, signal))
assert np.isclose(2.0 * energy, np.dot(signal_bar, signal), rtol=1e-13)  # only rounding errors

# A call of a gradient does not change its arguments, even if the function writes into them.
a = np.array([[1.0, 2.0], [3.0, 5.0]])
before = a.copy()
a_bar = srcdiff.grad(normalise_rows)(a)
print("gradient through the views:\n", a_bar)
assert np.array_equal(a, before)
print(srcdiff.check(normalise_rows, a))
