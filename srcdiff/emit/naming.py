"""Variable names: the user's own where possible, and one name for all values of a loop-carried variable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from heapq import heappop, heappush

from srcdiff.emit.layout import Layout
from srcdiff.ir.nodes import Apply, Custom, Function, Grow, If, Load, Loop, Operation, Store, Value, walk
from srcdiff.ir.primitives import RESERVED
from srcdiff.ir.types import INT, Stack, Type
from srcdiff.ir.words import own_name, plain_words, words_for
from srcdiff.quick_dataclasses import dataclass

_GROWN = {(1, 0): "grown", (2, 0): "more_rows", (2, 1): "wider_rows", (3, 0): "more_planes"}


_SIGNED_PRODUCTS = ("multiply", "negative")
_ROLES = {"multiply": ("product",), "divide": ("ratio",), "subtract": ("difference",)}


def what_grows(rank: int, axis: int) -> str:
    """The function that enlarges an array along an axis."""
    return _GROWN.get((rank, axis), "more_parts")


def give_names(function: Function, layout: Layout, reserved: Iterable[str]) -> dict[Value, str]:
    """A name for every value that is assigned. Values whose live ranges do not overlap may share a name."""
    classes = _Classes(layout)
    for operation in walk(function.body):
        if isinstance(operation, Loop):
            for k, param in enumerate(operation.params):
                for other in (operation.outs[k], operation.body.yields[k], operation.inits[k]):
                    classes.merge(param, other)
        elif isinstance(operation, If):
            for k, out in enumerate(operation.outs):
                for other in (operation.then.yields[k], operation.orelse.yields[k]):
                    classes.merge(out, other)
        elif isinstance(operation, Grow):
            classes.merge(operation.array, operation.out)
        elif isinstance(operation, Custom):
            for param, argument in zip(operation.params, operation.args, strict=True):
                classes.merge(argument, param, of_names=True)
    return _Namer(function, layout, classes, {*RESERVED, *reserved}).run()


class _Classes:
    """Sets of values that share a variable."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.parent: dict[Value, Value] = {}
        self.members: dict[Value, list[Value]] = {}

    def find(self, value: Value) -> Value:
        while value in self.parent:
            value = self.parent[value]
        return value

    def of(self, value: Value) -> list[Value]:
        return self.members.setdefault(self.find(value), [self.find(value)])

    def merge(self, a: Value, b: Value, *, of_names: bool = False) -> None:
        """Join the sets of two values if possible. With `of_names`, values with different names may be joined."""
        if a in self.layout.inlined or b in self.layout.inlined or a.type != b.type:
            return
        first, second = self.find(a), self.find(b)
        if first is second:
            return
        if not of_names and len({*map(own_name, (*self.of(first), *self.of(second)))} - {""}) > 1:
            return  # the user has two names for them
        same = (a, b) if of_names else None  # an argument and its parameter are one value
        if any((x, y) != same and self.overlap(x, y) for x in self.of(first) for y in self.of(second)):
            return
        self.members[first] = self.of(first) + self.of(second)
        self.parent[second] = first

    def overlap(self, a: Value, b: Value) -> bool:
        mine, others = self.layout.segments.get(a, ()), self.layout.segments.get(b, ())
        return any(start < other_end and other_start < end for start, end in mine for other_start, other_end in others)


@dataclass(slots=True)
class _Numbers:
    """The suffixes of a name, for values of one type: those that may be free, and when the others become free."""

    open: list[int] = field(default_factory=lambda: [0])
    busy: list[tuple[float, int]] = field(default_factory=list)
    following: int = 1
    """The smallest suffix that has not been tried."""

    def smallest(self) -> int:
        if not self.open:
            heappush(self.open, self.following)
            self.following += 1
        return heappop(self.open)


