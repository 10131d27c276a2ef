"""The pass manager: runs named passes over all functions of a program, and verifies the program after each.

A pass is a line of a list. Most passes are functions from `Function` to `Function`; `each` runs them on all functions
of the program. Functions are immutable, so a pass that returns the same function has changed nothing, and it is not run
on that function again.

>>> from srcdiff.ir.nodes import Block, Function, Program
>>> state = State(Program(Function("f", (), Block())))
>>> calls = []
>>> idle = Pass("idle", each(lambda function: calls.append(function.name) or function), "does nothing")
>>> run([idle, idle], state)
>>> calls
['f']
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeVar

from srcdiff.diagnostics import progress
from srcdiff.diagnostics.timings import timed
from srcdiff.ir.nodes import Function, Operation, Program, Value
from srcdiff.ir.verify import verify
from srcdiff.quick_dataclasses import dataclass

Transform = Callable[..., Function]


@dataclass(slots=True)
class State:
    """The state that passes transform: the program, and the transforms that no longer change it."""

    program: Program
    settled: set[tuple[Transform, Function]] = field(default_factory=set, kw_only=True)
    """Functions that a transform returns unchanged."""
    history: list[tuple[str, Function]] = field(default_factory=list, kw_only=True)
    """The main function after each pass that changed it."""
    is_followed: bool = field(default=True, kw_only=True)
    """Whether `history` goes on. Without it, programs of earlier passes are freed."""

    checked: set[Operation] = field(default_factory=set, kw_only=True)
    """Operations whose types have been found right."""
    around: frozenset[Value] = field(default=frozenset(), kw_only=True)
    """Values of the program around them that the functions see, while derivatives are not taken yet."""

    def whole_program(self) -> Program:
        """The program with all functions that it calls."""
        return self.program


S = TypeVar("S", bound=State)


def always(state: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """A named line in a list of passes."""

    name: str
    run: Callable[[Any], None]
    what: str
    """A description in one line."""
    when: Callable[[Any], bool] = always


Need = Callable[[Any, Function], Any]


def each(transform: Transform, *needs: Need, only_main: bool = False) -> Callable[[Any], None]:
    """Run a transform on every function of the program; `needs` compute its further arguments."""

    def on(state: State, function: Function) -> Function:
        if (transform, function) in state.settled:
            return function
        changed = transform(function, *(need(state, function) for need in needs))
        state.settled.add((transform, changed))
        return changed

    def run_on_all(state: State) -> None:
        program = state.program
        main = on(state, program.main)
        callees = program.callees if only_main else tuple([on(state, c) for c in program.callees])
        if main is not program.main or callees != program.callees:
            state.program = Program(main, callees)

    return run_on_all


def run(passes: Sequence[Pass], state: State) -> None:
    """Run passes in their order, those that are due."""
    for one in passes:
        if one.when(state):
            progress.step(one.name)
            with timed(one.name):
                before = state.program
                one.run(state)
            look(one.name, state, before)


def look(name: str, state: State, before: Program | None = None) -> None:
    """Verify and note a program that a pass has changed; show it if that is wanted."""
    is_new = state.program is not before
    if is_new:
        verify(state.whole_program(), name, before if state.history else None, state.checked, state.around)
        if state.is_followed:
            state.history.append((name, state.program.main))
        current = {state.program.main, *state.program.callees}
        state.settled = {(transform, function) for transform, function in state.settled if function in current}
    wanted = os.environ.get("SRCDIFF_SHOW", "")
    if wanted and (wanted == name or (wanted == "all" and is_new)):
        from srcdiff.ir.print import show

        print(f"--- after: {name}\n{show(state.whole_program())}", file=sys.stderr)
