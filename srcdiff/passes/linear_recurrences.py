"""The part of a linear recurrence that needs no earlier element is computed first, in a loop that vectorises.

    for j in range(1, n):                        for j in range(1, n):
        u[j] = 0.25 * (u[j - 1] + a[j] + b[j])       part[j - 1] = 0.25 * (a[j] + b[j])
                                          =>     for j in range(1, n):
                                                     u[j] = part[j] + 0.25 * u[j - 1]

An element waits for the one before it, and all additions of its formula wait with it. Afterwards it waits for one
product and one addition. The array of parts is a row; loops inside of others use it again and again, and
only those are changed. Sums are added in another order, as compiled code may do anyway.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from srcdiff.analyses.access_relations import Affine, affine, never_written_before
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Const,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    Store,
    Value,
    changed,
)
from srcdiff.ir.types import FLOAT, element_type
from srcdiff.quick_dataclasses import dataclass

_LEAST_LOADS = 3
"""How many elements the first part reads, at least, so that it is worth a loop of its own."""


def split_linear_recurrences(function: Function) -> Function:
    return changed(function, body=_Splitting(function).block(function.body))


@dataclass(frozen=True, slots=True)
class _Recurrence:
    store: Store
    earlier: Load


class _Splitting:
    def __init__(self, function: Function) -> None:
        self.structure: Structure = structure_of(function)
        self.sites = points_to(function)
        self.builder = Builder()
        self.builder.constants = dict(self.structure.constants)

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            found = self.recurrence(operation, block) if isinstance(operation, Loop) else None
            if found is not None and isinstance(operation, Loop):
                operations += self.split(operation, found)
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    # -- which loops -------------------------------------------------------------------------------------------------

    def recurrence(self, loop: Loop, block: Block) -> _Recurrence | None:
        """The store of an innermost loop inside another one, and the load of the element stored before."""
        around = self.structure.loops_around(block)
        if not around or not loop.counted or loop.params or loop.count is not None or loop.bounds is None:
            return None
        step = self.structure.constants.get(loop.bounds[2])
        if step != 1 or not all(isinstance(o, Apply | Const | Dim | Load | Store) for o in loop.body.operations):
            return None
        stores = [o for o in loop.body.operations if isinstance(o, Store)]
        if len(stores) != 1 or stores[0].adds or element_type(stores[0].array.array) != FLOAT:
            return None
        store = stores[0]
        loads = [o for o in loop.body.operations if isinstance(o, Load) and self.may_meet(o, store)]
        earlier = [o for o in loads if o.array is store.array and self.is_one_before(o, store, loop)]
        others = [o for o in loads if o not in earlier]
        if len(earlier) != 1 or not all(never_written_before(store, o, around[-1], self.structure) for o in others):
            return None
        found = _Recurrence(store, earlier[0])
        return found if self.is_linear(found, loop) and self.is_large(found, loop) else None

    def may_meet(self, load: Load, store: Store) -> bool:
        first, second = (self.sites.get(x.array, frozenset((x.array,))) for x in (load, store))
        return bool(first & second)

    def is_one_before(self, load: Load, store: Store, loop: Loop) -> bool:
        """Whether a load reads the element that the store wrote in the iteration before."""
        slopes: list[int] = []
        for here, there in zip(store.indices, load.indices, strict=True):
            stored, loaded = affine(here, self.structure), affine(there, self.structure)
            if stored is None or loaded is None or loop.index is None:
                return False
            slopes.append(dict(stored.terms).get(loop.index, 0))
            difference = stored.plus(loaded, -1)
            if difference.terms or difference.constant != slopes[-1]:
                return False
        return sorted(slopes) == [0] * (len(slopes) - 1) + [1]

    def is_linear(self, found: _Recurrence, loop: Loop) -> bool:
        """Whether the stored value is a sum in which the earlier element has a factor that the loop does not change."""
        used = Counter(v for o in loop.body.operations for v in o.uses())
        value, steps = found.store.value, 0
        while value is not found.earlier.out:
            operation = self.structure.definition.get(value)
            if not isinstance(operation, Apply) or used[value] != 1 or self.is_outside(value, loop):
                return False
            dependent = [a for a in operation.args if self.depends(a, found.earlier.out, loop)]
            others = [a for a in operation.args if a not in dependent]
            if len(dependent) != 1 or value.type != FLOAT:
                return False
            match operation.primitive:
                case "add" | "subtract" | "negative":
                    pass
                case "multiply" if all(self.is_outside(a, loop) for a in others):
                    pass
                case _:
                    return False
            value, steps = dependent[0], steps + 1
        return steps > 0 and used[value] == 1

    def depends(self, value: Value, on: Value, loop: Loop) -> bool:
        if value is on:
            return True
        operation = self.structure.definition.get(value)
        return (
            isinstance(operation, Apply)
            and not self.is_outside(value, loop)
            and any(self.depends(a, on, loop) for a in operation.args)
        )

    def is_outside(self, value: Value, loop: Loop) -> bool:
        """Whether a value is there before the loop; constants are."""
        if value in self.structure.constants:
            return True
        return loop not in self.structure.loops_around(self.structure.home.get(value, self.structure.top))

    def is_large(self, found: _Recurrence, loop: Loop) -> bool:
        loads = [o for o in loop.body.operations if isinstance(o, Load) and o is not found.earlier]
        return len(loads) >= _LEAST_LOADS

    # -- two loops ---------------------------------------------------------------------------------------------------

    def split(self, loop: Loop, found: _Recurrence) -> list[Operation]:
        build = self.builder
        with build.block() as made:
            build.span = found.store.span
            length = build.dim(found.store.array, self.axis(found, loop))
            parts = build.alloc("float64", (length,), None, "part")
            self.first_loop(loop, found, parts)
            self.second_loop(loop, found, parts)
        return made

    def axis(self, found: _Recurrence, loop: Loop) -> int:
        """The axis that the loop indexes."""
        places = [affine(i, self.structure) or Affine() for i in found.store.indices]
        return next(k for k, place in enumerate(places) if loop.index in dict(place.terms))

    def first_loop(self, loop: Loop, found: _Recurrence, parts: Value) -> None:
        """Everything but the earlier element, which counts as zero."""
        build, known = self.builder, dict[Value, Value]()
        index = self.counter(loop, known)
        with build.block() as body:
            for operation in loop.body.operations:
                value = operation.out if isinstance(operation, Apply) else None
                if operation in (found.store, found.earlier):
                    continue
                if value is not None and self.depends(value, found.earlier.out, loop):
                    continue
                build.add(cloned(operation, known))
            rest = self.rest(found.store.value, found, loop, known)
            assert rest is not None
            build.store(parts, (self.place(loop, found, known),), rest)
        build.add(replace(loop, index=index, body=Block(tuple(body))))

    def second_loop(self, loop: Loop, found: _Recurrence, parts: Value) -> None:
        build, known = self.builder, dict[Value, Value]()
        index = self.counter(loop, known)
        with build.block() as body:
            for operation in self.computing_places(loop, found):
                build.add(cloned(operation, known))
            part = build.load(parts, (self.place(loop, found, known),))
            build.add(cloned(found.earlier, known))
            factor = self.factor(found.store.value, found, loop, known)
            assert factor is not None
            product = build.apply("multiply", factor, known[found.earlier.out])
            total = build.apply("add", part, product)
            indices = tuple(known.get(i, i) for i in found.store.indices)
            build.span = found.store.span
            build.store(found.store.array, indices, total)
        build.add(replace(loop, index=index, body=Block(tuple(body))))

    def computing_places(self, loop: Loop, found: _Recurrence) -> list[Operation]:
        """The constants of the loop's body, and what the indices of both elements are computed by, in order of text.

        The first loop alone needs what other indices are computed by: they may be loaded.
        """
        needed = {*found.store.indices, *found.earlier.indices}
        chosen = list[Operation]()
        for operation in reversed(loop.body.operations):
            if isinstance(operation, Const) or not needed.isdisjoint(operation.defines()):
                chosen.append(operation)
                needed.update(operation.uses())
        return chosen[::-1]

    def counter(self, loop: Loop, known: dict[Value, Value]) -> Value:
        assert loop.index is not None
        index = Value(loop.index.type, loop.index.name)
        known[loop.index] = index
        return index

    def place(self, loop: Loop, found: _Recurrence, known: dict[Value, Value]) -> Value:
        """The index of the part of an element: the same as that of the element."""
        index = found.store.indices[self.axis(found, loop)]
        return known.get(index, index)

    def rest(self, value: Value, found: _Recurrence, loop: Loop, known: dict[Value, Value]) -> Value | None:
        """The value if the earlier element is zero; None if that value is zero."""
        if value is found.earlier.out:
            return None
        if not self.depends(value, found.earlier.out, loop):
            return known.get(value, value)
        operation = self.structure.definition[value]
        assert isinstance(operation, Apply)
        parts = [self.rest(a, found, loop, known) for a in operation.args]
        match operation.primitive:
            case "negative":
                return self.negated(parts[0])
            case "add":
                return self.sum(*parts)
            case "subtract":
                return self.difference(*parts)
        first, second = parts
        return None if first is None or second is None else self.builder.apply("multiply", first, second)

    def factor(self, value: Value, found: _Recurrence, loop: Loop, known: dict[Value, Value]) -> Value | None:
        """The coefficient of the earlier element in a value; None if the value does not depend on it."""
        if value is found.earlier.out:
            return self.builder.const(1.0)
        if not self.depends(value, found.earlier.out, loop):
            return None
        operation = self.structure.definition[value]
        assert isinstance(operation, Apply)
        parts = [self.factor(a, found, loop, known) for a in operation.args]
        match operation.primitive:
            case "negative":
                return self.negated(parts[0])
            case "add":
                return self.sum(*parts)
            case "subtract":
                return self.difference(*parts)
        first, second = (known.get(a, a) if p is None else p for a, p in zip(operation.args, parts, strict=True))
        return self.builder.apply("multiply", first, second)

    def difference(self, a: Value | None, b: Value | None) -> Value | None:
        if a is None or b is None:
            return a if b is None else self.negated(b)
        return self.builder.apply("subtract", a, b)

    def negated(self, value: Value | None) -> Value | None:
        return None if value is None else self.builder.apply("negative", value)

    def sum(self, a: Value | None, b: Value | None) -> Value | None:
        return b if a is None else a if b is None else self.builder.apply("add", a, b)
