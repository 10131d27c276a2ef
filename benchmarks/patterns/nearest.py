"""A value that only a branch uses: the distance of each point to the nearest centre, as in k-means."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "points"
SIZES = (20, 2_000)
WRT = ("centres",)


def arguments(size):
    random = np.random.default_rng(21)
    return random.standard_normal((size, 8)), random.standard_normal((40, 8))


def primal(points, centres):
    total = 0.0
    for i in range(points.shape[0]):
        closest = np.inf
        for j in range(centres.shape[0]):
            distance = 0.0
            for k in range(points.shape[1]):
                distance += (points[i, k] - centres[j, k]) ** 2
            if distance < closest:
                closest = distance
        total += closest
    return total


@compiled
def hand(points, centres):
    total = 0.0
    centres_bar = np.zeros_like(centres)
    for i in range(points.shape[0]):
        point = points[i]
        closest, nearest = np.inf, -1
        for j in range(centres.shape[0]):
            centre = centres[j]
            distance = 0.0
            for k in range(len(point)):
                distance += (point[k] - centre[k]) ** 2
            if distance < closest:
                closest, nearest = distance, j
        total += closest
        if nearest >= 0:
            for k in range(len(point)):
                centres_bar[nearest, k] -= 2.0 * (point[k] - centres[nearest, k])
    return total, (centres_bar,)


def in_jax(points, centres):
    import jax.numpy as jnp

    return jnp.sum(jnp.min(jnp.sum((points[:, None, :] - centres) ** 2, axis=2), axis=1))
