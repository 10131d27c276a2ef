"""Remove what nobody needs: dead values, stores to memory that nobody reads, loop parameters that never change."""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.aliasing import Sites, points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Comment,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewAxis,
    NewStack,
    Operation,
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
from srcdiff.ir.types import INT, Array, Stack
from srcdiff.library.calls import LIBRARY


def simplify(function: Function) -> Function:
    """Until nothing changes: forward what is only passed on, then drop what is dead."""
    while True:
        forwarded = _Forward().function(function)
        smaller = remove_dead(forwarded)
        if _size(smaller) == _size(function):
            return smaller
        function = smaller


def _size(function: Function) -> int:
    return sum(1 + len(o.defines()) for o in walk(function.body))


class _Forward:
    """Loop parameters that never change and branches that yield the same on both sides are replaced by their source;
    constants are folded."""

    def __init__(self) -> None:
        self.known: dict[Value, Value] = {}
        self.builder = Builder()
        self.arrays: dict[Value, Alloc | References | Library] = {}

    def resolve(self, value: Value) -> Value:
        while value in self.known:
            value = self.known[value]
        return value

    def function(self, function: Function) -> Function:
        return replace(function, body=self.block(function.body))

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            self.operation(operation.replaced(self.resolve), operations)
        return Block(tuple(operations), tuple(self.resolve(y) for y in block.yields))

    def operation(self, operation: Operation, into: list[Operation]) -> None:
        match operation:
            case Const():
                self.builder.constants[operation.out] = operation.value
                into.append(operation)
            case Apply():
                self.apply(operation, into)
            case If():
                self.branch(operation, into)
            case Loop():
                if self.runs_once(operation):
                    self.once(operation, into)
                else:
                    into.append(self.loop(operation))
            case Custom():
                into.append(replace(operation, body=self.block(operation.body)))
            case Dim():
                self.dim(operation, into)
            case Alloc(like=like) if like is not None and isinstance(self.arrays.get(like), Library):
                self.like_result(operation, into)
            case _:
                if isinstance(operation, Alloc | References):
                    self.arrays[operation.out] = operation
                if isinstance(operation, Library):
                    self.arrays |= dict.fromkeys(operation.outs, operation)
                into.append(operation)

    def dim(self, operation: Dim, into: list[Operation]) -> None:
        """The length of an axis, by where the array comes from."""
        array, axis = operation.array, operation.axis
        while array in self.arrays:
            match self.arrays[array]:
                case Alloc(like=None, shape=shape) | Reshape(shape=shape):
                    self.known[operation.out] = shape[axis]
                    return
                case Alloc(like=like) if like is not None:
                    array = like
                case Transpose(array=source, axes=axes):
                    array, axis = source, axes[axis]
                case View() as view:
                    place = _axis_of_base(view, axis)
                    if place is None:
                        break
                    array, axis = view.array, place
                case Library() as call:
                    lengths = LIBRARY[call.function].lengths(call.outs.index(array))
                    if lengths is None:
                        break
                    argument, axis = lengths[axis]
                    array = call.args[argument]
                case _:
                    break
        into.append(replace(operation, array=array, axis=axis))

    def like_result(self, operation: Alloc, into: list[Operation]) -> None:
        """An array as large as what a library gives: that need not be computed for its shape alone."""
        assert operation.like is not None
        lengths = [Value(INT) for _ in range(operation.like.array.rank)]
        for axis, out in enumerate(lengths):
            self.dim(Dim(out, operation.like, axis, span=operation.span), into)
        shape = tuple(self.resolve(v) for v in lengths)
        self.arrays[operation.out] = replace(operation, shape=shape, like=None)
        into.append(self.arrays[operation.out])

    def apply(self, operation: Apply, into: list[Operation]) -> None:
        self.builder.operations = into
        folded = self.builder.folded(operation.primitive, operation.args, operation.out.scalar)
        if folded is None:
            self.builder.note(operation)
            into.append(operation)
        else:
            if operation.out.name and not folded.name and folded not in self.builder.constants:
                folded.name = operation.out.name
            self.known[operation.out] = folded

    def branch(self, operation: If, into: list[Operation]) -> None:
        if operation.condition in self.builder.constants:
            taken = operation.then if self.builder.constants[operation.condition] else operation.orelse
            for inner in taken.operations:
                self.operation(inner.replaced(self.resolve), into)
            for out, source in zip(operation.outs, taken.yields, strict=True):
                self.known[out] = self.resolve(source)
            return
        then, orelse = self.block(operation.then), self.block(operation.orelse)
        keep: list[int] = []
        for k, out in enumerate(operation.outs):
            a, b = then.yields[k], orelse.yields[k]
            if a is b:
                self.known[out] = a
            else:
                keep.append(k)
        into.append(
            replace(
                operation,
                then=Block(then.operations, tuple(then.yields[k] for k in keep)),
                orelse=Block(orelse.operations, tuple(orelse.yields[k] for k in keep)),
                outs=tuple(operation.outs[k] for k in keep),
            )
        )

    def runs_once(self, loop: Loop) -> bool:
        if not loop.counted or loop.bounds is None or loop.count is not None:
            return False
        known = [self.builder.constants.get(b) for b in loop.bounds]
        return all(isinstance(k, int) for k in known) and len(range(*known)) == 1  # type: ignore[arg-type]

    def once(self, loop: Loop, into: list[Operation]) -> None:
        """A loop of one turn is that turn."""
        assert loop.bounds is not None
        if loop.index is not None:
            self.known[loop.index] = loop.bounds[0]
        for param, init in zip(loop.params, loop.inits, strict=True):
            self.known[param] = self.resolve(init)
        for operation in loop.body.operations:
            self.operation(operation.replaced(self.resolve), into)
        for out, following in zip(loop.outs, loop.body.yields, strict=True):
            self.known[out] = self.resolve(following)

    def loop(self, operation: Loop) -> Operation:
        keep: list[int] = []
        for k, param in enumerate(operation.params):
            if operation.body.yields[k] is param:
                self.known[param] = operation.inits[k]
                self.known[operation.outs[k]] = operation.inits[k]
            else:
                keep.append(k)
        test = None if operation.test is None else self.block(operation.test)
        body = self.block(operation.body)
        stop = body.yields[-1:] if operation.leaves else ()
        return replace(
            operation,
            params=tuple(operation.params[k] for k in keep),
            inits=tuple(operation.inits[k] for k in keep),
            outs=tuple(operation.outs[k] for k in keep),
            test=test,
            body=Block(body.operations, tuple(body.yields[k] for k in keep) + stop),
        )


