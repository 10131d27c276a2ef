"""Array expressions become loops over elements.

An expression such as `np.sum((x * w + b) ** 2)` is not computed operation by operation: each operation returns a `Lazy`
array, which knows its shape and how to write the computation of one element. The consumer, a reduction or an
assignment, writes the loop. A name always refers to a computed array.

Sizes that are not known to be equal are compared at run time, and `ValueError` is raised as NumPy does. A size that is
one only at run time is broadcast, as in NumPy, if `exact` is set; without it, the program assumes that such sizes are
equal, and raises if they are not (the caller then reads it again, with `exact`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from srcdiff.frontend.abstract_values import Abstract, Drawn, Items, Lazy, List, Size, Static, Through, Tuple
from srcdiff.frontend.environment import NeverReturns
from srcdiff.frontend.expressions import ufunc_of
from srcdiff.frontend.iterators import AS_LIST, Iterators
from srcdiff.frontend.shapes import ONE, Key, may_meet
from srcdiff.ir.nodes import Block, Formatted, If, Index, Item, Loop, NewAxis, Raise, Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, FLOAT32, INT, NEGATIVE, TOO_LARGE, Array, Scalar, is_float

Places = tuple[Value, ...]
_WIDE = ("float64", "float32", "int64", "int32", "bool")


Update = type[ast.operator] | np.ufunc
"""What `+=` and `np.add.at` do with an element and another number."""


class WholeArrays(Iterators):
    """Reads operations on whole arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.exact = False
        self.assumes = False
        """Whether sizes were taken to be equal where one of them might be one."""
        self.trusted = False
        """Whether sizes that must be equal are: in adjoints of library calls, whose arguments have been checked."""

    # -- arrays that are not computed yet ----------------------------------------------------------------------------

    def lazy(self, x: Abstract, node: ast.AST) -> Lazy:
        """The array, element by element."""
        if isinstance(x, Lazy):
            if x.array is None:
                return x
            x = x.array
        if isinstance(x, List | Tuple):
            x = self.array_of(x, node)
        if not (isinstance(x, Value) and isinstance(x.type, Array)):
            number = self.number(x, node)
            return Lazy(number.scalar.dtype, (), lambda _: number, plain=True)
        array, keys = x, self.keys(x)
        base, to_base = self.through(array)
        sizes = tuple(Size(key, lambda axis=axis: self.dim(array, axis)) for axis, key in enumerate(keys))  # type: ignore[misc]
        return Lazy(x.type.dtype, sizes, lambda places: self.load(base, to_base(places)), ((array, True),), True)

    def through(self, array: Value) -> tuple[Value, Callable[[Places], Places]]:
        """The array that a view is part of, if its elements are there at a fixed distance, and how to find them.

        Only places that are counted from the start are found: one from the end of a view is elsewhere in the array.
        """
        found = self.parts.get(array)
        if found is None or not self.fixed_distance(found[1]):
            return array, lambda places: places
        base, items = found
        outer, onwards = self.through(base)

        def to_base(places: Places) -> Places:
            rest = iter(places)
            inner: list[Value] = []
            for item in items:
                if isinstance(item, Index):
                    inner.append(item.value)
                elif isinstance(item, Slice):
                    place = next(rest)
                    inner.append(place if item.start is None else self.apply("add", place, item.start))
                else:
                    next(rest)
            return onwards((*inner, *rest))

        return outer, to_base

    def fixed_distance(self, items: tuple[Item, ...]) -> bool:
        """Whether a view only leaves elements out at the front and at the end, none in between."""
        for item in items:
            if isinstance(item, Slice):
                start, step = self.known(item.start), self.known(item.step)
                if step not in (None, 1) or not (start is None or (isinstance(start, int) and start >= 0)):
                    return False
            if isinstance(item, Index) and not (
                isinstance(self.known(item.value), int) and self.known(item.value) >= 0
            ):
                return False
        return True

    def new_lazy(
        self, dtype: str, sizes: Sequence[Size], at: Callable[[Places], Value], of: Sequence[Lazy], aligned: bool = True
    ) -> Lazy:
        reads = tuple((array, same and aligned) for lazy in of for array, same in lazy.reads)
        for lazy in of:
            self.pending.discard(lazy)
        made = Lazy(dtype, tuple(sizes), at, reads, home=self.operations, ordered=all(lazy.ordered for lazy in of))
        self.pending.add(made)
        return made

    def array_of(self, x: Abstract, node: ast.AST) -> Value:
        raise NotImplementedError

    def forced(self, x: Abstract) -> Abstract:
        """The array itself, computed; anything else as it is."""
        if isinstance(x, Through | Drawn):
            self.refuse("SD102", None, f"{self.in_words(x)} is an iterator that is not consumed here", help_=AS_LIST)
        if not isinstance(x, Lazy):
            return x
        if x.array is None:
            self.pending.discard(x)
            if not x.sizes:
                return x.at(())
            array = self.alloc(x.dtype, tuple(s.value() for s in x.sizes), None)
            self.sizes[array] = tuple(s.key for s in x.sizes)
            if not x.ordered and x.rank > 1:
                self.contiguous.discard(array)
            self.laid_out_like(array, (source for source, _ in x.reads))
            self.computed.add(array)
            self.nest(x.sizes, lambda places: self.write_element(array, places, x.at(places)))
            if x.view_of is not None:
                self.doubt(x.view_of, array)
            if x.home is not self.operations:
                return array
            x.array = array
        return x.array

    def settle(self) -> None:
        if not self.frame.library:
            for lazy in sorted(self.pending, key=lambda lazy: lazy.number):
                self.forced(lazy)
            self.pending.clear()

    def nest(self, sizes: Sequence[Size], body: Callable[[Places], None], names: str = "ijklmn") -> None:
        """Loops over all places of an array of these sizes."""
        ends = [self.end(s) for s in sizes]

        def level(axis: int, places: Places) -> None:
            if axis == len(sizes):
                body(places)
                return
            index = Value(INT, names[axis % len(names)])
            bounds = (self.const(0), ends[axis], self.const(1))
            with self.block() as operations:
                level(axis + 1, (*places, index))
            self.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=self.span))

        level(0, ())

    def end(self, size: Size) -> Value:
        """Where a loop over so many elements ends; for an empty part, anything below zero will do."""
        kind, *rest = self.canonical(size.key)
        of: Any = rest[0]
        if kind == "-" and of[0] == "d":
            return self.apply("subtract", self.dim(of[1], of[2]), self.const(rest[1]))
        return size.value()

    # -- element by element ------------------------------------------------------------------------------------------

    def elementwise(
        self,
        operands: Sequence[Abstract],
        combine: Callable[[list[Value]], Abstract],
        dtype: str,
        node: ast.AST,
    ) -> Abstract:
        """The operation on all elements, with NumPy's broadcasting."""
        self.require_wide(dtype, node)
        lazies = [self.lazy(x, node) for x in operands]
        sizes, places, straight = self.broadcast(lazies, node)
        lazies = [self.once(lazy, sizes, node) for lazy in lazies]
        single = dtype == "float32"
        if dtype == "bool" and len(lazies) == 2 and "float32" in (lazies[0].dtype, lazies[1].dtype):  # compared in one
            single = self.promoted(np.add, operands, node) == "float32"

        def at(where: Places) -> Value:
            values = [lazy.at(place(where)) for lazy, place in zip(lazies, places, strict=True)]
            if single:
                values = [self.cast(v, FLOAT32) if v.type == FLOAT else v for v in values]
            return self.wrapped(self.as_element(self.number(combine(values), node), dtype), dtype)

        if not sizes:
            return at(())
        return self.new_lazy(dtype, sizes, at, lazies, straight)

    def wrapped(self, value: Value, dtype: str) -> Value:
        """A number as an array of this type holds it: one that is too large for 32 bits wraps around."""
        if dtype != "int32" or value.type != INT or self.held.get(value) == "int32":
            return value
        if -(2**31) <= self.constants.get(value, 2**31) < 2**31:
            return value
        half, whole = self.const(2**31), self.const(2**32)
        return self.apply("subtract", self.apply("remainder", self.apply("add", value, half), whole), half)

    def require_wide(self, dtype: str, node: ast.AST) -> None:
        """Refuse results of a type that is not computed in."""
        if dtype in _WIDE:
            return
        if dtype == "float16":
            message, help_ = "NumPy computes this in float16, which is not supported", "convert with `.astype(float)`"
        elif dtype == "object":
            message, help_ = "an operand is not a number", "check the operands: one of them may be `None`"
        else:
            message = f"the result has the dtype {dtype}, whose arithmetic wraps around"
            help_ = "convert the operands first: `.astype(int)`"
        self.refuse("SD201", node, message, help_=help_)

    def as_element(self, value: Value, dtype: str) -> Value:
        return self.cast(value, Scalar(dtype) if dtype in ("float64", "float32", "bool") else INT)

    def once(self, lazy: Lazy, sizes: Sequence[Size], node: ast.AST) -> Lazy:
        """An operand that is stretched is computed first, so that no element is computed twice."""
        if lazy.plain or not lazy.sizes:
            return lazy
        stretched = len(lazy.sizes) < len(sizes) or any(
            self.canonical(own.key) == ONE and self.canonical(size.key) != ONE
            for own, size in zip(lazy.sizes, sizes[len(sizes) - len(lazy.sizes) :], strict=True)
        )
        return self.lazy(self.forced(lazy), node) if stretched else lazy

    def broadcast(
        self, lazies: Sequence[Lazy], node: ast.AST, exception: type[BaseException] = ValueError
    ) -> tuple[tuple[Size, ...], list[Callable[[Places], Places]], bool]:
        """The common shape, how a place in it becomes a place in each operand, and whether these are all the same."""
        rank = max((lazy.rank for lazy in lazies), default=0)
        sizes: list[Size] = []
        steps: list[list[Value | int | None]] = [[] for _ in lazies]
        for axis in range(rank):
            own = [lazy.sizes[axis - rank + lazy.rank] if axis >= rank - lazy.rank else None for lazy in lazies]
            size = self.common_size([s for s in own if s is not None], lazies, exception)
            sizes.append(size)
            for step, mine in zip(steps, own, strict=True):
                if mine is not None:
                    step.append(self.step(mine, size))

        def to_own(steps: list[Value | int | None]) -> Callable[[Places], Places]:
            def place(where: Places) -> Places:
                last = where[len(where) - len(steps) :] if steps else ()
                return tuple(self.stepped(i, s) for i, s in zip(last, steps, strict=True))

            return place

        straight = all(len(s) in (0, rank) and all(one is None for one in s) for s in steps)
        return tuple(sizes), [to_own(s) for s in steps], straight

    def step(self, mine: Size, size: Size) -> Value | int | None:
        """How far to go in an operand for one step along the axis: one (None), none at all, or known at run time."""
        own, whole = self.canonical(mine.key), self.canonical(size.key)
        if own == whole:
            return None
        if own == ONE:
            return 0
        is_one = self.apply("equal", mine.value(), self.const(1))
        return self.apply("where", is_one, self.const(0), self.const(1))

    def stepped(self, index: Value, step: Value | int | None) -> Value:
        if step is None:
            return index
        return self.const(0) if isinstance(step, int) else self.apply("multiply", index, step)

    def common_size(self, sizes: list[Size], operands: Sequence[Lazy], exception: type[BaseException]) -> Size:
        found = sizes[0]
        for size in sizes[1:]:
            a, b = self.canonical(found.key), self.canonical(size.key)
            if a == b or b == ONE:
                continue
            if a == ONE:
                found = size
            elif self.exact and (self.may_be_one(a) or self.may_be_one(b)):
                found = self.stretched(found, size, operands)
            else:
                self.require_equal(found, size, lambda: self.shapes_in_words(operands), exception)
        return found

    def may_be_one(self, key: tuple[Any, ...]) -> bool:
        return key[0] != "n" and key not in self.not_one

    def stretched(self, a: Size, b: Size, operands: Sequence[Lazy]) -> Size:
        """The larger of two sizes of which one may be one."""
        first, second = a.value(), b.value()
        one = self.const(1)
        differ = self.apply("not_equal", first, second)
        both = self.apply("logical_and", self.apply("not_equal", first, one), self.apply("not_equal", second, one))
        self.raise_with(self.apply("logical_and", differ, both), ValueError, self.shapes_in_words(operands))
        size = self.apply("where", self.apply("equal", first, one), second, first)
        return Size(self.size_key(size), lambda: size)

    def require_equal(
        self,
        a: Size,
        b: Size,
        words: Callable[[], tuple[str | Value, ...]],
        exception: type[BaseException] = ValueError,
    ) -> None:
        """Raise an exception where the sizes differ; after that they are the same."""
        if self.canonical(a.key) == self.canonical(b.key):
            return
        if self.trusted:
            self.equal_from_here(a.key, b.key)
            return
        if a.key[0] == b.key[0] == "n":
            self.raise_with(self.const(True), exception, words())
            return
        self.assumes = not self.exact
        self.raise_with(self.apply("not_equal", a.value(), b.value()), exception, words())
        self.equal_from_here(a.key, b.key)

    def require_shape(self, sizes: Sequence[Value], dtype: str, text: str = NEGATIVE) -> None:
        """Raise an exception where no array has these lengths; after that they are lengths."""
        if self.trusted:
            return
        for size in sizes:
            if self.constants.get(size, 0) < 0:
                self.raise_always(ValueError, text)
            if not self.is_natural(size):
                self.raise_if(self.apply("less", size, self.const(0)), ValueError, text)
                self.same = {**self.same, ("natural", size): ONE}
        self.require_fitting(sizes, np.dtype(dtype).itemsize)

    def require_fitting(self, sizes: Sequence[Value], itemsize: int) -> None:
        """Raise an exception where an array has more bytes than there are addresses: not so of what exists."""
        unknown = [s for s in sizes if s not in self.constants]
        most = (2**63 - 1) // max(1, math.prod(self.constants[s] for s in sizes if s in self.constants) * itemsize)
        checked: Key = ("fits", *sorted(map(id, unknown)), most)
        if all(s in self.lengths_of_arrays for s in unknown) or checked in self.same:
            return
        self.same = {**self.same, checked: ONE}
        if len(unknown) == 1:
            too_large = self.apply("greater", unknown[0], self.const(most))
        else:
            product = self.cast(unknown[0], FLOAT)
            for size in unknown[1:]:
                product = self.apply("multiply", product, self.cast(size, FLOAT))
            too_large = self.apply("greater", product, self.const(float(most)))
        self.raise_if(too_large, ValueError, TOO_LARGE)

    def raise_with(self, condition: Value, exception: type[BaseException], parts: tuple[str | Value, ...]) -> None:
        with self.block() as operations:
            template = "".join("{}" if isinstance(p, Value) else p for p in parts)
            values = tuple(p for p in parts if isinstance(p, Value))
            self.add(Raise(exception, (Formatted(template, values),) if values else (template,), span=self.span))
        self.add(If(condition, Block(tuple(operations)), Block(), span=self.span))

    def shapes_in_words(self, operands: Sequence[Lazy]) -> tuple[str | Value, ...]:
        parts: list[str | Value] = ["operands could not be broadcast together with shapes"]
        for operand in operands:
            if operand.sizes:
                parts += [" ", *self.shape_in_words(operand)]
        return tuple(parts)

    def shape_in_words(self, operand: Lazy) -> list[str | Value]:
        parts: list[str | Value] = ["("]
        for axis, size in enumerate(operand.sizes):
            parts += [","] if axis else []
            parts.append(str(size.key[1]) if size.key[0] == "n" else size.value())
        return [*parts, ",)" if len(operand.sizes) == 1 else ")"]

    # -- writing -----------------------------------------------------------------------------------------------------

    def assign_array(self, target: Value, value: Abstract, node: ast.AST, op: Update | None = None) -> None:
        """`target[...] = value` or `target[...] op= value`, as if the right side were computed first."""
        source = self.lazy(value, node)
        self.require_update(target, op, source if isinstance(value, List | Tuple) else value, node)
        mine = self.lazy(target, node)
        if source.rank > mine.rank:
            source = self.without_first_axes(source, mine)
        self.require_fit(source, mine)
        if not self.safe(source, target):
            self.note_overlap(source, target, node, in_place=op is not None)
            source = self.lazy(self.forced(source), node)
        source = self.once(source, mine.sizes, node)
        self.pending.discard(source)
        self.settle()
        offset = mine.rank - source.rank
        own_sizes = zip(source.sizes, mine.sizes[offset:], strict=True)
        steps = [self.step(own, size) for own, size in own_sizes]

        base, to_base = self.through(target)

        def write(places: Places) -> None:
            self.write_part(base, to_base(places), source.at(self.mapped(places, steps)), node, op)

        self.nest(mine.sizes, write)

    def note_overlap(self, source: Lazy, target: Value, node: ast.AST, *, in_place: bool) -> None:
        raise NotImplementedError

    def without_first_axes(self, source: Lazy, target: Lazy) -> Lazy:
        """What has more axes than what it is written to, whose first axes must have the length one."""
        count = source.rank - target.rank
        one = Size(ONE, lambda: self.const(1))
        for size in source.sizes[:count]:
            self.require_equal(size, one, lambda: self.assignment_in_words(source, target))
            if size.key[0] == "n" and size.key != ONE:
                raise NeverReturns
        first = (self.const(0),) * count
        reads = tuple((array, False) for array, _ in source.reads)
        return Lazy(source.dtype, source.sizes[count:], lambda p: source.at((*first, *p)), reads, source.plain)

    def require_update(self, target: Value, op: Update | None, value: Abstract, node: ast.AST) -> None:
        """Refuse `op=` where NumPy does: the array cannot hold what comes of it."""
        if op is None:
            return
        ufunc = op if isinstance(op, np.ufunc) else ufunc_of(op)
        self.require_cast(self.promoted(ufunc, (target, value)[: ufunc.nin], node), target, node)

    def require_cast(self, dtype: str, target: Value, node: ast.AST, casting: Any = "same_kind") -> None:
        """Reject values that NumPy does not convert implicitly to the type of an array."""
        if not np.can_cast(dtype, target.array.dtype, casting):
            message = f"an array of dtype {target.array.dtype} cannot hold a result of dtype {dtype}"
            self.refuse("SD203", node, message, help_="convert the result with `.astype`, or assign it to a new array")

    def mapped(self, places: Places, steps: list[Value | int | None]) -> Places:
        last = places[len(places) - len(steps) :] if steps else ()
        return tuple(self.stepped(i, s) for i, s in zip(last, steps, strict=True))

    def require_fit(self, source: Lazy, target: Lazy) -> None:
        """Raise `ValueError` where an array cannot be stretched to the shape of another."""
        for own, size in zip(source.sizes, target.sizes[target.rank - source.rank :], strict=True):
            key = self.canonical(own.key)
            if key != ONE and key != self.canonical(size.key):
                if self.exact and self.may_be_one(key):
                    self.stretched_into(own, size, source, target)
                else:
                    self.require_equal(own, size, lambda: self.assignment_in_words(source, target))

    def stretched_into(self, own: Size, size: Size, source: Lazy, mine: Lazy) -> None:
        a, b = own.value(), size.value()
        fits = self.apply("logical_or", self.apply("equal", a, b), self.apply("equal", a, self.const(1)))
        self.raise_with(self.apply("logical_not", fits), ValueError, self.assignment_in_words(source, mine))

    def assignment_in_words(self, source: Lazy, target: Lazy) -> tuple[str | Value, ...]:
        start = "could not broadcast input array from shape "
        return (start, *self.shape_in_words(source), " into shape ", *self.shape_in_words(target))

    def write_part(self, target: Value, places: Places, value: Value, node: ast.AST, op: Update | None) -> None:
        """Assign an element, or add to it, or whatever the operator is."""
        if op in (ast.Add, ast.Sub) and is_float(target.type):
            amount = value if is_float(value.type) else self.cast(value, FLOAT)
            self.write_element(target, places, amount if op is ast.Add else self.apply("negative", amount), adds=True)
            return
        if op is not None:
            old = self.load(target, places)
            value = self.number(self.updated_element(op, old, value, node), node)
        self.write_element(target, places, self.wrapped(value, target.array.dtype))

    def updated_element(self, op: Update, old: Value, value: Value, node: ast.AST) -> Abstract:
        if isinstance(op, np.ufunc) or op is ast.Pow:
            return self.updated(op, old, value, node)
        return self.arithmetic(op, old, value, node)

    def updated(self, op: Update, old: Abstract, value: Abstract, node: ast.AST) -> Abstract:
        if op in (ast.Pow, np.power) and isinstance(old, Value) and isinstance(value, Value):
            return self.power_of_elements(old, value, node)
        if isinstance(op, np.ufunc):
            return self.call_value(Static(op), [old, value][: op.nin], node)
        return self.binary(op, old, value, node)

    def holds_floats(self, x: Abstract) -> bool:
        if isinstance(x, Lazy):
            return x.dtype.startswith("float")
        return is_float(x.type) if isinstance(x, Value) else isinstance(x, Static) and isinstance(x.value, float)

    def safe(self, source: Lazy, target: Value) -> bool:
        """Whether elements may be written while others are still to be read."""
        return all(
            self.disjoint(array, target) or (aligned and self.same_part(array, target))
            for array, aligned in source.reads
        )

    def view_of_element(self, array: Value, place: Places) -> Value:
        """An array without axes that is an element of another."""
        return self.view(array, tuple(map(Index, place))) if place else array

    def seen_element(self, array: Value, indices: Places) -> tuple[Value, Places]:
        """The element that an array without axes is a view of."""
        whole, items = self.parts.get(array, (array, ()))
        place = tuple(i.value for i in items if isinstance(i, Index))
        return (whole, place) if array.array.rank == 0 and place and len(place) == len(items) else (array, indices)

    def load(self, array: Value, indices: Places, name: str = "") -> Value:
        value = super().load(*self.seen_element(array, indices), name)
        if value.type == INT and array not in self.storage:
            self.held[value] = array.array.dtype
        return value

    def store(self, array: Value, indices: Places, value: Value, adds: bool = False) -> None:
        array, indices = self.seen_element(array, indices)
        if array not in self.storage:  # that nothing else refers to
            self.may_write(array)
        super().store(array, indices, value, adds)

    def may_write(self, array: Value) -> None:
        """Refuse to write into an array of which it is not known what else it is."""
        base, origins = self.base(array), self.origins_of(array)
        made = self.born[base] if base in self.new else 0  # what was made later has nothing to do with it
        if any(may_meet(origins, d.array | d.copied) for d in self.doubts if made <= d.born):
            self.refuse("SD303", None, _MAY_BE_A_COPY, help_="copy the array before writing to it: `.copy()`")

    # -- index arrays and masks --------------------------------------------------------------------------------------

    def is_array(self, x: Abstract) -> bool:
        return isinstance(x, Lazy) or (isinstance(x, Value) and isinstance(x.type, Array) and x.type.rank > 0)

    def picks(self, item: Abstract) -> bool:
        """Whether a part of a subscript is an index array, or a list of positions."""
        return self.is_array(item) or isinstance(item, List)

    def index_arrays(self, items: list[Abstract | Item], array: Value, node: ast.AST) -> list[Lazy | Item]:
        """The parts of a subscript with masks replaced by the positions where they hold."""
        found: list[Lazy | Item] = []
        axis = 0
        for item in items:
            if isinstance(item, Slice | Index | NewAxis):
                found.append(item)
                axis += not isinstance(item, NewAxis)
                continue
            lazy = self.lazy(item, node)
            if lazy.dtype == "bool":
                for k, size in enumerate(lazy.sizes):
                    self.require_mask(size, self.axis_size(array, axis + k), axis + k)
                positions = self.positions_of(lazy, node)
                found += [self.lazy(p, node) for p in positions]
                axis += len(positions)
                continue
            if lazy.dtype.startswith("float"):
                self.refuse("SD203", node, "an index array must hold integers or booleans")
            if not lazy.plain:
                lazy = self.lazy(self.forced(lazy), node)
            self.check_positions(lazy, self.axis_size(array, axis))
            found.append(lazy)
            axis += 1
        return found

    def require_mask(self, own: Size, size: Size, axis: int) -> None:
        def words() -> tuple[str | Value, ...]:
            start = f"boolean index did not match the array along axis {axis}: it has the length "
            return (start, size.value(), ", the boolean index has ", own.value())

        self.require_equal(own, size, words, IndexError)

    def axis_size(self, array: Value, axis: int) -> Size:
        return Size(self.keys(array)[axis], lambda: self.dim(array, axis))

    def positions_of(self, mask: Lazy, node: ast.AST) -> tuple[Abstract, ...]:
        raise NotImplementedError

    def check_positions(self, lazy: Lazy, size: Size) -> None:
        """Raise `IndexError` where a position is outside of the axis."""
        length = size.value()
        lowest = self.apply("negative", length)

        def check(places: Places) -> None:
            position = lazy.at(places)
            below = self.apply("less", position, lowest)
            outside = self.apply("logical_or", below, self.apply("greater_equal", position, length))
            words = ("index ", position, " is out of bounds for axis with size ", length)
            self.raise_with(outside, IndexError, words)

        self.nest(lazy.sizes, check)

    def picked(self, array: Value, items: list[Abstract | Item], node: ast.AST) -> Picked:
        """The elements that a subscript with index arrays chooses."""
        parts = self.index_arrays(items, array, node)
        parts += [Slice(None, None, None)] * (array.array.rank - sum(not isinstance(p, NewAxis) for p in parts))
        advanced = [k for k, p in enumerate(parts) if isinstance(p, Lazy | Index)]
        together = advanced == list(range(advanced[0], advanced[-1] + 1))
        basic: list[Item] = [Slice(None, None, None) if isinstance(p, Lazy | Index) else p for p in parts]
        plain = all(isinstance(b, Slice) and not b.parts() for b in basic)
        base = array if plain else self.view(array, tuple(basic))
        chosen = [self.position(parts[k], node) for k in advanced]
        sizes, places, _ = self.broadcast(chosen, node, IndexError)
        rest = [k for k in range(len(parts)) if k not in advanced]
        front = 0 if not together else sum(k < advanced[0] for k in rest)
        rest_sizes = [self.axis_size(base, k) for k in rest]
        every = (*rest_sizes[:front], *sizes, *rest_sizes[front:])

        def place(where: Places) -> Places:
            inner = where[front : front + len(sizes)]
            others = iter((*where[:front], *where[front + len(sizes) :]))
            at = {k: lazy.at(to(inner)) for k, lazy, to in zip(advanced, chosen, places, strict=True)}
            return tuple(at[k] if k in at else next(others) for k in range(len(parts)))

        return Picked(base, every, place, tuple(chosen))

    def position(self, part: Lazy | Item, node: ast.AST) -> Lazy:
        if isinstance(part, Lazy):
            return part
        assert isinstance(part, Index)
        value = part.value
        return Lazy("int64", (), lambda _: value, plain=True)

    def read_picked(self, array: Value, items: list[Abstract | Item], node: ast.AST) -> Abstract:
        chosen = self.picked(array, items, node)
        base = chosen.base
        made = self.new_lazy(
            base.array.dtype, chosen.sizes, lambda where: self.load(base, chosen.place(where)), chosen.indices, False
        )
        made.reads = (*made.reads, (base, False))
        made.ordered = False
        return made

    def write_picked(
        self,
        array: Value,
        items: list[Abstract | Item],
        value: Abstract,
        node: ast.AST,
        op: Update | None = None,
        *,
        one_by_one: bool = False,
    ) -> None:
        """`array[items] = value`; with an operator every element is read before any is written (NumPy's rule)."""
        masks = [i for i in items if self.is_array(i) and self.lazy(i, node).dtype == "bool"]  # type: ignore[arg-type]
        if len(items) == 1 and masks and not self.is_array(value) and not isinstance(value, List):
            self.write_masked(array, self.lazy(masks[0], node), value, node, op)  # type: ignore[arg-type]
            return
        if op is None and len(items) == 1 and masks and self.lazy(masks[0], node).rank == array.array.rank:  # type: ignore[arg-type]
            self.require_apart(array, value, node)
        if not one_by_one:
            self.require_update(array, op, self.lazy(value, node) if isinstance(value, List | Tuple) else value, node)
        items = [self.unharmed(i, array, node) for i in items]
        distinct = one_by_one or len(masks) == sum(not isinstance(i, Slice | Index | NewAxis) for i in items)
        chosen = self.picked(array, items, node)
        source = self.lazy(value, node)
        if op is not None and not distinct:
            gathered = self.read_picked(array, items, node)
            source = self.lazy(self.forced(self.updated(op, gathered, source, node)), node)
            op = None
        target = Lazy(array.array.dtype, chosen.sizes, lambda _: self.const(0))
        self.require_fit(source, target)
        if not all(self.disjoint(a, array) for a, _ in source.reads):
            source = self.lazy(self.forced(source), node)
        self.pending.discard(source)
        self.settle()
        own_sizes = zip(source.sizes, target.sizes[target.rank - source.rank :], strict=True)
        steps = [self.step(own, size) for own, size in own_sizes]

        def write(where: Places) -> None:
            element = source.at(self.mapped(where, steps))
            self.write_part(chosen.base, chosen.place(where), element, node, op)

        self.nest(chosen.sizes, write)

    def require_apart(self, array: Value, value: Abstract, node: ast.AST) -> None:
        """Refuse to write parts of an array into it where NumPy reads them while it writes."""
        if isinstance(value, Lazy) and value.view_of is None and value.array is None:
            return  # it is computed anew
        if self.is_array(value) and not all(self.disjoint(a, array) for a, _ in self.lazy(value, node).reads):
            self.refuse_shared(node)

    def require_order(self, target: Value, value: Abstract, node: ast.AST) -> None:
        """The same for one axis that is copied to another: NumPy makes no copy, it only chooses where to begin."""
        if target.array.rank != 1 or not isinstance(value, Value | Lazy):
            return
        seen = value if isinstance(value, Value) else value.view_of
        if seen is None or not isinstance(seen.type, Array) or self.disjoint(seen, target):
            return
        if value is not seen or (seen.array.rank == 1 and not self.copied_in_order(seen, target)):
            self.refuse_shared(node)

    def refuse_shared(self, node: ast.AST) -> NoReturn:
        message = "the assigned values may overlap the array, and NumPy may overwrite some of them before reading them"
        self.refuse("SD303", node, message, help_="copy the values first: `.copy()`")

    def unharmed(self, item: Abstract | Item, array: Value, node: ast.AST) -> Abstract | Item:
        """An index array as it is before anything is written into the array."""
        if isinstance(item, Slice | Index | NewAxis) or not self.picks(item):
            return item
        lazy = self.lazy(item, node)
        if all(self.disjoint(read, array) for read, _ in lazy.reads):
            return item
        return self.forced(Lazy(lazy.dtype, lazy.sizes, lazy.at, lazy.reads))

    def write_masked(self, array: Value, mask: Lazy, value: Abstract, node: ast.AST, op: Update | None) -> None:
        """`array[mask] = number`: no positions are needed."""
        number = self.number(value, node)
        self.require_update(array, op, value, node)
        mine = self.lazy(array, node)
        if mask.rank > mine.rank:
            self.refuse("SD203", node, f"a mask with {mask.rank} axes is used on an array with {mine.rank}")
        for own, size in zip(mask.sizes, mine.sizes, strict=False):
            self.require_mask(own, size, mine.sizes.index(size))
        if not self.safe(mask, array):
            mask = self.lazy(self.forced(mask), node)
        self.pending.discard(mask)
        self.settle()

        base, to_base = self.through(array)

        def write(places: Places) -> None:
            holds = mask.at(places[: mask.rank])
            with self.block() as operations:
                self.write_part(base, to_base(places), number, node, op)
            self.add(If(holds, Block(tuple(operations)), Block(), span=self.span))

        self.nest(mine.sizes, write)

    # -- choosing ----------------------------------------------------------------------------------------------------

    def choose_elements(self, condition: Abstract, a: Abstract, b: Abstract, dtype: str, node: ast.AST) -> Abstract:
        """`np.where`: of each pair only the element that is chosen is computed."""
        lazies = [self.lazy(x, node) for x in (condition, a, b)]
        sizes, places, straight = self.broadcast(lazies, node)
        lazies[0] = self.once(lazies[0], sizes, node)

        def at(where: Places) -> Value:
            test = self.value(self.truth(lazies[0].at(places[0](where)), node))
            sides: list[Block] = []
            for lazy, place in zip(lazies[1:], places[1:], strict=True):
                with self.block() as operations:
                    chosen = self.as_element(lazy.at(place(where)), dtype)
                sides.append(Block(tuple(operations), (chosen,)))
            if all(self.is_data(lazy) for lazy in lazies[1:]):
                self.operations.extend((*sides[0].operations, *sides[1].operations))
                return self.apply("where", test, sides[0].yields[0], sides[1].yields[0])
            out = Value(sides[0].yields[0].type)
            self.add(If(test, sides[0], sides[1], (out,), span=self.span))
            return out

        if not sizes:
            return at(())
        return self.new_lazy(dtype, sizes, at, lazies, straight)

    def is_data(self, lazy: Lazy) -> bool:
        """Whether its elements are numbers that were given, not computed: no derivative of theirs can be infinite."""
        if not lazy.sizes:
            return lazy.at(()) in self.constants
        return lazy.plain and all(self.base(array) in self.given for array, _ in lazy.reads)

    # -- types -------------------------------------------------------------------------------------------------------

    def example(self, x: Abstract, node: ast.AST) -> Any:
        """Something that NumPy promotes as it promotes `x`."""
        if isinstance(x, Static):
            return type(x.value)(1) if isinstance(x.value, bool | int | float) else x.value
        if isinstance(x, Lazy):
            return np.ones((0,) * x.rank, x.dtype) if x.rank else np.dtype(x.dtype).type(1)
        if isinstance(x, List | Tuple):
            x = self.array_of(x, node)
        if isinstance(x, Value) and isinstance(x.type, Array):
            return np.ones((0,) * x.type.rank, x.type.dtype)
        value = self.number(x, node)
        # Integers at run time are mostly Python's, which take the type of what they meet.
        return {INT: 1, BOOL: np.bool_(True), FLOAT: np.float64(1.0), FLOAT32: np.float32(1.0)}[value.scalar]

    def promoted(self, function: Callable[..., Any], operands: Sequence[Abstract], node: ast.AST) -> str:
        """The type of the elements that NumPy's function gives."""
        try:
            with np.errstate(all="ignore"):
                examples = [self.example(x, node) for x in operands]
                shapes = [e if not (isinstance(e, np.ndarray) and e.ndim) else e.reshape(0)[:0] for e in examples]
                return str(np.asarray(function(*shapes)).dtype)
        except TypeError as error:
            self.refuse("SD203", node, str(error).split("\n")[0])

    def contents(self, x: Abstract) -> tuple[Abstract, ...] | None:
        """The elements of a list or tuple that are known one by one."""
        if isinstance(x, Tuple):
            return x.items
        if isinstance(x, List):
            held = self.holding(x)
            return held.items if isinstance(held, Items) else None
        return None


class Picked:
    """The elements that index arrays choose: of which array, how many, and where each is."""

    __slots__ = ("base", "indices", "place", "sizes")

    def __init__(
        self, base: Value, sizes: tuple[Size, ...], place: Callable[[Places], Places], indices: tuple[Lazy, ...]
    ) -> None:
        self.base, self.sizes, self.place, self.indices = base, sizes, place, indices


_MAY_BE_A_COPY = (
    "this writes to an array that may be a view or a copy of another array (a reshaped array, a diagonal, or the "
    "result of a recursive function)"
)
