"""Carried elements: an element that one iteration stores and the next one loads is carried in a scalar.

for j in range(n, 0, -1):                    a_j = a[n]
    t = 0.25 * a[j]                          for j in range(n, 0, -1):
    a[j] = 0.0                       =>          t = 0.25 * a_j
    b[j] += t                                    a[j] = 0.0
    a[j - 1] += t                                b[j] += t
                                                 a_j = a[j - 1] + t
                                             a[0] = a_j

The adjoint of a recurrence over an array is such a loop. The iterations depend on each other; through memory, the
latency is twice as long. If the next iteration stores to the element anyway, as here, only the element of the last
iteration is stored, after the loop; otherwise each store remains.

No other access may touch the element in either iteration (decided by isl). A loop without iterations must not touch it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from srcdiff.analyses.access_relations import Affine, affine, exists, never_in_one_iteration, runs
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Comment,
    Const,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import element_type, is_kept_by
from srcdiff.ir.words import element as element_name
from srcdiff.ir.words import own_name
from srcdiff.quick_dataclasses import dataclass

Access = Load | Store
_HARMLESS = (Load, Store, Apply, Const, Dim, Alloc, Comment, If, Loop, References)
_FEW = 2
"""So many terms of a sum LLVM leaves in their order. Of more, it adds the carried number first, and all that follows
waits for it: such a loop is faster through memory."""


def carry_elements(function: Function) -> Function:
    """In loops of one step up or down, from the innermost outwards."""
    carrying = _Carrying(function)
    return changed(function, body=carrying.block(function.body))


@dataclass(frozen=True, eq=False, slots=True)
class _Carried:
    """An element of each iteration, and of the next one."""

    array: Value
    current: tuple[Access, ...]
    following: tuple[Access, ...]

    @property
    def indices(self) -> tuple[Value, ...]:
        return self.current[0].indices

    @property
    def is_overwritten(self) -> bool:
        """Whether every iteration stores to its element, whatever the one before has stored there."""
        return any(isinstance(a, Store) and not a.adds for a in self.current)


class _Carrying:
    def __init__(self, function: Function) -> None:
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            inner = operation.rebuilt(self.block)
            if inner is operation and isinstance(operation, Loop):
                self.loop(operation, block, operations)
            else:
                operations.append(inner)
        return changed(block, operations=tuple(operations))

    def loop(self, loop: Loop, block: Block, into: list[Operation]) -> None:
        """Write the loop, with an element that is a number between iterations if there is one."""
        carried = next(self.carried(loop), None)
        if carried is None:
            into.append(loop)
            return
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        if runs(loop, self.structure) or self.is_harmless_without_iterations(carried, loop, block):
            builder.operations = into
            self.rewrite(loop, loop.outs, carried, builder)
            return
        assert loop.bounds is not None
        start, stop, step = loop.bounds
        inside = tuple(Value(v.type, v.name) for v in loop.outs)
        self.rewrite(loop, inside, carried, builder)
        then, builder.operations = Block(tuple(builder.operations), inside), into
        condition = builder.apply("less" if self.structure.constants[step] == 1 else "greater", start, stop)
        builder.branch(condition, then, Block((), loop.inits), loop.outs)

    def is_harmless_without_iterations(self, carried: _Carried, loop: Loop, block: Block) -> bool:
        """Whether the first element can be loaded and nothing stored if the loop has no iterations."""
        assert loop.bounds is not None
        first = [loop.bounds[0] if i is loop.index else i for i in carried.indices]
        if carried.is_overwritten or not all(self.is_outside(i, loop) for i in first):
            return False
        return exists(carried.array, first, self.structure, block)

    # -- which elements ----------------------------------------------------------------------------------------------

    def carried(self, loop: Loop) -> Iterator[_Carried]:
        """Elements that an iteration passes to the next one through memory."""
        step = self.structure.constants.get(loop.bounds[2]) if loop.bounds is not None else None
        if not isinstance(step, int) or abs(step) != 1 or not loop.counted or loop.count is not None or loop.threads:
            return
        groups: dict[tuple[Value, tuple[Affine, ...]], list[Access]] = {}
        for operation in loop.body.operations:
            if isinstance(operation, Load | Store) and self.is_outside(operation.array, loop):
                known = tuple(p for p in (self.place(i, loop) for i in operation.indices) if p is not None)
                if len(known) == len(operation.indices):
                    groups.setdefault((operation.array, known), []).append(operation)
        for (array, places), current in groups.items():
            further = tuple(_ordered(p.plus(Affine(step * _slope(p, loop)))) for p in places)
            following = groups.get((array, further), [])
            if further != places and any(isinstance(a, Load) for a in current):
                found = _Carried(array, tuple(current), tuple(following))
                if self.is_worthwhile(found) and self.is_alone(found, loop):
                    yield found

    def place(self, index: Value, loop: Loop) -> Affine | None:
        """An index that can be computed for any iteration, in front of the loop and behind it."""
        found = affine(index, self.structure)
        return _ordered(found) if found is not None and self.is_computable(index, loop) else None

    def is_computable(self, value: Value, loop: Loop) -> bool:
        if value is loop.index or value in self.structure.constants or self.is_outside(value, loop):
            return True
        operation = self.structure.definition.get(value)
        return isinstance(operation, Apply) and all(self.is_computable(a, loop) for a in operation.args)

    def is_outside(self, value: Value, loop: Loop) -> bool:
        return loop not in self.structure.loops_around(self.structure.home.get(value, self.structure.top))

    def is_worthwhile(self, carried: _Carried) -> bool:
        """Whether the element of the next iteration is stored, and is not accumulated before that."""
        stores = [a for a in (*carried.following, *carried.current) if isinstance(a, Store)]
        following = [a for a in stores if a in carried.following]
        if not following or not all(is_kept_by(carried.array.array, a.value.scalar) for a in stores):
            return False
        return all(a.adds or self.terms(a.value) <= _FEW for a in following)

    def terms(self, value: Value) -> int:
        """How many numbers a value is the sum of, under products that LLVM may multiply out."""
        operation = self.structure.definition.get(value)
        if not isinstance(operation, Apply):
            return 1
        if operation.primitive in ("add", "subtract"):
            return sum(self.terms(a) for a in operation.args)
        if operation.primitive in ("multiply", "divide", "negative"):
            return max(self.terms(a) for a in operation.args)
        return 1

    def is_alone(self, carried: _Carried, loop: Loop) -> bool:
        """Whether nothing else touches the element in the two iterations."""
        own = {*carried.current, *carried.following}
        mine = self.memory(carried.array)
        others: list[Access] = []
        for operation in (o for b in loop.blocks() for o in walk(b)):
            if isinstance(operation, Load | Store):
                if operation not in own and self.memory(operation.array) & mine:
                    others.append(operation)
            elif not isinstance(operation, _HARMLESS):
                return False
        elements = (carried.current[0], carried.following[0])
        pairs = [elements, *((a, element) for a in others for element in elements)]
        return all(never_in_one_iteration(loop, a, b, self.structure) for a, b in pairs)

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    # -- the loop ----------------------------------------------------------------------------------------------------

    def rewrite(self, loop: Loop, outs: tuple[Value, ...], carried: _Carried, builder: Builder) -> None:
        """The loop with the element in a scalar, and the operations before and after it."""
        assert loop.bounds is not None
        start, stop, _ = loop.bounds
        array, type_ = carried.array, element_type(carried.array.array)
        name = element_name(array.name, [own_name(i) for i in carried.indices]) or array.name
        init = builder.load(array, tuple(self.at(start, i, loop, builder) for i in carried.indices), name=name)
        param, out = Value(type_, name), Value(type_, name)
        body = self.body(loop, carried, param, builder)
        params, inits = (*loop.params, param), (*loop.inits, init)
        builder.add(replace(loop, params=params, inits=inits, body=body, outs=(*outs, out)))
        if carried.is_overwritten:
            builder.store(array, tuple(self.at(stop, i, loop, builder) for i in carried.indices), out)

    def body(self, loop: Loop, carried: _Carried, param: Value, builder: Builder) -> Block:
        current, following = param, None
        known: dict[Value, Value] = {}

        def now(value: Value) -> Value:
            return known.get(value, value)

        with builder.block() as operations:
            for operation in loop.body.operations:
                builder.span = operation.span
                if not isinstance(operation, Load | Store) or operation not in (*carried.current, *carried.following):
                    operations.append(operation.replaced(now).rebuilt(lambda block: substituted(block, now)))
                    continue
                is_current = operation in carried.current
                before = current if is_current else following
                indices = tuple(now(i) for i in operation.indices)
                if before is None and (isinstance(operation, Load) or operation.adds):
                    before = builder.load(carried.array, indices)
                if isinstance(operation, Load):
                    assert before is not None
                    known[operation.out] = after = before
                else:
                    value = now(operation.value)
                    after = builder.apply("add", before, value) if operation.adds and before is not None else value
                    if is_current or not carried.is_overwritten:
                        builder.store(carried.array, indices, after)
                current, following = (after, following) if is_current else (current, after)
            builder.span = None
        assert following is not None
        return Block(tuple(operations), (*(now(v) for v in loop.body.yields), following))

    def at(self, place: Value, index: Value, loop: Loop, builder: Builder) -> Value:
        """An index as it is where the loop's counter is at some place."""
        if index is loop.index:
            return place
        if index in self.structure.constants:
            return builder.const(self.structure.constants[index], index.scalar)
        if self.is_outside(index, loop):
            return index
        operation = self.structure.definition[index]
        assert isinstance(operation, Apply)
        return builder.apply(operation.primitive, *(self.at(place, a, loop, builder) for a in operation.args))


def _slope(place: Affine, loop: Loop) -> int:
    """By how much an index grows with the loop's counter."""
    return next((count for value, count in place.terms if value is loop.index), 0)


def _ordered(place: Affine) -> Affine:
    """The same, with terms in an order that does not depend on how it was written."""
    return Affine(place.constant, tuple(sorted(place.terms, key=lambda term: id(term[0]))))
