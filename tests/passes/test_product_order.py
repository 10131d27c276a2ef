"""The order of matrix products changes no number but for rounding, and leaves one product less."""

from __future__ import annotations

import re

import numpy as np
import pytest

import srcdiff

RANDOM = np.random.default_rng(5)
LEFT, WEIGHTS, RIGHT = (RANDOM.standard_normal(shape) for shape in ((5, 3), (3, 4), (5, 4)))


def contracted(left, weights, right):
    return np.sum(np.tanh(np.einsum("bi,ij,bj->b", left, weights, right)))


def summed(left, weights, right):
    return np.sum(np.tanh(np.sum((left @ weights) * right, axis=1)))


def in_a_loop(left, weights, right):
    total = 0.0
    for k in range(3):
        product = (left * (k + 1.0)) @ weights
        for b in range(left.shape[0]):
            total += np.tanh(np.dot(product[b], right[b]))
    return total


def central_differences(function, arguments, k, small=1e-6):
    found = np.zeros_like(arguments[k])
    for place in np.ndindex(*found.shape):
        values = []
        for sign in (1.0, -1.0):
            moved = [a.copy() for a in arguments]
            moved[k][place] += sign * small
            values.append(function(*moved))
        found[place] = (values[0] - values[1]) / (2 * small)
    return found


@pytest.mark.parametrize("function", [contracted, summed, in_a_loop])
@pytest.mark.parametrize("wrt", [(0, 1), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_gradients(function, wrt):
    value, gradients = srcdiff.value_and_grad(function, wrt=wrt, backend="python")(LEFT, WEIGHTS, RIGHT)

    np.testing.assert_allclose(value, function(LEFT, WEIGHTS, RIGHT), rtol=1e-14)
    for k, gradient in zip(wrt, gradients, strict=True):
        expected = central_differences(function, (LEFT, WEIGHTS, RIGHT), k)
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("function", [contracted, summed])
@pytest.mark.parametrize("backend", ["python", "numba"])
def test_two_products(function, backend):
    gradient = srcdiff.grad(function, wrt=(0, 1), backend=backend)

    left_bar, weights_bar = gradient(LEFT, WEIGHTS, RIGHT)

    assert re.sub("#.*", "", gradient.source).count(" @ ") == 2
    arguments = (LEFT, WEIGHTS, RIGHT)
    np.testing.assert_allclose(left_bar, central_differences(function, arguments, 0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weights_bar, central_differences(function, arguments, 1), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 4), (0, 4)), ((5, 0), (0, 4), (5, 4)), ((5, 3), (3, 0), (5, 0))])
def test_empty_matrices(shapes):
    arguments = [np.ones(shape) for shape in shapes]
    gradients = srcdiff.grad(summed, wrt=(0, 1), backend="python")(*arguments)

    assert [g.shape for g in gradients] == list(shapes[:2])
    assert not any(np.any(g) for g in gradients)


@pytest.mark.parametrize("shapes", [((5, 3), (4, 4), (5, 4)), ((5, 3), (3, 4), (6, 4)), ((5, 3), (3, 4), (5, 3))])
def test_shapes_that_do_not_fit_raise(shapes):
    with pytest.raises(ValueError, match="shapes"):
        srcdiff.grad(summed, wrt=(0, 1), backend="python")(*[np.ones(shape) for shape in shapes])


def test_matrix_that_changes_after_the_product():
    def changing(left, weights, right):
        other = right.copy()
        product = left @ weights
        other[0, 0] = 3.0
        return np.sum(np.sum(product * other, axis=1) ** 2)

    arguments = (LEFT, WEIGHTS, RIGHT)
    left_bar = srcdiff.grad(changing, backend="python")(*arguments)

    np.testing.assert_allclose(left_bar, central_differences(changing, arguments, 0), rtol=1e-7)


def test_hessian():
    def curved(weights, left, right):
        return np.sum(np.sum((left @ weights) * right, axis=1) ** 3)

    hessian = srcdiff.hessian(curved, backend="python")(WEIGHTS, LEFT, RIGHT)

    sums = np.einsum("bi,ij,bj->b", LEFT, WEIGHTS, RIGHT)
    expected = np.einsum("b,bi,bj,bk,bl->ijkl", 6.0 * sums, LEFT, RIGHT, LEFT, RIGHT)
    np.testing.assert_allclose(hessian, expected, rtol=1e-12)
