"""Loops that can share a body do: what one computes for an element, the next one uses at once.

    z = np.empty(n)                          total = 0.0
    for i in range(n):                       for i in range(n):
        z[i] = x[i] * w[i]          =>           z = x[i] * w[i]
    for i in range(n):                           total += z * z
        total += z[i] * z[i]

Two loops over the same range become one if no element is used by the second before the first has it, or changed by the
second while the first still needs it. What stands between them goes before both where it can. That `z` needs no array
any more is then found by sharing (a load of what was just stored) and by removing what nobody reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from srcdiff.analyses.aliasing import Sites, points_to
from srcdiff.analyses.lengths import Lengths, Pair
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Function,
    Grow,
    If,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Peek,
    Pop,
    Print,
    Push,
    Raise,
    Store,
    Value,
    walk,
)
from srcdiff.ir.types import Array


def fuse(function: Function) -> Function:
    return replace(function, body=_Fuse(function).block(function.body))


def straighten(function: Function) -> Function:
    """Loops that run backwards run forwards, where the order of their turns does not matter."""
    return replace(function, body=_Straighten(function).block(function.body))


@dataclass(slots=True)
class _Effects:
    """What operations read and write."""

    uses: set[Value] = field(default_factory=set)
    loads: list[Load] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    reads: set[Value] = field(default_factory=set)
    """Memory that is read otherwise than by loads."""
    writes: set[Value] = field(default_factory=set)
    pinned: bool = False
    """Whether something happens that must stay where it is: a print, a call, a stack, a loop of unknown length."""
    raises: bool = False


class _Loops:
    """What loops read and write."""

    def __init__(self, function: Function) -> None:
        self.sites: dict[Value, Sites] = points_to(function)
        self.lengths = Lengths(function)
        self.definition: dict[Value, Operation] = {}
        self.constants: dict[Value, Any] = {}
        for operation in walk(function.body):
            for value in operation.defines():
                self.definition[value] = operation
            if isinstance(operation, Const):
                self.constants[operation.out] = operation.value

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def step(self, loop: Loop) -> Any:
        return self.constants.get(loop.bounds[2]) if loop.bounds is not None else None

    def define(self, operation: Operation) -> None:
        """Note where values come from, after an operation was replaced."""
        for value in operation.defines():
            self.definition[value] = self.lengths.definition[value] = operation

    # -- what is read and written ------------------------------------------------------------------------------------

    def effects(self, operations: tuple[Operation, ...]) -> _Effects:
        found = _Effects()
        for outer in operations:
            for operation in (outer, *(o for b in outer.blocks() for o in walk(b))):
                self.note(operation, found)
            for block in outer.blocks():
                found.uses |= set(block.yields)
        return found

    def note(self, operation: Operation, found: _Effects) -> None:
        found.uses |= set(operation.uses())
        for block in operation.blocks():
            found.uses |= set(block.yields)
        match operation:
            case Load():
                found.loads.append(operation)
            case Store():
                found.stores.append(operation)
                found.writes |= self.memory(operation.array)
            case Copy():
                found.reads |= self.memory(operation.array)
            case Library():
                for array in operation.args:
                    if isinstance(array.type, Array):
                        found.reads |= self.memory(array)
            case Raise():
                found.raises = True
            case Print() | Call() | Push() | Pop() | Peek() | NewStack() | Grow():
                found.pinned = True
            case Loop() if not operation.counted:
                found.pinned = True

    def recurs(self, loop: Loop, effects: _Effects) -> bool:
        """Whether a turn needs what another has computed, other than for a sum."""
        if not all(self.is_sum(loop, k) for k in range(len(loop.params))):
            return True
        for store in effects.stores:
            for load in effects.loads:
                if self.memory(load.array) & self.memory(store.array) and load.indices != store.indices:
                    return True
        return False

    def conflict(self, a: _Effects, b: _Effects) -> bool:
        """Whether one writes what the other reads or writes."""
        return bool(self.touched(a) & b.writes or a.writes & self.touched(b))

    def touched(self, effects: _Effects) -> set[Value]:
        found = set(effects.reads) | set(effects.writes)
        for load in effects.loads:
            found |= self.memory(load.array)
        return found

    def distance(self, index: Value, loop: Loop) -> int | None:
        """The index as the loop's counter plus a number; neither is negative, which would count from the end."""
        if not self.lengths.counts_naturals(loop):
            return None
        if index is loop.index:
            return 0
        operation = self.definition.get(index)
        if isinstance(operation, Apply) and operation.primitive == "add" and operation.args[0] is loop.index:
            amount = self.constants.get(operation.args[1])
            return amount if isinstance(amount, int) and amount >= 0 else None
        return None

    def independent(self, loop: Loop) -> bool:
        """Whether the turns may run in any order: each writes elements of its own, or only adds."""
        effects = self.effects((loop,))
        if effects.pinned or effects.raises or not all(self.is_sum(loop, k) for k in range(len(loop.params))):
            return False
        own = {v for o in walk(loop.body) for v in o.defines()}
        return all(site in own or self.apart(site, loop, effects, own) for site in effects.writes)

    def is_sum(self, loop: Loop, k: int) -> bool:
        """Whether all that a turn does with a parameter is to add to it, in branches and inner loops too."""
        wanted: Counter[Value] = Counter({loop.body.yields[k]: 1})
        if not self.adds_up(loop.params[k], loop.body.yields[k], wanted, set()):
            return False
        uses = Counter(v for o in walk(loop.body) for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields)))
        uses.update(loop.body.yields)
        return all(uses[value] == count for value, count in wanted.items())  # the sum so far is not used otherwise

    def adds_up(self, start: Value, end: Value, wanted: Counter[Value], seen: set[Value]) -> bool:
        """Whether one value is another with something added; `wanted` counts the uses that this makes of both."""
        if end is start:
            return True
        if end in seen:
            return False
        seen.add(end)
        operation = self.definition.get(end)
        parts: tuple[Value, ...] = ()
        match operation:
            case Apply(primitive="add"):
                parts = next(((a,) for a in operation.args if self.adds_up(start, a, wanted, seen)), ())
            case Apply(primitive="subtract"):
                parts = tuple(a for a in operation.args[:1] if self.adds_up(start, a, wanted, seen))
            case Loop() if end in operation.outs and self.is_sum(operation, operation.outs.index(end)):
                parts = (operation.inits[operation.outs.index(end)],)
                if not self.adds_up(start, parts[0], wanted, seen):
                    return False
            case If():
                k = operation.outs.index(end)
                parts = (operation.then.yields[k], operation.orelse.yields[k])
                if not all(self.adds_up(start, p, wanted, seen) for p in parts):
                    return False
        wanted.update(parts)
        return bool(parts)

    def apart(self, site: Value, loop: Loop, effects: _Effects, own: set[Value]) -> bool:
        """Whether no two turns touch the same element, or all they do is add to it."""
        loads = [x for x in effects.loads if site in self.memory(x.array)]
        stores = [x for x in effects.stores if site in self.memory(x.array)]
        if not loads and site not in effects.reads and all(x.adds for x in stores):
            return True
        accesses: list[Load | Store] = [*loads, *stores]
        array = accesses[0].array
        if site in effects.reads or array in own or any(x.array is not array for x in accesses):
            return False  # a view made in the loop may be another one in every turn
        for position in range(len(accesses[0].indices)):
            distances = {self.distance(x.indices[position], loop) for x in accesses}
            if len(distances) == 1 and None not in distances:
                return True
        return False


