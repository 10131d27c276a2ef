"""Complex numbers in kernels, against the CPU: formulas of real functions, and additions to both parts."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

_random = np.random.default_rng(2)
Z, X = _random.normal(size=5) + 1j * _random.normal(size=5), _random.normal(size=5)


def functions(z, x):
    circular = np.sin(z) - np.cos(z) + np.tan(z) * np.sqrt(z) - np.sqrt(-z)
    hyperbolic = np.sinh(z) + np.cosh(z) * np.tanh(z)
    powers = z**2 + z**-1 + z**x + 2.0**z + np.square(z) + np.reciprocal(z)
    return np.sum((circular + hyperbolic + powers + np.exp(1j * x) * np.log(z) + np.log10(z)).real)


def shifted(z, x):
    w = np.conj(z) * x
    w[1:] += 2j * z[:-1]
    return np.sum(np.angle(w) + w.imag**2 + np.abs(w))


def iterated(z, x):
    total = 0.0
    for i in range(len(z)):
        w = z[i]
        for _ in range(3):
            w = w * w * 0.5 + x[i]
        total += abs(w)
    return total


def sums(z, x):
    pairs = np.sum(np.abs(z[:, None] - z[None, :] * x) ** 2)
    return pairs + abs(np.sum(z * x)) + np.sum(np.abs(np.mean(np.outer(z, z), axis=0)))


def zero_powers(z, x):
    return np.sum(((z * 0) ** 2 + (z * 0) ** 0).real * x)


def inverse_functions(z, x):
    circular = np.arcsin(z) * np.arccos(z * x) + np.arctan(z)
    hyperbolic = np.arcsinh(z) * np.arccosh(z * x) + np.arctanh(z)
    return np.sum((circular + hyperbolic + np.log1p(z) * np.log2(z) + np.expm1(z) * np.exp2(z)).real)


def recurrence(z, x):
    """Iterations that need each other run in one thread, whose results are complex."""
    w = 0j
    for i in range(len(z)):
        w = 0.5 * w * w + z[i]
        if abs(w) > 3.0:
            break
    return abs(w) * np.sum(x) + w.imag


@pytest.mark.parametrize("function", [recurrence, functions, shifted, iterated, sums, zero_powers, inverse_functions])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradient_is_that_of_the_cpu(function):
    expected = srcdiff.value_and_grad(function, wrt=("z", "x"), backend="python")(Z, X)
    value, bars = srcdiff.value_and_grad(function, wrt=("z", "x"), backend="cuda")(Z, X)
    assert value == pytest.approx(expected[0])
    for bar, other in zip(bars, expected[1], strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-11, atol=1e-11)


AT_CUTS = np.array([2, -2, 2j, -2j, 0, 0.5, 0.5j, 1e-9 + 1e-9j, 1e10 - 1e10j, 1e-160j, 3 - 1e-300j, complex(2, -0.0)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inverse_functions_are_those_of_numpy_at_both_sides_of_the_cuts():
    def inverse(z):
        circular = np.arcsin(z), np.arccos(z), np.arctan(z)
        return *circular, np.arcsinh(z), np.arccosh(z), np.arctanh(z)

    z = np.append(AT_CUTS, (complex(-2.0, -0.0), complex(-0.0, 2.0), complex(-0.0, -2.0)))
    for found, expected in zip(srcdiff.differentiable(inverse, backend="cuda")(z), inverse(z), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_singles_stay_singles():
    def energy(z, x):
        w = np.conj(z) * x
        w[1:] += np.exp(z[:-1])
        return np.sum(np.abs(w * w + 1j) ** 2) + abs(np.sum(w))

    z, x = Z.astype(np.complex64), X.astype(np.float32)
    expected = srcdiff.grad(energy, wrt=("z", "x"), backend="python")(Z, X)
    for bar, other, dtype in zip(
        srcdiff.grad(energy, wrt=("z", "x"), backend="cuda")(z, x), expected, (z.dtype, x.dtype), strict=True
    ):
        assert bar.dtype == dtype
        np.testing.assert_allclose(bar, other, rtol=1e-4)
