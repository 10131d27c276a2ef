"""Guards: the outside values of a program, checked at every call; if one fails, the function is read again.

While a function is read, every value from outside is recorded, with the place where it was looked up. A place is looked
up as in Python, in the scope of the function that names it:

    place                                       as text                 what is noted
    Variable(loss, "np")                        np                      the module
    Attribute(Constant(np), "sin")                  c0.sin                  the function
    Attribute(Constant(helper), "__code__")         c1.__code__             its code
    Variable(loss, "scale"), an input           scale                   that it is a float

All guards of a program become one Python function, which costs a few nanoseconds for each guard.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from srcdiff.signature.keys import Kept, key_of
from srcdiff.signature.structures import layout_of


class ChangedError(Exception):
    """Something outside of a program is not what the program was read with."""


Scope = Any
"""A function in whose scope a name is looked up, or None; mypy takes functions in attributes for methods."""


# -- places ----------------------------------------------------------------------------------------------------------


class Place(Protocol):
    """Where something was looked up."""

    @property
    def scope(self) -> Scope:
        """The function in whose scope the text is to be read, if that matters."""
        ...

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for the same place."""
        ...

    def text(self, name: Callable[[Any], str]) -> str:
        """The expression that looks it up; `name` gives a name to an object."""
        ...

    def read(self) -> Any:
        """What is there now."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An object that is known itself."""

    value: Any
    scope = None

    @property
    def key(self) -> tuple[Any, ...]:
        return "constant", id(self.value)

    def text(self, name: Callable[[Any], str]) -> str:
        return name(self.value)

    def read(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A name that is not the function's own: a variable of a function around it, of its module, or a builtin."""

    scope: Scope
    name: str

    @property
    def key(self) -> tuple[Any, ...]:
        free = self.scope.__code__.co_freevars
        if self.name in free and self.scope.__closure__ is not None:
            return "cell", id(self.scope.__closure__[free.index(self.name)])
        return "global", id(self.scope.__globals__), self.name

    def text(self, name: Callable[[Any], str]) -> str:
        return self.name

    def read(self) -> Any:
        """Raises NameError where there is no such variable, and where it has no value."""
        code, name = self.scope.__code__, self.name
        if name in code.co_freevars and self.scope.__closure__ is not None:
            try:
                return self.scope.__closure__[code.co_freevars.index(name)].cell_contents
            except ValueError:
                raise NameError(f"`{name}` is not assigned in the enclosing function") from None
        if name in self.scope.__globals__:
            return self.scope.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"`{name}` is not defined")


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element of a tuple, a list or a dictionary."""

    of: Place
    index: int | str | enum.Enum

    @property
    def scope(self) -> Scope:
        return self.of.scope

    @property
    def key(self) -> tuple[Any, ...]:
        return "item", self.of.key, type(self.index), self.index

    def text(self, name: Callable[[Any], str]) -> str:
        index = name(self.index) if isinstance(self.index, enum.Enum) else repr(self.index)
        return f"{self.of.text(name)}[{index}]"

    def read(self) -> Any:
        owner: Any = self.of.read()
        return owner[self.index]


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """An attribute of an object."""

    of: Place
    name: str

    @property
    def scope(self) -> Scope:
        return self.of.scope

    @property
    def key(self) -> tuple[Any, ...]:
        return "field", self.of.key, self.name

    def text(self, name: Callable[[Any], str]) -> str:
        return f"{self.of.text(name)}.{self.name}"

    def read(self) -> Any:
        return getattr(self.of.read(), self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What a function of ours says about something: how a structure is made, which attribute a class has."""

    function: Callable[..., Any]
    of: Place
    arguments: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return self.of.scope

    @property
    def key(self) -> tuple[Any, ...]:
        return "summary", self.function, self.of.key, self.arguments

    def text(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.function)}({', '.join([self.of.text(name), *map(repr, self.arguments)])})"

    def read(self) -> Any:
        return self.function(self.of.read(), *self.arguments)


# -- summaries -------------------------------------------------------------------------------------------------------


_VALUES = frozenset({bool, int, float, str, np.bool_, np.str_, *np.sctypeDict.values()} - {np.object_, np.void})
"""Types whose objects are compared by value."""


def exactly(value: Any) -> Any:
    """A value to compare with another of any type."""
    if type(value) is tuple:
        return (tuple, *map(exactly, value))
    return (type(value), value) if type(value) in _VALUES else Kept(value)


def contents(value: dict[str, Any] | None) -> Any:
    """What a dictionary of arguments holds."""
    return value and tuple((name, exactly(x)) for name, x in value.items())


