"""Sparse arrays and matrices of `scipy.sparse`: structures of arrays, whose methods are programs.

    CsrArray, CsrMatrix     data[k] in row i and column indices[k], for k in range(indptr[i], indptr[i + 1])
    CscArray, CscMatrix     the same by columns
    CooArray, CooMatrix     data[k] in row row[k] and column col[k]
    DiaArray, DiaMatrix     what `diags` and `eye` return: the same as of `CooArray`, but its `data` cannot be read

Each stands for the SciPy class of the same name. A gradient has the sparsity of the array.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library.language import agree, is_array, unsupported
from srcdiff.library.sparse_products import (
    add_to_dense,
    as_rows,
    by_coordinates,
    column_sums,
    diagonal_of,
    element_of,
    expanded,
    row_sums,
    same_places,
    scattered_product,
    sparse_product,
    times_dense,
)
from srcdiff.signature.standing_classes import stands_for


class Sparse:
    """The base of all sparse classes."""

    shape: Any
    tocoo: Any
    __array_ufunc__ = None
    is_matrix = False
    """Whether it is a `*_matrix`, whose `*` is the matrix product."""

    @property
    def ndim(self: Any) -> Any:
        return 2

    @property
    def dtype(self: Any) -> Any:
        return self.elements.dtype

    @property
    def nnz(self: Any) -> Any:
        return self.count

    @property
    def size(self: Any) -> Any:
        return self.count

    @property
    def T(self: Any) -> Any:  # noqa: N802
        return self.transpose()

    # -- products ------------------------------------------------------------------------------------------------------

    def __matmul__(self: Any, other: Any) -> Any:
        if isinstance(other, Sparse):
            return self.times_sparse(other)
        other = np.asarray(other)
        if other.ndim == 1:
            return self.times_vector(other)
        return self.times_matrix(other)

    def __rmatmul__(self: Any, other: Any) -> Any:
        other = np.asarray(other)
        if other.ndim == 1:
            return self.transpose().times_vector(other)
        return np.transpose(self.transpose().times_matrix(np.asarray(np.transpose(other))))

    def times_sparse(self: Any, other: Any) -> Any:
        return self.tocsr().times_sparse(other)

    def dot(self: Any, other: Any) -> Any:
        if isinstance(other, Sparse) or is_array(other):
            return self @ other
        return self.scaled(other)

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def scaled(self: Any, by: Any) -> Any:
        return self.with_elements(self.elements * by)

    def __mul__(self: Any, other: Any) -> Any:
        if self.is_matrix and (isinstance(other, Sparse) or is_array(other)):
            return self @ other
        return self.multiply(other)

    def __rmul__(self: Any, other: Any) -> Any:
        if self.is_matrix and is_array(other):
            return other @ self
        return self.multiply(other)

    def multiply(self: Any, other: Any) -> Any:
        if isinstance(other, Sparse):
            own = self.in_rows_or_columns()
            other = own.like_self(other)
            return own.with_elements(own.elements * other.elements)
        if not is_array(other):
            return self.scaled(other)
        found = self.tocoo()
        values = scattered_product(found.data, found.row, found.col, np.asarray(other), self.shape)
        return (
            CooMatrix(values, found.row, found.col, self.shape)
            if self.is_matrix
            else CooArray(values, found.row, found.col, self.shape)
        )

    def in_rows_or_columns(self: Any) -> Any:
        """The array that is added or multiplied: SciPy compresses arrays by coordinates."""
        return self

    def like_self(self: Any, other: Any) -> Any:
        """The other array, which must have the same sparsity without duplicates."""
        if self.shape[0] != other.shape[0] or self.shape[1] != other.shape[1]:
            raise ValueError("inconsistent shapes")
        other = self.in_same_format(other)
        if not self.has_places_of(other):
            raise ValueError(
                "sparse arrays that are added or multiplied must have the same elements, sorted, and each of them once"
            )
        return other

    def __truediv__(self: Any, other: Any) -> Any:
        if isinstance(other, Sparse) or is_array(other):
            unsupported("a sparse array divided by an array")
        return self.with_elements(self.elements / other)

    def __add__(self: Any, other: Any) -> Any:
        if isinstance(other, Sparse):
            own = self.in_rows_or_columns()
            other = own.like_self(other)
            return own.with_elements(own.elements + other.elements)
        if not is_array(other):
            unsupported("a sparse array plus a number")
        return self.toarray() + other

    def __radd__(self: Any, other: Any) -> Any:
        return self + other

    def __sub__(self: Any, other: Any) -> Any:
        return self + -1 * other

    def __rsub__(self: Any, other: Any) -> Any:
        return -self + other

    def __neg__(self: Any) -> Any:
        return self.with_elements(-self.elements)

    def __abs__(self: Any) -> Any:
        return self.with_elements(np.abs(self.single_elements()))

    def single_elements(self: Any) -> Any:
        """The elements. Raises if an element is the sum of several stored ones, whose functions are not added up."""
        found = self.tocoo()
        if has_duplicates(found.row, found.col, self.shape[0], self.shape[1]):
            raise ValueError("an element of the sparse array is stored more than once: call `sum_duplicates` before")
        return self.elements

    def __pow__(self: Any, n: Any) -> Any:
        if self.is_matrix:
            unsupported("a power of a sparse matrix")
        return self.power(n)

    def power(self: Any, n: Any, dtype: Any = None) -> Any:
        return self.with_elements(self.single_elements() ** n)

    def sqrt(self: Any) -> Any:
        return self.with_elements(np.sqrt(self.single_elements()))

    def expm1(self: Any) -> Any:
        return self.with_elements(np.expm1(self.single_elements()))

    def log1p(self: Any) -> Any:
        return self.with_elements(np.log1p(self.single_elements()))

    def sin(self: Any) -> Any:
        return self.with_elements(np.sin(self.single_elements()))

    def tan(self: Any) -> Any:
        return self.with_elements(np.tan(self.single_elements()))

    def tanh(self: Any) -> Any:
        return self.with_elements(np.tanh(self.single_elements()))

    def copy(self: Any) -> Any:
        return self.with_elements(np.copy(self.elements))

    def astype(self: Any, dtype: Any, casting: Any = "unsafe", copy: Any = True) -> Any:
        return self.with_elements(self.elements.astype(dtype))

    # -- sums and dense arrays -----------------------------------------------------------------------------------------

    def sum(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if axis is None:
            return np.sum(self.elements)
        if self.is_matrix:
            unsupported("`sum` of a sparse matrix along an axis", "use a sparse array, such as `csr_array`")
        found = self.tocoo()
        if axis == 0 or axis == -2:
            return column_sums(found.data, found.col, self.shape[1])
        return row_sums(found.data, found.row, self.shape[0])

    def mean(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if axis is None:
            return np.sum(self.elements) / (self.shape[0] * self.shape[1])
        return self.sum(axis) / (self.shape[0] if axis == 0 or axis == -2 else self.shape[1])

    def toarray(self: Any, order: Any = None, out: Any = None) -> Any:
        found = self.tocoo()
        return add_to_dense(found.data, found.row, found.col, self.shape)

    def todense(self: Any, order: Any = None, out: Any = None) -> Any:
        if self.is_matrix:
            unsupported("`todense` of a sparse matrix", "use `toarray`")
        return self.toarray()

    def diagonal(self: Any, k: Any = 0) -> Any:
        found = self.tocoo()
        return diagonal_of(found.data, found.row, found.col, self.shape, k)

    def trace(self: Any, offset: Any = 0) -> Any:
        return np.sum(self.diagonal(offset))

    def __getitem__(self: Any, place: Any) -> Any:
        if isinstance(place, slice):
            return self.some_rows(place.start, place.stop, place.step)
        if not isinstance(place, tuple) or is_array(place[0]) or is_array(place[1]):
            unsupported("an index of a sparse array other than a row and a column")
        found = self.tocoo()
        return element_of(found.data, found.row, found.col, self.shape, place[0], place[1])

    def some_rows(self: Any, start: Any, stop: Any, step: Any) -> Any:
        unsupported("a slice of a sparse array that is not compressed by rows", "use `tocsr`")

    def asformat(self: Any, format: Any, copy: Any = False) -> Any:
        if format is None or format == self.format:
            return self
        if format == "csr":
            return self.tocsr()
        if format == "csc":
            return self.tocsc()
        if format == "coo":
            return self.tocoo()
        unsupported("this format of sparse arrays")
        return None

    def tocsr(self: Any, copy: Any = False) -> Any:
        found = self.tocoo()
        data, indices, indptr = as_rows(found.data, found.row, found.col, self.shape[0], self.shape[1])
        return (
            CsrMatrix(data, indices, indptr, self.shape)
            if self.is_matrix
            else CsrArray(data, indices, indptr, self.shape)
        )

    def tocsc(self: Any, copy: Any = False) -> Any:
        found = self.tocoo()
        data, indices, indptr = as_rows(found.data, found.col, found.row, self.shape[1], self.shape[0])
        return (
            CscMatrix(data, indices, indptr, self.shape)
            if self.is_matrix
            else CscArray(data, indices, indptr, self.shape)
        )

    # -- outside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return bool(value.ndim == 2)


def has_duplicates(row: Any, col: Any, rows: Any, columns: Any) -> Any:
    """Whether two of the places are equal."""
    starts, order = np.zeros(rows + 1, np.int64), np.empty(len(row), np.int64)
    for k in range(len(row)):
        starts[row[k] + 1] += 1
    for i in range(rows):
        starts[i + 1] += starts[i]
    for k in range(len(row)):
        order[starts[row[k]]] = k
        starts[row[k]] += 1
    last, found = np.full(columns, -1), False
    for n in range(len(row)):
        k = order[n]
        if last[col[k]] == row[k]:
            found = True
        last[col[k]] = row[k]
    return found


def place_in(place: Any, size: Any) -> Any:
    """The end of a slice, counted from the front, inside of the axis."""
    return max(place + size, 0) if place < 0 else min(place, size)


def _module() -> Any:
    return sys.modules["scipy.sparse"]


class Compressed(Sparse):
    """Compressed by rows or by columns."""

    data: Any
    indices: Any
    indptr: Any

    @property
    def elements(self: Any) -> Any:
        return self.data

    @property
    def count(self: Any) -> Any:
        return self.indptr[-1]

    def has_places_of(self: Any, other: Any) -> Any:
        return same_places(self.indices, self.indptr, other.indices, other.indptr)


class Csr(Compressed):
    format = "csr"

    def with_elements(self: Any, data: Any) -> Any:
        return (
            CsrMatrix(data, self.indices, self.indptr, self.shape)
            if self.is_matrix
            else CsrArray(data, self.indices, self.indptr, self.shape)
        )

    def in_same_format(self: Any, other: Any) -> Any:
        return other.tocsr()

    def transpose(self: Any, axes: Any = None, copy: Any = False) -> Any:
        rows, columns = self.shape
        return (
            CscMatrix(self.data, self.indices, self.indptr, (columns, rows))
            if self.is_matrix
            else CscArray(self.data, self.indices, self.indptr, (columns, rows))
        )

    def times_vector(self: Any, x: Any) -> Any:
        return times_dense(self.data, self.indices, self.indptr, self.shape, x, True)

    def times_matrix(self: Any, x: Any) -> Any:
        return times_dense(self.data, self.indices, self.indptr, self.shape, x, True)

    def some_rows(self: Any, start: Any, stop: Any, step: Any) -> Any:
        if step is not None and step != 1:
            unsupported("a slice of a sparse array with a step")
        first = 0 if start is None else place_in(start, self.shape[0])
        last = self.shape[0] if stop is None else place_in(stop, self.shape[0])
        count = max(last - first, 0)
        begin, end = self.indptr[first], self.indptr[first + count]
        data, indices = np.copy(self.data[begin:end]), np.copy(self.indices[begin:end])
        indptr, shape = self.indptr[first : first + count + 1] - begin, (count, self.shape[1])
        return CsrMatrix(data, indices, indptr, shape) if self.is_matrix else CsrArray(data, indices, indptr, shape)

    def times_sparse(self: Any, other: Any) -> Any:
        agree(self.shape[1], other.shape[0], "matmul: dimension mismatch")
        other = other.tocsr()
        columns = other.shape[1]
        data, indices, indptr = sparse_product(
            self.data, self.indices, self.indptr, other.data, other.indices, other.indptr, columns
        )
        shape = (self.shape[0], columns)
        return CsrMatrix(data, indices, indptr, shape) if self.is_matrix else CsrArray(data, indices, indptr, shape)

    def tocsr(self: Any, copy: Any = False) -> Any:
        return self

    def tocoo(self: Any, copy: Any = True) -> Any:
        data, row, col = expanded(self.data, self.indices, self.indptr)
        return CooMatrix(data, row, col, self.shape) if self.is_matrix else CooArray(data, row, col, self.shape)


class Csc(Compressed):
    format = "csc"

    def with_elements(self: Any, data: Any) -> Any:
        return (
            CscMatrix(data, self.indices, self.indptr, self.shape)
            if self.is_matrix
            else CscArray(data, self.indices, self.indptr, self.shape)
        )

    def in_same_format(self: Any, other: Any) -> Any:
        return other.tocsc()

    def transpose(self: Any, axes: Any = None, copy: Any = False) -> Any:
        rows, columns = self.shape
        return (
            CsrMatrix(self.data, self.indices, self.indptr, (columns, rows))
            if self.is_matrix
            else CsrArray(self.data, self.indices, self.indptr, (columns, rows))
        )

    def times_vector(self: Any, x: Any) -> Any:
        return times_dense(self.data, self.indices, self.indptr, self.shape, x, False)

    def times_matrix(self: Any, x: Any) -> Any:
        return times_dense(self.data, self.indices, self.indptr, self.shape, x, False)

    def times_sparse(self: Any, other: Any) -> Any:
        agree(self.shape[1], other.shape[0], "matmul: dimension mismatch")
        other = other.tocsc()
        rows = self.shape[0]
        data, indices, indptr = sparse_product(
            other.data, other.indices, other.indptr, self.data, self.indices, self.indptr, rows
        )
        shape = (rows, other.shape[1])
        return CscMatrix(data, indices, indptr, shape) if self.is_matrix else CscArray(data, indices, indptr, shape)

    def tocsc(self: Any, copy: Any = False) -> Any:
        return self

    def tocoo(self: Any, copy: Any = True) -> Any:
        data, col, row = expanded(self.data, self.indices, self.indptr)
        return CooMatrix(data, row, col, self.shape) if self.is_matrix else CooArray(data, row, col, self.shape)


class Triplets(Sparse):
    """A row and a column for each element."""

    @property
    def count(self: Any) -> Any:
        return len(self.elements)

    def times_vector(self: Any, x: Any) -> Any:
        return by_coordinates(self.elements, self.row, self.col, self.shape, x)

    def times_matrix(self: Any, x: Any) -> Any:
        return by_coordinates(self.elements, self.row, self.col, self.shape, x)


class Coo(Triplets):
    format = "coo"

    @property
    def elements(self: Any) -> Any:
        return self.data

    def with_elements(self: Any, data: Any) -> Any:
        return (
            CooMatrix(data, self.row, self.col, self.shape)
            if self.is_matrix
            else CooArray(data, self.row, self.col, self.shape)
        )

    def in_rows_or_columns(self: Any) -> Any:
        return self.tocsr()

    def transpose(self: Any, axes: Any = None, copy: Any = False) -> Any:
        rows, columns = self.shape
        return (
            CooMatrix(self.data, self.col, self.row, (columns, rows))
            if self.is_matrix
            else CooArray(self.data, self.col, self.row, (columns, rows))
        )

    def tocoo(self: Any, copy: Any = False) -> Any:
        return self


class Dia(Triplets):
    format = "dia"

    def with_elements(self: Any, elements: Any) -> Any:
        return (
            DiaMatrix(elements, self.row, self.col, self.shape)
            if self.is_matrix
            else DiaArray(elements, self.row, self.col, self.shape)
        )

    def like_self(self: Any, other: Any) -> Any:
        unsupported("a sum or a product of sparse arrays by diagonals", "use `tocsr`")
        return other

    def transpose(self: Any, axes: Any = None, copy: Any = False) -> Any:
        rows, columns = self.shape
        return (
            DiaMatrix(self.elements, self.col, self.row, (columns, rows))
            if self.is_matrix
            else DiaArray(self.elements, self.col, self.row, (columns, rows))
        )

    def tocoo(self: Any, copy: Any = False) -> Any:
        return (
            CooMatrix(self.elements, self.row, self.col, self.shape)
            if self.is_matrix
            else CooArray(self.elements, self.row, self.col, self.shape)
        )


# -- the classes that stand for SciPy's ------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsrArray(Csr):
    data: Any
    indices: Any
    indptr: Any
    shape: Any


@dataclass(frozen=True)
class CsrMatrix(Csr):
    is_matrix = True
    data: Any
    indices: Any
    indptr: Any
    shape: Any


@dataclass(frozen=True)
class CscArray(Csc):
    data: Any
    indices: Any
    indptr: Any
    shape: Any


@dataclass(frozen=True)
class CscMatrix(Csc):
    is_matrix = True
    data: Any
    indices: Any
    indptr: Any
    shape: Any


@dataclass(frozen=True)
class CooArray(Coo):
    data: Any
    row: Any
    col: Any
    shape: Any


@dataclass(frozen=True)
class CooMatrix(Coo):
    is_matrix = True
    data: Any
    row: Any
    col: Any
    shape: Any


@dataclass(frozen=True)
class DiaArray(Dia):
    elements: Any
    row: Any
    col: Any
    shape: Any


@dataclass(frozen=True)
class DiaMatrix(Dia):
    is_matrix = True
    elements: Any
    row: Any
    col: Any
    shape: Any


def _compressed(name: str) -> dict[str, Any]:
    def made(data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        return getattr(_module(), name)((data, indices, indptr), shape=tuple(map(int, shape)))

    def gradient(argument: Any, parts: Sequence[Any]) -> Any:
        return getattr(_module(), name)((parts[0], argument.indices, argument.indptr), shape=argument.shape, copy=True)

    def alike(value: Any, given: Any) -> bool:
        same = np.array_equal(value.indices, given.indices) and np.array_equal(value.indptr, given.indptr)
        return value.shape == given.shape and same

    return {"__srcdiff_made__": made, "__srcdiff_gradient__": gradient, "__srcdiff_alike__": alike}


def _by_coordinates(name: str) -> dict[str, Any]:
    def made(data: Any, row: Any, col: Any, shape: Any) -> Any:
        return getattr(_module(), name)((data, (row, col)), shape=tuple(map(int, shape)))

    def gradient(argument: Any, parts: Sequence[Any]) -> Any:
        found = getattr(_module(), name)((parts[0], (argument.row, argument.col)), shape=argument.shape, copy=True)
        found.has_canonical_format = argument.has_canonical_format
        return found

    def alike(value: Any, given: Any) -> bool:
        same = np.array_equal(value.row, given.row) and np.array_equal(value.col, given.col)
        return value.shape == given.shape and same

    return {"__srcdiff_made__": made, "__srcdiff_gradient__": gradient, "__srcdiff_alike__": alike}


def _by_diagonals(name: str) -> dict[str, Any]:
    of = name.replace("dia", "coo")

    def made(elements: Any, row: Any, col: Any, shape: Any) -> Any:
        return getattr(_module(), of)((elements, (row, col)), shape=tuple(map(int, shape))).todia()

    def fits(value: Any) -> bool:
        return False  # the data of an argument are diagonals, not elements

    return {"__srcdiff_made__": made, "__srcdiff_fits__": fits}


_CLASSES = (
    ("csr_array", CsrArray, _compressed),
    ("csr_matrix", CsrMatrix, _compressed),
    ("csc_array", CscArray, _compressed),
    ("csc_matrix", CscMatrix, _compressed),
    ("coo_array", CooArray, _by_coordinates),
    ("coo_matrix", CooMatrix, _by_coordinates),
    ("dia_array", DiaArray, _by_diagonals),
    ("dia_matrix", DiaMatrix, _by_diagonals),
)


def stand_for_scipys() -> None:
    """Register these classes for those of SciPy, whether it is installed or not."""
    for name, kind, methods in _CLASSES:
        for method, function in methods(name).items():
            setattr(kind, method, staticmethod(function))
        stands_for("scipy.sparse", name, kind)
