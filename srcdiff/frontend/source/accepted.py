"""The accepted language: unsupported syntax is rejected before the function is read, all problems together."""

from __future__ import annotations

import ast

from srcdiff.diagnostics import Problem, Span
from srcdiff.frontend.source.capture import Captured

# syntax                 what the user calls it                    what to write instead
REFUSED: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.TryStar: ("SD101", "`except*`", "use `except`"),
    ast.AsyncWith: ("SD101", "`async with`", "use a plain function"),
    ast.AsyncFor: ("SD101", "`async for`", "use a plain function"),
    ast.AsyncFunctionDef: ("SD101", "`async def`", "use a plain function"),
    ast.ClassDef: ("SD101", "`class`", "define the class outside the function"),
    ast.Global: ("SD101", "`global`", "return the value instead of assigning it to a global variable"),
    ast.Match: ("SD101", "`match` with `**rest` or with names in alternatives", "use `if` and `elif`"),
    ast.Await: ("SD104", "`await`", "use a plain function"),
}


def refused_syntax(captured: Captured) -> dict[ast.AST, Problem]:
    """All unsupported syntax in the function."""
    problems: dict[ast.AST, Problem] = {}
    body = captured.node.body if isinstance(captured.node.body, list) else [captured.node.body]
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        row = REFUSED.get(type(node))
        if row is not None:
            code, what, instead = row
            problems[node] = Problem(code, f"{what} is not supported", _span(captured, node, what), help=instead)
            continue
        stack += reversed(list(ast.iter_child_nodes(node)))
    return problems


def _span(captured: Captured, node: ast.AST, what: str) -> Span:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    width = len(what.split("`")[1]) if what.startswith("`") else getattr(node, "end_col_offset", column + 1) - column
    return Span(captured.file, line, column, column + max(1, width), captured.name)
