"""The cheapest set of values to keep so that all the others can be had again: a minimum vertex cut."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def minimum_cut(
    nodes: Sequence[Node],
    needs: Mapping[Node, Sequence[Node]],
    sources: Sequence[Node],
    sinks: Sequence[Node],
    costs: Mapping[Node, float],
) -> set[Node]:
    """`needs[v]` are the nodes that v is made from; sources cannot be made. Of equal cuts, the one next to the sinks.

    >>> sorted(minimum_cut("abc", {"b": "a", "c": "b"}, "a", "c", {"a": 1, "b": 2, "c": 2}))
    ['a']
    """
    number = {node: k for k, node in enumerate(nodes)}
    count = 2 * len(nodes) + 2
    begin, end = count - 2, count - 1
    network = _Network(count)
    for node, k in number.items():
        network.edge(2 * k, 2 * k + 1, costs[node])
        for operand in needs.get(node, ()):
            network.edge(2 * number[operand] + 1, 2 * k, math.inf)
    for node in sources:
        network.edge(begin, 2 * number[node], math.inf)
    for node in sinks:
        network.edge(2 * number[node] + 1, end, math.inf)
    network.saturate(begin, end)
    behind = network.reaching(end)
    return {node for node, k in number.items() if 2 * k + 1 in behind and 2 * k not in behind}


class _Network:
    """Flow by shortest augmenting paths (Edmonds and Karp 1972); the graphs here are small."""

    def __init__(self, count: int) -> None:
        self.targets: list[list[int]] = [[] for _ in range(count)]
        self.residual: dict[tuple[int, int], float] = {}

    def edge(self, a: int, b: int, capacity: float) -> None:
        if (a, b) not in self.residual:
            self.targets[a].append(b)
            self.targets[b].append(a)
            self.residual.setdefault((b, a), 0.0)
            self.residual[a, b] = 0.0
        self.residual[a, b] += capacity

    def saturate(self, begin: int, end: int) -> None:
        while True:
            came_from = {begin: begin}
            queue = deque([begin])
            while queue and end not in came_from:
                a = queue.popleft()
                for b in self.targets[a]:
                    if b not in came_from and self.residual[a, b] > 1e-9:
                        came_from[b] = a
                        queue.append(b)
            if end not in came_from:
                return
            path = [end]
            while path[-1] != begin:
                path.append(came_from[path[-1]])
            steps = list(zip(path[1:], path[:-1], strict=True))
            amount = min(self.residual[s] for s in steps)
            for a, b in steps:
                self.residual[a, b] -= amount
                self.residual[b, a] += amount

    def reaching(self, end: int) -> set[int]:
        """The nodes from which the end can still be reached."""
        found, queue = {end}, deque([end])
        while queue:
            b = queue.popleft()
            for a in self.targets[b]:
                if a not in found and self.residual[a, b] > 1e-9:
                    found.add(a)
                    queue.append(a)
        return found
