"""`scipy.interpolate`: piecewise cubic interpolants, made inside or outside of a program.

The pieces are stored as in SciPy: c[j, i] is the coefficient of (x - x[i]) ** (k - 1 - j) in piece i. Values may have
more axes, and are columns of a matrix then. At a breakpoint, the derivative is that of the piece on its right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
from srcdiff.signature.standing_classes import stands_for


@dataclass(frozen=True)
class PiecewisePolynomial:
    """A `PPoly`, or one of SciPy's classes that are derived from it."""

    c: Any
    x: Any
    extrapolate: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> Any:
        if value.c.ndim < 2 or value.c.dtype.kind != "f":
            return False
        return PiecewisePolynomial if value.axis == 0 else OutsideAlongAxis

    def __call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        outside = self.extrapolate if extrapolate is None else extrapolate
        if nu < 0:
            return self.antiderivative(-nu)(x, 0, outside)
        if self.c.ndim == 2:
            return of_each(value_at, self.c, self.x, x, nu, outside)
        return columns_of_each(self.c, self.x, x, nu, outside)

    def derivative(self: Any, nu: Any = 1) -> Any:
        if nu < 0:
            return self.antiderivative(-nu)
        return PiecewisePolynomial(derived(self.c, nu), self.x, self.extrapolate)

    def antiderivative(self: Any, nu: Any = 1) -> Any:
        c = np.asarray(self.c)
        for _ in range(nu):
            c = integrated(c, self.x)
        return PiecewisePolynomial(c, self.x, self.extrapolate)

    def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
        outside = self.extrapolate if extrapolate is None else extrapolate
        if outside == "periodic":
            unsupported("an integral of a periodic function")
        whole = self.antiderivative()
        return whole(b, 0, outside) - whole(a, 0, outside)


@dataclass(frozen=True)
class AlongAxis:
    """An interpolant of values along an axis that is not the first, made inside of a program."""

    of: Any
    axis: Any

    def __call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        return moved_back(self.of(x, nu, extrapolate), np.ndim(x), self.axis)

    def derivative(self: Any, nu: Any = 1) -> Any:
        return AlongAxis(self.of.derivative(nu), self.axis)

    def antiderivative(self: Any, nu: Any = 1) -> Any:
        return AlongAxis(self.of.antiderivative(nu), self.axis)

    def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
        return self.of.integrate(a, b, extrapolate)


