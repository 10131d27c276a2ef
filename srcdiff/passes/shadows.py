"""Shadow references: a reference that a branch or loop selects gets a shadow, the reference to its adjoint.

    u, v = v, u      becomes      u, v = v, u
                                  u_bar, v_bar = v_bar, u_bar

so that the reverse sweep finds the adjoint of the array that a name referred to. Other references need no shadow.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.activity import Activity
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Const,
    Copy,
    Custom,
    Function,
    Grow,
    If,
    Library,
    Loop,
    NewStack,
    Operation,
    Peek,
    Pop,
    Push,
    References,
    Value,
    walk,
)
from srcdiff.ir.types import FLOAT, Array, Stack


def list_storage(function: Function, sites: dict[Value, Sites]) -> Sites:
    """The storage of lists: it has a single owner, so its adjoints can be carried in reverse."""
    found: set[Value] = set()
    for operation in walk(function.body):
        if isinstance(operation, Grow):
            found |= sites.get(operation.array, frozenset())
    size = -1
    while size != len(found):  # references that alias a list's storage through a branch or loop belong to it, too
        size = len(found)
        for group in sites.values():
            if group & found:
                found |= group
    return frozenset(found)


def add_shadows(
    function: Function, active: Activity, given: dict[Value, Value], returned_memory: Sites
) -> tuple[Function, dict[Value, Value]]:
    """The function with shadows, and the shadow of each reference that has one; some adjoints of parameters are given.

    Memory whose adjoints are carried in reverse needs no shadows.
    """
    adder = _Adder(function, active, given, returned_memory)
    return adder.run(), adder.twins


class _Adder:
    def __init__(self, function: Function, active: Activity, given: dict[Value, Value], returned_memory: Sites) -> None:
        self.function, self.active, self.given, self.returned_memory = function, active, given, returned_memory
        self.twins: dict[Value, Value] = {}

    def chosen(self, value: Value) -> bool:
        """Whether the reference is one that a twin follows."""
        if not isinstance(value.type, Array | Stack) or not self.active.memory(value):
            return False
        return not (self.active.sites.get(value, frozenset()) & self.returned_memory)

    def run(self) -> Function:
        need: set[Value] = set()
        operations = list(walk(self.function.body))
        size = -1
        while size != len(need):
            size = len(need)
            for operation in operations:
                self.spread(operation, need)
        for value in need:
            self.twins[value] = self.given.get(value) or Value(value.type, f"{value.name or 'shadow'}_bar")
        if not need:
            return self.function
        start: list[Operation] = []
        for param in self.function.params:
            if param in need and param not in self.given:
                self.allocate(param, start)
        body = self.block(self.function.body)
        return replace(self.function, body=Block((*start, *body.operations), body.yields))

    def spread(self, operation: Operation, need: set[Value]) -> None:
        if isinstance(operation, If):
            for k, out in enumerate(operation.outs):
                if self.chosen(out):
                    need |= {out, operation.then.yields[k], operation.orelse.yields[k]}
        elif isinstance(operation, Loop):
            for k, param in enumerate(operation.params):
                if self.chosen(param):
                    need |= {param, operation.outs[k], operation.inits[k], operation.body.yields[k]}
        elif isinstance(operation, References) and operation.out in need:
            need.add(operation.array)
        elif isinstance(operation, NewStack) and self.chosen(operation.out):
            need.add(operation.out)
        elif isinstance(operation, Push) and operation.stack in need:
            need.add(operation.value)
        elif isinstance(operation, Pop | Peek) and operation.stack in need:
            need.add(operation.out)

    def allocate(self, array: Value, into: list[Operation]) -> None:
        zero = Value(FLOAT)
        into.append(Const(zero, 0.0))
        into.append(Alloc(self.twins[array], (), zero, array))

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.operation(operation, operations)
        return Block(tuple(operations), block.yields)

    def operation(self, operation: Operation, into: list[Operation]) -> None:
        twins = self.twins
        match operation:
            case If():
                then, orelse = self.block(operation.then), self.block(operation.orelse)
                chosen = [k for k, out in enumerate(operation.outs) if out in twins]
                operation = replace(
                    operation,
                    then=Block(then.operations, (*then.yields, *(twins[then.yields[k]] for k in chosen))),
                    orelse=Block(orelse.operations, (*orelse.yields, *(twins[orelse.yields[k]] for k in chosen))),
                    outs=(*operation.outs, *(twins[operation.outs[k]] for k in chosen)),
                )
                into.append(operation)
            case Loop():
                into.append(self.loop(operation))
            case Custom():
                into.append(replace(operation, body=self.block(operation.body)))
            case _:
                into.append(operation)
        if isinstance(operation, Alloc | Copy) and operation.out in twins:
            self.allocate(operation.out, into)
        if isinstance(operation, Library | Custom | Call):
            for out in operation.outs:
                if out in twins:
                    self.allocate(out, into)
        if isinstance(operation, References) and operation.out in twins:
            into.append(replace(operation, out=twins[operation.out], array=twins[operation.array]))
        if isinstance(operation, NewStack) and operation.out in twins:
            into.append(replace(operation, out=twins[operation.out]))
        if isinstance(operation, Push) and operation.stack in twins:
            into.append(replace(operation, stack=twins[operation.stack], value=twins[operation.value]))
        if isinstance(operation, Pop | Peek) and operation.stack in twins:
            into.append(replace(operation, out=twins[operation.out], stack=twins[operation.stack]))

    def loop(self, operation: Loop) -> Loop:
        twins, body = self.twins, self.block(operation.body)
        chosen = [k for k, param in enumerate(operation.params) if param in twins]
        count = len(operation.params)
        yields, stop = body.yields[:count], body.yields[count:]
        return replace(
            operation,
            params=(*operation.params, *(twins[operation.params[k]] for k in chosen)),
            inits=(*operation.inits, *(twins[operation.inits[k]] for k in chosen)),
            outs=(*operation.outs, *(twins[operation.outs[k]] for k in chosen)),
            test=None if operation.test is None else self.block(operation.test),
            body=Block(body.operations, (*yields, *(twins[yields[k]] for k in chosen), *stop)),
        )
