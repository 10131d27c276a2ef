"""Loop-invariant code motion: values that are the same in every iteration are computed before the loop.

for i in range(n):                           if 0 < n:
    c = np.cos(angle[0])                         c = np.cos(angle[0])
    y[i] = c * x[i]               =>         else:
                                                 c = 0.0
                                             for i in range(n):
                                                 y[i] = c * x[i]

This runs before differentiation, so the derivative leaves the loop, too: iterations add to the adjoint of `c`, and that
of `angle` is computed from it once. If the loop has no iterations, nothing is computed: the element may not exist, and
zero times an infinite derivative is not zero. Plain arithmetic moves only together with expensive operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.analyses.access_relations import runs
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
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
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import BOOL, Scalar, is_inexact, zero_of
from srcdiff.ir.words import words_for

_PURE = (Apply, Const, Dim, Load, References, If, Loop)
"""Operations that can move before a loop."""


def hoist_invariants(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with its invariants before the loops; values in `stay` are not moved."""
    if not any(isinstance(o, Loop) for o in walk(function.body)):
        return function
    return changed(function, body=_Invariants(function, set(stay)).block(function.body))


class _Invariants:
    def __init__(self, function: Function, stay: set[Value]) -> None:
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = dict(points_to(function))
        self.stay = stay
        self.around: list[tuple[set[Value], set[Value]]] = []
        """For each enclosing loop, from the outermost: the values that it defines, and the memory that it writes."""

    def block(self, block: Block) -> Block:
        """The block with the invariants of its loops before these, from the innermost outwards."""
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Loop):
                made = {*operation.inner(), *(v for o in walk(operation.body) for v in (*o.defines(), *o.inner()))}
                self.around.append((made, written_sites(operation.body, self.sites)))
                inner = operation.rebuilt(self.block)
                assert isinstance(inner, Loop)
                inner = self.loop(operation, inner, operations)
                self.around.pop()
            else:
                inner = operation.rebuilt(self.block)
            operations.append(inner)
        return changed(block, operations=tuple(operations))

    def loop(self, written: Loop, loop: Loop, into: list[Operation]) -> Loop:
        """The loop without its invariants, which are computed before it; `written` is the loop as it was."""
        if loop.test is not None:
            return loop
        found = _belonging_together(self.invariants(loop))
        if not found:
            return loop
        always = loop.bounds is None or runs(written, self.structure)
        condition = None if always else self.condition(loop)
        if not always and condition is None:
            return loop
        builder = Builder()
        builder.constants, builder.operations = dict(self.structure.constants), into
        start, known, gone = (
            len(into),
            dict[Value, Value](),
            [o for o in found if not isinstance(o, Const | References)],
        )
        if condition is None:
            self.copies(found, known, builder)
        else:
            for group in self.by_level(gone):
                read = _read(loop, set(group))
                wanted = [v for o in group for v in o.defines() if v in read]
                self.if_it_runs(condition, _with_references(group, found), wanted, known, builder)
        self.note(into[start:])
        known = {v: known[v] for o in gone for v in o.defines() if v in known}
        body = substituted(loop.body, lambda v: known.get(v, v))
        kept = [o for before, o in zip(loop.body.operations, body.operations, strict=True) if before not in gone]
        return replace(loop, body=Block(tuple(kept), body.yields))

    def condition(self, loop: Loop) -> tuple[str, Value, Value] | None:
        """The comparison that tests whether the loop has an iteration."""
        assert loop.bounds is not None
        start, stop, step = loop.bounds
        known = self.structure.constants.get(step)
        if not isinstance(known, int) or known == 0:
            return None
        return "less" if known > 0 else "greater", start, stop

    def note(self, operations: list[Operation]) -> None:
        """Operations are new in the body of the loop around."""
        new = {v for o in walk(Block(tuple(operations))) for v in (*o.defines(), *o.inner())}
        for made, _ in self.around[:-1]:
            made |= new

    # -- which operations --------------------------------------------------------------------------------------------

    def invariants(self, loop: Loop) -> list[Operation]:
        """Operations that every iteration executes with the same result."""
        level, found = len(self.around), list[Operation]()
        for operation in loop.body.operations:
            parts = _parts(operation)
            if not all(self.is_unseen(o) for o in parts):
                break
            own = {v for o in parts for v in o.defines()}
            numbers = isinstance(operation, References) or all(isinstance(v.type, Scalar) for v in operation.defines())
            if numbers and all(isinstance(o, _PURE) for o in parts) and self.stay.isdisjoint(own):
                needed = self.level(operation)
                if needed < level:
                    found.append(operation)
                    for made, _ in self.around[needed:]:
                        made -= own
        return found

    def is_unseen(self, operation: Operation) -> bool:
        """Whether it neither raises nor prints, so that every iteration reaches the operations after it."""
        if isinstance(operation, Alloc):
            definitions = [self.structure.definition.get(v) for v in operation.shape]
            return all(isinstance(d, Dim) or (isinstance(d, Const) and d.value >= 0) for d in definitions)
        return isinstance(operation, (*_PURE, Comment, Copy, Store))

    def level(self, operation: Operation) -> int:
        """The number of enclosing loops that it depends on: they define a value or write an element that it reads."""
        parts = _parts(operation)
        read = _uses(operation).difference(*((*o.defines(), *o.inner()) for o in parts))
        arrays = [self.sites.get(o.array, frozenset((o.array,))) for o in parts if isinstance(o, Load)]
        memory = frozenset[Value]().union(*arrays)
        for level in range(len(self.around), 0, -1):
            made, overwritten = self.around[level - 1]
            if not made.isdisjoint(read) or not memory.isdisjoint(overwritten):
                return level
        return 0

    def by_level(self, operations: list[Operation]) -> list[list[Operation]]:
        """Ordered by the number of loops they depend on, so that operations can leave several loops."""
        groups: dict[int, list[Operation]] = {}
        for operation in operations:
            groups.setdefault(self.level(operation), []).append(operation)
        return [groups[level] for level in sorted(groups)]

    # -- how it is written -------------------------------------------------------------------------------------------

    def copies(self, operations: list[Operation], known: dict[Value, Value], builder: Builder) -> None:
        """Write the operations again; `known` maps values to their replacements and is extended."""
        for operation in operations:
            builder.add(cloned(operation, known))
        self.sites |= {new: self.sites[old] for old, new in known.items() if old in self.sites}

    def if_it_runs(
        self,
        condition: tuple[str, Value, Value],
        operations: list[Operation],
        wanted: list[Value],
        known: dict[Value, Value],
        builder: Builder,
    ) -> None:
        """Compute the wanted values if the loop makes an iteration."""
        asked, inner = builder.apply(*condition), dict(known)
        with builder.block() as inside:
            self.copies(operations, inner, builder)
        with builder.block() as otherwise:
            nothing = [builder.const(_zero(v.scalar), v.scalar) for v in wanted]
        known |= {v: Value(v.type, words_for(v, self.structure.definition.get)) for v in wanted}
        then = Block(tuple(inside), tuple([inner[v] for v in wanted]))
        builder.branch(asked, then, Block(tuple(otherwise), tuple(nothing)), tuple([known[v] for v in wanted]))


