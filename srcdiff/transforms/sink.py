"""Compute inside a branch what only that branch differentiates.

    s = np.sqrt(x)                      if np.sqrt(x) > 1.0:
    if s > 1.0:                             s = np.sqrt(x)
        y = s               becomes         y = s
    else:                               else:
        y = 2.0 * x                         y = 2.0 * x

Where the branch is not taken, the derivative of `s` is not asked for. Left outside, it would be multiplied by zero, and
at x = 0 zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.analyses.activity import differentiable_arguments
from srcdiff.ir.nodes import Apply, Block, Function, If, Operation, Store, Value, changed, substituted, walk
from srcdiff.ir.types import is_float

# Primitives whose derivatives are finite wherever their arguments are.
_HARMLESS = frozenset({"add", "subtract", "multiply", "negative", "positive", "absolute", "maximum", "minimum"})
_HARMLESS |= {"where", "square", "float", "float64", "float32", "sin", "cos", "tanh", "arctan"}


def sink_into_branches(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with its branches made self-contained; what is in `stay` is left where it is."""
    return changed(function, body=_block(function.body, set(stay)))


def _block(block: Block, stay: set[Value]) -> Block:
    operations = [o.rebuilt(lambda inner: _block(inner, stay)) for o in block.operations]
    moved: set[Value] = set()
    for position, operation in enumerate(operations):
        if isinstance(operation, If):
            for side in ("then", "orelse"):
                _sink(operations, position, side, stay | set(block.yields), moved)
    return changed(block, operations=tuple(operations))


def _sink(operations: list[Operation], position: int, side: str, yields: set[Value], moved: set[Value]) -> None:
    """Move what only this side of the branch differentiates into it; what it leaves behind carries no derivative."""
    applied = [o for o in operations[:position] if isinstance(o, Apply) and is_float(o.out.type)]
    risky: set[Value] = set()
    for operation in applied:
        if operation.primitive not in _HARMLESS or any(a in risky for a in operation.args):
            risky.add(operation.out)
    for operation in reversed(applied):
        value = operation.out
        if value in risky and value not in yields and _only_here(value, operations, position, side, moved):
            _move(operation, operations, position, side)
            moved.add(value)


def _only_here(value: Value, operations: list[Operation], position: int, side: str, moved: set[Value]) -> bool:
    branch = operations[position]
    assert isinstance(branch, If)
    here, there = (branch.then, branch.orelse) if side == "then" else (branch.orelse, branch.then)
    if not _reads(here, value) or _reads(there, value):
        return False
    for k, operation in enumerate(operations):
        if k == position:
            continue
        if any(_reads(inner, value) for inner in operation.blocks()):
            return False
        if value in operation.uses() and not _is_not_differentiated(operation, value, moved):
            return False
    return True


def _is_not_differentiated(operation: Operation, value: Value, moved: set[Value]) -> bool:
    if isinstance(operation, Apply):
        return operation.out in moved or value not in differentiable_arguments(operation)
    return not operation.defines() and not isinstance(operation, Store)  # raised or printed


def _reads(block: Block, value: Value) -> bool:
    if value in block.yields:
        return True
    return any(value in o.uses() or any(value in b.yields for b in o.blocks()) for o in walk(block))


def _move(operation: Apply, operations: list[Operation], position: int, side: str) -> None:
    branch = operations[position]
    assert isinstance(branch, If)
    block = branch.then if side == "then" else branch.orelse
    copy = replace(operation, out=Value(operation.out.type, operation.out.name))
    inside = substituted(block, lambda v: copy.out if v is operation.out else v)
    moved = Block((copy, *inside.operations), inside.yields)
    operations[position] = replace(branch, then=moved) if side == "then" else replace(branch, orelse=moved)
