"""Reverse mode: from a program to its adjoint, step by step. `STEPS` has them in order, and `pipeline.py` names them.

primal            forward sweep                 reverse sweep
y = sin(x)        y = sin(x)                    x_bar += cos(x) * y_bar
x = x * y         kept = x; x = x * y           x_bar, y_bar = x_bar * y, y_bar + x_bar * kept
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from typing import Any

from srcdiff.analyses.activity import Activity, activity
from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.ownership import first_stores, memory_of_branches, owned_memory
from srcdiff.analyses.saved_values import Plan, Planner, StillThere, memory_of
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import (
    Block,
    Call,
    Comment,
    Copy,
    Function,
    If,
    Load,
    Loop,
    Operation,
    Program,
    Store,
    Value,
    called_by,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import INT, Array, Stack
from srcdiff.passes.adjoint import Adjoint, Seeds
from srcdiff.passes.array_renaming import buffers_to_renew, renew
from srcdiff.passes.call_pairs import Frames, Pair, call_forward, frames_of, making_stacks, with_frames, with_lengths
from srcdiff.passes.chosen_arrays import fill_chosen_arrays
from srcdiff.passes.forward_sweep import Keeper, save_overwritten
from srcdiff.passes.length_hoisting import hoist_lengths
from srcdiff.passes.overwritten_arrays import rename_overwritten
from srcdiff.passes.partial_copies import copy_partially
from srcdiff.passes.shadows import add_shadows, list_storage
from srcdiff.passes.snapshots import keep_what_calls_read
from srcdiff.quick_dataclasses import dataclass

_MOST_TRIED = 8  # each costs as much as all the rest


def protect_arguments(function: Function) -> tuple[Function, dict[Value, Value]]:
    """Copy the caller's arrays that the program writes, so that it changes nothing; return the copies."""
    function, copies = copied_first(function, written_sites(function.body, points_to(function)))
    return replace(function, written=()), copies


def copied_first(function: Function, arrays: Collection[Value]) -> tuple[Function, dict[Value, Value]]:
    """The function with copies in place of parameters, and the copies."""
    known = {p: Value(p.type, p.name) for p in function.params if p in arrays}
    if not known:
        return function, known
    copies = [Copy(copy, param) for param, copy in known.items()]
    body = substituted(function.body, lambda v: known.get(v, v))
    return replace(function, body=Block((*copies, *body.operations), body.yields)), known


def with_new_results(function: Function) -> Function:
    """The function with copies of results that may alias its arguments."""
    sites, given = points_to(function), set(function.params)
    results = [v for v in function.body.yields if isinstance(v.type, Array) and sites.get(v, {v}) & given]
    copies = {v: Copy(Value(v.type, v.name), v) for v in results}
    if not copies:
        return function
    yields = [copies[v].out if v in copies else v for v in function.body.yields]
    return replace(function, body=Block((*function.body.operations, *copies.values()), tuple(yields)))


def _unchanged(function: Function) -> Function:
    return function


