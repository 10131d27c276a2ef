"""Copies of values: `copy.copy`, `copy.deepcopy`, and the fields of dataclasses as dictionaries and tuples."""

from __future__ import annotations

import ast
import copy
import dataclasses
import enum
import types
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Element,
    Items,
    List,
    Maybe,
    Object,
    Optional,
    Record,
    Static,
    Structured,
    Tuple,
    class_of,
    is_instance,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.dictionaries import as_mapping, is_changing
from srcdiff.frontend.interpreter.instances import attributes_now, in_class, new_object, read_attribute
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list, new_list
from srcdiff.frontend.interpreter.lists import list_copy
from srcdiff.frontend.interpreter.made_dictionaries import is_table, made_dictionary
from srcdiff.frontend.interpreter.outside import look_at_class
from srcdiff.frontend.interpreter.structured_arrays import records_copy
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.signature.attrs_classes import is_written_by_attrs

Memo = dict[Abstract, Abstract]
"""The copies made so far, by their originals: what is shared stays shared, and objects may refer to themselves."""


@handles(copy.copy)
def call_copy(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return _copied(reader, node, x, {}, lambda part: part)


@handles(copy.deepcopy)
def call_deepcopy(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    memo: Memo = {}

    def deep(part: Abstract) -> Abstract:
        if not isinstance(part, List | Object | Value):
            return _copied(reader, node, part, memo, deep)
        if part not in memo:
            memo[part] = _copied(reader, node, part, memo, deep)
        return memo[part]

    return deep(x)


def _copied(reader: Reader, node: ast.AST, x: Abstract, memo: Memo, part: Callable[[Abstract], Abstract]) -> Abstract:
    """A copy whose parts are `part` of the parts of the original."""
    match x:
        case Value(type=Array()):
            return reader.copy(x)
        case Structured() | Element():
            return records_copy(reader, node, x)
        case Optional() | Maybe():
            return dataclasses.replace(x, value=part(x.value))
        case Choice():
            reader.refuse("SD205", node, f"{in_words(reader, x)} is copied, which is not supported")
        case List():
            contents = contents_of_list(reader, x)
            if isinstance(contents, Items):
                new = new_list(reader, ())
                memo[x] = new
                reader.cells[new] = Items(tuple(map(part, contents.items)))
                return new
            return list_copy(reader, node, x)
        case Tuple():
            return x.remade(map(part, x.items))
        case Object() if is_table(x):
            message = "a dictionary whose keys are known at run time is copied by `copy`, which is not supported"
            reader.refuse("SD102", node, message, help_="use the method `copy` of the dictionary")
        case Object() if x.number in reader.factories:
            reader.refuse("SD102", node, "a copy of a `defaultdict` is not supported", help_="copy it with `dict(...)`")
        case Record() | Object() if not is_instance(x):
            whole = as_mapping(reader, x) if is_changing(x) else x
            assert isinstance(whole, Record)
            return made_dictionary(reader, dict(zip(whole.kind.names, map(part, whole.items), strict=True)), node, node)
        case Record() | Object():
            return _copied_instance(reader, node, x, memo, part)
    return x


def _is_written_for(function: Any) -> bool:
    """Whether `attrs` or `dataclasses` wrote a method of a class with slots."""
    return is_written_by_attrs(function) or function.__module__ == "dataclasses"


def _copied_instance(
    reader: Reader, node: ast.AST, x: Record | Object, memo: Memo, part: Callable[[Abstract], Abstract]
) -> Abstract:
    kind = class_of(x)
    for name in ("__copy__", "__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__"):
        own = in_class(kind, name)
        if own is not in_class(object, name) and isinstance(own, types.FunctionType) and not _is_written_for(own):
            message = f"`{kind.__name__}` defines `{name}`, which `copy` calls; that is not supported"
            reader.refuse("SD102", node, message, help_="call the method that makes the copy")
    look_at_class(reader, kind)
    if isinstance(x, Record):
        return x.remade(map(part, x.items))  # if its identity matters, the program is read again with objects
    new = new_object(reader, kind, {}, node)
    memo[x] = new
    reader.cells.update({(new.number, name): part(value) for name, value in attributes_now(reader, x).items()})
    return new


@handles(dataclasses.fields)
def call_fields(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    """The fields, of which the program may read the names."""
    kind = x.value if isinstance(x, Static) and isinstance(x.value, type) else _dataclass_of(reader, x, node)
    look_at_class(reader, kind)
    return Tuple(tuple(map(Static, dataclasses.fields(kind))))


@handles(dataclasses.is_dataclass)
def call_is_dataclass(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return Static(dataclasses.is_dataclass(class_of(x) if is_instance(x) else getattr(x, "value", None)))


@handles(dataclasses.asdict)
def call_asdict(reader: Reader, node: ast.AST, x: Abstract, /) -> Abstract:
    _dataclass_of(reader, x, node)
    return _taken_apart(reader, x, node, lambda found: made_dictionary(reader, found, node, node))


@handles(dataclasses.astuple)
def call_astuple(reader: Reader, node: ast.AST, x: Abstract, /) -> Abstract:
    _dataclass_of(reader, x, node)
    return _taken_apart(reader, x, node, lambda found: Tuple(tuple(found.values())))


def _dataclass_of(reader: Reader, x: Abstract, node: ast.AST) -> type:
    if not (is_instance(x) and dataclasses.is_dataclass(class_of(x))):
        reader.refuse("SD203", node, f"{in_words(reader, x)} is used where an instance of a dataclass is needed")
    return class_of(x)


def _taken_apart(
    reader: Reader, x: Abstract, node: ast.AST, made: Callable[[dict[str | int | enum.Enum, Abstract]], Abstract]
) -> Abstract:
    """Instances of dataclasses are `made` into something else, also in tuples and lists; the rest is copied."""

    def part(x: Abstract) -> Abstract:
        return _taken_apart(reader, x, node, made)

    if is_instance(x) and dataclasses.is_dataclass(class_of(x)):
        names = [f.name for f in dataclasses.fields(class_of(x))]
        return made({n: part(read_attribute(reader, x, n, node)) for n in names})
    if is_instance(x):
        return call_deepcopy(reader, node, x)
    return _copied(reader, node, x, {}, part)
