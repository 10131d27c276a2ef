"""Functions that generated code calls; plain Python that Numba compiles."""

from __future__ import annotations

from typing import Any

import numpy as np


def grown(array: Any, position: Any) -> Any:
    """The array if it has an element at the position, else one twice as large with the same contents."""
    if position < array.shape[0]:
        return array
    larger = np.empty(2 * array.shape[0] + 8, array.dtype)
    for k in range(array.shape[0]):
        larger[k] = array[k]
    return larger


def overlap(a: Any, b: Any) -> Any:
    """Whether the memory of two arrays may overlap."""
    if a.size == 0 or b.size == 0:
        return False
    a_low = a_high = a.ctypes.data
    for axis in range(a.ndim):
        reach = (a.shape[axis] - 1) * a.strides[axis]
        if reach > 0:
            a_high += reach
        else:
            a_low += reach
    b_low = b_high = b.ctypes.data
    for axis in range(b.ndim):
        reach = (b.shape[axis] - 1) * b.strides[axis]
        if reach > 0:
            b_high += reach
        else:
            b_low += reach
    return a_low <= b_high + b.itemsize - 1 and b_low <= a_high + a.itemsize - 1
