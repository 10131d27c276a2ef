"""`scipy.sparse`: functions and classes that create sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import agree, is_array, unsupported
from srcdiff.library.sparse_arrays import (
    CooArray,
    CooMatrix,
    CscArray,
    CscMatrix,
    CsrArray,
    CsrMatrix,
    DiaArray,
    DiaMatrix,
    Sparse,
)


def parts(arg1: Any, shape: Any, dtype: Any, by_rows: Any) -> Any:
    """The arrays of a compressed array: data, indices, indptr and shape."""
    if not isinstance(arg1, tuple) or len(arg1) != 3:
        unsupported("this way to make a sparse array", "use `(data, indices, indptr)` or `(data, (row, col))`")
    data, indices, indptr = arg1
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    data = data if dtype is None else data.astype(dtype)
    agree(len(data), len(indices), "indices and data should have the same size")
    if shape is None:
        widest = max(indices) + 1 if len(indices) > 0 else 0
        return data, indices, indptr, (len(indptr) - 1, widest) if by_rows else (widest, len(indptr) - 1)
    rows, columns = shape
    agree(len(indptr), (rows if by_rows else columns) + 1, "index pointer has the wrong size")
    for k in range(len(indices)):
        if not 0 <= indices[k] < (columns if by_rows else rows):
            raise ValueError("an index is outside of the shape")
    return data, indices, indptr, (rows, columns)


def coordinates(arg1: Any, shape: Any, dtype: Any) -> Any:
    if not isinstance(arg1, tuple) or len(arg1) != 2 or not isinstance(arg1[1], tuple):
        unsupported("this way to make a sparse array", "use `(data, (row, col))`")
    data, (row, col) = arg1
    data, row, col = np.asarray(data), np.asarray(row), np.asarray(col)
    data = data if dtype is None else data.astype(dtype)
    agree(len(data), len(row), "row, column and data should have the same size")
    agree(len(data), len(col), "row, column and data should have the same size")
    if shape is None:
        if len(data) == 0:
            raise ValueError("cannot infer dimensions from zero sized index arrays")
        return data, row, col, (max(row) + 1, max(col) + 1)
    rows, columns = shape
    for k in range(len(data)):
        if not (0 <= row[k] < rows and 0 <= col[k] < columns):
            raise ValueError("an index is outside of the shape")
    return data, row, col, (rows, columns)


def is_by_coordinates(arg1: Any) -> Any:
    return isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple)


def csr_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    if isinstance(arg1, Sparse):
        found = arg1.tocsr()
        return CsrArray(
            found.data if dtype is None else found.data.astype(dtype), found.indices, found.indptr, arg1.shape
        )
    if is_by_coordinates(arg1):
        return coo_array(arg1, shape, dtype).tocsr()
    data, indices, indptr, shape = parts(arg1, shape, dtype, True)
    return CsrArray(data, indices, indptr, shape)


def csr_matrix(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    found = csr_array(arg1, shape, dtype)
    return CsrMatrix(found.data, found.indices, found.indptr, found.shape)


def csc_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    if isinstance(arg1, Sparse):
        found = arg1.tocsc()
        return CscArray(
            found.data if dtype is None else found.data.astype(dtype), found.indices, found.indptr, arg1.shape
        )
    if is_by_coordinates(arg1):
        return coo_array(arg1, shape, dtype).tocsc()
    data, indices, indptr, shape = parts(arg1, shape, dtype, False)
    return CscArray(data, indices, indptr, shape)


def csc_matrix(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    found = csc_array(arg1, shape, dtype)
    return CscMatrix(found.data, found.indices, found.indptr, found.shape)


def coo_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    if isinstance(arg1, Sparse):
        found = arg1.tocoo()
        return CooArray(found.data if dtype is None else found.data.astype(dtype), found.row, found.col, arg1.shape)
    data, row, col, shape = coordinates(arg1, shape, dtype)
    return CooArray(data, row, col, shape)


def coo_matrix(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, *, maxprint: Any = None) -> Any:
    found = coo_array(arg1, shape, dtype)
    return CooMatrix(found.data, found.row, found.col, found.shape)


def from_diagonals(diagonals: Any, offsets: Any, shape: Any, dtype: Any) -> Any:
    """The arrays of a matrix with these diagonals: elements, rows, columns and shape."""
    if not isinstance(offsets, tuple | list) and not is_array(offsets):
        diagonals = diagonals[0] if isinstance(diagonals, tuple | list) and is_array(diagonals[0]) else diagonals
        return of_diagonals((np.asarray(diagonals),), (offsets,), shape, dtype)
    if is_array(diagonals) and not isinstance(diagonals, tuple | list):
        unsupported("an array of diagonals", "use a list of diagonals")
    return of_diagonals(diagonals, offsets, shape, dtype)


def of_diagonals(diagonals: Any, offsets: Any, shape: Any, dtype: Any) -> Any:
    agree(len(diagonals), len(offsets), "different number of diagonals and offsets")
    if shape is None:
        size = len(np.asarray(diagonals[0])) + abs(offsets[0])
        rows, columns = size, size
    else:
        rows, columns = shape
    elements, row, col = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for diagonal, offset in zip(diagonals, offsets, strict=True):
        values = np.atleast_1d(np.asarray(diagonal))
        length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
        if len(values) != 1 and len(values) != length:
            raise ValueError("a diagonal has a length that does not fit to its offset and the shape")
        elements.append(np.asarray(values * np.ones(length)))
        row.append(np.arange(length) - min(offset, 0))
        col.append(np.arange(length) + max(offset, 0))
    found = np.concatenate(elements)
    return found if dtype is None else found.astype(dtype), np.concatenate(row), np.concatenate(col), (rows, columns)


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> Any:
    elements, row, col, size = from_diagonals(diagonals, offsets, shape, dtype)
    return DiaArray(elements, row, col, size).asformat(format)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
    elements, row, col, size = from_diagonals(diagonals, offsets, shape, dtype)
    return DiaMatrix(elements, row, col, size).asformat(format)


def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """As in SciPy, the element of a diagonal in column j comes from column j of the array."""
    data = np.atleast_2d(np.asarray(data))
    offsets = np.atleast_1d(np.asarray(diags))
    agree(len(offsets), data.shape[0], "number of diagonals does not match the number of offsets")
    if m is None:
        rows, columns = len(data[0]), len(data[0])
    elif n is None:
        rows, columns = m
    else:
        rows, columns = m, n
    count = 0
    for k in range(len(offsets)):
        for j in range(min(columns, data.shape[1])):
            if 0 <= j - offsets[k] < rows:
                count += 1
    elements, row, col = np.empty(count, data.dtype), np.empty(count, np.int64), np.empty(count, np.int64)
    place = 0
    for k in range(len(offsets)):
        for j in range(min(columns, data.shape[1])):
            if 0 <= j - offsets[k] < rows:
                elements[place] = data[k, j]
                row[place] = j - offsets[k]
                col[place] = j
                place += 1
    return DiaMatrix(elements, row, col, (rows, columns)).asformat(format)


def ones_on_diagonal(rows: Any, columns: Any, offset: Any, dtype: Any) -> Any:
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return np.ones(length, dtype), np.arange(length) - min(offset, 0), np.arange(length) + max(offset, 0)


def eye_array(m: Any, n: Any = None, *, k: Any = 0, dtype: Any = float, format: Any = None) -> Any:
    columns = m if n is None else n
    elements, row, col = ones_on_diagonal(m, columns, k, dtype)
    return DiaArray(elements, row, col, (m, columns)).asformat(format)


def eye(m: Any, n: Any = None, k: Any = 0, dtype: Any = float, format: Any = None) -> Any:
    columns = m if n is None else n
    elements, row, col = ones_on_diagonal(m, columns, k, dtype)
    return DiaMatrix(elements, row, col, (m, columns)).asformat(format)


def identity(n: Any, dtype: Any = "d", format: Any = None) -> Any:
    return eye(n, n, 0, dtype, format)


def issparse(x: Any) -> Any:
    return isinstance(x, Sparse)


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(csr_array, csr_matrix, csc_array, csc_matrix, coo_array, coo_matrix, diags_array, diags, spdiags),
        *(eye_array, eye, identity, issparse),
    )
}
"""By the name in `scipy.sparse`."""
