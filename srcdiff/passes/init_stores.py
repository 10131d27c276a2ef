"""Initial stores: sums start by assignment, so buffers need not be cleared where the next iteration writes anyway.

for t in range(steps):                       for t in range(steps):
    for i in range(2, n - 2):                    a[1] = a[n - 2] = 0.0
        a[i] += f(b, i)           =>             for i in range(2, n - 2):
    ...                                              a[i] = f(b, i)
    for i in range(1, n - 1):                    ...
        b[i] = 0.0
    a, b = b, a                                  a, b = b, a

An iteration finds zeros in a buffer that was zero initially, if each iteration leaves zeros in the buffer that it
carries. So the first addition to an element can be an assignment, and zeros that the next iteration overwrites are not
needed. The few elements that it does not assign are cleared before it. Adjoints of swapped buffers are such sums. So
are those of arrays that iterations allocate with zeros and a loop adds to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from srcdiff.analyses.access_relations import (
    Affine,
    affine,
    iterations_are_apart,
    never_in_one_iteration,
    never_meets,
    reaches,
)
from srcdiff.analyses.dependence import dependence_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import INT, Array, element_type
from srcdiff.quick_dataclasses import dataclass


def start_sums_by_assignment(function: Function) -> Function:
    """Go through the loops at top level, one parameter after the other; each change affects the next."""
    for k in range(len(function.body.operations)):
        loop = function.body.operations[k]
        if isinstance(loop, Loop) and loop.counted:
            for slot, taken in enumerate(loop.params):
                if isinstance(taken.type, Array) and loop.body.yields[slot] in loop.params:
                    function = _Zeros(function).parameter(k, slot)
    return changed(function, body=_Zeros(function).new_arrays(function.body))


@dataclass(frozen=True, slots=True)
class _Range:
    """The elements of an array that a loop touches."""

    start: Affine
    stop: Affine


class _Zeros:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.sites = self.dependence.sites
        self.structure = self.dependence.structure
        self.apart = self.dependence.apart
        self.definition = self.dependence.definition
        self.constants = dict(self.dependence.constants)
        self.function = function

    def parameter(self, place: int, slot: int) -> Function:
        """The function without the zeros that a loop carries in one of its parameters."""
        operations = list(self.function.body.operations)
        loop = operations[place]
        assert isinstance(loop, Loop)
        first = self.first_sum(loop, loop.params[slot])
        if first is None or not self.is_empty(first[1], loop, slot):
            return self.function
        operations[place] = self.assigning(loop, slot, *first)
        return replace(self.function, body=changed(self.function.body, operations=tuple(operations)))

    def new_arrays(self, block: Block) -> Block:
        """The block with uncleared arrays in iterations, if the first loop that touches them adds to all elements.

        Arrays that are allocated once are left unchanged.
        """
        builder = Builder()
        builder.constants = self.constants
        instead: dict[Operation, Operation] = {}
        before: dict[Operation, tuple[Value, _Range, _Range]] = {}
        for place, operation in enumerate(block.operations):
            if isinstance(operation, Alloc) and operation.fill is not None and self.structure.loops_around(block):
                self.new_array(operation, block.operations[place + 1 :], instead, before)
        for operation in block.operations:
            if operation in before:
                self.fill(*before[operation], builder)
            builder.add(instead.get(operation, operation).rebuilt(self.new_arrays))
        return changed(block, operations=tuple(builder.operations))

    def new_array(
        self,
        made: Alloc,
        behind: tuple[Operation, ...],
        instead: dict[Operation, Operation],
        before: dict[Operation, tuple[Value, _Range, _Range]],
    ) -> None:
        array, is_zero = made.out, self.constants.get(made.fill) == 0.0 if made.fill is not None else False
        if not is_zero or array.array.rank != 1 or made.grows:
            return
        length = affine(made.shape[0], self.structure) if made.shape else None
        touching = self.touching(behind, array)
        for place, loop in enumerate(touching):
            store = self.only_sum(loop, array)
            assigned = self.range_of(loop, store) if isinstance(loop, Loop) and store is not None else None
            if store is None or assigned is None:
                continue
            earliest = touching[0]
            if length is None or loop in instead or earliest in before:
                return
            if not all(self.is_outside(o, array, store) for o in touching[:place]):
                return
            values = [v for end in (assigned.start, assigned.stop, length) for v, _ in end.terms]
            if any(self.is_made_behind(v, earliest) for v in values):
                return
            instead[made] = replace(made, fill=None)
            instead[loop] = _with(loop, {store: replace(store, adds=False)})
            before[earliest] = array, _Range(Affine(0), length), assigned
            return

    def touching(self, operations: tuple[Operation, ...], array: Value) -> list[Operation]:
        return [o for o in operations if any(self.touches(inner, array) for inner in self.inside(o))]

    def is_outside(self, operation: Operation, array: Value, store: Store) -> bool:
        """Whether an operation before the loop touches only elements that the store in the loop does not touch."""
        around = self.structure.loops_around(self.structure.block_of[operation])[-1]
        for inner in self.inside(operation):
            if self.touches(inner, array):
                if not isinstance(inner, Load | Store) or inner.array is not array:
                    return False
                if not never_in_one_iteration(around, store, inner, self.structure):
                    return False
        return True

    def is_made_behind(self, value: Value, operation: Operation) -> bool:
        definition = self.definition.get(value)
        return definition is not None and self.structure.start[definition] >= self.structure.start[operation]

    # -- what an iteration finds ---------------------------------------------------------------------------------------

    def is_empty(self, first: Store, loop: Loop, k: int) -> bool:
        """Whether there are nothing but zeros where an iteration first stores into this parameter."""
        taken, handed = loop.params[k], loop.body.yields[k]
        if not self.starts_empty(loop.inits[k], loop) or not self.is_known_by_one_name(taken, loop):
            return False
        if loop.body.yields.count(handed) != 1:
            return False
        stores = [s for o in self.emptying(loop, handed) for s in self.surely_stored(o, handed)]
        return reaches(stores, first, self.structure, loop.body)

    def starts_empty(self, array: Value, loop: Loop) -> bool:
        for site in self.dependence.memory(array):
            made = self.definition.get(site)
            if not isinstance(made, Alloc) or made.fill is None or self.constants.get(made.fill) != 0.0:
                return False
            if self.structure.block_of[made] is not self.function.body:
                return False
        before = [o for o in self.function.body.operations if self.structure.start[o] < self.structure.start[loop]]
        return not any(self.writes(inner, array) for o in before for inner in self.inside(o))

    def is_known_by_one_name(self, array: Value, loop: Loop) -> bool:
        """Whether an iteration has no other reference to the memory of a parameter."""
        memory, own = self.dependence.memory(array), {v for o in walk(loop.body) for v in o.defines()}
        used = self.dependence.effects(loop.body.operations).uses | set(loop.body.yields) | set(loop.params)
        others = [v for v in used - own if v is not array and self.sites.get(v, frozenset()) & memory]
        return all(v in loop.params and self.apart.different(v, array) for v in others)

    def inside(self, operation: Operation) -> Iterator[Operation]:
        yield operation
        for block in operation.blocks():
            yield from walk(block)

    def writes(self, operation: Operation, array: Value) -> bool:
        written: tuple[Value, ...] = ()
        if isinstance(operation, Store):
            written = (operation.array,)
        elif isinstance(operation, Call):
            written = operation.args
        return any(self.may_be(v, array) for v in written)

    def may_be(self, value: Value, array: Value) -> bool:
        return value in self.sites and not self.apart.different(value, array)

    def touches(self, operation: Operation, array: Value) -> bool:
        if isinstance(operation, Dim | References):
            return False
        used = [*operation.uses(), *(v for b in operation.blocks() for v in b.yields)]
        return any(self.may_be(v, array) for v in used)

    def emptying(self, loop: Loop, array: Value) -> list[Operation]:
        """The operations at the end of an iteration that write nothing but zeros into the array."""
        found: list[Operation] = []
        for operation in reversed(loop.body.operations):
            stores = [o for o in self.inside(operation) if self.writes(o, array)]
            if not all(isinstance(s, Store) and self.is_zero(s) for s in stores):
                break
            if stores:
                found.append(operation)
        return found[::-1]

    def is_zero(self, store: Store) -> bool:
        return not store.adds and self.constants.get(store.value) == 0.0

    def surely_stored(self, operation: Operation, array: Value) -> Iterator[Store]:
        """The stores that every iteration executes."""
        if isinstance(operation, Store) and operation.array is array:
            yield operation
        if isinstance(operation, Loop) and operation.counted:
            for inner in operation.body.operations:
                yield from self.surely_stored(inner, array)

    # -- uses of the buffer -----------------------------------------------------------------------------------------

    def first_sum(self, loop: Loop, array: Value) -> tuple[Loop, Store] | None:
        """The loop that touches the array first, if every iteration adds to an element, and to each element once."""
        return self.first_touch(loop.body.operations, array)

    def first_touch(self, operations: tuple[Operation, ...], array: Value) -> tuple[Loop, Store] | None:
        touching = self.touching(operations, array)
        store = self.only_sum(touching[0], array) if touching else None
        return (touching[0], store) if store is not None and isinstance(touching[0], Loop) else None

    def only_sum(self, operation: Operation, array: Value) -> Store | None:
        """The store by which a loop touches the array, if every iteration adds to an element, and to each once."""
        touching = [o for o in self.inside(operation) if self.touches(o, array)]
        first = touching[0]
        if not isinstance(operation, Loop) or len(touching) > 1 or not isinstance(first, Store) or not first.adds:
            return None
        if first.array is not array or first.value.type != element_type(array.array):
            return None
        around = self.structure.loops_around(self.structure.block_of[first])
        inner = around[around.index(operation) :]
        return first if all(iterations_are_apart(x, first, first, self.structure) for x in inner) else None

    def assigning(self, loop: Loop, k: int, first: Loop, store: Store) -> Loop:
        """The loop with an assignment instead of the first sum, and without zeros where it assigns."""
        assigned = self.range_of(first, store)
        needless: dict[Operation, _Range] = {}
        if assigned is not None and not self.is_used_behind(loop, k):
            needless = self.needless(loop, loop.body.yields[k])
        builder = Builder()
        builder.constants = self.constants
        for operation in loop.body.operations:
            if operation is first:
                for zeros in (z for z in needless.values() if z != assigned):
                    assert assigned is not None
                    self.fill(loop.params[k], zeros, assigned, builder)
                operation = _with(operation, {store: replace(store, adds=False)})
            builder.add(_with(operation, dict.fromkeys(needless)))
        return replace(loop, body=Block(tuple(builder.operations), loop.body.yields))

    def needless(self, loop: Loop, array: Value) -> dict[Operation, _Range]:
        """The stores of zeros in loops to elements that the rest of the iteration does not read."""
        found: dict[Operation, _Range] = {}
        for operation in self.emptying(loop, array):
            stores = list(self.surely_stored(operation, array))
            if isinstance(operation, Loop) and len(stores) == 1:
                elements = self.range_of(operation, stores[0])
                if elements is not None and not self.is_read_behind(stores[0], operation, loop):
                    found[stores[0]] = elements
        return found

    def is_used_behind(self, loop: Loop, k: int) -> bool:
        """Whether the zeros may be read after the last iteration."""
        end = self.structure.end[loop]
        behind = set(self.function.body.yields)
        for operation in self.function.body.operations:
            if self.structure.start[operation] > end:
                behind |= self.dependence.effects((operation,)).uses
        return any(self.may_be(v, loop.outs[k]) for v in behind)

    def is_read_behind(self, store: Store, emptying: Loop, loop: Loop) -> bool:
        """Whether the rest of the iteration may read an element that has been emptied."""
        behind = [o for o in loop.body.operations if self.structure.start[o] >= self.structure.start[emptying]]
        for operation in (inner for o in behind for inner in self.inside(o)):
            if not self.touches(operation, store.array) or (isinstance(operation, Store) and not operation.adds):
                continue
            if not isinstance(operation, Load | Store) or operation.array is not store.array:
                return True
            is_before = self.structure.start[operation] < self.structure.start[store]
            if is_before and operation.indices == store.indices:
                continue  # its own element, before it is emptied
            is_inside = emptying in self.structure.loops_around(self.structure.block_of[operation])
            if is_inside and not iterations_are_apart(emptying, store, operation, self.structure):
                return True  # another iteration may have emptied it
            if not is_before and not never_meets(store, store.array, operation.indices, self.structure, emptying):
                return True
        return False

    def range_of(self, loop: Loop, store: Store) -> _Range | None:
        """The elements of a one-dimensional array that a store directly in a loop touches."""
        if (
            self.structure.block_of[store] is not loop.body
            or len(store.indices) != 1
            or self.dependence.step(loop) != 1
        ):
            return None
        assert loop.bounds is not None and loop.index is not None
        place = affine(store.indices[0], self.structure)
        start, stop = (affine(b, self.structure) for b in loop.bounds[:2])
        if place is None or start is None or stop is None or dict(place.terms).get(loop.index) != 1:
            return None
        offset = place.plus(Affine(0, ((loop.index, 1),)), -1)
        return _Range(start.plus(offset), stop.plus(offset))

    def fill(self, array: Value, zeros: _Range, assigned: _Range, builder: Builder) -> None:
        """Put zeros into the elements of one range that are outside of another."""
        start, stop = self.number(zeros.start, builder), self.number(zeros.stop, builder)
        ends: list[tuple[Value, Value]] = []
        if not _is_at_most(assigned.start, zeros.start):
            ends.append((start, builder.apply("minimum", stop, self.number(assigned.start, builder))))
        if not _is_at_most(zeros.stop, assigned.stop):
            ends.append((builder.apply("maximum", start, self.number(assigned.stop, builder)), stop))
        for first, last in ends:
            counter = Value(INT, "i")
            one = builder.const(1)
            with builder.block() as operations:
                builder.store(array, (counter,), builder.const(0.0))
            builder.add(Loop(counter, (first, last, one), (), (), None, Block(tuple(operations)), ()))

    def number(self, amount: Affine, builder: Builder) -> Value:
        total: Value | None = None
        for value, factor in amount.terms:
            term = builder.apply("multiply", value, builder.const(factor))
            total = term if total is None else builder.apply("add", total, term)
        constant = builder.const(amount.constant)
        return constant if total is None else builder.apply("add", total, constant)


def _with(operation: Operation, other: Mapping[Operation, Operation | None]) -> Operation:
    """The operation with others in place of some inside it, or nothing."""

    def visit(block: Block) -> Block:
        found = [other.get(o, o) for o in block.operations]
        return changed(block, operations=tuple(o.rebuilt(visit) for o in found if o is not None))

    return operation.rebuilt(visit)


def _is_at_most(a: Affine, b: Affine) -> bool:
    """Whether the first integer is known to be at most the second one."""
    difference = a.plus(b, -1)
    return not difference.terms and difference.constant <= 0
