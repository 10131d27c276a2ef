"""`scipy.ndimage`: filters with all modes, and linear interpolation at coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.interpolation_axes import width_of
from srcdiff.library.language import agree, is_float_type, unsupported, upto
from srcdiff.library.linear_algebra import floats


def place_of(i: Any, n: Any, mode: Any) -> Any:
    """The index of the element that stands for index i, which may be outside; -1 for the constant."""
    if 0 <= i < n:
        place = i
    elif mode == "nearest":
        place = 0 if i < 0 else n - 1
    elif mode in ("wrap", "grid-wrap"):
        place = i % n
    elif mode in ("reflect", "grid-mirror"):
        place = i % (2 * n)
        place = place if place < n else 2 * n - 1 - place
    elif mode == "mirror":
        place = i % max(2 * n - 2, 1)
        place = place if place < n else 2 * n - 2 - place
    elif mode in ("constant", "grid-constant"):
        place = -1
    else:
        unsupported("this mode")
        place = 0
    return place


def require_floats(x: Any, output: Any) -> Any:
    x = np.asarray(x)
    if not is_float_type(x.dtype):
        unsupported("a filter of integers, whose result SciPy cuts to integers,")
    if output is not None:
        unsupported("`output`")
    return x


# ------------------------------------------------------------------------------------------------------------ filters


def along_last(rows: Any, weights: Any, mode: Any, cval: Any, first: Any) -> Any:
    """The weighted sums. The first weight belongs to the element at i + first."""
    count, n = rows.shape
    result = np.zeros((count, n), rows.dtype)
    for r in range(count):
        for i in range(n):
            for k in range(len(weights)):
                place = place_of(i + first + k, n, mode)
                if place >= 0:
                    result[r, i] += weights[k] * rows[r, place]
                else:
                    result[r, i] += weights[k] * cval
    return result


def along_axis(x: Any, weights: Any, axis: Any, mode: Any, cval: Any, first: Any) -> Any:
    moved = np.moveaxis(x, axis, -1)
    rows = np.reshape(np.ascontiguousarray(moved), (width_of(moved.shape[:-1]), moved.shape[-1]))
    filtered = np.reshape(along_last(rows, weights, mode, cval, first), moved.shape)
    return np.ascontiguousarray(np.moveaxis(filtered, -1, axis))


def correlate1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    weights = np.asarray(floats(weights))
    return along_axis(require_floats(input, output), weights, axis, mode, cval, -(len(weights) // 2) - origin)


def convolve1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    weights = np.asarray(floats(weights)[::-1])
    first = origin - len(weights) // 2
    if len(weights) % 2 == 0:
        first = first + 1
    return along_axis(require_floats(input, output), weights, axis, mode, cval, first)


def in_plane(x: Any, weights: Any, mode: Any, cval: Any, first: Any) -> Any:
    rows, columns = x.shape
    result = np.zeros((rows, columns), x.dtype)
    for i in range(rows):
        for j in range(columns):
            for k in range(weights.shape[0]):
                for m in range(weights.shape[1]):
                    row = place_of(i + first[0] + k, rows, mode)
                    column = place_of(j + first[1] + m, columns, mode)
                    if row >= 0 and column >= 0:
                        result[i, j] += weights[k, m] * x[row, column]
                    else:
                        result[i, j] += weights[k, m] * cval
    return result


def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    x, weights = require_floats(input, output), np.asarray(floats(weights))
    if axes is not None or isinstance(origin, tuple | list):
        unsupported("`axes`, or an `origin` for each axis,")
    if x.ndim == 1:
        return correlate1d(x, weights, -1, None, mode, cval, origin)
    if x.ndim != 2 or weights.ndim != 2:
        unsupported("a filter with weights of more than two axes")
    return in_plane(x, weights, mode, cval, (-(weights.shape[0] // 2) - origin, -(weights.shape[1] // 2) - origin))


def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    x, weights = require_floats(input, output), np.asarray(floats(weights))
    if axes is not None or isinstance(origin, tuple | list):
        unsupported("`axes`, or an `origin` for each axis,")
    if x.ndim == 1:
        return convolve1d(x, weights, -1, None, mode, cval, origin)
    if x.ndim != 2 or weights.ndim != 2:
        unsupported("a filter with weights of more than two axes")
    first = (origin - (weights.shape[0] - 1) // 2, origin - (weights.shape[1] - 1) // 2)
    return in_plane(x, np.asarray(weights[::-1, ::-1]), mode, cval, first)


def gaussian_weights(sigma: Any, order: Any, radius: Any) -> Any:
    """The weights of a correlation with a Gaussian, or with one of its first two derivatives."""
    weights = np.empty(2 * radius + 1, np.float64)
    total = 0.0
    for k in range(2 * radius + 1):
        weights[k] = np.exp(-0.5 * (k - radius) ** 2 / (sigma * sigma))
        total += weights[k]
    for k in range(2 * radius + 1):
        x = 1.0 * (k - radius)
        factor = 1.0
        if order == 1:
            factor = x / (sigma * sigma)
        elif order == 2:
            factor = (x * x / (sigma * sigma) - 1.0) / (sigma * sigma)
        weights[k] *= factor / total
    return weights


def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: Any = -1,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """The radius is a step function of sigma. Between its steps, the derivative is that of the weights."""
    if order not in (0, 1, 2):
        unsupported("`gaussian_filter` of an order above 2")
    x = require_floats(input, output)
    size = int(truncate * sigma + 0.5) if radius is None else radius
    return along_axis(x, gaussian_weights(1.0 * sigma, order, size), axis, mode, cval, -size)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    found = np.copy(require_floats(input, output))
    if axes is not None:
        unsupported("`axes`")
    for axis in upto(found.ndim):
        width = sigma[axis] if isinstance(sigma, tuple | list) else sigma
        degree = order[axis] if isinstance(order, tuple | list) else order
        at_border = mode[axis] if isinstance(mode, tuple | list) else mode
        size = radius[axis] if isinstance(radius, tuple | list) else radius
        if width > 1e-15:
            found[...] = gaussian_filter1d(found, width, axis, degree, None, at_border, cval, truncate, radius=size)
    return found


def uniform_filter1d(
    input: Any, size: Any, axis: Any = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0
) -> Any:
    return along_axis(require_floats(input, output), np.ones(size) / size, axis, mode, cval, -(size // 2) - origin)


def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    found = np.copy(require_floats(input, output))
    if axes is not None:
        unsupported("`axes`")
    for axis in upto(found.ndim):
        width = size[axis] if isinstance(size, tuple | list) else size
        at_border = mode[axis] if isinstance(mode, tuple | list) else mode
        found[...] = uniform_filter1d(found, width, axis, None, at_border, cval, origin)
    return found


# ------------------------------------------------------------------------------------------------------ interpolation


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
) -> Any:
    if order != 1:
        unsupported("`map_coordinates` of an order other than 1")
    if mode not in ("constant", "nearest"):
        unsupported("`map_coordinates` with a mode other than `constant` and `nearest`")
    x, places = require_floats(input, output), np.asarray(floats(coordinates))
    count = x.ndim
    agree(places.shape[0], count, "invalid shape for coordinate array")
    if x.size == 0:
        raise ValueError("an array without elements has no values at coordinates")
    columns = np.reshape(places, (count, -1))
    values = np.ravel(x)
    found = np.empty(columns.shape[1], x.dtype)
    for i in range(columns.shape[1]):
        found[i] = at_coordinates(values, x.shape, columns[:, i], mode, cval)
    return np.reshape(found, places.shape[1:])


def at_coordinates(values: Any, shape: Any, at: Any, mode: Any, cval: Any) -> Any:
    count = len(at)
    lower, upper = np.empty(count, np.int64), np.empty(count, np.int64)
    share = np.empty(count, np.float64)
    is_outside = False
    for axis in range(count):
        last = 1.0 * shape[axis] - 1.0
        place = min(max(at[axis], 0.0), last)
        is_outside = is_outside or at[axis] < 0.0 or at[axis] > last
        first = min(int(np.floor(place)), max(shape[axis] - 2, 0))
        lower[axis] = first
        upper[axis] = min(first + 1, shape[axis] - 1)
        share[axis] = place - first
    total = 0.0
    for corner in range(2**count):
        weight, index = 1.0, 0
        for axis in range(count):
            if (corner >> axis) % 2 == 1:
                weight *= share[axis]
                index = index * shape[axis] + upper[axis]
            else:
                weight *= 1.0 - share[axis]
                index = index * shape[axis] + lower[axis]
        total += weight * values[index]
    if mode == "constant" and is_outside:
        total = cval + 0.0
    return total


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(correlate1d, convolve1d, correlate, convolve, gaussian_filter1d, gaussian_filter),
        *(uniform_filter1d, uniform_filter, map_coordinates),
    )
}
"""By the name in `scipy.ndimage`."""
