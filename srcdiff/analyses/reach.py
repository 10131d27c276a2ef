"""Which inputs reach the result, along which lines; and what cuts off the others.

The lines are those of the program as it was read. Whether an input reaches the result is decided on the program that is
differentiated, from which dead code is removed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from srcdiff.analyses.activity import activity, differentiable_arguments, influential_values, varied_values
from srcdiff.diagnostics import Span
from srcdiff.frontend.reading import Reading
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Call,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    If,
    Library,
    Load,
    Operation,
    Store,
    Value,
)
from srcdiff.ir.nodes import walk as operations_of
from srcdiff.ir.types import Array, is_inexact
from srcdiff.library.blas_lapack import LIBRARY, is_seen
from srcdiff.quick_dataclasses import dataclass

_COMPARISON = ("comparison", "a comparison")
_CUTS: dict[str, tuple[str, str]] = {
    "int": ("integer", "a cast to an integer"),
    "bool": ("comparison", "a conversion to a boolean"),
    "rint": ("rounding", "rounding"),
    "round": ("rounding", "rounding"),
    "trunc": ("rounding", "truncation"),
    "floor": ("rounding", "`floor`"),
    "ceil": ("rounding", "`ceil`"),
    "floor_divide": ("rounding", "`//`"),
    "sign": ("sign", "`sign`"),
    "signbit": ("sign", "`signbit`"),
    "copysign": ("sign", "`copysign`, which uses only its sign"),
    "stop_gradient": ("stop_gradient", "`stop_gradient`"),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), _COMPARISON),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "isposinf", "isneginf"), _COMPARISON),
}
"""Primitives with a zero derivative: the kind of the cut, and its description in messages."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An operation that cuts off the derivative of an input."""

    kind: str
    """`integer`, `rounding`, `sign`, `comparison`, `stop_gradient`, `no derivative`, `shape`, `overwritten`, `unread`,
    `captured`, `branch`, `helper` or `unused`."""
    text: str
    span: Span | None = None

    elsewhere: str = ""
    """The function of the line, if it is not the differentiated one."""

    @property
    def is_way(self) -> bool:
        """Whether the cut is an operation with a zero derivative."""
        return self.kind in _WAYS

    def __str__(self) -> str:
        return self.text if self.span is None else f"{self.text} {place_of(self.span, self.elsewhere)}"


@dataclass(frozen=True, slots=True)
class Reach:
    reaches: bool
    path: tuple[Span, ...]
    """The lines that propagate the derivative, in order of text."""
    cuts: tuple[Cut, ...]


def place_of(span: Span, elsewhere: str = "") -> str:
    place = f"in line {span.line}" + (f" of `{elsewhere}`" if elsewhere else "")
    return f"{place}, `{span.text.strip()}`" if span.text else place


def reach(
    reading: Reading, differentiated: Function, name: str, inputs: Sequence[Value], outputs: Sequence[int]
) -> Reach:
    """How the argument with the values `inputs` reaches these results."""
    return _Reach(reading, differentiated, name, inputs, outputs).run()


def zero_gradient(
    reading: Reading, differentiated: Function, name: str, inputs: Sequence[Value], output: int
) -> list[str]:
    """A warning if the argument does not reach the result, with the lines that cut it off."""
    if reaches(differentiated, inputs, [output]):
        return []
    cuts = reach(reading, differentiated, name, inputs, [output]).cuts
    return [f"the gradient with respect to `{name}` is zero: {reason(cuts)}"]


def reason(cuts: Sequence[Cut]) -> str:
    """The reason for a zero gradient, for a message."""
    ways = any(c.is_way for c in cuts)
    texts = list(dict.fromkeys(str(c) for c in cuts if c.is_way or not ways))
    more = f"; and {len(texts) - 4} more" if len(texts) > 4 else ""
    return ("it is cut off by " if ways else "") + "; ".join(texts[:4]) + more


_WAYS = {*(kind for kind, _ in _CUTS.values()), "no derivative"}


def reaches(function: Function, inputs: Sequence[Value], outputs: Iterable[int]) -> bool:
    results = [function.body.yields[k] for k in outputs]
    found = activity(function, inputs, results, points_to(function))
    return any(v in found or v in results for v in inputs)


