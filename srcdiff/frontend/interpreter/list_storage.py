"""The contents of lists: known element by element, or stored in arrays at run time."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Group, Items, List, Poison, Record, Slot, Stored, Tuple
from srcdiff.frontend.domain.lattice import (
    NOTHING,
    POISON,
    describe,
    handles,
    is_of_numbers,
    join,
    list_of,
    loosened,
    part_of,
    stored_types,
    with_part,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Cells
from srcdiff.frontend.interpreter.representation import leaves_of, nothing_of, write_element
from srcdiff.frontend.interpreter.tables import leaves
from srcdiff.ir.nodes import Block, Grow, Loop, Push, Value
from srcdiff.ir.types import INT, Array, Stack, element_type
from srcdiff.signature.descriptions import Description
from srcdiff.signature.trees import NODES

SAME_ELEMENTS = "give all elements the same type (numbers, tuples of numbers, or lists of these), or use an array"


_FIRST_CAPACITY = 4  # initial capacity of the storage of a list


def new_list(reader: Reader, contents: tuple[Abstract, ...] | Stored) -> List:
    handle = List()
    reader.cells[handle] = contents if isinstance(contents, Stored) else Items(contents)
    return handle


def contents_of_list(reader: Reader, handle: List) -> Abstract:
    """The current contents of a list."""
    found = reader.cells[handle]
    if isinstance(found, Poison):
        raise Refusal(found.problem)
    if not isinstance(found, Slot):
        return found
    if found.outer not in reader.cells:
        raise Refusal(element_gone(reader))
    outer, arrays = row_of(reader, found)
    at = (*outer.at, found.position)
    return Stored(row_element(found, outer), arrays[:-1], reader.load(arrays[-1], at), at)


def row_of(reader: Reader, slot: Slot) -> tuple[Stored, tuple[Value, ...]]:
    """The list that contains this list as a row, and which of its arrays hold the rows."""
    outer = contents_of_list(reader, slot.outer)
    assert isinstance(outer, Stored)
    part, first = part_of(outer.element, slot.path)
    return outer, outer.arrays[first : first + len(stored_types(part) or ())]


def row_element(slot: Slot, outer: Stored) -> Description:
    return part_of(outer.element, slot.path)[0].parts[0]


def set_contents(reader: Reader, handle: List, contents: Items | Stored) -> None:
    """Replace the contents of a list."""
    slot = reader.cells.get(handle)
    if not isinstance(slot, Slot):
        reader.cells[handle] = contents
        return
    assert isinstance(contents, Stored)
    outer, arrays = row_of(reader, slot)
    reader.store(arrays[-1], contents.at, contents.length)
    first = outer.arrays.index(arrays[0])
    behind = outer.arrays[first + len(arrays) - 1 :]
    set_contents(reader, slot.outer, replace(outer, arrays=(*outer.arrays[:first], *contents.arrays, *behind)))


def set_items(reader: Reader, handle: List, items: Iterable[Abstract], node: ast.AST) -> None:
    """Replace the elements of a list, which may include lists that it did not contain before."""
    contents = Items(tuple(items))
    inside = handles(contents)
    todo = list(inside)
    while todo:
        found = reader.cells.get(todo.pop())
        more = set() if found is None else handles(found) - inside
        inside |= more
        todo += more
    if handle in inside:
        reader.refuse("SD206", node, "the list is inserted into itself", help_="insert a copy: `list(...)`")
    reader.cells[handle] = contents


def stored_contents(reader: Reader, handle: List) -> Stored:
    """The contents of a list as arrays."""
    contents = contents_of_list(reader, handle)
    if isinstance(contents, Items):
        if not contents.items:
            reader.raise_always(IndexError, "list index out of range")
        contents = store_items(reader, contents, common_element(reader, contents), handle)
        reader.cells[handle] = contents
    assert isinstance(contents, Stored)
    return contents


def flat_contents(reader: Reader, handle: List) -> Stored:
    """The contents as arrays of the list's own. An element of a list of lists is copied."""
    contents = stored_contents(reader, handle)
    return copied_row(reader, contents) if contents.at else contents


def common_element(reader: Reader, contents: Items) -> Description:
    """The common description of all elements."""
    element = described_element(reader, contents.items[0], reader.cells)
    for item in contents.items[1:]:
        element = join(element, described_element(reader, item, reader.cells))
    return element


