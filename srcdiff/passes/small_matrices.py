"""Products, and equations, of matrices whose elements are scalars: the formulas in place of a call of a library.

Each function writes the scalars of its result, row by row, from those of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Value

Elements = Any  # an array of Values, in the shape of the matrix
Formula = Callable[..., Sequence[Elements]]


def dot(build: Builder, a: Sequence[Value], b: Sequence[Value]) -> Value:
    total = build.apply("multiply", a[0], b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = build.apply("add", total, build.apply("multiply", x, y))
    return total


def matrix_matrix(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array([[dot(build, row, column) for column in b.T] for row in a])]


def matrix_vector(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array([dot(build, row, b) for row in a])]


def vector_vector(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array(dot(build, a, b))]


def _array(values: Any) -> Elements:
    return np.array(values, dtype=object)


FORMULAS: dict[str, Formula] = {
    "matrix_matrix": matrix_matrix,
    "matrix_vector": matrix_vector,
    "vector_vector": vector_vector,
}
"""By the name of the row of the library."""
