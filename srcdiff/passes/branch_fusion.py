"""Branch fusion: consecutive branches on the same condition become one.

if c:                                        if c:
    y_bar = z_bar                                y_bar = z_bar
else:                                            for k in range(n):
    y_bar = 0.0                   =>                 x_bar[k] += y_bar * w[k]
if c:
    for k in range(n):
        x_bar[k] += y_bar * w[k]

Operations between them move before both. Those that use results of the first branch move into the second, if only that
uses them, or behind both, if the second does not use them. At the border of the sweeps, branches stay apart unless
their loops can be fused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from srcdiff.ir.nodes import (
    Alloc,
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
    Raise,
    References,
    Substitution,
    Value,
    changed,
    substituted,
    use_counts,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES

_PURE = Apply | Const | Dim | References


def fuse_branches(function: Function, of_both_sweeps: bool = False) -> Function:
    """The function with its branches fused; those of both sweeps, too, if that is wanted, whatever is in them."""
    conditions = Counter(o.condition for o in walk(function.body) if isinstance(o, If))
    if not any(count > 1 for count in conditions.values()):
        return function
    return changed(function, body=_Branches(function, of_both_sweeps).block(function.body))


class _Branches:
    def __init__(self, function: Function, of_both_sweeps: bool) -> None:
        self.uses, self.of_both_sweeps = use_counts(function.body), of_both_sweeps

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.add(operation.rebuilt(self.block), operations)
        return changed(block, operations=tuple(operations))

    def add(self, operation: Operation, operations: list[Operation]) -> None:
        if isinstance(operation, If):
            self.add_branch(operation, operations)
        else:
            operations.append(operation)

    def add_branch(self, second: If, operations: list[Operation]) -> None:
        """Append a branch to the operations, or merge it with an earlier one on the same condition."""
        place = len(operations) - 1
        while place >= 0 and isinstance(operations[place], _PURE | Load | Alloc | Comment):
            place -= 1
        first, between = operations[place] if place >= 0 else None, operations[place + 1 :]
        if isinstance(first, If) and first.condition is second.condition:
            moved = self.going_along(first, between, second)
            if moved is not None:
                along, behind = moved
                operations[place:] = [o for o in between if o not in along and o not in behind]
                self.add(self.fused(first, along, second), operations)
                operations += behind
                return
        operations.append(second)

    def going_along(
        self, first: If, between: list[Operation], second: If
    ) -> tuple[list[Operation], list[Operation]] | None:
        """The operations between two branches that use results of the first: those that move into the second, and those
        that move behind it. None if some must stay between."""
        are_fused = self.of_both_sweeps or (_has_loops(first) and _has_loops(second))
        if not are_fused and any(isinstance(o, Comment) for o in between):
            return None
        given, users = set(first.outs), list[Operation]()
        for operation in between:
            if given.isdisjoint(operation.uses()):
                if (isinstance(operation, Load) and _writes(first)) or _raises(first):
                    return None
            else:
                users.append(operation)
                given |= set(operation.defines())
        needed, along, behind = set(use_counts(Block((second,)))), list[Operation](), list[Operation]()
        for operation in reversed(users):
            if needed.isdisjoint(operation.defines()):
                behind.insert(0, operation)
            else:
                along.insert(0, operation)
                needed |= set(operation.uses())
        if not all(_is_cheap(o) for o in along) or not all(isinstance(o, _PURE) for o in behind):
            return None
        inside = use_counts(Block((*along, second)))
        return (along, behind) if all(inside[v] == self.uses[v] for o in along for v in o.defines()) else None

    def fused(self, first: If, along: Sequence[Operation], second: If) -> If:
        sides = []
        for before, after in zip(first.blocks(), second.blocks(), strict=True):
            known = dict(zip(first.outs, before.yields, strict=True))
            for out, inner in known.items():
                self.uses[inner] += self.uses[out]  # `inner` replaces `out`, and the block still yields it
            operations = list(before.operations)
            for operation in along:
                renamed = {v: Value(v.type, v.name) for v in operation.defines()}
                operations.append(operation.replaced(_looked_up(known)).redefined(_looked_up(renamed)))
                known |= renamed
            rest = substituted(after, _looked_up(known))
            for operation in rest.operations:
                self.add(operation, operations)
            sides.append(Block(tuple(operations), (*before.yields, *rest.yields)))
        return replace(first, then=sides[0], orelse=sides[1], outs=(*first.outs, *second.outs))


def _raises(branch: If) -> bool:
    """Whether it may raise: it may guard the operations after it, such as a division."""
    return any(isinstance(o, Raise) for b in branch.blocks() for o in walk(b))


def _has_loops(branch: If) -> bool:
    return any(isinstance(o, Loop) for b in branch.blocks() for o in walk(b))


def _is_cheap(operation: Operation) -> bool:
    """Whether it may be duplicated into both sides; if both are computed and one is selected, it runs twice."""
    return PRIMITIVES[operation.primitive].cheap if isinstance(operation, Apply) else isinstance(operation, _PURE)


def _writes(branch: If) -> bool:
    return any(not isinstance(o, _PURE | Load | If | Loop | Comment) for b in branch.blocks() for o in walk(b))


def _looked_up(known: dict[Value, Value]) -> Substitution:
    return lambda value: known.get(value, value)
