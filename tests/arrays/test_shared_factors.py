"""Equations with one matrix share its factors in compiled code: the numbers are those of the `python` backend."""

import numpy as np
import pytest

import srcdiff
from srcdiff.emit.support import lu_factors, solve_lu

RANDOM = np.random.default_rng(0)
MATRIX = RANDOM.normal(size=(5, 5)) + 3.0 * np.eye(5)
VECTOR = RANDOM.normal(size=5)


def solved(a, b):
    x = np.linalg.solve(a, b)
    return np.sum(x * x * x)


def overwritten(a, b):
    a = a.copy()
    x = np.linalg.solve(a, b)
    a[0, 0] = 3.0
    y = np.linalg.solve(a, x)
    return np.sum(y * y * x)


def rewritten_by_iterations(a, x):
    a = a.copy()
    for t in range(4):
        a[t, 0] *= 1.5
        x = np.linalg.solve(a, np.sin(x))
        x = x + np.linalg.solve(a.T, x)
    return np.sum(x * x)


def in_branches_of_a_loop(a, x):
    for t in range(6):
        x = np.linalg.solve(a, np.sin(x))
        if x[0] > 0.1:
            x = x + np.linalg.solve(a.T, x)
    return np.sum(x * x)


def until_small(a, x):
    count = 0
    while np.sum(x * x) > 1e-3 and count < 5:
        x = np.linalg.solve(a, x)
        count += 1
    return np.sum(x * x)


def batches(a, b):
    return np.sum(np.linalg.solve(a, b[..., None]) ** 2)


def of_complex(a, b):
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a.T, x) + np.linalg.solve(np.conj(a).T, x)
    return np.sum(np.abs(y) ** 2)


PROGRAMS = (
    (solved, MATRIX, VECTOR),
    (solved, MATRIX.T, RANDOM.normal(size=(10, 3))[::2]),
    (solved, MATRIX.astype(np.float32), VECTOR.astype(np.float32)),
    (solved, np.zeros((0, 0)), np.zeros((0, 2))),
    (solved, MATRIX, np.zeros((5, 0))),
    (overwritten, MATRIX, VECTOR),
    (rewritten_by_iterations, MATRIX, VECTOR),
    (in_branches_of_a_loop, MATRIX, VECTOR),
    (until_small, MATRIX, 5.0 * VECTOR),
    (batches, np.stack([MATRIX, MATRIX.T]), RANDOM.normal(size=(2, 5))),
    (of_complex, MATRIX + 1j * MATRIX[::-1], VECTOR + 1j * VECTOR[::-1]),
)


@pytest.mark.parametrize(("function", "a", "b"), PROGRAMS)
def test_gradients_are_those_of_numpy(function, a, b):
    value, bars = srcdiff.value_and_grad(function, wrt=(0, 1), backend="numba")(a, b)
    expected, expected_bars = srcdiff.value_and_grad(function, wrt=(0, 1), backend="python")(a, b)
    tolerance = 1e-3 if a.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    for bar, expected_bar in zip(bars, expected_bars, strict=True):
        np.testing.assert_allclose(bar, expected_bar, rtol=tolerance, atol=tolerance)
        assert bar.dtype == expected_bar.dtype


@pytest.mark.parametrize("function", [solved, in_branches_of_a_loop])
def test_second_derivatives_factorise_once(function):
    product = srcdiff.hvp(function, backend="numba")
    direction = MATRIX[::-1]
    ahead, behind = (srcdiff.grad(function, backend="python")(MATRIX + h * direction, VECTOR) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(product(MATRIX, VECTOR, direction), (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-8)
    assert product.source.count("= lu_factors(") == 1
    assert "np.linalg.solve(" not in product.source


def test_a_complex_gradient_agrees_with_differences():
    a, b = PROGRAMS[-1][1:]
    direction = MATRIX + 1j * MATRIX.T
    slope = (of_complex(a + 1e-6 * direction, b) - of_complex(a - 1e-6 * direction, b)) / 2e-6
    bar = srcdiff.grad(of_complex, backend="numba")(a, b)
    assert np.sum(bar.real * direction.real + bar.imag * direction.imag) == pytest.approx(slope, rel=1e-6)


UNSOLVABLE = (
    (np.ones((3, 3)), np.ones(3)),
    (np.ones((3, 3)), np.ones((3, 2))),
    (np.full((3, 3), np.nan), np.ones(3)),
    (np.array([[1.0, np.inf], [0.0, 1.0]]), np.ones(2)),
    (np.eye(3), np.array([1.0, np.inf, 1.0])),
)


@pytest.mark.parametrize(("a", "b"), UNSOLVABLE)
def test_unsolvable_equations_raise(a, b):
    with pytest.raises(np.linalg.LinAlgError):
        srcdiff.grad(solved, backend="numba")(a, b)


def repeated(a, x, count):
    for t in range(count):
        x = np.linalg.solve(a, np.sin(x))
    return np.sum(x * x)


@pytest.mark.parametrize("a", [np.ones((5, 5)), np.full((5, 5), np.nan)])
def test_a_singular_matrix_raises_only_where_it_is_used(a):
    gradient = srcdiff.grad(repeated, wrt="x", backend="numba")
    np.testing.assert_array_equal(gradient(a, VECTOR, 0), 2.0 * VECTOR)
    with pytest.raises(np.linalg.LinAlgError):
        gradient(a, VECTOR, 1)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("right", [VECTOR, RANDOM.normal(size=(5, 3))])
@pytest.mark.parametrize("matrix", [MATRIX, MATRIX[::-1] + 1j * MATRIX])
def test_the_written_functions_solve(matrix, right, is_transposed):
    x = solve_lu(*lu_factors(matrix), right, is_transposed)
    np.testing.assert_allclose((matrix.T if is_transposed else matrix) @ x, right, rtol=1e-12, atol=1e-12)
