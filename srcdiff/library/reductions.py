"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import (
    agree,
    array_like,
    axes_of,
    axis_of,
    each,
    has_nan,
    in_order,
    interleaved,
    is_array,
    is_complex_type,
    is_short,
    known,
    only,
    part,
    require_cast,
    result_type,
    unsupported,
    without,
    zero,
    zeros,
)

# The names are NumPy's.
# ruff: noqa: A001


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> Any:
    a = numbers(a, dtype)
    if a.dtype == np.bool_:
        return folded_truth(np.logical_or, a, axis, out, keepdims, initial, where)
    axes = axes_of(axis, a.ndim)
    where = chosen(where, a.shape)
    initial = started(initial, a.dtype)
    if len(axes) == a.ndim:
        total = initial
        for i in each(a.shape):
            if where is True or where[i]:
                total += a[i]
        return finished(total, axes, out, keepdims)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    result = np.empty(outer, a.dtype)
    if a.ndim - 1 in axes:
        for i in each(outer):
            total = initial
            for j in each(inner):
                k = interleaved(axes, j, i)
                if where is True or where[k]:
                    total += a[k]
            result[i] = total
    else:
        for i in each(outer):
            result[i] = initial
        for k in each(a.shape):
            if where is True or where[k]:
                result[without(k, axes)] += a[k]
    return finished(result, axes, out, keepdims)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Any:
    a = numbers(a, dtype)
    if a.dtype == np.bool_:
        return folded_truth(np.logical_and, a, axis, out, keepdims, initial, where)
    axes = axes_of(axis, a.ndim)
    return finished(folded(np.multiply, a, axes, started(initial, a.dtype), where), axes, out, keepdims)


