"""Arguments of calls with known types, as straight-line code: what is checked, and what compiled code is given.

For a call of the gradient of `loss(p, x)`, with a dictionary {"w": array, "name": "a"} for `p`:

    if not (type(p) is dict and [*p] == keys and [*map(type, p)] == kinds): raise unfit
    w = p["w"]
    if not (type(w) is ndarray): raise unfit
    name = p["name"]
    if not (name is a or type(name) is str and name == "a"): raise unfit
    ...
    return finished(straight((w,), x), (p, x))
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np

from srcdiff.backends.numba.direct import UnfitError
from srcdiff.ir.types import FLOAT
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.checks import Checks, Names, Opened, Step, same_constant
from srcdiff.signature.conversion import converter, gradient_converter, has_identity, is_one_of
from srcdiff.signature.descriptions import Description, is_passed
from srcdiff.signature.keys import is_stored
from srcdiff.signature.layouts import Layout
from srcdiff.signature.record_layouts import RecordLayout, UnusableField
from srcdiff.signature.structures import layout_of

_LARGEST = 2**63 - 1
_NUMBERS = frozenset({float, bool, *np.sctypeDict.values()}) - {np.uint64, np.object_, np.void, np.str_, np.bytes_}
_GONE = (AttributeError, LookupError, TypeError)


class IndirectError(Exception):
    """Arguments that are looked at by Python code at every call."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The argument for compiled code: its expression, and the expressions of the numbers and arrays in it."""

    text: str
    leaves: tuple[str, ...]


