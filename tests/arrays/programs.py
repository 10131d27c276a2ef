"""Real programs in the style in which NumPy is written: whole arrays, slices and masks, with loops only over time.

This module does not import srcdiff. Each function returns a number; `program(...)` below it gives the points at which
it runs. They are small, because every derivative is compared with differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.arrays.rows import Point, Row, array, booleans, integers, positive_definite, regular, row

PROGRAMS: list[Row] = []


def program(
    function: Callable[..., Any],
    *points: Point,
    wrt: Sequence[int] | None = None,
    exact: tuple[Any, ...] | None = None,
) -> None:
    """Register a function with its points."""
    PROGRAMS.append(row(function.__name__, function, points, wrt=wrt, exact=exact))


# ------------------------------------------------------------------------------------------------- stencils and sweeps


def jacobi_1d(a, steps):
    """Three-point averages, back and forth between two arrays."""
    b = a.copy()
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0
    return np.sum(a * a) + a[len(a) // 2]


program(jacobi_1d, (array(9), 3), (array(3), 1), (array(5), 0))


def jacobi_2d(a, b, steps):
    """Five-point averages, back and forth between two arrays."""
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(np.sin(a)) + np.mean(b**2)


program(jacobi_2d, (array(5, 6), array(5, 6, start=0.5), 2))


def jacobi_solver(a, b, steps):
    """A linear system, solved by splitting off the diagonal."""
    d = np.diag(a)
    rest = a - np.diag(d)
    x = np.zeros_like(b)
    for _ in range(steps):
        x = (b - rest @ x) / d
    return np.linalg.norm(x) + x[0]


program(jacobi_solver, (regular(4, 4) + 2.0 * np.eye(4), array(4, start=0.4), 5))


def jacobi_until_converged(f, tolerance):
    """Poisson's equation: sweep until the largest change is small."""
    u = np.zeros((f.shape[0] + 2, f.shape[1] + 2))
    change = 1.0
    sweeps = 0
    while change > tolerance and sweeps < 100:
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2] - f)
        change = np.max(np.abs(u - old))
        sweeps += 1
    return np.sum(u**2)


program(jacobi_until_converged, (array(3, 4), 1.3e-3), (array(1, 1), 1.3e-3), wrt=(0,))


def gauss_seidel(a, steps):
    """Nine-point averages in place: columns in order, with the rows above and below as whole slices."""
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:]
            a[i, 1:-1] += a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, a.shape[1] - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return np.sum(a * a)


program(gauss_seidel, (array(5, 5), 2))


def red_black_gauss_seidel(u, f, omega, sweeps):
    """Over-relaxation on a chequerboard of strided slices."""
    for _ in range(sweeps):
        for colour in range(2):
            for start in range(1, 3):
                other = 1 + (start + colour) % 2
                centre = u[start:-1:2, other:-1:2]
                around = (
                    u[start - 1 : -2 : 2, other:-1:2]
                    + u[start + 1 :: 2, other:-1:2]
                    + u[start:-1:2, other - 1 : -2 : 2]
                    + u[start:-1:2, other + 1 :: 2]
                )
                centre += omega * (0.25 * (around - f[start:-1:2, other:-1:2]) - centre)
    return np.sum(u[1:-1, 1:-1] ** 2)


program(red_black_gauss_seidel, (array(6, 6), array(6, 6, start=0.5), 1.3, 2))


