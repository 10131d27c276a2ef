"""Allocation hoisting: arrays that every iteration allocates and discards are allocated once, before the loop.

for t in range(n):                           t_bar, other = np.empty(m), np.empty(m)
    t_bar = np.empty(m)                      for t in range(n):
    ...                                          ...
    x_bar = np.empty(m)           =>             for i in range(m):
    for i in range(m):                               other[i] = t_bar[i] * y_bar[i]
        x_bar[i] = t_bar[i] * y_bar[i]           y_bar, other = other, y_bar
    y_bar = x_bar

A new array that replaces a carried array swaps with it, if the old array is not read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from srcdiff.analyses.ownership import LastSeen
from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.aliasing import Apart, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Block, Function, Loop, Operation, Value, changed, substituted, walk


def hoist_allocations(function: Function) -> Function:
    """Loop by loop, from the inside: an allocation before an inner loop may then leave an outer one."""
    while True:
        after = _Scratch(function).run()
        if after is function:
            return function
        function = after


class _Scratch:
    def __init__(self, function: Function) -> None:
        self.sites = points_to(function)
        self.apart = Apart(function, self.sites)
        self.lengths = lengths_of(function)
        self.structure = structure_of(function)
        self.function = function
        self.seen = LastSeen(function)

    def run(self) -> Function:
        """The function with the arrays of one loop made before it."""
        for operation in reversed(walk(self.function.body)):
            if isinstance(operation, Loop) and operation.counted and not operation.threads:
                found = list(self.arrays(operation))
                if found:
                    return replace(self.function, body=self.block(self.function.body, operation, found))
        return self.function

    def arrays(self, loop: Loop) -> Iterator[tuple[Alloc, int | None]]:
        """New arrays of an iteration that can be allocated before the loop; carried ones with their position."""
        taken: set[int] = set()
        for operation in loop.body.operations:
            if not isinstance(operation, Alloc) or not operation.out.array.rank or operation.workspace is not None:
                continue
            if self.shape(operation, loop) is None:
                continue
            names = [v for v, sites in self.sites.items() if operation.out in sites]
            inside = all(loop in self.structure.loops_around(self.structure.home[v]) for v in names)
            if inside and not any(v in loop.body.yields for v in names):
                yield operation, None
            elif loop.body.yields.count(operation.out) == 1:
                slot = loop.body.yields.index(operation.out)
                if slot not in taken and self.changes_places(operation, loop, slot):
                    taken.add(slot)
                    yield operation, slot

    def changes_places(self, made: Alloc, loop: Loop, slot: int) -> bool:
        """Whether the carried array can be reused as the next new one: same size, and not read again."""
        param = loop.params[slot]
        same = all(self.lengths.of(param, k) == self.lengths.of(made.out, k) for k in range(param.array.rank))
        others = [v for v in loop.body.yields if v is not made.out and v in self.sites]
        apart = all(self.apart.different(v, made.out) and self.apart.different(v, param) for v in others)
        started = self.structure.definition.get(loop.inits[slot])
        return same and apart and isinstance(started, Alloc) and self.seen.is_left_behind(param)

    def shape(self, made: Alloc, loop: Loop) -> list[Value | tuple[Value, int] | int] | None:
        """The lengths in terms of values before the loop."""
        found: list[Value | tuple[Value, int] | int] = []
        for axis in range(made.out.array.rank):
            match self.lengths.of(made.out, axis):
                case int(size) if size >= 0:
                    found.append(size)
                case Value() as size if self.is_before(size, loop):
                    found.append(size)
                case (Value() as source, int(place)) if self.is_before(source, loop):
                    found.append((source, place))
                case _:
                    given = self.length_given(made, axis)
                    if given is None or not self.is_before(given, loop):
                        return None
                    found.append(given)
        return found

    def length_given(self, made: Alloc, axis: int) -> Value | None:
        """The integer that an array was allocated with, or the one whose shape it has."""
        if made.shape:
            return made.shape[axis]
        source = None if made.like is None else self.structure.definition.get(made.like)
        return self.length_given(source, axis) if isinstance(source, Alloc) else None

    def is_before(self, value: Value, loop: Loop) -> bool:
        definition = self.structure.definition.get(value)
        if definition is None:
            return True
        if loop in self.structure.loops_around(self.structure.home[value]):
            return False
        blocks = self.structure.blocks_around(self.structure.block_of[loop])
        return self.structure.home[value] in blocks and self.structure.start[definition] < self.structure.start[loop]

    # -- how it is written -------------------------------------------------------------------------------------------

    def block(self, block: Block, loop: Loop, found: list[tuple[Alloc, int | None]]) -> Block:
        builder = Builder()
        for operation in block.operations:
            if operation is loop:
                self.write(loop, found, builder)
            else:
                builder.add(operation.rebuilt(lambda inner: self.block(inner, loop, found)))
        return changed(block, operations=tuple(builder.operations))

    def write(self, loop: Loop, found: list[tuple[Alloc, int | None]], builder: Builder) -> None:
        instead: dict[Operation, Value] = {}
        params, inits, yields, outs = list[Value](), list[Value](), list[Value](), list[Value]()
        for made, slot in found:
            array = Value(made.out.type, made.out.name)
            sizes = tuple(self.size(s, builder) for s in self.shape(made, loop) or ())
            builder.add(Alloc(array, sizes, keeps=made.keeps, span=made.span))
            if slot is not None:
                params.append(Value(array.type, array.name))
                inits.append(array)
                yields.append(loop.params[slot])
                outs.append(Value(array.type, array.name))
                array = params[-1]
            instead[made] = array
        known = {made.out: array for made, array in instead.items() if isinstance(made, Alloc)}
        body = substituted(loop.body, lambda v: known.get(v, v))
        operations: list[Operation] = []
        for before, operation in zip(loop.body.operations, body.operations, strict=True):
            if before not in instead:
                operations.append(operation)
            elif isinstance(operation, Alloc) and operation.fill is not None:
                operations += self.filled(instead[before], operation.fill)
        count = len(loop.params)
        builder.add(
            replace(
                loop,
                params=(*loop.params, *params),
                inits=(*loop.inits, *inits),
                outs=(*loop.outs, *outs),
                body=Block(tuple(operations), (*body.yields[:count], *yields, *body.yields[count:])),
            )
        )

    def size(self, size: Value | tuple[Value, int] | int, builder: Builder) -> Value:
        if isinstance(size, Value):  # a loop that does not run would not have allocated, so the length may be negative
            return size if self.lengths.is_natural(size) else builder.apply("maximum", size, builder.const(0))
        return builder.const(size) if isinstance(size, int) else builder.dim(*size)

    def filled(self, array: Value, fill: Value) -> list[Operation]:
        builder = Builder()
        builder.each_element(array, lambda indices: builder.store(array, indices, fill))
        return builder.operations
