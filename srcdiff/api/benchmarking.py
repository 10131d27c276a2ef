"""The speed of the gradient of a user's own function, compared with the function itself and with two tapes."""

from __future__ import annotations

import inspect
import re
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcdiff import measure
from srcdiff.api.chosen_arguments import chosen_names
from srcdiff.api.reverse import value_and_grad
from srcdiff.backends.numba import memory_pool
from srcdiff.backends.numba.numba_cpu import compiler
from srcdiff.diagnostics import DifferentiationError
from srcdiff.diagnostics.options import SECONDS, Wrt
from srcdiff.frontend.source.capture import plain_function
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.trees import VALUES

#: Rounds further apart than this: the machine is busy with something else.
NOISY = 1.15

#: Two exact methods differ by rounding, which some programs amplify.
_AGREE = 1e-6


@dataclass(frozen=True, slots=True)
class Row:
    """One way to run the function or its gradient. Times in seconds, memory in bytes; a refusal has its reason."""

    name: str
    seconds: float | None = None
    first_call: float | None = None
    peak: int | None = None
    spread: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The measurements of `benchmark`; prints as a table."""

    function: str
    wrt: str
    primal: Row
    srcdiff: Row
    eager_tape: Row
    compiled_tape: Row

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.primal, self.srcdiff, self.eager_tape, self.compiled_tape

    @property
    def noisy(self) -> bool:
        """Whether the rounds of some row differ so much that its least time may not be its time."""
        return any(row.spread is not None and row.spread > NOISY for row in self.rows)

    def ratio(self, row: Row) -> float | None:
        """The time of a row in times of the function itself."""
        return None if row.seconds is None or self.primal.seconds is None else row.seconds / self.primal.seconds

    def speed_up(self, row: Row) -> float | None:
        """How many times faster srcdiff is."""
        return None if row.seconds is None or self.srcdiff.seconds is None else row.seconds / self.srcdiff.seconds

    def kept(self, row: Row) -> int | None:
        """The peak of memory beyond that of the function itself."""
        return None if row.peak is None or self.primal.peak is None else max(0, row.peak - self.primal.peak)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.function}, value and gradient with respect to {self.wrt}: the fastest of many alternating calls"
        yield ""
        yield f"{'':18}{'time':>12}{'x function':>12}{'srcdiff is':>16}{'memory kept':>14}{'first call':>12}"
        for row in self.rows:
            is_tape = row is not self.primal and row is not self.srcdiff
            cells = (
                format_time(row.seconds),
                "" if row is self.primal else format_number(self.ratio(row)),
                _faster(self.speed_up(row)) if is_tape else "",
                "" if row is self.primal else format_memory(self.kept(row)),
                format_time(row.first_call),
            )
            yield f"{row.name:18}" + "".join(
                f"{cell:>{width}}" for cell, width in zip(cells, (12, 12, 16, 14, 12), strict=True)
            )
        notes = [f"{row.name}: {row.note}" for row in self.rows if row.note]
        if self.noisy:
            notes.append("the machine was busy: rounds differ by more than 15 %, run it again to be sure")
        if notes:
            yield ""
            yield from notes


def format_time(seconds: float | None) -> str:
    """A time with the unit that suits it.

    >>> format_time(0.00123), format_time(None)
    ('1.23 ms', '-')
    """
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{format_number(seconds / size)} {unit}"
    return f"{format_number(seconds / 1e-6)} µs"


def format_number(x: float | None) -> str:
    """Three digits.

    >>> format_number(1234.5), format_number(1.2345), format_number(0.01234)
    ('1234', '1.23', '0.012')
    """
    if x is None:
        return "-"
    return f"{x:.0f}" if x >= 100.0 else f"{x:.1f}" if x >= 10.0 else f"{x:.2f}" if x >= 0.1 else f"{x:.2g}"


def format_memory(size: int | None) -> str:
    """Bytes, in megabytes; the measurement is not finer than some tens of kilobytes.

    >>> format_memory(12_300_000), format_memory(4096)
    ('12.3 MB', '< 0.1 MB')
    """
    if size is None:
        return "-"
    return "< 0.1 MB" if size < 100_000 else f"{format_number(size / 1e6)} MB"


def _faster(times: float | None) -> str:
    if times is None:
        return "-"
    return f"{format_number(times)}x faster" if times >= 1.0 else f"{format_number(1.0 / times)}x slower"


def compiled_primal(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], str]:
    """The function compiled by Numba with the options of srcdiff's gradients; itself and the reason if it cannot be."""
    from numba.core.errors import NumbaError

    compiled = _with_compiled_helpers(function)
    try:
        compiled(*args)
    except (NumbaError, NotImplementedError) as error:
        return function, f"run by NumPy, because Numba does not compile it: {reason_of(error)}"
    return compiled, ""


