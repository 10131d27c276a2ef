"""The reader of a program: the state and place of the interpretation, the operations so far, and the facts learned.

The reader writes operations (ir/builder.py, shapes.py). The functions for syntax are in `interpreter/` and `handlers/`.
They take the reader as their first argument, and tables find them (interpreter/tables.py).
"""

from __future__ import annotations

import ast
import contextlib
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, Object, Poison, Static
from srcdiff.frontend.domain.shapes import Doubt, Shapes, may_meet
from srcdiff.frontend.domain.sizes import Key as SizeKey
from srcdiff.frontend.domain.state import DEAD, GOES_ON, RAISES, CellsOf, Context, Frame, Key, Mark, NeverReturns, State
from srcdiff.frontend.reading import Named, Outside, Passed
from srcdiff.frontend.source.declared_rules import RulesRead
from srcdiff.frontend.source.guards import Guards, Place
from srcdiff.ir.nodes import Block, CoordinateKind, If, Index, Operation, Raise, Value
from srcdiff.ir.types import INT
from srcdiff.signature.descriptions import Description

if TYPE_CHECKING:
    from srcdiff.frontend.interpreter.forks import Escape
    from srcdiff.frontend.interpreter.growth import Called
    from srcdiff.frontend.interpreter.joins import ExitsMet
    from srcdiff.frontend.interpreter.recursive_results import Unit

_MAY_BE_A_COPY = (
    "this writes to an array that may be a view of another array, or a copy: a reshaped array, a diagonal, or the "
    "result of a recursive function"
)


