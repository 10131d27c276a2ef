"""The log-likelihood of a mixture of Gaussians, its precisions given by triangular factors."""

import numpy as np

SIZE = "samples"
SIZES = (100, 1_000, 10_000)
WRT = ("weights", "means", "factors")


def arguments(size):
    random = np.random.default_rng(12)
    components, dimension = 5, 3
    factors = 0.2 * np.tril(random.standard_normal((components, dimension, dimension))) + np.eye(dimension)
    return (
        random.standard_normal(components),
        random.standard_normal((components, dimension)),
        factors,
        random.standard_normal((size, dimension)),
    )


def primal(weights, means, factors, x):
    n, d = x.shape
    components = len(weights)
    scores = np.empty((components, n))
    for k in range(components):
        centred = (x - means[k]) @ factors[k]
        log_determinant = np.sum(np.log(np.abs(np.diag(factors[k]))))
        scores[k] = weights[k] + log_determinant - 0.5 * np.sum(centred**2, axis=1)
    largest = np.max(scores, axis=0)
    likelihood = np.sum(largest + np.log(np.sum(np.exp(scores - largest), axis=0)))
    normaliser = np.log(np.sum(np.exp(weights))) + 0.5 * d * np.log(2.0 * np.pi)
    return likelihood - n * normaliser
