"""Golden files: a function, the arguments it is differentiated at, and below `# output` the source srcdiff writes.

A new one is made by writing the upper half into tests/golden/NAME.txt and running `python -m tests.golden --update`.
What changed in the output is then seen, and judged, in the diff.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import srcdiff

FOLDER = Path(__file__).parent
OUTPUT = "# output\n"


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden file: the upper half, and what it says below."""

    path: Path
    primal: str
    output: str

    def generated(self) -> str:
        """What srcdiff writes today; the function asked for is the last one that the file defines."""
        name = re.findall(r"^def (\w+)", self.primal, re.MULTILINE)[-1]
        arguments = re.findall(r"^# arguments: (.*)$", self.primal, re.MULTILINE)[-1]
        file = f"tests/golden/{self.path.name}"  # without the folder of this machine: it may show in what is written
        linecache.cache[file] = (len(self.primal), None, self.primal.splitlines(keepends=True), file)
        namespace: dict[str, object] = {"__name__": f"tests.golden.{self.path.stem}"}
        exec(compile(self.primal, file, "exec"), namespace)
        return srcdiff.source(namespace[name], *eval(f"({arguments},)", {"np": np}))  # type: ignore[arg-type]

    def text(self, output: str) -> str:
        return self.primal + OUTPUT + output


def read_golden(path: Path) -> Golden:
    primal, _, output = path.read_text(encoding="utf-8").partition(OUTPUT)
    return Golden(path, primal, output)


def all_golden() -> list[Golden]:
    return [read_golden(path) for path in sorted(FOLDER.glob("*.txt"))]
