"""The rows of the table of passes for differentiation and for the later steps: reverse mode, batches, kernels.

A step of reverse mode needs the results of the steps before it, so its row runs these too: a case shows the program
after that step. The storage plan does not change the program; its row writes the plan into comments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numpy.linalg import LinAlgError

from srcdiff import custom_rule, pipeline
from srcdiff.backends.cuda.kernel_adjoint import (
    adding_atomically,
    conditions_as_formulas,
    count_iterations_over_grid,
    reversal_of_kernel,
    step_over_grid,
    tangent_of_kernel,
    without_guard,
)
from srcdiff.backends.cuda.kernel_extraction import to_kernels
from srcdiff.backends.cuda.numbered_references import references_as_numbers
from srcdiff.backends.cuda.races import SPREAD, Spread
from srcdiff.backends.cuda.thread_memory import _Slots, private_memory
from srcdiff.diagnostics import Span
from srcdiff.frontend.callees import finished
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import fresh
from srcdiff.ir.nodes import Block, Comment, CoordinateKind, Function, Loop, Operation, Program, Value, called_by
from srcdiff.ir.types import Array
from srcdiff.passes.batch_loop import for_each
from srcdiff.passes.callee_adjoints import Reversed, jointly, separately
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.derivative_expansion import Expansion
from srcdiff.passes.jacobian import Sweep, jacobian_of
from srcdiff.passes.joint_calls import join_calls
from srcdiff.passes.lanes import in_one_lane, with_lanes
from srcdiff.passes.product_loops import products_as_loops
from srcdiff.passes.reverse_mode import (
    STEPS,
    Reversal,
    add_shadow_references,
    count_iterations,
    plan_storage,
    program_of,
    protect_arguments,
    rename_arrays,
    reversed_function,
    take_snapshots,
    write_forward_sweep,
)
from srcdiff.passes.simplify import simplify
from srcdiff.passes.stacks import stacks_as_arrays
from srcdiff.passes.tangent import dot_of, tangent_of, tangents_of_callees
from srcdiff.passes.workspace_parameters import with_given_results, with_workspace

Options = dict[str, list[str]]
Run = Callable[[Program, Options], Program]


def with_names(values: Sequence[Value], names: Sequence[str]) -> tuple[Value, ...]:
    return tuple(v for v in values if v.name in names)


# -- reverse mode and its steps ----------------------------------------------------------------------------------------


def started(program: Program, options: Options) -> tuple[Reversal, list[Reversal]]:
    """The reversal of the main function, from its first result to the parameters of `wrt`, and of those it calls."""
    main, _ = protect_arguments(program.main)
    return started_with(separately(main, program.callees), main, options)


def started_with(found: Reversed, main: Function, options: Options) -> tuple[Reversal, list[Reversal]]:
    results = main.body.yields
    wrt, seeds = with_names(main.params, options["wrt"]), ((results[0], None),)
    reversal = Reversal(main, wrt, seeds, f"{main.name}_value_and_grad", results, callees=found.known)
    reversal.pairs, reversal.stacks = found.pairs, found.stacks
    return reversal, list(found.reversals)


def reverse(program: Program, options: Options) -> Program:
    """The value and the gradient of the first result by the parameters of `wrt`."""
    main, callees = started(program, options)
    for reversal in (main, *callees):
        reversed_function(reversal)
    return program_of((main, *callees), program.callees)


def reverse_until(last: Callable[[Reversal], None], shown: Callable[[Reversal], Function] | None = None) -> Run:
    """The main function after this step of reverse mode."""

    def run(program: Program, options: Options) -> Program:
        reversal, _ = started(program, options)
        for step in STEPS[: STEPS.index(last) + 1]:
            step(reversal)
        return Program(reversal.function if shown is None else shown(reversal), program.callees)

    return run


def call_pairs(program: Program, options: Options) -> Program:
    """All functions after the forward sweeps: the arguments of calls, and the values that blocks push on stacks."""
    main, callees = started(program, options)
    for step in STEPS[: STEPS.index(write_forward_sweep) + 1]:
        for reversal in (main, *callees):
            step(reversal)
    made = program_of((main, *callees), program.callees)
    return Program(made.main, called_by(made.main, made.callees))


def joint_calls(program: Program, options: Options) -> Program:
    """The derivative, with functions that run jointly with their adjoints if possible."""
    main, _ = protect_arguments(program.main)
    found = jointly(program.callees)
    if found is None:
        return reverse(program, options)
    reversal, _ = started_with(found, main, options)
    derivative = simplify(eliminate_common_subexpressions(reversed_function(reversal), ()))
    joined = join_calls(derivative, found.joint)
    return Program(joined, called_by(joined, found.functions))


def with_plan(reversal: Reversal) -> Function:
    """The program with a comment after each value in the plan."""
    decisions = reversal.chosen.plan.decisions
    said = {
        "keep": "is kept",
        "again": "is computed again",
        "yielded": "is carried back by the loop",
        "undone": "is undone",
    }

    def about(values: Sequence[Value]) -> list[Operation]:
        return [Comment(f"{v.name or 'it'} {said[decisions[v].how]}") for v in values if v in decisions]

    def visit(block: Block, given: Sequence[Value] = ()) -> Block:
        operations = about(given)
        for operation in block.operations:
            params = operation.params if isinstance(operation, Loop) else ()
            inside = operation.rebuilt(lambda inner, params=params: visit(inner, params))  # type: ignore[misc]
            operations += [inside, *about(operation.defines())]
        return Block(tuple(operations), block.yields)

    function = reversal.chosen.function
    return replace(function, body=visit(function.body))


def tangent(program: Program, options: Options) -> Program:
    """The tangents of all results, from those of the parameters in `wrt`."""
    main = program.main
    dots = {p: dot_of(p) for p in with_names(main.params, options["wrt"])}
    found = tangent_of(main, dots, f"{main.name}_tangent", main.body.yields)
    return Program(found, tangents_of_callees(program.callees))


def either(program: Program, options: Options) -> Program:
    """The tangent or the gradient, depending on `mode`."""
    return tangent(program, options) if options["mode"] == ["forward"] else reverse(program, options)


# -- rules of users ----------------------------------------------------------------------------------------------------


def _cube(x: Any) -> Any:
    return x * x * x


def _cube_adjoint(x: Any, out: Any, out_bar: Any) -> Any:
    return 3.0 * x * x * out_bar


def _cube_tangent(x: Any, out: Any, x_dot: Any) -> Any:
    return 3.0 * x * x * x_dot


def _exp_adjoint(x: Any, out: Any, out_bar: Any) -> Any:
    return out * out_bar


def _scaled_adjoint(a: Any, v: Any, out: Any, out_bar: Any) -> Any:
    a_bar = 0.0
    for i in range(v.shape[0]):
        a_bar += out_bar[i] * v[i]
    return a_bar, a * out_bar


def _scaled_tangent(a: Any, v: Any, out: Any, a_dot: Any, v_dot: Any) -> Any:
    return a_dot * v + a * v_dot


def _first_adjoint(x: Any, y: Any, out: Any, out_bar: Any) -> Any:
    return y * out_bar, None


def _ruled(name: str, adjoint: Any = None, tangent: Any = None) -> Any:
    """A rule with this name. The text of the cases has the computation."""
    rule = custom_rule(_cube, adjoint=adjoint, tangent=tangent)
    rule.__name__ = name
    return rule


OBJECTS: dict[str, Any] = {
    rule.__name__: rule
    for rule in (
        _ruled("cube", adjoint=_cube_adjoint),
        _ruled("cube_by_tangent", tangent=_cube_tangent),
        _ruled("exp_by_result", adjoint=_exp_adjoint),
        _ruled("scaled", adjoint=_scaled_adjoint),
        _ruled("scaled_by_tangent", tangent=_scaled_tangent),
        _ruled("product_by_the_first", adjoint=_first_adjoint),
    )
} | {"LinAlgError": LinAlgError}
"""Rules that cases name: `y%1: float64 = custom cube(x%0) params=(p%2: float64)`."""


# -- batches and workspaces --------------------------------------------------------------------------------------------


def batch(program: Program, options: Options) -> Program:
    """The function for each element of the parameters in `batch`.

    All elements share the parameters in `given`. Results at the positions in `sums` are added up.
    """
    main = program.main
    mapped, given = with_names(main.params, options["batch"]), with_names(main.params, options["given"])
    summed = [int(place) for place in options["sums"]]
    return Program(for_each(main, mapped, given, summed, {}, None).function, program.callees)


def lanes(program: Program, options: Options) -> Program:
    """The function for several values of the parameters in `wrt` at once."""
    chosen = with_names(program.main.params, options["wrt"])
    return Program(with_lanes(program.main, chosen) or in_one_lane(program.main, chosen), program.callees)


def jacobian(program: Program, options: Options) -> Program:
    """The derivatives of all results with respect to `wrt`: in forward mode, unless `mode` is `reverse`.

    `mode: reverse, 2` sets the number of directions.
    """
    main = fresh(program.main)
    inputs, outputs = with_names(main.params, options["wrt"]), main.body.yields
    forward = "reverse" not in options["mode"]
    numbers = next((int(word) for word in options["mode"] if word.isdigit()), None)
    if forward:
        dots = {p: dot_of(p) for p in inputs}
        derivative, seeds = tangent_of(main, dots, main.name, outputs), tuple(dots.values())
    else:
        seeds = tuple(Value(v.type, "result_bar") for v in outputs)
        given = tuple(zip(outputs, seeds, strict=True))
        derivative = reversed_function(Reversal(main, inputs, given, main.name))
    sweep = Sweep(derivative, main, inputs, outputs, seeds, forward, numbers=numbers)
    return Program(jacobian_of(sweep, f"{main.name}_jacobian"))


def workspace(program: Program, options: Options) -> Program:
    """The function with memory of its caller. This many of its last results are `gradients`."""
    main, _ = with_workspace(program.main, int(options["gradients"][0]))
    return Program(main, program.callees)


def given_results(program: Program, options: Options) -> Program:
    """The function that writes its results into arrays of its caller."""
    main, _ = with_given_results(program.main)
    return Program(main, program.callees)


# -- kernels -----------------------------------------------------------------------------------------------------------


def spread(options: Options) -> Spread:
    """All coordinates of one axis, or of as many as `axes` says."""
    count = int((options["axes"] or ["1"])[0])
    return Spread(frozenset((kind, axis) for kind, axis in SPREAD if axis < count))


def bars_of(kernel: Function, options: Options) -> dict[Value, Value]:
    """The adjoints of the parameters. The adjoint of a number is in an array."""
    params = with_names(kernel.params, options["wrt"])
    return {p: Value(p.type if isinstance(p.type, Array) else Array("float64", 1), f"{p.name}_bar") for p in params}


def kernel_adjoint(kernel: Function, options: Options) -> Function:
    made = reversal_of_kernel(kernel, bars_of(kernel, options), spread(options), f"{kernel.name}_adjoint")
    return reversed_function(made)


def kernel_tangent(kernel: Function, options: Options) -> Function:
    dots = {p: dot_of(p) for p in with_names(kernel.params, options["wrt"])}
    return tangent_of_kernel(kernel, dots, f"{kernel.name}_tangent", Span("", 1, 0, 0, kernel.name))


def guard_opening(kernel: Function, options: Options) -> Function:
    return without_guard(kernel)[0]


def guard_closing(kernel: Function, options: Options) -> Function:
    """The adjoint of the kernel inside of its guard, and the guard around it again."""
    inside, guard = without_guard(kernel)
    adjoint = kernel_adjoint(inside, options)
    return adjoint if guard is None else guard.around(adjoint)


def atomic_adds(kernel: Function, options: Options) -> Function:
    return adding_atomically(kernel, spread(options))


def thread_memory(program: Program, options: Options) -> Program:
    """The kernel with memory for its threads, and the kernel that measures, if there is one."""
    builder = Builder()
    thread = builder.coordinate(CoordinateKind.GLOBAL_INDEX, name="thread")
    main = program.main
    main = replace(main, body=Block((*builder.operations, *main.body.operations)))
    private = private_memory(main, thread, measures_on_copies=bool(options["copies"]))
    return Program(private.kernel, () if private.measure is None else (fresh(private.measure.kernel),))


def numbered_references(kernel: Function, options: Options) -> Function:
    """Number the arrays that loops allocate first."""
    slots = _Slots(kernel)
    kernel = replace(kernel, body=slots.block(kernel.body))
    return references_as_numbers(kernel, slots.numbers)


def kernel_extraction(program: Program, options: Options) -> Program:
    made = to_kernels(program.main, {})
    return Program(made.host, made.kernels)


def kernel(transform: Callable[[Function, Options], Function]) -> Run:
    return lambda program, options: Program(transform(program.main, options), program.callees)


def plain(transform: Callable[[Function], Function]) -> Run:
    return kernel(lambda function, options: transform(function))


def nested_derivatives(program: Program, options: Options) -> Program:
    """The program with its derivative operations replaced. The functions that they call are finished."""
    assert pipeline.PASSES  # it takes derivatives
    return finished(Expansion(capture(nested_derivatives), program).run(), ())


DERIVATIVES: dict[str, Run] = {
    "array_expansion": reverse_until(write_forward_sweep),
    "array_renaming": reverse_until(rename_arrays),
    "atomic_adds": kernel(atomic_adds),
    "batch_loop": batch,
    "call_pairs": call_pairs,
    "joint_calls": joint_calls,
    "given_results": given_results,
    "callee_adjoints": reverse,
    "conditions": plain(conditions_as_formulas),
    "derivative_expansion": nested_derivatives,
    "custom_adjoints": either,
    "forward_sweep": reverse_until(write_forward_sweep),
    "grid_counts": plain(count_iterations_over_grid),
    "grid_strides": plain(step_over_grid),
    "guard_closing": kernel(guard_closing),
    "guard_opening": kernel(guard_opening),
    "jacobian": jacobian,
    "lanes": lanes,
    "iteration_counts": reverse_until(count_iterations),
    "kernel_adjoint": kernel(kernel_adjoint),
    "kernel_extraction": kernel_extraction,
    "kernel_tangent": kernel(kernel_tangent),
    "numbered_references": kernel(numbered_references),
    "product_loops": plain(products_as_loops),
    "reverse_mode": reverse,
    "shadows": reverse_until(add_shadow_references),
    "snapshots": reverse_until(take_snapshots),
    "stacks": plain(stacks_as_arrays),
    "storage_plan": reverse_until(plan_storage, with_plan),
    "tangent": tangent,
    "thread_memory": thread_memory,
    "transpose": either,
    "workspace_parameters": workspace,
}
"""By the names of their folders. `reverse_mode` runs all steps, the last of which is the reverse sweep."""
