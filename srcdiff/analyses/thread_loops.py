"""Which loops threads can share, and what each block of iterations must have for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from srcdiff.analyses.access_relations import element
from srcdiff.analyses.carried_extremes import Extreme, extreme_of
from srcdiff.analyses.carried_reductions import PRODUCT, SUM, reduction_of
from srcdiff.analyses.dependence import Dependence
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Custom,
    Dim,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Peek,
    Pop,
    Print,
    Push,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.primitives import ATOM, PRIMITIVES
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.quick_dataclasses import dataclass

FEW = 8
"""Loops of fewer iterations, if their number is a constant, leave threads to the loops inside them."""
LIGHT = 3
"""Loops whose blocks all have at most so many operations clear, copy or scale arrays: they wait for memory, and other
threads would not make it faster by as much as they cost in the first call."""
UNKNOWN_TRIPS = 8
"""How many iterations an inner loop is taken to have whose trip count is not known before the outer one."""
_PRIMITIVES = {SUM: "add", PRODUCT: "multiply"}
_COST_OF_CALL = 12
_COST_OF_DIVISION = 4


@dataclass(frozen=True, slots=True)
class Shared:
    """The information that threads need to share a loop."""

    reductions: tuple[str | Extreme, ...]
    """The reduction of each parameter of the loop: the primitive, or the extreme that it belongs to."""
    private: tuple[Value, ...]
    """The arrays outside the loop that all iterations may add to: each block of iterations adds to one of its own."""
    on_word: bool = False
    """Whether its iterations are assumed to be independent because of a `prange`."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Why one thread must run a loop."""

    reason: str


