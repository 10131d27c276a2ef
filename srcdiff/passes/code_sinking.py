"""Compute inside a branch what only that branch differentiates.

    s = np.sqrt(x)                      if np.sqrt(x) > 1.0:
    if s > 1.0:                             s = np.sqrt(x)
        y = s               becomes         y = s
    else:                               else:
        y = 2.0 * x                         y = 2.0 * x

Where the branch is not taken, the derivative of `s` is not asked for. Left outside, it would be multiplied by zero, and
at x = 0 zero times infinity is NaN. The branch may be in a loop, as those of `np.where` are: then perhaps
no iteration takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from srcdiff.analyses.activity import differentiable_arguments
from srcdiff.ir.nodes import Apply, Block, Function, If, Loop, Operation, Store, Value, changed, substituted, walk
from srcdiff.ir.types import is_float

# Primitives whose derivatives are finite wherever their arguments are.
_HARMLESS = frozenset({"add", "subtract", "multiply", "negative", "positive", "absolute", "maximum", "minimum"})
_HARMLESS |= {"clip", "where", "square", "float", "float64", "float32", "sin", "cos", "tanh", "arctan"}


def sink_code(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with its branches made self-contained; what is in `stay` is left where it is."""
    return changed(function, body=_block(function.body, set(stay)))


def _block(block: Block, stay: set[Value]) -> Block:
    operations = list(block.operations)
    applied = [o for o in operations if isinstance(o, Apply) and is_float(o.out.type)]
    risky: set[Value] = set()
    for operation in applied:
        if operation.primitive not in _HARMLESS or any(a in risky for a in operation.args):
            risky.add(operation.out)
    readers: dict[Value, set[int]] = {}
    for k, reader in enumerate(operations) if risky else ():
        for value in _read_by(reader):
            readers.setdefault(value, set()).add(k)
    moved: set[Value] = set()
    for operation in reversed(applied):
        value = operation.out
        if value not in risky or value in stay or value in block.yields:
            continue
        places = sorted(readers.get(value, ()))
        if _is_chosen(value, [operations[k] for k in places], moved):
            for k in places:
                operations[k] = _with_copy(operations[k], operation)
            for argument in operation.args:
                readers[argument].update(places)
            moved.add(value)
    return changed(block, operations=tuple(o.rebuilt(lambda inner: _block(inner, stay)) for o in operations))


def _read_by(operation: Operation) -> set[Value]:
    """The values that an operation reads, inside its blocks too."""
    found = set(operation.uses())
    for block in operation.blocks():
        found.update(block.yields)
        for inner in walk(block):
            found.update(inner.uses(), *(b.yields for b in inner.blocks()))
    return found


def _is_chosen(value: Value, operations: Sequence[Operation], moved: set[Value]) -> bool:
    """Whether some branches differentiate the value, and nothing else does; what is left behind has no derivative."""
    chosen = False
    for operation in operations:
        if value in operation.uses() and not is_not_differentiated(operation, value, moved):
            return False
        readers = [b for b in operation.blocks() if _reads(b, value)]
        if not readers:
            continue
        match operation:
            case If():
                inside = not all(_certainly_reads(b, value) for b in operation.blocks())
            case Loop(body=body):
                inside = readers == [body] and value not in body.yields and _is_chosen(value, body.operations, moved)
            case _:
                inside = False
        if not inside:
            return False
        chosen = True
    return chosen


def _certainly_reads(block: Block, value: Value) -> bool:
    """Whether the value is differentiated whichever branches inside are taken."""
    if value in block.yields:
        return True
    for operation in block.operations:
        if value in operation.uses() and not is_not_differentiated(operation, value, set()):
            return True
        if isinstance(operation, If) and all(_certainly_reads(b, value) for b in operation.blocks()):
            return True
    return False


def is_not_differentiated(operation: Operation, value: Value, moved: set[Value]) -> bool:
    if isinstance(operation, Apply):
        return operation.out in moved or value not in differentiable_arguments(operation)
    return not operation.defines() and not isinstance(operation, Store)  # raised or printed


def _reads(block: Block, value: Value) -> bool:
    if value in block.yields:
        return True
    return any(value in o.uses() or any(value in b.yields for b in o.blocks()) for o in walk(block))


def _with_copy(operation: Operation, made: Apply) -> Operation:
    """The operation, where sides of branches that read a value make it themselves; others are looked into."""

    def side(block: Block) -> Block:
        if not _reads(block, made.out):
            return block
        copy = replace(made, out=Value(made.out.type, made.out.name))
        inside = substituted(block, lambda v: copy.out if v is made.out else v)
        return Block((copy, *inside.operations), inside.yields)

    def body(block: Block) -> Block:
        return changed(block, operations=tuple(_with_copy(o, made) for o in block.operations))

    return operation.rebuilt(side if isinstance(operation, If) else body)
