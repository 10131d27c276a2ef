"""Assignment to whole arrays and parts of them."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, Own, Size, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.sizes import ONE
from srcdiff.frontend.domain.state import NeverReturns
from srcdiff.frontend.interpreter.arithmetic import BINARY, arithmetic, binary, power_of_elements
from srcdiff.frontend.interpreter.broadcasting import (
    assignment_in_words,
    axis_step,
    mapped_place,
    require_equal,
    require_fit,
)
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.lazy_arrays import (
    as_lazy,
    computed_once,
    promoted_dtype,
    require_in_range,
    through_view,
)
from srcdiff.frontend.interpreter.materialization import Places, forced, nest_loops, settle
from srcdiff.frontend.interpreter.number_kinds import is_pythons, wrapped
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.frontend.interpreter.representation import as_stored, write_element
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import is_inexact


def ufunc_of(op: type[ast.operator]) -> np.ufunc:
    """The NumPy function of an operator."""
    ufunc: np.ufunc = getattr(np, BINARY[op][0])
    return ufunc


Update = type[ast.operator] | np.ufunc
"""The operation that `+=` and `np.add.at` apply to an element and another number."""


def assign_array(reader: Reader, target: Value, value: Abstract, node: ast.AST, op: Update | None = None) -> None:
    """`target[...] = value` or `target[...] op= value`, as if the right side were computed first."""
    source = as_lazy(reader, value, node)
    require_update(reader, target, op, source if isinstance(value, List | Tuple) else value, node)
    mine = as_lazy(reader, target, node)
    if source.rank > mine.rank:
        source = without_first_axes(reader, source, mine)
    require_fit(reader, source, mine)
    if not reads_before_writing(reader, source, target):
        note_overlap(reader, source, target, node, in_place=op is not None)
        source = as_lazy(reader, forced(reader, source), node)
    source = computed_once(reader, source, mine.sizes, node)
    reader.pending.discard(source)
    settle(reader)
    offset = mine.rank - source.rank
    own_sizes = zip(source.sizes, mine.sizes[offset:], strict=True)
    steps = [axis_step(reader, own, size) for own, size in own_sizes]

    base, to_base = through_view(reader, target)

    def write(places: Places) -> None:
        write_part(reader, base, to_base(places), source.at(mapped_place(reader, places, steps)), node, op)

    nest_loops(reader, mine.sizes, write)


def without_first_axes(reader: Reader, source: Lazy, target: Lazy) -> Lazy:
    """Drop leading axes of length one of a value with more axes than its target."""
    count = source.rank - target.rank
    one = Size(ONE, lambda: reader.const(1))
    for size in source.sizes[:count]:
        require_equal(reader, size, one, lambda: assignment_in_words(source, target))
        if size.key[0] == "n" and size.key != ONE:
            raise NeverReturns
    first = (reader.const(0),) * count
    reads = tuple((array, False) for array, _ in source.reads)
    return Lazy(source.dtype, source.sizes[count:], lambda p: source.at((*first, *p)), reads, source.plain)


def require_update(reader: Reader, target: Value, op: Update | None, value: Abstract, node: ast.AST) -> None:
    """Refuse `op=` where NumPy does, because the array cannot hold the result."""
    if is_pythons(reader, value):
        require_in_range(reader, value, target.array.dtype)
    if op is None:
        return
    ufunc = op if isinstance(op, np.ufunc) else ufunc_of(op)
    require_cast(reader, promoted_dtype(reader, ufunc, (target, value)[: ufunc.nin], node), target, node)


def require_cast(reader: Reader, dtype: str, target: Value, node: ast.AST, casting: Any = "same_kind") -> None:
    """Refuse values that NumPy does not implicitly convert to the dtype of the array."""
    if not np.can_cast(dtype, target.array.dtype, casting):
        message = f"an array of dtype {target.array.dtype} cannot hold a result of dtype {dtype}"
        reader.refuse("SD203", node, message, help_="convert the result with `.astype`, or assign it to a new array")


def updated_element(reader: Reader, op: Update, old: Value, value: Value, node: ast.AST) -> Abstract:
    if isinstance(op, np.ufunc) or op is ast.Pow:
        return updated_value(reader, op, old, value, node)
    return arithmetic(reader, op, old, value, node)


def updated_value(reader: Reader, op: Update, old: Abstract, value: Abstract, node: ast.AST) -> Abstract:
    if op in (ast.Pow, np.power) and isinstance(old, Value) and isinstance(value, Value):
        return power_of_elements(reader, old, value, node)
    if isinstance(op, np.ufunc):
        return call_value(reader, Own(op), [old, value][: op.nin], node)
    return binary(reader, op, old, value, node)


def reads_before_writing(reader: Reader, source: Lazy, target: Value) -> bool:
    """Whether elements may be written before all elements have been read."""
    return all(
        reader.disjoint(array, target) or (aligned and reader.same_part(array, target))
        for array, aligned in source.reads
    )


def note_overlap(reader: Reader, source: Lazy, target: Value, node: ast.AST, *, in_place: bool) -> None:
    """Record a line where Numba may read elements of an array that it has already written.

    Numba does not copy an operand that is a view of the array whose other part is changed `in_place`; in parallel loops
    it does not copy expressions either.
    """
    told = reader.frame.told
    if told is None or reader.frame.library:
        return
    is_view = source.plain or source.view_of is not None
    shared = [array for array, _ in source.reads if not reader.disjoint(array, target)]
    shared = [array for array in shared if not reader.all_or_nothing(array, target)]
    if not told.parallel:
        shared = [array for array in shared if in_place and is_view and not reader.reads_ahead(array, target)]
    if shared:
        span = reader.span_of(node)
        where = f"line {span.line}, `{span.text.strip()}`"
        numba, instead = "may read elements that it has overwritten", "copy the operand to avoid the difference"
        reader.differences[span.file, span.line] = (
            f"{where}: code compiled by Numba {numba}; srcdiff reads all of them first, as NumPy does ({instead})"
        )


def write_part(reader: Reader, target: Value, places: Places, value: Value, node: ast.AST, op: Update | None) -> None:
    """Assign to an element, or update it by an operator."""
    if op in (ast.Add, ast.Sub) and is_inexact(target.type):
        amount = as_stored(reader, target, value)
        write_element(reader, target, places, amount if op is ast.Add else reader.apply("negative", amount), adds=True)
        return
    if op is not None:
        old = reader.load(target, places)
        value = as_number(reader, updated_element(reader, op, old, value, node), node)
    write_element(reader, target, places, wrapped(reader, value, target.array.dtype))
