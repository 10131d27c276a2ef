"""Tests for equality of numbers that are differentiated, if they decide what the result is.

    if v != 0.0:
        s += v * w

Where `v` is exactly zero, the side that runs has another derivative than the function has nearby: `w` does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srcdiff.analyses.activity import Activity, activity, varied_values
from srcdiff.diagnostics import Span
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.nodes import Apply, Function, If, Operation, Store, Value, walk
from srcdiff.ir.types import BOOL, is_inexact

EQUALITIES = {"equal": "==", "not_equal": "!="}
_CONNECTIVES = frozenset(("logical_and", "logical_or", "logical_not", "logical_xor"))


def equality_tests(function: Function, inputs: Sequence[Value], outputs: Iterable[Value]) -> list[Span]:
    """The places of the tests, each line once, in order. Tests that the user has not written are not among them."""
    operations = list(walk(function.body))
    if not any(isinstance(o, Apply) and o.primitive in EQUALITIES for o in operations):
        return []
    sites = points_to(function)
    varied = varied_values(function, inputs, sites)
    active = activity(function, inputs, list(outputs), sites)
    tests, found = _tests(operations, varied), dict[Span, None]()
    for operation in operations:
        match operation:
            case Apply(primitive="where", args=(condition, *_), out=out) if out in active:
                found |= tests.get(condition, {})
            case If(condition=condition) if condition in tests and changes_active(operation, active):
                found |= tests[condition]
    lines = {(span.file, span.line): span for span in found}
    return [lines[key] for key in sorted(lines)]


def _tests(operations: Sequence[Operation], varied: set[Value]) -> dict[Value, dict[Span, None]]:
    """The conditions that a test is part of, with the places of the tests. `a and b` may be a branch on `a`."""
    tests: dict[Value, dict[Span, None]] = {}
    parts: dict[Value, tuple[Value, ...]] = {}
    for operation in operations:
        match operation:
            case Apply(primitive=primitive, out=out) if primitive in EQUALITIES:
                if _is_of_varied(operation, varied) and operation.span is not None:
                    tests[out] = {operation.span: None}
            case Apply(primitive=primitive, args=args, out=out) if primitive in _CONNECTIVES:
                parts[out] = args
            case If(condition=condition, outs=outs, then=then, orelse=orelse):
                for out, first, second in zip(outs, then.yields, orelse.yields, strict=True):
                    if out.type == BOOL:
                        parts[out] = (condition, first, second)
    joined = dict(tests)
    while joined:
        joined = {
            out: spans
            for out, args in parts.items()
            if (spans := {span: None for a in args for span in tests.get(a, ())}) and spans != tests.get(out)
        }
        tests |= joined
    return tests


def _is_of_varied(operation: Apply, varied: set[Value]) -> bool:
    """Whether it compares a number that depends on the inputs, as its line says; `x != x` asks for NaN."""
    first, second = operation.args
    text = "" if operation.span is None else operation.span.text
    is_written = any(sign in text for sign in EQUALITIES.values())
    is_active = any(a in varied and is_inexact(a.type) for a in operation.args)
    return is_written and is_active and first is not second


def changes_active(operation: If, active: Activity) -> bool:
    """Whether a branch decides something that has a derivative."""
    inner: list[Operation] = [o for block in operation.blocks() for o in walk(block)]
    writes = any(isinstance(o, Store) and active.memory(o.array) for o in inner)
    return writes or any(out in active or active.memory(out) for out in operation.outs)


def in_words(span: Span) -> str:
    """The text of the warning about a test."""
    return (
        f"{span.place}, `{span.text.strip()}`: where both numbers are exactly equal, the derivative is that of the "
        f"side that runs, and may differ from the derivative nearby"
    )
