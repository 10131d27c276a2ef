"""Stencils whose adjoint gathers rows: the numbers agree with differences, on grids with and without inner rows."""

import numpy as np
import pytest

import srcdiff
from tests import numerical


def five_points(source, sweeps):
    u = source.copy()
    v = source.copy()
    rows, columns = u.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + source[i, j])
        u, v = v, u
    return np.sum(u * u)


def nine_points_on_one_side(source, sweeps):
    u = source
    for _ in range(sweeps):
        new = u.copy()
        for i in range(2, u.shape[0]):
            scale = source[i, 0]
            for j in range(u.shape[1] - 2):
                row = u[i - 2, j] * u[i, j + 1] + 0.5 * u[i - 1, j + 2]
                new[i, j] = scale * row + u[i - 2, j + 2] * u[i - 1, j + 1]
        u = new
    return np.sum(u**2)


def down_and_aside(source, sweeps):
    total = 0.0
    for i in range(source.shape[0] - 1):
        for j in range(source.shape[1] - 1):
            total += (source[i + 1, j] - source[i, j]) ** 2 + (source[i, j + 1] - source[i, j]) ** 2
    return total * sweeps


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("function", [five_points, nine_points_on_one_side, down_and_aside])
@pytest.mark.parametrize("shape", [(7, 6), (5, 5), (4, 4), (3, 5), (3, 3), (5, 2), (2, 3), (1, 1)])
def test_gradient_of_a_stencil_is_right(function, shape, backend):
    source = np.random.default_rng(3).standard_normal(shape)

    value, actual = srcdiff.value_and_grad(function, backend=backend)(source, 3)

    assert value == pytest.approx(function(source, 3), rel=1e-12)  # sums are added in another order
    expected = [one.value for one in numerical.gradient(function, (source, 3), (0,))]
    np.testing.assert_allclose(np.ravel(actual), expected, rtol=1e-6, atol=1e-8)  # differences, of fourth powers


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_nothing_is_collected_where_there_is_nothing(shape):
    for function in (five_points, down_and_aside):
        assert srcdiff.grad(function)(np.zeros(shape), 2).shape == shape


def test_a_row_is_stored_once():
    gradient = srcdiff.grad(five_points)
    gradient(np.ones((5, 5)), 1)
    (line,) = [x for x in gradient.source.splitlines() if x.count("u_bar[") == 4 and "+=" in x]
    assert line.split("+=")[0].strip() == "v_bar[i, j]"


def test_second_derivatives_of_a_stencil_are_right():
    source = np.random.default_rng(4).standard_normal((5, 6))
    direction = np.random.default_rng(5).standard_normal((5, 6))
    actual = srcdiff.hvp(nine_points_on_one_side)(source, 2, direction)
    gradient = srcdiff.grad(nine_points_on_one_side)
    step = 1e-6
    expected = (gradient(source + step * direction, 2) - gradient(source - step * direction, 2)) / (2 * step)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)  # differences of gradients
