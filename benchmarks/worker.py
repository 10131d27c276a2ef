"""Runs one system in a process of its own: `python -m benchmarks.worker SYSTEM`.

It reads commands and writes answers, one JSON object a line:

- at the start: the time to import the system, and its version
- `{"do": "first", "program": name, "size": n, "save": path}`: everything up to the first gradient of the program at
  this size; the gradients go to the file, and the call is what the next commands measure
- `{"do": "time", "seconds": s}`: the least time of a call, among those that fit into the given time
- `{"do": "memory"}`: the peak of the memory during a call

What the system refuses or raises is an answer too: `{"refused": reason}`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.systems import SYSTEMS, RefusedError


def _measure() -> Any:
    """Load `srcdiff.measure` alone, because importing the package needs Numba, which other environments lack."""
    package = importlib.util.find_spec("srcdiff")
    assert package is not None
    assert package.submodule_search_locations
    file = Path(package.submodule_search_locations[0], "measure.py")
    found = importlib.util.spec_from_file_location("srcdiff_measure", file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


measure = _measure()


class Worker:
    """The contestant, and the call that is measured."""

    def __init__(self, system: str) -> None:
        self.system = SYSTEMS[system]
        start = time.perf_counter()
        self.module = importlib.import_module(f"benchmarks.systems.{self.system.module}")
        self.import_seconds = time.perf_counter() - start
        self.call: Callable[[], object] = lambda: None
        self.batch = 1

    def first(self, program: str, size: int, save: str) -> dict[str, Any]:
        self.call = lambda: None  # free the previous program
        chosen = programs.load(program)
        arguments = chosen.arguments(size)
        start, busy = time.perf_counter(), time.process_time()
        self.call = self.module.prepare(chosen, arguments, self.system.variant)
        result = self.call()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        value, gradients = self.module.to_numpy(result)
        np.savez(save, *gradients)
        self.batch = 0
        return {"seconds": seconds, "busy": busy, "value": value, "notes": list(getattr(self.module, "notes", ()))}

    def time(self, seconds: float) -> dict[str, Any]:
        self.batch = self.batch or measure.batch_for(self.call)
        least, count = measure.least_time(self.call, seconds, self.batch)
        return {"seconds": least, "calls": count}

    def memory(self) -> dict[str, Any]:
        peak = measure.peak_memory(self.call)
        held = getattr(self.module, "held_bytes", lambda: 0)()  # memory that is held from call to call counts too
        return {"peak": None if peak is None else peak + held}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        do = command.pop("do")
        try:
            answer: dict[str, Any] = getattr(self, do)(**command)
        except RefusedError as refused:
            return {"refused": str(refused)}
        except Exception as error:  # any exception of a library is reported
            traceback.print_exc()
            return {"refused": getattr(self.module, "reason_of", first_line)(error)}
        return answer


def first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:300]


def main(system: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    worker = Worker(system)
    print(json.dumps({"import": worker.import_seconds, "version": worker.module.version()}), file=answers)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
