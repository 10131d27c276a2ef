"""`scipy.sparse.linalg`: direct solvers by SuperLU, and Krylov methods in source.

The result of a Krylov method has the derivative of the exact solution: the adjoint runs the method once more, with the
transposed matrix. If a method does not converge, it raises `RuntimeError`, where SciPy returns a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library import linear_systems, sparse_calls
from srcdiff.library.blas_lapack import Ruled
from srcdiff.library.language import agree, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.sparse_arrays import Csc, Csr, Sparse

# -- direct solvers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """The attributes of the result of `splu` that programs may use."""

    matrix: Any

    @property
    def shape(self: Any) -> Any:
        return self.matrix.shape

    def solve(self: Any, rhs: Any, trans: Any = "N") -> Any:
        if trans == "N":
            return solved(self.matrix, rhs)
        return solved(self.matrix.transpose(), rhs)


def solved(matrix: Any, b: Any) -> Any:
    """The x with matrix @ x = b, for a vector or for columns b."""
    matrix = compressed(matrix)
    b = floats(b)
    agree(matrix.shape[0], matrix.shape[1], "matrix must be square")
    agree(matrix.shape[0], b.shape[0], "the matrix and the right-hand side do not fit together")
    if np.iscomplexobj(matrix.data) or np.iscomplexobj(b):
        unsupported("a sparse system of complex equations")
    data = floats(matrix.data)
    dtype = np.result_type(data, b)
    if isinstance(matrix, Csc):
        if b.ndim == 1:
            return np.asarray(sparse_calls.solve(data, matrix.indices, matrix.indptr, b), dtype)
        return np.asarray(sparse_calls.solve_columns(data, matrix.indices, matrix.indptr, b), dtype)
    if b.ndim == 1:
        return np.asarray(sparse_calls.solve_transposed(data, matrix.indices, matrix.indptr, b), dtype)
    return np.asarray(sparse_calls.solve_transposed_columns(data, matrix.indices, matrix.indptr, b), dtype)


def compressed(matrix: Any) -> Any:
    if not isinstance(matrix, Sparse):
        unsupported("an array that is not sparse, for a solver of `scipy.sparse.linalg`,")
    return matrix if isinstance(matrix, Csr | Csc) else matrix.tocsc()


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: Any = True) -> Any:
    if isinstance(b, Sparse):
        unsupported("`spsolve` with a sparse right-hand side")
    b = np.asarray(b)
    if b.ndim == 2 and b.shape[1] == 1:
        raise ValueError("spsolve of one column returns a vector: pass a vector")
    return solved(A, b)


def splu(
    A: Any,
    permc_spec: Any = None,
    diag_pivot_thresh: Any = None,
    relax: Any = None,
    panel_size: Any = None,
    options: Any = None,
) -> Any:
    return Factors(compressed(A))


def factorized(A: Any) -> Any:
    matrix = compressed(A)

    def solve(b: Any) -> Any:
        return solved(matrix, b)

    return solve


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: Any = True,
    overwrite_A: Any = False,
    overwrite_b: Any = False,
    unit_diagonal: Any = False,
) -> Any:
    """By substitution, in source. Elements on the other side of the diagonal are not read."""
    found = A.tocsr()
    b = floats(b)
    if b.ndim != 1:
        unsupported("`spsolve_triangular` of several columns")
    count = found.shape[0]
    x = np.zeros(count, np.result_type(found.data, b))
    for step in range(count):
        i = step if lower else count - 1 - step
        total = b[i]
        diagonal = 1.0 if unit_diagonal else 0.0
        for k in range(found.indptr[i], found.indptr[i + 1]):
            j = found.indices[k]
            if j == i:
                if not unit_diagonal:
                    diagonal += found.data[k]
            elif (j < i) == lower:
                total -= found.data[k] * x[j]
        if diagonal == 0.0:
            raise np.linalg.LinAlgError("A is singular: zero entry on diagonal.")
        x[i] = total / diagonal
    return x


# -- Krylov methods ----------------------------------------------------------------------------------------------------


def product(data: Any, indices: Any, indptr: Any, x: Any, by_rows: Any) -> Any:
    y = np.zeros(len(x), x.dtype)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if by_rows:
                y[i] += data[k] * x[indices[k]]
            else:
                y[indices[k]] += data[k] * x[i]
    return y


def by_conjugate_gradients(
    data: Any,
    indices: Any,
    indptr: Any,
    b: Any,
    x0: Any,
    by_rows: Any,
    rtol: Any,
    atol: Any,
    maxiter: Any,
    restart: Any,
) -> Any:
    def times(x: Any) -> Any:
        return product(data, indices, indptr, x, by_rows)

    return linear_systems.conjugate_gradients(times, b, x0, max(atol, rtol * np.sqrt(np.sum(b * b))), maxiter)


def by_stabilised_gradients(
    data: Any,
    indices: Any,
    indptr: Any,
    b: Any,
    x0: Any,
    by_rows: Any,
    rtol: Any,
    atol: Any,
    maxiter: Any,
    restart: Any,
) -> Any:
    """Van der Vorst 1992."""
    x = np.copy(x0)
    r = np.asarray(b - product(data, indices, indptr, x, by_rows))
    limit = max(atol, rtol * np.sqrt(np.sum(b * b)))
    shadow, p, v = np.copy(r), np.zeros(len(b), b.dtype), np.zeros(len(b), b.dtype)
    before, alpha, omega = 1.0, 1.0, 1.0
    for count in range(maxiter + 1):
        if np.sqrt(np.sum(r * r)) <= limit:
            return x
        rho = np.sum(shadow * r)
        if rho == 0.0:
            raise RuntimeError("bicgstab broke down: pass another x0")
        factor = (rho / before) * (alpha / omega) if count > 0 else 0.0
        p[:] = r + factor * (p - omega * v)
        v = product(data, indices, indptr, p, by_rows)
        alpha = rho / np.sum(shadow * v)
        s = np.asarray(r - alpha * v)
        t = product(data, indices, indptr, s, by_rows)
        length = np.sum(t * t)
        omega = np.sum(t * s) / length if length > 0.0 else 0.0
        x += alpha * p + omega * s
        r[:] = s - omega * t
        before = rho
    raise RuntimeError("bicgstab did not converge: pass a larger maxiter")


def by_minimal_residuals(
    data: Any,
    indices: Any,
    indptr: Any,
    b: Any,
    x0: Any,
    by_rows: Any,
    rtol: Any,
    atol: Any,
    maxiter: Any,
    restart: Any,
) -> Any:
    def times(x: Any) -> Any:
        return product(data, indices, indptr, x, by_rows)

    return linear_systems.minimal_residuals(times, b, x0, max(atol, rtol * np.sqrt(np.sum(b * b))), maxiter, restart)


# The equations of derivatives are solved to a relative tolerance of 1e-10 or better, for every tolerance of the
# solution.


def of_elements(data: Any, indices: Any, indptr: Any, by_rows: Any, rows: Any, columns: Any) -> Any:
    """The adjoints of the elements: minus the product of the adjoint of the right-hand side and the solution."""
    bar = np.zeros(len(data), data.dtype)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if by_rows:
                bar[k] = -rows[i] * columns[indices[k]]
            else:
                bar[k] = -rows[indices[k]] * columns[i]
    return bar


def with_rules(method: Any) -> Any:
    """Declare the derivatives of a method that finds x with A x = b: each runs the method once more."""

    def adjoint(
        data: Any,
        indices: Any,
        indptr: Any,
        b: Any,
        x0: Any,
        by_rows: Any,
        rtol: Any,
        atol: Any,
        maxiter: Any,
        restart: Any,
        out: Any,
        out_bar: Any,
    ) -> Any:
        zeros = np.zeros(len(b), b.dtype)
        b_bar = found(data, indices, indptr, out_bar, zeros, not by_rows, min(rtol, 1e-10), 0.0, 10 * maxiter, restart)
        data_bar = of_elements(data, indices, indptr, by_rows, b_bar, out)
        return data_bar, None, None, b_bar, None, None, None, None, None, None

    def tangent(
        data: Any,
        indices: Any,
        indptr: Any,
        b: Any,
        x0: Any,
        by_rows: Any,
        rtol: Any,
        atol: Any,
        maxiter: Any,
        restart: Any,
        out: Any,
        data_dot: Any,
        indices_dot: Any,
        indptr_dot: Any,
        b_dot: Any,
        x0_dot: Any,
        by_rows_dot: Any,
        rtol_dot: Any,
        atol_dot: Any,
        maxiter_dot: Any,
        restart_dot: Any,
    ) -> Any:
        zeros = np.zeros(len(b), b.dtype)
        r_dot = np.asarray(b_dot - product(data_dot, indices, indptr, out, by_rows))
        return found(data, indices, indptr, r_dot, zeros, by_rows, min(rtol, 1e-10), 0.0, 10 * maxiter, restart)

    found = Ruled(method, adjoint, tangent)
    return found


conjugate_gradients = with_rules(by_conjugate_gradients)
stabilised_gradients = with_rules(by_stabilised_gradients)
minimal_residuals = with_rules(by_minimal_residuals)


def preconditioned(
    method: Any, A: Any, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any, M: Any, callback: Any, size: Any
) -> Any:
    """The solution x = x0 + M y, with A M y = b - A x0: the residual is that of x, and x does not depend on M."""
    if not isinstance(M, Sparse):
        unsupported("`M` other than a sparse array")
    a, b, x0, steps = start(A, b, x0, maxiter, callback, 10)
    by = compressed(M)
    agree(by.shape[0], a.shape[1], "matrix and preconditioner have different shapes")
    r = np.asarray(b - a @ x0)
    length = np.sqrt(np.sum(r * r))
    part = min(1.0, np.sqrt(np.sum(b * b)) / length) if length > 0.0 else 1.0
    whole = a @ by
    y = method(
        np.asarray(floats(whole.data)),
        *(whole.indices, whole.indptr, r, np.zeros(len(b)), isinstance(whole, Csr), rtol * part, atol, steps, size),
    )
    return x0 + by @ y


def start(A: Any, b: Any, x0: Any, maxiter: Any, callback: Any, per_row: Any) -> Any:
    """The matrix, the right-hand side, the start, and the maximum number of iterations."""
    if callback is not None:
        unsupported("`callback`")
    matrix = compressed(A)
    b = np.copy(floats(b))
    if b.ndim != 1:
        unsupported("a right-hand side other than a vector")
    if np.iscomplexobj(matrix.data) or np.iscomplexobj(b):
        unsupported("a sparse system of complex equations")
    agree(matrix.shape[0], matrix.shape[1], "matrix must be square")
    agree(matrix.shape[0], len(b), "the matrix and the right-hand side do not fit together")
    first = np.zeros(len(b)) if x0 is None else np.copy(floats(x0))
    agree(len(first), len(b), "the start and the right-hand side do not fit together")
    return matrix, b, first, per_row * len(b) if maxiter is None else maxiter


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    if M is not None:  # with a preconditioner, the matrix is not symmetric any more
        return preconditioned(stabilised_gradients, A, b, x0, rtol, atol, maxiter, M, callback, 1), 0
    a, b, x0, steps = start(A, b, x0, maxiter, callback, 10)
    by_rows = isinstance(a, Csr)
    return conjugate_gradients(np.asarray(floats(a.data)), a.indices, a.indptr, b, x0, by_rows, rtol, atol, steps, 1), 0


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    if M is not None:
        return preconditioned(stabilised_gradients, A, b, x0, rtol, atol, maxiter, M, callback, 1), 0
    a, b, x0, steps = start(A, b, x0, maxiter, callback, 10)
    by_rows = isinstance(a, Csr)
    return stabilised_gradients(
        np.asarray(floats(a.data)), a.indices, a.indptr, b, x0, by_rows, rtol, atol, steps, 1
    ), 0


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    restart: Any = None,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
) -> Any:
    size = 20 if restart is None else restart
    if M is not None:
        return preconditioned(minimal_residuals, A, b, x0, rtol, atol, maxiter, M, callback, size), 0
    a, b, x0, steps = start(A, b, x0, maxiter, callback, 10)
    by_rows = isinstance(a, Csr)
    return minimal_residuals(
        np.asarray(floats(a.data)), a.indices, a.indptr, b, x0, by_rows, rtol, atol, steps, size
    ), 0


FUNCTIONS: dict[str, Any] = {
    function.__name__: function for function in (spsolve, splu, factorized, spsolve_triangular, cg, bicgstab, gmres)
}
"""By the name in `scipy.sparse.linalg`."""
