"""Strings and enum members that are chosen at run time, numbers compared with `None`, and lists from outside."""

from __future__ import annotations

import enum
import sys

import numpy as np
import pytest

import srcdiff


class Kind(enum.Enum):
    CALL = "call"
    PUT = "put"


class Mode(enum.StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Orbit:
    """As in programs for satellites: a letter chooses the method, and is an attribute."""

    def __init__(self, rate):
        self.rate = rate
        self.method = "n"
        if 6.28 / self.rate >= 2.5:
            self.method = "d"
        self.log = []

    def position(self, t):
        self.log.append(self.method)
        if self.method == "d":
            return np.sin(self.rate * t) + self.rate
        return self.rate * t * t


ORBIT = Orbit(1.5)


def of_attribute(x):
    return Orbit(x).position(0.7) + Orbit(2.0 * x).position(0.4)


def of_outside(x):
    ORBIT.method = "n" if x > 1.0 else "d"
    return ORBIT.position(x) * len(ORBIT.log)


def in_loop(x):
    kind, total = Kind.CALL, 0.0
    for k in range(4):
        if kind is Kind.CALL:
            total += x**k
        else:
            total += np.sin(x) * k
        if total > 1.5:
            kind = Kind.PUT
    return total * (2.0 if kind.value == "put" else 1.0)


def in_dictionary(x):
    name = "a" if x > 1.0 else "bb"
    factors = {"a": 2.0 * x, "bb": 3.0}
    factors["c"] = 1.0
    return x * factors[name] + len({"a": 1.0}) * {"a": x, "bb": x * x}[name]


def by_methods(x):
    name = None
    if x > 1.0:
        name = "north"
    elif x > 0.3:
        name = "dd"
    if name is None:
        return x
    if name.startswith("d") and name not in ("north", "east"):
        return 3.0 * x
    return x * x if name.upper() == "NORTH" else -x


def from_tuple(x):
    names, total = ("sin", "cos", "exp"), 0.0
    for k in range(int(x) + 1):
        if names[k] == "sin":
            total += np.sin(x)
        elif names[k] != "exp":
            total += np.cos(x)
        else:
            total += np.exp(x)
    return total


def with_empty(x):
    unit = "m" if x > 1.0 else ""
    return x * x if unit else 3.0 * x


def two_choices(x):
    a = "p" if x > 1.0 else "q"
    b = Mode.FAST if x > 0.4 else Mode.SLOW
    c = "q" if x < 2.0 else "r"
    if a == c:
        return x * x
    return 2.0 * x if b == Mode.FAST or b is Mode.SLOW else x


def compared_with_none(x):
    last, before, total = None, None, 0.0
    for k in range(5):
        value = x * min(k, 2)
        if value == last:
            total += 10.0 * value
        if last != before:
            total += x
        before, last = last, value
        total += value
    return total


PROGRAMS = [
    of_attribute,
    of_outside,
    in_loop,
    in_dictionary,
    by_methods,
    from_tuple,
    with_empty,
    two_choices,
    compared_with_none,
]


@pytest.mark.filterwarnings("ignore::srcdiff.EqualityTestWarning")
@pytest.mark.parametrize("x", [2.2, 1.3, 0.7, 0.2])
@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_derivatives_agree_with_differences(function, x):
    def plain(v):
        ORBIT.log.clear()
        return function(v)

    expected = (plain(x + 1e-6) - plain(x - 1e-6)) / 2e-6
    value = plain(x)
    ORBIT.log.clear()
    found, gradient = srcdiff.value_and_grad(function, backend="python")(x)
    assert found == pytest.approx(value, rel=1e-14)
    assert gradient == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert srcdiff.jvp(function, (x,), (1.0,), backend="python")[1] == pytest.approx(gradient, rel=1e-13)
    assert ORBIT.log == []


@pytest.mark.numba
def test_compiled_gradients_are_the_same():
    for function in (of_attribute, in_loop, by_methods):
        for x in (2.2, 0.7):
            expected = srcdiff.grad(function, backend="python")(x)
            assert srcdiff.grad(function)(x) == pytest.approx(expected, rel=1e-13)


def test_what_needs_a_constant_is_read_for_each_string():
    def f(x):
        if x[0] > 0.0:
            mode = "edge"
        else:
            mode = "constant"
        return np.sum(np.pad(x, 2, mode=mode) ** 2)

    gradient = srcdiff.grad(f, backend="python")
    np.testing.assert_allclose(gradient(np.array([1.0, 2.0])), [6.0, 12.0])
    np.testing.assert_allclose(gradient(np.array([-1.0, 2.0])), [-2.0, 4.0])


def test_string_in_a_list_of_numbers_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="one of `'a'`, `'b'`"):
        srcdiff.grad(lambda x: x * ("a" if x > 0.0 else "b"), backend="python")(1.0)


CALLS = [[1.0, 2.0], 3.0]


def test_nested_lists_from_outside_are_changed_and_stay_as_they_were():
    def f(x):
        inner = CALLS[0]
        inner.append(x * x)
        CALLS[0][0] = x
        CALLS.append(4.0)
        return sum(CALLS[0]) * len(CALLS)

    gradient = srcdiff.grad(f, backend="python")
    assert gradient(2.0) == pytest.approx(3.0 * 5.0)
    assert gradient(2.0) == pytest.approx(3.0 * 5.0)
    assert CALLS == [[1.0, 2.0], 3.0]
    CALLS.insert(1, 1.0)
    try:
        assert gradient(2.0) == pytest.approx(4.0 * 5.0)
    finally:
        CALLS.pop(1)


def test_python_describes_itself():
    def f(x):
        if (3, 8) <= sys.version_info < (3, 9) or sys.version_info.major < 3:
            return x
        return x * x + np.log(sys.float_info.min) * x

    assert srcdiff.grad(f, backend="python")(2.0) == pytest.approx(4.0 + np.log(sys.float_info.min))


def test_arrays_of_objects_are_stored_and_not_used():
    def stored(x):
        z = np.array([[None] * 2]).T
        z = x
        return z * x

    def used(x):
        z = np.array([None, None])
        return x + np.sum(z)

    assert srcdiff.grad(stored, backend="python")(3.0) == 6.0
    with pytest.raises(srcdiff.DifferentiationError, match="array of objects"):
        srcdiff.grad(used, backend="python")(3.0)
