"""Activity: which values depend on a chosen input and reach the result. Only those have adjoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Call,
    Copy,
    Custom,
    Function,
    If,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Raise,
    Store,
    Value,
    walk,
)
from srcdiff.ir.types import Array, Stack, is_inexact
from srcdiff.quick_dataclasses import dataclass
from srcdiff.rules import derivative_rule


@dataclass(frozen=True, slots=True)
class Activity:
    """The active values; the memory of an array is represented by its parameter or allocation."""

    values: frozenset[Value]
    sites: dict[Value, Sites]

    def __contains__(self, value: Value) -> bool:
        return value in self.values

    def memory(self, array: Value) -> bool:
        """Whether the memory the reference points to has adjoints."""
        return bool(self.sites.get(array, frozenset((array,))) & self.values)


def activity(
    function: Function, inputs: Iterable[Value], outputs: Iterable[Value], sites: dict[Value, Sites]
) -> Activity:
    operations = list(walk(function.body))
    varied = _Flow(operations, sites, forward=True).run(inputs)
    useful = _Flow(operations, sites, forward=False).run(s for v in outputs for s in sites.get(v, (v,)))
    active = {v for v in varied & useful if is_inexact(v.type)}
    _close_over_choices(operations, sites, active)
    return Activity(frozenset(active), sites)


def _close_over_choices(operations: list[Operation], sites: dict[Value, Sites], active: set[Value]) -> None:
    """A reference that may point to active memory has an adjoint, so all memory that it may point to needs one."""
    choices = [v for o in operations if isinstance(o, If | Loop) for v in (*o.defines(), *_params(o))]
    choices += [o.out for o in operations if isinstance(o, NewStack)]
    groups: dict[Value, list[Sites]] = {}
    for group in {sites[v] for v in choices if isinstance(v.type, Array | Stack) and v in sites}:
        for site in group:
            groups.setdefault(site, []).append(group)
    found = list(active)
    while found:
        for group in groups.pop(found.pop(), ()):
            found += group - active
            active |= group


def _params(operation: Operation) -> tuple[Value, ...]:
    return operation.params if isinstance(operation, Loop) else ()


class _Flow:
    """Marks values along the flow of data, or against it, until nothing changes."""

    def __init__(self, operations: list[Operation], sites: dict[Value, Sites], *, forward: bool) -> None:
        self.sites, self.marked = sites, set[Value]()
        self.forward = forward
        self.step: Callable[[Operation], None] = self.forwards if forward else self.backwards
        self.operations = operations if forward else operations[::-1]
        self.waiting: dict[Value, list[Operation]] = {}
        """Operations that look whether a value is marked."""
        self.passed_on: dict[Value, list[Value]] = {}
        """Values that branches and loops mark as soon as another is marked."""
        self.queue: list[Value] = []
        """Marked values that may mark more."""

    def run(self, start: Iterable[Value]) -> set[Value]:
        for operation in self.operations:
            for source, target in self.flows(operation):
                self.passed_on.setdefault(source, []).append(target)
            for value in self.looked_at(operation):
                for one in {value, *self.memory(value)}:
                    self.waiting.setdefault(one, []).append(operation)
        self.mark(*start)
        for operation in self.operations:
            self.step(operation)
        while self.queue:
            value = self.queue.pop()
            self.mark(*self.passed_on.get(value, ()))
            for operation in self.waiting.get(value, ()):
                self.step(operation)
        return self.marked

    def mark(self, *values: Value) -> None:
        for value in values:
            if value not in self.marked:
                self.marked.add(value)
                self.queue.append(value)

    def flows(self, operation: Operation) -> Iterator[tuple[Value, Value]]:
        """The values that a branch, a loop or a custom rule passes on, as pairs: if one is marked, so is the other."""
        match operation:
            case If():
                for k, out in enumerate(operation.outs):
                    for source in (operation.then.yields[k], operation.orelse.yields[k]):
                        yield from self.flow(source, out)
            case Loop():
                for k, (param, out) in enumerate(zip(operation.params, operation.outs, strict=True)):
                    for source in (operation.inits[k], operation.body.yields[k]):
                        yield from self.flow(source, param)
                        yield from self.flow(source, out)
                    if not self.forward:
                        yield out, param
            case Custom() if self.forward:
                for param, argument in zip(operation.params, operation.args, strict=True):
                    yield from self.flow(argument, param)

    def flow(self, source: Value, out: Value) -> Iterator[tuple[Value, Value]]:
        if not self.forward:
            yield out, source
        elif not isinstance(out.type, Array):
            yield source, out

    def looked_at(self, operation: Operation) -> Iterable[Value]:
        """The values, and the references to memory, whose marks decide what an operation marks otherwise."""
        match operation:
            case If() | Loop():
                return ()
            case _ if self.forward:
                return operation.uses()
            case Store():
                return (operation.array,)
            case Call():
                return (*operation.outs, *operation.written)
        return operation.defines()

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def holds(self, value: Value) -> bool:
        if isinstance(value.type, Array):
            return bool(self.memory(value) & self.marked)
        return value in self.marked

    def forwards(self, operation: Operation) -> None:
        match operation:
            case Apply():
                if is_inexact(operation.out.type) and any(
                    a in self.marked for a in differentiable_arguments(operation)
                ):
                    self.mark(operation.out)
            case Load():
                if is_inexact(operation.out.type) and self.holds(operation.array):
                    self.mark(operation.out)
            case Store():
                if operation.value in self.marked and is_inexact(operation.array.type):
                    self.mark(*self.memory(operation.array))
            case Alloc():
                if operation.fill in self.marked and is_inexact(operation.out.type):
                    self.mark(operation.out)
            case Copy():
                if self.holds(operation.array):
                    self.mark(operation.out)
            case Call() | Custom() | Library():
                if any(self.holds(a) for a in operation.args):
                    self.mark(*(v for v in operation.outs if is_inexact(v.type) and not isinstance(v.type, Array)))
                    self.mark(*(s for v in operation.outs if isinstance(v.type, Array) for s in self.memory(v)))
                    self.mark(*self.written(operation))

    def written(self, operation: Call | Custom | Library) -> set[Value]:
        """The memory of floats that a call may write."""
        if not isinstance(operation, Call):
            return set()
        arrays = [a for a in operation.written if isinstance(a.type, Array) and is_inexact(a.type)]
        return {site for a in arrays for site in self.memory(a)}

    def backwards(self, operation: Operation) -> None:
        match operation:
            case Apply():
                if operation.out in self.marked:
                    self.mark(*differentiable_arguments(operation))
            case Load():
                if operation.out in self.marked:
                    self.mark(*self.memory(operation.array))
            case Store():
                if self.holds(operation.array):
                    self.mark(operation.value)
            case Alloc():
                if operation.out in self.marked and operation.fill is not None:
                    self.mark(operation.fill)
            case Copy():
                if operation.out in self.marked:
                    self.mark(*self.memory(operation.array))
            case Call() | Custom() | Library():
                if any(self.holds(v) for v in operation.outs) or self.written(operation) & self.marked:
                    for argument in operation.args:
                        if isinstance(argument.type, Array):
                            self.mark(*self.memory(argument))
                        elif is_inexact(argument.type):
                            self.mark(argument)


class _Influence(_Flow):
    """Marks values that influence the result, also through integers, indices and conditions."""

    def __init__(self, operations: list[Operation], sites: dict[Value, Sites]) -> None:
        super().__init__(operations, sites, forward=False)

        self.inside = {o: [i for b in o.blocks() for i in walk(b)] for o in operations if isinstance(o, If | Loop)}

    def backwards(self, operation: Operation) -> None:
        if isinstance(operation, If | Loop):
            if any(map(self.has_influence, (operation, *self.inside[operation]))):
                self.mark(*self.deciding(operation))
        elif self.has_influence(operation):
            for value in operation.uses():
                self.mark(*(self.memory(value) if isinstance(value.type, Array) else (value,)))

    def looked_at(self, operation: Operation) -> Iterable[Value]:
        """Branches and loops look at what all that is inside them looks at."""
        if not isinstance(operation, If | Loop):
            return super().looked_at(operation)
        return [
            v
            for o in (operation, *self.inside[operation])
            for v in (*o.defines(), *super(_Influence, self).looked_at(o))
        ]

    def has_influence(self, operation: Operation) -> bool:
        match operation:
            case Raise():
                return True
            case Store():
                return self.holds(operation.array)
            case Call() if self.written(operation) & self.marked:
                return True
        return any(self.holds(v) for v in operation.defines())

    def deciding(self, operation: If | Loop) -> tuple[Value, ...]:
        """The values that control a branch or a loop."""
        if isinstance(operation, If):
            return (operation.condition,)
        tests = () if operation.test is None else operation.test.yields
        return (*(operation.bounds or ()), *tests, *operation.body.yields[len(operation.params) :])


def influential_values(function: Function, outputs: Iterable[Value], sites: dict[Value, Sites]) -> set[Value]:
    """The values on which the outputs depend in any way, with or without a derivative."""
    start = [s for v in outputs for s in sites.get(v, (v,))]
    return _Influence(list(walk(function.body)), sites).run(start)


def differentiable_arguments(operation: Apply) -> list[Value]:
    """The arguments that the primitive's derivative is not zero for everywhere; a primitive without a rule has all."""
    rule = derivative_rule(operation.primitive)
    if rule is None:
        return [a for a in operation.args if is_inexact(a.type)]
    moving = {*rule.partials, *rule.refused}
    return [a for name, a in zip(rule.parameters, operation.args, strict=True) if name in moving and is_inexact(a.type)]


def useful_values(function: Function, outputs: Iterable[Value], sites: dict[Value, Sites]) -> set[Value]:
    """The values on which the outputs depend."""
    flow = _Flow(list(walk(function.body)), sites, forward=False)
    return flow.run(s for v in outputs for s in sites.get(v, (v,)))


def varied_values(function: Function, inputs: Iterable[Value], sites: dict[Value, Sites]) -> set[Value]:
    """The values that depend on the inputs."""
    return _Flow(list(walk(function.body)), sites, forward=True).run(inputs)
