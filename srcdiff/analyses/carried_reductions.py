"""Reductions: what the iterations of a loop do with a value that they carry, if it is one operation in any order.

total += x[i]        sum            largest = max(largest, x[i])       maximum
p *= x[i]            product        least = min(least, x[i])           minimum
"""

from __future__ import annotations

from collections import Counter

from srcdiff.analyses.dependence import Dependence
from srcdiff.ir.nodes import Apply, If, Loop, Operation, Value, walk

SUM, PRODUCT, MAXIMUM, MINIMUM = "sum", "product", "maximum", "minimum"
_STEPS = {
    SUM: {"add": 2, "subtract": 1},
    PRODUCT: {"multiply": 2, "divide": 1},
    MAXIMUM: {"maximum": 2, "fmax": 2},
    MINIMUM: {"minimum": 2, "fmin": 2},
}
"""By reduction, its primitives: for each, how many of its arguments may be the value so far."""
_LARGER = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}


def reduction_of(dependence: Dependence, loop: Loop, k: int) -> str | None:
    """The reduction that a parameter of a loop is; None if an iteration uses the value so far for anything else."""
    uses = Counter(v for o in walk(loop.body) for v in (*o.uses(), *(y for b in o.blocks() for y in b.yields)))
    uses.update(loop.body.yields)
    for kind in _STEPS:
        found = _Chain(dependence, kind).uses(loop.params[k], loop.body.yields[k])
        if found is None:
            continue
        found[loop.body.yields[k]] += 1
        if all(uses[value] == count for value, count in found.items()):
            return kind
    return None


class _Chain:
    """The way from a value to another one by the steps of one reduction."""

    def __init__(self, dependence: Dependence, kind: str) -> None:
        self.dependence, self.kind = dependence, kind
        self.seen: set[Value] = set()

    def uses(self, start: Value, end: Value) -> Counter[Value] | None:
        """How often the values on the way are used on it; None if there is no way."""
        if end is start:
            return Counter()
        if end in self.seen:
            return None
        self.seen.add(end)
        total: Counter[Value] = Counter()
        operation = self.dependence.definition.get(end)
        match operation:
            case Apply(primitive=name) if name in _STEPS[self.kind]:
                return self.through(start, operation.args[: _STEPS[self.kind][name]], 1)
            case Apply(primitive="where"):
                if self.is_larger_or_smaller(operation):
                    found = self.through(start, operation.args[1:], 2)
                    return None if found is None else found + Counter([operation.args[0]])
                return None
            case Loop() if end in operation.outs:
                k = operation.outs.index(end)
                if reduction_of(self.dependence, operation, k) != self.kind:
                    return None
                return self.through(start, operation.inits[k : k + 1], 1)
            case If() if end in operation.outs:
                k = operation.outs.index(end)
                for value in (operation.then.yields[k], operation.orelse.yields[k]):
                    way = self.through(start, (value,), 1)
                    if way is None:
                        return None
                    total += way
                return total
        return None

    def through(self, start: Value, values: tuple[Value, ...], times: int) -> Counter[Value] | None:
        """The way through one of these values, which the next step uses so often."""
        for value in values:
            found = self.uses(start, value)
            if found is not None:
                return found + Counter({value: times})
        return None

    def is_larger_or_smaller(self, choice: Apply) -> bool:
        """Whether a choice is the larger or the smaller of the two that it compares, as the reduction asks."""
        condition, first, second = choice.args
        compared: Operation | None = self.dependence.definition.get(condition)
        if not isinstance(compared, Apply) or compared.primitive not in _LARGER:
            return False
        if {*compared.args} != {first, second}:
            return False
        larger = _LARGER[compared.primitive] == (compared.args[0] is first)
        return self.kind == (MAXIMUM if larger else MINIMUM)
