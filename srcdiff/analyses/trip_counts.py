"""Bounds of trip counts, and whether memory for that many iterations is acceptable.

A loop that may end early gets memory for all its iterations only if that is small, or if an array of such a size
exists: `for i in range(len(x))`. Otherwise the bound may be far too large: `for i in range(10**13)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from srcdiff.analyses.symbolic_shapes import Lengths
from srcdiff.ir.nodes import Apply, Loop, Operation, Value
from srcdiff.ir.types import Array

FEW = 2**16
"""Iterations, of loops that may end early, for which there is always memory."""


class TripCounts:
    def __init__(self, lengths: Lengths, params: Sequence[Value]) -> None:
        self.lengths, self.params = lengths, params

    def are_taken_anyway(self, loops: Sequence[Loop], before: Sequence[Operation]) -> bool:
        """Whether memory for all iterations is acceptable; `before` are the operations before the loops."""
        known, constant = list[frozenset[Any]](), 1
        for loop in loops:
            limits = frozenset(self.limits(loop))
            numbers = [n for n in limits if isinstance(n, int)]
            if numbers and not loop.counted:
                constant *= max(1, min(numbers))
            elif not numbers:
                known.append(limits)
            if not loop.counted and (constant > FEW or (not numbers and not self.exists(known, before))):
                return False
        return True

    def order(self, loops: Sequence[Loop], before: Sequence[Operation]) -> list[Loop] | None:
        """The loops, starting with the one whose bound is not acceptable; None if there are several."""
        if self.are_taken_anyway(loops, before):
            return list(loops)
        for loop in loops:
            others = [o for o in loops if o is not loop]
            if not loop.counted and self.are_taken_anyway(others, before):
                return [loop, *others]
        return None

    def exists(self, sizes: Sequence[frozenset[Any]], before: Sequence[Operation]) -> bool:
        """Whether an array has axes that are as long as all of these."""
        arrays = [v for v in (*self.params, *(v for o in before for v in o.defines())) if isinstance(v.type, Array)]
        for array in arrays:
            axes = [self.lengths.of(array, axis) for axis in range(array.array.rank)]
            for chosen in itertools.permutations(axes, len(sizes)):
                if all(axis in size for axis, size in zip(chosen, sizes, strict=True)):
                    return True
        return False

    def limits(self, loop: Loop) -> Iterator[Any]:
        """The symbols of upper bounds of the trip count, up to a constant."""
        if loop.bounds is None:
            return
        start, stop, step = (self.lengths.size(b) for b in loop.bounds)
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step:
            yield len(range(start, stop, step))
        elif isinstance(step, int) and step > 0 and (isinstance(start, int) or self.lengths.is_natural(loop.bounds[0])):
            yield from self.at_most(loop.bounds[1])
        elif self.lengths.counts_naturals(loop):
            yield from self.at_most(loop.bounds[0])

    def at_most(self, value: Value) -> Iterator[Any]:
        """The symbols of an integer and of known upper bounds, up to a constant."""
        yield self.lengths.size(value)
        match self.lengths.definition.get(value):
            case Apply(primitive="add" | "subtract" | "floor_divide", args=(first, second)):
                by = self.lengths.size(second)
                if isinstance(by, int) and by > 0:
                    yield from self.at_most(first)
            case Apply(primitive="minimum", args=args):
                for argument in args:
                    yield from self.at_most(argument)
