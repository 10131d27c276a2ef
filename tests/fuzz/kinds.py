"""The types of names in random programs, each with an invariant, and the names to choose from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Real:
    """A float, no larger than `bound` as far as the writer cares; an accumulator may grow with the loops around it."""

    bound: float = 4.0


@dataclass(frozen=True, slots=True)
class Integer:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Text:
    """A string that chooses the program, one of `values`; None among them for an optional argument."""

    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array; a length that is not known when the program is written is None, and at least one."""

    shape: tuple[int | None, ...]
    kind: str = "float"
    highest: int = 0  # of an array of integers: elements are in 0 .. highest

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class List:
    """A list of floats with at least `least` elements; lists of one `group` may be the same list."""

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
    optional: int = 0  # how many of the last parameters have defaults
    cost: int = 1  # loop iterations one call may take
    recursive: bool = False  # whether it is to be called because it calls itself


@dataclass(frozen=True, slots=True)
class Arrays:
    """A list of arrays of one shape, with at least `least` of them."""

    item: Array
    least: int
    group: int


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of lists of floats: one at least, with one element each at least."""

    group: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A list of pairs of floats, one at least, which has one name."""


@dataclass(frozen=True, slots=True)
class Style:
    """What a program is made of: whether whole arrays are among it, and the lengths of most of them."""

    whole: bool = False
    sizes: tuple[int, int] = (3, 2)


Type = Real | Integer | Boolean | Text | Array | List | Arrays | Rows | Pairs | Tuple | Function
Shape = tuple[int, ...]

PAIR = Tuple((Real(), Real()))
NAMED_PAIR = Tuple((Real(), Real()), "Pair", ("first", "second"))
NESTED = Tuple((Tuple((Real(), Real())), Real()))
LARGE = Real(200.0)

NAMES: dict[str, tuple[str, ...]] = {
    "real": ("x", "y", "z", "w", "p", "q", "r", "s", "t", "speed", "angle", "force", "mass", "rate"),
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

#: How often a loop's variable takes a name that stood for another type: where the loop may not run, that name is
#: either of the two afterwards, which a compiler may refuse.
LOOP_REUSE = 0.01

#: Functions of one real whose result stays within one or two whatever the argument.
BOUNDED = ("math.sin", "math.cos", "math.tanh", "math.atan", "np.sin", "np.cos", "np.tanh", "np.arctan")


@dataclass(slots=True)
class Loop:
    """A loop being written: the names defined wherever an iteration or the loop ends."""

    number: int
    breaks: list[dict[str, Type]] = field(default_factory=list)
    ends: list[dict[str, Type]] = field(default_factory=list)


#: What follows `for`, the names it binds, about how many iterations, whether at least one, and what must stay as
#: it is meanwhile: groups of lists, and names.
Header = tuple[str, list[tuple[str, Type]], int, bool, list[int], list[str]]


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    bound: float


def common(*scopes: dict[str, Type]) -> dict[str, Type]:
    """The names that all scopes define with the same type."""
    first, *others = scopes
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def fits(known: Type, wanted: Type) -> bool:
    """Whether a variable of one type may be passed for another: unknown lengths accept any but zero."""
    if isinstance(known, Array) and isinstance(wanted, Array) and known.kind == wanted.kind:
        return known.rank == wanted.rank and all(
            k == w or (w is None and k != 0) for k, w in zip(known.shape, wanted.shape, strict=True)
        )
    if isinstance(known, List) and isinstance(wanted, List):
        return known.least == wanted.least == 0  # a function may empty the list it is given
    return known == wanted
