"""The loops of the compiled tape: written by `operations.py`, not by hand."""

from math import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    hypot,
    log,
    log10,
    log1p,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

import numba
import numpy as np

compiled = numba.njit(error_model="numpy", fastmath={"contract"}, cache=True)


@compiled
def power(a, b):
    return a**b


@compiled
def maximum(a, b):
    return a if a > b or a != a else b  # NaN wins, as in NumPy


@compiled
def minimum(a, b):
    return a if a < b or a != a else b


@compiled
def sign(a):
    return 1.0 if a > 0.0 else -1.0 if a < 0.0 else a


@compiled
def log2(a):
    return np.log2(a)


@compiled
def logaddexp(a, b):
    return max(a, b) + log1p(exp(-abs(a - b)))


@compiled
def log_or_zero(a):
    return log(a) if a > 0.0 else 0.0


@compiled
def forward(codes, left, right, values, first):
    """All operations in order; the number of the first comparison that comes out otherwise, or -1."""
    out = values[first:]
    for k in range(codes.shape[0]):
        code = codes[k]
        a = values[left[k]]
        b = values[right[k]]
        if code == 0:  # add
            out[k] = a + b
        elif code == 1:  # add_constant
            out[k] = a + b
        elif code == 2:  # subtract
            out[k] = a - b
        elif code == 3:  # subtract_constant
            out[k] = a - b
        elif code == 4:  # constant_subtract
            out[k] = b - a
        elif code == 5:  # multiply
            out[k] = a * b
        elif code == 6:  # multiply_constant
            out[k] = a * b
        elif code == 7:  # divide
            out[k] = a / b
        elif code == 8:  # divide_constant
            out[k] = a / b
        elif code == 9:  # constant_divide
            out[k] = b / a
        elif code == 10:  # negative
            out[k] = -a
        elif code == 11:  # absolute
            out[k] = abs(a)
        elif code == 12:  # square
            out[k] = a * a
        elif code == 13:  # power_constant
            out[k] = power(a, b)
        elif code == 14:  # remainder
            out[k] = a % b
        elif code == 15:  # floor_divide
            out[k] = a // b
        elif code == 16:  # floor
            out[k] = np.floor(a)
        elif code == 17:  # ceil
            out[k] = np.ceil(a)
        elif code == 18:  # trunc
            out[k] = np.trunc(a)
        elif code == 19:  # rint
            out[k] = np.rint(a)
        elif code == 20:  # sign
            out[k] = sign(a)
        elif code == 21:  # exp
            out[k] = exp(a)
        elif code == 22:  # expm1
            out[k] = expm1(a)
        elif code == 23:  # log
            out[k] = log(a)
        elif code == 24:  # log2
            out[k] = log2(a)
        elif code == 25:  # log10
            out[k] = log10(a)
        elif code == 26:  # log1p
            out[k] = log1p(a)
        elif code == 27:  # sqrt
            out[k] = sqrt(a)
        elif code == 28:  # sin
            out[k] = sin(a)
        elif code == 29:  # cos
            out[k] = cos(a)
        elif code == 30:  # tan
            out[k] = tan(a)
        elif code == 31:  # asin
            out[k] = asin(a)
        elif code == 32:  # acos
            out[k] = acos(a)
        elif code == 33:  # atan
            out[k] = atan(a)
        elif code == 34:  # sinh
            out[k] = sinh(a)
        elif code == 35:  # cosh
            out[k] = cosh(a)
        elif code == 36:  # tanh
            out[k] = tanh(a)
        elif code == 37:  # asinh
            out[k] = asinh(a)
        elif code == 38:  # acosh
            out[k] = acosh(a)
        elif code == 39:  # atanh
            out[k] = atanh(a)
        elif code == 40:  # erf
            out[k] = erf(a)
        elif code == 41:  # erfc
            out[k] = erfc(a)
        elif code == 42:  # power
            out[k] = power(a, b)
        elif code == 43:  # atan2
            out[k] = atan2(a, b)
        elif code == 44:  # hypot
            out[k] = hypot(a, b)
        elif code == 45:  # maximum
            out[k] = maximum(a, b)
        elif code == 46:  # minimum
            out[k] = minimum(a, b)
        elif code == 47:  # logaddexp
            out[k] = logaddexp(a, b)
        elif code == 48:  # less
            if not a < b:
                return k
        elif code == 49:  # not_less
            if a < b:
                return k
        elif code == 50:  # less_equal
            if not a <= b:
                return k
        elif code == 51:  # not_less_equal
            if a <= b:
                return k
        elif code == 52:  # equal
            if a != b:
                return k
        elif code == 53:  # not_equal
            if a == b:
                return k
    return -1


