"""Recursive functions: each gets an adjoint function of its own, which runs it again and then backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.clone import fresh
from srcdiff.ir.nodes import Block, Call, Function, Operation, Print, Value, functions_with, walk
from srcdiff.ir.types import FLOAT, Array, is_float
from srcdiff.ir.words import own_name
from srcdiff.passes.reverse_mode import Reversal, copied_first
from srcdiff.passes.shadows import list_storage


@dataclass(frozen=True, slots=True)
class Callee:
    """The adjoint of a recursive function: takes its arguments, the adjoints of its results and of its arrays."""

    name: str

    @staticmethod
    def has_shadow(argument: Value) -> bool:
        return isinstance(argument.type, Array) and is_float(argument.type)


def refuse_shared_memory(main: Function, callees: Sequence[Function]) -> None:
    """A recursive function takes an array that it writes into for another than those it reads, so that it must be."""
    writing = {c.name: written for c in callees if (written := _written_parameters(c))}
    problems = []
    for function in (main, *callees):
        sites = points_to(function)
        for call in (o for o in walk(function.body) if isinstance(o, Call) and o.function in writing):
            memory = {k: sites[a] for k, a in enumerate(call.args) if isinstance(a.type, Array)}
            if any(memory[k] & memory[j] for k in writing[call.function] & memory.keys() for j in memory if j != k):
                message = "arrays that share memory are passed to a recursive function that writes into them"
                problems.append(Problem("SD305", message, call.span, help="pass one of them, or a copy"))
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


def _written_parameters(function: Function) -> set[int]:
    written = written_sites(function.body, points_to(function))
    return {k for k, p in enumerate(function.params) if p in written}


@dataclass(frozen=True, slots=True)
class Reversed:
    """What a program needs to reverse its recursive functions."""

    known: dict[str, Callee]
    """Their adjoints, by the names of the functions."""
    reversals: tuple[Reversal, ...]
    functions: tuple[Function, ...]
    """The functions, and silent copies of those that print, which run again for their adjoints."""


def reversals_of_callees(callees: Sequence[Function]) -> Reversed:
    silent = _silent_names(callees)
    known = {c.name: Callee(f"{c.name}_adjoint") for c in callees}
    again = [_again(callee, silent) for callee in callees]
    copies = [replace(f, name=silent[c.name]) for c, f in zip(callees, again, strict=True) if c.name in silent]
    known |= {silent[name]: known[name] for name in silent}
    return Reversed(known, tuple(_reversal(callee, known) for callee in again), (*callees, *map(fresh, copies)))


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
    type_ = result.type if isinstance(result.type, Array) else FLOAT
    return Value(type_, f"{own_name(result) or 'result'}_bar")


def _reversal(callee: Function, known: dict[str, Any]) -> Reversal:
    lists = list_storage(callee, points_to(callee))
    callee, _ = copied_first(callee, lists & set(callee.params))  # their adjoints move, those of parameters stay
    results = [v for v in callee.body.yields if is_float(v.type)]
    seeds = tuple((v, _seed(v)) for v in results)
    floats = tuple(p for p in callee.params if is_float(p.type))
    shadows = {p: Value(p.type, f"{p.name}_bar") for p in callee.params if Callee.has_shadow(p)}
    params = (*callee.params, *(seed for _, seed in seeds), *shadows.values())

    def finish(adjoint: Function) -> Function:
        scalars = tuple(y for y, p in zip(adjoint.body.yields, floats, strict=True) if not isinstance(p.type, Array))
        return Function(adjoint.name, params, Block(adjoint.body.operations, scalars), tuple(shadows.values()))

    return Reversal(callee, floats, seeds, f"{callee.name}_adjoint", callees=known, given=shadows, finish=finish)
