"""The methods of lists, and `del`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Enumerate,
    Items,
    Iteration,
    List,
    Own,
    Reversed,
    Static,
    Stored,
    Tuple,
    is_none,
)
from srcdiff.frontend.domain.lattice import describe, is_of_numbers, leaf_types, loosened
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.arithmetic import binary
from srcdiff.frontend.interpreter.comparisons import compare
from srcdiff.frontend.interpreter.evaluation import call_value, constant_value, evaluate
from srcdiff.frontend.interpreter.fixed_point import read_loop
from srcdiff.frontend.interpreter.indexing import read_position
from srcdiff.frontend.interpreter.iteration import evaluate_elements, fold_elements, for_each, iteration_over
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_elements import as_iteration, element_at, list_position
from srcdiff.frontend.interpreter.list_storage import (
    append,
    changing,
    contents_of_list,
    detached,
    flat_contents,
    forget_slots,
    is_row,
    new_list,
    set_contents,
    set_items,
    stored_contents,
    write_row,
)
from srcdiff.frontend.interpreter.numbers import as_integer
from srcdiff.frontend.interpreter.representation import as_value, leaves_of
from srcdiff.frontend.interpreter.tables import expression, method, operation, subscripts
from srcdiff.frontend.interpreter.typed_elements import as_element_of
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, INT, Array, Scalar

_OF_OTHERS = "a list of arrays or lists"


def _are_static(*parts: Abstract) -> bool:
    return all(isinstance(p, Static) for p in parts)


@method("list", "append")
def list_append(reader: Reader, node: ast.AST, owner: List, item: Abstract) -> Abstract:
    put_behind(reader, owner, item, node)
    return Static(None)


def put_behind(reader: Reader, owner: List, item: Abstract, node: ast.AST) -> None:
    """Append an element, converted if the list is Numba's."""
    append(reader, owner, as_element_of(reader, owner, item, node), node)


@method("list", "extend")
def list_extend(reader: Reader, node: ast.AST, owner: List, items: Abstract) -> Abstract:
    found = iteration_over(reader, items, node)
    if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 16:
        found = tuple(found.element(Static(k)) for k in range(found.length.value))
    if isinstance(found, Iteration):
        for_each(reader, node, found, lambda item: put_behind(reader, owner, item, node))
    else:
        for item in found:
            put_behind(reader, owner, item, node)
    return Static(None)


@method("list", "pop")
def list_pop(reader: Reader, node: ast.AST, owner: List, where: Abstract = Static(-1)) -> Abstract:
    changing(reader, owner, node)
    if where != Static(-1) and is_row(reader, owner):
        return as_own(reader, owner, lambda own: list_pop(reader, node, own, where))
    contents = contents_of_list(reader, owner)
    if isinstance(contents, Items) and isinstance(where, Static) and contents.items:
        items = list(contents.items)
        if not -len(items) <= where.value < len(items):
            reader.raise_always(IndexError, "pop index out of range")
        popped = items.pop(where.value)
        reader.cells[owner] = Items(tuple(items))
        return popped
    contents = stored_contents(reader, owner)
    empty = reader.apply("less_equal", contents.length, reader.const(0))
    reader.raise_if(empty, IndexError, "pop from empty list")
    last = reader.apply("subtract", contents.length, reader.const(1))
    at_end = isinstance(where, Static) and where.value == -1
    position = last if at_end else list_position(reader, contents, as_integer(reader, where, node))
    if not at_end and not is_of_numbers(contents.element):
        reader.refuse("SD102", node, f"`pop` from the middle of {_OF_OTHERS} is not supported")
    popped = detached(reader, element_at(reader, contents, position, owner, last=True))
    if not at_end:
        shift_down(reader, contents, position, last, node)
    set_contents(reader, owner, replace(contents, length=last))
    forget_slots(reader, owner)
    return popped


def as_own(reader: Reader, row: List, change: Callable[[List], Abstract]) -> Abstract:
    """Change an element of a list of lists as a separate list, and store it in its place."""
    own = new_list(reader, flat_contents(reader, row))
    result = change(own)
    write_row(reader, row, stored_contents(reader, own))
    return result


def shift_down(reader: Reader, contents: Stored, position: Value, last: Value, node: ast.AST) -> None:
    """Move the elements after the position one place to the front."""

    def iteration(index: Value | None) -> None:
        assert index is not None
        following = reader.apply("add", index, reader.const(1))
        for array in contents.arrays:
            reader.store(array, (index,), reader.load(array, (following,)))

    read_loop(reader, node, None, (position, last, reader.const(1)), None, iteration)


