"""Abstract values: what names refer to while a function is read, run-time values and compile-time constants.

Tuples, lists, ranges, functions and strings exist only here; the IR has scalars and arrays.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, TypeGuard

from srcdiff.diagnostics import Problem
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, Stack, Type, element_type, join_scalars
from srcdiff.library.language import ComplexArray
from srcdiff.signature.descriptions import NONE, Description
from srcdiff.signature.structures import Layout, made_layout
from srcdiff.signature.trees import NODES, Node


@dataclass(frozen=True, slots=True)
class Static:
    """A constant known when the function is compiled."""

    value: Any
    numpys: bool = field(default=False, compare=False)
    """Whether it is a number of NumPy's."""


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


@dataclass(frozen=True, slots=True)
class Record(Parts):
    """A dictionary, or an instance of a dataclass: read by its keys or fields, and not changed.

    A list of other things than numbers is one where it comes from the caller or goes there.
    """

    kind: Layout


Group = Tuple | Record
"""What is made of parts, and not changed."""


_numbers = itertools.count()


@dataclass(frozen=True, eq=False, slots=True)
class List:
    """The identity of a list; what it holds is in the environment, so that all its names see a change."""

    number: int = field(default_factory=lambda: next(_numbers))


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
class Text:
    """A text with numbers in it, `template.format(*values)`; only `print`, `assert` and `raise` take it."""

    template: str
    values: tuple[Value, ...] = ()


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
    | List
    | Items
    | Stored
    | Slot
    | Range
    | Enumerate
    | Zip
    | Reversed
    | Through
    | Drawn
    | Partial
    | Closure
    | Transformed
    | Choice
    | Method
    | Text
    | Missing
    | Maybe
    | Optional
    | Poison
    | Lazy
    | Each
    | Slice
)

MISSING = Missing()

# --------------------------------------------------------------------------------------------------------------------
# Descriptions: the part of an abstract value that is not a run-time value, so that two can be compared and joined.


POISON = Description("poison")
NOTHING = Description("nothing")
"""The elements of a list that has had none yet: of any type."""


def describe(x: Abstract) -> Description:
    match x:
        case Value():
            return Description("value", x.type)
        case Static():
            try:
                hash(x.value)
                return Description("static", (type(x.value), x.value))
            except TypeError:
                return Description("static", (type(x.value), id(x.value)))
        case Parts():
            kind = "tuple" if isinstance(x, Tuple) else "items" if isinstance(x, Items) else "record"
            return Description(kind, getattr(x, "kind", None), tuple(map(describe, x.items)))
        case List():
            return Description("list", x)
        case Stored():
            return Description("stored", None, (x.element,))
        case Closure():
            parts = tuple(describe(d) for d in x.defaults.values())
            return Description("closure", (x.node, x.frame, tuple(x.defaults)), parts)
        case Choice():
            return Description("choice", x.options, (Description("value", INT),))
        case Missing():
            return Description("missing")
        case Maybe():
            return Description("maybe", None, (describe(x.value),))
        case Optional():
            return Description("optional", None, (describe(x.value),))
        case Poison():
            return POISON
        case _:
            return Description("other", x)


def is_computed(x: Abstract) -> bool:
    """Whether a part of a result is a value of the function's: numbers are, other constants are not."""
    return not isinstance(x, Static) or isinstance(x.value, bool | int | float)


def of_parts(d: Description, items: Iterable[Abstract]) -> Group | Items:
    """What has this description and these parts."""
    if d.kind == "items":
        return Items(tuple(items))
    return (Tuple if d.kind == "tuple" else Record)(tuple(items), d.detail)


def scalar_of(d: Description) -> Scalar | None:
    """The scalar type that a described number has at run time."""
    if d.kind == "value" and isinstance(d.detail, Scalar):
        return d.detail
    if d.kind == "static":
        type_ = d.detail[0]
        if type_ is bool:
            return BOOL
        if type_ is int or issubclass(type_, enum.IntEnum | enum.IntFlag):
            return INT
        if type_ is float:
            return FLOAT
    return None


