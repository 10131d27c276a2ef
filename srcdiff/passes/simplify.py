"""Simplification: remove dead values, stores to unread memory, and loop parameters that never change."""

from __future__ import annotations

from typing import Any

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.builder import FOLDABLE, Builder
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    Call,
    Comment,
    Const,
    Copy,
    Custom,
    Dim,
    Enlarge,
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
    Part,
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
    changed,
)
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import BOOL, INT, Array, Stack
from srcdiff.library.blas_lapack import LIBRARY, is_seen
from srcdiff.passes.induction_variables import merge_induction_variables

_MOST_CHOICES = 8
"""The maximum number of possible constants of a value."""


def simplify(function: Function) -> Function:
    """Until a fixed point: remove dead code, then forward values that are only passed on."""
    while True:
        living, forward = remove_dead(function), _Forward()
        forwarded = forward.function(living)
        function = merge_induction_variables(forwarded)
        if function is living:
            return function
        if function is forwarded and not forward.again:
            return remove_dead(function)


class _Forward:
    """Loop parameters that never change and branches that yield the same on both sides are replaced by their source;
    constants are folded."""

    def __init__(self) -> None:
        self.known: dict[Value, Value] = {}
        self.builder = Builder()
        self.arrays: dict[Value, Alloc | References | Library] = {}
        self.again = False
        """Whether another round of forwarding may find more: a loop body that yields its own parameter."""
        self.refuted: frozenset[Value] = frozenset()
        """Conditions that would have raised something before."""
        self.choices: dict[Value, frozenset[Any]] = {}
        """Values that branches choose among constants, with these."""
        self.lengths: set[Value] = set()
        """The lengths of axes: they are never negative."""

    def resolve(self, value: Value) -> Value:
        while (source := self.known.get(value)) is not None:
            value = source
        return value

    def function(self, function: Function) -> Function:
        return changed(function, body=self.block(function.body))

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        refuted = self.refuted
        for operation in block.operations:
            self.operation(operation.replaced(self.resolve), operations)
        self.refuted = refuted
        return changed(block, operations=tuple(operations), yields=tuple([self.resolve(y) for y in block.yields]))

    def operation(self, operation: Operation, into: list[Operation]) -> None:
        match operation:
            case Load() | Store():
                into.append(operation)
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
                into.append(operation.rebuilt(self.block))
            case Dim():
                self.dim(operation, into)
            case Alloc(like=like) if like is not None and isinstance(self.arrays.get(like), Library):
                self.like_result(operation, into)
            case Alloc() | View() | Transpose() | Reshape() | Part():
                self.arrays[operation.out] = operation
                into.append(operation)
            case Library():
                self.arrays |= dict.fromkeys(operation.outs, operation)
                into.append(operation)
            case _:
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
                case Part(array=source):
                    array = source
                case View() as view:
                    place = axis_of_base(view, axis)
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
        self.lengths.add(operation.out)
        into.append(changed(operation, array=array, axis=axis))

    def like_result(self, operation: Alloc, into: list[Operation]) -> None:
        """An array with the shape of a library result, which need not be computed for its shape alone."""
        assert operation.like is not None
        lengths = [Value(INT) for _ in range(operation.like.array.rank)]
        for axis, out in enumerate(lengths):
            self.dim(Dim(out, operation.like, axis, span=operation.span), into)
        shape = tuple(self.resolve(v) for v in lengths)
        self.arrays[operation.out] = changed(operation, shape=shape, like=None)
        into.append(self.arrays[operation.out])

    def apply(self, operation: Apply, into: list[Operation]) -> None:
        self.builder.operations = into
        folded = self.builder.folded(operation.primitive, operation.args, operation.out.scalar)
        if folded is None and operation.out.type == BOOL:
            folded = self.decided(operation)
        if folded is None:
            folded = self.builder.doubled(operation.primitive, operation.args, operation.out.name)
        if folded is None:
            self.builder.note(operation)
            into.append(operation)
        else:
            if operation.out.name and not folded.name and folded not in self.builder.constants:
                folded.name = operation.out.name
            self.known[operation.out] = folded

    def among(self, value: Value) -> frozenset[Any]:
        """The constants that a value is one of; none if it may be another."""
        known = self.builder.constants.get(value)
        return self.choices.get(value, frozenset()) if known is None else frozenset((known,))

    def decided(self, operation: Apply) -> Value | None:
        """A comparison that is decided: of a length with zero, or of values that are among a few constants."""
        if operation.primitive in ("less", "greater_equal") and operation.args[0] in self.lengths:
            limit = self.builder.constants.get(operation.args[1])
            if limit is not None and limit <= 0:
                return self.builder.const(operation.primitive == "greater_equal")
        compare, sides = FOLDABLE.get(operation.primitive), [self.among(a) for a in operation.args]
        if compare is None or len(sides) != 2 or not all(sides) or not any(a in self.choices for a in operation.args):
            return None
        found = {compare(x, y) for x in sides[0] for y in sides[1]}
        return self.builder.const(found.pop()) if len(found) == 1 else None

    def branch(self, operation: If, into: list[Operation]) -> None:
        condition = operation.condition
        if condition in self.builder.constants or condition in self.refuted:
            taken = operation.then if self.builder.constants.get(condition) else operation.orelse
            for inner in taken.operations:
                self.operation(inner.replaced(self.resolve), into)
            for out, source in zip(operation.outs, taken.yields, strict=True):
                self.known[out] = self.resolve(source)
            return
        then, orelse = self.block(operation.then), self.block(operation.orelse)
        if any(isinstance(o, Raise) for o in then.operations):
            self.refuted |= {condition}
        keep: list[int] = []
        for k, out in enumerate(operation.outs):
            a, b = then.yields[k], orelse.yields[k]
            if a is b:
                self.known[out] = a
            else:
                keep.append(k)
                either = self.among(a), self.among(b)
                if out.type == INT and all(either) and len(either[0] | either[1]) <= _MOST_CHOICES:
                    self.choices[out] = either[0] | either[1]
        into.append(
            changed(
                operation,
                then=changed(then, yields=tuple([then.yields[k] for k in keep])),
                orelse=changed(orelse, yields=tuple([orelse.yields[k] for k in keep])),
                outs=tuple([operation.outs[k] for k in keep]),
            )
        )

    def runs_once(self, loop: Loop) -> bool:
        if not loop.counted or loop.bounds is None or loop.count is not None:
            return False
        known = [self.builder.constants.get(b) for b in loop.bounds]
        return all(isinstance(k, int) for k in known) and length_of_range(*known) == 1  # type: ignore[arg-type]

    def once(self, loop: Loop, into: list[Operation]) -> None:
        """A loop of one iteration is that iteration."""
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
        self.again = self.again or any(body.yields[k] is operation.params[k] for k in keep)
        stop = body.yields[-1:] if operation.leaves else ()
        if stop and self.builder.constants.get(stop[0]) is False:  # `continue` alone does not leave it
            stop, self.again = (), True
        return changed(
            operation,
            params=tuple([operation.params[k] for k in keep]),
            inits=tuple([operation.inits[k] for k in keep]),
            outs=tuple([operation.outs[k] for k in keep]),
            test=test,
            body=changed(body, yields=tuple([body.yields[k] for k in keep]) + stop),
            leaves=bool(stop),
        )


