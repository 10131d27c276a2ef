"""Runs a plain Python function with other modules in the place of `numpy` and `math`.

A tape by operator overloading must see every array that the function creates and every function that it calls. Users of
autograd write `import autograd.numpy as np` for this. Here, the function and the functions that it calls are copied,
and the global names of the copies are bound to recording functions.
"""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np


class Replacement:
    """A module with some of its names replaced; the rest is that of the module."""

    def __init__(self, module: types.ModuleType, names: Mapping[str, Any]) -> None:
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        setattr(self, name, found)
        return found


def rebind(
    function: Callable[..., Any],
    numpy: Mapping[str, Any],
    math_: Mapping[str, Any],
    builtin: Mapping[str, Any],
) -> Callable[..., Any]:
    """The function, with the given names in the place of those of `numpy`, `math` and Python itself.

    >>> def area(r):
    ...     return math.pi * np.square(r)
    >>> rebind(area, {"square": lambda x: ("square", x)}, {"pi": 1}, {})("r")
    ('square', 'r')
    """
    replaced: dict[int, Any] = {id(np): Replacement(np, numpy), id(math): Replacement(math, math_)}
    for module, names in ((np, numpy), (math, math_), (builtins, builtin)):
        # functions imported by their own name: `from math import exp`
        replaced.update({id(getattr(module, name)): new for name, new in names.items() if hasattr(module, name)})

    def convert(value: Any) -> Any:
        if id(value) in replaced:
            return replaced[id(value)]
        plain = getattr(value, "py_func", None) or getattr(value, "__wrapped__", value)
        if isinstance(plain, types.FunctionType) and not plain.__module__.startswith("numpy"):
            return copy(plain)
        return value

    def copy(plain: types.FunctionType) -> types.FunctionType:
        if id(plain) in replaced:
            found: types.FunctionType = replaced[id(plain)]
            return found
        names: dict[str, Any] = {"__builtins__": builtins, **builtin}
        cells = [types.CellType() for _ in plain.__closure__ or ()]
        new = types.FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, tuple(cells))
        new.__kwdefaults__ = plain.__kwdefaults__
        replaced[id(plain)] = new  # before its names: it may call itself
        for name in _names_in(plain.__code__):
            if name in plain.__globals__:
                names[name] = convert(plain.__globals__[name])
        for cell, old in zip(cells, plain.__closure__ or (), strict=True):
            cell.cell_contents = convert(old.cell_contents)
        return new

    plain: Any = getattr(function, "py_func", None) or getattr(function, "__wrapped__", function)
    return copy(plain)


def _names_in(code: types.CodeType) -> Iterator[str]:
    """The names that the code, and code inside of it, looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)
