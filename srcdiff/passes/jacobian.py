"""All columns of a Jacobian from a tangent program, or all rows from an adjoint program, in sweeps of many lanes.

def tangent(x, x_dot):                       def jacobian(x):
    ...                                          result = np.empty((n, x.size))
    return y_dot                   =>            for start in range(0, x.size, 32):
                                                     lanes = min(32, x.size - start)
                                                     x_dot = np.zeros((x.size, lanes))
                                                     for lane in range(lanes):
                                                         x_dot[start + lane, lane] = 1.0
                                                     ... y_dot[:, lanes] ...
                                                     result[:, start : start + lanes] = y_dot
                                                 return result

How large the results are is asked of the primal program, of which the passes after this one leave what that needs.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from srcdiff.analyses.dependence import dependence_of
from srcdiff.analyses.thread_loops import Work
from srcdiff.diagnostics.options import OTHER_NUMBER
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline, without_comments
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Copy,
    Function,
    Library,
    Loop,
    Parallel,
    Print,
    Raise,
    Reshape,
    Transpose,
    Value,
    substituted,
    walk,
)
from srcdiff.ir.types import FLOAT, INT, Array
from srcdiff.library.thread_blocks import BLOCKS
from srcdiff.passes.draws import draws_anything, without_draws
from srcdiff.passes.lanes import in_one_lane, with_lanes
from srcdiff.passes.reverse_mode import protect_arguments
from srcdiff.quick_dataclasses import dataclass

MOST_LANES = 32
"""The default number of directions of a sweep: enough to make the cost of the primal program small."""

FEW_LANES = 4
"""How many directions a sweep has at least, if threads share the sweeps: each computes the primal program, too."""

UNROLLED_LANES = 4
"""How many directions, if that is known before, have code of their own each."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A derivative program for one direction, and what it is a derivative of."""

    derivative: Function
    """Takes the seeds after the parameters of the primal program."""
    primal: Function
    inputs: Sequence[Value]
    """The parameters that are differentiated by."""
    outputs: Sequence[Value]
    """Those results of the primal program that are differentiated."""
    seeds: Sequence[Value]
    """Tangents of the inputs, or adjoints of the outputs."""
    forward: bool
    most: int = MOST_LANES
    numbers: int | None = None
    """How many directions there are, if that is known."""
    in_threads: bool = False
    """Whether threads may share the sweeps."""


_ONE_SWEEP = (
    "the function draws random numbers, and this Jacobian has more than {} directions, so it would need several "
    "sweeps: pass `directions=` with their number, or differentiate along directions by `jvp` or `hvp`"
)


def jacobian_of(sweep: Sweep, name: str) -> Function:
    """The function that gives, for each output, the derivatives by each input."""
    return _Jacobian(sweep).run(name)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """An input or an output: its lengths, how many numbers it has, and how many come before it."""

    value: Value
    shape: tuple[Value, ...]
    size: Value
    offset: Value


