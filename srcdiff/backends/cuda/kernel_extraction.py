"""Kernel extraction: loops with independent iterations become GPU kernels; the code around them stays on the host.

for i in range(n):                           blocks, threads = device.grid(n, 0)
    y[i] = a * x[i]                          sums = device.empty((1, blocks))
    total += y[i]                 =>         f_1[blocks, device.block](n, a, x, y, sums)
                                             total = device.total(sums, 0)

A thread runs the iterations `thread, thread + threads, ...`. Each thread adds up its part of a sum, then the threads of
a block do, then the blocks. Elements that two iterations may add to get atomic additions; where every iteration adds to
the same elements, each thread has its own array, and these arrays are summed. A loop with dependent iterations runs in
one thread, or stays on the host if there are independent loops inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.analyses.dependence import dependence_of
from srcdiff.backends.cuda.thread_memory import CAPACITY, Private, Scratch, private_memory
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned, fresh
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    BlockSum,
    Call,
    Const,
    Coordinate,
    CoordinateKind,
    Dim,
    Formatted,
    Function,
    Grow,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Part,
    Peek,
    Pop,
    Print,
    Push,
    Raise,
    References,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Stack, bytes_of, is_complex, is_float, is_inexact, scalar_of
from srcdiff.passes.fold_views import fold_views
from srcdiff.passes.simplify import simplify
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernels:
    host: Function
    kernels: tuple[Function, ...]


def to_kernels(function: Function, independent: Mapping[Loop, Sites]) -> Kernels:
    """The function for a host with a GPU, and its kernels.

    `independent` are loops known to be so, with the arrays that their iterations add to all the same.
    """
    outline = _Outline(function, independent)
    host = replace(function, body=outline.block(function.body))
    return Kernels(without_unused(host), tuple(outline.kernels))


def without_unused(function: Function) -> Function:
    """Without views, lengths and constants that only kernels needed."""
    used = {v for o in walk(function.body) for v in o.uses()}
    used |= {v for b in _blocks(function.body) for v in b.yields}

    def block(old: Block) -> Block:
        operations = [o.rebuilt(block) for o in old.operations]
        kept = [
            o
            for o in operations
            if not isinstance(o, Const | Dim | Apply | References) or any(v in used for v in o.defines())
        ]
        return replace(old, operations=tuple(kept))

    body = block(function.body)
    changed = len(walk(body)) < len(walk(function.body))
    return without_unused(replace(function, body=body)) if changed else function


def _blocks(block: Block) -> list[Block]:
    return [block, *(b for o in walk(block) for b in o.blocks())]


class _Outline:
    def __init__(self, function: Function, independent: Mapping[Loop, Sites]) -> None:
        self.name = function.name
        self.dependence = dependence_of(function)
        self.definition = {v: o for o in walk(function.body) for v in o.defines()}
        self.known_independent = independent
        self.kernels: list[Function] = []

    def block(self, block: Block) -> Block:
        build = Builder()
        for operation in block.operations:
            build.span = operation.span
            if not isinstance(operation, Loop):
                build.add(operation.rebuilt(self.block))
            elif self.is_independent(operation):
                _Launch(self, operation, build).in_parallel()
            elif self.runs_in_one_thread(operation):
                _Launch(self, operation, build).in_one_thread()
            else:
                build.add(operation.rebuilt(self.block))
        return Block(tuple(build.operations), block.yields)

    # -- which loops -------------------------------------------------------------------------------------------------

    def is_independent(self, loop: Loop) -> bool:
        """Whether the iterations may run concurrently: each writes its own elements, or only adds."""
        if loop in self.known_independent:
            return True
        if not loop.counted or not self.fits_a_thread(loop):
            return False
        dependence = self.dependence
        if not all(dependence.is_sum(loop, k) for k in range(len(loop.params))):
            return False
        effects = dependence.effects((loop,))
        own = {v for o in walk(loop.body) for v in o.defines()}
        written = [x for x in effects.stores if not dependence.memory(x.array) <= own]
        accesses: list[Load | Store] = [*effects.loads, *effects.stores]
        if any(dependence.memory(x.array) & effects.reads for x in written):
            return False
        if any(x.adds and dependence.memory(x.array) & own for x in written):
            return False  # an array of one thread or of all threads: no addition fits both
        return dependence.are_apart(loop, written, accesses, own)

    def runs_in_one_thread(self, loop: Loop) -> bool:
        """Whether a loop whose iterations need each other is better run on the GPU, where its arrays are."""
        if not self.fits_a_thread(loop) or any(isinstance(v.type, Array) for v in loop.params):
            return False
        inner = [o for o in walk(loop.body) if isinstance(o, Loop) and o.bounds is not None]
        constants = self.dependence.constants
        return not any(self.is_independent(o) for o in inner if o.bounds is not None and o.bounds[1] not in constants)

    def fits_a_thread(self, loop: Loop) -> bool:
        """Whether there is nothing in it that a thread cannot do."""
        inside = walk(loop.body) if loop.test is None else [*walk(loop.test), *walk(loop.body)]
        own = {v for o in inside for v in (*o.defines(), *o.inner())}
        for operation in inside:
            match operation:
                case Call() | Library() | Peek():
                    return False
                case Print() if any(isinstance(p, Formatted) for p in operation.parts):
                    return False
                case Push() | Pop():
                    if operation.stack not in own or isinstance(operation.stack.type, Array):
                        return False
                case NewStack(out=Value(type=Stack(element=Array()))):
                    return False
                case Grow():
                    if operation.axis or not self.dependence.memory(operation.array) <= own:
                        return False
        return True

    def accesses(self, loop: Loop) -> list[Load | Store]:
        """Those to memory that is not of one iteration."""
        inside = walk(loop.body)
        made = {v for o in inside for v in o.defines()}
        return [o for o in inside if isinstance(o, Load | Store) and not self.dependence.memory(o.array) <= made]

    def meeting(self, loop: Loop) -> set[Store]:
        """The additions to elements that another iteration may touch."""
        accesses, made = self.accesses(loop), {v for o in walk(loop.body) for v in o.defines()}

        def is_alone(store: Store) -> bool:
            return self.dependence.are_apart(loop, [store], accesses, made, sums=False)

        return {o for o in accesses if isinstance(o, Store) and o.adds and not is_alone(o)}

    # -- loops that do nothing but other loops -----------------------------------------------------------------------

    def nest(self, loop: Loop) -> list[Loop]:
        """The loop, and those inside it that can be run together with it as one."""
        if not loop.body.operations:
            return [loop]
        *before, inner = [o for o in loop.body.operations if not isinstance(o, Const)] or loop.body.operations
        if not isinstance(inner, Loop) or not all(isinstance(o, Dim | Apply | References) for o in before):
            return [loop]
        if inner.bounds is None or not self.is_independent(inner):
            return [loop]
        if self.adds_for_all_iterations(loop) or self.meeting(inner):
            return [loop]  # in iterations of their own they add up without others in the way
        if tuple(loop.body.yields) != inner.outs or inner.inits != loop.params:
            return [loop]
        inside = {v for o in loop.body.operations for v in o.defines()} | set(loop.inner())
        if not all(self.is_known_outside(b, inside) for b in inner.bounds):
            return [loop]
        return [loop, *self.nest(inner)]

    def is_known_outside(self, value: Value, inside: set[Value]) -> bool:
        """Whether a value does not depend on the iteration."""
        if value not in inside:
            return True
        operation = self.definition.get(value)
        return isinstance(operation, Const | Dim | Apply) and all(
            self.is_known_outside(v, inside) for v in operation.uses()
        )

    def adds_for_all_iterations(self, loop: Loop) -> bool:
        """Whether there are elements that every iteration adds to."""
        changing = self.changing(loop)
        return any(isinstance(o, Store) and o.adds and not {o.array, *o.indices} & changing for o in walk(loop.body))

    def changing(self, loop: Loop) -> set[Value]:
        """Values that may be others in every iteration, and new arrays."""
        found = set(loop.inner())
        size = -1
        while size != len(found):
            size = len(found)
            for operation in walk(loop.body):
                match operation:
                    case Const() | Coordinate():
                        continue
                    case Loop():
                        if operation.index is not None and found & set(operation.bounds or ()):
                            found.add(operation.index)
                        found |= {*operation.params, *operation.defines()}
                    case Apply() | Dim() | View() | Transpose() | Reshape() | Part() if not found & set(
                        operation.uses()
                    ):
                        continue
                    case _:
                        found |= set(operation.defines())
        return found


class _Launch:
    """Writes the kernel of a loop, and the host code that launches it."""

    def __init__(self, outline: _Outline, loop: Loop, host: Builder) -> None:
        self.outline, self.loop, self.host = outline, loop, host
        self.build = Builder()
        self.build.span = loop.span
        self.inside: dict[Value, Value] = {}
        """Values of the host, and of the loop, in the kernel."""
        self.params: list[Value] = []
        self.args: list[Value] = []
        self.name = f"{outline.name}_{len(outline.kernels) + 1}"
        self.before_launch: list[Callable[[], None]] = []

    # -- values on both sides ----------------------------------------------------------------------------------------

    def parameter(self, argument: Value, name: str = "") -> Value:
        """A new parameter of the kernel, for a value of the host."""
        hint = name or argument.name
        param = Value(argument.type, "" if hint.startswith("%") else hint)
        self.params.append(param)
        self.args.append(argument)
        return param

    def bring(self, value: Value) -> Value:
        """A host value in the kernel; cheap values are recomputed there."""
        if value in self.inside:
            return self.inside[value]
        operation = self.outline.definition.get(value)
        if isinstance(operation, Const | Dim | View | Transpose | Part):
            for used in operation.uses():
                self.bring(used)
            self.build.add(cloned(operation, self.inside))
            if isinstance(operation, Const):
                self.build.constants[self.inside[value]] = operation.value
        else:
            self.inside[value] = self.parameter(value)
        return self.inside[value]

    def bring_all(self, operations: Iterable[Operation], own: Iterable[Value] = ()) -> None:
        """The host values that operations use, without their own definitions."""
        every = [o for one in operations for o in (one, *(o for b in one.blocks() for o in walk(b)))]
        inside = {v for o in every for v in (*o.defines(), *o.inner())} | set(own)
        for operation in every:
            for value in (*operation.uses(), *(y for b in operation.blocks() for y in b.yields)):
                if value not in inside:
                    self.bring(value)

    def outside(self, value: Value) -> Value:
        """A value of a loop that does not depend on its iterations, on the host."""
        operation = self.outline.definition.get(value)
        if value in self.hosted:
            return self.hosted[value]
        if not isinstance(operation, Const | Dim | Apply) or value not in self.of_loop:
            return value
        for used in operation.uses():
            self.hosted[used] = self.outside(used)
        self.host.add(cloned(operation, self.hosted))
        return self.hosted[value]

    # -- many threads ------------------------------------------------------------------------------------------------

    def in_parallel(self) -> None:
        nest = self.outline.nest(self.loop)
        inner = nest[-1]
        self.of_loop = {v for o in walk(self.loop.body) for v in o.defines()}
        self.hosted: dict[Value, Value] = {}
        lengths = [self.length(loop, is_factor=len(nest) > 1) for loop in nest]
        count = lengths[0]
        for length in lengths[1:]:
            count = self.host.apply("multiply", count, length)
        thread = self.build.coordinate(CoordinateKind.GLOBAL_INDEX, name="thread")
        threads = self.build.coordinate(CoordinateKind.GLOBAL_SIZE, name="threads")
        count_inside = self.parameter(count, "count") if len(nest) > 1 else self.bring_or_pass(count)
        sizes = [self.bring_or_pass(length) for length in lengths[1:]]
        atomic, own = self.targets()
        before = [o for loop in nest[:-1] for o in loop.body.operations if o is not nest[nest.index(loop) + 1]]
        self.bring_all((*before, *inner.body.operations), [v for loop in nest for v in loop.inner()])
        for value in (b for loop in nest for b in (loop.bounds or ())[::2]):
            self.bring_formula(value)
        mine = self.own_arrays(own)
        starts = [self.zero(p) for p in inner.params]
        iteration = Value(INT, self.name_of_iteration(nest))
        known = dict(self.inside)
        known |= mine
        params = tuple(Value(p.type, p.name) for p in inner.params)
        with self.build.block() as body:
            self.indices(nest, sizes, iteration, known)
            known |= dict(zip(inner.params, params, strict=True))
            for operation in (*before, *inner.body.operations):
                self.build.add(cloned(_atomic(operation, atomic), known))
            yields = tuple(known.get(y, y) for y in inner.body.yields[: len(params)])
        outs = tuple(Value(p.type, p.name) for p in params)
        bounds = (thread, count_inside, threads)
        self.build.add(
            Loop(iteration, bounds, params, tuple(starts), None, Block(tuple(body), yields), outs, span=self.loop.span)
        )
        blocks = Value(INT, "blocks")
        finish = self.add_up(outs, blocks)
        self.add_up_elements(mine)
        self.run(thread, count, blocks)
        finish()

    def bring_or_pass(self, value: Value) -> Value:
        """A size that the host has computed, in the kernel."""
        if value in self.outline.definition or value in self.outline.dependence.sites:
            return self.bring(value)
        known = self.host.constants.get(value)
        return self.build.const(known) if known is not None else self.parameter(value)

    def length(self, loop: Loop, *, is_factor: bool) -> Value:
        """How many iterations a loop has, on the host; below zero for none, unless it is a factor."""
        assert loop.bounds is not None
        start, stop, step = (self.outside(b) for b in loop.bounds)
        constants = self.outline.dependence.constants
        known = [constants.get(b) for b in loop.bounds]
        if (
            known[0] == 0
            and known[2] == 1
            and (not is_factor or self.outline.dependence.lengths.is_natural(loop.bounds[1]))
        ):
            return stop
        return self.host.apply("range_length", start, stop, step)

    def indices(self, nest: list[Loop], sizes: list[Value], iteration: Value, known: dict[Value, Value]) -> None:
        """The counters of the loops, from the number of the iteration among all."""
        build, rest = self.build, iteration
        numbers: list[Value] = []
        for size in reversed(sizes):
            numbers.insert(0, build.apply("remainder", rest, size))
            rest = build.apply("floor_divide", rest, size)
        numbers.insert(0, rest)
        for loop, number in zip(nest, numbers, strict=True):
            assert loop.bounds is not None
            if loop.index is None:
                continue
            start, _, step = loop.bounds
            value = number
            constants = self.outline.dependence.constants
            if constants.get(step) != 1:
                value = build.apply("multiply", value, known[step])
            if constants.get(start) != 0:
                value = build.apply("add", known[start], value)
            if value is not iteration:
                value.name = loop.index.name
            known[loop.index] = value

    def name_of_iteration(self, nest: list[Loop]) -> str:
        """The name of the loop's counter, if the iterations are counted as it counts."""
        known = [self.outline.dependence.constants.get(b) for b in nest[0].bounds or ()]
        index = nest[0].index
        return index.name if len(nest) == 1 and index is not None and known[0] == 0 and known[2] == 1 else "k"

    def bring_formula(self, value: Value) -> None:
        """A value that does not depend on the iteration, in the kernel before its loop."""
        if value not in self.of_loop:
            self.bring(value)
        elif value not in self.inside:
            operation = self.outline.definition[value]
            for used in operation.uses():
                self.bring_formula(used)
            self.build.add(cloned(operation, self.inside))

    def zero(self, param: Value) -> Value:
        return self.build.const(0 if param.type == INT else 0.0, param.scalar)

    # -- sums ----------------------------------------------------------------------------------------------------------

    def targets(self) -> tuple[set[Store], list[Value]]:
        """The additions that must be atomic, and the arrays of which each thread has a private copy instead."""
        outline, loop, memory = self.outline, self.loop, self.outline.dependence.memory
        made = {v for o in walk(loop.body) for v in o.defines()}
        accesses = outline.accesses(loop)
        if loop in outline.known_independent:
            shared = outline.known_independent[loop]
            meeting = {o for o in accesses if isinstance(o, Store) and o.adds and memory(o.array) & shared}
            if any(not memory(o.array) <= shared for o in meeting):
                message = "a name refers to an array that a whole batch shares, or to a new one, depending on the path"
                raise DifferentiationError([Problem("SD501", message, loop.span, help="copy the shared array first")])
        else:
            meeting = outline.meeting(loop)
        changing = outline.changing(loop)
        own: list[Value] = []
        for store in meeting:
            (array, *others) = memory(store.array)
            together = [o for o in accesses if array in memory(o.array)]
            if (
                not others
                and array not in own
                and all(
                    o in meeting and not {o.array, *o.indices} & changing and self.base(o.array, made) is array
                    for o in together
                )
            ):
                own.append(array)
        return {o for o in meeting if not set(memory(o.array)) & set(own)}, own

    def base(self, array: Value, made: set[Value]) -> Value:
        """The array that views made in the loop are views of."""
        while array in made:
            operation = self.outline.definition.get(array)
            if not isinstance(operation, References):
                break
            array = operation.array
        return array

    def own_arrays(self, arrays: Sequence[Value]) -> dict[Value, Value]:
        """A private array of zeros for each."""
        found: dict[Value, Value] = {}
        for array in arrays:
            all_threads = self.inside[array]
            out = Value(array.type, array.name)
            zero = self.build.const(0.0)
            self.build.add(Alloc(out, (), zero, all_threads, span=self.loop.span))
            found[array] = out
        return found

    def add_up_elements(self, own: dict[Value, Value]) -> None:
        """Sum the private arrays of the threads of a block; one thread adds the result to the shared array."""
        build = self.build
        for array, mine in own.items():
            together = self.inside[array]

            def add(at: tuple[Value, ...], mine: Value = mine, together: Value = together) -> None:
                total = self.of_block(build.load(mine, at))
                self.in_first_thread(Store(together, at, total, adds=True, atomic=True))

            build.each_element(together, add)

    def of_block(self, value: Value, name: str = "") -> Value:
        """The sum over the threads of a block; of complex numbers, by parts."""
        if is_complex(value.type):
            return self.build.apply("complex", *(self.of_block(self.build.apply(p, value)) for p in ("real", "imag")))
        total = Value(FLOAT, name)
        self.build.add(BlockSum(total, value))
        return total

    def in_first_thread(self, store: Store) -> None:
        """Code that only one thread of a block runs."""
        build = self.build
        number = self.build.coordinate(CoordinateKind.THREAD_INDEX, name="in_block")
        condition = build.apply("equal", number, build.const(0))
        build.branch(condition, Block((store,)), Block(), ())

    def add_up(self, outs: Sequence[Value], blocks: Value) -> Callable[[], None]:
        """The sums of a block go to the host, which adds them up; integers are added to where they belong at once."""
        if not outs:
            return lambda: None
        host, build = self.host, self.build
        floats = [(k, part) for k, out in enumerate(outs) for part in _parts_of(out)]
        whole = [k for k, out in enumerate(outs) if not _parts_of(out)]
        inits = self.inits()
        if floats:
            sums = Value(Array("float64", 2), "sums")
            inside = self.parameter(sums)
            for row, (k, part) in enumerate(floats):
                total = self.of_block(build.apply(part, outs[k]) if part else outs[k], outs[k].name)
                block, place = build.coordinate(CoordinateKind.BLOCK_INDEX, name="block"), build.const(row)
                self.in_first_thread(Store(inside, (place, block), total))
            self.before_launch.append(
                lambda: host.add(Alloc(sums, (host.const(len(floats)), blocks), span=self.loop.span))
            )
        if whole:
            counts = Value(Array("int64", 1), "counts")
            inside = self.parameter(counts)
            for row, k in enumerate(whole):
                build.add(Store(inside, (build.const(row),), outs[k], adds=True, atomic=True))
            self.before_launch.append(
                lambda: host.add(Alloc(counts, (host.const(len(whole)),), host.const(0), span=self.loop.span))
            )

        def finish() -> None:
            totals: dict[int, list[Value]] = {}
            for row, (k, part) in enumerate(floats):
                out, init = inits[k]
                if part:
                    totals.setdefault(k, []).append(Value(FLOAT))
                    host.add(Library((totals[k][-1],), "device.total", (sums, host.const(row))))
                    if part == "imag":
                        total = host.cast(host.apply("complex", *totals[k]), out.type)
                        host.add(Apply(out, "add", (init, total)))
                    continue
                at_first = self.outline.dependence.constants.get(init) == 0 and out.type == FLOAT
                total = out if at_first else Value(FLOAT)
                host.add(Library((total,), "device.total", (sums, host.const(row))))
                if not at_first:
                    host.add(Apply(out, "add", (init, host.cast(total, out.type))))
            for row, k in enumerate(whole):
                out, init = inits[k]
                host.add(Apply(out, "add", (init, host.load(counts, (host.const(row),)))))

        return finish

    def inits(self) -> list[tuple[Value, Value]]:
        """For each sum of the innermost loop, its host value and its initial value."""
        return list(zip(self.loop.outs, self.loop.inits, strict=True))

    # -- one thread --------------------------------------------------------------------------------------------------

    def in_one_thread(self) -> None:
        """A loop whose iterations need each other; its results come back in arrays."""
        thread = self.build.coordinate(CoordinateKind.GLOBAL_INDEX, name="thread")
        self.bring_all((self.loop,))
        known = dict(self.inside)
        self.build.add(cloned(self.loop, known))
        results = self.loop.defines()
        kinds = {
            "float64": [v for v in results if is_float(v.type)],
            "complex128": [v for v in results if is_complex(v.type)],
            "int64": [v for v in results if not is_inexact(v.type)],
        }
        arrays: list[tuple[Value, list[Value]]] = []
        for dtype, values in kinds.items():
            if values:
                array = Value(Array(dtype, 1), "counts" if dtype == "int64" else "results")
                inside = self.parameter(array)
                for k, value in enumerate(values):
                    build = self.build
                    build.store(inside, (build.const(k),), build.cast(known[value], scalar_of(dtype)))
                arrays.append((array, values))
        host = self.host
        for array, values in arrays:
            host.add(Alloc(array, (host.const(len(values)),), span=self.loop.span))
        self.run(thread, None, host.const(1))
        for array, values in arrays:
            for k, value in enumerate(values):
                loaded = host.load(array, (host.const(k),))
                makers = {"int64": "int", "bool": "bool"}
                host.add(Apply(value, makers.get(value.scalar.dtype, value.scalar.dtype), (loaded,)))

    # -- running it --------------------------------------------------------------------------------------------------

    def run(self, thread: Value, count: Value | None, blocks: Value) -> None:
        """The kernel, with memory for its threads, and the host's call of it."""
        params = tuple(self.params)
        arrays = tuple(p for p in params if isinstance(p.type, Array))
        kernel = Function(self.name, params, Block(tuple(self.build.operations)), arrays)
        kernel = simplify(fold_views(kernel))
        refuse_reshaping(kernel)
        private = private_memory(kernel, thread)
        host, known = self.host, dict(zip(params, self.args, strict=True))
        if private.errors is not None:
            known[private.errors] = host.alloc("int64", (host.const(1),), host.const(0), "errors")
        sizes = self.measured(private, known, count)
        shapes = [self.shape(scratch, sizes, private.definition, known) for scratch in private.scratch]
        threads = self.threads(private.scratch, shapes, count, blocks)
        args = list(self.args)
        for make in self.before_launch:
            make()
        if private.errors is not None:
            args.append(known[private.errors])
        args += self.scratch(private.scratch, shapes, threads)
        self.outline.kernels.append(private.kernel)
        self.call(private.kernel, args, blocks, count)
        self.raise_what_threads_raised(private, known)

    def shape(
        self,
        scratch: Scratch,
        sizes: Mapping[int, Value],
        definition: dict[Value, Operation],
        known: dict[Value, Value],
    ) -> list[Value]:
        """How much of an array of all threads each has."""
        return [sizes[n] if isinstance(n, int) else self.on_host(n, definition, known) for n in scratch.lengths]

    def threads(
        self, scratch: Sequence[Scratch], shapes: Sequence[Sequence[Value]], count: Value | None, blocks: Value
    ) -> Value:
        """As many as there is memory for."""
        host = self.host
        bytes_each = host.const(0)
        for one, shape in zip(scratch, shapes, strict=True):
            amount = host.const(bytes_of(one.param.array.dtype))
            for size in shape:
                amount = host.apply("multiply", amount, size)
            bytes_each = host.apply("add", bytes_each, amount)
        threads = Value(INT, "threads")
        if count is not None:
            host.add(Library((blocks, threads), "device.grid", (count, bytes_each)))
        else:
            host.add(Const(threads, 1))
        return threads

    def scratch(self, scratch: Sequence[Scratch], shapes: Sequence[Sequence[Value]], threads: Value) -> list[Value]:
        return [
            self.host.alloc(one.param.array.dtype, (*shape, threads), None, one.param.name)
            for one, shape in zip(scratch, shapes, strict=True)
        ]

    def call(self, kernel: Function, args: Sequence[Value], blocks: Value, count: Value | None) -> None:
        arrays = tuple([k for k, a in enumerate(args) if isinstance(a.type, Array)])
        call = Call((), kernel.name, tuple(args), arrays, blocks_of_threads=blocks, alone=count is None)
        self.host.add(replace(call, span=self.loop.span))

    def measured(self, private: Private, known: dict[Value, Value], count: Value | None) -> dict[int, Value]:
        """Launch the measuring kernel; return the sizes by the places where it reports them."""
        measure = private.measure
        if measure is None:
            return {}
        host = self.host
        sizes = host.alloc("int64", (host.const(measure.count),), host.const(0), "sizes")
        used = {v for o in walk(measure.kernel.body) for v in o.uses()}
        params = [p for p in measure.kernel.params if p in used]  # others may not be there yet
        self.outline.kernels.append(fresh(replace(measure.kernel, params=tuple(params))))
        given = {**known, measure.sizes: sizes}
        formulas = {n for s in measure.scratch for n in s.lengths if isinstance(n, Value)}
        for length in formulas:
            self.on_host(length, measure.definition, known)

        def run(capacities: Mapping[int, Value]) -> None:
            shapes = [self.shape(s, capacities, measure.definition, known) for s in measure.scratch]
            blocks = Value(INT, "blocks") if count is not None else host.const(1)
            threads = self.threads(measure.scratch, shapes, count, blocks)
            arrays = self.scratch(measure.scratch, shapes, threads)
            arguments = {**given, **dict(zip((s.param for s in measure.scratch), arrays, strict=True))}
            self.call(measure.kernel, [arguments[p] for p in params], blocks, count)
            self.raise_what_threads_raised(private, known)

        if measure.guessed:
            self.until_it_fits(measure.guessed, sizes, run)
        else:
            run({})
        places = {n for s in private.scratch for n in s.lengths if isinstance(n, int)}
        return {n: host.load(sizes, (host.const(n),)) for n in sorted(places)}

    def until_it_fits(self, places: Sequence[int], sizes: Value, run: Callable[[Mapping[int, Value]], None]) -> None:
        """Run it again, with twice the capacity that it needed, until it fits."""
        host = self.host
        capacities = {n: Value(INT, "capacity") for n in places}
        lacking = Value(BOOL, "lacking")
        first = (*(host.const(CAPACITY) for _ in places), host.const(True))
        with host.block() as operations:
            run(capacities)
            following, more = [], host.const(False)
            for n, capacity in capacities.items():
                needed = host.load(sizes, (host.const(n),), "needed")
                is_more = host.apply("greater", needed, capacity)
                following.append(host.apply("where", is_more, host.apply("multiply", host.const(2), needed), capacity))
                more = host.apply("logical_or", more, is_more)
        params = (*capacities.values(), lacking)
        body = Block(tuple(operations), (*following, more))
        outs = tuple(Value(p.type, p.name) for p in params)
        host.add(Loop(None, None, params, first, Block((), (lacking,)), body, outs, span=self.loop.span))

    def on_host(self, value: Value, definition: dict[Value, Operation], known: dict[Value, Value]) -> Value:
        """A size of the kernel, computed by the host."""
        if value in known:
            return known[value]
        operation = definition[value]
        for used in operation.uses():
            self.on_host(used, definition, known)
        if isinstance(operation, Const):
            known[value] = self.host.const(operation.value, value.scalar)
        else:
            self.host.add(cloned(operation, known))
        return known[value]

    def raise_what_threads_raised(self, private: Private, known: dict[Value, Value]) -> None:
        if private.errors is None:
            return
        host = self.host
        code = host.load(known[private.errors], (host.const(0),), "code")
        for number, raised in enumerate(private.raised, 1):
            parts = tuple(_without_values(p) for p in raised.parts)
            again = Raise(raised.exception, parts, span=raised.span)
            condition = host.apply("equal", code, host.const(number))
            host.branch(condition, Block((again,)), Block(), ())


