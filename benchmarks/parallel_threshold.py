"""Measures from how much work on two threads are faster than one: `python -m benchmarks.parallel_threshold`.

Work is counted as srcdiff counts it: operations, as they are written into the call of `thread_blocks` in the generated
text. For each program, the lengths double. The threshold is the work from which on threads take at most 0.9 of the time
of one thread. `WORK_OF_BLOCK` in `ir/primitives.py` is half of what most programs need: it is the work of one block.
"""

import argparse
import ast
import time
from unittest import mock

import numba
import numpy as np

import srcdiff
from srcdiff.analyses import thread_loops
from srcdiff.backends.numba import threads
from srcdiff.ir.primitives import WORK_OF_BLOCK
from srcdiff.passes import loops_in_threads


def polynomial(x, a):
    total = 0.0
    for i in range(len(x)):
        total += a * x[i] * x[i] * x[i] + x[i] * x[i]
    return total


def exponentials(x, a):
    total = 0.0
    for i in range(len(x)):
        total += np.exp(-a * x[i]) * np.tanh(x[i])
    return total


def own_elements(x, a):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = np.log(x[i]) * a + np.sqrt(x[i])
    return np.sum(y * y)


def rows(x, a):
    total = 0.0
    for i in range(len(x) - 40):
        z = 0.0
        for j in range(40):
            z += x[i + j] * a
        total += np.log(z)
    return total


def recurrences(x, a):
    total = 0.0
    for i in range(len(x)):
        v = x[i]
        for _ in range(20):
            v += 0.05 * (a - v * v)
        total += v
    return total


def work_of(gradient, **names):
    """The work of all loops in threads, by the generated text."""
    calls = [n for n in ast.walk(ast.parse(gradient.source)) if isinstance(n, ast.Call)]
    found = [c.args[1] for c in calls if isinstance(c.func, ast.Name) and c.func.id == "thread_blocks"]
    return sum(eval(ast.unparse(f), {"len": len, "range": range}, names) for f in found)


def least(gradient, args, seconds):
    """The least time with one thread and with all, in seconds; they alternate."""
    best = {1: np.inf, numba.config.NUMBA_NUM_THREADS: np.inf}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for count in best:
            numba.set_num_threads(count)
            start = time.perf_counter()
            gradient(*args)
            best[count] = min(best[count], time.perf_counter() - start)
    return best.values()


def threshold(function, seconds):
    """The work from which on threads are faster, and all measurements."""
    gradient = srcdiff.grad(function, (0, 1), parallel=True, cache=False)
    measured = []
    for length in (2**k for k in range(8, 19)):
        x = np.linspace(0.5, 1.5, length)
        gradient(x, 0.7)
        one, several = least(gradient, (x, 0.7), seconds)
        measured.append((work_of(gradient, x=x, a=0.7, trip_count=length), one, several))
    slower = [k for k, (_, one, several) in enumerate(measured) if several > 0.9 * one]
    first = slower[-1] + 1 if slower else 0
    return (measured[first][0] if first < len(measured) else None), measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each length")
    given = parser.parse_args()
    if numba.config.NUMBA_NUM_THREADS < 2:
        parser.error("there is one thread only")
    found = []
    with (
        mock.patch.object(loops_in_threads, "WORK_OF_BLOCK", 1),
        mock.patch.object(threads, "WORK_OF_BLOCK", 1),
        mock.patch.object(thread_loops, "LIGHT", 0),
    ):
        for function in (polynomial, exponentials, own_elements, rows, recurrences):
            least_work, measured = threshold(function, given.seconds)
            for work, one, several in measured:
                times = f"{1e6 * one:10.1f} us {1e6 * several:10.1f} us {one / several:6.2f}"
                print(f"{function.__name__:14} {work:12,} {times}")
            found += [] if least_work is None else [least_work]
            print(f"{function.__name__:14} threads are faster from {least_work or 'nowhere'} operations on", flush=True)
    if found:
        print(f"median {int(np.median(found)):,}; two blocks need {2 * WORK_OF_BLOCK:,}")


if __name__ == "__main__":
    main()
