"""`srcdiff demo`: a function, its generated adjoint, the gradient checked in two ways, and the time of each."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from srcdiff.cli import given
from srcdiff.cli.answer import Answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def options(parser: argparse.ArgumentParser) -> None:
    given.add_seconds(parser, 3.0)


def run(chosen: argparse.Namespace) -> Answer:
    """Show the demonstration, or with `--json` only the times."""
    if not chosen.json:
        show_demonstration(chosen.seconds)
        return Answer()
    with contextlib.redirect_stdout(io.StringIO()):
        return Answer("", show_demonstration(chosen.seconds))


def misfit(conductivity: Floats, initial: Floats, measured: Floats) -> float:
    """Let heat flow along a rod, step by step and in place, and compare the end with a measurement."""
    temperature = initial.copy()
    for _ in range(100):
        for i in range(1, len(temperature) - 1):
            flow = temperature[i - 1] - 2.0 * temperature[i] + temperature[i + 1]
            if flow > 0.0:
                temperature[i] += conductivity[i] * flow
            else:
                temperature[i] += 0.5 * conductivity[i] * flow  # cools more slowly than it warms
    total = 0.0
    for i in range(len(temperature)):
        total += (temperature[i] - measured[i]) ** 2
    return total


def show_demonstration(seconds: float) -> dict[str, float]:
    """A function, its generated adjoint, the gradient checked in two ways, and the time of each."""
    import numpy as np

    import srcdiff
    from srcdiff.backends.numba.numba_cpu import compiler

    random = np.random.default_rng(0)
    conductivity = random.uniform(0.1, 0.4, 64)
    initial = random.uniform(0.0, 1.0, 64)
    measured = np.linspace(1.0, 0.0, 64)
    gradient = srcdiff.grad(misfit, wrt="conductivity", cache=False)

    print_title("An ordinary function: loops, a branch, an array updated in place")
    print(inspect.getsource(misfit))

    start = time.perf_counter()
    conductivity_bar = gradient(conductivity, initial, measured)
    first_call = time.perf_counter() - start
    print_title(f"Its gradient, as srcdiff wrote it (written and compiled in {first_call:.1f} s)")
    print(gradient.source)

    lists = conductivity.tolist(), initial.tolist(), measured.tolist()
    compiled = compiler({})(misfit)  # as srcdiff compiles its gradient
    differences = central_differences(lambda moved: compiled(moved, initial, measured), conductivity)
    print_title("The same gradient in three ways")
    print_gradients(conductivity_bar, differences, np.array(gradient_by_tape(misfit, *lists)))

    plain, tape, primal, reverse = least_times(
        [
            lambda: misfit(*lists),
            lambda: gradient_by_tape(misfit, *lists),
            lambda: compiled(conductivity, initial, measured),
            lambda: gradient(conductivity, initial, measured),
        ],
        seconds,
    )
    print_title("What it costs: the least time of many interleaved calls")
    print_time("the function, run by Python", plain)
    print_time("its gradient by a tape in Python", tape, f"{tape / plain:.1f} times the function in Python")
    print_time("the function, compiled by Numba", primal)
    print_time("its gradient by srcdiff", reverse, f"{reverse / primal:.1f} times the compiled function")
    print("\n  The tape writes down every operation of every call, then replays it. srcdiff wrote the reverse program")
    print(f"  once, keeps only what it reads, and Numba compiled it: {tape / reverse:.0f} times faster here.")
    return {"python": plain, "tape": tape, "compiled": primal, "gradient": reverse, "first_call": first_call}


def print_title(text: str) -> None:
    print(f"\n# {text}\n")


def print_time(what: str, seconds: float, compared: str = "") -> None:
    print(f"  {what:34}{seconds * 1e6:10.1f} µs   {compared}".rstrip())


def print_gradients(by_srcdiff: Floats, by_differences: Floats, by_tape: Floats) -> None:
    """Print the first components and the largest difference; raise if the difference is too large."""
    import numpy as np

    print("  component          srcdiff      differences             tape")
    for i in range(1, 5):
        print(f"  {i:9} {by_srcdiff[i]:16.10f} {by_differences[i]:16.10f} {by_tape[i]:16.10f}")
    scale = float(np.max(np.abs(by_tape)))
    from_differences = float(np.max(np.abs(by_srcdiff - by_differences))) / scale
    from_tape = float(np.max(np.abs(by_srcdiff - by_tape))) / scale
    print(f"\n  Over all {len(by_srcdiff)} components, srcdiff is at most {from_differences:.0e} away from differences")
    print(f"  and {from_tape:.0e} from the tape, relative to the largest component.")
    # Central differences with this step are good to 1e-8 or so; two exact methods differ by rounding alone.
    if from_differences > 1e-6 or from_tape > 1e-12:
        raise AssertionError("the gradients differ: this is an error in srcdiff, please report it")


def central_differences(function: Callable[[Floats], float], point: Floats, step: float = 1e-6) -> Floats:
    """One component after the other: twice as many calls as components."""
    import numpy as np

    result = np.empty_like(point)
    for i in range(len(point)):
        moved = point.copy()
        moved[i] = point[i] + step
        above = function(moved)
        moved[i] = point[i] - step
        result[i] = (above - function(moved)) / (2.0 * step)
    return result


def least_times(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of each call. The calls are interleaved, so that load on the machine affects all of them."""
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    first_round = True
    while first_round or time.perf_counter() < end:
        first_round = False
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            least[k] = min(least[k], time.perf_counter() - start)
    return least


