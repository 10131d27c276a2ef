"""Loops over `prange`: iterations that surely depend on each other are refused; then the loops are like any others.

    before      for i in range(0, n, 1) parallel            after       for i in range(0, n, 1)
                    y[i] = x[i]                                             y[i] = x[i]

What the analysis cannot decide is taken on the user's word: the program is differentiated as if the iterations ran in
their order. Whether a loop of the derivative runs in threads does not depend on what the user says of loops, so no
other pass has to keep it true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from srcdiff.analyses.parallel_iterations import Conflict, ParallelIterations
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.nodes import Block, Loop, Operation, changed, walk


def check_claims(state: Any) -> None:
    """Refuse loops over `prange` whose iterations depend on each other; note those that may."""
    functions = [state.main, *state.callees]
    if not any(_is_claimed(o) for f in functions for o in walk(f.body)):
        return
    state.has_parallel_loops = True
    problems: list[Problem] = []
    for function in functions:
        looked_at = ParallelIterations(function)
        for loop in walk(function.body):
            if _is_claimed(loop):
                found = list(looked_at.conflicts(loop))
                problems += [_problem(c) for c in found if c.sure]
                state.claims += tuple((loop.span, c) for c in found if not c.sure)
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))
    state.main, *callees = [changed(f, body=_without_claims(f.body)) for f in functions]
    state.callees = tuple(callees)


def _is_claimed(operation: Operation) -> TypeGuard[Loop]:
    return isinstance(operation, Loop) and operation.parallel is not None


def _problem(conflict: Conflict) -> Problem:
    places = [s for s in (conflict.first, conflict.second) if s is not None]
    others = [s for s in places[1:] if (s.file, s.line) != (places[0].file, places[0].line)]
    notes = tuple(f"the other place is line {s.line}: `{s.text.strip()}`" for s in others)
    return Problem("SD503", conflict.what, places[0] if places else None, notes=notes)


def _without_claims(block: Block) -> Block:
    operations = []
    for operation in block.operations:
        made = operation.rebuilt(_without_claims)
        operations.append(replace(made, parallel=None) if _is_claimed(made) else made)
    return changed(block, operations=tuple(operations))
