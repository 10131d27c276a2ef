"""Results of compiled code: arrays of the right type, without copies of shared memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import numba_cpu, results

pytestmark = pytest.mark.numba


def compiled(text):
    return numba_cpu.load(f"import numpy as np\n{text}", ["f"], {}, {}, f"<{text}>")


DOUBLED = compiled("def f(x):\n    y = np.empty_like(x)\n    y[...] = x\n    return y")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 2), (2, 3, 4), (511,), (512,), (513,), (9000,)])
def test_arrays_have_their_elements_shape_and_kind(shape, dtype):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    got = DOUBLED(x)

    assert type(got) is np.ndarray
    assert got.dtype == x.dtype
    assert got.flags.writeable
    np.testing.assert_array_equal(got, x, strict=True)


@pytest.mark.parametrize("count", [3, 1000])
def test_fortran_order_stays(count):
    x = np.asfortranarray(np.arange(2.0 * count).reshape(2, count))
    got = DOUBLED(x)

    assert got.flags.f_contiguous
    assert not got.flags.c_contiguous
    np.testing.assert_array_equal(got, x)


@pytest.mark.skipif(not results.ensure_known(), reason="here, NumPy does not create the arrays of compiled code")
def test_small_results_own_their_memory():
    assert DOUBLED(np.ones(8)).base is None
    assert DOUBLED(np.ones(9000)).base is not None


@pytest.mark.parametrize("count", [4, 4000])
def test_results_that_share_memory_share_it_still(count):
    share = compiled("def f(n):\n    y = np.zeros(n)\n    return y, y[1:], (y,)")
    whole, rest, (again,) = share(count)
    rest[0] = 5.0

    assert whole[1] == again[1] == 5.0


def test_an_argument_that_is_returned_is_the_argument():
    x = np.ones(3)
    view = compiled("def f(x):\n    return x[1:]")(x)
    view[0] = 5.0

    assert compiled("def f(x):\n    return x")(x) is x
    assert x[1] == 5.0


def test_no_reference_is_left_behind():
    derivative = srcdiff.value_and_grad(lambda x: float(np.sum(x * x)))
    x = np.linspace(0.0, 1.0, 8)
    derivative(x)
    counts = [sys.getrefcount(thing) for thing in (x.dtype, np.ndarray, x)]
    for _ in range(1000):
        derivative(x)

    assert [sys.getrefcount(thing) for thing in (x.dtype, np.ndarray, x)] == pytest.approx(counts, abs=20)
    assert sys.getrefcount(derivative(x)[1]) == 1 + (sys.version_info < (3, 14))


def test_without_numpys_function_results_are_as_numba_makes_them(monkeypatch):
    monkeypatch.setattr(results, "ensure_known", lambda: False)
    got = compiled("def f(x):\n    return x * 2.0, (x + 1.0,)")(np.ones(3))

    assert got[1][0].base is not None
    np.testing.assert_array_equal(got[0], [2.0, 2.0, 2.0])
