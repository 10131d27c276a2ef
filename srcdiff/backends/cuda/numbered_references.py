"""Numbered references: the array that a name referred to, stored as numbers: GPU threads have no lists of arrays.

kept.push(row)                    =>         kept_which.push(1); kept_place.push(i)         # row is a[i] here, or b
row = kept.pop()                             i = kept_place.pop()
                                             row = a[i] if kept_which.pop() == 1 else b

A name may refer to arrays that exist throughout, to arrays that a loop allocates, which are numbered, and to parts of
both. The number of the source and the numbers within it accompany the name through branches and loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Again,
    Alloc,
    Block,
    Copy,
    Function,
    Grow,
    If,
    Item,
    Loop,
    NewStack,
    Operation,
    Peek,
    Pop,
    Push,
    Value,
    View,
    changed,
    walk,
)
from srcdiff.ir.types import INT, Array, Stack
from srcdiff.quick_dataclasses import dataclass

Numbers = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of an array: an allocation or a parameter, and views of it."""

    root: Value
    views: tuple[View, ...]


def references_as_numbers(function: Function, numbers: Mapping[Value, Value]) -> Function:
    """The function with stacks of numbers for its stacks of arrays, where these can be found again.

    `numbers` are those of arrays that loops allocate.
    """
    lowering = _Lowering(function, numbers)
    if not lowering.stacks:
        return function
    return replace(function, body=lowering.block(function.body))


