"""Hoisted code runs only if the loop has an iteration, and derivatives do not change."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

POINTS = np.array([[0.3, -0.2], [1.1, 0.4], [-0.7, 0.9]])


def turned(points, angle):
    """The angle and its norm are the same for all points."""
    total = 0.0
    for i in range(points.shape[0]):
        theta = np.sqrt(angle[0] ** 2 + angle[1] ** 2)
        c, s = np.cos(theta), np.sin(theta)
        total += (c * points[i, 0] - s * points[i, 1]) ** 3 * angle[0] / theta
    return total


def turned_by_numbers(points, angle):
    """The same, with the invariants computed before the loop."""
    theta = np.sqrt(angle[0] ** 2 + angle[1] ** 2)
    c, s, k = np.cos(theta), np.sin(theta), angle[0] / theta
    total = 0.0
    for i in range(points.shape[0]):
        total += (c * points[i, 0] - s * points[i, 1]) ** 3 * k
    return total


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_derivatives_are_those_of_the_program_written_so(backend):
    angle = np.array([0.4, -0.3])
    for wrt in ("points", "angle", ("points", "angle")):
        one = srcdiff.value_and_grad(turned, wrt=wrt, backend=backend)
        other = srcdiff.value_and_grad(turned_by_numbers, wrt=wrt, backend=backend)
        for a, b in zip(flat(one(POINTS, angle)), flat(other(POINTS, angle)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)  # sums in another order


def flat(result):
    return [x for part in result for x in flat(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("angle", [np.zeros(2), np.zeros(0), np.array([np.nan, np.inf])])
def test_no_iteration_reads_nothing_and_contributes_nothing(backend, angle):
    gradient = srcdiff.value_and_grad(turned, wrt="angle", backend=backend)

    value, angle_bar = gradient(np.zeros((0, 2)), angle)

    assert value == 0.0
    np.testing.assert_array_equal(angle_bar, np.zeros_like(angle))


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_infinite_derivative_in_an_inner_loop_without_iterations(backend):
    def rows(x, y):
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                total += np.sqrt(x[i]) * y[j]
        return total

    gradient = srcdiff.grad(rows, backend=backend)

    np.testing.assert_array_equal(gradient(np.zeros(2), np.zeros(0)), np.zeros(2))
    assert np.all(np.isinf(gradient(np.zeros(2), np.ones(1))))


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_branch_that_no_iteration_takes_contributes_nothing(backend):
    def chosen(x, c):
        total = 0.0
        for i in range(x.shape[0]):
            s = np.sqrt(c)
            total += s * x[i] if x[i] > 10.0 else x[i]
        return total

    assert srcdiff.grad(chosen, wrt="c", backend=backend)(np.ones(3), 0.0) == 0.0


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_elements_that_iterations_overwrite_are_read_each_time(backend):
    def relaxed(x):
        y = x.copy()
        total = 0.0
        for i in range(3):
            total += np.exp(y[0])
            y[i] = 0.5 * y[0]
        return total

    x = np.array([0.2, 0.5, 0.7])
    value, x_bar = srcdiff.value_and_grad(relaxed, backend=backend)(x)

    assert value == pytest.approx(np.exp(0.2) + 2 * np.exp(0.1))
    np.testing.assert_allclose(x_bar, [np.exp(0.2) + np.exp(0.1), 0.0, 0.0])


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_an_exception_is_raised_before_the_code_after_it_runs(backend):
    def checked(x, a):
        total = 0.0
        for i in range(x.shape[0]):
            if x[i] < 0.0:
                raise ValueError("negative")
            total += np.exp(a[5]) * x[i]
        return total

    with pytest.raises(ValueError, match="negative"):
        srcdiff.grad(checked, wrt="a", backend=backend)(np.array([-1.0]), np.zeros(0))


def test_tangents_leave_the_loop_as_well():
    angle, direction = np.array([0.4, -0.3]), np.array([1.0, 2.0])
    value, value_dot = srcdiff.jvp(turned, (POINTS, angle), (np.zeros_like(POINTS), direction))

    gradient = srcdiff.grad(turned, wrt="angle")(POINTS, angle)
    assert value == pytest.approx(turned(POINTS, angle))
    assert value_dot == pytest.approx(gradient @ direction)


def test_sum_that_every_iteration_makes_is_made_once():
    def weighted(x, w):
        total = 0.0
        for i in range(x.shape[0]):
            norm = 0.0
            for k in range(w.shape[0]):
                norm += w[k] ** 2
            total += x[i] / norm
        return total

    gradient = srcdiff.grad(weighted, wrt="w", backend="python")
    x, w = np.array([1.0, 2.0]), np.array([3.0, 1.0, 2.0])

    np.testing.assert_allclose(gradient(x, w), -3.0 * 2.0 * w / 14.0**2)
    depth = max(len(line) - len(line.lstrip()) for line in gradient.source.splitlines())
    assert depth <= 12  # no loop in a loop
