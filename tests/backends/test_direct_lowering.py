"""Elements, shapes and permuted axes as srcdiff lowers them, compared with NumPy: all layouts, negative indices."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from numba import njit

from srcdiff.backends.numba import lowering
from srcdiff.backends.numba.numba_cpu import compiler
from srcdiff.backends.numba.quick_numpy import ProductsByName, quick_builtins, quick_numpy

pytestmark = pytest.mark.numba

SHAPE = (3, 4, 5)
NUMBERS = np.arange(60.0).reshape(SHAPE)
LAYOUTS = {
    "C": NUMBERS,
    "F": np.asfortranarray(NUMBERS),
    "every second": np.arange(480.0).reshape(6, 8, 10)[::2, ::2, ::2],
    "backwards": NUMBERS[::-1, :, ::-1],
    "float32": NUMBERS.astype(np.float32),
    "int8": NUMBERS.astype(np.int8),
    "bool": NUMBERS % 3 == 1,
}


def element(a, i, j, k):
    return a[i, j, k]


def stored(a, i, j, k, value):
    a[i, j, k] = value
    return a[i, j, k]


def sum_of_rows(a):
    total = 0.0
    for i in range(-a.shape[0], a.shape[0]):
        row = a[i]
        for j in range(row.shape[0] - 1, -1, -1):
            for k in range(0, a.shape[2], 2):
                total += (i + 1) * row[j, k]
    return total


def permuted(a):
    b = a.transpose(2, 0, 1)
    return b, b.shape, b[4, 2, 1]


def replaced_in_a_loop(a, n):
    for _ in range(n):
        a = np.empty((a.shape[0] + 1, a.shape[1]))
        a[a.shape[0] - 1, 0] = a.shape[0]
    return a.shape, a[-1, 0]


def copied(a, b):
    np.copyto(a, b)


def two_copies(a):
    return a.copy(), np.copy(a)


def powers(x):
    return x**0, x**1, x**2, x**3, x**7, x**64, x**2.5, x**65


min_of_two, max_of_two = min, max


def extremes(i, j, x, condition):
    integers = min_of_two(i, j), max_of_two(i, j), int(condition), int(x)
    return *integers, min_of_two(x, i), max_of_two(x, 0.5), min((i, j, 2)), max(i, j, 7), float(int(condition))


def compiled(function):
    names = quick_builtins() | {"np": quick_numpy(vector_functions=False)}
    return compiler({})(type(function)(function.__code__, function.__globals__ | names))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_of_every_layout_are_those_of_numpy(layout):
    a, get = LAYOUTS[layout], compiled(element)
    for index in np.ndindex(SHAPE):
        assert a[index] == get(a, *index)
        assert a[index] == get(a, *(i - n for i, n in zip(index, SHAPE, strict=True)))
    assert a[1, 2, 3] == get(a, np.uint64(1), np.int32(2), np.uint8(3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stores_change_one_element_alone(layout):
    put = compiled(stored)
    for index in ((0, 0, 0), (2, 3, 4), (-1, 2, -5), (-3, -4, -1)):
        a = LAYOUTS[layout].copy(order="K")
        expected = a.copy(order="K")
        expected[index] = value = not a[index] if layout == "bool" else 7
        assert put(a, *index, value) == expected[index]
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_loops_and_shapes_are_those_of_python(layout):
    a = LAYOUTS[layout]
    assert sum_of_rows(a.astype(float)) == compiled(sum_of_rows)(a)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_permuted_axes_are_a_view_of_the_same_memory(layout):
    a = LAYOUTS[layout].copy(order="K")
    view, shape, number = compiled(permuted)(a)
    expected = a.transpose(2, 0, 1)
    np.testing.assert_array_equal(view, expected)
    assert (view.shape, view.strides, shape, number) == (expected.shape, expected.strides, expected.shape, a[2, 1, 4])
    assert np.shares_memory(view, a)


def test_the_data_pointer_of_an_array_that_a_loop_replaces_is_loaded_again():
    assert replaced_in_a_loop(np.zeros((2, 3)), 5) == compiled(replaced_in_a_loop)(np.zeros((2, 3)), 5)


@pytest.mark.parametrize("target", ["C", "F", "every second", "float32"])
@pytest.mark.parametrize("source", LAYOUTS)
def test_arrays_are_copied_to_arrays_of_other_layouts(target, source):
    a = np.zeros_like(LAYOUTS[target])
    compiled(copied)(a, LAYOUTS[source])
    np.testing.assert_array_equal(a, LAYOUTS[source].astype(a.dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_are_new_and_contiguous(layout):
    a = LAYOUTS[layout]
    for copy, is_fortran in zip(compiled(two_copies)(a), (False, layout == "F"), strict=True):
        np.testing.assert_array_equal(copy, a)
        assert (copy.dtype, copy.flags.f_contiguous, copy.flags.c_contiguous) == (a.dtype, is_fortran, not is_fortran)
        assert not np.shares_memory(copy, a)


@pytest.mark.parametrize("number", [1.1, -0.7, 0.0, np.inf, np.nan, np.float32(1.5)])
def test_constant_powers_are_those_of_python(number):
    expected = [float(number) ** n for n in (0, 1, 2, 3, 7, 64, 65)]
    rtol = 1e-5 if isinstance(number, np.float32) else 1e-14
    powers_of = compiled(powers)(number)
    np.testing.assert_allclose((*powers_of[:6], powers_of[7]), expected, rtol=rtol)


def test_extremes_and_integers_are_those_of_python():
    for i, j, x, condition in ((1, 2, 1.5, True), (5, -3, -0.5, False), (2, 2, 2.0, True)):
        assert compiled(extremes)(i, j, x, condition) == extremes(i, j, x, condition)


def test_calls_of_two_numbers_have_names_of_their_own():
    tree = ProductsByName().visit(ast.parse("min(a, b) + max(a, min(b, c)) + max(a, b, c) + min(*a, b) + max(a)"))
    assert (
        ast.unparse(tree) == "min_of_two(a, b) + max_of_two(a, min_of_two(b, c)) + max(a, b, c) + min(*a, b) + max(a)"
    )


def test_arrays_of_other_shapes_are_not_copied():
    with pytest.raises(ValueError, match="different shapes"):
        compiled(copied)(np.zeros((2, 3)), np.zeros((2, 1)))


def add_chosen(a, x, chosen):
    for i in range(len(x)):
        a[0] += x[i] if chosen[i] else 0.5 * x[i]


def test_references_to_arguments_are_not_counted_in_loops_either():
    """Numba keeps the array in a variable while it chooses the number; the variable has no reference of its own."""
    compiled = njit(
        "void(float64[::1], float64[::1], boolean[::1])", pipeline_class=lowering.compiler(vector_functions=False)
    )
    (text,) = compiled(add_chosen).inspect_llvm().values()
    body = text[text.index("define") : text.index("define", text.index("define") + 1)]
    assert "fadd" in body
    assert "NRT_decref" not in body
