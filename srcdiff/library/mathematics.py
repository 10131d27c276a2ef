"""Functions of `math` that consist of several primitives, as Python that srcdiff reads.

They return NaN where `math` raises for infinity or NaN, as the primitives do. Integers have 64 bits; larger results
raise `OverflowError`.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np


def times(a: Any, b: Any) -> Any:
    """The product of two nonnegative integers. Raises if it does not fit into 64 bits."""
    if b > 0 and a > (2**63 - 1) // b:
        raise OverflowError("the integer does not fit into 64 bits")
    return a * b


def factorial(n: Any) -> Any:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for k in range(2, n + 1):
        result = times(result, k)
    return result


def perm(n: Any, k: Any = None) -> Any:
    if k is None:
        return factorial(n)
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    if k > n:
        return 0
    result = 1
    for m in range(n - k + 1, n + 1):
        result = times(result, m)
    return result


def comb(n: Any, k: Any) -> Any:
    """Multiply and divide factor by factor: each division is exact, and no intermediate exceeds the result."""
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    if k > n:
        return 0
    result = 1
    for m in range(1, min(k, n - k) + 1):
        factor = n - min(k, n - k) + m
        common = math.gcd(factor, m)
        result = times(result // (m // common), factor // common)
    return result


def isqrt(n: Any) -> Any:
    """The floating-point root with a correction: for large numbers it is off by at most one."""
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(math.sqrt(n))
    if root > 0 and root > n // root:
        root -= 1
    if root + 1 <= n // (root + 1):
        root += 1
    return root


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    difference = abs(b - a)
    near = difference <= abs(rel_tol * b) or difference <= abs(rel_tol * a) or difference <= abs_tol
    return a == b or (near and math.isfinite(a) and math.isfinite(b))


def isclose_of_complex(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    difference = abs(b - a)
    near = difference <= rel_tol * abs(b) or difference <= rel_tol * abs(a) or difference <= abs_tol
    return a == b or (near and cmath.isfinite(a) and cmath.isfinite(b))


def dist(p: Any, q: Any) -> Any:
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    distance = 0.0
    for a, b in zip(p, q):  # noqa: B905 -- they are as long
        distance = math.hypot(distance, a - b)
    return distance


def sumprod(p: Any, q: Any) -> Any:
    if len(p) != len(q):
        raise ValueError("Inputs are not the same length")
    total = 0
    for a, b in zip(p, q):  # noqa: B905 -- they are as long
        total += a * b
    return total


def modf(x: Any) -> Any:
    x = float(x)
    if math.isinf(x):
        return math.copysign(0.0, x), x
    return math.fmod(x, 1.0), np.trunc(x)


def frexp(x: Any) -> Any:
    x = float(x)
    if x == 0.0 or not math.isfinite(x):
        return x, 0
    exponent = int(np.floor(math.log2(abs(x)))) + 1
    mantissa = math.ldexp(x, -exponent)
    if abs(mantissa) >= 1.0:
        return mantissa * 0.5, exponent + 1
    if abs(mantissa) < 0.5:
        return mantissa * 2.0, exponent - 1
    return mantissa, exponent


def remainder(x: Any, y: Any) -> Any:
    """The difference of x and the nearest multiple of y, ties to even, computed as in CPython."""
    x, y = float(x), float(y)
    if math.isinf(y) and math.isfinite(x):
        return x
    size, unit = abs(x), abs(y)
    above = math.fmod(size, unit)
    below = unit - above
    rest = above - 2.0 * math.fmod(0.5 * (size - above), unit)
    if above < below:
        rest = above
    elif above > below:
        rest = -below
    return math.copysign(1.0, x) * rest


def ulp(x: Any) -> Any:
    """The distance to the next larger number, also where that is infinity."""
    size = abs(float(x))
    if math.isinf(size):
        return size
    return 2.0**971 if size >= 2.0**1023 else np.spacing(size)


BY_NAME: dict[str, Any] = {
    "comb": comb,
    "dist": dist,
    "factorial": factorial,
    "frexp": frexp,
    "isclose": isclose,
    "isqrt": isqrt,
    "modf": modf,
    "perm": perm,
    "remainder": remainder,
    "sumprod": sumprod,  # since Python 3.12
    "ulp": ulp,
}
FUNCTIONS: dict[Any, Any] = {
    **{getattr(math, name): BY_NAME[name] for name in BY_NAME if hasattr(math, name)},
    cmath.isclose: isclose_of_complex,
}
"""By the function of `math` or `cmath`, for the functions that this Python has."""
