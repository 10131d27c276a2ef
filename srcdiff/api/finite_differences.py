"""Compares a gradient with finite differences and says where they differ."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.signature.structures import parts_of, place_of, remade

# Weights of the fourth-order central difference, for steps of -2, -1, 1 and 2.
_WEIGHTS = ((-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0))


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of one argument: the derivative, the differences, and how far to trust them."""

    place: str
    derivative: float
    differences: float
    uncertainty: float

    @property
    def differs(self) -> bool:
        if np.isnan(self.derivative) or np.isnan(self.differences):
            return bool(np.isnan(self.derivative) != np.isnan(self.differences))
        return abs(self.derivative - self.differences) > self.uncertainty

    def __str__(self) -> str:
        return f"{self.place}: derivative {self.derivative:.10g}, differences {self.differences:.10g}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was compared; `worst` is the entry with the largest difference."""

    entries: tuple[Entry, ...]

    @property
    def worst(self) -> Entry | None:
        return max(self.entries, key=lambda e: abs(e.derivative - e.differences), default=None)

    def __str__(self) -> str:
        count = len(self.entries)
        return f"{count} derivatives agree with finite differences" + (f"; worst {self.worst}" if count else "")


def compare(
    function: Callable[..., Any], arguments: tuple[Any, ...], chosen: list[tuple[int, str]], gradients: tuple[Any, ...]
) -> Report:
    """Compare the gradients with differences of the function, one number at a time; raise where they differ."""
    entries: list[Entry] = []
    for (position, name), gradient in zip(chosen, gradients, strict=True):
        for place, value, put, got in _numbers(arguments, position, name, gradient):
            differences, uncertainty = _difference(function, arguments, position, value, put)
            entries.append(Entry(place, got, differences, uncertainty))
    wrong = [e for e in entries if e.differs]
    if wrong:
        lines = "\n".join(f"  {e}" for e in wrong[:20])
        more = f"\n  and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise AssertionError(
            f"{len(wrong)} of {len(entries)} derivatives differ from finite differences\n{lines}{more}"
        )
    return Report(tuple(entries))


def require_values(values: Any, given: Any, arguments: tuple[Any, ...], reasons: tuple[str, ...]) -> None:
    """Raise where the values that belong to the derivatives are not those that the function gives as it was given."""
    tolerance = 1e-4 if _in_single_precision(arguments) else 1e-7  # sums may be added up in another order
    different = list(_different(values, given, "result", tolerance))
    if different:
        first = "the value is not that of the function as it was given"
        raise AssertionError("\n  ".join((first, *different[:20], *reasons)))


def _different(value: Any, given: Any, place: str, tolerance: float) -> Iterator[str]:
    """The places where two results of the same form differ."""
    parts = parts_of(value)
    if parts is not None:
        others = parts_of(given) or []
        if len(parts) != len(others):
            yield f"{place} has {len(parts)} parts, as it was given {len(others)}"
        for k, (item, other) in enumerate(zip(parts, others, strict=False)):
            yield from _different(item, other, place_of(value, k, place), tolerance)
    elif isinstance(value, bool | int | float | np.generic | np.ndarray):
        if np.shape(value) != np.shape(given):
            yield f"{place} has the shape {np.shape(value)}, as it was given {np.shape(given)}"
            return
        first, second = np.asarray(value, float), np.asarray(given, float)
        same = np.isclose(first, second, rtol=tolerance, atol=tolerance, equal_nan=True)
        for index in np.argwhere(~same).tolist():
            label = f"{place}[{', '.join(map(str, index))}]" if index else place
            yield f"{label}: {first[tuple(index)]:.10g}, as it was given {second[tuple(index)]:.10g}"


Put = Callable[[Any, float], Any]


def _numbers(
    arguments: tuple[Any, ...], position: int, name: str, gradient: Any
) -> Iterator[tuple[str, float, Put, float]]:
    """Every number of an argument: its name, its value, how to put another in its place, and its derivative."""

    def visit(value: Any, bar: Any, place: str, put: Put) -> Iterator[tuple[str, float, Put, float]]:
        parts = parts_of(value)
        if isinstance(value, np.ndarray) and bar is not None:
            for index in np.ndindex(value.shape):

                def put_element(whole: Any, number: float, index: tuple[int, ...] = index) -> Any:
                    whole = np.array(whole)
                    whole[index] = number
                    return whole

                label = f"{place}[{', '.join(map(str, index))}]"
                yield label, float(value[index]), _inside(put, value, put_element), float(bar[index])
        elif parts is not None:
            for k, (item, item_bar) in enumerate(zip(parts, parts_of(bar) or (), strict=True)):

                def put_item(whole: Any, inner: Any, k: int = k) -> Any:
                    items = parts_of(whole) or []
                    return remade(whole, [*items[:k], inner, *items[k + 1 :]])

                yield from visit(item, item_bar, place_of(value, k, place), _inside(put, value, put_item))
        elif bar is not None:
            yield place, float(value), put, float(bar)

    yield from visit(arguments[position], gradient, name, lambda _, number: number)


def _inside(outer: Put, whole: Any, inner: Callable[[Any, Any], Any]) -> Put:
    return lambda _, number: outer(None, inner(whole, number))


def _difference(
    function: Callable[..., Any], arguments: tuple[Any, ...], position: int, value: float, put: Put
) -> tuple[float, float]:
    """The difference quotient, and how far it can be off: the change between two steps, and rounding."""

    def at(number: float) -> float:
        given = list(arguments)
        given[position] = put(None, number)
        given = copy.deepcopy(given)  # the function may write into them
        with np.errstate(all="ignore"):
            return float(function(*given))

    scale = max(1.0, abs(value))
    size = abs(at(value))
    steps = (1e-3 * scale, 5e-4 * scale)
    found = [sum(w * at(value + k * step) for k, w in _WEIGHTS) / step for step in steps]
    precision = 1e-6 if _in_single_precision(arguments) else 1e-12
    rounding = precision * max(size, 1.0) / (5e-4 * scale)
    return found[1], 2.0 * abs(found[1] - found[0]) + rounding + 1e-7 * abs(found[1])


def _in_single_precision(x: Any) -> bool:
    """Whether some of the numbers are of `float32`, so that the function may compute with these."""
    parts = parts_of(x)
    if parts is not None:
        return any(_in_single_precision(item) for item in parts)
    return getattr(x, "dtype", None) == np.float32
