"""Objects of users' classes that stand for arrays: their method `__srcdiff_array__` returns the array, or a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.signature.structures import layout_of

_ORDINARY = frozenset({float, int, bool, str, type(None), np.ndarray, np.float64})

_RETURNED = (np.ndarray, np.memmap, float, int, bool)


def has_own_array(value: Any) -> bool:
    """Whether the class of the object says which array it stands for."""
    return hasattr(type(value), "__srcdiff_array__") and not isinstance(value, type)


def own_array(value: Any) -> Any:
    """The array or number that an object stands for; raises TypeError if there is none."""
    kind: Any = type(value)
    found = kind.__srcdiff_array__(value) if has_own_array(value) else None
    if type(found) in _RETURNED or isinstance(found, np.floating | np.integer | np.bool_):
        return found
    if not has_own_array(value):
        raise TypeError(f"`{kind.__name__}` has no `__srcdiff_array__`")
    raise TypeError(f"`{kind.__name__}.__srcdiff_array__` returns a `{type(found).__name__}`, not an array or a number")


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


def with_own_arrays(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with arrays in the place of objects that stand for them; the same tuple if there are none."""
    found = [_converted(value) for value in values]
    return values if all(a is b for a, b in zip(found, values, strict=True)) else tuple(found)


def _converted(value: Any, around: tuple[int, ...] = ()) -> Any:
    kind = type(value)
    if kind in _ORDINARY or id(value) in around:  # an instance may refer to itself
        return value
    if has_own_array(value):
        return own_array(value)
    if kind is list and _ORDINARY.issuperset(map(type, value)):
        return value
    layout = layout_of(value)
    if layout is None:
        return value
    parts = layout.taken_apart(value)
    found = [_converted(part, (*around, id(value))) for part in parts]
    return value if all(a is b for a, b in zip(found, parts, strict=True)) else layout.made(found)
