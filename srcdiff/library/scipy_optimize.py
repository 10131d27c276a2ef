"""`scipy.optimize`: roots, minima and least squares. They are solved by srcdiff's solvers, to about SciPy's tolerances.

The derivatives are those of the solution (solvers.py). If there are several roots or minima, the solver may find
another one than SciPy's. If it finds none, it raises `RuntimeError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library import solvers
from srcdiff.library.constraints import MAKERS, box_of, is_none, items_of, limits, limits_of, values_of
from srcdiff.library.language import as_tuple, derivatives_first, is_array, structural, unsupported
from srcdiff.library.linear_algebra import floats


@dataclass(frozen=True)
class Solution:
    """The attributes of `OptimizeResult` that programs may read."""

    x: Any
    fun: Any
    success: Any
    status: Any


@dataclass(frozen=True)
class Fit:
    """The attributes of the result of `least_squares` that programs may read."""

    x: Any
    fun: Any
    cost: Any
    success: Any
    status: Any


@dataclass(frozen=True)
class Root:
    """The attributes of `RootResults` that programs may read."""

    root: Any
    converged: Any


# ----------------------------------------------------------------------------------------------------------- of numbers


@derivatives_first("jacobian", "jvp")
def brentq(
    jacobian: Any,
    jvp: Any,
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    def equation(x: Any) -> Any:
        return f(x, *as_tuple(args))

    def solver(equation: Any, x0: Any) -> Any:
        return between(equation, a * 1.0, b * 1.0, xtol, rtol, maxiter)

    found = solvers.solved_number(jvp, solver, equation, a * 1.0)
    return (found, Root(found, True)) if full_output else found


def between(equation: Any, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: Any) -> Any:
    return bracketed(equation, a, equation(a), b, equation(b), xtol, rtol, maxiter)


def bracketed(equation: Any, a: Any, f_a: Any, b: Any, f_b: Any, xtol: Any, rtol: Any, maxiter: Any) -> Any:
    """Brent's method (Brent 1973): inverse quadratic steps, or bisection, from the values at both ends."""
    before, now = a, b
    f_before, f_now = f_a, f_b
    if f_before == 0.0:
        return before
    if f_now == 0.0:
        return now
    if (f_before > 0.0) == (f_now > 0.0):
        raise ValueError("f(a) and f(b) must have different signs")
    other, f_other, step, last = 0.0, 0.0, 0.0, 0.0
    for _ in range(maxiter):
        if f_before != 0.0 and f_now != 0.0 and (f_before > 0.0) != (f_now > 0.0):
            other, f_other = before, f_before
            step = last = now - before
        if abs(f_other) < abs(f_now):
            before, now, other = now, other, now
            f_before, f_now, f_other = f_now, f_other, f_now
        delta = 0.5 * (xtol + rtol * abs(now))
        half = 0.5 * (other - now)
        if f_now == 0.0 or abs(half) < delta:
            return now
        if abs(last) > delta and abs(f_now) < abs(f_before):
            if before == other:
                tried = -f_now * (now - before) / (f_now - f_before)
            else:
                first = (f_before - f_now) / (before - now)
                second = (f_other - f_now) / (other - now)
                tried = -f_now * (f_other * second - f_before * first) / (second * first * (f_other - f_before))
            if 2.0 * abs(tried) < min(abs(last), 3.0 * abs(half) - delta):
                last, step = step, tried
            else:
                step = last = half
        else:
            step = last = half
        before, f_before = now, f_now
        if abs(step) > delta:
            now += step
        else:
            now += delta if half > 0.0 else -delta
        f_now = equation(now)
    raise RuntimeError("the root was not found: pass a larger maxiter")


