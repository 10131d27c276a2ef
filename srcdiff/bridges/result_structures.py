"""What a function returns, as a structure of numbers and arrays: one, or several in tuples, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Items, Record, Static, Structured, Tuple
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.signature.structures import Layout, layout_of, made_layout


@dataclass(frozen=True)
class Leaf:
    """A number or an array that a function returns."""

    text: str
    """How it is read from the result: `result[0]['w']`."""
    rank: int
    dtype: np.dtype[Any]

    @property
    def is_number(self) -> bool:
        return not self.rank


@dataclass(frozen=True)
class Results:
    """The structure of what a function returns: a leaf, or a layout with the structures of its parts."""

    leaf: Leaf | None = None
    layout: Layout | None = None
    parts: tuple[Results, ...] = ()

    @property
    def is_single(self) -> bool:
        return self.leaf is not None

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,) if self.leaf is not None else tuple([leaf for part in self.parts for leaf in part.leaves])

    def shapes(self, given: Any) -> list[tuple[int, ...]]:
        """The shapes of the leaves, from a structure of shapes; None for numbers only."""
        if given is None:
            return [() for _ in self.leaves]
        if self.layout is None:
            return [tuple(map(int, given))]
        layout = layout_of(given)
        if layout is None or layout.names != self.layout.names:
            raise ValueError(f"`shape` must return a shape for each result, with their structure, not {given!r}")
        pairs = zip(self.parts, self.layout.taken_apart(given), strict=True)
        return [shape for part, one in pairs for shape in part.shapes(one)]

    def rebuilt(self, values: Sequence[Any]) -> Any:
        """The structure with these leaves."""
        return self._rebuilt(iter(values))

    def _rebuilt(self, values: Iterator[Any]) -> Any:
        if self.layout is None:
            return next(values)
        return self.layout.made([part._rebuilt(values) for part in self.parts])


def results_of(result: Any, text: str = "result") -> Results | None:
    """The structure of a result that srcdiff has read; None if a part of it is neither a number nor an array."""
    match result:
        case Value(type=Array() as kind):
            return Results(Leaf(text, kind.rank, np.dtype(str(kind.dtype))))
        case Value():
            return Results(Leaf(text, 0, np.dtype(str(getattr(result.type, "dtype", "float64")))))
        case Static(value=float() | int() | np.number()) if not isinstance(result.value, bool):
            return Results(Leaf(text, 0, np.asarray(result.value).dtype))
        case Structured():
            return None
        case Tuple() | Record() | Items():
            layout = _layout(result)
            parts = [results_of(item, layout.part(text, k)) for k, item in enumerate(result.items)]
            known = [part for part in parts if part is not None]
            return Results(layout=layout, parts=tuple(known)) if known and len(known) == len(parts) else None
    return None


def _layout(result: Tuple | Record | Items) -> Layout:
    if isinstance(result, Record):
        return result.kind
    if isinstance(result, Items) or result.is_list:
        return made_layout(list, len(result.items))
    return made_layout(result.kind, len(result.items))
