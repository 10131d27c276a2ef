"""Recursive functions: their names in the generated module, their results and effects, and refusals."""

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


def test_a_derivative_inside_and_one_around_it_write_functions_of_their_own() -> None:
    dots = (0.3, None)

    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    tangent = srcdiff.grad(lambda x, n: srcdiff.jvp(power, (x, n), dots)[1], backend="python")

    assert srcdiff.vjp(tangent, 0.8, 3, wrt=0, backend="python")[1](1.0) == pytest.approx(0.3 * 24.0 * 0.8)


def last(a, n):
    return a if n == 0 else last(a, n - 1)


def filled(a, n):
    if n < 0:
        return 0.0
    a[n] = 3.0 * n
    return filled(a, n - 1)


def kept(items, n):
    if n == 0:
        return items
    return kept(items, n - 1)


def written_result(x):
    b = x.copy()
    c = last(b, 2)
    c[0] = 5.0
    return np.sum(b)


def written_argument(x):
    b = x.copy()
    c = last(b, 2)
    b[0] = 5.0
    return np.sum(c)


def written_through_two_calls(x):
    b = x.copy()
    c = last(last(b, 1), 2)
    c *= 2.0
    return np.sum(b)


def written_by_another_call(x):
    b = x.copy()
    c = last(b, 2)
    return filled(c, 2) + np.sum(b)


def written_inside(x):
    def doubled(v, n):
        if n == 0:
            return v
        w = doubled(v, n - 1)
        w[0] = w[0] * 2.0
        return w

    return np.sum(doubled(x.copy(), 2))


def written_while_another_is_on_its_way(x):
    b = x.copy()

    def change():
        b[0] = 9.0
        return 0.0

    def add(c, d):
        return np.sum(c) + d

    return add(last(b, 1), change())


def written_in_the_next_iteration(x):
    b = x.copy()
    c = b
    total = 0.0
    for k in range(3):
        b[k] = b[k] * 2.0
        total += np.sum(c)
        c = last(b, 1)
    return total


def returned_twice(x):
    def pair(v, n):
        if n == 0:
            t = v * 2.0
            return t, t[1:]
        return pair(v * v, n - 1)

    p, q = pair(x, 1)
    p[1] = 1.0
    return np.sum(p) + np.sum(q)


def kept_under_another_name(x):
    u = x.copy()
    v = u

    def visit(n):
        nonlocal u
        if n > 0:
            if x[0] > 100.0:
                u = x * 2.0
            visit(n - 1)

    visit(2)
    u[0] = 9.0
    return np.sum(v)


@pytest.mark.parametrize(
    "function",
    [
        written_result,
        written_argument,
        written_through_two_calls,
        written_by_another_call,
        written_inside,
        written_while_another_is_on_its_way,
        written_in_the_next_iteration,
        returned_twice,
        kept_under_another_name,
    ],
)
def test_array_that_may_be_the_one_passed_is_not_written(function: Any) -> None:
    assert "result of a recursive function" in refusal(function, np.array([0.3, 0.4, 0.5]))


def appended_to_result(items):
    b = [v * 2.0 for v in items]
    c = kept(b, 1)
    c.append(1.0)
    return sum(b)


def element_of_argument_assigned(items):
    b = [v * 2.0 for v in items]
    c = kept(b, 1)
    b[0] = 1.0
    return sum(c)


def popped_while_another_is_on_its_way(items):
    b = [v * 2.0 for v in items]

    def add(c, d):
        return sum(c) + d

    return add(kept(b, 1), b.pop())


def sorted_result(items):
    b = [-v for v in items]
    c = kept(b, 1)
    c.sort()
    return b[0]


def extended_by_another_call(items):
    def extend(v, n):
        if n > 0:
            v.append(1.0)
            extend(v, n - 1)

    b = [v * 2.0 for v in items]
    c = kept(b, 1)
    extend(b, 2)
    return sum(c)


@pytest.mark.parametrize(
    "function",
    [
        appended_to_result,
        element_of_argument_assigned,
        popped_while_another_is_on_its_way,
        sorted_result,
        extended_by_another_call,
    ],
)
def test_list_that_may_be_the_one_passed_is_not_changed(function: Any) -> None:
    message = "this changes a list that a recursive function may have returned"
    assert refusal(function, [0.3, 0.7]) == message


def test_list_that_is_changed_is_reached_in_one_way() -> None:
    def twice(x):
        def visit(k, p, q):
            if k == 0:
                return p[0] + len(q)
            p.append(x * k)
            return visit(k - 1, p, q) * q[-1]

        items = [x]
        return visit(2, items, items)

    def inside_and_passed(x):
        items = [x]

        def visit(k, p):
            if k > 0:
                items.append(x * k)
                p.append(1.0)
                visit(k - 1, p)

        visit(2, items)
        return sum(items)

    assert refusal(twice, 0.6) == refusal(inside_and_passed, 0.6)
    assert refusal(twice, 0.6) == "a recursive function changes a list that it can reach by two names"


def test_list_that_is_assigned_has_no_other_name() -> None:
    def function(x):
        items = [x]
        other = items

        def visit(k):
            nonlocal items
            if k > 0:
                items = [*items, x]
                visit(k - 1)

        visit(2)
        return sum(items) + sum(other)

    assert "`items` is assigned in a recursive function and refers to a list that has another name too" in refusal(
        function, 0.6
    )


