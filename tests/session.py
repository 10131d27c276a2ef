"""Runs programs one after the other in one namespace, and returns the output of each."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def printed_by(files: Sequence[str]) -> list[str]:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    os.environ["COLUMNS"] = "160"  # the width of the terminal in the pages
    for file in files:
        names["__file__"] = file
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), names)
        printed.append(out.getvalue())
    return printed


if __name__ == "__main__":
    print(json.dumps(printed_by(sys.argv[1:])))
