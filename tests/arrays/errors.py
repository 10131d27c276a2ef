"""Programs that must raise: exceptions of NumPy at run time, and refusals before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.arrays.rows import NUMPY, Point, array, booleans, integers

CROSS_SAYS = "3-dimensional vectors" if NUMPY >= (2, 5) else "incompatible dimensions"


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A function, its arguments, the exception, and words of its message. Shapes are written without spaces."""

    name: str
    function: Callable[..., Any]
    arguments: Point
    exception: type[BaseException]
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A function, its arguments, and words of the refusal."""

    name: str
    function: Callable[..., Any]
    arguments: Point
    says: tuple[str, ...]


def _failure(
    name: str, function: Callable[..., Any], arguments: Point, exception: type[BaseException], *says: str
) -> Failure:
    return Failure(name, function, arguments, exception, says)


def _refusal(name: str, function: Callable[..., Any], arguments: Point, *says: str) -> Refusal:
    return Refusal(name, function, arguments, says)


def augment_smaller(a, b):
    a += b
    return np.sum(a)


def assign_slice(a, b):
    a[1:] = b
    return np.sum(a)


def augment_slice(a, b):
    a[1:] += b
    return np.sum(a)


def assign_masked(a, m, b):
    a[m] = b
    return np.sum(a)


def assign_indexed(a, i, b):
    a[i] = b
    return np.sum(a)


def add_at(a, i, b):
    np.add.at(a, i, b)
    return np.sum(a)


def under_another_name(a):
    x = a[0]
    y = float(x)
    return ((x > 0.0) + (y > 0.0)) * x


def added_up(n, x):
    total = 0
    for k in n:
        total += k
    return total * x


def powers_in_place(i, x):
    i **= i - 2
    return np.sum(i) * x


def split_unequally(a):
    x, y = np.split(a, 2)
    return np.sum(x * y)


#: Raised at run time, as by NumPy.
RAISED: list[Failure] = [
    _failure("pad_of_nothing", lambda a: np.sum(np.pad(a, 2, "edge")), (array(0),), ValueError, "empty axis 0"),
    _failure("add", lambda a, b: np.sum(a + b), (array(3), array(4)), ValueError, "(3,)", "(4,)"),
    _failure("multiply", lambda a, b: np.sum(a * b), (array(2, 3), array(3, 2)), ValueError, "(2,3)", "(3,2)"),
    _failure("rank_mix", lambda a, b: np.sum(a - b), (array(2, 3), array(2)), ValueError, "(2,3)", "(2,)"),
    _failure("function", lambda a, b: np.sum(np.maximum(a, b)), (array(2, 2), array(3)), ValueError, "(2,2)", "(3,)"),
    _failure("empty_and_two", lambda a, b: np.sum(a * b), (array(0), array(2)), ValueError, "(0,)", "(2,)"),
    _failure(
        "where", lambda m, a: np.sum(np.where(m, a, 0.0)), (booleans("x.x"), array(2)), ValueError, "(3,)", "(2,)"
    ),
    _failure("augment_smaller", augment_smaller, (array(3), array(2, 3)), ValueError, "(3,)", "(2,3)"),
    _failure("augment_mismatch", augment_smaller, (array(3), array(2)), ValueError, "(3,)", "(2,)"),
    _failure("assign_slice", assign_slice, (array(4), array(4)), ValueError, "(4,)", "(3,)"),
    _failure("augment_slice", augment_slice, (array(4), array(2)), ValueError, "(3,)", "(2,)"),
    _failure("broadcast_to", lambda a: np.sum(np.broadcast_to(a, (2, 3))), (array(2),), ValueError, "(2,)", "(2,3)"),
    _failure("mask_length", lambda a, m: np.sum(a[m]), (array(3), booleans("x.xx")), IndexError, "3", "4"),
    _failure("mask_shape", lambda a, m: np.sum(a[m]), (array(2, 2), booleans("x.x/.x.")), IndexError, "2", "3"),
    _failure("mask_assign_length", assign_masked, (array(3), booleans("x.xx"), 1.0), IndexError, "3", "4"),
    _failure("mask_assign_values", assign_masked, (array(4), booleans("x.xx"), array(2)), ValueError, "2", "3"),
    _failure("reshape", lambda a: np.sum(a.reshape(4, 2)), (array(6),), ValueError, "6", "(4,2)"),
    _failure("reshape_rest", lambda a: np.sum(a.reshape(4, -1)), (array(6),), ValueError, "6", "4"),
    _failure(
        "reshape_two_rests", lambda a: np.sum(a.reshape(-1, -1)), (array(6),), ValueError, "one unknown dimension"
    ),
    _failure("reshape_run_time", lambda a, n: np.sum(a.reshape(n, 2)), (array(6), 2), ValueError, "6", "(2,2)"),
    _failure("squeeze", lambda a: np.sum(np.squeeze(a, axis=0)), (array(2, 3),), ValueError),
    _failure("split", split_unequally, (array(5),), ValueError),
    _failure("index_beyond", lambda a, i: np.sum(a[i]), (array(3), integers(0, 3)), IndexError, "3"),
    _failure("index_before", lambda a, i: np.sum(a[i]), (array(3), integers(0, -4)), IndexError, "-4", "3"),
    _failure("index_columns", lambda a, i: np.sum(a[:, i]), (array(2, 3), integers(0, 5)), IndexError, "5", "3"),
    _failure(
        "index_pairs", lambda a, i, j: np.sum(a[i, j]), (array(2, 3), integers(0, 2), integers(0, 1)), IndexError, "2"
    ),
    _failure(
        "index_pairs_shapes",
        lambda a, i, j: np.sum(a[i, j]),
        (array(4, 4), integers(0, 1), integers(0, 1, 2)),
        IndexError,
        "(2,)",
        "(3,)",
    ),
    _failure("index_assign", assign_indexed, (array(3), integers(0, 7), array(2)), IndexError, "7", "3"),
    _failure("index_assign_values", assign_indexed, (array(3), integers(0, 1), array(3)), ValueError, "(3,)", "(2,)"),
    _failure("index_add_at", add_at, (array(3), integers(0, 7), array(2)), IndexError, "7", "3"),
    _failure("take", lambda a, i: np.sum(np.take(a, i)), (array(3), integers(0, 7)), IndexError, "7", "3"),
    _failure("matmul", lambda a, b: np.sum(a @ b), (array(2, 3), array(2, 3)), ValueError, "3", "2"),
    _failure("matmul_vector", lambda a, b: np.sum(a @ b), (array(2, 3), array(2)), ValueError, "3", "2"),
    _failure("matmul_batch", lambda a, b: np.sum(a @ b), (array(2, 2, 2), array(3, 2, 2)), ValueError),
    _failure("dot", lambda a, b: np.dot(a, b), (array(3), array(4)), ValueError, "(3,)", "(4,)"),
    _failure("cross", lambda a, b: np.sum(np.cross(a, b)), (array(4), array(4)), ValueError, CROSS_SAYS),
    _failure(
        "linalg_cross", lambda a, b: np.sum(np.linalg.cross(a, b)), (array(2), array(2)), ValueError, "3-dimensional"
    ),
    _failure("einsum", lambda a, b: np.sum(np.einsum("ij,jk->ik", a, b)), (array(2, 3), array(2, 3)), ValueError),
    _failure(
        "concatenate", lambda a, b: np.sum(np.concatenate((a, b))), (array(2, 3), array(2, 2)), ValueError, "3", "2"
    ),
    _failure("stack", lambda a, b: np.sum(np.stack((a, b))), (array(3), array(2)), ValueError),
    _failure(
        "integer_power", lambda i, x: np.sum(i**-1) * x, (integers(1, 2), 1.5), ValueError, "negative integer powers"
    ),
    _failure(
        "power_of_integers",
        lambda i, x: np.sum(np.power(2, i)) * x,
        (integers(1, -2), 1.5),
        ValueError,
        "negative integer powers",
    ),
    _failure("powers_in_place", powers_in_place, (integers(1, 2), 1.5), ValueError, "negative integer powers"),
    _failure(
        "weights_of_zero",
        lambda a, b: np.average(a, weights=b),
        (array(2), np.array([1.0, -1.0])),
        ZeroDivisionError,
        "Weights sum to zero",
    ),
    _failure(
        "weights_of_zero_along_an_axis",
        lambda a, b: np.sum(np.average(a, axis=0, weights=b)),
        (array(2, 3), np.array([1.0, -1.0])),
        ZeroDivisionError,
        "Weights sum to zero",
    ),
    _failure("item_of_several", lambda a: a[:2].item() ** 2, (array(3),), ValueError, "size 1"),
    _failure("max_of_nothing", lambda a: np.max(a), (array(0),), ValueError),
    _failure(
        "singular", lambda a, b: np.sum(np.linalg.solve(a, b)), (np.ones((2, 2)), array(2)), np.linalg.LinAlgError
    ),
    _failure("not_positive", lambda a: np.sum(np.linalg.cholesky(a)), (-np.eye(2),), np.linalg.LinAlgError),
]


def median_of_complex(x, y):
    """NumPy compares complex numbers by their real parts first."""
    return np.abs(np.median(x + 1j * y))


#: Refused, at the line that these words describe.
def reshaped_then_written(a):
    """Whether `flat` sees the write depends on the memory layout of the argument."""
    flat = a.ravel()
    a[1, 1] = 2.0
    return flat[4]


def reshaped_while_iterated(a):
    total = 0.0
    for value in a.ravel():
        a[1, 1] = 2.0
        total += value
    return total


def reshaped_in_a_list(a):
    kept = [a.ravel()]
    a[1, 1] = 2.0
    return kept[0][4]


def reshaped_as_a_default(a):
    term = lambda x, flat=a.ravel(): x * flat[4]  # noqa: B008, E731
    a[1, 1] = 2.0
    return term(a[0, 0])


def reshaped_in_the_iteration_before(a):
    total, flat = 0.0, np.zeros(6)
    for k in range(3):
        a[1, 1] = 2.0 * k
        total += flat[4]
        flat = a.ravel()
    return total


def reshaped_and_seen_by_another_name(a):
    b = a
    a = a.reshape(3, 2)
    a[0] = 2.0
    return b[0, 0]


def reshaped_by_a_function(a):
    def changed(u):
        u = u.reshape(3, 2)
        u[0] = 2.0
        return u

    return np.sum(a * np.sum(changed(a)))


def reshaped_in_a_loop_over_it(a):
    total = 0.0
    for line in a:
        total += line[0]
        a = a.reshape(2, 3)
        a[1, 0] = 2.0
    return total


def reshaped_beside_a_call_that_writes(a):
    def touched():
        a[0, 0] = 2.0
        return 1.0

    return np.sum(a.ravel() * touched())


def reshaped_after_np_copy(a):
    """`np.copy` keeps the order of an array in memory, so that a transposed one is not contiguous."""
    b = np.copy(a)
    c = b.reshape(3, 2)
    c[0] = 2.0
    return np.sum(b)


def reshaped_after_arithmetic(a):
    b = 2.0 * a.T
    c = b.reshape(-1)
    c[1] = 2.0
    return np.sum(b * b)


def reshaped_after_zeros_like(a):
    b = np.zeros_like(a)
    c = b.reshape(-1)
    c[1] = a[0, 0]
    return np.sum(b * a)


def reshaped_after_an_index_array(a):
    b = np.ones((2, 3)) * a[0, 0]
    b = b[:, [0, 1]]
    c = b.reshape(-1)
    c[1] = 2.0
    return np.sum(b * b)


def reshaped_after_cumsum(a):
    b = np.cumsum(a, axis=0)
    c = b.reshape(-1)
    c[1] = 2.0
    return np.sum(b * b)


def made_contiguous(a):
    b = np.ascontiguousarray(a)
    b[0, 1] = 5.0
    return np.sum(a * b)


def diagonal_by_einsum(a):
    b = np.ones((2, 2)) * a[0, 0]
    c = np.einsum("ii->i", b)
    c[0] = 5.0
    return np.sum(b * b)


def fortran_then_written(a):
    b = np.asfortranarray(a)
    a[0, 0] = 5.0
    return np.sum(b * b)


def halved_in_place(i, x):
    i /= 2
    return np.sum(i) * x


def counted_up(i, x):
    larger = i > 1
    larger += 1
    return np.sum(larger) * x


def negated_by_subtraction(i, x):
    larger = i > 1
    larger -= True
    return np.sum(larger) * x


def added_into_integers(i, x):
    np.add(i, x, out=i)
    return np.sum(i) * x


def clipped_into_integers(i, x):
    np.clip(i * x, 0.0, 1.0, out=i)
    return np.sum(i) * x


def summed_into_integers(i, x):
    np.sum(np.outer(i, i) * x, axis=0, out=i)
    return np.sum(i) * x


def copied_into_integers(i, x):
    np.copyto(i, i * 2.5)
    return np.sum(i) * x


def put_into_single(i, x):
    single = np.zeros(3, np.float32)
    np.putmask(single, i > 1, i * x)
    return np.sum(single)


def placed_into_single(i, x):
    single = np.zeros(3, np.float32)
    np.place(single, i > 1, i * x)
    return np.sum(single)


def scaled_where_masked(i, x):
    i[i > 1] *= 1.5
    return np.sum(i) * x


def halved_where_picked(i, x):
    i[[0, 1]] /= 2
    return np.sum(i) * x


def halved_where_picked_and_changed(i, x):
    def touched():
        i[0] = 3
        return 2

    i[[0, 1]] /= touched()
    return np.sum(i) * x


def multiplied_into_integers(i, x):
    matrix = np.outer(i, i)
    matrix @= np.ones((3, 3))
    return np.sum(matrix) * x


_INTEGERS = (integers(1, 2, 4), 1.5)

_TRUTH = (booleans("x.x"), 1.5)
_ONE, _YES = np.int64(1), np.True_
_BYTES = (integers(3, 200, 100, dtype=np.uint8), 1.5)

REFUSED: list[Refusal] = [
    _refusal("elements_added", lambda m, x: (m[0] + m[2]) * x, _TRUTH, "truth values", "`or`", "int(...)", "|"),
    _refusal("elements_subtracted", lambda m, x: (m[0] - m[2]) * x, _TRUTH, "NumPy does not subtract", "int(...)"),
    _refusal("element_inverted", lambda m, x: ~m[0] * x, _TRUTH, "`~`", "`not`"),
    _refusal("element_negated", lambda m, x: -m[0] * x, _TRUTH, "no sign", "int(...)"),
    _refusal("comparisons_added", lambda a: ((a[0] > 0) + (a[1] > 0)) * a[0], (array(3),), "truth values", "int(...)"),
    _refusal("numbers_of_numpy", lambda x, y: ((x > 0) + (y > 0)) * y, (np.float64(0.5), 1.5), "truth values"),
    _refusal(
        "halves_of_truth", lambda m, x: np.sum(np.exp(m)) * x, _TRUTH, "float16", "not supported", "astype(float)"
    ),
    _refusal("beside_a_limit", lambda x: ((x > np.finfo(float).eps) + (x > 0)) * x, (1.5,), "truth values"),
    _refusal("beside_a_constant", lambda x: ((x > np.float64(0.5)) + (x > 0)) * x, (1.5,), "truth values"),
    _refusal("beside_one_from_outside", lambda x: ((x > _ONE) + (x > 0)) * x, (1.5,), "truth values"),
    _refusal("both_from_outside", lambda x: (_YES + _YES) * x, (1.5,), "truth values"),
    _refusal("under_another_name", under_another_name, (array(3),), "booleans"),
    _refusal("half_of_truth", lambda m, x: np.exp(m[0]) * x, _TRUTH, "float16", "not supported"),
    _refusal("bytes_of_truth", lambda m, x: np.sum(np.square(m)) * x, _TRUTH, "int8", "wraps around", "astype(int)"),
    _refusal("byte_subtracted", lambda n, x: (n[0] - 4) * x, _BYTES, "uint8", "wraps around", "int(...)"),
    _refusal("byte_negated", lambda n, x: -n[0] * x, _BYTES, "uint8", "wraps around"),
    _refusal("bytes_added_up", added_up, _BYTES, "uint8", "wraps around"),
    _refusal("byte_subtracted_by_numpy", lambda n, x: np.subtract(n[0], 4) * x, _BYTES, "uint8", "wraps around"),
    _refusal("sum_of_bytes", lambda m, x: np.sum(m, dtype=np.int8) * x, _TRUTH, "dtype", "wraps around"),
    _refusal("mean_of_integers", lambda i, x: np.mean(i, dtype=int) * x, _INTEGERS, "dtype", "integers"),
    _refusal("variance_of_integers", lambda i, x: np.var(i, dtype=int) * x, _INTEGERS, "dtype", "integers"),
    _refusal("deviation_of_integers", lambda i, x: np.std(i, dtype=int) * x, _INTEGERS, "dtype", "integers"),
    _refusal("arange_of_integers", lambda x: np.sum(np.arange(0, 3, 0.7, dtype=int)) * x, (1.5,), "arange", "integers"),
    _refusal(
        "truth_of_an_array", lambda a: bool(a) * a[0], (array(3),), "truth value of an array is ambiguous", "np.any"
    ),
    _refusal("halved_in_place", halved_in_place, _INTEGERS, "int64", "float64"),
    _refusal("counted_up", counted_up, _INTEGERS, "bool", "int64"),
    _refusal("negated_by_subtraction", negated_by_subtraction, _INTEGERS, "bool"),
    _refusal("added_into_integers", added_into_integers, _INTEGERS, "int64", "float64"),
    _refusal("clipped_into_integers", clipped_into_integers, _INTEGERS, "int64", "float64"),
    _refusal("summed_into_integers", summed_into_integers, _INTEGERS, "int64", "float64"),
    _refusal("copied_into_integers", copied_into_integers, _INTEGERS, "int64", "float64"),
    _refusal("put_into_single", put_into_single, _INTEGERS, "float32", "float64"),
    _refusal("placed_into_single", placed_into_single, _INTEGERS, "float32", "float64"),
    _refusal("scaled_where_masked", scaled_where_masked, _INTEGERS, "int64", "float64"),
    _refusal("halved_where_picked", halved_where_picked, _INTEGERS, "int64", "float64"),
    _refusal("halved_where_changed", halved_where_picked_and_changed, _INTEGERS, "int64", "float64"),
    _refusal("multiplied_into_integers", multiplied_into_integers, _INTEGERS, "int64", "float64"),
    _refusal("added_as_integers", lambda i, x: np.sum(np.add(i * x, 1, dtype=int)) * x, _INTEGERS, "int64", "float64"),
    _refusal("complex", median_of_complex, (array(3), array(3)), "complex"),
    _refusal("no_rule", lambda a: np.sum(np.i0(a)), (array(3),), "np.i0"),
    _refusal(
        "integers_or_floats", lambda a: np.sum(np.vectorize(lambda x: 0 if x < 0 else x)(a)), (array(3),), "first"
    ),
    _refusal("fortran_then_written", fortran_then_written, (array(3, 2),), "copy"),
    _refusal("axis_beyond", lambda a: np.sum(np.sum(a, axis=2)), (array(2, 3),), "axis"),
    _refusal("reshaped_then_written", reshaped_then_written, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_while_iterated", reshaped_while_iterated, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_in_a_list", reshaped_in_a_list, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_as_a_default", reshaped_as_a_default, (array(3, 2).T,), "reshaped", "copy"),
    _refusal(
        "reshaped_in_the_iteration_before", reshaped_in_the_iteration_before, (array(3, 2).T,), "reshaped", "copy"
    ),
    _refusal("reshaped_other_name", reshaped_and_seen_by_another_name, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_by_a_function", reshaped_by_a_function, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_in_a_loop", reshaped_in_a_loop_over_it, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_beside_a_call", reshaped_beside_a_call_that_writes, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_after_np_copy", reshaped_after_np_copy, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_after_arithmetic", reshaped_after_arithmetic, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_after_zeros_like", reshaped_after_zeros_like, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_after_an_index_array", reshaped_after_an_index_array, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("reshaped_after_cumsum", reshaped_after_cumsum, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("made_contiguous", made_contiguous, (array(3, 2).T,), "reshaped", "copy"),
    _refusal("diagonal_by_einsum", diagonal_by_einsum, (array(3, 2).T,), "reshaped", "copy"),
]
