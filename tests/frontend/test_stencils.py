"""Numba's stencils: borders, neighbourhoods, arrays with ordinary indices, results of all kinds."""

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


@numba.stencil
def product(a):
    return a[0, 1] * a[0, -1] + a[1, 0]


@numba.stencil(neighborhood=((-2, 2),), cval=1.5, standard_indexing=("w",))
def weighted(a, w, c):
    s = 0.0
    for k in range(-2, 3):
        s += a[k] * w[k + 2]
    return s * c


smoothed = numba.stencil(lambda a, b: 0.25 * (a[-1] + a[1]) * b[0])


@numba.stencil
def sums(n):
    return n[0] + n[1]


def of_an_array(a):
    return np.sum(product(a) ** 2)


def of_a_neighbourhood(a, w, c):
    return np.sum(weighted(a, w, c) ** 2)


@numba.njit
def in_a_loop(a, n):
    for _ in range(n):
        a = product(a) + a
    return np.sum(a * a)


def of_two_arrays(a, b):
    return np.sum(smoothed(a, b) ** 2)


def into_an_array(a):
    result = np.ones(a.shape)
    product(a, out=result)
    return np.sum(result * a)


def of_integers(x):
    return x * np.sum(sums(np.arange(5)))


GRID = np.sin(np.arange(20.0)).reshape(4, 5)


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        (of_an_array, (GRID,), 8.119380399357876),
        (of_a_neighbourhood, (np.arange(7.0), np.arange(5.0), 2.0), 20009.0),
        (in_a_loop, (GRID, 3), 204.2448715267261),
        (of_two_arrays, (np.arange(6.0), np.ones(6)), 7.5),
        (into_an_array, (GRID,), -0.7410790125355119),
        (of_integers, (2.0,), 32.0),
    ],
)
def test_values_are_those_of_numba_and_gradients_those_of_differences(function, arguments, value):
    plain = getattr(function, "py_func", function)
    found, gradient = srcdiff.value_and_grad(plain, backend="python")(*arguments)
    assert found == pytest.approx(value, rel=1e-13)
    direction = np.cos(np.arange(np.size(gradient))).reshape(np.shape(gradient))
    _, tangent = srcdiff.jvp(lambda x: plain(x, *arguments[1:]), (arguments[0],), (direction,), backend="python")
    assert np.sum(gradient * direction) == pytest.approx(tangent, rel=1e-12)
    step = 1e-5
    value_and_grad = srcdiff.value_and_grad(plain, backend="python")
    ahead, behind = (value_and_grad(arguments[0] + s * direction, *arguments[1:])[0] for s in (step, -step))
    assert tangent == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


@pytest.mark.numba
def test_the_value_is_that_of_numba():
    assert srcdiff.value_and_grad(of_an_array)(GRID)[0] == pytest.approx(of_an_array(GRID), rel=1e-14)


def test_smaller_arrays_raise_as_in_numba():
    with pytest.raises(ValueError, match="Secondary stencil array"):
        srcdiff.grad(of_two_arrays, backend="python")(np.arange(6.0), np.ones(4))


@numba.stencil
def asks_for_the_shape(a):
    return a[0] + a.shape[0]


@numba.stencil
def unknown_index(a, k):
    return a[k]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a: np.sum(asks_for_the_shape(a)), "may only read single elements of `a`"),
        (lambda a: np.sum(unknown_index(a, 1)), "no `neighborhood`"),
    ],
)
def test_other_kernels_are_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(np.ones(3))
