"""The helpers that the library uses beyond Python and NumPy, see library/language.py."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Closure,
    Each,
    Lazy,
    List,
    Size,
    Static,
    Transformed,
    Tuple,
    is_chosen_text,
    is_none,
)
from srcdiff.frontend.domain.lattice import are_objects
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.sizes import ONE
from srcdiff.frontend.interpreter.array_conversion import dtype_of, static_integers, the_array
from srcdiff.frontend.interpreter.broadcasting import (
    axis_step,
    broadcast_sizes,
    mapped_place,
    may_be_one,
    raise_with,
    require_equal,
    require_shape,
)
from srcdiff.frontend.interpreter.evaluation import as_array, call_value
from srcdiff.frontend.interpreter.index_arrays import (
    assign_part,
    check_positions,
    picks,
    read_picked,
    require_apart,
    write_picked,
)
from srcdiff.frontend.interpreter.indexing import items_of
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, known_elements, promoted_dtype
from srcdiff.frontend.interpreter.materialization import Places, new_lazy
from srcdiff.frontend.interpreter.number_kinds import as_element
from srcdiff.frontend.interpreter.numbers import as_integer, as_number, is_array
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.ir.nodes import Index, Item, Slice, Value
from srcdiff.ir.types import Array, Scalar, scalar_of
from srcdiff.library import language

_WHOLE = Slice(None, None, None)


_PARTS_OF_ONE = {(None, 1, None), (-1, None, None), *((k, k + 1, None) for k in (*range(32), *range(-32, -1)))}
"""`a[:1]`, `a[-1:]`, `a[k : k + 1]`."""


_OPERATORS: dict[Any, type[ast.operator]] = {
    np.add: ast.Add,
    np.subtract: ast.Sub,
    np.multiply: ast.Mult,
    np.divide: ast.Div,
    np.power: ast.Pow,
}


def _element(dtype: str) -> Scalar:
    return scalar_of(dtype)


@handles(language.array_like, lazy=True)
def call_array_like(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    if is_array(x):
        return x
    if isinstance(x, Static) or (isinstance(x, Value) and not (isinstance(x.type, Array) and x.type.rank)):
        return as_lazy(reader, x, node)
    return as_array(reader, x, node)


@handles(language.first_result)
def call_first_result(reader: Reader, node: ast.AST, function: Abstract, *args: Abstract) -> Abstract:
    before = reader.became_floats
    result = call_value(reader, function, list(args), node)
    if reader.became_floats != before:
        message = (
            "the function returns an integer on one path and a float on another, but NumPy gives all results one type"
        )
        reader.refuse("SD203", node, message, help_="return floats only: `0.0` instead of `0`")
    return result


@handles(language.counted)
def call_counted(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return Static(known_elements(reader, x) is not None)


@handles(language.part)
def call_part(
    reader: Reader,
    node: ast.AST,
    a: Abstract,
    axis: Abstract,
    start: Abstract,
    stop: Abstract,
    step: Abstract = Static(None),
) -> Abstract:
    array = the_array(reader, a, node)
    bounds = (None if is_none(x) else as_integer(reader, x, node) for x in (start, stop, step))
    return reader.view(array, (*elements_before(reader, axis, node), Slice(*bounds)))


def elements_before(reader: Reader, axis: Abstract, node: ast.AST) -> tuple[Item, ...]:
    return (_WHOLE,) * static_integers(reader, axis, node)[0]


@handles(language.at_axis)
def call_at_axis(reader: Reader, node: ast.AST, a: Abstract, axis: Abstract, position: Abstract) -> Abstract:
    array = the_array(reader, a, node)
    items = elements_before(reader, axis, node)
    if picks(position):
        return read_picked(reader, array, [*items, position], node)
    index = Index(as_integer(reader, position, node))
    if array.array.rank == 1:
        return reader.load(array, (index.value,))
    return reader.view(array, (*items, index))


@handles(language.agree)
def call_agree(reader: Reader, node: ast.AST, n: Abstract, m: Abstract, message: Abstract) -> Abstract:
    text = message.value if isinstance(message, Static) else ""
    first, second = size_of(reader, n, node), size_of(reader, m, node)
    require_equal(reader, first, second, lambda: (f"{text}: ", first.value(), " and ", second.value()))
    return Static(None)


@handles(language.checked)
def call_checked_shape(reader: Reader, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
    lengths = [as_integer(reader, x, node) for x in (shape.items if isinstance(shape, Tuple) else (shape,))]
    require_shape(reader, lengths, dtype_of(reader, dtype, node))
    return shape


@handles(language.at_least_zero)
def call_at_least_zero(reader: Reader, node: ast.AST, n: Abstract) -> Abstract:
    value = as_integer(reader, n, node)
    if reader.is_natural(value):
        return value
    zero = reader.const(0)
    return reader.apply("where", reader.apply("greater", value, zero), value, zero)


def size_of(reader: Reader, x: Abstract, node: ast.AST) -> Size:
    value = as_integer(reader, x, node)
    return Size(reader.size_key(value), lambda: value)


@handles(language.check_positions, lazy=True)
def call_check_positions(reader: Reader, node: ast.AST, positions: Abstract, size: Abstract) -> Abstract:
    check_positions(reader, as_lazy(reader, positions, node), size_of(reader, size, node))
    return Static(None)


@handles(language.require_apart, lazy=True)
def call_require_apart(reader: Reader, node: ast.AST, a: Abstract, values: Abstract) -> Abstract:
    require_apart(reader, the_array(reader, a, node), values, node)
    return Static(None)


@handles(language.axes_of_length_one)
def call_axes_of_length_one(reader: Reader, node: ast.AST, a: Abstract) -> Abstract:
    """The axes known to have length one. That the others do not is checked; on failure the program is read exactly."""
    array = the_array(reader, a, node)
    found: list[int] = []
    for axis, key in enumerate(reader.keys(array)):
        guess = key == ONE or (key[0] == "s" and key[2:] in _PARTS_OF_ONE)
        if guess:
            found.append(axis)
        if may_be_one(reader, key):
            if reader.catching(ValueError) is not None:
                message = "whether an axis has length one is not known here, and this `try` catches a `ValueError`"
                reader.refuse("SD101", node, message, help_="pass `axis`")
            reader.assumes = not reader.exact
            differs = reader.apply("not_equal" if guess else "equal", reader.dim(array, axis), reader.const(1))
            length = "does not have length one" if guess else "has length one"
            text = f"axis {axis} {length}, which was not known at compile time: pass `axis`"
            raise_with(reader, differs, ValueError, (text,))
    return Tuple(tuple(Static(axis) for axis in found))


@handles(language.result_type, lazy=True)
def call_result_type(reader: Reader, node: ast.AST, *operands: Abstract) -> Abstract:
    return Static(np.dtype(promoted_dtype(reader, lambda *x: np.empty(0, np.result_type(*x)), operands, node)))


@handles(language.view_from_places, lazy=True)
def call_view_from_places(reader: Reader, node: ast.AST, a: Abstract, shape: Abstract, function: Abstract) -> Abstract:
    source = as_lazy(reader, a, node)
    made = call_from_places(reader, node, shape, Static(source.dtype), function)
    assert isinstance(made, Lazy)
    reader.pending.discard(source)
    made.reads = tuple((array, False) for array, _ in source.reads)
    made.plain = source.plain
    made.view_of = a if isinstance(a, Value) else None
    return made


@handles(language.from_places)
def call_from_places(reader: Reader, node: ast.AST, shape: Abstract, dtype: Abstract, function: Abstract) -> Abstract:
    name = dtype_of(reader, dtype, node)
    sizes = [size_of(reader, x, node) for x in (shape.items if isinstance(shape, Tuple) else (shape,))]

    def at(places: Places) -> Value:
        return as_element(reader, as_number(reader, call_value(reader, function, list(places), node), node), name)

    made = new_lazy(reader, name, sizes, at, [])
    made.plain = True
    return made


@handles(language.ufunc_at, lazy=True)
def call_ufunc_at(
    reader: Reader, node: ast.AST, ufunc: Abstract, a: Abstract, indices: Abstract, b: Abstract = Static(1)
) -> Abstract:
    """`np.add.at`: updates in order, so that an index that occurs twice gets both."""
    assert isinstance(ufunc, Static)
    op = _OPERATORS.get(ufunc.value, ufunc.value)
    array = the_array(reader, a, node)
    found = indices.items if isinstance(indices, Tuple) else (indices,)
    items = items_of(reader, array, list(found), node)
    if all(isinstance(i, Slice | Index) for i in items):
        assign_part(reader, array, items, b, node, op)
    else:
        write_picked(reader, array, items, b, node, op, one_by_one=True)
    return Static(None)


@handles(np.ndindex, language.each)
def call_each(reader: Reader, node: ast.AST, *shape: Abstract) -> Abstract:
    items = shape[0].items if len(shape) == 1 and isinstance(shape[0], Tuple) else shape
    return Each(items)


@handles(np.broadcast_shapes, language.common_shape)
def call_common_shape(reader: Reader, node: ast.AST, *shapes: Abstract) -> Abstract:
    """The shape to which arrays of these shapes are broadcast."""
    sizes, _, _ = broadcast_sizes(reader, [of_shape(reader, s, node) for s in shapes], node)
    return Tuple(tuple(Static(s.key[1]) if s.key[0] == "n" else s.value() for s in sizes))


def of_shape(reader: Reader, shape: Abstract, node: ast.AST) -> Lazy:
    """An abstract array with this shape and no elements."""
    items = shape.items if isinstance(shape, Tuple) else (shape,)
    values = [as_integer(reader, x, node) for x in items]
    sizes = tuple(Size(reader.size_key(v), lambda v=v: v) for v in values)  # type: ignore[misc]
    return Lazy("float64", sizes, lambda _: reader.const(0.0))


@handles(language.stretched)
def call_stretched(reader: Reader, node: ast.AST, place: Abstract, whole: Abstract, shape: Abstract) -> Abstract:
    """The index in an array of this shape, from an index in the shape to which it is broadcast."""
    assert isinstance(place, Tuple)
    mine, all_ = of_shape(reader, shape, node), of_shape(reader, whole, node)
    steps = [
        axis_step(reader, own, size) for own, size in zip(mine.sizes, all_.sizes[all_.rank - mine.rank :], strict=True)
    ]
    return Tuple(mapped_place(reader, tuple(as_integer(reader, i, node) for i in place.items), steps))


@handles(language.zero)
def call_zero(reader: Reader, node: ast.AST, dtype: Abstract) -> Abstract:
    return reader.cast(reader.const(0.0), _element(dtype_of(reader, dtype, node)))


@handles(language.known, lazy=True)
def call_known(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return Static(isinstance(x, Static))


@handles(language.is_function, lazy=True)
def call_is_function(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    if isinstance(x, Choice) and (are_objects(x.options) or is_chosen_text(x)):
        return Static(False)
    return Static(isinstance(x, Closure | Choice | Transformed) or (isinstance(x, Static) and callable(x.value)))


@handles(language.is_array, lazy=True)
def call_is_array(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return Static(is_array(x) or isinstance(x, List | Tuple))
