"""Recursive functions: their names in the generated module, and what they cannot do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def refusal(function: Any, *arguments: Any) -> str:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(function, backend="python")(*arguments)
    return "; ".join(problem.message for problem in caught.value.problems)


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_recursive_function_itself_is_called(backend: str) -> None:
    assert srcdiff.differentiable(power, backend=backend)(2.0, 3) == 8.0


def test_recursive_function_may_have_the_name_of_a_builtin() -> None:
    def around(x, n):
        def abs(k):
            return 1.0 if k == 0 else math.fabs(x) * abs(k - 1)

        return abs(n)

    assert srcdiff.grad(around, backend="python")(-2.0, 3) == -12.0


def test_recursive_functions_may_have_the_name_of_a_derivative() -> None:
    def around(x, n):
        def around_grad(k):
            return 1.0 if k == 0 else x * around_grad_adjoint(k - 1) * around_grad(k - 1)

        def around_grad_adjoint(k):
            return 1.0 if k == 0 else x * around_grad_adjoint(k - 1)

        return around_grad(n)

    assert srcdiff.grad(around, backend="python")(2.0, 2) == pytest.approx(12.0)


def test_list_that_a_recursive_function_changes_is_refused() -> None:
    def appends(x, n):
        items = []

        def visit(k):
            items.append(x * k)
            return x if k == 0 else visit(k - 1)

        return visit(n) + sum(items)

    def overwrites(x, n):
        items = [x, x]

        def visit(k):
            items[k] = 2.0
            return x if k == 0 else visit(k - 1)

        return visit(n) + sum(items)

    assert refusal(appends, 2.0, 1) == refusal(overwrites, 2.0, 1) == "a recursive function changes a list"


def test_recursive_function_that_writes_gets_arrays_that_share_no_memory() -> None:
    def visit(a, b, i):
        total = 0.0
        for k in range(len(a)):
            total += math.sin(b[k])
            a[k] = 1.0
        return total if i == 0 else total + visit(np.zeros(3), b, i - 1)

    def twice(x):
        a = x.copy()
        return visit(a, a, 2)

    def apart(x):
        return visit(x, x.copy(), 2)

    x = np.array([0.3, 0.4, 0.5])
    assert "share memory" in refusal(twice, x)
    np.testing.assert_allclose(srcdiff.grad(apart, backend="python")(x), 3 * np.cos(x))


def test_recursion_over_lists_that_get_shorter_is_refused_and_ends() -> None:
    def quick(items):
        if len(items) <= 1:
            return items
        low = [v for v in items[1:] if v < items[0]]
        high = [v for v in items[1:] if v >= items[0]]
        return quick(low) + quick(high)

    assert (
        refusal(lambda items: quick(items)[0], [0.3, 0.1, 0.7]) == "the recursive function `quick` must return numbers"
    )


def test_a_derivative_inside_and_one_around_it_write_functions_of_their_own() -> None:
    dots = (0.3, None)

    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    tangent = srcdiff.grad(lambda x, n: srcdiff.jvp(power, (x, n), dots)[1], backend="python")

    assert srcdiff.vjp(tangent, 0.8, 3, wrt=0, backend="python")[1](1.0) == pytest.approx(0.3 * 24.0 * 0.8)