def heat_3d(a, alpha, steps):
    """Diffusion in three dimensions, explicit, with two arrays exchanged."""
    b = np.copy(a)
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = (
            alpha * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + alpha * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + alpha * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a, b = b, a
    return np.sum(a[1:-1, 1:-1, 1:-1] ** 2) + np.max(b)


program(heat_3d, (array(4, 4, 5), 0.11, 3))


def heat_inverse(u0, kappa, observed, steps):
    """The misfit of a rod's temperatures. Every face has a conductivity, and the ends are isolated."""
    u = u0.copy()
    for _ in range(steps):
        flux = kappa * (u[1:] - u[:-1])
        u[:-1] += flux
        u[1:] -= flux
    return 0.5 * np.sum((u - observed) ** 2)


program(heat_inverse, (array(6), array(5, low=0.1, high=0.3), array(6, start=0.5), 4))


def heat_implicit(u, kappa, steps):
    """Crank-Nicolson with a dense solve."""
    n = len(u)
    laplace = np.eye(n, k=1) + np.eye(n, k=-1) - 2.0 * np.eye(n)
    left = np.eye(n) - 0.5 * kappa * laplace
    right = np.eye(n) + 0.5 * kappa * laplace
    for _ in range(steps):
        u = np.linalg.solve(left, right @ u)
    return u @ u


program(heat_implicit, (array(5), 0.4, 3))


def fdtd_2d(ex, ey, hz, source):
    """Electromagnetic waves on a staggered grid, driven at one edge."""
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return np.sum(hz**2) + np.sum(ex * ey)


program(fdtd_2d, (array(4, 5), array(4, 5, start=0.4), array(4, 5, start=0.7), array(3, start=0.2)))


def wave_absorbing(u, speed, steps):
    """A wave equation with sponge layers as a vector of damping."""
    n = u.shape[0]
    position = np.linspace(-1.0, 1.0, n)
    damping = np.where(np.abs(position) > 0.6, 5.0 * (np.abs(position) - 0.6) ** 2, 0.0)
    before = u.copy()
    for _ in range(steps):
        laplace = np.zeros(n)
        laplace[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
        after = (2.0 - damping) * u - (1.0 - damping) * before + speed**2 * laplace
        before, u = u, after
    return np.sum(u * u) + np.sum(before * u)


program(wave_absorbing, (array(8), array(8, low=0.3, high=0.6, start=0.4), 4))


def upwind_advection(q, velocity, dt, steps):
    """First-order upwind on a ring, the side chosen by the sign of the velocity."""
    for _ in range(steps):
        ahead = np.roll(q, -1) - q
        behind = q - np.roll(q, 1)
        q = q - dt * np.where(velocity > 0.0, velocity * behind, velocity * ahead)
    return np.sum(q**3)


program(upwind_advection, (array(7), array(7, start=0.55), 0.3, 4))


def limited_advection(q, courant, steps):
    """Second order with the van Leer limiter, written with masks."""
    for _ in range(steps):
        d = np.roll(q, -1) - q
        product = d * np.roll(d, 1)
        total = d + np.roll(d, 1)
        slope = np.zeros_like(q)
        rising = product > 0.0
        slope[rising] = 2.0 * product[rising] / total[rising]
        face = q + 0.5 * (1.0 - courant) * slope
        q = q - courant * (face - np.roll(face, 1))
    return np.sum(q**2) + q[0]


program(limited_advection, (array(8), 0.4, 3))


def vertical_advection(u, velocity, dt):
    """Implicit in the vertical: the Thomas algorithm over planes of columns."""
    levels = u.shape[0]
    upper = np.zeros_like(u)
    right = np.zeros_like(u)
    weight = 0.25 * dt * velocity[1:]
    upper[0] = weight[0]
    diagonal = 1.0 - weight[0]
    upper[0] /= diagonal
    right[0] = (u[0] - weight[0] * (u[1] - u[0])) / diagonal
    for k in range(1, levels - 1):
        lower = -0.25 * dt * velocity[k]
        upper[k] = 0.25 * dt * velocity[k + 1]
        diagonal = 1.0 - lower - upper[k]
        change = lower * (u[k - 1] - u[k]) + upper[k] * (u[k + 1] - u[k])
        divisor = 1.0 / (diagonal - upper[k - 1] * lower)
        upper[k] *= divisor
        right[k] = (u[k] - change - right[k - 1] * lower) * divisor
    lower = -0.25 * dt * velocity[levels - 1]
    right[-1] = (u[-1] - lower * (u[-2] - u[-1]) - right[-2] * lower) / (1.0 - lower - upper[-2] * lower)
    out = np.empty_like(u)
    out[-1] = right[-1]
    for k in range(levels - 2, -1, -1):
        out[k] = right[k] - upper[k] * out[k + 1]
    return np.sum((out - u) ** 2) + np.sum(out[:, 0, 1] ** 3)


program(vertical_advection, (array(5, 2, 3), array(5, 2, 3, start=0.4), 0.7))


def horizontal_diffusion(field, limit):
    """Fourth-order diffusion of a field by differences of its Laplacian, with limited fluxes."""
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flux_x = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux_x = np.where(flux_x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0.0, 0.0, flux_x)
    flux_y = lap[1:-1, 1:] - lap[1:-1, :-1]
    flux_y = np.where(flux_y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0.0, 0.0, flux_y)
    out = field[2:-2, 2:-2] - limit * (flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1])
    return np.sum(out**2)


program(horizontal_diffusion, (array(6, 7), 0.3))


def tridiagonal(lower, diagonal, upper, right):
    """The Thomas algorithm for many right-hand sides at once."""
    n = diagonal.shape[0]
    for k in range(1, n):
        factor = lower[k - 1] / diagonal[k - 1]
        diagonal[k] -= factor * upper[k - 1]
        right[k] -= factor * right[k - 1]
    right[-1] /= diagonal[-1]
    for k in range(n - 2, -1, -1):
        right[k] = (right[k] - upper[k] * right[k + 1]) / diagonal[k]
    return np.sum(right**2)


program(tridiagonal, (array(4), array(5, low=2.0, high=3.0), array(4, start=0.4), array(5, 2, start=0.6)))


# -------------------------------------------------------------------------------------------------- linear algebra


def cholesky_rows(a):
    """A Cholesky factor by rows, with dot products of slices."""
    n = a.shape[0]
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.sum(np.tril(a)) + 2.0 * np.sum(np.log(np.diag(a)))


program(cholesky_rows, (positive_definite(4),), (positive_definite(1),))


def cholesky_columns(a):
    """A Cholesky factor by columns, with rank-one updates of the remaining matrix."""
    n = a.shape[0]
    factor = np.zeros((n, n))
    rest = a.copy()
    for k in range(n):
        factor[k:, k] = rest[k:, k] / np.sqrt(rest[k, k])
        rest[k + 1 :, k + 1 :] -= np.outer(factor[k + 1 :, k], factor[k + 1 :, k])
    return np.sum(factor**3)


program(cholesky_columns, (positive_definite(4),))


def lu_in_place(a, b):
    """Elimination without pivots by outer products, then both triangular solves."""
    n = len(b)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    x = b.copy()
    for i in range(1, n):
        x[i] -= a[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x**2)


program(lu_in_place, (regular(4, 4), array(4, start=0.4)))


def gauss_with_pivots(a, b):
    """Elimination with row exchanges. The pivot is the largest entry of the column."""
    n = len(b)
    work = np.column_stack((a, b))
    for k in range(n):
        pivot = k + np.argmax(np.abs(work[k:, k]))
        if pivot != k:
            work[[k, pivot]] = work[[pivot, k]]
        work[k + 1 :] -= np.outer(work[k + 1 :, k] / work[k, k], work[k])
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (work[i, -1] - work[i, :n] @ x) / work[i, i]
    return np.sum(x * np.arange(1, n + 1))


program(gauss_with_pivots, (array(4, 4) + np.eye(4)[::-1], array(4, start=0.4)), (regular(3, 3), array(3)))


def gram_schmidt(a):
    """Orthogonal columns, the modified way."""
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.sum(a[:, k] * a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
    return np.sum(q**3) + np.sum(r * np.arange(1.0, n + 1.0))


program(gram_schmidt, (array(5, 3) + 2.0 * np.eye(5, 3),))


def householder(a):
    """Triangular form by reflections."""
    n = a.shape[1]
    for k in range(n):
        v = a[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        a[k:, k:] -= 2.0 * np.outer(v, v @ a[k:, k:])
    return np.sum(np.abs(np.diagonal(a))) + np.sum(np.triu(a[:n], 1) ** 2)


program(householder, (regular(4, 3),))


def durbin(r):
    """The Levinson-Durbin recursion: a Toeplitz system, with reversed slices."""
    n = len(r)
    y = np.zeros_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return np.sum(y * y)


program(durbin, (array(6, low=-0.4, high=0.4),), (array(1, low=0.1, high=0.4),))


def triangular_solve(lower, b):
    """Forward substitution, and backward with the transpose."""
    n = b.shape[0]
    x = np.zeros_like(b)
    for i in range(n):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    upper = lower.T
    y = np.zeros_like(b)
    for i in range(n - 1, -1, -1):
        y[i] = (x[i] - upper[i, i + 1 :] @ y[i + 1 :]) / upper[i, i]
    return y @ x


program(triangular_solve, (regular(4, 4), array(4, start=0.4)))


def triangular_matrix_solve(lower, b):
    """Many right-hand sides, one row of all at a time."""
    for i in range(b.shape[0]):
        b[i] = (b[i] - lower[i, :i] @ b[:i]) / lower[i, i]
    return np.sum(b**2)


program(triangular_matrix_solve, (regular(4, 4), array(4, 3, start=0.4)))


def conjugate_gradient(a, b, steps):
    """A fixed number of steps from zero."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rr = r @ r
    for _ in range(steps):
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        rr_new = r @ r
        p = r + (rr_new / rr) * p
        rr = rr_new
    return np.sum(x) + x @ x


program(conjugate_gradient, (positive_definite(4), array(4, start=0.4), 3))


def rank_updates(alpha, beta, a, b, c):
    """C = alpha (A Bᵀ + B Aᵀ) + beta C in the lower triangle."""
    n = a.shape[0]
    for i in range(n):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * alpha * b[i, k] + b[: i + 1, k] * alpha * a[i, k]
    return np.sum(c * c)


program(rank_updates, (1.3, 0.7, array(3, 2), array(3, 2, start=0.4), array(3, 3, start=0.7)))


def three_products(alpha, a, b, c, x):
    """Products of matrices and vectors in a row, with transposes."""
    first = alpha * a @ b @ c
    second = a.T @ (a @ x)
    return np.sum(first**2) + second @ x + np.trace(first @ first.T)


program(three_products, (0.7, array(2, 3), array(3, 2, start=0.4), array(2, 3, start=0.6), array(3, start=0.2)))


def power_method(a, steps):
    """The largest eigenvalue by iteration, then the second one after deflation."""
    n = a.shape[0]
    values = np.zeros(2)
    for k in range(2):
        v = np.ones(n) / np.sqrt(n)
        for _ in range(steps):
            v = a @ v
            v /= np.linalg.norm(v)
        values[k] = v @ a @ v
        a = a - values[k] * np.outer(v, v)
    return values[0] + 2.0 * values[1]


program(power_method, (positive_definite(3), 4))


# ------------------------------------------------------------------------------------------------------- statistics


def covariance(data, w):
    """The covariance of the columns, with a weight for every entry."""
    centred = data - data.mean(axis=0)
    cov = centred.T @ centred / (data.shape[0] - 1.0)
    return np.sum(cov * w)


program(covariance, (array(5, 3), array(3, 3, start=0.6)))


def correlation(data, w):
    """Correlations. A constant column is treated as if its deviation were one."""
    n = data.shape[0]
    mean = np.mean(data, axis=0)
    deviation = np.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    scaled = (data - mean) / (np.sqrt(n) * deviation)
    corr = np.eye(data.shape[1])
    for i in range(data.shape[1] - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = scaled[:, i] @ scaled[:, i + 1 :]
    return np.sum(corr * w)


_flat_column = array(5, 3)
_flat_column[:, 1] *= 0.02
program(correlation, (array(5, 3), array(3, 3, start=0.6)), (_flat_column, array(3, 3, start=0.6)))


def logistic_regression(w, b, x, y, penalty):
    """Cross-entropy without overflow, and a penalty."""
    z = x @ w + b
    loss = np.mean(np.logaddexp(0.0, z) - y * z)
    return loss + penalty * np.sum(w * w)


program(logistic_regression, (array(3), 0.2, array(6, 3, start=0.5), integers(0, 1, 1, 0, 1, 0), 0.1))


def ridge_solution(x, y, penalty):
    """The error of a fit to the first rows, on the last rows."""
    train, test = x[:-2], x[-2:]
    w = np.linalg.solve(train.T @ train + penalty * np.eye(x.shape[1]), train.T @ y[:-2])
    return np.mean((test @ w - y[-2:]) ** 2)


program(ridge_solution, (array(6, 2), array(6, start=0.4), 0.3))


def gaussian_mixture(logits, means, log_scales, x):
    """The log-likelihood of a mixture with diagonal covariances."""
    log_weights = logits - np.logaddexp.reduce(logits)
    z = (x[:, None, :] - means) / np.exp(log_scales)
    log_density = -0.5 * np.sum(z**2 + 2.0 * log_scales + np.log(2.0 * np.pi), axis=2)
    joint = log_weights + log_density
    top = np.max(joint, axis=1, keepdims=True)
    return np.sum(top[:, 0] + np.log(np.sum(np.exp(joint - top), axis=1)))


program(
    gaussian_mixture,
    (array(3), array(3, 2, start=0.4), array(3, 2, low=-0.5, high=0.5, start=0.8), array(5, 2, start=0.6)),
)


def gaussian_mixture_full(logits, means, roots, x):
    """The same with full covariances, given by triangular factors of their inverses."""
    total = 0.0
    k = means.shape[0]
    main = np.zeros((x.shape[0], k))
    for j in range(k):
        factor = np.tril(roots[j], -1) + np.diag(np.exp(np.diag(roots[j])))
        z = (x - means[j]) @ factor.T
        main[:, j] = logits[j] + np.sum(np.diag(roots[j])) - 0.5 * np.sum(z * z, axis=1)
    total += np.sum(np.logaddexp.reduce(main, axis=1)) - x.shape[0] * np.logaddexp.reduce(logits)
    return total


program(gaussian_mixture_full, (array(2), array(2, 2, start=0.4), array(2, 2, 2, start=0.8), array(4, 2, start=0.6)))


def kalman_filter(f, h, q, r, x, y):
    """The log likelihood of observations of a linear system."""
    p = np.eye(len(x))
    total = 0.0
    for t in range(y.shape[0]):
        x = f @ x
        p = f @ p @ f.T + q * np.eye(len(x))
        innovation = y[t] - h @ x
        s = h @ p @ h.T + r * np.eye(y.shape[1])
        gain = p @ h.T @ np.linalg.inv(s)
        x = x + gain @ innovation
        p = (np.eye(len(x)) - gain @ h) @ p
        logdet = np.linalg.slogdet(s)[1]
        total -= 0.5 * (logdet + innovation @ np.linalg.solve(s, innovation))
    return total


program(
    kalman_filter, (0.5 * regular(3, 3), array(2, 3, start=0.4), 0.3, 0.5, array(3, start=0.2), array(3, 2, start=0.6))
)


def hidden_markov(log_start, log_move, log_emit, seen):
    """The forward algorithm in logarithms."""
    alpha = log_start + log_emit[:, seen[0]]
    for t in range(1, len(seen)):
        alpha = np.logaddexp.reduce(alpha[:, None] + log_move, axis=0) + log_emit[:, seen[t]]
    return np.logaddexp.reduce(alpha)


program(hidden_markov, (array(3), array(3, 3, start=0.4), array(3, 2, start=0.6), integers(0, 1, 1, 0)))


def hidden_markov_scaled(start, move, emit, seen):
    """The forward algorithm with scaled probabilities, from rows that are normalised first."""
    move = move / move.sum(axis=1, keepdims=True)
    emit = emit / emit.sum(axis=1, keepdims=True)
    alpha = start / np.sum(start) * emit[:, seen[0]]
    total = 0.0
    for symbol in seen[1:]:
        scale = alpha.sum()
        total += np.log(scale)
        alpha = (alpha / scale) @ move * emit[:, symbol]
    return total + np.log(alpha.sum())


program(
    hidden_markov_scaled,
    (
        array(3, low=0.2),
        array(3, 3, low=0.2, start=0.4),
        array(3, 2, low=0.2, start=0.6),
        integers(0, 1, 1, 0),
    ),
)


def gaussian_process(x, y, length, noise):
    """The log marginal likelihood with a squared-exponential kernel."""
    squared = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    kernel = np.exp(-0.5 * squared / length**2) + noise * np.eye(len(y))
    factor = np.linalg.cholesky(kernel)
    alpha = np.linalg.solve(factor, y)
    return -0.5 * alpha @ alpha - np.log(np.diagonal(factor)).sum() - 0.5 * len(y) * np.log(2.0 * np.pi)


program(gaussian_process, (array(4, 2), array(4, start=0.4), 0.7, 0.3))


def masked_factorisation(u, v, ratings, known, penalty):
    """A matrix with missing entries as a product of two thin ones."""
    error = (ratings - u @ v.T)[known]
    return np.sum(error**2) / known.sum() + penalty * (np.sum(u**2) + np.sum(v**2))


program(
    masked_factorisation, (array(3, 2), array(4, 2, start=0.4), array(3, 4, start=0.6), booleans("x.xx/.x.x/xx.."), 0.1)
)


def soft_k_means(x, centres, sharpness, steps):
    """Centres, moved to the means of the points for which they are responsible."""
    for _ in range(steps):
        distance = ((x[:, np.newaxis] - centres) ** 2).sum(axis=2)
        share = np.exp(-sharpness * (distance - distance.min(axis=1, keepdims=True)))
        share /= share.sum(axis=1, keepdims=True)
        centres = share.T @ x / share.sum(axis=0)[:, None]
    return np.sum(centres**2) + np.mean(np.min(((x[:, None] - centres) ** 2).sum(-1), axis=1))


program(soft_k_means, (array(6, 2), array(2, 2, start=0.4), 2.0, 2))


# ---------------------------------------------------------------------------------------------- particles and sparse


def n_body(position, velocity, mass, dt, steps):
    """Leapfrog with softened gravity over all pairs; a particle does not pull itself."""
    n = len(mass)
    others = ~np.eye(n, dtype=np.bool_)
    for _ in range(steps):
        d = position[None, :, :] - position[:, None, :]
        r2 = np.sum(d**2, axis=2)
        inverse = np.zeros((n, n))
        inverse[others] = r2[others] ** -1.5
        acceleration = np.sum(d * (mass * inverse)[:, :, None], axis=1)
        velocity += dt * acceleration
        position += dt * velocity
    kinetic = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
    potential = -0.5 * np.sum(np.outer(mass, mass)[others] / np.sqrt(r2[others]))
    return kinetic + potential


_corners = np.array([[1.0, 0.1, 0.0], [-1.1, 0.3, 0.4], [0.2, -1.2, -0.7]])
program(n_body, (_corners, array(3, 3, start=0.4), array(3, low=0.5, high=1.0), 0.05, 3))


def cutoff_forces(position, box, cutoff):
    """The energy of Lennard-Jones particles in a periodic box, with a cutoff."""
    n = position.shape[0]
    i, j = np.triu_indices(n, 1)
    d = position[i] - position[j]
    d -= box * np.round(d / box)
    r2 = np.sum(d * d, axis=1)
    near = r2 < cutoff**2
    s6 = (1.0 / r2[near]) ** 3
    return np.sum(4.0 * (s6 * s6 - s6))


_lattice = np.array([[0.1, 0.2], [1.3, 0.1], [2.6, 0.3], [0.2, 1.5], [1.4, 2.7], [2.8, 1.6]])
program(cutoff_forces, (_lattice, 4.0, 1.9))


def spring_network(position, first, second, rest, stiffness, dt, steps):
    """A mesh of springs: forces are gathered by edges and scattered to nodes."""
    velocity = np.zeros_like(position)
    for _ in range(steps):
        edge = position[second] - position[first]
        length = np.sqrt(np.sum(edge**2, axis=1))
        pull = (stiffness * (length - rest) / length)[:, None] * edge
        force = np.zeros_like(position)
        np.add.at(force, first, pull)
        np.add.at(force, second, -pull)
        velocity = 0.99 * (velocity + dt * force)
        position = position + dt * velocity
    return np.sum(position**2) + np.sum(velocity[:, 0])


program(
    spring_network,
    (
        np.array([[0.0, 0.1], [1.0, 0.0], [0.1, 1.1], [1.2, 0.9]]),
        integers(0, 0, 1, 2),
        integers(1, 2, 3, 3),
        array(4, low=0.7, high=1.2),
        array(4, low=0.5, high=1.5, start=0.4),
        0.1,
        3,
    ),
)


def csr_product(values, columns, starts, x):
    """A sparse matrix times a vector: a dot product of slices for each row. One row is empty."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        part = slice(starts[i], starts[i + 1])
        y[i] = values[part] @ x[columns[part]]
    return np.sum(y**2)


program(csr_product, (array(6), integers(0, 2, 1, 3, 0, 3), integers(0, 2, 2, 5, 6), array(4, start=0.4)))


def csr_scatter(values, rows, columns, x, steps):
    """The same from coordinates, applied repeatedly with `np.add.at`."""
    for _ in range(steps):
        y = np.zeros_like(x)
        np.add.at(y, rows, values * x[columns])
        x = np.tanh(y) + 0.1 * x
    return np.sum(x)


program(csr_scatter, (array(6), integers(0, 0, 2, 2, 2, 3), integers(0, 2, 1, 3, 0, 3), array(4, start=0.4), 3))


def page_rank(weights, sources, targets, damping, steps):
    """Ranks flow along the edges of a graph, normalised by the outgoing edges of a node."""
    n = 4
    leaving = np.zeros(n)
    np.add.at(leaving, sources, weights)
    rank = np.full(n, 1.0 / n)
    for _ in range(steps):
        flow = np.zeros(n)
        np.add.at(flow, targets, rank[sources] * weights / leaving[sources])
        rank = (1.0 - damping) / n + damping * flow
    return np.sum(rank**2)


program(
    page_rank, (array(6, low=0.3), integers(0, 0, 1, 2, 3, 3), integers(1, 2, 2, 0, 0, 2), 0.85, 4)
)  # every node has an outgoing edge


# ------------------------------------------------------------------------------------------------------------- layers


def softmax(x):
    """Without overflow, over the last axis."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def softmax_classifier(x, w, b, labels):
    """Cross-entropy of the chosen classes."""
    p = softmax(x @ w + b)
    return -np.mean(np.log(p[np.arange(len(labels)), labels]))


program(softmax_classifier, (array(4, 3), array(3, 3, start=0.4), array(3, start=0.6), integers(0, 2, 1, 2)))


def perceptron(x, w1, b1, w2, b2, w3, b3):
    """Three layers with rectifiers, for a batch."""
    x = np.maximum(x @ w1 + b1, 0.0)
    x = np.maximum(x @ w2 + b2, 0.0)
    return np.sum(softmax(x @ w3 + b3)[:, 0] ** 2)


program(
    perceptron,
    (
        array(3, 4),
        array(4, 5, start=0.3),
        array(5, start=0.4),
        array(5, 4, start=0.5),
        array(4, start=0.6),
        array(4, 3, start=0.7),
        array(3, start=0.8),
    ),
)


def convolution_layer(images, kernels, bias):
    """A convolution over a batch, channels last: one output position at a time, all channels together."""
    k = kernels.shape[0]
    n, height, width = images.shape[0], images.shape[1] - k + 1, images.shape[2] - k + 1
    out = np.empty((n, height, width, kernels.shape[3]))
    for i in range(height):
        for j in range(width):
            window = images[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * kernels[np.newaxis, :, :, :], axis=(1, 2, 3))
    return np.sum(np.tanh(out + bias))


program(convolution_layer, (array(2, 4, 4, 2), array(2, 2, 2, 3, start=0.4), array(3, start=0.6)))


def convolution_by_offsets(image, kernel):
    """All output positions together: one product for each offset of the kernel."""
    height, width = image.shape[0] - kernel.shape[0] + 1, image.shape[1] - kernel.shape[1] + 1
    out = np.zeros((height, width))
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += kernel[i, j] * image[i : i + height, j : j + width]
    return np.sum(out**2)


program(convolution_by_offsets, (array(5, 6), array(3, 2, start=0.4)))


def max_pooling(x, w):
    """Windows of two by two, as two additional axes."""
    n, height, width = x.shape
    pooled = x.reshape(n, height // 2, 2, width // 2, 2).max(axis=(2, 4))
    return np.sum(pooled**2 * w)


program(max_pooling, (array(2, 4, 6), array(2, 2, 3, start=0.4)))


def average_pooling(x):
    """Windows of two by two, as four strided slices, then rectified."""
    pooled = 0.25 * (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2])
    return np.sum(np.where(pooled > 0.0, pooled, 0.01 * pooled) ** 2)


program(average_pooling, (array(4, 6),))


def small_convolutional_net(image, k1, k2, w, label):
    """Convolution, pooling, convolution, a dense layer, cross-entropy."""
    x = np.zeros((image.shape[0] - 2, image.shape[1] - 2))
    for i in range(3):
        for j in range(3):
            x += k1[i, j] * image[i : i + x.shape[0], j : j + x.shape[1]]
    x = np.maximum(x, 0.1 * x)
    x = x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2).max(axis=3).max(axis=1)
    x = np.tanh(k2[0] * x[:-1] + k2[1] * x[1:])
    logits = x.flatten() @ w
    return np.logaddexp.reduce(logits) - logits[label]


program(small_convolutional_net, (array(6, 6), array(3, 3, start=0.4), array(2, start=0.2), array(2, 3, start=0.6), 1))


def batch_normalisation(x, gain, shift):
    """Normalisation over batch and positions, for each channel."""
    mean = x.mean(axis=(0, 1), keepdims=True)
    std = x.std(axis=(0, 1), keepdims=True)
    y = gain * (x - mean) / np.sqrt(std * std + 1e-5) + shift
    return np.sum(np.sin(y))


program(batch_normalisation, (array(3, 2, 2), array(2, start=0.4), array(2, start=0.6)))


def lstm(x, w, u, b):
    """A sequence through a cell whose four gates are slices of one product."""
    size = u.shape[0]
    h = np.zeros(size)
    c = np.zeros(size)
    for t in range(x.shape[0]):
        gates = x[t] @ w + h @ u + b
        forget = 1.0 / (1.0 + np.exp(-gates[:size]))
        take = 1.0 / (1.0 + np.exp(-gates[size : 2 * size]))
        give = 1.0 / (1.0 + np.exp(-gates[2 * size : 3 * size]))
        c = forget * c + take * np.tanh(gates[3 * size :])
        h = give * np.tanh(c)
    return np.sum(h**2) + np.sum(c)


program(lstm, (array(4, 2), array(2, 12, start=0.4), array(3, 12, start=0.6), array(12, start=0.8)))


def gated_unit_batch(x, w, u, steps):
    """A batch through a gated recurrent unit, gates by `np.split`."""
    h = np.zeros((x.shape[1], u.shape[0]))
    for t in range(steps):
        a, b, c = np.split(x[t] @ w, 3, axis=1)
        p, q, s = np.split(h @ u, 3, axis=1)
        update = 1.0 / (1.0 + np.exp(-(a + p)))
        reset = 1.0 / (1.0 + np.exp(-(b + q)))
        h = update * h + (1.0 - update) * np.tanh(c + reset * s)
    return np.sum(h**2)


program(gated_unit_batch, (array(3, 2, 2), array(2, 6, start=0.4), array(2, 6, start=0.6), 3))


def attention(x, wq, wk, wv):
    """One head with a causal mask."""
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = q @ k.T / np.sqrt(q.shape[-1])
    n = len(x)
    scores = np.where(np.tri(n) > 0.0, scores, -1e9)
    return np.sum((softmax(scores) @ v) ** 2)


program(attention, (array(4, 3), array(3, 2, start=0.4), array(3, 2, start=0.6), array(3, 2, start=0.8)))


def multi_head_attention(x, w, heads):
    """A batch with several heads, by `einsum`."""
    n, length, size = x.shape
    q = np.einsum("bld,de->ble", x, w[0]).reshape(n, length, heads, -1)
    k = np.einsum("bld,de->ble", x, w[1]).reshape(n, length, heads, -1)
    v = np.einsum("bld,de->ble", x, w[2]).reshape(n, length, heads, -1)
    scores = softmax(np.einsum("blhd,bmhd->bhlm", q, k) / np.sqrt(size // heads))
    return np.sum(np.einsum("bhlm,bmhd->blhd", scores, v) ** 2)


program(multi_head_attention, (array(2, 3, 4), array(3, 4, 4, start=0.4), 2))


# ------------------------------------------------------------------------------------------------------------- images


def edges(image, strength):
    """Sobel's gradients of a padded image, and the fraction of edges in it."""
    p = np.pad(image, 1, mode="edge")
    gx = p[:-2, 2:] + 2.0 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2.0 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2.0 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2.0 * p[:-2, 1:-1] - p[:-2, 2:]
    magnitude = np.hypot(gx, gy)
    return np.mean(1.0 / (1.0 + np.exp(-strength * (magnitude - 1.0))))


program(edges, (array(4, 5), 1.5))


def unsharp_mask(image, sigma, amount):
    """A separable Gaussian, subtracted from the image and clipped."""
    offsets = np.arange(-2, 3)
    kernel = np.exp(-0.5 * (offsets / sigma) ** 2)
    kernel /= kernel.sum()
    p = np.pad(image, 2, mode="reflect")
    blurred = np.zeros((p.shape[0], image.shape[1]))
    for k in range(5):
        blurred += kernel[k] * p[:, k : k + image.shape[1]]
    smooth = np.zeros_like(image)
    for k in range(5):
        smooth += kernel[k] * blurred[k : k + image.shape[0]]
    return np.sum(np.clip(image + amount * (image - smooth), 0.0, 1.0) ** 2)


program(unsharp_mask, (array(4, 5, low=0.1, high=0.9), 1.1, 0.7))


def bilinear_warp(image, angle, scale):
    """An image, rotated about its centre and interpolated."""
    height, width = image.shape
    y, x = np.meshgrid(np.arange(height) - 0.5 * (height - 1), np.arange(width) - 0.5 * (width - 1), indexing="ij")
    sx = scale * (np.cos(angle) * x - np.sin(angle) * y) + 0.5 * (width - 1)
    sy = scale * (np.sin(angle) * x + np.cos(angle) * y) + 0.5 * (height - 1)
    sx = np.clip(sx, 0.0, width - 1.001)
    sy = np.clip(sy, 0.0, height - 1.001)
    j = np.floor(sx).astype(np.int64)
    i = np.floor(sy).astype(np.int64)
    u, v = sx - j, sy - i
    out = (1.0 - v) * ((1.0 - u) * image[i, j] + u * image[i, j + 1])
    out += v * ((1.0 - u) * image[i + 1, j] + u * image[i + 1, j + 1])
    return np.sum(out**2)


program(bilinear_warp, (array(4, 5), 0.3, 0.8))


def bilateral_filter(image, space, tone):
    """Every pixel is a mean of its neighbours, weighted by distance in space and in tone."""
    p = np.pad(image, 1, mode="symmetric")
    total = np.zeros_like(image)
    weight = np.zeros_like(image)
    for i in range(3):
        for j in range(3):
            shifted = p[i : i + image.shape[0], j : j + image.shape[1]]
            w = np.exp(-((i - 1) ** 2 + (j - 1) ** 2) / space - (shifted - image) ** 2 / tone)
            total += w * shifted
            weight += w
    return np.sum((total / weight) ** 2)


program(bilateral_filter, (array(4, 4), 1.3, 0.5))


def total_variation(image, noisy, weight):
    """Denoising's objective, with the differences of neighbours smoothed at zero."""
    dx = image[:, 1:] - image[:, :-1]
    dy = image[1:, :] - image[:-1, :]
    return 0.5 * np.sum((image - noisy) ** 2) + weight * (np.sqrt(dx**2 + 0.01).sum() + np.sqrt(dy**2 + 0.01).sum())


program(total_variation, (array(4, 4), array(4, 4, start=0.5), 0.3))


def corner_response(image, k):
    """Harris's measure from products of differences, summed over windows by cumulative sums."""
    gx = 0.5 * (image[1:-1, 2:] - image[1:-1, :-2])
    gy = 0.5 * (image[2:, 1:-1] - image[:-2, 1:-1])
    products = np.stack((gx * gx, gy * gy, gx * gy))
    table = np.zeros((3, gx.shape[0] + 1, gx.shape[1] + 1))
    table[:, 1:, 1:] = products.cumsum(axis=1).cumsum(axis=2)
    window = table[:, 2:, 2:] - table[:, :-2, 2:] - table[:, 2:, :-2] + table[:, :-2, :-2]
    response = window[0] * window[1] - window[2] ** 2 - k * (window[0] + window[1]) ** 2
    return np.sum(response) + response.max()


program(corner_response, (array(6, 6), 0.05))


# ------------------------------------------------------------------------------------------------------------- fluids


def pressure_source(rho, dt, dx, dy, u, v):
    """The right-hand side of the equation for the pressure."""
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * dy)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * dx)
    b = np.zeros_like(u)
    b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)
    return b