def made(value: Any, around: tuple[int, ...] = ()) -> Any:
    """How a tuple, a list, a dictionary or an instance is made: its class, what it names, and its parts.

    Of floats and arrays, which are read at every call, only the type. An instance may refer to one `around` it.
    """
    if isinstance(value, enum.Enum) or id(value) in around:
        return Kept(value)
    layout = None if isinstance(value, tuple) else layout_of(value)
    if isinstance(value, tuple) or layout is not None:
        names, parts = (len(value), value) if layout is None else (layout, layout.taken_apart(value))
        around = around if layout is None or not layout.is_instance else (*around, id(value))
        return (type(value), names, *(made(part, around) for part in parts))
    if isinstance(value, np.ndarray):
        return (np.ndarray, value.dtype, value.ndim)
    return type(value) if isinstance(value, float | np.floating) else exactly(value)


def class_entry(kind: type, name: str) -> Any:
    """What a class, or the first one above it that has it, holds under a name; raises AttributeError."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    raise AttributeError(name)


def class_names(kind: type) -> tuple[int, ...]:
    """How many attributes a class and those above it have: more, where a method was added."""
    return tuple(len(vars(base)) for base in kind.__mro__)


_ORIGINALS = {module: dict(vars(module)) for module in (np, np.linalg, math, builtins)}


def original(module: types.ModuleType, name: str) -> Any:
    """An attribute of a module as it was before anybody could change it: for what our own functions call."""
    found = _ORIGINALS.get(module, {}).get(name)
    return getattr(module, name) if found is None else found


# -- guards ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A place, and what was found there."""

    place: Place
    value: Any

    def holds(self) -> bool:
        """Whether the same is there now."""
        return self.place.read() is self.value

    def condition(self, name: Callable[[Any], str]) -> str:
        """The expression that is true while the same is there."""
        found, value = self.place.text(name), self.value
        if isinstance(self.place, Summary) and self.place.function is not class_entry:
            return f"{found} == {name(value)}"
        if type(value) not in _VALUES or value is True or value is False:
            return f"{found} is {name(value)}"
        expected = name(value)
        same = f"{name(type)}({found}) is {name(type(value))} and {found} == {expected}"
        return f"({found} is {expected} or {same})"


@dataclass(slots=True)
class Guards:
    """The guards of a program, each place once."""

    known: dict[tuple[Any, ...], Guard] = field(default_factory=dict)

    def add(self, place: Place, value: Any) -> None:
        self.known.setdefault(place.key, Guard(place, value))

    def add_function(self, function: types.FunctionType, code: types.CodeType) -> None:
        """A function that was read, with its defaults."""
        whole = Constant(function)
        self.add(Attribute(whole, "__code__"), code)
        self.add(Attribute(whole, "__defaults__"), function.__defaults__)
        if function.__kwdefaults__ is None:
            self.add(Attribute(whole, "__kwdefaults__"), None)
        else:
            self.add(Summary(contents, Attribute(whole, "__kwdefaults__")), contents(function.__kwdefaults__))

    def add_class(self, kind: type) -> None:
        """A class whose methods were looked at, to see what its instances do."""
        self.add(Summary(class_names, Constant(kind)), class_names(kind))

    def __iter__(self) -> Iterator[Guard]:
        return iter(self.known.values())


def names_in(text: str) -> list[Guard]:
    """Guards for what generated code calls of NumPy and `math`: that it is still theirs.

    >>> [guard.place.text(lambda module: module.__name__) for guard in names_in("y = np.sin(x) + np.linalg.det(a)")]
    ['numpy.linalg', 'numpy.linalg.det', 'numpy.sin']
    """
    found: dict[tuple[Any, ...], Guard] = {}
    for whole in sorted(set(re.findall(r"\b(?:np|math)(?:\.[A-Za-z_]\w*)+", text))):
        first, *steps = whole.split(".")
        owner: Any = np if first == "np" else math
        for step in steps:
            if owner not in _ORIGINALS or not hasattr(owner, step):
                break
            guard = Guard(Attribute(Constant(owner), step), original(owner, step))
            found.setdefault(guard.place.key, guard)
            owner = guard.value if isinstance(guard.value, types.ModuleType) else None
    return list(found.values())


_collected: ContextVar[list[Guard] | None] = ContextVar("_collected", default=None)


@contextlib.contextmanager
def collected() -> Iterator[list[Guard]]:
    """The guards of all functions that are read in the meantime: of rules, which are read when they are needed."""
    found: list[Guard] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def collect(guards: Iterable[Guard]) -> None:
    """Note the guards of a function that was read."""
    found = _collected.get()
    if found is not None:
        found += guards


# -- as one function -------------------------------------------------------------------------------------------------

_GONE = (NameError, AttributeError, LookupError, TypeError)
"""What looking something up raises where it is not there any more."""


