"""Induction variables in closed form: an integer that a loop adds to follows from the counters of the loops.

p = 0                                        for i in range(d):
for i in range(d):                               p = max(i * (d - 1) - i * (i - 1) // 2, 0)
    for j in range(i + 1, d):     =>             for j in range(i + 1, d):
        s += l[p] * x[j]                             s += l[p + (j - (i + 1))] * x[j]
        p += 1

The increment of an iteration is an affine function of the counter, so the sum over the earlier iterations is a
polynomial of degree at most two. The iterations no longer depend on each other for it, and the reverse sweep computes
it without storing it. The value is never negative; the explicit `max` tells LLVM so, which saves the wraparound test of
each index and allows vectorisation.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.access_relations import Affine, affine, length_is_difference, never_negative
from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Function, Loop, Operation, Value, changed, substituted, walk
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass


def close_induction_variables(function: Function) -> Function:
    if not any(isinstance(o, Loop) and any(p.type == INT for p in o.params) for o in walk(function.body)):
        return function
    return _ClosedForms(function).function()


@dataclass(frozen=True, slots=True)
class _Sum:
    """The increment of an integer per iteration: `first`, and `second` more in each further iteration."""

    first: Affine
    second: int
    is_growth: bool
    """Whether no iteration takes anything away."""


class _ClosedForms:
    def __init__(self, original: Function) -> None:
        self.original = original
        self.structure = structure_of(original)
        self.builder = Builder()
        self.builder.constants.update(self.structure.constants)
        self.known: dict[Value, Value] = {}
        self.lengths = lengths_of(original)
        self.naturals: set[Value] = set()
        """Integers of the loops that are never negative."""

    def function(self) -> Function:
        body = self.block(self.original.body)
        return changed(self.original, body=substituted(body, self.resolve) if self.known else body)

    def resolve(self, value: Value) -> Value:
        while value in self.known:
            value = self.known[value]
        return value

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Loop):
                self.loop(operation, operations)
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def loop(self, loop: Loop, into: list[Operation]) -> None:
        found = {k: grown for k in range(len(loop.params)) if (grown := self.growth(loop, k)) is not None}
        for k, grown in found.items():
            if grown.is_growth and (loop.inits[k] in self.naturals or self.lengths.is_natural(loop.inits[k])):
                self.naturals |= {loop.params[k], loop.outs[k]}
        rebuilt = changed(loop, body=self.block(loop.body), test=None if loop.test is None else self.block(loop.test))
        if not found:
            into.append(rebuilt)
            return
        build = self.builder
        build.operations = into
        firsts = {k: self.value_of(grown.first) for k, grown in found.items()}
        with build.block() as before:
            build.span = loop.span
            for k, grown in found.items():
                param, first = loop.params[k], firsts[k]
                self.known[param] = self.closed(param, loop.inits[k], self.so_far(loop, first, grown.second), grown)
        body = Block((*before, *rebuilt.body.operations), rebuilt.body.yields)
        into.append(replace(rebuilt, body=body))
        if loop.counted and loop.bounds is not None:
            build.operations = into
            count = build.apply("range_length", *loop.bounds)
            for k, grown in found.items():
                out, all_of_it = loop.outs[k], self.sum(count, firsts[k], grown.second)
                self.known[out] = self.closed(out, loop.inits[k], all_of_it, grown)

    def closed(self, value: Value, start: Value, added: Value, grown: _Sum) -> Value:
        """The value by its formula, with a `max` where LLVM cannot prove that it is nonnegative."""
        total = self.builder.apply("add", start, added)
        is_plain = not grown.second and not grown.first.terms
        if value in self.naturals and not is_plain:
            total = self.builder.apply("maximum", total, self.builder.const(0))
        total.name = total.name or value.name
        return total

    def so_far(self, loop: Loop, first: Value, second: int) -> Value:
        """The sum of the increments of the earlier iterations."""
        assert loop.index is not None and loop.bounds is not None
        build = self.builder
        way, step = build.apply("subtract", loop.index, loop.bounds[0]), self.structure.constants[loop.bounds[2]]
        assert isinstance(step, int)
        each = build.constants.get(first)
        if not second and each is not None and each % step == 0:
            return build.apply("multiply", way, build.const(each // step))
        return self.sum(way if step == 1 else build.apply("floor_divide", way, loop.bounds[2]), first, second)

    def sum(self, number: Value, first: Value, second: int) -> Value:
        """The sum of the increments of this many iterations."""
        build = self.builder
        total = build.apply("multiply", number, first)
        if not second:
            return total
        before = build.apply("subtract", number, build.const(1))
        pairs = build.apply("floor_divide", build.apply("multiply", number, before), build.const(2))
        more = build.apply("multiply", pairs, build.const(abs(second)))
        return build.apply("add" if second > 0 else "subtract", total, more)

    def value_of(self, expression: Affine) -> Value:
        build, total = self.builder, None
        for value, factor in expression.terms:
            if total is None:
                total = value if factor == 1 else build.apply("multiply", build.const(factor), value)
                continue
            amount = build.apply("multiply", build.const(abs(factor)), value)
            total = build.apply("add" if factor > 0 else "subtract", total, amount)
        constant = build.const(expression.constant)
        return constant if total is None else build.apply("add", total, constant)

    # -- what loops add ----------------------------------------------------------------------------------------------

    def growth(self, loop: Loop, slot: int) -> _Sum | None:
        """The increment of a loop parameter, if it is affine in the counter."""
        step = self.step(loop)
        if loop.params[slot].type != INT or step is None or loop.index is None or loop.bounds is None:
            return None
        added, start = self.added(loop.body.yields[slot], loop.params[slot]), affine(loop.bounds[0], self.structure)
        if added is None or start is None or (added == Affine(0)):
            return None
        factor = dict(added.terms).get(loop.index, 0)
        first = added.plus(Affine(0, ((loop.index, 1),)), -factor).plus(start, factor)
        if not all(self.is_outside(v, loop) for v, _ in first.terms):
            return None
        return _Sum(first, factor * step, never_negative(added, loop.body, self.structure))

    def step(self, loop: Loop) -> int | None:
        step = None if loop.bounds is None or loop.test is not None else self.structure.constants.get(loop.bounds[2])
        return step if isinstance(step, int) and step else None

    def is_outside(self, value: Value, loop: Loop) -> bool:
        return loop not in self.structure.loops_around(self.structure.home.get(value, self.structure.top))

    def added(self, end: Value, start: Value) -> Affine | None:
        """The difference of two integers, if it is affine."""
        if end is start:
            return Affine(0)
        match self.structure.definition.get(end):
            case Apply(primitive="add", args=(first, second)):
                for base, by in ((first, second), (second, first)):
                    found = self.sum_of(self.added(base, start), affine(by, self.structure), 1)
                    if found is not None:
                        return found
            case Apply(primitive="subtract", args=(base, by)):
                return self.sum_of(self.added(base, start), affine(by, self.structure), -1)
            case Loop(outs=outs) as loop if end in outs and loop.counted:
                slot = outs.index(end)
                return self.sum_of(self.added(loop.inits[slot], start), self.all_that_is_added(loop, slot), 1)
        return None

    @staticmethod
    def sum_of(first: Affine | None, second: Affine | None, factor: int) -> Affine | None:
        return None if first is None or second is None else first.plus(second, factor)

    def all_that_is_added(self, loop: Loop, slot: int) -> Affine | None:
        """The sum of the increments of all iterations, if it is affine."""
        growth = self.growth(loop, slot)
        if growth is None or growth.second or loop.bounds is None or self.step(loop) != 1:
            return None
        start, stop = (affine(b, self.structure) for b in loop.bounds[:2])
        if start is None or stop is None or not length_is_difference(loop, self.structure):
            return None
        count = stop.plus(start, -1)
        for factor, other in ((growth.first, count), (count, growth.first)):
            if not factor.terms:
                return other.times(factor.constant)
        return None
