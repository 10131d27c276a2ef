"""Subscripts: elements, slices and views."""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types

from srcdiff.diagnostics.naming_objects import instead_of, is_plain
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Choice,
    Element,
    Items,
    Lazy,
    List,
    Object,
    Own,
    Record,
    Static,
    Stored,
    Structured,
    Tuple,
    class_of,
    is_array_value,
    is_chosen_text,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.lattice import are_objects, describe, loosened, options, same_function
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.choices import for_the_chosen
from srcdiff.frontend.interpreter.dictionaries import (
    is_changing,
    is_hashed,
    is_there,
    read_item,
    require_constant,
    write_item,
)
from srcdiff.frontend.interpreter.evaluation import as_array, call_value, constant_value, evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.foreseen import before_index, foresees
from srcdiff.frontend.interpreter.forks import branch_on
from srcdiff.frontend.interpreter.index_arrays import picks, read_picked
from srcdiff.frontend.interpreter.instances import in_class
from srcdiff.frontend.interpreter.iteration import evaluate_elements
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_elements import element_at, list_position, read_list
from srcdiff.frontend.interpreter.list_storage import common_element, contents_of_list, new_list, store_items
from srcdiff.frontend.interpreter.materialization import Places, forced
from srcdiff.frontend.interpreter.numbers import as_integer
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import SUBSCRIPTS, expression
from srcdiff.ir.nodes import Index, Item, NewAxis, Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array
from srcdiff.library import building, joining

_INDEX_TRICKS = (np.r_, np.c_, np.mgrid, np.ogrid)


_TRICKS: dict[type, Any] = {
    type(np.r_): joining.rows_joined,
    type(np.c_): joining.columns_joined,
    type(np.mgrid): building.dense_grid,
    type(np.ogrid): building.open_grid,
}


@expression(ast.Subscript)
def subscript_expression(reader: Reader, node: ast.Subscript) -> Abstract:
    base = evaluate_lazily(reader, node.value)
    return subscript(reader, base, node.slice, node)


def subscript(reader: Reader, base: Abstract, where: ast.expr, node: ast.AST) -> Abstract:
    if is_changing(base):
        key, owner = evaluate(reader, where), base
        return by_key(reader, key, lambda known: read_or_make(reader, owner, known, node), node)
    base = needed(reader, base, node)
    if isinstance(base, Lazy):
        parts = where.elts if isinstance(where, ast.Tuple) else [where]
        if reader.frame.library and not any(isinstance(p, ast.Slice | ast.Starred) for p in parts):
            place = evaluate_lazily(reader, where)
            places = place.items if isinstance(place, Tuple) else (place,)
            if len(places) == base.rank and all(counts_from_start(p) for p in places):
                return base.at(tuple(as_integer(reader, p, node) for p in places))
        base = forced(reader, base)
    match base:
        case Value(type=Array()):
            items = array_items(reader, base, where, node)
            if all(isinstance(i, Index) for i in items) and len(items) == base.array.rank:
                parts = where.elts if isinstance(where, ast.Tuple) else [where]
                if any(isinstance(p, ast.Constant) and p.value is ... for p in parts):
                    return view_of_element(reader, base, tuple(i.value for i in items if isinstance(i, Index)))
                return reader.load(base, tuple(i.value for i in items if isinstance(i, Index)))
            basic = [i for i in items if isinstance(i, Slice | Index | NewAxis)]
            if len(basic) < len(items):
                return read_picked(reader, base, items, node)
            return reader.view(base, tuple(basic))
        case Tuple():
            return tuple_item(reader, base, where, node)
        case Structured() | Element():
            return SUBSCRIPTS[type(base)](reader, base, where, node)
        case Record() if base.kind.is_mapping:
            key = evaluate(reader, where)
            if base.site is None and isinstance(key, Value) and is_hashed(key):
                return item_by_number(reader, base, key, node)
            return by_key(reader, key, lambda known: item_of(reader, base, known, where, node), node)
        case List():
            return SUBSCRIPTS[List](reader, base, where, node)
        case Object() | Record():
            if is_instance(base) and in_class(class_of(base), "__getitem__") is not MISSING:
                return SUBSCRIPTS[type(base)](reader, base, where, node)
        case Static(value=types.Type() as kind):
            parts = where.elts if isinstance(where, ast.Tuple) else [where]
            if all(isinstance(p, ast.Slice) for p in parts):
                return Static(types.Array(kind, len(parts), "A"))
        case Static(value=str()) if isinstance(where, ast.Slice):
            return Static(base.value[constant_slice(reader, where)])
        case Static(value=str()):
            position = evaluate(reader, where)
            if isinstance(position, Static):
                return Static(base.value[position.value])
        case Static(value=enum.EnumType() as kind):
            name = evaluate(reader, where)
            if isinstance(name, Static) and name.value in kind.__members__:
                return Static(kind.__members__[name.value])
            reader.refuse("SD203", node, f"`{kind.__name__}` has no member {ast.unparse(where)}")
        case Static() if any(base.value is trick for trick in _INDEX_TRICKS):
            return index_trick(reader, base.value, where, node)
    is_object = isinstance(base, Static) and not is_plain(base.value)
    help_ = instead_of(type(base.value)) if is_object and isinstance(base, Static) else ""
    reader.refuse("SD203", node, f"{in_words(reader, base)} cannot be indexed", help_=help_)


