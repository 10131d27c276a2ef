"""Equal lengths of arrays (by construction, library calls and comparisons), and nonnegative integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from srcdiff.ir.analysis import analysis
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Coordinate,
    Copy,
    Dim,
    Function,
    If,
    Index,
    Library,
    Loop,
    NewAxis,
    Operation,
    Part,
    Raise,
    Reshape,
    Slice,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import INT, Array
from srcdiff.library.blas_lapack import LIBRARY

Pair = tuple[Any, Any]


class Lengths:
    """The lengths of all arrays of a function, as expressions that can be compared."""

    def __init__(self, function: Function) -> None:
        self.definition: dict[Value, Operation] = {v: o for o in walk(function.body) for v in o.defines()}
        self.loops: dict[Value, Loop] = {
            o.index: o for o in walk(function.body) if isinstance(o, Loop) and o.index is not None
        }
        self.carried: dict[tuple[Value, int], Any] = {}
        """The symbols of the lengths of loop-carried arrays."""
        self.visit(function.body)

    def visit(self, block: Block) -> None:
        for operation in block.operations:
            for inner in operation.blocks():
                self.visit(inner)
            if isinstance(operation, Loop):
                self.carry(operation)

    def of(self, array: Value, axis: int) -> Any:
        """The symbol of the length of an axis: equal symbols mean equal lengths."""
        match self.definition.get(array):
            case Alloc(like=None, shape=shape) | Reshape(shape=shape):
                return self.size(shape[axis])
            case Alloc(like=like) if like is not None:
                return self.of(like, axis)
            case Copy(array=source) | Part(array=source):
                return self.of(source, axis)
            case Transpose(array=source, axes=axes):
                return self.of(source, axes[axis])
            case View() as view if (source_axis := _axis_seen(view, axis)) is not None:
                return self.of(view.array, source_axis)
            case Library() as call:
                return self.of_result(call, array, axis)
            case If(outs=outs, then=then, orelse=orelse):
                lengths = [self.of(block.yields[outs.index(array)], axis) for block in (then, orelse)]
                if lengths[0] == lengths[1]:
                    return lengths[0]
            case Loop() as loop if array in loop.outs:
                array = loop.params[loop.outs.index(array)]
        found: Any = (array, axis)
        while found in self.carried:
            found = self.carried[found]
        return found

    def carry(self, loop: Loop) -> None:
        """A loop-carried array is as long as its initial value if every iteration yields an array of that length."""
        axes = [
            (k, axis) for k, p in enumerate(loop.params) if isinstance(p.type, Array) for axis in range(p.type.rank)
        ]
        while True:
            starts = {(loop.params[k], axis): self.of(loop.inits[k], axis) for k, axis in axes}
            self.carried |= starts
            kept = [(k, axis) for k, axis in axes if self.of(loop.body.yields[k], axis) == starts[loop.params[k], axis]]
            if kept == axes:
                return
            axes = kept
            for key in starts:
                del self.carried[key]

    def of_result(self, call: Library, array: Value, axis: int) -> Any:
        taken, given = LIBRARY[call.function].shapes.split("->")
        letter = given.split(",")[call.outs.index(array)][axis]
        for argument, letters in zip(call.args, taken.split(","), strict=bool(call.args)):
            if letter in letters:
                return self.of(argument, letters.index(letter))
        return (array, axis)

    def size(self, value: Value) -> Any:
        """The symbol of an integer."""
        operation = self.definition.get(value)
        match operation:
            case Dim():
                return self.of(operation.array, operation.axis)
            case Const():
                return operation.value
            case Apply(primitive="add" | "subtract"):
                return (operation.primitive, *(self.size(a) for a in operation.args))
        return value

    def numbers_in(self, values: Iterable[Value], known: Mapping[Value, Any]) -> int | None:
        """The count of numbers in these values, if the arguments of the function determine it."""
        total = 0
        for value in values:
            rank = value.type.rank if isinstance(value.type, Array) else 0
            lengths = [self.evaluated(self.of(value, axis), known) for axis in range(rank)]
            if None in lengths:
                return None
            total += math.prod(n for n in lengths if n is not None)
        return total

    def evaluated(self, size: Any, known: Mapping[Value, Any]) -> int | None:
        """The value of a length, if all arguments that it depends on are known."""
        match size:
            case int():
                return size
            case ("add" | "subtract" as primitive, first, second):
                a, b = self.evaluated(first, known), self.evaluated(second, known)
                return None if a is None or b is None else a + b if primitive == "add" else a - b
            case (Value() as array, axis):
                return int(known[array].shape[axis]) if array in known else self.cut(array, axis, known)
            case Value() if size in known:
                return int(known[size])
            case Value():
                operation = self.definition.get(size)
                if isinstance(operation, Apply) and operation.primitive == "multiply":
                    factors = [self.evaluated(self.size(a), known) for a in operation.args]
                    return None if None in factors else math.prod(f for f in factors if f is not None)
        return None

    def cut(self, array: Value, axis: int, known: Mapping[Value, Any]) -> int | None:
        """The length of a slice of an axis."""
        view = self.definition.get(array)
        if not isinstance(view, View):
            return None
        source = 0
        for item in view.items:
            if isinstance(item, Slice) and axis == 0:
                ends = (item.start, item.stop, item.step)
                parts = [None if p is None else self.evaluated(self.size(p), known) for p in ends]
                length = self.evaluated(self.of(view.array, source), known)
                is_known = length is not None and parts.count(None) == 3 - len(item.parts())
                return len(range(length or 0)[slice(*parts)]) if is_known else None
            if isinstance(item, NewAxis) and axis == 0:
                return 1
            axis -= not isinstance(item, Index)
            source += not isinstance(item, NewAxis)
        return None

    def named(self, function: Function, before: Operation) -> dict[Any, Value]:
        """For sizes, an integer at top level that is there before an operation."""
        found = {self.size(p): p for p in function.params if p.type == INT}
        for operation in function.body.operations:
            if operation is before:
                break
            found |= {self.size(v): v for v in operation.defines() if v.type == INT}
        return found

    def is_natural(self, value: Value) -> bool:
        """Whether an integer is known not to be negative."""
        if value in self.loops:
            return self.counts_naturals(self.loops[value])
        operation = self.definition.get(value)
        match operation:
            case Const():
                return isinstance(operation.value, int) and operation.value >= 0
            case Dim() | Coordinate():
                return True
            case Apply(primitive="range_length") | Library(function="iterations_of" | "thread_blocks"):
                return True
            case Apply(primitive="add" | "multiply" | "floor_divide"):
                return all(self.is_natural(a) for a in operation.args)
        return False

    def counts_naturals(self, loop: Loop) -> bool:
        """Whether the counter of a loop is never negative."""
        if loop.bounds is None:
            return False
        _, stop, step = (self.size(b) for b in loop.bounds)
        if step == 1:
            return self.is_natural(loop.bounds[0])
        if step != -1:
            return False
        before = self.definition.get(loop.bounds[1])
        one_less = isinstance(before, Apply) and before.primitive == "subtract" and self.size(before.args[1]) == 1
        return (
            stop == -1
            or self.is_natural(loop.bounds[1])
            or (one_less and isinstance(before, Apply) and self.is_natural(before.args[0]))
        )

    def compared(self, operation: Operation) -> Pair | None:
        """The two sizes that are equal behind the operation, which raises if they are not."""
        if not isinstance(operation, If) or operation.orelse.operations:
            return None
        if not operation.then.operations or not isinstance(operation.then.operations[-1], Raise):
            return None
        test = self.definition.get(operation.condition)
        if isinstance(test, Apply) and test.primitive == "not_equal":
            return self.size(test.args[0]), self.size(test.args[1])
        return None

    def same(self, a: Value, b: Value, facts: Iterable[Pair] = ()) -> bool:
        return self.alike(self.size(a), self.size(b), facts)

    def alike(self, first: Any, second: Any, facts: Iterable[Pair] = ()) -> bool:
        """Whether two sizes are equal, by their symbols or by the facts."""
        return bool(first == second or second in _equal_to(first, facts))


@analysis
def lengths_of(function: Function) -> Lengths:
    return Lengths(function)


def _axis_seen(view: View, axis: int) -> int | None:
    """The axis of the base array that an axis of a view covers completely."""
    source = 0
    for item in view.items:
        if not isinstance(item, Index):
            if axis == 0:
                return source if isinstance(item, Slice) and not item.parts() else None
            axis -= 1
        source += not isinstance(item, NewAxis)
    return source + axis


def _equal_to(size: Any, facts: Iterable[Pair]) -> list[Any]:
    """All sizes that are equal to it by the facts."""
    group = [size]
    for known in group:
        for pair in facts:
            if known in pair:
                group += [other for other in pair if other not in group]
    return group
