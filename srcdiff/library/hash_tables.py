"""Dictionaries whose keys are known at run time: hash tables with open addressing.

    order       the keys, in the order in which they came
    contents    what is under each
    slots       a power of two of places, at least twice as many as keys: a position in `order`, or -1

A key is an integer, or a tuple of integers. The positions have no derivatives, and what is under the keys is a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import is_array


class HashTable:
    """The keys and values, and the table of positions."""

    order: Any
    contents: Any
    places: Any
    """The positions of the values in the contents, if these are arrays. New arrays are appended."""
    slots: Any
    factory: Any
    """The function that makes the value of a missing key, or `None`."""
    told: Any
    """The type of the values, if it is declared to Numba."""

    def __len__(self: Any) -> Any:
        return len(self.order)

    def __contains__(self: Any, key: Any) -> Any:
        return self.position(key) >= 0

    def __getitem__(self: Any, key: Any) -> Any:
        position = self.position(key)
        if position < 0:
            if self.factory is None:
                raise KeyError("the key is not in the dictionary")
            self.append(key, self.factory())
            position = len(self.order) - 1
        return self.value_at(position)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        position = self.position(key)
        if position < 0:
            self.append(key, value)
        elif is_array(value):
            self.contents.append(converted(self, value))
            self.places[position] = len(self.contents) - 1
        else:
            self.contents[position] = converted(self, value)

    def __delitem__(self: Any, key: Any) -> None:
        self.pop(key)

    def __iter__(self: Any) -> Any:
        return self.keys()

    def keys(self: Any) -> Any:
        count = len(self.order)
        for position in range(count):
            yield self.order[position]
            self.require_length(count)

    def values(self: Any) -> Any:
        count = len(self.order)
        for position in range(count):
            yield self.value_at(position)
            self.require_length(count)

    def items(self: Any) -> Any:
        count = len(self.order)
        for position in range(count):
            yield self.order[position], self.value_at(position)
            self.require_length(count)

    def require_length(self: Any, count: Any) -> None:
        if len(self.order) != count:
            raise RuntimeError("dictionary changed size during iteration")

    def get(self: Any, key: Any, default: Any = None) -> Any:
        position = self.position(key)
        if position < 0:
            return default
        return self.value_at(position)

    def setdefault(self: Any, key: Any, default: Any) -> Any:
        position = self.position(key)
        if position < 0:
            self.append(key, default)
            return default
        return self.value_at(position)

    def pop(self: Any, key: Any, *default: Any) -> Any:
        position = self.position(key)
        if position < 0:
            if default:
                return default[0]
            raise KeyError("the key is not in the dictionary")
        found = self.contents.pop(position)
        self.order.pop(position)
        self.arrange(len(self.slots))
        return found

    def popitem(self: Any) -> Any:
        if len(self.order) == 0:
            raise KeyError("popitem(): dictionary is empty")
        key = self.order[-1]
        return key, self.pop(key)

    def copy(self: Any) -> Any:
        other = empty_like(self)
        other.update(self)
        return other

    def clear(self: Any) -> None:
        self.order.clear()
        self.contents.clear()
        self.places.clear()
        self.slots[:] = -1

    def update(self: Any, other: Any) -> None:
        for key, value in other.items():
            self[key] = value

    def fill(self: Any, pairs: Any) -> None:
        """Write pairs of keys and values."""
        for key, value in pairs:
            self[key] = value

    def value_at(self: Any, position: Any) -> Any:
        """The value at a position."""
        if self.places:
            return self.contents[self.places[position]]
        return self.contents[position]

    def position(self: Any, key: Any) -> Any:
        """The position of a key among the others, or -1."""
        last = len(self.slots) - 1
        slot = mixed(key) & last
        while self.slots[slot] >= 0 and self.order[self.slots[slot]] != key:
            slot = (slot + 1) & last
        return self.slots[slot]

    def append(self: Any, key: Any, value: Any) -> None:
        """Add a key that does not exist yet."""
        self.order.append(key)
        self.contents.append(converted(self, value))
        if is_array(value):
            self.places.append(len(self.contents) - 1)
        count = len(self.order)
        if 2 * count > len(self.slots):
            self.arrange(2 * len(self.slots))
        else:
            put(self.slots, key, count - 1)

    def enter_all(self: Any) -> None:
        """Insert all keys of a table that was created from lists."""
        places = 8
        while places < 2 * len(self.order):
            places = 2 * places
        self.arrange(places)

    def arrange(self: Any, places: Any) -> None:
        """Insert all keys again, into a table of this size."""
        slots = np.full(places, -1)
        for k, key in enumerate(self.order):
            put(slots, key, k)
        self.slots = slots


def listed_keys(order: Any, width: Any) -> Any:
    """The keys of an array, one for each row."""
    if width == 1:
        return [row[0] for row in order]
    if width == 2:
        return [(row[0], row[1]) for row in order]
    return [(row[0], row[1], row[2]) for row in order]


def put(slots: Any, key: Any, position: Any) -> None:
    """Insert a key that does not exist yet."""
    last = len(slots) - 1
    slot = mixed(key) & last
    while slots[slot] >= 0:
        slot = (slot + 1) & last
    slots[slot] = position


def empty_like(table: Any) -> Any:
    """A table without keys: see handlers/numba_containers.py."""
    return HashTable()


def converted(table: Any, value: Any) -> Any:
    """A value as Numba's dictionary stores it: see handlers/numba_containers.py."""
    return value


def integer_key(key: Any) -> Any:
    """A key. It must be an integer: see handlers/numba_containers.py."""
    return key


def mixed(key: Any) -> Any:
    """A hash: an integer whose lowest bits depend on all bits of the key."""
    if isinstance(key, tuple):
        found = 0
        for part in key:
            found = 31 * (found & 16777215) + mixed(part)
        return found
    key = integer_key(key)
    return key ^ (key >> 5) ^ (key >> 11) ^ (key >> 23) ^ (key >> 41)
