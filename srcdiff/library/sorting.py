"""Sorting. A sorted array is the array indexed by `argsort`. All sorts are stable."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import order_of
from srcdiff.library.indices import gathered
from srcdiff.library.language import (
    array_like,
    axis_of,
    backwards,
    each,
    has_nan,
    inserted,
    is_array,
    is_complex_type,
    unsupported,
    without,
)


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = array_like(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = axis_of(axis, a.ndim)
    if a.ndim == 1:
        order = order_of_line(np.asarray(a))
        return order  # noqa: RET504 -- generated code has the name
    n = a.shape[axis]
    order = np.empty(a.shape, np.int64)
    line = np.empty(n, a.dtype)
    for i in each(without(a.shape, (axis,))):
        for k in range(n):
            line[k] = a[inserted(i, axis, k)]
        positions = order_of_line(line)
        for k in range(n):
            order[inserted(i, axis, k)] = positions[k]
    return order


def order_of_line(a: Any) -> Any:
    """NumPy compares complex numbers by their real parts, then by their imaginary parts; those with NaN come last."""
    if not is_complex_type(a.dtype):
        order = order_of(a)
        return order  # noqa: RET504 -- generated code has the name
    real, imag = a.real, a.imag
    order = order_of(np.asarray(imag))
    order = np.asarray(order[order_of(np.asarray(real[order]))])
    missing = 2.0 * np.isnan(real) + np.isnan(imag)
    return np.asarray(order[order_of(np.asarray(missing[order]))])


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = np.asarray(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    return gathered(a, argsort(a, axis), axis_of(axis, a.ndim))


def sort_in_place(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """The method of arrays."""
    a[...] = sort(a, axis)


def sort_complex(a: Any) -> Any:
    found = sort(a)
    return found if is_complex_type(found.dtype) else found.astype(np.complex128)


def check_places(kth: Any, a: Any, axis: Any) -> None:
    n = a.size if axis is None else a.shape[axis]
    for k in np.ravel(kth) if is_array(kth) else (kth,):
        if k < -n or k >= n:
            raise ValueError(f"kth(={k + n if k < 0 else k}) out of bounds ({n})")


def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    a = np.asarray(a)
    check_places(kth, a, axis)
    return sort(a, axis)


def partition_in_place(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> None:
    """The method of arrays."""
    check_places(kth, a, axis)
    a[...] = sort(a, axis)


def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    a = np.asarray(a)
    check_places(kth, a, axis)
    return argsort(a, axis)


def lexsort(keys: Any, axis: Any = -1) -> Any:
    """Sort by the last key first: each further sort is stable and preserves the order so far."""
    keys = tuple(keys)
    if np.ndim(keys[0]) > 1:
        unsupported("`lexsort` of keys with several axes")
    order = argsort(keys[0])
    for key in keys[1:]:
        order = np.asarray(order[argsort(key[order])])
    return order


def order_of_keys(keys: Any, reverse: Any) -> Any:
    """The order of a list by its keys, the first of which has priority. It is stable, also when reversed."""
    n = len(keys[0])
    order = np.arange(n - 1, -1, -1) if reverse else np.arange(n)
    for key in backwards(keys):
        if has_nan(key.dtype) and np.any(key != key):
            raise ValueError("a list that contains NaN cannot be ordered")
        order = np.asarray(order[argsort(key[order])])
    if reverse:
        return np.asarray(order[::-1])
    return order


def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
) -> Any:
    """Of equal elements, the first one is returned."""
    if axis is not None:
        unsupported("`unique` along an axis")
    a = np.ravel(ar)
    n = len(a)
    order = argsort(a)
    is_first = np.empty(n, np.bool_)
    found = 0
    for k in range(n):
        is_first[k] = k == 0 or is_other(a[order[k - 1]], a[order[k]])
        if is_first[k]:
            found += 1
    index = np.empty(found, np.int64)
    inverse = np.empty(n, np.int64)
    counts = np.zeros(found, np.int64)
    m = -1
    for k in range(n):
        if is_first[k]:
            m += 1
            index[m] = order[k]
        inverse[order[k]] = m
        counts[m] += 1
    values = np.empty(found, a.dtype)
    for k in range(found):
        values[k] = a[index[k]]
    results: Any = (values,)
    if return_index:
        results = (*results, index)
    if return_inverse:
        results = (*results, np.reshape(inverse, np.shape(ar)))
    if return_counts:
        results = (*results, counts)
    if len(results) == 1:
        return values
    return results


def is_other(one: Any, other: Any) -> Any:
    """Whether numbers differ. All NaN are equal, also if only a part of a complex number is NaN."""
    return one != other and not (np.isnan(one) and np.isnan(other))


FUNCTIONS: dict[Any, Any] = {
    np.argsort: argsort,
    np.sort: sort,
    np.sort_complex: sort_complex,
    np.partition: partition,
    np.argpartition: argpartition,
    np.lexsort: lexsort,
    np.unique: unique,
}
