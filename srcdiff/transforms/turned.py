"""Arrays with their axes in another order, by the indices of what they come from: Numba CUDA turns no more than two.

t = a.transpose(2, 0, 1)
x = t[i, j, k]                    =>         x = a[j, k, i]
v = t[i, :, 2]                               v = a[:, 2, i]
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.nodes import (
    Block,
    Dim,
    Function,
    Index,
    Item,
    Load,
    NewAxis,
    Operation,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    changed,
)
from srcdiff.ir.types import Array


def index_instead_of_turning(function: Function) -> Function:
    """The function with elements and parts of turned arrays taken from where these come from."""
    return replace(function, body=_Turned().block(function.body))


class _Turned:
    def __init__(self) -> None:
        self.turned: dict[Value, tuple[Value, tuple[int, ...]]] = {}
        """Turned arrays: what they come from, and which of its axes each axis is."""

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.operation(operation.rebuilt(self.block), operations)
        return changed(block, operations=tuple(operations))

    def operation(self, operation: Operation, into: list[Operation]) -> None:
        match operation:
            case Transpose(out=out, array=array, axes=axes):
                base, below = self.turned.get(array, (array, tuple(range(len(axes)))))
                self.turned[out] = base, tuple(below[k] for k in axes)
                into.append(operation)
            case Load(array=array, indices=indices) | Store(array=array, indices=indices) if array in self.turned:
                base, axes = self.turned[array]
                places = dict(zip(axes, indices, strict=True))
                into.append(replace(operation, array=base, indices=tuple(places[k] for k in range(len(axes)))))
            case Dim(array=array, axis=axis) if array in self.turned:
                base, axes = self.turned[array]
                into.append(replace(operation, array=base, axis=axes[axis]))
            case View(array=array, items=items) if array in self.turned and not any(
                isinstance(i, NewAxis) for i in items
            ):
                self.view(operation, into)
            case _:
                into.append(operation)

    def view(self, operation: View, into: list[Operation]) -> None:
        base, axes = self.turned[operation.array]
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
        self.turned[operation.out] = straight, order
        into.append(Transpose(operation.out, straight, order, span=operation.span))
