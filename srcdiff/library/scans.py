"""Cumulative sums and products, differences, and the methods of NumPy's elementwise functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import reductions
from srcdiff.library.language import (
    array_like,
    as_tuple,
    at_axis,
    axes_moved_last,
    axes_of,
    axis_of,
    check_positions,
    common_shape,
    each,
    first_result,
    has_nan,
    identity_of,
    inserted,
    is_array,
    is_complex_type,
    largest,
    only,
    part,
    replaced,
    result_type,
    stretched,
    unsupported,
    without,
    zero,
    zeros,
)
from srcdiff.library.language import ones as ones_of
from srcdiff.library.language import ufunc_at as at
from srcdiff.library.mathematics import frexp as frexp_of_number
from srcdiff.library.reductions import finished, folded, folded_line, numbers, started, written


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.add, a, axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.multiply, a, axis, dtype, out)


def running(ufunc: Any, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """Each element combined with all before it."""
    a = operands(ufunc, a, dtype)
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


def cumulative_sum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False) -> Any:
    return cumulative(np.add, x, axis, dtype, out, include_initial)


def cumulative_prod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False) -> Any:
    return cumulative(np.multiply, x, axis, dtype, out, include_initial)


def cumulative(ufunc: Any, x: Any, axis: Any, dtype: Any, out: Any, include_initial: Any) -> Any:
    x = numbers(x, dtype)
    if axis is None and x.ndim != 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    axis = 0 if axis is None else axis_of(axis, x.ndim)
    found = running(ufunc, x, axis, None, None)
    if include_initial:
        first = np.full(replaced(x.shape, axis, 1), identity_of(ufunc), found.dtype)
        found = np.concatenate((first, found), axis)
    return written(found, out)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.add, np.where(np.isnan(a), 0, a), axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(np.multiply, np.where(np.isnan(a), 1, a), axis, dtype, out)


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
    """Values to put before or after an array. A number is repeated for each line along the axis."""
    x = array_like(x)
    if x.ndim == 0:
        return np.full((*a.shape[:axis], 1, *a.shape[axis + 1 :]), x[()], a.dtype)
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    a = np.ravel(np.atleast_1d(ary))
    found = diff(a)
    if to_begin is not None:
        found = np.concatenate((np.ravel(np.atleast_1d(to_begin)), found), dtype=a.dtype)
    if to_end is not None:
        found = np.concatenate((found, np.ravel(np.atleast_1d(to_end))), dtype=a.dtype)
    return found


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Any:
    """Jumps of more than half a period become their complements, and all later elements move with them."""
    p = np.asarray(p)
    if not has_nan(p.dtype):
        unsupported("`unwrap` of integers")
    axis = axis_of(axis, p.ndim)
    half = period / 2
    result = np.copy(p)
    for i in each(without(p.shape, (axis,))):
        moved = zero(p.dtype)
        for k in range(1, p.shape[axis]):
            step = p[inserted(i, axis, k)] - p[inserted(i, axis, k - 1)]
            if not abs(step) < (half if discont is None else max(discont, half)):
                turned = np.mod(step + half, period) - half
                moved += (half if turned == -half and step > 0 else turned) - step
            result[inserted(i, axis, k)] = p[inserted(i, axis, k)] + moved
    return result


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
    """Differences of second order inside, and of the requested order at the ends."""
    spacing = array_like(spacing)
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError("the array is too small for a numerical gradient")
    result = np.empty(f.shape, result_type(f, np.float32))
    even = spacing.ndim == 0
    steps = np.full(n - 1, spacing[()]) if even else np.asarray(spacing[1:] - spacing[:-1])
    turns_out_even = even or reductions.all(steps == steps[0])
    for i in each(without(f.shape, (axis,))):
        for k in range(1, n - 1):
            before, after = steps[k - 1], steps[k]
            left, right = f[inserted(i, axis, k - 1)], f[inserted(i, axis, k + 1)]
            if even:
                found = (right - left) / (2.0 * after)
            else:
                found = (right * before / after - left * after / before) / (before + after)
                middle = f[inserted(i, axis, k)]
                if not turns_out_even or np.isfinite(middle):  # NumPy does not read it; the steps have derivatives
                    found += middle * (after - before) / (before * after)
            result[inserted(i, axis, k)] = found
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
    if initial is None and ufunc is np.logical_or:
        return reductions.any(array, axis, out, keepdims, where=where)
    if initial is None and ufunc is np.logical_and:
        return reductions.all(array, axis, out, keepdims, where=where)
    array = operands(ufunc, array, dtype)
    axes = axes_of(axis, array.ndim)
    start = identity_of(ufunc) if initial is None else initial
    if start is None:
        return finished(from_the_first(ufunc, array, axes, where), axes, out, keepdims)
    return finished(folded(ufunc, array, axes, started(start, array.dtype), where), axes, out, keepdims)


def operands(ufunc: Any, array: Any, dtype: Any) -> Any:
    """The array in the type that the function takes. Only sums and products count truth values as numbers."""
    if ufunc is np.logical_and or ufunc is np.logical_or or ufunc is np.logical_xor:
        return array_like(array) != 0
    if ufunc is np.add or ufunc is np.multiply or dtype is not None:
        return numbers(array, dtype)
    return array_like(array)


def from_the_first(ufunc: Any, array: Any, axes: Any, where: Any) -> Any:
    """The elements along an axis, combined from the first one on."""
    if where is not True or len(axes) != 1:
        unsupported("`reduce` of a function that has no identity, with `where` or along several axes")
    array = np.asarray(array)
    if array.shape[axes[0]] == 0:
        raise ValueError("zero-size array to reduction operation which has no identity")
    first, others = at_axis(array, axes[0], 0), part(array, axes[0], 1, None)
    if array.ndim == 1:
        return folded(ufunc, others, axes, first, True)
    result = np.copy(first)
    for i in each(result.shape):
        result[i] = folded_line(ufunc, others, axes, i, only(others.shape, axes), result[i], True)
    return result


def reduceat(ufunc: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """Reductions from each position to the next, or to the end. If the next one is not larger, the element itself."""
    array, positions = np.asarray(operands(ufunc, array, dtype)), np.asarray(indices)
    axis = axis_of(axis, array.ndim)
    n, count = array.shape[axis], len(positions)
    check_positions(positions, n)
    result = np.empty(replaced(array.shape, axis, count), array.dtype)
    for i in each(without(array.shape, (axis,))):
        for k in range(count):
            start = positions[k]
            total = array[inserted(i, axis, start)]
            for m in range(start + 1, positions[k + 1] if k + 1 < count else n):
                total = ufunc(total, array[inserted(i, axis, m)])
            result[inserted(i, axis, k)] = total
    return written(result, out)


def accumulate(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    return running(ufunc, array, axis, dtype, out)


def outer(ufunc: Any, a: Any, b: Any) -> Any:
    a, b = np.asarray(array_like(a)), np.asarray(array_like(b))
    return ufunc(np.reshape(a, a.shape + ones_of(b.ndim)), b)


METHODS: dict[str, Any] = {
    "reduce": reduce,
    "reduceat": reduceat,
    "accumulate": accumulate,
    "outer": outer,
    "at": at,
}
"""By the name of the method; the elementwise function is the first argument."""


def divmod(x: Any, y: Any) -> Any:  # noqa: A001 -- NumPy's name
    return np.floor_divide(x, y), np.mod(x, y)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    a = np.asarray(a) if is_array(a) else a
    b = np.asarray(b) if is_array(b) else b
    near = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Values that are not finite are replaced, and have derivative zero."""
    x = array_like(x)
    if not has_nan(x.dtype):
        return x
    if not copy:
        unsupported("`nan_to_num` without a copy")
    if is_complex_type(x.dtype):
        parts = nan_to_num(x.real, True, nan, posinf, neginf), nan_to_num(x.imag, True, nan, posinf, neginf)
        return parts[0] + 1j * parts[1]
    high = largest(x.dtype) if posinf is None else posinf
    low = -largest(x.dtype) if neginf is None else neginf
    return np.where(np.isnan(x), nan, np.where(np.isposinf(x), high, np.where(np.isneginf(x), low, x)))


