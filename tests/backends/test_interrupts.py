"""Ctrl-C and other signals during compilation: they interrupt it, and later compilations work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.numba,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each case forks a process that has not compiled"),
]

MOMENTS = [
    ("stream_list", 1, "SIGINT", "default"),
    ("stream_list", 30, "SIGINT", "default"),
    ("stream_list", 5, "SIGALRM", "raises"),
    ("BaseContext.install_registry", 2, "SIGINT", "default"),
    ("BaseContext._insert_getattr_defn", 3, "SIGALRM", "raises"),
    ("OverloadSelector.append", 500, "SIGINT", "default"),
    ("Registry.lower", 200, "SIGINT", "default"),
    ("_CompilerLock.acquire", 2, "SIGINT", "default"),
    ("_CompilerLock.release", 3, "SIGINT", "default"),
    ("TypeInferer.propagate", 1, "SIGALRM", "raises"),
    ("Lower.lower_assign", 10, "SIGINT", "default"),
    ("CPUCodeLibrary.finalize", 1, "SIGINT", "default"),
    ("compile_request", 1, "SIGINT", "default"),
    ("stream_list", 20, "SIGALRM", "returns"),
    ("Lower.lower_assign", 5, "SIGUSR1", "returns"),
]


@pytest.fixture(scope="module")
def found() -> Any:
    script = Path(__file__).parent / "interrupted.py"
    root = script.parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    run = subprocess.run(
        [sys.executable, str(script), json.dumps(MOMENTS)], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("number", range(len(MOMENTS)), ids=["-".join(map(str, m)) for m in MOMENTS])
def test_interrupted_compilation_leaves_a_compiler_that_works(found: Any, number: int) -> None:
    *_, handler = MOMENTS[number]
    one = found[0][number]

    assert one["sent"]
    assert one["raised"] == {"default": "KeyboardInterrupt", "raises": "Timeout", "returns": None}[handler]
    assert len(one["handled"]) == (handler == "returns")
    assert one["restored"]
    assert "broken" not in one, one["broken"]
    assert (one["second"], one["first"], one["thread"]) == (12.0, [2.0, 4.0], True)


def test_thread_that_waits_for_the_compiler_can_be_interrupted(found: Any) -> None:
    waiting = found[1]
    assert waiting["raised"] == "KeyboardInterrupt"
    assert waiting["is_held"]  # the thread that compiles still has the lock: nobody waited for its end
    assert waiting["second"] == 12.0
