"""`np.pad`."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import each, each_axis, is_float_type, part, replaced, unsupported


def pad(
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: Any = "even",
) -> Any:
    array = np.asarray(array)
    widths = each_axis(pad_width, array.ndim)
    for before, after in widths:
        if before < 0 or after < 0:
            raise ValueError("index can't contain negative values")
    if reflect_type != "even":
        unsupported("`pad` with odd reflections")
    if mode != "constant" and mode != "empty":
        for axis, (n, (before, after)) in enumerate(zip(array.shape, widths, strict=True)):
            if n == 0 and (before > 0 or after > 0):
                raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    if mode == "linear_ramp":
        return padded_by_ramps(array, widths, each_axis(end_values, array.ndim))
    if mode == "maximum" or mode == "minimum" or mode == "mean" or mode == "median":
        return padded_by_statistics(array, widths, each_axis(stat_length, array.ndim), mode)
    shape: Any = ()
    for n, (before, after) in zip(array.shape, widths, strict=True):
        shape = (*shape, before + n + after)
    if mode == "constant":
        return padded_with(array, widths, shape, constant_values)
    if mode == "empty":
        return padded_with(array, widths, shape, 0)
    result = np.empty(shape, array.dtype)
    for i in each(shape):
        place: Any = ()
        for k, n, (before, _) in zip(i, array.shape, widths, strict=True):
            place = (*place, continued(k - before, n, mode))
        result[i] = array[place]
    return result


def padded_with(array: Any, widths: Any, shape: Any, values: Any) -> Any:
    if not isinstance(values, tuple):
        result = np.full(shape, values, array.dtype)
    else:
        result = np.empty(shape, array.dtype)
        for axis, (before, after) in enumerate(each_axis(values, array.ndim)):
            start, stop = widths[axis][0], widths[axis][0] + array.shape[axis]
            part(result, axis, None, start)[...] = before
            part(result, axis, stop, None)[...] = after
    for i in each(array.shape):
        place: Any = ()
        for k, (before, _) in zip(i, widths, strict=True):
            place = (*place, k + before)
        result[place] = array[i]
    return result


def padded_along(a: Any, axis: Any, widths: Any, first: Any, last: Any) -> Any:
    """The array with additional elements before and after it along one axis."""
    before, after = widths
    n = a.shape[axis]
    result = np.empty(replaced(a.shape, axis, before + n + after), a.dtype)
    part(result, axis, before, before + n)[...] = a
    part(result, axis, None, before)[...] = first
    part(result, axis, before + n, None)[...] = last
    return result


def padded_by_ramps(a: Any, widths: Any, ends: Any) -> Any:
    """Linear ramps from the edges to the end values, axis by axis."""
    for axis, (width, (start, stop)) in enumerate(zip(widths, ends, strict=True)):
        before, after = width
        column = (-1,) + (1,) * (a.ndim - 1 - axis)
        rise = np.reshape(np.arange(before) / max(before, 1), column)
        fall = np.reshape(np.arange(after - 1, -1, -1) / max(after, 1), column)
        first = start + (part(a, axis, None, 1) - start) * rise
        last = stop + (part(a, axis, -1, None) - stop) * fall
        a = padded_along(a, axis, width, first, last)
    return a


def padded_by_statistics(a: Any, widths: Any, lengths: Any, mode: Any) -> Any:
    """Statistics of the elements at each edge, or of all elements, axis by axis."""
    if not is_float_type(a.dtype):
        unsupported("this mode of `pad` for integers")
    for axis, (width, (first, last)) in enumerate(zip(widths, lengths, strict=True)):
        n = a.shape[axis]
        start = a if first is None else part(a, axis, None, min(first, n))
        end = a if last is None else part(a, axis, max(n - last, 0), None)
        a = padded_along(a, axis, width, statistic(start, axis, mode), statistic(end, axis, mode))
    return a


def statistic(a: Any, axis: Any, mode: Any) -> Any:
    if mode == "maximum":
        return np.max(a, axis=axis, keepdims=True)
    if mode == "minimum":
        return np.min(a, axis=axis, keepdims=True)
    if mode == "mean":
        return np.mean(a, axis=axis, keepdims=True)
    return np.median(a, axis=axis, keepdims=True)


def continued(k: Any, n: Any, mode: Any) -> Any:
    """The position within an axis of length n that an outside position refers to."""
    if mode == "edge":
        return min(max(k, 0), n - 1)
    if mode == "wrap":
        return k % n
    if mode == "symmetric":
        k = k % (2 * n)
        return min(k, 2 * n - 1 - k)
    if mode == "reflect":
        period = max(2 * n - 2, 1)
        k = k % period
        return min(k, 2 * n - 2 - k)
    return unsupported("this mode of `pad`")
