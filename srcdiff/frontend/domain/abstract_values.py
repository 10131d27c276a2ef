"""Abstract values: what names refer to while a function is read, run-time values and compile-time constants.

Tuples, lists, ranges, functions and strings exist only here; the IR has scalars and arrays.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeGuard

from srcdiff.diagnostics import Problem
from srcdiff.ir.nodes import Slice, Value
from srcdiff.signature.descriptions import Description
from srcdiff.signature.structures import Layout, made_layout
from srcdiff.signature.trees import Node


@dataclass(frozen=True, slots=True)
class Static:
    """A constant known when the function is compiled."""

    value: Any
    numpys: bool = field(default=False, compare=False)
    """Whether it is a number of NumPy's."""


@dataclass(frozen=True, slots=True)
class Own(Static):
    """A function that srcdiff itself calls. Rules that users declare do not apply to it."""


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A name of `numba.cuda` that means something in kernels: `grid`, `threadIdx.x`, `atomic.add`."""

    name: str


def is_device_module(module: Any) -> bool:
    return getattr(module, "__name__", "") in ("numba.cuda", "numba_cuda.numba.cuda")


@dataclass(frozen=True, slots=True)
class Parts(Node):
    """What is made of parts that are known when the function is compiled."""

    items: tuple[Abstract, ...]

    def opened(self) -> tuple[Abstract, ...]:
        return self.items

    @property
    def layout(self) -> Layout:
        return made_layout(getattr(self, "kind", list), len(self.items))

    def remade(self, parts: Iterable[Abstract]) -> Self:
        return replace(self, items=tuple(parts))


@dataclass(frozen=True, slots=True)
class Tuple(Parts):
    kind: type | None = None
    """The namedtuple class, if it is one."""
    is_list: bool | None = field(default=False, compare=False)
    """Whether it is a list from outside, which is not changed; None where paths meet, and it may be either."""


@dataclass(frozen=True, slots=True)
class Record(Parts):
    """A dictionary, or an instance of a class: read by its keys or attributes, and not changed.

    A list of other things than numbers is one where it comes from the caller or goes there.
    """

    kind: Layout
    site: Any = field(default=None, compare=False)
    """The place where a dictionary was made; if one of that place is changed, all of them are objects."""


@dataclass(frozen=True, slots=True)
class Structured(Record):
    """A structured array, of which each field is an array; or a record of NumPy's, of which each field is a number.

    The layout is a `RecordLayout`.
    """


@dataclass(frozen=True, slots=True)
class Element(Parts):
    """An element of a structured array: the array, and its indices. What is written to it is written to the array."""

    @property
    def layout(self) -> Layout:
        return made_layout(tuple, len(self.items))

    @property
    def of(self) -> Structured:
        assert isinstance(self.items[0], Structured)
        return self.items[0]

    @property
    def place(self) -> tuple[Value, ...]:
        return tuple(i for i in self.items[1:] if isinstance(i, Value))


Group = Tuple | Record
"""What is made of parts, and not changed."""


_numbers = itertools.count()
scope_numbers = itertools.count(1)
"""Numbers of calls and of objects: both are scopes of variables."""


@dataclass(frozen=True, eq=False, slots=True)
class List:
    """The identity of a list; what it holds is in the environment, so that all its names see a change."""

    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True, eq=False, slots=True)
class Object:
    """The identity of an instance whose attributes are written: they are variables of a scope of its own."""

    kind: type
    defaults: Mapping[str, Abstract] = field(default_factory=dict)
    """The values that its class has, for attributes that it does not have itself."""
    number: int = field(default_factory=lambda: next(scope_numbers))
    """The number of the scope."""


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a method of a class: the instance, and the class above which attributes are looked up."""

    of: Abstract
    above: type


@dataclass(frozen=True, slots=True)
class Items(Parts):
    """What a list holds while that is known element by element."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a list holds at run time: an array for each part of its elements, and its length.

    Lists in it are rows of arrays with one axis more, as wide as the longest needs, and an array of their lengths.
    """

    element: Description
    arrays: tuple[Value, ...]
    length: Value
    at: tuple[Value, ...] = ()
    """Which row of the arrays it is, if it is itself an element of a list."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a list holds that is an element of another one, or part of such an element: what is there."""

    outer: List
    position: Value
    path: tuple[int, ...]
    """Which part of the element."""


@dataclass(frozen=True, slots=True)
class Range:
    start: Abstract
    stop: Abstract
    step: Abstract
    parallel: bool = False
    """Whether it is a `prange`: the user says that a loop over it has independent iterations."""


@dataclass(frozen=True, slots=True)
class Enumerate:
    of: Abstract
    start: Abstract


@dataclass(frozen=True, slots=True)
class Zip:
    of: tuple[Abstract, ...]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Reversed:
    of: Abstract


