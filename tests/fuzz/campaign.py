"""Runs many programs in several processes, shrinks the failing ones, and prints a report."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TextIO

from tests.fuzz.cases import Case
from tests.fuzz.oracle import Differentiate, Outcome, check, exceptions_of, reasons
from tests.fuzz.shrink import shrink
from tests.fuzz.writer import write_case

#: The number of programs in one batch of a worker, by backend.
BATCH = {"python": 20, "numba": 2}

#: The kinds of constructs in the programs, besides the plain language.
Kinds = Sequence[str]


@dataclass(slots=True)
class Report:
    """The results of a campaign."""

    programs: int = 0
    points: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: dict[str, list[Outcome]] = field(default_factory=dict)
    failures: dict[str, list[Outcome]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        self.programs += 1
        self.kinds[outcome.kind] += 1
        self.points.update(compared=outcome.compared, skipped=outcome.skipped, raised=outcome.raised)
        if outcome.kind == "refused":
            self.refusals.setdefault(outcome.label, []).append(outcome)
        elif outcome.kind == "failed":
            self.failures.setdefault(outcome.label, []).append(outcome)

    @property
    def skip_share(self) -> float:
        total = self.points["compared"] + self.points["skipped"] + self.points["raised"]
        return self.points["skipped"] / total if total else 0.0

    def summary(self) -> str:
        return (
            f"{self.programs} programs: {self.kinds['fine']} fine, {self.kinds['failed']} failed, "
            f"{self.kinds['refused']} refused, {self.kinds['skipped']} skipped; points: {self.points['compared']} "
            f"compared, {self.points['raised']} raised alike, {self.skip_share:.1%} skipped"
        )


def run_seeds(
    seeds: list[int], backend: str, differentiate: Differentiate | None = None, kinds: Kinds = ()
) -> list[Outcome]:
    """The outcomes of some programs, in this process."""
    gc.set_threshold(100_000, 20, 50)  # a compilation makes many long-lived objects; 700 is far too often
    return [check(write_case(seed, kinds=kinds), backend, differentiate) for seed in seeds]


def run_one(seed: int, backend: str, differentiate: Differentiate | None = None, kinds: Kinds = ()) -> Outcome:
    return check(write_case(seed, kinds=kinds), backend, differentiate)


def campaign(
    seeds: range,
    backend: str,
    jobs: int,
    seconds: float | None = None,
    progress: TextIO | None = None,
    differentiate: Differentiate | None = None,
    kinds: Kinds = (),
) -> Report:
    """Run the programs of all seeds, or as many as the time allows."""
    report = Report()
    start = time.monotonic()
    shown = start
    for outcome in outcomes(seeds, backend, jobs, None if seconds is None else start + seconds, differentiate, kinds):
        report.add(outcome)
        if progress is not None and outcome.kind == "failed":
            print(f"FAILED seed {outcome.seed}: {outcome.label}", file=progress, flush=True)
        now = time.monotonic()
        if progress is not None and now - shown > 5.0:
            shown = now
            rate = report.programs / (now - start)
            print(f"{now - start:6.0f} s  {rate:5.1f}/s  {report.summary()}", file=progress, flush=True)
    return report


def outcomes(
    seeds: range,
    backend: str,
    jobs: int,
    end: float | None,
    differentiate: Differentiate | None = None,
    kinds: Kinds = (),
) -> Iterator[Outcome]:
    """Yield outcomes as they arrive. A worker that dies is a failure of one of its programs."""
    if jobs <= 1:
        for seed in seeds:
            if end is not None and time.monotonic() > end:
                return
            yield from run_seeds([seed], backend, differentiate, kinds)
        return
    batches = [list(seeds[k : k + BATCH[backend]]) for k in range(0, len(seeds), BATCH[backend])]
    while batches:
        lost: list[list[int]] = []
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=40) as pool:
            yield from pooled(pool, batches, lost, backend, jobs, end, differentiate, kinds)
        for seed in (seed for batch in lost for seed in batch):
            yield alone(seed, backend, differentiate, kinds)
        if end is not None and time.monotonic() > end:
            return


def pooled(
    pool: ProcessPoolExecutor,
    batches: list[list[int]],
    lost: list[list[int]],
    backend: str,
    jobs: int,
    end: float | None,
    differentiate: Differentiate | None = None,
    kinds: Kinds = (),
) -> Iterator[Outcome]:
    """Feed a pool until the batches are used up, the time is over, or a worker dies (its batches are `lost`)."""
    running: dict[Future[list[Outcome]], list[int]] = {}
    while batches or running:
        while batches and len(running) < 2 * jobs and (end is None or time.monotonic() < end):
            batch = batches.pop(0)
            running[pool.submit(run_seeds, batch, backend, differentiate, kinds)] = batch
        if not running:
            batches.clear()
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            batch = running.pop(future)
            try:
                yield from future.result()
            except BrokenProcessPool:
                lost.append(batch)
        if lost:
            lost.extend(running.values())
            return


def alone(seed: int, backend: str, differentiate: Differentiate | None = None, kinds: Kinds = ()) -> Outcome:
    """The outcome of one program in a separate process, which may die."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(run_one, seed, backend, differentiate, kinds).result()
        except BrokenProcessPool:
            return Outcome(seed, "failed", "the process died", "")