def cavity_flow(u, v, p, lid, nu, steps):
    """A box whose lid moves: momentum in slices, the pressure by sweeps, walls at rest."""
    rho, dt = 1.0, 0.01
    dx = dy = 0.5
    for _ in range(steps):
        b = pressure_source(rho, dt, dx, dy, u, v)
        for _ in range(3):
            pn = p.copy()
            p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2) / (
                2.0 * (dx**2 + dy**2)
            ) - dx**2 * dy**2 / (2.0 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        un = u.copy()
        vn = v.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2.0 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2.0 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = u[:, 0] = u[:, -1] = 0.0
        u[-1, :] = lid
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0.0
    return np.sum(u**2 + v**2) + 0.1 * np.sum(p**2)


program(cavity_flow, (array(5, 5), array(5, 5, start=0.4), array(5, 5, start=0.7), 1.0, 0.1, 2))


def laplacian_periodic(a, dx):
    """The Laplacian, periodic across the ends of the channel, inside its walls."""
    east, west = np.roll(a, -1, axis=1), np.roll(a, 1, axis=1)
    return (east[1:-1] + west[1:-1] + a[2:] + a[:-2] - 4.0 * a[1:-1]) / dx**2


def channel_flow(u, v, force, nu, steps):
    """A channel driven by a force, periodic along it, with the pressure from sweeps that wrap around."""
    dt, dx = 0.01, 0.5
    p = np.zeros_like(u)
    for _ in range(steps):
        divergence = (np.roll(u, -1, axis=1) - np.roll(u, 1, axis=1))[1:-1] / (2.0 * dx) + (v[2:] - v[:-2]) / (2.0 * dx)
        for _ in range(3):
            pn = p.copy()
            p[1:-1] = 0.25 * (
                np.roll(pn, -1, axis=1)[1:-1]
                + np.roll(pn, 1, axis=1)[1:-1]
                + pn[2:]
                + pn[:-2]
                - dx**2 / dt * divergence
            )
            p[0] = p[1]
            p[-1] = p[-2]
        px = (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))[1:-1] / (2.0 * dx)
        py = (p[2:] - p[:-2]) / (2.0 * dx)
        ux = (u - np.roll(u, 1, axis=1))[1:-1] / dx
        vx = (v - np.roll(v, 1, axis=1))[1:-1] / dx
        du = nu * laplacian_periodic(u, dx) - u[1:-1] * ux - v[1:-1] * (u[1:-1] - u[:-2]) / dx - px + force
        dv = nu * laplacian_periodic(v, dx) - u[1:-1] * vx - v[1:-1] * (v[1:-1] - v[:-2]) / dx - py
        u[1:-1] += dt * du
        v[1:-1] += dt * dv
        u[0, :], u[-1, :] = 0.0, 0.0
        v[[0, -1]] = 0.0
    return np.sum(u**2) + np.sum(v**2)


