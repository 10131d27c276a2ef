"""NumPy's records and structured arrays: their fields as parts, and the same again from other parts.

A record is a structure of numbers. A structured array is a structure of arrays, one for each field; they are views of
the caller's memory.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srcdiff.signature.layouts import Layout

RECORDS = (np.void, np.record)
ARRAYS_OF_RECORDS = (np.ndarray, np.recarray, np.memmap)


@dataclass(frozen=True, slots=True)
class RecordLayout(Layout):
    """The layout of a record, or of a structured array: its fields."""

    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype([]))
    rank: int | None = None
    """The number of axes; None for a record."""

    @property
    def is_mapping(self) -> bool:
        return False

    @property
    def is_instance(self) -> bool:
        return False

    @property
    def has_own_types(self) -> bool:
        return True  # its integers are integers by its dtype

    def text(self, parts: Sequence[str]) -> str:
        """
        >>> record_layout(np.void, np.dtype([("x", "f8"), ("n", "i8")]), None).text(["float64", "int64"])
        'record(x: float64, n: int64)'
        """
        inner = ", ".join(f"{n}: {p}" for n, p in zip(self.names, parts, strict=True))
        return f"{'record' if self.rank is None else 'records'}({inner})"

    def taken_apart(self, value: Any) -> list[Any]:
        return [value[n] for n in self.names]

    def made(self, items: Sequence[Any]) -> Any:
        """A record or a structured array of these fields, without those that are None.

        It is a dictionary where the parts are no fields of one array, as the blocks of a Jacobian.

        >>> record_layout(np.void, np.dtype([("x", "f8"), ("n", "i8")]), None).made([1.5, None])
        np.void((1.5,), dtype=[('x', '<f8')])
        """
        rank, kinds = self.rank or 0, []
        given: list[tuple[str, np.ndarray[Any, Any]]] = []
        shape: tuple[int, ...] | None = None
        for name, own_axes, x in zip(self.names, _own_axes(self.dtype), items, strict=True):
            if x is not None:
                field = x if type(x) is np.ndarray else np.asarray(x)
                if (
                    field.ndim < rank
                    or field.shape[rank:] != own_axes
                    or (shape is not None and field.shape[:rank] != shape)
                ):
                    return {n: x for n, x in zip(self.names, items, strict=True) if x is not None}
                shape = field.shape[:rank]
                given.append((str(name), field))
                kinds.append((str(name), field.dtype))
        whole = np.zeros(shape or (), _dtype_of(self, tuple(kinds)))
        for name, field in given:
            whole[name] = field
        if self.rank is None:
            return whole[()]
        return whole.view(np.recarray) if self.kind is np.recarray else whole

    def fields_in(self, other: Any) -> list[Any]:
        """What another record, or a dictionary, has in these fields; None if it has no such field."""
        known = other if isinstance(other, dict) else getattr(getattr(other, "dtype", None), "names", None) or ()
        return [other[n] if n in known else None for n in self.names]

    def tangent_parts(self, given: Any, name: str) -> list[Any]:
        """The fields of a tangent or adjoint, which has all fields of floats: records, or a dictionary."""
        known = tuple(given) if isinstance(given, dict) else getattr(getattr(given, "dtype", None), "names", None)
        bases = {str(n): self.dtype[str(n)].base for n in self.names}
        floats = [n for n, base in bases.items() if base.kind in "fc" or base.names is not None]
        if known is None or not set(floats) <= set(known) <= set(self.names):
            raise ValueError(f"{name} must have the fields {', '.join(map(str, floats))}")
        return [given[n] if n in floats else None for n in self.names]


@functools.lru_cache(maxsize=256)
def _own_axes(dtype: np.dtype[Any]) -> tuple[tuple[int, ...], ...]:
    """The axes that each field has itself."""
    return tuple(dtype[n].shape for n in dtype.names or ())


@functools.lru_cache(maxsize=256)
def _dtype_of(layout: RecordLayout, found: tuple[tuple[str, np.dtype[Any]], ...]) -> np.dtype[Any]:
    """The dtype itself if these are all fields, with numbers of the same kind; otherwise one of these fields."""
    whole = layout.dtype
    same = {n: t.kind == whole[n].base.kind and t.names == whole[n].base.names for n, t in found}
    if len(found) == len(layout.names) and all(same.values()):
        return whole
    made = [(n, whole[n].base if same[n] and t.names is None else t, whole[n].shape) for n, t in found]
    return np.dtype((np.record, made)) if layout.kind in (np.record, np.recarray) else np.dtype(made)


def record_layout(kind: type, dtype: np.dtype[Any], rank: int | None) -> RecordLayout:
    assert dtype.names is not None
    return RecordLayout(kind, dtype.names, dtype=dtype, rank=rank)


def layout_of_records(value: Any) -> RecordLayout | None:
    """The layout of a record or a structured array; None for anything else."""
    kind = type(value)
    if kind in RECORDS:
        return None if value.dtype.names is None else record_layout(kind, value.dtype, None)
    if kind in ARRAYS_OF_RECORDS and value.dtype.names is not None:
        return record_layout(kind, value.dtype, value.ndim)
    return None


@dataclass(frozen=True, slots=True)
class UnusableField:
    """Stands for a field that the compiler has no type for: a text, a date, an object."""

    dtype: np.dtype[Any]


def memory_of_records(value: Any) -> np.ndarray[Any, Any]:
    """The memory of a record or of a structured array."""
    return np.frombuffer(value, dtype=np.uint8) if type(value) in RECORDS else value


def records_in(value: Any) -> list[Any]:
    """The records and structured arrays in an argument, or in tuples, lists and dictionaries."""
    if type(value) in (tuple, list):
        return [x for part in value for x in records_in(part)]
    if type(value) is dict:
        return records_in(list(value.values()))
    return [] if layout_of_records(value) is None else [value]
