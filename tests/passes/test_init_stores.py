"""Buffers that are zero after every iteration: an iteration that reads the zeros still finds them."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff


def reads_what_the_iteration_before_has_emptied(x, n, steps):
    a, b = np.zeros(n + 1), np.zeros(n + 1)
    for r in range(n + 1):
        b[r] = r + 1.0
    total = 0.0
    for _ in range(steps):
        for i in range(n):
            a[i + 1] += b[i] * x
        for j in range(n):
            total += b[j] * x
            b[j + 1] = 0.0
        a, b = b, a
    return total


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_zeros_that_the_next_iteration_reads_stay(backend):
    """`b[0]` is 1 at first, then 0, then 1. All other elements are zero when they are read. So the sum is `2 x`."""
    value, gradient = srcdiff.value_and_grad(reads_what_the_iteration_before_has_emptied, backend=backend)(1.5, 4, 3)

    assert value == reads_what_the_iteration_before_has_emptied(1.5, 4, 3) == 3.0
    assert gradient == 2.0


def steps_in_place(u0, steps):
    u, v = u0.copy(), np.empty_like(u0)
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] - 0.1 * u[i] * (u[i + 1] - u[i - 1])
        v[n - 1] = u[n - 1]
        v[0] = u[0]
        u[:] = v
    return np.sum(u**3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_last_element_before_the_others_in_arrays_of_any_length(size, steps):
    u = np.linspace(0.4, 1.3, size)

    gradient = srcdiff.grad(steps_in_place, backend="python")(u, steps)

    small = 1e-5
    rows = np.eye(size) * small
    differences = [(steps_in_place(u + row, steps) - steps_in_place(u - row, steps)) / (2 * small) for row in rows]
    np.testing.assert_allclose(gradient, differences, rtol=1e-8)  # central differences
