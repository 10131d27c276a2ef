"""The stages of Numba while it compiles generated code, for `SRCDIFF_TIMINGS=1` and the progress line.

The time of a stage excludes nested stages: while a function is typed, its callees are compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.core import codegen, event

from srcdiff.backends.python import interpreter
from srcdiff.diagnostics import progress, timings

_START, _OTHER, _TYPING, _LOWERING = "start of the compiler", "bytecode and rewrites", "typing", "lowering to LLVM"
_OPTIMISATION, _LINKING = "LLVM optimisation", "machine code and linking"
_METHODS = {
    "_optimize_functions": _OPTIMISATION,
    "_optimize_final_module": _OPTIMISATION,
    "_finalize_final_module": _LINKING,
}
"""The methods of Numba's code libraries that are separate stages without events of their own."""


class _Clock:
    """How long each stage takes; only one thread compiles at a time."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.seconds: dict[str, float] = {}
        self.since = 0.0

    def count(self) -> None:
        """Count the time until now to the innermost stage."""
        now = timings.now()
        if self.open:
            stage = self.open[-1]
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.since
        self.since = now

    def enter(self, stage: str) -> None:
        self.count()
        self.open.append(stage)
        progress.step(stage)

    def leave(self) -> None:
        """Leave the innermost stage, if any is open: Numba may have started before the listener was installed."""
        self.count()
        if self.open:
            self.open.pop()
        if self.open:
            progress.step(self.open[-1])


def _stage(name: str) -> str:
    """The stage that a pass of Numba's belongs to."""
    if "type_inference" in name:
        return _TYPING
    return _LOWERING if "lowering" in name and "parfor" not in name else _OTHER


@functools.cache
def listen() -> None:
    """Follow Numba from now on."""
    clock = _Clock()

    class Passes(event.Listener):
        def on_start(self, event: Any) -> None:
            clock.enter(_stage(event.data["name"]))

        def on_end(self, event: Any) -> None:
            clock.leave()

    class Functions(event.Listener):
        def __init__(self) -> None:
            self.started: list[tuple[float, dict[str, float]]] = []

        def on_start(self, event: Any) -> None:
            clock.enter(_START)
            self.started.append((timings.now(), dict(clock.seconds)))

        def on_end(self, event: Any) -> None:
            clock.leave()
            if not self.started:
                return
            (start, before), function = self.started.pop(), event.data["dispatcher"].py_func
            if timings.wanted() and (function.__module__ or "").startswith(interpreter.MODULES):
                timings.say(f"compile `{function.__name__}` with Numba", timings.now() - start)
                for stage in (_START, _OTHER, _TYPING, _LOWERING, _OPTIMISATION, _LINKING):
                    timings.say(f"    {stage}", clock.seconds.get(stage, 0.0) - before.get(stage, 0.0))

    event.register("numba:run_pass", Passes())
    event.register("numba:compile", Functions())
    for name, stage in _METHODS.items():
        method = getattr(codegen.CPUCodeLibrary, name)
        setattr(codegen.CPUCodeLibrary, name, _followed(method, stage, clock))


def _followed(method: Callable[..., Any], stage: str, clock: _Clock) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        clock.enter(stage)
        try:
            return method(*args, **kwargs)
        finally:
            clock.leave()

    return call
