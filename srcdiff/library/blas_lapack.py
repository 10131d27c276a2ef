"""Calls of BLAS and LAPACK on arrays, each with its adjoint.

A row has the spelling of the call and the relation of the shapes, in the letters of `np.einsum`. Its adjoint is a
function of the arguments, the results and the adjoints of the results; it returns the adjoint of each argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from srcdiff.library.call_outs import CallOut, Kind
from srcdiff.library.language import Elementwise, is_complex_type

strong_multiply = Elementwise("strong_multiply")


@dataclass(frozen=True, slots=True)
class LibraryCall:
    name: str
    spelling: str
    shapes: str
    adjoint: Callable[..., Any] | None = None
    dtypes: tuple[str, ...] = ()
    """The dtypes of the results; empty if they are those of the arguments."""
    key: str = ""
    """Its key in the table, if that differs from its name."""
    tangent: None = None
    """The transpose of the adjoint."""
    support: str = ""
    """The support function that generated code calls, if NumPy's function does not suffice."""
    call: CallOut | None = None
    """The Python function to call, if the call leaves generated code."""
    takes_complex: bool = False
    """Whether it also has derivatives for complex matrices."""
    special: tuple[tuple[bool, ...], Callable[..., Any]] | None = None
    """For each result, whether it has a derivative, and the adjoint for exactly this case."""

    def for_results(self, active: Sequence[bool]) -> LibraryCall:
        """The row with the adjoint for the case that only these results have derivatives."""
        if self.special is None or self.special[0] != tuple(active):
            return self
        return replace(self, adjoint=self.special[1])

    def lengths(self, result: int) -> tuple[tuple[int, int], ...] | None:
        """For each axis of a result, the argument and axis of the same length, if the row determines it."""
        taken, given = self.shapes.split("->")
        found = {x: (k, axis) for k, letters in enumerate(taken.split(",")) for axis, x in enumerate(letters)}
        letters = given.split(",")[result]
        return tuple(found[x] for x in letters) if all(x in found for x in letters) else None

    def __call__(self, *args: Any) -> Any:
        names = [f"a{k}" for k in range(len(args))]
        text = self.spelling.format(*names, call="call")
        return eval(text, {"np": np, "call": self.call, **dict(zip(names, args, strict=True))})


@dataclass(frozen=True, slots=True)
class Ruled:
    """A function of the library whose derivative is declared, not derived from its text."""

    function: Callable[..., Any]
    adjoint: Callable[..., Any]
    tangent: Callable[..., Any] | None = None
    """If absent, it is the transpose of the adjoint."""
    takes_complex: bool = False

    @property
    def __srcdiff_rule__(self) -> Ruled:
        return self

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


LIBRARY: dict[str, LibraryCall] = {}


def opaque(name: str, spelling: str, shapes: str, dtypes: tuple[str, ...]) -> LibraryCall:
    """A call without a derivative; its row is identified by all of its fields."""
    key = f"{spelling} {shapes} {dtypes}"
    return LIBRARY.setdefault(key, LibraryCall(name, spelling, shapes, None, dtypes, key))


def call_out(call: CallOut, spelling: str, ranks: Sequence[int], results: Sequence[Kind]) -> LibraryCall:
    """A call of a Python function, without a derivative. The lengths of its results are independent of each other."""
    letters = iter(chr(k) for k in range(ord("a"), ord("a") + 1000))
    taken, given = (",".join("".join(islice(letters, r)) for r in of) for of in (ranks, [rank for _, rank in results]))
    key = f"{spelling} {taken}->{given} {call.number}"
    dtypes = tuple(dtype for dtype, _ in results)
    return LIBRARY.setdefault(
        key, LibraryCall(call.__name__, spelling, f"{taken}->{given}", None, dtypes, key, call=call)
    )


