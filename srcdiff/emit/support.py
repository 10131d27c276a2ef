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
