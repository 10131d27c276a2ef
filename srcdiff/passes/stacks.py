"""Stacks as arrays with a count, so that code with stacks can be differentiated like code with lists.

kept = stack()                               kept, top = np.empty(64), 0
while ...:                                   while ...:
    kept.push(x)                  =>             kept = grown(kept, top)
                                                 kept[top] = x
                                                 top += 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Block, Custom, Function, Grow, If, Load, Loop, NewStack, Operation, Pop, Push, Value, walk
from srcdiff.ir.types import INT, Scalar, Stack

_CAPACITY = 64  # how many numbers a stack can hold when it starts


def stacks_as_arrays(function: Function, capacity: int = _CAPACITY) -> Function:
    """With stacks that start as arrays of so many numbers."""
    lowering = _Lowering(capacity)
    return replace(function, body=lowering.block(function.body, ()))


def _is_of_numbers(value: Value) -> bool:
    return isinstance(value.type, Stack) and isinstance(value.type.element, Scalar)


class _Lowering:
    def __init__(self, capacity: int) -> None:
        self.builder, self.capacity = Builder(), capacity
        self.now: dict[Value, tuple[Value, Value]] = {}
        """For each stack the array and the number of elements, at the place that is being written."""

    def block(self, block: Block, stacks: Sequence[Value]) -> Block:
        """The block, which also yields the current versions of these stacks."""
        before = dict(self.now)
        with self.builder.block() as operations:
            for operation in block.operations:
                self.builder.span = operation.span
                self.operation(operation)
            more = [v for s in stacks for v in self.now[s]]
        self.now = before
        return Block(tuple(operations), (*block.yields, *more))

    def touched(self, operation: Operation) -> list[Value]:
        """The stacks from outside that change inside an operation."""
        changes = [o.stack for b in operation.blocks() for o in walk(b) if isinstance(o, Push | Pop)]
        return [s for s in dict.fromkeys(changes) if s in self.now]

    def operation(self, operation: Operation) -> None:
        build = self.builder
        match operation:
            case NewStack() if _is_of_numbers(operation.out):
                assert isinstance(operation.out.type, Stack)
                dtype = operation.out.type.element.dtype
                array = build.alloc(dtype, (build.const(self.capacity),), None, operation.out.name)
                self.now[operation.out] = (array, build.const(0))
            case Push() if operation.stack in self.now:
                array, top = self.now[operation.stack]
                grown = Value(array.type, array.name)
                build.add(Grow(grown, array, top, span=operation.span))
                build.store(grown, (top,), operation.value)
                self.now[operation.stack] = (grown, build.apply("add", top, build.const(1)))
            case Pop() if operation.stack in self.now:
                array, top = self.now[operation.stack]
                last = build.apply("subtract", top, build.const(1))
                build.add(Load(operation.out, array, (last,), span=operation.span))
                self.now[operation.stack] = (array, last)
            case If():
                stacks = self.touched(operation)
                then, orelse = self.block(operation.then, stacks), self.block(operation.orelse, stacks)
                outs = self.renewed(stacks)
                build.add(replace(operation, then=then, orelse=orelse, outs=(*operation.outs, *outs)))
            case Loop():
                self.loop(operation)
            case Custom():
                build.add(replace(operation, body=self.block(operation.body, ())))
            case _:
                build.add(operation)

    def renewed(self, stacks: Sequence[Value]) -> list[Value]:
        """New values for the stacks from here on."""
        for stack in stacks:
            array, _ = self.now[stack]
            self.now[stack] = (Value(array.type, array.name), Value(INT, f"{array.name}_count"))
        return [v for s in stacks for v in self.now[s]]

    def loop(self, operation: Loop) -> None:
        stacks = self.touched(operation)
        inits = [v for s in stacks for v in self.now[s]]
        params = self.renewed(stacks)
        test = None if operation.test is None else self.block(operation.test, ())
        body = self.block(operation.body, stacks)
        count, given = len(operation.params), len(operation.body.yields)
        yields = (*body.yields[:count], *body.yields[given:], *body.yields[count:given])
        outs = self.renewed(stacks)
        self.builder.add(
            replace(
                operation,
                params=(*operation.params, *params),
                inits=(*operation.inits, *inits),
                outs=(*operation.outs, *outs),
                test=test,
                body=Block(body.operations, yields),
            )
        )
