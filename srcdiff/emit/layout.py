"""Which operations become statements, which stand inside expressions, and where each value is alive."""

from __future__ import annotations

from dataclasses import dataclass, field

from srcdiff.analyses.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Call,
    Const,
    Custom,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    Store,
    Value,
    walk,
)

_LONGEST = 12  # operations in one expression; longer ones get a name in between


@dataclass(slots=True)
class Layout:
    """Positions count statements in order of text; an interval runs from the definition to the last use."""

    inlined: dict[Value, Operation] = field(default_factory=dict)
    intervals: dict[Value, tuple[float, float]] = field(default_factory=dict)
    positions: dict[Operation, tuple[int, int]] = field(default_factory=dict)
    """Where an operation starts and, if it has blocks, ends."""
    used: set[Value] = field(default_factory=set)


def lay_out(function: Function) -> Layout:
    layout = Layout()
    _Inline(function, layout).run()
    _Intervals(function, layout).run()
    return layout


class _Inline:
    """Unnamed values that are used once, in the same block, stand where they are used."""

    def __init__(self, function: Function, layout: Layout) -> None:
        self.function, self.layout = function, layout
        self.sites: dict[Value, Sites] = points_to(function)
        self.uses: dict[Value, int] = {}
        self.size: dict[Value, int] = {}

    def run(self) -> None:
        self.count(self.function.body)
        self.block(self.function.body)

    def count(self, block: Block) -> None:
        for operation in block.operations:
            for value in operation.uses():
                self.uses[value] = self.uses.get(value, 0) + 1
            for inner in operation.blocks():
                self.count(inner)
        for value in block.yields:
            self.uses[value] = self.uses.get(value, 0) + 1

    def block(self, block: Block) -> None:
        candidates: dict[Value, tuple[int, Operation]] = {}
        pending_loads: dict[Value, set[Value]] = {}
        for k, operation in enumerate(block.operations):
            for inner in operation.blocks():
                self.block(inner)
            used = set(operation.uses())
            mine: set[Value] = set()
            for value in used & candidates.keys():
                self.layout.inlined[value] = candidates.pop(value)[1]
                mine |= pending_loads.pop(value, set())
            written = self.writes(operation)
            if written is None:
                candidates = {v: c for v, c in candidates.items() if v not in pending_loads}
                pending_loads = {}
            elif written:
                for value in [v for v, sites in pending_loads.items() if sites & written]:
                    candidates.pop(value)
                    pending_loads.pop(value)
            if isinstance(operation, Const):
                self.layout.inlined[operation.out] = operation
            elif isinstance(operation, Dim) and not operation.out.name:
                self.layout.inlined[operation.out] = operation
            elif self.may_stand_inside(operation):
                out = operation.defines()[0]
                if isinstance(operation, Load):
                    mine |= self.sites.get(operation.array, frozenset((operation.array,)))
                candidates[out] = (k, operation)
                if mine:
                    pending_loads[out] = mine
        for value in block.yields:
            if value in candidates:
                self.layout.inlined[value] = candidates.pop(value)[1]

    def writes(self, operation: Operation) -> set[Value] | None:
        """The memory it may write; None if that is not known."""
        if isinstance(operation, Store):
            return set(self.sites.get(operation.array, frozenset((operation.array,))))
        if isinstance(operation, Call):
            return None
        found: set[Value] = set()
        for inner in operation.blocks():
            if any(isinstance(o, Call) for o in walk(inner)):
                return None
            found |= written_sites(inner, self.sites)
        return found

    def may_stand_inside(self, operation: Operation) -> bool:
        if not isinstance(operation, Apply | Load):
            return False
        out = operation.out
        if out.name or self.uses.get(out, 0) != 1:
            return False
        size = 1 + sum(self.size.get(v, 0) for v in operation.uses() if v in self.layout.inlined)
        self.size[out] = size
        return size <= _LONGEST


class _Intervals:
    def __init__(self, function: Function, layout: Layout) -> None:
        self.function, self.layout = function, layout
        self.clock = 0
        self.defined: dict[Value, float] = {}
        self.last: dict[Value, float] = {}
        self.loops: list[tuple[int, list[Value]]] = []

    def run(self) -> None:
        for param in self.function.params:
            self.defined[param] = 0
        self.block(self.function.body)
        for value, start in self.defined.items():
            self.layout.intervals[value] = (start, max(self.last.get(value, start), start + 0.5))
        self.layout.used = set(self.last)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def use(self, value: Value, position: float) -> None:
        if value in self.layout.inlined:
            for operand in self.layout.inlined[value].uses():
                self.use(operand, position)
            return
        self.last[value] = max(self.last.get(value, 0), position)
        start = self.defined.get(value, 0)
        for loop_start, inside in self.loops:
            if start < loop_start:
                inside.append(value)  # it must live until the loop's last turn

    def block(self, block: Block) -> None:
        for operation in block.operations:
            self.operation(operation)
        end = self.tick()
        for value in block.yields:
            self.use(value, end)

    def operation(self, operation: Operation) -> None:
        if operation.defines() and all(v in self.layout.inlined for v in operation.defines()):
            return
        start = self.tick()
        for value in operation.inits if isinstance(operation, Loop) else operation.uses():
            self.use(value, start)
        if isinstance(operation, Custom):
            for param in operation.params:
                self.defined[param] = start
        if isinstance(operation, Loop):
            self.loop(operation, start)
        else:
            for inner in operation.blocks():
                self.block(inner)
        end = self.tick() if operation.blocks() else start
        self.layout.positions[operation] = (start, end)
        for value in operation.defines():
            self.defined[value] = end
        if isinstance(operation, Loop) and operation.count is not None:
            self.defined[operation.count] = start

    def loop(self, operation: Loop, start: int) -> None:
        for value in operation.inner():
            self.defined[value] = start
        evaluated = self.tick()  # the variables are set before the range is evaluated
        for value in operation.bounds or ():
            self.use(value, evaluated)
        inside: list[Value] = []
        self.loops.append((start, inside))
        for inner in operation.blocks():
            self.block(inner)
        self.loops.pop()
        end = self.tick()
        for value in inside:
            self.last[value] = max(self.last[value], end)
        if operation.count is not None:
            self.last[operation.count] = max(self.last.get(operation.count, 0), end)
