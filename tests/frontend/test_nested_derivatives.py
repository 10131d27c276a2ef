"""Derivatives inside a function: the front end writes an operation, and a pass takes the derivative."""

import numpy as np
import pytest

import srcdiff
from srcdiff import pipeline
from srcdiff.analyses.failing_checks import check_fails
from srcdiff.frontend.read import read
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.nodes import Derivative, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.print import show
from srcdiff.ir.types import FLOAT
from srcdiff.signature.descriptions import Description
from tests.numerical import derivative


def cube(x):
    return x * x * x


def slope(x):
    return x * srcdiff.grad(cube)(x)


def curvature(x):
    return srcdiff.grad(lambda y: srcdiff.grad(cube)(y) * x)(x)


def power(n, x):
    return 1.0 if n == 0 else x * power(n - 1, x)


def slope_of_power(x):
    return srcdiff.grad(lambda y: power(3, y))(x) * power(2, x)


def difference_at(x, function):
    return derivative(lambda step: function(x + step)).value


def program_of(function):
    return read(capture(function), {"x": Description("value", FLOAT)}).program


def test_a_derivative_is_an_operation_of_the_program():
    expected = """\
slope(x%0: float64)
    t%2: float64 = derivative cube(x%0) params=(x%1: float64) mode=reverse
        t%3: float64 = multiply(x%1, x%1)
        t%4: float64 = multiply(t%3, x%1)
        yield t%4
    t%5: float64 = multiply(x%0, t%2)
    yield t%5"""

    assert expected == show(program_of(slope))


def test_the_front_end_runs_no_pass(monkeypatch):
    def refuse(*given):
        raise AssertionError("a pass runs")

    monkeypatch.setattr("srcdiff.passes.derivative_expansion.run", refuse)
    monkeypatch.setattr("srcdiff.passes.manager.run", refuse)

    assert 2 == sum(isinstance(o, Derivative) for o in walk(program_of(curvature).main.body))


def test_only_the_first_pass_sees_it():
    first = {passes[0].name for passes in (pipeline.PASSES, pipeline.KERNEL_PASSES)}

    assert {"nested derivatives"} == first


def test_derivatives_in_a_loop_are_taken_once(monkeypatch):
    """The number of readings of the loop's body does not matter."""
    from srcdiff.passes import derivative_expansion

    taken, run = [], derivative_expansion.run
    monkeypatch.setattr(derivative_expansion, "run", lambda *given: (taken.append(given), run(*given)))

    def descend(x):
        rate = 1
        for _ in range(3):
            x = x - rate * srcdiff.grad(cube)(x)
            rate = rate * 0.5
        return x

    assert np.isfinite(srcdiff.grad(descend, backend="python")(0.3))
    assert 1 == len(taken)


def descent_of_arrays(x):
    y = np.array([x, 2.0 * x])
    while np.sum(srcdiff.grad(lambda z: np.sum(z**4) + z[0] ** 2)(y) ** 2) > 0.5:
        y = y - 0.05 * srcdiff.grad(lambda z: np.sum(z**4) + z[0] ** 2)(y)
    return np.sum(y * y)


def steps_by_a_loop(x):
    def polynomial(y):
        total = 0.0
        for k in range(4):
            total += y**k
        return total

    while srcdiff.grad(polynomial)(x) > 2.0:
        x = x * 0.7
    return x * x


def steps(x):
    while srcdiff.grad(cube)(x) > 0.1:
        x = x * 0.7
    return x * x


def steps_by_a_jacobian(x):
    while np.sum(srcdiff.jacobian(lambda y: np.array([y, y * y]))(x)) > 2.0:
        x = x * 0.7
    return x * x


@pytest.mark.parametrize("function", [descent_of_arrays, steps_by_a_loop, steps, steps_by_a_jacobian])
def test_derivatives_in_the_condition_of_a_loop(function):
    expected = difference_at(0.9, function)

    np.testing.assert_allclose(srcdiff.grad(function, backend="python")(0.9), expected, rtol=1e-6)


def scaled(n, x, factors):
    """Writes into its second argument."""
    if n == 0:
        return 0.0
    x[0] = x[0] * factors[0]
    return scaled(n - 1, x, factors) + x[0] * x[1]


def test_recursive_functions_that_write_are_refused_arrays_that_share_memory():
    def function(x):
        y = np.array([x, 2.0 * x])
        return np.sum(srcdiff.grad(lambda z: scaled(2, z, y))(y))

    with pytest.raises(srcdiff.DifferentiationError, match="writes to an array that may share memory"):
        srcdiff.grad(function, backend="python")(1.3)


