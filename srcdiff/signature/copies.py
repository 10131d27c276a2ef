"""Copies of values of users, and their state, to be put back after a function has written to them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from srcdiff.signature.jit_classes import class_of_value
from srcdiff.signature.structures import layout_of, slots_of


def copied(value: Any) -> Any:
    """A deep copy; of an instance of a class that Numba compiles, an instance of the class that stands for it."""
    memo: dict[int, Any] = {}
    _stand_ins(value, memo)
    return copy.deepcopy(value, memo)


def _stand_ins(value: Any, memo: dict[int, Any]) -> None:
    """Note what stands for instances of compiled classes in a value."""
    if type(value) in (float, int, str) or id(value) in memo:
        return
    layout = layout_of(value)
    if layout is None:
        return
    parts = layout.taken_apart(value)
    if class_of_value(value) is not type(value):
        memo[id(value)] = layout.made([copied(part) for part in parts])
        memo.setdefault(-1, []).append(value)
        return
    around = memo.setdefault(-2, set())
    if id(value) not in around:
        around.add(id(value))
        for part in parts:
            _stand_ins(part, memo)


def state_of(value: Any) -> Callable[[], None]:
    """A function that gives a list, a dictionary or an instance the contents that it has now."""
    if isinstance(value, list):
        items = list(value)
        return lambda: value.__setitem__(slice(None), items)
    if isinstance(value, dict):
        contents = dict(value)
        return lambda: _refill(value, contents)
    compiled = class_of_value(value) is not type(value)
    layout = layout_of(value)
    names = list(layout.names) if compiled and layout is not None else slots_of(type(value))
    fields = {str(n): getattr(value, str(n)) for n in names if hasattr(value, str(n))}
    attributes = dict(getattr(value, "__dict__", {}))

    def put_back() -> None:
        if hasattr(value, "__dict__"):
            _refill(value.__dict__, attributes)
        for name, field in fields.items():
            (setattr if compiled else object.__setattr__)(value, name, field)

    return put_back


def _refill(value: dict[Any, Any], contents: dict[Any, Any]) -> None:
    if list(value) != list(contents):
        value.clear()
    value.update(contents)