def _axis_of_base(view: View, axis: int) -> int | None:
    """The axis of the whole array that is an axis of a view, if the view has all of it."""
    own = base = 0
    for item in view.items:
        if isinstance(item, Index):
            base += 1
        elif isinstance(item, NewAxis):
            if own == axis:
                return None
            own += 1
        else:
            if own == axis:
                return base if not item.parts() else None
            own, base = own + 1, base + 1
    return base + axis - own


def remove_dead(function: Function) -> Function:
    """Keep what the result, exceptions, prints and live memory need."""
    return _Dead(function).run()


def _changes_memory(operation: Operation) -> bool:
    """Whether it changes a list of arrays, or arrays through a call, which other names may see."""
    if isinstance(operation, Call):
        return operation.writes
    if not isinstance(operation, Push | Pop):
        return False
    return isinstance(operation.stack.type, Stack) and isinstance(operation.stack.type.element, Array)


class _Dead:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.sites: dict[Value, Sites] = points_to(function)
        self.live: set[Value] = set()
        self.live_memory: set[Value] = set()
        self.live_operations: set[Operation] = set()
        self.definition: dict[Value, Operation] = {}
        self.parents: dict[Operation, tuple[Operation, ...]] = {}
        self.slot: dict[Value, tuple[Loop, int]] = {}
        self.stores: dict[Value, list[Store | Push]] = {}
        self.work: list[Value] = []
        self.index(function.body, ())

    def index(self, block: Block, parents: tuple[Operation, ...]) -> None:
        for operation in block.operations:
            self.parents[operation] = parents
            for value in operation.defines():
                self.definition[value] = operation
            if isinstance(operation, Loop):
                for k, param in enumerate(operation.params):
                    self.slot[param] = (operation, k)
                if operation.index is not None:
                    self.definition[operation.index] = operation
            if isinstance(operation, Custom):
                for param in operation.params:
                    self.definition[param] = operation
            if isinstance(operation, Store):
                for site in self.sites.get(operation.array, ()):
                    self.stores.setdefault(site, []).append(operation)
            if isinstance(operation, Push):
                self.stores.setdefault(operation.stack, []).append(operation)
            for inner in operation.blocks():
                self.index(inner, (*parents, operation))

    def run(self) -> Function:
        for operation in self.parents:
            if isinstance(operation, Raise | Print | Comment) or _changes_memory(operation):
                self.keep(operation)
        for param in self.function.written:
            self.need_memory(param)
        for value in self.function.body.yields:
            self.need(value)
            if isinstance(value.type, Array):
                self.need_memory(value)
        while self.work:
            self.trace(self.work.pop())
        return replace(self.function, body=self.block(self.function.body))

    def need(self, value: Value) -> None:
        if value not in self.live:
            self.live.add(value)
            self.work.append(value)

    def need_memory(self, array: Value) -> None:
        for site in self.sites.get(array, frozenset((array,))):
            if site not in self.live_memory:
                self.live_memory.add(site)
                for store in self.stores.get(site, ()):
                    self.keep(store)
                definition = self.definition.get(site)
                if isinstance(definition, Copy):
                    self.need_memory(definition.array)

    def keep(self, operation: Operation) -> None:
        """The operation stays: so do its operands, and the branches and loops around it."""
        if operation in self.live_operations:
            return
        self.live_operations.add(operation)
        for value in operation.uses() if not isinstance(operation, Loop) else operation.bounds or ():
            self.need(value)
        if isinstance(operation, Load | Copy | Grow):
            self.need_memory(operation.array)
        if isinstance(operation, Push) and isinstance(operation.value.type, Array):
            self.need_memory(operation.value)
        if isinstance(operation, Print | Raise):
            for value in operation.uses():
                if isinstance(value.type, Array):
                    self.need_memory(value)
        if isinstance(operation, Call | Library):
            for value in operation.args:
                if isinstance(value.type, Array):
                    self.need_memory(value)
        if isinstance(operation, Custom):
            for value in operation.body.yields:
                self.need(value)
        if isinstance(operation, Loop):
            if operation.test is not None:
                self.need(operation.test.yields[0])
            if operation.leaves:
                self.need(operation.body.yields[-1])
        for parent in self.parents[operation]:
            self.keep(parent)

    def trace(self, value: Value) -> None:
        if value in self.slot:
            loop, k = self.slot[value]
            self.need_slot(loop, k)
            return
        operation = self.definition.get(value)
        if operation is None:
            return
        self.keep(operation)
        if isinstance(operation, Loop) and value in operation.outs:
            self.need_slot(operation, operation.outs.index(value))
        if isinstance(operation, If):
            k = operation.outs.index(value)
            self.need(operation.then.yields[k])
            self.need(operation.orelse.yields[k])
        if isinstance(operation, NewStack):
            for store in self.stores.get(value, ()):
                self.keep(store)

    def need_slot(self, loop: Loop, k: int) -> None:
        self.keep(loop)
        for value in (loop.params[k], loop.outs[k], loop.inits[k], loop.body.yields[k]):
            self.need(value)

    def block(self, block: Block) -> Block:
        return Block(tuple(self.rebuilt(o) for o in block.operations if o in self.live_operations), block.yields)

    def rebuilt(self, operation: Operation) -> Operation:
        match operation:
            case If():
                keep = [k for k, out in enumerate(operation.outs) if out in self.live]
                then, orelse = self.block(operation.then), self.block(operation.orelse)
                return replace(
                    operation,
                    then=Block(then.operations, tuple(then.yields[k] for k in keep)),
                    orelse=Block(orelse.operations, tuple(orelse.yields[k] for k in keep)),
                    outs=tuple(operation.outs[k] for k in keep),
                )
            case Loop():
                keep = [k for k, p in enumerate(operation.params) if p in self.live]
                body = self.block(operation.body)
                stop = body.yields[-1:] if operation.leaves else ()
                return replace(
                    operation,
                    params=tuple(operation.params[k] for k in keep),
                    inits=tuple(operation.inits[k] for k in keep),
                    outs=tuple(operation.outs[k] for k in keep),
                    test=None if operation.test is None else self.block(operation.test),
                    body=Block(body.operations, tuple(body.yields[k] for k in keep) + stop),
                    count=operation.count if operation.count in self.live else None,
                )
            case Custom():
                return replace(operation, body=self.block(operation.body))
        return operation
