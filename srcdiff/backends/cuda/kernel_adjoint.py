"""Adjoints of kernels: one kernel whose threads run the kernel and then its reverse sweep.

    kernel(x, y)                    kernel_adjoint(x, y, x_bar, y_bar)
        i = cuda.grid(1)                i = cuda.grid(1)
        if i < x.shape[0]:              if i < x.shape[0]:
            y[i] = x[i] * x[i]              y[i] = x[i] * x[i]
                                            t = y_bar[i]
                                            y_bar[i] = 0.0
                                            x_bar[i] += 2 * x[i] * t

The arrays hold the results of the kernel. It adds to the adjoints of elements that it reads, and resets those of
elements that it overwrites. Values that a thread reads from memory that others write are stored, unless there are no
later stores to it. Shared memory is restored barrier by barrier: between two barriers, a thread undoes its own stores,
which no other thread touches there, or the kernel would have a race.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srcdiff.analyses.structure import structure_of
from srcdiff.backends.cuda.races import Meetings, Spread, is_private
from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    Comment,
    Const,
    Coordinate,
    CoordinateKind,
    Dim,
    Function,
    If,
    Loop,
    Operation,
    Store,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import BOOL, INT, Array, is_float
from srcdiff.passes.reverse_mode import Reversal
from srcdiff.passes.stacks import stacks_as_arrays
from srcdiff.passes.tangent import Tangent, tangent_of
from srcdiff.quick_dataclasses import dataclass

# -- conditions ------------------------------------------------------------------------------------------------------

_PLAIN = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "add", "subtract", "multiply")


def conditions_as_formulas(function: Function) -> Function:
    """`a and b` without a branch, if `b` can be computed in any case: comparisons of integers.

    Then analyses can use the condition, and a guard around a kernel is one `if`.
    """
    structure = structure_of(function)

    def is_plain(operation: Operation) -> bool:
        if isinstance(operation, Apply):
            return operation.primitive in _PLAIN and not any(is_float(v.type) for v in operation.args)
        return isinstance(operation, Const | Dim)

    def formula(operation: If) -> tuple[str, Value] | None:
        """`and` or `or`, and its second operand."""
        if len(operation.outs) != 1 or operation.outs[0].type != BOOL:
            return None
        if not all(is_plain(o) for side in operation.blocks() for o in side.operations):
            return None
        then, orelse = operation.then.yields[0], operation.orelse.yields[0]
        if orelse is operation.condition or structure.constants.get(orelse) is False:
            return "logical_and", then
        is_or = then is operation.condition or structure.constants.get(then) is True
        return ("logical_or", orelse) if is_or else None

    def asks_for_no_threads(operation: Operation) -> bool:
        """Whether the program tests for an empty launch: `range(..., cuda.gridsize(1))` checks its step."""
        if not isinstance(operation, Apply) or operation.primitive != "equal":
            return False
        extent = structure.definition.get(operation.args[0])
        is_extent = isinstance(extent, Coordinate) and extent.kind.is_extent
        return is_extent and structure.constants.get(operation.args[1]) == 0

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if asks_for_no_threads(operation):
                operations.append(Const(operation.defines()[0], False))
                continue
            rebuilt = operation.rebuilt(visit)
            found = formula(operation) if isinstance(operation, If) else None
            if found is None or not isinstance(rebuilt, If) or not isinstance(operation, If):
                operations.append(rebuilt)
                continue
            operations += [o for side in rebuilt.blocks() for o in side.operations]
            args = (operation.condition, found[1])
            operations.append(Apply(operation.outs[0], found[0], args, span=operation.span))
        return changed(block, operations=tuple(operations))

    return changed(function, body=visit(function.body))


# -- loops over a grid -----------------------------------------------------------------------------------------------


def count_iterations_over_grid(function: Function) -> Function:
    """`for i in range(start, n, cuda.gridsize(1))` as a loop that counts its iterations; `i` follows from them."""
    definition = structure_of(function).definition
    builder = Builder()

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            operation = operation.rebuilt(visit)
            over_grid = (
                isinstance(operation, Loop)
                and operation.counted
                and operation.bounds is not None
                and isinstance(definition.get(operation.bounds[2]), Coordinate)
            )
            if over_grid and isinstance(operation, Loop) and operation.bounds is not None:
                start, _, step = operation.bounds
                builder.operations = operations
                length = builder.apply("range_length", *operation.bounds)
                bounds = (builder.const(0), length, builder.const(1))
                iteration, way = Value(INT, "iteration"), Value(INT)
                first: list[Operation] = []
                if operation.index is not None:
                    first = [Apply(way, "multiply", (iteration, step)), Apply(operation.index, "add", (start, way))]
                body = Block((*first, *operation.body.operations), operation.body.yields)
                operation = replace(operation, index=iteration, bounds=bounds, body=body)
            operations.append(operation)
        return changed(block, operations=tuple(operations))

    return changed(function, body=visit(function.body))


def step_over_grid(function: Function) -> Function:
    """The opposite, where nothing but `i` follows from the number of the iteration."""
    structure = structure_of(function)
    uses: dict[Value, int] = {}
    for operation in walk(function.body):
        for value in (*operation.uses(), *(y for b in operation.blocks() for y in b.yields)):
            uses[value] = uses.get(value, 0) + 1

    def stepping(loop: Loop) -> Loop:
        if loop.bounds is None or loop.index is None or not loop.counted:
            return loop
        first, count, by = loop.bounds
        length = structure.definition.get(count)
        counts_all = structure.constants.get(first) == 0 and structure.constants.get(by) == 1
        if not isinstance(length, Apply) or length.primitive != "range_length" or not counts_all:
            return loop
        start, _, step = length.args
        ways = [o for o in loop.body.operations if isinstance(o, Apply) and loop.index in o.args]
        if len(ways) != 1 or ways[0].primitive != "multiply" or ways[0].args[1] is not step or uses[loop.index] != 1:
            return loop
        places = [o for o in loop.body.operations if isinstance(o, Apply) and ways[0].out in o.args]
        if len(places) != 1 or places[0].args != (start, ways[0].out) or uses[ways[0].out] != 1:
            return loop
        rest = tuple(o for o in loop.body.operations if o not in (ways[0], places[0]))
        bounds = (start, length.args[1], step)
        return replace(loop, index=places[0].out, bounds=bounds, body=Block(rest, loop.body.yields))

    def visit(block: Block) -> Block:
        operations = [stepping(o) if isinstance(o, Loop) else o for o in block.operations]
        return changed(block, operations=tuple(o.rebuilt(visit) for o in operations))

    return changed(function, body=visit(function.body))


# -- a guard around all that a kernel does ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """`if condition:` around a whole kernel, and the operations before it."""

    before: tuple[Operation, ...]
    condition: Value
    truth: bool

    def around(self, function: Function) -> Function:
        """The function with the guard around it, and a copy of the operations before the guard."""
        known = {v for o in self.before for v in o.defines()}
        inside = [o for o in function.body.operations if not (o.defines() and o.defines()[0] in known)]
        body = Block(tuple(inside))
        branch = If(self.condition, body, Block()) if self.truth else If(self.condition, Block(), body)
        return replace(function, body=Block((*self.before, branch)))


def without_guard(function: Function) -> tuple[Function, Guard | None]:
    """The kernel for the threads that pass the guard; the guard need not be reversed."""
    operations = function.body.operations
    *before, last = operations or (Comment(""),)
    plain = all(isinstance(o, Const | Apply | Dim | Coordinate) or _is_local(o) for o in before)
    if not plain or not isinstance(last, If) or (last.then.operations and last.orelse.operations):
        return function, None
    truth = bool(last.then.operations)
    inside = last.then if truth else last.orelse
    guard = Guard(tuple(before), last.condition, truth)
    return replace(function, body=Block((*before, *inside.operations))), guard


def _is_local(operation: Operation) -> bool:
    """Whether it makes an array of the thread's own: to clear adjoints that are shared takes all threads."""
    return isinstance(operation, Alloc) and operation.place != "shared"


