"""The functions that derivatives need and neither `math` nor NumPy has, as plain scalar Python.

Generated code calls them, and the backends compile them, so each is self-contained: it calls only `math`, NumPy and
builtins. They return infinity or NaN and do not raise.
"""

from __future__ import annotations

import math

import numpy as np


def heaviside(x: float, y: float) -> float:
    """Zero below zero, one above, `y` at zero: `np.heaviside`, which Numba lacks.

    >>> heaviside(-2.0, 0.5), heaviside(0.0, 0.5), heaviside(2.0, 0.5)
    (0.0, 0.5, 1.0)
    """
    if x < 0.0:
        return 0.0
    if x > 0.0:
        return 1.0
    if x == 0.0:
        return y
    return x  # NaN


def sinc_derivative(n: int, x: float) -> float:
    """The derivative of order `n` of sinc(x) = sin(pi x) / (pi x).

    With z = pi x and sinc(x) = integral of cos(z t) over t from 0 to 1, sinc^(n) = pi^n q_n where

        q_n = sum over j of cos^(n + j)(0) z^j / (j! (j + n + 1))           by the series of the cosine,
        q_n = (sin(z + n pi / 2) - n q_(n-1)) / z                           by differentiating z q_0 = sin z.

    The series cancels for large z, the recurrence grows errors by n / z; each is used where it is good.

    >>> sinc_derivative(1, 0.0), sinc_derivative(1, 1.0)
    (0.0, -1.0)
    """
    argument = float(x)
    z = math.pi * argument
    quotient = 0.0
    if abs(z) < 2.0 + 0.5 * n:
        power = z if n % 2 == 1 else 1.0  # z^j / j!, times the sign of the derivative of the cosine
        if (n + n % 2) // 2 % 2 == 1:
            power = -power
        j = n % 2
        while abs(power) > 1e-20 and j < 200:
            quotient += power / (j + n + 1.0)
            power *= -z * z / ((j + 1.0) * (j + 2.0))
            j += 2
    else:
        turn = math.pi * (argument - 2.0 * float(np.floor(0.5 * argument + 0.5)))
        sine = math.sin(turn)
        cosine = math.cos(turn)
        for k in range(n + 1):
            derivative = sine if k % 2 == 0 else cosine
            if k % 4 >= 2:
                derivative = -derivative
            quotient = (derivative - k * quotient) / z
    for _ in range(n):
        quotient *= math.pi
    return quotient


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function, psi(x).

    Reflection (DLMF 5.5.4) for negative arguments, recurrence (5.5.2) up to ten, asymptotic series (5.11.2) from there.
    The error is some units in the last place of the largest term, so near a zero of psi it is as if the argument's
    last bit were another.

    >>> round(digamma(1.0), 14)  # minus Euler's constant
    -0.57721566490153
    """
    argument = float(x)
    if argument == math.inf:
        return math.inf
    if argument == 0.0:
        return math.copysign(math.inf, -argument)
    total = 0.0
    if argument < 0.0:
        if argument == -math.inf:
            return math.nan
        distance = argument - float(np.floor(argument + 0.5))  # to the nearest pole
        if distance == 0.0:
            return math.nan
        total = -math.pi / math.tan(math.pi * distance)
        argument = 1.0 - argument
    while argument < 10.0:
        total -= 1.0 / argument
        argument += 1.0
    z = 1.0 / argument / argument
    series = 0.0
    for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):  # B_2k / 2k, k = 7, ..., 1
        series = z * (coefficient + series)
    return total + (math.log(argument) - 0.5 / argument - series)


def trigamma(x: float) -> float:
    """The derivative of `digamma`.

    Reflection (DLMF 5.15.6), recurrence (5.15.5) up to ten, asymptotic series (5.15.8) from there.

    >>> round(trigamma(1.0) - math.pi**2 / 6, 15)
    0.0
    """
    argument = float(x)
    if argument == -math.inf:
        return math.nan
    total = 0.0
    sign = 1.0
    if argument <= 0.0:
        distance = argument - float(np.floor(argument + 0.5))  # to the nearest pole
        if distance == 0.0:
            return math.inf
        root = math.pi / math.sin(math.pi * distance)
        total = root * root
        sign = -1.0
        argument = 1.0 - argument
    while argument < 10.0:
        total += sign / argument / argument
        argument += 1.0
    z = 1.0 / argument / argument
    series = 0.0
    for bernoulli in (-3617 / 510, 7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):  # B_16, ..., B_2
        series = z * (bernoulli + series)
    return total + sign * (0.5 * z + (1.0 + series) / argument)


def polygamma(n: int, x: float) -> float:
    """The derivative of order `n`, at least one, of `digamma`.

    It is (-1)^(n+1) n! times the sum over k >= 0 of (x + k)^-s with s = n + 1 (DLMF 5.15.1), a Hurwitz zeta function,
    which Euler and Maclaurin sum (25.11.5 with the remainder dropped; as in Cephes' zeta.c). For negative x the sum
    over all integers k is taken, which depends only on the distance to the nearest pole, less the terms k < 0.

    >>> round(polygamma(3, 1.0) - math.pi**4 / 15, 14)
    0.0
    """
    argument = float(x)
    if n < 1 or argument == -math.inf or argument != argument:
        return math.nan
    parity = 1.0 if n % 2 == 1 else -1.0
    if argument == math.inf:
        return parity * 0.0
    s = n + 1.0
    total = 0.0
    distance = 0.0
    sums = 1
    if argument <= 0.0:
        distance = argument - float(np.floor(argument + 0.5))  # to the nearest pole
        if distance == 0.0:
            if n % 2 == 1:
                return math.inf
            return math.copysign(math.inf, -argument) if argument == 0.0 else math.nan
        total = float(np.power(1.0 / distance, s))
        sums = 3
    for k in range(sums):
        start = argument
        weight = 1.0
        if sums == 3:
            start = 1.0 + distance if k == 0 else 1.0 - distance if k == 1 else 1.0 - argument
            weight = 1.0 if k == 0 else parity if k == 1 else -parity
        zeta = 0.0
        while start < s + 12.0:
            zeta += float(np.power(1.0 / start, s))
            start += 1.0
        power = float(np.power(1.0 / start, s))
        zeta += float(np.power(1.0 / start, s - 1.0)) / (s - 1.0) + 0.5 * power
        power *= s / start
        j = 1.0
        # B_2k / (2k)! for k = 1, ..., 9
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
        ):
            zeta += coefficient * power
            power *= (s + j) * (s + j + 1.0) / start / start
            j += 2.0
        total += weight * zeta
    for k in range(1, n + 1):
        total *= k
    return parity * total
