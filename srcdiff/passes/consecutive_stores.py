"""An array that a nest of loops fills one element after another starts by assignment, with zeros behind the last one.

a = np.zeros(m)                              a = np.empty(m)
for i in range(n):                           for i in range(n):
    p = i * (n - 1) - i * (i - 1) // 2           p = i * (n - 1) - i * (i - 1) // 2
    for j in range(i + 1, n):                    for j in range(i + 1, n):
        a[p + j - i - 1] += f(i, j)   =>             a[p + j - i - 1] = f(i, j)
                                             for k in range(n * (n - 1) - n * (n - 1) // 2, m):
                                                 a[k] = 0.0

Where a row of iterations ends, the next one begins: a polynomial says so. Adjoints of packed triangles are filled so.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from srcdiff.analyses.access_relations import length_is_difference
from srcdiff.analyses.polynomials import Polynomial, Polynomials, substituted, total
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Apply, Block, Dim, Function, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.types import INT, element_type


def assign_consecutive_elements(function: Function) -> Function:
    """The function with arrays of zeros that are filled in order, and without their zeros."""
    if not any(isinstance(o, Apply) and o.primitive == "floor_divide" for o in walk(function.body)):
        return function  # affine indices are handled by other passes
    filling = _Filling(structure_of(function), points_to(function))
    return changed(function, body=filling.block(function.body))


class _Filling:
    def __init__(self, structure: Structure, sites: dict[Value, Sites]) -> None:
        self.structure, self.sites = structure, sites

    def block(self, block: Block) -> Block:
        instead: dict[Operation, Operation] = {}
        behind: dict[Operation, tuple[Value, Value]] = {}
        for place, operation in enumerate(block.operations):
            if isinstance(operation, Alloc) and self.is_of_zeros(operation):
                self.array(operation, block.operations[place + 1 :], instead, behind)
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        for operation in block.operations:
            if operation in behind:
                assert isinstance(operation, Loop)
                builder.add(_with(operation, instead))
                self.fill(*behind[operation], operation, builder)
            else:
                builder.add(instead.get(operation) or operation.rebuilt(self.block))
        return changed(block, operations=tuple(builder.operations))

    def is_of_zeros(self, made: Alloc) -> bool:
        is_zero = made.fill is not None and self.structure.constants.get(made.fill) == 0.0
        return is_zero and made.out.array.rank == 1 and not made.grows

    def array(
        self,
        made: Alloc,
        behind: tuple[Operation, ...],
        instead: dict[Operation, Operation],
        filled: dict[Operation, tuple[Value, Value]],
    ) -> None:
        """Note what becomes of an array if the first thing that is done to it is to fill it in order."""
        for operation in behind:
            touching = [o for o in walk(Block((operation,))) if self.touches(o, made.out)]
            if not touching:
                continue
            (first, *others) = touching
            if others or operation in filled or not isinstance(operation, Loop) or not isinstance(first, Store):
                return
            index = self.index_behind(operation, first)
            if index is not None and first.array is made.out and first.value.type == element_type(made.out.array):
                instead |= {made: replace(made, fill=None), first: replace(first, adds=False)}
                filled[operation] = (made.out, index)
            return

    def touches(self, operation: Operation, array: Value) -> bool:
        if isinstance(operation, Dim) or (isinstance(operation, Alloc) and operation.like is array):
            return False
        used = [*operation.uses(), *(v for b in operation.blocks() for v in b.yields)]
        return any(array in self.sites.get(v, frozenset()) for v in used)

    def index_behind(self, outer: Loop, store: Store) -> Value | None:
        """The value that marks the beginning of a row of iterations, if the rows are adjacent and begin at zero."""
        inner = self.structure.owner.get(self.structure.block_of[store])
        if not isinstance(inner, Loop) or self.structure.block_of[inner] is not outer.body or not store.adds:
            return None
        if not all(self.is_plain(loop) for loop in (outer, inner)) or len(store.indices) != 1:
            return None
        assert outer.index is not None and inner.index is not None and outer.bounds and inner.bounds
        known = Polynomials(self.structure)
        index, start, stop = (known.of(v) for v in (store.indices[0], *inner.bounds[:2]))
        one, counter = known.of(outer.index), known.of(inner.index)
        row = total(total(index, counter, -1), start)
        if any(inner.index in monomial for monomial in row) or any(n != row for n in known.not_negative):
            return None
        following = substituted(row, outer.index, total(one, {(): Fraction(1)}))
        first = substituted(row, outer.index, known.of(outer.bounds[0]))
        if first or total(total(following, row, -1), total(stop, start, -1), -1):
            return None
        return self.row_of(store.indices[0], row, known)

    def is_plain(self, loop: Loop) -> bool:
        """Whether it makes as many iterations as its bounds are apart."""
        is_step = loop.counted and loop.bounds is not None and self.structure.constants.get(loop.bounds[2]) == 1
        return is_step and length_is_difference(loop, self.structure)

    def row_of(self, index: Value, row: Polynomial, known: Polynomials) -> Value | None:
        """The value, of those that an index is computed from, that is where the row begins."""
        if known.of(index) == row:
            return index
        definition = self.structure.definition.get(index)
        for argument in definition.args if isinstance(definition, Apply) else ():
            found = self.row_of(argument, row, known)
            if found is not None:
                return found
        return None

    def fill(self, array: Value, row: Value, outer: Loop, builder: Builder) -> None:
        """Zeros from where the row behind the last one would begin."""
        assert outer.bounds is not None and outer.index is not None
        known = {outer.index: outer.bounds[1]}
        begin = self.again(row, outer, known, builder)
        counter = Value(INT, "k")
        with builder.block() as operations:
            builder.store(array, (counter,), builder.const(0.0))
        bounds = (begin, builder.dim(array, 0), builder.const(1))
        builder.add(Loop(counter, bounds, (), (), None, Block(tuple(operations)), ()))

    def again(self, value: Value, outer: Loop, known: dict[Value, Value], builder: Builder) -> Value:
        """The value for another number of the loop's counter."""
        definition = self.structure.definition.get(value)
        around = self.structure.blocks_around(self.structure.home.get(value, self.structure.top))
        if value not in known and isinstance(definition, Apply) and outer.body in around:
            args = [self.again(a, outer, known, builder) for a in definition.args]
            known[value] = builder.apply(definition.primitive, *args)
        if value not in known and value in self.structure.constants:
            known[value] = builder.const(self.structure.constants[value])
        return known.get(value, value)


def _with(operation: Operation, instead: dict[Operation, Operation]) -> Operation:
    def visit(block: Block) -> Block:
        return changed(block, operations=tuple(instead.get(o, o).rebuilt(visit) for o in block.operations))

    return operation.rebuilt(visit)
