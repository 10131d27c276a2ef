"""Analyses are cached: a fact about a function is found once, and forgotten with the function.

Functions are never edited. A pass that changes one makes another, about which nothing is known yet, so that no fact can
be out of date. What an analysis finds belongs to all who ask: they may not change it, and it may not hold the function.

>>> from srcdiff.ir.nodes import Block
>>> @analysis
... def size(function):
...     print("looked at", function.name)
...     return len(function.body.operations)
>>> empty = Function("f", (), Block())
>>> size(empty), size(empty)
looked at f
(0, 0)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from srcdiff.ir.nodes import Function

Fact = TypeVar("Fact")


def analysis(find: Callable[[Function], Fact]) -> Callable[[Function], Fact]:
    """Cache what the analysis finds, for as long as the function is there."""
    known: WeakKeyDictionary[Function, Fact] = WeakKeyDictionary()

    @functools.wraps(find)
    def cached(function: Function) -> Fact:
        fact = known.get(function)
        if fact is None:
            fact = known[function] = find(function)
        return fact

    return cached
