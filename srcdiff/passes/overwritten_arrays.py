"""Overwritten arrays: an array that every iteration of a loop overwrites becomes a new array in each iteration.

for t in range(steps):                       for t in range(steps):
    for i in range(1, n - 1):                    new = np.empty(n)
        v[i] = f(u[i - 1], u[i])                 new[0], new[n - 1] = u[0], u[n - 1]
    for i in range(1, n - 1):     =>             for i in range(1, n - 1):
        u[i] = v[i]                                  new[i] = f(u[i - 1], u[i])
                                                 u = new

The old values remain, so the reverse sweep reads them directly: they are neither saved before they are overwritten nor
restored. The few elements at the borders that the iteration does not change are copied. A copy of another new array of
the iteration that is not changed is replaced by that array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from srcdiff.analyses.access_relations import fills, leaves_border, never_written_before
from srcdiff.analyses.dependence import dependence_of
from srcdiff.diagnostics import Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Dim,
    Function,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Substitution,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import INT, is_float
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.dead_stores import remove_dead_stores
from srcdiff.passes.loop_fusion import fuse
from srcdiff.passes.simplify import simplify
from srcdiff.quick_dataclasses import dataclass

BORDER = 2
"""How many elements at each end of an axis an iteration may leave as they are."""


def rename_overwritten(function: Function, stay: Iterable[Value] = ()) -> Function:
    """The function with new arrays in its loops at top level; those in `stay` are left as they are."""
    renamed, kept = function, set(stay)
    while (found := next(_Finder(renamed, kept).all(), None)) is not None:
        renamed = _renamed(renamed, found)
    if renamed is function:
        return function
    renamed = fuse(elide_copies(_cleaned(renamed)))
    return _cleaned(remove_dead_stores(_cleaned(renamed)))


def _cleaned(function: Function) -> Function:
    return simplify(eliminate_common_subexpressions(function, ()))


# -- which arrays ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Overwritten:
    """An array that the operations from `first` to `last` of a loop's body overwrite, but for its border."""

    array: Value
    loop: Loop
    first: int
    last: int
    shape: tuple[Value, ...]
    border: int
    is_apart: bool
    """Whether no store reaches the border."""
    span: Span | None


class _Finder:
    def __init__(self, function: Function, stay: set[Value]) -> None:
        self.function, self.stay = function, stay
        self.dependence = dependence_of(function)
        self.structure = self.dependence.structure
        read = {v for o in walk(function.body) if not isinstance(o, Dim) for v in _all_uses(o)} | {
            *function.body.yields
        }
        self.names: dict[Value, int] = {}
        """The number of references that read or write the memory; others read only its shape."""
        for reference, sites in self.dependence.sites.items():
            for site in sites:
                self.names[site] = self.names.get(site, 0) + (reference in read or reference is site)

    def all(self) -> Iterator[_Overwritten]:
        for array, loop in self.candidates():
            found = self.overwritten(array, loop)
            if found is not None:
                yield found

    def candidates(self) -> Iterator[tuple[Value, Loop]]:
        """Arrays that loops at top level write into."""
        for operation in self.function.body.operations:
            if isinstance(operation, Loop) and operation.counted:
                stored = dict.fromkeys(o.array for o in walk(operation.body) if isinstance(o, Store))
                yield from ((array, operation) for array in stored if self.is_private(array))

    def is_private(self, array: Value) -> bool:
        """Whether it is an array of floats that was made before the loop, and has one name."""
        definition = self.structure.definition.get(array)
        if array in self.stay or not isinstance(definition, Alloc | Copy) or self.names[array] > 1:
            return False
        is_old = self.structure.home[array] is self.structure.top
        return is_old and is_float(array.type) and array.array.rank > 0 and not getattr(definition, "place", "")

    def overwritten(self, array: Value, loop: Loop) -> _Overwritten | None:
        operations = loop.body.operations
        places = [k for k, o in enumerate(operations) if any(x.array is array for x in _stores(o))]
        first, last = places[0], places[-1]
        segment = operations[first : last + 1]
        stores = [s for o in segment for s in _stores(o) if s.array is array]
        shape = sizes_before(self.function, array, loop)
        if shape is None or any(s.adds for s in stores) or not self.reads_old_values(array, segment, stores, loop):
            return None
        certain = [s for o in segment for s in certain_stores(o, array)]
        is_large = any(len(self.loops_inside(s, loop)) >= array.array.rank for s in certain)
        for border in range(BORDER + 1 if is_large else 1):
            if fills(certain, shape, self.structure, loop.body, border):
                is_apart = leaves_border(stores, shape, self.structure, loop.body, border)
                return _Overwritten(array, loop, first, last, shape, border, is_apart, stores[-1].span)
        return None

    def loops_inside(self, store: Store, loop: Loop) -> list[Loop]:
        """The loops around a store that an iteration of another runs through; those of constant length do not count."""
        loops = self.structure.loops_around(self.structure.block_of[store])
        constants = self.structure.constants
        return [x for x in loops[loops.index(loop) + 1 :] if x.bounds and not all(b in constants for b in x.bounds)]

    def reads_old_values(self, array: Value, segment: Sequence[Operation], stores: list[Store], loop: Loop) -> bool:
        """Whether the operations read only elements of the array that the iteration has not written yet."""
        for operation in segment:
            for inner in (operation, *(o for b in operation.blocks() for o in walk(b))):
                if isinstance(inner, Dim | Store | References) or array not in inner.uses():
                    continue
                if not isinstance(inner, Load):
                    return False
                if not all(never_written_before(s, inner, loop, self.structure) for s in stores):
                    return False
        return True


