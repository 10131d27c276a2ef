"""Whether the iterations of a loop that the user calls parallel can depend on each other: surely, perhaps, or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from srcdiff.analyses.access_relations import iterations_are_apart, surely_meet
from srcdiff.analyses.carried_reductions import MAXIMUM, MINIMUM, reduction_of
from srcdiff.analyses.dependence import Dependence
from srcdiff.diagnostics import Span
from srcdiff.ir.nodes import Block, Function, If, Library, Load, Loop, Operation, Store, Value, walk
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import is_seen
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two places of a loop at which one iteration may need or change what another one does."""

    what: str
    """In words, with the name of the variable."""
    first: Span | None
    second: Span | None
    sure: bool
    """Whether some iterations do, as soon as there are enough of them."""


def orders_calls(param: Value, block: Block) -> bool:
    """Whether a value only keeps draws of random numbers in their order, which the user does not rely on."""
    users = [o for o in block.operations if param in o.uses() or any(_uses(b, param) for b in o.blocks())]
    return bool(users) and all(_orders_calls(param, user) for user in users)


def _orders_calls(param: Value, user: Operation) -> bool:
    match user:
        case Library(function=name):
            return is_seen(name)
        case Loop(inits=inits, params=params, body=body) if param in inits:
            return orders_calls(params[inits.index(param)], body)
        case If():
            return all(not _uses(b, param) or orders_calls(param, b) for b in user.blocks())
    return False


def _uses(block: Block, value: Value) -> bool:
    return any(value in o.uses() for o in walk(block))


class ParallelIterations:
    """Examines the loops of a function that the user declares to be parallel."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.dependence = Dependence(function)
        self.uses = Counter(
            v for o in walk(function.body) for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields))
        )
        self.uses.update(function.body.yields)

    def conflicts(self, loop: Loop) -> Iterator[Conflict]:
        yield from self.carried(loop)
        yield from self.in_memory(loop)

    # -- variables ---------------------------------------------------------------------------------------------------

    def carried(self, loop: Loop) -> Iterator[Conflict]:
        """Variables that iterations hand on, other than by a reduction."""
        reduced = {name for name, _ in loop.parallel.reductions} if loop.parallel is not None else set()
        for k, param in enumerate(loop.params):
            following = loop.body.yields[k]
            if following is param or orders_calls(param, loop.body):
                continue
            if isinstance(param.type, Array):
                if param.name in reduced:
                    continue
            else:
                kind = reduction_of(self.dependence, loop, k)
                if kind is not None and (kind not in (MAXIMUM, MINIMUM) or param.name in reduced):
                    continue
            name = f"`{param.name}`" if param.name and not param.name.startswith("%") else "a value"
            place = self.place_of(following, loop)
            readers = [o for o in walk(loop.body) if param in o.uses()]
            if readers:
                what = f"an iteration reads {name} as another one has left it"
                yield Conflict(what, place, readers[0].span or loop.span, sure=True)
            elif self.uses[loop.outs[k]]:
                user = next((o for o in walk(self.function.body) if loop.outs[k] in o.uses()), None)
                what = f"{name} is used after the loop, and any iteration may be the last one to assign it"
                yield Conflict(what, place, user.span if user is not None else loop.span, sure=True)

    def place_of(self, value: Value, loop: Loop) -> Span | None:
        operation: Operation | None = self.dependence.definition.get(value)
        while isinstance(operation, If) and value in operation.outs:
            k = operation.outs.index(value)
            inside = {v for b in operation.blocks() for o in walk(b) for v in o.defines()}
            made = [b.yields[k] for b in operation.blocks() if b.yields[k] in inside]
            if not made:
                break
            value = made[0]
            operation = self.dependence.definition.get(value)
        return operation.span if operation is not None and operation.span is not None else loop.span

    # -- memory --------------------------------------------------------------------------------------------------------

    def in_memory(self, loop: Loop) -> Iterator[Conflict]:
        """Elements that one iteration stores, and another one loads or stores."""
        dependence = self.dependence
        effects = dependence.effects((loop,))
        own = {v for o in walk(loop.body) for v in o.defines()}
        written = [x for x in effects.stores if not dependence.memory(x.array) <= own]
        seen: set[tuple[Span | None, Span | None]] = set()
        groups = dependence.alike(loop, [*effects.loads, *effects.stores])
        for a, here in dependence.alike(loop, written).items():
            for b, there in groups.items():
                if dependence.seen_apart(loop, a, b, own, sums=False):
                    continue
                for x in here:
                    for y in there:
                        pair = x.span, y.span
                        if pair in seen or pair[::-1] in seen or self.is_reduction(loop, x, y):
                            continue
                        if iterations_are_apart(loop, x, y, dependence.structure):
                            continue
                        seen.add(pair)
                        sure = surely_meet(loop, x, y, dependence.structure)
                        yield Conflict(self.said(x, y), x.span, y.span, sure)
        for store in written:
            if dependence.memory(store.array) & effects.reads and (store.span, None) not in seen:
                seen.add((store.span, None))
                what = f"iterations read {self.named(store)} as a whole while others write to it"
                yield Conflict(what, store.span, None, sure=False)

    def accesses(self, loop: Loop) -> Iterator[tuple[Load | Store, bool]]:
        """The loads and stores of memory that iterations share, and whether each has its element alone.

        A store has, unless it is part of a reduction; a load has if a store to the same element surely follows or
        goes before in the same iteration.
        """
        dependence = self.dependence
        effects = dependence.effects((loop,))
        own = {v for o in walk(loop.body) for v in o.defines()}
        stores = [s for s in effects.stores if not dependence.memory(s.array) <= own]
        alone = [s for s in stores if not self.is_reduction(loop, s, s)]
        places = {(s.array, s.indices, dependence.structure.block_of[s]) for s in alone}
        for load in effects.loads:
            if not dependence.memory(load.array) <= own:
                blocks = self.blocks_around(load, loop)
                yield load, any((load.array, load.indices, block) in places for block in blocks)
        for store in stores:
            yield store, store in alone

    def blocks_around(self, operation: Operation, loop: Loop) -> Iterator[Block]:
        """The block of an operation, and the enclosing ones up to the body of the loop."""
        structure = self.dependence.structure
        block = structure.block_of[operation]
        yield block
        while block is not loop.body:
            block = structure.block_of[structure.owner[block]]
            yield block

    def is_reduction(self, loop: Loop, a: Load | Store, b: Load | Store) -> bool:
        """Whether both are parts of statements that reduce one variable, an array."""
        names = [{name for name, span in loop.parallel.reductions if lies_in(x.span, span)} for x in (a, b)]  # type: ignore[union-attr]
        return bool(names[0] & names[1])

    def said(self, a: Load | Store, b: Load | Store) -> str:
        name = self.named(a)
        if isinstance(a, Load) or isinstance(b, Load):
            return f"an iteration writes an element of {name} that another one reads"
        if a.adds and b.adds:
            return f"two iterations add to the same element of {name}, and one addition may be lost"
        return f"two iterations write to the same element of {name}"

    def named(self, access: Load | Store) -> str:
        names = {v.name for v in (access.array, *self.dependence.memory(access.array)) if v.name}
        return f"`{access.array.name or sorted(names)[0]}`" if names else "an array"


def lies_in(part: Span | None, whole: Span) -> bool:
    """Whether a place is in a statement."""
    return (
        part is not None
        and part.file == whole.file
        and part.line == whole.line
        and whole.column <= part.column
        and part.end_column <= whole.end_column
    )