class Reader(Shapes):
    """Reads a function into IR."""

    def __init__(self, frame: Frame) -> None:
        self.state = State()
        self.cells = CellsOf(self)
        self.context = Context(frame, exits=frame.number)
        super().__init__()
        self.main_number = frame.number

        # -- how to read
        self.exact = False
        """Whether sizes that are one only at run time are broadcast."""
        self.trusted = False
        """Whether sizes are assumed to be equal where required: in adjoints of library calls with checked arguments."""
        self.is_kernel = False
        """Whether the function runs in a GPU thread."""
        self.error_model = ""
        """The requested error model, which overrides the Numba options."""
        self.split: set[ast.AST] = set()
        """Branches and loops whose paths are not joined, because a name would have two types."""

        self.stateful: set[Any] = set()
        """Classes whose instances are written to, and places that make dictionaries which are changed.

        These are objects with identity, all others are values.
        """
        self.dictionary_keys: dict[tuple[int, str], Any] = {}
        """The keys of dictionaries that are changed, by the variables that hold their values."""
        self.unordered: set[int] = set()
        """The numbers of dictionaries whose keys are in another order on some path."""
        self.defaults: dict[type, Mapping[str, Abstract]] = {}
        """Class attributes that instances do not have themselves."""
        self.objects: dict[int, Object] = {}
        """The objects, by the number of their scope."""
        self.class_scopes: dict[type, Object] = {}
        """The scopes of classes whose attributes are assigned."""
        self.typed: dict[Any, Any] = {}
        """The element types declared to Numba: of its lists, and of dictionaries by the place that creates them."""
        self.used_objects: set[int] = set()
        """The numbers of objects that were read or written since the innermost derivative began."""
        self.constructing: list[Object] = []
        """Objects whose `__init__` is being read."""
        self.lifted: dict[int, Object | List] = {}
        """The objects for outside instances and their lists, by the identity of these. They exist from the start."""
        self.hoisting = False
        """Whether these objects are being created."""
        self.held_outside: list[Place] = []
        """The places of outside lists and such instances. An argument must not be one of them."""
        self.lifting: list[int] = []
        """The outside instances being opened. An instance may refer to itself."""

        # -- problems
        self.problems: list[Problem] = []
        self.reported: dict[ast.AST, Problem] = {}
        """Syntax outside the language that has been reported already."""
        self.culprits: dict[Problem, ast.AST] = {}
        self.choosing: dict[ast.AST, None] = {}
        self.factories: dict[int, Abstract] = {}
        """The branch or loop after which a name has two types."""
        self.tuples: set[List] = set()
        """The lists that are tuples in Python: their length is known at run time only."""
        self.needs_objects: dict[Problem, type] = {}
        """The problems that may be gone if the instances of a class are read as objects with identity."""
        self.incomplete: dict[type, Problem] = {}
        """Classes whose instances may lack attributes, because of a reported problem."""
        self.missing: dict[tuple[type, str], Problem] = {}
        """The attributes that instances of a class do not have, with the problem of the first use."""
        self.early: list[Problem] = []
        """Reads of values that no iteration has assigned yet."""
        self.poisoned: dict[Any, Abstract] = {}
        """Names that a loop's body makes unusable, with the reason."""
        self.shared: dict[ast.AST, Problem] = {}
        """Statements whose effects others may observe, found in some reading of them."""
        self.unknown_calls: list[Problem] = []
        """Calls of unknown functions, as problems for a backend that does not know these functions either."""
        self.differences: dict[tuple[str, int], str] = {}
        """Lines where functions compiled by Numba give different numbers, and the reason."""
        self.meanings: dict[tuple[str, Span], None] = {}
        """The methods and comparisons of whole arrays in the user's code, and their places."""

        # -- the program, besides its operations
        self.guards = Guards()
        self.rules = RulesRead()
        """The rules of users for the functions that the program calls."""
        self.outside: list[Outside] = []
        self.first: list[Operation] = []
        """Operations at the start of a kernel: coordinates, and arrays of constant size."""
        self.coordinates: dict[tuple[CoordinateKind, int], Value] = {}
        self.device_arrays: dict[Any, Value] = {}
        self.units: dict[Any, Unit] = {}
        """Recursive functions at certain argument types."""
        self.told_options: dict[str, Any] = {}
        """The compile options that the Numba options of the functions require."""
        self.handed_over: list[Passed] = []
        self.named: list[Named] = []
        self.assigned: dict[str, list[Value]] = {}
        """The values that the differentiated function assigns to each name."""
        self.outcomes: dict[ast.If, set[bool]] = {}
        """The possible outcomes of the branches in the differentiated function."""
        self.changed: set[List] = set()
        """Lists that the program changes, and the lists that contain them."""

        # -- assumptions: if one does not hold, the program is read again
        self.assumes = False
        """Whether sizes were assumed to be equal although one of them might be one."""
        self.assumes_pythons = False
        """Whether the program would differ for arguments that are NumPy numbers."""

        # -- calls
        self.chain: list[Called] = []
        """The calls being read, including those around recursive functions."""
        self.deepest: Span | None = None
        """The place where calls were nested more deeply than Python allows."""
        self.led_to: dict[str, Span] = {}
        """For each other file that has been read, the call that led there."""
        self.calls_around: dict[str, Span] = {}
        """The same for the calls being read."""
        self.reached: dict[Problem, dict[str, Span]] = {}
        """For each problem, the calls being read when it was found."""
        self.recursive: set[Any] = set()
        """Functions, with their arguments, that call themselves."""
        self.units_in_progress: list[Unit] = []
        self.unknown: set[str] = set()
        """Recursive functions that were called before their result type was known."""
        self.stand_ins: set[Any] = set()
        """Sizes of the arguments of the derivative being read."""

        # -- exceptions that are caught
        self.escapes: list[Escape] = []
        """Places in the current statement that may raise. The code that follows is written into a branch."""
        self.level = 0
        """The number of open blocks in which such a branch may begin. Elementwise loops allow none."""
        self.codes: dict[Value, frozenset[int]] = {}
        """The possible exits of the statements, for the value that holds the exit code."""
        self.exits_met: dict[Value, ExitsMet] = {}
        """The joins of two exits."""

        # -- loops
        self.learned: dict[Any, dict[Any, Description]] = {}
        """The values that a loop was found to carry, for its next reading."""
        self.unsettled: set[Any] = set()
        """Loops whose carried values reach no fixed point."""
        self.not_pythons: set[Any] = set()
        """Loop-carried numbers that are Python's before the loop, but not in all iterations."""
        self.sure: set[ast.AST] = set()
        """Loops that are known to run at least once."""
        self.levels: dict[tuple[ast.AST, int], ast.AST] = {}
        """Nested loops that stand for one loop over all indices of an array."""
        self.conditions: set[ast.AST] = set()
        """`and` and `or` of which only the truth value is used."""

        # -- facts about values, which hold wherever the value is
        self.pending: weakref.WeakSet[Lazy] = weakref.WeakSet()
        """Arrays that are not computed yet."""
        self.storage: set[Value] = set()
        """The arrays that store lists. Nothing else refers to them."""
        self.stands_for_list: dict[Value, frozenset[Value]] = {}
        """The storage of lists from recursive functions, with the storage of the lists that they may be in Python."""
        self.given_for: dict[Doubt, Value] = {}
        """The arguments of a recursive function that it may have returned."""
        self.boxes: dict[Value, bool] = {}
        """Numbers that are arrays without axes in NumPy, and whether they are views."""
        self.boxed: set[Key] = set()
        """Names that are assigned such numbers."""
        self.mixed: set[Any] = set()
        """Names that are numbers on some paths, and arrays without axes on others."""
        self.numpys: set[Value] = set()
        """Constants that are NumPy's."""
        self.computed_by_numpy: set[Value] = set()
        """Numbers that are NumPy's: elements of arrays, and results of NumPy's functions."""
        self.held: dict[Value, str] = {}
        """Integers that are elements of arrays, and their type in NumPy."""
        self.became_floats = 0
        """The number of integers that have become floats in joins."""
        self.powers: set[Value] = set()
        """Floats that are integers in Python, but may be inexact: powers of integers other than two; sums, products."""
        self.exponents: dict[Value, tuple[Value, ...]] = {}
        """Floats that are integers in Python unless one of these exponents is below zero: these, and powers of two."""
        self.whole: set[Value] = set()
        """Floats to differentiate by that the caller passes as integers."""
        self.unchosen: set[Value] = set()
        """Parameters in structures to differentiate by that have no derivative."""

    # -- the state ---------------------------------------------------------------------------------------------------

    def update(self, **changes: Any) -> None:
        """Make a state with other fields the current one."""
        self.state = replace(self.state, **changes)

    @property
    def same(self) -> Mapping[SizeKey, SizeKey]:
        return self.state.same

    @same.setter
    def same(self, same: Mapping[SizeKey, SizeKey]) -> None:
        self.update(same=same)

    @property
    def dead(self) -> bool:
        """Whether this place is unreachable because an exception was raised."""
        return self.state.dead

    @property
    def exit_key(self) -> Key:
        return (self.context.exits, "%exit")

    @property
    def exit(self) -> Abstract:
        """The exit code of the statements of this call, so far."""
        return self.cells.get(self.exit_key, Static(GOES_ON))

    def leave(self, how: int) -> None:
        self.cells[self.exit_key] = Static(how)

    def die(self) -> None:
        self.cells[DEAD] = Static(True)
        self.leave(RAISES)

    def forget_frame(self, frame: Frame) -> None:
        """Forget the names of a call that has returned, if no function inside it refers to them."""
        cells = self.state.cells.items()
        self.update(cells={k: x for k, x in cells if not isinstance(k, tuple) or k[0] != frame.number})

    def mark(self) -> Mark:
        """The current point of the interpretation, to return to."""
        pending = tuple((lazy, lazy.array) for lazy in self.pending)
        early, escapes = tuple(self.early), len(self.escapes)
        return Mark(self.state, len(self.operations), len(self.problems), early, pending, escapes)

    def go_back(self, mark: Mark) -> None:
        """Undo the reading since the mark, and forget what was learned."""
        self.drop_escapes(mark.escapes)
        self.state, self.early = mark.state, list(mark.early)
        del self.operations[mark.operations :], self.problems[mark.problems :]
        self.pending.clear()
        for lazy, array in mark.pending:
            lazy.array = array
            self.pending.add(lazy)

    # -- the context -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def within(self, **changes: Any) -> Iterator[None]:
        """Read something in another context, and then restore this one."""
        before, self.context = self.context, replace(self.context, **changes)
        try:
            yield
        finally:
            self.context = before

    @contextlib.contextmanager
    def at(self, span: Span | None) -> Iterator[None]:
        """Write operations for another place of the source, and then restore this one."""
        before, self.span = self.span, span
        try:
            yield
        finally:
            self.span = before

    @property
    def frame(self) -> Frame:
        return self.context.frame

    @property
    def path(self) -> tuple[int, ...]:
        return self.context.path

    @property
    def has_numpys(self) -> bool:
        """Whether numbers may be NumPy's, with types of their own: not in our functions, and not in GPU code."""
        return not self.frame.library and not self.is_kernel

    # -- problems ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def led_into(self, file: str, call: Span | None) -> Iterator[None]:
        """Read a function of another file. Its problems are shown with the call that leads there."""
        before = self.calls_around
        if call is not None and file != self.frame.file:
            self.led_to.setdefault(file, call)
            self.calls_around = {**before, file: call}
        try:
            yield
        except Refusal as refusal:
            self.note_reached(refusal.problem)
            raise
        finally:
            self.calls_around = before

    def note_reached(self, problem: Problem | None) -> None:
        if problem is not None and self.calls_around:
            self.reached.setdefault(problem, self.calls_around)

    def span_of(self, node: ast.AST) -> Span:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        same_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", column) if same_line else 10_000
        return Span(self.frame.file, line, column, end, self.frame.name)

    def refuse(self, code: str, node: ast.AST | None, message: str, label: str = "", help_: str = "") -> NoReturn:
        span = self.span if node is None or self.frame.library else self.span_of(node)
        raise Refusal(Problem(code, message, span, label, help=help_))

    def refuse_poison(self, poison: Poison) -> NoReturn:
        raise Refusal(poison.problem)

    def too_early(self, problem: Problem, exception: type[BaseException], text: str) -> NoReturn:
        """A value is needed that only an earlier iteration can assign. In the first iteration, that raises."""
        self.early.append(problem)
        self.raise_always(exception, text)

    def raise_always(self, exception: type[BaseException], text: str) -> NoReturn:
        """Raise an exception here on every path."""
        self.raise_now(exception, (text,))

    def raise_now(self, exception: type[BaseException], parts: tuple[Any, ...]) -> NoReturn:
        """Raise an exception with these arguments."""
        handler = self.catching(exception)
        if handler is not None and self.may_escape:
            handler.catch(self, None, exception, parts)
        self.add(Raise(exception, parts, span=self.span))
        raise NeverReturns

    def raise_if(self, condition: Value, exception: type[BaseException], *parts: Any) -> None:
        handler = self.catching(exception)
        if handler is not None and self.may_escape and self.constants.get(condition) is not False:
            handler.catch(self, condition, exception, parts)
            return
        self.add(If(condition, Block((Raise(exception, parts, span=self.span),)), Block(), span=self.span))

    def catching(self, exception: type[BaseException]) -> Any:
        """The innermost enclosing `try` that catches such an exception."""
        return next((h for h in reversed(self.context.handlers) if h.catches(exception)), None)

    @property
    def may_escape(self) -> bool:
        """Whether the following code can be written into a branch."""
        return len(self.stack) == self.level

    def drop_escapes(self, count: int) -> None:
        """Discard the open branches and their contents."""
        while len(self.escapes) > count:
            self.escapes.pop()
            self.operations = self.stack.pop()
            self.level -= 1

    def guard(self, place: Place, value: Any) -> None:
        """Record a guard for an outside value, unless our own functions read it."""
        if not self.frame.library:
            self.guards.add(place, value)

    def note_meaning(self, name: str, node: ast.AST, *, has_arguments: bool = False) -> None:
        """Record a method or comparison of an array, unless our own functions use it."""
        if not self.frame.library:
            self.meanings[name, self.span_of(node)] = None
            if has_arguments:
                self.meanings[f"{name}(...)", self.span_of(node)] = None

    # -- operations --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def into(self, operations: list[Operation]) -> Iterator[None]:
        """Append operations to an unfinished block."""
        self.stack.append(self.operations)
        self.operations = operations
        try:
            yield
        finally:
            self.operations = self.stack.pop()

    def load(self, array: Value, indices: tuple[Value, ...], name: str = "") -> Value:
        value = super().load(*self.seen_element(array, indices), name)
        if array not in self.storage:
            self.computed_by_numpy.add(value)
        if value.type == INT and array not in self.storage:
            self.held[value] = array.array.dtype
        return value

    def store(self, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
        array, indices = self.seen_element(array, indices)
        if array not in self.storage:  # storage has no other references
            self.may_write(array)
        super().store(array, indices, value, adds)

    def seen_element(self, array: Value, indices: tuple[Value, ...]) -> tuple[Value, tuple[Value, ...]]:
        """The element of which an array without axes is a view."""
        whole, items = self.parts.get(array, (array, ()))
        place = tuple(i.value for i in items if isinstance(i, Index))
        return (whole, place) if array.array.rank == 0 and place and len(place) == len(items) else (array, indices)

    def may_write(self, array: Value) -> None:
        """Refuse a write into an array with unknown aliases."""
        base, origins = self.base(array), self.origins_of(array)
        made = self.born[base] if base in self.new else 0  # later arrays cannot be affected
        if any(may_meet(origins, d.array | d.copied) for d in self.state.doubts if made <= d.born):
            self.refuse("SD303", None, _MAY_BE_A_COPY, help_="copy the array before writing to it: `.copy()`")