def loosened(d: Description) -> Description:
    """The same with numbers at run time: what a name that changes in a loop becomes."""
    scalar = scalar_of(d)
    if scalar is not None:
        return Description("value", scalar)
    if d.kind in ("tuple", "record", "maybe", "optional", "items", "closure", "owned"):
        return d.remade(map(loosened, d.parts))
    return d


def number_of(d: Description) -> Scalar | None:
    """The type of a number, or of the element of an array without axes."""
    return element_type(d.detail) if d.kind == "value" and is_without_axes(d.detail) else scalar_of(d)


def is_without_axes(type_: object) -> bool:
    return isinstance(type_, Array) and type_.rank == 0


def join(a: Description, b: Description, *, flags: bool = True) -> Description:
    """What holds either; without `flags`, a missing value is any value."""
    if a == b or b == NOTHING:
        return a
    if a == NOTHING:
        return b
    if a.kind == "poison" or b.kind == "poison":
        return POISON
    if a.kind == "missing" or b.kind == "missing":
        other = b if a.kind == "missing" else a
        return other if other.kind == "maybe" or not flags else Description("maybe", None, (other,))
    if a.kind == "maybe" or b.kind == "maybe":
        inner = join(a.parts[0] if a.kind == "maybe" else a, b.parts[0] if b.kind == "maybe" else b)
        return POISON if inner.kind == "poison" else Description("maybe", None, (inner,))
    if NONE in (a, b) or "optional" in (a.kind, b.kind):
        return join_with_none(a, b)
    if options(a) and options(b):
        different = [o for o in options(b) if not any(same_function(o, p) for p in options(a))]
        return Description("choice", (*options(a), *different), (Description("value", INT),))
    left, right = number_of(a), number_of(b)
    if left is not None and right is not None:
        return Description("value", join_scalars(left, right))
    alike = a.kind == b.kind and len(a.parts) == len(b.parts) and a.detail == b.detail
    if alike and a.kind in ("tuple", "record", "items", "closure", "owned"):
        parts = tuple(join(p, q) for p, q in zip(a.parts, b.parts, strict=True))
        return POISON if POISON in parts else a.remade(parts)
    if a.kind in ("items", "stored") and b.kind in ("items", "stored"):
        parts = a.parts + b.parts
        element = loosened(parts[0])
        for part in parts[1:]:
            element = join(element, loosened(part))
        return POISON if leaf_types(element) is None else list_of(element)
    return POISON


def list_of(element: Description) -> Description:
    """A list whose length is known at run time."""
    return Description("stored", None, (element,))


def join_with_none(a: Description, b: Description) -> Description:
    """What holds a value or `None`: numbers, arrays and tuples of those."""
    values = [d.parts[0] if d.kind == "optional" else d for d in (a, b) if d != NONE]
    inner = loosened(values[0] if len(values) == 1 else join(values[0], values[1]))
    return Description("optional", None, (inner,)) if is_plain(inner) else POISON


def is_plain(d: Description) -> bool:
    """Whether it is made of numbers and arrays."""
    return all(leaf.kind == "value" for leaf in NODES.leaves(d))


def options(d: Description) -> tuple[Abstract, ...]:
    """The functions that a description stands for."""
    if d.kind == "choice":
        functions: tuple[Abstract, ...] = d.detail
        return functions
    if d.kind == "closure" and not d.parts:
        return (Closure(d.detail[0], d.detail[1], {}),)
    if d.kind == "static" and callable(d.detail[1]):
        return (Static(d.detail[1]),)
    return ()


def same_function(a: Abstract, b: Abstract) -> bool:
    if isinstance(a, Closure) and isinstance(b, Closure):
        return a.node is b.node and a.frame is b.frame
    return isinstance(a, Static) and isinstance(b, Static) and a.value is b.value


