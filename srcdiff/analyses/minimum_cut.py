"""The cheapest set of values to store so that all others can be recomputed: a minimum vertex cut."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
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
    """Augment flow along all shortest paths at once, until there is none left (Dinitz 1970)."""

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
            distance = self.distances(begin, end)
            if end not in distance:
                return
            self.fill_shortest(begin, end, distance)

    def distances(self, begin: int, end: int) -> dict[int, int]:
        """How far nodes are from the beginning, up to the end."""
        distance, queue = {begin: 0}, deque([begin])
        while queue and end not in distance:
            a = queue.popleft()
            for b in self.targets[a]:
                if b not in distance and self.residual[a, b] > 1e-9:
                    distance[b] = distance[a] + 1
                    queue.append(b)
        return distance

    def fill_shortest(self, begin: int, end: int, distance: dict[int, int]) -> None:
        """Let as much flow through shortest paths as fits; an edge that leads nowhere is tried once."""
        tried = dict.fromkeys(distance, 0)
        path = [begin]
        while path:
            a = path[-1]
            if a == end:
                path = self.fill(path)
                continue
            targets = self.targets[a]
            while tried[a] < len(targets):
                b = targets[tried[a]]
                if distance.get(b) == distance[a] + 1 and self.residual[a, b] > 1e-9:
                    path.append(b)
                    break
                tried[a] += 1
            else:
                path.pop()
                if path:
                    tried[path[-1]] += 1

    def fill(self, path: list[int]) -> list[int]:
        """Let as much through a path as fits; the path up to where it is full then."""
        steps = list(pairwise(path))
        amount = min(self.residual[s] for s in steps)
        full = len(path)
        for k, (a, b) in reversed(list(enumerate(steps))):
            self.residual[a, b] -= amount
            self.residual[b, a] += amount
            if self.residual[a, b] <= 1e-9:
                full = k + 1
        return path[:full]

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
