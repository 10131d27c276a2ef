"""Each element collects what it gets, instead of each iteration handing it out.

for i in range(1, n - 1):                    for i in range(2, n - 2):
    a[i - 1] += p[i]                             a[i] += p[i + 1] + q[i - 1]
    a[i + 1] += q[i]              =>         for i in range(1, min(n - 1, 3)):
                                                 a[i - 1] += p[i]
                                             for i in range(max(1, n - 3), n - 1):
                                                 a[i + 1] += q[i]

A loop that adds to neighbours has no use for vector instructions: each iteration changes what the next one adds to. The
reverse of a stencil is such a loop. What is added is computed once for each neighbour, which must be cheap; elements at
both ends, which do not get something from every neighbour, are added to as before. Several rows of one array are added
to in a loop each, for the same reason. What is added may be chosen by a branch (passes/branch_sums.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field, replace

from srcdiff.analyses.dependence import Effects, dependence_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Const,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    Store,
    Substitution,
    Value,
    changed,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import INT, element_type
from srcdiff.passes.branch_sums import take_sums_out_of_branches
from srcdiff.quick_dataclasses import dataclass

_MOST_OPERATIONS, _MOST_OF_A_ROW = 80, 8
"""The limits for the cost of all neighbours together, and of an amount for one element of a row."""


def gather(function: Function) -> Function:
    """Gather the sums of loops; where that needs it, those that stand in branches leave them first."""
    gathered = changed(function, body=_Gather(function).block(function.body))
    opened = take_sums_out_of_branches(gathered)
    if opened is gathered:
        return gathered
    again = changed(opened, body=_Gather(opened).block(opened.body))
    return gathered if again is opened else again


@dataclass(eq=False, slots=True)
class _Share:
    """An addition to one neighbour: its distance, and the operations that compute the amount."""

    store: Store
    distance: int
    operations: list[Operation]


@dataclass(eq=False, slots=True)
class _Group:
    """All that an iteration adds to the elements of one row."""

    array: Value
    axis: int
    shares: list[_Share] = field(default_factory=list)

    @property
    def low(self) -> int:
        return min(s.distance for s in self.shares)

    @property
    def high(self) -> int:
        return max(s.distance for s in self.shares)


class _Gather:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.lengths = self.dependence.lengths
        self.structure = self.dependence.structure
        self.apart = self.dependence.apart
        self.definition = self.dependence.definition
        self.constants = dict(self.dependence.constants)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            groups = self.groups(operation) if isinstance(operation, Loop) else []
            if isinstance(operation, Loop) and groups:
                self.write(operation, groups, operations)
            else:
                operations.append(operation)
        return changed(block, operations=tuple(operations))

    # -- what can be collected ---------------------------------------------------------------------------------------

    def groups(self, loop: Loop) -> list[_Group]:
        if loop.index is None or not loop.counted or self.dependence.step(loop) != 1:
            return []
        if any(isinstance(o, Loop) for o in walk(loop.body)):
            return []
        found: dict[object, _Group] = {}
        for operation in loop.body.operations:
            if isinstance(operation, Store) and operation.adds:
                place = self.place(operation, loop)
                if place is not None:
                    axis, distance = place
                    rest = tuple(i for k, i in enumerate(operation.indices) if k != axis)
                    group = found.setdefault((operation.array, axis, rest), _Group(operation.array, axis))
                    group.shares.append(_Share(operation, distance, []))
        several = Counter(g.array for g in found.values() for _ in g.shares)
        wanted = [g for g in found.values() if several[g.array] > 1 and (g.low < g.high or len(found) > 1)]
        if not wanted or not self.dependence.independent(loop):
            return []
        effects = self.dependence.effects((loop,))
        return [g for g in wanted if self.only_added_to(g, effects) and self.is_cheap(g, loop, effects)]

    def place(self, store: Store, loop: Loop) -> tuple[int, int] | None:
        """The axis along which the loop goes, and the distance of the element from the counter."""
        moving = [k for k, i in enumerate(store.indices) if self.varies(i, loop)]
        if len(moving) != 1 or store.value.type != element_type(store.array.array) or self.inside(store.array, loop):
            return None
        distance = self.away(store.indices[moving[0]], loop)
        return None if distance is None else (moving[0], distance)

    def inside(self, value: Value, loop: Loop) -> bool:
        return self.structure.home.get(value, self.structure.top) is loop.body

    def varies(self, value: Value, loop: Loop) -> bool:
        """Whether a value of an iteration may be another one in the next."""
        if not self.inside(value, loop) or value in self.constants:
            return False
        operation = self.definition.get(value)
        if value is loop.index or not isinstance(operation, Apply):
            return True
        return any(self.varies(a, loop) for a in operation.args)

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

    def only_added_to(self, group: _Group, effects: Effects) -> bool:
        """Whether the loop does nothing with the array but to add to it."""
        if self.dependence.memory(group.array) & effects.reads:
            return False
        others: list[Load | Store] = [*effects.loads, *(s for s in effects.stores if not s.adds)]
        return all(self.apart.different(x.array, group.array) for x in others)

    def is_cheap(self, group: _Group, loop: Loop, effects: Effects) -> bool:
        """Whether what is added can be computed anywhere, before the rest of the loop, and for little."""
        for share in group.shares:
            needed = self.needed((share.store.value, *share.store.indices), loop)
            if needed is None:
                return False
            share.operations = needed
            for operation in _with_inner(needed):
                if isinstance(operation, Load):
                    writers = [s for s in effects.stores if not self.apart.different(s.array, operation.array)]
                    if any(self.structure.start[s] < self.structure.start[operation] for s in writers):
                        return False
                elif isinstance(operation, Apply) and not PRIMITIVES[operation.primitive].cheap:
                    return False
        most = _MOST_OPERATIONS if group.low < group.high else _MOST_OF_A_ROW
        return sum(isinstance(o, Apply) for s in group.shares for o in _with_inner(s.operations)) <= most

    def needed(self, values: Iterable[Value], loop: Loop) -> list[Operation] | None:
        """The operations of an iteration that compute the values, in order; None if some are not plain."""
        found: set[Operation] = set()
        work = list(values)
        while work:
            value = work.pop()
            if value is loop.index or not self.inside(value, loop):
                continue
            operation = self.definition.get(value)
            if operation is None or value in loop.params:
                return None
            if operation not in found:
                inside = _with_inner([operation])
                if not all(isinstance(o, Apply | Load | Const | Dim | If) for o in inside):
                    return None
                found.add(operation)
                own = {v for o in inside if o is not operation for v in o.defines()}
                used = (*(v for o in inside for v in o.uses()), *(v for b in operation.blocks() for v in b.yields))
                work += [v for v in used if v not in own]
        return [o for o in loop.body.operations if o in found]

    # -- how it is written -------------------------------------------------------------------------------------------

    def write(self, loop: Loop, groups: list[_Group], into: list[Operation]) -> None:
        builder = Builder()
        builder.operations, builder.constants = into, self.constants
        for value in loop.bounds or ():
            definition = self.definition.get(value)
            if isinstance(definition, Apply):
                builder.note(definition)
        for group in groups:
            self.middle(loop, group, builder)
            if group.low < group.high:
                self.ends(loop, group, builder)
        gone = {s.store for g in groups for s in g.shares}
        rest = tuple(o for o in loop.body.operations if o not in gone)
        into.append(replace(loop, body=Block(rest, loop.body.yields)))

    def middle(self, loop: Loop, group: _Group, builder: Builder) -> None:
        """The elements that every neighbour adds to."""
        assert loop.bounds is not None and loop.index is not None
        start = self.shifted(builder, loop.bounds[0], group.high)
        stop = self.shifted(builder, loop.bounds[1], group.low)
        counter = Value(INT, loop.index.name)
        with builder.block() as operations:
            total, known = self.total(
                loop, group.shares, lambda share: self.shifted(builder, counter, -share.distance), builder
            )
            indices = tuple(
                counter if k == group.axis else known(i) for k, i in enumerate(group.shares[-1].store.indices)
            )
            builder.store(group.array, indices, total, adds=True)
        self.loop(loop, counter, start, stop, operations, builder)

    def ends(self, loop: Loop, group: _Group, builder: Builder) -> None:
        """The first and the last iterations, for the elements that the middle leaves out."""
        assert loop.bounds is not None
        start, stop, _ = loop.bounds
        width = group.high - group.low
        early = builder.apply("minimum", stop, self.shifted(builder, start, width))
        late = builder.apply("maximum", start, self.shifted(builder, stop, -width))
        for first, last, is_late in ((start, early, False), (late, stop, True)):
            counter = Value(INT, loop.index.name if loop.index is not None else "")
            limits: dict[int, Value] = {}
            neighbours: dict[int, list[_Share]] = {}
            for share in group.shares:
                neighbours.setdefault(share.distance, []).append(share)
            for distance in neighbours:
                if distance not in (group.low, group.high):
                    limit = self.shifted(builder, start, group.high - distance)
                    if is_late:
                        limit = builder.apply("maximum", limit, self.shifted(builder, stop, group.low - distance))
                    limits[distance] = limit
            with builder.block() as operations:
                for distance, shares in neighbours.items():
                    if distance != (group.low if is_late else group.high):
                        self.end(loop, group, shares, counter, limits.get(distance), is_late, builder)
            self.loop(loop, counter, first, last, operations, builder)

    def end(
        self,
        loop: Loop,
        group: _Group,
        shares: list[_Share],
        counter: Value,
        limit: Value | None,
        is_late: bool,
        builder: Builder,
    ) -> None:
        """The addition of an iteration near the end to one neighbour, if the middle has not done it."""

        def add() -> None:
            total, known = self.total(loop, shares, lambda _: counter, builder)
            builder.store(group.array, tuple(known(i) for i in shares[-1].store.indices), total, adds=True)

        if limit is None:
            add()
            return
        condition = builder.apply("greater_equal" if is_late else "less", counter, limit)
        with builder.block() as operations:
            add()
        builder.branch(condition, Block(tuple(operations)), Block(), ())

    def total(
        self, loop: Loop, shares: list[_Share], counter: Callable[[_Share], Value], builder: Builder
    ) -> tuple[Value, Substitution]:
        """The sum of what these iterations add; a substitution for the values of the last one."""
        total: Value | None = None
        for share in shares:
            known = self.computed(share, loop, counter(share), builder)
            amount = known(share.store.value)
            total = amount if total is None else builder.apply("add", total, amount)
        assert total is not None
        return total, known

    def computed(self, share: _Share, loop: Loop, counter: Value, builder: Builder) -> Substitution:
        """Compute what an iteration adds, and where, for a counter; gives a substitution for its values."""
        known: dict[Value, Value] = {}
        if loop.index is not None:
            known[loop.index] = counter
        compute_again(share.operations, known, builder)
        builder.span = share.store.span
        return lambda v: known.get(v, v)

    def shifted(self, builder: Builder, value: Value, amount: int) -> Value:
        return builder.apply("add", value, builder.const(amount))

    def loop(
        self, loop: Loop, counter: Value, start: Value, stop: Value, operations: list[Operation], builder: Builder
    ) -> None:
        one = builder.const(1)
        body = Block(tuple(operations))
        builder.add(Loop(counter, (start, stop, one), (), (), None, body, (), span=loop.span))


def compute_again(operations: Iterable[Operation], known: dict[Value, Value], builder: Builder) -> None:
    """Write plain operations once more, for other values; `known` maps old values to new ones and is added to."""
    for operation in operations:
        if isinstance(operation, If):
            builder.add(cloned(operation, known))
            continue
        operation = operation.replaced(lambda v: known.get(v, v))
        builder.span = operation.span
        match operation:
            case Apply():
                known[operation.out] = builder.apply(operation.primitive, *operation.args, name=operation.out.name)
            case Const():
                known[operation.out] = builder.const(operation.value, operation.out.scalar)
            case Load() | Dim():
                known[operation.out] = Value(operation.out.type, operation.out.name)
                builder.add(replace(operation, out=known[operation.out]))


def _with_inner(operations: Iterable[Operation]) -> list[Operation]:
    """The operations, and those inside of their blocks."""
    return [o for outer in operations for o in (outer, *(x for b in outer.blocks() for x in walk(b)))]