@dataclass(slots=True)
class Reversal:
    """The reversal of a function in progress, with the results of the steps so far."""

    function: Function
    """The program as the last step has left it."""
    wrt: tuple[Value, ...]
    seeds: Seeds
    """The outputs, each with the parameter for its adjoint, or None for one."""
    name: str
    """The name of the adjoint."""
    results: tuple[Value, ...] = ()
    """The results of the adjoint before the gradients."""
    callees: dict[str, Any] = field(default_factory=dict)
    given: dict[Value, Value] = field(default_factory=dict)
    """The adjoints of arrays that the caller passes in, to be added to."""
    finish: Callable[[Function], Function] = _unchanged
    """The last transform of the adjoint."""
    decisions: Decisions = field(default_factory=Decisions)
    decides: bool = False
    """Whether its results are those of the program, and their adjoints are one, or one after the other is one."""
    pairs: dict[str, Pair] = field(default_factory=dict)
    """The recursive functions that it calls, if those become pairs."""
    stacks: dict[Stack, Value] = field(default_factory=dict)
    """The state that the functions of pairs share."""
    is_apart: bool = False
    """Whether the reverse sweep becomes a separate function: the function is recursive and becomes a pair."""
    restored_parameters: frozenset[Value] = frozenset()
    """The arrays among its parameters that this function leaves as they were."""
    backwards: Function | None = None
    """The function in reverse mode."""
    active: Activity = field(init=False)
    twins: dict[Value, Value] = field(init=False)
    """References, with the references to their adjoints."""
    lists: frozenset[Value] = field(init=False)
    """Arrays that hold the elements of lists."""
    returned_memory: frozenset[Value] = field(init=False)
    """Loop-carried arrays with a single owner, whose adjoints are carried in reverse."""
    returned: frozenset[Value] = field(init=False)
    """The memory of the results: the reverse sweep must leave it as it is."""
    chosen: Attempt = field(init=False)
    keeper: Keeper = field(init=False)
    frames: Frames = field(init=False)
    """The stored values of each block, if the reverse sweep becomes a separate function."""

    @property
    def sites(self) -> dict[Value, Sites]:
        return points_to(self.function)

    def taking_adjoints(self) -> Function:
        """The function, on its way, with the name of the adjoint, and the adjoints that are given as parameters."""
        if self.is_apart:
            return changed(self.function, name=self.name)
        lacking = [bar for bar in self.given.values() if bar not in self.function.params]
        return changed(self.function, name=self.name, params=(*self.function.params, *lacking))

    def is_active(self, param: Value) -> bool:
        """Whether a derivative by the parameter may be other than zero."""
        return self.active.memory(param) if isinstance(param.type, Array) else param in self.active

    def gradient(self, value: Value, adjoint: Adjoint) -> Value:
        with adjoint.into(adjoint.top):
            if isinstance(value.type, Array):
                return self.twins.get(value) or adjoint.shadow(value, adjoint.top)
            found = adjoint.collected.get(value, adjoint.top.adjoints.get(value))
            return adjoint.builder.zero(value.type) if found is None else found

    def adjoint(self, attempt: Attempt, plan: Plan | None = None, keeper: Keeper | None = None) -> Adjoint:
        """The writer of the reverse sweep; without a plan, it records the values that it needs."""
        storage = {} if keeper is None else keeper.storage
        lifted = {} if keeper is None else keeper.lifted
        written = Adjoint(
            attempt.structure,
            self.active,
            self.twins,
            self.lists,
            attempt.restores,
            plan,
            storage,
            self.callees,
            lifted,
        )
        written.wanted, written.returned_memory, written.copies = set(self.wrt), self.returned_memory, attempt.copies
        written.decides = self.decides
        written.pairs = {pair.forward: pair for pair in self.pairs.values()}
        return written


@dataclass(slots=True)
class Attempt:
    """A plan under the assumption that the reverse sweep restores some memory."""

    function: Function
    structure: Structure
    restores: dict[Store, Value]
    copies: dict[Call, list[tuple[Value, Value]]]
    plan: Plan = field(init=False)


# -- the steps -------------------------------------------------------------------------------------------------------


def rename_overwritten_arrays(reversal: Reversal) -> None:
    """Arrays that every iteration of a loop overwrites, copies, or chooses, become new ones: the old values stay."""
    if not any(isinstance(o, Loop | Copy) for o in walk(reversal.function.body)):
        return
    stay = [*reversal.wrt, *reversal.results, *(v for v, _ in reversal.seeds), *reversal.given]
    hoisted = hoist_lengths(reversal.function)
    renamed = rename_overwritten(copy_partially(fill_chosen_arrays(hoisted)), stay)
    reversal.function = reversal.function if renamed is hoisted else renamed


def count_iterations(reversal: Reversal) -> None:
    """Loops of unknown length count their iterations."""
    reversal.function = replace(reversal.function, body=_counting(reversal.function.body))


