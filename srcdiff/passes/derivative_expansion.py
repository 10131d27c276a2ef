"""Derivatives inside a program: the passes take each of them, and it is written in place of its operation.

    before      d = derivative g(x) mode=reverse            after       d = 2.0 * x
                    y = x * x
                    yield y

What stands there is a program like any other, in which `x` is a value: whoever differentiates it knows nothing of the
derivative, so perturbations cannot be confused. Derivatives inside of derivatives are taken first.

The passes that differentiate need this one, also for rules that take derivatives (custom_adjoints.py), and this one
needs them: `pipeline.py`, which lists them, names them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from srcdiff.frontend.callees import finished, mark_writing_calls
from srcdiff.frontend.domain.abstract_values import Abstract, Static, Tuple
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.source.capture import Captured
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline, renamed, without_comments
from srcdiff.ir.nodes import (
    Block,
    Const,
    Derivative,
    Function,
    Operation,
    Program,
    Value,
    called_by,
    changed,
    free_values,
    values_around,
    walk,
)
from srcdiff.ir.print import show
from srcdiff.ir.types import is_inexact
from srcdiff.passes import requested
from srcdiff.passes.compilation import Compilation, Request
from srcdiff.passes.growing_buffers import grow_buffers
from srcdiff.passes.manager import Pass, run
from srcdiff.passes.reverse_mode import protect_arguments, with_new_results
from srcdiff.passes.stacks import stacks_as_arrays
from srcdiff.signature.trees import NODES

_PASSES: list[Pass] = []
"""The passes that take a derivative."""


def take_derivatives_by(passes: Sequence[Pass]) -> None:
    """Name the passes that take a derivative; those of Jacobians are among them, with their conditions."""
    _PASSES[:] = passes


def expand_derivatives(state: Any) -> None:
    """Write the derivatives inside the program in place of their operations; what was read of it follows."""
    reading = state.reading
    expansion = Expansion(reading.captured, state.program)
    if expansion.is_needed:
        state.program = finished(expansion.run(), [o.value for o in reading.outside])
        was = reading.program.main
        main = replace(state.program.main, name=was.name, written=was.written)
        state.reading = expansion.followed(replace(reading, program=replace(state.program, main=main)))
        state.around = frozenset()


def without_derivatives(reading: Reading) -> Program:
    """The program that was read, with its derivatives written out."""
    return Expansion(reading.captured, reading.program).run()


class Expansion:
    """Writes a program without the derivatives inside it."""

    def __init__(self, captured: Captured, program: Program) -> None:
        self.captured, self.program = captured, program
        operations = walk(program.main.body)
        self.is_needed = any(isinstance(o, Derivative) for o in operations)
        self.constants = {o.out: o.value for o in operations if isinstance(o, Const)} if self.is_needed else {}
        self.known: dict[Value, Value] = {}
        """The results of the derivatives, and what stands for them."""

    def run(self) -> Program:
        if self.is_needed:
            main = self.program.main
            main = replace(main, body=self.block(main.body))  # finds further callees
            self.program = replace(self.program, main=main)
        return self.program

    def by(self, value: Value) -> Value:
        return self.known.get(value, value)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.replaced(self.by).rebuilt(self.block)
            operations += self.expanded(operation) if isinstance(operation, Derivative) else (operation,)
        return changed(block, operations=tuple(operations), yields=tuple([self.by(v) for v in block.yields]))

    def expanded(self, operation: Derivative) -> list[Operation]:
        """The derivative, whose body has no other derivatives in it."""
        main = self.closed(operation)
        called = called_by(main, self.program.callees)
        program = mark_writing_calls(Program(main, called))
        state = started(operation, program, self.captured)
        assert _PASSES  # `pipeline.py` is imported
        run(_PASSES, state)
        functions = [stacks_as_arrays(without_comments(f)) for f in (state.main, *state.callees)]
        derived, *callees = [grow_buffers(f, in_chunks=False) for f in functions]
        derived, _ = protect_arguments(derived)
        derived = with_new_results(derived) if operation.mode == "primal" else derived
        seeds = [v for x in state.further.values() for v in requested.leaves(x, state.reading)]
        given = dict(zip((*operation.params, *seeds), (*operation.args, *operation.tangents), strict=True))
        builder = Builder()
        args = [given.get(p, p) for p in derived.params]
        names = self.added([c for c in callees if c.name not in {c.name for c in called}])
        values = inline(renamed(derived, names), args, builder)
        for out, value in zip(operation.outs, values, strict=True):
            value.name = value.name or out.name
            self.known[out] = value
        return builder.operations

    def closed(self, operation: Derivative) -> Function:
        """The body as a function, whose further parameters are the values that it takes from around it."""
        body = operation.body
        constants: list[Operation] = []
        free: list[Value] = []
        for value in values_around(body, operation.params):
            if value in self.constants:
                constants.append(Const(value, self.constants[value]))
            else:
                free.append(value)
        return Function(
            operation.function, (*operation.params, *free), Block((*constants, *body.operations), body.yields)
        )

    def added(self, new: Sequence[Function]) -> dict[str, str]:
        """Add the functions that a derivative has written to the program; return other names for them.

        The derivative around this one may have to write functions of the same names, which take more.
        """
        there = {c.name: c for c in self.program.callees}
        ending = "_inside"
        while True:
            names = {c.name: f"{c.name}{ending}" for c in new}
            found = [renamed(c, names) for c in new]
            if all(c.name not in there or are_same(there[c.name], c) for c in found):
                break
            ending += "_"
        further = tuple(c for c in found if c.name not in there)
        self.program = replace(self.program, callees=(*self.program.callees, *further))
        return names

    def followed(self, reading: Reading) -> Reading:
        """The program so far, with the values that replace the results of derivatives."""
        return replace(
            reading,
            result=NODES.map(lambda leaf: self.by(leaf) if isinstance(leaf, Value) else leaf, reading.result),
            intermediates={name: self.by(v) for name, v in reading.intermediates.items()},
            passed=tuple(replace(p, value=self.by(p.value)) for p in reading.passed),
            named=tuple(replace(n, value=self.by(n.value)) for n in reading.named),
        )


def are_same(a: Function, b: Function) -> bool:
    """Whether two functions compute the same, from the same values around them."""
    return show(a) == show(b) and free_values(a) == free_values(b)


def started(operation: Derivative, program: Program, captured: Captured) -> Compilation:
    """The request for a derivative, on its way to the first pass."""
    arguments: dict[str, Abstract] = {}
    for param in operation.params:
        if is_inexact(param.type):
            name = param.name
            while name in arguments:
                name += "_"
            arguments[name] = param
    results = operation.body.yields
    has_aux = operation.mode == "reverse" and operation.with_value and len(results) > 1
    reading = Reading(program, arguments, result_of(operation, has_aux), (), (), captured, {}, {})
    request = Request(captured, {}, tuple(arguments), operation.mode, operation.with_value, has_aux)
    request.jacobian, request.directions = operation.jacobian, operation.directions or None
    state = Compilation(program, request, reading, inside=True)
    state.around = frozenset(v for callee in state.callees for v in free_values(callee))
    if operation.jacobian:
        request.mode = request.mode or requested.cheaper_mode(state)
        request.numbers = requested.few_directions(state, request.mode) if request.directions is None else None
    state.seeds = requested.seeds_of(state)
    return state


def result_of(operation: Derivative, has_aux: bool) -> Abstract:
    """The result of the function that is differentiated; what is no float is constant."""
    results = operation.body.yields
    if operation.mode != "reverse":
        return results[0] if len(results) == 1 else Tuple(results)
    first = results[0] if is_inexact(results[0].type) else Static(0.0)
    return Tuple((first, Tuple(results[1:]))) if has_aux else first
