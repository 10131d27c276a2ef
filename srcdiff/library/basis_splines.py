"""`BSpline`, `make_interp_spline` and `interp1d` of `scipy.interpolate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library import scipy_linalg
from srcdiff.library.interpolation_axes import (
    axis_first,
    flat,
    in_place,
    known_axis,
    moved_back,
    require_finite,
    shape_of,
    width_of,
)
from srcdiff.library.language import agree, each, is_array, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.piecewise_polynomials import along, piece_of
from srcdiff.signature.standing_classes import stands_for


@dataclass(frozen=True)
class BasisSpline:
    """A `BSpline` of one function, or of several; the first axis of `c` is that of the coefficients."""

    t: Any
    c: Any
    k: Any
    extrapolate: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> Any:
        if value.c.dtype.kind != "f":
            return False
        return BasisSpline if value.axis == 0 else OutsideAlongAxis

    def __call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        outside = self.extrapolate if extrapolate is None else extrapolate
        of = self.derivative(nu)
        if self.c.ndim != 1:
            return columns_at(of.t, np.asarray(of.c), of.k, x, outside)
        if not is_array(x):
            return spline_at(of.t, of.c, of.k, x, outside)
        places = np.asarray(x)
        result = np.empty(places.shape, np.float64)
        for i in each(places.shape):
            result[i] = spline_at(of.t, of.c, of.k, places[i], outside)
        return result

    def derivative(self: Any, nu: Any = 1) -> Any:
        t, c, k = np.asarray(self.t), np.asarray(self.c), self.k
        for _ in range(nu):
            if k == 0:
                raise ValueError("Order of derivative is larger than the degree of the spline.")
            c = differences(t, c, k)
            t = np.asarray(t[1:-1])
            k = k - 1
        return BasisSpline(t, c, k, self.extrapolate)


@dataclass(frozen=True)
class OutsideAlongAxis:
    """A `BSpline` from outside of the program, along an axis that is not the first."""

    t: Any
    c: Any
    k: Any
    extrapolate: Any
    axis: Any

    def __call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        return self.here()(x, nu, extrapolate)

    def derivative(self: Any, nu: Any = 1) -> Any:
        return self.here().derivative(nu)

    def here(self: Any) -> Any:
        return along(BasisSpline(self.t, self.c, self.k, self.extrapolate), known_axis(self.axis))


def differences(t: Any, c: Any, k: Any) -> Any:
    """The coefficients of the derivative (de Boor 1978, X.15)."""
    count = len(t) - k - 1
    result = np.zeros((max(count - 1, 0), *c.shape[1:]), np.float64)
    for i in range(count - 1):
        width = t[i + k + 1] - t[i + 1]
        if width > 0.0:
            for j in each(c.shape[1:]):
                result[(i, *j)] = k * (c[(i + 1, *j)] - c[(i, *j)]) / width
    return result


def columns_at(t: Any, c: Any, k: Any, x: Any, outside: Any) -> Any:
    """Several functions. The axes of their values follow those of x."""
    width = width_of(c.shape[1:])
    columns, places = np.reshape(c, (len(c), width)), flat(x)
    rows = np.empty((len(places), width), np.float64)
    for i in range(len(places)):
        for j in range(width):
            rows[i, j] = spline_at(t, columns[:, j], k, places[i], outside)
    return np.reshape(rows, shape_of(x) + c.shape[1:])


def interval_of(t: Any, k: Any, count: Any, x: Any) -> Any:
    """The interval between knots that contains x, among those in which all basis functions are defined."""
    return k + piece_of(t[k : count + 1], x) if count > k + 1 else k


def spline_at(t: Any, c: Any, k: Any, x: Any, outside: Any) -> Any:
    """De Boor's algorithm."""
    count = len(t) - k - 1
    if outside == "periodic":
        x = t[k] + (x - t[k]) % (t[count] - t[k])
    interval = interval_of(t, k, count, x)
    while interval > k and t[interval] == t[interval + 1]:
        interval -= 1
    values = np.empty(k + 1, np.float64)
    for j in range(k + 1):
        values[j] = c[interval - k + j]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left = t[interval - k + j]
            share = (x - left) / (t[interval + 1 + j - r] - left)
            values[j] = (1.0 - share) * values[j - 1] + share * values[j]
    found = values[k]
    if found != found:
        found = np.nan * (np.sum(c[interval - k : interval + 1]) + x)  # the derivatives are NaN, too
    if not outside and (x < t[k] or x > t[count]):
        found = np.nan
    return found


