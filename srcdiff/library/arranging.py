"""The elements of an array in another order or shape: views beyond slices, rolls, repetitions and parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import (
    array_like,
    as_tuple,
    axes_of,
    axes_of_length_one,
    axis_of,
    backwards,
    checked,
    each,
    inserted,
    moved,
    ones,
    part,
    replaced,
    swapped,
    upto,
    view_from_places,
    without,
    zeros,
)
from srcdiff.library.language import at_axis as at
from srcdiff.library.reductions import sum as total_of


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    a = array_like(a)
    first, second = axis_of(axis1, a.ndim), axis_of(axis2, a.ndim)
    below, right = max(-offset, 0), max(offset, 0)
    n = max(min(a.shape[first] - below, a.shape[second] - right), 0)
    rest = without(a.shape, (first, second))

    def element(*place: Any) -> Any:
        i, k = place[:-1], place[-1]
        if first < second:
            return a[inserted(inserted(i, first, k + below), second, k + right)]
        return a[inserted(inserted(i, second, k + right), first, k + below)]

    return view_from_places(a, (*rest, n), element)


def diag(v: Any, k: Any = 0) -> Any:
    v = array_like(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    below, right = max(-k, 0), max(k, 0)
    n = len(v)
    result = np.zeros((n + below + right, n + below + right), v.dtype)
    for i in range(n):
        result[i + below, i + right] = v[(i,)]
    return result


def diagflat(v: Any, k: Any = 0) -> Any:
    return diag(np.ravel(array_like(v)), k)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    a = np.asarray(a)
    return np.transpose(a, swapped(a.ndim, axis_of(axis1, a.ndim), axis_of(axis2, a.ndim)))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    a = np.asarray(a)
    return np.transpose(a, moved(a.ndim, source, destination))


def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    a = np.asarray(a)
    axis = axis_of(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


def matrix_transpose(x: Any) -> Any:
    return swapaxes(x, -1, -2)


def broadcast_arrays(*args: Any) -> Any:
    shapes: Any = ()
    for a in args:
        shapes = (*shapes, np.shape(a))
    shape = np.broadcast_shapes(*shapes)
    found: Any = ()
    for a in args:
        found = (*found, np.broadcast_to(a, shape))
    return found


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    """The elements of each position of a window, along new axes at the end."""
    x = np.asarray(x)
    lengths = as_tuple(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else tuple([axis_of(k, x.ndim) for k in as_tuple(axis)])
    if len(axes) != len(lengths):
        raise ValueError("Must provide matching length window_shape and axis")
    shape = x.shape
    for k, n in zip(axes, lengths, strict=True):
        if n > shape[k]:
            raise ValueError("window shape cannot be larger than input array shape")
        shape = replaced(shape, k, shape[k] - n + 1)

    def element(*place: Any) -> Any:
        start = place[: x.ndim]
        for k, offset in zip(axes, place[x.ndim :], strict=True):
            start = replaced(start, k, start[k] + offset)
        return x[start]

    return view_from_places(x, shape + lengths, element)


def squeeze(a: Any, axis: Any = None) -> Any:
    a = np.asarray(a)
    axes = axes_of_length_one(a) if axis is None else axes_of(axis, a.ndim)
    for k in backwards(axes):
        if a.shape[k] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        a = at(a, k, 0)
    return a


def atleast_1d(a: Any) -> Any:
    a = array_like(a)
    return np.full((1,), a[()]) if a.ndim == 0 else a


def atleast_2d(a: Any) -> Any:
    a = atleast_1d(a)
    return np.expand_dims(a, 0) if a.ndim == 1 else a


def atleast_3d(a: Any) -> Any:
    a = atleast_2d(a)
    return np.expand_dims(a, 2) if a.ndim == 2 else a


def flatten(a: Any, order: Any = "C") -> Any:
    """The method of arrays: always a copy."""
    return np.reshape(np.copy(a), -1, order)


def flip(m: Any, axis: Any = None) -> Any:
    m = np.asarray(m)
    for k in axes_of(axis, m.ndim):
        m = part(m, k, None, None, -1)
    return m


def fliplr(m: Any) -> Any:
    return flip(m, 1)


def flipud(m: Any) -> Any:
    return flip(m, 0)


def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    m = np.asarray(m)
    first, second = axis_of(axes[0], m.ndim), axis_of(axes[1], m.ndim)
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(flip(m, first), second)
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    a = np.asarray(a)
    if axis is None:
        if a.ndim == 1:
            return rolled(a, shift, 0)
        return np.reshape(rolled(np.ravel(a), shift, 0), a.shape)
    axes, shifts = as_tuple(axis), as_tuple(shift)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    for k, amount in zip(axes, shifts, strict=True):
        a = rolled(a, amount, axis_of(k, a.ndim))
    return a


def rolled(a: Any, shift: Any, axis: Any) -> Any:
    n = a.shape[axis]
    shift = shift % max(n, 1)
    result = np.empty(a.shape, a.dtype)
    for i in each(replaced(a.shape, axis, n - shift)):
        result[replaced(i, axis, i[axis] + shift)] = a[i]
    for i in each(replaced(a.shape, axis, shift)):
        result[i] = a[replaced(i, axis, i[axis] + (n - shift))]
    return result


def tile(A: Any, reps: Any) -> Any:  # noqa: N803 -- NumPy's names
    a = np.asarray(array_like(A))
    times = as_tuple(reps)
    times = ones(a.ndim - len(times)) + times
    shape = ones(len(times) - a.ndim) + a.shape
    result = np.empty(checked(tuple([r * n for r, n in zip(times, shape, strict=True)]), a.dtype), a.dtype)
    for i in each(times):
        for k in each(a.shape):
            place: Any = ()
            for iteration, n, inner in zip(i, shape, zeros(len(shape) - a.ndim) + k, strict=True):
                place = (*place, iteration * n + inner)
            result[place] = a[k]
    return result


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a = array_like(a)
    repeats = array_like(repeats)
    if axis is None:
        a, axis = np.ravel(atleast_1d(a)), 0
    axis = axis_of(axis, a.ndim)
    if repeats.ndim == 0:
        times = repeats[()]
        result = np.empty(checked(replaced(a.shape, axis, a.shape[axis] * times), a.dtype), a.dtype)
        for i in each(a.shape):
            element = a[i]
            for k in range(times):
                result[replaced(i, axis, i[axis] * times + k)] = element
        return result
    repeats = np.asarray(np.broadcast_to(repeats, (a.shape[axis],)))
    if np.any(repeats < 0):
        raise ValueError("repeats may not contain negative values.")
    result = np.empty(replaced(a.shape, axis, total_of(repeats)), a.dtype)
    ends = np.cumsum(repeats)
    for i in each(a.shape):
        element = a[i]
        end = ends[i[axis]]
        for k in range(end - repeats[i[axis]], end):
            result[replaced(i, axis, k)] = element
    return result


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    ary = np.asarray(ary)
    axis = axis_of(axis, ary.ndim)
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections != 0:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    ary = np.asarray(ary)
    axis = axis_of(axis, ary.ndim)
    n = ary.shape[axis]
    parts = []
    if isinstance(indices_or_sections, int):
        length, longer = n // indices_or_sections, n % indices_or_sections
        for k in upto(indices_or_sections):
            start, stop = k * length + min(k, longer), (k + 1) * length + min(k + 1, longer)
            parts.append(part(ary, axis, start, stop))
        return parts
    start = 0
    for stop in tuple(indices_or_sections):
        parts.append(part(ary, axis, start, stop))
        start = stop
    parts.append(part(ary, axis, start, None))
    return parts


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    ary = np.asarray(ary)
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 2)


FUNCTIONS: dict[Any, Any] = {
    **{
        getattr(np, function.__name__): function
        for function in (
            *(diagonal, diag, diagflat, swapaxes, moveaxis, rollaxis, matrix_transpose, broadcast_arrays, squeeze),
            *(atleast_1d, atleast_2d, atleast_3d, flip, fliplr, flipud, rot90, roll, tile, repeat),
            *(split, array_split, hsplit, vsplit, dsplit),
        )
    },
    np.linalg.matrix_transpose: matrix_transpose,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
}
