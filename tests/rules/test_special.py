"""The support functions at known values, in their recurrences, and outside their domains."""

from __future__ import annotations

import math
from math import inf, nan, pi

import numpy as np
import pytest

from srcdiff.rules.special import digamma, heaviside, polygamma, sinc_derivative, trigamma

EULER = 0.57721566490153286
CATALAN = 0.91596559417721902
ZETA_3 = 1.2020569031595943
ROUNDING = float(np.finfo(float).eps)

CLOSED_FORMS = [  # Abramowitz and Stegun 6.3.2, 6.3.3, 6.4.2, 6.4.4; DLMF 5.4, 5.15
    (digamma, (1.0,), -EULER),
    (digamma, (0.5,), -EULER - 2 * math.log(2)),
    (digamma, (0.25,), -EULER - pi / 2 - 3 * math.log(2)),
    (digamma, (-1.5,), -EULER - 2 * math.log(2) + 8 / 3),
    (digamma, (11.0,), sum(1 / k for k in range(1, 11)) - EULER),
    (digamma, (1e300,), math.log(1e300)),
    (digamma, (1e-300,), -1e300),
    (trigamma, (1.0,), pi**2 / 6),
    (trigamma, (0.5,), pi**2 / 2),
    (trigamma, (0.25,), pi**2 + 8 * CATALAN),
    (trigamma, (-0.5,), pi**2 / 2 + 4),
    (trigamma, (1e300,), 1e-300),
    (polygamma, (1, 0.25), pi**2 + 8 * CATALAN),
    (polygamma, (1, 1e200), 1e-200),
    (polygamma, (2, 1.0), -2 * ZETA_3),
    (polygamma, (2, 0.5), -14 * ZETA_3),
    (polygamma, (2, 0.25), -2 * pi**3 - 56 * ZETA_3),
    (polygamma, (3, 1.0), pi**4 / 15),
    (polygamma, (3, 0.5), pi**4),
    (polygamma, (3, -0.5), pi**4 + 96),
    (polygamma, (5, 1.0), 8 * pi**6 / 63),
    (sinc_derivative, (0, 0.5), 2 / pi),
    (sinc_derivative, (1, 0.5), -4 / pi),
    (sinc_derivative, (1, 1e-8), -(pi**2) / 3 * 1e-8),
    (sinc_derivative, (2, 0.0), -(pi**2) / 3),
    (sinc_derivative, (2, 1.0), 2.0),
    (sinc_derivative, (4, 0.0), pi**4 / 5),
    (sinc_derivative, (1, 1e6), 1e-6),
]

WITHOUT_A_VALUE = [
    (digamma, (0.0,), -inf),
    (digamma, (-0.0,), inf),
    (digamma, (-3.0,), nan),
    (digamma, (inf,), inf),
    (digamma, (-inf,), nan),
    (digamma, (nan,), nan),
    (trigamma, (0.0,), inf),
    (trigamma, (-3.0,), inf),
    (trigamma, (inf,), 0.0),
    (trigamma, (-inf,), nan),
    (trigamma, (nan,), nan),
    (polygamma, (2, 0.0), -inf),
    (polygamma, (2, -0.0), inf),
    (polygamma, (2, -3.0), nan),
    (polygamma, (3, -3.0), inf),
    (polygamma, (3, inf), 0.0),
    (polygamma, (3, -inf), nan),
    (polygamma, (3, nan), nan),
    (polygamma, (0, 1.0), nan),
    (polygamma, (4, 1e-200), -inf),
    (sinc_derivative, (1, inf), nan),
    (sinc_derivative, (1, nan), nan),
    (heaviside, (nan, 0.5), nan),
    (heaviside, (-0.0, 0.5), 0.5),
]


@pytest.fixture(autouse=True)
def _infinities_are_no_news():
    with np.errstate(all="ignore"):
        yield


def close(expected: float, actual: float, largest: float = 0.0) -> bool:
    """Whether the difference is a few roundings of the largest term."""
    return abs(expected - actual) <= 32 * ROUNDING * max(abs(expected), largest)


@pytest.mark.parametrize(("function", "arguments", "expected"), CLOSED_FORMS)
def test_value_is_the_closed_form(function, arguments, expected):
    assert close(expected, function(*arguments))


@pytest.mark.parametrize(("function", "arguments", "expected"), WITHOUT_A_VALUE)
def test_poles_and_infinities(function, arguments, expected):
    np.testing.assert_equal(function(*arguments), expected)


POINTS = [float(x) for x in np.linspace(-12.3, 24.6, 75)] + [1e-3, 1e-9, -1e-9, 1e3 + 0.3, -1e3 - 0.3]


@pytest.mark.parametrize("x", POINTS)
def test_recurrences_hold(x):
    step = abs((x + 1.0) - 1.0 - x)  # the rounding of x + 1 moves the other side by this step
    assert close(digamma(x) + 1 / x, digamma(x + 1), abs(1 / x) + step / ROUNDING * abs(trigamma(x + 1)))
    assert close(trigamma(x) - 1 / x**2, trigamma(x + 1), 1 / x**2 + step / ROUNDING * abs(polygamma(2, x + 1)))
    for n in (1, 2, 3, 4):
        term = (-1) ** n * math.factorial(n) / x ** (n + 1)
        moved = step / ROUNDING * abs(polygamma(n + 1, x + 1))
        assert close(polygamma(n, x) + term, polygamma(n, x + 1), abs(term) + moved)


@pytest.mark.parametrize("x", POINTS)
def test_orders_agree(x):
    assert close(trigamma(x), polygamma(1, x))


@pytest.mark.parametrize("x", [0.3, 0.62, 0.65, 0.95, 1.2, 1.3, 2.7, -0.4, -3.3])
def test_sinc_and_its_derivatives_satisfy_their_equation(x):
    # z q = sin z differentiated n times; the orders change from series to recurrence at different x
    assert close(float(np.sinc(x)), sinc_derivative(0, x))
    for n in range(1, 7):
        right = pi ** (n - 1) * math.sin(pi * x + n * pi / 2)
        lower, higher = n * sinc_derivative(n - 1, x), x * sinc_derivative(n, x)
        assert close(right, lower + higher, pi ** (n - 1) * math.exp(2 + n / 2) / n)
