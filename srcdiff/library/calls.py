"""What is left to BLAS and LAPACK: calls on whole arrays, each with its adjoint.

A row says how the call is spelled and how the shapes go together, in the letters of `np.einsum`. Its adjoint is a
function of the arguments, the results and the results' adjoints, and gives the adjoint of each argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class LibraryCall:
    name: str
    spelling: str
    shapes: str
    adjoint: Callable[..., Any] | None = None
    dtypes: tuple[str, ...] = ()
    """The types of the results, where they are not those of the arguments."""

    def __call__(self, *args: Any) -> Any:
        names = [f"a{k}" for k in range(len(args))]
        return eval(self.spelling.format(*names), {"np": np, **dict(zip(names, args, strict=True))})


LIBRARY: dict[str, LibraryCall] = {}


def row(
    name: str, spelling: str, shapes: str, adjoint: Callable[..., Any] | None = None, dtypes: tuple[str, ...] = ()
) -> LibraryCall:
    LIBRARY[name] = LibraryCall(name, spelling, shapes, adjoint, dtypes)
    return LIBRARY[name]


def matrix_matrix_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return matrix_matrix(out_bar, b.T), matrix_matrix(a.T, out_bar)


def matrix_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return out_bar[:, None] * b[None, :], matrix_vector(a.T, out_bar)


def vector_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return out_bar * b, out_bar * a


def solve_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_matrix(a.T, out_bar)
    return -matrix_matrix(b_bar, out.T), b_bar


def inverse_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (-matrix_matrix(matrix_matrix(out.T, out_bar), out.T),)


def determinant_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (out_bar * cofactors(a),)


def cofactors(a: Any) -> Any:
    """The derivative of the determinant, also where it is zero: by the singular value decomposition."""
    u, s, vt = np.linalg.svd(a)
    n = len(s)
    scaled = np.empty((n, n))
    for k in range(n):
        others = 1.0
        for m in range(n):
            if m != k:
                others *= s[m]
        for j in range(n):
            scaled[k, j] = others * vt[k, j]
    sign = np.linalg.det(u) * np.linalg.det(vt)
    return sign * (u @ scaled)


def slogdet_adjoint(a: Any, sign: Any, out: Any, sign_bar: Any, out_bar: Any) -> Any:
    return (out_bar * np.linalg.inv(a).T,)


def cholesky_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    # Murray 2016, equation 10: a_bar = L^-T phi(L^T L_bar) L^-1, phi the lower triangle with half the diagonal
    middle = matrix_matrix(out.T, out_bar)
    n = len(middle)
    for i in range(n):
        middle[i, i] *= 0.5
        for j in range(i + 1, n):
            middle[i, j] = 0.0
    left = solve_matrix(out.T, middle)
    whole = solve_matrix(out.T, left.T)
    # NumPy reads the lower triangle only, so that only it has adjoints
    a_bar = np.zeros((n, n), a.dtype)
    for i in range(n):
        a_bar[i, i] = whole[i, i]
        for j in range(i):
            a_bar[i, j] = whole[i, j] + whole[j, i]
    return (a_bar,)


matrix_matrix = row("matrix_matrix", "{0} @ {1}", "ij,jk->ik", matrix_matrix_adjoint)
matrix_vector = row("matrix_vector", "{0} @ {1}", "ij,j->i", matrix_vector_adjoint)
vector_vector = row("vector_vector", "np.dot({0}, {1})", "i,i->", vector_vector_adjoint)
solve_matrix = row("solve", "np.linalg.solve({0}, {1})", "ii,ij->ij", solve_adjoint)
inverse = row("inv", "np.linalg.inv({0})", "ii->ii", inverse_adjoint)
determinant = row("det", "np.linalg.det({0})", "ii->", determinant_adjoint)
slogdet = row("slogdet", "np.linalg.slogdet({0})", "ii->,", slogdet_adjoint)
cholesky = row("cholesky", "np.linalg.cholesky({0})", "ii->ii", cholesky_adjoint)
order_of = row("argsort", "np.argsort({0}, kind='mergesort')", "i->i", None, ("int64",))
