"""The lists and dictionaries of `numba.typed`, as arguments: a list of numbers is one of Python's, in compiled code.

    List of numbers or arrays           items
    Dict with integers as keys          contents, and order: its keys
    Dict with strings as keys           entries: a dictionary of Python's

Numbers are taken out by compiled loops: a read of one element from Python takes about 10 microseconds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, typed, types

from srcdiff.signature.standing_classes import stands_for


@dataclass(frozen=True)
class TypedList:
    """A `numba.typed.List`."""

    items: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return bool(value._typed)

    @staticmethod
    def __srcdiff_parts__(value: Any) -> list[Any]:
        return [elements_of(value, value._dtype)]

    @staticmethod
    def __srcdiff_made__(items: Any) -> Any:
        return list_of(items)

    @staticmethod
    def __srcdiff_gradient__(argument: Any, parts: Sequence[Any]) -> Any:
        return list_of(parts[0])


@dataclass(frozen=True)
class TypedTable:
    """A `numba.typed.Dict` with integers or tuples of integers as keys."""

    contents: Any
    order: Any
    width = 1
    """The number of integers in a key."""

    @staticmethod
    def __srcdiff_parts__(value: Any) -> list[Any]:
        kind = value._numba_type_
        keys, values = _listed(value)
        width = len(kind.key_type) if isinstance(kind.key_type, types.BaseTuple) else 1
        order = np.array(elements_of(keys, kind.key_type), np.int64).reshape(len(keys), width)
        return [elements_of(values, kind.value_type), order]

    @staticmethod
    def __srcdiff_made__(contents: Any, order: Any) -> Any:
        keys = order[:, 0].tolist() if order.shape[1] == 1 else list(map(tuple, order.tolist()))
        return dictionary_of(keys, contents)

    @staticmethod
    def __srcdiff_gradient__(argument: Any, parts: Sequence[Any]) -> Any:
        return dictionary_of(list(argument), parts[0])


class TypedPairs(TypedTable):
    """The same, for pairs of integers as keys."""

    width = 2


class TypedTriples(TypedTable):
    """The same, for three integers as a key."""

    width = 3


_TABLES = {1: TypedTable, 2: TypedPairs, 3: TypedTriples}


@dataclass(frozen=True)
class TypedDictionary:
    """A `numba.typed.Dict` with strings as keys."""

    entries: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> Any:
        if not value._typed:
            return False
        kind = value._numba_type_.key_type
        parts: tuple[Any, ...] = tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)  # type: ignore[arg-type]
        if kind == types.unicode_type:
            return TypedDictionary
        are_integers = all(isinstance(part, types.Integer) for part in parts)
        return _TABLES.get(len(parts), False) if are_integers else False

    @staticmethod
    def __srcdiff_parts__(value: Any) -> list[Any]:
        return [dict(value)]

    @staticmethod
    def __srcdiff_made__(entries: Any) -> Any:
        return dictionary_of(list(entries), list(entries.values()))

    @staticmethod
    def __srcdiff_gradient__(argument: Any, parts: Sequence[Any]) -> Any:
        return TypedDictionary.__srcdiff_made__(parts[0])


_ARRAYS = (types.Float, types.Integer, types.Boolean, types.Complex)


def elements_of(items: Any, kind: Any) -> list[Any]:
    """The elements of a Numba list."""
    if not len(items) or not isinstance(kind, _ARRAYS):
        return list(items)
    found: list[Any] = as_array()(items, np.empty(len(items), str(kind))).tolist()
    return found


@functools.cache
def as_array() -> Callable[[Any, Any], Any]:
    """A compiled function that copies the elements of a list into an array."""

    @njit
    def filled(items, array):  # type: ignore[no-untyped-def]
        for k in range(len(items)):
            array[k] = items[k]
        return array

    compiled: Callable[[Any, Any], Any] = filled
    return compiled


def _listed(value: Any) -> tuple[Any, Any]:
    return _keys_and_values()(value) if len(value) else ((), ())


@functools.cache
def _keys_and_values() -> Callable[[Any], tuple[Any, Any]]:
    """A compiled function that copies the keys and values of a dictionary into lists."""

    @njit
    def listed(value):  # type: ignore[no-untyped-def]
        keys, values = typed.List(), typed.List()
        for key, item in value.items():
            keys.append(key)
            values.append(item)
        return keys, values

    compiled: Callable[[Any], tuple[Any, Any]] = listed
    return compiled


def list_of(items: Sequence[Any]) -> Any:
    """A list of Numba's."""
    return typed.List(items) if len(items) else typed.List()


def dictionary_of(keys: Sequence[Any], values: Sequence[Any]) -> Any:
    """A dictionary of Numba's."""
    found = typed.Dict()
    for key, value in zip(keys, values, strict=True):
        found[key] = value
    return found


stands_for("numba.typed.typedlist", "List", TypedList)
stands_for("numba.typed.typeddict", "Dict", TypedDictionary)
