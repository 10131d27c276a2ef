"""Memory of code that a thread of a GPU runs: arrays of its own where their size is known, else parts of larger ones.

t = np.zeros(3)                              t = cuda.local.array(3, np.float64); t[0] = t[1] = t[2] = 0
kept = np.empty(n)                =>         kept = kept_of_all[:n, thread]
kept = grown(kept, k)                        (it is large enough from the start)

How large the larger ones have to be, the host finds out: from the formulas of the sizes, if they are made of numbers
and lengths that it knows, else by a kernel that runs as much of the program as they depend on and reports the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from srcdiff.analyses.aliasing import Sites, points_to
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
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
    Loop,
    Operation,
    Peek,
    Pop,
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
from srcdiff.ir.types import Array, element_type
from srcdiff.transforms.simplify import axis_of_base, remove_dead, simplify
from srcdiff.transforms.stacks import stacks_as_arrays

LOCAL_BYTES = 16 * 1024
"""How much of an array a thread has by itself; larger ones are parts of an array of all threads."""


Length = Value | int
"""A value of the kernel that the host can compute too, or the place where the kernel that measures reports it."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array of all threads: the parameter of the kernel that it is passed for, and how large a thread's part is."""

    param: Value
    lengths: tuple[Length, ...]


@dataclass(frozen=True, slots=True)
class Private:
    """A kernel whose threads have their memory."""

    kernel: Function
    scratch: tuple[Scratch, ...] = ()
    measure: Function | None = None
    """Reports the lengths that have no formula into an array that is its last parameter."""
    reports: int = 0
    """How many they are."""
    errors: Value | None = None
    """The parameter for the array in which threads say what they would have raised."""
    raised: tuple[Raise, ...] = ()
    """What they would have raised, by codes from one on."""
    definition: dict[Value, Operation] = field(default_factory=dict)
    """How the formulas are computed."""


def refuse_in_threads(function: Function) -> None:
    """What a thread of a GPU cannot do."""
    problems = []
    for operation in walk(function.body):
        what = _impossible(operation)
        if what is not None:
            problems.append(Problem("SD501", f"{what[0]} in code that runs on the GPU", operation.span, help=what[1]))
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


def _impossible(operation: Operation) -> tuple[str, str] | None:
    match operation:
        case Library():
            return f"`{operation.function}` of whole arrays", "write it as loops, or call it outside of the loop"
        case Call() if operation.blocks_of_threads is None:
            return "a recursive function", "write it as a loop"
        case Push(value=Value(type=Array())) | Pop(out=Value(type=Array())) | Peek():
            return "a list of arrays", "use an array with one more axis"
        case Print() if any(isinstance(p, Formatted) for p in operation.parts):
            return "a formatted text", "print the numbers by themselves"
    return None


def private_memory(kernel: Function, thread: Value, *, measures_on_copies: bool = False) -> Private:
    """The kernel with memory for each of its threads; `thread` is the number of one, among all.

    What measures leaves arrays from outside alone, unless it is to be given copies of them.
    """
    kernel = stacks_as_arrays(kernel)
    refuse_in_threads(kernel)
    kernel, errors, raised = _with_errors(kernel)
    memory = _Memory(kernel, thread, measures_on_copies)
    placed, measure = memory.run(), memory.measure()
    return Private(placed, tuple(memory.scratch), measure, memory.count, errors, raised, memory.definition)


def _with_errors(kernel: Function) -> tuple[Function, Value | None, tuple[Raise, ...]]:
    """Exceptions as numbers in an array."""
    found: list[Raise] = []
    errors = Value(Array("int64", 1), "errors")

    def block(old: Block) -> Block:
        operations: list[Operation] = []
        for operation in old.operations:
            if isinstance(operation, Raise):
                found.append(operation)
                operation = replace(operation, errors=errors, code=len(found))
            operations.append(operation.rebuilt(block))
        return changed(old, operations=tuple(operations))

    body = block(kernel.body)
    if not found:
        return kernel, None, ()
    return replace(kernel, params=(*kernel.params, errors), body=body), errors, tuple(found)


def one_more(value: Value) -> Callable[[Builder], Value]:
    return lambda build: build.apply("add", value, build.const(1))


