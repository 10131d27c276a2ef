"""The environment: names and their abstract values, joined where paths meet."""

from __future__ import annotations

import ast
import contextlib
import enum
import itertools
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from srcdiff.diagnostics import InternalError, Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import instead_of, is_plain, named
from srcdiff.frontend.abstract_values import (
    MISSING,
    POISON,
    Abstract,
    Choice,
    Closure,
    Drawn,
    Enumerate,
    Items,
    Lazy,
    List,
    Maybe,
    Method,
    Missing,
    Optional,
    Partial,
    Parts,
    Poison,
    Range,
    Record,
    Reversed,
    Slot,
    Static,
    Stored,
    Text,
    Through,
    Transformed,
    Tuple,
    Zip,
    arrays_in,
    describe,
    is_complex,
    is_without_axes,
    join,
    leaf_types,
    loosened,
    of_parts,
    same_function,
    scalar_of,
)
from srcdiff.frontend.capture import Captured
from srcdiff.frontend.liveness import read_after_iterations
from srcdiff.frontend.numba_options import Told
from srcdiff.frontend.scopes import assigned_names, inner_scopes
from srcdiff.frontend.shapes import ANYTHING, Doubt, Shapes
from srcdiff.frontend.shapes import Key as SizeKey
from srcdiff.ir.nodes import Alloc, Block, If, Loop, NewStack, Operation, Raise, Value
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import BOOL, INT, Array, Stack, Type, is_float
from srcdiff.signature.descriptions import CONTIGUOUS, INTEGER, NUMPYS, Description
from srcdiff.signature.enums import plain_number, spelled

Key = tuple[int, str]

# How a block of statements was left. The reverse sweep then knows only `if` and loops.
# ENDS is the end of a `while` whose condition is part of its body.
GOES_ON, CONTINUES, BREAKS, RETURNS, RAISES, ENDS = 0, -1, 1, 2, 3, 4

_numbers = itertools.count(1)
_MOST_READINGS = 25  # of one loop: types only widen, so that a handful is enough
LISTS = 0  # the frame number under which the contents of lists stand


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
    number: int = field(default_factory=lambda: next(_numbers))

    def again(self) -> Frame:
        """Another call of the same function."""
        return replace(self, number=next(_numbers))


class UnknownResult(Exception):  # noqa: N818 -- a signal, not an error
    """A recursive call was reached before the type of its result is known: the function will be read again."""


class NeverReturns(Exception):  # noqa: N818 -- a signal, not an error
    """A function that was called raises on every path."""


class Hopeless(Refusal):
    """A refusal that ends the reading: the statements after it would be read without end."""


