"""Loops that can share a body do: what one computes for an element, the next one uses at once.

    z = np.empty(n)                          total = 0.0
    for i in range(n):                       for i in range(n):
        z[i] = x[i] * w[i]          =>           z = x[i] * w[i]
    for i in range(n):                           total += z * z
        total += z[i] * z[i]

Two loops over the same range become one if no element is used by the second before the first has it, or changed by the
second while the first still needs it. What stands between them goes before both where it can; a sum of the second loop
that starts from something late starts from zero, and gets it afterwards. That `z` needs no array any more is then found
by sharing (a load of what was just stored) and by removing what nobody reads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.dependence import Effects, Turns
from srcdiff.analyses.symbolic_shapes import Pair
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Function,
    Library,
    Load,
    Loop,
    Operation,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import FLOAT


def fuse(function: Function, decisions: Decisions | None = None) -> Function:
    return changed(function, body=_Fuse(function, decisions or Decisions()).block(function.body))


def straighten(function: Function) -> Function:
    """Loops that run backwards run forwards, where the order of their turns does not matter."""
    return changed(function, body=_Straighten(function).block(function.body))


class _Straighten:
    def __init__(self, function: Function) -> None:
        self.dependence = Turns(function)
        self.definition = self.dependence.definition
        self.constants = self.dependence.constants

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            backwards = isinstance(operation, Loop) and operation.counted and self.dependence.step(operation) == -1
            if backwards and isinstance(operation, Loop) and self.dependence.independent(operation):
                operation = self.forwards(operation, operations)
            operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def forwards(self, loop: Loop, into: list[Operation]) -> Loop:
        """`range(start, stop, -1)` as `range(stop + 1, start + 1)`."""
        assert loop.bounds is not None
        start, stop, _ = loop.bounds
        builder = Builder()
        builder.operations = into
        builder.constants = self.constants
        for value in (start, stop):
            operation = self.definition.get(value)
            if isinstance(operation, Apply):
                builder.note(operation)
        one = builder.const(1)
        first, last = (builder.apply("add", v, one) for v in (stop, start))
        return replace(loop, bounds=(first, last, one))


class _Fuse:
    def __init__(self, function: Function, decisions: Decisions) -> None:
        self.dependence = Turns(function)
        self.lengths = self.dependence.lengths
        self.definition = self.dependence.definition
        self.decisions = decisions
        self.effects_of: dict[Operation, Effects] = {}

    # -- blocks ------------------------------------------------------------------------------------------------------

    def block(self, block: Block, facts: list[Pair] | None = None) -> Block:
        facts = list(facts or ())
        operations = self.fused(list(block.operations), facts)
        rebuilt: list[Operation] = []
        for operation in operations:
            rebuilt.append(operation.rebuilt(partial(self.block, facts=facts)))
            facts += self.facts([self.lengths.compared(operation)])
        return changed(block, operations=tuple(rebuilt))

    def facts(self, compared: list[Pair | None]) -> list[Pair]:
        return [pair for pair in compared if pair is not None]

    def fused(self, operations: list[Operation], outer: list[Pair]) -> list[Operation]:
        compared = [self.lengths.compared(o) for o in operations]
        k = 0
        while k < len(operations):
            first = operations[k]
            if not isinstance(first, Loop) or not first.counted:
                k += 1
                continue
            for n in range(k + 1, len(operations)):
                second = operations[n]
                if not isinstance(second, Loop):
                    continue
                if self.same_range(first, second, outer + self.facts(compared[:n])):
                    joined = self.join(operations, k, n)
                    if joined is not None:
                        operations = joined
                        compared = [self.lengths.compared(o) for o in operations]
                        break
            else:
                k += 1
                continue
            k = 0  # what moved may bring other loops together
        return operations

    def same_range(self, a: Loop, b: Loop, facts: list[Pair]) -> bool:
        if not b.counted or a.bounds is None or b.bounds is None:
            return False
        alike = all(self.lengths.same(x, y, facts) for x, y in zip(a.bounds, b.bounds, strict=True))
        return alike and self.dependence.step(a) in (1, -1)

    # -- two loops ---------------------------------------------------------------------------------------------------

    def join(self, operations: list[Operation], k: int, n: int) -> list[Operation] | None:
        """The operations with loops `k` and `n` as one, if that changes nothing."""
        first, second = operations[k], operations[n]
        assert isinstance(first, Loop) and isinstance(second, Loop)
        effects_first, effects_second = self.effects_once(first), self.effects_once(second)
        if any(e.pinned or e.raises for e in (effects_first, effects_second)):
            return None
        if not self.pays(first, second, effects_first, effects_second):
            return None
        before: list[Operation] = []
        after: list[Operation] = []
        late = set(first.defines())
        raising = False
        stays = Effects()
        for operation in operations[k + 1 : n]:
            effects = self.effects_once(operation)
            depends = (
                bool(effects.uses & late)
                or self.dependence.conflict(effects, effects_first)
                or self.dependence.conflict(effects, stays)
            )
            if not depends and not effects.pinned:
                before.append(operation)
                raising = raising or effects.raises
                continue
            if effects.pinned or effects.raises:
                return None
            after.append(operation)
            late |= set(operation.defines())
            self.merge(stays, effects)
        second, zeros, sums = self.sums_from_zero(second, late)
        effects_second = self.effects_once(second)
        if effects_second.uses & late or self.dependence.conflict(effects_second, stays):
            return None
        if raising and self.visible(effects_first):
            return None
        if not self.in_step(first, second, effects_first, effects_second):
            return None
        for operation in (*zeros, *sums):
            self.dependence.define(operation)
        return [*operations[:k], *before, *zeros, self.one(first, second), *after, *sums, *operations[n + 1 :]]

    def effects_once(self, operation: Operation) -> Effects:
        """What an operation reads and writes, which is asked for each pair of loops that it stands between."""
        if operation not in self.effects_of:
            self.effects_of[operation] = self.dependence.effects((operation,))
        return self.effects_of[operation]

    def sums_from_zero(self, loop: Loop, late: set[Value]) -> tuple[Loop, list[Operation], list[Operation]]:
        """The loop with sums that start from zero where what they start from is late, and is added behind the loop."""
        inits, outs = list(loop.inits), list(loop.outs)
        zeros, sums = list[Operation](), list[Operation]()
        for k, start in enumerate(loop.inits):
            if start in late and start.type == FLOAT and self.dependence.is_sum(loop, k):
                inits[k], outs[k] = Value(FLOAT), Value(FLOAT, loop.outs[k].name)
                zeros.append(Const(inits[k], 0.0, span=loop.span))
                sums.append(Apply(loop.outs[k], "add", (start, outs[k]), span=loop.span))
        return replace(loop, inits=tuple(inits), outs=tuple(outs)) if sums else loop, zeros, sums

    def visible(self, effects: Effects) -> bool:
        """Whether memory that came from outside is written: an exception must come after it, not before."""
        return any(not isinstance(self.definition.get(site), Alloc | Copy | Library | Call) for site in effects.writes)

    def one(self, first: Loop, second: Loop) -> Loop:
        self.decisions.shared.append((first, second))
        known: dict[Value, Value] = {}
        if first.index is not None and second.index is not None:
            known[second.index] = first.index
        body = substituted(second.body, lambda v: known.get(v, v))
        for operation in walk(body):
            self.dependence.define(operation)
        return replace(
            first,
            params=(*first.params, *second.params),
            inits=(*first.inits, *second.inits),
            outs=(*first.outs, *second.outs),
            body=Block((*first.body.operations, *body.operations), (*first.body.yields, *body.yields)),
            count=first.count if first.count is not None else second.count,
        )

    def pays(self, first: Loop, second: Loop, a: Effects, b: Effects) -> bool:
        """Whether they have arrays in common, and neither is a recurrence that would hold the other up."""
        if first.count is not None and second.count is not None:
            return False
        touched, recurs = self.dependence.touched, self.dependence.recurs
        return bool(touched(a) & touched(b)) and recurs(first, a) == recurs(second, b)

    def merge(self, into: Effects, other: Effects) -> None:
        into.uses |= other.uses
        into.loads += other.loads
        into.stores += other.stores
        into.reads |= other.reads
        into.writes |= other.writes

    def in_step(self, first: Loop, second: Loop, a: Effects, b: Effects) -> bool:
        """Whether a turn of the second touches only elements that the first is done with by then."""
        for site in (self.dependence.touched(a) & b.writes) | (a.writes & self.dependence.touched(b)):
            if site in a.reads or site in b.reads:
                return False
            earlier: list[Load | Store] = [*a.loads, *a.stores]
            later: list[Load | Store] = [*b.loads, *b.stores]
            for x in earlier:
                if site not in self.dependence.memory(x.array):
                    continue
                for y in later:
                    matters = site in self.dependence.memory(y.array) and (isinstance(x, Store) or isinstance(y, Store))
                    if matters and not self.not_later(x, first, y, second):
                        return False
        return True

    def not_later(self, x: Load | Store, first: Loop, y: Load | Store, second: Loop) -> bool:
        """Whether the turn of the first loop that touches an element is none after that of the second."""
        if x.array is not y.array:
            return False
        forward = self.dependence.step(first) == 1
        for p, q in zip(x.indices, y.indices, strict=True):
            stride = self.dependence.stride(p, first)
            if stride is not None and stride == self.dependence.stride(q, second):
                return True
            here, there = self.dependence.distance(p, first), self.dependence.distance(q, second)
            if here is None or there is None:
                continue
            # x touches i + here, y touches j + there: the same element if i = j + there - here
            if (there <= here) if forward else (there >= here):
                return True
        return False
