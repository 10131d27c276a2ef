"""Logistic regression on whole arrays: two matrix products around elementwise work."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (20, 10_000)
WRT = ("w", "b")


def arguments(size):
    random = np.random.default_rng(40)
    x = random.standard_normal((size, 40))
    w = 0.2 * random.standard_normal(40)
    return w, 0.1, x, (x @ w + 0.5 * random.standard_normal(size) > 0.0).astype(float), 1e-3


def primal(w, b, x, y, ridge):
    z = x @ w + b
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z) + 0.5 * ridge * np.sum(w * w)


@compiled
def hand(w, b, x, y, ridge):
    n, width = x.shape
    # blocks that stay in the cache between the two products
    block = 256
    z_bar = np.empty(block)
    w_bar = np.empty(width)
    penalty = 0.0
    for j in range(width):
        w_bar[j] = 0.0
        penalty += w[j] * w[j]
    total = b_bar = 0.0
    for begin in range(0, n, block):
        count = min(block, n - begin)
        rows, wanted = x[begin : begin + count], y[begin : begin + count]
        z = np.dot(rows, w)
        for i in range(count):
            own = z[i] + b
            power = math.exp(-abs(own))
            total += math.log1p(power) + max(own, 0.0) - wanted[i] * own
            sigmoid = (1.0 if own >= 0.0 else power) / (1.0 + power)
            z_bar[i] = sigmoid - wanted[i]
            b_bar += z_bar[i]
        part = np.dot(rows.T, z_bar[:count])
        for j in range(width):
            w_bar[j] += part[j]
    for j in range(width):
        w_bar[j] = w_bar[j] / n + ridge * w[j]
    return total / n + 0.5 * ridge * penalty, (w_bar, b_bar / n)


def in_jax(w, b, x, y, ridge):
    import jax.numpy as jnp

    z = x @ w + b
    return jnp.mean(jnp.log1p(jnp.exp(-jnp.abs(z))) + jnp.maximum(z, 0.0) - y * z) + 0.5 * ridge * jnp.sum(w * w)
