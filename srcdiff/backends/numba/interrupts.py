"""Holds signals back while Numba compiles, so that Ctrl-C does not leave its compiler broken.

Numba fills tables that the whole process shares: by imports, and by generators that remember how far they have come. An
exception from a signal handler in the middle of that leaves the tables incomplete, and all later compilations fail:
`generator raised StopIteration`, `duplicate registration`, functions that are not found. So the handlers are delayed
until Numba reaches a place where its own exceptions occur: the start of a pass, or of the lowering of a statement.

Python runs handlers in the main thread only; compilations in other threads need none of this.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from srcdiff.backends.numba import nested_calls
from srcdiff.diagnostics import progress
from srcdiff.diagnostics.garbage import seldom_collected

ONE_AT_A_TIME: Any = global_compiler_lock._lock
"""One thread compiles at a time, under Numba's own lock, because Numba holds it when it requests a derivative.

This is the lock itself: an exception could occur between acquiring and using Numba's wrapper of it.
"""

_PATIENCE = 0.1
"""Seconds after which a thread that waits for the lock looks for signals."""

_plain: Any = importlib.import_module("_signal")
"""The C module behind `signal`, which is much faster because it does not make enum members."""

_NUMBERS = tuple(int(number) for number in signal.valid_signals())

_Handler = Callable[[int, FrameType | None], Any]


class _InterruptedError(BaseException):
    """Carries the exception of a handler past `except` clauses in the compiler."""

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised


class _Signals:
    """The signals with Python handlers: handled at once, or delayed until the next check."""

    def __init__(self) -> None:
        self.handlers: dict[int, _Handler] = {}
        self.waiting: dict[int, FrameType | None] = {}
        self.held = False
        self.take: _Handler = self._take  # one object, to be recognised

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.held:
            self.waiting.setdefault(number, frame)
        else:
            self.handlers[number](number, frame)

    def install(self) -> None:
        """Replace all handlers, including those set since the last time."""
        for number in _NUMBERS:
            handler = _plain.getsignal(number)
            if callable(handler) and handler is not self.take:
                self.handlers[number] = handler
                _plain.signal(number, self.take)

    def restore(self) -> None:
        """Restore the handlers, whatever they raise in the meantime."""
        raised = None
        while taken := [n for n in self.handlers if _plain.getsignal(n) is self.take]:
            try:
                for number in taken:
                    _plain.signal(number, self.handlers[number])
            except BaseException as error:  # of a handler: signals are passed on already
                raised = error
        self.handlers = {}
        if raised is not None:
            raise raised

    def deliver(self) -> None:
        """Call the handlers of the signals that have come."""
        raised = None
        while self.waiting:
            number = next(iter(self.waiting))
            frame = self.waiting.pop(number)
            try:
                self.handlers[number](number, frame)
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised

    def look(self) -> None:
        """At a place where an exception does no harm: call the handlers of the signals that have come."""
        if not (self.waiting and self.held and _is_main_thread()):
            return
        self.held = False
        try:
            self.deliver()
            self.install()
        except BaseException as error:
            raise _InterruptedError(error) from None
        finally:
            self.held = True

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        if self.held or not _is_main_thread():
            yield
            return
        inside_handler, raised = bool(self.handlers), None
        try:
            self.held = True
            self.install()
            with self.lock():
                yield
        except _InterruptedError as carried:
            raised = carried.raised
        finally:
            self.held = False
            try:
                self.deliver()
            finally:
                if not inside_handler:
                    self.restore()
        if raised is not None:
            raise raised

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Wait for Numba's lock, which another thread may have for long."""
        while not ONE_AT_A_TIME.acquire(timeout=_PATIENCE):
            self.look()
        try:
            yield
        finally:
            ONE_AT_A_TIME.release()


_signals = _Signals()
look = _signals.look


def held_back() -> contextlib.AbstractContextManager[None]:
    """Hold signals back until Numba can be interrupted, or the end."""
    return _signals.held_back()


def compiled_undisturbed(function: Any) -> Any:
    """The function of Numba, which holds signals back while it is compiled; anything else as it is."""
    if hasattr(function, "_compile_for_args"):
        for name in ("_compile_for_args", "compile"):
            setattr(function, name, _undisturbed(getattr(function, name)))
    return function


def _undisturbed(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        function: Any = getattr(method, "__self__", method)
        shown = progress.shown(f"compiling `{function.__name__}` with Numba")
        with shown, held_back(), nested_calls.allowed(), seldom_collected():
            return method(*args, **kwargs)

    return call


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def look_at_passes(events: Any, kind: str) -> None:
    """Look for signals where a pass of a compiler starts: `events` is its module that tells of them."""

    class Listener(events.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            look()

        def on_end(self, event: Any) -> None:
            pass

    events.register(kind, Listener())


look_at_passes(event, "numba:run_pass")
