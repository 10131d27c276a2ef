"""The names that a function or a statement assigns and reads."""

from __future__ import annotations

import ast
import functools


@functools.lru_cache(maxsize=4096)
def assigned_names(node: ast.AST) -> frozenset[str]:
    """The names that a function binds in its own scope, including parameters, or that a statement assigns."""
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
    if isinstance(node, ast.ExceptHandler) and node.name is not None:
        found.add(node.name)
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


@functools.lru_cache(maxsize=16384)
def names_in(node: ast.AST) -> frozenset[str]:
    """All names in a syntax tree."""
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


@functools.lru_cache(maxsize=4096)
def free_names(node: ast.AST) -> frozenset[str]:
    """The names of enclosing functions that a function, including nested ones, reads or assigns.

    >>> sorted(free_names(ast.parse("def f(x): return [x * y * z for y in w]").body[0]))
    ['w', 'z']
    """
    found: set[str] = set(nonlocal_names(node))
    stack = [*ast.iter_child_nodes(node)]
    while stack:
        child = stack.pop()
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            found |= free_names(child)
            defaults = [*child.args.defaults, *child.args.kw_defaults, *getattr(child, "decorator_list", [])]
            stack += [d for d in defaults if d is not None]
        elif isinstance(child, ast.ListComp | ast.GeneratorExp):
            targets = frozenset().union(*(assigned_names(g.target) for g in child.generators))
            found |= (names_in(child) - targets) | names_in(child.generators[0].iter)
        else:
            if isinstance(child, ast.Name):
                found.add(child.id)
            stack += ast.iter_child_nodes(child)
    return frozenset(found - assigned_names(node))


@functools.lru_cache(maxsize=4096)
def inner_scopes(node: ast.AST) -> frozenset[type[ast.AST]]:
    """The kinds of functions and comprehensions inside a function."""
    kinds = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)
    return frozenset(type(n) for n in ast.walk(node) if isinstance(n, kinds) and n is not node)


@functools.lru_cache(maxsize=4096)
def yields(node: ast.AST) -> bool:
    """Whether a function is a generator function, or a statement contains a `yield` of its function.

    >>> [yields(ast.parse(f"def f():\\n def g(): yield 1\\n {last}").body[0]) for last in ("yield", "return g()")]
    [True, False]
    """
    stack = [*ast.iter_child_nodes(node)]
    while stack:
        child = stack.pop()
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            stack += ast.iter_child_nodes(child)
    return False


@functools.lru_cache(maxsize=4096)
def has_try(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Try) for n in ast.walk(node))


@functools.lru_cache(maxsize=4096)
def has_finally(node: ast.AST) -> bool:
    """Whether code in the function may run after a `return`."""
    return any((isinstance(n, ast.Try) and n.finalbody) or _has_context(n) for n in ast.walk(node))


def _has_context(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(not is_about_warnings(item.context_expr) for item in node.items)


def is_about_warnings(node: ast.expr) -> bool:
    """Whether it is `np.errstate(...)`, judged by the text."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "errstate"


_AGAIN = (ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)


def is_only_use(function: ast.AST, name: ast.Name) -> bool:
    """Whether this is the only use of a name in the function, evaluated once in a call."""
    reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name.id]
    again = [n for n in ast.walk(function) if isinstance(n, _AGAIN) and n is not function]
    repeated = [part for n in again for part in _repeated(n)]
    return [n for n in reads if isinstance(n.ctx, ast.Load)] == [name] and not any(
        name in ast.walk(part) for part in repeated
    )


def _repeated(node: ast.AST) -> list[ast.AST]:
    """The parts of a loop or a nested function that may run more than once."""
    if isinstance(node, ast.For):
        return [*node.body]
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return [n for n in ast.iter_child_nodes(node) if n is not node.generators[0]] + [
            n for n in ast.iter_child_nodes(node.generators[0]) if n is not node.generators[0].iter
        ]
    return [*ast.iter_child_nodes(node)]


def scopes_of(node: ast.FunctionDef | ast.Lambda) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a function assigns, and those among them that belong to enclosing functions."""
    return assigned_names(node), nonlocal_names(node)
