"""Solvers for implicit functions: roots, fixed points, minima and least squares.

Each returns the result of `implicitly`, so that the derivatives are those of the equation, not of the iterations.
`jacobian`, `jvp` and `grad` are passed in, because the library does not import the modules that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import solve_vector
from srcdiff.library.language import agree, implicitly, is_array

# --------------------------------------------------------------------------------------------------------------- public


def root(
    jacobian: Any,
    jvp: Any,
    residual: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-10,
    maxiter: Any = 100,
    backend: Any = None,
) -> Any:
    def equation(x: Any) -> Any:
        return residual(x, *args)

    def solver(equation: Any, x0: Any) -> Any:
        return newton(jacobian, jvp, equation, x0, tol, maxiter)

    return solved(jacobian, jvp, solver, equation, x0)


def fixed_point(
    jacobian: Any, jvp: Any, f: Any, x0: Any, *args: Any, tol: Any = 1e-10, maxiter: Any = 10000, backend: Any = None
) -> Any:
    def equation(x: Any) -> Any:
        return x - f(x, *args)

    def solver(equation: Any, x0: Any) -> Any:
        return repeated(equation, x0, tol, maxiter)

    return solved(jacobian, jvp, solver, equation, x0)


def minimize(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    f: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-8,
    maxiter: Any = 1000,
    backend: Any = None,
) -> Any:
    def objective(x: Any) -> Any:
        return f(x, *args)

    def equation(x: Any) -> Any:
        return grad(objective)(x)

    def solver(equation: Any, x0: Any) -> Any:
        return lowest(jacobian, jvp, objective, equation, x0, tol, maxiter)

    return solved(jacobian, jvp, solver, equation, x0)


def least_squares(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    residuals: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-10,
    maxiter: Any = 1000,
    backend: Any = None,
) -> Any:
    def function(x: Any) -> Any:
        return residuals(x, *args)

    def half_of_squares(x: Any) -> Any:
        r = function(x)
        return 0.5 * np.sum(r * r)

    def equation(x: Any) -> Any:
        return grad(half_of_squares)(x)

    def solver(equation: Any, x0: Any) -> Any:
        if not is_array(x0):
            return lowest(jacobian, jvp, half_of_squares, equation, x0, tol, maxiter)
        return levenberg_marquardt(jacobian, function, x0, tol, maxiter)

    return solved(jacobian, jvp, solver, equation, x0)


def minimize_in_box(
    grad: Any, jacobian: Any, jvp: Any, objective: Any, x0: Any, lower: Any, upper: Any, tol: Any, maxiter: Any
) -> Any:
    """The minimum of a function of a vector between bounds.

    The derivatives are those of the equation x = clip(x - slope, lower, upper): a variable stays at its bound, or its
    slope stays zero. They exist if no variable does both.
    """

    def slope(x: Any) -> Any:
        return np.asarray(grad(objective)(x))

    def equation(x: Any) -> Any:
        return np.asarray(x - np.clip(x - slope(x), lower, upper))

    def solver(equation: Any, x0: Any) -> Any:
        return lowest_in_box(jacobian, objective, slope, x0, lower, upper, tol, maxiter)

    def weights(equation: Any, x: Any, x_bar: Any) -> Any:
        require_strict(jacobian, slope, x, lower, upper)
        return solved_equations(np.asarray(square_jacobian(jacobian, equation, x).T), -x_bar)

    def change(equation: Any, x: Any, r_dot: Any) -> Any:
        require_strict(jacobian, slope, x, lower, upper)
        return solved_equations(square_jacobian(jacobian, equation, x), -r_dot)

    return implicitly(solver, weights, change, equation, x0)


def require_strict(jacobian: Any, slope: Any, x: Any, lower: Any, upper: Any) -> None:
    """Raise if a variable is at a bound that could be left out: its derivatives differ on both sides."""
    slopes, curvature = slope(x), square_jacobian(jacobian, slope, x)
    for i in range(len(x)):
        if lower[i] < upper[i]:
            near = 1e-7 * (1.0 + abs(x[i]))
            is_near = x[i] - lower[i] <= near or upper[i] - x[i] <= near
            if is_near and abs(slopes[i]) <= near * abs(curvature[i, i]):
                raise RuntimeError("the minimum is at a bound where the slope is zero: it has no derivative there")


# ---------------------------------------------------------------------------------------------------------- derivatives


def solved(jacobian: Any, jvp: Any, solver: Any, equation: Any, x0: Any) -> Any:
    """The root of the equation that the solver finds."""

    def weights(equation: Any, x: Any, x_bar: Any) -> Any:
        if not is_array(x):
            return -x_bar / jvp(equation, (x,), (1.0,))[1]
        return solved_equations(np.asarray(square_jacobian(jacobian, equation, x).T), -x_bar)

    def change(equation: Any, x: Any, r_dot: Any) -> Any:
        if not is_array(x):
            return -r_dot / jvp(equation, (x,), (1.0,))[1]
        return solved_equations(square_jacobian(jacobian, equation, x), -r_dot)

    return implicitly(solver, weights, change, equation, x0)


def square_jacobian(jacobian: Any, equation: Any, x: Any) -> Any:
    return np.reshape(np.asarray(jacobian(equation)(x)), (x.size, x.size))


def solved_equations(a: Any, b: Any) -> Any:
    b = np.asarray(b)
    return np.reshape(solve_vector(a, np.reshape(b, b.size)), b.shape)


# -------------------------------------------------------------------------------------------------------------- solvers


def newton(jacobian: Any, jvp: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    """Newton's method. A step that does not reduce the residual is halved."""
    if not is_array(x0):
        return newton_of_number(jvp, equation, x0, tol, maxiter)
    x, tried = np.copy(x0), np.copy(x0)
    step = np.zeros(x.shape, x.dtype)
    least, part, change, size, count = np.inf, 1.0, 1.0, 0.0, 0
    while True:
        count += 1
        if count > maxiter:
            raise RuntimeError("the root was not found: pass another start, or a larger maxiter")
        r = np.asarray(equation(tried))
        agree(r.size, x.size, "the residual and the start have different lengths")
        norm = np.sum(r * r)
        if count == 1 and not np.isfinite(norm):
            raise RuntimeError("the residual at the start is not finite: pass another start")
        if change <= tol * size:
            return tried if norm <= least else x
        if norm <= (1.0 - 1e-4 * part) * least:
            x, least, part = tried, norm, 1.0
            step = solved_equations(square_jacobian(jacobian, equation, x), r)
            change = np.max(np.abs(step), initial=0.0)
            size = np.max(np.abs(x), initial=0.0) + 1e-8
        else:
            part *= 0.5
        tried = np.asarray(x - part * step)


