"""Lines of Python that check how values are made, and name their parts: straight-line code for calls that are repeated.

For a dictionary {"w": array, "n": 3} that is in the variable `p`:

    if not (type(p) is dict and [*p] == names and [*map(type, p)] == kinds): raise changed
    p_w = p["w"]
    if not (type(p_w) is ndarray): raise changed
    p_n = p["n"]
    if not (type(p_n) is int): raise changed
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import keyword
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from srcdiff.signature.layouts import Layout
from srcdiff.signature.record_layouts import RecordLayout
from srcdiff.signature.standing_classes import standing
from srcdiff.signature.structures import is_plain_class, layout_of, slots_of

VALUES = frozenset({bool, int, float, str, np.bool_, np.str_, *np.sctypeDict.values()} - {np.object_, np.void})
"""Types whose objects are compared by value."""


class Names:
    """Gives names to objects, none of which a text has already."""

    def __init__(self, texts: Iterable[str]) -> None:
        taken, self.prefix = list(texts), "_c"
        while any(self.prefix in text for text in taken):
            self.prefix = f"_{self.prefix}"
        self.known: dict[int, str] = {}
        self.objects: dict[str, Any] = {}
        self.count = 0
        self.loaded: dict[Any, str] = {}
        """The variables that hold what stands at a place, by the key of the place."""

    def new(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count - 1}"

    def __call__(self, value: Any) -> str:
        if id(value) not in self.known:
            name = self.known[id(value)] = self.new()
            self.objects[name] = value
        return self.known[id(value)]


def attribute(owner: str, name: str, names: Callable[[Any], str]) -> str:
    """The expression for an attribute, whose name may be any text."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{owner}.{name}"
    return f"{names(getattr)}({owner}, {name!r})"


def same_value(text: str, value: Any, names: Callable[[Any], str]) -> str:
    """The expression that is true for a number or a text of this type and value, and for the same other object."""
    expected = names(value)
    if type(value) not in VALUES or value is True or value is False:
        return f"{text} is {expected}"
    return f"({text} is {expected} or ({names(type)}({text}) is {names(type(value))} and {text} == {expected}))"


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """A value that lines have checked: what holds it, and its parts."""

    value: Any
    text: str
    layout: Layout | None = None
    parts: tuple[Opened, ...] = ()


Step = tuple[bool, Any]
"""A step to a part of something: whether it is an attribute, and its name, key or index."""


@dataclasses.dataclass(slots=True)
class Checks:
    """Writes lines that check how values are made; where one is made in another way, they raise."""

    names: Names
    error: type[Exception]
    layout: Callable[[Any], Layout | None]
    """The layout of what is taken apart; None for a leaf."""
    leaf: Callable[[Any, str, tuple[Step, ...]], str]
    """The condition for a leaf, from an example, what holds it, and the steps that lead to it."""
    lines: list[str] = dataclasses.field(default_factory=list)
    known: dict[int, Opened] = dataclasses.field(default_factory=dict)
    """The lists, dictionaries and instances that were seen: two that are the same must be the same again."""
    around: list[int] = dataclasses.field(default_factory=list)

    def require(self, *conditions: str) -> None:
        found = [c for c in conditions if c]
        if found:
            self.lines.append(f"if not ({' and '.join(found)}): raise {self.names(self.error)}")

    def check(self, value: Any, text: str, path: tuple[Step, ...] = ()) -> Opened:
        """Write the lines for a variable; `value` is an example of what it holds."""
        layout = None if id(value) in self.around else self.layout(value)
        if layout is None:
            self.require(self.leaf(value, text, path))
            return Opened(value, text)
        shared = not isinstance(value, tuple)
        if shared and id(value) in self.known:
            self.require(f"{text} is {self.known[id(value)].text}")
            return self.known[id(value)]
        self.require(*self._is_laid_out(value, layout, text))
        self.around.append(id(value))
        parts = []
        for name, part in zip(layout.names, layout.taken_apart(value), strict=True):
            inner = self.names.new()
            self.lines.append(f"{inner} = {self._part(text, layout, name)}")
            parts.append(self.check(part, inner, (*path, (layout.is_instance, name))))
        self.around.pop()
        found = Opened(value, text, layout, tuple(parts))
        if shared:
            self.known[id(value)] = found
        return found

    def _part(self, text: str, layout: Layout, name: Any) -> str:
        if layout.is_converted:
            of = self.names(layout.kind.__srcdiff_parts__)  # type: ignore[attr-defined]
            return f"{of}({text})[{layout.names.index(name)}]"
        if layout.is_instance:
            return attribute(text, str(name), self.names)
        return f"{text}[{self.names(name) if isinstance(name, enum.Enum) else repr(name)}]"

    def _is_laid_out(self, value: Any, layout: Layout, text: str) -> list[str]:
        """The conditions for the same class, and the same keys or attributes."""
        name, kind = self.names, type(value)
        found = [f"{name(type)}({text}) is {name(kind)}"]
        if isinstance(layout, RecordLayout):
            dtype = name(layout.dtype)
            found.append(f"({text}.dtype is {dtype} or {text}.dtype == {dtype})")
            return found if layout.rank is None else [*found, f"{text}.ndim == {layout.rank}"]
        if layout.is_mapping:
            keys = list(layout.names)
            same_types = f"[*{name(map)}({name(type)}, {text})] == {name([type(k) for k in keys])}"
            return [*found, f"[*{text}] == {name(keys)}", same_types]
        if not layout.is_instance:
            return [*found, f"{name(builtins.len)}({text}) == {len(layout.names)}"]
        return found + has_attributes(value, text, self.names)


def has_attributes(value: Any, text: str, name: Callable[[Any], str]) -> list[str]:
    """The conditions for the same attributes of an instance itself."""
    plain: Any = type(value)
    if standing(plain) is not None:
        return []  # attributes that are not fields do not matter
    kind, found = type(value), []
    own = getattr(value, "__dict__", None)
    if own is not None:
        same = f"[*{text}.__dict__] == {name(list(own))}"
        if dataclasses.is_dataclass(kind):  # whose fields have an order of their own
            same = f"({same} or {{*{text}.__dict__}} == {name(set(own))})"
        found.append(same)
    missing = [slot for slot in slots_of(kind) if not hasattr(value, slot)]
    return found + [f"not {name(hasattr)}({text}, {slot!r})" for slot in missing]


def same_constant(text: str, value: Any, name: Callable[[Any], str]) -> str:
    """The expression that is true for the same number or text, or the same object; it may have got attributes."""
    kind: Any = type(value)
    same = same_value(text, value, name)
    if is_plain_class(kind) and layout_of(value) is None:
        return " and ".join([same, *has_attributes(value, text, name)])
    return same
