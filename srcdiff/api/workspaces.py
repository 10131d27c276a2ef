"""Memory that calls share: gradients into given arrays, and workspaces, which keep all that a gradient allocates.

Both run the derivative in a form that takes its memory from the caller (see transforms/rooms.py). Memory that an
argument shares, or that is not laid out as the code expects, is left alone: the gradient is copied there afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.structures import layout_of, parts_of, place_of, remade

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.passes.workspace_parameters import Room

Memory = list[Any]


class Specialised(Protocol):
    """A derivative for certain argument types, which takes memory."""

    rooms: Sequence[Room]

    def prepared(self, args: tuple[Any, ...]) -> list[Any]: ...

    def run(self, values: Sequence[Any], memory: Memory) -> tuple[Any, Memory]: ...

    def finished(self, result: Any, args: tuple[Any, ...]) -> Any: ...


class Workspace:
    """A derivative with memory of its own: call it like the derivative. Gradients are overwritten by its next call."""

    def __init__(self, specialise: Any) -> None:
        self._specialise = specialise
        self._latest: Specialised | None = None
        self._memory: Memory = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        specialised, args = self._specialise(args, kwargs)
        values = specialised.prepared(args)
        nothing = no_memory(specialised.rooms)
        memory = self._memory if specialised is self._latest else nothing
        for k, room in enumerate(specialised.rooms):
            if room.is_gradient and _overlaps(memory[k], values):  # the gradient of the last call is an argument
                memory[k] = nothing[k]
        result, self._memory = specialised.run(values, memory)
        self._latest = specialised
        return specialised.finished(result, args)

    def __reduce__(self) -> Any:
        return Workspace, (self._specialise,)  # another process has memory of its own

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""
        return sum(array.nbytes for array in self._memory)


class Given:
    """Arrays for the gradients of some arguments: `out` has one, or a tuple, or None, for each argument."""

    def __init__(self, names: Sequence[str], arguments: Sequence[Any], out: Sequence[Any]) -> None:
        self.out = out
        self.arrays = [
            array
            for name, argument, one in zip(names, arguments, out, strict=True)
            for array in _leaves(argument, one, f"`out` for `{name}`")
        ]
        given = [a for a in self.arrays if a is not None]
        if any(np.shares_memory(a, b) for k, a in enumerate(given) for b in given[k + 1 :]):
            raise ValueError("arrays in `out` share memory")
        self.direct: set[int] = set()

    def memory(self, rooms: Sequence[Room], values: Sequence[Any]) -> Memory:
        """The given arrays, where the code can write into them; nothing for the rest."""
        memory = no_memory(rooms)
        if len(self.arrays) != sum(room.is_gradient for room in rooms):
            return memory  # an empty list has no gradient
        for k, array in enumerate(self.arrays):
            if type(array) is np.ndarray and array.flags.carray and not _overlaps(array, values):
                memory[k] = array
                self.direct.add(id(array))
        return memory

    def filled(self, gradients: Sequence[Any]) -> list[Any]:
        """The given arrays, with the gradients in them, in place of these."""
        return [self._placed(gradient, one) for gradient, one in zip(gradients, self.out, strict=True)]

    def _placed(self, gradient: Any, out: Any) -> Any:
        if out is None:
            return gradient
        parts = parts_of(gradient)
        if parts is not None:
            items = [self._placed(g, o) for g, o in zip(parts, parts_of(out) or (), strict=True)]
            return remade(gradient, items)
        if id(out) not in self.direct:
            out[...] = gradient
        return out


def _leaves(argument: Any, out: Any, name: str) -> Iterator[Any]:
    """For each array of the gradient the given one, or None."""
    parts = None if _is_of_numbers(argument) else parts_of(argument)
    if parts is not None:
        if out is not None and not _is_like(argument, out):
            said = f"a tuple of {len(parts)}" if isinstance(argument, tuple) else f"a {type(argument).__name__} like it"
            raise ValueError(f"{name} has to be {said}")
        given = [None] * len(parts) if out is None else parts_of(out) or []
        for k, (item, one) in enumerate(zip(parts, given, strict=True)):
            yield from _leaves(item, one, place_of(argument, k, name))
    elif isinstance(argument, np.ndarray):
        if out is not None:
            _check(argument, out, name)
        yield out
    elif out is not None:
        what = "list" if isinstance(argument, list) else "number"
        raise TypeError(f"{name} has to be None: the gradient is a {what}")
    elif isinstance(argument, list):
        yield None


def _is_like(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        return isinstance(y, tuple) and len(x) == len(y)
    return layout_of(x) == layout_of(y)


def _is_of_numbers(x: Any) -> bool:
    """Whether it is a list of numbers: its gradient is a list too."""
    return isinstance(x, list) and not any(isinstance(v, np.ndarray) or parts_of(v) is not None for v in x)


def _check(argument: Any, out: Any, name: str) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} is of type {type(out).__name__}, not an array")
    if out.dtype != argument.dtype:
        raise TypeError(f"{name} has the dtype {out.dtype}, the gradient has {argument.dtype}")
    if out.shape != argument.shape:
        raise ValueError(f"{name} has the shape {out.shape}, the gradient has {argument.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")


def _overlaps(array: Any, values: Sequence[Any]) -> bool:
    for value in values:
        if isinstance(value, tuple):
            if _overlaps(array, value):
                return True
        elif isinstance(value, np.ndarray) and np.may_share_memory(array, value):
            return True
    return False
