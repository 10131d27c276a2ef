"""Compute inside a branch what only that branch differentiates.

    s = np.sqrt(x)                      if np.sqrt(x) > 1.0:
    if s > 1.0:                             s = np.sqrt(x)
        y = s               becomes         y = s
    else:                               else:
        y = 2.0 * x                         y = 2.0 * x

If the branch is not taken, the derivative of `s` is not computed. Outside the branch, it would be multiplied by zero,
and at x = 0, zero times infinity is NaN. The branch may be in a loop, as those of `np.where` are; perhaps no iteration
takes it.

A value that takes nothing to compute, as `abs(r)`, is computed inside, too, where the branch differentiates `r` anyway:
it yields one adjoint less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from srcdiff.analyses.activity import differentiable_arguments
from srcdiff.ir.nodes import Apply, Block, Function, If, Loop, Operation, Store, Value, changed, substituted, walk
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import is_inexact

# Primitives whose derivatives are finite for finite arguments.
_HARMLESS = frozenset({"add", "subtract", "multiply", "negative", "positive", "absolute", "maximum", "minimum"})
_HARMLESS |= {"clip", "where", "square", "float", "float64", "float32", "sin", "cos", "tanh", "arctan"}


_Certain = dict[Block, set[Value]]


def sink_code(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with self-contained branches; values in `stay` are not moved."""
    return changed(function, body=_block(function.body, set(stay)))


def _block(block: Block, stay: set[Value]) -> Block:
    operations = list(block.operations)
    applied = [o for o in operations if isinstance(o, Apply) and is_inexact(o.out.type)]
    risky: set[Value] = set()
    for operation in applied:
        if operation.primitive not in _HARMLESS or any(a in risky for a in operation.args):
            risky.add(operation.out)
    readers: dict[Value, set[int]] = {}
    branches = any(isinstance(o, If | Loop) for o in operations)
    for k, reader in enumerate(operations) if applied and branches else ():
        for value in _read_by(reader):
            readers.setdefault(value, set()).add(k)
    moved: set[Value] = set()
    certain: _Certain = {}
    for operation in reversed(applied) if branches else ():
        value = operation.out
        if value in stay or value in block.yields:
            continue
        places = sorted(readers.get(value, ()))
        reading = [operations[k] for k in places]
        is_wanted = value in risky or _is_free_in_branch(operation, reading, certain)
        if is_wanted and _is_chosen(value, reading, moved, certain):
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


def _is_chosen(value: Value, operations: Sequence[Operation], moved: set[Value], certain: _Certain) -> bool:
    """Whether only branches differentiate the value; the copy that stays outside has no derivative."""
    chosen = False
    for operation in operations:
        if value in operation.uses() and not is_not_differentiated(operation, value, moved):
            return False
        readers = [b for b in operation.blocks() if _reads(b, value)]
        if not readers:
            continue
        match operation:
            case If():
                inside = not all(value in _certainly_read(b, certain) for b in operation.blocks())
            case Loop(body=body):
                inside = readers == [body] and value not in body.yields
                inside = inside and _is_chosen(value, body.operations, moved, certain)
            case _:
                inside = False
        if not inside:
            return False
        chosen = True
    return chosen


def _is_free_in_branch(operation: Apply, readers: Sequence[Operation], certain: _Certain) -> bool:
    """Whether the value takes nothing to compute again, and one branch alone has it: which differentiates, whichever
    side is taken, what the value is computed from, so that it has one adjoint less to yield and not one more."""
    branches = [o for o in readers if o.blocks()]
    if len(branches) != 1 or not isinstance(branches[0], If) or not PRIMITIVES[operation.primitive].cheap:
        return False
    arguments = differentiable_arguments(operation)
    known = [_certainly_read(b, certain) for b in branches[0].blocks()]
    return bool(arguments) and all(any(a in side for side in known) for a in arguments)


def _certainly_read(block: Block, certain: _Certain) -> set[Value]:
    """The values that are differentiated whichever branches inside are taken."""
    if block not in certain:
        found = certain[block] = set(block.yields)
        for operation in block.operations:
            found.update(v for v in operation.uses() if not is_not_differentiated(operation, v, set()))
            if isinstance(operation, If):
                then, orelse = (_certainly_read(b, certain) for b in operation.blocks())
                found |= then & orelse
    return certain[block]


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
