"""Array expansion: arrays that every iteration allocates and the reverse sweep reads become rows of one array.

    for t in range(n):                          kept_a = np.empty((n, m))
        a = np.empty(m)                         for t in range(n):
        kept_a.append(a)                            a = kept_a[t]
        ...                          =>             ...
    for t in range(n - 1, -1, -1):              for t in range(n - 1, -1, -1):
        a = kept_a.pop()                            a = kept_a[t]

A loop-carried array is the row of the iteration before; in the first iteration, the initial value of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from srcdiff.analyses.symbolic_shapes import Lengths
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Copy, Library, Operation, Value, View

Early = Callable[[Value], Value | None]
"""A value computed before the outermost loop; None if that is not possible."""


def early_shape(
    array: Value, lengths: Lengths, naturals: set[Value], early: Early, builder: Builder
) -> list[Value] | None:
    """The lengths of an array, before the outermost loop; None if they are not known there, or may be negative."""

    def value_of(size: Any) -> Value | None:
        match size:
            case int():
                return builder.const(size) if size >= 0 else None
            case Value():
                return early(size) if size in naturals or lengths.is_natural(size) else None
            case (Value() as source, int(axis)):
                known = early(source)
                return None if known is None else builder.dim(known, axis)
            case ("add", *terms):
                parts = [p for p in map(value_of, terms) if p is not None]
                return builder.apply("add", *parts) if len(parts) == len(terms) else None
        return None

    found = [value_of(lengths.of(array, axis)) for axis in range(array.array.rank)]
    known = [f for f in found if f is not None]
    return known if len(known) == len(found) else None


def write_rows(operation: Operation, rows: dict[Value, View], builder: Builder) -> None:
    """Write what makes the arrays such that they are rows; what an array is filled with, rows of constants hold."""
    made = {array: Value(array.type, array.name) for array in rows}
    if isinstance(operation, Library):
        builder.add(replace(operation, outs=tuple([made.get(out, out) for out in operation.outs])))
    for array, view in rows.items():
        builder.add(view)
        match operation:
            case Library():
                _copy(made[array], array, builder)
            case Copy(array=source):
                _copy(source, array, builder)
            case Alloc(fill=Value() as fill) if fill not in builder.constants:
                _fill(array, fill, builder)


def _copy(source: Value, into: Value, builder: Builder) -> None:
    builder.each_element(into, lambda indices: builder.store(into, indices, builder.load(source, indices)))


def _fill(array: Value, fill: Value, builder: Builder) -> None:
    builder.each_element(array, lambda indices: builder.store(array, indices, fill))
