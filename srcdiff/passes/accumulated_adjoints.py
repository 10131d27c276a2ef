"""Adjoints of values and of memory, as they grow in the reverse sweep.

Adjoints of scalars are values: a mirror block maps each value to its current adjoint. A loop carries the adjoints that
its body adds to. Adjoints of an array are an array, its shadow; a view of the array has the same view of the shadow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.saved_values import Plan
from srcdiff.analyses.structure import Structure
from srcdiff.analyses.symbolic_shapes import Lengths
from srcdiff.diagnostics import InternalError
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Custom,
    Dim,
    Function,
    Library,
    Loop,
    References,
    Transpose,
    Value,
)
from srcdiff.ir.types import INT, Array, Scalar, widest
from srcdiff.ir.words import own_name, words_for
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.recovered_values import Mirror, RecoveredValues, Storage
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """A branch of the program, by its condition, and which of its sides."""

    condition: Value
    side: int


class AccumulatedAdjoints(RecoveredValues):
    """The adjoints so far."""

    def __init__(
        self,
        structure: Structure,
        active: Activity,
        twins: dict[Value, Value],
        lists: frozenset[Value],
        plan: Plan | None,
        storage: dict[Value, Storage],
        lifted: dict[Value, Value],
    ) -> None:
        super().__init__(structure, plan, storage, lifted)
        self.active, self.twins, self.lists = active, twins, lists
        self.wanted: set[Value] = set()
        self.collected: dict[Value, Value] = {}
        """The adjoints of intermediate values that were asked for."""
        self.zero_unless: dict[Value, Guard] = {}
        """Adjoints of what only one side of a branch uses."""
        self.sized: Any = Copy | Library | Call if structure.is_apart else Copy | Library
        """Operations that can be recovered from their lengths alone, if these suffice."""
        dims = [o for o in structure.start if structure.is_apart and isinstance(o, Dim)]
        self.dims = {(o.array, o.axis): o.out for o in dims if structure.home[o.out] is structure.home.get(o.array)}
        self.lengths = Lengths(Function("", (), structure.top))

    # -- scalars -----------------------------------------------------------------------------------------------------

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

    def taken(self, value: Value, mirror: Mirror) -> Value | None:
        """The finished adjoint of a value, at its definition."""
        found = mirror.adjoints.pop(value, None)
        if found is not None and value in self.wanted:
            self.collected[value] = found
        return found

    # -- memory ------------------------------------------------------------------------------------------------------

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

    def is_active(self, value: Value) -> bool:
        return self.active.memory(value) if isinstance(value.type, Array) else value in self.active

    def has_memory(self, value: Value) -> bool:
        """Whether it is an array that has adjoints."""
        return isinstance(value.type, Array) and self.active.memory(value)

    def bar(self, value: Value) -> str:
        """The name of an adjoint. Arrays always have one, which describes them if the user gave none."""
        name = own_name(value)
        if not name and isinstance(value.type, Array):
            name = words_for(value, self.structure.definition.get) or "array"
        return f"{name}_bar" if name else ""