def described_element(reader: Reader, x: Abstract, names: Cells) -> Description:
    """The description of an element. Lists in it are described by their contents."""
    match x:
        case List():
            return contents_described(reader, names.get(x), names)
        case Tuple() | Record():
            return describe(x).remade(described_element(reader, i, names) for i in x.items)
    return loosened(describe(x))


def contents_described(reader: Reader, contents: Abstract | None, names: Cells) -> Description:
    match contents:
        case Items():
            element = NOTHING
            for item in contents.items:
                element = join(element, described_element(reader, item, names))
            return POISON if stored_types(element) is None else list_of(element)
        case Stored():
            return list_of(contents.element)
        case Slot():
            outer = names.get(contents.outer)
            return list_of(row_element(contents, outer)) if isinstance(outer, Stored) else POISON
    return POISON


def append(reader: Reader, handle: List, item: Abstract, node: ast.AST) -> None:
    changing(reader, handle, node)
    contents = contents_of_list(reader, handle)
    if isinstance(contents, Items):
        set_items(reader, handle, (*contents.items, item), node)
        return
    contents = wide_enough(reader, handle, item, node)
    arrays = [
        a if isinstance(a.type, Stack) else with_capacity(reader, a, contents.length, len(contents.at))
        for a in contents.arrays
    ]
    length = reader.apply("add", contents.length, reader.const(1))
    set_contents(reader, handle, replace(contents, arrays=tuple(arrays), length=length))
    put_element(reader, handle, replace(contents, arrays=tuple(arrays)), contents.length, item, node)


def with_capacity(reader: Reader, array: Value, position: Value, axis: int) -> Value:
    """Storage with capacity for one more element."""
    grown = Value(array.type, array.name)
    reader.storage.add(grown)
    reader.add(Grow(grown, array, position, axis, span=reader.span))
    return grown


def wide_enough(reader: Reader, handle: List, item: Abstract, node: ast.AST) -> Stored:
    """The contents of the list, with an element type that the item fits into."""
    not_twice(reader, item, node)
    contents = stored_contents(reader, handle)
    element = join(contents.element, described_element(reader, item, reader.cells))
    if element == contents.element:
        return contents
    widen(reader, handle, element, node)
    return stored_contents(reader, handle)


def widen(reader: Reader, handle: List, element: Description, node: ast.AST) -> None:
    """Widen the element type. In a loop, the list has that type from the start when the loop is read again."""
    slot = reader.cells[handle]
    if isinstance(slot, Slot):
        outer, _ = row_of(reader, slot)
        part = list_of(element) if stored_types(element) is not None else POISON
        widen(reader, slot.outer, with_part(outer.element, slot.path, part), node)
    else:
        reader.cells[handle] = restored(reader, stored_contents(reader, handle), element, node)


def put_element(reader: Reader, handle: List, contents: Stored, place: Value, item: Abstract, node: ast.AST) -> None:
    """Write an element. A list becomes a row."""
    arrays = iter(contents.arrays)
    rows: list[tuple[tuple[int, ...], List]] = []

    for part, x in NODES.beside(contents.element, item, ""):
        if part.value.kind == "stored":
            assert isinstance(x, List)
            rows.append((part.path, x))
            for _ in stored_types(part.value) or ():
                next(arrays)
        else:
            for leaf in leaves_of(reader, x, part.value):
                put_leaf(reader, next(arrays), (*contents.at, place), leaf)
    for path, row in rows:
        put_row(reader, Slot(handle, place, path), row, node)


def put_leaf(reader: Reader, array: Value, place: tuple[Value, ...], leaf: Value) -> None:
    if isinstance(array.type, Stack):
        reader.add(Push(array, leaf, span=reader.span))
    else:
        reader.store(array, place, leaf)


def put_row(reader: Reader, slot: Slot, row: List, node: ast.AST) -> None:
    """Copy a list into a row of another list. Its names refer to the row from then on."""
    not_twice(reader, row, node)
    before = contents_of_list(reader, row)
    reader.cells[row] = slot
    assert isinstance(before, Items | Stored)
    write_row(reader, row, before)


def not_twice(reader: Reader, item: Abstract, node: ast.AST) -> None:
    """Refuse a list that is an element of two lists, if these are stored at run time."""
    contents = reader.cells[item] if isinstance(item, List) else None
    if isinstance(contents, Poison):
        raise Refusal(contents.problem)
    if isinstance(item, Group):
        for part in item.items:
            not_twice(reader, part, node)
    elif isinstance(contents, Slot) or (isinstance(item, List) and len(perhaps(reader, item)) > 1):
        message = "the same list is inserted twice"
        reader.refuse("SD206", node, message, help_="insert a copy: `list(...)`")


