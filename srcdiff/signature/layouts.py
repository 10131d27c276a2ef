"""Layouts: the class of a structure, its keys or field names, and how it is taken apart and rebuilt."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import re
import types
from collections.abc import Sequence
from typing import Any

from srcdiff.signature.enums import spelled
from srcdiff.signature.jit_classes import field_types

MAPPINGS = (dict, collections.OrderedDict)


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a tuple, list, dictionary or dataclass: its class, and its keys or field names."""

    kind: type
    names: tuple[str | int | enum.Enum, ...]
    types: tuple[type, ...] = ()
    """The types of the keys, if there are enum members among them: these may equal strings and integers."""
    extra: tuple[str, ...] = ()
    """Attributes of this instance of a dataclass that are no fields."""

    @property
    def is_mapping(self) -> bool:
        return self.kind in MAPPINGS

    @property
    def is_instance(self) -> bool:
        return self.kind not in MAPPINGS and not issubclass(self.kind, tuple | list)

    @property
    def has_own_types(self) -> bool:
        """Whether integers in it stay integers: it stands for an object of another package."""
        return hasattr(self.kind, "__srcdiff_made__")

    @property
    def integers(self) -> frozenset[int]:
        """The places of the parts whose class declares them as integers, `steps: int`. They have no derivative."""
        return frozenset() if self.kind in (*MAPPINGS, tuple, list) else _declared_integers(self.kind, self.names)

    @property
    def is_converted(self) -> bool:
        """Whether its parts are made at each call: it is a container of another package."""
        return hasattr(self.kind, "__srcdiff_parts__")

    def part(self, owner: str, k: int) -> str:
        """The expression for a part of `owner`."""
        name = self.names[k]
        if self.is_converted:
            return owner
        if isinstance(name, enum.Enum):
            return f"{owner}[{spelled(name)}]"
        return f"{owner}.{name}" if self.is_instance else f"{owner}[{name!r}]"

    def attribute(self, owner: str, k: int) -> str:
        """The same expression, but with the field name for a part of a named tuple."""
        fields: tuple[str, ...] = getattr(self.kind, "_fields", ())
        return f"{owner}.{fields[k]}" if fields else self.part(owner, k)

    def variable(self, owner: str, k: int) -> str:
        """The variable name of a part that has its own name."""
        name = self.names[k]
        if self.is_converted:
            return owner
        name = spelled(name) if isinstance(name, enum.Enum) else name
        text = f"{owner}_{name}" if owner else ""
        return text if issubclass(self.kind, tuple | list) else re.sub(r"\W", "_", text)

    def text(self, parts: Sequence[str]) -> str:
        """The text of a structure with these parts, as a user would write it.

        >>> Layout(dict, ("w", "b")).text(["float64", "int64"])
        "{'w': float64, 'b': int64}"
        """
        if self.is_mapping:
            return "{" + ", ".join(f"{n!r}: {p}" for n, p in zip(self.names, parts, strict=True)) + "}"
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        if self.is_instance:
            parts = [f"{n}: {p}" for n, p in zip(self.names, parts, strict=True)]
        name = "" if self.kind is tuple else self.kind.__name__
        return f"{name}({', '.join(parts)}{',' if len(parts) == 1 and not name else ''})"

    def taken_apart(self, value: Any) -> list[Any]:
        if self.kind in MAPPINGS:
            return [value[n] for n in self.names]
        if self.is_converted and not isinstance(value, self.kind):
            found: list[Any] = self.kind.__srcdiff_parts__(value)  # type: ignore[attr-defined]
            return found
        return [getattr(value, str(n)) for n in self.names] if self.is_instance else list(value)

    def fields_in(self, other: Any) -> list[Any]:
        """The parts of a gradient: of an object of another package, only the first one has a derivative."""
        first, *rest = self.taken_apart(other)
        return [first, *[None] * len(rest)]

    def gradient(self, argument: Any, parts: Sequence[Any]) -> Any:
        """The gradient or tangent of an argument, from those of its parts."""
        kind: Any = self.kind
        if not hasattr(kind, "__srcdiff_gradient__"):
            return self.made(parts)
        return None if parts[0] is None else kind.__srcdiff_gradient__(argument, parts)

    def made(self, items: Sequence[Any]) -> Any:
        """An object with this layout. A dataclass is created without a call of its `__init__`.

        >>> Layout(dict, ("w", "b")).made([1.0, 2.0])
        {'w': 1.0, 'b': 2.0}
        """
        kind: Any = self.kind
        if self.has_own_types and None in [x if x is None else 0 for x in items]:
            return {self.names[0]: items[0]}  # the blocks of a Jacobian
        if self.has_own_types:
            return kind.__srcdiff_made__(*items)
        if kind in MAPPINGS:
            return kind(zip(self.names, items, strict=True))
        if kind is tuple or kind is list:
            return kind(items)
        if issubclass(kind, tuple):
            return kind(*items)
        if kind is types.SimpleNamespace:
            return kind(**dict(zip(map(str, self.names), items, strict=True)))
        made: Any = object.__new__(kind)
        for name, item in zip(self.names, items, strict=True):
            object.__setattr__(made, str(name), item)
        return made


@functools.lru_cache(maxsize=1024)
def _declared_integers(kind: type, names: tuple[Any, ...]) -> frozenset[int]:
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    declared: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        declared |= inspect.get_annotations(base)
    declared |= {name: int for name, type_ in field_types(kind).items() if type(type_).__name__ == "Integer"}
    return frozenset(k for k, name in enumerate(fields or names) if declared.get(name) in (int, "int"))
