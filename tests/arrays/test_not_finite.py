"""Arrays with NaN or infinity, and arrays without elements: values agree with NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.comparison import BACKENDS
from tests.arrays.rows import array, integers
from tests.numerical import clone

NAN = np.nan
HOLES = np.array([[1.0, NAN, 3.0], [NAN, NAN, 2.0], [NAN, NAN, NAN]])
MISSING = np.array([1.0, NAN, 3.0, 4.0, 6.0])
ENDLESS = np.array([1.0, np.inf, 3.0, 5.0, 6.0])
NOTHING = np.zeros(0)

#: Functions with points. They are differentiated with respect to all floats.
PROGRAMS: list[Any] = [
    ("mean_of_nothing", lambda a: np.mean(a), (NOTHING,)),
    ("means_of_nothing", lambda a: np.mean(a, axis=1), (np.zeros((2, 0)),)),
    ("mean_of_none_chosen", lambda a: np.mean(a, where=a > 5.0), (array(3),)),
    ("average_of_nothing", lambda a: np.average(a), (NOTHING,)),
    ("variance_of_nothing", lambda a: np.var(a) + np.std(a), (NOTHING,)),
    ("covariance_of_nothing", lambda a: np.cov(a) + np.corrcoef(a), (NOTHING,)),
    ("nanmean_of_nothing", lambda a: np.nanmean(a) + np.nanvar(a) + np.nanstd(a), (NOTHING,)),
    ("nanmean_of_holes", lambda a: np.nanmean(a, axis=1), (HOLES,)),
    ("sum_divided_by_a_length", lambda a: np.sum(a) / len(a), (NOTHING,)),
    ("variance_of_too_few", lambda a: np.var(a, ddof=3), (array(2),)),
    ("variances_of_too_few", lambda a, n: np.var(a, axis=1, ddof=n), (array(2, 3), 4)),
    ("deviations_of_one", lambda a: np.std(a, axis=1, ddof=1), (array(2, 1),)),
    ("deviations_of_chosen", lambda a: np.std(a, axis=1, ddof=2, where=a > 0.0), (array(4, 3),)),
    ("nanvar_of_too_few", lambda a: np.nanvar(a, ddof=2), (array(2),)),
    ("nanvar_of_integers", lambda y, n: y * np.nanvar(n, ddof=2), (1.5, integers(1, 2))),
    ("nanvar_of_holes", lambda a: np.nanvar(a, axis=1, ddof=1), (HOLES,)),
    ("nanstd_of_holes", lambda a: np.nanstd(a, axis=1, ddof=1, keepdims=True), (HOLES,)),
    ("nanmax_of_holes", lambda a: np.nanmax(a, axis=1), (HOLES,)),
    ("nanmin_of_holes", lambda a: np.nanmin(a, axis=0, keepdims=True) + np.nanmin(a), (HOLES,)),
    ("nanmin_of_no_numbers", lambda a: np.nanmin(a), (np.array([NAN, NAN]),)),
    ("nanmax_of_infinity", lambda a: np.nanmax(a), (np.array([NAN, -np.inf]),)),
    ("nanmax_of_integers", lambda y, n: y * np.nanmax(n), (1.5, integers(1, 2))),
    ("slopes_beside_nan", lambda a: np.gradient(a), (MISSING,)),
    ("slopes_beside_infinity", lambda a, h: np.gradient(a, h, edge_order=2), (ENDLESS, 0.5)),
    ("slopes_at_even_places", lambda a, x: np.gradient(a, x), (MISSING, np.arange(5.0))),
    ("slopes_at_other_places", lambda a, x: np.gradient(a, x), (ENDLESS, np.arange(5.0) ** 2)),
    ("slopes_at_even_and_other", lambda a, x: np.gradient(a, x), (ENDLESS, np.array([0.0, 1.0, 2.0, 3.0, 7.0]))),
    ("powers_of_infinity", lambda a: np.vander(a, 3), (ENDLESS,)),
]


def value_of(function: Any, point: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*clone(point))


def on_backends(*compiled: str) -> Any:
    """All cases in Python, and some compiled."""
    found = [pytest.param(f, point, "python", id=f"{name}-python") for name, f, point in PROGRAMS]
    found += [
        pytest.param(f, point, "numba", id=f"{name}-numba", marks=pytest.mark.numba)
        for name, f, point in PROGRAMS
        if name in compiled
    ]
    return pytest.mark.parametrize(("function", "point", "backend"), found)


@on_backends("slopes_at_even_places", "nanmax_of_holes", "nanvar_of_holes", "variances_of_too_few", "means_of_nothing")
def test_values_are_those_of_numpy(function: Any, point: Any, backend: str) -> None:
    expected = value_of(function, point)

    value, _ = srcdiff.vjp(function, *point, backend=backend)

    np.testing.assert_allclose(value, expected, rtol=1e-12)  # sums in another order
    assert np.shape(value) == np.shape(expected)


def test_a_constant_divided_by_a_length_of_zero_is_infinite() -> None:
    """The adjoint of a mean divides by the number of elements."""

    def weighted(a: Any, x: float) -> Any:
        return x / len(a) + np.sum(a)

    assert srcdiff.grad(weighted, wrt="x", backend="python")(NOTHING, 2.0) == np.inf
    assert srcdiff.grad(weighted, wrt="x", backend="python")(np.ones(4), 2.0) == 0.25


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_extreme_has_the_derivative_of_its_element(backend: str) -> None:
    def extremes(a: Any) -> Any:
        return np.nanmax(a, axis=1)[0] ** 2 + np.nanmin(a, axis=1)[1] ** 3

    a_bar = srcdiff.grad(extremes, backend=backend)(HOLES)

    np.testing.assert_array_equal(a_bar, [[0.0, 0.0, 6.0], [0.0, 0.0, 12.0], [0.0, 0.0, 0.0]])


def test_nothing_has_no_extreme() -> None:
    with pytest.raises(ValueError, match="zero-size array to reduction operation"):
        srcdiff.grad(lambda a: np.nanmax(a), backend="python")(NOTHING)


def test_elements_beside_nan_have_a_derivative() -> None:
    a_bar = srcdiff.grad(lambda a: np.gradient(a)[1] + np.vander(a, 2)[1, 1], backend="python")(MISSING)

    np.testing.assert_array_equal(a_bar, [-0.5, 0.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("side", ["left", "right"])
def test_nan_is_sorted_behind_all_numbers(side: str) -> None:
    def place(y: float, a: Any, x: Any, side: str) -> Any:
        return y * np.searchsorted(a, x, side)

    x = np.array([NAN, -1.0, 0.0, 0.5, 1.0, 2.0, np.inf])
    for a in ([0.0, 1.0], [0.0, 1.0, NAN, NAN], [NAN], [0.0, np.inf]):
        expected = np.searchsorted(a, x, side)

        value, _ = srcdiff.vjp(place, 1.0, np.array(a), x, side, backend="python")

        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_is_in_the_last_bin(backend: str) -> None:
    def binned(y: Any, x: float, bins: Any) -> Any:
        return y[np.digitize(x, bins)] ** 2

    y, bins = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0])
    gradient = srcdiff.value_and_grad(binned, backend=backend)
    for edges in (bins, bins[::-1].copy()):
        value, y_bar = gradient(y, NAN, edges)

        assert value == binned(y, NAN, edges)
        np.testing.assert_array_equal(y_bar, np.where(y == np.sqrt(value), 2.0 * y, 0.0))


# -- strong zeros: an adjoint, or a tangent, of exactly zero contributes nothing ------------------------------------


def distances_of_a_triangle(x: Any) -> Any:
    d = x[:, None] - x[None, :]
    r = np.sqrt(d**2)
    return np.sum(np.triu(r, 1) ** 3)


def potential(x: Any, m: Any) -> Any:
    """A common way to write the energy of bodies that attract each other."""
    d = x[:, None] - x[None, :]
    inverse = np.sqrt(d**2)
    inverse[inverse > 0] = 1.0 / inverse[inverse > 0]
    return np.sum(np.triu(-(m[:, None] * m[None, :]) * inverse, 1))


def selected_after_a_reshape(x: Any) -> Any:
    t = np.sqrt(x).reshape(2, 2)
    t[1, 0] = 3.0 * t[0, 1]
    return np.sum(t[t > 1e-6])


def selected_after_a_view(x: Any) -> Any:
    t = np.sqrt(x)
    part = t[1:]
    part[1] = 2.0
    return np.sum(t[t > 1e-6] ** 2) + t[1]


def logarithms_within_limits(x: Any) -> Any:
    return np.sum(np.clip(np.log(x), -2.0, 2.0))


def logarithms_above_a_limit(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += max(np.log(x[i]), -3.0)
    return total


def weights_of_nothing(x: Any, w: Any) -> Any:
    return np.sum(w * np.sqrt(x))


def sigmoids(x: Any) -> Any:
    return np.sum(1.0 / (1.0 + np.exp(-x)))


def angle(x: Any, w: float) -> Any:
    return w * np.arccos(x[0]) + np.arcsin(x[1]) + w * x[2] ** 0.3


def soft_time_warping(gamma: float, a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            u, v, w = -table[i - 1, j - 1] / gamma, -table[i - 1, j] / gamma, -table[i, j - 1] / gamma
            largest = max(u, v, w)
            total = np.exp(u - largest) + np.exp(v - largest) + np.exp(w - largest)
            table[i, j] = (a[i - 1] - b[j - 1]) ** 2 - gamma * (np.log(total) + largest)
    return table[n, m]


def soft_time_warping_by_products(scale: float, a: Any, b: Any) -> Any:
    """The same table, with multiplications by values that may be infinite."""
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(len(a)):
        for j in range(len(b)):
            u, v, w = -scale * table[i, j], -scale * table[i, j + 1], -scale * table[i + 1, j]
            total = np.exp(u) + np.exp(v) + np.exp(w)
            table[i + 1, j + 1] = (a[i] - b[j]) ** 2 - np.log(total) / scale
    return table[len(a), len(b)]


def quotients_that_are_left_out(x: Any, k: Any) -> Any:
    t = np.empty(len(x))
    for i in range(len(x)):
        q = 1.0 / x[i]
        t[i] = q * k[i]
    return np.sum(t[np.abs(x) > 0.1])


def remainders_that_are_left_out(x: Any, y: Any) -> Any:
    t = np.fmod(x, y) + np.power(x, y)
    t[0] = 0.0
    return np.sum(t)


LINE = np.array([0.0, 1.0, 3.5, 3.0])
ZEROS = np.array([0.0, 2.0, 4.0, 0.0])
SERIES = (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 2.7, 3.1]))

#: Functions, points, the argument, and elements that differences do not move: their derivative is zero by convention.
STRONG: list[Any] = [
    (distances_of_a_triangle, (LINE,), 0, ()),
    (potential, (LINE, np.array([1.0, 2.0, 0.5, 0.7])), 0, ()),
    (potential, (LINE, np.array([1.0, 2.0, 0.5, 0.7])), 1, ()),
    (selected_after_a_reshape, (ZEROS,), 0, (0, 3)),
    (selected_after_a_view, (ZEROS,), 0, (0, 3)),
    (logarithms_within_limits, (ZEROS,), 0, (0, 3)),
    (logarithms_above_a_limit, (ZEROS,), 0, (0, 3)),
    (weights_of_nothing, (ZEROS, np.array([0.0, 1.0, 2.0, 0.0])), 0, (0, 3)),
    (weights_of_nothing, (ZEROS, np.array([0.0, 1.0, 2.0, 0.0])), 1, ()),
    (sigmoids, (np.array([-800.0, 0.5, 800.0, -720.0]),), 0, ()),
    (angle, (np.array([1.0, 0.5, 0.0]), 0.0), 0, (0, 2)),
    (soft_time_warping, (0.7, *SERIES), 0, ()),
    (soft_time_warping, (0.7, *SERIES), 1, ()),
    (soft_time_warping_by_products, (1.3, *SERIES), 0, ()),
    (soft_time_warping_by_products, (1.3, *SERIES), 2, ()),
    (quotients_that_are_left_out, (np.array([0.0, 2.0, -3.0]), np.array([1.0, 2.0, 3.0])), 0, (0,)),
    (quotients_that_are_left_out, (np.array([0.0, 2.0, -3.0]), np.array([1.0, 2.0, 3.0])), 1, ()),
    (remainders_that_are_left_out, (np.array([0.0, 2.0, 3.0]), np.array([0.0, 3.5, 2.0])), 0, (0,)),
    (remainders_that_are_left_out, (np.array([0.0, 2.0, 3.0]), np.array([0.0, 3.5, 2.0])), 1, (0,)),
]
NAMED = [pytest.param(*row, id=f"{row[0].__name__}-{row[2]}") for row in STRONG]


def differences(function: Any, point: Any, place: int, fixed: Any, step: float) -> Any:
    """Central differences of a function, or of its gradient. They are zero for elements that do not move."""
    moved = np.asarray(point[place])
    found = []
    for k in range(moved.size):
        values = []
        for sign in (1.0, -1.0):
            other = moved.astype(float).ravel()
            other[k] += sign * step
            shaped = other.reshape(moved.shape) if moved.ndim else float(other[0])
            values.append(value_of(function, (*point[:place], shaped, *point[place + 1 :])))
        found.append(np.zeros_like(values[0]) if k in fixed else (values[0] - values[1]) / (2.0 * step))
    return np.array(found) if moved.ndim else found[0]


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
@pytest.mark.parametrize(("function", "point", "place", "fixed"), NAMED)
def test_an_adjoint_of_zero_contributes_nothing(
    function: Any, point: Any, place: int, fixed: Any, backend: str
) -> None:
    expected = differences(function, point, place, fixed, 1e-6)

    found = srcdiff.grad(function, wrt=place, backend=backend)(*clone(point))

    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # the error of the differences


# Infinite tangents are different: in forward mode, a derivative of zero does not stop them.
FORWARD = [row for row in NAMED if row.values[0] not in (sigmoids, soft_time_warping, soft_time_warping_by_products)]


@pytest.mark.parametrize(("function", "point", "place", "fixed"), FORWARD)
def test_a_tangent_of_zero_contributes_nothing(function: Any, point: Any, place: int, fixed: Any) -> None:
    direction = np.random.default_rng(3).uniform(0.5, 1.0, np.shape(point[place]))
    for k in fixed:
        direction[k] = 0.0
    gradient = srcdiff.grad(function, wrt=place, backend="python")(*clone(point))
    tangents: list[Any] = [None] * len(point)
    tangents[place] = direction

    _, found = srcdiff.jvp(function, point, tuple(tangents), backend="python")

    np.testing.assert_allclose(found, np.sum(gradient * direction), rtol=1e-9)


SECOND = [row for row in NAMED if row.values[0] in (distances_of_a_triangle, potential, selected_after_a_view)]


@pytest.mark.parametrize(("function", "point", "place", "fixed"), SECOND)
def test_the_same_holds_for_derivatives_of_derivatives(function: Any, point: Any, place: int, fixed: Any) -> None:
    gradient = srcdiff.grad(function, wrt=place, backend="python")
    expected = differences(gradient, point, place, fixed, 1e-5)

    found = srcdiff.hessian(function, wrt=place, backend="python")(*clone(point))

    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)  # the error of the differences


@pytest.mark.parametrize("x", [0.25, 1.0, 4.0])
def test_a_product_with_an_adjoint_of_zero_has_a_derivative(x: float) -> None:
    """At one, the adjoint of the root is zero, but its derivative is not."""

    def f(x: Any) -> Any:
        return (np.sqrt(x) - 1.0) ** 2 + (1.0 / x - 1.0) ** 2

    expected = 0.5 * x**-1.5 + 6.0 * x**-4.0 - 4.0 * x**-3.0

    for found in (
        srcdiff.hessian(f, backend="python")(x),
        srcdiff.grad(srcdiff.grad(f, backend="python"), backend="python")(x),
        srcdiff.hvp(f, backend="python")(x, 1.0),
    ):
        assert found == pytest.approx(expected, rel=1e-12)


def test_the_derivative_itself_is_infinite_as_before() -> None:
    assert srcdiff.grad(lambda x: np.sqrt(x), backend="python")(0.0) == np.inf
    assert srcdiff.grad(lambda x: np.log(x), backend="python")(0.0) == np.inf
    assert srcdiff.jvp(lambda x: 2.0 * np.sqrt(x), (0.0,), (1.0,), backend="python")[1] == np.inf
    assert np.isnan(srcdiff.grad(lambda x: np.sqrt(x), backend="python")(-1.0))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: np.sqrt(x) ** 2, 0.0),
        (lambda x: np.arccos(x) ** 2, 1.0),
        (lambda x: np.cbrt(x) ** 3, 0.0),
        (lambda x: (x**0.25) ** 4, 0.0),
    ],
)
def test_a_limit_of_zero_times_infinity_is_not_called_zero(function: Any, x: float) -> None:
    """The same number makes the adjoint zero and the derivative infinite. The limits are 1, -2, 1 and 1."""
    assert np.isnan(srcdiff.grad(function, backend="python")(x))


def test_the_square_of_a_distance_has_a_derivative() -> None:
    """A sum of squares has a minimum at zero, so its derivative there is zero."""

    def f(x: Any) -> Any:
        r = np.sqrt((x[0] - x[1]) ** 2 + x[2] * x[2])
        return r**2 + x[0]

    np.testing.assert_array_equal(srcdiff.grad(f, backend="python")(np.array([1.0, 1.0, 0.0])), [1.0, 0.0, 0.0])


def with_a_diagonal(x: Any) -> Any:
    """The diagonal of distances is zero, and contributes."""
    d = x[:, None] - x[None, :]
    r = np.sqrt(d**2)
    r[r > 0] = 1.0 / r[r > 0]
    return np.sum(r)


def distances_in_space(x: Any) -> Any:
    d = x.reshape(-1, 2)[:, None, :] - x.reshape(-1, 2)[None, :, :]
    r = np.sqrt(np.sum(d**2, axis=-1))
    return np.sum(r + r**3)


def distances_in_loops(x: Any) -> Any:
    total = 0.0
    for i in range(0, len(x), 2):
        for j in range(0, len(x), 2):
            total += np.sqrt((x[i] - x[j]) ** 2 + 2.0 * (x[i + 1] - x[j + 1]) * (x[i + 1] - x[j + 1]))
    return total


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
@pytest.mark.parametrize("function", [with_a_diagonal, distances_in_space, distances_in_loops])
def test_a_distance_of_zero_has_the_derivative_of_the_absolute_value(function: Any, backend: str) -> None:
    expected = differences(function, (LINE,), 0, (), 1e-6)

    found = srcdiff.grad(function, backend=backend)(LINE)
    _, tangent = srcdiff.jvp(function, (LINE,), (np.ones(4),), backend=backend)

    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # the error of the differences
    np.testing.assert_allclose(tangent, np.sum(found), atol=1e-9)


def test_a_root_of_zero_that_is_not_a_sum_of_squares_has_an_infinite_derivative() -> None:
    assert srcdiff.grad(lambda x: np.sqrt(np.maximum(x, 0.0)), backend="python")(0.0) == np.inf
    assert not np.isfinite(srcdiff.grad(lambda x: np.sqrt(np.maximum(x, 0.0) * np.exp(x)), backend="python")(0.0))
    assert srcdiff.grad(lambda x: np.sqrt(3.0 * x), backend="python")(0.0) == np.inf


def test_a_pullback_of_zeros_gives_zeros() -> None:
    _, pullback = srcdiff.vjp(lambda x: np.log(x) + 1.0 / x, np.array([0.0, 1.0, 2.0]), backend="python")

    np.testing.assert_array_equal(pullback(np.array([0.0, 1.0, 1.0]))[0], [0.0, 0.0, 0.25])


def test_no_adjoint_is_tested_that_is_never_zero() -> None:
    for function in (lambda x: np.sum(np.log(x)), lambda x: np.mean(np.sqrt(x)), lambda x: np.sum(x / (1.0 + x * x))):
        gradient = srcdiff.grad(function, backend="python")
        gradient(np.ones(3))
        assert "!= 0.0" not in gradient.source
