"""Values that no branch selects do not contribute to a gradient, not even NaN."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

A = np.array([1.0, 2.0, 3.0])
CASES = []


def case(*gradient):
    """The derivatives with respect to `a`; those with respect to `c`, which is zero, are zero."""

    def put(function):
        CASES.append((function, gradient))
        return function

    return put


@case(2.0, 4.0, 6.0)
def number_that_no_element_chooses(a, c):
    return np.sum(np.where(a > 0.0, a * a, np.sqrt(c)))


@case(2.0, 4.0, 6.0)
def number_with_a_name(a, c):
    s = np.sqrt(c)
    return np.sum(np.where(a > 0.0, a * a, s * 2.0 + 1.0))


@case(2.0, 4.0, 6.0)
def default_of_select(a, c):
    return np.sum(np.select([a > 0.0, a > -1.0], [a * a, a], np.log(c)))


@case(2.0, 4.0, 6.0)
def assigned_through_a_mask(a, c):
    b = a.copy()
    b[a < 0.0] = np.sqrt(c)
    return np.sum(b * b)


@case(1.0, 1.0, 1.0)
def choices_in_choices(a, c):
    return np.sum(np.where(a > 0.0, np.where(a > -5.0, a, np.sqrt(c)), 1.0 / c))


@case(1.0, 1.0, 1.0)
def number_from_a_sum(a, c):
    return np.sum(np.where(a > 0.0, a, np.sqrt(c * np.sum(a))))


@case(1.0, 1.0, 1.0)
def chosen_by_numbers(a, c):
    return np.sum(np.choose((a < 0.0).astype(int), [a, np.sqrt(c)]))


@case(1.0, 1.0, 1.0)
def branch_in_a_loop(a, c):
    s = np.sqrt(c)
    total = 0.0
    for i in range(len(a)):
        if a[i] < 0.0:
            total += s
        else:
            total += a[i]
    return total


@case(1.0, 1.0, 1.0)
def two_branches_in_two_loops(a, c):
    s = np.sqrt(c)
    total = 0.0
    for i in range(len(a)):
        total += a[i] if a[i] > 0.0 else s
    n = 0
    while n < 3:
        if a[n] < 0.0:
            total += 1.0 / s
        n += 1
    return total


@case(1.0, 0.0, 0.0)
def one_of_three_branches(a, c):
    s = np.sqrt(c)
    if a[1] < -100.0:
        total = s * a[1]
    elif a[1] < -50.0:
        total = s
    else:
        total = a[0]
    return total


@case(0.0, 0.5, 1.0 / np.sqrt(8.0))
def elements_with_a_name(a, c):
    v = a - 1.0
    s = np.sqrt(v)
    return np.sum(np.where(v > 0.0, s, 0.0)) + 0.0 * c


@pytest.mark.parametrize(("function", "gradient"), CASES)
@pytest.mark.parametrize("backend", ["python", "numba"])
def test_unselected_values_contribute_nothing(function, gradient, backend):
    found = srcdiff.grad(function, wrt=("a", "c"), backend=backend)(A, 0.0)
    assert found[0] == pytest.approx(gradient)
    assert found[1] == 0.0
    _, tangent = srcdiff.jvp(function, (A, 0.0), (np.ones(3), 1.0), backend="python")
    assert tangent == pytest.approx(sum(gradient))


def test_selected_values_keep_their_derivative():
    a = np.array([1.0, -2.0, 3.0])
    for function, _ in CASES[:-1]:
        srcdiff.check(function, a, 0.7, backend="python")
    assert srcdiff.grad(number_that_no_element_chooses, wrt="c", backend="python")(a, 0.0) == np.inf


def test_numbers_that_all_iterations_use_are_computed_once():
    def scaled(a, c):
        s = np.sqrt(c)
        total = 0.0
        for i in range(len(a)):
            total += a[i] * s if a[i] > 0.0 else s
        return total

    text = srcdiff.source(scaled, A, 0.5, wrt=("a", "c"))
    assert text.count("np.sqrt(c)") == 1
    assert text.index("np.sqrt(c)") < text.index("for ")


def test_the_generated_text_does_not_depend_on_the_process():
    def horner(a, x):
        return sum([v * x for v in a]) + max([v * v for v in a])

    text = srcdiff.source(horner, A, 0.5, wrt=("a", "x"))
    assert not any(len(word) > 6 and word.isdigit() for word in text.replace("fold", " ").split())
