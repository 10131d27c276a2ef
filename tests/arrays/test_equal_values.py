"""Equal eigenvalues and singular values: derivatives through their vectors are NaN, and all others are right."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

RANDOM = np.random.default_rng(7)
WEIGHTS = RANDOM.normal(size=(5, 5)) + 1j * RANDOM.normal(size=(5, 5))
PAIR, PAIRS, ZEROS = np.diag([2.0, 2.0, 3.0]), np.diag([1.0, 1.0, 2.0, 2.0]), np.zeros((2, 2))
TALL, LOWER_RANK = np.eye(5, 3) * np.array([2.0, 2.0, 1.0]), np.eye(5, 3) * np.array([2.0, 1.0, 0.0])
TWIST = np.array([[0.0, -1.0], [1.0, 0.0]])


def weighted(a):
    return np.sum((a * WEIGHTS[: a.shape[0], : a.shape[1]]).real)


def rebuilt_by_eigh(a):
    values, vectors = np.linalg.eigh(a)
    return weighted((vectors * np.exp(values)) @ np.conj(vectors).T)


def rebuilt_by_eig(a):
    values, vectors = np.linalg.eig(a)
    return weighted((vectors * values**2) @ np.conj(vectors).T)


def rebuilt_by_svd(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return weighted((u * (s**3 + 1.0)) @ vt)


def left_vectors(a):
    return weighted(np.linalg.svd(a, full_matrices=False)[0])


def all_left_vectors(a):
    u, s, _ = np.linalg.svd(a)
    return weighted(u) + np.sum(s)


def polar_factor(a):
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    return weighted(u @ vt)


def cubes_of_eigenvalues(a):
    return np.sum(np.linalg.eigh(a)[0] ** 3)


def cubes_of_any_eigenvalues(a):
    return np.sum(np.linalg.eigvals(a) ** 3).real


def fourth_powers(a):
    return np.sum(np.linalg.svd(a)[1] ** 4)


def nuclear_norm(a):
    return np.linalg.norm(a, "nuc")


def last_vector(a):
    values, vectors = np.linalg.eigh(a)
    last = vectors[:, 2:]
    return weighted(last @ np.conj(last).T) + np.sum(values)


def last_right_vector(a):
    """The singular vector of the least singular value."""
    _, s, vt = np.linalg.svd(a)
    return weighted(np.conj(vt[2:]).T @ vt[2:]) + np.sum(s)


def largest_of_any(a):
    """LAPACK's order of the eigenvalues is not fixed."""
    values, vectors = np.linalg.eig(a)
    largest = vectors[:, np.argmax(values.real)]
    return weighted(largest[:, None] * np.conj(largest)) + np.sum(values).real


def difference(f, a, step, h=1e-4):
    return (8.0 * (f(a + h * step) - f(a - h * step)) - f(a + 2.0 * h * step) + f(a - 2.0 * h * step)) / (12.0 * h)


def along(f, a, step, backend="python"):
    return srcdiff.jvp(f, (a,), (step,), backend=backend)[1]


UNDEFINED = [
    *((rebuilt_by_eigh, a) for a in (np.eye(3), PAIR, PAIRS, ZEROS)),
    *((rebuilt_by_eig, a) for a in (np.eye(3), PAIR)),
    *((rebuilt_by_svd, a) for a in (np.eye(3), PAIR, ZEROS, TALL, TALL.T.copy())),
    *((left_vectors, a) for a in (np.eye(3), PAIR, TALL, LOWER_RANK)),
    *((all_left_vectors, a) for a in (PAIR, TALL, LOWER_RANK)),
    (polar_factor, ZEROS),
    (polar_factor, LOWER_RANK),
]
DEFINED = [
    *((f, a) for f in (cubes_of_eigenvalues, cubes_of_any_eigenvalues) for a in (np.eye(3), PAIR, PAIRS, ZEROS)),
    *((fourth_powers, a) for a in (np.eye(3), PAIR, ZEROS, TALL, LOWER_RANK, TALL.T.copy())),
    *((nuclear_norm, a) for a in (np.eye(3), PAIR, TALL)),
    *((polar_factor, a) for a in (np.eye(3), PAIR, PAIRS, TALL, TALL.T.copy())),
    *((f, PAIR) for f in (last_vector, largest_of_any)),
    (last_right_vector, np.diag([2.0, 2.0, 1.0])),
    (last_right_vector, TALL),
]


def names(cases):
    return [f"{f.__name__}-{k}" for k, (f, _) in enumerate(cases)]


