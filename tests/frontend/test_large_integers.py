"""Integers that need more than 64 bits are handled exactly, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

LARGE = 2**70
BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
NUMBER, ITEMS, TABLE = LARGE, (LARGE, 2.0), {"a b": LARGE, "c d": 3.0}


def times(x, n):
    return x * n


def first(x, items):
    return x * items[0]


def entry(x, table):
    return x * table["n"]


def smaller(x, n):
    return x * (n % 7) if n > 5 else x


def as_float(x, n):
    return x * float(n) + abs(n)


def unused(x, n):
    return 3.0 * x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (times, LARGE, 2.0**70),
        (times, -LARGE, -(2.0**70)),
        (times, 2**63, 2.0**63),
        (times, 2**63 - 1, float(2**63 - 1)),
        (smaller, LARGE, float(LARGE % 7)),
        (as_float, LARGE, 2.0**70),
        (unused, LARGE, 3.0),
        (first, [LARGE, 1], 2.0**70),
        (first, [LARGE, 1.0], 2.0**70),
        (first, [3, LARGE], 3.0),
        (first, (LARGE, 1), 2.0**70),
        (entry, {"n": LARGE}, 2.0**70),
    ],
)
def test_large_integers_are_constants_beside_floats(function, argument, expected, backend):
    gradient = srcdiff.grad(function, backend=backend)
    assert gradient(2.0, argument) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_with_large_and_small_integers_do_not_see_each_other(backend):
    gradient = srcdiff.grad(times, backend=backend)
    found = [gradient(2.0, n) for n in (3, 3, LARGE, 4, LARGE + 2**30, 5, 5)]
    assert found == [3.0, 3.0, float(LARGE), 4.0, float(LARGE + 2**30), 5.0, 5.0]
    gradient = srcdiff.grad(first, backend=backend)
    assert [gradient(2.0, items) for items in ([3, 1], [LARGE, 1], [4, 1], [LARGE, 1.0])] == [
        3.0,
        2.0**70,
        4.0,
        2.0**70,
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivative_with_respect_to_a_large_integer_is_with_respect_to_a_float(backend):
    gradient = srcdiff.grad(lambda x: x * x, backend=backend)
    assert [gradient(n) for n in (2, 2, LARGE, 3)] == [4.0, 4.0, 2.0**71, 6.0]
    assert srcdiff.grad(lambda v: v[0] * v[1], backend=backend)([LARGE, 3]) == [3.0, 2.0**70]


def test_outside_and_default(monkeypatch):
    def outside(x, n=LARGE):
        return x * NUMBER + x * ITEMS[0] + x * TABLE["a b"] + x * TABLE["c d"] + x * n

    gradient = srcdiff.grad(outside, backend="python")
    assert gradient(1.0) == 4.0 * LARGE + 3.0
    monkeypatch.setitem(globals(), "NUMBER", 2 * LARGE)
    assert gradient(1.0) == 5.0 * LARGE + 3.0
    assert gradient(1.0, 0) == 4.0 * LARGE + 3.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x, n: x * sum([1.0 for _ in range(n)]), LARGE),
        (lambda x, n: np.sum(np.ones(2) * n) * x, LARGE),
        (lambda x, n: x * sum(n), [LARGE, LARGE]),
        (lambda x, n: x * (n if x > 0.0 else 1), LARGE),
        (lambda x, n: x * n[0], np.array([LARGE], dtype=object)),
        (lambda x, n: x * n, np.uint64(2**63 + 5)),
        (lambda x, n: x * n[0], [np.uint64(2**63 + 5)]),
    ],
)
def test_large_integers_without_a_float_operand_are_refused(function, argument, backend):
    with pytest.raises(DifferentiationError):
        srcdiff.grad(function, backend=backend)(2.0, argument)


def test_unsigned_integers_are_refused_after_small_ones_too():
    gradient = srcdiff.grad(times, backend="python")
    assert gradient(2.0, np.uint64(3)) == 3.0
    with pytest.raises(DifferentiationError, match="does not fit into int64"):
        gradient(2.0, np.uint64(2**63 + 5))


@pytest.mark.parametrize("backend", BACKENDS)
def test_integer_that_is_no_float_raises_as_in_python(backend):
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        srcdiff.grad(lambda x: x * 2**2000, backend=backend)(1.0)
    with pytest.raises(DifferentiationError, match="holds no floats"):
        srcdiff.grad(lambda x: 2.0 * (x % 7), backend=backend)(2**2000)


def test_large_integer_as_result_is_refused():
    with pytest.raises(DifferentiationError, match="does not fit into 64 bits"):
        srcdiff.grad(lambda x: (x, LARGE), has_aux=True, backend="python")(1.0)
    with pytest.raises(DifferentiationError, match="does not fit into 64 bits"):
        srcdiff.grad(lambda x: x * x, backend="python")(2**2000)