class Environment(Shapes):
    """The state of reading: the names, the problems found, and how paths are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[Key, Abstract] = {}
        self.counters: dict[Value, tuple[Value, Value, Value]] = {}
        """What counts the iterations of a `for`, with its bounds."""
        self.problems: list[Problem] = []
        self.pending: weakref.WeakSet[Lazy] = weakref.WeakSet()
        """Arrays that are not computed yet."""
        self.frame: Frame
        self.learned: dict[Any, dict[Key, Description]] = {}
        self.awaited: frozenset[Key] = frozenset()
        """Names that a loop around may have assigned in an earlier iteration."""
        self.early: list[Problem] = []
        """What was read where no iteration had made it."""
        self.units_in_progress: list[Any] = []
        self.sure: set[ast.AST] = set()
        """Loops of which it is known that they run."""
        self.storage: set[Value] = set()
        """The arrays that lists are stored in, which nothing else refers to."""
        self.poisoned: dict[Key, Abstract] = {}
        """Names that a loop's body leaves unusable, with the reason."""
        self.same_lists: frozenset[frozenset[List]] = frozenset()
        """Pairs of lists that may be one list in Python."""
        self.boxes: dict[Value, bool] = {}
        """Numbers that are arrays without axes in NumPy, and whether of others' memory."""
        self.boxed: set[Key] = set()
        """Names that are given such."""
        self.mixed: set[Key] = set()
        """Names that are numbers on some paths, and arrays without axes on others."""
        self.is_kernel = False
        """Whether it is what a thread of a GPU runs."""
        self.pythons: set[Value] = set()
        """Numbers that are known to be Python's own, not NumPy's."""
        self.numpys: set[Value] = set()
        """Constants that are NumPy's."""
        self.assumes_pythons = False
        """Whether that has made a difference."""
        self.held: dict[Value, str] = {}
        """Integers that are elements of arrays, and the type that NumPy has for them."""
        self.became_floats = 0
        """How many integers have become floats where paths meet."""

    # -- problems ----------------------------------------------------------------------------------------------------

    def span_of(self, node: ast.AST) -> Span:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        same_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", column) if same_line else 10_000
        return Span(self.frame.file, line, column, end, self.frame.name)

    def refuse(self, code: str, node: ast.AST | None, message: str, label: str = "", help_: str = "") -> NoReturn:
        span = self.span if node is None or self.frame.library else self.span_of(node)
        raise Refusal(Problem(code, message, span, label, help=help_))

    # -- exits -------------------------------------------------------------------------------------------------------

    @property
    def exit_key(self) -> Key:
        return (self.frame.number, "%exit")

    @property
    def exit(self) -> Abstract:
        return self.names.get(self.exit_key, Static(GOES_ON))

    def leave(self, how: int) -> None:
        self.names[self.exit_key] = Static(how)

    @property
    def dead(self) -> bool:
        """Whether this place cannot be reached: something was raised."""
        return self.names.get((LISTS, "%dead")) is not None

    def die(self) -> None:
        self.names[(LISTS, "%dead")] = Static(True)
        self.leave(RAISES)

    # -- run-time values ---------------------------------------------------------------------------------------------

    def value(self, x: Abstract, node: ast.AST | None = None) -> Value:
        """The number or array as a run-time value."""
        if isinstance(x, Value):
            return x
        if isinstance(x, Static) and isinstance(x.value, bool | int | float):
            number = x.value if isinstance(x.value, np.generic) else plain_number(x.value)
            if number is None:
                message = f"`{type(x.value).__name__}` defines its own operators, which is not supported"
                self.refuse("SD102", node, message, help_="write an ordinary function for it and call that")
            if isinstance(number, int) and not -(2**63) <= number < 2**63:
                self.refuse("SD203", node, "an integer does not fit into 64 bits", help_="use a float")
            return self.const(number)
        if isinstance(x, Optional):
            return self.value(self.present(x), node)
        if isinstance(x, Maybe | Poison | Missing):
            return self.value(self.checked(x, "a value", node), node)
        help_ = instead_of(type(x.value)) if isinstance(x, Static) and not is_plain(x.value) else ""
        self.refuse("SD203", node, f"{self.in_words(x)} is used where a number is needed", help_=help_)

    def in_words(self, x: Abstract) -> str:
        """The kind of a value, for messages."""
        match x:
            case Value(type=Array()):
                return f"an array ({x.type})"
            case Value():
                return {"int64": "an integer", "bool": "a boolean"}.get(x.scalar.dtype, "a float")
            case Static(value=None):
                return "`None`"
            case Static(value=enum.Enum()):
                return f"`{spelled(x.value)}`"
            case Static():
                return named(x.value)
            case Tuple():
                return "a tuple"
            case Record() if is_complex(x):
                return "a complex array, of which only `.real` is supported,"
            case Record():
                return "a dictionary" if x.kind.is_mapping else f"an instance of `{x.kind.kind.__name__}`"
            case List():
                return "a list"
            case Items() | Stored():
                return "a list"
            case Optional():
                return f"{self.in_words(x.value)} or `None`"
            case Maybe():
                return f"{self.in_words(x.value)} that may not be assigned"
            case Missing():
                return "not assigned"
            case Closure() | Choice() | Transformed() | Partial():
                return "a function"
            case Through():
                return f"`{x.how}(...)`"
            case Drawn():
                return f"`{x.name}(...)`"
            case Text():
                return "a string"
            case Range():
                return "a range"
            case Enumerate() | Zip() | Reversed():
                return f"`{type(x).__name__.lower()}(...)`"
            case Method():
                return f"the method `{x.name}`"
        return "of unknown type"

    def present(self, x: Abstract) -> Abstract:
        """The value of something that may be `None`; where it is, the program raises as it would have."""
        if not isinstance(x, Optional):
            return x
        if isinstance(x.flag, Value):
            absent = self.apply("logical_not", x.flag)
            text = "the value is None"
            self.add(If(absent, Block((Raise(TypeError, (text,), span=self.span),)), Block(), span=self.span))
        return x.value

    def checked(self, x: Abstract, name: str, node: ast.AST | None) -> Abstract:
        """The value of something that may not be assigned; where it is not, the program raises as it would have."""
        if isinstance(x, Poison):
            raise Refusal(x.problem)
        if isinstance(x, Missing):
            self.refuse("SD204", node, f"`{name}` is not assigned on this path")
        if isinstance(x, Maybe):
            if isinstance(x.flag, Value):
                self.raise_if(self.apply("logical_not", x.flag), UnboundLocalError, UNASSIGNED.format(name))
            return x.value
        return x

    def too_early(self, problem: Problem, exception: type[BaseException], text: str) -> NoReturn:
        """What only an earlier iteration of a loop can have made is needed: in the first iteration, that raises."""
        self.early.append(problem)
        self.raise_always(exception, text)

    def raise_always(self, exception: type[BaseException], text: str) -> NoReturn:
        """What the program does here raises."""
        self.add(Raise(exception, (text,), span=self.span))
        raise NeverReturns

    def raise_if(self, condition: Value, exception: type[BaseException], text: str) -> None:
        self.add(If(condition, Block((Raise(exception, (text,), span=self.span),)), Block(), span=self.span))

    def mark(self) -> Mark:
        """Where reading has got to, to go back to."""
        pending = [(lazy, lazy.array) for lazy in self.pending]
        return Mark(dict(self.names), len(self.operations), len(self.problems), self.same, pending, list(self.early))

    def go_back(self, mark: Mark) -> None:
        """Forget what has been read since, and what was learned from it."""
        self.names, self.same = dict(mark.names), mark.same
        del self.operations[mark.operations :], self.problems[mark.problems :]
        self.early = list(mark.early)
        self.pending.clear()
        for lazy, array in mark.pending:
            lazy.array = array
            self.pending.add(lazy)

    def doubt(self, array: Value, copied: Value) -> None:
        """The copy may be a view in NumPy, so that writing into one of them would be seen in the other, or not."""
        if not self.frame.library:
            self.doubts.add(Doubt(self.origins_of(array), self.origins_of(copied), self.born[copied]))

    def has_name(self, array: Value) -> bool:
        """Whether a name may have got the memory of an array; an array that is on its way has none."""
        named = {origin for x in self.names.values() for a in arrays_in(x) for origin in self.origins_of(a)}
        return bool(named & self.origins_of(array))

    def forget_doubts(self, older: set[Doubt], before: dict[Key, Abstract]) -> None:
        """At the end of a statement: whether a copy is a view in NumPy does not matter if no name has got it."""
        if self.doubts <= older:
            return
        changed = [x for k, x in self.names.items() if x is not before.get(k) or isinstance(x, Stored)]
        seen = {origin for x in changed for a in arrays_in(x) for origin in self.origins_of(a)}
        if ANYTHING not in seen:
            self.doubts = {doubt for doubt in self.doubts if doubt in older or doubt.copied & seen}

    def settle(self) -> None:
        """Compute the arrays that are not computed yet: something may be written, or this place be left."""
        raise NotImplementedError

    # -- taking apart and putting together ---------------------------------------------------------------------------

    def fresh(self, d: Description, name: str) -> tuple[Abstract, list[Value]]:
        """New run-time values for something of this description."""
        if d.kind == "value":
            value = self.register(Value(d.detail, name))
            for part in d.parts:
                if part == CONTIGUOUS:
                    self.contiguous.add(value)
                elif part not in (NUMPYS, INTEGER):
                    self.stretches(value, part.detail)
            return value, [value]
        if d.kind == "static":
            return Static(d.detail[1]), []
        if d.kind in ("tuple", "record", "items"):
            parts = [self.fresh(p, d.layout.variable(name, k)) for k, p in enumerate(d.parts)]
            return of_parts(d, (p for p, _ in parts)), [v for _, values in parts for v in values]
        if d.kind == "maybe":
            flag = Value(BOOL, f"{name}_is_set")
            inner, values = self.fresh(d.parts[0], name)
            return Maybe(flag, inner), [flag, *values]
        if d.kind == "optional":
            flag = Value(BOOL, f"{name}_is_there")
            inner, values = self.fresh(d.parts[0], name)
            return Optional(flag, inner), [flag, *values]
        if d.kind == "stored":
            types = leaf_types(d)
            assert types is not None
            arrays = tuple(Value(t, name) for t in types[:-1])
            self.storage.update(arrays)
            length = Value(INT, f"{name}_length")
            return Stored(d.parts[0], arrays, length), [*arrays, length]
        if d.kind == "list":
            handle: List = d.detail
            return handle, []
        if d.kind == "closure":
            node, frame, names = d.detail
            parts = [self.fresh(p, n) for n, p in zip(names, d.parts, strict=True)]
            defaults = dict(zip(names, (p for p, _ in parts), strict=True))
            return Closure(node, frame, defaults), [v for _, values in parts for v in values]
        if d.kind == "choice":
            number = Value(INT, "which")
            return Choice(number, d.detail), [number]
        if d.kind == "owned":
            handle = List()
            self.names[list_key(handle)], values = self.fresh(d.parts[0], name)
            return handle, values
        raise InternalError(f"no fresh value of kind {d.kind}")

    def leaves(self, x: Abstract, d: Description) -> list[Value]:
        """The run-time values of `x`, converted to the description."""
        if d.kind == "maybe":
            inner = x.value if isinstance(x, Maybe) else x
            flag: Abstract = (
                Static(False) if isinstance(x, Missing) else x.flag if isinstance(x, Maybe) else Static(True)
            )
            return [self.value(flag), *self.leaves(inner, d.parts[0])]
        if isinstance(x, Maybe):
            x = x.value
        if d.kind == "optional":
            there = x.flag if isinstance(x, Optional) else Static(not isinstance(x, Missing | Static) or is_number(x))
            inner = x.value if isinstance(x, Optional) else x if there == Static(True) else MISSING
            return [self.value(there), *self.leaves(inner, d.parts[0])]
        if d.kind == "value":
            if isinstance(x, Missing):
                return [self.nothing(d.detail)]
            found = self.value(x)
            if is_without_axes(found.type) and found.type != d.detail:
                found = self.load(found, ())
            self.became_floats += is_float(d.detail) and not is_float(found.type)
            return [self.cast(found, d.detail)]
        if d.kind in ("tuple", "record", "items", "closure"):
            of_closure = tuple(x.defaults.values()) if isinstance(x, Closure) else (MISSING,) * len(d.parts)
            parts = x.items if isinstance(x, Parts) else of_closure
            return [v for p, q in zip(parts, d.parts, strict=True) for v in self.leaves(p, q)]
        if d.kind == "choice":
            return [self.option_number(x, d.detail)]
        if d.kind == "owned":
            return self.leaves(self.names[list_key(x)] if isinstance(x, List) else MISSING, d.parts[0])
        if d.kind == "stored":
            return self.stored_leaves(x, d)
        return []

    def option_number(self, x: Abstract, among: tuple[Abstract, ...]) -> Value:
        """Which of several functions it is."""
        if isinstance(x, Choice):
            places = [self.option_number(o, among) for o in x.options]
            result = places[-1]
            for k in range(len(places) - 2, -1, -1):
                is_it = self.apply("equal", x.number, self.const(k))
                result = self.apply("where", is_it, places[k], result)
            return result
        found = [k for k, option in enumerate(among) if same_function(option, x)]
        return self.const(found[0] if found else 0)

    def stored_leaves(self, x: Abstract, d: Description) -> list[Value]:
        raise NotImplementedError

    def nothing(self, type_: Type) -> Value:
        """A value that nobody reads, where a name is not assigned."""
        if isinstance(type_, Array):
            out = Value(type_)
            self.add(Alloc(out, tuple(self.const(0) for _ in range(type_.rank)), None, span=self.span))
            return out
        if isinstance(type_, Stack):
            stack = Value(type_)
            self.add(NewStack(stack, span=self.span))
            return stack
        return self.const({"int64": 0, "bool": False}.get(type_.dtype, 0.0), type_)

    # -- branches ----------------------------------------------------------------------------------------------------

    def branch_on(self, condition: Value, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        """Read both sides and join what they assigned."""
        self.settle()
        before, span, same = self.names, self.span, self.same
        sides: list[tuple[dict[Key, Abstract], list[Operation]]] = []
        for side in (then, orelse):
            self.names, self.same = dict(before), same
            self.same = self.with_order(condition, side is then)
            with self.block() as operations:
                self.or_die(side)
                self.settle()
            sides.append((self.names, operations))
        self.span, self.same = span, same
        (names_then, then_operations), (names_else, else_operations) = sides
        then_dead, else_dead = ((LISTS, "%dead") in names for names in (names_then, names_else))
        if then_dead or else_dead:
            self.same = self.with_order(condition, else_dead and not then_dead)
            # What follows is reached by the other side alone, so that side need not be nested.
            if not then_dead:
                condition = self.apply("logical_not", condition)
                then_operations, else_operations = else_operations, then_operations
                names_then, names_else = names_else, names_then
            self.add(If(condition, Block(tuple(then_operations)), Block(), span=self.span))
            self.operations.extend(else_operations)
            self.names = names_else
            return
        self.names = before
        self.merge(condition, before, sides)

    def or_die(self, read: Callable[[], None]) -> None:
        """Read something that may raise on every path: then this path ends here, and only this one."""
        try:
            read()
        except NeverReturns:
            self.die()
        except UnknownResult:
            if not self.units_in_progress:
                raise
            self.die()

    def chosen(self, key: Key) -> Abstract:
        """What the sides of a branch have left under a name; if none of them got there, neither do we."""
        if self.dead:
            raise NeverReturns
        return self.names.pop(key)

    def merge(
        self,
        condition: Value,
        before: dict[Key, Abstract],
        sides: list[tuple[dict[Key, Abstract], list[Operation]]],
    ) -> None:
        (names_then, then_operations), (names_else, else_operations) = sides
        changed = [k for k in {**names_then, **names_else} if names_then.get(k) is not names_else.get(k)]
        merged = {k: v for k, v in names_then.items() if names_else.get(k) is v}
        outs: list[Value] = []
        yields: tuple[list[Value], list[Value]] = ([], [])
        left_then, left_else = (self.has_left(names) for names in (names_then, names_else))
        met: dict[Key, Description] = {}
        for key in changed:
            absent = Static(GOES_ON) if key[1] == "%exit" else MISSING
            a, b = names_then.get(key, absent), names_else.get(key, absent)
            flags = key[1] != "%return"
            if left_then != left_else and self.is_local(key):
                a, b = (MISSING, b) if left_then else (a, MISSING)  # once it has returned, nobody sees its names
                flags = False
            joined = self.joined(key, a, names_then, b, names_else, flags=flags)
            if joined.kind == "poison":
                merged[key] = Poison(self.conflict(key, a, b))
                continue
            if joined.kind == "missing":
                continue
            met[key] = joined
            self.names = merged
            merged[key], values = self.fresh(joined, key[1] if key[0] != LISTS else "items")
            self.note_mixed(key, values)
            outs += values
            for x, (names, operations), into in ((a, sides[0], yields[0]), (b, sides[1], yields[1])):
                self.names = names
                with self.into(operations):
                    into += self.leaves(x, joined)
        for out, a, b in zip(outs, *yields, strict=True):
            self.joins(out, a, b)
        for key, joined in met.items():
            self.forget_elements(merged, joined, names_then.get(key, MISSING), names_then)
            self.forget_elements(merged, joined, names_else.get(key, MISSING), names_else)
        self.names = merged
        then, orelse = Block(tuple(then_operations), tuple(yields[0])), Block(tuple(else_operations), tuple(yields[1]))
        self.add(If(condition, then, orelse, tuple(outs), span=self.span))

    def note_mixed(self, key: Key, values: list[Value]) -> None:
        """What is an array without axes on some path is not changed in place: others may see it, or not."""
        if key in self.mixed:
            self.boxes |= dict.fromkeys(values, True)
        if key[1][:1] == "%":  # names of ours come up again
            self.mixed.discard(key)

    def forget_elements(
        self, names: dict[Key, Abstract], d: Description, x: Abstract, before: dict[Key, Abstract]
    ) -> None:
        """Where lists of lists meet, those in them are elsewhere than before: other names for them are no longer."""
        owner = x.value if isinstance(x, Maybe) else x
        contents = before.get(list_key(owner)) if isinstance(owner, List) else owner
        if d.kind != "stored" and not is_owned(d):
            return
        inside = {list_key(h) for h in handles(contents)} if isinstance(contents, Items) else set()
        for key, y in list(names.items()):
            if key in inside or (isinstance(y, Slot) and y.outer is owner):
                names[key] = Poison(self.gone())

    def gone(self) -> Problem:
        message = "this list was an element of another list that has changed since then"
        return Problem(
            "SD206", message, self.span, help="read the element again after the change, or copy it first: `list(...)`"
        )

    def has_left(self, names: dict[Key, Abstract]) -> bool:
        """Whether a side of a branch has returned."""
        return names.get(self.exit_key) == Static(RETURNS)

    def is_local(self, key: Key) -> bool:
        """Whether a name is gone once the function has returned: no function inside it keeps it."""
        if key[0] != self.frame.number or key[1].startswith("%"):
            return False
        return not inner_scopes(self.frame.node)

    def joined(
        self,
        key: Key,
        a: Abstract,
        names_a: dict[Key, Abstract],
        b: Abstract,
        names_b: dict[Key, Abstract],
        earlier: Iterable[Key] = (),
        flags: bool | None = None,
    ) -> Description:
        """What the name is where two paths meet; two lists become one, if neither has another name."""
        first, second = describe(a), describe(b)
        lists = [x.value if isinstance(x, Maybe) else x for x in (a, b)]
        one_missing = isinstance(a, Missing) or isinstance(b, Missing)
        known = all(list_key(x) in names_a and list_key(x) in names_b for x in lists if isinstance(x, List))
        if lists[0] is not lists[1] and any(isinstance(x, List) for x in lists) and not (one_missing and known):
            first = self.owned(key, a, names_a, earlier) if not isinstance(a, Missing) else first
            second = self.owned(key, b, names_b, earlier) if not isinstance(b, Missing) else second
        joined = join(first, second, flags=key[1] != "%return" if flags is None else flags)
        if scalar_of(joined) is not None and any(isinstance(x, Value) and is_without_axes(x.type) for x in (a, b)):
            self.mixed.add(key)
        known = all(list_key(h) in names_a and list_key(h) in names_b for h in mentioned(joined))
        if known and leaf_types(joined) is not None:
            return joined
        if key[0] != LISTS or not handles(a) | handles(b):
            return POISON
        joined = join(self.contents_described(a, names_a), self.contents_described(b, names_b))
        return joined if leaf_types(joined) is not None else POISON

    def contents_described(self, contents: Abstract | None, names: dict[Key, Abstract]) -> Description:
        """What a list holds, and what the lists in it hold."""
        raise NotImplementedError

    def owned(self, key: Key, x: Abstract, names: dict[Key, Abstract], earlier: Iterable[Key] = ()) -> Description:
        """A list by what it holds, if this name is the only one for it; names from `earlier` go before new ones."""
        handle = x.value if isinstance(x, Maybe) else x
        same = self.perhaps(handle) if isinstance(handle, List) else set()
        others = [k for k, v in names.items() if k != key and same & handles(v)]
        if key[1] == "%return":
            others = [k for k in others if k[0] != key[0]]  # once it has returned, nobody sees its names
        if not isinstance(handle, List) or (others and (key not in earlier or any(k in earlier for k in others))):
            return POISON
        contents = names[list_key(handle)]
        inside = self.contents_described(contents, names) if handles(contents) else describe(contents)
        found = Description("owned", None, (inside,))
        return Description("maybe", None, (found,)) if isinstance(x, Maybe) else found

    def perhaps(self, handle: List) -> set[List]:
        """The lists that a list may be in Python, itself among them."""
        return {handle}.union(*(pair for pair in self.same_lists if handle in pair))

    @contextlib.contextmanager
    def into(self, operations: list[Operation]) -> Iterator[None]:
        """Write at the end of a block that is not finished."""
        self.stack.append(self.operations)
        self.operations = operations
        try:
            yield
        finally:
            self.operations = self.stack.pop()

    def conflict(self, key: Key, a: Abstract, b: Abstract) -> Problem | None:
        """Why the name cannot be used where two paths meet; what was wrong with it before comes first."""
        for x in (a, b):
            if isinstance(x, Poison):
                return x.problem
        if key[0] == LISTS:
            if isinstance(a, Slot) or isinstance(b, Slot):
                message = "a list is an element of another list on some paths or in some iterations only"
                return Problem("SD206", message, self.span, help="insert a copy: `list(...)`")
            message = "the list holds elements of different types on different paths"
            return Problem("SD202", message, self.span, help=SAME_ELEMENTS)
        what = f"`{key[1]}`"
        if key[1] == "%return":
            what = "the result"
        if key[1] == "%choice":
            what = "this"
        if isinstance(a, List) and isinstance(b, List):
            return Problem("SD206", f"{what} may refer to either of two lists that have other names too", self.span)
        if isinstance(a, Static) and isinstance(b, Static) and type(a.value) is type(b.value):
            message = f"{what} is {a.value!r} on one path and {b.value!r} on another, but only numbers can vary"
            return Problem("SD202", message, self.span, help="represent the choices by numbers or booleans")
        return Problem(
            "SD202", f"{what} is {self.in_words(a)} on one path and {self.in_words(b)} on another", self.span
        )

    # -- loops -------------------------------------------------------------------------------------------------------

    def loop(
        self,
        node: ast.AST,
        statement: ast.For | ast.While | None,
        bounds: tuple[Value, Value, Value] | None,
        test: Callable[[], Value] | None,
        body: Callable[[Value | None], None],
    ) -> Abstract:
        """Read a loop, one that the user wrote if there is a statement, until the types of what it carries are stable.

        Gives how it was left.
        """
        self.settle()  # first: to compute what is pending calls functions, and their names are not the loop's
        before, span = self.names, self.span
        place = (id(node), self.path)
        carried = {
            k: d
            for k, d in self.learned.get(place, {}).items()
            if all(list_key(h) in before for h in mentioned(d)) and (k[0] != LISTS or k in before)
        }
        assigned, passing = self.assigned_by(statement)
        for key in assigned:
            if key not in carried and key in before:
                carried[key] = loosened(describe(before[key]))
        carried = {k: join(d, self.head(k, d, before)) for k, d in carried.items()}
        same, made_here, early = self.same, self.made_here, self.early
        for iteration in itertools.count():
            self.made_here = made_here  # what is made has the same origin at each reading
            self.early = list(early)
            with self.awaiting(statement):
                attempt = self.one_pass(place, before, carried, passing, bounds, test, body)
            self.same = same
            if attempt.carried == carried and not attempt.again:
                break
            if iteration > _MOST_READINGS:
                if any(isinstance(x, Slot) for x in before.values()):
                    message = "a loop replaces a list of lists while another name refers to one of its elements"
                    self.refuse("SD206", node, message, help_="copy the element first: `list(...)`")
                unsettled = {**carried, **attempt.carried}
                named = [
                    k[1] for k, d in unsettled.items() if k[0] != LISTS and carried.get(k) != attempt.carried.get(k)
                ]
                for name in named or [k[1] for k, d in unsettled.items() if d.kind == "poison" and k[0] != LISTS]:
                    message = f"`{name}` has different types in different iterations of the loop"
                    self.refuse("SD202", node, message, help_="use different names")
                raise InternalError("the types that a loop carries do not settle")
            poisoned = [k for k, x in attempt.after.items() if isinstance(x, Poison) and k in attempt.carried]
            if not any(attempt.carried[k] != carried.get(k) for k in poisoned):
                del self.problems[attempt.problems :]  # the next reading finds them again
            self.poisoned |= {k: attempt.after[k] for k in poisoned}
            for key in attempt.carried.keys() - set(poisoned):
                if leaf_types(attempt.carried[key]) is None and key in attempt.after:
                    self.changes_its_type(key, before.get(key, MISSING), attempt.after[key], statement)
            carried = attempt.carried
        self.learned[place] = carried
        self.span = span
        if self.early and not self.awaited:
            (problem, *others), self.early = self.early, []
            self.problems += [p for p in others if p not in self.problems]
            raise Refusal(problem)  # no iteration makes it
        return self.finish_loop(before, attempt, bounds, node in self.sure)

    @contextlib.contextmanager
    def awaiting(self, loop: ast.For | ast.While | None) -> Iterator[None]:
        """Read what a loop repeats: names that it assigns may be there from the second iteration on."""
        before = self.awaited
        assigned, passing = self.assigned_by(loop)
        self.awaited = before | (set(assigned) - passing)
        try:
            yield
        finally:
            self.awaited = before

    def changes_its_type(self, key: Key, first: Abstract, then: Abstract, loop: ast.For | ast.While | None) -> None:
        """A name has one type before a loop and another after an iteration."""
        problem = self.conflict(key, first, then)
        self.poisoned[key] = Poison(problem)
        if problem is not None and loop is not None:
            self.note_culprit(problem, loop)

    def note_culprit(self, problem: Problem, statement: ast.stmt) -> None:
        raise NotImplementedError

    def assigned_by(self, loop: ast.For | ast.While | None) -> tuple[list[Key], set[Key]]:
        """The names that a loop assigns, and those of them that are not carried."""
        if loop is None:
            return [], set()
        names = assigned_names(loop)
        read = read_after_iterations(self.frame.node).get(loop, names)
        return [(self.frame.number, n) for n in sorted(names)], {(self.frame.number, n) for n in names - read}

    def head(self, key: Key, d: Description, before: dict[Key, Abstract]) -> Description:
        x = before.get(key, MISSING)
        if handles(x) and is_owned(d):
            there = self.owned(key, x, before, before)
        else:
            there = self.contents_described(x, before) if handles(x) and d.kind == "stored" else describe(x)
        return d if key[1] == "%return" and there.kind == "missing" else loosened(there)

    def one_pass(
        self,
        place: Any,
        before: dict[Key, Abstract],
        carried: dict[Key, Description],
        passing: set[Key],
        bounds: tuple[Value, Value, Value] | None,
        test: Callable[[], Value] | None,
        body: Callable[[Value | None], None],
    ) -> _Attempt:
        problems = len(self.problems)
        self.names = dict(before)
        params: list[Value] = []
        for key, description in carried.items():
            if leaf_types(description) is None:
                default = Poison(self.conflict(key, before.get(key, MISSING), MISSING))
                self.names[key] = self.poisoned.get(key, default)
                continue
            name = key[1] if key[0] != LISTS else "items"
            self.names[key], values = self.fresh(description, name)
            self.note_mixed(key, values)
            params += values
        for key, description in carried.items():
            self.forget_elements(self.names, description, before.get(key, MISSING), before)
        assumed = self.assume(place, self.arrays(before, carried), self.arrays(self.names, carried))
        self.names[self.exit_key] = Static(GOES_ON)
        head = dict(self.names)
        test_block = None
        if test is not None:
            with self.block() as test_operations:
                condition = test()
            test_block = (test_operations, condition)
            self.names = dict(head)  # what the test computes is not seen by the body
        index = Value(INT, "i") if bounds is not None else None
        if index is not None and bounds is not None:
            self.counters[index] = bounds
            start, stop, step = bounds
            ends_at_zero = self.is_natural(stop) or self.constants.get(stop) == -1
            if self.is_natural(start) if self.constants.get(step, 0) > 0 else step in self.constants and ends_at_zero:
                self.a_length(index)
        with self.block() as operations:
            self.or_die(lambda: body(index))
            self.settle()
        after = dict(self.names)
        if self.dead:
            after = {**head, self.exit_key: Static(RAISES)}
        found = dict(carried)
        for key, x in after.items():
            first = key not in before and key not in carried
            if key == self.exit_key or head.get(key) is x or (first and (key in passing or self.inner(key))):
                continue
            old = carried.get(key)
            if old is None:
                new = self.joined(key, before.get(key, MISSING), before, x, after, before)
            elif is_owned(old) and handles(x):
                owned = self.owned(key, x, after, before)
                new = join(old, owned)
            elif handles(x):
                new = self.joined(key, before.get(key, MISSING), before, x, after, before)
            else:
                new = join(old, describe(x), flags=key[1] != "%return")
            if old is None or new != old:
                found[key] = loosened(new)
        again = self.learn(place, assumed, self.arrays(after, carried)) if not self.dead else False
        return _Attempt(problems, found, params, after, operations, index, test_block, place, again)

    def arrays(self, names: dict[Key, Abstract], carried: dict[Key, Description]) -> dict[Hashable, Value]:
        """The arrays among what a loop carries."""
        found: dict[Hashable, Value] = {}
        for key in carried:
            x = names.get(key)
            if isinstance(x, Value) and isinstance(x.type, Array):
                found[key] = x
        return found

    def inner(self, key: Key) -> bool:
        """Whether the name belongs to a call, or to a list made, inside the loop's body: no iteration sees it again."""
        return key[0] > self.frame.number or key[0] == LISTS

    def finish_loop(
        self,
        before: dict[Key, Abstract],
        attempt: _Attempt,
        bounds: tuple[Value, Value, Value] | None,
        sure: bool = False,
    ) -> Abstract:
        code = attempt.after.get(self.exit_key, Static(GOES_ON))
        leaves = not (isinstance(code, Static) and code.value in (GOES_ON, CONTINUES))
        inits: list[Value] = []
        outs: list[Value] = []
        yields: list[Value] = []
        names = dict(before)
        for key, description in attempt.carried.items():
            if leaf_types(description) is None:
                a, b = before.get(key, MISSING), attempt.after.get(key, MISSING)
                names[key] = b if isinstance(b, Poison) else Poison(self.conflict(key, a, b))
                continue
            self.names = before
            inits += self.leaves(before.get(key, MISSING), description)
            self.names = attempt.after
            with self.into(attempt.operations):
                yields += self.leaves(attempt.after.get(key, MISSING), description)
            self.names = names
            names[key], values = self.fresh(description, key[1] if key[0] != LISTS else "items")
            self.note_mixed(key, values)
            outs += values
        self.assume(attempt.place, self.arrays(before, attempt.carried), self.arrays(names, attempt.carried))
        for key, description in attempt.carried.items():
            self.forget_elements(names, description, before.get(key, MISSING), before)
            self.forget_elements(names, description, attempt.after.get(key, MISSING), attempt.after)
        params = list(attempt.params)
        if sure or self.runs_at_least_once(bounds, attempt):
            self.last_values(names, attempt, params, inits, yields, outs)
        out_code: Abstract = Static(GOES_ON)
        if leaves:
            with self.into(attempt.operations):
                number = self.value(code)
                stops = self.apply("greater", number, self.const(0))
                yields += [number, stops]
            inits.append(self.const(GOES_ON))
            params.append(Value(INT, "exit_code"))
            out_code = Value(INT, "exit_code")
            outs.append(out_code)
        test_block = None
        if attempt.test is not None:
            test_block = Block(tuple(attempt.test[0]), (attempt.test[1],))
        self.add(
            Loop(
                attempt.index,
                bounds,
                tuple(params),
                tuple(inits),
                test_block,
                Block(tuple(attempt.operations), tuple(yields)),
                tuple(outs),
                Value(INT, "iterations"),
                leaves,
                span=self.span,
            )
        )
        self.names = names
        return out_code

    def runs_at_least_once(self, bounds: tuple[Value, Value, Value] | None, attempt: _Attempt) -> bool:
        if bounds is None or attempt.test is not None:
            return False
        known = [self.constants.get(b) for b in bounds]
        return all(isinstance(k, int) for k in known) and length_of_range(*known) > 0  # type: ignore[arg-type]

    def last_values(
        self,
        names: dict[Key, Abstract],
        attempt: _Attempt,
        params: list[Value],
        inits: list[Value],
        yields: list[Value],
        outs: list[Value],
    ) -> None:
        """A name that the last iteration certainly assigned has that value, whatever it was before the loop."""
        for key, description in attempt.carried.items():
            x = attempt.after.get(key, MISSING)
            if isinstance(x, List) and handles(attempt.after[list_key(x)]):
                continue  # the lists in it may have names
            last = loosened(self.owned(key, x, attempt.after) if isinstance(x, List) else describe(x))
            types = leaf_types(last) if last.kind in ("value", "tuple", "owned", "optional") else None
            if types is None or last == description or mentioned(last):
                continue
            inits += [self.nothing(t) for t in types]
            params += [Value(t, key[1]) for t in types]
            self.names = attempt.after
            with self.into(attempt.operations):
                yields += self.leaves(x, last)
            self.names = names
            names[key], values = self.fresh(last, key[1])
            outs += values


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of reading."""

    names: dict[Key, Abstract]
    operations: int
    problems: int
    same: dict[SizeKey, SizeKey]
    pending: list[tuple[Lazy, Value | None]]
    early: list[Problem]


@dataclass(slots=True)
class _Attempt:
    """One reading of a loop's body under assumed types."""

    problems: int
    carried: dict[Key, Description]
    params: list[Value]
    after: dict[Key, Abstract]
    operations: list[Operation]
    index: Value | None
    test: tuple[list[Operation], Value] | None
    place: Any
    again: bool
    """Whether something that was assumed about arrays does not hold."""


UNASSIGNED = "cannot access local variable '{}' where it is not associated with a value"

SAME_ELEMENTS = "give all elements the same type (numbers, tuples of numbers, or lists of these), or use an array"


def is_number(x: Abstract) -> bool:
    return isinstance(x, Static) and isinstance(x.value, bool | int | float)


def list_key(handle: List) -> Key:
    return (LISTS, str(handle.number))


def is_owned(d: Description) -> bool:
    """Whether a list is described by what it holds."""
    return d.kind == "owned" or (d.kind == "maybe" and d.parts[0].kind == "owned")


def mentioned(d: Description) -> set[List]:
    """The lists that a description names by their identity."""
    found = {d.detail} if d.kind == "list" else set()
    return found.union(*(mentioned(p) for p in d.parts)) if d.parts else found


def handles(x: Abstract) -> set[List]:
    """The lists that something holds on to."""
    match x:
        case List():
            return {x}
        case Parts():
            return set().union(*map(handles, x.items))
        case Maybe() | Optional():
            return handles(x.value)
        case Enumerate() | Reversed() | Method():
            return handles(x.of)
        case Zip():
            return set().union(*(handles(i) for i in x.of))
        case Closure():
            return set().union(*(handles(i) for i in x.defaults.values()))
        case Through():
            return handles(x.of)
        case Drawn():
            return {x.items}
        case Partial():
            return set().union(*(handles(i) for i in (x.function, *x.args, *x.keywords.values())))
    return set()
