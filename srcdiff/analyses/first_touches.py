"""First touches: what the program does first with an element of a new array, for elements with constant indices.

The allocations at top level are looked at, and the operations there, in order, also if they name the array by views.
When something may touch any element, such as a loop or a call, the elements that come later are not known anymore.
"""

from __future__ import annotations

from dataclasses import field

from srcdiff.analyses.access_relations import Element, element
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import Alloc, Dim, Function, Load, Operation, Reshape, Store, Transpose, Value, View, walk
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass

Place = tuple[int, ...]


@dataclass(slots=True)
class _Touches:
    found: dict[Place, Load | Store] = field(default_factory=dict)
    is_open: bool = True
    """Whether all elements that were touched so far are known."""


def first_touches(function: Function) -> dict[Value, dict[Place, Load | Store]]:
    """For each array that is allocated at top level, its elements that are known, with their first loads and stores."""
    structure, sites = structure_of(function), points_to(function)
    arrays: dict[Value, _Touches] = {}
    for operation in function.body.operations:
        if arrays:
            _note(operation, arrays, structure, sites)
        if isinstance(operation, Alloc):
            arrays[operation.out] = _Touches()
    return {array: touches.found for array, touches in arrays.items()}


def assigns(access: Operation) -> bool:
    """Whether an element is given a new number, whatever it was before."""
    return isinstance(access, Store) and not access.adds


def _note(operation: Operation, arrays: dict[Value, _Touches], structure: Structure, sites: dict[Value, Sites]) -> None:
    if isinstance(operation, Load | Store) and len(sites.get(operation.array, ())) == 1:
        touched = element(operation.array, operation.indices, structure)
        if touched is not None and touched.array in arrays:
            _touch(arrays[touched.array], operation, touched)
            return
    for inner in (operation, *(o for block in operation.blocks() for o in walk(block))):
        if isinstance(inner, Dim | View | Transpose | Reshape | Alloc):
            continue  # these name the array, and look at no element
        for value in inner.uses():
            if isinstance(value.type, Array):
                for site in sites.get(value, ()):
                    if site in arrays:
                        arrays[site].is_open = False


def _touch(touches: _Touches, access: Load | Store, touched: Element) -> None:
    indices = [*touched.indices, *touched.inner]
    known = [i.constant for i in indices if i is not None and not i.terms and i.constant >= 0]
    if len(known) < len(indices):
        touches.is_open = False
    elif touches.is_open:
        touches.found.setdefault(tuple(known[: len(touched.indices)]), access)
