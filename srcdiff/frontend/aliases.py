"""Results of recursive functions: they are always new here, but may alias an argument in Python.

    def last(a, n):                             def last(a, n):
        return a if n == 0 else last(a, n - 1)      return a.copy() if n == 0 else last(a, n - 1)

Python returns `a` itself. The copy differs observably only if one of them is written while the other is still in use:
that is rejected. Possible aliases of arrays are recorded in shapes.py, those of lists here.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NoReturn

from srcdiff.frontend.abstract_values import Abstract, Group, List, Maybe, Static, arrays_in, leaf_types
from srcdiff.frontend.calls import Calls
from srcdiff.frontend.environment import Key, handles
from srcdiff.frontend.shapes import Doubt
from srcdiff.ir.nodes import Value
from srcdiff.signature.descriptions import Description


class Sameness(Calls):
    """Remembers what may be the same."""

    def __init__(self) -> None:
        super().__init__()
        self.given_for: dict[Doubt, Value] = {}
        """What was passed to a recursive function that may have returned it."""
        self.changed: set[List] = set()
        """Lists that the program changes, and those that they are elements of."""

    # -- arrays ------------------------------------------------------------------------------------------------------

    def all_origins(self, array: Value) -> frozenset[Hashable]:
        """Where the memory of an array may come from in Python: also from what it may be a copy of here."""
        found = self.origins_of(array)
        size = -1
        while size != len(found):
            size = len(found)
            found = found.union(*(d.array for d in self.doubts if d.copied & found))
        return found

    def may_share(self, new: Value, origins: frozenset[Hashable], passed: Value | None) -> None:
        """A new array may be one of these in Python: what was passed, if it is that."""
        if passed is None or self.is_seen(passed, origins):
            doubt = Doubt(origins, self.origins_of(new), self.born[new])
            self.doubts.add(doubt)
            if passed is not None:
                self.given_for[doubt] = passed

    def is_seen(self, array: Value, origins: frozenset[Hashable]) -> bool:
        """Whether a name may have got the memory of an array, or whoever has called."""
        if self.base(array) in self.given or origins != self.origins_of(array):
            return True
        return any(not self.disjoint(array, other) for x in self.names.values() for other in arrays_in(x))

    def forget_doubts(self, older: set[Doubt], before: dict[Key, Abstract]) -> None:
        """Also: what was passed does not matter either if no name has it any more, as after `u = step(u)`."""
        super().forget_doubts(older, before)
        new = self.doubts - older
        self.doubts -= {d for d in new if d in self.given_for and not self.is_seen(self.given_for[d], d.array)}

    # -- lists -------------------------------------------------------------------------------------------------------

    def may_be_same(self, a: List, b: List) -> None:
        group = {a, b, *self.perhaps(a), *self.perhaps(b)}
        self.same_lists |= {frozenset((x, y)) for x in group for y in group if x is not y}

    def forget_same_lists(self, older: frozenset[frozenset[List]]) -> None:
        """At the end of a statement: that two lists may be one does not matter if one of them has no name."""
        if self.same_lists != older:
            named = set().union(*(handles(x) for x in self.names.values()))
            self.same_lists = frozenset(pair for pair in self.same_lists if pair in older or pair <= named)

    def changing(self, handle: List, node: ast.AST) -> None:
        """A list is about to be changed: then it must be known which one it is."""
        if len(self.perhaps(handle)) > 1:
            self.may_be_another(node)
        self.changed |= {handle, self.top_of(handle)}

    def may_be_another(self, node: ast.AST) -> NoReturn:
        message = "a list is changed, and a recursive function may have returned the same list"
        self.refuse("SD206", node, message, help_="pass a copy: `list(...)`")

    def append(self, handle: List, item: Abstract, node: ast.AST) -> None:
        self.changing(handle, node)
        super().append(handle, item, node)

    def list_pop(self, node: ast.AST, owner: List, where: Abstract = Static(-1)) -> Abstract:  # noqa: B008
        self.changing(owner, node)
        return super().list_pop(node, owner, where)

    def list_insert(self, node: ast.AST, owner: List, where: Abstract, item: Abstract) -> Abstract:
        self.changing(owner, node)
        return super().list_insert(node, owner, where, item)

    def list_reverse(self, node: ast.AST, owner: List) -> Abstract:
        self.changing(owner, node)
        return super().list_reverse(node, owner)

    def list_clear(self, node: ast.AST, owner: List) -> Abstract:
        self.changing(owner, node)
        return super().list_clear(node, owner)

    def assign_slice(self, base: List, where: ast.Slice, value: Abstract, node: ast.AST) -> Abstract:
        self.changing(base, node)
        return super().assign_slice(base, where, value, node)

    def delete_element(self, owner: List, where: ast.expr, node: ast.AST) -> None:
        self.changing(owner, node)
        super().delete_element(owner, where, node)

    def sort_list(self, handle: List, key: Abstract, reverse: Abstract, node: ast.AST) -> None:
        self.changing(handle, node)
        super().sort_list(handle, key, reverse, node)


def lists_in(x: Abstract, d: Description) -> list[List]:
    """The lists that something of this description is or holds, in order."""
    if isinstance(x, Maybe):
        return lists_in(x.value, d.parts[0])
    if isinstance(x, Group):
        return [h for item, part in zip(x.items, d.parts, strict=True) for h in lists_in(item, part)]
    return [x] if isinstance(x, List) else []


def owned_in(d: Description) -> int:
    """How many lists something of this description is or holds."""
    return 1 if d.kind == "owned" else sum(map(owned_in, d.parts))


def storage_in(d: Description) -> Iterator[int]:
    """For each value that something of this description is made of, the number of the list it belongs to, or -1."""
    lists = 0

    def visit(d: Description) -> Iterator[int]:
        nonlocal lists
        types = leaf_types(d) or ()
        if d.kind == "owned":
            lists += 1
            yield from (lists - 1 for _ in types)
        elif d.kind in ("tuple", "record", "maybe", "optional"):
            own = sum(len(leaf_types(p) or ()) for p in d.parts)
            yield from (-1 for _ in range(len(types) - own))
            for part in d.parts:
                yield from visit(part)
        else:
            yield from (-1 for _ in types)

    yield from visit(d)