@compiled
def backward(codes, left, right, values, adjoints, first):
    """All operations backwards, each adding to the adjoints of its operands."""
    out = values[first:]
    bars = adjoints[first:]
    for k in range(codes.shape[0] - 1, -1, -1):
        bar = bars[k]
        if bar == 0.0:
            continue
        bars[k] = 0.0  # as the next call needs it
        code = codes[k]
        a = values[left[k]]
        b = values[right[k]]
        y = out[k]
        if code == 0:  # add
            adjoints[left[k]] += bar
            adjoints[right[k]] += bar
        elif code == 1:  # add_constant
            adjoints[left[k]] += bar
        elif code == 2:  # subtract
            adjoints[left[k]] += bar
            adjoints[right[k]] += -bar
        elif code == 3:  # subtract_constant
            adjoints[left[k]] += bar
        elif code == 4:  # constant_subtract
            adjoints[left[k]] += -bar
        elif code == 5:  # multiply
            adjoints[left[k]] += bar * (b)
            adjoints[right[k]] += bar * (a)
        elif code == 6:  # multiply_constant
            adjoints[left[k]] += bar * (b)
        elif code == 7:  # divide
            adjoints[left[k]] += bar * (1.0 / b)
            adjoints[right[k]] += bar * (-y / b)
        elif code == 8:  # divide_constant
            adjoints[left[k]] += bar * (1.0 / b)
        elif code == 9:  # constant_divide
            adjoints[left[k]] += bar * (-y / a)
        elif code == 10:  # negative
            adjoints[left[k]] += -bar
        elif code == 11:  # absolute
            adjoints[left[k]] += bar * (sign(a))
        elif code == 12:  # square
            adjoints[left[k]] += bar * (2.0 * a)
        elif code == 13:  # power_constant
            adjoints[left[k]] += bar * (b * power(a, b - 1.0))
        elif code == 14:  # remainder
            adjoints[left[k]] += bar
            adjoints[right[k]] += bar * (-(a // b))
        elif code == 21:  # exp
            adjoints[left[k]] += bar * (y)
        elif code == 22:  # expm1
            adjoints[left[k]] += bar * (y + 1.0)
        elif code == 23:  # log
            adjoints[left[k]] += bar * (1.0 / a)
        elif code == 24:  # log2
            adjoints[left[k]] += bar * (1.4426950408889634 / a)
        elif code == 25:  # log10
            adjoints[left[k]] += bar * (0.4342944819032518 / a)
        elif code == 26:  # log1p
            adjoints[left[k]] += bar * (1.0 / (1.0 + a))
        elif code == 27:  # sqrt
            adjoints[left[k]] += bar * (0.5 / y)
        elif code == 28:  # sin
            adjoints[left[k]] += bar * (cos(a))
        elif code == 29:  # cos
            adjoints[left[k]] += bar * (-sin(a))
        elif code == 30:  # tan
            adjoints[left[k]] += bar * (1.0 + y * y)
        elif code == 31:  # asin
            adjoints[left[k]] += bar * (1.0 / sqrt(1.0 - a * a))
        elif code == 32:  # acos
            adjoints[left[k]] += bar * (-1.0 / sqrt(1.0 - a * a))
        elif code == 33:  # atan
            adjoints[left[k]] += bar * (1.0 / (1.0 + a * a))
        elif code == 34:  # sinh
            adjoints[left[k]] += bar * (cosh(a))
        elif code == 35:  # cosh
            adjoints[left[k]] += bar * (sinh(a))
        elif code == 36:  # tanh
            adjoints[left[k]] += bar * (1.0 - y * y)
        elif code == 37:  # asinh
            adjoints[left[k]] += bar * (1.0 / sqrt(a * a + 1.0))
        elif code == 38:  # acosh
            adjoints[left[k]] += bar * (1.0 / sqrt(a * a - 1.0))
        elif code == 39:  # atanh
            adjoints[left[k]] += bar * (1.0 / (1.0 - a * a))
        elif code == 40:  # erf
            adjoints[left[k]] += bar * (1.1283791670955126 * exp(-a * a))
        elif code == 41:  # erfc
            adjoints[left[k]] += bar * (-1.1283791670955126 * exp(-a * a))
        elif code == 42:  # power
            adjoints[left[k]] += bar * (b * power(a, b - 1.0))
            adjoints[right[k]] += bar * (y * log_or_zero(a))
        elif code == 43:  # atan2
            adjoints[left[k]] += bar * (b / (a * a + b * b))
            adjoints[right[k]] += bar * (-a / (a * a + b * b))
        elif code == 44:  # hypot
            adjoints[left[k]] += bar * (a / y)
            adjoints[right[k]] += bar * (b / y)
        elif code == 45:  # maximum
            adjoints[left[k]] += bar * ((a > b) + 0.5 * (a == b))
            adjoints[right[k]] += bar * ((a < b) + 0.5 * (a == b))
        elif code == 46:  # minimum
            adjoints[left[k]] += bar * ((a < b) + 0.5 * (a == b))
            adjoints[right[k]] += bar * ((a > b) + 0.5 * (a == b))
        elif code == 47:  # logaddexp
            adjoints[left[k]] += bar * (exp(a - y))
            adjoints[right[k]] += bar * (exp(b - y))
