"""Compute once what is computed twice: equal operations on equal values, where nothing was written in between."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from srcdiff.analyses.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Call,
    Const,
    Dim,
    Function,
    Load,
    Operation,
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import element_type

Key = tuple[Any, ...]


def share(function: Function, by_themselves: Iterable[Value] = ()) -> Function:
    """The function with equal values shared; `by_themselves` are left alone: the derivative by one of them is asked."""
    return _Share(function, set(by_themselves)).run()


class _Share:
    def __init__(self, function: Function, by_themselves: set[Value]) -> None:
        self.function, self.by_themselves = function, by_themselves
        self.sites: dict[Value, Sites] = points_to(function)
        self.known: dict[Value, Value] = {}
        self.elements: dict[Value, str] = {}
        """What was stored, with the name of the array."""

    def run(self) -> Function:
        return changed(self.function, body=self.block(self.function.body, {}))

    def resolve(self, value: Value) -> Value:
        return self.known.get(value, value)

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def block(self, block: Block, outer: dict[Key, Value]) -> Block:
        available = dict(outer)
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.replaced(self.resolve)
            key = self.key(operation)
            if key is not None and operation.defines()[0] not in self.by_themselves:
                out = operation.defines()[0]
                if key in available:
                    same = available[key]
                    same.name = same.name or out.name or self.elements.get(same, "")
                    self.known[out] = same
                    continue
                available[key] = out
            written = self.written(operation)
            if written is None:
                available = {k: v for k, v in available.items() if k[0] != "load"}
            elif written:
                available = {k: v for k, v in available.items() if k[0] != "load" or not self.memory(k[1]) & written}
            if isinstance(operation, Store) and not operation.adds:
                self.found_again(operation, available)
            operations.append(operation.rebuilt(partial(self.block, outer=available)))
        return changed(block, operations=tuple(operations), yields=tuple([self.resolve(v) for v in block.yields]))

    def found_again(self, store: Store, available: dict[Key, Value]) -> None:
        """What was stored need not be loaded."""
        if store.value.type == element_type(store.array.array):
            available["load", store.array, store.indices] = store.value
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
                return ("load", operation.array, operation.indices)
        return None

    def written(self, operation: Operation) -> set[Value] | None:
        """The memory it may write; None for all."""
        if isinstance(operation, Store):
            return set(self.memory(operation.array))
        if isinstance(operation, Call):
            return None
        found: set[Value] = set()
        for inner in operation.blocks():
            if any(isinstance(o, Call) for o in walk(inner)):
                return None
            found |= written_sites(inner, self.sites)
        return found
