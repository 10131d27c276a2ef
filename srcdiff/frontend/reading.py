"""The result of reading a function: its IR, and facts about its arguments and outside values."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Any

from srcdiff.diagnostics import Span
from srcdiff.frontend.domain.abstract_values import Abstract, List, Stored
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.guards import Guard, Place
from srcdiff.ir.nodes import Program, Value
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A number or an array from the enclosing scope, read again at every call."""

    place: Place
    name: str
    """The variable that is or contains the value."""
    path: tuple[Any, ...]
    """The path of the value in the variable."""
    value: Value

    def read(self) -> Any:
        return self.place.read()


@dataclass(frozen=True, slots=True)
class Passed:
    """A value that is passed to another function of the program."""

    function: str
    parameter: str
    value: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Named:
    """A value that a statement assigns to a name, or returns, as `%return`."""

    name: str
    value: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A function read at certain argument types."""

    program: Program
    """With derivatives inside, the functions that it calls are unfinished: they read outside values directly."""
    arguments: dict[str, Abstract]
    result: Abstract
    outside: tuple[Outside, ...]
    guards: tuple[Guard, ...]
    captured: Captured
    lists: dict[List, Stored]
    """The storage of the lists among the arguments."""
    intermediates: dict[str, Value]
    """Numbers that the function assigns once, by name."""
    assumes_sizes: bool = False
    """Whether it was read without broadcasting sizes that are only one at run time."""
    assumes_pythons: bool = False
    """Whether the program would differ for arguments that are NumPy numbers."""
    unknown_calls: tuple[Any, ...] = ()
    """The problems to report if the backend cannot compile calls of unknown functions."""
    passed: tuple[Passed, ...] = ()
    """The values that were passed to other functions of the program."""
    named: tuple[Named, ...] = ()
    """The values that statements assign to names, or return."""
    outcomes: dict[ast.If, set[bool]] = field(default_factory=dict)
    """The possible outcomes of branches. A condition known at compile time has one outcome."""
    told_options: dict[str, Any] = field(default_factory=dict)
    """The compile options that follow from the Numba options of the functions."""
    differences: tuple[str, ...] = ()
    """Lines where functions compiled by Numba give different numbers, and the reason."""
    changed_lists: tuple[str, ...] = ()
    """The caller's lists that it changes."""
    written_kinds: frozenset[type] = frozenset()
    """The classes whose instances are written, so that they have an identity."""
    held_outside: tuple[Place, ...] = ()
    """The places of outside lists, and of outside instances of these classes."""
    changed_attributes: tuple[str, ...] = ()
    """The attributes of the caller's objects that it assigns."""
    draws: bool = False
    """Whether it draws random numbers. Then it must not be called twice, because the draws would differ."""
    unchosen: frozenset[Value] = frozenset()
    """Parameters in active structures without derivative, because the caller has chosen others."""
    meanings: tuple[tuple[str, Span], ...] = ()
    """The methods and comparisons of whole arrays in the user's code, which other libraries may define otherwise: their
    names, with `(...)` again if they have arguments, and their places."""