def folded_truth(ufunc: Any, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """Reductions of truth values without counting: NumPy adds them with `or` and multiplies them with `and`."""
    axes = axes_of(axis, a.ndim)
    return finished(folded(ufunc, a, axes, started(initial, a.dtype), where), axes, out, keepdims)


def started(initial: Any, dtype: Any) -> Any:
    """The initial value of a reduction, converted to the type of its result: 2.5 becomes 2 for integers."""
    return initial + zero(dtype) if has_nan(dtype) else np.astype(initial, dtype)


def folded(ufunc: Any, a: Any, axes: Any, start: Any, where: Any) -> Any:
    """The elements along the axes, combined by an operation."""
    where = chosen(where, a.shape)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    if len(axes) == a.ndim:
        return folded_line(ufunc, a, axes, (), inner, start, where)
    result = np.empty(outer, a.dtype)
    for i in each(outer):
        result[i] = folded_line(ufunc, a, axes, i, inner, start, where)
    return result


def folded_line(ufunc: Any, a: Any, axes: Any, i: Any, inner: Any, start: Any, where: Any) -> Any:
    result = start
    for j in each(inner):
        k = interleaved(axes, j, i)
        if where is True or where[k]:
            result = ufunc(result, a[k])
    return result


def numbers(a: Any, dtype: Any) -> Any:
    """The array as numbers to add. Truth values and short integers become integers of 64 bits."""
    a = array_like(a)
    if dtype is not None:
        if is_short(dtype):
            unsupported("a sum or a product with a `dtype` of so few bits, in which it wraps around,")
        return np.astype(a, dtype)
    if not has_nan(a.dtype) and a.dtype != np.int64:
        return np.astype(a, np.int64)
    return a


def chosen(where: Any, shape: Any) -> Any:
    """A mask of the elements that take part, or True for all."""
    if where is True:
        return True
    return np.broadcast_to(where, shape)


def finished(result: Any, axes: Any, out: Any, keepdims: Any) -> Any:
    """The result of a reduction, with `keepdims` and `out` applied."""
    if keepdims:
        result = np.expand_dims(result, axes)
    if out is not None:
        require_cast(result_type(result), out.dtype, "same_kind")
        out[...] = result
        return out
    return result


def count(shape: Any) -> Any:
    """The number of elements of an array of this shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def taking_part(a: Any, axes: Any, keepdims: Any, where: Any) -> Any:
    """The number of elements in each result of the reduction."""
    if where is True:
        return count(only(a.shape, axes))
    return sum(np.broadcast_to(where, a.shape), axes, np.int64, None, keepdims)


# -- means -----------------------------------------------------------------------------------------------------------


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    a = array_like(a)
    axes = axes_of(axis, a.ndim)
    if dtype is None and not has_nan(a.dtype):
        dtype = np.float64
    in_floats(dtype)
    total = sum(a, axes, dtype, None, keepdims, 0, where)
    return written(total / taking_part(a, axes, keepdims, where), out)


def in_floats(dtype: Any) -> None:
    """Refuse a mean that would be rounded to an integer."""
    if dtype is not None and not has_nan(dtype):
        unsupported("a mean, a variance or a deviation with a `dtype` of integers")


def written(result: Any, out: Any) -> Any:
    if out is not None:
        require_cast(result_type(result), out.dtype, "same_kind")
        out[...] = result
        return out
    return result


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    a = np.asarray(a)
    axes = axes_of(axis, a.ndim)
    if correction is not None:
        ddof = correction
    freedom = taking_part(a, axes, keepdims, where) - ddof
    if not known(ddof) or ddof > 0:
        freedom = np.maximum(freedom, 0)
    return written(squares(a, axes, dtype, keepdims, where, mean) / freedom, out)


def squares(a: Any, axes: Any, dtype: Any, keepdims: Any, where: Any, mean: Any) -> Any:
    """The sum of the squared differences between the elements and their mean."""
    in_floats(dtype)
    if mean is None:
        mean = center(a, axes, where)
    if is_complex_type(a.dtype):
        return sum(squared_sizes(a - mean), axes, dtype, None, keepdims, 0, where)
    return sum(np.square(a - mean), axes, dtype, None, keepdims, 0, where)


def squared_sizes(z: Any) -> Any:
    """The squared absolute values of complex numbers."""
    z = np.asarray(z)
    return z.real * z.real + z.imag * z.imag


def center(a: Any, axes: Any, where: Any) -> Any:
    """The mean, in a shape that can be subtracted from the array."""
    if len(axes) == a.ndim:
        return mean(a, where=where)
    return mean(a, axes, None, None, True, where=where)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    variance = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return written(root(variance), out)


def root(square: Any) -> Any:
    """The square root of a sum of squares. Where all of them are zero, its derivative is zero."""
    return np.where(square != 0, np.sqrt(square), square)


def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    axes = axes_of(axis, a.ndim)
    if weights is None:
        result = mean(a, axes, None, None, keepdims)
        if returned:
            return result, np.full(np.shape(result), count(only(a.shape, axes)), np.float64)
        return result
    weights = np.asarray(weights)
    if weights.ndim != a.ndim:
        if axis is not None and not in_order(axis, a.ndim):
            unsupported("`average` with weights along axes that are not in order")
        agree(count(weights.shape), count(only(a.shape, axes)), "weights do not fit the shape of the array")
        weights = np.expand_dims(weights, without(tuple(range(a.ndim)), axes))
    weights = np.broadcast_to(weights, a.shape)
    total = sum(weights, axes, None, None, keepdims)
    if np.any(total == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = sum(a * weights, axes, None, None, keepdims) / total
    if returned:
        return result, total
    return result


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    axes = axes_of(axis, a.ndim)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    if len(axes) == a.ndim:
        return finished(middle(np.ravel(a)), axes, out, keepdims)
    result = np.empty(outer, result_type(a, np.float32))
    n = count(inner)
    lines = np.reshape(np.transpose(a, without(tuple(range(a.ndim)), axes) + axes), (*outer, n))
    order = np.argsort(lines)
    for i in each(outer):
        result[i] = between(lines, i, order[(*i, (n - 1) // 2)], order[(*i, n // 2)], order[(*i, n - 1)])
    return finished(result, axes, out, keepdims)


def middle(a: Any) -> Any:
    """The median of a vector."""
    n = len(a)
    if n == 0:
        return np.nan
    order = np.argsort(a)
    return between(a, (), order[(n - 1) // 2], order[n // 2], order[n - 1])


def between(a: Any, i: Any, lower: Any, upper: Any, last: Any) -> Any:
    """The midpoint of two elements, or NaN if the last element is NaN."""
    result = (a[(*i, lower)] + a[(*i, upper)]) / 2
    if has_nan(a.dtype) and np.isnan(a[(*i, last)]):
        result = a[(*i, last)]
    return result


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    method: Any = "linear",
    keepdims: Any = False,
) -> Any:
    return quantiles_of(a, q, axis, out, method, keepdims, False)


def quantiles_of(a: Any, q: Any, axis: Any, out: Any, method: Any, keepdims: Any, leaves_out_nan: Any) -> Any:
    a = np.asarray(a)
    axes = axes_of(axis, a.ndim)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    lines = np.reshape(np.transpose(a, without(tuple(range(a.ndim)), axes) + axes), (*outer, count(inner)))
    order = np.argsort(lines)
    if not is_array(q):
        return finished(quantiles(lines, order, outer, q, method, leaves_out_nan), axes, out, keepdims)
    q = np.asarray(q)
    found = np.empty((*q.shape, *outer), result_type(a, np.float32))
    for k in each(q.shape):
        found[k] = quantiles(lines, order, outer, q[k], method, leaves_out_nan)
    return finished(found, tuple([q.ndim + k for k in axes]), out, keepdims)


def quantiles(lines: Any, order: Any, outer: Any, q: Any, method: Any, leaves_out_nan: Any) -> Any:
    """The quantiles of each line."""
    if not 0 <= q <= 1:
        raise ValueError("Quantiles must be in the range [0, 1]")
    if len(outer) == 0:
        return quantile_of_line((), lines, order, q, method, leaves_out_nan)
    result = np.empty(outer, result_type(lines, np.float32))
    for i in each(outer):
        result[i] = quantile_of_line(i, lines, order, q, method, leaves_out_nan)
    return result


def quantile_of_line(i: Any, lines: Any, order: Any, q: Any, method: Any, leaves_out_nan: Any) -> Any:
    """NaN comes last in the sorted order. It is ignored, or it is the result."""
    n = lines.shape[-1]
    if has_nan(lines.dtype) and leaves_out_nan:
        while n > 0 and np.isnan(lines[(*i, order[(*i, n - 1)])]):
            n -= 1
    if n == 0:
        return np.nan
    last = lines[(*i, order[(*i, n - 1)])]
    if has_nan(lines.dtype) and np.isnan(last):
        return last + 0.0
    at = np.minimum(np.maximum(place_of_quantile(q, n, method), 0.0), n - 1.0)
    low = int(at)
    lower = lines[(*i, order[(*i, low)])]
    if low + 1 == n:
        return lower + 0.0
    return lower + (lines[(*i, order[(*i, low + 1)])] - lower) * (at - low)


def place_of_quantile(q: Any, n: Any, method: Any) -> Any:
    """The position of a quantile in a sorted line, as a real number: Hyndman and Fan 1996, and NumPy's own methods."""
    if method == "linear":
        return q * (n - 1)
    if method == "lower":
        return np.floor(q * (n - 1))
    if method == "higher":
        return np.ceil(q * (n - 1))
    if method == "midpoint":
        return 0.5 * (np.floor(q * (n - 1)) + np.ceil(q * (n - 1)))
    if method == "nearest":
        return np.rint(q * (n - 1))
    if method == "hazen":
        return q * n - 0.5
    if method == "weibull":
        return q * (n + 1) - 1
    if method == "median_unbiased":
        return q * (n + 1 / 3) + 1 / 3 - 1
    if method == "normal_unbiased":
        return q * (n + 1 / 4) + 3 / 8 - 1
    if method == "interpolated_inverted_cdf":
        return q * n - 1
    return unsupported("`quantile` by this method")


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    method: Any = "linear",
    keepdims: Any = False,
) -> Any:
    return quantile(a, hundredths(q), axis, out, overwrite_input, method, keepdims)


