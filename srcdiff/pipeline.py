"""The compiler as lists of named passes.

source text -> syntax tree -> typed IR -> facts -> adjoint or tangent IR -> Python text -> compiled function

`SRCDIFF_SHOW="loop fusion"` (or `all`) prints the program after that pass, `SRCDIFF_TIMINGS=1` the time of each pass.
Generated source and machine code are cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.backends.cuda import kernel_passes as kernels
from srcdiff.backends.cuda.cuda_spelling import CUDA
from srcdiff.backends.cuda.kernel_adjoint import conditions_as_formulas, count_iterations_over_grid, step_over_grid
from srcdiff.backends.cuda.kernel_passes import KernelCompilation
from srcdiff.backends.registry import BACKENDS
from srcdiff.emit.module import first_line_about, write_kernels, write_module
from srcdiff.ir.nodes import Function, Value
from srcdiff.passes import derivative_expansion, requested
from srcdiff.passes import differentiation as derivative
from srcdiff.passes.array_contraction import contract
from srcdiff.passes.branch_fusion import fuse_branches
from srcdiff.passes.branch_invariants import hoist_from_branches
from srcdiff.passes.carried_elements import carry_elements
from srcdiff.passes.chosen_iterations import differentiate_chosen_iterations
from srcdiff.passes.clips import clip_numbers
from srcdiff.passes.closed_forms import close_induction_variables
from srcdiff.passes.code_sinking import sink_code
from srcdiff.passes.compilation import Compilation
from srcdiff.passes.consecutive_stores import assign_consecutive_elements
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.dead_stores import remove_dead_stores, remove_dead_stores_only
from srcdiff.passes.early_checks import check_early
from srcdiff.passes.element_sinking import sink_elements
from srcdiff.passes.element_sums import add_after_loops
from srcdiff.passes.excluded_pairs import compute_for_all
from srcdiff.passes.factored_sums import factor_sums
from srcdiff.passes.first_additions import assign_first
from srcdiff.passes.growing_buffers import grow_buffers
from srcdiff.passes.guarded_loops import guard_loops
from srcdiff.passes.hoist_allocations import hoist_allocations
from srcdiff.passes.init_stores import start_sums_by_assignment
from srcdiff.passes.jacobian import UNROLLED_LANES
from srcdiff.passes.linear_recurrences import split_linear_recurrences
from srcdiff.passes.loop_distribution import distribute_loops
from srcdiff.passes.loop_fusion import fuse, reverse_loops
from srcdiff.passes.loop_interchange import interchange_loops
from srcdiff.passes.loop_invariants import hoist_invariants
from srcdiff.passes.loop_normalization import normalize_loops
from srcdiff.passes.loops_in_threads import share_loops
from srcdiff.passes.manager import Pass, each
from srcdiff.passes.parallel_claims import check_claims
from srcdiff.passes.product_buffers import reuse_product_buffers
from srcdiff.passes.product_order import reorder_products
from srcdiff.passes.reverse_mode import (
    add_shadow_references,
    call_forward_functions,
    count_iterations,
    plan_storage,
    rename_arrays,
    rename_overwritten_arrays,
    sweeping,
    take_snapshots,
    write_forward_sweep,
    write_reverse_sweep,
)
from srcdiff.passes.row_gathering import gather_rows
from srcdiff.passes.scalar_replacement import replace_scalars
from srcdiff.passes.scatter_to_gather import gather
from srcdiff.passes.shape_checks import remove_shape_checks
from srcdiff.passes.shared_factors import share_factors
from srcdiff.passes.short_axes import unroll_short_axes, unroll_short_loops
from srcdiff.passes.simplify import simplify
from srcdiff.passes.single_iterations import branch_on_single_iterations
from srcdiff.passes.skipped_work import do_skipped_work
from srcdiff.passes.small_arrays import replace_small_arrays, replace_small_seeds
from srcdiff.passes.strong_zeros import choose_zeros
from srcdiff.passes.symmetric_pairs import add_to_first_of_pairs
from srcdiff.passes.triangular_solves import solve_triangles
from srcdiff.passes.truth_values import choose_by_truth_values

# -- conditions and inputs of passes -------------------------------------------------------------------------------


def mode(*modes: str) -> Callable[[Compilation], bool]:
    return lambda state: state.request.mode in modes


def of_backend(name: str, run: Callable[[Any], None], what: str) -> Pass:
    """A pass that is due for the backends that name it among theirs."""
    return Pass(name, run, what, lambda state: name in BACKENDS[state.backend].passes)


def on_host(state: Compilation) -> bool:
    """Whether loops stay loops, and do not become kernels."""
    return "kernel extraction" not in BACKENDS[state.backend].passes


def wrt(state: Compilation, function: Function) -> Sequence[Value]:
    """The active inputs; all parameters of a recursive function."""
    is_main = function is state.main
    return [v for n in state.request.wrt for v in requested.chosen(state, n)] if is_main else function.params


def named(state: Compilation, function: Function) -> Sequence[Value]:
    """Local variables in `wrt`, which no pass may merge with others."""
    known = state.reading.intermediates.items() if function is state.main else ()
    return [v for n, v in known if n in state.request.wrt]


def of_jacobian(when: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda state: state.request.jacobian and when(state)


def in_threads(state: Compilation) -> bool:
    """Whether threads share loops."""
    return state.request.parallel and on_host(state)


def few_lanes(state: Compilation) -> bool:
    return state.request.numbers is not None and state.request.numbers <= UNROLLED_LANES


def has_short_axes(state: Compilation) -> bool:
    request = state.request
    return bool(request.short_axes) and on_host(state) and not request.parallel and not request.jacobian


def may_unroll(state: Compilation) -> bool:
    """Whether there are short axes, and no derivative by a local variable, which unrolling would multiply."""
    return has_short_axes(state) and all(name in state.reading.arguments for name in state.request.wrt)


def divisions_never_raise(state: Compilation) -> bool:
    """Whether the program is compiled by Numba, and a division by zero gives infinity or NaN."""
    return state.backend == "numba" and state.request.error_model in ("", "numpy")


def axes_of_parameters(state: Compilation, function: Function) -> dict[tuple[Value, int], int]:
    """The short axes of arrays that are arguments."""
    given = [(state.reading.arguments.get(name), axis, length) for name, axis, length in state.request.short_axes]
    return {(v, axis): length for v, axis, length in given if isinstance(v, Value) and v in function.params}


def memory_of_iterations(state: Compilation, function: Function) -> bool:
    """Whether arrays that one iteration needs are its own."""
    return in_threads(state) and function is state.main


def decisions(state: Compilation, function: Function) -> Any:
    return state.decisions if function is state.main else None


def emit(state: Compilation) -> None:
    template = requested.result_template(state)
    given = (state.further, template, state.workspace, state.kernels, state.whole, BACKENDS[state.backend].spelling)
    state.module = write_module(state.main, state.callees, state.reading, *given)


def emit_kernel(state: KernelCompilation) -> None:
    private = state.private
    assert private is not None
    measure = private.measure
    lengths = [kernels.lengths_function(private, private.kernel, private.scratch, private.definition)]
    written = [private.kernel]
    if measure is not None:
        written.insert(0, measure.kernel)
        lengths.insert(0, kernels.lengths_function(private, measure.kernel, measure.scratch, measure.definition))
    doc = first_line_about(state.reading)
    state.module = write_kernels(state.main.name, written, [f for f in lengths if f is not None], doc, CUDA)


def note_primal(state: Compilation) -> None:
    state.differentiated, state.differentiated_callees = state.main, state.callees


# -- the passes ------------------------------------------------------------------------------------------------------

REVERSE = mode("reverse", "pullback")
SIMPLIFICATION = Pass("simplification", each(simplify), "fold constants, remove dead code and constant loop parameters")
NESTED_DERIVATIVES = Pass(
    "nested derivatives",
    derivative_expansion.expand_derivatives,
    "derivatives that the program takes are programs, written into it",
)
CLEAN_UP = (
    Pass("common subexpressions", each(eliminate_common_subexpressions, named), "compute equal expressions once"),
    SIMPLIFICATION,
)
BRANCH_FUSION = Pass("branch fusion", each(fuse_branches), "branches on the same condition become one")
FUSION = (
    Pass("loop fusion", each(fuse, decisions), "loops over the same range share one body"),
    *CLEAN_UP,
    Pass("dead stores", each(remove_dead_stores), "remove stores that are never read; start sums by assignment"),
    *CLEAN_UP,
)


def sweeps(when: Callable[[Any], bool], check: Callable[[Any], None] = lambda state: None) -> tuple[Pass, ...]:
    """Reverse mode, of the function and of those that it calls."""
    return (
        Pass(
            "overwritten arrays",
            sweeping(rename_overwritten_arrays),
            "arrays that iterations overwrite become new ones",
            when,
        ),
        Pass("iteration counts", sweeping(count_iterations), "loops of unknown length count their iterations", when),
        Pass("snapshots", sweeping(take_snapshots), "copy arguments of custom rules that are overwritten later", when),
        Pass("forward calls", sweeping(call_forward_functions), "recursive calls store what their adjoints need", when),
        Pass("adjoint checks", check, "arrays that carry derivatives have adjoints", when),
        Pass(
            "shadow references", sweeping(add_shadow_references), "references to adjoints follow the references", when
        ),
        Pass("storage plan", sweeping(plan_storage), "decide which values are stored, recomputed or restored", when),
        Pass("array renaming", sweeping(rename_arrays), "new arrays instead of buffers where that stores less", when),
        Pass("forward sweep", sweeping(write_forward_sweep), "the program, with stores for the reverse sweep", when),
        Pass("reverse sweep", sweeping(write_reverse_sweep), "the adjoints of the operations, in reverse order", when),
    )


DIFFERENTIATE = (
    NESTED_DERIVATIVES,
    *CLEAN_UP,
    Pass(
        "skipped work",
        each(do_skipped_work, wrt),
        "tests for equality that only save work do not decide the derivative",
        mode("reverse", "pullback", "forward"),
    ),
    Pass("parallel claims", check_claims, "iterations of `prange` do not depend on each other"),
    Pass("early checks", each(check_early, named), "check lengths before the loops that repeat it"),
    Pass("triangular solves", each(solve_triangles), "solve equations with a Cholesky factor by substitution"),
    Pass("induction variables", each(close_induction_variables), "integers that loops add to, in closed form", REVERSE),
    Pass("small arrays", each(replace_small_arrays, named), "a small array of known shape becomes scalars"),
    Pass(
        "short loops",
        each(unroll_short_loops),
        "unroll sums of few terms where an axis was short at the first call",
        may_unroll,
    ),
    Pass("element sinking", each(sink_elements, wrt), "compute an element where an index selects it", REVERSE),
    *CLEAN_UP,
    *FUSION,
    Pass("loop interchange", each(interchange_loops), "loops move inside others that can share their iterations"),
    *FUSION,
    Pass("product order", each(reorder_products, wrt), "multiply first what has no adjoint", REVERSE),
    Pass(
        "chosen iterations",
        each(differentiate_chosen_iterations, wrt),
        "differentiate the one iteration that has decided a number",
        REVERSE,
    ),
    Pass("clips", each(clip_numbers, named), "the smaller of the larger of numbers is one primitive"),
    Pass("code sinking", each(sink_code, wrt), "compute in a branch what only the branch differentiates", REVERSE),
    Pass("branch invariants", each(hoist_from_branches, named), "move loop-invariant functions out of branches"),
    Pass("loop invariants", each(hoist_invariants, named), "move loop-invariant code before the loop"),
    SIMPLIFICATION,
    Pass("primal", note_primal, "the program to differentiate is final"),
    Pass("gradient", derivative.start_gradient, "reverse mode, from one result", mode("reverse")),
    Pass("pullback", derivative.start_pullback, "reverse mode, from given adjoints", mode("pullback")),
    *sweeps(REVERSE),
    Pass("forward mode", derivative.forward_mode, "a tangent beside every active value", mode("forward")),
)
FIRST_ADDITIONS = Pass("first additions", each(assign_first), "the first addition to an element of zeros assigns it")
SHORT_AXES = tuple(
    replace(one, when=has_short_axes)
    for one in (
        Pass(
            "short axes",
            each(unroll_short_axes, axes_of_parameters, only_main=True),
            "unroll loops along axes that were short at the first call, where they still are",
        ),
        *CLEAN_UP,
        *FUSION,
        BRANCH_FUSION,
        *CLEAN_UP,
    )
)
EXCLUDED_PAIRS = Pass("excluded pairs", each(compute_for_all), "branches that leave out one iteration become choices")
STRONG_ZEROS = Pass("strong zeros", each(choose_zeros), "products that are zero if an adjoint is become choices")
SINGLE_ITERATIONS = Pass(
    "single iterations", each(branch_on_single_iterations), "loops of one iteration at most are branches", on_host
)
PARALLEL_LOOPS = Pass("parallel loops", share_loops, "threads share loops with independent iterations")
OPTIMIZE = (
    *CLEAN_UP,
    BRANCH_FUSION,
    Pass("loop reversal", each(reverse_loops), "loops with independent iterations run forwards"),
    *FUSION,
    BRANCH_FUSION,
    Pass("joint calls", derivative.join_calls, "calls of recursive functions join those of their adjoints", REVERSE),
    Pass(
        "array contraction",
        each(contract, memory_of_iterations),
        "arrays of which each iteration uses one part shrink to that part",
    ),
    Pass("row gathering", each(gather_rows), "each row collects its contributions from other rows"),
    Pass("scatter to gather", each(gather), "each element collects its contributions"),
    *CLEAN_UP,
    *SHORT_AXES,
    Pass("symmetric pairs", each(add_to_first_of_pairs), "pairs add to the element of their first member", on_host),
    Pass("factored sums", each(factor_sums), "invariant factors leave sums of chosen terms"),
    STRONG_ZEROS,
    *CLEAN_UP,
    Pass(
        "consecutive stores", each(assign_consecutive_elements), "arrays that are filled in order start by assignment"
    ),
    Pass("initial stores", each(start_sums_by_assignment, only_main=True), "sums start by assignment instead of zeros"),
    *CLEAN_UP,
    Pass("linear recurrences", each(split_linear_recurrences), "compute first what needs no earlier element"),
    Pass("loop distribution", each(distribute_loops), "functions leave serial loops that store their results", on_host),
    *CLEAN_UP,
    replace(SINGLE_ITERATIONS, when=in_threads),
    replace(PARALLEL_LOOPS, when=lambda state: in_threads(state) and not state.request.jacobian),
    Pass("allocation hoisting", each(hoist_allocations), "allocate once, before the loop"),
    Pass("element sums", each(add_after_loops), "what branches add to an element is a sum in a scalar", on_host),
    replace(EXCLUDED_PAIRS, when=divisions_never_raise),
    Pass("scalar replacement", each(replace_scalars), "keep an element that a loop revisits in a scalar"),
    Pass("carried elements", each(carry_elements), "keep an element that the next iteration loads in a scalar"),
    SINGLE_ITERATIONS,
    *CLEAN_UP,
    BRANCH_FUSION,
    FIRST_ADDITIONS,
    Pass("truth values", each(choose_by_truth_values), "numbers made of truth values are choices"),
    Pass("loop normalization", each(normalize_loops), "inner loops count from zero"),
    *CLEAN_UP,
    Pass("guarded loops", each(guard_loops), "a loop moves into the branch that tests whether it runs"),
    Pass("shape checks", each(remove_shape_checks), "remove checks that an allocation repeats"),
    *CLEAN_UP,
)
JACOBIAN = tuple(
    replace(one, when=of_jacobian(one.when))
    for one in (
        Pass("jacobian", derivative.jacobian, "all directions at once, in lanes"),
        *CLEAN_UP,
        Pass("small seeds", each(replace_small_seeds, named), "a few lanes are unrolled, and seeds scalars", few_lanes),
        *CLEAN_UP,
        Pass("dead stores", each(remove_dead_stores), "remove stores that are never read; start sums by assignment"),
        *CLEAN_UP,
        FIRST_ADDITIONS,
    )
)
FINISH = (
    replace(PARALLEL_LOOPS, when=of_jacobian(in_threads)),
    of_backend("product buffers", each(reuse_product_buffers), "products in loops write into one array"),
    Pass("workspace", derivative.take_workspace, "take memory from the caller", lambda state: state.request.workspace),
    Pass(
        "given results",
        derivative.take_results,
        "write results to arrays of the caller",
        lambda state: state.request.given_results,
    ),
    of_backend("growing buffers", each(grow_buffers), "buffers of loops with early exits grow as they run"),
    Pass("batch loop", derivative.batch_loop, "call it for each element of a batch", lambda state: state.request.batch),
    of_backend("shared factors", each(share_factors), "equations with the same matrix share its LU factors"),
    of_backend("kernel extraction", kernels.extract_kernels, "independent loops become kernels"),
    Pass("emission", emit, "write the source"),
)
PASSES: Sequence[Pass] = (*DIFFERENTIATE, *OPTIMIZE, *JACOBIAN, *FINISH)
derivative_expansion.take_derivatives_by((*DIFFERENTIATE, *JACOBIAN))


# -- the passes over users' own kernels ------------------------------------------------------------------------------

CLEAN_UP_KERNEL = (
    Pass("common subexpressions", each(eliminate_common_subexpressions), "compute equal expressions once"),
    SIMPLIFICATION,
)
KERNEL_PASSES: Sequence[Pass] = (
    NESTED_DERIVATIVES,
    *CLEAN_UP_KERNEL,
    Pass("conditions", each(conditions_as_formulas), "write `and` and `or` of integers without branches"),
    Pass("grid counts", each(count_iterations_over_grid), "loops over a grid count their iterations"),
    *CLEAN_UP_KERNEL,
    Pass("races", kernels.check_races, "refuse threads that race or miss a barrier"),
    Pass("guard opening", kernels.open_guard, "take the kernel out of its guard", kernels.differentiated),
    Pass("kernel adjoint", kernels.start_reversal, "reverse mode, for each thread", kernels.differentiated),
    *sweeps(kernels.differentiated, kernels.check_adjoints),
    *CLEAN_UP_KERNEL,
    Pass("loop reversal", each(reverse_loops), "loops with independent iterations run forwards", kernels.alone),
    Pass("loop fusion", each(fuse), "loops over the same range share one body", kernels.alone),
    *CLEAN_UP_KERNEL,
    Pass("dead stores", each(remove_dead_stores), "remove stores that are never read", kernels.alone),
    Pass("dead stores", each(remove_dead_stores_only), "of arrays that no other thread reads", kernels.together),
    *CLEAN_UP_KERNEL,
    Pass("scalar replacement", each(replace_scalars), "keep an element in a scalar", kernels.alone),
    *CLEAN_UP_KERNEL,
    Pass("grid strides", each(step_over_grid), "loops over a grid step by its size again"),
    Pass("guard closing", kernels.close_guard, "put the guard around the kernel again", kernels.guarded),
    *CLEAN_UP_KERNEL,
    Pass("kernel tangent", kernels.tangent_kernel, "a tangent beside every active value", kernels.has_tangents),
    *CLEAN_UP_KERNEL,
    STRONG_ZEROS,
    *CLEAN_UP_KERNEL,
    Pass("atomic adds", kernels.add_atomically, "adds that threads may make to one element are atomic"),
    Pass("complex functions", kernels.compute_by_parts, "compute with complex numbers by real and imaginary parts"),
    Pass("thread memory", kernels.place_memory, "place arrays in local, shared or global memory"),
    Pass("emission", emit_kernel, "write the source"),
)
