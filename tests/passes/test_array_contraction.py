"""An array needs only one row if every iteration uses its own row. Index -1 and the last index are the same row."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff


def reads_the_row_that_was_written_from_the_end(x, n):
    a = np.empty((n, 2))
    total = 0.0
    for p in range(-1, n):
        if p == n - 1:
            total += a[p, 0] * a[p, 1] * x
        else:
            a[p, 0] = p + 5.0
            a[p, 1] = p + 2.0
    return total


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_row_minus_one_is_the_last_row(backend):
    """Iteration -1 stores 4.0 and 1.0 in the last row."""
    value, gradient = srcdiff.value_and_grad(reads_the_row_that_was_written_from_the_end, backend=backend)(1.5, 4)

    assert value == reads_the_row_that_was_written_from_the_end(1.5, 4) == 6.0
    assert gradient == 4.0
