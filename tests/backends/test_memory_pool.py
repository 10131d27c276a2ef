"""Memory that one call leaves to the next: it is the same, it is bounded, threads share it, nothing is mixed up."""

from __future__ import annotations

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import memory_pool, numba_cpu

pytestmark = pytest.mark.numba

MOST = 64 << 20


def compiled(text):
    return numba_cpu.load(f"import numpy as np\n{text}", ["f"], {}, {}, f"<{text}>")


FILLED = compiled("def f(n, x):\n    y = np.empty(n)\n    for i in range(n):\n        y[i] = x\n    return y")
TWO = compiled("def f(n):\n    y = np.zeros(n)\n    z = np.zeros(n)\n    y[0] += 1.0\n    return z[0] + y[0]")


def address(array):
    return array.ctypes.data


def test_memory_that_was_freed_is_taken_again():
    first = FILLED(4001, 1.0)
    where = address(first)
    del first

    assert address(FILLED(4001, 2.0)) == where
    assert address(FILLED(3900, 2.0)) == where, "a little less is enough"


def test_memory_in_use_is_not_taken():
    kept = [FILLED(4000 + k % 3, float(k)) for k in range(100)]

    assert len({address(array) for array in kept}) == 100
    for k, array in enumerate(kept):
        np.testing.assert_array_equal(array, np.full(4000 + k % 3, float(k)))


def test_elements_start_at_a_multiple_of_64():
    assert all(address(FILLED(n, 1.0)) % 64 == 0 for n in range(4000, 4100))


@pytest.mark.parametrize("size", [3000, 200_000, 3_000_000, 9_000_000])
def test_what_waits_is_bounded(size):
    arrays = [FILLED(size, 1.0) for _ in range(40 if size < 1_000_000 else 6)]
    del arrays

    assert 0 <= memory_pool.held_bytes() <= MOST


def test_what_waits_can_be_freed():
    FILLED(5000, 7.0)
    assert memory_pool.held_bytes() >= 40_000
    memory_pool.release_all()

    assert memory_pool.held_bytes() == 0


def test_zeros_are_zero_in_used_memory():
    FILLED(5000, 7.0)

    assert TWO(5000) == 1.0


def test_calls_after_the_first_ask_for_no_pages():
    def loss(x):
        total = 0.0
        for k in range(20):
            y = np.exp(x * k)
            y[0] = total
            total += np.sum(y * y)
        return total

    derivative = srcdiff.value_and_grad(loss)
    x = np.linspace(0.0, 0.1, 20_000)
    derivative(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        derivative(x)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 200


def test_threads_share_what_waits():
    def work(k):
        for turn in range(300):
            n = 3000 + 500 * ((k + turn) % 5)
            array = FILLED(n, float(k))
            again = FILLED(n + 10, float(-k))
            if not (np.all(array == k) and np.all(again == -k)):
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))
    assert 0 <= memory_pool.held_bytes() <= MOST


def test_too_large_arrays_raise():
    with pytest.raises(MemoryError):
        FILLED(1 << 57, 1.0)
    with pytest.raises(ValueError, match="too big"):
        FILLED(1 << 62, 1.0)


def test_arrays_may_outlive_the_interpreter():
    program = (
        "import numpy as np, srcdiff\n"
        "from srcdiff.backends.numba import numba_cpu\n"
        "text = 'import numpy as np\\ndef f(n):\\n    return np.zeros(n)'\n"
        "f = numba_cpu.load(text, ['f'], {}, {}, '<text>')\n"
        "kept = [f(10000), f(20)]\n"
        "np.kept = kept\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
