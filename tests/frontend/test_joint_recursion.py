"""Recursive functions of arrays that only add up the results of their calls. Primal and adjoint run jointly."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.subset import every

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
RANDOM = np.random.default_rng(11)


def minors(a):
    """A determinant, expanded along the first row."""
    n = a.shape[0]
    if n == 1:
        return a[0, 0]
    total = 0.0
    sign = 1.0
    for j in range(n):
        minor = np.empty((n - 1, n - 1))
        for r in range(n - 1):
            for c in range(n - 1):
                minor[r, c] = a[r + 1, c if c < j else c + 1]
        total += sign * a[0, j] * minors(minor)
        sign = -sign
    return total


def squared(a):
    """The adjoint of the call needs its result, and one array is passed twice."""
    return minors(a) ** 2 + minors(a.T) * minors(a)


def of_numbers(x, y, n):
    """Numbers with adjoints, in a loop that adds and subtracts."""
    if n <= 0:
        return x * y
    total = 0.0
    for _ in range(n):
        powers = np.array([y, y * y])
        total += powers[n % 2] * of_numbers(x * y, y + 0.1, n - 1)
        total -= math.sin(x)
    return total


def twice(x, n):
    """A result that is used twice."""
    if n == 0:
        return x[0]
    inner = twice(x * 1.1, n - 1)
    return inner * x[n] + inner


def halves(x):
    """Parts of the array, whose adjoints are parts of its adjoint."""
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return x[0] * halves(x[:middle]) + halves(np.sin(x[middle:]))


def crossed(a, b, n):
    if n == 0:
        return a[0] * b[1]
    return a[n] * crossed(b, a * 0.9, n - 1)


def overlapping(x):
    """Two arguments that share memory."""
    return crossed(x, x, 3) + crossed(x[1:], x[:-1], 3)


JOINT: dict[str, tuple[Any, ...]] = {
    "minors": (minors, RANDOM.normal(size=(4, 4))),
    "one_minor": (minors, RANDOM.normal(size=(1, 1))),
    "squared": (squared, RANDOM.normal(size=(3, 3))),
    "of_numbers": (of_numbers, 0.5, 0.7, 3),
    "no_iteration": (of_numbers, 0.5, 0.7, 0),
    "twice": (twice, RANDOM.normal(size=6), 5),
    "halves": (halves, RANDOM.normal(size=7)),
    "overlapping": (overlapping, RANDOM.normal(size=6)),
}


def of_few_numbers(x, n):
    """No arrays of its own: numbers are kept cheaply, and leaf calls need little of the machine's stack."""
    return x[0] if n == 0 else x[n] + 0.5 * of_few_numbers(x, n - 1)


def nested(x, n):
    """The sum goes through two loops."""
    if n == 0:
        return x[0]
    total = 0.0
    for i in range(2):
        for j in range(i + 1):
            total += x[j] * nested(x, n - 1)
    return total


def selected(x, n):
    """The sum goes through a branch."""
    if n == 0:
        return x[0]
    total = 0.0
    for i in range(3):
        if x[i] > 0.0:
            total += x[i] * selected(x, n - 1)
        else:
            total -= selected(x, n - 1)
    return total


def changed_afterwards(x, n):
    """The array that a call reads is changed after it."""
    if n == 0:
        return x[0] * x[1]
    total = 0.0
    for i in range(2):
        w = x.copy()
        w[0] = math.sin(w[0])
        total += x[i] * changed_afterwards(w, n - 1)
        w[1] = w[1] * w[0]
        total += w[1]
    return total


def by_number(x, n):
    """The result of one call is the argument of the next one."""
    if n == 0:
        return x * x
    return by_number(math.sin(by_number(x, n - 1)), n - 1)


SEPARATE: dict[str, tuple[Any, ...]] = {
    "of_few_numbers": (of_few_numbers, RANDOM.normal(size=4), 3),
    "nested": (nested, RANDOM.normal(size=4), 3),
    "selected": (selected, RANDOM.normal(size=4), 3),
    "changed_afterwards": (changed_afterwards, RANDOM.normal(size=3), 3),
    "by_number": (by_number, 0.4, 3),
}


ALL = {**JOINT, **SEPARATE}


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "python") for name in ALL), *((name, "numba") for name in every(3, [*ALL]))]
)
def test_derivatives_agree_with_differences(name: str, backend: str) -> None:
    function, *arguments = ALL[name]

    srcdiff.check(function, *arguments, backend=backend)


@pytest.mark.parametrize("name", [name for name in JOINT if name != "no_iteration"])
def test_second_derivatives_agree_with_differences(name: str) -> None:
    function, *arguments = JOINT[name]
    gradient = srcdiff.grad(function, backend="python")

    srcdiff.check(lambda x: np.sum(np.sin(gradient(x, *arguments[1:]))), arguments[0], backend="python")


@pytest.mark.parametrize("name", JOINT)
def test_nothing_is_kept_between_the_sweeps(name: str) -> None:
    function, *arguments = JOINT[name]
    source = srcdiff.source(function, *arguments)

    assert "_with_adjoint" in source
    assert "append" not in source


@pytest.mark.parametrize("name", SEPARATE)
def test_other_functions_become_pairs(name: str) -> None:
    function, *arguments = SEPARATE[name]
    names = re.findall(r"^def (\w+)", srcdiff.source(function, *arguments), re.MULTILINE)

    assert [n for n in names if n.endswith("_adjoint")] == []


@pytest.mark.numba
def test_recursion_without_arrays_may_be_deep() -> None:
    x = np.ones(100_001)

    value, x_bar = srcdiff.value_and_grad(of_few_numbers)(x, 100_000)

    assert value == 2.0
    assert x_bar[-3:].tolist() == [0.25, 0.5, 1.0]


def test_value_and_gradient_come_from_one_call() -> None:
    source = srcdiff.value_and_grad(minors, backend="python").compile(np.eye(3)).source

    assert re.findall(r"^def (\w+)", source, re.MULTILINE) == ["minors_with_adjoint", "minors_value_and_grad"]


def positive(x, n):
    if x[n] < 0.0:
        raise ValueError("negative")
    return x[0] if n == 0 else x[n] * positive(x, n - 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exceptions_of_the_function_are_raised_by_the_gradient(backend: str) -> None:
    gradient = srcdiff.value_and_grad(positive, backend=backend)

    value, x_bar = gradient(np.array([2.0, 3.0]), 1)
    assert value == 6.0
    assert x_bar.tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="negative"):
        gradient(np.array([-2.0, 3.0]), 1)


def test_function_that_prints_does_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    def told(x, n):
        print("call", n)
        return x if n == 0 else told(x, n - 1) * x

    srcdiff.grad(told, backend="python")(0.5, 2)

    assert capsys.readouterr().out.splitlines() == ["call 2", "call 1", "call 0"]