def newton_of_number(jvp: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    x, tried, step = x0, x0, 0.0
    least, part, change, size, count = np.inf, 1.0, 1.0, 0.0, 0
    while True:
        count += 1
        if count > maxiter:
            raise RuntimeError("the root was not found: pass another start, or a larger maxiter")
        r, slope = jvp(equation, (tried,), (1.0,))
        norm = abs(r)
        if count == 1 and not np.isfinite(norm):
            raise RuntimeError("the residual at the start is not finite: pass another start")
        if change <= tol * size:
            return tried if norm <= least else x
        if norm <= (1.0 - 1e-4 * part) * least:
            x, least, part = tried, norm, 1.0
            if slope == 0.0:
                raise ZeroDivisionError("the slope of the residual is zero: pass another start")
            step = r / slope
            change, size = abs(step), abs(x) + 1e-8
        else:
            part *= 0.5
        tried = x - part * step


def largest(x: Any) -> Any:
    return np.max(np.abs(x), initial=0.0) if is_array(x) else abs(x)


def repeated(equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    """The iteration x <- f(x) for the equation x - f(x) = 0."""
    x = np.copy(x0) if is_array(x0) else x0
    change, size, count = 1.0, 0.0, 0
    while change > tol * size:
        count += 1
        if count > maxiter:
            raise RuntimeError(
                "the fixed point was not found: pass another start, a larger maxiter, or use srcdiff.root"
            )
        step = np.asarray(equation(x)) if is_array(x0) else equation(x)
        change, size = largest(step), largest(x) + 1e-8
        if not np.isfinite(change):
            raise RuntimeError("the iteration for the fixed point is not finite: pass another start")
        x = np.asarray(x - step) if is_array(x0) else x - step
    return x


def lowest(jacobian: Any, jvp: Any, objective: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    """Newton's method for a minimum. A multiple of the identity is added to the Hessian, as large as descent needs."""
    x = np.copy(x0) if is_array(x0) else x0
    tried, slope, curvature = x, x, x if not is_array(x0) else np.zeros((x.size, x.size), x.dtype)
    least, added, count, scale, size, change = np.inf, 0.0, 0, 0.0, 0.0, 1.0
    while True:
        count += 1
        if count > maxiter:
            raise RuntimeError("the minimum was not found: pass another start, or a larger maxiter")
        value = objective(tried)
        if count == 1 and not np.isfinite(value):
            raise RuntimeError("the function is not finite at the start: pass another start")
        is_last = change <= tol * size and added <= 1e-6 * scale
        if value <= least + 1e-14 * abs(least) or count == 1 or (is_last and np.isfinite(value)):
            x, least = tried, value
            if is_last:
                return x
            if is_array(x0):
                slope = np.asarray(equation(x))
                curvature = square_jacobian(jacobian, equation, x)
                diagonal = 0.0
                for i in range(len(curvature)):
                    diagonal = max(diagonal, abs(curvature[i, i]))
            else:
                slope, curvature = jvp(equation, (x,), (1.0,))
                diagonal = abs(curvature)
            scale = diagonal + 1e-12
            added = added * 0.1 if added * 0.1 > 1e-9 * scale else 1e-10 * scale
        else:
            added = max(10.0 * added, 1e-3 * scale)
        goes_down = False
        while not goes_down:
            if is_array(x0):
                shifted = np.copy(curvature)
                for i in range(len(shifted)):
                    shifted[i, i] += added
                step = solved_equations(shifted, slope)
                goes_down = np.sum(step * slope) >= 0.0
                tried = np.asarray(x - step)
            else:
                step = slope / (curvature + added)
                goes_down = step * slope >= 0.0
                tried = x - step
            if not goes_down:
                added = max(10.0 * added, 1e-3 * scale)
            if not np.isfinite(added):
                raise RuntimeError("the derivatives of the function are not finite: pass another start")
        change, size = largest(step), largest(x) + 1e-8


def lowest_in_box(
    jacobian: Any, objective: Any, slope: Any, x0: Any, lower: Any, upper: Any, tol: Any, maxiter: Any
) -> Any:
    """Newton's method, projected on the box, for the variables that are not held at their bounds (Bertsekas 1982)."""
    n = len(x0)
    for i in range(n):
        if not lower[i] <= upper[i]:
            raise ValueError("a lower bound is above the upper one")
    x = np.asarray(np.clip(x0, lower, upper))
    tried, slopes, curvature = x, np.zeros(n, x.dtype), np.zeros((n, n), x.dtype)
    least, added, count, scale, size, change = np.inf, 0.0, 0, 0.0, 0.0, 1.0
    while True:
        count += 1
        if count > maxiter:
            raise RuntimeError("the minimum was not found: pass another start, or a larger maxiter")
        value = objective(tried)
        if count == 1 and not np.isfinite(value):
            raise RuntimeError("the function is not finite at the start: pass another start")
        is_last = change <= tol * size and added <= 1e-6 * scale
        if value <= least + 1e-14 * abs(least) or count == 1 or (is_last and np.isfinite(value)):
            x, least = tried, value
            if is_last:
                return x
            slopes, curvature = slope(x), square_jacobian(jacobian, slope, x)
            diagonal = 0.0
            for i in range(n):
                diagonal = max(diagonal, abs(curvature[i, i]))
            scale = diagonal + 1e-12
            added = added * 0.1 if added * 0.1 > 1e-9 * scale else 1e-10 * scale
        else:
            added = max(10.0 * added, 1e-3 * scale)
        goes_down = False
        while not goes_down:
            shifted, right = np.copy(curvature), np.copy(slopes)
            for i in range(n):
                shifted[i, i] += added
            for i in range(n):
                if (x[i] <= lower[i] and slopes[i] >= 0.0) or (x[i] >= upper[i] and slopes[i] <= 0.0):
                    right[i] = 0.0
                    for j in range(n):
                        shifted[i, j], shifted[j, i] = 0.0, 0.0
                    shifted[i, i] = 1.0
            step = solved_equations(shifted, right)
            goes_down = np.sum(step * right) >= 0.0
            if not goes_down:
                added = max(10.0 * added, 1e-3 * scale)
            if not np.isfinite(added):
                raise RuntimeError("the derivatives of the function are not finite: pass another start")
        tried = np.asarray(np.clip(x - step, lower, upper))
        change, size = largest(tried - x), largest(x) + 1e-8


def levenberg_marquardt(jacobian: Any, function: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    n = x0.size
    x, tried = np.copy(x0), np.copy(x0)
    normal, slope, step = np.zeros((n, n), x.dtype), np.zeros(n, x.dtype), np.zeros(n, x.dtype)
    least, added, count, size, change = np.inf, 1e-3, 0, 0.0, 1.0
    while True:
        count += 1
        if count > maxiter:
            raise RuntimeError("the least squares were not found: pass another start, or a larger maxiter")
        r = np.asarray(function(tried))
        value = np.sum(r * r)
        if count == 1 and not np.isfinite(value):
            raise RuntimeError("the residuals at the start are not finite: pass another start")
        is_last = change <= tol * size and added <= 1e-6
        if value <= least * (1.0 + 1e-14) or (is_last and np.isfinite(value)):
            x, least = tried, value
            if is_last:
                return x
            columns = np.reshape(np.asarray(jacobian(function)(x)), (r.size, n))
            normal = np.asarray(columns.T @ columns)
            slope = np.asarray(columns.T @ np.reshape(r, r.size))
            added = max(0.1 * added, 1e-12)
        else:
            added = max(10.0 * added, 1e-3)
            if added > 1e30:
                raise RuntimeError("the least squares were not found: pass another start")
        shifted = np.copy(normal)
        for i in range(n):
            shifted[i, i] += added * (normal[i, i] + 1e-12)
        step = solve_vector(shifted, slope)
        tried = np.asarray(x - np.reshape(step, x.shape))
        change, size = largest(step), largest(x) + 1e-8
