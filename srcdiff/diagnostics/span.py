"""A place in the user's source: file, line and columns, with the text of the line."""

from __future__ import annotations

import linecache
from pathlib import Path

from srcdiff.quick_dataclasses import dataclass

SHARED = "<string>"
"""The file name of everything that `eval` and `exec` run. Since Python 3.13, the text of `python -c` has it too."""


@dataclass(frozen=True, slots=True)
class Span:
    file: str
    line: int
    column: int = 0
    end_column: int = 0
    function: str = ""

    @property
    def text(self) -> str:
        """The user's line as they wrote it; nothing if the file has a name that other texts share."""
        return "" if self.file == SHARED else linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def place(self) -> str:
        """The line in words. A call may lead from the user's file into others, so it names the file."""
        return f"line {self.line} of {Path(self.file).name}"

    @property
    def comments(self) -> list[str]:
        """The comments in the lines directly above."""
        found: list[str] = []
        line = self.line - 1
        while (text := linecache.getline(self.file, line).strip()).startswith("#"):
            found.append(text)
            line -= 1
        return found[::-1]
