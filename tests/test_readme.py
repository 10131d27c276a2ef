"""README.md is run: its programs, the outputs that it shows, and the commands that it promises.

`python -m tests.test_readme` writes the outputs into it anew, when they have changed and are right.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
FILE = PROJECT / "README.md"
README = FILE.read_text(encoding="utf-8")
PRINTS = "<!-- prints -->"
"""Stands before a block that is exactly what the program before it prints."""


@dataclass(frozen=True)
class Program:
    """A block of Python, the line where it starts, and, where the README has that, what it prints and its place."""

    line: int
    text: str
    prints: str | None = None
    place: tuple[int, int] = (0, 0)


def programs() -> list[Program]:
    found: list[Program] = []
    for fence in re.finditer(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        language, text = fence.groups()
        if README[: fence.start()].rstrip().endswith(PRINTS):
            found[-1] = Program(found[-1].line, found[-1].text, text, fence.span(2))
        elif language == "python":
            found.append(Program(README.count("\n", 0, fence.start(2)) + 1, text))
    return found


def run(program: Program, folder: Path) -> str:
    file = folder / "readme.py"  # a real file, because srcdiff reads the source of functions
    file.write_text(program.text, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, file.name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.replace(f"{folder}{os.sep}", "").strip("\n") + "\n"


@pytest.mark.parametrize("program", programs(), ids=lambda program: f"line {program.line}")
def test_readme_program_runs_and_prints_what_the_readme_shows(program, tmp_path):
    printed = run(program, tmp_path)
    assert program.prints in (None, printed)


def test_readme_shows_programs_and_outputs():
    assert len(programs()) >= 2
    assert README.count(PRINTS) == sum(program.prints is not None for program in programs())


def test_ci_runs_the_tests_as_the_readme_does():
    (pytest_command,) = set(re.findall(r"python -m pytest[^\n`]*", README.split("\n## ")[0]))
    ci = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"/bin/{pytest_command}\n" in ci.replace('"', "")


def test_readme_knows_no_machine():
    assert not re.findall(r"(?<![\w.])/(?:home|root|work|Users|tmp|opt)/\S*", README)


def write_outputs() -> None:
    readme = README
    with tempfile.TemporaryDirectory() as folder:
        for program in reversed(programs()):  # the places before a text stay where they are
            if program.prints is not None:
                start, end = program.place
                readme = readme[:start] + run(program, Path(folder)) + readme[end:]
    FILE.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    write_outputs()
