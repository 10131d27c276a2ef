"""Text tables of the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks import programs
from benchmarks.run import NOISY, Result, Run
from benchmarks.systems import SYSTEMS

#: The text for a program and a system.
Cell = Callable[[str, str], str]


class Findings:
    """The results by program, size and system, and figures computed from them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.by_key = {(r.program, r.size, r.system): r for r in run.results}
        self.programs = list(dict.fromkeys(r.program for r in run.results))
        present = {r.system for r in run.results}
        self.systems = [name for name in SYSTEMS if name in present]

    def sizes(self, program: str) -> list[int]:
        return sorted({r.size for r in self.run.results if r.program == program})

    def get(self, program: str, size: int, system: str) -> Result | None:
        return self.by_key.get((program, size, system))

    def seconds(self, program: str, size: int, system: str) -> float | None:
        found = self.get(program, size, system)
        return None if found is None or found.refused else found.seconds

    def speed_up(self, program: str, size: int, over: str) -> float | None:
        """How many times faster srcdiff is than another system."""
        ours, theirs = self.seconds(program, size, "srcdiff"), self.seconds(program, size, over)
        return None if ours is None or theirs is None else theirs / ours

    def ratio(self, program: str, size: int, system: str) -> float | None:
        """The time of value and gradient, divided by that of the primal."""
        own, primal = self.seconds(program, size, system), self.seconds(program, size, "primal")
        return None if own is None or primal is None else own / primal

    def times_of_hand(self, program: str, size: int, system: str) -> float | None:
        """The time of value and gradient, divided by that of the adjoint written by hand."""
        own, hand = self.seconds(program, size, system), self.seconds(program, size, "hand")
        return None if own is None or hand is None else own / hand

    def mean_times_of_hand(self, system: str) -> float | None:
        """The geometric mean over the programs that the system runs, each at its largest size."""
        found = [self.times_of_hand(p, self.sizes(p)[-1], system) for p in self.programs]
        logs = [math.log(x) for x in found if x is not None]
        return math.exp(sum(logs) / len(logs)) if logs else None

    def kept(self, program: str, size: int, system: str) -> int | None:
        """The peak of memory beyond that of the primal."""
        own, primal = self.get(program, size, system), self.get(program, size, "primal")
        if own is None or primal is None or own.peak is None or primal.peak is None:
            return None
        return max(0, own.peak - primal.peak)

    def growth(self, program: str, system: str) -> float | None:
        """The slope of the line through the logarithms of times and sizes: 1 is proportional, 2 is quadratic."""
        points = [(n, self.seconds(program, n, system)) for n in self.sizes(program)]
        known = [(math.log(n), math.log(t)) for n, t in points if t is not None]
        if len(known) < 2:
            return None
        return float(np.polyfit(*np.array(known).T, 1)[0])

    def mean_speed_up(self, over: str) -> tuple[float, int] | None:
        """The geometric mean over the programs, each at its largest size, and the number of programs."""
        found = [self.speed_up(p, self.sizes(p)[-1], over) for p in self.programs]
        logs = [math.log(x) for x in found if x is not None]
        return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else None


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns of minimal width, the first one aligned to the left.

    >>> print("\\n".join(table(["a", "b"], [["x", "1.5"]])))
    a    b
    x  1.5
    """
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    for row in [heads, *rows]:
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()


def digits(x: float | None, unit: str = "") -> str:
    """The number with two or three digits."""
    if x is None:
        return "-"
    return (f"{x:.0f}" if x >= 100.0 else f"{x:.1f}" if x >= 10.0 else f"{x:.2f}" if x >= 0.1 else f"{x:.2g}") + unit


def duration(seconds: float | None) -> str:
    """A time with the unit that suits it."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return digits(seconds / size, f" {unit}")
    return digits(seconds / 1e-6, " µs")


def megabytes(size: int | None) -> str:
    if size is None:
        return "-"
    return "<0.1" if size < 100_000 else digits(size / 1e6)


def describe(run: Run) -> Iterator[str]:
    """Everything, as text."""
    found = Findings(run)
    if "hand" in found.systems:
        yield from _patterns(found)
        return
    others = [s for s in found.systems if s not in ("primal", "srcdiff")]
    yield from _origin(run)
    yield from _times(found, others)
    yield from _by_size(found)
    gradients = [s for s in found.systems if s != "primal"]
    yield from _one_number(
        found,
        gradients,
        "Memory kept: peak of resident memory beyond the primal's, at the largest size, in MB",
        lambda p, s: megabytes(found.kept(p, found.sizes(p)[-1], s)),
    )
    yield from _one_number(
        found,
        gradients,
        "First call, at the smallest size: in a process with empty caches, in s",
        _first_call(found, "first_cold"),
    )
    yield from _one_number(
        found,
        gradients,
        "First call again, in a new process that finds the caches of the first, in s",
        _first_call(found, "first_warm"),
    )
    yield from _one_number(
        found,
        found.systems,
        "Growth: slope of the logarithm of time against the logarithm of size",
        lambda p, s: digits(found.growth(p, s)),
    )
    yield from _reasons(found)


#: A pattern is listed if its time exceeds that of the adjoint written by hand by this factor.
FAR_FROM_HAND = 1.3


