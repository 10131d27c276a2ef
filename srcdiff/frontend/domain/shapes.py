"""Facts about the memory of arrays during the interpretation: which arrays cannot share memory, and their layouts."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from typing import Any

from srcdiff.frontend.domain.sizes import NEVER, ONE, Key, Sizes
from srcdiff.ir.nodes import Copy, Index, Item, NewAxis, Part, Reshape, Slice, Transpose, Value
from srcdiff.ir.types import Array, Scalar, real_of
from srcdiff.quick_dataclasses import dataclass

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


class Shapes(Sizes):
    """Writes operations on arrays, and records their memory."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[Value, tuple[Value, tuple[Item, ...]]] = {}
        self.origins: dict[Value, frozenset[Hashable]] = {}
        self.given: set[Value] = set()
        """Arguments of the function. Those that are written do not share memory with others."""
        self.strided: frozenset[Hashable] = frozenset()
        """The origins of arrays that have non-contiguous views."""
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
            if new in self.new and (other in self.given or self.born.get(other, NEVER) < self.born[new]):
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

    def joins(self, out: Value, a: Value, b: Value, sizes: tuple[Key, ...] | None) -> None:
        """The facts about a reference that is one of two, which may have the same sizes."""
        if not isinstance(out.type, Array):
            return
        if sizes is not None:
            self.sizes[out] = sizes
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