def hundredths(q: Any) -> Any:
    return (np.asarray(q) if is_array(q) else q) / 100


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    y = np.asarray(y)
    axis = axis_of(axis, y.ndim)
    pairs = part(y, axis, 1, None) + part(y, axis, None, -1)
    if x is None:
        return sum(pairs, axis) * (dx / 2.0)
    x = np.asarray(x)
    if x.ndim == 1:
        steps = np.reshape(np.diff(x), (-1,) + (1,) * (y.ndim - 1 - axis))
    else:
        steps = np.diff(x, axis=axis)
    return sum(steps * pairs, axis) / 2.0


# -- extremes: of equal elements the first one -----------------------------------------------------------------------


def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return extreme(a, axis, out, keepdims, initial, where, 1, False)


def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return extreme(a, axis, out, keepdims, initial, where, -1, False)


def extreme(
    a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, sign: Any, leaves_out_nan: Any
) -> Any:
    a = array_like(a)
    axes = axes_of(axis, a.ndim)
    where = chosen(where, a.shape)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    if initial is None:
        has_elements(inner, "maximum" if sign == 1 else "minimum")
    if len(axes) == a.ndim:
        return finished(extreme_element(a, axes, (), inner, initial, where, sign, leaves_out_nan), axes, out, keepdims)
    result = np.empty(outer, a.dtype)
    for i in each(outer):
        result[i] = extreme_element(a, axes, i, inner, initial, where, sign, leaves_out_nan)
    return finished(result, axes, out, keepdims)


