"""Lists, tuples and numbers as arrays."""

from __future__ import annotations

import ast
import functools
import math
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    OBJECTS,
    Abstract,
    Element,
    Items,
    Lazy,
    List,
    Object,
    Static,
    Stored,
    Structured,
    Tuple,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.lattice import holds_lists
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.aliases import doubt, has_name
from srcdiff.frontend.interpreter.array_assignment import assign_array
from srcdiff.frontend.interpreter.broadcasting import require_shape
from srcdiff.frontend.interpreter.evaluation import as_array, call_named
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, known_elements
from srcdiff.frontend.interpreter.list_storage import contents_of_list, stored_contents
from srcdiff.frontend.interpreter.lists import list_copy
from srcdiff.frontend.interpreter.materialization import Places, forced, new_lazy
from srcdiff.frontend.interpreter.number_kinds import as_element, wrapped
from srcdiff.frontend.interpreter.numbers import as_integer, as_number, is_array
from srcdiff.frontend.interpreter.record_fields import new_fields, structured_dtype
from srcdiff.frontend.interpreter.representation import write_element
from srcdiff.frontend.interpreter.structured_arrays import records_copy, write_record
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.frontend.source.numba_options import numba_type
from srcdiff.ir.nodes import Block, Index, Loop, NewAxis, Slice, Value
from srcdiff.ir.types import INT, KEPT, Stack, is_inexact, is_supported_dtype, scalar_of, widest
from srcdiff.library.deques import Deque

_LONG = ("int64", "uint32")


def _flat(rows: Any) -> list[Abstract]:
    if isinstance(rows, tuple):
        return [x for row in rows for x in _flat(row)]
    return [rows]


def dtype_of(reader: Reader, dtype: Abstract, node: ast.AST) -> str:
    if isinstance(dtype, Static):
        if isinstance(dtype.value, type) and issubclass(dtype.value, np.ndarray):
            name = "np.ndarray" if dtype.value is np.ndarray else dtype.value.__name__
            message = f"an array as an instance of `{name}`, a class of arrays, is not supported"
            reader.refuse("SD203", node, message, help_="leave the class out: the array itself has the same numbers")
        try:
            found = np.dtype(numba_type(dtype.value) or dtype.value)
        except TypeError:
            reader.refuse("SD203", node, f"`{dtype.value}` is not a dtype")
        if is_supported_dtype(found):
            return str(found.name)
    held = "float32, float64, complex64, complex128, booleans, or integers that fit into int64"
    reader.refuse("SD201", node, f"an array must hold {held}")


def spelled_out(reader: Reader, x: Abstract) -> Abstract:
    """A list that spells out the dtype of a structured array, `[("mass", float), ...]`, as a constant."""
    found = _constants(reader, x) if isinstance(x, List) else MISSING
    return x if found is MISSING else Static(found)


def _constants(reader: Reader, x: Abstract) -> Any:
    """The value of nested lists and tuples of constants; `MISSING` for anything else."""
    if isinstance(x, Static):
        return x.value
    contents = contents_of_list(reader, x) if isinstance(x, List) else x
    if not isinstance(contents, Tuple | Items):
        return MISSING
    parts = [_constants(reader, item) for item in contents.items]
    if any(part is MISSING for part in parts):
        return MISSING
    return parts if isinstance(contents, Items) else tuple(parts)


def new_array_of(reader: Reader, node: ast.AST, of: Abstract, dtype: Abstract) -> Abstract:
    dtype = spelled_out(reader, dtype)
    if isinstance(of, Object) and of.kind is Deque:
        of = reader.cells[of.number, "elements"]
    if is_array_value(of) and is_none(dtype):
        return call_copy(reader, node, of)
    if isinstance(of, List) and isinstance(contents_of_list(reader, of), Stored):
        return array_of_stored(reader, of, dtype, node)
    if structured_dtype(dtype) is not None:
        return records_of(reader, node, of, dtype)
    rows = nested_shape(reader, of, node)
    if any(is_array(x) for x in _flat(rows)):
        whole = forced(reader, of) if isinstance(of, Lazy) else of
        whole = whole if isinstance(whole, Value) else call_named(reader, "stack", node, whole)
        same = is_none(dtype)
        return whole if same else forced(reader, call_astype(reader, node, whole, dtype))
    extents: list[int] = []
    level = rows
    while isinstance(level, tuple):
        extents.append(len(level))
        level = level[0] if level else Static(0.0)
    leaves = list(_flat(rows))
    if leaves and extents and all(map(is_none, leaves)) and is_none(dtype):
        return OBJECTS
    values = [as_number(reader, x, node) for x in leaves]
    if len(values) != math.prod(extents):
        reader.refuse("SD203", node, "the rows have different lengths")
    if is_none(dtype):
        kinds = {v.scalar.dtype for v in values}
        dtype = Static(np.result_type(*kinds, "float64").name if len(kinds) != 1 else kinds.pop())
    shape = Tuple(tuple(Static(e) for e in extents))
    array = new_array(reader, node, shape, None, dtype)
    assert isinstance(array, Value)
    for position, value in zip(np.ndindex(*extents), values, strict=True):
        write_element(reader, array, tuple(reader.const(p) for p in position), value)
    return array


