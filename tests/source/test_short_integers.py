"""Arrays of short integers hold what fits into them, and that is what is read from them again."""

import numba
import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def stored(x, b, n):
    b[0] = n
    return x * b[0]


def stored_float(x, b, y):
    b[0] = y * x
    return x * (b[0] + 0.0)


def stored_in_a_loop(x, b, n):
    for _ in range(3):
        b[0] = b[0] + n
    return x * b[0]


def picked(x, b, n):
    b[:] = n
    return x * np.sqrt(np.abs(b - 1.0))[0]


@pytest.mark.numba
@pytest.mark.parametrize(
    ("dtype", "number", "held"), [("int8", 200, -56), ("int32", 2**31 + 5, -(2**31) + 5), ("uint8", -1, 255)]
)
def test_what_is_too_large_wraps_around_in_compiled_code(dtype, number, held):
    assert srcdiff.value_and_grad(stored)(1.5, np.zeros(2, dtype), number) == (1.5 * held, held)


@pytest.mark.parametrize(("function", "number"), [(stored, 200), (stored_float, 200.0), (picked, 200)])
def test_what_is_too_large_raises_as_in_python(function, number):
    with pytest.raises(OverflowError):
        function(1.5, np.zeros(2, np.int8), number)
    with pytest.raises(OverflowError):
        srcdiff.value_and_grad(function, backend="python")(1.5, np.zeros(2, np.int8), number)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_short_integers_in_a_loop_wrap_around(backend):
    b = np.zeros(1, np.int32)

    value, bar = srcdiff.value_and_grad(stored_in_a_loop, backend=backend)(1.5, b, 7)

    assert (value, bar, b[0]) == (31.5, 21.0, 0)


@pytest.mark.numba
def test_elements_that_a_loop_comes_back_to_wrap_around():
    value, bar = srcdiff.value_and_grad(stored_in_a_loop)(1.5, np.zeros(1, np.int32), 2**30)

    assert (value, bar) == (1.5 * (3 * 2**30 - 2**32), 3 * 2**30 - 2**32)


@pytest.mark.parametrize("backend", BACKENDS)
def test_integers_without_a_sign_that_need_all_of_64_bits_are_refused(backend):
    def scaled(x, a):
        return x * a[0]

    with pytest.raises(srcdiff.DifferentiationError, match=r"an array of uint64(?s:.)*astype\(np.int64\)"):
        srcdiff.grad(scaled, backend=backend)(1.5, np.array([2**63 + 2**12], np.uint64))
    assert srcdiff.grad(scaled, backend=backend)(1.5, np.array([2**32 - 1], np.uint32)) == 2**32 - 1


def test_arrays_of_uint64_are_not_made():
    def made(x):
        return x * np.zeros(2, np.uint64)[0]

    with pytest.raises(srcdiff.DifferentiationError, match="64 bits with a sign"):
        srcdiff.grad(made, backend="python")(1.5)


@pytest.mark.parametrize("kind", [np.int32, numba.int32])
@pytest.mark.parametrize("number", [7, -7, 2**31 + 7, -(2**31) - 7])
def test_conversions_to_32_bits_wrap_around_as_in_compiled_code(kind, number):
    def scaled(x, n):
        return x * kind(n)

    held = (number + 2**31) % 2**32 - 2**31
    assert srcdiff.value_and_grad(scaled, backend="python")(1.5, number) == (1.5 * held, held)
    assert srcdiff.grad(lambda x: x * kind(number), backend="python")(1.5) == held


def test_conversions_to_other_short_integers_are_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="conversion to int8 wraps around"):
        srcdiff.grad(lambda x, n: x * numba.int8(n), backend="python")(1.5, 7)