def _with_compiled_helpers(function: Callable[..., Any]) -> Any:
    """Compile the Python functions that a function calls: Numba calls only functions that it has compiled."""
    plain = plain_function(function)
    if plain is None:
        raise TypeError(f"{function!r} is not a Python function")
    names = dict(plain.__globals__)
    for name in plain.__code__.co_names:
        helper = names.get(name)
        if isinstance(helper, types.FunctionType) and not helper.__module__.startswith("numpy"):
            names[name] = helper if helper is plain else _with_compiled_helpers(helper)
    copied = types.FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
    copied.__kwdefaults__ = plain.__kwdefaults__
    compiled = compiler({})(copied)  # as srcdiff compiles its gradient
    names[plain.__name__] = compiled if names.get(plain.__name__) is plain else names.get(plain.__name__)
    return compiled


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, DifferentiationError):
        return "; ".join(f"{problem.code} {problem.message}" for problem in error.problems)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Numba's first line names the compiler step; the text of objects contains their address
    telling = [line for line in lines if not line.startswith("Failed in nopython mode")]
    text = re.sub(r" at 0x[0-9a-f]+", "", (telling or lines or [""])[0])
    return f"{type(error).__name__}: {text}"[:300]


def benchmark(f: Callable[..., Any], *args: Any, wrt: Wrt = 0, seconds: float = 4.0) -> Benchmark:
    """Measure the time and memory of the gradient of `f`, next to `f` itself and two tapes.

    One tape records every call and replays it in Python; the other one is compiled by Numba.

    Args:
        f: A Python function that returns one float.
        *args: The arguments at which to measure.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        seconds: How long to measure, for all four together.

    Returns:
        The measurements, with one row for each of the four. Print it to read them.
    """
    from srcdiff import tape  # it compiles loops when it is imported

    plain = plain_function(f)
    if plain is None:
        raise TypeError(f"{f!r} is not a Python function")
    SECONDS.checked("seconds", seconds)
    names = tuple(inspect.signature(plain, follow_wrapped=False).parameters)
    positions = tuple(names.index(n) for n in chosen_names(wrt, names, plain.__name__))
    start = time.perf_counter()
    primal, note = compiled_primal(plain, args)
    first = {"function": time.perf_counter() - start}
    ways: dict[str, Callable[..., Any]] = {
        "function": primal,
        "srcdiff": value_and_grad(plain, wrt=tuple(names[p] for p in positions), cache=False),
        "eager tape": tape.eager.value_and_grad(plain, positions),
        "compiled tape": tape.compiled.value_and_grad(plain, positions),
    }
    notes = dict.fromkeys(ways, "") | {"function": note}
    results: dict[str, Any] = {}
    for name, way in ways.items():
        start = time.perf_counter()
        try:
            results[name] = way(*args)
        except Exception as error:  # of a tape or of the function: its row shows it
            notes[name] = reason_of(error)
            continue
        first.setdefault(name, time.perf_counter() - start)
    expected = results.get("srcdiff") or results.get("eager tape")
    for name in results.keys() - {"function"}:
        notes[name] = _difference(results[name], expected) or notes[name]
    calls = {name: _call(ways[name], args) for name in results}
    times = dict(zip(calls, measure.least_times(list(calls.values()), seconds), strict=True))
    peaks = {name: _peak(ways[name], call) for name, call in calls.items()}
    rows = [
        Row(name, times[name][0], first[name], peaks[name], times[name][1], notes[name])
        if name in results
        else Row(name, note=notes[name])
        for name in ways
    ]
    return Benchmark(plain.__qualname__, ", ".join(f"`{names[p]}`" for p in positions), *rows)


def _peak(way: Callable[..., Any], call: Callable[[], Any]) -> int | None:
    """The peak memory of a call, with the memory that is held for the next call: a tape's record, srcdiff's pool."""
    memory_pool.release_all()
    peak = measure.peak_memory(call)
    return None if peak is None else peak + getattr(way, "nbytes", 0) + memory_pool.held_bytes()


def _call(way: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: way(*args)


def _difference(result: Any, expected: Any) -> str:
    """A note if two values and gradients differ; empty if they agree."""
    got, right = _flat(result), _flat(expected)
    scale = float(np.max(np.abs(right), initial=0.0))
    if got.shape == right.shape and np.allclose(got, right, rtol=_AGREE, atol=_AGREE * scale, equal_nan=True):
        return ""
    return "its gradient differs from srcdiff's: one of them is wrong, please report it"


def _flat(x: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in VALUES.leaves(x))])