def test_recursive_function_returns_no_function_and_no_list_of_lists() -> None:
    def of_functions(x):
        def make(n):
            return (lambda y: x * y) if n == 0 else make(n - 1)

        return make(2)(x)

    def of_lists(x):
        def make(n):
            if n == 0:
                return [[x]]
            return make(n - 1)

        return make(2)[0][0]

    assert (
        refusal(of_functions, 0.5)
        == "the result of the recursive function `make` is a function, which is not supported"
    )
    assert "is a list of lists" in refusal(of_lists, 0.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_written_into_an_argument_is_seen(backend: str) -> None:
    """Also if the recursive function does not read it again."""

    def around(x):
        b = x.copy()
        first = filled(b, 1)
        return first + np.sum(b * x)

    x = np.array([0.3, 0.4, 0.5])
    value, bar = srcdiff.value_and_grad(around, backend=backend)(x)
    np.testing.assert_allclose(value, 3.0 * x[1] + x[2] ** 2)
    np.testing.assert_allclose(bar, [0.0, 3.0, 2 * x[2]])


def test_array_may_be_written_once_the_one_passed_has_no_name() -> None:
    def around(x):
        u = x.copy()
        total = 0.0
        for k in range(3):
            u = last(u, 2)
            u[k] = u[k] * x[0]
            total += np.sum(u)
        temporary = last(x * 2.0, 1)
        temporary[0] = 1.0
        return total + np.sum(temporary)

    x = np.array([0.3, 0.4, 0.5])
    a, b, c = x
    np.testing.assert_allclose(
        srcdiff.grad(around, backend="python")(x),
        [6 * a + 2 * b + c, 1 + 2 * a + 2.0, 2 + a + 2.0],
    )


def test_types_of_mutually_recursive_functions_widen_together() -> None:
    def around(x):
        def even(n):
            return 1 if n == 0 else odd(n - 1) * x

        def odd(n):
            return 2 if n == 0 else even(n - 1)

        return even(4) + odd(3)

    x = 0.8
    assert srcdiff.grad(around, backend="python")(x) == pytest.approx(2 * x + 1.0)


def test_second_derivative_where_an_array_is_passed_twice() -> None:
    def around(a):
        def product(p, q, n):
            return p * q if n == 0 else product(p + q, q, n - 1)

        return np.sum(product(a, a, 2))

    a = np.array([0.3, 0.4])
    np.testing.assert_allclose(srcdiff.hvp(around, backend="python")(a, np.ones(2)), 6.0 * np.ones(2))


def written_beside_a_copy(a, x, depth):
    if depth <= 0:
        return a * x
    part = a.reshape(2)
    a[0] = x
    return written_beside_a_copy(0.5 * a, x, depth - 1) * part[0]


def array_or_number(x, depth):
    if depth <= 0:
        return np.full(2, x)
    below = array_or_number(x, depth - 1)
    return x + 0.0 * below[0]


def product_of_a_matrix_and_a_number(a, depth):
    if depth <= 0:
        return 0.5 * a
    return product_of_a_matrix_and_a_number(a, depth - 1) @ 0.5


def in_a_loop(call):
    def program(x):
        for _ in range(2):
            u = call(x)
        return np.sum(u)

    return program


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: written_beside_a_copy(np.ones(2), x, 2), "SD303"),
        (lambda x: array_or_number(x, 1), "SD202"),
        (lambda x: product_of_a_matrix_and_a_number(np.full((2, 2), x), 3), "SD203"),
    ],
)
def test_problems_of_recursive_functions_are_reported_in_loops_too(call, code):
    """A loop is read several times, and only problems of the last reading are reported."""
    with pytest.raises(srcdiff.DifferentiationError, match=code):
        srcdiff.grad(in_a_loop(call), backend="python")(0.7)


def quotients(a, depth):
    if depth <= 0:
        return 0.5
    a[0] /= 1.2
    return quotients(a, depth - 1)


def called_for_nothing(a):
    if a[0] >= 0.1:
        quotients(np.ones(2), 3)
    for _ in range(2):
        quotients(np.ones(2), 3)
    return a[0] * a[0]


def test_a_call_that_leads_to_nothing_leaves_nothing_behind():
    np.testing.assert_array_equal(srcdiff.grad(called_for_nothing, backend="python")(np.array([0.6, 1.0])), [1.2, 0.0])


def reads_a_list_of_arrays(x):
    layers = [np.full(2, x) * 2.0, np.full(2, x)]

    def term(h, depth):
        return h if depth <= 0 else term(h * layers[-2][0] + layers[0][1], depth - 1)

    return term(0.7, 2)


def test_a_list_of_arrays_around_a_recursive_function_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="a list of float arrays"):
        srcdiff.grad(reads_a_list_of_arrays, backend="python")(0.6)


def checked_power(x, n):
    if n < 0:
        raise ValueError("negative")
    return 1.0 if n == 0 else x * checked_power(x, n - 1)


def power_that_nobody_needs(x, n):
    checked_power(x, n)
    return x * x


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_call_that_raises_is_made_even_if_its_result_is_unused(backend):
    gradient = srcdiff.grad(power_that_nobody_needs, backend=backend)
    assert 3.0 == gradient(1.5, 2)
    with pytest.raises(ValueError, match="negative"):
        gradient(1.5, -1)
    with pytest.raises(ValueError, match="negative"):
        srcdiff.jvp(power_that_nobody_needs, (1.5, -1), (1.0, None), backend=backend)


def told_power(x, n):
    print("power", n)
    return 1.0 if n == 0 else x * told_power(x, n - 1)


@pytest.mark.parametrize("derivative", [srcdiff.grad, srcdiff.value_and_grad])
@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_recursive_function_prints_once(derivative, backend, capfd):
    derivative(told_power, backend=backend)(1.5, 2)
    assert ["power 2", "power 1", "power 0"] == capfd.readouterr().out.splitlines()