# A tape, for comparison ------------------------------------------------------------------------------------------

Tape = list[tuple[int, float, int, float]]
"""For every operation: which earlier values it read, and the partial derivative with respect to each."""

_NOWHERE = 0
"""The position of all constants: their adjoints are collected there and never read."""


class Recorded:
    """A number that records the operations on it."""

    __slots__ = ("place", "tape", "value")

    def __init__(self, tape: Tape, value: float, left: int, by_left: float, right: int, by_right: float) -> None:
        self.tape = tape
        self.value = value
        self.place = len(tape)
        tape.append((left, by_left, right, by_right))

    def __add__(self, other: Recorded | float) -> Recorded:
        value, place = (other.value, other.place) if isinstance(other, Recorded) else (other, _NOWHERE)
        return Recorded(self.tape, self.value + value, self.place, 1.0, place, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Recorded | float) -> Recorded:
        value, place = (other.value, other.place) if isinstance(other, Recorded) else (other, _NOWHERE)
        return Recorded(self.tape, self.value - value, self.place, 1.0, place, -1.0)

    def __rsub__(self, other: float) -> Recorded:
        return Recorded(self.tape, other - self.value, self.place, -1.0, _NOWHERE, 0.0)

    def __mul__(self, other: Recorded | float) -> Recorded:
        value, place = (other.value, other.place) if isinstance(other, Recorded) else (other, _NOWHERE)
        return Recorded(self.tape, self.value * value, self.place, value, place, self.value)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Recorded:
        partial = exponent * self.value ** (exponent - 1)
        return Recorded(self.tape, self.value**exponent, self.place, partial, _NOWHERE, 0.0)

    def __gt__(self, other: float) -> bool:
        return self.value > other


def gradient_by_tape(function: Callable[..., object], inputs: list[float], *constants: list[float]) -> list[float]:
    """The gradient with respect to the inputs: run the function on recording numbers, then replay backwards.

    >>> gradient_by_tape(lambda x: x[0] * x[1] + x[0] ** 2, [3.0, 5.0])
    [11.0, 3.0]
    """
    tape: Tape = [(_NOWHERE, 0.0, _NOWHERE, 0.0)]
    recorded = [Recorded(tape, value, _NOWHERE, 0.0, _NOWHERE, 0.0) for value in inputs]
    result = function(recorded, *constants)
    adjoints = [0.0] * len(tape)
    if isinstance(result, Recorded):
        adjoints[result.place] = 1.0
    for place in range(len(tape) - 1, 0, -1):
        adjoint = adjoints[place]
        left, by_left, right, by_right = tape[place]
        adjoints[left] += by_left * adjoint
        adjoints[right] += by_right * adjoint
    return [adjoints[number.place] for number in recorded]