def _patterns(found: Findings) -> Iterator[str]:
    """The patterns: srcdiff and JAX, compared with an adjoint written by hand."""
    yield from _origin(found.run)
    yield "Patterns: value and gradient beside the adjoint written by hand; first calls in seconds of processor time"
    yield ""
    heads = ["pattern", "size", "by hand", "srcdiff", "/hand", "JAX jit", "/hand", "first", "from disk", "JAX first"]
    rows = []
    for p in found.programs:
        n = found.sizes(p)[-1]
        times = [duration(found.seconds(p, n, s)) + _noise(found.get(p, n, s)) for s in ("hand", "srcdiff", "jax")]
        firsts = [(found.get(p, n, s), field) for s, field in FIRST_CALLS]
        rows.append(
            [
                p.removeprefix("patterns."),
                f"{n} {programs.load(p).size_counts}",
                times[0],
                times[1],
                digits(found.times_of_hand(p, n, "srcdiff")),
                times[2],
                digits(found.times_of_hand(p, n, "jax")),
                *(digits(getattr(r, field) if r and not r.refused else None) for r, field in firsts),
            ]
        )
    ours, theirs = found.mean_times_of_hand("srcdiff"), found.mean_times_of_hand("jax")
    rows.append(["geometric mean", "", "", "", digits(ours), "", digits(theirs), "", "", ""])
    yield from table(heads, rows)
    if any(_noise(r) for r in found.run.results):
        yield f"~ the machine was busy: the rounds differ by more than {100 * NOISY - 100:.0f} %"
    ratios = {p: found.times_of_hand(p, found.sizes(p)[-1], "srcdiff") for p in found.programs}
    far = [f"{p.removeprefix('patterns.')} {digits(r)}" for p, r in ratios.items() if r and r > FAR_FROM_HAND]
    yield f"Above {FAR_FROM_HAND}: {', '.join(far) or 'none'}"
    slower = [
        p.removeprefix("patterns.")
        for p in found.programs
        if (found.speed_up(p, found.sizes(p)[-1], "jax") or 1.0) < 1.0
    ]
    if "jax" in found.systems:
        yield f"Slower than JAX: {', '.join(slower) or 'none'}"
    yield ""
    yield from _reasons(found)


FIRST_CALLS = (("srcdiff", "busy_cold"), ("srcdiff", "busy_warm"), ("jax", "busy_cold"))


def _origin(run: Run) -> Iterator[str]:
    yield f"srcdiff against tapes and other systems, {run.date}"
    yield f"{run.machine['processor']}, one thread, {run.machine['system']}, Python {run.machine['python']}"
    yield ", ".join(dict.fromkeys(version for system, version in run.versions.items() if system != "hand"))
    yield ""


def _times(found: Findings, others: Sequence[str]) -> Iterator[str]:
    yield "Value and gradient at the largest size; speed-up of srcdiff over each (below 1 it is slower)"
    yield ""
    heads = ["program", "size", "primal", "srcdiff", "x primal", *(SYSTEMS[s].title for s in others)]
    rows = []
    for p in found.programs:
        n = found.sizes(p)[-1]
        rows.append(
            [
                p,
                str(n),
                duration(found.seconds(p, n, "primal")),
                duration(found.seconds(p, n, "srcdiff")),
                digits(found.ratio(p, n, "srcdiff")),
                *(digits(found.speed_up(p, n, s), "x") for s in others),
            ]
        )
    means = [found.mean_speed_up(s) for s in others]
    rows.append(["geometric mean", "", "", "", "", *(digits(m[0], "x") if m else "-" for m in means)])
    rows.append(["programs", "", "", "", "", *(str(m[1]) if m else "0" for m in means)])
    yield from table(heads, rows)
    yield ""


def _by_size(found: Findings) -> Iterator[str]:
    yield "Time of value and gradient"
    yield ""
    heads = ["program", "size", *(SYSTEMS[s].title for s in found.systems)]
    rows = []
    for p in found.programs:
        for n in found.sizes(p):
            times = [duration(found.seconds(p, n, s)) + _noise(found.get(p, n, s)) for s in found.systems]
            rows.append([p, f"{n} {programs.load(p).size_counts}", *times])
    yield from table(heads, rows)
    if any(_noise(r) for r in found.run.results):
        yield f"~ the machine was busy: the rounds differ by more than {100 * NOISY - 100:.0f} %"
    yield ""


def _noise(result: Result | None) -> str:
    return "~" if result is not None and result.spread is not None and result.spread > NOISY else ""


def _first_call(found: Findings, field: str) -> Cell:
    def cell(program: str, system: str) -> str:
        result = found.get(program, found.sizes(program)[0], system)
        return digits(getattr(result, field) if result and not result.refused else None)

    return cell


def _one_number(found: Findings, systems: Sequence[str], title: str, cell: Cell) -> Iterator[str]:
    rows = [[p, *(cell(p, s) for s in systems)] for p in found.programs]
    if all(c == "-" for row in rows for c in row[1:]):
        return
    yield title
    yield ""
    yield from table(["program", *(SYSTEMS[s].title for s in systems)], rows)
    yield ""


def _reasons(found: Findings) -> Iterator[str]:
    """The reasons for missing numbers, and remarks; written once if they are the same for all sizes."""
    said: dict[tuple[str, str, str], list[int]] = {}
    for r in found.run.results:
        for text in [*([r.refused] if r.refused else []), *r.notes]:
            said.setdefault((SYSTEMS[r.system].title, r.program, text), []).append(r.size)
    if said:
        yield "Notes"
        yield ""
        for (title, program, text), sizes in said.items():
            everywhere = sorted(sizes) == found.sizes(program)
            where = program if everywhere else f"{program} at {', '.join(map(str, sorted(sizes)))}"
            yield f"{title}, {where}: {text}"
        yield ""
    if found.run.not_run:
        yield f"Not run: {', '.join(found.run.not_run)}"
