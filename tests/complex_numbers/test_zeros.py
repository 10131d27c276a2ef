"""Complex numbers that are exactly zero: an adjoint of zero is stronger than an infinite derivative."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

import srcdiff

pytestmark = pytest.mark.filterwarnings("ignore::srcdiff.EqualityTestWarning")

Z = np.array([0j, 1 + 2j, 0j, -0.5 + 0.3j])
IS_ZERO = Z == 0


def inverse_sizes(z):
    r = np.sqrt(z * np.conj(z))
    r[r != 0] = 1 / r[r != 0]
    return np.sum(np.abs(r) ** 2)


def roots(z):
    return np.sum(np.where(z != 0, np.sqrt(z), 0).imag ** 2)


def logarithms(z):
    return np.sum(np.where(z == 0, 0, np.log(z) + np.log10(z)).imag ** 2)


def quotients(z):
    return np.sum(np.where(np.abs(z) > 0, 2j / z, 0).imag ** 2)


def powers(z):
    return np.sum(np.where(z != 0, z**0.5 + z ** (0.5 + 0.2j) + z**-2.0, 0).imag ** 2)


def angles(z):
    return np.sum(np.where(z != 0, np.angle(z), 0) ** 2)


def parts_of_roots(z):
    return np.sum(np.abs(np.sqrt(z)[1::2]) ** 3) + np.sum(np.abs(np.log(z)[3:]))


def in_a_loop(z):
    s = 0.0
    for k in range(4):
        w = cmath.sqrt(z[k])
        if z[k] != 0:
            s += w.imag**2
    return s


def composed(z):
    return np.sum((np.where(z != 0, np.sqrt(np.log(z) / z), 0) ** 3).real)


def overwritten(z):
    infinite = np.log(z)
    y = infinite**2 + infinite * np.exp(z) + np.cos(1 / z) / z + infinite / (1.0 + abs(infinite) ** 2)
    y[np.abs(z) < 1e-9] = 1.0
    return np.sum(y.imag**2)


LEFT_OUT = (
    *(inverse_sizes, roots, logarithms, quotients, powers, angles, parts_of_roots, in_a_loop, composed, overwritten),
)


@pytest.mark.parametrize("function", LEFT_OUT)
def test_numbers_that_are_left_out_have_the_derivative_zero(function):
    gradient = srcdiff.grad(function, backend="python")
    instead = np.where(IS_ZERO, 0.3 - 0.7j, Z)  # none is zero here, and the others do not depend on these
    found, expected = gradient(Z), gradient(instead)
    assert not np.any(found[IS_ZERO])
    np.testing.assert_allclose(found[~IS_ZERO], expected[~IS_ZERO], rtol=1e-12)


@pytest.mark.parametrize("function", [inverse_sizes, quotients, composed, overwritten])
def test_compiled_gradients_have_the_same_zeros(function):
    expected = srcdiff.grad(function, backend="python")(Z)
    np.testing.assert_allclose(srcdiff.grad(function)(Z), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: np.sum(np.abs(z)),
        lambda z: np.linalg.norm(z),
        lambda z: np.sum(np.sqrt(z.real**2 + z.imag**2)),
        lambda z: np.sum(np.sqrt((z * z.conj()).real)),
        lambda z: np.sum(np.sqrt(np.conj(z) * z).real),
        lambda z: np.sqrt(np.sum(z * z.conj()).real),
        lambda z: np.sqrt(3.0 * np.sum(np.conj(z) * z).real / 2.0),
        lambda z: np.sqrt((z[0] * z[0].conjugate() + z[1] * np.conj(z[1])).real),
    ],
)
def test_distances_of_zero_have_the_derivative_zero(function):
    assert not np.any(srcdiff.grad(function, backend="python")(np.zeros(3, complex)))
    _, tangent = srcdiff.jvp(function, (np.zeros(3, complex),), (np.array([1.0, 0.5j, 2.0]),), backend="python")
    assert tangent == 0.0


def test_squares_of_distances_have_derivatives_where_two_points_meet():
    def energy(z):
        d = z[:, None] - z[None, :]
        return np.sum(np.triu(np.sqrt((d * d.conj()).real), 1) ** 2)

    srcdiff.check(energy, Z, backend="python")


def test_roots_of_products_that_are_no_sizes_stay_infinite():
    gradient = srcdiff.grad(lambda z, w: np.sqrt((z * w.conjugate()).real), wrt=("z", "w"), backend="python")
    assert not np.all(np.isfinite(gradient(0j, 1j)))


def test_compiled_quotients_by_zero_are_those_of_numpy():
    numbers = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
    planar = np.empty((7, 7), complex)
    planar.real, planar.imag = numbers[:, None], numbers
    x, y = np.broadcast_arrays(planar.ravel()[:, None], planar.ravel()[None, :])
    x, y = x.copy(), y.copy()
    with np.errstate(all="ignore"):
        expected = x / y
    found, _ = srcdiff.vjp(lambda x, y: x / y, x, y)
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-15)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-15, atol=1e-15)


def test_compiled_tangents_are_infinite_where_those_of_the_source_are():
    def inverse(z):
        return np.sum((1 / z).real)

    for backend in ("python", "numba"):
        with np.errstate(all="ignore"):
            _, tangent = srcdiff.jvp(inverse, (Z,), (np.ones(4, complex),), backend=backend)
        assert not np.isfinite(tangent)
