"""An inverse problem: find the conductivity of a rod from its temperatures, through time steps in place."""

import sys

import numpy as np

import srcdiff


def simulate(conductivity, initial, steps):
    """The temperatures of a rod with fixed ends, after every step. Each pair of neighbours has a conductivity."""
    shown = np.empty((steps, len(initial)))
    u = initial.copy()
    for t in range(steps):
        flow = conductivity * (u[1:] - u[:-1])
        u[1:-1] += 0.2 * (flow[1:] - flow[:-1])
        shown[t] = u
    return shown


def misfit(log_conductivity, initial, measured):
    """Half the sum of the squared differences. The logarithm keeps the conductivity positive."""
    shown = simulate(np.exp(log_conductivity), initial, len(measured))
    return 0.5 * np.sum((shown - measured) ** 2)


n = 24
place = np.linspace(0.0, 1.0, n)
truth = np.where((place[1:] > 0.3) & (place[1:] < 0.6), 0.4, 1.5)  # the middle conducts badly
initial = np.sin(np.pi * place) + 0.5 * np.sin(3.0 * np.pi * place) + place
measured = simulate(truth, initial, 300)

misfit_and_gradient = srcdiff.value_and_grad(misfit)
guess = np.zeros(n - 1)  # the logarithm of 1 everywhere
print(srcdiff.check(misfit, guess, initial, measured, wrt="log_conductivity", backend="python"))

# Gradient descent with momentum. The momentum is reset whenever the misfit grows (O'Donoghue and Candes 2015).
speed = np.zeros(n - 1)
before = np.inf
for iteration in range(601):
    value, guess_bar = misfit_and_gradient(guess, initial, measured)
    if iteration % 100 == 0:
        print(f"iteration {iteration:3}: misfit {value:.2e}")
    speed = (0.0 if value > before else 0.99) * speed - 0.02 * guess_bar
    guess = guess + speed
    before = value

print("found:", np.round(np.exp(guess), 2))
print("truth:", truth)
print("largest error:", np.max(np.abs(np.exp(guess) - truth)))
assert np.allclose(np.exp(guess), truth, rtol=1e-5)  # the accuracy after this many steps

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    for t in (0, 30, 100, 299):
        left.plot(place, measured[t], label=f"step {t + 1}")
    left.set_title("measured temperatures")
    left.legend()
    right.step(place[1:], truth, "k", where="mid", label="true")
    right.plot(place[1:], np.exp(guess), "o", label="found")
    right.set_title("conductivity")
    right.legend()
    plt.savefig(sys.argv[1])