class _Lowering:
    def __init__(self, function: Function, numbers: Mapping[Value, Value]) -> None:
        self.numbers, self.build = numbers, Builder()
        self.params = set(function.params)
        self.definition = {v: o for o in walk(function.body) for v in o.defines()}
        loops = [o for o in walk(function.body) if isinstance(o, Loop)]
        self.given = {p: (loop, k) for loop in loops for k, p in enumerate(loop.params)}
        pushes: dict[Value, list[Push]] = {}
        unknown: set[Value] = set()
        for operation in walk(function.body):
            if isinstance(operation, Push) and isinstance(operation.value.type, Array):
                pushes.setdefault(operation.stack, []).append(operation)
            elif isinstance(operation, Peek):
                unknown.add(operation.stack)
        self.sources: dict[Value, list[_Source]] = {}
        """For each stack, the possible sources of its arrays; the index in the list is stored."""
        self.carried: dict[Value, list[_Source]] = {}
        """The same for arrays that branches and loops yield."""
        for stack, found in pushes.items():
            if isinstance(self.definition.get(stack), NewStack) and stack not in unknown:
                self.trace(stack, [p.value for p in found])
        self.stacks: dict[Value, list[Value]] = {s: [] for s in self.sources}
        self.beside: dict[Value, Numbers] = {}
        """The numbers that accompany an array: the index of its source, and the numbers within it."""
        self.known: dict[Value, Value] = {}

    # -- where arrays come from --------------------------------------------------------------------------------------

    def trace(self, stack: Value, values: Sequence[Value]) -> None:
        """All that these may be; nothing is noted if something is not known."""
        seen: set[Value] = set()
        sources: dict[tuple[Value, tuple[View, ...]], _Source] = {}
        work = list(values)
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            further = self.passed_on(value)
            if further is not None:
                work += further
                continue
            source = self.source(value, ())
            if source is None:
                return
            sources[source.root, source.views] = source
        self.sources[stack] = list(sources.values())
        for value in seen:
            if self.passed_on(value) is not None:
                known = self.carried.setdefault(value, [])
                known += [s for s in sources.values() if s not in known]

    def passed_on(self, value: Value) -> list[Value] | None:
        """The array that a branch or a loop yields."""
        if value in self.given:
            loop, k = self.given[value]
            return [loop.inits[k], loop.body.yields[k]]
        operation = self.definition.get(value)
        match operation:
            case Loop():
                return [operation.params[operation.outs.index(value)]]
            case If():
                k = operation.outs.index(value)
                return [operation.then.yields[k], operation.orelse.yields[k]]
            case Grow():
                return [operation.array]
        return None

    def source(self, value: Value, views: tuple[View, ...]) -> _Source | None:
        operation = self.definition.get(value)
        if value in self.params or isinstance(operation, Alloc | Copy):
            return _Source(value, views)
        if isinstance(operation, View):
            return self.source(operation.array, (operation, *views))
        return None

    # -- writing -----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Block:
        with self.build.block() as operations:
            for operation in block.operations:
                self.build.span = operation.span
                self.operation(operation.replaced(self.resolve))
        return changed(block, operations=tuple(operations), yields=tuple(self.resolve(y) for y in block.yields))

    def resolve(self, value: Value) -> Value:
        return self.known.get(value, value)

    def operation(self, operation: Operation) -> None:
        build = self.build
        match operation:
            case NewStack(out=out) if out in self.stacks:
                for k in range(1 + self.most_numbers(self.sources[out])):
                    stack = Value(Stack(INT), f"{out.name}_{'which' if k == 0 else 'place'}")
                    self.stacks[out].append(stack)
                    build.add(replace(operation, out=stack, workspace=None))
            case Push(stack=stack, value=value) if stack in self.stacks:
                numbers = self.numbers_of(value, self.sources[stack])
                for one, number in zip(self.stacks[stack], numbers, strict=True):
                    build.add(replace(operation, stack=one, value=number))
            case Pop(out=out, stack=stack) if stack in self.stacks:
                numbers = tuple(Value(INT) for _ in self.stacks[stack])
                for one, number in zip(self.stacks[stack], numbers, strict=True):
                    build.add(Pop(number, one, span=operation.span))
                self.known[out] = self.found(self.sources[stack], numbers, operation)
            case Grow(out=out, array=array) if out in self.carried:
                self.beside[out] = self.along(array, out)
                build.add(operation)
            case Loop():
                self.loop(operation)
            case If():
                self.branch(operation)
            case _:
                build.add(operation.rebuilt(self.block))

    def most_numbers(self, sources: Sequence[_Source]) -> int:
        return max(len(self.own_numbers(s)) for s in sources)

    def own_numbers(self, source: _Source) -> list[Value | int]:
        """The properties that distinguish arrays of one origin: number, lengths by axis, and the numbers in views."""
        found: list[Value | int] = []
        if source.root in self.numbers:
            found += [self.numbers[source.root], *range(source.root.array.rank)]
        return [*found, *(p for view in source.views for item in view.items for p in item.parts())]

    def numbers_of(self, value: Value, sources: Sequence[_Source]) -> Numbers:
        """Which of the sources it is, and the numbers of that."""
        build = self.build
        count = 1 + self.most_numbers(sources)
        if value in self.beside:  # among the sources that it may be; the others are counted behind them
            return self.renumbered(self.beside[value], self.carried[value], sources, count)
        source = self.source(value, ())
        assert source is not None
        found = [build.const(sources.index(source))]
        own = self.own_numbers(source)
        found += [build.dim(source.root, x) if isinstance(x, int) else self.resolve(x) for x in own]
        return (*found, *(build.const(0) for _ in range(count - len(found))))

    def renumbered(self, numbers: Numbers, old: Sequence[_Source], new: Sequence[_Source], count: int) -> Numbers:
        """The place in another list of sources."""
        build = self.build
        which = numbers[0]
        if list(old) != list(new):
            which = build.const(0)
            for k, source in enumerate(old):
                if source in new:
                    is_this = build.apply("equal", numbers[0], build.const(k))
                    which = build.apply("where", is_this, build.const(new.index(source)), which)
        padded = (*numbers[1:], *(build.const(0) for _ in range(count)))[: count - 1]
        return (which, *padded)

    def found(self, sources: Sequence[_Source], numbers: Numbers, asks: Operation) -> Value:
        """The array that the numbers refer to."""
        build, (source, *others) = self.build, sources
        if not others:
            return self.rebuilt(source, numbers[1:], asks)
        k = build.apply("equal", numbers[0], build.const(0))
        with build.block() as then:
            first = self.rebuilt(source, numbers[1:], asks)
        with build.block() as orelse:
            rest = (build.apply("subtract", numbers[0], build.const(1)), *numbers[1:])
            second = self.found(others, rest, asks)
        out = Value(first.type, first.name)
        build.branch(k, Block(tuple(then), (first,)), Block(tuple(orelse), (second,)), (out,))
        return out

    def rebuilt(self, source: _Source, numbers: Numbers, asks: Operation) -> Value:
        build, left = self.build, iter(numbers)
        array = source.root
        if source.root in self.numbers:
            number, *shape = (next(left) for _ in range(1 + source.root.array.rank))
            array = Value(source.root.type, source.root.name)
            build.add(Again(array, source.root, number, tuple(shape), span=asks.span))
        for view in source.views:
            items: list[Item] = []
            for item in view.items:
                parts = {p: next(left) for p in item.parts()}
                items.append(item.replaced(lambda v, parts=parts: parts.get(v, v)))  # type: ignore[misc]
            array = build.view(array, tuple(items), view.out.name)
        return array

    # -- along with arrays -------------------------------------------------------------------------------------------

    def tracked(self, values: Sequence[Value]) -> list[int]:
        return [k for k, v in enumerate(values) if v in self.carried]

    def new_numbers(self, value: Value) -> Numbers:
        count = 1 + self.most_numbers(self.carried[value])
        self.beside[value] = tuple(Value(INT) for _ in range(count))
        return self.beside[value]

    def along(self, value: Value, like: Value) -> Numbers:
        """The numbers that accompany a value with a new name."""
        return self.numbers_of(value, self.carried[like])

    def branch(self, operation: If) -> None:
        places = self.tracked(operation.outs)
        sides = []
        for side in (operation.then, operation.orelse):
            with self.build.block() as operations:
                written = self.block(side)
                self.build.operations += written.operations
                more = [n for k in places for n in self.along(written.yields[k], operation.outs[k])]
            sides.append(Block(tuple(operations), (*written.yields, *more)))
        outs = [n for k in places for n in self.new_numbers(operation.outs[k])]
        self.build.add(replace(operation, then=sides[0], orelse=sides[1], outs=(*operation.outs, *outs)))

    def loop(self, operation: Loop) -> None:
        places = self.tracked(operation.params)
        inits = [n for k in places for n in self.along(operation.inits[k], operation.params[k])]
        params = [n for k in places for n in self.new_numbers(operation.params[k])]
        test = None if operation.test is None else self.block(operation.test)
        with self.build.block() as operations:
            written = self.block(operation.body)
            self.build.operations += written.operations
            more = [n for k in places for n in self.along(written.yields[k], operation.params[k])]
        count = len(operation.params)
        yields = (*written.yields[:count], *more, *written.yields[count:])
        outs: list[Value] = []
        for k in places:
            out = operation.outs[k]
            self.carried.setdefault(out, self.carried[operation.params[k]])
            self.beside[out] = tuple(Value(INT) for _ in self.beside[operation.params[k]])
            outs += self.beside[out]
        self.build.add(
            replace(
                operation,
                params=(*operation.params, *params),
                inits=(*operation.inits, *inits),
                outs=(*operation.outs, *outs),
                test=test,
                body=Block(tuple(operations), yields),
            )
        )
