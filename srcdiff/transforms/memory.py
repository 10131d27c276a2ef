"""Memory that is not touched needlessly: arrays start by assignment, and nothing is written that nobody reads again.

h_bar = np.zeros_like(h)                     h_bar = np.empty_like(h)
for i in range(n):                           for i in range(n):
    h_bar[i] += t[i]              =>             h_bar[i] = t[i]
    x_bar[i] += h_bar[i] * w                     x_bar[i] += h_bar[i] * w
    h_bar[i] = 0.0
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from srcdiff.analyses.accesses import never_meets
from srcdiff.analyses.aliasing import Sites, points_to
from srcdiff.analyses.lengths import Lengths
from srcdiff.analyses.ownership import LastSeen
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Comment,
    Const,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    Store,
    Value,
)
from srcdiff.ir.types import Array, element_type


def tidy_memory(function: Function) -> Function:
    function = _Tidy(function).storing_once()
    function = _Tidy(function).without_dead_stores()
    return _Tidy(function).starting_by_assignment()


def without_dead_stores(function: Function) -> Function:
    """The function without stores to arrays of its own that nobody reads afterwards."""
    return _Tidy(function).without_dead_stores()


@dataclass(slots=True)
class _Use:
    """All that a program does with an array of its own."""

    accesses: list[Load | Store] = field(default_factory=list)
    plain: bool = True
    """Whether elements are loaded and stored, and nothing else is done with it."""


class _Tidy:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.lengths = Lengths(function)
        self.uses: dict[Value, _Use] = {}
        self.touched: dict[Value, list[Operation]] = {}
        self.shared: set[Value] = set()
        """Arrays that inner blocks yield, or that other references point to, but for what a loop hands on."""
        for operation in self.structure.start:
            self.note(operation)
        for block in (function.body, *self.structure.owner):
            for value in block.yields:
                self.spoil(value)
        for block in self.structure.owner:
            self.shared.update(v for v in block.yields if self.structure.home.get(v) is not block)
        for value, memory in self.sites.items():
            self.shared.update(s for s in memory if s is not value and not self.is_handed_on(value, s))

    def note(self, operation: Operation) -> None:
        for value in dict.fromkeys(operation.uses()):
            is_length = isinstance(operation, Dim) or (isinstance(operation, Alloc) and operation.like is value)
            if isinstance(value.type, Array) and not is_length:
                self.touched.setdefault(value, []).append(operation)
        if isinstance(operation, Load | Store):
            self.uses.setdefault(operation.array, _Use()).accesses.append(operation)
            return
        if isinstance(operation, Dim) or (isinstance(operation, Alloc) and operation.fill is None):
            return
        for value in operation.uses():
            if not (isinstance(operation, Alloc) and value is operation.like):
                self.spoil(value)

    def spoil(self, value: Value) -> None:
        if isinstance(value.type, Array):
            self.uses.setdefault(value, _Use()).plain = False

    def own(self, operation: Operation) -> _Use | None:
        """The uses of a new array that nobody knows by another name."""
        if not isinstance(operation, Alloc):
            return None
        use = self.uses.get(operation.out, _Use())
        return use if use.plain else None

    # -- stores that are added to at once ----------------------------------------------------------------------------

    def storing_once(self) -> Function:
        """`a[i] = x`, and then `a[i] += y`, is `a[i] = x + y` if nobody looks in between."""
        return replace(self.function, body=self.stored_once(self.function.body))

    def stored_once(self, block: Block) -> Block:
        operations: list[Operation | None] = []
        waiting: dict[tuple[Value, tuple[Value, ...]], int] = {}
        for written in block.operations:
            operation = written.rebuilt(self.stored_once)
            if isinstance(operation, Store) and (operation.array, operation.indices) in waiting and operation.adds:
                place = waiting[operation.array, operation.indices]
                first = operations[place]
                assert isinstance(first, Store)
                if first.value.type == operation.value.type == element_type(first.array.array):
                    operations[place] = None
                    total = operation.value
                    if self.structure.constants.get(first.value) != 0.0:
                        total = Value(operation.value.type)
                        operations.append(Apply(total, "add", (first.value, operation.value), span=operation.span))
                    operation = replace(operation, value=total, adds=False)
            waiting = {key: k for key, k in waiting.items() if not self.looks(written, *key)}
            if isinstance(operation, Store) and not operation.adds:
                waiting[operation.array, operation.indices] = len(operations)
            operations.append(operation)
        return Block(tuple(o for o in operations if o is not None), block.yields)

    def looks(self, operation: Operation, array: Value, indices: tuple[Value, ...]) -> bool:
        """Whether an operation may touch an element."""
        if isinstance(operation, Const | Apply | Dim | Comment):
            return False
        if not isinstance(operation, Load | Store):
            return True
        if not self.sites.get(operation.array, frozenset()) & self.sites.get(array, frozenset()):
            return False
        return not never_meets(operation, array, indices, self.structure)

    # -- stores that nobody reads ------------------------------------------------------------------------------------

    def without_dead_stores(self) -> Function:
        dead: set[Operation] = set()
        own = [self.own(operation) for operation in self.structure.start]
        seen = LastSeen(self.function)
        given = [self.uses[p] for p in self.structure.slot if p in self.uses and seen.is_left_behind(p)]
        for use in (*(u for u in own if u is not None), *(u for u in given if u.plain)):
            loads = [a for a in use.accesses if isinstance(a, Load)]
            sums = [a for a in use.accesses if isinstance(a, Store) and a.adds]
            for store in use.accesses:
                if isinstance(store, Store) and not store.adds:
                    readers: list[Load | Store] = [*loads, *sums]
                    if not any(self.may_follow(r, store) for r in readers):
                        dead.add(store)
        return self.without(dead) if dead else self.function

    def may_follow(self, later: Load | Store, store: Store) -> bool:
        """Whether an access may come after the store and meet what it wrote."""
        structure = self.structure
        around = structure.loops_around(structure.block_of[store])
        common = [x for x in structure.loops_around(structure.block_of[later]) if x in around]
        home = structure.loops_around(structure.home.get(store.array, structure.top))
        for loop in common:
            if loop not in home and not self.separated(loop, later, store):
                return True
        return structure.start[later] > structure.start[store]

    def separated(self, loop: Loop, a: Load | Store, b: Load | Store) -> bool:
        """Whether different turns of the loop touch different elements."""
        return any(
            self.distance(p, loop) is not None and self.distance(p, loop) == self.distance(q, loop)
            for p, q in zip(a.indices, b.indices, strict=True)
        )

    def distance(self, index: Value, loop: Loop) -> int | None:
        if not self.lengths.counts_naturals(loop):
            return None
        if index is loop.index:
            return 0
        operation = self.structure.definition.get(index)
        if isinstance(operation, Apply) and operation.primitive == "add" and operation.args[0] is loop.index:
            amount = self.structure.constants.get(operation.args[1])
            return amount if isinstance(amount, int) and amount >= 0 else None
        return None

    def without(self, dead: set[Operation]) -> Function:
        def visit(block: Block) -> Block:
            operations = [o.rebuilt(visit) for o in block.operations if o not in dead]
            return Block(tuple(operations), block.yields)

        return replace(self.function, body=visit(self.function.body))

    # -- the first touch ---------------------------------------------------------------------------------------------

    def starting_by_assignment(self) -> Function:
        changed: dict[Operation, Operation] = {}
        for operation in self.structure.start:
            if isinstance(operation, Alloc) and operation.fill is not None:
                self.start(operation, changed)
        if not changed:
            return self.function

        def visit(block: Block) -> Block:
            return Block(tuple(changed.get(o, o).rebuilt(visit) for o in block.operations), block.yields)

        return replace(self.function, body=visit(self.function.body))

    def start(self, array: Alloc, changed: dict[Operation, Operation]) -> None:
        """If the first thing done to an array of zeros is to add to each of its elements, assign instead."""
        known = self.structure.constants.get(array.fill) if array.fill is not None else None
        touched = self.touching(array.out)
        if known != 0.0 or touched is None or not touched:
            return
        first = touched[0]
        if not isinstance(first, Store) or not self.covers(first, array):
            return
        nest = self.structure.loops_around(self.structure.block_of[first])
        inside = [a for a in touched if nest[-first.array.array.rank] in self.loops_of(a)]
        if any(not isinstance(a, Load | Store) or a.indices != first.indices for a in inside):
            return
        changed[first] = replace(first, adds=False)
        changed[array] = replace(array, fill=None)

    def touching(self, array: Value) -> list[Operation] | None:
        """The operations that read or write the array, in order; None if it has other names, but in later turns."""
        return None if array in self.shared else self.touched.get(array, [])

    def is_handed_on(self, name: Value, array: Value) -> bool:
        """Whether a name is what a loop hands on, of what a turn makes."""
        loop = self.structure.owner.get(self.structure.home.get(array, self.structure.top))
        return isinstance(loop, Loop) and (name in loop.params or name in loop.outs)

    def loops_of(self, operation: Operation) -> list[Loop]:
        return self.structure.loops_around(self.structure.block_of[operation])

    def covers(self, store: Store, array: Alloc) -> bool:
        """Whether the loops around the store go through every element, once."""
        rank = array.out.array.rank
        loops = self.loops_of(store)[-rank:] if rank else []
        if len(loops) != rank or rank == 0:
            return False
        block = self.structure.block_of[store]
        for loop in reversed(loops):
            if loop.body is not block or loop.index not in store.indices or not loop.counted:
                return False
            axis = store.indices.index(loop.index)
            assert loop.bounds is not None
            start, stop, step = loop.bounds
            constants = self.structure.constants
            if constants.get(start) != 0 or constants.get(step) != 1 or not self.is_length(stop, array, axis):
                return False
            block = self.structure.block_of[loop]
        return block is self.structure.block_of[array]

    def is_length(self, stop: Value, array: Alloc, axis: int) -> bool:
        return bool(self.lengths.size(stop) == self.lengths.of(array.out, axis))
