"""Sparse equations by SuperLU: generated code calls SciPy. The most recent factorisations are reused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import row
from srcdiff.library.call_outs import CallOut

_KEPT = 4
_factors: list[tuple[Any, Any, Any, Any]] = []
"""The arrays of the most recent matrices in CSC form, and their factorisations."""
_lock = threading.Lock()


def forget_factorisations() -> None:
    """Free the memory of the factorisations."""
    with _lock:
        _factors.clear()


def _factorised(data: Any, indices: Any, indptr: Any) -> Any:
    with _lock:
        for k, (*known, factors) in enumerate(_factors):
            if all(np.array_equal(a, b) for a, b in zip(known, (data, indices, indptr), strict=True)):
                _factors.insert(0, _factors.pop(k))
                return factors
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    count = len(indptr) - 1
    matrix = csc_array((data, indices, indptr), shape=(count, count), dtype=np.float64)
    matrix.sum_duplicates()
    factors = splu(matrix)
    with _lock:
        _factors.insert(0, (data, indices, indptr, factors))
        del _factors[_KEPT:]
    return factors


def _solved(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    return _factorised(data, indices, indptr).solve(np.asarray(b, np.float64))


def _solved_transposed(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    return _factorised(data, indices, indptr).solve(np.asarray(b, np.float64), "T")


sparse_solve = CallOut.own(_solved, (("float64", 1),), "sparse_solve", __name__)
sparse_solve_columns = CallOut.own(_solved, (("float64", 2),), "sparse_solve_columns", __name__)
sparse_solve_transposed = CallOut.own(_solved_transposed, (("float64", 1),), "sparse_solve_transposed", __name__)
sparse_solve_transposed_columns = CallOut.own(
    _solved_transposed, (("float64", 2),), "sparse_solve_transposed_columns", __name__
)

# -- adjoints ----------------------------------------------------------------------------------------------------------


def solve_adjoint(data: Any, indices: Any, indptr: Any, b: Any, out: Any, out_bar: Any) -> Any:
    """The adjoint of A x = b, for A in CSC form."""
    b_bar = solve_transposed(data, indices, indptr, out_bar)
    return by_elements(data, indices, indptr, b_bar, out), None, None, b_bar


def solve_transposed_adjoint(data: Any, indices: Any, indptr: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve(data, indices, indptr, out_bar)
    return by_elements(data, indices, indptr, out, b_bar), None, None, b_bar


def by_elements(data: Any, indices: Any, indptr: Any, rows: Any, columns: Any) -> Any:
    """For each element, minus the product of the entries of its row and of its column."""
    bar = np.zeros(len(data), data.dtype)
    for j in range(len(indptr) - 1):
        for k in range(indptr[j], indptr[j + 1]):
            bar[k] = -rows[indices[k]] * columns[j]
    return bar


def solve_columns_adjoint(data: Any, indices: Any, indptr: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_transposed_columns(data, indices, indptr, out_bar)
    return by_elements_of_columns(data, indices, indptr, b_bar, out), None, None, b_bar


def solve_transposed_columns_adjoint(data: Any, indices: Any, indptr: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_columns(data, indices, indptr, out_bar)
    return by_elements_of_columns(data, indices, indptr, out, b_bar), None, None, b_bar


def by_elements_of_columns(data: Any, indices: Any, indptr: Any, rows: Any, columns: Any) -> Any:
    bar = np.zeros(len(data), data.dtype)
    for j in range(len(indptr) - 1):
        for k in range(indptr[j], indptr[j + 1]):
            for m in range(rows.shape[1]):
                bar[k] -= rows[indices[k], m] * columns[j, m]
    return bar


_CALL = "{call}({0}, {1}, {2}, {3})"
_DTYPE = ("float64",)
solve = row("sparse_solve", _CALL, "k,k,m,i->i", solve_adjoint, _DTYPE, call=sparse_solve)
solve_transposed = row(
    "sparse_solve_transposed", _CALL, "k,k,m,i->i", solve_transposed_adjoint, _DTYPE, call=sparse_solve_transposed
)
solve_columns = row(
    "sparse_solve_columns", _CALL, "k,k,m,ij->ij", solve_columns_adjoint, _DTYPE, call=sparse_solve_columns
)
solve_transposed_columns = row(
    "sparse_solve_transposed_columns",
    _CALL,
    "k,k,m,ij->ij",
    solve_transposed_columns_adjoint,
    _DTYPE,
    call=sparse_solve_transposed_columns,
)
