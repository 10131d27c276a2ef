"""What the functions of the library can say beyond Python and NumPy. All of it also runs as plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def each(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All places of an array of this shape, in order."""
    return iter(np.ndindex(*shape))


def zero(dtype: Any) -> Any:
    """The zero of a type of numbers."""
    return np.dtype(dtype).type(0)


def known(x: Any) -> bool:
    """Whether something is a constant when the function is compiled."""
    return True


def is_array(x: Any) -> bool:
    """Whether something is an array with at least one axis."""
    return np.ndim(x) > 0


def structural(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only moves things about in tuples: it runs while the program is read."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        return function(*args)

    run.__srcdiff_structural__ = function  # type: ignore[attr-defined]
    return run


@structural
def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an `axis` argument means, in order."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {rank}")
    found = tuple(sorted(a % rank for a in axes))
    if len(set(found)) < len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


@structural
def without(items: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The items of a shape or a place, but for these axes."""
    return tuple(x for k, x in enumerate(items) if k not in axes)


@structural
def only(items: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The items of a shape or a place at these axes."""
    return tuple(items[k] for k in axes)


@structural
def interleaved(axes: tuple[int, ...], inner: tuple[Any, ...], outer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The place that has `inner` at the axes and `outer` at the others."""
    first, second = iter(inner), iter(outer)
    return tuple(next(first) if k in axes else next(second) for k in range(len(inner) + len(outer)))


@structural
def replaced(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at a position."""
    position %= len(items)
    return (*items[:position], item, *items[position + 1 :])


@structural
def inserted(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    """The items with one more before a position; -1 stands for the end."""
    position = position % (len(items) + 1)
    return (*items[:position], item, *items[position:])


@structural
def ones(count: int) -> tuple[int, ...]:
    return (1,) * count


@structural
def last_of(items: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The last so many items."""
    return items[len(items) - count :]
