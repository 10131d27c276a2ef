"""`scipy.linalg.solve` and `inv` with every structure that SciPy takes, against SciPy and differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg as sl

import srcdiff

RANDOM = np.random.default_rng(5)
A = RANDOM.normal(size=(3, 3)) + 4.0 * np.eye(3)
B = A + 1j * RANDOM.normal(size=(3, 3))
V, M = RANDOM.normal(size=3), RANDOM.normal(size=(3, 2))
STRUCTURES = {
    None: lambda a: a,
    "gen": lambda a: a,
    "sym": lambda a: a + a.T,
    "her": lambda a: a + a.conj().T,
    "pos": lambda a: a @ a.conj().T + np.eye(3),
    "diagonal": lambda a: np.diag(np.diag(a)),
    "tridiagonal": lambda a: np.triu(np.tril(a, 1), -1),
    "banded": lambda a: np.triu(np.tril(a, 1)),
    "upper triangular": np.triu,
    "lower triangular": np.tril,
}
OPTIONS = list(itertools.product(STRUCTURES, (False, True), (False, True)))
STACKED = ("sym", "pos", "diagonal", "tridiagonal", "upper triangular", "lower triangular")


def program(structure, lower, transposed):
    def f(a, b):
        x = sl.solve(a, b, assume_a=structure, lower=lower, transposed=transposed)
        return np.sum(np.abs(x) ** 2) + 0.3 * np.sum((x * x).real)

    return f


@pytest.mark.parametrize(("structure", "lower", "transposed"), OPTIONS)
def test_values_and_derivatives(structure, lower, transposed):
    f, a = program(structure, lower, transposed), STRUCTURES[structure](A)
    for b in (V, M):
        assert srcdiff.differentiable(f, backend="python")(a, b) == pytest.approx(f(a, b), rel=1e-12)
        srcdiff.check(f, a, b, wrt=(0, 1), backend="python")


@pytest.mark.parametrize("structure", STRUCTURES)
def test_second_derivatives(structure):
    f, a, direction = program(structure, True, False), STRUCTURES[structure](A), np.cos(np.arange(9.0)).reshape(3, 3)
    gradient, h = srcdiff.grad(f, backend="python"), 1e-5
    expected = (gradient(a + h * direction, V) - gradient(a - h * direction, V)) / (2 * h)
    np.testing.assert_allclose(srcdiff.hvp(f, backend="python")(a, V, direction), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("structure", "lower"), list(itertools.product(STRUCTURES, (False, True))))
def test_of_complex_matrices(structure, lower):
    f, a = program(structure, lower, False), STRUCTURES[structure](B)
    assert srcdiff.differentiable(f, backend="python")(a, V + 0.2j) == pytest.approx(f(a, V + 0.2j), rel=1e-12)
    srcdiff.check(f, a, V + 0.2j, wrt=(0, 1), backend="python")


@pytest.mark.parametrize(("structure", "transposed"), list(itertools.product(STACKED, (False, True))))
def test_stacks_are_solved_one_by_one(structure, transposed):
    f = program(structure, True, transposed)
    a = np.stack([STRUCTURES[structure](A), STRUCTURES[structure](A.T + np.eye(3))])
    for b in (V, M, np.stack([M, 2.0 * M])):
        assert srcdiff.differentiable(f, backend="python")(a, b) == pytest.approx(f(a, b), rel=1e-12)
        srcdiff.check(f, a, b, wrt=(0, 1), backend="python")


@pytest.mark.parametrize("structure", ["sym", "her", "pos", "diagonal", "upper triangular", "lower triangular"])
def test_inverses(structure):
    def f(a):
        return np.sum(sl.inv(a, assume_a=structure, lower=True) ** 3)

    a = STRUCTURES[structure](A)
    assert srcdiff.differentiable(f, backend="python")(a) == pytest.approx(f(a), rel=1e-12)
    srcdiff.check(f, a, backend="python")


@pytest.mark.numba
def test_compiled():
    def f(a, b):
        x = sl.solve(a, b, assume_a="sym", lower=True, transposed=True) + sl.solve(a, b, assume_a="diagonal")
        return np.sum(x**2) + np.sum(sl.solve(np.stack((a, 2.0 * a)), b, assume_a="upper triangular") ** 3)

    value, bars = srcdiff.value_and_grad(f, wrt=(0, 1))(A, V)
    expected, wanted = srcdiff.value_and_grad(f, wrt=(0, 1), backend="python")(A, V)
    assert value == pytest.approx(expected, rel=1e-12)
    for bar, other in zip(bars, wanted, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-12)


@pytest.mark.parametrize("structure", ["gen", "sym", "diagonal", "tridiagonal", "upper triangular", "lower triangular"])
def test_singular_matrices_raise(structure):
    g = srcdiff.grad(program(structure, False, False), backend="python")
    with pytest.raises(np.linalg.LinAlgError):
        g(np.diag([1.0, 0.0, 2.0]), V)


def test_what_scipy_refuses_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="transposed"):
        srcdiff.grad(program("gen", False, True), backend="python")(B, V)
    with pytest.raises(srcdiff.DifferentiationError, match="assume_a"):
        srcdiff.grad(program("unknown", False, False), backend="python")(A, V)
    with pytest.raises(ValueError, match="not square"):
        srcdiff.grad(program("sym", False, False), backend="python")(np.ones((3, 4)), V)