def _counting(block: Block) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        match operation:
            case If():
                operation = replace(operation, then=_counting(operation.then), orelse=_counting(operation.orelse))
            case Loop():
                is_known = operation.counted or operation.count is not None
                count = operation.count if is_known else Value(INT, "iterations")
                operation = replace(operation, body=_counting(operation.body), count=count)
        operations.append(operation)
    return Block(tuple(operations), block.yields)


def take_snapshots(reversal: Reversal) -> None:
    """Find the active values, and copy the arguments of calls with own rules that are overwritten later."""
    outputs = [*(v for v, _ in reversal.seeds), *reversal.given]
    active = activity(reversal.function, reversal.wrt, outputs, reversal.sites)
    copied = keep_what_calls_read(reversal.function, active, reversal.sites)
    if copied is not reversal.function:
        reversal.function = copied
        active = activity(copied, reversal.wrt, outputs, reversal.sites)
    reversal.active = active


def call_forward_functions(reversal: Reversal) -> None:
    """Calls of recursive functions that become pairs keep, on stacks, what their adjoints need."""
    if not reversal.pairs:
        return
    stacks = tuple(reversal.stacks.values())
    function, found = call_forward(reversal.function, reversal.pairs, reversal.active, stacks)
    if reversal.is_apart:
        function = replace(function, params=(*function.params, *stacks), body=with_lengths(function.body))
    elif found:
        function = making_stacks(function, stacks, reversal.pairs.values())
    reversal.function = function
    reversal.active = Activity(reversal.active.values, reversal.sites)


def add_shadow_references(reversal: Reversal) -> None:
    """A reference that a branch or a loop chooses gets a twin: the reference to the adjoints."""
    function = reversal.function
    reversal.lists = list_storage(function, reversal.sites)
    reversal.returned_memory = reversal.lists | (frozenset() if reversal.given else owned_memory(function))
    if reversal.is_apart and not reversal.lists:
        reversal.returned_memory |= memory_of_branches(function)
    reversal.function, reversal.twins = add_shadows(function, reversal.active, reversal.given, reversal.returned_memory)
    reversal.active = Activity(reversal.active.values | set(reversal.twins.values()), reversal.sites)


def plan_storage(reversal: Reversal) -> None:
    """Decide which values are stored or recomputed, and which memory the reverse sweep restores."""
    added = [o.array for o in walk(reversal.function.body) if isinstance(o, Store) and o.atomic]  # by any thread
    sites = reversal.sites
    reversal.returned = frozenset(s for v in (*reversal.results, *added) for s in sites.get(v, frozenset()))
    reversal.chosen = _cheapest(reversal)


def rename_arrays(reversal: Reversal) -> None:
    """Rename buffers to new arrays where that stores less; then save the restored memory, as planned."""
    for buffer in buffers_to_renew(reversal.function) if reversal.chosen.plan.kept else ():
        other = copy.copy(reversal)
        other.function, new = renew(reversal.function, buffer)
        added = {new} if reversal.active.memory(buffer.param) else set()
        other.active = Activity(reversal.active.values | added, other.sites)
        if buffer.param in reversal.twins:  # the adjoints stay where they are
            other.twins = {**reversal.twins, new: reversal.twins[buffer.param]}
        other.chosen = _cheapest(other)
        if other.chosen.plan.cost < reversal.chosen.plan.cost:
            reversal.function, reversal.active = other.function, other.active
            reversal.twins, reversal.chosen = other.twins, other.chosen
    reversal.function = reversal.chosen.function


def write_forward_sweep(reversal: Reversal) -> None:
    """The program, with the values that the reverse sweep needs put where it finds them."""
    chosen = reversal.chosen
    if reversal.is_apart:
        reversal.frames = frames_of(chosen.plan, chosen.structure, reversal.stacks)
        reversal.function = replace(chosen.function, body=with_frames(chosen.function.body, reversal.frames))
        return
    reversal.keeper = Keeper(chosen.function, chosen.structure, chosen.plan)
    forward = reversal.keeper.run()
    reversal.function = replace(reversal.function, body=forward)


