"""Inner loops count from zero.

for j in range(i + 1, n):                    for k in range(n - (i + 1)):
    s += x[j] * y[j - 1]          =>             j = k + (i + 1)
                                                 s += x[j] * y[j - 1]

A negative index counts from the end, so an index that may be negative costs a test at every element, and with it the
vector instructions. That a counter from zero with something added is not negative, LLVM sees; of a counter that starts
elsewhere it does not.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Function, Load, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.types import INT


def normalize_loops(function: Function) -> Function:
    return changed(function, body=_FromZero(function).block(function.body))


class _FromZero:
    def __init__(self, function: Function) -> None:
        self.lengths = lengths_of(function)
        self.constants = {o.out: o.value for o in walk(function.body) if isinstance(o, Const)}

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            if isinstance(operation, Loop) and self.shifts(operation):
                operation = self.shifted(operation, operations)
            operations.append(operation)
        return changed(block, operations=tuple(operations))

    def shifts(self, loop: Loop) -> bool:
        """Whether the loop is an inner one that starts behind zero and finds elements by its counter."""
        if loop.bounds is None or loop.index is None or not loop.counted or self.constants.get(loop.bounds[2]) != 1:
            return False
        start = loop.bounds[0]
        if self.constants.get(start) == 0 or not self.lengths.is_natural(start):
            return False
        inside = walk(loop.body)
        if any(isinstance(o, Loop) for o in inside):
            return False
        counting = {loop.index}
        for operation in walk(loop.body):
            if isinstance(operation, Apply) and operation.out.type == INT and counting & set(operation.args):
                counting.add(operation.out)
            if isinstance(operation, Load | Store) and counting & set(operation.indices):
                return True
        return False

    def shifted(self, loop: Loop, into: list[Operation]) -> Loop:
        assert loop.bounds is not None and loop.index is not None
        start, stop, step = loop.bounds
        builder = Builder()
        builder.operations, builder.constants = into, self.constants
        for value in (start, stop):
            definition = self.lengths.definition.get(value)
            if isinstance(definition, Apply):
                builder.note(definition)
        length, zero = builder.apply("subtract", stop, start), builder.const(0)
        counter = Value(INT, "k")
        body = Block((Apply(loop.index, "add", (counter, start)), *loop.body.operations), loop.body.yields)
        return replace(loop, index=counter, bounds=(zero, length, step), body=body)
