"""Elements by their positions, and positions of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import (
    agree,
    array_like,
    as_tuple,
    at_axis,
    axis_of,
    backwards,
    check_positions,
    each,
    has_nan,
    is_function,
    replaced,
    require_apart,
    require_cast,
    result_type,
    unsupported,
)
from srcdiff.library.reductions import count, flat_place, written


def nonzero(a: Any) -> Any:
    """For each axis the positions of the elements that are not zero."""
    a = np.asarray(a)
    found_count = 0
    for i in each(a.shape):
        if a[i]:
            found_count += 1
    found = np.empty((a.ndim, found_count), np.int64)
    k = 0
    for i in each(a.shape):
        if a[i]:
            for axis in range(a.ndim):
                found[axis, k] = i[axis]
            k += 1
    return tuple([found[axis] for axis in range(a.ndim)])


def flatnonzero(a: Any) -> Any:
    return np.nonzero(np.ravel(a))[0]


def argwhere(a: Any) -> Any:
    return np.transpose(np.stack(np.nonzero(a)))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    a = np.asarray(a)
    indices = numbers_or_array(indices)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = axis_of(axis, a.ndim)
    if mode == "wrap":
        indices = indices % a.shape[axis]
    elif mode == "clip":
        indices = np.minimum(np.maximum(indices, 0), a.shape[axis] - 1)
    return written(at_axis(a, axis, indices), out)


def numbers_or_array(x: Any) -> Any:
    """A number unchanged, a list as an array."""
    x = array_like(x)
    if x.ndim == 0:
        return x[()]
    return x


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    arr, indices = np.asarray(arr), np.asarray(indices)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = axis_of(axis, arr.ndim)
    check_positions(indices, arr.shape[axis])
    return gathered(arr, indices, axis)


def gathered(a: Any, order: Any, axis: Any) -> Any:
    """In each line along the axis, the elements in the order of the positions."""
    result = np.empty(order.shape, a.dtype)
    for k in each(order.shape):
        result[k] = a[replaced(k, axis, order[k])]
    return result


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    a = np.asarray(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    return written(at_axis(a, axis_of(axis, a.ndim), np.nonzero(condition)[0]), out)


def compressed(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """The method of arrays."""
    return compress(condition, a, axis, out)


def extract(condition: Any, arr: Any) -> Any:
    return compress(np.ravel(condition), arr)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    conditions, choices = tuple(condlist), tuple(choicelist)
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    result = default
    for condition, choice in backwards(tuple(zip(conditions, choices, strict=True))):
        result = np.where(condition, choice, result)
    return result


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any) -> Any:
    """Each function gets all elements for which its condition holds. One more function gets the remaining elements."""
    x = np.asarray(x)
    if not isinstance(condlist, tuple | list):
        condlist = (condlist,)
    conditions, functions = tuple(condlist), tuple(funclist)
    if len(functions) == len(conditions) + 1:
        some = conditions[0]
        for condition in conditions[1:]:
            some = some | condition
        conditions = (*conditions, ~some)
    if len(functions) != len(conditions):
        raise ValueError("there must be one function for each condition, or one more")
    result = np.zeros(x.shape, x.dtype)
    for condition, function in zip(conditions, functions, strict=True):
        if is_function(function):
            found = np.asarray(x[condition])
            if len(found) > 0:
                result[condition] = function(found, *args)
        else:
            result[condition] = function
    return result


def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    a, choices = np.asarray(a), tuple(choices)
    if mode == "wrap":
        a = np.asarray(a % len(choices))
    elif mode == "clip":
        a = np.asarray(np.minimum(np.maximum(a, 0), len(choices) - 1))
    elif np.any((a < 0) | (a >= len(choices))):
        raise ValueError("invalid entry in choice array")
    result = choices[-1]
    for k in backwards(tuple(range(len(choices) - 1))):
        result = np.where(a == k, choices[k], result)
    return written(result, out)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    lower = min if a_min is None else a_min
    upper = max if a_max is None else a_max
    if lower is not None:
        a = np.maximum(a, lower)
    if upper is not None:
        a = np.minimum(a, upper)
    return written(a, out)


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    a = np.asarray(a)
    v = array_like(v)
    if sorter is not None:
        a = np.asarray(a[sorter])
    if v.ndim == 0:
        return insertion_place(a, v[()], side)
    places = np.empty(v.shape, np.int64)
    for k in each(v.shape):
        places[k] = insertion_place(a, v[k], side)
    return places


def insertion_place(a: Any, x: Any, side: Any) -> Any:
    """The index at which an element keeps a sorted vector sorted."""
    low, high = 0, len(a)
    may_be_nan = has_nan(result_type(a, x))
    while low < high:
        middle = (low + high) // 2
        if comes_before(a[middle], x, side, may_be_nan):
            low = middle + 1
        else:
            high = middle
    return low


def comes_before(element: Any, x: Any, side: Any, may_be_nan: Any) -> Any:
    """Whether an element sorts before a number. NaN comes last."""
    if not may_be_nan:
        return element < x if side == "left" else element <= x
    if side == "left":
        return not element >= x and element == element
    return not element > x and (element == element or x != x)


def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    bins = np.asarray(bins)
    n = len(bins)
    steps = bins[1:] - bins[:-1]
    if np.any(steps > 0) and np.any(steps < 0):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    if n > 1 and bins[0] > bins[n - 1]:
        places = searchsorted(bins[::-1], x, side)
        places = np.asarray(n - places) if np.ndim(x) > 0 else n - places
    else:
        places = searchsorted(bins, x, side)
    return places


def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    indices = numbers_or_array(indices)
    shape = as_tuple(shape)
    if np.any((indices < 0) | (indices >= count(shape))):
        raise ValueError("index is out of bounds for array with this size")
    found: Any = ()
    for n in backwards(shape) if order == "C" else shape:
        found = (indices % n, *found) if order == "C" else (*found, indices % n)
        indices = np.asarray(indices // n) if np.ndim(indices) else indices // n
    return found


def ravel_multi_index(multi_index: Any, dims: Any) -> Any:
    position = 0
    for index, n in zip(tuple(multi_index), as_tuple(dims), strict=True):
        if np.any((index < 0) | (index >= n)):
            raise ValueError("invalid entry in coordinates array")
        position = position * n + index
    return position


def ix_(*args: Any) -> Any:
    found = []
    for k, x in enumerate(args):
        positions = array_like(x)
        if positions.dtype == np.bool_:
            positions = np.nonzero(positions)[0]
        found.append(np.expand_dims(positions, others(k, len(args))))
    return tuple(found)


def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    return np.triu_indices(arr.shape[0], k, arr.shape[1])


def diag_indices_from(arr: Any) -> Any:
    for n in arr.shape[1:]:
        agree(n, arr.shape[0], "All dimensions of input must be of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)


def others(k: Any, rank: Any) -> Any:
    """All axes except one."""
    return tuple([axis for axis in range(rank) if axis != k])


def fill(a: Any, value: Any) -> None:
    """The method of arrays."""
    a[...] = value


def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    if wrap:
        unsupported("`fill_diagonal` that wraps")
    n = min(a.shape[0], a.shape[1])
    if np.ndim(val) == 0:
        for k in range(n):
            a[(k,) * a.ndim] = val
    else:
        require_apart(a, val)
        values = np.copy(val)
        for k in range(n):
            a[(k,) * a.ndim] = values[k % len(values)]


def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Write the values to positions in the flattened array. If there are too few values, they are repeated."""
    positions, values = np.ravel(np.atleast_1d(ind)), np.copy(np.ravel(np.atleast_1d(v)))
    n = count(a.shape)
    if mode == "wrap":
        positions = positions % n
    elif mode == "clip":
        positions = np.minimum(np.maximum(positions, 0), n - 1)
    check_positions(positions, n)
    if len(values) > 0:
        for k in range(len(positions)):
            a[place_in(a.shape, positions[k] % n)] = values[k % len(values)]


