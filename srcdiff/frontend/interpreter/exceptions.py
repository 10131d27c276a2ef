"""`try`: a caught exception is an exit of its body, as `break` is an exit of a loop.

    try:                           if x <= 0.0:                 a test that foresees the exception
        y = math.log(x)                exit_code = 10
    except ValueError:             else:
        y = -1.0                       y = math.log(x); exit_code = 0
                                   if exit_code == 10:
                                       y = -1.0

The exception classes are known at compile time, and so is the clause that catches each of them. Exceptions without a
clause are raised as usual.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import MISSING, Abstract, Caught, Poison, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import FIRST_CAUGHT, GOES_ON, Escaped, Key, Location
from srcdiff.frontend.interpreter.evaluation import evaluate
from srcdiff.frontend.interpreter.forks import escape, fork, is_among, knowing_exit
from srcdiff.frontend.interpreter.joins import possible
from srcdiff.frontend.interpreter.statements import after_exit, go_on, read_statements
from srcdiff.frontend.interpreter.strings import argument_of
from srcdiff.frontend.interpreter.tables import statement
from srcdiff.ir.nodes import Block, Call, Custom, Derivative, Formatted, Library, Operation, Raise, Value, walk
from srcdiff.quick_dataclasses import dataclass

_MAY_FAIL = frozenset(("eigh", "eig", "svd", "svd_full", "pinv", "lstsq", "lstsq_residuals", "matrix_rank", "roots"))
"""Calls of LAPACK that raise an exception if they do not converge. No test can predict that."""
_MOST_KINDS = 100
"""The maximum number of exception classes that can reach one `try`."""


@dataclass(eq=False, slots=True)
class Handler:
    """A `try` statement whose body is being read."""

    clauses: list[tuple[type[BaseException], ...]]
    """The classes that each `except` catches."""
    frame_number: int
    first: int
    keeps: bool
    """Whether the arguments of an exception are used."""
    kinds: dict[type[BaseException], int] = field(default_factory=dict)
    """The exceptions of the body, each with its exit code."""

    @property
    def codes(self) -> set[int]:
        return set(self.kinds.values())

    def catches(self, kind: type[BaseException]) -> bool:
        return any(issubclass(kind, clause) for clause in self.clauses)

    def clause_of(self, kind: type[BaseException]) -> int:
        return next(k for k, clause in enumerate(self.clauses) if issubclass(kind, clause))

    def arguments_key(self, code: int) -> Key:
        """The variable that holds the arguments of an exception."""
        return (self.frame_number, f"%raised{code}")

    def catch(self, reader: Reader, condition: Value | None, kind: type[BaseException], parts: tuple[Any, ...]) -> None:
        """Exit to the clause that catches the exception, always or under a condition."""
        code = self.kinds.setdefault(kind, self.first + len(self.kinds))
        assert len(self.kinds) <= _MOST_KINDS
        kept: dict[Location, Abstract] = {self.arguments_key(code): kept_arguments(parts)} if self.keeps else {}
        if condition is None or reader.constants.get(condition) is True:
            reader.cells.update(kept)
            raise Escaped(Static(code))
        escape(reader, condition, Static(code), kept)


@statement(ast.Try)
def try_statement(reader: Reader, node: ast.Try) -> None:
    clauses = [caught_classes(reader, clause) for clause in node.handlers]
    if node.finalbody:
        require_plain_ending(reader, node)
    around = reader.context.handlers if reader.may_escape else ()
    first = FIRST_CAUGHT + _MOST_KINDS * len(around)
    keeps = any(c.name is not None or reraises(c) for c in node.handlers)
    handler = Handler(clauses, reader.context.exits, first, keeps)
    start, level, reader.level = len(reader.operations), reader.level, len(reader.stack)
    try:
        with reader.within(handlers=(*around, handler)):
            read_statements(reader, node.body)
        require_foreseen(reader, handler, reader.operations[start:], node)
        if not reader.dead:
            with reader.within(handlers=around):
                dispatch(reader, node, handler, 0)
                finish(reader, node)
    finally:
        reader.level = level


def caught_classes(reader: Reader, clause: ast.ExceptHandler) -> tuple[type[BaseException], ...]:
    """The classes in an `except` clause."""
    if clause.type is None:
        return (BaseException,)
    found = evaluate(reader, clause.type)
    kinds = found.items if isinstance(found, Tuple) else (found,)
    if not all(isinstance(k, Static) and isinstance(k.value, type) for k in kinds):
        reader.refuse("SD101", clause.type, "`except` takes an exception class, or a tuple of classes")
    return tuple(k.value for k in kinds if isinstance(k, Static))


def reraises(clause: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(clause))


def require_plain_ending(reader: Reader, node: ast.Try) -> None:
    """Refuse a `finally` that leaves the statement in another way."""
    leaving = (ast.Return, ast.Break, ast.Continue, ast.Raise)
    for inner in (n for one in node.finalbody for n in ast.walk(one)):
        if isinstance(inner, leaving):
            word = type(inner).__name__.lower()
            reader.refuse("SD101", inner, f"`{word}` in `finally` is not supported", help_="write it after the `try`")


def dispatch(reader: Reader, node: ast.Try, handler: Handler, k: int) -> None:
    """Read the clauses from this one on, and `else`, each under the condition that reaches it."""
    code = reader.exit
    ways = possible(reader, code)
    if k == len(node.handlers):
        if isinstance(code, Static) and code.value == GOES_ON:
            read_statements(reader, node.orelse)
        elif not isinstance(code, Static) and node.orelse and GOES_ON in ways:
            go_on(reader, code, node.orelse)
        return
    kinds = {kind: c for kind, c in handler.kinds.items() if handler.clause_of(kind) == k and c in ways}
    if not kinds:
        dispatch(reader, node, handler, k + 1)
        return
    wanted = frozenset(kinds.values())

    def clause() -> None:
        knowing_exit(reader, code, wanted)
        enter_clause(reader, node.handlers[k], handler, kinds)

    def others() -> None:
        knowing_exit(reader, code, ways - wanted)
        dispatch(reader, node, handler, k + 1)

    if isinstance(code, Static):
        clause()
        return
    fork(reader, is_among(reader, code, wanted), clause, others)


def enter_clause(
    reader: Reader, clause: ast.ExceptHandler, handler: Handler, kinds: dict[type[BaseException], int]
) -> None:
    """Read the statements of an `except`."""
    code = reader.exit
    key = None if clause.name is None else (reader.frame.number, clause.name)
    if key is not None:
        reader.cells[key] = exception_caught(reader, clause, handler, kinds)
    with reader.within(handling=functools.partial(raise_again, handler=handler, kinds=kinds, code=code)):
        after_exit(reader, clause.body)
    reader.cells.pop(key, None)  # type: ignore[arg-type]
    for one in kinds.values():
        reader.cells.pop(handler.arguments_key(one), None)


def kept_arguments(parts: tuple[Any, ...]) -> Tuple:
    """The arguments of an exception as one value that branches can join."""
    return Tuple(
        tuple(
            Tuple((Static(p.template), *p.values), Formatted) if isinstance(p, Formatted) else argument_of(p)
            for p in parts
        )
    )


def arguments_of(kept: Abstract) -> tuple[Any, ...] | None:
    """The arguments of an exception, if they are equal on all paths, or the results of one computation."""
    if not isinstance(kept, Tuple):
        return None
    found: list[Any] = []
    for one in kept.items:
        if isinstance(one, Tuple) and one.kind is Formatted:
            template, *values = one.items
            if not isinstance(template, Static):
                return None
            found.append(Formatted(template.value, tuple(values)))  # type: ignore[arg-type]
        elif isinstance(one, Static | Value):
            found.append(one.value if isinstance(one, Static) else one)
        else:
            return None
    return tuple(found)


def exception_caught(
    reader: Reader, clause: ast.ExceptHandler, handler: Handler, kinds: dict[type[BaseException], int]
) -> Abstract:
    """The value that `except ... as e` binds."""
    found = {kind: arguments_of(reader.cells.get(handler.arguments_key(code), MISSING)) for kind, code in kinds.items()}
    (kind, parts), *others = found.items()
    if not others and parts is not None:
        return Caught(kind, parts)
    message = f"`{clause.name}` is one of several exceptions here, or its arguments differ from path to path"
    return Poison(Problem("SD202", message, reader.span_of(clause), help="write an `except` for each of them"))


def raise_again(reader: Reader, handler: Handler, kinds: dict[type[BaseException], int], code: Abstract) -> None:
    """`raise` in an `except` clause: raise the caught exception again."""
    (kind, number), *others = kinds.items()

    def this() -> None:
        parts = arguments_of(reader.cells.get(handler.arguments_key(number), MISSING))
        reader.raise_now(kind, parts if parts is not None else (f"{kind.__name__} again",))

    if not others:
        this()
        return
    is_it = is_among(reader, code, frozenset((number,)))
    fork(reader, is_it, this, lambda: raise_again(reader, handler, dict(others), code))


def finish(reader: Reader, node: ast.Try) -> None:
    """Read `finally`. It runs on every exit, and the exit then continues."""
    if not node.finalbody or reader.dead:
        return
    key = (reader.context.exits, f"%left_{node.lineno}_{node.col_offset}")
    reader.cells[key] = reader.exit
    after_exit(reader, node.finalbody)
    if not reader.dead:
        reader.cells[reader.exit_key] = reader.cells.pop(key)


def require_foreseen(reader: Reader, handler: Handler, operations: list[Operation], node: ast.Try) -> None:
    """Refuse a `try` that may catch an exception for which there is no test."""
    for operation in walk(Block(tuple(operations))):
        kind = operation.exception if isinstance(operation, Raise) else None
        if kind is not None and handler.catches(kind):
            refuse_unforeseen(reader, node, kind, operation, "raised here")
        if (
            isinstance(operation, Library)
            and operation.function in _MAY_FAIL
            and handler.catches(np.linalg.LinAlgError)
        ):
            refuse_unforeseen(reader, node, np.linalg.LinAlgError, operation, "that this call may raise")
        if isinstance(operation, Call | Derivative | Custom) and handler.clauses:
            what = {Call: "a recursive function", Derivative: "a derivative", Custom: "a function with a rule"}
            message = f"{what[type(operation)]} is called in a `try`, but the `try` could not catch its exceptions"
            reader.refuse("SD101", node, message, help_="call it outside of the `try`")


def refuse_unforeseen(
    reader: Reader, node: ast.Try, kind: type[BaseException], operation: Operation, where: str
) -> None:
    message = f"this `try` catches a `{kind.__name__}` {where}, which no test can predict"
    problem = Problem("SD101", message, operation.span or reader.span_of(node), help="test the condition with `if`")
    raise Refusal(problem)
