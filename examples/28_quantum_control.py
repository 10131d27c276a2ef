"""Move a quantum particle: gradients through the split-step Fourier method find the path of its trap."""

import sys

import numpy as np
from scipy.optimize import minimize

import srcdiff

POINTS, WIDTH, STEPS, DURATION = 128, 16.0, 60, 2.5
x = (np.arange(POINTS) / POINTS - 0.5) * WIDTH
k = 2.0 * np.pi * np.fft.fftfreq(POINTS, WIDTH / POINTS)
spacing, step = WIDTH / POINTS, DURATION / STEPS
start = np.pi**-0.25 * np.exp(-0.5 * (x + 2.0) ** 2) + 0j
goal = np.pi**-0.25 * np.exp(-0.5 * (x - 2.0) ** 2) + 0j


def evolved(path, psi, x, k, step):
    """The wave function after it has been in a harmonic trap that follows the path."""
    for centre in path:
        half = np.exp(-0.25j * step * (x - centre) ** 2)
        psi = half * np.fft.ifft(np.exp(-0.5j * step * k**2) * np.fft.fft(half * psi))
    return psi


def loss(path, start, goal, x, k, step, spacing):
    """How far the state is from the goal, and a little for a rough path."""
    overlap = np.vdot(goal, evolved(path, start, x, k, step)) * spacing
    rough = np.sum((path[1:] - path[:-1]) ** 2) + (path[0] + 2.0) ** 2 + (path[-1] - 2.0) ** 2
    return 1.0 - np.abs(overlap) ** 2 + 1e-4 * rough


gradient = srcdiff.value_and_grad(loss)
given = (start, goal, x, k, step, spacing)
guess = np.linspace(-2.0, 2.0, STEPS)
found = minimize(gradient, guess, given, jac=True, method="L-BFGS-B", options={"maxiter": 60})


def reached(path):
    """The probability to find the particle in the goal state."""
    return np.abs(np.vdot(goal, evolved(path, start, x, k, step)) * spacing) ** 2


print(f"trap at constant speed: the goal is reached with probability {reached(guess):.4f}")
print(f"the path found:         the goal is reached with probability {reached(found.x):.4f}")
assert reached(guess) < 0.6
assert reached(found.x) > 0.999
direction = np.cos(np.arange(STEPS))
differences = (loss(guess + 1e-6 * direction, *given) - loss(guess - 1e-6 * direction, *given)) / 2e-6
assert np.isclose(gradient(guess, *given)[1] @ direction, differences, rtol=1e-6)

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, sharey=True)
    for axis, path, title in zip(axes, (guess, found.x), ("constant speed", "path found"), strict=True):
        seen = [start, *(evolved(path[:n], start, x, k, step) for n in range(1, STEPS + 1))]
        axis.pcolormesh(x, np.arange(STEPS + 1) * step, np.abs(seen) ** 2, cmap="Blues", shading="nearest")
        axis.plot(path, np.arange(STEPS) * step, color="tab:red", label="trap")
        axis.set(title=title, xlabel="position", xlim=(-5.0, 5.0))
    axes[0].set_ylabel("time")
    axes[0].legend(loc="upper left")
    plt.savefig(sys.argv[1])
