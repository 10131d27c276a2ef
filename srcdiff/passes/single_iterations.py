"""Loops of one iteration at most become branches.

for i in range(min(n - 1, 1)):               if n > 1:
    x_bar[i] -= y_bar[i]                         x_bar[0] -= y_bar[0]
for i in range(max(0, n - 2), n - 1):   =>   if n > 1:
    x_bar[i + 1] += y_bar[i]                     x_bar[n - 1] += y_bar[n - 2]

Scatter to gather leaves such loops for the elements at the borders of an array.
"""

from __future__ import annotations

from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Function, If, Loop, Operation, Value, changed, substituted, walk
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass


def branch_on_single_iterations(function: Function) -> Function:
    """The function with a branch in place of each loop that provably has one iteration at most."""
    return changed(function, body=_Singles(function).block(function.body))


@dataclass(frozen=True, slots=True)
class _Sum:
    """An integer as a value plus a constant; without a value, as a constant."""

    base: Value | None
    constant: int

    def distance_to(self, other: _Sum) -> int | None:
        """How far the other is above it, if that is known."""
        return other.constant - self.constant if self.base is other.base else None


class _Singles:
    def __init__(self, function: Function) -> None:
        operations = walk(function.body)
        self.lengths = lengths_of(function)
        self.constants = {o.out: o.value for o in operations if isinstance(o, Const)}
        self.definition = {o.out: o for o in operations if isinstance(o, Apply) and o.out.type == INT}

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            if isinstance(operation, Loop):
                operation = self.branch(operation, operations)
            operations.append(operation)
        return changed(block, operations=tuple(operations))

    def branch(self, loop: Loop, into: list[Operation]) -> Operation:
        """The loop as a branch, or the loop itself. The condition is appended to the operations before it."""
        if loop.bounds is None or not loop.counted or loop.count is not None:
            return loop
        start, stop, step = loop.bounds
        only = self.only_index(start, stop) if self.constants.get(step) == 1 else None
        if only is None:
            return loop
        builder = Builder()
        builder.span, builder.operations, builder.constants = loop.span, into, self.constants
        condition = self.condition(start, stop, builder)
        with builder.block() as operations:
            known = dict(zip(loop.params, loop.inits, strict=True))
            if loop.index is not None:
                known[loop.index] = self.written(only, builder)
            body = substituted(loop.body, lambda v: known.get(v, v))
        then = Block((*operations, *body.operations), body.yields)
        return If(condition, then, Block((), loop.inits), loop.outs, span=loop.span)

    def only_index(self, start: Value, stop: Value) -> _Sum | None:
        """The index of the one iteration, if there cannot be two.

        From `low <= start < stop <= high` and `high <= low + 1` it follows that `start` is `low`.
        """
        for low in self.parts(start, "maximum"):
            for high in self.parts(stop, "minimum"):
                distance = self.sum(low).distance_to(self.sum(high))
                if distance is not None and distance <= 1:
                    return self.sum(low)
        return None

    def parts(self, value: Value, primitive: str) -> list[Value]:
        """The integers that a value is the minimum or maximum of."""
        operation = self.definition.get(value)
        if operation is None or operation.primitive != primitive or any(a.type != INT for a in operation.args):
            return [value]
        return [part for argument in operation.args for part in self.parts(argument, primitive)]

    def sum(self, value: Value) -> _Sum:
        known, operation = self.constants.get(value), self.definition.get(value)
        if isinstance(known, int) and not isinstance(known, bool):
            return _Sum(None, known)
        if operation is not None and operation.primitive in ("add", "subtract"):
            first, second = map(self.sum, operation.args)
            if second.base is None:
                amount = second.constant if operation.primitive == "add" else -second.constant
                return _Sum(first.base, first.constant + amount)
        return _Sum(value, 0)

    def condition(self, start: Value, stop: Value, builder: Builder) -> Value:
        """Whether the loop has an iteration: `max(0, n - 2) < n - 1` holds if and only if `n > 1`."""
        pairs = [(a, b) for a in self.parts(start, "maximum") for b in self.parts(stop, "minimum")]
        pairs = [(self.deciding(a, b), b) for a, b in pairs if not self.is_less(a, b)]
        if len(pairs) != 1:
            return builder.apply("less", start, stop)
        low, high = map(self.sum, pairs[0])
        if low.base is None and high.base is not None and self.lengths.is_natural(high.base):
            return builder.apply("greater", high.base, builder.const(low.constant - high.constant))
        if high.base is None and low.base is not None and self.lengths.is_natural(low.base):
            return builder.apply("less", low.base, builder.const(high.constant - low.constant))
        return builder.apply("less", *pairs[0])

    def deciding(self, low: Value, high: Value) -> Value:
        """The one part of a minimum that can be less than the other integer, if there is only one."""
        distances = {part: self.sum(part).distance_to(self.sum(high)) for part in self.parts(low, "minimum")}
        possible = [part for part, distance in distances.items() if distance is None or distance > 0]
        return possible[0] if len(possible) == 1 else low

    def is_less(self, low: Value, high: Value) -> bool:
        """Whether that is known."""
        distance = self.sum(low).distance_to(self.sum(high))
        return distance is not None and distance > 0

    def written(self, number: _Sum, builder: Builder) -> Value:
        if number.base is None:
            return builder.const(number.constant)
        return builder.apply("add", number.base, builder.const(number.constant)) if number.constant else number.base
