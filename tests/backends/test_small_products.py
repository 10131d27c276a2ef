"""Products of small matrices and vectors are loops; those of larger ones are calls of BLAS. Both agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import small_products
from srcdiff.backends.numba.numba_cpu import compiler
from srcdiff.backends.numba.quick_numpy import quick_numpy

numpy_of_compiled_code = quick_numpy()


@compiler({})
def product(matrix, vector):
    return numpy_of_compiled_code.dot(matrix, vector)


LENGTHS = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (7, 5), (8, 8), (16, 16), (16, 17), (32, 32), (32, 33)]


def test_the_lengths_are_on_both_sides_of_the_limits():
    sizes = [rows * columns for rows, columns in LENGTHS]
    for most in (small_products.MOST_BY_ROWS, small_products.MOST_BY_COLUMNS):
        assert any(size == most for size in sizes)
        assert any(size > most for size in sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_products_are_those_of_numpy(lengths, layout, dtype):
    rows, columns = lengths
    random = np.random.default_rng(rows + 10 * columns)
    matrix = random.standard_normal((rows, columns)).astype(dtype)
    if layout == "columns":
        matrix = np.asfortranarray(matrix)
    if layout == "strided":
        matrix = np.repeat(matrix, 2, axis=1)[:, ::2]
    vector = random.standard_normal(columns).astype(dtype)
    expected = matrix @ vector
    # sums of at most 33 terms near one, in another order
    tolerance = 100 * np.finfo(dtype).eps
    actual = product(matrix, vector)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)
    from_the_left = product(vector, matrix.T)
    assert from_the_left.dtype == expected.dtype
    np.testing.assert_allclose(from_the_left, expected, rtol=0.0, atol=tolerance)


def test_a_row_of_the_matrix_may_be_the_vector():
    matrix = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(product(matrix, matrix[1]), matrix @ matrix[1])


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_nan_and_infinity_are_in_the_sums(special):
    matrix = np.zeros((3, 3))
    matrix[1, 2] = special
    for given in (matrix, np.asfortranarray(matrix)):
        np.testing.assert_array_equal(product(given, np.zeros(3)), [0.0, np.nan, 0.0])
        np.testing.assert_array_equal(product(given, np.ones(3)), [0.0, special, 0.0])


def test_vectors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="shapes do not fit together"):
        product(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match="shapes do not fit together"):
        product(np.ones(3), np.ones((2, 3)))


def powers(a, x, count):
    for _ in range(count):
        x = np.tanh(a @ x) + x @ a
    return np.sum(x * x)


@pytest.mark.parametrize("size", [1, 4, 16, 17, 33])
def test_derivatives_of_products_in_loops(size):
    random = np.random.default_rng(size)
    a, x = random.standard_normal((size, size)) / size, random.standard_normal(size)
    assert srcdiff.check(powers, a, x, 3, wrt=("a", "x"))


def images(x, a):
    return np.sin(x @ a) + np.tanh(a @ x) * (x @ a)


def energy(x, a):
    return np.sum(images(x, a) ** 2)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("backend", ["python", "numba"])
def test_jacobians_of_products_from_both_sides(backend, mode):
    random = np.random.default_rng(7)
    x, a, step = random.standard_normal(5), random.standard_normal((5, 5)), 1e-6
    actual = srcdiff.jacobian(images, mode=mode, backend=backend)(x, a)
    differences = [(images(x + step * e, a) - images(x - step * e, a)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(actual, np.stack(differences, axis=1), rtol=1e-6, atol=1e-8)  # differences


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_second_derivatives_of_products_from_both_sides(backend):
    random = np.random.default_rng(8)
    x, direction, a, step = random.standard_normal(5), random.standard_normal(5), random.standard_normal((5, 5)), 1e-6
    gradient = srcdiff.grad(energy, backend=backend)
    actual = srcdiff.hvp(energy, backend=backend)(x, a, direction)
    expected = (gradient(x + step * direction, a) - gradient(x - step * direction, a)) / (2 * step)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)  # differences of gradients


def test_a_vector_times_a_matrix_is_written_so():
    gradient = srcdiff.grad(energy, wrt="a")
    gradient(np.ones(3), np.ones((3, 3)))
    assert "x @ a" in gradient.source


def test_a_product_in_code_that_needs_nothing_else_of_numpy():
    def product(a, b):
        return a @ b

    np.testing.assert_array_equal(srcdiff.differentiable(product)(np.eye(5), np.arange(5.0)), np.arange(5.0))
