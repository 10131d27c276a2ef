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

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from functools import partial
from itertools import islice, product
from typing import Any

from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.dependence import Access, Dependence, Effects, dependence_of
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
    Loop,
    Operation,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import FLOAT
from srcdiff.quick_dataclasses import dataclass

_FARTHEST = 500
"""How many operations behind a loop another one is looked for, so that the time grows with the program, no faster."""

_CHECKS = (2, 8, 32, 128)
"""How many operations go behind a loop when it is checked whether another one can still be reached."""


def fuse(function: Function, decisions: Decisions | None = None) -> Function:
    if _count_loops(function) < 2:
        return function
    return changed(function, body=_Fuse(function, decisions or Decisions()).block(function.body))


def reverse_loops(function: Function) -> Function:
    """Loops that run backwards run forwards, where the order of their iterations does not matter."""
    if not _count_loops(function):
        return function
    return changed(function, body=_Reverse(function).block(function.body))


def _count_loops(function: Function) -> int:
    return sum(isinstance(o, Loop) for o in walk(function.body))


class _Reverse:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.definition = self.dependence.definition
        self.constants = dict(self.dependence.constants)

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


@dataclass(slots=True)
class Between:
    """The operations between two loops that may be fused: some move before them, the others after them."""

    late: set[Value]
    """Values that are there only when the first loop has run."""
    before: list[Operation] = field(default_factory=list)
    behind: list[Operation] = field(default_factory=list)
    effects: Effects = field(default_factory=Effects)
    """Effects of the operations that move after the loops."""
    raising: bool = False
    """Whether something that goes before may raise."""

    def add(self, effects: Effects) -> None:
        self.effects.writes |= effects.writes
        self.effects.touched |= effects.touched


