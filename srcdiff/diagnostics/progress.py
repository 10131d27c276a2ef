"""A line on the terminal that says what a first call is doing, if it takes more than two seconds:

    srcdiff: `loss`: loop fusion, 3 s

It is erased at the end. It is written to stderr if that is a terminal, by a thread of its own that waits meanwhile.
`SRCDIFF_PROGRESS=0` in the environment turns it off.
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
"""After how many seconds the line is shown."""
PERIOD = 0.2
"""In how many seconds it is written once."""
_PAUSE = 0.5
"""In fewer seconds than this, what begins goes on with what has ended: reading, and then compiling."""
_ERASE = "\r\x1b[K"

_shown = threading.Lock()
"""Of the thread whose work is shown, if there is any."""


class _Work:
    """What is shown."""

    what = step = ""
    started = ended = float("-inf")

    def line(self) -> str:
        seconds = int(time.monotonic() - self.started)
        text = f"srcdiff: {self.what}{': ' if self.step else ''}{self.step}, {seconds} s"
        return text[: max(shutil.get_terminal_size().columns - 1, 10)]


_work = _Work()


def is_wanted() -> bool:
    """Whether somebody may be looking: not where the times of all steps are printed to the same place."""
    if os.environ.get("SRCDIFF_PROGRESS", "") == "0" or os.environ.get("TERM") == "dumb" or timings.wanted():
        return False
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (ValueError, AttributeError):  # it is closed, or something that stands in for it
        return False


def step(name: str) -> None:
    """Note what the work has come to."""
    _work.step = name


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """Show what is being done, if the block takes long; inside of another block, or beside one, that is shown."""
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
    except RuntimeError:  # the interpreter ends, or there are too many threads
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
