"""Loop-invariant code motion out of branches: functions of values that no iteration changes are computed before it.

for i in range(n):                           if 0 < n and 2 < len(p):
    if ok[i]:                                    c = np.exp(p[2])
        s = np.exp(p[2]) * s + x[i]          else:
                                      =>         c = 0.0
                                             for i in range(n):
                                                 if ok[i]:
                                                     if len(p) <= 2:
                                                         raise IndexError("index 2 is out of bounds for axis 0")
                                                     s = c * s + x[i]

This runs before differentiation, so the derivative leaves the loop, too. Nothing that moves can raise: functions of
NumPy return infinity or NaN, and nobody reads them if no iteration takes the branch. Their adjoints are zero then, and
zero times anything is zero. An element may not exist if no iteration takes the branch, so it is loaded only if it does,
and the branch still raises if it does not. The iterations of a loop that only adds up may run in any order; there the
test would cost more than it gains, and only what needs no test moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from srcdiff.analyses.access_relations import exists, runs
from srcdiff.analyses.dependence import dependence_of
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Comment,
    Const,
    Function,
    If,
    Load,
    Loop,
    Operation,
    Raise,
    References,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import is_inexact, zero_of
from srcdiff.ir.words import words_for
from srcdiff.quick_dataclasses import dataclass

_QUIET = frozenset({"add", "subtract", "multiply", "negative", "positive", "float", "float64", "absolute"})
"""Operators and conversions that never raise. NumPy's functions do not raise either."""

_Place = tuple[Value, int, int]
"""An array, an axis, and an index along it that may be out of range."""


