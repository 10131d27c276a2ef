"""Numbers made of truth values are choices, which LLVM computes in one instruction for several numbers.

squared = d * d + float(int(i == j))    =>    squared = d * d + (1.0 if i == j else 0.0)
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.nodes import Apply, Block, Const, Function, Operation, Value, changed, walk
from srcdiff.ir.types import BOOL, FLOAT


def choose_by_truth_values(function: Function) -> Function:
    """The function with a choice in place of each conversion of a truth value to a float."""
    integers = {
        o.out: o.args[0]
        for o in walk(function.body)
        if isinstance(o, Apply) and o.primitive == "int" and o.args[0].type == BOOL
    }

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Apply) and operation.primitive == "float" and operation.out.type == FLOAT:
                condition = integers.get(operation.args[0])
                if condition is not None:
                    one, zero = Value(FLOAT), Value(FLOAT)
                    operations += [Const(one, 1.0, span=operation.span), Const(zero, 0.0, span=operation.span)]
                    operation = replace(operation, primitive="where", args=(condition, one, zero))
            operations.append(operation.rebuilt(visit))
        return changed(block, operations=tuple(operations))

    return changed(function, body=visit(function.body)) if integers else function
