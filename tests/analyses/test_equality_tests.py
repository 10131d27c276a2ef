"""Tests for equality that decide the derivative give one warning each, and `explain` lists them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff


def first_line(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


def skipping(v, w):
    s = 0.0
    for i in range(len(v)):
        if v[i] != 0.0:
            s += np.exp(v[i]) * w[i]
    return s


def returning(x):
    if x == 1.0:
        return 2.0 * x
    return x * x * x


def selecting(x):
    return np.sum(np.where(x == 0.0, 1.0, np.sin(x) / x))


def connected(x, y):
    if x > 0.0 and not (y == 2.0 or x == 3.0):
        return x * y
    return x + y


def joined(x, y):
    s = 1.0
    for k in range(len(x)):
        if x[k] != 0.0 and y[k] != 2.0:
            s = s * np.exp(x[k])
    return s


def storing(x):
    a = np.zeros(3)
    for i in range(3):
        if x[i] == 1.0:
            a[i] = 2.0 * x[i]
    return np.sum(a)


def helper(x):
    if x == 0.0:
        return x
    return np.sin(x) / x


def calling(x):
    return helper(x) + 1.0


def of_a_parameter(x, kind):
    if kind == 1.0:
        return x * x
    return x


def of_integers(x, n):
    if n == 1:
        return x * x
    return x


def for_nan(x):
    if x != x:
        return 0.0
    return x * x


def deciding_nothing(x):
    count = 0
    for i in range(len(x)):
        if x[i] == 0.0:
            count += 1
    return np.sum(x) + count


def raising(x):
    if x == 0.0:
        raise ValueError("zero")
    return 1.0 / x


def inequality(x):
    if x >= 0.0:
        return x * x
    return x


def in_the_library(x):
    return np.linalg.norm(x) + np.std(x) + np.prod(x) + np.max(x)


VECTOR = np.array([0.5, 1.5, 2.0])
FOUND: list[Any] = [
    (skipping, (VECTOR, VECTOR), 3),
    (returning, (0.5,), 1),
    (selecting, (VECTOR,), 1),
    (connected, (0.5, 1.5), 1),
    (storing, (VECTOR,), 3),
    (joined, (VECTOR, VECTOR), 3),
]
NOT_FOUND: list[Any] = [
    (of_a_parameter, (0.5, 1.0)),
    (of_integers, (0.5, 1)),
    (for_nan, (0.5,)),
    (deciding_nothing, (VECTOR,)),
    (raising, (0.5,)),
    (inequality, (0.5,)),
    (in_the_library, (VECTOR,)),
]


def warned(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is srcdiff.EqualityTestWarning]


@pytest.mark.parametrize(("function", "point", "line"), FOUND, ids=lambda x: getattr(x, "__name__", None))
def test_an_equality_test_is_named_once(function: Any, point: Any, line: int) -> None:
    gradient = srcdiff.grad(function, backend="python")
    number = first_line(function) + line

    messages = warned(lambda: gradient(*point))

    assert [number] == [int(message.split()[1]) for message in messages]
    assert [] == warned(lambda: gradient(*point))
    assert [number] == [span.line for span in srcdiff.explain(function, *point).equality_tests]
    assert f"line {number}:" in str(srcdiff.explain(function, *point))


@pytest.mark.parametrize(("function", "point"), NOT_FOUND, ids=lambda x: getattr(x, "__name__", None))
def test_other_comparisons_give_no_warning(function: Any, point: Any) -> None:
    assert [] == warned(lambda: srcdiff.grad(function, backend="python")(*point))
    assert () == srcdiff.explain(function, *point, wrt=0).equality_tests


def test_tests_in_helpers_are_found_at_their_lines() -> None:
    (message,) = warned(lambda: srcdiff.grad(calling, backend="python")(0.5))

    assert message.startswith(f"line {first_line(helper) + 1} of test_equality_tests.py, `if x == 0.0:`")


def test_other_modes_warn_too() -> None:
    assert len(warned(lambda: srcdiff.jvp(returning, (0.5,), (1.0,), backend="python"))) == 1
    assert len(warned(lambda: srcdiff.vjp(returning, 0.5, backend="python")[1](1.0))) >= 1
    assert len(warned(lambda: srcdiff.value_and_grad(returning, backend="python")(0.5))) == 1


def test_only_chosen_arguments_count() -> None:
    assert [] == warned(lambda: srcdiff.grad(skipping, wrt="w", backend="python")(VECTOR, VECTOR))


def test_the_data_of_explain_has_the_lines() -> None:
    found = srcdiff.explain(returning, 0.5).data()["equality_tests"]

    assert [first_line(returning) + 1] == [one["line"] for one in found]
