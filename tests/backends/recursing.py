"""A process that recurses too deeply in many ways. `test_stack.py` checks that it survives, and what it prints.

python recursing.py <how> ... runs the functions of this name below, one after the other.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import srcdiff

MB = 1 << 20


def power(x: float, n: int) -> float:
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


def total(x: float, n: int) -> float:
    if n == 0:
        return 0.0
    return x + total(x, n - 1)


def even(x: float, n: int) -> float:
    if n == 0:
        return x
    return odd(x, n - 1) * 1.5


def odd(x: float, n: int) -> float:
    if n == 0:
        return x + 1.0
    return even(x, n - 1) + 0.1


def halves(a: Any, low: int, high: int) -> float:
    if high - low == 1:
        return np.sin(a[low])
    middle = (low + high) // 2
    return halves(a, low, middle) * halves(a, middle, high)


def scaled(a: Any, n: int) -> float:
    if n == 0:
        return 0.0
    b = a * 1.0000001
    return b[0] + scaled(b, n - 1)


def spoken(x: float, n: int) -> float:
    if n == 0:
        return x
    if n % 1000 == 0:
        print(f"at {n}")
    return spoken(x, n - 1) * 1.0


def raises(call: Callable[[], Any]) -> str:
    try:
        return f"no error: {call()}"
    except RecursionError as error:
        return str(error)


def is_deep(name: str, call: Callable[[], Any]) -> None:
    said = raises(call)
    assert said.startswith(f"maximum recursion depth exceeded in `{name}`: the stack of this thread is full"), said


def is_right() -> None:
    """Whether the functions work, before and after."""
    assert srcdiff.grad(power)(1.5, 3) == 3 * 1.5**2
    assert srcdiff.value_and_grad(even)(1.0, 2) == (1.1 * 1.5, 1.5)
    a = np.array([0.5, 0.7, 0.9])
    expected = np.prod(np.sin(a)) / np.tan(a)
    np.testing.assert_allclose(srcdiff.grad(halves)(a, 0, 3), expected, rtol=1e-14)  # a few roundings
    assert srcdiff.differentiable(total)(2.0, 1000) == 2000.0


def every_mode() -> None:
    is_right()
    is_deep("power", lambda: srcdiff.differentiable(power)(1.5, -1))
    is_deep("power_grad", lambda: srcdiff.grad(power)(1.5, -1))
    is_deep("power_value_and_grad", lambda: srcdiff.value_and_grad(power)(1.5, -1))
    is_deep("power_tangent", lambda: srcdiff.jvp(power, (1.5, -1), (1.0, None)))
    is_deep("power", lambda: srcdiff.vjp(power, 1.5, -1))
    is_deep("power_grad_jacobian", lambda: srcdiff.hessian(power)(1.5, -1))
    is_deep("even_grad", lambda: srcdiff.grad(even)(1.0, -1))
    is_deep("halves_grad", lambda: srcdiff.grad(halves)(np.ones(3), 2, 1))
    is_deep("scaled_grad", lambda: srcdiff.grad(scaled)(np.ones(3), -1))
    assert "maximum recursion depth" in raises(lambda: srcdiff.batched(srcdiff.grad(power), over="x")(np.ones(3), -1))
    is_right()


def many_times() -> None:
    g = srcdiff.grad(power)
    for _ in range(50):
        is_deep("power_grad", lambda: g(1.5, -1))
    is_right()


def deep() -> None:
    n = 100_000
    assert srcdiff.differentiable(total)(1.0, n) == n
    assert srcdiff.grad(total)(1.0, n) == n
    assert srcdiff.jvp(total, (1.0, n), (1.0, None)) == (n, n)
    assert srcdiff.differentiable(power)(1.0, n) == 1.0
    assert srcdiff.differentiable(even)(0.0, n) == np.inf


def in_thread(size: int, work: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threading.stack_size(size)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(0)
    if failed:
        raise failed[0]


def small_thread() -> None:
    every_mode()  # compilation takes more of the stack than this thread has
    in_thread(MB // 4, every_mode)
    every_mode()


def other_threads() -> None:
    g = srcdiff.grad(power)
    in_thread(64 * MB, lambda: is_deep("power_grad", lambda: g(1.5, -1)))
    for k in range(12):  # the C library reuses the memory for threads with stacks of other sizes
        in_thread((128, 4, 32, 1)[k % 4] * MB // 4, lambda: is_deep("power_grad", lambda: g(1.5, -1)))
        gc.collect()
    in_thread(128 * MB, lambda: None if srcdiff.grad(total)(1.0, 1_000_000) == 1_000_000 else sys.exit(1))
    is_deep("power_grad", lambda: g(1.5, -1))
    is_right()


def at_once() -> None:
    """Functions of the user in several threads, without Python's lock."""
    g = srcdiff.grad(power)

    @numba.njit(nogil=True)
    def often(x: float, n: int, count: int) -> float:
        result = 0.0
        for _ in range(count):
            result += g(x, n)
        return result

    assert often(1.0, 5, 2) == 10.0
    is_deep("power_grad", lambda: often(1.0, -1, 1))
    results: list[Any] = []

    def work(k: int) -> None:
        for _ in range(5):
            results.append(raises(lambda: often(1.0, -1 if k % 2 else 100, 200)))

    threading.stack_size(MB)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted({r.split(":")[0] for r in results}) == [
        "maximum recursion depth exceeded in `power_grad`",
        "no error",
    ]
    assert {r for r in results if r.startswith("no")} == {"no error: 20000.0"}
    is_right()


def inside_print() -> None:
    """A function that prints while it recurses, to a stream that recurses too."""
    g, said = srcdiff.grad(power), []

    class Output:
        def write(self, text: str) -> None:
            said.append(text)
            assert g(1.0, 100) == 100.0
            if len(said) % 50 == 0:
                is_deep("power_grad", lambda: g(1.5, -1))

        def flush(self) -> None:
            pass

    usual, sys.stdout = sys.stdout, Output()  # type: ignore[assignment]
    try:
        is_deep("spoken", lambda: srcdiff.differentiable(spoken)(1.0, -1))
        assert srcdiff.differentiable(spoken)(1.0, 5000) == 1.0
    finally:
        sys.stdout = usual
    assert len(said) > 100
    is_right()


def after_fork() -> None:
    g = srcdiff.grad(power)
    is_deep("power_grad", lambda: g(1.5, -1))
    child = os.fork()
    if not child:
        in_thread(MB, lambda: is_deep("power_grad", lambda: g(1.5, -1)))
        is_deep("power_grad", lambda: g(1.5, -1))
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def raised_limit() -> None:
    """The stack of the main thread may grow up to its current limit."""
    g = srcdiff.grad(total)
    assert "maximum recursion depth" in raises(lambda: g(1.0, 500_000))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 * MB, hard))
    assert g(1.0, 500_000) == 500_000
    is_deep("total_grad", lambda: g(1.5, -1))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
    print("alive")