def records_of(reader: Reader, node: ast.AST, of: Abstract, dtype: Abstract) -> Abstract:
    """A structured array from tuples, one for each record."""
    rows = known_elements(reader, of)
    if rows is None or not all(isinstance(row, Tuple) for row in rows):
        message = "a structured array can only be made of a list of tuples"
        reader.refuse("SD203", node, message, help_="make it with `np.zeros(n, dtype)`, and assign its fields")
    whole = new_array(reader, node, Static(len(rows)), Static(0.0), dtype)
    assert isinstance(whole, Structured)
    for k, row in enumerate(rows):
        write_record(reader, Element((whole, reader.const(k))), row, node)
    return whole


def array_of_stored(reader: Reader, of: List, dtype: Abstract, node: ast.AST) -> Abstract:
    """An array from a list of a length known at run time."""
    contents = stored_contents(reader, of)
    are_rows = holds_lists(contents.element) and len(contents.arrays) == 2
    if (
        not contents.arrays
        or isinstance(contents.arrays[0].type, Stack)
        or (len(contents.arrays) != 1 and not are_rows)
    ):
        return call_named(reader, "stack", node, of, dtype=dtype)
    used = reader.view(contents.arrays[0], (*map(Index, contents.at), Slice(None, contents.length, None)))
    if are_rows:
        used = reader.view(used, (Slice(None, None, None), Slice(None, width_of(reader, contents), None)))
    same = is_none(dtype)
    return reader.copy(used) if same else forced(reader, call_astype(reader, node, used, dtype))


def width_of(reader: Reader, rows: Stored) -> Value:
    """The common length of the lists in a list of lists."""
    lengths = rows.arrays[-1]
    empty = reader.apply("less_equal", rows.length, reader.const(0))
    reader.raise_if(empty, ValueError, "the list of lists is empty, so the length of the second axis is not known")
    width, index = reader.load(lengths, (reader.const(0),)), Value(INT, "i")
    with reader.block() as operations:
        other = reader.apply("not_equal", reader.load(lengths, (index,)), width)
        reader.raise_if(other, ValueError, "the lists have different lengths")
    bounds = (reader.const(0), rows.length, reader.const(1))
    reader.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=reader.span))
    return width


def nested_shape(reader: Reader, x: Abstract, node: ast.AST) -> Any:
    if isinstance(x, List):
        contents = contents_of_list(reader, x)
        if not isinstance(contents, Items):
            message = "a nested list whose length is known only at run time cannot be converted to an array"
            reader.refuse("SD303", node, message)
        return tuple(nested_shape(reader, i, node) for i in contents.items)
    if isinstance(x, Tuple):
        return tuple(nested_shape(reader, i, node) for i in x.items)
    return x


def static_integers(reader: Reader, x: Abstract, node: ast.AST) -> tuple[int, ...]:
    """Integers known at compile time: axes."""
    items = x.items if isinstance(x, Tuple) else (x,)
    if not all(isinstance(i, Static) and isinstance(i.value, int) for i in items):
        reader.refuse("SD205", node, "the axes must be known at compile time")
    return tuple(i.value for i in items if isinstance(i, Static))


