"""Runs gradients on threads again and again, and compares them bit for bit: `python -m tests.parallel`.

    python -m tests.parallel                          1,000 gradients of each program on two threads
    python -m tests.parallel --runs 100 k_means lu    some of them, fewer runs
    python -m tests.parallel --race                   the race checker over the corpus instead, on the `python` backend

All loops run in threads however short they are, so that threads often meet.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numba
import numpy as np

import srcdiff
from srcdiff.analyses import thread_loops
from srcdiff.backends.numba import threads
from srcdiff.backends.python import race_checker
from srcdiff.passes import loops_in_threads
from tests import programs
from tests.numerical import clone
from tests.parallel.programs import PROGRAMS, Program


@contextlib.contextmanager
def any_work() -> Iterator[None]:
    """Loops are worth threads however short they are."""
    with contextlib.ExitStack() as stack:
        for module in (loops_in_threads, threads):
            stack.enter_context(mock.patch.object(module, "WORK_OF_BLOCK", 1))
        for name in ("FEW", "LIGHT"):
            stack.enter_context(mock.patch.object(thread_loops, name, 0))
        yield


def bits(result: Any) -> list[bytes]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part).tobytes() for part in parts]


def differing_runs(program: Program, runs: int) -> tuple[int, bool, float]:
    """How many gradients differ from the first one, whether that is right, and how long a run takes."""
    gradient = srcdiff.grad(program.function, program.wrt, parallel=True, cache=False)
    expected = srcdiff.grad(program.function, program.wrt, backend="python")(*program.args)
    found = gradient(*program.args)
    is_right = all(np.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(found, expected, strict=True))
    first, start = bits(found), time.perf_counter()
    differing = sum(bits(gradient(*program.args)) != first for _ in range(runs))
    return differing, is_right, (time.perf_counter() - start) / max(runs, 1)


def run_often(names: list[str], runs: int) -> int:
    numba.set_num_threads(2)
    wrong = 0
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        differing, is_right, seconds = differing_runs(program, runs)
        wrong += differing > 0 or not is_right
        said = f"{differing} differ" if differing else "the same bits" if is_right else "OTHER NUMBERS"
        print(f"{program.name:24} {runs} runs, {1e6 * seconds:7.0f} us each: {said}", flush=True)
    return wrong


def look_for_races(names: list[str]) -> int:
    """Gradients of the corpus with each iteration as a block of its own, under the race checker."""
    chosen = [p for p in programs.PROGRAMS if not names or p.function.__name__ in names]
    shared = races = 0
    refused: set[str] = set()
    for program in chosen:
        with race_checker.on(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradient = srcdiff.value_and_grad(program.function, program.wrt, backend="python", parallel=True)
            for at in program.at:
                try:
                    gradient(*clone(at))
                except race_checker.RaceError as error:
                    races += 1
                    print(f"{program.function.__name__}: {error}", flush=True)
                except Exception as error:  # the tests of the corpus look at what programs raise
                    refused.add(type(error).__name__)
            shared += "get_num_threads" in (gradient.latest.compiled.text if gradient.latest is not None else "")
    print(f"{len(chosen)} programs, {shared} with loops in threads, {races} races; raised: {sorted(refused)}")
    return races


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--race", action="store_true", help="run the race checker over the corpus")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which of them (default: all)")
    given = parser.parse_args()
    if numba.config.NUMBA_NUM_THREADS < 2:
        parser.error("there is one thread only")
    with any_work():
        return min(look_for_races(given.names) if given.race else run_often(given.names, given.runs), 1)


if __name__ == "__main__":
    sys.exit(main())
