"""Generated code contains no unneeded statements."""

from __future__ import annotations

from typing import Any

import numpy as np

import srcdiff

A = np.array([0.5, -0.3, 0.8])


def source(function: Any, *arguments: Any) -> str:
    text: str = srcdiff.value_and_grad(function, wrt=0, backend="python").compile(*arguments).source
    return text


def filled_by_hand(a, n):
    size = position = 0
    out = np.empty(n)
    for i in range(n):
        out[size] = a[position] * a[i]
        size += 1
        position += 1
    return out.sum() * size


def counted_until(x):
    steps = tries = 0
    while x < 3.0:
        x = x * x + 0.5
        steps += 1
        tries += 1
    return x * steps + tries


def squares_run_on(a):
    total = 0.0
    for i in range(len(a) - 1):
        a[i + 1] = a[i + 1] + a[i] * a[i]
        total += a[i] * total
    return total


def swapped(a, iterations):
    u, v = a.copy(), np.zeros_like(a)
    for t in range(iterations):
        for i in range(len(a)):
            v[i] = u[i] * u[0]
        u, v = v, u
    return u[1]


def layers(w, v, x, y):
    second = np.maximum(x @ w, 0.1)
    return np.mean((second @ v - y) ** 2)


def test_counters_along_a_loop_follow_from_its_counter() -> None:
    text = source(filled_by_hand, A, 3)

    assert "out[i] = a[i] * a[i]" in text


def test_counters_in_step_are_one() -> None:
    text = source(counted_until, 0.6)

    assert "tries" not in text
    assert "iterations" not in text


def test_a_value_that_an_element_already_holds_is_not_stored_again() -> None:
    text = source(squares_run_on, A)

    assert "a_bar[i + 1] = a_bar[i + 1]" not in text


def test_an_array_of_its_own_is_returned_and_no_copy() -> None:
    text = source(swapped, A, 2)

    assert text.rstrip().endswith(", u_bar")


def test_an_array_that_is_written_afterwards_is_copied() -> None:
    def two_results(a):
        b = a.copy()
        c = b.copy()
        b[0] = 0.0
        return c, b

    value, tangent = srcdiff.jvp(two_results, (A,), (np.ones(3),), backend="python")

    assert value[0] is not value[1]
    np.testing.assert_array_equal(value[0], A)
    np.testing.assert_array_equal(tangent[1], [0.0, 1.0, 1.0])


def test_loops_around_a_product_are_fused_and_pass_a_scalar() -> None:
    w, x = np.array([[0.5, -0.2], [0.3, 0.9]]), np.array([[1.0, 2.0], [0.1, -0.4], [0.7, 0.3]])
    text = source(layers, w, w[0], x, np.ones(3))

    assert "second_bar = " in text
    assert "second_bar[" not in text, "the sizes were compared: every element is assigned, once"
    srcdiff.check(layers, w, w[0], x, np.ones(3), backend="python")
