"""The functions of `scipy.special`, with those of mpmath that are the same, and the points to compare them at.

The error of a number is divided by the size of the exact one plus what a relative change of each argument moves it by:
near a zero of a function, the last bit of the argument moves the result by more than its own last bit.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.rules import RULES
from srcdiff.rules.evaluate import partial_of, result_of

Points = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    primitive: str
    exact: Callable[..., Any]
    points: Points
    tolerance: float
    """The largest error that is allowed, of the value and of the derivatives."""
    called: str = ""
    """The name in `scipy.special`, if that is not the primitive's."""
    digits: int = 60
    """The number of digits for the exact numbers: more, if they are small differences."""

    @property
    def name(self) -> str:
        return self.called or self.primitive


def grid(*axes: Sequence[Any]) -> Points:
    return tuple(itertools.product(*axes))


def line(*numbers: float) -> Points:
    return tuple((x,) for x in numbers)


WIDE = line(-5.0, -2.3, -0.7, -1e-3, 1e-8, 0.4, 1.0, 2.5, 6.0)
ABOVE = line(1e-6, 0.03, 0.4, 1.0, 1.7, 4.2, 11.0, 40.0)
UNITS = line(1e-8, 0.01, 0.2, 0.49, 0.5, 0.77, 0.95, 0.9999)
ORDERS = (0.0, 0.5, 1.0, 2.7, 6.0)
BELOW_ONE = line(-20.0, -1.5, -1e-6, 1e-9, 0.3, 0.8, 0.99, 0.999999)

with mp.workdps(120):
    SQRT_2PI = mp.sqrt(2 * mp.pi)


BETA_SHAPES = (
    *grid((2, 0, 1), (1,), (0.01, 2.0), (30.0,), (1e-4, 0.6, 0.99)),
    *grid((2,), (0,), (300.0,), (0.4, 200.0), (0.6, 0.999)),
)
GAMMA_SHAPES = grid((2, 3), (1e-3, 0.5, 20.0), (1e-6, 0.7, 30.0, 600.0)) + grid((2,), (1e4,), (9.5e3, 1.01e4))
FRACTIONS = grid((0.05, 0.5, 1.0, 3.3, 20.0, 100.0), (0.4, 1.0, 5.0, 21.0)) + grid((100.0,), (80.0, 99.0, 140.0))


def phi(x: Any) -> Any:
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def log_phi(x: Any) -> Any:
    return mp.log1p(-phi(-x)) if x > 0 else mp.log(phi(x))


