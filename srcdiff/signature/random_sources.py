"""Sources of random numbers: NumPy's generators, as arguments, from outside, and made inside.

Generated code knows a source by a number. What it draws, Python draws: so the numbers are those of the function itself.
"""

from __future__ import annotations

import collections
import copy
import enum
import random
import sys
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.signature.layouts import Layout

SOURCES = (np.random.Generator, np.random.RandomState, random.Random)


@dataclass(frozen=True, slots=True)
class SourceLayout(Layout):
    """The layout of a source of random numbers: its number."""

    @property
    def is_mapping(self) -> bool:
        return False

    @property
    def is_instance(self) -> bool:
        return False

    @property
    def has_own_types(self) -> bool:
        return True

    def fields_in(self, other: Any) -> list[Any]:
        return [None]

    def text(self, parts: Sequence[str]) -> str:
        return self.kind.__name__

    def taken_apart(self, value: Any) -> list[Any]:
        return [number_of(value)]

    def made(self, items: Sequence[Any]) -> Any:
        """The source of that number; the gradient with respect to one is None."""
        return source_of(items[0]) if isinstance(items[0], int) else None


def layout_of_source(value: Any) -> SourceLayout | None:
    return source_layout(type(value)) if isinstance(value, SOURCES) else None


def source_layout(kind: type) -> SourceLayout:
    return SourceLayout(kind, ("source",))


_MOST = 100_000
_WITHOUT_PARTS = frozenset({float, int, bool, str, np.ndarray, type(None)})
_SOURCES: collections.OrderedDict[int, Any] = collections.OrderedDict()
"""The sources that were used last, by their numbers: those of one call are among them."""


def number_of(source: Any) -> int:
    """The number of a source; while it is known, no other object can get it."""
    number = id(source)
    if _SOURCES.get(number) is not source:
        _SOURCES[number] = source
        if len(_SOURCES) > _MOST:
            _SOURCES.popitem(last=False)
    _SOURCES.move_to_end(number)
    return number


def sources_in(x: Any) -> list[Any]:
    """The sources in arguments: in tuples, lists, dictionaries and instances, too.

    >>> source = random.Random(1)
    >>> cycle = [1.5, {"source": source}]
    >>> cycle.append(cycle)
    >>> sources_in(cycle) == [source]
    True
    """
    found: list[Any] = []
    seen: set[int] = set()
    left = [x]
    while left:
        one = left.pop()
        if isinstance(one, SOURCES):
            found.append(one)
        elif isinstance(one, type | enum.Enum | types.ModuleType | types.FunctionType) or type(one) in _WITHOUT_PARTS:
            continue
        elif id(one) not in seen:
            seen.add(id(one))
            parts = (
                one if isinstance(one, tuple | list) else one.values() if isinstance(one, dict) else _attributes(one)
            )
            left += reversed(list(parts))
    return found


def _attributes(x: Any) -> Iterable[Any]:
    return () if type(x).__module__ == "numpy" else getattr(x, "__dict__", {}).values()


COMPILED_IN: list[Any] = [np.random.mtrand._rand, random._inst]
"""The sources that programs draw from without getting them as arguments."""


class Replay:
    """The states of all sources, to draw the same numbers again."""

    def __init__(self, args: Any) -> None:
        self.of_arguments = [state_of(s) for s in sources_in(args)]
        self.of_others = [(s, state_of(s)) for s in COMPILED_IN]
        self.of_numba = _states_of_numba()

    def again(self, args: Any) -> None:
        """Put the sources back; these arguments may be copies of those that it was made for."""
        for source, state in zip(sources_in(args), self.of_arguments, strict=True):
            set_state(source, state)
        for source, state in self.of_others:
            set_state(source, state)
        _set_states_of_numba(self.of_numba)


def state_of(source: Any) -> Any:
    if isinstance(source, np.random.Generator):
        return copy.deepcopy(source.bit_generator.state)
    return source.get_state(legacy=False) if isinstance(source, np.random.RandomState) else source.getstate()


def set_state(source: Any, state: Any) -> None:
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = copy.deepcopy(state)
    elif isinstance(source, np.random.RandomState):
        source.set_state(state)
    else:
        source.setstate(state)


def _states_of_numba() -> list[Any]:
    """Numba has a source for `np.random` and one for `random`, in each thread."""
    helpers = getattr(sys.modules.get("numba"), "_helperlib", None)
    if helpers is None:
        return []
    pointers = [helpers.rnd_get_np_state_ptr(), helpers.rnd_get_py_state_ptr()]
    return [(p, helpers.rnd_get_state(p)) for p in pointers]


def _set_states_of_numba(states: list[Any]) -> None:
    for pointer, state in states:
        sys.modules["numba"]._helperlib.rnd_set_state(pointer, state)


def source_of(number: int) -> Any:
    if number not in _SOURCES:
        raise RuntimeError(f"more than {_MOST} sources of random numbers are in use")
    return _SOURCES[number]
