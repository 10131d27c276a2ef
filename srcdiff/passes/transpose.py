"""The transpose of a linear function: from an adjoint to the tangent, and back.

The result of an adjoint is linear in `out_bar`, so the adjoint of the adjoint with respect to `out_bar` maps the
tangents of the arguments to the tangent of the result, for any `out_bar`. So one rule is enough for both modes.

    adjoint     a_bar = out_bar @ b.T                   b_bar = a.T @ out_bar
    tangent     out_dot = a_dot @ b         +           a @ b_dot
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline, without_comments
from srcdiff.ir.nodes import Alloc, Copy, Dim, Function, Part, Reshape, Transpose, Value, View, walk
from srcdiff.ir.types import is_inexact
from srcdiff.passes.custom_adjoints import read_rule
from srcdiff.passes.reverse_mode import Reversal, protect_arguments, reversed_function
from srcdiff.passes.simplify import simplify


def transposed(
    rule: Callable[..., Any],
    builder: Builder,
    known: Sequence[Value],
    linear: Sequence[Value],
    covectors: Sequence[Value | None],
    like: range,
    span: Span | None,
) -> list[Value | None]:
    """Write the transpose of `rule(*known, *linear)` applied to a covector for each of its results; None is zero.

    Its results have the types of the parameters at the positions `like`. Returns one value for each of `linear`, whose
    shapes alone are read, and None for one of integers.
    """
    function = read_rule(rule, known, linear, like, span)
    main, _ = protect_arguments(function.main)
    results = iter(main.body.yields)
    pairs = [(next(results), c) for c, given in zip(covectors, function.given, strict=True) if given]
    seeds = tuple((result, Value(c.type)) for result, c in pairs if c is not None)
    by = tuple(p for p in main.params[len(known) :] if is_inexact(p.type))
    turned = simplify(without_comments(reversed_function(Reversal(main, by, seeds, "transposed"))))
    if _reads(turned, set(by)):
        name = getattr(rule, "__name__", "the rule")
        message = f"`{name}` is not linear in `{', '.join(v.name for v in by)}`, so it has no transpose"
        help_ = "declare both `adjoint=` and `tangent=` in `custom_rule`"
        raise DifferentiationError([Problem("SD306", message, span, help=help_)])
    given = [c for _, c in pairs if c is not None]
    found = iter(inline(turned, [*known, *linear, *given], builder))
    return [next(found) if is_inexact(v.type) else None for v in linear]


def _reads(function: Function, values: set[Value]) -> bool:
    """Whether the function reads these values, or what these arrays hold, and not only how large they are."""
    for operation in walk(function.body):
        used = any(v in values for v in (*operation.uses(), *(y for b in operation.blocks() for y in b.yields)))
        match operation:
            case Copy() | View() | Transpose() | Reshape() | Part() if operation.array in values:
                values = values | {operation.out}
            case Dim():
                pass
            case Alloc():
                if operation.fill in values:
                    return True
            case _:
                if used:
                    return True
    return any(v in values for v in function.body.yields)