def spline(t: Any, c: Any, k: Any, extrapolate: Any = True, axis: Any = 0) -> Any:
    t, c = np.asarray(floats(t)), axis_first(np.asarray(floats(c)), axis)
    if len(t) < 2 * k + 2 or len(c) < len(t) - k - 1:
        raise ValueError("Knots, coefficients and degree are inconsistent.")
    return along(BasisSpline(t, c, k, extrapolate), in_place(axis, c.ndim))


def basis_at(t: Any, k: Any, interval: Any, x: Any) -> Any:
    """The basis functions that are nonzero in an interval (de Boor 1978, X)."""
    values = np.zeros(k + 1, np.float64)
    values[0] = 1.0
    for r in range(1, k + 1):
        carried = 0.0
        for j in range(r):
            left, right = t[interval + 1 + j - r], t[interval + 1 + j]
            part = values[j] / (right - left)
            values[j] = carried + (right - x) * part
            carried = (x - left) * part
        values[r] = carried
    return values


def knots_of(x: Any, k: Any) -> Any:
    """Knots at the points, or between them. The points next to the ends have no knots."""
    count = len(x)
    t = np.empty(count + k + 1, np.float64)
    for i in range(k + 1):
        t[i] = x[0]
        t[count + i] = x[count - 1]
    for i in range(count - k - 1):
        first = i + (k + 1) // 2
        t[k + 1 + i] = x[first] if k % 2 == 1 else 0.5 * (x[first] + x[first + 1])
    return t


def make_interp_spline(
    x: Any, y: Any, k: Any = 3, t: Any = None, bc_type: Any = None, axis: Any = 0, check_finite: Any = True
) -> Any:
    left, right = conditions_of(bc_type)
    x, y = np.asarray(floats(x)), axis_first(np.asarray(floats(y)), axis)
    agree(len(x), len(y), "Shapes of x and y are incompatible")
    require_finite(x, y)
    for i in range(len(x) - 1):
        if not x[i] < x[i + 1]:
            raise ValueError("Expect x to be strictly increasing")
    first, count = len(left), len(x) + len(left) + len(right)
    if len(x) < k + 1 and count == len(x):
        raise ValueError("there are fewer points than the degree needs")
    if t is not None:
        knots = np.asarray(floats(t))
    else:
        knots = knots_of(x, k) if len(left) + len(right) == 0 else knots_with_ends(x, k)
    agree(len(knots), count + k + 1, "the number of knots or of conditions does not fit to the points")
    bands = np.zeros((2 * k + 1, count), np.float64)
    values = np.zeros((count, *y.shape[1:]), np.float64)
    for i, (order, value) in enumerate(left):
        put_condition(bands, values, i, knots, k, k, x[0], order, value)
    for i in range(len(x)):
        interval = interval_of(knots, k, count, x[i])
        basis = basis_at(knots, k, interval, x[i])
        for j in range(k + 1):
            bands[k + first + i - (interval - k + j), interval - k + j] = basis[j]
        for j in each(y.shape[1:]):
            values[(first + i, *j)] = y[(i, *j)]
    for i, (order, value) in enumerate(right):
        put_condition(bands, values, first + len(x) + i, knots, k, count - 1, x[len(x) - 1], order, value)
    rows = np.reshape(values, (count, width_of(y.shape[1:]))) if y.ndim > 1 else values
    c = np.asarray(scipy_linalg.solve_banded((k, k), bands, rows))
    c = np.reshape(c, (count, *y.shape[1:])) if y.ndim > 1 else c
    return along(BasisSpline(knots, c, k, True), in_place(axis, y.ndim))


def conditions_of(bc_type: Any) -> Any:
    """The orders and values of the derivatives at both ends."""
    if isinstance(bc_type, tuple | list):
        left, right = bc_type
        return conditions_at(left), conditions_at(right)
    return conditions_at(bc_type), conditions_at(bc_type)


def conditions_at(end: Any) -> Any:
    if end is None or end == "not-a-knot":
        return ()
    if end == "clamped":
        return ((1, 0.0),)
    if end == "natural":
        return ((2, 0.0),)
    if not isinstance(end, tuple | list):
        unsupported("this `bc_type`")
    return tuple(end)


def knots_with_ends(x: Any, k: Any) -> Any:
    """All points as knots, those at the ends several times."""
    t = np.empty(len(x) + 2 * k, np.float64)
    for i in range(k):
        t[i] = x[0]
        t[len(x) + k + i] = x[len(x) - 1]
    for i in range(len(x)):
        t[k + i] = x[i]
    return t


