"""Integers that count the iterations of a loop: those in step are one, and along a `for` they follow from its counter.

size = top = 0                               size = 0
for i in range(n):                           for i in range(n):
    kept[top] = x                 =>             kept[i] = x
    items[size] = x                              items[i] = x
    size, top = size + 1, top + 1                size = i + 1
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from srcdiff.ir.nodes import Apply, Block, Const, Function, Loop, Operation, Value, changed, substituted
from srcdiff.ir.types import INT


def merge_induction_variables(function: Function) -> Function:
    return _Counters().function(function)


class _Counters:
    def __init__(self) -> None:
        self.known: dict[Value, Value] = {}
        self.offsets: dict[Value, tuple[Any, int]] = {}
        """Integers that are another one and a constant; that other one, None if they are constant themselves."""

    def function(self, function: Function) -> Function:
        body = self.block(function.body)
        return changed(function, body=substituted(body, self.resolve) if self.known else body)

    def resolve(self, value: Value) -> Value:
        while value in self.known:
            value = self.known[value]
        return value

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.note(operation)
            if isinstance(operation, Loop) and any(p.type == INT for p in operation.params):
                operation = self.loop(operation)
            operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def note(self, operation: Operation) -> None:
        match operation:
            case Const(out=Value(type=type_)) if type_ == INT:
                self.offsets[operation.out] = (None, operation.value)
            case Apply(primitive="add" | "subtract", args=(base, by)) if operation.out.type == INT:
                root, amount = self.offset(base)
                constant, more = self.offset(by)
                if constant is None and base.type == INT:
                    self.offsets[operation.out] = (root, amount + (more if operation.primitive == "add" else -more))

    def offset(self, value: Value) -> tuple[Any, int]:
        return self.offsets.get(value, (value, 0))

    def loop(self, loop: Loop) -> Loop:
        for operation in loop.body.operations:
            self.note(operation)
        count, before = loop.count, []
        first: dict[tuple[Any, int, int], int] = {}
        for k, (param, init) in enumerate(zip(loop.params, loop.inits, strict=True)):
            base, step = self.offset(loop.body.yields[k])
            if param.type != INT or base is not param or step == 0:
                continue
            start = self.offset(init)
            same = first.setdefault((*start, step), k)
            if same != k:
                self.known[param], self.known[loop.outs[k]] = loop.params[same], loop.outs[same]
                continue
            if count is not None and start == (None, 0) and step == 1:
                self.known[count], count = loop.outs[k], None
            before += self.follow(loop, param, start, step)
        if not before and count is loop.count:
            return loop
        return replace(loop, count=count, body=Block((*before, *loop.body.operations), loop.body.yields))

    def follow(self, loop: Loop, param: Value, start: tuple[Any, int], step: int) -> list[Operation]:
        """Express integers at a constant distance from the loop counter by it; return the operations for that."""
        if loop.index is None or loop.bounds is None or loop.test is not None:
            return []
        (base, amount), (root, by) = self.offset(loop.bounds[0]), self.offset(loop.bounds[2])
        if root is not None or by != step or base is not start[0]:
            return []
        distance = start[1] - amount
        if distance == 0:
            self.known[param] = loop.index
            return []
        constant, out = Value(INT), Value(INT, param.name)
        self.known[param] = out
        primitive = "add" if distance > 0 else "subtract"
        return [Const(constant, abs(distance)), Apply(out, primitive, (loop.index, constant))]
