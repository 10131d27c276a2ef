"""Which names a function or a statement assigns."""

from __future__ import annotations

import ast
import functools


@functools.lru_cache(maxsize=4096)
def assigned_names(node: ast.AST) -> frozenset[str]:
    """Names the function binds in its own scope (its parameters too), or the statement assigns."""
    found: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        arguments = node.args
        found |= {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        found |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        children = node.body if isinstance(node.body, list) else [node.body]
        for child in children:
            found |= _bound(child)
        return frozenset(found - nonlocal_names(node))
    return frozenset(_bound(node))


def _bound(node: ast.AST) -> set[str]:
    found: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Lambda):
        return set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        found.add(node.id)
    if isinstance(node, ast.alias):
        found.add((node.asname or node.name).partition(".")[0])
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                found.add(inner.target.id)
        return found
    for child in ast.iter_child_nodes(node):
        found |= _bound(child)
    return found


@functools.lru_cache(maxsize=4096)
def nonlocal_names(node: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    body = getattr(node, "body", [])
    stack = list(body) if isinstance(body, list) else []
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.Nonlocal):
            found |= set(statement.names)
        elif not isinstance(statement, ast.FunctionDef | ast.Lambda):
            stack += [c for c in ast.iter_child_nodes(statement) if isinstance(c, ast.stmt)]
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def inner_scopes(node: ast.AST) -> frozenset[type[ast.AST]]:
    """What kinds of functions and comprehensions stand inside a function."""
    kinds = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)
    return frozenset(type(n) for n in ast.walk(node) if isinstance(n, kinds) and n is not node)
