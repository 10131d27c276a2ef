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

The folder has the name of a row of `PASSES`. The notation of programs is described in `srcdiff/ir/print.py`; numbers of
values are free, because both sides are numbered anew before they are compared. Lines that start with `#` and are no
options are comments: the first says what the case stands for.

How to write a case: write the program by hand, or take the text of a function of yours as it is before the pass, from
`SRCDIFF_SHOW=all python my_program.py` (or `SRCDIFF_SHOW="loop fusion"`, the name of a pass in `srcdiff/pipeline.py`,
which prints the program after it). Make it as small as it can be. Then `python -m tests.passes` writes the parts after
`# ---- after` anew, of all cases or of those that are named; look at the difference, and judge whether it is right. A
pass has at least three cases: the plain one, one where it must not apply, and one that guards against a likely mistake.
`python -m tests.passes.mutations` says which mistakes in a pass its cases would not notice.

Options: `wrt`, parameters that are differentiated by; `alone`, values that stay by themselves. Both are names. What
`mode: forward`, `batch`, `given`, `sums`, `gradients`, `axes` and `copies` are, the rows in `derivatives.py` say. Names
of custom rules stand for those of `derivatives.OBJECTS`.

The programs run, too: `test_numbers.py` compares derivatives with central differences, and what other passes make of a
program with the program; `tests/cuda/test_cases_of_passes.py` does so with kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from srcdiff.ir.nodes import Function, Program, Value, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.print import show
from srcdiff.ir.verify import verify
from srcdiff.passes.array_contraction import contract
from srcdiff.passes.branch_fusion import fuse_branches
from srcdiff.passes.branch_invariants import hoist_from_branches
from srcdiff.passes.branch_sums import take_sums_out_of_branches
from srcdiff.passes.carried_elements import carry_elements
from srcdiff.passes.chosen_arrays import fill_chosen_arrays
from srcdiff.passes.chosen_iterations import differentiate_chosen_iterations
from srcdiff.passes.clips import clip_numbers
from srcdiff.passes.closed_forms import close_induction_variables
from srcdiff.passes.code_sinking import sink_code
from srcdiff.passes.consecutive_stores import assign_consecutive_elements
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.dead_stores import remove_dead_stores, remove_dead_stores_only
from srcdiff.passes.early_checks import check_early
from srcdiff.passes.element_sinking import sink_elements
from srcdiff.passes.element_sums import add_after_loops
from srcdiff.passes.excluded_pairs import compute_for_all
from srcdiff.passes.factored_sums import factor_sums
from srcdiff.passes.first_additions import assign_first
from srcdiff.passes.fold_views import fold_views
from srcdiff.passes.growing_buffers import grow_buffers
from srcdiff.passes.guarded_loops import guard_loops
from srcdiff.passes.hoist_allocations import hoist_allocations
from srcdiff.passes.induction_variables import merge_induction_variables
from srcdiff.passes.init_stores import start_sums_by_assignment
from srcdiff.passes.length_hoisting import hoist_lengths
from srcdiff.passes.linear_recurrences import split_linear_recurrences
from srcdiff.passes.loop_distribution import distribute_loops
from srcdiff.passes.loop_fusion import fuse, reverse_loops
from srcdiff.passes.loop_interchange import interchange_loops
from srcdiff.passes.loop_invariants import hoist_invariants
from srcdiff.passes.loop_normalization import normalize_loops
from srcdiff.passes.loops_in_threads import share
from srcdiff.passes.overwritten_arrays import elide_copies, rename_overwritten
from srcdiff.passes.partial_copies import copy_partially
from srcdiff.passes.product_buffers import reuse_product_buffers
from srcdiff.passes.product_order import reorder_products
from srcdiff.passes.row_gathering import gather_rows
from srcdiff.passes.scalar_replacement import replace_scalars
from srcdiff.passes.scatter_to_gather import gather
from srcdiff.passes.shape_checks import remove_shape_checks
from srcdiff.passes.shared_factors import share_factors
from srcdiff.passes.short_axes import unroll_short_axes, unroll_short_loops
from srcdiff.passes.simplify import simplify
from srcdiff.passes.single_iterations import branch_on_single_iterations
from srcdiff.passes.skipped_work import do_skipped_work
from srcdiff.passes.small_arrays import replace_small_arrays
from srcdiff.passes.strong_zeros import choose_zeros
from srcdiff.passes.symmetric_pairs import add_to_first_of_pairs
from srcdiff.passes.triangular_solves import solve_triangles
from srcdiff.passes.truth_values import choose_by_truth_values
from tests.passes.derivatives import DERIVATIVES, OBJECTS, Options, Run

