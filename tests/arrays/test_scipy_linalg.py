"""`scipy.linalg` inside differentiated functions, against SciPy itself and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

import srcdiff

RANDOM = np.random.default_rng(3)
A = RANDOM.normal(size=(4, 4)) + 3.0 * np.eye(4)
S = A @ A.T + np.eye(4)
B = RANDOM.normal(size=(4, 4))
V = RANDOM.normal(size=4)
M = RANDOM.normal(size=(4, 3))
ONE = np.eye(2)
TALL = np.array([[1.0, 2.0], [0.2, -1.0], [-2.0, 0.5]])
AB = RANDOM.normal(size=(4, 6)) + np.array([[0.0], [0.0], [4.0], [0.0]])
POSITIVE_BAND = np.array([[0.3, 0.2, 0.5, 0.1, 0.4], [3.0, 4.0, 5.0, 4.0, 3.0]])


def through_lu(a, b):
    factors = sl.lu_factor(a)
    return np.sum(sl.lu_solve(factors, b) ** 2) + np.sum(sl.lu_solve(factors, b * b, trans=1))


def all_of_lu(a):
    p, lower, upper = sl.lu(a)
    pl, _ = sl.lu(a, permute_l=True)
    return np.sum(p @ lower * upper.T) + np.sum(np.sin(pl) * upper)


def with_pivots(a):
    q, r, order = sl.qr(a, mode="economic", pivoting=True)
    return np.sum(np.sin(q)) + np.sum(r**3) + np.sum(order * np.arange(len(order)) * r[0])


def through_cholesky(a, b):
    c = sl.cho_factor(a, lower=True)
    x = sl.cho_solve(c, b)
    return np.sum(x * b) + np.sum(sl.cho_solve(sl.cho_factor(a), x))


def generalised(a, b):
    w, v = sl.eigh(a, b)
    return np.sum(w**2) + np.sum(v**2 * w)


def lqr(a, b, q):
    return np.sum(sl.solve_continuous_are(a, b, q @ q.T + np.eye(4), np.eye(3)) ** 2)


PROGRAMS = {
    "solve": (lambda a, b: np.sum(sl.solve(a, b) ** 2), (A, V)),
    "solve_transposed": (lambda a, b: np.sum(sl.solve(a, b, transposed=True) ** 2), (A, V)),
    "solve_symmetric": (lambda a, b: np.sum(sl.solve(a, b, assume_a="sym") ** 2), (S, M)),
    "solve_positive": (lambda a, b: np.sum(sl.solve(a, b, assume_a="pos") ** 2), (S, M)),
    "solve_positive_lower": (lambda a, b: np.sum(sl.solve(a, b, lower=True, assume_a="pos") ** 2), (S, V)),
    "solve_tridiagonal": (lambda a, b: np.sum(sl.solve(np.triu(np.tril(a, 1), -1), b, assume_a="tridiagonal")), (A, V)),
    "triangular_upper": (lambda a, b: np.sum(sl.solve_triangular(a, b) ** 2), (A, V)),
    "triangular_lower": (lambda a, b: np.sum(sl.solve_triangular(a, b, lower=True) ** 2), (A, M)),
    "triangular_transposed": (lambda a, b: np.sum(sl.solve_triangular(a, b, trans="T", lower=True) ** 2), (A, M)),
    "triangular_upper_transposed": (lambda a, b: np.sum(sl.solve_triangular(a, b, 1) ** 2), (A, V)),
    "triangular_unit": (lambda a, b: np.sum(sl.solve_triangular(a, b, unit_diagonal=True) ** 2), (0.3 * A, V)),
    "cholesky": (lambda a: np.sum(np.sin(sl.cholesky(a))) + np.sum(sl.cholesky(a, lower=True) ** 3), (S,)),
    "cho_solve": (through_cholesky, (S, V)),
    "lu_solve": (through_lu, (A, V)),
    "lu_solve_matrix": (through_lu, (A, M)),
    "lu": (all_of_lu, (RANDOM.normal(size=(5, 5)),)),
    "lu_blocks": (all_of_lu, (RANDOM.normal(size=(3, 3)),)),
    "qr_pivots": (with_pivots, (A,)),
    "qr_pivots_tall": (with_pivots, (TALL,)),
    "qr_pivots_wide": (with_pivots, (np.ascontiguousarray(TALL.T),)),
    "qr": (lambda a: np.sum(np.sin(sl.qr(a, mode="economic")[0])) + np.sum(sl.qr(a, mode="economic")[1] ** 2), (M,)),
    "qr_square": (lambda a: np.sum(np.sin(sl.qr(a)[0])) + np.sum(sl.qr(a, mode="r")[0] ** 3), (A,)),
    "svd": (lambda a: np.sum(sl.svdvals(a) ** 3) + np.sum(sl.svd(a, full_matrices=False)[0] ** 4), (M,)),
    "eigh": (lambda a: np.sum(sl.eigvalsh(a) ** 2 * np.arange(4.0)) + sl.eigh(a, subset_by_index=[1, 2])[0][0], (S,)),
    "eigh_generalised": (generalised, (A + A.T, S)),
    "det": (lambda a: sl.det(a) + sl.norm(a) + sl.norm(a, 1), (A,)),
    "inv": (lambda a: np.sum(sl.inv(a) ** 2) + np.sum(sl.pinv(a) ** 3), (A,)),
    "expm": (lambda a: np.sum(np.sin(sl.expm(a))), (0.5 * A,)),
    "expm_scaled": (lambda a: np.sum(sl.expm(a) ** 2), (-3.0 * S,)),
    "expm_stacked": (lambda a: np.sum(sl.expm(a) ** 2), (0.2 * RANDOM.normal(size=(2, 3, 3)),)),
    "sqrtm": (lambda a: np.sum(np.sin(sl.sqrtm(a))), (A,)),
    "sqrtm_stiff": (lambda a: np.sum(np.sin(sl.sqrtm(a))), (S @ S,)),
    "logm": (lambda a: np.sum(np.sin(sl.logm(a))), (A,)),
    "block_diag": (lambda a, b: np.sum(sl.block_diag(a, b, 2.0) ** 2) + sl.block_diag(a, b)[4, 4], (A, M)),
    "toeplitz": (lambda c, r: np.sum(sl.toeplitz(c, r) ** 2) + np.sum(sl.toeplitz(c) ** 3), (V, RANDOM.normal(size=3))),
    "circulant_hankel": (lambda c, r: np.sum(sl.circulant(c) ** 3 + sl.hankel(c) + sl.hankel(c, r) ** 2), (V, 2.0 * V)),
    "solve_banded": (lambda ab, b: np.sum(sl.solve_banded((1, 2), ab, b) ** 2), (AB, RANDOM.normal(size=6))),
    "solve_banded_matrix": (
        lambda ab, b: np.sum(sl.solve_banded((2, 1), ab, b) ** 2),
        (AB, RANDOM.normal(size=(6, 2))),
    ),
    "solveh_banded": (lambda ab, b: np.sum(sl.solveh_banded(ab, b) ** 2), (POSITIVE_BAND, np.arange(5.0))),
    "sylvester": (lambda a, b, q: np.sum(sl.solve_sylvester(a, b, q) ** 2), (A, S[:3, :3], M)),
    "lyapunov": (lambda a, q: np.sum(sl.solve_continuous_lyapunov(a, q) ** 2), (A, B)),
    "discrete_lyapunov": (lambda a, q: np.sum(sl.solve_discrete_lyapunov(a, q) ** 2), (0.1 * A, B)),
    "riccati": (lqr, (A, M, B)),
    "riccati_of_constants": (lambda a: np.sum(sl.solve_continuous_are(a, ONE, ONE, ONE) ** 2), (A[:2, :2],)),
}
ON_NUMBA = ("triangular_upper", "cho_solve", "lu_solve", "expm", "solve_banded", "sylvester", "riccati", "logm")


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_in_python(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments, order=2, backend="python")


@pytest.mark.numba
@pytest.mark.parametrize("name", ON_NUMBA)
def test_derivatives_compiled(name):
    function, arguments = PROGRAMS[name]
    expected = srcdiff.grad(function, backend="python")(*arguments)
    np.testing.assert_allclose(
        srcdiff.grad(function)(*arguments), expected, rtol=1e-9, atol=1e-11
    )  # rounding errors differ


@pytest.mark.parametrize(
    "name", ["triangular_lower", "lu_solve", "solve_banded", "sylvester", "sqrtm", "logm", "riccati"]
)
def test_second_derivatives(name):
    function, arguments = PROGRAMS[name]

    def slope(*given):
        return np.log(np.sum(srcdiff.grad(function)(*given) ** 2))

    srcdiff.check(slope, *arguments, backend="python")


def test_triangles_stay_triangles_in_the_adjoint():
    derivative = srcdiff.grad(lambda a, b: np.sum(sl.solve_triangular(a, b, lower=True)), backend="python")
    derivative(A, V)
    text = derivative.source
    assert "solve_lower_transposed_vector" in text
    assert "np.linalg.solve" not in text


def test_factors_agree_with_lapack_in_blocks():
    a = RANDOM.normal(size=(75, 75))
    found = srcdiff.differentiable(lambda a: sl.lu_factor(a), backend="python")(a)
    factors, pivots = sl.lu_factor(a)
    np.testing.assert_allclose(found[0], factors, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(found[1], pivots)


def test_single_precision_stays():
    a = A.astype(np.float32)
    found = srcdiff.grad(lambda a, b: np.sum(sl.lu_solve(sl.lu_factor(a), b)), backend="python")(
        a, V.astype(np.float32)
    )
    assert found.dtype == np.float32


def test_options_that_are_not_supported_are_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="the mode 'raw'"):
        srcdiff.grad(lambda a: np.sum(sl.qr(a, mode="raw")[0]), backend="python")(A)


@pytest.mark.parametrize("point", [np.eye(3), np.diag([2.0, 2.0, 3.0])])
def test_the_rotation_of_a_polar_decomposition_has_a_derivative_where_singular_values_are_equal(point):
    weights = np.arange(9.0).reshape(3, 3) ** 2

    def rotation(a):
        u, _, vt = sl.svd(a)
        return np.sum(weights * (u @ vt))

    gradient = srcdiff.grad(rotation, backend="python")(point)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-5
        expected = (rotation(point + step) - rotation(point - step)) / 2e-5
        assert gradient[place] == pytest.approx(expected, rel=1e-7, abs=1e-7)
        assert srcdiff.jvp(rotation, (point,), (step,), backend="python")[1] == pytest.approx(
            expected * 1e-5, abs=1e-12
        )


def test_factors_of_matrices_that_are_not_square_are_refused():
    with pytest.raises(NotImplementedError, match="not square"):
        srcdiff.grad(lambda a: np.sum(sl.lu(a)[1]), backend="python")(TALL)


def test_the_advice_for_factors_of_matrices_that_are_not_square_works():
    def factors(a):
        p, lower, _ = sl.lu(a[:, : len(a)])
        return p, lower, sl.solve_triangular(lower, p.T @ a, lower=True)

    wide = np.ascontiguousarray(TALL.T)
    for found, wanted in zip(srcdiff.differentiable(factors, backend="python")(wide), sl.lu(wide), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-14)
    srcdiff.check(lambda a: np.sum(factors(a)[1] ** 2) + np.sum(factors(a)[2] ** 3), wide, backend="python")
    with pytest.raises(NotImplementedError, match=r"write q, r = qr\(a, mode='economic'\)"):
        srcdiff.grad(lambda a: np.sum(sl.qr(a)[1]), backend="python")(TALL)


@pytest.mark.parametrize(("function", "name"), [(sl.sqrtm, "square root"), (sl.logm, "logarithm")])
def test_functions_of_matrices_that_are_not_real_are_refused(function, name):
    for a in (-np.eye(2), -np.eye(3), np.diag([1.0, -2.0]), np.zeros((2, 2)), np.array([[0.0, 1.0], [0.0, 0.0]])):
        with pytest.raises(np.linalg.LinAlgError, match=f"singular, or its {name} is not real"):
            srcdiff.grad(lambda a: np.sum(function(a)), backend="python")(a)


def test_a_triangle_with_a_zero_on_the_diagonal_raises():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        srcdiff.grad(lambda a: np.sum(sl.solve_triangular(a, np.ones(2))), backend="python")(
            np.triu([[1.0, 2], [3, 0]])
        )
