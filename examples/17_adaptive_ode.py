"""Sensitivity of an adaptive ODE solver: differentiate through a `while` that rejects and repeats steps."""

import sys

import numpy as np
from scipy.integrate import solve_ivp

import srcdiff


def slope(state, stiffness):
    """Van der Pol's oscillator."""
    x, v = state
    return np.array([v, stiffness * (1.0 - x**2) * v - x])


def solve(start, stiffness, duration, tolerance):
    """Where the oscillator is at the end, and how many steps were accepted and rejected.

    Bogacki and Shampine: the third order to go on with, the second to estimate the error.
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
    """By hand: the equation together with those of its derivatives, by the stiffness and by the start."""
    x, v = y[:2]
    force = np.array([[0.0, 1.0], [-2.0 * stiffness * x * v - 1.0, stiffness * (1.0 - x**2)]])
    slopes = force @ y[2:].reshape(2, 3)
    slopes[1, 0] += (1.0 - x**2) * v
    return np.concatenate(([v, stiffness * (1.0 - x**2) * v - x], slopes.ravel()))


start = np.array([2.0, 0.0])
sensitivity = srcdiff.value_and_grad(solve, wrt=("start", "stiffness"), has_aux=True)
(end, (accepted, rejected)), (start_bar, stiffness_bar) = sensitivity(start, 3.0, 10.0, 1e-8)
print(f"x = {end:.8f} after {accepted} steps, and {rejected} that were tried again")
print(f"dx / d stiffness = {stiffness_bar:.7f}, dx / d start = {start_bar.round(7)}")
assert rejected > 0

# SciPy solves the equation of the sensitivities, derived by hand.
together = np.concatenate((start, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]))
reference = solve_ivp(with_sensitivity, (0.0, 10.0), together, args=(3.0,), rtol=1e-12, atol=1e-12).y[:, -1]
print(f"        by hand:   {reference[2]:.7f},              {reference[3:5].round(7)}")
assert np.isclose(end, reference[0], rtol=1e-5)  # what the tolerance of a step leaves at the end
assert np.allclose([stiffness_bar, *start_bar], reference[2:5], rtol=1e-4, atol=1e-6)

if len(sys.argv) > 1:  # the name of a file for a picture
    import matplotlib.pyplot as plt

    times = np.linspace(0.1, 20.0, 400)
    found = [sensitivity(start, 3.0, t, 1e-6) for t in times]
    plt.plot(times, [value for (value, _), _ in found], label="x")
    plt.plot(times, [bar for _, (_, bar) in found], label="dx / d stiffness")
    plt.ylim(-10.0, 10.0)
    plt.xlabel("time")
    plt.legend()
    plt.savefig(sys.argv[1])
