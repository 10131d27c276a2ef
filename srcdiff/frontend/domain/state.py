"""The state of abstract interpretation: what variables and lists hold, and what is known, at one place of the program.

A state is frozen. It is forked at a branch: both sides start from the same one. Where the sides meet, their states are
joined (interpreter/joins.py). A loop reads its body from a state that holds in every iteration, until joining the state
after the body changes nothing: a fixed point (interpreter/fixed_point.py).

The context says where in the program this is: the call, the loops around it, and the way that leads there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, scope_numbers
from srcdiff.frontend.domain.shapes import Doubt
from srcdiff.frontend.domain.shapes import Key as SizeKey
from srcdiff.ir.nodes import Value

if TYPE_CHECKING:
    from srcdiff.frontend.domain.reader import Reader
    from srcdiff.frontend.source.capture import Captured
    from srcdiff.frontend.source.numba_options import Told

Key = tuple[int, str]
"""A variable: the number of the call or the object that it belongs to, and its name. Names with `%` are not users'."""

Location = Key | List
"""What holds a value: a variable, or a list on the heap."""

Cells = Mapping[Location, Abstract]

DEAD: Key = (0, "%dead")
"""Holds something if the place cannot be reached: the program has raised."""

DRAWS: Key = (0, "draws")
"""The number of random numbers drawn so far: what draws takes it, and gives the next one."""

# How a block of statements was left. The reverse sweep then knows only `if` and loops.
# ENDS is the end of a `while` whose condition is part of its body.
GOES_ON, CONTINUES, BREAKS, RETURNS, RAISES, ENDS = 0, -1, 1, 2, 3, 4

# Codes from here on are exceptions that a `try` around catches, one for each class of exceptions of each `try`.
FIRST_CAUGHT = 10


@dataclass(eq=False, slots=True)
class Frame:
    """A call being read: a number for its names, the function, and the frame it was defined in."""

    captured: Captured | None
    node: ast.FunctionDef | ast.Lambda
    file: str
    name: str
    parent: Frame | None
    locals: frozenset[str]
    nonlocals: frozenset[str] = frozenset()
    library: bool = False
    """Whether it is one of our own functions: it takes arrays that are not computed yet, and writes into none."""
    told: Told | None = None
    """The Numba options, if Numba compiles the function or one of its callers."""
    number: int = field(default_factory=lambda: next(scope_numbers))

    def again(self) -> Frame:
        """Another call of the same function."""
        return replace(self, number=next(scope_numbers))


@dataclass(frozen=True, slots=True)
class State:
    """What holds at one place of the program."""

    cells: Cells = field(default_factory=dict)
    """The abstract value of each variable, and the contents of each list."""
    same: Mapping[SizeKey, SizeKey] = field(default_factory=dict)
    """Sizes that the program has checked to be equal on this path, and what else it has checked: see shapes.py."""
    doubts: frozenset[Doubt] = frozenset()
    """Arrays of which it is not known whether they share memory: nothing may be written into them."""
    same_lists: frozenset[frozenset[List]] = frozenset()
    """Pairs of lists that may be one list in Python."""

    def with_cells(self, cells: Cells) -> State:
        return replace(self, cells=cells)

    @property
    def dead(self) -> bool:
        return DEAD in self.cells


@dataclass(frozen=True, slots=True)
class Context:
    """Where in the program it is."""

    frame: Frame
    path: tuple[int, ...] = ()
    """The calls and unrolled iterations that lead there."""
    loop_depth: int = 0
    awaited: frozenset[Key] = frozenset()
    """Names that a loop around may have assigned in an earlier iteration."""
    ends_early: bool = False
    """Whether what goes through something may stop before its end."""
    active_calls: tuple[tuple[Any, Any], ...] = ()
    """The calls that are being inlined: the function with its arguments, known lists by themselves and by kind."""
    unit_frame: Frame | None = None
    """The call of the recursive function that is being read."""
    lists_given: frozenset[List] = frozenset()
    """The lists that this recursive function can reach."""
    lent: frozenset[Value] = frozenset()
    """Storage of lists that it was given to read."""
    exits: int = 0
    """The number of the call whose statements are being read: lambdas and comprehensions have none."""
    handlers: tuple[Any, ...] = ()
    """The `try` statements around, from the outermost to the innermost: see interpreter/escapes.py."""
    handling: Any = None
    """In an `except` clause, what raises the exception again that was caught."""
    consumer: Any = None
    """What goes through the generator whose body is being read: see interpreter/generators.py."""
    implemented: frozenset[Any] = frozenset()
    """The declared rules whose implementations are being read: there, their functions are the original ones."""


class CellsOf(MutableMapping[Location, Abstract]):
    """The cells of the current state. A change makes another state the current one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def __getitem__(self, key: Location) -> Abstract:
        return self.reader.state.cells[key]

    def __setitem__(self, key: Location, value: Abstract) -> None:
        state = self.reader.state
        self.reader.state = state.with_cells({**state.cells, key: value})

    def __delitem__(self, key: Location) -> None:
        state = self.reader.state
        self.reader.state = state.with_cells({k: x for k, x in state.cells.items() if k != key})

    def update(self, changes: Mapping[Location, Abstract]) -> None:  # type: ignore[override]
        state = self.reader.state
        self.reader.state = state.with_cells({**state.cells, **changes})

    def __iter__(self) -> Iterator[Location]:
        return iter(self.reader.state.cells)

    def __len__(self) -> int:
        return len(self.reader.state.cells)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far reading has got."""

    state: State
    operations: int
    problems: int
    early: tuple[Problem, ...]
    pending: tuple[tuple[Lazy, Value | None], ...]
    escapes: int = 0


class UnknownResult(Exception):  # noqa: N818 -- a signal, not an error
    """A recursive call was reached before the type of its result is known: the function will be read again."""


class NeverReturns(Exception):  # noqa: N818 -- a signal, not an error
    """A function that was called raises on every path."""


class Escaped(Exception):  # noqa: N818 -- a signal, not an error
    """What was to be computed raises an exception that is caught; the rest of the statement is not read."""

    def __init__(self, code: Abstract) -> None:
        self.code = code


class RecursionFound(Exception):  # noqa: N818 -- a signal, not an error
    """A function that is being inlined calls itself: it must become a function of its own."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class IsWritten(Exception):  # noqa: N818 -- a signal, not an error
    """Somebody writes to an instance of a class, or to a dictionary: the program is read again, with objects of it."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Found:
    """An instance that was found outside, with its place and the name of the variable that it is part of."""

    value: Any
    place: Any
    name: str
    path: tuple[Any, ...]


class IsMentioned(Exception):  # noqa: N818 -- a signal, not an error
    """An instance outside is written to somewhere: the program is read again, with an object for it from the start."""

    def __init__(self, found: Found) -> None:
        self.found = found


class Hopeless(Refusal):
    """A refusal that ends the reading: the statements after it would be read without end."""


def is_variable(key: Location) -> bool:
    return isinstance(key, tuple)


def name_at(key: Location) -> str:
    """The name of a variable, or one for what a list holds."""
    return key[1] if isinstance(key, tuple) else "items"