class Watch:
    """Writes functions that look at all guards of a program, and at the types of its inputs from outside."""

    def __init__(self, main: Scope, guards: Iterable[Guard], inputs: Sequence[tuple[Place, Any]] = ()) -> None:
        self.main = main
        known = list({g.place.key: g for g in guards}.values())
        by_scope: dict[Scope, list[Guard]] = {main: []}
        for guard in known:
            by_scope.setdefault(guard.place.scope or main, []).append(guard)
        own = [g.place.text(_unnamed) for g in by_scope[main]] + [p.text(_unnamed) for p, _ in inputs]
        self.names = Names(own)
        conditions = [g.condition(self.names) for g in by_scope.pop(main)]
        conditions += [f"{self.names(_holding(scope, others))}()" for scope, others in by_scope.items()]
        self.found = [self.names.new() for _ in inputs]
        lines = [f"if not ({' and '.join(conditions)}): raise {self.names(ChangedError)}"] if conditions else []
        for found, (place, key) in zip(self.found, inputs, strict=True):
            is_here = place.scope is None or place.scope is main
            text = place.text(self.names) if is_here else f"{self.names(_reading(place))}()"
            condition = _is_of_kind(found, key, self.names)
            lines += [f"{found} = {text}", f"if not ({condition}): raise {self.names(ChangedError)}"]
        gone, changed = self.names(_GONE), self.names(ChangedError)
        self.lines = ["try:", *[f"    {line}" for line in lines or ["pass"]]]
        self.lines += [f"except {gone}: raise {changed} from None"]

    def function(self, parameters: Sequence[str], first: Sequence[str], last: str) -> Callable[..., Any]:
        """A function that does what `first` says, looks at the guards, and returns."""
        return _function(self.main, self.names, parameters, [*first, *self.lines, f"return {last}"])

    def values(self) -> Callable[[], list[Any]]:
        """A function that gives the inputs from outside, and raises ChangedError where a guard fails."""
        return self.function((), (), f"[{', '.join(self.found)}]")


class Names:
    """Gives names to objects, none of which a text has already."""

    def __init__(self, texts: Iterable[str]) -> None:
        taken, self.prefix = list(texts), "_c"
        while any(self.prefix in text for text in taken):
            self.prefix = f"_{self.prefix}"
        self.known: dict[int, str] = {}
        self.objects: dict[str, Any] = {}
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count - 1}"

    def __call__(self, value: Any) -> str:
        if id(value) not in self.known:
            name = self.known[id(value)] = self.new()
            self.objects[name] = value
        return self.known[id(value)]


def _unnamed(value: Any) -> str:
    return "0"


def _holding(scope: Scope, guards: Sequence[Guard]) -> Callable[[], bool]:
    """A function that says whether guards hold, in the scope of one function."""
    names = Names(g.place.text(_unnamed) for g in guards)
    conditions = " and ".join([g.condition(names) for g in guards])
    return _function(scope, names, (), [f"return {conditions}"])


def _reading(place: Place) -> Callable[[], Any]:
    """A function that looks up a place in its own scope."""
    names = Names([place.text(_unnamed)])
    text = place.text(names)
    return _function(place.scope, names, (), [f"return {text}"])


_NAME_OF_GUARDS = "srcdiff_s_own_guards"  # which hides no name of the user's


def _function(scope: Scope, names: Names, parameters: Sequence[str], lines: Sequence[str]) -> Callable[..., Any]:
    """A function with these lines that sees what another function sees."""
    free = scope.__code__.co_freevars if scope.__closure__ is not None else ()
    given = ", ".join([*parameters, *names.objects])
    head = f"def outer({', '.join(free)}):\n  def {_NAME_OF_GUARDS}({given}):\n"
    text = head + "".join(f"    {line}\n" for line in lines)
    outer = next(c for c in compile(text, "<srcdiff guards>", "exec").co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType))
    cells = dict(zip(free, scope.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in inner.co_freevars)
    return types.FunctionType(inner, scope.__globals__, "guards", tuple(names.objects.values()), closure)


def _is_of_kind(found: str, key: Any, name: Names) -> str:
    """The expression that is true for values with this key."""
    match key:
        case type():
            return f"{name(type)}({found}) is {name(key)}"
        case int() as number, bool() as order:
            dtype, native = f"{found}.dtype.num * 64 + {found}.ndim == {number}", f"{found}.dtype.isnative"
            flag = f"{found}.flags.c_contiguous is {order}"
            return f"{name(type)}({found}) is {name(np.ndarray)} and {dtype} and {native} and {flag}"
    return f"{name(key_of)}({found}) == {name(key)}"