def normal_quantile(p: Any) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def upper_fraction(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower_fraction(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def beta_fraction(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def beta_quantile(a: Any, b: Any, y: Any) -> Any:
    start = result_of("betaincinv", [float(a), float(b), float(y)])
    return mp.findroot(lambda x: beta_fraction(a, b, x) - y, mp.mpf(float(start)))


def gamma_quantile(a: Any, y: Any) -> Any:
    start = result_of("gammaincinv", [float(a), float(y)])
    return mp.findroot(lambda x: lower_fraction(a, x) - y, mp.mpf(float(start)))


def upper_gamma_quantile(a: Any, y: Any) -> Any:
    start = result_of("gammainccinv", [float(a), float(y)])
    return mp.findroot(lambda x: upper_fraction(a, x) - y, mp.mpf(float(start)))


def students(df: Any, t: Any) -> Any:
    tail = beta_fraction(mp.mpf(df) / 2, mp.mpf(1) / 2, df / (df + mp.mpf(t) ** 2)) / 2
    return tail if t < 0 else 1 - tail


def students_quantile(df: Any, p: Any) -> Any:
    start = result_of("stdtrit", [float(df), float(p)])
    return mp.findroot(lambda t: students(df, t) - p, mp.mpf(float(start)))


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = mp.mpc(x, gamma) / (sigma * mp.sqrt(2))
    return (mp.exp(-z * z) * mp.erfc(-1j * z)).real / (sigma * SQRT_2PI)


def owens(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-(mp.mpf(h) ** 2) * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def relative_entropy(x: Any, y: Any) -> Any:
    return x * mp.log(mp.mpf(x) / y)


def huber(delta: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


def box_cox(x: Any, lmbda: Any) -> Any:
    return mp.log(x) if lmbda == 0 else mp.expm1(lmbda * mp.log(x)) / lmbda


def fraction_by_a(n: int, a: Any, x: Any) -> Any:
    return mp.diff(lambda s: lower_fraction(s, x), a, n) if x < a else -mp.diff(lambda s: upper_fraction(s, x), a, n)


def beta_fraction_by(n: int, m: int, a: Any, b: Any, x: Any) -> Any:
    if x < a / (a + b):
        return mp.diff(lambda p, q: mp.betainc(p, q, 0, x, regularized=True), (a, b), (n, m))
    return -mp.diff(lambda p, q: mp.betainc(p, q, x, 1, regularized=True), (a, b), (n, m))


def scaled(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    return lambda v, x: function(v, x) * mp.exp(-abs(x) if sign < 0 else x)


def bessel_k_by_order(n: int, v: Any, x: Any) -> Any:
    return mp.diff(lambda order: mp.besselk(order, x) * mp.exp(x), v, n)


ROWS = (
    Row("erf", mp.erf, WIDE, 1e-15),
    Row("erfc", mp.erfc, (*WIDE, (20.0,)), 1e-14),
    Row("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (*WIDE, (10.9,), (50.0,), (1e4,)), 1e-13),
    Row("erfi", mp.erfi, WIDE, 1e-14),
    Row("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (*WIDE, (-11.1,), (1e4,)), 1e-14),
    Row("erfinv", mp.erfinv, (*UNITS, (-0.3,), (-0.999,)), 1e-14),
    Row("erfcinv", lambda y: mp.erfinv(1 - y), (*UNITS, (1.5,)), 1e-13),
    Row("ndtr", phi, (*WIDE, (-30.0,)), 1e-13),
    Row("log_ndtr", log_phi, (*WIDE, (-40.0,), (-1e4,), (20.0,)), 1e-13),
    Row("ndtri", normal_quantile, UNITS, 1e-13),
    Row("ndtri_exp", lambda y: normal_quantile(mp.exp(y)), line(-30.0, -5.0, -1.0, -0.1, -1e-3), 1e-12),
    Row("owens_t", owens, grid((-2.0, 0.3, 1.5), (-1.2, 0.2, 0.9, 3.0)), 1e-13),
    Row("voigt_profile", voigt, grid((-8.0, -0.7, 0.0, 3.0), (0.3, 1.0, 2.0), (0.1, 1.0, 4.0)), 1e-11),
    Row("expit", lambda x: 1 / (1 + mp.exp(-x)), (*WIDE, (-700.0,), (60.0,)), 1e-15),
    Row("logit", lambda x: mp.log(mp.mpf(x) / (1 - mp.mpf(x))), UNITS, 1e-15),
    Row("log_expit", lambda x: -mp.log1p(mp.exp(-x)), (*WIDE, (-700.0,), (60.0,)), 1e-15),
    Row("expm1", mp.expm1, WIDE, 1e-15),
    Row("log1p", mp.log1p, ABOVE, 1e-15),
    Row("exp2", lambda x: mp.mpf(2) ** x, WIDE, 1e-15),
    Row("exp10", lambda x: mp.mpf(10) ** x, WIDE, 1e-15),
    Row("cbrt", mp.cbrt, ABOVE, 1e-15),
    Row("exprel", lambda x: mp.expm1(x) / x, (*WIDE, (-40.0,), (100.0,)), 1e-14),
    Row("cosm1", lambda x: -2 * mp.sin(mp.mpf(x) / 2) ** 2, WIDE, 1e-14),
    Row("sindg", lambda x: mp.sin(x * mp.pi / 180), line(-200.0, -30.0, 10.0, 77.0, 359.0), 1e-14),
    Row("cosdg", lambda x: mp.cos(x * mp.pi / 180), line(-200.0, -30.0, 10.0, 77.0, 359.0), 1e-14),
    Row("tandg", lambda x: mp.tan(x * mp.pi / 180), line(-200.0, -30.0, 10.0, 77.0, 359.0), 1e-14),
    Row("powm1", lambda x, y: mp.powm1(x, y), grid((0.2, 0.99, 1.5, 30.0), (-2.0, 1e-3, 0.5, 4.0)), 1e-14),
    Row("boxcox", box_cox, grid((0.1, 0.99, 1.5, 30.0), (-2.0, 1e-9, 0.5, 3.0)), 1e-14),
    Row("boxcox1p", lambda x, y: box_cox(1 + mp.mpf(x), y), grid((-0.4, 1e-9, 1.5), (-2.0, 1e-9, 0.5, 3.0)), 1e-14),
    Row("inv_boxcox", lambda y, m: (1 + m * mp.mpf(y)) ** (1 / mp.mpf(m)), grid((0.1, 2.0), (0.3, 1.0, 2.5)), 1e-14),
    Row("lambertw", mp.lambertw, grid((-0.35, -0.1, -1e-5), (0, -1)) + grid((0.3, 2.0, 50.0, 1e10), (0,)), 1e-13),
    Row("xlogy", lambda x, y: x * mp.log(y), grid((-2.0, 0.3, 5.0), (1e-9, 0.7, 40.0)), 1e-15),
    Row("xlog1py", lambda x, y: x * mp.log1p(y), grid((-2.0, 0.3, 5.0), (-0.9, 1e-9, 40.0)), 1e-15),
    Row("entr", lambda x: -x * mp.log(x), ABOVE, 1e-15),
    Row("rel_entr", relative_entropy, grid((1e-6, 0.7, 3.0), (1e-6, 0.71, 3.0)), 1e-15),
    Row("kl_div", lambda x, y: relative_entropy(x, y) - x + y, grid((1e-6, 0.7, 3.0), (1e-6, 0.71, 3.0)), 1e-15),
    Row("huber", huber, grid((0.5, 2.0), (-3.0, -0.4, 0.1, 1.7)), 1e-15),
    Row(
        "pseudo_huber",
        lambda d, r: d**2 * (mp.sqrt(1 + (mp.mpf(r) / d) ** 2) - 1),
        grid((0.5, 2.0), (-3.0, -0.4, 1e-5, 1.7)),
        1e-14,
    ),
    Row("gamma_function", mp.gamma, (*ABOVE, (-0.5,), (-3.3,), (150.0,)), 1e-14, "gamma"),
    Row("gammaln", lambda x: mp.log(abs(mp.gamma(x))), (*ABOVE, (-0.5,), (-3.3,), (1e5,)), 1e-14),
    Row("loggamma", mp.loggamma, (*ABOVE, (1e5,)), 1e-14),
    Row("digamma", mp.digamma, (*ABOVE, (-0.5,), (-3.3,), (1e5,)), 1e-14),
    Row("polygamma", mp.polygamma, grid((1, 2, 5), (-0.5, 0.1, 1.0, 7.7, 100.0)), 1e-13),
    Row("beta", mp.beta, grid((0.1, 1.0, 4.4, 30.0), (0.3, 2.0, 50.0)), 1e-13),
    Row(
        "betaln",
        lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(mp.mpf(a) + b),
        grid((0.1, 1.0, 4.4, 30.0), (0.3, 2.0, 50.0)) + grid((4.4, 1e5), (0.3, 1e6)),
        1e-14,
    ),
    Row("poch", mp.rf, grid((0.3, 2.0, 11.0), (0.5, 3.0, 7.7)), 1e-13),
    Row("binom", mp.binomial, grid((5.0, 10.5, 60.0), (0.4, 2.0, 4.5)), 1e-13),
    Row("gammainc", lower_fraction, FRACTIONS, 2e-14),
    Row("gammaincc", upper_fraction, FRACTIONS, 2e-14),
    Row("gammaincinv", gamma_quantile, grid((0.5, 1.0, 3.3, 20.0), (0.01, 0.3, 0.8, 0.99)), 1e-12),
    Row("gammainccinv", upper_gamma_quantile, grid((0.5, 1.0, 3.3, 20.0), (0.01, 0.3, 0.8, 0.99)), 1e-12),
    Row(
        "betainc",
        beta_fraction,
        grid((0.2, 1.0, 3.3, 40.0), (0.5, 2.0, 30.0), (1e-3, 0.3, 0.6, 0.97)),
        1e-12,
        digits=110,
    ),
    Row(
        "betaincc",
        lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
        grid((0.2, 1.0, 3.3, 40.0), (0.5, 2.0, 30.0), (0.3, 0.6, 0.97)),
        1e-12,
        digits=110,
    ),
    Row("betaincinv", beta_quantile, grid((0.5, 1.0, 3.3), (0.5, 2.0, 10.0), (0.05, 0.5, 0.9)), 1e-11),
    Row("stdtr", students, grid((0.7, 3.0, 30.0), (-5.0, -0.6, 0.2, 2.0)), 1e-12),
    Row("stdtrit", students_quantile, grid((0.7, 3.0, 30.0), (0.02, 0.3, 0.6, 0.95)), 1e-12),
    Row("zeta", mp.zeta, grid((1.1, 2.0, 5.5, 30.0), (0.2, 1.0, 7.0)), 1e-14),
    Row("j0", lambda x: mp.besselj(0, x), WIDE, 1e-13),
    Row("j1", lambda x: mp.besselj(1, x), WIDE, 1e-13),
    Row("jv", mp.besselj, grid(ORDERS, (0.3, 1.0, 4.4, 20.0)), 1e-12),
    Row("y0", lambda x: mp.bessely(0, x), ABOVE, 1e-13),
    Row("y1", lambda x: mp.bessely(1, x), ABOVE, 1e-13),
    Row("yv", mp.bessely, grid(ORDERS, (0.3, 1.0, 4.4, 20.0)), 1e-12),
    Row("i0", lambda x: mp.besseli(0, x), WIDE, 1e-14),
    Row("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (*WIDE, (800.0,)), 1e-13),
    Row("i1", lambda x: mp.besseli(1, x), WIDE, 1e-14),
    Row("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (*WIDE, (800.0,)), 1e-13),
    Row("iv", mp.besseli, grid(ORDERS, (0.3, 1.0, 4.4, 20.0)), 1e-12),
    Row("ive", scaled(mp.besseli, -1), grid(ORDERS, (0.3, 1.0, 4.4, 200.0)), 1e-12),
    Row("k0", lambda x: mp.besselk(0, x), ABOVE, 1e-14),
    Row("k0e", lambda x: mp.besselk(0, x) * mp.exp(x), ABOVE, 1e-14),
    Row("k1", lambda x: mp.besselk(1, x), ABOVE, 1e-14),
    Row("k1e", lambda x: mp.besselk(1, x) * mp.exp(x), ABOVE, 1e-14),
    Row("kv", mp.besselk, grid(ORDERS, (0.3, 1.0, 4.4, 20.0)), 1e-12),
    Row("kve", scaled(mp.besselk, 1), grid(ORDERS, (0.3, 1.0, 4.4, 200.0)), 1e-12),
    Row("airy_ai", mp.airyai, WIDE, 1e-13, "airy"),
    Row("airy_bi", mp.airybi, WIDE, 1e-13, "airy"),
    Row("exp1", mp.e1, ABOVE, 1e-13),
    Row("expi", mp.ei, (*ABOVE, (-2.0,)), 1e-13),
    Row("expn", lambda n, x: mp.expint(n, x), grid((1, 2, 5), (0.1, 1.0, 7.0)), 1e-13),
    Row("sine_integral", mp.si, WIDE, 1e-14, "sici"),
    Row("cosine_integral", mp.ci, ABOVE, 1e-13, "sici"),
    Row("sinh_integral", mp.shi, WIDE, 1e-14, "shichi"),
    Row("cosh_integral", mp.chi, ABOVE, 1e-13, "shichi"),
    Row("fresnel_s", mp.fresnels, WIDE, 1e-13, "fresnel"),
    Row("fresnel_c", mp.fresnelc, WIDE, 1e-13, "fresnel"),
    Row("spence", lambda z: mp.polylog(2, 1 - mp.mpf(z)), ABOVE, 1e-13),
    Row("ellipk", mp.ellipk, BELOW_ONE, 1e-13),
    Row("ellipkm1", lambda p: mp.ellipk(1 - mp.mpf(p)), UNITS, 1e-13),
    Row("ellipe", mp.ellipe, BELOW_ONE, 1e-13),
    Row("ellipkinc", mp.ellipf, grid((-1.0, 0.3, 1.4), (-2.0, 0.3, 0.9)), 1e-13),
    Row("ellipeinc", mp.ellipe, grid((-1.0, 0.3, 1.4), (-2.0, 0.3, 0.9)), 1e-13),
    Row("hyp0f1", mp.hyp0f1, grid((0.5, 2.0, 7.7), (-3.0, 0.3, 5.0)), 1e-13),
    Row("hyp1f1", mp.hyp1f1, grid((0.5, 2.0), (1.5, 4.0), (-3.0, 0.3, 5.0)), 1e-12),
    Row("gammainc_by_a", fraction_by_a, GAMMA_SHAPES, 1e-12),
    Row("betainc_by", beta_fraction_by, BETA_SHAPES, 1e-12),
    Row("kve_by_order", bessel_k_by_order, grid((1, 2), (-2.7, 30.5), (1e-4, 70.0)), 1e-13),
    Row("hyp2f1", mp.hyp2f1, grid((0.5, 2.0), (0.7, 3.0), (1.5, 4.0), (-2.0, -0.3, 0.3, 0.8)), 1e-11),
)


@dataclass(frozen=True)
class Error:
    """The largest error of one quantity, and where it is."""

    of: str
    size: float
    at: tuple[Any, ...]


def exact_numbers(point: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(mp.mpf(x) if isinstance(x, float) else x for x in point)


def exact_derivatives(row: Row, point: tuple[Any, ...]) -> dict[str, tuple[Any, Any]]:
    """The exact value and derivatives, each with the scale of its errors.

    First and second derivatives are differences of many digits, which share the values around the point.
    """
    numbers, parameters = exact_numbers(point), RULES[row.primitive].parameters
    varied = [k for k, x in enumerate(numbers) if isinstance(x, mp.mpf)]
    steps = {k: mp.mpf(10) ** -16 * (abs(numbers[k]) or 1) for k in varied}

    @functools.cache
    def at(*moves: tuple[int, int]) -> Any:
        """The value after steps of some arguments."""
        moved = list(numbers)
        for k, sign in moves:
            moved[k] += sign * steps[k]
        return mp.re(row.exact(*moved))

    def first(k: int) -> Any:
        return (at((k, 1)) - at((k, -1))) / (2 * steps[k])

    def second(k: int, j: int) -> Any:
        if k == j:
            return (at((k, 1)) - 2 * at() + at((k, -1))) / steps[k] ** 2
        k, j = sorted((k, j))
        both = at((k, 1), (j, 1)) + at((k, -1), (j, -1)) + 2 * at()
        return (both - sum(at((i, sign)) for i in (k, j) for sign in (1, -1))) / (2 * steps[k] * steps[j])

    found = {"value": (at(), abs(at()) + sum(abs(numbers[k] * first(k)) for k in varied))}
    for k in varied:
        if parameters[k] in RULES[row.primitive].partials:
            size = abs(first(k)) + sum(abs(numbers[j] * second(k, j)) for j in varied if numbers[j])
            found[parameters[k]] = first(k), size
    return found


@functools.cache
def errors(row: Row) -> tuple[Error, ...]:
    """The largest error of the value, and of each derivative."""
    rule = RULES[row.primitive]
    found: dict[str, Error] = {}
    for point in row.points:
        with mp.workdps(row.digits):
            for of, (exact, size) in exact_derivatives(row, point).items():
                ours = result_of(row.primitive, point) if of == "value" else partial_of(rule, of, point)
                error = float(abs(mp.mpf(float(ours)) - exact) / size) if size else float(abs(ours))
                error = math.inf if math.isnan(error) else error
                if of not in found or error > found[of].size:
                    found[of] = Error(of, error, point)
    return tuple(found.values())


def names_covered() -> Iterator[str]:
    """The functions of `scipy.special` that have a row here."""
    for row in ROWS:
        yield from (row.called,) if row.called else PRIMITIVES[row.primitive].scipy or (row.primitive,)


# -- what is printed ---------------------------------------------------------------------------------------------------

MEASURED = Path(__file__).with_name("special_errors.json")
"""For each primitive, the largest errors of the value and of all derivatives in the last run of this module."""

FEWEST = 36
"""The minimum number of points for each function."""


def many_points(row: Row) -> Points:
    """The points of the row, and points between two of them that differ in one number."""
    draw = random.Random(row.primitive)
    found = list(row.points)
    axes = [sorted({point[k] for point in row.points}) for k in range(len(row.points[0]))]
    while len(found) < FEWEST:
        point = list(draw.choice(row.points))
        k = draw.choice([k for k, x in enumerate(point) if isinstance(x, float)])
        low, high = draw.choice(list(itertools.pairwise(axes[k])))
        part = draw.random()
        is_wide = low * high > 0.0 and not 0.1 < low / high < 10.0
        between = math.copysign(abs(low) ** (1 - part) * abs(high) ** part, low) if is_wide else 0.0
        point[k] = between or low + part * (high - low)
        if all(a[0] <= x <= a[-1] for a, x in zip(axes, point, strict=True)) and is_inside(row, point):
            found.append(tuple(point))
    return tuple(found)


def is_inside(row: Row, point: Sequence[Any]) -> bool:
    """Whether the function is defined there, and finite, and does not underflow."""
    exact = mp.re(row.exact(*exact_numbers(tuple(point))))
    underflows = 0.0 < abs(exact) < 1e-290
    return math.isfinite(result_of(row.primitive, point)) and mp.isfinite(exact) and not underflows


def measured(row: Row) -> dict[str, float]:
    found = {e.of: e.size for e in errors(replace(row, points=many_points(row)))}
    value = found.pop("value")
    return {"value": value, "derivatives": max(found.values())} if found else {"value": value}


def printed_errors() -> dict[str, tuple[str, ...]]:
    """The measured errors and the bound, by the names in `scipy.special`. Several results are listed one by one."""
    known = json.loads(MEASURED.read_text(encoding="utf-8"))
    found = {}
    for row in ROWS:
        sizes = [known[row.primitive].get(of) for of in ("value", "derivatives")]
        cells = ["" if x is None else "0" if x == 0.0 else f"{x:.0e}" for x in sizes]
        for name in PRIMITIVES[row.primitive].scipy or (row.primitive,):
            found[name] = (*cells, f"{row.tolerance:.0e}")
    return found


if __name__ == "__main__":
    np.seterr(all="ignore")
    table = {}
    for one in ROWS:
        table[one.primitive] = {of: float(f"{size:.1e}") for of, size in measured(one).items()}
        print(one.primitive, table[one.primitive], one.tolerance, flush=True)
    MEASURED.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
