"""The memory that `report` prints, compared with measured memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def logistic(x, rate, steps):
    for t in range(steps):
        for i in range(len(x)):
            x[i] = rate * x[i] * (1.0 - x[i])
    return np.sum(x)


def until_small(x):
    while x > 1e-9:
        x = np.sin(x) * 0.99
    return x


def matrix_powers(a, n):
    b = a
    while n > 0:
        b = np.dot(b, a)
        n -= 1
    return np.sum(b)


def recursive(x, n):
    if n == 0:
        return x
    for _ in range(3):
        x = np.sin(x)
    return recursive(x * x, n - 1)


def linear(x, weights):
    total = 0.0
    for i in range(len(x)):
        total += weights[i] * x[i]
    return total


POINT = np.linspace(0.1, 0.9, 500)


@pytest.mark.parametrize("backend", BACKENDS)
def test_kept_values_are_listed_by_variable_and_line(backend):
    report = srcdiff.grad(logistic, backend=backend).report(POINT, 3.0, 40)
    (kept,) = report.kept
    assert (kept.variable, kept.span.text.strip()) == ("x", "x[i] = rate * x[i] * (1.0 - x[i])")
    assert kept.line == logistic.__code__.co_firstlineno + 3
    assert report.nbytes == kept.nbytes == 40 * 500 * 8
    assert report.gradients == 500 * 8
    assert report.uncounted == ()


def test_report_is_true():
    gradient = srcdiff.grad(logistic, backend="python")
    report = gradient.report(POINT, 3.0, 40)
    gradient(POINT, 3.0, 40)
    tracemalloc.start()
    try:
        gradient(POINT, 3.0, 40)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    told = report.nbytes + report.working + report.gradients
    assert told <= peak <= told + 8000  # objects of the interpreter: frames, views, numbers


@pytest.mark.parametrize("backend", BACKENDS)
def test_stacks_are_counted_with_their_capacity(backend):
    def sizes_of_a_stack():
        size = 64
        while True:
            yield 8 * size
            size = 2 * size + 8

    (kept,) = srcdiff.grad(until_small, backend=backend).report(1.0).kept
    iterations, x = 0, 1.0
    while x > 1e-9:
        x, iterations = np.sin(x) * 0.99, iterations + 1
    assert kept.nbytes == next(size for size in sizes_of_a_stack() if size >= 8 * iterations)


@pytest.mark.parametrize(("function", "arguments"), [(matrix_powers, (np.eye(3), 5)), (recursive, (0.5, 3))])
def test_memory_that_cannot_be_measured_is_reported_too(function, arguments):
    report = srcdiff.grad(function, backend="python").report(*arguments)
    assert len(report.uncounted) == 1
    assert f"?    line {report.uncounted[0].line}: " in str(report)


def test_function_that_keeps_nothing_says_so():
    report = srcdiff.grad(linear, backend="python").report(POINT, POINT)
    assert str(report) == (
        "linear keeps 0 B for the reverse sweep\nbesides 0 B for other arrays, and 4 kB for gradients"
    )


def test_report_prints_as_a_table():
    report = srcdiff.grad(logistic, backend="python").report(POINT, 3.0, 40)
    line = logistic.__code__.co_firstlineno + 3
    assert str(report).splitlines() == [
        "logistic keeps 160 kB for the reverse sweep",
        f"    160 kB  x  line {line}: x[i] = rate * x[i] * (1.0 - x[i])",
        f"besides {report.working / 1e3:.3g} kB for other arrays, and 4 kB for gradients",
    ]
