"""Fold views: transposed and reshaped arrays are replaced by indices into their bases.

t = a.transpose(2, 0, 1)
x = t[i, j, k]                    =>         x = a[j, k, i]
v = t[i, :, 2]                               v = a[:, 2, i]
r = b.reshape(n, 3)
x = r[i, j]                                  x = b[3 * i + j]

Numba CUDA transposes at most two axes and reshapes only contiguous arrays; the part of a shared array that belongs to
a thread is not contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Const,
    Copy,
    Dim,
    Function,
    Index,
    Item,
    Load,
    Loop,
    NewAxis,
    Operation,
    Reshape,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    changed,
)
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass

Indices = tuple[Value, ...]


def fold_views(function: Function) -> Function:
    """The function with elements and parts of transposed and reshaped arrays taken from where these come from."""
    return replace(function, body=_Turned().block(_Reshaped().block(function.body)))


@dataclass(frozen=True, slots=True)
class _Elements:
    """The place of the elements of a view in its base."""

    base: Value
    shape: tuple[Value, ...]
    at: Callable[[Indices], Indices]
    """The indices of the base for those of the array, which count from the start."""


class _Reshaped:
    def __init__(self) -> None:
        self.build = Builder()
        self.known: dict[Value, _Elements] = {}
        self.lengths: dict[Value, Value] = {}
        """Lengths of such arrays, by values that are there already."""
        self.counters: set[Value] = set()
        """Counters of loops that start at zero: they are not negative."""

    def block(self, block: Block) -> Block:
        with self.build.block() as operations:
            for written in block.operations:
                operation = written.replaced(self.length)
                self.build.span = operation.span
                if isinstance(operation, Loop) and operation.index is not None and operation.bounds is not None:
                    start, _, step = (self.build.constants.get(b, -1) for b in operation.bounds)
                    if start >= 0 and step > 0:
                        self.counters.add(operation.index)
                self.operation(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations), yields=tuple(self.length(y) for y in block.yields))

    def length(self, value: Value) -> Value:
        return self.lengths.get(value, value)

    def operation(self, operation: Operation) -> None:
        build = self.build
        match operation:
            case Const(out=out, value=value):
                build.constants[out] = value
                build.add(operation)
            case Load(array=array, indices=indices) | Store(array=array, indices=indices) if array in self.known:
                elements = self.known[array]
                places = elements.at(self.from_start(indices, elements.shape))
                build.add(replace(operation, array=elements.base, indices=places))
            case Dim(out=out, array=array, axis=axis) if array in self.known:
                self.lengths[out] = self.known[array].shape[axis]
            case Copy(out=out, array=array) if array in self.known:
                elements = self.known[array]
                build.add(Alloc(out, elements.shape, span=operation.span))
                build.each_element(
                    out,
                    lambda at: build.store(out, at, build.load(elements.base, elements.at(at))),
                    elements.shape.__getitem__,
                )
            case Alloc(like=Value() as array) if array in self.known:
                build.add(replace(operation, like=None, shape=self.known[array].shape))
            case _:
                self.note(operation)
                build.add(operation)

    def note(self, operation: Operation) -> None:
        """Arrays whose elements are those of others."""
        match operation:
            case Reshape(out=out, array=array, shape=shape):
                self.known[out] = self.reshaped(array, shape)
            case Transpose(out=out, array=array, axes=axes) if array in self.known:
                inner = self.known[array]
                turned = tuple(inner.shape[k] for k in axes)
                self.known[out] = replace(
                    inner, shape=turned, at=lambda at: inner.at(tuple(at[axes.index(k)] for k in range(len(axes))))
                )
            case View(out=out, array=array, items=items) if array in self.known:
                if all(self.is_forward(i) for i in items if isinstance(i, Slice)):
                    self.known[out] = self.part(self.known[array], items)

    def reshaped(self, array: Value, shape: tuple[Value, ...]) -> _Elements:
        """Elements in the order of C."""
        build = self.build
        inner = self.known.get(array) or _Elements(array, build.shape(array), lambda at: at)

        def at(indices: Indices) -> Indices:
            place, *rest = indices or (build.const(0),)
            for index, length in zip(rest, shape[1:], strict=True):
                place = build.apply("add", build.apply("multiply", place, length), index)
            found: Indices = ()
            for length in reversed(inner.shape[1:]):
                found = (build.apply("remainder", place, length), *found)
                place = build.apply("floor_divide", place, length)
            return inner.at((place, *found) if inner.shape else ())

        return _Elements(inner.base, shape, at)

    def is_forward(self, item: Slice) -> bool:
        return item.step is None or self.build.constants.get(item.step, 0) > 0

    def part(self, whole: _Elements, items: tuple[Item, ...]) -> _Elements:
        """A view: of each axis of the whole an element or a part, and new axes."""
        build = self.build
        rest = len(whole.shape) - sum(not isinstance(i, NewAxis) for i in items)
        lengths = iter(whole.shape)
        shape: list[Value] = []
        places: list[Callable[[Indices], Value]] = []
        for item in (*items, *[Slice(None, None, None)] * rest):
            axis = len(shape)
            if isinstance(item, NewAxis):
                shape.append(build.const(1))
            elif isinstance(item, Index):
                (fixed,) = self.from_start((item.value,), (next(lengths),))
                places.append(_always(fixed))
            else:
                start, length = self.of_slice(item, next(lengths))
                shape.append(length)
                places.append(self.in_slice(item, start, axis))
        return _Elements(whole.base, tuple(shape), lambda at: whole.at(tuple(place(at) for place in places)))

    def of_slice(self, item: Slice, length: Value) -> tuple[Value, Value]:
        """The start of a slice, and its number of elements."""
        build = self.build
        if not item.parts():
            return build.const(0), length

        def clipped(bound: Value) -> Value:
            (place,) = self.from_start((bound,), (length,))
            return build.apply("minimum", build.apply("maximum", place, build.const(0)), length)

        start = build.const(0) if item.start is None else clipped(item.start)
        stop = length if item.stop is None else clipped(item.stop)
        return start, build.apply("range_length", start, stop, item.step or build.const(1))

    def in_slice(self, item: Slice, start: Value, axis: int) -> Callable[[Indices], Value]:
        build = self.build

        def place(at: Indices) -> Value:
            return build.apply(
                "add", start, at[axis] if item.step is None else build.apply("multiply", at[axis], item.step)
            )

        return place

    def from_start(self, indices: Indices, shape: tuple[Value, ...]) -> Indices:
        """Indices from the end, from the start."""
        build = self.build

        def one(index: Value, length: Value) -> Value:
            known = build.constants.get(index)
            if index in self.counters or (known is not None and known >= 0):
                return index
            from_end = build.apply("add", index, length)
            if known is not None:
                return from_end
            return build.apply("where", build.apply("less", index, build.const(0)), from_end, index)

        return tuple(one(i, n) for i, n in zip(indices, shape, strict=True))


def _always(value: Value) -> Callable[[Indices], Value]:
    return lambda _: value


class _Turned:
    def __init__(self) -> None:
        self.transposed: dict[Value, tuple[Value, tuple[int, ...]]] = {}
        """Transposed arrays: their bases, and the axis of the base for each axis."""

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.operation(operation.rebuilt(self.block), operations)
        return changed(block, operations=tuple(operations))

    def operation(self, operation: Operation, into: list[Operation]) -> None:
        match operation:
            case Transpose(out=out, array=array, axes=axes):
                base, below = self.transposed.get(array, (array, tuple(range(len(axes)))))
                self.transposed[out] = base, tuple(below[k] for k in axes)
                into.append(operation)
            case Load(array=array, indices=indices) | Store(array=array, indices=indices) if array in self.transposed:
                base, axes = self.transposed[array]
                places = dict(zip(axes, indices, strict=True))
                into.append(replace(operation, array=base, indices=tuple(places[k] for k in range(len(axes)))))
            case Dim(array=array, axis=axis) if array in self.transposed:
                base, axes = self.transposed[array]
                into.append(replace(operation, array=base, axis=axes[axis]))
            case View(array=array, items=items) if array in self.transposed and not any(
                isinstance(i, NewAxis) for i in items
            ):
                self.view(operation, into)
            case _:
                into.append(operation)

    def view(self, operation: View, into: list[Operation]) -> None:
        base, axes = self.transposed[operation.array]
        items: dict[int, Item] = {k: Slice(None, None, None) for k in range(len(axes))}
        items |= dict(zip(axes, operation.items, strict=False))
        left = [k for k, item in zip(axes, (items[k] for k in axes), strict=True) if not isinstance(item, Index)]
        given = tuple(items[k] for k in range(len(axes)))
        if left == sorted(left):
            into.append(replace(operation, array=base, items=given))
            return
        straight = Value(Array(operation.out.array.dtype, len(left)), operation.out.name)
        into.append(replace(operation, out=straight, array=base, items=given))
        order = tuple(sorted(left).index(k) for k in left)
        self.transposed[operation.out] = straight, order
        into.append(Transpose(operation.out, straight, order, span=operation.span))
