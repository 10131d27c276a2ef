"""Many arrays in one step, on whole arrays: an LSTM with its gates as vectors."""

import numpy as np

from benchmarks.patterns import lstm_loops

SIZE, SIZES, WRT = lstm_loops.SIZE, lstm_loops.SIZES, lstm_loops.WRT
arguments, hand, in_jax = lstm_loops.arguments, lstm_loops.hand, lstm_loops.in_jax


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
