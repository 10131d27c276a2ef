"""The program between source and derivative: values, operations and blocks.

Scalars and array references are values, assigned once. The elements of arrays are memory. Control flow is structured:

    block      operations in order, then the values it yields
    if         two blocks that yield the same number of values
    loop       a body that yields the next value of each parameter; counted (`bounds`), tested (`test`), or ended by its
               body (`leaves`: the last value that the body yields is the exit condition), in any combination

`count` of a loop is its trip count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from enum import Enum
from typing import Any, TypeVar

from srcdiff.diagnostics import Span
from srcdiff.ir.node_methods import derive_methods
from srcdiff.ir.types import Array, Scalar, Type, is_complex
from srcdiff.quick_dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Value:
    """A value, assigned once. `name` is the user's name or a hint; two values may have the same name."""

    type: Type
    name: str = ""

    @property
    def array(self) -> Array:
        assert isinstance(self.type, Array), self
        return self.type

    @property
    def scalar(self) -> Scalar:
        assert isinstance(self.type, Scalar), self
        return self.type


Substitution = Callable[[Value], Value]
Node = TypeVar("Node")


def changed(node: Node, **parts: Any) -> Node:
    """The node with other parts, or the node itself if they are the same."""
    for name, part in parts.items():
        if getattr(node, name) != part:
            return replace(node, **parts)  # type: ignore[type-var]
    return node


# The kinds of fields of operations. The methods of `Operation` are generated from them.
Result = Value
Results = tuple[Value, ...]
Operand = Value
Operands = tuple[Value, ...]
Bounds = tuple[Value, Value, Value]  # operands: start, stop, step
Inner = Value  # a value that the operation's blocks see: a loop's counter, its parameters
Inners = tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """The base of all operations. Each declares the kinds of its fields, and the methods are generated from them."""

    span: Span | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        derive_methods(cls)

    def uses(self) -> tuple[Value, ...]:
        """The operands, without those inside its blocks."""
        return ()

    def defines(self) -> tuple[Value, ...]:
        """The results."""
        return ()

    def inner(self) -> tuple[Value, ...]:
        """Values that belong to the operation's blocks: loop counters, parameters."""
        return ()

    def blocks(self) -> tuple[Block, ...]:
        return ()

    def replaced(self, by: Substitution) -> Operation:
        """The operation with other operands; blocks and results stay."""
        return self

    def redefined(self, by: Substitution) -> Operation:
        """The operation with other results and inner values; operands and blocks stay."""
        return self

    def rebuilt(self, by: Callable[[Block], Block]) -> Operation:
        """The operation with other blocks; operands and results stay."""
        return self


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    operations: tuple[Operation, ...] = ()
    yields: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Const(Operation):
    out: Result
    value: Any


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Operation):
    """A primitive on scalars."""

    out: Result
    primitive: str
    args: Operands


@dataclass(frozen=True, slots=True)
class Claim:
    """What a user's `prange` says of a load or store: the loop of this number has it.

    Another load or store with a claim of the same loop never touches its element in another iteration, if one of them
    has the element `alone`.
    """

    loop: int
    alone: bool = False


