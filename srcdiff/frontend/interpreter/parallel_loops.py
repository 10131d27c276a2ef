"""Loops over `prange`: statements that they must not contain, and the reductions of their iterations."""

from __future__ import annotations

import ast

from srcdiff.frontend.domain.reader import Reader
from srcdiff.ir.nodes import Parallel

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_FUNCTIONS = ("max", "min")


def said_of(reader: Reader, node: ast.For) -> Parallel:
    """The user's assertion about a loop over `prange`: its iterations are independent, except for these reductions."""
    refuse_exits(reader, node.body)
    found: list[tuple[str, ast.stmt]] = []
    for one in (x for statement in node.body for x in ast.walk(statement)):
        match one:
            case ast.AugAssign(target=ast.Name(id=name), op=operator) if isinstance(operator, _OPERATORS):
                found.append((name, one))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=left, op=operator, right=right)):
                operands = (left, right) if isinstance(operator, ast.Add | ast.Mult) else (left,)
                if isinstance(operator, _OPERATORS) and any(is_name(x, name) for x in operands):
                    found.append((name, one))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=called), args=args)):
                if called in _FUNCTIONS and any(is_name(x, name) for x in args):
                    found.append((name, one))
    return Parallel(tuple((name, reader.span_of(one)) for name, one in found))


def is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def refuse_exits(reader: Reader, body: list[ast.stmt], *, breaks: bool = True) -> None:
    """Refuse `return`, and `break` of this loop, in the body, because the other iterations may run anyway."""
    for one in body:
        if isinstance(one, ast.Return) or (breaks and isinstance(one, ast.Break)):
            word = "return" if isinstance(one, ast.Return) else "break"
            message = f"`{word}` leaves a loop over `prange`, whose iterations run at the same time"
            reader.refuse("SD503", one, message, help_="write `range`")
        inner = isinstance(one, ast.For | ast.While)
        for name in ("body", "orelse"):
            refuse_exits(reader, getattr(one, name, []), breaks=breaks and not (inner and name == "body"))
        for case in getattr(one, "cases", []):
            refuse_exits(reader, case.body, breaks=breaks)
