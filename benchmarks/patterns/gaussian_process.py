"""A triangular factor in `np.linalg.solve`: the likelihood of a Gaussian process."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "measurements"
SIZES = (8, 150)
WRT = ("scale", "noise")


def arguments(size):
    random = np.random.default_rng(38)
    x = np.sort(random.uniform(0.0, 10.0, size))
    return 1.2, 0.3, x, np.sin(x) + 0.3 * random.standard_normal(size)


def primal(scale, noise, x, y):
    difference = x[:, None] - x[None, :]
    K = np.exp(-0.5 * difference**2 / scale**2) + noise**2 * np.eye(len(x))
    L = np.linalg.cholesky(K)
    z = np.linalg.solve(L, y)
    return 0.5 * np.sum(z**2) + np.sum(np.log(np.diag(L)))


@compiled
def hand(scale, noise, x, y):
    n = len(x)
    K = np.empty((n, n))
    factor = -0.5 / scale**2
    for i in range(n):
        for j in range(n):
            K[i, j] = np.exp(factor * (x[i] - x[j]) ** 2)
        K[i, i] += noise**2
    L = np.linalg.cholesky(K)
    # the inverse of the factor, column by column of its transpose
    inverse = np.zeros((n, n))  # of L
    for i in range(n):
        own = inverse[i]
        for k in range(i):
            other = inverse[k]
            weight = L[i, k]
            for j in range(k + 1):
                own[j] -= weight * other[j]
        over = 1.0 / L[i, i]
        for j in range(i):
            own[j] *= over
        own[i] = over
    total = 0.0
    z = np.zeros(n)
    for i in range(n):
        for j in range(i + 1):
            z[i] += inverse[i, j] * y[j]
        total += 0.5 * z[i] * z[i] + np.log(L[i, i])
    alpha = np.zeros(n)
    for i in range(n):
        for j in range(i + 1):
            alpha[j] += inverse[i, j] * z[i]
    # K_bar = (K^-1 - alpha alpha') / 2
    precision = np.dot(inverse.T, inverse)
    scale_bar = noise_bar = 0.0
    for i in range(n):
        for j in range(n):
            squared = (x[i] - x[j]) ** 2
            scale_bar += (precision[i, j] - alpha[i] * alpha[j]) * squared * np.exp(factor * squared)
        noise_bar += precision[i, i] - alpha[i] * alpha[i]
    return total, (0.5 * scale_bar / scale**3, noise_bar * noise)


def in_jax(scale, noise, x, y):
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    difference = x[:, None] - x[None, :]
    K = jnp.exp(-0.5 * difference**2 / scale**2) + noise**2 * jnp.eye(len(x))
    L = jnp.linalg.cholesky(K)
    z = solve_triangular(L, y, lower=True)
    return 0.5 * jnp.sum(z**2) + jnp.sum(jnp.log(jnp.diag(L)))