def is_of_numbers(d: Description) -> bool:
    """Whether elements are made of numbers alone: no arrays and no lists."""
    types = stored_types(d)
    return types is not None and all(isinstance(t, Array) for t in types) and not holds_lists(d)


def holds_lists(d: Description) -> bool:
    """Whether elements are lists, or have some in them."""
    return any(leaf.kind == "stored" for leaf in NODES.leaves(d))


def is_complex(x: Abstract) -> TypeGuard[Record]:
    """Whether it is an array of complex numbers."""
    return isinstance(x, Record) and x.kind.kind is ComplexArray


def holds_complex(d: Description) -> bool:
    """Whether it is, or contains, an array of complex numbers."""
    return (d.kind == "record" and d.detail.kind is ComplexArray) or any(map(holds_complex, d.parts))


def part_of(d: Description, path: tuple[int, ...]) -> tuple[Description, int]:
    """A part of a described element, and how many arrays the parts before it have."""
    before = 0
    for k in path:
        before += sum(len(stored_types(p) or ()) for p in d.parts[:k])
        d = d.parts[k]
    return d, before


def with_part(d: Description, path: tuple[int, ...], part: Description) -> Description:
    """The element with another part."""
    if not path:
        return part
    return d.remade(with_part(p, path[1:], part) if k == path[0] else p for k, p in enumerate(d.parts))


def stored_types(d: Description) -> tuple[Type, ...] | None:
    """The types of the arrays in which lists of such elements are stored; None if they cannot be."""
    match d.kind:
        case "value":
            return (Array(d.detail.dtype, 1) if isinstance(d.detail, Scalar) else Stack(d.detail),)
        case "static" | "nothing":
            return ()
        case "tuple" | "record":
            parts = [stored_types(p) for p in d.parts]
            return None if None in parts else tuple(t for part in parts for t in part or ())
        case "stored":
            rows = stored_types(d.parts[0])
            if rows is None or not all(isinstance(t, Array) and t.rank < _MOST_AXES for t in rows):
                return None
            return (*(Array(t.dtype, t.rank + 1) for t in rows if isinstance(t, Array)), Array("int64", 1))
    return None


_MOST_AXES = 2  # a list of lists of lists would need three


def arrays_in(x: Any) -> Iterator[Value]:
    """The arrays that can be reached from what a name stands for."""
    if isinstance(x, Value):
        if isinstance(x.type.element if isinstance(x.type, Stack) else x.type, Array):
            yield x
    elif isinstance(x, Lazy):
        yield from (array for array, _ in x.reads)
        yield from (array for array in (x.array, x.view_of) if array is not None)
    elif isinstance(x, tuple):
        for item in x:
            yield from arrays_in(item)
    elif isinstance(x, Closure):
        yield from arrays_in(tuple(x.defaults.values()))
    elif isinstance(x, Partial):
        yield from arrays_in((x.function, x.args, tuple(x.keywords.values())))
    elif is_dataclass(x) and not isinstance(x, Static | Poison | Description | Layout):
        yield from arrays_in(tuple(getattr(x, f.name) for f in fields(x)))


def leaf_types(d: Description) -> tuple[Type, ...] | None:
    """The types of the run-time values a described value is made of; None if it cannot be stored."""
    if d.kind == "value":
        return (d.detail,)
    if d.kind in ("static", "nothing"):
        return ()
    if d.kind in ("tuple", "record", "items", "closure", "owned", "choice"):
        parts = [leaf_types(p) for p in d.parts]
        return None if None in parts else tuple(t for part in parts for t in part or ())
    if d.kind in ("maybe", "optional"):
        inner = leaf_types(d.parts[0])
        return None if inner is None else (BOOL, *inner)
    if d.kind == "stored":
        arrays = stored_types(d.parts[0])
        return None if arrays is None else (*arrays, INT)
    return () if d.kind in ("list", "missing") else None
