"""Array contraction: if every iteration of a loop uses only its own part of an array, one part is enough.

kept = np.empty((n, m))                      kept = np.empty(m)
for p in range(n):                           for p in range(n):
    for t in range(m):                           for t in range(m):
        kept[p, t] = x                               kept[t] = x
        x = f(x)                  =>                 x = f(x)
    for t in range(m - 1, -1, -1):               for t in range(m - 1, -1, -1):
        x_bar *= df(kept[p, t])                      x_bar *= df(kept[t])

Buffers between the sweeps are such arrays, once loop fusion has put both sweeps into one loop.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import Lengths
from srcdiff.ir.nodes import Alloc, Block, Function, Load, Loop, Operation, Store, Value, changed
from srcdiff.ir.types import Array


def contract(function: Function, in_loops: bool = False) -> Function:
    """Remove the axes that an outer loop indexes; `in_loops`, each iteration makes what is left of the array."""
    contraction = _Contraction(function)
    found = {
        o.out: place for o in contraction.structure.start for place in contraction.needless(o) if isinstance(o, Alloc)
    }
    return _without(function, found, contraction, in_loops) if found else function


class _Contraction:
    def __init__(self, function: Function) -> None:
        self.structure = structure_of(function)
        self.lengths = Lengths(function)
        self.accesses: dict[Value, list[Load | Store]] = {}
        self.known_otherwise = {v for b in (function.body, *self.structure.owner) for v in b.yields}
        for operation in self.structure.start:
            if isinstance(operation, Load | Store):
                self.accesses.setdefault(operation.array, []).append(operation)
            elif not (isinstance(operation, Alloc) and self.shape(operation) is not None):
                self.known_otherwise |= set(operation.uses())

    def shape(self, operation: Alloc) -> tuple[Value, ...] | None:
        """The lengths of a new array, if it or the one that it is like was made with them."""
        while operation.like is not None:
            source = self.structure.definition.get(operation.like)
            if not isinstance(source, Alloc):
                return None
            operation = source
        return operation.shape

    def needless(self, operation: Operation) -> list[tuple[int, Loop]]:
        """The first axis along which no value flows between iterations of a loop, if there is one, and the loop."""
        if not isinstance(operation, Alloc) or operation.fill is not None or self.shape(operation) is None:
            return []
        accesses = self.accesses.get(operation.out, [])
        if operation.out in self.known_otherwise or not accesses or operation.out.array.rank < 2:
            return []
        for axis in range(operation.out.array.rank):
            indices = {a.indices[axis] for a in accesses}
            loop = self.structure.definition.get(next(iter(indices)))
            if not isinstance(loop, Loop) or indices != {loop.index} or not self.lengths.counts_naturals(loop):
                continue  # row -1 is the last row as well: two iterations would have one row
            if self.structure.block_of[loop] is self.structure.block_of[operation]:
                return [(axis, loop)]
        return []


def _without(
    function: Function, found: dict[Value, tuple[int, Loop]], contraction: _Contraction, in_loops: bool
) -> Function:
    axes = {array: axis for array, (axis, _) in found.items()}
    arrays = {a: Value(Array(a.array.dtype, a.array.rank - 1), a.name) for a in axes}
    of_loops: dict[Block, list[Operation]] = {}

    def rest(parts: tuple[Value, ...], axis: int) -> tuple[Value, ...]:
        return (*parts[:axis], *parts[axis + 1 :])

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            match operation:
                case Alloc(out=out, like=like) if (out in axes or like in axes) and contraction.shape(operation):
                    shape = contraction.shape(operation) or ()
                    if out in axes:
                        made = replace(operation, out=arrays[out], shape=rest(shape, axes[out]), like=None)
                        if in_loops:
                            of_loops.setdefault(found[out][1].body, []).append(made)
                            continue
                        operation = made
                    else:
                        operation = replace(operation, shape=shape, like=None)
                case Load() | Store() if operation.array in axes:
                    array = operation.array
                    indices = rest(operation.indices, axes[array])
                    operation = replace(operation, array=arrays[array], indices=indices, claims=())
            operations.append(operation.rebuilt(visit))
        return changed(block, operations=(*of_loops.pop(block, ()), *operations))

    return replace(function, body=visit(function.body))
