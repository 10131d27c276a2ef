"""Logistic regression with a ridge: one matrix product and a few whole-array expressions."""

import numpy as np

SIZE = "samples"
SIZES = (200, 2_000, 20_000)
WRT = ("w", "b")


def arguments(size):
    random = np.random.default_rng(10)
    x = random.standard_normal((size, 50))
    w = 0.1 * random.standard_normal(50)
    y = (x @ w + 0.1 * random.standard_normal(size) > 0.0).astype(np.float64)
    return w, 0.1, x, y, 1e-3


def primal(w, b, x, y, ridge):
    z = x @ w + b
    losses = np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z
    return np.mean(losses) + 0.5 * ridge * np.sum(w * w)
