"""The forward algorithm of a hidden Markov model, scaled at every step."""

import numpy as np

SIZE = "observations"
SIZES = (50, 500, 5_000)
WRT = ("initial", "transition", "emission")


def arguments(size):
    random = np.random.default_rng(13)
    states, symbols = 8, 12
    initial = random.uniform(0.5, 1.5, states)
    transition = random.uniform(0.1, 1.0, (states, states))
    emission = random.uniform(0.1, 1.0, (states, symbols))
    return (
        initial / np.sum(initial),
        transition / np.sum(transition, axis=1)[:, None],
        emission / np.sum(emission, axis=1)[:, None],
        random.integers(0, symbols, size),
    )


def primal(initial, transition, emission, observed):
    alpha = initial * emission[:, observed[0]]
    scale = np.sum(alpha)
    alpha = alpha / scale
    likelihood = np.log(scale)
    for t in range(1, len(observed)):
        alpha = (alpha @ transition) * emission[:, observed[t]]
        scale = np.sum(alpha)
        alpha = alpha / scale
        likelihood += np.log(scale)
    return likelihood