def shrunk(
    outcome: Outcome, backend: str, seconds: float = 60.0, differentiate: Differentiate | None = None, kinds: Kinds = ()
) -> tuple[Case, Outcome]:
    """The smallest program found that fails in the same way, and its own outcome."""
    case = write_case(outcome.seed, kinds=kinds)
    if outcome.label == "the process died":
        return case, outcome
    # each detection of a program that takes too long costs that long; a small program takes far less
    limit = 4.0 if outcome.label == "took too long" and backend == "python" else None

    usual = exceptions_of(case) or set()

    def still_fails(candidate: Case) -> bool:
        raised = exceptions_of(candidate)
        if raised is None or not raised <= usual:
            return False
        found = check(candidate, backend, differentiate, limit)
        if found.kind != outcome.kind or found.label != outcome.label:
            return False
        # a refusal must not be replaced by another one
        return found.kind != "refused" or set(reasons(found.detail)) <= set(reasons(outcome.detail))

    smallest = shrink(case, still_fails, seconds)
    return smallest, check(smallest, backend, differentiate, limit)


def describe(case: Case, outcome: Outcome) -> str:
    """A description of a failure for people."""
    arguments = "\n".join(f"  at {point!r}" for point in case.points)
    header = f"seed {case.seed}: {outcome.label}, with respect to {case.wrt}"
    return f"{header}\n{indent(program_text(case))}\n{arguments}\n{indent(outcome.detail)}"


def program_text(case: Case) -> str:
    """The program without the common imports."""
    tree = ast.parse(case.source)
    kept = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    kept = [node for node in kept if not isinstance(node, ast.Assign) or defined(node) & used]
    return "\n\n".join(ast.unparse(node) for node in kept)


def defined(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def tell(
    report: Report,
    backend: str,
    most: int,
    seconds: float,
    refusals: int = 0,
    out: TextIO | None = None,
    differentiate: Differentiate | None = None,
    kinds: Kinds = (),
) -> None:
    """Print the results with minimal programs: up to `most` failures and some `refusals`, one label after the other."""
    out = out or sys.stdout
    for label, found in sorted(report.failures.items(), key=lambda entry: -len(entry[1])):
        seeds = ", ".join(str(outcome.seed) for outcome in found[:12])
        print(f"FAILED {len(found):5}  {label}  (seeds {seeds}{' ...' if len(found) > 12 else ''})", file=out)
    for label, found in sorted(report.refusals.items(), key=lambda entry: -len(entry[1])):
        print(f"REFUSED {len(found):4}  {label}  (seed {found[0].seed})", file=out)
    chosen = in_turn(list(report.failures.values()), most) + in_turn(list(report.refusals.values()), refusals)
    for outcome in chosen:
        case, last = shrunk(outcome, backend, seconds, differentiate, kinds)
        print(f"\n{describe(case, last)}", file=out, flush=True)
    print(f"\n{report.summary()}", file=out)


def in_turn(groups: list[list[Outcome]], most: int) -> list[Outcome]:
    """Up to `most` outcomes, one of each group before the second of any group."""
    longest = max((len(group) for group in groups), default=0)
    return [group[k] for k in range(longest) for group in groups if k < len(group)][:most]


def coverage(seeds: range, kinds: Kinds = ()) -> Counter[str]:
    """The number of programs in which each syntax node, call and operator occurs."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        tree = ast.parse(write_case(seed, kinds=kinds).source)
        entries = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        found: set[str] = set()
        for node in (inner for entry in entries for inner in ast.walk(entry)):
            found.add(type(node).__name__)
            if isinstance(node, ast.Call):
                found.add(f"call {ast.unparse(node.func)}" if len(ast.unparse(node.func)) < 20 else "call")
            if isinstance(node, (ast.For, ast.While)) and node.orelse:
                found.add(f"{type(node).__name__} with else")
        counts.update(found)
    return counts