def put_condition(
    bands: Any, values: Any, row: Any, t: Any, k: Any, interval: Any, x: Any, order: Any, value: Any
) -> None:
    """The equation for a derivative at an end."""
    for j in range(k + 1):
        unit = np.zeros(len(t) - k - 1, np.float64)
        unit[interval - k + j] = 1.0
        of = BasisSpline(t, unit, k, True).derivative(order)
        bands[k + row - (interval - k + j), interval - k + j] = spline_at(of.t, of.c, of.k, x, True)
    for j in each(values.shape[1:]):
        values[(row, *j)] = np.asarray(value)[j] if is_array(value) else value


# -- interp1d ---------------------------------------------------------------------------------------------------------


STEPS = ("nearest", "nearest-up", "previous", "next")
"""The kinds of `interp1d` whose value is that of one of the points."""


@dataclass(frozen=True)
class LinearInterpolant:
    """An `interp1d` that the program makes; `below` and `above` are the values outside of the points."""

    x: Any
    y: Any
    of: Any
    """A spline, the name of one of the steps, or None."""
    bounds_error: Any
    extrapolates: Any
    below: Any
    above: Any

    def __call__(self: Any, x: Any) -> Any:
        if not is_array(x):
            return self.at(x)
        places = np.asarray(x)
        result = np.empty(places.shape, np.float64)
        for i in each(places.shape):
            result[i] = self.at(places[i])
        return result

    def at(self: Any, x: Any) -> Any:
        is_outside = x < self.x[0] or x > self.x[-1]
        if self.bounds_error and is_outside:
            raise ValueError("A value in x_new is outside of the interpolation range.")
        if self.of in STEPS:
            found = self.y[nearby(self.x, x, self.of)]
        elif self.of is None:
            i = piece_of(self.x, x)
            found = self.y[i] + (self.y[i + 1] - self.y[i]) / (self.x[i + 1] - self.x[i]) * (x - self.x[i])
        else:
            found = spline_at(self.of.t, self.of.c, self.of.k, x, True)
        if self.of not in STEPS and found != found:
            found = np.nan * (np.sum(self.y) + np.sum(self.x) + x)  # the derivatives are NaN, too
        if not self.extrapolates and is_outside:
            found = self.below + 0.0 if x < self.x[0] else self.above + 0.0
        return found


def nearby(points: Any, x: Any, kind: Any) -> Any:
    """The point whose value a step function has at x: a binary search. The last one for NaN, as in SciPy."""
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high) // 2
        if kind == "previous":
            is_before = x < points[middle + 1]
        elif kind == "next":
            is_before = x <= points[middle]
        elif kind == "nearest":
            is_before = x <= points[middle + 1] / 2.0 + points[middle] / 2.0
        else:
            is_before = x < points[middle + 1] / 2.0 + points[middle] / 2.0
        if is_before:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class LinearInterpolants:
    """An `interp1d` of several functions that the program makes: of the columns of `y`, whose axes have this shape."""

    x: Any
    y: Any
    of: Any
    bounds_error: Any
    extrapolates: Any
    below: Any
    above: Any
    shape: Any
    axis: Any

    def __call__(self: Any, x: Any) -> Any:
        places = flat(x)
        rows = np.empty((len(places), self.y.shape[1]), np.float64)
        for j in range(self.y.shape[1]):
            of = self.of
            if of is not None and of not in STEPS:
                of = BasisSpline(of.t, np.asarray(of.c[:, j]), of.k, True)
            ends = self.below[j], self.above[j]
            one = LinearInterpolant(self.x, self.y[:, j], of, self.bounds_error, self.extrapolates, *ends)
            rows[:, j] = one(places)
        return moved_back(np.reshape(rows, shape_of(x) + self.shape), np.ndim(x), self.axis)


@dataclass(frozen=True)
class OutsideInterpolant:
    """An `interp1d` from outside the program: linear interpolation, or steps."""

    x: Any
    y: Any
    bounds_error: Any
    _extrapolate: Any
    _kind: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> Any:
        is_usual = value._extrapolate or bool(np.all(np.isnan(value._fill_value_orig)))
        if not is_usual:
            return False
        if value._kind == "spline":
            return OutsideSpline if value.y.ndim == 1 else OutsideSplines
        if value._kind not in ("linear", *STEPS):
            return False
        return OutsideInterpolant if value.y.ndim == 1 else OutsideInterpolants

    def __call__(self: Any, x: Any) -> Any:
        of = self._kind if self._kind in STEPS else None
        return LinearInterpolant(self.x, self.y, of, self.bounds_error, self._extrapolate, np.nan, np.nan)(x)


