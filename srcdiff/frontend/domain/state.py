"""The state of abstract interpretation at one place of the program: contents of variables and lists, and known facts.

A state is immutable. A branch forks it: both sides start from the same state. At the end of the branch, the two states
are joined (interpreter/joins.py). A loop reads its body from a state that holds in every iteration, until joining it
with the state after the body changes nothing: a fixed point (interpreter/fixed_point.py).

The context is the position in the program: the call, the enclosing loops, and the path that leads there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, scope_numbers
from srcdiff.frontend.domain.shapes import Doubt
from srcdiff.frontend.domain.sizes import Key as SizeKey
from srcdiff.ir.nodes import Value
from srcdiff.quick_dataclasses import dataclass

if TYPE_CHECKING:
    from srcdiff.frontend.domain.reader import Reader
    from srcdiff.frontend.source.capture import Captured
    from srcdiff.frontend.source.numba_options import Told

Key = tuple[int, str]
"""A variable: the number of its call or object, and its name. Names with `%` are internal."""

Location = Key | List
"""The owner of a value: a variable, or a list on the heap."""

Cells = Mapping[Location, Abstract]

DEAD: Key = (0, "%dead")
"""The cell that is set if the place is unreachable, because an exception was raised."""

DRAWS: Key = (0, "draws")
"""The number of random draws so far. A draw takes it and returns the next one."""

# The exits of a block of statements. They become numbers, so that the reverse sweep knows only `if` and loops.
# ENDS is the end of a `while` whose condition is part of its body.
GOES_ON, CONTINUES, BREAKS, RETURNS, RAISES, ENDS = 0, -1, 1, 2, 3, 4

# Larger codes are caught exceptions, one for each exception class of each `try`.
FIRST_CAUGHT = 10


@dataclass(eq=False, slots=True)
class Frame:
    """A call being read: the number for its names, the function, and the enclosing frame."""

    captured: Captured | None
    node: ast.FunctionDef | ast.Lambda
    file: str
    name: str
    parent: Frame | None
    locals: frozenset[str]
    nonlocals: frozenset[str] = frozenset()
    library: bool = False
    """Whether the function is ours: it takes arrays that are not computed yet, and writes into none of them."""
    told: Told | None = None
    """The Numba options, if Numba compiles the function or one of its callers."""
    number: int = field(default_factory=lambda: next(scope_numbers))

    def again(self) -> Frame:
        """The frame of another call of the same function."""
        return replace(self, number=next(scope_numbers))


@dataclass(frozen=True, slots=True)
class State:
    """The abstract state at one place of the program."""

    cells: Cells = field(default_factory=dict)
    """The abstract value of each variable, and the contents of each list."""
    same: Mapping[SizeKey, SizeKey] = field(default_factory=dict)
    """Equalities of sizes checked on this path, and other checked facts: see shapes.py."""
    doubts: frozenset[Doubt] = frozenset()
    """Arrays with unknown aliases. They must not be written."""
    same_lists: frozenset[frozenset[List]] = frozenset()
    """Pairs of lists that may be one list in Python."""

    def with_cells(self, cells: Cells) -> State:
        return replace(self, cells=cells)

    @property
    def dead(self) -> bool:
        return DEAD in self.cells


@dataclass(frozen=True, slots=True)
class Context:
    """The position in the program."""

    frame: Frame
    path: tuple[int, ...] = ()
    """The calls and unrolled iterations that lead there."""
    loop_depth: int = 0
    awaited: frozenset[Key] = frozenset()
    """Names that an enclosing loop may have assigned in an earlier iteration."""
    ends_early: bool = False
    """Whether the consumer of an iterator may stop before its end."""
    active_calls: tuple[tuple[Any, Any], ...] = ()
    """The calls being inlined: functions with their arguments, known lists both by identity and by kind."""
    unit_frame: Frame | None = None
    """The call of the recursive function that is being read."""
    unit_objects: frozenset[int] = frozenset()
    """The numbers of the objects whose attributes this recursive function is given."""
    lists_given: frozenset[List] = frozenset()
    """The lists that this recursive function can reach."""
    lent: frozenset[Value] = frozenset()
    """The storage of lists that it may only read."""
    exits: int = 0
    """The number of the call whose statements are being read. Lambdas and comprehensions have none."""
    handlers: tuple[Any, ...] = ()
    """The enclosing `try` statements, from the outermost to the innermost: see interpreter/exceptions.py."""
    handling: Any = None
    """In an `except` clause, a function that raises the caught exception again."""
    consumer: Any = None
    """The consumer of the generator whose body is being read: see interpreter/generators.py."""
    implemented: frozenset[Any] = frozenset()
    """The declared rules whose implementations are being read. Inside them, their functions are the original ones."""


class CellsOf(MutableMapping[Location, Abstract]):
    """The cells of the current state. A change replaces the current state."""

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
    """A point of the interpretation, to return to."""

    state: State
    operations: int
    problems: int
    early: tuple[Problem, ...]
    pending: tuple[tuple[Lazy, Value | None], ...]
    escapes: int = 0


class UnknownResult(Exception):  # noqa: N818 -- a signal, not an error
    """A recursive call was reached before its result type is known. The function will be read again."""


class NeverReturns(Exception):  # noqa: N818 -- a signal, not an error
    """The called function raises on every path."""


class Escaped(Exception):  # noqa: N818 -- a signal, not an error
    """The expression raises a caught exception. The rest of the statement is not read."""

    def __init__(self, code: Abstract) -> None:
        self.code = code


class RecursionFound(Exception):  # noqa: N818 -- a signal, not an error
    """A function being inlined calls itself, so it must become a separate function."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class IsWritten(Exception):  # noqa: N818 -- a signal, not an error
    """An instance or a dictionary is written. The program is read again, with objects in its place."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ClassAttribute:
    """The kind of `IsWritten` of an attribute of a class that is assigned."""

    kind: type
    name: str


WHOSE = "whose numbers are"
"""The kind of `IsWritten` if an operator must know which numbers are Python's, also after branches and loops."""


EXACT = "exact sizes"
"""The kind of `IsWritten` if a `try` would catch the exception of an assumption about sizes."""


@dataclass(frozen=True, slots=True)
class Found:
    """An outside instance, with its place and the name of the variable that contains it."""

    value: Any
    place: Any
    name: str
    path: tuple[Any, ...]


class IsMentioned(Exception):  # noqa: N818 -- a signal, not an error
    """An outside instance is written. The program is read again, with an object for it from the start."""

    def __init__(self, found: Found) -> None:
        self.found = found


class Hopeless(Refusal):
    """A refusal that ends the reading, because reading further statements would not terminate."""


def is_variable(key: Location) -> bool:
    return isinstance(key, tuple)


def name_at(key: Location) -> str:
    """The name of a variable, or a name for the contents of a list."""
    return key[1] if isinstance(key, tuple) else "items"
