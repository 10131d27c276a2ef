"""How long each step of the compiler takes: `SRCDIFF_TIMINGS=1` prints it to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator


def wanted() -> bool:
    return os.environ.get("SRCDIFF_TIMINGS", "") not in ("", "0")


@contextlib.contextmanager
def timed(step: str) -> Iterator[None]:
    """Print how long the block takes, if anybody wants to know."""
    if not wanted():
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        say(step, time.perf_counter() - start)


def say(step: str, seconds: float) -> None:
    print(f"srcdiff: {seconds * 1e3:8.1f} ms  {step}", file=sys.stderr)
