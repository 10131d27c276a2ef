"""Reductions: one number of many, along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import axes_of, each, interleaved, only, without, zero

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
    axes = axes_of(axis, a.ndim)
    if where is not True:
        where = np.broadcast_to(where, a.shape)
    if len(axes) == a.ndim:
        total = initial + zero(a.dtype)
        for i in each(a.shape):
            if where is True or where[i]:
                total += a[i]
        return finished(total, axes, out, keepdims)
    outer, inner = without(a.shape, axes), only(a.shape, axes)
    result = np.empty(outer, a.dtype)
    if a.ndim - 1 in axes:
        for i in each(outer):
            total = initial + zero(a.dtype)
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


def numbers(a: Any, dtype: Any) -> Any:
    """The array as numbers that can be added: truth values count as integers."""
    if dtype is not None:
        return a.astype(dtype)
    if a.dtype == np.bool_:
        return a.astype(np.int64)
    return a


def finished(result: Any, axes: Any, out: Any, keepdims: Any) -> Any:
    """The result of a reduction, with the axes that were reduced if they are kept, or in the array given for it."""
    if keepdims:
        result = np.expand_dims(result, axes)
    if out is not None:
        out[...] = result
        return out
    return result


FUNCTIONS: dict[Any, Any] = {np.sum: sum}
