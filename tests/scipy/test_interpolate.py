"""`scipy.interpolate`: interpolants made inside and outside, with respect to points, values and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import interpolate as si

import srcdiff

RANDOM = np.random.default_rng(1)
X = np.array([0.0, 1.0, 1.7, 3.0, 4.5])
Y = np.array([1.0, -0.5, 2.0, 0.3, 0.9])
COLUMNS = RANDOM.normal(size=(5, 2))
AT = np.array([0.2, 1.4, 3.3, 4.4, 2.0])
BEYOND = np.array([-1.0, 0.5, 6.0])
RING = np.append(X, 6.0)
KNOTS = np.array([0.0, 0.1, 0.2, 1.0, 2.0, 3.0, 4.5, 5.0])
GRID = np.array([0.0, 1.0, 2.5])
OTHER = np.array([0.0, 0.7, 1.5, 2.0])
TABLE = RANDOM.normal(size=(3, 4))
PLACES = np.array([[0.3, 0.2], [1.7, 1.1], [2.2, 1.9]])

cubic, spline = si.CubicSpline(X, Y), si.make_interp_spline(X, Y)
columns = si.make_interp_spline(X, COLUMNS)
line, smooth = si.interp1d(X, Y), si.interp1d(X, Y, "cubic")
grid, akima = si.RegularGridInterpolator((GRID, OTHER), TABLE), si.Akima1DInterpolator(X, Y)


def few_points(x: Any, y: Any, p: Any) -> Any:
    three, two = si.CubicSpline(x[:3], y[:3]), si.CubicSpline(x[:2], y[:2])
    return np.sum(three(p[:2]) ** 2) + two(p[0]) + si.PchipInterpolator(x[:2], y[:2])(p[0])


def conditions(x: Any, y: Any, p: Any) -> Any:
    first = si.CubicSpline(x, y, bc_type=((1, y[0]), (2, p[0])))
    second = si.CubicSpline(x, y, bc_type=("not-a-knot", "natural"))
    return np.sum(first(p) ** 2) + np.sum(second(p)) + si.CubicSpline(x, y, bc_type="clamped")(p[0])


def methods(x: Any, y: Any, p: Any) -> Any:
    of = si.CubicSpline(x, y)
    return of.integrate(p[0], p[1]) + np.sum(of.derivative()(p) ** 2) + of.antiderivative()(p[2]) + of(p[1], 2)


def in_ring(x: Any, y: Any, p: Any, n: Any) -> Any:
    return np.sum(si.CubicSpline(x[: n + 1], np.append(y[:n], y[0]), bc_type="periodic")(2.0 * p) ** 2)


def splines(x: Any, y: Any, p: Any) -> Any:
    of = si.make_interp_spline(x, y)
    return np.sum(of(p) ** 2) + np.sum(si.make_interp_spline(x, y, k=2)(p)) + si.make_interp_spline(x, y, k=1)(p[0])


def splines_with_conditions(x: Any, y: Any, p: Any) -> Any:
    ends = si.make_interp_spline(x, y, bc_type=([(1, y[0])], [(2, p[0])]))
    quadratic = si.make_interp_spline(x, y, k=2, bc_type=(None, "clamped"))
    return np.sum(ends(p) ** 2) + np.sum(quadratic(p) ** 2)


def splines_of_columns(x: Any, y: Any, p: Any) -> Any:
    of, natural = si.make_interp_spline(x, y), si.make_interp_spline(x, y, bc_type="natural")
    return np.sum(of(p) ** 2) + np.sum(natural(p[0]) * of.derivative()(p[1])) + np.sum(columns(p) ** 2)


def bases(t: Any, c: Any, p: Any) -> Any:
    of = si.BSpline(t, c, 2)
    return np.sum(of(p) ** 2) + of(p[0], 1) + np.sum(of.derivative()(p))


def lines(x: Any, y: Any, p: Any) -> Any:
    beyond = si.interp1d(x, y, fill_value="extrapolate")
    return np.sum(si.interp1d(x, y)(p) ** 2) + np.sum(si.interp1d(x, y, kind="cubic")(p)) + np.sum(beyond(2.0 * p))


def filled(x: Any, y: Any, p: Any) -> Any:
    return np.sum(si.interp1d(x, y, bounds_error=False, fill_value=(y[0] ** 2, 2.0))(p) ** 2)


def on_grid(x: Any, v: Any, p: Any) -> Any:
    of = si.RegularGridInterpolator((x, OTHER), v)
    return np.sum(of(p) ** 2) + of((p[0, 0], p[0, 1]))


def of_several_on_grid(x: Any, v: Any, p: Any) -> Any:
    several = si.RegularGridInterpolator((x, OTHER), np.stack((v, v**2), axis=-1))
    more = np.stack((v, v**2), axis=-1)[..., None]
    beyond = si.RegularGridInterpolator((x, OTHER), more, bounds_error=False, fill_value=None)
    return np.sum(several(p) ** 2) + np.sum(several(p[0]) ** 3) + np.sum(beyond(2.0 * p) ** 2)


def beside_grid(x: Any, v: Any, p: Any) -> Any:
    beyond = si.RegularGridInterpolator((x, OTHER), v, bounds_error=False, fill_value=None)
    constant = si.RegularGridInterpolator((x, OTHER), v, bounds_error=False, fill_value=7.0)
    return np.sum(beyond(3.0 * p) ** 2) + np.sum(constant(2.0 * p))


def of_columns(x: Any, y: Any, p: Any) -> Any:
    of = si.CubicSpline(x, y)
    return np.sum(of(p) ** 2) + np.sum(of(p[0]))


CASES: dict[str, tuple[Callable[..., Any], Any, Any, Any]] = {
    "cubic": (lambda x, y, p: np.sum(si.CubicSpline(x, y)(p) ** 2), X, Y, AT),
    "cubic of few points": (few_points, X, Y, AT),
    "cubic with conditions": (conditions, X, Y, AT),
    "natural": (lambda x, y, p: np.sum(si.CubicSpline(x, y, bc_type="natural")(p, 1) ** 2), X, Y, AT),
    "cubic of columns": (of_columns, X, COLUMNS, AT),
    "periodic": (lambda x, y, p: in_ring(x, y, p, 5) + in_ring(x, y, p, 3) + in_ring(x, y, p, 2), RING, Y, AT),
    "beyond": (
        lambda x, y, p: np.sum(si.CubicSpline(x, y)(p) ** 2) + np.nansum(si.Akima1DInterpolator(x, y)(p)),
        *(X, Y, BEYOND),
    ),
    "pchip": (lambda x, y, p: np.sum(si.PchipInterpolator(x, y)(p) ** 2), X, Y, AT),
    "pchip of monotone values": (lambda x, y, p: np.sum(si.PchipInterpolator(x, np.cumsum(y**2))(p) ** 2), X, Y, AT),
    "akima": (lambda x, y, p: np.sum(si.Akima1DInterpolator(x, y)(p) ** 2), X, Y, AT),
    "makima": (lambda x, y, p: np.sum(si.Akima1DInterpolator(x, y, method="makima")(p) ** 2), X, Y, AT),
    "hermite": (lambda x, y, p: np.sum(si.CubicHermiteSpline(x, y, p)(p) ** 2), X, Y, AT),
    "methods": (methods, X, Y, AT),
    "splines": (splines, X, Y, AT),
    "splines with conditions": (splines_with_conditions, X, Y, AT),
    "splines of columns": (splines_of_columns, X, COLUMNS, AT),
    "bases": (bases, KNOTS, Y, AT[:-1]),
    "lines": (lines, X, Y, AT),
    "filled": (filled, X, Y, BEYOND),
    "grid": (on_grid, GRID, TABLE, PLACES),
    "several on a grid": (of_several_on_grid, GRID, TABLE, PLACES),
    "beside the grid": (beside_grid, GRID, TABLE, PLACES),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_scipy(name):
    f, *given = CASES[name]
    value, bars = srcdiff.value_and_grad(f, wrt=(0, 1, 2), backend="python")(*given)
    dots = [RANDOM.normal(size=x.shape) for x in given]

    def moved(step):
        return f(*[x + step * d for x, d in zip(given, dots, strict=True)])

    h = 1e-4
    wanted = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h)
    np.testing.assert_allclose(value, f(*given), rtol=1e-10)
    np.testing.assert_allclose(sum(np.sum(b * d) for b, d in zip(bars, dots, strict=True)), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["natural", "akima", "grid"])
def test_both_modes_and_second_derivatives_agree(name):
    f, *given = CASES[name]
    srcdiff.check(f, *given, backend="python")


@pytest.mark.numba
def test_compiled_code_does_the_same():
    f, *given = CASES["cubic with conditions"]
    found, wanted = (srcdiff.grad(f, wrt=(0, 1, 2), backend=b)(*given) for b in ("numba", "python"))
    for bar, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-10)


def test_interpolants_from_outside():
    def f(p):
        return np.sum(cubic(p) ** 2 + cubic.derivative()(p) + spline(p) + line(p) + smooth(p) + akima(p))

    def on_table(p):
        return np.sum(grid(p) ** 2) + np.sum(grid((p[:, 0], p[:, 1])))

    for of, at in ((f, AT), (on_table, PLACES)):
        np.testing.assert_allclose(srcdiff.differentiable(of, backend="python")(at), of(at), rtol=1e-12)
        dots = RANDOM.normal(size=at.shape)
        wanted = (of(at + 1e-5 * dots) - of(at - 1e-5 * dots)) / 2e-5
        np.testing.assert_allclose(np.sum(srcdiff.grad(of, backend="python")(at) * dots), wanted, rtol=1e-7)


def test_an_interpolant_may_be_an_argument():
    def f(of, p):
        return np.sum(of(p) ** 2)

    bar = srcdiff.grad(f, backend="python")(cubic, AT)
    step = np.zeros_like(cubic.c)
    step[2, 1] = 1e-6
    above, below = (si.PPoly(cubic.c + s * step, cubic.x) for s in (1.0, -1.0))
    np.testing.assert_allclose(bar.c[2, 1], (f(above, AT) - f(below, AT)) / 2e-6, rtol=1e-7)


STEPS_AT = np.array([0.0, 0.5, 1.0, 1.2, 1.35, 2.35, 3.0, 4.4, 4.5, 0.2])
"""Points, places in the middle between two points, and others."""
STEP_OPTIONS = {
    "default": {},
    "extrapolated": {"fill_value": "extrapolate"},
    "filled": {"bounds_error": False, "fill_value": (1.5, 2.5)},
    "nan": {"bounds_error": False},
}


def of_steps(y: Any, x: Any, p: Any, kind: Any, options: Any) -> Any:
    return si.interp1d(x, y, kind=kind, axis=0, **options)(p)


@pytest.mark.parametrize("kind", ["nearest", "nearest-up", "previous", "next"])
@pytest.mark.parametrize("options", STEP_OPTIONS)
def test_steps(kind, options):
    given = STEP_OPTIONS[options]
    at = STEPS_AT if options == "default" else np.append(STEPS_AT, [-1.0, 5.0, np.nan])
    for y in (Y, COLUMNS):
        for order in (slice(None), slice(None, None, -1)):
            x, values = X[order].copy(), y[order].copy()

            def program(y, x, p):
                return of_steps(y, x, p, kind, given)

            found = srcdiff.differentiable(program, backend="python")(values, x, at)
            wanted = of_steps(values, x, at, kind, given)
            np.testing.assert_array_equal(found, wanted)
            bar = np.where(np.isfinite(wanted), np.cos(np.arange(wanted.size)).reshape(wanted.shape), 0.0)
            _, pull = srcdiff.vjp(program, values, x, at, backend="python")
            y_bar, x_bar, p_bar = pull(bar)
            step = np.sin(np.arange(values.size) + 1.0).reshape(values.shape)
            change = of_steps(values + step, x, at, kind, given) - wanted
            assert np.sum(y_bar * step) == pytest.approx(np.sum(bar * np.where(np.isfinite(change), change, 0.0)))
            assert not x_bar.any()
            assert not p_bar.any()


@pytest.mark.parametrize("kind", ["nearest", "previous"])
def test_steps_from_outside(kind):
    one, several = si.interp1d(X, Y, kind=kind), si.interp1d(X, COLUMNS, kind=kind, axis=0)

    def program(p):
        return one(p)[:, None] * several(p)

    def of_argument(of, p):
        return np.sum(of(p))

    np.testing.assert_array_equal(srcdiff.differentiable(program, backend="python")(AT), program(AT))
    assert srcdiff.differentiable(of_argument, backend="python")(one, AT) == pytest.approx(np.sum(one(AT)))


@pytest.mark.numba
def test_compiled_steps():
    def program(y, p):
        return np.sum(si.interp1d(X, y, kind="previous")(p) ** 2)

    found, wanted = (srcdiff.grad(program, wrt=(0, 1), backend=b)(Y, STEPS_AT) for b in ("numba", "python"))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    assert not found[1].any()


def test_places_without_a_value():
    def f(p):
        return akima(p)

    assert np.isnan(srcdiff.differentiable(f, backend="python")(7.0))
    with pytest.raises(ValueError, match="outside of the interpolation range"):
        srcdiff.grad(lambda p: line(p), backend="python")(7.0)
    with pytest.raises(ValueError, match="out of bounds"):
        srcdiff.grad(lambda p: np.sum(grid(p)), backend="python")(PLACES + 5.0)
    with pytest.raises(ValueError, match="strictly increasing"):
        srcdiff.grad(lambda x: si.CubicSpline(x, Y)(0.5), backend="python")(X[::-1].copy())


REFUSED = {
    "kind": (lambda p: si.interp1d(X, p, kind="zero")(0.5) * 1.0, "of this kind"),
    "condition": (lambda p: si.make_interp_spline(X, p, bc_type="periodic")(0.5), "this `bc_type`"),
    "method": (lambda p: np.sum(si.RegularGridInterpolator((X,), p, method="cubic")(p)), "other than `linear`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    f, message = REFUSED[name]
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(f, backend="python")(Y)


# -- several functions and their axes ---------------------------------------------------------------------------------

MAKERS = {
    "cubic": si.CubicSpline,
    "pchip": si.PchipInterpolator,
    "akima": si.Akima1DInterpolator,
    "spline": si.make_interp_spline,
    "line": si.interp1d,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("shape", "axis"), [((5, 2), 0), ((2, 5), -1), ((2, 5, 3), 1)])
def test_values_of_several_functions_along_an_axis(name, shape, axis):
    make, y = MAKERS[name], np.random.default_rng(3).normal(size=shape)

    def f(x, y, p):
        of = make(x, y, axis=axis)
        several, one = of(p), of(p[0, 0])
        return np.sum(several * np.cos(np.arange(several.size)).reshape(several.shape)) + np.sum(one * one)

    given = X, y, AT[:4].reshape(2, 2)
    value, bars = srcdiff.value_and_grad(f, wrt=(0, 1, 2), backend="python")(*given)
    dots = [RANDOM.normal(size=x.shape) for x in given]

    def moved(step):
        return f(*[x + step * d for x, d in zip(given, dots, strict=True)])

    np.testing.assert_allclose(value, f(*given), rtol=1e-10)
    wanted = (8.0 * (moved(1e-4) - moved(-1e-4)) - (moved(2e-4) - moved(-2e-4))) / 12e-4
    np.testing.assert_allclose(sum(np.sum(b * d) for b, d in zip(bars, dots, strict=True)), wanted, rtol=1e-6)


def methods_along_an_axis(x, y, p):
    of = si.CubicSpline(x, y, axis=1)
    total = np.sum(of.derivative()(p) ** 2) + np.sum(of.antiderivative()(p)) + np.sum(of.integrate(p[0], p[1]) ** 2)
    return total + np.sum(of(p, 1)) + np.sum(of(p, nu=2) ** 2)


def ends_along_an_axis(x, y, p):
    ends = si.CubicSpline(x, y, axis=1, bc_type=((1, y[:, 0]), (2, np.array([0.3, p[0]]))))
    return np.sum(ends(p) ** 2)


def beyond_the_ends_along_an_axis(x, y, p):
    filled = si.interp1d(x, y, bounds_error=False, fill_value=(y[:, 0] ** 2, 3.0))
    beyond = si.interp1d(x, y, axis=1, kind="quadratic", fill_value="extrapolate")
    return np.sum(filled(2.0 * p - 1.15) ** 2) + np.sum(beyond(2.0 * p))


def bases_along_an_axis(x, y, p):
    bases = si.BSpline(KNOTS, y, 2, axis=1)
    return np.sum(bases(p) ** 3) + np.sum(bases.derivative()(p[0])) + x[1]


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
@pytest.mark.parametrize(
    "function",
    [methods_along_an_axis, ends_along_an_axis, beyond_the_ends_along_an_axis, bases_along_an_axis],
)
def test_methods_along_an_axis(function, backend):
    given = X, np.random.default_rng(4).normal(size=(2, 5)), AT
    value, bars = srcdiff.value_and_grad(function, wrt=(0, 1, 2), backend=backend)(*given)
    np.testing.assert_allclose(value, function(*given), rtol=1e-10)
    np.testing.assert_allclose(srcdiff.differentiable(function, backend="python")(*given), value, rtol=1e-10)
    for k, bar in enumerate(bars):
        dot = np.sin(np.arange(bar.size) + 1.0).reshape(bar.shape)

        def moved(step, k=k, dot=dot):
            return function(*[x + step * dot if j == k else x for j, x in enumerate(given)])

        wanted = (8.0 * (moved(1e-5) - moved(-1e-5)) - (moved(2e-5) - moved(-2e-5))) / 12e-5
        np.testing.assert_allclose(np.sum(bar * dot), wanted, rtol=1e-5)


OUTSIDE = np.random.default_rng(7).normal(size=(2, 5, 3))
FROM_OUTSIDE = {
    "cubic": si.CubicSpline(X, OUTSIDE, axis=1),
    "several": si.CubicSpline(X, np.moveaxis(OUTSIDE, 1, 0)),
    "spline": si.make_interp_spline(X, OUTSIDE[:, :, 0], axis=1),
    "line": si.interp1d(X, OUTSIDE, axis=1),
    "columns": si.interp1d(X, OUTSIDE[0], axis=0),
    "smooth": si.interp1d(X, OUTSIDE[:, :, 1], "cubic"),
}


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_interpolants_of_several_functions_from_outside(name):
    of = FROM_OUTSIDE[name]

    def f(p):
        several, one = of(p), of(p[0, 0])
        return np.sum(several * np.cos(np.arange(several.size)).reshape(several.shape)) + np.sum(one * one)

    p = AT[:4].reshape(2, 2)
    assert srcdiff.differentiable(f, backend="python")(p) == pytest.approx(f(p), rel=1e-12)
    srcdiff.check(f, p, backend="python")


def test_an_argument_along_another_axis_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="only known at run time"):
        srcdiff.grad(lambda of, p: np.sum(of(p)), wrt=1, backend="python")(FROM_OUTSIDE["cubic"], AT)


def test_second_derivatives_along_an_axis():
    def f(x, y, p):
        return np.sum(si.PchipInterpolator(x, y, axis=1)(p) ** 2)

    srcdiff.check(f, X, np.cumsum(np.random.default_rng(4).normal(size=(2, 5)) ** 2, 1), AT, backend="python")


# -- NaN --------------------------------------------------------------------------------------------------------------

WITH_NAN = np.array([1.0, -0.5, np.nan, 0.3, 0.9])


@pytest.mark.parametrize("name", ["cubic", "pchip", "akima", "spline"])
def test_values_that_are_nan_raise_as_in_scipy(name):
    make = MAKERS[name]
    with pytest.raises(ValueError, match="finite"):
        srcdiff.grad(lambda y: make(X, y)(0.5), backend="python")(WITH_NAN)
    with pytest.raises(ValueError, match=r"finite|NaN|nan|inf"):
        make(X, WITH_NAN)


def test_gradients_of_values_that_are_nan_are_nan():
    def line_between(y, p):
        return si.interp1d(X, y)(p)

    def pieces(c, p):
        return si.PPoly(c, X)(p)

    def bases(c, p):
        return si.BSpline(KNOTS, c, 2)(p)

    def table(v, p):
        return np.sum(si.RegularGridInterpolator((X,), v)(p))

    c = np.array(si.CubicSpline(X, Y).c)
    c[2, 1] = np.nan
    for f, values, p in ((line_between, WITH_NAN, 1.4), (pieces, c, 1.4), (bases, WITH_NAN, 1.4)):
        value, (bar, slope) = srcdiff.value_and_grad(f, wrt=(0, 1), backend="python")(values, p)
        assert np.isnan(value)
        assert np.isnan(slope)
        assert np.isnan(bar).any()
    assert np.isnan(srcdiff.grad(table, backend="python")(WITH_NAN, np.array([1.4]))).any()
    assert srcdiff.grad(line_between, backend="python")(WITH_NAN, 4.0)[3] == pytest.approx(1.0 / 3.0)
