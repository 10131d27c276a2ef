"""Guards: the outside values of a program, checked at every call; if one fails, the function is read again.

While a function is read, every value from outside is recorded, with the place where it was looked up. A place is looked
up as in Python, in the scope of the function that names it:

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
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from srcdiff.signature.checks import VALUES, Names, attribute
from srcdiff.signature.keys import Kept
from srcdiff.signature.structures import layout_of


class ChangedError(Exception):
    """Something outside of a program is not what the program was read with."""


Scope = Any
"""A function in whose scope a name is looked up, or None; mypy takes functions in attributes for methods."""

Named = Callable[[Any], str]
"""Gives names to objects. If it is `Names`, it also knows the variables that hold what stands at some places."""


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

    def text(self, name: Named) -> str:
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

    def text(self, name: Named) -> str:
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

    def text(self, name: Named) -> str:
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

    def text(self, name: Named) -> str:
        return f"{name(self.function)}({', '.join([text_of(self.of, name), *map(repr, self.arguments)])})"

    def read(self) -> Any:
        return self.function(self.of.read(), *self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class ClassEntry:
    """What a class, or the first one above it that has it, holds under a name. The names in all of them are guarded."""

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
    """The expression for what stands at a place: a variable, if one holds it."""
    known = name.loaded.get(place.key) if isinstance(name, Names) else None
    return known or place.text(name)


# -- summaries -------------------------------------------------------------------------------------------------------


def exactly(value: Any) -> Any:
    """A value to compare with another of any type."""
    if type(value) is tuple:
        return (tuple, *map(exactly, value))
    return (type(value), value) if type(value) in VALUES else Kept(value)


def contents(value: dict[str, Any] | None) -> Any:
    """What a dictionary of arguments holds."""
    return value and tuple((name, exactly(x)) for name, x in value.items())


def made(value: Any, around: tuple[int, ...] = ()) -> Any:
    """How a tuple, a list, a dictionary or an instance is made: its class, what it names, and its parts.

    Of floats and arrays, which are read at every call, only the type. Something may refer to what is `around` it.
    """
    if isinstance(value, enum.Enum) or id(value) in around:
        return Kept(value)
    layout = None if isinstance(value, tuple) else layout_of(value)
    if isinstance(value, tuple) or layout is not None:
        names, parts = (len(value), value) if layout is None else (layout, layout.taken_apart(value))
        around = (*around, id(value))
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


def class_names(kind: type) -> tuple[tuple[type, tuple[str, ...]], ...]:
    """The classes that a class and its instances look attributes up in, and the names of what each holds."""
    return tuple((base, tuple(vars(base))) for base in kind.__mro__)


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
        place = Summary(class_names, Constant(kind))
        if place.key not in self.known:
            self.add(place, class_names(kind))

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
