"""The kind of a value, in words for messages."""

from __future__ import annotations

import enum

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


def in_words(reader: Reader, x: Abstract) -> str:
    """The kind of a value, for messages."""
    match x:
        case Value(type=Array()):
            return f"an array ({x.type})"
        case Value():
            return {"int64": "an integer", "bool": "a boolean"}.get(x.scalar.dtype, "a float")
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
