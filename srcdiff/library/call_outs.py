"""Calls of Python functions from generated code, also from compiled code. They are found by name."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Kind = tuple[str, int]
"""The dtype of a number or an array, and its number of axes."""


class CallOut:
    """A function of Python with numbers and arrays as arguments and results, of known types.

    It gets copies of the arrays, because generated code reuses their memory, and its results are copied. So it may keep
    its arguments, and may return the same memory again.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        results: tuple[Kind, ...],
        name: str,
        importable: Any = None,
        meaning: str = "a function that no module has",
        derivative: str = "no derivative",
    ) -> None:
        self.function, self.results = function, results
        self.number = next(_COUNTER)
        self.__name__ = name
        self.importable, self.meaning = importable, meaning
        """The attribute of a module to call, and a description for texts that cannot import the module."""
        self.derivative = derivative
        """The description of its derivative in messages."""
        self.is_seen = False
        """Whether its call is observable. Then it is called even if its result is unused."""
        self.__module__ = str(getattr(importable, "__module__", ""))
        self.__qualname__ = str(getattr(importable, "__qualname__", name))

    @classmethod
    def own(cls, function: Callable[..., Any], results: tuple[Kind, ...], name: str, module: str) -> CallOut:
        """A function of the library, which every process can import by its name."""
        found = cls(function, results, name, derivative="")
        found.importable, found.__module__ = found, module
        return found

    @property
    def is_own(self) -> bool:
        return self.importable is self

    def __call__(self, *args: Any) -> Any:
        found = self.function(*map(given, args))
        if len(self.results) == 1:
            return self._converted(found, self.results[0])
        found = tuple(found)
        if len(found) != len(self.results):
            raise ValueError(f"`{self.__name__}` returned {len(found)} values, not {len(self.results)}")
        return tuple(self._converted(x, kind) for x, kind in zip(found, self.results, strict=True))

    def _converted(self, x: Any, kind: Kind) -> Any:
        dtype, rank = kind
        array = np.array(x)
        if array.ndim != rank:
            found, wanted = (f"an array of shape {s}" if s else "a number" for s in (array.shape, ("?",) * rank))
            wanted = wanted.replace("'", "")
            raise ValueError(f"`{self.__name__}` returned {found}, not {wanted}")
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(f"`{self.__name__}` returned numbers of type {array.dtype}, not {dtype}")
        if not rank:
            return array.astype(dtype)[()] if dtype == "float32" else array.astype(dtype).item()
        return np.ascontiguousarray(array, dtype)

    def __reduce__(self) -> Any:
        """Compiled code finds it by its name. Functions of users exist only in this process."""
        if self.is_own:
            return self.__qualname__
        _CALLED[self.number] = self
        return _numbered, (self.number,)


def given(x: Any) -> Any:
    """An argument in the form that functions of users expect."""
    if isinstance(x, tuple):
        return tuple(map(given, x))
    if isinstance(x, np.ndarray):
        return np.array(x)
    return x.item() if isinstance(x, np.generic) else x


@functools.cache
def not_again(call: CallOut) -> CallOut:
    """Replaces a call whose result must be unused, because a second call would draw other numbers. It raises."""

    def refuse(*args: Any) -> Any:
        raise ValueError("the shape of the result depends on random numbers, so its Jacobian would draw them twice")

    return CallOut(refuse, call.results, call.__name__, meaning=call.meaning)


_COUNTER = itertools.count()
_CALLED: dict[int, CallOut] = {}
"""The functions that compiled code calls. They are never freed."""


def _numbered(number: int) -> CallOut:
    return _CALLED[number]
