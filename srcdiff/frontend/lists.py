"""The contents of lists: single elements while their number is known, arrays once it is known only at run time.

A list of lists is an array with a row for each of them, and an array of their lengths:

    rows = []                                  data, lengths, n = np.empty((4, 4)), np.empty(4, int), 0
    for i in range(3):                         for i in range(3):
        row = [x]                                  data[n, 0] = x; lengths[n] = 1; n += 1
        rows.append(row)
        row.append(2 * x)                          data[n - 1, 1] = 2 * x; lengths[n - 1] = 2

A list that has become an element of another one is a `Slot` of it from then on, so all its names see changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from srcdiff.diagnostics import Refusal
from srcdiff.frontend.abstract_values import (
    NOTHING,
    POISON,
    Abstract,
    Group,
    Items,
    Iteration,
    List,
    Poison,
    Record,
    Slot,
    Stored,
    Tuple,
    describe,
    holds_lists,
    join,
    list_of,
    loosened,
    of_parts,
    part_of,
    stored_types,
    with_part,
)
from srcdiff.frontend.environment import SAME_ELEMENTS, Environment, Key, handles, list_key
from srcdiff.ir.nodes import Block, Grow, Loop, Peek, Pop, Push, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Stack, element_type, is_float
from srcdiff.signature.descriptions import Description
from srcdiff.signature.trees import NODES

_FIRST_CAPACITY = 4  # how many elements the storage of a list can hold at first


class Lists(Environment):
    """Reads and writes what lists hold."""

    def new_list(self, contents: tuple[Abstract, ...] | Stored) -> List:
        handle = List()
        self.names[list_key(handle)] = contents if isinstance(contents, Stored) else Items(contents)
        return handle

    def holding(self, handle: List) -> Abstract:
        """What the list holds now."""
        found = self.names[list_key(handle)]
        if isinstance(found, Poison):
            raise Refusal(found.problem)
        if not isinstance(found, Slot):
            return found
        if list_key(found.outer) not in self.names:
            raise Refusal(self.gone())
        outer, arrays = self.row_of(found)
        at = (*outer.at, found.position)
        return Stored(self.row_element(found, outer), arrays[:-1], self.load(arrays[-1], at), at)

    def row_of(self, slot: Slot) -> tuple[Stored, tuple[Value, ...]]:
        """The list that a list is an element of, and which of its arrays are rows of such elements."""
        outer = self.holding(slot.outer)
        assert isinstance(outer, Stored)
        part, first = part_of(outer.element, slot.path)
        return outer, outer.arrays[first : first + len(stored_types(part) or ())]

    @staticmethod
    def row_element(slot: Slot, outer: Stored) -> Description:
        return part_of(outer.element, slot.path)[0].parts[0]

    def hold(self, handle: List, contents: Items | Stored) -> None:
        """Let the list hold something else from now on."""
        slot = self.names.get(list_key(handle))
        if not isinstance(slot, Slot):
            self.names[list_key(handle)] = contents
            return
        assert isinstance(contents, Stored)
        outer, arrays = self.row_of(slot)
        self.store(arrays[-1], contents.at, contents.length)
        first = outer.arrays.index(arrays[0])
        behind = outer.arrays[first + len(arrays) - 1 :]
        self.hold(slot.outer, replace(outer, arrays=(*outer.arrays[:first], *contents.arrays, *behind)))

    def hold_items(self, handle: List, items: Iterable[Abstract], node: ast.AST) -> None:
        """Let the list hold these, among which others may be that it did not hold before."""
        contents = Items(tuple(items))
        inside = handles(contents)
        todo = list(inside)
        while todo:
            found = self.names.get(list_key(todo.pop()))
            more = set() if found is None else handles(found) - inside
            inside |= more
            todo += more
        if handle in inside:
            self.refuse("SD206", node, "the list would be an element of itself", help_="insert a copy: `list(...)`")
        self.names[list_key(handle)] = contents

    def stored(self, handle: List) -> Stored:
        """The contents of the list in arrays."""
        contents = self.holding(handle)
        if isinstance(contents, Items):
            if not contents.items:
                self.raise_always(IndexError, "list index out of range")
            contents = self.store_items(contents, self.common(contents), handle)
            self.names[list_key(handle)] = contents
        assert isinstance(contents, Stored)
        return contents

    def flat(self, handle: List) -> Stored:
        """The same in arrays that are the list's alone: an element of a list of lists is copied."""
        contents = self.stored(handle)
        return self.copied_row(contents) if contents.at else contents

    def common(self, contents: Items) -> Description:
        """What all elements are."""
        element = self.described(contents.items[0], self.names)
        for item in contents.items[1:]:
            element = join(element, self.described(item, self.names))
        return element

    def described(self, x: Abstract, names: dict[Key, Abstract]) -> Description:
        """What an element of a list is: lists in it by what they hold."""
        match x:
            case List():
                return self.contents_described(names.get(list_key(x)), names)
            case Tuple() | Record():
                return describe(x).remade(self.described(i, names) for i in x.items)
        return loosened(describe(x))

    def contents_described(self, contents: Abstract | None, names: dict[Key, Abstract]) -> Description:
        match contents:
            case Items():
                element = NOTHING
                for item in contents.items:
                    element = join(element, self.described(item, names))
                return POISON if stored_types(element) is None else list_of(element)
            case Stored():
                return list_of(contents.element)
            case Slot():
                outer = names.get(list_key(contents.outer))
                return list_of(self.row_element(contents, outer)) if isinstance(outer, Stored) else POISON
        return POISON

    # -- elements ----------------------------------------------------------------------------------------------------

    def read_list(self, handle: List, position: Value) -> Abstract:
        contents = self.stored(handle)
        return self.element(contents, self.list_position(contents, position), handle)

    def element(self, contents: Stored, place: Value, handle: List | None = None, *, last: bool = False) -> Abstract:
        """The element at a place; lists in it are there, and not copied. The last one is taken away."""
        arrays = iter(contents.arrays)

        paths = NODES.named(contents.element, "")

        def part(d: Description) -> Abstract:
            path = next(paths).path
            if d.kind == "stored":
                assert handle is not None
                for _ in stored_types(d) or ():
                    next(arrays)
                row = List()
                self.names[list_key(row)] = Slot(handle, place, path)
                return row
            if d == NOTHING:  # there is none to be read
                self.raise_always(IndexError, "list index out of range")
            if d.kind == "value":
                return self.element_of(next(arrays), (*contents.at, place), last=last)
            return self.fresh(d, "")[0]

        return NODES.fold(contents.element, part, of_parts)

    def element_of(self, storage: Value, place: tuple[Value, ...], *, last: bool = False) -> Value:
        """An element of what a list is stored in."""
        if not isinstance(storage.type, Stack):
            return self.load(storage, place)
        out = Value(storage.type.element)
        if last:
            self.add(Pop(out, storage, span=self.span))
            return out
        # Its first element is none of the list's: it tells Numba what the list holds.
        self.add(Peek(out, storage, self.apply("add", place[0], self.const(1)), span=self.span))
        return out

    def as_iteration(self, base: List) -> Iteration:
        stored = self.stored(base)
        if stored.at or holds_lists(stored.element):  # their storage may be replaced meanwhile, by a wider one
            return Iteration(stored.length, lambda k: self.element(self.stored(base), self.value(k), base))
        return Iteration(stored.length, lambda k: self.element(stored, self.value(k)))

    def list_position(self, contents: Stored, position: Value) -> Value:
        """Negative positions count from the end of the list, not of its storage; outside, raise as Python does."""
        known = self.constants.get(position)
        if known is not None:
            needed = known + 1 if known >= 0 else -known
            outside = self.apply("less", contents.length, self.const(needed))
            position = position if known >= 0 else self.apply("subtract", contents.length, self.const(-known))
        elif self.is_natural(position):
            if self.is_below(position, contents.length):
                return position
            outside = self.apply("greater_equal", position, contents.length)
        else:
            negative = self.apply("less", position, self.const(0))
            position = self.apply("where", negative, self.apply("add", position, contents.length), position)
            too_small = self.apply("less", position, self.const(0))
            outside = self.apply("logical_or", too_small, self.apply("greater_equal", position, contents.length))
        self.raise_if(outside, IndexError, "list index out of range")
        return position

    def is_natural(self, value: Value) -> bool:
        """Also what is the counter of a loop, and less by no more than that starts with."""
        if super().is_natural(value):
            return True
        base, amount = self.offsets.get(value, (value, 0))
        bounds = self.counters.get(base)
        if bounds is None:
            return False
        start, step = self.constants.get(bounds[0]), self.constants.get(bounds[2])
        return start is not None and step is not None and step > 0 and start + amount >= 0

    def is_below(self, position: Value, length: Value) -> bool:
        """Whether a position is the counter of a loop that ends at the length, or before."""
        if position not in self.counters:
            return False
        stop = self.counters[position][1]
        first, second = self.constants.get(stop), self.constants.get(length)
        return stop is length or (first is not None and second is not None and first <= second)

    # -- changes -----------------------------------------------------------------------------------------------------

    def append(self, handle: List, item: Abstract, node: ast.AST) -> None:
        contents = self.holding(handle)
        if isinstance(contents, Items):
            self.hold_items(handle, (*contents.items, item), node)
            return
        contents = self.wide_enough(handle, item, node)
        arrays = [
            a if isinstance(a.type, Stack) else self.with_capacity(a, contents.length, len(contents.at))
            for a in contents.arrays
        ]
        length = self.apply("add", contents.length, self.const(1))
        self.hold(handle, replace(contents, arrays=tuple(arrays), length=length))
        self.put(handle, replace(contents, arrays=tuple(arrays)), contents.length, item, node)

    def with_capacity(self, array: Value, position: Value, axis: int) -> Value:
        """Storage with a place for an element."""
        grown = Value(array.type, array.name)
        self.storage.add(grown)
        self.add(Grow(grown, array, position, axis, span=self.span))
        return grown

    def wide_enough(self, handle: List, item: Abstract, node: ast.AST) -> Stored:
        """The contents of the list, of elements of a type that the item fits too."""
        self.not_twice(item, node)
        contents = self.stored(handle)
        element = join(contents.element, self.described(item, self.names))
        if element == contents.element:
            return contents
        self.widen(handle, element, node)
        return self.stored(handle)

    def widen(self, handle: List, element: Description, node: ast.AST) -> None:
        """Let the elements be of a wider type; in a loop the list starts with that type the next time it is read."""
        slot = self.names[list_key(handle)]
        if isinstance(slot, Slot):
            outer, _ = self.row_of(slot)
            part = list_of(element) if stored_types(element) is not None else POISON
            self.widen(slot.outer, with_part(outer.element, slot.path, part), node)
        else:
            self.names[list_key(handle)] = self.restored(self.stored(handle), element, node)

    def put(self, handle: List, contents: Stored, place: Value, item: Abstract, node: ast.AST) -> None:
        """Write an element; a list in it is a row from now on."""
        arrays = iter(contents.arrays)
        rows: list[tuple[tuple[int, ...], List]] = []

        for part, x in NODES.beside(contents.element, item, ""):
            if part.value.kind == "stored":
                assert isinstance(x, List)
                rows.append((part.path, x))
                for _ in stored_types(part.value) or ():
                    next(arrays)
            else:
                for leaf in self.leaves(x, part.value):
                    self.put_leaf(next(arrays), (*contents.at, place), leaf)
        for path, row in rows:
            self.put_row(Slot(handle, place, path), row, node)

    def put_leaf(self, array: Value, place: tuple[Value, ...], leaf: Value) -> None:
        if isinstance(array.type, Stack):
            self.add(Push(array, leaf, span=self.span))
        else:
            self.store(array, place, leaf)

    def put_row(self, slot: Slot, row: List, node: ast.AST) -> None:
        """Copy a list to where it is an element of another, and let its names mean that from now on."""
        self.not_twice(row, node)
        before = self.holding(row)
        self.names[list_key(row)] = slot
        assert isinstance(before, Items | Stored)
        self.write_row(row, before)

    def not_twice(self, item: Abstract, node: ast.AST) -> None:
        """A list is an element of one list at most, where these are known at run time alone."""
        contents = self.names[list_key(item)] if isinstance(item, List) else None
        if isinstance(contents, Poison):
            raise Refusal(contents.problem)
        if isinstance(item, Group):
            for part in item.items:
                self.not_twice(part, node)
        elif isinstance(contents, Slot) or (isinstance(item, List) and len(self.perhaps(item)) > 1):
            message = "the same list would be an element twice"
            self.refuse("SD206", node, message, help_="insert a copy: `list(...)`")

    def write_row(self, row: List, before: Items | Stored) -> None:
        """Let an element of a list of lists have what another list has."""
        contents = self.stored(row)
        if isinstance(before, Stored) and join(contents.element, before.element) != contents.element:
            self.widen(row, join(contents.element, before.element), self.frame.node)
            contents = self.stored(row)
        length = self.const(len(before.items)) if isinstance(before, Items) else before.length
        last = self.apply("subtract", length, self.const(1))
        arrays = tuple(self.with_capacity(a, last, len(contents.at)) for a in contents.arrays)
        if isinstance(before, Items):
            for k, item in enumerate(before.items):
                for array, leaf in zip(arrays, self.leaves(item, contents.element), strict=True):
                    self.store(array, (*contents.at, self.const(k)), leaf)
        else:
            self.copy_elements(before, arrays, contents.at)
        self.hold(row, replace(contents, arrays=arrays, length=length))

    def copy_elements(self, source: Stored, arrays: Sequence[Value], at: tuple[Value, ...] = ()) -> None:
        """Write all elements of a list of numbers to other arrays."""
        index = Value(INT, "i")
        with self.block() as operations:
            for one, other in zip(source.arrays, arrays, strict=True):
                value = self.load(one, (*source.at, index))
                self.store(other, (*at, index), self.cast(value, element_type(other.array)))
        bounds = (self.const(0), source.length, self.const(1))
        self.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=self.span))

    def copied_row(self, row: Stored) -> Stored:
        """An element of a list of lists as a list of its own."""
        arrays = tuple(self.alloc(a.array.dtype, (row.length,), None) for a in row.arrays)
        self.storage.update(arrays)
        self.copy_elements(row, arrays)
        return Stored(row.element, arrays, row.length)

    def detached(self, x: Abstract) -> Abstract:
        """An element that is taken out of its list: lists in it are lists of their own."""
        if isinstance(x, List) and isinstance(self.names[list_key(x)], Slot):
            return self.new_list(self.flat(x))
        return x.remade(map(self.detached, x.items)) if isinstance(x, Group) else x

    def forget_slots(self, handle: List) -> None:
        """The elements of the list have changed their places: what was read of it is not where it was."""
        for key, x in list(self.names.items()):
            if isinstance(x, Slot) and x.outer is handle:
                self.names[key] = Poison(self.gone())

    # -- storage -----------------------------------------------------------------------------------------------------

    def stored_leaves(self, x: Abstract, d: Description) -> list[Value]:
        if isinstance(x, Stored):
            if x.element != d.parts[0]:
                x = self.restored(x, d.parts[0], self.frame.node)
            return [*x.arrays, x.length]
        stored = self.store_items(x if isinstance(x, Items) else Items(()), d.parts[0])
        return [*stored.arrays, stored.length]

    def store_items(self, x: Items, element: Description, handle: List | None = None) -> Stored:
        """Put a list whose elements are known one by one into arrays."""
        types = stored_types(element)
        if types is None:
            message = "the elements of this list have different types, so it cannot be indexed with a run-time value"
            self.refuse("SD202", None, message, help_=SAME_ELEMENTS)
        size, capacity = self.const(max(_FIRST_CAPACITY, len(x.items))), self.const(_FIRST_CAPACITY)
        arrays = tuple(
            self.alloc(t.dtype, (size, capacity)[: t.rank], None) if isinstance(t, Array) else self.nothing(t)
            for t in types
        )
        self.storage.update(arrays)
        owner = List() if handle is None else handle
        self.names[list_key(owner)] = Stored(element, arrays, self.const(len(x.items)))
        for k, item in enumerate(x.items):
            self.put(owner, self.stored(owner), self.const(k), item, self.frame.node)
        contents = self.stored(owner)
        if handle is None:
            self.forget_slots(owner)
            del self.names[list_key(owner)]
        return contents

    def restored(self, contents: Stored, element: Description, node: ast.AST) -> Stored:
        """The list with elements of a wider type."""
        types = stored_types(element)
        if types is None:
            self.refuse("SD202", node, "the list holds elements of another type")
        if contents.arrays and isinstance(contents.arrays[0].type, Array):
            capacity = self.dim(contents.arrays[0], 0)
        else:
            capacity = self.apply("add", contents.length, self.const(_FIRST_CAPACITY))
        before = iter(contents.arrays)
        arrays = self.wider(contents.element, element, before, (capacity,), contents.length, node)
        self.storage.update(arrays)
        return Stored(element, tuple(arrays), contents.length)

    def wider(
        self,
        old: Description,
        new: Description,
        before: Iterator[Value],
        shape: tuple[Value, ...],
        length: Value,
        node: ast.AST,
    ) -> list[Value]:
        """Arrays for elements of a wider type, with what those of a narrower one hold."""
        if new.kind in ("tuple", "record"):
            if old != NOTHING and (old.kind != new.kind or len(old.parts) != len(new.parts)):
                self.refuse("SD202", node, "the list holds elements of another type")
            parts = old.parts or (NOTHING,) * len(new.parts)
            pairs = zip(parts, new.parts, strict=True)
            return [a for p, q in pairs for a in self.wider(p, q, before, shape, length, node)]
        if new.kind == "stored":
            if old == NOTHING:
                lengths = self.alloc("int64", shape, self.const(0))
                inside = self.wider(NOTHING, new.parts[0], before, (*shape, self.const(_FIRST_CAPACITY)), length, node)
                return [*inside, lengths]
            rows = [next(before) for _ in stored_types(old.parts[0]) or ()]
            capacity = self.dim(rows[0], 1) if rows else self.const(_FIRST_CAPACITY)
            inside = self.wider(old.parts[0], new.parts[0], iter(rows), (*shape, capacity), length, node)
            return [*inside, next(before)]
        if new.kind != "value":
            return []
        type_ = (stored_types(new) or ())[0]
        if old == NOTHING:
            return [self.alloc(type_.dtype, shape, None) if isinstance(type_, Array) else self.nothing(type_)]
        array = next(before)
        if isinstance(type_, Stack) or array.array.dtype == type_.dtype:
            return [array]
        return [self.converted_storage(array, type_.dtype, shape, length)]

    def converted_storage(self, array: Value, dtype: str, shape: tuple[Value, ...], length: Value) -> Value:
        """The storage of a list with another type of numbers."""
        fill = None if len(shape) == 1 else self.const({"int64": 0, "bool": False}.get(dtype, 0.0))
        wider = self.alloc(dtype, shape, fill)

        def write(indices: tuple[Value, ...]) -> None:
            self.write_element(wider, indices, self.load(array, indices))

        self.each_element(array, write, lambda axis: length if axis == 0 else self.dim(array, axis))
        return wider

    def write_element(self, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
        """Store with the conversion that NumPy makes."""
        if not is_float(array.type):
            value = self.cast(value, BOOL if array.array.dtype == "bool" else INT)
        elif not is_float(value.type):
            value = self.cast(value, FLOAT)
        self.store(array, indices, value, adds)
