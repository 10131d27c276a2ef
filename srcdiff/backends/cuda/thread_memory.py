"""Memory of GPU threads: local arrays where the size is known, otherwise parts of larger workspace arrays.

t = np.zeros(3)                              t = cuda.local.array(3, np.float64); t[0] = t[1] = t[2] = 0
kept = np.empty(n)                =>         kept = kept_of_all[:n, thread]
kept = grown(kept, k)                        (it is large enough from the start)

The host computes the sizes of the workspace: from formulas in known numbers and lengths, or by a measuring kernel that
runs the part of the program that they depend on and reports the largest. If that kernel itself needs memory of unknown
size, it starts with a guess: a thread that needs more reports it and ends, and the host launches it again with more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import field, replace

from srcdiff.backends.cuda.numbered_references import references_as_numbers
from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Again,
    Alloc,
    Apply,
    Barrier,
    Block,
    Call,
    Comment,
    Const,
    Copy,
    Dim,
    Enlarge,
    Formatted,
    Function,
    Grow,
    Index,
    Item,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Peek,
    Print,
    Push,
    Raise,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    changed,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import Array, Stack, element_type
from srcdiff.passes.simplify import axis_of_base, remove_dead, simplify
from srcdiff.passes.stacks import stacks_as_arrays
from srcdiff.quick_dataclasses import dataclass

LOCAL_BYTES = 16 * 1024
"""The largest local array of a thread; larger ones are parts of a workspace array of all threads."""


CAPACITY = 16
"""The initial guess for the lengths of arrays in a measuring kernel."""

Length = Value | int
"""A value of the kernel that the host can compute too, or the place where the kernel that measures reports it."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array of all threads: the parameter of the kernel that it is passed for, and how large a thread's part is."""

    param: Value
    lengths: tuple[Length, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """A kernel that reports how long arrays are."""

    kernel: Function
    sizes: Value
    """The parameter for the array in which it does."""
    count: int
    """The number of reported lengths: first those for the kernel, then those of its own scratch."""
    scratch: tuple[Scratch, ...]
    definition: dict[Value, Operation]
    """The operations in the formulas of its own scratch."""

    @property
    def guessed(self) -> list[int]:
        """The positions of the reported lengths of its own scratch."""
        return sorted({n for s in self.scratch for n in s.lengths if isinstance(n, int)})


@dataclass(frozen=True, slots=True)
class Private:
    """A kernel whose threads have their memory."""

    kernel: Function
    scratch: tuple[Scratch, ...] = ()
    measure: Measure | None = None
    """Reports the lengths that have no formula."""
    errors: Value | None = None
    """The parameter for the array in which threads report exceptions."""
    raised: tuple[Raise, ...] = ()
    """The exceptions, by codes from one on."""
    definition: dict[Value, Operation] = field(default_factory=dict)
    """How the formulas are computed."""


def refuse_in_threads(function: Function) -> None:
    """Reject operations that a GPU thread cannot run."""
    problems = _problems(function.body, None)
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


def _problems(block: Block, around: Span | None) -> list[Problem]:
    """The problems of a block; an operation without a line has that of the loop or branch around it."""
    found = []
    for operation in block.operations:
        span = operation.span or around
        what = _impossible(operation)
        if what is not None:
            found.append(Problem("SD501", f"{what[0]} in code that runs on the GPU", span, help=what[1]))
        for inner in operation.blocks():
            found += _problems(inner, span)
    return found


def _impossible(operation: Operation) -> tuple[str, str] | None:
    match operation:
        case Library():
            return (
                f"`{operation.function}` on arrays is not supported",
                "write it as loops, or call it outside the loop",
            )
        case Apply() if PRIMITIVES[operation.primitive].library:
            row = PRIMITIVES[operation.primitive]
            name = row.scipy[0] if row.scipy else row.spelling.partition(".")[2].partition("(")[0]
            return f"`scipy.special.{name}` is not supported", "compute it outside the loop, on the CPU"
        case Call() if operation.blocks_of_threads is None:
            return "a recursive function is not supported", "write it as a loop"
        case Push(stack=stack, value=Value(type=Array())) if stack.name.startswith("kept_"):
            name = stack.name.removeprefix("kept_").removesuffix("_bar")
            help_ = (
                f"create the array before the loop and write to it, `{name}[:] = ...`, instead of rebinding its name"
            )
            return f"the name `{name}` refers to a different array in each iteration", help_
        case Push(value=Value(type=Array())) | Peek():
            return "a list of arrays is not supported", "use an array with one more axis"
        case Print() if any(isinstance(p, Formatted) for p in operation.parts):
            return "a formatted string is not supported", "print the numbers themselves"
    return None


def private_memory(kernel: Function, thread: Value, *, measures_on_copies: bool = False) -> Private:
    """The kernel with memory for each of its threads; `thread` is the global number of a thread.

    A measuring kernel does not write to arrays of the caller, unless it gets copies of them.
    """
    slots = _Slots(kernel)
    kernel = replace(kernel, body=slots.block(kernel.body))
    kernel = stacks_as_arrays(references_as_numbers(kernel, slots.numbers), capacity=0)
    refuse_in_threads(kernel)
    kernel, errors, raised = _with_errors(kernel)
    memory = _Memory(kernel, thread, slots.numbers, measures_on_copies)
    placed, measure = memory.run(), memory.measure()
    return Private(placed, tuple(memory.scratch), measure, errors, raised, memory.definition)


def _with_errors(kernel: Function) -> tuple[Function, Value | None, tuple[Raise, ...]]:
    """Exceptions as numbers in an array."""
    found: list[Raise] = []
    errors = Value(Array("int64", 1), "errors")

    def block(old: Block) -> Block:
        operations: list[Operation] = []
        for operation in old.operations:
            if isinstance(operation, Raise):
                found.append(operation)
                operation = Raise(operation.exception, (), errors, len(found), span=operation.span)
            operations.append(operation.rebuilt(block))
        return changed(old, operations=tuple(operations))

    body = block(kernel.body)
    if not found:
        return kernel, None, ()
    return replace(kernel, params=(*kernel.params, errors), body=body), errors, tuple(found)


def one_more(value: Value) -> Callable[[Builder], Value]:
    return lambda build: build.apply("add", value, build.const(1))


def length_before(operation: Alloc | Copy, axis: int) -> Callable[[Builder], Value]:
    """The length of a new array, from its operands."""
    match operation:
        case Alloc(like=None, shape=shape):
            return lambda build: shape[axis]
        case Alloc(like=Value() as array) | Copy(array=array):
            return lambda build: build.dim(array, axis)
    raise AssertionError(operation)


class _Slots:
    """Arrays that loops allocate and carry or store: each is a different one, so they are numbered."""

    def __init__(self, kernel: Function) -> None:
        self.sites = points_to(kernel)
        self.through: dict[Operation, list[Value]] = {}
        """The outermost loops and branches with such arrays, and the arrays."""
        self.counters: dict[Value, Value] = {}
        self.numbers: dict[Value, Value] = {}
        """For each of these arrays its number."""
        self.stacks: dict[Value, tuple[Operation, ...]] = {}
        """Stacks of arrays, with the loops and branches that they are made in."""
        self.find(kernel.body, ())

    def find(self, block: Block, around: tuple[Operation, ...]) -> None:
        for operation in block.operations:
            if isinstance(operation, NewStack) and isinstance(operation.out.type, Stack):
                if isinstance(operation.out.type.element, Array):
                    self.stacks[operation.out] = around
            elif isinstance(operation, Alloc | Copy):
                first = next((k for k, o in enumerate(around) if self.is_numbered(operation.out, o, around[:k])), None)
                if first is not None:
                    self.through.setdefault(around[first], []).append(operation.out)
            for nested in operation.blocks():
                self.find(nested, (*around, operation))

    def is_numbered(self, array: Value, inside: Operation, around: tuple[Operation, ...]) -> bool:
        """Whether several instances of an array, allocated inside an operation, are distinguished outside of it."""
        if isinstance(inside, Loop) and any(array in self.sites.get(p, ()) for p in inside.params):
            return True
        return any(array in self.sites.get(s, ()) for s, made_in in self.stacks.items() if made_in == around)

    def block(self, block: Block) -> Block:
        build = Builder()
        for operation in block.operations:
            build.span = operation.span
            for array in self.through.get(operation, ()):
                self.counters[array] = build.alloc("int64", (build.const(1),), build.const(0), "made")
            if isinstance(operation, Alloc | Copy) and operation.out in self.counters:
                counter, zero = self.counters[operation.out], build.const(0)
                self.numbers[operation.out] = build.load(counter, (zero,))
                build.store(counter, (zero,), build.const(1), adds=True)
            build.add(operation.rebuilt(self.block))
        return changed(block, operations=tuple(build.operations))


class _Memory:
    """Puts the arrays of a kernel where they are."""

    def __init__(
        self,
        kernel: Function,
        thread: Value,
        numbers: dict[Value, Value],
        measures_on_copies: bool = False,
        sizes: Value | None = None,
        first: int = 0,
    ) -> None:
        self.measures_on_copies = measures_on_copies
        self.sizes = sizes
        """For a measuring kernel, the array in which it also reports its own needs."""
        self.kernel, self.thread, self.numbers = kernel, thread, numbers
        inside = walk(self.kernel.body)
        self.sites: dict[Value, Sites] = points_to(self.kernel)
        self.constants = {o.out: o.value for o in inside if isinstance(o, Const)}
        self.definition = {v: o for o in inside for v in o.defines()}
        self.arrays: dict[Value, Value] = {}
        """The replacements of arrays by parts of larger ones, and of the lengths of growing arrays."""
        self.scratch: list[Scratch] = []
        self.places: dict[Value, Value] = {}
        """The larger arrays that they are parts of."""
        self.aside = Builder()
        """Formulas that only the host computes."""
        self.reports: dict[Operation, list[tuple[int, Callable[[Builder], Value]]]] = {}
        """Operations behind which a length is known that is reported: the place for it, and what writes it."""
        self.count = first
        self.capacities: dict[int, tuple[Value, int]] = {}
        """For each place where a length is reported, an axis that is so long."""
        self.grown: dict[Value, int] = {}
        """Storage of lists, with the place where its length is reported."""
        for operation in inside:
            if isinstance(operation, Grow):
                self.note_growth(operation)
        for operation in inside:
            if isinstance(operation, Alloc | Copy) and operation.out in self.grown:
                place = self.grown[operation.out]
                self.reports.setdefault(operation, []).append((place, length_before(operation, 0)))

    def note_growth(self, operation: Grow) -> None:
        """Storage that is one list's under two names gets one length."""
        if operation.axis:
            message = "a list of lists with lengths known only at run time is not supported on the GPU"
            raise DifferentiationError([Problem("SD501", message, operation.span, help="use an array with two axes")])
        group = set(self.sites.get(operation.array, ()))
        places = {self.grown[site] for site in group if site in self.grown}
        place = min(places) if places else self.report()
        group |= {site for site, other in self.grown.items() if other in places}
        self.grown |= dict.fromkeys(group, place)
        self.reports.setdefault(operation, []).append((place, one_more(operation.size)))
        for source, found in self.reports.items():
            self.reports[source] = [(place if other in places else other, size) for other, size in found]

    def report(self) -> int:
        self.count += 1
        return self.count - 1

    def run(self) -> Function:
        body = self.block(self.kernel.body)
        params = (*self.kernel.params, *(s.param for s in self.scratch))
        return simplify(replace(self.kernel, params=params, body=body))

    def block(self, block: Block) -> Block:
        build = Builder()
        for written in block.operations:
            operation = written.replaced(self.resolve)
            build.span = operation.span
            match operation:
                case Alloc(place=""):
                    self.alloc(operation, written, build)
                case Copy():
                    self.copy(operation, written, build)
                case Again(out=out, array=array, number=number, shape=shape):
                    parts: list[Item] = [Slice(None, None if array in self.grown else s, None) for s in shape]
                    items = (Index(number), *parts, Index(self.thread))
                    self.arrays[out] = build.view(self.places[array], items, out.name)
                case Dim(out=out, axis=axis) if (made := self.made_to_grow(written)) is not None:
                    self.arrays[out] = self.placed(length_before(made, axis), build)
                case Grow():
                    self.arrays[operation.out] = operation.array
                    self.end_without_capacity(written, build)
                case _:
                    build.add(operation.rebuilt(self.block))
        return Block(tuple(build.operations), tuple(self.resolve(y) for y in block.yields))

    def resolve(self, value: Value) -> Value:
        while value in self.arrays:
            value = self.arrays[value]
        return value

    def made_to_grow(self, asks: Operation) -> Alloc | Copy | None:
        """The allocation of the array whose length is read, if it has spare capacity."""
        assert isinstance(asks, Dim)
        made = self.definition.get(asks.array)
        return made if isinstance(made, Alloc | Copy) and made.out in self.grown else None

    def alloc(self, operation: Alloc, written: Operation, build: Builder) -> None:
        out = self.place(operation.out, written, build)
        if operation.fill is not None:
            fill = build.cast(operation.fill, element_type(out.array))
            build.each_element(out, lambda at: build.store(out, at, fill))

    def copy(self, operation: Copy, written: Operation, build: Builder) -> None:
        source, out = operation.array, self.place(operation.out, written, build)
        build.each_element(source, lambda at: build.store(out, at, build.load(source, at)))

    def place(self, out: Value, written: Operation, build: Builder) -> Value:
        """Write where the array is."""
        shape = self.shape(written, build)
        number = self.numbers.get(out)
        sizes = [self.constants.get(s) if isinstance(s, Value) else None for s in shape]
        count = math.prod(s for s in sizes if isinstance(s, int))
        if number is None and None not in sizes and count > 0 and 8 * count <= LOCAL_BYTES:
            given = tuple(s for s in shape if isinstance(s, Value))
            build.add(Alloc(out, given, place="local", span=written.span))
            return out
        lengths = [s if isinstance(s, int) else self.known(s, axis, written) for axis, s in enumerate(shape)]
        items: list[Item] = [Slice(None, self.resolve(s) if isinstance(s, Value) else None, None) for s in shape]
        if number is not None:
            slots = self.report()
            lengths.insert(0, slots)
            self.reports.setdefault(written, []).append((slots, one_more(number)))
            items.insert(0, Index(number))
        name = f"{out.name.strip('%') or 'array'}_of_all"
        param = Value(Array(out.array.dtype, len(lengths) + 1), name)
        self.scratch.append(Scratch(param, tuple(lengths)))
        self.places[out] = param
        for axis, length in enumerate(lengths):
            if isinstance(length, int):
                self.capacities.setdefault(length, (param, axis))
        self.end_without_capacity(written, build)
        self.arrays[out] = build.view(param, (*items, Index(self.thread)), out.name)
        return self.arrays[out]

    def end_without_capacity(self, written: Operation, build: Builder) -> None:
        """A kernel that measures does not know how much memory it needs, either."""
        if self.sizes is None:
            return
        for place, write in self.reports.get(written, ()):
            needed = self.placed(write, build)
            capacity = build.dim(*self.capacities[place])
            build.add(Enlarge(self.sizes, build.const(place), needed, capacity, span=written.span))

    def placed(self, write: Callable[[Builder], Value], build: Builder) -> Value:
        """A formula, with the arrays in it where they are."""
        with build.block() as operations:
            value = write(build)
        for operation in operations:
            build.add(operation.replaced(self.resolve))
        return self.resolve(value)

    # -- lengths -----------------------------------------------------------------------------------------------------

    def shape(self, operation: Operation, build: Builder) -> list[Length]:
        """The lengths of a new array; of the storage of a list, the place where it is reported."""
        match operation:
            case Alloc(out=out) | Copy(out=out) if out in self.grown:
                return [self.grown[out]]
            case Alloc(like=None, shape=shape):
                return list(shape)
            case Alloc(like=Value() as array) | Copy(array=array):
                return [self.length(array, axis, build) for axis in range(array.array.rank)]
        raise AssertionError(operation)

    def length(self, array: Value, axis: int, build: Builder) -> Length:
        """The length of an axis, by where the array comes from."""
        places = {self.grown[site] for site in self.sites.get(array, ()) if site in self.grown}
        if places and array.array.rank == 1 and not isinstance(self.definition.get(array), View):
            return min(places)
        match self.definition.get(array):
            case Alloc(like=None, shape=shape):
                return shape[axis]
            case Alloc(like=Value() as source) | Copy(array=source):
                return self.length(source, axis, build)
            case Transpose(array=source, axes=axes):
                return self.length(source, axes[axis], build)
            case View() as view if (base := axis_of_base(view, axis)) is not None:
                return self.length(view.array, base, build)
        size = build.dim(self.resolve(array), axis)
        self.definition[size] = build.operations[-1]
        return size

    def known(self, size: Value, axis: int, operation: Operation) -> Length:
        """A length of a new array as the host computes it, or else the place where it is reported."""
        formula = self.formula(size)
        if formula is not None:
            return formula
        place = self.report()
        assert isinstance(operation, Alloc | Copy)
        self.reports.setdefault(operation, []).append((place, length_before(operation, axis)))
        return place

    def formula(self, size: Value) -> Value | None:
        """The size, computed from the parameters of the kernel."""
        if size in self.kernel.params:
            return size
        match self.definition.get(size):
            case Const():
                return size
            case Dim(array=array, axis=axis):
                if array in self.kernel.params:
                    return size
                length = self.length(array, axis, self.aside)
                other = self.definition.get(length) if isinstance(length, Value) else None
                same = isinstance(length, int) or (isinstance(other, Dim) and other.array is self.resolve(array))
                return None if same else self.formula(length)  # type: ignore[arg-type]
            case Apply() as operation:
                args = [self.formula(a) for a in operation.args]
                given = tuple(a for a in args if a is not None)
                if len(given) < len(args):
                    return None
                if given == operation.args:
                    return size
                out = Value(size.type)
                self.definition[out] = Apply(out, operation.primitive, given)
                return out
        return None

    # -- reporting ---------------------------------------------------------------------------------------------------

    def measure(self) -> Measure | None:
        """The measuring kernel: the part that determines the lengths of arrays without formulas."""
        if not self.reports:
            return None
        sizes = Value(Array("int64", 1), "sizes")
        params = (*self.kernel.params, sizes)
        body = self.reporting(self.kernel.body, sizes)
        slim = remove_dead(Function(f"{self.kernel.name}_sizes", params, body))
        memory = _Memory(slim, self.thread, self.numbers, sizes=sizes, first=self.count)
        placed = memory.run()
        if memory.scratch and any(isinstance(o, Barrier) for o in walk(slim.body)):
            self.refuse_to_measure(
                "in a kernel with barriers, the size of an array must not depend on the contents of another array"
            )
        if any(isinstance(o, Load) and self.sites_outside(o.array) & self.stored for o in walk(slim.body)):
            self.refuse_to_measure(
                "on the GPU, the size of an array must not depend on values that the same loop writes"
            )
        return Measure(placed, sizes, memory.count, tuple(memory.scratch), memory.definition)

    def refuse_to_measure(self, message: str) -> None:
        span = next((o.span for o in self.reports if o.span is not None), None)
        raise DifferentiationError([Problem("SD501", message, span, help="use arrays of known size")])

    def reporting(self, block: Block, sizes: Value) -> Block:
        build = Builder()
        for operation in block.operations:
            if self.measures_on_copies and isinstance(operation, Comment) and operation.text == "reverse sweep":
                break  # everything is stored by then
            build.span = operation.span
            for place, write in self.reports.get(operation, ()):
                build.add(Enlarge(sizes, build.const(place), write(build), span=operation.span))
            if self.measures_on_copies or not self.writes_outside(operation):
                build.add(operation.rebuilt(lambda inner: self.reporting(inner, sizes)))
        return Block(tuple(build.operations), block.yields)

    def writes_outside(self, operation: Operation) -> bool:
        return isinstance(operation, Store) and bool(self.sites_outside(operation.array))

    def sites_outside(self, array: Value) -> Sites:
        return self.sites.get(array, frozenset()) & frozenset(self.kernel.params)

    @functools.cached_property
    def stored(self) -> Sites:
        """Arrays from outside that the kernel stores to, and that what measures leaves alone."""
        stores = [] if self.measures_on_copies else [o for o in walk(self.kernel.body) if isinstance(o, Store)]
        return frozenset(site for o in stores for site in self.sites_outside(o.array))
