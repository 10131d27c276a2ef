"""What may be the same object in Python although it is two here: copies of arrays that NumPy may return as views, and
results of recursive functions, which are always new here.

    def last(a, n):                             def last(a, n):
        return a if n == 0 else last(a, n - 1)      return a.copy() if n == 0 else last(a, n - 1)

Python returns `a` itself. The copy differs observably only if one of them is written while the other is still in use:
that is rejected.
"""

from __future__ import annotations

from collections.abc import Hashable

from srcdiff.frontend.domain.abstract_values import List, Stored
from srcdiff.frontend.domain.lattice import arrays_in, handles
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.shapes import ANYTHING, Doubt
from srcdiff.frontend.domain.state import State
from srcdiff.frontend.interpreter.list_storage import perhaps
from srcdiff.ir.nodes import Value


def may_be_same(reader: Reader, a: List, b: List) -> None:
    group = {a, b, *perhaps(reader, a), *perhaps(reader, b)}
    pairs = {frozenset((x, y)) for x in group for y in group if x is not y}
    reader.update(same_lists=reader.state.same_lists | pairs)


def forget_same_lists(reader: Reader, before: State) -> None:
    """At the end of a statement: that two lists may be one does not matter if one of them has no name."""
    pairs, older = reader.state.same_lists, before.same_lists
    if pairs != older:
        named = set().union(*(handles(x) for x in reader.cells.values()))
        reader.update(same_lists=frozenset(pair for pair in pairs if pair in older or pair <= named))


def doubt(reader: Reader, array: Value, copied: Value) -> None:
    """The copy may be a view in NumPy, so that writing into one of them would be seen in the other, or not."""
    if not reader.frame.library:
        new = Doubt(reader.origins_of(array), reader.origins_of(copied), reader.born[copied])
        reader.update(doubts=reader.state.doubts | {new})


def has_name(reader: Reader, array: Value) -> bool:
    """Whether a name may have got the memory of an array; an array that is on its way has none."""
    named = {origin for x in reader.cells.values() for a in arrays_in(x) for origin in reader.origins_of(a)}
    return bool(named & reader.origins_of(array))


def forget_doubts(reader: Reader, before: State) -> None:
    """At the end of a statement: whether a copy is a view in NumPy does not matter if no name has got it."""
    doubts, older = reader.state.doubts, before.doubts
    if doubts <= older:
        return
    changed = [x for k, x in reader.cells.items() if x is not before.cells.get(k) or isinstance(x, Stored)]
    seen = {origin for x in changed for a in arrays_in(x) for origin in reader.origins_of(a)}
    if ANYTHING not in seen:
        doubts = frozenset(d for d in doubts if d in older or d.copied & seen)
    # what was passed does not matter either if no name has it any more, as after `u = step(u)`
    passed = {d: reader.given_for[d] for d in doubts - older if d in reader.given_for}
    reader.update(doubts=doubts - {d for d, array in passed.items() if not is_seen(reader, array, d.array)})


def all_origins(reader: Reader, array: Value) -> frozenset[Hashable]:
    """Where the memory of an array may come from in Python: also from what it may be a copy of here."""
    found = reader.origins_of(array)
    size = -1
    while size != len(found):
        size = len(found)
        found = found.union(*(d.array for d in reader.state.doubts if d.copied & found))
    return found


def may_share(reader: Reader, new: Value, origins: frozenset[Hashable], passed: Value | None) -> None:
    """A new array may be one of these in Python: what was passed, if it is that."""
    if passed is None or is_seen(reader, passed, origins):
        shared = Doubt(origins, reader.origins_of(new), reader.born[new])
        reader.update(doubts=reader.state.doubts | {shared})
        if passed is not None:
            reader.given_for[shared] = passed


def is_seen(reader: Reader, array: Value, origins: frozenset[Hashable]) -> bool:
    """Whether a name may have got the memory of an array, or whoever has called."""
    if reader.base(array) in reader.given or origins != reader.origins_of(array):
        return True
    return any(not reader.disjoint(array, other) for x in reader.cells.values() for other in arrays_in(x))
