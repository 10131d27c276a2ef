"""The decisions of passes, for explanations: fused loops, and recomputed values."""

from __future__ import annotations

from dataclasses import field

from srcdiff.ir.nodes import Function, Loop, Value, walk
from srcdiff.quick_dataclasses import dataclass


@dataclass(slots=True)
class Decisions:
    """Recorded by the passes for `explain`; no pass depends on it."""

    shared: list[tuple[Loop, Loop]] = field(default_factory=list)
    """Loops, and those that have gone into their bodies, in the order in which that happened."""
    repeated: dict[Value, Value] = field(default_factory=dict)
    """Values that the reverse sweep computes, with those of the forward sweep that they are."""

    def joined(self) -> list[list[Loop]]:
        """The loops that have become one, from the first of them on."""
        groups: dict[Value | None, list[Loop]] = {}
        for first, second in self.shared:
            group = groups.pop(first.index, [first])
            groups[first.index] = group + groups.pop(second.index, [second])
        return [group for index, group in groups.items() if index is not None]

    def computed_again(self, final: Function) -> list[Value]:
        """The values of the forward sweep that the finished program computes in both sweeps."""
        left = {v for o in walk(final.body) for v in o.defines()}
        found = [value for copy, value in self.repeated.items() if copy in left and value in left]
        return list(dict.fromkeys(found))