def write_reverse_sweep(reversal: Reversal) -> None:
    """Write the adjoints of the operations in reverse order, and join both sweeps into one function."""
    if reversal.is_apart:
        _write_pair(reversal)
        return
    adjoint = reversal.adjoint(reversal.chosen, reversal.keeper.plan, reversal.keeper)
    adjoint.top.adjoints.update(reversal.given)
    mirror = adjoint.run(reversal.seeds)
    reversal.decisions.repeated |= adjoint.repeated
    bars = [reversal.gradient(v, adjoint) for v in reversal.wrt]
    operations: list[Operation] = list(reversal.function.body.operations)
    if mirror.operations:
        operations = [Comment("forward sweep"), *operations, Comment("reverse sweep"), *mirror.operations]
    params = (*reversal.function.params, *(s for _, s in reversal.seeds if s is not None))
    body = Block(tuple(operations), (*reversal.results, *bars))
    reversal.function = reversal.finish(Function(reversal.name, params, body))


def _write_pair(reversal: Reversal) -> None:
    """The sweeps as two functions."""
    adjoint = reversal.adjoint(reversal.chosen, reversal.chosen.plan)
    adjoint.frames = reversal.frames
    adjoint.top.adjoints.update(reversal.given)
    mirror = adjoint.run(reversal.seeds)
    reversal.decisions.repeated |= adjoint.repeated
    bars = [reversal.gradient(v, adjoint) for v in reversal.wrt if not isinstance(v.type, Array)]
    params = (*reversal.function.params, *(s for _, s in reversal.seeds if s is not None), *reversal.given.values())
    body = Block((Comment("reverse sweep"), *mirror.operations), tuple(bars))
    reversal.backwards = reversal.finish(Function(reversal.name, params, body))
    reversal.function = _giving_copies(reversal)


def _giving_copies(reversal: Reversal) -> Function:
    """The forward sweep, with copies of results that the reverse sweep reads or restores: callers may change them."""
    function, sites = reversal.function, reversal.sites
    kept = [v for frame in reversal.frames.values() for v, _ in frame if isinstance(v.type, Array)]
    taken = frozenset(s for v in (*kept, *(o.array for o in reversal.chosen.restores)) for s in sites.get(v, ()))
    results = [v for v in function.body.yields if isinstance(v.type, Array) and sites.get(v, frozenset()) & taken]
    copies = {v: Copy(Value(v.type, v.name), v) for v in results}
    yields = tuple(copies[v].out if v in copies else v for v in function.body.yields)
    return replace(function, body=Block((*function.body.operations, *copies.values()), yields), name=reversal.name)


STEPS = (
    rename_overwritten_arrays,
    count_iterations,
    take_snapshots,
    call_forward_functions,
    add_shadow_references,
    plan_storage,
    rename_arrays,
    write_forward_sweep,
    write_reverse_sweep,
)


def reversed_function(reversal: Reversal) -> Function:
    """All steps at once, for a function that is not the program: a rule, or a part of one."""
    for step in STEPS:
        step(reversal)
    return reversal.function


def sweeping(step: Callable[[Reversal], None]) -> Callable[[Any], None]:
    """A pass that takes all functions of the program that are reversed one step further."""

    def run(state: Any) -> None:
        for reversal in state.reversals:
            step(reversal)
        program = program_of(state.reversals, state.reversed_callees)
        if program.main is not state.program.main or len(state.reversals) > 1:
            state.program = program

    return run


def program_of(reversals: Sequence[Reversal], callees: Sequence[Function]) -> Program:
    """The functions in progress and their callees; at the end, the functions that the program reaches."""
    main, *others = [reversal.taking_adjoints() for reversal in reversals]
    reverse = [r.backwards for r in reversals if r.backwards is not None]
    functions = (*callees, *others, *reverse)
    return Program(main, called_by(main, functions) if reverse else functions)


# -- which memory the reverse sweep restores -------------------------------------------------------------------------


