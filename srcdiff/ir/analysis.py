"""Cached analyses: a fact about a function is computed once, and freed with the function.

Functions are immutable. A pass that changes one makes another one, so a fact cannot become stale. Callers share the
result of an analysis: they must not change it, and it must not refer to the function.

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
    """Cache the result of the analysis as long as the function exists."""
    known: WeakKeyDictionary[Function, Fact] = WeakKeyDictionary()

    @functools.wraps(find)
    def cached(function: Function) -> Fact:
        fact = known.get(function)
        if fact is None:
            fact = known[function] = find(function)
        return fact

    return cached