# -- the adjoint -----------------------------------------------------------------------------------------------------


def reversal_of_kernel(function: Function, bars: dict[Value, Value], spread: Spread, name: str) -> Reversal:
    """The kernel that also takes the adjoints `bars` of some parameters; a number has an array of one element."""
    arrays = tuple(p for p in function.params if isinstance(p.type, Array))
    given = {p: b for p, b in bars.items() if isinstance(p.type, Array)}
    reversal = Reversal(function, tuple(bars), (), name, arrays, given=given)

    def finish(both: Function) -> Function:
        builder = Builder()
        for param, total in zip(bars, both.body.yields[len(arrays) :], strict=True):
            if not isinstance(param.type, Array) and reversal.is_active(param):
                builder.store(bars[param], (builder.const(0),), total, adds=True)
        body = Block((*both.body.operations, *builder.operations))
        params, written = (*function.params, *bars.values()), (*arrays, *bars.values())
        return _with_shared_shadows(Function(name, params, body, written), spread)

    reversal.finish = finish
    return reversal


def refuse_lost_adjoints(reversal: Reversal, bars: dict[Value, Value], span: Span) -> None:
    """An array that carries derivatives from one argument to another needs an adjoint."""
    for param in reversal.results:
        if reversal.is_active(param) and param not in bars:
            message = f"`{param.name}` carries derivatives between arguments, but no adjoint array is passed for it"
            help_ = f"pass an array of zeros for `{param.name}`"
            raise DifferentiationError([Problem("SD402", message, span, help=help_)])


