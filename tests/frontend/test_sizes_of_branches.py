"""Sizes of arrays that are chosen by branches: what one side has checked does not hold on the other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff


def first_or_checked(x: Any, y: Any, c: float) -> Any:
    total = 0.0
    if c > 0.0:
        r = x
    else:
        total = np.sum(y + x)  # the lengths are equal here
        r = y
    return np.sum(r * r) + total


def checked_or_first(x: Any, y: Any, c: float) -> Any:
    total = 0.0
    if c > 0.0:
        total = np.sum(y + x)
        r = y
    else:
        r = x
    return np.sum(r * r) + total


def second_or_checked(x: Any, y: Any, c: float) -> Any:
    total = 0.0
    if c > 0.0:
        r = y
    else:
        total = np.sum(y + x)
        r = x
    return np.sum(r * r) + total


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize(
    ("function", "c"), [(first_or_checked, 1.0), (checked_or_first, -1.0), (second_or_checked, 1.0)]
)
def test_a_side_without_checks_may_have_other_lengths(function: Callable[..., Any], c: float, backend: str) -> None:
    gradient = srcdiff.value_and_grad(function, wrt=("x", "y"), backend=backend)
    for lengths in ((3, 5), (5, 3), (0, 4), (4, 0)):
        x, y = (np.arange(1.0, n + 1.0) for n in lengths)
        value, (by_x, by_y) = gradient(x, y, c)
        assert function(x, y, c) == value
        chosen, other = (by_y, by_x) if function is second_or_checked else (by_x, by_y)
        np.testing.assert_array_equal(2.0 * (y if function is second_or_checked else x), chosen)
        assert not np.any(other)
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    value, (by_x, by_y) = gradient(x, y, -c)
    assert function(x, y, -c) == value
    expected = (2.0 * x + 1.0, np.ones(3)) if function is second_or_checked else (np.ones(3), 2.0 * y + 1.0)
    np.testing.assert_array_equal(expected, (by_x, by_y))


@pytest.mark.parametrize("function", [first_or_checked, checked_or_first])
def test_lengths_that_do_not_fit_raise_on_the_side_that_checks(function: Callable[..., Any]) -> None:
    c = -1.0 if function is first_or_checked else 1.0
    with pytest.raises(ValueError, match="broadcast"):
        srcdiff.grad(function, backend="python")(np.ones(3), np.ones(5), c)


def test_a_recursive_result_has_the_length_that_was_checked() -> None:
    def halves(a: Any, depth: int) -> Any:
        if depth <= 0:
            r = a
        else:
            first = halves(a, 0)
            r = first + a
        return r * 0.5

    def program(a: Any) -> Any:
        return np.sum(halves(a, 3) ** 2)

    a = np.array([0.3, -0.4, 0.5])
    np.testing.assert_allclose(srcdiff.grad(program, backend="python")(a), 2.0 * 0.75**2 * a, rtol=1e-12)
