"""Products of vectors, of matrices and of arrays of any rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import matrix_matrix, matrix_vector, vector_matrix, vector_vector
from srcdiff.library.language import (
    agree,
    at_axis,
    axes_moved_last,
    axes_of,
    axis_moved_back,
    axis_of,
    common_shape,
    common_type,
    each,
    every_second,
    first_of,
    inserted,
    is_array,
    is_float_type,
    known,
    last_of,
    last_two_swapped,
    only,
    stretched,
    unsupported,
    view_from_places,
    without,
    zero,
)
from srcdiff.library.reductions import numbers, written
from srcdiff.library.subscripts import (
    axes_not_in,
    groups,
    kept_letters,
    letters_in,
    letters_of,
    next_pair,
    operands_beside,
    order_of,
    place_of,
    subscripts,
    tensordot_letters,
    unique,
)

# ------------------------------------------------------------------------------------------------------ matrix products


def matmul(a: Any, b: Any) -> Any:
    a, b = of_one_type(a, b)
    if a.ndim == 1 and b.ndim == 1:
        return vector_times_vector(a, b)
    if b.ndim == 1:
        return matrices_times_vector(a, b)
    if a.ndim == 1 and b.ndim == 2 and is_float_type(a.dtype):
        return vector_matrix(b, a)
    if a.ndim == 1:
        return matrices_times_vector(np.transpose(b, last_two_swapped(b.ndim)), a)
    if a.ndim == 2 and b.ndim == 2:
        return matrix_times_matrix(a, b)
    if b.ndim == 2:
        rows = matrix_times_matrix(as_rows(a), b)
        return np.reshape(rows, first_of(a.shape, -1) + last_of(b.shape, 1))
    return matrices_times_matrices(a, b)


def matmul_into(a: Any, b: Any, out: Any = None) -> Any:
    return written(matmul(a, b), out)


def matvec(x1: Any, x2: Any) -> Any:
    """The products of matrices with vectors, with broadcasting over the other axes."""
    x1, x2 = np.asarray(x1), np.asarray(x2)
    return matmul(x1, x2) if x2.ndim == 1 else matmul(x1, np.expand_dims(x2, -1))[..., 0]


def vecmat(x1: Any, x2: Any) -> Any:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    return matvec(np.transpose(x2, last_two_swapped(x2.ndim)), x1.conj())


def of_one_type(a: Any, b: Any) -> Any:
    """The computed arrays, in the type of their product."""
    a, b = np.asarray(a), np.asarray(b)
    dtype = common_type(a.dtype, b.dtype)
    if a.dtype != dtype:
        a = np.asarray(a.astype(dtype))
    if b.dtype != dtype:
        b = np.asarray(b.astype(dtype))
    return a, b


def as_rows(a: Any) -> Any:
    """The array as a matrix with the same first axis."""
    if a.ndim == 2:
        return a
    count = 1
    for size in first_of(a.shape, -1):
        count *= size
    return np.reshape(a, (count, a.shape[a.ndim - 1]))


def vector_times_vector(a: Any, b: Any) -> Any:
    if is_float_type(a.dtype):
        return vector_vector(a, b)
    return np.sum(a * b, dtype=a.dtype)


def matrices_times_vector(a: Any, b: Any) -> Any:
    """The product over the last axis of one or more matrices with a vector."""
    if not is_float_type(a.dtype):
        return np.sum(a * b, axis=-1, dtype=a.dtype)
    if a.ndim == 2:
        return matrix_vector(a, b)
    return np.reshape(matrix_vector(as_rows(a), b), first_of(a.shape, -1))


def matrix_times_matrix(a: Any, b: Any) -> Any:
    if is_float_type(a.dtype):
        return matrix_matrix(a, b)
    return np.sum(a[:, :, None] * b[None, :, :], axis=1, dtype=a.dtype)


def matrices_times_matrices(a: Any, b: Any) -> Any:
    """Matrix products over the last two axes, with broadcasting over the others."""
    a_shape, b_shape = first_of(a.shape, -2), first_of(b.shape, -2)
    shape = common_shape(a_shape, b_shape)
    agree(a.shape[a.ndim - 1], b.shape[b.ndim - 2], "matmul: the shapes of the matrices do not match")
    result = np.empty((*shape, a.shape[a.ndim - 2], b.shape[b.ndim - 1]), a.dtype)
    for i in each(shape):
        result[i] = matrix_times_matrix(a[stretched(i, shape, a_shape)], b[stretched(i, shape, b_shape)])
    return result


def dot(a: Any, b: Any, out: Any = None) -> Any:
    return written(dot_product(a, b), out)


def dot_product(a: Any, b: Any) -> Any:
    if not is_array(a) or not is_array(b):
        return a * b
    a, b = np.asarray(a), np.asarray(b)
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim == 2):
        return matmul(a, b)
    return tensordot(a, b, (a.ndim - 1, b.ndim - 2))


def vdot(a: Any, b: Any) -> Any:
    if not is_array(a) or not is_array(b):
        return np.conj(a) * b
    a, b = of_one_type(a, b)
    return vector_times_vector(flat(a.conj()), flat(b))


def flat(a: Any) -> Any:
    """The computed elements as a vector."""
    if not is_array(a):
        return np.expand_dims(a, 0)
    a = np.asarray(a)
    return a if a.ndim == 1 else np.reshape(a, -1)


def vecdot(x1: Any, x2: Any, axis: Any = -1) -> Any:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    x1 = np.transpose(x1, axes_moved_last(x1.ndim, (axis,)))
    x2 = np.transpose(x2, axes_moved_last(x2.ndim, (axis,)))
    return np.sum(x1.conj() * x2, axis=-1, dtype=common_type(x1.dtype, x2.dtype))


def inner(a: Any, b: Any) -> Any:
    if not is_array(a) or not is_array(b):
        return a * b
    a, b = np.asarray(a), np.asarray(b)
    if b.ndim == 1:
        return matmul(a, b)
    return tensordot(a, b, (a.ndim - 1, b.ndim - 1))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = flat(a), flat(b)
    return written(a[:, None] * b[None, :], out)


# --------------------------------------------------------------------------------------------------------- contractions


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    a_letters, b_letters, result = tensordot_letters(axes, a.ndim, b.ndim)
    return product_of_two(a, a_letters, b, b_letters, result)


def einsum(text: Any, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    """The subscripts are text, or a list of numbers behind each operand, and optionally one for the result."""
    if is_array(text):
        return written(einsum(letters_of(operands), text, *operands_beside(operands)), out)
    arrays = tuple([np.asarray(x) if is_array(x) else x for x in operands])
    letters, result = subscripts(text, tuple([x.ndim if is_array(x) else 0 for x in arrays]))
    if len(arrays) == 1:
        return written(rearranged(arrays[0], letters[0], result), out)
    return written(product_of_several(arrays, letters, result), out)


def product_of_several(arrays: Any, letters: Any, result: Any) -> Any:
    """The sum of products, computed for two operands at a time."""
    if len(arrays) == 2:
        return product_of_two(arrays[0], letters[0], arrays[1], letters[1], result)
    i, j = next_pair(letters, result)
    kept = kept_letters(letters, (i, j), result)
    product = product_of_two(arrays[i], letters[i], arrays[j], letters[j], kept)
    return product_of_several((*without(arrays, (i, j)), product), (*without(letters, (i, j)), kept), result)


def rearranged(a: Any, letters: Any, result: Any) -> Any:
    """The operand with its axes in another order. Letters that are missing in the result are summed."""
    if not is_array(a):
        return a
    if unique(letters) != letters and len(unique(letters)) == len(result):
        return diagonal_view(a, letters, result)
    a = diagonals(a, letters)
    letters = unique(letters)
    if len(letters) > len(result):
        a = np.sum(a, axis=axes_not_in(letters, result), dtype=a.dtype)
        letters = letters_in(letters, result)
    return in_order(a, letters, result)


def in_order(a: Any, letters: Any, wanted: Any) -> Any:
    return a if letters == wanted else np.transpose(a, order_of(letters, wanted))


def diagonals(a: Any, letters: Any) -> Any:
    """The elements with equal indices along axes of the same letter."""
    return a if unique(letters) == letters else np.copy(diagonal_view(a, letters, unique(letters)))


def diagonal_view(a: Any, letters: Any, result: Any) -> Any:
    if a.shape != only(a.shape, order_of(letters, letters)):
        raise ValueError("axes with the same letter have different lengths")

    def element(*i: Any) -> Any:
        return a[place_of(letters, result, i)]

    return view_from_places(a, only(a.shape, order_of(letters, result)), element)


def product_of_two(a: Any, a_letters: Any, b: Any, b_letters: Any, result: Any) -> Any:
    """The sum of products of two operands: a matrix product if it is one, or else loops."""
    a = rearranged(a, a_letters, letters_in(unique(a_letters), b_letters + result))
    a_letters = letters_in(unique(a_letters), b_letters + result)
    b = rearranged(b, b_letters, letters_in(unique(b_letters), a_letters + result))
    b_letters = letters_in(unique(b_letters), a_letters + result)
    together, left, right, summed = groups(a_letters, b_letters, result)
    if not summed:
        return along(a, a_letters, result) * along(b, b_letters, result)
    if together and not (left and right):
        return sum_of_products(a, a_letters, b, b_letters, result)
    a, b = of_one_type(a, b)
    left_sizes = sizes_of(a, a_letters, left)
    right_sizes = sizes_of(b, b_letters, right)
    sizes = sizes_of(a, a_letters, together) + left_sizes + right_sizes
    a = grouped(a, a_letters, together, left, summed)
    b = grouped(b, b_letters, together, summed, right)
    product = matmul(a, b)
    if len(left) > 1 or len(right) > 1:
        product = np.reshape(product, sizes)
    return in_order(product, together + left + right, result) if is_array(product) else product


def sizes_of(a: Any, letters: Any, wanted: Any) -> Any:
    return only(a.shape, order_of(letters, wanted))


def grouped(a: Any, letters: Any, together: Any, rows: Any, columns: Any) -> Any:
    """The operand as matrices, with all row axes merged into one, and all column axes into one."""
    a = in_order(a, letters, together + rows + columns)
    if len(rows) <= 1 and len(columns) <= 1:
        return a
    sizes = a.shape
    shape = first_of(sizes, len(together))
    if rows:
        shape = (*shape, product_of(sizes[len(together) : len(together) + len(rows)]))
    if columns:
        shape = (*shape, product_of(sizes[len(together) + len(rows) :]))
    return np.reshape(a, shape)


def product_of(sizes: Any) -> Any:
    count = 1
    for size in sizes:
        count *= size
    return count


def along(a: Any, letters: Any, whole: Any) -> Any:
    """The operand with its axes in the order of all letters. A missing letter becomes an axis of length one."""
    if not is_array(a):
        return a
    a = in_order(a, letters, letters_in(whole, letters))
    if len(letters) == len(whole):
        return a
    return np.expand_dims(a, axes_not_in(whole, letters))


def sum_of_products(a: Any, a_letters: Any, b: Any, b_letters: Any, result: Any) -> Any:
    whole = unique(a_letters + b_letters)
    summed = axes_not_in(whole, result)
    products = along(a, a_letters, whole) * along(b, b_letters, whole)
    total = np.sum(products, axis=summed, dtype=products.dtype)
    return in_order(total, letters_in(whole, result), result) if result else total


# ------------------------------------------------------------------------------------------------------- other products


def kron(a: Any, b: Any) -> Any:
    if not is_array(a) or not is_array(b):
        return a * b
    a, b = np.asarray(a), np.asarray(b)
    rank = max(a.ndim, b.ndim)
    if a.ndim < rank:
        a = np.expand_dims(a, axes_of(None, rank - a.ndim))
    if b.ndim < rank:
        b = np.expand_dims(b, axes_of(None, rank - b.ndim))
    product = np.expand_dims(a, every_second(2 * rank, 1)) * np.expand_dims(b, every_second(2 * rank, 0))
    return np.reshape(product, tuple([a.shape[k] * b.shape[k] for k in range(rank)]))


CROSS_TAKES_THREE = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 5)
"""Whether `np.cross` takes only vectors with three components."""


def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """The cross product of vectors with three components. Before NumPy 2.5 also with two, if known at compile time."""
    if axis is not None:
        axisa, axisb, axisc = axis, axis, axis
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim > 1:
        a = np.transpose(a, axes_moved_last(a.ndim, (axisa,)))
    if b.ndim > 1:
        b = np.transpose(b, axes_moved_last(b.ndim, (axisb,)))
    m, n = a.shape[a.ndim - 1], b.shape[b.ndim - 1]
    if CROSS_TAKES_THREE and ((known(m) and m == 2) or (known(n) and n == 2)):
        unsupported(
            "`cross` of vectors with two components (which NumPy 2.5 rejects: write `x[0] * y[1] - x[1] * y[0]`)"
        )
    if CROSS_TAKES_THREE and (m != 3 or n != 3):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {m} and {n} dimensional instead."
        )
    if known(m) and known(n) and m == 2 and n == 2:
        first, second = at_axis(a, a.ndim - 1, 0), at_axis(a, a.ndim - 1, 1)
        return first * at_axis(b, b.ndim - 1, 1) - second * at_axis(b, b.ndim - 1, 0)
    if (known(m) and m == 2) or (known(n) and n == 2):
        unsupported("`cross` of vectors with two components and others")
    if m == 2 or n == 2:
        raise NotImplementedError("`cross` of vectors with two components: write x[0] * y[1] - x[1] * y[0]")
    if m != 3 or n != 3:
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    shape = common_shape(first_of(a.shape, -1), first_of(b.shape, -1))
    result = np.empty((*shape, 3), common_type(a.dtype, b.dtype))
    for i in each(shape):
        j, k = stretched(i, shape, first_of(a.shape, -1)), stretched(i, shape, first_of(b.shape, -1))
        x, y, z = a[inserted(j, -1, 0)], a[inserted(j, -1, 1)], a[inserted(j, -1, 2)]
        u, v, w = b[inserted(k, -1, 0)], b[inserted(k, -1, 1)], b[inserted(k, -1, 2)]
        result[inserted(i, -1, 0)] = y * w - z * v
        result[inserted(i, -1, 1)] = z * u - x * w
        result[inserted(i, -1, 2)] = x * v - y * u
    if result.ndim == 1:
        return result
    return np.transpose(result, axis_moved_back(result.ndim, axisc))


def cross_of_three(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """`np.linalg.cross`."""
    x1, x2 = np.asarray(x1), np.asarray(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    a = np.asarray(numbers(a, dtype))
    first, second = axis_of(axis1, a.ndim), axis_of(axis2, a.ndim)
    below, beside = max(-offset, 0), max(offset, 0)
    count = max(min(a.shape[first] - below, a.shape[second] - beside), 0)
    if a.ndim == 2:
        a = a if first < second else a.T
        total = zero(a.dtype)
        for k in range(count):
            total += a[below + k, beside + k]
        return written(total, out)
    a = np.transpose(a, axes_moved_last(a.ndim, (first, second)))
    result = np.zeros(first_of(a.shape, -2), a.dtype)
    for i in each(result.shape):
        for k in range(count):
            result[i] += a[inserted(inserted(i, -1, below + k), -1, beside + k)]
    return written(result, out)


def matrix_trace(x: Any, *, offset: Any = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


def matrix_diagonal(x: Any, *, offset: Any = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


FUNCTIONS: dict[Any, Any] = {
    np.matmul: matmul_into,
    np.matvec: matvec,
    np.vecmat: vecmat,
    np.dot: dot,
    np.vdot: vdot,
    np.vecdot: vecdot,
    np.inner: inner,
    np.outer: outer,
    np.tensordot: tensordot,
    np.einsum: einsum,
    np.kron: kron,
    np.cross: cross,
    np.trace: trace,
    np.linalg.matmul: matmul,
    np.linalg.outer: outer,
    np.linalg.tensordot: tensordot,
    np.linalg.cross: cross_of_three,
    np.linalg.vecdot: vecdot,
    np.linalg.trace: matrix_trace,
    np.linalg.diagonal: matrix_diagonal,
}
