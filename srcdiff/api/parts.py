"""Gradients with respect to parts of arguments: `wrt="model.w"`, and `wrt="self.w"` of a bound method."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.source.bound_methods import method_behind
from srcdiff.signature.descriptions import Paths
from srcdiff.signature.structures import layout_of


class PartGradient:
    """The gradient with respect to attributes of arguments. Call it like the function."""

    def __init__(self, derivative: Any, picks: tuple[tuple[int, tuple[str, ...]], ...], single: bool, instance: Any):
        self.derivative = derivative
        """The gradient with respect to the whole arguments."""
        self.picks, self.single, self.first = picks, single, instance
        self.__doc__, self.__name__ = derivative.__doc__, derivative.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self.derivative(*self.first, *args, **kwargs)
        if self.derivative.with_value:
            return found[0], self._picked(found[1])
        return (self._picked(found[0]), found[1]) if self.derivative.has_aux else self._picked(found)

    def _picked(self, gradients: tuple[Any, ...]) -> Any:
        parts = tuple(_part(gradients[k], path) for k, path in self.picks)
        return parts[0] if self.single else parts

    @property
    def source(self) -> str:
        """The generated source code for the argument types of the latest call."""
        return str(self.derivative.source)

    def compile(self, *args: Any, **kwargs: Any) -> PartGradient:
        """Generate and compile the code before the first call: see `Derivative.compile`."""
        self.derivative.compile(*self.first, *args, **kwargs)
        return self

    def __repr__(self) -> str:
        return f"<gradient of {self.__name__} with respect to parts>"


def _part(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        layout = layout_of(value)
        if layout is None or name not in layout.names:
            raise ValueError(f"{type(value).__name__} has no attribute {name!r} with a gradient")
        value = layout.taken_apart(value)[layout.names.index(name)]
    return value


def gradient_of_parts(f: Any, wrt: Any, make: Callable[[Any, tuple[str, ...], Paths], Any]) -> PartGradient | None:
    """The gradient, if `wrt` names parts of arguments, or the instance of a bound method; `make` differentiates."""
    wanted = wrt if isinstance(wrt, tuple) else (wrt,)
    if not all(isinstance(one, str) for one in wanted) or not wanted:
        return None
    method = method_behind(f) if isinstance(f, types.MethodType) else None
    is_bound = method is not None and isinstance(method.__func__, types.FunctionType)
    instance = method.__func__.__code__.co_varnames[0] if is_bound else None  # type: ignore[union-attr]
    paths = [tuple(one.split(".")) for one in wanted]
    if not any(len(path) > 1 or path[0] == instance for path in paths):
        return None
    names = tuple(dict.fromkeys(path[0] for path in paths))
    is_self = instance in names
    derivative = make(method.__func__ if is_self else f, names, tuple(paths))  # type: ignore[union-attr]
    picks = tuple((names.index(path[0]), path[1:]) for path in paths)
    return PartGradient(derivative, picks, not isinstance(wrt, tuple), (f.__self__,) if is_self else ())
