"""`scipy.linalg`. The options `overwrite_a` and `check_finite` have no effect here."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import blas_lapack, matrix_equations
from srcdiff.library import linear_algebra as linalg
from srcdiff.library.language import Elementwise, is_complex_type, unsupported
from srcdiff.library.linear_algebra import floats, stacked
from srcdiff.library.products import matmul, of_one_type
from srcdiff.library.structured_equations import (
    cho_factor,
    cho_solve,
    cholesky,
    from_triangle,
    inv,
    require_matrix,
    solve,
    solve_triangular,
    substituted,
    with_unit_diagonal,
)

stop_gradient = Elementwise("stop_gradient")

# ---------------------------------------------------------------------------------------------------------- equations


def det(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    return linalg.det(a)


def lu_factor(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    a = floats(a)
    require_matrix(a)
    return blas_lapack.triangular_factors(a)


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: Any = False, check_finite: Any = True) -> Any:
    lu, pivots = lu_and_piv
    lu, b = of_one_type(floats(lu), floats(b))
    order = order_of(pivots)
    unit = with_unit_diagonal(lu)
    if trans == 0 or trans == "N":
        return substituted(lu, substituted(unit, np.asarray(b[order]), True, False), False, False)
    turned = substituted(unit, substituted(lu, b, False, True), True, True)
    result = np.empty(b.shape, b.dtype)
    for i in range(len(order)):
        result[order[i]] = turned[i]
    return result


def lu(
    a: Any,
    permute_l: Any = False,
    overwrite_a: Any = False,
    check_finite: Any = True,
    p_indices: Any = False,
) -> Any:
    """For square matrices."""
    a = floats(a)
    require_matrix(a)
    if a.shape[0] != a.shape[1]:
        raise NotImplementedError(
            "lu of a matrix that is not square is not supported. With more columns than rows, write "
            "p, l, _ = lu(a[:, :len(a)]) and u = solve_triangular(l, p.T @ a, lower=True)"
        )
    factors, pivots = blas_lapack.triangular_factors(a)
    n = len(factors)
    order, place = order_of(pivots), np.empty(n, np.int64)
    for k in range(n):
        place[order[k]] = k
    lower, upper = np.zeros((n, n), a.dtype), np.zeros((n, n), a.dtype)
    for i in range(n):
        lower[i, i] = 1.0
        for j in range(n):
            if j < i:
                lower[i, j] = factors[i, j]
            else:
                upper[i, j] = factors[i, j]
    if permute_l:
        return np.asarray(lower[place]), upper
    if p_indices:
        return place, lower, upper
    permutation = np.zeros((n, n), a.dtype)
    for k in range(n):
        permutation[order[k], k] = 1.0
    return permutation, lower, upper


def order_of(pivots: Any) -> Any:
    """The order of the rows after these exchanges."""
    order = np.asarray(np.arange(len(pivots)))
    for k in range(len(pivots)):
        other = pivots[k]
        order[k], order[other] = order[other], order[k]
    return order


def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
) -> Any:
    below, above = l_and_u
    ab, b = of_one_type(floats(ab), floats(b))
    if ab.shape[0] != below + above + 1:
        raise ValueError("invalid values for the number of lower and upper diagonals")
    if ab.shape[1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    columns = np.asarray(b[:, None]) if b.ndim == 1 else b
    result = matrix_equations.banded(below, above, ab, columns)
    return result[:, 0] if b.ndim == 1 else result


def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: Any = False,
    overwrite_b: Any = False,
    lower: Any = False,
    check_finite: Any = True,
) -> Any:
    ab = floats(ab)
    width, n = ab.shape
    full = np.zeros((2 * width - 1, n), ab.dtype)
    for d in range(width):
        for j in range(n - d):
            element = ab[d, j] if lower else ab[width - 1 - d, j + d]
            full[width - 1 + d, j] = element
            full[width - 1 - d, j + d] = element
    return solve_banded((width - 1, width - 1), full, b)


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    a, b = of_one_type(floats(a), floats(b))
    a, q = of_one_type(a, floats(q))
    return matrix_equations.sylvester(a, b, q)


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    a, q = of_one_type(floats(a), floats(q))
    return matrix_equations.sylvester(a, np.asarray(a.T), q)


def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    a, q = of_one_type(floats(a), floats(q))
    return matrix_equations.stein(a, np.asarray(a.T), q)


def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: Any = True) -> Any:
    if e is not None or s is not None:
        unsupported("`solve_continuous_are` with `e` or `s`")
    a, b, q, r = floats(a), floats(b), floats(q), floats(r)
    weight = matmul(b, linalg.solve(r, np.asarray(b.T)))
    return matrix_equations.riccati(a, np.asarray(weight), q)


# ------------------------------------------------------------------------------------------------------ decompositions


def qr(
    a: Any,
    overwrite_a: Any = False,
    lwork: Any = None,
    mode: Any = "full",
    pivoting: Any = False,
    check_finite: Any = True,
) -> Any:
    a = floats(a)
    require_matrix(a)
    if pivoting:
        order = by_largest_rest(stop_gradient(a))
        return (*qr(np.asarray(a[:, order]), mode=mode), order)
    if mode == "raw":
        unsupported("`scipy.linalg.qr` with the mode 'raw'")
    if mode != "economic" and a.shape[0] > a.shape[1]:
        raise NotImplementedError(
            "qr of a matrix with more rows than columns, with a square q, is not supported: "
            "write q, r = qr(a, mode='economic')"
        )
    q, r = blas_lapack.orthogonal_triangular(a)
    return (r,) if mode == "r" else (q, r)


def by_largest_rest(a: Any) -> Any:
    """The columns, each time that with the largest part orthogonal to those before it (Businger and Golub 1965)."""
    rest, n = np.copy(a), a.shape[1]
    order = np.asarray(np.arange(n))
    for k in range(min(a.shape)):
        lengths = np.sum(abs(rest[:, k:]) ** 2, axis=0)
        best = k + np.argmax(lengths)
        order[k], order[best] = order[best], order[k]
        chosen, other = np.copy(rest[:, best]), np.copy(rest[:, k])
        rest[:, best] = other
        length = np.sqrt(lengths[best - k])
        if length > 0.0:
            chosen = chosen / length
        for j in range(k, n):
            rest[:, j] -= np.sum(chosen.conj() * rest[:, j]) * chosen
    return order


def svd(
    a: Any,
    full_matrices: Any = True,
    compute_uv: Any = True,
    overwrite_a: Any = False,
    check_finite: Any = True,
    lapack_driver: Any = "gesdd",
) -> Any:
    if not compute_uv:
        return linalg.svd(a, False, False)
    u, s, vt = linalg.svd(a, full_matrices)
    return u, s, vt


def svdvals(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    return linalg.svd(a, False, False)


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: Any = True,
    eigvals_only: Any = False,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    type: Any = 1,  # noqa: A002
    check_finite: Any = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """For B = L L^T, the vectors of A v = w B v are L^-T times those of L^-1 A L^-T."""
    if subset_by_value is not None or type != 1:
        unsupported("`scipy.linalg.eigh` with `subset_by_value` or another `type`")
    a = floats(a)
    if b is None:
        if eigvals_only:
            values = linalg.eigvalsh(a, "L" if lower else "U")
            vectors = a
        else:
            values, vectors = linalg.eigh(a, "L" if lower else "U")
    else:
        a, b = of_one_type(a, floats(b))
        require_matrix(a)
        if is_complex_type(a.dtype):
            unsupported("`scipy.linalg.eigh` of two complex matrices")
        factor = linalg.cholesky(b if lower else np.asarray(b.T))
        half = substituted(factor, from_triangle(a, lower), True, False)
        values, vectors = linalg.eigh(substituted(factor, np.asarray(half.T), True, False))
        vectors = substituted(factor, np.asarray(vectors), True, True)
    if subset_by_index is not None:
        first, last = subset_by_index
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values if eigvals_only else (values, vectors)


def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: Any = True,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    type: Any = 1,  # noqa: A002
    check_finite: Any = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        subset_by_index=subset_by_index,
        subset_by_value=subset_by_value,
    )


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: Any = False, check_finite: Any = True) -> Any:
    if atol is not None or rtol is not None:
        unsupported("`scipy.linalg.pinv` with `atol` or `rtol`")
    return (linalg.pinv(a), linalg.matrix_rank(a)) if return_rank else linalg.pinv(a)


def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
    lapack_driver: Any = None,
) -> Any:
    if cond is not None:
        unsupported("`scipy.linalg.lstsq` with `cond`")
    return linalg.lstsq(a, b)


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: Any = False, check_finite: Any = True) -> Any:  # noqa: A002
    return linalg.norm(a, ord, axis, keepdims)


# -------------------------------------------------------------------------------------- functions of matrices, building


def expm(A: Any) -> Any:  # noqa: N803
    return stacked(matrix_equations.exponential, floats(A))


def sqrtm(A: Any) -> Any:  # noqa: N803
    """For matrices that have a real square root."""
    return stacked(matrix_equations.square_root, floats(A))


def logm(A: Any) -> Any:  # noqa: N803
    """For matrices that have a real logarithm."""
    return stacked(matrix_equations.logarithm, floats(A))


def block_diag(*arrs: Any) -> Any:
    matrices = [np.atleast_2d(np.asarray(a)) for a in arrs]
    rows, columns = 0, 0
    for a in matrices:
        rows, columns = rows + a.shape[0], columns + a.shape[1]
    result = np.zeros((rows, columns), np.result_type(np.float64, *arrs))
    row, column = 0, 0
    for a in matrices:
        result[row : row + a.shape[0], column : column + a.shape[1]] = a
        row, column = row + a.shape[0], column + a.shape[1]
    return result


def toeplitz(c: Any, r: Any = None) -> Any:
    column = np.asarray(c)
    row = np.asarray(column.conj()) if r is None else np.asarray(r)
    n, m = len(column), len(row)
    result = np.empty((n, m), np.result_type(column, row))
    for i in range(n):
        for j in range(m):
            result[i, j] = column[i - j] if i >= j else row[j - i]
    return result


def circulant(c: Any) -> Any:
    column = np.asarray(c)
    n = len(column)
    result = np.empty((n, n), column.dtype)
    for i in range(n):
        for j in range(n):
            result[i, j] = column[i - j if i >= j else n + i - j]
    return result


def hankel(c: Any, r: Any = None) -> Any:
    column = np.asarray(c)
    row = np.zeros(len(column), column.dtype) if r is None else np.asarray(r)
    n, m = len(column), len(row)
    result = np.empty((n, m), np.result_type(column, row))
    for i in range(n):
        for j in range(m):
            result[i, j] = column[i + j] if i + j < n else row[i + j - n + 1]
    return result


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(solve, solve_triangular, solve_banded, solveh_banded, cholesky, cho_factor, cho_solve),
        *(lu_factor, lu_solve, lu, qr, svd, svdvals, eigh, eigvalsh, det, inv, pinv, lstsq, norm),
        *(expm, sqrtm, logm, block_diag, toeplitz, circulant, hankel),
        *(solve_sylvester, solve_continuous_lyapunov, solve_discrete_lyapunov, solve_continuous_are),
    )
}
"""By the name in `scipy.linalg`."""

TAKES_COMPLEX = frozenset(
    (*(qr, svd, svdvals, eigh, eigvalsh, det, pinv, lstsq, norm, expm, block_diag, toeplitz, circulant, hankel),)
)
"""The functions that support complex numbers."""
