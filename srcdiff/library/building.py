"""Construction of arrays from numbers and other arrays, and views beyond slices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcdiff.library.language import (
    agree,
    array_like,
    as_tuple,
    at_least_zero,
    axes_of,
    axes_of_length_one,
    axis_of,
    backwards,
    checked,
    common_type,
    counted,
    each,
    each_axis,
    from_places,
    has_nan,
    inserted,
    is_array,
    is_float_type,
    moved,
    ones,
    part,
    replaced,
    result_type,
    swapped,
    unsupported,
    upto,
    view_from_places,
    without,
    zero,
    zeros,
)
from srcdiff.library.language import at_axis as at
from srcdiff.library.reductions import flat_place
from srcdiff.library.reductions import sum as total_of

# -- numbers ---------------------------------------------------------------------------------------------------------


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:  # noqa: N803 -- NumPy's names
    def element(i: Any, j: Any) -> Any:
        return j == i + k

    return from_places(checked((N, N if M is None else M), dtype), dtype, element)


def identity(n: Any, dtype: Any = float) -> Any:
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:  # noqa: N803 -- NumPy's names
    def element(i: Any, j: Any) -> Any:
        return j <= i + k

    return from_places(
        checked((at_least_zero(N), at_least_zero(N if M is None else M)), dtype),
        dtype,
        element,
    )


def tril(m: Any, k: Any = 0) -> Any:
    m = array_like(m)
    return np.where(tri(*m.shape[-2:], k=k, dtype=bool), m, zero(m.dtype))


def triu(m: Any, k: Any = 0) -> Any:
    m = array_like(m)
    return np.where(tri(*m.shape[-2:], k=k - 1, dtype=bool), zero(m.dtype), m)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return np.nonzero(tri(n, m, k, bool))


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return np.nonzero(~tri(n, m, k - 1, bool))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    if stop is None:
        start, stop = 0, start
    kind = result_type(start, stop, step)
    if kind == np.int64:
        n = len(range(start, stop, step))
    else:
        n = max(math.ceil((stop - start) / step), 0)

    if dtype is not None and not has_nan(dtype) and has_nan(result_type(start, step)):
        unsupported("`arange` of floats with a `dtype` of integers")

    def element(i: Any) -> Any:
        return start + i * step

    kind = kind if dtype is None else dtype
    return from_places(checked((n,), kind), kind, element)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    checked(num, float)
    start = np.asarray(start) if is_array(start) else start
    stop = np.asarray(stop) if is_array(stop) else stop
    intervals = num - 1 if endpoint else num
    step = (stop - start) / max(intervals, 1)
    if is_array(start) or is_array(stop):
        if dtype is not None and not has_nan(dtype):
            unsupported("`linspace` of arrays with a `dtype` of integers")
        lines = stacked_lines(start, step, num, stop if endpoint else None, float if dtype is None else dtype)
        lines = np.moveaxis(lines, 0, axis)
        return (lines, step) if retstep else lines
    result = np.empty(num, float if dtype is None else dtype)
    rounds = not has_nan(result.dtype)
    for i in range(num):
        result[i] = math.floor(start + i * step) if rounds else start + i * step
    if endpoint and num > 1:
        result[num - 1] = math.floor(stop) if rounds else stop
    if retstep:
        return result, step
    return result


def stacked_lines(start: Any, step: Any, num: Any, stop: Any, dtype: Any) -> Any:
    """Arithmetic sequences for arrays of starts and steps, along a new first axis. The last element may be given."""
    step = np.asarray(step)
    result = np.empty((num, *step.shape), dtype)
    for k in range(num):
        result[k] = start + k * step
    if stop is not None and num > 1:
        result[num - 1] = stop
    return result


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Any:
    powers = np.power(base, linspace(start, stop, num, endpoint, False, None, axis))
    return powers if dtype is None else np.astype(powers, dtype)


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None) -> Any:
    if is_array(start) or is_array(stop):
        unsupported("`geomspace` between arrays")
    if start == 0 or stop == 0:
        raise ValueError("Geometric sequence cannot include zero")
    powers = start * np.power(stop / start, linspace(0.0, 1.0, num, endpoint))
    return powers if dtype is None else np.astype(powers, dtype)


def fromfunction(function: Any, shape: Any, *, dtype: Any = float) -> Any:
    places = indices(as_tuple(shape), dtype)
    return function(*tuple([places[k] for k in range(len(as_tuple(shape)))]))


def fromiter(iter: Any, dtype: Any, count: Any = -1) -> Any:  # noqa: A002 -- NumPy's name
    found = np.array(iter, dtype)
    return found if count == -1 else np.copy(found[:count])


def resize(a: Any, new_shape: Any) -> Any:
    """The elements in order, repeated until the shape is full."""
    a = np.ravel(np.atleast_1d(a))
    shape = as_tuple(new_shape)
    for n in shape:
        if n < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
    checked(shape, a.dtype)
    result = np.zeros(shape, a.dtype)
    if len(a) > 0:
        for i in each(shape):
            result[i] = a[flat_place(i, shape) % len(a)]
    return result


def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:  # noqa: N803 -- NumPy's names
    x = array_like(x)
    n = len(x) if N is None else N
    checked((len(x), n), x.dtype)
    result = np.empty((len(x), n), common_type(x.dtype, np.int64))
    for i in range(len(x)):
        power = zero(result.dtype) + 1
        for j in range(n):
            if j > 0:
                power = power * x[(i,)]
            result[i, j if increasing else n - 1 - j] = power
    return result


def meshgrid(*xi: Any, indexing: Any = "xy", sparse: Any = False, copy: Any = True) -> Any:
    """The coordinates of all points of a grid. With `xy` the first two axes are exchanged."""
    vectors: Any = ()
    shape: Any = ()
    for x in xi:
        if not copy and np.ndim(x) > 1:
            unsupported("`meshgrid` of arrays with several axes, without copies,")
        vector = np.ravel(array_like(x))
        vectors = (*vectors, vector)
        shape = (*shape, len(vector))
    swap = indexing == "xy" and len(shape) > 1
    if swap:
        shape = (shape[1], shape[0], *shape[2:])
    grids: Any = ()
    for k, vector in enumerate(vectors):
        axis = (1 - k) if swap and k < 2 else k
        if not copy:
            line = np.expand_dims(vector, without(upto(len(shape)), (axis,)))
        else:
            line = np.reshape(vector, replaced(ones(len(shape)), axis, len(vector)))
        if sparse and copy:
            grids = (*grids, np.copy(line))
        elif sparse:
            grids = (*grids, line)
        elif copy:
            grids = (*grids, np.copy(np.broadcast_to(line, shape)))
        else:
            grids = (*grids, np.broadcast_to(line, shape))
    return grids


def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    shape = tuple(dimensions)
    checked(shape, dtype)
    if sparse:
        return tuple(
            [np.reshape(np.arange(n, dtype=dtype), replaced(ones(len(shape)), k, n)) for k, n in enumerate(shape)]
        )
    result = np.empty((len(shape), *shape), dtype)
    for axis in upto(len(shape)):
        for i in each(shape):
            result[(axis, *i)] = i[axis]
    return result


# -- of several arrays -----------------------------------------------------------------------------------------------


def arrays_of(items: Any) -> Any:
    """The arrays of a list, or the rows of an array, one by one."""
    found: Any = ()
    for x in items:
        found = (*found, array_like(x))
    return found


def joined_rows(arrays: Any, axis: Any, out: Any = None, dtype: Any = None) -> Any:
    """The concatenation of the arrays of a list of any length."""
    if len(arrays) == 0:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        return joined_rows([array_like(a).flatten() for a in arrays], 0, out, dtype)
    first = array_like(arrays[0])
    axis = axis_of(axis, first.ndim)
    length = 0
    for k in range(len(arrays)):
        length += array_like(arrays[k]).shape[axis]
    result = array_for_rows(replaced(first.shape, axis, length), first.dtype, out, dtype)
    offset = 0
    for k in range(len(arrays)):
        a = array_like(arrays[k])
        for n, m in zip(without(a.shape, (axis,)), without(first.shape, (axis,)), strict=True):
            agree(n, m, "all the input array dimensions except for the concatenation axis must match exactly")
        for i in each(a.shape):
            result[replaced(i, axis, offset + i[axis])] = a[i]
        offset += a.shape[axis]
    return result


def stacked_rows(arrays: Any, axis: Any, out: Any = None, dtype: Any = None) -> Any:
    """The arrays of a list of any length along a new axis."""
    if len(arrays) == 0:
        raise ValueError("need at least one array to stack")
    first = array_like(arrays[0])
    axis = axis_of(axis, first.ndim + 1)
    result = array_for_rows(inserted(first.shape, axis, len(arrays)), first.dtype, out, dtype)
    for k in range(len(arrays)):
        a = array_like(arrays[k])
        for n, m in zip(a.shape, first.shape, strict=True):
            agree(n, m, "all input arrays must have the same shape")
        for i in each(first.shape):
            result[inserted(i, axis, k)] = a[i]
    return result


def array_for_rows(shape: Any, own: Any, out: Any, dtype: Any) -> Any:
    if out is not None:
        unsupported("`out` with a list whose length is known only at run time")
    return np.empty(shape, own if dtype is None else dtype)


def are_vectors(arrays: Any) -> Any:
    """Whether a list of any length has arrays of one axis."""
    if len(arrays) == 0:
        raise ValueError("need at least one array to concatenate")
    return array_like(arrays[0]).ndim == 1


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None) -> Any:
    if not counted(arrays):
        return joined_rows(arrays, axis, out, dtype)
    arrays = arrays_of(arrays)
    if axis is None:
        flat: Any = ()
        for a in arrays:
            flat = (*flat, np.ravel(atleast_1d(a)))
        arrays, axis = flat, 0
    return joined(arrays, axis_of(axis, arrays[0].ndim), out, dtype)


def joined(arrays: Any, axis: Any, out: Any = None, dtype: Any = None) -> Any:
    """The concatenation of the arrays along an axis."""
    first = arrays[0]
    length = 0
    for a in arrays:
        if a.ndim != first.ndim:
            raise ValueError("all the input array dimensions must match")
        for n, m in zip(without(a.shape, (axis,)), without(first.shape, (axis,)), strict=True):
            agree(n, m, "all the input array dimensions except for the concatenation axis must match exactly")
        length += a.shape[axis]
    if out is not None:
        result = out
    else:
        result = np.empty(replaced(first.shape, axis, length), result_type(*arrays) if dtype is None else dtype)
    offset = 0
    for a in arrays:
        for i in each(a.shape):
            result[replaced(i, axis, offset + i[axis])] = a[i]
        offset += a.shape[axis]
    return result


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None) -> Any:
    if not counted(arrays):
        return stacked_rows(arrays, axis, out, dtype)
    arrays = arrays_of(arrays)
    first = arrays[0]
    axis = axis_of(axis, first.ndim + 1)
    for a in arrays:
        if a.ndim != first.ndim:
            raise ValueError("all input arrays must have the same shape")
        for n, m in zip(a.shape, first.shape, strict=True):
            agree(n, m, "all input arrays must have the same shape")
    if out is not None:
        result = out
    else:
        kind = result_type(*arrays) if dtype is None else dtype
        result = np.empty(inserted(first.shape, axis, len(arrays)), kind)
    for k, a in enumerate(arrays):
        for i in each(first.shape):
            result[inserted(i, axis, k)] = a[i]
    return result


def hstack(tup: Any, *, dtype: Any = None) -> Any:
    if not counted(tup):
        return joined_rows(tup, 0 if are_vectors(tup) else 1, None, dtype)
    arrays: Any = ()
    for a in arrays_of(tup):
        arrays = (*arrays, atleast_1d(a))
    return joined(arrays, 0 if arrays[0].ndim == 1 else 1, None, dtype)


def vstack(tup: Any, *, dtype: Any = None) -> Any:
    if not counted(tup):
        return stacked_rows(tup, 0, None, dtype) if are_vectors(tup) else joined_rows(tup, 0, None, dtype)
    arrays: Any = ()
    for a in arrays_of(tup):
        arrays = (*arrays, atleast_2d(a))
    return joined(arrays, 0, None, dtype)


def dstack(tup: Any) -> Any:
    arrays: Any = ()
    for a in arrays_of(tup):
        arrays = (*arrays, atleast_3d(a))
    return joined(arrays, 2)


def column_stack(tup: Any) -> Any:
    if not counted(tup):
        return stacked_rows(tup, 1) if are_vectors(tup) else joined_rows(tup, 1)
    arrays: Any = ()
    for a in arrays_of(tup):
        if a.ndim < 2:
            arrays = (*arrays, np.expand_dims(atleast_1d(a), 1))
        else:
            arrays = (*arrays, a)
    return joined(arrays, 1)


def block(arrays: Any) -> Any:
    """The array of nested lists of blocks. The innermost lists are joined along the last axis."""
    return joined_blocks(arrays, depth(arrays), max(depth(arrays), largest_rank(arrays)))


def joined_blocks(arrays: Any, level: Any, rank: Any) -> Any:
    if level == 0:
        a = array_like(arrays)
        if a.ndim == 0:
            return np.full(ones(rank), a[()])
        return np.reshape(a, ones(rank - a.ndim) + a.shape) if a.ndim < rank else a
    blocks: Any = ()
    for a in arrays:
        blocks = (*blocks, joined_blocks(a, level - 1, rank))
    return joined(blocks, rank - level)


def depth(arrays: Any) -> Any:
    """The depth of nested lists."""
    if isinstance(arrays, tuple | list):
        return 1 + depth(arrays[0])
    return 0


def largest_rank(arrays: Any) -> Any:
    if isinstance(arrays, tuple | list):
        largest = 0
        for a in arrays:
            largest = max(largest, largest_rank(a))
        return largest
    return array_like(arrays).ndim


def rows_joined(*items: Any) -> Any:
    """`np.r_`: concatenation of numbers and arrays along the first axis."""
    arrays: Any = ()
    for a in items:
        arrays = (*arrays, atleast_1d(a))
    return joined(arrays, 0)


def columns_joined(*items: Any) -> Any:
    """`np.c_`: vectors become columns. Arrays of more axes are joined along the last one."""
    arrays: Any = ()
    for a in items:
        a = atleast_1d(a)
        arrays = (*arrays, np.expand_dims(a, 1) if a.ndim == 1 else a)
    return joined(arrays, arrays[0].ndim - 1)


def dense_grid(*ranges: Any) -> Any:
    """`np.mgrid`."""
    return ranges[0] if len(ranges) == 1 else stack(meshgrid(*ranges, indexing="ij"))


def open_grid(*ranges: Any) -> Any:
    """`np.ogrid`."""
    return ranges[0] if len(ranges) == 1 else meshgrid(*ranges, indexing="ij", sparse=True)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    a = np.asarray(arr)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = axis_of(axis, a.ndim)
    n = a.shape[axis]
    values = array_like(values)
    values = np.full((1,), values[()]) if values.ndim == 0 else np.asarray(values)
    values = np.reshape(values, ones(a.ndim - values.ndim) + values.shape) if values.ndim < a.ndim else values
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if is_array(obj):
        return inserted_at(a, np.asarray(obj), values, axis)
    if not -n <= obj <= n:
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {n}")
    place = obj + n if obj < 0 else obj
    values = np.moveaxis(values, 0, axis)
    count = values.shape[axis]
    result = np.empty(replaced(a.shape, axis, n + count), a.dtype)
    part(result, axis, None, place)[...] = part(a, axis, None, place)
    part(result, axis, place, place + count)[...] = values
    part(result, axis, place + count, None)[...] = part(a, axis, place, None)
    return result


def inserted_at(a: Any, positions: Any, values: Any, axis: Any) -> Any:
    """The array with one value before each of several positions, or with all values before a single one."""
    if positions.dtype == np.bool_:
        positions = np.nonzero(positions)[0]
    positions = np.repeat(positions, values.shape[axis] if len(positions) == 1 else 1)
    n, count = a.shape[axis], len(positions)
    for k in range(count):
        if not -n <= positions[k] <= n:
            raise IndexError("an index is out of bounds for the axis")
    positions = np.asarray(np.where(positions < 0, positions + n, positions))
    order = np.argsort(positions)
    is_new = np.zeros(n + count, np.bool_)
    places = np.empty(count, np.int64)
    for k in range(count):
        places[order[k]] = positions[order[k]] + k
        is_new[places[order[k]]] = True
    rest = np.nonzero(~is_new)[0]
    values = np.broadcast_to(values, replaced(a.shape, axis, count))
    result = np.empty(replaced(a.shape, axis, n + count), a.dtype)
    for i in each(a.shape):
        result[replaced(i, axis, rest[i[axis]])] = a[i]
    for i in each(replaced(a.shape, axis, count)):
        result[replaced(i, axis, places[i[axis]])] = values[i]
    return result


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    a = np.asarray(arr)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = axis_of(axis, a.ndim)
    n = a.shape[axis]
    if counted(obj) and len(obj) == 0:
        return np.copy(a)
    if not is_array(obj) and not isinstance(obj, slice):
        if not -n <= obj < n:
            raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {n}")
        place = obj + n if obj < 0 else obj
        return joined((part(a, axis, None, place), part(a, axis, place + 1, None)), axis)
    stays = np.ones(n, np.bool_)
    stays[np.asarray(obj) if is_array(obj) else obj] = False
    return at(a, axis, np.nonzero(stays)[0])


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate((arr, values), axis)


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


# -- diagonals -------------------------------------------------------------------------------------------------------


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


# -- axes ------------------------------------------------------------------------------------------------------------


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


# -- parts -----------------------------------------------------------------------------------------------------------


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
    np.eye: eye,
    np.identity: identity,
    np.tri: tri,
    np.tril: tril,
    np.triu: triu,
    np.tril_indices: tril_indices,
    np.triu_indices: triu_indices,
    np.arange: arange,
    np.linspace: linspace,
    np.logspace: logspace,
    np.geomspace: geomspace,
    np.fromfunction: fromfunction,
    np.fromiter: fromiter,
    np.vander: vander,
    np.meshgrid: meshgrid,
    np.indices: indices,
    np.concatenate: concatenate,
    np.stack: stack,
    np.hstack: hstack,
    np.vstack: vstack,
    np.dstack: dstack,
    np.column_stack: column_stack,
    np.block: block,
    np.append: append,
    np.insert: insert,
    np.delete: delete,
    np.resize: resize,
    np.pad: pad,
    np.diagonal: diagonal,
    np.diag: diag,
    np.diagflat: diagflat,
    np.swapaxes: swapaxes,
    np.moveaxis: moveaxis,
    np.rollaxis: rollaxis,
    np.matrix_transpose: matrix_transpose,
    np.linalg.matrix_transpose: matrix_transpose,
    np.broadcast_arrays: broadcast_arrays,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
    np.squeeze: squeeze,
    np.atleast_1d: atleast_1d,
    np.atleast_2d: atleast_2d,
    np.atleast_3d: atleast_3d,
    np.flip: flip,
    np.fliplr: fliplr,
    np.flipud: flipud,
    np.rot90: rot90,
    np.roll: roll,
    np.tile: tile,
    np.repeat: repeat,
    np.split: split,
    np.array_split: array_split,
    np.hsplit: hsplit,
    np.vsplit: vsplit,
    np.dsplit: dsplit,
}
