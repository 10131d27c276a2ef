"""How the time of the first call grows with the size of the program, for each pass and for Numba.

The slope of the logarithm of the time over the logarithm of the number of statements is 1 for a pass that visits each
statement once, and 2 for a pass that compares each statement with every other one. A good pass has a slope of little
more than 1. Every program runs in a process of its own, with empty caches.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.report import digits, table
from benchmarks.run import ONE_THREAD, ROOT

SIZES = (50, 160, 500, 1_600, 5_000)

#: A pass that grows faster than this is listed.
STEEP = 1.2

#: Steps that take fewer seconds than this for the largest program are ignored.
SHORT = 0.05

NUMBA = "Numba"
OTHER = "between the steps"  # mostly the verification after each pass
TOTAL = "first call"

# -- programs --------------------------------------------------------------------------------------------------------


def scalars(count: int) -> Iterator[str]:
    """Straight line code on numbers: each statement reads some of the values before it."""
    yield "def program(x):"
    yield "    a0, a1, a2 = x[0], x[1], x[2]"
    forms = ("0.5 * a{1} + a{2}", "math.sin(a{0}) * a{2}", "a{0} - 0.3 * a{1} * a{2}", "a{1} / (2.0 + a{0} * a{0})")
    for k in range(3, count + 3):
        yield f"    a{k} = {forms[k % 4].format(k - 1, k - 2, max(0, k - 3 - k % 7))}"
    yield f"    return a{count + 2}"


def loops(count: int) -> Iterator[str]:
    """Many small loops, one after the other: three statements each."""
    yield "def program(x):"
    yield "    total = 0.0"
    for k in range(count // 3):
        yield f"    s{k} = {k % 5}.0"
        yield "    for i in range(len(x)):"
        yield f"        s{k} += x[i] * {0.1 + k % 3} * x[i]" if k % 2 else f"        s{k} = s{k} * 0.9 + math.sin(x[i])"
        yield f"    total += s{k}"
    yield "    return total"


def arrays(count: int) -> Iterator[str]:
    """Statements on whole arrays."""
    yield "def program(x):"
    yield "    a0, a1 = 1.0 * x, 2.0 * x"
    forms = ("0.5 * a{0} + a{1}", "np.sin(a{0}) * a{1}", "a{0} - 0.3 * a{1} * x")
    for k in range(2, count + 2):
        yield f"    a{k} = {forms[k % 3].format(k - 1, k - 2)}"
    yield f"    return np.sum(a{count + 1})"


def in_place(count: int) -> Iterator[str]:
    """Nested loops that write into arrays: three statements each."""
    yield "def program(x):"
    yield "    a = np.outer(x, x)"
    yield "    b = np.zeros_like(a)"
    for k in range(count // 3):
        source, target = ("a", "b") if k % 2 else ("b", "a")
        yield "    for i in range(a.shape[0]):"
        yield "        for j in range(1, a.shape[1]):"
        yield f"            {target}[i, j] = 0.5 * {target}[i, j] * {source}[i, j - 1] + 0.1 * {source}[i, j]"
    yield "    return np.sum(a * b)"


def branches(count: int) -> Iterator[str]:
    """Branches, one after the other: three statements each."""
    yield "def program(x):"
    yield "    y, z = x[0], x[1]"
    for k in range(count // 3):
        yield f"    if y > {0.1 * (k % 9)}:"
        yield f"        y, z = 0.9 * y * z, {0.2 + k % 3} + z"
        yield "    else:"
        yield "        y = 0.5 * y + math.sin(z)"
    yield "    return y * z"


def helpers(count: int) -> Iterator[str]:
    """Calls of helpers that call helpers: a fifth of the statements are in their bodies."""
    bodies = max(2, count // 15)
    for k in range(bodies):
        yield f"def helper{k}(x, y):"
        yield f"    t = math.sin(x) * {0.5 + k % 3}"
        yield f"    u = helper{k - 1}(t, y)" if k % 3 else "    u = t * y"
        yield "    return u + 0.5 * x"
        yield ""
    yield "def program(x):"
    yield "    y, z = x[0], x[1]"
    for k in range(count - 3 * bodies):
        yield f"    {'yz'[k % 2]} = helper{k % bodies}(y, z)"
    yield "    return y * z"


KINDS: dict[str, Callable[[int], Iterator[str]]] = {
    kind.__name__: kind for kind in (scalars, loops, arrays, in_place, branches, helpers)
}


def text_of(kind: str, statements: int) -> str:
    """The module with a program of this kind and size.

    >>> print(text_of("branches", 3).partition("numpy as np")[2].strip())
    def program(x):
        y, z = x[0], x[1]
        if y > 0.0:
            y, z = 0.9 * y * z, 0.2 + z
        else:
            y = 0.5 * y + math.sin(z)
        return y * z
    """
    return "\n".join(["import math", "", "import numpy as np", "", "", *KINDS[kind](statements), ""])


# -- measuring -------------------------------------------------------------------------------------------------------

#: The script for one program: a first call that prints the time of each step. It is killed if it takes too long.
SCRIPT = """
import resource, sys, time
import numpy as np
import srcdiff
import srcdiff.pipeline
from program import program

