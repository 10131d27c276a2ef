"""Differential equations: `srcdiff.odeint`, with the discrete and the continuous adjoint."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate

import srcdiff

TIMES = np.array([0.0, 0.4, 1.0, 1.5])
RATE, START = 0.7, 1.3
TIGHT = 1e-8


def decay(y, t, rate):
    return -rate * y


def decay_alone(y, t):
    return -y


def forced(y, t, rate):
    """y' = -rate y + sin t, whose solution is known."""
    return -rate * y + np.sin(t)


@pytest.mark.parametrize("method", ["tsit5", "dopri5", "dop853", "rodas5p"])
def test_the_solution_at_all_times_has_the_derivatives_of_the_formula(method):
    def states(rate, start):
        return srcdiff.odeint(forced, start, TIMES, (rate,), method=method, rtol=TIGHT, atol=TIGHT, backend="python")

    def formula(rate, start):
        free = (rate * np.sin(TIMES) - np.cos(TIMES)) / (1.0 + rate**2)
        return free + (start + 1.0 / (1.0 + rate**2)) * np.exp(-rate * TIMES)

    weights = np.array([1.0, -2.0, 3.0, 0.5])
    found = srcdiff.value_and_grad(lambda r, s: np.sum(weights * states(r, s)), wrt=(0, 1), backend="python")
    expected = srcdiff.value_and_grad(lambda r, s: np.sum(weights * formula(r, s)), wrt=(0, 1), backend="python")
    value, slopes = found(RATE, START)
    assert value == pytest.approx(expected(RATE, START)[0], rel=1e-6)
    assert slopes == pytest.approx(expected(RATE, START)[1], rel=1e-6)
    _, tangent = srcdiff.jvp(states, (RATE, START), (1.0, 0.5), backend="python")
    assert np.sum(weights * tangent) == pytest.approx(slopes[0] + 0.5 * slopes[1], rel=1e-12)


@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
def test_derivatives_of_second_order(adjoint):
    def end(rate):
        return srcdiff.odeint(decay, START, TIMES, rate, rtol=TIGHT, atol=TIGHT, adjoint=adjoint, backend="python")[-1]

    exact = START * np.exp(-RATE * TIMES[-1])
    second = srcdiff.grad(srcdiff.grad(end), backend="python")(RATE)
    assert second == pytest.approx(TIMES[-1] ** 2 * exact, rel=1e-6)


def test_sensitivities_of_the_continuous_adjoint():
    def end(rate):
        return srcdiff.odeint(decay, START, TIMES, rate, rtol=TIGHT, adjoint="continuous", backend="python")[-1]

    exact = START * np.exp(-RATE * TIMES[-1])
    assert srcdiff.jvp(end, (RATE,), (1.0,), backend="python")[1] == pytest.approx(-TIMES[-1] * exact, rel=1e-6)


@pytest.mark.parametrize(("adjoint", "times"), [("discrete", TIMES[::-1].copy()), ("continuous", TIMES)])
def test_derivatives_with_respect_to_times(adjoint, times):
    def total(t):
        return np.sum(
            srcdiff.odeint(decay, START, t, RATE, rtol=TIGHT, atol=TIGHT, adjoint=adjoint, backend="python") ** 2
        )

    squares = START**2 * np.exp(-2.0 * RATE * (times - times[0]))
    expected = -2.0 * RATE * squares
    expected[0] = 2.0 * RATE * np.sum(squares[1:])
    assert srcdiff.grad(total, backend="python")(times) == pytest.approx(expected, rel=1e-6)


def test_stiff_systems():
    def cosine(rate):
        def slope(y, t):
            return np.array([-1e6 * rate * (y[0] - np.cos(t)), y[0] - rate * y[1]])

        y = srcdiff.odeint(slope, np.ones(2), TIMES[::3], method="rodas5p", rtol=1e-6, atol=1e-6, backend="python")
        return y[-1, 1]

    def formula(rate):  # for an infinite rate of the first equation
        end = TIMES[-1]
        free = (rate * np.cos(end) + np.sin(end)) / (1.0 + rate**2)
        return free + (1.0 - rate / (1.0 + rate**2)) * np.exp(-rate * end)

    found = srcdiff.value_and_grad(cosine, backend="python")(RATE)
    assert found == pytest.approx(srcdiff.value_and_grad(formula, backend="python")(RATE), rel=1e-5)


