"""What a legal program is. Checked after every step; a violation is a defect of srcdiff."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from srcdiff.diagnostics import InternalError
from srcdiff.ir.nodes import Alloc, Block, Dim, Function, If, Load, Loop, Operation, Store, Value
from srcdiff.ir.types import INT, Array


def verify(function: Function, step: str) -> None:
    """Every value is defined once, before it is used, where it can be seen; types and counts agree."""
    _Check(step).function(function)


class _Check:
    def __init__(self, step: str) -> None:
        self.step = step
        self.defined: set[Value] = set()
        self.visible: set[Value] = set()

    def fail(self, what: str, operation: Operation | None = None) -> NoReturn:
        raise InternalError(f"after '{self.step}': {what}" + (f" in {operation}" if operation is not None else ""))

    def function(self, function: Function) -> None:
        self.defined.update(function.params)
        self.block(function.body, function.params)

    def block(self, block: Block, inner: tuple[Value, ...]) -> None:
        """The block; `inner` are values that are seen only there."""
        here = list(inner)
        self.visible.update(here)
        for operation in block.operations:
            for value in operation.uses():
                if value not in self.visible:
                    self.fail(f"the value {value} is used before it is defined", operation)
            self.operation(operation)
            inner, outs = operation.inner(), operation.defines()
            for value in (*inner, *outs):
                if value in self.defined:
                    self.fail(f"{value} is defined twice", operation)
                self.defined.add(value)
            for nested in operation.blocks():
                self.block(nested, inner)
            self.visible.update(outs)
            here += outs
        for value in block.yields:
            if value not in self.visible:
                self.fail(f"{value} is yielded but not defined")
        self.visible.difference_update(here)

    def operation(self, operation: Operation) -> None:
        match operation:
            case If():
                for block in operation.blocks():
                    self.agree(block.yields, operation.outs, operation)
            case Loop():
                count, yields = len(operation.params), operation.body.yields
                for values in (yields[:count], operation.inits, operation.outs):
                    self.agree(values, operation.params, operation)
                if len(yields) != count + operation.leaves:
                    self.fail("a loop yields too many values", operation)
            case Load() | Store():
                if len(operation.indices) != operation.array.array.rank:
                    self.fail("an element needs an index for each axis", operation)
                if any(i.type != INT for i in operation.indices):
                    self.fail("an index is not an integer", operation)
            case Dim():
                if operation.axis >= operation.array.array.rank:
                    self.fail("there is no such axis", operation)
            case Alloc():
                if not isinstance(operation.out.type, Array):
                    self.fail("an allocation is an array", operation)

    def agree(self, values: Sequence[Value], others: Sequence[Value], operation: Operation) -> None:
        found, expected = [v.type for v in values], [v.type for v in others]
        if found != expected:
            self.fail(f"types differ: {found} and {expected}", operation)
