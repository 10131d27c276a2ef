"""The forward sweep: the program, which also stores the values that the reverse sweep needs.

A value is stored in an array indexed by the iterations of the enclosing loops, if their trip counts are known before
the outermost loop starts; otherwise it is pushed on a stack. If one of the loops may end early, the array grows with
the iterations (growing_buffers.py). A branch outside all loops yields its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from srcdiff.analyses.saved_values import Decision, Plan
from srcdiff.analyses.structure import Structure, handed_on, made_anew
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.analyses.trip_counts import TripCounts
from srcdiff.diagnostics import Span
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
    If,
    Index,
    Load,
    Loop,
    NewStack,
    Operation,
    Push,
    Store,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import Array, Scalar, Stack, scalar_of
from srcdiff.ir.words import words_for
from srcdiff.passes.array_expansion import early_shape, write_rows
from srcdiff.passes.recovered_values import Storage, iteration_number


class Keeper:
    """Chooses the storage of the planned values, and writes the forward sweep."""

    def __init__(self, function: Function, structure: Structure, plan: Plan) -> None:
        self.structure, self.plan = structure, plan
        self.lengths = lengths_of(function)
        self.trip_counts = TripCounts(self.lengths, function.params)
        self.storage: dict[Value, Storage] = {}
        self.lifted: dict[Value, Value] = {}
        self.builder = Builder()
        self.builder.constants.update(structure.constants)
        self.before: dict[Operation, list[Operation]] = {}
        self.kept_in: dict[Block, list[Value]] = {}
        self.rows: dict[Value, Storage | None] = {}
        """Arrays that loops allocate in every iteration, with the array whose rows they become, if possible."""

    def run(self) -> Block:
        for value in sorted(self.plan.kept, key=self.comes_out_of_loop):
            self.make_storage(value)
        block, _ = self.block(self.structure.top, inside_loop=False)
        return block

    # -- storage -----------------------------------------------------------------------------------------------------

    def comes_out_of_loop(self, value: Value) -> bool:
        definition = self.structure.definition.get(value)
        return isinstance(definition, Loop) and value in definition.outs

    def make_storage(self, value: Value) -> None:
        home = self.structure.home[value]
        loops = self.structure.loops_around(home)
        storage = self.among_rows(value) if loops and isinstance(value.type, Array) else None
        if storage is None:
            self.kept_in.setdefault(home, []).append(value)
            if loops:
                storage = self.new_storage(value, loops)
        if storage is not None:
            self.storage[value] = storage

    def among_rows(self, value: Value) -> Storage | None:
        """The row of an array that need not be stored: it, or the array of the iteration before, is a row."""
        handed = handed_on(value, self.structure)
        if handed is None:
            return self.row(value)
        start, following = handed
        # The result of a loop is one of many values: for it alone, the others are not stored.
        storage = self.rows.get(following) if self.comes_out_of_loop(value) else self.row(following)
        if storage is None:
            return None
        is_at_hand = self.structure.home.get(start, self.structure.top) is self.structure.top
        if not is_at_hand and start not in self.plan.decisions:
            self.plan = replace(self.plan, decisions={**self.plan.decisions, start: Decision("keep")})
            self.make_storage(start)
        return replace(storage, start=start)

    def row(self, value: Value) -> Storage | None:
        if value not in self.rows:
            self.rows[value] = self.new_rows(value) if made_anew(value, self.structure) else None
        return self.rows[value]

    def new_rows(self, value: Value) -> Storage | None:
        home = self.structure.home[value]
        statement = self.structure.top_statement(home)
        into = self.before.setdefault(statement, [])
        length, limit = len(into), self.structure.start[statement]
        loops = self.structure.loops_around(home)
        trip_counts = self.sizes(loops, statement, into)
        shape = trip_counts and early_shape(
            value, self.lengths, self.naturals(limit), lambda v: self.early(v, limit), self.builder
        )
        if not trip_counts or not shape:
            del into[length:]
            return None
        definition = self.structure.definition[value]
        fill = definition.fill if isinstance(definition, Alloc) else None
        known = None if fill is None else self.structure.constants.get(fill)
        if fill is not None:
            fill = None if known is None else self.builder.const(known, fill.scalar)
        rows = Value(Array(value.array.dtype, len(trip_counts) + len(shape)), self.name(value))
        into.append(Alloc(rows, (*trip_counts, *shape), fill, keeps=self.place(value, loops)))
        return Storage(rows, tuple(loops))

    def naturals(self, limit: int) -> set[Value]:
        """Lengths of earlier arrays at top level, which are nonnegative."""
        return {n for o in self.made_before(limit) if isinstance(o, Alloc) for n in o.shape}

    def made_before(self, limit: int) -> list[Operation]:
        return [o for o in self.structure.top.operations if self.structure.start[o] < limit]

    def name(self, value: Value) -> str:
        return f"kept_{words_for(value, self.structure.definition.get, places=False) or 'value'}"

    def new_storage(self, value: Value, loops: list[Loop]) -> Storage:
        statement = self.structure.top_statement(self.structure.home[value])
        into = self.before.setdefault(statement, [])
        name, keeps = self.name(value), self.place(value, loops)
        before = self.made_before(self.structure.start[statement])
        order = self.trip_counts.order(loops, before) if isinstance(value.type, Scalar) else None
        sizes = None if order is None else self.sizes(order, statement, into)
        if order is None or sizes is None:
            assert not isinstance(value.type, Stack)
            stack = Value(Stack(value.type), name)
            into.append(NewStack(stack, keeps))
            return Storage(stack, None)
        array = Value(Array(value.scalar.dtype, len(sizes)), name)
        grows = not self.trip_counts.are_taken_anyway(loops, before)
        into.append(Alloc(array, tuple(sizes), keeps=keeps, grows=grows))
        return Storage(array, tuple(order))

    def place(self, value: Value, loops: list[Loop]) -> Span | None:
        """The operation that computes the value; for a loop parameter, the loop."""
        definition = self.structure.definition.get(value)
        return loops[-1].span if definition is None else definition.span

    def sizes(self, loops: list[Loop], statement: Operation, into: list[Operation]) -> list[Value] | None:
        """The numbers of iterations, computed before the outermost loop; None if they are not known there."""
        limit = self.structure.start[statement]
        found: list[Value] = []
        self.builder.operations = into
        length = len(into)
        for loop in loops:
            if loop.bounds is None:
                del into[length:]
                return None
            bounds = [self.early(b, limit) for b in loop.bounds]
            if any(b is None for b in bounds) or self.structure.constants.get(loop.bounds[2]) is None:
                del into[length:]
                return None
            found.append(self.iterations_of(*(b for b in bounds if b is not None)))
        return found

    def early(self, value: Value, limit: int) -> Value | None:
        """The value, computed before the outermost loop."""
        structure = self.structure
        if value in structure.constants:
            return self.builder.const(structure.constants[value], value.scalar)
        definition = structure.definition.get(value)
        if structure.home.get(value, structure.top) is structure.top:
            if definition is None or structure.start[definition] < limit:
                return value
            return None
        if not isinstance(definition, Apply | Dim) or value in structure.slot:
            return None
        if isinstance(definition, Apply) and definition.primitive not in ("add", "subtract", "multiply", "negative"):
            return None  # it may raise where the program would not have reached it
        operands = [self.early(v, limit) for v in definition.uses()]
        if any(o is None for o in operands):
            return None
        known = [o for o in operands if o is not None]
        if isinstance(definition, Dim):
            return self.builder.dim(known[0], definition.axis)
        return self.builder.apply(definition.primitive, *known)

    def iterations_of(self, start: Value, stop: Value, step: Value) -> Value:
        known = self.builder.constants
        if known.get(start) == 0 and known.get(step) == 1 and self.never_negative(stop):
            return stop
        return self.builder.apply("range_length", start, stop, step)

    def never_negative(self, value: Value) -> bool:
        if value in self.builder.constants:
            return bool(self.builder.constants[value] >= 0)
        definition = self.structure.definition.get(value)
        return isinstance(definition, Dim) or any(
            isinstance(o, Dim) and o.out is value for o in self.builder.operations
        )

    # -- the forward sweep -------------------------------------------------------------------------------------------

    def block(self, block: Block, *, inside_loop: bool) -> tuple[Block, list[tuple[Value, Value]]]:
        """The block with its stores, and the values that its branches yield: each stored value with its name here."""
        into: list[Operation] = []
        handed: list[tuple[Value, Value]] = []
        waiting = list(self.kept_in.get(block, ()))
        owner = self.structure.owner.get(block)
        inner = set(owner.inner()) if isinstance(owner, Loop) else set()
        for value in [v for v in waiting if v in inner]:
            self.keep(value, into)
        for operation in block.operations:
            into += self.before.get(operation, ())
            rebuilt, out = self.operation(operation, inside_loop)
            self.write(rebuilt, into)
            handed += out
            for value in operation.defines():
                if value in waiting:
                    if inside_loop:
                        self.keep(value, into)
                    else:
                        handed.append((value, value))
        return Block(tuple(into), block.yields), handed

    def write(self, operation: Operation, into: list[Operation]) -> None:
        self.builder.operations = into
        rows: dict[Value, View] = {}
        for value in operation.defines():
            storage = self.rows.get(value)
            if storage is not None and storage.loops is not None:
                iterations = tuple(Index(self.iteration(loop)) for loop in storage.loops)
                rows[value] = View(value, storage.where, iterations, span=operation.span)
        if rows:
            write_rows(operation, rows, self.builder)
        else:
            into.append(operation)

    def keep(self, value: Value, into: list[Operation]) -> None:
        storage = self.storage[value]
        if storage.loops is None:
            into.append(Push(storage.where, value))
            return
        self.builder.operations = into
        indices = tuple(self.iteration(loop) for loop in storage.loops)
        into.append(Store(storage.where, indices, value))

    def iteration(self, loop: Loop) -> Value:
        assert loop.index is not None and loop.bounds is not None
        return iteration_number(self.builder, loop.index, loop.bounds)

    def operation(self, operation: Operation, inside_loop: bool) -> tuple[Operation, list[tuple[Value, Value]]]:
        if isinstance(operation, If):
            return self.branch(operation, inside_loop)
        if isinstance(operation, Loop):
            body, _ = self.block(operation.body, inside_loop=True)
            return replace(operation, body=body), []
        return operation, []

    def branch(self, operation: If, inside_loop: bool) -> tuple[Operation, list[tuple[Value, Value]]]:
        sides = [self.block(b, inside_loop=inside_loop) for b in (operation.then, operation.orelse)]
        if inside_loop or not any(handed for _, handed in sides):
            return replace(operation, then=sides[0][0], orelse=sides[1][0]), []
        blocks: list[list[Operation]] = [list(b.operations) for b, _ in sides]
        yields: list[list[Value]] = [list(b.yields) for b, _ in sides]
        outs = list(operation.outs)
        handed_out: list[tuple[Value, Value]] = []
        for k, (_, handed) in enumerate(sides):
            for value, here in handed:
                if here in sides[k][0].yields:  # the branch yields it anyway
                    out = operation.outs[sides[k][0].yields.index(here)]
                else:
                    out = Value(value.type, value.name)
                    outs.append(out)
                    yields[k].append(here)
                    yields[1 - k].append(self.nothing(value, blocks[1 - k]))
                handed_out.append((value, out))
                self.lifted[value] = out
        then, orelse = (Block(tuple(o), tuple(y)) for o, y in zip(blocks, yields, strict=True))
        return replace(operation, then=then, orelse=orelse, outs=tuple(outs)), handed_out

    def nothing(self, value: Value, into: list[Operation]) -> Value:
        """The placeholder for a value on the side that does not define it; it is never read."""
        self.builder.operations = into
        if isinstance(value.type, Array):
            empty = Value(value.type)
            into.append(Alloc(empty, tuple(self.builder.const(0) for _ in range(value.type.rank))))
            return empty
        return self.builder.const({"int64": 0, "bool": False}.get(value.scalar.dtype, 0.0), value.scalar)


def save_overwritten(
    block: Block,
    arrays: Iterable[Value],
    restores: dict[Store, Value],
    copies: dict[Call, list[tuple[Value, Value]]],
    restoring: Collection[str],
    first: Collection[Store],
) -> Block:
    """Load elements before a store overwrites them, so that the reverse sweep can restore them.

    Before a call that writes to an array, the whole array is copied, unless the adjoint of the function restores it.
    The first stores to a new array overwrite nothing.
    """
    chosen = set(arrays)

    def visit(inner: Block) -> Block:
        into: list[Operation] = []
        for operation in inner.operations:
            if isinstance(operation, Store) and operation.array in chosen and operation not in first:
                kind = operation.array.array.dtype
                old = Value(scalar_of(kind))
                into.append(Load(old, operation.array, operation.indices, operation.claims, span=operation.span))
                restores[operation] = old
            if isinstance(operation, Call) and operation.function not in restoring:
                for array in dict.fromkeys(a for a in operation.written if a in chosen):
                    before = Value(array.type, f"{array.name}_before")
                    into.append(Copy(before, array, span=operation.span))
                    copies.setdefault(operation, []).append((array, before))
            match operation:
                case If():
                    operation = replace(operation, then=visit(operation.then), orelse=visit(operation.orelse))
                case Loop() | Custom():
                    operation = replace(operation, body=visit(operation.body))
            into.append(operation)
        return Block(tuple(into), inner.yields)

    return visit(block)


__all__ = ["Const", "Keeper", "save_overwritten", "walk"]
