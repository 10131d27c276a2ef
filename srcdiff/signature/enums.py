"""Members of enums: constants with a name and a value, and numbers or texts where their class says so.

A member is known when a function is compiled, so that it can be compared, looked up, and asked for its value.
"""

from __future__ import annotations

import enum
import inspect
from typing import Any

_OF_OBJECTS = {n for n in vars(object) if n not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")}


def plain_number(value: Any) -> bool | int | float | None:
    """The number that a constant is, as Python's own; None of a class that computes in another way.

    >>> import signal
    >>> plain_number(signal.SIGINT), plain_number(2.5)
    (2, 2.5)
    """
    kind = type(value)
    if kind in (bool, int, float):
        number: bool | int | float = value
        return number
    of = int if isinstance(value, int) else float
    if any(own_operators(c, of) for c in kind.__mro__[: kind.__mro__.index(of)]):
        return None
    return of(value)


def own_operators(kind: type, of: type) -> set[str]:
    """What a class of numbers says itself about computing; what `enum` says of it is as numbers do."""
    own = {n for n, x in vars(kind).items() if n in vars(of) and getattr(x, "__module__", "") != "enum"}
    return set() if kind.__module__ == "enum" else own - _OF_OBJECTS


def attribute_of(member: enum.Enum, name: str) -> Any:
    """The name or the value of a member; raises LookupError of all that its class says itself."""
    if name not in ("name", "value") or inspect.getattr_static(type(member), name) is not vars(enum.Enum)[name]:
        raise LookupError(name)
    return getattr(member, name)


def spelled(member: enum.Enum) -> str:
    """A member as it is written in a program.

    >>> import signal
    >>> spelled(signal.SIGINT)
    'Signals.SIGINT'
    """
    return f"{type(member).__name__}.{member.name}"