def is_seen(function: str) -> bool:
    """Whether the call draws random numbers. Then it must run exactly as often as in the program."""
    row = LIBRARY.get(function)
    return row is not None and row.call is not None and row.call.is_seen


def row(
    name: str,
    spelling: str,
    shapes: str,
    adjoint: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] = (),
    support: str = "",
    call: CallOut | None = None,
    *,
    takes_complex: bool = False,
    special: tuple[tuple[bool, ...], Callable[..., Any]] | None = None,
) -> LibraryCall:
    LIBRARY[name] = LibraryCall(
        *(name, spelling, shapes, adjoint, dtypes),
        support=support,
        call=call,
        takes_complex=takes_complex,
        special=special,
    )
    return LIBRARY[name]


def substitution(name: str, shapes: str, adjoint: Callable[..., Any]) -> LibraryCall:
    """A support function, called under its own name."""
    return row(name, f"{name}({{0}}, {{1}})", shapes, adjoint, support=name, takes_complex=True)


# ------------------------------------------------------------------------------------------------------------- products


def matrix_matrix_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return matrix_matrix(out_bar, b.conj().T), matrix_matrix(a.conj().T, out_bar)


def matrix_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return out_bar[:, None] * b.conj()[None, :], matrix_vector(a.conj().T, out_bar)


def vector_matrix_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return b.conj()[:, None] * out_bar[None, :], matrix_vector(a.conj(), out_bar)


def vector_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    return out_bar * b.conj(), out_bar * a.conj()


# ------------------------------------------------------------------------------------------- equations and determinants


def solve_matrix_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_matrix(a.T, out_bar.conj()).conj()
    return -matrix_matrix(b_bar, out.conj().T), b_bar


def solve_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_vector(a.T, out_bar.conj()).conj()
    return -b_bar[:, None] * out.conj()[None, :], b_bar


def solve_lower_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_lower_transposed(a.conj(), out_bar)
    return -only_lower(matrix_matrix(b_bar, out.conj().T)), b_bar


def solve_lower_transposed_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_lower(a.conj(), out_bar)
    return -only_lower(matrix_matrix(out.conj(), b_bar.T)), b_bar


def solve_lower_transposed_upper_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_lower(a.conj(), only_lower(out_bar.T).T)
    return -only_lower(matrix_matrix(out.conj(), b_bar.T)), only_lower(b_bar.T).T


def lower_product_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    """The adjoint of a.T @ b. The elements above the diagonals are ignored, in the arguments and in the result."""
    below = only_lower(out_bar)
    a_bar = matrix_matrix(only_lower(b).conj(), below.T)
    return only_lower(a_bar), only_lower(matrix_matrix(only_lower(a).conj(), below))


def solve_lower_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_lower_transposed_vector(a.conj(), out_bar)
    return -only_lower(b_bar[:, None] * out.conj()[None, :]), b_bar


def solve_lower_transposed_vector_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = solve_lower_vector(a.conj(), out_bar)
    return -only_lower(out.conj()[:, None] * b_bar[None, :]), b_bar


