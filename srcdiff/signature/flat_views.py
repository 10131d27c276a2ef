"""The flat view of structured parameters: one vector of float64, with the name and the slice of each part, and back.

A complex number is two numbers of the vector, its real and its imaginary part.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.keys import is_on_device
from srcdiff.signature.structures import Layout, layout_of
from srcdiff.signature.trees import VALUES, Structure, floats_for_integers, parts_of

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class FlatPart:
    """A number or an array of the parameters, and its place in the vector."""

    name: str
    """How users write it: `params['w']`."""
    argument: str
    """The argument that it is in: `params`."""
    slice: slice
    shape: tuple[int, ...]
    kind: type | np.dtype[Any]
    """The dtype of an array; the type of a number: `float`, or one of NumPy."""

    @property
    def size(self) -> int:
        return int(self.slice.stop - self.slice.start)

    @property
    def is_complex(self) -> bool:
        return np.dtype(self.kind).kind == "c"

    @property
    def shape_in_vector(self) -> tuple[int, ...]:
        """The axes of its numbers in the vector: the last axis has the two parts of complex numbers."""
        return (*self.shape, 2) if self.is_complex else self.shape

    def names(self) -> Iterator[str]:
        """The names of its numbers: `params['w'][0, 1]`."""
        for index in np.ndindex(self.shape):
            name = f"{self.name}[{', '.join(map(str, index))}]" if index else self.name
            yield from (f"{name}.real", f"{name}.imag") if self.is_complex else (name,)

    def flat(self, value: Any, rows: tuple[int, ...], kinds: str) -> Any:
        """The value of this part, as it stands in the vector, or in each row.

        In a Jacobian, the value of a complex part is a pair: the derivatives by the real and by the imaginary part.
        """
        name = f"`{self.name}`"
        if not self.is_complex:
            array = self._checked(_checked_numbers(value, name, kinds), rows)
        else:
            whole: Any = value if isinstance(value, tuple) else _checked_numbers(value, name, "fiuc")
            parts = [_checked_numbers(part, name, kinds) for part in (whole.real, whole.imag)]
            array = np.stack([self._checked(part, rows) for part in parts], axis=-1)
        return array.reshape(*rows, self.size)

    def _checked(self, array: np.ndarray[Any, Any], rows: tuple[int, ...]) -> np.ndarray[Any, Any]:
        if array.shape != rows + self.shape:
            raise ValueError(f"`{self.name}` must have the shape {rows + self.shape}, but it has {array.shape}")
        return array

    def of(self, vector: Vector) -> Any:
        """Its value in a vector. An array of float64 is a view of the vector."""
        numbers = vector[self.slice]
        if self.is_complex:
            numbers = np.ascontiguousarray(numbers).view(np.complex128)
        if isinstance(self.kind, np.dtype):
            return numbers.reshape(self.shape).astype(self.kind, copy=False)
        return self.kind(numbers[0])


class FlatView:
    """The parameters of a function as one vector of float64: see `Derivative.ravel`.

    >>> view = FlatView(("p", "t"), ({"w": np.ones((2, 2)), "b": 3.0, "name": "a"}, 0.5), ("p",), single=True)
    >>> view.x
    array([1., 1., 1., 1., 3.])
    >>> view.slices
    {"p['w']": slice(0, 4, None), "p['b']": slice(4, 5, None)}
    >>> view.names
    ["p['w'][0, 0]", "p['w'][0, 1]", "p['w'][1, 0]", "p['w'][1, 1]", "p['b']"]
    >>> view.unravel(np.arange(5.0))
    {'w': array([[0., 1.],
           [2., 3.]]), 'b': 4.0, 'name': 'a'}
    """

    def __init__(self, names: Sequence[str], args: Sequence[Any], wrt: Sequence[str], *, single: bool) -> None:
        self._args, self._single = tuple(args), single
        self._places = [tuple(names).index(name) for name in wrt]
        self._wrt = tuple(wrt)
        self._trees: list[tuple[Structure, list[Any]]] = []
        """For each argument in `wrt` its structure, and its leaves: a `FlatPart`, or a value that is no parameter."""
        parts: list[FlatPart] = []
        for name, place in zip(wrt, self._places, strict=True):
            leaves = list(_placed(args[place], name, parts[-1].slice.stop if parts else 0))
            self._trees.append((VALUES.structure(args[place]), leaves))
            parts += [leaf for leaf in leaves if isinstance(leaf, FlatPart)]
        self.parts: tuple[FlatPart, ...] = tuple(parts)
        """The numbers and arrays, in the order of the vector."""
        self.size: int = parts[-1].slice.stop if parts else 0
        """How many numbers the vector has."""
        self.x: Vector = self.ravel(self._args[self._places[0]] if single else [args[k] for k in self._places])
        """The vector of the example."""

    @property
    def names(self) -> list[str]:
        """The name of each number."""
        return list(itertools.chain.from_iterable(part.names() for part in self.parts))

    @property
    def slices(self) -> dict[str, slice]:
        """The place of each part in the vector, by its name."""
        return {part.name: part.slice for part in self.parts}

    def ravel(self, value: Any, rows: tuple[int, ...] = (), *, of_complex: bool = False) -> np.ndarray[Any, Any]:
        """The vector of parameters, or of a gradient, with the structure of the example.

        With `rows`, all parts have these axes in front of their own, as in a Jacobian, and so has the result. With
        `of_complex`, all numbers are derivatives of complex numbers.
        """
        vector: np.ndarray[Any, Any] = np.empty((*rows, self.size), complex if of_complex else float)
        for part, given in self.beside(value, _parts_beside):
            if given is None:
                raise TypeError(f"`{part.name}` must be a number or an array, not None")
            vector[..., part.slice] = part.flat(given, rows, "fiuc" if of_complex else "fiu")
        return vector

    def beside(self, value: Any, opened: Callable[[Any, Any, str], Sequence[Any]]) -> Iterator[tuple[FlatPart, Any]]:
        """The parts, each with what stands at its place in another value: see `Trees.beside`."""
        wholes = (value,) if self._single else tuple(value)
        if len(wholes) != len(self._places):
            raise ValueError(f"{len(self._places)} values are needed, for {', '.join(self._wrt)}")
        for whole, place, name, (_, leaves) in zip(wholes, self._places, self._wrt, self._trees, strict=True):
            found = VALUES.beside(self._args[place], whole, name, opened, Layout.attribute)
            for (_, given), leaf in zip(found, leaves, strict=True):
                if isinstance(leaf, FlatPart):
                    yield leaf, given

    def unravel(self, x: Any) -> Any:
        """The parameters with the structure of the example: the argument, or a tuple of the arguments in `wrt`.

        What is no parameter (strings, integer arrays) is that of the example. Nothing shares memory with `x`.
        """
        vector = self.checked(x).copy()
        made = [
            structure.rebuild([leaf.of(vector) if isinstance(leaf, FlatPart) else leaf for leaf in leaves])
            for structure, leaves in self._trees
        ]
        return made[0] if self._single else tuple(made)

    def arguments(self, x: Any) -> tuple[Any, ...]:
        """All arguments of the function: the parameters of `x`, and the other arguments of the example."""
        parameters = self.unravel(x)
        args = list(self._args)
        for place, value in zip(self._places, (parameters,) if self._single else parameters, strict=True):
            args[place] = value
        return tuple(args)

    def checked(self, x: Any) -> Vector:
        """The vector, if it is one for these parameters; otherwise raise TypeError or ValueError."""
        vector = _checked_numbers(x, "the vector of parameters")
        if vector.shape != (self.size,):
            raise ValueError(f"the vector of parameters must have the shape ({self.size},), not {vector.shape}")
        return vector.astype(np.float64, copy=False)

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.name}: {part.slice.start}:{part.slice.stop}" for part in self.parts)
        return f"<{self.size} parameters: {parts}>"


def _placed(value: Any, name: str, start: int) -> Iterator[Any]:
    """The leaves of an argument: parameters with their places, and the others as they are."""
    for node in VALUES.nodes(value):
        layout = layout_of(node)
        overridden = [n for n in layout.extra if hasattr(layout.kind, n)] if layout is not None else []
        if layout is not None and overridden:
            which = f"`{overridden[0]}` of its class {layout.kind.__name__}"
            raise TypeError(f"a value in `{name}` overrides {which}, so it cannot be rebuilt from a vector")
    for part in VALUES.named(floats_for_integers(value), name, Layout.attribute):
        leaf = part.value
        if is_on_device(leaf):
            raise TypeError(f"`{part.name}` is in the memory of a GPU: a flat view needs arrays of NumPy")
        kind = _kind_of(leaf)
        if kind is None:
            yield leaf
        else:
            shape = leaf.shape if isinstance(leaf, np.ndarray) else ()
            size = int(np.prod(shape, dtype=np.int64)) * (2 if np.dtype(kind).kind == "c" else 1)
            yield FlatPart(part.name, name, slice(start, start + size), shape, kind)
            start += size


def _kind_of(leaf: Any) -> type | np.dtype[Any] | None:
    """The kind of a parameter; None for what has no derivative."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype if leaf.dtype.kind in "fc" else None
    if isinstance(leaf, bool | enum.Enum):
        return None
    if isinstance(leaf, np.inexact):
        return type(leaf)
    return float if isinstance(leaf, float) else complex if isinstance(leaf, complex) else None


def _parts_beside(example: Any, value: Any, name: str) -> Sequence[Any]:
    """The parts of a value, which must have the layout of the example."""
    parts, layout = parts_of(value), layout_of(example)
    given = layout_of(value)
    if example is None and value is None:
        return ()
    if layout is None or given is None or parts is None or (given.kind, len(parts)) != (layout.kind, len(layout.names)):
        count = 0 if layout is None else len(layout.names)
        raise ValueError(f"`{name}` must be a {type(example).__name__} with {count} parts, as in the example")
    if layout.is_mapping and set(given.names) != set(layout.names):
        raise ValueError(f"`{name}` must have the keys {', '.join(map(repr, layout.names))}")
    return layout.taken_apart(value)


def _checked_numbers(value: Any, name: str, kinds: str = "fiu") -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} must have real numbers, not {array.dtype}")
    return array
