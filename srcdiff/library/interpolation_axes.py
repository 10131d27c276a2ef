"""Axes of interpolated values: the axis of the points is the first while an interpolant is made.

As in SciPy, the axes of the places take the place of that axis in results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import each, is_array, known, unsupported


def in_place(axis: Any, count: Any) -> Any:
    """The axis, counted from the first."""
    return axis + count if axis < 0 else axis


def axis_first(y: Any, axis: Any) -> Any:
    if not -y.ndim <= axis < y.ndim:
        raise ValueError("`axis` is out of the range of the axes of `y`")
    return y if in_place(axis, y.ndim) == 0 else np.asarray(np.moveaxis(y, axis, 0))


def known_axis(axis: Any) -> Any:
    """The axis of an interpolant from outside. That of an argument is only known at run time."""
    if not known(axis):
        unsupported(
            "an interpolant whose axis is only known at run time, as that of an argument,",
            "make it inside of the function",
        )
    return axis


def moved_back(found: Any, count: Any, axis: Any) -> Any:
    """The result whose first `count` axes are those of the places, with `axis` other axes before them."""
    if axis == 0 or count == 0:
        return found
    before = tuple(range(count, count + axis))
    return np.asarray(np.transpose(found, before + tuple(range(count)) + tuple(range(count + axis, found.ndim))))


def width_of(shape: Any) -> Any:
    """The number of elements."""
    width = 1
    for size in shape:
        width = width * size
    return width


def flat(x: Any) -> Any:
    """The places as a vector."""
    if is_array(x):
        return np.reshape(np.asarray(x), width_of(np.shape(x)))
    place = np.empty(1, np.float64)
    place[0] = x
    return place


def shape_of(x: Any) -> Any:
    return np.asarray(x).shape if is_array(x) else ()


def require_finite(x: Any, y: Any) -> None:
    for i in range(len(x)):
        if not np.isfinite(x[i]):
            raise ValueError("`x` must contain only finite values.")
    for k in each(y.shape):
        if not np.isfinite(y[k]):
            raise ValueError("`y` must contain only finite values.")
