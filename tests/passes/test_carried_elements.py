"""Elements that one iteration passes to the next: the derivatives agree with differences for all sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import srcdiff
from tests import numerical


def sweep(u, c):
    u = u.copy()
    for i in range(1, len(u) - 1):
        u[i] = c * (u[i - 1] * u[i] + math.sin(u[i + 1]))
    return np.sum(u**2)


def backwards(u, c):
    u = u.copy()
    for i in range(len(u) - 2, -1, -1):
        u[i] = u[i + 1] * u[i] + c
    return np.sum(u**3)


def path(u, c):
    x = np.empty(len(u) + 1)
    x[0] = c
    for t in range(len(u)):
        x[t + 1] = math.cos(x[t]) * u[t]
    return x[-1] + np.sum(x)


def grid(u, c):
    v = np.outer(u, u + c)
    for _ in range(2):
        for i in range(1, v.shape[0] - 1):
            for j in range(1, v.shape[1] - 1):
                v[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] * v[i, j] + v[i, j + 1])
    return np.sum(v**2)


def next_but_one(u, c):
    u = u.copy()
    for i in range(2, len(u)):
        u[i] = u[i - 1] * u[i - 2] + c * u[i]
    return np.sum(u)


def own_and_first(u, c):
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = u[i - 1] * c + u[0] * u[i]
        u[0] = u[0] + 0.1 * u[i]
    return np.sum(u**2)


def two_names(u, c):
    u = u.copy()
    v = u[1:]
    for i in range(len(v)):
        v[i] = u[i] * c + v[i] * v[i]
    return np.sum(u)


def stretched(u, c):
    u = u.copy()
    for i in range((len(u) - 1) // 2):
        u[2 * i + 2] = u[2 * i] * c + u[2 * i + 1] * u[2 * i + 2]
    return np.sum(u**2)


def left_early(u, c):
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = u[i - 1] * u[i] + c
        if u[i] > 1.5:
            break
    return np.sum(u**2)


FUNCTIONS = (sweep, backwards, path, grid, next_but_one, own_and_first, two_names, stretched, left_early)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_gradients_are_those_of_differences(function, size):
    if size == 0 and function is own_and_first:
        size = 4
    u, c = np.random.default_rng(size).uniform(0.2, 1.1, 2 * size)[::2], 0.4
    u_bar, c_bar = srcdiff.grad(function, wrt=("u", "c"), backend="python")(u, c)
    for actual, expected in zip([*u_bar, c_bar], numerical.gradient(function, (u, c), (0, 1)), strict=True):
        assert abs(actual - expected.value) <= 1e-8 + expected.tolerance


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives_are_differences_of_first_ones(function):
    u, c, v = np.linspace(0.3, 1.0, 6), 0.4, np.linspace(-1.0, 1.0, 6)
    product = srcdiff.hvp(function, backend="python")(u, c, v)
    gradient, step = srcdiff.grad(function, backend="python"), 1e-5
    expected = (gradient(u + step * v, c) - gradient(u - step * v, c)) / (2 * step)

    np.testing.assert_allclose(product, expected, rtol=1e-6, atol=1e-7)  # of differences of second order


@pytest.mark.numba
def test_compiled_code_agrees_with_the_python_backend():
    for function in (sweep, grid, path):
        u = np.linspace(0.3, 1.0, 9)
        expected = srcdiff.grad(function, backend="python")(u, 0.4)

        np.testing.assert_allclose(srcdiff.grad(function)(u, 0.4), expected, rtol=1e-13)


def test_element_is_stored_behind_the_loop():
    text = srcdiff.source(backwards, np.ones(4), 0.4)

    assert "u_bar_i" in text
