"""Loop distribution: functions that need nothing from earlier iterations leave a serial loop, for one that vectorises.

for j in range(n):                           for j in range(n):
    c = np.cos(angle[j])                         kept_c[j] = np.cos(angle[j])
    kept_c[j] = c                 =>         for j in range(n):
    x = c * x + step[j]                          x = kept_c[j] * x + step[j]

Each iteration of the loop waits for the one before it, but its cosines do not. They are stored for the reverse sweep
anyway, so the first loop needs no memory of its own.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.access_relations import iterations_are_apart
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Comment,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import element_type, is_inexact

_VECTORISED = {
    *("sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "power"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
}
"""Functions that compiled loops compute for several elements at once."""
_QUIET = (Alloc, Apply, Comment, Const, Copy, Dim, If, Load, Loop, References, Store)
"""Operations that neither raise nor print."""


def distribute_loops(function: Function) -> Function:
    """The function with two loops in place of some serial ones."""
    if not any(isinstance(o, Loop) and o.params for o in walk(function.body)):
        return function
    return changed(function, body=_Distribution(function).block(function.body))


class _Distribution:
    def __init__(self, function: Function) -> None:
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            made: tuple[Operation, ...] = (operation,)
            if isinstance(operation, Loop) and self.is_serial(operation):
                made = self.distributed(operation)
            operations += [o.rebuilt(self.block) if o is operation else o for o in made]
        return changed(block, operations=tuple(operations))

    def is_serial(self, loop: Loop) -> bool:
        """Whether an iteration needs more of the one before than sums, and all iterations run without a sound."""
        if not loop.counted or loop.index is None or loop.count is not None:
            return False
        if not all(isinstance(o, _QUIET) for o in walk(loop.body)):
            return False
        own = {o.out: o for o in loop.body.operations if isinstance(o, Apply)}
        for param, following in zip(loop.params, loop.body.yields, strict=True):
            operation = own.get(following)
            is_sum = operation is not None and operation.primitive in ("add", "subtract") and param in operation.args
            if is_inexact(param.type) and not is_sum:
                return True
        return False

    def distributed(self, loop: Loop) -> tuple[Operation, ...]:
        """The loop that computes what needs no earlier iteration, if there is any, and the rest of the loop."""
        independent = self.independent(loop)
        loads: dict[Operation, Load] = {}
        stores: list[Store] = []
        for store in loop.body.operations:
            if isinstance(store, Store) and (made := self.moved(store, loop, independent)) is not None:
                stores.append(store)
                loads[made] = Load(made.out, store.array, store.indices, store.claims, span=made.span)
        if not stores:
            return (loop,)
        needed, chain = set[Value](), list[Operation]()
        for operation in reversed(loop.body.operations):
            if operation in stores or not needed.isdisjoint(operation.defines()):
                needed.update(operation.uses())
                chain.append(operation)
        assert loop.index is not None
        index = Value(loop.index.type, loop.index.name)
        known = {loop.index: index}
        body = Block(tuple([cloned(o, known) for o in reversed(chain)]))
        first = replace(loop, index=index, params=(), inits=(), outs=(), body=body)
        rest = [loads.get(o, o) for o in loop.body.operations if o not in stores]
        return first, replace(loop, body=Block(tuple(rest), loop.body.yields))

    def independent(self, loop: Loop) -> set[Operation]:
        """The operations of the body that neither need an earlier iteration nor memory that the loop writes."""
        written: set[Value] = set()
        for operation in walk(loop.body):
            if isinstance(operation, Store):
                written |= self.sites.get(operation.array, frozenset((operation.array,)))
        found: set[Operation] = set()
        dependent = set(loop.params)
        for operation in loop.body.operations:
            is_plain = isinstance(operation, Apply | Const | Dim | Load | References)
            if isinstance(operation, Load):
                is_plain = not self.sites.get(operation.array, frozenset((operation.array,))) & written
            if is_plain and dependent.isdisjoint(operation.uses()):
                found.add(operation)
            else:
                dependent.update(operation.defines())
        return found

    def moved(self, store: Store, loop: Loop, independent: set[Operation]) -> Apply | None:
        """The function whose result a store keeps, if both can move before the loop."""
        made = self.structure.definition.get(store.value)
        if not isinstance(made, Apply) or made.primitive not in _VECTORISED or made not in independent:
            return None
        if store.adds or element_type(store.array.array) != made.out.type:
            return None
        start = self.structure.start
        for value in (store.array, *store.indices):
            definition = self.structure.definition.get(value)
            is_inside = self.structure.home.get(value) is loop.body and value is not loop.index
            if is_inside and (definition not in independent or start[definition] > start[made]):
                return None
        if not iterations_are_apart(loop, store, store, self.structure):
            return None
        own = self.sites.get(store.array, frozenset((store.array,)))
        for other in walk(loop.body):
            if not isinstance(other, Load | Store | Copy) or other is store:
                continue
            if self.sites.get(other.array, frozenset((other.array,))) & own:
                return None
        return made
