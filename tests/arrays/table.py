"""The table of array functions: every supported NumPy function and form, one row each.

This module does not import srcdiff. A row is a name, a function that returns a number, and its points: `every` gives a
point in all memory layouts and in float32, `once` a single one. Arguments are shapes, or arrays if the numbers matter.
"""

from __future__ import annotations

import math

import numpy as np

from tests.arrays.rows import (
    NUMPY,
    Row,
    array,
    booleans,
    every,
    integers,
    once,
    positive_definite,
    regular,
    row,
    with_real_eigenvalues,
)

# -------------------------------------------------------------------------------------------- elementwise functions

ELEMENTWISE: list[Row] = [
    row("negative", lambda a, w: np.sum(np.negative(a) * w), every((5,)) + once((2, 3)) + once((0,))),
    row("positive", lambda a, w: np.sum(np.positive(a) * w), every((2, 3))),
    row("square", lambda a, w: np.sum(np.square(a) * w), every((2, 3)) + once((1, 1, 2)) + once((2, 0))),
    row("reciprocal", lambda a, w: np.sum(np.reciprocal(a) * w), every((4,), low=0.5, high=2.0)),
    row("sqrt", lambda a, w: np.sum(np.sqrt(a) * w), every((2, 3), low=0.5, high=2.0)),
    row("cbrt", lambda a, w: np.sum(np.cbrt(a) * w), once((2, 3), low=0.5, high=2.0)),
    row("exp", lambda a, w: np.sum(np.exp(a) * w), every((2, 2, 2)) + once((1,)) + once((0, 3))),
    row("exp2", lambda a, w: np.sum(np.exp2(a) * w), once((5,))),
    row("expm1", lambda a, w: np.sum(np.expm1(a) * w), once((5,))),
    row("log", lambda a, w: np.sum(np.log(a) * w), every((2, 3), low=0.5, high=2.0)),
    row("log2", lambda a, w: np.sum(np.log2(a) * w), once((5,), low=0.5, high=2.0)),
    row("log10", lambda a, w: np.sum(np.log10(a) * w), once((5,), low=0.5, high=2.0)),
    row("log1p", lambda a, w: np.sum(np.log1p(a) * w), every((5,), low=0.5, high=2.0)),
    row("sin", lambda a, w: np.sum(np.sin(a) * w), every((2, 1, 2, 2)) + once((1, 1))),
    row("cos", lambda a, w: np.sum(np.cos(a) * w), every((5,))),
    row("tan", lambda a, w: np.sum(np.tan(a) * w), once((5,))),
    row("arcsin", lambda a, w: np.sum(np.arcsin(a) * w), once((5,), low=-0.7, high=0.7)),
    row("arccos", lambda a, w: np.sum(np.arccos(a) * w), once((5,), low=-0.7, high=0.7)),
    row("arctan", lambda a, w: np.sum(np.arctan(a) * w), once((5,))),
    row("sinh", lambda a, w: np.sum(np.sinh(a) * w), once((2, 3))),
    row("cosh", lambda a, w: np.sum(np.cosh(a) * w), once((2, 3))),
    row("tanh", lambda a, w: np.sum(np.tanh(a) * w), every((2, 3)) + once((3, 1))),
    row("arcsinh", lambda a, w: np.sum(np.arcsinh(a) * w), once((5,))),
    row("arccosh", lambda a, w: np.sum(np.arccosh(a) * w), once((5,), low=1.5, high=3.0)),
    row("arctanh", lambda a, w: np.sum(np.arctanh(a) * w), once((5,), low=-0.7, high=0.7)),
    row("degrees", lambda a, w: np.sum((np.degrees(a) + np.rad2deg(a)) * w), once((5,))),
    row("radians", lambda a, w: np.sum((np.radians(a) + np.deg2rad(a)) * w), once((5,))),
    row("sinc", lambda a, w: np.sum(np.sinc(a) * w), once((5,))),
    row("absolute", lambda a, w: np.sum((np.abs(a) + np.absolute(a * 2.0) + np.fabs(a)) * w), every((2, 3))),
    row("nan_to_num", lambda a, w: np.sum(np.nan_to_num(a) * w), once((5,))),
    row("of_reals", lambda a, w: np.sum((a * np.isreal(a) + np.imag(a) - np.iscomplex(a)) * w), once((2, 3))),
    row("add_subtract", lambda a, b, w: np.sum((np.add(a, b) - np.subtract(b, a * b)) * w), every((2, 3), (2, 3))),
    row("multiply", lambda a, b, w: np.sum(np.multiply(a, b) * w), every((2, 3), (3,)) + once((0,), (0,))),
    row("divide", lambda a, b, w: np.sum(np.divide(a, b) * w), every((2, 3), (2, 1), low=0.5, high=2.0)),
    row("true_divide", lambda a, b, w: np.sum(np.true_divide(a, b) * w), once((3,), (3,), low=0.5, high=2.0)),
    row("power", lambda a, b, w: np.sum(np.power(a, b) * w), every((2, 3), (3,), low=0.5, high=2.0)),
    row("float_power", lambda a, b, w: np.sum(np.float_power(a, b) * w), once((3,), (3,), low=0.5, high=2.0)),
    row("remainder", lambda a, b, w: np.sum(np.remainder(a, b) * w), once((4,), array(4, low=2.2, high=2.6))),
    row("mod", lambda a, b, w: np.sum(np.mod(5.2 * a, b) * w), once((4,), array(4, low=0.9, high=1.1, start=0.8))),
    row("fmod", lambda a, b, w: np.sum(np.fmod(5.2 * a, b) * w), once((4,), array(4, low=0.9, high=1.1, start=0.8))),
    row("maximum", lambda a, b, w: np.sum(np.maximum(a, b) * w), every((2, 3), (3,)) + once((2, 2), ())),
    row("minimum", lambda a, b, w: np.sum(np.minimum(a, b) * w), every((2, 3), (2, 1))),
    row("fmax_fmin", lambda a, b, w: np.sum((np.fmax(a, b) + 2.0 * np.fmin(a, b * b)) * w), once((5,), (5,))),
    row("relu", lambda a, w: np.sum(np.maximum(a, 0.0) * w), every((3, 4))),
    row("hypot", lambda a, b, w: np.sum(np.hypot(a, b) * w), every((2, 3), (2, 3))),
    row("arctan2", lambda a, b, w: np.sum(np.arctan2(a, b) * w), every((2, 3), (3,), low=0.2)),
    row("logaddexp", lambda a, b, w: np.sum(np.logaddexp(a, b) * w), every((2, 3), (2, 3))),
    row("logaddexp2", lambda a, b, w: np.sum(np.logaddexp2(a, b) * w), once((5,), (1,))),
    row("copysign", lambda a, b, w: np.sum(np.copysign(a, b) * w), once((5,), (5,))),
    row("heaviside", lambda a, w: np.sum(np.heaviside(a, 0.5) * a * w), once((5,))),
    row("floor_ceil", lambda a, w: np.sum((np.floor(3.1 * a) + a * np.ceil(2.2 * a)) * w), once((5,))),
    row("trunc_rint", lambda a, w: np.sum((a * np.trunc(3.1 * a) + a * np.rint(2.2 * a)) * w), once((5,))),
    row("round", lambda a, w: np.sum((a * np.round(3.1 * a) + a * np.round(a, 1) + a.round()) * w), once((5,))),
    row("sign", lambda a, w: np.sum(np.sign(a) * a * w), every((2, 3))),
    row("isfinite", lambda a, w: np.sum(np.isfinite(a) * a * w), once((2, 3))),
    row("logical", lambda a, b, w: np.sum(np.logical_and(a > 0, ~(b > 0)) * a * b * w), once((2, 3), (3,))),
]

# ------------------------------------------------------------------------------------------------------- operators


def augmented_operators(a, b, w):
    c = a.copy()
    c += b
    c *= a
    c -= 2.0
    c /= b
    c **= 2
    return np.sum(c * w)


def augmented_argument(a, b):
    """The argument itself is updated in place."""
    a *= b
    a += a * b
    return np.sum(a * a)


def augmented_broadcast(a, b, w):
    c = a * a
    c -= b
    c *= b
    return np.sum(c * w)


def not_augmented(a, w):
    """`b = b + ...` makes a new array, and `a` is unchanged."""
    b = a
    b = b + a[0]
    b *= 2.0
    return np.sum(b * a * w)


def alias_augmented(a, w):
    """`b += ...` changes `a` too."""
    b = a
    b += a[0]
    return np.sum(b * a * w)


def out_argument(a, b, w):
    c = np.empty_like(a)
    np.multiply(a, b, out=c)
    np.exp(c, out=c)
    return np.sum(c * w)


