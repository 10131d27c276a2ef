"""Iterators are not treated as lists: Python evaluates them lazily, and only once."""

# Written as users write.
# ruff: noqa: B905, RUF007

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff

A = np.array([0.4, 0.3, -1.2])


def zipped_twice(a):
    pairs = zip(a, a[1:])
    total = 0.0
    for u, v in pairs:
        total += u * v
    for u, v in pairs:
        total += 100.0 * u * v
    return total


def reversed_in_a_loop(a):
    backwards = reversed(a)
    total = 0.0
    for k in range(2):
        for v in backwards:
            total += v * (k + 1)
    return total


@pytest.mark.parametrize("function", [zipped_twice, reversed_in_a_loop])
def test_iterators_that_may_be_consumed_later_are_refused(function: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD102.*(generator|iterator)"):
        srcdiff.grad(function, backend="python")(A)


def zipped_once(a):
    pairs = zip(a, a[1:])
    total = 1.0
    for u, v in pairs:
        total *= u + v
    return total


def test_an_iterator_that_is_consumed_once_may_have_a_name() -> None:
    srcdiff.check(zipped_once, A, backend="python")


def strictly(a, b):
    total = 0.0
    for u, v in zip(a, b, strict=True):
        total += u * v * v
    return total


def strictly_listed(a, b):
    return sum([u * v * v for u, v in zip(a, list(b), strict=True)])


def strictly_three(a, b):
    total = 0.0
    for k, (u, v, w) in enumerate(zip(a, a * 2.0, b, strict=True)):
        total += u * v * w * k
    return total


def strictly_mapped(a, b):
    return sum(map(lambda pair: pair[0] * pair[1] ** 2, zip(a, b, strict=True)))


@pytest.mark.parametrize("function", [strictly, strictly_listed, strictly_three, strictly_mapped])
def test_zip_that_is_strict_compares_the_lengths(function: Any) -> None:
    srcdiff.check(function, A, A * 2.0, backend="python")
    for count in (2, 4):
        other = np.arange(float(count))
        with pytest.raises(ValueError, match="zip") as expected:
            function(A, other)
        with pytest.raises(ValueError, match=str(expected.value).replace("(", r"\(").replace(")", r"\)")):
            srcdiff.grad(function, backend="python")(A, other)


def known_to_differ(a):
    return sum(u * v for u, v in zip([a[0], a[1]], (a[0], a[1], a[2]), strict=True))


def test_zip_that_is_strict_compares_lengths_that_are_known() -> None:
    with pytest.raises(ValueError, match="argument 2 is longer than argument 1"):
        srcdiff.grad(known_to_differ, backend="python")(A)


def strictly_left(a, b):
    total = 0.0
    for u, v in zip(a, b, strict=True):
        if u < 0.0:
            break
        total += u * v
    return total


def strictly_inside(a, b):
    return sum(u * v * w for (u, v), w in zip(zip(a, b, strict=True), [1.0, 2.0]))


@pytest.mark.parametrize("function", [strictly_left, strictly_inside])
def test_strict_zip_is_refused_if_it_may_not_be_exhausted(function: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="strict=True"):
        srcdiff.grad(function, backend="python")(A, A * 2.0)


def strictly_left_of_one(a):
    total = 0.0
    for u, v in zip(a, a, strict=True):
        if u < 0.0:
            break
        total += u * v
    return total


def test_zip_that_is_strict_may_be_left_where_the_lengths_are_known_to_agree() -> None:
    srcdiff.check(strictly_left_of_one, A, backend="python")


def test_an_integer_of_more_than_64_bits_is_refused_beside_another() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="64 bits"):
        srcdiff.grad(lambda x, n: x * (n * 10**25) / 1e25, backend="python")(0.3, 2)


TABLE: list[Any] = [0.1, 0.2]
SETTINGS: dict[str, Any] = {"steps": 2, "rate": 0.5}


def with_structures_from_outside(x):
    for _ in range(SETTINGS["steps"]):
        x = x * x + SETTINGS["rate"] * TABLE[-1]
    return x * len(TABLE)


def test_structures_from_outside_are_those_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    derivative = srcdiff.value_and_grad(with_structures_from_outside, backend="python")

    for change in (
        lambda: None,
        lambda: monkeypatch.setitem(SETTINGS, "rate", 0.7),
        lambda: monkeypatch.setitem(SETTINGS, "steps", 3),
        lambda: monkeypatch.setitem(globals(), "TABLE", [0.1, 3]),
        lambda: TABLE.append(0.4),
    ):
        change()
        value, _ = derivative(0.3)
        assert value == pytest.approx(with_structures_from_outside(0.3), rel=1e-14)


def test_lists_from_outside_stay_as_they_were() -> None:
    def grows(x):
        TABLE.append(x * x)
        return TABLE[-1] * len(TABLE)

    before = list(TABLE)
    derivative = srcdiff.grad(grows, backend="python")
    assert [derivative(0.5), derivative(0.5)] == [len(before) + 1.0] * 2
    assert before == TABLE


def named_and_called(x):
    by_name = dict(zip(["a", "b", "c"], x, strict=False))
    functions = [lambda v: v * v, np.sin, lambda v: v]
    called = sum([f(v) for f, v in zip(functions, x, strict=False)])
    return by_name["a"] * by_name["c"] + called + sum([v * len(n) for v, n in zip(x, ["aa", "b"], strict=False)])


def test_names_and_functions_are_zipped_with_arrays_that_have_enough_elements():
    x = np.array([0.5, 1.2, -0.3])
    srcdiff.check(named_and_called, x, backend="python")
    with pytest.raises(ValueError, match=r"argument 2 of zip\(\) has fewer elements than another argument"):
        srcdiff.grad(named_and_called, backend="python")(x[:2])
