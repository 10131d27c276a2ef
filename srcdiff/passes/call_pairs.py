"""Recursive functions as pairs: the forward function pushes values on stacks, the reverse function pops them.

y = f(x, n)                                  kept = []
                                  =>         y = f_forward(x, n, kept)
                                             x_bar += f_reverse(n, y_bar, kept)

Calls are reversed in the opposite order, so each call finds its own values on top of the stacks. The values of a block
are pushed at its end and popped at the start of its reverse: by then, calls inside the block have popped theirs. All
functions share the stacks, one for each type; the main program creates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.saved_values import Plan
from srcdiff.analyses.structure import Structure
from srcdiff.ir.nodes import Block, Call, Dim, Function, NewStack, Operation, Push, Value, changed, walk
from srcdiff.ir.types import BOOL, INT, Array, Stack, is_inexact
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A recursive function that runs forwards and backwards, by the names of the two functions."""

    forward: str
    reverse: str
    takes: tuple[int, ...]
    """Which of the arguments the second one takes: those that it reads, or restores."""
    restores: frozenset[int]
    """Which of the arrays among the arguments it leaves as they were before the first one wrote into them."""
    stacks: tuple[Stack, ...]
    """The last parameters of both functions. In the second one, the adjoints of results and of arrays precede them."""


def has_shadow(argument: Value) -> bool:
    """Whether the caller passes the adjoint of the argument to accumulate into."""
    return isinstance(argument.type, Array) and is_inexact(argument.type)


def stack_for(kept: Stack) -> Value:
    """A name for the stack of a type."""
    element = kept.element
    if isinstance(element, Array):
        return Value(kept, "kept_arrays")
    return Value(kept, {INT: "kept_integers", BOOL: "kept_conditions"}.get(element, "kept"))


# -- the calls -------------------------------------------------------------------------------------------------------


def call_forward(
    function: Function, pairs: Mapping[str, Pair], active: Activity, stacks: Sequence[Value]
) -> tuple[Function, bool]:
    """The function with calls that keep what their adjoints need; and whether it has any."""
    found = False

    def visit(block: Block) -> Block:
        return changed(block, operations=tuple([visited(o).rebuilt(visit) for o in block.operations]))

    def visited(operation: Operation) -> Operation:
        nonlocal found
        if not isinstance(operation, Call) or operation.function not in pairs or not _matters(operation, active):
            return operation
        found = True
        count = len(operation.args)
        return replace(
            operation,
            function=pairs[operation.function].forward,
            args=(*operation.args, *stacks),
            writes=(*operation.writes, *range(count, count + len(stacks))),
        )

    return changed(function, body=visit(function.body)), found


def _matters(call: Call, active: Activity) -> bool:
    """Whether the call is active, or overwrites memory that the reverse sweep must restore."""
    results = [v for v in call.outs if is_inexact(v.type)]
    return bool(call.writes) or any(active.memory(v) if isinstance(v.type, Array) else v in active for v in results)


def with_lengths(block: Block) -> Block:
    """The block with the lengths of arrays that calls return, which can be stored instead of the arrays."""
    operations: list[Operation] = []
    for operation in block.operations:
        operations.append(operation.rebuilt(with_lengths))
        if isinstance(operation, Call):
            arrays = [v for v in operation.outs if isinstance(v.type, Array)]
            operations += [Dim(Value(INT), array, axis) for array in arrays for axis in range(array.array.rank)]
    return changed(block, operations=tuple(operations))


def making_stacks(function: Function, stacks: Iterable[Value], pairs: Iterable[Pair]) -> Function:
    """The function that makes the stacks, before the first call."""
    names = {pair.forward for pair in pairs}
    spans = [o.span for o in walk(function.body) if isinstance(o, Call) and o.function in names]
    made = [NewStack(stack, spans[0], span=spans[0]) for stack in stacks]
    return replace(function, body=Block((*made, *function.body.operations), function.body.yields))


# -- what blocks keep ------------------------------------------------------------------------------------------------

Frames = dict[Block, list[tuple[Value, Value]]]


def frames_of(plan: Plan, structure: Structure, stacks: dict[Stack, Value]) -> Frames:
    """The values that each block keeps, in the order of their definitions, with their stacks; makes those that lack."""
    found: Frames = {}
    for value in sorted(plan.kept, key=lambda v: structure.start[structure.definition[v]]):
        assert not isinstance(value.type, Stack)
        kind = Stack(value.type)
        stack = stacks[kind] if kind in stacks else stacks.setdefault(kind, stack_for(kind))
        found.setdefault(structure.home[value], []).append((value, stack))
    return found


def with_frames(block: Block, frames: Frames) -> Block:
    """The block and its inner blocks, with their stored values pushed at their ends."""
    operations = [o.rebuilt(lambda inner: with_frames(inner, frames)) for o in block.operations]
    pushes = [Push(stack, value) for value, stack in frames.get(block, ())]
    return Block((*operations, *pushes), block.yields)
