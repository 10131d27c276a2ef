"""Derivatives of `scipy.special`'s functions with respect to shapes and orders, of any order, as plain scalar Python.

Each is an integral or a series of exp(g), where g is linear in logarithms and in logarithms of gamma functions. The
derivatives of exp(g) are exp(g) times the complete Bell polynomials of the derivatives of g, and are taken under the
integral sign, or term by term. The factors that are singular for small shapes (1 / Gamma(a) = a / Gamma(a + 1)) are
differentiated apart, so that nothing cancels there.

Generated code calls these functions, and the backends compile them, so they call only `math`, NumPy, builtins, and
functions of `rules/special.py` and `rules/scipy_functions.py`. They return infinity or NaN and do not raise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcdiff.rules.scipy_functions import betaln, digamma_difference
from srcdiff.rules.special import digamma, polygamma


def log1p_excess(d: float, ratio: float) -> float:
    """The number d - log(1 + d), which is small of second order; `ratio` is 1 + d.

    >>> log1p_excess(0.0, 1.0), round(log1p_excess(1.0, 2.0), 12)
    (0.0, 0.30685281944)
    """
    if abs(d) > 0.4:
        return d - math.log(ratio)
    r = d / (2.0 + d)
    power = 2.0 * r * r * r
    total = 0.0
    k = 3.0
    while abs(power) > 1e-18 * abs(total) * k and k < 60.0:
        total += power / k
        power *= r * r
        k += 2.0
    return r * d - total


def stirling_rest(z: float) -> float:
    """What remains of the logarithm of Gamma(z + 1) after sqrt(2 pi z) (z / e)^z, for z >= 10 (DLMF 5.11.1).

    >>> round(math.sqrt(20.0 * math.pi) * (10.0 / math.e) ** 10.0 * math.exp(stirling_rest(10.0)), 6)
    3628800.0
    """
    series = 0.0
    for c in (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = c + series / z / z
    return series / z


def gamma_density(a: float, x: float) -> float:
    """The density x^(a-1) exp(-x) / Gamma(a) of the gamma distribution.

    The logarithms of large shapes cancel; they are taken around the mean then (Loader 2000).

    >>> round(gamma_density(1.0, 2.0) - math.exp(-2.0), 15), gamma_density(1.0, 0.0), gamma_density(2.0, 0.0)
    (0.0, 1.0, 0.0)
    """
    shape = 1.0 * a
    upper = 1.0 * x
    if not shape > 0.0 or not upper >= 0.0 or shape == math.inf:
        return math.nan
    if upper == math.inf:
        return 0.0
    if upper == 0.0:
        return 0.0 if shape > 1.0 else 1.0 if shape == 1.0 else math.inf
    if shape < 10.0:
        return math.exp((shape - 1.0) * math.log(upper) - upper - math.lgamma(shape))
    excess = shape * log1p_excess((upper - shape) / shape, upper / shape)
    return math.sqrt(shape / (2.0 * math.pi)) / upper * math.exp(-excess - stirling_rest(shape))


def beta_density(a: float, b: float, x: float) -> float:
    """The density x^(a-1) (1-x)^(b-1) / B(a, b) of the beta distribution, in the same way.

    >>> round(beta_density(2.0, 1.0, 0.25), 15), beta_density(1.0, 3.0, 0.0), beta_density(1.0, 3.0, 1.0)
    (0.5, 3.0, 0.0)
    """
    p = 1.0 * a
    q = 1.0 * b
    low = 1.0 * x
    high = 1.0 - low
    if not (p > 0.0 and q > 0.0 and low >= 0.0 and high >= 0.0) or p == math.inf or q == math.inf:
        return math.nan
    if low == 0.0:
        return 0.0 if p > 1.0 else q if p == 1.0 else math.inf
    if high == 0.0:
        return 0.0 if q > 1.0 else p if q == 1.0 else math.inf
    if p < 10.0 or q < 10.0:
        log_low = math.log(low) if low < 0.5 else math.log1p(-high)
        log_high = math.log(high) if high < 0.5 else math.log1p(-low)
        return math.exp((p - 1.0) * log_low + (q - 1.0) * log_high - betaln(p, q))
    total = p + q
    shift = low * q - high * p
    excess = p * log1p_excess(shift / p, low / p * total) + q * log1p_excess(-shift / q, high / q * total)
    rest = stirling_rest(total) - stirling_rest(p) - stirling_rest(q)
    return math.sqrt(p / total * q / (2.0 * math.pi)) / (low * high) * math.exp(rest - excess)


def gammainc_slope(a: float, x: float) -> float:
    """The first derivative of `gammainc(a, x)` with respect to a, by less code than `gammainc_by_a`.

    Below exp(psi(a + 1)) by the series (DLMF 8.7.1), whose terms have one sign there. Above, it is minus the integral
    of t^(a-1) exp(-t) (log(t) - psi(a)) / Gamma(a) from x, which has one sign, by the double exponential formula
    (Takahasi and Mori 1974) for integrands that decay exponentially.

    >>> round(gammainc_slope(1.0, 1.0), 12)
    -0.431729710635
    """
    shape = 1.0 * a
    upper = 1.0 * x
    if not shape > 0.0 or not upper >= 0.0 or shape == math.inf:
        return math.nan
    if upper == 0.0 or upper == math.inf:
        return 0.0
    psi = 0.0
    argument = shape + 1.0
    while argument < 10.0:
        psi -= 1.0 / argument
        argument += 1.0
    z = 1.0 / argument / argument
    series = 0.0
    for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = z * (coefficient + series)
    psi += math.log(argument) - 0.5 / argument - series  # psi(a + 1)
    logarithm = math.log(upper)
    if logarithm < psi:
        term = gamma_density(shape, upper) * upper / shape
        total = 0.0
        n = 1.0
        while n < 1e6:
            part = term * (logarithm - psi)
            total += part
            if term < 1e-17 * -total and abs(part) < 1e-17 * -total:
                break
            psi += 1.0 / (shape + n)
            term *= upper / (shape + n)
            n += 1.0
        return total
    psi -= 1.0 / shape  # psi(a)
    rate = 1.0 - (shape - 1.0) / upper
    width = 1.0 / max(rate, 1.0 / math.sqrt(upper)) if upper > 1.0 else 1.0
    total = 0.0
    step = 1.0 / 32.0
    for k in range(-128, 200):
        u = k * step
        decay = math.exp(-u)
        s = width * math.exp(u - decay)
        grown = math.log1p(s / upper)
        exponent = (shape - 1.0) * grown - s
        if exponent < -745.0:
            break
        total += math.exp(exponent) * (logarithm - psi + grown) * s * (1.0 + decay)
    return -step * total * gamma_density(shape, upper)


def betainc_slope(n: int, a: float, b: float, x: float) -> float:
    """The first derivative of `betainc(a, b, x)` with respect to a (n = 0) or b (n = 1), by less code.

    With respect to a it is the integral of t^(a-1) (1-t)^(b-1) (log(t) - psi(a) + psi(a + b)) / B(a, b) from 0 to x,
    and minus the integral from x to 1. One of the two has one sign, and is taken by the double exponential formula
    for integrands that decay exponentially, with t = x exp(-v) or 1 - t = (1 - x) exp(-v).

    >>> round(betainc_slope(0, 1.0, 1.0, 0.5) / math.log(0.5), 12)
    0.5
    """
    p = (1.0 * a) if n == 0 else (1.0 * b)
    q = (1.0 * b) if n == 0 else (1.0 * a)
    low = (1.0 * x) if n == 0 else 1.0 - (1.0 * x)
    high = 1.0 - (1.0 * x) if n == 0 else (1.0 * x)
    if not (p > 0.0 and q > 0.0 and low >= 0.0 and high >= 0.0) or p == math.inf or q == math.inf:
        return math.nan
    if low == 0.0 or high == 0.0:
        return 0.0
    difference = -digamma_difference(p, q)  # psi(p) - psi(p + q)
    log_low = math.log(low) if low < 0.5 else math.log1p(-high)
    is_lower = log_low < difference
    near = p if is_lower else q  # the exponent at the end that the integral goes to
    far = q if is_lower else p
    part = low if is_lower else high
    rest = high if is_lower else low
    rate = near - (far - 1.0) * part / rest
    curvature = abs(far - 1.0) * part / rest / rest
    width = 1.0 / max(max(abs(rate), math.sqrt(curvature)), 1e-3 * near)  # compiled `max` takes two numbers
    total = 0.0
    step = 1.0 / 32.0
    for k in range(-128, 100000):
        u = k * step
        decay = math.exp(-u)
        v = width * math.exp(u - decay)
        grown = math.log1p(-part * math.expm1(-v) / rest)
        exponent = (far - 1.0) * grown - near * v
        if near * v > 745.0 and exponent < -745.0:
            break
        factor = log_low - v - difference if is_lower else log_low + grown - difference
        total += math.exp(exponent) * factor * v * (1.0 + decay) if exponent > -745.0 else 0.0
    total *= step * beta_density(1.0 * a, 1.0 * b, 1.0 * x) * part
    sign = 1.0 if is_lower == (n == 0) else -1.0
    return sign * total


def log_gamma_derivatives(n: int, x: float) -> Any:
    """The derivatives of orders 1 to n of the logarithm of the gamma function, each at the index of its order.

    >>> [round(float(c), 12) for c in log_gamma_derivatives(2, 1.0)]
    [0.0, -0.577215664902, 1.644934066848]
    """
    found = np.zeros(n + 1)
    for k in range(1, n + 1):
        found[k] = digamma(x) if k == 1 else polygamma(k - 1, x)
    return found


def log_gamma_differences(n: int, x: float, d: float) -> Any:
    """The differences of these derivatives between x + d and x, for positive x and d: exact ones if d is small, too.

    They are integrals of the next derivative from x to x + d, by the formula of Gauss and Legendre, if d <= x.

    >>> [round(float(c), 12) for c in log_gamma_differences(2, 1.0, 1.0)]
    [0.0, 1.0, -1.0]
    """
    found = np.zeros(n + 1)
    if n > 0:
        found[1] = digamma_difference(x, d)
    for k in range(2, n + 1):
        if d > x:
            found[k] = polygamma(k - 1, x + d) - polygamma(k - 1, x)
        else:
            for node, weight in (
                (0.12523340851146891, 0.24914704581340279),
                (0.36783149899818019, 0.23349253653835481),
                (0.58731795428661745, 0.20316742672306592),
                (0.76990267419430469, 0.16007832854334623),
                (0.90411725637047486, 0.10693932599531843),
                (0.98156063424671925, 0.04717533638651183),
            ):
                both = polygamma(k, x + 0.5 * d * (1.0 - node)) + polygamma(k, x + 0.5 * d * (1.0 + node))
                found[k] += 0.5 * d * weight * both
    return found


def bell_polynomials(g: Any, found: Any) -> None:
    """Set `found` to the derivatives of orders 0, 1, ... of exp(g), over exp(g), from those of g.

    >>> g, found = np.array([0.0, 3.0, 5.0]), np.zeros(3)
    >>> bell_polynomials(g, found)
    >>> found.tolist()
    [1.0, 3.0, 14.0]
    """
    found[0] = 1.0
    for order in range(1, len(found)):
        total = 0.0
        choices = 1.0
        for k in range(order):
            total += choices * g[k + 1] * found[order - 1 - k]
            choices *= (order - 1.0 - k) / (k + 1.0)
        found[order] = total


def bell_polynomials_of_two(g: Any, found: Any) -> None:
    """The same for two variables: `g[i, j]` is the derivative of order i by one of them and j by the other.

    >>> g, found = np.array([[0.0, 3.0], [2.0, 5.0]]), np.zeros((2, 2))
    >>> bell_polynomials_of_two(g, found)
    >>> found.tolist()
    [[1.0, 3.0], [2.0, 11.0]]
    """
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            total = 1.0 if i == 0 and j == 0 else 0.0
            by_first = 1 if i > 0 else 0  # the variable that the last derivative is with respect to
            rows = i - by_first
            columns = j - (1 - by_first)
            outer = 1.0
            for k in range(rows + 1):
                choices = outer
                for m in range(columns + 1):
                    total += choices * g[k + by_first, m + 1 - by_first] * found[rows - k, columns - m]
                    choices *= (columns - m) / (m + 1.0)
                outer *= (rows - k) / (k + 1.0)
            found[i, j] = total


def gamma_density_by_a(n: int, a: float, x: float) -> float:
    """The derivative of order `n` of `gamma_density(a, x)` with respect to a.

    >>> round(gamma_density_by_a(1, 1.0, 1.0) * math.e, 12)
    0.577215664902
    """
    shape = 1.0 * a
    upper = 1.0 * x
    density = gamma_density(shape, upper)
    if n < 1 or density != density:
        return 0.0 if n < 0 else density
    if upper == 0.0 or upper == math.inf:
        return 0.0 if density == 0.0 else math.inf if n % 2 == 0 else -math.inf
    g = -log_gamma_derivatives(n, shape + 1.0)
    g[1] += math.log(upper)
    bell = np.zeros(n + 1)
    bell_polynomials(g, bell)
    return float(density * (bell[n] + n / shape * bell[n - 1]))


def gammainc_by_a(n: int, a: float, x: float) -> float:
    """The derivative of order `n`, at least one, of `gammainc(a, x)` with respect to a.

    Below exp(psi(a + 1)) by the series (DLMF 8.7.1), whose terms all have one sign in the first derivative. Above, it
    is minus the derivative of the integral from x, by the double exponential formula (Takahasi and Mori 1974) for
    integrands that decay exponentially.

    >>> round(gammainc_by_a(1, 1.0, 1.0), 12)
    -0.431729710635
    """
    shape = 1.0 * a
    upper = 1.0 * x
    if not shape > 0.0 or not upper >= 0.0 or shape == math.inf:
        return math.nan
    if upper == 0.0 or upper == math.inf:
        return 0.0
    density = gamma_density(shape, upper)
    logarithm = math.log(upper)
    g = -log_gamma_derivatives(n, shape + 1.0)
    g[1] += logarithm
    bell = np.zeros(n + 1)
    total = 0.0
    if g[1] < 0.0:
        term = density * upper / shape  # x^a exp(-x) / Gamma(a + 1)
        m = 1.0
        while m < 1e7:
            bell_polynomials(g, bell)
            total += term * bell[n]
            size = term
            for _ in range(n):
                size *= 1.0 + abs(g[1])
            if shape + m > upper and size <= 1e-18 * abs(total):
                break
            change = 1.0
            for k in range(1, n + 1):
                change /= shape + m
                g[k] -= change
                change *= -k
            term *= upper / (shape + m)
            m += 1.0
        return float(total)
    first = g[1]
    rate = 1.0 - (shape - 1.0) / upper
    width = 1.0 / max(rate, 1.0 / math.sqrt(upper)) if upper > 1.0 else 1.0
    step = 1.0 / 32.0
    for k in range(-128, 200):
        u = k * step
        decay = math.exp(-u)
        s = width * math.exp(u - decay)
        grown = math.log1p(s / upper)
        exponent = (shape - 1.0) * grown - s
        if exponent < -745.0:
            break
        g[1] = first + grown
        bell_polynomials(g, bell)
        total += math.exp(exponent) * (bell[n] + n / shape * bell[n - 1]) * s * (1.0 + decay)
    return float(-step * total * density)


def harmonic_by(i: int, j: int, a: float, b: float) -> float:
    """The derivative of orders `i` and `j` of a b / (a + b) with respect to a and b; nothing cancels in it.

    >>> harmonic_by(0, 0, 2.0, 2.0), harmonic_by(1, 0, 1.0, 3.0), harmonic_by(1, 1, 1.0, 1.0)
    (1.0, 0.5625, 0.25)
    """
    total = a + b
    if i == 0 and j == 0:
        return a / total * b
    large = max(a, b)
    small = min(a, b)
    of_large = i if a >= b else j
    of_small = j if a >= b else i
    if of_large == 0:  # of large - large^2 / (large + small)
        found = -large * large / total
        for k in range(1, of_small + 1):
            found *= -k / total
        return found
    power = 1.0 / total  # of small - small^2 / (large + small): the derivatives of 1 / (large + small)
    last = 0.0
    before = 0.0
    for k in range(1, of_large + of_small + 1):
        before = last
        last = power
        power *= -k / total
    found = small * small * power + 2.0 * of_small * small * last + of_small * (of_small - 1.0) * before
    return -found


def log_beta_derivatives(n: int, m: int, a: float, b: float) -> Any:
    """The derivatives of log(Gamma(a + b + 1) / Gamma(a + 1) / Gamma(b + 1)) with respect to a and b.

    >>> np.round(log_beta_derivatives(1, 1, 1.0, 1.0), 12).tolist()
    [[0.0, 0.5], [0.5, 0.394934066848]]
    """
    found = np.zeros((n + 1, m + 1))
    found[:, 0] = log_gamma_differences(n, a + 1.0, b)
    found[0, :] = log_gamma_differences(m, b + 1.0, a)
    if n > 0 and m > 0:
        of_sum = log_gamma_derivatives(n + m, a + b + 1.0)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                found[i, j] = of_sum[i + j]
    return found


def beta_weight_by(bell: Any, factors: Any) -> float:
    """The last derivative of a product: of exp(g), over exp(g), and of a factor before it.

    >>> beta_weight_by(np.array([[1.0], [3.0]]), np.array([[2.0], [5.0]]))
    11.0
    """
    n = bell.shape[0] - 1
    m = bell.shape[1] - 1
    total = 0.0
    outer = 1.0
    for i in range(n + 1):
        choices = outer
        for j in range(m + 1):
            total += choices * factors[i, j] * bell[n - i, m - j]
            choices *= (m - j) / (j + 1.0)
        outer *= (n - i) / (i + 1.0)
    return float(total)


def beta_density_by(n: int, m: int, a: float, b: float, x: float) -> float:
    """The derivative of orders `n` and `m` of `beta_density(a, b, x)` with respect to a and b.

    >>> round(beta_density_by(1, 0, 1.0, 1.0, 0.5) - 1.0 - math.log(0.5), 14)
    0.0
    """
    p = 1.0 * a
    q = 1.0 * b
    low = 1.0 * x
    high = 1.0 - low
    density = beta_density(p, q, low)
    if n < 0 or m < 0:
        return 0.0
    if density != density or n + m == 0:
        return density
    if low == 0.0 or high == 0.0:
        return 0.0 if density == 0.0 else math.nan
    g = log_beta_derivatives(n, m, p, q)
    if n > 0:
        g[1, 0] += math.log(low) if low < 0.5 else math.log1p(-high)
    if m > 0:
        g[0, 1] += math.log(high) if high < 0.5 else math.log1p(-low)
    bell = np.zeros((n + 1, m + 1))
    factors = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        for j in range(m + 1):
            factors[i, j] = harmonic_by(i, j, p, q)
    bell_polynomials_of_two(g, bell)
    return float(density / factors[0, 0] * beta_weight_by(bell, factors))


def betainc_by(n: int, m: int, a: float, b: float, x: float) -> float:
    """The derivative of orders `n` and `m`, one of them at least one, of `betainc(a, b, x)` with respect to a and b.

    It is an integral from 0 to x, and minus the integral from x to 1. In the first derivative, one of the two has one
    sign, and that one is taken by the double exponential formula for integrands that decay exponentially, with
    t = x exp(-v) or 1 - t = (1 - x) exp(-v).

    >>> round(betainc_by(1, 0, 1.0, 1.0, 0.5) / math.log(0.5), 12)
    0.5
    """
    is_swapped = m > n  # then a is the shape of the other end, so that most derivatives are with respect to the first
    p = (1.0 * b) if is_swapped else (1.0 * a)
    q = (1.0 * a) if is_swapped else (1.0 * b)
    low = 1.0 - (1.0 * x) if is_swapped else (1.0 * x)
    high = (1.0 * x) if is_swapped else 1.0 - (1.0 * x)
    if not (p > 0.0 and q > 0.0 and low >= 0.0 and high >= 0.0) or p == math.inf or q == math.inf:
        return math.nan
    if low == 0.0 or high == 0.0:
        return 0.0
    more = m if is_swapped else n
    fewer = n if is_swapped else m
    g = log_beta_derivatives(more, fewer, p, q)
    bell = np.zeros((more + 1, fewer + 1))
    factors = np.zeros((more + 1, fewer + 1))
    for i in range(more + 1):
        for j in range(fewer + 1):
            factors[i, j] = harmonic_by(i, j, p, q)
    log_low = math.log(low) if low < 0.5 else math.log1p(-high)
    log_high = math.log(high) if high < 0.5 else math.log1p(-low)
    by_low = g[1, 0] + log_low
    by_high = (g[0, 1] if fewer > 0 else 0.0) + log_high
    is_lower = by_low + q / (p + q) / p < 0.0  # log(x) < psi(a) - psi(a + b)
    near = p if is_lower else q  # the exponent at the end that the integral goes to
    far = q if is_lower else p
    part = low if is_lower else high
    rest = high if is_lower else low
    rate = near - (far - 1.0) * part / rest
    curvature = abs(far - 1.0) * part / rest / rest
    width = 1.0 / max(max(abs(rate), math.sqrt(curvature)), 1e-3 * near)  # compiled `max` takes two numbers
    total = 0.0
    step = 1.0 / 32.0
    for k in range(-128, 100000):
        u = k * step
        decay = math.exp(-u)
        v = width * math.exp(u - decay)
        grown = math.log1p(-part * math.expm1(-v) / rest)
        exponent = (far - 1.0) * grown - near * v
        if near * v > 745.0 and exponent < -745.0:
            break
        if exponent > -745.0:
            g[1, 0] = by_low - v if is_lower else by_low + grown
            if fewer > 0:
                g[0, 1] = by_high + grown if is_lower else by_high - v
            bell_polynomials_of_two(g, bell)
            total += math.exp(exponent) * beta_weight_by(bell, factors) * v * (1.0 + decay)
    total *= step * beta_density(1.0 * a, 1.0 * b, 1.0 * x) / factors[0, 0] * part
    sign = 1.0 if is_lower != is_swapped else -1.0
    return float(sign * total)


def kve_by_order(n: int, v: float, x: float) -> float:
    """The derivative of order `n` of `kve(v, x)` with respect to v.

    It is the integral of t^n exp(x - x cosh(t)) times cosh(v t) or sinh(v t) from 0 (DLMF 10.32.9). The integrand has
    one sign and decays doubly exponentially, so the trapezoidal rule converges exponentially.

    >>> kve_by_order(1, 0.0, 1.0) == 0.0, round(kve_by_order(0, 0.5, 2.0) / math.sqrt(math.pi), 14)
    (True, 0.5)
    """
    order = abs(1.0 * v)
    argument = 1.0 * x
    if order != order or not argument >= 0.0:
        return math.nan
    if argument == math.inf:
        return 0.0
    if argument == 0.0 or order == math.inf:
        return 0.0 if n % 2 == 1 and order == 0.0 else math.inf if n % 2 == 0 or v > 0.0 else -math.inf
    step = min(0.2, 0.4 / math.sqrt(math.hypot(order, argument)))
    peak = math.asinh(order / argument)
    total = 0.5 if n == 0 else 0.0
    k = 1.0
    while True:
        t = k * step
        half = math.sinh(0.5 * t) if t < 1400.0 else math.inf
        exponent = order * t - 2.0 * argument * half * half
        if t > peak and exponent < -745.0:
            break
        both = 0.5 * (1.0 + math.exp(-2.0 * order * t)) if n % 2 == 0 else -0.5 * math.expm1(-2.0 * order * t)
        for _ in range(n):
            both *= t
        total += both * (math.exp(exponent) if exponent < 709.7 else math.inf)
        k += 1.0
    sign = -1.0 if n % 2 == 1 and v < 0.0 else 1.0
    return float(sign * step * total)
