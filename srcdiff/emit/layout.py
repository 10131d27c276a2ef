"""Which operations become statements, which become parts of expressions, and where each value is live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    Call,
    Const,
    Coordinate,
    Custom,
    Dim,
    Function,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Pop,
    Push,
    Store,
    Transpose,
    Value,
    walk,
)
from srcdiff.ir.types import INT, Array
from srcdiff.ir.words import own_name
from srcdiff.quick_dataclasses import dataclass

_LONGEST = 16  # operations in one expression; a longer one is split by a variable
_LONGEST_SUM = 6  # the same, for a sum that is continued in the next statement
_LONGEST_DERIVATIVE = 2  # the same, for a named derivative
_LONGEST_TWICE = 3  # the same, for an expression that is written several times
_OFTEN = 3  # a length that is written so often gets a name
_LENGTHS = {1: ("n",), 2: ("rows", "columns")}


_SUMS = ("add", "subtract")
_DERIVATIVES = ("_bar", "_dot")


@dataclass(slots=True)
class Layout:
    """The values that are parts of expressions, and the live ranges of the others, as positions in the text."""

    inlined: dict[Value, Operation] = field(default_factory=dict)
    segments: dict[Value, list[tuple[float, float]]] = field(default_factory=dict)
    """The live range of each value."""
    ranges: dict[Block, tuple[int, int]] = field(default_factory=dict)
    positions: dict[Operation, tuple[int, int]] = field(default_factory=dict)
    """The start of an operation, and its end, which is later if it has blocks."""
    used: set[Value] = field(default_factory=set)
    lengths: dict[Value, str] = field(default_factory=dict)
    """The names of lengths that the text would repeat."""

    def is_named_length(self, operation: Operation) -> bool:
        return isinstance(operation, Dim) and operation.out in self.lengths

    def is_inlined(self, operation: Operation) -> bool:
        """Whether the operation is part of an expression. A pop is always a statement, because it changes the stack."""
        values = operation.defines()
        return bool(values) and not isinstance(operation, Pop) and all(v in self.inlined for v in values)


def lay_out(function: Function, taken: Iterable[str] = ()) -> Layout:
    """Lay out a function. The names `taken` are not available for lengths."""
    layout = Layout()
    _Inline(function, layout, frozenset(taken)).run()
    _Segments(function, layout).run()
    return layout


class _Inline:
    """Writes an unnamed value where it is used, if that is in the same block and the memory that it reads is unchanged.

    An element, or a counter plus a constant, may be written several times if it is used several times.
    """

    def __init__(self, function: Function, layout: Layout, taken: frozenset[str]) -> None:
        self.function, self.layout, self.taken = function, layout, taken
        self.sites: dict[Value, Sites] = points_to(function)
        self.uses: dict[Value, int] = {}
        stored = [o for o in walk(function.body) if isinstance(o, Alloc | NewStack)]
        self.kept = {o.out.name for o in stored if o.keeps is not None}
        """The names of arrays, and of the stacks of kept values."""
        self.added_to: set[Value] = set()
        self.operations: tuple[Operation, ...] = ()
        """The operations of the current block."""
        self.definition = {v: o for o in walk(function.body) for v in o.defines()}

    def run(self) -> None:
        self.count(self.function.body)
        self.block(self.function.body)
        self.name_lengths()

    def name_lengths(self) -> None:
        """A length of a vector or a matrix that the text would repeat is assigned to a variable."""
        parts: dict[Value, list[Value]] = {}
        for operation in walk(self.function.body):
            if self.layout.is_inlined(operation):
                for value in operation.uses():
                    parts.setdefault(value, []).append(operation.defines()[0])

        def times_written(value: Value) -> int:
            """How often the text has the value, also as a part of an expression that is written several times."""
            return self.uses.get(value, 0) + sum(times_written(whole) - 1 for whole in parts.get(value, ()))

        lengths = [o for o in self.function.body.operations if isinstance(o, Dim) and self.has_no_name(o)]
        often = {o.array for o in lengths if times_written(o.out) >= _OFTEN}
        often = {array for array in often if array.array.rank == 2} or often
        if len(often) != 1:
            return  # `x.shape[0]` says which array it belongs to
        operations = list(walk(self.function.body))
        values = [*self.function.params, *(v for o in operations for v in (*o.defines(), *o.inner()))]
        taken = self.taken | {own_name(v) for v in values}
        for operation in lengths:
            if operation.array not in often or times_written(operation.out) == 1:
                continue
            name = _LENGTHS[operation.array.array.rank][operation.axis]
            if name not in taken:
                self.layout.lengths[operation.out] = name
                del self.layout.inlined[operation.out]

    @staticmethod
    def has_no_name(length: Dim) -> bool:
        """Whether a length of a vector or a matrix has no name, but its array has."""
        return not length.out.name and bool(length.array.name) and 1 <= length.array.array.rank <= 2

    def count(self, block: Block) -> None:
        for operation in block.operations:
            for value in operation.uses():
                self.uses[value] = self.uses.get(value, 0) + 1
            for inner in operation.blocks():
                self.count(inner)
        for value in block.yields:
            self.uses[value] = self.uses.get(value, 0) + 1

    def block(self, block: Block) -> None:
        operations = self.operations = block.operations
        users: dict[Value, list[int]] = {}
        for k, operation in enumerate(operations):
            for value in operation.uses():
                users.setdefault(value, []).append(k)
        for value in block.yields:
            users.setdefault(value, []).append(len(operations))
        written = [self.writes(o) for o in operations]
        evaluated = list(range(len(operations) + 1))  # the position of the statement that contains an operation
        chosen: dict[Value, int] = {}
        for k in range(len(operations) - 1, -1, -1):
            operation = operations[k]
            if isinstance(operation, Const) or self.is_size(operation):
                self.layout.inlined[operation.defines()[0]] = operation
            elif self.may_stand_inside(operation, users):
                out = operation.defines()[0]
                last = max(evaluated[j] for j in users[out])
                if not self.is_same_until(operation, operations[k + 1 : last], written[k + 1 : last]):
                    continue
                evaluated[k] = last
                chosen[out] = k
        self.limit_length(operations, chosen)
        for operation in operations:
            for inner in operation.blocks():
                self.block(inner)

    def limit_length(self, operations: tuple[Operation, ...], chosen: dict[Value, int]) -> None:
        size: dict[Value, int] = {}
        for out, k in sorted(chosen.items(), key=lambda item: item[1]):
            operation = operations[k]
            size[out] = 1 + sum(size.get(v, 0) for v in operation.uses() if v in self.layout.inlined)
            if size[out] <= self.longest(out):
                self.layout.inlined[out] = operation

    def longest(self, out: Value) -> int:
        if out.name:
            return _LONGEST_SUM if out in self.added_to else _LONGEST_DERIVATIVE
        return _LONGEST if self.uses[out] == 1 else _LONGEST_TWICE

    def is_same_until(
        self, operation: Operation, between: Sequence[Operation], written: list[set[Value] | None]
    ) -> bool:
        """Whether the operation would give the same value at the place of its use."""
        match operation:
            case Load():
                return self.unchanged(operation, written)
            case Pop():
                return self.is_top(operation, between)
            case Apply() if operation.out.name and operation.out not in self.added_to:
                return all(w == set() for w in written)  # otherwise its operands would have to live longer
        return True

    def unchanged(self, load: Load, written: list[set[Value] | None]) -> bool:
        memory = self.sites.get(load.array, frozenset((load.array,)))
        return all(w is not None and not w & memory for w in written)

    def writes(self, operation: Operation) -> set[Value] | None:
        """The memory that an operation may write; None if it is unknown."""
        if isinstance(operation, Store):
            return set(self.sites.get(operation.array, frozenset((operation.array,))))
        if isinstance(operation, Call | Barrier):
            return None
        found: set[Value] = set()
        for inner in operation.blocks():
            if any(isinstance(o, Call | Barrier) for o in walk(inner)):
                return None
            found |= written_sites(inner, self.sites)
        return found

    def may_stand_inside(self, operation: Operation, users: dict[Value, list[int]]) -> bool:
        if isinstance(operation, Transpose):
            return self.is_factor(operation, users)
        if isinstance(operation, Pop) and isinstance(operation.out.type, Array):
            return False
        if isinstance(operation, Pop) and operation.stack in self.function.params:
            return False  # functions that are called in between pop from the same stack
        if not isinstance(operation, Apply | Load | Pop):
            return False
        if self.is_added_to(operation, users):
            self.added_to.add(operation.out)
        elif operation.out.name and not self.is_passing(operation, users):
            return False
        here, everywhere = len(users.get(operation.out, ())), self.uses.get(operation.out, 0)
        if here != everywhere or here == 0:
            return False
        return here == 1 or (isinstance(operation, Load) and here <= 4)

    def is_factor(self, operation: Transpose, users: dict[Value, list[int]]) -> bool:
        """Whether the only use of a transposed matrix is a library call in the same block: `a @ b.T`."""
        places = users.get(operation.out, [])
        if operation.axes != (1, 0) or len(places) != 1 or self.uses[operation.out] != 1:
            return False
        return places[0] < len(self.operations) and isinstance(self.operations[places[0]], Library)

    def is_top(self, pop: Pop, following: Sequence[Operation]) -> bool:
        """Whether the stack does not change until the popped value is used."""
        inside = [i for o in following for b in o.blocks() for i in walk(b)]
        return not any(isinstance(o, Push | Pop) and o.stack is pop.stack for o in (*following, *inside))

    def is_added_to(self, operation: Apply | Load | Pop, users: dict[Value, list[int]]) -> bool:
        """Whether the next statement adds to the derivative, under the same name: `x_bar = x_bar + s + t`."""
        out = operation.out
        if not isinstance(operation, Apply) or operation.primitive not in _SUMS or not out.name.endswith(_DERIVATIVES):
            return False
        following = [self.operations[k] for k in users.get(out, ()) if k < len(self.operations)]
        return any(
            isinstance(o, Apply) and o.primitive in _SUMS and o.args[0] is out and o.out.name == out.name
            for o in following
        )

    def is_passing(self, operation: Apply | Load | Pop, users: dict[Value, list[int]]) -> bool:
        """Whether a derivative or a kept value is used only once, by a statement of the same block."""
        out = operation.out
        if not (out.name.endswith(_DERIVATIVES) or self.is_kept(operation)) or self.uses.get(out) != 1:
            return False
        if len(users.get(out, ())) != 1:
            return False
        (k,) = users[out]
        return k < len(self.operations) and not self.operations[k].blocks()

    def is_kept(self, operation: Operation) -> bool:
        """Whether the operation reads a kept value. The name of the array says so already."""
        match operation:
            case Load():
                return operation.array.name in self.kept
            case Pop():
                return operation.stack.name in self.kept
        return False

    def is_size(self, operation: Operation) -> bool:
        """Whether it is the length of an axis, or a variable plus a constant: as short as a name, and constant."""
        if isinstance(operation, Apply) and operation.primitive in ("add", "subtract") and operation.out.type == INT:
            base, amount = (self.definition.get(a) for a in operation.args)
            variable = base is None or bool(operation.args[0].name) or isinstance(base, Dim)
            return not operation.out.name and variable and isinstance(amount, Const)
        return isinstance(operation, Dim | Coordinate) and not operation.out.name


class _Segments:
    """The live ranges of values: from the definition to the last use, separately on each path."""

    def __init__(self, function: Function, layout: Layout) -> None:
        self.function, self.layout = function, layout
        self.clock = 0

    def run(self) -> None:
        self.number(self.function.body)
        needed = self.block(self.function.body)
        for param in self.function.params:
            self.layout.segments.setdefault(param, []).append((0, needed.get(param, 0.5)))

    # First the positions are numbered in the order of text. Then the live ranges are computed backwards.

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def number(self, block: Block) -> None:
        start = self.tick()
        for operation in block.operations:
            if not self.layout.is_inlined(operation):
                begin = self.tick()
                if isinstance(operation, Loop):
                    self.tick()  # the variables are set before the range is evaluated
                for inner in operation.blocks():
                    self.number(inner)
                end = self.tick() if operation.blocks() else begin
                self.layout.positions[operation] = (begin, end)
        self.layout.ranges[block] = (start, self.tick())

    def block(self, block: Block) -> dict[Value, float]:
        """Record live ranges inside the block. Returns the values that are live at its start, with their last uses."""
        _, end = self.layout.ranges[block]
        last: dict[Value, float] = {}
        for value in block.yields:
            self.use(value, end, last)
        for operation in reversed(block.operations):
            if not self.layout.is_inlined(operation):
                self.operation(operation, last)
        return last

    def use(self, value: Value, position: float, last: dict[Value, float]) -> None:
        inlined = self.layout.inlined.get(value)
        if inlined is not None:
            for operand in inlined.uses():
                self.use(operand, position, last)
            return
        self.layout.used.add(value)
        last[value] = max(last.get(value, 0), position)

    def define(self, value: Value, position: float, last: dict[Value, float]) -> None:
        until = last.pop(value, position)
        self.layout.segments.setdefault(value, []).append((position, max(until, position + 0.5)))

    def operation(self, operation: Operation, last: dict[Value, float]) -> None:
        begin, end = self.layout.positions[operation]
        if isinstance(operation, Loop):
            self.loop(operation, begin, end, last)
            return
        for value in operation.defines():
            if value not in self.layout.inlined:
                self.define(value, end, last)
        for inner in operation.blocks():
            start, _ = self.layout.ranges[inner]
            needed = self.block(inner)
            for value in operation.params if isinstance(operation, Custom) else ():
                self.define(value, begin, needed)
            for value, until in needed.items():
                self.layout.segments.setdefault(value, []).append((start, until))
                self.use(value, begin, last)
        for value in operation.uses():
            self.use(value, begin, last)

    def loop(self, operation: Loop, begin: int, end: int, last: dict[Value, float]) -> None:
        for value in operation.outs:
            self.define(value, end, last)
        if operation.count is not None:
            self.use(operation.count, end, last)
            self.define(operation.count, begin, last)
        if operation.test is not None:  # the loop variables are live while the test is evaluated
            for value in operation.params:
                self.layout.segments.setdefault(value, []).append((begin, self.layout.ranges[operation.test][1]))
        for inner in operation.blocks():
            needed = self.block(inner)
            for value in operation.inner():
                if inner is operation.body or value in needed:
                    self.define(value, begin, needed)
            for value in needed:
                self.use(value, end, last)  # a later iteration needs it too
        for value in operation.bounds or ():
            self.use(value, begin + 1, last)
        for value in operation.inits:
            self.use(value, begin, last)