def sizes_before(function: Function, array: Value, before: Operation) -> tuple[Value, ...] | None:
    """The lengths of an array, by integers at top level that are there before an operation."""
    lengths = dependence_of(function).lengths
    sizes = lengths.named(function, before)
    keys = [lengths.of(array, axis) for axis in range(array.array.rank)]
    return tuple(sizes[key] for key in keys) if all(key in sizes for key in keys) else None


def _all_uses(operation: Operation) -> tuple[Value, ...]:
    return (*operation.uses(), *(v for b in operation.blocks() for v in b.yields))


def _stores(operation: Operation) -> list[Store]:
    inside = (operation, *(o for b in operation.blocks() for o in walk(b)))
    return [o for o in inside if isinstance(o, Store)]


def certain_stores(operation: Operation, array: Value) -> Iterator[Store]:
    """The stores that every iteration executes."""
    if isinstance(operation, Store) and operation.array is array and not operation.adds:
        yield operation
    if isinstance(operation, Loop) and operation.counted:
        for inner in operation.body.operations:
            yield from certain_stores(inner, array)


# -- the new program -------------------------------------------------------------------------------------------------


def _renamed(function: Function, found: _Overwritten) -> Function:
    array, loop = found.array, found.loop
    param, new, out = (Value(array.type, array.name) for _ in range(3))
    before, during, after = _replacing(array, param), _replacing(array, param, new), _replacing(array, new)
    operations = loop.body.operations
    border = copy_border(param, new, found.shape, found.border, found.span) if found.border else ()
    body = (
        Alloc(new, found.shape, span=found.span),
        *(() if found.is_apart else border),
        *before(operations[: found.first]),
        *during(operations[found.first : found.last + 1]),
        *(border if found.is_apart else ()),
        *after(operations[found.last + 1 :]),
    )
    rest = function.body.operations
    place = rest.index(loop)
    renamed = replace(
        loop,
        params=(*loop.params, param),
        inits=(*loop.inits, array),
        outs=(*loop.outs, out),
        body=Block(body, (*loop.body.yields, new)),
    )
    behind = _replacing(array, out)(rest[place + 1 :])
    yields = tuple(out if v is array else v for v in function.body.yields)
    return replace(function, body=Block((*rest[:place], renamed, *behind), yields))


class _replacing:  # noqa: N801 (used like a function)
    """Replacements of an array: one for reads, perhaps another one for writes.

    Reads of the shape still refer to the array.
    """

    def __init__(self, array: Value, read: Value, written: Value | None = None) -> None:
        self.array, self.read, self.written = array, read, read if written is None else written

    def __call__(self, operations: Iterable[Operation]) -> tuple[Operation, ...]:
        return tuple(self.operation(o) for o in operations)

    def operation(self, operation: Operation) -> Operation:
        if isinstance(operation, Store) and operation.array is self.array:
            return replace(operation, array=self.written)
        if not isinstance(operation, Dim) and not (isinstance(operation, Alloc) and operation.like is self.array):
            operation = operation.replaced(self.substitution)
        return operation.rebuilt(self.block)

    def block(self, block: Block) -> Block:
        return changed(block, operations=self(block.operations), yields=tuple(map(self.substitution, block.yields)))

    @property
    def substitution(self) -> Substitution:
        return lambda value: self.read if value is self.array else value


