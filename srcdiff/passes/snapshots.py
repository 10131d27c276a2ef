"""Snapshots: copy the arguments of a call with its own rule that are overwritten later; its adjoint reads them."""

from __future__ import annotations

from typing import Any

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.saved_values import StillThere
from srcdiff.analyses.structure import structure_of
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import Block, Copy, Custom, Function, Library, Operation, Value, changed
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.custom_adjoints import reads_parameters


def keep_what_calls_read(function: Function, active: Activity, sites: dict[Value, Sites]) -> Function:
    """The function with a copy of each argument or result of an active library call that is overwritten later."""
    structure = structure_of(function)
    writes = StillThere(structure, sites)

    def follows(write: Operation, call: Operation) -> bool:
        if structure.start[call] < structure.start[write] < structure.end[call]:
            return False  # part of the call, which writes to its own arrays
        return writes.may_follow(write, call)

    def overwritten(array: Value, call: Library | Custom) -> bool:
        return any(follows(write, call) for write in writes.writes_to(array))

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Library | Custom):
                is_active = any(active.memory(o) or o in active for o in operation.outs)
                operations += copied(operation) if is_active else [operation]
                continue
            operations.append(operation.rebuilt(visit))
        return changed(block, operations=tuple(operations))

    def copied(call: Library | Custom) -> list[Operation]:
        before: list[Operation] = []
        known: dict[Value, Value] = {}
        given = (*call.args, *call.outs)
        rule: Any = call.rule if isinstance(call, Custom) else LIBRARY[call.function]
        reads = reads_parameters(rule.adjoint or rule.tangent, len(given))
        read = {v for v, flag in zip(given, reads, strict=True) if flag}
        for array in call.args:
            if isinstance(array.type, Array) and array in read and array not in known and overwritten(array, call):
                known[array] = Value(array.type, array.name)
                before.append(Copy(known[array], array, span=call.span))
        after: list[Operation] = []
        outs = list(call.outs)
        for k, out in enumerate(call.outs):
            if isinstance(out.type, Array) and out in read and overwritten(out, call):
                outs[k] = Value(out.type, out.name)
                after.append(Copy(out, outs[k], span=call.span))
        reading = call.replaced(lambda v: known.get(v, v))
        assert isinstance(reading, Library | Custom)
        return [*before, changed(reading, outs=tuple(outs)), *after]

    return changed(function, body=visit(function.body))
