"""Positions of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import each


def nonzero(a: Any) -> Any:
    """For each axis the positions of the elements that are not zero."""
    a = np.asarray(a)
    count = 0
    for i in each(a.shape):
        if a[i]:
            count += 1
    found = np.empty((a.ndim, count), np.int64)
    k = 0
    for i in each(a.shape):
        if a[i]:
            for axis in range(a.ndim):
                found[axis, k] = i[axis]
            k += 1
    return tuple([found[axis] for axis in range(a.ndim)])


FUNCTIONS: dict[Any, Any] = {np.nonzero: nonzero}
