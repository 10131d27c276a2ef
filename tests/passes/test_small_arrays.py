"""Small arrays of known size: loops contain no allocation and no library call, and the numbers are NumPy's."""

import re

import numpy as np
import pytest

import srcdiff
from tests.programs import arm_of_joints, filter_with_gaps

MATRICES = {
    "any": np.array([[0.3, -1.2, 0.7], [2.0, 0.1, 0.4], [-0.5, 0.9, 1.1]]),
    "rows to exchange": np.array([[0.0, 0.0, 2.0], [0.1, -3.0, 0.5], [1.5, 0.1, 0.2]]),
    "nearly singular": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0 + 1e-7], [1.0, 1.0, 1.0]]),
    "tiny": 1e-100 * np.array([[0.3, -1.2, 0.7], [2.0, 0.1, 0.4], [-0.5, 0.9, 1.1]]),
    "huge": 1e100 * np.array([[0.3, -1.2, 0.7], [2.0, 0.1, 0.4], [-0.5, 0.9, 1.1]]),
}


def known(a):
    """The argument as an array of known size."""
    m = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            m[i, j] = a[i, j]
    return m


def known_two(a):
    m = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            m[i, j] = a[i, j]
    return m


def inverse(a):
    return np.linalg.inv(known(a)) + 0.0


def solved(a):
    return np.linalg.solve(known(a), np.array([1.0, -2.0, 0.5])) + 0.0


def solved_twice(a):
    m = known(a)
    return np.linalg.solve(m, m.T) + 0.0


def determinant(a):
    return np.linalg.det(known(a))


def factor(a):
    m = known(a)
    return np.linalg.cholesky(m @ m.T + np.eye(3)) + 0.0


def substituted(a):
    m = known(a)
    factor = np.linalg.cholesky(m @ m.T + np.eye(3))
    x = np.linalg.solve(factor.T, np.linalg.solve(factor, m[1]))
    return np.linalg.solve(factor, m) + np.linalg.solve(factor.T, m) * x


def of_two(a):
    m = known_two(a[1:])
    return np.linalg.inv(m) @ np.linalg.solve(m, np.array([a[0, 0], a[0, 2]])) + np.linalg.det(m) * m[0]


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("function", [inverse, solved, solved_twice, determinant, of_two])
def test_numbers_are_those_of_numpy(function, matrix):
    a = MATRICES[matrix]
    expected = function(a)
    actual = srcdiff.differentiable(function, backend="python")(a)
    scale = np.max(np.abs(expected))
    tolerance = 1e-13 * np.linalg.cond(a)  # both are exact for a matrix with perturbations of rounding size
    assert np.max(np.abs(actual - expected)) <= tolerance * scale


@pytest.mark.parametrize("function", [inverse, solved, solved_twice, determinant, factor, substituted, of_two])
@pytest.mark.parametrize("matrix", ["any", "rows to exchange"])
def test_derivatives_agree_with_differences(function, matrix):
    srcdiff.check(lambda a: np.sum(function(a) * 1.5), MATRICES[matrix], backend="python")


@pytest.mark.parametrize("function", [inverse, solved, solved_twice, determinant, factor, substituted, of_two])
def test_no_library_is_called(function):
    def total(a):
        return np.sum(function(a) * 1.5)

    code = re.sub("#.*", "", srcdiff.source(total, MATRICES["any"]))
    assert re.findall(r"linalg\.(?!LinAlgError|.* import)\w+|@", code.replace("from numpy.linalg import", "")) == []


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0])])
def test_singular_matrices_raise(backend, matrix):
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        srcdiff.differentiable(solved, backend=backend)(matrix)


def test_a_matrix_that_is_not_positive_definite_raises():
    def negative(a):
        return np.linalg.cholesky(known(a) * -1.0)[0, 0]

    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        srcdiff.grad(negative, backend="python")(np.eye(3))


def test_nan_is_passed_on():
    assert np.isnan(srcdiff.differentiable(solved, backend="python")(np.full((3, 3), np.nan))).all()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(arm_of_joints, (np.ones(4), np.ones(3))), (filter_with_gaps, (np.ones(2), np.ones(5)))],
)
def test_loops_allocate_nothing_and_call_nothing(function, arguments):
    source = srcdiff.source(function, *arguments)
    inside = [line for line in source.splitlines() if line.startswith(" " * 8)]
    assert inside
    assert [line for line in inside if re.search(r"np\.(empty|zeros|linalg)| @ |append", line.split("#")[0])] == []


def final_state(x, n):
    y = np.array([x, 1.0, 0.0])
    for _ in range(n):
        y = y + 0.1 * np.array([y[1], -y[0] * x, y[0] * y[1]])
    return y, y[0]


def test_an_array_that_is_returned_is_put_together():
    expected, first = final_state(0.7, 5)
    actual, number = srcdiff.differentiable(final_state, backend="python")(0.7, 5)
    assert expected.tolist() == actual.tolist()
    assert first == number
    srcdiff.check(lambda x, n: final_state(x, n)[0] @ np.ones(3), 0.7, 5, wrt="x", backend="python")


def test_second_derivatives():
    def loss(angles):
        return arm_of_joints(angles, np.array([0.1, 0.2, 0.3]))

    angles = np.array([0.3, -0.5, 0.9])
    exact = srcdiff.hessian(loss, backend="python")(angles)
    gradient = srcdiff.grad(loss, backend="python")
    columns = [(gradient(angles + 1e-5 * row) - gradient(angles - 1e-5 * row)) / 2e-5 for row in np.eye(3)]
    assert np.allclose(exact, columns, rtol=1e-7, atol=1e-8)  # differences of second order with this step


def by_a_variable(x):
    v = np.array([x, x * x])
    first = v[0]
    return first * v[1] + v[0]


def test_variables_that_are_differentiated_by_stay():
    assert srcdiff.grad(by_a_variable, wrt=("x", "first"), backend="python")(3.0) == (28.0, 9.0)


def printed(x):
    v = np.array([x, 2.0])
    v[1] *= x
    print(v, v[1])
    return v[0] * v[1]


def test_an_array_is_printed_as_a_whole(capsys):
    assert srcdiff.grad(printed, backend="python")(3.0) == 12.0
    assert capsys.readouterr().out == "[3. 6.] 6.0\n"


def large_products(a, n):
    m, p = np.eye(6), np.eye(6) * a
    for _ in range(n):
        m = m @ p @ m.T + p @ p @ p + m @ m
    return m[0, 0]


def test_programs_do_not_explode():
    """Matrices whose formulas would be too long stay arrays, with loops instead of library calls."""
    source = srcdiff.source(large_products, 0.3, 2)
    assert len(source.splitlines()) < 200
    assert "@" not in re.sub("#.*", "", source)
    srcdiff.check(large_products, 0.3, 2, wrt="a", backend="python")
