"""Values of the forward sweep in the reverse sweep: read where they were kept, or computed again, as the plan says.

Every block of the program has a mirror block in the reverse sweep. A value is recovered in the mirror of the block that
defines it, once, when it is first asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from srcdiff.analyses.saved_values import Formula, Plan, Term
from srcdiff.analyses.structure import Structure
from srcdiff.diagnostics import InternalError
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Index, Loop, Operation, Pop, Value
from srcdiff.ir.types import Scalar
from srcdiff.ir.words import own_name
from srcdiff.quick_dataclasses import dataclass

Frames = Mapping[Block, Sequence[tuple[Value, Value]]]
"""The kept values of each block of a recursive function, with their stacks."""


@dataclass(eq=False, slots=True)
class Mirror:
    """The mirror of a block, while it is written."""

    block: Block
    parent: Mirror | None
    loop: MirrorLoop | None = None
    operations: list[Operation] = field(default_factory=list)
    adjoints: dict[Value, Value] = field(default_factory=dict)
    known: dict[Value, Value] = field(default_factory=dict)
    """Values of the forward sweep that have been recovered: read or recomputed."""


@dataclass(eq=False, slots=True)
class MirrorLoop:
    """The values that a mirrored loop carries besides its own adjoints, collected while its body is written."""

    loop: Loop
    index: Value
    captured: dict[Value, Value] = field(default_factory=dict)
    restored: dict[int, Value] = field(default_factory=dict)
    iteration: Value | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of a kept value: an array indexed by the iterations of the enclosing loops, or a stack."""

    where: Value
    loops: tuple[Loop, ...] | None
    start: Value | None = None
    """For what a loop hands on, and the iteration before has put there: what the loop starts from."""


