"""Call a gradient from compiled code: gradient descent in one Numba function."""

import numpy as np
from numba import njit

import srcdiff


@njit
def prediction(w, row):
    """A helper compiled by Numba. srcdiff reads its source."""
    total = w[len(row)]
    for j in range(len(row)):
        total += w[j] * row[j]
    return 1.0 / (1.0 + np.exp(-total))


def loss(w, x, y):
    """The mean negative log likelihood of logistic regression."""
    total = 0.0
    for i in range(len(y)):
        p = prediction(w, x[i])
        if y[i] > 0.5:
            total -= np.log(p)
        else:
            total -= np.log(1.0 - p)
    return total / len(y)


loss_and_gradient = srcdiff.value_and_grad(loss)


@njit
def descend(w, x, y, rate, steps):
    """Gradient descent that never returns to the interpreter."""
    value = 0.0
    for _ in range(steps):
        value, w_bar = loss_and_gradient(w, x, y)
        for k in range(len(w)):
            w[k] -= rate * w_bar[k]
    return value


random = np.random.default_rng(0)
x = random.standard_normal((500, 2))
y = (x[:, 0] - 2.0 * x[:, 1] + 0.5 + 1.5 * random.standard_normal(500) > 0.0).astype(np.float64)

w = np.zeros(3)
first = loss(w, x, y)
last = descend(w, x, y, 1.0, 2000)
print(f"the loss went from {first:.6f} to {last:.6f} in 2000 steps")
print("weights:", w)

# At the minimum the gradient is zero. Python and Numba call the same function.
value, w_bar = loss_and_gradient(w, x, y)
print("gradient at the end:", w_bar)
assert last < first
assert np.max(np.abs(w_bar)) < 1e-6  # the accuracy after this many steps
