"""Memory that calls reuse: `out=` writes gradients to given arrays, a workspace keeps all buffers of a gradient.

Both run the derivative in a form that takes its memory from the caller (see passes/workspace_parameters.py). If a given
array overlaps an argument or has the wrong layout, the gradient is computed elsewhere and copied. All other calls
return their memory to a pool (see backends/numba/memory_pool.py), which `release_memory` empties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from srcdiff.backends.numba import memory_pool
from srcdiff.library.sparse_calls import forget_factorisations
from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import TUPLES, VALUES, parts_of

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.passes.workspace_parameters import WorkspaceBuffer

Memory = list[Any]


def release_memory() -> int:
    """Return to the system the memory that srcdiff holds for later calls, and forget factorisations of sparse matrices.

    Returns:
        The number of bytes that were released, without those of factorisations.
    """
    forget_factorisations()
    return memory_pool.release_all()


class Specialised(Protocol):
    """A specialisation of a derivative that takes its memory from the caller."""

    workspace: Sequence[WorkspaceBuffer]

    def prepared(self, args: tuple[Any, ...]) -> list[Any]: ...

    def run(self, values: Sequence[Any], memory: Memory) -> tuple[Any, Memory]: ...

    def finished(self, result: Any, args: tuple[Any, ...]) -> Any: ...


class WithWorkspace(Protocol):
    """A derivative."""

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]: ...

    def with_workspace(self, args: tuple[Any, ...], call: Callable[[Any], Any]) -> Any: ...


class Workspace:
    """A derivative that reuses its memory. Call it like the derivative; the next call overwrites the gradients."""

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
        return Workspace, (self._of,)  # another process has its own memory

    @property
    def nbytes(self) -> int:
        """The number of bytes that it holds."""
        return sum(array.nbytes for array in self._memory)


class Given:
    """The arrays that the user passed for gradients: `out` has an array, a structure or None for each argument."""

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
        """The given arrays that the code can write to directly; empty memory for the others."""
        memory = no_memory(workspace)
        if len(self.arrays) != sum(buffer.is_gradient for buffer in workspace):
            return memory  # an empty list has no gradient
        for k, array in enumerate(self.arrays):
            if type(array) is np.ndarray and array.flags.carray and not _overlaps(array, values):
                memory[k] = array
                self.direct.add(id(array))
        return memory

    def filled(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients, in the given arrays."""
        return [self._placed(gradient, one) for gradient, one in zip(gradients, self.out, strict=True)]

    def _placed(self, gradient: Any, out: Any) -> Any:
        placed = []
        for part, one in VALUES.beside(gradient, out, ""):
            if one is not None and id(one) not in self.direct:
                one[...] = part.value
            placed.append(part.value if one is None else one)
        return VALUES.structure(gradient).rebuild(placed)


def _leaves(argument: Any, out: Any, name: str) -> Iterator[Any]:
    """For each array of the gradient, the given array or None."""
    for part, one in ARGUMENTS.beside(argument, out, name, _parts_given):
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
    """The given arrays for the parts of an argument."""
    given = parts_of(out) or ()
    if isinstance(argument, tuple):
        fits, form = isinstance(out, tuple) and len(argument) == len(given), f"a tuple of {len(argument)}"
    else:
        fits, form = layout_of(argument) == layout_of(out), f"a {type(argument).__name__} like it"
    if not fits:
        raise ValueError(f"{name} must be {form}")
    return given


def _is_of_numbers(x: Any) -> bool:
    """Whether the value is a list of numbers, whose gradient is a list, too."""
    return isinstance(x, list) and not any(isinstance(v, np.ndarray) or parts_of(v) is not None for v in x)


ARGUMENTS = replace(VALUES, parts=lambda x: None if x is None or _is_of_numbers(x) else parts_of(x))
"""The structure of arguments, in which a list of numbers is one leaf."""


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