def axis_of_base(view: View, axis: int) -> int | None:
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
    """Keep the operations that results, exceptions, prints and live memory need."""
    return _Dead(function).run()


def _holds_arrays(stack: Value) -> bool:
    return isinstance(stack.type, Stack) and isinstance(stack.type.element, Array)


class _Dead:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.sites: dict[Value, Sites] = points_to(function)
        self.live: set[Value] = set()
        self.live_memory: set[Value] = set()
        self.live_operations: set[Operation] = set()
        self.definition: dict[Value, Operation] = {}
        self.parent: dict[Operation, Operation | None] = {}
        self.slot: dict[Value, tuple[Loop, int]] = {}
        self.stores: dict[Value, list[Store | Push | Pop]] = {}
        self.work: list[Value] = []
        self.index(function.body, None)

    def index(self, block: Block, parent: Operation | None) -> None:
        for operation in block.operations:
            self.parent[operation] = parent
            for value in operation.defines():
                self.definition[value] = operation
            match operation:
                case Loop():
                    for k, param in enumerate(operation.params):
                        self.slot[param] = (operation, k)
                    if operation.index is not None:
                        self.definition[operation.index] = operation
                case Custom():
                    for param in operation.params:
                        self.definition[param] = operation
                case Store():
                    for site in self.sites.get(operation.array, ()):
                        self.stores.setdefault(site, []).append(operation)
                case Push():
                    self.stores.setdefault(operation.stack, []).append(operation)
                case Pop() if _holds_arrays(operation.stack):
                    self.stores.setdefault(operation.stack, []).append(operation)
            for inner in operation.blocks():
                self.index(inner, operation)

    def run(self) -> Function:
        for operation in self.parent:
            if self.is_seen(operation):
                self.keep(operation)
        for param in self.function.written:
            self.need_memory(param)
        for value in self.function.body.yields:
            self.need(value)
            if isinstance(value.type, Array):
                self.need_memory(value)
        while self.work:
            self.trace(self.work.pop())
        return changed(self.function, body=self.block(self.function.body))

    def is_seen(self, operation: Operation) -> bool:
        """Whether it ends or prints something, or changes a list of arrays, or arrays through a call, for others."""
        match operation:
            case Raise() | Print() | Enlarge() | Barrier():
                return True
            case Call():
                return bool(operation.writes) or operation.effects
            case Library():
                return is_seen(operation.function)
            case Push() | Pop():
                definition = self.definition.get(operation.stack)
                if definition is None:  # a parameter, which the caller sees
                    return True
                return _holds_arrays(operation.stack) and not isinstance(
                    definition, NewStack
                )  # other references use its name
        return False

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

    def keep(self, operation: Operation | None) -> None:
        """The operation stays: so do its operands, and the branches and loops around it."""
        if operation is None or operation in self.live_operations:
            return
        self.live_operations.add(operation)
        for value in operation.uses() if not isinstance(operation, Loop) else operation.bounds or ():
            self.need(value)
        match operation:
            case Load() | Copy() | Grow():
                self.need_memory(operation.array)
            case Push() | Print() | Raise() | Call() | Library():
                for value in operation.uses():
                    if isinstance(value.type, Array):
                        self.need_memory(value)
            case Custom():
                for value in operation.body.yields:
                    self.need(value)
            case Loop():
                if operation.test is not None:
                    self.need(operation.test.yields[0])
                if operation.leaves:
                    self.need(operation.body.yields[-1])
        self.keep(self.parent[operation])

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
        """The live operations, and their comments."""
        operations: list[Operation] = []
        comment = None
        for operation in block.operations:
            if isinstance(operation, Comment):
                comment = operation
            elif operation in self.live_operations:
                operations += [self.rebuilt(operation)] if comment is None else [comment, self.rebuilt(operation)]
                comment = None
        return changed(block, operations=tuple(operations))

    def rebuilt(self, operation: Operation) -> Operation:
        match operation:
            case If():
                keep = [k for k, out in enumerate(operation.outs) if out in self.live]
                then, orelse = self.block(operation.then), self.block(operation.orelse)
                return changed(
                    operation,
                    then=changed(then, yields=tuple([then.yields[k] for k in keep])),
                    orelse=changed(orelse, yields=tuple([orelse.yields[k] for k in keep])),
                    outs=tuple([operation.outs[k] for k in keep]),
                )
            case Loop():
                keep = [k for k, p in enumerate(operation.params) if p in self.live]
                body = self.block(operation.body)
                stop = body.yields[-1:] if operation.leaves else ()
                return changed(
                    operation,
                    params=tuple([operation.params[k] for k in keep]),
                    inits=tuple([operation.inits[k] for k in keep]),
                    outs=tuple([operation.outs[k] for k in keep]),
                    test=None if operation.test is None else self.block(operation.test),
                    body=changed(body, yields=tuple([body.yields[k] for k in keep]) + stop),
                    count=operation.count if operation.count in self.live else None,
                )
            case Custom():
                return operation.rebuilt(self.block)
        return operation
