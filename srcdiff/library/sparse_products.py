"""Loops over the elements of sparse arrays: products, sums, and changes of format."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import agree


def fits(columns: Any, x: Any) -> None:
    agree(columns, x.shape[0], "matmul: dimension mismatch")


def times_dense(data: Any, indices: Any, indptr: Any, shape: Any, x: Any, by_rows: Any) -> Any:
    """The product with a vector or a matrix, for elements by rows or by columns."""
    fits(shape[1], x)
    dtype = np.result_type(data, x)
    if x.ndim == 1:
        result = np.zeros(shape[0], dtype)
        for i in range(len(indptr) - 1):
            for k in range(indptr[i], indptr[i + 1]):
                if by_rows:
                    result[i] += data[k] * x[indices[k]]
                else:
                    result[indices[k]] += data[k] * x[i]
        return result
    wide = np.zeros((shape[0], x.shape[1]), dtype)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(x.shape[1]):
                if by_rows:
                    wide[i, j] += data[k] * x[indices[k], j]
                else:
                    wide[indices[k], j] += data[k] * x[i, j]
    return wide


def by_coordinates(data: Any, row: Any, col: Any, shape: Any, x: Any) -> Any:
    """The product of an array in coordinate form with a vector or a matrix."""
    fits(shape[1], x)
    dtype = np.result_type(data, x)
    if x.ndim == 1:
        result = np.zeros(shape[0], dtype)
        for k in range(len(data)):
            result[row[k]] += data[k] * x[col[k]]
        return result
    wide = np.zeros((shape[0], x.shape[1]), dtype)
    for k in range(len(data)):
        for j in range(x.shape[1]):
            wide[row[k], j] += data[k] * x[col[k], j]
    return wide


def sparse_product(
    data: Any, indices: Any, indptr: Any, other: Any, other_indices: Any, other_indptr: Any, columns: Any
) -> Any:
    """The product of two arrays by rows, by rows. The elements are in the order that SciPy gives them."""
    rows = len(indptr) - 1
    ends, count = np.zeros(rows + 1, np.int64), 0
    row_of = np.full(columns, -1)  # the last row that has an element in a column
    for i in range(rows):
        ends[i + 1] = ends[i]
        for k in range(indptr[i], indptr[i + 1]):
            for m in range(other_indptr[indices[k]], other_indptr[indices[k] + 1]):
                count += 1
                if row_of[other_indices[m]] != i:
                    row_of[other_indices[m]] = i
                    ends[i + 1] += 1
    places, targets = np.empty(columns, np.int64), np.empty(count, np.int64)
    found = np.empty(ends[rows], np.int64)
    for j in range(columns):
        row_of[j] = -1
    count = 0
    for i in range(rows):
        last = ends[i + 1]
        for k in range(indptr[i], indptr[i + 1]):
            for m in range(other_indptr[indices[k]], other_indptr[indices[k] + 1]):
                j = other_indices[m]
                if row_of[j] != i:
                    last -= 1
                    row_of[j], places[j], found[last] = i, last, j
                targets[count] = places[j]
                count += 1
    result = np.zeros(ends[rows], np.result_type(data, other))
    count = 0
    for i in range(rows):
        for k in range(indptr[i], indptr[i + 1]):
            for m in range(other_indptr[indices[k]], other_indptr[indices[k] + 1]):
                result[targets[count]] += data[k] * other[m]
                count += 1
    return result, found, ends


def expanded(data: Any, indices: Any, indptr: Any) -> Any:
    """The elements, the row number of each, and the indices."""
    count = indptr[-1]
    values = np.empty(count, data.dtype)
    outer, inner = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            values[k] = data[k]
            outer[k] = i
            inner[k] = indices[k]
    return values, outer, inner


def as_rows(data: Any, row: Any, col: Any, rows: Any, columns: Any) -> Any:
    """The elements by rows, sorted by columns. Duplicates are added."""
    places = np.empty(len(data), np.int64)
    for k in range(len(data)):
        places[k] = row[k] * columns + col[k]
    order = np.argsort(places, kind="stable")
    number = np.empty(len(data), np.int64)
    indptr = np.zeros(rows + 1, np.int64)
    count = 0
    for k in range(len(data)):
        if k == 0 or places[order[k]] != places[order[k - 1]]:
            count += 1
            indptr[row[order[k]] + 1] += 1
        number[k] = count - 1
    for i in range(rows):
        indptr[i + 1] += indptr[i]
    values, indices = np.zeros(count, data.dtype), np.empty(count, np.int64)
    for k in range(len(data)):
        values[number[k]] += data[order[k]]
        indices[number[k]] = col[order[k]]
    return values, indices, indptr


def same_places(indices: Any, indptr: Any, other: Any, other_indptr: Any) -> Any:
    """Whether two arrays have the same sparsity, sorted and without duplicates."""
    if len(indptr) != len(other_indptr):
        return False
    for i in range(len(indptr) - 1):
        if indptr[i + 1] != other_indptr[i + 1]:
            return False
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != other[k] or (k > indptr[i] and indices[k] <= indices[k - 1]):
                return False
    return True


def add_to_dense(data: Any, row: Any, col: Any, shape: Any) -> Any:
    result = np.zeros((shape[0], shape[1]), data.dtype)
    for k in range(len(data)):
        result[row[k], col[k]] += data[k]
    return result


def column_sums(data: Any, places: Any, count: Any) -> Any:
    result = np.zeros(count, data.dtype)
    for k in range(len(data)):
        result[places[k]] += data[k]
    return result


row_sums = column_sums


def diagonal_of(data: Any, row: Any, col: Any, shape: Any, offset: Any) -> Any:
    first, below = max(offset, 0), max(-offset, 0)
    result = np.zeros(max(min(shape[0] - below, shape[1] - first), 0), data.dtype)
    for k in range(len(data)):
        if col[k] - row[k] == offset:
            result[row[k] - below] += data[k]
    return result


def element_of(data: Any, row: Any, col: Any, shape: Any, i: Any, j: Any) -> Any:
    if not (-shape[0] <= i < shape[0] and -shape[1] <= j < shape[1]):
        raise IndexError("index out of bounds")
    wanted_row, wanted_col = i + shape[0] if i < 0 else i, j + shape[1] if j < 0 else j
    total = np.sum(np.zeros(1, data.dtype))
    for k in range(len(data)):
        if row[k] == wanted_row and col[k] == wanted_col:
            total += data[k]
    return total


def scattered_product(data: Any, row: Any, col: Any, other: Any, shape: Any) -> Any:
    """The elements times those of a dense array at the same positions, with broadcasting."""
    wide = np.broadcast_to(other, (shape[0], shape[1]))
    result = np.empty(len(data), np.result_type(data, other))
    for k in range(len(data)):
        result[k] = data[k] * wide[row[k], col[k]]
    return result
