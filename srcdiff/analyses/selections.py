"""Selections: numbers that the rest of the program may leave out, so that their adjoints may be zero.

A number may be left out if it, or what is computed from it, is stored in memory, of which not all may be read, or is
one of the numbers among which a primitive chooses. The terms of a sum are not left out. Nor is what stands on one side
of a branch: code sinking has put it there, so that the other side does not differentiate it.
"""

from __future__ import annotations

from srcdiff.ir.analysis import analysis
from srcdiff.ir.nodes import Alloc, Apply, Function, Loop, Push, Store, Value, walk
from srcdiff.ir.types import is_inexact

_CHOOSE = frozenset(("maximum", "minimum", "fmax", "fmin", "clip", "heaviside", "where"))


@analysis
def selected_values(function: Function) -> frozenset[Value]:
    operations = list(walk(function.body))
    definitions = {o.out: o for o in operations if isinstance(o, Apply)}
    waiting: list[Value] = []
    for operation in operations:
        match operation:
            case Apply(primitive=primitive, args=args) if primitive in _CHOOSE:
                waiting += args
            case Store(value=value) | Push(value=value):
                waiting.append(value)
            case Alloc(fill=fill) if fill is not None:
                waiting.append(fill)
            case Loop():
                terms = {definitions[y].out for y in operation.body.yields if _is_sum(y, definitions)}
                waiting += [y for y in operation.body.yields if y not in terms]
    found: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if is_inexact(value.type) and value not in found:
            found.add(value)
            if value in definitions:
                waiting += definitions[value].args
    return frozenset(found)


def _is_sum(value: Value, definitions: dict[Value, Apply]) -> bool:
    return value in definitions and definitions[value].primitive in ("add", "subtract")
