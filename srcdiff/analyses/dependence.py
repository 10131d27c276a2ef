"""The reads and writes of loop iterations: whether they may run in any order, and which sums they compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from srcdiff.analyses.access_relations import iterations_are_apart
from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import Lengths, lengths_of
from srcdiff.ir.aliasing import Apart, Sites, points_to
from srcdiff.ir.analysis import analysis
from srcdiff.ir.nodes import (
    Apply,
    Call,
    Const,
    Coordinate,
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
from srcdiff.quick_dataclasses import dataclass

Access = tuple[Value, tuple[Any, ...]]
"""Loads and stores as seen by a loop: the array, and the dependence of each index on the counter. Many are equal."""

Accesses = dict[Value, dict[Access, set[tuple[Value, ...]]]]
"""By memory, the accesses to it, with the indices of all loads or stores that they stand for."""


@dataclass(slots=True)
class Seen:
    """Loads and stores as a loop sees them; a loop that grows adds to them."""

    counter: Value | None
    loads: Accesses = field(default_factory=dict)
    stores: Accesses = field(default_factory=dict)
    counted: tuple[int, int] = (0, 0)
    """How many loads and stores are there."""


@dataclass(slots=True)
class Effects:
    """The reads and writes of operations."""

    uses: set[Value] = field(default_factory=set)
    loads: list[Load] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    reads: set[Value] = field(default_factory=set)
    """Memory that is read otherwise than by loads."""
    writes: set[Value] = field(default_factory=set)
    touched: set[Value] = field(default_factory=set)
    """All memory that is read or written."""
    pinned: bool = False
    """Whether something happens that must stay where it is: a print, a call, a stack, a loop of unknown length."""
    raises: bool = False
    seen: Seen | None = None
    """The loads and stores behind these effects, as far as they have been requested."""

    def add(self, other: Effects) -> None:
        """Let others be among these."""
        self.uses |= other.uses
        self.loads += other.loads
        self.stores += other.stores
        self.reads |= other.reads
        self.writes |= other.writes
        self.touched |= other.touched
        self.pinned, self.raises = self.pinned or other.pinned, self.raises or other.raises


class Dependence:
    """The reads and writes of loops, and the dependences between iterations."""

    def __init__(self, function: Function, *, changing: bool = False) -> None:
        """If the program is `changing`, what is found out about it changes too."""
        self.sites: dict[Value, Sites] = points_to(function)
        self.lengths = Lengths(function) if changing else lengths_of(function)
        self.structure = structure_of(function)
        self.apart = Apart(function, self.sites)
        self.definition: dict[Value, Operation] = {}
        self.constants: dict[Value, Any] = {}
        self.counters: dict[Value, Value] = {}
        """For a changing program: counters of fused loops, and the counters that replace them."""
        self.used: dict[Loop, Counter[Value]] = {}
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
        """Note where values come from, after an operation of a changing program was replaced."""
        for value in operation.defines():
            self.definition[value] = self.lengths.definition[value] = operation

    # -- what is read and written ------------------------------------------------------------------------------------

    def effects(self, operations: tuple[Operation, ...]) -> Effects:
        found = Effects()
        for outer in operations:
            for operation in (outer, *(o for b in outer.blocks() for o in walk(b))):
                self.note(operation, found)
            for block in outer.blocks():
                found.uses |= set(block.yields)
        found.touched = found.reads | found.writes
        for load in found.loads:
            for site in self.memory(load.array):
                found.touched.add(site)
        return found

    def note(self, operation: Operation, found: Effects) -> None:
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
            case Loop() if operation.bounds is None:
                found.pinned = True

    def recurs(self, loop: Loop, effects: Effects) -> bool:
        """Whether an iteration needs what another has computed, other than for a sum."""
        if not all(self.is_sum(loop, k) for k in range(len(loop.params))):
            return True
        return self.meet_otherwise(loop, effects, effects)

    def meet_otherwise(self, loop: Loop, some: Effects, effects: Effects) -> bool:
        """Whether of some accesses and all of a loop, a load may read what a store wrote in another iteration."""
        mine, all_ = self.seen_by(loop, some), self.seen_by(loop, effects)
        return self.any_meet(loop, mine.loads, all_.stores) or self.any_meet(loop, mine.stores, all_.loads)

    def any_meet(self, loop: Loop, some: Accesses, others: Accesses) -> bool:
        """Whether two accesses to the same memory may touch one element in different iterations."""
        return any(
            not (len(here) == 1 and here == there)
            and not self.in_one_iteration(a, b)
            and not self.different(a[0], b[0], loop)
            for site, accesses in some.items()
            if site in others
            for a, here in accesses.items()
            for b, there in others[site].items()
        )

    def seen_by(self, loop: Loop, effects: Effects) -> Seen:
        """The loads and stores of a loop as it sees them; only those that are new since the last time are looked at."""
        seen = effects.seen
        if seen is None or seen.counter is not loop.index:
            seen = effects.seen = Seen(loop.index)
        natural = self.lengths.counts_naturals(loop)
        loads, stores = seen.counted
        new: tuple[tuple[Accesses, Sequence[Load | Store]], ...]
        new = ((seen.loads, effects.loads[loads:]), (seen.stores, effects.stores[stores:]))
        for table, operations in new:
            for operation in operations:
                access = self.access(loop, operation, natural=natural)
                for site in self.memory(operation.array):
                    table.setdefault(site, {}).setdefault(access, set()).add(operation.indices)
        seen.counted = len(effects.loads), len(effects.stores)
        return seen

    def access(self, loop: Loop, operation: Load | Store, *, natural: bool) -> Access:
        """A load or store as seen by a loop whose counter is `natural` or not."""
        follows = [(self.offset(i, loop) if natural else None, self.stride(i, loop)) for i in operation.indices]
        return operation.array, tuple(follows)

    def different(self, a: Value, b: Value, *loops: Loop) -> bool:
        """Whether two references have no memory in common, whichever iterations of these loops use them."""
        return self.apart.different(a, b) and not any(self.changes(loop, x) for loop in loops for x in (a, b))

    def in_one_iteration(self, a: Access, b: Access) -> bool:
        """Whether two accesses can only touch one element in the same iteration: each has a part of its own."""
        return a[0] is b[0] and any(x[0] is not None and x[0] == y[0] for x, y in zip(a[1], b[1], strict=False))

    def conflict(self, a: Effects, b: Effects) -> bool:
        """Whether one writes what the other reads or writes."""
        return not (a.touched.isdisjoint(b.writes) and a.writes.isdisjoint(b.touched))

    def offset(self, index: Value, loop: Loop) -> int | None:
        """The index as the loop's counter plus a number that is not negative, which would count from the end."""
        if index is loop.index:
            return 0
        operation = self.definition.get(index)
        if isinstance(operation, Apply) and operation.primitive == "add" and operation.args[0] is loop.index:
            amount = self.constants.get(operation.args[1])
            return amount if isinstance(amount, int) and amount >= 0 else None
        return None

    def stride(self, index: Value, loop: Loop) -> tuple[Value, Value] | None:
        """Start and step of an index that goes through an array in steps as wide as a grid of threads."""
        match self.definition.get(index):
            case Apply(primitive="add", args=(start, way)) if self.lengths.is_natural(start):
                steps = self.definition.get(way)
                if isinstance(steps, Apply) and steps.primitive == "multiply" and steps.args[0] is loop.index:
                    is_extent = isinstance(self.definition.get(steps.args[1]), Coordinate)
                    return (start, steps.args[1]) if is_extent else None
        return None

    def independent(self, loop: Loop) -> bool:
        """Whether the iterations may run in any order: each writes elements of its own, or only adds."""
        effects = self.effects((loop,))
        if effects.pinned or effects.raises or not all(self.is_sum(loop, k) for k in range(len(loop.params))):
            return False
        own = {v for o in walk(loop.body) for v in o.defines()}
        written = [x for x in effects.stores if not self.memory(x.array) <= own]
        if any(self.memory(x.array) & effects.reads for x in written):
            return False
        return self.are_apart(loop, written, [*effects.loads, *effects.stores], own)

    def are_apart(
        self,
        loop: Loop,
        stores: Sequence[Store],
        accesses: Sequence[Load | Store],
        own: set[Value],
        *,
        sums: bool = True,
    ) -> bool:
        """Whether stores and accesses never touch one element in different iterations, or (`sums`) only add to it."""
        groups = self.alike(loop, accesses)
        return all(
            self.seen_apart(loop, a, b, own, sums=sums)
            or all(self.iterations_are_apart(loop, x, y) for x in here for y in there)
            for a, here in self.alike(loop, stores).items()
            for b, there in groups.items()
        )

    def iterations_are_apart(self, loop: Loop, x: Load | Store, y: Load | Store) -> bool:
        """Whether a load or store touches no element that another one touches in another iteration."""
        return iterations_are_apart(loop, x, y, self.structure)

    def alike(self, loop: Loop, accesses: Sequence[Load | Store]) -> dict[tuple[Access, bool], list[Load | Store]]:
        """Loads and stores that the loop sees alike; of those with the same indices in the same block, one."""
        natural = self.lengths.counts_naturals(loop)
        groups: dict[tuple[Access, bool], dict[Any, Load | Store]] = {}
        for x in accesses:
            key = self.access(loop, x, natural=natural), isinstance(x, Store) and x.adds
            groups.setdefault(key, {}).setdefault((x.indices, self.structure.block_of[x], x.claims), x)
        return {key: list(group.values()) for key, group in groups.items()}

    def seen_apart(
        self, loop: Loop, a: tuple[Access, bool], b: tuple[Access, bool], own: set[Value], *, sums: bool
    ) -> bool:
        """Whether what the loop sees of a store and an access is enough to know that they are apart."""
        (one, adds), (other, adds_too) = a, b
        if sums and adds and adds_too:
            return True
        if not self.memory(one[0]) & self.memory(other[0]) or self.different(one[0], other[0], loop):
            return True
        # a view that the loop makes may be another one in every iteration
        return (
            one[0] is other[0]
            and one[0] not in own
            and any(
                part is not None and part == same
                for x, y in zip(one[1], other[1], strict=True)
                for part, same in zip(x, y, strict=True)
            )
        )

    def changes(self, loop: Loop, array: Value) -> bool:
        """Whether a reference may be to another array in every iteration of a loop."""
        base = self.apart.base(array)
        around = self.structure.loops_around(self.structure.home.get(base, self.structure.top))
        return any(x is loop or (x.index is not None and self.counter(x.index) is loop.index) for x in around)

    def counter(self, index: Value) -> Value:
        """The counter of the loop that a loop has become a part of."""
        while index in self.counters:
            index = self.counters[index]
        return index

    def is_sum(self, loop: Loop, k: int) -> bool:
        """Whether all that an iteration does with a parameter is to add to it, in branches and inner loops too."""
        wanted = self.adds_up(loop.params[k], loop.body.yields[k], set())
        if wanted is None:
            return False
        wanted[loop.body.yields[k]] += 1
        uses = self.uses_in(loop)
        return all(uses[value] == count for value, count in wanted.items())  # the sum so far is not used otherwise

    def uses_in(self, loop: Loop) -> Counter[Value]:
        """How often values are used in the body of a loop. Each of its sums is compared with that."""
        if loop not in self.used:
            uses = Counter(v for o in walk(loop.body) for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields)))
            uses.update(loop.body.yields)
            self.used[loop] = uses
        return self.used[loop]

    def adds_up(self, start: Value, end: Value, seen: set[Value]) -> Counter[Value] | None:
        """How often one value and those on the way are used to make another by additions alone; None if it is not."""
        if end is start:
            return Counter()
        if end in seen:
            return None
        seen.add(end)
        if not self.addends(end):
            return self.adds_up_in_blocks(start, end, seen)
        # bodies may have thousands of additions in a row: no recursion
        way = [(end, iter(self.addends(end)))]
        while way:
            part = next(way[-1][1], None)
            if part is None:
                way.pop()
            elif part is not start and part not in seen and self.addends(part):
                seen.add(part)
                way.append((part, iter(self.addends(part))))
            elif (found := self.adds_up(start, part, seen)) is not None:
                found.update([*(value for value, _ in way[1:]), part])
                return found
        return None

    def addends(self, value: Value) -> Sequence[Value]:
        """The values of which the operation that defines this one may be a sum so far."""
        match self.definition.get(value):
            case Apply(primitive="add", args=args):
                return args
            case Apply(primitive="subtract", args=args):
                return args[:1]
        return ()

    def adds_up_in_blocks(self, start: Value, end: Value, seen: set[Value]) -> Counter[Value] | None:
        """The same for the result of a loop or a branch; None for that of another operation."""
        operation = self.definition.get(end)
        match operation:
            case Loop() if end in operation.outs and self.is_sum(operation, operation.outs.index(end)):
                parts = [operation.inits[operation.outs.index(end)]]
            case If():
                k = operation.outs.index(end)
                parts = [operation.then.yields[k], operation.orelse.yields[k]]
            case _:
                return None
        wanted: Counter[Value] = Counter()
        for value in parts:
            found = self.adds_up(start, value, seen)
            if found is None:
                return None
            wanted[value] += 1
            wanted.update(found)
        return wanted


@analysis
def dependence_of(function: Function) -> Dependence:
    return Dependence(function)
