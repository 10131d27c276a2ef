"""The kink of a rectifier in nested loops: one layer of a network, written as loops."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (10, 2_000)
WRT = ("weights", "bias")


def arguments(size):
    random = np.random.default_rng(25)
    return random.standard_normal((16, 32)), random.standard_normal(16), random.standard_normal((size, 32))


def primal(weights, bias, inputs):
    total = 0.0
    for s in range(inputs.shape[0]):
        for i in range(weights.shape[0]):
            activation = bias[i]
            for j in range(weights.shape[1]):
                activation += weights[i, j] * inputs[s, j]
            activation = max(0.0, activation)
            total += activation * activation
    return total / inputs.shape[0]


@compiled
def hand(weights, bias, inputs):
    samples, width = inputs.shape
    seed = 2.0 / samples
    total = 0.0
    weights_bar = np.zeros_like(weights)
    bias_bar = np.zeros_like(bias)
    for s in range(samples):
        for i in range(weights.shape[0]):
            activation = bias[i]
            for j in range(width):
                activation += weights[i, j] * inputs[s, j]
            # no branch: half of them would be predicted wrong, which takes longer than adding zeros
            activation = max(0.0, activation)
            total += activation * activation
            activation_bar = seed * activation
            bias_bar[i] += activation_bar
            for j in range(width):
                weights_bar[i, j] += activation_bar * inputs[s, j]
    return total / samples, (weights_bar, bias_bar)


def in_jax(weights, bias, inputs):
    import jax.numpy as jnp

    return jnp.sum(jnp.maximum(inputs @ weights.T + bias, 0.0) ** 2) / inputs.shape[0]
