"""Functions of `scipy.special` as plain scalar Python, and derivatives of them that have no formula.

Generated code calls them, and the backends compile them, so each is self-contained: it calls only `math`, NumPy and
builtins. They return infinity or NaN and do not raise. Numba leaves a single as it is in `float(x)`, but not in
`1.0 * x`. `tests/scipy` compares them with mpmath.
"""

from __future__ import annotations

import math

import numpy as np


def gamma_function(x: float) -> float:
    """The gamma function; infinite or NaN where `math.gamma` raises.

    >>> gamma_function(5.0), gamma_function(0.0), gamma_function(-1.0), gamma_function(200.0)
    (24.0, inf, nan, inf)
    """
    argument = 1.0 * x
    if argument == 0.0:
        return math.copysign(math.inf, argument)
    if argument > 171.6243769563027:
        return math.inf
    if argument < 0.0 and argument == float(np.floor(argument)):
        return math.nan
    return math.gamma(argument)


def gammaln(x: float) -> float:
    """The logarithm of the absolute value of the gamma function.

    >>> gammaln(1.0), gammaln(-2.0)
    (0.0, inf)
    """
    argument = 1.0 * x
    if argument > 2.556348163871690e305 or (argument <= 0.0 and argument == float(np.floor(argument))):
        return math.inf
    return math.lgamma(argument)


def loggamma(x: float) -> float:
    """The logarithm of the gamma function, which is real where the gamma function is not negative.

    >>> loggamma(1.0), loggamma(-0.5)
    (0.0, nan)
    """
    argument = 1.0 * x
    if argument < 0.0:
        return math.nan
    if argument == 0.0 or argument > 2.556348163871690e305:
        return math.inf
    return math.lgamma(argument)


def gammasgn(x: float) -> float:
    """The sign of the gamma function.

    >>> gammasgn(1.5), gammasgn(-0.5), gammasgn(-1.0)
    (1.0, -1.0, nan)
    """
    argument = 1.0 * x
    if argument != argument:
        return argument
    if argument > 0.0:
        return 1.0
    if argument == 0.0:
        return math.copysign(1.0, argument)
    below = float(np.floor(argument))
    if argument == below:
        return math.nan
    return 1.0 if below % 2.0 == 0.0 else -1.0