class DirectArguments:
    """The lines that check and unpack arguments. Raises IndirectError if this is not possible."""

    def __init__(
        self,
        names: Names,
        parameters: Sequence[str],
        args: Sequence[Any],
        descriptions: Sequence[Description],
        told_apart: bool,
    ) -> None:
        self.names, self.told_apart = names, told_apart
        self.lines: list[str] = []
        self.passed: list[Passed] = []
        self.opened: list[Opened] = []
        for parameter, value, d in zip(parameters, args, descriptions, strict=True):
            opened = self.checked(parameter, value, d)
            self.opened.append(opened)
            if is_passed(d):
                self.passed.append(self.given(opened, d))
        if self.lines:
            gone, unfit = names(_GONE), names(UnfitError)
            self.lines = ["try:", *[f"    {line}" for line in self.lines], f"except {gone}: raise {unfit} from None"]

    def checked(self, parameter: str, value: Any, d: Description) -> Opened:
        """Write the checks of an argument; the types of numbers and arrays are looked at by Numba."""
        name, kind = self.names, type(value)
        if kind is np.ndarray and value.dtype.names is None and d.kind == "value":
            self.require(f"{name(type)}({parameter}) is {name(np.ndarray)}")
            return Opened(value, parameter)
        if kind in (float, int) and d.kind == "value":
            if self.told_apart or converter(d, value) is not None:
                self.require(f"{name(type)}({parameter}) is {name(kind)}")
            return Opened(value, parameter)
        checks = Checks(name, UnfitError, _layout_passed, self._leaf_of(d))
        opened = checks.check(value, parameter)
        self.lines += checks.lines
        return opened

    def require(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): raise {self.names(UnfitError)}")

    def _leaf_of(self, whole: Description) -> Callable[[Any, str, tuple[Step, ...]], str]:
        """The conditions for the leaves of an argument: those that its key has."""

        def condition(value: Any, text: str, path: tuple[Step, ...]) -> str:
            d, name = whole, self.names
            for _, step in path:
                d = d.parts[d.layout.names.index(step)]
            kind = type(value)
            if d.kind == "static" and d.detail[0] is UnusableField:
                return ""  # it follows from the dtype
            if d.kind == "static" and kind is not np.ndarray:
                return same_constant(text, value, name)
            if d.kind in ("stored", "items") and kind is list and set(map(type, value)) <= {float}:
                kinds = name({*map(type, value)})
                return f"{name(type)}({text}) is {name(list)} and {{*{name(map)}({name(type)}, {text})}} == {kinds}"
            if d.kind == "value" and kind is int:
                return f"{name(type)}({text}) is {name(int)} and -{_LARGEST} <= {text} <= {_LARGEST}"
            if d.kind == "value" and (kind in _NUMBERS or (kind is np.ndarray and value.dtype.names is None)):
                return f"{name(type)}({text}) is {name(kind)}"
            raise IndirectError

        return condition

    def given(self, x: Opened, d: Description) -> Passed:
        """The value passed to compiled code for an argument, or for a part of one: see `converter`."""
        name = self.names
        match d.kind:
            case "stored":
                dtype = name(np.dtype(d.parts[0].detail.dtype))
                text = name.new()
                self.lines.append(f"{text} = {name(np.array)}({x.text}, {dtype})")
                return Passed(text, (text,))
            case "value" if d.detail == FLOAT and isinstance(x.value, int | np.integer):
                return Passed(f"{name(_as_float)}({x.text})", (x.text,))
            case "record":
                parts = [self.given(p, q) for p, q in zip(x.parts, d.parts, strict=True) if is_passed(q)]
                return Passed(_tuple(parts), _leaves(parts))
            case "tuple":
                parts = [self.given_in_tuple(p, q) for p, q in zip(x.parts, d.parts, strict=True)]
                if converter(d, x.value) is None:
                    return Passed(x.text, _leaves(parts))
                kind = "" if d.detail is None else name(d.detail._make)
                return Passed(f"{kind}({_tuple(parts)})" if kind else _tuple(parts), _leaves(parts))
        return Passed(x.text, (x.text,))

    def given_in_tuple(self, x: Opened, d: Description) -> Passed:
        """A part of a tuple: something stands for constants, too."""
        if is_passed(d):
            return self.given(x, d)
        return Passed(("None" if not isinstance(x.value, str) else x.text) if d.kind == "static" else "()", ())

    def rebuilt(self, x: Opened, d: Description, gradient: str, lines: list[str]) -> str:
        """The gradient with the structure of an argument, from what compiled code returns: see `gradient_converter`."""
        name = self.names
        if gradient_converter(d) is None:
            return gradient
        if d.kind == "stored":
            return f"{gradient}[:{name(len)}({x.text})].tolist()"
        parts = [
            self.rebuilt(p, q, f"{gradient}[{k}]", lines) for k, (p, q) in enumerate(zip(x.parts, d.parts, strict=True))
        ]
        layout = d.layout
        if layout.has_own_types and not isinstance(layout, RecordLayout):
            return f"{name(layout.gradient)}({x.text}, [{', '.join(parts)}])"
        if isinstance(layout, RecordLayout) or layout.kind is types.SimpleNamespace:
            return f"{name(layout.made)}([{', '.join(parts)}])"
        if layout.is_mapping:
            text = "{" + ", ".join(f"{self.key(n)}: {part}" for n, part in zip(layout.names, parts, strict=True)) + "}"
            return text if layout.kind is dict else f"{name(layout.kind)}({text})"
        if not layout.is_instance:
            listed = ", ".join(parts)
            if layout.kind is list:
                return f"[{listed}]"
            return f"({listed},)" if layout.kind is tuple else f"{name(layout.kind)}({listed})"
        new, assign = name.new(), name(object.__setattr__)
        lines.append(f"{new} = {name(object.__new__)}({name(layout.kind)})")
        lines += [f"{assign}({new}, {n!r}, {part})" for n, part in zip(layout.names, parts, strict=True)]
        return new

    def key(self, key: Any) -> str:
        return self.names(key) if isinstance(key, enum.Enum) else repr(key)

    def with_identity(self, kinds: Set[type]) -> list[str]:
        """The containers of the lists in the arguments, and of the instances of some classes."""
        found = [x for one in self.opened for x in _nodes(one)]
        return [x.text for x in found if has_identity(x.value) or is_one_of(x.value, kinds)]


def _nodes(x: Opened) -> Iterator[Opened]:
    yield x
    for part in x.parts:
        yield from _nodes(part)


def _tuple(parts: Sequence[Passed]) -> str:
    return f"({''.join(f'{part.text}, ' for part in parts)})"


def _leaves(parts: Sequence[Passed]) -> tuple[str, ...]:
    return tuple(leaf for part in parts for leaf in part.leaves)


def _layout_passed(value: Any) -> Layout | None:
    if isinstance(value, enum.Enum) or (type(value) is list and is_stored(value)):
        return None
    return layout_of(value)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise UnfitError from None