program(channel_flow, (array(5, 4), array(5, 4, start=0.4), 1.0, 0.1, 2))


def channel_until_steady(force, nu, tolerance):
    """A laminar profile, iterated until it changes little."""
    u = np.zeros(7)
    change = 1.0
    while change > tolerance:
        un = u.copy()
        u[1:-1] = un[1:-1] + 0.2 * nu * (un[2:] - 2.0 * un[1:-1] + un[:-2]) + 0.1 * force
        change = np.sum(np.abs(u - un)) / (np.sum(np.abs(u)) + 1e-12)
    return np.max(u) + np.sum(u**2)


program(channel_until_steady, (0.9, 1.1, 0.02))


def shallow_water(h, hu, dt, steps):
    """Lax and Friedrichs on a ring, with the state as rows of one array."""
    q = np.vstack((h, hu))
    for _ in range(steps):
        flux = np.vstack((q[1], q[1] ** 2 / q[0] + 4.9 * q[0] ** 2))
        q = 0.5 * (np.roll(q, 1, axis=1) + np.roll(q, -1, axis=1)) + 0.5 * dt * (
            np.roll(flux, 1, axis=1) - np.roll(flux, -1, axis=1)
        )
    return np.sum(q[0] ** 2) + np.sum(q[1] ** 2 / q[0])


