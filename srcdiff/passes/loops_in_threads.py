"""Parallel loops: threads share the iterations of loops that are worth it, in blocks.

                                             blocks = thread_blocks(n, 3 * n, 0)
for i in range(n):                           total_parts = np.empty(blocks)
    total += x[i] * y[i]          =>         for block in prange(blocks):
                                                 start, stop = iterations_of(block, blocks, n)
                                                 total_part = 0.0
                                                 for i in range(start, stop):
                                                     total_part += x[i] * y[i]
                                                 total_parts[block] = total_part
                                             for block in range(blocks):
                                                 total += total_parts[block]

The iterations must be independent, but for sums, products and extremes: those have a part for each block. If several
iterations add to the same elements of an array, each block but the first adds to an array of its own, and these are
added to the first one's afterwards. The order of all additions depends on the number of blocks alone, so a result is
the same for the same number of threads. Where there is little work, there is one block, and nothing is added up twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from srcdiff.analyses import thread_loops
from srcdiff.analyses.carried_extremes import Extreme
from srcdiff.analyses.thread_loops import Alone, Shared, ThreadLoops, Work
from srcdiff.diagnostics import Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Block,
    Function,
    If,
    Index,
    Library,
    Loop,
    Store,
    Value,
    changed,
    substituted,
)
from srcdiff.ir.primitives import WORK_OF_BLOCK
from srcdiff.ir.types import INT, Scalar
from srcdiff.library.thread_blocks import BLOCKS, ITERATIONS
from srcdiff.quick_dataclasses import dataclass

_NEUTRAL: dict[str | Extreme, int] = {"add": 0, "multiply": 1}
_OPPOSITE = {"greater": "less_equal", "less": "greater_equal"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision for a loop."""

    span: Span | None
    in_threads: bool
    private: tuple[str, ...] = ()
    """The arrays of which each block has one."""
    atomic: tuple[str, ...] = ()
    """The arrays that all threads add to, atomically."""
    reason: str = ""
    """Why one thread runs it."""
    on_word: bool = False
    """Whether its iterations are assumed to be independent because of a `prange`."""


def share_loops(state: Any) -> None:
    """Threads share the loops of the main function."""
    writer = _Sharing(state.main, atomics=not state.request.deterministic)
    body = writer.block(state.main.body)
    state.choices = tuple(writer.choices)
    state.main = changed(state.main, body=body)


def share(function: Function) -> Function:
    """The function with loops in threads."""
    return changed(function, body=_Sharing(function).block(function.body))


class _Sharing:
    def __init__(self, function: Function, *, atomics: bool = False) -> None:
        self.loops = ThreadLoops(function)
        self.atomics = atomics
        self.constants = self.loops.dependence.constants
        self.choices: list[Choice] = []

    def block(self, block: Block) -> Block:
        build = Builder()
        build.constants = dict(self.constants)
        for operation in block.operations:
            if isinstance(operation, Loop):
                self.loop(operation, build)
            else:
                build.add(operation.rebuilt(self.block))
        return changed(block, operations=tuple(build.operations))

    def loop(self, loop: Loop, build: Builder) -> None:
        choice = self.loops.choice(loop)
        if isinstance(choice, Shared):
            build.span = loop.span
            atomic = tuple(a for a in choice.private if self.atomics and self.loops.is_spread(loop, a))
            written = _Blocks(loop, choice, atomic, self.loops, build)
            reason = written.why_not()
            if not reason:
                own = tuple(array.name for array in written.private)
                together = tuple(array.name for array in written.atomic)
                self.choices.append(Choice(loop.span, True, own, together, on_word=choice.on_word))
                written.write()
                build.span = None
                return
            build.span = None
            choice = Alone(reason)
        self.choices.append(Choice(loop.span, False, reason=choice.reason))
        build.add(loop.rebuilt(self.block))


