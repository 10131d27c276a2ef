"""Extremes: the largest or the smallest number of a loop, and what the iteration that has it hands on beside it.

for i in range(n):
    v = f(x[i])
    if v > most:
        most, where = v, i

Iterations may be divided into blocks: each block looks for its own extreme from the same start, and the extremes of the
blocks are compared in their order, by the same comparison. The result is that of the loop, if the comparison is one of
these (`new` against the value `so far`), also where numbers are NaN:

                     new is better    equal         new is NaN    so far is NaN    both are NaN
    v > most         yes              no            no            no               no
    NumPy's argmax   yes              no            yes           no               no

With equal numbers, the first iteration stays. Of a comparison that lets the last one win, blocks that have found
nothing look like those that have found a number equal to the start; only the number itself is then the same.
"""

from __future__ import annotations

import math

from srcdiff.analyses.dependence import Dependence
from srcdiff.ir.builder import FOLDABLE
from srcdiff.ir.nodes import Apply, Const, Dim, If, Load, Loop, Operation, Value, walk
from srcdiff.ir.types import Array, is_float
from srcdiff.quick_dataclasses import dataclass

_PURE = (Apply, Const, Load, Dim)
_NUMBERS = ((2, 1), (1, 2), (1, 1))
_NAN = ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan))
"""The new numbers, and those so far."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """Parameters of a loop that one comparison updates."""

    key: int
    """The position of the compared number among the parameters of the loop."""
    slots: tuple[int, ...]
    """The positions of all parameters that change with it."""
    comparison: str
    """The primitive that compares a new number with the best one: `greater` or `less`."""
    takes_nan: bool
    """Whether the first NaN counts as better than all numbers."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """A place where a carried value is replaced by another one."""

    condition: Value
    taken: bool
    """The outcome of the condition if the value changes."""
    new: Value
    so_far: Value


def extreme_of(dependence: Dependence, loop: Loop, k: int) -> Extreme | None:
    """The extreme that a parameter of a loop is the key of."""
    return _Search(dependence, loop).extreme(k)


class _Search:
    def __init__(self, dependence: Dependence, loop: Loop) -> None:
        self.dependence, self.loop = dependence, loop
        self.tainted: set[Value] = set()
        """The values that depend on the decided parameters."""

    def extreme(self, key: int) -> Extreme | None:
        decisions = self.decisions(self.loop, key)
        if not decisions:
            return None
        tables = {self.table(d) for d in decisions}
        kind = next(iter(tables))
        if len(tables) > 1 or kind is None:
            return None
        comparison, takes_nan, first_wins = kind
        conditions = [(d.condition, d.taken) for d in decisions]
        slots, new = [key], [d.new for d in decisions]
        for other in range(len(self.loop.params)):
            if other != key:
                found = self.decisions(self.loop, other)
                if found and [(d.condition, d.taken) for d in found] == conditions:
                    slots.append(other)
                    new += [d.new for d in found]
        if (len(slots) > 1 and not first_wins) or not self.is_closed(slots) or self.tainted.intersection(new):
            return None
        return Extreme(key, tuple(slots), comparison, takes_nan)

    # -- where a value changes -----------------------------------------------------------------------------------------

    def decisions(self, loop: Loop, k: int) -> list[_Decision] | None:
        """The decisions between a parameter and its next value, the last one first; None if it changes otherwise."""
        if isinstance(loop.params[k].type, Array):
            return None
        return self.between(loop.params[k], loop.body.yields[k])

    def between(self, start: Value, end: Value) -> list[_Decision] | None:
        if end is start:
            return []
        operation = self.dependence.definition.get(end)
        match operation:
            case Apply(primitive="where", args=(condition, first, second)):
                return self.either(start, condition, first, second)
            case If() if end in operation.outs:
                j = operation.outs.index(end)
                return self.either(start, operation.condition, operation.then.yields[j], operation.orelse.yields[j])
            case Loop() if end in operation.outs and operation.counted:
                j = operation.outs.index(end)
                inside = self.decisions(operation, j)
                before = self.between(start, operation.inits[j])
                return None if inside is None or before is None else [*inside, *before]
        return None

    def either(self, start: Value, condition: Value, first: Value, second: Value) -> list[_Decision] | None:
        for so_far, new, taken in ((second, first, True), (first, second, False)):
            before = self.between(start, so_far)
            if before is not None and self.between(start, new) is None:
                return [_Decision(condition, taken, new, so_far), *before]
        return None

    # -- the comparison ------------------------------------------------------------------------------------------------

    def table(self, decision: _Decision) -> tuple[str, bool, bool] | None:
        """The primitive, whether NaN counts as better, and whether the first of equal numbers stays."""
        with_nan = is_float(decision.new.type)
        found = []
        for new, so_far in (*_NUMBERS, *(_NAN if with_nan else ())):
            value = self.evaluated(decision.condition, {decision.new: new, decision.so_far: so_far})
            if value is None:
                return None
            found.append(bool(value) == decision.taken)
        larger, smaller, equal, *nan = found
        if larger == smaller or nan not in ([], [False, False, False], [True, False, False]):
            return None
        return "greater" if larger else "less", nan[:1] == [True], not equal

    def evaluated(self, value: Value, known: dict[Value, float]) -> float | None:
        """A comparison of a new number with the best one; None if it has other parts."""
        if value in known:
            return known[value]
        operation = self.dependence.definition.get(value)
        if not isinstance(operation, Apply):
            return None
        args = [self.evaluated(a, known) for a in operation.args]
        numbers = [a for a in args if a is not None]
        if len(numbers) < len(args):
            return None
        match operation.primitive:
            case "logical_and":
                return all(numbers)
            case "logical_or":
                return any(numbers)
            case name if name in FOLDABLE:
                found: float = FOLDABLE[name](*numbers)
                return found
        return None

    # -- other uses ----------------------------------------------------------------------------------------------------

    def is_closed(self, slots: list[int]) -> bool:
        """Whether no other value in the loop depends on these parameters."""
        self.tainted = {self.loop.params[k] for k in slots}
        if not all(self.passes(o) for o in self.loop.body.operations):
            return False
        return all((v in self.tainted) == (k in slots) for k, v in enumerate(self.loop.body.yields))

    def passes(self, operation: Operation) -> bool:
        """Record the values that depend on the parameters. False if an operation with an effect does."""
        used = self.tainted.intersection(operation.uses())
        match operation:
            case Apply():
                if used:
                    self.tainted.add(operation.out)
                return True
            case If():
                inside = [o for b in operation.blocks() for o in walk(b)]
                if used and not all(isinstance(o, _PURE) for o in inside):
                    return False
                if not all(self.passes(o) for b in operation.blocks() for o in b.operations):
                    return False
                for k, out in enumerate(operation.outs):
                    if used or self.tainted.intersection((operation.then.yields[k], operation.orelse.yields[k])):
                        self.tainted.add(out)
                return True
            case Loop():
                carried = [k for k, init in enumerate(operation.inits) if init in self.tainted]
                if used - set(operation.inits):
                    return False
                self.tainted |= {operation.params[k] for k in carried}
                if not all(self.passes(o) for b in operation.blocks() for o in b.operations):
                    return False
                if operation.test is not None and self.tainted.intersection(operation.test.yields):
                    return False
                self.tainted |= {operation.outs[k] for k in carried}
                return all((v in self.tainted) == (k in carried) for k, v in enumerate(operation.body.yields))
        return not used and all(self.passes(o) for b in operation.blocks() for o in b.operations)
