"""Scalar replacement: an element that every iteration of a loop accesses is held in a scalar.

for k in range(j):                           a_ij = 0.0
    a[i, j] -= a[i, k] * a[j, k]     =>      for k in range(j):
                                                 a_ij -= a[i, k] * a[j, k]
                                             a[i, j] += a_ij

No other access of the loop may touch the element (decided by isl). A loop without iterations must not touch it either:
unless the element is known to exist, the result is guarded by a test whether the loop has iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from srcdiff.analyses.access_relations import exists, never_meets, runs
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Comment,
    Const,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    Peek,
    Pop,
    Print,
    Push,
    Raise,
    References,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import INT, Array, element_type, is_kept_by
from srcdiff.ir.words import element as element_name
from srcdiff.ir.words import own_name
from srcdiff.quick_dataclasses import dataclass

Access = Load | Store
Key = tuple[Value, tuple[Value, ...]]


def replace_scalars(function: Function) -> Function:
    """From the innermost loops outwards, as long as there is something to do."""
    while True:
        replacement = _ScalarReplacement(function)
        function = changed(function, body=replacement.block(function.body))
        if not replacement.changed:
            return function


@dataclass(eq=False, slots=True)
class _Element:
    """An element of memory, and its accesses in a loop."""

    array: Value
    indices: tuple[Value, ...]
    name: str
    accesses: list[Access] = field(default_factory=list)

    @property
    def written(self) -> bool:
        return any(isinstance(a, Store) for a in self.accesses)

    @property
    def is_sum(self) -> bool:
        """Whether all that is done is to add to it."""
        return all(isinstance(a, Store) and a.adds for a in self.accesses)


class _ScalarReplacement:
    def __init__(self, function: Function) -> None:
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.changed = False

    def memory(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset((array,)))

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            before = self.changed
            inner = operation.rebuilt(self.block)
            if isinstance(operation, Loop) and isinstance(inner, Loop) and self.changed == before:
                self.loop(operation, block, operations)
            else:
                operations.append(inner)
        return changed(block, operations=tuple(operations))

    def loop(self, loop: Loop, block: Block, into: list[Operation]) -> None:
        """Write the loop, with the elements that can be numbers as numbers."""
        elements = [] if loop.threads else [e for e in self.elements(loop) if self.alone(e, loop)]
        doubtful = [e for e in elements if not self.exists(e, loop, block)]
        if doubtful and runs(loop, self.structure):
            doubtful = []
        if doubtful and (not loop.counted or loop.count is not None or self.condition(loop) is None):
            elements = [e for e in elements if e not in doubtful]
            doubtful = []
        if not elements:
            into.append(loop)
            return
        self.changed = True
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        if not doubtful:
            builder.operations = into
            self.rewrite(loop, loop.outs, elements, builder)
            return
        inside = tuple(Value(v.type, v.name) for v in loop.outs)
        self.rewrite(loop, inside, elements, builder)
        then, builder.operations = Block(tuple(builder.operations), inside), into
        condition = self.condition(loop)
        assert condition is not None
        builder.branch(builder.apply(*condition), then, Block((), loop.inits), loop.outs)

    def condition(self, loop: Loop) -> tuple[str, Value, Value] | None:
        """The comparison that tests whether the loop has an iteration."""
        if loop.bounds is None:
            return None
        start, stop, step = loop.bounds
        known = self.structure.constants.get(step)
        if not isinstance(known, int) or known == 0:
            return None
        return "less" if known > 0 else "greater", start, stop

    # -- which elements ----------------------------------------------------------------------------------------------

    def elements(self, loop: Loop) -> list[_Element]:
        """Elements that are the same in every iteration, as the loop's own statements touch them."""
        found: dict[Key, _Element] = {}
        for operation in loop.body.operations:
            if isinstance(operation, Load | Store):
                key = operation.array, operation.indices
                if all(self.outside(v, loop) for v in (operation.array, *operation.indices)):
                    found.setdefault(key, _Element(*key, self.name(*key))).accesses.append(operation)
        return list(found.values())

    def name(self, array: Value, indices: tuple[Value, ...]) -> str:
        places = [str(self.structure.constants.get(i, own_name(i))) for i in indices]
        return element_name(array.name, places) or array.name

    def outside(self, value: Value, loop: Loop) -> bool:
        """Whether a value is the same in every iteration, and can be had before the loop."""
        home = self.structure.home.get(value, self.structure.top)
        if value in self.structure.constants or loop not in self.structure.loops_around(home):
            return True
        operation = self.structure.definition.get(value)
        plain = isinstance(operation, Apply) and operation.primitive in ("add", "subtract") and value.type == INT
        return plain and all(self.outside(v, loop) for v in operation.uses()) if operation is not None else False

    def alone(self, element: _Element, loop: Loop) -> bool:
        """Whether nothing else in the loop touches the element, and it is worth while."""
        mine = self.memory(element.array)
        stored = [a.value.scalar for a in element.accesses if isinstance(a, Store)]
        if not all(is_kept_by(element.array.array, type_) for type_ in stored):
            return False
        others: list[Access] = []
        for operation in (o for b in loop.blocks() for o in walk(b)):
            if isinstance(operation, Load | Store):
                if operation not in element.accesses and self.memory(operation.array) & mine:
                    others.append(operation)
            elif not self.harmless(operation, element, mine):
                return False
        if element.is_sum:  # the order of additions does not matter
            others = [a for a in others if not (isinstance(a, Store) and a.adds)]
        writers = [a for a in others if isinstance(a, Store)]
        if not element.written and not writers:
            return False  # LLVM sees that itself
        return all(
            never_meets(a, element.array, element.indices, self.structure)
            for a in (others if element.written else writers)
        )

    def harmless(self, operation: Operation, element: _Element, mine: Sites) -> bool:
        """Whether an operation other than a load or store does not touch the element."""
        if isinstance(operation, Call):
            return False
        if isinstance(operation, Raise | Print) and element.written:
            return False  # it may read earlier stores
        if isinstance(operation, References | Dim | Alloc | Const | Comment | Push | Pop | Peek | If | Loop):
            return True  # references, which touch nothing
        return not any(self.memory(v) & mine for v in operation.uses() if isinstance(v.type, Array))

    # -- whether there is such an element when the loop does not run -------------------------------------------------

    def exists(self, element: _Element, loop: Loop, block: Block) -> bool:
        return self.touched_beside(element, loop, block) or exists(
            element.array, element.indices, self.structure, block
        )

    def touched_beside(self, element: _Element, loop: Loop, block: Block) -> bool:
        """Whether the statements around the loop touch the element in any case."""
        place = block.operations.index(loop)
        for operation in _until_it_may_raise(block.operations[place + 1 :]):
            if _is_access_of(operation, element):
                return True
        return any(_is_access_of(o, element) for o in block.operations[:place])

    # -- the loop ----------------------------------------------------------------------------------------------------

    def rewrite(self, loop: Loop, outs: tuple[Value, ...], elements: list[_Element], builder: Builder) -> None:
        """The loop with these elements in scalars, and the operations before and after it."""
        params, inits, results = list(loop.params), list(loop.inits), list(outs)
        current: dict[Key, Value] = {}
        of_access = {a: e for e in elements for a in e.accesses}
        places = {e: tuple(self.here(i, loop, builder) for i in e.indices) for e in elements}
        for element in elements:
            key, type_ = (element.array, element.indices), element_type(element.array.array)
            if element.is_sum:
                init = builder.const(0.0 if type_.dtype.startswith("float") else 0, type_)
            else:
                init = builder.load(element.array, places[element], name=element.name)
            current[key] = init
            if element.written:
                current[key] = Value(type_, element.name)
                params.append(current[key])
                inits.append(init)
                results.append(Value(type_, element.name))
        known: dict[Value, Value] = {}

        def now(value: Value) -> Value:
            return known.get(value, value)

        with builder.block() as operations:
            for operation in loop.body.operations:
                if operation not in of_access:
                    operations.append(operation.replaced(now).rebuilt(lambda block: substituted(block, now)))
                    continue
                assert isinstance(operation, Load | Store)
                key = operation.array, operation.indices
                if isinstance(operation, Load):
                    known[operation.out] = current[key]
                    continue
                value = now(operation.value)
                builder.span = operation.span
                current[key] = builder.apply("add", current[key], value) if operation.adds else value
            builder.span = None
        yields = [now(v) for v in loop.body.yields[: len(loop.params)]]
        yields += [current[e.array, e.indices] for e in elements if e.written]
        stop = tuple(now(v) for v in loop.body.yields[len(loop.params) :])
        body = Block(tuple(operations), (*yields, *stop))
        builder.add(replace(loop, params=tuple(params), inits=tuple(inits), body=body, outs=tuple(results)))
        written = [e for e in elements if e.written]
        for element, out in zip(written, results[len(outs) :], strict=True):
            atomic = any(isinstance(a, Store) and a.atomic for a in element.accesses)
            builder.add(Store(element.array, places[element], out, element.is_sum, atomic))

    def here(self, index: Value, loop: Loop, builder: Builder) -> Value:
        """The index where the loop begins: what its body computes is not known there."""
        constants, operation = self.structure.constants, self.structure.definition.get(index)
        if index in constants:
            return builder.const(constants[index], index.scalar)
        home = self.structure.home.get(index, self.structure.top)
        if isinstance(operation, Apply) and loop in self.structure.loops_around(home):
            return builder.apply(operation.primitive, *(self.here(a, loop, builder) for a in operation.args))
        return index


def _is_access_of(operation: Operation, element: _Element) -> bool:
    return (
        isinstance(operation, Load | Store)
        and operation.array is element.array
        and operation.indices == element.indices
    )


def _until_it_may_raise(operations: tuple[Operation, ...]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, Raise | Call) or any(
            isinstance(o, Raise | Call) for b in operation.blocks() for o in walk(b)
        ):
            return
        yield operation
