"""Logistic regression on rows that are never all in memory: each chunk is computed when it is needed.

`python 22_more_data_than_memory.py 100000000` takes 10^8 rows. The default is quick.
"""

import sys

import numpy as np
from scipy.optimize import minimize

from srcdiff import distributed

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
CHUNK = min(ROWS, 100_000)
TRUE = np.array([1.0, -2.0, 0.5, 0.25, -0.75])


def rows(k):
    """The rows of chunk `k`. They are the same each time."""
    rng = np.random.default_rng(k)
    x = rng.normal(size=(CHUNK, len(TRUE)))
    return x, (rng.uniform(size=CHUNK) < 1.0 / (1.0 + np.exp(-x @ TRUE))) * 2.0 - 1.0


def loss(w, x, sign, count):
    """The negative log likelihood of the rows of a chunk, divided by the number of all rows."""
    total = 0.0
    for i in range(len(sign)):
        z = 0.0
        for j in range(len(w)):
            z += x[i, j] * w[j]
        total += np.log1p(np.exp(-sign[i] * z))
    return total / count


data = distributed.made(ROWS // CHUNK, rows)
total = distributed.sum_over(loss, data, args=(float(ROWS),), progress=sys.stderr.isatty())

# All data, with Hessian products: Newton's method.
found = minimize(
    total.value_and_grad, np.zeros(len(TRUE)), jac=True, hessp=total.hvp, method="Newton-CG", options={"xtol": 1e-7}
)
error = 2.0 / np.sqrt(ROWS) * 4.0  # about four standard errors
print(f"{ROWS} rows in {len(data)} chunks, {found.nit} iterations: {found.x.round(3)}, really {TRUE}")
assert np.all(np.abs(found.x - TRUE) < error + 0.01)

# The same by mini-batches: each step uses one chunk.
w = np.zeros(len(TRUE))
for epoch in range(3):
    for batch in total.batches(1, seed=epoch):
        w -= 4.0 / (1.0 + epoch) * batch.grad(w)
print(f"after 3 epochs of mini-batches: {w.round(3)}")
assert np.all(np.abs(w - TRUE) < 0.4)
