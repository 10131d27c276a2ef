"""Facts about arrays during the interpretation: their sizes, and which arrays cannot share memory.

A size has a key. Sizes with equal keys are equal at run time:

    ("n", 3)                 the number 3
    ("v", v)                 the integer v
    ("d", a, 0)              the length of axis 0 of the array a
    ("-", key, 2)            the size of a[1:-1]: two less, but not below zero
    ("+", key, 1)            one more
    ("s", key, 1, None, 2)   the size of a[1::2]
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Copy, Dim, Index, Item, NewAxis, Operation, Part, Reshape, Slice, Transpose, Value
from srcdiff.ir.types import INT, Array, Scalar, real_of
from srcdiff.quick_dataclasses import dataclass

Key = tuple[Hashable, ...]
ONE: Key = ("n", 1)
_NEVER = 10**9
_OF_NATURALS = ("add", "multiply", "floor_divide", "remainder", "minimum", "right_shift", "bitwise_and")
"""Functions whose results are not negative if their arguments are not."""
_ORDERS = {"greater": (True, True), "greater_equal": (True, False), "less": (False, True), "less_equal": (False, False)}
"""For each comparison, whether the first operand is the larger one, and whether the operands differ."""
_OPPOSITE = {"greater": "less_equal", "greater_equal": "less", "less": "greater_equal", "less_equal": "greater"}
ANYTHING = "anything"  # unknown, so it may equal any other origin


@dataclass(frozen=True, slots=True)
class Doubt:
    """An array and its copy, where NumPy may return a view: their origins, and the time of the copy."""

    array: frozenset[Hashable]
    copied: frozenset[Hashable]
    born: int


@dataclass(frozen=True, slots=True)
class Along:
    """The position of an axis of a view along an axis of another array: its start, if known, and its step."""

    base: Value
    axis: int
    start: int | None
    step: int


def may_meet(first: frozenset[Hashable], second: frozenset[Hashable]) -> bool:
    """Whether memory of these origins may overlap."""
    return bool(first & second) or ANYTHING in first or ANYTHING in second


class Shapes(Builder):
    """Writes operations on arrays, and records sizes and origins."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[Value, tuple[Key, ...]] = {}
        self.size_keys: dict[Value, Key] = {}
        self.asked: dict[Key, int] = {}
        """Sizes, in the order of their first use."""
        self.not_one: set[Key] = set()
        self.naturals: set[Value] = set()
        """Integers that are never negative."""
        self.lengths_of_arrays: set[Value] = set()
        """Integers that do not exceed the lengths of existing arrays, and values computed from these."""
        self.compared: dict[Value, Apply] = {}
        """Comparisons by order."""
        self.bases: dict[Value, tuple[Value, Any]] = {}
        """The array and the part of it that a view refers to."""
        self.parts: dict[Value, tuple[Value, tuple[Item, ...]]] = {}
        self.origins: dict[Value, frozenset[Hashable]] = {}
        self.given: set[Value] = set()
        """Arguments of the function. Those that are written do not share memory with others."""
        self.strided: frozenset[Hashable] = frozenset()
        """The origins of arrays that have non-contiguous views."""
        self.born: dict[Value, int] = {}
        self.new: set[Value] = set()
        """Arrays with memory of their own, by their first reference."""
        self.apart: set[frozenset[Value]] = set()
        self.contiguous: set[Value] = set()
        """Arrays that are contiguous in NumPy too."""
        self.computed: set[Value] = set()
        """Arrays computed element by element: contiguous here, and in NumPy like their operands."""
        self.made_here = 0
        """The number of arrays that the current statement has created."""
        self.varying: set[Hashable] = set()
        """The facts that a loop does not preserve: the shape of an array, or that two arrays are distinct."""
        self.come_to: dict[Hashable, frozenset[Hashable]] = {}
        self.counters: dict[Value, tuple[Value, Value, Value]] = {}
        """The counters of `for` loops, with their bounds."""
        self.pythons: set[Value] = set()
        """Numbers that are known to be Python's, not NumPy's."""
        self._births = itertools.count(1)

    @property
    def same(self) -> Mapping[Key, Key]:
        """Equalities of sizes that the program has checked on the current path.

        Other checked facts are keys too: `("natural", v)`, `("fits", ...)`.
        """
        raise NotImplementedError

    @same.setter
    def same(self, same: Mapping[Key, Key]) -> None:
        raise NotImplementedError

    @property
    def path(self) -> tuple[int, ...]:
        """The calls and unrolled iterations that lead to the current place."""
        raise NotImplementedError

    # -- sizes -------------------------------------------------------------------------------------------------------

    def keys(self, array: Value) -> tuple[Key, ...]:
        """The key of the length of each axis."""
        known = self.sizes.get(array)
        found = known if known is not None else tuple(("d", array, axis) for axis in range(array.array.rank))
        return tuple(self.canonical(k) for k in found)

    def stretches(self, array: Value, axes: tuple[int, ...]) -> None:
        """Which axes of an array have length one. The others do not."""
        rank = array.array.rank
        self.sizes[array] = tuple(ONE if axis in axes else ("d", array, axis) for axis in range(rank))
        self.not_one |= {("d", array, axis) for axis in range(rank) if axis not in axes}

    def canonical(self, key: Key) -> Key:
        """The representative of all keys that are known to be equal."""
        seen: list[Key] = []
        while key not in seen:
            seen.append(key)
            if key in self.same:
                key = self.same[key]
            elif key[0] in ("-", "+", "s"):
                key = (key[0], self.canonical(key[1]), *key[2:])  # type: ignore[arg-type]
        return min(seen[seen.index(key) :], key=repr)  # a cycle of equalities must always give the same key

    def size_key(self, size: Value) -> Key:
        known = self.constants.get(size)
        if known is not None:
            return ("n", int(known))
        if size in self.size_keys:
            return self.canonical(self.size_keys[size])
        if size in self.offsets:
            base, amount = self.offsets[size]
            return self.canonical(_shifted(self.size_key(base), amount))
        return self.canonical(("v", size))

    def equal_from_here(self, a: Key, b: Key) -> None:
        """Record that the program has checked the equality of two sizes."""
        a, b = self.canonical(a), self.canonical(b)
        if a == b:
            return
        asked_first = self.asked.get(b, _NEVER) < self.asked.get(a, _NEVER)  # loops have already used this one
        if b[0] == "n" or _inside(b, a) or (asked_first and a[0] != "n" and not _inside(a, b)):
            a, b = b, a
        self.same = {**self.same, b: a}

    def add(self, operation: Operation) -> None:
        super().add(operation)
        if isinstance(operation, Dim):
            self.a_length(operation.out)

    def note(self, operation: Apply) -> None:
        super().note(operation)
        if operation.primitive in _ORDERS:
            self.compared[operation.out] = operation
        elif operation.primitive == "logical_not" and operation.args[0] in self.compared:
            order = self.compared[operation.args[0]]
            self.compared[operation.out] = replace(order, primitive=_OPPOSITE[order.primitive])
        if operation.out.type == INT:
            if self.gives_natural(operation):
                self.naturals.add(operation.out)
            args = operation.args[1:] if operation.primitive == "where" else operation.args
            if all(a in self.lengths_of_arrays or a in self.constants for a in args):
                self.lengths_of_arrays.add(operation.out)

    def folded(self, primitive: str, args: tuple[Value, ...], type_: Scalar) -> Value | None:
        found = super().folded(primitive, args, type_)
        is_known = found is None and primitive in ("less", "greater_equal") and self.constants.get(args[1]) == 0
        return self.const(primitive != "less") if is_known and self.is_natural(args[0]) else found

    def gives_natural(self, operation: Apply) -> bool:
        known = [self.is_natural(a) for a in operation.args]
        match operation.primitive:
            case "range_length" | "square" | "absolute":
                return True
            case "maximum":
                return any(known)
            case "where":
                _, *chosen = operation.args
                order = self.compared.get(operation.args[0])
                is_maximum = order is not None and order.primitive == "greater" and self.are_same(order.args, chosen)
                return any(known[1:]) if is_maximum else all(known[1:])
        return operation.primitive in _OF_NATURALS and all(known)

    def are_same(self, values: Sequence[Value], others: Sequence[Value]) -> bool:
        """Whether two integers are known to be equal."""
        pairs = zip(values, others, strict=True)
        return all(a is b or (a in self.constants and self.constants[a] == self.constants.get(b)) for a, b in pairs)

    def is_natural(self, value: Value) -> bool:
        """Whether an integer is known to be nonnegative on the current path."""
        known = self.constants.get(value)
        if known is not None:
            return bool(known >= 0)
        if value in self.naturals or ("natural", value) in self.same:
            return True
        base, amount = self.offsets.get(value, (value, 0))
        bounds = self.counters.get(base)
        if bounds is None:
            return False
        start, step = self.constants.get(bounds[0]), self.constants.get(bounds[2])
        return start is not None and step is not None and step > 0 and bool(start + amount >= 0)

    def with_order(self, condition: Value, holds: bool) -> Mapping[Key, Key]:
        """The facts that follow from the outcome of a comparison: the larger operand may be nonnegative."""
        order = self.compared.get(condition)
        if order is None or any(a.type != INT for a in order.args):
            return self.same
        first_is_larger, differ = _ORDERS[order.primitive] if holds else _ORDERS[_OPPOSITE[order.primitive]]
        larger, smaller = order.args if first_is_larger else order.args[::-1]
        if not self.is_natural(smaller) and not (differ and self.constants.get(smaller) == -1):
            return self.same
        return {**self.same, ("natural", larger): ONE}

    def a_length(self, value: Value) -> Value:
        """Create an integer that is a length or a number of elements."""
        self.naturals.add(value)
        self.lengths_of_arrays.add(value)
        return value

    def dim(self, array: Value, axis: int) -> Value:
        key: Any = self.keys(array)[axis]
        if key[0] == "n":
            return self.const(key[1])
        if key[0] == "v":
            size: Value = key[1]
            return size
        if key[0] == "d":
            array, axis = key[1], key[2]
        self.asked.setdefault(key, len(self.asked))
        out = super().dim(array, axis)
        self.size_keys[out] = key
        self.pythons.add(out)
        return out

    # -- memory ------------------------------------------------------------------------------------------------------

    def register(self, array: Value) -> Value:
        """Record the creation of a reference."""
        self.born[array] = next(self._births)
        return array

    def made(self, array: Value, sizes: tuple[Key, ...]) -> Value:
        """Create an array with memory of its own. Its origin is the place in the program."""
        self.sizes[array] = sizes
        self.made_here += 1
        self.origins[array] = frozenset((("made", self.span, self.path, self.made_here),))
        self.new.add(array)
        self.contiguous.add(array)
        return self.register(array)

    def laid_out_like(self, array: Value, sources: Iterable[Value]) -> Value:
        """Create an array with the memory layout of its operands in NumPy: they may be transposed."""
        if array.array.rank > 1 and any(s.array.rank > 1 and s not in self.contiguous for s in sources):
            self.contiguous.discard(array)
        return array

    def base(self, array: Value) -> Value:
        while array in self.bases:
            array = self.bases[array][0]
        return array

    def origins_of(self, array: Value) -> frozenset[Hashable]:
        base = self.base(array)
        return self.origins.get(base, frozenset((base if base in self.given else ANYTHING,)))

    def disjoint(self, a: Value, b: Value) -> bool:
        """Whether two references cannot share memory."""
        a, b = self.base(a), self.base(b)
        if a is b:
            return False
        if frozenset((a, b)) in self.apart:
            return True
        for new, other in ((a, b), (b, a)):
            if new in self.new and (other in self.given or self.born.get(other, _NEVER) < self.born[new]):
                return True
        return not may_meet(self.origins_of(a), self.origins_of(b))

    def same_part(self, a: Value, b: Value) -> bool:
        """Whether two references have the same elements at the same indices."""
        return a is b or (a in self.bases and self.place(a) == self.place(b) and self.place(a)[1] is not None)

    def place(self, a: Value) -> tuple[Value, Any]:
        if a not in self.bases:
            return a, ()
        base, part = self.bases[a]
        root, parts = self.place(base)
        return root, None if part is None or parts is None else (*parts, part)

    def copied_in_order(self, source: Value, target: Value) -> bool:
        """Whether NumPy's copy along one axis, element by element, reads no element that it has written."""
        if ONE in (*self.keys(source), *self.keys(target)) or self.different_rows(source, target):
            return True
        here, there = self.axis_in_base(target, 0), self.axis_in_base(source, 0)
        if here is None or there is None:
            return False
        if here.base is not there.base:
            origins = self.origins_of(source) | self.origins_of(target)
            gaps = bool(self.strided) and may_meet(origins, self.strided)
            return not gaps and here.step == there.step
        if here.axis != there.axis:
            return False
        if here.step == there.step or here.step * there.step < 0:  # NumPy moves the memory, or copies first
            return True
        if here.start is None or there.start is None or here.step < 0:
            return False
        return there.step > here.step if there.start >= here.start else there.step < here.step

    def different_rows(self, a: Value, b: Value) -> bool:
        """Whether two parts of an array have different indices along some axis, as far as constants tell."""
        (base, first), (other, second) = (self.bases.get(x, (x, None)) for x in (a, b))
        if base is not other or not first or not second or "transposed" in (first[0], second[0]):
            return False
        pairs = zip(*([k for k in part if k[0] != "new"] for part in (first, second)), strict=False)
        found = [(p[1], q[1]) for p, q in pairs if p[0] == q[0] == "i"]
        return any(isinstance(p, int) and isinstance(q, int) and p != q and (p < 0) == (q < 0) for p, q in found)

    def all_or_nothing(self, a: Value, b: Value) -> bool:
        """Whether two parts of an array are either identical or disjoint."""
        (base, first), (other, second) = (self.bases.get(x, (x, None)) for x in (a, b))
        if base is not other or not first or not second or "transposed" in (first[0], second[0]):
            return False
        parts = [[k for k in part if k[0] != "new"] for part in (first, second)]
        pairs = list(zip(*parts, strict=False))
        if self.different_rows(a, b) or any(_apart(p, q) for p, q in pairs):
            return True
        whole = len(first) == len(second) == len(pairs)
        return whole and all(p == q or p[0] == q[0] == "i" for p, q in pairs)

    def reads_ahead(self, source: Value, target: Value) -> bool:
        """Whether each element is read before it is written, if elements are read in order."""
        if self.keys(source) != self.keys(target):  # broadcasting reads an element several times
            return False
        axes = range(source.array.rank)
        pairs = [(self.axis_in_base(source, k), self.axis_in_base(target, k)) for k in axes]
        starts: list[tuple[int, int]] = []
        for there, here in pairs:
            if there is None or here is None or there.start is None or here.start is None or here.step < 1:
                return False
            if (there.base, there.axis, there.step) != (here.base, here.axis, here.step):
                return False
            starts.append((there.start, here.start))
        return [there for there, _ in starts] >= [here for _, here in starts]

    def axis_in_base(self, array: Value, axis: int) -> Along | None:
        """The position of an axis of a view in its base array, if it is known."""
        base, part = self.bases.get(array, (array, None))
        if part is None:  # it is not a view, or it has another shape
            return Along(array, axis, 0, 1)
        if part and part[0] == "transposed":
            return self.axis_in_base(base, part[1][axis])
        if part and part[0] == "part":  # real or imaginary parts have the places of the numbers
            return self.axis_in_base(base, axis)
        kept: list[tuple[int, Any, Any] | None] = []
        passed = 0
        for key in part:
            if key[0] == "s":
                kept.append((passed, key[1] or 0, 1 if key[3] is None else key[3]))
            elif key[0] == "new":
                kept.append(None)
            passed += key[0] != "new"
        kept += [(k, 0, 1) for k in range(passed, base.array.rank)]
        found = kept[axis]
        if found is None or not isinstance(found[2], int):
            return None
        outer = self.axis_in_base(base, found[0])
        if outer is None:
            return None
        known = isinstance(found[1], int) and found[1] >= 0 and found[2] > 0 and outer.start is not None
        start = outer.start + outer.step * found[1] if known and outer.start is not None else None
        return Along(outer.base, outer.axis, start, outer.step * found[2])

    def joins(self, out: Value, a: Value, b: Value) -> None:
        """The facts about a reference that is one of two."""
        if not isinstance(out.type, Array):
            return
        first, second = self.keys(a), self.keys(b)
        if first == second:
            self.sizes[out] = first
        self.origins[out] = self.origins_of(a) | self.origins_of(b)

    def assume(
        self, place: Hashable, before: dict[Hashable, Value], carried: dict[Hashable, Value]
    ) -> dict[Hashable, Value]:
        """Assume that arrays keep their shapes, and that distinct arrays stay distinct, in all iterations."""
        for name, array in carried.items():
            first = before.get(name)
            if first is None:
                self.origins[array] = frozenset((ANYTHING,))
                continue
            if (place, name) not in self.varying and first.type == array.type:
                self.sizes[array] = self.keys(first)
            self.origins[array] = self.origins_of(first) | self.come_to.get((place, name), frozenset())
        for (x, a), (y, b) in itertools.combinations(carried.items(), 2):
            stay = x in before and y in before and (place, x, y) not in self.varying
            if stay and self.disjoint(before[x], before[y]):
                self.apart.add(frozenset((a, b)))
        return carried

    def learn(self, place: Hashable, carried: dict[Hashable, Value], after: dict[Hashable, Value]) -> bool:
        """Compare the assumptions with the iteration. Returns true if the loop must be read again."""
        wrong: set[Hashable] = set()
        changed = False
        for name, array in carried.items():
            last = after.get(name)
            if last is None or last.type != array.type or self.keys(last) != self.keys(array):
                wrong.add((place, name))
            known = self.origins_of(array)
            new = frozenset() if last is None or ANYTHING in known else self.origins_of(last) - known
            if new:
                self.come_to[place, name] = self.come_to.get((place, name), frozenset()) | new
                changed = True
        for (x, a), (y, b) in itertools.combinations(carried.items(), 2):
            if frozenset((a, b)) in self.apart:
                last_a, last_b = after.get(x), after.get(y)
                if last_a is None or last_b is None or not self.disjoint(last_a, last_b):
                    wrong.add((place, x, y))
        changed = changed or not wrong <= self.varying
        self.varying |= wrong
        return changed

    # -- operations --------------------------------------------------------------------------------------------------

    def alloc(
        self, dtype: str, shape: tuple[Value, ...], fill: Value | None, name: str = "", like: Value | None = None
    ) -> Value:
        keys = tuple(self.size_key(s) for s in shape)
        return self.made(super().alloc(dtype, shape, fill, name, like), keys)

    def copy(self, array: Value, name: str = "") -> Value:
        out = Value(array.type, name)
        self.add(Copy(out, array, span=self.span))
        return self.made(out, self.keys(array))

    def view(self, array: Value, items: tuple[Item, ...], name: str = "") -> Value:
        out = super().view(array, items, name)
        self.bases[out] = (array, tuple(self.item_key(i) for i in items))
        if _leaves_gaps(items, array.array.rank):
            self.strided |= self.origins_of(array)
        self.parts[out] = (array, items)
        self.sizes[out] = self.view_sizes(array, items)
        if array in self.contiguous and _keeps_contiguous(items, array.array.rank):
            self.contiguous.add(out)
        return self.register(out)

    def transposed(self, array: Value, axes: tuple[int, ...]) -> Value:
        out = Value(array.type, array.name)
        self.add(Transpose(out, array, axes, span=self.span))
        self.bases[out] = (array, ("transposed", axes))
        self.strided |= self.origins_of(array)
        keys = self.keys(array)
        self.sizes[out] = tuple(keys[a] for a in axes)
        return self.register(out)

    def reshaped(self, array: Value, shape: tuple[Value, ...]) -> Value:
        """The same memory in another shape. The array is contiguous."""
        out = Value(Array(array.array.dtype, len(shape)), array.name)
        self.add(Reshape(out, array, shape, span=self.span))
        self.bases[out] = (array, None)
        self.sizes[out] = tuple(self.size_key(s) for s in shape)
        self.contiguous.add(out)
        return self.register(out)

    def part(self, array: Value, part: str) -> Value:
        """The real or imaginary parts of an array."""
        out = Value(Array(real_of(Scalar(array.array.dtype)).dtype, array.array.rank), array.name)
        self.add(Part(out, array, part, span=self.span))
        self.bases[out] = (array, ("part", part))
        self.strided |= self.origins_of(array)
        self.sizes[out] = self.keys(array)
        return self.register(out)

    def item_key(self, item: Item) -> Any:
        match item:
            case Index(value=value):
                return ("i", self.known(value))
            case Slice():
                return ("s", *(self.known(p) for p in (item.start, item.stop, item.step)))
        return ("new",)

    def known(self, value: Value | None) -> Any:
        """The number if it is known, or a value at a fixed distance from it."""
        if value is None:
            return None
        if value in self.constants:
            return self.constants[value]
        if value in self.offsets:
            base, amount = self.offsets[value]
            return (self.known(base), amount)
        return self.size_keys.get(value, value)

    def view_sizes(self, array: Value, items: tuple[Item, ...]) -> tuple[Key, ...]:
        keys = list(self.keys(array))
        found: list[Key] = []
        for item in items:
            if isinstance(item, NewAxis):
                found.append(ONE)
                continue
            key = keys.pop(0)
            if isinstance(item, Slice):
                found.append(self.slice_size(key, item))
        return (*found, *keys)

    def slice_size(self, key: Key, item: Slice) -> Key:
        start, stop, step = (self.known(p) for p in (item.start, item.stop, item.step))
        plain = all(p is None or isinstance(p, int) for p in (start, stop, step))
        if plain and key[0] == "n":
            return ("n", len(range(*slice(start, stop, step).indices(key[1]))))  # type: ignore[arg-type]
        if step == -1 and start is None and stop is None:
            return key
        if plain and step in (None, 1) and (start is None or start >= 0) and (stop is None or stop < 0):
            return _shifted(key, -(start or 0) + (stop or 0))
        return ("s", key, start, stop, step)