def _belonging_together(found: list[Operation]) -> list[Operation]:
    """The worthwhile ones: expensive operations, their operands, and operations on their results."""
    chosen: set[Operation] = set()
    made: set[Value] = set()
    for operation in found:
        if _takes_long(operation) or not made.isdisjoint(_uses(operation)):
            chosen.add(operation)
            made.update(operation.defines())
    needed = {v for o in chosen for v in _uses(o)}
    for operation in reversed(found):
        if operation not in chosen and not needed.isdisjoint(operation.defines()):
            chosen.add(operation)
            needed.update(_uses(operation))
    return [o for o in found if o in chosen]


def _with_references(group: list[Operation], found: list[Operation]) -> list[Operation]:
    """The operations with the constants and views that they need, in order of text."""
    needed = {v for o in group for v in _uses(o)}
    chosen = set(group)
    for operation in reversed(found):
        if isinstance(operation, Const | References) and not needed.isdisjoint(operation.defines()):
            chosen.add(operation)
            needed.update(operation.uses())
    return [o for o in found if o in chosen]


def _parts(operation: Operation) -> list[Operation]:
    """The operation and those inside its blocks."""
    return [operation, *(o for b in operation.blocks() for o in walk(b))]


def _takes_long(operation: Operation) -> bool:
    return any(
        isinstance(o, Loop) or (isinstance(o, Apply) and is_inexact(o.out.type) and not PRIMITIVES[o.primitive].cheap)
        for o in _parts(operation)
    )


def _uses(operation: Operation) -> set[Value]:
    """The values that an operation needs, inside its blocks too."""
    found = set(operation.uses())
    for block in operation.blocks():
        found.update(block.yields)
        for inner in block.operations:
            found |= _uses(inner)
    return found


def _read(loop: Loop, moved: set[Operation]) -> set[Value]:
    """The values that the loop still needs after the operations have left it."""
    found = set(loop.body.yields)
    for operation in loop.body.operations:
        if operation not in moved:
            found |= _uses(operation)
    return found


def _zero(type_: Scalar) -> complex | bool:
    return zero_of(type_) if is_inexact(type_) else False if type_ == BOOL else 0
