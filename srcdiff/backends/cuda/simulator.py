"""A fix for Numba's simulator: one shared array for all threads of a block.

Threads of the simulator are Python threads. Two of them that reach `cuda.shared.array` at the same time may each get a
separate array, and then do not see each other's writes.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any


def share_arrays_safely() -> None:
    """Let threads of the simulator make shared arrays one after the other."""
    simulator: Any = importlib.import_module("numba.cuda.simulator.kernelapi")
    plain: Any = simulator.FakeCUDAShared
    lock = threading.Lock()

    class Shared(plain):  # type: ignore[misc]
        def array(self, shape: Any, dtype: Any, alignment: Any = None) -> Any:
            if shape == 0:  # the memory of the launch, which is there
                return super().array(shape, dtype, alignment)
            frame = sys._getframe(1)
            place = frame.f_code.co_filename, frame.f_lineno
            with lock:
                if place not in self._allocations:
                    self._allocations[place] = plain(0).array(shape, dtype, alignment)
                return self._allocations[place]

    simulator.FakeCUDAShared = Shared
