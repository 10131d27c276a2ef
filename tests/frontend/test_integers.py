"""Integers: overflow in arrays of short integers, and powers that are exact where it matters."""

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

    with pytest.raises(srcdiff.DifferentiationError, match="integers that fit into int64"):
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


# -- powers ----------------------------------------------------------------------------------------------------------


def last_digits(x, n, m):
    return x * ((n**m + 1) % 1000)


def last_digits_of_elements(x, n, m):
    return x * ((np.array([n]) ** np.array([m]))[0] % 1000)


def last_digits_of_numpy(x, n, m):
    return x * (np.power(n, m) % 1000)


def converted(x, n, m):
    return x * (int(n**m) - n**m // 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_powers_of_integers_in_arrays_are_exact(backend):
    for function in (last_digits_of_elements, last_digits_of_numpy):
        assert srcdiff.grad(function, backend=backend)(1.5, 3, 35) == 3**35 % 1000 == function(1.0, 3, 35)


def last_digit_of_sum(x, n, m):
    return x * ((2**m + n) % 7)


def test_sums_of_powers_of_two_that_are_not_exact_raise_where_integers_are_needed():
    gradient = srcdiff.grad(last_digit_of_sum, backend="python")

    assert gradient(1.5, 3, 30) == last_digit_of_sum(1.0, 3, 30)
    with pytest.raises(OverflowError, match="is not exact beyond 2\\*\\*53"):
        gradient(1.5, 3, 60)


@pytest.mark.parametrize("function", [last_digits, converted])
def test_powers_of_integers_that_are_not_exact_raise_where_integers_are_needed(function):
    gradient = srcdiff.grad(function, backend="python")

    assert gradient(1.5, 3, 30) == function(1.0, 3, 30)
    assert gradient(1.5, 3, -2) == function(1.0, 3, -2)
    with pytest.raises(OverflowError, match="is not exact beyond 2\\*\\*53"):
        gradient(1.5, 3, 35)


def test_powers_of_integers_are_floats_where_floats_are_needed():
    assert srcdiff.grad(lambda x, k: x / 10**k, backend="python")(1.5, 25) == 1.0 / 10**25
    assert srcdiff.grad(lambda x, k: x * (2**k % 7), backend="python")(1.5, 62) == 2**62 % 7
    assert "OverflowError" not in srcdiff.source(lambda x, k: x * (-1) ** k / 3**k, 1.5, 2)


def test_negative_powers_of_integers_raise_in_numpy():
    with pytest.raises(ValueError, match="negative integer powers"):
        np.power(2, -2)
    with pytest.raises(ValueError, match="negative integer powers"):
        srcdiff.grad(lambda x, k: x * np.power(2, k), backend="python")(1.5, -2)


# -- float32 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_of_float32_are_compared_with_numbers_in_float32(backend):
    def equal(x, a):
        return x * np.sum(a == 0.1) + 10.0 * x * np.sum(np.greater(a, 0.1))

    a = np.full(3, 0.1, np.float32)
    assert srcdiff.grad(equal, backend=backend)(1.5, a) == equal(1.0, a) == 3.0


def strided(x, levels):
    total = 0.0
    for level in range(levels):
        for k in range(3**level - 1, len(x), 2**level):
            total += x[k] ** 2 * len(np.zeros(2 * 2**level - 1))
        total += x[13 // 3**level % 4] * x[2**level]
    return total


@pytest.mark.parametrize("backend", BACKENDS)
def test_powers_of_integers_are_integers_where_integers_are_needed(backend):
    x = np.arange(1.0, 6.0)
    gradient = srcdiff.grad(strided, wrt="x", backend=backend)(x, 3)
    assert srcdiff.differentiable(strided, backend=backend)(x, 3) == strided(x, 3)
    assert list(gradient) == list(srcdiff.grad(lambda x: strided(x, 3), backend="python")(x))
    srcdiff.check(strided, x, 3, wrt="x", backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("exponent", "error"), [(-1, TypeError), (40, OverflowError)])
def test_powers_that_are_no_integers_raise_as_indices(backend, exponent, error):
    with pytest.raises(error):
        srcdiff.grad(lambda x, k: x[3**k], wrt="x", backend=backend)(np.ones(4), exponent)


def test_powers_as_indices_are_refused_where_errors_of_indices_are_caught():
    def caught(x, k):
        try:
            return x[3**k]
        except TypeError:
            return x[0]

    with pytest.raises(srcdiff.DifferentiationError, match="an index must be an integer"):
        srcdiff.grad(caught, wrt="x", backend="python")(np.ones(4), 1)