@method("list", "insert")
def list_insert(reader: Reader, node: ast.AST, owner: List, where: Abstract, item: Abstract) -> Abstract:
    changing(reader, owner, node)
    item = as_element_of(reader, owner, item, node)
    if is_row(reader, owner):
        return as_own(reader, owner, lambda own: list_insert(reader, node, own, where, item))
    contents = contents_of_list(reader, owner)
    if isinstance(contents, Items) and (isinstance(where, Static) or not contents.items):
        items = list(contents.items)
        items.insert(where.value if isinstance(where, Static) else 0, item)
        set_items(reader, owner, items, node)
        return Static(None)
    length = stored_contents(reader, owner).length
    position = position_within(reader, as_integer(reader, where, node), length)
    append(reader, owner, item, node)
    contents = stored_contents(reader, owner)
    if not is_of_numbers(contents.element):
        reader.refuse("SD102", node, f"`insert` into {_OF_OTHERS} is not supported")

    def iteration(index: Value | None) -> None:
        assert index is not None
        before = reader.apply("subtract", index, reader.const(1))
        for array in contents.arrays:
            reader.store(array, (index,), reader.load(array, (before,)))

    read_loop(reader, node, None, (length, position, reader.const(-1)), None, iteration)
    for array, leaf in zip(contents.arrays, leaves_of(reader, item, contents.element), strict=True):
        reader.store(array, (position,), leaf)
    return Static(None)


@method("list", "reverse")
def list_reverse(reader: Reader, node: ast.AST, owner: List) -> Abstract:
    changing(reader, owner, node)
    if is_row(reader, owner):
        return as_own(reader, owner, lambda own: list_reverse(reader, node, own))
    contents = contents_of_list(reader, owner)
    if isinstance(contents, Items):
        reader.cells[owner] = Items(tuple(reversed(contents.items)))
        return Static(None)
    stored = stored_contents(reader, owner)
    if not is_of_numbers(stored.element):
        reader.refuse("SD102", node, f"`reverse` of {_OF_OTHERS} is not supported")
    last = reader.apply("subtract", stored.length, reader.const(1))

    def iteration(index: Value | None) -> None:
        assert index is not None
        other = reader.apply("subtract", last, index)
        for array in stored.arrays:
            first, second = reader.load(array, (index,)), reader.load(array, (other,))
            reader.store(array, (index,), second)
            reader.store(array, (other,), first)

    half = reader.apply("floor_divide", stored.length, reader.const(2))
    read_loop(reader, node, None, (reader.const(0), half, reader.const(1)), None, iteration)
    return Static(None)


@method("list", "count")
def list_count(reader: Reader, node: ast.AST, owner: List, item: Abstract) -> Abstract:
    def counted(total: Abstract, other: Abstract) -> Abstract:
        return binary(reader, ast.Add, total, compare(reader, ast.Eq(), other, item, node), node)

    return fold_elements(reader, node, owner, Static(0), counted)


@method("list", "index")
def list_index(reader: Reader, node: ast.AST, owner: List, item: Abstract) -> Abstract:
    def nearer(found: Abstract, numbered: Abstract) -> Abstract:
        assert isinstance(numbered, Tuple)
        same = as_value(reader, compare(reader, ast.Eq(), numbered.items[1], item, node))
        return reader.apply("where", same, as_value(reader, numbered.items[0]), as_value(reader, found))

    place = as_value(reader, fold_elements(reader, node, Reversed(Enumerate(owner, Static(0))), Static(-1), nearer))
    reader.raise_if(reader.apply("less", place, reader.const(0)), ValueError, "the value is not in the list")
    return place


@method("list", "remove")
def list_remove(reader: Reader, node: ast.AST, owner: List, item: Abstract) -> Abstract:
    list_pop(reader, node, owner, list_index(reader, node, owner, item))
    return Static(None)


@method("list", "clear")
def list_clear(reader: Reader, node: ast.AST, owner: List) -> Abstract:
    changing(reader, owner, node)
    contents = contents_of_list(reader, owner)
    set_contents(
        reader, owner, replace(contents, length=reader.const(0)) if isinstance(contents, Stored) else Items(())
    )
    forget_slots(reader, owner)
    return Static(None)


@method("list", "copy")
def list_copy(reader: Reader, node: ast.AST, owner: List) -> Abstract:
    contents = contents_of_list(reader, owner)
    if isinstance(contents, Items):
        return new_list(reader, contents.items)
    if is_row(reader, owner):
        return new_list(reader, flat_contents(reader, owner))
    stored = stored_contents(reader, owner)
    if not is_of_numbers(stored.element):
        reader.refuse("SD102", node, f"a copy of {_OF_OTHERS} is not supported")
    copies = tuple(reader.copy(x) for x in stored.arrays)
    return new_list(reader, Stored(stored.element, copies, stored.length))