def write_row(reader: Reader, row: List, before: Items | Stored) -> None:
    """Copy the contents of a list into a row of a list of lists."""
    contents = stored_contents(reader, row)
    if isinstance(before, Stored) and join(contents.element, before.element) != contents.element:
        widen(reader, row, join(contents.element, before.element), reader.frame.node)
        contents = stored_contents(reader, row)
    length = reader.const(len(before.items)) if isinstance(before, Items) else before.length
    last = reader.apply("subtract", length, reader.const(1))
    arrays = tuple(with_capacity(reader, a, last, len(contents.at)) for a in contents.arrays)
    if isinstance(before, Items):
        for k, item in enumerate(before.items):
            for array, leaf in zip(arrays, leaves_of(reader, item, contents.element), strict=True):
                reader.store(array, (*contents.at, reader.const(k)), leaf)
    else:
        copy_elements(reader, before, arrays, contents.at)
    set_contents(reader, row, replace(contents, arrays=arrays, length=length))


def copy_elements(reader: Reader, source: Stored, arrays: Sequence[Value], at: tuple[Value, ...] = ()) -> None:
    """Write all elements of a list of numbers into other arrays."""
    index = Value(INT, "i")
    with reader.block() as operations:
        for one, other in zip(source.arrays, arrays, strict=True):
            value = reader.load(one, (*source.at, index))
            reader.store(other, (*at, index), reader.cast(value, element_type(other.array)))
    bounds = (reader.const(0), source.length, reader.const(1))
    reader.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=reader.span))


def copied_row(reader: Reader, row: Stored) -> Stored:
    """An element of a list of lists as a list of its own."""
    arrays = tuple(reader.alloc(a.array.dtype, (row.length,), None) for a in row.arrays)
    reader.storage.update(arrays)
    copy_elements(reader, row, arrays)
    return Stored(row.element, arrays, row.length)


def detached(reader: Reader, x: Abstract) -> Abstract:
    """An element that is removed from its list. Lists in it are copied."""
    if isinstance(x, List) and isinstance(reader.cells[x], Slot):
        return new_list(reader, flat_contents(reader, x))
    return x.remade(map(functools.partial(detached, reader), x.items)) if isinstance(x, Group) else x


def forget_slots(reader: Reader, handle: List) -> None:
    """The elements of the list have moved, so earlier references to its rows are invalid."""
    for key, x in list(reader.cells.items()):
        if isinstance(x, Slot) and x.outer is handle:
            reader.cells[key] = Poison(element_gone(reader))


@leaves("stored")
def stored_leaves(reader: Reader, x: Abstract, d: Description) -> list[Value]:
    if isinstance(x, Stored):
        if x.element != d.parts[0]:
            x = restored(reader, x, d.parts[0], reader.frame.node)
        return [*x.arrays, x.length]
    stored = store_items(reader, x if isinstance(x, Items) else Items(()), d.parts[0])
    return [*stored.arrays, stored.length]


def store_items(reader: Reader, x: Items, element: Description, handle: List | None = None) -> Stored:
    """Store the elements of a list, known one by one, in arrays."""
    types = stored_types(element)
    if types is None:
        message = "the elements of this list have different types, so it cannot be indexed with a run-time value"
        reader.refuse("SD202", None, message, help_=SAME_ELEMENTS)
    size, capacity = reader.const(max(_FIRST_CAPACITY, len(x.items))), reader.const(_FIRST_CAPACITY)
    arrays = tuple(
        reader.alloc(t.dtype, (size, capacity)[: t.rank], None) if isinstance(t, Array) else nothing_of(reader, t)
        for t in types
    )
    reader.storage.update(arrays)
    owner = List() if handle is None else handle
    reader.cells[owner] = Stored(element, arrays, reader.const(len(x.items)))
    for k, item in enumerate(x.items):
        put_element(reader, owner, stored_contents(reader, owner), reader.const(k), item, reader.frame.node)
    contents = stored_contents(reader, owner)
    if handle is None:
        forget_slots(reader, owner)
        del reader.cells[owner]
    return contents