@dataclass(frozen=True)
class OutsideSpline:
    """An `interp1d` from outside the program: a spline."""

    x: Any
    _spline: Any
    bounds_error: Any
    _extrapolate: Any

    def __call__(self: Any, x: Any) -> Any:
        of = BasisSpline(self._spline.t, np.asarray(self._spline.c[:, 0]), self._spline.k, True)
        return LinearInterpolant(self.x, self.x, of, self.bounds_error, self._extrapolate, np.nan, np.nan)(x)


@dataclass(frozen=True)
class OutsideInterpolants:
    """An `interp1d` of several functions from outside the program: linear interpolation, or steps."""

    x: Any
    _y: Any
    bounds_error: Any
    _extrapolate: Any
    _kind: Any
    _y_extra_shape: Any
    _y_axis: Any

    def __call__(self: Any, x: Any) -> Any:
        ends = np.full(self._y.shape[1], np.nan)
        of = self._kind if self._kind in STEPS else None
        made = self.x, self._y, of, self.bounds_error, self._extrapolate, ends, ends
        return LinearInterpolants(*made, self._y_extra_shape, known_axis(self._y_axis))(x)


@dataclass(frozen=True)
class OutsideSplines:
    """An `interp1d` of several functions from outside the program: splines."""

    x: Any
    _y: Any
    _spline: Any
    bounds_error: Any
    _extrapolate: Any
    _y_extra_shape: Any
    _y_axis: Any

    def __call__(self: Any, x: Any) -> Any:
        ends = np.full(self._y.shape[1], np.nan)
        made = self.x, self._y, self._spline, self.bounds_error, self._extrapolate, ends, ends
        return LinearInterpolants(*made, self._y_extra_shape, known_axis(self._y_axis))(x)


def interp1d(
    x: Any,
    y: Any,
    kind: Any = "linear",
    axis: Any = -1,
    copy: Any = True,
    bounds_error: Any = None,
    fill_value: Any = np.nan,
    assume_sorted: Any = False,
) -> Any:
    x, y = np.asarray(floats(x)), axis_first(np.asarray(floats(y)), axis)
    agree(len(x), len(y), "x and y arrays must be equal in length along interpolation axis.")
    shape, place = y.shape[1:], in_place(axis, y.ndim)
    is_one = y.ndim == 1
    y = y if is_one else np.reshape(y, (len(y), width_of(shape)))
    if not assume_sorted:
        order = np.argsort(x, kind="stable")
        x, y = np.asarray(x[order]), np.asarray(y[order])
    if len(x) < 2:
        raise ValueError("x and y arrays must have at least 2 entries")
    of = None
    if kind in ("quadratic", "cubic"):
        of = make_interp_spline(x, y, 2 if kind == "quadratic" else 3)
    elif kind in STEPS:
        of = kind
    elif kind != "linear" and kind != "slinear":
        unsupported("`interp1d` of this kind", "use `linear`, `nearest`, `previous`, `next`, `quadratic` or `cubic`")
    extrapolates = isinstance(fill_value, str)
    below, above = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    if extrapolates and kind in ("previous", "next"):
        extrapolates, raises = False, False
        below, above = (np.nan, y[-1]) if kind == "previous" else (y[0], np.nan)
    elif extrapolates:
        below, above, raises = 0.0, 0.0, False
    elif isinstance(fill_value, tuple):
        raises = False if bounds_error is None else bounds_error
    else:
        is_given = not (isinstance(fill_value, float) and fill_value != fill_value)
        raises = bounds_error if bounds_error is not None else not is_given
    if is_one:
        return LinearInterpolant(x, y, of, raises, extrapolates, below, above)
    ends = end_values(below, shape), end_values(above, shape)
    return LinearInterpolants(x, y, of, raises, extrapolates, *ends, shape, place)


def end_values(value: Any, shape: Any) -> Any:
    """The values of all functions outside of the points."""
    return flat(np.asarray(np.broadcast_to(np.asarray(value) + 0.0, shape)))


MAKERS: dict[str, Any] = {"BSpline": spline, "make_interp_spline": make_interp_spline, "interp1d": interp1d}


def stand_for_scipys() -> None:
    stands_for("scipy.interpolate", "BSpline", BasisSpline)
    stands_for("scipy.interpolate", "interp1d", OutsideInterpolant)
