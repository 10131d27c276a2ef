"""Small programs with shared memory, axes of length one and negative indices, where errors are likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.comparison import assert_close, assert_slopes, call, plain_value, same
from tests.arrays.comparison import slopes as slopes_of
from tests.numerical import clone

W = np.arange(1.0, 7.0)
X = np.array([0.5, 0.3, 0.9, 0.7, 0.2, 0.6])


def prefix_sums(x):
    return np.sum(np.cumsum(x) ** 2)


def name_bound_in_the_first_iteration(x):
    y = x * 1.0
    for k in range(3):
        if k == 0:
            c = y
        else:
            c[1:] = y[:-1] * 2
    return np.sum(y * W)


def pair_of_one_array(x):
    y = x * 1.0
    st = (y, y)
    for k in range(1):
        st = (st[1], st[0])
    u, v = st
    u[1:] = v[:-1] * 2
    return np.sum(y * W)


def array_from_a_list(x):
    y = x * 1.0
    held = []
    for k in range(2):
        held.append(y)
    p = held[0]
    p[1:] = y[:-1] * 2
    return np.sum(y * W)


def views_in_a_list(x):
    y = x * 1.0
    held = [y[i : i + 2] for i in range(3)]
    held[0][:] = held[1] * 2
    held[1][:] = held[0] * 3
    return np.sum(y * W)


def sum_added_to_an_element(x, y):
    a = np.zeros(2)
    a[0] += np.sum(x * y)
    return a[0] * 2


def sum_in_a_condition(x, y):
    k = 0
    while np.sum(x * y) * k < 10:
        k += 1
    return np.sum(x * y) * k


def indices_that_wrap(x):
    a = np.zeros(6)
    s = 0.0
    for i in range(-6, 6):
        a[i] = x[i] * (i + 7)
    for i in range(-6, 6):
        s += a[i] * a[i]
    return s


def in_place_with_indices_that_wrap(x):
    a = x * 1.0
    for i in range(-6, 6):
        a[i] = a[i] * x[i]
    return np.sum(a * W)


def permutation_inverted_in_place(x):
    p = np.array([2, 0, 1])
    p[p] = np.arange(3)
    return np.sum(x[p] * W[:3])


def stretched_view(x):
    y = x * 1.0
    b = np.broadcast_to(y, (3, 6))
    y[0] = y[1] * 7
    return np.sum(b * b)


def diagonal_view(x):
    square = np.outer(x, x)
    d = np.diagonal(square)
    square[0, 0] = 3 * square[1, 1]
    return np.sum(d * d)


def the_same_array_converted(x):
    y = x * 1.0
    z = np.asarray(y, dtype=float)
    z[0] = 5 * x[1]
    return np.sum(y * W)


def sparse_grid(x):
    y = x * 1.0
    across, _ = np.meshgrid(y, y, sparse=True)
    across[0, 0] = 3.0
    return np.sum(y * W) + np.sum(across)


def clipped_in_place(x):
    y = x * 1.0
    return np.sum(y * 2 + np.clip(y, 0.4, 0.65, out=y))


def diagonal_filled(x):
    matrix = np.outer(x[:3], x[3:])
    np.fill_diagonal(matrix, matrix[0, ::-1] * 2)
    return np.sum(matrix * matrix)


def overwritten_again(u, n):
    if n == 0:
        return 1.0
    u[0] = u[1] * 3
    return overwritten_again(u, n - 1)


def pending_beside_recursion(x):
    y = x * 1.0
    return np.sum(y * 2 + overwritten_again(y, 2))


def logarithm_not_chosen(x):
    matrix = np.array([[1.0, 1.0, -1.0], [2.0, 1.0, -2.0]])
    z = x[:3] * 1.0
    return np.sum(np.where(matrix > 0, np.log(z), 0.0))


def root_not_chosen(x):
    s = np.sqrt(x - 0.45)
    return np.sum(np.where(x > 0.45, s, 0.0))


def weights_along_axes_out_of_order(a):
    w = np.arange(9.0).reshape(3, 3) + 1
    return np.average(a, axis=(2, 1), weights=w)[0]


def masked_maximum(x):
    return np.max(x, where=x < 0.5)


def stretched_to_positions(x, k):
    z = np.zeros(6)
    z[np.arange(6)] = x[:k]
    return np.sum(z * W)


def stretched_from_one(x, k):
    return np.sum(np.broadcast_to(x[:k], (6,)) * W)


def view_that_moves(x):
    n = len(x)
    y = np.ones(n)
    for i in range(n):
        v = y[n - 1 - i :]
        v[i] = v[i] * x[i]
    return y[n - 1]


def one_function_with_two_constants(x, w):
    a = np.delete(w, 0)
    b = np.delete(w, 1)
    return x[0] * a[0] + x[1] * b[0]


def last_block_reshaped(x):
    blocks = x.reshape(2, 3, 1)
    for block in blocks:
        pass
    row = block.reshape(1, 3)
    blocks[1, :, 0] *= 0.5
    return np.sum(row * row)


def conjugate_written(x):
    y = x * 1.0
    z = y.conj()
    z[0] = 5 * x[1]
    y[1] = z.conjugate()[0] * x[2]
    return np.sum(y * z * W)


def conjugate_by_a_function(x):
    y = x * 1.0
    z = np.conj(y)
    z[0] = 5 * x[1]
    return np.sum(y * z * W)


def real_part_written(x):
    y = x * 1.0
    z = np.real(y)
    z[0] = 5 * x[1]
    return np.sum(y * W) + np.real(x[2]) + np.sum(np.real([x[0], x[1]]))


def first_power_written(x, n):
    square = np.outer(x[:2], x[2:4]) + np.eye(2)
    power = np.linalg.matrix_power(square, n)
    power[0, 1] *= 3.0
    return np.sum(square * square * power)


def sparse_grid_of_views(x):
    y = x * 1.0
    across, down = np.meshgrid(y, y[:2], sparse=True, copy=False)
    across[0, 0] = 3.0 * x[1]
    return np.sum(y * W) + np.sum(across * down)


def grid_of_views(x):
    across, down = np.meshgrid(x, x[:2], copy=False)
    return np.sum(across * across * down)


def grid_of_views_written(x):
    across, _ = np.meshgrid(x, x[:2], copy=False)
    x[0] = 3.0
    return np.sum(across)


def grid_of_flattened_views(x):
    across, _ = np.meshgrid(np.outer(x, x), x, sparse=True, copy=False)
    return np.sum(across)


def taken_in_order(x):
    square = np.array([[x[0], x[1]], [x[2], x[3]]])
    same = np.asarray(square, order="C")
    same[0, 1] = 3.0 * x[0]
    return np.sum(square * same)


def put_in_order(x):
    square = np.outer(x, x).T
    other = np.asarray(square, order="C")
    other[0, 1] = 3.0
    return np.sum(square * other)


def put_in_order_by_array(x):
    square = np.outer(x, x).T
    other = np.array(square, copy=None, order="C")
    other[0, 1] = 3.0
    return np.sum(square * other)


def put_in_fortran_order_by_array(x):
    square = np.outer(x, x)
    other = np.array(square, copy=None, order="F")
    other[0, 1] = 3.0
    return np.sum(square * other)


def copied_against_its_will(x):
    return np.sum(np.array(x, dtype=np.float32, copy=False))


def masked_from_itself(x):
    x[x < 5.0] = x[::-1]
    return np.sum(x * W)


def masked_from_a_stretched_part(x):
    x[x < 5.0] = np.broadcast_to(x[1:2], (6,))
    return np.sum(x * W)


def flat_from_itself(x):
    x.flat[1:] = x[:-1]
    return np.sum(x * W)


def placed_from_itself(x):
    np.place(x[1:], x[1:] < 5.0, x[:-1])
    return np.sum(x * W)


def diagonal_from_itself(x):
    matrix = np.outer(x[:3], x[3:])
    np.fill_diagonal(matrix, matrix[0, ::-1])
    return np.sum(matrix * matrix)


def parts_from_itself(x):
    x[1:] = x[:-1]
    x[[0, 2, 4]] = x[:3]
    x[x < 5.0] = x[::-1] * 2.0
    x[x < 0.7] += x[x < 0.7]
    x.flat[1:] = x[:-1] + x[1:]
    return np.sum(x * W)


def parts_from_copies(x):
    x[x < 5.0] = x[::-1].copy()
    x.flat[1:] = x[:-1].copy()
    np.place(x[1:], x[1:] < 5.0, x[:-1].copy())
    y = x * 1.0
    for _ in range(2):
        z = y * 2.0
        y[y > -9.0] = z
    return np.sum(x * y * W)


def lines_from_itself(x):
    matrix = np.outer(x[:3], x[3:])
    matrix[matrix[:, 0] < 5.0] = matrix[::-1]
    matrix[0, matrix[0] < 5.0] = matrix[0, ::-1]
    return np.sum(matrix[0] * W[:3]) + np.sum(matrix[2] * matrix[2])


def every_other_from_the_first(x):
    y = x * 1.0
    y[::2] = y[:3]
    return np.sum(y * W)


def the_first_from_every_other(x):
    y = x * 1.0
    y[:3] = y[::2]
    y[2:] = y[1:-1]
    y[:-1] = y[:0:-1]
    return np.sum(y * W)


def row_from_a_column(x):
    m = x.reshape(2, 3) * 1.0
    m[0, :2] = m[:, 1]
    return np.sum(m[0] * m[1])


def rows_and_columns_from_each_other(x):
    m = x.reshape(2, 3) * 1.0
    m[0] = m[1]
    m[:, 2] = m[:, 0]
    m[0, :2] = m[1, ::2]
    m[0, 1:] = m[:1, 0]
    flat = m.ravel()
    flat[3:] = flat[:3]
    return np.sum(m * m)


def part_that_may_be_strided(x):
    y = x * 1.0
    part = y[::2] if x[0] > 0 else x[::2] * 1.0
    y[:3] = part
    return np.sum(y * W)


def whole_that_may_be_the_same(x):
    y = x * 1.0
    other = y if x[0] > 0 else x * 2.0
    y[1:] = other[:-1]
    return np.sum(y * W)


def row_with_a_leading_axis(x):
    m = x.reshape(2, 3) * 2.0
    y = np.zeros(3)
    y[:] = m[:1]
    y[1:] += 2.0 * m[1:, :2][0]
    y[::2] = y[np.newaxis, ::2] * m[np.newaxis, np.newaxis, 0, 1:]
    return np.sum(y * y)


def through_new_axes(x):
    rows, column, stack = np.atleast_2d(x), np.expand_dims(x, 1), np.atleast_3d(x)
    rows[0, 1] *= x[0]
    column[2:] *= rows[0, 1]
    stack[0, 3, 0] = column[2, 0] ** 2
    return np.sum(x * x * W)


def through_fewer_axes(x):
    y = np.reshape(x * 1.0, (1, 6, 1))
    line, matrix = np.squeeze(y), y.squeeze(0)
    line[1] *= x[0]
    matrix[2, 0] = line[1] ** 2
    y[0, 3] *= line[2]
    return np.sum(line * W) + matrix[3, 0]


RIGHT = [
    (row_with_a_leading_axis, (X,)),
    (the_first_from_every_other, (X,)),
    (rows_and_columns_from_each_other, (X,)),
    (whole_that_may_be_the_same, (X,)),
    (through_new_axes, (X,)),
    (through_fewer_axes, (X,)),
    (parts_from_itself, (X,)),
    (parts_from_copies, (X,)),
    (lines_from_itself, (X,)),
    (conjugate_written, (X,)),
    (conjugate_by_a_function, (X,)),
    (real_part_written, (X,)),
    (first_power_written, (X, 1)),
    (first_power_written, (X, 2)),
    (first_power_written, (X, -1)),
    (sparse_grid_of_views, (X,)),
    (grid_of_views, (X,)),
    (taken_in_order, (X,)),
    (prefix_sums, (X,)),
    (name_bound_in_the_first_iteration, (X,)),
    (pair_of_one_array, (X,)),
    (array_from_a_list, (X,)),
    (views_in_a_list, (X,)),
    (sum_added_to_an_element, (X[:1].copy(), X)),
    (sum_added_to_an_element, (X, X[:1].copy())),
    (sum_in_a_condition, (X[:1].copy(), X)),
    (indices_that_wrap, (X,)),
    (in_place_with_indices_that_wrap, (X,)),
    (permutation_inverted_in_place, (X,)),
    (the_same_array_converted, (X,)),
    (sparse_grid, (X,)),
    (clipped_in_place, (X,)),
    (diagonal_filled, (X,)),
    (pending_beside_recursion, (X,)),
    (logarithm_not_chosen, (np.array([0.5, 0.3, 0.0, 0.7, 0.2, 0.6]),)),
    (root_not_chosen, (np.array([0.5, 0.8, 0.41, 0.7, 0.2, 0.6]),)),
    (stretched_to_positions, (X, 1)),
    (stretched_from_one, (X, 1)),
    (view_that_moves, (X,)),
    (one_function_with_two_constants, (X, np.array([0.2, 0.8, 0.4]))),
]
REFUSED = [
    (every_other_from_the_first, (X,)),
    (row_from_a_column, (X,)),
    (part_that_may_be_strided, (X,)),
    (stretched_view, (X,)),
    (diagonal_view, (X,)),
    (weights_along_axes_out_of_order, (np.arange(18.0).reshape(2, 3, 3),)),
    (masked_maximum, (X,)),
    (last_block_reshaped, (X,)),
    (masked_from_itself, (X,)),
    (masked_from_a_stretched_part, (X,)),
    (flat_from_itself, (X,)),
    (placed_from_itself, (X,)),
    (diagonal_from_itself, (X,)),
    (grid_of_views_written, (X,)),
    (grid_of_flattened_views, (X,)),
    (put_in_order, (X,)),
    (put_in_order_by_array, (X,)),
    (put_in_fortran_order_by_array, (X,)),
    (copied_against_its_will, (X,)),
]


@pytest.mark.parametrize(("function", "arguments"), RIGHT, ids=lambda x: getattr(x, "__name__", ""))
def test_gradient_is_right(function: Any, arguments: Any) -> None:
    given = clone(arguments)
    expected = plain_value(function, clone(arguments))

    value, bars = call(srcdiff.value_and_grad(function, wrt=(0,), backend="python"), given)

    assert same(given, arguments), "the arguments were changed"
    assert_close(value, expected, False)
    one_sided = function is logarithm_not_chosen  # the unselected logarithm of zero is infinite in NumPy
    if not one_sided:
        assert_slopes(bars, slopes_of(function, arguments, (0,)), False)
    assert np.all(np.isfinite(bars[0]))


@pytest.mark.parametrize(("function", "arguments"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_ambiguous_memory_is_refused(function: Any, arguments: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.value_and_grad(function, backend="python")(*arguments)


def test_sizes_that_differ_raise() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        srcdiff.value_and_grad(sum_added_to_an_element, backend="python")(X[:4].copy(), X)
