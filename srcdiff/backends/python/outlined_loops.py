"""Loops over `prange` as functions: what is run for several blocks of iterations at once.

for block in prange(blocks):         def f_threads_1(first, last, x, y):
    ...                                  for block in range(first, last):
                               =>            ...

                                     in_threads(f_threads_1, blocks, (x, y))

Generated text assigns nothing in such a loop that is used behind it, so the loop is a function of the names that it
reads.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

CALL = "__in_threads__"
"""The function that runs another one for blocks; no variable has this name."""


class Outlining(ast.NodeTransformer):
    """Makes functions of loops over `prange`."""

    def __init__(self) -> None:
        self.functions: list[ast.FunctionDef] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.name = node.name
        self.local = {a.arg for a in node.args.args} | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        match node.iter:
            case ast.Call(func=ast.Name(id="prange"), args=[count]):
                return self.outlined(node, count)
        return self.generic_visit(node)

    def outlined(self, node: ast.For, count: ast.expr) -> ast.AST:
        assert isinstance(node.target, ast.Name)
        names = sorted(_Reads({node.target.id}).of(node.body) & self.local)
        name = f"{self.name}_threads_{len(self.functions) + 1}"
        parameters = ", ".join(["first__", "last__", *names])
        text = f"def {name}({parameters}):\n    for {node.target.id} in range(first__, last__): pass"
        made = ast.parse(text).body[0]
        assert isinstance(made, ast.FunctionDef) and isinstance(made.body[0], ast.For)
        made.body[0].body = node.body
        for part in (made, *ast.walk(made.args), made.body[0].iter, *ast.walk(made.body[0].iter), made.body[0].target):
            ast.copy_location(part, node)
        self.functions.append(made)
        arguments = ast.Tuple([ast.Name(n, ast.Load()) for n in names], ast.Load())
        called = ast.Call(ast.Name(CALL, ast.Load()), [ast.Name(name, ast.Load()), count, arguments], [])
        statement = ast.copy_location(ast.Expr(called), node)
        return ast.fix_missing_locations(ast.copy_location(statement, node.iter))


class _Reads:
    """The names that statements may read before they have assigned them."""

    def __init__(self, assigned: set[str]) -> None:
        self.assigned = assigned

    def of(self, statements: Sequence[ast.stmt]) -> set[str]:
        found: set[str] = set()
        for statement in statements:
            found |= self.statement(statement)
        return found

    def statement(self, node: ast.stmt) -> set[str]:
        match node:
            case ast.For():
                found = self.expressions(node.iter) - self.assigned
                return found | self.inside(node.body, {n.id for n in _targets(node.target)})
            case ast.While():
                return (self.expressions(node.test) - self.assigned) | self.inside(node.body)
            case ast.If():
                found = self.expressions(node.test) - self.assigned
                sides = [_Reads(set(self.assigned)) for _ in range(2)]
                for side, body in zip(sides, (node.body, node.orelse), strict=True):
                    found |= side.of(body)
                self.assigned |= sides[0].assigned & sides[1].assigned
                return found
            case ast.AugAssign(target=ast.Name(id=name)):
                return (self.expressions(node.value) | {name}) - self.assigned
            case _:
                found = self.expressions(node) - self.assigned
                self.assigned |= {
                    n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                return found

    def inside(self, body: Sequence[ast.stmt], targets: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
        return _Reads(self.assigned | targets).of(body)

    def expressions(self, node: ast.AST) -> set[str]:
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _targets(node: ast.AST) -> list[ast.Name]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name)]
