"""Length hoisting: lengths of arrays at top level are read once, at top level; equal lengths have one name.

u = x.copy()                                 n = x.shape[0]
for t in range(steps):                       u = x.copy()
    n = u.shape[0]                =>         for t in range(steps):
    for i in range(n):                           for i in range(n):
        ...                                          ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.nodes import Block, Dim, Function, Operation, Value, changed, substituted, walk
from srcdiff.ir.types import INT


def hoist_lengths(function: Function) -> Function:
    lengths, structure = lengths_of(function), structure_of(function)
    named: dict[tuple[Value, int], Value] = {}
    known: dict[Value, Value] = {}
    gone: set[Operation] = set()
    for operation in walk(function.body):
        if isinstance(operation, Dim):
            match lengths.of(operation.array, operation.axis):
                case (Value() as array, int() as axis) if structure.home.get(array) is structure.top:
                    known[operation.out] = named.setdefault((array, axis), Value(INT, operation.out.name))
                    gone.add(operation)

    of_array: dict[Value, list[tuple[int, Dim]]] = {}
    for place, ((array, axis), out) in enumerate(named.items()):
        of_array.setdefault(array, []).append((place, Dim(out, array, axis)))

    def lengths_after(arrays: Iterable[Value]) -> list[Operation]:
        found = [one for array in dict.fromkeys(arrays) for one in of_array.get(array, ())]
        return [length for _, length in sorted(found, key=lambda one: one[0])]

    operations = lengths_after(function.params)
    for operation in _without(function.body, gone).operations:
        operations += [operation, *lengths_after(operation.defines())]
    body = Block(tuple(operations), function.body.yields)
    return replace(function, body=substituted(body, lambda v: known.get(v, v)))


def _without(block: Block, operations: set[Operation]) -> Block:
    """The block, in the blocks inside it too, without some operations."""
    rest = tuple([o.rebuilt(lambda b: _without(b, operations)) for o in block.operations if o not in operations])
    return changed(block, operations=rest)
