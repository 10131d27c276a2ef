"""Array renaming: a buffer that every iteration fills becomes a new array, so the old values remain readable.

u, v = x.copy(), np.empty(n)                 u, v = x.copy(), np.empty(n)
for t in range(steps):                       for t in range(steps):
    for i in range(n):                           new = np.empty(n)
        v[i] = f(u[i])            =>             for i in range(n):
    u, v = v, u                                      new[i] = f(u[i])
                                                 u, v = new, u

Then the reverse sweep reads the states directly: the new arrays become rows of one array (array_expansion.py), and no
values have to be saved before they are overwritten. A buffer must not have another name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from srcdiff.analyses.access_relations import fills
from srcdiff.analyses.dependence import dependence_of
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Buffer:
    """A parameter of a loop that can be renewed, and its lengths."""

    param: Value
    loop: Loop
    shape: tuple[Value, ...]


def renew(function: Function, buffer: Buffer) -> tuple[Function, Value]:
    """The function with a new array in every iteration instead of the buffer; and that array."""
    new = Value(buffer.param.type, buffer.param.name)

    def renewed(operation: Operation) -> Operation:
        if not isinstance(operation, Loop) or buffer.param not in operation.params:
            return operation
        body = substituted(operation.body, lambda v: new if v is buffer.param else v)
        made = Alloc(new, buffer.shape, span=operation.span)
        return replace(operation, body=Block((made, *body.operations), body.yields))

    operations = tuple(renewed(o) for o in function.body.operations)
    return replace(function, body=changed(function.body, operations=operations)), new


def buffers_to_renew(function: Function) -> list[Buffer]:
    """Rename the buffers of the loops at top level."""
    return list(_Renewable(function).buffers())


class _Renewable:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.sites = self.dependence.sites
        self.lengths = self.dependence.lengths
        self.structure = self.dependence.structure
        self.apart = self.dependence.apart
        self.definition = self.dependence.definition
        self.function = function

    def buffers(self) -> Iterator[Buffer]:
        for operation in self.function.body.operations:
            if isinstance(operation, Loop) and operation.counted:
                for param, handed in zip(operation.params, operation.body.yields, strict=False):
                    buffer = (
                        self.buffer(param, operation) if isinstance(param.type, Array) and param is not handed else None
                    )
                    if buffer is not None and self.is_private(buffer) and self.is_filled(buffer):
                        yield buffer

    def buffer(self, param: Value, loop: Loop) -> Buffer | None:
        sizes = self.lengths.named(self.function, loop)
        keys = [self.lengths.of(param, axis) for axis in range(param.array.rank)]
        return Buffer(param, loop, tuple(sizes[key] for key in keys)) if all(key in sizes for key in keys) else None

    def is_private(self, buffer: Buffer) -> bool:
        """Whether the values in the buffer are read only through the results of the loop."""
        memory, loop = self.dependence.memory(buffer.param), buffer.loop
        if memory & set(self.function.params) or any(getattr(self.definition.get(s), "place", "") for s in memory):
            return False
        start, end = self.structure.start[loop], self.structure.end[loop]
        inside = self.dependence.effects(loop.body.operations).uses | set(loop.body.yields)
        behind = set(self.function.body.yields)
        for operation in self.function.body.operations:
            if self.structure.start[operation] > end:
                behind |= self.dependence.effects((operation,)).uses
        return not any(memory & self.sites.get(v, frozenset()) and self.began(v) < start for v in inside | behind)

    def began(self, value: Value) -> int:
        definition = self.structure.definition.get(value)
        return 0 if definition is None else self.structure.start[definition]

    def is_filled(self, buffer: Buffer) -> bool:
        """Whether an iteration writes every element before it reads any."""
        stores: list[Store] = []
        for operation in buffer.loop.body.operations:
            if self.reads(operation, buffer.param):
                break
            stores += self.surely_stored(operation, buffer.param)
        return fills(stores, buffer.shape, self.structure, buffer.loop.body)

    def reads(self, operation: Operation, array: Value) -> bool:
        for inner in (operation, *(o for b in operation.blocks() for o in walk(b))):
            if isinstance(inner, Dim | References) or (isinstance(inner, Store) and not inner.adds):
                continue
            used = (inner.array,) if isinstance(inner, Load) else inner.uses()
            yielded = [v for b in inner.blocks() for v in b.yields]
            if any(self.sites.get(v) and not self.apart.different(v, array) for v in (*used, *yielded)):
                return True
        return False

    def surely_stored(self, operation: Operation, array: Value) -> Iterator[Store]:
        """The stores that every iteration executes."""
        if isinstance(operation, Store) and operation.array is array and not operation.adds:
            yield operation
        if isinstance(operation, Loop) and operation.counted:
            for inner in operation.body.operations:
                yield from self.surely_stored(inner, array)
