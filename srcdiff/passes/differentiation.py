"""Passes over whole programs: the requested derivative, its workspace, its batch and its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from srcdiff.analyses import comparison_searches, equality_tests, table_searches
from srcdiff.analyses.reach import zero_gradient
from srcdiff.diagnostics import ComplexJacobianError
from srcdiff.frontend.derivation import are_lengths
from srcdiff.frontend.domain.abstract_values import Static
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder, complex_jacobian
from srcdiff.ir.nodes import Block, Call, Function, Program, Value, called_by, walk
from srcdiff.ir.primitives import RESERVED
from srcdiff.ir.types import Array, is_complex, is_inexact
from srcdiff.passes import joint_calls
from srcdiff.passes.batch_loop import for_each
from srcdiff.passes.callee_adjoints import refuse_shared_memory, reversals_of_callees
from srcdiff.passes.compilation import Compilation
from srcdiff.passes.custom_adjoints import rules_share_no_memory
from srcdiff.passes.jacobian import MOST_LANES, Sweep, jacobian_of
from srcdiff.passes.product_loops import products_as_loops
from srcdiff.passes.requested import chosen, leaves, output_of, outputs_with_written, with_lists_cut
from srcdiff.passes.reverse_mode import Reversal, copied_first, protect_arguments, with_new_results
from srcdiff.passes.tangent import tangent_of, tangents_of_callees
from srcdiff.passes.workspace_parameters import with_given_results, with_workspace


def start_gradient(state: Compilation) -> None:
    """Set up the reversal of the function, from one result, and of the functions that it calls."""
    request = state.request
    wrt = [v for name in request.wrt for v in chosen(state, name)]  # integers are the reason for None
    output = output_of(state)
    for name in request.wrt if not state.inside else ():
        state.warnings += zero_gradient(state.reading, state.main, name, chosen(state, name), output)
    check_rules(state)
    note_comparisons(state, wrt, [state.main.body.yields[output]])
    name = free_name(state, f"{state.main.name}_{'value_and_grad' if request.with_value else 'grad'}")
    given = state.added_to = _added_to(state)
    mixed = {p for sites in points_to(state.main).values() if len(sites) > 1 for p in sites if p in given}
    main, _ = copied_first(state.main, mixed)  # arrays with and without atomic additions must differ
    main, _ = protect_arguments(main)
    returned = main.body.yields

    def finish(adjoint: Function) -> Function:
        adjoint = replace(adjoint, params=(*adjoint.params, *given.values()), written=tuple(given.values()))
        return with_new_results(adjoint) if request.has_aux else adjoint

    results = returned if request.with_value or request.has_aux else ()
    reversal = Reversal(main, tuple(wrt), ((returned[output], None),), name, results, given=given, finish=finish)
    _start(state, reversal)


def note_comparisons(state: Compilation, wrt: Sequence[Value], outputs: Sequence[Value]) -> None:
    """The warnings about tests that decide the derivative."""
    written = [p for p in state.main.params if p in state.main.written]
    results = [*outputs, *written]
    tests = equality_tests.equality_tests(state.main, wrt, results)
    state.equality_tests = [equality_tests.in_words(span) for span in tests]
    searches = comparison_searches.comparison_searches(state.main, wrt, results)
    lookups = table_searches.table_searches(state.main, wrt, results)
    state.searches = [comparison_searches.in_words(span) for span in searches]
    state.searches += [table_searches.in_words(span) for span in lookups]


def _added_to(state: Compilation) -> dict[Value, Value]:
    """New adjoints for the arrays that all elements of a batch share, if those are added up."""
    shared = [n for n in state.request.wrt if state.request.sums and n not in state.request.batch]
    arrays = [v for n in shared for v in chosen(state, n) if isinstance(v.type, Array)]
    return {v: Value(v.type, f"{v.name}_bar") for v in arrays}


def start_pullback(state: Compilation) -> None:
    """Set up the reversal from the adjoints of all results, and of the arrays that the function writes into."""
    check_rules(state)
    wrt = [v for name in state.request.wrt for v in chosen(state, name)]
    note_comparisons(state, wrt, state.main.body.yields)
    main, copies = protect_arguments(with_lists_cut(state.main, state.reading.result))
    floats = [v for v in outputs_with_written(state, main, copies) if is_inexact(v.type)]
    seeds = zip(floats, [v for x in state.seeds.values() for v in leaves(x, state.reading)], strict=True)
    _start(state, Reversal(main, tuple(wrt), tuple(seeds), free_name(state, f"{state.main.name}_pullback")))


def _start(state: Compilation, reversal: Reversal) -> None:
    found = reversals_of_callees(reversal.function, state.callees, inside=state.inside)
    reversal.callees, reversal.decisions = found.known, state.decisions
    reversal.decides = state.request.mode == "reverse" or state.request.jacobian
    reversal.pairs, reversal.stacks, state.joint = found.pairs, found.stacks, found.joint
    state.reversals, state.reversed_callees = (reversal, *found.reversals), found.functions
    state.main = reversal.function


def join_calls(state: Compilation) -> None:
    """Calls of recursive functions join the calls of their adjoints; functions without a caller are removed."""
    if state.joint:
        main = joint_calls.join_calls(state.main, state.joint)
        state.program = Program(main, called_by(main, state.callees))


def forward_mode(state: Compilation) -> None:
    """The tangents of all results, and of the arrays that the function writes into, from those of arguments."""
    check_rules(state)
    wrt = [v for name in state.request.wrt for v in chosen(state, name)]
    note_comparisons(state, wrt, state.main.body.yields)
    dots = [v for x in state.seeds.values() for v in leaves(x, state.reading)]
    main, copies = protect_arguments(state.main)
    outputs = outputs_with_written(state, main, copies)
    name = free_name(state, f"{state.main.name}_tangent")
    yields = list(outputs) if state.request.with_value else []
    main = tangent_of(main, dict(zip(wrt, dots, strict=True)), name, outputs)
    kinds = [*are_lengths(state.reading.result), *(False for _ in outputs)]
    for out, tangent, is_length in zip(outputs, main.body.yields, kinds, strict=False):
        yields.append(out if is_length else tangent)  # the tangent of a list is as long as the list
    state.callees = tangents_of_callees(state.callees)
    state.main = with_new_results(replace(main, body=Block(main.body.operations, tuple(yields))))


def jacobian(state: Compilation) -> None:
    """The program for all directions, from the program for one."""
    primal, request = state.differentiated, state.request
    assert primal is not None
    inputs = [v for name in request.wrt for v in chosen(state, name)]
    results, main = outputs_with_written(state, primal, {}), state.main
    outputs = [v for v in results if is_inexact(v.type)]
    if any(is_complex(v.type) for v in (*inputs, *outputs)):
        raise ComplexJacobianError([complex_jacobian(state.span)])
    seeds = [v for x in state.seeds.values() for v in leaves(x, state.reading)]
    if request.mode == "forward":
        tangents = [t for v, t in zip(results, main.body.yields, strict=True) if is_inexact(v.type)]
        main = replace(main, body=Block(main.body.operations, tuple(tangents)))
    most = request.directions or MOST_LANES
    sweep = Sweep(main, primal, inputs, outputs, seeds, request.mode == "forward", most, request.numbers)
    sweep = replace(sweep, in_threads=request.parallel)
    state.main = jacobian_of(sweep, free_name(state, f"{primal.name}_jacobian"))
    state.callees += tuple(_called(state.main, state.differentiated_callees, {c.name for c in state.callees}))


def _called(function: Function, callees: Sequence[Function], known: set[str]) -> list[Function]:
    """Those of the functions that a function calls, itself or through others, and that are not known yet."""
    names = {o.function for o in walk(function.body) if isinstance(o, Call)} - known
    found = [c for c in callees if c.name in names]
    known |= names
    return found + [inner for c in found for inner in _called(c, callees, known)]


def check_rules(state: Compilation) -> None:
    refuse_shared_memory(state.main, state.callees)
    for function in (state.main, *state.callees):
        rules_share_no_memory(function)


def take_workspace(state: Compilation) -> None:
    if state.request.workspace:
        gradients = sum(len(chosen(state, name)) for name in state.request.wrt)
        state.main, state.workspace = with_workspace(state.main, gradients)


def take_results(state: Compilation) -> None:
    """Write the results to arrays of the caller, if the arguments are numbers and arrays."""
    passed = [x for x in state.reading.arguments.values() if not isinstance(x, Static)]
    if tuple(passed) == state.main.params:
        state.main, state.workspace = with_given_results(state.main)


def batch_loop(state: Compilation) -> None:
    """The function, or the derivative, for each element of a batch."""
    request = state.request
    if not request.batch:
        return
    mapped = [v for n in request.batch for v in leaves(state.reading.arguments[n], state.reading)]
    pairs = [(n, v) for n in request.wrt for v in chosen(state, n)] if request.mode == "reverse" else []
    results = len(state.main.body.yields) - len(pairs)
    summed = []
    if request.sums:
        numbered = enumerate(zip(pairs, state.main.body.yields[results:], strict=True), results)
        summed = [k for k, ((n, _), bar) in numbered if n not in request.batch and not isinstance(bar.type, Array)]
    types = {results + k: v for k, (n, v) in enumerate(pairs) if n in request.batch}
    main = _with_types_of(products_as_loops(state.main), types)
    arguments = state.reading.arguments
    like = {results + k: v for k, (n, v) in enumerate(pairs) if arguments.get(n) is v}
    batch = for_each(main, mapped, tuple(state.added_to.values()), summed, like, state.span)
    state.main, state.whole, state.independent = batch.function, batch.whole, {batch.loop: batch.shared}


def _with_types_of(main: Function, chosen: Mapping[int, Value]) -> Function:
    """The function with results that have the types of these values: elements of an array of gradients."""
    builder, yields = Builder(), list(main.body.yields)
    for k, value in chosen.items():
        yields[k] = builder.cast(yields[k], value.type)
    return replace(main, body=Block((*main.body.operations, *builder.operations), tuple(yields)))


def free_name(state: Compilation, name: str) -> str:
    """A free name for the main function; a callee may already have its name."""
    parts = ("", "_adjoint", "_with_adjoint", "_forward", "_reverse", "_tangent")
    called = {f"{callee.name}{part}" for callee in state.callees for part in parts}
    while name in called or name in RESERVED:
        name += "_"
    return name
