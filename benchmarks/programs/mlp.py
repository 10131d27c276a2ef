"""A small neural network with two hidden layers, fitted by least squares."""

import numpy as np

SIZE = "samples"
SIZES = (16, 128, 1_024)
WRT = ("w1", "b1", "w2", "b2", "w3", "b3")


def arguments(size):
    random = np.random.default_rng(11)
    w1 = random.standard_normal((16, 32)) / 4.0
    w2 = random.standard_normal((32, 32)) / 6.0
    w3 = random.standard_normal(32) / 6.0
    b1 = 0.1 * random.standard_normal(32)
    b2 = 0.1 * random.standard_normal(32)
    return w1, b1, w2, b2, w3, 0.1, random.standard_normal((size, 16)), random.standard_normal(size)


def primal(w1, b1, w2, b2, w3, b3, x, y):
    first = np.tanh(x @ w1 + b1)
    second = np.maximum(first @ w2 + b2, 0.0)
    guess = second @ w3 + b3
    return np.mean((guess - y) ** 2)
