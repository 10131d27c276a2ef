"""Each row collects what it gets from the rows around it, instead of each row handing it out.

for i in range(1, n - 1):                    for i in range(0, n):
    for j in range(m):                           if i < n - 2 and i >= 2:
        a[i - 1, j] += p[i, j]                       for j in range(m):
        a[i + 1, j] += q[i, j]        =>                 a[i, j] += p[i + 1, j]
                                                         a[i, j] += q[i - 1, j]
                                                 else:
                                                     if i + 1 < n - 1:
                                                         for j in range(m):
                                                             a[i, j] += p[i + 1, j]
                                                     if i - 1 >= 1:
                                                         for j in range(m):
                                                             a[i, j] += q[i - 1, j]

A row is loaded and stored once instead of once for each of its neighbours. The reverse of a stencil in two dimensions
is such a nest. What is added is computed in the place where it is collected, and must be cheap. Rows at both ends do
not get something from every neighbour. What elements of one row get from each other is left to the pass that follows
(passes/scatter_to_gather.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from srcdiff.analyses.dependence import Effects, dependence_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Dim, Function, Load, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import INT, element_type
from srcdiff.passes.scatter_to_gather import compute_again
from srcdiff.quick_dataclasses import dataclass

_MOST_OPERATIONS = 8
"""The limit for the cost of an amount, which is computed once for each neighbour."""


def gather_rows(function: Function) -> Function:
    return changed(function, body=_Rows(function).block(function.body))


@dataclass(frozen=True, eq=False, slots=True)
class _Nest:
    """Two loops with nothing but plain operations between them, whose iterations may run in any order."""

    outer: Loop
    inner: Loop
    effects: Effects

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (*(o for o in self.outer.body.operations if o is not self.inner), *self.inner.body.operations)


@dataclass(eq=False, slots=True)
class _Share:
    """An addition to an element of a row: the distance of the row, and the operations that compute the amount."""

    store: Store
    distance: int
    before: list[Operation]
    """In the outer loop."""
    within: list[Operation]
    """In the inner loop."""


@dataclass(eq=False, slots=True)
class _Group:
    """All that an iteration adds to the rows of one array."""

    array: Value
    axis: int
    shares: list[_Share] = field(default_factory=list)

    @property
    def low(self) -> int:
        return min(s.distance for s in self.shares)

    @property
    def high(self) -> int:
        return max(s.distance for s in self.shares)


class _Rows:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.lengths, self.structure = self.dependence.lengths, self.dependence.structure
        self.apart, self.definition = self.dependence.apart, self.dependence.definition
        self.constants = dict(self.dependence.constants)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            nest = self.nest(operation)
            groups = [] if nest is None else self.groups(nest)
            if nest is not None and groups:
                self.write(nest, groups, operations)
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    # -- what can be collected ---------------------------------------------------------------------------------------

    def nest(self, outer: Operation) -> _Nest | None:
        if not isinstance(outer, Loop) or not self.is_plain(outer):
            return None
        loops = [o for o in outer.body.operations if o.blocks()]
        others = [o for o in outer.body.operations if not o.blocks()]
        if len(loops) != 1 or not all(isinstance(o, Apply | Const | Dim | Load) for o in others):
            return None
        (inner,) = loops
        if (
            not isinstance(inner, Loop)
            or not self.is_plain(inner)
            or any(isinstance(o, Loop) for o in walk(inner.body))
        ):
            return None
        assert inner.bounds is not None
        if any(self.follows(b, outer) for b in inner.bounds):
            return None
        several = sum(isinstance(o, Store) and o.adds for o in inner.body.operations) > 1
        if not several or not self.dependence.independent(outer) or not self.dependence.independent(inner):
            return None
        return _Nest(outer, inner, self.dependence.effects((outer,)))

    def is_plain(self, loop: Loop) -> bool:
        return loop.index is not None and loop.counted and self.dependence.step(loop) == 1

    def follows(self, value: Value, loop: Loop) -> bool:
        """Whether a value depends on the counter of a loop, or on what its iterations compute otherwise."""
        if value is loop.index or value in loop.params:
            return True
        operation = self.definition.get(value)
        if operation is None or loop not in self.structure.loops_around(self.structure.home[value]):
            return False
        if not isinstance(operation, Apply | Const | Dim):
            return True
        return any(self.follows(v, loop) for v in operation.uses())

    def groups(self, nest: _Nest) -> list[_Group]:
        found: dict[tuple[Value, int, int], _Group] = {}
        for store in nest.inner.body.operations:
            if not isinstance(store, Store) or not store.adds or store.value.type != element_type(store.array.array):
                continue
            along, across = self.place(store, nest.outer), self.place(store, nest.inner)
            share = None if along is None or across is None else self.share(store, along[1], nest)
            if along is not None and across is not None and share is not None:
                key = store.array, along[0], across[0]
                found.setdefault(key, _Group(store.array, along[0])).shares.append(share)
        wanted = [g for g in found.values() if g.low < g.high]
        return [g for g in wanted if self.only_added_to(g.array, nest)]

    def place(self, store: Store, loop: Loop) -> tuple[int, int] | None:
        """The only axis along which a loop goes, and the distance of the element from the loop's counter."""
        moving = [k for k, i in enumerate(store.indices) if self.follows(i, loop)]
        if len(moving) != 1 or loop in self.structure.loops_around(
            self.structure.home.get(store.array, self.structure.top)
        ):
            return None
        distance = self.away(store.indices[moving[0]], loop)
        return None if distance is None else (moving[0], distance)

    def away(self, index: Value, loop: Loop) -> int | None:
        """How far an index is from the loop's counter; None if that is not fixed, or the index may be negative."""
        assert loop.bounds is not None
        operation = self.definition.get(index)
        distance: int | None = 0 if index is loop.index else None
        if isinstance(operation, Apply) and operation.primitive in ("add", "subtract") and index is not loop.index:
            amount = self.constants.get(operation.args[1])
            if operation.args[0] is loop.index and isinstance(amount, int):
                distance = amount if operation.primitive == "add" else -amount
        if distance is None or not self.lengths.is_natural(loop.bounds[0]):
            return None
        start = self.constants.get(loop.bounds[0], 0)
        return distance if distance >= 0 or start + distance >= 0 else None

    def only_added_to(self, array: Value, nest: _Nest) -> bool:
        """Whether the nest does nothing with the array but to add to it."""
        effects = nest.effects
        if self.dependence.memory(array) & effects.reads:
            return False
        others: list[Load | Store] = [*effects.loads, *(s for s in effects.stores if not s.adds)]
        return all(self.apart.different(x.array, array) for x in others)

    def share(self, store: Store, distance: int, nest: _Nest) -> _Share | None:
        """The added value, if it can be computed anywhere, before the rest of the nest, and cheaply."""
        needed = self.needed((store.value, *store.indices), nest)
        if needed is None:
            return None
        for operation in needed:
            if isinstance(operation, Load):
                writers = [s for s in nest.effects.stores if not self.apart.different(s.array, operation.array)]
                if any(self.structure.start[s] < self.structure.start[operation] for s in writers):
                    return None
            elif isinstance(operation, Apply) and not PRIMITIVES[operation.primitive].cheap:
                return None
        if sum(isinstance(o, Apply) and o.out.type != INT for o in needed) > _MOST_OPERATIONS:
            return None
        within = set(nest.inner.body.operations)
        return _Share(store, distance, [o for o in needed if o not in within], [o for o in needed if o in within])

    def needed(self, values: Iterable[Value], nest: _Nest) -> list[Operation] | None:
        """The operations of the nest that compute the values, in order; None if some are not plain."""
        own = (nest.outer.body, nest.inner.body)
        found: set[Operation] = set()
        work = list(values)
        while work:
            value = work.pop()
            if value in (nest.outer.index, nest.inner.index):
                continue
            operation = self.definition.get(value)
            if operation is None or self.structure.home.get(value, self.structure.top) not in own:
                continue
            if value in nest.outer.params or value in nest.inner.params:
                return None
            if not isinstance(operation, Apply | Load | Const | Dim):
                return None
            if operation not in found:
                found.add(operation)
                work += operation.uses()
        return [o for o in nest.operations if o in found]

    # -- how it is written -------------------------------------------------------------------------------------------

    def write(self, nest: _Nest, groups: list[_Group], into: list[Operation]) -> None:
        builder = Builder()
        builder.operations, builder.constants = into, self.constants
        for value in nest.outer.bounds or ():
            definition = self.definition.get(value)
            if isinstance(definition, Apply):
                builder.note(definition)
        for group in groups:
            self.collect(nest, group, builder)
        gone = {s.store for g in groups for s in g.shares}
        inner = nest.inner
        rest = replace(
            inner, body=replace(inner.body, operations=tuple(o for o in inner.body.operations if o not in gone))
        )
        operations = tuple(rest if o is inner else o for o in nest.outer.body.operations)
        into.append(replace(nest.outer, body=replace(nest.outer.body, operations=operations), claims=()))

    def collect(self, nest: _Nest, group: _Group, builder: Builder) -> None:
        """A loop over the rows that get something: from all neighbours at once, or from each that there is."""
        assert nest.outer.bounds is not None
        start, stop, _ = nest.outer.bounds
        first, last = self.shifted(builder, start, group.low), self.shifted(builder, stop, group.high)
        low, high = self.shifted(builder, stop, group.low), self.shifted(builder, start, group.high)
        counter = self.counter(nest.outer)
        with builder.block() as operations:
            below, above = builder.apply("less", counter, low), builder.apply("greater_equal", counter, high)
            with builder.block() as then:
                rows = [(s, self.shifted(builder, counter, -s.distance)) for s in group.shares]
                self.row(nest, rows, builder)
            with builder.block() as orelse:
                for distance in sorted({s.distance for s in group.shares}):
                    row = self.shifted(builder, counter, -distance)
                    tests = [builder.apply("greater_equal", row, start)] if distance > group.low else []
                    tests += [builder.apply("less", row, stop)] if distance < group.high else []
                    with builder.block() as one:
                        for share in group.shares:
                            if share.distance == distance:
                                self.row(nest, [(share, row)], builder)
                    self.guarded(tests, one, [], builder)
            self.guarded([below, above], then, orelse, builder)
        self.loop(nest.outer, counter, first, last, operations, builder)

    def guarded(self, tests: list[Value], then: list[Operation], orelse: list[Operation], builder: Builder) -> None:
        condition = tests[0] if len(tests) == 1 else builder.apply("logical_and", *tests)
        builder.branch(condition, Block(tuple(then)), Block(tuple(orelse)), ())

    def row(self, nest: _Nest, shares: list[tuple[_Share, Value]], builder: Builder) -> None:
        """The inner loop, for what these iterations of the outer one add."""
        assert nest.outer.index is not None and nest.inner.index is not None and nest.inner.bounds is not None
        limits: dict[Value, Value] = {}
        compute_again(self.needed(nest.inner.bounds, nest) or (), limits, builder)
        known: list[dict[Value, Value]] = []
        for share, counter in shares:
            known.append({nest.outer.index: counter})
            compute_again(share.before, known[-1], builder)
        column = self.counter(nest.inner)
        with builder.block() as operations:
            for (share, _), values in zip(shares, known, strict=True):
                values[nest.inner.index] = column
                compute_again(share.within, values, builder)
                builder.span = share.store.span
                indices = tuple(values.get(i, i) for i in share.store.indices)
                builder.store(share.store.array, indices, values.get(share.store.value, share.store.value), adds=True)
        start, stop, _ = (limits.get(b, b) for b in nest.inner.bounds)
        self.loop(nest.inner, column, start, stop, operations, builder)

    def counter(self, loop: Loop) -> Value:
        return Value(INT, loop.index.name if loop.index is not None else "")

    def shifted(self, builder: Builder, value: Value, amount: int) -> Value:
        return builder.apply("add", value, builder.const(amount))

    def loop(
        self, loop: Loop, counter: Value, start: Value, stop: Value, operations: list[Operation], builder: Builder
    ) -> None:
        bounds = (start, stop, builder.const(1))
        builder.add(Loop(counter, bounds, (), (), None, Block(tuple(operations)), (), span=loop.span))
