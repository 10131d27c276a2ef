"""Calls of BLAS and LAPACK whose arguments or results the program overwrites afterwards, and views as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.emit import support
from tests.arrays.comparison import BACKENDS, assert_close, assert_like_argument, assert_slopes, call, same, slopes
from tests.arrays.rows import NUMPY, Row, array, once, positive_definite, regular, row
from tests.numerical import clone
from tests.subset import every

BEFORE_NUMPY_2_5 = pytest.mark.skipif(NUMPY >= (2, 5), reason="NumPy 2.5 does it differently")
SINCE_NUMPY_2_5 = pytest.mark.skipif(NUMPY < (2, 5), reason="only NumPy 2.5 and later do so")


def argument_element(a, x):
    y = a @ x
    a[0, 0] = 5.0
    return np.sum(y * y)


def argument_scaled(a, x):
    y = a @ x
    a *= x
    return np.sum(y * y) + np.sum(a)


def vector_overwritten(a, x):
    y = a @ x
    x[:] = 0.0
    return np.sum(y * y) + np.sum(x)


def view_overwritten_through_base(a, x):
    y = a[1:, ::2] @ x[:2]
    a[2, 0] = x[0]
    x[1] = 7.0
    return np.sum(y * y) + a[2, 0]


def base_overwritten_through_view(a, x):
    b = a.T
    y = b @ x
    b[0, 1] = 2.0
    return np.sum(y * y) + np.sum(a)


def recurrence(w, x):
    w = w.copy()
    for _t in range(3):
        x = np.tanh(w @ x)
        w *= 0.5
    return np.sum(x)


def recurrence_on_argument(w, x):
    for _t in range(3):
        x = np.tanh(w @ x)
        w *= 0.5
    return np.sum(x) + np.sum(w)


def recurrence_in_place(w, x):
    x = x.copy()
    for _t in range(3):
        x[:] = np.tanh(w @ x)
    return np.sum(x * x)


def rows_in_turn(a, b):
    total = 0.0
    for k in range(3):
        y = a @ b[k]
        a[k] = y
        total += y @ y
    return total


def power_iteration(a, x):
    for _k in range(4):
        y = a @ x
        x = y / np.sqrt(y @ y)
    return x @ a @ x


def result_overwritten(a, b):
    c = a @ b
    c[0] *= 2.0
    c[1, 1] = b[0, 0]
    return np.sum(c * c)


def result_of_solve_overwritten(a, b):
    x = np.linalg.solve(a, b)
    x *= x
    x[0] = b[1]
    return np.sum(x)


def inverse_overwritten(a, w):
    b = np.linalg.inv(a)
    b[0, 0] = 0.0
    b += a
    return np.sum(b * w)


def cholesky_overwritten(a, w):
    factor = np.linalg.cholesky(a)
    for k in range(factor.shape[0]):
        factor[k, k] = np.log(factor[k, k])
    return np.sum(factor * w)


def eigenvectors_overwritten(a, w):
    values, vectors = np.linalg.eigh(a)
    vectors *= vectors
    values[0] = 0.0
    return np.sum(vectors * w) + np.sum(values)


def determinant_then_overwritten(a):
    d = np.linalg.det(a)
    a[0] = 0.0
    return d * d + np.sum(a)


def singular_vectors_overwritten(a, w):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    u *= u
    s[1] = 2.0 * s[0]
    vt[:] = vt**2
    return np.sum(u * w) + np.sum(s) + vt[0, 1]


def same_array_twice(a, w):
    b = a @ a
    a[0, 1] = 3.0
    return np.sum((b @ a) * w)


def halves_of_one_array(a, w):
    return np.sum((a[:2] @ a[2:].T) * w)


def product_written_into_its_argument(a, w):
    a[:2, :2] = a[:2] @ a[:, :2]
    return np.sum(a * w)


def in_a_branch(a, x, n):
    if n > 1:
        y = a @ x
        x[0] = 0.0
    else:
        y = a.T @ x
        a[0] = 0.0
    return np.sum(y * y) + np.sum(a) + np.sum(x)


def while_solving(a, b):
    x = b.copy()
    k = 0
    while k < 3:
        x = np.linalg.solve(a, x) + b
        a[k, k] += x[k] * x[k]
        k += 1
    return np.sum(x)


def kalman(p, f, q):
    """A covariance that is overwritten at each step."""
    p = p.copy()
    total = 0.0
    for _t in range(3):
        p[:] = f @ p @ f.T + q
        gain = p[:, 0] / (p[0, 0] + 1.0)
        p -= np.outer(gain, p[0])
        total += np.linalg.slogdet(p)[1]
    return total


def batches_overwritten(a, b, w):
    c = a @ b
    a[0] = 0.0
    b[:, 0] = 1.0
    return np.sum(c * w) + np.sum(a) + np.sum(b)


def einsum_overwritten(a, b, w):
    c = np.einsum("ij,kj->ki", a, b)
    a[:, 0] = b[:, 0]
    return np.sum(c * w) + np.sum(a * a)


ROWS: list[Row] = [
    row("argument_element", argument_element, once((3, 3), (3,))),
    row("argument_scaled", argument_scaled, once((3, 3), (3,))),
    row("vector_overwritten", vector_overwritten, once((3, 3), (3,))),
    row("view_overwritten_through_base", view_overwritten_through_base, once((3, 3), (3,))),
    row("base_overwritten_through_view", base_overwritten_through_view, once((3, 3), (3,))),
    row("recurrence", recurrence, once((3, 3), (3,))),
    row("recurrence_on_argument", recurrence_on_argument, once((3, 3), (3,))),
    row("recurrence_in_place", recurrence_in_place, once((3, 3), (3,))),
    row("rows_in_turn", rows_in_turn, once((3, 3), (3, 3))),
    row("power_iteration", power_iteration, once(positive_definite(3), (3,))),
    row("result_overwritten", result_overwritten, once((3, 2), (2, 3))),
    row("result_of_solve_overwritten", result_of_solve_overwritten, once(regular(3, 3), (3,))),
    row("inverse_overwritten", inverse_overwritten, once(regular(3, 3))),
    row("cholesky_overwritten", cholesky_overwritten, once(positive_definite(3))),
    row("eigenvectors_overwritten", eigenvectors_overwritten, once(positive_definite(3))),
    row("determinant_then_overwritten", determinant_then_overwritten, once(regular(3, 3))),
    row("singular_vectors_overwritten", singular_vectors_overwritten, once((3, 2))),
    row("same_array_twice", same_array_twice, once((3, 3))),
    row("halves_of_one_array", halves_of_one_array, once((4, 3))),
    row("product_written_into_its_argument", product_written_into_its_argument, once((3, 3))),
    row("in_a_branch", in_a_branch, [*once((3, 3), (3,), 2), *once((3, 3), (3,), 1)]),
    row("while_solving", while_solving, once(4.0 * regular(3, 3), (3,))),
    row("kalman", kalman, once(positive_definite(2), regular(2, 2), positive_definite(2))),
    row("batches_overwritten", batches_overwritten, once((2, 2, 3), (2, 3, 2))),
    row("einsum_overwritten", einsum_overwritten, once((3, 3), (3, 3))),
]


def cases() -> list[Any]:
    """Every row on `python`; every third also on `numba`. With SRCDIFF_TEST_ALL, all of them."""
    found = [pytest.param(r, "python", id=f"{r.name}-python") for r in ROWS]
    return found + [pytest.param(r, "numba", marks=pytest.mark.numba, id=f"{r.name}-numba") for r in every(3, ROWS)]


@pytest.mark.parametrize(("one", "backend"), cases())
def test_contents_are_those_at_the_call(one: Row, backend: str) -> None:
    gradient = srcdiff.value_and_grad(one.function, wrt=one.wrt, backend=backend)
    for point in one.at:
        value, bars = call(gradient, clone(point))

        assert_close(value, float(one.function(*clone(point))), single=False)
        for position, bar in zip(one.wrt, bars, strict=True):
            assert_like_argument(bar, point[position])
        assert_slopes(bars, slopes(one.function, point, one.wrt), single=False)


def no_warnings(a: Any, b: Any) -> Any:
    return np.sum(a[::2, ::2] @ b[::2]) + a[::2, 0] @ b[::2]


@pytest.mark.numba
@pytest.mark.filterwarnings("error")
def test_numba_does_not_complain_of_strides() -> None:
    point = (array(4, 4)[:, ::-1], array(4))
    given = clone(point)

    value, bars = srcdiff.value_and_grad(no_warnings, wrt=(0, 1), backend="numba")(*given)

    assert_close(value, float(no_warnings(*point)), single=False)
    assert same(given, point)
    assert_slopes(bars, slopes(no_warnings, point, (0, 1)), single=False)


def factors_of_nothing(a: Any, b: Any) -> Any:
    u, s, vt = np.linalg.svd(a)
    q, r = np.linalg.qr(a)
    x, residuals, rank, _ = np.linalg.lstsq(a, b)
    total = np.sum(u) + np.sum(s) + np.sum(vt) + np.sum(q) + np.sum(r) + np.sum(x) + np.sum(residuals) + rank
    return total + np.linalg.matrix_rank(a) + np.linalg.norm(a, 2) + np.linalg.norm(a, np.inf)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_matrices_without_elements(backend: str) -> None:
    gradient = srcdiff.value_and_grad(factors_of_nothing, wrt=("a", "b"), backend=backend)
    for shape in ((0, 3), (3, 0), (0, 0)):
        a, b = np.zeros(shape), np.arange(1.0, 2 * shape[0] + 1).reshape(shape[0], 2)
        value, (a_bar, b_bar) = gradient(a, b)
        assert value == factors_of_nothing(a, b)
        assert a_bar.shape == shape
        np.testing.assert_array_equal(b_bar, 2 * b)  # the residual is all of b


def test_the_condition_of_nothing_is_refused_as_by_numpy() -> None:
    def condition(a: Any) -> Any:
        return np.linalg.cond(a)

    with pytest.raises(np.linalg.LinAlgError, match="not defined on empty arrays"):
        srcdiff.grad(condition, backend="python")(np.zeros((0, 0)))


def counted_in_bins(x: float, data: Any) -> Any:
    return x * np.histogram(data, bins=3)[0][0] + x * np.histogram(a=2.0 * data, bins=2)[1][1]


def test_a_function_without_a_rule_takes_data_by_name() -> None:
    data = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    assert srcdiff.grad(counted_in_bins, wrt="x", backend="python")(1.5, data) == counted_in_bins(1.0, data)
    with pytest.raises(srcdiff.DifferentiationError, match=r"np.histogram"):
        srcdiff.grad(counted_in_bins, wrt="data", backend="python")(1.5, data)


def by_numbers(x: float, data: Any, bins: int, most: float, bend: float) -> Any:
    """Numbers known only in the call, tuples, and no computed arguments."""
    counts, edges = np.histogram(data, bins, (0.5, most))
    window = np.kaiser(len(data), bend) * np.kaiser(5, 2.0) + np.union1d(data, data[1:])[0]
    return x * counts[bins - 1] * edges[1] + x * x * np.sum(window)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_a_function_without_a_rule_takes_numbers_and_tuples(backend: str) -> None:
    point = (1.5, np.array([3.0, 1.0, 2.0, 2.0, 5.0]), 3, 4.5, 1.5)
    slope = (by_numbers(2.5, *point[1:]) - by_numbers(0.5, *point[1:])) / 2.0  # exact, of a parabola
    assert srcdiff.grad(by_numbers, backend=backend)(*point) == pytest.approx(slope, rel=1e-12)
    for name, function in (("most", "histogram"), ("bend", "kaiser")):
        with pytest.raises(srcdiff.DifferentiationError, match=rf"np.{function}` has no derivative rule"):
            srcdiff.grad(by_numbers, wrt=name, backend=backend)(*point)


def in_listed_bins(x: float, data: Any) -> Any:
    counts, _ = np.histogram(data, bins=[0.0, 2, 4.5])
    return x * counts[0] + x * x * counts[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_without_a_rule_takes_lists(backend: str) -> None:
    data = np.array([3.0, 1.0, 2.0, 2.0, 5.0])

    assert srcdiff.value_and_grad(in_listed_bins, backend=backend)(1.5, data) == (in_listed_bins(1.5, data), 10.0)


def test_lists_that_need_a_derivative_are_refused() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"np.histogram` has no derivative rule"):
        srcdiff.grad(lambda x, data: np.histogram(data, [x, 2.0])[1][0], backend="python")(1.0, array(3))


def largest_root(x: float, p: Any) -> Any:
    return x * x * np.max(np.roots(p))


def test_roots_of_data() -> None:
    gradient = srcdiff.grad(largest_root, backend="python")
    assert gradient(1.5, np.array([0.0, 1.0, -6.0, 11.0, -6.0, 0.0])) == pytest.approx(9.0, rel=1e-12)
    with pytest.raises(ValueError, match="domain change"):
        gradient(1.5, np.array([1.0, 0.0, 1.0]))
    by_coefficients = srcdiff.grad(largest_root, wrt="p", backend="python")(1.5, np.array([1.0, -6.0, 11.0, -6.0]))
    np.testing.assert_allclose(by_coefficients, 1.5**2 * -np.array([27.0, 9.0, 3.0, 1.0]) / 2.0, rtol=1e-12)


def spectral_radius(a: Any) -> Any:
    return np.max(np.abs(np.linalg.eigvals(a)))


def spectral_radius_of_real_parts(a: Any) -> Any:
    return np.max(np.abs(np.linalg.eigvals(a).real))


@pytest.mark.parametrize(
    ("function", "backend"),
    [
        pytest.param(spectral_radius, "python", marks=BEFORE_NUMPY_2_5),
        (spectral_radius_of_real_parts, "python"),
        pytest.param(spectral_radius_of_real_parts, "numba", marks=pytest.mark.numba),
    ],
)
def test_eigenvalues_that_are_not_real_raise(function: Any, backend: str) -> None:
    gradient = srcdiff.grad(function, backend=backend)
    np.testing.assert_allclose(gradient(np.array([[2.0, 1.0], [0.0, 1.0]])), [[1.0, 0.0], [1.0, 0.0]], atol=1e-14)
    with pytest.raises(ValueError, match="domain change"):
        gradient(np.array([[0.0, 1.0], [-1.0, 0.0]]))


_ONLY_REAL = "of complex eigenvalues, of which only `.real` is supported"
SINCE_NUMPY_2_5_REFUSED = {
    "absolute value": (spectral_radius, "an argument is complex"),
    "sum": (lambda a: np.sum(np.linalg.eigvals(a)).real, "an argument is complex"),
    "product": (lambda a: np.sum((np.linalg.eigvals(a) * 2.0).real), _ONLY_REAL),
    "element": (lambda a: np.linalg.eigvals(a)[0].real, _ONLY_REAL),
    "loop": (lambda a: sum([x.real for x in np.linalg.eigvals(a)]), _ONLY_REAL),
    "rank": (lambda a: np.ndim(np.linalg.eigvals(a)) * a[0, 0], "an argument is complex"),
    "rank in a tuple": (lambda a: np.ndim((np.linalg.eigvals(a),)) * a[0, 0], "an argument is complex"),
    "rank in a list": (lambda a: np.ndim([np.linalg.eigvals(a)]) * a[0, 0], _ONLY_REAL),
    "size": (lambda a: np.size(np.linalg.eig(a)[1]) * a[0, 0], "an argument is complex"),
    "type": (lambda a: np.iscomplexobj(np.linalg.eigvals(a)) * a[0, 0], "an argument is complex"),
    "truth": (lambda a: a[0, 0] if np.linalg.eigvals(a) else a[1, 1], _ONLY_REAL),
    "comparison": (lambda a: np.sum((np.linalg.eigvals(a) > 0.0) * a), _ONLY_REAL),
    "imaginary part": (lambda a: np.sum(np.linalg.eigvals(a).imag), "`imag` of the eigenvalues"),
    "ufunc method": (lambda a: np.add.reduce(np.linalg.eigvals(a)).real, "an argument is complex"),
    "result": (lambda a: np.linalg.eigvals(a), "the result is complex"),
    "part of the result": (lambda a: (a[0, 0], np.linalg.eig(a)), "the result is complex"),
    "list as the result": (lambda a: [np.linalg.eigvals(k * a) for k in range(a.shape[0])], "the result is complex"),
}


@SINCE_NUMPY_2_5
@pytest.mark.parametrize("use", SINCE_NUMPY_2_5_REFUSED)
def test_eigenvalues_are_complex_and_only_their_real_part_is_taken(use: str) -> None:
    function, message = SINCE_NUMPY_2_5_REFUSED[use]
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.value_and_grad(function, backend="python")(np.array([[2.0, 1.0], [0.5, 1.0]]))


def eigenvalues_that_change(a: Any) -> Any:
    """Complex arrays in lists, in branches, in loops and through helpers. They are written through their real part."""
    kept = []
    values = np.linalg.eigvals(a)
    for k in range(a.shape[0]):
        kept.append(np.linalg.eigvals((k + 1.0) * a))
        if a[0, 0] > k:
            values = np.linalg.eig(a + k).eigenvalues
    total = real_sum(values) if isinstance(values, np.ndarray) else 0.0
    part = kept[1].real
    part[0] *= 3.0
    return total**2 + np.sum(kept[1].real ** 2) + np.max(np.real(kept[0]))


def real_sum(values: Any) -> Any:
    return np.sum(values.real**2)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_real_parts_of_eigenvalues_go_through_all_of_python(backend: str) -> None:
    arguments = (np.array([[2.0, 1.0], [0.5, 1.0]]),)

    value, bars = call(srcdiff.value_and_grad(eigenvalues_that_change, backend=backend), clone(arguments))

    assert_close(value, eigenvalues_that_change(*arguments), False)
    assert_slopes(bars, slopes(eigenvalues_that_change, arguments, (0,)), False)


def area(a):
    return np.cross(np.array([a[0], a[1]]), np.array([a[2], a[3]])) ** 2


def areas(a):
    sides = np.array([[a[0], a[1]], [a[2], a[3]], [a[1], a[2]]])
    return np.sum(np.cross(sides, np.array([a[3], a[0]])) ** 3)


@BEFORE_NUMPY_2_5
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("function", [area, areas])
def test_cross_products_of_two_components(function: Any) -> None:
    arguments = (array(4),)

    value, bars = call(srcdiff.value_and_grad(function, backend="python"), clone(arguments))

    assert_close(value, function(*arguments), False)
    assert_slopes(bars, slopes(function, arguments, (0,)), False)


@SINCE_NUMPY_2_5
@pytest.mark.parametrize("function", [area, areas])
def test_cross_products_of_two_components_are_refused(function: Any) -> None:
    with pytest.raises(ValueError, match="3-dimensional vectors"):
        function(array(4))
    with pytest.raises(srcdiff.DifferentiationError, match="two components"):
        srcdiff.grad(function, backend="python")(array(4))


def test_cross_products_with_a_number_of_components_known_at_run_time_raise() -> None:
    derivative = srcdiff.grad(lambda a, b: np.sum(np.cross(a, b)), backend="python")

    assert np.all(np.isfinite(derivative(array(3), array(3))))
    error, message = (ValueError, "3-dimensional") if NUMPY >= (2, 5) else (NotImplementedError, "two components")
    with pytest.raises(error, match=message):
        derivative(array(2), array(2))


def test_cross_products_of_two_and_three_components_are_refused() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="two components"):
        srcdiff.grad(lambda a: np.sum(np.cross(np.array([a[0], a[1]]), a)), backend="python")(array(3))


def lower_triangle(size):
    a = np.random.default_rng(size).normal(size=(size, size))
    return np.linalg.cholesky(a @ a.T + max(size, 1) * np.eye(size))


@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 70])
def test_triangles_are_solved_in_blocks(size):
    a, b = lower_triangle(size), np.random.default_rng(1).normal(size=(3, size)).T
    for actual, expected in (
        (support.solve_lower(a, b), np.linalg.solve(a, b)),
        (support.solve_lower_transposed(a, b), np.linalg.solve(a.T, b)),
    ):
        assert actual.shape == b.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)  # the triangle's condition is below 100


@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 70])
@pytest.mark.parametrize("more", [0, 3, -2])
def test_triangles_are_solved_for_triangles(size, more):
    """The elements below the diagonal of an upper triangle are not read."""
    a, b = lower_triangle(size), np.random.default_rng(1).normal(size=(size, max(size + more, 0)))
    upper = np.triu(b)

    actual = support.solve_lower_transposed_upper(a, np.where(np.tri(*b.shape, -1) > 0.0, np.nan, upper))

    np.testing.assert_allclose(actual, np.linalg.solve(a.T, upper), rtol=1e-9, atol=1e-12)
    assert not np.any(np.tril(actual, -1))


@pytest.mark.parametrize("size", [0, 1, 2, 33])
def test_triangles_are_solved_for_vectors(size):
    a, b = lower_triangle(size), np.random.default_rng(1).normal(size=2 * size)[::2]

    np.testing.assert_allclose(support.solve_lower_vector(a, b), np.linalg.solve(a, b), rtol=1e-9, atol=1e-12)
    actual = support.solve_lower_transposed_vector(a, b)
    np.testing.assert_allclose(actual, np.linalg.solve(a.T, b), rtol=1e-9, atol=1e-12)


def likelihood(a, b, w):
    factor = np.linalg.cholesky(a)
    x = np.linalg.solve(factor.T, np.linalg.solve(factor, b))
    y = np.linalg.solve(factor.T, np.linalg.solve(factor, w))
    return b @ x + np.sum(y**2) + np.sum(np.log(np.diag(factor)))


def overwritten_factor(a, b, w):
    factor = np.linalg.cholesky(a)
    x = np.linalg.solve(factor, b)
    factor[0, 2] = b[1]
    y = np.linalg.solve(factor, w)
    return b @ x + np.sum(y**2)


@pytest.mark.parametrize("function", [likelihood, overwritten_factor])
def test_equations_with_factors_have_derivatives_of_both_orders(function):
    random = np.random.default_rng(4)
    a, b, w = positive_definite(3), random.normal(size=3), random.normal(size=(3, 2))
    a_dot, b_dot, w_dot = random.normal(size=(3, 3)), random.normal(size=3), random.normal(size=(3, 2))
    a_dot, step = a_dot + a_dot.T, 1e-5

    def at(t):
        return a + t * a_dot, b + t * b_dot, w + t * w_dot

    gradient = srcdiff.grad(function, wrt=(0, 1, 2), backend="python")
    along = (function(*at(step)) - function(*at(-step))) / (2 * step)
    by_adjoint = sum(np.sum(x * y) for x, y in zip(gradient(a, b, w), (a_dot, b_dot, w_dot), strict=True))
    _, by_tangent = srcdiff.jvp(function, (a, b, w), (a_dot, b_dot, w_dot), backend="python")
    np.testing.assert_allclose([by_adjoint, by_tangent], along, rtol=1e-6)  # differences of second order
    by_b = srcdiff.grad(function, wrt=1, backend="python")
    twice = (by_b(a, b + step * b_dot, w) - by_b(a, b - step * b_dot, w)) / (2 * step)
    np.testing.assert_allclose(srcdiff.hvp(function, wrt=1, backend="python")(a, b, w, b_dot), twice, rtol=1e-6)
    code = [line.partition("#")[0] for line in gradient.source.splitlines()]
    assert any("np.linalg.solve" in line for line in code) == (function is overwritten_factor)


def whitened(b, a):
    return np.linalg.solve(np.linalg.cholesky(a), b * b)


def test_many_directions_are_columns_of_one_triangular_solve():
    a, b = positive_definite(3), np.array([0.5, -1.0, 2.0])
    expected = np.linalg.solve(np.linalg.cholesky(a), np.diag(2.0 * b))

    for mode in ("forward", "reverse"):
        actual = srcdiff.jacobian(whitened, mode=mode, backend="python")(b, a)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)


def sines_of_the_factor(a, w):
    return np.sum(np.sin(np.linalg.cholesky(a)) * w)


@pytest.mark.numba
@pytest.mark.parametrize("size", [0, 1, 33, 70])
def test_factors_of_large_matrices_have_derivatives_of_both_orders(size):
    factor, random = lower_triangle(size), np.random.default_rng(2)
    a, w, v = factor @ factor.T, random.normal(size=(size, size)), random.normal(size=(size, size))
    gradient, step, v = srcdiff.grad(sines_of_the_factor), 1e-5, v + v.T

    along = (sines_of_the_factor(a + step * v, w) - sines_of_the_factor(a - step * v, w)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient(a, w) * v), along, rtol=1e-6, atol=1e-7)  # of second order
    twice = (gradient(a + step * v, w) - gradient(a - step * v, w)) / (2 * step)
    np.testing.assert_allclose(srcdiff.hvp(sines_of_the_factor)(a, w, v), twice, rtol=1e-5, atol=1e-7)
