"""Elements that no index selects do not contribute to a gradient, not even NaN."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff
from tests.numerical import derivative

V = np.array([0.0, 1.2, 0.7, 2.0, 0.0])  # zeros are never picked below
INDEX = np.array([1, -2, 2, 1])
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def by_a_mask(v, index):
    return np.sum(np.sqrt(v)[v > 0.0])


@case
def by_a_mask_with_a_name(v, index):
    s = np.sqrt(v)
    out = np.zeros_like(v)
    out[v > 0.0] = s[v > 0.0]
    return np.sum(out * np.arange(len(v)))


@case
def by_an_index_that_counts_from_the_end(v, index):
    return np.sum((1.0 / v + np.arange(len(v)))[index] * np.arange(len(index)))


@case
def by_a_slice(v, index):
    return np.sum(np.log(v)[1:4:2] ** 2)


@case
def by_a_slice_from_the_end(v, index):
    w = v[1:4]
    return np.sum(np.sqrt(v)[-4:-1] * np.arange(3)) + np.sum(np.log(w)[-100:2])


@case
def in_a_loop_that_replaces_it(v, index):
    total = 0.0
    for k in range(3):
        s = np.sqrt(v * (k + 1.0))
        v = v * 1.5
        total += np.sum(s[v > 1.0])
    return total


@case
def by_a_part_of_a_slice(v, index):
    s = np.sqrt(np.outer(v, v[1:4]) * 2.0)
    return np.sum(s[1, 1:] ** 3)


@case
def by_numbers(v, index):
    s = v**0.5
    return s[1] * s[-2]


@case
def by_a_branch(v, index):
    s, total = np.sqrt(v), 0.0
    for i in range(len(v)):
        if v[i] > 0.0:
            total += s[i] * i
    return total


@case
def by_an_exit(v, index):
    s, total = np.sqrt(v), 0.0
    for i in range(1, len(v)):
        if v[i] == 0.0:
            break
        total += s[i] * v[i]
    return total


@case
def by_what_it_is(v, index):
    s = np.sqrt(v)
    return np.sum(s[s > 0.1] ** 2 * 3.0)


@case
def from_the_triangle_of_a_matrix(v, index):
    w = v[1:4]
    distances = np.sqrt((w[:, None] - w[None, :]) ** 2)
    i, j = np.triu_indices(len(w), 1)
    return np.sum(distances[i, j] * np.arange(len(i)))


@case
def from_a_matrix_written_in_loops(v, index):
    n = len(v) - 2
    distances, total = np.empty((n, n)), 0.0
    for i in range(n):
        for j in range(n):
            distances[i, j] = np.sqrt((v[i + 1] - v[j + 1]) ** 2)
    for i in range(n):
        for j in range(i):
            total += distances[i, j] * (i + 1)
    return total


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_unselected_elements_contribute_nothing(function):
    value, gradient = srcdiff.value_and_grad(function, backend="python")(V.copy(), INDEX)
    assert value == pytest.approx(function(V.copy(), INDEX), rel=1e-13)
    for k in (1, 2, 3):
        slope = derivative(lambda t, k=k: function(np.where(np.arange(len(V)) == k, V + t, V), INDEX))
        assert abs(gradient[k] - slope.value) <= slope.tolerance
    np.testing.assert_array_equal(gradient[[0, 4]], 0.0)


@pytest.mark.numba
def test_unselected_elements_contribute_nothing_when_compiled():
    for function in (by_a_mask_with_a_name, by_an_index_that_counts_from_the_end, by_a_slice):
        compiled, plain = (srcdiff.grad(function, backend=b)(V.copy(), INDEX) for b in ("numba", "python"))
        np.testing.assert_allclose(compiled, plain, rtol=1e-13)


def changed_meanwhile(v):
    s = np.sqrt(v)
    v[1:] *= 2.0
    return np.sum(s[v > 1.0])


def changed_itself(v):
    s = np.sqrt(v)
    s[2:] *= 3.0
    return np.sum(s[1:4])


def replaced_in_a_loop(v):
    total = 0.0
    for k in range(3):
        s = np.sqrt(v * (k + 1.0))
        v = v * 1.5
        total += np.sum(s[v > 1.0])
    return total


def read_from_both_sides(v):
    s = np.sqrt(v)
    return np.sum(s[1:] * s[:-1]) + np.sum(s[v > 1.0])


def read_before_it_is_written(v):
    s = np.zeros(len(v))
    total = s[1]
    for i in range(len(v)):
        s[i] = np.sqrt(v[i]) + total
    return np.sum(s[1:3])


@pytest.mark.parametrize(
    "function", [changed_meanwhile, changed_itself, replaced_in_a_loop, read_from_both_sides, read_before_it_is_written]
)
def test_elements_are_those_that_the_program_computed(function):
    srcdiff.check(function, np.array([0.4, 1.2, 0.7, 2.0]), backend="python")


def test_an_array_that_is_only_picked_from_is_not_there():
    source = srcdiff.source(by_a_mask, V, INDEX)
    assert "np.sqrt(v[found[0, i]])" in source
    assert "np.empty(v.shape[0])" not in source


def neighbours(v):
    s = np.sqrt(v)
    total = 0.0
    for i in range(1, len(v) - 1):
        total += s[i - 1] * s[i + 1]
    return total


def test_elements_with_several_readers_are_computed_once():
    source = srcdiff.source(neighbours, V)
    assert source.count("] = np.sqrt(v[i])") == source.count("np.sqrt(v[") == 1
