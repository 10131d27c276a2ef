"""Enum members: constants with a name and a value, which may also be numbers or strings.

A member is known at compile time, so it can be compared and looked up, and its value can be read.
"""

from __future__ import annotations

import enum
import inspect
from typing import Any

_OF_OBJECTS = {n for n in vars(object) if n not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")}


def plain_number(value: Any) -> complex | None:
    """A constant as a plain Python number; None if its class has an arithmetic of its own.

    >>> import signal
    >>> plain_number(signal.SIGINT), plain_number(2.5)
    (2, 2.5)
    """
    kind = type(value)
    if kind in (bool, int, float, complex):
        number: complex = value
        return number
    of = int if isinstance(value, int) else float
    if any(own_operators(c, of) for c in kind.__mro__[: kind.__mro__.index(of)]):
        return None
    return of(value)


def own_operators(kind: type, of: type) -> set[str]:
    """The arithmetic methods that a class of numbers defines itself; those of `enum` behave as for numbers."""
    own = {n for n, x in vars(kind).items() if n in vars(of) and getattr(x, "__module__", "") != "enum"}
    return set() if kind.__module__ == "enum" else own - _OF_OBJECTS


def attribute_of(member: enum.Enum, name: str) -> Any:
    """The name or the value of a member; raises LookupError if its class overrides the attribute."""
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