class _Reach:
    def __init__(
        self, reading: Reading, differentiated: Function, name: str, inputs: Sequence[Value], outputs: Sequence[int]
    ) -> None:
        self.reading, self.name, self.inputs = reading, name, inputs
        self.differentiated, self.outputs = differentiated, outputs
        self.function = reading.program.main
        self.results = [self.function.body.yields[k] for k in outputs]
        self.sites: dict[Value, Sites] = points_to(self.function)
        self.operations = operations_of(self.function.body)
        self.constants = {o.out: o.value for o in self.operations if isinstance(o, Const)}
        nodes = list(ast.walk(reading.captured.node))
        names = [n for n in nodes if isinstance(n, ast.Name)]
        augmented = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
        self.reads = [n for n in names if isinstance(n.ctx, ast.Load) or n in augmented]
        self.writes = [n for n in names if isinstance(n.ctx, ast.Store) and n not in augmented]
        self.varied = varied_values(self.function, inputs, self.sites)
        # without values that have an adjoint only because of aliasing
        self.active = activity(self.function, inputs, self.results, self.sites).values & self.varied
        self.matters = influential_values(self.function, self.results, self.sites)
        self.left = {_line(o) for o in operations_of(differentiated.body)}

    def run(self) -> Reach:
        found = reaches(self.differentiated, self.inputs, self.outputs)
        overwritten = list(self.overwritten_elements())
        cuts = [*self.without_derivative(), *overwritten, *self.overwritten_names()]
        if found:
            cuts += self.branches()
        elif not cuts:
            cuts = [*(list(self.unread()) or self.by_text()), *self.captured()]
        lost = {c.span for c in overwritten}
        spans = [s for s in self.path() if s not in lost] if found else []
        cuts = [replace(c, elsewhere=self.elsewhere(c.span)) for c in _one_a_line(cuts)]
        return Reach(found, tuple(sorted(spans, key=self.order)), tuple(cuts))

    def path(self) -> Iterable[Span]:
        """The lines that propagate the derivative, also assignments of names and returns, which are no operations."""
        spans = [o.span for o in self.operations if self.carries(o)]
        read = {n.id for n in self.reads} | {"%return"}
        made = {(v, _line(o)) for o in self.operations for v in o.defines()}
        for named in self.reading.named:
            place = named.span and (named.span.file, named.span.line)
            if named.name in read and self.is_active(named.value) and (named.value, place) not in made:
                spans.append(named.span)
        return {(s.file, s.line): s for s in spans if s is not None}.values()

    def elsewhere(self, span: Span | None) -> str:
        own = span is None or (span.file, span.function) == (self.reading.captured.file, self.reading.captured.name)
        return "" if own or span is None else span.function

    def order(self, span: Span) -> tuple[bool, str, int]:
        """The lines of the function itself come first."""
        return span.file != self.reading.captured.file, span.file, span.line

    # -- propagation ------------------------------------------------------------------------------------------------

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def depends(self, value: Value) -> bool:
        return bool(self.memory(value) & self.varied) if isinstance(value.type, Array) else value in self.varied

    def is_active(self, value: Value) -> bool:
        return bool(self.memory(value) & self.active) if isinstance(value.type, Array) else value in self.active

    def carries(self, operation: Operation) -> bool:
        match operation:
            case Apply():
                return operation.out in self.active and any(map(self.is_active, differentiable_arguments(operation)))
            case Load():
                return operation.out in self.active and self.is_active(operation.array)
            case Store():
                return operation.value in self.active and self.is_active(operation.array)
            case Alloc():
                return operation.out in self.active and operation.fill in self.active
            case Copy() | Library() | Call() | Custom():
                return any(map(self.is_active, operation.uses())) and any(map(self.is_active, operation.defines()))
        return False

    # -- cuts --------------------------------------------------------------------------------------------------------

    def without_derivative(self) -> Iterator[Cut]:
        """Operations on the path that have a zero derivative."""
        for operation in self.operations:
            match operation:
                case Apply(primitive=primitive) if operation.out not in self.varied and operation.out in self.matters:
                    if any(a in self.varied for a in operation.args):
                        kind, text = _CUTS.get(primitive, ("no derivative", f"`{primitive}`"))
                        yield Cut(kind, text, operation.span)
                case Library() if any(map(self.depends, operation.args)):
                    if any(not is_inexact(v.type) and self.memory(v) & self.matters for v in operation.outs):
                        yield Cut("no derivative", _called(operation), operation.span)
                case Store() if operation.value in self.varied and not is_inexact(operation.array.type):
                    if self.memory(operation.array) & self.matters:
                        yield Cut("integer", f"an array of {operation.array.array.dtype}", operation.span)

    def overwritten_elements(self) -> Iterator[Cut]:
        """Elements that are overwritten before they are read, so that their stores are dead."""
        for k, store in enumerate(self.operations):
            if isinstance(store, Store) and store.value in self.varied and _line(store) not in self.left:
                later = self.overwriting(store, self.operations[k + 1 :])
                if later is not None and later.span is not None:
                    text = f"the element is overwritten in line {later.span.line} before it is read,"
                    yield Cut("overwritten", text, store.span)

    def overwriting(self, store: Store, behind: list[Operation]) -> Store | None:
        """The next store to the same element, if nothing touches the array before."""
        for operation in behind:
            if isinstance(operation, Store) and operation.array is store.array and not operation.adds:
                if self.places(operation) == self.places(store):
                    return operation
            elif any(isinstance(v.type, Array) and self.memory(v) & self.memory(store.array) for v in operation.uses()):
                return None
        return None

    def places(self, store: Store) -> list[object]:
        return [self.constants.get(i, i) for i in store.indices]

    def overwritten_names(self) -> Iterator[Cut]:
        """Variables that are assigned again before the value that depends on the input is read."""
        read = {v for o in self.operations for v in _read_by(o)}
        read |= {v for o in self.operations for b in o.blocks() for v in b.yields if self.goes_on(o)}
        for operation in self.operations:
            span = operation.span
            for value in () if operation.blocks() or span is None or self.elsewhere(span) else operation.defines():
                again = self.assigned_again(value.name, span.line) if span is not None else None
                if again is not None and self.is_dead(value) and value not in read:
                    yield Cut("overwritten", f"`{value.name}` is overwritten in line {again} before it is read,", span)

    def assigned_again(self, name: str, line: int) -> int | None:
        """The line in which a name gets its next value, if nothing reads it before."""
        writes = [n.lineno for n in self.writes if n.id == name and n.lineno > line]
        reads = [n.lineno for n in self.reads if n.id == name and n.lineno > line]
        return min(writes) if writes and min(reads, default=min(writes) + 1) > min(writes) else None

    def is_dead(self, value: Value) -> bool:
        return value in self.varied and value not in self.matters and not isinstance(value.type, Array)

    def goes_on(self, operation: Operation) -> bool:
        return any(v in self.matters for v in operation.defines())

    def branches(self) -> Iterator[Cut]:
        """Branches with one side that does not read the input."""
        for operation in self.operations:
            if not isinstance(operation, If) or operation.span is None:
                continue
            for k, out in enumerate(operation.outs):
                sides = [b.yields[k] in self.varied for b in operation.blocks()]
                if out in self.active and sides[0] != sides[1]:
                    condition = "is not" if sides[0] else "is"
                    yield Cut("branch", f"it does not contribute where the condition {condition} met", operation.span)
                    break

    def unread(self) -> Iterator[Cut]:
        """Why an input is not read, from calls and shapes."""
        for passed in self.reading.passed:
            if passed.value in self.varied and passed.value not in self.matters and passed.span is not None:
                used = any(passed.value in o.uses() for o in self.operations)
                does = "does not use it in its result" if used else f"does not use its `{passed.parameter}`"
                yield Cut("helper", f"it is passed to `{passed.function}`, which {does},", passed.span)
        shapes = [o for o in self.operations if isinstance(o, Dim) and o.out in self.matters]
        for operation in shapes:
            if self.memory(operation.array) & set(self.inputs):
                yield Cut("shape", "only its shape is read", operation.span)

    def by_text(self) -> Iterator[Cut]:
        mentions: list[ast.expr] = [n for n in self.reads if n.id == self.name]
        if not self.name.isidentifier():  # a part of an argument
            nodes = [n for n in ast.walk(self.reading.captured.node) if isinstance(n, ast.Subscript | ast.Attribute)]
            mentions = [n for n in nodes if ast.unparse(n) == self.name]
        if not mentions:
            yield Cut("unused", "it is not used")
            return
        for branch, outcomes in self.reading.outcomes.items():
            if len(outcomes) == 1:
                skipped = branch.orelse if True in outcomes else branch.body
                if any(n in mentions for s in skipped for n in ast.walk(s)):
                    text = (
                        f"it is read only where a condition is {not outcomes.copy().pop()}, which never happens here,"
                    )
                    yield Cut("branch", text, self.span_of(branch))
                    return
        if self.assigned_again(self.name, 0) is not None:
            first = min((n for n in self.writes if n.id == self.name), key=lambda n: n.lineno)
            yield Cut("overwritten", f"`{self.name}` is overwritten before it is read,", self.span_of(first))
            return
        for statement in ast.walk(self.reading.captured.node):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) if any(n in mentions for n in ast.walk(statement.value)):
                    again = self.assigned_again(name, statement.lineno)
                    if again is not None:
                        text = f"`{name}` is overwritten in line {again} before it is read,"
                        yield Cut("overwritten", text, self.span_of(statement))
                        return
        yield Cut("unread", "the values computed from it are not part of the result,", self.span_of(mentions[0]))

    def captured(self) -> Iterator[Cut]:
        """Outside numbers and arrays that the result depends on instead; they are constants."""
        for outside in self.reading.outside:
            if is_inexact(outside.value.type) and self.memory(outside.value) & self.matters:
                uses = [o.span for o in self.operations if outside.value in o.uses() and not isinstance(o, Dim)]
                text = f"the result is computed from `{outside.name}`, which is not an argument and is held constant,"
                yield Cut("captured", text, next((s for s in uses if s is not None), None))

    def span_of(self, node: ast.AST) -> Span:
        captured = self.reading.captured
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return Span(captured.file, line, column, getattr(node, "end_col_offset", column), captured.name)


def _line(operation: Operation) -> tuple[str, int] | None:
    return None if operation.span is None else (operation.span.file, operation.span.line)


def _read_by(operation: Operation) -> tuple[Value, ...]:
    return () if operation.blocks() else operation.uses()


def _one_a_line(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """Each cut once for each line."""
    seen: set[object] = set()
    for cut in cuts:
        key = cut.kind, cut.text, cut.span and (cut.span.file, cut.span.line)
        if key not in seen:
            seen.add(key)
            yield cut


def _called(operation: Library) -> str:
    """The name of a library call in messages. Draws of integers have no derivative."""
    row = LIBRARY.get(operation.function)
    if row is None:
        return f"`{operation.function}`"
    return f"a draw of `{row.name}`" if is_seen(operation.function) else f"`{row.name}`"
