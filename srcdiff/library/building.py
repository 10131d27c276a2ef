"""Construction of arrays from numbers, and grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcdiff.library.joining import stack
from srcdiff.library.language import (
    array_like,
    as_tuple,
    at_least_zero,
    checked,
    common_type,
    each,
    from_places,
    has_nan,
    is_array,
    is_complex_type,
    ones,
    replaced,
    result_type,
    unsupported,
    upto,
    without,
    zero,
)
from srcdiff.library.reductions import flat_place


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
    common = result_type(start, stop)
    kind = common if is_complex_type(common) else float
    intervals = num - 1 if endpoint else num
    step = (stop - start) / max(intervals, 1)
    if is_array(start) or is_array(stop):
        if dtype is not None and not has_nan(dtype):
            unsupported("`linspace` of arrays with a `dtype` of integers")
        lines = stacked_lines(start, step, num, stop if endpoint else None, kind if dtype is None else dtype)
        lines = np.moveaxis(lines, 0, axis)
        return (lines, step) if retstep else lines
    result = np.empty(num, kind if dtype is None else dtype)
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


def dense_grid(*ranges: Any) -> Any:
    """`np.mgrid`."""
    return ranges[0] if len(ranges) == 1 else stack(meshgrid(*ranges, indexing="ij"))


def open_grid(*ranges: Any) -> Any:
    """`np.ogrid`."""
    return ranges[0] if len(ranges) == 1 else meshgrid(*ranges, indexing="ij", sparse=True)


FUNCTIONS: dict[Any, Any] = {
    getattr(np, function.__name__): function
    for function in (
        *(eye, identity, tri, tril, triu, tril_indices, triu_indices, arange, linspace, logspace, geomspace),
        *(fromfunction, fromiter, resize, vander, meshgrid, indices),
    )
}
