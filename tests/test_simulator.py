"""Runs the CUDA tests in Numba's simulator, in new processes, because the simulator is chosen at their start."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "cuda"
LONG = ("test_functions", "test_kernels")
FILES = sorted(FOLDER.glob("test_*.py"))
PARTS = {name: [FOLDER / f"{name}.py"] for name in LONG} | {"others": [f for f in FILES if f.stem not in LONG]}
"""The files that share a process: its start takes as long as all tests of a short file."""


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM") == "1", reason="this process is simulated already")
@pytest.mark.parametrize("part", PARTS)
def test_in_the_simulator(part: str) -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *map(str, PARTS[part])]

    run = subprocess.run(
        command, env=environment, cwd=FOLDER.parent.parent, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