def the_array(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    """The computed array. Lists become arrays."""
    x = forced(reader, x)
    if isinstance(x, List | Tuple):
        return as_array(reader, x, node)
    if not is_array_value(x):
        reader.refuse("SD203", node, f"{in_words(reader, x)} is used where an array is needed")
    return x


def new_array(
    reader: Reader, node: ast.AST, shape: Abstract, fill: Abstract | None, dtype: Abstract, like: Value | None = None
) -> Abstract:
    dtype = spelled_out(reader, dtype)
    records = structured_dtype(dtype)
    if records is not None:
        axes = known_elements(reader, shape)
        return new_fields(axes or (shape,), records, lambda own, kind: new_array(reader, node, own, fill, kind))
    name = dtype_of(reader, dtype, node)
    extents = known_elements(reader, shape)
    sizes = tuple(as_integer(reader, e, node) for e in ((shape,) if extents is None else extents))
    if like is None and not reader.frame.library:
        require_shape(reader, sizes, name)
    value = None
    if fill is not None and (is_array(fill) or isinstance(fill, List | Tuple)):
        array = reader.alloc(name, sizes, None, like=like)
        assign_array(reader, array, fill, node)
        return array
    if fill is not None:
        number = as_number(reader, fill, node)
        element = scalar_of(name)
        value = reader.cast(number, widest(element) if is_inexact(element) else element)
    return reader.alloc(name, sizes, value, like=like)


@handles(np.array)
def call_array(
    reader: Reader,
    node: ast.AST,
    object: Abstract,  # noqa: A002 - NumPy's name
    dtype: Abstract = Static(None),
    copy: Abstract = Static(True),
    order: Abstract = Static("K"),
    subok: Abstract = Static(False),
    ndmin: Abstract = Static(0),
) -> Abstract:
    """`np.array` of numbers in (nested) lists or tuples, or of an array."""
    if copy == Static(True):
        array = new_array_of(reader, node, object, dtype)
        array = in_memory_order(reader, array, Static("C") if order == Static("K") else order, node)
    else:
        array = call_asarray(reader, node, object, dtype, order)
        if copy == Static(False) and array is not object:
            message = "`copy=False` is not supported here, because the conversion may have to copy the array"
            reader.refuse("SD303", node, message)
    rank = array.array.rank if is_array_value(array) else 0
    missing = tuple(Static(k) for k in range(static_integers(reader, ndmin, node)[0] - rank))
    return call_expand_dims(reader, node, array, Tuple(missing)) if missing else array


@handles(np.copy)
def call_copy(reader: Reader, node: ast.AST, a: Abstract) -> Abstract:
    if isinstance(a, Structured | Element):
        return records_copy(reader, node, a)
    if is_array_value(a):
        return reader.laid_out_like(reader.copy(a), (a,))
    if isinstance(a, List):
        return list_copy(reader, node, a)
    reader.refuse("SD203", node, f"{in_words(reader, a)} is used where an array is needed")


@handles(np.astype, lazy=True)
def call_astype(reader: Reader, node: ast.AST, a: Abstract, dtype: Abstract, copy: Abstract = Static(True)) -> Abstract:
    name = dtype_of(reader, dtype, node)
    source = as_lazy(reader, a, node)
    if source.dtype == name and copy == Static(False):
        return a
    wide = name in (*KEPT, "int64")

    def at(places: Places) -> Value:
        value = source.at(places)
        return wrapped(reader, as_element(reader, value, name), name if source.dtype in _LONG else source.dtype)

    if not wide and source.dtype != name and name not in ("int32", "intp"):
        reader.refuse(
            "SD201",
            node,
            f"a conversion to {name} wraps around, which is not supported",
            help_="use np.int64 or a float type",
        )
    made = new_lazy(reader, name, source.sizes, at, [source])
    return made if source.sizes else at(())


@handles(np.asarray, np.asanyarray)
def call_asarray(
    reader: Reader, node: ast.AST, a: Abstract, dtype: Abstract = Static(None), order: Abstract = Static(None)
) -> Abstract:
    known = known_order(reader, order, node)
    if known in ("C", "F"):
        in_order = (
            functools.partial(call_ascontiguousarray, reader)
            if known == "C"
            else functools.partial(call_asfortranarray, reader)
        )
        return in_order(node, a, dtype)
    if is_array_value(a):
        same = is_none(dtype)
        if same or dtype_of(reader, dtype, node) == a.array.dtype:
            return a
    return new_array_of(reader, node, a, dtype)


@handles(np.asfortranarray)
def call_asfortranarray(reader: Reader, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:
    """An array in Fortran order. One that is in this order already is not copied."""
    found = call_asarray(reader, node, a, dtype)
    if not (is_array_value(found) and found.array.rank > 1):
        return found
    copied = reader.copy(found)
    reader.contiguous.discard(copied)
    if found is a:
        doubt(reader, found, copied)
    return copied


def in_memory_order(reader: Reader, array: Abstract, order: Abstract, node: ast.AST) -> Abstract:
    """A new array with the memory layout that NumPy chooses for `order`."""
    if known_order(reader, order, node) not in ("C", None) and isinstance(array, Value) and array.array.rank > 1:
        reader.contiguous.discard(array)
    return array


def known_order(reader: Reader, order: Abstract, node: ast.AST) -> Any:
    if not (isinstance(order, Static) and order.value in ("C", "F", "A", "K", None)):
        reader.refuse("SD205", node, "`order` must be known at compile time")
    return order.value


@handles(np.ascontiguousarray)
def call_ascontiguousarray(reader: Reader, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:
    found = call_asarray(reader, node, a, dtype)
    return contiguous_or_copy(reader, found) if isinstance(found, Value) and found is a else found


def contiguous_or_copy(reader: Reader, array: Value) -> Value:
    """The array itself if it is contiguous, otherwise a copy, as in NumPy."""
    if array in reader.contiguous or (array in reader.computed and not has_name(reader, array)):
        return array
    copied = reader.copy(array)
    doubt(reader, array, copied)
    return copied


@handles(np.expand_dims)
def call_expand_dims(reader: Reader, node: ast.AST, a: Abstract, axis: Abstract) -> Abstract:
    axes = static_integers(reader, axis, node)
    a = forced(reader, a)
    if not is_array(a):
        number = as_number(reader, a, node)
        array = reader.alloc(number.scalar.dtype, tuple(reader.const(1) for _ in axes), None)
        write_element(reader, array, tuple(reader.const(0) for _ in axes), number)
        return array
    array = the_array(reader, a, node)
    rank = array.array.rank + len(axes)
    places = {x % rank for x in axes}
    return reader.view(array, tuple(NewAxis() if k in places else Slice(None, None, None) for k in range(rank)))
