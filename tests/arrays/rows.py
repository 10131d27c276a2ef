"""The rows of the table of array functions, the points to run them at, and the memory layouts of arrays.

An argument `w` at the end of a row gets weights: different numbers in the shape of the array that they multiply, so
that a derivative at the wrong place is noticed.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.numerical import clone, is_active_type

Point = tuple[Any, ...]

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
"""The version of NumPy, for rows that depend on it."""

#: The fractional part of the golden ratio: its multiples, modulo one, keep away from each other.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A function and its points; and the exact gradient at the first point, if differences cannot give it."""

    name: str
    function: Callable[..., Any]
    at: tuple[Point, ...]
    wrt: tuple[int, ...]
    exact: tuple[Any, ...] | None = None
    single_precision: bool = False


def row(
    name: str,
    function: Callable[..., Any],
    at: Sequence[Point],
    *,
    wrt: Sequence[int] | None = None,
    exact: tuple[Any, ...] | None = None,
    single_precision: bool = False,
) -> Row:
    """A row of the table. By default, `wrt` is every argument that holds floats."""
    points = tuple(_with_weights(function, point) for point in at)
    chosen = tuple(k for k, value in enumerate(points[0]) if is_active_type(value)) if wrt is None else tuple(wrt)
    return Row(name, function, points, chosen, exact, single_precision)


def has_single(point: Point) -> bool:
    """Whether a float32 is among the arguments."""
    return any(getattr(value, "dtype", None) == np.float32 for value in point)


# ------------------------------------------------------------------------------------------------------------ weights


class _Found(Exception):  # noqa: N818 - nothing went wrong
    """Raised when the shape of the weights is known."""


class _Probe:
    """Stands in for the weights, and records the shape of the array that multiplies it."""

    shape: tuple[int, ...] = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        others = [value for value in inputs if value is not self]
        assert (ufunc, method, len(others)) == (np.multiply, "__call__", 1), "write `result * w`"
        self.shape = np.shape(others[0])
        raise _Found


def _with_weights(function: Callable[..., Any], point: Point) -> Point:
    names = list(inspect.signature(function).parameters)
    if names[-1] != "w" or len(point) == len(names):
        return point
    probe = _Probe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the branch that `np.where` does not take
            function(*clone(point), probe)
    except _Found:
        weights = array(*probe.shape, low=0.5, high=1.5, start=0.77)
        if not probe.shape:
            return (*point, float(weights))
        return (*point, weights.astype(np.float32) if has_single(point) else weights)
    raise AssertionError("the weights are not used")


# ------------------------------------------------------------------------------------------------------------- arrays


def array(*shape: int, low: float = -1.0, high: float = 1.0, start: float = 0.13) -> np.ndarray:
    """Different numbers between `low` and `high`, in no order. Neighbours are far apart."""
    count = math.prod(shape)
    numbers = low + (high - low) * np.mod(start + GOLDEN * np.arange(1, count + 1), 1.0)
    return numbers.reshape(shape)


def regular(*shape: int, start: float = 0.13) -> np.ndarray:
    """Well-conditioned matrices."""
    return array(*shape, start=start) + 2.0 * np.eye(shape[-2], shape[-1])


def positive_definite(size: int) -> np.ndarray:
    """A symmetric matrix with positive, well-separated eigenvalues."""
    part = array(size, size)
    return part @ part.T + np.diag(np.arange(1.0, size + 1.0))


def with_real_eigenvalues(size: int) -> np.ndarray:
    """A nonsymmetric matrix with real, well-separated eigenvalues."""
    part = regular(size, size)
    return part @ np.diag(np.arange(1.0, size + 1.0)) @ np.linalg.inv(part)


def integers(*numbers: int, dtype: Any = np.int64) -> np.ndarray:
    """An array of integers: data and indices."""
    return np.array(numbers, dtype=dtype)


def booleans(text: str) -> np.ndarray:
    """A mask from a drawing; a slash ends a line.

    >>> booleans("x./.x")
    array([[ True, False],
           [False,  True]])
    """
    lines = [[letter == "x" for letter in line] for line in text.split("/")]
    return np.array(lines if len(lines) > 1 else lines[0])


# ------------------------------------------------------------------------------------------------------------- points


def once(*specifications: Any, low: float = -1.0, high: float = 1.0) -> list[Point]:
    """One point. A tuple of integers stands for an array of that shape, the empty tuple for a float."""
    return [tuple(_argument(value, k, low, high) for k, value in enumerate(specifications))]


def every(*specifications: Any, low: float = -1.0, high: float = 1.0) -> list[Point]:
    """The point of `once` with contiguous arrays, in Fortran order, strided, reversed, and in float32."""
    point = once(*specifications, low=low, high=high)[0]
    ways = [_as_it_is, _strided, _backwards, _single]
    if any(isinstance(value, np.ndarray) and value.ndim > 1 for value in point):
        ways.append(_fortran)
    return [tuple(way(value) if isinstance(value, np.ndarray) else value for value in point) for way in ways]


def _argument(value: Any, position: int, low: float, high: float) -> Any:
    if not isinstance(value, tuple):
        return value
    numbers = array(*value, low=low, high=high, start=0.13 + 0.29 * position)
    return numbers if value else float(numbers)


def _as_it_is(value: np.ndarray) -> np.ndarray:
    return value.copy()


def _strided(value: np.ndarray) -> np.ndarray:
    """Every second number of a larger array, in each dimension."""
    view = np.zeros([2 * n for n in value.shape], value.dtype)[(slice(None, None, 2),) * value.ndim]
    view[...] = value
    return view


def _backwards(value: np.ndarray) -> np.ndarray:
    """With a negative stride in each dimension."""
    return np.flip(value).copy()[(slice(None, None, -1),) * value.ndim]


def _fortran(value: np.ndarray) -> np.ndarray:
    return np.asfortranarray(value)


def _single(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32) if value.dtype == np.float64 else value.copy()
