"""All guards of a program as one Python function. It is straight-line code, so that a repeated call stays fast.

The guards of a function that reads `scale`, and `w` and `size` of an instance `model`:

    def guards():
        try:
            if not (loss.__code__ is code and np.sin is sin): raise changed
            if not ([*members_of_model] == names): raise changed
            m = model
            if not (type(m) is Model and [*m.__dict__] == ["w", "size"]): raise changed
            w = m.w
            size = m.size
            if not (size is 3 or type(size) is int and size == 3): raise changed
            scale_now = scale
            if not (type(scale_now) is float): raise changed
            if not (type(w) is ndarray and w.dtype is dtype and w.ndim == 1 and w.flags.c_contiguous): raise changed
        except gone: raise changed
        return scale_now, w
"""

from __future__ import annotations

import builtins
import enum
import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from srcdiff.frontend.source.guards import (
    ChangedError,
    Guard,
    Place,
    Scope,
    Summary,
    class_names,
    contents,
    is_too_large,
    made,
    text_of,
)
from srcdiff.signature.checks import Checks, Names, Opened, Step, same_constant, same_value
from srcdiff.signature.keys import key_of
from srcdiff.signature.layouts import Layout
from srcdiff.signature.structures import is_plain_tuple, layout_of, made_layout, mapping_layout

_GONE = (NameError, AttributeError, LookupError, TypeError)
"""The exceptions of lookups that no longer work."""

Input = tuple[Place, Any]
"""A value that is read in every call, and its key."""


class Watch:
    """Writes functions that check all guards of a program, and the types of its outside inputs."""

    def __init__(self, main: Scope, guards: Iterable[Guard], inputs: Sequence[Input] = ()) -> None:
        self.main = main
        scopes: dict[Scope, tuple[list[Guard], list[Input]]] = {main: ([], [])}
        for guard in {g.place.key: g for g in guards}.values():
            scopes.setdefault(guard.place.scope or main, ([], []))[0].append(guard)
        for place, key in inputs:
            scopes.setdefault(place.scope or main, ([], []))[1].append((place, key))
        own = _Lines(*scopes.pop(main))
        self.names, self.lines = own.names, own.lines
        found = dict(own.found)
        for scope, (its_guards, its_inputs) in scopes.items():
            other = _Lines(its_guards, its_inputs)
            call = f"{self.names(other.function(scope))}()"
            new = [self.names.new() for _ in its_inputs]
            self.lines.append(f"{', '.join(new)}, = {call}" if new else call)
            found |= {place.key: text for (place, _), text in zip(its_inputs, new, strict=True)}
        self.found = [found[place.key] for place, _ in inputs]
        gone, changed = self.names(_GONE), self.names(ChangedError)
        self.lines = ["try:", *[f"    {line}" for line in self.lines or ["pass"]]]
        self.lines += [f"except {gone}: raise {changed} from None"]

    def function(self, parameters: Sequence[str], first: Sequence[str], last: Sequence[str]) -> Callable[..., Any]:
        """A function that runs `first`, checks the guards, and runs `last`."""
        return _function(self.main, self.names, parameters, [*first, *self.lines, *last])

    def values(self) -> Callable[[], list[Any]]:
        """A function that returns the outside inputs, and raises ChangedError if a guard fails."""
        return self.function((), (), [f"return [{', '.join(self.found)}]"])


