"""Groups of stacks that grow and shrink together. A group shares one counter and one test of the capacity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from srcdiff.ir.nodes import Block, Function, NewStack, Pop, Push, Value
from srcdiff.ir.types import Scalar, Stack
from srcdiff.quick_dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Group:
    """Stacks that share the block that creates them, the one that pushes and the one that pops; or a single stack."""

    is_alone: bool
    made: list[NewStack] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    pops: list[Pop] = field(default_factory=list)

    def comes_first(self, operation: Push | Pop) -> bool:
        """Whether the operation is the first push or pop of the group."""
        return self.is_alone or operation is self.pushes[0] or operation is self.pops[0]

    def comes_last(self, push: Push) -> bool:
        return self.is_alone or push is self.pushes[-1]


@dataclass(eq=False, slots=True)
class _Uses:
    made: list[tuple[NewStack, Block]] = field(default_factory=list)
    pushes: list[tuple[Push, Block]] = field(default_factory=list)
    pops: list[tuple[Pop, Block]] = field(default_factory=list)


def together(function: Function, shared: Collection[Value]) -> dict[Value, Group]:
    """The group of each stack of numbers that no other function uses."""
    uses: dict[Value, _Uses] = {}
    _note(function.body, uses)
    groups: dict[Value, Group] = {}
    alike: dict[tuple[Block, ...], Group] = {}
    for stack, use in uses.items():
        if stack in shared or not isinstance(stack.type, Stack) or not isinstance(stack.type.element, Scalar):
            continue
        once = len(use.made) == len(use.pushes) == len(use.pops) == 1 and use.made[0][0].workspace is None
        key = tuple(block for _, block in (*use.made, *use.pushes, *use.pops))
        group = alike.setdefault(key, Group(is_alone=False)) if once else Group(is_alone=True)
        group.made += [o for o, _ in use.made]
        group.pushes += [o for o, _ in use.pushes]
        group.pops += [o for o, _ in use.pops]
        groups[stack] = group
    for (*_, pushing, popping), group in alike.items():
        group.pushes.sort(key=pushing.operations.index)
        group.pops.sort(key=popping.operations.index)
    return groups


def _note(block: Block, uses: dict[Value, _Uses]) -> None:
    for operation in block.operations:
        match operation:
            case NewStack(out=stack):
                uses.setdefault(stack, _Uses()).made.append((operation, block))
            case Push(stack=stack):
                uses.setdefault(stack, _Uses()).pushes.append((operation, block))
            case Pop(stack=stack):
                uses.setdefault(stack, _Uses()).pops.append((operation, block))
        for inner in operation.blocks():
            _note(inner, uses)
