"""Lists and iteration."""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from srcdiff.frontend.abstract_values import (
    NOTHING,
    Abstract,
    Enumerate,
    Items,
    Iteration,
    List,
    Range,
    Record,
    Reversed,
    Slot,
    Static,
    Stored,
    Tuple,
    Zip,
    is_of_numbers,
)
from srcdiff.frontend.environment import handles, list_key
from srcdiff.frontend.expressions import Expressions
from srcdiff.ir.nodes import If, Index, Loop, Operation, Value
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import INT, Array


class Sequences(Expressions):
    """Reads what lists do, and loops over elements."""

    def __init__(self) -> None:
        super().__init__()
        self.ends_early = False
        """Whether what is gone through may not be gone through to its end."""

    def for_each(self, node: ast.AST, found: Iteration, body: Callable[[Abstract], None], first: int = 0) -> None:
        """A loop over all elements, from the first or from another."""

        def iteration(index: Value | None) -> None:
            assert index is not None
            body(found.element(index))

        bounds = (self.const(first), self.value(found.length), self.const(1))
        self.loop(node, None, bounds, None, iteration)

    def fold(
        self,
        node: ast.AST,
        of: Abstract,
        start: Abstract | None,
        step: Callable[[Abstract, Abstract], Abstract],
        begin: Callable[[Abstract], Abstract] = lambda x: x,
        when_empty: tuple[type[Exception], str] = (ValueError, "the sequence is empty"),
    ) -> Abstract:
        """`step(...step(step(start, x0), x1)..., xn)` over the elements; without a start, it is `begin(x0)`."""
        found = self.iteration(of, node)
        if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 8:
            found = tuple(found.element(Static(k)) for k in range(found.length.value))
        if not isinstance(found, Iteration):
            if start is None and not found:
                self.refuse("SD203", node, "the sequence is empty")
            result, items = (begin(found[0]), found[1:]) if start is None else (start, found)
            for item in items:
                result = step(result, item)
            return result
        keys = ((self.frame.number, f"%fold{number or ''}") for number in itertools.count())
        key = next(k for k in keys if k not in self.names)
        first, done = start, 0 if start is not None else 1
        if first is None:
            empty = self.apply("less_equal", self.value(found.length), self.const(0))
            self.raise_if(empty, *when_empty)
            first = begin(found.element(Static(0)))
        elif self.starts_arrays(first, found):
            empty = self.apply("less_equal", self.value(found.length), self.const(0))
            self.raise_if(empty, ValueError, "the sequence is empty, and is one of arrays otherwise")
            first, done = step(first, found.element(Static(0))), 1
        self.names[key] = self.forced(first)

        def iteration(item: Abstract) -> None:
            self.names[key] = self.forced(step(self.names[key], item))

        self.for_each(node, found, iteration, done)
        return self.checked(self.chosen(key), "the result", node)

    def starts_arrays(self, start: Abstract, found: Iteration) -> bool:
        """Whether something begins with a number that arrays are added to."""
        mark = self.mark()
        first = found.element(Static(0))
        self.go_back(mark)
        return self.is_array(first) and not self.is_array(start)

    def list_append(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        self.append(owner, item, node)
        return Static(None)

    def list_extend(self, node: ast.AST, owner: List, items: Abstract) -> Abstract:
        found = self.iteration(items, node)
        if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 16:
            found = tuple(found.element(Static(k)) for k in range(found.length.value))
        if isinstance(found, Iteration):
            self.for_each(node, found, lambda item: self.append(owner, item, node))
        else:
            for item in found:
                self.append(owner, item, node)
        return Static(None)

    def list_pop(self, node: ast.AST, owner: List, where: Abstract = Static(-1)) -> Abstract:  # noqa: B008
        if where != Static(-1) and self.is_row(owner):
            return self.as_own(owner, lambda own: self.list_pop(node, own, where))
        contents = self.holding(owner)
        if isinstance(contents, Items) and isinstance(where, Static) and contents.items:
            items = list(contents.items)
            if not -len(items) <= where.value < len(items):
                self.raise_always(IndexError, "pop index out of range")
            popped = items.pop(where.value)
            self.names[list_key(owner)] = Items(tuple(items))
            return popped
        contents = self.stored(owner)
        empty = self.apply("less_equal", contents.length, self.const(0))
        self.raise_if(empty, IndexError, "pop from empty list")
        last = self.apply("subtract", contents.length, self.const(1))
        at_end = isinstance(where, Static) and where.value == -1
        position = last if at_end else self.list_position(contents, self.integer(where, node))
        if not at_end and not is_of_numbers(contents.element):
            self.refuse("SD102", node, f"`pop` from the middle of {_OF_OTHERS} is not supported")
        popped = self.detached(self.element(contents, position, owner, last=True))
        if not at_end:
            self.shift_down(contents, position, last, node)
        self.hold(owner, replace(contents, length=last))
        self.forget_slots(owner)
        return popped

    def is_row(self, handle: List) -> bool:
        """Whether the list is an element of another one."""
        return isinstance(self.names[list_key(handle)], Slot)

    def as_own(self, row: List, change: Callable[[List], Abstract]) -> Abstract:
        """Change an element of a list of lists as a list of its own, and put that in its place."""
        own = self.new_list(self.flat(row))
        result = change(own)
        self.write_row(row, self.stored(own))
        return result

    def shift_down(self, contents: Stored, position: Value, last: Value, node: ast.AST) -> None:
        """Move the elements behind the position one place to the front."""

        def iteration(index: Value | None) -> None:
            assert index is not None
            following = self.apply("add", index, self.const(1))
            for array in contents.arrays:
                self.store(array, (index,), self.load(array, (following,)))

        self.loop(node, None, (position, last, self.const(1)), None, iteration)

    def delete_element(self, owner: List, where: ast.expr, node: ast.AST) -> None:
        """`del items[i]`, `del items[a:b]`."""
        if isinstance(where, ast.Slice):
            step = Static(None) if where.step is None else self.expr(where.step)
            contents = self.holding(owner)
            if isinstance(contents, Items) and step != Static(None):
                parts = [None if p is None else self.static(p) for p in (where.lower, where.upper, where.step)]
                items = list(contents.items)
                del items[slice(*parts)]
                self.names[list_key(owner)] = Items(tuple(items))
                return
            self.assign_slice(owner, where, Tuple(()), node)
            return
        self.list_pop(node, owner, self.expr(where))

    def list_insert(self, node: ast.AST, owner: List, where: Abstract, item: Abstract) -> Abstract:
        if self.is_row(owner):
            return self.as_own(owner, lambda own: self.list_insert(node, own, where, item))
        contents = self.holding(owner)
        if isinstance(contents, Items) and (isinstance(where, Static) or not contents.items):
            items = list(contents.items)
            items.insert(where.value if isinstance(where, Static) else 0, item)
            self.hold_items(owner, items, node)
            return Static(None)
        length = self.stored(owner).length
        position = self.within(self.integer(where, node), length)
        self.append(owner, item, node)
        contents = self.stored(owner)
        if not is_of_numbers(contents.element):
            self.refuse("SD102", node, f"`insert` into {_OF_OTHERS} is not supported")

        def iteration(index: Value | None) -> None:
            assert index is not None
            before = self.apply("subtract", index, self.const(1))
            for array in contents.arrays:
                self.store(array, (index,), self.load(array, (before,)))

        self.loop(node, None, (length, position, self.const(-1)), None, iteration)
        for array, leaf in zip(contents.arrays, self.leaves(item, contents.element), strict=True):
            self.store(array, (position,), leaf)
        return Static(None)

    def within(self, position: Value, length: Value) -> Value:
        """Where a position lies in a list as `insert` and slices take it: from the end if negative, and not outside."""
        zero = self.const(0)
        from_end = self.apply("add", position, length)
        position = self.apply("where", self.apply("less", position, zero), from_end, position)
        position = self.apply("where", self.apply("less", position, zero), zero, position)
        return self.apply("where", self.apply("greater", position, length), length, position)

    def list_reverse(self, node: ast.AST, owner: List) -> Abstract:
        if self.is_row(owner):
            return self.as_own(owner, lambda own: self.list_reverse(node, own))
        contents = self.holding(owner)
        if isinstance(contents, Items):
            self.names[list_key(owner)] = Items(tuple(reversed(contents.items)))
            return Static(None)
        stored = self.stored(owner)
        if not is_of_numbers(stored.element):
            self.refuse("SD102", node, f"`reverse` of {_OF_OTHERS} is not supported")
        last = self.apply("subtract", stored.length, self.const(1))

        def iteration(index: Value | None) -> None:
            assert index is not None
            other = self.apply("subtract", last, index)
            for array in stored.arrays:
                first, second = self.load(array, (index,)), self.load(array, (other,))
                self.store(array, (index,), second)
                self.store(array, (other,), first)

        half = self.apply("floor_divide", stored.length, self.const(2))
        self.loop(node, None, (self.const(0), half, self.const(1)), None, iteration)
        return Static(None)

    def list_count(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        def counted(total: Abstract, other: Abstract) -> Abstract:
            return self.binary(ast.Add, total, self.compare(ast.Eq(), other, item, node), node)

        return self.fold(node, owner, Static(0), counted)

    def list_index(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        def nearer(found: Abstract, numbered: Abstract) -> Abstract:
            assert isinstance(numbered, Tuple)
            same = self.value(self.compare(ast.Eq(), numbered.items[1], item, node))
            return self.apply("where", same, self.value(numbered.items[0]), self.value(found))

        place = self.value(self.fold(node, Reversed(Enumerate(owner, Static(0))), Static(-1), nearer))
        self.raise_if(self.apply("less", place, self.const(0)), ValueError, "the value is not in the list")
        return place

    def list_remove(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        self.list_pop(node, owner, self.list_index(node, owner, item))
        return Static(None)

    def expr_List(self, node: ast.List) -> Abstract:
        """A list display; with `*` of something whose length is known at run time it is built piece by piece."""
        if not any(isinstance(e, ast.Starred) for e in node.elts):
            return super().expr_List(node)
        handle = self.new_list(())
        for element in node.elts:
            if isinstance(element, ast.Starred):
                self.list_extend(element, handle, self.expr(element.value))
            else:
                self.append(handle, self.expr(element), node)
        return handle

    # -- copies of lists ---------------------------------------------------------------------------------------------

    def list_item(self, base: List, where: ast.expr, node: ast.AST) -> Abstract:
        if not isinstance(where, ast.Slice):
            return super().list_item(base, where, node)
        parts = [Static(None) if p is None else self.expr(p) for p in (where.lower, where.upper, where.step)]
        contents = self.holding(base)
        if isinstance(contents, Items) and all(isinstance(p, Static) for p in parts):
            return self.new_list(contents.items[slice(*(p.value for p in parts if isinstance(p, Static)))])
        return self.sliced(base, parts, node)

    def assign_slice(self, base: List, where: ast.Slice, value: Abstract, node: ast.AST) -> Abstract:
        """`items[a:b] = others`: what is before, the others, and what is behind."""
        if self.is_row(base):
            if any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(where)):
                message = "a slice of a nested list with a call in its bounds is not supported"
                self.refuse("SD102", node, message, help_="assign the result of the call to a name first")
            return self.as_own(base, lambda own: self.assign_slice(own, where, value, node))
        others = self.new_list(())
        self.in_a_row(others, node, value)
        start, stop, step = [
            Static(None) if p is None else self.expr(p) for p in (where.lower, where.upper, where.step)
        ]
        contents, new = self.holding(base), self.holding(others)
        if isinstance(contents, Items) and isinstance(new, Items) and _are_static(start, stop, step):
            items = list(contents.items)
            try:
                items[slice(*(p.value for p in (start, stop, step) if isinstance(p, Static)))] = new.items
            except ValueError as error:
                self.raise_always(ValueError, str(error))
            self.hold_items(base, items, node)
            return Static(None)
        if step not in (Static(None), Static(1)):
            self.refuse("SD102", node, "a slice with a step cannot be assigned here", help_="write a loop")
        length = self.value(self.call_len(node, base))
        first, last = (self.slice_end(p, length, 1, node, k == 0) for k, p in enumerate((start, stop)))
        last = self.apply("where", self.apply("less", last, first), first, last)
        none, fresh = Static(None), self.new_list(())
        before, behind = self.sliced(base, [none, first, none], node), self.sliced(base, [last, none, none], node)
        self.in_a_row(fresh, node, before, others, behind)
        self.names[list_key(base)] = self.names[list_key(fresh)]
        return Static(None)

    def in_a_row(self, handle: List, node: ast.AST, *groups: Abstract) -> None:
        """Add all elements of one thing after the other to a list."""
        path = self.path
        for k, group in enumerate(groups):
            self.path = (*path, k)
            known = self.holding(group) if isinstance(group, List) else None
            self.list_extend(node, handle, Tuple(known.items) if isinstance(known, Items) else group)
        self.path = path

    # -- lists that change while they are gone through ---------------------------------------------------------------

    def watching_lengths(
        self, of: Abstract, found: Iteration, body: Callable[[Abstract], None], node: ast.AST
    ) -> Callable[[Abstract], None]:
        """What an iteration does, with a look at whether the lists that are gone through have got longer or shorter."""
        lengths = {h: self.value(found.length) for h in handles(of)}

        def watched(item: Abstract) -> None:
            before = {h: self.names[list_key(self.top_of(h))] for h in lengths}
            body(item)
            for handle, contents in before.items():
                self.same_length(handle, contents, lengths[handle], node)

        return watched

    def watching_items(
        self, of: Abstract, items: tuple[Abstract, ...], body: Callable[[Abstract], None], node: ast.AST
    ) -> Callable[[Abstract], None]:
        """The same for a loop that is written out: what it has not come to yet must stay."""
        before = {h: self.names[list_key(h)] for h in handles(of)}
        iterations = itertools.count(1)

        def watched(item: Abstract) -> None:
            ahead = 0 if isinstance(of, Reversed) else next(iterations)
            body(item)
            for handle, contents in before.items():
                if not self.stays(contents, self.names.get(list_key(handle), contents), ahead):
                    self.refuse("SD206", node, "the list changes while it is iterated", help_=_OVER_A_COPY)

        return watched

    def stays(self, before: Abstract, now: Abstract, ahead: int) -> bool:
        """Whether a list has the same elements from a place on, and as many."""
        if now is before or not isinstance(before, Items):
            return now is before
        if isinstance(now, Items):
            pairs = zip(before.items[ahead:], now.items[ahead:], strict=False)
            return len(before.items) == len(now.items) and all(a is b for a, b in pairs)
        is_as_long = isinstance(now, Stored) and self.constants.get(now.length) == len(before.items)
        return is_as_long and all(isinstance(i, List) for i in before.items)  # these have become rows

    def top_of(self, handle: List) -> List:
        """The list that a list is an element of; or itself."""
        slot = self.names[list_key(handle)]
        return slot.outer if isinstance(slot, Slot) else handle

    def same_length(self, handle: List, before: Abstract, length: Value, node: ast.AST) -> None:
        """A list must not change its length while it is iterated; of a list in a list that is seen at run time."""
        after = self.names.get(list_key(self.top_of(handle)), before)
        if after is before or not (isinstance(after, Stored) and isinstance(before, Stored)):
            return
        if self.is_row(handle):
            other = self.apply("not_equal", self.stored(handle).length, length)
            self.raise_if(other, RuntimeError, "the list changes its length while it is iterated")
            return
        if not is_still(after.length, before.length, self.operations):
            self.refuse("SD206", node, "the list changes its length while it is iterated", help_=_OVER_A_COPY)

    def call_len(self, node: ast.AST, x: Abstract) -> Abstract:
        raise NotImplementedError

    def sliced(self, base: List, parts: list[Abstract], node: ast.AST) -> Abstract:
        """A new list of some of the elements of one whose length is known at run time."""
        start, stop, step = parts
        if not isinstance(step, Static) or step.value == 0:
            self.refuse("SD205", node, "the step of a slice of a list must be known at compile time")
        by = 1 if step.value is None else step.value
        found = self.iteration(base, node)
        if not isinstance(found, Iteration):
            if not found:
                return self.new_list(())
            found = self.as_iteration(base)
        length = self.value(found.length)
        first, last = (self.slice_end(p, length, by, node, k == 0) for k, p in enumerate((start, stop)))
        count = self.apply("range_length", first, last, self.const(by))

        def element(k: Abstract) -> Abstract:
            scaled = self.apply("multiply", self.value(k), self.const(by))
            return found.element(self.apply("add", first, scaled))

        handle = self.new_list(())
        self.for_each(node, Iteration(count, element), lambda item: self.append(handle, item, node))
        return handle

    def slice_end(self, end: Abstract, length: Value, by: int, node: ast.AST, is_start: bool) -> Value:
        """An end of a slice as a position in the list, as `slice.indices` gives it."""
        if isinstance(end, Static) and end.value is None:
            if by > 0:
                return self.const(0) if is_start else length
            return self.apply("subtract", length, self.const(1)) if is_start else self.const(-1)
        position = self.integer(end, node)
        if by > 0:
            return self.within(position, length)
        from_end = self.apply("add", position, length)
        position = self.apply("where", self.apply("less", position, self.const(0)), from_end, position)
        position = self.apply("where", self.apply("less", position, self.const(-1)), self.const(-1), position)
        last = self.apply("subtract", length, self.const(1))
        return self.apply("where", self.apply("greater", position, last), last, position)

    def list_operator(self, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        lists = [x for x in (left, right) if isinstance(x, List)]
        grown = any(isinstance(self.holding(x), Stored) for x in lists)
        if op is ast.Add and len(lists) == 2 and grown:
            handle = self.new_list(())
            self.list_extend(node, handle, left)
            self.list_extend(node, handle, right)
            return handle
        if op is ast.Mult and len(lists) == 1:
            times = right if isinstance(left, List) else left
            contents = self.holding(lists[0])
            if isinstance(contents, Items) and (isinstance(times, Static) or len(contents.items) == 1):
                return super().list_operator(op, lists[0], times, node)
            handle = self.new_list(())
            iterations = Iteration(self.integer(times, node), lambda k: k)
            self.for_each(node, iterations, lambda _: self.extend_inside(node, handle, lists[0]))
            return handle
        return super().list_operator(op, left, right, node)

    def extend_inside(self, node: ast.AST, handle: List, items: List) -> None:
        """Extend a list in a loop of the same expression."""
        path, self.path = self.path, (*self.path, id(node))
        self.list_extend(node, handle, items)
        self.path = path

    def contains(self, item: Abstract, group: Abstract, negated: bool, node: ast.AST) -> Abstract:
        """`in` for ranges, and for what has its length at run time."""
        found: Abstract
        if isinstance(group, Range):
            found = self.in_range(item, group, node)
        elif (isinstance(group, Value) and isinstance(group.type, Array)) or (
            isinstance(group, List) and isinstance(self.holding(group), Stored)
        ):

            def either(so_far: Abstract, other: Abstract) -> Abstract:
                same = self.value(self.compare(ast.Eq(), other, item, node))
                return self.apply("logical_or", self.value(so_far), same)

            found = self.fold(node, group, Static(False), either)
        else:
            return super().contains(item, group, negated, node)
        if isinstance(found, Static):
            return Static(bool(found.value) != negated)
        return self.apply("logical_not", self.value(found)) if negated else found

    def in_range(self, item: Abstract, group: Range, node: ast.AST) -> Abstract:
        parts = (item, group.start, group.stop, group.step)
        if all(isinstance(p, Static) for p in parts):
            number, *bounds = (p.value for p in parts if isinstance(p, Static))
            return Static(number in range(*bounds))
        if not isinstance(group.step, Static):
            self.refuse("SD205", node, "the step of the range must be known at compile time")
        number = self.number(item, node)
        start, stop = self.number(group.start, node), self.number(group.stop, node)
        low, high = ("less_equal", "less") if group.step.value > 0 else ("greater_equal", "greater")
        inside = self.apply("logical_and", self.apply(low, start, number), self.apply(high, number, stop))
        if abs(group.step.value) == 1 and number.type == INT:
            return inside
        rest = self.apply("remainder", self.apply("subtract", number, start), self.const(abs(group.step.value)))
        return self.apply("logical_and", inside, self.apply("equal", rest, self.const(0)))

    def list_clear(self, node: ast.AST, owner: List) -> Abstract:
        contents = self.holding(owner)
        self.hold(owner, replace(contents, length=self.const(0)) if isinstance(contents, Stored) else Items(()))
        self.forget_slots(owner)
        return Static(None)

    def list_copy(self, node: ast.AST, owner: List) -> Abstract:
        contents = self.holding(owner)
        if isinstance(contents, Items):
            return self.new_list(contents.items)
        if self.is_row(owner):
            return self.new_list(self.flat(owner))
        stored = self.stored(owner)
        if not is_of_numbers(stored.element):
            self.refuse("SD102", node, f"a copy of {_OF_OTHERS} is not supported")
        copies = tuple(self.copy(x) for x in stored.arrays)
        return self.new_list(Stored(stored.element, copies, stored.length))

    # -- going through things ----------------------------------------------------------------------------------------

    def iteration(self, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        """How to go through it: element by element at run time, or one by one if the elements are known."""
        x = self.forced(self.drained(x, node))
        match x:
            case Tuple():
                return x.items
            case Record() if x.kind.is_mapping:
                return tuple(Static(name) for name in x.kind.names)
            case Static(value=str()):
                return tuple(Static(c) for c in x.value)
            case Static(value=enum.EnumType() | enum.Flag()):
                return tuple(Static(member) for member in x.value)
            case Range():
                return self.range_iteration(x)
            case List():
                contents = self.holding(x)
                if isinstance(contents, Items) and (not contents.items or not self.of_numbers(contents)):
                    return contents.items
                if isinstance(contents, Stored) and contents.element == NOTHING:
                    return ()
                return self.as_iteration(x)
            case Value(type=Array()):
                return Iteration(self.dim(x, 0), lambda k: self.row(x, k))
            case Enumerate():
                inner = self.iteration(x.of, node)
                if not isinstance(inner, Iteration):
                    numbers = [self.binary(ast.Add, Static(k), x.start, node) for k in range(len(inner))]
                    return tuple(Tuple((n, i)) for n, i in zip(numbers, inner, strict=True))
                found = inner
                return Iteration(
                    found.length, lambda k: Tuple((self.binary(ast.Add, k, x.start, node), found.element(k)))
                )
            case Zip():
                return self.zip_iteration(x, node)
            case Reversed():
                inner = self.iteration(x.of, node)
                if not isinstance(inner, Iteration):
                    return tuple(reversed(inner))
                forward = inner
                last = self.binary(ast.Sub, forward.length, Static(1), node)
                return Iteration(forward.length, lambda k: forward.element(self.binary(ast.Sub, last, k, node)))
        self.refuse("SD203", node, f"{self.in_words(x)} cannot be iterated")

    def of_numbers(self, contents: Items) -> bool:
        return is_of_numbers(self.common(contents))

    def row(self, array: Value, k: Abstract) -> Abstract:
        position = self.value(k)
        if array.array.rank == 1:
            return self.load(array, (position,))
        return self.view(array, (Index(position),))

    def range_iteration(self, x: Range) -> Iteration:
        if isinstance(x.start, Static) and isinstance(x.stop, Static) and isinstance(x.step, Static):
            length: Abstract = Static(length_of_range(x.start.value, x.stop.value, x.step.value))
        elif isinstance(x.start, Static) and x.start.value == 0 and isinstance(x.step, Static) and x.step.value == 1:
            stop = self.value(x.stop)
            length = self.apply("where", self.apply("greater", stop, self.const(0)), stop, self.const(0))
        else:
            length = self.apply("range_length", self.value(x.start), self.value(x.stop), self.value(x.step))

        def element(k: Abstract) -> Abstract:
            if isinstance(k, Static) and isinstance(x.start, Static) and isinstance(x.step, Static):
                return Static(x.start.value + k.value * x.step.value)
            scaled = self.apply("multiply", self.value(k), self.value(x.step))
            return self.apply("add", self.value(x.start), scaled)

        return Iteration(length, element)

    def known_length(self, x: Iteration | tuple[Abstract, ...]) -> int | None:
        if not isinstance(x, Iteration):
            return len(x)
        found = x.length.value if isinstance(x.length, Static) else self.constants.get(self.value(x.length))
        return found if isinstance(found, int) else None

    def stored_iteration(self, items: tuple[Abstract, ...], node: ast.AST) -> Iteration:
        """Elements that are all known, to be gone through beside something whose length is not."""
        if not items or not self.of_numbers(Items(items)):
            self.refuse("SD205", node, "`zip` of a tuple with a sequence of unknown length is not supported")
        return self.as_iteration(self.new_list(items))

    def zip_iteration(self, x: Zip, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        before, self.ends_early = self.ends_early, self.ends_early or not x.strict  # the others may be shorter
        inner = [self.iteration(i, node) for i in x.of]
        self.ends_early = before
        limits = [self.known_length(i) for i in inner]
        if x.strict:
            self.require_same_lengths([self.length_of(i) for i in inner], node)
        if any(not isinstance(i, Iteration) for i in inner) and None not in limits:
            limit = min(k for k in limits if k is not None)
            columns = [
                tuple(i.element(Static(k)) for k in range(limit)) if isinstance(i, Iteration) else i[:limit]
                for i in inner
            ]
            return tuple(Tuple(row) for row in zip(*columns, strict=True))
        parts = [i if isinstance(i, Iteration) else self.stored_iteration(i, node) for i in inner]
        if not parts:
            return ()
        length, *lengths = [i.length for i in parts]
        for other in () if x.strict else lengths:
            if isinstance(length, Static) and isinstance(other, Static):
                length = Static(min(length.value, other.value))
            elif length is not other:
                a, b = self.value(length), self.value(other)
                length = self.apply("where", self.apply("less", b, a), b, a)
        return Iteration(length, lambda k: Tuple(tuple(i.element(k) for i in parts)))

    def length_of(self, x: Iteration | tuple[Abstract, ...]) -> Abstract:
        known = self.known_length(x)
        return x.length if known is None and isinstance(x, Iteration) else Static(known)

    def require_same_lengths(self, lengths: list[Abstract], node: ast.AST) -> None:
        """Raise `ValueError` as `zip(..., strict=True)` does; here before the first iteration, there after the last."""
        values = [self.value(n) for n in lengths]
        if len({self.size_key(n) for n in values}) < 2:
            return
        if self.ends_early and not self.frame.library:
            message = "`strict=True` in a loop that may end before the lengths are compared is not supported"
            self.refuse("SD102", node, message, help_="compare the lengths before the loop")
        shortest = values[0]
        for value in values[1:]:
            shortest = self.apply("where", self.apply("less", value, shortest), value, shortest)
        for k, value in enumerate(values[1:], 1):
            is_it = self.apply("equal", value, shortest)
            is_shorter = self.apply("logical_and", is_it, self.apply("less", value, values[0]))
            self.raise_if(is_shorter, ValueError, f"zip() argument {k + 1} is shorter than {_arguments(k)}")
        for k, value in enumerate(values[1:], 1):
            is_longer = self.apply("greater", value, values[0])
            self.raise_if(is_longer, ValueError, f"zip() argument {k + 1} is longer than {_arguments(k)}")


_OF_OTHERS = "a list of arrays or lists"
_OVER_A_COPY = "iterate over a copy: `list(...)`"


def is_still(value: Value, before: Value, operations: Sequence[Operation]) -> bool:
    """Whether a value equals another one that branches and loops only carry."""
    if value is before:
        return True
    for operation in reversed(operations):
        if isinstance(operation, If) and value in operation.outs:
            k, sides = operation.outs.index(value), (operation.then, operation.orelse)
            return all(is_still(side.yields[k], before, (*operations, *side.operations)) for side in sides)
        if isinstance(operation, Loop) and value in operation.outs:
            k, body = operation.outs.index(value), operation.body
            stays = is_still(body.yields[k], operation.params[k], body.operations)
            return stays and is_still(operation.inits[k], before, operations)
    return False


def _arguments(count: int) -> str:
    return "argument 1" if count == 1 else f"arguments 1-{count}"


def _are_static(*parts: Abstract) -> bool:
    return all(isinstance(p, Static) for p in parts)
