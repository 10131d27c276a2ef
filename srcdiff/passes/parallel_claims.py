"""Loops over `prange`: iterations that surely depend on each other are refused; then the loops are like any others.

    before      for i in range(0, n, 1) parallel            after       for i in range(0, n, 1)
                    y[i] = x[i]                                             y[i] = x[i]

What the analysis cannot decide is taken on the user's word: the program is differentiated as if the iterations ran in
their order. Such a loop gets a number, and its loads and stores get claims of that number. The adjoint of a load or
store touches the same element of the array of adjoints, so it has the same claims. `analyses/thread_loops.py` uses
them, where it looks whether threads can share a loop of the derivative.

A pass may drop a claim, or the number of a loop. It must drop one if a loop gets other iterations than the user's loop
has, if a loop is written several times, or if accesses to two elements become accesses to one.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, TypeGuard

from srcdiff.analyses.parallel_iterations import Conflict, ParallelIterations
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.nodes import Block, Claim, Claims, Load, Loop, Operation, Store, changed, walk

_NUMBERS = itertools.count(1)
"""The numbers of loops. They are unique, even when a derivative is inserted into another program."""


def check_claims(state: Any) -> None:
    """Refuse loops over `prange` whose iterations depend on each other; note those that may."""
    functions = [state.main, *state.callees]
    if not any(_is_claimed(o) for f in functions for o in walk(f.body)):
        return
    problems: list[Problem] = []
    claimed = _Claimed()
    for function in functions:
        looked_at = ParallelIterations(function)
        for loop in walk(function.body):
            if _is_claimed(loop):
                found = list(looked_at.conflicts(loop))
                problems += [_problem(c) for c in found if c.sure]
                state.claims += tuple((loop.span, c) for c in found if not c.sure)
                if found:
                    claimed.add(loop, looked_at)
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))
    state.main, *callees = [changed(f, body=claimed.block(f.body)) for f in functions]
    state.callees = tuple(callees)


def _is_claimed(operation: Operation) -> TypeGuard[Loop]:
    return isinstance(operation, Loop) and operation.parallel is not None


def _problem(conflict: Conflict) -> Problem:
    places = [s for s in (conflict.first, conflict.second) if s is not None]
    others = [s for s in places[1:] if (s.file, s.line) != (places[0].file, places[0].line)]
    notes = tuple(f"the other place is line {s.line}: `{s.text.strip()}`" for s in others)
    return Problem("SD503", conflict.what, places[0] if places else None, notes=notes)


class _Claimed:
    """Replaces the marks of loops by numbers and claims."""

    def __init__(self) -> None:
        self.numbers: dict[Operation, int] = {}
        self.claims: dict[Operation, Claims] = {}

    def add(self, loop: Loop, looked_at: ParallelIterations) -> None:
        """A loop about which a claim of the user is assumed to be true."""
        number = self.numbers[loop] = next(_NUMBERS)
        for access, alone in looked_at.accesses(loop):
            self.claims[access] = (*self.claims.get(access, access.claims), Claim(number, alone))

    def block(self, block: Block) -> Block:
        return changed(block, operations=tuple([self.operation(o) for o in block.operations]))

    def operation(self, operation: Operation) -> Operation:
        made = operation.rebuilt(self.block)
        if isinstance(made, Load | Store) and operation in self.claims:
            return replace(made, claims=self.claims[operation])
        if isinstance(made, Loop) and _is_claimed(made):
            numbers = (self.numbers[operation],) if operation in self.numbers else ()
            return replace(made, parallel=None, claims=(*made.claims, *numbers))
        return made
