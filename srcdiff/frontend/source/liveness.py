"""Liveness: the names assigned in an iteration that may be read by a later iteration or after the loop.

for i in range(n):
    y = a[i]            `s` is read by the next iteration and after the loop;
    s = s + y * y       `i` and `y` are assigned before they are read, so they are not carried
return s
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from srcdiff.frontend.source.scopes import names_in

Names = frozenset[str]

_LATER = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)
"""Nodes that read names when they are called, not where they are defined."""


def read_after_iterations(function: ast.FunctionDef | ast.Lambda) -> dict[ast.stmt, Names]:
    """For each loop of the function, the names that may be read after one of its iterations.

    >>> tree = ast.parse("def f(a, s):\\n for i in a:\\n  y = a[i]\\n  s += y\\n return s")
    >>> [sorted(names) for names in read_after_iterations(tree.body[0]).values()]
    [['a', 's']]
    """
    return _liveness(function).after_iteration


def read_after_branches(function: ast.FunctionDef | ast.Lambda) -> dict[ast.stmt, Names]:
    """For each `if` of the function, the names that may be read after one of its sides.

    >>> tree = ast.parse("def f(a, s):\\n if a > s:\\n  t = a * a\\n  s = t\\n t = s + a\\n return t")
    >>> [sorted(names) for names in read_after_branches(tree.body[0]).values()]
    [['a', 's']]
    """
    return _liveness(function).after_branch


@functools.lru_cache(maxsize=4096)
def _liveness(function: ast.FunctionDef | ast.Lambda) -> _Liveness:
    found = _Liveness()
    kept = [names_in(n) for n in ast.walk(function) if isinstance(n, _LATER) and n is not function]
    if isinstance(function, ast.FunctionDef):
        found.block(function.body, frozenset().union(*kept), frozenset())
    return found


class _Liveness:
    """Walks statements backwards, with the set of names that may be read after them."""

    def __init__(self) -> None:
        self.after_iteration: dict[ast.stmt, Names] = {}
        self.after_branch: dict[ast.stmt, Names] = {}
        self.caught: Names = frozenset()
        """The names that may be read if a statement raises."""

    def block(self, block: Sequence[ast.stmt], after: Names, at_exits: Names) -> Names:
        """The live names at the block's start. `at_exits` are those at the targets of `break` and `continue`."""
        for statement in reversed(block):
            after = self.statement(statement, after, at_exits) | self.caught
        return after

    def statement(self, node: ast.stmt, after: Names, at_exits: Names) -> Names:
        match node:
            case ast.Assign(targets=targets):
                return (after - _stored(*targets)) | _read(node)
            case ast.If():
                self.after_branch[node] = after | at_exits | self.caught
                sides = [self.block(b, after, at_exits) for b in (node.body, node.orelse)]
                return sides[0] | sides[1] | names_in(node.test)
            case ast.With():
                return self.block(node.body, after, at_exits).union(*(names_in(item) for item in node.items))
            case ast.Try():
                return self.try_statement(node, after, at_exits)
            case ast.For():
                return self.loop(node, after, at_exits, _stored(node.target)) | names_in(node.iter)
            case ast.While():
                return self.loop(node, after, at_exits, frozenset()) | names_in(node.test)
            case ast.Break() | ast.Continue():
                return after | at_exits
        return after | names_in(node)

    def try_statement(self, node: ast.Try, after: Names, at_exits: Names) -> Names:
        around = self.caught
        final = self.block(node.finalbody, after | at_exits | around, at_exits)
        self.caught = around | final
        after, at_exits = after | final, at_exits | final
        handlers = [self.block(h.body, after, at_exits) | names_in(h.type or node) for h in node.handlers]
        otherwise = self.block(node.orelse, after, at_exits)
        self.caught = self.caught.union(*handlers)
        found = self.block(node.body, otherwise, at_exits) | self.caught
        self.caught = around
        return found

    def loop(self, node: ast.For | ast.While, after: Names, at_exits: Names, assigned: Names) -> Names:
        ended = after | self.block(node.orelse, after, at_exits) | self.caught
        ended |= _read(node.target) if isinstance(node, ast.For) else names_in(node.test)
        iteration: Names = frozenset()
        known: Names | None = None
        while iteration != known:
            known = iteration
            iteration = ended | (self.block(node.body, known | ended, known | ended) - assigned)
        self.after_iteration[node] = iteration
        return iteration


def _stored(*targets: ast.expr) -> Names:
    """The names that an assignment to the targets assigns."""
    found: set[str] = set()
    for target in targets:
        match target:
            case ast.Name():
                found.add(target.id)
            case ast.Tuple() | ast.List():
                found |= _stored(*target.elts)
            case ast.Starred():
                found |= _stored(target.value)
    return frozenset(found)


def _read(node: ast.AST) -> Names:
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
