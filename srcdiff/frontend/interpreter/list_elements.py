"""The elements of lists: at positions known at run time, and one after the other."""

from __future__ import annotations

from srcdiff.frontend.domain.abstract_values import Abstract, Iteration, List, Slot, Stored
from srcdiff.frontend.domain.lattice import NOTHING, holds_lists, of_parts, stored_types
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.list_storage import stored_contents
from srcdiff.frontend.interpreter.representation import as_value, fresh_values
from srcdiff.ir.nodes import Peek, Pop, Value
from srcdiff.ir.types import Stack
from srcdiff.signature.descriptions import Description
from srcdiff.signature.trees import NODES


def read_list(reader: Reader, handle: List, position: Value) -> Abstract:
    contents = stored_contents(reader, handle)
    return element_at(reader, contents, list_position(reader, contents, position), handle)


def element_at(
    reader: Reader, contents: Stored, place: Value, handle: List | None = None, *, last: bool = False
) -> Abstract:
    """The element at an index. Lists in it are not copied. `pop` removes the last one."""
    arrays = iter(contents.arrays)

    paths = NODES.named(contents.element, "")

    def part(d: Description) -> Abstract:
        path = next(paths).path
        if d.kind == "stored":
            assert handle is not None
            for _ in stored_types(d) or ():
                next(arrays)
            row = List()
            reader.cells[row] = Slot(handle, place, path)
            return row
        if d == NOTHING:  # the list has no elements
            reader.raise_always(IndexError, "list index out of range")
        if d.kind == "value":
            return element_of(reader, next(arrays), (*contents.at, place), last=last)
        return fresh_values(reader, d, "")[0]

    return NODES.fold(contents.element, part, of_parts)


def element_of(reader: Reader, storage: Value, place: tuple[Value, ...], *, last: bool = False) -> Value:
    """An element of stored contents."""
    if not isinstance(storage.type, Stack):
        return reader.load(storage, place)
    out = Value(storage.type.element)
    if last:
        reader.add(Pop(out, storage, span=reader.span))
        return out
    # Its first element is not part of the list. It tells Numba the type of the elements.
    reader.add(Peek(out, storage, reader.apply("add", place[0], reader.const(1)), span=reader.span))
    return out


def as_iteration(reader: Reader, base: List) -> Iteration:
    stored = stored_contents(reader, base)
    if stored.at or holds_lists(stored.element):  # their storage may be replaced by a wider one before they are used
        return Iteration(
            stored.length, lambda k: element_at(reader, stored_contents(reader, base), as_value(reader, k), base)
        )
    return Iteration(stored.length, lambda k: element_at(reader, stored, as_value(reader, k)))


def list_position(reader: Reader, contents: Stored, position: Value) -> Value:
    """An index into a list. Negative ones count from the end of the list, not of its storage. Raises `IndexError`."""
    known = reader.constants.get(position)
    if known is not None:
        needed = known + 1 if known >= 0 else -known
        outside = reader.apply("less", contents.length, reader.const(needed))
        position = position if known >= 0 else reader.apply("subtract", contents.length, reader.const(-known))
    elif reader.is_natural(position):
        if is_below(reader, position, contents.length):
            return position
        outside = reader.apply("greater_equal", position, contents.length)
    else:
        negative = reader.apply("less", position, reader.const(0))
        position = reader.apply("where", negative, reader.apply("add", position, contents.length), position)
        too_small = reader.apply("less", position, reader.const(0))
        outside = reader.apply("logical_or", too_small, reader.apply("greater_equal", position, contents.length))
    reader.raise_if(outside, IndexError, "list index out of range")
    return position


def is_below(reader: Reader, position: Value, length: Value) -> bool:
    """Whether an index is the counter of a loop that ends at the length or before."""
    if position not in reader.counters:
        return False
    stop = reader.counters[position][1]
    first, second = reader.constants.get(stop), reader.constants.get(length)
    return stop is length or (first is not None and second is not None and first <= second)
