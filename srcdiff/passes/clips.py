"""A number that is kept between two others is one primitive, whose derivative asks less than those of its parts do.

t = maximum(x, low)              y = clip(x, low, high)
y = minimum(t, high)     =>

That is what `np.clip` comes to, and what many write themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.ir.nodes import Apply, Block, Const, Function, Operation, Value, changed, use_counts, walk
from srcdiff.ir.types import is_float


def clip_numbers(function: Function, alone: Iterable[Value] = ()) -> Function:
    """The function with its clips; values that are `alone` stay."""
    if not any(isinstance(o, Apply) and o.primitive == "maximum" for o in walk(function.body)):
        return function
    uses, stay = use_counts(function.body), set(alone)
    constants = {o.out for o in walk(function.body) if isinstance(o, Const)}

    def block(within: Block) -> Block:
        larger: dict[Value, Apply] = {}
        operations: list[Operation] = []
        for operation in within.operations:
            if isinstance(operation, Apply) and is_float(operation.out.type):
                if operation.primitive == "maximum" and uses[operation.out] == 1 and operation.out not in stay:
                    larger[operation.out] = operation
                if operation.primitive == "minimum":
                    operation = clipped(operation, larger)
            operations.append(operation.rebuilt(block))
        return changed(within, operations=tuple(operations))

    def clipped(smaller: Apply, larger: dict[Value, Apply]) -> Apply:
        for inner, high in (smaller.args, smaller.args[::-1]):
            if inner in larger and inner.type == smaller.out.type:
                x, low = sorted(larger[inner].args, key=lambda a: a in constants)
                return replace(smaller, primitive="clip", args=(x, low, high))
        return smaller

    return changed(function, body=block(function.body))