class _Fuse:
    def __init__(self, function: Function, decisions: Decisions) -> None:
        self.dependence = Dependence(function, changing=True)
        self.lengths = self.dependence.lengths
        self.definition = self.dependence.definition
        self.decisions = decisions
        self.effects_of: dict[Operation, Effects] = {}
        self.recurrences: dict[Loop, bool] = {}
        self.used_inside: dict[Loop, set[Value]] = {}
        self.sums: dict[tuple[Loop, int], bool] = {}
        self.ranges: dict[Loop, tuple[Any, ...]] = {}
        self.parts: dict[Loop, list[Loop]] = {}
        """The loops that a fused loop consists of, as long as it may get more: each body is copied once."""
        self.touching: dict[Value, dict[Loop, None]] = {}
        """By memory that several operations touch, the loops among them that have not been looked at, in order."""

    # -- blocks ------------------------------------------------------------------------------------------------------

    def block(self, block: Block, facts: list[Pair] | None = None) -> Block:
        facts = list(facts or ())
        operations = self.fused(list(block.operations), facts)
        rebuilt: list[Operation] = []
        for operation in operations:
            rebuilt.append(operation.rebuilt(partial(self.block, facts=facts)))
            self.learn(operation, facts)
        return changed(block, operations=tuple(rebuilt))

    def learn(self, operation: Operation, facts: list[Pair]) -> None:
        """Behind an operation that compares two sizes they are equal."""
        compared = self.lengths.compared(operation)
        if compared is not None:
            facts.append(compared)

    def fused(self, operations: list[Operation], outer: list[Pair]) -> list[Operation]:
        """Until nothing changes: what moves may bring other loops together."""
        if sum(isinstance(o, Loop) for o in operations) < 2:
            return operations
        touched = Counter(site for o in operations for site in self.effects_once(o).touched)
        shared = {site for site, count in touched.items() if count > 1}
        changes = True
        while changes:
            facts, changes, k = list(outer), False, 0
            self.note_loops(operations, shared)
            while k < len(operations):
                if self.joined(operations, k, facts, shared):
                    changes = True
                else:
                    if operations[k] in self.parts:
                        operations[k] = self.completed(operations[k])
                    else:
                        self.forget(operations[k])
                    self.learn(operations[k], facts)
                    k += 1
        return operations

    def note_loops(self, operations: list[Operation], shared: set[Value]) -> None:
        self.touching = {site: {} for site in shared}
        for operation in operations:
            if isinstance(operation, Loop):
                for site in self.effects_once(operation).touched & shared:
                    self.touching[site][operation] = None

    def forget(self, operation: Operation) -> None:
        """No loop before this one looks for it any more."""
        if isinstance(operation, Loop):
            for site in self.effects_once(operation).touched:
                if site in self.touching:
                    self.touching[site].pop(operation, None)

    def joined(self, operations: list[Operation], k: int, facts: list[Pair], shared: set[Value]) -> bool:
        """Whether there is another loop that loop `k` can share a body with; then they are one from now on.

        `shared` is the memory that more than one of the operations touch.
        """
        first = operations[k]
        if not isinstance(first, Loop) or not first.counted or self.must_stay(first):
            return False
        facts = list(facts)
        between = Between(set(first.defines()))
        common = self.effects_once(first).touched & shared  # memory that others touch too
        reachable: list[Loop] | None = None
        for n in range(k + 1, min(len(operations), k + _FARTHEST) if common else 0):
            second = operations[n] = self.completed(operations[n])
            if isinstance(second, Loop) and self.same_range(first, second, facts):
                one = self.join(first, second, between)
                if one is not None:
                    operations[k : n + 1] = one
                    return True
            if not self.stands_between(second, first, between):
                return False
            if between.behind and between.behind[-1] is second:
                common -= self.effects_once(second).writes
                if len(between.behind) in _CHECKS:
                    reachable = self.reachable(reachable, common, between, set(operations[k : n + 1]))
                if not common or reachable == []:
                    return False
            self.learn(second, facts)
        return False

    def reachable(
        self, known: list[Loop] | None, common: set[Value], between: Between, passed: AbstractSet[Operation]
    ) -> list[Loop]:
        """Loops that touch common memory and can still run before what goes behind; only of the `known` ones."""
        if known is None:
            near = dict.fromkeys(loop for site in common for loop in islice(self.touching[site], _FARTHEST))
            known = [*near, *self.parts]
        return [
            loop
            for loop in known
            if loop not in passed and not self.dependence.conflict(self.effects_once(loop), between.effects)
        ]

    def must_stay(self, operation: Operation) -> bool:
        effects = self.effects_once(operation)
        return effects.pinned or effects.raises

    def stands_between(self, operation: Operation, first: Loop, between: Between) -> bool:
        """Put the operation before or behind the loop that it follows, if it can be in one of these places."""
        effects = self.effects_once(operation)
        depends = (
            not effects.uses.isdisjoint(between.late)
            or self.dependence.conflict(effects, self.effects_once(first))
            or self.dependence.conflict(effects, between.effects)
        )
        if not depends and not effects.pinned:
            between.before.append(operation)
            between.raising = between.raising or effects.raises
            return True
        if effects.pinned or effects.raises:
            return False
        between.behind.append(operation)
        between.late |= set(operation.defines())
        between.add(effects)
        return True

    def same_range(self, a: Loop, b: Loop, facts: list[Pair]) -> bool:
        if not b.counted or a.bounds is None or b.bounds is None:
            return False
        sizes = zip(self.range_of(a), self.range_of(b), strict=True)
        return all(self.lengths.alike(x, y, facts) for x, y in sizes) and self.dependence.step(a) in (1, -1)

    def range_of(self, loop: Loop) -> tuple[Any, ...]:
        """The canonical form of the bounds of a loop."""
        if loop not in self.ranges:
            self.ranges[loop] = tuple([self.lengths.size(b) for b in loop.bounds or ()])
        return self.ranges[loop]

    # -- two loops ---------------------------------------------------------------------------------------------------

    def join(self, first: Loop, second: Loop, between: Between) -> list[Operation] | None:
        """Both loops as one, with what stands between them before and behind it, if that changes nothing."""
        effects_first, effects_second = self.effects_once(first), self.effects_once(second)
        if self.must_stay(second) or not self.pays(first, second, effects_first, effects_second):
            return None
        if self.dependence.conflict(effects_second, between.effects) or not self.starts_late(second, between.late):
            return None
        if between.raising and self.visible(effects_first):
            return None
        if not self.in_step(first, second, effects_first, effects_second):
            return None
        second, zeros, sums = self.sums_from_zero(second, between.late)
        for operation in (*zeros, *sums):
            self.dependence.define(operation)
        recurs = self.recurs_once(first)
        if first not in self.parts:
            self.forget(first)
        self.forget(second)
        one = self.one(first, second)
        self.learn_effects(one, first, recurs)
        return [*between.before, *zeros, one, *between.behind, *sums]

    def learn_effects(self, one: Loop, first: Loop, recurs: bool) -> None:
        """The effects of a fused loop. The known effects of the first loop are not computed again."""
        latest = self.parts[one][-1]
        added = self.dependence.effects(latest.body.operations)
        added.uses.update(latest.inits, latest.body.yields)
        effects = self.effects_of[one] = self.effects_of.pop(first)
        effects.add(added)
        self.recurrences[one] = recurs or self.dependence.meet_otherwise(one, added, effects)

    def effects_once(self, operation: Operation) -> Effects:
        """The reads and writes of an operation, which are needed for each pair of loops around it."""
        if operation not in self.effects_of:
            self.effects_of[operation] = self.dependence.effects((operation,))
        return self.effects_of[operation]

    def starts_late(self, loop: Loop, late: set[Value]) -> bool:
        """Whether all that the loop uses of what is late is what its sums start from."""
        used = self.effects_once(loop).uses & late
        if not used:
            return True
        if loop not in self.used_inside:
            inside = self.dependence.effects(loop.body.operations).uses
            self.used_inside[loop] = {*inside, *loop.body.yields, *(loop.bounds or ())}
        return self.used_inside[loop].isdisjoint(used) and all(
            self.is_sum_once(loop, k) for k, start in enumerate(loop.inits) if start in used
        )

    def is_sum_once(self, loop: Loop, k: int) -> bool:
        """Whether the loop only adds floats to a parameter."""
        if (loop, k) not in self.sums:
            self.sums[loop, k] = loop.params[k].type == FLOAT and self.dependence.is_sum(loop, k)
        return self.sums[loop, k]

    def recurs_once(self, loop: Loop) -> bool:
        if loop not in self.recurrences:
            self.recurrences[loop] = self.dependence.recurs(loop, self.effects_once(loop))
        return self.recurrences[loop]

    def sums_from_zero(self, loop: Loop, late: set[Value]) -> tuple[Loop, list[Operation], list[Operation]]:
        """The loop with sums that start from zero where they start late, and what is added to them behind the loop."""
        inits, outs = list(loop.inits), list(loop.outs)
        zeros, sums = list[Operation](), list[Operation]()
        for k, start in enumerate(loop.inits):
            if start in late:
                inits[k], outs[k] = Value(FLOAT), Value(FLOAT, loop.outs[k].name)
                zeros.append(Const(inits[k], 0.0, span=loop.span))
                sums.append(Apply(loop.outs[k], "add", (start, outs[k]), span=loop.span))
        return replace(loop, inits=tuple(inits), outs=tuple(outs)) if sums else loop, zeros, sums

    def visible(self, effects: Effects) -> bool:
        """Whether memory that came from outside is written: an exception must come after it, not before."""
        return any(not isinstance(self.definition.get(site), Alloc | Copy | Library | Call) for site in effects.writes)

    def one(self, first: Loop, second: Loop) -> Loop:
        """The first loop, with the results of both; `completed` gives it the other parts of the second."""
        self.decisions.shared.append((first, second))
        known: dict[Value, Value] = {}
        if first.index is not None and second.index is not None:
            known[second.index] = self.dependence.counters[second.index] = first.index
        body = substituted(second.body, lambda v: known.get(v, v))
        for operation in walk(body):
            self.dependence.define(operation)
        self.ranges.clear()  # values of the second loop have other definitions now
        count = first.count if first.count is not None else second.count
        one = replace(first, outs=(*first.outs, *second.outs), count=count)
        parts = self.parts[one] = self.parts.pop(first) if first in self.parts else [first]
        parts.append(replace(second, body=body))
        return one

    def completed(self, operation: Operation) -> Operation:
        """A loop with the bodies of all loops that it has been joined with."""
        if not isinstance(operation, Loop) or operation not in self.parts:
            return operation
        parts = self.parts.pop(operation)
        loop = replace(
            operation,
            params=tuple([v for part in parts for v in part.params]),
            inits=tuple([v for part in parts for v in part.inits]),
            body=Block(
                tuple([o for part in parts for o in part.body.operations]),
                tuple([v for part in parts for v in part.body.yields]),
            ),
            claims=tuple(dict.fromkeys(claim for part in parts for claim in part.claims)),
        )
        self.effects_of[loop], self.recurrences[loop] = self.effects_of.pop(operation), self.recurrences.pop(operation)
        return loop

    def pays(self, first: Loop, second: Loop, a: Effects, b: Effects) -> bool:
        """Whether they have arrays in common, and neither is a recurrence that would hold the other up."""
        if first.count is not None and second.count is not None:
            return False
        return not a.touched.isdisjoint(b.touched) and self.recurs_once(first) == self.recurs_once(second)

    def in_step(self, first: Loop, second: Loop, a: Effects, b: Effects) -> bool:
        """Whether an iteration of the second touches only elements that the first is done with by then."""
        seen_first, seen_second = self.dependence.seen_by(first, a), self.dependence.seen_by(second, b)
        for site in (a.touched & b.writes) | (a.writes & b.touched):
            if site in a.reads or site in b.reads:
                return False
            pairs = (
                (seen_first.loads, seen_second.stores),
                (seen_first.stores, seen_second.loads),
                (seen_first.stores, seen_second.stores),
            )
            accesses = (product(x.get(site, {}).items(), y.get(site, {}).items()) for x, y in pairs)
            if not all(
                self.not_later(x, first, y, second) or (x[0] is y[0] and self.are_other_elements(x_at, y_at))
                for one in accesses
                for (x, x_at), (y, y_at) in one
            ):
                return False
        return True

    def are_other_elements(self, some: set[tuple[Value, ...]], others: set[tuple[Value, ...]]) -> bool:
        """Whether the indices of accesses differ by their constants, as those of `x[0, j]` and `x[1, i]` do."""
        return all(any(map(self.are_other_numbers, a, b)) for a in some for b in others)

    def are_other_numbers(self, a: Value, b: Value) -> bool:
        one, other = self.dependence.constants.get(a), self.dependence.constants.get(b)
        return isinstance(one, int) and isinstance(other, int) and one != other and (one < 0) == (other < 0)

    def not_later(self, x: Access, first: Loop, y: Access, second: Loop) -> bool:
        """Whether the iteration of the first loop that touches an element is none after that of the second."""
        if x[0] is not y[0]:
            return self.dependence.different(x[0], y[0], first, second)
        forward = self.dependence.step(first) == 1
        for (here, stride), (there, other_stride) in zip(x[1], y[1], strict=True):
            if stride is not None and stride == other_stride:
                return True
            if here is None or there is None:
                continue
            # x touches i + here, y touches j + there: the same element if i = j + there - here
            if (there <= here) if forward else (there >= here):
                return True
        return False
