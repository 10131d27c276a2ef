"""Sums leave the branches that they stand in, so that each element can collect what it gets.

    for i in range(1, n - 1):                    for i in range(1, n - 1):
        a[i - 1] += p[i]                             a[i - 1] += p[i]
        a[i + 1] -= p[i]                             a[i + 1] -= p[i]
        if c[i] > 0.0:                =>             if c[i] > 0.0:
            a[i - 1] += q[i]                             left, right = q[i], 0.0
        else:                                        else:
            a[i + 1] += q[i]                             left, right = 0.0, q[i]
                                                     a[i - 1] += left
                                                     a[i + 1] += right

What a side does not add is zero. A branch that only chooses between numbers vectorises, and so does the loop when its
sums are gathered. The elements exist whichever side runs: the iteration adds to them anyway.
"""

from __future__ import annotations

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Dim, Function, If, Load, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.types import INT, element_type, is_float

Place = tuple[Value, tuple[object, ...]]
"""An array, and what stands for the indices of an element: equal ones are the same element in an iteration."""


def take_sums_out_of_branches(function: Function) -> Function:
    return changed(function, body=_BranchSums(function).block(function.body))


class _BranchSums:
    def __init__(self, function: Function) -> None:
        operations = walk(function.body)
        self.sites = points_to(function)
        self.definition = {v: o for o in operations for v in o.defines()}
        self.constants = {o.out: o.value for o in operations if isinstance(o, Const)}

    def block(self, block: Block) -> Block:
        return changed(block, operations=tuple([self.operation(o) for o in block.operations]))

    def operation(self, operation: Operation) -> Operation:
        if isinstance(operation, Loop) and operation.counted and _is_innermost(operation):
            return operation.rebuilt(self.iteration)
        return operation.rebuilt(self.block)

    def iteration(self, body: Block) -> Block:
        """The body of an innermost loop."""
        anyway = {self.place(o) for o in body.operations if isinstance(o, Store) and o.adds}
        builder = Builder()
        for operation in body.operations:
            if isinstance(operation, If) and self.can_leave(operation, anyway):
                self.open(operation, builder)
            else:
                builder.add(operation)
        return changed(body, operations=tuple(builder.operations))

    def place(self, store: Store) -> Place:
        return store.array, tuple(self.index(i) for i in store.indices)

    def index(self, value: Value) -> object:
        """The canonical form of an index. Sums are taken apart."""
        if value in self.constants:
            return self.constants[value]
        operation = self.definition.get(value)
        if isinstance(operation, Apply) and operation.primitive in ("add", "subtract") and value.type == INT:
            return (operation.primitive, *(self.index(a) for a in operation.args))
        return value

    def can_leave(self, branch: If, anyway: set[Place]) -> bool:
        """Whether the sides compute numbers, and add them to elements that the iteration adds to anyway."""
        inside = [o for b in branch.blocks() for o in b.operations]
        stores = [o for o in inside if isinstance(o, Store)]
        if not stores or not all(isinstance(o, Apply | Const | Dim | Load | Store) for o in inside):
            return False
        own = {v for o in inside for v in o.defines()}
        memory = {site for s in stores for site in self.memory(s.array)}
        reads = any(isinstance(o, Load) and not memory.isdisjoint(self.memory(o.array)) for o in inside)
        return not reads and all(
            s.adds and self.place(s) in anyway and is_float(s.value.type) and self.is_outside(s.indices, own)
            for s in stores
        )

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def is_outside(self, indices: tuple[Value, ...], own: set[Value]) -> bool:
        """Whether indices can be computed outside of the branch: what of them is its own are sums of others."""
        for value in indices:
            operation = self.definition.get(value)
            if value in own and value not in self.constants:
                if not isinstance(operation, Apply) or operation.primitive not in ("add", "subtract"):
                    return False
                if not self.is_outside(operation.args, own):
                    return False
        return True

    def open(self, branch: If, builder: Builder) -> None:
        """Write the branch, which yields what its sides add, and the sums behind it."""
        stores = [o for b in branch.blocks() for o in b.operations if isinstance(o, Store)]
        places = {self.place(s): s for s in stores}
        sides = [self.side(block, places) for block in branch.blocks()]
        amounts = [Value(element_type(array.array)) for array, _ in places]
        builder.span = branch.span
        builder.branch(branch.condition, sides[0], sides[1], (*branch.outs, *amounts))
        own = {v for b in branch.blocks() for o in b.operations for v in o.defines()}
        for store, amount in zip(places.values(), amounts, strict=True):
            builder.span = store.span
            indices = tuple(self.outside(i, own, builder) for i in store.indices)
            builder.store(store.array, indices, amount, adds=True)

    def side(self, block: Block, places: dict[Place, Store]) -> Block:
        """One side of a branch, which yields what it adds at each of the places."""
        builder = Builder()
        totals: dict[Place, Value] = {}
        for operation in block.operations:
            if isinstance(operation, Store):
                place, amount = (
                    self.place(operation),
                    builder.cast(operation.value, element_type(operation.array.array)),
                )
                builder.span = operation.span
                totals[place] = builder.apply("add", totals[place], amount) if place in totals else amount
            else:
                builder.add(operation)
        yields = [
            totals[p] if p in totals else builder.const(0.0, element_type(s.array.array)) for p, s in places.items()
        ]
        return Block(tuple(builder.operations), (*block.yields, *yields))

    def outside(self, index: Value, own: set[Value], builder: Builder) -> Value:
        """The index, computed outside of a branch."""
        if index in self.constants:
            return builder.const(self.constants[index], index.scalar)
        operation = self.definition.get(index)
        if index not in own or not isinstance(operation, Apply):
            return index
        return builder.apply(operation.primitive, *(self.outside(a, own, builder) for a in operation.args))


def _is_innermost(loop: Loop) -> bool:
    return not any(isinstance(o, Loop) for o in walk(loop.body))