program(shallow_water, (array(6, low=1.0, high=1.5), array(6, low=-0.3, high=0.3, start=0.4), 0.05, 3))


def burgers(u, nu, steps):
    """Periodic, with ghost cells from `np.concatenate`, and a step that the largest velocity limits."""
    time = 0.0
    for _ in range(steps):
        dt = 0.2 / (np.max(np.abs(u)) + 4.0 * nu)
        g = np.concatenate((u[-1:], u, u[:1]))
        flux = 0.25 * (g[:-1] ** 2 + g[1:] ** 2) - (0.5 * np.abs(g[1:] + g[:-1]) * 0.5 + nu) * (g[1:] - g[:-1])
        u = u - dt * (flux[1:] - flux[:-1])
        time += dt
    return np.sum(u**2) * time


program(burgers, (array(7), 0.1, 3))


# -------------------------------------------------------------------------------------------------- escape iterations


def escape_counts(x, y, steps):
    """How many iterations each point of a grid stays bounded: an integer, so its derivative is zero."""
    cx, cy = np.meshgrid(x, y)
    zx = np.zeros_like(cx)
    zy = np.zeros_like(cy)
    count = np.zeros(cx.shape, dtype=np.int64)
    for _ in range(steps):
        inside = zx * zx + zy * zy < 4.0
        count[inside] += 1
        zx[inside], zy[inside] = (
            zx[inside] ** 2 - zy[inside] ** 2 + cx[inside],
            2.0 * zx[inside] * zy[inside] + cy[inside],
        )
    return float(np.sum(count))


