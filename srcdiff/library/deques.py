"""`collections.deque`: a list, and the largest length."""

from __future__ import annotations

import collections
from typing import Any

from srcdiff.library.language import is_array


class Deque:
    """The elements, the oldest first. The names of the methods are those of Python's class."""

    elements: Any
    maxlen: Any

    def __len__(self: Any) -> Any:
        return len(self.elements)

    def __contains__(self: Any, x: Any) -> Any:
        return x in self.elements

    def __getitem__(self: Any, index: Any) -> Any:
        return self.elements[index]

    def __setitem__(self: Any, index: Any, x: Any) -> None:
        self.elements[index] = x

    def __delitem__(self: Any, index: Any) -> None:
        self.elements.pop(index)

    def __iter__(self: Any) -> Any:
        return self.elements

    def append(self: Any, x: Any) -> None:
        self.elements.append(x)
        if self.maxlen is not None and len(self.elements) > self.maxlen:
            self.popleft()

    def appendleft(self: Any, x: Any) -> None:
        self.elements.insert(0, x)
        if self.maxlen is not None and len(self.elements) > self.maxlen:
            self.elements.pop()

    def extend(self: Any, items: Any) -> None:
        for x in items:
            self.append(x)

    def extendleft(self: Any, items: Any) -> None:
        for x in items:
            self.appendleft(x)

    def pop(self: Any) -> Any:
        if len(self.elements) == 0:
            raise IndexError("pop from an empty deque")
        return self.elements.pop()

    def popleft(self: Any) -> Any:
        if len(self.elements) == 0:
            raise IndexError("pop from an empty deque")
        first = self.elements[0]
        if is_array(first):
            self.elements = [self.elements[k] for k in range(1, len(self.elements))]
        else:
            self.elements.pop(0)
        return first

    def rotate(self: Any, n: Any = 1) -> None:
        count = len(self.elements)
        if count > 0:
            for _ in range(n % count):
                self.elements.insert(0, self.elements.pop())

    def clear(self: Any) -> None:
        self.elements.clear()

    def reverse(self: Any) -> None:
        self.elements.reverse()

    def insert(self: Any, index: Any, x: Any) -> None:
        if self.maxlen is not None and len(self.elements) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        self.elements.insert(index, x)

    def index(self: Any, x: Any) -> Any:
        return self.elements.index(x)

    def count(self: Any, x: Any) -> Any:
        return self.elements.count(x)

    def copy(self: Any) -> Any:
        return collections.deque(self.elements, self.maxlen)
