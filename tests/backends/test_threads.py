"""Loops in threads: correct, without races, bit-identical for equal numbers of threads, and never nested."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
from numba import njit, prange

import srcdiff
from srcdiff.analyses import thread_loops
from srcdiff.backends.numba import blas, threads
from srcdiff.backends.python import race_checker
from srcdiff.backends.python.race_checker import RaceError
from srcdiff.emit.support import iterations_of, thread_blocks
from srcdiff.ir.primitives import WORK_OF_BLOCK
from srcdiff.passes import loops_in_threads

RNG = np.random.default_rng(5)
X = RNG.uniform(0.6, 1.9, 12)
ROWS = RNG.uniform(0.5, 1.5, (6, 4))
WITH_NAN = np.array([3.0, 1.0, np.nan, 8.0, np.nan, 9.0])
PLACES = RNG.integers(0, 5, 12)


@njit(parallel=True)
def prices(s, k, sigma):
    total = 0.0
    for i in prange(len(s)):
        d = np.log(s[i] / k[i]) / sigma
        total += s[i] * np.tanh(d) - k[i] * np.tanh(d - sigma)
    return total


@njit(parallel=True)
def logistic(w, x):
    loss = 0.0
    for i in prange(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += x[i, j] * w[j]
        loss += np.log1p(np.exp(-z))
    return loss / x.shape[0]


@njit(parallel=True)
def product(x):
    p = 1.0
    for i in prange(len(x)):
        p *= x[i]
    return p


def pairs(x):
    energy = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                energy += 1.0 / (x[i] - x[j]) ** 2
    return energy


def table(p, places, y):
    total = 0.0
    for i in range(len(places)):
        total += (p[places[i]] * y[i]) ** 2
    return total


def walks(x, steps):
    out = np.empty(len(x))
    for i in range(len(x)):
        v = x[i]
        for _ in range(steps):
            v += 0.1 * np.sin(v)
        out[i] = v * v
    return np.sum(out)


def walks_with_while(x):
    total = 0.0
    for i in range(len(x)):
        v = x[i]
        while v < 3.0:
            v = v * v + 0.5
        total += np.log(v)
    return total


def own_arrays(a, w):
    out = np.empty(len(a))
    for i in range(len(a)):
        row = np.exp(a[i] * w)
        out[i] = np.sum(row * row)
    return np.sum(np.log(out))


def shared_buffer(a):
    """An iteration reads values that another one left in a buffer, so the buffer cannot be private."""
    buffer = np.zeros(a.shape[1])
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += buffer[j] * a[i, j]
            buffer[j] = a[i, j] ** 2
    return total


def recurrence(x):
    y = np.empty(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + np.sin(x[i])
    return np.sum(y * y)


def jacobi(u, steps):
    for _ in range(steps):
        v = u.copy()
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * np.sin(u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = v
    return np.sum(u * u)


def backwards(x):
    total = 0.0
    for i in range(len(x) - 1, 0, -2):
        total += x[i] * np.exp(x[i - 1])
    return total


def whole_arrays(a, w):
    return np.sum(np.tanh(a * w) ** 2) + np.mean(np.exp(a))


def chosen_elements(x, places):
    y = np.zeros(5)
    for i in range(len(x)):
        y[places[i]] = x[i] * x[i]
    return np.sum(y)


def early_exit(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 1.85:
            break
        total += x[i] ** 3
    return total


def rows_of_columns(a):
    out = np.zeros((a.shape[1], a.shape[0]))
    for i in range(a.shape[0]):
        column = out[:, i]
        for j in range(a.shape[1]):
            column[j] += np.sin(a[i, j]) * a[0, j]
    return np.sum(out * out)


@njit(parallel=True)
def scattered(x, places, w):
    y = np.zeros(len(x))
    for i in prange(len(x)):
        y[places[i]] = np.sin(x[i]) * w[0]
    return np.sum(y * y)


@njit(parallel=True)
def flat_rows(x, n, m):
    y = np.empty(n * m)
    for i in prange(n):
        for j in range(m):
            y[i * m + j] = np.exp(x[i * m + j]) * x[j]
    return np.sum(y * y)


@njit(parallel=True)
def in_place(x, places, steps):
    y = x.copy()
    for _ in range(steps):
        for i in prange(len(x)):
            y[places[i]] = y[places[i]] * np.sin(y[places[i]])
    return np.sum(y * y)


@njit(parallel=True)
def rows_of_any_length(x, starts):
    y = np.zeros(len(x))
    for i in prange(len(starts) - 1):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += x[j]
        for j in range(starts[i], starts[i + 1]):
            y[j] = x[j] / total
    return np.sum(y**3)


@njit(parallel=True)
def two_places(x, places):
    """Iterations of different loops over the same range may touch the same elements."""
    y = np.zeros(len(x))
    for k in range(2):
        for i in prange(len(x)):
            y[places[k, i]] = y[places[k, i]] * x[i] + np.cos(x[i])
    return np.sum(y * y)


def largest(x):
    most = x[0]
    for i in range(len(x)):
        most = max(most, x[i] * np.sin(x[i]))
    return most


def closest(x, y):
    least, where, value = np.inf, -1, 0.0
    for i in range(len(y)):
        distance = (x[0] - y[i]) ** 2
        if distance < least:
            least, where, value = distance, i, y[i]
    return least * value * x[where % 3]


def last_of_equal(x, y):
    least, where = np.inf, 0
    for i in range(len(y)):
        if y[i] <= least:
            least, where = y[i], i
    return x[where] * least


def not_the_largest(x):
    """The stored number differs from the compared one."""
    most = 0.0
    for i in range(len(x)):
        if np.sin(x[i]) > most:
            most = x[i]
    return most


def extremes_of_array(a):
    return np.max(a) * np.min(a * a) + a.ravel()[np.argmax(a)]


def by_maximum(x):
    most = -np.inf
    for i in range(len(x)):
        most = np.maximum(most, np.sin(x[i]))
    return most


CASES = {
    "prices": (prices, (X, X[::-1].copy(), 0.3), (0, 1, 2), True),
    "strided": (prices, (X[::2], X[1::2], 0.3), (0, 1, 2), True),
    "no iteration": (prices, (X[:0], X[:0], 0.3), (0, 2), True),
    "logistic": (logistic, (ROWS[0], ROWS), (0, 1), True),
    "product": (product, (X,), (0,), False),
    "pairs": (pairs, (X,), (0,), True),
    "table": (table, (X[:5], PLACES, X), (0, 2), True),
    "walks": (walks, (X, 4), (0,), True),
    "walks with while": (walks_with_while, (X,), (0,), False),
    "own arrays": (own_arrays, (ROWS, ROWS[1]), (0, 1), True),
    "shared buffer": (shared_buffer, (ROWS,), (0,), False),
    "recurrence": (recurrence, (X,), (0,), False),
    "jacobi": (jacobi, (X, 3), (0,), True),
    "backwards": (backwards, (X,), (0,), True),
    "whole arrays": (whole_arrays, (ROWS, ROWS[2]), (0, 1), True),
    "chosen elements": (chosen_elements, (X, PLACES), (0,), False),
    "scattered": (scattered, (X, RNG.permutation(12), X[:3]), (0, 2), True),
    "flat rows": (flat_rows, (X, 3, 4), (0,), True),
    "in place": (in_place, (X, RNG.permutation(12), 2), (0,), True),
    "rows of any length": (rows_of_any_length, (X, np.array([0, 3, 4, 9, 12])), (0,), True),
    "two places": (two_places, (X, np.stack([RNG.permutation(12), RNG.permutation(12)])), (0,), True),
    "largest": (largest, (X,), (0,), True),
    "largest with NaN": (largest, (WITH_NAN,), (0,), True),
    "largest after NaN": (largest, (WITH_NAN[2:],), (0,), True),
    "closest of equals": (closest, (X, np.array([3.0, 1.0, 2.0, 1.0, 5.0, 1.0])), (0, 1), True),
    "last of equals": (last_of_equal, (X, np.array([3.0, 1.0, 2.0, 1.0, 5.0, 1.0])), (0, 1), False),
    "not the largest": (not_the_largest, (X,), (0,), False),
    "extremes of an array": (extremes_of_array, (ROWS,), (0,), True),
    "extremes with NaN": (extremes_of_array, (WITH_NAN.reshape(2, 3),), (0,), True),
    "by maximum": (by_maximum, (X,), (0,), False),
    "early exit": (early_exit, (X,), (0,), False),
    "rows of columns": (rows_of_columns, (ROWS,), (0,), True),
}


@pytest.fixture
def any_work(monkeypatch):
    """Loops of any length use threads."""
    monkeypatch.setattr(loops_in_threads, "WORK_OF_BLOCK", 0)
    monkeypatch.setattr(thread_loops, "FEW", 0)
    monkeypatch.setattr(thread_loops, "LIGHT", 0)


def plain(function):
    """A function without a known derivative."""
    return (lambda f: f)(getattr(function, "py_func", function))


def assert_same(found, expected):
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)  # sums are added in another order


@pytest.mark.parametrize("name", CASES)
def test_every_iteration_in_any_order_without_races(name, any_work):
    function, args, wrt, is_shared = CASES[name]
    expected = srcdiff.grad(function, wrt, backend="python")(*args)
    with race_checker.on():
        gradient = srcdiff.grad(function, wrt, backend="python", parallel=True, fastmath=False)
        found = gradient(*args)
    assert_same(found, expected)
    assert not is_shared or "get_num_threads" in gradient.source


@pytest.mark.parametrize(
    "name", ["prices", "logistic", "table", "own arrays", "jacobi", "whole arrays", "scattered", "in place"]
)
def test_other_modes(name, any_work):
    function, args, wrt, _ = CASES[name]
    tangents = tuple(0.5 * np.asarray(a) if k in wrt else None for k, a in enumerate(args))
    v = args[wrt[0]]
    expected = srcdiff.hvp(function, wrt[0], backend="python")(*args, v)
    _, slope = srcdiff.jvp(function, args, tangents, backend="python")
    with race_checker.on():
        assert_same(srcdiff.hvp(function, wrt[0], backend="python", parallel=True, fastmath=False)(*args, v), expected)
        _, found = srcdiff.jvp(function, args, tangents, backend="python", parallel=True, fastmath=False)
        primal = srcdiff.differentiable(plain(function), backend="python", parallel=True, fastmath=False)
        np.testing.assert_allclose(primal(*args), plain(function)(*args), rtol=1e-12)
    np.testing.assert_allclose(found, slope, rtol=1e-11)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_sweeps_of_jacobians_share_nothing(mode, any_work):
    def model(p, t):
        out = np.empty(len(t))
        for i in range(len(t)):
            out[i] = np.sum(p * np.cos(p * t[i]))
        return out

    p, t = np.linspace(0.3, 1.2, 70), np.linspace(0.0, 1.0, 66)
    expected = srcdiff.jacobian(model, mode=mode, backend="python")(p, t)
    with race_checker.on():
        jacobian = srcdiff.jacobian(model, mode=mode, backend="python", parallel=True)
        np.testing.assert_allclose(jacobian(p, t), expected, rtol=1e-11)
    assert "get_num_threads" in jacobian.source


@pytest.mark.parametrize("count", [1, 5, 13, 32])
def test_threads_share_few_directions_in_narrow_sweeps(count, any_work):
    w = np.linspace(0.1, 1.0, count)
    rows = RNG.uniform(0.5, 1.5, (3, count))
    expected = srcdiff.hessian(logistic, backend="python")(w, rows)
    with race_checker.on():
        hessian = srcdiff.hessian(logistic, backend="python", parallel=True)
        np.testing.assert_array_equal(hessian(w, rows), expected)


def test_sweeps_of_hessians_share_nothing(any_work):
    w = np.linspace(0.1, 1.0, 40)
    rows = RNG.uniform(0.5, 1.5, (3, 40))
    expected = srcdiff.hessian(logistic, backend="python")(w, rows)
    with race_checker.on():
        hessian = srcdiff.hessian(logistic, backend="python", parallel=True)
        np.testing.assert_allclose(hessian(w, rows), expected, rtol=1e-10, atol=1e-13)
    assert "get_num_threads" in hessian.source


def test_the_checker_finds_lost_sums():
    text = "def f(x, s):\n    for i in prange(3):\n        s[0] += x[i]\n    return s[0]\n"
    with pytest.raises(RaceError, match="reads"):
        race_checker.load(text, "f", {})(X, np.zeros(1))


def test_the_checker_finds_two_writers_and_views():
    text = "def f(x, s):\n    for i in prange(3):\n        part = s[0]\n        part[i // 2] = x[i]\n    return s\n"
    with pytest.raises(RaceError, match="write to the same"):
        race_checker.load(text, "f", {})(X, np.zeros((1, 3)))


def test_the_checker_finds_arrays_that_are_read_as_a_whole():
    text = "def f(x, s):\n    for i in prange(3):\n        s[i] = np.sum(s)\n    return s\n"
    with pytest.raises(RaceError):
        race_checker.load(text, "f", {"np": np})(X, np.zeros(3))


def test_without_the_option_nothing_runs_in_threads():
    gradient = srcdiff.grad(prices, backend="python")
    gradient(X, X, 0.3)
    assert "get_num_threads" not in gradient.source


def embedding(rows, places, w):
    total = 0.0
    for i in range(len(places)):
        z = 0.0
        for j in range(len(w)):
            z += rows[places[i], j] * w[j]
        total += np.tanh(z)
    return total


def test_atomic_additions_are_for_elements_that_indices_select(any_work):
    args = ROWS, PLACES, ROWS[0]
    expected = srcdiff.grad(embedding, (0, 2), backend="python")(*args)
    with race_checker.on():
        options = {"backend": "python", "parallel": True, "fastmath": False}
        gradient = srcdiff.grad(embedding, (0, 2), deterministic=False, **options)
        assert_same(gradient(*args), expected)
        ordered = srcdiff.grad(embedding, (0, 2), **options)
        assert_same(ordered(*args), expected)
    (chosen,) = srcdiff.explain(gradient, *args).threads
    assert chosen.why == "each block of iterations adds to `w_bar` of its own; threads add to `rows_bar` atomically"
    assert "atomic_add" in gradient.source
    assert "atomic_add" not in ordered.source


def test_the_checker_finds_reads_of_what_others_add_to_atomically():
    text = "def f(x, s):\n    for i in prange(3):\n        atomic_add(s, 0, x[i])\n        x[i] = s[0]\n    return s\n"
    with pytest.raises(RaceError, match="atomically"):
        race_checker.load(text, "f", {})(X.copy(), np.zeros(1))


@pytest.mark.numba
def test_atomic_additions_lose_nothing(two_threads):
    rows, w = RNG.uniform(size=(3, 4)), RNG.uniform(size=4)
    expected = srcdiff.grad(embedding, (0, 2))(rows, LONG_PLACES % 3, w)
    gradient = srcdiff.grad(embedding, (0, 2), parallel=True, deterministic=False)
    for _ in range(50):
        assert_same(gradient(rows, LONG_PLACES % 3, w), expected)


def test_explain_says_which_loops_use_threads(any_work):
    rows = srcdiff.explain(srcdiff.grad(table, (0, 2), parallel=True), *CASES["table"][1]).threads
    assert [(t.in_threads, t.why) for t in rows] == [(True, "each block of iterations adds to `p_bar` of its own")]
    rows = srcdiff.explain(srcdiff.grad(recurrence, parallel=True), X).threads
    assert (False, "an iteration may read an element of `y` that another one writes") in [
        (t.in_threads, t.why) for t in rows
    ]


def test_explain_lists_the_assumptions_of_prange():
    @njit(parallel=True)
    def scattered(x, places):
        y = np.zeros(5)
        for i in prange(len(x)):
            y[places[i]] = x[i]
        return np.sum(y)

    (claim,) = srcdiff.explain(scattered, X, PLACES, wrt=0).claims
    assert claim.what == "two iterations write to the same element of `y`"


def test_explain_tells_which_loops_run_in_threads_on_the_users_word(any_work):
    rows = srcdiff.explain(srcdiff.grad(in_place, parallel=True), *CASES["in place"][1]).threads
    assert "its iterations are independent, as `prange` says" in [t.why for t in rows if t.in_threads]


def test_the_word_of_users_is_about_prange_only(any_work):
    def scattered_by_range(x, places, w):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[places[i]] = np.sin(x[i]) * w[0]
        return np.sum(y * y)

    rows = srcdiff.explain(srcdiff.grad(scattered_by_range, parallel=True), *CASES["scattered"][1]).threads
    assert "two iterations may write to the same element of `y`" in [t.why for t in rows if not t.in_threads]


def test_gpus_have_threads_of_their_own():
    with pytest.raises(ValueError, match="parallel"):
        srcdiff.grad(pairs, backend="cuda", parallel=True)


# -- compiled ----------------------------------------------------------------------------------------------------------

LONG = RNG.uniform(0.6, 1.9, 40_000)
LONG_PLACES = RNG.integers(0, 5, 40_000)


def heavy(p, places, y):
    total = 0.0
    for i in range(len(places)):
        if y[i] < 0.0:
            raise ValueError("negative", i)
        v = np.empty(3)
        for j in range(3):
            v[j] = np.exp(p[places[i]] * y[i] * j)
        total += np.log(v[0] + v[1] + v[2])
    return total


@pytest.fixture
def two_threads():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("there is one thread only")
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="module")
def gradient():
    return srcdiff.value_and_grad(heavy, (0, 2), parallel=True)


@pytest.mark.numba
def test_compiled_gradients_are_right_and_the_same_bits_every_time(gradient, two_threads):
    value, bars = gradient(X[:5], LONG_PLACES, LONG)
    expected, expected_bars = srcdiff.value_and_grad(heavy, (0, 2))(X[:5], LONG_PLACES, LONG)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    assert_same(bars, expected_bars)
    for _ in range(100):
        again, others = gradient(X[:5], LONG_PLACES, LONG)
        assert again == value
        assert all(np.array_equal(a, b) for a, b in zip(others, bars, strict=True))


@pytest.mark.numba
def test_one_thread_is_enough(gradient, two_threads):
    expected = srcdiff.value_and_grad(heavy, (0, 2))(X[:5], LONG_PLACES, LONG)
    numba.set_num_threads(1)
    value, bars = gradient(X[:5], LONG_PLACES, LONG)
    np.testing.assert_allclose(value, expected[0], rtol=1e-11)
    assert_same(bars, expected[1])


@pytest.mark.numba
def test_the_earliest_exception_is_raised(gradient, two_threads):
    y = LONG.copy()
    for place in (39_000, 25_000, 17_000, 9_000):
        y[place] = -1.0
        with pytest.raises(ValueError, match=f"negative.*{place}"):
            gradient(X[:5], LONG_PLACES, y)
    assert gradient(X[:5], LONG_PLACES, LONG)[0] > 0.0


@pytest.mark.numba
def test_loops_of_several_python_threads_are_the_same_bits(gradient, two_threads):
    value, bars = gradient(X[:5], LONG_PLACES, LONG)
    found = []

    def work():
        numba.set_num_threads(2)
        found.extend(gradient(X[:5], LONG_PLACES, LONG) for _ in range(20))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 80
    assert all(v == value and np.array_equal(b[0], bars[0]) for v, b in found)
    assert threads._busy.value == 0


@pytest.mark.numba
def test_short_loops_have_one_block(two_threads):
    compiled = njit(_calling(threads.functions()["thread_blocks"]))
    for count, work, private in (
        (10, 100, 0),
        (10, 2 * WORK_OF_BLOCK, 0),
        (1, 10**9, 0),
        (10, 2 * WORK_OF_BLOCK, 9),
        (0, 0, 0),
        (-3, -60, 0),
    ):
        assert compiled(count, work, private) == thread_blocks(count, work, private)


def test_the_text_has_the_same_threshold():
    assert thread_blocks(10, 2 * WORK_OF_BLOCK - 1, 0) == 1
    assert thread_blocks(10, 100 * WORK_OF_BLOCK, 0) == min(10, numba.get_num_threads())


@pytest.mark.numba
def test_blocks_have_all_iterations():
    compiled = njit(_calling(threads.functions()["iterations_of"]))
    for block, blocks, count in ((0, 1, 7), (0, 3, 7), (1, 3, 7), (2, 3, 7), (1, 2, 0), (0, 1, -4)):
        start, stop = compiled(block, blocks, count)
        assert range(start, stop) == range(*iterations_of(block, blocks, count))


def _calling(function):
    def call(x, y, z):
        return function(x, y, z)

    return call


@pytest.mark.numba
@pytest.mark.skipif(not hasattr(multiprocessing, "get_context"), reason="there are no processes")
def test_forked_processes_run(gradient, two_threads):
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("there is no fork")
    value, _ = gradient(X[:5], LONG_PLACES, LONG)
    context = multiprocessing.get_context("fork")
    there, here = context.Pipe()
    child = context.Process(target=lambda: there.send(gradient(X[:5], LONG_PLACES, LONG)[0]))
    child.start()
    assert here.poll(60)
    assert here.recv() == value
    child.join()
    assert child.exitcode == 0


NESTED = """
import numba
import numpy as np
import srcdiff