def tangent_of_kernel(function: Function, dots: dict[Value, Value], name: str, span: Span) -> Function:
    """The kernel that also takes tangents of some parameters, and carries them along."""
    function = stacks_as_arrays(function)
    tangent = Tangent(function, dots, ())
    for param in function.params:
        if isinstance(param.type, Array) and tangent.varies(param) and param not in dots:
            message = f"`{param.name}` gets a tangent from the other arguments, but no array is passed for it"
            raise DifferentiationError([Problem("SD402", message, span, help=f"pass an array for `{param.name}`")])
    return tangent_of(function, dots, name, ())


def _with_shared_shadows(function: Function, spread: Spread) -> Function:
    """The adjoints of an array that threads share are shared too; the threads set them to zero together, and wait."""
    made = {o.out: o for o in walk(function.body) if isinstance(o, Alloc)}
    builder = Builder()

    def visit(block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            like = made.get(operation.like) if isinstance(operation, Alloc) and operation.like is not None else None
            if isinstance(operation, Alloc) and like is not None and like.place:
                builder.operations = operations
                sizes = [structure_of(function).constants[s] for s in like.shape]
                shape = tuple(builder.const(s) for s in sizes)
                if like.place == "shared":
                    operations.append(replace(operation, shape=shape, fill=None, like=None, place="shared"))
                    _clear_together(builder, operation.out, [int(s) for s in sizes], spread)  # type: ignore[call-overload]
                    continue
                operation = replace(operation, shape=shape, like=None)
            operations.append(operation.rebuilt(visit))
        return Block(tuple(operations), block.yields)

    return replace(function, body=visit(function.body))


def _clear_together(builder: Builder, array: Value, sizes: Sequence[int], spread: Spread) -> None:
    """`for k in range(thread, size, threads): array[k] = 0.0`, and wait for all."""
    thread: Value | None = None
    threads: Value | None = None
    for axis in reversed([a for kind, a in spread if kind is CoordinateKind.THREAD_INDEX]):
        extent = builder.coordinate(CoordinateKind.BLOCK_SIZE, axis)
        own = builder.coordinate(CoordinateKind.THREAD_INDEX, axis)
        thread = own if thread is None else builder.apply("add", builder.apply("multiply", thread, extent), own)
        threads = extent if threads is None else builder.apply("multiply", threads, extent)
    total = 1
    for size in sizes:
        total *= size
    place = Value(INT, "k")
    bounds = (thread or builder.const(0), builder.const(total), threads or builder.const(1))
    with builder.block() as operations:
        indices: list[Value] = []
        rest = place
        for size in reversed(sizes[1:]):
            indices.insert(0, builder.apply("remainder", rest, builder.const(size)))
            rest = builder.apply("floor_divide", rest, builder.const(size))
        builder.store(array, (rest, *indices), builder.const(0.0))
    builder.add(Loop(place, bounds, (), (), None, Block(tuple(operations)), ()))
    builder.add(Barrier())


# -- adding at the same time -----------------------------------------------------------------------------------------


def adding_atomically(function: Function, spread: Spread) -> Function:
    """Make additions to shared memory atomic, all of them or none, unless each thread has its own elements."""
    structure, sites = structure_of(function), points_to(function)
    meetings = Meetings(function, spread)
    adds = [o for o in walk(function.body) if isinstance(o, Store) and o.adds]
    together: set[Value] = set()
    for k, first in enumerate(adds):
        for second in adds[k:]:
            memory = _memory(first, sites) & _memory(second, sites)
            common = {s for s in memory if not is_private(s, structure)} - together
            if common and not meetings.never(first, second):
                together |= common

    def visit(block: Block) -> Block:
        operations = [
            replace(o, atomic=True) if isinstance(o, Store) and o.adds and _memory(o, sites) & together else o
            for o in block.operations
        ]
        return Block(tuple(o.rebuilt(visit) for o in operations), block.yields)

    return replace(function, body=visit(function.body)) if together else function


def _memory(store: Store, sites: dict[Value, Sites]) -> Sites:
    return sites.get(store.array, frozenset((store.array,)))
