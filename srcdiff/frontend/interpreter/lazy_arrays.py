"""Array expressions become loops over elements.

An expression such as `np.sum((x * w + b) ** 2)` is not computed operation by operation: each operation returns a `Lazy`
array, which knows its shape and how to write the computation of one element. The consumer, a reduction or an
assignment, writes the loop. A name always refers to a computed array.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics.naming_objects import instead_of, named
from srcdiff.frontend.domain.abstract_values import Abstract, Items, Lazy, List, Size, Static, Tuple, is_array_value
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.sizes import ONE
from srcdiff.frontend.interpreter.broadcasting import broadcast_sizes
from srcdiff.frontend.interpreter.evaluation import as_array
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.materialization import Places, forced, new_lazy
from srcdiff.frontend.interpreter.number_kinds import as_element, require_wide, wrapped
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.ir.nodes import Index, Item, Slice, Value
from srcdiff.ir.types import COMPLEX, COMPLEX64, FLOAT, FLOAT32, INT, is_inexact
from srcdiff.signature.own_arrays import speaks_array

_SINGLE = {FLOAT: FLOAT32, COMPLEX: COMPLEX64}
"""The dtypes of operations with a single-precision result."""


def as_lazy(reader: Reader, x: Abstract, node: ast.AST) -> Lazy:
    """The array, element by element."""
    if isinstance(x, Lazy):
        if x.array is None:
            return x
        x = x.array
    if isinstance(x, List | Tuple):
        x = as_array(reader, x, node)
    if not is_array_value(x):
        number = as_number(reader, x, node)
        return Lazy(number.scalar.dtype, (), lambda _: number, plain=True)
    array, keys = x, reader.keys(x)
    base, to_base = through_view(reader, array)
    sizes = tuple(Size(key, lambda axis=axis: reader.dim(array, axis)) for axis, key in enumerate(keys))  # type: ignore[misc]
    return Lazy(x.array.dtype, sizes, lambda places: reader.load(base, to_base(places)), ((array, True),), True)


def through_view(reader: Reader, array: Value) -> tuple[Value, Callable[[Places], Places]]:
    """The array below a view whose elements are at a fixed distance, and the index of an element in it.

    Only indices that are counted from the start are mapped: an index from the end of a view is another one in the
    array.
    """
    found = reader.parts.get(array)
    if found is None or not fixed_distance(reader, found[1]):
        return array, lambda places: places
    base, items = found
    outer, onwards = through_view(reader, base)

    def to_base(places: Places) -> Places:
        rest = iter(places)
        inner: list[Value] = []
        for item in items:
            if isinstance(item, Index):
                inner.append(item.value)
            elif isinstance(item, Slice):
                place = next(rest)
                inner.append(place if item.start is None else reader.apply("add", place, item.start))
            else:
                next(rest)
        return onwards((*inner, *rest))

    return outer, to_base


def fixed_distance(reader: Reader, items: tuple[Item, ...]) -> bool:
    """Whether a view omits elements only at its ends."""
    for item in items:
        if isinstance(item, Slice):
            start, step = reader.known(item.start), reader.known(item.step)
            if step not in (None, 1) or not (start is None or (isinstance(start, int) and start >= 0)):
                return False
        if isinstance(item, Index) and not (
            isinstance(reader.known(item.value), int) and reader.known(item.value) >= 0
        ):
            return False
    return True


def elementwise(
    reader: Reader, operands: Sequence[Abstract], combine: Callable[[list[Value]], Abstract], dtype: str, node: ast.AST
) -> Abstract:
    """The operation on all elements, with NumPy's broadcasting."""
    require_wide(reader, dtype, node)
    lazies = [as_lazy(reader, x, node) for x in operands]
    sizes, places, straight = broadcast_sizes(reader, lazies, node)
    lazies = [computed_once(reader, lazy, sizes, node) for lazy in lazies]
    single = dtype in ("float32", "complex64")
    if dtype == "bool" and len(lazies) == 2 and "float32" in (lazies[0].dtype, lazies[1].dtype):  # in float32
        single = promoted_dtype(reader, np.add, operands, node) == "float32"

    def at(where: Places) -> Value:
        values = [lazy.at(place(where)) for lazy, place in zip(lazies, places, strict=True)]
        if single:
            values = [reader.cast(v, _SINGLE.get(v.scalar, v.scalar)) for v in values]
        return wrapped(reader, as_element(reader, as_number(reader, combine(values), node), dtype), dtype)

    if not sizes:
        return at(())
    return new_lazy(reader, dtype, sizes, at, lazies, straight)


