"""Sums and products along the way, differences, and the methods of NumPy's elementwise functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import reductions
from srcdiff.library.language import (
    array_like,
    axes_of,
    axis_of,
    each,
    identity_of,
    inserted,
    part,
    result_type,
    unsupported,
    without,
    zero,
)
from srcdiff.library.language import ones as ones_of
from srcdiff.library.language import ufunc_at as at
from srcdiff.library.reductions import finished, folded, numbers, written


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.add, a, axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.multiply, a, axis, dtype, out)


def running(ufunc: Any, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """Each element taken together with all before it."""
    a = numbers(a, dtype)
    if axis is None:
        if a.ndim != 1:
            a = np.ravel(a)
        axis = 0
    axis = axis_of(axis, a.ndim)
    result = np.empty(a.shape, a.dtype)
    n = a.shape[axis]
    for i in each(without(a.shape, (axis,))):
        if ufunc is np.add or ufunc is np.multiply:
            total = zero(a.dtype) + identity_of(ufunc)
            for k in range(n):
                place = inserted(i, axis, k)
                total = ufunc(total, a[place])
                result[place] = total
        elif n > 0:
            place = inserted(i, axis, 0)
            total = a[place]
            result[place] = total
            for k in range(1, n):
                place = inserted(i, axis, k)
                total = ufunc(total, a[place])
                result[place] = total
    return written(result, out)


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    a = array_like(a)
    axis = axis_of(axis, a.ndim)
    if prepend is not None:
        a = np.concatenate((ending(prepend, a, axis), a), axis)
    if append is not None:
        a = np.concatenate((a, ending(append, a, axis)), axis)
    for _ in tuple(range(n)):
        a = np.asarray(a)
        if a.dtype == np.bool_:
            a = part(a, axis, 1, None) != part(a, axis, None, -1)
        else:
            a = part(a, axis, 1, None) - part(a, axis, None, -1)
    return a


def ending(x: Any, a: Any, axis: Any) -> Any:
    """What is put before or behind an array: a number once for each line along the axis."""
    x = array_like(x)
    if x.ndim == 0:
        return np.full((*a.shape[:axis], 1, *a.shape[axis + 1 :]), x[()], a.dtype)
    return x


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    f = np.asarray(f)
    axes = axes_of(axis, f.ndim)
    if len(varargs) > 1 and len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    found = []
    for k, along in enumerate(axes):
        if len(varargs) == 0:
            spacing = 1.0
        elif len(varargs) == 1:
            spacing = varargs[0]
        else:
            spacing = varargs[k]
        found.append(slope(f, spacing, along, edge_order))
    if len(axes) == 1:
        return found[0]
    return tuple(found)


def slope(f: Any, spacing: Any, axis: Any, edge_order: Any) -> Any:
    """Differences of second order inside, and at the ends of the order that is asked for."""
    spacing = array_like(spacing)
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError("the array is too small for a numerical gradient")
    result = np.empty(f.shape, result_type(f, np.float32))
    if spacing.ndim == 0:
        steps = np.full(n - 1, spacing[()])
    else:
        steps = np.asarray(spacing[1:] - spacing[:-1])
    for i in each(without(f.shape, (axis,))):
        for k in range(1, n - 1):
            before, after = steps[k - 1], steps[k]
            rise = f[inserted(i, axis, k + 1)] - f[inserted(i, axis, k)]
            fall = f[inserted(i, axis, k)] - f[inserted(i, axis, k - 1)]
            result[inserted(i, axis, k)] = (rise * before / after + fall * after / before) / (before + after)
        first = f[inserted(i, axis, 1)] - f[inserted(i, axis, 0)]
        last = f[inserted(i, axis, n - 1)] - f[inserted(i, axis, n - 2)]
        if edge_order == 1:
            result[inserted(i, axis, 0)] = first / steps[0]
            result[inserted(i, axis, n - 1)] = last / steps[n - 2]
        else:
            second = f[inserted(i, axis, 2)] - f[inserted(i, axis, 1)]
            result[inserted(i, axis, 0)] = end_slope(first, second, steps[0], steps[1])
            second = f[inserted(i, axis, n - 2)] - f[inserted(i, axis, n - 3)]
            result[inserted(i, axis, n - 1)] = end_slope(last, second, steps[n - 2], steps[n - 3])
    return result


def end_slope(first: Any, second: Any, near: Any, far: Any) -> Any:
    """The slope at the end of a parabola through three points, from the differences over its two steps."""
    return first / near + (first / near - second / far) * near / (near + far)


# -- the methods of elementwise functions ------------------------------------------------------------------------------


def reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    if ufunc is np.add:
        return reductions.sum(array, axis, dtype, out, keepdims, 0 if initial is None else initial, where)
    if ufunc is np.multiply:
        return reductions.prod(array, axis, dtype, out, keepdims, 1 if initial is None else initial, where)
    if ufunc is np.maximum:
        return reductions.max(array, axis, out, keepdims, initial, where)
    if ufunc is np.minimum:
        return reductions.min(array, axis, out, keepdims, initial, where)
    if ufunc is np.logical_or:
        return reductions.any(array, axis, out, keepdims, where=where)
    if ufunc is np.logical_and:
        return reductions.all(array, axis, out, keepdims, where=where)
    array = numbers(array, dtype)
    axes = axes_of(axis, array.ndim)
    start = identity_of(ufunc) if initial is None else initial
    if start is None:
        unsupported("`reduce` of a function that has no identity")
    return finished(folded(ufunc, array, axes, start + zero(array.dtype), where), axes, out, keepdims)


def accumulate(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    return running(ufunc, array, axis, dtype, out)


def outer(ufunc: Any, a: Any, b: Any) -> Any:
    a, b = np.asarray(array_like(a)), np.asarray(array_like(b))
    return ufunc(np.reshape(a, a.shape + ones_of(b.ndim)), b)


METHODS: dict[str, Any] = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at}
"""By the name of the method; the elementwise function is the first argument."""


def divmod(x: Any, y: Any) -> Any:  # noqa: A001 -- NumPy's name
    return np.floor_divide(x, y), np.mod(x, y)


FUNCTIONS: dict[Any, Any] = {
    np.divmod: divmod,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.diff: diff,
    np.gradient: gradient,
}
