"""Adjoints of recursive functions.

A function that allocates arrays runs together with its adjoint if that is possible (`joint_calls.py`). Otherwise it
becomes a pair of a forward and a reverse function (`call_pairs.py`).

The values that the reverse function pops are found by writing it. In derivatives that are differentiated again, and
where a pair is not possible, a function gets one adjoint function that runs it again and then in reverse. A pair is not
possible if the forward sweep needs the adjoints of arguments, because a branch or a loop selects among references to
them, or if it would store a reference to memory that the caller can reach by another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from srcdiff.analyses.structure import structure_of
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.clone import fresh
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Dim,
    Function,
    If,
    Library,
    Loop,
    Operation,
    Part,
    Print,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    free_values,
    functions_with,
    walk,
)
from srcdiff.ir.types import Array, Stack, is_inexact, widest
from srcdiff.ir.words import own_name
from srcdiff.passes.call_pairs import Pair, has_shadow, stack_for
from srcdiff.passes.joint_calls import Joint, joint_functions
from srcdiff.passes.reverse_mode import Reversal, copied_first, reversed_function
from srcdiff.passes.shadows import list_storage
from srcdiff.passes.simplify import remove_dead
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Callee:
    """The adjoint of a recursive function: takes its arguments, the adjoints of its results and of its arrays."""

    name: str
    gives_results: bool = False

    @staticmethod
    def has_shadow(argument: Value) -> bool:
        return isinstance(argument.type, Array) and is_inexact(argument.type)


def refuse_shared_memory(main: Function, callees: Sequence[Function]) -> None:
    """Reject aliasing arguments: a recursive function assumes that the arrays it writes are not those it reads."""
    writing = {c.name: written for c in callees if (written := _written_parameters(c))}
    problems = []
    for function in (main, *callees):
        sites = points_to(function)
        for call in (o for o in walk(function.body) if isinstance(o, Call) and o.function in writing):
            memory = {k: sites[a] for k, a in enumerate(call.args) if isinstance(a.type, Array)}
            if any(memory[k] & memory[j] for k in writing[call.function] & memory.keys() for j in memory if j != k):
                message = "arrays that share memory are passed to a recursive function that writes to them"
                problems.append(Problem("SD305", message, call.span, help="pass a copy of one of them"))
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


def _written_parameters(function: Function) -> set[int]:
    written = written_sites(function.body, points_to(function))
    return {k for k, p in enumerate(function.params) if p in written}


@dataclass(frozen=True, slots=True)
class Reversed:
    """The adjoint functions of a program's recursive functions."""

    known: dict[str, Callee | Joint]
    """Their adjoints, by the names of the functions."""
    reversals: tuple[Reversal, ...]
    functions: tuple[Function, ...]
    """The functions, and silent copies of those that print, which run again for their adjoints."""
    pairs: dict[str, Pair] = field(default_factory=dict)
    """The functions that become pairs: all of them, or none."""
    joint: dict[str, str] = field(default_factory=dict)
    """The functions that run together with their adjoints, and the names of both together: all of them, or none."""

    @property
    def stacks(self) -> dict[Stack, Value]:
        """New stacks, of all types that the pairs share."""
        kinds = [kind for pair in self.pairs.values() for kind in pair.stacks]
        return {kind: stack_for(kind) for kind in kinds}


def reversals_of_callees(main: Function, callees: Sequence[Function], *, inside: bool = False) -> Reversed:
    """Together with the functions, if that pays; a derivative that is differentiated once more does without."""
    together = jointly(callees) if not inside and _allocates(callees) else None
    return separately(main, callees, inside=inside) if together is None else together


def _allocates(callees: Sequence[Function]) -> bool:
    """Whether pairs may have to keep arrays, which takes longer than to run both sweeps at once.

    Numbers are kept quickly, and calls that do not wait for their results need less of the machine's stack.
    """
    return any(isinstance(o, Alloc | Copy | Library) for callee in callees for o in walk(callee.body))


def separately(main: Function, callees: Sequence[Function], *, inside: bool = False) -> Reversed:
    """As pairs, if that is possible; a derivative that is differentiated once more runs them again."""
    pairs = _pairs(main, callees) if callees and not inside else None
    if pairs is not None:
        return Reversed({}, tuple(_halves(fresh(callee), pairs) for callee in callees), tuple(callees), pairs)
    silent = _silent_names(callees)
    known: dict[str, Callee | Joint] = {c.name: Callee(f"{c.name}_adjoint") for c in callees}
    again = [_again(callee, silent) for callee in callees]
    copies = [replace(f, name=silent[c.name]) for c, f in zip(callees, again, strict=True) if c.name in silent]
    known |= {silent[name]: known[name] for name in silent}
    return Reversed(known, tuple(_reversal(callee, known) for callee in again), (*callees, *map(fresh, copies)))


