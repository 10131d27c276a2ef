"""The memory pool: calls reuse blocks, the pool is bounded, threads share it, and no block has two owners."""

from __future__ import annotations

import contextlib
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import memory_pool, numba_cpu

pytestmark = pytest.mark.numba

MB = 1 << 20


def compiled(text):
    return numba_cpu.load(f"import numpy as np\n{text}", ["f"], {}, {}, f"<{text}>")


FILLED = compiled("def f(n, x):\n    y = np.empty(n)\n    for i in range(n):\n        y[i] = x\n    return y")
TWO = compiled("def f(n):\n    y = np.zeros(n)\n    z = np.zeros(n)\n    y[0] += 1.0\n    return z[0] + y[0]")


def address(array):
    return array.ctypes.data


def test_freed_memory_is_reused():
    memory_pool.release_all()  # blocks freed by other tests may fit better
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


@contextlib.contextmanager
def holding(count):
    """Start with an empty pool, and limit the memory that it holds."""
    memory_pool.release_all()
    memory_pool.ensure_loaded()
    memory_pool.hold_at_most(count)
    try:
        yield
    finally:
        memory_pool.hold_at_most(memory_pool.most_held())
        memory_pool.release_all()


@pytest.mark.parametrize("size", [3000, 200_000, 3_000_000, 9_000_000])
def test_the_pool_is_bounded(size):
    with holding(64 * MB):
        arrays = [FILLED(size, 1.0) for _ in range(40 if size < 1_000_000 else 6)]
        del arrays

        assert 0 <= memory_pool.held_bytes() <= 64 * MB


def test_a_pool_of_size_zero_holds_nothing():
    with holding(0):
        FILLED(5000, 1.0)

        assert memory_pool.held_bytes() == 0


def test_the_pool_holds_blocks_of_any_size():
    with holding(400 * MB):
        first = FILLED(12_000_000, 1.0)
        where = address(first)
        del first

        assert memory_pool.held_bytes() >= 96_000_000
        assert address(FILLED(12_000_000, 2.0)) == where


def test_gradients_that_take_turns_keep_their_blocks():
    with holding(400 * MB):
        sizes = [6_000_000, 9_000_000, 3_000_000]
        places = [{address(FILLED(n, 1.0)) for _ in range(1)} for n in sizes]
        for _ in range(3):
            for n, place in zip(sizes, places, strict=True):
                place.add(address(FILLED(n, 1.0)))

        assert [len(place) for place in places] == [1, 1, 1]


def test_the_block_that_was_freed_first_goes_first():
    with holding(20 * MB):
        old, new = FILLED(1_000_000, 1.0), FILLED(700_000, 1.0)
        where = address(new)
        del old, new  # in this order
        FILLED(1_300_000, 1.0)

        assert memory_pool.held_bytes() < 18_000_000
        assert address(FILLED(700_000, 1.0)) == where


def test_unused_blocks_leave_the_pool():
    with holding(400 * MB):
        FILLED(5_000_000, 1.0)
        for _ in range(20):
            FILLED(500_000, 1.0)
        assert memory_pool.held_bytes() > 44_000_000, "not at once"
        for _ in range(16 * 64 // 3):
            FILLED(500_000, 1.0)

        assert memory_pool.held_bytes() < 5_000_000


def of_memory_at(where, field):
    """The state of the middle of an array of 160 MB in Linux, in kilobytes."""
    where += 80_000_000
    for mapping in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text()):
        start, end = (int(x, 16) for x in mapping.split(" ")[0].split("-")) if mapping else (0, 0)
        if start <= where < end:
            return int(re.search(rf"(?m)^{field}: *(\d+) kB", mapping)[1])
    return None


@pytest.mark.skipif(not memory_pool.has_huge_pages(), reason="the system has no huge pages")
def test_the_system_may_reclaim_large_blocks_in_the_pool():
    with holding(400 * MB):
        array = FILLED(20_000_000, 1.0)
        where = address(array)
        assert of_memory_at(where, "LazyFree") == 0
        del array

        assert of_memory_at(where, "LazyFree") > 100_000
        again = FILLED(20_000_000, 2.0)
        assert address(again) == where
        assert of_memory_at(where, "LazyFree") < 10_000
        assert np.all(again == 2.0)