def read_or_make(reader: Reader, owner: Object, key: Abstract, node: ast.AST) -> Abstract:
    """The value of a key. A `defaultdict` makes it if the key is missing."""
    factory = reader.factories.get(owner.number)
    there = Static(True) if factory is None else is_there(reader, owner, key, node)
    if factory is None or there == Static(True):
        return read_item(reader, owner, key, node)

    def make() -> None:
        write_item(reader, owner, key, call_value(reader, factory, [], node), node)

    if isinstance(there, Static):
        make()
    else:
        branch_on(reader, as_value(reader, there), lambda: None, make)
    return read_item(reader, owner, key, node)


def by_key(reader: Reader, key: Abstract, read: Callable[[Abstract], Abstract], node: ast.AST) -> Abstract:
    """What a dictionary has under a key, which may be one of several strings."""
    return for_the_chosen(reader, key, read, node) if is_chosen_text(key) else read(key)


def item_of(reader: Reader, base: Record, key: Abstract, where: ast.expr, node: ast.AST) -> Abstract:
    """The value of a key in a dictionary that is not changed."""
    place = key_position(reader, base, key, node)
    if place is None:
        has = f"it has {', '.join(map(repr, base.kind.names))}" if base.kind.names else "it is empty"
        message = f"the dictionary has no key {ast.unparse(where)}; {has}"
        if foresees(reader, KeyError):
            reader.raise_always(KeyError, ast.unparse(where))
        reader.refuse("SD203", node, message, help_="define all keys where the dictionary is created")
    return base.items[place]


def index_of_instance(reader: Reader, target: ast.Subscript) -> Abstract:
    """The index in `a[i]` of an instance."""
    if isinstance(target.slice, ast.Slice):
        reader.refuse("SD102", target, "a slice of an instance is not supported", help_="index it with numbers")
    return evaluate(reader, target.slice)


def item_by_number(reader: Reader, owner: Record, key: Value, node: ast.AST) -> Abstract:
    """The value of an integer key known at run time, in a dictionary from outside: its keys are compared."""
    place: Value = reader.const(-1)
    for k, name in enumerate(owner.kind.names):
        if type(name) is int:
            place = reader.apply("where", reader.apply("equal", key, reader.const(name)), reader.const(k), place)
    reader.raise_if(reader.apply("less", place, reader.const(0)), KeyError, "the key is not in the dictionary")
    return read_position(reader, new_list(reader, owner.items), place, node)


def key_position(reader: Reader, owner: Record, key: Abstract, node: ast.AST) -> int | None:
    """The position of a key in a dictionary, if it exists."""
    require_constant(reader, owner, key, node)
    assert isinstance(key, Static)
    return owner.kind.names.index(key.value) if key.value in owner.kind.names else None


def counts_from_start(place: Abstract) -> bool:
    """Whether it is an index of the library, which counts from the start. Only constants may be negative."""
    if isinstance(place, Static):
        return isinstance(place.value, int) and place.value >= 0
    return isinstance(place, Value) and place.type == INT