def jointly(callees: Sequence[Function]) -> Reversed | None:
    """Together with the functions, if that is possible."""
    names = {c.name for c in callees}
    joint = {c.name: _free(f"{c.name}_with_adjoint", names) for c in callees}
    functions = joint_functions(callees, joint)
    if functions is None:
        return None
    known: dict[str, Callee | Joint] = {name: Joint(both) for name, both in joint.items()}
    return Reversed(known, (), (*callees, *functions), joint=joint)


def _silent_names(callees: Sequence[Function]) -> dict[str, str]:
    """New names for the functions that print."""
    names = {c.name for c in callees}
    found: dict[str, str] = {}
    for name in sorted(functions_with(callees, (Print,))):
        new = f"{name}_silent"
        while new in names:
            new += "_"
        found[name] = new
    return found


def _again(function: Function, silent: dict[str, str]) -> Function:
    """The function as it runs again, for its adjoint: it has raised or printed already, when it ran for its value."""

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Call):
                name = silent.get(operation.function, operation.function)
                operation = replace(operation, function=name, effects=False)
            if not isinstance(operation, Print):
                operations.append(operation.rebuilt(visit))
        return Block(tuple(operations), block.yields)

    copy = fresh(function)
    return replace(copy, body=visit(copy.body))


def _seed(result: Value) -> Value:
    """The parameter for the adjoint of a result."""
    type_ = result.type if isinstance(result.type, Array) else widest(result.type)
    return Value(type_, f"{own_name(result) or 'result'}_bar")


# -- pairs -----------------------------------------------------------------------------------------------------------


def _pairs(main: Function, callees: Sequence[Function]) -> dict[str, Pair] | None:
    """The parameters of the reverse functions, found by iteration to a fixed point; None if there is no pair."""
    names = {c.name for c in callees}
    free = {c.name: [_free(f"{c.name}_{part}", names) for part in ("forward", "reverse")] for c in callees}
    pairs = {name: Pair(forward, reverse, (), frozenset(), ()) for name, (forward, reverse) in free.items()}
    while True:
        found = [_halves(fresh(callee), pairs, is_final=False) for callee in callees]
        for reversal in found:
            reversed_function(reversal)
        if not all(map(_is_separable, found)):
            return None
        stacks = tuple(dict.fromkeys(kind for reversal in found for kind in reversal.stacks))
        restored = _restored_by_calls(main, found, pairs)
        more = {
            callee.name: _enlarged(pairs[callee.name], _takes(reversal), restored.get(callee.name, set()), stacks)
            for callee, reversal in zip(callees, found, strict=True)
        }
        if more == pairs:
            return pairs
        pairs = more


def _enlarged(pair: Pair, takes: set[int], restores: set[int], stacks: tuple[Stack, ...]) -> Pair:
    """A pair that also takes and restores these values; the sets only grow, so the iteration terminates."""
    restores |= pair.restores
    taken = tuple(sorted({*takes, *restores, *pair.takes}))
    stacks = tuple(dict.fromkeys((*pair.stacks, *stacks)))
    return replace(pair, takes=taken, restores=frozenset(restores), stacks=stacks)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _takes(reversal: Reversal) -> set[int]:
    """Which parameters of the function the reverse sweep reads."""
    assert reversal.backwards is not None
    operations = walk(reversal.backwards.body)
    used = {v for o in operations for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields))}
    used |= set(reversal.backwards.body.yields)
    return {k for k, p in enumerate(reversal.function.params) if p in used and not isinstance(p.type, Stack)}


def _restored_by_calls(main: Function, reversals: Sequence[Reversal], pairs: dict[str, Pair]) -> dict[str, set[int]]:
    """The arrays that functions write into, and whose contents before that some reverse sweep reads."""
    named = {pair.forward: name for name, pair in pairs.items()} | {name: name for name in pairs}
    takes = {name: pairs[named[name]].takes for name in named}
    found: dict[str, set[int]] = {}
    for function, is_read in ((main, None), *((r.function, _read_backwards(r)) for r in reversals)):
        sites, reads = points_to(function), _Reads(function, takes)
        given = next((r.restored_parameters for r in reversals if r.function is function), frozenset())
        for call in (o for o in walk(function.body) if isinstance(o, Call)):
            before = reads.before(call)
            memory = given | (before if is_read is None else before & is_read)
            for k in call.writes:
                if isinstance(call.args[k].type, Array) and sites[call.args[k]] & memory:
                    found.setdefault(named[call.function], set()).add(k)
    return found


