"""Buffers of loops that may end early grow with the iterations that run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.passes import growing_buffers


def gradient(function, arguments):
    """Central differences with steps so small that trip counts do not change."""
    at, *others = arguments
    moved = np.asarray(at, float)
    found = np.empty_like(moved)
    for place in np.ndindex(moved.shape):
        values = []
        for h in (1e-6, -1e-6):
            other = moved.copy()
            other[place] += h
            values.append(function(other if other.ndim else float(other), *others))
        found[place] = (values[0] - values[1]) / 2e-6
    return found


HUGE = 10**13
"""A buffer for this many numbers would need 72 TiB."""


def left_by_break(x, n):
    s = x
    for i in range(n):
        s = math.sin(s) * x + 0.001 * i * x
        if s < 0.3 or i > 30:
            break
    return s


def left_by_constant(x, n):
    s = x
    for _ in range(10**13):
        s = math.sin(s) * x
        if s < 0.1:
            break
    return s


def left_by_return(x, n):
    s = x
    for _ in range(n):
        for _ in range(3):
            s = math.sin(s) * x
            if s < 0.1:
                return s * s
    return s


def in_steps(x, n):
    s = x
    for i in range(5, n, 3):
        s = math.sin(s) * x + 0.001 * i
        if i > 40:
            break
    return s


def backwards(x, n):
    s = x
    for i in range(n, 0, -1):
        s = math.sin(s) * x
        if n - i > 20:
            break
    else:
        s = s * x
    return s


def in_every_iteration_of_another(x, n):
    total = 0.0
    for k in range(len(x)):
        v = x[k]
        for _ in range(n):
            d = (v * v - x[k]) / (2.0 * v)
            v = v - d
            if abs(d) < 1e-12:
                break
        total += v * v * v
    return total


def both_may_end(x, n):
    s = x
    for i in range(n):
        for _ in range(n):
            s = math.sin(s) * x
            if s < 0.3:
                break
        s = s + 0.5
        if i > 4:
            break
    return s * x


def over_a_grid(x, n):
    a = x.copy()
    for k in range(n):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] = math.sin(a[i, j]) * x[i, j] + 0.1 * a[0, 0]
        if k > 10:
            break
    return np.sum(a)


def arrays_anew(x, n):
    u = x.copy()
    for _ in range(n):
        u = np.sin(u) * x
        if u[0] < 0.1:
            break
    return np.sum(u)


def on_one_side(x, n):
    s = x
    if x > 0.5:
        for _ in range(n):
            s = math.sin(s) * x
            if s < 0.1:
                break
    return s + x


def with_a_list(x, n):
    out = []
    s = x
    for _ in range(n):
        s = math.sin(s) * x
        out.append(s * s)
        if s < 0.1:
            break
    return sum(v * v for v in out)


VECTOR, GRID = np.array([0.5, 0.7, 0.9]), np.linspace(0.3, 0.9, 6).reshape(2, 3)
PROGRAMS: dict[Any, Any] = {
    left_by_break: 0.9,
    left_by_constant: 0.9,
    left_by_return: 0.9,
    in_steps: 0.7,
    backwards: 0.7,
    in_every_iteration_of_another: VECTOR,
    both_may_end: 0.9,
    over_a_grid: GRID,
    arrays_anew: VECTOR,
    on_one_side: 0.9,
    with_a_list: 0.9,
}


@pytest.fixture(params=["from the start", "as they run"])
def memory(request, monkeypatch):
    """Runs the test with an initial buffer for all iterations, and with one so small that it grows repeatedly."""
    if request.param == "as they run":
        monkeypatch.setattr(growing_buffers, "_START", 2)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_a_loop_that_ends_early_keeps_values_of_its_iterations_only(function, memory) -> None:
    derivative, at = srcdiff.grad(function, backend="python"), PROGRAMS[function]
    expected = gradient(function, (at, HUGE))

    np.testing.assert_allclose(derivative(at, HUGE), expected, rtol=1e-6)
    workspace = derivative.workspace(at, HUGE)
    for _ in range(3):
        np.testing.assert_allclose(workspace(at, HUGE), expected, rtol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_of_loops_that_end_early(function) -> None:
    at = PROGRAMS[function]
    direction = np.ones_like(at) if np.ndim(at) else 1.0
    derivative = srcdiff.grad(function, backend="python")
    found = srcdiff.hvp(function, backend="python")(at, HUGE, direction)

    ahead, behind = (np.asarray(derivative(at + h * direction, HUGE)) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(found, (ahead - behind) / 2e-5, rtol=1e-4, atol=1e-6)


def test_reverse_over_reverse_of_a_loop_that_ends_early() -> None:
    def squared(x, n):
        return srcdiff.grad(left_by_break)(x, n) ** 2

    first = srcdiff.grad(left_by_break, backend="python")

    expected = (first(0.9 + 1e-6, HUGE) ** 2 - first(0.9 - 1e-6, HUGE) ** 2) / 2e-6
    assert srcdiff.grad(squared, backend="python")(0.9, HUGE) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "function", [left_by_break, in_every_iteration_of_another, over_a_grid], ids=lambda f: f.__name__
)
def test_compiled_loops_that_end_early_keep_values_of_their_iterations_only(function, monkeypatch) -> None:
    monkeypatch.setattr(growing_buffers, "_START", 2)
    at = PROGRAMS[function]

    np.testing.assert_allclose(srcdiff.grad(function)(at, HUGE), gradient(function, (at, HUGE)), rtol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, -3])
def test_few_iterations_and_none(count) -> None:
    expected = gradient(left_by_break, (0.9, count))

    assert srcdiff.grad(left_by_break, backend="python")(0.9, count) == pytest.approx(expected)


def along_an_array(x):
    s = 1.0
    for i in range(1, len(x)):
        s = math.sin(s) * x[i]
        if s < 0.1:
            break
    return s


def a_few_times(x):
    s = 1.0
    for _ in range(100):
        s = math.sin(s) * x
        if s < 0.1:
            break
    return s


def as_often_as_something_is_long(x, n):
    u = np.zeros(n)
    for i in range(n):
        u[i] = math.sin(x * i)
        if u[i] < 0.1 and i > 3:
            break
    return np.sum(u * u)


def over_a_matrix(x):
    s = 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = math.sin(s) + x[i, j]
            if s > 5.0:
                break
    return s


EXACT: dict[Any, Any] = {
    along_an_array: (VECTOR,),
    a_few_times: (0.9,),
    as_often_as_something_is_long: (0.7, 20),
    over_a_matrix: (GRID,),
}


@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_a_buffer_no_larger_than_an_existing_array_does_not_grow(function) -> None:
    derivative = srcdiff.grad(function, backend="python")

    np.testing.assert_allclose(derivative(*EXACT[function]), gradient(function, EXACT[function]), rtol=1e-6)
    assert "grown" not in derivative.source
    assert "more_" not in derivative.source
