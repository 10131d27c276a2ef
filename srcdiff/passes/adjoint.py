"""Reverse mode: the operations of a program backwards, each with the adjoint of what it did.

    primal                      kept                    adjoint
    y = f(x)                    what f' reads           x_bar += f'(x) * y_bar, nothing if y_bar is zero
    a[i] = e                                            e_bar += a_bar[i]; a_bar[i] = 0
    a[i] += e                                           e_bar += a_bar[i]
    if c: A else: B             c, if it is gone        if c: A backwards else: B backwards
    for i in range(n): A        what A's adjoint reads  for i in reversed(range(n)): A backwards
    while c: A                  the number of iterations     as many iterations of A backwards
    syncthreads()                                       syncthreads()

Every block of the program has a mirror block. Adjoints of scalars are values: a mirror maps each value to its current
adjoint, a loop carries the adjoints of what it carries and of what it reads from outside, a branch joins them. An
adjoint asks for values of the forward sweep with `value`. The plan (analyses/saved_values.py) decides how each of them
is recovered. It is made from the demands of a first run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.propagation import harmful_zeros, propagating_values
from srcdiff.analyses.saved_values import Formula, Plan, Term
from srcdiff.analyses.selections import selected_values
from srcdiff.analyses.signs import expected_signs
from srcdiff.analyses.structure import Structure
from srcdiff.analyses.symbolic_shapes import Lengths
from srcdiff.diagnostics import DifferentiationError, InternalError, Problem
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.builder import Builder
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
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    Operation,
    Pop,
    References,
    Slice,
    Store,
    Transpose,
    Value,
    walk,
)
from srcdiff.ir.types import INT, Array, Scalar, element_type, is_complex, is_inexact, widest
from srcdiff.ir.words import own_name, words_for
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.call_pairs import Pair, has_shadow
from srcdiff.passes.custom_adjoints import (
    adjoint_values,
    named,
    no_formula,
    reads_parameters,
    require_shape,
    without_rule,
)
from srcdiff.quick_dataclasses import dataclass
from srcdiff.rules import derivative_rule
from srcdiff.rules.formula import Number, calls_functions, names_of, times, with_values

Seeds = Sequence[tuple[Value, Value | None]]
"""Results with their adjoints; None is one."""

Frames = Mapping[Block, Sequence[tuple[Value, Value]]]
"""The kept values of each block of a recursive function, with their stacks."""


@dataclass(eq=False, slots=True)
class Mirror:
    """The mirror of a block, while it is written."""

    block: Block
    parent: Mirror | None
    loop: MirrorLoop | None = None
    operations: list[Operation] = field(default_factory=list)
    adjoints: dict[Value, Value] = field(default_factory=dict)
    known: dict[Value, Value] = field(default_factory=dict)
    """Values of the forward sweep that have been recovered: read or recomputed."""


@dataclass(eq=False, slots=True)
class MirrorLoop:
    """The values that a mirrored loop carries besides its own adjoints, collected while its body is written."""

    loop: Loop
    index: Value
    captured: dict[Value, Value] = field(default_factory=dict)
    restored: dict[int, Value] = field(default_factory=dict)
    iteration: Value | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of a kept value: an array indexed by the iterations of the enclosing loops, or a stack."""

    where: Value
    loops: tuple[Loop, ...] | None
    start: Value | None = None
    """For what a loop hands on, and the iteration before has put there: what the loop starts from."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A branch of the program, by its condition, and which of its sides."""

    condition: Value
    side: int