def delete_element(reader: Reader, owner: List, where: ast.expr, node: ast.AST) -> None:
    """`del items[i]`, `del items[a:b]`."""
    changing(reader, owner, node)
    if isinstance(where, ast.Slice):
        step = Static(None) if where.step is None else evaluate(reader, where.step)
        contents = contents_of_list(reader, owner)
        if isinstance(contents, Items) and not is_none(step):
            parts = [None if p is None else constant_value(reader, p) for p in (where.lower, where.upper, where.step)]
            items = list(contents.items)
            del items[slice(*parts)]
            reader.cells[owner] = Items(tuple(items))
            return
        assign_slice(reader, owner, where, Tuple(()), node)
        return
    list_pop(reader, node, owner, evaluate(reader, where))


def assign_slice(reader: Reader, base: List, where: ast.Slice, value: Abstract, node: ast.AST) -> Abstract:
    """`items[a:b] = others`: the elements before, the others, and the elements after."""
    changing(reader, base, node)
    if is_row(reader, base):
        if any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(where)):
            message = "a slice of a nested list with a call in its bounds is not supported"
            reader.refuse("SD102", node, message, help_="assign the result of the call to a name first")
        return as_own(reader, base, lambda own: assign_slice(reader, own, where, value, node))
    others = new_list(reader, ())
    in_a_row(reader, others, node, value)
    start, stop, step = [
        Static(None) if p is None else evaluate(reader, p) for p in (where.lower, where.upper, where.step)
    ]
    contents, new = contents_of_list(reader, base), contents_of_list(reader, others)
    if isinstance(contents, Items) and isinstance(new, Items) and _are_static(start, stop, step):
        items = list(contents.items)
        try:
            items[slice(*(p.value for p in (start, stop, step) if isinstance(p, Static)))] = new.items
        except ValueError as error:
            reader.raise_always(ValueError, str(error))
        set_items(reader, base, items, node)
        return Static(None)
    if step not in (Static(None), Static(1)):
        message = "assignment to a slice with a step is not supported for this list"
        reader.refuse("SD102", node, message, help_="write a loop")
    length = as_value(reader, call_value(reader, Own(len), [base], node))
    first, last = (slice_end(reader, p, length, 1, node, k == 0) for k, p in enumerate((start, stop)))
    last = reader.apply("where", reader.apply("less", last, first), first, last)
    none, fresh = Static(None), new_list(reader, ())
    before, behind = (
        sliced_list(reader, base, [none, first, none], node),
        sliced_list(reader, base, [last, none, none], node),
    )
    in_a_row(reader, fresh, node, before, others, behind)
    reader.cells[base] = reader.cells[fresh]
    return Static(None)


def in_a_row(reader: Reader, handle: List, node: ast.AST, *groups: Abstract) -> None:
    """Append all elements of an iterable to a list."""
    for k, group in enumerate(groups):
        known = contents_of_list(reader, group) if isinstance(group, List) else None
        with reader.within(path=(*reader.path, k)):
            list_extend(reader, node, handle, Tuple(known.items) if isinstance(known, Items) else group)


def sliced_list(reader: Reader, base: List, parts: list[Abstract], node: ast.AST) -> Abstract:
    """A new list from a slice of a list of unknown length."""
    start, stop, step = parts
    if not isinstance(step, Static) or step.value == 0:
        reader.refuse("SD205", node, "the step of a slice of a list must be known at compile time")
    by = 1 if step.value is None else step.value
    found = iteration_over(reader, base, node)
    if not isinstance(found, Iteration):
        if not found:
            return new_list(reader, ())
        found = as_iteration(reader, base)
    length = as_value(reader, found.length)
    first, last = (slice_end(reader, p, length, by, node, k == 0) for k, p in enumerate((start, stop)))
    count = reader.apply("range_length", first, last, reader.const(by))

    def element(k: Abstract) -> Abstract:
        scaled = reader.apply("multiply", as_value(reader, k), reader.const(by))
        return found.element(reader.apply("add", first, scaled))

    handle = new_list(reader, ())
    for_each(reader, node, Iteration(count, element), lambda item: append(reader, handle, item, node))
    return handle


def slice_end(reader: Reader, end: Abstract, length: Value, by: int, node: ast.AST, is_start: bool) -> Value:
    """The end of a slice as an index, as `slice.indices` gives it."""
    if is_none(end):
        if by > 0:
            return reader.const(0) if is_start else length
        return reader.apply("subtract", length, reader.const(1)) if is_start else reader.const(-1)
    position = as_integer(reader, end, node)
    if by > 0:
        return position_within(reader, position, length)
    from_end = reader.apply("add", position, length)
    position = reader.apply("where", reader.apply("less", position, reader.const(0)), from_end, position)
    position = reader.apply("where", reader.apply("less", position, reader.const(-1)), reader.const(-1), position)
    last = reader.apply("subtract", length, reader.const(1))
    return reader.apply("where", reader.apply("greater", position, last), last, position)


