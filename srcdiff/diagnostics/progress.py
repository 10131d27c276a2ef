"""A line on the terminal that shows the current step of a first call that takes more than two seconds:

    srcdiff: `loss`: loop fusion, 3 s

A thread writes the line to stderr if stderr is a terminal, and erases it at the end. `SRCDIFF_PROGRESS=0` in the
environment turns it off.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator

from srcdiff.diagnostics import timings

PATIENCE = 2.0
"""The line appears after this number of seconds."""
PERIOD = 0.2
"""The number of seconds between two updates."""
_PAUSE = 0.5
"""Work that starts within this number of seconds continues the count of the work before: reading, then compiling."""
_ERASE = "\r\x1b[K"

_shown = threading.Lock()
"""Held by the thread whose work is shown."""


class _Work:
    """The work that is shown."""

    what = step = ""
    started = ended = float("-inf")

    def line(self) -> str:
        seconds = int(time.monotonic() - self.started)
        text = f"srcdiff: {self.what}{': ' if self.step else ''}{self.step}, {seconds} s"
        return text[: max(shutil.get_terminal_size().columns - 1, 10)]


_work = _Work()


def is_wanted() -> bool:
    """Whether to show the line: on a terminal, unless it is turned off or stderr shows the timings of the steps."""
    if os.environ.get("SRCDIFF_PROGRESS", "") == "0" or os.environ.get("TERM") == "dumb" or timings.wanted():
        return False
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (ValueError, AttributeError):  # stderr is closed or replaced
        return False


def step(name: str) -> None:
    """Set the current step."""
    _work.step = name


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """Show the work of the block if it takes long. Only one block is shown at a time, the outermost that came first."""
    if not is_wanted() or not _shown.acquire(blocking=False):
        yield
        return
    try:
        now = time.monotonic()
        _work.started = _work.started if now - _work.ended < _PAUSE else now
        _work.what, _work.step = what, ""
        with _shown_by_thread():
            yield
    finally:
        _work.ended = time.monotonic()
        _shown.release()


@contextlib.contextmanager
def _shown_by_thread() -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(done,), name="srcdiff progress", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down, or there are too many threads
        yield
        return
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(done: threading.Event) -> None:
    if done.wait(max(0.0, _work.started + PATIENCE - time.monotonic())):
        return
    while True:
        _write(_ERASE + _work.line())
        if done.wait(PERIOD):
            break
    _write(_ERASE)


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the terminal is gone
        sys.stderr.write(text)
        sys.stderr.flush()
