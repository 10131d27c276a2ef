"""Arguments and results of a function: their parts, and the conversion of results for users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Parts, Static, Stored, Tuple
from srcdiff.signature.conversion import Converter, part_by_part
from srcdiff.signature.descriptions import Description
from srcdiff.signature.trees import LEAF, NODES, Part, Structure


def parts_of_arguments(arguments: Mapping[str, Abstract]) -> Iterator[Part]:
    """The parts of the arguments that exist at run time. The first number of a path is the position of the argument."""
    for k, (name, x) in enumerate(arguments.items()):
        for part in NODES.named(x, name):
            if not isinstance(part.value, Static):
                yield replace(part, path=(k, *part.path))


def is_written(x: Static) -> bool:
    """Whether generated code can write the constant as a literal. It cannot write functions and members of enums."""
    return x.value is None or type(x.value) is str or isinstance(x.value, bool | int | float | complex)


def holds_stored(x: Abstract) -> bool:
    """Whether the result of a function is, or contains, a list whose length is known only when it runs."""
    return any(isinstance(leaf, Stored) for leaf in NODES.leaves(x))


def result_converter(x: Abstract) -> Converter | None:
    """A function that converts the result of generated code for users; None if no conversion is needed.

    Lists come as tuples of known length, or as arrays with their length; dictionaries and dataclasses as tuples.
    """
    match x:
        case Parts():
            inner = [result_converter(item) for item in x.items]
            return None if isinstance(x, Tuple) and not any(inner) else part_by_part(x.layout, inner)
        case Stored():
            return functools.partial(_rows, *NODES.flatten(x.element))
        case Static() if not is_written(x):
            return lambda _: x.value
    return None


def kept_parts(x: Abstract) -> Callable[[Any, Any], Any] | None:
    """A function of a result and its tangent that puts the parts without tangents into the tangent; None if not needed.

    These are the parts of an object of another package, except the first: the indices of a sparse array, for example.
    """
    if not isinstance(x, Parts):
        return None
    if x.layout.has_own_types:
        return lambda value, tangent: (tangent[0], *[np.copy(v) if isinstance(v, np.ndarray) else v for v in value[1:]])
    inner = [kept_parts(item) for item in x.items]
    if not any(inner):
        return None
    return lambda value, tangent: tuple(
        [t if keep is None else keep(v, t) for keep, v, t in zip(inner, value, tangent, strict=True)]
    )


def _rows(leaves: Sequence[Description], structure: Structure, result: Any) -> list[Any]:
    """The elements of a list. Generated code returns one column for each number in an element."""
    *storage, length = result
    columns = [_column(array, length) for array in storage]
    if columns and structure is LEAF:
        return columns[0]
    rows = map(iter, zip(*columns, strict=True)) if columns else (iter(()) for _ in range(length))
    return [structure.rebuild(d.detail[1] if d.kind == "static" else next(row) for d in leaves) for row in rows]


def _column(storage: Any, length: int) -> list[Any]:
    """The numbers of a column. For arrays, it is a list whose first element is not part of the list."""
    return storage[:length].tolist() if isinstance(storage, np.ndarray) else list(storage[1 : length + 1])
