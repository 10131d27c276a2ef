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
`python -m tests.passes.mutations` says which mistakes in a pass its cases would not notice.

Options: `wrt`, parameters that are differentiated by; `alone`, values that stay by themselves. Both are names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srcdiff.backends.cuda.kernel_adjoint import conditions_as_formulas, count_turns_over_grid, step_over_grid
from srcdiff.ir.nodes import Function, Program, Value, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.print import show
from srcdiff.ir.verify import verify
from srcdiff.passes.array_contraction import contract
from srcdiff.passes.callee_adjoints import reversals_of_callees
from srcdiff.passes.code_sinking import sink_into_branches
from srcdiff.passes.cse import share
from srcdiff.passes.dead_stores import tidy_memory, without_dead_stores
from srcdiff.passes.element_sinking import compute_where_picked
from srcdiff.passes.fold_views import index_instead_of_turning
from srcdiff.passes.growing_buffers import grow_as_loops_run
from srcdiff.passes.hoist_allocations import make_scratch_once
from srcdiff.passes.induction_variables import count_in_step
from srcdiff.passes.init_stores import start_from_zeros
from srcdiff.passes.loop_fusion import fuse, straighten
from srcdiff.passes.loop_normalization import count_from_zero
from srcdiff.passes.reverse_mode import Reversal, protect_arguments, reversed_function
from srcdiff.passes.scalar_replacement import elements_in_registers
from srcdiff.passes.scatter_to_gather import gather
from srcdiff.passes.shape_checks import leave_out_checks_of_shapes
from srcdiff.passes.simplify import simplify
from srcdiff.passes.tangent import dot_of, tangent_of, tangents_of_callees

FOLDER = Path(__file__).parent
AFTER = "# ---- after"
_OPTION = re.compile(r"^# (wrt|alone): (.+)$", re.MULTILINE)

Options = dict[str, list[str]]
Run = Callable[[Program, Options], Program]


@dataclass(frozen=True)
class Each:
    """A transform on every function; `needs` are options whose values it takes beside the function."""

    transform: Callable[..., Function]
    needs: tuple[str, ...] = ()

    def __call__(self, program: Program, options: Options) -> Program:
        main, *callees = [
            self.transform(f, *(named(f, options[n]) for n in self.needs)) for f in (program.main, *program.callees)
        ]
        return Program(main, tuple(callees))


def each(transform: Callable[..., Function], *needs: str) -> Run:
    return Each(transform, needs)


def named(function: Function, names: Sequence[str]) -> list[Value]:
    """The values of the function that have one of these names."""
    values = [*function.params, *(v for o in walk(function.body) for v in (*o.defines(), *o.inner()))]
    return [v for v in values if v.name in names]


def reverse(program: Program, options: Options) -> Program:
    """The value and the gradient of the first result by the parameters of `wrt`."""
    known, callees = reversals_of_callees(program.callees)
    main, _ = protect_arguments(program.main)
    parameters = tuple(p for p in main.params if p.name in options["wrt"])
    results = main.body.yields
    seeds = ((results[0], None),)
    made = Reversal(main, parameters, seeds, f"{main.name}_value_and_grad", results, callees=known)
    return Program(reversed_function(made), (*program.callees, *map(reversed_function, callees)))


def tangent(program: Program, options: Options) -> Program:
    """The tangents of all results, from those of the parameters of `wrt`."""
    main = program.main
    dots = {p: dot_of(p) for p in main.params if p.name in options["wrt"]}
    found = tangent_of(main, dots, f"{main.name}_tangent", main.body.yields)
    return Program(found, tangents_of_callees(program.callees))


PASSES: dict[str, Run] = {
    "array_contraction": each(contract),
    "code_sinking": each(sink_into_branches, "wrt"),
    "conditions": each(conditions_as_formulas),
    "cse": each(share, "alone"),
    "dead_stores": each(tidy_memory),
    "dead_stores_of_threads": each(without_dead_stores),
    "element_sinking": each(compute_where_picked, "wrt"),
    "fold_views": each(index_instead_of_turning),
    "grid_counts": each(count_turns_over_grid),
    "grid_strides": each(step_over_grid),
    "growing_buffers": each(grow_as_loops_run),
    "hoist_allocations": each(make_scratch_once),
    "induction_variables": each(count_in_step),
    "init_stores": each(start_from_zeros),
    "loop_fusion": each(fuse),
    "loop_normalization": each(count_from_zero),
    "loop_reversal": each(straighten),
    "reverse_mode": reverse,
    "scalar_replacement": each(elements_in_registers),
    "scatter_to_gather": each(gather),
    "shape_checks": each(leave_out_checks_of_shapes),
    "simplify": each(simplify),
    "tangent": tangent,
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

    def made(self, run: Run | None = None) -> str:
        """What the pass, or `run` in its place, makes of the first half; both are legal."""
        program = parse(self.halves()[0])
        verify(program, "reading")
        made = (run or PASSES[self.path.parent.name])(program, self.options())
        verify(made, self.path.parent.name)
        return show(made)

    def write_anew(self) -> None:
        self.path.write_text(f"{self.halves()[0]}{AFTER}\n{self.made()}\n", encoding="utf-8")


def all_cases() -> list[Case]:
    return [Case(path) for path in sorted(FOLDER.glob("*/*.ir"))]
