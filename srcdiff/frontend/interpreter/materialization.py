"""Computation of lazy arrays: a loop over their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract, Drawn, Lazy, Size, Through
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.aliases import doubt
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.representation import write_element
from srcdiff.ir.nodes import Block, Loop, Value
from srcdiff.ir.types import INT

AS_LIST = "convert it to a list: `list(...)`"


Places = tuple[Value, ...]


def forced(reader: Reader, x: Abstract) -> Abstract:
    """The computed array. Other values are unchanged."""
    if isinstance(x, Through | Drawn):
        reader.refuse("SD102", None, f"{in_words(reader, x)} is an iterator, but a value is needed here", help_=AS_LIST)
    if not isinstance(x, Lazy):
        return x
    if x.array is None:
        reader.pending.discard(x)
        if not x.sizes:
            return x.at(())
        array = computed_array(reader, x)
        if x.home is not reader.operations:
            return array
        x.array = array
    return x.array


def computed_array(reader: Reader, x: Lazy) -> Value:
    if x.part_of is not None:
        whole, part = x.part_of
        found = forced(reader, whole)
        assert isinstance(found, Value)
        return reader.part(found, part)
    array = reader.alloc(x.dtype, tuple(s.value() for s in x.sizes), None)
    reader.sizes[array] = tuple(s.key for s in x.sizes)
    if not x.ordered and x.rank > 1:
        reader.contiguous.discard(array)
    reader.laid_out_like(array, (source for source, _ in x.reads))
    reader.computed.add(array)
    nest_loops(reader, x.sizes, lambda places: write_element(reader, array, places, x.at(places)))
    if x.view_of is not None:
        doubt(reader, x.view_of, array)
    return array


def settle(reader: Reader) -> None:
    if not reader.frame.library:
        for lazy in sorted(reader.pending, key=lambda lazy: lazy.number):
            forced(reader, lazy)
        reader.pending.clear()


def nest_loops(reader: Reader, sizes: Sequence[Size], body: Callable[[Places], None], names: str = "ijklmn") -> None:
    """Nested loops over all indices of an array of these sizes."""
    ends = [end_of_axis(reader, s) for s in sizes]

    def level(axis: int, places: Places) -> None:
        if axis == len(sizes):
            body(places)
            return
        index = Value(INT, names[axis % len(names)])
        bounds = (reader.const(0), ends[axis], reader.const(1))
        with reader.block() as operations:
            level(axis + 1, (*places, index))
        reader.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=reader.span))

    level(0, ())


def end_of_axis(reader: Reader, size: Size) -> Value:
    """The end of a loop over an axis. For an empty axis it may be any negative number."""
    kind, *rest = reader.canonical(size.key)
    of: Any = rest[0]
    if kind == "-" and of[0] == "d":
        return reader.apply("subtract", reader.dim(of[1], of[2]), reader.const(rest[1]))
    return size.value()


def new_lazy(
    reader: Reader,
    dtype: str,
    sizes: Sequence[Size],
    at: Callable[[Places], Value],
    of: Sequence[Lazy],
    aligned: bool = True,
) -> Lazy:
    reads = tuple((array, same and aligned) for lazy in of for array, same in lazy.reads)
    for lazy in of:
        reader.pending.discard(lazy)
    made = Lazy(dtype, tuple(sizes), at, reads, home=reader.operations, ordered=all(lazy.ordered for lazy in of))
    reader.pending.add(made)
    return made