def copy_border(
    source: Value, target: Value, shape: Sequence[Value], width: int, span: Span | None
) -> tuple[Operation, ...]:
    """Loops that copy the first and the last few elements of each axis."""
    build = Builder()
    build.span = span
    zero, one = build.const(0), build.const(1)

    def nest(axis: int, ranges: list[tuple[Value, Value]], indices: tuple[Value, ...]) -> None:
        if axis == len(ranges):
            build.store(target, indices, build.load(source, indices))
            return
        index = Value(INT, "i")
        with build.block() as operations:
            nest(axis + 1, ranges, (*indices, index))
        build.add(Loop(index, (*ranges[axis], one), (), (), None, Block(tuple(operations)), (), span=build.span))

    whole, border = [(zero, size) for size in shape], build.const(width)
    for axis, size in enumerate(shape):
        start = build.apply("minimum", border, size)
        end = build.apply("maximum", start, build.apply("subtract", size, border))
        for part in ((zero, start), (end, size)):
            nest(0, [*whole[:axis], part, *whole[axis + 1 :]], ())
    return tuple(build.operations)


# -- copies ----------------------------------------------------------------------------------------------------------


def elide_copies(function: Function) -> Function:
    """Without arrays that are copies of others, made in the same block, if neither changes afterwards.

    v = np.empty(n)                              v = np.empty(n)
    ...  # fill v                                ...  # fill v
    u = np.empty(n)               =>             s = v[0]
    for i in range(n):
        u[i] = v[i]
    s = u[0]
    """
    return changed(function, body=_Copies(function).block(function.body))


class _Copies:
    def __init__(self, function: Function) -> None:
        self.dependence = dependence_of(function)
        self.structure = self.dependence.structure
        self.writing = [o for o in walk(function.body) if isinstance(o, Store | Call)]
        self.known: dict[Value, Value] = {}

    def block(self, block: Block) -> Block:
        gone: set[Operation] = set()
        for place, operation in enumerate(block.operations):
            copied = self.copied(operation)
            if copied is not None and self.is_needless(*copied, block, place):
                source, target = copied
                self.known[target] = source
                gone |= {operation, self.structure.definition[target]}
        rest = [o.rebuilt(self.block) for o in block.operations if o not in gone]
        made = changed(block, operations=tuple(rest))
        return substituted(made, lambda v: self.known.get(v, v)) if gone else made

    def copied(self, operation: Operation) -> tuple[Value, Value] | None:
        """Source and target of loops that copy an array, all of it."""
        loops, inner = list[Loop](), operation
        while isinstance(inner, Loop) and inner.counted and not inner.params and len(inner.body.operations) == 1:
            loops.append(inner)
            inner = inner.body.operations[0]
        if not isinstance(inner, Loop) or not inner.counted or inner.params:
            return None
        indices = tuple(loop.index for loop in (*loops, inner))
        match inner.body.operations:
            case (Load() as load, Store(adds=False) as store) if load.indices == store.indices == indices:
                shape = self.shape(store.array)
                if store.value is load.out and shape is not None and load.array.type == store.array.type:
                    block = self.structure.block_of[operation]
                    if fills([store], shape, self.structure, block):
                        return load.array, store.array
        return None

    def shape(self, array: Value) -> tuple[Value, ...] | None:
        definition = self.structure.definition.get(array)
        return definition.shape if isinstance(definition, Alloc) and definition.like is None else None

    def is_needless(self, source: Value, target: Value, block: Block, place: int) -> bool:
        """Whether both are arrays of the block, of one shape, and neither changes behind the copy."""
        lengths, sites, definition = self.dependence.lengths, self.dependence.sites, self.structure.definition
        if not all(isinstance(definition.get(v), Alloc) and self.structure.home[v] is block for v in (source, target)):
            return False
        if any(source in s and v is not source for v, s in sites.items()):
            return False
        if any(lengths.of(source, k) != lengths.of(target, k) for k in range(source.array.rank)):
            return False
        copy = {*walk(Block((block.operations[place],)))}
        if any(target in sites[a] for o in self.writing if o not in copy for a in _written(o)):
            return False
        earlier, later = (walk(Block(part)) for part in (block.operations[:place], block.operations[place + 1 :]))
        return not any(target in o.uses() for o in earlier) and not any(source in _written(o) for o in later)


def _written(operation: Operation) -> tuple[Value, ...]:
    match operation:
        case Store(array=array):
            return (array,)
        case Call():
            return operation.written
    return ()
