"""Complex types that are declared to Numba: signatures, variables, and attributes of compiled classes."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


@numba.experimental.jitclass([("w", numba.complex128), ("history", numba.complex128[:])])
class Oscillator:
    def __init__(self, w, n):
        self.w = w
        self.history = np.zeros(n, np.complex128)

    def step(self, k):
        self.w = self.w * self.w * 0.5 + 1j
        self.history[k] = self.w


def run(w):
    one = Oscillator(w, 4)
    for k in range(4):
        one.step(k)
    return np.sum(np.abs(one.history) ** 2) + one.w.imag


@numba.njit("c16(c16, f8)")
def turned(z, angle):
    return z * np.exp(1j * angle)


@numba.njit(locals={"w": numba.complex128})
def gathered(x):
    w = 0
    for k in range(len(x)):
        w += x[k] * 1j**k
    return w


def by_signature(z, x):
    return abs(turned(z, 0.3) + turned(x, x)) ** 2 + turned(1, x).imag + gathered(np.array([x, x**2, x**3])).imag


@pytest.mark.parametrize(("function", "arguments"), [(run, (0.3 + 0.2j,)), (run, (0.3,)), (by_signature, (1j, 0.7))])
def test_values_are_converted_to_declared_types(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python")


def test_gradients_by_instances_have_complex_attributes():
    def energy(one):
        one.step(0)
        return abs(one.w) ** 2

    given = Oscillator(0.3 + 0.2j, 2)
    slope = np.conj(2 * given.w * 0.5) * 2 * (given.w**2 * 0.5 + 1j)
    found = srcdiff.grad(energy, backend="python")(given)
    assert found.w == pytest.approx(slope)


def test_single_precision_is_refused():
    @numba.njit("c8(c16)")
    def narrowed(z):
        return z * z

    with pytest.raises(DifferentiationError, match="complex64, which is not supported"):
        srcdiff.grad(lambda z: narrowed(z).real, backend="python")(1j)


def test_complex_numbers_do_not_fit_into_real_types():
    @numba.njit(locals={"w": numba.float64})
    def narrowed(z):
        w = z * z
        return w

    with pytest.raises(DifferentiationError, match="imaginary"):
        srcdiff.grad(lambda z: narrowed(z), backend="python")(1j)