def restored(reader: Reader, contents: Stored, element: Description, node: ast.AST) -> Stored:
    """The list with a wider element type."""
    types = stored_types(element)
    if types is None:
        reader.refuse("SD202", node, "the list holds elements of another type than this one")
    if contents.arrays and isinstance(contents.arrays[0].type, Array):
        capacity = reader.dim(contents.arrays[0], 0)
    else:
        capacity = reader.apply("add", contents.length, reader.const(_FIRST_CAPACITY))
    before = iter(contents.arrays)
    arrays = wider_storage(reader, contents.element, element, before, (capacity,), contents.length, node)
    reader.storage.update(arrays)
    return Stored(element, tuple(arrays), contents.length)


def wider_storage(
    reader: Reader,
    old: Description,
    new: Description,
    before: Iterator[Value],
    shape: tuple[Value, ...],
    length: Value,
    node: ast.AST,
) -> list[Value]:
    """Arrays for elements of a wider type, with the contents of the narrower ones."""
    if new.kind in ("tuple", "record"):
        if old != NOTHING and (old.kind != new.kind or len(old.parts) != len(new.parts)):
            reader.refuse("SD202", node, "the list holds elements of another type than this one")
        parts = old.parts or (NOTHING,) * len(new.parts)
        pairs = zip(parts, new.parts, strict=True)
        return [a for p, q in pairs for a in wider_storage(reader, p, q, before, shape, length, node)]
    if new.kind == "stored":
        if old == NOTHING:
            lengths = reader.alloc("int64", shape, reader.const(0))
            inside = wider_storage(
                reader, NOTHING, new.parts[0], before, (*shape, reader.const(_FIRST_CAPACITY)), length, node
            )
            return [*inside, lengths]
        rows = [next(before) for _ in stored_types(old.parts[0]) or ()]
        capacity = reader.dim(rows[0], 1) if rows else reader.const(_FIRST_CAPACITY)
        inside = wider_storage(reader, old.parts[0], new.parts[0], iter(rows), (*shape, capacity), length, node)
        return [*inside, next(before)]
    if new.kind != "value":
        return []
    type_ = (stored_types(new) or ())[0]
    if old == NOTHING:
        return [reader.alloc(type_.dtype, shape, None) if isinstance(type_, Array) else nothing_of(reader, type_)]
    array = next(before)
    if isinstance(type_, Stack) or array.array.dtype == type_.dtype:
        return [array]
    return [converted_storage(reader, array, type_.dtype, shape, length)]


def converted_storage(reader: Reader, array: Value, dtype: str, shape: tuple[Value, ...], length: Value) -> Value:
    """The storage of a list, converted to another type of numbers."""
    fill = None if len(shape) == 1 else reader.const({"int64": 0, "bool": False}.get(dtype, 0.0))
    wider = reader.alloc(dtype, shape, fill)

    def write(indices: tuple[Value, ...]) -> None:
        write_element(reader, wider, indices, reader.load(array, indices))

    reader.each_element(array, write, lambda axis: length if axis == 0 else reader.dim(array, axis))
    return wider


def is_row(reader: Reader, handle: List) -> bool:
    """Whether the list is an element of another one."""
    return isinstance(reader.cells[handle], Slot)


def top_of(reader: Reader, handle: List) -> List:
    """The outermost list that contains this list, or the list itself."""
    slot = reader.cells[handle]
    return slot.outer if isinstance(slot, Slot) else handle


def element_gone(reader: Reader) -> Problem:
    message = "this list is an element of another list, which has changed since"
    return Problem(
        "SD206", message, reader.span, help="read the element again after the change, or copy it first: `list(...)`"
    )


def as_stored(x: Items) -> Description:
    if not x.items:
        return describe(x)
    element = loosened(describe(x.items[0]))
    for item in x.items[1:]:
        element = join(element, loosened(describe(item)))
    return Description("stored", None, (element,))


def of_numbers(reader: Reader, contents: Items) -> bool:
    return is_of_numbers(common_element(reader, contents))


def perhaps(reader: Reader, handle: List) -> set[List]:
    """The lists that this list may be in Python, including itself."""
    return {handle}.union(*(pair for pair in reader.state.same_lists if handle in pair))


def changing(reader: Reader, handle: List, node: ast.AST) -> None:
    """A list is about to be changed, so its identity must be known."""
    if len(perhaps(reader, handle)) > 1:
        may_be_another(reader, node)
    reader.changed |= {handle, top_of(reader, handle)}


def may_be_another(reader: Reader, node: ast.AST) -> NoReturn:
    message = "this changes a list that a recursive function may have returned"
    reader.refuse("SD206", node, message, help_="pass a copy: `list(...)`")
