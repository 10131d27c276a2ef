"""Matrix equations and functions of matrices: Sylvester, Riccati, banded equations, exponentials, roots, logarithms.

Each adjoint follows from the equation, and solves an equation of the same kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import (
    Ruled,
    inverse,
    log_determinant,
    matrix_matrix,
    solve_matrix,
    solve_vector,
)

# ----------------------------------------------------------------------------------------------- Sylvester and Lyapunov


def sylvester_solution(a: Any, b: Any, q: Any) -> Any:
    """The X with A X + X B = Q, as one linear system for all elements."""
    n, m = q.shape
    matrix, right = np.zeros((n * m, n * m), q.dtype), np.empty(n * m, q.dtype)
    for i in range(n):
        for j in range(m):
            right[i * m + j] = q[i, j]
            for k in range(n):
                matrix[i * m + j, k * m + j] += a[i, k]
            for k in range(m):
                matrix[i * m + j, i * m + k] += b[k, j]
    return np.reshape(solve_vector(matrix, right), (n, m))


def sylvester_adjoint(a: Any, b: Any, q: Any, out: Any, out_bar: Any) -> Any:
    q_bar = sylvester(np.asarray(a.T), np.asarray(b.T), out_bar)
    return -matrix_matrix(q_bar, out.T), -matrix_matrix(out.T, q_bar), q_bar


def sylvester_tangent(a: Any, b: Any, q: Any, out: Any, a_dot: Any, b_dot: Any, q_dot: Any) -> Any:
    return sylvester(a, b, np.asarray(q_dot - matrix_matrix(a_dot, out) - matrix_matrix(out, b_dot)))


sylvester = Ruled(sylvester_solution, sylvester_adjoint, sylvester_tangent)


def stein_solution(a: Any, b: Any, q: Any) -> Any:
    """The X with X - A X B = Q, as one linear system for all elements."""
    n, m = q.shape
    matrix, right = np.zeros((n * m, n * m), q.dtype), np.empty(n * m, q.dtype)
    for i in range(n):
        for j in range(m):
            right[i * m + j] = q[i, j]
            for k in range(n):
                for p in range(m):
                    matrix[i * m + j, k * m + p] = -a[i, k] * b[p, j]
            matrix[i * m + j, i * m + j] += 1.0
    return np.reshape(solve_vector(matrix, right), (n, m))


def stein_adjoint(a: Any, b: Any, q: Any, out: Any, out_bar: Any) -> Any:
    q_bar = stein(np.asarray(a.T), np.asarray(b.T), out_bar)
    a_bar = matrix_matrix(q_bar, matrix_matrix(out, b).T)
    return a_bar, matrix_matrix(matrix_matrix(a, out).T, q_bar), q_bar


def stein_tangent(a: Any, b: Any, q: Any, out: Any, a_dot: Any, b_dot: Any, q_dot: Any) -> Any:
    by_a, by_b = matrix_matrix(a_dot, matrix_matrix(out, b)), matrix_matrix(matrix_matrix(a, out), b_dot)
    return stein(a, b, np.asarray(q_dot + by_a + by_b))


stein = Ruled(stein_solution, stein_adjoint, stein_tangent)

# -------------------------------------------------------------------------------------------------------------- Riccati


def riccati_solution(a: Any, s: Any, q: Any) -> Any:
    """The stabilizing X with A^T X + X A - X S X + Q = 0, from the sign of the Hamiltonian matrix (Roberts 1980)."""
    n = len(a)
    z = np.empty((2 * n, 2 * n), a.dtype)
    for i in range(n):
        for j in range(n):
            z[i, j], z[i, n + j] = a[i, j], -s[i, j]
            z[n + i, j], z[n + i, n + j] = -q[i, j], -a[j, i]
    change, size, count = 1.0, 1.0, 0
    while change > 1e-14 * size:
        count += 1
        if count > 100:
            raise np.linalg.LinAlgError("Failed to find a finite solution.")
        scale = math.exp(-log_determinant(z)[1] / (2 * n))
        turned = inverse(z)
        change, size = 0.0, 0.0
        for i in range(2 * n):
            for j in range(2 * n):
                new = 0.5 * (scale * z[i, j] + turned[i, j] / scale)
                change = max(change, abs(new - z[i, j]))
                size = max(size, abs(new))
                z[i, j] = new
    # sign(H) (I; X) = -(I; X): two conditions for X, by least squares
    left, right = np.empty((2 * n, n), a.dtype), np.empty((2 * n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            one = 1.0 if i == j else 0.0
            left[i, j], left[n + i, j] = z[i, n + j], z[n + i, n + j] + one
            right[i, j], right[n + i, j] = -z[i, j] - one, -z[n + i, j]
    x = solve_matrix(matrix_matrix(left.T, left), matrix_matrix(left.T, right))
    for _ in range(2):  # Newton's method recovers the accuracy that the squared condition loses
        closed = a - matrix_matrix(s, x)
        rest = matrix_matrix(a.T, x) + matrix_matrix(x, a) - matrix_matrix(matrix_matrix(x, s), x) + q
        x = np.asarray(x - sylvester_solution(np.asarray(closed.T), closed, rest))
    return 0.5 * (x + x.T)


def riccati_adjoint(a: Any, s: Any, q: Any, out: Any, out_bar: Any) -> Any:
    """From the Lyapunov equation of the closed loop C = A - S X: C^T dX + dX C = -(dA^T X + X dA - X dS X + dQ)."""
    closed = np.asarray(a - matrix_matrix(s, out))
    q_bar = sylvester(closed, np.asarray(closed.T), np.asarray(-0.5 * (out_bar + out_bar.T)))
    a_bar = matrix_matrix(out, q_bar + q_bar.T)
    return a_bar, -matrix_matrix(matrix_matrix(out, q_bar), out), q_bar


def riccati_tangent(a: Any, s: Any, q: Any, out: Any, a_dot: Any, s_dot: Any, q_dot: Any) -> Any:
    closed = np.asarray(a - matrix_matrix(s, out))
    by_a = matrix_matrix(out, a_dot)
    right = matrix_matrix(matrix_matrix(out, s_dot), out) - q_dot - by_a - by_a.T
    return sylvester(np.asarray(closed.T), closed, np.asarray(0.5 * (right + right.T)))


riccati = Ruled(riccati_solution, riccati_adjoint, riccati_tangent)

# ----------------------------------------------------------------------------------------------------- banded equations


def banded_solution(below: Any, above: Any, ab: Any, b: Any) -> Any:
    """The X with A X = B for a matrix in diagonal ordered form: Gaussian elimination with row exchanges."""
    n, columns = b.shape
    width = 2 * below + above + 1
    rows, x = np.zeros((n, width), ab.dtype), np.empty((n, columns), ab.dtype)
    for i in range(n):  # each row, from its first column that may be nonzero
        for j in range(max(i - below, 0), min(i + above + 1, n)):
            rows[i, j - i + below] = ab[above + i - j, j]
        for k in range(columns):
            x[i, k] = b[i, k]
    for k in range(n):
        best = k
        for i in range(k + 1, min(k + below + 1, n)):
            if abs(rows[i, k - i + below]) > abs(rows[best, k - best + below]):
                best = i
        if rows[best, k - best + below] == 0.0:
            raise np.linalg.LinAlgError("singular matrix")
        if best != k:
            for j in range(k, min(k + below + above + 1, n)):
                kept = rows[k, j - k + below]
                rows[k, j - k + below] = rows[best, j - best + below]
                rows[best, j - best + below] = kept
            for j in range(columns):
                held = x[k, j]
                x[k, j] = x[best, j]
                x[best, j] = held
        for i in range(k + 1, min(k + below + 1, n)):
            factor = rows[i, k - i + below] / rows[k, below]
            for j in range(k, min(k + below + above + 1, n)):
                rows[i, j - i + below] -= factor * rows[k, j - k + below]
            for j in range(columns):
                x[i, j] -= factor * x[k, j]
    for i in range(n - 1, -1, -1):
        for k in range(columns):
            for j in range(i + 1, min(i + below + above + 1, n)):
                x[i, k] -= rows[i, j - i + below] * x[j, k]
            x[i, k] /= rows[i, below]
    return x


def banded_transpose(below: Any, above: Any, ab: Any) -> Any:
    """The transpose of a matrix in diagonal ordered form, in the same form. Elements outside the matrix are zero."""
    n = ab.shape[1]
    result = np.zeros((below + above + 1, n), ab.dtype)
    for j in range(n):
        for i in range(max(j - above, 0), min(j + below + 1, n)):
            result[below + j - i, i] = ab[above + i - j, j]
    return result


def banded_adjoint(below: Any, above: Any, ab: Any, b: Any, out: Any, out_bar: Any) -> Any:
    b_bar = banded(above, below, banded_transpose(below, above, ab), out_bar)
    n, columns = out.shape
    ab_bar = np.zeros(ab.shape, ab.dtype)
    for j in range(n):
        for i in range(max(j - above, 0), min(j + below + 1, n)):
            for k in range(columns):
                ab_bar[above + i - j, j] -= b_bar[i, k] * out[j, k]
    return None, None, ab_bar, b_bar


def banded_tangent(
    below: Any, above: Any, ab: Any, b: Any, out: Any, below_dot: Any, above_dot: Any, ab_dot: Any, b_dot: Any
) -> Any:
    right = np.copy(b_dot)
    n, columns = out.shape
    for j in range(n):
        for i in range(max(j - above, 0), min(j + below + 1, n)):
            for k in range(columns):
                right[i, k] -= ab_dot[above + i - j, j] * out[j, k]
    return banded(below, above, ab, right)


banded = Ruled(banded_solution, banded_adjoint, banded_tangent)

# ------------------------------------------------------------------------------------------------ functions of matrices


def exponential(a: Any) -> Any:
    """By scaling and squaring with a Pade approximant of degree 13 (Higham 2005). Its text is differentiated."""
    n = len(a)
    size = 0.0
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += abs(a[i, j])
        if not total <= size:
            size = total
    squarings = 0
    while size > 5.371920351148152 and squarings < 1100:
        size *= 0.5
        squarings += 1
    a = a * 0.5**squarings
    b = (
        *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
        *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
    )
    one = np.asarray(np.eye(n, dtype=a.dtype))
    a2 = matrix_matrix(a, a)
    a4 = matrix_matrix(a2, a2)
    a6 = matrix_matrix(a2, a4)
    high = matrix_matrix(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    u = matrix_matrix(a, high + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = matrix_matrix(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    v = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    result = solve_matrix(v - u, v + u)
    for _ in range(squarings):
        result = matrix_matrix(result, result)
    return result


def principal_root(a: Any) -> Any:
    """The X with X X = A whose eigenvalues have positive real parts."""
    root, is_found = root_iterated(a)
    if not is_found:
        raise np.linalg.LinAlgError("the matrix is singular, or its square root is not real: neither is supported")
    return root


def root_iterated(a: Any) -> Any:
    """The principal square root, and whether it was found (Denman and Beavers 1976)."""
    n = len(a)
    y, z = a.copy(), np.asarray(np.eye(n, dtype=a.dtype))
    change, size, count = 1.0, 1.0, 0
    while change > 1e-15 * size:
        count += 1
        if count > 60:
            return y, change <= 1e-11 * size
        scale = 1.0
        if change > 1e-2 * size:
            (sign, logarithm_y), (other, logarithm_z) = log_determinant(y), log_determinant(z)
            if sign * other == 0.0:
                return y, False
            scale = math.exp(-(logarithm_y + logarithm_z) / (2 * n))
        y_inverse, z_inverse = inverse(y), inverse(z)
        before = change
        change, size = 0.0, 0.0
        for i in range(n):
            for j in range(n):
                new = 0.5 * (scale * y[i, j] + z_inverse[i, j] / scale)
                change = max(change, abs(new - y[i, j]))
                size = max(size, abs(new))
                y[i, j] = new
                z[i, j] = 0.5 * (scale * z[i, j] + y_inverse[i, j] / scale)
        if change >= before and change <= 1e-11 * size:  # only rounding errors remain
            break
    return y, True


def principal_root_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    """From X dX + dX X = dA."""
    return (sylvester(np.asarray(out.T), np.asarray(out.T), out_bar),)


def principal_root_tangent(a: Any, out: Any, a_dot: Any) -> Any:
    return sylvester(out, out, a_dot)


square_root = Ruled(principal_root, principal_root_adjoint, principal_root_tangent)


def principal_logarithm(a: Any) -> Any:
    """By square roots until the matrix is near one, then a Pade approximant as a sum of fractions (Higham 2008)."""
    n = len(a)
    one = np.asarray(np.eye(n, dtype=a.dtype))
    x, roots, distance = a.copy(), 0, 1.0
    while distance > 0.25:
        distance = 0.0
        for j in range(n):
            total = 0.0
            for i in range(n):
                total += abs(x[i, j] - one[i, j])
            distance = max(distance, total)
        if distance > 0.25:
            roots += 1
            x, is_found = root_iterated(x)
            if roots > 100 or not is_found:
                raise np.linalg.LinAlgError(
                    "the matrix is singular, or its logarithm is not real: neither is supported"
                )
    y = x - one
    result = np.zeros((n, n), a.dtype)
    for place, weight in (  # Gauss-Legendre quadrature between 0 and 1
        (0.019855071751231912, 0.05061426814518853),
        (0.10166676129318664, 0.11119051722668721),
        (0.2372337950418355, 0.15685332293894344),
        (0.4082826787521751, 0.18134189168918083),
        (0.5917173212478248, 0.18134189168918083),
        (0.7627662049581645, 0.15685332293894344),
        (0.8983332387068134, 0.11119051722668721),
        (0.9801449282487681, 0.05061426814518853),
    ):
        result += weight * solve_matrix(one + place * y, y)
    return result * 2.0**roots


def principal_logarithm_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    """The derivative in a direction E is a block of the logarithm of ((A, E), (0, A)) (Higham 2008, 3.16)."""
    n = len(a)
    block = np.zeros((2 * n, 2 * n), a.dtype)
    for i in range(n):
        for j in range(n):
            block[i, j] = a[j, i]
            block[n + i, n + j] = a[j, i]
            block[i, n + j] = out_bar[i, j]
    return (np.copy(logarithm(block)[:n, n:]),)


def principal_logarithm_tangent(a: Any, out: Any, a_dot: Any) -> Any:
    n = len(a)
    block = np.zeros((2 * n, 2 * n), a.dtype)
    for i in range(n):
        for j in range(n):
            block[i, j] = a[i, j]
            block[n + i, n + j] = a[i, j]
            block[i, n + j] = a_dot[i, j]
    return np.copy(logarithm(block)[:n, n:])


logarithm = Ruled(principal_logarithm, principal_logarithm_adjoint, principal_logarithm_tangent)
