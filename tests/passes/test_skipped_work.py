"""Tests for equality that only save work: the derivative is that of the function without them, and nobody warns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] == 0.0:
                continue
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return np.sum(c**2)


def full_product(a, b):
    return np.sum((a @ b) ** 2)


def triangular(x, a):
    x = x.copy()
    for j in range(len(x)):
        if x[j] != 0.0:
            x[j] = x[j] / a[j, j]
            for i in range(j + 1, len(x)):
                x[i] = x[i] - x[j] * a[i, j]
    return np.sum((x + 1.0) ** 2)


def full_triangular(x, a):
    x = x.copy()
    for j in range(len(x)):
        x[j] = x[j] / a[j, j]
        for i in range(j + 1, len(x)):
            x[i] = x[i] - x[j] * a[i, j]
    return np.sum((x + 1.0) ** 2)


def rows(v, b):
    y = np.ones(b.shape[1])
    for i in range(len(v)):
        if v[i]:
            y += v[i] * b[i]
    return np.sum(y**2)


def full_rows(v, b):
    y = np.ones(b.shape[1])
    for i in range(len(v)):
        y += v[i] * b[i]
    return np.sum(y**2)


def chosen(v, w):
    return np.sum(np.where(v != 0, np.sin(v) * w, 0.0) ** 2 + np.where(v == 0, 0.0, w * v))


def not_chosen(v, w):
    return np.sum((np.sin(v) * w) ** 2 + w * v)


def either(v, w):
    s = 1.0
    for i in range(len(v)):
        if v[i] == 0.0 or w[i] == 0:
            continue
        s = s + v[i] * w[i] * s
    return s


def both(v, w):
    s = 1.0
    for i in range(len(v)):
        if v[i] != 0.0 and w[i] != 0:
            s = s + v[i] * w[i] * s
    return s


def all_pairs(v, w):
    s = 1.0
    for i in range(len(v)):
        s = s + v[i] * w[i] * s
    return s


def factors(v, w):
    p = w[0]
    for i in range(len(v)):
        if v[i] != 1.0:
            p = p * v[i] + (v[i] - 1.0) * w[i]
    return p


def all_factors(v, w):
    p = w[0]
    for i in range(len(v)):
        p = p * v[i] + (v[i] - 1.0) * w[i]
    return p


SPARSE, OTHER = np.array([0.0, 1.5, 0.0, -0.7]), np.array([0.3, 0.0, 0.0, 2.0])
MATRIX = np.cos(np.arange(16.0)).reshape(4, 4) + 2.0 * np.eye(4)
PAIRS: list[Any] = [
    (product, full_product, np.array([[0.0, 1.0], [2.0, 0.0]]), MATRIX[:2]),
    (triangular, full_triangular, np.array([0.0, 1.0, 0.0, 0.0]), MATRIX),
    (rows, full_rows, SPARSE, MATRIX),
    (chosen, not_chosen, SPARSE, OTHER),
    (either, all_pairs, SPARSE, OTHER),
    (both, all_pairs, SPARSE, OTHER),
    (factors, all_factors, np.array([1.0, 2.0, 1.0, 0.5]), OTHER),
]


@pytest.mark.parametrize(("function", "full", "x", "y"), PAIRS, ids=[p[0].__name__ for p in PAIRS])
def test_derivatives_are_those_without_the_test(function: Any, full: Any, x: Any, y: Any) -> None:
    directions = np.cos(1.0 + x), np.sin(2.0 + y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", srcdiff.EqualityTestWarning)
        value, gradient = srcdiff.value_and_grad(function, wrt=(0, 1), backend="python")(x, y)
        tangent = srcdiff.jvp(function, (x, y), directions, backend="python")[1]
        products = srcdiff.hvp(function, wrt=(0, 1), backend="python")(x, y, directions)
    assert value == pytest.approx(function(x, y), rel=1e-13)
    for found, expected in zip(gradient, srcdiff.grad(full, wrt=(0, 1), backend="python")(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert tangent == pytest.approx(srcdiff.jvp(full, (x, y), directions, backend="python")[1], rel=1e-12)
    expected = srcdiff.hvp(full, wrt=(0, 1), backend="python")(x, y, directions)
    for one, other in zip(products, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.numba
def test_compiled_gradients_are_the_same() -> None:
    function, _, x, y = PAIRS[1]
    expected = srcdiff.grad(function, wrt=(0, 1), backend="python")(x, y)
    for one, other in zip(srcdiff.grad(function, wrt=(0, 1))(x, y), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def skipping(v, w):
    s = 0.0
    for i in range(len(v)):
        if v[i] != 0.0:
            s += v[i] * w[i]
    return s


V = np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize("w", [np.array([2.0]), np.array([2.0, np.inf, np.nan])], ids=["missing", "not finite"])
@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_what_cannot_be_computed_stays_skipped(w: Any, backend: str) -> None:
    value, (by_v, by_w) = srcdiff.value_and_grad(skipping, wrt=(0, 1), backend=backend)(V, w)

    assert value == 2.0
    np.testing.assert_array_equal(by_v, [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(by_w, np.eye(len(w))[0])


def from_the_end(v, w):
    s = 0.0
    for i in range(len(v)):
        if v[i] != 0.0:
            s += v[i] * w[i - 1]
    return s


def test_negative_indices_count_from_the_end() -> None:
    gradient = srcdiff.grad(from_the_end, backend="python")

    np.testing.assert_array_equal(gradient(V, np.array([2.0, 3.0, 4.0])), [4.0, 2.0, 3.0])
    np.testing.assert_array_equal(gradient(V[::-1], np.array([2.0, 3.0])), [3.0, 2.0, 3.0])


def divided(v, w):
    return v / w if v != 0.0 else 0.0


def times_quotient(v, w):
    return v * (1.0 / w) if v != 0.0 else 0.0


@pytest.mark.numba
@pytest.mark.parametrize("function", [divided, times_quotient])
def test_zero_over_zero_stays_skipped(function: Any) -> None:
    gradient = srcdiff.value_and_grad(function, wrt=(0, 1), error_model="python")

    assert gradient(0.0, 0.0) == (0.0, (0.0, 0.0))
    assert gradient(0.0, 4.0) == (0.0, (0.25, 0.0))


def by_index(v, w, k):
    s = 0.0
    for i in range(len(v)):
        if v[i] != 0.0:
            s += v[i] * w[k[i]]
    return s


def entropy(p):
    return -p * np.log(p) if p != 0.0 else 0.0


def rounded(v, w):
    if v != 0.0:
        w = w + v * 2.0 + 1.0
    return w


def ending(v, w):
    s = 0.0
    for i in range(len(v)):
        if v[i] == 0.0:
            break
        s += v[i] * w[i]
    return s


def read_again(v, w):
    y = w.copy()
    if v[0] != 0.0:
        y[0] = y[0] * v[1] + v[0]
    return np.sum(y**2)


def counted(v, w):
    if v[0] != 0.0:
        for k in range(int(1.0 / v[0])):
            w = w + v[0] * k
    return np.sum(w)


UNSURE: list[Any] = [
    (by_index, (V, V, np.array([0, 1, 77777]))),
    (entropy, (0.0,)),
    (rounded, (0.0, 1.0)),
    (ending, (V, V)),
    (read_again, (V[::-1], V)),
    (counted, (V, V)),
]


@pytest.mark.parametrize(("function", "arguments"), UNSURE, ids=lambda x: getattr(x, "__name__", None))
def test_other_tests_decide_the_derivative(function: Any, arguments: Any) -> None:
    with pytest.warns(srcdiff.EqualityTestWarning):
        value = srcdiff.value_and_grad(function, backend="python")(*arguments)[0]
    assert value == function(*arguments)
