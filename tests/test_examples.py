"""Every example runs as a newcomer runs it, and the answers that it checks are right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))


@pytest.mark.smoke
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_finds_its_answers_right(example, tmp_path):
    finished = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip(), "an example shows something"


def test_examples_are_numbered_in_the_order_to_read_them():
    expected = [f"{number:02}" for number in range(1, len(EXAMPLES) + 1)]
    assert expected == [example.stem.split("_")[0] for example in EXAMPLES]