def position_within(reader: Reader, position: Value, length: Value) -> Value:
    """An index clamped to the list, as in `insert` and slices. Negative ones count from the end."""
    zero = reader.const(0)
    from_end = reader.apply("add", position, length)
    position = reader.apply("where", reader.apply("less", position, zero), from_end, position)
    position = reader.apply("where", reader.apply("less", position, zero), zero, position)
    return reader.apply("where", reader.apply("greater", position, length), length, position)


@subscripts(List)
def list_item(reader: Reader, base: List, where: ast.expr, node: ast.AST) -> Abstract:
    if not isinstance(where, ast.Slice):
        return read_position(reader, base, evaluate(reader, where), node)
    parts = [Static(None) if p is None else evaluate(reader, p) for p in (where.lower, where.upper, where.step)]
    contents = contents_of_list(reader, base)
    if isinstance(contents, Items) and all(isinstance(p, Static) for p in parts):
        return new_list(reader, contents.items[slice(*(p.value for p in parts if isinstance(p, Static)))])
    return sliced_list(reader, base, parts, node)


def extend_inside(reader: Reader, node: ast.AST, handle: List, items: List) -> None:
    """Extend a list inside a loop of the same expression."""
    with reader.within(path=(*reader.path, id(node))):
        list_extend(reader, node, handle, items)


@operation(List)
def list_operator(reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    lists = [x for x in (left, right) if isinstance(x, List)]
    grown = any(isinstance(contents_of_list(reader, x), Stored) for x in lists)
    if op is ast.Add and len(lists) == 2 and grown:
        handle = new_list(reader, ())
        list_extend(reader, node, handle, left)
        list_extend(reader, node, handle, right)
        return handle
    if op is ast.Mult and len(lists) == 1:
        times = right if isinstance(left, List) else left
        contents = contents_of_list(reader, lists[0])
        if isinstance(contents, Items) and (isinstance(times, Static) or len(contents.items) == 1):
            return known_list_operator(reader, op, lists[0], times, node)
        handle = new_list(reader, ())
        iterations = Iteration(as_integer(reader, times, node), lambda k: k)
        for_each(reader, node, iterations, lambda _: extend_inside(reader, node, handle, lists[0]))
        return handle
    return known_list_operator(reader, op, left, right, node)


def known_list_operator(
    reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST
) -> Abstract:
    if isinstance(left, List) and isinstance(right, List) and op is ast.Add:
        a, b = contents_of_list(reader, left), contents_of_list(reader, right)
        if isinstance(a, Items) and isinstance(b, Items):
            return new_list(reader, a.items + b.items)
    if op is ast.Mult and isinstance(left, List):
        a = contents_of_list(reader, left)
        if isinstance(a, Items) and isinstance(right, Static):
            return new_list(reader, a.items * right.value)
        if isinstance(a, Items) and len(a.items) == 1 and isinstance(right, Value) and right.type in (INT, BOOL):
            return repeated_list(reader, a.items[0], right, node)
    reader.refuse(
        "SD203",
        node,
        f"this operation of {in_words(reader, left)} and {in_words(reader, right)} is not supported",
        help_="append in a loop",
    )


def repeated_list(reader: Reader, item: Abstract, times: Value, node: ast.AST) -> Abstract:
    """`[item] * n` for a number known at run time."""
    element = loosened(describe(item))
    types_ = leaf_types(element)
    if types_ is None:
        message = f"a list of {in_words(reader, item)} cannot be repeated `n` times"
        reader.refuse("SD203", None, message, help_="append in a loop")
    if any(isinstance(t, Array) for t in types_):
        handle = new_list(reader, ())
        for_each(reader, node, Iteration(times, lambda _: item), lambda x: append(reader, handle, x, node))
        return handle
    length = reader.apply("where", reader.apply("greater", times, reader.const(0)), times, reader.const(0))
    arrays = tuple(
        reader.alloc(t.dtype, (length,), leaf)
        for t, leaf in zip(types_, leaves_of(reader, item, element), strict=True)
        if isinstance(t, Scalar)
    )
    return new_list(reader, Stored(element, arrays, length))


@expression(ast.List)
def list_display(reader: Reader, node: ast.List) -> Abstract:
    """A list display. With `*` of an iterable of unknown length, it is built piece by piece."""
    if not any(isinstance(e, ast.Starred) for e in node.elts):
        return new_list(reader, evaluate_elements(reader, node.elts))
    handle = new_list(reader, ())
    for element in node.elts:
        if isinstance(element, ast.Starred):
            list_extend(reader, element, handle, evaluate(reader, element.value))
        else:
            append(reader, handle, evaluate(reader, element), node)
    return handle
