"""Calls free their memory. `python -m tests.leaks` checks the same with more calls."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import srcdiff
from tests.leaks import BACKENDS

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of a process")


@pytest.mark.numba
@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_is_flat(backend: str) -> None:
    command = [sys.executable, "-m", "tests.leaks", "--backend", backend, "--calls", "1000", "--new-calls", "60"]
    run = subprocess.run(
        command, cwd=Path(__file__).parent.parent, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.numba
def test_function_that_is_in_no_file_is_compiled_once() -> None:
    namespace: dict[str, object] = {}
    text = "def typed_in(x):\n    return x * x * 5.0\n"
    linecache.cache["<typed in>"] = (len(text), None, text.splitlines(keepends=True), "<typed in>")
    exec(compile(text, "<typed in>", "exec"), namespace)
    first, second = srcdiff.grad(namespace["typed_in"]), srcdiff.grad(namespace["typed_in"])  # type: ignore[arg-type]
    assert first(2.0) == second(2.0) == 20.0
    assert first.latest.function is second.latest.function  # type: ignore[union-attr]
    assert srcdiff.grad(namespace["typed_in"], fastmath=False)(2.0) == 20.0  # type: ignore[arg-type]


@pytest.mark.numba
def test_loop_over_a_batch_is_compiled_once() -> None:
    batches = [srcdiff.batched(srcdiff.grad(lambda x: x * x)) for _ in range(2)]
    assert [batched(np.array([1.0, 2.0])).tolist() for batched in batches] == [[2.0, 4.0]] * 2
    first, second = (next(iter(batched.loops.values())) for batched in batches)
    assert first is second
