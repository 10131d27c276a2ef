"""The tables of the interpreter: the meaning of syntax, functions, methods and kinds of callables.

Each row is one function that takes the reader. A module adds its rows by decorators:

    @expression(ast.IfExp)               def ...(reader, node) -> Abstract
    @statement(ast.While)                def ...(reader, node) -> None
    @compound(ast.If)                    def ...(reader, node, rest) -> bool
    @handles(len, np.size)               def ...(reader, node, *args, **keywords) -> Abstract
    @handles_syntax(print)               def ...(reader, node) -> Abstract | None
    @handles_kind(functools.partial)     def ...(reader, target, args, keywords, node) -> Abstract
    @marked("__srcdiff_rule__")          def ...(reader, target, args, keywords, node) -> Abstract
    @method("list", "append")            def ...(reader, node, owner, *args, **keywords) -> Abstract
    @device("grid")                      def ...(reader, node, *args, **keywords) -> Abstract
    @callee(Closure)                     def ...(reader, function, args, keywords, node) -> Abstract
    @operation(List)                     def ...(reader, operator, left, right, node) -> Abstract | None
    @in_place(Record)                    def ...(reader, operator, old, value, node) -> Abstract | None
    @comparison_of(Record)               def ...(reader, operator, left, right, node) -> Abstract | None
    @unary_of(Record)                    def ...(reader, primitive, operand, node) -> Abstract | None
    @subscripts(List)                    def ...(reader, base, where, node) -> Abstract
    @draws_from("source")                def ...(reader, source, name, args, keywords, node) -> Abstract
    @goes_through(Generated)             def ...(reader, x, take, node, loop) -> Abstract
    @leaves("stored")                    def ...(reader, x, description) -> list[Value]
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from srcdiff.frontend.domain.abstract_values import Abstract
from srcdiff.frontend.domain.reader import Reader
from srcdiff.ir.nodes import Value
from srcdiff.quick_dataclasses import dataclass

Key = TypeVar("Key")
Row = TypeVar("Row", bound=Callable[..., Any])
Run = TypeVar("Run", bound=Callable[..., Any])


class Table(dict[Key, Row]):
    """Rows by what they are found by."""

    def row(self, *keys: Key) -> Callable[[Run], Run]:
        """Add a function as the row for these keys."""

        def add(run: Run) -> Run:
            for key in keys:
                assert key not in self, key
                self[key] = run  # type: ignore[assignment]
            return run

        return add


@dataclass(frozen=True, slots=True)
class Handler:
    """The meaning of a call of a function."""

    run: Callable[..., Abstract]
    lazy: bool
    """Whether it accepts arrays that are not computed yet."""
    consumes: bool
    """Whether it consumes an iterator at once, or lazily."""


EXPRESSIONS = Table[type[ast.AST], Callable[[Reader, Any], Abstract]]()
STATEMENTS = Table[type[ast.AST], Callable[[Reader, Any], None]]()
COMPOUND = Table[type[ast.AST], Callable[[Reader, Any, list[ast.stmt]], bool]]()
"""Statements that may also read the statements after them, once for each path. Then they return true."""
HANDLERS: dict[Any, Handler] = {}
"""Functions, by the object that is called."""
SYNTAX = Table[Any, Callable[[Reader, ast.Call], Abstract | None]]()
"""Functions that are handled before their arguments are evaluated. They may decline."""
KINDS = Table[type, Callable[..., Abstract | None]]()
"""The meaning of calls of objects of a class. They may decline."""
MARKERS: dict[str, Handler] = {}
"""The meaning of calls of objects with this attribute, which srcdiff's own objects have."""
METHODS = Table[tuple[str, str], Callable[..., Abstract]]()
DEVICE = Table[str, Callable[..., Abstract]]()
CALLEES = Table[type, Callable[..., Abstract]]()
"""Abstract values that can be called."""
OPERATIONS = Table[type, Callable[..., Abstract | None]]()
"""Operators, by the kind of one of their operands; they may decline."""
IN_PLACE = Table[type, Callable[..., Abstract | None]]()
"""Operators of augmented assignments, by the kind of their target; they may decline."""
COMPARISONS = Table[type, Callable[..., Abstract | None]]()
"""Comparisons, by the kind of one of their operands; they may decline."""
UNARY = Table[type, Callable[..., Abstract | None]]()
"""Operators with one operand, by its kind; they may decline."""
SUBSCRIPTS = Table[type, Callable[..., Abstract]]()
"""Subscripts, by the kind of the indexed value."""
DRAWS = Table[str, Callable[..., Abstract]]()
"""Methods of sources of random numbers."""
GOES_THROUGH = Table[type, Callable[..., Abstract]]()
"""Iterators that pass their elements to `take` in order. They return the exits, as a loop does."""
LEAVES = Table[str, Callable[..., list[Value]]]()
"""The run-time values of an abstract value, converted to a description of this kind."""

expression, statement, compound = EXPRESSIONS.row, STATEMENTS.row, COMPOUND.row
handles_syntax, handles_kind, callee, device = SYNTAX.row, KINDS.row, CALLEES.row, DEVICE.row
operation, in_place, comparison_of, unary_of = OPERATIONS.row, IN_PLACE.row, COMPARISONS.row, UNARY.row
subscripts, draws_from, goes_through, leaves = SUBSCRIPTS.row, DRAWS.row, GOES_THROUGH.row, LEAVES.row


def handles(*functions: Any, lazy: bool = False, consumes: bool = False) -> Callable[[Run], Run]:
    def add(run: Run) -> Run:
        for function in functions:
            assert function not in HANDLERS, function
            HANDLERS[function] = Handler(run, lazy, consumes)
        return run

    return add


def marked(attribute: str, *, lazy: bool = False) -> Callable[[Run], Run]:
    def add(run: Run) -> Run:
        assert attribute not in MARKERS, attribute
        MARKERS[attribute] = Handler(run, lazy, consumes=False)
        return run

    return add


def method(kind: str, *names: str) -> Callable[[Run], Run]:
    return METHODS.row(*((kind, name) for name in names))


def row_of_kind(target: Any) -> Callable[..., Abstract | None] | None:
    """The row for the class of an object, or for its nearest base class."""
    return next((KINDS[kind] for kind in type(target).__mro__ if kind in KINDS), None)