class _Slots:
    """Arrays that a loop makes anew and hands on to its next turn: each is another one, so that they are numbered."""

    def __init__(self, kernel: Function) -> None:
        self.sites = points_to(kernel)
        self.through: dict[Loop, list[Value]] = {}
        """The outermost loops that hand arrays on, with those arrays."""
        self.counters: dict[Value, Value] = {}
        self.numbers: dict[Value, Value] = {}
        """For each of these arrays its number."""
        self.find(kernel.body, ())

    def find(self, block: Block, loops: tuple[Loop, ...]) -> None:
        for operation in block.operations:
            if isinstance(operation, Alloc | Copy):
                for loop in loops:
                    if any(operation.out in self.sites.get(p, ()) for p in loop.params):
                        self.through.setdefault(loop, []).append(operation.out)
                        break
            inner = (*loops, operation) if isinstance(operation, Loop) else loops
            for nested in operation.blocks():
                self.find(nested, inner)

    def block(self, block: Block) -> Block:
        build = Builder()
        for operation in block.operations:
            build.span = operation.span
            if isinstance(operation, Loop):
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

    def __init__(self, kernel: Function, thread: Value, measures_on_copies: bool = False) -> None:
        self.measures_on_copies = measures_on_copies
        slots = _Slots(kernel)
        self.kernel, self.thread = replace(kernel, body=slots.block(kernel.body)), thread
        self.numbers = slots.numbers
        inside = walk(self.kernel.body)
        self.sites: dict[Value, Sites] = points_to(self.kernel)
        self.constants = {o.out: o.value for o in inside if isinstance(o, Const)}
        self.definition = {v: o for o in inside for v in o.defines()}
        self.arrays: dict[Value, Value] = {}
        """What stands for arrays: their parts of larger ones."""
        self.scratch: list[Scratch] = []
        self.aside = Builder()
        """Formulas that only the host computes."""
        self.reports: dict[Operation, list[tuple[int, Callable[[Builder], Value]]]] = {}
        """Operations behind which a length is known that is reported: the place for it, and what writes it."""
        self.count = 0
        self.grown: dict[Value, int] = {}
        """Storage of lists, with the place where its length is reported."""
        for operation in inside:
            if isinstance(operation, Grow):
                self.note_growth(operation)

    def note_growth(self, operation: Grow) -> None:
        """Storage that is one list's under two names gets one length."""
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
                case Grow():
                    self.arrays[operation.out] = operation.array
                case _:
                    build.add(operation.rebuilt(self.block))
        return Block(tuple(build.operations), tuple(self.resolve(y) for y in block.yields))

    def resolve(self, value: Value) -> Value:
        while value in self.arrays:
            value = self.arrays[value]
        return value

    def alloc(self, operation: Alloc, written: Operation, build: Builder) -> None:
        out = self.place(operation.out, written, build)
        if operation.fill is not None:
            fill = build.cast(operation.fill, element_type(out.array))
            build.each_element(out, lambda at: build.store(out, at, fill))

    def copy(self, operation: Copy, written: Operation, build: Builder) -> None:
        source, out = operation.array, self.place(operation.out, written, build)
        build.each_element(out, lambda at: build.store(out, at, build.load(source, at)))

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
        items: list[Item] = [Slice(None, s if isinstance(s, Value) else None, None) for s in shape]
        if number is not None:
            slots = self.report()
            lengths.insert(0, slots)
            self.reports.setdefault(written, []).append((slots, one_more(number)))
            items.insert(0, Index(number))
        name = f"{out.name.strip('%') or 'array'}_of_all"
        param = Value(Array(out.array.dtype, len(lengths) + 1), name)
        self.scratch.append(Scratch(param, tuple(lengths)))
        self.arrays[out] = build.view(param, (*items, Index(self.thread)), out.name)
        return self.arrays[out]

    # -- lengths -----------------------------------------------------------------------------------------------------

    def shape(self, operation: Operation, build: Builder) -> list[Length]:
        """The lengths of a new array; of the storage of a list, the place where it is reported."""
        match operation:
            case Alloc(out=out) if out in self.grown:
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

        def write(build: Builder) -> Value:
            match operation:
                case Alloc(like=None, shape=shape):
                    return shape[axis]
                case Alloc(like=Value() as array) | Copy(array=array):
                    return build.dim(array, axis)
            raise AssertionError(operation)

        self.reports.setdefault(operation, []).append((place, write))
        return place

    def formula(self, size: Value) -> Value | None:
        """The size, computed from numbers and lengths that the kernel is given."""
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

    def measure(self) -> Function | None:
        """As much of the kernel as says how long arrays without formulas have to be."""
        if not self.reports:
            return None
        sizes = Value(Array("int64", 1), "sizes")
        params = (*self.kernel.params, sizes)
        body = self.reporting(self.kernel.body, sizes)
        slim = remove_dead(Function(f"{self.kernel.name}_sizes", params, body))
        memory = _Memory(slim, self.thread)
        placed = memory.run()
        if memory.scratch:
            span = next((o.span for o in self.reports), None)
            message = "how large an array gets depends on what is in another one, on the GPU"
            raise DifferentiationError([Problem("SD501", message, span, help="give arrays a size that is known")])
        return placed

    def reporting(self, block: Block, sizes: Value) -> Block:
        build = Builder()
        for operation in block.operations:
            if self.measures_on_copies and isinstance(operation, Comment) and operation.text == "reverse sweep":
                break  # what is kept is kept by then
            if self.measures_on_copies or not self.writes_outside(operation):
                build.add(operation.rebuilt(lambda inner: self.reporting(inner, sizes)))
            build.span = operation.span
            for place, write in self.reports.get(operation, ()):
                build.add(Enlarge(sizes, build.const(place), write(build), span=operation.span))
        return Block(tuple(build.operations), block.yields)

    def writes_outside(self, operation: Operation) -> bool:
        given = frozenset(self.kernel.params)
        return isinstance(operation, Store) and bool(self.sites.get(operation.array, frozenset()) & given)
