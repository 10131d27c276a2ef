"""Memory that is not touched needlessly: arrays start by assignment, and nothing is written that nobody reads again.

h_bar = np.zeros_like(h)                     h_bar = np.empty_like(h)
for i in range(n):                           for i in range(n):
    h_bar[i] += t[i]              =>             h_bar[i] = t[i]
    x_bar[i] += h_bar[i] * w                     x_bar[i] += h_bar[i] * w
    h_bar[i] = 0.0
"""

from __future__ import annotations

import math
from dataclasses import field, replace

from srcdiff.analyses.access_relations import element, never_in_one_iteration, never_meets
from srcdiff.analyses.ownership import LastSeen
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.analyses.symbolic_shapes import Pair, lengths_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Comment,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Part,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    changed,
)
from srcdiff.ir.types import Array, element_type
from srcdiff.quick_dataclasses import dataclass


def remove_dead_stores(function: Function) -> Function:
    """Merge stores with additions to the same element; then remove dead stores, zeros, and copies for the caller."""
    steps = (_Tidy.storing_once, _Tidy.remove_dead_stores_only, _Tidy.starting_by_assignment)
    tidy = _Tidy(function)
    for step in (*steps, _Tidy.giving_back_what_is_there):
        function = step(tidy)
        tidy = tidy if function is tidy.function else _Tidy(function)
    return function


def remove_dead_stores_only(function: Function) -> Function:
    """The function without stores into arrays of its own that are not read afterwards."""
    return _Tidy(function).remove_dead_stores_only()


@dataclass(slots=True)
class _Use:
    """All that a program does with an array of its own."""

    accesses: list[Load | Store] = field(default_factory=list)
    plain: bool = True
    """Whether elements are loaded and stored, and nothing else is done with it."""


Indices = tuple[Value, ...]

_MOST_COMPARED = 8
"""With how many accesses behind it a store is compared, so that the time grows with the program, no faster."""


class _Waiting:
    """Stores that nobody has looked at yet, with their places, by their arrays.

    Of stores to elements with numbers for indices, an access to another such element touches none.
    """

    def __init__(self, tidy: _Tidy) -> None:
        self.tidy = tidy
        self.places: dict[Value, dict[Indices, int]] = {}
        self.numbered: dict[Value, dict[tuple[int, ...], set[Indices]]] = {}
        self.others: dict[Value, set[Indices]] = {}
        """The indices that are no numbers."""
        self.arrays: dict[Value, dict[Value, None]] = {}
        """The arrays of these stores, by the memory that they may be to."""

    def place(self, store: Store) -> int | None:
        return self.places.get(store.array, {}).get(store.indices)

    def add(self, store: Store, place: int) -> None:
        array, indices = store.array, store.indices
        if array not in self.places:
            for site in self.tidy.sites.get(array, ()):
                self.arrays.setdefault(site, {})[array] = None
        self.places.setdefault(array, {})[indices] = place
        constant = self.tidy.constant_indices(indices)
        if constant is None:
            self.others.setdefault(array, set()).add(indices)
        else:
            self.numbered.setdefault(array, {}).setdefault(constant, set()).add(indices)

    def forget_what_is_touched(self, operation: Operation) -> None:
        if isinstance(operation, Const | Apply | Dim | Comment) or not self.places:
            return
        if not isinstance(operation, Load | Store):
            for found in (self.places, self.numbered, self.others, self.arrays):
                found.clear()
            return
        sites = self.tidy.sites.get(operation.array, ())
        for array in {a: None for site in sites for a in self.arrays.get(site, ())}:
            for indices in self.in_question(operation, array):
                if not never_meets(operation, array, indices, self.tidy.structure):
                    self.forget(array, indices)

    def in_question(self, access: Load | Store, array: Value) -> list[Indices]:
        """The stores to an array that the access may touch."""
        constant = self.tidy.constant_indices(access.indices)
        touched = element(array, access.indices, self.tidy.structure) if array is access.array else None
        if constant is None or touched is None or touched.array is not array:
            return list(self.places.get(array, ()))
        return [*self.numbered.get(array, {}).get(constant, ()), *self.others.get(array, ())]

    def forget(self, array: Value, indices: Indices) -> None:
        del self.places[array][indices]
        constant = self.tidy.constant_indices(indices)
        if constant is None:
            self.others[array].discard(indices)
        else:
            self.numbered[array][constant].discard(indices)


