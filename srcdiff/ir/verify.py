"""What a legal program is. Checked after every step; a violation is a defect of srcdiff."""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.diagnostics import InternalError
from srcdiff.ir.nodes import Alloc, Block, Dim, Function, If, Load, Loop, Operation, Store, Value, inner_values
from srcdiff.ir.types import INT, Array


def verify(function: Function, step: str) -> None:
    """Every value is defined once, before it is used, where it can be seen; types and counts agree."""
    _Check(step).function(function)


class _Check:
    def __init__(self, step: str) -> None:
        self.step = step
        self.defined: set[Value] = set()

    def require(self, condition: bool, what: str, operation: Operation | None = None) -> None:
        if not condition:
            raise InternalError(f"after '{self.step}': {what}" + (f" in {operation}" if operation is not None else ""))

    def function(self, function: Function) -> None:
        visible = set(function.params)
        self.defined |= visible
        self.block(function.body, visible)

    def block(self, block: Block, outer: set[Value]) -> None:
        visible = set(outer)
        for operation in block.operations:
            for value in operation.uses():
                self.require(value in visible, f"the value {value} is used before it is defined", operation)
            self.operation(operation)
            inner = set(inner_values(operation))
            for value in (*inner, *operation.defines()):
                self.require(value not in self.defined, f"{value} is defined twice", operation)
                self.defined.add(value)
            for nested in operation.blocks():
                self.block(nested, visible | inner)
            visible.update(operation.defines())
        for value in block.yields:
            self.require(value in visible, f"{value} is yielded but not defined")

    def operation(self, operation: Operation) -> None:
        match operation:
            case If():
                for block in operation.blocks():
                    self.agree([v.type for v in block.yields], [v.type for v in operation.outs], operation)
            case Loop():
                types = [v.type for v in operation.params]
                yields = operation.body.yields
                self.agree([v.type for v in yields[: len(types)]], types, operation)
                self.agree([v.type for v in operation.inits], types, operation)
                self.agree([v.type for v in operation.outs], types, operation)
                self.require(len(yields) == len(types) + operation.leaves, "a loop yields too many values", operation)
            case Load() | Store():
                rank = operation.array.array.rank
                self.require(len(operation.indices) == rank, "an element needs an index for each axis", operation)
                self.require(all(i.type == INT for i in operation.indices), "an index is not an integer", operation)
            case Dim():
                self.require(operation.axis < operation.array.array.rank, "there is no such axis", operation)
            case Alloc():
                self.require(isinstance(operation.out.type, Array), "an allocation is an array", operation)

    def agree(self, found: Sequence[object], expected: Sequence[object], operation: Operation) -> None:
        self.require(list(found) == list(expected), f"types differ: {found} and {expected}", operation)