def computed_once(reader: Reader, lazy: Lazy, sizes: Sequence[Size], node: ast.AST) -> Lazy:
    """A broadcast operand is computed first, so that no element is computed twice."""
    if lazy.plain or not lazy.sizes:
        return lazy
    stretched = len(lazy.sizes) < len(sizes) or any(
        reader.canonical(own.key) == ONE and reader.canonical(size.key) != ONE
        for own, size in zip(lazy.sizes, sizes[len(sizes) - len(lazy.sizes) :], strict=True)
    )
    return as_lazy(reader, forced(reader, lazy), node) if stretched else lazy


def axis_size(reader: Reader, array: Value, axis: int) -> Size:
    return Size(reader.keys(array)[axis], lambda: reader.dim(array, axis))


def lengths_of(reader: Reader, array: Value | Lazy) -> tuple[Abstract, ...]:
    """The length of each axis. Lengths known at compile time are constants."""
    if isinstance(array, Lazy):
        values = [s.value() for s in array.sizes]
    else:
        values = list(reader.shape(array))
    return tuple(Static(reader.constants[v]) if v in reader.constants else v for v in values)


def holds_floats(reader: Reader, x: Abstract) -> bool:
    if isinstance(x, Lazy):
        return x.dtype.startswith(("float", "complex"))
    return (
        is_inexact(x.type) if isinstance(x, Value) else isinstance(x, Static) and isinstance(x.value, float | complex)
    )


def is_data(reader: Reader, lazy: Lazy) -> bool:
    """Whether its elements are data, not computed values, so that none has an infinite derivative."""
    if not lazy.sizes:
        return lazy.at(()) in reader.constants
    return lazy.plain and all(reader.base(array) in reader.given for array, _ in lazy.reads)


def example_of(reader: Reader, x: Abstract, node: ast.AST) -> Any:
    """A value that has the same type promotion in NumPy as `x`."""
    if isinstance(x, Static) and speaks_array(x.value):
        message = f"{named(x.value)} is used where a number or an array is needed"
        reader.refuse("SD203", node, message, help_=instead_of(type(x.value)))
    if isinstance(x, Static):
        return type(x.value)(1) if isinstance(x.value, bool | int | float | complex) else x.value
    if isinstance(x, Lazy):
        return np.ones((0,) * x.rank, x.dtype) if x.rank else np.dtype(x.dtype).type(1)
    if isinstance(x, List | Tuple):
        x = as_array(reader, x, node)
    if is_array_value(x):
        return np.ones((0,) * x.array.rank, x.array.dtype)
    value = as_number(reader, x, node)
    # Integers at run time are mostly Python's, which adopt the type of the other operand.
    return 1 if value.type == INT else np.dtype(value.scalar.dtype).type(1)


def promoted_dtype(reader: Reader, function: Callable[..., Any], operands: Sequence[Abstract], node: ast.AST) -> str:
    """The dtype of a NumPy function's result."""
    try:
        with np.errstate(all="ignore"):
            examples = [example_of(reader, x, node) for x in operands]
            shapes = [e if not (isinstance(e, np.ndarray) and e.ndim) else e.reshape(0)[:0] for e in examples]
            return str(np.asarray(function(*shapes)).dtype)
    except TypeError as error:
        reader.refuse("SD203", node, str(error).split("\n")[0])


def require_in_range(reader: Reader, x: Abstract, dtype: str) -> None:
    """Raise if a Python integer does not fit into the dtype of the elements.

    NumPy raises too, except in `np.where` before version 2.5.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iu" or kind == np.int64 or not isinstance(x, Static | Value):
        return
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    if isinstance(x, Static):
        if isinstance(x.value, int) and not least <= x.value <= most:
            reader.raise_always(OverflowError, f"Python integer {x.value} out of bounds for {dtype}")
    elif x.type == INT:
        low = reader.apply("less", x, reader.const(least))
        high = reader.apply("greater", x, reader.const(min(most, 2**63 - 1)))
        outside = reader.apply("logical_or", low, high)
        reader.raise_if(outside, OverflowError, f"a Python integer is out of bounds for {dtype}")


def known_elements(reader: Reader, x: Abstract) -> tuple[Abstract, ...] | None:
    """The elements of a list or tuple that are known one by one."""
    if isinstance(x, Tuple):
        return x.items
    if isinstance(x, List):
        held = contents_of_list(reader, x)
        return held.items if isinstance(held, Items) else None
    return None
