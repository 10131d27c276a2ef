"""Jacobians whose source shows that they have few rows or columns, and calls of them from compiled code."""

from __future__ import annotations

import gc
import weakref

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import numba_cpu

X, Y = np.array([0.3, -0.7, 1.2]), np.array([0.9, 0.4])


def pair(x, y):
    out = np.empty(2)
    r = np.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)
    out[0] = np.sin(r) * y[0] + x[2] / y[1]
    out[1] = np.cos(r) * y[1] * x[0]
    return out


def sums(x, y):
    out = np.zeros(2)
    for i in range(x.shape[0]):
        for k in range(y.shape[0]):
            out[k] += np.sin(x[i] * y[k])
    return out


def whole(x, y):
    return x * y[0] + y[1]


@pytest.mark.parametrize("function", [pair, sums, whole])
@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_jacobian_in_compiled_code_is_that_outside(function, mode):
    jacobian = srcdiff.jacobian(function, wrt=("x", "y"), mode=mode)
    expected = srcdiff.jacobian(function, wrt=("x", "y"), backend="python", mode="forward")(X, Y)

    @numba.njit
    def inside(x, y):
        return jacobian(x, y)

    backend = "numba" if mode is None else "python"
    of_batch = srcdiff.batched(srcdiff.jacobian(function, wrt=("x", "y"), mode=mode, backend=backend))
    for found in (inside(X, Y), jacobian(X, Y), of_batch(X[None], Y[None])):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.reshape(a, b.shape), b, rtol=1e-12)  # sums in another order


@pytest.mark.parametrize("length", [2, 3, 5])
def test_elements_that_a_batched_jacobian_leaves_out_are_zero(length):
    def bent(x):
        out = np.empty(2)
        out[0] = x[0] * x[1]
        out[1] = np.sin(x[0])
        return out

    x = np.linspace(0.5, 1.5, 3 * length).reshape(3, length)
    expected = np.zeros((3, 2, length))
    expected[:, 0, 0], expected[:, 0, 1], expected[:, 1, 0] = x[:, 1], x[:, 0], np.cos(x[:, 0])
    np.testing.assert_allclose(srcdiff.batched(srcdiff.jacobian(bent))(x), expected)


def test_compiled_code_takes_rows_where_there_are_few():
    jacobian = srcdiff.jacobian(pair, wrt=("x", "y"))

    @numba.njit
    def inside(x, y):
        return jacobian(x, y)

    inside(X, Y)

    assert list(jacobian.few) == [("pullback", 2)]
    assert "range" not in jacobian.few["pullback", 2].source  # two rows are unrolled


def test_defaults_in_compiled_code():
    def scaled(x, factor=2.0):
        return x * factor

    jacobian = srcdiff.jacobian(scaled)

    @numba.njit
    def inside(x):
        return jacobian(x), jacobian(x, 3.0), jacobian(x=x, factor=4.0)

    for found, factor in zip(inside(X), (2.0, 3.0, 4.0), strict=True):
        np.testing.assert_array_equal(found, factor * np.eye(3))


def test_other_names_of_arguments_count_no_references():
    def renamed(x, n):
        y = x
        z = y
        total = 0.0
        for _ in range(n):
            w = z
            total += w[0]
        return z, total

    compiled = numba_cpu.compiler({})(renamed)
    x = np.arange(3.0)
    watched = weakref.ref(x)

    given, total = compiled(x, 4)

    assert total == 0.0
    np.testing.assert_array_equal(given, [0.0, 1.0, 2.0])
    del given, x
    gc.collect()
    assert watched() is None