def triangular_factors_adjoint(a: Any, out: Any, pivots: Any, out_bar: Any, pivots_bar: Any) -> Any:
    """From P A = L U follows dL = L lower(F) and dU = upper(F) U with F = L^-1 P dA U^-1. P is constant."""
    n = len(a)
    lower, upper = np.zeros((n, n), a.dtype), np.zeros((n, n), a.dtype)
    lower_bar, upper_bar = np.zeros((n, n), a.dtype), np.zeros((n, n), a.dtype)
    for i in range(n):
        lower[i, i] = 1.0
        for j in range(n):
            if j < i:
                lower[i, j] = out[i, j]
                lower_bar[i, j] = out_bar[i, j]
            else:
                upper[i, j] = out[i, j]
                upper_bar[i, j] = out_bar[i, j]
    below, above = matrix_matrix(lower.T, lower_bar), matrix_matrix(upper_bar, upper.T)
    middle = np.empty((n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            middle[i, j] = below[i, j] if j < i else above[i, j]
    turned = solve_lower_transposed(lower, np.asarray(solve_lower_transposed(upper.T, np.asarray(middle.T)).T))
    order = np.asarray(np.arange(n))
    for k in range(n):
        other = pivots[k]
        order[k], order[other] = order[other], order[k]
    a_bar = np.empty((n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            a_bar[order[i], j] = turned[i, j]
    return (a_bar,)


def only_lower(a: Any) -> Any:
    """The lower triangle; the elements above it are never read."""
    result = np.zeros((len(a), len(a)), a.dtype)
    for i in range(len(a)):
        for j in range(i + 1):
            result[i, j] = a[i, j]
    return result


def inverse_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (-matrix_matrix(matrix_matrix(out.conj().T, out_bar), out.conj().T),)


def determinant_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (out_bar * cofactors(a).conj(),)


def cofactor_matrix(a: Any) -> Any:
    """The derivative of the determinant, by the singular value decomposition. It exists for singular matrices too."""
    n = len(a)
    if n == 0:
        return np.zeros((n, n), a.dtype)
    u, s, vt = singular_values(a)
    sign = determinant(u) * determinant(vt)
    for k in range(n):
        others = sign
        for m in range(n):
            if m != k:
                others *= s[m]
        for i in range(n):
            u[i, k] *= others.conjugate()
    return np.asarray(matrix_matrix(u, vt).conj())


def cofactor_matrix_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    """In the bases of the singular vectors, a cofactor is a product of singular values, so nothing is divided."""
    n = len(a)
    result = np.zeros((n, n), a.dtype)
    if n > 0:
        u, s, vt = singular_values(a)
        sign = determinant(u) * determinant(vt)
        turned = matrix_matrix(matrix_matrix(u.conj().T, out_bar.conj()), vt.conj().T)
        middle = np.zeros((n, n), a.dtype)
        for i in range(n):
            for j in range(n):
                if i != j:
                    others = sign
                    for m in range(n):
                        if m != i and m != j:
                            others *= s[m]
                    middle[j, j] += turned[i, i] * others
                    middle[j, i] -= turned[i, j] * others
        result[...] = matrix_matrix(matrix_matrix(u, middle.conj()), vt)
    return (result,)


cofactors = Ruled(cofactor_matrix, cofactor_matrix_adjoint, takes_complex=True)


def log_determinant_adjoint(a: Any, sign: Any, out: Any, sign_bar: Any, out_bar: Any) -> Any:
    inverted = inverse(a).conj().T
    if is_complex_type(a.dtype):  # the derivative of its angle is the imaginary part of that of log(det)
        return ((out_bar + 1j * (sign_bar.imag * sign.real - sign_bar.real * sign.imag)) * inverted,)
    return (out_bar * inverted,)


# --------------------------------------------------------------------------------------------------- symmetric matrices


def lower_triangle(a: Any) -> Any:
    """The adjoint of a Hermitian matrix, on the lower triangle: NumPy reads only that."""
    n = len(a)
    result = np.zeros((n, n), a.dtype)
    for i in range(n):
        result[i, i] = a[i, i].real
        for j in range(i):
            result[i, j] = a[i, j] + a[j, i].conjugate()
    return result


def cholesky_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    """Murray 2016, equation 10: L^-H phi(L^H L_bar) L^-1, where phi takes the lower triangle and half the diagonal.

    The diagonal of L is real.
    """
    lower = out.conj()
    middle = lower_product(lower, out_bar)
    for i in range(len(middle)):
        middle[i, i] = 0.5 * middle[i, i].real if is_complex_type(a.dtype) else middle[i, i] * 0.5
    turned = np.asarray(solve_lower_transposed_upper(out, np.asarray(middle.T)).T)
    return (lower_triangle(solve_lower_transposed(lower, turned)),)


def eigenvectors_adjoint(a: Any, values: Any, vectors: Any, values_bar: Any, vectors_bar: Any) -> Any:
    """Giles 2008, section 3.1. Vectors of equal eigenvalues have no derivative."""
    middle = matrix_matrix(vectors.conj().T, vectors_bar)
    undefined, n = undefined_columns(vectors_bar), len(values)
    if is_complex_type(a.dtype):
        vectors_bar = vectors_bar - phase_adjoint(vectors, middle, True)
        middle = matrix_matrix(vectors.conj().T, vectors_bar)
    for i in range(n):
        for j in range(n):
            gap = values[j] - values[i]
            if gap != 0.0:
                middle[i, j] /= gap
            else:
                middle[i, j] = strong_multiply(undefined[i] + undefined[j], np.nan)
        middle[i, i] = values_bar[i]
    return (lower_triangle(matrix_matrix(matrix_matrix(vectors, middle), vectors.conj().T)),)


def undefined_columns(columns: Any) -> Any:
    """For each column of the adjoint of vectors, NaN if the column is not zero.

    What rotates a vector that has no derivative is the product of this with NaN. Both products have transposes: the
    tangent of such a vector is NaN if one of the tangents that rotate it is not zero. Second derivatives follow.
    """
    rows, count = columns.shape
    result = np.zeros(count, columns.dtype)
    for k in range(count):
        for i in range(rows):
            result[k] += strong_multiply(columns[i, k], np.nan)
    return result


def phase_adjoint(vectors: Any, angles: Any, is_real: Any) -> Any:
    """The part to subtract from the adjoint of vectors, because LAPACK rotates each until its first element is real.

    The imaginary part of `angles[k, k]` is the derivative by the angle of the vector k. Where the first element is
    zero, the next one counts that is not.
    """
    rows, count = vectors.shape
    result = np.zeros((rows, count), vectors.dtype)
    for k in range(count):
        place = rows
        for i in range(rows):
            if place == rows and abs(vectors[i, k]) > 1e-10:
                place = i
        if is_real and place < rows:
            result[place, k] = 1j * angles[k, k].imag / vectors[place, k].conjugate()
    return result


def any_eigenvectors_adjoint(a: Any, values: Any, vectors: Any, values_bar: Any, vectors_bar: Any) -> Any:
    """Giles 2008, section 3.1, for normalized vectors. Vectors of equal eigenvalues have no derivative.

    Compiled code cannot solve equations with NaN on the right, so this multiplies by the inverse.
    """
    middle, angles = matrix_matrix(vectors.T, vectors_bar), matrix_matrix(vectors.T, vectors)
    undefined, n = undefined_columns(vectors_bar), len(values)
    for j in range(n):
        along = middle[j, j]
        for i in range(n):
            gap = values[j] - values[i]
            if gap != 0.0:
                middle[i, j] = (middle[i, j] - angles[i, j] * along) / gap
            else:
                middle[i, j] = strong_multiply(undefined[i] + undefined[j], np.nan)
        middle[j, j] = values_bar[j]
    return (matrix_matrix(inverse(vectors.T), matrix_matrix(middle, vectors.T)),)


def complex_eigenvectors_adjoint(a: Any, values: Any, vectors: Any, values_bar: Any, vectors_bar: Any) -> Any:
    """The same, for LAPACK's choice of a real largest element in each vector."""
    undefined, n = undefined_columns(vectors_bar), len(values)
    along = matrix_matrix(vectors.conj().T, vectors_bar)
    straight = np.zeros((n, n), a.dtype)
    for k in range(n):
        place = 0
        for i in range(n):
            if abs(vectors[i, k]) > abs(vectors[place, k]) + 1e-10:
                place = i
        for i in range(n):
            straight[i, k] = vectors_bar[i, k] - along[k, k].real * vectors[i, k]
        straight[place, k] -= 1j * along[k, k].imag / vectors[place, k].conjugate()
    middle = matrix_matrix(vectors.conj().T, straight)
    for j in range(n):
        for i in range(n):
            gap = values[j] - values[i]
            if gap != 0.0:
                middle[i, j] /= gap.conjugate()
            else:
                middle[i, j] = strong_multiply(undefined[i] + undefined[j], np.nan)
        middle[j, j] = values_bar[j]
    return (matrix_matrix(inverse(vectors.conj().T), matrix_matrix(middle, vectors.conj().T)),)


# ------------------------------------------------------------------------------------------------------- decompositions


def singular_values_adjoint(a: Any, u: Any, s: Any, vt: Any, u_bar: Any, s_bar: Any, vt_bar: Any) -> Any:
    return decomposition_adjoint(a, u, s, vt, u_bar, s_bar, vt_bar, False)


def polar_factor_adjoint(a: Any, u: Any, s: Any, vt: Any, u_bar: Any, s_bar: Any, vt_bar: Any) -> Any:
    return decomposition_adjoint(a, u, s, vt, u_bar, s_bar, vt_bar, True)


def decomposition_adjoint(a: Any, u: Any, s: Any, vt: Any, u_bar: Any, s_bar: Any, vt_bar: Any, is_polar: Any) -> Any:
    """Townsend 2016. Vectors of equal singular values have no derivative, nor have those beside zero.

    Turning u and v against each other has one where singular values are equal, but not zero. It is all that counts if
    both are used, and the singular values are not: the function is one of u @ vt.
    """
    k = len(s)
    u_part, v_part = matrix_matrix(u.conj().T, u_bar), matrix_matrix(vt, vt_bar.conj().T)
    middle = np.empty((k, k), a.dtype)
    left_undefined, right_undefined = undefined_columns(u_bar), undefined_columns(vt_bar.T)
    if is_complex_type(a.dtype):  # LAPACK makes the first row of the smaller matrix of vectors real
        angles, is_wide = u_part + v_part, len(u) < vt.shape[1]
        u_bar = u_bar - phase_adjoint(u, angles, is_wide)
        vt_bar = vt_bar - phase_adjoint(vt.conj().T, angles, not is_wide).conj().T
        u_part, v_part = matrix_matrix(u.conj().T, u_bar), matrix_matrix(vt, vt_bar.conj().T)
    for i in range(k):
        for j in range(k):
            gap = (s[j] - s[i]) * (s[j] + s[i])
            left, right = u_part[i, j] - u_part[j, i].conjugate(), v_part[i, j] - v_part[j, i].conjugate()
            if gap != 0.0:
                middle[i, j] = (left * s[j] + s[i] * right) / gap
            elif is_polar and s[i] != 0.0:
                middle[i, j] = 0.5 * (left - right) / (s[i] + s[j])
            else:
                of_left, of_right = left_undefined[i] + left_undefined[j], right_undefined[i] + right_undefined[j]
                middle[i, j] = strong_multiply(of_left + of_right, np.nan)
        if s[i] != 0.0 or not is_polar:
            middle[i, i] = s_bar[i]
        if is_complex_type(a.dtype) and s[i] != 0.0:
            middle[i, i] += 1j * u_part[i, i].imag / s[i]
    a_bar = matrix_matrix(matrix_matrix(u, middle), vt)
    if u.shape[0] > k:  # the part outside the space of the vectors
        a_bar += matrix_matrix(divided(u_bar - matrix_matrix(u, u_part), s, left_undefined), vt)
    if vt.shape[1] > k:
        beside = (vt_bar - matrix_matrix(v_part.conj().T, vt)).T
        a_bar += matrix_matrix(u, divided(beside, s, right_undefined).T)
    return (a_bar,)


def divided(columns: Any, by: Any, undefined: Any) -> Any:
    """Each column divided by a number. If that is zero, the column is undefined."""
    rows, count = columns.shape
    result = np.zeros((rows, count), columns.dtype)
    for j in range(count):
        for i in range(rows):
            result[i, j] = columns[i, j] / by[j] if by[j] != 0.0 else strong_multiply(undefined[j], np.nan)
    return result


def all_singular_vectors_adjoint(a: Any, u: Any, s: Any, vt: Any, u_bar: Any, s_bar: Any, vt_bar: Any) -> Any:
    u1_bar, v1_bar = adjoints_of_first_vectors(u, vt, u_bar, vt_bar, len(s))
    return decomposition_adjoint(a, u[:, : len(s)], s, vt[: len(s)], u1_bar, s_bar, v1_bar, False)


def square_polar_factor_adjoint(a: Any, u: Any, s: Any, vt: Any, u_bar: Any, s_bar: Any, vt_bar: Any) -> Any:
    u1_bar, v1_bar = adjoints_of_first_vectors(u, vt, u_bar, vt_bar, len(s))
    return decomposition_adjoint(a, u[:, : len(s)], s, vt[: len(s)], u1_bar, s_bar, v1_bar, True)


def adjoints_of_first_vectors(u: Any, vt: Any, u_bar: Any, vt_bar: Any, k: Any) -> Any:
    """The vectors beyond the singular values only stay orthogonal: U2' = -U1 U1'^H U2, and the same on the right."""
    u1, v1 = u[:, :k], vt[:k]
    u1_bar = u_bar[:, :k] - matrix_matrix(u[:, k:], matrix_matrix(u_bar[:, k:].conj().T, u1))
    v1_bar = vt_bar[:k] - matrix_matrix(matrix_matrix(v1, vt_bar[k:].conj().T), vt[k:])
    return np.asarray(u1_bar), np.asarray(v1_bar)


def orthogonal_triangular_adjoint(a: Any, q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """Walter and Lehmann 2013; Roberts and Roberts 2020 for a matrix with more columns than rows."""
    k, n = r.shape
    beside_bar = r_bar[:, k:]
    more = q_bar + matrix_matrix(a[:, k:], beside_bar.conj().T)
    a_bar = np.empty((len(a), n), a.dtype)
    a_bar[:, :k] = square_triangular_adjoint(q, r[:, :k], np.asarray(more), r_bar[:, :k])
    a_bar[:, k:] = matrix_matrix(q, beside_bar)
    return (a_bar,)


def square_triangular_adjoint(q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """For a matrix with as many columns as R. The last row of a square R may be zero, so nothing is divided by it."""
    k = len(r)
    upper = np.zeros((k, k), r.dtype)
    for i in range(k):
        for j in range(i, k):
            upper[i, j] = r_bar[i, j]
    turned, product = matrix_matrix(q.conj().T, q_bar), matrix_matrix(r, upper.conj().T)
    below = np.zeros((k, k), r.dtype)
    for i in range(k):
        for j in range(i):
            rest = turned[j, i].conjugate()
            below[i, j] = turned[i, j] - rest + product[i, j] - product[j, i].conjugate()
        if is_complex_type(r.dtype) and r[i, i] != 0.0:  # the diagonal of R is real
            below[i, i] = 1j * (turned[i, i] + product[i, i]).imag
    a_bar = matrix_matrix(q, upper + over_transposed(below, r, True))
    if len(q) > k:  # the part outside the space of the columns
        a_bar += over_transposed(np.asarray(q_bar - matrix_matrix(q, turned)), r, False)
    return a_bar


def over_transposed(y: Any, r: Any, is_lower: bool) -> Any:
    """The X with X R^H = y, for an upper triangle R.

    Where y is zero above the diagonal, X is zero too. A real y of this kind is also zero on the diagonal.
    """
    rows, k = y.shape
    result = np.zeros((rows, k), y.dtype)
    for i in range(rows):
        if is_complex_type(r.dtype) and is_lower and r[i, i] != 0.0:
            result[i, i] = y[i, i] / r[i, i]
        for j in range(min(i, k) - 1 if is_lower else k - 1, -1, -1):
            total = y[i, j]
            for m in range(j + 1, k):
                total -= result[i, m] * r[j, m].conjugate()
            result[i, j] = total / r[j, j]
    return result


# -------------------------------------------------------------------------------------------------------- least squares


def pseudo_inverse_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    """Golub and Pereyra 1973. The rank is assumed to be constant."""
    straight = matrix_matrix(matrix_matrix(out.conj().T, out_bar), out.conj().T)
    left = matrix_matrix(out_bar.conj().T, matrix_matrix(out, out.conj().T))
    right = matrix_matrix(matrix_matrix(out.conj().T, out), out_bar.conj().T)
    rest = left - matrix_matrix(a, matrix_matrix(out, left)) - matrix_matrix(matrix_matrix(right, out), a)
    return (rest + right - straight,)


def least_squares_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    """Through the pseudo-inverse P: x = P b (Golub and Pereyra 1973)."""
    p = pseudo_inverse(a)
    b_bar = matrix_matrix(p.conj().T, out_bar)
    residual = b - matrix_matrix(a, out)
    beside = out_bar - matrix_matrix(p, matrix_matrix(a, out_bar))
    by_residual = matrix_matrix(residual, matrix_matrix(p, b_bar).conj().T)
    by_null_space = matrix_matrix(matrix_matrix(p.conj().T, out), beside.conj().T)
    return by_residual + by_null_space - matrix_matrix(b_bar, out.conj().T), b_bar


def residuals_adjoint(a: Any, b: Any, out: Any, out_bar: Any) -> Any:
    """The derivative with respect to the solution is zero there, so the solution is treated as a constant."""
    x = least_squares(a, b)
    scaled = np.zeros(b.shape, a.dtype)
    if len(out) > 0:
        scaled[...] = 2.0 * (b - matrix_matrix(a, x)) * out_bar
    return -matrix_matrix(scaled, x.conj().T), scaled


# ----------------------------------------------------------------------------------------------------------------- rows

_LEAST_SQUARES = "np.linalg.lstsq({0}, {1}, np.finfo({0}.dtype).eps * max({0}.shape))"

matrix_matrix = row("matrix_matrix", "{0} @ {1}", "ij,jk->ik", matrix_matrix_adjoint, takes_complex=True)
matrix_vector = row("matrix_vector", "{0} @ {1}", "ij,j->i", matrix_vector_adjoint, takes_complex=True)
vector_matrix = row("vector_matrix", "{1} @ {0}", "ij,i->j", vector_matrix_adjoint, takes_complex=True)
"""Functions that take the matrix first."""
vector_vector = row("vector_vector", "np.dot({0}, {1})", "i,i->", vector_vector_adjoint, takes_complex=True)
INTO = {
    product.name: row(f"{product.name}_into", f"np.dot({of}, {{2}})", f"{taken},{given}->{given}", takes_complex=True)
    for product, of in ((matrix_matrix, "{0}, {1}"), (matrix_vector, "{0}, {1}"), (vector_matrix, "{1}, {0}"))
    for taken, given in (product.shapes.split("->"),)
}
"""Products that are written into their last argument, an array: passes/product_buffers.py."""
solve_matrix = row("solve", "np.linalg.solve({0}, {1})", "ii,ij->ij", solve_matrix_adjoint, takes_complex=True)
solve_vector = row("solve_vector", "np.linalg.solve({0}, {1})", "ii,i->i", solve_vector_adjoint, takes_complex=True)
solve_lower = substitution("solve_lower", "ii,ij->ij", solve_lower_adjoint)
solve_lower_transposed = substitution("solve_lower_transposed", "ii,ij->ij", solve_lower_transposed_adjoint)
solve_lower_transposed_upper = substitution(
    "solve_lower_transposed_upper", "ii,ii->ii", solve_lower_transposed_upper_adjoint
)
lower_product = substitution("lower_product", "ii,ii->ii", lower_product_adjoint)
solve_lower_vector = substitution("solve_lower_vector", "ii,i->i", solve_lower_vector_adjoint)
solve_lower_transposed_vector = substitution(
    "solve_lower_transposed_vector", "ii,i->i", solve_lower_transposed_vector_adjoint
)
triangular_factors = row(
    "lu_factor",
    "lu_factors({0})",
    "ii->ii,i",
    triangular_factors_adjoint,
    dtypes=("", "int64"),
    support="lu_factors",
)
BY_FACTORS = {
    (call.name, is_transposed): row(
        f"{call.name}_lu{'_transposed' if is_transposed else ''}",
        f"solve_lu({{0}}, {{1}}, {{2}}, {is_transposed})",
        f"ii,i,{shapes}->{shapes}",
        support="solve_lu",
    )
    for call, shapes in ((solve_matrix, "ij"), (solve_vector, "i"))
    for is_transposed in (False, True)
}
"""Calls with the factors and pivots of a matrix, by the general call and whether its matrix is the transpose:
passes/shared_factors.py."""
inverse = row("inv", "np.linalg.inv({0})", "ii->ii", inverse_adjoint, takes_complex=True)
determinant = row("det", "np.linalg.det({0})", "ii->", determinant_adjoint, takes_complex=True)
log_determinant = row(
    "slogdet", "np.linalg.slogdet({0})", "ii->,", log_determinant_adjoint, ("", "real"), takes_complex=True
)
cholesky_factor = row("cholesky", "np.linalg.cholesky({0})", "ii->ii", cholesky_adjoint, takes_complex=True)
eigenvectors = row("eigh", "np.linalg.eigh({0})", "ii->i,ii", eigenvectors_adjoint, ("real", ""), takes_complex=True)
any_eigenvectors = row("eig", "real_eig({0})", "ii->i,ii", any_eigenvectors_adjoint, support="real_eig")
complex_eigenvectors = row(
    "eig_of_complex", "np.linalg.eig({0})", "ii->i,ii", complex_eigenvectors_adjoint, takes_complex=True
)
_ONLY_VECTORS = (True, False, True)
singular_values = row(
    *("svd", "np.linalg.svd({0}, False)", "ij->ik,k,kj", singular_values_adjoint, ("", "real", "")),
    takes_complex=True,
    special=(_ONLY_VECTORS, polar_factor_adjoint),
)
all_singular_vectors = row(
    *("svd_full", "np.linalg.svd({0}, True)", "ij->ii,k,jj"),
    *(all_singular_vectors_adjoint, ("", "real", "")),
    takes_complex=True,
    special=(_ONLY_VECTORS, square_polar_factor_adjoint),
)
orthogonal_triangular = row("qr", "np.linalg.qr({0})", "ij->ik,kj", orthogonal_triangular_adjoint, takes_complex=True)
pseudo_inverse = row("pinv", "np.linalg.pinv({0})", "ij->ji", pseudo_inverse_adjoint, takes_complex=True)
least_squares = row("lstsq", _LEAST_SQUARES + "[0]", "ij,ik->jk", least_squares_adjoint, takes_complex=True)
residuals = row("lstsq_residuals", _LEAST_SQUARES + "[1]", "ij,ik->l", residuals_adjoint, ("real",), takes_complex=True)
real_roots = row("roots", "real_roots({0})", "i->j", support="real_roots")
complex_roots = row("roots_of_complex", "np.roots({0})", "i->j", takes_complex=True)
rank = row("matrix_rank", "np.linalg.matrix_rank({0})", "ij->", dtypes=("int64",), takes_complex=True)
order_of = row("argsort", "np.argsort({0}, kind='mergesort')", "i->i", None, ("int64",))