def test_a_reference_of_high_precision():
    a = 2.0
    with mpmath.workdps(25):
        solution = mpmath.odefun(
            lambda t, y: [y[1], -a * mpmath.sin(y[0]), y[3], -a * mpmath.cos(y[0]) * y[2] - mpmath.sin(y[0])],
            0,
            [1, 0, 0, 0],
        )
        expected = [float(x) for x in solution(1)]

    def angle(a):
        def slope(y, t):
            return np.array([y[1], -a * np.sin(y[0])])

        times = np.array([0.0, 1.0])
        y = srcdiff.odeint(
            slope, np.array([1.0, 0.0]), times, method="dop853", rtol=1e-13, atol=1e-13, backend="python"
        )
        return y[-1, 0]

    found = srcdiff.value_and_grad(angle, backend="python")(a)
    assert found == pytest.approx((expected[0], expected[2]), rel=1e-11)


def test_compiled_with_more_steps_than_the_first_arrays_hold():
    factors = [0.5, 2.0]

    def loss(y0, a):
        def slope(y, t):  # it reads `a` and a list from outside
            return [y[0, 1] * factors[0], -a * np.sin(y[0, 0]) + 0.1 * np.cos(factors[1] * t)]

        return np.sum(srcdiff.odeint(slope, y0, np.array([0.0, 30.0]), rtol=1e-8)[-1])

    plain, start, step = srcdiff.differentiable(loss), np.array([[1.0, 0.0]]), 1e-5
    expected = (plain(start, 2.0 + step) - plain(start, 2.0 - step)) / (2.0 * step)
    assert srcdiff.grad(loss, wrt="a")(start, 2.0) == pytest.approx(expected, rel=1e-4)


def test_only_the_discrete_adjoint_keeps_states():
    def end(rate, adjoint):
        return srcdiff.odeint(decay, START, TIMES, rate, adjoint=adjoint, backend="python")[-1]

    kept = {a: srcdiff.grad(lambda r, a=a: end(r, a), backend="python") for a in ("discrete", "continuous")}
    for gradient in kept.values():
        gradient(RATE)
    assert "states = " in kept["discrete"].source
    assert "states = " not in kept["continuous"].source


def test_outside_of_differentiated_functions():
    found = srcdiff.odeint(decay, np.array([START, 2.0]), TIMES, RATE, rtol=1e-9, backend="python")
    assert found == pytest.approx(np.array([START, 2.0]) * np.exp(-RATE * TIMES)[:, None], rel=1e-6)


def test_one_time_and_repeated_times():
    def total(start, t):
        return np.sum(srcdiff.odeint(decay, start, t, RATE, rtol=TIGHT, atol=TIGHT, backend="python"))

    gradient = srcdiff.grad(total, backend="python")
    assert gradient(START, np.array([0.5])) == 1.0
    again = gradient(START, np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]))
    assert again == pytest.approx(2.0 * np.sum(np.exp(-RATE * np.arange(3))), rel=1e-6)


@pytest.mark.parametrize("method", ["tsit5", "dop853", "rodas5p"])
@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
def test_a_state_without_numbers(method, adjoint):
    def total(start, t):
        return np.sum(srcdiff.odeint(decay_alone, start, t, method=method, adjoint=adjoint))

    start_bar, t_bar = srcdiff.grad(total, wrt=(0, 1), backend="python")(np.zeros(0), TIMES)
    assert start_bar.shape == (0,)
    np.testing.assert_array_equal(t_bar, np.zeros(len(TIMES)))


def test_scipys_functions_of_a_state_without_numbers():
    def rows(start):
        return integrate.odeint(decay_alone, start, TIMES)

    def columns(start):
        return integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), start).y

    assert srcdiff.differentiable(rows, backend="python")(np.zeros(0)).shape == (len(TIMES), 0)
    assert srcdiff.differentiable(columns, backend="python")(np.zeros(0)).shape[0] == 0


@pytest.mark.parametrize("solve", [srcdiff.odeint, integrate.odeint])
def test_an_integration_without_times_raises(solve):
    with pytest.raises(ValueError, match="there are no times"):
        srcdiff.grad(lambda y: np.sum(solve(decay_alone, y, np.zeros(0))), backend="python")(np.ones(2))


def test_an_equation_that_writes_to_its_state_changes_no_other_state():
    def writing(y, t, rate):
        y[0] *= -rate
        return y

    def end(rate):
        return srcdiff.odeint(writing, np.array([START]), TIMES, rate, rtol=TIGHT, atol=TIGHT, backend="python")[-1, 0]

    exact = START * np.exp(-RATE * TIMES[-1])
    found = srcdiff.value_and_grad(end, backend="python")(RATE)
    assert found == pytest.approx((exact, -TIMES[-1] * exact), rel=1e-6)