def loss(w, x):
    total = 0.0
    for i in range(len(x)):
        total += np.tanh(x[i] * w) ** 2
    return total

gradient = srcdiff.grad(loss, parallel=True)

@numba.guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(m)->(n)", target="parallel", nopython=True)
def gradients(w, x, out):
    for k in range(len(w)):
        out[k] = gradient(w[k], x)

w, x = np.linspace(0.1, 1.0, 6), np.linspace(0.0, 1.0, 60_000)
found = gradients(w[:, None], x)[:, 0]
np.testing.assert_allclose(found, [gradient(v, x) for v in w], rtol=1e-12)
print(numba.threading_layer())
"""


@pytest.mark.numba
def test_a_parallel_loop_of_the_user_may_call_a_gradient_under_workqueue(tmp_path):
    """Numba ends the process if a thread of this layer starts threads."""
    settings = {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2", "SRCDIFF_CACHE_DIR": str(tmp_path)}
    program = tmp_path / "nested.py"
    program.write_text(NESTED)
    done = subprocess.run([sys.executable, program], env=os.environ | settings, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "workqueue\n"


@pytest.mark.numba
def test_threads_of_a_batch_have_one_thread_each(gradient, two_threads):
    seen = srcdiff.api.batching._pool(os.getpid(), 2).submit(numba.get_num_threads).result()
    assert seen == 1
    places, p = LONG_PLACES[None, :] + np.zeros((4, 1), int), X[:5]
    batched = srcdiff.batched(gradient, over="places", parallel=True)
    _, (bars, _) = batched(p, places, LONG)
    np.testing.assert_allclose(bars, np.stack([gradient(p, LONG_PLACES, LONG)[1][0]] * 4), rtol=1e-11)


@pytest.mark.numba
def test_products_in_threads_use_one_thread_each(two_threads):
    def model(a, w):
        total = 0.0
        for i in range(a.shape[0]):
            total += np.sum(np.tanh(a[i] @ w))
        return total

    a, w = RNG.uniform(size=(6, 60, 60)), RNG.uniform(size=(60, 60)) / 60
    gradient = srcdiff.grad(model, (0, 1), parallel=True)
    gradient(a, w)
    if blas.LIMITING.value == 0:
        pytest.skip("the BLAS is not OpenBLAS")
    limit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(blas.LIMITING.value)
    before = limit(2)
    assert_same(gradient(a, w), srcdiff.grad(model, (0, 1), backend="python")(a, w))
    with blas.one_thread():
        assert limit(1) == 1
    assert limit(before) == 2


@pytest.mark.numba
def test_loops_of_tasks_of_dask_are_the_same_bits(gradient, two_threads):
    dask = pytest.importorskip("dask")
    value, bars = gradient(X[:5], LONG_PLACES, LONG)

    @dask.delayed
    def task(k):
        numba.set_num_threads(2)
        return gradient(X[:5], LONG_PLACES, LONG)

    for again, others in dask.compute(*[task(k) for k in range(12)], scheduler="threads", num_workers=3):
        assert again == value
        assert np.array_equal(others[0], bars[0])
