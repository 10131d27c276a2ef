"""Linear algebra for compiled code: Numba's calls of LAPACK, with loops around them.

Numba's own functions copy and compare with slices and iterators, and build their messages from strings: about sixty
functions, which take five to ten seconds to compile. The results and exceptions are the same here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
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
    from numba.extending import intrinsic, overload

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

    substitute = intrinsic(_substitute)

    def solve_lu(factors: Any, pivots: Any, b: Any, is_transposed: Any) -> Any:
        """Stub of a support function until the types are known."""

    @overload(solve_lu)
    def choose_substitution(factors: Any, pivots: Any, b: Any, is_transposed: Any) -> Any:
        return _solve_lu(_Lapack(factors.dtype), tools, substitute, b) if factors.layout == "F" else None

    of_matrix = {"inv": _inv, "cholesky": _cholesky, "slogdet": _slogdet, "det": _det, "lu_factors": _lu_factors}
    functions_of_matrix = {name: of_one(implement) for name, implement in of_matrix.items()}
    return {"solve": solve, "solve_lu": solve_lu, **functions_of_matrix}


OF_FACTORS = ("lu_factors", "solve_lu")
"""The support functions that compiled code replaces by calls of LAPACK."""


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


def _lu_factors(lapack: _Lapack, tools: _Tools, a: Any) -> Any:
    """It raises nothing: where the factors are used, zeros on the diagonal raise, and NaN in place of all factors."""
    kind, dtype, integer, getrf = lapack.kind, lapack.dtype, lapack.integer, lapack.factorise
    empty, isfinite = tools.empty, tools.isfinite

    def factorise(a: Any) -> Any:
        n = a.shape[1]
        if a.shape[0] < n:
            n = a.shape[0]  # the factors of a matrix that is not square are not used
        factors, exchanged, pivots, all_finite = empty((n, n), dtype), empty(n, np.int64), empty(n, integer), True
        for i in range(n):
            for j in range(n):
                factors[j, i] = a[i, j]
                all_finite &= isfinite(a[i, j])
        if n > 0 and getrf(kind, n, n, factors.ctypes, n, pivots.ctypes) < 0:
            raise ValueError(WRONG_ARGUMENT)
        for i in range(n):
            exchanged[i] = pivots[i] - 1
            if not all_finite:
                for j in range(n):
                    factors[i, j] = np.nan
        return factors.T, exchanged

    return factorise


def _solve_lu(lapack: _Lapack, tools: _Tools, substitute: Any, b: Any) -> Any:
    """By two substitutions: LAPACK's own call of them starts threads even for small matrices."""
    dtype, empty, isfinite = lapack.dtype, tools.empty, tools.isfinite

    def matrix(factors: Any, pivots: Any, b: Any, is_transposed: Any) -> Any:
        n, columns = b.shape[0], b.shape[1]
        found = empty((columns, n), dtype)
        for i in range(n):
            if factors[i, i] == 0.0:
                raise np.linalg.LinAlgError(SINGULAR)
            for j in range(columns):
                if not isfinite(b[i, j]) or factors[0, 0] != factors[0, 0]:
                    raise np.linalg.LinAlgError(NOT_FINITE)
                found[j, i] = b[i, j]
        if is_transposed and n > 0:
            substitute(False, is_transposed, (n, columns), factors, found)
            substitute(True, is_transposed, (n, columns), factors, found)
        for step in range(n):
            k = n - 1 - step if is_transposed else step
            for j in range(columns):
                kept = found[j, k]
                found[j, k] = found[j, pivots[k]]
                found[j, pivots[k]] = kept
        if not is_transposed and n > 0:
            substitute(True, is_transposed, (n, columns), factors, found)
            substitute(False, is_transposed, (n, columns), factors, found)
        return found.T

    def vector(factors: Any, pivots: Any, b: Any, is_transposed: Any) -> Any:
        n = b.shape[0]
        found = empty(n, dtype)
        for i in range(n):
            if factors[i, i] == 0.0:
                raise np.linalg.LinAlgError(SINGULAR)
            if not isfinite(b[i]) or factors[0, 0] != factors[0, 0]:
                raise np.linalg.LinAlgError(NOT_FINITE)
            found[i] = b[i]
        if is_transposed and n > 0:
            substitute(False, is_transposed, (n, 1), factors, found)
            substitute(True, is_transposed, (n, 1), factors, found)
        for step in range(n):
            k = n - 1 - step if is_transposed else step
            kept = found[k]
            found[k] = found[pivots[k]]
            found[pivots[k]] = kept
        if not is_transposed and n > 0:
            substitute(True, is_transposed, (n, 1), factors, found)
            substitute(False, is_transposed, (n, 1), factors, found)
        return found

    return matrix if b.ndim == 2 else vector


PREFIX = "srcdiff_blas_"
"""The start of the symbols of functions of BLAS that Numba does not have."""


def ensure_all_known(symbols: Iterable[str]) -> None:
    """Tell LLVM where the functions of BLAS among these symbols are."""
    for symbol in symbols:
        if symbol.startswith(PREFIX):
            _ensure_known(symbol)


@functools.cache
def _ensure_known(symbol: str) -> None:
    import llvmlite.binding as llvm
    from numba.extending import get_cython_function_address

    address = get_cython_function_address("scipy.linalg.cython_blas", symbol.removeprefix(PREFIX))
    llvm.add_symbol(symbol, address)


def _substitute(typing_context: Any, is_lower: Any, is_transposed: Any, lengths: Any, factors: Any, found: Any) -> Any:
    """A call of BLAS's `trsm` with one of the factors; it writes the solutions over the right sides."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core import types as kinds
    from numba.np import linalg

    symbol = f"{PREFIX}{linalg.get_blas_kind(factors.dtype, 'linear algebra')}trsm"
    _ensure_known(symbol)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, integer = ir.IntType(8), ir.IntType(8 * np.dtype(linalg.F_INT_nptype).itemsize)

        def place_of(number: Any) -> Any:
            return builder.bitcast(cgutils.alloca_once_value(builder, number), byte.as_pointer())

        def letter(condition: Any, letters: str) -> Any:
            return place_of(builder.select(condition, *[byte(ord(x)) for x in letters]))

        def length(number: Any) -> Any:
            return place_of(builder.trunc(number, integer) if number.type.width > integer.width else number)

        def data(kind: Any, array: Any) -> Any:
            return builder.bitcast(context.make_array(kind)(context, builder, array).data, byte.as_pointer())

        is_lower, is_transposed, lengths = args[:3]
        rows, columns = (length(n) for n in cgutils.unpack_tuple(builder, lengths, 2))
        letters = (
            place_of(byte(ord("L"))),
            letter(is_lower, "LU"),
            letter(is_transposed, "TN"),
            letter(is_lower, "UN"),
        )
        one = place_of(context.get_constant_generic(builder, factors.dtype, 1))
        given = (*letters, rows, columns, one, data(factors, args[3]), rows, data(found, args[4]), rows)
        type_ = ir.FunctionType(ir.VoidType(), [byte.as_pointer()] * len(given))
        function = builder.module.globals.get(symbol) or ir.Function(builder.module, type_, symbol)
        builder.call(function, given)
        return context.get_dummy_value()

    return kinds.void(is_lower, is_transposed, lengths, factors, found), generate


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
