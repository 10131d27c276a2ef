"""Logistic regression with whole arrays, and the loops that srcdiff makes of it."""

import numpy as np

import srcdiff


def loss(w, b, x, y, ridge):
    """The mean negative log likelihood, and a penalty for large weights."""
    z = x @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.5 * ridge * np.sum(w**2)


random = np.random.default_rng(0)
truth = np.array([1.5, -2.0, 0.0, 0.5])
x = random.standard_normal((2000, 4))
y = (random.uniform(size=2000) < 1.0 / (1.0 + np.exp(-(x @ truth - 0.7)))).astype(np.float64)

loss_and_gradient = srcdiff.value_and_grad(loss, wrt=("w", "b"))

# Compare with the textbook gradient.
w = random.standard_normal(4)
value, (w_bar, b_bar) = loss_and_gradient(w, 0.3, x, y, 0.01)
error = 1.0 / (1.0 + np.exp(-(x @ w + 0.3))) - y
print("gradient: ", w_bar, b_bar)
print("by hand:  ", x.T @ error / len(y) + 0.01 * w, np.mean(error))
assert np.allclose(w_bar, x.T @ error / len(y) + 0.01 * w, rtol=1e-12, atol=1e-14)  # sums in a different order
assert np.isclose(b_bar, np.mean(error), rtol=1e-12)
assert np.isclose(value, loss(w, 0.3, x, y, 0.01), rtol=1e-12)

# The two matrix products are calls of BLAS. Everything between them is one loop, which stores no intermediate arrays.
print("\nThe generated code:\n")
print(loss_and_gradient.source)

# Gradient descent, to the minimum.
w, b = np.zeros(4), 0.0
for iteration in range(301):
    value, (w_bar, b_bar) = loss_and_gradient(w, b, x, y, 1e-3)
    if iteration % 100 == 0:
        print(f"iteration {iteration:3}: loss {value:.6f}, weights {np.round(w, 3)}, offset {b:.3f}")
    w = w - 2.0 * w_bar
    b = b - 2.0 * b_bar

print("the data came from", truth, "and -0.7")
assert np.max(np.abs(w_bar)) < 1e-9  # the accuracy after this many steps
assert np.allclose(w, truth, atol=0.3)  # two thousand samples determine the weights this well
