"""A diagonal LSTM that predicts a sequence: gates on whole vectors, a state carried along."""

import numpy as np

SIZE = "time steps"
SIZES = (20, 80, 320)
WRT = ("main", "out_scale", "out_bias")


def arguments(size):
    random = np.random.default_rng(6)
    width = 32
    main = 0.5 * random.standard_normal((8, width))
    return main, random.standard_normal(width), random.standard_normal(width), random.standard_normal((size, width))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def primal(main, out_scale, out_bias, sequence):
    hidden = np.zeros(sequence.shape[1])
    cell = np.zeros(sequence.shape[1])
    total = 0.0
    for t in range(sequence.shape[0] - 1):
        x = sequence[t]
        forget = sigmoid(x * main[0] + main[4])
        into = sigmoid(hidden * main[1] + main[5])
        outof = sigmoid(x * main[2] + main[6])
        change = np.tanh(hidden * main[3] + main[7])
        cell = cell * forget + into * change
        hidden = outof * np.tanh(cell)
        guess = hidden * out_scale + out_bias
        total += np.sum(guess * sequence[t + 1]) - np.log(np.sum(np.exp(guess)))
    return -total / sequence.shape[0]
