"""The time of each step of the compiler: `SRCDIFF_TIMINGS=1` prints it to stderr.

`SRCDIFF_TIMINGS=processor` prints processor time, which does not depend on the load of the machine.
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
    """A time in seconds, by the chosen clock."""
    return time.process_time() if os.environ.get("SRCDIFF_TIMINGS") == "processor" else time.perf_counter()


@contextlib.contextmanager
def timed(step: str) -> Iterator[None]:
    """Print the time of the block if `SRCDIFF_TIMINGS` is set."""
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
