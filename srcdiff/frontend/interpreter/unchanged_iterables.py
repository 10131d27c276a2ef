"""Checks that what is iterated does not change meanwhile."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Enumerate,
    Items,
    Iteration,
    List,
    Reversed,
    Stored,
    Tuple,
    View,
    Zip,
)
from srcdiff.frontend.domain.lattice import arrays_in, handles
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Cells
from srcdiff.frontend.interpreter.dictionaries import as_now
from srcdiff.frontend.interpreter.list_storage import is_row, stored_contents, top_of
from srcdiff.frontend.interpreter.materialization import AS_LIST
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Block, Call, If, Loop, Operation, Store, Value, walk
from srcdiff.signature.trees import NODES

_OVER_A_COPY = "iterate over a copy: `list(...)`"


def is_still(value: Value, before: Value, operations: Sequence[Operation]) -> bool:
    """Whether a value is another one, passed unchanged through branches and loops."""
    if value is before:
        return True
    for operation in reversed(operations):
        if isinstance(operation, If) and value in operation.outs:
            k, sides = operation.outs.index(value), (operation.then, operation.orelse)
            return all(is_still(side.yields[k], before, (*operations, *side.operations)) for side in sides)
        if isinstance(operation, Loop) and value in operation.outs:
            k, body = operation.outs.index(value), operation.body
            stays = is_still(body.yields[k], operation.params[k], body.operations)
            return stays and is_still(operation.inits[k], before, operations)
    return False


def nothing_changed(
    reader: Reader, name: str, reads: Iterable[Abstract], before: Cells, operations: list[Operation]
) -> None:
    """Check that a lazy iterator reads the same values as at its creation."""
    reads = list(reads)
    lists = [y for y in reads if isinstance(y, List)]
    changed = any(reader.cells.get(y) is not before.get(y) for y in lists)
    arrays = [a for y in reads for a in arrays_in(before[y] if isinstance(y, List) else y)]
    for operation in walk(Block(tuple(operations))):
        written = isinstance(operation, Store) and not all(is_apart(reader, operation.array, a) for a in arrays)
        changed = changed or written or (bool(arrays) and isinstance(operation, Call))
    if changed:
        reader.refuse("SD206", None, f"the argument of `{name}` changes while it is iterated", help_=AS_LIST)


def is_apart(reader: Reader, written: Value, array: Value) -> bool:
    """Whether two values have no element in common. The storage of a list belongs to this list alone."""
    if written in reader.storage or array in reader.storage:
        return written is not array
    return reader.disjoint(written, array)


def watching_lengths(
    reader: Reader, of: Abstract, found: Iteration, body: Callable[[Abstract], None], node: ast.AST
) -> Callable[[Abstract], None]:
    """The code of an iteration, with a check that the lists do not change their lengths."""
    lengths = {h: as_value(reader, found.length) for h in handles(of)}

    def watched(item: Abstract) -> None:
        before = {h: reader.cells[top_of(reader, h)] for h in lengths}
        body(item)
        for handle, contents in before.items():
            same_length(reader, handle, contents, lengths[handle], node)

    return watched


def watching_items(
    reader: Reader, of: Abstract, items: tuple[Abstract, ...], body: Callable[[Abstract], None], node: ast.AST
) -> Callable[[Abstract], None]:
    """The same for an unrolled loop: the remaining elements must not change."""
    before = {h: reader.cells[h] for h in handles(of)}
    views = [(view, as_now(reader, view)) for view in views_in(of)]
    iterations = itertools.count(1)

    def watched(item: Abstract) -> None:
        ahead = 0 if isinstance(of, Reversed) else next(iterations)
        body(item)
        for handle, contents in before.items():
            if not stays_same(reader, contents, reader.cells.get(handle, contents), ahead):
                reader.refuse("SD206", node, "the list changes while it is iterated", help_=_OVER_A_COPY)
        for view, shown in views:
            if not shows_the_same(shown, as_now(reader, view), ahead):
                reader.refuse("SD206", node, "the dictionary changes while it is iterated", help_=_OVER_A_COPY)

    return watched


def views_in(x: Abstract) -> Iterator[View]:
    """The views of dictionaries that an iterable goes through."""
    match x:
        case View():
            yield x
        case Enumerate() | Reversed():
            yield from views_in(x.of)
        case Zip():
            yield from itertools.chain.from_iterable(map(views_in, x.of))


def shows_the_same(before: Abstract, now: Abstract, ahead: int) -> bool:
    """Whether a view of a dictionary has the same elements from a position on, and the same length."""
    assert isinstance(before, View)
    assert isinstance(now, View)
    pairs = zip(NODES.leaves(Tuple(before.items[ahead:])), NODES.leaves(Tuple(now.items[ahead:])), strict=False)
    return len(before.items) == len(now.items) and all(a is b or a == b for a, b in pairs)


def stays_same(reader: Reader, before: Abstract, now: Abstract, ahead: int) -> bool:
    """Whether a list has the same elements from a position on, and the same length."""
    if now is before or not isinstance(before, Items):
        return now is before
    if isinstance(now, Items):
        pairs = zip(before.items[ahead:], now.items[ahead:], strict=False)
        return len(before.items) == len(now.items) and all(a is b for a, b in pairs)
    is_as_long = isinstance(now, Stored) and reader.constants.get(now.length) == len(before.items)
    return is_as_long and all(isinstance(i, List) for i in before.items)  # the lists have become rows


def same_length(reader: Reader, handle: List, before: Abstract, length: Value, node: ast.AST) -> None:
    """Refuse a list that changes its length during the iteration. For a list in a list, this is checked at run time."""
    after = reader.cells.get(top_of(reader, handle), before)
    if after is before or not (isinstance(after, Stored) and isinstance(before, Stored)):
        return
    if is_row(reader, handle):
        other = reader.apply("not_equal", stored_contents(reader, handle).length, length)
        reader.raise_if(other, RuntimeError, "the list changes its length while it is iterated")
        return
    if not is_still(after.length, before.length, reader.operations):
        reader.refuse("SD206", node, "the list changes its length while it is iterated", help_=_OVER_A_COPY)
