"""Element sinking: compute an element where an index or a branch selects it, and not all elements before.

    s = np.empty(n)
    for i in range(n):
        s[i] = np.sqrt(v[i])        becomes        for k in range(m):
    for k in range(m):                                 total += np.sqrt(v[found[k]])
        total += s[found[k]]

Then elements that are not selected are not differentiated. Otherwise their derivatives would be multiplied by zero, and
where v is 0, zero times infinity is NaN. So the pass applies where a derivative can be infinite and not all elements
are read anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.analyses.activity import Activity, activity
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewAxis,
    Operation,
    Peek,
    Pop,
    Push,
    Slice,
    Store,
    Value,
    View,
    changed,
    walk,
)
from srcdiff.ir.types import Array, is_kept_by
from srcdiff.passes.code_sinking import is_not_differentiated
from srcdiff.quick_dataclasses import dataclass

_MOST_READERS = 3  # each of them computes the element
# Primitives with a derivative that is infinite at some finite arguments.
_SINGULAR = frozenset({"sqrt", "cbrt", "divide", "reciprocal", "power", "float_power", "log", "log2", "log10", "log1p"})
_SINGULAR |= {"arcsin", "arccos", "arccosh", "arctanh", "arctan2", "hypot"}

Step = Apply | Load | Const
Bounds = tuple[Value, Value, Value]


def sink_elements(function: Function, inputs: Iterable[Value]) -> Function:
    """The function with elements that depend on the inputs computed where they are picked."""
    if not any(isinstance(o, Apply) and o.primitive in _SINGULAR for o in walk(function.body)):
        return function
    outputs = [*function.body.yields, *(p for p in function.params if isinstance(p.type, Array))]
    active = activity(function, inputs, outputs, points_to(function))
    constants = {o.out: o.value for o in walk(function.body) if isinstance(o, Const)}
    return changed(function, body=_Picking(active, constants).block(function.body))


@dataclass(frozen=True, slots=True)
class _Made:
    """An array that a loop nest fills: every element is computed from its indices by these operations."""

    array: Value
    nest: tuple[Loop, ...]
    steps: tuple[Step, ...]
    store: Store


class _Picking:
    def __init__(self, active: Activity, constants: dict[Value, Any]) -> None:
        self.active, self.constants = active, constants

    def block(self, block: Block) -> Block:
        new = [
            o for o in block.operations if isinstance(o, Alloc) and o.like is None and o.shape and o.out in self.active
        ]
        for position, operation in enumerate(block.operations):
            for array in new:
                made = self.made(array, operation) if isinstance(operation, Loop) else None
                rest = Block(block.operations[position:], block.yields)
                if made is not None and self.stays(made, rest) and self.is_picked(made, block):
                    views = {o.out: o for o in walk(rest) if isinstance(o, View) and o.array is array.out}
                    loads = {o for a in (array.out, *views) for o in _loads(a, rest) if not _only_compared(o, rest)}
                    computed = self.computed(rest, made, loads, views, self.never_negative(block))
                    return self.block(changed(block, operations=block.operations[:position] + computed.operations))
        return changed(block, operations=tuple(o.rebuilt(self.block) for o in block.operations))

    # -- filled arrays-----------------------------------------------------------------------------------------------

    def made(self, array: Alloc, loop: Loop) -> _Made | None:
        """The array, if the loop is a nest that writes all its elements, and an infinite derivative is in there."""
        nest: list[Loop] = []
        inside: list[Operation] = []
        for size in array.shape:
            if nest:
                loops = [o for o in nest[-1].body.operations if isinstance(o, Loop)]
                if len(loops) != 1:
                    return None
                loop = loops[0]
            if not loop.counted or loop.inits or not self.is_whole(loop.bounds, size):
                return None
            nest.append(loop)
            inside += loop.body.operations
        stores = [o for o in nest[-1].body.operations if isinstance(o, Store) and o.array is array.out]
        if len(stores) != 1 or stores[0].adds or stores[0].indices != tuple(n.index for n in nest):
            return None
        if not is_kept_by(array.out.array, stores[0].value.scalar):
            return None
        needed, steps = {stores[0].value}, list[Step]()
        for operation in reversed(inside):
            if needed & set(operation.defines()):
                if not isinstance(operation, Apply | Load | Const):
                    return None
                needed |= set(operation.uses())
                steps.append(operation)
        if not any(self.is_singular(o) for o in steps):
            return None
        return _Made(array.out, tuple(nest), tuple(reversed(steps)), stores[0])

    def is_singular(self, step: Step) -> bool:
        """Whether it may have an infinite derivative."""
        match step:
            case Apply(primitive="divide", args=(_, by)):
                return by in self.active
            case Apply(primitive="power" | "float_power", args=(_, exponent)):
                return exponent not in self.constants or self.constants[exponent].real < 1
        return isinstance(step, Apply) and step.primitive in _SINGULAR

    def is_whole(self, bounds: Bounds | None, size: Value) -> bool:
        """Whether a loop counts all places of an axis."""
        if bounds is None or self.constants.get(bounds[0]) != 0 or self.constants.get(bounds[2]) != 1:
            return False
        return bounds[1] is size or (size in self.constants and self.constants[size] == self.constants.get(bounds[1]))

    def stays(self, made: _Made, rest: Block) -> bool:
        """Whether an element would be the same later: nothing is written that it is computed from."""
        if any(isinstance(o, Call | Custom | Grow | Push | Pop | Peek) for o in walk(rest)):
            return False
        sites, written = self.active.sites, set[Value]()
        new = {v for o in walk(rest) if isinstance(o, Alloc | Copy | Library) for v in o.defines()}
        for operation in walk(rest):
            if isinstance(operation, Store):
                memory = sites.get(operation.array, frozenset((operation.array,)))
                written |= set() if memory <= new else memory  # later loads see other values
        return not any(sites.get(o.array, frozenset((o.array,))) & written for o in made.steps if isinstance(o, Load))

    # -- selections -------------------------------------------------------------------------------------------------

    def is_picked(self, made: _Made, block: Block) -> bool:
        """Whether the array is read only by elements, few times, and not all of it is differentiated."""
        operations, from_front = walk(block), self.never_negative(block)
        views = {o.out: o for o in operations if isinstance(o, View) and o.array is made.array}
        arrays = {made.array, *views}
        yields = [*block.yields, *(v for o in operations for b in o.blocks() for v in b.yields)]
        read = (Load, Dim, View)
        others = [o for o in operations if arrays & set(o.uses()) and not isinstance(o, read) and o is not made.store]
        others += [o for o in operations if isinstance(o, View) and o.array in views]
        if others or arrays & set(yields) or any(_loads(a, made.nest[0].body) for a in arrays):
            return False
        if not all(self.is_part(view, from_front) for view in views.values()):
            return False
        reads = [r for r in _surrounded(block, arrays) if not _only_compared(r[0], block)]
        chosen = {*self.constants, *(o.out for o in operations if isinstance(o, Load))}
        counted = 0
        for load, around, is_certain in reads:
            if len(around) > len(made.nest):  # deeper in loops, it would be computed too often
                return False
            if not (from_front if load.array in views else from_front | chosen).issuperset(load.indices):
                return False
            if is_certain and not (load.array is made.array and chosen & set(load.indices)):
                counted += 1
                bounds = {loop.index: loop.bounds for loop in around if loop.counted}
                if load.array is made.array and self.takes_all(load, bounds, made):
                    return False
        return 0 < len(reads) <= (1 if counted else _MOST_READERS)

    def takes_all(self, load: Load, bounds: dict[Value | None, Bounds | None], made: _Made) -> bool:
        sizes = [loop.bounds[1] for loop in made.nest if loop.bounds is not None]
        return all(self.is_whole(bounds.get(i), size) for i, size in zip(load.indices, sizes, strict=True))

    def is_part(self, view: View, from_front: set[Value]) -> bool:
        """Whether the view covers only a part, at a known place."""
        for item in view.items:
            if isinstance(item, Slice):
                step = 1 if item.step is None else self.constants.get(item.step)
                known = item.start is None or item.start in from_front or item.start in self.constants
                if not known or not (isinstance(step, int) and step > 0):
                    return False
        return any(isinstance(i, Index) or (isinstance(i, Slice) and i.parts()) for i in view.items)

    def never_negative(self, block: Block) -> set[Value]:
        """Values that are certainly nonnegative: constants, counters, their sums, elements of arrays of counters."""
        operations = walk(block)
        found = {v for v, c in self.constants.items() if isinstance(c, int) and c >= 0}
        for o in operations:
            if isinstance(o, Loop) and o.index is not None and o.bounds is not None and self.counts(o.bounds, found):
                found.add(o.index)
            if isinstance(o, Apply) and o.primitive in ("add", "multiply") and found.issuperset(o.args):
                found.add(o.out)
        new = {o.out for o in operations if isinstance(o, Alloc) and (o.fill is None or o.fill in found)}
        new -= {v for o in operations if not isinstance(o, Load | Store | Dim) for v in o.uses()}
        new -= {v for o in operations for b in o.blocks() for v in b.yields} | set(block.yields)
        new -= {o.array for o in operations if isinstance(o, Store) and (o.adds or o.value not in found)}
        return found | {o.out for o in operations if isinstance(o, Load) and o.array in new}

    def counts(self, bounds: Bounds, found: set[Value]) -> bool:
        """Whether a loop never counts below zero."""
        last, step = self.constants.get(bounds[1]), self.constants.get(bounds[2])
        if not isinstance(step, int) or step > 0:
            return isinstance(step, int) and bounds[0] in found
        return isinstance(last, int) and last >= -1

    # -- in its place ------------------------------------------------------------------------------------------------

    def computed(
        self, block: Block, made: _Made, loads: set[Load], views: dict[Value, View], from_front: set[Value]
    ) -> Block:
        """The block with the steps in place of these loads."""
        build = Builder()
        for operation in block.operations:
            if isinstance(operation, Load) and operation in loads:
                self.compute(operation, made, views.get(operation.array), build, from_front)
            else:
                build.add(operation.rebuilt(lambda inner: self.computed(inner, made, loads, views, from_front)))
        return changed(block, operations=tuple(build.operations))

    def compute(self, load: Load, made: _Made, view: View | None, build: Builder, from_front: set[Value]) -> None:
        known: dict[Value, Value] = {}
        places = load.indices if view is None else self.in_whole(view, load.indices, made, build)
        for loop, place in zip(made.nest, places, strict=True):
            assert loop.index is not None and loop.bounds is not None
            known[loop.index] = place
            if view is None and place not in from_front:
                from_end = build.apply("less", place, build.const(0))
                known[loop.index] = build.apply("where", from_end, build.apply("add", place, loop.bounds[1]), place)
        for step in made.steps:
            out = load.out if step.out is made.store.value else Value(step.out.type, step.out.name)
            build.add(replace(step.replaced(lambda v: known.get(v, v)), out=out, span=load.span))  # type: ignore[call-arg]
            known[step.out] = out

    def in_whole(self, view: View, indices: Sequence[Value], made: _Made, build: Builder) -> list[Value]:
        """The place in an array of a place in a view of it."""
        places, given = list[Value](), iter(indices)
        for item in view.items:
            match item:
                case Index(value=value):
                    places.append(value)
                case Slice(start=start, step=step):
                    place = next(given)
                    place = place if step is None else build.apply("multiply", place, step)
                    bounds = made.nest[len(places)].bounds
                    if start is not None and self.constants.get(start, 0) < 0 and bounds is not None:  # from the end
                        start = build.apply("maximum", build.apply("add", bounds[1], start), build.const(0))
                    places.append(place if start is None else build.apply("add", place, start))
                case NewAxis():
                    next(given)
        return [*places, *given]


def _loads(array: Value, block: Block) -> list[Load]:
    return [o for o in walk(block) if isinstance(o, Load) and o.array is array]


def _surrounded(
    block: Block, arrays: set[Value], around: tuple[Loop, ...] = (), is_certain: bool = True
) -> list[tuple[Load, tuple[Loop, ...], bool]]:
    """The loads from the arrays, each with the loops around it, and whether no branch is."""
    found: list[tuple[Load, tuple[Loop, ...], bool]] = []
    for operation in block.operations:
        if isinstance(operation, Load) and operation.array in arrays:
            found.append((operation, around, is_certain))
        inside = (*around, operation) if isinstance(operation, Loop) else around
        for inner in operation.blocks():
            found += _surrounded(inner, arrays, inside, is_certain and not isinstance(operation, If))
    return found


def _only_compared(load: Load, block: Block) -> bool:
    """Whether the loaded value is not differentiated."""
    for operation in walk(block):
        if load.out in operation.uses() and not is_not_differentiated(operation, load.out, set()):
            return False
        if any(load.out in inner.yields for inner in operation.blocks()):
            return False
    return load.out not in block.yields
