"""Branch cuts of complex functions: the derivative is that on the side of the value, which the sign of a zero says."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

import srcdiff
from srcdiff.emit.expressions import literal
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import COMPLEX

FUNCTIONS = (
    *(cmath.asin, cmath.acos, cmath.asinh, cmath.acosh, cmath.atan, cmath.atanh, cmath.sqrt, cmath.log),
    *(np.log1p, np.log10),
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("x", [2.0, -2.0])
def test_derivatives_along_real_and_imaginary_axes_are_those_of_the_side(function, zero, x):
    def on_the_real_axis(x):
        w = function(complex(x, zero))
        return 0.7 * w.real + 1.3 * w.imag

    def on_the_imaginary_axis(x):
        w = function(complex(zero, x))
        return 0.7 * w.real + 1.3 * w.imag

    srcdiff.check(on_the_real_axis, x, backend="python", order=2)
    srcdiff.check(on_the_imaginary_axis, x, backend="python", order=2)


def test_compiled_derivatives_are_those_of_the_same_side():
    def values(z):
        return np.arcsin(z) + 2 * np.arccos(z) + 3 * np.arcsinh(z) + 5 * np.arccosh(z) + np.log1p(z)

    z = np.array(
        [complex(*pair) for pair in ((2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0), (0.0, 2), (-0.0, 2), (-0.0, -2))]
    )
    seed = np.full(len(z), 0.7 - 0.3j)
    expected, pullback = srcdiff.vjp(values, z, backend="python")
    found, compiled_pullback = srcdiff.vjp(values, z)
    np.testing.assert_allclose(expected, values(z), rtol=1e-14)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(compiled_pullback(seed)[0], pullback(seed)[0], rtol=1e-13)


def test_compiled_hyperbolic_tangents_do_not_overflow():
    z = np.array([800 + 1j, -400 - 2j, 20 - 0.3j, 0.3 + 2j])
    found, pullback = srcdiff.vjp(lambda z: np.tanh(z), z)
    np.testing.assert_allclose(found, np.tanh(z), rtol=1e-14)
    np.testing.assert_allclose(pullback(np.ones(4, complex))[0], np.conj(1 - np.tanh(z) ** 2), rtol=1e-14, atol=1e-15)


PARTS = (0.0, -0.0, 1.0, -2.0, math.inf, math.nan)


@pytest.mark.parametrize("real", PARTS)
@pytest.mark.parametrize("imag", PARTS)
def test_literals_have_the_signs_of_zeros(real, imag):
    text, _ = literal(complex(real, imag), Value(COMPLEX))
    found = eval(text)
    assert [repr(part) for part in (found.real, found.imag)] == [repr(real), repr(imag)]
