"""Objects among the arguments that stand for arrays: of users' classes, by their method `__srcdiff_array__`, which
returns the array or a number; and arrays of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.signature.foreign_arrays import Kind, kind_of
from srcdiff.signature.structures import layout_of

_ORDINARY = frozenset({float, int, bool, str, type(None), np.ndarray, np.float64})

_RETURNED = (np.ndarray, np.memmap, float, int, bool)


def has_own_array(value: Any) -> bool:
    """Whether the class of the object says which array it stands for."""
    return hasattr(type(value), "__srcdiff_array__") and not isinstance(value, type)


class NoArrayError(TypeError):
    """An object does not stand for an array or a number, although it should."""


def own_array(value: Any) -> Any:
    """The array or number that an object stands for; raises NoArrayError if there is none."""
    kind: Any = type(value)
    found = kind.__srcdiff_array__(value) if has_own_array(value) else None
    if type(found) in _RETURNED or isinstance(found, np.floating | np.integer | np.bool_):
        return found
    if not has_own_array(value):
        raise NoArrayError(f"`{kind.__name__}` has no `__srcdiff_array__`")
    message = f"`{kind.__name__}.__srcdiff_array__` returns a `{type(found).__name__}`, not an array or a number"
    raise NoArrayError(message)


def speaks_array(value: Any) -> bool:
    """Whether NumPy can convert the object to an array, by `__array__` or by the buffer protocol.

    >>> speaks_array(memoryview(b"ab")), speaks_array([1.0]), speaks_array("ab")
    (True, False, False)
    """
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic | bytes | type):
        return False
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def with_own_arrays(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Kind]]:
    """The arguments with arrays in the place of objects that stand for them, and the kinds of foreign arrays.

    The arguments are the same tuple if there are no such objects.
    """
    kinds: list[Kind] = []
    found = [_converted(value, kinds) for value in values]
    return values if all(a is b for a, b in zip(found, values, strict=True)) else tuple(found), kinds


def _converted(value: Any, kinds: list[Kind], around: tuple[int, ...] = ()) -> Any:
    kind = type(value)
    if kind in _ORDINARY or id(value) in around:  # an instance may refer to itself
        return value
    if has_own_array(value):
        return own_array(value)
    if kind is list and _ORDINARY.issuperset(map(type, value)):
        return value
    layout = layout_of(value)
    if layout is None:
        return _of_foreign(value, kinds)
    parts, within = layout.taken_apart(value), (*around, id(value))
    part_of = _converted_attribute if layout.is_instance else _converted
    found = [part_of(part, kinds, within) for part in parts]
    return value if all(a is b for a, b in zip(found, parts, strict=True)) else layout.made(found)


def _converted_attribute(value: Any, kinds: list[Kind], around: tuple[int, ...]) -> Any:
    try:
        return _converted(value, kinds, around)
    except NoArrayError:
        raise
    except Exception:  # the function may not need it
        return value


def _of_foreign(value: Any, kinds: list[Kind]) -> Any:
    kind = kind_of(value)
    if kind is None:
        return value
    kinds.append(kind)
    return kind.array(value)