@derivatives_first("grad", "jacobian", "jvp")
def newton(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-08,
    maxiter: Any = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """The secant method, or with `fprime` Newton's, as in SciPy."""

    def equation(x: Any) -> Any:
        return func(x, *as_tuple(args))

    if is_array(x0):  # one equation for each element
        roots = solvers.root(grad, jacobian, jvp, equation, floats(np.asarray(x0)), bands=(0, 0))
        return (roots, np.full(roots.shape, True), np.full(roots.shape, False)) if full_output else roots

    def slope(x: Any) -> Any:
        return fprime(x, *as_tuple(args))

    def solver(equation: Any, x0: Any) -> Any:
        if fprime is None:
            second = x0 * (1.0 + 1e-4) + (1e-4 if x0 >= 0.0 else -1e-4) if x1 is None else x1 * 1.0
            return by_secants(equation, x0, second, tol, rtol, maxiter)
        return by_slopes(equation, slope, x0, tol, rtol, maxiter)

    found = solvers.solved_number(jvp, solver, equation, x0 * 1.0)
    return (found, Root(found, True)) if full_output else found


def by_secants(equation: Any, x0: Any, x1: Any, tol: Any, rtol: Any, maxiter: Any) -> Any:
    before, now = x0, x1
    f_before, f_now = equation(before), equation(now)
    if abs(f_now) < abs(f_before):
        before, now, f_before, f_now = now, before, f_now, f_before
    before, now, f_before, f_now = now, before, f_now, f_before
    for _ in range(maxiter):
        if f_now == f_before:
            if now != before:
                raise RuntimeError("the secant has no slope: pass another start")
            return now
        if abs(f_now) > abs(f_before):
            found = (-f_before / f_now * now + before) / (1.0 - f_before / f_now)
        else:
            found = (-f_now / f_before * before + now) / (1.0 - f_now / f_before)
        if abs(found - now) <= tol + rtol * abs(now):
            return found
        before, f_before = now, f_now
        now = found
        f_now = equation(now)
    raise RuntimeError("the root was not found: pass another start, or a larger maxiter")


def by_slopes(equation: Any, slope: Any, x0: Any, tol: Any, rtol: Any, maxiter: Any) -> Any:
    now = x0
    for _ in range(maxiter):
        value = equation(now)
        if value == 0.0:
            return now
        found = now - value / slope(now)
        if abs(found - now) <= tol + rtol * abs(now):
            return found
        now = found
    raise RuntimeError("the root was not found: pass another start, or a larger maxiter")


@derivatives_first("grad", "jacobian", "jvp")
def root_scalar(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    f: Any,
    args: Any = (),
    method: Any = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: Any = None,
    rtol: Any = None,
    maxiter: Any = None,
    options: Any = None,
) -> Any:
    if fprime is True:  # the function returns its derivatives, too
        return root_scalar(
            *(grad, jacobian, jvp, lambda x, *rest: f(x, *rest)[0], args, method, bracket),
            *(lambda x, *rest: f(x, *rest)[1], None, x0, x1, xtol, rtol, maxiter),
        )
    steps = 100 if maxiter is None else maxiter
    if bracket is not None:
        a, b = bracket
        near, relative = 2e-12 if xtol is None else xtol, 8.881784197001252e-16 if rtol is None else rtol
        return Root(brentq(jacobian, jvp, f, a, b, args, near, relative, steps), True)
    near, relative = 1.48e-8 if xtol is None else xtol, 0.0 if rtol is None else rtol
    return Root(newton(grad, jacobian, jvp, f, x0, fprime, args, near, steps, None, x1, relative), True)


# ------------------------------------------------------------------------------------------------------------ of arrays


@derivatives_first("grad", "jacobian", "jvp")
def root(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    if callback is not None:
        unsupported("`callback`")

    def residual(x: Any) -> Any:
        result = fun(x, *as_tuple(args))
        return np.asarray(result[0] if jac is True else result)

    x = fsolve(grad, jacobian, jvp, residual, x0)
    return Solution(x, residual(x), True, 1)


@derivatives_first("grad", "jacobian", "jvp")
def fsolve(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    func: Any,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = False,
    col_deriv: Any = False,
    xtol: Any = 1.49012e-08,
    maxfev: Any = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    def residual(x: Any) -> Any:
        return np.asarray(func(x, *as_tuple(args)))

    x = solvers.root(grad, jacobian, jvp, residual, floats(np.atleast_1d(np.asarray(x0))), bands=band)
    return (x, {"fvec": residual(x)}, 1, "The solution converged.") if full_output else x


@derivatives_first("grad", "jacobian", "jvp")
def fixed_point(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    func: Any,
    x0: Any,
    args: Any = (),
    xtol: Any = 1e-8,
    maxiter: Any = 500,
    method: Any = "del2",
) -> Any:
    """Plain iteration, which may need more steps than SciPy's method."""
    start = floats(np.asarray(x0)) if is_array(x0) else x0 * 1.0
    return solvers.fixed_point(grad, jacobian, jvp, func, start, *as_tuple(args))


@derivatives_first("grad", "jacobian", "jvp")
def minimize(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """Newton's method, for every `method`; with constraints, after an augmented Lagrangian method."""
    if callback is not None:
        unsupported("`callback`")

    def objective(x: Any) -> Any:
        result = fun(x, *as_tuple(args))
        return number(result[0] if jac is True else result)

    start = floats(np.atleast_1d(np.asarray(x0)))
    if is_none(constraints):
        if bounds is None:
            x = solvers.minimize(grad, jacobian, jvp, objective, start)
        else:
            lower, upper = limits(bounds, len(start))
            x = solvers.minimize_in_box(grad, jacobian, jvp, objective, start, lower, upper, 1e-8, 1000)
        return Solution(x, objective(x), True, 0)
    given = items_of(constraints)

    def constraint(x: Any) -> Any:
        return np.concatenate([values_of(c, x) for c in given])

    between = limits_of(given, start)
    lower, upper = limits(bounds, len(start))
    x = solvers.minimize_with_constraints(
        *(grad, jacobian, jvp, objective, constraint, between, start, lower, upper, 1e-10, 1000)
    )
    return Solution(x, objective(x), True, 0)


def number(x: Any) -> Any:
    return np.sum(x) if is_array(x) else x


@derivatives_first("grad", "jacobian", "jvp")
def least_squares(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    fun: Any,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = None,
    method: Any = "trf",
    ftol: Any = 1e-08,
    xtol: Any = 1e-08,
    gtol: Any = 1e-08,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: Any = None,
    verbose: Any = 0,
    args: Any = (),
) -> Any:
    if callable(loss):
        unsupported("`scipy.optimize.least_squares` with a function for `loss`")

    def residuals(x: Any) -> Any:
        return np.atleast_1d(np.asarray(fun(x, *as_tuple(args))))

    def cost(x: Any) -> Any:
        return 0.5 * f_scale**2 * np.sum(losses(known_loss(loss), (np.asarray(residuals(x)) / f_scale) ** 2))

    start = floats(np.atleast_1d(np.asarray(x0)))
    if bounds is not None:
        lower, upper = box_of(bounds, len(start))
        x = solvers.minimize_in_box(grad, jacobian, jvp, cost, start, lower, upper, 1e-8, 1000)
    elif loss == "linear":
        x = solvers.least_squares(grad, jacobian, jvp, residuals, start)
    else:
        x = solvers.minimize(grad, jacobian, jvp, cost, start)
    return Fit(x, np.asarray(residuals(x)), cost(x), True, 1)


@structural
def known_loss(loss: Any) -> Any:
    names = ("linear", "soft_l1", "huber", "cauchy", "arctan")
    if loss not in names:
        raise ValueError(f"`loss` must be one of {', '.join(map(repr, names))}")
    return loss


def losses(loss: Any, z: Any) -> Any:
    """The functions of squares that take the place of squares."""
    if loss == "soft_l1":
        return 2.0 * (np.sqrt(1.0 + z) - 1.0)
    if loss == "huber":
        return np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0)
    if loss == "cauchy":
        return np.log1p(z)
    if loss == "arctan":
        return np.arctan(z)
    return z


@derivatives_first("grad", "jacobian", "jvp")
def curve_fit(
    grad: Any,
    jacobian: Any,
    jvp: Any,
    f: Any,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: Any = False,
    check_finite: Any = None,
    bounds: Any = None,
    method: Any = None,
    jac: Any = None,
    *,
    maxfev: Any = None,
    ftol: Any = 1e-08,
    xtol: Any = 1e-08,
    gtol: Any = 1e-08,
) -> Any:
    if p0 is None:
        unsupported("`curve_fit` without `p0`")
    if np.ndim(sigma) > 1:
        unsupported("`curve_fit` with a matrix for `sigma`")
    start = floats(np.asarray(p0))

    def residuals(p: Any) -> Any:
        r = np.asarray(f(xdata, *p) - ydata)
        return r if sigma is None else r / sigma

    if bounds is None:
        p = solvers.least_squares(grad, jacobian, jvp, residuals, start)
    else:
        lower, upper = box_of(bounds, len(start))
        square = lambda p: 0.5 * np.sum(np.asarray(residuals(p)) ** 2)  # noqa: E731 (only in this branch)
        p = solvers.minimize_in_box(grad, jacobian, jvp, square, start, lower, upper, 1e-8, 1000)
    columns = np.asarray(jacobian(residuals)(p))
    covariance = np.linalg.inv(columns.T @ columns)
    if not absolute_sigma:
        r = np.asarray(residuals(p))
        covariance = covariance * (np.sum(r * r) / (len(r) - len(p)))
    return p, covariance


def linear_sum_assignment(cost_matrix: Any, maximize: Any = False) -> Any:
    """The shortest augmenting paths of Jonker and Volgenant, as in SciPy (Crouse 2016)."""
    given = floats(cost_matrix)
    is_tall = given.shape[0] > given.shape[1]
    cost = np.asarray(given.T) if is_tall else np.asarray(given)
    sign = -1.0 if maximize else 1.0
    rows, columns = cost.shape
    for i in range(rows):
        for j in range(columns):
            if not sign * cost[i, j] > -np.inf:
                raise ValueError("matrix contains invalid numeric entries")
    u, v, shortest = np.zeros(rows), np.zeros(columns), np.empty(columns)
    path = np.full(columns, -1)
    of_row, of_column = np.full(rows, -1), np.full(columns, -1)
    for start in range(rows):
        seen_rows, seen_columns = np.zeros(rows, np.bool_), np.zeros(columns, np.bool_)
        for j in range(columns):
            shortest[j] = np.inf
        least, i, sink = 0.0, start, -1
        while sink == -1:
            seen_rows[i] = True
            best, next_column = np.inf, -1
            for j in range(columns):
                if not seen_columns[j]:
                    reduced = least + sign * cost[i, j] - u[i] - v[j]
                    if reduced < shortest[j]:
                        path[j] = i
                        shortest[j] = reduced
                    if shortest[j] < best or (shortest[j] == best and of_column[j] == -1):
                        best, next_column = shortest[j], j
            least = best
            if next_column == -1 or least == np.inf:
                raise ValueError("cost matrix is infeasible")
            if of_column[next_column] == -1:
                sink = next_column
            else:
                i = of_column[next_column]
            seen_columns[next_column] = True
        u[start] += least
        for k in range(rows):
            if seen_rows[k] and k != start:
                u[k] += least - shortest[of_row[k]]
        for j in range(columns):
            if seen_columns[j]:
                v[j] -= least - shortest[j]
        j = sink
        i = -1
        while i != start:
            i = path[j]
            of_column[j] = i
            j, of_row[i] = of_row[i], j
    if is_tall:
        order = np.argsort(of_row)
        return np.asarray(of_row[order]), order
    return np.asarray(np.arange(rows)), of_row


FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(("brentq", "brenth", "bisect", "ridder", "toms748"), brentq),
    **{
        function.__name__: function
        for function in (
            *(newton, root_scalar, root, fsolve, fixed_point, minimize, least_squares, curve_fit),
            linear_sum_assignment,
        )
    },
    **MAKERS,
}
"""By the name in `scipy.optimize`."""
