"""Values that may be `None` or unassigned.

After a test (`if y is None`), the name has the tested state. If the state is unknown and a value is needed, the program
raises as in Python.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterator

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Maybe, Missing, Optional, Poison, Static, is_none
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame, Key
from srcdiff.frontend.interpreter.dictionaries import as_mapping, is_changing
from srcdiff.frontend.source.scopes import names_in
from srcdiff.ir.nodes import Value

UNASSIGNED = "cannot access local variable '{}' where it is not associated with a value"


def facts(test: ast.expr, truth: bool) -> dict[str, bool]:
    """The names whose presence (not `None`) follows from the outcome of a test.

    >>> facts(ast.parse("y is None or not z", mode="eval").body, False)
    {'y': True, 'z': True}
    """
    match test:
        case ast.Name():
            return {test.id: True} if truth else {}
        case ast.UnaryOp(op=ast.Not()):
            return facts(test.operand, not truth)
        case ast.BoolOp():
            if isinstance(test.op, ast.And) != truth:
                return {}
            return {n: there for value in test.values for n, there in facts(value, truth).items()}
        case ast.Compare(left=ast.Name(id=name), comparators=[ast.Constant(value=None)]):
            if isinstance(test.ops[0], ast.Is | ast.Eq):
                return {name: not truth}
            if isinstance(test.ops[0], ast.IsNot | ast.NotEq):
                return {name: truth}
    return {}


def present(reader: Reader, x: Abstract) -> Abstract:
    """The value of something that may be `None`. If it is `None`, the program raises as in Python."""
    if not isinstance(x, Optional):
        return x
    if isinstance(x.flag, Value):
        absent = reader.apply("logical_not", x.flag)
        reader.raise_if(absent, TypeError, "the value is None")
    return x.value


def checked(reader: Reader, x: Abstract, name: str, node: ast.AST | None) -> Abstract:
    """The value of something that may be unassigned. If it is, the program raises as in Python."""
    if isinstance(x, Poison):
        raise Refusal(x.problem)
    if isinstance(x, Missing):
        reader.refuse("SD204", node, f"`{name}` is not assigned on this path")
    if isinstance(x, Maybe):
        if isinstance(x.flag, Value):
            reader.raise_if(reader.apply("logical_not", x.flag), UnboundLocalError, UNASSIGNED.format(name))
        return x.value
    return x


def needed(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The value of something that cannot be `None` here, although it may have been before an enclosing loop."""
    if is_none(x) and reader.context.awaited and not reader.frame.library:
        problem = Problem("SD203", "`None` is used where a value is needed", reader.span_of(node))
        reader.too_early(problem, TypeError, "the value is None")
    x = present(reader, x)
    return as_mapping(reader, x) if is_changing(x) else x


def key_of(reader: Reader, name: str) -> Key | None:
    """The variable of a name in the enclosing functions."""
    frame: Frame | None = reader.frame
    while frame is not None:
        if name in frame.locals:
            return (frame.number, name)
        frame = None if frame.captured is not None else frame.parent
    return None


@contextlib.contextmanager
def knowing(reader: Reader, test: ast.expr, truth: bool) -> Iterator[None]:
    """Read code that is only reached if a test had this outcome."""
    replaced: dict[Key, tuple[Abstract, Abstract]] = {}
    for name, there in facts(test, truth).items():
        key = key_of(reader, name)
        before = None if key is None else reader.cells.get(key)
        if key is not None and isinstance(before, Optional):
            replaced[key] = before, before.value if there else Static(None)
            reader.cells[key] = replaced[key][1]
    yield
    for key, (before, now) in replaced.items():
        if reader.cells.get(key) is now:
            reader.cells[key] = before  # it was not assigned, so both sides keep the old value


def asks(reader: Reader, test: ast.expr) -> bool:
    """Whether a test concerns a value that may be `None`."""
    found = [reader.cells.get(key) for key in map(functools.partial(key_of, reader), names_in(test)) if key is not None]
    return any(isinstance(x, Optional) or (isinstance(x, Maybe) and isinstance(x.value, Optional)) for x in found)