class _Namer:
    """Names values in the order in which their live ranges start."""

    def __init__(self, function: Function, layout: Layout, classes: _Classes, taken: set[str]) -> None:
        self.function, self.layout, self.classes, self.taken = function, layout, classes, taken
        operations = list(walk(function.body))
        self.definition = {v: o for o in operations if not o.blocks() for v in o.defines()}
        self.counters = {o.index for o in operations if isinstance(o, Loop) and o.index is not None}
        self.indices = {i for o in operations if isinstance(o, Load | Store) for i in o.indices}
        self.users: dict[Value, list[Operation]] = {}
        for operation in operations:
            for value in operation.uses():
                self.users.setdefault(value, []).append(operation)
        self.given = {own_name(v) for o in operations for v in (*o.defines(), *o.inner())}
        self.given |= {own_name(p) for p in function.params}
        self.names: dict[Value, str] = {}
        self.types: dict[str, Type] = {}
        self.lives: dict[str, list[tuple[float, float]]] = {}
        """The live ranges of each name. Ranges that have ended are removed when the name is looked up."""
        self.numbers: dict[tuple[str, Type], _Numbers] = {}

    def run(self) -> dict[Value, str]:
        first = {value: min(segments)[0] for value, segments in self.layout.segments.items()}
        for param in self.function.params:
            self.name_class(param, 0, of_parameter=True)
        for value in sorted(first, key=lambda v: first[v]):
            if value not in self.names:
                self.name_class(value, first[value])
        return self.names

    def name_class(self, value: Value, start: float, of_parameter: bool = False) -> None:
        members = self.classes.of(value)
        hint = value.name if of_parameter and value.name else self.hint(members)
        segments = [segment for m in members for segment in self.layout.segments.get(m, ())]
        name = self.first_free(hint, members[0].type, start, segments)
        if isinstance(value.type, Stack):
            self.taken.add(f"{name}_top")
        self.types.setdefault(name, members[0].type)
        self.lives.setdefault(name, []).extend(segments)
        for member in members:
            self.names[member] = name

    def first_free(self, hint: str, type_: Type, start: float, segments: list[tuple[float, float]]) -> str:
        """The name with the smallest suffix whose live ranges do not overlap with these segments."""
        numbers = self.numbers.setdefault((hint, type_), _Numbers())
        while numbers.busy and numbers.busy[0][0] <= start:
            heappush(numbers.open, heappop(numbers.busy)[1])
        passed: list[int] = []
        while True:
            number = numbers.smallest()
            name = f"{hint}_{number}" if number else hint
            until = self.busy_until(name, type_, start, segments)
            if until > start:
                heappush(numbers.busy, (until, number))
                continue
            passed.append(number)
            if until < start:
                break
        for number in passed:
            heappush(numbers.open, number)
        return name

    def busy_until(self, name: str, type_: Type, start: float, segments: list[tuple[float, float]]) -> float:
        """The earliest time at which the name may become free; -1 if it is free for these segments."""
        if name in self.taken or self.types.get(name, type_) != type_ or not self.top_is_free(name, type_):
            return math.inf
        lives = self.lives.get(name, [])
        if any(end <= start for _, end in lives):
            self.lives[name] = lives = [life for life in lives if life[1] > start]
        around = [end for begin, end in lives if begin < start]
        if around:
            return max(around)
        if any(begin < other_end and other_begin < end for begin, end in lives for other_begin, other_end in segments):
            return start
        return -1

    def hint(self, members: list[Value]) -> str:
        """The name that one of the values has, or a description that fits all of them."""
        given = [own_name(m) for m in members if own_name(m)]
        if given:
            return given[0]
        if not self.counters.isdisjoint(members):
            return self.unused("step", "iteration")
        if members[0] in self.layout.lengths:
            return self.layout.lengths[members[0]]
        described = {words_for(m, self.definition.get) for m in members}
        if len(described) == 1 and "" not in described:
            return described.pop()
        is_index = members[0].type == INT and not self.indices.isdisjoint(members)
        plain = ("index", "position") if is_index else plain_words(members[0])
        return self.unused(*self.role(members), *plain)

    def role(self, members: list[Value]) -> tuple[str, ...]:
        """The role of a value without a name: a factor of products, a difference, the limit of a loop."""
        definition = self.definition.get(members[0])
        if len(members) > 1 or not isinstance(definition, Apply):
            return ()
        if members[0].type == INT:
            return ("limit",) if definition.primitive in ("minimum", "maximum") else ()
        users = self.users.get(members[0], ())
        if definition.primitive in _SIGNED_PRODUCTS and all(self.is_scaled(user, members[0]) for user in users):
            return ("factor",)
        return _ROLES.get(definition.primitive, ())

    @staticmethod
    def is_scaled(user: Operation, value: Value) -> bool:
        """Whether the user multiplies the value by another, or changes its sign."""
        is_product = isinstance(user, Apply) and user.primitive in _SIGNED_PRODUCTS
        return is_product and user.uses().count(value) == 1

    def unused(self, *words: str) -> str:
        """The first of the words that is not a name of the user; if all are, the last one."""
        return next((word for word in words if word not in self.given), words[-1])

    def top_is_free(self, name: str, type_: Type) -> bool:
        """Whether the second variable of a stack, which counts its elements, would be free too."""
        return not isinstance(type_, Stack) or (f"{name}_top" not in self.taken and f"{name}_top" not in self.types)