def extreme_element(
    a: Any, axes: Any, i: Any, inner: Any, initial: Any, where: Any, sign: Any, leaves_out_nan: Any
) -> Any:
    if initial is None:
        if where is not True:
            unsupported("the largest or smallest element with `where` but without `initial`")
        return a[interleaved(axes, extreme_place(a, axes, i, inner, sign, leaves_out_nan), i)]
    best = started(initial, a.dtype)
    at = zeros(len(inner))
    found = False
    for j in each(inner):
        k = interleaved(axes, j, i)
        if where is True or where[k]:
            x = a[k]
            if better(x, best, sign, has_nan(a.dtype), leaves_out_nan):
                best = x
                at = j
                found = True
    return a[interleaved(axes, at, i)] if found else started(initial, a.dtype)


def extreme_place(a: Any, axes: Any, i: Any, inner: Any, sign: Any, leaves_out_nan: Any) -> Any:
    """The index of the first of the largest or smallest elements."""
    at = zeros(len(inner))
    best = a[interleaved(axes, at, i)]
    for j in each(inner):
        x = a[interleaved(axes, j, i)]
        if better(x, best, sign, has_nan(a.dtype), leaves_out_nan):
            best = x
            at = j
    return at


def better(x: Any, best: Any, sign: Any, may_be_nan: Any, leaves_out_nan: Any) -> Any:
    """Whether an element is better than the best so far. NaN is better than all numbers, or worse than all."""
    if not may_be_nan:
        return x > best if sign == 1 else x < best
    if leaves_out_nan:
        return (x > best if sign == 1 else x < best) or (best != best and x == x)
    return not (x <= best if sign == 1 else x >= best) and best == best


def has_elements(shape: Any, name: Any) -> None:
    if count(shape) == 0:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    return written(max(a, axis, None, keepdims) - min(a, axis, None, keepdims), out)


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return extreme_position(a, axis, out, keepdims, 1)


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return extreme_position(a, axis, out, keepdims, -1)


def extreme_position(a: Any, axis: Any, out: Any, keepdims: Any, sign: Any) -> Any:
    a = array_like(a)
    axes = axes_of(axis, a.ndim)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    if count(inner) == 0:
        raise ValueError("attempt to get the place of the largest or smallest element of an empty sequence")
    if len(axes) == a.ndim:
        return finished(flat_place(extreme_place(a, axes, (), inner, sign, False), inner), axes, out, keepdims)
    result = np.empty(outer, np.int64)
    for i in each(outer):
        result[i] = flat_place(extreme_place(a, axes, i, inner, sign, False), inner)
    return finished(result, axes, out, keepdims)


def flat_place(place: Any, shape: Any) -> Any:
    """The index in the flattened array."""
    position = 0
    for i, n in zip(place, shape, strict=True):
        position = position * n + i
    return position


# -- truth values ----------------------------------------------------------------------------------------------------


def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return decided(a, axis, out, keepdims, where, True)


def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return decided(a, axis, out, keepdims, where, False)