class Adjoint:
    """Writes the reverse sweep. Without a plan it only notes which values it asks for, and where."""

    def __init__(
        self,
        structure: Structure,
        active: Activity,
        twins: dict[Value, Value],
        lists: frozenset[Value],
        restores: dict[Store, Value],
        plan: Plan | None,
        storage: dict[Value, Storage],
        callees: dict[str, Any],
        lifted: dict[Value, Value],
    ) -> None:
        self.lifted = lifted
        self.structure, self.active, self.twins, self.lists = structure, active, twins, lists
        self.restores, self.plan, self.storage, self.callees = restores, plan, storage, callees
        self.pairs: Mapping[str, Pair] = {}
        self.builder = Builder()
        self.builder.constants.update(structure.constants)
        self.demands: dict[Value, set[int]] = {}
        self.position = 10**9
        self.problems: list[Problem] = []
        self.had_again: set[Value] = set()
        self.repeated: dict[Value, Value] = {}
        """Recomputed values, by their definitions."""
        self.idle: set[Operation] = set()
        self.wanted: set[Value] = set()
        self.collected: dict[Value, Value] = {}
        """The adjoints of intermediate values that were asked for."""
        self.copies: dict[Call, list[tuple[Value, Value]]] = {}
        """Branches that have nothing to do in reverse, found by the first run."""
        self.returned_memory: frozenset[Value] = lists
        """Memory of which loops carry the adjoints backwards: that of lists, and of what every iteration makes anew."""
        self.zero_unless: dict[Value, Guard] = {}
        """Adjoints of what only one side of a branch uses."""
        self.frames: Frames = {}
        self.sized: Any = Copy | Library | Call if structure.is_apart else Copy | Library
        """Operations that can be recovered from their lengths alone, if these suffice."""
        dims = [o for o in structure.start if structure.is_apart and isinstance(o, Dim)]
        self.dims = {(o.array, o.axis): o.out for o in dims if structure.home[o.out] is structure.home.get(o.array)}
        program = Function("", (), structure.top)
        self.lengths, self.signs, self.selected = Lengths(program), expected_signs(program), selected_values(program)
        self.uses: dict[Value, int] = {}
        self.seeds: Seeds = ()
        self.decides = False
        """Whether the adjoints of the results are one, or one after the other is one."""
        self.top = Mirror(structure.top, None)

    def run(self, seeds: Seeds) -> Mirror:
        """The reverse sweep of the whole function, from the adjoints of its results; where none is given it is one."""
        self.seeds = seeds
        self.count_uses(self.structure.top)
        with self.into(self.top):
            self.take_frame(self.top)
            for value, seed in seeds:
                if not isinstance(value.type, Array):
                    self.add(self.top, value, self.builder.const(1.0) if seed is None else seed)
                elif seed is not None and self.active.memory(value):
                    self.seed_array(value, seed)
            self.reverse_block(self.top)
        if self.problems:
            raise DifferentiationError(list(dict.fromkeys(self.problems)))
        return self.top

    def seed_array(self, array: Value, seed: Value) -> None:
        """The adjoints of an array start with what is given: a copy of it, unless they have other names.

        The caller of a function that runs backwards gives what it does not need any more.
        """
        definition = self.structure.definition.get(array)
        owner = isinstance(definition, Alloc | Copy | Library | Call | None)
        owner = owner or (isinstance(definition, If) and bool(self.active.sites[array] & self.returned_memory))
        if owner and array not in self.twins and array not in self.top.adjoints and not self.belongs_to_list(array):
            self.top.adjoints[array] = seed if self.structure.is_apart else self.builder.copy(seed, self.bar(array))
        else:
            same_size = not self.belongs_to_list(array)
            self.add_elements(self.shadow(array, self.top), seed, same_size=same_size)

    def count_uses(self, block: Block) -> None:
        for operation in block.operations:
            for value in operation.uses():
                self.uses[value] = self.uses.get(value, 0) + 1
            for inner in operation.blocks():
                self.count_uses(inner)
        for value in block.yields:
            self.uses[value] = self.uses.get(value, 0) + 1

    @contextlib.contextmanager
    def into(self, mirror: Mirror) -> Iterator[None]:
        before = self.builder.operations
        self.builder.operations = mirror.operations
        try:
            yield
        finally:
            self.builder.operations = before

    # -- adjoints of scalars -----------------------------------------------------------------------------------------

    def is_home(self, mirror: Mirror, value: Value) -> bool:
        return self.structure.home.get(value, self.structure.top) is mirror.block

    def current(self, mirror: Mirror, value: Value) -> Value | None:
        """The adjoint so far, as seen in this mirror; a loop carries it from here on."""
        if value in mirror.adjoints:
            return mirror.adjoints[value]
        if self.is_home(mirror, value) or mirror.parent is None:
            return None
        if mirror.loop is not None:
            param = Value(self.adjoint_type(value), self.bar(value))
            mirror.loop.captured[value] = param
            mirror.adjoints[value] = param
            return param
        return self.current(mirror.parent, value)

    @staticmethod
    def adjoint_type(value: Value) -> Scalar | Array:
        return value.type if isinstance(value.type, Array) else widest(value.type)

    def add(self, mirror: Mirror, value: Value, amount: Value) -> None:
        """`value_bar += amount`."""
        if value not in self.active or value in self.structure.constants:
            return
        so_far = self.current(mirror, value)
        amount = self.builder.fitted(amount, value)
        total = amount if so_far is None else self.builder.apply("add", so_far, amount)
        if so_far is not None and self.zero_unless.get(so_far) == self.zero_unless.get(amount) is not None:
            self.zero_unless[total] = self.zero_unless[amount]
        is_new = (
            total not in self.structure.home and total not in self.had_again and total not in self.builder.constants
        )
        if value.name and not total.name and is_new:
            total.name = self.bar(value)
        mirror.adjoints[value] = total

    # -- values of the forward sweep ---------------------------------------------------------------------------------

    def mirror_of(self, block: Block, mirror: Mirror) -> Mirror:
        found: Mirror | None = mirror
        while found is not None and found.block is not block:
            found = found.parent
        if found is None:
            raise InternalError("a value is asked for outside of the block that defines it")
        return found

    def value(self, value: Value, mirror: Mirror) -> Value:
        """A value of the forward sweep, as it was."""
        if value in self.structure.constants:
            with self.into(mirror):
                return self.builder.const(self.structure.constants[value], value.scalar)
        if self.structure.is_at_hand(value):
            return self.top.known.get(value, value)
        at = self.mirror_of(self.structure.home[value], mirror)
        if value not in at.known:
            self.have_again(value, at)
        elif self.plan is None:
            self.demands[value].add(self.position)
        return at.known[value]

    def have_again(self, value: Value, at: Mirror) -> None:
        """Have a value again in the mirror of its block; first what it is computed from, which may be a long chain."""
        chain = [self.having(value, at)]
        while chain:
            value, at, operands, found = chain[-1]
            for operand in operands:
                home = self.structure.home.get(operand)
                is_there = operand in self.structure.constants or self.structure.is_at_hand(operand)
                if not is_there and home is not None and operand not in (below := self.mirror_of(home, at)).known:
                    chain.append(self.having(operand, below))
                    break
                found[operand] = self.value(operand, at)
            else:
                with self.into(at):
                    at.known[value] = self.again(value, at, found)
                    self.had_again.add(at.known[value])
                chain.pop()

    def having(self, value: Value, at: Mirror) -> tuple[Value, Mirror, Iterator[Value], dict[Value, Value]]:
        """A value to recover, its operands, and the results for these so far."""
        self.demands.setdefault(value, set()).add(self.position)
        decision = None if self.plan is None else self.plan.decisions.get(value)
        operation = decision.operation if decision is not None and decision.how == "again" else None
        operands = () if operation is None or isinstance(operation, Formula) else operation.uses()
        return value, at, iter(operands), {}

    def again(self, value: Value, at: Mirror, found: Mapping[Value, Value]) -> Value:
        """The recovered value, from the results `found` for its operands."""
        loop = at.loop
        if loop is not None and value is loop.loop.index:
            return self.index_again(loop, at)
        if self.plan is None:
            return Value(value.type, value.name)
        decision = self.plan.decisions[value]
        match decision.how:
            case "keep":
                return self.fetch(value, at)
            case "again":
                assert decision.operation is not None
                return self.recomputed(decision.operation, value, at, found)
            case "yielded":
                assert loop is not None and decision.slot is not None
                return self.restored(loop, decision.slot)
            case "undone":
                assert loop is not None and decision.slot is not None and decision.added is not None
                after, added = self.restored(loop, decision.slot), self.by_formula(decision.added, at)
                return self.builder.apply("subtract", after, added, name=value.name)
        raise InternalError(f"no way to recompute a value: {decision}")

    def index_again(self, loop: MirrorLoop, at: Mirror) -> Value:
        if loop.loop.counted:
            return loop.index
        assert loop.loop.bounds is not None and loop.loop.index is not None
        start, _, step = (self.value(b, at) for b in loop.loop.bounds)
        distance = self.builder.apply("multiply", loop.index, step)
        return self.builder.apply("add", start, distance, name=own_name(loop.loop.index))

    def recomputed(
        self, operation: Operation | Formula, value: Value, at: Mirror, found: Mapping[Value, Value]
    ) -> Value:
        if isinstance(operation, Formula):
            out = self.by_formula(operation, at)
            out.name = out.name or value.name
            return out
        fresh = Value(value.type, value.name)
        again = operation.replaced(lambda v: found[v] if v in found else self.value(v, at))
        self.builder.add(replace(again, out=fresh))  # type: ignore[call-arg]
        if isinstance(operation, Apply):
            self.repeated[fresh] = value
        return fresh

    def by_formula(self, formula: Term, at: Mirror) -> Value:
        match formula:
            case Formula():
                return self.builder.apply(formula.primitive, *(self.by_formula(a, at) for a in formula.args))
            case Value():
                return self.value(formula, at)
        return self.builder.const(formula)

    def restored(self, loop: MirrorLoop, slot: int) -> Value:
        """The value that the loop yielded in this iteration. The mirrored loop carries it backwards."""
        if slot not in loop.restored:
            param = loop.loop.params[slot]
            loop.restored[slot] = Value(param.type, param.name)
        return loop.restored[slot]

    def fetch(self, value: Value, at: Mirror) -> Value:
        if value in self.lifted:
            return self.lifted[value]
        storage = self.storage[value]
        if storage.loops is None:
            out = Value(value.type, value.name)
            self.builder.add(Pop(out, storage.where))
            return out
        iterations = [
            self.trip_count(loop, at) if value in loop.outs else self.iteration(loop, at) for loop in storage.loops
        ]
        if isinstance(value.type, Scalar):
            return self.builder.load(storage.where, tuple(iterations), value.name)
        if storage.start is None:
            return self.builder.view(storage.where, tuple(Index(t) for t in iterations), value.name)
        return self.from_iteration_before(value, storage, iterations, at)

    def take_frame(self, mirror: Mirror) -> None:
        """Take off the stacks what the block has put there, the last value first."""
        for value, stack in reversed(self.frames.get(mirror.block, ())):
            out = Value(value.type, value.name)
            self.builder.add(Pop(out, stack))
            mirror.known[value] = out
            self.had_again.add(out)

    def from_iteration_before(self, value: Value, storage: Storage, iterations: list[Value], at: Mirror) -> Value:
        """The value that the loop carried: the row of the previous iteration, or the value before the loop."""
        assert storage.start is not None
        start, out = self.value(storage.start, at), Value(value.type, value.name)
        is_first = self.builder.apply("equal", iterations[-1], self.builder.const(0))
        with self.builder.block() as operations:
            iterations[-1] = self.builder.apply("subtract", iterations[-1], self.builder.const(1))
            row = self.builder.view(storage.where, tuple(Index(t) for t in iterations), value.name)
        self.builder.branch(is_first, Block((), (start,)), Block(tuple(operations), (row,)), (out,))
        return out

    def iteration(self, loop: Loop, at: Mirror) -> Value:
        """The number of the loop's iteration, counted from zero."""
        mirror: Mirror | None = at
        while mirror is not None and not (mirror.loop is not None and mirror.loop.loop is loop):
            mirror = mirror.parent
        assert mirror is not None and mirror.loop is not None
        if mirror.loop.iteration is None:
            with self.into(mirror):
                mirror.loop.iteration = mirror.loop.index  # a loop with an early exit has counted its iterations
                if loop.counted:
                    bounds = tuple(self.value(b, mirror) for b in loop.bounds or ())
                    mirror.loop.iteration = iteration_number(self.builder, mirror.loop.index, bounds)
        return mirror.loop.iteration

    def trip_count(self, loop: Loop, at: Mirror) -> Value:
        """How many iterations a counted loop made."""
        return self.builder.apply("range_length", *(self.value(b, at) for b in loop.bounds or ()))

    # -- adjoints of memory ------------------------------------------------------------------------------------------

    def shadow(self, array: Value, mirror: Mirror) -> Value:
        """The reference to the adjoints of what the reference points to."""
        if array in self.twins:
            return self.value(self.twins[array], mirror)
        home = self.structure.home.get(array, self.structure.top)
        at = self.mirror_of(home, mirror)
        definition = self.structure.definition.get(array)
        if isinstance(definition, References):
            key = definition.out
            if key not in at.adjoints:
                base = self.shadow(definition.array, at)
                with self.into(at):
                    items = definition.replaced(lambda v: base if v is definition.array else self.value(v, at))
                    out = Value(array.type, self.bar(array))
                    self.builder.add(replace(items, out=out))  # type: ignore[call-arg]
                at.adjoints[key] = out
            return at.adjoints[key]
        seen: Mirror | None = mirror
        while seen is not None and seen is not at:
            if array in seen.adjoints:  # the storage of a list, which a branch has yielded
                return seen.adjoints[array]
            seen = seen.parent
        if array not in at.adjoints:
            with self.into(at):
                at.adjoints[array] = self.zeros(array, at)
        return at.adjoints[array]

    def belongs_to_list(self, array: Value) -> bool:
        return bool(self.active.sites.get(array, frozenset()) & self.lists)

    def zeros(self, array: Value, at: Mirror) -> Value:
        """Adjoints of zero for an array."""
        out = Value(array.type, self.bar(array))
        zero = self.builder.const(0.0)
        definition = self.structure.definition.get(array)
        if self.structure.is_at_hand(array):
            self.builder.add(Alloc(out, (), zero, array))
        elif isinstance(definition, Alloc) and definition.like is None:
            self.builder.add(Alloc(out, tuple(self.value(s, at) for s in definition.shape), zero))
        elif (shape := self.known_shape(array)) is not None:
            self.builder.add(Alloc(out, shape, zero))
        elif isinstance(definition, Alloc):
            assert definition.like is not None
            self.builder.add(Alloc(out, (), zero, self.value(definition.like, at)))
        elif isinstance(definition, self.sized):  # the copy may have another memory layout
            self.builder.add(Alloc(out, tuple(self.length(array, k, at) for k in range(array.array.rank)), zero))
        else:
            self.builder.add(Alloc(out, (), zero, self.value(array, at)))
        return out

    def known_shape(self, array: Value) -> tuple[Value, ...] | None:
        """The lengths of an array in terms of what is known at top level, if they are."""
        found: list[Value] = []
        for axis in range(array.array.rank):
            match self.lengths.of(array, axis):
                case int(size):
                    found.append(self.builder.const(size))
                case Value() as size if self.structure.is_at_hand(size):
                    found.append(size)
                case (Value() as source, int(place)) if self.structure.is_at_hand(source):
                    found.append(self.builder.dim(source, place))
                case _:
                    return None
        return tuple(found)

    def length(self, array: Value, axis: int, at: Mirror) -> Value:
        """The length of an axis, from a place that knows it, so that the array itself need not be recovered."""
        match self.structure.definition.get(array):
            case Library() as call:
                lengths = LIBRARY[call.function].lengths(call.outs.index(array))
                if lengths is not None:
                    return self.length(call.args[lengths[axis][0]], lengths[axis][1], at)
            case Transpose() as turned:
                return self.length(turned.array, turned.axes[axis], at)
            case Copy(array=source):
                return self.length(source, axis, at)
            case Alloc(like=None, shape=shape):
                return self.value(shape[axis], at)
            case Call() if self.structure.is_apart:
                return self.value(self.dims[array, axis], at)
        return self.builder.dim(self.value(array, at), axis)

    # -- operations --------------------------------------------------------------------------------------------------

    def reverse_block(self, mirror: Mirror) -> None:
        for operation in reversed(mirror.block.operations):
            self.position = self.structure.end[operation]
            self.builder.span = operation.span
            try:
                self.reverse(operation, mirror)
            except DifferentiationError as error:
                self.problems += error.problems

    def reverse(self, operation: Operation, mirror: Mirror) -> None:
        if self.plan is not None and operation in self.plan.idle:
            return
        match operation:
            case Apply():
                self.reverse_apply(operation, mirror)
            case Load():
                self.reverse_load(operation, mirror)
            case Store():
                self.reverse_store(operation, mirror)
            case Alloc():
                self.reverse_alloc(operation, mirror)
            case Copy():
                self.reverse_copy(operation, mirror)
            case Grow():
                self.reverse_grow(operation, mirror)
            case If():
                self.reverse_if(operation, mirror)
            case Loop():
                guard = self.guard_of(operation, mirror)
                if guard is None:
                    self.reverse_loop(operation, mirror)
                else:
                    self.reverse_guarded(operation, guard, mirror)
            case Custom():
                self.reverse_custom(operation, mirror)
            case Call():
                self.reverse_call(operation, mirror)
            case Library():
                self.reverse_library(operation, mirror)
            case Barrier():
                self.builder.add(operation)

    def taken(self, value: Value, mirror: Mirror) -> Value | None:
        """The finished adjoint of a value, at its definition."""
        found = mirror.adjoints.pop(value, None)
        if found is not None and value in self.wanted:
            self.collected[value] = found
        return found

    def reverse_apply(self, operation: Apply, mirror: Mirror) -> None:
        out_bar = self.taken(operation.out, mirror)
        if out_bar is None:
            return
        rule = derivative_rule(operation.primitive)
        if rule is None:
            span = operation.span
            raise DifferentiationError([Problem("SD301", f"`{operation.primitive}` has no derivative rule", span)])
        given = {**dict(zip(rule.parameters, operation.args, strict=True)), "out": operation.out}
        if calls_functions(rule):
            rule, given = with_values(rule, given, functools.partial(self.computed, mirror))
        again = {name: functools.partial(self.value, value, mirror) for name, value in given.items()}
        names = names_of(rule, again, self.builder)
        for name, argument in zip(rule.parameters, operation.args, strict=True):
            if name in rule.refused and argument in self.active:
                raise DifferentiationError([no_formula(operation, name)])
            if name in rule.partials and argument in self.active:
                is_least = name in rule.at_least and self.signs.is_root_of_least(operation)
                formula = rule.at_least[name] if is_least else rule.partial(name, is_complex=is_complex(argument.type))
                strong = not is_least and self.is_strong(operation, name)
                amount = times(out_bar, formula, names, self.builder, strong=strong, conjugated=True)
                if amount is not None:
                    if out_bar in self.zero_unless:
                        self.zero_unless[amount] = self.zero_unless[out_bar]
                    self.add(mirror, argument, amount)
            if name in rule.by_conjugate and argument in self.active and is_complex(argument.type):
                amount = times(self.builder.apply("conjugate", out_bar), rule.by_conjugate[name], names, self.builder)
                if amount is not None:
                    self.add(mirror, argument, amount)

    def is_strong(self, operation: Apply, parameter: str) -> bool:
        """Whether the adjoint may be zero while the derivative is infinite or NaN.

        If only an argument that nobody means to be infinite makes it so, as in `k * (1.0 / d)`, the result is no number
        either, and has an adjoint of zero only if it is left out. Nor does it matter where the results are not finite.
        """
        is_singular = self.signs.is_singular(operation, parameter)
        if not is_singular and operation.out in self.selected:
            is_singular = not self.signs.partial_is_finite(operation, parameter)
        return is_singular and not self.signs.is_covered(operation, parameter, *self.ends)

    @functools.cached_property
    def ends(self) -> tuple[frozenset[Value], frozenset[Value]]:
        """The values that are infinite or NaN only if all seeded results are, and those that make them so at zero."""
        if not self.decides:
            return frozenset(), frozenset()
        sites = self.active.sites

        def sites_of(array: Value) -> Sites:
            return sites.get(array, frozenset((array,)))

        propagating = propagating_values(self.structure, sites_of, self.signs, [value for value, _ in self.seeds])
        return propagating, harmful_zeros(propagating, self.structure, self.signs)

    def computed(self, mirror: Mirror, primitive: str, args: Sequence[Value | Number]) -> Value | None:
        """A value that the program has computed in the block of the mirror, or in an enclosing one."""
        around: Mirror | None = mirror
        while around is not None:
            found = self.structure.computed.get((around.block, primitive, self.structure.told_apart(args)))
            if found is not None:
                return found
            around = around.parent
        return None

    def reverse_load(self, operation: Load, mirror: Mirror) -> None:
        out_bar = self.taken(operation.out, mirror)
        if out_bar is None or not self.active.memory(operation.array):
            return
        shadow = self.shadow(operation.array, mirror)
        indices = tuple(self.value(i, mirror) for i in operation.indices)
        with self.builder.claiming(operation.claims):
            self.builder.store(shadow, indices, out_bar, adds=True)

    def reverse_store(self, operation: Store, mirror: Mirror) -> None:
        matters = operation.value in self.active or not operation.adds
        if matters and self.active.memory(operation.array):
            shadow = self.shadow(operation.array, mirror)
            indices = tuple(self.value(i, mirror) for i in operation.indices)
            if operation.value in self.active:
                element = Value(element_type(shadow.array), self.bar(operation.value) if operation.value.name else "")
                self.builder.add(Load(element, shadow, indices, operation.claims, span=operation.span))
                adjoint = self.builder.cast(element, widest(element.type))
                if not operation.adds:
                    with self.builder.claiming(operation.claims):
                        self.builder.store(shadow, indices, self.builder.const(0.0))
                self.add(mirror, operation.value, adjoint)
            else:
                with self.builder.claiming(operation.claims):
                    self.builder.store(shadow, indices, self.builder.const(0.0))
        if operation in self.restores:
            array = self.value(operation.array, mirror)
            indices = tuple(self.value(i, mirror) for i in operation.indices)
            before = self.value(self.restores[operation], mirror)
            with self.builder.claiming(operation.claims):
                self.builder.store(array, indices, before)

    def reverse_alloc(self, operation: Alloc, mirror: Mirror) -> None:
        fill = operation.fill
        if fill is None or fill not in self.active or not self.active.memory(operation.out):
            self.taken(operation.out, mirror)
            return
        shadow = self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        total = self.sum_of(shadow)
        self.add(mirror, fill, total)

    def sum_of(self, array: Value) -> Value:
        """The sum of all elements, by a loop for each axis."""

        def nest(axis: int, indices: tuple[Value, ...], so_far: Value) -> Value:
            if axis == array.array.rank:
                return self.builder.apply("add", so_far, self.builder.load(array, indices))
            index, param, out = Value(INT, "i"), Value(widest(array.type)), Value(widest(array.type))
            bounds = (self.builder.const(0), self.builder.dim(array, axis), self.builder.const(1))
            with self.builder.block() as operations:
                result = nest(axis + 1, (*indices, index), param)
            body = Block(tuple(operations), (result,))
            self.builder.add(Loop(index, bounds, (param,), (so_far,), None, body, (out,)))
            return out

        return nest(0, (), self.builder.zero(array.type))

    def reverse_copy(self, operation: Copy, mirror: Mirror) -> None:
        if not self.active.memory(operation.out) or not self.active.memory(operation.array):
            self.taken(operation.out, mirror)
            return
        source, home = operation.array, self.structure.home.get(operation.array, self.structure.top)
        owned = operation.out not in self.twins and source not in self.twins
        if (
            owned
            and self.uses[source] == 1
            and home is mirror.block
            and source not in mirror.adjoints
            and self.structure.definition.get(source) is None
        ):
            mirror.adjoints[source] = self.shadow(operation.out, mirror)  # nothing else adds to it, so it is passed on
            return
        target, shadow = self.shadow(source, mirror), self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        self.add_elements(target, shadow, same_size=not self.belongs_to_list(source))

    def add_elements(self, target: Value, source: Value, *, same_size: bool) -> None:
        """`target += source`, element by element; of the storage of lists, as much as both have."""
        self.for_elements(target, source, adds=True, same_size=same_size)

    def add_result(self, target: Value, result: Value, operation: Custom | Library) -> None:
        """Add what a rule gives; loops over its lengths, if it has just been computed, are like those that did it."""
        is_new = any(isinstance(o, Alloc) and o.out is result for o in self.builder.operations)
        if isinstance(operation, Custom) or not is_new:  # a user's rule may return other lengths
            self.add_elements(target, result, same_size=True)
            return
        self.builder.each_element(
            result, lambda indices: self.builder.store(target, indices, self.builder.load(result, indices), adds=True)
        )

    def for_elements(self, target: Value, source: Value, *, adds: bool, same_size: bool) -> None:

        def length(axis: int) -> Value:
            size = self.builder.dim(target, axis)
            if same_size:
                return size
            other = self.builder.dim(source, axis)
            return self.builder.apply("where", self.builder.apply("less", other, size), other, size)

        def write(indices: tuple[Value, ...]) -> None:
            self.builder.store(target, indices, self.builder.load(source, indices), adds=adds)

        self.builder.each_element(target, write, length)

    def reverse_grow(self, operation: Grow, mirror: Mirror) -> None:
        """The elements of the old storage live on in the new one, and so do their adjoints."""
        if not self.active.memory(operation.out):
            return
        shadow = self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        self.hand_back(operation.array, shadow, mirror)

    def hand_back(self, array: Value, shadow: Value, mirror: Mirror) -> None:
        """The adjoints of a list's storage, as it was before; what was added to them already stays."""
        before = self.current(mirror, array) if self.is_home(mirror, array) or mirror.loop is None else None
        if before is not None and before is not shadow:
            self.add_elements(shadow, before, same_size=False)
        mirror.adjoints[array] = shadow
        if mirror.loop is not None and not self.is_home(mirror, array):
            raise InternalError("the storage of a list is replaced by a loop that does not carry it")

    def start_with(self, array: Value, shadow: Value, mirror: Mirror) -> None:
        """The adjoints of an array that a block yields; of one that has another name too, those of both."""
        known = self.seen_shadow(array, mirror)
        if known is None or known is shadow:
            mirror.adjoints[array] = shadow
        else:
            self.add_elements(known, shadow, same_size=False)

    def seen_shadow(self, array: Value, mirror: Mirror) -> Value | None:
        """The adjoints that an array has already; what a loop has from outside, has them there."""
        at = self.mirror_of(self.structure.home.get(array, self.structure.top), mirror)
        seen: Mirror | None = mirror
        from_outside = False
        while seen is not None and seen is not at and array not in seen.adjoints:
            from_outside |= seen.loop is not None
            seen = seen.parent
        if seen is not None and array in seen.adjoints:
            return seen.adjoints[array]
        return self.shadow(array, mirror) if from_outside else None

    # -- branches ----------------------------------------------------------------------------------------------------

    def reverse_if(self, operation: If, mirror: Mirror) -> None:
        outs = [(k, out, self.taken(out, mirror)) for k, out in enumerate(operation.outs)]
        sides: list[Mirror] = []
        for block in (operation.then, operation.orelse):
            side = Mirror(block, mirror)
            with self.into(side):
                self.take_frame(side)
                for k, out, out_bar in outs:
                    if out_bar is None:
                        continue
                    source = block.yields[k]
                    if isinstance(out.type, Array):
                        self.start_with(source, out_bar, side)
                    elif out in self.active:
                        self.add(side, source, out_bar)
                self.reverse_block(side)
            sides.append(side)
        self.position = self.structure.end[operation]
        if not self.outliving(sides) and not any(side.operations for side in sides):
            self.idle.add(operation)
            return
        self.join(operation.condition, operation, sides, mirror)

    def outliving(self, sides: list[Mirror]) -> list[Value]:
        return [v for v in {**sides[0].adjoints, **sides[1].adjoints} if self.outlives(v, sides)]

    def join(self, condition: Value, operation: Operation, sides: list[Mirror], mirror: Mirror) -> None:
        """A branch of the reverse sweep, with the adjoints that its sides have added to."""
        is_first = self.value(condition, mirror)
        yields: tuple[list[Value], list[Value]] = ([], [])
        joined: list[Value] = []
        changed = self.outliving(sides)
        for value in changed:
            before = self.current(mirror, value)
            joined.append(Value(self.adjoint_type(value), self.bar(value)))
            for side, into in zip(sides, yields, strict=True):
                with self.into(side):
                    into.append(self.side_adjoint(value, side, before, mirror))
            changing = [k for k, side in enumerate(sides) if value in side.adjoints]
            if before is None and len(changing) == 1:
                self.zero_unless[joined[-1]] = Guard(condition, changing[0])
        blocks = [Block(tuple(s.operations), tuple(y)) for s, y in zip(sides, yields, strict=True)]
        self.builder.span = operation.span
        self.builder.branch(is_first, blocks[0], blocks[1], tuple(joined))
        mirror.adjoints.update(zip(changed, joined, strict=True))

    # -- what only one side of a branch uses ------------------------------------------------------------------------

    def guard_of(self, operation: Loop, mirror: Mirror) -> Guard | None:
        """The branch whose one side alone uses what a loop gives, if nothing else of the loop matters in reverse."""
        bars = [mirror.adjoints[out] for out in operation.outs if out in mirror.adjoints]
        guards = {self.zero_unless.get(b) for b in bars}
        guard = guards.pop() if len(guards) == 1 else None
        if guard is None or any(isinstance(p.type, Array) for p in operation.params):
            return None
        return guard if all(self.is_skipped_unnoticed(o) for o in (operation, *walk(operation.body))) else None

    def is_skipped_unnoticed(self, operation: Operation) -> bool:
        """Whether the reverse sweep may leave it out where its adjoint is zero: it undoes nothing, pops nothing."""
        kept = [self.storage.get(v) for v in (*operation.defines(), *operation.inner())]
        if any(storage is not None and storage.loops is None for storage in kept):
            return False
        if any(block in self.frames for block in operation.blocks()):
            return False
        return isinstance(operation, Apply | Const | Dim | If | Load | Loop | References)

    def reverse_guarded(self, operation: Loop, guard: Guard, mirror: Mirror) -> None:
        """The reverse of a loop, on one side of a branch."""
        sides = [Mirror(Block(), mirror), Mirror(Block(), mirror)]
        inside = sides[guard.side]
        inside.adjoints.update({out: bar for out in operation.outs if (bar := self.taken(out, mirror)) is not None})
        with self.into(inside):
            self.reverse_loop(operation, inside)
        if inside.operations or self.outliving(sides):
            self.join(guard.condition, operation, sides, mirror)

    def outlives(self, value: Value, sides: list[Mirror]) -> bool:
        """Whether the value is at home outside of the branch, so that its adjoint goes on."""
        home = self.structure.home.get(value, self.structure.top)
        is_view = isinstance(self.structure.definition.get(value), References)
        return all(home is not side.block for side in sides) and not is_view

    def side_adjoint(self, value: Value, side: Mirror, before: Value | None, mirror: Mirror) -> Value:
        found = side.adjoints.get(value, before)
        if found is not None:
            return found
        if isinstance(value.type, Array):
            return self.zeros(value, mirror)
        return self.builder.zero(value.type)

    # -- loops -------------------------------------------------------------------------------------------------------

    def name_of_index(self, loop: Loop) -> str:
        """The user's name, where the index takes the same values; else it counts the iterations."""
        if loop.index is None or loop.bounds is None:
            return "iteration"
        start, _, step = (self.structure.constants.get(b) for b in loop.bounds)
        return loop.index.name if loop.counted or (start, step) == (0, 1) else "iteration"

    def reverse_loop(self, operation: Loop, mirror: Mirror) -> None:
        index = Value(INT, self.name_of_index(operation))
        inner = Mirror(operation.body, mirror, MirrorLoop(operation, index))
        assert inner.loop is not None
        slots = [k for k in range(len(operation.params)) if self.carries_adjoint(operation, k)]
        params: list[Value] = []
        inits: list[Value] = []
        seeds = {k: self.taken(operation.outs[k], mirror) for k in slots}
        with self.into(inner):
            self.take_frame(inner)
            for k in slots:
                source = operation.body.yields[k]
                carried = Value(self.adjoint_type(source), self.bar(operation.params[k]))
                params.append(carried)
                if isinstance(source.type, Array):
                    self.start_with(source, carried, inner)
                else:
                    self.add(inner, source, carried)
            self.reverse_block(inner)
            self.position = self.structure.end[operation]
            yields = [self.next_adjoint(operation, k, inner) for k in slots]
        idle = all(y is p for y, p in zip(yields, params, strict=True))
        if not inner.operations and not inner.loop.captured and idle:
            for k in slots:
                seed = seeds[k]
                if seed is not None:
                    self.give_back(operation.inits[k], seed, mirror)
            return
        self.builder.span = operation.span
        for k in slots:
            seed = seeds[k]
            if seed is None:
                out = operation.outs[k]
                seed = self.zeros(out, mirror) if isinstance(out.type, Array) else self.builder.zero(out.type)
            inits.append(seed)
        self.finish_loop(operation, mirror, inner, slots, params, inits, yields)

    def carries_adjoint(self, operation: Loop, k: int) -> bool:
        param = operation.params[k]
        if isinstance(param.type, Array):
            return bool(self.active.sites.get(param, frozenset()) & self.returned_memory) and self.active.memory(param)
        return param in self.active or operation.outs[k] in self.active

    def next_adjoint(self, operation: Loop, k: int, inner: Mirror) -> Value:
        param = operation.params[k]
        found = inner.adjoints.get(param)
        if found is not None:
            return found
        return self.zeros(param, inner) if isinstance(param.type, Array) else self.builder.zero(param.type)

    def give_back(self, value: Value, adjoint: Value, mirror: Mirror) -> None:
        if isinstance(value.type, Array):
            self.hand_back(value, adjoint, mirror)
        else:
            self.add(mirror, value, adjoint)

    def finish_loop(
        self,
        operation: Loop,
        mirror: Mirror,
        inner: Mirror,
        slots: list[int],
        params: list[Value],
        inits: list[Value],
        yields: list[Value],
    ) -> None:
        loop = inner.loop
        assert loop is not None
        done: list[int] = []
        restored: list[tuple[Value, Value, Value]] = []
        while len(done) < len(loop.restored):  # having a parameter again may ask for another yielded value
            for k in sorted(loop.restored.keys() - set(done)):
                done.append(k)
                with self.into(inner):
                    before = self.value(operation.params[k], inner)
                restored.append((loop.restored[k], self.value(operation.outs[k], mirror), before))
        captured = list(loop.captured.items())
        for value, param in captured:
            params.append(param)
            before_loop = self.current(mirror, value)
            if before_loop is None:
                is_array = isinstance(value.type, Array)
                before_loop = self.zeros(value, mirror) if is_array else self.builder.zero(value.type)
            inits.append(before_loop)
            yields.append(inner.adjoints[value])
        for param, init, next_value in restored:
            params.append(param)
            inits.append(init)
            yields.append(next_value)
        outs = [Value(p.type, p.name) for p in params]
        bounds = self.backwards(operation, mirror)
        body = Block(tuple(inner.operations), tuple(yields))
        given = loop.index, bounds, tuple(params), tuple(inits), None, body, tuple(outs)
        self.builder.add(Loop(*given, claims=operation.claims, span=operation.span))
        for (value, _), out in zip(captured, outs[len(slots) :], strict=False):
            mirror.adjoints[value] = out
        for k, out in zip(done, outs[len(slots) + len(captured) :], strict=True):
            start = operation.inits[k]
            if isinstance(start.type, Array) and self.is_home(mirror, start):
                mirror.known[start] = out  # the loop has come back to it, and to nothing else that it carries
        for k, out in zip(slots, outs, strict=False):  # last: what a loop starts from may also be captured by it
            self.give_back(operation.inits[k], out, mirror)

    def backwards(self, operation: Loop, mirror: Mirror) -> tuple[Value, Value, Value]:
        """The loop's range in reverse."""
        build = self.builder
        minus_one, one = build.const(-1), build.const(1)
        if not operation.counted:
            assert operation.count is not None
            count = self.value(operation.count, mirror)
            return build.apply("subtract", count, one), minus_one, minus_one
        assert operation.bounds is not None
        start, stop, step = (self.value(b, mirror) for b in operation.bounds)
        known = build.constants.get(step)
        if known in (1, -1):
            return build.apply("subtract", stop, step), build.apply("subtract", start, step), build.const(-known)
        length = build.apply("range_length", start, stop, step)
        last = build.apply("multiply", build.apply("subtract", length, one), step)
        return build.apply("add", start, last), build.apply("subtract", start, step), build.apply("negative", step)

    # -- functions ---------------------------------------------------------------------------------------------------

    def reverse_custom(self, operation: Custom, mirror: Mirror) -> None:
        self.reverse_by_rule(operation, operation.rule, mirror)

    def reverse_library(self, operation: Library, mirror: Mirror) -> None:
        self.reverse_by_rule(operation, LIBRARY[operation.function], mirror)

    def reverse_by_rule(self, operation: Custom | Library, rule: Any, mirror: Mirror) -> None:
        """The adjoint is a function of its own, written into the reverse sweep."""
        if not any(self.is_active(o) for o in operation.outs) or not any(self.is_active(a) for a in operation.args):
            for out in operation.outs:
                self.taken(out, mirror)
            return
        if rule.adjoint is None and rule.tangent is None:
            raise DifferentiationError([without_rule(rule, len(operation.args), operation.span)])
        seeds: list[Value] = []
        for out in operation.outs:
            if isinstance(out.type, Array) and not is_inexact(out.type):
                seeds.append(Value(out.type))  # integers have no adjoints, and rules read none
            elif isinstance(out.type, Array):
                seeds.append(self.shadow(out, mirror))
                self.taken(out, mirror)
            else:
                out_bar = self.taken(out, mirror)
                seeds.append(self.builder.zero(out.type) if out_bar is None else out_bar)
        given = (*operation.args, *operation.outs)
        known = [
            self.value(v, mirror) if read else Value(v.type)  # the others are not read
            for v, read in zip(given, reads_parameters(rule.adjoint or rule.tangent, len(given)), strict=True)
        ]
        args, outs = known[: len(operation.args)], known[len(operation.args) :]
        results = adjoint_values(rule, self.builder, args, outs, seeds, operation.span)
        for argument, result in zip(operation.args, results, strict=True):
            if result is not None and self.is_active(argument):
                if isinstance(argument.type, Array):
                    shadow = self.shadow(argument, mirror)
                    if isinstance(operation, Custom) and rule.adjoint is not None:
                        require_shape(result, shadow, named(rule.adjoint), self.builder, operation.span)
                    self.add_result(shadow, result, operation)
                else:
                    self.add(mirror, argument, result)

    def is_active(self, value: Value) -> bool:
        return self.active.memory(value) if isinstance(value.type, Array) else value in self.active

    def has_memory(self, value: Value) -> bool:
        """Whether it is an array that has adjoints."""
        return isinstance(value.type, Array) and self.active.memory(value)

    def reverse_call(self, operation: Call, mirror: Mirror) -> None:
        pair = self.pairs.get(operation.function)
        if pair is not None:
            self.reverse_pair(operation, pair, mirror)
            return
        writes = any(map(self.has_memory, operation.written))
        counts = [out in mirror.adjoints or self.has_memory(out) for out in operation.outs]
        if not writes and not any(counts):
            for array, before in self.copies.get(operation, ()):
                self.put_back(array, before, mirror)
            return
        seeds = [self.seed_of(out, operation, mirror) for out in operation.outs if is_inexact(out.type)]
        args = [self.value(a, mirror) for a in operation.args]
        callee = self.callees[operation.function]
        shadows, apart = self.shadows_of_arguments([a for a in operation.args if callee.has_shadow(a)], mirror)
        outs = [Value(widest(a.type)) for a in operation.args if isinstance(a.type, Scalar) and is_inexact(a.type)]
        for array, before in self.copies.get(operation, ()):
            self.put_back(array, before, mirror)
        given = (*args, *seeds, *shadows)
        written = (*operation.writes, *range(len(given) - len(shadows), len(given)))
        results = [Value(out.type, out.name) for out in operation.outs] if callee.gives_results else []
        self.builder.add(Call((*results, *outs), callee.name, given, written, span=operation.span))
        for array, before in self.copies.get(operation, ()):
            self.put_back(array, before, mirror)
        for array, shadow in apart:
            self.add_elements(self.shadow(array, mirror), shadow, same_size=not self.belongs_to_list(array))
        floats = [a for a in operation.args if not isinstance(a.type, Array) and is_inexact(a.type)]
        for argument, amount in zip(floats, outs, strict=True):
            if argument in self.active:
                self.add(mirror, argument, amount)

    def reverse_pair(self, operation: Call, pair: Pair, mirror: Mirror) -> None:
        """Call the function that takes off the stacks what the call has put there; it restores what that has written.

        If nobody needs the adjoint, it adds to memory that is forgotten.
        """
        own = operation.args[: len(operation.args) - len(pair.stacks)]
        counts = any(map(self.has_memory, operation.written))
        counts = counts or any(out in mirror.adjoints or self.has_memory(out) for out in operation.outs)
        seeds = [self.seed_of(out, operation, mirror) for out in operation.outs if is_inexact(out.type)]
        given = [self.value(own[k], mirror) for k in pair.takes]
        arrays = [a for a in own if has_shadow(a)]
        shadows, apart = self.shadows_of_arguments(arrays, mirror) if counts else ([], [])
        shadows = shadows or [self.new_shadow(a, mirror) for a in arrays]
        floats = [a for a in own if is_inexact(a.type) and not isinstance(a.type, Array)]
        outs = [Value(widest(a.type)) for a in floats]
        args = (*given, *seeds, *shadows, *operation.args[len(own) :])
        restored = [place for place, k in enumerate(pair.takes) if k in pair.restores]
        taken = [place for place, seed in enumerate(seeds, len(given)) if isinstance(seed.type, Array)]
        written = (*restored, *taken, *range(len(given) + len(seeds), len(args)))
        self.builder.add(Call(tuple(outs), pair.reverse, args, written, span=operation.span))
        if counts:
            for array, shadow in apart:
                self.add_elements(self.shadow(array, mirror), shadow, same_size=not self.belongs_to_list(array))
            for argument, amount in zip(floats, outs, strict=True):
                if argument in self.active:
                    self.add(mirror, argument, amount)

    def shadows_of_arguments(
        self, arrays: list[Value], mirror: Mirror
    ) -> tuple[list[Value], list[tuple[Value, Value]]]:
        """The adjoints that a call adds to: of arrays that may share memory, those of the first, and new ones."""
        shadows: list[Value] = []
        apart: list[tuple[Value, Value]] = []
        seen: set[Value] = set()
        for array in arrays:
            memory = self.active.sites.get(array, frozenset((array,)))
            if memory & seen and self.active.memory(array):
                shadows.append(self.new_shadow(array, mirror))
                apart.append((array, shadows[-1]))
            else:
                shadows.append(self.shadow_of_argument(array, mirror))
            seen |= memory
        return shadows, apart

    def seed_of(self, out: Value, operation: Call, mirror: Mirror) -> Value:
        """The finished adjoint of what a call gives; of a list that has grown since, as much as the list had then.

        Where a loop hands it on to the call, the adjoint is copied: the adjoint of the call shares no memory with it.
        """
        if not isinstance(out.type, Array):
            found = self.taken(out, mirror)
            return self.builder.zero(out.type) if found is None else found
        if not self.active.memory(out):
            return self.zeros(out, mirror)
        shadow = self.shadow(out, mirror)
        self.taken(out, mirror)
        if any(out in self.active.sites.get(a, ()) for a in operation.args):
            shadow = self.builder.copy(shadow, shadow.name)
        if not self.belongs_to_list(out):
            return shadow
        return self.builder.view(shadow, (Slice(None, self.length(out, 0, mirror), None),), shadow.name)

    def put_back(self, array: Value, before: Value, mirror: Mirror) -> None:
        """The array as it was before the call: the adjoint of the call runs it again."""
        target, source = self.value(array, mirror), self.value(before, mirror)
        self.builder.add(Comment("as it was before the call"))
        self.for_elements(target, source, adds=False, same_size=True)

    def shadow_of_argument(self, array: Value, mirror: Mirror) -> Value:
        return self.shadow(array, mirror) if self.active.memory(array) else self.new_shadow(array, mirror)

    def new_shadow(self, array: Value, mirror: Mirror) -> Value:
        zero = self.builder.const(0.0)
        out = Value(array.type, self.bar(array))
        self.builder.add(Alloc(out, (), zero, self.value(array, mirror)))
        return out

    def bar(self, value: Value) -> str:
        """The name of an adjoint. Arrays always have one, which describes them if the user gave none."""
        name = own_name(value)
        if not name and isinstance(value.type, Array):
            name = words_for(value, self.structure.definition.get) or "array"
        return f"{name}_bar" if name else ""


def iteration_number(builder: Builder, index: Value, bounds: tuple[Value, ...]) -> Value:
    """Which iteration of `range(start, stop, step)` the index belongs to."""
    start, _, step = bounds
    known = builder.constants.get(step)
    if known == -1:
        return builder.apply("subtract", start, index)
    offset = builder.apply("subtract", index, start)
    return offset if known == 1 else builder.apply("floor_divide", offset, step)
