"""From a program to its gradient: forward sweep, reverse sweep, one function."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from srcdiff.analyses.activity import Activity, activity
from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.ownership import owned_memory
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
    Store,
    Value,
    substituted,
    walk,
)
from srcdiff.ir.types import INT, Array
from srcdiff.transforms.adjoint import Adjoint, Seeds
from srcdiff.transforms.buffers import Buffer, buffers_to_renew, renew
from srcdiff.transforms.keep import Keeper, save_overwritten
from srcdiff.transforms.shadows import add_shadows, list_storage
from srcdiff.transforms.snapshots import keep_what_calls_read

_MOST_TRIED = 8  # each costs as much as all the rest


def protect_arguments(function: Function) -> tuple[Function, dict[Value, Value]]:
    """Arrays from the caller that the program writes are copied first, so that it changes nothing; gives the copies."""
    function, copies = copied_first(function, written_sites(function.body, points_to(function)))
    return replace(function, written=()), copies


def copied_first(function: Function, arrays: Collection[Value]) -> tuple[Function, dict[Value, Value]]:
    """The function with copies of parameters in their place; gives the copies."""
    known = {p: Value(p.type, p.name) for p in function.params if p in arrays}
    if not known:
        return function, known
    copies = [Copy(copy, param) for param, copy in known.items()]
    body = substituted(function.body, lambda v: known.get(v, v))
    return replace(function, body=Block((*copies, *body.operations), body.yields)), known


def with_new_results(function: Function) -> Function:
    """The function with copies for results that may be arrays which it was given."""
    sites, given = points_to(function), set(function.params)
    results = [v for v in function.body.yields if isinstance(v.type, Array) and sites.get(v, {v}) & given]
    copies = {v: Copy(Value(v.type, v.name), v) for v in results}
    if not copies:
        return function
    yields = [copies[v].out if v in copies else v for v in function.body.yields]
    return replace(function, body=Block((*function.body.operations, *copies.values()), tuple(yields)))


def count_turns(block: Block) -> Block:
    """Loops of unknown length count their turns."""
    operations: list[Operation] = []
    for operation in block.operations:
        match operation:
            case If():
                operation = replace(operation, then=count_turns(operation.then), orelse=count_turns(operation.orelse))
            case Loop():
                count = (
                    operation.count if operation.counted or operation.count is not None else Value(INT, "iterations")
                )
                operation = replace(operation, body=count_turns(operation.body), count=count)
        operations.append(operation)
    return Block(tuple(operations), block.yields)


@dataclass(slots=True)
class _Attempt:
    """A plan under the assumption that some memory is put back by the reverse sweep."""

    function: Function
    structure: Structure
    restores: dict[Store, Value]
    copies: dict[Call, list[tuple[Value, Value]]]
    plan: Plan


class Reverse:
    """The gradient of a function with respect to some of its parameters."""

    def __init__(
        self,
        function: Function,
        wrt: Sequence[Value],
        seeds: Seeds,
        callees: dict[str, Any],
        given: dict[Value, Value] | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        """`given` are the adjoints of arrays that the caller passes in, to be added to."""
        self.given = given or {}
        self.decisions = decisions or Decisions()
        self.wrt, self.seeds, self.callees = tuple(wrt), tuple(seeds), callees
        outputs = [*(v for v, _ in seeds), *self.given]
        function = replace(function, body=count_turns(function.body))
        self.sites: dict[Value, Sites] = points_to(function)
        self.active: Activity = activity(function, self.wrt, outputs, self.sites)
        copied = keep_what_calls_read(function, self.active, self.sites)
        if copied is not function:
            function = copied
            self.sites = points_to(function)
            self.active = activity(function, self.wrt, outputs, self.sites)
        self.lists = list_storage(function, self.sites)
        self.handed_back = self.lists | (frozenset() if self.given else owned_memory(function))
        self.function, self.twins = add_shadows(function, self.active, self.given, self.handed_back)
        self.sites = points_to(self.function)
        self.active = Activity(self.active.values | set(self.twins.values()), self.sites)

    def run(self, results: Sequence[Value], name: str) -> Function:
        """The function that gives `results` and, after them, the adjoint of each parameter in `wrt`."""
        added = [o.array for o in walk(self.function.body) if isinstance(o, Store) and o.atomic]  # by any thread
        self.returned = frozenset(s for v in (*results, *added) for s in self.sites.get(v, frozenset()))
        best, chosen = self.choose_buffers(self.choose())
        return best.written(chosen, results, name)

    def written(self, chosen: _Attempt, results: Sequence[Value], name: str) -> Function:
        keeper = Keeper(chosen.function, chosen.structure, chosen.plan)
        forward = keeper.run()
        adjoint = self.adjoint(chosen.structure, chosen.restores, keeper.plan, keeper)
        adjoint.copies = chosen.copies
        adjoint.top.adjoints.update(self.given)
        mirror = adjoint.run(self.seeds)
        self.decisions.repeated |= adjoint.repeated
        bars = [self.gradient(v, adjoint) for v in self.wrt]
        operations: list[Operation] = list(forward.operations)
        if mirror.operations:
            operations = [Comment("forward sweep"), *operations, Comment("reverse sweep"), *mirror.operations]
        params = (*self.function.params, *(s for _, s in self.seeds if s is not None))
        return Function(name, params, Block(tuple(operations), (*results, *bars)))

    def is_active(self, param: Value) -> bool:
        """Whether a derivative by the parameter may be other than zero."""
        return self.active.memory(param) if isinstance(param.type, Array) else param in self.active

    def gradient(self, value: Value, adjoint: Adjoint) -> Value:
        with adjoint.into(adjoint.top):
            if isinstance(value.type, Array):
                return self.twins.get(value) or adjoint.shadow(value, adjoint.top)
            found = adjoint.collected.get(value, adjoint.top.adjoints.get(value))
            return adjoint.builder.const(0.0) if found is None else found

    def adjoint(
        self, structure: Structure, restores: dict[Store, Value], plan: Plan | None, keeper: Keeper | None
    ) -> Adjoint:
        storage = {} if keeper is None else keeper.storage
        lifted = {} if keeper is None else keeper.lifted
        adjoint = Adjoint(structure, self.active, self.twins, self.lists, restores, plan, storage, self.callees, lifted)
        adjoint.wanted = set(self.wrt)
        adjoint.handed_back = self.handed_back
        return adjoint

    # -- which memory the reverse sweep puts back --------------------------------------------------------------------

    def choose(self) -> _Attempt:
        best = self.attempt(self.seen_by_calls())
        for group in self.groups(best):
            restored = self.restored_by(best) | group
            other = self.attempt(restored)
            if other.plan.cost < best.plan.cost:
                best = other
        return best

    def choose_buffers(self, chosen: _Attempt) -> tuple[Reverse, _Attempt]:
        """The sweeps with new arrays in place of buffers, as far as that keeps less."""
        best: tuple[Reverse, _Attempt] = self, chosen
        for buffer in buffers_to_renew(self.function) if chosen.plan.kept else ():
            other = best[0].renewing(buffer)
            attempt = other.choose()
            if attempt.plan.cost < best[1].plan.cost:
                best = other, attempt
        return best

    def renewing(self, buffer: Buffer) -> Reverse:
        """The same with a new array in place of a buffer; the adjoints stay where they are."""
        other = copy.copy(self)
        other.function, new = renew(self.function, buffer)
        other.sites = points_to(other.function)
        added = {new} if self.active.memory(buffer.param) else set()
        other.active = Activity(self.active.values | added, other.sites)
        if buffer.param in self.twins:
            other.twins = {**self.twins, new: self.twins[buffer.param]}
        return other

    def seen_by_calls(self) -> frozenset[Value]:
        """Memory that a recursive function reads and somebody writes: as it was, when the call is reversed."""
        written = written_sites(self.function.body, self.sites)
        found: frozenset[Value] = frozenset()
        for operation in walk(self.function.body):
            if isinstance(operation, Call):
                for argument in operation.args:
                    memory = self.sites.get(argument, frozenset())
                    if memory & written:
                        found |= self.connected(memory)
        if found & self.returned:
            message = "an array that a recursive function reads is written, and returned beside the result"
            raise DifferentiationError([Problem("SD305", message, None)])
        return found

    def restored_by(self, attempt: _Attempt) -> frozenset[Value]:
        found: set[Value] = set(self.seen_by_calls())
        for store in attempt.restores:
            found |= memory_of(store.array, self.sites)
        return frozenset(found)

    def groups(self, attempt: _Attempt) -> list[frozenset[Value]]:
        """Memory of which loaded values are lost: putting it back may be cheaper than to keep them."""
        found: dict[frozenset[Value], float] = {}
        for value, cost in attempt.plan.lost.items():
            definition = attempt.structure.definition.get(value)
            if isinstance(definition, Load):
                group = self.connected(memory_of(definition.array, self.sites))
                if not group & (self.lists | self.returned):
                    found[group] = found.get(group, 0.0) + cost
        largest = sorted(found, key=lambda group: -found[group])[:_MOST_TRIED]
        return [group for group in found if group in largest]

    def connected(self, group: Sites) -> Sites:
        """All memory that some reference may confuse with this."""
        changed = True
        while changed:
            changed = False
            for sites in self.sites.values():
                if sites & group and not sites <= group:
                    group, changed = group | sites, True
        return group

    def attempt(self, restored: frozenset[Value]) -> _Attempt:
        restores: dict[Store, Value] = {}
        copies: dict[Call, list[tuple[Value, Value]]] = {}
        arrays: list[Value] = []
        for operation in walk(self.function.body):
            touched: tuple[Value, ...] = operation.args if isinstance(operation, Call) else ()
            if isinstance(operation, Store):
                touched = (operation.array,)
            arrays += [a for a in touched if self.sites.get(a, frozenset()) & restored]
        body = save_overwritten(self.function.body, arrays, restores, copies) if arrays else self.function.body
        function = replace(self.function, body=body)
        structure = structure_of(function)
        adjoint = self.adjoint(structure, restores, None, None)
        adjoint.copies = copies
        adjoint.run(self.seeds)
        for value in self.wrt:
            self.gradient(value, adjoint)
        still_there = StillThere(structure, self.sites)
        planner = Planner(structure, self.sites, adjoint.demands, restored, restores.values(), still_there)
        plan = replace(planner.plan(), idle=frozenset(adjoint.idle))
        return _Attempt(function, structure, restores, copies, plan)


def gradient_of(
    function: Function,
    wrt: Sequence[Value],
    output: int,
    *,
    with_results: bool,
    name: str,
    callees: dict[str, Any],
    given: dict[Value, Value],
    decisions: Decisions | None = None,
) -> Function:
    """Value and gradient: the results of the function (if asked for), then a gradient for each chosen value.

    The adjoints `given` are parameters that it adds to.
    """
    function, _ = protect_arguments(function)
    results = function.body.yields
    reverse = Reverse(function, wrt, [(results[output], None)], callees, given, decisions)
    written = reverse.run(results if with_results else (), name)
    return replace(written, params=(*written.params, *given.values()), written=tuple(given.values()))
