"""Abstract values: what names refer to while a function is read, run-time values and compile-time constants.

Tuples, lists, ranges, functions and strings exist only here; the IR has scalars and arrays.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Self, TypeGuard

from srcdiff.diagnostics import Problem
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description
from srcdiff.signature.structures import Layout, made_layout
from srcdiff.signature.trees import Node


@dataclass(frozen=True, slots=True)
class Static:
    """A constant known when the function is compiled."""

    value: Any
    numpys: bool = field(default=False, compare=False)
    """Whether it is a number of NumPy."""


@dataclass(frozen=True, slots=True)
class Own(Static):
    """A function that srcdiff itself calls. Rules that users declare are not applied to it."""


class OfObjects:
    """An array of objects, `np.array([None, None])`. It may be stored, but nothing is computed with it."""


OBJECTS = Static(OfObjects())


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A name of `numba.cuda` with a meaning in kernels: `grid`, `threadIdx.x`, `atomic.add`."""

    name: str


def is_device_module(module: Any) -> bool:
    return getattr(module, "__name__", "") in ("numba.cuda", "numba_cuda.numba.cuda")


@dataclass(frozen=True, slots=True)
class Parts(Node):
    """A structure whose parts are known at compile time."""

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
    """The class of a namedtuple."""
    is_list: bool | None = field(default=False, compare=False)
    """Whether it is an immutable list from outside. None after a join of paths on which this differs."""


@dataclass(frozen=True, slots=True)
class Record(Parts):
    """A dictionary or an instance, read by its keys or attributes and not changed.

    A list with elements other than numbers is a record if it is an argument or a result.
    """

    kind: Layout
    site: Any = field(default=None, compare=False)
    """The program point that creates a dictionary. If one of these dictionaries is changed, all become objects."""
    is_outside: bool = field(default=False, compare=False)
    """Whether it is a dictionary from outside that can become an object."""


@dataclass(frozen=True, slots=True)
class Structured(Record):
    """A structured array, each field of which is an array; or a NumPy record, each field of which is a number.

    The layout is a `RecordLayout`.
    """


@dataclass(frozen=True, slots=True)
class Element(Parts):
    """An element of a structured array: the array and its indices. Writes go to the array."""

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
"""A value that consists of parts and is immutable."""


_numbers = itertools.count()
scope_numbers = itertools.count(1)
"""The numbers of calls and objects. Both are scopes of variables."""


@dataclass(frozen=True, eq=False, slots=True)
class List:
    """The identity of a list. Its contents are in the environment, so that all its names see a change."""

    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True, eq=False, slots=True)
class Object:
    """The identity of an instance whose attributes are written. They are variables of a scope of its own."""

    kind: type
    defaults: Mapping[str, Abstract] = field(default_factory=dict)
    """The class attributes that the instance does not have itself."""
    site: Any = None
    """The program point that creates the dictionary."""
    number: int = field(default_factory=lambda: next(scope_numbers))
    """The number of the scope."""


@dataclass(frozen=True, slots=True)
class Namespace(Record):
    """`x.__dict__`: the attributes of an instance, as a dictionary that sees later changes."""

    of: Record | Object | None = None

    def remade(self, parts: Iterable[Abstract]) -> Self:
        return Record(tuple(parts), self.kind)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class View(Tuple):
    """`keys()`, `values()` or `items()` of a dictionary that is changed: what they give now. They see later changes."""

    of: Object | Namespace | None = None
    way: str = "values"

    def remade(self, parts: Iterable[Abstract]) -> Self:
        return Tuple(tuple(parts))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a method: the instance, and the class above which the lookup starts."""

    of: Abstract
    above: type


@dataclass(frozen=True, slots=True)
class Items(Parts):
    """The contents of a list whose elements are known one by one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The contents of a list at run time: an array for each part of its elements, and its length.

    Lists in it are rows of arrays with one more axis, which is as wide as the longest list needs, and an array of
    lengths.
    """

    element: Description
    arrays: tuple[Value, ...]
    length: Value
    at: tuple[Value, ...] = ()
    """Its row in the arrays, if it is an element of another list."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The contents of a list that is an element of another list, or a part of one. It is not copied."""

    outer: List
    position: Value
    path: tuple[int, ...]
    """The part of the element."""


