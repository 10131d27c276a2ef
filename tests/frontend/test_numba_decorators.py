"""Functions that Numba's decorators make: values are those that Numba computes, and derivatives are right."""

import math

import numba
import numpy as np
import pytest
from numba import float32, float64, int64, types
from numba.extending import overload

import srcdiff


@numba.vectorize
def damped(a, b):
    if a > b:
        return a * math.exp(-b)
    return a * b


@numba.vectorize([float64(float64, float64)])
def damped_double(a, b):
    return a * b + math.sin(a)


@numba.vectorize([float32(float32), float64(float64)])
def squared(a):
    return a * a


@numba.guvectorize([(float64[:], float64, float64[:])], "(n),()->(n)")
def scaled(x, s, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * s


@numba.guvectorize([(float64[:], float64[:])], "(n)->()")
def total(x, out):
    out[0] = 0.0
    for i in range(len(x)):
        out[0] += x[i] ** 2


@numba.guvectorize([(float64[:, :], float64[:], float64[:])], "(m,n),(n)->(m)")
def product(a, x, out):
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            out[i] += a[i, j] * x[j]


@numba.guvectorize([(float64[:], float64[:], float64[:], float64[:])], "(n),()->(n),()")
def two_results(x, s, out, last):
    for i in range(x.shape[0]):
        out[i] = x[i] * s[0]
    last[0] = out[-1] * s[0]


@numba.cfunc(float64(float64, int64))
def for_c(x, n):
    return x * x * n


@numba.njit
def with_literal(x, n):
    k = numba.literally(n)
    return x**k


A, B = np.array([1.0, 2.5, 0.5]), np.array([[0.5, 3.0, 0.2], [1.5, 0.1, 0.7]])
M = np.arange(12.0).reshape(2, 2, 3) / 7.0

CALLS = {
    "a ufunc of two arrays": (lambda x, b: damped(x, b), (A, B)),
    "a ufunc of an array and a number": (lambda x: damped(x, 2.0), (A,)),
    "a ufunc of numbers": (lambda x: damped(x, 2.0), (1.5,)),
    "a ufunc with a signature": (lambda x, b: damped_double(x, b), (A, B)),
    "a ufunc with a signature, of an integer": (lambda x: damped_double(x, 3), (A,)),
    "a ufunc with a signature, of numbers": (lambda x: damped_double(x, 3), (1.5,)),
    "a generalized ufunc": (lambda x: scaled(x, 3.0), (A,)),
    "a generalized ufunc over an axis": (lambda x: scaled(x, 3.0), (B,)),
    "a generalized ufunc with stretched arguments": (lambda x, s: scaled(x, s), (A, B)),
    "a generalized ufunc of integers": (lambda x: scaled(np.array([1, 2]), x), (1.5,)),
    "a generalized ufunc with a number as result": (lambda x: total(x), (A,)),
    "a generalized ufunc with numbers as results": (lambda x: total(x), (B,)),
    "a generalized ufunc of matrices": (lambda x, a: product(a, x), (A, M)),
    "a generalized ufunc of one matrix": (lambda x, a: product(a, x), (A, M[0])),
    "a function for C": (lambda x: for_c(x, 3), (1.5,)),
    "a literal": (lambda x: with_literal(x, 3), (1.5,)),
}


@pytest.mark.parametrize("what", CALLS)
def test_values_are_those_of_numba_and_derivatives_are_right(what):
    f, args = CALLS[what]
    expected = f(*args)
    actual = srcdiff.differentiable(f, backend="python")(*args)
    np.testing.assert_allclose(expected, actual, rtol=1e-14)
    assert np.shape(expected) == np.shape(actual)
    srcdiff.check(lambda x, *rest: np.sum(f(x, *rest) ** 2), *args, wrt="x", order=2, backend="python")


def test_results_of_two_kinds():
    def loss(x, s):
        first, last = two_results(x, s)
        return np.sum(first**2) * np.sum(last)

    srcdiff.check(loss, A, np.array([2.0]), wrt=("x", "s"), order=2, backend="python")
    assert loss(A, 2.0) == pytest.approx(srcdiff.value_and_grad(loss, backend="numba")(A, 2.0)[0])


def test_result_is_written_into_a_given_array():
    def loss(x):
        out = np.zeros_like(x)
        scaled(x, 3.0, out)
        return np.sum(out**2)

    np.testing.assert_allclose(18.0 * A, srcdiff.grad(loss, backend="numba")(A))


def test_single_precision_stays_single():
    x = A.astype(np.float32)
    actual = srcdiff.differentiable(lambda x: squared(x), backend="python")(x)
    assert np.float32 == actual.dtype
    np.testing.assert_array_equal(squared(x), actual)


def test_empty_arrays():
    x = np.zeros(0)
    assert (0,) == srcdiff.grad(lambda x: np.sum(damped_double(x, 2.0)), backend="python")(x).shape
    assert (0,) == srcdiff.grad(lambda x: total(x) * 1.0, backend="python")(x).shape


def of_any(x, n=2):
    raise NotImplementedError


@overload(of_any)
def of_number(x, n=2):
    if isinstance(x, types.Float):

        def number(x, n=2):
            return x**n

        return number
    return None


@overload(of_any)
def of_array(x, n=2):
    if isinstance(x, types.Array):
        power = 3

        def array(x, n=2):
            return np.sum(x**power)

        return array
    return None


@numba.njit
def calls_overloads(x):
    return of_any(x[0]) * of_any(x, n=2) + of_any(x[1], 3)


def test_compiled_code_calls_the_implementation_of_overload():
    assert calls_overloads(A) == srcdiff.value_and_grad(calls_overloads, backend="python")(A)[0]
    srcdiff.check(calls_overloads, A, order=2, backend="python")
    with pytest.raises(NotImplementedError):
        srcdiff.differentiable(lambda x: of_any(x[0]), backend="python")(A)
