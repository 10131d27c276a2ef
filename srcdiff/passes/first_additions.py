"""The first addition to an element of a new array of zeros is an assignment, for elements with constant indices.

x_bar = np.zeros_like(x)                     x_bar = np.zeros_like(x)
x_bar[1] += x[0]                   =>        x_bar[1] = x[0]
x_bar[0] += x[1]                             x_bar[0] = x[1]

The elements whose indices the program does not mention are still zero. If there are none of these, nothing is cleared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from srcdiff.analyses.first_touches import Place, assigns, first_touches
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.nodes import Alloc, Function, Operation, Store, changed
from srcdiff.ir.types import element_type


def assign_first(function: Function) -> Function:
    """The function with assignments in place of these additions."""
    structure = structure_of(function)
    zeros = [o for o in function.body.operations if isinstance(o, Alloc) and _is_of_zeros(o, structure)]
    if not zeros:
        return function
    instead: dict[Operation, Operation] = {}
    touches = first_touches(function)
    for made in zeros:
        first = touches[made.out]
        for access in first.values():
            if isinstance(access, Store) and access.adds and access.value.type == element_type(made.out.array):
                instead[access] = replace(access, adds=False)
        assigned = [place for place, access in first.items() if assigns(instead.get(access, access))]
        if _are_all(assigned, [structure.constants.get(length) for length in made.shape]):
            instead[made] = replace(made, fill=None)
    if not instead:
        return function
    operations = [instead.get(o, o) for o in function.body.operations]
    return changed(function, body=changed(function.body, operations=tuple(operations)))


def _is_of_zeros(made: Alloc, structure: Structure) -> bool:
    return made.fill is not None and structure.constants.get(made.fill) == 0.0 and not made.grows


def _are_all(places: Collection[Place], lengths: Sequence[object]) -> bool:
    """Whether these are all elements of an array, whose lengths are constants."""
    known = [n for n in lengths if isinstance(n, int) and n >= 0]
    inside = [p for p in places if all(k < n for k, n in zip(p, known, strict=False))]
    return bool(lengths) and len(known) == len(lengths) and math.prod(known) == len(inside)