@dataclass(frozen=True, slots=True)
class Range:
    start: Abstract
    stop: Abstract
    step: Abstract
    parallel: bool = False
    """Whether it is a `prange`: the user asserts that its iterations are independent."""


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
    """`map(function, of)`, `starmap` or `filter`. Nothing is computed before it is consumed."""

    how: str
    function: Abstract
    of: Abstract
    node: ast.AST


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """The elements of an iterator as a list. The sources of a lazy iterator must not change meanwhile."""

    name: str
    items: List
    reads: tuple[Abstract, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Generated:
    """A generator. Its body does not run before it is consumed."""

    name: str
    function: Any
    """The identity of the generator function."""
    frame: Any
    bound: dict[str, Abstract]
    """Its arguments."""
    number: int = field(default_factory=lambda: next(scope_numbers))
    """The number of the scope with the state of the generator."""


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
    """A derivative of a function, specified by `derivation`."""

    derivation: Any
    function: Abstract


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """One of several functions, objects, strings or enum members, selected by a number at run time."""

    number: Value
    options: tuple[Abstract, ...]


@dataclass(frozen=True, slots=True)
class Method:
    of: Abstract
    name: str


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`type(x)` of a number that may be Python's or NumPy's, so it is one of several classes."""

    options: tuple[type, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Text with numbers in it, `template.format(*values)`. Only `print`, `assert` and `raise` accept it."""

    template: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Caught:
    """A caught exception: its class, and its arguments in the form of `Raise`."""

    kind: type[BaseException]
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """Not assigned."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """Assigned on some paths; `flag` is true there."""

    flag: Abstract
    value: Abstract


@dataclass(frozen=True, slots=True)
class Optional:
    """A value on some paths and `None` on others; `flag` is true where it is a value."""

    flag: Abstract
    value: Abstract


@dataclass(frozen=True, slots=True)
class Poison:
    """An unusable value. Its problem is reported if it is used."""

    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Size:
    """The length of an axis: its key (equal keys mean equal sizes), and a function that writes it as a value."""

    key: tuple[Any, ...]
    value: Callable[[], Value] = field(compare=False)


@dataclass(eq=False, slots=True, weakref_slot=True)
class Lazy:
    """An array that is not computed yet. `at` writes the computation of one element.

    Elementwise consumers use it directly; others compute it first. It is also computed before a write to an array that
    it reads.
    """

    dtype: str
    sizes: tuple[Size, ...]
    at: Callable[[tuple[Value, ...]], Value]
    reads: tuple[tuple[Value, bool], ...] = ()
    """The arrays that it reads, and for each whether only the element at the same index is read."""
    plain: bool = False
    """Whether an element costs no more than a load."""
    array: Value | None = None
    """The array, once it is computed."""
    home: object = None
    """The block that created it. If it is computed there, it need not be computed again."""
    view_of: Value | None = None
    """The array of which NumPy would return a view. The copy must not be distinguishable from it."""
    part_of: tuple[Lazy, str] | None = None
    """The complex array of which it is the real or imaginary part. Once computed, it is a view, as in NumPy."""
    ordered: bool = True
    """Whether NumPy gives it the memory layout of the arrays that it reads."""
    number: int = field(default_factory=lambda: next(_numbers))
    """The order of creation, which is the order in which they are computed."""

    @property
    def rank(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class Each:
    """All indices of an array of this shape, in order, with the elements if the array is given."""

    shape: tuple[Abstract, ...]
    of: Value | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """An iteration: the number of elements, and a function that writes the one at a position."""

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

Arguments = list[Abstract]
Keywords = dict[str, Abstract]

MISSING = Missing()


def is_none(x: Abstract) -> TypeGuard[Static]:
    """Whether it is the constant `None`. A comparison would not do: a dtype of NumPy equals `None`."""
    return isinstance(x, Static) and x.value is None


def is_array_value(x: Abstract | ast.expr | None) -> TypeGuard[Value]:
    """Whether it is an array that exists at run time."""
    return isinstance(x, Value) and isinstance(x.type, Array)


def is_text(x: Abstract) -> TypeGuard[Static]:
    """Whether it is a string or an enum member, which are known at compile time or chosen among such."""
    return isinstance(x, Static) and isinstance(x.value, str | enum.Enum) and not isinstance(x.value, int | float)


def is_chosen_text(x: Abstract | None) -> TypeGuard[Choice]:
    """Whether it is one of several strings or enum members."""
    return isinstance(x, Choice) and is_text(x.options[0])


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
