"""A program for many values of some parameters at once: what depends on them has one more axis, that of the lanes.

def tangent(x, x_dot):                       def tangent(x, x_dot, lanes):
    y = np.sin(x)                                y = np.sin(x)
    y_dot = np.cos(x) * x_dot      =>            t = np.cos(x)
    z_dot = y_dot * y + y * y_dot                z_dot = np.empty(lanes)
    return z_dot                                 for lane in range(lanes):
                                                     y_dot = t * x_dot[lane]
                                                     z_dot[lane] = y_dot * y + y * y_dot
                                                 return z_dot

Tangents and adjoints are linear in what they start from: no value of the primal program depends on them, and no
decision does. So all that does not depend on the parameters is computed once, and the operations that do, between two
branches or loops, are one innermost loop over the lanes, which is contiguous in memory and which LLVM vectorises. A
number that lives longer than such a loop has a buffer with an element for each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Dim,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    Operation,
    Part,
    Reshape,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import INT, Array, Scalar, Stack, widest

_ALL = Slice(None, None, None)
_IN_LANES = (Apply, Load, Store)
_BY_COLUMNS = {
    "matrix_vector": "matrix_matrix",
    "matrix_matrix": "matrix_matrix",
    "solve_vector": "solve",
    "solve": "solve",
    "solve_lower_vector": "solve_lower",
    "solve_lower": "solve_lower",
    "solve_lower_transposed_vector": "solve_lower_transposed",
    "solve_lower_transposed": "solve_lower_transposed",
}
"""Calls of a library that do the same to every column of their last argument, by the one that takes many columns."""


def with_lanes(function: Function, params: Collection[Value]) -> Function | None:
    """The function for many of these parameters at once; None if there is something that has no lanes.

    Their number is the last parameter. All results have an axis of lanes, the last one.
    """
    varying = Varying(function, params)
    others = [p for p in function.params if p not in params]
    if any(p in varying for p in others) or not _have_lanes(function.body, varying):
        return None
    return _Lanes(function, params, varying).run()


def in_one_lane(function: Function, params: Collection[Value]) -> Function:
    """The function for one value of these parameters, with an axis of one lane like a function that has many."""
    build, wide = Builder(), {p: _widened(p) for p in params}
    count, first = Value(INT, "lanes"), build.const(0)
    known = [_lane_of(wide[p], first, build) if p in wide else p for p in function.params]
    yields = [_as_lane(v, first, build) for v in inline(function, known, build)]
    given = tuple(wide.get(p, p) for p in function.params)
    return Function(function.name, (*given, count), Block(tuple(build.operations), tuple(yields)))


def _lane_of(array: Value, lane: Value, build: Builder) -> Value:
    """The part of an array that belongs to one lane: a number, or an array."""
    rank = array.array.rank - 1
    if rank == 0:
        return build.cast(build.load(array, (lane,), array.name), widest(array.type))
    return build.copy(build.view(array, (*[_ALL] * rank, Index(lane)), array.name), array.name)


def _as_lane(value: Value, lane: Value, build: Builder) -> Value:
    """An array whose only lane is a value."""
    one = build.const(1)
    if isinstance(value.type, Scalar):
        out = build.alloc(value.type.dtype, (one,), None, value.name)
        build.store(out, (lane,), value)
        return out
    out = build.alloc(value.array.dtype, (*build.shape(value), one), None, value.name)
    build.each_element(value, lambda at: build.store(out, (*at, lane), build.load(value, at)))
    return out


# -- what depends on the parameters ----------------------------------------------------------------------------------


class Varying:
    """The values and the memory that are different in each lane; memory stands for the references to it."""

    def __init__(self, function: Function, params: Iterable[Value]) -> None:
        self.sites: dict[Value, Sites] = points_to(function)
        self.marked: set[Value] = set(params)
        operations = walk(function.body)
        groups = [
            self.sites[v]
            for o in operations
            if isinstance(o, If | Loop)
            for v in (*o.outs, *_params(o))
            if v in self.sites
        ]
        size = -1
        while size != len(self.marked):
            size = len(self.marked)
            for operation in operations:
                self.visit(operation)
            for group in groups:
                if group & self.marked:
                    self.marked |= group
        self.concerned: set[Operation] = set()
        """Operations with something in them that is different in each lane."""
        self.note(function.body)

    def note(self, block: Block) -> bool:
        for operation in block.operations:
            values = (*operation.uses(), *operation.defines(), *operation.inner())
            inside = [self.note(inner) for inner in operation.blocks()]
            if any(inside) or any(v in self for v in values):
                self.concerned.add(operation)
        return not self.concerned.isdisjoint(block.operations)

    def __contains__(self, value: Value) -> bool:
        if isinstance(value.type, Array | Stack):
            return not self.marked.isdisjoint(self.sites.get(value, (value,)))
        return value in self.marked

    def mark(self, value: Value) -> None:
        self.marked |= self.sites.get(value, {value}) if isinstance(value.type, Array | Stack) else {value}

    def visit(self, operation: Operation) -> None:
        match operation:
            case Store():
                if operation.value in self:
                    self.mark(operation.array)
            case If():
                if operation.condition in self:
                    self.depends(operation)
                for out, *sources in zip(operation.outs, operation.then.yields, operation.orelse.yields, strict=True):
                    self.join(out, sources)
            case Loop():
                count = len(operation.params)
                each = zip(
                    operation.params, operation.outs, operation.inits, operation.body.yields[:count], strict=True
                )
                for param, out, *sources in each:
                    self.join(param, sources)
                    self.join(out, (param, *sources))
            case Dim() | View() | Transpose() | Reshape() | Part():
                pass  # a length is that of every lane, and a reference is to memory that is marked or not
            case _:
                if any(v in self for v in operation.uses()):
                    for out in operation.defines():
                        self.mark(out)
                    for array in operation.written if isinstance(operation, Call) else ():
                        self.mark(array)

    def join(self, out: Value, sources: Iterable[Value]) -> None:
        if not isinstance(out.type, Array | Stack) and any(v in self for v in sources):
            self.mark(out)

    def depends(self, operation: If) -> None:
        """All that a branch does that is taken in some lanes."""
        for inner in (operation, *walk(operation.then), *walk(operation.orelse)):
            for out in inner.defines():
                self.mark(out)
            if isinstance(inner, Store):
                self.mark(inner.array)


def _params(operation: If | Loop) -> tuple[Value, ...]:
    return operation.params if isinstance(operation, Loop) else ()


def _have_lanes(block: Block, varying: Varying) -> bool:
    """Whether all operations that are different in each lane are such that the pass knows what to make of them."""
    return all(_has_lanes(o, varying) for o in block.operations if o in varying.concerned)


def _has_lanes(operation: Operation, varying: Varying) -> bool:
    match operation:
        case Load() | Store():
            return not any(v in varying for v in operation.indices) and not getattr(operation, "atomic", False)
        case If() if operation.condition in varying:
            return all(map(_is_simple, (*walk(operation.then), *walk(operation.orelse))))
        case If():
            return _have_lanes(operation.then, varying) and _have_lanes(operation.orelse, varying)
        case Loop():
            tests = [] if operation.test is None else [*operation.test.yields, *_used(operation.test)]
            ends = [*(operation.bounds or ()), *operation.body.yields[len(operation.params) :], *tests]
            return not any(v in varying for v in ends) and _have_lanes(operation.body, varying)
        case Library():
            return True
        case Alloc():
            return operation.workspace is None and not operation.grows
        case Grow():
            return operation.size not in varying
    return isinstance(operation, Apply | Copy | Dim | View | Transpose | Reshape | Part)


def _is_simple(operation: Operation) -> bool:
    return isinstance(operation, Apply | Const | Dim | If | Load | Store)


def _used(block: Block) -> list[Value]:
    return [v for o in walk(block) for v in (*o.uses(), *o.defines())]


# -- the program with lanes ------------------------------------------------------------------------------------------


class _Lanes:
    def __init__(self, function: Function, params: Collection[Value], varying: Varying) -> None:
        self.function, self.varying = function, varying
        self.build = Builder()
        self.build.constants.update({o.out: o.value for o in walk(function.body) if isinstance(o, Const)})
        self.count = Value(INT, "lanes")
        self.wide: dict[Value, Value] = {p: _widened(p) for p in params}
        """References to memory with lanes, and buffers of numbers that have some."""
        self.homes: dict[Value, int] = {}
        """Numbers that are different in each lane, with the loop over the lanes that computes them."""
        self.number = 0
        self.lasting: set[Value] = set()
        """Numbers that live longer than the loop over the lanes that computes them."""
        self.last_use: dict[Value, int] = {}
        """Values, with the last loop over the lanes that reads them."""
        self.own: dict[Block, set[Value]] = {}
        """Numbers in buffers that a block has by itself: parameters of its loop, and results of loops in it."""
        self.carried: list[tuple[Loop, int, Block, int]] = []
        """The numbers that loops carry: the loop, which parameter, the block that it is in, and when it starts."""
        self.shared: dict[Value, Value] = {}
        """Numbers in the buffers of others."""
        self.replaced: dict[Value, list[Value]] = {}
        """The operations that must be read before such a number is stored."""
        self.buffers: list[Alloc] = []
        self.pending: list[Operation] = []
        """Operations of the next loop over the lanes."""
        self.local: dict[Value, Value] = {}
        """The names of the numbers that the pending operations read."""
        self.lane = Value(INT, "lane")

    def run(self) -> Function:
        self.find_lasting(self.function.body)
        for v in self.function.body.yields:
            self.note_use(v)
        self.share_buffers()
        build = self.build
        with build.block() as operations:
            self.block(self.function.body)
            results = [self.result(v) for v in self.function.body.yields]
            self.flush()
            yields = [make() for make in results]
        params = tuple(self.wide.get(p, p) for p in self.function.params)
        body = Block((*self.buffers, *operations), tuple(yields))
        return Function(self.function.name, (*params, self.count), body, ())

    # -- which numbers have buffers ----------------------------------------------------------------------------------

    def find_lasting(self, block: Block) -> None:
        """Go through the program as it is written below, and find the numbers that another loop reads."""
        for operation in block.operations:
            if self.is_pending(operation):
                whole = [operation, *(o for b in operation.blocks() for o in walk(b))]
                self.homes |= {v: self.number for o in whole for v in o.defines() if v in self.varying}
                for v in (v for o in whole for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields))):
                    self.note_use(v)
                self.number += isinstance(operation, If)
            elif isinstance(operation, If | Loop) and operation in self.varying.concerned:
                if isinstance(operation, Loop):
                    self.enter(operation, block)
                for inner in _with_lanes_inside(operation):
                    self.number += 1
                    self.find_lasting(inner)
                    for v in inner.yields:
                        self.note_use(v)
                self.number += 1
            elif self.ends_pending(operation):
                self.number += 1
                for v in operation.uses():
                    self.note_use(v)

    def enter(self, loop: Loop, block: Block) -> None:
        """A loop starts with what its parameters start as, and leaves its results where it has its parameters."""
        for v in loop.inits:
            self.note_use(v)
        self.own.setdefault(block, set())
        self.own[loop.body] = {p for p in loop.params if not self.is_passed(p)}
        for k, (param, out) in enumerate(zip(loop.params, loop.outs, strict=True)):
            if not self.is_passed(param):
                self.shared[out] = param
                self.own[block].add(out)
                self.carried.append((loop, k, block, self.number))

    def note_use(self, value: Value) -> None:
        self.last_use[value] = self.number
        if self.homes.get(value, self.number) != self.number:
            self.lasting.add(value)

    def share_buffers(self) -> None:
        """A number reuses the buffer of another that is not read afterwards, instead of a copy."""
        taken: set[Value] = set()
        for loop, k, block, start in self.carried:
            first = loop.inits[k]
            if first in self.own[block] and first not in taken and self.last_use[first] <= start:
                self.shared[loop.params[k]] = first
                taken.add(first)
        for loop, k, _, _ in reversed(self.carried):
            self.share_with_next(loop, k)

    def share_with_next(self, loop: Loop, k: int) -> None:
        """A carried value is stored at the place of its parameter, if the old value is not read any more."""
        param, out, after = loop.params[k], loop.outs[k], loop.body.yields[k]
        computed = after in self.lasting and any(after in o.defines() for o in loop.body.operations)
        if not computed or after in self.shared or after not in self.homes:
            return
        inside = [v for v in self.shared if param in (chain := self.chain(v)) and out not in chain]
        there, home = (param, *inside), self.homes[after]
        if all(self.last_use.get(v, 0) <= home for v in there):
            self.shared[after] = param
            self.replaced[after] = [v for v in there if self.last_use.get(v) == home]

    def chain(self, value: Value) -> list[Value]:
        """The value, the number whose buffer it takes, and so on, up to the one that the buffer is of."""
        found = [value]
        while found[-1] in self.shared:
            found.append(self.shared[found[-1]])
        return found

    def is_pending(self, operation: Operation) -> bool:
        """Whether the operation becomes part of a loop over the lanes."""
        if isinstance(operation, If):
            return operation.condition in self.varying
        return isinstance(operation, _IN_LANES) and operation in self.varying.concerned

    def ends_pending(self, operation: Operation) -> bool:
        """Whether what comes before it in all lanes must have been done."""
        if isinstance(operation, Alloc):
            return operation.fill is not None and operation.fill in self.varying
        return isinstance(operation, Copy | Grow | Library) and operation in self.varying.concerned

    # -- operations --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for operation in block.operations:
            self.build.span = operation.span
            if self.is_pending(operation):
                self.pending += self.in_lane(operation)
                if isinstance(operation, If):  # it reads memory that later operations may change
                    self.flush()
            elif operation not in self.varying.concerned:
                self.build.add(operation)
            elif isinstance(operation, If):
                self.branch(operation)
            elif isinstance(operation, Loop):
                self.loop(operation)
            elif isinstance(operation, Dim):
                self.build.add(replace(operation, array=self.wide_of(operation.array)))
            else:
                self.memory(operation)

    def flush(self) -> None:
        """Write the loop over the lanes."""
        self.local = {}
        if not self.pending:
            return
        build, body, lane = self.build, Block(tuple(self.pending)), self.lane
        bounds = (build.const(0), self.count, build.const(1))
        build.add(Loop(lane, bounds, (), (), None, body, ()))
        self.pending, self.lane = [], Value(INT, "lane")

    def in_lane(self, operation: Operation) -> list[Operation]:
        """The operation in one lane."""
        before: list[Operation] = []

        def by(value: Value) -> Value:
            if value not in self.varying:
                return value
            return self.wide_of(value) if isinstance(value.type, Array) else self.read(value, before)

        match operation:
            case Load() | Store() if operation.array in self.varying:
                found = operation.replaced(by)
                assert isinstance(found, Load | Store)
                made: Operation = replace(found, indices=(*found.indices, self.lane))
            case If():
                made = operation.replaced(by).rebuilt(lambda inner: self.inner_block(inner, before))
            case _:
                made = operation.replaced(by)
        after: list[Operation] = []
        for out in operation.defines():
            self.local[out] = out
            for old in self.replaced.get(out, ()):
                self.read(old, before)
            if out in self.lasting:
                after.append(Store(self.buffer(out), (self.lane,), out, span=operation.span))
        return [*before, made, *after]

    def inner_block(self, block: Block, before: list[Operation]) -> Block:
        """A branch that some lanes take; what it reads of buffers is read before it."""
        inner = walk(block)
        own = {v for o in inner for v in o.defines()}
        for value in (v for o in inner for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields))):
            if value not in own and isinstance(value.type, Scalar):
                self.read(value, before)
        operations = [made for o in block.operations for made in self.in_lane(o)]
        return Block(tuple(operations), tuple(self.read(v, before) for v in block.yields))

    def read(self, value: Value, into: list[Operation]) -> Value:
        """A number in one lane: as it was computed there, or from its buffer."""
        if value not in self.varying:
            return value
        if value not in self.local:
            loaded = Value(value.type, value.name)
            into.append(Load(loaded, self.buffer(value), (self.lane,)))
            self.local[value] = loaded
        return self.local[value]

    def buffer(self, value: Value) -> Value:
        """The memory of a number that is different in each lane."""
        value = self.chain(value)[-1]
        if value not in self.wide:
            self.wide[value] = self.new_buffer(value.scalar, value.name)
        return self.wide[value]

    def new_buffer(self, type_: Scalar, name: str) -> Value:
        out = Value(Array(type_.dtype, 1), name)
        self.buffers.append(Alloc(out, (self.count,)))
        return out

    def wide_of(self, array: Value) -> Value:
        """The reference to the memory with lanes."""
        return self.wide.setdefault(array, _widened(array))

    def memory(self, operation: Operation) -> None:
        """An operation that creates memory with lanes, or another reference to it."""
        build = self.build
        if self.ends_pending(operation):
            self.flush()
        match operation:
            case Alloc():
                shape = operation.shape if operation.like is None else self.shape(operation.like)
                is_same = operation.fill is None or operation.fill not in self.varying
                out = self.wide_of(operation.out)
                fill = operation.fill if is_same else None
                build.add(replace(operation, out=out, shape=(*shape, self.count), like=None, fill=fill))
                if not is_same:
                    build.each_element(operation.out, lambda at: self.fill(out, at, operation.fill),
                                       lambda axis: build.dim(out, axis))  # fmt: skip
            case View():
                items = (*operation.items, *[_ALL] * _left_out(operation), _ALL)
                build.add(replace(operation, out=self.wide_of(operation.out), array=self.wide_of(operation.array),
                                  items=items))  # fmt: skip
            case Transpose():
                axes = (*operation.axes, len(operation.axes))
                build.add(replace(operation, out=self.wide_of(operation.out), array=self.wide_of(operation.array),
                                  axes=axes))  # fmt: skip
            case Reshape():
                build.add(replace(operation, out=self.wide_of(operation.out), array=self.wide_of(operation.array),
                                  shape=(*operation.shape, self.count)))  # fmt: skip
            case Copy() | Grow() | Part():
                build.add(replace(operation, out=self.wide_of(operation.out), array=self.wide_of(operation.array)))
            case Library():
                self.library(operation)
            case _:
                raise AssertionError(operation)

    def fill(self, array: Value, at: tuple[Value, ...], value: Value | None) -> None:
        assert value is not None
        number = self.read(value, self.pending)
        self.pending.append(Store(array, (*at, self.lane), number))
        self.flush()

    def shape(self, array: Value) -> tuple[Value, ...]:
        known = self.wide_of(array) if array in self.varying else array
        return tuple(self.build.dim(known, axis) for axis in range(array.array.rank))

    def library(self, operation: Library) -> None:
        """A call for all lanes where columns of the last argument are lanes, else one for each."""
        varying = [a in self.varying for a in operation.args]
        if varying == [False, True] and operation.function == "vector_matrix":
            operation = self.by_transposed_matrix(operation)
        if varying == [False, True] and operation.function in _BY_COLUMNS:
            self.by_columns(operation)
        else:
            self.lane_by_lane(operation)

    def by_transposed_matrix(self, operation: Library) -> Library:
        """`x @ a` as `a.T @ x`."""
        matrix, vector = operation.args
        transposed = Value(matrix.type, matrix.name)
        self.build.add(Transpose(transposed, matrix, (1, 0), span=operation.span))
        return replace(operation, function="matrix_vector", args=(transposed, vector))

    def by_columns(self, operation: Library) -> None:
        """An operation that is linear in the columns of its last argument: one call with the columns of all lanes."""
        build, (first, last) = self.build, operation.args
        (out,), function = operation.outs, _BY_COLUMNS[operation.function]
        if last.array.rank == 1:
            build.add(replace(operation, outs=(self.wide_of(out),), function=function,
                              args=(first, self.wide_of(last))))  # fmt: skip
            return
        rows, columns = self.shape(last)
        merged = self.reshaped(build.copy(self.wide_of(last)), (rows, build.apply("multiply", columns, self.count)))
        found = Value(out.type, out.name)
        build.add(replace(operation, outs=(found,), function=function, args=(first, merged)))
        shape = (build.dim(found, 0), columns, self.count)
        build.add(Reshape(self.wide_of(out), found, shape))

    def reshaped(self, array: Value, shape: tuple[Value, ...]) -> Value:
        out = Value(Array(array.array.dtype, len(shape)), array.name)
        self.build.add(Reshape(out, array, shape))
        return out

    def lane_by_lane(self, operation: Library) -> None:
        """A call for each lane, with copies of what belongs to it; the first says how large the results are."""
        build = self.build
        arrays = [out for out in operation.outs if isinstance(out.type, Array)]
        empty = [build.alloc(out.array.dtype, (build.const(0),) * (out.array.rank + 1), None) for out in arrays]
        params = tuple(Value(v.type, v.name) for v in empty)
        with build.block() as operations:
            args = [self.argument(a) for a in operation.args]
            outs = {v: Value(v.type, v.name) for v in operation.outs}
            build.add(replace(operation, outs=tuple(outs.values()), args=tuple(args)))
            first = build.apply("equal", self.lane, build.const(0))
            yields = [self.collected(first, param, outs[v]) for param, v in zip(params, arrays, strict=True)]
            for number in (v for v in operation.outs if v not in arrays):
                build.store(self.buffer(number), (self.lane,), outs[number])
        bounds = (build.const(0), self.count, build.const(1))
        results = tuple(self.wide_of(out) for out in arrays)
        body = Block(tuple(operations), tuple(yields))
        build.add(Loop(self.lane, bounds, params, tuple(empty), None, body, results))
        self.lane = Value(INT, "lane")

    def argument(self, value: Value) -> Value:
        """The arguments of a call in one lane."""
        if value not in self.varying:
            return value
        if isinstance(value.type, Scalar):
            return self.build.load(self.buffer(value), (self.lane,))
        wide = self.wide_of(value)
        part = self.build.view(wide, (*[_ALL] * value.array.rank, Index(self.lane)), value.name)
        return self.build.copy(part, value.name)

    def collected(self, first: Value, all_lanes: Value, found: Value) -> Value:
        """Store the results of a call at the places of all lanes."""
        build = self.build
        with build.block() as then:
            shape = tuple(build.dim(found, axis) for axis in range(found.array.rank))
            made = build.alloc(found.array.dtype, (*shape, self.count), None, found.name)
        out = Value(all_lanes.type, found.name)
        build.branch(first, Block(tuple(then), (made,)), Block((), (all_lanes,)), (out,))
        lane = self.lane
        build.each_element(found, lambda at: build.store(out, (*at, lane), build.load(found, at)))
        return out

    # -- control flow ------------------------------------------------------------------------------------------------

    def branch(self, operation: If) -> None:
        self.flush()
        blocks = [self.inside(b, operation.outs) for b in (operation.then, operation.orelse)]
        kept = [self.wide_of(v) if v in self.varying else v for v in operation.outs if self.is_passed(v)]
        self.build.add(replace(operation, then=blocks[0], orelse=blocks[1], outs=tuple(kept)))

    def loop(self, operation: Loop) -> None:
        scalars = [(p, i) for p, i in zip(operation.params, operation.inits, strict=True) if not self.is_passed(p)]
        self.assign([p for p, _ in scalars], [i for _, i in scalars])
        self.flush()
        kept = [k for k, p in enumerate(operation.params) if self.is_passed(p)]
        made = replace(
            operation,
            body=self.inside(operation.body, operation.params),
            params=tuple(self.passed(operation.params[k]) for k in kept),
            inits=tuple(self.passed(operation.inits[k]) for k in kept),
            outs=tuple(self.passed(operation.outs[k]) for k in kept),
        )
        self.build.add(made)

    def is_passed(self, value: Value) -> bool:
        """Whether a branch or a loop yields it; a number that is different in each lane is in a buffer instead."""
        return value not in self.varying or isinstance(value.type, Array)

    def passed(self, value: Value) -> Value:
        return self.wide_of(value) if value in self.varying else value

    def inside(self, block: Block, targets: Sequence[Value]) -> Block:
        """A block of a branch or a loop, which leaves the numbers that it yields in the buffers of the targets."""
        with self.build.block() as operations:
            self.block(block)
            pairs = list(zip(targets, block.yields, strict=False))
            numbers = [(t, v) for t, v in pairs if not self.is_passed(t)]
            self.assign([t for t, _ in numbers], [v for _, v in numbers])
            self.flush()
        kept = [self.passed(v) for t, v in pairs if self.is_passed(t)]
        return Block(tuple(operations), (*kept, *block.yields[len(targets) :]))

    def assign(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Numbers into buffers, all at once."""
        found = [self.read(v, self.pending) for v in values]
        for target, value, number in zip(targets, values, found, strict=True):
            if self.chain(value)[-1] is not self.chain(target)[-1]:
                self.pending.append(Store(self.buffer(target), (self.lane,), number))

    # -- results -----------------------------------------------------------------------------------------------------

    def result(self, value: Value) -> Callable[[], Value]:
        """The value of a result in all lanes, after the last loop over them has been written."""
        if isinstance(value.type, Array) and value in self.varying:
            return lambda: self.wide_of(value)
        if isinstance(value.type, Array):
            return lambda: self.spread(value)
        out = self.new_buffer(value.scalar, value.name)
        self.pending.append(Store(out, (self.lane,), self.read(value, self.pending)))
        return lambda: out

    def spread(self, array: Value) -> Value:
        """An array that is the same in all lanes."""
        build = self.build
        out = build.alloc(array.array.dtype, (*self.shape(array), self.count), None, array.name)
        with build.block() as operations:
            lane = Value(INT, "lane")
            build.each_element(array, lambda at: build.store(out, (*at, lane), build.load(array, at)))
        bounds = (build.const(0), self.count, build.const(1))
        build.add(Loop(lane, bounds, (), (), None, Block(tuple(operations)), ()))
        return out


def _widened(value: Value) -> Value:
    """A value with an axis of lanes."""
    if isinstance(value.type, Array):
        return Value(Array(value.type.dtype, value.type.rank + 1), value.name)
    return Value(Array(value.scalar.dtype, 1), value.name)


def _left_out(view: View) -> int:
    """Axes that the items of a view do not mention."""
    taken = sum(isinstance(i, Slice | Index) for i in view.items)
    return view.array.array.rank - taken


def _with_lanes_inside(operation: If | Loop) -> tuple[Block, ...]:
    return (operation.then, operation.orelse) if isinstance(operation, If) else (operation.body,)
