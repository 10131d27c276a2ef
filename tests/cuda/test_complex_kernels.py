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


@pytest.mark.parametrize("function", [functions, shifted, iterated, sums, zero_powers])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradient_is_that_of_the_cpu(function):
    expected = srcdiff.value_and_grad(function, wrt=("z", "x"), backend="python")(Z, X)
    value, bars = srcdiff.value_and_grad(function, wrt=("z", "x"), backend="cuda")(Z, X)
    assert value == pytest.approx(expected[0])
    for bar, other in zip(bars, expected[1], strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-11, atol=1e-11)
