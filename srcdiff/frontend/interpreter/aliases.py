"""Objects that may be identical in Python, and are two here: copies of arrays that NumPy may return as views, and
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
    """At the end of a statement: two lists that may be one need no record if one of them has no name."""
    pairs, older = reader.state.same_lists, before.same_lists
    if pairs != older:
        named = set().union(*(handles(x) for x in reader.cells.values()))
        reader.update(same_lists=frozenset(pair for pair in pairs if pair in older or pair <= named))


def doubt(reader: Reader, array: Value, copied: Value) -> None:
    """Record that the copy may be a view in NumPy, where writes into one would be visible in the other."""
    if not reader.frame.library:
        new = Doubt(reader.origins_of(array), reader.origins_of(copied), reader.born[copied])
        reader.update(doubts=reader.state.doubts | {new})


def has_name(reader: Reader, array: Value) -> bool:
    """Whether a name may refer to the memory of an array. Temporary arrays have none."""
    named = {origin for x in reader.cells.values() for a in arrays_in(x) for origin in reader.origins_of(a)}
    return bool(named & reader.origins_of(array))


def forget_doubts(reader: Reader, before: State) -> None:
    """At the end of a statement: drop copies that may be views if no name refers to them."""
    doubts, older = reader.state.doubts, before.doubts
    if doubts <= older:
        return
    changed = [x for k, x in reader.cells.items() if x is not before.cells.get(k) or isinstance(x, Stored)]
    seen = {origin for x in changed for a in arrays_in(x) for origin in reader.origins_of(a)}
    if ANYTHING not in seen:
        doubts = frozenset(d for d in doubts if d in older or d.copied & seen)
    # drop arguments without a name too, as after `u = step(u)`
    passed = {d: reader.given_for[d] for d in doubts - older if d in reader.given_for}
    reader.update(doubts=doubts - {d for d, array in passed.items() if not is_seen(reader, array, d.array)})


def all_origins(reader: Reader, array: Value) -> frozenset[Hashable]:
    """The possible origins of an array's memory in Python, including arrays that it is a copy of here."""
    found = reader.origins_of(array)
    size = -1
    while size != len(found):
        size = len(found)
        found = found.union(*(d.array for d in reader.state.doubts if d.copied & found))
    return found


def may_share(reader: Reader, new: Value, origins: frozenset[Hashable], passed: Value | None) -> None:
    """Record that a new array may be one of these in Python."""
    if passed is None or is_seen(reader, passed, origins):
        shared = Doubt(origins, reader.origins_of(new), reader.born[new])
        reader.update(doubts=reader.state.doubts | {shared})
        if passed is not None:
            reader.given_for[shared] = passed


def is_seen(reader: Reader, array: Value, origins: frozenset[Hashable]) -> bool:
    """Whether a name or a caller may refer to the memory of an array."""
    if reader.base(array) in reader.given or origins != reader.origins_of(array):
        return True
    return any(not reader.disjoint(array, other) for x in reader.cells.values() for other in arrays_in(x))
