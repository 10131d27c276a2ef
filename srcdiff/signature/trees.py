"""Trees: flattening into leaves, mapping, naming and rebuilding.

Values of users are trees of tuples, lists, dictionaries and dataclasses. The compiler represents them by trees of
`Node`s.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.structures import Layout, layout_of

_WITHOUT_PARTS = frozenset({float, int, bool, str, np.ndarray, np.float64})


class Node:
    """A structure with parts, inside the compiler."""

    __slots__ = ()

    def opened(self) -> Sequence[Any] | None:
        """Its parts; None for a leaf."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """The layout of the values that it represents."""
        raise NotImplementedError

    def remade(self, parts: Iterable[Any]) -> Any:
        """The same structure with other parts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a value: the layouts of all inner parts, down to the leaves."""

    layout: Layout | None
    """None for a leaf, and for the value None, which has no leaves."""
    parts: tuple[Structure, ...] | None
    """None for a leaf."""

    def rebuild(self, leaves: Iterable[Any]) -> Any:
        """A value with this structure and these leaves.

        >>> _, structure = VALUES.flatten({"w": (1.0, None), "b": [2.0]})
        >>> structure.rebuild("xy")
        {'w': ('x', None), 'b': ['y']}
        """
        left, nothing = iter(leaves), object()
        made = self._made(left)
        if next(left, nothing) is not nothing:
            raise ValueError("there are more leaves than the structure has")
        return made

    def _made(self, leaves: Iterator[Any]) -> Any:
        if self.parts is not None:
            return self.layout and self.layout.made([part._made(leaves) for part in self.parts])
        for leaf in leaves:
            return leaf
        raise ValueError("the structure has more leaves than there are")


LEAF = Structure(None, None)


@dataclass(frozen=True, slots=True)
class Part:
    """A leaf of a tree."""

    name: str
    """How users write it: `state['x']`."""
    path: tuple[int, ...]
    """The path from the root: the index of a part at each level."""
    value: Any

    def subscripted(self, whole: str) -> str:
        """The expression in generated code, where all trees are tuples."""
        return whole + "".join(f"[{k}]" for k in self.path)

    def of(self, whole: Any) -> Any:
        """The same part of another value with this structure."""
        for k in self.path:
            whole = (parts_of(whole) or ())[k]
        return whole


Tree = TypeVar("Tree")
Found = TypeVar("Found")
Called = Callable[[Layout, str, int], str]
"""A function that names a part from the layout and the name of the whole: `Layout.part` or `Layout.variable`."""


@dataclass(frozen=True, slots=True)
class Trees:
    """One kind of tree: how to get its parts, and how to rebuild it from other parts."""

    parts: Callable[[Any], Sequence[Any] | None]
    """The parts of a tree; None for a leaf."""
    layout: Callable[[Any], Layout | None]
    remade: Callable[[Any, list[Any]], Any]

    def fold(self, tree: Any, leaf: Callable[[Any], Found], node: Callable[[Any, list[Found]], Found]) -> Found:
        """Fold the tree: apply `leaf` to the leaves, and `node` to each inner tree and the results of its parts."""
        parts = self.parts(tree)
        return leaf(tree) if parts is None else node(tree, [self.fold(part, leaf, node) for part in parts])

    def map(self, function: Callable[[Any], Any], tree: Tree) -> Tree:
        """A tree of the same structure with other leaves.

        >>> VALUES.map(str, {"w": (1, 2), "b": [3, None]})
        {'w': ('1', '2'), 'b': ['3', None]}
        """
        made: Tree = self.fold(tree, function, self.remade)
        return made

    def leaves(self, tree: Any) -> list[Any]:
        """The leaves, in order."""
        parts = self.parts(tree)
        if parts is None:
            return [tree]
        found: list[Any] = []
        for part in parts:
            found += self.leaves(part)
        return found

    def nodes(self, tree: Any) -> Iterator[Any]:
        """The tree itself and all inner trees with parts; nothing for a leaf."""
        parts = self.parts(tree)
        if parts is not None:
            yield tree
            for part in parts:
                yield from self.nodes(part)

    def structure(self, tree: Any) -> Structure:
        """The structure, without the leaves."""
        return self.fold(tree, lambda _: LEAF, lambda x, parts: Structure(self.layout(x), tuple(parts)))

    def flatten(self, tree: Any) -> tuple[list[Any], Structure]:
        """The leaves, and the structure that rebuilds the tree from them."""
        return self.leaves(tree), self.structure(tree)

    def named(self, tree: Any, name: str, called: Called = Layout.part) -> Iterator[Part]:
        """The leaves with their names.

        >>> [part.name for part in VALUES.named({"w": (1.0, 2.0), "b": [3.0]}, "p")]
        ["p['w'][0]", "p['w'][1]", "p['b'][0]"]
        """
        return (part for part, _ in self.beside(tree, None, name, called=called))

    def beside(
        self,
        tree: Any,
        other: Any,
        name: str,
        opened: Callable[[Any, Any, str], Sequence[Any]] | None = None,
        called: Called = Layout.part,
    ) -> Iterator[tuple[Part, Any]]:
        """The named leaves, each with the entry of another tree at its place; `opened` returns the parts of an entry.

        None in the other tree means None for all leaves below.

        >>> [(part.name, other) for part, other in VALUES.beside((1.5, [2.5]), ("a", ["b"]), "x")]
        [('x[0]', 'a'), ('x[1][0]', 'b')]
        """

        def visit(whole: Part, other: Any) -> Iterator[tuple[Part, Any]]:
            tree = whole.value
            parts = self.parts(tree)
            if parts is None:
                yield whole, other
                return
            layout = self.layout(tree)
            others = [None] * len(parts) if other is None else opens(tree, other, whole.name)
            for k, (part, one) in enumerate(zip(parts, others, strict=True)):
                assert layout is not None
                yield from visit(Part(called(layout, whole.name, k), (*whole.path, k), part), one)

        def fields(tree: Any, other: Any, _: str) -> Sequence[Any]:
            layout = self.layout(tree)  # the gradient of a record has no integers
            return layout.fields_in(other) if layout and layout.has_own_types else self.parts(other) or ()

        opens = opened or fields
        return visit(Part(name, (), tree), other)


def parts_of(value: Any) -> Sequence[Any] | None:
    """The parts of a tuple, list, dictionary or dataclass; no parts for None, and None for anything else."""
    kind = type(value)
    if kind in _WITHOUT_PARTS and (kind is not np.ndarray or value.dtype.names is None):
        return None
    if kind is tuple or kind is list:
        parts: Sequence[Any] = value
        return parts
    if value is None:
        return ()
    layout = layout_of(value)
    return None if layout is None else layout.taken_apart(value)


def refers_to_itself(value: Any, around: tuple[int, ...] = ()) -> bool:
    """Whether an instance, or a list or dictionary, is among its own parts, directly or not."""
    parts = parts_of(value)
    if not parts:
        return False
    return id(value) in around or any(refers_to_itself(part, (*around, id(value))) for part in parts)


def remade(value: Any, parts: Sequence[Any]) -> Any:
    """A value with the same layout and other parts."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(parts)
    layout = layout_of(value)
    if layout is None:
        return None
    return layout.made(parts) if all(p is not None for p in parts) else layout.gradient(value, parts)


