"""Branches of both sweeps that are fused: the numbers agree with differences, and nothing is kept."""

import numpy as np
import pytest

import srcdiff
from tests import numerical


def exponential_and_parabola(x, scale):
    return np.sum(np.where(x > 0.0, 0.5 * x * x + x, scale * (np.exp(x) - 1.0)))


def sums_of_branches(x, scale):
    total, weighted = 0.0, 0.0
    for i in range(len(x)):
        if x[i] > 0.3:
            a = np.sin(x[i]) * scale
        else:
            a = x[i] * x[i]
        total += a
        weighted += total * a  # reads the sum, which moves after the branch
        if x[i] > 0.3:
            b = a * np.cos(x[i])
        else:
            b = np.exp(a) - scale
        total += b * b
    return total + weighted


def overwritten_between(x, scale):
    y = x.copy()
    total = 0.0
    for i in range(len(y) - 1):
        k = i if y[i] > 0.0 else i + 1
        total += y[k] * scale
        if y[i] > 0.0:
            y[i] = np.exp(y[i])
        else:
            y[i + 1] = np.sin(y[i])
        total += y[k] * y[i]
    return total


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("function", [exponential_and_parabola, sums_of_branches, overwritten_between])
@pytest.mark.parametrize("size", [0, 1, 9])
def test_gradient_is_right(function, size, backend):
    x = np.random.default_rng(6).standard_normal(size)

    value, actual = srcdiff.value_and_grad(function, wrt=("x", "scale"), backend=backend)(x, 0.7)

    assert value == pytest.approx(function(x, 0.7), rel=1e-12)  # sums are added in another order
    expected = [one.value for one in numerical.gradient(function, (x, 0.7), (0, 1))]
    np.testing.assert_allclose([*actual[0], actual[1]], expected, rtol=1e-6, atol=1e-8)  # differences


def test_nothing_is_kept_for_the_branch_of_the_same_iteration():
    gradient = srcdiff.grad(exponential_and_parabola)
    gradient(np.array([1.0, -1.0]), 0.7)
    assert "kept" not in gradient.source
    assert len([line for line in gradient.source.splitlines() if line.strip().startswith("if ")]) == 1
