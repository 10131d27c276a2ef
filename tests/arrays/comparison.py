"""The comparison of a gradient with NumPy's value and with differences of the plain function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.numerical import Derivative, clone, derivative, numbers_in, size_of

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]

#: One unit in the last place of the working precision, by whether it is float32.
PRECISION = {False: float(np.finfo(np.float64).eps), True: float(np.finfo(np.float32).eps)}

#: The number of roundings by which a value or a gradient may differ in another order of evaluation.
ROUNDINGS = 2000.0

#: Up to this many numbers are varied one by one. Larger inputs are only varied along random directions.
EACH_ENTRY = 12

RANDOM_DIRECTIONS = 2


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivative of a function along a direction, by differences."""

    direction: np.ndarray
    expected: Derivative


def slopes(function: Callable[..., Any], point: Sequence[Any], wrt: Sequence[int]) -> list[Slope]:
    """Derivatives along random directions, and along each coordinate if there are few."""
    count = size_of(point, wrt)
    if count == 0:
        return []
    directions = list(np.random.default_rng(count).uniform(-1.0, 1.0, (RANDOM_DIRECTIONS, count)))
    if count <= EACH_ENTRY:
        directions += list(np.eye(count))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the branch that `np.where` does not take
        return [Slope(one, derivative(_along(function, point, wrt, one))) for one in directions]


def _along(
    function: Callable[..., Any], point: Sequence[Any], wrt: Sequence[int], direction: np.ndarray
) -> Callable[[float], float]:
    """The function on the line through the point, in float64, with the memory layouts of the arguments."""
    moves, start = [], 0
    for k in wrt:
        origin = np.asarray(point[k], dtype=np.float64)
        moves.append((k, origin, direction[start : start + origin.size].reshape(origin.shape)))
        start += origin.size

    def moved(t: float) -> float:
        arguments = list(clone(tuple(point)))
        for k, origin, step in moves:
            numbers = origin + t * step
            if origin.ndim == 0:
                arguments[k] = float(numbers)
            elif arguments[k].dtype == np.float64:
                arguments[k][...] = numbers
            else:
                arguments[k] = numbers
        return float(function(*arguments))

    return moved


def plain_value(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """The value that NumPy computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(function(*arguments))


def call(gradient: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The result of the derivative. A zero gradient gives a warning, and is compared here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gradient(*arguments)


def same(first: Any, second: Any) -> bool:
    """Whether arguments are equal, bit for bit, including arrays and lists."""
    if isinstance(first, np.ndarray):
        return (
            first.dtype == second.dtype
            and (first.strides == second.strides or first.size == 0)
            and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
        )
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second) or first is second


def assert_like_argument(bar: Any, argument: Any) -> None:
    """A gradient has the type, dtype and shape of its argument."""
    if isinstance(argument, np.ndarray):
        assert isinstance(bar, np.ndarray)
        assert (bar.dtype, bar.shape) == (argument.dtype, argument.shape)
    elif isinstance(argument, tuple | list):
        assert isinstance(bar, tuple if isinstance(argument, tuple) else list)
        assert len(bar) == len(argument)
        for part, item in zip(bar, argument, strict=True):
            assert_like_argument(part, item)
    else:
        assert isinstance(bar, float | np.floating)


def assert_close(value: float, expected: float, single: bool) -> None:
    """Compare two evaluations of the same sum."""
    assert abs(value - expected) <= ROUNDINGS * PRECISION[single] * max(1.0, abs(expected)), (value, expected)


def assert_slopes(bars: Any, expected: Sequence[Slope], single: bool) -> None:
    """Check that the products of the gradient with the directions equal the differences along them."""
    found = np.array(list(numbers_in(bars)))
    assert np.all(np.isfinite(found)), f"not finite: {bars}"
    rounding = ROUNDINGS * PRECISION[single] * max([1.0, *np.abs(found), *(abs(s.expected.value) for s in expected)])
    for slope in expected:
        got = float(np.sum(found * slope.direction))
        where = f"along {slope.direction}: {got}, by differences {slope.expected}; gradient {bars}"
        assert abs(got - slope.expected.value) <= slope.expected.tolerance + rounding, where
