"""Conversion of arguments to the form of compiled code, and of gradients to the structure of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np

from srcdiff.ir.types import FLOAT
from srcdiff.signature.descriptions import Description, is_passed
from srcdiff.signature.jit_classes import class_of_value
from srcdiff.signature.standing_classes import standing
from srcdiff.signature.structures import Layout, layout_of
from srcdiff.signature.trees import parts_of

Converter = Callable[[Any], Any]


def converter(description: Description, example: Any) -> Converter | None:
    """The conversion of an argument before the call: lists become arrays, active integers become floats."""
    if isinstance(example, Description):
        return None
    if description.kind == "stored":
        dtype = np.dtype(description.parts[0].detail.dtype)
        return lambda values: np.array(values, dtype=dtype)
    if description.kind == "value" and description.detail == FLOAT and isinstance(example, int | np.integer):
        return float
    if description.kind == "record":
        return _record_converter(description, example)
    if description.kind == "tuple":
        inner = [
            converter(d, e) if is_passed(d) else _left_out if d.kind == "static" else lambda _: ()
            for d, e in zip(description.parts, example, strict=True)
        ]
        return part_by_part(description.layout, inner) if any(inner) else None
    return None


def part_by_part(layout: Layout, inner: Sequence[Converter | None]) -> Converter:
    """Convert the parts of a tuple, and rebuild the layout from the results."""
    made = layout.made
    return lambda parts: made([x if convert is None else convert(x) for convert, x in zip(inner, parts, strict=True)])


def _record_converter(description: Description, example: Any) -> Converter:
    """Convert a dictionary, dataclass or list to the tuple of its run-time parts."""
    layout: Layout = description.detail
    parts = layout.taken_apart(example)
    inner = [(k, converter(d, parts[k]) or as_it_is) for k, d in enumerate(description.parts) if is_passed(d)]

    def convert(value: Any) -> Any:
        parts = layout.taken_apart(value)
        return tuple([each(parts[k]) for k, each in inner])

    return convert


def as_it_is(value: Any) -> Any:
    return value


def _left_out(value: Any) -> Any:
    """The placeholder in a tuple for a compile-time constant."""
    return value if isinstance(value, str) else None


def has_identity(value: Any) -> bool:
    """Whether it is a list, or a container of another package that stands for one."""
    plain: Any = type(value)
    return isinstance(value, list) or hasattr(standing(plain), "__srcdiff_parts__")


def with_identity(value: Any, kinds: Set[type], around: tuple[int, ...] = ()) -> list[Any]:
    """The lists in an argument, and the instances of these classes; an instance may refer to one `around` it."""
    if id(value) in around:
        return []
    own = [value] if has_identity(value) or is_one_of(value, kinds) else []
    parts = [x for x in parts_of(value) or () if type(x) is not float]
    return own + [found for x in parts for found in with_identity(x, kinds, (*around, id(value)))]


def is_one_of(value: Any, kinds: Set[type]) -> bool:
    """Whether it is an instance of one of these classes; `dict` stands for all dictionaries."""
    return class_of_value(value) in kinds or (dict in kinds and isinstance(value, dict))


def gradient_converter(d: Description) -> Callable[[Any, Any], Any] | None:
    """A function of an argument and its gradient that rebuilds the structure of the argument.

    Compiled code returns arrays for lists, and tuples for dictionaries and dataclasses. None if nothing has to be done.
    """
    if d.kind == "stored":
        return lambda argument, gradient: gradient[: len(argument)].tolist()
    inner = [gradient_converter(part) for part in d.opened() or ()]
    if d.kind != "record" and not any(inner):
        return None
    layout = d.layout

    def convert(argument: Any, gradient: Any) -> Any:
        each = zip(inner, layout.taken_apart(argument), gradient, strict=True)
        return layout.gradient(argument, [bar if c is None else c(part, bar) for c, part, bar in each])

    return convert


def as_gradient(argument: Any, gradient: Any) -> Any:
    """A gradient with the classes of the argument: objects of other packages come by the name of their first part."""
    layout = layout_of(argument)
    if layout is None or gradient is None:
        return gradient
    if layout.has_own_types:
        parts = [gradient[layout.names[0]]] if isinstance(gradient, dict) else []
        return layout.gradient(argument, [*parts, *[None] * (len(layout.names) - 1)]) if parts else gradient
    each = zip(layout.taken_apart(argument), layout.taken_apart(gradient), strict=True)
    return layout.made([as_gradient(part, bar) for part, bar in each])
