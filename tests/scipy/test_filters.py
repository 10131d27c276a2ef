"""`scipy.signal` and `scipy.ndimage`: filters, convolutions, and interpolation at coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, signal

import srcdiff

RANDOM = np.random.default_rng(5)
X, PLANE = RANDOM.normal(size=7), RANDOM.normal(size=(4, 5))
B, A, STATE = np.array([0.5, 0.3, -0.2]), np.array([1.3, -0.4, 0.1, 0.05]), np.array([0.3, -0.1, 0.2])
THREE, TWO, KERNEL = RANDOM.normal(size=3), RANDOM.normal(size=2), RANDOM.normal(size=(3, 2))
AT = np.array([[0.3, 2.7, 1.1, -0.4, 3.0], [1.2, 0.1, 3.9, 2.0, 4.0]])
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")


def state_of(b: Any, a: Any, x: Any) -> Any:
    y, z = signal.lfilter(b, a, x[:5], zi=STATE * x[5])
    short, left = signal.lfilter(b, a, x[:2], zi=STATE)
    return np.sum(y**2) + np.sum(z**3) + np.sum(short) + np.sum(left**2)


def all_modes(x: Any, w: Any, c: Any) -> Any:
    total = 0.0
    for mode in MODES:
        total = total + np.sum(ndimage.correlate1d(x, w, mode=mode, cval=c) ** 2)
    return total


def in_plane(x: Any, w: Any, c: Any) -> Any:
    total = np.sum(ndimage.convolve(x, w, mode="constant", cval=c) ** 2)
    return total + np.sum(ndimage.correlate(x, w, mode="mirror") ** 3) + np.sum(ndimage.convolve(x[0], w[0]) ** 2)


def gaussian(x: Any, s: Any) -> Any:
    first = ndimage.gaussian_filter(x, (s, 0.8), mode=("nearest", "wrap"))
    second = ndimage.gaussian_filter1d(x, s, axis=0, order=1) + ndimage.gaussian_filter(x, s, order=(0, 2))
    return np.sum(first**2) + np.sum(second**2) + np.sum(ndimage.gaussian_filter(x[0], s, radius=2) ** 2)


def uniform(x: Any, c: Any) -> Any:
    return np.sum(ndimage.uniform_filter(x, (3, 2), mode="constant", cval=c) ** 2) + np.sum(
        ndimage.uniform_filter1d(x, 4, axis=0, origin=1) ** 2
    )


def smooth(x: Any, c: Any) -> Any:
    total = np.sum(signal.savgol_filter(x, 5, 2) ** 2) + np.sum(signal.savgol_filter(x, 3, 1, deriv=1, delta=0.5) ** 2)
    return (
        total
        + np.sum(signal.savgol_filter(x, 5, 3, mode="constant", cval=c) ** 2)
        + np.sum(signal.savgol_filter(x, 5, 2, mode="mirror") ** 3)
    )


def convolved(x: Any, y: Any) -> Any:
    total = np.sum(signal.convolve(x, y) ** 2) + np.sum(signal.convolve(y, x, "same") ** 2)
    total = total + np.sum(signal.correlate(x, y, "same") ** 3) + np.sum(signal.convolve(x, y, mode="valid") ** 2)
    return total + np.sum(signal.correlate(x, y) ** 2)


def convolved_solids(x: Any, y: Any) -> Any:
    both = np.stack((y, 2.0 * y))
    return np.sum(signal.convolve(x, both, "same") ** 2) + np.sum(signal.correlate(x, both) ** 3)


def convolved_planes(x: Any, y: Any) -> Any:
    total = np.sum(signal.convolve(x, y) ** 2) + np.sum(signal.convolve2d(x, y, "same") ** 2)
    return total + np.sum(signal.correlate(x, y, "valid") ** 3)


def mapped(x: Any, p: Any, c: Any) -> Any:
    nearest = ndimage.map_coordinates(x, p, order=1, mode="nearest")
    return np.sum(ndimage.map_coordinates(x, p, order=1, cval=c) ** 2) + np.sum(nearest**3)


CASES: dict[str, tuple[Callable[..., Any], ...]] = {
    "lfilter": (lambda b, a, x: np.sum(signal.lfilter(b, a, x) ** 2), B, A, X),
    "lfilter of rows": (lambda b, a, x: np.sum(signal.lfilter(b, a, x) ** 2), B, A, PLANE),
    "lfilter with a state": (state_of, B, A, X),
    "convolutions": (convolved, X, THREE),
    "convolutions of solids": (convolved_solids, np.stack((PLANE, PLANE**2)), KERNEL),
    "convolutions of planes": (convolved_planes, PLANE, KERNEL),
    "savgol": (smooth, X, 0.7),
    "savgol of rows": (lambda x: np.sum(signal.savgol_filter(x, 3, 1) ** 2), PLANE),
    "savgol of columns": (lambda x: np.sum(signal.savgol_filter(x, 3, 1, axis=0)[1] ** 2), PLANE),
    "lfilter of columns": (lambda b, x: np.sum(signal.lfilter(b, A, x, axis=0)[2] ** 2), B, PLANE),
    "modes": (all_modes, X, THREE, 0.7),
    "modes beyond the array": (all_modes, TWO, X, 0.7),
    "even weights": (lambda x, w: np.sum(ndimage.convolve1d(x, w, axis=0, origin=0) ** 2), PLANE, TWO),
    "planes": (in_plane, PLANE, KERNEL, 0.7),
    "gaussian": (gaussian, PLANE, 0.9),
    "uniform": (uniform, PLANE, 0.7),
    "coordinates": (mapped, PLANE, AT + 0.01, 0.7),
    "coordinates in a row": (lambda x, p: np.sum(ndimage.map_coordinates(x, p, order=1) ** 2), X, AT[:1] + 0.01),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_scipy(name):
    f, *given = CASES[name]
    value, bars = srcdiff.value_and_grad(f, wrt=tuple(range(len(given))), backend="python")(*given)
    dots = [RANDOM.normal(size=np.shape(x)) for x in given]

    def moved(step):
        return f(*[x + step * d for x, d in zip(given, dots, strict=True)])

    h = 1e-4
    wanted = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h)
    np.testing.assert_allclose(value, f(*given), rtol=1e-10)
    np.testing.assert_allclose(sum(np.sum(b * d) for b, d in zip(bars, dots, strict=True)), wanted, rtol=1e-6)


def test_both_modes_and_second_derivatives_agree():
    srcdiff.check(CASES["lfilter"][0], B, A, X, backend="python")
    srcdiff.check(lambda x, s: np.sum(ndimage.gaussian_filter(x, s) ** 2), X, 0.9, backend="python")


@pytest.mark.numba
def test_compiled_code_does_the_same():
    f, *given = CASES["lfilter"]
    found, wanted = (srcdiff.grad(f, wrt=(0, 1, 2), backend=b)(*given) for b in ("numba", "python"))
    for bar, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-10)


def test_filters_without_a_first_coefficient_raise():
    with pytest.raises(ValueError, match="is zero"):
        srcdiff.grad(lambda x: np.sum(signal.lfilter(B, np.array([0.0, 1.0]), x)), backend="python")(X)


def filters(x: Any) -> Any:
    both = ndimage.gaussian_filter(x, 1.0), ndimage.uniform_filter(x, 3)
    return *both, ndimage.uniform_filter1d(x, 3), ndimage.convolve1d(x, THREE), ndimage.gaussian_filter1d(x, 1.0)


def sum_of_filters(x: Any) -> Any:
    total = 0.0
    for filtered in filters(x):
        total = total + np.sum(filtered)
    return total


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_filters_of_no_elements(shape):
    x = np.zeros(shape)
    for found, wanted in zip(srcdiff.differentiable(filters, backend="python")(x), filters(x), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
    np.testing.assert_array_equal(srcdiff.grad(sum_of_filters, backend="python")(x), x, strict=True)


def test_a_convolution_of_no_elements():
    assert srcdiff.grad(lambda x: np.sum(ndimage.convolve(x, THREE)), backend="python")(np.zeros(0)).shape == (0,)


def test_an_array_without_elements_has_no_values_at_coordinates():
    with pytest.raises(ValueError, match="without elements"):
        srcdiff.grad(lambda x: np.sum(ndimage.map_coordinates(x, AT, order=1)), backend="python")(np.zeros((0, 3)))


REFUSED = {
    "integers": (lambda x: np.sum(ndimage.uniform_filter(np.arange(5)) * x[:5]), "integers"),
    "order": (lambda x: np.sum(ndimage.map_coordinates(x, AT[:1])), "order other than 1"),
    "mode": (lambda x: np.sum(ndimage.correlate1d(x, THREE, mode="odd")), "mode"),
    "several states": (lambda x: np.sum(signal.lfilter(B, A, np.outer(x, x), zi=np.ones((7, 3)))[0]), "with `zi`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    f, message = REFUSED[name]
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(f, backend="python")(X)
