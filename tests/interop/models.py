"""Importable functions, for processes that need their derivatives."""

from __future__ import annotations

import numpy as np

import srcdiff


def energy(x: np.ndarray, scale: float = 2.0) -> float:
    """A curved valley."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + scale * (1.0 - x[i]) ** 2
    return total


@srcdiff.differentiable(backend="python")
def decorated(x):
    return np.sum(x**3)


def _adjoint(x, out, out_bar):
    return (out_bar * 3.0 * x * x,)


@srcdiff.custom_rule(adjoint=_adjoint)
def cube(x):
    return x * x * x


def of_cube(x):
    return cube(x)


def squares(x):
    return x**2
