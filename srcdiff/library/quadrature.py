"""Integrals of functions and of samples, for `scipy.integrate`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from srcdiff.library.distributions import stop_gradient
from srcdiff.library.language import as_tuple, is_array, structural, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.reductions import trapezoid as trapezoid

# -------------------------------------------------------------------------------------------------------- of functions

KRONROD_NODES = (
    *(0.9956571630258081, 0.9739065285171717, 0.9301574913557082, 0.8650633666889845, 0.7808177265864169),
    *(0.6794095682990244, 0.5627571346686047, 0.4333953941292472, 0.2943928627014602, 0.14887433898163122),
)
KRONROD_WEIGHTS = (
    *(0.011694638867371874, 0.032558162307964725, 0.054755896574352, 0.07503967481091996, 0.0931254545836976),
    *(0.10938715880229764, 0.12349197626206584, 0.13470921731147334, 0.14277593857706009, 0.1477391049013385),
)
KRONROD_MIDDLE = 0.1494455540029169
GAUSS_WEIGHTS = (0.06667134430868814, 0.1494513491505806, 0.21908636251598204, 0.26926671930999635, 0.29552422471475287)


@structural
def kronrod() -> tuple[tuple[float, ...], ...]:
    """The nodes between -1 and 1, and the weights of Kronrod and of Gauss: 21 of each (Piessens and others 1983)."""
    nodes = (*(-x for x in KRONROD_NODES), 0.0, *KRONROD_NODES[::-1])
    weights = (*KRONROD_WEIGHTS, KRONROD_MIDDLE, *KRONROD_WEIGHTS[::-1])
    half = tuple(GAUSS_WEIGHTS[k // 2] if k % 2 else 0.0 for k in range(10))
    return nodes, weights, (*half, 0.0, *half[::-1])


def quad(
    func: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: Any = 1.49e-08,
    epsrel: Any = 1.49e-08,
    limit: Any = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: Any = False,
) -> Any:
    """Adaptive Gauss-Kronrod quadrature between the points, and with a weight as a part of the integrand."""
    if full_output:
        unsupported(
            "`scipy.integrate.quad` with `full_output`", "leave it out: the integral and its error are returned"
        )
    if complex_func:
        unsupported(
            "`scipy.integrate.quad` with `complex_func`", "integrate the real and the imaginary part, one by one"
        )
    a, b = a * 1.0, b * 1.0
    if weight is None:
        return between_points(func, a, b, as_tuple(args), epsabs, epsrel, limit, points)
    if weight != "cos" and weight != "sin":
        unsupported(
            "`scipy.integrate.quad` with this `weight`",
            "substitute a variable that removes the singularity, and integrate without `weight`",
        )
    if np.isinf(a) or np.isinf(b):
        raise ValueError("quad with weight='cos' or 'sin' needs finite limits here")

    def weighted(x: Any, *more: Any) -> Any:
        turned = np.cos(wvar * x) if weight == "cos" else np.sin(wvar * x)
        return number(func(x, *more)) * turned

    return between_points(weighted, a, b, as_tuple(args), epsabs, epsrel, limit, points)


def between_points(func: Any, a: Any, b: Any, args: Any, epsabs: Any, epsrel: Any, limit: Any, points: Any) -> Any:
    """The integral, as a sum of those between breakpoints, which have derivatives.

    Where the integrand jumps at a breakpoint, the derivative of the integral with respect to it is the jump.
    """
    if points is None:
        return whole_integral(func, a, b, args, epsabs, epsrel, limit)
    if np.isinf(a) or np.isinf(b):
        raise ValueError("Infinity inputs cannot be used with break points.")
    places = np.sort(np.asarray(floats(points)))
    integral, error = 0.0, 0.0
    start = min(a, b)
    end = max(a, b)
    for k in range(len(places) + 1):
        stop = end
        if k < len(places):
            stop = min(max(places[k], start), end)
        if stop > start:
            part, of_part = whole_integral(func, start, stop, args, epsabs / (len(places) + 1), epsrel, limit)
            integral += part
            error += of_part
            start = stop
    return integral if a <= b else -integral, error


def whole_integral(func: Any, a: Any, b: Any, args: Any, epsabs: Any, epsrel: Any, limit: Any) -> Any:
    """The interval with the largest error is halved. The intervals are constants."""
    nodes, weights, fewer = kronrod_arrays()

    def integrand(u: Any) -> Any:
        """The integrand, transformed to the interval from 0 to 1."""
        if np.isinf(a) and np.isinf(b):
            v = 2.0 * u - 1.0
            x, slope = v / (1.0 - v * v), 2.0 * (1.0 + v * v) / ((1.0 - v * v) * (1.0 - v * v))
            slope = slope if b > a else -slope
        elif np.isinf(b):
            x, slope = (a + u / (1.0 - u), 1.0 / ((1.0 - u) * (1.0 - u)))
            if b < 0.0:
                x, slope = 2.0 * a - x, -slope
        elif np.isinf(a):
            x, slope = (b - u / (1.0 - u), 1.0 / ((1.0 - u) * (1.0 - u)))
            if a > 0.0:
                x, slope = 2.0 * b - x, -slope
        else:
            x, slope = a + u * (b - a), b - a
        return slope * number(func(x, *args))

    def of_part(low: Any, high: Any) -> Any:
        """The integral over an interval, and an estimate of its error."""
        total, other = 0.0, 0.0
        for k in range(21):
            value = integrand(low + 0.5 * (nodes[k] + 1.0) * (high - low))
            total += 0.5 * (high - low) * weights[k] * value
            other += 0.5 * (high - low) * fewer[k] * value
        return total, abs(total - other)

    lows, highs, error = parts_of(of_part, epsabs, epsrel, limit)
    integral = 0.0
    for i in range(len(lows)):
        integral += of_part(lows[i], highs[i])[0]
    if not error <= max(epsabs, epsrel * abs(integral)):
        warnings.warn("the integral is less accurate than `epsabs` and `epsrel` ask for", stacklevel=2)
    return integral, error


def number(x: Any) -> Any:
    return np.sum(x) if is_array(x) else x


def kronrod_arrays() -> Any:
    nodes, weights, fewer = kronrod()
    return np.array(nodes), np.array(weights), np.array(fewer)


def parts_of(of_part: Any, epsabs: Any, epsrel: Any, limit: Any) -> Any:
    """Intervals from 0 to 1 for the required accuracy, and the error. They have no derivatives."""
    lows, highs = np.zeros(limit), np.ones(limit)
    totals, errors = np.zeros(limit), np.zeros(limit)
    first, error = of_part(0.0, 1.0)
    totals[0], errors[0] = stop_gradient(first), stop_gradient(error)
    count = 1
    while count < limit:
        worst, total, error = 0, 0.0, 0.0
        for i in range(count):
            total += totals[i]
            error += errors[i]
            if errors[i] > errors[worst]:
                worst = i
        if not error > max(epsabs, epsrel * abs(total)):
            break
        middle = 0.5 * (lows[worst] + highs[worst])
        lows[count], highs[count] = middle, highs[worst]
        highs[worst] = middle
        for i in range(2):
            place = worst if i == 0 else count
            part, error = of_part(lows[place], highs[place])
            totals[place], errors[place] = stop_gradient(part), stop_gradient(error)
        count += 1
    error = 0.0
    for i in range(count):
        error += errors[i]
    return np.copy(lows[:count]), np.copy(highs[:count]), error


def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: Any = 5) -> Any:
    places, factors = gauss(n)
    half = 0.5 * (b - a)
    y = np.asarray(func(half * (np.array(places) + 1.0) + a, *as_tuple(args)))
    return half * np.sum(np.array(factors) * y, axis=-1), None


@structural
def gauss(count: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The nodes and weights of Gauss-Legendre quadrature."""
    if not isinstance(count, int):
        raise ValueError("the number of points must be known at compile time")
    places, factors = np.polynomial.legendre.leggauss(count)
    return tuple(places.tolist()), tuple(factors.tolist())