@pytest.mark.skipif(not memory_pool.has_huge_pages(), reason="the system has no huge pages")
def test_large_blocks_ask_for_huge_pages():
    with holding(400 * MB):
        flags = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
        before = sum(" hg" in mapping for mapping in flags)
        array = FILLED(20_000_000, 1.0)
        flags = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())

        assert array[0] == 1.0
        assert sum(" hg" in mapping for mapping in flags) > before


def test_the_pool_can_be_emptied():
    FILLED(5000, 7.0)
    held = memory_pool.held_bytes()
    assert held >= 40_000

    assert srcdiff.release_memory() == held
    assert memory_pool.held_bytes() == 0
    assert srcdiff.release_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_released_memory_returns_to_the_system():
    with holding(400 * MB):
        where = address(FILLED(20_000_000, 1.0))
        assert of_memory_at(where, "Rss") > 100_000
        srcdiff.release_memory()

        assert (of_memory_at(where, "Rss") or 0) < 100_000


def test_the_pool_is_emptied_for_an_array_that_would_not_fit():
    program = (
        "import resource, numpy as np, srcdiff\n"
        "from srcdiff.backends.numba import numba_cpu, memory_pool\n"
        "text = 'import numpy as np\\ndef f(n):\\n    y = np.empty(n)\\n    y[0] = 1.0\\n    return y'\n"
        "f = numba_cpu.load(text, ['f'], {}, {}, '<text>')\n"
        "f(50_000_000)\n"
        "assert memory_pool.held_bytes() >= 400_000_000\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)\n"
        "assert f(70_000_000)[0] == 1.0\n"
        "assert memory_pool.held_bytes() >= 560_000_000\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("said", "bytes_"), [("2 GB", 2 * 10**9), ("500mb", 5 * 10**8), ("0", 0), ("1.5 GB", 15 * 10**8)]
)
def test_an_environment_variable_sets_the_size_of_the_pool(monkeypatch, said, bytes_):
    monkeypatch.setenv("SRCDIFF_HELD_MEMORY", said)

    assert memory_pool.most_held() == bytes_


def test_an_invalid_size_of_the_pool_is_refused(monkeypatch):
    monkeypatch.setenv("SRCDIFF_HELD_MEMORY", "much")

    with pytest.raises(ValueError, match="'much' is not an amount of memory"):
        memory_pool.most_held()


def test_the_pool_holds_at_most_a_quarter_of_the_memory(monkeypatch):
    monkeypatch.delenv("SRCDIFF_HELD_MEMORY", raising=False)

    assert memory_pool.most_held() == memory_pool.usable_memory() // 4 > 0


def test_a_gradient_that_keeps_much_asks_for_no_pages_at_its_second_call():
    def loss(x, steps):
        for _ in range(steps):
            x = x + 0.01 * np.sin(x) * x
        return np.sum(x)

    derivative = srcdiff.value_and_grad(loss)
    x = np.linspace(0.0, 1.0, 10_000)
    with holding(1000 * MB):
        derivative(x, 700)
        assert memory_pool.held_bytes() > 50_000_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        derivative(x, 700)

        assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 500


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


def test_threads_share_the_pool():
    def work(k):
        for iteration in range(300):
            n = 3000 + 500 * ((k + iteration) % 5)
            array = FILLED(n, float(k))
            again = FILLED(n + 10, float(-k))
            if not (np.all(array == k) and np.all(again == -k)):
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))
    assert 0 <= memory_pool.held_bytes() <= memory_pool.most_held()


def test_threads_share_large_blocks_while_one_releases_them():
    def work(k):
        for step in range(20):
            n = 4_200_000 + 1000 * (step % 3)  # more than 32 MB: marked as free while pooled
            array = FILLED(n, float(k))
            if step % 7 == 0:
                srcdiff.release_memory()
            if not (np.all(array[:5000] == k) and np.all(array[-5000:] == k)):
                return False
        return True

    with holding(150 * MB), ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))
    assert memory_pool.held_bytes() == 0


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
