"""The command line: `python -m tests.fuzz --count 20000`; exit code 1 if any program failed."""

from __future__ import annotations

import argparse
import os
import sys

from tests.fuzz.campaign import Kinds, campaign, coverage, tell
from tests.fuzz.constructs import CONSTRUCTS
from tests.fuzz.modes import forward_and_reverse, in_lanes, second_order
from tests.fuzz.oracle import Differentiate, check
from tests.fuzz.writer import write_case

MODES: dict[str, Differentiate | None] = {
    "": None,
    "first": forward_and_reverse,
    "second": second_order,
    "lanes": in_lanes,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--backend", choices=("python", "numba", "cuda"), default="python")
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time")
    parser.add_argument("--most", type=int, default=10, help="how many failures to shrink and print")
    parser.add_argument("--refusals", type=int, default=4, help="how many refusals to shrink and print")
    parser.add_argument("--shrink-seconds", type=float, default=30.0, help="time for shrinking one failure")
    parser.add_argument(
        "--strict", action="store_true", help="a refusal is a failure: all that is written is in the language"
    )
    parser.add_argument(
        "--modes", choices=tuple(MODES), default="", help="compare the modes of differentiation with each other too"
    )
    parser.add_argument(
        "--kinds",
        type=kinds_in,
        default=(),
        help=f"constructs that the programs are made of besides plain ones: all, or some of {','.join(CONSTRUCTS)}",
    )
    parser.add_argument("--show", action="store_true", help="print the program of --seed and its outcome")
    parser.add_argument("--coverage", action="store_true", help="print what the programs contain, and run nothing")
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.seed, chosen.seed + chosen.count)
    if chosen.show:
        return show(chosen.seed, chosen.backend, MODES[chosen.modes], chosen.kinds)
    if chosen.coverage:
        for name, number in sorted(coverage(seeds, chosen.kinds).items(), key=lambda entry: (-entry[1], entry[0])):
            print(f"{number / chosen.count:7.1%}  {name}")
        return 0
    differentiate = MODES[chosen.modes]
    kinds = chosen.kinds
    report = campaign(seeds, chosen.backend, chosen.jobs, chosen.seconds, sys.stderr, differentiate, kinds)
    tell(report, chosen.backend, chosen.most, chosen.shrink_seconds, chosen.refusals, None, differentiate, kinds)
    return 1 if report.failures or (chosen.strict and report.refusals) else 0


def kinds_in(text: str) -> Kinds:
    """The names of constructs in an argument of the command line."""
    names = tuple(CONSTRUCTS) if text == "all" else tuple(text.split(","))
    if unknown := [name for name in names if name not in CONSTRUCTS]:
        raise argparse.ArgumentTypeError(f"no kind of construct: {', '.join(unknown)}")
    return names


def show(seed: int, backend: str, differentiate: Differentiate | None = None, kinds: Kinds = ()) -> int:
    case = write_case(seed, kinds=kinds)
    print(case.source)
    for point in case.points:
        print("at", point)
    outcome = check(case, backend, differentiate)
    print(f"{outcome.kind}: {outcome.label}\n{outcome.detail}")
    return 1 if outcome.kind == "failed" else 0


if __name__ == "__main__":
    sys.exit(main())
