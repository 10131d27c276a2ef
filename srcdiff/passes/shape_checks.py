"""Shape checks: checks of lengths are removed where the allocation of an array makes them anyway.

if n < 0:                                        a = np.zeros(n)
    raise ValueError("negative ...")      =>
a = np.zeros(n)

They are needed only for arrays that are not allocated in the end, because their elements are used where they are
computed or only their lengths are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Function,
    If,
    Operation,
    Print,
    Raise,
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import INT, NEGATIVE, TOO_LARGE


def remove_shape_checks(function: Function) -> Function:
    return _Checks(function).function()


class _Checks:
    def __init__(self, function: Function) -> None:
        self.whole = function
        operations = walk(function.body)
        self.definition = {v: o for o in operations for v in o.defines()}

    def function(self) -> Function:
        return changed(self.whole, body=self.block(self.whole.body))

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for k, operation in enumerate(block.operations):
            if not (_is_check(operation) and self.is_made(operation, block.operations[k + 1 :])):
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def is_made(self, check: Operation, following: tuple[Operation, ...]) -> bool:
        """Whether an array with the lengths that a check is about is made next, by a call that looks at them."""
        assert isinstance(check, If)
        asked, is_of_size = set(self.lengths(check.condition)), _text(check) == TOO_LARGE
        for operation in following:
            if isinstance(operation, Alloc) and not operation.place and (is_of_size or self.is_plain(operation)):
                if operation.like is None and asked <= set(operation.shape):
                    return True
            elif isinstance(operation, Call | Print | Store) or (operation.blocks() and not _is_check(operation)):
                return False  # it would be seen, although the exception comes before it
        return False

    def is_plain(self, made: Alloc) -> bool:
        """Whether it is emitted as `np.empty` or `np.zeros`; for others, compiled code raises another message."""
        fill = None if made.fill is None else self.definition.get(made.fill)
        return made.fill is None or (isinstance(fill, Const) and fill.value == 0)

    def lengths(self, value: Value) -> Iterator[Value]:
        """The integers that a condition is about."""
        operation = self.definition.get(value)
        if value.type == INT and not isinstance(operation, Const):
            yield value
        elif isinstance(operation, Apply):
            for argument in operation.args:
                yield from self.lengths(argument)


def _is_check(operation: Operation) -> bool:
    return _text(operation) in (NEGATIVE, TOO_LARGE)


def _text(operation: Operation) -> Any:
    match operation:
        case If(then=Block(operations=(Raise(parts=(text,)),)), orelse=Block(operations=())):
            return text
    return None
