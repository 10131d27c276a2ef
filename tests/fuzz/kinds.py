"""The types of names in random programs, each with an invariant, and the names to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Real:
    """A float with an absolute value of about at most `bound`. An accumulator may grow in the enclosing loops."""

    bound: float = 4.0


@dataclass(frozen=True, slots=True)
class Complex:
    pass


@dataclass(frozen=True, slots=True)
class Integer:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Text:
    """A string that selects a path of the program, one of `values`. An optional argument may be None."""

    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array. A length that is unknown when the program is written is None, and at least one."""

    shape: tuple[int | None, ...]
    kind: str = "float"
    highest: int = 0  # of an array of integers: elements are in 0 .. highest

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class List:
    """A list of floats with at least `least` elements. Lists of one `group` may be the same list."""

    least: int
    group: int


@dataclass(frozen=True, slots=True)
class Tuple:
    items: tuple[Type, ...]
    maker: str = ""  # the name of the namedtuple
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    parameters: tuple[Type, ...]
    result: Type | None
    names: tuple[str, ...] = ()
    optional: int = 0  # the number of trailing parameters with defaults
    cost: int = 1  # the number of loop iterations in one call
    recursive: bool = False  # whether it calls itself, so that it should be called


@dataclass(frozen=True, slots=True)
class Arrays:
    """A list of arrays of one shape, with at least `least` of them."""

    item: Array
    least: int
    group: int


@dataclass(frozen=True, slots=True)
class Rows:
    """A nonempty list of nonempty lists of floats."""

    group: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A nonempty list of pairs of floats, with only one name."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A value whose parts have names of their own, by which they are read and written.

    >>> Structure((("x", Real()),)).members("body")
    {'body.x': Real(bound=4.0)}
    """

    parts: tuple[tuple[str, Type], ...]
    maker: str = ""  # the class, or its kind
    way: str = "{0}.{1}"  # the expression for a part
    given: int = 0  # the number of parts that are arguments of the maker
    fixed: tuple[str, ...] = ()  # parts that are only read
    traits: tuple[str, ...] = ()  # further capabilities
    argument: Callable[[list[Any]], Any] | None = field(
        default=None, compare=False
    )  # makes an argument of a program from values of the parts

    def members(self, name: str) -> dict[str, Type]:
        return {self.way.format(name, part): kind for part, kind in self.parts}


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator of real numbers: the result of a function with `yield`."""


@dataclass(frozen=True, slots=True)
class Style:
    """The features of a program: whether it has whole arrays, and their most frequent lengths."""

    whole: bool = False
    sizes: tuple[int, int] = (3, 2)
    constructs: tuple[Callable[[Any], Any], ...] = ()  # made for the writer of a function


Type = (
    Real
    | Complex
    | Integer
    | Boolean
    | Text
    | Array
    | List
    | Arrays
    | Rows
    | Pairs
    | Tuple
    | Function
    | Structure
    | Generator
)
Shape = tuple[int, ...]

PAIR = Tuple((Real(), Real()))
NAMED_PAIR = Tuple((Real(), Real()), "Pair", ("first", "second"))
NESTED = Tuple((Tuple((Real(), Real())), Real()))
LARGE = Real(200.0)

NAMES: dict[str, tuple[str, ...]] = {
    "real": ("x", "y", "z", "w", "p", "q", "r", "s", "t", "speed", "angle", "force", "mass", "rate"),
    "complex": ("zeta", "eta", "psi", "xi", "amplitude", "phasor"),
    "wave": ("wave", "spectrum", "modes", "transfer", "impulse"),
    "structure": ("body", "model", "node", "cell", "unit", "agent", "plant", "motor"),
    "total": ("total", "energy", "result", "score"),
    "integer": ("k", "m", "n", "count", "level", "step", "shift"),
    "counter": ("i", "j", "l", "turn"),
    "fuel": ("fuel", "left", "tries"),
    "boolean": ("flag", "ready", "high", "odd"),
    "array": ("a", "b", "c", "u", "v", "field", "work", "buffer"),
    "view": ("row", "part", "column", "block", "tail"),
    "indices": ("index", "order", "where"),
    "mask": ("mask", "inside", "chosen"),
    "list": ("items", "stack", "values", "history"),
    "arrays": ("parts", "layers", "states", "rows"),
    "rows": ("table", "lines", "buckets", "paths"),
    "tuple": ("pair", "state", "both", "point"),
    "function": ("local", "inner", "term", "weight"),
}

#: The probability that a loop variable takes a name of another type. If the loop may not run, the name then
#: has one of two types, which a compiler may refuse.
LOOP_REUSE = 0.01

#: Functions of one real whose absolute result is at most about two for every argument.
BOUNDED = ("math.sin", "math.cos", "math.tanh", "math.atan", "np.sin", "np.cos", "np.tanh", "np.arctan")


@dataclass(slots=True)
class Loop:
    """A loop that is being written, with the names that are defined at the ends of iterations and of the loop."""

    number: int
    breaks: list[dict[str, Type]] = field(default_factory=list)
    ends: list[dict[str, Type]] = field(default_factory=list)


#: The iterable of a `for`, the names it binds, the approximate trip count, whether it is at least one, and the
#: groups of lists and the names that must not change meanwhile.
Header = tuple[str, list[tuple[str, Type]], int, bool, list[int], list[str]]


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    bound: float


def common(*scopes: dict[str, Type]) -> dict[str, Type]:
    """The names that have the same type in all scopes."""
    first, *others = scopes
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def fits(known: Type, wanted: Type) -> bool:
    """Whether a variable of one type may be passed for another. Unknown lengths accept any length except zero."""
    if isinstance(known, Array) and isinstance(wanted, Array) and known.kind == wanted.kind:
        return known.rank == wanted.rank and all(
            k == w or (w is None and k != 0) for k, w in zip(known.shape, wanted.shape, strict=True)
        )
    if isinstance(known, List) and isinstance(wanted, List):
        return known.least == wanted.least == 0  # a function may empty its list argument
    return known == wanted
