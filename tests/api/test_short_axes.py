"""Arrays with few columns: the first call decides what is unrolled, and changes no number.

A gradient whose first call has small arrays has no second version of its loops. The others are compared with it.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.numerical import derivative

ROWS = 52


def lennard_jones(x: Any) -> Any:
    difference = x[:, None, :] - x[None, :, :]
    squared = np.sum(difference**2, axis=-1) + np.eye(len(x))
    s6 = 1.0 / squared**3
    return np.sum(s6 * s6 - s6)


def lennard_jones_of_columns(x: Any) -> Any:
    difference = x.T[:, :, None] - x.T[:, None, :]
    squared = np.sum(difference**2, axis=0) + np.eye(len(x))
    return np.sum(np.exp(-squared))


def near_charges(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                squared = 0.0
                for k in range(3):
                    squared += (x[i, k] - x[j, k]) ** 2
                if squared < 4.0:
                    total += math.cos(i) * math.cos(j) / math.sqrt(squared)
    return total


def distinct(x: Any) -> Any:
    """With itself, a particle has an infinite energy, which does not count."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                squared = 0.0
                for k in range(x.shape[1]):
                    squared += (x[i, k] - x[j, k]) ** 2
                total += 1.0 / squared**2
    return total


def each_pair_once(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            squared = 0.0
            for k in range(3):
                squared += (x[i, k] - x[j, k]) ** 2
            along = x[i, 0] - x[j, 0]
            total += along / (1.0 + squared) ** 2
    return total


def one_sided(x: Any) -> Any:
    """What a pair adds is not the same when its members swap."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            squared = 1.0
            for k in range(x.shape[1]):
                squared += (x[i, k] - 0.5 * x[j, k]) ** 2
            total += i * math.sin(squared) + x[j, 0] * (x[i, 1] - x[j, 1])
    return total


def trajectory(x: Any) -> Any:
    position, velocity = x.copy(), np.zeros_like(x)
    for _ in range(2):
        for i in range(len(x)):
            for j in range(len(x)):
                difference = position[i] - position[j]
                velocity[i] -= 1e-3 * difference * np.exp(-np.sum(difference**2))
        position += velocity
    return np.sum(position**2 * velocity)


PROGRAMS = (lennard_jones, lennard_jones_of_columns, near_charges, distinct, each_pair_once, one_sided, trajectory)


def points(count: int, columns: int = 3) -> Any:
    random = np.random.default_rng(7)
    grid = np.stack(np.meshgrid(*[np.arange(8)] * columns, indexing="ij")).reshape(columns, -1).T[:count]
    return 1.1 * grid + 0.1 * random.standard_normal((count, columns))


def gradient_of(function: Callable[..., Any], backend: str) -> Any:
    """A gradient of its own: there is one for each function otherwise."""
    return srcdiff.value_and_grad(types.FunctionType(function.__code__, function.__globals__), backend=backend)


def with_one_version(function: Callable[..., Any], backend: str) -> Any:
    gradient = gradient_of(function, backend)
    gradient(points(5))
    assert "== 3:" not in gradient.source
    return gradient


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient_of_few_columns_is_that_of_differences(program: Callable[..., Any]) -> None:
    x, along = points(ROWS), np.random.default_rng(8).standard_normal((ROWS, 3))
    gradient = gradient_of(program, "python")
    value, found = gradient(x)
    assert "== 3:" in gradient.source
    expected_value, expected = with_one_version(program, "python")(x)
    np.testing.assert_allclose(value, expected_value, rtol=1e-11)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    by_differences = derivative(lambda t: program(x + t * along), first=2.0**-8)
    assert abs(np.sum(found * along) - by_differences.value) <= by_differences.tolerance


@pytest.mark.numba
@pytest.mark.parametrize("program", [distinct, one_sided, each_pair_once], ids=lambda f: f.__name__)
def test_other_numbers_of_columns_have_their_gradients_after_the_first_call(program: Callable[..., Any]) -> None:
    gradient, other = gradient_of(program, "numba"), with_one_version(program, "numba")
    for columns in (3, 4, 3, 5):
        x = points(ROWS, columns)
        value, found = gradient(x)
        expected_value, expected = other(x)
        np.testing.assert_allclose(value, expected_value, rtol=1e-11)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
    assert "== 3:" in gradient.source


def test_pairs_add_to_one_element_in_an_iteration() -> None:
    gradient = gradient_of(near_charges, "python")
    gradient(points(ROWS))
    unrolled = gradient.source.partition("    else:\n        total")[0]
    assert "x_bar[i, 0] +=" in unrolled
    assert "x_bar[j" not in unrolled
