"""Runs the CUDA tests in Numba's simulator, in a new process, because the simulator is chosen at its start."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "cuda"
FILES = sorted(FOLDER.glob("test_*.py"))


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM") == "1", reason="this process is simulated already")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_in_the_simulator(file: Path) -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]

    run = subprocess.run(
        command, env=environment, cwd=FOLDER.parent.parent, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