class RecoveredValues:
    """Recovers values. Without a plan it only notes which values are asked for, and where."""

    def __init__(
        self, structure: Structure, plan: Plan | None, storage: dict[Value, Storage], lifted: dict[Value, Value]
    ) -> None:
        self.structure, self.plan, self.storage, self.lifted = structure, plan, storage, lifted
        self.builder = Builder()
        self.builder.constants.update(structure.constants)
        self.demands: dict[Value, set[int]] = {}
        self.position = 10**9
        self.had_again: set[Value] = set()
        self.repeated: dict[Value, Value] = {}
        """Recomputed values, by their definitions."""
        self.frames: Frames = {}
        self.top = Mirror(structure.top, None)

    @contextlib.contextmanager
    def into(self, mirror: Mirror) -> Iterator[None]:
        before = self.builder.operations
        self.builder.operations = mirror.operations
        try:
            yield
        finally:
            self.builder.operations = before

    def mirror_of(self, block: Block, mirror: Mirror) -> Mirror:
        found: Mirror | None = mirror
        while found is not None and found.block is not block:
            found = found.parent
        if found is None:
            raise InternalError("a value is asked for outside of the block that defines it")
        return found

    def value(self, value: Value, mirror: Mirror) -> Value:
        """A value of the forward sweep, as it was."""
        if value in self.structure.constants:
            with self.into(mirror):
                return self.builder.const(self.structure.constants[value], value.scalar)
        if self.structure.is_at_hand(value):
            return self.top.known.get(value, value)
        at = self.mirror_of(self.structure.home[value], mirror)
        if value not in at.known:
            self.have_again(value, at)
        elif self.plan is None:
            self.demands[value].add(self.position)
        return at.known[value]

    def have_again(self, value: Value, at: Mirror) -> None:
        """Have a value again in the mirror of its block; first what it is computed from, which may be a long chain."""
        chain = [self.having(value, at)]
        while chain:
            value, at, operands, found = chain[-1]
            for operand in operands:
                home = self.structure.home.get(operand)
                is_there = operand in self.structure.constants or self.structure.is_at_hand(operand)
                if not is_there and home is not None and operand not in (below := self.mirror_of(home, at)).known:
                    chain.append(self.having(operand, below))
                    break
                found[operand] = self.value(operand, at)
            else:
                with self.into(at):
                    at.known[value] = self.again(value, at, found)
                    self.had_again.add(at.known[value])
                chain.pop()

    def having(self, value: Value, at: Mirror) -> tuple[Value, Mirror, Iterator[Value], dict[Value, Value]]:
        """A value to recover, its operands, and the results for these so far."""
        self.demands.setdefault(value, set()).add(self.position)
        decision = None if self.plan is None else self.plan.decisions.get(value)
        operation = decision.operation if decision is not None and decision.how == "again" else None
        operands = () if operation is None or isinstance(operation, Formula) else operation.uses()
        return value, at, iter(operands), {}

    def again(self, value: Value, at: Mirror, found: Mapping[Value, Value]) -> Value:
        """The recovered value, from the results `found` for its operands."""
        loop = at.loop
        if loop is not None and value is loop.loop.index:
            return self.index_again(loop, at)
        if self.plan is None:
            return Value(value.type, value.name)
        decision = self.plan.decisions[value]
        match decision.how:
            case "keep":
                return self.fetch(value, at)
            case "again":
                assert decision.operation is not None
                return self.recomputed(decision.operation, value, at, found)
            case "yielded":
                assert loop is not None and decision.slot is not None
                return self.restored(loop, decision.slot)
            case "undone":
                assert loop is not None and decision.slot is not None and decision.added is not None
                after, added = self.restored(loop, decision.slot), self.by_formula(decision.added, at)
                return self.builder.apply("subtract", after, added, name=value.name)
        raise InternalError(f"no way to recompute a value: {decision}")

    def index_again(self, loop: MirrorLoop, at: Mirror) -> Value:
        if loop.loop.counted:
            return loop.index
        assert loop.loop.bounds is not None and loop.loop.index is not None
        start, _, step = (self.value(b, at) for b in loop.loop.bounds)
        distance = self.builder.apply("multiply", loop.index, step)
        return self.builder.apply("add", start, distance, name=own_name(loop.loop.index))

    def recomputed(
        self, operation: Operation | Formula, value: Value, at: Mirror, found: Mapping[Value, Value]
    ) -> Value:
        if isinstance(operation, Formula):
            out = self.by_formula(operation, at)
            out.name = out.name or value.name
            return out
        fresh = Value(value.type, value.name)
        again = operation.replaced(lambda v: found[v] if v in found else self.value(v, at))
        self.builder.add(replace(again, out=fresh))  # type: ignore[call-arg]
        if isinstance(operation, Apply):
            self.repeated[fresh] = value
        return fresh

    def by_formula(self, formula: Term, at: Mirror) -> Value:
        match formula:
            case Formula():
                return self.builder.apply(formula.primitive, *(self.by_formula(a, at) for a in formula.args))
            case Value():
                return self.value(formula, at)
        return self.builder.const(formula)

    def restored(self, loop: MirrorLoop, slot: int) -> Value:
        """The value that the loop yielded in this iteration. The mirrored loop carries it backwards."""
        if slot not in loop.restored:
            param = loop.loop.params[slot]
            loop.restored[slot] = Value(param.type, param.name)
        return loop.restored[slot]

    def fetch(self, value: Value, at: Mirror) -> Value:
        if value in self.lifted:
            return self.lifted[value]
        storage = self.storage[value]
        if storage.loops is None:
            out = Value(value.type, value.name)
            self.builder.add(Pop(out, storage.where))
            return out
        iterations = [
            self.trip_count(loop, at) if value in loop.outs else self.iteration(loop, at) for loop in storage.loops
        ]
        if isinstance(value.type, Scalar):
            return self.builder.load(storage.where, tuple(iterations), value.name)
        if storage.start is None:
            return self.builder.view(storage.where, tuple(Index(t) for t in iterations), value.name)
        return self.from_iteration_before(value, storage, iterations, at)

    def take_frame(self, mirror: Mirror) -> None:
        """Take off the stacks what the block has put there, the last value first."""
        for value, stack in reversed(self.frames.get(mirror.block, ())):
            out = Value(value.type, value.name)
            self.builder.add(Pop(out, stack))
            mirror.known[value] = out
            self.had_again.add(out)

    def from_iteration_before(self, value: Value, storage: Storage, iterations: list[Value], at: Mirror) -> Value:
        """The value that the loop carried: the row of the previous iteration, or the value before the loop."""
        assert storage.start is not None
        start, out = self.value(storage.start, at), Value(value.type, value.name)
        is_first = self.builder.apply("equal", iterations[-1], self.builder.const(0))
        with self.builder.block() as operations:
            iterations[-1] = self.builder.apply("subtract", iterations[-1], self.builder.const(1))
            row = self.builder.view(storage.where, tuple(Index(t) for t in iterations), value.name)
        self.builder.branch(is_first, Block((), (start,)), Block(tuple(operations), (row,)), (out,))
        return out

    def iteration(self, loop: Loop, at: Mirror) -> Value:
        """The number of the loop's iteration, counted from zero."""
        mirror: Mirror | None = at
        while mirror is not None and not (mirror.loop is not None and mirror.loop.loop is loop):
            mirror = mirror.parent
        assert mirror is not None and mirror.loop is not None
        if mirror.loop.iteration is None:
            with self.into(mirror):
                mirror.loop.iteration = mirror.loop.index  # a loop with an early exit has counted its iterations
                if loop.counted:
                    bounds = tuple(self.value(b, mirror) for b in loop.bounds or ())
                    mirror.loop.iteration = iteration_number(self.builder, mirror.loop.index, bounds)
        return mirror.loop.iteration

    def trip_count(self, loop: Loop, at: Mirror) -> Value:
        """How many iterations a counted loop made."""
        return self.builder.apply("range_length", *(self.value(b, at) for b in loop.bounds or ()))


def iteration_number(builder: Builder, index: Value, bounds: tuple[Value, ...]) -> Value:
    """Which iteration of `range(start, stop, step)` the index belongs to."""
    start, _, step = bounds
    known = builder.constants.get(step)
    if known == -1:
        return builder.apply("subtract", start, index)
    offset = builder.apply("subtract", index, start)
    return offset if known == 1 else builder.apply("floor_divide", offset, step)
