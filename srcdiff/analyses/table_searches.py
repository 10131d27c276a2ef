"""Loops that look up a place in a table by comparisons only: what is read there does not change with what is looked up.

    k = 0
    while limits[k + 1] < x:           `x` decides which number of `rates` is read
        k += 1
    return rates[k] * w + x * x        the derivative with respect to `x` has no part of `rates`

No derivative is lost if the numbers are interpolated: then the table of the comparison is read again at this place, or
the numbers that are read there are multiplied with `x`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from srcdiff.analyses.activity import useful_values, varied_values
from srcdiff.diagnostics import Span
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.nodes import Apply, Block, Const, Function, If, Load, Loop, Operation, Store, Value, walk
from srcdiff.ir.types import Array, is_float

_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))
_SUMS = frozenset(("add", "subtract", "negative", "where", "minimum", "maximum"))
"""Functions that do not multiply their arguments."""


def table_searches(function: Function, inputs: Sequence[Value], outputs: Iterable[Value]) -> list[Span]:
    """The places of the comparisons, each line once, in order."""
    operations = list(walk(function.body))
    loops = [o for o in operations if isinstance(o, Loop)]
    if not loops or not any(isinstance(o, Apply) and o.primitive in _COMPARISONS for o in operations):
        return []
    sites = points_to(function)
    varied = varied_values(function, inputs, sites)
    found: dict[tuple[str, int], Span] = {}
    useful: set[Value] = set()
    for loop in loops:
        places = [v for v in (*loop.outs, *((loop.count,) if loop.count else ())) if not is_float(v.type)]
        for comparison, wanted, table in _comparisons(loop, varied) if places else ():
            useful = useful or useful_values(function, outputs, sites)
            by = [v for v in inputs if wanted in varied_values(function, [v], sites)]
            if comparison.span and _is_lost(
                operations, loop, places, table, varied_values(function, by, sites), useful
            ):
                found.setdefault((comparison.span.file, comparison.span.line), comparison.span)
    return [found[key] for key in sorted(found)]


def _comparisons(loop: Loop, varied: frozenset[Value] | set[Value]) -> Iterator[tuple[Apply, Value, Value]]:
    """Comparisons of a number that does not change in the loop with an element of a table: the number and the table."""
    body = [o for block in loop.blocks() for o in walk(block)]
    made = {v: o for o in body for v in o.defines()}
    inside = made.keys() | set(loop.params) | {loop.index}
    written = {o.array for o in body if isinstance(o, Store)}
    for operation in body:
        if not (isinstance(operation, Apply) and operation.primitive in _COMPARISONS):
            continue
        for wanted, other in (operation.args, operation.args[::-1]):
            load = made.get(other)
            is_known = wanted in varied and _is_invariant(wanted, made, inside)
            if is_known and isinstance(load, Load) and is_float(other.type) and _is_element(load, inside, written):
                yield operation, wanted, load.array


def _is_invariant(value: Value, made: dict[Value, Operation], inside: set[Value | None]) -> bool:
    """Whether a number is the same in all iterations."""
    operation = made.get(value)
    if isinstance(operation, Apply):
        return all(_is_invariant(v, made, inside) for v in operation.args)
    return value not in inside or isinstance(operation, Const)


def _is_element(load: Load, inside: set[Value | None], written: set[Value]) -> bool:
    """Whether it reads from a table that the loop does not change, at a place that it does change."""
    return load.array not in inside | written and any(index in inside for index in load.indices)


def _is_lost(
    operations: Sequence[Operation],
    loop: Loop,
    places: Sequence[Value],
    table: Value,
    by: frozenset[Value] | set[Value],
    useful: set[Value],
) -> bool:
    """Whether numbers that are read at these places reach the result, and none of them is interpolated."""
    inner = {id(o) for block in loop.blocks() for o in walk(block)}
    follows = _followers(operations, inner)
    indices, picked = set(places), set()
    is_useful = False
    queue = list(places)
    while queue:
        value = queue.pop()
        for operation, out in follows.get(value, ()):
            if isinstance(operation, Load) and value in operation.indices:
                if operation.array == table:
                    return False
                is_new = out not in picked
                picked.add(out)
            elif isinstance(operation, Apply) and value in picked:
                if any(v in by and v not in picked for v in operation.args):
                    if operation.primitive not in _SUMS:
                        return False
                    continue
                is_new = out not in picked
                picked.add(out)
            elif value in picked:
                is_new = out not in picked
                picked.add(out)
            else:
                is_new = out not in indices
                indices.add(out)
            is_useful = is_useful or (out in picked and out in useful and is_float(out.type))
            if is_new:
                queue.append(out)
    return is_useful


def _followers(operations: Sequence[Operation], inner: set[int]) -> dict[Value, list[tuple[Operation, Value]]]:
    """For each value, the operations outside of the loop that use it, and what they make of it."""
    follows: dict[Value, list[tuple[Operation, Value]]] = {}

    def note(operation: Operation, value: Value, out: Value) -> None:
        follows.setdefault(value, []).append((operation, out))

    for operation in operations:
        if id(operation) in inner:
            continue
        match operation:
            case Apply() | Load():
                for value in operation.uses():
                    if not isinstance(value.type, Array):
                        for out in operation.defines():
                            note(operation, value, out)
            case If():
                for block in (operation.then, operation.orelse):
                    _note_yields(note, operation, block, operation.outs)
            case Loop():
                for value, param in zip(operation.inits, operation.params, strict=True):
                    note(operation, value, param)
                _note_yields(note, operation, operation.body, operation.outs)
                _note_yields(note, operation, operation.body, operation.params)
    return follows


def _note_yields(note: object, operation: Operation, block: Block, outs: Sequence[Value]) -> None:
    assert callable(note)
    for value, out in zip(block.yields, outs, strict=False):
        note(operation, value, out)


def in_words(span: Span) -> str:
    """The text of the warning about a search."""
    return (
        f"{span.place}, `{span.text.strip()}`: the loop looks up a place by comparisons only, which have no "
        f"derivative, so what is read there is constant: interpolate it, for example with `np.interp`"
    )