def place_in(shape: Any, position: Any) -> Any:
    """The multi-index of a position in the flattened array."""
    place: Any = ()
    for n in backwards(shape):
        place = (position % n, *place)
        position = position // n
    return place


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    require_cast(result_type(src), dst.dtype, casting)
    if where is True:
        dst[...] = src
    else:
        dst[...] = np.where(where, src, dst)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the values in order where the mask is true. If there are too few values, they are repeated."""
    require_apart(arr, vals)
    if np.ndim(vals) > 0 and not isinstance(vals, tuple | list):
        require_cast(vals.dtype, arr.dtype, "safe")
    values = np.copy(np.ravel(np.atleast_1d(vals)))
    holds = np.reshape(mask, arr.shape)
    k = 0
    for i in each(arr.shape):
        if holds[i]:
            if len(values) == 0:
                raise ValueError("Cannot insert from an empty array!")
            arr[i] = values[k % len(values)]
            k += 1


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Where the mask is true, write the values after repeating them to the size of the array."""
    if np.ndim(values) > 0 and not isinstance(values, tuple | list):
        require_cast(values.dtype, a.dtype, "safe")
    values = np.copy(np.ravel(np.atleast_1d(values)))
    holds = np.reshape(mask, a.shape)
    if len(values) > 0:
        for i in each(a.shape):
            if holds[i]:
                a[i] = values[flat_place(i, a.shape) % len(values)]


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    if axis is None:
        unsupported("`put_along_axis` without an axis")
    indices = np.asarray(indices)
    axis = axis_of(axis, arr.ndim)
    check_positions(indices, arr.shape[axis])
    shape = np.broadcast_shapes(replaced(arr.shape, axis, indices.shape[axis]), indices.shape)
    indices = np.broadcast_to(indices, shape)
    values = np.copy(np.broadcast_to(values, shape))
    for k in each(shape):
        arr[replaced(k, axis, indices[k])] = values[k]


