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
