"""Memory that calls share: gradients into given arrays, and workspaces, which keep all that a gradient allocates.

Both run the derivative in a form that takes its memory from the caller (see passes/workspace_parameters.py). Memory
that an argument shares, or that is not laid out as the code expects, is not used: the gradient is copied there
afterwards. Other calls leave their memory to the next ones (see backends/numba/memory_pool.py): `release_memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from srcdiff.backends.numba import memory_pool
from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import TUPLES, VALUES, parts_of

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.passes.workspace_parameters import WorkspaceBuffer

Memory = list[Any]


def release_memory() -> int:
    """Give the memory back to the system that calls have left for the next ones; how many bytes that were."""
    return memory_pool.release_all()


class Specialised(Protocol):
    """A derivative for certain argument types, which takes memory."""

    workspace: Sequence[WorkspaceBuffer]

    def prepared(self, args: tuple[Any, ...]) -> list[Any]: ...

    def run(self, values: Sequence[Any], memory: Memory) -> tuple[Any, Memory]: ...

    def finished(self, result: Any, args: tuple[Any, ...]) -> Any: ...


class WithWorkspace(Protocol):
    """A derivative."""

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]: ...

    def with_workspace(self, args: tuple[Any, ...], call: Callable[[Any], Any]) -> Any: ...


class Workspace:
    """A derivative with memory of its own: call it like the derivative. Gradients are overwritten by its next call."""

    def __init__(self, of: WithWorkspace) -> None:
        self._of = of
        self._latest: Specialised | None = None
        self._memory: Memory = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._of.bound(args, kwargs)
        return self._of.with_workspace(bound, lambda specialised: self._call(specialised, bound))

    def _call(self, specialised: Specialised, args: tuple[Any, ...]) -> Any:
        values = specialised.prepared(args)
        nothing = no_memory(specialised.workspace)
        memory = self._memory if specialised is self._latest else nothing
        for k, buffer in enumerate(specialised.workspace):
            if buffer.is_gradient and _overlaps(memory[k], values):  # the gradient of the last call is an argument
                memory[k] = nothing[k]
        result, self._memory = specialised.run(values, memory)
        self._latest = specialised
        return specialised.finished(result, args)

    def __reduce__(self) -> Any:
        return Workspace, (self._of,)  # another process has memory of its own

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
            raise ValueError("arrays in `out` must not share memory")
        self.direct: set[int] = set()

    def memory(self, workspace: Sequence[WorkspaceBuffer], values: Sequence[Any]) -> Memory:
        """The given arrays, where the code can write into them; nothing for the rest."""
        memory = no_memory(workspace)
        if len(self.arrays) != sum(buffer.is_gradient for buffer in workspace):
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
        placed = []
        for part, one in VALUES.beside(gradient, out, ""):
            if one is not None and id(one) not in self.direct:
                one[...] = part.value
            placed.append(part.value if one is None else one)
        return VALUES.structure(gradient).rebuild(placed)


def _leaves(argument: Any, out: Any, name: str) -> Iterator[Any]:
    """For each array of the gradient the given one, or None."""
    for part, one in _ARGUMENTS.beside(argument, out, name, _parts_given):
        value = part.value
        if isinstance(value, np.ndarray):
            if one is not None:
                _check(value, one, part.name)
            yield one
        elif one is not None:
            what = "list" if isinstance(value, list) else "number"
            raise TypeError(f"{part.name} must be None: the gradient is a {what}")
        elif isinstance(value, list):
            yield None


def _parts_given(argument: Any, out: Any, name: str) -> Sequence[Any]:
    """What is given for the parts of an argument."""
    given = parts_of(out) or ()
    if isinstance(argument, tuple):
        fits, form = isinstance(out, tuple) and len(argument) == len(given), f"a tuple of {len(argument)}"
    else:
        fits, form = layout_of(argument) == layout_of(out), f"a {type(argument).__name__} like it"
    if not fits:
        raise ValueError(f"{name} must be {form}")
    return given


def _is_of_numbers(x: Any) -> bool:
    """Whether it is a list of numbers: its gradient is a list too."""
    return isinstance(x, list) and not any(isinstance(v, np.ndarray) or parts_of(v) is not None for v in x)


_ARGUMENTS = replace(VALUES, parts=lambda x: None if x is None or _is_of_numbers(x) else parts_of(x))
"""Arguments: a list of numbers has one gradient, which is no array."""


def _check(argument: Any, out: Any, name: str) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be an array, not {type(out).__name__}")
    if out.dtype != argument.dtype:
        raise TypeError(f"{name} has the dtype {out.dtype}, but the gradient has {argument.dtype}")
    if out.shape != argument.shape:
        raise ValueError(f"{name} has the shape {out.shape}, but the gradient has {argument.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")


def _overlaps(array: Any, values: Sequence[Any]) -> bool:
    return any(isinstance(x, np.ndarray) and np.may_share_memory(array, x) for x in TUPLES.leaves(tuple(values)))
