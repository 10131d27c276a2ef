"""The answer of a command: text for people, data for programs, and an exit status."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

DONE, NO, MISUSED = 0, 1, 2
"""Exit statuses: success; a check that fails or a function that is refused; wrong usage."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The text is printed, or the data with `--json`."""

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = DONE
    notes: str = ""
    """Notes for stderr, when the text is for a file or another program."""


class CommandError(Exception):
    """The command cannot be carried out; the message gives the reason."""


_LATER = 0.5
"""The number of seconds before a message appears."""


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show a message on the terminal while the block takes long."""
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
