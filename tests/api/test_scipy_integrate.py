"""`scipy.integrate` inside differentiated functions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate as si

import srcdiff

TIMES = np.linspace(0.0, 2.0, 5)
RATE, START = 0.7, 1.3
X = np.array([0.0, 0.3, 0.5, 1.1, 1.4, 2.0])
SAMPLES = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3], [1.5, 1.0], [0.1, 0.2], [3.0, -2.0]])


def decay(t, y, rate):
    return [-rate * y[0], -2.0 * rate * y[1]]


def fall(t, y, g):
    return [y[1], -g]


def ground(t, y, g):
    return y[0]


def half_way(t, y, g):
    return y[0] - 0.5


ground.terminal, ground.direction = True, -1.0
half_way.terminal = 2


def passing(t, y, g):
    return y[1]


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_solve_ivp_with_times(method):
    def loss(rate, end):
        solution = si.solve_ivp(
            decay, (0.0, end), [START, 2.0], method, TIMES[1:3], args=(rate,), rtol=1e-9, atol=(1e-9, 1e-10)
        )
        return np.sum(solution.y) * end

    def formula(rate, end):
        at = TIMES[1:3]
        return np.sum(START * np.exp(-rate * at) + 2.0 * np.exp(-2.0 * rate * at)) * end

    agrees_with_formula(loss, formula)


def test_solve_ivp_without_times():
    def loss(rate, end):
        solution = si.solve_ivp(decay, (0.0, end), [START, 2.0], args=(rate,), rtol=1e-9, atol=1e-9)
        return solution.y[0, -1] * solution.t[-1]

    agrees_with_formula(loss, lambda rate, end: START * np.exp(-rate * end) * end)


def agrees_with_formula(loss, formula):
    value, slopes = srcdiff.value_and_grad(loss, wrt=(0, 1), backend="python")(RATE, 1.8)
    expected = srcdiff.value_and_grad(formula, wrt=(0, 1), backend="python")(RATE, 1.8)
    assert value == pytest.approx(loss(RATE, 1.8), rel=1e-7)
    assert (value, slopes) == (pytest.approx(expected[0], rel=1e-7), pytest.approx(expected[1], rel=1e-6))


def test_the_dense_output_of_solve_ivp():
    def loss(rate, t):
        solution = si.solve_ivp(decay, (0.0, 2.0), [START, 2.0], dense_output=True, args=(rate,), rtol=1e-9, atol=1e-9)
        return solution.sol(t)[0] + np.sum(solution.sol(np.array([0.0, 2.0]))[0])

    expected = START * np.exp(-RATE * 0.77)
    at_end = -2.0 * START * np.exp(-2.0 * RATE)
    found = srcdiff.grad(loss, wrt=(0, 1), backend="python")(RATE, 0.77)
    assert found == pytest.approx((-0.77 * expected + at_end, -RATE * expected), rel=1e-5)


def flight(v, g, *events):
    return si.solve_ivp(fall, (0.0, 9.0), [0.0, v], args=(g,), events=events, rtol=1e-8, atol=1e-8)


def test_events_that_end_the_integration():
    def landing(v, g):
        return flight(v, g, ground).t_events[0][0]

    slopes = srcdiff.grad(landing, wrt=(0, 1), backend="python")
    assert slopes(5.0, 9.81) == pytest.approx((2.0 / 9.81, -2.0 * 5.0 / 9.81**2), rel=1e-7)
    second = srcdiff.grad(srcdiff.grad(landing, wrt=1), wrt=1, backend="python")(5.0, 9.81)
    assert second == pytest.approx(4.0 * 5.0 / 9.81**3, rel=1e-6)


def test_the_first_of_several_events_ends_the_integration_and_others_are_recorded_until_then():
    def loss(v, g):
        solution = flight(v, g, ground, half_way, passing)
        assert solution.status == 1
        times, states = solution.t_events, solution.y_events
        assert (times[0].size, times[1].size, times[2].size) == (0, 2, 1)
        return times[1][0] * states[1][1, 1] + times[2][0] * states[2][0, 0] + solution.t[-1]

    def formula(v, g):
        root = np.sqrt(v * v - g)
        return -(v - root) / g * root + v / g * v * v / (2.0 * g) + (v + root) / g

    value, slopes = srcdiff.value_and_grad(loss, wrt=(0, 1), backend="python")(5.0, 9.81)
    expected = srcdiff.value_and_grad(formula, wrt=(0, 1), backend="python")(5.0, 9.81)
    assert (value, slopes) == (pytest.approx(expected[0], rel=1e-6), pytest.approx(expected[1], rel=1e-6))
    assert loss(5.0, 9.81) == pytest.approx(value, rel=1e-6)


def test_without_the_event_the_integration_ends_at_the_end():
    def loss(v):
        solution = si.solve_ivp(fall, (0.0, 0.5), [0.0, v], args=(9.81,), events=ground)
        return solution.y[0, -1] + len(solution.t_events[0])

    assert srcdiff.value_and_grad(loss, backend="python")(5.0) == pytest.approx((loss(5.0), 0.5))


def test_the_settings_of_an_event_may_change_between_calls():
    def hit(t, y):
        return y[0] - 1.0

    hit.terminal, hit.direction = True, 1.0

    def time(v):
        return si.solve_ivp(lambda t, y: [y[1], -2.0], (0.0, 9.0), [0.0, v], events=hit, rtol=1e-8).t[-1]

    value = srcdiff.differentiable(time, backend="python")
    assert value(3.0) == pytest.approx((3.0 - np.sqrt(5.0)) / 2.0)
    hit.direction = -1.0
    assert value(3.0) == pytest.approx((3.0 + np.sqrt(5.0)) / 2.0)
    hit.terminal = False
    assert value(3.0) == 9.0


def test_what_solve_ivp_does_not_take_is_refused():
    for options in ({"method": "Euler"}, {"method": "RK4"}):

        def loss(rate, options=options):
            return si.solve_ivp(decay, (0.0, 1.0), [1.0, 2.0], args=(rate,), **options).y[0, -1]

        with pytest.raises(srcdiff.DifferentiationError):
            srcdiff.grad(loss)(RATE)


def diffusion(t, y, rate):
    change = -2.0 * rate * y
    change[1:] += rate * y[:-1]
    change[:-1] += rate * y[1:]
    return change


def test_banded_jacobians_of_stiff_equations():
    def loss(rate, width):
        solution = si.solve_ivp(diffusion, (0.0, 0.1), START * np.ones(3), "LSODA", args=(rate,), lband=width, uband=1)
        return np.sum(solution.y[:, -1] ** 2)

    gradients = [srcdiff.grad(lambda rate, w=w: loss(rate, w), backend="python")(RATE) for w in (1, 2)]
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-12)
    with pytest.raises(ValueError, match="outside of `bands`"):
        srcdiff.differentiable(lambda rate: loss(rate, 0), backend="python")(RATE)


def test_vectorized_equations():
    def loss(rate):
        slope, tight = np.array([[1.0], [2.0]]), {"rtol": 1e-9, "atol": 1e-9}
        found = si.solve_ivp(lambda t, y: -rate * y * slope, (0.0, 1.0), np.ones(2), vectorized=True, **tight)
        return np.sum(found.y[:, -1])

    expected = -np.exp(-RATE) - 2.0 * np.exp(-2.0 * RATE)
    assert srcdiff.grad(loss, backend="python")(RATE) == pytest.approx(expected, rel=1e-6)


def test_odeint():
    def loss(rate):
        return np.sum(si.odeint(decay, [START, 2.0], TIMES, args=(rate,), tfirst=True)[:, 0])

    expected = -START * np.sum(TIMES * np.exp(-RATE * TIMES))
    found = srcdiff.value_and_grad(loss, backend="python")(RATE)
    assert found == pytest.approx((loss(RATE), expected), rel=1e-6)


def half_infinite(a, p):
    return si.quad(lambda x: np.exp(-p * x * x), a, np.inf)[0]


def infinite(m, p):
    return si.quad(lambda x: np.exp(-p * (x - m) ** 2) * x, -np.inf, np.inf)[0]


def backwards(a, p):
    return si.quad(lambda x: np.exp(p * x) * (x + 1.3) ** 2, a, -np.inf)[0]


def finite(a, p):
    return si.quad(lambda x, p: np.cos(p * x) / (0.01 + x * x), a, 2.0, args=(p,))[0]


def with_few_points(a, p):
    return si.fixed_quad(lambda x: np.exp(-p * x), a, 1.0, n=6)[0]


def between_kinks(a, p):
    return si.quad(lambda x: np.exp(p * x) * np.abs(x - a) * np.abs(x - p), 1.0, -0.2, points=(p, a, 5.0, -3.0))[0]


def of_jump(a, p):
    return si.quad(lambda x: p * x if x < a else 2.0, 0.0, p, points=[a])[0]


def with_sine(a, p):
    return si.quad(lambda x: np.exp(-p * x), 0.0, a, weight="sin", wvar=20.0 * p)[0]


def with_cosine(a, p):
    return si.quad(lambda x, p: np.exp(-p * x), a, 2.0, args=(p,), weight="cos", wvar=3.0)[0]


@pytest.mark.parametrize(
    "integral", [half_infinite, infinite, backwards, finite, with_few_points, with_sine, with_cosine]
)
def test_integrals_of_functions(integral):
    assert srcdiff.differentiable(integral, backend="python")(0.3, 0.7) == pytest.approx(integral(0.3, 0.7), rel=1e-9)
    srcdiff.check(integral, 0.3, 0.7, order=2, backend="python")


@pytest.mark.parametrize("integral", [between_kinks, of_jump])
def test_breakpoints_have_derivatives(integral):
    assert srcdiff.differentiable(integral, backend="python")(0.3, 0.7) == pytest.approx(integral(0.3, 0.7), rel=1e-9)
    srcdiff.check(integral, 0.3, 0.7, backend="python")


REFUSED = {
    "weight": (
        lambda p: si.quad(lambda x: p * x, 0.0, 1.0, weight="alg", wvar=(-0.5, 0.0))[0],
        "substitute a variable",
    ),
    "cauchy": (lambda p: si.quad(lambda x: p * x, -1.0, 1.0, weight="cauchy", wvar=p)[0], "this `weight`"),
    "complex": (lambda p: si.quad(lambda x: p * x * 1j, 0.0, 1.0, complex_func=True)[0].imag, "the real and the imag"),
    "output": (lambda p: si.quad(lambda x: p * x, 0.0, 1.0, full_output=True)[0], "leave it out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_integrals_are_refused_with_a_help(name):
    f, message = REFUSED[name]
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(f, backend="python")(0.3)


def test_breakpoints_and_weights_need_finite_limits():
    with pytest.raises(ValueError, match="break points"):
        srcdiff.grad(lambda p: si.quad(lambda x: np.exp(-p * x), 0.0, np.inf, points=[1.0])[0], backend="python")(1.0)
    with pytest.raises(ValueError, match="finite limits"):
        srcdiff.grad(
            lambda p: si.quad(lambda x: np.exp(-p * x), 0.0, np.inf, weight="cos", wvar=p)[0], backend="python"
        )(1.0)


def test_an_integral_that_is_not_accurate_warns():
    def integral(p):
        return si.quad(lambda x: np.sin(p * x) / x, 0.0, np.inf)[0]

    with pytest.warns(UserWarning, match="less accurate than `epsabs` and `epsrel` ask for"):
        srcdiff.grad(integral, backend="python")(1.0)


def test_integrals_compiled():
    value, slope = srcdiff.value_and_grad(half_infinite, wrt="p")(0.0, 0.7)
    assert value == pytest.approx(0.5 * np.sqrt(np.pi / 0.7))
    assert slope == pytest.approx(-0.25 * np.sqrt(np.pi) * 0.7**-1.5)


def rules(y, x):
    total = np.sum(si.simpson(y, x=x, axis=0)) + np.sum(si.simpson(y[:5], x[:5], axis=0) ** 2)
    total += np.sum(si.trapezoid(y.T, x) ** 2) + np.sum(si.simpson(y[:2], dx=0.5, axis=0))
    total += np.sum(si.cumulative_trapezoid(y, x, axis=0, initial=0) ** 3)
    return total + np.sum(si.cumulative_trapezoid(y, dx=0.3) ** 2) + np.sum(si.simpson(y[:4, 0], dx=0.2))


def test_integrals_of_samples():
    assert srcdiff.differentiable(rules, backend="python")(SAMPLES, X) == pytest.approx(rules(SAMPLES, X), rel=1e-12)
    srcdiff.check(rules, SAMPLES, X, backend="python")
