"""What a command says: text for people, data for programs, and an exit status; or why it cannot be done."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

DONE, NO, MISUSED = 0, 1, 2
"""Exit statuses: it was done; it was done and the answer is no, or the function is refused; it was asked wrongly."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The text is printed; with `--json` the data is, instead."""

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = DONE
    notes: str = ""
    """What is said beside the answer, where that is for a file or another program."""


class CommandError(Exception):
    """What was asked for cannot be done: the text says why."""


_LATER = 0.5
"""Seconds after which something takes long."""


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what takes long, while it does."""
    if not sys.stderr.isatty():
        yield
        return

    def say() -> None:
        print(f"{what} ...", end="", file=sys.stderr, flush=True)

    later = threading.Timer(_LATER, say)
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        print("\r\033[K", end="", file=sys.stderr, flush=True)
