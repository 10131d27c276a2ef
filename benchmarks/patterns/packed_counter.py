"""An integer counter beside the loops: a triangular matrix that is packed into a vector."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "rows"
SIZES = (12, 1_000)
WRT = ("packed", "x")


def arguments(size):
    random = np.random.default_rng(20)
    return random.standard_normal(size * (size - 1) // 2), random.standard_normal(size)


def primal(packed, x):
    total, p = 0.0, 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            total += packed[p] * x[i] * x[j] * x[j]
            p += 1
    return total


@compiled
def hand(packed, x):
    d = len(x)
    total = 0.0
    packed_bar = np.empty_like(packed)
    x_bar = np.zeros_like(x)
    p = 0
    for i in range(d):
        x_i, x_i_bar = x[i], 0.0
        count = d - 1 - i
        row, row_bar = packed[p : p + count], packed_bar[p : p + count]
        tail, tail_bar = x[i + 1 :], x_bar[i + 1 :]
        for k in range(count):
            product = row[k] * tail[k]
            x_i_bar += product * tail[k]
            row_bar[k] = x_i * tail[k] * tail[k]
            tail_bar[k] += 2.0 * x_i * product
        total += x_i * x_i_bar
        x_bar[i] += x_i_bar
        p += count
    for k in range(p, len(packed)):
        packed_bar[k] = 0.0
    return total, (packed_bar, x_bar)


def in_jax(packed, x):
    import jax.numpy as jnp

    rows, columns = np.triu_indices(len(x), 1)
    return jnp.sum(packed * x[rows] * x[columns] ** 2)
