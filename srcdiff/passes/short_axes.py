"""Short axes: where an axis has the few elements it had at the first call, loops along it are unrolled.

for i in range(n):                           if x.shape[1] == 2:
    for j in range(n):                           for i in range(n):
        d = 0.0                                      for j in range(n):
        for k in range(x.shape[1]):                      d = (x[i, 0] - x[j, 0]) ** 2
            d += (x[i, k] - x[j, k]) ** 2                d = d + (x[i, 1] - x[j, 1]) ** 2
        total += np.exp(-d)           =>                 total += np.exp(-d)
                                             else:
                                                 ...  the loops as they are

Positions of particles are such arrays. Loops of so few iterations cannot be vectorised, and hide from the loops around
them that these can. In the branch, LLVM also knows the distance in memory of the elements of a column, without which it
does not vectorise. The lengths at the first call only decide which branches there are: the program is right for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from srcdiff.analyses.symbolic_shapes import Lengths, lengths_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
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
    References,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import INT, Scalar

LONGEST = 4
"""The most elements of a short axis."""
LEAST_OTHERS = 50
"""How many times as many elements an array with a short axis has: small arrays are not worth a second version."""
_MOST_OPERATIONS = 400
"""Of the unrolled loops."""
_COPIED = (Alloc, Apply, Comment, Const, Dim, If, Load, Loop, References, Store)

Axes = Mapping[tuple[Value, int], int]
"""Axes of parameters, with their lengths at the first call."""


def short_axes(shape: Sequence[int]) -> dict[int, int]:
    """The axes of an array that are worth a version of the loops along them."""
    size = 1
    for length in shape:
        size *= length
    return {k: n for k, n in enumerate(shape) if 1 < n <= LONGEST and size >= n * LEAST_OTHERS}


def unroll_short_axes(function: Function, axes: Axes) -> Function:
    """The function with a second version of the loops along short axes."""
    return changed(function, body=_Versions(function, axes).block(function.body)) if axes else function


def unroll_short_loops(function: Function) -> Function:
    """The function without innermost loops of few iterations, of known number, that add up numbers inside two loops.

    Their results need not be stored for the reverse sweep, because what is not in a loop can be computed again.
    """
    return changed(function, body=_Unrolling(function, {}).inside(function.body, 0))


@dataclass(eq=False, slots=True)
class _Unrolled:
    """A version of a loop, and the number of its operations."""

    body: list[Operation]
    count: int = 0


class _Versions:
    def __init__(self, function: Function, axes: Axes) -> None:
        self.lengths: Lengths = lengths_of(function)
        self.known = {self.lengths.of(array, axis): length for (array, axis), length in axes.items()}
        """The lengths of short axes."""
        self.constants = {o.out for o in walk(function.body) if isinstance(o, Const)}
        self.users: dict[Value, set[Operation | None]] = {v: {None} for v in function.body.yields}
        """The operations at top level that use a value, themselves or inside; None if it is a result."""
        for operation in function.body.operations:
            for one in (operation, *(o for b in operation.blocks() for o in walk(b))):
                for value in (*one.uses(), *(v for b in one.blocks() for v in b.yields)):
                    self.users.setdefault(value, set()).add(operation)
        self.place = {self.lengths.of(*axis): axis for axis in axes}

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if not (isinstance(operation, Loop) and self.write_versions(operation, operations)):
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def write_versions(self, loop: Loop, into: list[Operation]) -> bool:
        """Write a branch with both versions of a loop, if it has loops to unroll, and others inside it."""
        inside = walk(loop.body)
        if self.iterations(loop) is not None or not _is_copied(loop) or not all(map(_is_copied, inside)):
            return False
        loops = [o for o in inside if isinstance(o, Loop)]
        short = [o for o in loops if self.iterations(o) is not None]
        asked = self.asked(inside)
        if len(short) == len(loops) or not asked or not (short or self.has_columns(inside)):
            return False
        unrolled = _Unrolled([])
        known = dict[Value, Value]()
        own = self.own_arrays(loop, into)
        self.write((*own, loop), known, unrolled)
        if unrolled.count > _MOST_OPERATIONS:
            return False
        into[:] = [o for o in into if o not in own]
        builder = Builder()
        builder.operations, builder.span = into, loop.span
        conditions = [
            builder.apply("equal", builder.dim(*self.place[size]), builder.const(self.known[size])) for size in asked
        ]
        condition = conditions[0]
        for other in conditions[1:]:
            condition = builder.apply("logical_and", condition, other)
        then = Block(tuple(unrolled.body), tuple([known[v] for v in loop.outs]))
        outs = tuple([Value(v.type, v.name) for v in loop.outs])
        builder.branch(condition, then, Block((*own, replace(loop, outs=outs)), outs), loop.outs)
        return True

    def own_arrays(self, loop: Loop, before: Sequence[Operation]) -> list[Alloc]:
        """The arrays that only the loop uses. Each version has its own, which it may not need in the end."""
        own: list[Alloc] = []
        for operation in reversed(before):
            if isinstance(operation, Alloc) and self.users.get(operation.out, set()) <= {loop, *own}:
                own.append(operation)
        return own[::-1]

    def has_columns(self, inside: Sequence[Operation]) -> bool:
        """Whether inner loops go through a column, as `j` does in `x[j, 0]`. They vectorise if LLVM knows how far apart
        the rows are."""
        loops = [o for o in inside if isinstance(o, Loop)]
        counters = {o.index for o in loops}
        return all(o.counted for o in loops) and any(
            o.indices[-1] in self.constants
            and not counters.isdisjoint(o.indices)
            and self.lengths.of(o.array, len(o.indices) - 1) in self.known
            for o in inside
            if isinstance(o, Load | Store) and len(o.indices) > 1
        )

    def asked(self, inside: Sequence[Operation]) -> list[tuple[Value, int]]:
        """The short axes that loops run along, or that decide how far apart the rows of an array are."""
        sizes = [self.lengths.size(b) for o in inside if isinstance(o, Loop) for b in o.bounds or ()]
        accesses = [o for o in inside if isinstance(o, Load | Store) and o.indices]
        sizes += [self.lengths.of(o.array, len(o.indices) - 1) for o in accesses]
        return list(dict.fromkeys(size for size in sizes if isinstance(size, tuple) and size in self.known))

    def iterations(self, loop: Loop) -> range | None:
        """The few values of the loop's counter, if they are known."""
        if not loop.counted or loop.count is not None or not all(isinstance(p.type, Scalar) for p in loop.params):
            return None
        assert loop.bounds is not None
        numbers = [n for n in map(self.number, loop.bounds) if n is not None]
        if len(numbers) != len(loop.bounds) or numbers[2] == 0:
            return None
        found = range(*numbers)
        return found if len(found) <= LONGEST else None

    def number(self, value: Value) -> int | None:
        """The value of an integer where short axes have the lengths that they had."""
        return self._number(self.lengths.size(value))

    def _number(self, size: object) -> int | None:
        match size:
            case bool():
                return None
            case int():
                return size
            case ("add" | "subtract" as primitive, first, second):
                a, b = self._number(first), self._number(second)
                return None if a is None or b is None else a + b if primitive == "add" else a - b
            case (Value(), int()):
                return self.known.get(size)
        return None

    def write(self, operations: Sequence[Operation], known: dict[Value, Value], into: _Unrolled) -> None:
        """Copies of operations with new results; `known` maps old values to new ones."""
        for operation in operations:
            if into.count > _MOST_OPERATIONS:
                return
            numbers = self.iterations(operation) if isinstance(operation, Loop) else None
            if isinstance(operation, Loop) and numbers is not None:
                self.unroll(operation, numbers, known, into)
            else:
                into.count += 1
                self.copy(operation, known, into)

    def copy(self, operation: Operation, known: dict[Value, Value], into: _Unrolled) -> None:
        copied = operation.replaced(lambda v: known.get(v, v))
        for value in (*operation.defines(), *operation.inner()):
            known[value] = Value(value.type, value.name)

        def copied_block(block: Block) -> Block:
            inside = _Unrolled([], into.count)
            self.write(block.operations, known, inside)
            into.count = inside.count
            return Block(tuple(inside.body), tuple([known.get(v, v) for v in block.yields]))

        into.body.append(copied.redefined(known.__getitem__).rebuilt(copied_block))

    def unroll(self, loop: Loop, numbers: range, known: dict[Value, Value], into: _Unrolled) -> None:
        """The iterations of a loop, one after the other."""
        carried = [known.get(v, v) for v in loop.inits]
        for number in numbers:
            if loop.index is not None:
                known[loop.index] = Value(INT)
                into.body.append(Const(known[loop.index], number, span=loop.span))
            known |= dict(zip(loop.params, carried, strict=True))
            self.write(loop.body.operations, known, into)
            carried = [known.get(v, v) for v in loop.body.yields]
        known |= dict(zip(loop.outs, carried, strict=True))


