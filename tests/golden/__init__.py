"""Golden files: a function, its arguments, and below `# output` the source that srcdiff writes.

To add one, write the upper half into tests/golden/NAME.txt and run `python -m tests.golden --update`. Changes of the
output are then visible in the diff, and are judged there.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import srcdiff

FOLDER = Path(__file__).parent
OUTPUT = "# output\n"


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden file: the upper half, and the output below it."""

    path: Path
    primal: str
    output: str

    @property
    def function(self) -> Callable[..., Any]:
        """The function to differentiate: the last one in the upper half."""
        name = re.findall(r"^def (\w+)", self.primal, re.MULTILINE)[-1]
        file = f"tests/golden/{self.path.name}"  # the output must not contain the folder of this machine
        linecache.cache[file] = (len(self.primal), None, self.primal.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"__name__": f"tests.golden.{self.path.stem}"}
        exec(compile(self.primal, file, "exec"), namespace)
        return cast(Callable[..., Any], namespace[name])

    @property
    def arguments(self) -> tuple[Any, ...]:
        written = re.findall(r"^# arguments: (.*)$", self.primal, re.MULTILINE)[-1]
        return cast(tuple[Any, ...], eval(f"({written},)", {"np": np}))

    def generated(self) -> str:
        """The source that srcdiff writes now."""
        return srcdiff.source(self.function, *self.arguments)

    def text(self, output: str) -> str:
        return self.primal + OUTPUT + output


def read_golden(path: Path) -> Golden:
    primal, _, output = path.read_text(encoding="utf-8").partition(OUTPUT)
    return Golden(path, primal, output)


def all_golden() -> list[Golden]:
    return [read_golden(path) for path in sorted(FOLDER.glob("*.txt"))]
