"""Guards: the outside values of a program, checked in every call. If one fails, the function is read again.

While a function is read, every outside value is recorded, with the place where it was looked up. A place is looked up
as in Python, in the scope of the function that contains the name:

    place                                       as text                 what is noted
    Variable(loss, "np")                        np                      the module
    Attribute(Constant(np), "sin")                  c0.sin                  the function
    Attribute(Constant(helper), "__code__")         c1.__code__             its code
    Variable(loss, "scale"), an input           scale                   that it is a float

All guards of a program become one Python function: see watch.py.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import itertools
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.checks import VALUES, Names, attribute
from srcdiff.signature.keys import Kept
from srcdiff.signature.structures import layout_of


class ChangedError(Exception):
    """An outside value of a program has changed since the program was read."""


Scope = Any
"""The function in whose scope a name is looked up, or None. (mypy takes functions in attributes for methods.)"""

Named = Callable[[Any], str]
"""A function that names objects. If it is `Names`, it also knows the variables that hold the values of some places."""


# -- places ----------------------------------------------------------------------------------------------------------


class Place(Protocol):
    """The place where an outside value is looked up."""

    @property
    def scope(self) -> Scope:
        """The function in whose scope the text is evaluated, if that matters."""
        ...

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for equal places."""
        ...

    def text(self, name: Named) -> str:
        """The expression that looks it up. `name` gives objects a name."""
        ...

    def read(self) -> Any:
        """The current value."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A known object."""

    value: Any
    scope = None

    @property
    def key(self) -> tuple[Any, ...]:
        return "constant", id(self.value)

    def text(self, name: Named) -> str:
        return name(self.value)

    def read(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A free variable of a function: in an enclosing function, in its module, or a builtin."""

    scope: Scope
    name: str

    @property
    def key(self) -> tuple[Any, ...]:
        free = self.scope.__code__.co_freevars
        if self.name in free and self.scope.__closure__ is not None:
            return "cell", id(self.scope.__closure__[free.index(self.name)])
        return "global", id(self.scope.__globals__), self.name

    def text(self, name: Named) -> str:
        return self.name

    def read(self) -> Any:
        """Raises NameError for an undefined or unassigned variable."""
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

    def text(self, name: Named) -> str:
        index = name(self.index) if isinstance(self.index, enum.Enum) else repr(self.index)
        return f"{text_of(self.of, name)}[{index}]"

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

    def text(self, name: Named) -> str:
        return attribute(text_of(self.of, name), self.name, name)

    def read(self) -> Any:
        return getattr(self.of.read(), self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A property computed by one of our functions: the form of a structure, or an attribute of a class."""

    function: Callable[..., Any]
    of: Place
    arguments: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return self.of.scope

    @property
    def key(self) -> tuple[Any, ...]:
        return "summary", self.function, self.of.key, self.arguments

    def text(self, name: Named) -> str:
        return f"{name(self.function)}({', '.join([text_of(self.of, name), *map(repr, self.arguments)])})"

    def read(self) -> Any:
        return self.function(self.of.read(), *self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class ClassEntry:
    """An attribute of a class, looked up in its bases. The names in all of these classes are guarded."""

    kind: type
    name: str
    scope = None

    @property
    def key(self) -> tuple[Any, ...]:
        return "class entry", id(self.kind), self.name

    def text(self, name: Named) -> str:
        holder = next((base for base in self.kind.__mro__ if self.name in vars(base)), None)
        return "None" if holder is None else f"{name(vars(holder))}[{self.name!r}]"

    def read(self) -> Any:
        return class_entry(self.kind, self.name)


def text_of(place: Place, name: Named) -> str:
    """The expression for the value at a place. It is a variable, if one holds the value."""
    known = name.loaded.get(place.key) if isinstance(name, Names) else None
    return known or place.text(name)


# -- summaries -------------------------------------------------------------------------------------------------------


def exactly(value: Any) -> Any:
    """A value that can be compared with values of any type."""
    if type(value) is tuple:
        return (tuple, *map(exactly, value))
    return (type(value), value) if type(value) in VALUES else Kept(value)


def contents(value: dict[str, Any] | None) -> Any:
    """The contents of a dictionary of arguments, for a comparison."""
    return value and tuple((name, exactly(x)) for name, x in value.items())


_MOST_PARTS = 5_000


class _TooLargeError(Exception):
    """A structure has more parts than are compared."""


def made(value: Any) -> Any:
    """The form of a tuple, a list, a dictionary or an instance: its class, its names, and its parts.

    For floats and arrays, which are read in every call, the form is only the type. Parts that are too large are not
    opened.
    """
    try:
        return _form(value, (), itertools.count())
    except _TooLargeError:
        layout = None if isinstance(value, tuple) else layout_of(value)
        names, parts = (len(value), value) if layout is None else (layout, layout.taken_apart(value))
        return (type(value), names, *(Kept(part) if is_too_large(part) else made(part) for part in parts))


def is_too_large(value: Any) -> bool:
    """Whether a structure has too many parts, where a part counts as often as it is referred to.

    Objects that refer to each other in many ways have more paths between them than can be followed.
    """
    try:
        _form(value, (), itertools.count())
    except _TooLargeError:
        return True
    return False


def _form(value: Any, around: tuple[int, ...], counted: Iterator[int]) -> Any:
    """The form of a value, which may refer to those that are `around` it."""
    if isinstance(value, enum.Enum) or id(value) in around:
        return Kept(value)
    layout = None if isinstance(value, tuple) else layout_of(value)
    if isinstance(value, tuple) or layout is not None:
        if next(counted) > _MOST_PARTS:
            raise _TooLargeError
        names, parts = (len(value), value) if layout is None else (layout, layout.taken_apart(value))
        around = (*around, id(value))
        return (type(value), names, *(_form(part, around, counted) for part in parts))
    if isinstance(value, np.ndarray):
        return (np.ndarray, value.dtype, value.ndim)
    return type(value) if isinstance(value, float | np.floating) else exactly(value)


def class_entry(kind: type, name: str) -> Any:
    """An attribute of a class, looked up in its bases. Raises AttributeError."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    raise AttributeError(name)


def class_names(kind: type) -> tuple[tuple[type, tuple[str, ...]], ...]:
    """The classes in which attributes of a class and its instances are looked up, and the names in each."""
    return tuple((base, tuple(vars(base))) for base in kind.__mro__)


_ORIGINALS = {module: dict(vars(module)) for module in (np, np.linalg, math, builtins)}


def original(module: types.ModuleType, name: str) -> Any:
    """The original attribute of a module, in case a user has replaced it: for calls in our own functions."""
    found = _ORIGINALS.get(module, {}).get(name)
    return getattr(module, name) if found is None else found


# -- guards ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A place, and the value found there."""

    place: Place
    value: Any

    def holds(self) -> bool:
        """Whether the place still has this value."""
        return self.place.read() is self.value


@dataclass(slots=True)
class Guards:
    """The guards of a program, one for each place."""

    known: dict[tuple[Any, ...], Guard] = field(default_factory=dict)

    def add(self, place: Place, value: Any) -> None:
        self.known.setdefault(place.key, Guard(place, value))

    def add_function(self, function: types.FunctionType, code: types.CodeType) -> None:
        """Guard a function that was read, with its defaults."""
        whole = Constant(function)
        self.add(Attribute(whole, "__code__"), code)
        self.add(Attribute(whole, "__defaults__"), function.__defaults__)
        if function.__kwdefaults__ is None:
            self.add(Attribute(whole, "__kwdefaults__"), None)
        else:
            self.add(Summary(contents, Attribute(whole, "__kwdefaults__")), contents(function.__kwdefaults__))

    def add_class(self, kind: type) -> None:
        """Guard a class whose methods were examined."""
        place = Summary(class_names, Constant(kind))
        if place.key not in self.known:
            self.add(place, class_names(kind))

    def __iter__(self) -> Iterator[Guard]:
        return iter(self.known.values())


def names_in(text: str) -> list[Guard]:
    """Guards for the functions of NumPy and `math` that generated code calls, so that a replacement is noticed.

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
    """Collect the guards of all functions that are read inside the block, such as those of rules."""
    found: list[Guard] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def collect(guards: Iterable[Guard]) -> None:
    """Record the guards of a function that was read."""
    found = _collected.get()
    if found is not None:
        found += guards
