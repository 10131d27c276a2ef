"""The command `srcdiff`."""

import subprocess
import sys
from pathlib import Path

import pytest

from srcdiff.cli import gradient_by_tape, main

PROJECT = Path(__file__).parent.parent


def test_demo_shows_code_a_checked_gradient_and_times(capsys):
    assert main(["demo", "--seconds", "0"]) == 0
    printed = capsys.readouterr().out
    for part in ("def misfit(", "# reverse sweep", "conductivity_bar", "from the tape", "times the compiled function"):
        assert part in printed


def test_tape_of_the_demo_differentiates_each_of_its_operations():
    def every_operation(x):
        return (2.0 - x[0]) * x[1] + (x[0] + 1.0) ** 3 - 4.0 * (x[1] - 0.5) + (1.0 + x[0] - x[1])

    # by hand: -x1 + 3 (x0 + 1)^2 + 1, and 2 - x0 - 4 - 1
    assert [-5.0 + 48.0 + 1.0, 2.0 - 3.0 - 4.0 - 1.0] == gradient_by_tape(every_operation, [3.0, 5.0])


def test_tape_of_the_demo_gives_zero_for_a_constant():
    assert [0.0] == gradient_by_tape(lambda x: 1.0, [3.0])


def test_a_command_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_of_process:
        main(["differentiate"])
    assert exit_of_process.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.smoke
def test_package_runs_as_a_module():
    finished = subprocess.run(
        [sys.executable, "-m", "srcdiff", "--help"], cwd=PROJECT, capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert "demo" in finished.stdout
