"""Decompositions and eigenvalues of complex matrices, roots of complex polynomials: against differences.

The differences are of LAPACK's results, so they also check that the phases of vectors follow its choice.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import srcdiff
from srcdiff import DifferentiationError

random = np.random.default_rng(1)
PROGRAMS = []


def planar(*shape):
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def prog(*arguments):
    def add(function):
        PROGRAMS.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return add


WEIGHTS = planar(6, 6)


def both(a):
    """A number that depends on the absolute values and the phases of the elements."""
    return np.sum((a * WEIGHTS[: a.shape[0], : a.shape[1]]).real) + np.sum(np.abs(a) ** 3)


@prog(planar(4, 4))
def cholesky(a):
    return both(np.linalg.cholesky(a + 6 * np.eye(4)))


@prog(planar(3, 3), planar(3))
def cholesky_and_solve(a, b):
    factor = np.linalg.cholesky(a + 6 * np.eye(3))
    y = np.linalg.solve(factor, b)
    turned = np.linalg.solve(factor.T, y) + np.linalg.solve(factor.conj().T, y)
    return np.sum(np.abs(y) ** 3) + np.sum(np.abs(turned) ** 3)


@prog(planar(3, 3))
def upper_cholesky(a):
    return both(np.conj(scipy.linalg.cholesky(a + 6 * np.eye(3))))


@prog(planar(2, 2), planar(2))
def cholesky_of_scalars(a, b):
    matrix = np.zeros((2, 2), complex)
    matrix[0, 0] = 2.0 + abs(a[0, 0])
    matrix[1, 1] = 3.0 + abs(b[0]) ** 2
    matrix[1, 0] = 0.3 * a[1, 0] * b[1]
    factor = np.linalg.cholesky(matrix)
    return np.sum(np.abs(np.linalg.solve(factor, b)) ** 3) + factor[1, 0].imag


@prog(planar(4, 4))
def hermitian_vectors(a):
    values, vectors = np.linalg.eigh(a)
    return np.sum(values**2 * np.arange(4)) + both(vectors)


@prog(planar(4, 4))
def hermitian_values(a):
    return np.sum(np.linalg.eigvalsh(a) ** 3 * np.arange(4)) + np.linalg.eigvalsh(a, "U")[0]


@prog(planar(3, 2))
def vectors_whose_first_element_is_zero(a):
    block = np.zeros((3, 3), complex)
    block[1:, 1:] = a[1:] @ a[1:].conj().T
    values, vectors = np.linalg.eigh(block + np.diag(np.array([-1.0, 0.0, 0.0])))
    return np.sum(np.abs(vectors) ** 4 * np.arange(3)) + np.sum(values * np.arange(3))


@prog(planar(4, 4))
def vectors(a):
    values, vectors = np.linalg.eig(a)
    return both(vectors) + np.sum((values * WEIGHTS[0, :4]).real)


@prog(planar(4, 4), random.normal(size=(4, 4)))
def values(a, x):
    of_real = np.linalg.eigvals(x.astype(complex))
    return np.sum(np.abs(np.linalg.eigvals(a)) ** 3) + np.max(of_real.real) + np.max(np.abs(of_real))


@prog(planar(4, 3))
def singular_vectors_of_columns(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return both(u) + 2 * both(vh) + np.sum(s**3)


@prog(planar(3, 4))
def singular_vectors_of_rows(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return both(u) + 2 * both(vh) + np.sum(s**3)


@prog(planar(4, 2))
def all_singular_vectors(a):
    u, s, vh = np.linalg.svd(a)
    return both(u[:, 2:] @ u[:, 2:].conj().T) + both(vh) + np.sum(s**3)


@prog(planar(4, 3))
def singular_values(a):
    norms = np.linalg.norm(a, 2) + np.linalg.norm(a, "nuc") + np.linalg.cond(a)
    return np.sum(np.linalg.svd(a, compute_uv=False) ** 3) + norms


@prog(planar(3, 3), planar(5, 3), planar(3, 5))
def orthogonal_triangular(a, b, c):
    total = 0.0
    for matrix in (a, b, c):
        q, r = np.linalg.qr(matrix)
        total += both(q) + 2 * both(r)
    return total


@prog(planar(3, 4))
def pseudo_inverse(a):
    return both(np.linalg.pinv(a))


@prog(planar(5, 3), planar(5, 2))
def least_squares(a, b):
    x, rest, _, s = np.linalg.lstsq(a, b, rcond=None)
    return both(x) + rest.sum() + (s**2).sum()


@prog(planar(5))
def roots(p):
    return np.sum(np.abs(np.roots(p)) ** 3) + np.sum(np.roots(p) * WEIGHTS[0, :4]).real


@prog(np.poly([1.0, 2.0, 3.5]))
def real_roots(p):
    return np.sum(np.roots(p) ** 3 * np.arange(3))


@prog(planar(4), planar(3, 3), random.normal(size=(3, 3)))
def polynomials(z, a, x):
    of_places = np.sum((np.poly(z) * WEIGHTS[0, :5]).real)
    return of_places + np.sum((np.poly(a) * WEIGHTS[0, :4]).real) + np.sum(np.poly(x) * np.arange(4))


@prog(planar(2, 3, 3))
def stacks(a):
    values, vectors = np.linalg.eigh(a)
    u, s, _ = np.linalg.svd(a)
    q, _ = np.linalg.qr(a)
    return np.sum(values**2 * np.arange(3)) + both(vectors[0]) + both(u[1]) + np.sum(s**3) + both(q[1])


@prog(planar(3, 3), planar(3))
def functions_of_scipy(a, b):
    h = a + 6 * np.eye(3)
    triangles = scipy.linalg.solve_triangular(a, b, lower=True, trans="C") + scipy.linalg.solve_triangular(a, b)
    factors = scipy.linalg.cho_solve(scipy.linalg.cho_factor(h), b) + scipy.linalg.cho_solve(
        scipy.linalg.cho_factor(h, lower=True), b
    )
    solved = scipy.linalg.solve(h, b, assume_a="pos") + scipy.linalg.solve(h, b, assume_a="her")
    return np.sum(np.abs(triangles + factors + solved) ** 3) + both(scipy.linalg.expm(a) + scipy.linalg.toeplitz(b))


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS)
def test_derivatives_agree_with_differences(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python")


SECOND = (
    *("cholesky", "cholesky_and_solve", "hermitian_vectors", "vectors", "singular_vectors_of_columns"),
    *("singular_vectors_of_rows", "pseudo_inverse", "roots"),
)


@pytest.mark.parametrize(("function", "arguments"), [p for p in PROGRAMS if p.id in SECOND])
def test_second_derivatives_agree(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python", order=2)


def test_compiled_gradients_are_those_of_the_source():
    a = planar(4, 4)
    expected = srcdiff.grad(hermitian_vectors, backend="python")(a)
    np.testing.assert_allclose(srcdiff.grad(hermitian_vectors)(a), expected, rtol=1e-10, atol=1e-10)


def test_phases_of_other_vectors_of_hermitian_matrices_are_refused():
    def upper(a):
        return np.abs(np.linalg.eigh(a, "U")[1]).sum()

    with pytest.raises(DifferentiationError, match="upper triangle"):
        srcdiff.grad(upper, backend="python")(planar(3, 3))


def test_order_is_that_of_numpy_with_equal_parts_and_nan():
    nan = np.nan
    pairs = ((1, 2), (0.5, 3), (1, -1), (nan, 1), (0.1, nan), (nan, nan), (0.5, -2), (-2, nan), (nan, -1))
    z = np.array([complex(*pair) for pair in pairs])
    ordered = srcdiff.differentiable(lambda z: (np.sort(z), np.argsort(z)), backend="python")
    for found, expected in zip(ordered(z), (np.sort(z), np.argsort(z, kind="stable")), strict=True):
        np.testing.assert_array_equal(found, expected)