def tuple_item(reader: Reader, base: Tuple, where: ast.expr, node: ast.AST) -> Abstract:
    if isinstance(where, ast.Slice):
        return Tuple(base.items[constant_slice(reader, where)])
    position = evaluate(reader, where)
    if isinstance(position, Static) and isinstance(position.value, int):
        if not -len(base.items) <= position.value < len(base.items):
            if foresees(reader, IndexError):
                reader.raise_always(IndexError, "tuple index out of range")
            message = f"index {position.value} is out of range for a tuple of {len(base.items)} elements"
            reader.refuse("SD203", node, message)
        return base.items[position.value]
    chosen = chosen_item(reader, base.items, as_integer(reader, position, node), "tuple index out of range")
    if chosen is not None:
        return chosen
    contents = stored_copy(reader, base, node)
    return element_at(reader, contents, list_position(reader, contents, as_integer(reader, position, node)))


def constant_slice(reader: Reader, where: ast.Slice) -> slice:
    """A slice that is known at compile time."""
    return slice(*(None if p is None else constant_value(reader, p) for p in (where.lower, where.upper, where.step)))


def stored_copy(reader: Reader, base: Tuple, node: ast.AST) -> Stored:
    """A tuple of values of one type, as an array with an index at run time. Integers among floats become floats."""
    kinds = {loosened(describe(i)) for i in base.items}
    if all(kind.kind == "value" and kind.detail in (INT, FLOAT) for kind in kinds):
        return store_items(reader, Items(base.items), common_element(reader, Items(base.items)))
    if len(kinds) != 1:
        message = "the index of a tuple with elements of different types must be known at compile time"
        reader.refuse("SD205", node, message, help_="write a literal, or give all elements the same number type")
    return store_items(reader, Items(base.items), kinds.pop())


def read_position(reader: Reader, base: List, position: Abstract, node: ast.AST) -> Abstract:
    contents = contents_of_list(reader, base)
    if isinstance(contents, Items) and isinstance(position, Static):
        if not -len(contents.items) <= position.value < len(contents.items):
            reader.raise_always(IndexError, "list index out of range")
        item: Abstract = contents.items[position.value]
        return item
    number = as_integer(reader, position, node)
    if isinstance(contents, Items):
        chosen = chosen_item(reader, contents.items, number, "list index out of range")
        if chosen is not None:
            return chosen
    return read_list(reader, base, number)


def chosen_item(reader: Reader, items: tuple[Abstract, ...], position: Value, out_of_range: str) -> Abstract | None:
    """One of several objects or functions, by a position that is known at run time. None for other elements."""
    records = [item for item in items if isinstance(item, Record) and is_instance(item)]
    if records and len({loosened(describe(item)) for item in items}) > 1:
        raise IsWritten(class_of(records[0]))  # they cannot be stored in arrays, but objects can be chosen
    found = [options(describe(item)) for item in items]
    if not items or any(len(each) != 1 for each in found) or len({are_objects(each) for each in found}) > 1:
        return None
    count = reader.const(len(items))
    is_negative = reader.apply("less", position, reader.const(0))
    position = reader.apply("where", is_negative, reader.apply("add", position, count), position)
    is_out = reader.apply("less", position, reader.const(0))
    is_out = reader.apply("logical_or", is_out, reader.apply("greater_equal", position, count))
    reader.raise_if(is_out, IndexError, out_of_range)
    each = [one for (one,) in found]
    distinct = [one for k, one in enumerate(each) if not any(same_function(one, other) for other in each[:k])]
    number = position
    if len(distinct) < len(each):
        number = reader.const(0)
        for k, one in enumerate(each):
            place = next(j for j, other in enumerate(distinct) if same_function(one, other))
            is_it = reader.apply("equal", position, reader.const(k))
            number = reader.apply("where", is_it, reader.const(place), number)
    return Choice(number, tuple(distinct))


def array_items(reader: Reader, array: Value, where: ast.expr, node: ast.AST) -> list[Abstract | Item]:
    """The parts of a subscript: an index, a range, or an index array for each axis."""
    parts = where.elts if isinstance(where, ast.Tuple) else [where]
    found: list[Abstract | ast.Slice] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            found.append(part)
            continue
        for one in evaluate_elements(reader, [part], functools.partial(evaluate_lazily, reader)):
            found += one.items if isinstance(one, Tuple) and part is where else (one,)
    return items_of(reader, array, found, node)


