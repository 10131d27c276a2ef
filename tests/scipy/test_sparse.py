"""`scipy.sparse`: arrays as arguments, from outside and made inside, their methods, and solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

import srcdiff

RANDOM = np.random.default_rng(3)
N = 5
DENSE = RANDOM.normal(size=(N, N)) * (RANDOM.random((N, N)) < 0.5) + 4.0 * np.eye(N)
ROWS, COLUMNS = sparse.csr_array(DENSE), sparse.csc_array(DENSE)
WIDE = sparse.csr_array(DENSE[:, :3])
B, W, TWO = RANDOM.normal(size=N), RANDOM.normal(size=N), RANDOM.normal(size=(N, 2))
NEAR = sparse.csc_array(np.linalg.inv(DENSE) + 0.01)
FOUR, SHORT = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0])


def of_diagonals(d: Any, x: Any) -> Any:
    return np.sum((sparse.diags([d, d[:-1] * x[0], 2.0], [0, -1, 2], shape=(4, 4)).tocsr() @ x[:4]) ** 2)


def of_parts(d: Any, x: Any) -> Any:
    return np.sum((sparse.csr_array((d, ([0, 1, 1, 1], [0, 1, 2, 1])), shape=(3, 5)) @ x) ** 2)


def of_columns(d: Any, x: Any) -> Any:
    return np.sum((sparse.csc_matrix((d, np.array([0, 1, 1]), np.array([0, 1, 2, 3, 3, 3])), shape=(3, 5)) @ x) ** 2)


def jacobi(a: Any) -> Any:
    return sparse.diags([1.0 / a.diagonal()], [0], shape=(5, 5)).tocsr()


def of_unit_matrices(d: Any, x: Any) -> Any:
    return np.sum(((sparse.eye(5, format="csr") * d) @ x) ** 2) + np.sum(sparse.eye_array(5, k=1) @ x)


CASES: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "rows times vector": (lambda a, x: np.sum((a @ x) ** 2), ROWS, B),
    "columns times matrix": (lambda a, x: np.sum((a @ x) ** 2), COLUMNS, TWO),
    "coordinates": (lambda a, x: np.sum((a @ x) ** 2) + np.sum((x.T @ a) ** 2), ROWS.tocoo(), TWO),
    "matrix from the left": (lambda a, x: np.sum((x @ a) ** 2), WIDE, B),
    "transposed": (lambda a, x: np.sum((a.T @ x) ** 2) + np.sum(a.transpose().dot(x)), WIDE, B),
    "star of a matrix": (lambda a, x: np.sum((a * x) ** 2) + np.sum(x * a), sparse.csr_matrix(DENSE), B),
    "scaled": (lambda a, x: np.sum(((2 * a * x[0] - a / x[1]) @ x) ** 2), ROWS, B),
    "same elements": (lambda a, x: np.sum(((a + a * 2 - a.multiply(a)) @ x) ** 2), COLUMNS, B),
    "dense factors": (lambda a, x: np.sum(a.multiply(a).multiply(x) @ x) + np.sum((a + x) ** 2), ROWS, B),
    "functions": (lambda a, x: np.sum((abs(a).power(2) + (-a).tanh()).data * 2) * x[0], ROWS, B),
    "sums": (lambda a, x: np.sum(a.sum(axis=0) * x) + np.sum(a.sum(1) * x**2) + a.sum() * x[0], ROWS, B),
    "single numbers": (lambda a, x: a.mean() * x[0] + a.trace() * x[1] + a[1, 1] ** 2 + a[-1, 0], COLUMNS, B),
    "diagonal": (lambda a, x: np.sum(a.diagonal() * x) + np.sum(a.diagonal(1) ** 2), ROWS, B),
    "dense": (lambda a, x: np.sum(np.sin(a.toarray() * x)), ROWS.tocoo(), B),
    "parts": (lambda a, x: np.sum(x[a.indices] * a.data**2) + a.nnz + a.indptr[1] + a.shape[0], ROWS, B),
    "formats": (lambda a, x: np.sum(a.tocsc().data * np.arange(a.nnz)) * np.sum(a.tocoo().tocsr() @ x), ROWS, B),
    "product by rows": (
        lambda a, x: np.sum((a @ a).data * np.arange((a @ a).nnz)) + np.sum((a @ (a @ x)) ** 2),
        ROWS,
        B,
    ),
    "product by columns": (lambda a, x: np.sum((a @ WIDE).data ** 2 * (a @ WIDE).indices) * x[0], COLUMNS, B),
    "product with its transpose": (lambda a, x: np.sum((a.T @ (a * x[0])).data ** 2), ROWS, B),
    "sum of coordinates": (
        lambda a, x: np.sum((a + a.tocsc() * x[0]).data ** 2) + np.sum((a - 2 * a).multiply(a).data ** 3),
        ROWS.tocoo(),
        B,
    ),
    "product of coordinates": (lambda a, x: np.sum((a @ a).toarray() ** 2) * x[0], ROWS.tocoo(), B),
    "product of matrices": (lambda a, x: np.sum((a * a).data ** 2) * x[0], sparse.csr_matrix(DENSE), B),
    "rows": (lambda a, x: np.sum(a[1:4].data ** 2) * x[0] + np.sum((a[-2:] @ a).data) + np.sum(a[:2] @ x), ROWS, B),
    "spsolve": (lambda a, b: np.sum(linalg.spsolve(a, b) * W), ROWS, B),
    "spsolve of columns": (lambda a, b: np.sum(linalg.spsolve(a, b) ** 2), COLUMNS, TWO),
    "splu": (lambda a, b: np.sum(linalg.splu(a).solve(b) ** 2) + np.sum(linalg.splu(a).solve(b, "T")), COLUMNS, B),
    "factorized": (lambda a, b: np.sum(linalg.factorized(a)(b) ** 2), COLUMNS, B),
    "triangle": (lambda a, b: np.sum(linalg.spsolve_triangular(a, b) ** 2), sparse.csr_array(np.tril(DENSE)), B),
    "cg": (lambda a, b: np.sum(linalg.cg(a, b, rtol=1e-13)[0] ** 2), sparse.csr_array(DENSE + DENSE.T), B),
    "gmres": (lambda a, b: np.sum(linalg.gmres(a, b, rtol=1e-13, restart=3)[0] ** 2), COLUMNS, B),
    "bicgstab": (lambda a, b: np.sum(linalg.bicgstab(a, b, rtol=1e-13)[0] ** 2), ROWS, B),
    "cg with M": (
        lambda a, b: np.sum(linalg.cg(a, b, rtol=1e-13, M=jacobi(a))[0] ** 2),
        *(sparse.csr_array(DENSE + DENSE.T), B),
    ),
    "gmres with M": (lambda a, b: np.sum(linalg.gmres(a, b, x0=b, rtol=1e-13, M=NEAR)[0] ** 2), COLUMNS, B),
    "bicgstab with M": (lambda a, b: np.sum(linalg.bicgstab(a, b, rtol=1e-13, M=NEAR * b[0])[0] ** 2), ROWS, B),
    "made of coordinates": (of_parts, FOUR, B),
    "made of columns": (of_columns, SHORT, B),
    "diags": (of_diagonals, FOUR, B),
    "spdiags": (lambda d, x: np.sum((sparse.spdiags(d, np.array([0, -1]), 4, 5) @ x) ** 2), TWO.T, B),
    "eye": (
        lambda d, x: np.sum(((sparse.eye(5, format="csr") * d) @ x) ** 2) + sum(sparse.eye_array(5, k=1) @ x),
        1.5,
        B,
    ),
}


def moved(a: Any, dots: Any, step: float) -> Any:
    """A perturbed argument. Only the elements of a sparse array change."""
    if not sparse.issparse(a):
        return a + step * dots
    found = a.copy()
    found.data = a.data + step * dots
    return found


def dots_of(a: Any) -> Any:
    return RANDOM.normal(size=np.shape(a.data if sparse.issparse(a) else a))


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_scipy(name):
    f, a, x = CASES[name]
    value, bars = srcdiff.value_and_grad(f, wrt=(0, 1), backend="python")(a, x)
    a_dot, x_dot = dots_of(a), dots_of(x)
    steps = [(1e-3, 2.0 / 3.0), (2e-3, -1.0 / 12.0)]
    sides = [[f(moved(a, a_dot, s * h), moved(x, x_dot, s * h)) for s in (1.0, -1.0)] for h, _ in steps]
    wanted = sum(w / 1e-3 * (above - below) for (above, below), (_, w) in zip(sides, steps, strict=True))
    np.testing.assert_allclose(value, f(a, x), rtol=1e-9)
    data_bar = bars[0].data if sparse.issparse(a) else bars[0]
    np.testing.assert_allclose(np.sum(data_bar * a_dot) + np.sum(bars[1] * x_dot), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["coordinates", "sums", "splu", "bicgstab", "diags", "product by columns"])
def test_both_modes_and_second_derivatives_agree(name):
    f, a, x = CASES[name]
    srcdiff.check(f, a, x, backend="python")


@pytest.mark.numba
@pytest.mark.parametrize("name", ["rows times vector", "spsolve"])
def test_compiled_code_does_the_same(name):
    f, a, x = CASES[name]
    g = srcdiff.grad(f, wrt=(0, 1))
    g(a, x)
    found = g(a, x)  # repeated calls have separate code
    assert type(found[0]) is type(a)
    wanted = srcdiff.grad(f, wrt=(0, 1), backend="python")(a, x)
    np.testing.assert_allclose(found[0].data, wanted[0].data, rtol=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "csc_matrix", "coo_array", "coo_matrix"])
def test_a_gradient_has_the_class_and_the_elements_of_its_argument(kind):
    a = getattr(sparse, kind)(DENSE[:, :3])
    bar = srcdiff.grad(lambda a, x: np.sum((a @ x) ** 2), backend="python")(a, SHORT)
    dense = srcdiff.grad(lambda a, x: np.sum((a @ x) ** 2), backend="python")(DENSE[:, :3], SHORT)
    assert type(bar) is type(a)
    assert bar.shape == a.shape
    np.testing.assert_allclose(bar.toarray(), dense * (DENSE[:, :3] != 0.0), rtol=1e-12)
    doubled = srcdiff.differentiable(lambda a: a * 2.0, backend="python")(a)
    assert type(doubled) is type(a)
    np.testing.assert_array_equal(doubled.toarray(), 2.0 * a.toarray())


def test_an_array_outside_is_read_at_each_call():
    a = sparse.csr_array(DENSE)

    def f(x):
        return np.sum((a @ x) ** 2)

    g = srcdiff.grad(f, backend="python")
    np.testing.assert_allclose(g(B), 2.0 * DENSE.T @ (DENSE @ B))
    a.data *= 2.0
    np.testing.assert_allclose(g(B), 8.0 * DENSE.T @ (DENSE @ B))
    a = sparse.csc_array(DENSE)
    np.testing.assert_allclose(g(B), 2.0 * DENSE.T @ (DENSE @ B))


def test_elements_of_the_same_place_are_added():
    twice = sparse.coo_array((FOUR, ([0, 1, 1, 0], [1, 0, 0, 2])), shape=(2, 3))

    def f(a, x):
        return np.sum((a.tocsr() @ x) ** 2) + np.sum(a.toarray() ** 3)

    np.testing.assert_allclose(srcdiff.differentiable(f, backend="python")(twice, SHORT), f(twice, SHORT))
    srcdiff.check(f, twice, SHORT, backend="python")


def test_functions_of_elements_that_are_stored_twice_are_refused():
    twice = sparse.csr_array((FOUR, [1, 1, 0, 2], [0, 2, 4]), shape=(2, 3))
    for kept in (twice, twice.tocoo()):
        for f in (lambda a: np.sum(a.power(2).data), lambda a: np.sum(abs(a).data), lambda a: np.sum(a.tanh().data)):
            with pytest.raises(ValueError, match="stored more than once"):
                srcdiff.grad(f, backend="python")(kept)


def test_triangles_with_a_diagonal_that_is_stored_twice_or_missing():
    twice = sparse.csr_array((FOUR, [0, 0, 0, 1], [0, 2, 4]), shape=(2, 2))

    def f(a, b):
        return np.sum(linalg.spsolve_triangular(a, b) ** 2)

    assert srcdiff.differentiable(f, backend="python")(twice, B[:2]) == pytest.approx(f(twice, B[:2]))
    srcdiff.check(f, twice.copy(), B[:2], backend="python")
    with pytest.raises(np.linalg.LinAlgError, match="zero entry on diagonal"):
        srcdiff.grad(f, backend="python")(sparse.csr_array(([1.0, 2.0], [0, 0], [0, 1, 2]), shape=(2, 2)), B[:2])


def test_empty_arrays():
    empty = sparse.csr_array((2, 3))
    bar = srcdiff.grad(lambda a, x: np.sum(a @ x) + np.sum(a.tocsc() @ x), wrt=(0, 1), backend="python")(empty, SHORT)
    assert bar[0].nnz == 0
    np.testing.assert_array_equal(bar[1], 0.0)


def test_second_derivatives_of_solves():
    def f(t, b):
        a = sparse.csr_array((ROWS.data * t, ROWS.indices, ROWS.indptr), shape=(N, N))
        return np.sum(linalg.spsolve(a, b * t[:N]) ** 3)

    def by_krylov(t, b):
        a = sparse.csr_array((ROWS.data * t, ROWS.indices, ROWS.indptr), shape=(N, N))
        return np.sum(linalg.gmres(a, b * t[:N], rtol=1e-13)[0] ** 3)

    def dense(t, b):
        a = np.zeros((N, N))
        for i in range(N):
            for k in range(ROWS.indptr[i], ROWS.indptr[i + 1]):
                a[i, ROWS.indices[k]] += ROWS.data[k] * t[k]
        return np.sum(np.linalg.solve(a, b * t[:N]) ** 3)

    t = 1.0 + 0.1 * RANDOM.normal(size=ROWS.nnz)
    wanted = srcdiff.hessian(dense, backend="python")(t, B)
    for of in (f, by_krylov):
        np.testing.assert_allclose(srcdiff.hessian(of, backend="python")(t, B), wanted, atol=1e-9)


def test_single_precision_stays():
    a, x = sparse.csr_array(DENSE.astype(np.float32)), B.astype(np.float32)
    bar = srcdiff.grad(lambda a, x: np.sum((a @ x) ** 2), backend="python")(a, x)
    assert bar.dtype == np.float32
    assert srcdiff.differentiable(lambda a, x: linalg.spsolve(a, x), backend="python")(a, x).dtype == np.float32


def test_what_does_not_fit_raises():
    def f(a, b):
        return np.sum((a + b).data)

    other = sparse.csr_array(DENSE + np.eye(N, k=2))
    with pytest.raises(ValueError, match="same elements"):
        srcdiff.grad(f, backend="python")(ROWS, other)
    with pytest.raises(ValueError, match="dimension mismatch"):
        srcdiff.grad(lambda a, x: np.sum(a @ x), backend="python")(ROWS, SHORT)
    with pytest.raises(ValueError, match="same elements as its value"):
        srcdiff.jvp(lambda a: np.sum(a.data), (ROWS,), (other,), backend="python")
    with pytest.raises(RuntimeError, match="singular"):
        srcdiff.grad(lambda a, x: np.sum(linalg.spsolve(a, x)), backend="python")(ROWS * 0.0, B)
    with pytest.raises(RuntimeError, match="did not converge"):
        srcdiff.grad(lambda a, x: np.sum(linalg.cg(a, x, rtol=1e-13, maxiter=1)[0]), backend="python")(ROWS, B)


REFUSED = {
    "a dense array": (lambda x: np.sum(sparse.csr_array(np.outer(x, x)) @ x), "made of this"),
    "a row": (lambda x: np.sum((ROWS * x[0])[1].data), "index of a sparse array"),
    "every second row": (lambda x: np.sum((ROWS * x[0])[::2].data), "with a step"),
    "a slice of columns": (lambda x: np.sum((COLUMNS * x[0])[1:].data), "compressed by rows"),
    "complex": (lambda x: np.sum(np.abs(linalg.spsolve(ROWS, x * 1j))), "complex equations"),
    "quotient": (lambda x: np.sum((ROWS / x).data), "divided by an array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    f, message = REFUSED[name]
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(f, backend="python")(B)


def test_factorisations_are_used_again():
    from srcdiff.library import sparse_calls

    sparse_calls.forget_factorisations()
    g = srcdiff.grad(lambda a, b: np.sum(linalg.spsolve(a, b) ** 2), backend="python")
    g(ROWS, B)
    g(ROWS, 2.0 * B)
    assert len(sparse_calls._factors) == 1
    ROWS.data[0] += 1.0
    try:
        first = g(ROWS, B)
    finally:
        ROWS.data[0] -= 1.0
    assert len(sparse_calls._factors) == 2
    assert not np.allclose(first.data, g(ROWS, B).data)


def test_jacobians_have_the_parts_that_move():
    blocks = srcdiff.jacobian(lambda a: a @ B, backend="python")(ROWS)
    expected = np.zeros((N, ROWS.nnz))
    for i in range(N):
        for k in range(ROWS.indptr[i], ROWS.indptr[i + 1]):
            expected[i, k] = B[ROWS.indices[k]]
    np.testing.assert_allclose(blocks["data"], expected)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_product_with_the_hessian_has_the_class_of_its_argument(kind):
    a, v = kind(DENSE), kind(DENSE) * 2.0
    product = srcdiff.hvp(lambda a: np.sum((a @ B) ** 2), backend="python")(a, v)
    assert type(product) is kind
    np.testing.assert_allclose(product.toarray(), np.outer(2.0 * (v @ B), B) * (DENSE != 0.0), rtol=1e-12)
    of_both, more = srcdiff.hvp(lambda t: np.sum((t["a"] @ t["x"]) ** 2), backend="python")(
        {"a": a, "x": B}, {"a": v, "x": 0.0 * B}
    ).values()
    assert type(of_both) is kind
    np.testing.assert_allclose(of_both.toarray(), product.toarray(), rtol=1e-12)
    np.testing.assert_allclose(more, 2.0 * (v.T @ (a @ B) + a.T @ (v @ B)), rtol=1e-12)


def test_a_tangent_has_the_class_and_the_elements_of_the_value():
    def f(a, x):
        return {"sum": a + a * x[0], "diagonals": sparse.diags([x, x[1:]], [0, 1]), "size": 3}

    value, tangent = srcdiff.jvp(f, (ROWS, B), (2.0 * ROWS, 3.0 * B), backend="python")
    assert type(tangent["sum"]) is type(value["sum"]) is sparse.csr_array
    np.testing.assert_allclose(tangent["sum"].toarray(), DENSE * (2.0 + 5.0 * B[0]), rtol=1e-12)
    np.testing.assert_allclose(tangent["diagonals"].toarray(), 3.0 * value["diagonals"].toarray(), rtol=1e-12)
    tangent["sum"].indices[:] = 0
    assert np.array_equal(value["sum"].indices, ROWS.indices)