def betaln(a: float, b: float) -> float:
    """The logarithm of the absolute value of the beta function.

    Of large arguments, the logarithms of gamma functions cancel. Their sum is taken by hand then, and what remains of
    Stirling's series (DLMF 5.11.1) is added.

    >>> round(betaln(2.0, 3.0) + math.log(12.0), 15)
    0.0
    """
    p = min((1.0 * a), (1.0 * b))
    q = max((1.0 * a), (1.0 * b))
    if p != p or q != q:
        return math.nan
    if p == 0.0 or (p < 0.0 and p == float(np.floor(p))):
        if p < 0.0 and q == float(np.floor(q)) and 0.0 < q <= -p:
            return math.lgamma(q) + math.lgamma(1.0 - p - q) - math.lgamma(1.0 - p)
        return math.inf
    if q == math.inf:
        return -math.inf if p > 0.0 else math.nan
    total = p + q
    if p < 0.0 or q < 10.0:
        if total <= 0.0 and total == float(np.floor(total)):
            return -math.inf
        return math.lgamma(p) + math.lgamma(q) - math.lgamma(total)
    correction = 0.0
    for k in range(3 if p >= 10.0 else 2):
        z = total if k == 0 else q if k == 1 else p
        series = 0.0
        for c in (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
            series = c + series / z / z
        correction += -series / z if k == 0 else series / z
    if p < 10.0:
        return math.lgamma(p) + correction + p - p * math.log(total) + (q - 0.5) * math.log1p(-p / total)
    half_log_2pi = 0.9189385332046727
    return -0.5 * math.log(q) + half_log_2pi + correction + (p - 0.5) * math.log(p / total) + q * math.log1p(-p / total)


def digamma_difference(x: float, d: float) -> float:
    """The difference psi(x + d) - psi(x), which is small if d is, or if x is large: the parts that cancel are left out.

    >>> digamma_difference(1.0, 1.0), digamma_difference(3.0, 0.0)
    (1.0, 0.0)
    """
    low = 1.0 * x
    step = 1.0 * d
    high = low + step
    total = 0.0
    if low <= 0.0 or high <= 0.0:  # one by one, with their reflections (DLMF 5.5.4)
        for k in range(2):
            sign = 1.0 if k == 0 else -1.0
            argument = high if k == 0 else low
            if argument <= 0.0:
                distance = argument - float(np.floor(argument + 0.5))
                if distance == 0.0 or argument == -math.inf:
                    return math.nan
                total -= sign * math.pi / math.tan(math.pi * distance)
                argument = 1.0 - argument
            while argument < 10.0:
                total -= sign / argument
                argument += 1.0
            z = 1.0 / argument / argument
            series = 0.0
            for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
                series = z * (coefficient + series)
            total += sign * (math.log(argument) - 0.5 / argument - series)
        return total
    if high == math.inf or low != low or high != high:
        return math.nan if low == high or low != low or high != high else math.inf
    while low < 10.0 or high < 10.0:
        total += step / low / high
        low += 1.0
        high += 1.0
    difference = 0.0  # of the asymptotic series (5.11.2), by powers of 1 / x^2, whose differences are products
    u = 1.0 / low / low
    v = 1.0 / high / high
    gap = -step * (low + high) * u * v  # v - u
    power_u = 1.0
    change = gap  # v^k - u^k
    for coefficient in (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12):
        difference -= coefficient * change
        power_u *= u
        change = change * v + power_u * gap
    return total + math.log1p(step / low) + 0.5 * step / low / high + difference


def ndtr(x: float) -> float:
    """The distribution function of the standard normal distribution.

    >>> ndtr(0.0), ndtr(-math.inf)
    (0.5, 0.0)
    """
    return 0.5 * math.erfc(-(1.0 * x) * 0.7071067811865476)


def expit(x: float) -> float:
    """The logistic function, 1 / (1 + exp(-x)).

    >>> expit(0.0), expit(-1000.0), expit(1000.0)
    (0.5, 0.0, 1.0)
    """
    argument = 1.0 * x
    if argument >= 0.0:
        return 1.0 / (1.0 + math.exp(-argument))
    small = math.exp(argument)
    return small / (1.0 + small)


def logit(x: float) -> float:
    """The inverse of the logistic function, log(x / (1 - x)).

    >>> logit(0.5), logit(0.0), logit(1.0), logit(2.0)
    (0.0, -inf, inf, nan)
    """
    argument = 1.0 * x
    if argument == 0.0:
        return -math.inf
    if argument == 1.0:
        return math.inf
    if not 0.0 < argument < 1.0:
        return math.nan
    if 0.3 <= argument <= 0.65:
        twice = 2.0 * (argument - 0.5)
        return math.log1p(twice) - math.log1p(-twice)
    return math.log(argument) - math.log1p(-argument)


def log_expit(x: float) -> float:
    """The logarithm of the logistic function.

    >>> log_expit(-1000.0), log_expit(1000.0)
    (-1000.0, -0.0)
    """
    argument = 1.0 * x
    if argument < 0.0:
        return argument - math.log1p(math.exp(argument))
    return -math.log1p(math.exp(-argument))


def xlogy(x: float, y: float) -> float:
    """The product of x and log(y), which is zero for a zero x.

    >>> xlogy(0.0, 0.0), xlogy(2.0, 1.0)
    (0.0, 0.0)
    """
    if x == 0.0 and y == y:
        return 0.0
    return (1.0 * x) * float(np.log(1.0 * y))


def xlog1py(x: float, y: float) -> float:
    """The product of x and log(1 + y), which is zero for a zero x.

    >>> xlog1py(0.0, -1.0), xlog1py(2.0, 0.0)
    (0.0, 0.0)
    """
    if x == 0.0 and y == y:
        return 0.0
    return (1.0 * x) * float(np.log1p(1.0 * y))


def entr(x: float) -> float:
    """The entropy -x log(x); zero at zero, and minus infinity below.

    >>> entr(1.0), entr(0.0), entr(-1.0)
    (-0.0, 0.0, -inf)
    """
    argument = 1.0 * x
    if argument > 0.0:
        return -argument * math.log(argument)
    if argument == 0.0:
        return 0.0
    return -math.inf if argument < 0.0 else argument


def rel_entr(x: float, y: float) -> float:
    """The relative entropy x log(x / y); zero for a zero x, and infinite outside its domain.

    >>> rel_entr(1.0, 1.0), rel_entr(0.0, 0.0), rel_entr(1.0, 0.0)
    (0.0, 0.0, inf)
    """
    p = 1.0 * x
    q = 1.0 * y
    if p != p or q != q:
        return math.nan
    if p > 0.0 and q > 0.0:
        ratio = p / q
        if 0.5 < ratio < 2.0:
            return p * math.log1p((p - q) / q)  # the difference of two numbers that are close is exact
        if 0.0 < ratio < math.inf:
            return p * math.log(ratio)
        return p * (math.log(p) - math.log(q))
    return 0.0 if p == 0.0 and q >= 0.0 else math.inf


def kl_div(x: float, y: float) -> float:
    """The divergence x log(x / y) - x + y.

    >>> kl_div(1.0, 1.0), kl_div(0.0, 2.0), kl_div(1.0, 0.0)
    (0.0, 2.0, inf)
    """
    p = 1.0 * x
    q = 1.0 * y
    if p != p or q != q:
        return math.nan
    if p > 0.0 and q > 0.0:
        ratio = p / q
        if 0.9 < ratio < 1.1:  # (x - y)^2 / y times a series: p log1p(d) - q d with d = (p - q) / q
            d = (p - q) / q
            total = 0.0
            power = 1.0
            for k in range(2, 22):
                total += power / (k * (k - 1.0))
                power *= -d
            return q * d * d * total
        return p * math.log(ratio) - p + q
    return q if p == 0.0 and q >= 0.0 else math.inf


def huber(delta: float, r: float) -> float:
    """Huber's loss: a parabola up to delta, and a line from there.

    >>> huber(1.0, 0.5), huber(1.0, -2.0), huber(-1.0, 0.0)
    (0.125, 1.5, inf)
    """
    width = 1.0 * delta
    size = abs(1.0 * r)
    if width < 0.0:
        return math.inf
    if size <= width:
        return 0.5 * size * size
    return width * (size - 0.5 * width)


def pseudo_huber(delta: float, r: float) -> float:
    """The smooth version of Huber's loss, delta^2 (sqrt(1 + (r / delta)^2) - 1).

    >>> pseudo_huber(1.0, 0.0), pseudo_huber(-1.0, 0.0)
    (0.0, inf)
    """
    width = 1.0 * delta
    if width < 0.0:
        return math.inf
    if width == 0.0 or r == 0.0:
        return 0.0
    ratio = (1.0 * r) / width
    return width * width * float(np.expm1(0.5 * float(np.log1p(ratio * ratio))))


def exprel_derivative(n: int, x: float) -> float:
    """The derivative of order `n` of exprel(x) = (exp(x) - 1) / x, which is the integral of t^n exp(x t) from 0 to 1.

    Both series have terms of one sign. Far from zero the recurrence x q_n = exp(x) - n q_(n-1) is stable.

    >>> exprel_derivative(0, 0.0), exprel_derivative(1, 0.0)
    (1.0, 0.5)
    """
    argument = 1.0 * x
    if argument != argument:
        return argument
    if argument > 709.0:
        return math.inf
    if abs(argument) > 30.0 + 2.0 * n:
        exponential = math.exp(argument)
        result = float(np.expm1(argument)) / argument
        for k in range(1, n + 1):
            result = (exponential - k * result) / argument
        return result
    if argument > 0.0:
        power = 1.0
        result = 1.0 / (n + 1.0)
        j = 1.0
        while power > 1e-18 * result * (j + n + 1.0):
            power *= argument / j
            result += power / (j + n + 1.0)
            j += 1.0
        return result
    power = 1.0 / (n + 1.0)
    result = power
    j = 1.0
    while power > 1e-18 * result:
        power *= -argument / (n + 1.0 + j)
        result += power
        j += 1.0
    return result * math.exp(argument)


def boxcox(x: float, lmbda: float) -> float:
    """The transformation of Box and Cox, (x^lambda - 1) / lambda; the logarithm for a zero lambda.

    >>> boxcox(1.0, 2.0), round(boxcox(3.0, 2.0), 14)
    (0.0, 4.0)
    """
    exponent = 1.0 * lmbda
    logarithm = float(np.log(1.0 * x))
    if abs(exponent) < 1e-19:
        return logarithm
    return float(np.expm1(exponent * logarithm)) / exponent


def boxcox1p(x: float, lmbda: float) -> float:
    """The transformation of Box and Cox of 1 + x.

    >>> boxcox1p(0.0, 2.0)
    0.0
    """
    exponent = 1.0 * lmbda
    logarithm = float(np.log1p(1.0 * x))
    if abs(exponent) < 1e-19 or (abs(logarithm) < 1e-289 and abs(exponent) < 1e273):
        return logarithm
    return float(np.expm1(exponent * logarithm)) / exponent


def exp10(x: float) -> float:
    """Ten to a power.

    >>> exp10(2.0)
    100.0
    """
    return float(np.power(10.0, (1.0 * x)))


def lambertw(x: float, k: int) -> float:
    """The real branches 0 and -1 of Lambert's function, where w exp(w) = x; NaN where a branch is not real.

    Halley's iteration, from the series at the branch point (Corless et al. 1996, 4.22) or from logarithms.

    >>> lambertw(math.e, 0), lambertw(0.0, 0), lambertw(1.0, -1)
    (1.0, 0.0, nan)
    """
    argument = 1.0 * x
    if argument != argument or not -1 <= k <= 0:
        return math.nan
    if k == 0 and (argument == math.inf or argument == 0.0):
        return argument
    if k == -1 and argument == 0.0:
        return -math.inf
    if k == -1 and argument > 0.0:
        return math.nan
    above = argument + 0.36787944117144233
    if above < 0.0:
        return -1.0 if above > -1e-16 else math.nan
    p = math.sqrt(2.0 * math.e * above)
    if k == -1:
        p = -p
    if abs(p) < 1e-3:
        return -1.0 + p * (1.0 + p * (-1 / 3 + p * (11 / 72 + p * (-43 / 540 + p * 769 / 17280))))
    if k == -1 and argument > -0.1:
        first = math.log(-argument)
        second = math.log(-first)
        w = first - second + second / first
    elif k == 0 and argument > 3.0:
        first = math.log(argument)
        second = math.log(first)
        w = first - second + second / first
    elif abs(p) < 1.5:
        w = -1.0 + p * (1.0 + p * (-1 / 3 + p * 11 / 72))
    else:
        w = math.log1p(argument)
    for _ in range(20):
        exponential = math.exp(-w)
        excess = w - argument * exponential  # over exp(w), so that nothing overflows
        step = excess / (w + 1.0 - (w + 2.0) * excess / (2.0 * w + 2.0))
        w -= step
        if abs(step) <= 4e-16 * abs(w):
            break
    return w


def zeta(x: float, q: float) -> float:
    """The zeta function of Hurwitz, the sum over k >= 0 of (k + q)^-x; for q = 1 that of Riemann, also below one.

    Euler and Maclaurin sum it (DLMF 25.11.5 with the remainder dropped). Below zero, Riemann's is reflected (25.4.1).

    >>> round(zeta(2.0, 1.0) - math.pi**2 / 6, 15), zeta(1.0, 1.0)
    (0.0, inf)
    """
    s = 1.0 * x
    start = 1.0 * q
    if s != s or start != start:
        return math.nan
    if s == 1.0:
        return math.inf
    factor = 1.0
    if s < 1.0:
        if start != 1.0:
            return math.nan
        if s < 0.0:
            if s == 2.0 * float(np.floor(0.5 * s)):
                return 0.0
            if s < -170.0:
                return math.nan
            turn = 0.5 * s - 2.0 * float(np.floor(0.25 * s))
            factor = float(np.power(2.0 * math.pi, s)) / math.pi * math.sin(math.pi * turn) * math.gamma(1.0 - s)
            s = 1.0 - s
    if start <= 0.0:
        if start == float(np.floor(start)):
            return math.inf
        if s != float(np.floor(s)):
            return math.nan
    if s == math.inf:
        return 1.0 if start == 1.0 else 0.0 if start > 1.0 else math.inf
    total = 0.0
    while start < 12.0:
        term = float(np.power(start, -s))
        total += term
        start += 1.0
        if 0.0 < term < 1e-18 * total:
            return factor * total
    power = float(np.power(start, -s))
    total += start * power / (s - 1.0) + 0.5 * power
    power *= s / start
    j = 1.0
    for coefficient in (
        1 / 12,
        -1 / 720,
        1 / 30240,
        -1 / 1209600,
        1 / 47900160,
        -691 / 1307674368000,
        1 / 74724249600,
        -3617 / 10670622842880000,
        43867 / 5109094217170944000,
        -174611 / 802857662698291200000,
    ):
        total += coefficient * power
        power *= (s + j) * (s + j + 1.0) / start / start
        j += 2.0
    return factor * total
