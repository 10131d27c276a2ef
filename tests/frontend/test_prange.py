"""Loops over `prange`: read as loops whose iterations are independent, and refused where they are not."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import njit, prange
from numba import prange as each_of

import srcdiff
from srcdiff.diagnostics import DifferentiationError

X = np.linspace(0.55, 2.0, 7)
ROWS = np.linspace(0.2, 1.7, 12).reshape(4, 3)


def own_elements(x):
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        y[i] = np.sin(x[i]) * x[i]
    return np.sum(y * y)


def scalar_sum(x):
    total = 0.0
    for i in prange(len(x)):
        total += x[i] * x[i]
    return total


def difference(x):
    total = 10.0
    for i in prange(len(x)):
        total -= np.exp(x[i])
    return total * total


def product(x):
    p = 1.0
    for i in prange(len(x)):
        p *= x[i]
    return p


def quotient(x):
    p = 2.0
    for i in prange(len(x)):
        p /= x[i] + 1.0
    return p


def extremes(x):
    largest, least = -1e9, 1e9
    for i in prange(len(x)):
        largest = max(largest, x[i] * np.cos(x[i]))
        least = min(least, x[i])
    return largest * least


def array_sum(a):
    total = np.zeros(a.shape[1])
    for i in prange(a.shape[0]):
        total += a[i] * a[i, 0]
    return np.sum(total * total)


def array_product(a):
    total = np.ones(a.shape[1])
    for i in prange(a.shape[0]):
        total *= a[i]
    return np.sum(total)


def array_sum_by_assignment(a):
    total = np.zeros(a.shape[1])
    for i in prange(a.shape[0]):
        total = total + a[i] ** 2
    return np.sum(total * total)


def sum_in_inner_loop_and_branch(a):
    total = 0.0
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.5:
                total += a[i, j] ** 3
    return total


def aliased(x):
    total = 0.0
    for i in each_of(1, len(x), 2):
        total += x[i] * x[i - 1]
    return total


def by_module(x):
    total = 0.0
    for i in numba.prange(len(x)):
        total += x[i] ** 3
    return total


def nested(a):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        for j in prange(a.shape[1]):
            b[i, j] = a[i, j] ** 2
    return np.sum(b * a)


def stencil(x):
    y = np.zeros_like(x)
    for i in prange(1, x.shape[0] - 1):
        y[i] = x[i - 1] * x[i + 1] - x[i] ** 2
    return np.sum(y**2)


def private_array(a):
    out = np.empty(a.shape[0])
    for i in prange(a.shape[0]):
        row = np.empty(a.shape[1])
        for j in range(a.shape[1]):
            row[j] = a[i, j] * a[i, 0]
        out[i] = np.sum(row * row)
    return np.sum(out)


def in_serial_loop(x):
    y = x.copy()
    for _ in range(3):
        z = np.empty_like(y)
        for i in prange(len(y)):
            z[i] = 0.5 * y[i] + y[i - 1] * 0.1
        y = z
    return np.sum(y * y)


def in_branch(x):
    y = np.zeros_like(x)
    if x[0] > 0.1:
        for i in prange(len(x)):
            y[i] = x[i] ** 2
    return np.sum(y)


@njit(parallel=True)
def squares_of(x):
    y = np.empty_like(x)
    for i in prange(x.size):
        y[i] = x[i] * x[i]
    return y


def in_helper(x):
    return np.sum(squares_of(np.sin(x)))


def rows_by_views(a):
    b = np.zeros_like(a)
    for i in prange(a.shape[0]):
        b[i] = a[i] * a[i, 1]
    return np.sum(b**2)


def indirect(x):
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    y = np.zeros_like(x)
    for i in prange(len(x)):
        y[order[i]] = x[i] ** 2
    return np.sum(y * x)


def indirect_sums(x):
    bins = np.array([0, 1, 0, 2, 2, 1, 0])
    y = np.zeros(3)
    for i in prange(len(x)):
        y[bins[i]] += x[i] ** 2
    return np.sum(y * y)


def private_scalar(x):
    y = np.empty_like(x)
    t = 0.0
    for i in prange(len(x)):
        if x[i] > 1.0:
            t = x[i] ** 2
        else:
            t = x[i]
        y[i] = t * x[i]
    return np.sum(y)


def skipping(x):
    total = 0.0
    for i in prange(len(x)):
        if x[i] < 1.0:
            continue
        total += x[i] ** 2
    return total


def inner_break(a):
    out = np.zeros(a.shape[0])
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 1.0:
                break
            out[i] += a[i, j] ** 2
    return np.sum(out * out)


RIGHT = [
    (own_elements, X),
    (scalar_sum, X),
    (difference, X),
    (product, X),
    (quotient, X),
    (extremes, X),
    (array_sum, ROWS),
    (array_product, ROWS),
    (array_sum_by_assignment, ROWS),
    (sum_in_inner_loop_and_branch, ROWS),
    (aliased, X),
    (by_module, X),
    (nested, ROWS),
    (stencil, X),
    (private_array, ROWS),
    (in_serial_loop, X),
    (in_branch, X),
    (in_helper, X),
    (rows_by_views, ROWS),
    (indirect, X),
    (indirect_sums, X),
    (private_scalar, X),
    (skipping, X),
    (inner_break, ROWS),
]


@pytest.mark.parametrize(("f", "x"), RIGHT, ids=[f.__name__ for f, _ in RIGHT])
def test_derivatives_of_parallel_loops_are_right(f, x):
    srcdiff.check(f, x, backend="python")
    srcdiff.check(f, x, order=2, backend="python")


@pytest.mark.parametrize("f", [own_elements, scalar_sum, extremes, stencil, in_helper], ids=lambda f: f.__name__)
def test_functions_that_numba_compiles_in_parallel_are_read(f):
    srcdiff.check(njit(parallel=True)(f), X)
    srcdiff.check(njit(f), X, backend="python")


def paths(sigma, count):
    random = np.random.default_rng(3)
    total = 0.0
    for _ in prange(count):
        price = np.exp(sigma * random.normal())
        if price > 1.0:
            for _ in range(2):
                price += sigma * random.uniform(0.0, 1.0)
        total += price
    return total


@pytest.mark.parametrize("parallel", [False, True])
def test_iterations_draw_random_numbers_in_their_order(parallel):
    step = 1e-5
    expected = (paths(0.1 + step, 9) - paths(0.1 - step, 9)) / (2 * step)
    assert srcdiff.grad(paths, backend="python", parallel=parallel)(0.1, 9) == pytest.approx(expected, rel=1e-8)


def test_no_iterations_give_the_start():
    assert srcdiff.grad(scalar_sum, backend="python")(np.zeros(0)).shape == (0,)


def test_a_parallel_range_outside_a_loop_is_a_range():
    def f(x):
        total = x
        for i in reversed(prange(3)):
            total = total * (i + x)
        return total

    srcdiff.check(f, 1.5, backend="python")


def running(x):
    y = x.copy()
    for i in prange(1, len(x)):
        y[i] = y[i - 1] * x[i]
    return y[-1]


def in_place(x):
    y = x.copy()
    for i in prange(len(x) - 1):
        y[i] = y[i + 1] * 2.0
    return np.sum(y)


def carried(x):
    v = 0.0
    total = 0.0
    for i in prange(len(x)):
        v = 0.5 * v + x[i]
        total += v
    return total


def used_afterwards(x):
    t = 0.0
    for i in prange(len(x)):
        t = x[i] ** 2
    return t


def one_element(x):
    y = np.zeros(2)
    for i in prange(len(x)):
        y[0] += x[i] ** 2
    return y[0]


def same_column(a):
    y = np.zeros(3)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            y[j] = a[i, j]
    return np.sum(y)


def elements_of_a_sum(a):
    y = np.zeros(a.shape[1])
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            y[j] += a[i, j] ** 2
    return np.sum(y)


def sum_that_is_read(x):
    total = 0.0
    y = np.empty_like(x)
    for i in prange(len(x)):
        total += x[i]
        y[i] = total
    return np.sum(y)


def maximum_by_a_branch(x):
    best = 0.0
    for i in prange(len(x)):
        if x[i] > best:
            best = x[i]
    return best


def breaking(x):
    total = 0.0
    for i in prange(len(x)):
        if x[i] > 1.0:
            break
        total += x[i]
    return total


def returning(x):
    for i in prange(len(x)):
        if x[i] > 1.0:
            return x[i]
    return 0.0


REFUSED = [
    (running, X, "writes an element of `y` that another one reads", "y[i] = y[i - 1] * x[i]"),
    (in_place, X, "writes an element of `y` that another one reads", "y[i] = y[i + 1] * 2.0"),
    (carried, X, "reads `v` as another one has left it", "v = 0.5 * v + x[i]"),
    (used_afterwards, X, "`t` is used after the loop", "t = x[i] ** 2"),
    (one_element, X, "add to the same element of `y`", "y[0] += x[i] ** 2"),
    (same_column, ROWS, "write to the same element of `y`", "y[j] = a[i, j]"),
    (elements_of_a_sum, ROWS, "add to the same element of `y`", "y[j] += a[i, j] ** 2"),
    (sum_that_is_read, X, "reads `total` as another one has left it", "total += x[i]"),
    (maximum_by_a_branch, X, "reads `best` as another one has left it", "best"),
    (breaking, X, "`break` leaves a loop over `prange`", "break"),
    (returning, X, "`return` leaves a loop over `prange`", "return x[i]"),
]


@pytest.mark.parametrize(("f", "x", "message", "line"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
def test_iterations_that_depend_on_each_other_are_refused(f, x, message, line):
    with pytest.raises(DifferentiationError) as raised:
        srcdiff.grad(f, backend="python")(x)
    problem = raised.value.problems[0]
    assert problem.code == "SD503"
    assert message in str(raised.value)
    assert line in str(raised.value)


def test_a_dependence_shows_both_lines():
    def f(x):
        y = x.copy()
        for i in prange(1, len(x)):
            before = y[i - 1]
            y[i] = before * x[i]
        return y[-1]

    with pytest.raises(DifferentiationError, match=r"y\[i\] = before \* x\[i\]") as raised:
        srcdiff.grad(f, backend="python")(X)
    assert "before = y[i - 1]" in str(raised.value)


def test_the_same_loop_over_range_is_differentiated():
    def f(x):
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = y[i - 1] * x[i]
        return y[-1]

    srcdiff.check(f, X, backend="python")


def test_a_parallel_loop_in_a_nested_derivative_is_read():
    def f(x):
        return np.sum(srcdiff.grad(scalar_sum)(x) ** 2)

    srcdiff.check(f, X, backend="python")