OPERATORS: list[Row] = [
    row("add", lambda a, b, w: np.sum((a + b) * (a - b) * w), every((2, 3), (2, 3)) + once((2, 0), (2, 0))),
    row("divide", lambda a, b, w: np.sum((a / b) * w), every((2, 3), (2, 3), low=0.5, high=2.0)),
    row("unary", lambda a, w: np.sum((-a * +a - abs(a)) * w), every((2, 3))),
    row("power_two", lambda a, w: np.sum(a**2 * w), every((2, 3)) + once((0,))),
    row("power_three", lambda a, w: np.sum(a**3 * w), once((4,))),
    row("power_half", lambda a, w: np.sum(a**0.5 * w), once((4,), low=0.5, high=2.0)),
    row("power_minus_one", lambda a, w: np.sum(a**-1.0 * w), once((4,), low=0.5, high=2.0)),
    row("power_array", lambda a, b, w: np.sum(a**b * w), every((2, 3), (3,), low=0.5, high=2.0)),
    row("power_of_scalar", lambda x, b, w: np.sum(x**b * w), once(1.7, (2, 3))),
    row("power_integers", lambda a, n, w: np.sum(a**n * w), once((3,), integers(0, 1, 3))),
    row("modulo", lambda a, b, w: np.sum((7.3 * a % b) * w), once((3,), array(3, low=2.2, high=2.6))),
    row("floor_divide", lambda a, b, w: np.sum((7.3 * a // b) * b * w), once((3,), array(3, low=2.2, high=2.6))),
    row("scalar_left", lambda a, x, w: np.sum((x - a) * (x / a) * w), every((2, 3), 0.7, low=0.5, high=2.0)),
    row("scalar_right", lambda a, x, w: np.sum((a * x + x - a / x) * w), every((2, 3), 0.7)),
    row("constant", lambda a, w: np.sum((2.0 * a + 1) * w), every((5,))),
    row("integer_scalar", lambda a, n, w: np.sum((n * a + n) * w), once((5,), 3)),
    row("math_constant", lambda a, w: np.sum((math.pi * a - np.e) * w), once((5,))),
    row("comparison", lambda a, b, w: np.sum((a > b) * a * b * w), every((2, 3), (2, 3))),
    row("comparison_methods", lambda a, w: np.sum(((a <= 0.3) & (a > -0.5) | (a >= 0.8)) * a * w), once((7,))),
    row("not_equal", lambda a, n, w: np.sum((n != 1) * (n == n) * a * w), once((3,), integers(0, 1, 2))),
    row("augmented", augmented_operators, every((2, 3), (2, 3), low=0.5, high=2.0)),
    row("augmented_argument", augmented_argument, every((2, 3), (3,)) + once((3,), ())),
    row("augmented_broadcast", augmented_broadcast, every((2, 3), (3,)) + once((2, 3), (2, 1)) + once((3,), (1,))),
    row("not_augmented", not_augmented, once((3,)) + once((3, 2))),
    row("alias_augmented", alias_augmented, once((3, 2))),
    row("out_argument", out_argument, every((2, 3), (2, 3))),
    row("sum_of_squares", lambda a: (a * a).sum(), every((2, 3)) + once((4,)) + once((1,)) + once((0,))),
    row(
        "long_chain",
        lambda a, b: np.sum(np.exp(-0.5 * ((a - b) / 0.8) ** 2) / (0.8 * np.sqrt(2 * np.pi))),
        every((2, 3), ()),
    ),
]

BROADCASTING: list[Row] = [
    # the same function for sizes that are one and sizes that are not: one program for all
    row(
        "ones_at_run_time",
        lambda a, b, w: np.sum((a * b) * w),
        once((2, 3), (2, 3))
        + once((2, 1), (1, 3))
        + once((1, 3), (2, 1))
        + once((1, 1), (2, 3))
        + once((2, 3), (1, 1))
        + once((1, 1), (1, 1))
        + once((0, 3), (1, 3))
        + once((1, 3), (0, 1)),
    ),
    row("row_and_column", lambda a, b, w: np.sum((a + b) ** 2 * w), every((1, 3), (2, 1))),
    row("vector_and_matrix", lambda a, b, w: np.sum((a * b - b) * w), every((3,), (2, 3)) + once((1,), (2, 3))),
    row("matrix_and_stack", lambda a, b, w: np.sum((a / b) * w), every((2, 3), (2, 2, 3), low=0.5, high=2.0)),
    row("vector_and_stack", lambda a, b, w: np.sum((a - b * a) * w), every((3,), (2, 2, 3)) + once((1,), (2, 1, 2))),
    row("four_dimensions", lambda a, b, w: np.sum((a * b) * w), every((2, 1, 2, 1), (3, 1, 2))),
    row(
        "new_axis_outer",
        lambda a, b, w: np.sum((a[:, None] - b[None, :]) ** 2 * w),
        every((3,), (4,)) + once((1,), (0,)),
    ),
    row(
        "three_operands",
        lambda a, b, c, w: np.sum((a * b + c) * w),
        every((2, 1), (3,), (1, 1)) + once((2, 3), (1,), (2, 1)),
    ),
    row(
        "size_one_vector",
        lambda a, b, w: np.sum(a * b * w),
        once((1,), (4,)) + once((4,), (1,)) + once((1,), (1,)) + once((1,), (0,)),
    ),
    row("against_mean", lambda a, w: np.sum((a - a.mean(axis=0)) ** 2 * w), every((3, 2)) + once((1, 2))),
    row(
        "pairwise_distances",
        lambda a, b, w: np.sum(np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)) * w),
        every((2, 2), (3, 2)),
    ),
    row("broadcast_in_place", lambda a, b: np.sum((a + b) * (a + b) * a), every((2, 3), (2, 1))),
]

# ------------------------------------------------------------------------------------------------------ promotion


def _single(*shape: int) -> np.ndarray:
    return array(*shape, start=0.4).astype(np.float32)


def into_single(a, b):
    """A float64 result is rounded into a float32 array by `+=`."""
    b += a
    return np.sum(b * b)


def wraps_at_32_bits(a, n, w):
    m = n.copy()
    m += 2**31 - 1
    m[1:] *= n[1:]
    return np.sum((m / 2**31 + (n * n - 1 + -n) / 2**31) * a * w) + a[n[:1] - 1][0]


PROMOTION: list[Row] = [
    row("single_times_double", lambda a, b, w: np.sum(a * b * w), once(_single(3), (3,)) + once((2, 3), _single(3))),
    row("single_times_float", lambda a, x, w: np.sum(a * x * w), once(_single(3), 0.7)),
    row("single_times_constant", lambda a, w: np.sum((2.0 * a + 1) * w), once(_single(3)) + once(_single(2, 3))),
    row("single_times_integers", lambda a, n, w: np.sum(a * n * w), once(_single(3), integers(1, 2, 3))),
    row("single_times_short", lambda a, n, w: np.sum(a * n * w), once(_single(3), integers(1, 2, 3, dtype=np.int16))),
    row("double_times_integers", lambda a, n, w: np.sum((a * n + n) * w), once((2, 3), integers(1, 2, 3))),
    row("double_times_bytes", lambda a, n, w: np.sum(a * n * w), once((3,), integers(1, 200, 3, dtype=np.uint8))),
    row("double_times_booleans", lambda a, m, w: np.sum(a * m * w), once((3,), booleans("x.x"))),
    row("integers_divided", lambda a, n, w: np.sum(a * (n / 2) * (n // 2) * w), once((3,), integers(3, 4, 5))),
    row("integer_reduction", lambda a, n, w: np.sum(a * w) * np.sum(n) / np.max(n), once((3,), integers(3, 4, 5))),
    row("mean_of_integers", lambda a, n, w: np.sum((a - np.mean(n)) ** 2 * w), once((3,), integers(3, 4, 6))),
    row("function_of_integers", lambda a, n, w: np.sum(np.sqrt(n) * np.exp(-n) * a * w), once((3,), integers(3, 4, 5))),
    row("into_single", into_single, once((3,), _single(3))),
    row("wraps_at_32_bits", wraps_at_32_bits, once((3,), integers(3, 70_000, -(2**31), dtype=np.int32))),
    row(
        "converted_to_32_bits",
        lambda a, n, w: np.sum(n.astype(np.int32) / 2**31 * a * w),
        once((2,), integers(3, 2**31)),
    ),
    row(
        "bytes_as_numbers",
        lambda a, n: (int(n[0]) - 4 + n[1] * 0.5 + (n[1] > n[0]) + n[2] // 7) * a[n[0]],
        once((4,), integers(3, 200, 100, dtype=np.uint8)),
    ),
]

# --------------------------------------------------------------------------------------------------- truth values

_NOT_ALL_ZERO = np.array([0.3, -0.7, 0.0])


def updated_truth(a, m, w):
    m = m.copy()
    m += m
    m[0] += a[0] > 0.0
    m[1:] += m[:2]
    m *= a < 5.0
    return np.sum(m * a * w)


def counted_by_python(x, y):
    """Python's truth values count as integers: of Python's numbers, of lengths and of counters."""
    total = ((x > 0.0) + (y > 0.0) - (x > y)) * x * ~(y > 9.0)
    for k in range(3):
        total += ((k > 0) + (k > 1)) * x
    return total * y


def counted_up_from_zero(a):
    count = 0
    for x in a:
        count += x > 0.0
    return (count + int(a[0] > 0.0) + int(a[1] > 0.0)) * a[0]


TRUTH_VALUES: list[Row] = [
    row(
        "and_of_floats",
        lambda a, b, w: np.sum(np.logical_and(a, b) * a * w),
        once((3,), _NOT_ALL_ZERO, low=0.1),
        wrt=(0, 2),
    ),
    row(
        "or_of_floats", lambda a, b, w: np.sum(np.logical_or(b, a > 0.5) * a * w), once((3,), _NOT_ALL_ZERO), wrt=(0, 2)
    ),
    row("or_of_numbers", lambda x: x * np.logical_or(x > 5.0, x), once(0.5)),
    row(
        "and_of_integers",
        lambda a, m, n, w: np.sum(np.logical_and(m, n) * a * w),
        once((3,), integers(3, 5, 0, dtype=np.int32), integers(4, 2, 1)),
    ),
    row(
        "logical_reduced",
        lambda a, b: a * (np.logical_and.reduce(b[:2]) + 2.0 * np.logical_or.reduce(b) + np.logical_xor.reduce(b)),
        once(0.5, _NOT_ALL_ZERO),
        wrt=(0,),
    ),
    row(
        "logical_reduced_from", lambda a, b: a * np.logical_or.reduce(b, initial=0.5), once(0.5, np.zeros(2)), wrt=(0,)
    ),
    row(
        "logical_running",
        lambda a, b, w: np.sum((np.logical_and.accumulate(b) + 2.0 * ~np.logical_xor.accumulate(b)) * a * w),
        once((3,), _NOT_ALL_ZERO),
        wrt=(0, 2),
    ),
    row("largest_running", lambda a, m, w: np.sum(~np.maximum.accumulate(m) * a * w), once((3,), booleans(".x."))),
    row(
        "products",
        lambda a, m: a * (m @ m + 2.0 * np.dot(m, m) + 4.0 * np.inner(m, m) + 8.0 * np.vdot(m, m) + np.vecdot(m, m)),
        once(0.5, booleans("x.x")),
    ),
    row(
        "contractions",
        lambda a, m: a * (np.einsum("i,i", m, m) + 2.0 * np.tensordot(m, m, 1) + 4.0 * np.einsum("i->", m)),
        once(0.5, booleans("x.x")),
    ),
    row(
        "contractions_of_matrices",
        lambda a, m, w: np.sum((np.einsum("ij->i", m) + 2.0 * np.einsum("ij,ij->i", m, m) + 4.0 * (m @ m[0])) * a * w),
        once((2,), booleans("xx/.x")),
    ),
    row(
        "sum_of_truth",
        lambda a, m: a * (np.sum(m, dtype=bool) + 2.0 * np.prod(m, dtype=bool)),
        once(0.5, booleans("xx.")),
    ),
    row("sum_along_axis", lambda a, m, w: np.sum(np.sum(m, 0, dtype=bool) * a * w), once((2,), booleans("xx/x."))),
    row(
        "sum_from_a_float",
        lambda a, n: a * (np.sum(n, initial=2.5) + np.max(n, initial=9.5)),
        once(0.5, integers(3, 1)),
    ),
    row("sum_of_bytes", lambda a, n, w: np.sum(np.sum(n, 0) * a * w), once((2,), np.full((3, 2), 200, np.uint8))),
    row(
        "invert", lambda a, m, w: np.sum((np.invert(m) + 2.0 * np.bitwise_not(m)) * a * w), once((3,), booleans("x.x"))
    ),
    row("invert_element", lambda a, m: a * (np.invert(m[0]) + 2.0 * np.invert(m[1])), once(0.5, booleans("x.x"))),
    row("added", lambda a, m, w: np.sum((m + (a > 0.0) + m * m) * a * w), once((3,), booleans("x.x"))),
    row("added_elements", lambda a: a[0] * np.add(a[0] > -2.0, a[1] > -2.0), once((3,))),
    row("multiplied_elements", lambda a: a[0] * ((a[0] > -2.0) * (a[1] > -2.0)), once((3,))),
    row("updated", updated_truth, once((3,), booleans("x.x"))),
    row("counted_by_python", counted_by_python, once(0.5, 0.7)),
    row("counted_up_from_zero", counted_up_from_zero, once((3,))),
]

# -------------------------------------------------------------------------------------------------- ufunc methods


def add_at(a, i, v, w):
    np.add.at(a, i, v)
    return np.sum(a * a * w)


def subtract_at(a, i, v, w):
    np.subtract.at(a, i, v)
    return np.sum(a * a * w)


def add_at_pairs(a, i, j, v, w):
    np.add.at(a, (i, j), v)
    return np.sum(a * a * w)


UFUNC_METHODS: list[Row] = [
    row("add_reduce", lambda a, w: np.sum(np.add.reduce(a) * w), every((2, 3)) + once((3,)) + once((0, 2))),
    row("add_reduce_axis", lambda a, w: np.sum(np.add.reduce(a, axis=1) * w), every((2, 3)) + once((2, 3, 2))),
    row("add_reduce_axes", lambda a, w: np.sum(np.add.reduce(a, axis=(0, 2)) * w), once((2, 3, 2))),
    row("multiply_reduce", lambda a, w: np.sum(np.multiply.reduce(a, axis=1) * w), every((2, 3))),
    row("maximum_reduce", lambda a, w: np.sum(np.maximum.reduce(a) * w), every((3, 2))),
    row("minimum_reduce", lambda a: np.minimum.reduce(a), once((4,))),
    row("logaddexp_reduce", lambda a: np.logaddexp.reduce(a), every((4,)) + once((1,))),
    row("logaddexp_reduce_axis", lambda a, w: np.sum(np.logaddexp.reduce(a, axis=1) * w), every((2, 3))),
    row(
        "logaddexp_reduce_keepdims",
        lambda a, w: np.sum((a - np.logaddexp.reduce(a, axis=-1, keepdims=True)) ** 2 * w),
        once((2, 3)),
    ),
    row("add_accumulate", lambda a, w: np.sum(np.add.accumulate(a) * w), every((4,)) + once((3, 2)) + once((0,))),
    row("multiply_accumulate", lambda a, w: np.sum(np.multiply.accumulate(a, axis=1) * w), every((2, 3))),
    row("maximum_accumulate", lambda a, w: np.sum(np.maximum.accumulate(a) * w), every((5,))),
    row("multiply_outer", lambda a, b, w: np.sum(np.multiply.outer(a, b) * w), every((2,), (3,)) + once((0,), (3,))),
    row("add_outer", lambda a, b, w: np.sum(np.add.outer(a, b) ** 2 * w), every((2,), (3,))),
    row("subtract_outer", lambda a, b, w: np.sum(np.subtract.outer(a, b) ** 2 * w), once((2, 2), (3,))),
    row("add_at", add_at, every((4,), integers(1, 3, 1, -2), (4,)) + once((3, 2), integers(2, 2), (2, 2))),
    row("add_at_scalar", add_at, once((4,), integers(1, 1, 0), ())),
    row("subtract_at", subtract_at, once((4,), integers(1, 3, 1), (3,))),
    row("add_at_pairs", add_at_pairs, every((3, 2), integers(0, 2, 0), integers(1, 0, 1), (3,))),
]

# ------------------------------------------------------------------------------------------------- slices that read

SLICES: list[Row] = [
    row("first", lambda a, w: np.sum(a[0] * w), every((3, 4)) + once((1, 2)) + once((2, 0))),
    row("last", lambda a, w: np.sum(a[-1] * w), every((3, 4)) + once((2, 2, 2))),
    row("range", lambda a, w: np.sum(a[1:3] * w), every((5,)) + once((4, 2)) + once((2,)) + once((0,))),
    row("from_end", lambda a, w: np.sum(a[-3:-1] * w), every((5,)) + once((2,)) + once((1,))),
    row("beyond_end", lambda a, w: np.sum(a[2:100] * w), once((5,)) + once((2,))),
    row("nothing", lambda a, w: np.sum(a[3:1] * w) + np.sum(a * a), once((5,))),
    row("every_second", lambda a, w: np.sum(a[::2] * w), every((5,)) + once((4, 2)) + once((1,))),
    row("odd", lambda a, w: np.sum(a[1::2] * w), every((5,)) + once((1,))),
    row("reversed", lambda a, w: np.sum(a[::-1] * w), every((5,)) + once((2, 3)) + once((0,))),
    row("backwards", lambda a, w: np.sum(a[3:0:-1] * w), every((5,)) + once((2,))),
    row("backwards_by_two", lambda a, w: np.sum(a[::-2] * w), every((5,)) + once((4,))),
    row("column", lambda a, w: np.sum(a[:, 1] * w), every((3, 4)) + once((0, 2))),
    row("last_column", lambda a, w: np.sum(a[..., -1] * w), every((3, 4)) + once((3,)) + once((2, 2, 2))),
    row("ellipsis", lambda a, w: np.sum(a[...] * w), every((3, 2)) + once((3,))),
    row(
        "ellipsis_middle", lambda a, w: np.sum(a[0, ..., 1:] * w), every((2, 2, 3)) + once((2, 3)) + once((2, 1, 2, 3))
    ),
    row("both_axes", lambda a, w: np.sum(a[1:, ::-2] * w), every((3, 4))),
    row("inner_block", lambda a, w: np.sum(a[1:-1, 1:-1] * w), every((4, 5)) + once((2, 3))),
    row("three_axes", lambda a, w: np.sum(a[:, ::-1, 1:] * w), every((2, 3, 2))),
    row("index_in_between", lambda a, w: np.sum(a[:, 1, ::2] * w), every((2, 2, 3))),
    row("new_axis_first", lambda a, w: np.sum(a[None] * a[:, None] * w), every((3,))),
    row("new_axis_last", lambda a, w: np.sum(a[..., np.newaxis] * w), every((2, 3))),
    row("new_axis_middle", lambda a, b, w: np.sum(a[:, None, 1:] * b * w), every((2, 3), (4, 2))),
    row("two_new_axes", lambda a, w: np.sum(a[None, :, None] * w), once((3,))),
    row(
        "run_time_bounds",
        lambda a, i, j, w: np.sum(a[i:j] * w),
        every((5,), 1, 4) + once((5,), -4, -1) + once((5,), 4, 2) + once((5,), -9, 9),
    ),
    row("run_time_step", lambda a, k, w: np.sum(a[::k] * w), once((7,), 2) + once((7,), -3) + once((7,), 9)),
    row("run_time_index", lambda a, i, w: np.sum(a[i] * a[:, i] * w), every((3, 3), 1) + once((3, 3), -1)),
    row("half", lambda a, w: np.sum(a[: a.shape[0] // 2] * w), every((5,)) + once((4, 2)) + once((1,))),
    row("view_of_view", lambda a, w: np.sum(a[1:][::2][:-1] * w), every((7,))),
    row("view_of_reversed", lambda a, w: np.sum(a[::-1][1:][::2] * w), every((6,))),
    row("column_of_rows", lambda a, w: np.sum(a[1:][:, 0] * w), every((3, 2))),
    row("named_view", lambda a, w: np.sum((lambda v: v[1:] * v[:-1])(a[1:]) * w), once((5,))),
    row(
        "second_difference",
        lambda a, w: np.sum((a[2:] - 2.0 * a[1:-1] + a[:-2]) ** 2 * w),
        every((6,)) + once((3,)) + once((2,)),
    ),
    row("slice_object", lambda a, w: np.sum(a[slice(1, 4)] * w), once((5,))),
]

# ---------------------------------------------------------------------------- slices and views that are written


def assign_slice(a, b, w):
    c = np.zeros(a.shape[0] + 2)
    c[1:-1] = a * b
    c[0] = c[1]
    c[-1] = c[-2] ** 2
    return np.sum(c * w)


def assign_scalar(a, x, w):
    a[1:3] = x
    a[-1] = x * a[0]
    return np.sum(a * a * w)


def assign_constant(a, w):
    a[::2] = 0.0
    return np.sum(a * a * w)


def assign_row(a, b, w):
    a[1] = b * a[0]
    return np.sum(a * a * w)


def assign_column(a, b, w):
    a[:, 0] = b * a[:, 1]
    return np.sum(a * a * w)


def assign_all(a, b, w):
    a[:] = a * b
    return np.sum(a * a * w)


def assign_ellipsis(a, b, w):
    a[...] = b
    return np.sum(a * a * w)


def assign_broadcast(a, b, w):
    a[:, 1:] = b
    return np.sum(a * a * w)


def assign_block(a, w):
    a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return np.sum(a * a * w)


def overlap_average(a, w):
    a[1:-1] = a[:-2] * a[2:]
    return np.sum(a * a * w)


def overlap_forward(a, w):
    a[1:] = a[:-1]
    return np.sum(a * a * w)


def overlap_backward(a, w):
    a[:-1] = a[1:]
    return np.sum(a * a * w)


def overlap_reversed(a, w):
    a[:] = a[::-1]
    return np.sum(a * a * w)


def overlap_augmented(a, w):
    a[1:] += a[:-1]
    return np.sum(a * a * w)


def overlap_multiplied(a, w):
    a[:-1] *= a[1:]
    a[2:] -= a[:-2]
    return np.sum(a * a * w)


def overlap_transposed(a, w):
    a[:, :] = a.T
    a += a.T
    return np.sum(a * a * w)


def overlap_rows(a, w):
    a[1:] = a[:-1] * a[1:, ::-1]
    return np.sum(a * a * w)


def swap_rows(a, w):
    first = a[0].copy()
    a[0] = a[1]
    a[1] = first
    return np.sum(a * a * w)


def swap_views(a, w):
    """The tuple holds views: after the first assignment both rows are the second."""
    a[0], a[1] = a[1], a[0]
    return np.sum(a * a * w)


def augmented_slice(a, b, w):
    a[::2] += b
    a[1] *= b[0]
    a[-1] /= b[1]
    a[:2] **= 2
    return np.sum(a * a * w)


def augmented_block(a, b, w):
    a[1:, :2] -= b * a[:-1, 1:]
    return np.sum(a * a * w)


def write_through_view(a, w):
    row = a[1]
    row[0] = a[0, 0] ** 2
    row *= 2.0
    return np.sum(a * a * w)


def write_through_view_of_view(a, w):
    inner = a[1:, 1:]
    last = inner[-1]
    last[::2] = a[0, 0] * a[0, 1]
    return np.sum(a * a * w)


def write_through_transpose(a, w):
    b = a.T
    b[0] = b[1] * b[0]
    return np.sum(a * a * w)


def write_through_reshape(a, w):
    b = a.copy()
    flat = b.reshape(-1)
    flat[1::2] = flat[::2] ** 2
    return np.sum(b * b * w)


def write_through_ravel(a, w):
    b = a.copy()
    flat = b.ravel()
    flat[0] = 3.0 * flat[-1]
    return np.sum(b * b * w)


def write_to_flatten(a, w):
    """`flatten` copies."""
    flat = a.flatten()
    flat[0] = 3.0 * flat[-1]
    return np.sum(a * a * w) + np.sum(flat)


def write_through_swapaxes(a, w):
    b = np.swapaxes(a, 0, 2)
    b[0] = b[1] * 2.0
    return np.sum(a * a * w)


def write_through_new_axis(a, b, w):
    c = a[:, None]
    c[1:] = b
    return np.sum(a * a * w)


def write_through_flip(a, w):
    b = np.flip(a)
    b[0] = b[1] ** 2
    return np.sum(a * a * w)


def view_read_after_write(a, w):
    view = a[1:]
    a[1] = a[0] * a[2]
    return np.sum(view * view * w)


def view_written_after_read(a, w):
    total = np.sum(a[1:] * a[:-1])
    a[1:] = total * a[:-1]
    return np.sum(a * w)


def view_chosen_at_run_time(a, flag, w):
    view = a[0] if flag else a[:, 0]
    view[1] = view[0] ** 2
    return np.sum(a * a * w)


def row_by_row(a, w):
    for i in range(1, a.shape[0]):
        a[i] = np.sin(a[i - 1]) * a[i]
    return np.sum(a * w)


def iterate_rows(a, w):
    for line in a:
        line *= line[0]
    return np.sum(a * w)


def fill_method(a, x, w):
    b = a * 2.0
    b[0] = a[0]
    b[1:].fill(x)
    return np.sum(b * b * w)


SLICE_WRITES: list[Row] = [
    row("assign_slice", assign_slice, every((4,), (4,)) + once((1,), (1,))),
    row("assign_scalar", assign_scalar, every((5,), ())),
    row("assign_constant", assign_constant, every((5,)) + once((3, 2))),
    row("assign_row", assign_row, every((3, 2), (2,)) + once((2, 3), (1,))),
    row("assign_column", assign_column, every((3, 2), (3,))),
    row("assign_all", assign_all, every((3,), (3,)) + once((3, 2), (2,)) + once((3, 2), (3, 1)) + once((0,), (0,))),
    row("assign_ellipsis", assign_ellipsis, once((3,), (3,)) + once((3, 2), (2,)) + once((2, 2), ())),
    row("assign_broadcast", assign_broadcast, every((2, 3), (2,)) + once((2, 3), (2, 1)) + once((2, 3), (1, 2))),
    row("assign_block", assign_block, every((4, 4)) + once((3, 5)) + once((2, 2))),
    row("overlap_average", overlap_average, every((6,)) + once((2,)) + once((4, 2))),
    row("overlap_forward", overlap_forward, every((5,)) + once((1,)) + once((3, 2))),
    row("overlap_backward", overlap_backward, every((5,)) + once((3, 2))),
    row("overlap_reversed", overlap_reversed, every((5,)) + once((4,)) + once((3, 2))),
    row("overlap_augmented", overlap_augmented, every((5,)) + once((3, 2)) + once((1,))),
    row("overlap_multiplied", overlap_multiplied, every((5,))),
    row("overlap_transposed", overlap_transposed, every((3, 3))),
    row("overlap_rows", overlap_rows, every((3, 3))),
    row("swap_rows", swap_rows, every((3, 2))),
    row("swap_views", swap_views, once((3, 2))),
    row("augmented_slice", augmented_slice, every((5,), (3,), low=0.5, high=1.5)),
    row("augmented_block", augmented_block, every((3, 3), (2, 2)) + once((3, 3), (2,)) + once((2, 3), (1, 1))),
    row("write_through_view", write_through_view, every((3, 2))),
    row("write_through_view_of_view", write_through_view_of_view, every((3, 4))),
    row("write_through_transpose", write_through_transpose, every((3, 2))),
    row("write_through_reshape", write_through_reshape, every((2, 4))),
    row("write_through_ravel", write_through_ravel, once((2, 3))),
    row("write_to_flatten", write_to_flatten, every((2, 3))),
    row("write_through_swapaxes", write_through_swapaxes, every((2, 2, 3))),
    row("write_through_new_axis", write_through_new_axis, once((3,), (2, 1))),
    row("write_through_flip", write_through_flip, every((4,))),
    row("view_read_after_write", view_read_after_write, every((4,))),
    row("view_written_after_read", view_written_after_read, every((4,))),
    row("view_chosen_at_run_time", view_chosen_at_run_time, once((3, 3), True) + once((3, 3), False)),
    row("row_by_row", row_by_row, every((3, 2)) + once((1, 2))),
    row("iterate_rows", iterate_rows, every((3, 2)) + once((0, 2))),
    row("fill_method", fill_method, once((4,), ())),
]

# -------------------------------------------------------------------------------------------- transposes and reshapes


def split_equally(a, w):
    x, y, z = np.split(a, 3)
    return np.sum(x * y**2 * np.sin(z) * w)


def split_at_places(a, w):
    x, y, z = np.split(a, [1, 3])
    return np.sum(y * x[0] * w) + z.sum() ** 2


def split_columns(a, w):
    x, y = np.split(a, 2, axis=1)
    return np.sum(x * np.sin(y) * w)


def split_by_index(a, w):
    parts = np.split(a, 2)
    return np.sum(parts[0] * parts[1] ** 2 * w)


RESHAPES: list[Row] = [
    row(
        "transpose_attribute", lambda a, w: np.sum(a.T * w), every((2, 3)) + once((3,)) + once((2, 3, 2)) + once((2, 0))
    ),
    row("transpose_function", lambda a, w: np.sum(np.transpose(a) * w), every((2, 3))),
    row("transpose_axes", lambda a, w: np.sum(np.transpose(a, (2, 0, 1)) * w), every((2, 3, 2))),
    row("transpose_method", lambda a, w: np.sum(a.transpose(1, 2, 0) * w), every((2, 3, 2))),
    row("transpose_negative", lambda a, w: np.sum(a.transpose((0, -1, 1)) * w), once((2, 3, 2))),
    row("transpose_of_slice", lambda a, w: np.sum(a[1:, ::-1].T[1:] * w), every((3, 3))),
    row("gram", lambda a, w: np.sum((a.T @ a) * w), every((3, 2))),
    row("swapaxes", lambda a, w: np.sum(np.swapaxes(a, 0, -1) * w), every((2, 3, 2)) + once((2, 3))),
    row("swapaxes_method", lambda a, w: np.sum(a.swapaxes(1, 2) * w), once((2, 3, 2))),
    row("moveaxis", lambda a, w: np.sum(np.moveaxis(a, 0, -1) * w), every((2, 3, 2))),
    row("moveaxis_several", lambda a, w: np.sum(np.moveaxis(a, (0, 1), (-1, 0)) * w), once((2, 3, 2))),
    row("reshape", lambda a, w: np.sum(np.reshape(a, (3, 2)) * w), every((2, 3)) + once((6,))),
    row("reshape_method", lambda a, w: np.sum(a.reshape(3, 4) * w), every((2, 3, 2)) + once((12,))),
    row("reshape_tuple", lambda a, w: np.sum(a.reshape((2, -1)) * w), every((4, 3)) + once((6,))),
    row("reshape_other_negative", lambda a, w: np.sum(a.reshape(-2, 3) * w), once((6,))),
    row("reshape_flat", lambda a, w: np.sum(a.reshape(-1) * w), every((2, 3)) + once((0, 3)) + once((1, 1, 1))),
    row("reshape_run_time", lambda a, n, w: np.sum(a.reshape(n, -1) * w), once((2, 6), 3) + once((12,), 4)),
    row("reshape_shape_of", lambda a, b: np.sum(a.reshape(b.shape) * b), every((6,), (2, 3))),
    row("reshape_transposed", lambda a, w: np.sum(a.T.reshape(2, 3) * w), every((2, 3))),
    row("reshape_fortran", lambda a, w: np.sum(a.reshape((3, 2), order="F") * w), every((2, 3))),
    row("reshape_new_axis", lambda a, b, w: np.sum(a.reshape(-1, 1) * b.reshape(1, -1) * w), every((3,), (2,))),
    row("ravel", lambda a, w: np.sum(np.ravel(a) * w), every((2, 3)) + once((2, 0))),
    row("ravel_number", lambda x, y: np.sum(np.ravel(x) * 2.0) * np.ravel(y * y)[0] + np.ravel(3)[0] * x, once((), ())),
    row("item", lambda a: a[:1].item() * a.item(1) + a[None, 2:3].item() ** 2, every((3,))),
    row("ravel_method", lambda a, w: np.sum(a.T.ravel() * w), every((2, 3)) + once((2, 2, 2))),
    row("ravel_fortran", lambda a, w: np.sum(a.ravel(order="F") * w), once((2, 3))),
    row("flatten", lambda a, w: np.sum(a.flatten() * w), every((2, 3)) + once((4,))),
    row("squeeze", lambda a, w: np.sum(np.squeeze(a, axis=1) * w), every((3, 1, 2)) + once((3, 1))),
    row("squeeze_all", lambda a, w: np.sum(np.squeeze(a) ** 2 * w), once((1, 3, 1)) + once((3, 2)) + once((2, 1))),
    row("squeeze_all_kept", lambda a, w: np.sum(np.squeeze(np.max(a, 0, keepdims=True)) * w), once((3, 2))),
    row("squeeze_part", lambda a, w: np.sum(a[:, 1:2].squeeze() ** 2 * w), once((3, 2))),
    row("squeeze_method", lambda a, w: np.sum(a.squeeze(0) * w), once((1, 3))),
    row("squeeze_axes", lambda a, w: np.sum(np.squeeze(a, axis=(0, 2)) * w), once((1, 3, 1))),
    row("squeeze_kept", lambda a, w: np.sum(np.sum(a, axis=1, keepdims=True).squeeze(axis=1) * w), once((3, 2))),
    row("expand_dims", lambda a, w: np.sum(np.expand_dims(a, 0) * w), every((3,)) + once((2, 3))),
    row("expand_dims_last", lambda a, b, w: np.sum(np.expand_dims(a, -1) * b * w), once((3,), (2,))),
    row("expand_dims_axes", lambda a, w: np.sum(np.expand_dims(a, axis=(0, 2)) * w), once((3,))),
    row("diagonal", lambda a, w: np.sum(np.diagonal(a) * w), every((3, 3)) + once((2, 3)) + once((3, 1))),
    row("diagonal_offset", lambda a, w: np.sum(a.diagonal(1) * w), every((3, 3))),
    row("diagonal_below", lambda a, w: np.sum(np.diagonal(a, offset=-1) * w), once((3, 2))),
    row("diagonal_axes", lambda a, w: np.sum(np.diagonal(a, axis1=1, axis2=2) * w), once((2, 3, 3))),
    row("diag_of_matrix", lambda a, w: np.sum(np.diag(a) ** 2 * w), every((3, 3)) + once((1, 1))),
    row("diag_of_matrix_offset", lambda a, w: np.sum(np.diag(a, k=-1) * w), once((3, 3))),
    row("diag_of_vector", lambda a, w: np.sum(np.diag(a) * w), every((3,)) + once((1,))),
    row("diag_of_vector_offset", lambda a, w: np.sum(np.diag(a, 1) * w), once((3,))),
    row("flip", lambda a, w: np.sum(np.flip(a) * w), every((2, 3)) + once((4,))),
    row("flip_axis", lambda a, w: np.sum(np.flip(a, axis=1) * w), every((2, 3))),
    row("flip_axes", lambda a, w: np.sum(np.flip(a, axis=(0, 2)) * w), once((2, 2, 2))),
    row("roll", lambda a, w: np.sum(np.roll(a, 1) * w), every((5,)) + once((2, 3)) + once((0,))),
    row("roll_back", lambda a, w: np.sum((np.roll(a, -1) - a) ** 2 * w), every((5,)) + once((1,))),
    row("roll_far", lambda a, w: np.sum(np.roll(a, 7) * w), once((5,))),
    row("roll_axis", lambda a, w: np.sum(np.roll(a, 1, axis=0) * np.roll(a, -1, axis=1) * w), every((3, 2))),
    row("roll_axes", lambda a, w: np.sum(np.roll(a, (1, 2), axis=(0, 1)) * w), once((2, 3))),
    row("roll_run_time", lambda a, k, w: np.sum(np.roll(a, k) * w), once((5,), 2) + once((5,), -6)),
    row("broadcast_to", lambda a, w: np.sum(np.broadcast_to(a, (2, 3)) * w), every((3,)) + once((2, 1)) + once((1, 1))),
    row("broadcast_to_shape_of", lambda a, b: np.sum(np.broadcast_to(a, b.shape) * b), every((3,), (2, 3))),
    row("tile", lambda a, w: np.sum(np.tile(a, 2) * w), every((3,)) + once((2, 3))),
    row("tile_two", lambda a, w: np.sum(np.tile(a, (2, 2)) * w), every((2, 3)) + once((3,))),
    row("tile_run_time", lambda a, n, w: np.sum(np.tile(a, (n, 1)) * w), once((3,), 2) + once((3,), 0)),
    row("repeat", lambda a, w: np.sum(np.repeat(a, 2) * w), every((3,)) + once((2, 2))),
    row("repeat_axis", lambda a, w: np.sum(np.repeat(a, 3, axis=1) * w), every((2, 2))),
    row("repeat_method", lambda a, w: np.sum(a.repeat(2, axis=0) * w), once((2, 2))),
    row("repeat_counts", lambda a, n, w: np.sum(np.repeat(a, n) * w), once((3,), integers(2, 0, 3))),
    row("split", split_equally, every((6,)) + once((3, 2))),
    row("split_at_places", split_at_places, once((5,))),
    row("split_columns", split_columns, once((2, 4))),
    row("split_by_index", split_by_index, once((4,))),
]

# ---------------------------------------------------------------------------------------------------- index arrays


def assign_indexed(a, i, v, w):
    a[i] = v
    return np.sum(a * a * w)


def assign_indexed_function(a, i, v, w):
    a[i] = a[i] * v
    return np.sum(a * a * w)


def augment_indexed(a, i, v, w):
    """NumPy's rule for duplicates: the old value plus the last one."""
    a[i] += v
    return np.sum(a * a * w)


def multiply_indexed(a, i, v, w):
    a[i] *= v
    a[i] -= 0.5
    return np.sum(a * a * w)


def assign_pairs(a, i, j, v, w):
    a[i, j] = v * a[j, i]
    return np.sum(a * a * w)


def augment_pairs(a, i, j, v, w):
    a[i, j] += v
    return np.sum(a * a * w)


def assign_columns(a, i, v, w):
    a[:, i] = v * a[:, :2]
    return np.sum(a * a * w)


def augment_columns(a, i, v, w):
    a[:, i] += v
    return np.sum(a * a * w)


def assign_list(a, v, w):
    a[[2, 0]] = v
    return np.sum(a * a * w)


def permute_rows(a, w):
    a[[0, 1]] = a[[1, 0]]
    return np.sum(a * a * w)


def assign_mesh(a, i, j, v, w):
    a[np.ix_(i, j)] = v
    return np.sum(a * a * w)


def augment_mesh(a, i, j, v, w):
    a[np.ix_(i, j)] += v * a[np.ix_(i, j)]
    return np.sum(a * a * w)


def assign_row_indexed(a, i, v, w):
    a[1, i] = v
    a[i, 0] = a[0, 1]
    return np.sum(a * a * w)


def copy_not_view(a, i, w):
    """`a[i]` is a copy: a write into it does not change `a`."""
    b = a[i]
    b[0] = b[1] * 3.0
    return np.sum(a * a) + np.sum(b * w)


def gather_scatter(a, i, j, v, w):
    force = np.zeros(a.shape[0])
    np.add.at(force, i, v * (a[j] - a[i]))
    np.add.at(force, j, -v * (a[j] - a[i]))
    return np.sum(force * force * w)


INDEX_ARRAYS: list[Row] = [
    row(
        "one",
        lambda a, i, w: np.sum(a[i] * w),
        every((4,), integers(2, 0, 3, 2)) + once((3, 2), integers(1, 1)) + once((3,), integers()),
    ),
    row("negative", lambda a, i, w: np.sum(a[i] * w), once((4,), integers(-1, 0, -4)) + once((3, 2), integers(-2, 2))),
    row(
        "short",
        lambda a, i, w: np.sum(a[i] * w),
        once((4,), integers(3, 1, dtype=np.int32)) + once((4,), integers(3, 1, dtype=np.uint8)),
    ),
    row(
        "matrix_of_indices",
        lambda a, i, w: np.sum(a[i] * w),
        every((4,), np.array([[0, 3], [3, 1]])) + once((3, 2), np.array([[0, 2]])),
    ),
    row("list", lambda a, w: np.sum(a[[2, 0, 2]] * w), every((3,)) + once((3, 2))),
    row("pairs", lambda a, i, j, w: np.sum(a[i, j] * w), every((3, 4), integers(0, 2, 0), integers(3, 1, 3))),
    row(
        "pairs_broadcast",
        lambda a, i, j, w: np.sum(a[i[:, None], j] * w),
        every((3, 4), integers(0, 2), integers(3, 1, 3)),
    ),
    row(
        "rows_then_columns", lambda a, i, j, w: np.sum(a[i][:, j] * w), once((3, 4), integers(0, 2), integers(3, 1, 3))
    ),
    row("columns", lambda a, i, w: np.sum(a[:, i] * w), every((2, 4), integers(3, 0, 3))),
    row(
        "last_axis",
        lambda a, i, w: np.sum(a[..., i] * w),
        once((2, 4), integers(3, 0)) + once((2, 2, 3), integers(1, 1)),
    ),
    row("row_and_indices", lambda a, i, w: np.sum(a[1, i] * w), once((2, 4), integers(3, 0))),
    row("indices_and_column", lambda a, i, w: np.sum(a[i, 0] * w), every((3, 2), integers(2, 2, 0))),
    row("indices_and_slice", lambda a, i, w: np.sum(a[i, 1:] * w), every((3, 3), integers(2, 0))),
    row("slice_and_indices", lambda a, i, w: np.sum(a[::-1, i] * w), once((3, 3), integers(2, 0))),
    row("middle_axis", lambda a, i, w: np.sum(a[:, i, :] * w), once((2, 3, 2), integers(2, 0, 1, 0))),
    row(
        "adjacent_after_slice",
        lambda a, i, j, w: np.sum(a[:, i, j] * w),
        once((2, 3, 2), integers(2, 0), integers(0, 1)),
    ),
    row("apart", lambda a, i, j, w: np.sum(a[i, :, j] * w), once((2, 3, 2), integers(1, 0, 1), integers(0, 1, 1))),
    row("apart_with_integer", lambda a, i, w: np.sum(a[0, :, i] * w), once((2, 3, 4), integers(3, 0))),
    row("with_new_axis", lambda a, i, w: np.sum(a[i, None] * w), once((4,), integers(3, 0))),
    row("arange", lambda a, k, w: np.sum(a[np.arange(a.shape[0]), k] * w), every((3, 4), integers(3, 0, 2))),
    row(
        "cross_entropy",
        lambda a, k: -np.mean(np.log(np.exp(a[np.arange(a.shape[0]), k]) / np.exp(a).sum(axis=1))),
        once((3, 4), integers(3, 0, 2)),
    ),
    row("computed_indices", lambda a, i, w: np.sum(a[(2 * i + 1) % a.shape[0]] * w), once((5,), integers(3, 0, 2))),
    row("of_a_view", lambda a, i, w: np.sum(a[1:, ::2][i] * w), every((4, 3), integers(2, 0))),
    row(
        "difference",
        lambda a, i, j, w: np.sum((a[i] - a[j]) ** 2 * w),
        every((4,), integers(0, 1, 2), integers(3, 3, 0)) + once((4, 2), integers(0, 1), integers(2, 2)),
    ),
    row(
        "assign",
        assign_indexed,
        every((4,), integers(2, 0), (2,))
        + once((3, 2), integers(2, 0), (2, 2))
        + once((3, 2), integers(-1), (2,))
        + once((3,), integers(), (0,)),
    ),
    row(
        "assign_duplicates", assign_indexed, once((4,), integers(2, 0, 2), (3,)) + once((3, 2), integers(1, 1), (2, 2))
    ),
    row("assign_scalar", assign_indexed, once((4,), integers(2, 0, 2), ())),
    row(
        "assign_function",
        assign_indexed_function,
        every((4,), integers(2, 0), (2,)) + once((4,), integers(2, 0, 2), (3,)),
    ),
    row(
        "augment",
        augment_indexed,
        every((4,), integers(2, 0), (2,)) + once((3, 2), integers(2, 0), (2, 2)) + once((3, 2), integers(2, 0), (2,)),
    ),
    row(
        "augment_duplicates",
        augment_indexed,
        once((4,), integers(2, 0, 2), (3,)) + once((3, 2), integers(1, 1), (2, 2)),
    ),
    row("augment_scalar_duplicates", augment_indexed, once((4,), integers(2, 0, 2), ())),
    row("multiply", multiply_indexed, once((4,), integers(2, 0), (2,)) + once((4,), integers(2, 0, 2), (3,))),
    row("assign_pairs", assign_pairs, every((3, 3), integers(0, 2), integers(1, 0), (2,))),
    row(
        "augment_pairs",
        augment_pairs,
        once((3, 3), integers(0, 2), integers(1, 0), (2,)) + once((3, 3), integers(0, 2, 0), integers(1, 0, 1), (3,)),
    ),
    row("assign_columns", assign_columns, every((2, 4), integers(3, 1), (2, 2)) + once((2, 4), integers(3, 1), (2, 1))),
    row("augment_columns", augment_columns, every((2, 4), integers(3, 1), (2, 2)) + once((2, 4), integers(3, 1), (2,))),
    row("assign_list", assign_list, once((3,), (2,)) + once((3, 2), (2, 2))),
    row("permute_rows", permute_rows, every((3, 2)) + once((3,))),
    row(
        "assign_mesh",
        assign_mesh,
        once((3, 3), integers(2, 0), integers(1, 2), (2, 2)) + once((3, 3), integers(2, 0), integers(1, 2), (2,)),
    ),
    row("augment_mesh", augment_mesh, once((3, 3), integers(2, 0), integers(1, 2), (2, 2))),
    row("assign_row_indexed", assign_row_indexed, once((3, 3), integers(2, 0), (2,))),
    row("copy_not_view", copy_not_view, once((4,), integers(2, 0)) + once((3, 2), integers(2, 0))),
    row("gather_scatter", gather_scatter, once((4,), integers(0, 1, 2), integers(1, 2, 3), (3,))),
]

# ------------------------------------------------------------------------------------------------------------ masks


def assign_masked(a, m, v, w):
    a[m] = v
    return np.sum(a * a * w)


def augment_masked(a, m, v, w):
    a[m] += v
    a[~m] *= 2.0
    return np.sum(a * a * w)


def assign_where_positive(a, x, w):
    a[a > 0.0] = x
    return np.sum(a * a * w)


def scale_where_positive(a, w):
    a[a > 0] *= 2
    return np.sum(a * a * w)


def assign_masked_other(a, b, w):
    m = a < b
    a[m] = b[m] ** 2
    return np.sum(a * w)


def assign_masked_columns(a, m, v, w):
    a[:, m] = v
    return np.sum(a * a * w)


def assign_masked_row(a, m, v, w):
    a[1, m] = v
    return np.sum(a * a * w)


def masked_update_loop(a, b, w):
    for _ in range(3):
        m = np.abs(a) < 2.0
        a[m] = a[m] * a[m] + b[m]
    return np.sum(a * w)


def piecewise_code(a, w):
    out = np.zeros_like(a)
    low = a < -0.3
    high = a > 0.4
    middle = ~(low | high)
    out[low] = np.exp(a[low])
    out[middle] = a[middle] ** 2
    out[high] = np.log(a[high])
    return np.sum(out * w)


def nonzero_write(a, x, w):
    (i,) = np.nonzero(a > 0)
    a[i] = x * a[i]
    return np.sum(a * a * w)


MASKS: list[Row] = [
    row(
        "vector",
        lambda a, m, w: np.sum(a[m] * w),
        every((4,), booleans("x.xx")) + once((2,), booleans("..")) + once((2,), booleans("xx")),
    ),
    row("matrix", lambda a, m, w: np.sum(a[m] * w), every((2, 3), booleans("x.x/.xx"))),
    row("rows", lambda a, m, w: np.sum(a[m] * w), every((3, 2), booleans("x.x"))),
    row("columns", lambda a, m, w: np.sum(a[:, m] * w), every((2, 3), booleans("x.x"))),
    row("mask_and_integer", lambda a, m, w: np.sum(a[m, 1] * w), once((3, 2), booleans("x.x"))),
    row("mask_and_slice", lambda a, m, w: np.sum(a[m, ::-1] * w), once((3, 2), booleans("x.x"))),
    row("first_two_of_three", lambda a, m, w: np.sum(a[m] * w), once((2, 2, 2), booleans("x./xx"))),
    row("positive", lambda a, w: np.sum(a[a > 0] * w), every((7,)) + once((2, 3))),
    row("inverted", lambda a, m, w: np.sum(a[~m] * w), once((4,), booleans("x.xx"))),
    row("and_or", lambda a, w: np.sum(a[(a > -0.4) & (a < 0.35) | (a > 0.85)] * w), once((7,))),
    row("by_other", lambda a, n, w: np.sum(a[n == 1] * w), once((4,), integers(1, 0, 1, 1))),
    row(
        "sum_of_two",
        lambda a, m: np.sum(a[m]) * np.sum(a[~m] ** 2),
        every((4,), booleans("x.xx")) + once((2, 3), booleans("x.x/.xx")),
    ),
    row("mean_of_chosen", lambda a, m: np.mean(a[m]), once((4,), booleans("x.xx"))),
    row("count", lambda a: np.sum(a[a > 0]) / np.sum(a > 0), once((7,))),
    row("then_slice", lambda a, m, w: np.sum(a[m][1:] * w), once((4,), booleans("x.xx"))),
    row("two_arrays", lambda a, b, m, w: np.sum(a[m] * b[m] * w), every((4,), (4,), booleans("x.xx"))),
    row("assign_values", assign_masked, every((4,), booleans("x.xx"), (3,)) + once((3, 2), booleans("x.x"), (2, 2))),
    row("assign_values_matrix", assign_masked, every((2, 3), booleans("x.x/.xx"), (4,))),
    row("assign_scalar", assign_masked, every((4,), booleans("x.xx"), ()) + once((2, 3), booleans("x.x/.xx"), ())),
    row("assign_nothing", assign_masked, once((2,), booleans(".."), (0,)) + once((2,), booleans(".."), (1,))),
    row("augment", augment_masked, every((4,), booleans("x.xx"), (3,)) + once((2, 3), booleans("x.x/.xx"), ())),
    row("assign_where_positive", assign_where_positive, every((7,), ()) + once((2, 3), ())),
    row("scale_where_positive", scale_where_positive, every((7,)) + once((2, 3))),
    row("assign_other", assign_masked_other, every((5,), (5,)) + once((2, 3), (2, 3))),
    row(
        "assign_columns",
        assign_masked_columns,
        once((2, 3), booleans("x.x"), (2, 2)) + once((2, 3), booleans("x.x"), (2,)),
    ),
    row("assign_in_row", assign_masked_row, once((2, 3), booleans("x.x"), (2,))),
    row("update_loop", masked_update_loop, every((5,), (5,))),
    row("piecewise", piecewise_code, every((7,)) + once((2, 4))),
    row("nonzero", lambda a, w: np.sum(a[np.nonzero(a > 0)] * w), once((7,)) + once((2, 4))),
    row("nonzero_unpacked", nonzero_write, once((7,), ())),
    row("flatnonzero", lambda a, m, w: np.sum(a[np.flatnonzero(m)] * w), once((4,), booleans("x.xx"))),
]

# ----------------------------------------------------------------------------------------------------------- choices


def where_indices(a, w):
    (i,) = np.where(a > 0)
    return np.sum(a[i] * w)


def where_indices_two(a, w):
    i, j = np.where(a > 0)
    return np.sum(a[i, j] * (1.0 + i + 2.0 * j) * w)


def put_values(a, b):
    c = a * 2.0
    np.put(c, [0, -1], b)
    c.put(1, a[0] * a[0])
    return np.sum(c * c)


def put_into_matrix(a, b, i):
    c = a * 2.0
    np.put(c.T, i, b)
    return np.sum(c**3)


def copied_to(a, b):
    c, d = np.zeros(a.shape), a * 1.0
    np.copyto(c, b)
    np.copyto(d, b, where=a > 0.0)
    return np.sum(c * c * d)


def integers_in_place(a, i):
    larger = i > 1
    larger |= i > 3
    larger += True
    i[i > 1] *= 2
    i[[0, 1]] += 1
    i[1:] //= 2
    i **= 2
    np.copyto(i, i * 1.5, casting="unsafe")
    np.copyto(i[:1], [3])
    small = np.zeros(3, np.float32)
    np.putmask(small, i > 4, 2.5)
    np.place(small, i < 4, [1.5])
    small *= np.array([1.0, 2.0, 3.0])
    np.add(i, 1, out=small[:3], dtype=float)
    return np.sum(a**i * larger * small) + np.sum(a * 2.0**-i)


def multiplied_in_place(a, b):
    c = a * 1.0
    c @= b
    return np.sum(c * c * a)


def outputs_by_position(a, b):
    c = np.empty(a.shape)
    np.multiply(a, b, c)
    np.exp(c, c)
    return np.sum(c * c)


CHOICES: list[Row] = [
    row("where", lambda a, b, w: np.sum(np.where(a > b, a, b * b) * w), every((2, 3), (2, 3)) + once((0,), (0,))),
    row(
        "where_mask",
        lambda m, a, b, w: np.sum(np.where(m, a, b) * w),
        every(booleans("x.x"), (2, 3), (3,)) + once(booleans("x.x/..x"), (2, 1), (3,)),
    ),
    row("where_scalars", lambda a, x, w: np.sum(np.where(a > 0, x, -1.0) * a * w), every((5,), ())),
    row("where_constant", lambda a, w: np.sum(np.where(a > 0, a, 0.1 * a) * w), every((5,)) + once((2, 3))),
    row(
        "where_nested",
        lambda a, w: np.sum(np.where(a > 0.4, np.log(a), np.where(a > -0.3, a**2, np.exp(a))) * w),
        once((7,)),
    ),
    row("where_no_nan", lambda a, w: np.sum(np.where(a > 0, np.sqrt(a), 0.0) * w), every((6,))),
    row(
        "where_no_infinity",
        lambda a, w: np.sum(np.where(a == 0, 0.0, np.sin(a) / a) * w),
        once(np.array([0.5, 0.3, -0.2])),
    ),
    row("where_indices", where_indices, once((7,))),
    row("where_indices_two", where_indices_two, once((2, 4))),
    row("select", lambda a, w: np.sum(np.select([a < -0.3, a > 0.4], [a**2, np.exp(a)], a) * w), every((7,))),
    row(
        "select_default",
        lambda a, x, w: np.sum(np.select([a < -0.3, a < 0.4], [a * x, a**3], default=x) * w),
        once((7,), ()) + once((2, 4), ()),
    ),
    row("select_first_wins", lambda a, b, w: np.sum(np.select([a > 0, a > -0.5], [b, a * b]) * w), once((7,), (7,))),
    row(
        "take", lambda a, i, w: np.sum(np.take(a, i) * w), every((4,), integers(3, 0, 3)) + once((2, 3), integers(5, 1))
    ),
    row("put", put_values, once((4,), (2,))),
    row("put_matrix", put_into_matrix, once((2, 3), (2,), integers(3, 0, 5)) + once((3, 1), (1,), integers(2, 0, 2))),
    row("output_by_position", outputs_by_position, once((3,), (3,))),
    row("integers_in_place", integers_in_place, once(array(3, low=0.5), integers(1, 2, 4))),
    row("copyto", copied_to, once((3,), (3,)) + once((2, 3), (3,))),
    row("bincount", lambda a, i, w: np.sum(np.bincount(i, a, 5) ** 2 * w), once((4,), integers(1, 0, 3, 1))),
    row("take_axis", lambda a, i, w: np.sum(np.take(a, i, axis=1) * w), every((2, 3), integers(2, 0, 2))),
    row("take_first_axis", lambda a, i, w: np.sum(np.take(a, i, axis=0) * w), once((3, 2), integers(2, 0, 2))),
    row("take_method", lambda a, i, w: np.sum(a.take(i) * w), once((4,), integers(3, 0))),
    row("clip", lambda a, w: np.sum(np.clip(a, -0.5, 0.4) * w), every((7,)) + once((2, 3))),
    row(
        "clip_active",
        lambda a, x, y, w: np.sum(np.clip(a, x, y) * w),
        every((7,), -0.51, 0.42) + once((3, 2), (2,), array(2, low=1.2, high=1.4)),
    ),
    row("clip_below", lambda a, w: np.sum(np.clip(a, 0.0, None) * w), once((7,))),
    row("clip_above", lambda a, w: np.sum(np.clip(a, a_min=None, a_max=0.2) * w), once((7,))),
    row("clip_method", lambda a, w: np.sum(a.clip(-0.5, 0.4) * w), once((7,))),
    row(
        "conditional_on_any",
        lambda a, w: np.sum((a if np.any(a > 0.9) else a**2) * w),
        once((7,)) + once(array(3, low=0.0, high=0.5)),
    ),
    row(
        "conditional_on_all",
        lambda a, w: np.sum((np.log(a) if np.all(a > 0) else a) * w),
        once((7,)) + once(array(3, low=0.1, high=0.5)),
    ),
]

# -------------------------------------------------------------------------------------------------------- reductions

REDUCTIONS: list[Row] = [
    row("sum", lambda a: np.sum(a) ** 2, every((2, 3)) + once((4,)) + once((2, 2, 2)) + once((0,)) + once((1, 1))),
    row("sum_method", lambda a: a.sum() * a.sum(), every((2, 3))),
    row(
        "sum_0", lambda a, w: np.sum(np.sum(a, axis=0) * w), every((2, 3)) + once((4,)) + once((2, 3, 2)) + once((0, 3))
    ),
    row("sum_1", lambda a, w: np.sum(np.sum(a, axis=1) ** 2 * w), every((2, 3)) + once((2, 3, 2)) + once((2, 0))),
    row("sum_last", lambda a, w: np.sum(a.sum(axis=-1) ** 2 * w), every((2, 3)) + once((4,)) + once((2, 2, 3))),
    row("sum_positional", lambda a, w: np.sum(a.sum(0) * np.sum(a, 0) * w), once((2, 3))),
    row("sum_axes", lambda a, w: np.sum(np.sum(a, axis=(1, 2)) ** 2 * w), every((2, 3, 2)) + once((1, 2, 1))),
    row("sum_axes_apart", lambda a, w: np.sum(np.sum(a, axis=(0, -1)) ** 2 * w), every((2, 3, 2))),
    row("sum_all_axes", lambda a: np.sum(a * a, axis=(0, 1)), once((2, 3))),
    row("sum_no_axis", lambda a: np.sum(a * a, axis=None), once((2, 3))),
    row(
        "sum_keepdims",
        lambda a, w: np.sum((a / np.sum(a, axis=1, keepdims=True)) * w),
        every((2, 3), low=0.5, high=1.5),
    ),
    row("sum_keepdims_all", lambda a, w: np.sum((a / np.sum(a, keepdims=True)) * w), once((2, 3), low=0.5, high=1.5)),
    row(
        "sum_keepdims_axes", lambda a, w: np.sum((a - np.sum(a, axis=(0, 2), keepdims=True)) ** 2 * w), once((2, 2, 2))
    ),
    row(
        "sum_where",
        lambda a, m: np.sum(a * a, where=m),
        every((2, 3), booleans("x.x/.xx")) + once((2, 3), booleans("x.x")),
    ),
    row(
        "sum_where_axis",
        lambda a, m, w: np.sum(np.sum(a, axis=1, where=m) ** 2 * w),
        once((2, 3), booleans("x.x/...")) + once((2, 3), booleans("x.x")),
    ),
    row("sum_where_condition", lambda a: np.sum(a * a, where=a > 0), once((7,))),
    row("sum_initial", lambda a, x, w: np.sum(np.sum(a, axis=0, initial=x) ** 2 * w), once((2, 3), ())),
    row("sum_initial_constant", lambda a: np.sum(a, initial=2.0) ** 2, once((4,))),
    row("sum_of_transposed", lambda a, w: np.sum(a.T.sum(axis=0) ** 2 * w), every((2, 3))),
    row("sum_of_slice", lambda a, w: np.sum(a[::-1, 1:].sum(axis=1) ** 2 * w), every((2, 3))),
    row("mean", lambda a: np.mean(a) ** 2, every((2, 3)) + once((4,)) + once((1,))),
    row("mean_0", lambda a, w: np.sum(np.mean(a, axis=0) ** 2 * w), every((2, 3)) + once((2, 3, 2))),
    row("mean_method_last", lambda a, w: np.sum(a.mean(-1) ** 2 * w), every((2, 3))),
    row("mean_axes", lambda a, w: np.sum(a.mean(axis=(0, 2)) ** 2 * w), once((2, 3, 2))),
    row("mean_keepdims", lambda a, w: np.sum((a - a.mean(axis=1, keepdims=True)) ** 3 * w), every((2, 3))),
    row("mean_where", lambda a, m, w: np.sum(np.mean(a, axis=1, where=m) ** 2 * w), once((2, 3), booleans("x.x/.xx"))),
    row("prod", lambda a: np.prod(a), every((2, 3)) + once((4,)) + once((1,)) + once((0,))),
    row("prod_method", lambda a: a.prod(), once((4,))),
    row("prod_0", lambda a, w: np.sum(np.prod(a, axis=0) * w), every((3, 2)) + once((2, 2, 2))),
    row("prod_last_keepdims", lambda a, w: np.sum(np.prod(a, axis=-1, keepdims=True) * a * w), once((2, 3))),
    row("prod_axes", lambda a, w: np.sum(np.prod(a, axis=(0, 2)) * w), once((2, 2, 2))),
    row("prod_where", lambda a, m: np.prod(a, where=m), once((4,), booleans("x.xx"))),
    row("prod_initial", lambda a, x: np.prod(a, initial=x), once((4,), ())),
    row(
        "array_by_keyword",
        lambda a: np.sum(np.array(object=[a[0], a[1] ** 2]) * np.asarray(a=a)),
        once((2,)),
    ),
    row("prod_one_zero", lambda a: np.prod(a), once(np.array([2.0, 0.0, 3.0]))),
    row("prod_two_zeros", lambda a: np.prod(a), once(np.array([2.0, 0.0, 3.0, 0.0]))),
    row(
        "prod_axis_zeros",
        lambda a, w: np.sum(np.prod(a, axis=1) * w),
        once(np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]])),
    ),
    row("max", lambda a: np.max(a) ** 2, every((2, 3)) + once((5,)) + once((1,))),
    row("max_method", lambda a: a.max() * a.min(), every((2, 3))),
    row("max_0", lambda a, w: np.sum(np.max(a, axis=0) * w), every((3, 2)) + once((2, 3, 2))),
    row("max_last", lambda a, w: np.sum(a.max(axis=-1) ** 2 * w), every((2, 3))),
    row("max_axes", lambda a, w: np.sum(np.max(a, axis=(1, 2)) * w), once((2, 2, 3))),
    row("max_keepdims", lambda a, w: np.sum(np.exp(a - np.max(a, axis=1, keepdims=True)) * w), every((2, 3))),
    row("max_where_initial", lambda a, m: np.max(a, where=m, initial=-5.0) ** 2, once((4,), booleans(".xx."))),
    row("max_initial", lambda a, w: np.sum(np.max(a, axis=1, initial=0.1) * w), once((3, 2))),
    row("amax", lambda a, w: np.sum(np.amax(a, axis=1) * w), every((2, 3))),
    row("min", lambda a: np.min(a) ** 2, every((2, 3))),
    row("min_axis", lambda a, w: np.sum(np.min(a, axis=1, keepdims=True) * a * w), every((2, 3))),
    row("amin", lambda a, w: np.sum(np.amin(a, axis=0) * w), once((2, 3))),
    row("var", lambda a: np.var(a), every((2, 3)) + once((4,)) + once((1,))),
    row("var_axis", lambda a, w: np.sum(np.var(a, axis=0) * w), every((3, 2))),
    row("var_ddof", lambda a, w: np.sum(a.var(axis=1, ddof=1) * w), once((2, 3))),
    row(
        "var_keepdims",
        lambda a, w: np.sum((a - a.mean(axis=1, keepdims=True)) / np.sqrt(a.var(axis=1, keepdims=True) + 1e-3) * w),
        once((2, 3)),
    ),
    row("std", lambda a: np.std(a), every((2, 3)) + once((4,))),
    row("std_axis", lambda a, w: np.sum(np.std(a, axis=0, ddof=1) * w), every((3, 2))),
    row("std_axes", lambda a, w: np.sum(a.std(axis=(0, 2)) * w), once((2, 3, 2))),
    row("ptp", lambda a: np.ptp(a) ** 2, once((5,)) + once((2, 3))),
    row("ptp_axis", lambda a, w: np.sum(np.ptp(a, axis=1) * w), every((2, 3))),
    row("median_odd", lambda a: np.median(a) ** 2, every((5,)) + once((1,)) + once((3, 3))),
    row("median_even", lambda a: np.median(a) ** 2, every((4,)) + once((2, 3))),
    row("quantile", lambda a: np.quantile(a, 0.3) ** 2, every((5,)) + once((1,)) + once((2, 3))),
    row("quantile_axis", lambda a, w: np.sum(np.quantile(a, 0.8, axis=1) * w), every((2, 3)) + once((2, 4))),
    row("quantiles", lambda a, w: np.sum(np.quantile(a, [0.1, 0.5, 1.0], axis=0) * w), once((3, 2)) + once((4,))),
    row("percentile", lambda a: np.percentile(a, 40) ** 2 + a.min(), every((4,))),
    row("divmod", lambda a, b, w: np.sum(np.divmod(a, b)[1] * np.divmod(a, b)[0] * w), once((4,), 0.7)),
    row("median_axis", lambda a, w: np.sum(np.median(a, axis=1) * w), every((2, 3)) + once((2, 4))),
    row("average", lambda a: np.average(a) ** 2, once((4,)) + once((2, 3))),
    row(
        "average_weights",
        lambda a, b: np.average(a, weights=b) ** 2,
        every((4,), (4,), low=0.5, high=1.5) + once((2, 3), (2, 3), low=0.5, high=1.5),
    ),
    row(
        "average_axis",
        lambda a, b, w: np.sum(np.average(a, axis=1, weights=b) * w),
        every((2, 3), (3,), low=0.5, high=1.5),
    ),
    row("average_axis_plain", lambda a, w: np.sum(np.average(a, axis=0) * w), once((2, 3))),
    row("builtin_sum", lambda a, w: np.sum(sum(a) * w), once((2, 3)) + once((4,))),
    row("trapezoid", lambda a: np.trapezoid(a * a), every((5,)) + once((1,))),
    row("trapezoid_x", lambda a, x: np.trapezoid(a * a, x), every((5,), (5,))),
    row("trapezoid_dx", lambda a, h: np.trapezoid(a, dx=h), once((5,), 0.3)),
    row("trapezoid_axis", lambda a, w: np.sum(np.trapezoid(a, axis=0) * w), once((3, 2)) + once((3, 2, 2))),
    row("trapezoid_x_axis", lambda a, x, w: np.sum(np.trapezoid(a, x=x, axis=1) * w), once((2, 3), (3,))),
    row("norm", lambda a: np.linalg.norm(a), every((4,)) + once((2, 3)) + once((1,))),
    row("norm_axis", lambda a, w: np.sum(np.linalg.norm(a, axis=1) * w), every((2, 3))),
    row("norm_keepdims", lambda a, w: np.sum((a / np.linalg.norm(a, axis=-1, keepdims=True)) * w), every((2, 3))),
    row("norm_one", lambda a, w: np.linalg.norm(a, 1) * w, once((4,)) + once((2, 3))),
    row("norm_three", lambda a: np.linalg.norm(a, ord=3), once((4,))),
    row("norm_infinity", lambda a: np.linalg.norm(a, np.inf), once((4,)) + once((2, 3))),
    row("norm_one_axis", lambda a, w: np.sum(np.linalg.norm(a, ord=1, axis=0) * w), once((2, 3))),
    row("norm_frobenius", lambda a: np.linalg.norm(a, "fro"), every((2, 3))),
    row("norm_spectral", lambda a: np.linalg.norm(a, 2), once((2, 3)) + once((4,))),
    row("norm_nuclear", lambda a: np.linalg.norm(a, "nuc"), once((2, 3))),
    row("logsumexp", lambda a: np.max(a) + np.log(np.sum(np.exp(a - np.max(a)))), every((4,)) + once((2, 3))),
    row("softmax", lambda a, w: np.sum(np.exp(a) / np.sum(np.exp(a), axis=1, keepdims=True) * w), every((2, 3))),
    row("reduce_twice", lambda a, w: np.sum(np.max(np.sum(a, axis=0), axis=0) ** 2 * w), once((2, 3, 2))),
]

# ------------------------------------------------------------------------------------------ scans, and what is inactive

SCANS: list[Row] = [
    row("cumsum", lambda a, w: np.sum(np.cumsum(a) * w), every((5,)) + once((2, 3)) + once((0,)) + once((1,))),
    row("cumsum_0", lambda a, w: np.sum(np.cumsum(a, axis=0) * w), every((3, 2)) + once((2, 2, 2))),
    row("cumsum_1", lambda a, w: np.sum(np.cumsum(a, axis=1) ** 2 * w), every((2, 3)) + once((2, 0))),
    row("cumsum_method", lambda a, w: np.sum(a.cumsum(axis=-1) * w), once((2, 3)) + once((4,))),
    row("cumsum_backwards", lambda a, w: np.sum(np.cumsum(a[::-1])[::-1] ** 2 * w), every((5,))),
    row("cumprod", lambda a, w: np.sum(np.cumprod(a) * w), every((5,)) + once((2, 2)) + once((0,))),
    row("cumprod_axis", lambda a, w: np.sum(np.cumprod(a, axis=1) * w), every((2, 3)) + once((2, 2, 2))),
    row("cumprod_method", lambda a, w: np.sum(a.cumprod(0) * w), once((3, 2))),
    row("cumprod_zeros", lambda a, w: np.sum(np.cumprod(a) * w), once(np.array([2.0, 0.0, 3.0, 0.0, 0.5]))),
    row("cumsum_exclusive", lambda a, w: np.sum(np.exp(-(np.cumsum(a) - a)) * a * w), once((5,))),
]

INACTIVE: list[Row] = [
    row("argmax", lambda a: a[np.argmax(a)] ** 2, every((5,))),
    row("argmin_method", lambda a: a[a.argmin()] ** 2, once((5,))),
    row("argmax_axis", lambda a, w: np.sum(a[np.arange(a.shape[0]), np.argmax(a, axis=1)] * w), every((3, 4))),
    row("argmax_flat", lambda a: a.ravel()[np.argmax(a)] ** 2, once((2, 3))),
    row("any_all", lambda a: np.sum(a * a) * (2.0 if np.any(a > 0) and not np.all(a > 0) else 1.0), once((5,))),
    row(
        "any_axis", lambda a, w: np.sum(np.any(a > 0.5, axis=1) * np.all(a > -2.0, axis=1) * a[:, 0] * w), once((4, 2))
    ),
    row("any_method", lambda a, m: np.sum(a * a) * (1.0 + m.any() + m.all()), once((3,), booleans("x.x"))),
    row("count_nonzero", lambda a: np.sum(a * a) / np.count_nonzero(a > 0), once((5,))),
    row("count_nonzero_axis", lambda a, w: np.sum(a / (1.0 + np.count_nonzero(a > 0, axis=0)) * w), once((3, 2))),
    row("shape_arithmetic", lambda a: np.sum(a) / (a.shape[0] * a.shape[-1]) + a.size * a[0, 0] / a.ndim, once((2, 3))),
    row("len", lambda a: np.sum(a) / len(a), once((4,)) + once((2, 3))),
    row("stop_at_floor", lambda a, w: np.sum((a - np.floor(a)) * w), once((4,))),
]

# ---------------------------------------------------------------------------------------------------------- products

PRODUCTS: list[Row] = [
    row(
        "matmul",
        lambda a, b, w: np.sum((a @ b) * w),
        every((2, 3), (3, 2)) + once((1, 2), (2, 1)) + once((2, 0), (0, 3)) + once((0, 2), (2, 3)),
    ),
    row("matmul_in_place", multiplied_in_place, once((2, 2), (2, 2))),
    row("matmul_vector", lambda a, b, w: np.sum((a @ b) * w), every((2, 3), (3,)) + once((1, 1), (1,))),
    row("vector_matmul", lambda a, b, w: np.sum((a @ b) * w), every((3,), (3, 2))),
    row("vector_vector", lambda a, b: (a @ b) ** 2, every((3,), (3,)) + once((0,), (0,)) + once((1,), (1,))),
    row("matmul_function", lambda a, b, w: np.sum(np.matmul(a, b) * w), once((2, 3), (3, 2))),
    row("matmul_transposed", lambda a, b, w: np.sum((a.T @ b.T) * w), every((3, 2), (2, 3))),
    row("matmul_slices", lambda a, b, w: np.sum((a[::2, 1:] @ b[::-1]) * w), every((3, 4), (3, 2))),
    row("matmul_chain", lambda a, b, c, w: np.sum((a @ b @ c) * w), every((2, 3), (3, 2), (2,))),
    row("matmul_batch", lambda a, b, w: np.sum((a @ b) * w), every((2, 2, 3), (2, 3, 2))),
    row("matmul_batch_shared", lambda a, b, w: np.sum((a @ b) * w), every((2, 2, 3), (3, 2)) + once((2, 3), (2, 3, 2))),
    row(
        "matmul_batch_broadcast",
        lambda a, b, w: np.sum((a @ b) * w),
        once((2, 1, 2, 2), (3, 2, 2)) + once((1, 2, 2), (3, 2, 1)),
    ),
    row("matmul_batch_vector", lambda a, b, w: np.sum((a @ b) * w), once((2, 2, 3), (3,)) + once((2, 3), (2, 3, 2))),
    row("matmul_single_double", lambda a, b, w: np.sum((a @ b) * w), once(_single(2, 3), (3, 2))),
    row("matmul_itself", lambda a, w: np.sum((a @ a @ a.T) * w), once((3, 3))),
    row("quadratic_form", lambda a, x: x @ a @ x, every((3, 3), (3,))),
    row("affine", lambda x, a, b: np.sum((x @ a + b) ** 2), every((4, 3), (3, 2), (2,))),
    row("matmul_integers", lambda a, n, w: np.sum((n @ a) * w), once((3, 2), np.array([[1, 0, 2], [0, 1, 1]]))),
    row(
        "dot", lambda a, b, w: np.sum(np.dot(a, b) * w), every((2, 3), (3, 2)) + once((2, 3), (3,)) + once((3,), (3, 2))
    ),
    row("dot_vectors", lambda a, b: np.dot(a, b) ** 2, every((3,), (3,))),
    row("dot_method", lambda a, b, w: np.sum(a.dot(b) * w), once((2, 3), (3,))),
    row("dot_scalar", lambda a, x, w: np.sum(np.dot(a, x) * w), once((3,), ())),
    row(
        "dot_stack",
        lambda a, b, w: np.sum(np.dot(a, b) * w),
        once((2, 2, 3), (3, 2)) + once((2, 3), (2, 3, 2)) + once((2, 2, 3), (3,)),
    ),
    row("vdot", lambda a, b: np.vdot(a, b) ** 2, every((3,), (3,)) + once((2, 3), (2, 3))),
    row("inner", lambda a, b, w: np.sum(np.inner(a, b) * w), every((2, 3), (2, 3)) + once((2, 3), (3,))),
    row("inner_vectors", lambda a, b: np.inner(a, b) ** 2, once((3,), (3,))),
    row("outer", lambda a, b, w: np.sum(np.outer(a, b) * w), every((3,), (2,)) + once((2, 2), (3,)) + once((0,), (2,))),
    row(
        "tensordot_one",
        lambda a, b, w: np.sum(np.tensordot(a, b, axes=1) * w),
        every((2, 3), (3, 2)) + once((2, 2, 3), (3, 2)),
    ),
    row("tensordot_two", lambda a, b: np.tensordot(a, b, axes=2) ** 2, once((2, 3), (2, 3))),
    row("tensordot_default", lambda a, b, w: np.sum(np.tensordot(a, b) * w), once((2, 2, 3), (2, 3, 2))),
    row("tensordot_zero", lambda a, b, w: np.sum(np.tensordot(a, b, axes=0) * w), once((2,), (3,))),
    row("tensordot_axes", lambda a, b, w: np.sum(np.tensordot(a, b, axes=([0], [1])) * w), every((3, 2), (2, 3))),
    row(
        "tensordot_two_axes",
        lambda a, b, w: np.sum(np.tensordot(a, b, axes=((0, 2), (1, 0))) * w),
        once((2, 3, 2), (2, 2, 2)),
    ),
    row("tensordot_plain_axes", lambda a, b, w: np.sum(np.tensordot(a, b, axes=(1, 0)) * w), once((2, 3), (3, 2))),
    row("einsum_matmul", lambda a, b, w: np.sum(np.einsum("ij,jk->ik", a, b) * w), every((2, 3), (3, 2))),
    row("einsum_implicit", lambda a, b, w: np.sum(np.einsum("ij,jk", a, b) * w), once((2, 3), (3, 2))),
    row("einsum_implicit_order", lambda a, w: np.sum(np.einsum("ba", a) * w), once((2, 3))),
    row("einsum_trace", lambda a: np.einsum("ii", a) ** 2, every((3, 3))),
    row("einsum_diagonal", lambda a, w: np.sum(np.einsum("ii->i", a) * w), once((3, 3))),
    row("einsum_transpose", lambda a, w: np.sum(np.einsum("ijk->kij", a) * w), once((2, 3, 2))),
    row("einsum_sum", lambda a, b: np.einsum("ij,ij->", a, b), every((2, 3), (2, 3))),
    row("einsum_row_sums", lambda a, w: np.sum(np.einsum("ij->i", a) ** 2 * w), once((2, 3))),
    row("einsum_inner", lambda a, b: np.einsum("i,i", a, b) ** 2, once((3,), (3,))),
    row("einsum_outer", lambda a, b, w: np.sum(np.einsum("i,j->ij", a, b) * w), every((2,), (3,))),
    row("einsum_elementwise", lambda a, b, w: np.sum(np.einsum("ij,j->ij", a, b) * w), once((2, 3), (3,))),
    row("einsum_batch", lambda a, b, w: np.sum(np.einsum("bij,bjk->bik", a, b) * w), every((2, 2, 3), (2, 3, 2))),
    row(
        "einsum_ellipsis",
        lambda a, b, w: np.sum(np.einsum("...ij,...jk->...ik", a, b) * w),
        once((2, 2, 3), (2, 3, 2)) + once((2, 3), (3, 2)),
    ),
    row("einsum_three", lambda a, b, c, w: np.sum(np.einsum("ij,jk,k->i", a, b, c) * w), every((2, 3), (3, 2), (2,))),
    row("einsum_bilinear", lambda a, x, y: np.einsum("i,ij,j", x, a, y), once((2, 3), (2,), (3,))),
    row("einsum_same_twice", lambda a, w: np.sum(np.einsum("ij,kj->ik", a, a) * w), once((2, 3))),
    row("einsum_contract_two", lambda a, b, w: np.sum(np.einsum("ijk,jkl->il", a, b) * w), once((2, 2, 2), (2, 2, 3))),
    row(
        "einsum_optimize",
        lambda a, b, c, w: np.sum(np.einsum("ij,jk,kl->il", a, b, c, optimize=True) * w),
        once((2, 3), (3, 2), (2, 2)),
    ),
    row("einsum_spaces", lambda a, b, w: np.sum(np.einsum("i j, j -> i", a, b) * w), once((2, 3), (3,))),
    row(
        "kron", lambda a, b, w: np.sum(np.kron(a, b) * w), every((2, 2), (1, 3)) + once((2,), (3,)) + once((2,), (2, 2))
    ),
    row(
        "cross",
        lambda a, b, w: np.sum(np.cross(a, b) * w),
        every((3,), (3,)) + once((2, 3), (2, 3)) + once((2, 3), (3,)),
    ),
    row("linalg_cross", lambda a, b, w: np.sum(np.linalg.cross(a, b, axis=0) * w), once((3, 2), (3, 2))),
    row("cross_axis", lambda a, b, w: np.sum(np.cross(a, b, axis=0) * w), once((3, 2), (3, 2))),
    row(
        "convolve",
        lambda a, b, w: np.sum(np.convolve(a, b) * w),
        every((5,), (3,)) + once((2,), (4,)) + once((1,), (1,)),
    ),
    row(
        "convolve_same",
        lambda a, b, w: np.sum(np.convolve(a, b, mode="same") * w),
        every((5,), (3,)) + once((5,), (2,)) + once((2,), (5,)),
    ),
    row("convolve_valid", lambda a, b, w: np.sum(np.convolve(a, b, "valid") * w), every((5,), (3,)) + once((2,), (4,))),
    row("correlate", lambda a, b, w: np.sum(np.correlate(a, b) * w), every((5,), (3,)) + once((2,), (4,))),
    row(
        "correlate_same",
        lambda a, b, w: np.sum(np.correlate(a, b, "same") * w),
        once((5,), (3,)) + once((5,), (2,)) + once((2,), (5,)),
    ),
    row(
        "correlate_full",
        lambda a, b, w: np.sum(np.correlate(a, b, mode="full") * w),
        every((4,), (2,)) + once((2,), (4,)),
    ),
    row(
        "polyval",
        lambda p, a, w: np.sum(np.polyval(p, a) * w),
        every((3,), (4,)) + once((4,), (2, 2)) + once((1,), (3,)),
    ),
    row("polyval_scalar", lambda p, x: np.polyval(p, x), once((4,), 0.7)),
    row(
        "interp",
        lambda a, b, f, w: np.sum(np.interp(a, b, f) * w),
        every(array(5, low=0.05, high=2.95), np.arange(4.0), (4,)),
        wrt=(0, 2, 3),
    ),
    row(
        "interp_outside",
        lambda a, b, f, w: np.sum(np.interp(a, b, f) * w),
        once(array(6, low=-2.2, high=5.1), np.arange(4.0), (4,)),
        wrt=(0, 2, 3),
    ),
    row(
        "interp_left_right",
        lambda a, b, f, w: np.sum(np.interp(a, b, f, left=-1.0, right=2.0) * w),
        once(array(6, low=-2.2, high=5.1), np.arange(4.0), (4,)),
        wrt=(0, 2, 3),
    ),
    row(
        "interp_periodic",
        lambda a, b, f, w: np.sum(np.interp(a, b, f, period=2.5) * w),
        once((5,), np.array([0.1, 0.7, 1.3, 2.2]), (4,)),
    ),
    row(
        "interp_scalar",
        lambda x, b, f: np.interp(x, b, f) ** 2,
        once(1.3, np.array([0.0, 0.5, 2.0, 2.5]), (4,)),
        wrt=(0, 2),
    ),
]

# ------------------------------------------------------------------------------------------------------ linear algebra


def eigh_vectors(a, w):
    """Products of an eigenvector with itself: its sign does not matter."""
    values, vectors = np.linalg.eigh(a + a.T)
    return np.sum(np.sin(values)) + np.sum(vectors**2 * w)


def eig_both(a, w):
    values, vectors = np.linalg.eig(a)
    return np.sum(np.sin(values)) + np.sum(vectors**2 * w)


def eig_both_real(a, w):
    values, vectors = np.linalg.eig(a)
    return np.sum(np.sin(values.real)) + np.sum(np.real(vectors) ** 2 * w)


def eigh_rebuilt(a, w):
    values, vectors = np.linalg.eigh(a + a.T)
    return np.sum((vectors @ np.diag(np.exp(values)) @ vectors.T) * w)


def svd_values(a, w):
    return np.sum(np.linalg.svd(a, compute_uv=False) * w)


def svd_vectors(a, b, c):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.sum(u**2 * b) + np.sum(np.log(s)) + np.sum(vt**2 * c)


def svd_rebuilt(a, w):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.sum(((u * np.sqrt(s)) @ vt) * w)


def qr_both(a, b, c):
    q, r = np.linalg.qr(a)
    return np.sum(q**2 * b) + np.sum(np.triu(r) ** 2 * c)


def slogdet_both(a):
    sign, logdet = np.linalg.slogdet(a)
    return sign * logdet**2


def cholesky_solve(a, b):
    factor = np.linalg.cholesky(a @ a.T + np.eye(a.shape[0]))
    y = np.linalg.solve(factor, b)
    return np.sum(y * y) + 2.0 * np.sum(np.log(np.diag(factor)))


def eigenvalues(suffix, both, values):
    real, stack = with_real_eigenvalues, np.stack([with_real_eigenvalues(2), np.diag([3.0, 1.0])])
    return [
        row(f"eig{suffix}", both, every(real(3), (3, 3)) + once(real(2), (2, 2))),
        row(f"eig{suffix}_stacked", both, once(stack, (2, 2, 2))),
        row(f"eigvals{suffix}", values, once(real(3)) + once((0, 0))),
    ]


LINALG: list[Row] = [
    row(
        "solve",
        lambda a, b, w: np.sum(np.linalg.solve(a, b) * w),
        every(regular(3, 3), (3,)) + once(regular(1, 1), (1,)),
    ),
    row("solve_columns", lambda a, b, w: np.sum(np.linalg.solve(a, b) * w), every(regular(3, 3), (3, 2))),
    row(
        "solve_batch",
        lambda a, b, w: np.sum(np.linalg.solve(a, b) * w),
        once(regular(2, 3, 3), (2, 3, 2)) + once(regular(2, 2, 2), (2, 1)),
    ),
    row("inv", lambda a, w: np.sum(np.linalg.inv(a) * w), every(regular(3, 3)) + once(regular(1, 1))),
    row("inv_batch", lambda a, w: np.sum(np.linalg.inv(a) * w), once(regular(2, 2, 2))),
    row("det", lambda a: np.linalg.det(a), every(regular(3, 3)) + once(regular(1, 1))),
    row("det_negative", lambda a: np.linalg.det(a), once(array(3, 3))),
    row("det_singular", lambda a: np.linalg.det(a), once(np.array([[1.0, 2.0], [2.0, 4.0]]))),
    row("det_batch", lambda a, w: np.sum(np.linalg.det(a) * w), once(regular(2, 2, 2))),
    row("slogdet", slogdet_both, every(regular(3, 3)) + once(-regular(3, 3))),
    row("slogdet_by_index", lambda a: np.linalg.slogdet(a)[1], once(regular(3, 3))),
    row(
        "cholesky",
        lambda a, w: np.sum(np.linalg.cholesky(a) * w),
        every(positive_definite(3)) + once(positive_definite(1)),
    ),
    row(
        "cholesky_symmetrised", lambda a, w: np.sum(np.linalg.cholesky(0.5 * (a + a.T)) * w), once(positive_definite(3))
    ),
    row("cholesky_solve", cholesky_solve, once((3, 3), (3,))),
    row("eigh_values", lambda a, w: np.sum(np.linalg.eigh(a)[0] * w), every(positive_definite(3))),
    row("eigh_vectors", eigh_vectors, once((3, 3))),
    row("eigh_rebuilt", eigh_rebuilt, once((3, 3))),
    *eigenvalues("_real", eig_both_real, lambda a, w: np.sum(np.linalg.eigvals(a).real * w)),
    row("svd_values", svd_values, every((3, 2)) + once((2, 3)) + once((2, 2))),
    row("svd_vectors", svd_vectors, once((3, 2), (3, 2), (2, 2)) + once((2, 3), (2, 2), (2, 3))),
    row("svd_rebuilt", svd_rebuilt, once((3, 2)) + once((2, 3))),
    row("qr", qr_both, every((3, 2), (3, 2), (2, 2)) + once((3, 3), (3, 3), (3, 3))),
    row(
        "lstsq",
        lambda a, b, w: np.sum(np.linalg.lstsq(a, b)[0] * w),
        every((4, 2), (4,)) + once((4, 2), (4, 2)) + once((2, 3), (2,)),
    ),
    row("lstsq_rcond", lambda a, b, w: np.sum(np.linalg.lstsq(a, b, rcond=None)[0] * w), once((4, 2), (4,))),
    row("pinv", lambda a, w: np.sum(np.linalg.pinv(a) * w), every((3, 2)) + once((2, 3)) + once(regular(2, 2))),
    row("matrix_power", lambda a, w: np.sum(np.linalg.matrix_power(a, 3) * w), every((3, 3))),
    row("matrix_power_minus", lambda a, w: np.sum(np.linalg.matrix_power(a, -2) * w), once(regular(2, 2))),
    row("matrix_power_zero", lambda a, w: np.sum(np.linalg.matrix_power(a, 0) @ a * w), once((2, 2))),
    row(
        "matrix_power_run_time",
        lambda a, n, w: np.sum(np.linalg.matrix_power(a, n) * w),
        once(regular(2, 2), 5) + once(regular(2, 2), 1) + once(regular(2, 2), -1),
    ),
    row("trace", lambda a: np.trace(a) ** 2, every((3, 3)) + once((2, 3)) + once((0, 0))),
    row("trace_method", lambda a: a.trace() ** 2, once((3, 3))),
    row("trace_offset", lambda a: np.trace(a, offset=1) ** 2, once((3, 3))),
    row("trace_of_product", lambda a, b: np.trace(a @ b), every((2, 3), (3, 2))),
    row(
        "mahalanobis",
        lambda x, m, c: (x - m) @ np.linalg.inv(c) @ (x - m) + np.log(np.linalg.det(c)),
        once((3,), (3,), positive_definite(3)),
    ),
]

if NUMPY < (2, 5):  # since NumPy 2.5 they are complex, also if all are real
    LINALG += eigenvalues("", eig_both, lambda a, w: np.sum(np.linalg.eigvals(a) * w))

# ---------------------------------------------------------------------------------------------------------- building


def build_empty(a, w):
    b = np.empty((a.shape[0], 2))
    b[:, 0] = a
    b[:, 1] = a * a
    return np.sum(b * w)


def build_ndarray(a, w):
    b = np.ndarray((2, a.shape[0]), dtype=np.float64)
    b[0] = a
    b[1, :] = np.cos(a)
    return np.sum(b * w)


def build_zeros_like(a, w):
    b = np.zeros_like(a)
    b[1:] = a[:-1]
    return np.sum((b + np.ones_like(a)) * a * w)


def meshgrid_xy(a, b, w):
    x, y = np.meshgrid(a, b)
    return np.sum(x**2 * y * w)


def meshgrid_ij(a, b, w):
    x, y = np.meshgrid(a, b, indexing="ij")
    return np.sum(x**2 * y * w)


def meshgrid_three(a, b, c, w):
    x, y, z = np.meshgrid(a, b, c, indexing="ij")
    return np.sum(x * y * z**2 * w)


def list_of_arrays(a, w):
    rows = []
    for k in range(3):
        rows.append(a**k)
    return np.sum(np.stack(rows) * w)


def array_of_list(a, w):
    squares = [x * x for x in a]
    return np.sum(np.array(squares) * w)


def unravelled(a, w):
    i, j = np.unravel_index(np.argmax(a), a.shape)
    return a[i, j] ** 2 * w


def unravelled_many(a, k, w):
    i, j = np.unravel_index(k, (2, 3))
    return np.sum(a[i, j] * w)


def concatenate_ghosts(a, w):
    b = np.concatenate((a[-1:], a, a[:1]))
    return np.sum((b[2:] - b[:-2]) ** 2 * w)


BUILDING: list[Row] = [
    row("zeros", lambda a, w: np.sum((np.zeros((2, 3)) + a) ** 2 * w), once((3,)) + once((2, 1))),
    row("ones", lambda a, w: np.sum(np.ones(3) * a * w), every((3,))),
    row("zeros_like", build_zeros_like, every((4,)) + once((3, 2))),
    row("full", lambda x, w: np.sum(np.full((2, 3), x) ** 2 * w), once(0.7)),
    row("full_like", lambda a, x, w: np.sum(np.full_like(a, x) * a * w), every((2, 3), 0.7)),
    row("full_row", lambda a, w: np.sum(np.full((2, 3), a) * w), once((3,))),
    row("empty", build_empty, every((3,))),
    row("empty_like", lambda a, w: np.sum(np.add(a, a, out=np.empty_like(a)) * w), once((3,))),
    row("ndarray", build_ndarray, once((3,))),
    row("eye", lambda a, x, w: np.sum((a + x * np.eye(3)) ** 2 * w), every((3, 3), 0.7)),
    row("eye_offset", lambda a, w: np.sum(np.eye(2, 3, k=1) * a * w), once((2, 3))),
    row("arange", lambda a, w: np.sum(np.arange(len(a)) * a * w), every((4,))),
    row("arange_step", lambda a, w: np.sum(np.arange(1.0, 3.0, 0.5) * a * w), once((4,))),
    row("arange_times", lambda x, w: np.sum(np.sin(x * np.arange(5)) * w), once(0.7)),
    row("linspace", lambda a, w: np.sum(np.linspace(0.0, 1.0, 5) * a * w), once((5,))),
    row(
        "linspace_integers",
        lambda a, w: np.sum(np.linspace(-1.5, 1.5, 7, dtype=int) * np.linspace(-1, 2, 7, False, dtype=int) * a * w),
        once((7,)),
    ),
    row("arange_to_a_float", lambda a, w: np.sum(np.arange(0, 6.5, 2, dtype=int) * a * w), once((4,))),
    row("linspace_active", lambda x, y, w: np.sum(np.linspace(x, y, 5) ** 2 * w), once(0.7, 1.9)),
    row("linspace_open", lambda x, y, w: np.sum(np.linspace(x, y, num=4, endpoint=False) ** 2 * w), once(0.7, 1.9)),
    row("array_numbers", lambda x, y, w: np.sum(np.array([x, x * y, 2.0]) * w), once(0.7, 1.9)),
    row(
        "array_nested",
        lambda x, w: np.sum((np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) @ np.array([1.0, 2.0])) * w),
        once(0.7),
    ),
    row("array_elements", lambda a, w: np.sum(np.array([a[0], a[1] ** 2, a[0] * a[1]]) * w), every((2,))),
    row("array_of_rows", lambda a, b, w: np.sum(np.array([a, b, a * b]) * w), once((3,), (3,))),
    row("array_copy", lambda a, w: np.sum(np.array(a) * np.copy(a) * np.asarray(a) * w), every((2, 3))),
    row("array_of_list", array_of_list, once((3,))),
    row("stack", lambda a, b, w: np.sum(np.stack([a, b]) * w), every((3,), (3,)) + once((2, 2), (2, 2))),
    row("stack_axis", lambda a, b, w: np.sum(np.stack((a, b), axis=1) * w), every((3,), (3,)) + once((2, 2), (2, 2))),
    row(
        "stack_last",
        lambda a, b, w: np.sum(np.stack((a, b, a * b), axis=-1) * w),
        once((3,), (3,)) + once((2, 2), (2, 2)),
    ),
    row("stack_list", list_of_arrays, once((3,))),
    row(
        "concatenate",
        lambda a, b, w: np.sum(np.concatenate([a, b]) * w),
        every((3,), (2,)) + once((1, 2), (2, 2)) + once((0,), (2,)),
    ),
    row("concatenate_axis", lambda a, b, w: np.sum(np.concatenate((a, b, a), axis=1) * w), every((2, 2), (2, 1))),
    row("concatenate_flat", lambda a, b, w: np.sum(np.concatenate((a, b), axis=None) * w), once((2, 2), (3,))),
    row("concatenate_ghosts", concatenate_ghosts, every((4,))),
    row("hstack", lambda a, b, w: np.sum(np.hstack((a, b)) * w), every((2,), (3,)) + once((2, 2), (2, 1))),
    row("hstack_scalars", lambda a, x, w: np.sum(np.hstack((x, a, 1.0)) * w), once((3,), ())),
    row(
        "vstack",
        lambda a, b, w: np.sum(np.vstack((a, b)) * w),
        every((3,), (3,)) + once((2, 2), (1, 2)) + once((3,), (2, 3)),
    ),
    row("column_stack", lambda a, b, w: np.sum(np.column_stack((a, b)) * w), every((3,), (3,)) + once((3, 2), (3,))),
    row("block", lambda a, b, c, d, w: np.sum(np.block([[a, b], [c, d]]) * w), every((2, 2), (2, 1), (1, 2), (1, 1))),
    row("block_row", lambda a, b, w: np.sum(np.block([a, b]) * w), once((2,), (3,))),
    row("append", lambda a, b, w: np.sum(np.append(a, b) * w), every((3,), (2,)) + once((2, 2), (3,))),
    row("append_scalar", lambda a, x, w: np.sum(np.append(a, x * x) * w), once((3,), ())),
    row("append_axis", lambda a, b, w: np.sum(np.append(a, b, axis=0) * w), once((2, 2), (1, 2))),
    row("pad", lambda a, w: np.sum((np.pad(a, 1) + 1.0) ** 2 * w), every((3,)) + once((2, 2))),
    row("pad_before_after", lambda a, w: np.sum(np.pad(a, (2, 1)) * w), every((3,))),
    row("pad_each_axis", lambda a, w: np.sum(np.pad(a, ((1, 0), (0, 2))) * w), every((2, 3))),
    row("pad_constant", lambda a, x, w: np.sum(np.pad(a, 1, mode="constant", constant_values=x) * w), once((3,), 0.7)),
    row("pad_edge", lambda a, w: np.sum(np.pad(a, 2, mode="edge") * w), every((3,)) + once((2, 3))),
    row("pad_reflect", lambda a, w: np.sum(np.pad(a, 2, mode="reflect") * w), every((4,)) + once((3, 3))),
    row("pad_symmetric", lambda a, w: np.sum(np.pad(a, ((1, 1), (2, 0)), "symmetric") * w), once((2, 3))),
    row("pad_wrap", lambda a, w: np.sum(np.pad(a, 1, mode="wrap") * w), every((3,)) + once((2, 3))),
    row("pad_linear_ramp", lambda a, w: np.sum(np.pad(a, (2, 3), "linear_ramp") * w), every((3,)) + once((2, 2))),
    row("pad_ramp_to", lambda a, w: np.sum(np.pad(a, 2, "linear_ramp", end_values=(0.5, 1)) * w), once((2, 3))),
    row("pad_maximum", lambda a, w: np.sum(np.pad(a, ((1, 2), (0, 1)), "maximum") * w), once((2, 3)) + once((1, 2))),
    row("pad_minimum", lambda a, w: np.sum(np.pad(a, 1, "minimum", stat_length=2) * w), every((4,))),
    row("pad_mean", lambda a, w: np.sum(np.pad(a, (2, 1), "mean") ** 2 * w), every((3,)) + once((2, 3))),
    row("pad_median", lambda a, w: np.sum(np.pad(a, 1, "median", stat_length=(3, 9)) * w), once((4,)) + once((3, 2))),
    row("pad_empty", lambda a, w: np.sum(np.pad(a, 1, "empty")[1:-1] * w), once((3,))),
    row("meshgrid", meshgrid_xy, every((3,), (2,))),
    row("meshgrid_ij", meshgrid_ij, once((3,), (2,))),
    row("meshgrid_three", meshgrid_three, once((2,), (3,), (2,))),
    row("ix", lambda a, i, j, w: np.sum(a[np.ix_(i, j)] * w), every((3, 4), integers(2, 0), integers(3, 1, 3))),
    row("tri", lambda a, w: np.sum(np.tri(3) * a * w), once((3, 3))),
    row("tri_offset", lambda a, w: np.sum(np.tri(2, 3, -1) * a * w), once((2, 3))),
    row("tril", lambda a, w: np.sum(np.tril(a) * w), every((3, 3)) + once((2, 3)) + once((2, 2, 2)) + once((3,))),
    row("tril_offset", lambda a, w: np.sum(np.tril(a, -1) @ np.tril(a, 1).T * w), once((3, 3))),
    row("triu", lambda a, w: np.sum(np.triu(a, k=1) * w), every((3, 3)) + once((3, 2)) + once((4,))),
    row("triangle_indices", lambda a, w: np.sum(a[np.triu_indices(3, 1)] * w), once((3, 3))),
    row("vander", lambda a, w: np.sum(np.vander(a) * w), every((3,))),
    row("vander_columns", lambda a, w: np.sum(np.vander(a, 4, increasing=True) * w), once((3,))),
    row("vander_fewer", lambda a, w: np.sum(np.vander(a, N=2) * w), once((3,))),
    row("unravel_index", unravelled, once((2, 3))),
    row("unravel_index_many", unravelled_many, once((2, 3), integers(5, 0, 4))),
]

# ----------------------------------------------------------------------------------------------------------- sorting


def sort_in_place(a, w):
    a.sort()
    return np.sum(a * a * w)


def unique_values(a, w):
    return np.sum(np.unique(a) ** 2 * w)


def unique_of_integers(a, n):
    total = 0.0
    for label in np.unique(n):
        total += np.mean(a[n == label]) ** 2
    return total


def unique_counts(a, n):
    labels, counts = np.unique(n, return_counts=True)
    return np.sum(a[: len(labels)] ** 2 * counts)


def searchsorted_cells(a, b, w):
    """Linear interpolation by hand."""
    k = np.searchsorted(b, a) - 1
    t = (a - b[k]) / (b[k + 1] - b[k])
    return np.sum(t**2 * w)


SORTING: list[Row] = [
    row("sort", lambda a, w: np.sum(np.sort(a) * w), every((5,)) + once((2, 3)) + once((1,)) + once((0,))),
    row("sort_axis", lambda a, w: np.sum(np.sort(a, axis=0) * w), every((3, 2))),
    row("sort_flat", lambda a, w: np.sum(np.sort(a, axis=None) * w), once((2, 3))),
    row("sort_in_place", sort_in_place, once((5,)) + once((2, 3))),
    row("sort_descending", lambda a, w: np.sum(np.sort(a)[::-1] ** 2 * w), every((5,))),
    row("sort_slice", lambda a: np.sum(np.sort(a)[1:-1] ** 2), once((5,))),
    row("argsort", lambda a, b, w: np.sum(b[np.argsort(a)] * w), every((4,), (4,))),
    row("argsort_itself", lambda a, w: np.sum(a[np.argsort(a)] * w), once((5,))),
    row("argsort_descending", lambda a, w: np.sum(a[np.argsort(-a)[:3]] * w), once((5,))),
    row("partition", lambda a: np.sum(np.partition(a, 2)[:2]) ** 2, every((6,))),
    row("partition_element", lambda a: np.partition(a, 2)[2] ** 2, once((6,))),
    row("partition_axis", lambda a, w: np.sum(np.partition(a, 1, axis=1)[:, 1] * w), once((2, 4))),
    row("searchsorted", searchsorted_cells, once(array(4, low=0.1, high=2.9), np.array([0.0, 0.6, 1.9, 3.0]))),
    row(
        "searchsorted_right",
        lambda a, b, w: np.sum(b[np.searchsorted(b, a, side="right") - 1] * a * w),
        once(array(4, low=0.1, high=2.9), np.array([0.0, 0.6, 1.9, 3.0])),
    ),
    row("searchsorted_scalar", lambda x, b: b[np.searchsorted(b, x)] * x, once(0.7, np.array([0.0, 0.6, 1.9, 3.0]))),
    row("unique", unique_values, once((5,)) + once((2, 3))),
    row("unique_of_integers", unique_of_integers, once((5,), integers(1, 0, 1, 3, 1))),
    row("unique_counts", unique_counts, once((5,), integers(1, 0, 1, 3, 1))),
]

# ------------------------------------------------------------------------------------------------------------- types


def into_integers(a, w):
    """The conversion to integers has derivative zero; the rest of the formula has a derivative."""
    n = (10.0 * a).astype(np.int64)
    return np.sum(a * n * w)


def single_of_double(a, b):
    return np.sum(a.astype(np.float32) * b)


CASTS: list[Row] = [
    row(
        "to_single",
        single_of_double,
        once(np.array([0.5, 0.25]), np.array([2.0, -3.0])),
        exact=(np.array([2.0, -3.0]), np.array([0.5, 0.25])),
        single_precision=True,
    ),
    row("to_double", lambda a, w: np.sum(a.astype(np.float64) ** 2 * w), once(_single(3)) + once((2, 3))),
    row("to_float", lambda a, w: np.sum(a.astype(float) * w), every((2, 3))),
    row("to_text", lambda a, w: np.sum(a.astype("float64") * w), once(_single(3))),
    row("integers_to_float", lambda a, n, w: np.sum(a / n.astype(np.float64) * w), once((3,), integers(1, 2, 3))),
    row("mask_to_float", lambda a, w: np.sum((a > 0).astype(float) * a * w), every((5,))),
    row("mask_to_integer", lambda a, w: np.sum((a > 0).astype(np.int64) * a * w), once((5,))),
    row("to_integer", into_integers, once((5,))),
    row("to_dtype_of", lambda a, b, w: np.sum(b.astype(a.dtype) * a * w), once((3,), _single(3))),
    row("zeros_of_dtype", lambda a, w: np.sum((np.zeros(3, dtype=a.dtype) + a) ** 2 * w), every((3,))),
    row("zeros_single", lambda a, w: np.sum((np.zeros(3, dtype=np.float32) + a) ** 2 * w), once(_single(3))),
    row("array_dtype", lambda n, a, w: np.sum(np.array(n, dtype=np.float64) * a * w), once(integers(1, 2, 3), (3,))),
    row("sum_dtype", lambda a, w: np.sum(a * a * w, dtype=np.float64), once(_single(3))),
]

# -------------------------------------------------------------------------------------------- array statements in loops


def step(u, c):
    out = u.copy()
    out[1:-1] = u[1:-1] + c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return out


def diffuse(u, c, n, w):
    for _ in range(n):
        u = step(u, c)
    return np.sum(u * w)


def diffuse_in_place(u, c, n, w):
    for _ in range(n):
        u[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u * w)


def swap_buffers(u, c, n, w):
    v = np.zeros_like(u)
    for _ in range(n):
        v[1:] = u[:-1] * c + np.sin(u[1:])
        v[0] = u[-1]
        u, v = v, u
    return np.sum(u * w) + np.sum(v * v)


def recurrence(a, x, w):
    h = np.zeros(a.shape[0])
    for k in range(x.shape[0]):
        h = np.tanh(a @ h + x[k])
    return np.sum(h * w)


def until_small(a):
    n = 0
    while np.max(np.abs(a)) > 0.1 and n < 50:
        a = a * a * 0.5 + 0.2 * a
        n += 1
    return np.sum(a)


def newton(a, x):
    for _ in range(6):
        x = x - (x @ x - 1.0) * x / (2.0 * (x @ x)) * a
    return np.sum(x * a)


def branch_on_sum(a, b, w):
    if np.sum(a) > 0.0:
        c = a * b
    else:
        c = a - b
        c[0] *= 3.0
    return np.sum(c * c * w)


def power_iteration(a, x, n):
    for _ in range(n):
        x = a @ x
        x = x / np.linalg.norm(x)
    return x @ a @ x


def tuple_of_arrays(a, b):
    def both(p, q):
        return p * q, p - q

    for _ in range(2):
        a, b = both(a, b)
    return np.sum(a * a) + np.sum(np.sin(b))


def triangular_growth(a):
    total = 0.0
    for k in range(1, a.shape[0]):
        total += np.dot(a[:k], a[k:0:-1])
    return total


def history(a, n):
    trace = np.zeros((n, a.shape[0]))
    trace[0] = a
    for k in range(1, n):
        trace[k] = 0.9 * trace[k - 1] + 0.1 * np.roll(trace[k - 1], 1) ** 2
    return np.sum(trace.mean(axis=0) ** 2) + trace[-1].max()


STATEMENTS: list[Row] = [
    row("diffuse", diffuse, every((6,), 0.2, 3) + once((6,), 0.2, 0)),
    row("diffuse_in_place", diffuse_in_place, every((6,), 0.2, 3)),
    row("swap_buffers", swap_buffers, once((4,), 0.7, 2) + once((4,), 0.7, 3)),
    row("recurrence", recurrence, every((3, 3), (2, 3))),
    row("until_small", until_small, once((4,)) + once(array(3, low=0.01, high=0.05))),
    row("newton", newton, once((3,), array(3, low=0.5, high=1.5))),
    row(
        "branch_on_sum",
        branch_on_sum,
        once((3,), (3,)) + once(array(3, low=0.2), (3,)) + once(array(3, high=-0.2), (3,)),
    ),
    row("power_iteration", power_iteration, once(positive_definite(3), array(3, low=0.5), 4)),
    row("tuple_of_arrays", tuple_of_arrays, every((3,), (3,))),
    row("triangular_growth", triangular_growth, every((5,))),
    row("history", history, once((4,), 4)),
]

# --------------------------------------------------------------------------------------------------------- conventions


def _exact(*numbers: float) -> np.ndarray:
    return np.array(numbers)


def write_of_selected(a, w):
    """A root of zero that is not selected does not contribute to the gradient."""
    safe = a > 0.0
    out = np.zeros_like(a)
    out[safe] = np.sqrt(a[safe])
    return np.sum(out * w)


def where_of_numbers(a):
    total = 0.0
    for k in range(len(a)):
        total += np.where(a[k] > 0.0, np.sqrt(a[k]), 0.0)
    return total


CONVENTIONS: list[Row] = [
    # of equal numbers, the first one gets the whole derivative, as with np.argmax
    row("max_tie", lambda a: np.max(a), once(_exact(1.0, 2.0, 2.0)), exact=(_exact(0.0, 1.0, 0.0),)),
    row("min_tie", lambda a: a.min(), once(_exact(1.0, 2.0, 1.0)), exact=(_exact(1.0, 0.0, 0.0),)),
    row(
        "amax_tie_axis",
        lambda a: np.sum(np.amax(a, axis=1)),
        once(np.array([[1.0, 1.0], [0.0, 2.0]])),
        exact=(np.array([[1.0, 0.0], [0.0, 1.0]]),),
    ),
    row(
        "max_tie_first_axis",
        lambda a: np.sum(np.max(a, axis=0)),
        once(np.array([[1.0, 1.0], [1.0, 2.0]])),
        exact=(np.array([[1.0, 0.0], [0.0, 1.0]]),),
    ),
    row("maximum_reduce_tie", lambda a: np.maximum.reduce(a), once(_exact(3.0, 3.0)), exact=(_exact(1.0, 0.0),)),
    row("ptp_tie", lambda a: np.ptp(a), once(_exact(0.0, 2.0, 2.0, 0.0)), exact=(_exact(-1.0, 1.0, 0.0, 0.0),)),
    # two equal arguments get half each
    row(
        "maximum_tie",
        lambda a, b: np.sum(np.maximum(a, b)),
        once(_exact(1.0, 2.0), _exact(1.0, 3.0)),
        exact=(_exact(0.5, 0.0), _exact(0.5, 1.0)),
    ),
    row(
        "minimum_tie",
        lambda a: np.sum(np.minimum(a, 0.0)),
        once(_exact(0.0, -1.0, 1.0)),
        exact=(_exact(0.5, 1.0, 0.0),),
    ),
    row("absolute_of_zero", lambda a: np.sum(np.abs(a)), once(_exact(0.0, -2.0)), exact=(_exact(0.0, -1.0),)),
    row("std_of_equals", lambda a: np.std(a), once(_exact(2.0, 2.0)), exact=(_exact(0.0, 0.0),)),
    row("norm_of_zero", lambda a: np.linalg.norm(a), once(_exact(0.0, 0.0)), exact=(_exact(0.0, 0.0),)),
    # unselected values contribute nothing, not even NaN or infinity
    row(
        "where_root_of_zero",
        lambda a: np.sum(np.where(a > 0.0, np.sqrt(a), 0.0)),
        once(_exact(0.0, 4.0, -1.0)),
        exact=(_exact(0.0, 0.25, 0.0),),
    ),
    row("where_of_numbers", where_of_numbers, once(_exact(0.0, 4.0, -1.0)), exact=(_exact(0.0, 0.25, 0.0),)),
    row(
        "where_zero_division",
        lambda a: np.sum(np.where(a == 0.0, 1.0, 1.0 / a)),
        once(_exact(0.0, 2.0)),
        exact=(_exact(0.0, -0.25),),
    ),
    row(
        "where_nested_nan",
        lambda a: np.sum(np.where(a > 0.0, np.log(np.sqrt(a)) * a, a)),
        once(_exact(0.0, 1.0, -1.0)),
        exact=(_exact(1.0, 0.5, 1.0),),
    ),
    row(
        "mask_root_of_zero",
        write_of_selected,
        [(_exact(0.0, 4.0, -1.0), _exact(1.0, 1.0, 1.0))],
        exact=(_exact(0.0, 0.25, 0.0), _exact(0.0, 2.0, 0.0)),
    ),
    row(
        "mask_sum_of_nan",
        lambda a, m: np.sum(a[m] ** 2),
        once(np.array([np.nan, 3.0]), booleans(".x")),
        exact=(_exact(0.0, 6.0),),
    ),
    row(
        "sum_where_nan",
        lambda a, m: np.sum(a**2, where=m),
        once(np.array([np.nan, 3.0]), booleans(".x")),
        exact=(_exact(0.0, 6.0),),
    ),
    row(
        "select_root_of_zero",
        lambda a: np.sum(np.select([a > 0.0], [np.sqrt(a)], 0.0)),
        once(_exact(0.0, 4.0)),
        exact=(_exact(0.0, 0.25),),
    ),
    row("prod_of_zeros", lambda a: np.prod(a), once(_exact(2.0, 0.0, 3.0)), exact=(_exact(0.0, 6.0, 0.0),)),
    row(
        "duplicates_last_wins",
        assign_indexed,
        [(_exact(1.0, 2.0), integers(0, 0), _exact(5.0, 7.0), _exact(1.0, 1.0))],
        exact=(_exact(0.0, 4.0), _exact(0.0, 14.0), _exact(49.0, 4.0)),
    ),
    row(
        "duplicates_augment_last",
        augment_indexed,
        [(_exact(1.0, 2.0), integers(0, 0), _exact(5.0, 7.0), _exact(1.0, 1.0))],
        exact=(_exact(16.0, 4.0), _exact(0.0, 16.0), _exact(64.0, 4.0)),
    ),
    row(
        "boolean_case",
        lambda v, m: np.sum(v[m]),
        once(_exact(1.0, 2.0, 3.0), booleans(".x.")),
        exact=(_exact(0.0, 1.0, 0.0),),
    ),
]

# ------------------------------------------------------------- forms that are not documented, which people may try


def fill_diagonal(a, x, w):
    np.fill_diagonal(a, x)
    return np.sum(a * a * w)


def piecewise_functions(a, w):
    pieces = np.piecewise(a, [a < -0.2, a > 0.3], [lambda x: x**2, lambda x: x * x.sum(), 0.5])
    return np.sum(pieces * w)


def enumerated(a):
    total = 0.0
    for (i, j), x in np.ndenumerate(a):
        total += x**2 * (1 + i + 3 * j)
    for k, x in enumerate(a.flat):
        total += k * x
    return total


def flat_writes(a, w):
    b = 2.0 * a
    b.flat[::2] = b.flat[1] * 3.0
    return np.sum(b * w)


def placed(a, b, w):
    np.place(a, a > 0.0, b)
    np.putmask(a, a < -0.5, b * b)
    np.put_along_axis(a, np.argmin(a, axis=1, keepdims=True), b[0], axis=1)
    return np.sum(a * a * w)


def of_types(a, w):
    small = np.finfo(a.dtype).eps if np.issubdtype(a.dtype, np.floating) else 0.0
    kind = np.result_type(a, np.float64)
    return np.sum((a.astype(kind) + small) * w) * (a.dtype.kind == "f") * np.isscalar(small)


def named_parts(a, w):
    symmetric = np.linalg.eigh(a + a.T)
    sign_and_logarithm = np.linalg.slogdet(a)
    factors, turned = np.linalg.qr(a), np.linalg.svd(a)
    rebuilt = symmetric.eigenvectors * np.exp(symmetric.eigenvalues) @ symmetric.eigenvectors.T
    return np.sum((rebuilt + factors.Q @ np.abs(factors.R)) * w) + sign_and_logarithm.logabsdet + turned.S[0]


def grids(a, w):
    i, j = np.mgrid[0:2, 0:3]
    x, y = np.ogrid[0:1:2j, 0:3]
    return np.sum((a * i + a**2 * j + np.sin(a) * x * y) * w)


def rows_added_to_zero(a, w):
    """The sum is a number before the first iteration, and an array after it."""
    total = 0
    for part in a:
        total = total + part * part
    largest = 0.0
    for k in range(len(a)):
        if k == 1:
            continue
        largest = np.maximum(largest, a[k])
    return np.sum((total + largest) * w)


def numbers_with_methods(a):
    total = a.sum()
    return total.item() * a[0, 0].clip(-0.5, 0.5) * total.mean() + total.ndim + a[0, 1].size


@np.vectorize
def bent(x, y):
    return x * y if x > 0.0 else y**2


FORMS: list[Row] = [
    row("transpose_list", lambda a, w: np.sum(np.transpose(a, [2, 0, 1]) * w), every((2, 3, 2))),
    row("matrix_transposed", lambda a, w: np.sum(a.mT * np.matrix_transpose(a) * w), every((2, 3, 2))),
    row("rollaxis", lambda a, w: np.sum((np.rollaxis(a, 2) + np.rollaxis(a, 2, 1)[0, 0, 0]) * w), every((2, 3, 2))),
    row("tuples_as_indices", lambda a, w: np.sum(a[(0, 1), (1, 2)] * w), every((2, 3))),
    row("compress_method", lambda a, w: np.sum(a.compress([True, False, True], axis=1) * w), every((2, 3))),
    row("conj_method", lambda a, w: np.sum((a.conj() * a.real) * w), every((2, 3))),
    row("partition_method", lambda a: a.partition(2) or a[2] ** 2, once((5,))),
    row("tolist", lambda a, w: np.sum(np.array(a.tolist()) * a.tolist()[1] * w), once((5,))),
    row("flat", lambda a, w: np.sum(a.flat[1:4] * a.flat[0] * w), every((2, 3))),
    row("flat_writes", flat_writes, once((2, 3))),
    row("ndenumerate", enumerated, every((2, 3)) + once((0, 2))),
    row("size_of_axis", lambda a, w: np.sum(a * np.size(a, 0) * np.size(a, axis=-1) * w) / a.nbytes, once((2, 3))),
    row("array_options", lambda a, w: np.sum(np.array(a, copy=True, ndmin=3, order="F") * w), every((2, 3))),
    row("asfortranarray", lambda a, w: np.sum(np.asfortranarray(a) * np.asanyarray(a) * w), every((2, 3))),
    row(
        "zeros_in_order",
        lambda a, w: np.sum((np.zeros(a.shape, order="F") + np.ones((2, 3), float, "F") * a) * w),
        once((2, 3)),
    ),
    row(
        "like_of_shape",
        lambda a, w: np.sum((np.zeros_like(a, shape=(4, 3)) + a) * np.full_like(a, 2.0, shape=3) * w),
        once((3,)),
    ),
    row("matmul_out", lambda a, b, w: np.sum(np.matmul(a, b, out=np.empty((2, 2))) * w), every((2, 3), (3, 2))),
    row("einsum_out", lambda a, b, w: np.sum(np.einsum("ij,jk", a, b, out=np.empty((2, 2))) * w), once((2, 3), (3, 2))),
    row("einsum_numbers", lambda a, b, w: np.sum(np.einsum(a, [0, 1], b, [1, 2], [2, 0]) * w), every((2, 3), (3, 2))),
    row("einsum_numbers_implicit", lambda a, w: np.sum(np.einsum(a, [1, 0]) * w), once((2, 3))),
    row("trace_out", lambda a, w: np.sum(np.trace(a, out=np.zeros(2)) * w), once((3, 3, 2))),
    row("named_parts", named_parts, once(regular(3, 3))),
    row("reduce_subtract", lambda a, w: np.sum(np.subtract.reduce(a) * w), every((3, 2))),
    row(
        "reduce_divide",
        lambda a, w: np.sum(np.divide.reduce(a, axis=1, keepdims=True) * w),
        once((2, 3), low=0.5, high=2.0),
    ),
    row("reduceat", lambda a, n, w: np.sum(np.add.reduceat(a, n, axis=1) * w), every((2, 6), integers(0, 3, 1, 4))),
    row("multiply_reduceat", lambda a, w: np.sum(np.multiply.reduceat(a, [0, 2]) * w), once((5,))),
    row(
        "maximum_at",
        lambda a, n, b, w: np.maximum.at(a, n, b) or np.sum(a * a * w),
        once((4,), integers(0, 2, 0), (3,)),
    ),
    row("negative_at", lambda a, n, w: np.negative.at(a, n) or np.sum(a**3 * w), once((4,), integers(0, 2, 0))),
    row(
        "quantile_methods",
        lambda a: np.quantile(a, 0.3, method="hazen") * np.quantile(a, 0.3, method="lower"),
        once((7,)),
    ),
    row(
        "quantile_nearest",
        lambda a: np.quantile(a, 0.33, method="nearest") * np.quantile(a, 0.4, method="higher"),
        once((7,)),
    ),
    row(
        "quantile_unbiased",
        lambda a: np.quantile(a, 0.9, method="median_unbiased") * np.quantile(a, 0.2, method="weibull"),
        once((7,)),
    ),
    row(
        "quantile_more",
        lambda a: np.quantile(a, 0.7, method="normal_unbiased") * np.quantile(a, 0.6, method="midpoint"),
        once((7,)),
    ),
    row(
        "quantiles_keepdims", lambda a, w: np.sum(np.quantile(a, [0.2, 0.7], axis=0, keepdims=True) * w), every((5, 2))
    ),
    row("percentiles", lambda a, w: np.sum(np.percentile(a, [25, 75], axis=1) * w), every((2, 5))),
    row("linspace_arrays", lambda a, b, w: np.sum(np.linspace(a, b, 4, axis=-1) * w), every((2, 3), (3,))),
    row("indices_sparse", lambda a, w: np.sum(np.indices((2, 3), sparse=True)[1] * a * w), once((2, 3))),
    row(
        "isclose_options",
        lambda a, w: np.sum(np.isclose(a, 0.0, atol=0.5) * a * w) * (not np.allclose(a, 1.0, rtol=0.1)),
        once((2, 3)),
    ),
    row(
        "nan_to_num_options", lambda a, w: np.sum(np.nan_to_num(np.where(a > 0, a, np.nan), nan=0.5) * w), every((2, 3))
    ),
    row(
        "piecewise_of_numbers", lambda a, w: np.sum(np.piecewise(a, [a > 0, a < -0.5], [1.0, 2.0]) * a * w), once((5,))
    ),
    row("cov_weights", lambda a, b, w: np.sum(np.cov(a, aweights=b) * w), once((2, 5), array(5, low=0.5, high=1.5))),
    row("cov_counts", lambda a, n, w: np.sum(np.cov(a, fweights=n, ddof=0) * w), once((2, 4), integers(1, 3, 2, 1))),
    row(
        "float_types",
        lambda a, b: np.sum((np.float32(a) + np.float64(a)) * b),
        once(_exact(0.5, -2.0), _exact(1.0, 3.0)),
        exact=(_exact(2.0, 6.0), _exact(1.0, -4.0)),
    ),
    row("of_types", of_types, every((2, 3))),
    row("numbers_with_methods", numbers_with_methods, once((2, 3))),
    row("squeeze_first", lambda a, w: np.sum(np.squeeze(a[:, :1]) * w), once((2, 3))),
    row("rows_added_to_zero", rows_added_to_zero, every((3, 2)) + once((1, 2))),
    row("sum_of_rows", lambda a, w: np.sum(sum(row * row for row in a) * w), every((3, 2))),
    row("sum_from", lambda a: sum((x * x for x in a), start=2.0 * a[0]), once((3,))),
    row("max_default", lambda a: max((x * x for x in a if x > 5.0), default=a[1] ** 2), once((3,))),
]

BEYOND: list[Row] = [
    row("diff", lambda a, w: np.sum(np.diff(a) ** 2 * w), once((5,)) + once((2, 3))),
    row("diff_axis", lambda a, w: np.sum(np.diff(a, axis=0) ** 2 * w), once((3, 2))),
    row("diff_twice", lambda a, w: np.sum(np.diff(a, n=2) ** 2 * w), once((5,))),
    row("flipud_fliplr", lambda a, w: np.sum(np.flipud(a) * np.fliplr(a) * w), once((2, 3))),
    row("rot90", lambda a, w: np.sum(np.rot90(a) * w), once((2, 3))),
    row("dstack", lambda a, b, w: np.sum(np.dstack((a, b)) * w), once((2, 3), (2, 3))),
    row("identity", lambda a, w: np.sum(np.identity(3) * a * w), once((3, 3))),
    row("atleast_2d", lambda a, w: np.sum(np.atleast_2d(a) * w), once((3,))),
    row("fill_diagonal", fill_diagonal, once((3, 3), ())),
    row("nansum", lambda a: np.nansum(a * a), once((4,))),
    row("eigvalsh", lambda a, w: np.sum(np.linalg.eigvalsh(a + a.T) * w), once((3, 3))),
    row("take_along_axis", lambda a, w: np.sum(np.take_along_axis(a, np.argsort(a, axis=1), axis=1) * w), once((2, 3))),
    row("argsort_axis", lambda a, w: np.sum(np.take_along_axis(a, a.argsort(axis=0), axis=0) * w), once((3, 2))),
    row("piecewise", piecewise_functions, every((7,)) + once((2, 3))),
    row(
        "piecewise_arguments",
        lambda a, b, w: np.sum(np.piecewise(a, a > 0, [lambda x, y: x * y, 1.0], b) * w),
        once((5,), ()),
    ),
    row("placed", placed, once((3, 4), (2,))),
    row("isin", lambda a, n, w: np.sum(np.isin(n, [1, 2]) * a * w), once((3,), integers(0, 1, 2))),
    row(
        "array_equal",
        lambda a, b: np.sum(a) * (2 - np.array_equal(a, b)) + np.sum(a) * np.array_equal(a, a),
        once((3,), (3,)),
    ),
    row(
        "triangle_indices_from",
        lambda a, w: np.sum(a[np.triu_indices_from(a, 1)] * a[np.tril_indices_from(a, -1)] * w),
        every((3, 3)),
    ),
    row("diag_indices_from", lambda a, w: np.sum(a[np.diag_indices_from(a)] ** 2 * w), every((3, 3))),
    row(
        "nan_quantiles",
        lambda a, w: np.sum(np.nanquantile(np.where(a > 0.7, np.nan, a), 0.4, axis=1) * w),
        once((2, 5)),
    ),
    row("nanmedian", lambda a, w: np.sum(np.nanmedian(np.where(a > 0.7, np.nan, a), axis=0) * w), once((5, 2))),
    row("nanpercentile", lambda a, w: np.sum(np.nanpercentile(a, [20, 60]) * w), once((5,))),
    row(
        "nanargmax", lambda a: a[np.nanargmax(np.where(a > 0.7, np.nan, a))] ** 2 + a[np.nanargmin(a)] ** 3, once((5,))
    ),
    row(
        "cumulative_sum",
        lambda a, w: np.sum(np.cumulative_sum(a, axis=1, include_initial=True) ** 2 * w),
        every((2, 3)),
    ),
    row("cumulative_prod", lambda a, w: np.sum(np.cumulative_prod(a) * w), every((4,))),
    row("nancumsum", lambda a, w: np.sum(np.nancumsum(np.where(a > 0.5, np.nan, a), axis=0) ** 2 * w), once((3, 2))),
    row("nancumprod", lambda a, w: np.sum(np.nancumprod(np.where(a > 0.5, np.nan, a)) * w), once((5,))),
    row("ediff1d", lambda a, w: np.sum(np.ediff1d(a, to_begin=a[0, 0], to_end=[1.0, 2.0]) ** 2 * w), every((2, 3))),
    row("unwrap", lambda a, w: np.sum(np.unwrap(9.0 * a, axis=0) ** 2 * w), every((5, 2))),
    row("unwrap_period", lambda a, p, w: np.sum(np.unwrap(9.0 * a, period=p) ** 2 * w), once((6,), 3.0)),
    row("frexp", lambda a, w: np.sum(np.frexp(3.3 * a)[0] * a * np.frexp(3.3 * a)[1] * w), every((5,))),
    row("modf", lambda a, w: np.sum(np.modf(3.3 * a)[0] * a * np.modf(3.3 * a)[1] * w), every((5,))),
    row("gradient_places", lambda a, x, w: np.sum(np.gradient(a, x) * w), once((5,), np.arange(5.0))),
    row("gradient_forms", lambda a, w: np.sum(np.gradient(a, 0.1, 0.2)[1] * np.gradient(a, axis=0) * w), once((3, 4))),
    row("apply_along_axis", lambda a, w: np.sum(np.apply_along_axis(lambda r: r * r.sum(), 0, a) * w), every((3, 4))),
    row("apply_to_numbers", lambda a, w: np.sum(np.apply_along_axis(np.prod, 1, a) * w), once((2, 3, 2))),
    row("apply_over_axes", lambda a, w: np.sum(np.apply_over_axes(np.sum, a, [0, 2]) ** 2 * w), once((2, 3, 2))),
    row("vectorize", lambda a, b, w: np.sum(np.vectorize(lambda x, y: x * np.exp(y))(a, b) * w), every((2, 1), (3,))),
    row("vectorized_function", lambda a, b, w: np.sum(bent(a, b) * w), every((5,), (5,))),
    row(
        "vectorize_numbers",
        lambda a, x, w: np.sum(np.vectorize(lambda x, y, n: x * y**n)(a, x, 2) * w) * np.vectorize(lambda x: x * x)(x),
        every((2, 3), ()),
    ),
    row(
        "vectorize_types",
        lambda a, w: np.sum(np.vectorize(lambda x: 0 if x < 0 else x, otypes=[float])(a) * w),
        once((5,)),
    ),
    row("logspace", lambda x, y, w: np.sum(np.logspace(x, y, 4, base=2.0) * w), once(0.3, 1.2)),
    row("geomspace", lambda x, y, w: np.sum(np.geomspace(x, y, 4) * w), once(0.3, 1.2)),
    row("fromfunction", lambda a, w: np.sum(np.fromfunction(lambda i, j: a[0] * i + a[1] * j, (2, 3)) * w), once((2,))),
    row("fromiter", lambda a, w: np.sum(np.fromiter((x * x for x in a), dtype=float) * w), once((4,))),
    row("resize", lambda a, w: np.sum(np.resize(a, (2, 4)) ** 2 * w), every((2, 3))),
    row("insert", lambda a, x, w: np.sum(np.insert(a, 1, x) ** 2 * w), once((3,), ()) + once((2, 3), ())),
    row("insert_row", lambda a, b, w: np.sum(np.insert(a, -1, b, axis=0) ** 2 * w), every((3, 2), (2,))),
    row("insert_column", lambda a, b, w: np.sum(np.insert(a, 2, b, axis=1) ** 2 * w), once((3, 2), (3,))),
    row("insert_several", lambda a, b, w: np.sum(np.insert(a, [2, 0, 2], b) ** 2 * w), once((4,), (3,))),
    row("insert_at_one", lambda a, b, w: np.sum(np.insert(a, [1], b) ** 2 * w), every((4,), (3,)) + once((4,), ())),
    row(
        "insert_columns_at_one",
        lambda a, b, n, w: np.sum(np.insert(a, n, b, axis=1) ** 2 * w),
        once((3, 2), (2,), integers(1)) + once((3, 2), (3, 1), integers(1, 0)),
    ),
    row("insert_at_slice", lambda a, b, w: np.sum(np.insert(a, slice(None, None, 2), b) ** 2 * w), once((4,), (2,))),
    row("insert_nothing", lambda a, x, w: np.sum(np.insert(a, [], x) ** 2 * w), once((4,), ())),
    row("delete", lambda a, w: np.sum(np.delete(a, 1) ** 2 * w), once((4,)) + once((2, 3))),
    row(
        "delete_row", lambda a, n, w: np.sum(np.delete(np.delete(a, n, axis=0), -1, axis=1) ** 2 * w), every((3, 4), 1)
    ),
    row("delete_several", lambda a, w: np.sum(np.delete(a, [0, 2, 0], axis=1) ** 2 * w), once((2, 4))),
    row("delete_range", lambda a, w: np.sum(np.delete(a, slice(1, 3)) ** 2 * w), once((5,))),
    row("delete_mask", lambda a, m, w: np.sum(np.delete(a, m) ** 2 * w), once((4,), booleans("x..x"))),
    row("delete_nothing", lambda a, w: np.sum(np.delete(a, []) ** 2 * w), once((2, 3))),
    row("joined_rows", lambda a, b, w: np.sum(np.r_[a, 2.0, b[0], 0:3] ** 2 * w), once((2,), (3,))),
    row("joined_columns", lambda a, b, w: np.sum(np.c_[np.ones(3), a, b] ** 2 * w), every((3,), (3, 2))),
    row("grids", grids, once((2, 3))),
    row(
        "broadcast_arrays",
        lambda a, b, w: np.sum(np.broadcast_arrays(a, b)[0] * np.broadcast_arrays(a, b)[1] * w),
        every((2, 1), (3,)),
    ),
    row(
        "sliding_windows",
        lambda a, w: np.sum(np.lib.stride_tricks.sliding_window_view(a, 3).prod(axis=-1) * w),
        every((6,)),
    ),
    row(
        "sliding_blocks",
        lambda a, w: np.sum(np.lib.stride_tricks.sliding_window_view(a, (2, 2)).max(axis=(2, 3)) * w),
        once((3, 4)),
    ),
    row("matvec", lambda a, b, w: np.sum(np.matvec(a, b) * w), every((2, 3, 2), (2, 2))),
    row("vecmat", lambda a, b, w: np.sum(np.vecmat(a, b) * w), every((2,), (2, 3))),
    row("linalg_parts", lambda a, w: np.sum(np.linalg.trace(a) * np.linalg.diagonal(a)[:, 0] * w), every((2, 3, 3))),
    row("vecdot", lambda a, b, w: np.sum(np.linalg.vecdot(a, b) * w), every((2, 3), (3,))),
    row(
        "vector_norm",
        lambda a, w: np.sum(np.linalg.vector_norm(a, axis=1, ord=3) * w) * np.linalg.vector_norm(a),
        every((2, 3)),
    ),
    row(
        "vector_norm_axes",
        lambda a, w: np.sum(np.linalg.vector_norm(a, axis=(0, 2), ord=1, keepdims=True) * w),
        once((2, 3, 2)),
    ),
    row("matrix_norm", lambda a, w: np.sum(np.linalg.matrix_norm(a) * w), every((2, 3, 2))),
    row(
        "cond",
        lambda a: np.linalg.cond(a) + np.linalg.cond(a, 1) + np.linalg.cond(a, "fro") + np.linalg.cond(a, -2),
        once(regular(3, 3)),
    ),
    row(
        "tensorsolve",
        lambda a, b, w: np.sum(np.linalg.tensorsolve(a.reshape(2, 2, 4), b) * w),
        once(regular(4, 4), (2, 2)),
    ),
    row("tensorinv", lambda a, w: np.sum(np.linalg.tensorinv(a.reshape(4, 2, 2), ind=1) * w), once(regular(4, 4))),
    row(
        "trim_zeros",
        lambda a: np.sum(np.trim_zeros(a) ** 2) * len(np.trim_zeros(a, "f")) * len(np.trim_zeros(a, "B")),
        once(np.array([0.0, 0.0, 1.5, 0.0, -2.0, 0.0])),
        exact=(np.array([0.0, 0.0, 60.0, 0.0, -80.0, 0.0]),),
    ),
    row("trim_all_zeros", lambda a: np.sum(np.trim_zeros(a, "b")) + len(np.trim_zeros(a)), once((0,))),
    row(
        "polymul_zeros",
        lambda a, b: np.sum(np.polymul(a, b) ** 2) * len(np.polymul(a, b)),
        once(np.array([0.0, 0.0, 3.0, 2.0]), np.array([0.0, 1.0])),
        exact=(np.array([0.0, 0.0, 12.0, 8.0]), np.array([0.0, 52.0])),
    ),
    row("polymul_all_zeros", lambda a, b: 2.0 * len(np.polymul(a, np.zeros(3))) * b[0], once((3,), (2,))),
    row("polynomials", lambda a, b, w: np.sum(np.polyadd(np.polymul(a, b), np.polysub(a, b)) * w), every((4,), (2,))),
    row("polyder_polyint", lambda a, w: np.sum(np.polyder(a, 2) * np.polyint(a, 2, [1.0, 2.0])[:2] * w), every((4,))),
    row("poly", lambda a, w: np.sum(np.poly(a) * w), every((3,))),
    row("polyfit", lambda x, y, w: np.sum(np.polyfit(x, y, 2) * w), once((6,), (6,))),
    row(
        "polyfit_weights",
        lambda x, y, v, w: np.sum(np.polyfit(x, y, 1, w=v) * w),
        once((6,), (6, 2), array(6, low=0.5, high=1.5)),
    ),
]

GROUPS: dict[str, list[Row]] = {
    "elementwise": ELEMENTWISE,
    "operators": OPERATORS,
    "broadcasting": BROADCASTING,
    "promotion": PROMOTION,
    "truth_values": TRUTH_VALUES,
    "ufunc_methods": UFUNC_METHODS,
    "slices": SLICES,
    "slice_writes": SLICE_WRITES,
    "reshapes": RESHAPES,
    "index_arrays": INDEX_ARRAYS,
    "masks": MASKS,
    "choices": CHOICES,
    "reductions": REDUCTIONS,
    "scans": SCANS,
    "inactive": INACTIVE,
    "products": PRODUCTS,
    "linalg": LINALG,
    "building": BUILDING,
    "sorting": SORTING,
    "casts": CASTS,
    "statements": STATEMENTS,
    "conventions": CONVENTIONS,
    "forms": FORMS,
    "beyond": BEYOND,
}
