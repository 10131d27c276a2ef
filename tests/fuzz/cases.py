"""A program as text with its points, and the conversion of text into functions whose source can be found."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

ENTRY = "program"

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that is a function of the program's own module."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Made:
    """An argument that is a namedtuple of the program's own module."""

    maker: str
    items: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.maker}{self.items}"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A module's text with a function `program`, the points to call it at, and what to differentiate for."""

    seed: int
    source: str
    points: tuple[tuple[Any, ...], ...]
    wrt: tuple[int, ...]
    single_precision: bool = False


@contextmanager
def loaded(case: Case) -> Iterator[types.ModuleType]:
    """The module of a case, with its text where `inspect` and tracebacks look for it, until the block ends.

    >>> with loaded(Case(0, "def program(x):\\n    return x * x\\n", ((3.0,),), (0,))) as module:
    ...     module.program(3.0)
    9.0
    """
    filename = f"<fuzz program {case.seed}.{next(_numbers)}>"
    linecache.cache[filename] = (len(case.source), None, case.source.splitlines(keepends=True), filename)
    module = types.ModuleType(f"fuzz_{case.seed}")
    module.__file__ = filename
    try:
        exec(compile(case.source, filename, "exec", dont_inherit=True), module.__dict__)
        yield module
    finally:
        linecache.cache.pop(filename, None)


def arguments_of(point: tuple[Any, ...], module: types.ModuleType) -> tuple[Any, ...]:
    """The point, with the module's functions and namedtuples in place of their names."""

    def resolved(value: Any) -> Any:
        if isinstance(value, Named):
            return getattr(module, value.name)
        if isinstance(value, Made):
            return getattr(module, value.maker)(*map(resolved, value.items))
        return value

    return tuple(resolved(value) for value in point)