class _Tidy:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.lengths = lengths_of(function)
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
            if isinstance(value.type, Array) and not self.asks_for_lengths(operation, value):
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
        """The uses of a new array without aliases."""
        if not isinstance(operation, Alloc):
            return None
        use = self.uses.get(operation.out, _Use())
        return use if use.plain else None

    # -- stores that are added to at once ----------------------------------------------------------------------------

    def storing_once(self) -> Function:
        """`a[i] = x` and then `a[i] += y` become `a[i] = x + y`, if nothing reads in between."""
        return changed(self.function, body=self.stored_once(self.function.body))

    def stored_once(self, block: Block) -> Block:
        operations: list[Operation | None] = []
        waiting = _Waiting(self)
        for written in block.operations:
            operation = written.rebuilt(self.stored_once)
            place = waiting.place(operation) if isinstance(operation, Store) and operation.adds else None
            if isinstance(operation, Store) and place is not None:
                first = operations[place]
                assert isinstance(first, Store)
                if first.value.type == operation.value.type == element_type(first.array.array):
                    operations[place] = None
                    total = operation.value
                    if self.structure.constants.get(first.value) != 0.0:
                        total = Value(operation.value.type)
                        operations.append(Apply(total, "add", (first.value, operation.value), span=operation.span))
                    operation = replace(operation, value=total, adds=False)
            waiting.forget_what_is_touched(written)
            if isinstance(operation, Store) and not operation.adds:
                waiting.add(operation, len(operations))
            operations.append(operation)
        return changed(block, operations=tuple([o for o in operations if o is not None]))

    def constant_indices(self, indices: Indices) -> tuple[int, ...] | None:
        """Indices that are numbers, and count from the start."""
        known = tuple([self.structure.constants.get(i) for i in indices])
        return known if all(isinstance(k, int) and k >= 0 for k in known) else None  # type: ignore[return-value]

    # -- dead stores -------------------------------------------------------------------------------------------------

    def remove_dead_stores_only(self) -> Function:
        dead: set[Operation] = set()
        own = [self.own(operation) for operation in self.structure.start]
        seen = LastSeen(self.function)
        given = [self.uses[p] for p in self.structure.slot if p in self.uses and seen.is_left_behind(p)]
        for use in (*(u for u in own if u is not None), *(u for u in given if u.plain)):
            readers = [a for a in use.accesses if isinstance(a, Load) or a.adds]
            for store in use.accesses:
                if isinstance(store, Load) or store.adds:
                    continue
                behind = sum(self.structure.start[r] > self.structure.start[store] for r in readers)
                if behind <= _MOST_COMPARED and not any(self.may_follow(r, store) for r in readers):
                    dead.add(store)
        last = self.last_read()
        dead |= {o for o in self.structure.start if isinstance(o, Store) and self.is_never_read_again(o, last)}
        return self.without(dead) if dead else self.function

    def last_read(self) -> dict[Value, float]:
        """The last place in the text at which memory is read, or a mark that it is returned."""
        found: dict[Value, float] = {}
        for value in (*self.function.body.yields, *self.function.params):
            found |= dict.fromkeys(self.sites.get(value, ()), math.inf)
        for operation, place in self.structure.start.items():
            if isinstance(operation, Store | Loop | If | View | Transpose | Reshape | Part):
                continue
            for value in operation.uses():
                if isinstance(value.type, Array) and not self.asks_for_lengths(operation, value):
                    for site in self.sites.get(value, ()):
                        found[site] = max(found.get(site, place), place)
        return found

    def is_never_read_again(self, store: Store, last: dict[Value, float]) -> bool:
        """Whether its memory is read only before it, and before all the loops around it."""
        around = self.structure.loops_around(self.structure.block_of[store])
        place = self.structure.start[around[0] if around else store]
        sites = self.sites.get(store.array, frozenset())
        return bool(sites) and all(self.is_made_here(s) and last.get(s, place) <= place for s in sites)

    def is_made_here(self, site: Value) -> bool:
        return isinstance(self.structure.definition.get(site), Alloc | Copy | Library)

    def asks_for_lengths(self, operation: Operation, array: Value) -> bool:
        return isinstance(operation, Dim) or (isinstance(operation, Alloc) and operation.like is array)

    def may_follow(self, later: Load | Store, store: Store) -> bool:
        """Whether an access may come after the store and meet what it wrote."""
        structure = self.structure
        around = structure.loops_around(structure.block_of[store])
        common = [x for x in structure.loops_around(structure.block_of[later]) if x in around]
        home = structure.loops_around(structure.home.get(store.array, structure.top))
        for loop in common:
            if loop not in home and not self.separated(loop, later, store):
                return True
        if structure.start[later] < structure.start[store]:
            return False
        # behind it, in the same iteration of the loop that owns the array
        return not home or not never_in_one_iteration(home[-1], later, store, structure)

    def separated(self, loop: Loop, a: Load | Store, b: Load | Store) -> bool:
        """Whether different iterations of the loop touch different elements."""
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
            return changed(block, operations=tuple(operations))

        return changed(self.function, body=visit(self.function.body))

    # -- the first touch ---------------------------------------------------------------------------------------------

    def starting_by_assignment(self) -> Function:
        instead: dict[Operation, Operation] = {}
        for operation in self.structure.start:
            if isinstance(operation, Alloc) and operation.fill is not None:
                self.start(operation, instead)
        if not instead:
            return self.function

        def visit(block: Block) -> Block:
            return changed(block, operations=tuple([instead.get(o, o).rebuilt(visit) for o in block.operations]))

        return changed(self.function, body=visit(self.function.body))

    def start(self, array: Alloc, instead: dict[Operation, Operation]) -> None:
        """If the first thing done to an array of zeros is to add to each of its elements, assign instead."""
        known = self.structure.constants.get(array.fill) if array.fill is not None else None
        touched = self.touching(array.out)
        if known != 0.0 or touched is None or not touched:
            return
        first = touched[0]
        if not isinstance(first, Store) or not self.covers(first, array):
            return
        nest = self.loops_of(first)[-first.array.array.rank :]
        if not all(self.is_assigned_before(a, first, nest) for a in touched if nest[0] in self.loops_of(a)):
            return
        instead[first] = replace(first, adds=False)
        instead[array] = replace(array, fill=None)

    def is_assigned_before(self, access: Operation, first: Store, nest: list[Loop]) -> bool:
        """Whether an access in a nest touches only what a store, the first there, has assigned: a row of its iteration.

        The loops of the nest that are not around the access have gone through the whole row.
        """
        if not isinstance(access, Load | Store) or access.array is not first.array:
            return False
        around = self.loops_of(access)
        axes = [first.indices.index(loop.index) for loop in nest if loop in around and loop.index is not None]
        return all(access.indices[axis] is first.indices[axis] for axis in axes)

    def touching(self, array: Value) -> list[Operation] | None:
        """The operations that read or write the array, in order; None if it has other names in the same iteration."""
        return None if array in self.shared else self.touched.get(array, [])

    def is_handed_on(self, name: Value, array: Value) -> bool:
        """Whether a name is what a loop hands on, of what an iteration makes."""
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
        return self.lengths.alike(
            self.lengths.size(stop), self.lengths.of(array.out, axis), self.compared_before(array)
        )

    def compared_before(self, operation: Operation) -> list[Pair]:
        """The sizes that are equal where the operation stands, because the program has raised if they are not."""
        start = self.structure.start
        earlier = [o for o in self.function.body.operations if start[o] < start[operation]]
        return [pair for pair in map(self.lengths.compared, earlier) if pair is not None]

    # -- copies for the caller ---------------------------------------------------------------------------------------

    def giving_back_what_is_there(self) -> Function:
        """An array that only a copy is returned of can be returned itself."""
        yields = list(self.function.body.yields)
        for k, value in enumerate(yields):
            source = self.copied_from(value)
            if source is not None and self.is_left_to(source, [v for v in yields if v is not value]):
                source.name = source.name or value.name
                yields[k] = source
        return changed(self.function, body=changed(self.function.body, yields=tuple(yields)))

    def copied_from(self, value: Value) -> Value | None:
        """The array whose elements are all that is ever stored in an array, and its lengths."""
        made = self.structure.definition.get(value)
        touched = self.touched.get(value, [])
        if not isinstance(made, Alloc) or made.fill is not None or len(touched) != 1 or value in self.shared:
            return None
        store = touched[0]
        if not isinstance(store, Store) or store.adds or not self.covers(store, made):
            return None
        load = self.structure.definition.get(store.value)
        if not isinstance(load, Load) or load.indices != store.indices or load.array.type != value.type:
            return None
        source, top = load.array, self.structure.top
        if self.structure.block_of[made] is not top or self.structure.home.get(source) is not top:
            return None
        facts = self.compared_before(made)
        lengths = [(self.lengths.of(source, a), self.lengths.of(value, a)) for a in range(value.array.rank)]
        alike = all(self.lengths.alike(x, y, facts) for x, y in lengths)
        is_last = not self.is_written_from(self.loops_of(store)[0], source)
        return source if alike and is_last and self.is_whole(source, set()) else None

    def is_written_from(self, place: Operation, array: Value) -> bool:
        """Whether anything may be written into an array in an operation or after it."""
        start, memory = self.structure.start[place], self.sites.get(array, frozenset())
        later = [o for o, when in self.structure.start.items() if when >= start]
        writing = [o for o in later if not isinstance(o, Load | Dim | Loop | If | Alloc | Copy)]
        return any(self.sites.get(v, frozenset()) & memory for o in writing for v in o.uses())

    def is_whole(self, array: Value, seen: set[Value]) -> bool:
        """Whether it is an array that was made here, by whatever ways, and not a part of one."""
        if array in seen:
            return True
        seen.add(array)
        match self.structure.definition.get(array):
            case Alloc() | Copy() | Library():
                return True
            case Loop() as loop:
                k = (loop.params if array in loop.params else loop.outs).index(array)
                return self.is_whole(loop.inits[k], seen) and self.is_whole(loop.body.yields[k], seen)
            case If() as branch:
                k = branch.outs.index(array)
                return self.is_whole(branch.then.yields[k], seen) and self.is_whole(branch.orelse.yields[k], seen)
        return False

    def is_left_to(self, array: Value, others: list[Value]) -> bool:
        """Whether no other result shares its memory, and no one else owns it."""
        memory = self.sites.get(array, frozenset())
        taken = {s for v in (*others, *self.function.params) for s in self.sites.get(v, ())}
        return all(self.is_made_here(s) for s in memory) and not memory & taken