@dataclass(frozen=True, eq=False, slots=True)
class Through:
    """`map(function, of)`, `starmap` or `filter`: nothing is computed before somebody goes through it."""

    how: str
    function: Abstract
    of: Abstract
    node: ast.AST


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """What an iterator gives, as a list; of one that reads as it goes, what it reads must not change meanwhile."""

    name: str
    items: List
    reads: tuple[Abstract, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Generated:
    """A generator: nothing of its body runs before somebody goes through it."""

    name: str
    function: Any
    """What tells it from generators of other functions."""
    frame: Any
    bound: dict[str, Abstract]
    """Its arguments."""
    number: int = field(default_factory=lambda: next(scope_numbers))
    """The number of the scope that says how far somebody has gone through it."""


@dataclass(frozen=True, eq=False, slots=True)
class Partial:
    """`functools.partial`: a function with its first arguments."""

    function: Abstract
    args: tuple[Abstract, ...]
    keywords: dict[str, Abstract]


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A function defined inside a function that is being read."""

    node: ast.FunctionDef | ast.Lambda
    frame: Any
    defaults: dict[str, Abstract]


@dataclass(frozen=True, eq=False, slots=True)
class Transformed:
    """A derivative of a function; `derivation` says which."""

    derivation: Any
    function: Abstract


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """One of several functions, by a number known at run time."""

    number: Value
    options: tuple[Abstract, ...]


@dataclass(frozen=True, slots=True)
class Method:
    of: Abstract
    name: str


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`type(x)` of a number that may be Python's or NumPy's: one of several classes."""

    options: tuple[type, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text with numbers in it, `template.format(*values)`; only `print`, `assert` and `raise` take it."""

    template: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Caught:
    """An exception that was caught: its class, and its arguments as `Raise` has them."""

    kind: type[BaseException]
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """Not assigned."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """Assigned on some paths: `flag` says whether."""

    flag: Abstract
    value: Abstract


@dataclass(frozen=True, slots=True)
class Optional:
    """A value on some paths and `None` on others: `flag` says whether it is a value."""

    flag: Abstract
    value: Abstract


@dataclass(frozen=True, slots=True)
class Poison:
    """Cannot be used; the problem is reported if somebody does."""

    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Size:
    """The length of an axis: its key (equal keys are equal sizes), and how to have it as a value."""

    key: tuple[Any, ...]
    value: Callable[[], Value] = field(compare=False)


@dataclass(eq=False, slots=True, weakref_slot=True)
class Lazy:
    """An array that is not computed yet: `at` writes the computation of one element.

    What takes an array apart element by element takes it as it is; for everything else it is computed first, and so it
    is before anything may write into the arrays it reads.
    """

    dtype: str
    sizes: tuple[Size, ...]
    at: Callable[[tuple[Value, ...]], Value]
    reads: tuple[tuple[Value, bool], ...] = ()
    """The arrays it reads, and whether from each only the element at the same place."""
    plain: bool = False
    """Whether an element costs no more than a load."""
    array: Value | None = None
    """The array, once it is computed."""
    home: object = None
    """The block in which it came up: once computed there, it need not be computed again."""
    view_of: Value | None = None
    """The array that NumPy would return a view of; the copy must not differ observably from it."""
    ordered: bool = True
    """Whether NumPy lays it out in memory as what it reads."""
    number: int = field(default_factory=lambda: next(_numbers))
    """The order in which they came up, which is that in which they are computed."""

    @property
    def rank(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class Each:
    """All places of an array of this shape, in order; with what is there, if the array is given."""

    shape: tuple[Abstract, ...]
    of: Value | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """How to go through something: how many elements, and the one at a position."""

    length: Abstract
    element: Callable[[Abstract], Abstract]


Abstract = (
    Value
    | Static
    | Tuple
    | Record
    | Element
    | List
    | Object
    | Super
    | Items
    | Stored
    | Slot
    | Range
    | Enumerate
    | Zip
    | Reversed
    | Through
    | Drawn
    | Generated
    | Partial
    | Closure
    | Transformed
    | Choice
    | Method
    | TypeOf
    | Text
    | Caught
    | Missing
    | Maybe
    | Optional
    | Poison
    | Lazy
    | Each
    | Slice
)

MISSING = Missing()


Instance = Record | Object


def is_instance(x: Abstract) -> TypeGuard[Instance]:
    """Whether it is an instance of a class."""
    is_object = isinstance(x, Object) and not issubclass(x.kind, dict)
    return is_object or (isinstance(x, Record) and x.kind.is_instance)


def class_of(x: Instance | Super) -> type:
    match x:
        case Object():
            return x.kind
        case Record():
            return x.kind.kind
    return class_of(x.of)  # type: ignore[arg-type]
