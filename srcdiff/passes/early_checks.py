"""Early checks: checks of lengths move before the loops that repeat them, and their result is known after them.

    for i in range(len(points)):                  if 0 < len(points) and points.shape[1] != 3:
        u = points[i] * w                             raise ValueError(...)
        if points.shape[1] != 3:           =>     for i in range(len(points)):
            raise ValueError(...)                     u = points[i] * w          # which has three elements
        total += u[0] * u[1]                          total += u[0] * u[1]

A check moves over operations without visible effects, but not over another check, an output or a call, so the program
raises the same error as before. Loops without checks can be fused with those of the other sweep, and an array of known
length can become scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewAxis,
    Operation,
    Raise,
    References,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    changed,
    substituted,
    values_in,
    walk,
    with_values,
)
from srcdiff.ir.types import INT
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.product_loops import PRODUCTS
from srcdiff.passes.simplify import simplify

_UNSEEN = (Alloc, Apply, Const, Copy, Dim, Load, References)
"""Operations without visible effects if an error is raised after them."""
_COMPARISONS = {"not_equal", "equal", "less", "less_equal", "greater", "greater_equal"}
_PLAIN = {*_COMPARISONS, "logical_and", "logical_or", "logical_not", "add", "subtract", "minimum", "maximum"}
"""The operations that conditions about lengths consist of."""

Available = Callable[[Value], bool]


def check_early(function: Function, alone: Iterable[Value]) -> Function:
    """The function with checks of lengths as early as they can be."""
    if not any(_is_check(o) for o in walk(function.body)):
        return function
    checks = _Checks(function)
    body = checks.block(function.body)
    if not checks.moved:
        return function
    return simplify(eliminate_common_subexpressions(changed(function, body=body), alone))


def _is_check(operation: Operation) -> bool:
    """Whether it is an `if` that does nothing but raise an error."""
    if not isinstance(operation, If) or operation.outs or operation.orelse.operations:
        return False
    *before, last = operation.then.operations or (operation,)
    return isinstance(last, Raise) and all(isinstance(o, Const | Dim | Apply) for o in before)


class _Checks:
    def __init__(self, function: Function) -> None:
        operations = walk(function.body)
        self.definition: dict[Value, Operation] = {v: o for o in operations for v in o.defines()}
        self.constants = {o.out: o.value for o in operations if isinstance(o, Const)}
        self.sites, self.given = points_to(function), frozenset(function.params)
        self.copied: dict[Value, Value] = {}
        """Rewritten conditions, with their originals."""
        self.moved = False

    def block(self, block: Block) -> Block:
        """The block with its checks early, and with those of its loops before these."""
        operations: list[Operation] = []
        first = 0  # no check comes before this place
        for written in block.operations:
            operation = written.rebuilt(self.block)
            if isinstance(operation, Loop):
                found, operation = self.out_of(operation)
                for *before, check in found:
                    operations += before
                    first = self.insert(check, operations, first)
            if isinstance(operation, If) and _is_check(operation):
                first = self.insert(operation, operations, first)
                continue
            operations.append(operation)
            if not self.is_unseen(operation):
                first = len(operations)
        return self.with_facts(changed(block, operations=tuple(operations)))

    def is_unseen(self, operation: Operation) -> bool:
        if operation.blocks():
            return isinstance(operation, If | Loop) and all(
                self.is_unseen(o) for b in operation.blocks() for o in b.operations
            )
        if isinstance(operation, Store):
            return not self.sites.get(operation.array, self.given) & self.given
        if isinstance(operation, Library):
            return operation.function in PRODUCTS  # others raise errors of their own
        return isinstance(operation, _UNSEEN)

    # -- places for checks ------------------------------------------------------------------------------------------

    def insert(self, check: Operation, operations: list[Operation], first: int) -> int:
        """Insert a check into a list of operations, as early as possible; return the place after it."""
        assert isinstance(check, If)
        places = {v: k for k, o in enumerate(operations) for v in o.defines()}
        asked = (check.condition, *values_in(_raised(check).parts))
        place = max(first, *(self.earliest(v, places) for v in asked))
        if all(isinstance(o, Const | Dim | Apply | References | Load) for o in operations[place:]):
            operations.append(check)
            return len(operations)
        made = self.written(check, lambda v: places.get(v, -1) < place)
        if made is None:
            operations.append(check)
            return len(operations)
        self.moved = True
        operations[place:place] = made
        return place + len(made)

    def earliest(self, value: Value, places: dict[Value, int]) -> int:
        """The first place at which a value can be computed: after its operands."""
        if value not in places:
            return 0
        match self.definition.get(value):
            case Const():
                return 0
            case Apply(primitive=primitive, args=args) if primitive in _PLAIN:
                return max(self.earliest(a, places) for a in args)
            case Dim(array=array):
                return places.get(array, -1) + 1
        return places[value] + 1

    # -- out of loops ------------------------------------------------------------------------------------------------

    def out_of(self, loop: Loop) -> tuple[list[list[Operation]], Loop]:
        """The checks with which every iteration of a loop begins and that are the same in all of them; the rest."""
        condition = self.runs(loop)
        if condition is None:
            return [], loop
        inside = {v for o in (loop, *walk(loop.body)) for v in (*o.inner(), *o.defines())}
        found: list[list[Operation]] = []
        rest: list[Operation] = []
        for k, operation in enumerate(loop.body.operations):
            made = None
            if isinstance(operation, If) and _is_check(operation):
                made = self.written(operation, lambda v: v not in inside, condition)
            if made is not None:
                found.append(made)
            elif self.is_unseen(operation):
                rest.append(operation)
            else:
                rest += loop.body.operations[k:]
                break
        if not found:
            return [], loop
        self.moved = True
        return found, replace(loop, body=replace(loop.body, operations=tuple(rest)))

    def runs(self, loop: Loop) -> tuple[str, Value, Value] | None:
        """The condition under which a loop has a first iteration, which begins with its body."""
        if loop.bounds is None or loop.test is not None:
            return None
        start, stop, step = loop.bounds
        known = self.constants.get(step)
        if not isinstance(known, int) or known == 0:
            return None
        return ("less" if known > 0 else "greater"), start, stop

    # -- the same check somewhere else -------------------------------------------------------------------------------

    def written(
        self, check: If, available: Available, also: tuple[str, Value, Value] | None = None
    ) -> list[Operation] | None:
        """A check in terms of the available values, if possible, and the operations before it."""
        build = _Formula(self.definition, self.constants, available)
        raised = _raised(check)
        try:
            condition = build.value(check.condition)
            known = {v: build.value(v) for v in values_in(raised.parts)}
        except _NotThereError:
            return None
        self.copied[condition] = self.copied.get(check.condition, check.condition)
        if also is not None:
            condition = build.apply("logical_and", build.apply(*also), condition)
        raised = replace(raised, parts=with_values(raised.parts, lambda v: known.get(v, v)))
        build.add(replace(check, condition=condition, then=Block((raised,))))
        self.definition |= {v: o for o in build.operations for v in o.defines()}
        self.constants |= build.constants
        return build.operations

    # -- facts after a check ----------------------------------------------------------------------------------------

    def with_facts(self, block: Block) -> Block:
        """Behind a check that two lengths are the same, there is one of them, a constant if that is known."""
        known: dict[Value, Value] = {}
        refuted: set[Value] = set()

        def now(value: Value) -> Value:
            while value in known:
                value = known[value]
            return value

        def is_refuted(condition: Value) -> bool:
            condition = self.copied.get(condition, condition)
            match self.definition.get(condition):
                case Apply(primitive="logical_or", args=args) if all(is_refuted(a) for a in args):
                    return True
                case Apply(primitive="not_equal", args=(one, other)) if now(one) is now(other):
                    return True
            return condition in refuted

        operations: list[Operation] = []
        for operation in block.operations:
            if known:
                operation = operation.replaced(now).rebuilt(lambda inner: substituted(inner, now))
            if isinstance(operation, If) and _is_check(operation):
                if is_refuted(operation.condition):
                    continue
                for here, written in self.parts(operation.condition, self.copied.get(operation.condition)):
                    refuted |= {here, written}
                    self.learn(here, written, known, now)
            operations.append(operation)
        self.moved = self.moved or bool(known)
        return changed(block, operations=tuple(operations), yields=tuple([now(v) for v in block.yields]))

    def parts(self, here: Value, written: Value | None) -> list[tuple[Value, Value]]:
        """The conditions that do not hold if one does not, each as it is here and as it was written."""
        written = here if written is None else written
        match self.definition.get(here), self.definition.get(written):
            case Apply(primitive="logical_or", args=ours), Apply(primitive="logical_or", args=theirs):
                return [(here, written), *(p for a, b in zip(ours, theirs, strict=True) for p in self.parts(a, b))]
        return [(here, written)]

    def learn(self, here: Value, written: Value, known: dict[Value, Value], now: Callable[[Value], Value]) -> None:
        """Record which integers are equal because a condition does not hold."""
        match self.definition.get(here), self.definition.get(written):
            case Apply(primitive="not_equal", args=(a, b)), Apply(primitive="not_equal", args=(c, d)) if a.type == INT:
                one, other = (a, b) if b in self.constants or a not in self.constants else (b, a)
                other = now(other)
                for same in (one, *(v for v in (c, d) if v not in self.constants)):
                    same = now(same)
                    if same is not other and same not in self.constants:
                        known[same] = other


def _raised(check: If) -> Raise:
    raised = check.then.operations[-1]
    assert isinstance(raised, Raise)
    return raised


class _NotThereError(Exception):
    """A value that cannot be had at a place."""


class _Formula(Builder):
    """Writes integers and conditions about lengths again, from values that are available."""

    def __init__(
        self, definition: dict[Value, Operation], constants: dict[Value, object], available: Available
    ) -> None:
        super().__init__()
        self.definition, self.available = definition, available
        self.constants = dict(constants)

    def value(self, value: Value) -> Value:
        operation = self.definition.get(value)
        match operation:
            case Const():
                return self.const(operation.value, value.scalar)
            case _ if self.available(value):
                return value
            case Apply(primitive=primitive, args=args) if primitive in _PLAIN:
                return self.apply(primitive, *[self.value(a) for a in args])
            case Dim(array=array, axis=axis):
                return self.length(array, axis)
        raise _NotThereError

    def length(self, array: Value, axis: int) -> Value:
        """The length of an axis, by where the array comes from."""
        if self.available(array):
            return self.dim(array, axis)
        match self.definition.get(array):
            case Alloc(like=None, shape=shape):
                return self.value(shape[axis])
            case Alloc(like=Value() as source) | Copy(array=source):
                return self.length(source, axis)
            case Transpose(array=source, axes=axes):
                return self.length(source, axes[axis])
            case View() as view:
                return self.length_of_view(view, axis)
        raise _NotThereError

    def length_of_view(self, view: View, axis: int) -> Value:
        own = base = 0
        for item in view.items:
            if isinstance(item, Index):
                base += 1
            elif own == axis:
                return self.const(1) if isinstance(item, NewAxis) else self.length_of_slice(item, view.array, base)
            else:
                own, base = own + 1, base + isinstance(item, Slice)
        return self.length(view.array, base + axis - own)

    def length_of_slice(self, item: Slice, array: Value, axis: int) -> Value:
        """The length of a slice with constant bounds, for a known length of the axis."""
        whole = self.length(array, axis)
        start, stop = (None if p is None else self.constants.get(p) for p in (item.start, item.stop))
        is_known = all(isinstance(self.constants.get(p), int) for p in item.parts())
        if item.step is not None or not is_known or (start or 0) < 0 or (stop is not None and stop < (start or 0)):
            raise _NotThereError
        end = whole if stop is None else self.apply("minimum", whole, self.const(stop))
        return end if not start else self.apply("subtract", end, self.apply("minimum", whole, self.const(start)))