class _Unrolling(_Versions):
    def inside(self, block: Block, depth: int) -> Block:
        into, known = _Unrolled([]), dict[Value, Value]()
        for operation in block.operations:
            operation = operation.replaced(lambda v: known.get(v, v))
            numbers = self.iterations(operation) if isinstance(operation, Loop) and depth > 1 else None
            if isinstance(operation, Loop) and numbers is not None and operation.params and self.is_simple(operation):
                self.unroll(operation, numbers, known, into)
            else:
                deeper = depth + isinstance(operation, Loop)
                into.body.append(operation.rebuilt(lambda b: self.inside(self.now(b, known), deeper)))  # noqa: B023
        return changed(block, operations=tuple(into.body), yields=tuple([known.get(v, v) for v in block.yields]))

    def now(self, block: Block, known: dict[Value, Value]) -> Block:
        return substituted(block, lambda v: known.get(v, v)) if known else block

    def is_simple(self, loop: Loop) -> bool:
        plain = [isinstance(o, Apply | Const | Dim | Load) and _is_copied(o) for o in loop.body.operations]
        return _is_copied(loop) and all(plain)


def _is_copied(operation: Operation) -> bool:
    """Whether there can be a second version of the operation."""
    if isinstance(operation, Loop):
        is_plain = operation.parallel is None and not operation.threads and not operation.claims
        return is_plain and all(isinstance(v.type, Scalar) for v in operation.outs)
    if isinstance(operation, Load | Store) and operation.claims:
        return False
    return isinstance(operation, _COPIED)
