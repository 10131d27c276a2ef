"""The sensitivity of an adaptive ODE solver: differentiate a `while` loop that rejects and repeats steps."""

import sys

import numpy as np
from scipy.integrate import solve_ivp

import srcdiff


def slope(state, stiffness):
    """The right-hand side of van der Pol's equation."""
    x, v = state
    return np.array([v, stiffness * (1.0 - x**2) * v - x])


def solve(start, stiffness, duration, tolerance):
    """The final position of the oscillator, and the numbers of accepted and rejected steps.

    The method of Bogacki and Shampine: third order for the step, second order for the estimate of its error.
    """
    state = start
    time, step = 0.0, 0.01
    accepted, rejected = 0, 0
    k1 = slope(state, stiffness)
    while time < duration:
        step = min(step, duration - time)
        k2 = slope(state + 0.5 * step * k1, stiffness)
        k3 = slope(state + 0.75 * step * k2, stiffness)
        there = state + step * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = slope(there, stiffness)
        error = np.linalg.norm(step * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0))
        if error <= tolerance:
            time += step
            state, k1 = there, k4
            accepted += 1
        else:
            rejected += 1
        step *= min(5.0, max(0.2, 0.9 * (tolerance / max(error, 1e-16)) ** (1.0 / 3.0)))
    return state[0], (accepted, rejected)


def with_sensitivity(t, y, stiffness):
    """The equation together with its sensitivity equations for the stiffness and the start, derived by hand."""
    x, v = y[:2]
    force = np.array([[0.0, 1.0], [-2.0 * stiffness * x * v - 1.0, stiffness * (1.0 - x**2)]])
    slopes = force @ y[2:].reshape(2, 3)
    slopes[1, 0] += (1.0 - x**2) * v
    return np.concatenate(([v, stiffness * (1.0 - x**2) * v - x], slopes.ravel()))


start = np.array([2.0, 0.0])
sensitivity = srcdiff.value_and_grad(solve, wrt=("start", "stiffness"), has_aux=True)
(end, (accepted, rejected)), (start_bar, stiffness_bar) = sensitivity(start, 3.0, 10.0, 1e-8)
print(f"x = {end:.8f} after {accepted} accepted and {rejected} rejected steps")
print(f"dx / d stiffness = {stiffness_bar:.7f}, dx / d start = {start_bar.round(7)}")
assert rejected > 0

# SciPy solves the sensitivity equations.
together = np.concatenate((start, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]))
reference = solve_ivp(with_sensitivity, (0.0, 10.0), together, args=(3.0,), rtol=1e-12, atol=1e-12).y[:, -1]
print(f"        by hand:   {reference[2]:.7f},              {reference[3:5].round(7)}")
assert np.isclose(end, reference[0], rtol=1e-5)  # the accumulated error of the steps
assert np.allclose([stiffness_bar, *start_bar], reference[2:5], rtol=1e-4, atol=1e-6)

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    times = np.linspace(0.1, 20.0, 400)
    found = [sensitivity(start, 3.0, t, 1e-6) for t in times]
    plt.plot(times, [value for (value, _), _ in found], label="x")
    plt.plot(times, [bar for _, (_, bar) in found], label="dx / d stiffness")
    plt.ylim(-10.0, 10.0)
    plt.xlabel("time")
    plt.legend()
    plt.savefig(sys.argv[1])