# ---------------------------------------------------------------------------------------------------------- of samples


def moved(y: Any, axis: Any) -> Any:
    return np.moveaxis(floats(np.asarray(y)), axis, -1)


def distances(y: Any, x: Any, dx: Any, axis: Any) -> Any:
    """The distances between the samples along the last axis."""
    if x is None:
        return np.full(y.shape[-1] - 1, dx * 1.0)
    places = floats(np.asarray(x))
    return np.diff(places) if places.ndim == 1 else np.diff(np.moveaxis(places, axis, -1))


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Any:
    y = moved(y, axis)
    steps = 0.5 * distances(y, x, dx, axis) * (y[..., 1:] + y[..., :-1])
    found = np.cumsum(steps, axis=-1)
    if initial is not None:
        begin = np.full((*y.shape[:-1], 1), initial * 1.0)
        found = np.concatenate((begin, found), axis=-1)
    return np.moveaxis(found, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: Any = -1) -> Any:
    """By parabolas. For an even number of samples, the last interval is corrected (Cartwright 2017)."""
    y = moved(y, axis)
    h = distances(y, x, dx, axis)
    count = y.shape[-1]
    if count == 2:
        return np.sum(0.5 * h * (y[..., 1:] + y[..., :-1]), axis=-1)
    if count % 2 == 1:
        return by_parabolas(y, h, count)
    before, last = h[..., -2], h[..., -1]
    alpha = (2.0 * last * last + 3.0 * before * last) / (6.0 * (before + last))
    beta = (last * last + 3.0 * before * last) / (6.0 * before)
    eta = last * last * last / (6.0 * before * (before + last))
    correction = alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]
    return computed(by_parabolas(y, h, count - 1) + correction)


def computed(x: Any) -> Any:
    return np.asarray(x) if is_array(x) else x


def by_parabolas(y: Any, h: Any, count: Any) -> Any:
    """The integral of an odd number of first samples."""
    first, second = h[..., 0 : count - 1 : 2], h[..., 1 : count - 1 : 2]
    left, middle, right = y[..., 0 : count - 2 : 2], y[..., 1 : count - 1 : 2], y[..., 2:count:2]
    both = first + second
    parts = (2.0 - second / first) * left + both * both / (first * second) * middle + (2.0 - first / second) * right
    return np.sum(both / 6.0 * parts, axis=-1)


TAKES_COMPLEX = frozenset((trapezoid, simpson, cumulative_trapezoid))
"""The functions that support complex numbers."""
