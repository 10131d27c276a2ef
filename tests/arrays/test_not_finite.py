"""Arrays with NaN or infinity in them, and arrays without elements: the values are NumPy's."""

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

#: Functions of which all floats are differentiated, and points.
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
    """All of them in Python, and some compiled."""
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
    """The adjoint of a mean divides one by the number of elements."""

    def weighted(a: Any, x: float) -> Any:
        return x / len(a) + np.sum(a)

    assert srcdiff.grad(weighted, wrt="x", backend="python")(NOTHING, 2.0) == np.inf
    assert srcdiff.grad(weighted, wrt="x", backend="python")(np.ones(4), 2.0) == 0.25


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_extreme_has_the_derivative_of_the_element_that_it_is(backend: str) -> None:
    def extremes(a: Any) -> Any:
        return np.nanmax(a, axis=1)[0] ** 2 + np.nanmin(a, axis=1)[1] ** 3

    a_bar = srcdiff.grad(extremes, backend=backend)(HOLES)

    np.testing.assert_array_equal(a_bar, [[0.0, 0.0, 6.0], [0.0, 0.0, 12.0], [0.0, 0.0, 0.0]])


def test_nothing_has_no_extreme() -> None:
    with pytest.raises(ValueError, match="zero-size array to reduction operation"):
        srcdiff.grad(lambda a: np.nanmax(a), backend="python")(NOTHING)


def test_what_is_beside_nan_has_a_derivative() -> None:
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
