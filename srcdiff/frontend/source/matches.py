"""`match` statements become `if` and `elif` before the program is read.

>>> print(ast.unparse(without_matches(ast.parse("match kind:\\n case 'a' | 'b': f()\\n case _: g()"))))
if kind == 'a' or kind == 'b':
    f()
else:
    g()
"""

from __future__ import annotations

import ast
import collections.abc
import copy
from typing import Any

import numpy as np

_TEXTS = (str, bytes, bytearray)


def matched_part(subject: Any, kind: Any, position: int) -> Any:
    """The value for the subpattern of `kind(...)` at this position. The front end has a row for it."""
    raise NotImplementedError


_SEQUENCE_FLAG = 1 << 5
"""`Py_TPFLAGS_SEQUENCE`: whether sequence patterns match instances of a class. Arrays have it since NumPy 2.5."""
_SEQUENCES = (collections.abc.Sequence, *([np.ndarray] if np.ndarray.__flags__ & _SEQUENCE_FLAG else []))


class _UnsupportedError(Exception):
    """A pattern that cannot be written as a test."""


class _Lowered(ast.NodeTransformer):
    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        try:
            statements = _as_branches(node)
        except _UnsupportedError:
            return node
        return [ast.fix_missing_locations(ast.copy_location(s, node)) for s in statements]


def without_matches(tree: ast.Module) -> ast.Module:
    """The program without `match`. Statements with unsupported patterns stay."""
    if not any(isinstance(n, ast.Match) for n in ast.walk(tree)):
        return tree
    lowered: ast.Module = _Lowered().visit(tree)
    return lowered


def _as_branches(node: ast.Match) -> list[ast.stmt]:
    captured = {getattr(p, "name", None) for case in node.cases for p in ast.walk(case.pattern)}
    walrus = any(isinstance(n, ast.NamedExpr) for case in node.cases if case.guard for n in ast.walk(case.guard))
    subject, before = node.subject, list[ast.stmt]()
    if not (isinstance(subject, ast.Name) and subject.id not in captured and not walrus):
        name = f"%match_{node.lineno}_{node.col_offset}"
        before = [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], subject), subject)]
        subject = ast.copy_location(ast.Name(name, ast.Load()), node.subject)
    rest: list[ast.stmt] = []
    for case in reversed(node.cases):
        tests, names = _tests(case.pattern, subject)
        assigned: list[ast.stmt] = []
        if case.guard is None:
            assigned = [ast.Assign([ast.Name(name, ast.Store())], value) for name, value in names]
        else:
            tests += [_assigning(name, value) for name, value in names]
            tests.append(case.guard)
        assigned = [ast.fix_missing_locations(ast.copy_location(s, case.pattern)) for s in assigned]
        if not tests:
            rest = [*assigned, *case.body]
            continue
        branch = ast.If(_all(tests), [*assigned, *case.body], rest)
        rest = [ast.fix_missing_locations(ast.copy_location(branch, case.pattern))]
    return [*before, *rest]


def _all(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _assigning(name: str, value: ast.expr) -> ast.expr:
    """A test that is always true and assigns a name, which a guard may read."""
    assigned = ast.NamedExpr(ast.Name(name, ast.Store()), value)
    return ast.Compare(ast.Tuple([assigned], ast.Load()), [ast.IsNot()], [ast.Constant(None)])


def _object(value: Any) -> ast.expr:
    """An expression for this object, independent of the names in the program."""
    return ast.Constant(value)


def _call(function: Any, *args: ast.expr) -> ast.expr:
    return ast.Call(_object(function), list(args), [])


def _tests(pattern: ast.pattern, subject: ast.expr) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    """The conditions of a pattern in order, and the names that it assigns."""
    tests, names = _tests_anywhere(pattern, copy.deepcopy(subject))
    located = [ast.fix_missing_locations(ast.copy_location(t, pattern)) for t in tests]
    return located, names


def _tests_anywhere(pattern: ast.pattern, subject: ast.expr) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    match pattern:
        case ast.MatchValue():
            return [ast.Compare(subject, [ast.Eq()], [pattern.value])], []
        case ast.MatchSingleton():
            return [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])], []
        case ast.MatchAs():
            tests, names = _tests(pattern.pattern, subject) if pattern.pattern is not None else ([], [])
            return tests, names + ([] if pattern.name is None else [(pattern.name, subject)])
        case ast.MatchOr():
            each = [_tests(p, subject) for p in pattern.patterns]
            if any(names for _, names in each):
                raise _UnsupportedError
            if not all(tests for tests, _ in each):
                return [], []
            return [ast.BoolOp(ast.Or(), [_all(tests) for tests, _ in each])], []
        case ast.MatchSequence():
            return _sequence(pattern, subject)
        case ast.MatchMapping():
            if pattern.rest is not None:
                raise _UnsupportedError
            first = [_call(isinstance, subject, _object(collections.abc.Mapping))]
            first += [ast.Compare(key, [ast.In()], [subject]) for key in pattern.keys]
            parts = [ast.Subscript(subject, key, ast.Load()) for key in pattern.keys]
            return _joined(first, zip(pattern.patterns, parts, strict=True))
        case ast.MatchClass():
            first = [_call(isinstance, subject, pattern.cls)]
            first += [_call(hasattr, subject, ast.Constant(name)) for name in pattern.kwd_attrs]
            by_position = [
                _call(matched_part, subject, pattern.cls, ast.Constant(k)) for k in range(len(pattern.patterns))
            ]
            by_name = [ast.Attribute(subject, name, ast.Load()) for name in pattern.kwd_attrs]
            patterns = [*pattern.patterns, *pattern.kwd_patterns]
            return _joined(first, zip(patterns, [*by_position, *by_name], strict=True))
    raise _UnsupportedError


def _joined(first: list[ast.expr], parts: Any) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    """The tests of the whole value, followed by those of its parts."""
    tests, names = list(first), list[tuple[str, ast.expr]]()
    for pattern, part in parts:
        more, assigned = _tests(pattern, part)
        tests += more
        names += assigned
    return tests, names


def _sequence(pattern: ast.MatchSequence, subject: ast.expr) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    patterns = pattern.patterns
    stars = [k for k, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
    length, count = _call(len, subject), len(patterns) - len(stars)
    is_sequence = _call(isinstance, subject, ast.Tuple([_object(k) for k in _SEQUENCES], ast.Load()))
    texts = ast.Tuple([_object(k) for k in _TEXTS], ast.Load())
    is_text = ast.UnaryOp(ast.Not(), _call(isinstance, subject, texts))
    fits = ast.Compare(length, [ast.GtE() if stars else ast.Eq()], [ast.Constant(count)])
    at = stars[0] if stars else len(patterns)
    behind = len(patterns) - at - 1
    places = [(p, ast.Constant(k)) for k, p in enumerate(patterns[:at])]
    places += [(p, ast.Constant(k - behind)) for k, p in enumerate(patterns[at + 1 :])]
    parts = [(p, ast.Subscript(subject, place, ast.Load())) for p, place in places]
    tests, names = _joined([is_sequence, is_text, fits], parts)
    star = patterns[at] if stars else None
    if isinstance(star, ast.MatchStar) and star.name is not None:
        stop = ast.Constant(-behind) if behind else None
        middle = ast.Subscript(subject, ast.Slice(ast.Constant(at), stop), ast.Load())
        names.append((star.name, _call(list, middle)))
    return tests, names
