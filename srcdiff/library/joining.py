"""Arrays joined with each other: concatenation, stacking, blocks, insertion and deletion."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.arranging import atleast_1d, atleast_2d, atleast_3d
from srcdiff.library.language import (
    agree,
    array_like,
    axis_of,
    counted,
    each,
    inserted,
    is_array,
    ones,
    part,
    replaced,
    result_type,
    unsupported,
    without,
)
from srcdiff.library.language import at_axis as at
from srcdiff.library.padding import pad


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


FUNCTIONS: dict[Any, Any] = {
    getattr(np, function.__name__): function
    for function in (*(concatenate, stack, hstack, vstack, dstack, column_stack, block, append, insert, delete, pad),)
}