Claims = tuple[Claim, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Load(Operation):
    out: Result
    array: Operand
    indices: Operands
    claims: Claims = ()


@dataclass(frozen=True, eq=False, slots=True)
class Store(Operation):
    """`array[indices] = value`, or `+=` if `adds`."""

    array: Operand
    indices: Operands
    value: Operand
    adds: bool = False
    atomic: bool = False
    """Whether other threads may add to the same element at the same time."""
    claims: Claims = ()


class CoordinateKind(Enum):
    """The kinds of coordinates along one axis of a launch, which is a grid of blocks of threads."""

    THREAD_INDEX = "thread_index"  # of a thread in its block
    BLOCK_INDEX = "block_index"  # of its block in the grid
    GLOBAL_INDEX = "global_index"  # of a thread among those of all blocks
    BLOCK_SIZE = "block_size"  # threads in a block
    GRID_SIZE = "grid_size"  # blocks in the grid
    GLOBAL_SIZE = "global_size"  # threads in all blocks

    def __str__(self) -> str:
        return self.value

    @property
    def is_extent(self) -> bool:
        """Whether all threads of a launch have the same."""
        return self in (CoordinateKind.BLOCK_SIZE, CoordinateKind.GRID_SIZE, CoordinateKind.GLOBAL_SIZE)


@dataclass(frozen=True, eq=False, slots=True)
class Coordinate(Operation):
    """Which thread this is, or how many there are, along an axis (0, 1 or 2): an integer that is never negative."""

    out: Result
    kind: CoordinateKind
    axis: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class BlockSum(Operation):
    """The sum over all threads of a block, in float64; all of them must reach it."""

    out: Result
    value: Operand


@dataclass(frozen=True, eq=False, slots=True)
class Enlarge(Operation):
    """`array[index] = max(array[index], value)`, whatever other threads do; beyond `capacity`, the thread ends here."""

    array: Operand
    index: Operand
    value: Operand
    capacity: Operand | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Barrier(Operation):
    """A barrier: all threads of a block wait for each other, and then see each other's stores."""


@dataclass(frozen=True, eq=False, slots=True)
class Alloc(Operation):
    """A new array, filled with `fill`, or not at all."""

    out: Result
    shape: Operands
    fill: Operand | None = None
    like: Operand | None = None
    """The array whose shape this is, if it came from one: `np.zeros_like(a)` reads better than its shape."""
    keeps: Span | None = None
    """The source line of the value that is stored here for the reverse sweep, if any."""
    workspace: Operand | None = None
    """An array from the caller, taken instead if it has the shape."""
    place: str = ""
    """Where it is, in code that a thread of a GPU runs: `local`, its own, or `shared` with the threads of its block."""
    grows: bool = False
    """Whether the loop along its first axis may end early, so that the buffer grows as it runs."""


@dataclass(frozen=True, eq=False, slots=True)
class Copy(Operation):
    out: Result
    array: Operand
    workspace: Operand | None = None
    """An array from the caller, taken instead of a new one if it has the shape."""


@dataclass(frozen=True, slots=True)
class Slice:
    start: Value | None
    stop: Value | None
    step: Value | None

    def parts(self) -> tuple[Value, ...]:
        return tuple(p for p in (self.start, self.stop, self.step) if p is not None)

    def replaced(self, by: Substitution) -> Slice:
        return Slice(*(None if p is None else by(p) for p in (self.start, self.stop, self.step)))


@dataclass(frozen=True, slots=True)
class NewAxis:
    def parts(self) -> tuple[Value, ...]:
        return ()

    def replaced(self, by: Substitution) -> NewAxis:
        return self


@dataclass(frozen=True, slots=True)
class Index:
    value: Value

    def parts(self) -> tuple[Value, ...]:
        return (self.value,)

    def replaced(self, by: Substitution) -> Index:
        return Index(by(self.value))


Item = Slice | NewAxis | Index
Items = tuple[Item, ...]


@dataclass(frozen=True, eq=False, slots=True)
class View(Operation):
    """Another reference to part of the same memory: basic indexing."""

    out: Result
    array: Operand
    items: Items


@dataclass(frozen=True, eq=False, slots=True)
class Transpose(Operation):
    out: Result
    array: Operand
    axes: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Reshape(Operation):
    """The memory of a contiguous array in another shape."""

    out: Result
    array: Operand
    shape: Operands


@dataclass(frozen=True, eq=False, slots=True)
class Part(Operation):
    """The real or imaginary parts of an array of complex numbers: half of its memory."""

    out: Result
    array: Operand
    part: str


@dataclass(frozen=True, eq=False, slots=True)
class Library(Operation):
    """A library call on arrays; it returns new arrays and writes to none."""

    outs: Results
    function: str
    args: Operands


@dataclass(frozen=True, eq=False, slots=True)
class Dim(Operation):
    """The length of an axis."""

    out: Result
    array: Operand
    axis: int


@dataclass(frozen=True, eq=False, slots=True)
class Grow(Operation):
    """The storage of a list that can hold element `size`: the same, or one twice as large with the same contents.

    The old storage is not used afterwards; its elements continue in the new one.
    """

    out: Result
    array: Operand
    size: Operand
    axis: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class If(Operation):
    condition: Operand
    then: Block
    orelse: Block
    outs: Results = ()


@dataclass(frozen=True, slots=True)
class Parallel:
    """What a user says of a loop by `prange`: its iterations are independent, but for reductions.

    A pass looks whether that can be true, and puts claims in place of the mark. The loop over the sweeps of a Jacobian
    has the mark, too, for the pass that lets threads share loops.
    """

    reductions: tuple[tuple[str, Span], ...] = ()
    """The variables that iterations add to, multiply, or compare with, and the statements that do it."""


@dataclass(frozen=True, eq=False, slots=True)
class Loop(Operation):
    index: Inner | None
    bounds: Bounds | None
    params: Inners
    inits: Operands
    test: Block | None
    body: Block
    outs: Results
    count: Result | None = None
    leaves: bool = False
    parallel: Parallel | None = None
    threads: bool = False
    """Whether threads share its iterations. It hands nothing on, and no pass moves memory of an iteration out of it."""
    claims: tuple[int, ...] = ()
    """The numbers of the users' loops whose iterations these are: claims of loads and stores have them, too."""

    @property
    def counted(self) -> bool:
        """Whether the number of iterations is known when the loop starts."""
        return self.bounds is not None and self.test is None and not self.leaves


@dataclass(frozen=True, eq=False, slots=True)
class Call(Operation):
    """A call of another function of the program; only recursion needs it, other calls are inlined. Or of a kernel.

    The arrays that it returns are new.
    """

    outs: Results
    function: str
    args: Operands
    writes: tuple[int, ...] = ()
    """Which of its arguments are arrays that it writes into."""
    blocks_of_threads: Operand | None = None
    """How many blocks of threads run it, if it is a kernel."""
    alone: bool = False
    """Whether one thread runs it."""
    effects: bool = False
    """Whether it may raise or print, so that it is not dead even if its results are unused."""

    @property
    def written(self) -> tuple[Value, ...]:
        return tuple([self.args[k] for k in self.writes])


@dataclass(frozen=True, eq=False, slots=True)
class Custom(Operation):
    """A computation whose derivative the user declared: `body` computes `outs`, `rule` makes the adjoint."""

    outs: Results
    args: Operands
    params: Inners
    body: Block
    rule: Any


@dataclass(frozen=True, eq=False, slots=True)
class Derivative(Operation):
    """A derivative of what `body` computes, with respect to the parameters that are floats.

    It changes nothing around it: where the body writes into an array, the derivative writes into a copy. The arrays
    that it returns are new. A pass writes the derivative in place of the operation, before any other pass.
    """

    outs: Results
    """First the results of the body, if `with_value`. Then, for each float parameter, the adjoint that belongs to an
    adjoint of one of the first result (`reverse`); for each result, its tangent (`forward`); nothing (`primal`); or for
    each float result and each float parameter, a part of the Jacobian."""
    function: str
    """The name of the user's function."""
    args: Operands
    params: Inners
    body: Block
    mode: str = ""
    """`reverse`, `forward` or `primal`; of a Jacobian, `forward`, `pullback`, or nothing: the cheaper one."""
    tangents: Operands = ()
    """The tangents of the float parameters, in forward mode."""
    with_value: bool = False
    jacobian: bool = False
    directions: int = 0
    """The number of directions in one sweep of a Jacobian, if the user chose it."""


@dataclass(frozen=True, eq=False, slots=True)
class Formatted:
    """A text with values in it: `template.format(*values)`."""

    template: str
    values: tuple[Value, ...]


Parts = tuple[Any, ...]
"""The arguments of `print` or of an exception: constants, values, texts with values, and tuples of those."""


def values_in(part: Any) -> tuple[Value, ...]:
    """The values in an argument of `print` or of an exception: a constant, a value, a text, or a tuple of those."""
    match part:
        case Value():
            return (part,)
        case Formatted():
            return part.values
        case tuple():
            return tuple(v for p in part for v in values_in(p))
    return ()


def with_values(part: Any, by: Substitution) -> Any:
    match part:
        case Value():
            return by(part)
        case Formatted():
            return changed(part, values=tuple([by(v) for v in part.values]))
        case tuple():
            return tuple(with_values(p, by) for p in part)
    return part


@dataclass(frozen=True, eq=False, slots=True)
class Raise(Operation):
    """Raise `exception(*parts)`; a thread of a GPU leaves a `code` in an array for its host instead, and ends."""

    exception: type[BaseException]
    parts: Parts
    errors: Operand | None = None
    code: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Print(Operation):
    """`print(*parts)`; a formatted string is the only part and includes its line end."""

    parts: Parts
    flush: bool = False
    to: str = ""
    """`log` or `warn`, if a logger gets it, or it is a warning: the first line of the text says which."""


STACK_START = 64
"""How many numbers a stack can hold at first."""


@dataclass(frozen=True, eq=False, slots=True)
class NewStack(Operation):
    """An empty stack, for values between the sweeps whose number is not known in advance."""

    out: Result
    keeps: Span | None = None
    """The place of the value that is kept here."""
    workspace: Operand | None = None
    """An array from the caller for a start, of any length."""


@dataclass(frozen=True, eq=False, slots=True)
class Push(Operation):
    stack: Operand
    value: Operand


@dataclass(frozen=True, eq=False, slots=True)
class Pop(Operation):
    out: Result
    stack: Operand


@dataclass(frozen=True, eq=False, slots=True)
class Again(Operation):
    """A reference to the array that a loop allocated in a certain iteration, with its shape."""

    out: Result
    array: Value
    """Its name where it was allocated; here the name may refer to a later one."""
    number: Operand
    shape: Operands


@dataclass(frozen=True, eq=False, slots=True)
class Peek(Operation):
    """A reference that a list of arrays holds."""

    out: Result
    stack: Operand
    index: Operand


@dataclass(frozen=True, eq=False, slots=True)
class Comment(Operation):
    """A line of comment in the generated code."""

    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Parameter:
    """An argument of the user's function: its name and the values it is taken apart into."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Function:
    name: str
    params: tuple[Value, ...]
    body: Block
    written: tuple[Value, ...] = ()
    """Parameters whose memory is part of the result."""


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """The main function and its callees (only recursive functions are not inlined)."""

    main: Function
    callees: tuple[Function, ...] = ()


References = View | Transpose | Reshape | Part
"""Operations that return another reference to the same memory."""


def walk(block: Block) -> list[Operation]:
    """Every operation of the block and of the blocks inside it, in order of text."""
    found: list[Operation] = []
    _gather(block, found)
    return found


def complex_values(program: Program) -> list[Value]:
    """The complex numbers, and the arrays of such, of a program."""
    functions = (program.main, *program.callees)
    values = [v for f in functions for v in (*f.params, *(d for o in walk(f.body) for d in o.defines()))]
    return [v for v in values if is_complex(v.type)]


def use_counts(block: Block) -> Counter[Value]:
    """How often values are used."""
    found = Counter(block.yields)
    for operation in walk(block):
        found.update(operation.uses())
        for inner in operation.blocks():
            found.update(inner.yields)
    return found


def _gather(block: Block, into: list[Operation]) -> None:
    for operation in block.operations:
        into.append(operation)
        for inner in operation.blocks():
            _gather(inner, into)


def functions_with(functions: Iterable[Function], kinds: tuple[type[Operation], ...]) -> set[str]:
    """The names of functions that contain such operations, directly or in a callee."""
    inside = {f.name: walk(f.body) for f in functions}
    found = {name for name, operations in inside.items() if any(isinstance(o, kinds) for o in operations)}
    size = -1
    while size != len(found):
        size = len(found)
        for name, operations in inside.items():
            if any(isinstance(o, Call) and o.function in found for o in operations):
                found.add(name)
    return found


def called_by(main: Function, functions: Iterable[Function]) -> tuple[Function, ...]:
    """The functions that the program reaches."""
    named = {f.name: f for f in functions}
    found, work = set[str](), [main]
    while work:
        calls = {o.function for o in walk(work.pop().body) if isinstance(o, Call)}
        work += [named[name] for name in sorted(calls - found)]
        found |= calls
    return tuple(f for f in named.values() if f.name in found)


def free_values(function: Function) -> set[Value]:
    """The values that a function uses and does not define: those of a program around it."""
    return set(values_around(function.body, function.params))


def values_around(block: Block, defined: Iterable[Value] = ()) -> list[Value]:
    """The values that a block takes from around it, in order; some values are defined there for it."""
    operations = walk(block)
    known = {*defined, *(v for o in operations for v in (*o.defines(), *o.inner()))}
    blocks = [block, *(b for o in operations for b in o.blocks())]
    used = [v for o in operations for v in o.uses()] + [v for b in blocks for v in b.yields]
    return list(dict.fromkeys(v for v in used if v not in known))


def substituted(block: Block, by: Substitution) -> Block:
    """The block with other values, in the blocks inside it too; results stay."""
    operations = tuple([o.replaced(by).rebuilt(lambda inner: substituted(inner, by)) for o in block.operations])
    return changed(block, operations=operations, yields=tuple([by(v) for v in block.yields]))