@dataclass(frozen=True)
class OutsideAlongAxis:
    """A `PPoly` from outside of the program, along an axis that is not the first."""

    c: Any
    x: Any
    extrapolate: Any
    axis: Any

    def __call__(self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        return self.here()(x, nu, extrapolate)

    def derivative(self: Any, nu: Any = 1) -> Any:
        return self.here().derivative(nu)

    def antiderivative(self: Any, nu: Any = 1) -> Any:
        return self.here().antiderivative(nu)

    def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
        return self.here().integrate(a, b, extrapolate)

    def here(self: Any) -> Any:
        return along(PiecewisePolynomial(self.c, self.x, self.extrapolate), known_axis(self.axis))


def along(of: Any, axis: Any) -> Any:
    return of if axis == 0 else AlongAxis(of, axis)


# -- evaluation -------------------------------------------------------------------------------------------------------


def of_each(function: Any, c: Any, knots: Any, x: Any, nu: Any, outside: Any) -> Any:
    if not is_array(x):
        return function(c, knots, x, nu, outside)
    places = np.asarray(x)
    result = np.empty(places.shape, np.float64)
    for i in each(places.shape):
        result[i] = function(c, knots, places[i], nu, outside)
    return result


def columns_of_each(c: Any, knots: Any, x: Any, nu: Any, outside: Any) -> Any:
    """Several functions. The axes of their values follow those of x."""
    width = width_of(c.shape[2:])
    columns, places = np.reshape(c, (c.shape[0], c.shape[1], width)), flat(x)
    rows = np.empty((len(places), width), np.float64)
    for i in range(len(places)):
        for j in range(width):
            rows[i, j] = value_at(columns[:, :, j], knots, places[i], nu, outside)
    return np.reshape(rows, shape_of(x) + c.shape[2:])


def piece_of(knots: Any, x: Any) -> Any:
    """The piece that contains x. Outside, it is the first or the last one."""
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if x >= knots[middle]:
            low = middle
        else:
            high = middle
    return low


def value_at(c: Any, knots: Any, x: Any, nu: Any, outside: Any) -> Any:
    if outside == "periodic":
        x = knots[0] + (x - knots[0]) % (knots[-1] - knots[0])
    i = piece_of(knots, x)
    distance = x - knots[i]
    total = 0.0
    for j in range(c.shape[0] - nu):
        factor = 1.0
        for m in range(nu):
            factor *= c.shape[0] - 1 - j - m
        total = total * distance + factor * c[j, i]
    if total != total:
        total = np.nan * (np.sum(c[:, i]) + distance)  # the derivatives are NaN, too
    if not outside and (x < knots[0] or x > knots[-1]):
        total = np.nan
    return total


def derived(c: Any, nu: Any) -> Any:
    """The coefficients of a derivative."""
    result = np.zeros((max(c.shape[0] - nu, 1), *c.shape[1:]), np.float64)
    for j in range(c.shape[0] - nu):
        factor = 1.0
        for m in range(nu):
            factor *= c.shape[0] - 1 - j - m
        result[j] = factor * c[j]
    return result


def integrated(c: Any, knots: Any) -> Any:
    """The coefficients of the integral from the first breakpoint."""
    order = c.shape[0]
    result = np.zeros((order + 1, *c.shape[1:]), np.float64)
    for k in each(c.shape[2:]):
        total = 0.0
        for i in range(c.shape[1]):
            width = knots[i + 1] - knots[i]
            result[(order, i, *k)] = total
            piece = 0.0
            for j in range(order):
                result[(j, i, *k)] = c[(j, i, *k)] / (order - j)
                piece = (piece + result[(j, i, *k)]) * width
            total += piece
    return result


# -- making -----------------------------------------------------------------------------------------------------------


def checked_points(x: Any, y: Any, axis: Any) -> Any:
    """The points and their values as columns."""
    x, y = np.asarray(floats(x)), axis_first(np.asarray(floats(y)), axis)
    if x.ndim != 1:
        unsupported("interpolation between points that are no vector")
    agree(len(x), y.shape[0], "The length of `y` along `axis` does not match the length of `x`")
    if len(x) < 2:
        raise ValueError("`x` must contain at least 2 elements.")
    require_finite(x, y)
    for i in range(len(x) - 1):
        if not x[i] < x[i + 1]:
            raise ValueError("`x` must be strictly increasing sequence.")
    return x, np.reshape(y, (len(y), width_of(y.shape[1:])))


def by_slopes(x: Any, values: Any, slopes: Any, y: Any, axis: Any, extrapolate: Any) -> Any:
    """The pieces with these values and slopes at the breakpoints; `y` are the values as they were given."""
    count, width = values.shape
    c = np.empty((4, count - 1, width), np.float64)
    for i in range(count - 1):
        h = x[i + 1] - x[i]
        for j in range(width):
            secant = (values[i + 1, j] - values[i, j]) / h
            bend = (slopes[i, j] + slopes[i + 1, j] - 2.0 * secant) / h
            c[0, i, j] = bend / h
            c[1, i, j] = (secant - slopes[i, j]) / h - bend
            c[2, i, j] = slopes[i, j]
            c[3, i, j] = values[i, j]
    if np.ndim(y) == 1:
        return PiecewisePolynomial(c[:, :, 0], x, extrapolate)
    shape = axis_first(np.asarray(y), axis).shape[1:]
    whole = PiecewisePolynomial(np.reshape(c, (4, count - 1, *shape)), x, extrapolate)
    return along(whole, in_place(axis, np.ndim(y)))


def hermite(x: Any, y: Any, dydx: Any, axis: Any = 0, extrapolate: Any = None) -> Any:
    points, values = checked_points(x, y, axis)
    _, slopes = checked_points(x, dydx, axis)
    agree(values.shape[1], slopes.shape[1], "`dydx` and `y` have different shapes")
    return by_slopes(points, values, slopes, y, axis, True if extrapolate is None else extrapolate)


def pchip(x: Any, y: Any, axis: Any = 0, extrapolate: Any = None) -> Any:
    """Fritsch and Butland 1984: harmonic means of the slopes keep the values monotone."""
    points, values = checked_points(x, y, axis)
    count, width = values.shape
    slopes = np.zeros((count, width), np.float64)
    for j in range(width):
        for i in range(1, count - 1):
            h0, h1 = points[i] - points[i - 1], points[i + 1] - points[i]
            m0, m1 = (values[i, j] - values[i - 1, j]) / h0, (values[i + 1, j] - values[i, j]) / h1
            if m0 * m1 > 0.0:
                w0, w1 = 2.0 * h1 + h0, h1 + 2.0 * h0
                slopes[i, j] = (w0 + w1) / (w0 / m0 + w1 / m1)
        if count == 2:
            slopes[0, j] = (values[1, j] - values[0, j]) / (points[1] - points[0])
            slopes[1, j] = (values[1, j] - values[0, j]) / (points[1] - points[0])
        else:
            slopes[0, j] = slope_at_end(points, values[:, j], 0, 1, 2)
            slopes[count - 1, j] = slope_at_end(points, values[:, j], count - 1, count - 2, count - 3)
    return by_slopes(points, values, slopes, y, axis, True if extrapolate is None else extrapolate)


def slope_at_end(x: Any, y: Any, last: Any, second: Any, third: Any) -> Any:
    """A three-point formula, limited so that the shape is preserved."""
    h0, h1 = np.abs(x[second] - x[last]), np.abs(x[third] - x[second])
    m0 = (y[second] - y[last]) / (x[second] - x[last])
    m1 = (y[third] - y[second]) / (x[third] - x[second])
    slope = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    if np.sign(slope) != np.sign(m0):
        slope = 0.0
    elif np.sign(m0) != np.sign(m1) and np.abs(slope) > 3.0 * np.abs(m0):
        slope = 3.0 * m0
    return slope


def akima(x: Any, y: Any, axis: Any = 0, *, method: Any = "akima", extrapolate: Any = None) -> Any:
    """Akima 1970. `makima` also weights by the sizes of the slopes."""
    points, values = checked_points(x, y, axis)
    count, width = values.shape
    slopes = np.empty((count, width), np.float64)
    m = np.empty(count + 3, np.float64)
    for j in range(width):
        if count == 2:
            slopes[0, j] = (values[1, j] - values[0, j]) / (points[1] - points[0])
            slopes[1, j] = (values[1, j] - values[0, j]) / (points[1] - points[0])
        else:
            for i in range(count - 1):
                m[i + 2] = (values[i + 1, j] - values[i, j]) / (points[i + 1] - points[i])
            m[1] = 2.0 * m[2] - m[3]
            m[0] = 2.0 * m[1] - m[2]
            m[count + 1] = 2.0 * m[count] - m[count - 1]
            m[count + 2] = 2.0 * m[count + 1] - m[count]
            largest = 0.0
            for i in range(count):
                largest = max(largest, weight(m, i + 2, method) + weight(m, i, method))
            for i in range(count):
                after, before = weight(m, i + 2, method), weight(m, i, method)
                if after + before > 1e-9 * largest:
                    slopes[i, j] = m[i + 1] + before / (after + before) * (m[i + 2] - m[i + 1])
                else:
                    slopes[i, j] = 0.5 * (m[i + 3] + m[i])
    return by_slopes(points, values, slopes, y, axis, False if extrapolate is None else extrapolate)


def weight(m: Any, i: Any, method: Any) -> Any:
    change = np.abs(m[i + 1] - m[i])
    return change + 0.5 * np.abs(m[i + 1] + m[i]) if method == "makima" else change


def cubic_spline(x: Any, y: Any, axis: Any = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> Any:
    points, values = checked_points(x, y, axis)
    if bc_type == "periodic":
        slopes = periodic_slopes(points, values)
        return by_slopes(points, values, slopes, y, axis, "periodic" if extrapolate is None else extrapolate)
    if isinstance(bc_type, tuple):
        start, end = bc_type
    else:
        start, end = bc_type, bc_type
    count, width = values.shape
    lower, diagonal, upper = np.zeros(count), np.ones(count), np.zeros(count)
    right = np.zeros((count, width), np.float64)
    h, secant = np.empty(count - 1), np.empty((count - 1, width), np.float64)
    for i in range(count - 1):
        h[i] = points[i + 1] - points[i]
        for j in range(width):
            secant[i, j] = (values[i + 1, j] - values[i, j]) / h[i]
    for i in range(1, count - 1):
        lower[i], diagonal[i], upper[i] = h[i], 2.0 * (h[i - 1] + h[i]), h[i - 1]
        for j in range(width):
            right[i, j] = 3.0 * (h[i] * secant[i - 1, j] + h[i - 1] * secant[i, j])
    if start == "not-a-knot":
        if count == 2:
            right[0] = secant[0]
        elif count == 3 and end == "not-a-knot":
            upper[0] = 1.0
            right[0] = 2.0 * secant[0]
        else:
            both = h[0] + h[1]
            diagonal[0], upper[0] = h[1], both
            right[0] = ((h[0] + 2.0 * both) * h[1] * secant[0] + h[0] ** 2 * secant[1]) / both
    else:
        order, slope = condition_of(start)
        slope = row_of(slope)
        if order == 1:
            right[0] = slope
        else:
            diagonal[0], upper[0] = 2.0 * h[0], h[0]
            right[0] = 3.0 * h[0] * secant[0] - 0.5 * slope * h[0] ** 2
    last = count - 1
    if end == "not-a-knot":
        if count == 2:
            right[1] = secant[0]
        elif count == 3 and start == "not-a-knot":
            lower[2] = 1.0
            right[2] = 2.0 * secant[1]
        else:
            both = h[last - 1] + h[last - 2]
            diagonal[last], lower[last] = h[last - 2], both
            right[last] = (
                h[last - 1] ** 2 * secant[last - 2] + (2.0 * both + h[last - 1]) * h[last - 2] * secant[last - 1]
            ) / both
    else:
        order, slope = condition_of(end)
        slope = row_of(slope)
        if order == 1:
            right[last] = slope
        else:
            diagonal[last], lower[last] = 2.0 * h[last - 1], h[last - 1]
            right[last] = 3.0 * h[last - 1] * secant[last - 1] + 0.5 * slope * h[last - 1] ** 2
    slopes = tridiagonal_solution(lower, diagonal, upper, right)
    return by_slopes(points, values, slopes, y, axis, True if extrapolate is None else extrapolate)


def row_of(value: Any) -> Any:
    """The value for all functions, or a vector of their values."""
    return flat(value) if is_array(value) else value


def condition_of(bc: Any) -> Any:
    """The order of the derivative at an end, and its value."""
    if bc == "clamped":
        return 1, 0.0
    if bc == "natural":
        return 2, 0.0
    if not isinstance(bc, tuple):
        unsupported("this `bc_type`")
    order, value = bc
    if order != 1 and order != 2:
        raise ValueError("The specified derivative order must be 1 or 2.")
    return order, value


def tridiagonal_solution(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """Elimination without pivoting, which the systems of splines do not need."""
    count, width = right.shape
    ratio = np.empty(count, np.float64)
    x = np.empty((count, width), np.float64)
    for i in range(count):
        below = lower[i] if i > 0 else 0.0
        pivot = diagonal[i] - below * ratio[i - 1] if i > 0 else diagonal[i]
        ratio[i] = upper[i] / pivot
        for j in range(width):
            x[i, j] = (right[i, j] - below * x[i - 1, j]) / pivot if i > 0 else right[i, j] / pivot
    for i in range(count - 2, -1, -1):
        for j in range(width):
            x[i, j] -= ratio[i] * x[i + 1, j]
    return x


def periodic_slopes(points: Any, values: Any) -> Any:
    """A periodic tridiagonal system: a tridiagonal matrix plus one of rank one (Sherman and Morrison 1950)."""
    count, width = len(points) - 1, values.shape[1]
    slopes = np.zeros((count + 1, width), np.float64)
    for j in range(width):
        if np.abs(values[0, j] - values[count, j]) > 1e-8 + 1e-15 * np.abs(values[count, j]):
            raise ValueError("The first and last `y` point along axis 0 must be identical when bc_type='periodic'.")
    if count == 1:
        return slopes
    h, secant = np.empty(count), np.empty((count, width), np.float64)
    for i in range(count):
        h[i] = points[i + 1] - points[i]
        for j in range(width):
            secant[i, j] = (values[i + 1, j] - values[i, j]) / h[i]
    if count == 2:  # both slopes are equal to the weighted mean
        for j in range(width):
            middle = (secant[0, j] * h[1] + secant[1, j] * h[0]) / (h[0] + h[1])
            slopes[0, j], slopes[2, j] = middle, middle
            slopes[1, j] = middle
        return slopes
    lower, diagonal, upper = np.empty(count), np.empty(count), np.empty(count)
    right = np.zeros((count, width + 1), np.float64)
    for i in range(count):
        before = h[i - 1] if i > 0 else h[count - 1]
        lower[i], diagonal[i], upper[i] = h[i], 2.0 * (before + h[i]), before
        for j in range(width):
            of_before = secant[i - 1, j] if i > 0 else secant[count - 1, j]
            right[i, j] = 3.0 * (h[i] * of_before + before * secant[i, j])
    corner, other = h[0], upper[count - 1]  # the corners of the matrix
    scale = -diagonal[0]
    diagonal[0] -= scale
    diagonal[count - 1] -= corner * other / scale
    right[0, width] = scale
    right[count - 1, width] = other
    lower[0], upper[count - 1] = 0.0, 0.0
    x = tridiagonal_solution(lower, diagonal, upper, right)
    for j in range(width):
        share = (x[0, j] + corner / scale * x[count - 1, j]) / (
            1.0 + x[0, width] + corner / scale * x[count - 1, width]
        )
        for i in range(count):
            slopes[i, j] = x[i, j] - share * x[i, width]
        slopes[count, j] = slopes[0, j]
    return slopes


def ppoly(c: Any, x: Any, extrapolate: Any = None, axis: Any = 0) -> Any:
    if axis != 0:
        unsupported("`PPoly` with an axis")
    return PiecewisePolynomial(floats(c), floats(x), True if extrapolate is None else extrapolate)


MAKERS: dict[str, Any] = {
    "CubicSpline": cubic_spline,
    "PchipInterpolator": pchip,
    "Akima1DInterpolator": akima,
    "CubicHermiteSpline": hermite,
    "PPoly": ppoly,
}


def stand_for_scipys() -> None:
    for name in MAKERS:
        stands_for("scipy.interpolate", name, PiecewisePolynomial)
