"""Tangents and adjoints of users in the form that compiled code takes, and walks over their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.api.chosen_arguments import is_of_floats
from srcdiff.api.derivatives import Derivative
from srcdiff.frontend.domain.abstract_values import Abstract, List, Static, Stored, Tuple
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array, Stack, is_complex, is_inexact
from srcdiff.signature.record_layouts import RecordLayout
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import NODES, VALUES, Part, parts_of

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.frontend.reading import Reading


def fitted(taken: Abstract, of: Abstract, value: Any, given: Any, name: str) -> Any:
    """A tangent or adjoint of a value in the form that compiled code takes. None means zero.

    `taken` describes the form that the code takes, `of` the value.
    """
    pairs = NODES.beside(of, (value, given), name, _pairs)
    takes = NODES.beside(of, taken, name, lambda _, x, __: x.items)
    found = iter([_fitted_leaf(x, part, *pair) for (part, pair), (_, x) in zip(pairs, takes, strict=True)])
    return NODES.fold(of, lambda _: next(found), lambda _, parts: tuple(parts))


def _pairs(_: Any, pair: tuple[Any, Any], name: str) -> list[tuple[Any, Any]]:
    """The parts of a value, each with the given tangent or adjoint."""
    value, given = pair
    parts = parts_of(value) or ()
    return list(zip(parts, [None] * len(parts) if given is None else _parts_like(value, given, name), strict=True))


def _fitted_leaf(taken: Abstract, of: Part, value: Any, given: Any) -> Any:
    if isinstance(of.value, Stored):
        assert isinstance(taken, Tuple)
        return _columns(taken, of.value, (value, given), of.name)
    if not isinstance(taken, Value):
        return None
    if not isinstance(taken.type, Array):
        convert = complex if is_complex(taken.type) else float
        return convert(0.0 if given is None else given)
    result = np.zeros_like(value)
    if given is not None:
        found = np.asarray(given)
        if found.shape != value.shape:
            raise ValueError(f"{of.name} has the shape {found.shape}, but its value has {value.shape}")
        if np.iscomplexobj(found) and not np.iscomplexobj(value):
            raise TypeError(f"{of.name} is complex, but its value is real: take its real part")
        result[...] = found
    return result


def _columns(taken: Tuple, of: Stored, pair: tuple[list[Any], Any], name: str) -> tuple[Any, ...]:
    """The tangent or adjoint of a list of run-time length: one array for each number in its elements."""
    elements = [NODES.beside(of.element, one, f"{name}[{k}]", _pairs) for k, one in enumerate(_pairs(of, pair, name))]
    rows = [[(part.name, bar) for part, (_, bar) in row if part.value.kind != "static"] for row in elements]
    found: list[Any] = [None] * len(taken.items)
    for k, (storage, kind) in enumerate(zip(of.arrays, taken.items, strict=False)):
        column = [row[k] for row in rows]
        if isinstance(kind, Value) and isinstance(kind.type, Array):
            found[k] = np.array([0.0 if bar is None else bar for _, bar in column], dtype=kind.type.dtype)
        elif isinstance(storage.type, Stack) and is_inexact(storage.type.element):
            for place, bar in column:
                if bar is not None and np.any(bar):
                    message = f"{place} is not supported: it is an array in a list with a length known only at run time"
                    raise TypeError(f"{message}. Use forward mode, or return an array")
    return tuple(found)


def _parts_like(value: Any, given: Any, name: str) -> list[Any]:
    """The parts of a tangent or adjoint, which must have the structure of its value."""
    layout = layout_of(value)
    assert layout is not None
    if isinstance(layout, RecordLayout):
        return layout.tangent_parts(given, name)
    if layout.is_mapping:
        if not isinstance(given, dict) or given.keys() != value.keys():
            raise ValueError(f"{name} must be a dictionary with the keys {', '.join(map(repr, value))}")
        return layout.taken_apart(given)
    if layout.is_instance:
        if type(given) not in (type(value), layout.kind):  # gradients by compiled classes are of a class beside them
            raise ValueError(f"{name} must be an instance of {type(value).__name__}")
        if hasattr(layout.kind, "__srcdiff_alike__") and not layout.kind.__srcdiff_alike__(value, given):
            raise ValueError(f"{name} must have the same elements as its value")
        return layout.taken_apart(given)
    if not isinstance(given, tuple | list | np.ndarray):
        raise TypeError(
            f"{name} must have the structure of its value, a {type(value).__name__} of {len(value)} elements"
        )
    if len(given) != len(value):
        raise ValueError(f"{name} has {len(given)} parts, but its value has {len(value)}")
    return list(given)


def fitted_tangents(derivative: Derivative, args: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, ...]:
    compiled = derivative.specialised(args).compiled
    takes, reading = compiled.further, compiled.reading
    if len(tangents) != len(takes):
        raise ValueError(f"{len(takes)} tangents are needed, but {len(tangents)} are given")
    positions = [derivative.names.index(n) for n in derivative.wrt]
    shapes = [_with_stored(reading.arguments[n], reading) for n in derivative.wrt]
    each = zip(positions, shapes, takes.items(), tangents, strict=True)
    return tuple(fitted(x, of, args[k], t, name) for k, of, (name, x), t in each)


def _with_stored(x: Abstract, reading: Reading) -> Abstract:
    """An argument, with its lists replaced by their storage."""
    return NODES.map(lambda leaf: reading.lists.get(leaf, Static(None)) if isinstance(leaf, List) else leaf, x)


def leaves(x: Any) -> list[Any]:
    """The floats and arrays of floats in a structure."""
    return [leaf for leaf in VALUES.leaves(x) if is_of_floats(leaf)]


def leaves_beside(x: Any, other: Any) -> list[Any]:
    """The entries of another structure of the same form at the places of these leaves.

    >>> leaves_beside((1.5, 2, [3.5]), (0.1, 0.2, [0.3]))
    [0.1, 0.3]
    """
    return [one for part, one in VALUES.beside(x, other, "") if is_of_floats(part.value)]


def like(x: Any, make: Callable[[Any], Any]) -> Any:
    """A structure of the same form with new leaves; leaves without floats become None."""
    return VALUES.map(lambda leaf: make(leaf) if is_of_floats(leaf) else None, x)


def directions(
    x: Any, units_of: Callable[[Any], tuple[complex, ...]]
) -> Iterator[tuple[int, tuple[int, ...], int, complex, Any]]:
    """For each number in a structure: its leaf, its index, and each unit direction with its position."""
    found = leaves(x)
    for k, leaf in enumerate(found):
        for place in np.ndindex(np.shape(leaf)):
            for position, unit in enumerate(units_of(leaf)):
                along = [np.zeros(np.shape(other), complex if np.iscomplexobj(other) else float) for other in found]
                along[k][place] = unit
                left = (one if one.ndim else one.item() for one in along)
                yield k, place, position, unit, like(x, lambda _, left=left: next(left))  # type: ignore[misc]
