"""Tuples, lists, dictionaries and dataclasses: their layouts, flattening and rebuilding."""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import re
import sys
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from srcdiff.signature.enums import spelled

_MAPPINGS = (dict, collections.OrderedDict)

FOREIGN = {"srcdiff", "numba", "numba_cuda", "llvmlite", "numpy", "scipy", "pandas", "torch", "jax", "tensorflow"}
"""Packages whose objects are not opened: what they are stands in compiled code."""
_OWN_ACCESS = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")
_HEAP_TYPE = 1 << 9
"""The flag of classes that were made by a `class` statement."""


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
        return self.kind in _MAPPINGS

    @property
    def is_instance(self) -> bool:
        return self.kind not in _MAPPINGS and not issubclass(self.kind, tuple | list)

    def part(self, owner: str, k: int) -> str:
        """The expression for a part of `owner`."""
        name = self.names[k]
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
        if self.kind in _MAPPINGS:
            return [value[n] for n in self.names]
        return [getattr(value, str(n)) for n in self.names] if self.is_instance else list(value)

    def made(self, items: Sequence[Any]) -> Any:
        """An object with this layout. A dataclass is created without a call of its `__init__`.

        >>> Layout(dict, ("w", "b")).made([1.0, 2.0])
        {'w': 1.0, 'b': 2.0}
        """
        kind = self.kind
        if kind in _MAPPINGS:
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


def is_key(value: Any) -> bool:
    """Whether the dictionary key is supported."""
    return type(value) in (str, int) or isinstance(value, enum.Enum)


def mapping_layout(kind: type, keys: Iterable[str | int | enum.Enum]) -> Layout:
    """The layout of a dictionary with these keys."""
    names = tuple(keys)
    plain = all(type(name) in (str, int) for name in names)
    return Layout(kind, names, () if plain else tuple(map(type, names)))


def made_layout(kind: Layout | type | None, count: int) -> Layout:
    """The layout itself, or the layout of a list, tuple or named tuple with this number of elements."""
    return kind if isinstance(kind, Layout) else Layout(kind or tuple, tuple(range(count)))


@functools.lru_cache(maxsize=1024)
def is_plain_class(kind: type) -> bool:
    """Whether the instances of a class are their attributes: it is written in Python, and so are those above it.

    >>> is_plain_class(types.SimpleNamespace), is_plain_class(dict)
    (True, False)
    """
    if kind is types.SimpleNamespace:
        return True
    if type(kind) not in (type, abc.ABCMeta) or issubclass(kind, BaseException) or kind is object:
        return False
    if any(hasattr(kind, name) for name in ("__array__", "__array_interface__", "__srcdiff_array__")):
        return False  # its instances are arrays
    for base in kind.__mro__[:-1]:
        root = str(base.__module__).partition(".")[0]
        is_ours = base in _WITHOUT_ATTRIBUTES
        if not is_ours and (root in FOREIGN or root in sys.stdlib_module_names):
            return False
        if not base.__flags__ & _HEAP_TYPE or (not is_ours and any(name in vars(base) for name in _OWN_ACCESS)):
            return False
    return True


_WITHOUT_ATTRIBUTES = (abc.ABC, typing.Generic, typing.Protocol)


def attributes_of(value: Any) -> tuple[str, ...]:
    """The names of the attributes that an instance has itself."""
    slots = [name for base in reversed(type(value).__mro__) for name in _slots(base) if hasattr(value, name)]
    return (*slots, *getattr(value, "__dict__", ()))


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def layout_of(value: Any) -> Layout | None:
    """The layout of a tuple, a list, a dictionary or an instance of a class; None for anything else."""
    kind = type(value)
    if kind in _MAPPINGS:
        return mapping_layout(kind, value) if all(is_key(key) for key in value) else None
    if kind is list or isinstance(value, tuple):
        return made_layout(kind if kind is list or hasattr(kind, "_fields") else tuple, len(value))
    if dataclasses.is_dataclass(kind):
        names = tuple([f.name for f in dataclasses.fields(kind)])
        own = getattr(value, "__dict__", ())
        return Layout(kind, names, extra=tuple([n for n in own if n not in names]))
    plain: Any = kind
    names = attributes_of(value) if is_plain_class(plain) else ()
    return Layout(kind, names) if names else None  # one without attributes is only itself


def own_methods(kind: type) -> set[str]:
    """The methods that a named tuple class, or a base class written by the user, defines itself.

    >>> class Vector(collections.namedtuple("Vector", "x y")):
    ...     def __add__(self, other):
    ...         return Vector(self.x + other.x, self.y + other.y)
    >>> "__add__" in own_methods(Vector), "__new__" in own_methods(Vector)
    (True, False)
    """
    found: set[str] = set()
    for c in kind.__mro__:
        if issubclass(c, tuple) and c is not tuple:
            found |= set(vars(c)) - (
                {"__new__"} if "_fields" in vars(c) else set()
            )  # `collections.namedtuple` generates it
    return found


def is_plain_tuple(kind: type) -> bool:
    """Whether a tuple class stores, reads and compares its elements as plain tuples do."""
    return kind is tuple or (hasattr(kind, "_fields") and not own_methods(kind) & _OF_TUPLES)


_OF_TUPLES = {"__new__", "__iter__", "__len__", "__getitem__", "__bool__", "__contains__", "__getattribute__"}
_OF_TUPLES |= {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