def refuse_reshaping(kernel: Function) -> None:
    """Reject remaining reshapes: their base is one of several arrays, and Numba must know that it is contiguous."""
    message = "srcdiff cannot tell which array this reshaped array is a view of"
    for operation in walk(kernel.body):
        if isinstance(operation, Reshape):
            problem = Problem("SD501", message, operation.span, help="copy the reshaped array: `.reshape(...).copy()`")
            raise DifferentiationError([problem])


def _parts_of(value: Value) -> tuple[str, ...]:
    """The floats that sums of such values are: one, or two parts; none for integers."""
    if is_complex(value.type):
        return ("real", "imag")
    return ("",) if is_float(value.type) else ()


def _atomic(operation: Operation, atomic: set[Store]) -> Operation:
    """The block with atomic additions where they are needed."""
    if isinstance(operation, Store):
        return replace(operation, atomic=True) if operation in atomic else operation

    def block(old: Block) -> Block:
        return replace(old, operations=tuple(_atomic(o, atomic) for o in old.operations))

    return operation.rebuilt(block) if operation.blocks() else operation


def _without_values(part: Any) -> Any:
    """The message of an exception, without values of the thread."""
    match part:
        case Formatted():
            return part.template.replace("{}", "...")
        case Value():
            return "..."
        case tuple():
            return tuple(_without_values(p) for p in part)
    return part