def _read_backwards(reversal: Reversal) -> frozenset[Value]:
    """The memory that the reverse sweep reads; of the arrays that are kept, all."""
    assert reversal.backwards is not None
    sites = points_to(reversal.function)
    kept = [v for frame in reversal.frames.values() for v, _ in frame if v in sites]
    read = [m for _, m in _Reads(reversal.backwards, {}).places]
    return frozenset[Value]().union(*read, *(sites[v] for v in kept))


class _Reads:
    """The places where a function reads memory. `takes` has the arguments of the reverse sweeps of functions."""

    def __init__(self, function: Function, takes: dict[str, tuple[int, ...]]) -> None:
        self.structure, self.takes = structure_of(function), takes
        sites = points_to(function)
        self.places: list[tuple[Operation, frozenset[Value]]] = []
        for operation in self.structure.start:
            memory = {s for v in self.read_by(operation) for s in sites.get(v, ())}
            if memory:
                self.places.append((operation, frozenset(memory)))

    def read_by(self, operation: Operation) -> Sequence[Value]:
        match operation:
            case Store() | Dim() | View() | Transpose() | Reshape() | Part() | Alloc() | If() | Loop():
                return ()
            case Call() if operation.function in self.takes:
                return [operation.args[k] for k in self.takes[operation.function]]
        return operation.uses()

    def before(self, call: Call) -> frozenset[Value]:
        """The memory that may be read before the call."""
        start, around = self.structure.start, set(self.loops(call))
        found = [m for o, m in self.places if start[o] < start[call] or around.intersection(self.loops(o))]
        return frozenset[Value]().union(*found)

    def loops(self, operation: Operation) -> list[Loop]:
        return self.structure.loops_around(self.structure.block_of[operation])


def _is_separable(reversal: Reversal) -> bool:
    """Whether the forward sweep does without the adjoints of arguments, and keeps no reference that has other names."""
    sites, function = points_to(reversal.function), reversal.function
    kept = [(sites[v], stack) for frame in reversal.frames.values() for v, stack in frame if v in sites]
    if any(memory & set(function.params) or any(memory & m and s is not t for m, t in kept) for memory, s in kept):
        return False
    return not free_values(function) - set(reversal.stacks.values())


def _halves(callee: Function, pairs: dict[str, Pair], *, is_final: bool = True) -> Reversal:
    """The reversal of a function that becomes a pair."""
    pair = pairs[callee.name]
    lists = list_storage(callee, points_to(callee))
    callee, _ = copied_first(callee, lists & set(callee.params))  # their adjoints move, those of parameters stay
    seeds = tuple((v, _seed(v)) for v in callee.body.yields if is_inexact(v.type))
    floats = tuple(p for p in callee.params if is_inexact(p.type))
    shadows = {p: Value(p.type, f"{p.name}_bar") for p in callee.params if has_shadow(p)}
    stacks = {kind: stack_for(kind) for kind in pair.stacks}
    taken = [callee.params[k] for k in pair.takes]
    params = (*taken, *(seed for _, seed in seeds), *shadows.values(), *stacks.values())
    restored = tuple(callee.params[k] for k in sorted(pair.restores))

    def finish(reverse: Function) -> Function:
        reverse = remove_dead(replace(reverse, written=(*restored, *shadows.values())))
        return fresh(replace(reverse, name=pair.reverse, params=params)) if is_final else reverse

    kinds: dict[str, Any] = {"pairs": pairs, "stacks": stacks, "given": shadows, "finish": finish, "is_apart": True}
    return Reversal(callee, floats, seeds, pair.forward, restored_parameters=frozenset(restored), **kinds)


# -- functions that run again ----------------------------------------------------------------------------------------


def _reversal(callee: Function, known: dict[str, Any]) -> Reversal:
    lists = list_storage(callee, points_to(callee))
    callee, _ = copied_first(callee, lists & set(callee.params))  # their adjoints move, those of parameters stay
    results = [v for v in callee.body.yields if is_inexact(v.type)]
    seeds = tuple((v, _seed(v)) for v in results)
    floats = tuple(p for p in callee.params if is_inexact(p.type))
    shadows = {p: Value(p.type, f"{p.name}_bar") for p in callee.params if Callee.has_shadow(p)}
    params = (*callee.params, *(seed for _, seed in seeds), *shadows.values())

    def finish(adjoint: Function) -> Function:
        scalars = tuple(y for y, p in zip(adjoint.body.yields, floats, strict=True) if not isinstance(p.type, Array))
        return Function(adjoint.name, params, Block(adjoint.body.operations, scalars), tuple(shadows.values()))

    return Reversal(callee, floats, seeds, f"{callee.name}_adjoint", callees=known, given=shadows, finish=finish)
