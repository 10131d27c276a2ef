"""Counters in nested loops: a mixture of Gaussians whose triangular factors are packed into vectors."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (5, 300)
WRT = ("weights", "means", "diagonals", "packed")


def arguments(size):
    random = np.random.default_rng(42)
    components, d = (10, 20) if size > 50 else (2, 3)
    return (
        random.standard_normal(components),
        random.standard_normal((components, d)),
        0.1 * random.standard_normal((components, d)),
        0.1 * random.standard_normal((components, d * (d - 1) // 2)),
        random.standard_normal((size, d)),
    )


def primal(weights, means, diagonals, packed, samples):
    components, d = means.shape
    total = 0.0
    scores = np.empty(components)
    turned = np.empty(d)
    for s in range(samples.shape[0]):
        for k in range(components):
            score = weights[k]
            for i in range(d):
                turned[i] = math.exp(diagonals[k, i]) * (samples[s, i] - means[k, i])
                score += diagonals[k, i]
            p = 0
            for i in range(d):
                for j in range(i + 1, d):
                    turned[j] += packed[k, p] * (samples[s, i] - means[k, i])
                    p += 1
            for i in range(d):
                score -= 0.5 * turned[i] * turned[i]
            scores[k] = score
        largest = np.max(scores)
        total += largest + math.log(np.sum(np.exp(scores - largest)))
    return total


# One sample at a time, as in the program. Matrix products over all samples of a component need a quarter of the time.
@compiled
def hand(weights, means, diagonals, packed, samples):
    components, d = means.shape
    total = 0.0
    weights_bar, means_bar = np.zeros_like(weights), np.zeros_like(means)
    diagonals_bar, packed_bar = np.zeros_like(diagonals), np.zeros_like(packed)
    scales = np.empty((components, d))
    begins = np.empty(components)
    for k in range(components):
        begins[k] = weights[k]
        for i in range(d):
            scales[k, i] = math.exp(diagonals[k, i])
            begins[k] += diagonals[k, i]
    scores = np.empty(components)
    centred, turned = np.empty((components, d)), np.empty((components, d))
    for s in range(samples.shape[0]):
        largest = -np.inf
        for k in range(components):
            own, image = centred[k], turned[k]
            for i in range(d):
                own[i] = samples[s, i] - means[k, i]
                image[i] = scales[k, i] * own[i]
            p = 0
            for i in range(d):
                count = d - 1 - i
                row, tail, factor = packed[k, p : p + count], image[i + 1 :], own[i]
                for j in range(count):
                    tail[j] += row[j] * factor
                p += count
            score = begins[k]
            for i in range(d):
                score -= 0.5 * image[i] * image[i]
            scores[k] = score
            largest = max(largest, score)
        norm = 0.0
        for k in range(components):
            scores[k] = math.exp(scores[k] - largest)
            norm += scores[k]
        total += largest + math.log(norm)
        for k in range(components):
            share = scores[k] / norm
            own, image = centred[k], turned[k]
            weights_bar[k] += share
            # the adjoint of the image is -share * image
            p = 0
            for i in range(d):
                count = d - 1 - i
                row, row_bar, tail = packed[k, p : p + count], packed_bar[k, p : p + count], image[i + 1 :]
                own_bar = scales[k, i] * image[i]
                factor = share * own[i]
                for j in range(count):
                    own_bar += row[j] * tail[j]
                    row_bar[j] -= factor * tail[j]
                diagonals_bar[k, i] += share - factor * scales[k, i] * image[i]
                means_bar[k, i] += share * own_bar
                p += count
    return total, (weights_bar, means_bar, diagonals_bar, packed_bar)


def in_jax(weights, means, diagonals, packed, samples):
    import jax
    import jax.numpy as jnp

    d = means.shape[1]
    columns, rows = np.triu_indices(d, 1)

    def score(weight, mean, diagonal, values):
        factor = jnp.diag(jnp.exp(diagonal)).at[rows, columns].set(values)
        return weight + jnp.sum(diagonal) - 0.5 * jnp.sum(((samples - mean) @ factor.T) ** 2, axis=1)

    return jnp.sum(jax.nn.logsumexp(jax.vmap(score)(weights, means, diagonals, packed), axis=0))