def _inside(a: Key, b: Key) -> bool:
    return b[0] in ("-", "+", "s") and (b[1] == a or _inside(a, b[1]))  # type: ignore[arg-type]


def _apart(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two slices of an axis are disjoint, as far as their ends tell."""
    if a[0] != "s" or b[0] != "s":
        return False
    (_, start, stop, step), (_, first, end, other) = a, b
    if step == other and isinstance(step, int) and step > 1:
        counted = all(isinstance(x, int | None) and (x or 0) >= 0 for x in (start, first))
        return counted and ((start or 0) - (first or 0)) % step != 0
    if step not in (None, 1) or other not in (None, 1):
        return False
    return (stop is not None and stop == first) or (end is not None and end == start)


def _shifted(key: Key, amount: int) -> Key:
    """A size shifted by a constant. Lengths of arrays are not negative."""
    if amount == 0:
        return key
    if key[0] == "n":
        return ("n", max(key[1] + amount, 0))  # type: ignore[operator]
    if key[0] == "-" and amount < 0:
        return ("-", key[1], key[2] - amount)  # type: ignore[operator]
    return ("-", key, -amount) if amount < 0 else ("+", key, amount)


def _leaves_gaps(items: tuple[Item, ...], rank: int) -> bool:
    """Whether adjacent elements of a part may not be adjacent in the array."""
    steps = any(isinstance(i, Slice) and i.step is not None for i in items)
    speaking = [i for i in items if not isinstance(i, NewAxis)]
    return steps or (len(speaking) == rank and isinstance(speaking[-1], Index))


def _keeps_contiguous(items: tuple[Item, ...], rank: int) -> bool:
    """Whether a part of a contiguous array is contiguous: leading indices, one range, and full axes."""
    speaking = [i for i in items if not isinstance(i, NewAxis)]
    rest = list(speaking)
    while rest and isinstance(rest[0], Index):
        rest.pop(0)
    if rest and isinstance(rest[0], Slice) and rest[0].step is None:
        rest.pop(0)
    return all(isinstance(i, Slice) and not i.parts() for i in rest)
