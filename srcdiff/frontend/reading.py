"""What reading a function gives: its IR, and what is known about its arguments and its surroundings."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from srcdiff.diagnostics import Span
from srcdiff.frontend.domain.abstract_values import Abstract, List, Stored
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.guards import Guard, Place
from srcdiff.ir.nodes import Program, Value


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A number or an array from the enclosing scope: read anew at every call."""

    place: Place
    name: str
    """The variable that it is, or is part of."""
    path: tuple[Any, ...]
    """Which part."""
    value: Value

    def read(self) -> Any:
        return self.place.read()


@dataclass(frozen=True, slots=True)
class Passed:
    """A value that is passed to a function of the program."""

    function: str
    parameter: str
    value: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Named:
    """A value that a statement gives a name to, or returns, as `%return`."""

    name: str
    value: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A function read at certain argument types."""

    program: Program
    """Where it has derivatives inside it, the functions that it calls see the outside values: they are not finished."""
    arguments: dict[str, Abstract]
    result: Abstract
    outside: tuple[Outside, ...]
    guards: tuple[Guard, ...]
    captured: Captured
    lists: dict[List, Stored]
    """What stands for lists among the arguments."""
    intermediates: dict[str, Value]
    """Numbers that the function assigns once, by name."""
    assumes_sizes: bool = False
    """Whether it was read as if no size were one that stretches."""
    assumes_pythons: bool = False
    """Whether something else would come of arguments that are numbers of NumPy's."""
    unknown_calls: tuple[Any, ...] = ()
    """The problems to report if the backend does not compile the calls of unknown functions."""
    passed: tuple[Passed, ...] = ()
    """The values that were passed to other functions of the program."""
    named: tuple[Named, ...] = ()
    """The values that statements give names to, or return."""
    outcomes: dict[ast.If, set[bool]] = field(default_factory=dict)
    """How the branches of the function may go; what is known before it runs goes one way."""
    told_options: dict[str, Any] = field(default_factory=dict)
    """The compile options that follow from the Numba options of the functions."""
    differences: tuple[str, ...] = ()
    """Lines in which functions that Numba compiles give other numbers, and why."""
    changed_lists: tuple[str, ...] = ()
    """Lists of the caller's that it changes."""
    written_kinds: frozenset[type] = frozenset()
    """The classes whose instances are written to: they have an identity."""
    held_outside: tuple[Place, ...] = ()
    """Where lists and instances of these classes were found outside."""
    changed_attributes: tuple[str, ...] = ()
    """Attributes of the caller's objects that it assigns."""
    draws: bool = False
    """Whether it draws random numbers: it must not be called a second time, as it would draw others."""