class _Blocks:
    """Writes one loop."""

    def __init__(self, loop: Loop, shared: Shared, atomic: Sequence[Value], loops: ThreadLoops, build: Builder) -> None:
        self.loop, self.shared, self.atomic, self.build = loop, shared, atomic, build
        self.private = [a for a in shared.private if a not in atomic]
        self.memory = loops.dependence.memory
        self.work = Work(loop.body, loop.inner(), loops.dependence, build)
        self.trips = loops.trips(loop)
        self.before = list(build.operations)

    def why_not(self) -> str:
        """Why one thread should run the loop; empty if the work may be enough for two. Then it has been written."""
        count = self.build.const(self.trips) if self.trips is not None else self.count()
        self.iterations = count
        self.amount = self.build.apply("multiply", count, self.work.of_block())
        known = self.build.constants.get(self.amount)
        found = ""
        if known is not None and known < 2 * WORK_OF_BLOCK:
            found = "it is short"
        elif self.work.heaviest <= thread_loops.LIGHT and self.loop.parallel is None:
            found = "it does little with each element"
        if found:
            self.build.operations[:] = self.before
        return found

    def count(self) -> Value:
        assert self.loop.bounds is not None
        start, stop, step = self.loop.bounds
        constants = self.build.constants
        if constants.get(step) == 1:
            return stop if constants.get(start) == 0 else self.build.apply("subtract", stop, start)
        return self.build.apply("range_length", start, stop, step)

    def write(self) -> None:
        build, loop = self.build, self.loop
        private = build.const(0)
        for array in self.private:
            size = build.const(1)
            for length in build.shape(array):
                size = build.apply("multiply", size, length)
            private = build.apply("add", private, size)
        blocks = Value(INT, "blocks")
        build.add(Library((blocks,), BLOCKS.name, (self.iterations, self.amount, private), span=loop.span))
        parts = [self.parts(p, blocks) for p in loop.params]
        others = [self.others(a, blocks) for a in self.private]
        block = Value(INT, "block")
        with build.block() as body:
            self.body(block, blocks, parts, others)
        bounds = build.const(0), blocks, build.const(1)
        build.add(Loop(block, bounds, (), (), None, Block(tuple(body)), (), span=loop.span, threads=True))
        self.add_up(blocks, parts)
        for array, more in zip(self.private, others, strict=True):
            self.add_up_elements(array, more, blocks)

    def parts(self, param: Value, blocks: Value) -> Value:
        """The parts of a sum."""
        return self.build.alloc(param.scalar.dtype, (blocks,), None, f"{_base(param)}_parts")

    def others(self, array: Value, blocks: Value) -> Value:
        """The arrays of all blocks but the first."""
        build = self.build
        shape = (build.apply("subtract", blocks, build.const(1)), *build.shape(array))
        zero = build.const(0.0 if array.array.dtype.startswith("float") else 0, Scalar(array.array.dtype))
        return build.alloc(array.array.dtype, shape, zero, f"{_base(array)}_parts")

    def body(self, block: Value, blocks: Value, parts: list[Value], others: list[Value]) -> None:
        build, loop = self.build, self.loop
        assert loop.bounds is not None
        first, last = Value(INT, "start"), Value(INT, "stop")
        build.add(Library((first, last), ITERATIONS.name, (block, blocks, self.iterations), span=loop.span))
        mine = {a: self.mine(a, more, block) for a, more in zip(self.private, others, strict=True)}
        start, _, step = loop.bounds
        bounds = [build.apply("add", start, build.apply("multiply", x, step)) for x in (first, last)]
        starts = [self.start(k, kind) for k, kind in enumerate(self.shared.reductions)]
        outs = tuple(Value(p.type, p.name) for p in loop.params)
        inside = substituted(self.with_atomics(loop.body), lambda v: mine.get(v, v))
        bounds_of_block = bounds[0], bounds[1], step
        build.add(replace(loop, bounds=bounds_of_block, inits=tuple(starts), outs=outs, body=inside, parallel=None))
        for part, out in zip(parts, outs, strict=True):
            build.store(part, (block,), out)

    def with_atomics(self, block: Block) -> Block:
        """The block with atomic additions to the arrays that all threads add to."""
        if not self.atomic:
            return block
        shared = frozenset[Value]().union(*(self.memory(a) for a in self.atomic))
        operations = []
        for operation in block.operations:
            if isinstance(operation, Store) and self.memory(operation.array) & shared:
                operation = replace(operation, atomic=True)
            operations.append(operation.rebuilt(self.with_atomics))
        return changed(block, operations=tuple(operations))

    def start(self, k: int, kind: str | Extreme) -> Value:
        """The initial value of the reduction of a block: the identity, or for extremes, the common initial value."""
        param = self.loop.params[k]
        if kind not in _NEUTRAL:
            return self.loop.inits[k]
        return self.build.const(_NEUTRAL[kind] if param.type == INT else float(_NEUTRAL[kind]), param.scalar)

    def mine(self, array: Value, others: Value, block: Value) -> Value:
        """The array that a block adds to."""
        build, zero = self.build, self.build.const(0)
        out = Value(array.type, array.name)
        with build.block() as operations:
            number = build.apply("subtract", block, build.const(1))
            part = build.view(others, (Index(number),))
        condition = build.apply("equal", block, zero)
        build.add(If(condition, Block((), (array,)), Block(tuple(operations), (part,)), (out,)))
        return out

    def add_up(self, blocks: Value, parts: list[Value]) -> None:
        """The parts of reductions, in their order."""
        if not parts:
            return
        build, loop = self.build, self.loop
        block = Value(INT, "block")
        params = tuple(Value(p.type, p.name) for p in loop.params)
        with build.block() as body:
            found = [build.load(part, (block,)) for part in parts]
            better = {x: self.is_better(x, found, params) for x in self.shared.reductions if isinstance(x, Extreme)}
            yields = [
                build.apply("where", better[kind], new, so_far)
                if isinstance(kind, Extreme)
                else build.apply(kind, so_far, new)
                for kind, new, so_far in zip(self.shared.reductions, found, params, strict=True)
            ]
        bounds = build.const(0), blocks, build.const(1)
        inits = loop.inits
        build.add(Loop(block, bounds, params, inits, None, Block(tuple(body), tuple(yields)), loop.outs))

    def is_better(self, extreme: Extreme, found: Sequence[Value], so_far: Sequence[Value]) -> Value:
        """Whether the extreme of a block is better than that of the blocks before it."""
        build, new, old = self.build, found[extreme.key], so_far[extreme.key]
        if not extreme.takes_nan:
            return build.apply(extreme.comparison, new, old)
        worse = build.apply(_OPPOSITE[extreme.comparison], new, old)
        return build.apply("logical_and", build.apply("logical_not", worse), build.apply("equal", old, old))

    def add_up_elements(self, array: Value, others: Value, blocks: Value) -> None:
        """The arrays of all blocks but the first, in their order."""
        build = self.build
        block = Value(INT, "block")
        with build.block() as body:
            build.each_element(array, lambda at: build.store(array, at, build.load(others, (block, *at)), adds=True))
        bounds = build.const(0), build.apply("subtract", blocks, build.const(1)), build.const(1)
        build.add(Loop(block, bounds, (), (), None, Block(tuple(body)), ()))


def _base(value: Value) -> str:
    return value.name if value.name and not value.name.startswith("%") else "sum"
