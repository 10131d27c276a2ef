"""Termination of specialisation: recursive calls with ever new argument types are rejected.

A function is read once for each set of argument types, and again where it calls itself with others:

    def f(t, n):                                    t is a float, then a tuple, then a tuple of tuples, ...
        return 0.0 if n == 0 else f((t, t), n - 1)

Python stops when `n` is zero; the compiler can only stop there if it knows `n`. A call makes progress if an argument
gets smaller or a constant changes. The number of consecutive calls without progress is limited.
"""

from __future__ import annotations

import ast
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Choice,
    Closure,
    Items,
    List,
    Maybe,
    Optional,
    Partial,
    Record,
    Static,
    Transformed,
    Tuple,
    is_array_value,
)
from srcdiff.frontend.domain.lattice import loosened
from srcdiff.frontend.domain.state import Cells
from srcdiff.ir.nodes import Value
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description

_MOST_STEPS = 12
"""The maximum number of consecutive calls with new types and no progress. Types can decide, as in `len(t) == 3`."""
_MOST_FUNCTIONS = 3
"""The maximum if only functions are new. Few decisions depend on them, and their readings are nested."""
_LARGEST = 1000
"""The maximum number of parts of a growing argument."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: its description, its type without and with constants, and its number of parts."""

    given: Abstract
    type: Description
    exact: Description
    size: int

    @property
    def is_function(self) -> bool:
        given = self.given
        return isinstance(given, _FUNCTIONS) or (isinstance(given, Static) and callable(given.value))


@dataclass(frozen=True, slots=True)
class Called:
    """A call being read, and the number of calls without progress that lead to it."""

    node: ast.AST
    arguments: dict[str, Argument]
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Growing:
    """An argument that has a new type in every call."""

    name: str
    is_larger: bool


def size(x: Abstract, names: Cells, seen: dict[int, int] | None = None) -> int:
    """The number of parts. A shared part counts each time, but is visited once."""
    seen = {} if seen is None else seen
    if id(x) not in seen:
        seen[id(x)] = _own_size(x) + sum(size(p, names, seen) for p in _parts(x, names))
    return seen[id(x)]


def _own_size(x: Abstract) -> int:
    if is_array_value(x):
        return 1 + x.array.rank
    return 1 + len(x.value) if isinstance(x, Static) and isinstance(x.value, str) else 1


def _parts(x: Abstract, names: Cells) -> tuple[Abstract, ...]:
    match x:
        case Tuple() | Record() | Items():
            return x.items
        case List():
            return (names.get(x, MISSING),)
        case Closure():
            return tuple(x.defaults.values())
        case Partial():
            return (x.function, *x.args, *x.keywords.values())
        case Transformed():
            return (x.function,)
        case Maybe() | Optional():
            return (x.value,)
    return ()


def steps_without_end(before: Called, arguments: dict[str, Argument]) -> int:
    """The number of consecutive calls without progress, if a function calls itself with these arguments."""
    pairs = [(a, arguments[n]) for n, a in before.arguments.items() if n in arguments]
    if all(a.type == b.type for a, b in pairs):
        return before.steps
    smaller = any(b.size < a.size for a, b in pairs)
    counts = any(a.exact != b.exact and loosened(a.exact) == loosened(b.exact) for a, b in pairs)
    return 0 if smaller or counts else before.steps + 1


def too_large(before: Called, sizes: dict[str, int]) -> Growing | None:
    """An argument that has grown beyond the limit."""
    larger = [n for n, a in before.arguments.items() if sizes.get(n, 0) > max(a.size, _LARGEST)]
    return Growing(larger[0], is_larger=True) if larger else None


def without_end(before: Called, arguments: dict[str, Argument], steps: int) -> Growing | None:
    """An argument with yet another new type after too many calls without progress."""
    pairs = {n: (before.arguments[n], a) for n, a in arguments.items() if n in before.arguments}
    new = {n: (a, b) for n, (a, b) in pairs.items() if a.type != b.type}
    most = _MOST_FUNCTIONS if all(b.is_function for _, b in new.values()) else _MOST_STEPS
    if not new or steps <= most:
        return None
    name, (a, b) = max(new.items(), key=lambda item: item[1][1].size - item[1][0].size)
    return Growing(name, is_larger=b.size > a.size)


def how_it_grows(x: Abstract, is_larger: bool) -> tuple[str, str]:
    """The message about such an argument, and the suggestion."""
    table = _LARGER if is_larger else {}
    return next((text for kind, text in (table | _NEW).items() if isinstance(x, kind)), _OTHER)


_FUNCTIONS = (Closure, Choice, Partial, Transformed)
_NEW_FUNCTION = (
    "is a new function in every call",
    "define that function outside `{function}`, and pass it the numbers that it needs",
)
_LARGER: dict[Any, tuple[str, str]] = {
    Value: ("has more axes in every call", "pass an array with the same number of axes in every call"),
    (Tuple, Record, List): (
        "has more parts in every call",
        "pass a list of numbers or an array, whose type does not change as it grows, or write a loop",
    ),
}
_NEW: dict[Any, tuple[str, str]] = {
    _FUNCTIONS: _NEW_FUNCTION,
    List: ("is a new list in every call, and does not hold numbers", "pass an array or a list of numbers"),
    Static: ("is a different constant in every call", "pass a number instead"),
}
_OTHER = ("has a new type in every call", "pass a number, an array or a list of numbers, or write a loop")
