"""The table of kernels: the errors of their adjoints against the CPU, and the resources of their machine code.

`python -m tests.cuda.machine_code` prints it; no GPU is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

from tests.cuda.programs import PROGRAMS, Program

ARCHITECTURES = ((8, 0), (9, 0))
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def bars_of(program: Program, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        None if not has else np.ones_like(a) if isinstance(a, np.ndarray) else np.zeros(1)
        for a, has in zip(args, program.has_adjoint, strict=True)
    )


def resources(program: Program, cc: tuple[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The resources of the kernel and of its adjoint."""
    args = program.arguments(np.random.default_rng(0))
    given = args, bars_of(program, args)
    of_kernel = program.kernel.resources(args, cc=cc)
    return of_kernel, program.kernel.adjoint.resources(*given, cc=cc, launch=program.launch)


def error(program: Program) -> float:
    """The largest difference from the adjoint of the sequential program, relative to its largest element."""
    from tests.cuda.test_kernels import arguments_and_bars, copies, expected_bars

    args, bars = arguments_and_bars(program)
    expected = expected_bars(program, args, bars)
    program.kernel.adjoint[program.launch](copies(args), bars)
    pairs = [(np.asarray(e), b) for e, b in zip(expected, bars, strict=True) if b is not None]
    largest = max(float(np.max(np.abs(e))) for e, _ in pairs)
    return max(float(np.max(np.abs(e - b))) for e, b in pairs) / largest


def errors() -> dict[str, float]:
    """The errors, measured in the simulator, which is another process."""
    command = [sys.executable, "-m", "tests.cuda.machine_code"]
    run = subprocess.run(
        command, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(run.stdout)
    return found


def main() -> None:
    if SIMULATED:
        print(json.dumps({p.name: error(p) for p in PROGRAMS}))
        return
    found = errors()
    columns = [f"{what}, sm_{a}{b}" for a, b in ARCHITECTURES for what in ("registers", "stack", "shared", "spills")]
    print(f"| kernel | error | {' | '.join(columns)} |")
    print(f"|---|---|{'---|' * len(columns)}")
    for program in PROGRAMS:
        cells = []
        for cc in ARCHITECTURES:
            primal, adjoint = resources(program, cc)
            for key in ("registers", "stack", "shared", "spill_stores"):
                cells.append(f"{primal[key]} → {adjoint[key]}")
        print(f"| `{program.name}` | {found[program.name]:.0e} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
