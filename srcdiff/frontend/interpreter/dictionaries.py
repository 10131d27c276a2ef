"""Dictionaries with constant keys: immutable values if nothing changes them, otherwise objects with identity.

As with instances (instances.py), the program is read again if a dictionary is changed. Then the dictionaries created at
that place are objects, and each key is a variable in the object's scope.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

from numba.core import types

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Maybe,
    Namespace,
    Object,
    Poison,
    Record,
    Static,
    Tuple,
    View,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Cells, IsWritten
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.structures import is_key, mapping_layout

DictionaryKey = str | int | enum.Enum

CHANGED = "this dictionary may be either of two, or is from outside and has integers as keys, and cannot be changed"
INSTEAD = "make a new dictionary, `{**old, key: value}`, or pass it in as an argument"


def is_changing(x: Abstract) -> TypeGuard[Object]:
    """Whether it is a dictionary that some statement changes."""
    return isinstance(x, Object) and issubclass(x.kind, dict)


def is_dictionary(x: Abstract) -> bool:
    return is_changing(x) or (isinstance(x, Record) and x.kind.is_mapping)


@dataclass(frozen=True, slots=True)
class KeysAtRunTime:
    """The keys of dictionaries created at this place are known at run time, so hash tables are created there."""

    site: Any


def cell_of(reader: Reader, x: Object, key: DictionaryKey) -> tuple[int, str]:
    """The variable that holds the value of a key."""
    for cell, known in reader.dictionary_keys.items():
        if cell[0] == x.number and type(known) is type(key) and known == key:
            return cell
    name = key if isinstance(key, str) and key.isidentifier() else re.sub(r"\W+", "_", f"key_{key}")
    while (x.number, name) in reader.dictionary_keys:
        name += "_"
    reader.dictionary_keys[x.number, name] = key
    return x.number, name


def items_now(reader: Reader, x: Object) -> dict[DictionaryKey, Abstract]:
    """The value of each key, in insertion order. Some keys may exist on some paths only."""
    require_in_reach(reader, x)
    own = {k: value for k, value in reader.cells.items() if isinstance(k, tuple) and k[0] == x.number}
    return {reader.dictionary_keys[k]: value for k, value in own.items()}


def as_mapping(reader: Reader, x: Object) -> Record:
    """The current contents of a dictionary, as an immutable value."""
    if x.number in reader.unordered:
        message = "the keys of the dictionary are in another order on some path"
        reader.refuse("SD202", None, message, help_="give the dictionary all its keys where it is made")
    found = items_now(reader, x)
    for key, value in found.items():
        if isinstance(value, Maybe):
            message = f"the key {key!r} is in the dictionary on some paths only"
            reader.refuse("SD202", None, message, help_="give the dictionary all its keys where it is made")
    return Record(tuple(found.values()), mapping_layout(dict, found))


def note_orders(reader: Reader, first: Cells, second: Cells) -> None:
    """Record the dictionaries whose keys are in different orders at the ends of two paths that meet."""
    keys = reader.dictionary_keys
    one, other = ([k for k in a if k in keys and k in b] for a, b in ((first, second), (second, first)))
    if one != other:
        numbers = {number for number, _ in keys}
        reader.unordered |= {n for n in numbers if [k for k in one if k[0] == n] != [k for k in other if k[0] == n]}


def in_order(reader: Reader, cells: Cells, first: Cells, second: Cells) -> Cells:
    """The cells where two paths meet, with the keys of dictionaries in their order on the paths."""
    if not reader.dictionary_keys:
        return cells
    note_orders(reader, first, second)
    order = [k for k in {**first, **second} if k in reader.dictionary_keys and k in cells]
    of_dictionaries: Cells = {k: cells[k] for k in order}
    return {**{k: x for k, x in cells.items() if k not in of_dictionaries}, **of_dictionaries}


def view_of(reader: Reader, x: Abstract, way: str) -> Tuple:
    """The keys, values or items of a dictionary."""
    record = as_mapping(reader, x) if is_changing(x) else as_now(reader, x)
    assert isinstance(record, Record)
    keys: tuple[Abstract, ...] = tuple(map(Static, record.kind.names))
    pairs = tuple(Tuple(pair) for pair in zip(keys, record.items, strict=True))
    items = {"keys": keys, "values": record.items, "items": pairs}[way]
    return View(items, of=x, way=way) if isinstance(x, Object | Namespace) else Tuple(items)


def as_now(reader: Reader, x: Abstract) -> Abstract:
    """A view of a dictionary, or of attributes, with the current contents. Other values are unchanged."""
    if isinstance(x, Namespace) and x.of is not None:
        return namespace_of(reader, x.of)
    return view_of(reader, x.of, x.way) if isinstance(x, View) and x.of is not None else x


def namespace_of(reader: Reader, x: Record | Object) -> Namespace:
    """`x.__dict__` of an instance, with the current contents."""
    if isinstance(x, Record):
        if x.kind.extra:
            message = f"this instance of `{x.kind.kind.__name__}` has attributes that are not fields"
            reader.refuse("SD203", None, message, help_="read its attributes by their names")
        return Namespace(x.items, mapping_layout(dict, map(str, x.kind.names)), of=x)
    require_in_reach(reader, x)
    found = {k[1]: value for k, value in reader.cells.items() if isinstance(k, tuple) and k[0] == x.number}
    for name, value in found.items():
        if isinstance(value, Maybe):
            message = f"the attribute `{name}` exists on some paths only"
            reader.refuse("SD202", None, message, help_=f"assign `{name}` in `__init__`")
    return Namespace(tuple(found.values()), mapping_layout(dict, found), of=x)


def write_own(reader: Reader, x: Record | Object | None, key: Abstract, value: Abstract, node: ast.AST) -> None:
    """`x.__dict__[key] = value`."""
    if not (isinstance(key, Static) and isinstance(key.value, str)):
        reader.refuse("SD205", node, "the name of the attribute must be known at compile time")
    if not isinstance(x, Object):
        assert isinstance(x, Record)
        raise IsWritten(x.kind.kind)
    require_in_reach(reader, x)
    reader.cells[x.number, str.__str__(key.value)] = value


def require_in_reach(reader: Reader, x: Object) -> None:
    """Refuse an object from outside of a recursive function that is not given its attributes."""
    reader.used_objects.add(x.number)
    unit = reader.context.unit_frame
    if unit is not None and x.number < unit.number and x.number not in reader.context.unit_objects:
        what = "a dictionary that is changed" if is_changing(x) else f"an instance of `{x.kind.__name__}`"
        what = "a class" if issubclass(x.kind, type) else what
        message = f"a recursive function uses {what}" + ("" if is_changing(x) else " whose attributes are assigned")
        reader.refuse("SD305", None, message, help_="pass the values that it needs, and return what it changes")


def is_hashed(key: Abstract) -> bool:
    """Whether it can be a key of a hash table: an integer, or a tuple of integers."""
    if isinstance(key, Tuple):
        return all(map(is_hashed, key.items))
    return (isinstance(key, Value) and key.type == INT) or (isinstance(key, Static) and type(key.value) is int)


def require_constant(reader: Reader, x: Record | Object, key: Abstract, node: ast.AST) -> None:
    """Refuse a key that is only known at run time, or read the program again with a hash table."""
    if isinstance(key, Static) and is_key(key.value):
        return
    others = x.kind.names if isinstance(x, Record) else items_now(reader, x)
    if is_hashed(key) and x.site is not None and all(type(other) is int for other in others):
        raise IsWritten(KeysAtRunTime(x.site))
    reader.refuse("SD205", node, NOT_CONSTANT, help_="at run time, keys may be integers, or tuples of integers")


NOT_CONSTANT = "the key of this dictionary must be known at compile time"


def constant_key(reader: Reader, x: Record | Object, key: Abstract, node: ast.AST) -> DictionaryKey:
    require_constant(reader, x, key, node)
    assert isinstance(key, Static)
    known: DictionaryKey = key.value
    return known


def read_item(reader: Reader, x: Object, key: Abstract, node: ast.AST) -> Abstract:
    """The value of a key. A missing key raises as in Python."""
    known = constant_key(reader, x, key, node)
    found = items_now(reader, x).get(known, MISSING)
    if found is MISSING:
        reader.raise_always(KeyError, repr(known))
    if isinstance(found, Poison):
        reader.refuse_poison(found)
    if isinstance(found, Maybe):
        if not isinstance(found.flag, Static):
            reader.raise_if(reader.apply("logical_not", found.flag), KeyError, repr(known))  # type: ignore[arg-type]
        return found.value
    return found


def is_there(reader: Reader, x: Object, key: Abstract, node: ast.AST) -> Abstract:
    """Whether a key is in the dictionary."""
    found = items_now(reader, x).get(constant_key(reader, x, key, node), MISSING)
    return found.flag if isinstance(found, Maybe) else Static(found is not MISSING)


def changed(reader: Reader, x: Abstract, node: ast.AST) -> Object:
    """A dictionary that is about to be changed. If it is an immutable value so far, the program is read again."""
    if is_changing(x):
        require_in_reach(reader, x)
        return x
    assert isinstance(x, Record)
    if isinstance(x, Namespace):
        reader.refuse("SD102", node, "attributes cannot be removed from `__dict__`", help_="assign `None` instead")
    if x.is_outside and dict not in reader.stateful:
        raise IsWritten(dict)
    if x.site is None:
        reader.refuse("SD102", node, CHANGED, help_=INSTEAD)
    raise IsWritten(x.site)


def write_item(reader: Reader, x: Abstract, key: Abstract, value: Abstract, node: ast.AST) -> None:
    assert isinstance(x, Record | Object)
    if isinstance(x, Namespace):
        write_own(reader, x.of, key, value, node)
        return
    if isinstance(x, Record) and x.site is None:
        changed(reader, x, node)
    known = constant_key(reader, x, key, node)
    owner = changed(reader, x, node)
    if isinstance(reader.typed.get(x.site), types.Integer) and not is_hashed(value):
        message = "this stores another type in a dictionary of integers, and Numba would convert the value"
        reader.refuse("SD203", node, message, help_="convert it: `int(...)`")
    reader.cells[cell_of(reader, owner, known)] = value


def remove_item(reader: Reader, x: Abstract, key: Abstract, node: ast.AST) -> Abstract:
    """Remove a key and return its value."""
    assert isinstance(x, Record | Object)
    known = constant_key(reader, x, key, node)
    owner = changed(reader, x, node)
    found = read_item(reader, owner, key, node)
    del reader.cells[cell_of(reader, owner, known)]
    return found


def constant_set(reader: Reader, items: Iterable[Abstract], node: ast.AST) -> Abstract:
    """A set of constants. It supports membership tests, but no operation that depends on an order."""
    values = [x.value if isinstance(x, Static) else MISSING for x in items]
    if not all(isinstance(v, bool | int | float | str | enum.Enum) for v in values):
        message = "a set may contain constant numbers, strings and enum members only"
        reader.refuse("SD102", node, message, help_="use a list or a tuple")
    return Static(frozenset(values))
