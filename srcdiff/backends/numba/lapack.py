"""Linear algebra for compiled code: Numba's calls of LAPACK, with loops around them.

Numba's own functions copy and compare with slices and iterators, and build their messages from strings: about sixty
functions, which take five to ten seconds to compile. The results and exceptions are the same here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

NOT_SQUARE = "Last 2 dimensions of the array must be square."
NOT_FINITE = "Array must not contain infs or NaNs."
DOES_NOT_FIT = "Incompatible array sizes, system is not dimensionally valid."
SINGULAR = "Matrix is singular to machine precision."
NOT_POSITIVE_DEFINITE = "Matrix is not positive definite."
WRONG_ARGUMENT = "LAPACK was given a wrong argument"


def functions(empty: Any, isfinite: Any) -> dict[str, Callable[..., Any]]:
    """The replacements of functions of `np.linalg`, by name; the parameters are NumPy functions for compiled code."""
    from numba import njit
    from numba.extending import overload

    def finite(a: Any) -> Any:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if not isfinite(a[i, j]):
                    raise np.linalg.LinAlgError(NOT_FINITE)

    tools = _Tools(empty, isfinite, njit(finite), njit(by_columns))

    def of_one(implement: Callable[..., Any]) -> Callable[..., Any]:
        def function(a: Any) -> Any:
            """Stub of a function of `np.linalg` until the type of the matrix is known."""

        @overload(function)
        def choose(a: Any) -> Any:
            return implement(_Lapack(a.dtype), tools, a)

        return function

    def solve(a: Any, b: Any) -> Any:
        """Stub of `np.linalg.solve` until the types are known."""

    @overload(solve)
    def choose(a: Any, b: Any) -> Any:
        return _solve(_Lapack(a.dtype), tools, a, b)

    of_matrix = {"inv": _inv, "cholesky": _cholesky, "slogdet": _slogdet, "det": _det}
    return {"solve": solve, **{name: of_one(implement) for name, implement in of_matrix.items()}}


class _Tools(NamedTuple):
    """The helper functions."""

    empty: Any
    isfinite: Any
    finite: Any
    by_columns: Any


class _Lapack:
    """Numba's functions that call LAPACK, for matrices of a type."""

    def __init__(self, dtype: Any) -> None:
        from numba.np import linalg
        from numba.np.numpy_support import as_dtype

        linalg.ensure_lapack()
        found = linalg._LAPACK()
        self.kind = ord(linalg.get_blas_kind(dtype, "linear algebra"))
        self.dtype, self.integer = as_dtype(dtype), linalg.F_INT_nptype
        self.solve, self.factorise = found.numba_xgesv(dtype), found.numba_xxgetrf(dtype)
        self.invert, self.factorise_symmetric = found.numba_ez_xxgetri(dtype), found.numba_xxpotrf(dtype)