class _Jacobian:
    def __init__(self, sweep: Sweep) -> None:
        self.sweep, self.build = sweep, Builder()
        derivative = _with_own_seeds(sweep.derivative, sweep.seeds)
        wide = with_lanes(derivative, sweep.seeds)
        self.most = sweep.most if wide is not None else 1
        self.derivative = without_comments(wide or in_one_lane(derivative, sweep.seeds))
        self.start = self.width = Value(INT, "start")

    def run(self, name: str) -> Function:
        build, sweep = self.build, self.sweep
        params = tuple(p for p in sweep.derivative.params if p not in sweep.seeds)
        inputs, outputs = self.leaves(sweep.inputs), self.leaves(self.results(params))
        along, across = (inputs, outputs) if sweep.forward else (outputs, inputs)
        total = build.apply("add", along[-1].offset, along[-1].size) if along else build.const(0)
        if sweep.numbers is not None:
            total = self.known_total(total, sweep.numbers)
        found = [[self.new_part(one, other) for other in along] for one in across]
        if sweep.numbers is not None and sweep.numbers <= self.most:
            self.start, self.width = build.const(0), build.const(self.most)
            self.sweeps(params, along, across, found, total)
        else:
            self.width = build.const(self.most)
            if draws_anything(self.derivative.body):
                self.require_one_sweep(total)
            elif sweep.in_threads and self.most > FEW_LANES:
                self.width = self.width_for_threads(total)
            with build.block() as operations:
                self.sweeps(params, along, across, found, total)
            bounds = (build.const(0), total, self.width)
            body = Block(tuple(operations))
            alone = Parallel() if sweep.in_threads else None
            build.add(Loop(self.start, bounds, (), (), None, body, (), parallel=alone))
        yields = []
        for k, output in enumerate(outputs):
            for j, input_ in enumerate(inputs):
                part = found[k][j] if sweep.forward else found[j][k]
                is_shaped = len((input_ if sweep.forward else output).shape) == 1
                yields.append(self.shaped(part, (*output.shape, *input_.shape), is_shaped))
        return Function(name, params, Block(tuple(build.operations), tuple(yields)))

    def width_for_threads(self, total: Value) -> Value:
        """How many directions a sweep has, so that each thread has a sweep if that is worth it."""
        build, derivative = self.build, self.sweep.derivative
        work = Work(derivative.body, self.sweep.seeds, dependence_of(derivative), build).of_block()
        shares = build.apply("floor_divide", total, build.const(FEW_LANES))
        blocks = Value(INT, "sweeps")
        build.add(Library((blocks,), BLOCKS.name, (shares, build.apply("multiply", total, work), build.const(0))))
        rounded = build.apply("add", total, build.apply("subtract", blocks, build.const(1)))
        width = build.apply("floor_divide", rounded, blocks)
        at_least_one = build.apply("maximum", width, build.const(1))
        return build.apply("minimum", at_least_one, build.const(self.most), name="width")

    def require_one_sweep(self, total: Value) -> None:
        """Another sweep would draw other random numbers."""
        build, most = self.build, self.build.const(self.most)
        with build.block() as operations:
            build.add(Raise(ValueError, (_ONE_SWEEP.format(self.most),)))
        build.branch(build.apply("greater", total, most), Block(tuple(operations)), Block(), ())

    def known_total(self, total: Value, numbers: int) -> Value:
        """The number of directions as a constant, which is checked."""
        build, known = self.build, self.build.const(numbers)
        with build.block() as operations:
            build.add(Raise(ValueError, (OTHER_NUMBER.format(numbers),)))
        build.branch(build.apply("not_equal", total, known), Block(tuple(operations)), Block(), ())
        return known

    def results(self, params: Sequence[Value]) -> list[Value]:
        """The outputs of the primal program, for their lengths."""
        if not any(isinstance(v.type, Array) for v in self.sweep.outputs):
            return list(self.sweep.outputs)
        silent = without_draws(_without_prints(self.sweep.primal.body))
        main, _ = protect_arguments(
            replace(self.sweep.primal, body=Block(silent.operations, tuple(self.sweep.outputs)))
        )
        known = dict(zip(params, params, strict=True))
        return inline(main, [known.get(p, p) for p in main.params], self.build)

    def leaves(self, values: Sequence[Value]) -> list[_Leaf]:
        build, found, offset = self.build, list[_Leaf](), self.build.const(0)
        for value in values:
            shape = build.shape(value) if isinstance(value.type, Array) else ()
            size = build.const(1)
            for length in shape:
                size = build.apply("multiply", size, length)
            found.append(_Leaf(value, shape, size, offset))
            offset = build.apply("add", offset, size)
        return found

    def new_part(self, across: _Leaf, along: _Leaf) -> Value:
        """Memory for the derivatives of an output by an input: the numbers that lanes stand for are one axis."""
        shape = (*across.shape, along.size) if self.sweep.forward else (along.size, *across.shape)
        return self.build.alloc("float64", shape, None, "jacobian")

    def sweeps(
        self,
        params: Sequence[Value],
        along: Sequence[_Leaf],
        across: Sequence[_Leaf],
        found: Sequence[list[Value]],
        total: Value,
    ) -> None:
        """One sweep: seeds for its lanes, the derivative, and its results where they belong."""
        build = self.build
        left = build.apply("subtract", total, self.start)
        is_last = build.apply("less", left, self.width)
        lanes = self.width if self.most == 1 else build.apply("where", is_last, left, self.width, name="lanes")
        ranges = [self.lanes_of(leaf, lanes, len(along) == 1) for leaf in along]
        seeds = [self.seed(s, leaf, lanes, ends) for s, leaf, ends in zip(self.sweep.seeds, along, ranges, strict=True)]
        given = iter(seeds)
        args = [next(given) if p in self.sweep.seeds else p for p in self.sweep.derivative.params]
        results = inline(self.derivative, [*args, lanes], build)
        for result, leaf, parts in zip(results, across, found, strict=True):
            for k, (other, ends) in enumerate(zip(along, ranges, strict=True)):
                if not self.is_whole(result, results, along):
                    self.put(result, leaf, parts[k], other, ends)
                elif self.sweep.forward:
                    parts[k] = result
                else:
                    parts[k] = self.with_lanes_first(result)

    def is_whole(self, result: Value, results: Sequence[Value], along: Sequence[_Leaf]) -> bool:
        """Whether what the only sweep gives is a part of the Jacobian as it is: a new array, with lanes as its axis."""
        is_new = any(isinstance(o, Alloc) and o.out is result and o.like is None for o in self.build.operations)
        is_fit = len(along) == 1 and len(along[0].shape) == 1 and (self.sweep.forward or self.is_short)
        is_only = self.start in self.build.constants and results.count(result) == 1
        return is_new and is_fit and is_only and result.array.dtype == "float64"

    @functools.cached_property
    def is_short(self) -> bool:
        """Whether few lanes see each element a few times, so that it costs nothing that they are not contiguous."""
        loops = [o for o in self.derivative.body.operations if isinstance(o, Loop)]
        is_nested = any(isinstance(o, Loop) for loop in loops for o in walk(loop.body))
        return not is_nested and self.sweep.numbers is not None and self.sweep.numbers <= UNROLLED_LANES

    def with_lanes_first(self, result: Value) -> Value:
        """Make an array of the sweep with its lanes, the rows of the Jacobian, as the first axis; gives all of it."""
        operations = self.build.operations
        place, made = next((k, o) for k, o in enumerate(operations) if isinstance(o, Alloc) and o.out is result)
        part, rank = Value(result.type, "jacobian"), result.array.rank
        whole = replace(made, out=part, shape=(made.shape[-1], *made.shape[:-1]))
        operations[place : place + 1] = [whole, Transpose(result, part, (*range(1, rank), 0))]
        return part

    def lanes_of(self, leaf: _Leaf, lanes: Value, is_only: bool) -> tuple[Value, Value]:
        """The lanes of this sweep that stand for numbers of the leaf."""
        build = self.build
        if is_only:
            return build.const(0), lanes
        zero = build.const(0)
        first = build.apply("subtract", leaf.offset, self.start)
        first = build.apply("where", build.apply("less", first, zero), zero, first)
        stop = build.apply("subtract", build.apply("add", leaf.offset, leaf.size), self.start)
        return first, build.apply("where", build.apply("less", stop, lanes), stop, lanes)

    def each_lane(self, ends: tuple[Value, Value], write: Callable[[Value], None]) -> None:
        build, lane = self.build, Value(INT, "lane")
        with build.block() as operations:
            write(lane)
        body = Block(tuple(operations))
        build.add(Loop(lane, (*ends, build.const(1)), (), (), None, body, ()))

    def number(self, leaf: _Leaf, lane: Value) -> Value:
        """Which number of the leaf a lane stands for."""
        return self.build.apply("subtract", self.build.apply("add", self.start, lane), leaf.offset)

    def seed(self, seed: Value, leaf: _Leaf, lanes: Value, ends: tuple[Value, Value]) -> Value:
        """The directions of a sweep: in each lane, one number is one."""
        build = self.build
        dtype = seed.array.dtype if isinstance(seed.type, Array) else seed.scalar.dtype
        zero, one = build.const(0.0), build.const(1.0)
        if not leaf.shape:
            out = build.alloc(dtype, (lanes,), zero, seed.name)
            self.each_lane(ends, lambda lane: build.store(out, (lane,), one))
            return out
        out = build.alloc(dtype, (leaf.size, lanes), zero, seed.name)
        self.each_lane(ends, lambda lane: build.store(out, (self.number(leaf, lane), lane), one))
        return out if len(leaf.shape) == 1 else self.reshaped(out, (*leaf.shape, lanes))

    def put(self, result: Value, across: _Leaf, part: Value, along: _Leaf, ends: tuple[Value, Value]) -> None:
        """Store the results of the lanes in the Jacobian."""
        build = self.build

        def element(at: tuple[Value, ...]) -> None:
            self.each_lane(ends, lambda lane: self.put_number(result, (*at, lane), part, self.number(along, lane)))

        nest = Value(Array("float64", len(across.shape)))
        build.each_element(nest, element, lambda axis: across.shape[axis])

    def put_number(self, result: Value, at: tuple[Value, ...], part: Value, number: Value) -> None:
        build = self.build
        value = build.cast(build.load(result, at), FLOAT)
        place = (*at[:-1], number) if self.sweep.forward else (number, *at[:-1])
        build.store(part, place, value)

    def shaped(self, part: Value, shape: tuple[Value, ...], is_shaped: bool) -> Value:
        """The derivatives in the shape of the output, then the input."""
        if not shape:
            return self.build.load(part, (self.build.const(0),), part.name)
        return part if is_shaped else self.reshaped(part, shape)

    def reshaped(self, array: Value, shape: tuple[Value, ...]) -> Value:
        out = Value(Array(array.array.dtype, len(shape)), array.name)
        self.build.add(Reshape(out, array, shape))
        return out


def _with_own_seeds(derivative: Function, seeds: Sequence[Value]) -> Function:
    """The derivative without copies of the seeds: every sweep has new ones."""
    operations = walk(derivative.body)
    uses = Counter(v for o in operations for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields)))
    uses.update(derivative.body.yields)
    copies = [o for o in derivative.body.operations if isinstance(o, Copy) and o.array in seeds and uses[o.array] == 1]
    known = {o.out: o.array for o in copies}
    left = Block(tuple(o for o in derivative.body.operations if o not in copies), derivative.body.yields)
    return replace(derivative, body=substituted(left, lambda v: known.get(v, v)))


def _without_prints(block: Block) -> Block:
    operations = [o.rebuilt(_without_prints) for o in block.operations if not isinstance(o, Print)]
    return Block(tuple(operations), block.yields)
