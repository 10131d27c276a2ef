"""The kind of a value, in words for messages."""

from __future__ import annotations

import enum
from typing import Any

from srcdiff.diagnostics.naming_objects import named
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Caught,
    Choice,
    Closure,
    DeviceName,
    Drawn,
    Each,
    Element,
    Enumerate,
    Generated,
    Items,
    Lazy,
    List,
    Maybe,
    Method,
    Missing,
    Object,
    OfObjects,
    Optional,
    Partial,
    Poison,
    Range,
    Record,
    Reversed,
    Static,
    Stored,
    Structured,
    Super,
    Text,
    Through,
    Transformed,
    Tuple,
    TypeOf,
    Zip,
    is_chosen_text,
)
from srcdiff.frontend.domain.lattice import are_objects, is_complex
from srcdiff.frontend.domain.reader import Reader
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import Array
from srcdiff.library.deques import Deque
from srcdiff.library.hash_tables import HashTable
from srcdiff.signature.enums import spelled


def told_apart(reader: Reader, a: Abstract, b: Abstract) -> tuple[str, str]:
    """The kinds of two values of different types, in words that name the difference."""
    first, second = in_words(reader, a), in_words(reader, b)
    if first != second:
        return first, second
    match a, b:
        case Static(), Static():
            return f"`{a.value!r}`", f"`{b.value!r}`"
        case Tuple(), Tuple() if a.kind is not b.kind:
            return _of_kind(a), _of_kind(b)
        case Tuple(), Tuple() if len(a.items) != len(b.items):
            return _counted(a), _counted(b)
        case Tuple(), Tuple():
            names = [f"element {k}" for k in range(len(a.items))]
            return _part_told_apart(reader, first, names, a.items, b.items)
        case Record(), Record() if set(a.kind.names) != set(b.kind.names):
            what = "keys" if a.kind.is_mapping else "attributes"
            return _with_names(first, what, a.kind.names), _with_names(second, what, b.kind.names)
        case Record(), Record():
            other = dict(zip(b.kind.names, b.items, strict=True))
            names = [f"`{name}`" for name in a.kind.names]
            return _part_told_apart(reader, first, names, a.items, tuple(other[n] for n in a.kind.names))
    return first, second


def _of_kind(x: Tuple) -> str:
    return "a plain tuple" if x.kind is None else f"the named tuple `{x.kind.__name__}`"


def _counted(x: Tuple) -> str:
    count = len(x.items)
    return f"a tuple of {count} element{'' if count == 1 else 's'}" if count else "an empty tuple"


def _with_names(whole: str, what: str, names: tuple[Any, ...]) -> str:
    return f"{whole} with the {what} {', '.join(f'`{n}`' for n in names)}" if names else f"{whole} without {what}"


def _part_told_apart(
    reader: Reader, whole: str, names: list[str], first: tuple[Abstract, ...], second: tuple[Abstract, ...]
) -> tuple[str, str]:
    """The first part whose kinds differ."""
    for name, a, b in zip(names, first, second, strict=True):
        one, other = told_apart(reader, a, b)
        if one != other:
            return f"{whole} whose {name} is {one}", f"{whole} whose {name} is {other}"
    return whole, whole


def in_words(reader: Reader, x: Abstract) -> str:
    """The kind of a value, for messages."""
    match x:
        case Value(type=Array()):
            return f"an array ({x.type})"
        case Value():
            words = {"int64": "an integer", "bool": "a boolean", "complex128": "a complex number"}
            return words.get(x.scalar.dtype, "a float")
        case Static(value=None):
            return "`None`"
        case Static(value=OfObjects()):
            return "an array of objects"
        case Static(value=enum.Enum()):
            return f"`{spelled(x.value)}`"
        case Static(value=DeviceName()):
            return f"`cuda.{x.value.name}`"
        case Static():
            return named(x.value)
        case Tuple():
            return "a tuple"
        case Record() if is_complex(x):
            return "an array of complex eigenvalues, of which only `.real` is supported,"
        case Element():
            return "a record"
        case Structured():
            return "a record" if x.kind.rank is None else "a structured array"  # type: ignore[attr-defined]
        case Record():
            return "a dictionary" if x.kind.is_mapping else f"an instance of `{x.kind.kind.__name__}`"
        case List():
            return "a list"
        case Object() if x.kind is Deque:
            return "a deque"
        case Object() if issubclass(x.kind, dict) or x.kind is HashTable:
            return "a dictionary"
        case Object():
            return f"an instance of `{x.kind.__name__}`"
        case Items() | Stored():
            return "a list"
        case Optional():
            return f"{in_words(reader, x.value)} or `None`"
        case Maybe():
            return f"{in_words(reader, x.value)} that is assigned on some paths only"
        case Missing():
            return "not assigned"
        case Choice() if are_objects(x.options):
            return "one of several objects"
        case Choice() if is_chosen_text(x):
            return "one of " + ", ".join(f"`{o.value!r}`" for o in x.options if isinstance(o, Static))
        case Closure() | Choice() | Transformed() | Partial():
            return "a function"
        case Through():
            return f"`{x.how}(...)`"
        case Generated():
            return f"the generator `{x.name}(...)`" if x.name != "<genexpr>" else "a generator expression"
        case Drawn():
            return f"`{x.name}(...)`"
        case Text():
            return "a string"
        case Caught():
            return f"an exception (`{x.kind.__name__}`)"
        case Range():
            return "a range"
        case Enumerate() | Zip() | Reversed():
            return f"`{type(x).__name__.lower()}(...)`"
        case Method():
            return f"the method `{x.name}`"
        case Each():
            return "`np.ndindex(...)`" if x.of is None else "`np.ndenumerate(...)`"
        case Super():
            return "`super()`"
        case Lazy():
            return "an array"
        case Slice():
            return "a slice"
        case TypeOf():
            return "a class"
        case Poison():
            return "a value that cannot be used here"
    return "this"
