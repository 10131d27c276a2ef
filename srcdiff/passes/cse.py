"""Compute once what is computed twice: equal operations on equal values, where nothing was written in between.

What an element holds already is not stored again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import Apply, Barrier, Block, Call, Const, Dim, Function, Load, Operation, Store, Value, changed
from srcdiff.ir.types import is_kept_by

Key = tuple[Any, ...]


def share(function: Function, by_themselves: Iterable[Value] = ()) -> Function:
    """The function with equal values shared; `by_themselves` are left alone: the derivative by one of them is asked."""
    return _Share(function, set(by_themselves)).run()


class _Share:
    def __init__(self, function: Function, by_themselves: set[Value]) -> None:
        self.function, self.by_themselves = function, by_themselves
        self.sites: dict[Value, Sites] = points_to(function)
        self.known: dict[Value, Value] = {}
        self.writes: dict[Block, Sites | None] = {}
        """The memory that a block may write."""
        self.elements: dict[Value, str] = {}
        """What was stored, with the name of the array."""

    def run(self) -> Function:
        return changed(self.function, body=self.block(self.function.body, {}, {}))

    def resolve(self, value: Value) -> Value:
        return self.known.get(value, value)

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def block(self, block: Block, values: dict[Key, Value], loads: dict[Key, Value]) -> Block:
        """The block, where values and loads are known already from before it."""
        values, loads = dict(values), dict(loads)
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.replaced(self.resolve)
            key = self.key(operation)
            if key is not None and operation.defines()[0] not in self.by_themselves:
                out = operation.defines()[0]
                known = loads if isinstance(operation, Load) else values
                if key in known:
                    same = known[key]
                    same.name = same.name or out.name or self.elements.get(same, "")
                    self.known[out] = same
                    continue
                known[key] = out
            if self.is_there(operation, loads):
                continue
            written = self.written(operation)
            if written is None:
                loads = {}
            elif written:
                loads = {k: v for k, v in loads.items() if not self.memory(k[0]) & written}
            if isinstance(operation, Store) and not operation.adds:
                self.found_again(operation, loads)
            operations.append(operation.rebuilt(partial(self.block, values=values, loads=loads)))
        return changed(block, operations=tuple(operations), yields=tuple([self.resolve(v) for v in block.yields]))

    def is_there(self, operation: Operation, loads: dict[Key, Value]) -> bool:
        """Whether it stores what the element holds."""
        if not isinstance(operation, Store) or operation.adds:
            return False
        return loads.get((operation.array, operation.indices, operation.value.type)) is operation.value

    def found_again(self, store: Store, loads: dict[Key, Value]) -> None:
        """What was stored need not be loaded."""
        if is_kept_by(store.array.array, store.value.scalar):
            loads[store.array, store.indices, store.value.type] = store.value
            self.elements[store.value] = "" if store.array.name.startswith("kept") else store.array.name

    def key(self, operation: Operation) -> Key | None:
        match operation:
            case Const():
                return ("const", operation.out.type, type(operation.value), repr(operation.value))
            case Apply():
                return ("apply", operation.primitive, operation.out.type, operation.args)
            case Dim():
                return ("dim", operation.array, operation.axis)
            case Load():
                return (operation.array, operation.indices, operation.out.type)
        return None

    def written(self, operation: Operation) -> Sites | None:
        """The memory it may write; None for all."""
        if isinstance(operation, Store):
            return self.memory(operation.array)
        if isinstance(operation, Call | Barrier):
            return None
        return self.together([self.written_in(block) for block in operation.blocks()])

    def written_in(self, block: Block) -> Sites | None:
        if block not in self.writes:
            self.writes[block] = self.together([self.written(o) for o in block.operations])
        return self.writes[block]

    def together(self, parts: list[Sites | None]) -> Sites | None:
        found: Sites = frozenset()
        for part in parts:
            if part is None:
                return None
            found |= part
        return found
