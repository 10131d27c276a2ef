"""Programs that are compiled once for functions that are made anew at each call, such as a `lambda` in a loop.

    def f(a):
        return srcdiff.root(lambda x: x * x - a, 1.0)      # outside of differentiated functions

The `lambda` of each call of `f` is another function with the same code. A program is compiled for a function of this
code with cells of its own. At each call, the variables of the new function are put into these cells; the guards of the
program find what has changed.
"""

from __future__ import annotations

import contextlib
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

Program = Callable[..., Any]
KEPT = 64
"""So many kinds of programs are kept."""


class Programs:
    """Programs made by `make(function, *options)`, by the code of the function and the options."""

    def __init__(self, make: Callable[..., Program]) -> None:
        self.make = make
        self._idle: OrderedDict[Hashable, list[tuple[Any, Program]]] = OrderedDict()
        self._lock = threading.Lock()

    def call(self, function: Any, options: tuple[Hashable, ...], *args: Any) -> Any:
        """The result of the program for this function. A program runs in one thread at a time."""
        is_new = isinstance(function, types.FunctionType) and not function.__dict__
        key = (function.__code__, id(function.__globals__), *options) if is_new else (function, *options)
        own, program = self._taken(key) or self._made(function, options, is_new=is_new)
        if own is not function:
            _fill(own, function)
        try:
            return program(*args)
        finally:
            if own is not function:
                _empty(own)  # the values of the variables may be large
            self._give_back(key, (own, program))

    def _made(self, function: Any, options: tuple[Hashable, ...], *, is_new: bool) -> tuple[Any, Program]:
        own = _with_own_cells(function) if is_new else function
        return own, self.make(own, *options)

    def _taken(self, key: Hashable) -> tuple[Any, Program] | None:
        with self._lock:
            idle = self._idle.get(key)
            return idle.pop() if idle else None

    def _give_back(self, key: Hashable, item: tuple[Any, Program]) -> None:
        with self._lock:
            self._idle.setdefault(key, []).append(item)
            self._idle.move_to_end(key)
            while len(self._idle) > KEPT:
                self._idle.popitem(last=False)


def _with_own_cells(function: types.FunctionType) -> types.FunctionType:
    """A function with the same code, and cells that no other function shares."""
    code = function.__code__
    cells = tuple([types.CellType() for _ in code.co_freevars])
    own = types.FunctionType(code, function.__globals__, function.__name__, closure=cells or None)
    own.__qualname__, own.__module__ = function.__qualname__, function.__module__
    return own


def _fill(own: types.FunctionType, function: types.FunctionType) -> None:
    """Give a function the variables and the defaults of another one with the same code."""
    own.__defaults__, own.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    for cell, given in zip(own.__closure__ or (), function.__closure__ or (), strict=True):
        try:
            cell.cell_contents = given.cell_contents
        except ValueError:  # it is not assigned
            _empty_cell(cell)


def _empty(own: types.FunctionType) -> None:
    own.__defaults__ = own.__kwdefaults__ = None
    for cell in own.__closure__ or ():
        _empty_cell(cell)


def _empty_cell(cell: types.CellType) -> None:
    with contextlib.suppress(ValueError):
        del cell.cell_contents
