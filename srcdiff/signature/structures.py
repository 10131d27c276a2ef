"""The layouts of tuples, lists, dictionaries, records and instances of classes."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Iterable
from typing import Any

from srcdiff.signature.attrs_classes import is_written_by_attrs
from srcdiff.signature.jit_classes import class_of_value, field_types
from srcdiff.signature.layouts import MAPPINGS
from srcdiff.signature.layouts import Layout as Layout
from srcdiff.signature.random_sources import layout_of_source
from srcdiff.signature.record_layouts import layout_of_records
from srcdiff.signature.standing_classes import fields_of

FOREIGN = {"srcdiff", "numba", "numba_cuda", "llvmlite", "numpy", "scipy", "pandas", "torch", "jax", "tensorflow"} | {
    *("matplotlib", "mpl_toolkits", "PIL", "plotly", "sympy"),
}
"""Packages whose objects are not opened: what they are stands in compiled code."""
_OWN_ACCESS = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")
_HEAP_TYPE = 1 << 9
"""The flag of classes that were made by a `class` statement."""


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
    if not is_usual_metaclass(type(kind)) or issubclass(kind, BaseException) or kind is object:
        return False
    if any(hasattr(kind, name) for name in ("__array__", "__array_interface__", "__dlpack__", "__srcdiff_array__")):
        return False  # its instances are arrays
    for base in kind.__mro__[:-1]:
        root = str(base.__module__).partition(".")[0]
        is_ours = base in _WITHOUT_ATTRIBUTES
        if not is_ours and (root in FOREIGN or root in sys.stdlib_module_names):
            return False
        if not base.__flags__ & _HEAP_TYPE or (not is_ours and any(map(vars(base).__contains__, _accessors(base)))):
            return False
    return True


@functools.lru_cache(maxsize=256)
def is_usual_metaclass(kind: type) -> bool:
    """Whether a metaclass only says how classes are made, so that its classes work as others do."""
    for base in kind.__mro__[: kind.__mro__.index(type)]:
        if base is abc.ABCMeta:
            continue
        own = vars(base)
        if any(name[:2] == "__" and name not in _OF_METACLASSES for name in own):
            return False
        if any(hasattr(type(value), "__set__") for name, value in own.items() if name[:2] != "__"):
            return False
    return True


_OF_METACLASSES = {"__new__", "__init__", "__prepare__", "__module__", "__doc__", "__qualname__"}
_OF_METACLASSES |= {"__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "__annotations__"}


def _accessors(kind: type) -> list[str]:
    """The names of methods that say how attributes are accessed, but for those that `attrs` writes."""
    return [name for name in _OWN_ACCESS if not is_written_by_attrs(vars(kind).get(name))]


_WITHOUT_ATTRIBUTES = (abc.ABC, typing.Generic, typing.Protocol)


def attributes_of(value: Any) -> tuple[str, ...]:
    """The names of the attributes that an instance has itself."""
    slots = [name for name in slots_of(type(value)) if hasattr(value, name)]
    return (*slots, *getattr(value, "__dict__", ()))


def slots_of(kind: type) -> list[str]:
    """The names of the slots of a class and those above it."""
    return [name for base in reversed(kind.__mro__) for name in _slots(base)]


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def layout_of(value: Any) -> Layout | None:
    """The layout of a tuple, a list, a dictionary or an instance of a class; None for anything else."""
    kind = type(value)
    if kind in MAPPINGS:
        return mapping_layout(kind, value) if all(is_key(key) for key in value) else None
    if kind is list or isinstance(value, tuple):
        return made_layout(kind if kind is list or hasattr(kind, "_fields") else tuple, len(value))
    records = layout_of_records(value) or layout_of_source(value)
    if records is not None:
        return records
    if is_shadowed(value):
        return None
    standing = fields_of(value)
    if standing is not None:
        return Layout(*standing)
    if dataclasses.is_dataclass(kind):
        names = tuple([f.name for f in dataclasses.fields(kind)])
        own = getattr(value, "__dict__", ())
        return Layout(kind, names, extra=tuple([n for n in own if n not in names]))
    compiled = class_of_value(value)
    if compiled is not kind:
        return Layout(compiled, tuple(field_types(compiled)))
    plain: Any = kind
    names = attributes_of(value) if is_plain_class(plain) else ()
    return Layout(kind, names) if names else None  # one without attributes is only itself


def is_shadowed(value: Any) -> bool:
    """Whether a property or a descriptor of the class hides an attribute that the instance has itself."""
    own = getattr(value, "__dict__", None)
    if not own or isinstance(value, type | types.ModuleType):
        return False
    return hides(type(value), own)


def hides(kind: type, names: Iterable[Any]) -> bool:
    """Whether one of these attributes of an instance is read and set by its class."""
    hidden = _set_in_class(kind, tuple([len(vars(base)) for base in kind.__mro__]))
    return bool(hidden) and not hidden.isdisjoint(names)


@functools.lru_cache(maxsize=256)
def _set_in_class(kind: type, sizes: tuple[int, ...]) -> frozenset[str]:
    """The names of the properties, and of the descriptors with `__set__` that are written in Python."""
    names = {name for base in kind.__mro__ for name in vars(base) if name[:2] != "__"}
    return frozenset(name for name in names if _is_set(next(vars(b)[name] for b in kind.__mro__ if name in vars(b))))


def _is_set(entry: Any) -> bool:
    return isinstance(entry, property) or isinstance(getattr(type(entry), "__set__", None), types.FunctionType)


def own_methods(kind: type) -> set[str]:
    """The methods that a named tuple class, or a base class written by the user, defines itself.

    >>> import collections
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
