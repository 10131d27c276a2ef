"""Direct calls: Numba's dispatcher without its compiler, for calls with the types of earlier ones.

It compares types in C, which is much faster than in Python, and knows only registered signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import _dispatcher, typeof
from numba.core.typeconv.rules import default_type_manager


class UnfitError(Exception):
    """No compiled code is registered for such arguments."""


class Direct(_dispatcher.Dispatcher):
    """The compiled code of one function, for the registered argument types."""

    def __init__(self, count: int) -> None:
        names = tuple(f"argument_{k}" for k in range(count))
        super().__init__(default_type_manager.get_pointer(), count, False, names, (), False, False, True)
        self.known: dict[Any, Any] = {}

    def learn(self, function: Any, values: Sequence[Any]) -> bool:
        """Register the code that Numba's dispatcher has compiled for such values, if there is any."""
        types = tuple(typeof(v) for v in values)
        compiled = function.overloads.get(types)
        if compiled is None or compiled.objectmode:
            return False
        if types not in self.known:
            self.known[types] = compiled  # kept, since what follows does not keep it
            self.__code__ = function.__code__  # for profilers, which ask for the name and the place of what runs
            self._insert([t._code for t in types], compiled.entry_point, False)  # type: ignore[attr-defined]
        return True

    def forget(self) -> None:
        """Register nothing any more."""
        self._clear()  # type: ignore[attr-defined]
        self.known.clear()

    def _compile_for_args(self, *args: Any) -> Any:
        raise UnfitError

    def typeof_pyval(self, value: Any) -> Any:
        raise UnfitError