def decided(a: Any, axis: Any, out: Any, keepdims: Any, where: Any, wanted: Any) -> Any:
    """`wanted` if the truth of one of the elements is `wanted`, otherwise its opposite."""
    a = array_like(a)
    axes = axes_of(axis, a.ndim)
    where = chosen(where, a.shape)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    if len(axes) == a.ndim:
        return finished(decided_line(a, axes, (), inner, where, wanted), axes, out, keepdims)
    result = np.empty(outer, np.bool_)
    for i in each(outer):
        result[i] = decided_line(a, axes, i, inner, where, wanted)
    return finished(result, axes, out, keepdims)


def decided_line(a: Any, axes: Any, i: Any, inner: Any, where: Any, wanted: Any) -> Any:
    found = not wanted
    for j in each(inner):
        k = interleaved(axes, j, i)
        if (where is True or where[k]) and (a[k] != 0) == wanted:
            found = wanted
    return found


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum(array_like(a) != 0, axis, None, None, keepdims)


# -- ignoring NaN ---------------------------------------------------------------------------------------------------


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = 0
) -> Any:
    a = np.asarray(a)
    return sum(a, axis, dtype, out, keepdims, initial, ~np.isnan(a))


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = 1
) -> Any:
    a = np.asarray(a)
    return prod(a, axis, dtype, out, keepdims, initial, ~np.isnan(a))


def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    return mean(a, axis, dtype, out, keepdims, where=~np.isnan(a))


def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    a = np.asarray(a)
    if not has_nan(a.dtype):
        return var(a, axis, dtype, out, ddof, keepdims)
    axes = axes_of(axis, a.ndim)
    where = np.asarray(~np.isnan(a))
    freedom = taking_part(a, axes, keepdims, where) - ddof
    freedom = np.where(freedom > 0, freedom, np.nan)
    return written(squares(a, axes, dtype, keepdims, where, None) / freedom, out)


def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return written(root(nanvar(a, axis, dtype, None, ddof, keepdims)), out)


def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return extreme(a, axis, out, keepdims, None, True, 1, True)


def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return extreme(a, axis, out, keepdims, None, True, -1, True)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    method: Any = "linear",
    keepdims: Any = False,
) -> Any:
    return quantiles_of(a, q, axis, out, method, keepdims, True)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    method: Any = "linear",
    keepdims: Any = False,
) -> Any:
    return nanquantile(a, hundredths(q), axis, out, overwrite_input, method, keepdims)


def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    return nanquantile(a, 0.5, axis, out, overwrite_input, "linear", keepdims)


def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return argmax(with_numbers(a, axis, -np.inf), axis, out, keepdims=keepdims)


def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return argmin(with_numbers(a, axis, np.inf), axis, out, keepdims=keepdims)


def with_numbers(a: Any, axis: Any, instead: Any) -> Any:
    """The array with NaN replaced; NumPy requires at least one number."""
    a = np.asarray(a)
    if any(all(np.isnan(a), axis)):
        raise ValueError("All-NaN slice encountered")
    return np.where(np.isnan(a), instead, a)


def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    if equal_nan:
        unsupported("`array_equal` with `equal_nan`")
    a1, a2 = array_like(a1), array_like(a2)
    if a1.ndim != a2.ndim:
        return False
    return all(a1 == a2) if a1.shape == a2.shape else False


FUNCTIONS: dict[Any, Any] = {
    np.sum: sum,
    np.prod: prod,
    np.mean: mean,
    np.var: var,
    np.std: std,
    np.average: average,
    np.median: median,
    np.quantile: quantile,
    np.percentile: percentile,
    np.trapezoid: trapezoid,
    np.max: max,
    np.min: min,
    np.amax: max,
    np.amin: min,
    np.ptp: ptp,
    np.argmax: argmax,
    np.argmin: argmin,
    np.any: any,
    np.all: all,
    np.count_nonzero: count_nonzero,
    np.nansum: nansum,
    np.nanprod: nanprod,
    np.nanmean: nanmean,
    np.nanvar: nanvar,
    np.nanstd: nanstd,
    np.nanmax: nanmax,
    np.nanmin: nanmin,
    np.nanmedian: nanmedian,
    np.nanquantile: nanquantile,
    np.nanpercentile: nanpercentile,
    np.nanargmax: nanargmax,
    np.nanargmin: nanargmin,
    np.array_equal: array_equal,
}
