"""`np.linalg`, on one matrix or on each matrix of a stack over the last two axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcdiff.library import blas_lapack
from srcdiff.library.language import (
    ComplexArray,
    array_like,
    as_tuple,
    axes_moved_last,
    axes_of,
    common_shape,
    each,
    first_of,
    float_type,
    is_array,
    is_complex_type,
    last_of,
    last_two_swapped,
    only,
    real_type,
    stretched,
    unsupported,
    without,
)
from srcdiff.library.products import matmul, of_one_type
from srcdiff.library.reductions import count, finished, root, squared_sizes, written

SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
EigResult: Any = type(np.linalg.eig(np.eye(1)))
EighResult: Any = type(np.linalg.eigh(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))

EIG_IS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"
"""Whether `eig` and `eigvals` return complex numbers for all real matrices (since NumPy 2.5)."""


def floats(a: Any) -> Any:
    """The computed array, as floats."""
    a = np.asarray(a)
    return a if a.dtype == float_type(a.dtype) else np.asarray(a.astype(float_type(a.dtype)))


def stacked(function: Any, a: Any) -> Any:
    """Apply a function from matrix to matrix to each matrix of a stack."""
    if a.ndim == 2:
        return function(a)
    result = np.empty(a.shape, a.dtype)
    for i in each(first_of(a.shape, -2)):
        result[i] = function(a[i])
    return result


def stacked_numbers(function: Any, a: Any) -> Any:
    """Apply a function from matrix to number to each matrix of a stack."""
    if a.ndim == 2:
        return function(a)
    result = np.empty(first_of(a.shape, -2), a.dtype)
    for i in each(first_of(a.shape, -2)):
        result[i] = function(a[i])
    return result


def transposed(a: Any) -> Any:
    return np.transpose(a, last_two_swapped(a.ndim))


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return transposed(a).conj()


# ------------------------------------------------------------------------------------------- equations and determinants


def solve(a: Any, b: Any) -> Any:
    a, b = of_one_type(floats(a), floats(b))
    if a.ndim == 2 and b.ndim <= 2:
        return blas_lapack.solve_vector(a, b) if b.ndim == 1 else blas_lapack.solve_matrix(a, b)
    a_shape = first_of(a.shape, -2)
    if b.ndim == 1:
        result = np.empty(first_of(a.shape, -1), a.dtype)
        for i in each(a_shape):
            result[i] = blas_lapack.solve_vector(a[i], b)
        return result
    b_shape = first_of(b.shape, -2)
    shape = common_shape(a_shape, b_shape)
    result = np.empty(shape + last_of(b.shape, 2), a.dtype)
    for i in each(shape):
        result[i] = blas_lapack.solve_matrix(a[stretched(i, shape, a_shape)], b[stretched(i, shape, b_shape)])
    return result


def inv(a: Any) -> Any:
    return stacked(blas_lapack.inverse, floats(a))


def det(a: Any) -> Any:
    return stacked_numbers(blas_lapack.determinant, floats(a))


def slogdet(a: Any) -> Any:
    a = floats(a)
    if a.ndim == 2:
        return SlogdetResult(*blas_lapack.log_determinant(a))
    shape = first_of(a.shape, -2)
    signs, logarithms = np.empty(shape, a.dtype), np.empty(shape, real_type(a.dtype))
    for i in each(shape):
        signs[i], logarithms[i] = blas_lapack.log_determinant(a[i])
    return SlogdetResult(signs, logarithms)


def matrix_power(a: Any, n: Any) -> Any:
    """By repeated squaring, along the binary digits of the exponent."""
    a = np.asarray(a)
    if n == 1:
        return a
    if n < 0:
        power, n = inv(a), -n
    else:
        power = np.copy(a)
    result = np.zeros(a.shape, a.dtype)
    for i in each(first_of(a.shape, -1)):
        result[i + last_of(i, 1)] = 1
    while n > 0:
        if n % 2 == 1:
            result = matmul(result, power)
        n //= 2
        if n > 0:
            power = matmul(power, power)
    return result


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    return written(product_of_all(arrays), out)


def product_of_all(arrays: Any) -> Any:
    """From the right if the last factor is a vector, else from the left. Three matrices use the cheaper order."""
    first, last = arrays[0], arrays[-1]
    if len(arrays) == 2:
        return matmul(first, last)
    if last.ndim == 1:
        return product_of_all([*arrays[:-2], matmul(arrays[-2], last)])
    if len(arrays) == 3 and first.ndim == 2:
        middle = arrays[1]
        rows, inner = first.shape
        outer, columns = last.shape
        if rows * outer * (inner + columns) > inner * columns * (outer + rows):
            return matmul(first, matmul(middle, last))
        return matmul(matmul(first, middle), last)
    return product_of_all([matmul(first, arrays[1]), *arrays[2:]])


# ------------------------------------------------------------------------------------------------------- decompositions


def cholesky(a: Any, upper: Any = False) -> Any:
    a = floats(a)
    if upper:
        return adjoint(stacked(blas_lapack.cholesky_factor, np.asarray(adjoint(a))))
    return stacked(blas_lapack.cholesky_factor, a)


def is_positive_definite(a: Any) -> Any:
    """Whether a matrix, given by its lower triangle, has a Cholesky factor."""
    n = len(a)
    factor = np.zeros((n, n), a.dtype)
    for j in range(n):
        size = float(a[j, j].real)
        for k in range(j):
            size -= abs(factor[j, k]) ** 2
        if not size > 0.0:
            return False
        size = math.sqrt(size)
        factor[j, j] = size
        for i in range(j + 1, n):
            rest = a[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k].conjugate()
            factor[i, j] = rest / size
    return True


def eig(a: Any) -> Any:
    """For real matrices with real eigenvalues, and for complex matrices. Other real matrices raise `ValueError`."""
    a = floats(a)
    if is_complex_type(a.dtype):
        return EigResult(*stacked_pair(blas_lapack.complex_eigenvectors, a, a.dtype))
    values, vectors = stacked_pair(blas_lapack.any_eigenvectors, a, a.dtype)
    if EIG_IS_COMPLEX:
        return EigResult(ComplexArray(values), ComplexArray(vectors))
    return EigResult(values, vectors)


def eigvals(a: Any) -> Any:
    values, _ = eig(a)
    return values


def eigh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    if UPLO != "L" and UPLO != "l" and is_complex_type(np.asarray(a).dtype):
        unsupported("`eigh` of the upper triangle of complex matrices, whose vectors have other phases,")
    return EighResult(*of_hermitian(a, UPLO))


def of_hermitian(a: Any, triangle: Any) -> Any:
    a = floats(a)
    if triangle != "L" and triangle != "l":
        a = np.asarray(adjoint(a))
    return stacked_pair(blas_lapack.eigenvectors, a, real_type(a.dtype))


def stacked_pair(function: Any, a: Any, dtype: Any) -> Any:
    """A vector of this type and a matrix, for each matrix of a stack."""
    if a.ndim == 2:
        return function(a)
    values, vectors = np.empty(first_of(a.shape, -1), dtype), np.empty(a.shape, a.dtype)
    for i in each(first_of(a.shape, -2)):
        values[i], vectors[i] = function(a[i])
    return values, vectors


def eigvalsh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    values, _ = of_hermitian(a, UPLO)
    return values


def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """For a matrix that is not square, the vectors beyond the singular values are any orthonormal completion."""
    if hermitian:
        unsupported("`svd` with `hermitian`, which is `np.linalg.eigh`,")
    a = floats(a)
    if a.ndim == 2:
        if compute_uv and full_matrices:
            return SVDResult(*blas_lapack.all_singular_vectors(a))
        u, s, vt = blas_lapack.singular_values(a)
        return SVDResult(u, s, vt) if compute_uv else s
    shape, rows, columns = first_of(a.shape, -2), a.shape[a.ndim - 2], a.shape[a.ndim - 1]
    k = min(rows, columns)
    values = np.empty((*shape, k), real_type(a.dtype))
    if compute_uv and full_matrices:
        left, right = np.empty((*shape, rows, rows), a.dtype), np.empty((*shape, columns, columns), a.dtype)
        for i in each(shape):
            left[i], values[i], right[i] = blas_lapack.all_singular_vectors(a[i])
        return SVDResult(left, values, right)
    left, right = np.empty((*shape, rows, k), a.dtype), np.empty((*shape, k, columns), a.dtype)
    for i in each(shape):
        left[i], values[i], right[i] = blas_lapack.singular_values(a[i])
    return SVDResult(left, values, right) if compute_uv else values


def svdvals(x: Any) -> Any:
    return svd(x, False, False)


def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode != "reduced" and mode != "r":
        unsupported("`qr` in another mode than 'reduced' and 'r'")
    a = floats(a)
    if a.ndim == 2:
        q, r = blas_lapack.orthogonal_triangular(a)
        return r if mode == "r" else QRResult(q, r)
    shape, rows, columns = first_of(a.shape, -2), a.shape[a.ndim - 2], a.shape[a.ndim - 1]
    k = min(rows, columns)
    q, r = np.empty((*shape, rows, k), a.dtype), np.empty((*shape, k, columns), a.dtype)
    for i in each(shape):
        q[i], r[i] = blas_lapack.orthogonal_triangular(a[i])
    return r if mode == "r" else QRResult(q, r)


# -------------------------------------------------------------------------------------------------------- least squares


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    if rcond is not None:
        unsupported("`lstsq` with `rcond`")
    a, b = of_one_type(floats(a), floats(b))
    columns = b[:, None] if b.ndim == 1 else b
    solution = blas_lapack.least_squares(a, columns)
    if b.ndim == 1:
        solution = solution[:, 0]
    return solution, blas_lapack.residuals(a, columns), blas_lapack.rank(a), svd(a, False, False)


def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Any:
    """The rank is assumed to be constant."""
    if rcond is not None or rtol is not None or hermitian:
        unsupported("`pinv` with `rcond`, `rtol` or `hermitian`")
    a = floats(a)
    if a.ndim == 2:
        return blas_lapack.pseudo_inverse(a)
    result = np.empty(transposed(a).shape, a.dtype)
    for i in each(first_of(a.shape, -2)):
        result[i] = blas_lapack.pseudo_inverse(a[i])
    return result


def matrix_rank(A: Any) -> Any:  # noqa: N803
    return blas_lapack.rank(floats(A))


def tensorinv(a: Any, ind: Any = 2) -> Any:
    a = np.asarray(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    rows, columns = first_of(a.shape, ind), last_of(a.shape, a.ndim - ind)
    return np.reshape(inv(np.reshape(a, (count(rows), count(columns)))), columns + rows)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if axes is not None:
        a = np.transpose(a, axes_moved_last(a.ndim, as_tuple(axes)))
    shape = last_of(a.shape, a.ndim - b.ndim)
    return np.reshape(solve(np.reshape(a, (count(b.shape), count(shape))), np.ravel(b)), shape)


# ---------------------------------------------------------------------------------------------------------------- norms


def cond(x: Any, p: Any = None) -> Any:
    """The condition number: the norm of the matrix times that of its inverse, or the ratio of singular values."""
    x = floats(x)
    if x.size == 0:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p is None or p == 2 or p == -2:
        values = svd(x, False, False)
        first, last = values[..., 0], values[..., -1]
        return last / first if p == -2 else first / last
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


def norm_of_vectors(x: Any, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:  # noqa: A002
    """`np.linalg.vector_norm`: of all elements, or along axes."""
    x = np.asarray(x)
    axes = axes_of(axis, x.ndim)
    if ord == 2:
        return length(x, axes, keepdims)
    if len(axes) == 1:
        return vector_norm(x, ord, axes, keepdims)
    last = np.transpose(x, axes_moved_last(x.ndim, axes))
    lines = np.reshape(last, (*without(x.shape, axes), count(only(x.shape, axes))))
    return finished(vector_norm(lines, ord, -1, False), axes, None, keepdims)


def norm_of_matrices(x: Any, *, keepdims: Any = False, ord: Any = "fro") -> Any:  # noqa: A002
    """`np.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002
    """At zero, the derivative of a norm is zero."""
    x = array_like(x) if is_array(x) else np.expand_dims(x, 0)
    axes = axes_of(axis, x.ndim)
    if ord is None or ord == "fro" or (len(axes) == 1 and ord == 2):
        return length(x, axis, keepdims)
    if len(axes) == 1:
        return vector_norm(x, ord, axis, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return matrix_norm(x, ord, axes, keepdims)


def length(x: Any, axis: Any, keepdims: Any) -> Any:
    """The square root of the sum of squares, with a derivative of zero at zero."""
    if is_complex_type(x.dtype):
        return root(np.sum(squared_sizes(x), axis=axis, keepdims=keepdims))
    return root(np.sum(x * x, axis=axis, keepdims=keepdims))


def vector_norm(x: Any, ord: Any, axis: Any, keepdims: Any) -> Any:  # noqa: A002
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(real_type(float_type(x.dtype))), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm(x: Any, ord: Any, axes: Any, keepdims: Any) -> Any:  # noqa: A002
    x = np.asarray(x)
    if x.ndim > 2:
        x = np.transpose(x, axes_moved_last(x.ndim, axes))
    if ord == 1:
        result = np.max(np.sum(np.abs(x), axis=-2), axis=-1, initial=0)
    elif ord == -1:
        result = np.min(np.sum(np.abs(x), axis=-2), axis=-1)
    elif ord == np.inf:
        result = np.max(np.sum(np.abs(x), axis=-1), axis=-1, initial=0)
    elif ord == -np.inf:
        result = np.min(np.sum(np.abs(x), axis=-1), axis=-1)
    elif ord == 2:
        result = np.max(svd(x, False, False), axis=-1, initial=0)
    elif ord == -2:
        result = np.min(svd(x, False, False), axis=-1)
    elif ord == "nuc":
        result = np.sum(svd(x, False, False), axis=-1)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return finished(result, axes, None, keepdims)


FUNCTIONS: dict[Any, Any] = {
    np.linalg.solve: solve,
    np.linalg.inv: inv,
    np.linalg.det: det,
    np.linalg.slogdet: slogdet,
    np.linalg.matrix_power: matrix_power,
    np.linalg.multi_dot: multi_dot,
    np.linalg.cholesky: cholesky,
    np.linalg.eigh: eigh,
    np.linalg.eig: eig,
    np.linalg.eigvals: eigvals,
    np.linalg.eigvalsh: eigvalsh,
    np.linalg.svd: svd,
    np.linalg.svdvals: svdvals,
    np.linalg.qr: qr,
    np.linalg.lstsq: lstsq,
    np.linalg.pinv: pinv,
    np.linalg.matrix_rank: matrix_rank,
    np.linalg.tensorinv: tensorinv,
    np.linalg.tensorsolve: tensorsolve,
    np.linalg.norm: norm,
    np.linalg.vector_norm: norm_of_vectors,
    np.linalg.matrix_norm: norm_of_matrices,
    np.linalg.cond: cond,
}
