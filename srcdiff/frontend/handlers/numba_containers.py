"""Containers: hash tables, and the lists and dictionaries of `numba.typed`."""

from __future__ import annotations

import ast
from typing import Any

from numba import typed
from numba.core import types

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, List, Object, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.dictionaries import is_hashed
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import new_list
from srcdiff.frontend.interpreter.lists import list_extend
from srcdiff.frontend.interpreter.made_dictionaries import FROM_FIRST, made_dictionary, made_table
from srcdiff.frontend.interpreter.tables import handles, handles_kind
from srcdiff.frontend.interpreter.typed_elements import converted
from srcdiff.library import hash_tables


@handles(hash_tables.integer_key)
def integer_key(reader: Reader, node: ast.AST, key: Abstract, /) -> Abstract:
    """A key of a hash table."""
    if not is_hashed(key):
        message = f"this dictionary has keys that are known at run time only, and this key is {in_words(reader, key)}"
        reader.refuse("SD205", node, message, help_="use integers, or tuples of integers, as keys")
    return key


@handles(hash_tables.empty_like)
def empty_table(reader: Reader, node: ast.AST, table: Abstract, /) -> Abstract:
    """A new dictionary, whose values have the same type for Numba."""
    assert isinstance(table, Object)
    told = reader.cells[table.number, "told"]
    assert isinstance(told, Static)
    return made_table(reader, [], node, told.value)


@handles(hash_tables.converted)
def converted_value(reader: Reader, node: ast.AST, table: Abstract, x: Abstract, /) -> Abstract:
    """A value that is stored in a hash table, converted to the type declared to Numba."""
    assert isinstance(table, Object)
    told, contents = (reader.cells[table.number, name] for name in ("told", "contents"))
    assert isinstance(contents, List)
    assert isinstance(told, Static)
    return x if told.value is None else converted(reader, contents, told.value, x, node)


def constant_type(reader: Reader, x: Abstract, node: ast.AST) -> Any:
    """A type of Numba."""
    if not (isinstance(x, Static) and isinstance(x.value, types.Type)):
        message = f"{in_words(reader, x)} is used where a type of Numba's is needed"
        reader.refuse("SD205", node, message, help_="use a type such as `types.float64`")
    return x.value


@handles_kind(type(types.Type))
def call_type(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract | None:
    """A type of Numba that is built from constants: `types.UniTuple(types.int64, 2)`."""
    parts, named = (
        [a for a in args if isinstance(a, Static)],
        {n: a for n, a in keywords.items() if isinstance(a, Static)},
    )
    if len(parts) < len(args) or len(named) < len(keywords):
        return None
    return Static(target(*(a.value for a in parts), **{n: a.value for n, a in named.items()}))


# -- lists -----------------------------------------------------------------------------------------------------------


@handles(typed.List, consumes=True)
def typed_list(reader: Reader, node: ast.AST, of: Abstract | None = None, /) -> Abstract:
    """`typed.List()`, or a list of the elements of an iterable."""
    handle = new_list(reader, ())
    reader.typed[handle] = FROM_FIRST
    if of is not None:
        list_extend(reader, node, handle, of)
    return handle


@handles(typed.List.empty_list.__func__)
def empty_typed_list(
    reader: Reader, node: ast.AST, _: Abstract, item_type: Abstract, allocated: Abstract = Static(0)
) -> Abstract:
    """`typed.List.empty_list(types.float64)`."""
    told = constant_type(reader, item_type, node)
    handle = new_list(reader, ())
    reader.typed[handle] = told
    return handle


# -- dictionaries ----------------------------------------------------------------------------------------------------


@handles(typed.Dict)
def typed_dictionary(reader: Reader, node: ast.AST) -> Abstract:
    """`typed.Dict()`. Its first key and value determine the types."""
    reader.typed[node] = FROM_FIRST
    return made_dictionary(reader, {}, node, node, FROM_FIRST)


@handles(typed.Dict.empty.__func__)
def empty_typed_dictionary(
    reader: Reader, node: ast.AST, _: Abstract, key_type: Abstract, value_type: Abstract, n_keys: Abstract = Static(0)
) -> Abstract:
    """`typed.Dict.empty(types.int64, types.float64)`."""
    kind, told = (constant_type(reader, x, node) for x in (key_type, value_type))
    parts: tuple[Any, ...] = tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)  # type: ignore[arg-type]
    if all(isinstance(part, types.Integer) for part in parts):
        return made_table(reader, [], node, told)
    if kind != types.unicode_type:
        message = f"a dictionary of Numba's with keys of the type {kind} is not supported"
        reader.refuse("SD102", node, message, help_="use integers, tuples of integers, or strings")
    reader.typed[node] = told
    return made_dictionary(reader, {}, node, node)
