"""The run-time representation of abstract values: the values that they consist of, converted to a description."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NoReturn

import numpy as np

from srcdiff.diagnostics import InternalError
from srcdiff.diagnostics.naming_objects import instead_of, is_plain
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Choice,
    Closure,
    List,
    Maybe,
    Missing,
    Object,
    Optional,
    Parts,
    Poison,
    Static,
    Stored,
    Text,
    Tuple,
)
from srcdiff.frontend.domain.lattice import is_number, is_without_axes, leaf_types, of_parts, same_function
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.presence import checked, present
from srcdiff.frontend.interpreter.tables import LEAVES
from srcdiff.ir.nodes import Alloc, NewStack, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Stack, Type, is_complex, is_float, is_inexact
from srcdiff.signature.descriptions import CONTIGUOUS, INTEGER, NUMPYS, UNCHOSEN, Description
from srcdiff.signature.enums import plain_number


def as_value(reader: Reader, x: Abstract, node: ast.AST | None = None) -> Value:
    """The number or array as a run-time value."""
    if isinstance(x, Value):
        return x
    if isinstance(x, Static) and isinstance(x.value, bool | int | float | complex):
        is_plain_number = isinstance(x.value, np.generic) or type(x.value) is complex
        number = x.value if is_plain_number else plain_number(x.value)
        if number is None:
            message = f"`{type(x.value).__name__}` defines its own operators, which is not supported"
            reader.refuse("SD102", node, message, help_="write a function for this operation, and call that")
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            reader.refuse("SD203", node, "an integer does not fit into 64 bits", help_="use a float")
        return reader.const(number)
    if isinstance(x, Optional):
        return as_value(reader, present(reader, x), node)
    if isinstance(x, Maybe | Poison | Missing):
        return as_value(reader, checked(reader, x, "a value", node), node)
    if isinstance(x, Text):
        refuse_text(reader, "a text with numbers is used where a number is needed", node)
    help_ = instead_of(type(x.value)) if isinstance(x, Static) and not is_plain(x.value) else ""
    reader.refuse("SD203", node, f"{in_words(reader, x)} is used where a number is needed", help_=help_)


def refuse_text(reader: Reader, message: str, node: ast.AST | None) -> NoReturn:
    """Refuse text with numbers where it would decide or become a number."""
    reader.refuse("SD203", node, f"{message}; numbers that go through text have no derivative", help_=_WITHOUT_TEXT)


_WITHOUT_TEXT = "leave out the text and use the number itself, or round it: `round(x, 3)`"


def fresh_values(reader: Reader, d: Description, name: str) -> tuple[Abstract, list[Value]]:
    """New run-time values for a value of this description."""
    if d.kind == "value":
        value = reader.register(Value(d.detail, name))
        for part in d.parts:
            if part == CONTIGUOUS:
                reader.contiguous.add(value)
            elif part not in (NUMPYS, INTEGER, UNCHOSEN):
                reader.stretches(value, part.detail)
        return value, [value]
    if d.kind == "static":
        return Static(d.detail[1]), []
    if d.kind in ("tuple", "record", "element", "items"):
        parts = [fresh_values(reader, p, d.layout.variable(name, k)) for k, p in enumerate(d.parts)]
        whole = of_parts(d, (p for p, _ in parts))
        whole = replace(whole, is_list=None) if isinstance(whole, Tuple) else whole
        return whole, [v for _, values in parts for v in values]
    if d.kind == "maybe":
        flag = Value(BOOL, f"{name}_is_set")
        inner, values = fresh_values(reader, d.parts[0], name)
        return Maybe(flag, inner), [flag, *values]
    if d.kind == "optional":
        flag = Value(BOOL, f"{name}_is_there")
        inner, values = fresh_values(reader, d.parts[0], name)
        return Optional(flag, inner), [flag, *values]
    if d.kind == "stored":
        types = leaf_types(d)
        assert types is not None
        arrays = tuple(Value(t, name) for t in types[:-1])
        reader.storage.update(arrays)
        length = Value(INT, f"{name}_length")
        return Stored(d.parts[0], arrays, length), [*arrays, length]
    if d.kind in ("list", "object"):
        handle: List | Object = d.detail
        return handle, []
    if d.kind == "closure":
        node, frame, names = d.detail
        parts = [fresh_values(reader, p, n) for n, p in zip(names, d.parts, strict=True)]
        defaults = dict(zip(names, (p for p, _ in parts), strict=True))
        return Closure(node, frame, defaults), [v for _, values in parts for v in values]
    if d.kind == "choice":
        number = Value(INT, "which")
        return Choice(number, d.detail), [number]
    if d.kind == "instance":
        kind, names = d.detail
        new = Object(kind, reader.defaults.get(kind, {}))
        reader.objects[new.number] = new
        made = [fresh_values(reader, p, n) for n, p in zip(names, d.parts, strict=True)]
        reader.cells.update({(new.number, n): x for n, (x, _) in zip(names, made, strict=True)})
        return new, [v for _, values in made for v in values]
    if d.kind == "owned":
        handle = List()
        reader.cells[handle], values = fresh_values(reader, d.parts[0], name)
        return handle, values
    raise InternalError(f"no fresh value of kind {d.kind}")


def leaves_of(reader: Reader, x: Abstract, d: Description) -> list[Value]:
    """The run-time values of `x`, converted to the description."""
    if d.kind == "maybe":
        inner = x.value if isinstance(x, Maybe) else x
        flag: Abstract = Static(False) if isinstance(x, Missing) else x.flag if isinstance(x, Maybe) else Static(True)
        return [as_value(reader, flag), *leaves_of(reader, inner, d.parts[0])]
    if isinstance(x, Maybe):
        x = x.value
    if d.kind == "optional":
        there = x.flag if isinstance(x, Optional) else Static(not isinstance(x, Missing | Static) or is_number(x))
        inner = x.value if isinstance(x, Optional) else x if there == Static(True) else MISSING
        return [as_value(reader, there), *leaves_of(reader, inner, d.parts[0])]
    if d.kind == "value":
        if isinstance(x, Missing):
            return [nothing_of(reader, d.detail)]
        found = as_value(reader, x)
        if is_without_axes(found.type) and found.type != d.detail:
            found = reader.load(found, ())
        reader.became_floats += is_inexact(d.detail) and found.type != d.detail and not is_float(found.type)
        return [reader.cast(found, d.detail)]
    if d.kind in ("tuple", "record", "element", "items", "closure"):
        of_closure = tuple(x.defaults.values()) if isinstance(x, Closure) else (MISSING,) * len(d.parts)
        parts = x.items if isinstance(x, Parts) else of_closure
        return [v for p, q in zip(parts, d.parts, strict=True) for v in leaves_of(reader, p, q)]
    if d.kind == "choice":
        return [option_number(reader, x, d.detail)]
    if d.kind == "instance":
        own = [MISSING if not isinstance(x, Object) else reader.cells[x.number, n] for n in d.detail[1]]
        return [v for one, part in zip(own, d.parts, strict=True) for v in leaves_of(reader, one, part)]
    if d.kind == "owned":
        return leaves_of(reader, reader.cells[x] if isinstance(x, List) else MISSING, d.parts[0])
    row = LEAVES.get(d.kind)
    return [] if row is None else row(reader, x, d)


def option_number(reader: Reader, x: Abstract, among: tuple[Abstract, ...]) -> Value:
    """The number that selects one of several functions."""
    if isinstance(x, Choice):
        places = [option_number(reader, o, among) for o in x.options]
        result = places[-1]
        for k in range(len(places) - 2, -1, -1):
            is_it = reader.apply("equal", x.number, reader.const(k))
            result = reader.apply("where", is_it, places[k], result)
        return result
    found = [k for k, option in enumerate(among) if same_function(option, x)]
    return reader.const(found[0] if found else 0)


def nothing_of(reader: Reader, type_: Type) -> Value:
    """A value that is never read, for a name that is not assigned."""
    if isinstance(type_, Array):
        out = Value(type_)
        reader.add(Alloc(out, tuple(reader.const(0) for _ in range(type_.rank)), None, span=reader.span))
        return out
    if isinstance(type_, Stack):
        stack = Value(type_)
        reader.add(NewStack(stack, span=reader.span))
        return stack
    return reader.const({"int64": 0, "bool": False}.get(type_.dtype, 0.0), type_)


def as_stored(reader: Reader, array: Value, value: Value) -> Value:
    """The conversion on a store into an array, as in NumPy. Imaginary parts are refused for real arrays."""
    if not is_inexact(array.type):
        return reader.cast(value, BOOL if array.array.dtype == "bool" else INT)
    if is_float(value.type) or (is_complex(value.type) and is_complex(array.type)):
        return value
    return reader.cast(value, FLOAT)


def write_element(reader: Reader, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
    """Store an element with NumPy's conversion."""
    reader.store(array, indices, as_stored(reader, array, value), adds)
