"""Functions and methods that create and view arrays."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcdiff.frontend.abstract_values import Abstract, Items, Lazy, List, Size, Static, Stored, Tuple, holds_lists
from srcdiff.frontend.array_expressions import Places, Update, WholeArrays
from srcdiff.ir.nodes import Block, Index, Item, Loop, NewAxis, Slice, Value
from srcdiff.ir.types import FLOAT, INT, Array, Scalar, Stack, is_float, is_supported_dtype


class Arrays(WholeArrays):
    """Reads calls that make and view arrays."""

    def dtype_of(self, dtype: Abstract, node: ast.AST) -> str:
        if isinstance(dtype, Static):
            try:
                found = np.dtype(dtype.value)
            except TypeError:
                self.refuse("SD203", node, f"`{dtype.value}` is not a dtype")
            if is_supported_dtype(found):
                return str(found.name)
        held = "float32, float64, booleans, or integers that fit into int64"
        self.refuse("SD201", node, f"an array must hold {held}")

    def new_array(
        self, node: ast.AST, shape: Abstract, fill: Abstract | None, dtype: Abstract, like: Value | None = None
    ) -> Abstract:
        name = self.dtype_of(dtype, node)
        extents = self.contents(shape)
        sizes = tuple(self.integer(e, node) for e in ((shape,) if extents is None else extents))
        if like is None and not self.frame.library:
            self.require_shape(sizes, name)
        value = None
        if fill is not None and (self.is_array(fill) or isinstance(fill, List | Tuple)):
            array = self.alloc(name, sizes, None, like=like)
            self.assign_array(array, fill, node)
            return array
        if fill is not None:
            number = self.number(fill, node)
            element = Scalar(name) if name in ("float64", "float32", "bool") else INT
            value = self.cast(number, element if name != "float32" else FLOAT)
        return self.alloc(name, sizes, value, like=like)

    def call_zeros(
        self,
        node: ast.AST,
        shape: Abstract,
        dtype: Abstract = Static(float),  # noqa: B008
        order: Abstract = Static("C"),  # noqa: B008
    ) -> Abstract:
        return self.in_order(self.new_array(node, shape, Static(0.0), dtype), order, node)

    def call_ones(
        self,
        node: ast.AST,
        shape: Abstract,
        dtype: Abstract = Static(float),  # noqa: B008
        order: Abstract = Static("C"),  # noqa: B008
    ) -> Abstract:
        return self.in_order(self.new_array(node, shape, Static(1.0), dtype), order, node)

    def call_empty(
        self,
        node: ast.AST,
        shape: Abstract,
        dtype: Abstract = Static(float),  # noqa: B008
        order: Abstract = Static("C"),  # noqa: B008
    ) -> Abstract:
        return self.in_order(self.new_array(node, shape, None, dtype), order, node)

    def in_order(self, array: Abstract, order: Abstract, node: ast.AST) -> Abstract:
        """A new array, of which `order` says how NumPy lays it out in memory."""
        if self.known_order(order, node) not in ("C", None) and isinstance(array, Value) and array.array.rank > 1:
            self.contiguous.discard(array)
        return array

    def known_order(self, order: Abstract, node: ast.AST) -> Any:
        if not (isinstance(order, Static) and order.value in ("C", "F", "A", "K", None)):
            self.refuse("SD205", node, "`order` must be known at compile time")
        return order.value

    def call_full(
        self,
        node: ast.AST,
        shape: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static("C"),  # noqa: B008
    ) -> Abstract:
        if self.is_array(fill_value):
            filled = self.call_broadcast_to(node, fill_value, shape)
            same = isinstance(dtype, Static) and dtype.value is None
            return self.in_order(self.forced(filled if same else self.call_astype(node, filled, dtype)), order, node)
        if isinstance(dtype, Static) and dtype.value is None:
            dtype = Static(self.lazy(fill_value, node).dtype)
        return self.in_order(self.new_array(node, shape, fill_value, dtype), order, node)

    def like(
        self, node: ast.AST, x: Abstract, fill: Abstract | None, dtype: Abstract, order: Abstract, shape: Abstract
    ) -> Abstract:
        if not (isinstance(x, Value) and isinstance(x.type, Array)):
            x = self.the_array(self.call_array(node, x), node)
            assert isinstance(x.type, Array)
        same_type = isinstance(dtype, Static) and dtype.value is None
        same_shape = isinstance(shape, Static) and shape.value is None
        kind = Static(x.type.dtype) if same_type else dtype
        lengths = Tuple(self.shape(x)) if same_shape else shape
        array = self.the_array(self.new_array(node, lengths, fill, kind, x if same_type and same_shape else None), node)
        return self.in_order(self.laid_out_like(array, (x,)), Static("C") if order == Static("K") else order, node)

    def call_zeros_like(
        self,
        node: ast.AST,
        a: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static("K"),  # noqa: B008
        subok: Abstract = Static(True),  # noqa: B008
        shape: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, Static(0.0), dtype, order, shape)

    def call_ones_like(
        self,
        node: ast.AST,
        a: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static("K"),  # noqa: B008
        subok: Abstract = Static(True),  # noqa: B008
        shape: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, Static(1.0), dtype, order, shape)

    def call_empty_like(
        self,
        node: ast.AST,
        a: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static("K"),  # noqa: B008
        subok: Abstract = Static(True),  # noqa: B008
        shape: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, None, dtype, order, shape)

    def call_full_like(
        self,
        node: ast.AST,
        a: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static("K"),  # noqa: B008
        subok: Abstract = Static(True),  # noqa: B008
        shape: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, fill_value, dtype, order, shape)

    def call_copy(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, Value) and isinstance(a.type, Array):
            return self.laid_out_like(self.copy(a), (a,))
        if isinstance(a, List):
            return self.list_copy(node, a)
        self.refuse("SD203", node, f"{self.in_words(a)} is used where an array is needed")

    def call_shape(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, List | Tuple):
            a = self.array_of(a, node)
        return Tuple(self.lengths(a)) if isinstance(a, Lazy | Value) and self.is_array(a) else Tuple(())

    def call_ndim(self, node: ast.AST, a: Abstract) -> Abstract:
        shape = self.call_shape(node, a)
        assert isinstance(shape, Tuple)
        return Static(len(shape.items))

    def call_size(self, node: ast.AST, a: Abstract, axis: Abstract = Static(None)) -> Abstract:  # noqa: B008
        total: Abstract = Static(1)
        shape = self.call_shape(node, a)
        assert isinstance(shape, Tuple)
        rank = len(shape.items)
        axes = range(rank) if axis == Static(None) else [k % rank for k in self.static_integers(axis, node)]
        for n in (shape.items[k] for k in axes):
            total = self.binary(ast.Mult, total, n, node)
        return total

    def call_transpose(self, node: ast.AST, a: Abstract, axes: Abstract = Static(None)) -> Abstract:  # noqa: B008
        if not (isinstance(a, Value) and isinstance(a.type, Array)):
            self.refuse("SD203", node, f"{self.in_words(a)} cannot be transposed")
        rank = a.type.rank
        if isinstance(axes, Static) and axes.value is None:
            return self.transposed(a, tuple(reversed(range(rank))))
        order = tuple(x.value for x in self.contents(axes) or () if isinstance(x, Static))
        if sorted(o % rank for o in order) != list(range(rank)):
            self.refuse("SD205", node, "the axes must be known at compile time")
        return self.transposed(a, tuple(o % rank for o in order))

    def call_array(
        self,
        node: ast.AST,
        object: Abstract,  # noqa: A002 - NumPy's name
        dtype: Abstract = Static(None),  # noqa: B008
        copy: Abstract = Static(True),  # noqa: B008
        order: Abstract = Static("K"),  # noqa: B008
        subok: Abstract = Static(False),  # noqa: B008
        ndmin: Abstract = Static(0),  # noqa: B008
    ) -> Abstract:
        """`np.array`: of numbers in (nested) lists or tuples, or of an array."""
        if copy == Static(True):
            array = self.new_array_of(node, object, dtype)
            array = self.in_order(array, Static("C") if order == Static("K") else order, node)
        else:
            array = self.call_asarray(node, object, dtype, order)
            if copy == Static(False) and array is not object:
                self.refuse("SD303", node, "`copy=False` is not possible: the array may have to be copied here")
        rank = array.array.rank if isinstance(array, Value) and isinstance(array.type, Array) else 0
        missing = tuple(Static(k) for k in range(self.static_integers(ndmin, node)[0] - rank))
        return self.call_expand_dims(node, array, Tuple(missing)) if missing else array

    def new_array_of(self, node: ast.AST, of: Abstract, dtype: Abstract) -> Abstract:
        if isinstance(of, Value) and isinstance(of.type, Array) and isinstance(dtype, Static) and dtype.value is None:
            return self.call_copy(node, of)
        if isinstance(of, List) and isinstance(self.holding(of), Stored):
            return self.array_of_stored(of, dtype, node)
        rows = self.nested(of, node)
        if any(self.is_array(x) for x in _flat(rows)):
            whole = self.forced(of) if isinstance(of, Lazy) else of
            whole = whole if isinstance(whole, Value) else self.call_named("stack", node, whole)
            same = isinstance(dtype, Static) and dtype.value is None
            return whole if same else self.forced(self.call_astype(node, whole, dtype))
        extents: list[int] = []
        level = rows
        while isinstance(level, tuple):
            extents.append(len(level))
            level = level[0] if level else Static(0.0)
        leaves = list(_flat(rows))
        values = [self.number(x, node) for x in leaves]
        if len(values) != math.prod(extents):
            self.refuse("SD203", node, "the rows have different lengths")
        if isinstance(dtype, Static) and dtype.value is None:
            kinds = {v.scalar.dtype for v in values}
            dtype = Static("float64" if len(kinds) != 1 else kinds.pop())
        shape = Tuple(tuple(Static(e) for e in extents))
        array = self.new_array(node, shape, None, dtype)
        assert isinstance(array, Value)
        for position, value in zip(np.ndindex(*extents), values, strict=True):
            self.write_element(array, tuple(self.const(p) for p in position), value)
        return array

    def call_round_array(self, node: ast.AST, a: Abstract, decimals: Abstract = Static(0)) -> Abstract:  # noqa: B008
        """Rounded to so many decimals; flat everywhere, so that its derivative is zero."""
        if not self.is_array(a):
            a = self.cast(self.number(a, node), FLOAT)
        if isinstance(decimals, Static) and decimals.value == 0:
            return self.call_named("rint", node, a)
        places = self.integer(decimals, node)
        if not self.is_array(a):
            return self.apply("round", self.value(a), places)
        dtype = self.promoted(np.round, (a,), node)
        return self.elementwise((a,), lambda v: self.apply("round", self.cast(v[0], FLOAT), places), dtype, node)

    def array_of_stored(self, of: List, dtype: Abstract, node: ast.AST) -> Abstract:
        """An array of a list that has grown at run time."""
        contents = self.stored(of)
        are_rows = holds_lists(contents.element) and len(contents.arrays) == 2
        if isinstance(contents.arrays[0].type, Stack) or (len(contents.arrays) != 1 and not are_rows):
            return self.call_named("stack", node, of, dtype=dtype)
        used = self.view(contents.arrays[0], (*map(Index, contents.at), Slice(None, contents.length, None)))
        if are_rows:
            used = self.view(used, (Slice(None, None, None), Slice(None, self.width(contents), None)))
        same = isinstance(dtype, Static) and dtype.value is None
        return self.copy(used) if same else self.forced(self.call_astype(node, used, dtype))

    def width(self, rows: Stored) -> Value:
        """The length that all lists of a list have."""
        lengths = rows.arrays[-1]
        empty = self.apply("less_equal", rows.length, self.const(0))
        self.raise_if(empty, ValueError, "an array of a list of lists that has none yet: its second axis is not known")
        width, index = self.load(lengths, (self.const(0),)), Value(INT, "i")
        with self.block() as operations:
            other = self.apply("not_equal", self.load(lengths, (index,)), width)
            self.raise_if(other, ValueError, "the lists have different lengths")
        bounds = (self.const(0), rows.length, self.const(1))
        self.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), (), span=self.span))
        return width

    def array_of(self, x: Abstract, node: ast.AST) -> Value:
        array = self.call_array(node, x)
        assert isinstance(array, Value)
        return array

    def assign_part(
        self,
        array: Value,
        items: list[Abstract | Item],
        value: Abstract,
        node: ast.AST,
        op: Update | None = None,
    ) -> None:
        """`array[items] = value`, or `op=`, for a part of an array."""
        basic = [i for i in items if isinstance(i, Slice | Index | NewAxis)]
        if len(basic) < len(items):
            self.write_picked(array, items, value, node, op)
            return
        whole = all(isinstance(i, Slice) and not i.parts() for i in basic)
        target = array if whole else self.view(array, tuple(basic))
        if op is None:
            self.require_order(target, value, node)
        self.assign_array(target, value, node, op)

    def the_array(self, x: Abstract, node: ast.AST) -> Value:
        """The array, computed; lists become arrays."""
        x = self.forced(x)
        if isinstance(x, List | Tuple):
            return self.array_of(x, node)
        if not (isinstance(x, Value) and isinstance(x.type, Array)):
            self.refuse("SD203", node, f"{self.in_words(x)} is used where an array is needed")
        return x

    def static_integers(self, x: Abstract, node: ast.AST) -> tuple[int, ...]:
        """Integers known when the function is compiled: axes."""
        items = x.items if isinstance(x, Tuple) else (x,)
        if not all(isinstance(i, Static) and isinstance(i.value, int) for i in items):
            self.refuse("SD205", node, "the axes must be known at compile time")
        return tuple(i.value for i in items if isinstance(i, Static))

    def call_where(
        self, node: ast.AST, condition: Abstract, x: Abstract | None = None, y: Abstract | None = None
    ) -> Abstract:
        if x is None or y is None:
            return Tuple(self.positions_of(self.lazy(condition, node), node))
        dtype = self.promoted(lambda a, b: np.where(True, a, b), (x, y), node)
        return self.choose_elements(condition, x, y, dtype, node)

    def call_expand_dims(self, node: ast.AST, a: Abstract, axis: Abstract) -> Abstract:
        axes = self.static_integers(axis, node)
        a = self.forced(a)
        if not self.is_array(a):
            number = self.number(a, node)
            array = self.alloc(number.scalar.dtype, tuple(self.const(1) for _ in axes), None)
            self.write_element(array, tuple(self.const(0) for _ in axes), number)
            return array
        array = self.the_array(a, node)
        rank = array.array.rank + len(axes)
        places = {x % rank for x in axes}
        return self.view(array, tuple(NewAxis() if k in places else Slice(None, None, None) for k in range(rank)))

    def call_reshape(self, node: ast.AST, a: Abstract, shape: Abstract, order: Abstract = Static("C")) -> Abstract:  # noqa: B008
        array = self.the_array(a, node)
        sizes = self.new_shape(array, shape, node)
        if not sizes:  # of one element
            return self.view_of_element(array, (self.const(0),) * array.array.rank)
        if isinstance(order, Static) and order.value == "F":
            array, sizes = self.reversed_axes(array), tuple(reversed(sizes))
        elif not (isinstance(order, Static) and order.value == "C"):
            self.refuse("SD203", node, "only the orders 'C' and 'F' are supported", help_="transpose the array first")
        reshaped = self.reshaped(self.contiguous_or_copy(array), sizes)
        return reshaped if order == Static("C") else self.reversed_axes(reshaped)

    def contiguous_or_copy(self, array: Value) -> Value:
        """What NumPy takes as it is if it is contiguous in memory, and copies if it is not."""
        if array in self.contiguous or (array in self.computed and not self.has_name(array)):
            return array
        copied = self.copy(array)
        self.doubt(array, copied)
        return copied

    def call_ascontiguousarray(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        found = self.call_asarray(node, a, dtype)
        return self.contiguous_or_copy(found) if isinstance(found, Value) and found is a else found

    def array_copy(self, node: ast.AST, array: Value) -> Abstract:
        return self.copy(array)

    def reversed_axes(self, array: Value) -> Value:
        return self.transposed(array, tuple(reversed(range(array.array.rank)))) if array.array.rank > 1 else array

    def new_shape(self, array: Value, shape: Abstract, node: ast.AST) -> tuple[Value, ...]:
        """The sizes of a reshaped array; one of them may be left to be computed."""
        known = self.contents(shape)
        items = (shape,) if known is None else known
        total = self.value(self.size(array))
        unknown = [k for k, x in enumerate(items) if isinstance(x, Static) and x.value < 0]
        sizes = [self.integer(x, node) for x in items]
        product = self.const(1)
        for k, size in enumerate(sizes):
            product = product if k in unknown else self.apply("multiply", product, size)
        words = ("cannot reshape array of size ", total, " into shape (", *_commas(sizes), ")")
        if len(unknown) > 1:
            self.raise_with(self.const(True), ValueError, ("can only specify one unknown dimension",))
        if unknown:
            empty = self.apply("equal", product, self.const(0))
            self.raise_with(empty, ValueError, words)
            sizes[unknown[0]] = self.apply("floor_divide", total, product)
            left = self.apply("remainder", total, product)
            self.raise_with(self.apply("not_equal", left, self.const(0)), ValueError, words)
        else:
            self.raise_with(self.apply("not_equal", product, total), ValueError, words)
        if len(items) == 1 and unknown:
            sizes = [total]
        return tuple(sizes)

    def call_ravel(self, node: ast.AST, a: Abstract, order: Abstract = Static("C")) -> Abstract:  # noqa: B008
        a = self.forced(a)
        if not self.is_array(a) and not isinstance(a, List | Tuple):
            return self.call_expand_dims(node, a, Static(0))
        array = self.the_array(a, node)
        return array if array.array.rank == 1 else self.call_reshape(node, array, Static(-1), order)

    def array_reshape(self, node: ast.AST, array: Value, *shape: Abstract, order: Abstract = Static("C")) -> Abstract:  # noqa: B008
        return self.call_reshape(node, array, shape[0] if len(shape) == 1 else Tuple(shape), order)

    def call_broadcast_to(self, node: ast.AST, array: Abstract, shape: Abstract) -> Abstract:
        """A view that repeats the array; nothing may be written into it."""
        items = shape.items if isinstance(shape, Tuple) else (shape,)
        sizes = [self.integer(x, node) for x in items]
        source = self.lazy(array, node)
        if not self.frame.library:
            self.require_shape(sizes, source.dtype, "all elements of broadcast shape must be non-negative")
        whole = [Size(self.size_key(s), lambda s=s: s) for s in sizes]  # type: ignore[misc]
        source = self.once(source, whole, node)
        if source.rank > len(whole):
            self.refuse("SD203", node, f"an array with {source.rank} axes cannot be broadcast to {len(whole)} axes")
        target = Lazy(source.dtype, tuple(whole), lambda _: self.const(0))
        pairs = list(zip(source.sizes, whole[len(whole) - source.rank :], strict=True))
        self.require_fit(source, target)
        steps = [self.step(own, size) for own, size in pairs]
        straight = source.rank == len(whole) and all(s is None for s in steps)
        made = self.new_lazy(source.dtype, whole, lambda p: source.at(self.mapped(p, steps)), [source], straight)
        made.plain = source.plain
        made.view_of = source.reads[0][0] if source.plain and source.reads else None
        return made

    def call_astype(self, node: ast.AST, a: Abstract, dtype: Abstract, copy: Abstract = Static(True)) -> Abstract:  # noqa: B008
        name = self.dtype_of(dtype, node)
        source = self.lazy(a, node)
        if source.dtype == name and copy == Static(False):
            return a
        wide = name in ("float64", "float32", "int64", "bool")

        def at(places: Places) -> Value:
            value = source.at(places)
            return self.wrapped(self.as_element(value, name), name if source.dtype in _LONG else source.dtype)

        if not wide and source.dtype != name and name not in ("int32", "intp"):
            self.refuse(
                "SD201",
                node,
                f"a conversion to {name} wraps around, which is not supported",
                help_="use np.int64 or a float type",
            )
        made = self.new_lazy(name, source.sizes, at, [source])
        return made if source.sizes else at(())

    def call_asarray(
        self,
        node: ast.AST,
        a: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
        order: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        known = self.known_order(order, node)
        if known in ("C", "F"):
            in_order = self.call_ascontiguousarray if known == "C" else self.call_asfortranarray
            return in_order(node, a, dtype)
        if isinstance(a, Value) and isinstance(a.type, Array):
            same = isinstance(dtype, Static) and dtype.value is None
            if same or self.dtype_of(dtype, node) == a.type.dtype:
                return a
        return self.new_array_of(node, a, dtype)

    def call_asfortranarray(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        """The first axis goes first in memory; what lies so already is not copied."""
        found = self.call_asarray(node, a, dtype)
        if not (isinstance(found, Value) and isinstance(found.type, Array) and found.type.rank > 1):
            return found
        copied = self.copy(found)
        self.contiguous.discard(copied)
        if found is a:
            self.doubt(found, copied)
        return copied

    def nested(self, x: Abstract, node: ast.AST) -> Any:
        if isinstance(x, List):
            contents = self.holding(x)
            if not isinstance(contents, Items):
                self.refuse("SD303", node, "an array of a list that grows at run time is not supported")
            return tuple(self.nested(i, node) for i in contents.items)
        if isinstance(x, Tuple):
            return tuple(self.nested(i, node) for i in x.items)
        return x

    def array_transpose(self, node: ast.AST, array: Value, *axes: Abstract) -> Abstract:
        return self.call_transpose(node, array, Tuple(axes) if len(axes) > 1 else axes[0] if axes else Static(None))

    def array_item(self, node: ast.AST, array: Value, *where: Abstract) -> Abstract:
        if where and len(where) != array.array.rank:
            self.refuse("SD203", node, "`item` needs one index for each axis")
        if not where:
            several = self.apply("not_equal", self.value(self.size(array)), self.const(1))
            self.raise_if(several, ValueError, "can only convert an array of size 1 to a Python scalar")
            where = tuple(Static(0) for _ in range(array.array.rank))
        value = self.load(array, tuple(self.integer(w, node) for w in where))
        return self.cast(value, FLOAT) if is_float(value.type) else self.unheld(value)  # it is Python's now


_LONG = ("int64", "uint32")


def _commas(sizes: Sequence[Value]) -> list[str | Value]:
    parts: list[str | Value] = []
    for k, size in enumerate(sizes):
        parts += [",", size] if k else [size]
    return parts


def _flat(rows: Any) -> list[Abstract]:
    if isinstance(rows, tuple):
        return [x for row in rows for x in _flat(row)]
    return [rows]
