"""Descriptions of types: of arguments, and of abstract values."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from srcdiff.ir.types import FLOAT, INT
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.enums import spelled
from srcdiff.signature.structures import Layout, made_layout
from srcdiff.signature.trees import NODES, Node


@dataclass(frozen=True, slots=True)
class Description(Node):
    """The compile-time part of an abstract value; two descriptions can be compared and joined."""

    kind: str
    detail: Any = None
    parts: tuple[Description, ...] = ()

    def opened(self) -> tuple[Description, ...] | None:
        return self.parts if self.kind in ("tuple", "record") else None

    @property
    def layout(self) -> Layout:
        return made_layout(list if self.kind == "items" else self.detail, len(self.parts))

    def remade(self, parts: Iterable[Description]) -> Description:
        return Description(self.kind, self.detail, tuple(parts))


NONE = Description("static", (type(None), None))
CONTIGUOUS = Description("contiguous")
"""Part of the description of an argument: a contiguous array in C order."""
NUMPYS = Description("numpys")
"""Part of the description of an argument: a number of NumPy, not of Python."""
INTEGER = Description("integer")
"""Marks the description of an active float that the caller passes as an integer."""
UNCHOSEN = Description("unchosen")
"""Marks the description of a number or an array in an active structure that has no derivative: others are chosen."""


Paths = tuple[tuple[str, ...], ...]
"""Attributes, attributes of attributes, and so on: `model.rates.k` is `("model", "rates", "k")`."""


def paths_below(name: str, paths: Paths) -> Paths:
    """The rest of the paths that begin with this name."""
    return tuple([path[1:] for path in paths if path[0] == name])


def to_differentiate_by(description: Description, paths: Paths = ()) -> Description:
    """The description with active integers as marked floats, also inside tuples; with `paths`, only below these."""
    parts = description.opened()
    if paths and () not in paths and parts is not None and not description.layout.has_own_types:
        below = [paths_below(str(name), paths) for name in description.layout.names]
        each = zip(parts, below, strict=True)
        return description.remade([to_differentiate_by(p, rest) if rest else _as_unchosen(p) for p, rest in each])
    if description.kind == "value" and description.detail == INT:
        return Description("value", FLOAT, (*description.parts, INTEGER))
    if isinstance(description.detail, Layout) and description.detail.has_own_types:
        return description
    if description.kind == "tuple":
        return _with_parts(description, to_differentiate_by)
    return floats_for_integers(description)


def _as_unchosen(description: Description) -> Description:
    parts = description.opened()
    if parts is None:
        is_marked = description.kind == "value"
        return Description("value", description.detail, (*description.parts, UNCHOSEN)) if is_marked else description
    return description if description.layout.has_own_types else description.remade(map(_as_unchosen, parts))


def _with_parts(whole: Description, changed: Callable[[Description], Description]) -> Description:
    """The description of a structure with changed parts, except for those that its class declares as integers."""
    integers = whole.layout.integers
    return whole.remade([part if k in integers else changed(part) for k, part in enumerate(whole.parts)])


def floats_for_integers(description: Description) -> Description:
    """An active number is a float, even if the caller passes the integer 3."""

    def leaf(d: Description) -> Description:
        match d.kind:
            case "value" if d.detail == INT:
                return Description("value", FLOAT, (*d.parts, INTEGER))
            case "static" if _is_integer(d.detail[1]):
                return Description("value", FLOAT)
            case "items":
                return Description("stored", None, (Description("value", FLOAT),))
            case "stored":
                return d.remade(map(floats_for_integers, d.parts))
        return d

    def visit(d: Description) -> Description:
        if isinstance(d.detail, Layout) and d.detail.has_own_types:
            return d
        return leaf(d) if d.opened() is None else _with_parts(d, visit)

    return visit(description)


def _is_integer(value: Any) -> bool:
    """Whether a constant is an integer that a float represents exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023


def type_text(d: Description) -> str:
    """A type as a user writes it.

    >>> from srcdiff.signature.keys import describe_argument
    >>> type_text(describe_argument((1.0, {"w": 2.0}, [1, 2]), "x", None))
    "(float64, {'w': float64}, [int64])"
    """

    def leaf(d: Description) -> str:
        match d.kind:
            case "value":
                return str(d.detail)
            case "stored" | "items":
                return f"[{', '.join(map(type_text, d.parts))}]"
            case "static":
                value = d.detail[1]
                if isinstance(value, enum.Enum):
                    return spelled(value)
                return getattr(value, "__qualname__", None) or repr(value)
        return d.kind

    return NODES.fold(d, leaf, lambda x, parts: str(x.layout.text(parts)))


def is_passed(d: Description) -> bool:
    """Whether the argument, or a part of it, exists at run time."""
    return d.kind not in ("static", "items")
