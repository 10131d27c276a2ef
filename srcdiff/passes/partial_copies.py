"""A copy that is overwritten at once, but for its border, is a new array with a copied border.

    new = u.copy()                               new = np.empty(n)
    for i in range(1, n - 1):                    new[0], new[n - 1] = u[0], u[n - 1]
        new[i] = f(u[i - 1], u[i])    =>         for i in range(1, n - 1):
                                                     new[i] = f(u[i - 1], u[i])

In reverse, the adjoint of a copy adds a whole array, most of which is zeros here.
"""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.analyses.access_relations import fills
from srcdiff.analyses.dependence import dependence_of
from srcdiff.ir.nodes import Alloc, Block, Copy, Dim, Function, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.types import is_float
from srcdiff.passes.overwritten_arrays import BORDER, certain_stores, copy_border, sizes_before


def copy_partially(function: Function) -> Function:
    if not any(isinstance(o, Copy) for o in walk(function.body)):
        return function
    return changed(function, body=_PartialCopies(function).block(function.body))


class _PartialCopies:
    def __init__(self, function: Function) -> None:
        self.function, self.dependence = function, dependence_of(function)
        self.structure = self.dependence.structure

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for place, operation in enumerate(block.operations):
            made = self.partial(operation, block, place) if isinstance(operation, Copy) else None
            operations += (operation.rebuilt(self.block),) if made is None else made
        return changed(block, operations=tuple(operations))

    def partial(self, copy: Copy, block: Block, place: int) -> Sequence[Operation] | None:
        """A new array and the loops that copy its border, if the operations behind a copy overwrite all the rest."""
        array = copy.out
        if not is_float(array.type) or array.array.rank == 0 or copy.workspace is not None:
            return None
        stores = self.first_stores(array, block.operations[place + 1 :])
        around = self.structure.loops_around(block)
        shape = sizes_before(self.function, array, around[0] if around else copy) if stores else None
        if shape is None:
            return None
        for border in range(BORDER + 1):
            if fills(stores, shape, self.structure, block, border):
                made = Alloc(array, shape, span=copy.span)
                return made, *(copy_border(copy.array, array, shape, border, copy.span) if border else ())
        return None

    def first_stores(self, array: Value, operations: Sequence[Operation]) -> list[Store]:
        """The stores of the first operation that touches an array, if it is a loop that reads nothing of it."""
        for operation in operations:
            inside = [operation, *(o for b in operation.blocks() for o in walk(b))]
            touching = [o for o in inside if self.touches(o, array)]
            if touching:
                certain = list(certain_stores(operation, array)) if isinstance(operation, Loop) else []
                loops = {loop for s in certain for loop in self.structure.loops_around(self.structure.block_of[s])}
                only_stores = all((isinstance(o, Store) and not o.adds) or o in loops for o in touching)
                return certain if only_stores and not operation.defines() else []
        return []

    def touches(self, operation: Operation, array: Value) -> bool:
        if isinstance(operation, Dim) or (isinstance(operation, Alloc) and operation.like is not None):
            return False
        used = [*operation.uses(), *(v for b in operation.blocks() for v in b.yields)]
        return any(v in self.dependence.sites and not self.dependence.apart.different(v, array) for v in used)
