"""`np.einsum`: a bilinear form for each sample."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (5, 2_000)
WRT = ("weights", "left")


def arguments(size):
    random = np.random.default_rng(39)
    return (
        0.1 * random.standard_normal((30, 40)),
        random.standard_normal((size, 30)),
        random.standard_normal((size, 40)),
    )


def primal(weights, left, right):
    return np.sum(np.tanh(np.einsum("bi,ij,bj->b", left, weights, right)))


@compiled
def hand(weights, left, right):
    samples, width = left.shape
    moved = np.dot(right, weights.T)
    left_bar, scaled = np.empty_like(left), np.empty_like(left)
    total = 0.0
    for b in range(samples):
        score = 0.0
        for i in range(width):
            score += left[b, i] * moved[b, i]
        flat = math.tanh(score)
        total += flat
        score_bar = 1.0 - flat * flat
        for i in range(width):
            left_bar[b, i] = score_bar * moved[b, i]
            scaled[b, i] = score_bar * left[b, i]
    return total, (np.dot(scaled.T, right), left_bar)


def in_jax(weights, left, right):
    import jax.numpy as jnp

    return jnp.sum(jnp.tanh(jnp.einsum("bi,ij,bj->b", left, weights, right)))
