"""Implicit functions: `srcdiff.root` and similar functions, and `scipy.optimize` inside differentiated functions."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.optimize as so

import srcdiff

T = np.linspace(0.0, 1.0, 7)
Y = 2.0 * np.exp(-3.0 * T) + 0.1 * np.cos(9.0 * T)
K = np.array([[3.0, 1.0], [0.5, 2.0]])
SCALE = 0.1


def cubic(x, p):
    return x**3 + p * x - 1.0


def number(p):
    return srcdiff.root(cubic, 1.0, p, backend="python") ** 2


def vector(p, q):
    def residual(x):
        return K @ x + SCALE * x**3 - p * q

    return np.sum(np.sin(srcdiff.root(residual, np.zeros(2), backend="python")))


def matrix(a):
    def residual(x, a):
        return x @ x - a

    return np.sum(srcdiff.root(residual, np.eye(2), a, backend="python") ** 3)


def fixed(a):
    return np.sum(srcdiff.fixed_point(lambda x: np.cos(a * x), np.array([1.0, 0.5]), backend="python") ** 2)


def lowest(p, q):
    def rosenbrock(x):
        return (x[0] - p) ** 2 + q * (x[1] - x[0] ** 2) ** 2

    return np.sum(np.sin(srcdiff.minimize(rosenbrock, np.zeros(2), backend="python")))


def lowest_number(a):
    return srcdiff.minimize(lambda x, a: (x - a) ** 4 + x * x, 0.0, a, backend="python")


def misfit(p, y):
    return p[0] * np.exp(-p[1] * T) - y


def fitted(y):
    return np.sum(srcdiff.least_squares(misfit, np.array([1.0, 1.0]), y, backend="python") ** 2)


def inside_each_other(b):
    def inner(a):
        return srcdiff.root(lambda x: x**2 - a, 1.0, backend="python")

    return srcdiff.root(lambda y: y + inner(1.0 + y * y * b) - 3.0, 1.0, backend="python")


def in_a_loop(p):
    x = 1.0
    total = 0.0
    for k in range(4):
        if k != 2:
            x = srcdiff.root(cubic, x, p + k * x, backend="python")
        total += x * p
    return total


def of_a_list(p):
    weights = [p[k] ** 2 for k in range(len(p))]
    weights.append(2.0)

    def residual(x):
        total = x
        for w in weights:
            total = total + w * np.tanh(x) - 0.3
        return total

    return srcdiff.root(residual, 0.2, backend="python")


def of_overlapping_views(p):
    first, second = p[1:], p[:-1]
    found = srcdiff.root(lambda x: x**3 + x * first - second, np.ones(len(p) - 1), backend="python")
    return np.sum(found * first)


def overwritten_afterwards(p):
    p = p.copy()
    found = srcdiff.root(lambda x, a: x**3 + x - a, np.ones(len(p)), p, backend="python")
    p[:] = 0.0
    return np.sum(found**2) + np.sum(p)


def never_run(p, n):
    total = p * p
    for _ in range(n):
        total += srcdiff.root(cubic, 1.0, p, backend="python")
    return total


PROGRAMS = {
    "number": (number, (2.0,)),
    "vector": (vector, (np.array([1.0, 2.0]), 3.0)),
    "matrix": (matrix, (np.array([[2.0, 0.3], [0.4, 3.0]]),)),
    "fixed": (fixed, (0.7,)),
    "lowest": (lowest, (1.0, 10.0)),
    "lowest_number": (lowest_number, (1.0,)),
    "fitted": (fitted, (Y,)),
    "inside_each_other": (inside_each_other, (0.5,)),
    "in_a_loop": (in_a_loop, (2.0,)),
    "of_a_list": (of_a_list, (np.array([0.5, 1.5]),)),
    "of_overlapping_views": (of_overlapping_views, (np.array([0.5, 1.5, 2.5]),)),
    "overwritten_afterwards": (overwritten_afterwards, (np.array([0.5, 1.5, 2.5]),)),
    "never_run": (never_run, (2.0, 0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments, order=2, backend="python")


@pytest.mark.parametrize("name", ["number", "vector", "lowest", "fitted", "inside_each_other", "of_overlapping_views"])
def test_second_derivatives(name):
    function, arguments = PROGRAMS[name]

    def slope(*given):
        return np.sum(np.sin(srcdiff.grad(function, backend="python")(*given)))

    srcdiff.check(slope, *arguments, backend="python")


def test_third_derivative():
    third = srcdiff.grad(srcdiff.grad(srcdiff.grad(number)), backend="python")(2.0)
    step = 1e-3
    second = srcdiff.grad(srcdiff.grad(number), backend="python")
    expected = (8 * (second(2 + step) - second(2 - step)) - (second(2 + 2 * step) - second(2 - 2 * step))) / (12 * step)
    assert third == pytest.approx(expected, rel=1e-8)


@pytest.mark.numba
@pytest.mark.parametrize("name", ["number", "vector", "lowest", "fitted", "inside_each_other", "of_overlapping_views"])
def test_compiled(name):
    function, arguments = PROGRAMS[name]
    expected = srcdiff.grad(function, backend="python")(*arguments)
    np.testing.assert_allclose(srcdiff.grad(function)(*arguments), expected, rtol=1e-8)  # both stop at the tolerance


def test_the_adjoint_keeps_nothing_of_the_iterations():
    derivative = srcdiff.grad(vector, backend="python")
    derivative(np.array([1.0, 2.0]), 3.0)
    assert "kept" not in derivative.source


def test_a_batch():
    p = np.array([1.0, 2.0, 3.0])
    found = srcdiff.batched(srcdiff.grad(number, backend="python"))(p)
    np.testing.assert_allclose(found, [srcdiff.grad(number, backend="python")(x) for x in p], rtol=1e-12)


def test_an_integer_to_start_with_is_a_float():
    assert srcdiff.root(cubic, 1, 2.0, backend="python") == pytest.approx(0.4533976515)


def test_what_is_not_found_raises():
    with pytest.raises(RuntimeError, match="root was not found"):
        srcdiff.grad(lambda p: srcdiff.root(lambda x: x * x + p, 1.0), backend="python")(2.0)
    with pytest.raises(RuntimeError, match="fixed point"):
        srcdiff.grad(lambda p: srcdiff.fixed_point(lambda x: 2.0 * x + p, 1.0, maxiter=50), backend="python")(2.0)


def test_a_singular_system_raises():
    with pytest.raises(np.linalg.LinAlgError):
        srcdiff.grad(
            lambda p: np.sum(srcdiff.root(lambda x: p * (x[0] + x[1]) * np.ones(2), np.ones(2))), backend="python"
        )(2.0)


def test_the_residual_is_like_the_start():
    with pytest.raises(srcdiff.DifferentiationError, match="the residual is"):
        srcdiff.grad(lambda p: np.sum(srcdiff.root(lambda x: p * x[0], np.ones(2))), backend="python")(2.0)
    with pytest.raises(ValueError, match="different lengths"):
        srcdiff.grad(lambda p: np.sum(srcdiff.root(lambda x: p * x[:1], np.ones(2))), backend="python")(2.0)


@pytest.mark.parametrize("solve", [srcdiff.root, srcdiff.fixed_point, srcdiff.minimize, srcdiff.least_squares])
def test_unknowns_in_a_structure_are_refused(solve):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    for start in ({"a": 1.0, "b": np.ones(2)}, Pair(1.0, 2.0)):
        with pytest.raises(srcdiff.DifferentiationError, match="a dictionary or an instance") as refusal:
            solve(lambda x: x, start, backend="python")
        assert "pass an array" in str(refusal.value)


def test_a_residual_that_assigns_outside_is_refused():
    def f(p):
        count = 0

        def residual(x):
            nonlocal count
            count += 1
            return x * x - p

        return srcdiff.root(residual, 1.0) + count

    with pytest.raises(srcdiff.DifferentiationError, match="assigns `count`"):
        srcdiff.grad(f, backend="python")(2.0)


def test_globals_are_read_anew():
    global SCALE
    derivative = srcdiff.grad(vector, backend="python")
    before = derivative(np.array([1.0, 2.0]), 3.0)
    SCALE = 0.2
    try:
        after = derivative(np.array([1.0, 2.0]), 3.0)
        srcdiff.check(vector, np.array([1.0, 2.0]), 3.0, backend="python")
    finally:
        SCALE = 0.1
    assert abs(before - after).max() > 1e-3


# -- scipy.optimize --------------------------------------------------------------------------------------------------


def system(x, p):
    return [x[0] + p[0] * x[1] ** 3 - 1.0, p[1] * x[1] - np.sin(x[0])]


def model(t, a, b):
    return a * np.exp(-b * t)


def chained(p):
    result = so.root(system, [0.5, 0.5], args=(p,))
    return np.sum(result.x**2) + np.sum(result.fun)


def cubic_slope(x, p):
    return 3.0 * x**2 + p


def cubic_with_slope(x, p):
    return cubic(x, p), cubic_slope(x, p)


def slopes(x, p):
    return [[1.0, 3.0 * p[0] * x[1] ** 2], [-np.cos(x[0]), p[1]]]


def with_details(p):
    """Roots of numbers with all that SciPy returns."""
    one, details = so.brentq(cubic, 0.0, 1.0, args=(p,), full_output=True)
    two, more = so.newton(cubic, 1.0, args=(p,), full_output=True)
    several, converged, no_slope = so.newton(lambda x: x**2 - p, np.array([1.0, 3.0]), full_output=True)
    found = several * converged + 2.0 * no_slope
    return one * details.root + (two * more.root if more.converged else 0.0) + found[0] * found[1]


def system_with_details(p):
    x, details, code, message = so.fsolve(system, [0.5, 0.5], args=(p,), full_output=True)
    if code != 1:
        raise RuntimeError(message)
    return np.sum(x**2) + np.sum(details["fvec"])


def with_jacobian(p):
    one = so.root(system, [0.5, 0.5], args=(p,), jac=slopes)
    two = so.root(lambda x: (system(x, p), slopes(x, p)), [0.5, 0.5], jac=True)
    return np.sum(one.x) + np.sum(two.x**2) + np.sum(two.fun)


def with_gradient(p):
    def objective(x):
        return np.sum((x - p) ** 4 + x**2), 4.0 * (x - p) ** 3 + 2.0 * x

    one = so.minimize(objective, np.zeros(2), jac=True)
    two = so.minimize(lambda x: objective(x)[0], np.zeros(2), jac=lambda x: objective(x)[1], bounds=[(-1.0, 1.0)] * 2)
    return one.x[0] + two.x[1] + one.fun


def with_slope(p):
    one = so.root_scalar(cubic, args=(p,), x0=1.0, fprime=cubic_slope)
    two = so.root_scalar(cubic_with_slope, args=(p,), x0=1.0, fprime=True)
    return one.root + two.root**2


def between_bounds(y):
    return np.sum(so.curve_fit(model, T, y, [1.0, 1.0], bounds=([0.0, 0.0], [np.inf, 9.0]), maxfev=999)[0])


def assigned(c):
    rows, columns = so.linear_sum_assignment(c)
    return np.sum(c[rows, columns] ** 2)


def assigned_most(c):
    rows, columns = so.linear_sum_assignment(c, maximize=True)
    return np.sum(c[rows, columns] ** 2)


SCIPY = {
    "brentq": (lambda p: so.brentq(cubic, 0.0, 1.0, args=(p,)) ** 2, (2.0,)),
    "brentq_of_bounds": (lambda p: so.brentq(lambda x: x**3 - p, p * 0.1, 2.0 * p), (2.0,)),
    "bisect": (lambda p: so.bisect(cubic, 0.0, 1.0, args=p), (2.0,)),
    "newton": (lambda p: so.newton(cubic, 1.0, args=(p,)) ** 2, (2.0,)),
    "newton_slope": (lambda p: so.newton(cubic, 1.0, lambda x, p: 3 * x**2 + p, args=(p,)), (2.0,)),
    "root_scalar": (lambda p: so.root_scalar(cubic, args=(p,), bracket=[0.0, 1.0]).root, (2.0,)),
    "root_scalar_start": (lambda p: so.root_scalar(cubic, args=(p,), x0=1.0, x1=0.5).root, (2.0,)),
    "root": (chained, (np.array([0.3, 1.5]),)),
    "fsolve": (lambda p: np.sum(so.fsolve(system, [0.5, 0.5], args=(p,))), (np.array([0.3, 1.5]),)),
    "fixed_point": (lambda p: so.fixed_point(lambda x, p: np.exp(-p * x), 0.5, args=(p,)), (0.9,)),
    "minimize": (lambda p: so.minimize(lambda x, p: np.sum((x - p) ** 4 + x**2), np.zeros(2), args=(p,)).x[0], (1.0,)),
    "minimum": (lambda p: so.minimize(lambda x: np.sum((x - p) ** 4 + x**2), np.zeros(2)).fun, (1.0,)),
    "least_squares": (lambda y: np.sum(so.least_squares(misfit, [1.0, 1.0], args=(y,)).x), (Y,)),
    "cost": (lambda y: so.least_squares(misfit, [1.0, 1.0], args=(y,)).cost, (Y,)),
    "curve_fit": (lambda y: np.sum(so.curve_fit(model, T, y, p0=[1.0, 1.0])[0] ** 2), (Y,)),
    "covariance": (lambda y: np.sum(so.curve_fit(model, T, y, p0=[1.0, 1.0])[1]), (Y,)),
    "fit_between_bounds": (between_bounds, (Y,)),
    "details": (with_details, (2.0,)),
    "details_of_a_system": (system_with_details, (np.array([0.3, 1.5]),)),
    "jacobian": (with_jacobian, (np.array([0.3, 1.5]),)),
    "gradient": (with_gradient, (1.0,)),
    "slope": (with_slope, (2.0,)),
    "assignment": (assigned, (np.random.default_rng(1).normal(size=(4, 6)),)),
    "assignment_tall": (assigned_most, (np.random.default_rng(1).normal(size=(6, 4)),)),
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy(name):
    function, arguments = SCIPY[name]
    compiled = srcdiff.differentiable(function, backend="python")
    assert compiled(*arguments) == pytest.approx(function(*arguments), rel=3e-5)  # SciPy's minimize stops at 1e-5
    gradient = srcdiff.grad(function, backend="python")(*arguments)
    for place in np.ndindex(np.shape(arguments[0])):
        step = np.zeros(np.shape(arguments[0]))
        step[place] = 1e-4
        step = step if step.shape else 1e-4
        expected = (compiled(arguments[0] + step) - compiled(arguments[0] - step)) / 2e-4
        assert np.asarray(gradient)[place] == pytest.approx(expected, rel=2e-6, abs=2e-7)  # the differences have h^2


@pytest.mark.parametrize("name", ["brentq", "root", "minimize", "curve_fit", "jacobian", "slope"])
def test_scipy_second_order(name):
    function, (point,) = SCIPY[name]
    step = np.ones(np.shape(point)) if np.ndim(point) else 1.0
    gradient = srcdiff.grad(function, backend="python")
    expected = (gradient(point + 1e-4 * step) - gradient(point - 1e-4 * step)) / 2e-4
    product = srcdiff.hvp(function, backend="python")(point, step)
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-6)  # the differences have h^2


def test_costs_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="invalid numeric entries"):
        srcdiff.grad(assigned, backend="python")(np.array([[1.0, np.nan], [2.0, 3.0]]))


def test_a_root_without_a_change_of_sign_raises():
    with pytest.raises(ValueError, match="different signs"):
        srcdiff.grad(lambda p: so.brentq(cubic, 2.0, 3.0, args=(p,)), backend="python")(2.0)


def in_a_box(p, b):
    def objective(x):
        return (x[0] - p) ** 4 + (x[0] - p) ** 2 + p * (x[1] - x[0]) ** 2 + 0.1 * x[1] + (x[2] - p * x[1]) ** 2

    found = so.minimize(objective, np.full(3, 0.5), bounds=[(0.0, b), (None, 2.0 * b), (p, None)])
    return np.sum(np.sin(found.x)) + found.fun


def in_boxes(p, b):
    x, total = np.zeros(2), 0.0
    for k in range(1, 3):

        def objective(y, k=k, x=x):
            return np.sum((y - p * k) ** 2) + y[0] * y[1] * b * 0.3 + np.sum((y - x) ** 4)

        x = so.minimize(objective, x, bounds=((0, 1.5), (-1, b))).x
        total += x[0] * x[1]
    return total


@pytest.mark.parametrize(("function", "p"), [(in_a_box, 1.5), (in_a_box, 0.4), (in_boxes, 0.7)])
def test_minima_between_bounds(function, p):
    value = srcdiff.differentiable(function, backend="python")
    assert value(p, 0.8) == pytest.approx(function(p, 0.8), rel=1e-5)  # SciPy stops earlier
    gradient, h = srcdiff.grad(function, wrt=(0, 1), backend="python"), 1e-4
    expected = (value(p + h, 0.8) - value(p - h, 0.8)) / (2 * h), (value(p, 0.8 + h) - value(p, 0.8 - h)) / (2 * h)
    assert gradient(p, 0.8) == pytest.approx(expected, rel=1e-6)
    second = (gradient(p + h, 0.8)[0] - gradient(p - h, 0.8)[0]) / (2 * h)
    assert srcdiff.hvp(function, backend="python")(p, 0.8, 1.0) == pytest.approx(second, rel=1e-6)


def test_a_minimum_at_a_bound_that_does_not_hold_it_has_no_derivative():
    def minimum(p):
        return so.minimize(lambda x: np.sum((x - p) ** 2), [0.5, 0.5], bounds=[(0.0, 2.0), (1.0, 3.0)]).x[1]

    assert srcdiff.differentiable(minimum, backend="python")(1.0) == pytest.approx(1.0)
    gradient = srcdiff.grad(minimum, backend="python")
    assert (gradient(0.5), gradient(1.5)) == pytest.approx((0.0, 1.0))
    with pytest.raises(RuntimeError, match="at a bound where the slope is zero"):
        gradient(1.0)


def constrained(p, q):
    constraints = [
        {"type": "ineq", "fun": lambda x, a: a - x[0] ** 2, "args": (q,)},
        {"type": "eq", "fun": lambda x: x[0] + x[1] ** 2 - p},
    ]
    return np.sum(np.sin(so.minimize(lambda x: p * (x[0] - 2.0) ** 2 + x[1], [0.3, 0.5], constraints=constraints).x))


CURVED = so.NonlinearConstraint(lambda x: x[0] ** 2 + x[1], 0.0, 1.5)


def constrained_in_a_box(p, q):
    sums = so.LinearConstraint(np.array([[1.0, 1.0]]), -q, 2.0 * q)
    found = so.minimize(
        lambda x: (x[0] - 2.0 * p) ** 2 + np.sum((x - q) ** 4),
        np.full(2, 0.3),
        bounds=so.Bounds([0.0, 0.0], 2.0),
        constraints=(sums, CURVED),
    )
    return np.sum(found.x**3) + found.fun


@pytest.mark.parametrize("function", [constrained, constrained_in_a_box])
def test_minima_under_constraints(function):
    value = srcdiff.differentiable(function, backend="python")
    assert value(1.3, 0.7) == pytest.approx(function(1.3, 0.7), rel=1e-4)  # SciPy stops earlier
    gradient, h = srcdiff.grad(function, wrt=(0, 1), backend="python"), 1e-4
    expected = (
        (value(1.3 + h, 0.7) - value(1.3 - h, 0.7)) / (2 * h),
        (value(1.3, 0.7 + h) - value(1.3, 0.7 - h)) / (2 * h),
    )
    assert gradient(1.3, 0.7) == pytest.approx(expected, rel=1e-6)
    if function is constrained:
        second = (gradient(1.3 + h, 0.7)[0] - gradient(1.3 - h, 0.7)[0]) / (2 * h)
        assert srcdiff.hvp(function, backend="python")(1.3, 0.7, 1.0) == pytest.approx(second, rel=1e-6)


def test_a_constraint_that_does_not_hold_the_minimum_has_no_derivative():
    def minimum(p):
        at_most = {"type": "ineq", "fun": lambda x: 1.0 - x[0]}
        return so.minimize(lambda x: (x[0] - p) ** 2 + x[1] ** 2, [0.3, 0.3], constraints=at_most).x[0]

    gradient = srcdiff.grad(minimum, backend="python")
    assert (gradient(0.5), gradient(1.5)) == pytest.approx((1.0, 0.0))
    with pytest.raises(RuntimeError, match="whose multiplier is zero"):
        gradient(1.0)


def test_constraints_that_no_point_satisfies_raise():
    def minimum(p):
        between = {"type": "ineq", "fun": lambda x: np.array([p - x[0], x[0] - 2.0 * p])}
        return so.minimize(lambda x: x[0] ** 2, np.ones(1), constraints=between).x[0]

    with pytest.raises(RuntimeError, match="satisfies the constraints"):
        srcdiff.differentiable(minimum, backend="python")(1.0)


def robust(y, p):
    start, box = [1.0, 1.0], ([0.0, 0.9], [np.inf, 5.0])
    first = so.least_squares(misfit, start, args=(y,), loss="cauchy", f_scale=p).x
    return np.sum(first**2) + so.least_squares(misfit, start, args=(y,), bounds=box, loss="soft_l1").x[0]


def test_losses_and_bounds_of_least_squares():
    value, h = srcdiff.differentiable(robust, backend="python"), 1e-4
    assert value(Y, 0.3) == pytest.approx(robust(Y, 0.3), rel=1e-4)  # SciPy stops earlier
    bars = srcdiff.grad(robust, wrt=(0, 1), backend="python")(Y, 0.3)
    found = np.sum(bars[0] * T) + bars[1]
    expected = (value(Y + h * T, 0.3 + h) - value(Y - h * T, 0.3 - h)) / (2 * h)
    assert found == pytest.approx(expected, rel=1e-6)


def test_least_squares_with_large_residuals_are_found():
    def residuals(p, y):
        return np.array([p[0] - y[0], p[1] * p[0] - y[1], p[0] + p[1] - y[2]])

    def fit(y):
        # Gauss-Newton's steps do not converge here: the residuals are large.
        p = so.least_squares(residuals, np.ones(2), args=(y,), ftol=1e-15, xtol=1e-15, gtol=1e-15).x
        return p[0] * p[1]

    srcdiff.check(fit, np.array([0.5, 1.5, 0.7]), backend="python")


def test_newton_of_arrays_solves_one_equation_for_each_element():
    def roots(p):
        return np.sum(so.newton(cubic, np.ones(3), args=(p,)) ** 2)

    p = np.array([1.0, 2.0, 3.0])
    assert srcdiff.differentiable(roots, backend="python")(p) == pytest.approx(roots(p))
    srcdiff.check(roots, p, backend="python")


# -- linear solvers ---------------------------------------------------------------------------------------------------


def chain(x, p):
    residual = p * x + x**3 - 1.0
    residual[1:] += 0.3 * x[:-1] ** 2
    residual[:-1] += 0.2 * np.sin(x[1:])
    return residual


def energy(x, p):
    return np.sum(p * x**2 - x) + np.sum((x[1:] - x[:-1]) ** 4)


LINEAR_SOLVERS = {
    "bands": (srcdiff.root, chain, {"bands": (1, 1)}),
    "gmres": (srcdiff.root, chain, {"linear_solver": "gmres"}),
    "cg": (srcdiff.minimize, energy, {"linear_solver": "cg"}),
    "bands of a Hessian": (srcdiff.minimize, energy, {"bands": (1, 1)}),
}


def derivative_by(solve, function, order, **options):
    """The gradient, or its derivative in a direction, of a number made of the solution."""

    def found(p):
        return np.sum(np.sin(solve(function, np.ones(3), p, **options)) * np.arange(3.0))

    p, v = np.array([1.0, 1.5, 0.8]), np.array([1.0, -1.0, 0.5])
    return srcdiff.grad(found, backend="python")(p) if order == 1 else srcdiff.hvp(found, backend="python")(p, v)


derivative_by_dense_matrices = functools.cache(derivative_by)


@pytest.mark.parametrize("name", LINEAR_SOLVERS)
def test_linear_solvers(name):
    solve, function, options = LINEAR_SOLVERS[name]
    order = 1 if name == "cg" else 2
    dense = derivative_by_dense_matrices(solve, function, order)
    np.testing.assert_allclose(derivative_by(solve, function, order, **options), dense, rtol=1e-7)


def test_a_jacobian_that_is_not_symmetric_is_noticed():
    def first(p):
        a = np.array([[4.0, 0.1], [0.0, 4.0]])
        return srcdiff.root(lambda x: p * (a @ x) - 1.0, np.zeros(2), linear_solver="cg")[0]

    with pytest.raises(ValueError, match="not symmetric"):
        srcdiff.grad(first, backend="python")(2.0)


def test_a_jacobian_outside_of_its_bands_is_noticed():
    with pytest.raises(ValueError, match="outside of `bands`"):
        srcdiff.root(chain, np.ones(4), 1.0, bands=(1, 0), backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match="'dense', 'gmres', 'cg'"):
        srcdiff.root(chain, np.ones(4), 1.0, linear_solver="lu", backend="python")