program(escape_counts, (array(4, low=-2.0, high=1.0), array(3, start=0.4), 6), exact=(np.zeros(4), np.zeros(3)))


def escape_smooth(cx, cy, steps):
    """The same with the size of the escaped value, which is smooth between the counts."""
    zx = cx.copy()
    zy = cy.copy()
    size = np.zeros_like(cx)
    done = np.zeros(cx.shape, dtype=np.bool_)
    for _ in range(steps):
        r2 = zx**2 + zy**2
        leaving = (r2 > 4.0) & ~done
        size[leaving] = np.log(np.log(r2[leaving]))
        done |= leaving
        active = ~done
        zx[active], zy[active] = (
            zx[active] ** 2 - zy[active] ** 2 + cx[active],
            2 * zx[active] * zy[active] + cy[active],
        )
    return np.sum(size) + np.sum(zx[~done])


program(escape_smooth, (array(6, low=-2.2, high=1.2), array(6, start=0.4), 5))


# --------------------------------------------------------------------------------------------- differential equations


def lorenz(state, parameters):
    """The right-hand side, with an unpacked state."""
    x, y, z = state
    sigma, rho, beta = parameters
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def runge_kutta(state, parameters, dt, steps):
    """Four stages of a system that becomes chaotic later."""
    for _ in range(steps):
        k1 = lorenz(state, parameters)
        k2 = lorenz(state + 0.5 * dt * k1, parameters)
        k3 = lorenz(state + 0.5 * dt * k2, parameters)
        k4 = lorenz(state + dt * k3, parameters)
        state = state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return np.sum(state**2)