def by_columns(a: Any, new: Any) -> Any:
    """The matrix in new memory, whose rows are its columns."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            new[j, i] = a[i, j]
    return new.T


def _solve(lapack: _Lapack, tools: _Tools, a: Any, b: Any) -> Any:
    kind, dtype, integer, gesv = lapack.kind, lapack.dtype, lapack.integer, lapack.solve
    empty, isfinite, finite, by_columns = tools

    def matrix(a: Any, b: Any) -> Any:
        n, columns = a.shape[1], b.shape[1]
        finite(a)
        finite(b)
        if a.shape[0] != b.shape[0]:
            raise np.linalg.LinAlgError(DOES_NOT_FIT)
        factors, found = by_columns(a, empty((n, n), dtype)), by_columns(b, empty((columns, n), dtype))
        if n == 0:
            return found
        pivots = empty(n, integer)
        status = gesv(kind, n, columns, factors.ctypes, n, pivots.ctypes, found.ctypes, n)
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        return found

    def vector(a: Any, b: Any) -> Any:
        n = a.shape[1]
        finite(a)
        if a.shape[0] != b.shape[0]:
            raise np.linalg.LinAlgError(DOES_NOT_FIT)
        found = empty(n, dtype)
        for i in range(n):
            if not isfinite(b[i]):
                raise np.linalg.LinAlgError(NOT_FINITE)
            found[i] = b[i]
        if n == 0:
            return found
        factors, pivots = by_columns(a, empty((n, n), dtype)), empty(n, integer)
        status = gesv(kind, n, 1, factors.ctypes, n, pivots.ctypes, found.ctypes, n)
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        return found

    return matrix if b.ndim == 2 else vector


def _inv(lapack: _Lapack, tools: _Tools, a: Any) -> Any:
    kind, dtype, integer, getrf, getri = lapack.kind, lapack.dtype, lapack.integer, lapack.factorise, lapack.invert
    empty, _, finite, by_columns = tools

    def inverse(a: Any) -> Any:
        n = a.shape[1]
        if a.shape[0] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        finite(a)
        found = by_columns(a, empty((n, n), dtype))
        if n == 0:
            return found
        pivots = empty(n, integer)
        status = getrf(kind, n, n, found.ctypes, n, pivots.ctypes)
        if status == 0:
            status = getri(kind, n, found.ctypes, n, pivots.ctypes)
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            raise np.linalg.LinAlgError(SINGULAR)
        return found

    return inverse


def _cholesky(lapack: _Lapack, tools: _Tools, a: Any) -> Any:
    kind, dtype, upper, potrf = lapack.kind, lapack.dtype, ord("U"), lapack.factorise_symmetric
    empty = tools.empty

    def factor(a: Any) -> Any:
        n = a.shape[1]
        if a.shape[0] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        found = empty((n, n), dtype)
        for i in range(n):
            for j in range(n):
                found[i, j] = a[i, j]
        if n == 0:
            return found
        status = potrf(kind, upper, n, found.ctypes, n)  # the lower one is the upper one to LAPACK, by columns
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE)
        for i in range(n):
            for j in range(i + 1, n):
                found[i, j] = 0.0
        return found

    return factor


def _slogdet(lapack: _Lapack, tools: _Tools, a: Any) -> Any:
    kind, dtype, integer, getrf = lapack.kind, lapack.dtype, lapack.integer, lapack.factorise
    empty, _, finite, by_columns = tools

    def sign_and_logarithm(a: Any) -> Any:
        n = a.shape[1]
        if a.shape[0] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        if n == 0:
            return 1.0, 0.0
        finite(a)
        factors, pivots = by_columns(a, empty((n, n), dtype)), empty(n, integer)
        status = getrf(kind, n, n, factors.ctypes, n, pivots.ctypes)
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            return 0.0, -np.inf
        sign, logarithm = 1.0, 0.0
        for k in range(n):
            entry = factors[k, k]
            if (pivots[k] != k + 1) != (entry < 0.0):
                sign = -sign
            logarithm += math.log(abs(entry))
        return sign, logarithm

    def sign_and_logarithm_of_complex(a: Any) -> Any:
        n = a.shape[1]
        if a.shape[0] != n:
            raise np.linalg.LinAlgError(NOT_SQUARE)
        sign, logarithm = one, 0.0
        if n == 0:
            return sign, logarithm
        finite(a)
        factors, pivots = by_columns(a, empty((n, n), dtype)), empty(n, integer)
        status = getrf(kind, n, n, factors.ctypes, n, pivots.ctypes)
        if status < 0:
            raise ValueError(WRONG_ARGUMENT)
        if status > 0:
            return 0.0 * sign, -np.inf
        for k in range(n):
            size = abs(factors[k, k])
            sign *= factors[k, k] / size
            if pivots[k] != k + 1:
                sign = -sign
            logarithm += math.log(size)
        return sign, logarithm

    one = dtype.type(1)
    return sign_and_logarithm_of_complex if dtype.kind == "c" else sign_and_logarithm


def _det(lapack: _Lapack, tools: _Tools, a: Any) -> Any:
    from numba import njit

    slogdet = njit(_slogdet(lapack, tools, a))

    def determinant(a: Any) -> Any:
        sign, logarithm = slogdet(a)
        return sign * math.exp(logarithm)

    return determinant
