"""A number that the last of some iterations has decided is computed again from that iteration, and has its derivative
there.

for j in range(n):                           last = -1
    d = distance(x, y[j])                    for j in range(n):
    if d < closest:                              d = distance(x, y[j])
        closest = d               =>             if d < closest:
                                                     closest, last = d, j
                                             if last != -1:
                                                 closest = distance(x, y[last])

The loop itself has no derivative then: the reverse sweep visits one iteration, and nothing is kept for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.analyses.activity import Activity, activity
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Comment,
    Const,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    References,
    Value,
    changed,
    substituted,
    use_counts,
    walk,
)
from srcdiff.ir.types import BOOL, INT, Array, Scalar, is_float
from srcdiff.quick_dataclasses import dataclass

_PURE = (Apply, Const, Dim, Load, References, If, Loop)


def differentiate_chosen_iterations(function: Function, inputs: Iterable[Value]) -> Function:
    """The function with what depends on the inputs, and one iteration decides, computed behind the loop."""
    if not any(isinstance(o, Loop) for o in walk(function.body)):
        return function
    inputs = list(inputs)
    outputs = [*function.body.yields, *(p for p in function.params if isinstance(p.type, Array))]
    active = activity(function, inputs, outputs, points_to(function))
    constants = {o.out: o.value for o in walk(function.body) if isinstance(o, Const)}
    return changed(function, body=_Choosing(active, set(inputs), constants).block(function.body))


@dataclass(frozen=True, slots=True)
class _Choice:
    """The decision whether an iteration replaces a carried number: a branch or a `where`, and the replacing side."""

    by: If | Apply
    side: int
    slots: tuple[int, ...]
    """Places among the loop's parameters."""
    given: tuple[Value, ...]
    """Their new values."""
    operations: tuple[Operation, ...]
    """The operations that compute all of these, in text order."""


class _Choosing:
    def __init__(self, active: Activity, stay: set[Value], constants: dict[Value, object]) -> None:
        self.active, self.stay, self.constants = active, stay, constants

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        known: dict[Value, Value] = {}
        for operation in block.operations:
            operation = operation.rebuilt(self.block)
            choice = self.choice(operation) if isinstance(operation, Loop) else None
            if isinstance(operation, Loop) and choice is not None:
                self.write(operation, choice, operations, known)
            else:
                operations.append(operation)
        made = changed(block, operations=tuple(operations))
        return substituted(made, lambda v: known.get(v, v)) if known else made

    # -- which loops -------------------------------------------------------------------------------------------------

    def choice(self, loop: Loop) -> _Choice | None:
        if not loop.counted or loop.index is None:
            return None
        if any(not isinstance(o, (*_PURE, Comment)) for o in walk(loop.body)):
            return None  # an iteration that writes something cannot be made again
        for operation in loop.body.operations:
            if isinstance(operation, If) or (isinstance(operation, Apply) and operation.primitive == "where"):
                for side in (0, 1):
                    found = self.choice_by(operation, side, loop)
                    if found is not None:
                        return found
        return None

    def choice_by(self, decision: If | Apply, side: int, loop: Loop) -> _Choice | None:
        """The values that this side of a decision gives the loop's numbers. The other side leaves them unchanged."""
        sides = [b.yields for b in decision.blocks()] if isinstance(decision, If) else [(a,) for a in decision.args[1:]]
        inside = decision.blocks()[side].operations if isinstance(decision, If) else ()
        slots, given = list[int](), list[Value]()
        for slot, value in enumerate(loop.body.yields):
            place = decision.defines().index(value) if value in decision.defines() else None
            if place is None or sides[1 - side][place] is not loop.params[slot]:
                continue
            if self.is_differentiated(loop, slot, sides[side][place]) and self.is_only_compared(loop, slot):
                slots.append(slot)
                given.append(sides[side][place])
        operations = _computing(given, [*loop.body.operations, *inside], decision)
        read = {v for o in operations for v in _read(o)}.union(given)
        if not slots or not read.isdisjoint(loop.params):
            return None
        return _Choice(decision, side, tuple(slots), tuple(given), operations)

    def is_differentiated(self, loop: Loop, slot: int, given: Value) -> bool:
        out = loop.outs[slot]
        return (
            isinstance(out.type, Scalar)
            and is_float(out.type)
            and given.type == out.type
            and given in self.active
            and out in self.active
            and out not in self.stay
        )

    def is_only_compared(self, loop: Loop, slot: int) -> bool:
        """Whether iterations do nothing with the number but compare it, and hand it on."""
        param = loop.params[slot]
        compared = [o.args.count(param) for o in walk(loop.body) if isinstance(o, Apply) and o.out.type == BOOL]
        uses = use_counts(loop.body)
        return uses[param] == sum(compared) + 1 and uses[loop.body.yields[slot]] == 1

    # -- how it is written -------------------------------------------------------------------------------------------

    def write(self, loop: Loop, choice: _Choice, into: list[Operation], known: dict[Value, Value]) -> None:
        """The loop, which notes the last iteration that was chosen, and that iteration once more."""
        assert loop.index is not None and loop.bounds is not None
        builder = Builder()
        builder.constants, builder.operations = dict(self.constants), into
        none = builder.apply("subtract", loop.bounds[0], loop.bounds[2])  # no iteration has this number
        param, following, last = (Value(INT, "last") for _ in range(3))
        operations = [
            self.noting(o, choice.side, loop.index, param, following) if o is choice.by else [o]
            for o in loop.body.operations
        ]
        body = Block(tuple([o for some in operations for o in some]), (*loop.body.yields, following))
        into.append(
            replace(
                loop,
                params=(*loop.params, param),
                inits=(*loop.inits, none),
                outs=(*loop.outs, last),
                body=body,
            )
        )
        found = builder.apply("not_equal", last, none)
        again = {loop.index: last}
        with builder.block() as inside:
            for operation in choice.operations:
                builder.add(cloned(operation, again))
        results = [Value(loop.outs[slot].type, loop.outs[slot].name) for slot in choice.slots]
        then = Block(tuple(inside), tuple([again.get(v, v) for v in choice.given]))
        otherwise = Block((), tuple([loop.inits[slot] for slot in choice.slots]))
        builder.branch(found, then, otherwise, tuple(results))
        known |= {loop.outs[slot]: result for slot, result in zip(choice.slots, results, strict=True)}

    def noting(self, decision: Operation, side: int, index: Value, param: Value, following: Value) -> list[Operation]:
        """The decision, which also decides which iteration was the last."""
        values = (index, param) if side == 0 else (param, index)
        if isinstance(decision, Apply):
            return [decision, Apply(following, "where", (decision.args[0], *values), span=decision.span)]
        assert isinstance(decision, If)
        then, orelse = (replace(b, yields=(*b.yields, v)) for b, v in zip(decision.blocks(), values, strict=True))
        return [replace(decision, then=then, orelse=orelse, outs=(*decision.outs, following))]


def _computing(values: list[Value], operations: list[Operation], decision: Operation) -> tuple[Operation, ...]:
    """Those of the operations that compute the values."""
    needed, chosen = set(values), list[Operation]()
    for operation in reversed(operations):
        if operation is not decision and not needed.isdisjoint(operation.defines()):
            chosen.append(operation)
            needed |= _read(operation)
    return tuple(chosen[::-1])


def _read(operation: Operation) -> set[Value]:
    """The values that an operation reads, inside its blocks too."""
    found = set(operation.uses())
    for block in operation.blocks():
        found.update(block.yields)
        for inner in walk(block):
            found.update(inner.uses(), *(b.yields for b in inner.blocks()))
    return found
