"""What is multiplied by a constant zero contributes nothing to a derivative."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff


def logarithm(x, y):
    return np.log(0.0 * x + y)


def product(x, y):
    m = np.array([[x, 0.0], [0.0, y]]) @ np.array([1.0, 0.0])
    return m[0] * m[1] + m[0]


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_no_product_with_an_infinite_derivative(backend):
    x_bar, y_bar = srcdiff.grad(logarithm, wrt=("x", "y"), backend=backend)(1.0, 0.0)

    assert x_bar == 0.0
    assert y_bar == np.inf


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_tangents_do_the_same(backend):
    value, value_dot = srcdiff.jvp(logarithm, (1.0, 2.0), (1.0, 0.0), backend=backend)

    assert value == np.log(2.0)
    assert value_dot == 0.0


def test_elements_that_are_zero_are_left_out():
    gradient = srcdiff.grad(product, wrt=("x", "y"), backend="python")

    assert gradient(2.0, 3.0) == (1.0, 0.0)
    assert srcdiff.hessian(product, wrt="x")(2.0, 3.0) == 0.0


def test_variable_that_is_zero_is_no_constant():
    assert srcdiff.grad(lambda x, w: np.sin(w * x), wrt="w", backend="python")(2.0, 0.0) == 2.0
    assert np.isnan(srcdiff.grad(lambda x, w: np.log(w * x), wrt="x", backend="python")(2.0, 0.0))
