"""Powers of a sparse matrix in compressed rows, applied to a vector: indices read from arrays."""

import numpy as np

SIZE = "rows"
SIZES = (100, 1_000, 10_000)
WRT = ("data", "x0")


def arguments(size):
    random = np.random.default_rng(15)
    lengths = random.integers(2, 9, size)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    columns = random.integers(0, size, starts[-1])
    return random.uniform(-0.4, 0.4, starts[-1]), random.standard_normal(size), starts, columns, 5


def primal(data, x0, starts, columns, power):
    n = len(x0)
    x = x0.copy()
    for _ in range(power):
        y = np.zeros(n)
        for i in range(n):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += data[k] * x[columns[k]]
            y[i] = total
        x = y
    result = 0.0
    for i in range(n):
        result += x[i] * x[i]
    return result