VALUES = Trees(parts_of, layout_of, remade)
"""The values of users: tuples, lists, dictionaries and dataclasses. None has no leaves."""

TUPLES = replace(VALUES, parts=lambda x: x if isinstance(x, tuple) else None)
"""Arguments and results of compiled code, where only tuples have parts."""


def floats_for_integers(x: Any) -> Any:
    """An argument to differentiate by, in which integer numbers are floats.

    >>> floats_for_integers({"n": 3, "a": [1, 2.5], "flag": True})
    {'n': 3.0, 'a': [1.0, 2.5], 'flag': True}
    """
    parts, layout = VALUES.parts(x), VALUES.layout(x)
    if parts is None:
        return float(x) if isinstance(x, int | np.integer) and not isinstance(x, bool | enum.Enum) else x
    if layout is not None and layout.has_own_types:
        return x
    integers = layout.integers if layout is not None else ()
    made = [part if k in integers else floats_for_integers(part) for k, part in enumerate(parts)]
    return VALUES.remade(x, made) if any(a is not b for a, b in zip(made, parts, strict=True)) else x


NODES = Trees(
    lambda x: x.opened() if isinstance(x, Node) else None,
    lambda x: x.layout,
    lambda x, parts: x.remade(parts),
)
"""The abstract values of the compiler."""
