"""Memory of code that a thread of a GPU runs: arrays of its own where their size is known, else parts of larger ones.

t = np.zeros(3)                              t = cuda.local.array(3, np.float64); t[0] = t[1] = t[2] = 0
kept = np.empty(n)                =>         kept = kept_of_all[:n, thread]
kept = grown(kept, k)                        (it is large enough from the start)

How large the larger ones have to be, the host finds out: from the formulas of the sizes, if they are made of numbers
and lengths that it knows, else by a kernel that runs as much of the program as they depend on and reports the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import Array, element_type
from srcdiff.transforms.simplify import remove_dead, simplify
from srcdiff.transforms.stacks import stacks_as_arrays

LOCAL_BYTES = 16 * 1024
"""How much of an array a thread has by itself; larger ones are parts of an array of all threads."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array of all threads: the parameter of the kernel that it is passed for, and how large a thread's part is.

    A length is a value of the kernel if `formulas` has it, else the kernel that measures reports it.
    """

    param: Value
    formulas: tuple[Value | None, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Private:
    """A kernel whose threads have their memory."""

    kernel: Function
    scratch: tuple[Scratch, ...] = ()
    measure: Function | None = None
    """Reports the lengths that have no formula, in this order, into an array that is its last parameter."""
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
    placed = memory.run()
    return Private(placed, tuple(memory.scratch), memory.measure(), errors, raised, memory.definition)


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


class _Memory:
    def __init__(self, kernel: Function, thread: Value, measures_on_copies: bool = False) -> None:
        self.kernel, self.thread, self.measures_on_copies = kernel, thread, measures_on_copies
        self.sites: dict[Value, Sites] = points_to(kernel)
        self.constants = {o.out: o.value for o in walk(kernel.body) if isinstance(o, Const)}
        self.definition = {v: o for o in walk(kernel.body) for v in o.defines()}
        self.arrays: dict[Value, Value] = {}
        """Storage of lists, by the names that it gets when it would have been replaced by a larger one."""
        self.grows = [o for o in walk(kernel.body) if isinstance(o, Grow)]
        self.scratch: list[Scratch] = []
        self.unknown: dict[Operation, list[tuple[int, int | None]]] = {}
        """Operations that say how long an axis has to be, which is then reported: the place there, and the axis."""
        self.count = 0

    def run(self) -> Function:
        self.refuse_what_outlives_its_turn(self.kernel.body, ())
        body = self.block(self.kernel.body)
        params = (*self.kernel.params, *(s.param for s in self.scratch))
        return simplify(replace(self.kernel, params=params, body=body))

    def refuse_what_outlives_its_turn(self, block: Block, loops: tuple[Loop, ...]) -> None:
        for operation in block.operations:
            if isinstance(operation, Alloc | Copy):
                for loop in loops:
                    if any(operation.out in self.sites.get(p, ()) for p in loop.params):
                        message = "an array that a loop makes anew, and hands on to its next turn, on the GPU"
                        help_ = "make it before the loop, and write into it"
                        raise DifferentiationError([Problem("SD501", message, operation.span, help=help_)])
            inner = (*loops, operation) if isinstance(operation, Loop) else loops
            for nested in operation.blocks():
                self.refuse_what_outlives_its_turn(nested, inner)

    def block(self, block: Block) -> Block:
        build = Builder()
        for written in block.operations:
            operation = written.replaced(self.resolve)
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
        build.span = operation.span
        shape = operation.shape if operation.like is None else self.lengths(operation.like, build)
        out = self.place(operation.out, written, shape, build)
        if operation.fill is not None:
            fill = build.cast(operation.fill, element_type(out.array))
            build.each_element(out, lambda at: build.store(out, at, fill), lambda axis: shape[axis])

    def copy(self, operation: Copy, written: Operation, build: Builder) -> None:
        build.span = operation.span
        source, shape = operation.array, self.lengths(operation.array, build)
        out = self.place(operation.out, written, shape, build)
        build.each_element(out, lambda at: build.store(out, at, build.load(source, at)), lambda axis: shape[axis])

    def lengths(self, array: Value, build: Builder) -> tuple[Value, ...]:
        """The lengths of an array; what they are computed from is known."""
        shape = build.shape(array)
        self.definition |= {v: o for o in build.operations[-len(shape) :] for v in o.defines()}
        return shape

    def place(self, out: Value, operation: Operation, shape: Sequence[Value], build: Builder) -> Value:
        """Write where the array is."""
        grows = [g for g in self.grows if out in self.sites.get(g.array, ())]
        sizes = [self.constants.get(s) for s in shape]
        if not grows and all(isinstance(s, int) for s in sizes):
            count = 1
            for size in sizes:
                assert isinstance(size, int)
                count *= size
            if count > 0 and 8 * count <= LOCAL_BYTES:
                build.add(Alloc(out, tuple(shape), place="local", span=operation.span))
                return out
        param = Value(Array(out.array.dtype, out.array.rank + 1), f"{out.name.strip('%') or 'array'}_of_all")
        formulas = tuple(None if grows else self.formula(s) for s in shape)
        self.scratch.append(Scratch(param, formulas, out.name))
        for axis, formula in enumerate(formulas):
            if formula is None:
                for source in (operation, *grows):
                    self.unknown.setdefault(source, []).append((self.count, axis))
                self.count += 1
        whole = Slice(None, None, None)
        items: tuple[Item, ...] = (*(whole if grows else Slice(None, s, None) for s in shape), Index(self.thread))
        self.arrays[out] = build.view(param, items, out.name)
        return self.arrays[out]

    def formula(self, size: Value) -> Value | None:
        """The size, if it is computed from numbers and lengths that the kernel is given."""
        if size in self.kernel.params:
            return size
        match self.definition.get(size):
            case Const():
                return size
            case Dim(array=array):
                return size if array in self.kernel.params else None
            case Apply(args=args):
                return size if all(self.formula(a) is not None for a in args) else None
        return None

    # -- reporting ---------------------------------------------------------------------------------------------------

    def measure(self) -> Function | None:
        """As much of the kernel as says how long arrays without formulas have to be."""
        if not self.unknown:
            return None
        sizes = Value(Array("int64", 1), "sizes")
        name = f"{self.kernel.name}_sizes"
        params = (*self.kernel.params, sizes)
        slim = remove_dead(Function(name, params, self.reporting(self.kernel.body, sizes)))
        memory = _Memory(slim, self.thread)
        placed = memory.run()
        if memory.scratch:
            span = next((o.span for o in self.unknown), None)
            message = "how large an array gets depends on what is in another one, on the GPU"
            raise DifferentiationError([Problem("SD501", message, span, help="give arrays a size that is known")])
        return placed

    def reporting(self, block: Block, sizes: Value) -> Block:
        build = Builder()
        for operation in block.operations:
            if self.measures_on_copies and isinstance(operation, Comment) and operation.text == "reverse sweep":
                break  # what is kept is kept by then
            if self.measures_on_copies or not (isinstance(operation, Store) and operation.array in self.kernel.params):
                build.add(operation.rebuilt(lambda inner: self.reporting(inner, sizes)))
            build.span = operation.span
            for place, axis in self.unknown.get(operation, ()):
                size = self.size(operation, axis, build)
                build.add(Enlarge(sizes, build.const(place), size, span=operation.span))
        return Block(tuple(build.operations), block.yields)

    @staticmethod
    def size(operation: Operation, axis: int | None, build: Builder) -> Value:
        match operation:
            case Grow():
                return build.apply("add", operation.size, build.const(1))
            case Alloc(like=None, shape=shape):
                assert axis is not None
                return shape[axis]
            case Alloc(like=Value() as array) | Copy(array=array):
                assert axis is not None
                return build.dim(array, axis)
        raise AssertionError(operation)
