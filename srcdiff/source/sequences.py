"""Lists, and going through things element by element."""

from __future__ import annotations

import ast
from collections.abc import Callable

from srcdiff.ir.nodes import Grow, Index, Pop, Push, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, Stack, is_float
from srcdiff.source.abstract import (
    Abstract,
    Description,
    Enumerate,
    Items,
    Iteration,
    List,
    Range,
    Reversed,
    Static,
    Stored,
    Tuple,
    Zip,
    describe,
    join,
    leaf_types,
    loosened,
)
from srcdiff.source.environment import list_key
from srcdiff.source.expressions import Expressions


class Sequences(Expressions):
    """Reads what lists do, and loops over elements."""

    def for_each(self, node: ast.AST, found: Iteration, body: Callable[[Abstract], None]) -> None:
        """A loop over all elements."""

        def turn(index: Value | None) -> None:
            assert index is not None
            body(found.element(index))

        bounds = (self.const(0), self.value(found.length), self.const(1))
        self.loop(node, frozenset(), bounds, None, turn)

    def fold(
        self, node: ast.AST, of: Abstract, start: Abstract | None, step: Callable[[Abstract, Abstract], Abstract]
    ) -> Abstract:
        """`step(...step(step(start, x0), x1)..., xn)` over the elements."""
        found = self.iteration(of, node)
        if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 8:
            found = tuple(found.element(Static(k)) for k in range(found.length.value))
        if not isinstance(found, Iteration):
            items = list(found) if start is None else [start, *found]
            if not items:
                self.refuse("SD203", node, "the sequence is empty")
            result = items[0]
            for item in items[1:]:
                result = step(result, item)
            return result
        key = (self.frame.number, f"%fold{id(node)}")
        first = start
        if first is None:
            empty = self.apply("less_equal", self.value(found.length), self.const(0))
            self.raise_if(empty, ValueError, "the sequence is empty")
            first = found.element(Static(0))
        self.names[key] = first

        def turn(item: Abstract) -> None:
            self.names[key] = step(self.names[key], item)

        self.for_each(node, found, turn)
        return self.checked(self.chosen(key), "the result", node)

    def list_append(self, node: ast.AST, owner: List, item: Abstract) -> Abstract:
        self.append(owner, item, node)
        return Static(None)

    def append(self, handle: List, item: Abstract, node: ast.AST) -> None:
        contents = self.names[list_key(handle)]
        if isinstance(contents, Items):
            self.names[list_key(handle)] = Items((*contents.items, item))
            return
        contents = self.stored(handle)
        element = join(contents.element, loosened(describe(item)))
        if element != contents.element:
            contents = self.restored(contents, element, node)
        arrays = []
        for array, leaf in zip(contents.arrays, self.leaves(item, element), strict=True):
            if isinstance(array.type, Stack):
                self.add(Push(array, leaf, span=self.span))
                arrays.append(array)
                continue
            grown = Value(array.type, array.name)
            self.add(Grow(grown, array, contents.length, span=self.span))
            self.store(grown, (contents.length,), leaf)
            arrays.append(grown)
        length = self.apply("add", contents.length, self.const(1))
        self.names[list_key(handle)] = Stored(element, tuple(arrays), length)

    def restored(self, contents: Stored, element: Description, node: ast.AST) -> Stored:
        """The list with elements of a wider type; in a loop the list starts with that type the next time it is read."""
        types = leaf_types(Description("stored", None, (element,)))
        if types is None or len(types) - 1 != len(contents.arrays):
            self.refuse("SD202", node, "the list holds elements of another type")
        arrays = []
        for array, type_ in zip(contents.arrays, types[:-1], strict=True):
            assert isinstance(type_, Array)
            if array.type == type_:
                arrays.append(array)
                continue
            wider = self.alloc(type_.dtype, (self.dim(array, 0),), None)
            self.for_each(
                node,
                Iteration(contents.length, lambda k: k),
                lambda k, wider=wider, array=array: self.write_element(  # type: ignore[misc]
                    wider, (self.value(k),), self.load(array, (self.value(k),))
                ),
            )
            arrays.append(wider)
        return Stored(element, tuple(arrays), contents.length)

    def list_extend(self, node: ast.AST, owner: List, items: Abstract) -> Abstract:
        found = self.iteration(items, node)
        if isinstance(found, Iteration):
            self.for_each(node, found, lambda item: self.append(owner, item, node))
        else:
            for item in found:
                self.append(owner, item, node)
        return Static(None)

    def list_pop(self, node: ast.AST, owner: List, where: Abstract = Static(-1)) -> Abstract:  # noqa: B008
        contents = self.names[list_key(owner)]
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
        if not at_end and any(isinstance(a.type, Stack) for a in contents.arrays):
            self.refuse("SD102", node, "`pop` from the middle of a list of arrays is outside the language")
        values = [self.taken_off(array, position) for array in contents.arrays]
        if not at_end:
            self.shift_down(contents, position, last, node)
        self.names[list_key(owner)] = Stored(contents.element, contents.arrays, last)
        return self.reassembled(contents, values)

    def taken_off(self, storage: Value, position: Value) -> Value:
        if not isinstance(storage.type, Stack):
            return self.load(storage, (position,))
        out = Value(storage.type.element)
        self.add(Pop(out, storage, span=self.span))
        return out

    def shift_down(self, contents: Stored, position: Value, last: Value, node: ast.AST) -> None:
        """Move the elements behind the position one place to the front."""

        def turn(index: Value | None) -> None:
            assert index is not None
            following = self.apply("add", index, self.const(1))
            for array in contents.arrays:
                self.store(array, (index,), self.load(array, (following,)))

        self.loop(node, frozenset(), (position, last, self.const(1)), None, turn)

    def list_clear(self, node: ast.AST, owner: List) -> Abstract:
        contents = self.names[list_key(owner)]
        if isinstance(contents, Stored):
            self.names[list_key(owner)] = Stored(contents.element, contents.arrays, self.const(0))
        else:
            self.names[list_key(owner)] = Items(())
        return Static(None)

    def list_copy(self, node: ast.AST, owner: List) -> Abstract:
        contents = self.names[list_key(owner)]
        if isinstance(contents, Items):
            return self.new_list(contents.items)
        stored = self.stored(owner)
        if any(isinstance(x.type, Stack) for x in stored.arrays):
            self.refuse("SD102", node, "a copy of a list of arrays is outside the language")
        copies = tuple(self.copy(x) for x in stored.arrays)
        return self.new_list(Stored(stored.element, copies, stored.length))

    def write_element(self, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
        """Store with the conversion that NumPy makes."""
        if not is_float(array.type):
            value = self.cast(value, BOOL if array.array.dtype == "bool" else INT)
        elif not is_float(value.type):
            value = self.cast(value, FLOAT)
        self.store(array, indices, value, adds)

    # -- going through things ----------------------------------------------------------------------------------------

    def iteration(self, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        """How to go through it: element by element at run time, or one by one if the elements are known."""
        match x:
            case Tuple():
                return x.items
            case Static(value=str()):
                return tuple(Static(c) for c in x.value)
            case Range():
                return self.range_iteration(x)
            case List():
                contents = self.names[list_key(x)]
                if isinstance(contents, Items) and (not contents.items or not self.of_numbers(contents)):
                    return contents.items
                stored = self.stored(x)
                return Iteration(
                    stored.length,
                    lambda k: self.reassembled(stored, [self.element_of(a, self.value(k)) for a in stored.arrays]),
                )
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
        self.refuse("SD203", node, f"{self.said(x)} cannot be iterated")

    def of_numbers(self, contents: Items) -> bool:
        types = leaf_types(self.common(contents))
        return types is not None and all(isinstance(t, Scalar) for t in types)

    def common(self, contents: Items) -> Description:
        joined = loosened(describe(contents.items[0]))
        for item in contents.items[1:]:
            joined = join(joined, loosened(describe(item)))
        return joined

    def row(self, array: Value, k: Abstract) -> Abstract:
        position = self.value(k)
        if array.array.rank == 1:
            return self.load(array, (position,))
        return self.view(array, (Index(position),))

    def range_iteration(self, x: Range) -> Iteration:
        if isinstance(x.start, Static) and isinstance(x.stop, Static) and isinstance(x.step, Static):
            length: Abstract = Static(len(range(x.start.value, x.stop.value, x.step.value)))
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

    def zip_iteration(self, x: Zip, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        inner = [self.iteration(i, node) for i in x.of]
        if any(not isinstance(i, Iteration) for i in inner):
            limit = min(len(i) for i in inner if not isinstance(i, Iteration))
            columns = [
                tuple(i.element(Static(k)) for k in range(limit)) if isinstance(i, Iteration) else i[:limit]
                for i in inner
            ]
            if any(isinstance(i, Iteration) for i in inner):
                self.refuse("SD205", node, "`zip` of a tuple with something of unknown length")
            return tuple(Tuple(row) for row in zip(*columns, strict=True))
        parts = [i for i in inner if isinstance(i, Iteration)]
        if not parts:
            return ()
        lengths = [i.length for i in parts]
        length = lengths[0]
        for other in lengths[1:]:
            if isinstance(length, Static) and isinstance(other, Static):
                length = Static(min(length.value, other.value))
            elif length is not other:
                a, b = self.value(length), self.value(other)
                length = self.apply("where", self.apply("less", b, a), b, a)
        return Iteration(length, lambda k: Tuple(tuple(i.element(k) for i in parts)))
