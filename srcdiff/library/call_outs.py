"""Calls out of generated code: functions of Python that it calls by a name, also where it is compiled."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Kind = tuple[str, int]
"""The dtype of a number or an array, and its number of axes."""


class CallOut:
    """A function of Python that takes numbers and arrays, and returns those of known kinds.

    It gets copies of the arrays, because generated code uses their memory again, and what it returns is copied. So it
    may keep what it is given, and return what it has kept.
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
        """What a module has under the name, and what a text without that module says about it."""
        self.derivative = derivative
        """What is said of its derivative."""
        self.is_seen = False
        """Whether others see that it was called: then it is called also where nobody needs what it returns."""
        self.__module__ = str(getattr(importable, "__module__", ""))
        self.__qualname__ = str(getattr(importable, "__qualname__", name))

    @classmethod
    def own(cls, function: Callable[..., Any], results: tuple[Kind, ...], name: str, module: str) -> CallOut:
        """One of the library, which every process finds under its name in a module."""
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
        """Compiled code finds it by its name, or in this process only: another one has no functions of users."""
        if self.is_own:
            return self.__qualname__
        _CALLED[self.number] = self
        return _numbered, (self.number,)


def given(x: Any) -> Any:
    """An argument as a function of users takes it."""
    if isinstance(x, tuple):
        return tuple(map(given, x))
    if isinstance(x, np.ndarray):
        return np.array(x)
    return x.item() if isinstance(x, np.generic) else x


@functools.cache
def not_again(call: CallOut) -> CallOut:
    """A call that nobody needs: the shapes of results do not depend on what it returns."""

    def refuse(*args: Any) -> Any:
        raise ValueError("the shape of the result depends on random numbers, so its Jacobian would draw them twice")

    return CallOut(refuse, call.results, call.__name__, meaning=call.meaning)


_COUNTER = itertools.count()
_CALLED: dict[int, CallOut] = {}
"""Those that compiled code calls: it is never freed."""


def _numbered(number: int) -> CallOut:
    return _CALLED[number]
