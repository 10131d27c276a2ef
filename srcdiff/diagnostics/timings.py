"""How long each step of the compiler takes: `SRCDIFF_TIMINGS=1` prints it to stderr.

`SRCDIFF_TIMINGS=processor` prints the time of the processor instead, which others who use the machine do not lengthen.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator


def wanted() -> bool:
    return os.environ.get("SRCDIFF_TIMINGS", "") not in ("", "0")


def now() -> float:
    """A time in seconds, by the clock that is asked for."""
    return time.process_time() if os.environ.get("SRCDIFF_TIMINGS") == "processor" else time.perf_counter()


@contextlib.contextmanager
def timed(step: str) -> Iterator[None]:
    """Print how long the block takes, if anybody wants to know."""
    if not wanted():
        yield
        return
    start = now()
    try:
        yield
    finally:
        say(step, now() - start)


def say(step: str, seconds: float) -> None:
    print(f"srcdiff: {seconds * 1e3:8.1f} ms  {step}", file=sys.stderr)
