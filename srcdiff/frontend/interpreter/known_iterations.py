"""Iterations over ranges, the elements of arrays, and all places of an array; sequences of the same length."""

from __future__ import annotations

import ast

from srcdiff.frontend.domain.abstract_values import Abstract, Each, Iteration, Range, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Index, Value
from srcdiff.ir.primitives import length_of_range


def _arguments(count: int) -> str:
    return "argument 1" if count == 1 else f"arguments 1-{count}"


def places_of(reader: Reader, x: Each) -> Iteration:
    """All places of an array, in one sequence."""
    lengths = [as_value(reader, n) for n in x.shape]
    total = reader.const(1)
    for length in lengths:
        total = reader.apply("multiply", total, length)

    def element(k: Abstract) -> Abstract:
        rest, indices = as_value(reader, k), list[Value]()
        for length in reversed(lengths):
            indices.insert(0, reader.apply("remainder", rest, length))
            rest = reader.apply("floor_divide", rest, length)
        place = Tuple(tuple(indices))
        return place if x.of is None else Tuple((place, reader.load(x.of, tuple(indices))))

    return Iteration(total, element)


def elements_of_array(reader: Reader, array: Value, k: Abstract) -> Abstract:
    position = as_value(reader, k)
    if array.array.rank == 1:
        return reader.load(array, (position,))
    return reader.view(array, (Index(position),))


def range_iteration(reader: Reader, x: Range) -> Iteration:
    if isinstance(x.start, Static) and isinstance(x.stop, Static) and isinstance(x.step, Static):
        length: Abstract = Static(length_of_range(x.start.value, x.stop.value, x.step.value))
    elif isinstance(x.start, Static) and x.start.value == 0 and isinstance(x.step, Static) and x.step.value == 1:
        stop = as_value(reader, x.stop)
        length = reader.apply("where", reader.apply("greater", stop, reader.const(0)), stop, reader.const(0))
    else:
        length = reader.apply(
            "range_length", as_value(reader, x.start), as_value(reader, x.stop), as_value(reader, x.step)
        )

    def element(k: Abstract) -> Abstract:
        if isinstance(k, Static) and isinstance(x.start, Static) and isinstance(x.step, Static):
            return Static(x.start.value + k.value * x.step.value)
        scaled = reader.apply("multiply", as_value(reader, k), as_value(reader, x.step))
        return reader.apply("add", as_value(reader, x.start), scaled)

    return Iteration(length, element)


def require_same_lengths(reader: Reader, lengths: list[Abstract], node: ast.AST) -> None:
    """Raise `ValueError` as `zip(..., strict=True)` does: here before the first iteration, in Python after the last."""
    values = [as_value(reader, n) for n in lengths]
    if len({reader.size_key(n) for n in values}) < 2:
        return
    if reader.context.ends_early and not reader.frame.library:
        message = "`zip` with `strict=True` is not supported in a loop that may end early"
        reader.refuse("SD102", node, message, help_="compare the lengths before the loop")
    shortest = values[0]
    for value in values[1:]:
        shortest = reader.apply("where", reader.apply("less", value, shortest), value, shortest)
    for k, value in enumerate(values[1:], 1):
        is_it = reader.apply("equal", value, shortest)
        is_shorter = reader.apply("logical_and", is_it, reader.apply("less", value, values[0]))
        reader.raise_if(is_shorter, ValueError, f"zip() argument {k + 1} is shorter than {_arguments(k)}")
    for k, value in enumerate(values[1:], 1):
        is_longer = reader.apply("greater", value, values[0])
        reader.raise_if(is_longer, ValueError, f"zip() argument {k + 1} is longer than {_arguments(k)}")