def _cheapest(reversal: Reversal) -> Attempt:
    best = _attempt(reversal, _seen_by_calls(reversal))
    for group in _groups(reversal, best):
        other = _attempt(reversal, _restored_by(reversal, best) | group)
        if other.plan.cost < best.plan.cost:
            best = other
    return best


def _seen_by_calls(reversal: Reversal) -> frozenset[Value]:
    """Memory that a recursive function reads and that is written later; it must be restored when the call is reversed.

    The reverse function of a pair restores the memory of the caller.
    """
    sites = reversal.sites
    written = written_sites(reversal.function.body, sites)
    found: frozenset[Value] = frozenset()
    if reversal.is_apart:
        found = _connected(frozenset(written & reversal.restored_parameters), sites)
    takes = {pair.forward: pair.takes for pair in reversal.pairs.values()}
    for operation in walk(reversal.function.body):
        if isinstance(operation, Call):
            seeing = takes.get(operation.function, range(len(operation.args)))
            memories = [sites.get(operation.args[k], frozenset()) for k in seeing]
            seen = frozenset[Value]().union(*(_connected(m, sites) for m in memories if m & written))
            if seen & reversal.returned:
                message = "a recursive function reads an array that is written later and returned"
                problem = Problem("SD305", message, operation.span, help="return a copy: `.copy()`")
                raise DifferentiationError([problem])
            found |= seen
    return found


def _restored_by(reversal: Reversal, attempt: Attempt) -> frozenset[Value]:
    found: set[Value] = set(_seen_by_calls(reversal))
    for store in attempt.restores:
        found |= memory_of(store.array, reversal.sites)
    return frozenset(found)


def _groups(reversal: Reversal, attempt: Attempt) -> list[frozenset[Value]]:
    """Memory whose loaded values are overwritten: restoring it may be cheaper than storing the values."""
    found: dict[frozenset[Value], float] = {}
    for value, cost in attempt.plan.lost.items():
        definition = attempt.structure.definition.get(value)
        if isinstance(definition, Load):
            group = _connected(memory_of(definition.array, reversal.sites), reversal.sites)
            if not group & (reversal.lists | reversal.returned):
                found[group] = found.get(group, 0.0) + cost
    largest = sorted(found, key=lambda group: -found[group])[:_MOST_TRIED]
    return [group for group in found if group in largest]


def _connected(group: Sites, sites: dict[Value, Sites]) -> Sites:
    """All memory that some reference may confuse with this."""
    grown = True
    while grown:
        grown = False
        for memory in sites.values():
            if memory & group and not memory <= group:
                group, grown = group | memory, True
    return group


def _attempt(reversal: Reversal, restored: frozenset[Value]) -> Attempt:
    restores: dict[Store, Value] = {}
    copies: dict[Call, list[tuple[Value, Value]]] = {}
    arrays: list[Value] = []
    sites = reversal.sites
    for operation in walk(reversal.function.body):
        touched: tuple[Value, ...] = operation.args if isinstance(operation, Call) else ()
        if isinstance(operation, Store):
            touched = (operation.array,)
        arrays += [a for a in touched if sites.get(a, frozenset()) & restored]
    body = reversal.function.body
    restoring = {pair.forward for pair in reversal.pairs.values()}
    if arrays:
        body = save_overwritten(body, arrays, restores, copies, restoring, first_stores(reversal.function))
    function = changed(reversal.function, body=body)
    structure = structure_of(function)
    structure = replace(structure, is_apart=True) if reversal.is_apart else structure
    attempt = Attempt(function, structure, restores, copies)
    adjoint = reversal.adjoint(attempt)
    adjoint.run(reversal.seeds)
    for value in reversal.wrt:
        reversal.gradient(value, adjoint)
    still_there = StillThere(attempt.structure, sites)
    planner = Planner(attempt.structure, sites, adjoint.demands, restored, restores.values(), still_there)
    attempt.plan = replace(planner.plan(), idle=frozenset(adjoint.idle))
    return attempt
