"""Plots of the measurements: speed-up by program, time and memory against size. Each as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks import programs
from benchmarks.report import Findings, digits
from benchmarks.run import Result, Run
from benchmarks.systems import SYSTEMS

mpl.use("Agg")  # into files, without a display

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "srcdiff",  # the same run gives the same file
}
COLOURS = {
    "primal": "0.6",
    "srcdiff": "#d62728",
    "eager": "#1f77b4",
    "compiled": "#17becf",
    "jax": "#2ca02c",
    "torch": "#ff7f0e",
    "torch_compiled": "#8c564b",
    "tensorflow": "#bcbd22",
    "tf_function": "#7f7f1f",
    "autograd": "#9467bd",
    "tangent": "#e377c2",
    "warp": "#000000",
}


def draw(run: Run, folder: Path) -> Iterator[Path]:
    """Draw everything into the folder, and say which files were written."""
    found = Findings(run)
    figures: dict[str, Callable[[Findings], Any]] = {
        "speed_up": speed_up,
        "time_by_size": time_by_size,
        "memory_by_size": memory_by_size,
    }
    with mpl.rc_context(STYLE):
        for name, make in figures.items():
            figure = make(found)
            for ending in ("png", "svg"):
                path = folder / f"{name}.{ending}"
                options = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
                figure.savefig(path, bbox_inches="tight", **options)
                yield path
            plt.close(figure)


def speed_up(found: Findings) -> Any:
    """One column of bars for each system; a bar is how many times faster srcdiff is, at the largest size."""
    others = [s for s in found.systems if s not in ("primal", "srcdiff")]
    names = found.programs
    figure, columns = plt.subplots(
        1,
        max(1, len(others)),
        sharey=True,
        squeeze=False,
        figsize=(2.2 + 1.5 * max(1, len(others)), 0.8 + 0.26 * len(names)),
    )
    for axes, system in zip(columns[0], others, strict=False):
        for row, program in enumerate(names):
            size = found.sizes(program)[-1]
            value = found.speed_up(program, size, system)
            if value is None:
                axes.text(
                    0.0, row, f" {_why_not(found.get(program, size, system))}", va="center", fontsize=7, color="0.5"
                )
                continue
            axes.barh(row, math.log10(value), color=COLOURS["srcdiff"] if value >= 1.0 else "0.4", height=0.7)
            axes.text(math.log10(value), row, f" {digits(value)}", va="center", fontsize=7)
        axes.axvline(0.0, color="0.2", linewidth=0.8)
        axes.set_title(SYSTEMS[system].title)
    columns[0][0].set_yticks(range(len(names)), names)
    columns[0][0].invert_yaxis()
    _powers_of_ten(columns[0], found, others)
    figure.suptitle("How many times faster srcdiff computes value and gradient (grey: slower)", y=1.0, fontsize=10)
    figure.tight_layout()
    return figure


def _why_not(result: Result | None) -> str:
    """The reason for a missing bar, in a word. The tables say more."""
    if result is None or result.refused is None:
        return ""
    first = result.refused.partition(":")[0]
    if first.startswith("wrong"):
        return first
    return "too slow" if "no answer" in result.refused else "refused"


def _powers_of_ten(row: Any, found: Findings, others: list[str]) -> None:
    for axes, system in zip(row, others, strict=False):
        values = [found.speed_up(p, found.sizes(p)[-1], system) for p in found.programs]
        logs = [math.log10(v) for v in values if v is not None]
        low, high = math.floor(min([0.0, *logs])), math.ceil(max([1.0, *logs]))
        axes.set_xlim(low - 0.1, high + 0.8)
        ticks = range(low, high + 1, max(1, (high - low + 1) // 3))
        axes.set_xticks(ticks, [f"$10^{{{k}}}$" for k in ticks], fontsize=7)


def time_by_size(found: Findings) -> Any:
    return _by_size(
        found,
        found.systems,
        found.seconds,
        "Time of value and gradient in seconds, against size",
    )


def memory_by_size(found: Findings) -> Any:
    def megabytes(program: str, size: int, system: str) -> float | None:
        kept = found.kept(program, size, system)
        return None if kept is None else max(kept, 1e4) / 1e6  # the resolution of the measurement

    systems = [s for s in found.systems if s != "primal"]
    return _by_size(found, systems, megabytes, "Memory kept beyond the primal's, in MB, against size")


def _by_size(found: Findings, systems: list[str], value: Callable[[str, int, str], float | None], title: str) -> Any:
    """A small plot for each program, with logarithms on both axes and a line for each system."""
    columns = min(6, max(1, len(found.programs)))
    rows = math.ceil(len(found.programs) / columns)
    figure, grid = plt.subplots(rows, columns, squeeze=False, figsize=(2.3 * columns, 0.8 + 2.0 * rows))
    for axes in grid.flat[len(found.programs) :]:
        axes.set_axis_off()
    for axes, program in zip(grid.flat, found.programs, strict=False):
        for system in systems:
            points = [(n, value(program, n, system)) for n in found.sizes(program)]
            known = [(n, v) for n, v in points if v is not None]
            if known:
                width = 2.0 if system == "srcdiff" else 1.0
                axes.plot(*zip(*known, strict=True), ".-", color=COLOURS[system], linewidth=width)
        axes.set(xscale="log", yscale="log", title=program)
        axes.set_xticks(found.sizes(program), [str(n) for n in found.sizes(program)])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(programs.load(program).size_counts, fontsize=7)
        axes.tick_params(labelsize=7)
    lines = [plt.Line2D([], [], color=COLOURS[s], marker=".", label=SYSTEMS[s].title) for s in systems]
    figure.legend(handles=lines, loc="lower center", ncols=min(6, len(lines)), bbox_to_anchor=(0.5, -0.06))
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure
