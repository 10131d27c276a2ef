"""Endless recursion raises `RecursionError` in compiled code, in every thread, and the process goes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from srcdiff.backends.numba import stack

PROJECT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.numba,
    pytest.mark.skipif(not stack.is_supported(), reason="nothing looks at the stack on this system"),
]


def recursing(*how: str, limit: str = "8192", **environment: str) -> str:
    """The output of a process that recurses. A crash must not end the tests."""
    command = ["sh", "-c", f'ulimit -S -s {limit} && exec "$@"', "sh", sys.executable, "-m", "tests.backends.recursing"]
    variables = {**os.environ, "PYTHONPATH": str(PROJECT), **environment}
    done = subprocess.run([*command, *how], cwd=PROJECT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    assert done.stdout.endswith("alive\n")
    return done.stderr


def test_recursion_that_is_too_deep_raises_in_every_mode():
    recursing("every_mode")


def test_it_can_be_raised_again_and_again():
    recursing("many_times")


def test_a_hundred_thousand_frames_are_no_problem():
    recursing("deep")


def test_threads_with_small_stacks_raise():
    recursing("small_thread")


def test_threads_that_reuse_the_stack_of_another_thread_raise():
    recursing("other_threads")


def test_functions_of_the_user_get_the_exception_in_threads_at_once():
    recursing("at_once")


def test_functions_called_during_recursion_may_recurse_too():
    recursing("inside_print")


def test_a_forked_process_raises():
    recursing("after_fork")


def test_a_limit_that_is_raised_counts():
    recursing("raised_limit")


@pytest.mark.parametrize("limit", ["1024", "unlimited"])
def test_other_limits_of_the_main_thread(limit):
    recursing("every_mode", limit=limit)


def test_machine_code_of_another_process_raises(tmp_path):
    first, second = (recursing("every_mode", SRCDIFF_CACHE_DIR=str(tmp_path), SRCDIFF_TIMINGS="1") for _ in range(2))

    assert "with Numba" in first
    assert "load machine code" in second
    assert [] == re.findall(r"compile `(\w+)` with Numba", second)
