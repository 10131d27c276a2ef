"""Fit the parameters of a simulation to measurements by gradient descent."""

import sys

import numpy as np

import srcdiff


def displacement(parameters, steps):
    """The positions of a mass on a spring, after every step. `parameters` are stiffness and friction."""
    position = 1.0
    velocity = 0.0
    shown = np.empty(steps)
    for t in range(steps):
        acceleration = -parameters[0] * position - parameters[1] * velocity
        velocity += 0.05 * acceleration
        position += 0.05 * velocity
        shown[t] = position
    return shown


def misfit(parameters, measured):
    """The mean squared difference between the simulation and the measurement."""
    shown = displacement(parameters, len(measured))
    total = 0.0
    for t in range(len(measured)):
        total += (shown[t] - measured[t]) ** 2
    return total / len(measured)


truth = np.array([1.5, 0.3])
measured = displacement(truth, 200)
misfit_and_gradient = srcdiff.value_and_grad(misfit)

parameters = start = np.array([1.0, 0.1])
for iteration in range(61):
    value, parameters_bar = misfit_and_gradient(parameters, measured)
    if iteration % 10 == 0:
        stiffness, friction = parameters
        print(f"iteration {iteration:2}: misfit {value:.2e}, stiffness {stiffness:.6f}, friction {friction:.6f}")
    parameters = parameters - 0.5 * parameters_bar

print("fitted:", parameters, "and the truth:", truth)
assert np.allclose(parameters, truth, rtol=1e-8)  # the accuracy after this many steps

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    plt.plot(measured, "k.", label="measured")
    plt.plot(displacement(start, 200), "--", label="first guess")
    plt.plot(displacement(parameters, 200), label="fitted")
    plt.xlabel("step")
    plt.ylabel("position")
    plt.legend()
    plt.savefig(sys.argv[1])
