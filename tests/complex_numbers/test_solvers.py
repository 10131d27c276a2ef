"""Complex unknowns of solvers, and events of differential equations with complex states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import srcdiff
from srcdiff import DifferentiationError


def roots(a, b):
    def residual(z, a, b):
        return np.array([z[0] ** 2 * b - a + 0.1 * z[1].conjugate(), z[1] * z[0] - 1j * b])

    x = srcdiff.root(residual, np.array([1 + 1j, 1j]), a, b)
    cube = srcdiff.root(lambda z: z**3 - a * b, 1 + 1j)
    return np.sum(np.abs(x) ** 2 * np.array([1, 2])) + x[0].imag + cube.real**2 + cube.imag


def iterations(a, b):
    x = srcdiff.fixed_point(lambda z, a: np.sin(0.3 * z) * a + 1j, 0.1 + 0j, a)
    y = srcdiff.fixed_point(lambda z: 0.3 * z.conj() + np.array([[a, b]]), np.array([[0j, 0]]))
    return abs(x) ** 2 + np.sum(np.abs(y) ** 3)


def least(a, b):
    x = srcdiff.minimize(lambda z: abs(z - a) ** 4 + abs(z + b) ** 2 + z.real, 0.1j)
    t = np.arange(4.0)
    p = srcdiff.least_squares(lambda p: p[0] + p[1] * t - np.exp(1j * t * b) * a, np.zeros(2, complex))
    q = srcdiff.least_squares(lambda q: q[0] * np.exp(1j * q[1]) - a * b, np.array([1.0, 0.2]))
    return abs(x) ** 2 + np.sum(np.abs(p) ** 3) + q[0] * q[1]


@pytest.mark.parametrize("function", [roots, iterations, least])
def test_solutions_have_the_derivatives_of_their_equations(function):
    srcdiff.check(function, 0.8 + 0.6j, 0.7 - 0.2j, wrt=(0, 1), backend="python")


def test_second_derivatives_of_solutions():
    srcdiff.check(iterations, 0.8 + 0.6j, 0.7 - 0.2j, wrt=(0, 1), backend="python", order=2)


def test_compiled_solutions_are_those_of_the_source():
    expected = srcdiff.value_and_grad(roots, wrt=(0, 1), backend="python")(0.8 + 0.6j, 0.7 - 0.2j)
    found = srcdiff.value_and_grad(roots, wrt=(0, 1))(0.8 + 0.6j, 0.7 - 0.2j)
    np.testing.assert_allclose([found[0], *found[1]], [expected[0], *expected[1]], rtol=1e-9)


def test_roots_outside_of_differentiated_functions():
    found = srcdiff.root(lambda z: z**2 + 1, 0.5 + 0.5j, backend="python")
    assert found == pytest.approx(1j)


def test_bands_of_complex_unknowns_are_refused():
    with pytest.raises(DifferentiationError, match="`bands` for complex unknowns"):
        srcdiff.root(lambda z: z**2 + 1, np.array([0.5 + 0.5j]), bands=(0, 0), backend="python")


def test_residuals_of_another_length_are_found():
    with pytest.raises(ValueError, match="different lengths"):
        srcdiff.root(lambda z: z[:1] ** 2 + 1, np.array([0.5 + 0.5j, 1j]), backend="python")


def slope(t, y, a):
    return np.array([1j * a * y[0] + 0.1 * y[1], -0.5j * y[1] - 0.3 * y[0]])


def passes_axis(t, y, a):
    return y[0].imag


def shrinks(t, y, a):
    return abs(y[1]) - 0.8


passes_axis.terminal = 2
shrinks.direction = -1


def integrated(y0, a):
    found = solve_ivp(slope, (0.0, 6.0), y0, args=(a,), events=(passes_axis, shrinks), rtol=1e-10, atol=1e-12)
    first = np.sum(found.t_events[0]) + np.sum(np.abs(found.y_events[0]) ** 2)
    return first + np.sum(found.t_events[1]) + np.sum(found.y_events[1].imag) + abs(found.y[0, -1]) + found.t[-1]


def test_events_see_complex_states():
    srcdiff.check(integrated, np.array([1 + 0.2j, 0.3 - 1j]), 1.3, wrt=(0, 1), backend="python")
