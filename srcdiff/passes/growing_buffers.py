"""Arrays that keep values of a loop which may end early have memory for the iterations that it runs, not for its bound.

kept = np.empty(n)                           kept = np.empty(min(n, 1048576))
for i in range(n):                           for first in range(0, n, 1048576):
    kept[i] = x                                  most = min(n, first + 1048576)
    ...                           =>             if kept.shape[0] < most:
    if x < 0.1:                                      kept = grown(kept, kept.shape[0])
        break                                    for i in range(first, most):
                                                     kept[i] = x
                                                     ...
                                                     if x < 0.1:
                                                         break
                                                 if x < 0.1:
                                                     break

The loop inside does not ask for memory: that would cost as much as a short iteration. A program that is differentiated
once more keeps its loops as they are, and asks at every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Custom,
    Function,
    Grow,
    If,
    Index,
    Loop,
    Operation,
    Store,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import BOOL, INT
from srcdiff.passes.recovered_values import iteration_number

_START = 2**20
"""How many numbers such an array has memory for at first, if there may be so many: what is not used costs nothing."""


def grow_buffers(function: Function, *, in_chunks: bool = True) -> Function:
    growing = [o.out for o in walk(function.body) if isinstance(o, Alloc) and o.grows]
    if not growing:
        return function
    lowering = _Lowering(function, growing, in_chunks)
    return replace(function, body=lowering.block(function.body, ()))


class _Lowering:
    def __init__(self, function: Function, growing: Sequence[Value], in_chunks: bool) -> None:
        self.builder, self.in_chunks = Builder(), in_chunks
        operations = walk(function.body)
        self.definition = {v: o for o in operations for v in o.defines()}
        self.loops = {o.index: o for o in operations if isinstance(o, Loop) and o.index is not None}
        self.builder.constants |= {o.out: o.value for o in operations if isinstance(o, Const)}
        self.filled: dict[Operation, list[Value]] = {}
        """Loops that may end early, with the arrays whose first axis they go along."""
        for operation in operations:
            self.note(operation, growing)
        self.now: dict[Value, Value] = {a: a for arrays in self.filled.values() for a in arrays}
        """For each of these arrays, what it is at the place that is being written."""
        self.total: dict[Value, Value] = {}
        """For each of them, how many iterations its loop may make."""
        self.few: dict[Value, Value] = {}
        """For each of them, how many iterations it has memory for at first, if there may be so many."""
        self.others: dict[Value, tuple[Value, ...] | None] = {}
        """For each of them, the lengths of its other axes; None if it starts with memory from the caller."""

    def note(self, operation: Operation, growing: Sequence[Value]) -> None:
        match operation:
            case Store(array=array, indices=(first, *_)) if array in growing:
                loop = self.loop_of(first)
            case View(array=array, items=(Index(value=first), *_)) if array in growing:
                loop = self.loop_of(first)
            case _:
                return
        if loop is not None and array not in self.filled.setdefault(loop, []):
            self.filled[loop].append(array)

    def loop_of(self, index: Value) -> Loop | None:
        """The loop that may end early whose iterations an index counts."""
        if index in self.loops:
            loop = self.loops[index]
            return None if loop.counted or loop.test is not None else loop
        operation = self.definition.get(index)
        found = [self.loop_of(a) for a in operation.args] if isinstance(operation, Apply) else []
        return next((loop for loop in found if loop is not None), None)

    # -- the program -------------------------------------------------------------------------------------------------

    def current(self, value: Value) -> Value:
        return self.now.get(value, value)

    def block(self, block: Block, arrays: Sequence[Value], first: Callable[[], None] | None = None) -> Block:
        """The block, which also yields what has become of these arrays; `first` writes what it starts with."""
        before = dict(self.now)
        with self.builder.block() as operations:
            if first is not None:
                first()
            for operation in block.operations:
                self.builder.span = operation.span
                self.operation(operation)
            yields = (*map(self.current, block.yields), *(self.now[a] for a in arrays))
        self.now = before
        return Block(tuple(operations), yields)

    def touched(self, operation: Operation) -> list[Value]:
        """The arrays from outside that grow inside an operation."""
        inside = [operation, *(o for b in operation.blocks() for o in walk(b))]
        made = {v for o in inside for v in o.defines()}
        grown = [a for o in inside if isinstance(o, Loop) for a in self.filled.get(o, ())]
        return [a for a in dict.fromkeys(grown) if a not in made]

    def operation(self, operation: Operation) -> None:
        build, filled, arrays = self.builder, self.filled.get(operation, []), self.touched(operation)
        operation = operation.replaced(self.current)
        match operation:
            case Alloc(out=out) if out in self.now:
                self.alloc(operation)
            case If():
                then, orelse = self.block(operation.then, arrays), self.block(operation.orelse, arrays)
                outs = (*operation.outs, *self.renewed(arrays))
                build.add(replace(operation, then=then, orelse=orelse, outs=outs))
            case Loop() if filled and self.in_chunks:
                self.chunks(operation, filled, arrays)
            case Loop():
                self.loop(operation, filled, arrays)
            case Custom():
                build.add(replace(operation, body=self.block(operation.body, ())))
            case _:
                build.add(operation)

    def alloc(self, operation: Alloc) -> None:
        """The array with memory for a few iterations."""
        build, (total, *others) = self.builder, operation.shape
        few = build.const(_START)
        if others:
            width = others[0]
            for other in others[1:]:
                width = build.apply("multiply", width, other)
            one = build.const(1)
            few = build.apply("add", build.apply("floor_divide", few, build.apply("add", width, one)), one)
        known = build.constants.get(total)
        rows = few if known is not None and known > _START else self.smaller(total, few)
        self.total[operation.out], self.few[operation.out] = total, few
        self.others[operation.out] = tuple(others) if operation.workspace is None else None
        build.add(replace(operation, shape=(rows, *others)))

    def renewed(self, arrays: Sequence[Value]) -> list[Value]:
        """New values for the arrays from here on."""
        for array in arrays:
            self.now[array] = Value(array.type, array.name)
        return [self.now[a] for a in arrays]

    def loop(self, loop: Loop, filled: list[Value], arrays: list[Value]) -> None:
        """The loop, which hands the arrays on that grow inside it; those that it fills itself, at every iteration."""
        inits, params = [self.now[a] for a in arrays], self.renewed(arrays)
        test = None if loop.test is None else self.block(loop.test, ())
        body = self.block(loop.body, arrays, lambda: self.grow(filled, loop))
        count, given = len(loop.params), len(loop.body.yields)
        yields = (*body.yields[:count], *body.yields[given:], *body.yields[count:given])
        self.builder.add(
            replace(
                loop,
                params=(*loop.params, *params),
                inits=(*loop.inits, *inits),
                outs=(*loop.outs, *self.renewed(arrays)),
                test=test,
                body=Block(body.operations, yields),
            )
        )

    def grow(self, arrays: Sequence[Value], loop: Loop) -> None:
        for array in arrays:
            assert loop.index is not None and loop.bounds is not None
            self.grow_to(array, iteration_number(self.builder, loop.index, loop.bounds))

    def grow_to(self, array: Value, position: Value) -> None:
        grown = Value(array.type, array.name)
        self.builder.add(Grow(grown, self.now[array], position, span=self.builder.span))
        self.now[array] = grown

    # -- a loop in chunks --------------------------------------------------------------------------------------------

    def chunks(self, loop: Loop, filled: list[Value], arrays: list[Value]) -> None:
        """A loop around the loop, each of whose iterations makes sure that there is memory for many of its own."""
        build = self.builder
        assert loop.bounds is not None
        (start, _, step), total, few = loop.bounds, self.total[filled[0]], self.few[filled[0]]
        for array, *_ in self.groups(filled)[1:]:
            few = self.smaller(few, self.few[array])
        inits = (build.const(0), *loop.inits, *(self.now[a] for a in arrays), build.const(False))
        params = [Value(p.type, p.name) for p in (*_counting(), *loop.params)]
        first, left = Value(INT, "first"), Value(BOOL, "left")
        carried = (*params, *self.renewed(arrays), left)
        before = dict(self.now)
        with build.block() as body:
            most = self.smaller(total, build.apply("add", first, few), "end")
            for group in self.groups(filled):
                self.make_longer(group, most)
            begin, end = (build.apply("add", start, build.apply("multiply", n, step)) for n in (first, most))
            inner = replace(loop, bounds=(begin, end, step), inits=(*params, left))
            outs = self.chunk(inner, [a for a in arrays if a not in filled])
            yields = (*outs[: len(params)], *(self.now[a] for a in arrays), outs[-1], outs[-1])
        self.now = before
        outs = (loop.count or Value(INT, "iterations"), *loop.outs, *self.renewed(arrays), Value(BOOL, "left"))
        done, around = Block(tuple(body), yields), (build.const(0), total, few)
        build.add(Loop(first, around, carried, inits, None, done, outs, leaves=True, span=loop.span))

    def chunk(self, loop: Loop, arrays: list[Value]) -> tuple[Value, ...]:
        """The loop, which also counts its iterations and says whether it was left; arrays grow inside it."""
        build = self.builder
        (iterations,), left, following = _counting(), Value(BOOL, "left"), list[Value]()
        *inits, left_before = loop.inits
        given = (*inits, *(self.now[a] for a in arrays), left_before)
        params = (iterations, *loop.params, *self.renewed(arrays), left)
        body = self.block(loop.body, arrays, lambda: following.append(build.apply("add", iterations, build.const(1))))
        *handed, leaves = body.yields[: len(loop.params) + 1]
        yields = (*following, *handed, *body.yields[len(loop.params) + 1 :], leaves, leaves)
        outs = tuple(Value(p.type, p.name) for p in (iterations, *loop.params))
        outs = (*outs, *self.renewed(arrays), Value(BOOL, "left"))
        done = Block(body.operations, yields)
        build.add(replace(loop, params=params, inits=given, body=done, outs=outs, count=None))
        return outs

    def groups(self, arrays: Sequence[Value]) -> list[list[Value]]:
        """Those together that are equally long: made alike, and made longer by the same loops."""
        found: dict[Any, list[Value]] = {}
        for array in arrays:
            others = self.others[array]
            loops = tuple(loop for loop, filled in self.filled.items() if array in filled)
            found.setdefault(array if others is None else (others, loops), []).append(array)
        return list(found.values())

    def make_longer(self, arrays: Sequence[Value], most: Value) -> None:
        """The condition that they are too short. All have the same length."""
        build = self.builder
        is_short = build.apply("less", build.dim(self.now[arrays[0]], 0), most)
        before = tuple([self.now[a] for a in arrays])
        with build.block() as operations:
            for array in arrays:
                self.grow_to(array, build.dim(self.now[array], 0))
        longer = tuple([self.now[a] for a in arrays])
        outs = tuple(self.renewed(arrays))
        build.branch(is_short, Block(tuple(operations), longer), Block((), before), outs)

    def smaller(self, a: Value, b: Value, name: str = "") -> Value:
        return self.builder.apply("where", self.builder.apply("less", a, b), a, b, name=name)


def _counting() -> tuple[Value]:
    return (Value(INT, "iterations"),)
