"""Broadcasting of the operands of an operation.

Sizes that are not known to be equal are compared at run time, and `ValueError` is raised as in NumPy. A size that is
only one at run time is broadcast, as in NumPy, if `exact` is set. Without it, the program assumes that such sizes are
equal and raises if they are not; the caller then reads it again with `exact`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Lazy, Size
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.sizes import ONE, Key
from srcdiff.frontend.domain.state import EXACT, IsWritten
from srcdiff.frontend.interpreter.materialization import Places
from srcdiff.ir.nodes import Formatted, Value
from srcdiff.ir.types import FLOAT, NEGATIVE, TOO_LARGE


def broadcast_sizes(
    reader: Reader, lazies: Sequence[Lazy], node: ast.AST, exception: type[BaseException] = ValueError
) -> tuple[tuple[Size, ...], list[Callable[[Places], Places]], bool]:
    """The common shape, a function from an index in it to one in each operand, and whether all shapes are equal."""
    rank = max((lazy.rank for lazy in lazies), default=0)
    sizes: list[Size] = []
    steps: list[list[Value | int | None]] = [[] for _ in lazies]
    for axis in range(rank):
        own = [lazy.sizes[axis - rank + lazy.rank] if axis >= rank - lazy.rank else None for lazy in lazies]
        size = common_size(reader, [s for s in own if s is not None], lazies, exception)
        sizes.append(size)
        for step, mine in zip(steps, own, strict=True):
            if mine is not None:
                step.append(axis_step(reader, mine, size))

    def to_own(steps: list[Value | int | None]) -> Callable[[Places], Places]:
        def place(where: Places) -> Places:
            last = where[len(where) - len(steps) :] if steps else ()
            return tuple(stepped(reader, i, s) for i, s in zip(last, steps, strict=True))

        return place

    straight = all(len(s) in (0, rank) and all(one is None for one in s) for s in steps)
    return tuple(sizes), [to_own(s) for s in steps], straight


def axis_step(reader: Reader, mine: Size, size: Size) -> Value | int | None:
    """The step in an operand for one step along the axis: one (None), zero, or a value known at run time."""
    own, whole = reader.canonical(mine.key), reader.canonical(size.key)
    if own == whole:
        return None
    if own == ONE:
        return 0
    is_one = reader.apply("equal", mine.value(), reader.const(1))
    return reader.apply("where", is_one, reader.const(0), reader.const(1))


def stepped(reader: Reader, index: Value, step: Value | int | None) -> Value:
    if step is None:
        return index
    return reader.const(0) if isinstance(step, int) else reader.apply("multiply", index, step)


def common_size(reader: Reader, sizes: list[Size], operands: Sequence[Lazy], exception: type[BaseException]) -> Size:
    found = sizes[0]
    for size in sizes[1:]:
        a, b = reader.canonical(found.key), reader.canonical(size.key)
        if a == b or b == ONE:
            continue
        if a == ONE:
            found = size
        elif reader.exact and (may_be_one(reader, a) or may_be_one(reader, b)):
            found = stretched_size(reader, found, size, operands)
        else:
            require_equal(reader, found, size, lambda: shapes_in_words(operands), exception)
    return found


def may_be_one(reader: Reader, key: tuple[Any, ...]) -> bool:
    return key[0] != "n" and key not in reader.not_one


def stretched_size(reader: Reader, a: Size, b: Size, operands: Sequence[Lazy]) -> Size:
    """The larger of two sizes, one of which may be one."""
    first, second = a.value(), b.value()
    one = reader.const(1)
    differ = reader.apply("not_equal", first, second)
    both = reader.apply("logical_and", reader.apply("not_equal", first, one), reader.apply("not_equal", second, one))
    raise_with(reader, reader.apply("logical_and", differ, both), ValueError, shapes_in_words(operands))
    size = reader.apply("where", reader.apply("equal", first, one), second, first)
    return Size(reader.size_key(size), lambda: size)


def require_equal(
    reader: Reader,
    a: Size,
    b: Size,
    words: Callable[[], tuple[str | Value, ...]],
    exception: type[BaseException] = ValueError,
) -> None:
    """Raise an exception if the sizes differ. Afterwards they are known to be equal."""
    if reader.canonical(a.key) == reader.canonical(b.key):
        return
    if reader.trusted:
        reader.equal_from_here(a.key, b.key)
        return
    if a.key[0] == b.key[0] == "n":
        raise_with(reader, reader.const(True), exception, words())
        return
    if not reader.exact and reader.catching(exception) is not None:
        raise IsWritten(EXACT)  # the user's `try` would catch the exception if an axis of length one is broadcast
    reader.assumes = not reader.exact
    raise_with(reader, reader.apply("not_equal", a.value(), b.value()), exception, words())
    reader.equal_from_here(a.key, b.key)


def require_shape(reader: Reader, sizes: Sequence[Value], dtype: str, text: str = NEGATIVE) -> None:
    """Raise an exception if no array has these lengths. Afterwards they are known to be lengths."""
    if reader.trusted:
        return
    for size in sizes:
        if reader.constants.get(size, 0) < 0:
            reader.raise_always(ValueError, text)
        if not reader.is_natural(size):
            reader.raise_if(reader.apply("less", size, reader.const(0)), ValueError, text)
            reader.same = {**reader.same, ("natural", size): ONE}
    require_fitting(reader, sizes, np.dtype(dtype).itemsize)


def require_fitting(reader: Reader, sizes: Sequence[Value], itemsize: int) -> None:
    """Raise an exception if an array would be larger than the address space. Existing arrays are not."""
    unknown = [s for s in sizes if s not in reader.constants]
    most = (2**63 - 1) // max(1, math.prod(reader.constants[s] for s in sizes if s in reader.constants) * itemsize)
    checked: Key = ("fits", *sorted(map(id, unknown)), most)
    if all(s in reader.lengths_of_arrays for s in unknown) or checked in reader.same:
        return
    reader.same = {**reader.same, checked: ONE}
    if len(unknown) == 1:
        too_large = reader.apply("greater", unknown[0], reader.const(most))
    else:
        product = reader.cast(unknown[0], FLOAT)
        for size in unknown[1:]:
            product = reader.apply("multiply", product, reader.cast(size, FLOAT))
        too_large = reader.apply("greater", product, reader.const(float(most)))
    reader.raise_if(too_large, ValueError, TOO_LARGE)


def raise_with(
    reader: Reader, condition: Value, exception: type[BaseException], parts: tuple[str | Value, ...]
) -> None:
    template = "".join("{}" if isinstance(p, Value) else p for p in parts)
    values = tuple(p for p in parts if isinstance(p, Value))
    reader.raise_if(condition, exception, Formatted(template, values) if values else template)


def shapes_in_words(operands: Sequence[Lazy]) -> tuple[str | Value, ...]:
    parts: list[str | Value] = ["operands could not be broadcast together with shapes"]
    for operand in operands:
        if operand.sizes:
            parts += [" ", *shape_in_words(operand)]
    return tuple(parts)


def shape_in_words(operand: Lazy) -> list[str | Value]:
    parts: list[str | Value] = ["("]
    for axis, size in enumerate(operand.sizes):
        parts += [","] if axis else []
        parts.append(str(size.key[1]) if size.key[0] == "n" else size.value())
    return [*parts, ",)" if len(operand.sizes) == 1 else ")"]


def mapped_place(reader: Reader, places: Places, steps: list[Value | int | None]) -> Places:
    last = places[len(places) - len(steps) :] if steps else ()
    return tuple(stepped(reader, i, s) for i, s in zip(last, steps, strict=True))


def require_fit(reader: Reader, source: Lazy, target: Lazy) -> None:
    """Raise `ValueError` if an array cannot be broadcast to the shape of another."""
    for own, size in zip(source.sizes, target.sizes[target.rank - source.rank :], strict=True):
        key = reader.canonical(own.key)
        if key != ONE and key != reader.canonical(size.key):
            if reader.exact and may_be_one(reader, key):
                stretched_into(reader, own, size, source, target)
            else:
                require_equal(reader, own, size, lambda: assignment_in_words(source, target))


def stretched_into(reader: Reader, own: Size, size: Size, source: Lazy, mine: Lazy) -> None:
    a, b = own.value(), size.value()
    fits = reader.apply("logical_or", reader.apply("equal", a, b), reader.apply("equal", a, reader.const(1)))
    raise_with(reader, reader.apply("logical_not", fits), ValueError, assignment_in_words(source, mine))


def assignment_in_words(source: Lazy, target: Lazy) -> tuple[str | Value, ...]:
    start = "could not broadcast input array from shape "
    return (start, *shape_in_words(source), " into shape ", *shape_in_words(target))
