"""Losses and data for the tests of sums over data. Other processes import this module."""

import os
import time
from pathlib import Path

import numpy as np

PARAMS = {"w": np.array([0.3, -0.2, 0.5]), "b": 0.1}
VECTOR = {"w": np.array([1.0, 0.5, -2.0]), "b": 0.7}


def logistic(p, x, y):
    total = 0.0
    for i in range(len(y)):
        z = p["b"] + np.dot(x[i], p["w"])
        total += np.log1p(np.exp(-z)) if y[i] > 0.5 else np.log1p(np.exp(z))
    return total


def residuals(p, x, y):
    return np.tanh(x @ p["w"] + p["b"]) - y


def data(count=1000, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3))
    return x, (rng.uniform(size=count) < 0.4) * 1.0


def chunk(k):
    return data(50 + k, seed=k)


def fails_late(p, x, y):
    if x[0, 0] == 7.0:
        raise ValueError("a row of sevens")
    return p["b"] * np.sum(x)


def dies_once(marker, k):
    """A chunk that kills its worker when it is computed for the first time."""
    if k == 2 and not Path(marker).exists():
        Path(marker).write_text("here", encoding="utf-8")
        time.sleep(0.2)  # other chunks are being computed
        os.kill(os.getpid(), 9)
    return chunk(k)
