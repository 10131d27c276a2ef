"""A loop moves inside the next one where that lets loops over the same range become one.

    for j in range(n):                           for j in range(n):
        for k in range(n):                           for k in range(n):
            r[j, k] = 0.0                                r[j, k] = 0.0
    for i in range(m):                           for j in range(n):
        for j in range(n):            =>             for i in range(m):
            for k in range(n):                           for k in range(n):
                r[j, k] += x[i, j] * y[i, k]                 r[j, k] += x[i, j] * y[i, k]

A sum along the first axis is such a nest. After the interchange, loop fusion makes one loop over `j` of both, and a row
of `r` is used while it is in the cache; often an array of one row is left. The innermost loop stays where it is: it is
the one that vectorises. The outer loop must have independent iterations, but for sums. An array that the nest goes
through once, by all its counters, is in the order of its memory already, and nothing is moved.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.dependence import Effects, dependence_of
from srcdiff.ir.nodes import Block, Const, Function, Load, Loop, Operation, Value, changed, walk


def interchange_loops(function: Function) -> Function:
    return changed(function, body=_Interchange(function).block(function.body))


class _Interchange:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.structure, self.lengths = self.dependence.structure, self.dependence.lengths
        self.effects_of: dict[Loop, Effects] = {}

    def block(self, block: Block) -> Block:
        loops = [o for o in block.operations if isinstance(o, Loop) and o.counted]
        operations: list[Operation] = []
        for operation in block.operations:
            inner = self.inner_of(operation)
            if isinstance(operation, Loop) and inner is not None and self.pays(operation, inner, loops):
                constants = operation.body.operations[:-1]
                moved = replace(operation, body=Block((*constants, *inner.body.operations)))
                operations.append(replace(inner, body=Block((moved,)), claims=()))  # of one iteration of the other
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def inner_of(self, operation: Operation) -> Loop | None:
        """The loop that is all there is in another, with a loop inside, if the two may change places."""
        if not isinstance(operation, Loop) or not operation.counted or operation.params or operation.count is not None:
            return None
        *others, inner = operation.body.operations or (operation,)
        if not isinstance(inner, Loop) or not inner.counted or inner.params or inner.count is not None:
            return None
        if not all(isinstance(o, Const) for o in others) or not any(isinstance(o, Loop) for o in walk(inner.body)):
            return None
        if any(self.structure.home.get(b, self.structure.top) is operation.body for b in inner.bounds or ()):
            return None
        return inner if self.dependence.independent(operation) else None

    def pays(self, outer: Loop, inner: Loop, loops: list[Loop]) -> bool:
        """Whether a loop beside this one could share the inner one's iterations, and none those of the outer one."""
        beside = [x for x in loops if x is not outer and self.have_memory_in_common(x, outer)]
        if not any(self.same_range(x, inner) for x in beside) or any(self.same_range(x, outer) for x in beside):
            return False
        counters = {outer.index, inner.index}
        within = {o.index for o in walk(inner.body) if isinstance(o, Loop)}
        return not any(self.goes_through(load, counters, within) for load in self.effects(outer).loads)

    def goes_through(self, load: Load, counters: set[Value | None], within: set[Value | None]) -> bool:
        """Whether a load takes an element by both counters of a nest, and one of the loops within."""
        behind = {v for index in load.indices for v in self.counters_behind(index)}
        return counters <= behind and not behind.isdisjoint(within)

    def counters_behind(self, index: Value) -> set[Value]:
        """The values that an index is computed from: counters of loops among them."""
        operation = self.dependence.definition.get(index)
        return {index} if operation is None else {v for u in operation.uses() for v in self.counters_behind(u)}

    def have_memory_in_common(self, a: Loop, b: Loop) -> bool:
        first, second = self.effects(a), self.effects(b)
        return not first.writes.isdisjoint(second.touched) or not first.touched.isdisjoint(second.writes)

    def effects(self, loop: Loop) -> Effects:
        if loop not in self.effects_of:
            self.effects_of[loop] = self.dependence.effects((loop,))
        return self.effects_of[loop]

    def same_range(self, a: Loop, b: Loop) -> bool:
        bounds = zip(a.bounds or (), b.bounds or (), strict=True)
        return all(self.lengths.same(x, y) for x, y in bounds)