patience = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (patience, patience))
start = time.process_time()
srcdiff.value_and_grad(program)(np.linspace(0.1, 0.9, 5))
print(f"srcdiff: {1e3 * (time.process_time() - start):8.1f} ms  first call", file=sys.stderr)
"""

STEP = re.compile(r"srcdiff: +([\d.]+) ms  (.+)")


@dataclass(slots=True)
class Growth:
    """Seconds of processor time by kind, number of statements and step; and the programs that did not finish."""

    seconds: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Growth:
        content = json.loads(text)
        by_kind = {k: {int(n): s for n, s in sizes.items()} for k, sizes in content["seconds"].items()}
        return cls(by_kind, content["unfinished"])

    def steps(self, kind: str) -> list[str]:
        return list(dict.fromkeys(step for steps in self.seconds[kind].values() for step in steps))

    def slope(self, kind: str, step: str) -> float | None:
        """The slope at the largest programs (up to three). None for steps that are short even there."""
        points = [(n, steps[step]) for n, steps in sorted(self.seconds[kind].items()) if steps.get(step, 0.0) > 1e-3]
        if len(points) < 2 or points[-1][1] < SHORT:
            return None
        return float(np.polyfit(*np.log(np.array(points[-3:])).T, 1)[0])


def measure(kind: str, statements: int, patience: float) -> tuple[dict[str, float], str | None]:
    """Seconds of each step of the first call of one program, and the error if there was one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(text_of(kind, statements), encoding="utf-8")
        (Path(folder) / "run.py").write_text(SCRIPT, encoding="utf-8")
        own = {"PYTHONPATH": str(ROOT), "SRCDIFF_TIMINGS": "processor", "SRCDIFF_CACHE_DIR": folder}
        command = [sys.executable, str(Path(folder) / "run.py"), str(math.ceil(patience))]
        environment = os.environ | ONE_THREAD | own | {"NUMBA_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    steps, lines = steps_of(done.stderr), done.stderr.strip().splitlines()
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return steps, f"not finished within {patience:.0f} s of processor time, after: {list(steps)[-1:]}"
    return steps, lines[-1] if done.returncode else None


def steps_of(said: str) -> dict[str, float]:
    """The seconds of each step. Steps of the same name are added.

    >>> steps_of("srcdiff:  5.0 ms  cse\\nsrcdiff: 7.0 ms  cse\\nsrcdiff: 20.0 ms  first call")
    {'cse': 0.012, 'between the steps': 0.008, 'first call': 0.02}
    """
    found: dict[str, float] = {}
    for milliseconds, step in STEP.findall(said):
        name = NUMBA if step.startswith("compile `") else step
        name = f"{NUMBA}: {name.strip()}" if name.startswith(" ") else name  # a stage of the step above
        found[name] = round(found.get(name, 0.0) + float(milliseconds) / 1e3, 6)
    if TOTAL in found:
        total = found.pop(TOTAL)
        steps = sum(seconds for name, seconds in found.items() if not name.startswith(f"{NUMBA}: "))
        found |= {OTHER: round(max(0.0, total - steps), 6), TOTAL: total}
    return found


def run(
    kinds: Sequence[str],
    sizes: Sequence[int],
    patience: float,
    progress: Callable[[float, str], None],
    save: Callable[[Growth], None],
) -> Growth:
    """Measure each kind from small to large. After a program that does not finish, larger ones are skipped."""
    found = Growth()
    for k, kind in enumerate(kinds):
        found.seconds[kind] = {}
        for j, statements in enumerate(sorted(sizes)):
            progress((k + j / len(sizes)) / len(kinds), f"{kind}: {statements} statements")
            found.seconds[kind][statements], problem = measure(kind, statements, patience)
            save(found)
            if problem:
                found.unfinished.append(f"{kind}, {statements} statements: {problem}")
                break
    progress(1.0, "done")
    return found


# -- the report ------------------------------------------------------------------------------------------------------


def describe(found: Growth) -> Iterator[str]:
    """Tables of seconds, one for each kind, and the steps that grow too fast."""
    yield "Growth of the first call: seconds of processor time by the number of statements, and the slope of its"
    yield "logarithm over the logarithm of the statements at the largest programs"
    yield ""
    for kind, by_size in found.seconds.items():
        sizes = sorted(by_size)
        yield f"{kind}: {(KINDS[kind].__doc__ or '').partition(':')[0].rstrip('.')}"
        yield ""
        steps = sorted(found.steps(kind), key=lambda step: -max(by_size[n].get(step, 0.0) for n in sizes))
        shown = [step for step in steps if max(by_size[n].get(step, 0.0) for n in sizes) >= SHORT]
        rows = [
            [step, *(digits(by_size[n].get(step)) for n in sizes), digits(found.slope(kind, step))] for step in shown
        ]
        yield from table(["step", *map(str, sizes), "slope"], rows)
        yield ""
    steep = [
        (slope, f"{kind}, {step}: {digits(slope)}")
        for kind in found.seconds
        for step in found.steps(kind)
        if (slope := found.slope(kind, step)) is not None and slope > STEEP
    ]
    yield f"Steeper than {STEEP}: {'none' if not steep else ''}".rstrip()
    yield from (text for _, text in sorted(steep, key=lambda one: -one[0]))
    if found.unfinished:
        yield ""
        yield "Not finished"
        yield from found.unfinished
