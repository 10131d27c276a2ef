"""Linear systems with the Jacobian matrix J of an equation: dense, banded, or by products with it only.

    linear(equation, x, right, is_transposed, shift)      the y with (J + shift I) y = right; or J^T instead of J

`grad`, `jacobian` and `jvp` are passed in, because the library does not import the modules that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import solve_vector
from srcdiff.library.language import implicitly, structural
from srcdiff.library.matrix_equations import banded, banded_transpose

METHODS = ("dense", "gmres", "cg")
ORDERS = ("solution", "first derivative")
"""What `matrix_free` solves. Names, not numbers: a function that calls itself with another name is read once more."""


@structural
def known_solver(name: Any, bands: Any) -> str:
    if name not in METHODS:
        raise ValueError(f"`linear_solver` must be one of {', '.join(map(repr, METHODS))}")
    if bands is not None and name != "dense":
        raise ValueError("`bands` is for `linear_solver='dense'`")
    return str(name)


def linear_solver_for(grad: Any, jacobian: Any, jvp: Any, name: Any, bands: Any) -> Any:
    method = known_solver(name, bands)

    def by_matrix(equation: Any, x: Any, right: Any, is_transposed: Any, shift: Any) -> Any:
        matrix = square_jacobian(jacobian, equation, x)
        for i in range(x.size):
            matrix[i, i] += shift
        return solved_equations(np.asarray(matrix.T) if is_transposed else matrix, right)

    def by_bands(equation: Any, x: Any, right: Any, is_transposed: Any, shift: Any) -> Any:
        below, above = bands
        ab = banded_jacobian(jvp, equation, x, below, above)
        for i in range(x.size):
            ab[above, i] += shift
        column = np.reshape(np.asarray(right), (x.size, 1))
        if is_transposed:
            return np.reshape(banded(above, below, banded_transpose(below, above, ab), column), x.shape)
        return np.reshape(banded(below, above, ab, column), x.shape)

    def by_products(equation: Any, x: Any, right: Any, is_transposed: Any, shift: Any) -> Any:
        return matrix_free(grad, jvp, by_matrix, method, equation, x, right, is_transposed, shift, ORDERS[0])

    if bands is not None:
        return by_bands
    return by_matrix if method == "dense" else by_products


# --------------------------------------------------------------------------------------------------------------- dense


def square_jacobian(jacobian: Any, equation: Any, x: Any) -> Any:
    """In new memory."""
    return np.copy(np.reshape(np.asarray(jacobian(equation)(x)), (x.size, x.size)))


def solved_equations(a: Any, b: Any) -> Any:
    b = np.asarray(b)
    return np.reshape(solve_vector(a, np.reshape(b, b.size)), b.shape)


# -------------------------------------------------------------------------------------------------------------- banded


def banded_jacobian(jvp: Any, equation: Any, x: Any, below: Any, above: Any) -> Any:
    """The diagonals of the Jacobian matrix, as `scipy.linalg.solve_banded` takes them.

    Columns that have no row in common are computed by one tangent (Curtis, Powell and Reid 1974). One more tangent
    checks that the other elements of the matrix are zero.
    """
    n = x.size
    width = below + above + 1
    ab = np.zeros((width, n), x.dtype)
    for color in range(min(width, n)):
        seed = np.zeros(n, x.dtype)
        for j in range(color, n, width):
            seed[j] = 1.0
        column = change_along(jvp, equation, x, seed)
        for j in range(color, n, width):
            for i in range(max(j - above, 0), min(j + below + 1, n)):
                ab[above + i - j, j] = column[i]
    if width < 2 * n - 1:
        require_band(jvp, equation, x, ab, below, above)
    return ab


def change_along(jvp: Any, equation: Any, x: Any, direction: Any) -> Any:
    change = np.asarray(jvp(equation, (x,), (np.reshape(direction, x.shape),))[1])
    return np.reshape(change, x.size)


def require_band(jvp: Any, equation: Any, x: Any, ab: Any, below: Any, above: Any) -> None:
    """Raise if the product of the Jacobian with a vector is not that of its diagonals."""
    n = x.size
    direction = np.empty(n, x.dtype)
    for j in range(n):
        direction[j] = 1.0 + 0.5 * np.sin(1.7 * j * j + 0.3 * j)
    change = change_along(jvp, equation, x, direction)
    scale = np.max(np.abs(ab), initial=0.0)
    tolerance = 1e-3 if is_single(x.dtype) else 1e-7
    for i in range(n):
        total, size = 0.0, 1e-6 * scale
        for j in range(max(i - below, 0), min(i + above + 1, n)):
            part = ab[above + i - j, j] * direction[j]
            total += part
            size += abs(part)
        if abs(change[i] - total) > tolerance * size:
            raise ValueError("the Jacobian matrix has nonzero elements outside of `bands`")


@structural
def is_single(dtype: Any) -> bool:
    return bool(np.dtype(dtype) == np.float32)


# --------------------------------------------------------------------------------------------------------- matrix-free


def matrix_free(
    grad: Any,
    jvp: Any,
    by_matrix: Any,
    method: Any,
    equation: Any,
    x: Any,
    right: Any,
    is_transposed: Any,
    shift: Any,
    order: Any,
) -> Any:
    """By a Krylov method. Its derivatives solve such systems, too; those of higher order form the matrix."""

    def transposed_times(y: Any) -> Any:
        direction = np.reshape(np.asarray(y), x.shape)
        product = np.asarray(grad(lambda z: np.sum(np.asarray(equation(z)) * direction))(x))
        return np.asarray(np.reshape(product, x.size) + shift * y)

    def times(y: Any) -> Any:
        if is_transposed and method != "cg":
            return transposed_times(y)
        product = np.asarray(jvp(equation, (x,), (np.reshape(np.asarray(y), x.shape),))[1])
        return np.asarray(np.reshape(product, x.size) + shift * y)

    def system(y: Any) -> Any:
        return times(y) - np.reshape(np.asarray(right), x.size)

    def solver(system: Any, start: Any) -> Any:
        b = np.copy(np.reshape(np.asarray(right), x.size))
        limit = (1e-5 if is_single(x.dtype) else 1e-11) * np.sqrt(np.sum(b * b))
        if method == "cg":
            found = conjugate_gradients(times, b, start, limit, 10 * x.size)
            if is_transposed:
                rest = np.asarray(transposed_times(found) - b)
                if np.sum(rest * rest) > (1e-4 if is_single(x.dtype) else 1e-12) * np.sum(b * b):
                    raise ValueError("the Jacobian matrix is not symmetric: use `linear_solver='gmres'`")
            return found
        return minimal_residuals(times, b, start, limit, 10 * x.size, min(x.size, 50))

    def again(right: Any, is_turned: Any) -> Any:
        if order == ORDERS[-1]:
            found = by_matrix(equation, x, np.reshape(right, x.shape), is_turned, shift)
        else:
            found = matrix_free(
                *(grad, jvp, by_matrix, method, equation, x, np.reshape(right, x.shape), is_turned, shift),
                next_order(order),
            )
        return np.reshape(np.asarray(found), x.size)

    def weights(system: Any, y: Any, y_bar: Any) -> Any:
        return again(-y_bar, not is_transposed)

    def change(system: Any, y: Any, r_dot: Any) -> Any:
        return again(-r_dot, is_transposed)

    return np.reshape(implicitly(solver, weights, change, system, np.zeros(x.size, x.dtype)), x.shape)


@structural
def next_order(order: str) -> str:
    return ORDERS[ORDERS.index(order) + 1]


# ------------------------------------------------------------------------------------------------------ Krylov methods


def conjugate_gradients(times: Any, b: Any, x0: Any, limit: Any, maxiter: Any) -> Any:
    """Hestenes and Stiefel 1952."""
    x = np.copy(x0)
    r = np.asarray(b - times(x))
    p = np.copy(r)
    before = 0.0
    for count in range(maxiter + 1):
        rho = np.sum(r * r)
        if np.sqrt(rho) <= limit:
            return x
        if count > 0:
            p[:] = r + (rho / before) * p
        q = times(np.copy(p))
        step = rho / np.sum(p * q)
        x += step * p
        r -= step * q
        before = rho
    raise RuntimeError("cg did not converge: pass a larger maxiter")


def minimal_residuals(times: Any, b: Any, x0: Any, limit: Any, maxiter: Any, restart: Any) -> Any:
    """Saad and Schultz 1986: an Arnoldi basis, and rotations that make its Hessenberg matrix triangular."""
    n = len(b)
    size = min(restart, n)
    x = np.copy(x0)
    basis, h = np.zeros((size + 1, n)), np.zeros((size + 1, size))
    cosines, sines, g = np.zeros(size), np.zeros(size), np.zeros(size + 1)
    for _ in range(maxiter + 1):
        r = np.asarray(b - times(x))
        norm = np.sqrt(np.sum(r * r))
        if norm <= limit:
            return x
        basis[0] = r / norm
        g[:] = 0.0
        g[0] = norm
        used = 0
        for j in range(size):
            w = np.asarray(times(np.copy(basis[j])))
            for i in range(j + 1):
                h[i, j] = np.sum(w * basis[i])
                w -= h[i, j] * basis[i]
            length = np.sqrt(np.sum(w * w))
            h[j + 1, j] = length
            for i in range(j):
                above = cosines[i] * h[i, j] + sines[i] * h[i + 1, j]
                h[i + 1, j] = cosines[i] * h[i + 1, j] - sines[i] * h[i, j]
                h[i, j] = above
            radius = np.sqrt(h[j, j] * h[j, j] + length * length)
            if radius == 0.0:
                raise RuntimeError("gmres broke down: the matrix is singular")
            cosines[j], sines[j] = h[j, j] / radius, length / radius
            h[j, j] = radius
            g[j + 1] = -sines[j] * g[j]
            g[j] = cosines[j] * g[j]
            used = j + 1
            if abs(g[j + 1]) <= limit or length == 0.0:
                break
            basis[j + 1] = w / length
        for i in range(used - 1, -1, -1):
            for k in range(i + 1, used):
                g[i] -= h[i, k] * g[k]
            g[i] /= h[i, i]
        for i in range(used):
            x += g[i] * basis[i]
    raise RuntimeError("gmres did not converge: pass a larger maxiter or restart")
