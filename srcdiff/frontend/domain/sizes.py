"""Facts about the sizes of arrays during the interpretation.

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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Dim, Item, NewAxis, Operation, Slice, Value
from srcdiff.ir.types import INT, Scalar

Key = tuple[Hashable, ...]
ONE: Key = ("n", 1)
NEVER = 10**9
_OF_NATURALS = ("add", "multiply", "floor_divide", "remainder", "minimum", "right_shift", "bitwise_and")
"""Functions whose results are not negative if their arguments are not."""
_ORDERS = {"greater": (True, True), "greater_equal": (True, False), "less": (False, True), "less_equal": (False, False)}
"""For each comparison, whether the first operand is the larger one, and whether the operands differ."""
_OPPOSITE = {"greater": "less_equal", "greater_equal": "less", "less": "greater_equal", "less_equal": "greater"}


class Sizes(Builder):
    """Writes operations, and records the sizes of arrays and facts about integers."""

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
        self.counters: dict[Value, tuple[Value, Value, Value]] = {}
        """The counters of `for` loops, with their bounds."""
        self.pythons: set[Value] = set()
        """Numbers that are known to be Python's, not NumPy's."""
        self.born: dict[Value, int] = {}
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

    def keys(self, array: Value) -> tuple[Key, ...]:
        """The key of the length of each axis."""
        return tuple(self.canonical(k) for k in self.own_keys(array))

    def own_keys(self, array: Value) -> tuple[Key, ...]:
        """The same, without the equalities that the program has checked."""
        known = self.sizes.get(array)
        return known if known is not None else tuple(("d", array, axis) for axis in range(array.array.rank))

    def stretches(self, array: Value, axes: tuple[int, ...]) -> None:
        """Which axes of an array have length one. The others do not."""
        rank = array.array.rank
        self.sizes[array] = tuple(ONE if axis in axes else ("d", array, axis) for axis in range(rank))
        self.not_one |= {("d", array, axis) for axis in range(rank) if axis not in axes}

    def canonical(self, key: Key, same: Mapping[Key, Key] | None = None) -> Key:
        """The representative of all keys that are known to be equal, on the current path or by these equalities."""
        same = self.same if same is None else same
        seen: list[Key] = []
        while key not in seen:
            seen.append(key)
            if key in same:
                key = same[key]
            elif key[0] in ("-", "+", "s"):
                key = (key[0], self.canonical(key[1], same), *key[2:])  # type: ignore[arg-type]
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
        asked_first = self.asked.get(b, NEVER) < self.asked.get(a, NEVER)  # loops have already used this one
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

    def register(self, array: Value) -> Value:
        """Record the creation of a reference."""
        self.born[array] = next(self._births)
        return array

    def base(self, array: Value) -> Value:
        while array in self.bases:
            array = self.bases[array][0]
        return array

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


def _shifted(key: Key, amount: int) -> Key:
    """A size shifted by a constant. Lengths of arrays are not negative."""
    if amount == 0:
        return key
    if key[0] == "n":
        return ("n", max(key[1] + amount, 0))  # type: ignore[operator]
    if key[0] == "-" and amount < 0:
        return ("-", key[1], key[2] - amount)  # type: ignore[operator]
    return ("-", key, -amount) if amount < 0 else ("+", key, amount)