def test_integers_and_lists_as_start_and_times_in_a_loop():
    def repeated(rate, n):
        y = 1
        for _ in range(n):
            y = srcdiff.odeint(decay, y, [0, 1], rate, rtol=TIGHT, backend="python")[-1]
        return y

    def once(rate):
        return np.sum(srcdiff.odeint(decay, 1, [0.0, 1.0], rate, rtol=TIGHT, backend="python"))

    assert srcdiff.grad(once, backend="python")(RATE) == pytest.approx(-np.exp(-RATE), rel=1e-6)
    assert srcdiff.grad(repeated, backend="python")(RATE, 2) == pytest.approx(-2.0 * np.exp(-2.0 * RATE), rel=1e-6)
    assert srcdiff.grad(repeated, backend="python")(RATE, 0) == 0.0


def test_states_that_are_structures():
    def swing(y, t, rate):
        (angle, speed), energy = y
        return (speed * rate, -angle * rate), np.sum(angle * speed) - 0.1 * energy

    def turn(y, t, rate):
        return {"speed": -y["angle"] * rate, "angle": y["speed"] * rate}

    def of_tuples(rate, energy):
        y0 = ((np.array([1.0, 2.0]), np.array([0.5, rate])), energy)
        (angle, speed), energies = srcdiff.odeint(swing, y0, TIMES, rate, rtol=1e-10, atol=1e-12, backend="python")
        return np.sum(angle[-1] * speed[1]) + np.sum(energies * TIMES)

    def of_dictionaries(rate, start):
        y0 = {"angle": np.full((1, 2), start), "speed": 1}
        y0["speed"] = np.ones((1, 2)) * y0["speed"]
        y = srcdiff.odeint(turn, y0, TIMES, rate, rtol=TIGHT, backend="python")
        assert y["angle"].shape == (4, 1, 2)
        return y["angle"][-1, 0, 0]

    srcdiff.check(of_tuples, RATE, START, backend="python")
    phase = RATE * TIMES[-1]
    expected = (TIMES[-1] * (np.cos(phase) - START * np.sin(phase)), np.cos(phase))
    gradient = srcdiff.grad(of_dictionaries, wrt=(0, 1), backend="python")
    assert gradient(RATE, START) == pytest.approx(expected, rel=1e-6)


def test_an_equation_returns_the_structure_of_the_state():
    with pytest.raises(ValueError, match="arrays of the shapes that the state has"):
        srcdiff.odeint(lambda y, t: (y[0], y[1][:1]), (1.0, np.ones(2)), np.array([0.0, 1.0]), backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match="the structure that the state has"):
        srcdiff.odeint(lambda y, t: (y[0], y[1], y[0]), (1.0, np.ones(2)), np.array([0.0, 1.0]), backend="python")


def test_what_is_wrong_raises():
    def total(f, t, y0=1.0):
        return np.sum(srcdiff.odeint(f, y0, t, backend="python"))

    def gradient(f, t, y0=1.0):
        return srcdiff.grad(lambda t, y0: total(f, t, y0), wrt="y0", backend="python")(t, y0)

    def solved(f, t, y0=1.0):
        return srcdiff.odeint(f, y0, t, backend="python")

    with pytest.raises(RuntimeError, match="singularity"):
        gradient(lambda y, t: y * y, np.array([0.0, 2.0]))
    with pytest.raises(RuntimeError, match="not finite"):
        solved(lambda y, t: y * np.nan, np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match="increase, or decrease"):
        solved(decay_alone, np.array([0.0, 1.0, 0.5]))
    with pytest.raises(ValueError, match="must differ"):
        solved(decay_alone, np.array([0.0, 0.0]))
    with pytest.raises(ValueError, match="as many numbers as the state"):
        solved(lambda y, t: y[:1], np.array([0.0, 1.0]), np.ones(2))
    with pytest.raises(srcdiff.DifferentiationError, match="`method` must be one of"):
        srcdiff.grad(lambda y: srcdiff.odeint(decay, y, TIMES, 1.0, method="euler")[-1])(1.0)
    with pytest.raises(srcdiff.DifferentiationError, match="'discrete' or 'continuous'"):
        srcdiff.grad(lambda y: srcdiff.odeint(decay, y, TIMES, 1.0, adjoint="both")[-1])(1.0)
