"""Solvers for implicit functions: roots, fixed points, minima and least squares.

Each returns the result of `implicitly`, so that the derivatives are those of the equation, not of the iterations.
`jacobian`, `jvp` and `grad` are passed in, because the library does not import the modules that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import solve_vector
from srcdiff.library.complex_parts import from_parts, has_complex_type, in_parts
from srcdiff.library.language import agree, implicitly, is_array, unsupported
from srcdiff.library.linear_systems import linear_solver_for, solved_equations, square_jacobian

# --------------------------------------------------------------------------------------------------------------- public


def root(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    residual: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-10,
    maxiter: Any = 100,
    linear_solver: Any = "dense",
    bands: Any = None,
    backend: Any = None,
) -> Any:
    require_array(x0)
    if has_complex_type(x0):
        options = {"tol": tol, "maxiter": maxiter, "linear_solver": linear_solver, "bands": bands}
        return by_parts(root, grad, jacobian, jvp, residual, x0, args, options)
    linear = linear_solver_for(grad, jacobian, jvp, linear_solver, bands)

    def equation(x: Any) -> Any:
        return residual(x, *args)

    def solver(equation: Any, x0: Any) -> Any:
        return newton(jvp, linear, equation, x0, tol, maxiter)

    return solved(jvp, linear, solver, equation, in_double(x0))


def fixed_point(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    f: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-10,
    maxiter: Any = 10000,
    linear_solver: Any = "dense",
    bands: Any = None,
    backend: Any = None,
) -> Any:
    require_array(x0)
    if has_complex_type(x0):
        options = {"tol": tol, "maxiter": maxiter, "linear_solver": linear_solver, "bands": bands}
        return by_parts(fixed_point, grad, jacobian, jvp, f, x0, args, options)

    def equation(x: Any) -> Any:
        return x - f(x, *args)

    def solver(equation: Any, x0: Any) -> Any:
        return repeated(equation, x0, tol, maxiter)

    return solved(jvp, linear_solver_for(grad, jacobian, jvp, linear_solver, bands), solver, equation, x0)


def by_parts(
    solve: Any, grad: Any, jacobian: Any, jvp: Any, function: Any, x0: Any, args: Any, options: dict[str, Any]
) -> Any:
    """The solution for complex unknowns: the solver gets their real and imaginary parts."""
    if options["bands"] is not None:
        unsupported("`bands` for complex unknowns")

    def of_parts(y: Any, *others: Any) -> Any:
        found = in_parts(function(from_parts(y, x0), *others))
        agree(found.size, y.size, "the residual and the start have different lengths")
        return found

    return from_parts(solve(grad, jacobian, jvp, of_parts, in_parts(x0), *args, **options), x0)


def minimize(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    f: Any,
    x0: Any,
    *args: Any,
    tol: Any = 1e-8,
    maxiter: Any = 1000,
    linear_solver: Any = "dense",
    bands: Any = None,
    backend: Any = None,
) -> Any:
    require_array(x0)
    if has_complex_type(x0):
        if bands is not None:
            unsupported("`bands` for complex unknowns")

        def of_parts(y: Any, *others: Any) -> Any:
            return f(from_parts(y, x0), *others)

        options = {"tol": tol, "maxiter": maxiter, "linear_solver": linear_solver}
        return from_parts(minimize(grad, jacobian, jvp, of_parts, in_parts(x0), *args, **options), x0)
    linear = linear_solver_for(grad, jacobian, jvp, linear_solver, bands)

    def objective(x: Any) -> Any:
        return f(x, *args)

    def equation(x: Any) -> Any:
        return grad(objective)(x)

    def solver(equation: Any, x0: Any) -> Any:
        is_dense = linear_solver == "dense" and bands is None
        return lowest(jacobian if is_dense else None, jvp, linear, objective, equation, x0, tol, maxiter)

    return solved(jvp, linear, solver, equation, in_double(x0))


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
    require_array(x0)
    if has_complex_type(x0):

        def of_parts(y: Any, *others: Any) -> Any:
            return residuals(from_parts(y, x0), *others)

        start = in_parts(x0)
        return from_parts(least_squares(grad, jacobian, jvp, of_parts, start, *args, tol=tol, maxiter=maxiter), x0)

    def function(x: Any) -> Any:
        found = residuals(x, *args)
        return in_parts(found) if has_complex_type(found) else found

    def half_of_squares(x: Any) -> Any:
        r = function(x)
        return 0.5 * np.sum(r * r)

    def equation(x: Any) -> Any:
        return grad(half_of_squares)(x)

    linear = linear_solver_for(grad, jacobian, jvp, "dense", None)

    def solver(equation: Any, x0: Any) -> Any:
        if not is_array(x0):
            return lowest(jacobian, jvp, linear, half_of_squares, equation, x0, tol, maxiter)
        return levenberg_marquardt(jacobian, function, equation, x0, tol, maxiter)

    return solved(jvp, linear, solver, equation, in_double(x0))


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

    return implicitly(solver, weights, change, equation, in_double(x0))


def require_strict(jacobian: Any, slope: Any, x: Any, lower: Any, upper: Any) -> None:
    """Raise if a variable is at a bound that could be left out: its derivatives differ on both sides."""
    slopes, curvature = slope(x), square_jacobian(jacobian, slope, x)
    for i in range(len(x)):
        if lower[i] < upper[i]:
            near = 1e-7 * (1.0 + abs(x[i]))
            is_near = x[i] - lower[i] <= near or upper[i] - x[i] <= near
            if is_near and abs(slopes[i]) <= near * abs(curvature[i, i]):
                raise RuntimeError("the minimum is at a bound where the slope is zero: it has no derivative there")


def minimize_with_constraints(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    objective: Any,
    constraint: Any,
    limits: Any,
    x0: Any,
    lower: Any,
    upper: Any,
    tol: Any,
    maxiter: Any,
) -> Any:
    """The minimum for which lower <= x <= upper, and the numbers constraint(x) are between their limits.

    The equation is that of Karush, Kuhn and Tucker for x and a multiplier m of each constraint c(x):

        x = clip(x - slope of (f - m c), lower, upper)        c = clip(c - m, least, most)

    It has derivatives if each constraint that holds has a multiplier other than zero, and they are independent.
    """
    least, most = limits
    n, count = len(x0), len(least)

    def slope(x: Any, multipliers: Any) -> Any:
        return np.asarray(grad(lambda y: objective(y) - np.sum(multipliers * constraint(y)))(x))

    def equation(z: Any) -> Any:
        x, multipliers = np.copy(z[:n]), np.copy(z[n:])
        values = np.asarray(constraint(x))
        r = np.empty(n + count)
        r[:n] = x - np.clip(x - slope(x, multipliers), lower, upper)
        r[n:] = values - np.clip(values - multipliers, least, most)
        return r

    def solver(equation: Any, z0: Any) -> Any:
        z = by_multipliers(grad, jacobian, objective, constraint, least, most, np.copy(z0[:n]), lower, upper, maxiter)
        for _ in range(50):
            step = solved_equations(square_jacobian(jacobian, equation, z), np.asarray(equation(z)))
            z = np.asarray(z - step)
            if largest(step) <= tol * (largest(z) + 1e-8):
                return z
        raise RuntimeError("the minimum under constraints was not found: pass another start")

    def matrix(equation: Any, z: Any) -> Any:
        x, multipliers = np.copy(z[:n]), np.copy(z[n:])

        def changed(x: Any) -> Any:
            return slope(x, multipliers)

        require_strict(jacobian, changed, x, lower, upper)
        require_active(jacobian, changed, constraint, x, multipliers, least, most)
        return square_jacobian(jacobian, equation, z)

    def weights(equation: Any, z: Any, z_bar: Any) -> Any:
        return solved_equations(np.asarray(matrix(equation, z).T), -z_bar)

    def change(equation: Any, z: Any, r_dot: Any) -> Any:
        return solved_equations(matrix(equation, z), -r_dot)

    start = np.zeros(n + count)
    start[:n] = x0
    return np.copy(implicitly(solver, weights, change, equation, start)[:n])


def require_active(jacobian: Any, slope: Any, constraint: Any, x: Any, multipliers: Any, least: Any, most: Any) -> None:
    """Raise if a constraint is at its limit, but could be left out: the derivatives differ on both sides."""
    values = np.asarray(constraint(x))
    slopes = np.reshape(np.asarray(jacobian(constraint)(x)), (len(values), len(x)))
    curvature = square_jacobian(jacobian, slope, x)
    near, scale = 1e-7 * (1.0 + largest(x)), largest(curvature)
    for k in range(len(values)):
        if least[k] < most[k]:
            steep = 0.0
            for j in range(len(x)):
                steep = max(steep, abs(slopes[k, j]))
            is_near = values[k] - least[k] <= near * steep or most[k] - values[k] <= near * steep
            if is_near and abs(multipliers[k]) * steep <= near * scale:
                raise RuntimeError(
                    "the minimum is at a limit of a constraint whose multiplier is zero: it has no derivative there"
                )


def by_multipliers(
    grad: Any,
    jacobian: Any,
    objective: Any,
    constraint: Any,
    least: Any,
    most: Any,
    x0: Any,
    lower: Any,
    upper: Any,
    maxiter: Any,
) -> Any:
    """The augmented Lagrangian method (Hestenes 1969, Powell 1969): x, followed by the multipliers."""
    n, count = len(x0), len(least)
    x, multipliers, weight = np.copy(x0), np.zeros(count), np.full(1, 10.0)

    def outside(x: Any) -> Any:
        shifted = np.asarray(constraint(x) - multipliers / weight[0])
        return np.asarray(shifted - np.clip(shifted, least, most))

    def merit(x: Any) -> Any:
        return objective(x) + 0.5 * weight[0] * np.sum(outside(x) ** 2)

    def slope(x: Any) -> Any:
        return np.asarray(grad(merit)(x))

    before = np.inf
    for _ in range(100):
        x = lowest_in_box(jacobian, merit, slope, x, lower, upper, 1e-7, maxiter)
        new = np.asarray(-weight[0] * outside(x))
        moved = largest(new - multipliers)
        multipliers[:] = new
        values = np.asarray(constraint(x))
        violation = largest(values - np.clip(values, least, most))
        if violation <= 1e-6 * (1.0 + largest(x)) and moved <= 1e-4 * (1.0 + largest(new)):
            z = np.empty(n + count)
            z[:n], z[n:] = x, multipliers
            return z
        if violation > 0.25 * before:
            weight[0] *= 10.0
            if weight[0] > 1e12:
                break
        before = violation
    raise RuntimeError("no point was found that satisfies the constraints: pass another start")


# ---------------------------------------------------------------------------------------------------------- derivatives


def solved(jvp: Any, linear: Any, solver: Any, equation: Any, x0: Any) -> Any:
    """The root of the equation that the solver finds. `linear` solves systems with its Jacobian (linear_systems.py)."""

    def weights(equation: Any, x: Any, x_bar: Any) -> Any:
        if not is_array(x):
            return -x_bar / jvp(equation, (x,), (1.0,))[1]
        return linear(equation, x, -x_bar, True, 0.0)

    def change(equation: Any, x: Any, r_dot: Any) -> Any:
        if not is_array(x):
            return -r_dot / jvp(equation, (x,), (1.0,))[1]
        return linear(equation, x, -r_dot, False, 0.0)

    return implicitly(solver, weights, change, equation, x0)


def require_array(x0: Any) -> None:
    """Refuse unknowns that are dictionaries or instances."""
    if isinstance(x0, dict) or hasattr(x0, "__dict__"):
        unsupported(
            "an unknown that is a dictionary or an instance",
            "pass an array of the unknowns, and make the structure inside of the function: {'a': x[0], 'b': x[1:]}",
        )


def in_double(x0: Any) -> Any:
    """The start in double precision, for which the tolerances are meant."""
    return np.asarray(x0).astype(np.float64) if is_array(x0) else x0


def solved_number(jvp: Any, solver: Any, equation: Any, x0: Any) -> Any:
    """The root of an equation of one number."""
    return solved(jvp, None, solver, equation, x0)


# -------------------------------------------------------------------------------------------------------------- solvers


def newton(jvp: Any, linear: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
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
            step = linear(equation, x, r, False, 0.0)
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


def lowest(jacobian: Any, jvp: Any, linear: Any, objective: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    """Newton's method for a minimum. A multiple of the identity is added to the Hessian, as large as descent needs.

    Without `jacobian`, the Hessian is not formed, and `linear` solves its systems.
    """
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
            if not is_array(x0):
                slope, curvature = jvp(equation, (x,), (1.0,))
                diagonal = abs(curvature)
            elif jacobian is None:
                slope = np.asarray(equation(x))
                diagonal = curvature_along(jvp, equation, x, slope)
            else:
                slope = np.asarray(equation(x))
                curvature = square_jacobian(jacobian, equation, x)
                diagonal = 0.0
                for i in range(len(curvature)):
                    diagonal = max(diagonal, abs(curvature[i, i]))
            scale = diagonal + 1e-12
            added = added * 0.1 if added * 0.1 > 1e-9 * scale else 1e-10 * scale
        else:
            added = max(10.0 * added, 1e-3 * scale)
        goes_down = False
        while not goes_down:
            if not is_array(x0):
                step = slope / (curvature + added)
                goes_down = step * slope >= 0.0
                tried = x - step
            else:
                if jacobian is None:
                    step = linear(equation, x, slope, False, added)
                else:
                    shifted = np.copy(curvature)
                    for i in range(len(shifted)):
                        shifted[i, i] += added
                    step = solved_equations(shifted, slope)
                goes_down = np.sum(step * slope) >= 0.0
                tried = np.asarray(x - step)
            if not goes_down:
                added = max(10.0 * added, 1e-3 * scale)
            if not np.isfinite(added):
                raise RuntimeError("the derivatives of the function are not finite: pass another start")
        change, size = largest(step), largest(x) + 1e-8


def curvature_along(jvp: Any, equation: Any, x: Any, direction: Any) -> Any:
    """The size of the product of the Hessian with a direction, relative to the direction."""
    length = largest(direction)
    if length == 0.0:
        return 0.0
    return largest(np.asarray(jvp(equation, (x,), (direction,))[1])) / length


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


def levenberg_marquardt(jacobian: Any, function: Any, equation: Any, x0: Any, tol: Any, maxiter: Any) -> Any:
    """Levenberg's and Marquardt's method for the squares of a function.

    After some steps, the Hessian takes the place of the product of Jacobians: large residuals make them differ.
    """
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
            if count <= 20:
                columns = np.reshape(np.asarray(jacobian(function)(x)), (r.size, n))
                normal = np.asarray(columns.T @ columns)
                slope = np.asarray(columns.T @ np.reshape(r, r.size))
            else:
                normal = square_jacobian(jacobian, equation, x)
                slope = np.reshape(np.asarray(equation(x)), n)
            added = max(0.1 * added, 1e-12)
        else:
            added = max(10.0 * added, 1e-3)
            if added > 1e30:
                raise RuntimeError("the least squares were not found: pass another start")
        shifted = np.copy(normal)
        for i in range(n):
            shifted[i, i] += added * (abs(normal[i, i]) + 1e-12)
        step = solve_vector(shifted, slope)
        tried = np.asarray(x - np.reshape(step, x.shape))
        change, size = largest(step), largest(x) + 1e-8
