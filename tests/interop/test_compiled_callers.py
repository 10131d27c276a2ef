"""Derivatives of all kinds are called from functions that Numba compiles."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import srcdiff

pytestmark = pytest.mark.numba


def energy(x, s=2.0):
    return s * np.sum(x**3)


def rotated(x, s):
    out = np.empty(2)
    out[0] = x[0] * s - x[1]
    out[1] = x[1] * x[0]
    return out


X, V = np.array([1.0, 2.0]), np.array([0.5, -1.0])


def test_products_with_hessians():
    product, both = srcdiff.hvp(energy), srcdiff.hvp(energy, ("x", "s"))

    @numba.njit
    def called(x, v):
        return product(x, 3.0, v), product(x, v), both(x, 3.0, (v, 1.0))

    first, second, (x_bar, s_bar) = called(X, V)
    np.testing.assert_allclose(first, product(X, 3.0, V))
    np.testing.assert_allclose(second, product(X, 2.0, V))
    expected = both(X, 3.0, (V, 1.0))
    np.testing.assert_allclose(x_bar, expected[0])
    np.testing.assert_allclose(s_bar, expected[1])
    with pytest.raises(ValueError, match="has a different shape"):
        called(X, np.ones(3))


def test_tangents():
    compiled = numba.njit(rotated)
    decorated = srcdiff.differentiable(rotated)

    @numba.njit
    def called(x, v):
        by_both = srcdiff.jvp(compiled, (x, 3.0), (v, 0.5))
        return by_both, srcdiff.jvp(decorated, (x, 3.0), (v, None)), srcdiff.jvp(compiled, (x, 3.0), (None, 1.0))

    for found, given in zip(called(X, V), [(V, 0.5), (V, None), (None, 1.0)], strict=True):
        for a, b in zip(found, srcdiff.jvp(rotated, (X, 3.0), given), strict=True):
            np.testing.assert_allclose(a, b)
    with pytest.raises(ValueError, match="has a different shape"):
        called(X, np.ones(3))


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_jacobians(mode):
    jacobian = srcdiff.jacobian(rotated, mode=mode)

    @numba.njit
    def called(x):
        return jacobian(x, 3.0), jacobian(s=4.0, x=x)

    first, second = called(X)
    np.testing.assert_allclose(first, [[3.0, -1.0], [2.0, 1.0]])
    np.testing.assert_allclose(second, [[4.0, -1.0], [2.0, 1.0]])


def test_hessians_and_jacobians_of_numbers():
    hessian, jacobian = srcdiff.hessian(energy), srcdiff.jacobian(energy)

    @numba.njit
    def called(x):
        return hessian(x, 1.0), jacobian(x, 1.0)

    hessian_found, jacobian_found = called(X)
    np.testing.assert_allclose(hessian_found, np.diag(6.0 * X))
    np.testing.assert_allclose(jacobian_found, 3.0 * X**2)


def test_batches():
    gradients = srcdiff.batched(srcdiff.value_and_grad(energy, wrt=("x", "s")), over="x")
    values = srcdiff.batched(energy)
    points = np.arange(6.0).reshape(3, 2)

    @numba.njit
    def called(x, s):
        return gradients(x, 3.0), values(x, s)

    (value, (x_bar, s_bar)), all_over = called(points, np.array([1.0, 2.0, 3.0]))
    expected, (expected_x, expected_s) = gradients(points, 3.0)
    for found, right in [(value, expected), (x_bar, expected_x), (s_bar, expected_s)]:
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right)
    np.testing.assert_allclose(all_over, values(points, np.array([1.0, 2.0, 3.0])))
    with pytest.raises(ValueError, match="different lengths"):
        called(points, np.ones(2))
    with pytest.raises(ValueError, match="is empty"):
        called(points[:0], np.ones(0))


def test_results_of_different_shapes_have_no_batch():
    def part(x, n):
        return x[: int(n)] * 2.0

    parts = srcdiff.batched(part, over="n")

    @numba.njit
    def called(x, n):
        return parts(x, n)

    assert called(X, np.array([1.0, 1.0])).tolist() == [[2.0], [2.0]]
    with pytest.raises(ValueError, match="different shapes"):
        called(X, np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    "made", [lambda f: srcdiff.hvp(f, backend="python"), lambda f: srcdiff.batched(f, backend="python")]
)
def test_other_backends_are_refused(made):
    derivative = made(energy)

    @numba.njit
    def called(x):
        return derivative(x, x)

    with pytest.raises(Exception, match="compiled code needs 'numba'"):
        called(np.ones((2, 2)))


def test_tangents_of_functions_that_write_or_return_lists_are_refused():
    def writes(x):
        x[0] = 2.0 * x[1]
        return x[0] * x[1]

    compiled = numba.njit(writes)

    @numba.njit
    def called(x):
        return srcdiff.jvp(compiled, (x,), (x,))

    with pytest.raises(Exception, match="writes to arguments"):
        called(X.copy())


def test_second_derivatives_in_loops():
    product = srcdiff.hvp(energy)

    @numba.njit
    def newton(x, steps):
        for _ in range(steps):
            for i in range(len(x)):
                unit = np.zeros_like(x)
                unit[i] = 1.0
                x[i] -= 0.1 * product(x, 1.0, unit)[i]
        return x

    found, expected = newton(X.copy(), 3), X.copy()
    for _ in range(3):
        for i in range(2):
            expected[i] -= 0.1 * 6.0 * expected[i]
    np.testing.assert_allclose(found, expected)


def test_sums_over_batches_are_refused():
    batch = srcdiff.batched(srcdiff.grad(energy, wrt="s"), over="x", shared="sum")

    @numba.njit
    def called(x):
        return batch(x, 1.0)

    with pytest.raises(Exception, match="shared='sum'"):
        called(np.ones((2, 2)))
