"""Work that is skipped where a number is exactly zero is differentiated there, too.

    if v != 0.0:                        s += v * w      (zero, if `v` is, whatever `w` is)
        s += v * w            =>

Where the program tests a number for equality with a constant, and both sides of the branch have the same results and
leave the same in memory if the numbers are equal, the test only saves work. Its derivative there would be that of the
side that runs, which lacks `w`. The function does not need the test: its derivative is that of the other side.

The other side must not fail where it did not run. Indices are checked to be inside their arrays, and products with what
is not finite stay zero. Where an index is outside, the side runs that the program has chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from srcdiff.analyses.activity import Activity, activity, varied_values
from srcdiff.analyses.equality_tests import EQUALITIES, changes_active
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder, folded_constant
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
    Load,
    Loop,
    NewAxis,
    Operation,
    Raise,
    Slice,
    Store,
    Value,
    View,
    changed,
    use_counts,
    walk,
)
from srcdiff.ir.types import BOOL, Scalar, is_float

Form = Any
"""What a value is where the numbers are equal: a constant, a value from outside, or a tuple of a name and forms."""

_KEEP_ZERO = frozenset(
    (
        *("square", "float", "float64", "float32", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh"),
        *("arctanh", "expm1", "log1p", "degrees", "radians", "fabs", "absolute"),
    )
)
"""Functions that are zero at zero, and have a derivative there."""
_MAY_RAISE = frozenset(("divide", "floor_divide", "remainder"))
"""Primitives of floats that raise where they are asked to."""
_SAFE = frozenset(
    (
        *("add", "subtract", "multiply", "negative", "positive", "absolute", "where", "less", "less_equal", "greater"),
        *("greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not", "maximum", "minimum"),
        "isfinite",
    )
)
"""Primitives of integers and booleans that never raise."""


def do_skipped_work(function: Function, inputs: Iterable[Value]) -> Function:
    """The function without the tests that only save work."""
    operations = walk(function.body)
    if not any(isinstance(o, Apply) and o.primitive in EQUALITIES for o in operations):
        return function
    sites, inputs = points_to(function), list(inputs)
    varied = varied_values(function, inputs, sites)
    active = activity(function, inputs, (*function.body.yields, *function.written), sites)
    return changed(function, body=_Rewriter(function.body, varied, active).block(function.body))


Length = Value | tuple[Value, int]
"""The length of an axis: a value, or an array and the axis that it is the length of."""


class _DifferError(Exception):
    """The sides of a branch are not the same where the numbers are equal, or may not be."""


class _Rewriter:
    def __init__(self, body: Block, varied: set[Value], active: Activity) -> None:
        operations = walk(body)
        self.varied, self.active = varied, active
        self.definitions = {v: o for o in operations for v in o.defines()}
        self.loops = {o.index: o for o in operations if isinstance(o, Loop) and o.index is not None}
        self.uses = use_counts(body)
        self.same: dict[Length, Length] = {}
        """Lengths that are equal to others, because the program raises if they are not."""
        self.shorter: set[If] = set()
        """Branches in branches where a test of the inner one is gone."""
        self.dropped: set[Value] = set()
        """The tests that nothing needs any more."""

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        same = dict(self.same)
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            if isinstance(operation, If):
                self.note_equal_lengths(operation)
                nested = self.nested(operation, operations)
                if nested is None:
                    operations += self.without_test(operation, operations)
                else:
                    operations += self.without_tests(operation, nested, operations)
            else:
                operations.append(operation)
        self.same = same
        return changed(block, operations=tuple(self.needed(operations)))

    def needed(self, operations: Iterable[Operation]) -> list[Operation]:
        return [o for o in operations if not (isinstance(o, Apply) and o.out in self.dropped)]

    def note_equal_lengths(self, branch: If) -> None:
        test = self.definitions.get(branch.condition)
        raises = any(isinstance(o, Raise) for o in branch.then.operations) and not branch.orelse.operations
        if raises and isinstance(test, Apply) and test.primitive == "not_equal" and test.out not in self.varied:
            first, second = map(self.resolved, test.args)
            self.same[first] = second

    def nested(self, branch: If, before: Sequence[Operation]) -> If | None:
        """A branch on `a and b`, or on `a or b`, which has just been computed, as branches on `a` and on `b`."""
        then, orelse = branch.then, branch.orelse
        if not before or self.uses[branch.condition] > 1 or before[-1].defines() != (branch.condition,):
            return None
        match before[-1]:
            case Apply(primitive="logical_and", args=(first, second)) if not orelse.operations:
                return self.inside(branch, first, then=((), second))
            case Apply(primitive="logical_or", args=(first, second)) if not then.operations:
                return self.inside(branch, first, orelse=((), second))
            case If(condition=first) as choice:
                (second,), (other,) = choice.then.yields, choice.orelse.yields
                if self.is_known(other, first, False) and not choice.orelse.operations and not orelse.operations:
                    return self.inside(branch, first, then=(choice.then.operations, second))
                if self.is_known(second, first, True) and not choice.then.operations and not then.operations:
                    return self.inside(branch, first, orelse=(choice.orelse.operations, other))
        return None

    def is_known(self, value: Value, condition: Value, truth: bool) -> bool:
        """Whether a value is this truth value where the condition is."""
        definition = self.definitions.get(value)
        return value is condition or (isinstance(definition, Const) and definition.value is truth)

    def inside(
        self,
        branch: If,
        condition: Value,
        then: tuple[Sequence[Operation], Value] | None = None,
        orelse: tuple[Sequence[Operation], Value] | None = None,
    ) -> If:
        """The branch on one condition, with a branch on the other one in one side."""
        operations, second = then or orelse or ((), condition)
        outs = tuple([Value(out.type, out.name) for out in branch.outs])
        inner = self.without_test(changed(branch, condition=second, outs=outs), operations, branch)
        side = Block((*self.needed(operations), *inner), outs)
        nested = changed(branch, condition=condition, **{"then" if then else "orelse": side})
        if len(inner) > 1:
            self.shorter.add(nested)
        return nested

    def without_tests(self, branch: If, nested: If, before: list[Operation]) -> Sequence[Operation]:
        """Two branches in place of one, if that takes a test away."""
        made = self.without_test(nested, before)
        if made == [nested] and nested not in self.shorter:
            return [branch]
        choice = before.pop()  # its operations are in the nested branches
        uses = self.uses[nested.condition] - sum(b.yields.count(nested.condition) for b in choice.blocks())
        if made != [nested] and uses == 1:
            self.dropped.add(nested.condition)
        return made

    def without_test(self, branch: If, before: Sequence[Operation], whole: If | None = None) -> Sequence[Operation]:
        """The branch whose other side runs where the numbers are equal, too, if that changes nothing but work.

        It may be a part of a `whole` branch, in whose place it comes.
        """
        test = self.definitions.get(branch.condition)
        if not isinstance(test, Apply) or test.primitive not in EQUALITIES:
            return [branch]
        for number, constant in (test.args, test.args[::-1]):
            known = self.constant(constant)
            if known is None or number not in self.varied or not is_float(number.type):
                continue
            if not changes_active(whole or branch, self.active):
                continue
            equal, differ = branch.then, branch.orelse
            if test.primitive == "not_equal":
                equal, differ = differ, equal
            try:
                made = _Sides(self, number, known, _place_of(number, before)).joined(branch, equal, differ, constant)
            except _DifferError:
                continue
            self.definitions |= {v: o for o in walk(Block(tuple(made))) for v in o.defines()}
            if self.uses[test.out] == 1:
                self.dropped.add(test.out)
            return made
        return [branch]

    def constant(self, value: Value) -> float | None:
        operation = self.definitions.get(value)
        if not isinstance(operation, Const) or isinstance(operation.value, bool | str):
            return None
        return operation.value if isinstance(operation.value, int | float) and math.isfinite(operation.value) else None

    def length(self, array: Value, axis: int) -> Length:
        """The length of an axis as a value, or as the array and the axis that it is the length of."""
        match self.definitions.get(array):
            case Alloc(shape=shape):
                return self.resolved(shape[axis])
            case Copy(array=source):
                return self.length(source, axis)
            case View(array=source, items=items):
                axes = iter(range(source.array.rank))
                kept: list[int | None] = []
                for item in items:
                    at = None if isinstance(item, NewAxis) else next(axes)
                    if not isinstance(item, Index):
                        kept.append(at if isinstance(item, Slice) and not item.parts() else None)
                kept += axes
                inner = kept[axis]
                return (array, axis) if inner is None else self.length(source, inner)
        return self.same.get((array, axis), (array, axis))

    def is_natural(self, value: Value) -> bool:
        """Whether it is surely not negative."""
        loop, known = self.loops.get(value), self.constant(value)
        if loop is not None and loop.bounds is not None:
            return self.is_natural(loop.bounds[0]) and self.is_natural(loop.bounds[2])
        match self.definitions.get(value):
            case Apply(primitive="add" | "multiply", args=args):
                return all(map(self.is_natural, args))
            case Dim():
                return True
        return known is not None and known >= 0

    def resolved(self, value: Value) -> Length:
        operation = self.definitions.get(value)
        return self.length(operation.array, operation.axis) if isinstance(operation, Dim) else value


def _place_of(number: Value, before: Sequence[Operation]) -> tuple[Value, tuple[Value, ...]] | None:
    """The element that a number has just been loaded from, if nothing has been written since."""
    for operation in reversed(before):
        if isinstance(operation, Load) and operation.out is number:
            return operation.array, operation.indices
        if not isinstance(operation, Const | Apply | Load | Dim | View):
            break
    return None


class _Sides:
    """Both sides of a branch, as they are where a number equals a constant."""

    def __init__(
        self, rewriter: _Rewriter, number: Value, known: float, place: tuple[Value, tuple[Value, ...]] | None
    ) -> None:
        self.rewriter, self.number, self.known = rewriter, number, known
        self.forms: dict[Value, Form] = {number: known}
        self.depends = {number}
        """The values that depend on the number."""
        self.inside: set[Value] = set()
        """Those that are computed in the sides."""
        self.place = None if place is None else ("load", place[0], *map(self.form, place[1]))
        self.guard = Builder()
        self.checks: dict[tuple[Any, ...], Value] = {}
        """What must hold for the other side to run."""
        self.differ = Value(BOOL)

    # -- the branch ----------------------------------------------------------------------------------------------------

    def joined(self, branch: If, equal: Block, differ: Block, constant: Value) -> list[Operation]:
        if any(not isinstance(o, Const | Apply | Load | Dim) for o in equal.operations):
            raise _DifferError
        made = self.block(differ)
        checks = list(self.checks.values())
        self.block(equal)
        forms = [(self.form(a), self.form(b)) for a, b in zip(equal.yields, differ.yields, strict=True)]
        if any(a is None or a != b for a, b in forms):
            raise _DifferError
        test = Apply(self.differ, "not_equal", (self.number, constant))
        builder = self.guard
        condition = self.differ if checks else builder.const(True, BOOL)
        if checks:
            inside = checks[0]
            for check in checks[1:]:
                inside = builder.apply("logical_and", inside, check)
            condition = builder.apply("logical_or", self.differ, inside)
        return [test, *builder.operations, If(condition, made, equal, branch.outs, span=branch.span)]

    def block(self, block: Block) -> Block:
        operations = [made for o in block.operations for made in self.operation(o)]
        return changed(block, operations=tuple(operations))

    def form(self, value: Value) -> Form:
        if value in self.forms:
            return self.forms[value]
        constant = self.rewriter.constant(value)
        return value if constant is None else constant

    def operation(self, operation: Operation) -> list[Operation]:
        """What an operation computes; what stands for it."""
        made: list[Operation] = [operation]
        self.inside.update((*operation.defines(), *operation.inner()))
        match operation:
            case Const():
                pass
            case Dim(array=array):
                self.require_free(array)
            case Apply():
                made = self.apply(operation)
            case Load(array=array, indices=indices, out=out):
                place = self.place_in(array, indices)
                self.forms[out] = place
                if place == self.place:
                    self.forms[out] = self.known
                    self.depends.add(out)
            case View(array=array, items=items):
                if any(isinstance(item, Slice) and item.parts() for item in items):
                    raise _DifferError
                axis = 0
                for item in items:
                    if isinstance(item, Index):
                        self.require_inside(array, axis, item.value)
                    axis += not isinstance(item, NewAxis)
                self.require_free(array)
            case Store(array=array, indices=indices, value=value, adds=adds):
                place, form = self.place_in(array, indices), self.form(value)
                if form != 0.0 if adds else form is None or form not in self.contents(place):
                    raise _DifferError
            case If(condition=condition, then=then, orelse=orelse):
                then, orelse = self.block(then), self.block(orelse)
                for out, first, second in zip(operation.outs, then.yields, orelse.yields, strict=True):
                    if any(v in self.depends for v in (condition, first, second)):
                        self.depends.add(out)
                        self.forms[out] = self.form(first) if self.form(first) == self.form(second) else None
                made = [changed(operation, then=then, orelse=orelse)]
            case Loop(params=params, inits=inits, body=body) if operation.counted:
                assert operation.bounds is not None
                self.require_free(*operation.bounds)
                for param, init in zip(params, inits, strict=True):
                    self.forms[param] = self.form(init)
                    self.depends.add(param)
                made = [changed(operation, body=self.block(body))]
                for param, after, out in zip(params, body.yields, operation.outs, strict=True):
                    form = self.form(param)
                    if form is None or self.form(after) != form:
                        raise _DifferError
                    self.forms[out] = form
                    self.depends.add(out)
            case _:
                raise _DifferError
        return made

    # -- numbers -------------------------------------------------------------------------------------------------------

    def apply(self, operation: Apply) -> list[Operation]:
        out, args = operation.out, operation.args
        if not is_float(out.type) and operation.primitive not in _SAFE:
            raise _DifferError
        forms = [self.form(a) for a in args]
        primitive = operation.primitive.removeprefix("strong_")
        found = None if None in forms else _simplified(primitive, forms, out.scalar)
        if not any(a in self.depends for a in args):
            if primitive in _MAY_RAISE and not _is_number(forms[1]):
                return self.zero_unless(operation, args[1])
            self.forms[out] = (primitive, *forms) if found is None else found
            return [operation]
        self.depends.add(out)
        self.forms[out] = found
        if found == 0.0 and primitive in ("multiply", "divide"):
            other = args[1] if forms[0] == 0.0 else args[0]
            if not _is_number(self.form(other)):
                return self.zero_unless(operation, other)
        return [operation]

    def zero_unless(self, operation: Apply, other: Value) -> list[Operation]:
        """The product or quotient, but zero where the numbers are equal and the other one is not finite, or zero."""
        builder = Builder()
        builder.span = operation.span
        if operation.primitive == "multiply" or operation.primitive == "strong_multiply":
            usual = builder.apply("isfinite", other)
        else:
            usual = builder.apply("greater", builder.apply("absolute", other), builder.zero(other.type))
        counts, product = builder.apply("logical_or", self.differ, usual), Value(operation.out.type)
        zero = builder.zero(product.type)
        sides = Block((changed(operation, out=product),), (product,)), Block((), (zero,))
        return [*builder.operations, If(counts, *sides, (operation.out,), span=operation.span)]

    # -- memory --------------------------------------------------------------------------------------------------------

    def contents(self, place: Form) -> list[Form]:
        """What may be stored in an element without changing it."""
        return [place, self.known] if place == self.place else [place]

    def place_in(self, array: Value, indices: tuple[Value, ...]) -> Form:
        self.require_free(array)
        place = ("load", array, *map(self.form, indices))
        for axis, index in enumerate(indices if place != self.place else ()):
            self.require_inside(array, axis, index)
        return place

    def require_free(self, *values: Value) -> None:
        """Refuse values that depend on the number: another element, or another number of iterations."""
        if any(v in self.depends for v in values):
            raise _DifferError

    def require_inside(self, array: Value, axis: int, index: Value) -> None:
        """Check that an index is one of the array: before the branch, for all iterations inside it."""
        self.require_free(index)
        loop, rewriter = self.rewriter.loops.get(index), self.rewriter
        start = stop = None
        if loop is not None and loop.bounds is not None:
            start, stop, step = loop.bounds
            if rewriter.constant(step) != 1:
                raise _DifferError
        length = rewriter.length(array, axis)
        if stop is None or rewriter.resolved(stop) != length:
            if isinstance(length, tuple) and length[0] in self.inside:
                raise _DifferError
            if stop is not None and index in self.inside:
                self.check("less_equal", stop, length)
            else:
                self.check("less", index, length)
        first = index if start is None or index not in self.inside else start
        if not rewriter.is_natural(first):
            self.check("greater_equal", first, length, from_end=True)

    def check(self, primitive: str, value: Value, length: Length, from_end: bool = False) -> None:
        key = primitive, value, length
        if key not in self.checks:
            builder = self.guard
            other = builder.dim(*length) if isinstance(length, tuple) else self.outside(length)
            other = builder.apply("negative", other) if from_end else other
            self.checks[key] = builder.apply(primitive, self.outside(value), other)

    def outside(self, value: Value) -> Value:
        """An integer that the side computes, computed before the branch."""
        if value not in self.inside:
            return value
        match self.rewriter.definitions.get(value):
            case Const(value=number):
                return self.guard.const(number)
            case Apply(primitive=primitive, args=args):
                return self.guard.apply(primitive, *map(self.outside, args))
            case Dim(array=array, axis=axis) if array not in self.inside:
                return self.guard.dim(array, axis)
        raise _DifferError


def _is_number(form: Form) -> bool:
    return isinstance(form, int | float)


def _simplified(primitive: str, forms: Sequence[Form], type_: Scalar) -> Form:
    """What a primitive makes of these forms, if that is simpler; `None` if it is not, or may not be finite."""
    folded = folded_constant(primitive, forms, type_) if all(map(_is_number, forms)) else None
    if folded is not None:
        return folded
    match primitive, forms:
        case ("add" | "subtract", (form, 0.0)) | ("add", (0.0, form)):
            return form
        case ("multiply" | "divide", (form, 1.0)) | ("multiply", (1.0, form)):
            return form
        case "multiply", (0.0, _) | (_, 0.0):
            return 0.0
        case "divide", (0.0, other) if not _is_number(other):
            return 0.0
        case (name, (0.0,)) if name in _KEEP_ZERO:
            return 0.0
    return None
