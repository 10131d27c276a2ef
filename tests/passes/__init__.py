"""Passes before and after, in the text of the IR: a file `<pass>/<case>.ir` for each case.

    # wrt: x                                      options that the pass needs, if any
    f(x%0: float64)                               the program before
        t%1: float64 = multiply(x%0, x%0)
        t%2: float64 = multiply(x%0, x%0)
        t%3: float64 = add(t%1, t%2)
        yield t%3
    # ---- after
    f(x%0: float64)                               the program that the pass makes of it
        t%1: float64 = multiply(x%0, x%0)
        t%2: float64 = add(t%1, t%1)
        yield t%2

The folder has the name of a row of `PASSES`. How programs are written is told in `srcdiff/ir/print.py`; numbers of
values are free, because both sides are numbered anew before they are compared. Lines that start with `#` and are no
options are comments: the first says what the case stands for.

How to write a case: write the program by hand, or take the text of a function of yours as it is before the pass, from
`SRCDIFF_SHOW=all python my_program.py` (or `SRCDIFF_SHOW="loop fusion"`, the name of a pass in `srcdiff/pipeline.py`,
which prints the program after it). Make it as small as it can be. Then `python -m tests.passes` writes the parts after
`# ---- after` anew, of all cases or of those that are named; look at the difference, and judge whether it is right. A
pass has at least three cases: the plain one, one where it must not apply, and one that guards against a likely mistake.

Options: `wrt`, parameters that are differentiated by; `alone`, values that stay by themselves. Both are names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srcdiff.ir.nodes import Function, Program, Value, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.print import show
from srcdiff.ir.verify import verify
from srcdiff.transforms.adjoint_kernels import conditions_as_formulas, count_turns_over_grid, step_over_grid
from srcdiff.transforms.contract import contract
from srcdiff.transforms.from_zero import count_from_zero
from srcdiff.transforms.fuse import fuse, straighten
from srcdiff.transforms.gather import gather
from srcdiff.transforms.growing import grow_as_loops_run
from srcdiff.transforms.memory import tidy_memory, without_dead_stores
from srcdiff.transforms.pick import compute_where_picked
from srcdiff.transforms.recursion import adjoints_of_callees
from srcdiff.transforms.registers import elements_in_registers
from srcdiff.transforms.reverse import gradient_of
from srcdiff.transforms.scratch import make_scratch_once
from srcdiff.transforms.shape_checks import leave_out_checks_of_shapes
from srcdiff.transforms.share import share
from srcdiff.transforms.simplify import simplify
from srcdiff.transforms.sink import sink_into_branches
from srcdiff.transforms.tangent import dot_of, tangent_of, tangents_of_callees
from srcdiff.transforms.zeros import start_from_zeros

FOLDER = Path(__file__).parent
AFTER = "# ---- after"
_OPTION = re.compile(r"^# (wrt|alone): (.+)$", re.MULTILINE)

Options = dict[str, list[str]]
Run = Callable[[Program, Options], Program]


def each(transform: Callable[..., Function], *needs: str) -> Run:
    """A transform on every function; `needs` are options whose values it takes beside the function."""

    def run(program: Program, options: Options) -> Program:
        functions = [transform(f, *(named(f, options[n]) for n in needs)) for f in (program.main, *program.callees)]
        return Program(functions[0], tuple(functions[1:]))

    return run


def named(function: Function, names: Sequence[str]) -> list[Value]:
    """The values of the function that have one of these names."""
    values = [*function.params, *(v for o in walk(function.body) for v in (*o.defines(), *o.inner()))]
    return [v for v in values if v.name in names]


def reverse(program: Program, options: Options) -> Program:
    """The value and the gradient of the first result by the parameters of `wrt`."""
    main = program.main
    known, callees = adjoints_of_callees(program.callees)
    parameters = [p for p in main.params if p.name in options["wrt"]]
    name = f"{main.name}_value_and_grad"
    made = gradient_of(main, parameters, 0, with_results=True, name=name, callees=known, given={})
    return Program(made, callees)


def tangent(program: Program, options: Options) -> Program:
    """The tangents of all results, from those of the parameters of `wrt`."""
    main = program.main
    dots = {p: dot_of(p) for p in main.params if p.name in options["wrt"]}
    found = tangent_of(main, dots, f"{main.name}_tangent", main.body.yields)
    return Program(found, tangents_of_callees(program.callees))


PASSES: dict[str, Run] = {
    "conditions": each(conditions_as_formulas),
    "contract": each(contract),
    "count_turns_over_grid": each(count_turns_over_grid),
    "from_zero": each(count_from_zero),
    "fuse": each(fuse),
    "gather": each(gather),
    "growing": each(grow_as_loops_run),
    "memory": each(tidy_memory),
    "pick": each(compute_where_picked, "wrt"),
    "registers": each(elements_in_registers),
    "reverse": reverse,
    "scratch": each(make_scratch_once),
    "shape_checks": each(leave_out_checks_of_shapes),
    "share": each(share, "alone"),
    "simplify": each(simplify),
    "sink": each(sink_into_branches, "wrt"),
    "step_over_grid": each(step_over_grid),
    "straighten": each(straighten),
    "tangent": tangent,
    "without_dead_stores": each(without_dead_stores),
    "zeros": each(start_from_zeros),
}
"""Passes by the names of their folders: the module of the pass, or its function where a module has several."""


@dataclass(frozen=True)
class Case:
    """A program before a pass, and after it."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def halves(self) -> tuple[str, str]:
        before, _, after = self.path.read_text(encoding="utf-8").partition(f"{AFTER}\n")
        return before, after

    def options(self) -> Options:
        found: Any = {"wrt": [], "alone": []}
        return found | {key: names.split(", ") for key, names in _OPTION.findall(self.halves()[0])}

    def expected(self) -> str:
        return show(parse(self.halves()[1]))

    def made(self) -> str:
        """What the pass makes of the first half; both are legal."""
        program = parse(self.halves()[0])
        verify(program, "reading")
        made = PASSES[self.path.parent.name](program, self.options())
        verify(made, self.path.parent.name)
        return show(made)

    def write_anew(self) -> None:
        self.path.write_text(f"{self.halves()[0]}{AFTER}\n{self.made()}\n", encoding="utf-8")


def all_cases() -> list[Case]:
    return [Case(path) for path in sorted(FOLDER.glob("*/*.ir"))]