program(runge_kutta, (np.array([1.0, 0.5, -0.3]), np.array([10.0, 28.0, 8.0 / 3.0]), 0.01, 5))


def runge_kutta_tableau(y, coupling, dt, steps):
    """The same from a table of coefficients, for coupled oscillators in matrix form."""
    a = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    b = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
    for _ in range(steps):
        k = np.zeros((4, len(y)))
        for s in range(4):
            stage = y + dt * (a[s] @ k)
            k[s] = np.sum(coupling * np.sin(stage[None, :] - stage[:, None]), axis=1)
        y = y + dt * b @ k
    return np.sum(np.cos(y))


program(runge_kutta_tableau, (array(3), array(3, 3, start=0.4), 0.1, 3))


def adaptive_step(y, mu, end, log_tolerance):
    """Van der Pol's oscillator by embedded pairs. The error determines the step, until the end is reached."""
    tolerance = np.exp(log_tolerance)
    t = 0.0
    h = 0.2
    taken = 0
    while t < end and taken < 200:
        h = min(h, end - t)
        k1 = np.array([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])
        s = y + 0.5 * h * k1
        k2 = np.array([s[1], mu * (1.0 - s[0] ** 2) * s[1] - s[0]])
        s = y + 0.75 * h * k2
        k3 = np.array([s[1], mu * (1.0 - s[0] ** 2) * s[1] - s[0]])
        new = y + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = np.array([new[1], mu * (1.0 - new[0] ** 2) * new[1] - new[0]])
        error = np.max(np.abs(h * (-5.0 * k1 + 6.0 * k2 + 8.0 * k3 - 9.0 * k4) / 72.0))
        if error <= tolerance:
            t += h
            y = new
        h *= min(4.0, max(0.2, 0.9 * (tolerance / (error + 1e-12)) ** (1.0 / 3.0)))
        taken += 1
    return y @ y