def directions(a, dtype):
    """Symmetric and not, so that couplings of two vectors have equal and opposite signs."""
    steps = [RANDOM.normal(size=a.shape).astype(dtype), np.zeros(a.shape, dtype), np.zeros(a.shape, dtype)]
    steps[1][:2, :2], steps[2][:2, :2] = abs(TWIST), TWIST
    if dtype is complex:
        steps[0] = steps[0] + 1j * RANDOM.normal(size=a.shape)
        steps.append(1j * steps[2])
    return steps


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("f", "a"), UNDEFINED, ids=names(UNDEFINED))
def test_a_derivative_through_vectors_of_equal_values_is_nan(f, a, dtype):
    a = a.astype(dtype)
    assert np.isnan(srcdiff.grad(f, backend="python")(a)).any()
    assert np.isnan(along(f, a, directions(a, dtype)[0]))


@pytest.mark.parametrize("f", [rebuilt_by_eigh, rebuilt_by_eig, rebuilt_by_svd])
@pytest.mark.parametrize("dtype", [float, complex])
def test_tangents_of_vectors_are_nan_where_couplings_are_opposite(f, dtype):
    a = np.eye(2, dtype=dtype)
    for step in directions(a, dtype):
        assert np.isnan(along(f, a, step))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("f", "a"), DEFINED, ids=names(DEFINED))
def test_other_derivatives_are_right_where_values_are_equal(f, a, dtype):
    a = a.astype(dtype)
    gradient = srcdiff.grad(f, backend="python")(a)
    assert gradient.dtype == a.dtype
    for step in directions(a, dtype):
        expected = pytest.approx(difference(f, a, step), rel=1e-6, abs=1e-6)
        assert np.sum((np.conj(gradient) * step).real) == expected
        assert along(f, a, step) == expected


@pytest.mark.parametrize(
    "f", [cubes_of_eigenvalues, cubes_of_any_eigenvalues, fourth_powers, nuclear_norm, polar_factor]
)
def test_second_derivatives_are_nan_or_right_where_values_are_equal(f):
    product = srcdiff.hvp(f, backend="python")
    gradient = srcdiff.grad(f, backend="python")
    rotating = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.isnan(product(PAIR, rotating)).any()
    straight = np.diag([0.5, -1.0, 2.0])  # the vectors stay as they are
    at = [gradient(PAIR + h * straight) for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(product(PAIR, straight), (at[0] - at[1]) / 2e-4, atol=1e-6)
    assert np.isnan(srcdiff.hessian(f, backend="python")(PAIR)).any()


def test_second_derivatives_through_a_residual_of_zero_are_nan():
    def residual(a):
        values, vectors = np.linalg.eigh(a)
        return 0.5 * np.sum(((vectors * values**2) @ vectors.T - PAIR @ PAIR) ** 2)

    np.testing.assert_array_equal(srcdiff.grad(residual, backend="python")(PAIR), np.zeros((3, 3)))
    step = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.isnan(srcdiff.hvp(residual, backend="python")(PAIR, step)).any()

    def of_gradient(a):
        return np.sum(srcdiff.grad(residual)(a))

    assert np.isnan(srcdiff.grad(of_gradient, backend="python")(PAIR)).any()


def test_each_matrix_of_a_stack_stands_for_itself():
    def rebuilt(a):
        values, vectors = np.linalg.eigh(a)
        return np.sum(((vectors * values[:, None, :] ** 2) @ np.transpose(vectors, (0, 2, 1))) ** 2)

    gradient = srcdiff.grad(rebuilt, backend="python")(np.stack((PAIR, np.diag([1.0, 2.0, 3.0]))))
    assert np.isnan(gradient[0]).any()
    assert not np.isnan(gradient[1]).any()
    of_second = srcdiff.grad(lambda a: weighted(np.linalg.eigh(a)[1][1]), backend="python")
    np.testing.assert_array_equal(of_second(np.stack((PAIR, np.diag([1.0, 2.0, 3.0]))))[0], np.zeros((3, 3)))


@pytest.mark.parametrize("f", [rebuilt_by_eigh, rebuilt_by_svd, polar_factor, nuclear_norm])
def test_single_precision_and_empty_matrices(f):
    gradient = srcdiff.grad(f, backend="python")
    single = gradient(PAIR.astype(np.float32))
    assert single.dtype == np.float32
    assert np.isnan(single).any() == np.isnan(gradient(PAIR)).any()
    assert gradient(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("f", [rebuilt_by_eigh, rebuilt_by_eig, rebuilt_by_svd, polar_factor])
def test_compiled_code_does_the_same(f):
    expected = srcdiff.grad(f, backend="python")(PAIR)
    np.testing.assert_allclose(srcdiff.grad(f)(PAIR), expected, rtol=1e-10, atol=1e-14)
    step = PAIR[::-1].copy()
    np.testing.assert_allclose(along(f, PAIR, step, "numba"), along(f, PAIR, step), rtol=1e-10)