class _Lines:
    """The lines for the guards and the inputs of one scope."""

    def __init__(self, guards: Sequence[Guard], inputs: Sequence[Input]) -> None:
        places = [g.place for g in guards] + [place for place, _ in inputs]
        self.names = Names([place.text(_unnamed) for place in places])
        self.inputs = {place.key for place, _ in inputs}
        self.lines: list[str] = []
        plain = [self.condition(g) for g in guards if not isinstance(g.place, Summary)]
        self.require(" and ".join(plain))
        for guard in guards:
            if isinstance(guard.place, Summary):
                self.add_summary(guard.place, guard.value)
        self.found: list[tuple[Any, str]] = []
        for place, key in inputs:
            text = text_of(place, self.names)
            if text not in self.names.loaded.values():
                text, found = self.names.new(), text
                self.lines.append(f"{text} = {found}")
            self.require(_is_of_kind(text, key, self.names))
            self.found.append((place.key, text))

    def require(self, condition: str) -> None:
        if condition:
            self.lines.append(f"if not ({condition}): raise {self.names(ChangedError)}")

    def condition(self, guard: Guard) -> str:
        """The expression that is true while the value is unchanged."""
        return same_value(text_of(guard.place, self.names), guard.value, self.names)

    def add_summary(self, place: Summary, value: Any) -> None:
        """Add the checks that a structure has the same form."""
        try:
            is_same = place.read() == value
        except _GONE:
            is_same = False
        if not is_same:  # it has changed since the program was read
            self.require("False")
        elif place.function is class_names:
            for base, names in value:
                if not _is_immutable(base):
                    self.require(f"[*{self.names(vars(base))}] == {self.names(list(names))}")
            kind = place.of.read()
            self.require(f"{self.names(kind)}.__mro__ is {self.names(kind.__mro__)}")
        elif place.function is made and not is_too_large(place.of.read()):
            self.add_checks(Checks(self.names, ChangedError, _layout_made, self.of_part(place.of)), place.of)
        elif place.function is contents:
            self.add_checks(Checks(self.names, ChangedError, _layout_given, self.exactly), place.of)
        else:
            self.require(f"{place.text(self.names)} == {self.names(value)}")

    def add_checks(self, checks: Checks, place: Place) -> None:
        variable = self.names.new()
        self.lines.append(f"{variable} = {text_of(place, self.names)}")
        opened = checks.check(place.read(), variable)
        self.lines += checks.lines
        self.note(opened, place.key)

    def note(self, opened: Opened, key: Any) -> None:
        """Record which variables hold which values."""
        self.names.loaded.setdefault(key, opened.text)
        if opened.layout is not None:
            for name, part in zip(opened.layout.names, opened.parts, strict=True):
                self.note(part, _key_of_step(key, (opened.layout.is_instance, name)))

    def of_part(self, place: Place) -> Callable[[Any, str, tuple[Step, ...]], str]:
        """The conditions for leaves. For floats and arrays, only the type is checked, unless they are inputs."""

        def condition(value: Any, text: str, path: tuple[Step, ...]) -> str:
            name = self.names
            if functools.reduce(_key_of_step, path, place.key) in self.inputs:
                return ""
            if type(value) is np.ndarray:
                dtype, array = name(value.dtype), f"{name(type)}({text}) is {name(np.ndarray)}"
                return f"{array} and {text}.dtype == {dtype} and {text}.ndim == {value.ndim}"
            if isinstance(value, float | np.floating) and not isinstance(value, enum.Enum):
                return f"{name(type)}({text}) is {name(type(value))}"
            return self.exactly(value, text, path)

        return condition

    def exactly(self, value: Any, text: str, path: tuple[Step, ...]) -> str:
        """The condition for an equal number or string, or the identical object."""
        return same_constant(text, value, self.names)

    def function(self, scope: Scope) -> Callable[[], Any]:
        """A function of the scope that checks its guards and returns the inputs."""
        found = "".join(f"{text}, " for _, text in self.found)
        return _function(scope, self.names, (), [*self.lines, f"return ({found})"])


def _key_of_step(key: Any, step: Step) -> Any:
    """The key of the place of a part: see the places in guards.py."""
    is_attribute, name = step
    return ("field", key, str(name)) if is_attribute else ("item", key, type(name), name)


def _layout_made(value: Any) -> Layout | None:
    if isinstance(value, tuple) and not is_plain_tuple(type(value)):
        return None
    return None if isinstance(value, enum.Enum) else layout_of(value)


def _layout_given(value: Any) -> Layout | None:
    """The layout of a dictionary of arguments, and of tuples in it. Other values are compared by value or identity."""
    if type(value) is dict:
        return mapping_layout(dict, value)
    return made_layout(tuple, len(value)) if type(value) is tuple else None


def _is_immutable(kind: type) -> bool:
    """Whether a class is immutable, as those that are not written in Python are."""
    return not kind.__flags__ & 1 << 9


def _unnamed(value: Any) -> str:
    return "0"


_NAME_OF_GUARDS = "srcdiff_s_own_guards"  # hides no name of the user


def _function(scope: Scope, names: Names, parameters: Sequence[str], lines: Sequence[str]) -> Callable[..., Any]:
    """A function with these lines, in the scope of another function."""
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
            return f"{name(builtins.type)}({found}) is {name(np.ndarray)} and {dtype} and {native} and {flag}"
    return f"{name(key_of)}({found}) == {name(key)}"
