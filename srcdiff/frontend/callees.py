"""Functions that the program calls: their writes, their exceptions, and the outside values that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.nodes import Block, Call, Copy, Function, Operation, Print, Program, Raise, Value, functions_with
from srcdiff.ir.types import Array


def holds_array(value: Value) -> bool:
    return isinstance(value.type, Array)


def finished(program: Program, outside: Sequence[Value]) -> Program:
    """The finished program: recursive functions get all outside values as arguments, and return new arrays.

    Derivatives inside the program are taken first, because their functions must be finished in the same way.
    """
    program = pass_outside_values(mark_writing_calls(program), outside)
    return replace(program, callees=tuple(with_own_results(c) for c in program.callees))


def with_own_results(function: Function) -> Function:
    """The function with copies of returned arrays that are not new, or that it returns twice."""
    sites, taken = points_to(function), set(function.params)
    copies: list[Operation] = []
    yields: list[Value] = []
    for value in function.body.yields:
        memory = sites.get(value, frozenset())
        if holds_array(value) and (not memory or memory & taken):
            copies.append(Copy(Value(value.type, value.name), value))
            value = copies[-1].defines()[0]
        taken |= memory
        yields.append(value)
    return replace(function, body=Block((*function.body.operations, *copies), tuple(yields))) if copies else function


def mark_writing_calls(program: Program) -> Program:
    """Mark calls that write into their arguments, raise or print. Callers observe these effects."""
    writing: dict[str, tuple[int, ...]] = {}
    effects = functions_with(program.callees, (Raise, Print))

    def marked(block: Block) -> Block:
        operations = []
        for operation in block.operations:
            if isinstance(operation, Call) and operation.function in writing:
                has_effects = operation.function in effects
                operation = replace(operation, writes=writing[operation.function], effects=has_effects)
            operations.append(operation.rebuilt(marked))
        return Block(tuple(operations), block.yields)

    def writes(function: Function) -> tuple[int, ...]:
        function = replace(function, body=marked(function.body))
        written = written_sites(function.body, points_to(function))
        return tuple(k for k, p in enumerate(function.params) if p in written)

    def whole(function: Function) -> Function:
        written = tuple(function.params[k] for k in writing[function.name])
        return replace(function, body=marked(function.body), written=written)

    found: dict[str, tuple[int, ...]] = {c.name: () for c in program.callees}
    while found != writing:
        writing = found
        found = {c.name: writes(c) for c in program.callees}
    main = replace(program.main, body=marked(program.main.body))
    return Program(main, tuple(whole(c) for c in program.callees))


def pass_outside_values(program: Program, outside: Sequence[Value]) -> Program:
    """Recursive functions get the outside values that they read as further arguments. All of them get the same ones."""
    if not program.callees or not outside:
        return program

    def closed(block: Block, known: dict[Value, Value]) -> Block:
        operations = []
        for operation in block.operations:
            operation = operation.replaced(lambda v: known.get(v, v))
            if isinstance(operation, Call):
                operation = replace(operation, args=(*operation.args, *(known.get(v, v) for v in outside)))
            operations.append(operation.rebuilt(lambda inner: closed(inner, known)))
        return Block(tuple(operations), tuple(known.get(v, v) for v in block.yields))

    def function(callee: Function) -> Function:
        known = {v: Value(v.type, v.name) for v in outside}
        return replace(callee, params=(*callee.params, *known.values()), body=closed(callee.body, known))

    main = replace(program.main, body=closed(program.main.body, {}))
    return Program(main, tuple(function(c) for c in program.callees))
