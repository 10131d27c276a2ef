"""Gradients with labels: a matrix of flows as a DataFrame, fitted to the sums of its rows and columns."""

import numpy as np
import pandas as pd

import srcdiff
from srcdiff.bridges.arrays import accepting


def misfit(logs, sent, received):
    """The squared differences between the counted sums and those of the rows and columns."""
    total = 0.0
    columns = np.zeros(logs.shape[1])
    for i in range(logs.shape[0]):
        row = 0.0
        for j in range(logs.shape[1]):
            amount = np.exp(logs[i, j])
            row += amount
            columns[j] += amount
        total += (row - sent[i]) ** 2
    for j in range(logs.shape[1]):
        total += (columns[j] - received[j]) ** 2
    return total


towns, ports = ["Aa", "Bee", "Cee"], ["east", "west"]
sent = pd.Series([3.0, 2.0, 1.0], index=towns)
received = pd.Series([4.0, 2.0], index=ports)
logs = pd.DataFrame(0.0, index=towns, columns=ports)

value_and_gradient = accepting(srcdiff.value_and_grad(misfit))
for _ in range(400):
    value, gradient = value_and_gradient(logs, sent, received)
    logs -= 0.05 * gradient

print(np.exp(logs).round(3))
assert value < 1e-8
assert list(gradient.columns) == ports
assert np.allclose(np.exp(logs).sum(axis=1), sent, atol=1e-4)
