"""Loops that search by comparisons only give a warning. Other loops with comparisons do not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff


def bisection(p):
    low, high = 0.0, 4.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        if middle * middle * middle > p:  # line 4
            high = middle
        else:
            low = middle
    return middle


def bisection_in_while(p):
    low, high = 0.0, p + 4.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        value = p - middle * np.exp(middle)
        if value > 0.0:  # line 6
            low = middle
        if value <= 0.0:
            high = middle
    return np.sin(0.5 * (low + high)) * p


def bisection_with_exit(p):
    low, high = 0.0, 4.0
    x = 2.0
    while True:
        x = 0.5 * (low + high)
        total = 0.0
        for k in range(3):
            total += x**k / (k + 1.0)
        if abs(total - p) < 1e-10:
            break
        if total > p:  # line 10
            high = x
            continue
        low = x
    return x


def halved_steps(p):
    x, step = 2.0, 1.0
    for _ in range(50):
        x = x - step if x * x > p else x + step  # line 4
        step *= 0.5
    return x


def selected(p):
    low, high = 0.0, 4.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        above = middle**2 > p  # the selections are at line 5
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return high


def with_kept_value(p):
    a, b, ratio = -1.0, 3.0, 0.6180339887498949
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = (c - p) ** 2, (d - p) ** 2
    for _ in range(40):
        if at_c < at_d:  # line 6
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = (c - p) ** 2
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = (d - p) ** 2
    return 0.5 * (a + b)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (bisection, 5),
        (bisection_in_while, 6),
        (bisection_with_exit, 11),
        (halved_steps, 4),
        (selected, 6),
        (with_kept_value, 6),
    ],
)
def test_searches_are_noticed(function, line):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        srcdiff.grad(function, backend="python")(1.3)
    messages = [str(w.message) for w in noted if w.category is srcdiff.ComparisonSearchWarning]
    assert messages
    assert messages[0].startswith(
        f"line {function.__code__.co_firstlineno + line - 1} of test_comparison_searches.py, "
    )
    assert "srcdiff.root" in messages[0]


LIMITS, RATES = np.linspace(0.0, 2.0, 6), np.linspace(1.0, 3.0, 6) ** 2


def looked_up(x, w):
    k = 0
    while LIMITS[k + 1] < x:  # line 3
        k += 1
    return RATES[k] * w + x * x


def looked_up_by_halves(x, w):
    low, high = 0, len(LIMITS) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if LIMITS[middle] < 2.0 * x:  # line 5
            low = middle
        else:
            high = middle
    return (RATES[low] * w + x) ** 2


def looked_up_by_numpy(x, w):
    return w * RATES[np.searchsorted(LIMITS, x)] + x  # line 2


@pytest.mark.parametrize(("function", "line"), [(looked_up, 3), (looked_up_by_halves, 5), (looked_up_by_numpy, 2)])
def test_look_up_in_a_table_is_noticed(function, line):
    with pytest.warns(srcdiff.ComparisonSearchWarning, match="looks up a place by comparisons") as noted:
        srcdiff.grad(function, wrt=(0, 1), backend="python")(0.3, 2.0)
    place = f"line {function.__code__.co_firstlineno + line - 1} of test_comparison_searches.py, "
    assert [str(w.message)[: len(place)] for w in noted] == [place]


def interpolated_table(x, w):
    k = 0
    while LIMITS[k + 1] < x:
        k += 1
    share = (x - LIMITS[k]) / (LIMITS[k + 1] - LIMITS[k])
    return w * (RATES[k] * (1.0 - share) + RATES[k + 1] * share) + np.interp(x, LIMITS, RATES)


def pieces_of_lines(x, w):
    k = np.searchsorted(LIMITS, x)
    return w + RATES[k] * x


@pytest.mark.parametrize("function", [interpolated_table, pieces_of_lines])
def test_interpolation_in_a_table_gives_no_warning(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error", srcdiff.ComparisonSearchWarning)
        srcdiff.grad(function, wrt=(0, 1), backend="python")(0.3, 2.0)


def running_maximum(x):
    low, high = np.inf, -np.inf
    for i in range(len(x)):
        if x[i] > high:
            high = x[i]
        low = min(low, x[i])
    return high - low


def clipped_sums(x):
    a, b = 0.0, 1.0
    for i in range(len(x)):
        a, b = a + x[i] * b, 0.5 * (a + b)
        if a > 1.0:
            a = 1.0
        if b < x[i]:
            b = max(a, 0.1)
    return a + b


def exchanged(x):
    a, b = x[0], x[1]
    for k in range(2, len(x)):
        if a * x[k] > b:
            a, b = b, a
    return a + 2.0 * b


def subtracting(x):
    a, b = x[0], x[1]
    for _ in range(3):
        if a > b:
            a = a - b
        else:
            b = b - a
    return a * b


def adaptive_step(x):
    y, t, step = x[0], 0.0, 0.1
    while t < 1.0:
        slope = -y * x[1]
        if abs(step * slope) > 0.05:
            step *= 0.5
        else:
            y += step * slope
            t, step = t + step, step * 1.5
    return y + 0.0 * t


def line_search(x):
    at = 1.0
    for _ in range(3):
        step = 1.0
        for _ in range(20):
            if (at - step * 2.0 * at * x[0]) ** 2 * x[0] > at * at * x[0]:
                step *= 0.5
        at = at - step * 2.0 * at * x[0]
    return at


def adaptive_integral(x):
    at, step, total = 0.0, 0.5, 0.0
    while at < 1.0:
        step = min(step, 1.0 - at)
        whole = step * np.exp(x[0] * at)
        halves = 0.5 * step * (np.exp(x[0] * at) + np.exp(x[0] * (at + 0.5 * step)))
        if abs(whole - halves) < 0.05:
            total += halves
            at, step = at + step, 2.0 * step
        else:
            step = 0.5 * step
    return total


def interpolated(x):
    low, high = 0, 6
    while high - low > 1:
        middle = (low + high) // 2
        if x[0] < 0.5 * middle:
            high = middle
        else:
            low = middle
    return low * low + (x[0] - 0.5 * low) * (2.0 * low + 1.0) * 2.0


def newton(x):
    at = 1.0
    for _ in range(20):
        step = (at * at - x[0]) / (2.0 * at)
        if abs(step) > 0.5:
            step = 0.5 * step
        at = at - step
    return at


def false_position(x):
    a, b = 0.0, 4.0
    at_a, at_b = -x[0], 16.0 - x[0]
    for _ in range(40):
        c = (a * at_b - b * at_a) / (at_b - at_a)
        at_c = c * c - x[0]
        if at_c > 0.0:
            b, at_b = c, at_c
        else:
            a, at_a = c, at_c
    return c


def search_for_constants(x):
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle * middle > 2.0:
            high = middle
        else:
            low = middle
    return low * x[0]


@pytest.mark.parametrize(
    "function",
    [
        *(running_maximum, clipped_sums, exchanged, subtracting, adaptive_step, line_search, adaptive_integral),
        *(interpolated, newton, false_position, search_for_constants),
    ],
)
def test_other_loops_with_comparisons_give_no_warning(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error", srcdiff.ComparisonSearchWarning)
        srcdiff.grad(function, backend="python")(np.array([0.7, 0.9, 0.2]))
        srcdiff.jvp(function, (np.array([0.7, 0.9, 0.2]),), (np.ones(3),), backend="python")


def test_root_has_the_derivative_that_a_search_loses():
    def found(p: Any) -> Any:
        return srcdiff.root(lambda x: x * x * x - p, 1.0, backend="python")

    assert srcdiff.grad(found, backend="python")(1.3) == pytest.approx(1.3 ** (-2.0 / 3.0) / 3.0)


def test_explain_lists_searches():
    found = srcdiff.explain(bisection)
    assert "searches by comparisons" in str(found)
    assert "if middle * middle * middle > p:" in found.data()["searches"][0]["text"]
    assert found.data()["searches"][0]["line"] == bisection.__code__.co_firstlineno + 4
