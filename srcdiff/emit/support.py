"""Support functions that generated code calls. They are plain Python, and Numba compiles them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads


def copied(array: Any, buffer: Any) -> Any:
    """A copy of the array. It is stored in the buffer if the buffer has the same shape."""
    copy = buffer if buffer.shape == array.shape else np.empty(array.shape, buffer.dtype)
    np.copyto(copy, array)
    return copy


def fitting(buffer: Any, shape: Any) -> Any:
    """The buffer if it has the shape, otherwise a new array."""
    return buffer if buffer.shape == shape else np.empty(shape, buffer.dtype)


def as_long(buffer: Any, shape: Any) -> Any:
    """The buffer if it has the shape, or is longer along its first axis. Otherwise a new array."""
    return buffer if buffer.shape[0] >= shape[0] and buffer.shape[1:] == shape[1:] else np.empty(shape, buffer.dtype)


def thread_blocks(count: Any, work: Any, private: Any) -> Any:
    """The number of blocks: fewer for less `work`, and for more `private` numbers in each block."""
    return max(1, min(get_num_threads(), count, work // (262144 + 4 * private)))


def atomic_add(array: Any, index: Any, value: Any) -> None:
    """Add to an element. Compiled code does it atomically."""
    array[index] += value


def iterations_of(block: Any, blocks: Any, count: Any) -> Any:
    """The first iteration of a block, and the end of its range."""
    return max(block * count // blocks, 0), (block + 1) * count // blocks


def grown(array: Any, position: Any) -> Any:
    """The array if it has an element at the position, otherwise one of twice the length with the same contents."""
    if position < array.shape[0]:
        return array
    larger = np.empty(2 * array.shape[0] + 8, array.dtype)
    for k in range(array.shape[0]):
        larger[k] = array[k]
    return larger


def more_rows(array: Any, position: Any) -> Any:
    """The array if it has a row at the position, otherwise one with twice as many rows and the same contents."""
    if position < array.shape[0]:
        return array
    larger = np.empty((2 * array.shape[0] + 8, array.shape[1]), array.dtype)
    for k in range(array.shape[0]):
        for j in range(array.shape[1]):
            larger[k, j] = array[k, j]
    return larger


def more_planes(array: Any, position: Any) -> Any:
    """The array if it has a plane at the position, otherwise one with twice as many planes and the same contents."""
    if position < array.shape[0]:
        return array
    larger = np.empty((2 * array.shape[0] + 8, array.shape[1], array.shape[2]), array.dtype)
    for k in range(array.shape[0]):
        for j in range(array.shape[1]):
            for i in range(array.shape[2]):
                larger[k, j, i] = array[k, j, i]
    return larger


def more_parts(array: Any, position: Any) -> Any:
    """The array if its first axis has the position, otherwise an array of twice the length with the same contents."""
    if position < array.shape[0]:
        return array
    width = 1
    for length in array.shape[1:]:
        width *= length
    larger = np.empty((2 * array.shape[0] + 8, width), array.dtype)
    rows = array.reshape((array.shape[0], width))
    for k in range(array.shape[0]):
        for j in range(width):
            larger[k, j] = rows[k, j]
    return larger.reshape((larger.shape[0], *array.shape[1:]))


def wider_rows(array: Any, position: Any) -> Any:
    """The array if its rows have an element at the position, otherwise one with longer rows and the same contents."""
    if position < array.shape[1]:
        return array
    larger = np.empty((array.shape[0], max(2 * array.shape[1], position + 1)), array.dtype)
    for k in range(array.shape[0]):
        for j in range(array.shape[1]):
            larger[k, j] = array[k, j]
    return larger


def real_eig(a: Any) -> Any:
    """The eigenvalues and eigenvectors of a matrix, if all of them are real."""
    values, vectors = np.linalg.eig(a)  # complex since NumPy 2.5
    if np.any(values.imag):
        raise ValueError("eig() argument must not cause a domain change.")
    return values.real.copy(), vectors.real.copy()


def real_roots(p: Any) -> Any:
    """The roots of a polynomial, if all of them are real."""
    roots = np.roots(p)
    if np.iscomplexobj(roots):
        raise ValueError("eigvals() argument must not cause a domain change.")
    return roots


def solve_lower(a: Any, b: Any) -> Any:
    """The x with a @ x = b for a lower triangle a: forward substitution, by rows within blocks."""
    x = np.empty((b.shape[0], b.shape[1]), b.dtype)
    for first in range(0, b.shape[0], 32):
        last = min(first + 32, b.shape[0])
        known = a[first:last, :first] @ x[:first]
        for i in range(first, last):
            for j in range(b.shape[1]):
                x[i, j] = b[i, j] - known[i - first, j]
            for k in range(first, i):
                for j in range(b.shape[1]):
                    x[i, j] -= a[i, k] * x[k, j]
            for j in range(b.shape[1]):
                x[i, j] /= a[i, i]
    return x


def solve_lower_transposed(a: Any, b: Any) -> Any:
    """The x with a.T @ x = b for a lower triangle a: backward substitution, by blocks of rows."""
    x = np.empty((b.shape[0], b.shape[1]), b.dtype)
    for last in range(b.shape[0], 0, -32):
        first = max(last - 32, 0)
        rows = x[first:last]
        known = a[last:, first:last].T @ x[last:]
        for i in range(last - first):
            for j in range(b.shape[1]):
                rows[i, j] = b[first + i, j] - known[i, j]
        for k in range(last - first - 1, -1, -1):
            for j in range(b.shape[1]):
                rows[k, j] /= a[first + k, first + k]
            for i in range(k):
                factor = a[first + k, first + i]
                for j in range(b.shape[1]):
                    rows[i, j] -= factor * rows[k, j]
    return x


def solve_lower_transposed_upper(a: Any, b: Any) -> Any:
    """The x with a.T @ x = b for a lower triangle a and an upper triangle b; x is an upper triangle, too."""
    x = np.zeros((b.shape[0], b.shape[1]), b.dtype)
    for last in range(b.shape[0], 0, -32):
        first = max(last - 32, 0)
        known = a[last:, first:last].T @ x[last:, last:]
        for i in range(last - 1, first - 1, -1):
            row, right = x[i, i:], b[i, i:]
            for j in range(right.shape[0]):
                row[j] = right[j]
            tail, sums = x[i, last:], known[i - first]
            for j in range(sums.shape[0]):
                tail[j] -= sums[j]
            for k in range(i + 1, last):
                factor, lower = a[k, i], x[k, i:]
                for j in range(lower.shape[0]):
                    row[j] -= factor * lower[j]
            for j in range(row.shape[0]):
                row[j] /= a[i, i]
    return x


def lower_product(a: Any, b: Any) -> Any:
    """The lower triangle of a.T @ b for lower triangles a and b, by blocks of rows."""
    product = np.zeros((a.shape[0], a.shape[0]), b.dtype)
    for first in range(0, a.shape[0], 48):
        last = min(first + 48, a.shape[0])
        rows = a[first:, first:last].T @ b[first:, :last]
        for i in range(first, last):
            for j in range(i + 1):
                product[i, j] = rows[i - first, j]
    return product


def solve_lower_vector(a: Any, b: Any) -> Any:
    """The vector x with a @ x = b for a lower triangle a: forward substitution."""
    x = np.empty(b.shape[0], b.dtype)
    for i in range(b.shape[0]):
        total = b[i]
        for k in range(i):
            total -= a[i, k] * x[k]
        x[i] = total / a[i, i]
    return x


def solve_lower_transposed_vector(a: Any, b: Any) -> Any:
    """The vector x with a.T @ x = b for a lower triangle a: backward substitution."""
    x = np.empty(b.shape[0], b.dtype)
    for i in range(b.shape[0]):
        x[i] = b[i]
    for i in range(b.shape[0] - 1, -1, -1):
        x[i] /= a[i, i]
        for k in range(i):
            x[k] -= a[i, k] * x[i]
    return x


def lu_factors(a: Any) -> Any:
    """The factors L, below its diagonal of ones, and U of a matrix, and the row that each row is exchanged with."""
    n = min(a.shape[0], a.shape[1])
    factors, pivots = np.empty((n, n), a.dtype), np.empty(n, np.int64)
    for i in range(n):
        for j in range(n):
            factors[i, j] = a[i, j]
    for first in range(0, n, 32):
        last = min(first + 32, n)
        for k in range(first, last):
            best = k
            for i in range(k + 1, n):
                if abs(factors[i, k]) > abs(factors[best, k]):
                    best = i
            pivots[k] = best
            if best != k:
                for j in range(n):
                    kept = factors[k, j]
                    factors[k, j] = factors[best, j]
                    factors[best, j] = kept
            if factors[k, k] != 0.0:
                for i in range(k + 1, n):
                    factors[i, k] /= factors[k, k]
                    for j in range(k + 1, last):
                        factors[i, j] -= factors[i, k] * factors[k, j]
        for k in range(first, last):
            for i in range(k + 1, last):
                for j in range(last, n):
                    factors[i, j] -= factors[i, k] * factors[k, j]
        known = factors[last:, first:last] @ factors[first:last, last:]
        for i in range(last, n):
            for j in range(last, n):
                factors[i, j] -= known[i - last, j - last]
    return factors, pivots


def solve_lu(factors: Any, pivots: Any, b: Any, is_transposed: bool) -> Any:
    """The x with a @ x = b, or with a.T @ x = b, by the factors of a from `lu_factors`; b is a vector or a matrix."""
    n = pivots.shape[0]
    x = np.empty((n, b.size // max(n, 1)), factors.dtype)
    x[:] = np.ascontiguousarray(b).reshape(x.shape)
    if is_transposed:
        for i in range(n):
            for k in range(i):
                for j in range(x.shape[1]):
                    x[i, j] -= factors[k, i] * x[k, j]
            if factors[i, i] == 0.0:
                raise np.linalg.LinAlgError("Singular matrix")
            for j in range(x.shape[1]):
                x[i, j] /= factors[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                for j in range(x.shape[1]):
                    x[i, j] -= factors[k, i] * x[k, j]
    for step in range(n):
        k = n - 1 - step if is_transposed else step
        for j in range(x.shape[1]):
            kept = x[k, j]
            x[k, j] = x[pivots[k], j]
            x[pivots[k], j] = kept
    if not is_transposed:
        for i in range(n):
            for k in range(i):
                for j in range(x.shape[1]):
                    x[i, j] -= factors[i, k] * x[k, j]
        for i in range(n - 1, -1, -1):
            if factors[i, i] == 0.0:
                raise np.linalg.LinAlgError("Singular matrix")
            for k in range(i + 1, n):
                for j in range(x.shape[1]):
                    x[i, j] -= factors[i, k] * x[k, j]
            for j in range(x.shape[1]):
                x[i, j] /= factors[i, i]
    return x.reshape(b.shape)