class _Dependence(Dependence):
    """Knows, too, that the row which a loop fills is another one than the row which it has filled before.

    for t in range(n) with u = x
        v = rows[t]            `u` is `x`, or the row before `v`
        ...
        yield v
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.on_word = False
        """Whether iterations were assumed to be independent because of a `prange`."""
        self.rows: dict[frozenset[Value], Loop] = {}
        """A loop parameter and a view, which are different in each iteration of the loop."""
        for operation in walk(function.body):
            if isinstance(operation, Loop) and operation.counted:
                self.find_rows(operation)

    def find_rows(self, loop: Loop) -> None:
        start, _, step = [self.constants.get(b) for b in loop.bounds or ()]
        if not isinstance(start, int) or not isinstance(step, int) or start < 0 or step < 1:
            return
        for param, init, following in zip(loop.params, loop.inits, loop.body.yields, strict=False):
            match self.definition.get(following):
                case View(array=array, items=(Index(value=index), *_)) if index is loop.index:
                    is_new = isinstance(self.definition.get(array), Alloc) and array not in self.memory(init)
                    if is_new and self.structure.home[following] is loop.body:
                        self.rows[frozenset((param, following))] = loop

    def different(self, a: Value, b: Value, *loops: Loop) -> bool:
        return super().different(a, b, *loops) or any(
            all(self.is_inside(inner, loop) for inner in loops)
            for x in self.views(a)
            for y in self.views(b)
            if (loop := self.rows.get(frozenset((x, y)))) is not None
        )

    def iterations_are_apart(self, loop: Loop, x: Load | Store, y: Load | Store) -> bool:
        if super().iterations_are_apart(loop, x, y):
            return True
        claimed = any(
            a.loop == b.loop and a.loop in loop.claims and (a.alone or b.alone) for a in x.claims for b in y.claims
        )
        self.on_word = self.on_word or claimed
        return claimed

    def is_inside(self, inner: Loop, loop: Loop) -> bool:
        return loop in self.structure.loops_around(self.structure.block_of[inner])

    def views(self, array: Value) -> Iterator[Value]:
        """An array, and those that it is a view of."""
        yield array
        while array in self.apart.bases:
            array = self.apart.bases[array]
            yield array


class ThreadLoops:
    """Looks at the loops of a function."""

    def __init__(self, function: Function) -> None:
        self.dependence = _Dependence(function)

    def choice(self, loop: Loop) -> Shared | Alone:
        if not loop.counted or loop.count is not None:
            return Alone("its trip count is known only when it ends")
        trips = self.trips(loop)
        if trips is not None and trips < FEW:
            return Alone("it has few iterations")
        reductions = self.reductions(loop)
        if isinstance(reductions, Alone):
            return reductions
        own = {v for o in walk(loop.body) for v in (*o.defines(), *o.inner())}
        pinned = next((p for o in walk(loop.body) if (p := self.order_needed_by(o, own))), None)
        if pinned is not None:
            return Alone(pinned)
        if loop.parallel is not None and self.only_assigns(loop, own):
            return Shared(reductions, ())
        self.dependence.on_word = False
        private = self.private(loop, own)
        return private if isinstance(private, Alone) else Shared(reductions, private, self.dependence.on_word)

    def reductions(self, loop: Loop) -> tuple[str | Extreme, ...] | Alone:
        """The reductions in the parameters of a loop."""
        found: dict[int, str | Extreme] = {}
        for k, param in enumerate(loop.params):
            kind = None if isinstance(param.type, Array) else reduction_of(self.dependence, loop, k)
            if kind in _PRIMITIVES:
                found[k] = _PRIMITIVES[kind]
            elif kind is not None and (primitive := self.primitive(loop, k)):
                found[k] = primitive
        for k in set(range(len(loop.params))) - set(found):
            extreme = extreme_of(self.dependence, loop, k)
            found |= dict.fromkeys(extreme.slots, extreme) if extreme is not None else {}
        missing = [p for k, p in enumerate(loop.params) if k not in found]
        if missing:
            return Alone(f"each iteration needs {_named(missing[0])} from the one before it")
        return tuple([found[k] for k in range(len(loop.params))])

    def primitive(self, loop: Loop, k: int) -> str:
        """The primitive of a reduction that consists of one primitive; empty for others."""
        value, names = loop.body.yields[k], set[str]()
        while value is not loop.params[k]:
            operation = self.dependence.definition.get(value)
            if not isinstance(operation, Apply) or operation.primitive not in ("maximum", "minimum", "fmax", "fmin"):
                return ""
            names.add(operation.primitive)
            first, second = operation.args
            value = first if self.reaches(loop.params[k], first) else second
        return names.pop() if len(names) == 1 else ""

    def reaches(self, start: Value, end: Value) -> bool:
        operation = self.dependence.definition.get(end)
        return end is start or (isinstance(operation, Apply) and any(self.reaches(start, a) for a in operation.args))

    def trips(self, loop: Loop) -> int | None:
        """The number of iterations, if it is a constant."""
        if loop.bounds is None:
            return None
        known = [self.dependence.constants.get(b) for b in loop.bounds]
        return len(range(*known)) if all(isinstance(k, int) for k in known) and known[2] else None  # type: ignore[arg-type]

    def order_needed_by(self, operation: Operation, own: set[Value]) -> str | None:
        """The reason why iterations cannot run concurrently or in another order, for any memory that they use."""
        match operation:
            case Print():
                return "it prints"
            case Call():
                return f"it calls `{operation.function}`, which is recursive"
            case Library(function=name) if (call := LIBRARY[name].call) is not None:
                return f"it calls the Python function `{call.__name__}`"
            case Push() | Pop() | Peek() if operation.stack not in own:
                return "its iterations share a stack"
            case NewStack() if isinstance(operation.out.type, Array):
                return "it makes lists of arrays"
            case Grow() if not self.dependence.memory(operation.array) <= own:
                return "its iterations share a list"
        return None

    def only_assigns(self, loop: Loop, own: set[Value]) -> bool:
        """Whether all that the loop does to memory from outside is to assign elements of arrays that it never reads.

        Then sweeps of a Jacobian are independent, because each of them assigns parts of its own.
        """
        effects, memory = self.dependence.effects((loop,)), self.dependence.memory
        written = [s for s in effects.stores if not memory(s.array) <= own]
        read = effects.reads | {site for x in effects.loads for site in memory(x.array)}
        return not any(s.adds or memory(s.array) & (read | own) for s in written)

    # -- memory --------------------------------------------------------------------------------------------------------

    def private(self, loop: Loop, own: set[Value]) -> tuple[Value, ...] | Alone:
        """The arrays that blocks of iterations must have for themselves; or why iterations depend on each other."""
        dependence = self.dependence
        memory = dependence.memory
        effects = dependence.effects((loop,))
        written = [x for x in effects.stores if not memory(x.array) <= own]
        if any(memory(x.array) & own for x in written):
            return Alone("a name may refer to an array of one iteration, or to one that all iterations share")
        for store in written:
            if memory(store.array) & effects.reads:
                return Alone(f"iterations read {_named(store.array)} as a whole while others write to it")
        accesses: list[Load | Store] = [*effects.loads, *effects.stores]
        summed: list[Store] = []
        for store in written:
            if not store.adds:
                if not dependence.are_apart(loop, [store], accesses, own, sums=False):
                    return Alone(self.said(loop, store, accesses, own))
            elif not dependence.are_apart(loop, [store], accesses, own, sums=False):
                summed.append(store)
        found: dict[Value, None] = {}
        arrays = {store.array for store in summed}
        for access in accesses:
            if not any(
                memory(access.array) & memory(a) and not dependence.different(access.array, a, loop) for a in arrays
            ):
                continue
            if not isinstance(access, Store) or not access.adds:
                return Alone(f"its iterations add to elements of {_named(access.array)} that others read or assign")
            array = self.outside(access.array, own)
            if array is None:
                return Alone(f"it is not known which array {_named(access.array)} is a part of")
            found[array] = None
        return tuple(found)

    def is_spread(self, loop: Loop, array: Value) -> bool:
        """Whether additions to an array go to elements that other arrays choose, so that threads rarely meet."""
        memory, structure = self.dependence.memory, self.dependence.structure
        for store in self.dependence.effects((loop,)).stores:
            if memory(store.array) & memory(array):
                touched = element(store.array, store.indices, structure, loop)
                if touched is None or None not in touched.indices:
                    return False
        return array.array.dtype in ("float64", "float32")

    def outside(self, array: Value, own: set[Value]) -> Value | None:
        """The array from outside that views made in the loop are views of."""
        while array in own:
            match self.dependence.definition.get(array):
                case View() | Transpose() as operation:
                    array = operation.array
                case _:
                    return None
        definition = self.dependence.definition.get(array)
        return None if isinstance(definition, Reshape) else array

    def said(self, loop: Loop, store: Store, accesses: list[Load | Store], own: set[Value]) -> str:
        other = next((x for x in accesses if not self.dependence.are_apart(loop, [store], [x], own, sums=False)), store)
        name = _named(store.array)
        if isinstance(other, Load):
            return f"an iteration may read an element of {name} that another one writes"
        return f"two iterations may write to the same element of {name}"


def _named(value: Value) -> str:
    return f"`{value.name}`" if value.name and not value.name.startswith("%") else "a value"


# -- work --------------------------------------------------------------------------------------------------------------


class Work:
    """Writes an estimate of the operations of a block before it: for all inner loops that are there, those of an
    iteration, times their numbers of iterations."""

    def __init__(self, body: Block, own: Iterable[Value], dependence: Dependence, build: Builder) -> None:
        """Values that are the block's `own` are not there before it; those that it defines are not, either."""
        self.body, self.dependence, self.build = body, dependence, build
        self.inside = {v for o in walk(body) for v in (*o.defines(), *o.inner())} | set(own)
        self.known: dict[Value, Value] = {}
        self.heaviest = 0
        """The operations of the block that has most of them, without those of loops and branches in it."""

    def of_block(self) -> Value:
        return self.of(self.body)

    def of(self, block: Block) -> Value:
        """The cost of a block, as a value before the loop."""
        flat, total = 0, self.build.const(0)
        for operation in block.operations:
            match operation:
                case Loop():
                    each = self.build.apply("multiply", self.trips(operation), self.of(operation.body))
                    total = self.build.apply("add", total, each)
                case If() | Custom():
                    for inner in operation.blocks():
                        total = self.build.apply("add", total, self.of(inner))
                case Apply():
                    flat += _cost(operation.primitive)
                case Load() | Store():
                    flat += 1
                case Library():
                    flat += UNKNOWN_TRIPS**2
        self.heaviest = max(self.heaviest, flat)
        return self.build.apply("add", total, self.build.const(max(flat, 1)))

    def trips(self, loop: Loop) -> Value:
        if loop.bounds is None or not all(self.is_before(b) for b in loop.bounds):
            return self.build.const(UNKNOWN_TRIPS)
        start, stop, step = (self.before(b) for b in loop.bounds)
        constants = self.build.constants
        if constants.get(start) == 0 and constants.get(step) == 1:
            return stop
        if constants.get(step) == 1:
            return self.build.apply("subtract", stop, start)
        return self.build.apply("range_length", start, stop, step)

    def is_before(self, value: Value) -> bool:
        """Whether a value is the same in every iteration, and is there before the loop or can be computed there."""
        if value not in self.inside:
            return True
        operation = self.dependence.definition.get(value)
        match operation:
            case Const():
                return True
            case Dim():
                return self.length(operation) is not None
            case Apply(primitive="add" | "subtract" | "multiply" | "maximum" | "minimum" | "range_length"):
                return all(self.is_before(a) for a in operation.args)
        return False

    def length(self, dim: Dim) -> tuple[Value, int] | Value | int | None:
        """The length of an axis by what is there before the loop."""
        match self.dependence.lengths.of(dim.array, dim.axis):
            case int(size):
                return size
            case Value() as size if size not in self.inside:
                return size
            case (Value() as array, int(axis)) if array not in self.inside:
                return array, axis
        return None

    def before(self, value: Value) -> Value:
        if value in self.known or value not in self.inside:
            known = self.dependence.constants.get(value)
            if value not in self.known and isinstance(known, int):
                self.known[value] = self.build.const(known)
            return self.known.get(value, value)
        operation = self.dependence.definition[value]
        match operation:
            case Const():
                made = self.build.const(operation.value)
            case Dim():
                match self.length(operation):
                    case int(size):
                        made = self.build.const(size)
                    case (Value() as array, int(axis)):
                        made = self.build.dim(array, axis)
                    case size:
                        assert isinstance(size, Value)
                        made = size
            case Apply():
                made = self.build.apply(operation.primitive, *(self.before(a) for a in operation.args))
            case _:
                raise AssertionError(operation)
        self.known[value] = made
        return made


def _cost(primitive: str) -> int:
    row = PRIMITIVES[primitive]
    if primitive in ("divide", "floor_divide", "remainder"):
        return _COST_OF_DIVISION
    return 1 if row.cheap or row.strength < ATOM else _COST_OF_CALL
