"""Recurrences that are split into two loops give the same numbers as one loop."""

import numpy as np
import pytest

import srcdiff
from tests import numerical


def smoothed(source, sweeps):
    u = np.zeros_like(source)
    rows, columns = u.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + source[i, j])
    return np.sum(u**2)


def filtered(source, sweeps):
    y = source.copy()
    for k in range(sweeps):
        for t in range(1, y.shape[1]):
            y[0, t] = source[0, t] * source[-1, t] - (0.5 * y[0, t - 1] - np.sin(source[1, t]) - source[1, t - 1])
    return np.sum(y * y)


def down_the_rows(source, sweeps):
    y = source.copy()
    for j in range(y.shape[1]):
        for i in range(1, y.shape[0]):
            y[i, j] = source[i, j] ** 2 - y[i - 1, j] * 0.3 + source[i - 1, j] * source[0, j] + source[-1, 0]
    return np.sum(y**3)


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("function", [smoothed, filtered, down_the_rows])
@pytest.mark.parametrize("shape", [(4, 5), (3, 3), (3, 2), (2, 1)])
def test_gradient_of_a_split_recurrence_is_right(function, shape, backend):
    source = np.random.default_rng(3).standard_normal(shape)

    value, actual = srcdiff.value_and_grad(function, backend=backend)(source, 3)

    assert value == pytest.approx(function(source, 3), rel=1e-12)  # sums are added in another order
    expected = [one.value for one in numerical.gradient(function, (source, 3), (0,))]
    np.testing.assert_allclose(np.ravel(actual), expected, rtol=1e-6, atol=1e-8)  # differences, of third powers


def test_no_part_is_computed_where_the_loop_does_not_run():
    assert srcdiff.grad(smoothed, backend="python")(np.zeros((5, 0)), 2).shape == (5, 0)
