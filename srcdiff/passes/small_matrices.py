"""Products, and equations, of matrices whose elements are scalars: the formulas in place of a call of a library.

Each function writes the scalars of its result, row by row, from those of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Block, If, Raise, Value
from srcdiff.ir.types import is_complex

Elements = Any  # an array of Values, in the shape of the matrix
Formula = Callable[..., Sequence[Elements] | None]


def dot(build: Builder, a: Elements, b: Elements) -> Value:
    total = build.apply("multiply", a[0], b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = build.apply("add", total, build.apply("multiply", x, y))
    return total


def matrix_matrix(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array([[dot(build, row, column) for column in b.T] for row in a])]


def matrix_vector(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array([dot(build, row, b) for row in a])]


def vector_matrix(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array([dot(build, column, b) for column in a.T])]


def vector_vector(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    return [_array(dot(build, a, b))]


# -- equations -------------------------------------------------------------------------------------------------------


def solve_matrix(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    """Gaussian elimination by rows; as in LAPACK, the row with the largest element of a column eliminates it."""
    count = len(a)
    rows = [[*row, *beside] for row, beside in zip(a, b, strict=True)]
    for k in range(count):
        _choose_pivot(build, rows, k)
        _refuse(build, build.apply("equal", rows[k][k], build.const(0.0, rows[k][k].scalar)), "Singular matrix")
        _eliminate(build, rows, k)
    found: list[list[Value]] = [[] for _ in rows]
    for i in reversed(range(count)):
        for column in range(count, len(rows[i])):
            total = rows[i][column]
            for k in range(i + 1, count):
                term = build.apply("multiply", rows[i][k], found[k][column - count])
                total = build.apply("subtract", total, term)
            found[i].append(build.apply("divide", total, rows[i][i]))
    return [_array(found)]


def inverse(build: Builder, a: Elements) -> Sequence[Elements]:
    identity = np.full(a.shape, build.const(0.0, a[0, 0].scalar), dtype=object)
    np.fill_diagonal(identity, build.const(1.0, a[0, 0].scalar))
    return solve_matrix(build, a, identity)


def _choose_pivot(build: Builder, rows: list[list[Value]], k: int) -> list[Value]:
    """Pivot: exchange rows so that row k has the largest element of column k; return the conditions."""
    conditions = []
    for i in range(k + 1, len(rows)):
        sizes = [build.apply("absolute", rows[m][k]) for m in (i, k)]
        conditions.append(build.apply("greater", *sizes))
        straight, crossed = (*rows[k][k:], *rows[i][k:]), (*rows[i][k:], *rows[k][k:])
        outs = tuple([Value(v.type, v.name) for v in straight])
        build.branch(conditions[-1], Block((), crossed), Block((), straight), outs)
        length = len(rows[k]) - k
        rows[k][k:], rows[i][k:] = outs[:length], outs[length:]
    return conditions


def _eliminate(build: Builder, rows: list[list[Value]], k: int) -> None:
    """Eliminate column k below row k; the zeros are not written."""
    for row in rows[k + 1 :]:
        factor = build.apply("divide", row[k], rows[k][k])
        for j in range(k + 1, len(row)):
            row[j] = build.apply("subtract", row[j], build.apply("multiply", factor, rows[k][j]))


def _refuse(build: Builder, condition: Value, message: str) -> None:
    error = Raise(np.linalg.LinAlgError, (message,), span=build.span)
    build.add(If(condition, Block((error,)), Block(), span=build.span))


def determinant(build: Builder, a: Elements) -> Sequence[Elements] | None:
    """For at most three rows. For more, a formula with a derivative at singular matrices would be long."""
    formulas: dict[int, Callable[[Builder, Elements], Value]] = {1: _of_one, 2: _of_two, 3: _of_three}
    return [_array(formulas[len(a)](build, a))] if len(a) in formulas else None


def _of_one(build: Builder, a: Elements) -> Value:
    only: Value = a[0, 0]
    return only


def _of_two(build: Builder, a: Elements) -> Value:
    products = (build.apply("multiply", a[0, 0], a[1, 1]), build.apply("multiply", a[0, 1], a[1, 0]))
    return build.apply("subtract", *products)


def _of_three(build: Builder, a: Elements) -> Value:
    """One column is eliminated, which is as exact as LAPACK; if it is zero, the determinant is expanded by it."""
    rows = [list(row) for row in a]
    conditions = _choose_pivot(build, rows, 0)
    pivot = rows[0][0]
    exists = build.apply("not_equal", pivot, build.const(0.0, pivot.scalar))
    with build.block() as then:
        _eliminate(build, rows, 0)
        by_elimination = build.apply("multiply", pivot, _of_two(build, _array([row[1:] for row in rows[1:]])))
        for condition in conditions:
            by_elimination = build.apply("where", condition, build.apply("negative", by_elimination), by_elimination)
    with build.block() as orelse:
        others = ((1, 2), (0, 2), (0, 1))
        minors = [build.apply("multiply", a[i, 0], _of_two(build, a[list(others[i]), 1:])) for i in range(3)]
        by_column = build.apply("add", build.apply("subtract", minors[0], minors[1]), minors[2])
    out = Value(pivot.type)
    build.branch(exists, Block(tuple(then), (by_elimination,)), Block(tuple(orelse), (by_column,)), (out,))
    return out


def cholesky(build: Builder, a: Elements) -> Sequence[Elements]:
    """Reads the lower triangle only."""
    found = np.full(a.shape, build.const(0.0, a[0, 0].scalar), dtype=object)
    for j in range(len(a)):
        conjugates = _conjugates(build, found[j, :j])
        square = _less_products(build, a[j, j], found[j, :j], conjugates)
        if is_complex(square.type):
            square = build.apply("real", square)
        condition = build.apply("less_equal", square, build.const(0.0, square.scalar))  # a NaN is passed on
        _refuse(build, condition, "Matrix is not positive definite")
        found[j, j] = build.cast(build.apply("sqrt", square), a[j, j].scalar)
        for i in range(j + 1, len(a)):
            rest = _less_products(build, a[i, j], found[i, :j], conjugates)
            found[i, j] = build.apply("divide", rest, found[j, j])
    return [found]


def _conjugates(build: Builder, values: Elements) -> Elements:
    return _array([build.apply("conjugate", v) if is_complex(v.type) else v for v in values])


def solve_lower(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    """Forward substitution; elements above the diagonal are not read."""
    found = b.copy()
    for i in range(len(a)):
        for j in range(b.shape[1]):
            found[i, j] = build.apply("divide", _less_products(build, b[i, j], a[i, :i], found[:i, j]), a[i, i])
    return [found]


def solve_lower_transposed(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
    """By substitution, from the last row on."""
    (found,) = solve_lower(build, a[::-1, ::-1].T, b[::-1])
    return [found[::-1]]


def _of_vectors(solve: Formula) -> Formula:
    def of_vector(build: Builder, a: Elements, b: Elements) -> Sequence[Elements]:
        (found,) = solve(build, a, b[:, None]) or ()
        return [found[:, 0]]

    return of_vector


def _less_products(build: Builder, total: Value, a: Elements, b: Elements) -> Value:
    for x, y in zip(a, b, strict=True):
        total = build.apply("subtract", total, build.apply("multiply", x, y))
    return total


def _array(values: Any) -> Elements:
    return np.array(values, dtype=object)


FORMULAS: dict[str, Formula] = {
    "matrix_matrix": matrix_matrix,
    "matrix_vector": matrix_vector,
    "vector_matrix": vector_matrix,
    "vector_vector": vector_vector,
    "solve": solve_matrix,
    "solve_vector": _of_vectors(solve_matrix),
    "solve_lower": solve_lower,
    "solve_lower_transposed": solve_lower_transposed,
    "solve_lower_vector": _of_vectors(solve_lower),
    "solve_lower_transposed_vector": _of_vectors(solve_lower_transposed),
    "inv": inverse,
    "det": determinant,
    "cholesky": cholesky,
}
"""By the name of the library row; None if there is none for matrices of this size."""