program(adaptive_step, (np.array([1.2, 0.4]), 1.5, 1.0, -7.0))


def predator_prey(state, rates, dt, record):
    """Species as a vector, and the misfit to a record taken at every second step."""
    misfit = 0.0
    for t in range(2 * len(record)):
        growth = rates[0] * state[0] - rates[1] * state[0] * state[1]
        loss = rates[2] * state[0] * state[1] - rates[3] * state[1]
        state = state + dt * np.array([growth, loss])
        if t % 2 == 1:
            misfit += np.sum((state - record[t // 2]) ** 2)
    return misfit


program(predator_prey, (np.array([1.0, 0.6]), array(4, low=0.3, high=1.0), 0.1, array(3, 2, start=0.4)))


# ------------------------------------------------------------------------------------------------------------ finance


def normal_distribution(x):
    """An approximation by a polynomial (Abramowitz and Stegun 26.2.17)."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * poly
    return np.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(price, strike, years, rate, volatility):
    """Calls and puts of a whole book."""
    root = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / root
    d2 = d1 - root
    discount = np.exp(-rate * years)
    call = price * normal_distribution(d1) - strike * discount * normal_distribution(d2)
    put = strike * discount * normal_distribution(-d2) - price * normal_distribution(-d1)
    return np.sum(call) + 2.0 * np.sum(put)


program(
    black_scholes,
    (
        array(4, low=90.0, high=110.0),
        array(4, low=92.0, high=113.0, start=0.4),
        array(4, low=0.3, high=1.5),
        0.03,
        0.25,
    ),
)


def binomial_option(price, strike, rate, volatility, years, levels):
    """An American put on a tree, folded back one level at a time."""
    dt = years / levels
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1.0 / up) / (up - 1.0 / up)
    prices = price * up ** (2.0 * np.arange(levels + 1) - levels)
    value = np.maximum(strike - prices, 0.0)
    for level in range(levels, 0, -1):
        value = np.exp(-rate * dt) * (p * value[1:] + (1.0 - p) * value[:-1])
        prices = prices[1:] / up
        value = np.maximum(value, strike - prices)
    return value[0]


program(binomial_option, (100.0, 103.0, 0.04, 0.3, 1.0, 6))


def asian_option(price, rate, volatility, normals, strike, dt):
    """Simulated paths from given random numbers: the mean excess of the average over the strike."""
    steps = (rate - 0.5 * volatility**2) * dt + volatility * np.sqrt(dt) * normals
    paths = price * np.exp(np.cumsum(steps, axis=1))
    payoff = np.maximum(np.mean(paths, axis=1) - strike, 0.0)
    return np.exp(-rate * dt * normals.shape[1]) * np.mean(payoff)


program(asian_option, (1.0, 0.03, 0.3, array(6, 4, low=-1.5, high=1.5), 0.98, 0.25))


def portfolio(weights, returns, aversion):
    """Mean, variance and the mean of the worst outcomes."""
    share = np.exp(weights) / np.sum(np.exp(weights))
    outcome = returns @ share
    worst = np.sort(outcome)[: len(outcome) // 3]
    return outcome.mean() - aversion * outcome.var() + worst.mean()


program(portfolio, (array(3), array(7, 3, start=0.4), 0.8))


def bond_curve(times, rates, flows, at):
    """Coupons, discounted by a curve that is interpolated between its knots."""
    discount = np.exp(-np.interp(at, times, rates) * at)
    return np.sum(flows * discount) + np.trapezoid(discount, at)


program(
    bond_curve,
    (
        np.array([0.5, 1.0, 2.0, 5.0]),
        array(4, low=0.01, high=0.05),
        array(3, low=1.0, high=2.0),
        np.array([0.7, 1.7, 3.1]),
    ),
    wrt=(1, 2, 3),
)
