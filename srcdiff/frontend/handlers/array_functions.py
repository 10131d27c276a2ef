"""Creation of arrays, and views of arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Each,
    Lazy,
    List,
    Size,
    Static,
    Structured,
    Tuple,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.handlers.builtin_functions import call_list
from srcdiff.frontend.interpreter.arithmetic import binary, number_of_elements
from srcdiff.frontend.interpreter.array_conversion import (
    call_array,
    call_astype,
    call_expand_dims,
    contiguous_or_copy,
    dtype_of,
    in_memory_order,
    new_array,
    static_integers,
    the_array,
)
from srcdiff.frontend.interpreter.broadcasting import axis_step, mapped_place, raise_with, require_fit, require_shape
from srcdiff.frontend.interpreter.complex_functions import parts
from srcdiff.frontend.interpreter.evaluation import as_array, call_named
from srcdiff.frontend.interpreter.index_arrays import choose_elements, positions_of
from srcdiff.frontend.interpreter.indexing import view_of_element
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import (
    as_lazy,
    computed_once,
    elementwise,
    known_elements,
    lengths_of,
    promoted_dtype,
    require_in_range,
)
from srcdiff.frontend.interpreter.materialization import forced, new_lazy
from srcdiff.frontend.interpreter.number_kinds import unheld
from srcdiff.frontend.interpreter.numbers import as_integer, as_number, is_array
from srcdiff.frontend.interpreter.record_fields import is_record, parted
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import handles, method
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import FLOAT, Array, is_complex, is_inexact, widest


def _commas(sizes: Sequence[Value]) -> list[str | Value]:
    parts: list[str | Value] = []
    for k, size in enumerate(sizes):
        parts += [",", size] if k else [size]
    return parts


def _filled(fill: Static | None) -> Callable[..., Abstract]:
    def make(
        reader: Reader, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float), order: Abstract = Static("C")
    ) -> Abstract:
        return in_memory_order(reader, new_array(reader, node, shape, fill, dtype), order, node)

    return make


def _filled_like(fill: Static | None) -> Callable[..., Abstract]:
    def make(
        reader: Reader,
        node: ast.AST,
        a: Abstract,
        dtype: Abstract = Static(None),
        order: Abstract = Static("K"),
        subok: Abstract = Static(True),
        shape: Abstract = Static(None),
    ) -> Abstract:
        return new_like(reader, node, a, fill, dtype, order, shape)

    return make


handles(np.zeros)(_filled(Static(0.0)))
handles(np.ones)(_filled(Static(1.0)))
handles(np.empty, np.ndarray)(_filled(None))
handles(np.zeros_like)(_filled_like(Static(0.0)))
handles(np.ones_like)(_filled_like(Static(1.0)))
handles(np.empty_like)(_filled_like(None))


@handles(np.full)
def call_full(
    reader: Reader,
    node: ast.AST,
    shape: Abstract,
    fill_value: Abstract,
    dtype: Abstract = Static(None),
    order: Abstract = Static("C"),
) -> Abstract:
    if is_array(fill_value):
        filled = call_broadcast_to(reader, node, fill_value, shape)
        made = forced(reader, filled if is_none(dtype) else call_astype(reader, node, filled, dtype))
    else:
        kind = Static(as_lazy(reader, fill_value, node).dtype) if is_none(dtype) else dtype
        made = new_array(reader, node, shape, fill_value, kind)
    return in_memory_order(reader, made, order, node)


def new_like(
    reader: Reader, node: ast.AST, x: Abstract, fill: Abstract | None, dtype: Abstract, order: Abstract, shape: Abstract
) -> Abstract:
    if isinstance(x, Structured) and not is_record(x):
        return parted(x, lambda a: new_like(reader, node, a, fill, dtype, order, shape), 0)
    if not is_array_value(x):
        x = the_array(reader, call_array(reader, node, x), node)
        assert isinstance(x.type, Array)
    same_type, same_shape = is_none(dtype), is_none(shape)
    kind = Static(x.array.dtype) if same_type else dtype
    lengths = Tuple(reader.shape(x)) if same_shape else shape
    made = new_array(reader, node, lengths, fill, kind, x if same_type and same_shape else None)
    array = reader.laid_out_like(the_array(reader, made, node), (x,))
    return in_memory_order(reader, array, Static("C") if order == Static("K") else order, node)


@handles(np.full_like)
def call_full_like(
    reader: Reader,
    node: ast.AST,
    a: Abstract,
    fill_value: Abstract,
    dtype: Abstract = Static(None),
    order: Abstract = Static("K"),
    subok: Abstract = Static(True),
    shape: Abstract = Static(None),
) -> Abstract:
    return new_like(reader, node, a, fill_value, dtype, order, shape)


@handles(np.shape, lazy=True)
def call_shape(reader: Reader, node: ast.AST, a: Abstract) -> Abstract:
    if isinstance(a, List | Tuple):
        a = as_array(reader, a, node)
    return Tuple(lengths_of(reader, a)) if isinstance(a, Lazy | Value) and is_array(a) else Tuple(())


@handles(np.ndim, lazy=True)
def call_ndim(reader: Reader, node: ast.AST, a: Abstract) -> Abstract:
    shape = call_shape(reader, node, a)
    assert isinstance(shape, Tuple)
    return Static(len(shape.items))


@handles(np.size, lazy=True)
def call_size(reader: Reader, node: ast.AST, a: Abstract, axis: Abstract = Static(None)) -> Abstract:
    total: Abstract = Static(1)
    shape = call_shape(reader, node, a)
    assert isinstance(shape, Tuple)
    rank = len(shape.items)
    axes = range(rank) if is_none(axis) else [k % rank for k in static_integers(reader, axis, node)]
    for n in (shape.items[k] for k in axes):
        total = binary(reader, ast.Mult, total, n, node)
    return total


@handles(np.transpose)
def call_transpose(reader: Reader, node: ast.AST, a: Abstract, axes: Abstract = Static(None)) -> Abstract:
    if not is_array_value(a):
        reader.refuse("SD203", node, f"{in_words(reader, a)} cannot be transposed")
    rank = a.array.rank
    if is_none(axes):
        return reader.transposed(a, tuple(reversed(range(rank))))
    order = tuple(x.value for x in known_elements(reader, axes) or () if isinstance(x, Static))
    if sorted(o % rank for o in order) != list(range(rank)):
        reader.refuse("SD205", node, "the axes must be known at compile time")
    return reader.transposed(a, tuple(o % rank for o in order))


@handles(np.round, np.around)
def call_round_array(reader: Reader, node: ast.AST, a: Abstract, decimals: Abstract = Static(0)) -> Abstract:
    """Rounding to decimals. It is flat almost everywhere, so its derivative is zero."""
    if not is_array(a):
        a = as_number(reader, a, node)
        a = a if is_complex(a.type) else reader.cast(a, FLOAT)
    if isinstance(decimals, Static) and decimals.value == 0:
        return call_named(reader, "rint", node, a)
    places = as_integer(reader, decimals, node)

    def rounded(values: list[Value]) -> Value:
        (x,) = values
        if not is_complex(x.type):
            return reader.apply("round", reader.cast(x, FLOAT), places)
        real, imag = (reader.apply("round", reader.cast(part, FLOAT), places) for part in parts(reader, x))
        return reader.cast(reader.apply("complex", real, imag), x.type)

    if not is_array(a):
        return rounded([as_value(reader, a)])
    return elementwise(reader, (a,), rounded, promoted_dtype(reader, np.round, (a,), node), node)


@handles(np.where, lazy=True)
def call_where(
    reader: Reader, node: ast.AST, condition: Abstract, x: Abstract | None = None, y: Abstract | None = None
) -> Abstract:
    if x is None or y is None:
        return Tuple(positions_of(reader, as_lazy(reader, condition, node), node))
    dtype = promoted_dtype(reader, lambda a, b: np.where(True, a, b), (x, y), node)
    require_in_range(reader, x, dtype)
    require_in_range(reader, y, dtype)
    return choose_elements(reader, condition, x, y, dtype, node)


@handles(np.reshape)
def call_reshape(
    reader: Reader, node: ast.AST, a: Abstract, shape: Abstract, order: Abstract = Static("C")
) -> Abstract:
    array = the_array(reader, a, node)
    sizes = new_shape(reader, array, shape, node)
    if not sizes:  # an array of one element
        return view_of_element(reader, array, (reader.const(0),) * array.array.rank)
    if isinstance(order, Static) and order.value == "F":
        array, sizes = reversed_axes(reader, array), tuple(reversed(sizes))
    elif not (isinstance(order, Static) and order.value == "C"):
        reader.refuse("SD203", node, "only the orders 'C' and 'F' are supported", help_="transpose the array first")
    reshaped = reader.reshaped(contiguous_or_copy(reader, array), sizes)
    return reshaped if order == Static("C") else reversed_axes(reader, reshaped)


@method("array", "copy")
def array_copy(reader: Reader, node: ast.AST, array: Value) -> Abstract:
    return reader.copy(array)


def reversed_axes(reader: Reader, array: Value) -> Value:
    return reader.transposed(array, tuple(reversed(range(array.array.rank)))) if array.array.rank > 1 else array


def new_shape(reader: Reader, array: Value, shape: Abstract, node: ast.AST) -> tuple[Value, ...]:
    """The sizes of a reshaped array. One of them may be computed from the others."""
    known = known_elements(reader, shape)
    items = (shape,) if known is None else known
    total = as_value(reader, number_of_elements(reader, array))
    unknown = [k for k, x in enumerate(items) if isinstance(x, Static) and x.value < 0]
    sizes = [as_integer(reader, x, node) for x in items]
    product = reader.const(1)
    for k, size in enumerate(sizes):
        product = product if k in unknown else reader.apply("multiply", product, size)
    words = ("cannot reshape array of size ", total, " into shape (", *_commas(sizes), ")")
    if len(unknown) > 1:
        raise_with(reader, reader.const(True), ValueError, ("can only specify one unknown dimension",))
    if unknown:
        empty = reader.apply("equal", product, reader.const(0))
        raise_with(reader, empty, ValueError, words)
        sizes[unknown[0]] = reader.apply("floor_divide", total, product)
        left = reader.apply("remainder", total, product)
        raise_with(reader, reader.apply("not_equal", left, reader.const(0)), ValueError, words)
    else:
        raise_with(reader, reader.apply("not_equal", product, total), ValueError, words)
    if len(items) == 1 and unknown:
        sizes = [total]
    return tuple(sizes)


@handles(np.ravel)
def call_ravel(reader: Reader, node: ast.AST, a: Abstract, order: Abstract = Static("C")) -> Abstract:
    a = forced(reader, a)
    if not is_array(a) and not isinstance(a, List | Tuple):
        return call_expand_dims(reader, node, a, Static(0))
    array = the_array(reader, a, node)
    return array if array.array.rank == 1 else call_reshape(reader, node, array, Static(-1), order)


@method("array", "reshape")
def array_reshape(
    reader: Reader, node: ast.AST, array: Value, *shape: Abstract, order: Abstract = Static("C")
) -> Abstract:
    return call_reshape(reader, node, array, shape[0] if len(shape) == 1 else Tuple(shape), order)


@handles(np.broadcast_to, lazy=True)
def call_broadcast_to(reader: Reader, node: ast.AST, array: Abstract, shape: Abstract) -> Abstract:
    """A view that repeats the array. It is read-only."""
    items = shape.items if isinstance(shape, Tuple) else (shape,)
    sizes = [as_integer(reader, x, node) for x in items]
    source = as_lazy(reader, array, node)
    if not reader.frame.library:
        require_shape(reader, sizes, source.dtype, "all elements of broadcast shape must be non-negative")
    whole = [Size(reader.size_key(s), lambda s=s: s) for s in sizes]  # type: ignore[misc]
    source = computed_once(reader, source, whole, node)
    if source.rank > len(whole):
        reader.refuse("SD203", node, f"an array with {source.rank} axes cannot be broadcast to {len(whole)} axes")
    target = Lazy(source.dtype, tuple(whole), lambda _: reader.const(0))
    pairs = list(zip(source.sizes, whole[len(whole) - source.rank :], strict=True))
    require_fit(reader, source, target)
    steps = [axis_step(reader, own, size) for own, size in pairs]
    straight = source.rank == len(whole) and all(s is None for s in steps)
    made = new_lazy(
        reader, source.dtype, whole, lambda p: source.at(mapped_place(reader, p, steps)), [source], straight
    )
    made.plain = source.plain
    made.view_of = source.reads[0][0] if source.plain and source.reads else None
    return made


@method("array", "transpose")
def array_transpose(reader: Reader, node: ast.AST, array: Value, *axes: Abstract) -> Abstract:
    return call_transpose(reader, node, array, Tuple(axes) if len(axes) > 1 else axes[0] if axes else Static(None))


@method("array", "item")
def array_item(reader: Reader, node: ast.AST, array: Value, *where: Abstract) -> Abstract:
    if where and len(where) != array.array.rank:
        reader.refuse("SD203", node, "`item` needs one index for each axis")
    if not where:
        several = reader.apply("not_equal", as_value(reader, number_of_elements(reader, array)), reader.const(1))
        reader.raise_if(several, ValueError, "can only convert an array of size 1 to a Python scalar")
        where = tuple(Static(0) for _ in range(array.array.rank))
    value = reader.load(array, tuple(as_integer(reader, w, node) for w in where))  # the result is Python's number
    return reader.cast(value, widest(value.type)) if is_inexact(value.type) else unheld(reader, value)


@method("array", "view")
def array_view(reader: Reader, node: ast.AST, array: Value, dtype: Abstract = Static(None)) -> Abstract:
    """A view of the same numbers. One that takes the memory for numbers of another type is refused."""
    own = array.array.dtype
    if is_none(dtype) or dtype_of(reader, dtype, node) == own:
        return reader.view(array, tuple(Slice(None, None, None) for _ in range(array.array.rank)))
    help_ = "`.astype(...)` converts the numbers"
    if is_complex(array.type):
        help_ = "`z.real` and `z.imag` are views of the parts; `np.stack((z.real, z.imag), axis=-1)` has both"
    elif dtype_of(reader, dtype, node).startswith("complex"):
        help_ = "compute the numbers: `x[..., ::2] + 1j * x[..., 1::2]`"
    reader.refuse("SD303", node, f"a view of {own} numbers as numbers of another type is not supported", help_=help_)


@method("array", "tolist")
def array_tolist(reader: Reader, node: ast.AST, array: Value) -> Abstract:
    if array.array.rank > 1:
        message = "`tolist` of an array with several axes is not supported"
        reader.refuse("SD102", node, message, help_="loop over the rows: `for row in a`")
    return call_list(reader, node, array)


@handles(np.ndenumerate)
def call_ndenumerate(reader: Reader, node: ast.AST, arr: Abstract) -> Abstract:
    array = the_array(reader, arr, node)
    return Each(lengths_of(reader, array), array)
