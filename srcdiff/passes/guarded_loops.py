"""Guarded loops: a loop that has iterations only if an earlier branch is taken moves into that branch.

if 0 < n:                                    if 0 < n:
    c = np.cos(angle)                            c = np.cos(angle)
else:                                            y = 0.0
    c = 0.0                       =>             for i in range(n):
y = 0.0                                              y += c * x[i]
for i in range(n):                           else:
    y += c * x[i]                                y = 0.0

Analyses know most about loops at top level, so this pass comes late.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.nodes import Apply, Block, Const, Function, If, Loop, Operation, Value, changed, walk
from srcdiff.passes.branch_fusion import fuse_branches


def guard_loops(function: Function) -> Function:
    """The function with such loops in the branches before them, and with branches on the same condition as one."""
    guarded = changed(function, body=_Guards(function).block(function.body))
    return function if guarded is function else fuse_branches(guarded, of_both_sweeps=True)


class _Guards:
    def __init__(self, function: Function) -> None:
        operations = walk(function.body)
        self.constants = {o.out: o.value for o in operations if isinstance(o, Const)}
        self.definition = {o.out: o for o in operations if isinstance(o, Apply)}

    def block(self, block: Block) -> Block:
        given: dict[Value, Value] = {}  # the results of branches, with their conditions
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            if isinstance(operation, If):
                given |= dict.fromkeys(operation.outs, operation.condition)
            elif isinstance(operation, Loop):
                operation = self.guarded(operation, given)
            operations.append(operation)
        return changed(block, operations=tuple(operations))

    def guarded(self, loop: Loop, given: dict[Value, Value]) -> Operation:
        read = {v for o in walk(loop.body) for v in o.uses()}
        for condition in dict.fromkeys(c for v, c in given.items() if v in read):
            if self.asks(condition, loop):
                outs = tuple([Value(v.type, v.name) for v in loop.outs])
                inside = Block((replace(loop, outs=outs),), outs)
                return If(condition, inside, Block((), loop.inits), loop.outs, span=loop.span)
        return loop

    def asks(self, condition: Value, loop: Loop) -> bool:
        """Whether the condition is that the loop makes an iteration."""
        asked = self.definition.get(condition)
        if asked is None or loop.bounds is None or loop.count is not None:
            return False
        start, stop, step = loop.bounds
        known = self.constants.get(step)
        if not isinstance(known, int) or known == 0 or asked.primitive != ("less" if known > 0 else "greater"):
            return False
        return all(self.is_same(a, b) for a, b in zip(asked.args, (start, stop), strict=True))

    def is_same(self, one: Value, other: Value) -> bool:
        return one is other or (one in self.constants and self.constants[one] == self.constants.get(other))
