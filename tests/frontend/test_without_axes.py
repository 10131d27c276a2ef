"""Arrays without axes look like numbers, but in-place changes are visible under all their names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import srcdiff

A = np.array([1.1, 2.3, 3.7])
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def changed_by_a_helper(a):
    total = np.zeros(())

    def add(to, amount):
        to += amount

    for v in a:
        add(total, v * v)
    return total * 1.0


@case
def view_of_an_element(a):
    v = a[0, ...]
    v *= 2.0
    a[1] = v * a[1]
    w = a[..., 1]
    a[1] += 1.0
    return np.sum(a**2) + w


@case
def reshaped_to_nothing(a):
    v = a[:1].reshape(())
    v += a[1]
    return np.sum(a**2) + np.reshape(a[1:2], ()) ** 3


@case
def under_two_names(a):
    y = np.array(a[0])
    z = y
    y += 2.0
    held = [np.asarray(a[2])]
    held[0] *= a[1]
    copy = np.copy(y)
    copy -= 1.0
    return z * a[1] + held[0] * copy


@case
def under_two_names_in_a_loop(a):
    total = np.array(0.0)
    other = total
    for v in a:
        total += v
    return other * a[0]


@case
def returned(a):
    total = np.zeros_like(a[0])
    for v in a:
        total += v * v
        if v > 1.5:
            total *= 2.0
    return total


@case
def replaced_by_numbers(a):
    total = np.array(0.0)
    for v in a:
        total = total + v * v
    p = a[..., 0]
    while p < 5.0:
        p = p * 1.5
    return total * p + (a[..., 1] if a[0] > 0.0 else 2.0)


@case
def used_as_numbers(a):
    x, y, n = a[..., 0], a[..., 1], np.array(2)
    pair = [x, y, x * y]
    total = math.sin(x) + np.sin(y) + float(x) + abs(y) + max(x, y) + x**2 + np.sum(pair)
    if x > 0.0 and y < 5.0:
        total += x
    total += np.sum(np.array([x, y, 1.0])) + np.maximum(x, y) + np.where(x > y, x, y) + np.hypot(x, y)
    return total + sum([a[k] for k in range(n)]) + a[n] * np.zeros(n).size


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_the_gradient_agrees_with_numpy(function):
    assert srcdiff.value_and_grad(function, backend="python")(A.copy())[0] == pytest.approx(
        float(function(A.copy())), rel=1e-13
    )
    srcdiff.check(function, A.copy(), order=2, backend="python")


@pytest.mark.numba
def test_compiled():
    for function in (changed_by_a_helper, view_of_an_element, under_two_names):
        found, plain = (srcdiff.value_and_grad(function, backend=b)(A.copy()) for b in ("numba", "python"))
        assert found[0] == pytest.approx(plain[0], rel=1e-13)
        np.testing.assert_allclose(found[1], plain[1], rtol=1e-13)


def test_an_argument_without_axes():
    def squared(z):
        w = z
        w += 1.0
        return z * z

    given = np.array(1.5)
    value, gradient = srcdiff.value_and_grad(squared, backend="python")(given)
    assert (value, float(gradient), float(given)) == (6.25, 5.0, 1.5)


def squeezed(a):
    v = np.squeeze(a[:1])
    v *= 2.0
    return np.sum(a**2)


def chosen(a):
    y = np.where(a[0] > 0.0, a[0], 0.0)
    z = y
    y += 2.0
    return z * a[1]


def number_or_view(a):
    r = a[..., 0] if a[1] > 0.0 else 2.0
    r += 1.0
    return r * a[0]


@pytest.mark.parametrize("function", [squeezed, chosen, number_or_view])
def test_changes_that_other_names_may_see_are_refused(function):
    with pytest.raises(srcdiff.DifferentiationError, match="this changes a zero-dimensional array in place"):
        srcdiff.grad(function, backend="python")(A.copy())
