"""Copies of operations with new values."""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Block, Call, Comment, Function, Operation, Value, changed


def inline(function: Function, args: list[Value], builder: Builder) -> list[Value]:
    """Write the body of the function with these arguments; return its results."""
    known = dict(zip(function.params, args, strict=True))
    for operation in function.body.operations:
        builder.add(cloned(operation, known))
    return [known.get(v, v) for v in function.body.yields]


def renamed(function: Function, names: dict[str, str]) -> Function:
    """The function with other names for itself and for functions that it calls."""

    def visit(block: Block) -> Block:
        operations = tuple([visited(o).rebuilt(visit) for o in block.operations])
        return changed(block, operations=operations)

    def visited(operation: Operation) -> Operation:
        if isinstance(operation, Call):
            return changed(operation, function=names.get(operation.function, operation.function))
        return operation

    return changed(function, name=names.get(function.name, function.name), body=visit(function.body))


def fresh(function: Function) -> Function:
    """A copy of the function with new values, which can coexist with the original."""
    known = {p: Value(p.type, p.name) for p in function.params}
    params = tuple(known.values())
    written = tuple([known[p] for p in function.written])
    return Function(function.name, params, _block(function.body, known), written)


def cloned(operation: Operation, known: dict[Value, Value]) -> Operation:
    """The operation with new results; `known` maps old values to new ones and is added to."""
    operation = operation.replaced(lambda v: known.get(v, v))
    for value in (*operation.defines(), *operation.inner()):
        known[value] = Value(value.type, value.name)
    return operation.redefined(known.__getitem__).rebuilt(lambda block: _block(block, known))


def _block(block: Block, known: dict[Value, Value]) -> Block:
    operations = tuple(cloned(o, known) for o in block.operations)
    return Block(operations, tuple(known.get(v, v) for v in block.yields))


def without_comments(function: Function) -> Function:
    """The function without its section comments, for inlining into another one."""
    operations = tuple(o for o in function.body.operations if not isinstance(o, Comment))
    return replace(function, body=Block(operations, function.body.yields))
