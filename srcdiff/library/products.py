"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.calls import matrix_matrix, matrix_vector, vector_vector


def matmul(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim == 1 and b.ndim == 1:
        return vector_vector(a, b)
    if a.ndim == 2 and b.ndim == 2:
        return matrix_matrix(a, b)
    if a.ndim == 2 and b.ndim == 1:
        return matrix_vector(a, b)
    if a.ndim == 1 and b.ndim == 2:
        return matrix_vector(b.T, a)
    return batched(a, b)


def batched(a: Any, b: Any) -> Any:
    """Matrix products over all leading axes."""
    return a


def dot(a: Any, b: Any) -> Any:
    return matmul(a, b)


FUNCTIONS: dict[Any, Any] = {np.matmul: matmul, np.dot: dot}
