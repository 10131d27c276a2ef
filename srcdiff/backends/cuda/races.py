"""Races and divergent barriers: which threads reach a barrier, and which elements two threads touch.

All threads run the same program. An access by one thread and an access by another touch the same element for a set of
integers: the coordinates of both threads, the iterations of their loops, and common sizes. isl decides whether the set
is empty. With `D` threads in a block, a thread has along an axis

    threadIdx = t     blockIdx = b     grid = s + t     where 0 <= t < D and s = b * D,

and the `s` of consecutive blocks are at least `D` apart, so everything is linear without the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.backends.cuda.cuda_spelling import named
from srcdiff.diagnostics import Problem
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    Coordinate,
    CoordinateKind,
    Copy,
    Dim,
    Function,
    If,
    Index,
    Load,
    Loop,
    NewAxis,
    Operation,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import Array, is_float
from srcdiff.quick_dataclasses import dataclass

Access = Load | Store

Along = tuple[CoordinateKind, int]
"""The kind of a coordinate, and its axis."""
_THREAD, _BLOCK = CoordinateKind.THREAD_INDEX, CoordinateKind.BLOCK_INDEX
_EXTENTS = CoordinateKind.BLOCK_SIZE, CoordinateKind.GRID_SIZE, CoordinateKind.GLOBAL_SIZE
_AXES = range(3)
SPREAD: tuple[Along, ...] = tuple((kind, axis) for kind in (_BLOCK, _THREAD) for axis in _AXES)
"""The coordinates along which a launch may have more than one block or thread."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The facts about launches: the coordinates with more than one block or thread."""

    coordinates: frozenset[Along]
    block: tuple[int, int, int] | None = None
    """How many threads a block has along each axis, if it is looked at for such blocks alone."""

    def __contains__(self, coordinate: object) -> bool:
        return coordinate in self.coordinates

    def __iter__(self) -> Iterator[Along]:
        return (c for c in SPREAD if c in self.coordinates)


_COMPARED = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!="}
_FIRST = "first thread of the block"


# -- which values differ from thread to thread -----------------------------------------------------------------------


def is_private(site: Value, structure: Structure) -> bool:
    """Whether an array belongs to one thread."""
    made = structure.definition.get(site)
    return isinstance(made, Copy) or (isinstance(made, Alloc) and made.place != "shared")


def differing(function: Function) -> set[Value]:
    """The values that may differ among the threads of a block, and their own arrays that may hold such values."""
    return _Differing(function).run()


class _Differing:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.sites: dict[Value, Sites] = points_to(function)
        self.structure: Structure = structure_of(function)
        self.found: set[Value] = set()

    def run(self) -> set[Value]:
        size = -1
        while size != len(self.found):
            size = len(self.found)
            self.block(self.function.body, inside=False)
        return self.found

    def block(self, block: Block, *, inside: bool) -> None:
        """`inside`: in a branch or a loop that threads do not take alike."""
        for operation in block.operations:
            self.operation(operation, inside)

    def operation(self, operation: Operation, inside: bool) -> None:
        differs = any(v in self.found for v in operation.uses() if not isinstance(v.type, Array))
        match operation:
            case Coordinate():
                differs = operation.kind in (_THREAD, CoordinateKind.GLOBAL_INDEX)
            case Load():
                memory = self.sites.get(operation.array, frozenset((operation.array,)))
                differs = differs or any(s in self.found for s in memory)
            case Store():
                own = {s for s in self.sites.get(operation.array, ()) if is_private(s, self.structure)}
                self.found |= own if differs or inside else set()
            case If():
                apart = operation.condition in self.found
                for side in operation.blocks():
                    self.block(side, inside=inside or apart)
                for out, *sides in zip(operation.outs, operation.then.yields, operation.orelse.yields, strict=True):
                    if apart or any(v in self.found for v in sides):
                        self.found.add(out)
                return
            case Loop():
                self.loop(operation, inside)
                return
        if differs:
            self.found |= set(operation.defines())

    def loop(self, loop: Loop, inside: bool) -> None:
        apart = any(v in self.found for v in ends_of(loop))
        for block in loop.blocks():
            self.block(block, inside=inside or apart)
        for k, param in enumerate(loop.params):
            if apart or any(v in self.found for v in (loop.inits[k], loop.body.yields[k])):
                self.found |= {param, loop.outs[k]}
        if apart:
            self.found |= {v for v in (loop.index, loop.count) if v is not None}


