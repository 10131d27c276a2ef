"""Functions whose derivative the user declares."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from srcdiff.analyses.aliasing import points_to, written_sites
from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Custom, Function, Value, walk
from srcdiff.source.abstract import Abstract, Description, Static, Tuple
from srcdiff.source.capture import capture
from srcdiff.source.to_ir import read
from srcdiff.transforms.clone import inline


def rules_share_no_memory(function: Function) -> None:
    """A function with a rule of its own neither writes into its arguments nor gives them back."""
    problems = []
    for operation in walk(function.body):
        if not isinstance(operation, Custom):
            continue
        sites = points_to(Function("rule", operation.params, operation.body))
        given = set(operation.params)
        if written_sites(operation.body, sites) & given:
            message = "a function with a custom rule writes into its arguments"
            problems.append(Problem("SD304", message, operation.span, help=_A_COPY))
        elif any(sites.get(y, frozenset()) & given for y in operation.body.yields):
            message = "a function with a custom rule returns an argument, or part of it"
            problems.append(Problem("SD304", message, operation.span, help=_A_COPY))
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


_A_COPY = "work on a copy of the array: `a = a.copy()`"


def reads_parameters(adjoint: Callable[..., Any], count: int) -> list[bool]:
    """Whether an adjoint function reads each of its first parameters."""
    try:
        node = capture(adjoint).node
    except Refusal:
        return [True] * count
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return [k >= len(names) or names[k] in read for k in range(count)]


def adjoint_values(
    adjoint: Callable[..., Any],
    builder: Builder,
    args: Sequence[Value],
    outs: Sequence[Value],
    seeds: Sequence[Value],
    span: Span | None,
) -> list[Value | None]:
    """Write the body of an adjoint function; gives the adjoint of each argument, or None for zero."""
    name = getattr(adjoint, "__name__", "adjoint")
    values = [*args, *outs, *seeds]
    try:
        captured = capture(adjoint)
    except Refusal as refusal:
        raise DifferentiationError([refusal.problem] if refusal.problem is not None else []) from None
    names = [a.arg for a in (*captured.node.args.posonlyargs, *captured.node.args.args)]
    if len(names) != len(values):
        message = f"`{name}` takes {len(names)} arguments; it gets {len(values)}: arguments, result, its adjoint"
        raise DifferentiationError([Problem("SD306", message, span)])
    descriptions = {n: Description("value", v.type) for n, v in zip(names, values, strict=True)}
    reading = read(captured, descriptions, inside=span)
    if reading.outside:
        message = f"`{name}` reads `{reading.outside[0].name}` from outside"
        raise DifferentiationError([Problem("SD306", message, span)])
    main = reading.program.main
    if written_sites(main.body, points_to(main)) & set(main.params[: len(args) + len(outs)]):
        message = f"`{name}` writes into what it is given"
        raise DifferentiationError([Problem("SD306", message, span, help="let it write into a copy: `a = a.copy()`")])
    result = reading.result
    items = list(result.items) if isinstance(result, Tuple) else [result]
    if len(items) != len(args):
        message = f"`{name}` returns {len(items)} adjoints for {len(args)} arguments"
        raise DifferentiationError([Problem("SD306", message, span)])
    yields = iter(inline(reading.program.main, values, builder))
    return [_adjoint(item, yields) for item in items]


def _adjoint(item: Abstract, yields: Any) -> Value | None:
    if isinstance(item, Static) and item.value is None:
        return None
    value: Value = next(yields)
    return value