class _Straighten(_Loops):
    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            backwards = isinstance(operation, Loop) and operation.counted and self.step(operation) == -1
            if backwards and isinstance(operation, Loop) and self.independent(operation):
                operation = self.forwards(operation, operations)
            names = [n for n in ("then", "orelse", "test", "body") if isinstance(getattr(operation, n, None), Block)]
            parts: dict[str, Any] = {n: self.block(getattr(operation, n)) for n in names}
            operations.append(replace(operation, **parts) if parts else operation)
        return Block(tuple(operations), block.yields)

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


class _Fuse(_Loops):
    # -- blocks ------------------------------------------------------------------------------------------------------

    def block(self, block: Block, facts: list[Pair] | None = None) -> Block:
        facts = list(facts or ())
        operations = self.fused(list(block.operations), facts)
        rebuilt: list[Operation] = []
        for operation in operations:
            names = [n for n in ("then", "orelse", "test", "body") if isinstance(getattr(operation, n, None), Block)]
            parts: dict[str, Any] = {n: self.block(getattr(operation, n), facts) for n in names}
            rebuilt.append(replace(operation, **parts) if parts else operation)
            facts += self.facts((operation,))
        return Block(tuple(rebuilt), block.yields)

    def facts(self, operations: Iterable[Operation]) -> list[Pair]:
        found = (self.lengths.compared(o) for o in operations)
        return [pair for pair in found if pair is not None]

    def fused(self, operations: list[Operation], outer: list[Pair]) -> list[Operation]:
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
                if self.same_range(first, second, outer + self.facts(operations[:n])):
                    joined = self.join(operations, k, n)
                    if joined is not None:
                        operations = joined
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
        return alike and self.step(a) in (1, -1)

    # -- two loops ---------------------------------------------------------------------------------------------------

    def join(self, operations: list[Operation], k: int, n: int) -> list[Operation] | None:
        """The operations with loops `k` and `n` as one, if that changes nothing."""
        first, second = operations[k], operations[n]
        assert isinstance(first, Loop) and isinstance(second, Loop)
        effects_first, effects_second = self.effects((first,)), self.effects((second,))
        if any(e.pinned or e.raises for e in (effects_first, effects_second)):
            return None
        if not self.pays(first, second, effects_first, effects_second):
            return None
        before: list[Operation] = []
        after: list[Operation] = []
        late = set(first.defines())
        raising = False
        stays = _Effects()
        for operation in operations[k + 1 : n]:
            effects = self.effects((operation,))
            depends = (
                bool(effects.uses & late) or self.conflict(effects, effects_first) or self.conflict(effects, stays)
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
        if effects_second.uses & late or self.conflict(effects_second, stays):
            return None
        if raising and self.visible(effects_first):
            return None
        if not self.in_step(first, second, effects_first, effects_second):
            return None
        return [*operations[:k], *before, self.one(first, second), *after, *operations[n + 1 :]]

    def visible(self, effects: _Effects) -> bool:
        """Whether memory that came from outside is written: an exception must come after it, not before."""
        return any(not isinstance(self.definition.get(site), Alloc | Copy | Library) for site in effects.writes)

    def one(self, first: Loop, second: Loop) -> Loop:
        known: dict[Value, Value] = {}
        if first.index is not None and second.index is not None:
            known[second.index] = first.index
        body = self.substituted(second.body, known)
        return replace(
            first,
            params=(*first.params, *second.params),
            inits=(*first.inits, *second.inits),
            outs=(*first.outs, *second.outs),
            body=Block((*first.body.operations, *body.operations), (*first.body.yields, *body.yields)),
            count=first.count if first.count is not None else second.count,
        )

    def pays(self, first: Loop, second: Loop, a: _Effects, b: _Effects) -> bool:
        """Whether they have arrays in common, and neither is a recurrence that would hold the other up."""
        if first.count is not None and second.count is not None:
            return False
        return bool(self.touched(a) & self.touched(b)) and self.recurs(first, a) == self.recurs(second, b)

    def merge(self, into: _Effects, other: _Effects) -> None:
        into.uses |= other.uses
        into.loads += other.loads
        into.stores += other.stores
        into.reads |= other.reads
        into.writes |= other.writes

    def in_step(self, first: Loop, second: Loop, a: _Effects, b: _Effects) -> bool:
        """Whether a turn of the second touches only elements that the first is done with by then."""
        for site in (self.touched(a) & b.writes) | (a.writes & self.touched(b)):
            if site in a.reads or site in b.reads:
                return False
            earlier: list[Load | Store] = [*a.loads, *a.stores]
            later: list[Load | Store] = [*b.loads, *b.stores]
            for x in earlier:
                if site not in self.memory(x.array):
                    continue
                for y in later:
                    matters = site in self.memory(y.array) and (isinstance(x, Store) or isinstance(y, Store))
                    if matters and not self.not_later(x, first, y, second):
                        return False
        return True

    def not_later(self, x: Load | Store, first: Loop, y: Load | Store, second: Loop) -> bool:
        """Whether the turn of the first loop that touches an element is none after that of the second."""
        if x.array is not y.array:
            return False
        forward = self.step(first) == 1
        for p, q in zip(x.indices, y.indices, strict=True):
            here, there = self.distance(p, first), self.distance(q, second)
            if here is None or there is None:
                continue
            # x touches i + here, y touches j + there: the same element if i = j + there - here
            if (there <= here) if forward else (there >= here):
                return True
        return False

    def substituted(self, block: Block, known: dict[Value, Value]) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.replaced(lambda v: known.get(v, v))
            names = [n for n in ("then", "orelse", "test", "body") if isinstance(getattr(operation, n, None), Block)]
            parts: dict[str, Any] = {n: self.substituted(getattr(operation, n), known) for n in names}
            operation = replace(operation, **parts) if parts else operation
            self.define(operation)
            operations.append(operation)
        return Block(tuple(operations), tuple(known.get(v, v) for v in block.yields))
