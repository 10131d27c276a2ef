"""Propagation: values that make all results infinite or NaN whenever they are infinite or NaN themselves.

The terms of a sum and the numerator of a quotient are such values. A denominator is none, because `1.0 / inf` is zero,
nor is what `maximum` or a branch may leave out. If the derivative of an operation is infinite only where the results
are not finite either, an adjoint of zero needs no care: zero times infinity is NaN there, and so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from srcdiff.analyses.signs import Signs
from srcdiff.analyses.structure import Structure
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import Alloc, Apply, Block, Call, If, Loop, Store, Value, walk
from srcdiff.ir.types import Array, is_float


def propagating_values(
    structure: Structure, sites: Callable[[Value], Sites], signs: Signs, results: Sequence[Value]
) -> frozenset[Value]:
    """The values from which an infinity or NaN reaches every result, and every element of results that are arrays.

    An array counts as its stores, which have to be at top level. If it is written in another way, no value is known.
    """
    ends: list[Value] = []
    for result in results:
        if not isinstance(result.type, Array):
            ends.append(result)
            continue
        stored = _stored(structure, sites, result)
        if not stored:
            return frozenset()
        ends += stored
    reaching = [_reaching(end, structure, signs) for end in dict.fromkeys(ends)]
    return frozenset.intersection(*reaching) if reaching else frozenset()


def _stored(structure: Structure, sites: Callable[[Value], Sites], array: Value) -> list[Value]:
    """The values that are stored in a new array, by stores at top level; none if it is written in another way."""
    if not isinstance(structure.definition.get(array), Alloc):
        return []
    stored: list[Value] = []
    for operation in walk(structure.top):
        if isinstance(operation, Call) and any(array in sites(a) for a in operation.written):
            return []
        if isinstance(operation, Store) and array in sites(operation.array):
            if len(sites(operation.array)) > 1 or structure.block_of[operation] is not structure.top:
                return []
            stored.append(operation.value)
    return stored


def _reaching(end: Value, structure: Structure, signs: Signs) -> frozenset[Value]:
    """The values from which an infinity or NaN reaches one value.

    A value counts only where it is used in its own block, which runs whenever the value is computed.
    """
    found: set[Value] = set()
    waiting = [end]
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found.add(value)
        definition = structure.definition.get(value)
        block = structure.home.get(value)
        match definition:
            case Apply():
                waiting += [a for a in _propagated(definition, signs) if structure.home.get(a) is block]
            case If():
                place = definition.outs.index(value)
                for side in (definition.then, definition.orelse):
                    if _is_at_home(side.yields[place], side, structure):
                        waiting.append(side.yields[place])
            case Loop() if value in definition.outs:
                # an iteration's value reaches the result if it reaches what the next iterations carry
                place = definition.outs.index(value)
                following = definition.body.yields[place]
                if not _is_at_home(following, definition.body, structure):
                    continue
                inside = _reaching(following, structure, signs)
                if definition.params[place] in inside:
                    found |= inside
                    if structure.home.get(definition.inits[place]) is block:
                        waiting.append(definition.inits[place])
    return frozenset(found)


def _is_at_home(value: Value, block: Block, structure: Structure) -> bool:
    return structure.home.get(value) is block


def _propagated(operation: Apply, signs: Signs) -> Iterator[Value]:
    for place, argument in enumerate(operation.args):
        if is_float(argument.type) and signs.propagates(operation, place):
            yield argument
