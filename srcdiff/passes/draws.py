"""Calls that must run once for each time that the program comes to them: those that draw random numbers."""

from __future__ import annotations

from dataclasses import replace

from srcdiff.ir.nodes import Apply, Block, Dim, Library, Operation, Raise, Value, changed, walk
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import LIBRARY, is_seen
from srcdiff.library.call_outs import not_again


def draws_anything(block: Block) -> bool:
    """Whether something in it is called that must be called once for each time that the program comes to it."""
    return any(isinstance(o, Library) and is_seen(o.function) for o in walk(block))


def without_draws(block: Block) -> Block:
    """The block as it runs a second time, for the shapes of its results: it must not draw again.

    What it raises, it raises when it runs for its values.
    """
    if not draws_anything(block):
        return block
    known: dict[Value, dict[int, Value]] = {}

    def visited(operation: Operation) -> Operation:
        if isinstance(operation, Dim) and operation.array in known:
            return Apply(operation.out, "positive", (known[operation.array][operation.axis],), span=operation.span)
        if not (isinstance(operation, Library) and is_seen(operation.function)):
            return operation.rebuilt(visit)
        for out in operation.outs:
            if isinstance(out.type, Array):  # the last arguments are its shape
                known[out] = dict(enumerate(operation.args[-out.type.rank :]))
        row = LIBRARY[operation.function]
        assert row.call is not None
        key = f"{row.key} not again"
        LIBRARY.setdefault(key, replace(row, key=key, call=not_again(row.call)))
        return replace(operation, function=key)

    def visit(inner: Block) -> Block:
        left = [o for o in inner.operations if not isinstance(o, Raise)]
        return changed(inner, operations=tuple(map(visited, left)))

    return visit(block)