def items_of(
    reader: Reader, array: Value, found: Sequence[Abstract | ast.Slice], node: ast.AST
) -> list[Abstract | Item]:
    found = [as_array(reader, i, node) if isinstance(i, Tuple) else i for i in found]
    axes = sum(axes_of(i) for i in found)
    if axes > array.array.rank:
        reader.refuse("SD203", node, f"{axes} indices are given for an array with {array.array.rank} axes")
    items: list[Abstract | Item] = []
    for item in found:
        if isinstance(item, ast.Slice):
            items.append(Slice(*(slice_part(reader, p, node) for p in (item.lower, item.upper, item.step))))
        elif is_none(item):
            items.append(NewAxis())
        elif isinstance(item, Static) and item.value is ...:
            items += [Slice(None, None, None)] * (array.array.rank - axes)
        elif isinstance(item, Slice) or picks(item):
            if not isinstance(item, Slice) and foresees(reader, IndexError):
                message = "this `try` catches an `IndexError`, which an array of indices may raise"
                reader.refuse("SD101", node, message, help_="test the indices with `if`")
            items.append(item)
        elif (isinstance(item, Value) and item.type == BOOL) or (
            isinstance(item, Static) and isinstance(item.value, bool)
        ):
            reader.refuse("SD203", node, "a boolean is used where an index is needed")
        else:
            position = as_integer(reader, item, node)
            if reader.context.handlers:
                before_index(reader, array, axis_reached(items), position)
            items.append(Index(position))
    while items and isinstance(items[-1], Slice) and not items[-1].parts():
        items.pop()
    return items if items or array.array.rank == 0 else [Slice(None, None, None)]


def axis_reached(items: Sequence[Abstract | Item]) -> int:
    """The axis of the next part of a subscript."""
    return sum(0 if isinstance(i, NewAxis) else 1 if isinstance(i, Slice | Index) else axes_of(i) for i in items)


def axes_of(item: Abstract | ast.Slice) -> int:
    """The number of axes that a part of a subscript consumes."""
    if isinstance(item, Static) and (item.value is None or item.value is ...):
        return 0
    is_mask = isinstance(item, Lazy) and item.dtype == "bool"
    if is_array_value(item) and item.array.dtype == "bool":
        return item.array.rank
    return item.rank if is_mask and isinstance(item, Lazy) else 1


def slice_part(reader: Reader, part: ast.expr | None, node: ast.AST) -> Value | None:
    if part is None:
        return None
    found = evaluate(reader, part)
    if is_none(found):
        return None
    return as_integer(reader, found, node)


def view_of_element(reader: Reader, array: Value, place: Places) -> Value:
    """A view without axes of an element of an array."""
    return reader.view(array, tuple(map(Index, place))) if place else array


def index_trick(reader: Reader, trick: Any, where: ast.expr, node: ast.AST) -> Abstract:
    """`np.r_[...]`, `np.c_[...]`, `np.mgrid[...]` and `np.ogrid[...]`: arrays, numbers and ranges."""
    parts = where.elts if isinstance(where, ast.Tuple) else [where]
    found = [range_in(reader, p, node) if isinstance(p, ast.Slice) else evaluate_lazily(reader, p) for p in parts]
    text = any(isinstance(x, Static) and isinstance(x.value, str) for x in found)
    if text or (trick in (np.mgrid, np.ogrid) and not all(isinstance(p, ast.Slice) for p in parts)):
        reader.refuse("SD203", node, "`np.r_`, `np.c_`, `np.mgrid` and `np.ogrid` take arrays, numbers and slices only")
    return call_value(reader, Own(_TRICKS[type(trick)]), found, node)


def range_in(reader: Reader, part: ast.Slice, node: ast.AST) -> Abstract:
    """`start:stop:step`. An imaginary step is a number of points, including the end."""
    start = Static(0) if part.lower is None else evaluate(reader, part.lower)
    if part.upper is None:
        reader.refuse("SD203", node, "a slice needs an end here: `start:stop`")
    stop = evaluate(reader, part.upper)
    if isinstance(part.step, ast.Constant) and isinstance(part.step.value, complex):
        return call_value(reader, Own(np.linspace), [start, stop, Static(int(abs(part.step.value)))], node)
    step = Static(1) if part.step is None else evaluate(reader, part.step)
    return call_value(reader, Own(np.arange), [start, stop, step], node)
