"""One step of a method for differential equations: its stages, the error, and the solution inside of the step."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import is_array, structural
from srcdiff.library.linear_systems import banded_jacobian
from srcdiff.library.matrix_equations import banded
from srcdiff.library.runge_kutta_tables import (
    DOP853_DENSE,
    DOP853_ERRORS,
    DOP853_NODES,
    DOP853_STAGES,
    DOP853_STEP,
    DOPRI5_DENSE,
    DOPRI5_ERRORS,
    DOPRI5_NODES,
    DOPRI5_STAGES,
    DOPRI5_STEP,
    RODAS5P_COUPLINGS,
    RODAS5P_DENSE,
    RODAS5P_GAMMA,
    RODAS5P_NODES,
    RODAS5P_SLOPES,
    RODAS5P_STAGES,
    RODAS5P_STEP,
    TSIT5_DENSE,
    TSIT5_ERRORS,
    TSIT5_NODES,
    TSIT5_STAGES,
    TSIT5_STEP,
)

METHODS = {"tsit5": (5, 6, 7), "dopri5": (5, 6, 7), "dop853": (8, 12, 16), "rodas5p": (5, 8, 8)}
"""For each method: its order for the choice of steps, the number of stages of a step, and that of the dense output."""


@structural
def order_of(method: str) -> int:
    return METHODS.get(method, (5, 6, 7))[0]


@structural
def stages_of_step(method: str) -> int:
    return METHODS.get(method, (5, 6, 7))[1]


@structural
def stages_of(method: str) -> int:
    return METHODS.get(method, (5, 6, 7))[2]


def tables_of(method: Any) -> Any:
    """The coefficients of a method: nodes, stages, step, dense output, errors, or couplings and slopes of Rodas5P."""
    if method == "tsit5":
        return (
            *(TSIT5_NODES, TSIT5_STAGES, TSIT5_STEP, TSIT5_DENSE),
            *(TSIT5_ERRORS, TSIT5_NODES),
        )
    if method == "dopri5":
        return (
            *(DOPRI5_NODES, DOPRI5_STAGES, DOPRI5_STEP, DOPRI5_DENSE),
            *(DOPRI5_ERRORS, DOPRI5_NODES),
        )
    if method == "dop853":
        return (
            *(DOP853_NODES, DOP853_STAGES, DOP853_STEP, DOP853_DENSE),
            *(DOP853_ERRORS, DOP853_NODES),
        )
    return (
        *(RODAS5P_NODES, RODAS5P_STAGES, RODAS5P_STEP, RODAS5P_DENSE),
        *(RODAS5P_COUPLINGS, RODAS5P_SLOPES),
    )


def weighted_sum(y: Any, k: Any, weights: Any, first: Any, count: Any, factor: Any) -> Any:
    """The state plus a weighted sum of stages."""
    z = np.copy(y)
    for j in range(count):
        w = factor * weights[first + j]
        for m in range(len(y)):
            z[m] += w * k[j, m]
    return z


def assign_row(rows: Any, i: Any, values: Any) -> None:
    for m in range(len(values)):
        rows[i, m] = values[m]


def fill_stages(slope: Any, table: Any, s: Any, ds: Any, y: Any, k: Any, start: Any, stop: Any) -> None:
    """Compute the stages of an explicit method, each from those before it."""
    nodes, weights = table[0], table[1]
    for i in range(start, stop):
        assign_row(k, i, slope(s + nodes[i] * ds, weighted_sum(y, k, weights, i * (i - 1) // 2, i, ds)))


def stage_solver(jacobian: Any, jvp: Any, bands: Any) -> Any:
    """For a slope at a place, a function that solves systems with the matrix scale - J; J is dense or banded."""

    def dense(slope: Any, s: Any, y: Any, scale: Any) -> Any:
        matrix = np.asarray(-jacobian(lambda z: slope(s, z))(y))
        for m in range(len(y)):
            matrix[m, m] += scale
        inverse = np.linalg.inv(matrix)
        return lambda right: np.asarray(inverse @ right)

    def in_bands(slope: Any, s: Any, y: Any, scale: Any) -> Any:
        below, above = bands
        ab = np.asarray(-banded_jacobian(jvp, lambda z: slope(s, z), y, below, above))
        for m in range(len(y)):
            ab[above, m] += scale
        return lambda right: np.reshape(banded(below, above, ab, np.reshape(right, (len(y), 1))), len(y))

    return dense if bands is None else in_bands


def fill_rosenbrock_stages(
    linear: Any, jvp: Any, slope: Any, table: Any, s: Any, ds: Any, y: Any, k: Any, count: Any
) -> None:
    """Compute the stages of Rodas5P, divided by the step. Each is the solution of a system with the same matrix."""
    n = len(y)
    nodes, weights, couplings, slopes = table[0], table[1], table[4], table[5]
    solve = linear(slope, s, y, 1.0 / (ds * RODAS5P_GAMMA))
    in_time = np.asarray(jvp(lambda place: slope(place, y), (s,), (1.0,))[1])
    for i in range(count):
        first = i * (i - 1) // 2
        right = weighted_sum(
            slope(s + nodes[i] * ds, weighted_sum(y, k, weights, first, i, ds)), k, couplings, first, i, 1.0
        )
        for m in range(n):
            right[m] += ds * slopes[i] * in_time[m]
        assign_row(k, i, solve(right) / ds)


def dense_row(y: Any, k: Any, dense: Any, count: Any, ds: Any, theta: Any) -> Any:
    """The solution inside of a step, at the fraction theta."""
    z = np.copy(y)
    for j in range(count):
        w = 0.0
        for d in range(dense.shape[1]):
            w = (w + dense[j, dense.shape[1] - 1 - d]) * theta
        for m in range(len(y)):
            z[m] += ds * w * k[j, m]
    return z


def norm_of_errors(y: Any, new: Any, k: Any, table: Any, method: Any, ds: Any, rtol: Any, atol: Any) -> Any:
    """The root mean square of the estimated errors relative to the tolerances, as in SciPy."""
    n = len(y)
    first, second = 0.0, 0.0
    for m in range(n):
        tolerated = (atol[m] if is_array(atol) else atol) + rtol * max(abs(y[m]), abs(new[m]))
        if method == "rodas5p":
            first += (ds * k[7, m] / tolerated) ** 2
        else:
            errors = table[4]
            e, other = 0.0, 0.0
            for j in range(errors.shape[1]):
                e += errors[0, j] * k[j, m]
                other += errors[1, j] * k[j, m]
            first += (ds * e / tolerated) ** 2
            second += (ds * other / tolerated) ** 2
    if method == "dop853":
        return first / np.sqrt((first + 0.01 * second) * n) if first > 0.0 else first
    return np.sqrt(first / max(n, 1))


def first_step(y: Any, slope: Any, rtol: Any, atol: Any) -> Any:
    """A step that changes the state by a hundredth."""
    size, change = 0.0, 0.0
    for m in range(len(y)):
        tolerated = (atol[m] if is_array(atol) else atol) + rtol * abs(y[m])
        size += (y[m] / tolerated) ** 2
        change += (slope[m] / tolerated) ** 2
    if not np.isfinite(size + change):
        raise RuntimeError("the state or its slope at the first time is not finite")
    if size < 1e-10 or change < 1e-10:
        return 1e-6
    return min(0.01 * np.sqrt(size / change), 1.0)


def twice(a: Any) -> Any:
    """The vector with as many places again."""
    larger = np.zeros(2 * len(a), a.dtype)
    for i in range(len(a)):
        larger[i] = a[i]
    return larger


def more_rows(a: Any, width: Any) -> Any:
    """The matrix of this width with as many rows again."""
    larger = np.empty((2 * len(a), width), a.dtype)
    for i in range(len(a)):
        for m in range(width):
            larger[i, m] = a[i, m]
    return larger
