"""The command `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import growth, patterns, programs, report, run
from benchmarks.systems import OF_PATTERNS, OWN, SYSTEMS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, print the tables, and write `results.json` and the plots if a folder is given."""
    chosen = parse(arguments)
    if chosen.show:
        shown = run.Run.from_json(chosen.show.read_text(encoding="utf-8"))
        print("\n".join(report.describe(shown)))
        if chosen.output:
            draw(shown, chosen.output)
        return 0
    if chosen.growth:
        return grow(chosen)
    settings = run.Settings.quick() if chosen.quick else run.Settings()
    if chosen.sizes:
        settings = run.replace(settings, sizes=tuple(sorted(chosen.sizes)))
    if chosen.patience:
        settings = run.replace(settings, patience=chosen.patience)
    if chosen.patterns:
        settings = run.replace(settings, sizes=tuple(chosen.sizes or (1,)), budget=run.Settings().budget)
        systems, missing = run.chosen_systems(chosen.systems or OF_PATTERNS, always=OF_PATTERNS[:2])
    else:
        # the quick run has only srcdiff and the tapes, unless systems are requested
        systems, missing = run.chosen_systems(chosen.systems or (list(OWN) if chosen.quick else None))
    for system in missing:
        print(
            f"{system.title} is not installed here: install {system.package}, "
            f"or let {system.variable} name a Python that has it",
            file=sys.stderr,
        )
    collected = run.run(chosen.only, systems, settings, Bar(), saver(chosen.output))
    print("\n".join(report.describe(collected)))
    if chosen.output and collected.results and not chosen.patterns:
        draw(collected, chosen.output)
    return 130 if collected.interrupted else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Gradients of plain Python programs: srcdiff, two tapes, and the systems that are installed.",
    )
    parser.add_argument("--quick", action="store_true", help="one size, srcdiff and the tapes: within three minutes")
    parser.add_argument(
        "--patterns", action="store_true", help="small programs beside their adjoints written by hand, and JAX"
    )
    parser.add_argument(
        "--growth", action="store_true", help="how the first call grows with the size of generated programs"
    )
    parser.add_argument(
        "--statements", nargs="+", type=int, default=growth.SIZES, metavar="N", help="sizes of the generated programs"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="PROGRAM", help="these programs, patterns, or kinds of generated programs"
    )
    parser.add_argument("--systems", nargs="+", metavar="SYSTEM", choices=list(SYSTEMS), help="these systems")
    parser.add_argument(
        "--sizes", nargs="+", type=int, choices=(0, 1, 2), help="these of the three sizes; 0 is the smallest"
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="give up on a system that takes longer to answer (default: 120)",
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write results.json and the plots there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the tables of a results.json, and run nothing")
    chosen = parser.parse_args(arguments)
    known = patterns.NAMES if chosen.patterns else tuple(growth.KINDS) if chosen.growth else programs.NAMES
    unknown = [name for name in chosen.only or () if name not in known]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: choose from {', '.join(known)}")
    chosen.only = [f"patterns.{name}" if chosen.patterns else name for name in chosen.only or known]
    return chosen


def grow(chosen: argparse.Namespace) -> int:
    """Measure how first calls grow, print the tables, and write `growth.json` if a folder is given."""

    def save(found: growth.Growth) -> None:
        if chosen.output is not None:
            chosen.output.mkdir(parents=True, exist_ok=True)
            (chosen.output / "growth.json").write_text(found.as_json(), encoding="utf-8")

    patience = chosen.patience or run.Settings().patience
    print("\n".join(growth.describe(growth.run(chosen.only, chosen.statements, patience, Bar(), save))))
    return 0


class Bar:
    """A progress line. In a terminal it is overwritten; elsewhere each program has a line."""

    WIDTH = 24

    def __init__(self) -> None:
        self.program = ""

    def __call__(self, done: float, text: str) -> None:
        filled = round(done * self.WIDTH)
        line = f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {100 * done:3.0f} %  {text}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="\n" if done >= 1.0 else "", file=sys.stderr, flush=True)
        elif (program := text.split()[0].rstrip(":")) != self.program:
            self.program = program
            print(line, file=sys.stderr, flush=True)


def saver(folder: Path | None) -> Callable[[run.Run], None]:
    """A function that writes the results so far."""

    def save(collected: run.Run) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "results.json").write_text(collected.as_json(), encoding="utf-8")

    return save


def draw(collected: run.Run, folder: Path) -> None:
    """Draw the plots, if Matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from benchmarks import plots
    except ModuleNotFoundError as error:
        print(f"no plots: {error.name} is not installed (pip install 'srcdiff[bench]')", file=sys.stderr)
        return
    for path in plots.draw(collected, folder):
        print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