FOLDER = Path(__file__).parent
AFTER = "# ---- after"
OPTIONS = ("wrt", "alone", "mode", "batch", "given", "sums", "gradients", "axes", "copies")
_OPTION = re.compile(rf"^# ({'|'.join(OPTIONS)}): (.+)$", re.MULTILINE)


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


def unroll_given_axes(program: Program, options: Options) -> Program:
    """With `axes: x 1 3`, axis 1 of `x` had three elements at the first call."""
    main, axes = program.main, [option.split() for option in options["axes"]]
    known = {(named(main, [name])[0], int(axis)): int(length) for name, axis, length in axes}
    return Program(unroll_short_axes(main, known), program.callees)


PASSES: dict[str, Run] = {
    "array_contraction": each(contract),
    "branch_fusion": each(fuse_branches),
    "chosen_arrays": each(fill_chosen_arrays),
    "chosen_iterations": each(differentiate_chosen_iterations, "wrt"),
    "clips": each(clip_numbers, "alone"),
    "closed_forms": each(close_induction_variables),
    "code_sinking": each(sink_code, "wrt"),
    "element_sums": each(add_after_loops),
    "consecutive_stores": each(assign_consecutive_elements),
    "cse": each(eliminate_common_subexpressions, "alone"),
    "copy_elision": each(elide_copies),
    "dead_stores": each(remove_dead_stores),
    "dead_stores_of_threads": each(remove_dead_stores_only),
    "early_checks": each(check_early, "alone"),
    "element_sinking": each(sink_elements, "wrt"),
    "first_additions": each(assign_first),
    "fold_views": each(fold_views),
    "growing_buffers": each(grow_buffers),
    "guarded_loops": each(guard_loops),
    "hoist_allocations": each(hoist_allocations),
    "induction_variables": each(merge_induction_variables),
    "init_stores": each(start_sums_by_assignment),
    "length_hoisting": each(hoist_lengths),
    "branch_invariants": each(hoist_from_branches, "alone"),
    "branch_sums": each(take_sums_out_of_branches),
    "partial_copies": each(copy_partially),
    "linear_recurrences": each(split_linear_recurrences),
    "loop_fusion": each(fuse),
    "loop_invariants": each(hoist_invariants, "alone"),
    "loop_interchange": each(interchange_loops),
    "loops_in_threads": each(share),
    "loop_normalization": each(normalize_loops),
    "loop_reversal": each(reverse_loops),
    "carried_elements": each(carry_elements),
    "overwritten_arrays": each(lambda f, stay: rename_overwritten(hoist_lengths(f), stay), "alone"),
    "scalar_replacement": each(replace_scalars),
    "product_buffers": each(reuse_product_buffers),
    "product_order": each(reorder_products, "wrt"),
    "row_gathering": each(gather_rows),
    "scatter_to_gather": each(gather),
    "shape_checks": each(remove_shape_checks),
    "short_axes": unroll_given_axes,
    "short_loops": each(unroll_short_loops),
    "excluded_pairs": each(compute_for_all),
    "factored_sums": each(factor_sums),
    "loop_distribution": each(distribute_loops),
    "strong_zeros": each(choose_zeros),
    "symmetric_pairs": each(add_to_first_of_pairs),
    "shared_factors": each(share_factors),
    "triangular_solves": each(solve_triangles),
    "truth_values": each(choose_by_truth_values),
    "simplify": each(simplify),
    "single_iterations": each(branch_on_single_iterations),
    "skipped_work": each(do_skipped_work, "wrt"),
    "small_arrays": each(replace_small_arrays, "alone"),
    **DERIVATIVES,
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
        given = {key: names.split(", ") for key, names in _OPTION.findall(self.halves()[0])}
        return {option: given.get(option, []) for option in OPTIONS}

    def expected(self) -> str:
        return show(parse(self.halves()[1], OBJECTS))

    def made(self, run: Run | None = None) -> str:
        """The program after the pass, or after `run` instead of it. Both programs are verified."""
        program = parse(self.halves()[0], OBJECTS)
        verify(program, "reading")
        made = (run or PASSES[self.path.parent.name])(program, self.options())
        verify(made, self.path.parent.name)
        return show(made)

    def write_anew(self) -> None:
        self.path.write_text(f"{self.halves()[0]}{AFTER}\n{self.made()}\n", encoding="utf-8")


def all_cases() -> list[Case]:
    return [Case(path) for path in sorted(FOLDER.glob("*/*.ir"))]