def modf(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.isinf(x), np.copysign(0.0, x), x - whole), whole


def frexp(x: Any) -> Any:
    """The mantissas and the exponents of numbers."""
    if not is_array(x):
        return frexp_of_number(x)
    mantissa, exponent = np.empty(x.shape), np.empty(x.shape, np.int32)
    for i in each(x.shape):
        own, power = frexp_of_number(x[i])
        mantissa[i] = own
        exponent[i] = power
    return mantissa, exponent


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any) -> Any:
    """Apply the function to each line along the axis. Its result replaces the line."""
    arr = np.asarray(arr)
    axis = axis_of(axis, arr.ndim)
    if arr.ndim == 1:
        return func1d(arr, *args)
    lines = np.transpose(arr, axes_moved_last(arr.ndim, (axis,)))
    outer = without(arr.shape, (axis,))
    for n in outer:
        if n == 0:
            raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    first = first_result(func1d, lines[zeros(len(outer))], *args)
    if not is_array(first):
        result = np.empty(outer, result_type(first))
        for i in each(outer):
            result[i] = func1d(lines[i], *args)
        return result
    first = np.asarray(first)
    result = np.empty(outer[:axis] + first.shape + outer[axis:], first.dtype)
    for i in each(outer):
        found = np.asarray(func1d(lines[i], *args))
        for k in each(found.shape):
            result[i[:axis] + k + i[axis:]] = found[k]
    return result


def vectorize(pyfunc: Any, otypes: Any = None) -> Any:
    """A function of numbers, applied to each element of broadcast arrays."""

    def vectorized(*args: Any) -> Any:
        arrays = tuple([np.asarray(a) if is_array(a) else a for a in args])
        shape = common_shape(*tuple([np.shape(a) for a in arrays]))
        if len(shape) == 0:
            return pyfunc(*args)
        if otypes is None:
            kind = result_type(first_result(pyfunc, *tuple([element(a, zeros(np.ndim(a))) for a in arrays])))
        else:
            kind = otypes[0]
        result = np.empty(shape, kind)
        for i in each(shape):
            result[i] = pyfunc(*tuple([element(a, stretched(i, shape, np.shape(a))) for a in arrays]))
        return result

    return vectorized


def element(a: Any, place: Any) -> Any:
    """The element of an array at an index. For a number, it is the number."""
    return a[place] if is_array(a) else a


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    a = np.asarray(a)
    for axis in as_tuple(axes):
        found = np.asarray(func(a, axis))
        a = np.expand_dims(found, axis) if found.ndim < a.ndim else found
    return a


FUNCTIONS: dict[Any, Any] = {
    np.divmod: divmod,
    np.modf: modf,
    np.frexp: frexp,
    np.isclose: isclose,
    np.allclose: allclose,
    np.nan_to_num: nan_to_num,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.cumulative_sum: cumulative_sum,
    np.cumulative_prod: cumulative_prod,
    np.nancumsum: nancumsum,
    np.nancumprod: nancumprod,
    np.diff: diff,
    np.ediff1d: ediff1d,
    np.unwrap: unwrap,
    np.gradient: gradient,
    np.apply_along_axis: apply_along_axis,
    np.apply_over_axes: apply_over_axes,
    np.vectorize: vectorize,
}