def hoist_from_branches(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with invariants of branches before their loops; values in `stay` are not moved."""
    branches = (o for loop in walk(function.body) if isinstance(loop, Loop) for o in loop.body.operations)
    if not any(isinstance(o, If) for o in branches):
        return function
    return changed(function, body=_Branches(function, set(stay)).block(function.body))


@dataclass(slots=True)
class _Found:
    """The invariants of a loop."""

    values: dict[Value, Apply | Load | Const] = field(default_factory=dict)
    """The operations that can be computed before the loop, in text order."""
    places: dict[Value, list[_Place]] = field(default_factory=dict)
    """The elements that a value depends on and that may not exist."""
    wanted: list[Apply] = field(default_factory=list)
    """The expensive operations in branches."""


class _Branches:
    def __init__(self, function: Function, stay: set[Value]) -> None:
        self.function, self.stay = function, stay
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = dict(points_to(function))

    def block(self, block: Block) -> Block:
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        for operation in block.operations:
            inner = operation.rebuilt(self.block)
            if isinstance(operation, Loop):
                assert isinstance(inner, Loop)
                inner = self.loop(operation, inner, builder)
            builder.add(inner)
        return changed(block, operations=tuple(builder.operations))

    def loop(self, written: Loop, loop: Loop, builder: Builder) -> Loop:
        """The loop without its invariants, which are computed before it. `written` is the original loop."""
        if loop.test is not None or loop.bounds is None:
            return loop
        found = self.invariants(written)
        if any(found.places[o.out] for o in found.wanted) and self.adds_up(written):
            found.wanted = [o for o in found.wanted if not found.places[o.out]]
        if not found.wanted:
            return loop
        always = runs(written, self.structure)
        condition = None if always else self.has_iterations(loop, builder)
        if not always and condition is None:
            return loop
        known: dict[Value, Value] = {}
        for places in sorted({tuple(found.places[o.out]): None for o in found.wanted}, key=len):
            asked = [*([] if condition is None else [condition]), *(self.is_inside(p, builder) for p in places)]
            self.compute(found, places, asked, known, builder)
        body = _without(loop.body, {o: found.places[o.out] for o in found.wanted})
        return replace(loop, body=substituted(body, lambda v: known.get(v, v)))

    def adds_up(self, loop: Loop) -> bool:
        """Whether the loop only carries sums."""
        dependence = dependence_of(self.function)
        return all(dependence.is_sum(loop, k) for k in range(len(loop.params)))

    # -- selection ---------------------------------------------------------------------------------------------------

    def invariants(self, loop: Loop) -> _Found:
        found = _Found()
        made = {*loop.inner(), *(v for o in walk(loop.body) for v in (*o.defines(), *o.inner()))}
        self.visit(loop.body, loop, made, written_sites(loop.body, self.sites), found)
        return found

    def visit(self, block: Block, loop: Loop, made: set[Value], written: set[Value], found: _Found) -> None:
        reached = block is loop.body
        for operation in block.operations:
            if isinstance(operation, If):
                for inner in operation.blocks():
                    self.visit(inner, loop, made, written, found)
            reached = reached and isinstance(operation, Apply | Const | Load | References | Comment)
            if isinstance(operation, Apply | Load | Const) and self.is_invariant(operation, made, written, found):
                places = [place for v in operation.uses() for place in found.places.get(v, ())]
                if isinstance(operation, Load) and not reached:
                    places += self.doubtful(operation, block)
                found.values[operation.out], found.places[operation.out] = operation, list(dict.fromkeys(places))
                if block is not loop.body and isinstance(operation, Apply) and _takes_long(operation):
                    found.wanted.append(operation)

    def is_invariant(
        self, operation: Apply | Load | Const, made: set[Value], written: set[Value], found: _Found
    ) -> bool:
        """Whether it may run before the loop, with the same result."""
        if operation.out in self.stay or not all(v not in made or v in found.values for v in operation.uses()):
            return False
        if isinstance(operation, Apply):
            return is_inexact(operation.out.type) and _is_quiet(operation)
        if isinstance(operation, Load):
            memory = self.sites.get(operation.array, frozenset((operation.array,)))
            numbers = [self.structure.constants.get(i) for i in operation.indices]
            return memory.isdisjoint(written) and all(type(n) is int for n in numbers)
        return True

    def doubtful(self, load: Load, block: Block) -> list[_Place]:
        """The indices that may be out of range."""
        if exists(load.array, load.indices, self.structure, block):
            return []
        numbers = [self.structure.constants[i] for i in load.indices]
        return [(load.array, axis, n) for axis, n in enumerate(numbers) if isinstance(n, int)]

    # -- writing -----------------------------------------------------------------------------------------------------

    def has_iterations(self, loop: Loop, builder: Builder) -> Value | None:
        assert loop.bounds is not None
        start, stop, step = loop.bounds
        known = self.structure.constants.get(step)
        if not isinstance(known, int) or known == 0:
            return None
        return builder.apply("less" if known > 0 else "greater", start, stop)

    def is_inside(self, place: _Place, builder: Builder) -> Value:
        array, axis, index = place
        length = builder.dim(array, axis)
        if index >= 0:
            return builder.apply("less", builder.const(index), length)
        return builder.apply("less_equal", builder.const(-index), length)

    def compute(
        self,
        found: _Found,
        places: tuple[_Place, ...],
        asked: list[Value],
        known: dict[Value, Value],
        builder: Builder,
    ) -> None:
        """Compute the values that need these elements, if all conditions hold. `known` are values before the loop."""
        wanted = [o.out for o in found.wanted if tuple(found.places[o.out]) == places]
        there = {v: known[v] for v in known if set(found.places[v]) <= set(places)}
        needed, chain = set(wanted), list[Operation]()
        for value, operation in reversed(found.values.items()):
            if value in needed and value not in there:
                needed.update(operation.uses())
                chain.insert(0, operation)
        if not asked:
            known |= _copied(chain, wanted, there, builder)
            return
        condition = asked[0]
        for other in asked[1:]:
            condition = builder.apply("logical_and", condition, other)
        with builder.block() as inside:
            inner = _copied(chain, wanted, there, builder)
        with builder.block() as otherwise:
            nothing = [builder.const(zero_of(v.scalar), v.scalar) for v in wanted]
        known |= {v: Value(v.type, words_for(v, self.structure.definition.get)) for v in wanted}
        then = Block(tuple(inside), tuple([inner[v] for v in wanted]))
        builder.branch(condition, then, Block(tuple(otherwise), tuple(nothing)), tuple([known[v] for v in wanted]))


def _copied(
    chain: list[Operation], wanted: list[Value], there: dict[Value, Value], builder: Builder
) -> dict[Value, Value]:
    """The required values, computed by copies of the operations."""
    made = dict(there)
    for operation in chain:
        builder.add(cloned(operation, made))
    return {v: made[v] for v in wanted}


def _is_quiet(operation: Apply) -> bool:
    return operation.primitive in _QUIET or PRIMITIVES[operation.primitive].spelling.startswith("np.")


def _takes_long(operation: Apply) -> bool:
    return not PRIMITIVES[operation.primitive].cheap


def _without(block: Block, moved: dict[Apply, list[_Place]]) -> Block:
    """The block without the moved operations. If elements that they need do not exist, it raises in their place."""
    builder = Builder()
    checked = set[_Place]()
    for operation in block.operations:
        if isinstance(operation, Apply) and operation in moved:
            for place in (p for p in moved[operation] if p not in checked):
                checked.add(place)
                _check(place, operation, builder)
        else:
            builder.add(operation.rebuilt(lambda inner: _without(inner, moved)))
    return changed(block, operations=tuple(builder.operations))


def _check(place: _Place, operation: Apply, builder: Builder) -> None:
    array, axis, index = place
    length = builder.dim(array, axis)
    if index >= 0:
        outside = builder.apply("less_equal", length, builder.const(index))
    else:
        outside = builder.apply("less", length, builder.const(-index))
    text = f"index {index} is out of bounds for axis {axis}"
    raised = Raise(IndexError, (text,), span=operation.span)
    builder.branch(outside, Block((raised,)), Block(), ())