def test_recursive_functions_may_write_into_arrays_that_share_no_memory():
    def function(x):
        y = np.array([x, 2.0 * x])
        factors = y * 2.0
        return np.sum(srcdiff.grad(lambda z: scaled(2, z, factors))(y)) + y[0]

    # y = (x, 2 * x); the derivatives of 2 * f**2 * y[0] * y[1] by both, where f = 2 * x, and y[0]: 24 * x**3 + x
    np.testing.assert_allclose(72.0 * 1.3**2 + 1.0, srcdiff.grad(function, backend="python")(1.3))


@srcdiff.custom_rule(adjoint=lambda x, out, out_bar: srcdiff.grad(cube)(x) * out_bar)
def cube_by_adjoint(x):
    return x * x * x


@srcdiff.custom_rule(tangent=lambda x, out, x_dot: srcdiff.jvp(cube, (x,), (x_dot,))[1])
def cube_by_tangent(x):
    return x * x * x


@pytest.mark.parametrize("ruled", [cube_by_adjoint, cube_by_tangent])
def test_rules_take_derivatives(ruled):
    def function(x):
        return ruled(x) * srcdiff.grad(lambda y: ruled(y) * y)(x)

    np.testing.assert_allclose(24.0 * 1.3**5, srcdiff.grad(function, backend="python")(1.3))
    np.testing.assert_allclose(24.0 * 1.3**5, srcdiff.jvp(function, (1.3,), (1.0,), backend="python")[1])


def test_names_of_derivatives_can_be_differentiated_by():
    def function(x):
        y = srcdiff.grad(cube)(x)
        return y * y

    np.testing.assert_allclose(2.0 * 3.0 * 1.3**2, srcdiff.grad(function, wrt="y", backend="python")(1.3))


def test_a_name_that_is_an_argument_is_refused():
    def function(x):
        y = srcdiff.grad(lambda z: z * x)(1.0)
        return y * y

    with pytest.raises(srcdiff.DifferentiationError, match="`y` and `x` are the same number"):
        srcdiff.grad(function, wrt="y", backend="python")(1.3)


SCALE = 0.7


def term(x, depth):
    return x if depth <= 0 else x * x + term(SCALE * x, depth - 1) + term(SCALE, 1 - 1)


def test_recursive_functions_read_globals():
    def function(x):
        return srcdiff.grad(lambda y: term(y, 2))(x) * x + SCALE * x

    # the derivative of x**2 + 0.49 * x**2 + 0.49 * x is 2.98 * x + 0.49
    np.testing.assert_allclose(2 * 2.98 * 1.3 + 0.49 + SCALE, srcdiff.grad(function, backend="python")(1.3))


def test_derivatives_of_recursive_functions_agree():
    np.testing.assert_allclose(12.0 * 1.3**3, srcdiff.grad(slope_of_power, backend="python")(1.3))


def test_checks_inside_a_derivative_are_known_to_fail():
    program = parse("""
f(x%0: float64[:], y%1: float64[:])
    d%2: float64[:] = derivative g(x%0) params=(p%3: float64[:]) mode=reverse
        t%4: int64 = p%3.shape[0]
        t%5: int64 = y%1.shape[0]
        t%6: bool = not_equal(t%4, t%5)
        if t%6
            raise ValueError('shapes differ')
        t%7: int64 = 0
        t%8: float64 = p%3[t%7]
        yield t%8
    yield d%2
""")
    x, y = program.main.params

    assert [False, True] == [check_fails(program.main, {x: (3,), y: (length,)}) for length in (3, 1)]


def test_an_array_around_a_derivative_is_not_written():
    def function(x):
        y = np.array([x, 2.0 * x])

        def inner(z):
            y[0] = z * z
            return y[0] * y[1]

        return srcdiff.grad(inner)(x) + y[0]  # 4 * x**2 + x

    np.testing.assert_allclose(8.0 * 1.3 + 1.0, srcdiff.grad(function, backend="python")(1.3))


def test_problems_of_a_derivative_have_the_line_of_its_function():
    def inner(y):
        return np.array([y, y])

    def function(x):
        return srcdiff.grad(inner)(x)

    with pytest.raises(srcdiff.DifferentiationError, match="the result is an array, not one float") as caught:
        srcdiff.grad(function, backend="python")(1.3)
    assert ["inner"] == [problem.span.function for problem in caught.value.problems]
