"""Changes random programs between calls of a derivative, and compares with a process that starts after the change.

    python -m tests.fuzz.changes --count 200

A change is made in the text of a program: another number in a function, another variable of the module. The change is
then made in the module that is running, as users do it: by assigning the name anew, or by giving a function other code,
as a notebook's autoreload does. The derivative that was made before the change is called again; a new process reads
the changed text from the start. Both give the same numbers, or the same exception; or the first one refuses.
"""

from __future__ import annotations

import argparse
import ast
import sys
import types
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import get_context
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.cases import ENTRY, Case, arguments_of, loaded
from tests.fuzz.oracle import TookTooLongError, quiet, time_limit
from tests.fuzz.writer import write_case
from tests.numerical import clone, numbers_in

VARIABLES = {
    "SCALE": ("0.3", "-1.25", "1", "np.float64(0.5)", "np.float32(0.5)"),
    "TABLE": (
        "np.array([0.9, 0.1, -0.2])",
        "np.array([0.5, 0.25, 0.75, 0.1])",
        "np.arange(6.0)[::2]",
        "np.ones(3, int)",
    ),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a derivative at the points of a program: numbers, or the name of an exception."""

    numbers: tuple[tuple[float, ...] | str, ...]


def answer(case: Case, gradient: Any, module: types.ModuleType) -> Answer:
    """The results of a derivative of the program."""
    found: list[tuple[float, ...] | str] = []
    for point in case.points:
        try:
            value, bars = gradient(*clone(arguments_of(point, module)))
            found.append((float(value), *map(float, numbers_in(bars))))
        except TookTooLongError:
            raise
        except Exception as raised:
            found.append(type(raised).__name__)
    return Answer(tuple(found))


def changed(source: str, random: Random) -> tuple[str, str, str] | None:
    """The text with one change, and the name of the changed function or variable."""
    tree = ast.parse(source)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    name = random.choice([*functions, *VARIABLES])
    if name in VARIABLES:
        target = next(n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name)
        target.value = ast.parse(random.choice(VARIABLES[name]), mode="eval").body
        return ast.unparse(tree), name, "variable"
    floats = [n for n in ast.walk(functions[name]) if isinstance(n, ast.Constant) and type(n.value) is float]
    if not floats:
        return None
    constant = random.choice(floats)
    constant.value = round(constant.value * random.uniform(0.4, 0.95), 3)
    return ast.unparse(tree), name, random.choice(("function", "code"))


def apply_change(module: types.ModuleType, new: types.ModuleType, name: str, how: str) -> None:
    """Set a name in the running module to its value in the new text."""
    if how == "code" and name != ENTRY:
        getattr(module, name).__code__ = getattr(new, name).__code__
    elif name == ENTRY:  # references to the function see the new code
        module.program.__code__ = new.program.__code__
    elif how == "variable":
        setattr(module, name, getattr(new, name))
    else:
        old, found = getattr(module, name), getattr(new, name)
        made = types.FunctionType(found.__code__, module.__dict__, name, old.__defaults__, old.__closure__)
        made.__kwdefaults__ = old.__kwdefaults__
        setattr(module, name, made)


def answers_as_it_runs(seed: int, backend: str, changes: int) -> list[tuple[Case, str, Answer]]:
    """The programs that result from changes, and for each the results of a derivative made before the changes."""
    import srcdiff

    case, random = write_case(seed), Random(seed)
    case = replace(case, points=case.points[:2])
    found: list[tuple[Case, str, Answer]] = []
    with quiet(), ExitStack() as texts, time_limit(120.0):
        module = texts.enter_context(loaded(case))
        gradient = srcdiff.value_and_grad(module.program, wrt=case.wrt, backend=backend)
        found.append((case, "as written", answer(case, gradient, module)))
        for _ in range(changes):
            change = changed(case.source, random)
            if change is None:
                continue
            text, name, how = change
            case = replace(case, source=text)
            apply_change(module, texts.enter_context(loaded(case)), name, how)
            found.append((case, f"{how} {name}", answer(case, gradient, module)))
    return found


def fresh_answers(cases: list[Case], backend: str) -> list[Answer]:
    """The results of new derivatives, in a process that has seen nothing else."""
    import srcdiff

    found = []
    for case in cases:
        with quiet(), loaded(case) as module, time_limit(120.0):
            found.append(answer(case, srcdiff.value_and_grad(module.program, wrt=case.wrt, backend=backend), module))
    return found


def differences(seeds: list[int], backend: str, changes: int, counts: Counter[str]) -> Iterator[str]:
    """The differences between the derivative that was made before the changes and a new one."""
    ran = [(seed, *row) for seed in seeds for row in answers_as_it_runs(seed, backend, changes)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        fresh = pool.submit(fresh_answers, [case for _, case, _, _ in ran], backend).result()
    for (seed, case, what, old), new in zip(ran, fresh, strict=True):
        counts["refused" if "DifferentiationError" in old.numbers else "compared"] += 1
        for point, (one, other) in enumerate(zip(old.numbers, new.numbers, strict=True)):
            if one == "DifferentiationError" or one == other:
                continue
            numbers = not isinstance(one, str) and not isinstance(other, str) and len(one) == len(other)
            if not numbers or not np.allclose(
                one, other, rtol=1e-12, atol=1e-12, equal_nan=True
            ):  # the same operations
                yield f"seed {seed}, {what}, point {point}: {one} as it ran, {other} anew\n{case.source}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.changes", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--changes", type=int, default=5, help="how often each is changed")
    parser.add_argument("--backend", choices=("python", "numba"), default="python")
    chosen = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    seeds = list(range(chosen.seed, chosen.seed + chosen.count))
    for k in range(0, len(seeds), 50):
        for difference in differences(seeds[k : k + 50], chosen.backend, chosen.changes, counts):
            counts["different"] += 1
            print(difference)
        print(f"{k + 50} programs: {dict(counts)}", file=sys.stderr, flush=True)
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
