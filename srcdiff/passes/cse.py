"""Compute once what is computed twice: equal operations on equal values, where nothing was written in between.

What an element holds already is not stored again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
    Apply,
    Barrier,
    Block,
    Call,
    Const,
    Dim,
    Function,
    Load,
    Operation,
    Part,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    changed,
)
from srcdiff.ir.types import is_kept_by

Key = tuple[Any, ...]


def eliminate_common_subexpressions(function: Function, by_themselves: Iterable[Value] = ()) -> Function:
    """The function with equal values shared; `by_themselves` are left alone: the derivative by one of them is asked."""
    return _Share(function, set(by_themselves)).run()


_NOTHING: Sites = frozenset()


class _Share:
    def __init__(self, function: Function, by_themselves: set[Value]) -> None:
        self.function, self.by_themselves = function, by_themselves
        self.sites: dict[Value, Sites] = points_to(function)
        self.known: dict[Value, Value] = {}
        """Values, with those that they are the same as."""
        self.values: dict[Key, Value] = {}
        """The computed values, by their definitions."""
        self.loads: dict[Value, dict[Key, Value]] = {}
        """The known contents of elements, by the array."""
        self.arrays_at: dict[Value, dict[Value, None]] = {}
        """By memory, the arrays there of which elements are known."""
        self.trail: list[tuple[dict[Any, Any], Any, Any]] = []
        """Changes of these tables, with what was there before."""
        self.writes: dict[Block, Sites | None] = {}
        """The memory that a block may write."""
        self.elements: dict[Value, str] = {}
        """The stored values, with the name of the array."""

    def run(self) -> Function:
        return changed(self.function, body=self.block(self.function.body))

    def resolve(self, value: Value) -> Value:
        return self.known.get(value, value)

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def block(self, block: Block) -> Block:
        """The block, where what is known from before it is known; what it finds out is forgotten behind it."""
        mark = len(self.trail)
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.replaced(self.resolve)
            if self.is_known(operation) or self.is_there(operation):
                continue
            self.forget(self.written(operation))
            if isinstance(operation, Store) and not operation.adds:
                self.found_again(operation)
            operations.append(operation.rebuilt(self.block))
        self.undo(mark)
        return changed(block, operations=tuple(operations), yields=tuple([self.resolve(v) for v in block.yields]))

    def is_known(self, operation: Operation) -> bool:
        """Whether another operation has computed the same; if not, this one has from now on."""
        key = self.key(operation)
        if key is None or (out := operation.defines()[0]) in self.by_themselves:
            return False
        known = self.loads_of(operation.array) if isinstance(operation, Load) else self.values
        same = known.get(key)
        if same is None:
            self.learn(known, key, out)
            return False
        same.name = same.name or out.name or self.elements.get(same, "")
        self.known[out] = same
        return True

    def is_there(self, operation: Operation) -> bool:
        """Whether it stores what the element holds."""
        if not isinstance(operation, Store) or operation.adds:
            return False
        held = self.loads.get(operation.array, {}).get((operation.indices, operation.value.type))
        return held is operation.value

    def found_again(self, store: Store) -> None:
        """A load of a stored value is replaced by that value."""
        if is_kept_by(store.array.array, store.value.scalar):
            self.learn(self.loads_of(store.array), (store.indices, store.value.type), store.value)
            self.elements[store.value] = "" if store.array.name.startswith("kept") else store.array.name

    # -- what is known, and since when -------------------------------------------------------------------------------

    def loads_of(self, array: Value) -> dict[Key, Value]:
        """The elements of an array that are known."""
        if array not in self.loads:
            self.learn(self.loads, array, {})
            self.note(array)
        return self.loads[array]

    def note(self, array: Value) -> None:
        """Elements of the array are known, or not any more."""
        for site in self.memory(array):
            if array in self.loads:
                self.arrays_at.setdefault(site, {})[array] = None
            else:
                del self.arrays_at[site][array]

    def forget(self, written: Sites | None) -> None:
        """Forget loads from memory that is written."""
        arrays = self.loads if written is None else {a: None for s in written for a in self.arrays_at.get(s, ())}
        for array in list(arrays):
            self.trail.append((self.loads, array, self.loads.pop(array)))
            self.note(array)

    def learn(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self.trail.append((table, key, table.get(key)))
        table[key] = value

    def undo(self, mark: int) -> None:
        """Put back what was known when the trail had that length."""
        while len(self.trail) > mark:
            table, key, before = self.trail.pop()
            if before is None:
                del table[key]
            else:
                table[key] = before
            if table is self.loads:
                self.note(key)

    def key(self, operation: Operation) -> Key | None:
        match operation:
            case Const():
                return ("const", operation.out.type, type(operation.value), repr(operation.value))
            case Apply():
                return ("apply", operation.primitive, operation.out.type, operation.args)
            case Dim():
                return ("dim", operation.array, operation.axis)
            case Load():
                return (operation.indices, operation.out.type)
            case View():
                return ("view", operation.array, operation.items)
            case Transpose():
                return ("transpose", operation.array, operation.axes)
            case Reshape():
                return ("reshape", operation.array, operation.shape)
            case Part():
                return ("part", operation.array, operation.part)
        return None

    def written(self, operation: Operation) -> Sites | None:
        """The memory it may write; None for all."""
        if isinstance(operation, Store):
            return self.memory(operation.array)
        if isinstance(operation, Call | Barrier):
            return None
        blocks = operation.blocks()
        return self.together([self.written_in(block) for block in blocks]) if blocks else _NOTHING

    def written_in(self, block: Block) -> Sites | None:
        if block not in self.writes:
            self.writes[block] = self.together([self.written(o) for o in block.operations])
        return self.writes[block]

    def together(self, parts: list[Sites | None]) -> Sites | None:
        known = [part for part in parts if part is not None]
        return frozenset().union(*known) if len(known) == len(parts) else None