def ends_of(loop: Loop) -> list[Value]:
    """The values that determine the trip count of a loop."""
    found = list(loop.bounds or ())
    if loop.test is not None:
        found += loop.test.yields
    if loop.leaves:
        found.append(loop.body.yields[-1])
    return found


# -- problems --------------------------------------------------------------------------------------------------------


def problems_of_threads(function: Function, spread: Spread) -> list[Problem]:
    """Barriers that some threads of a block may not reach, and certain races."""
    return [*_divided_barriers(function), *_Races(function, spread).problems()]


def _divided_barriers(function: Function) -> list[Problem]:
    structure, differs = structure_of(function), differing(function)
    found: list[Problem] = []
    for barrier in (o for o in structure.start if isinstance(o, Barrier)):
        for block in structure.blocks_around(structure.block_of[barrier]):
            owner = structure.owner.get(block)
            decides = [owner.condition] if isinstance(owner, If) else ends_of(owner) if isinstance(owner, Loop) else []
            if any(v in differs for v in decides):
                what = "a branch" if isinstance(owner, If) else "a loop"
                line = f" in line {owner.span.line}" if owner is not None and owner.span is not None else ""
                message = (
                    f"some threads may not reach this `cuda.syncthreads()`: it is inside {what}{line} that differs"
                )
                help_ = "move the barrier out of the branch or loop, and do not `return` before it"
                found.append(Problem("SD502", f"{message} from thread to thread", barrier.span, help=help_))
                break
    return found


class _Races:
    """Stores of one thread that another thread meets for certain, with no barrier between."""

    def __init__(self, function: Function, spread: Spread) -> None:
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.meetings = Meetings(function, spread)
        self.interval: dict[Operation, tuple[int, ...]] = {}
        self.rounds: list[tuple[Loop, set[Operation], set[Operation]]] = []
        """Loops with barriers, with the accesses after the last and before the first barrier."""
        self.count = 0
        self.number(function.body, (0,))

    def number(self, block: Block, now: tuple[int, ...]) -> tuple[int, ...]:
        """Number the intervals between barriers; after a branch, the intervals of both sides are possible."""
        for operation in block.operations:
            match operation:
                case Load() | Store():
                    self.interval[operation] = now
                case Barrier():
                    self.count += 1
                    now = (self.count,)
                case If():
                    now = tuple({*self.number(operation.then, now), *self.number(operation.orelse, now)})
                case Loop() if any(isinstance(o, Barrier) for o in walk(operation.body)):
                    before, now = now, self.number(operation.body, now)
                    inside = [o for o in walk(operation.body) if o in self.interval]
                    last = {o for o in inside if set(self.interval[o]) & set(now)}
                    self.rounds.append((operation, last, {o for o in inside if set(self.interval[o]) & set(before)}))
                case _:
                    for inner in operation.blocks():
                        now = self.number(inner, now)
        return now

    def problems(self) -> list[Problem]:
        accesses = [o for o in self.interval if isinstance(o, Load | Store) and not self.is_own(o)]
        found: dict[Problem, None] = {}
        for store in accesses:
            if not isinstance(store, Store):
                continue
            for other in accesses:
                problem = self.between(store, other)
                if problem is not None:
                    found[problem] = None
                    break
        return list(found)

    def is_own(self, access: Access) -> bool:
        return all(is_private(s, self.structure) for s in self.sites.get(access.array, ()))

    def between(self, store: Store, other: Access) -> Problem | None:
        if not self.sites.get(store.array, frozenset()) & self.sites.get(other.array, frozenset()):
            return None
        if isinstance(other, Store):
            if self.structure.start[other] < self.structure.start[store] or (store.atomic and other.atomic):
                return None
            known = [self.structure.constants.get(s.value) for s in (store, other)]
            if known[0] is not None and known[0] == known[1] and not store.adds and not other.adds:
                return None  # all of them store the same
        if not self.surely(store, other):
            return None
        name = store.array.name or "an array"
        help_ = "let each thread write its own element, or use `cuda.atomic.add`"
        if isinstance(other, Store) and store.atomic == other.atomic:
            where = "" if other is store else f", here and in line {other.span.line}" if other.span else ""
            message = f"different threads write to the same element of `{name}` at the same time{where}"
            return Problem("SD502", message, store.span, notes=self.notes(), help=help_)
        what = "add to" if isinstance(other, Store) else "read"
        line = f" in line {other.span.line}" if other.span is not None else ""
        message = f"this writes to an element of `{name}` that other threads {what}{line} at the same time"
        is_shared = all(isinstance(self.structure.definition.get(s), Alloc) for s in self.sites.get(store.array, ()))
        help_ = "put a `cuda.syncthreads()` between them" + ("" if is_shared else ", or write to another array")
        return Problem("SD502", message, store.span, notes=self.notes(), help=help_)

    def notes(self) -> tuple[str, ...]:
        return (f"the launch has more than one value of {', '.join(f'`{named(*c)}`' for c in self.meetings.spread)}",)

    def surely(self, a: Access, b: Access) -> bool:
        """Whether two threads certainly meet: those of different blocks at any time, others between two barriers."""
        return self.in_one_iteration(a, b) or any(
            self.meetings.surely(x, y, same_block=True, same_iteration=self.loops_around(x, loop), next_iteration=loop)
            for loop, last, first in self.rounds
            for x, y in ((a, b), (b, a))
            if x in last and y in first and self.loops_with_barriers(x) == self.loops_with_barriers(y)
        )

    def loops_around(self, access: Access, loop: Loop) -> list[Loop]:
        return [x for x in self.loops_with_barriers(access) if x is not loop]

    def in_one_iteration(self, a: Access, b: Access) -> bool:
        shared = any(
            isinstance(self.structure.definition.get(s), Alloc) for x in (a, b) for s in self.sites.get(x.array, ())
        )
        if not shared and self.meetings.surely(a, b, same_block=False):
            return True
        together = set(self.interval[a]) & set(self.interval[b])
        if not together or self.loops_with_barriers(a) != self.loops_with_barriers(b):
            return False
        return self.meetings.surely(a, b, same_block=True, same_iteration=self.loops_with_barriers(a))

    def loops_with_barriers(self, access: Access) -> list[Loop]:
        around = self.structure.loops_around(self.structure.block_of[access])
        return [x for x in around if any(isinstance(o, Barrier) for o in walk(x.body))]


