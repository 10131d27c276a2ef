"""Equations of `scipy.linalg`, with triangular and other matrices of which only a part is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import blas_lapack
from srcdiff.library import linear_algebra as linalg
from srcdiff.library.language import (
    common_shape,
    each,
    first_of,
    is_complex_type,
    last_of,
    stretched,
    unsupported,
)
from srcdiff.library.linear_algebra import floats
from srcdiff.library.products import of_one_type

# ---------------------------------------------------------------------------------------------------------- triangles


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: Any = False,
    unit_diagonal: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
) -> Any:
    a, b = of_one_type(floats(a), floats(b))
    require_matrix(a)
    if not unit_diagonal:
        require_diagonal(a)
    a = with_unit_diagonal(a) if unit_diagonal else a
    a = a.conj() if trans == 2 or trans == "C" else a
    return substituted(a, b, lower, trans == 1 or trans == 2 or trans == "T" or trans == "C")


def require_diagonal(a: Any) -> None:
    for i in range(len(a)):
        if a[i, i] == 0:
            raise np.linalg.LinAlgError("singular matrix: an element of the diagonal is zero")


def require_matrix(a: Any) -> None:
    if a.ndim != 2:
        unsupported("`scipy.linalg` with a stack of matrices here")


def with_unit_diagonal(a: Any) -> Any:
    a = np.copy(a)
    for i in range(len(a)):
        a[i, i] = 1.0
    return a


def substituted(a: Any, b: Any, lower: Any, is_transposed: Any) -> Any:
    """Solve with a triangle, lower or upper, or with its transpose. Only the triangle is read."""
    if not lower:
        return substituted(np.asarray(a.T), b, True, not is_transposed)
    if b.ndim == 1:
        if is_transposed:
            return blas_lapack.solve_lower_transposed_vector(a, b)
        return blas_lapack.solve_lower_vector(a, b)
    return blas_lapack.solve_lower_transposed(a, b) if is_transposed else blas_lapack.solve_lower(a, b)


def cholesky(a: Any, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    return linalg.cholesky(a, not lower)


def cho_factor(a: Any, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    """The other triangle is zero. In SciPy it is arbitrary."""
    a = floats(a)
    require_matrix(a)
    return linalg.cholesky(a, not lower), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: Any = False, check_finite: Any = True) -> Any:
    c, lower = c_and_lower
    c, b = of_one_type(floats(c), floats(b))
    first, second = (c, c.conj()) if lower else (c.conj(), c)
    return substituted(second, substituted(first, b, lower, not lower), lower, lower)


# ---------------------------------------------------------------------------------------------------------- equations


def solve(
    a: Any,
    b: Any,
    lower: Any = False,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
    assume_a: Any = None,
    transposed: Any = False,
) -> Any:
    """Stacks of matrices are solved one by one."""
    if transposed and is_complex_type(floats(a).dtype):
        unsupported("`scipy.linalg.solve` with `transposed` and a complex matrix, also in SciPy,")
    a, b = of_one_type(floats(a), floats(b))
    if a.ndim == 2 and b.ndim <= 2:
        return solved(a, b, assume_a, lower, transposed)
    a_shape = first_of(a.shape, -2)
    if b.ndim == 1:
        result = np.empty(first_of(a.shape, -1), a.dtype)
        for i in each(a_shape):
            result[i] = solved(a[i], b, assume_a, lower, transposed)
        return result
    b_shape = first_of(b.shape, -2)
    shape = common_shape(a_shape, b_shape)
    result = np.empty(shape + last_of(b.shape, 2), a.dtype)
    for i in each(shape):
        result[i] = solved(
            a[stretched(i, shape, a_shape)], b[stretched(i, shape, b_shape)], assume_a, lower, transposed
        )
    return result


def solved(a: Any, b: Any, assume_a: Any, lower: Any, is_transposed: Any) -> Any:
    """The solution of one system, by the part of the matrix that SciPy reads."""
    if a.shape[0] != a.shape[1]:
        raise ValueError("the matrix is not square")
    if len(a) != len(b):
        raise ValueError("the shapes of the matrix and of the right-hand side do not fit together")
    a = np.asarray(np.transpose(a)) if is_transposed else a
    lower = lower != is_transposed
    if assume_a is None or assume_a in ("gen", "general", "banded"):
        return linalg.solve(a, b)
    if assume_a in ("pos", "positive definite"):
        return cho_solve((linalg.cholesky(a, not lower), lower), b)
    if assume_a in ("sym", "symmetric"):
        return linalg.solve(from_triangle(a, lower), b)
    if assume_a in ("her", "hermitian"):
        return linalg.solve(hermitian_from_triangle(a, lower), b)
    if assume_a in ("upper triangular", "lower triangular"):
        require_diagonal(a)
        return substituted(a, b, (assume_a == "lower triangular") != is_transposed, False)
    if assume_a == "diagonal":
        require_diagonal(a)
        return b / np.diag(a) if b.ndim == 1 else b / np.diag(a)[:, None]
    if assume_a == "tridiagonal":
        return linalg.solve(np.asarray(np.triu(np.tril(a, 1), -1)), b)
    unsupported("`scipy.linalg` with this `assume_a`")
    return None


def from_triangle(a: Any, lower: Any) -> Any:
    """The symmetric matrix with a given triangle."""
    n = len(a)
    result = np.empty((n, n), a.dtype)
    for i in range(n):
        for j in range(i + 1):
            result[i, j] = a[i, j] if lower else a[j, i]
            result[j, i] = a[i, j] if lower else a[j, i]
    return result


def hermitian_from_triangle(a: Any, lower: Any) -> Any:
    n = len(a)
    result = from_triangle(a, lower)
    if is_complex_type(a.dtype):
        for i in range(n):
            result[i, i] = a[i, i].real
            for j in range(i + 1, n):
                if lower:
                    result[i, j] = a[j, i].conjugate()
                else:
                    result[j, i] = a[i, j].conjugate()
    return result


def inv(a: Any, overwrite_a: Any = False, check_finite: Any = True, *, assume_a: Any = None, lower: Any = False) -> Any:
    if assume_a is None or assume_a in ("gen", "general"):
        return linalg.inv(a)
    return solve(a, np.eye(a.shape[a.ndim - 1]), lower=lower, assume_a=assume_a)


TAKES_COMPLEX = frozenset((solve, solve_triangular, cholesky, cho_factor, cho_solve, inv))
"""The functions that support complex numbers."""
