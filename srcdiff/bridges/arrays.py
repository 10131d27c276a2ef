"""Gradients for the arrays of other libraries: pandas, xarray, Arrow, PyTorch, JAX, and all that NumPy can look at.

The function itself sees arrays of NumPy, which share the memory of what was passed where its type allows that.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcdiff.api.derivatives import Derivative
from srcdiff.bridges import written_functions as written

Labelling = Callable[[Any], Any]
_PLAIN = (np.ndarray, np.generic, float, int, str, bytes, type(None))


def accepting(g: Any) -> Accepting:
    """Let a gradient take arrays of other libraries, and return gradients with their labels.

    >>> import pandas as pd
    >>> from srcdiff import grad
    >>> gradient = accepting(grad(lambda x, t: np.sum(x * x * t), backend="python"))
    >>> gradient(pd.Series([1.0, 2.0], index=["a", "b"]), memoryview(np.array([1.0, 10.0])))
    a     2.0
    b    40.0
    dtype: float64

    Args:
        g: What `srcdiff.grad` or `srcdiff.value_and_grad` returns.

    Returns:
        A function with the same arguments. A Series, a DataFrame and a DataArray have gradients with the same labels.
        For all others the gradients are arrays of NumPy.
    """
    if not isinstance(g, Derivative) or g.mode != "reverse" or g.jacobian:
        raise TypeError(f"{g!r} is not a gradient: use `srcdiff.grad` or `srcdiff.value_and_grad`")
    return Accepting(g)


class Accepting:
    """A gradient for arrays of other libraries: see `accepting`."""

    def __init__(self, g: Derivative) -> None:
        self.derivative = g
        functools.update_wrapper(self, g, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        g = self.derivative
        bound = g.signature.bind(*args, **kwargs)
        _require_same_labels([*_leaves((*args, *kwargs.values()))])
        try:
            positional, named = [_converted(a) for a in args], {name: _converted(a) for name, a in kwargs.items()}
        except Exception as error:
            error.add_note(f"in an argument of {written.place_of(g)}, which srcdiff takes as an array of NumPy")
            raise
        result = g(*positional, **named)
        wholes = [bound.arguments.get(name) for name in g.wrt]
        value, found = result if g.with_value or g.has_aux else (None, result)
        if g.has_aux and not g.with_value:
            value, found = found, value
        labelled = (
            _labelled(wholes[0], found)
            if g.single
            else tuple([_labelled(whole, one) for whole, one in zip(wholes, found, strict=True)])
        )
        if g.with_value:
            return value, labelled
        return (labelled, value) if g.has_aux else labelled

    def __repr__(self) -> str:
        return f"<srcdiff.bridges.arrays.accepting({self.derivative!r})>"


def _converted(value: Any) -> Any:
    """The value with arrays of NumPy in place of others, in its tuples, lists and dictionaries, too."""
    if isinstance(value, _PLAIN):
        return value
    if type(value) in (tuple, list):
        return type(value)([_converted(item) for item in value])
    if type(value) is dict:
        return {key: _converted(item) for key, item in value.items()}
    if _is_of("pandas", ("Series", "DataFrame", "Index"), value):
        return value.to_numpy()
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:  # no array
        return value


def _labelled(like: Any, found: Any) -> Any:
    """The gradient with the labels of the argument."""
    if type(like) in (tuple, list):
        return type(like)([_labelled(a, b) for a, b in zip(like, found, strict=True)])
    if type(like) is dict:
        return {key: _labelled(like[key], one) for key, one in found.items()}
    if _is_of("pandas", ("Series",), like):
        return sys.modules["pandas"].Series(found, index=like.index, name=like.name)
    if _is_of("pandas", ("DataFrame",), like):
        return sys.modules["pandas"].DataFrame(found, index=like.index, columns=like.columns)
    if _is_of("xarray", ("DataArray",), like):
        return like.copy(data=found)
    return found


def _require_same_labels(values: list[Any]) -> None:
    """Refuse objects whose labels differ: the function goes by positions, pandas and xarray would go by labels.

    Different axes, such as the columns of a matrix and the rows of a vector, may have different labels, but not the
    same labels in different orders. Neither may the dimensions of xarray.
    """
    known: list[tuple[str, Any]] = []
    orders: dict[frozenset[Any], Any] = {}
    for value in values:
        if (
            _is_of("xarray", ("DataArray",), value)
            and orders.setdefault(frozenset(value.dims), value.dims) != value.dims
        ):
            raise ValueError(
                f"two arguments have the dimensions {value.dims} in different orders: transpose one of them"
            )
        labels = [*_labels(value)]
        for (other, before), (axis, index) in itertools.product(known, labels):
            if len(before) != len(index) or before.equals(index):
                continue
            if axis == other:
                raise ValueError(f"two arguments have different labels of their {axis}: align them first")
            if _are_same_in_any_order(before, index):
                raise ValueError(f"the labels of {other} and {axis} are the same in different orders: align them first")
        known += labels


def _are_same_in_any_order(one: Any, other: Any) -> bool:
    return bool(one.is_unique and other.is_unique and one.isin(other).all())


def _labels(value: Any) -> Iterator[tuple[str, Any]]:
    if _is_of("pandas", ("Series", "DataFrame"), value):
        yield "rows", value.index
        if value.ndim == 2:
            yield "columns", value.columns
    elif _is_of("xarray", ("DataArray",), value):
        for name, index in value.indexes.items():
            yield f"dimension {name!r}", index


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, list, dict):
        for item in value.values() if type(value) is dict else value:
            yield from _leaves(item)
    else:
        yield value


def _is_of(library: str, names: tuple[str, ...], value: Any) -> bool:
    """Whether the value is an instance of such a class of a library, which is not imported for that."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, tuple([getattr(module, name) for name in names]))
