"""Propagation: values that make all results infinite or NaN whenever they are infinite or NaN themselves.

The terms of a sum and the numerator of a quotient are such values. A denominator is none, because `1.0 / inf` is zero,
nor is what `maximum` or a branch may leave out. If the derivative of an operation is infinite only where the results
are not finite either, an adjoint of zero needs no care: zero times infinity is NaN there, and so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

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
    reach = _Reaching(structure, signs)
    reaching = [reach.reaching(end, structure.home.get(end))[0] for end in dict.fromkeys(ends)]
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


class _Reaching:
    """Finds the values from which an infinity or NaN reaches others; what a block yields is looked at once."""

    def __init__(self, structure: Structure, signs: Signs) -> None:
        self.structure, self.signs = structure, signs
        self.known: dict[Value, tuple[frozenset[Value], frozenset[Value]]] = {}
        """By what a block yields, if it is a value of the block."""

    def reaching(self, end: Value, block: Block | None) -> tuple[frozenset[Value], frozenset[Value]]:
        """The values from which an infinity or NaN reaches what a block yields, and those from outside the block.

        From a value of the block, it does so whenever the value is computed; from one outside, if the block runs.
        """
        if self.structure.home.get(end) is not block:
            return frozenset(), frozenset((end,))
        if end not in self.known:
            self.known[end] = self.found(end, block)
        return self.known[end]

    def found(self, end: Value, block: Block | None) -> tuple[frozenset[Value], frozenset[Value]]:
        found: set[Value] = set()
        outside: set[Value] = set()
        waiting = [end]
        while waiting:
            value = waiting.pop()
            if self.structure.home.get(value) is not block:
                outside.add(value)
                continue
            if value in found:
                continue
            found.add(value)
            definition = self.structure.definition.get(value)
            match definition:
                case Apply():
                    waiting += _propagated(definition, self.signs)
                case If():
                    place = definition.outs.index(value)
                    (first, one), (second, other) = (
                        self.reaching(side.yields[place], side) for side in (definition.then, definition.orelse)
                    )
                    found |= first | second
                    waiting += one & other
                case Loop() if value in definition.outs:
                    # an iteration's value reaches the result if it reaches what the next iterations carry
                    place = definition.outs.index(value)
                    inside, _ = self.reaching(definition.body.yields[place], definition.body)
                    if definition.params[place] in inside:
                        found |= inside
                        waiting.append(definition.inits[place])
        return frozenset(found), frozenset(outside)


def harmful_zeros(propagating: Collection[Value], structure: Structure, signs: Signs) -> frozenset[Value]:
    """The values that make a propagating value infinite or NaN where they are zero, such as denominators."""
    found: set[Value] = set()
    for value in propagating:
        operation = structure.definition.get(value)
        if not isinstance(operation, Apply):
            continue
        block = structure.home.get(value)
        for place, argument in enumerate(operation.args):
            if is_float(argument.type) and signs.is_infinite_at_zero(operation, place):
                # the operation runs whenever a number of its own block is computed
                found.update(v for v in (argument, signs.multiple(argument)[0]) if structure.home.get(v) is block)
    return frozenset(found)


def _propagated(operation: Apply, signs: Signs) -> Iterator[Value]:
    for place, argument in enumerate(operation.args):
        if is_float(argument.type) and signs.propagates(operation, place):
            yield argument
