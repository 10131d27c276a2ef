"""Sums over chunks whose result does not depend on who computes which chunk, to the last bit.

The chunks are the leaves of a binary tree that depends on their number only. A node is the sum of its two children:

    level 2:            (0, 1, 2, 3)              (4)
    level 1:      (0, 1)      (2, 3)              (4)
    level 0:     0     1     2     3               4

Nodes may become known in any order. Between workers, only nodes whose sibling is not known are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Vector = np.ndarray[Any, Any]
Node = tuple[int, int]
"""A level and a position: the chunks from `position * 2**level` on, at most `2**level` of them."""


class PairwiseSum:
    """The sum of vectors, one for each chunk.

    >>> total = PairwiseSum(3)
    >>> for k in (2, 0, 1):
    ...     total.add((0, k), np.array([10.0**k]))
    >>> total.result()
    array([111.])
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.known: dict[Node, Vector] = {}
        """The nodes whose parents are not known yet."""

    def add(self, node: Node, vector: Vector) -> None:
        """Add the sum of the chunks of a node, and all sums that are known by it."""
        level, position = node
        while not self._is_root(level):
            sibling = (level, position ^ 1)
            if sibling[1] << level < self.count:  # the last node of a level may have no sibling
                if sibling not in self.known:
                    break
                vector = added(vector, self.known.pop(sibling))
            level, position = level + 1, position >> 1
        self.known[level, position] = vector

    def update(self, nodes: Iterable[tuple[Node, Vector]]) -> None:
        """Add what another worker knows."""
        for node, vector in nodes:
            self.add(node, vector)

    def result(self) -> Vector:
        """The sum of all chunks."""
        ((node, vector),) = self.known.items()
        assert self._is_root(node[0])
        return vector

    def _is_root(self, level: int) -> bool:
        return 1 << level >= self.count


def tree_of(leaves: list[Any], add: Any) -> Any:
    """The same sum of values that are not known yet, from a function that adds two of them."""
    while len(leaves) > 1:
        pairs = [add(a, b) for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = pairs + leaves[2 * len(pairs) :]
    return leaves[0]


def added(a: Vector, b: Vector) -> Vector:
    """The sum of two nodes. IEEE addition gives the same number in both orders."""
    return a + b
