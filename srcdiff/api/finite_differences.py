"""Comparison of a gradient with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.copies import copied
from srcdiff.signature.trees import VALUES, Part, parts_of

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
    """The compared numbers; `worst` is the entry with the largest difference."""

    entries: tuple[Entry, ...]

    @property
    def worst(self) -> Entry | None:
        return max(self.entries, key=lambda e: abs(e.derivative - e.differences), default=None)

    def __str__(self) -> str:
        count = len(self.entries)
        agree = "derivative agrees" if count == 1 else "derivatives agree"
        return f"{count} {agree} with finite differences" + (f"; worst {self.worst}" if count else "")


def compare(
    function: Callable[..., Any], arguments: tuple[Any, ...], chosen: list[tuple[int, str]], gradients: tuple[Any, ...]
) -> Report:
    """Compare the gradients with differences of the function, one number at a time; raise where they differ."""
    entries: list[Entry] = []
    for (position, name), gradient in zip(chosen, gradients, strict=True):
        for place, value, put, got in _numbers(arguments[position], name, gradient):
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
    """Raise if the value that the derivative computes differs from the value of the function itself."""
    tolerance = 1e-4 if _in_single_precision(arguments) else 1e-7  # sums may be added up in another order
    different = _different(values, given, tolerance)
    if different:
        first = "the value differs from what the function itself returns"
        raise AssertionError("\n  ".join((first, *different[:20], *reasons)))


def _different(value: Any, given: Any, tolerance: float) -> list[str]:
    """The places where two results of the same form differ."""
    differences: list[str] = []
    missing = object()

    def opened(x: Any, other: Any, name: str) -> list[Any]:
        own, others = len(parts_of(x) or ()), parts_of(other) or ()
        if own != len(others):
            differences.append(f"{name} has {own} parts, but the function returns {len(others)}")
        return [*others, *[missing] * own][:own]

    for part, other in VALUES.beside(value, given, "result", opened):
        if other is not missing and isinstance(part.value, bool | int | float | complex | np.generic | np.ndarray):
            differences += _different_numbers(part, other, tolerance)
    return differences


def _different_numbers(part: Part, given: Any, tolerance: float) -> Iterator[str]:
    place, value = part.name, part.value
    if np.shape(value) != np.shape(given):
        yield f"{place} has the shape {np.shape(value)}, but the function returns {np.shape(given)}"
        return
    kind = complex if np.iscomplexobj(value) or np.iscomplexobj(given) else float
    first, second = np.asarray(value, kind), np.asarray(given, kind)
    same = np.isclose(first, second, rtol=tolerance, atol=tolerance, equal_nan=True)
    for index in np.argwhere(~same).tolist():
        label = f"{place}[{', '.join(map(str, index))}]" if index else place
        yield f"{label}: {first[tuple(index)]:.10g}, but the function returns {second[tuple(index)]:.10g}"


Put = Callable[[float], Any]
"""From a number to an argument that has it in place of one of its own."""


def _numbers(argument: Any, name: str, gradient: Any) -> Iterator[tuple[str, float, Put, float]]:
    """Every number of an argument: its name, its value, the argument with another in its place, and its derivative."""
    leaves, structure = VALUES.flatten(argument)
    for k, (part, bar) in enumerate(VALUES.beside(argument, gradient, name)):
        for index in np.ndindex(np.shape(part.value)) if bar is not None else ():

            def put(number: complex, k: int = k, index: tuple[int, ...] = index) -> Any:
                found: Any = number
                if isinstance(leaves[k], np.ndarray):
                    found = np.array(leaves[k])
                    found[index] = number
                return structure.rebuild([*leaves[:k], found, *leaves[k + 1 :]])

            label = f"[{', '.join(map(str, index))}]" if isinstance(part.value, np.ndarray) else ""
            value, got, place = np.asarray(part.value)[index], np.asarray(bar)[index], part.name + label
            if not np.iscomplexobj(value):
                yield place, float(value), put, float(got)
            else:
                at = complex(value)
                yield f"{place}.real", at.real, _along(put, at, 1.0), float(got.real)
                yield f"{place}.imag", at.imag, _along(put, at, 1j), float(got.imag)


def _along(put: Callable[[Any], Any], at: complex, direction: complex) -> Put:
    """Replace the real part of a number, or the imaginary part."""
    rest = complex(0.0, at.imag) if direction == 1.0 else complex(at.real, 0.0)
    return lambda number: put(rest + number * direction)


def _difference(
    function: Callable[..., Any], arguments: tuple[Any, ...], position: int, value: float, put: Put
) -> tuple[float, float]:
    """The difference quotient, and how far it can be off: the change between two steps, and rounding."""

    def at(number: float) -> float:
        given = list(arguments)
        given[position] = put(number)
        given = copied(given)  # the function may write into them
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
    """Whether some numbers are `float32`, so that the function may compute in single precision."""
    return any(getattr(leaf, "dtype", None) in (np.float32, np.complex64) for leaf in VALUES.leaves(x))
