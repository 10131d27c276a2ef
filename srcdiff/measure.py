"""Time and memory of a call, measured in the process that runs it. Needs the standard library and nothing else."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

Call = Callable[[], object]

#: A batch of calls takes at least this long, so that reading the clock does not count.
SHORTEST_BATCH = 2e-5

#: A call that takes longer, in seconds, is not repeated more than necessary.
LONG = 1.0


def batch_for(call: Call) -> int:
    """How many calls to time together."""
    count = 1
    while least_time(call, 10 * SHORTEST_BATCH, count)[0] * count < SHORTEST_BATCH:
        count *= 2
    return count


def least_time(call: Call, seconds: float, batch: int = 1) -> tuple[float, int]:
    """The least time of a call among as many as fit into the given time, at least one, and their number.

    >>> least, count = least_time(lambda: None, 0.001)
    >>> least < 0.001 and count > 1
    True
    """
    least, count = float("inf"), 0
    clock = time.perf_counter
    collects = gc.isenabled()
    gc.collect()
    gc.disable()  # as `timeit` does: garbage of one call would be collected in another
    end = clock() + seconds
    try:
        while count == 0 or clock() < end:
            start = clock()
            for _ in range(batch):
                call()
            least = min(least, (clock() - start) / batch)
            count += batch
    finally:
        if collects:
            gc.enable()
    return least, count


def least_times(calls: list[Call], seconds: float, rounds: int = 5) -> list[tuple[float, float]]:
    """For interleaved calls: the least time of each, and the deviation of its rounds from it.

    The second number is the median of the least times of the rounds, divided by the least of all: about one on a quiet
    machine.
    """
    batches = [batch_for(call) for call in calls]
    turn = seconds / rounds / len(calls)
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for times, call, batch in zip(found, calls, batches, strict=True):
            times.append(least_time(call, turn, batch)[0])
    return [(min(times), spread(times)) for times in found]


def spread(times: list[float]) -> float:
    """The median of the times over the least of them."""
    return sorted(times)[len(times) // 2] / min(times)


# -- memory ----------------------------------------------------------------------------------------------------------

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h


def peak_memory(call: Call) -> int | None:
    """The most memory, in bytes, that a call holds beyond what the process held before; None where Linux is not.

    It is the high-water mark of the resident memory (VmHWM in /proc/self/status), which counts Python's objects, NumPy,
    Numba, and the allocators of every library alike. The C library is told to give arrays of 64 kB and more back as
    soon as they are freed, so that memory left from earlier calls does not hide what this one takes. Its steps are
    pages: below some tens of kilobytes it says nothing.
    """
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    library.mallopt(_M_MMAP_THRESHOLD, 1 << 16)
    library.mallopt(_M_TRIM_THRESHOLD, 1 << 16)
    try:
        start = time.perf_counter()
        least = _peak_once(call, library)
        if time.perf_counter() - start < LONG:  # others of the process may take memory too: the least of a few
            least = min(least, _peak_once(call, library), _peak_once(call, library))
        return least
    finally:
        library.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        library.mallopt(_M_TRIM_THRESHOLD, 1 << 26)


def _peak_once(call: Call, library: ctypes.CDLL) -> int:
    gc.collect()
    library.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again at what is resident now
    before = _status("VmRSS")
    result = call()
    peak = _status("VmHWM")
    del result
    return max(0, peak - before)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise KeyError(field)
