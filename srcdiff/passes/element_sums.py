"""What branches of a loop add to one element is a sum in a scalar, which is added to the element after the loop.

for j in range(n):                           t = 0.0
    if x[j] > x[i]:                          for j in range(n):
        a[i] += x[j]              =>             t += x[j] if x[j] > x[i] else 0.0
                                             if t != 0.0:
                                                 a[i] += t

Each addition in memory would wait for the one before it, and LLVM would not vectorise the loop. If no branch was taken,
there need not be such an element; then the sum is zero.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
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
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import BOOL, element_type, is_float
from srcdiff.ir.words import element as element_name
from srcdiff.ir.words import own_name

_PLAIN = (Apply, Comment, Const, Dim, If, Load, Store)
"""Operations of loops whose sums are found: those that neither raise nor print, and no loops."""

Place = tuple[Value, tuple[object, ...]]
"""An array, and the indices of an element: values, or constants."""


def add_after_loops(function: Function) -> Function:
    """The function with such sums in scalars."""
    return changed(function, body=_Sums(function).block(function.body))


class _Sums:
    def __init__(self, function: Function) -> None:
        self.sites: dict[Value, Sites] = points_to(function)
        self.wanted: dict[Place, Store] = {}
        """The elements of the loop that is being written."""
        self.constants = {o.out: o.value for o in walk(function.body) if isinstance(o, Const)}

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Loop) and (places := self.places(operation)):
                operations += self.written(operation, places)
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    # -- which sums --------------------------------------------------------------------------------------------------

    def places(self, loop: Loop) -> dict[Place, Store]:
        """The elements that branches of the loop add to, each with one of the additions."""
        inside = walk(loop.body)
        if not loop.counted or loop.threads or not all(isinstance(o, _PLAIN) for o in inside):
            return {}
        own = {v for o in (loop, *inside) for v in (*o.defines(), *o.inner())}
        directly = set(loop.body.operations)
        found: dict[Place, Store] = {}
        for store in inside:
            if isinstance(store, Store) and store not in directly and self.is_sum(store, inside, own):
                found.setdefault(self.place(store), store)
        return found

    def place(self, store: Store) -> Place:
        return store.array, tuple([self.constants.get(i, i) for i in store.indices])

    def is_sum(self, store: Store, inside: list[Operation], own: set[Value]) -> bool:
        """Whether a store adds to the same element in every iteration, and the loop only adds to the array."""
        if not store.adds or store.atomic or store.claims or not is_float(store.value.type):
            return False
        if store.array in own or any(i in own and i not in self.constants for i in store.indices):
            return False
        if store.value.type != element_type(store.array.array):
            return False
        mine = self.memory(store.array)
        for other in inside:
            is_read = isinstance(other, Load) or (isinstance(other, Store) and not other.adds)
            if is_read and isinstance(other, Load | Store) and self.memory(other.array) & mine:
                return False
        return True

    # -- how they are written ----------------------------------------------------------------------------------------

    def written(self, loop: Loop, places: dict[Place, Store]) -> list[Operation]:
        """The loop with the sums in scalars, and the operations before and after it."""
        before: list[Operation] = []
        sums: dict[Place, Value] = {}
        inits: list[Value] = []
        for place, store in places.items():
            names = [str(self.constants.get(i, own_name(i))) for i in store.indices]
            sums[place] = Value(store.value.type, element_name(store.array.name, names) or store.array.name)
            inits.append(Value(store.value.type))
            before.append(Const(inits[-1], 0.0, span=store.span))
        outs = [Value(v.type, v.name) for v in sums.values()]
        self.wanted = places
        body, last = self.rewritten(loop.body, sums)
        count = len(loop.params)
        yields = (*body.yields[:count], *last.values(), *body.yields[count:])
        whole = replace(
            loop,
            params=(*loop.params, *sums.values()),
            inits=(*loop.inits, *inits),
            outs=(*loop.outs, *outs),
            body=replace(body, yields=yields),
        )
        after: list[Operation] = []
        for (place, store), init, out in zip(places.items(), inits, outs, strict=True):
            after += self.addition(place, store, init, out)
        return [*before, whole, *after]

    def addition(self, place: Place, store: Store, zero: Value, total: Value) -> list[Operation]:
        made: list[Operation] = []
        indices: list[Value] = []
        for index, known in zip(store.indices, place[1], strict=True):
            indices.append(index if known is index else Value(index.type))
            if known is not index:
                made.append(Const(indices[-1], known, span=store.span))
        condition = Value(BOOL)
        made.append(Apply(condition, "not_equal", (total, zero), span=store.span))
        added = replace(store, indices=tuple(indices), value=total)
        return [*made, If(condition, Block((added,)), Block(), span=store.span)]

    def rewritten(self, block: Block, sums: dict[Place, Value]) -> tuple[Block, dict[Place, Value]]:
        """The block with what it adds in numbers, and these numbers: `sums` at first, as far as they are there."""
        sums = dict(sums)
        operations: list[Operation] = []
        for operation in block.operations:
            added: dict[Place, Value] = {}
            if isinstance(operation, Store) and operation.adds and self.place(operation) in self.wanted:
                added[self.place(operation)] = operation.value
            elif isinstance(operation, If):
                branch, added = self.branch(operation)
                operations.append(branch)
            else:
                operations.append(operation)
            for place, value in added.items():
                if place in sums:
                    total = Value(value.type, sums[place].name)
                    operations.append(Apply(total, "add", (sums[place], value), span=operation.span))
                    value = total
                sums[place] = value
        return changed(block, operations=tuple(operations)), sums

    def branch(self, operation: If) -> tuple[If, dict[Place, Value]]:
        """The branch, and what it adds: numbers that are zero on a side that adds nothing."""
        then, of_then = self.rewritten(operation.then, {})
        orelse, of_orelse = self.rewritten(operation.orelse, {})
        added = {p: Value(v.type, v.name) for p, v in (of_then | of_orelse).items()}
        sides = [self.yielding(block, of, added) for block, of in ((then, of_then), (orelse, of_orelse))]
        return replace(operation, then=sides[0], orelse=sides[1], outs=(*operation.outs, *added.values())), added

    def yielding(self, block: Block, amounts: dict[Place, Value], added: dict[Place, Value]) -> Block:
        """The block, which yields what it adds to each of the elements."""
        zeros = {p: Const(Value(v.type), 0.0) for p, v in added.items() if p not in amounts}
        yields = [amounts[p] if p in amounts else zeros[p].out for p in added]
        return changed(block, operations=(*block.operations, *zeros.values()), yields=(*block.yields, *yields))