def isin(element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False) -> Any:
    element, others = array_like(element), np.ravel(np.atleast_1d(test_elements))
    if element.ndim == 0:
        return is_among(element[()], others) != invert
    result = np.empty(element.shape, np.bool_)
    for i in each(element.shape):
        result[i] = is_among(element[i], others) != invert
    return result


def is_among(x: Any, others: Any) -> Any:
    found = False
    for k in range(len(others)):
        if others[k] == x:
            found = True
    return found


def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    x = np.asarray(x)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    n = minlength
    for k in range(len(x)):
        if x[k] < 0:
            raise ValueError("'list' argument must have no negative elements")
        n = max(n, x[k] + 1)
    if weights is None:
        found = np.zeros(n, np.int64)
        for k in range(len(x)):
            found[x[k]] += 1
        return found
    weights = np.asarray(weights)
    if len(weights) != len(x):
        raise ValueError("The weights and list don't have the same length.")
    result = np.zeros(n)
    for k in range(len(x)):
        result[x[k]] += weights[k]
    return result


FUNCTIONS: dict[Any, Any] = {
    np.put: put,
    np.place: place,
    np.putmask: putmask,
    np.put_along_axis: put_along_axis,
    np.isin: isin,
    np.copyto: copyto,
    np.bincount: bincount,
    np.nonzero: nonzero,
    np.flatnonzero: flatnonzero,
    np.argwhere: argwhere,
    np.take: take,
    np.take_along_axis: take_along_axis,
    np.compress: compress,
    np.extract: extract,
    np.select: select,
    np.piecewise: piecewise,
    np.choose: choose,
    np.clip: clip,
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.unravel_index: unravel_index,
    np.ravel_multi_index: ravel_multi_index,
    np.ix_: ix_,
    np.tril_indices_from: tril_indices_from,
    np.triu_indices_from: triu_indices_from,
    np.diag_indices_from: diag_indices_from,
    np.fill_diagonal: fill_diagonal,
}