# -- two threads -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Side:
    """One of two threads at its access."""

    mark: str
    variables: dict[object, str] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    exact: bool = True
    """Whether all that decides where it comes is in the constraints."""
    strides: list[tuple[int, str, str]] = field(default_factory=list)
    """Indices of a grid-stride loop: the axis, the index, and the starting index of the thread."""

    def variable(self, key: object) -> str:
        return self.variables.setdefault(key, f"{self.mark}{len(self.variables)}")


class Meetings:
    """Whether accesses of different threads touch the same element."""

    def __init__(self, function: Function, spread: Spread) -> None:
        self.spread = spread
        """The coordinates along which there is more than one thread or block."""
        self.structure: Structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.differs = differing(function)
        self.lengths = lengths_of(function)
        self.parameters: dict[object, str] = {}
        self.sizes: set[str] = set()

    def never(self, a: Access, b: Access) -> bool:
        """Whether no two threads touch the same element, whenever it is."""
        sides = _Side("a"), _Side("b")
        bases, indices = [], []
        for side, access in zip(sides, (a, b), strict=True):
            self.place(access, side)
            base, found = self.element(access, side)
            bases.append(base)
            indices.append([i if i is not None and self.is_natural(i, side) else None for i in found])
        if bases[0] is None or bases[0] is not bases[1]:
            return not self.sites.get(a.array, frozenset()) & self.sites.get(b.array, frozenset())
        block = None if not isinstance(self.structure.definition.get(bases[0]), Alloc) else True
        return self.is_empty(sides, [*self.apart(sides, block), *self.equal(*indices)])

    def surely(
        self,
        a: Access,
        b: Access,
        *,
        same_block: bool,
        same_iteration: Sequence[Loop] = (),
        next_iteration: Loop | None = None,
    ) -> bool:
        """Whether two threads, of one block or not, meet for some sizes, and all is known about when they come."""
        sides = _Side("a"), _Side("b")
        for loop in same_iteration:
            sides[1].variables[loop.index] = sides[0].variable(loop.index)
        if next_iteration is not None:
            step = self.structure.constants.get(next_iteration.bounds[2]) if next_iteration.bounds is not None else None
            if not isinstance(step, int):
                return False
            here, there = (side.variable(next_iteration.index) for side in sides)
            sides[1].constraints.append(f"{there} = {here} + {step}")
        bases, indices = [], []
        for side, access in zip(sides, (a, b), strict=True):
            self.place(access, side)
            base, found = self.element(access, side)
            bases.append(base)
            indices.append(found)
        if bases[0] is None or bases[0] is not bases[1] or any(i is None for side in indices for i in side):
            return False
        natural = [f"{i} >= 0" for side in indices for i in side]
        if not all(side.exact for side in sides):
            return False
        return not self.is_empty(sides, [*self.apart(sides, same_block), *natural, *self.equal(*indices)])

    # -- sets --------------------------------------------------------------------------------------------------------

    def equal(self, first: list[str | None], second: list[str | None]) -> list[str]:
        return [f"{x} = {y}" for x, y in zip(first, second, strict=True) if x is not None and y is not None]

    def is_natural(self, index: str, side: _Side) -> bool:
        """A negative index would count from the end."""
        return self.is_empty((side,), [f"{index} < 0"])

    def thread(self, side: _Side) -> list[str]:
        found: list[str] = []
        for axis in _AXES:
            t, b, s = (side.variable((what, axis)) for what in (_THREAD, _BLOCK, _FIRST))
            block, grid, size = (self.parameter((kind, axis)) for kind in _EXTENTS)
            found += [f"0 <= {t} < {block}", f"0 <= {b} < {grid}", f"0 <= {s}", f"{s} + {block} <= {size}"]
            if (_THREAD, axis) not in self.spread:
                found.append(f"{block} = 1")
            elif self.spread.block is not None:
                extent = self.spread.block[axis]
                found += [f"{block} = {extent}", f"{s} = {extent}*{b}"]
            if (_BLOCK, axis) not in self.spread:
                found += [f"{grid} = 1", f"{s} = 0"]
        return found

    def apart(self, sides: tuple[_Side, _Side], same_block: bool | None) -> list[str]:
        """Constraints for two different threads, of the same block or not if `same_block` is known."""
        found: list[str] = []
        threads: list[str] = []
        blocks: list[str] = []
        for axis in _AXES:
            (t, u), (b, c), (s, r) = (
                tuple(side.variable((what, axis)) for side in sides) for what in (_THREAD, _BLOCK, _FIRST)
            )
            size = self.parameter((CoordinateKind.BLOCK_SIZE, axis))
            before, behind = f"{b} < {c} and {s} + {size} <= {r}", f"{b} > {c} and {r} + {size} <= {s}"
            found.append(f"(({b} = {c} and {s} = {r}) or ({before}) or ({behind}))")
            threads += [f"{t} < {u} or {t} > {u}"] if (_THREAD, axis) in self.spread else []
            blocks += [f"{b} < {c} or {b} > {c}"] if (_BLOCK, axis) in self.spread else []
            if same_block:
                found.append(f"{b} = {c}")
        differ = threads if same_block else blocks if same_block is False else [*threads, *blocks]
        for axis, mine, own in sides[0].strides:
            for other_axis, other, others_own in sides[1].strides:
                if axis == other_axis:  # threads have disjoint indices
                    found.append(f"({mine} < {other} or {mine} > {other} or {own} = {others_own})")
        return [*found, f"({' or '.join(differ)})" if differ else "1 = 0"]

    def is_empty(self, sides: Sequence[_Side], constraints: list[str]) -> bool:
        import islpy

        threads = [text for side in sides for text in self.thread(side)]
        own = [text for side in sides for text in side.constraints]
        natural = [f"{name} >= 0" for name in self.sizes]
        variables = ", ".join(dict.fromkeys(name for side in sides for name in side.variables.values()))
        names = ", ".join(self.parameters.values())
        text = f"[{names}] -> {{ [{variables}] : {' and '.join([*threads, *own, *natural, *constraints])} }}"
        return bool(islpy.Set(text).is_empty())

    def parameter(self, key: object) -> str:
        return self.parameters.setdefault(key, f"p{len(self.parameters)}")

    # -- the accesses of a thread -----------------------------------------------------------------------------------

    def place(self, access: Access, side: _Side) -> None:
        """The branches and loops around an access, as constraints."""
        block = self.structure.block_of[access]
        for inner in self.structure.blocks_around(block):
            owner = self.structure.owner.get(inner)
            if isinstance(owner, If):
                self.condition(owner.condition, side, inner is owner.then)
            elif isinstance(owner, Loop):
                self.loop(owner, side)
            elif owner is not None:
                side.exact = False

    def condition(self, value: Value, side: _Side, truth: bool) -> None:
        definition = self.structure.definition.get(value)
        if not isinstance(definition, Apply):
            side.exact = False
            return
        args = definition.args
        match definition.primitive:
            case "logical_not":
                self.condition(args[0], side, not truth)
                return
            case "logical_and" | "logical_or" if truth == (definition.primitive == "logical_and"):
                for part in args:
                    self.condition(part, side, truth)
                return
            case "not_equal":
                self.compared("=", args, side, not truth)
                return
        sign = _COMPARED.get(definition.primitive)
        if sign is None:
            side.exact = False
        else:
            self.compared(sign, args, side, truth)

    def compared(self, sign: str, args: tuple[Value, ...], side: _Side, truth: bool) -> None:
        if any(is_float(a.type) for a in args):
            side.exact = False
            return
        left, right = (self.linear(a, side) for a in args)
        side.constraints.append(f"{left} {sign if truth else _OPPOSITE[sign]} {right}")

    def loop(self, loop: Loop, side: _Side) -> None:
        if not loop.counted or loop.index is None or loop.bounds is None:
            side.exact = False
            return
        start, stop = (self.linear(b, side) for b in loop.bounds[:2])
        index, step = side.variable(loop.index), self.structure.constants.get(loop.bounds[2])
        if isinstance(step, int) and step != 0:
            iteration = side.variable((loop, "iteration"))
            side.constraints += [f"{index} = {start} + {step}*{iteration}", f"{iteration} >= 0"]
            side.constraints.append(f"{index} {'<' if step > 0 else '>'} {stop}")
            return
        side.exact = False
        steps = self.over_grid(*loop.bounds[::2])
        if steps is not None:
            side.strides.append((steps, index, start))
            side.constraints += [f"{index} >= {start}", f"{index} < {stop}"]

    def over_grid(self, start: Value, step: Value) -> int | None:
        """The axis along which `start` is the thread's place in a grid that is `step` wide."""
        match self.along(start), self.along(step):
            case (CoordinateKind.GLOBAL_INDEX, axis), (CoordinateKind.GLOBAL_SIZE, other) if axis == other:
                return axis
        return None

    def along(self, value: Value) -> Along | None:
        """The kind and axis of a coordinate; None for other values."""
        definition = self.structure.definition.get(value)
        return (definition.kind, definition.axis) if isinstance(definition, Coordinate) else None

    # -- elements ----------------------------------------------------------------------------------------------------

    def element(self, access: Access, side: _Side) -> tuple[Value | None, list[str | None]]:
        """The accessed array and the indices of the element; None for unknown indices."""
        array = access.array
        found: list[str | None] = [self.linear(i, side) for i in access.indices]
        definition = self.structure.definition.get(array)
        while isinstance(definition, View | Transpose):
            found = self.through(definition, found, side)
            array = definition.array
            definition = self.structure.definition.get(array)
        memory = self.sites.get(array, frozenset((array,)))
        return (array if memory == {array} else None), found

    def through(self, view: View | Transpose, found: list[str | None], side: _Side) -> list[str | None]:
        if isinstance(view, Transpose):
            turned: list[str | None] = [None] * len(found)
            for position, axis in enumerate(view.axes):
                turned[axis] = found[position]
            return turned
        rest, whole = iter(found), list[str | None]()
        for item in view.items:
            match item:
                case Index():
                    whole.append(self.linear(item.value, side))
                case Slice():
                    whole.append(self.sliced(item, next(rest), side))
                case NewAxis():
                    next(rest)
        return [*whole, *rest]

    def sliced(self, item: Slice, index: str | None, side: _Side) -> str | None:
        one = item.step is None or self.structure.constants.get(item.step) == 1
        if index is None or not one or not self.is_natural(index, side):
            return None
        if item.start is None:
            return index
        start = self.linear(item.start, side)
        return f"({start} + {index})" if self.is_natural(start, side) else None

    def linear(self, value: Value, side: _Side) -> str:
        """An integer in terms of the thread, its iterations and common values; otherwise a variable."""
        constant = self.structure.constants.get(value)
        if isinstance(constant, int):
            return str(int(constant))
        definition = self.structure.definition.get(value)
        match definition:
            case Coordinate():
                return self.coordinate(definition, side)
            case Dim() if self.structure.home.get(definition.array, self.structure.top) is self.structure.top:
                name = self.parameter((definition.array, definition.axis))
                self.sizes.add(name)
                return name
            case Apply():
                found = self.formula(definition, side)
                if found is not None:
                    return found
            case Loop() if value is definition.index:
                return side.variable(value)
        at_top = self.structure.home.get(value, self.structure.top) is self.structure.top
        if at_top and value not in self.differs:
            if self.depends_on_block(value):
                side.exact = False
                return side.variable(value)
            return self.parameter(value)
        side.exact = False
        return side.variable(value)

    def depends_on_block(self, value: Value) -> bool:
        """Whether threads of different blocks may have different values of it."""
        definition = self.structure.definition.get(value)
        if definition is None:
            return False
        if isinstance(definition, Coordinate):
            return not definition.kind.is_extent
        if isinstance(definition, Apply):
            return any(self.depends_on_block(v) for v in definition.uses())
        return not isinstance(definition, Dim)

    def coordinate(self, operation: Coordinate, side: _Side) -> str:
        kind, axis = operation.kind, operation.axis
        if kind is CoordinateKind.GLOBAL_INDEX:
            return f"({side.variable((_FIRST, axis))} + {side.variable((_THREAD, axis))})"
        return self.parameter((kind, axis)) if kind.is_extent else side.variable((kind, axis))

    def formula(self, operation: Apply, side: _Side) -> str | None:
        constants = self.structure.constants
        match operation.primitive, operation.args:
            case "add", (x, y) if (axis := self.steps_over_grid(x, y)) is not None:
                place, own = side.variable(operation.out), self.linear(x, side)
                side.strides.append((axis, place, own))
                side.constraints.append(f"{place} >= {own}")
                side.exact = False
                return place
            case ("add" | "subtract") as name, (x, y):
                return f"({self.linear(x, side)} {'+' if name == 'add' else '-'} {self.linear(y, side)})"
            case "negative", (x,):
                return f"(-{self.linear(x, side)})"
            case "multiply", (x, y):
                for factor, other in ((x, y), (y, x)):
                    if isinstance(constants.get(factor), int):
                        return f"{constants[factor]}*({self.linear(other, side)})"
                return self.first_of_block(x, y, side)
            case ("floor_divide" | "remainder") as name, (x, y):
                divisor = constants.get(y)
                if isinstance(divisor, int) and divisor > 0:
                    top, quotient = self.linear(x, side), side.variable((x, divisor, "quotient"))
                    side.constraints.append(f"{divisor}*{quotient} <= {top} < {divisor}*{quotient} + {divisor}")
                    return quotient if name == "floor_divide" else f"({top} - {divisor}*{quotient})"
        return None

    def steps_over_grid(self, start: Value, way: Value) -> int | None:
        """The axis, if it is a number of steps over the grid: `iteration * cuda.gridsize(1)`."""
        steps = self.structure.definition.get(way)
        if not isinstance(steps, Apply) or steps.primitive != "multiply":
            return None
        loop = self.structure.definition.get(steps.args[0])
        counts = isinstance(loop, Loop) and loop.index is steps.args[0] and self.lengths.counts_naturals(loop)
        return self.over_grid(start, steps.args[1]) if counts else None

    def first_of_block(self, x: Value, y: Value, side: _Side) -> str | None:
        """`blockIdx.x * blockDim.x`."""
        for index, extent in ((x, y), (y, x)):
            match self.along(index), self.along(extent):
                case (CoordinateKind.BLOCK_INDEX, axis), (CoordinateKind.BLOCK_SIZE, other) if axis == other:
                    return side.variable((_FIRST, axis))
        return None
