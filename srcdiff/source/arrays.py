"""Arrays: their functions and methods."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from srcdiff.ir.nodes import Value
from srcdiff.ir.types import FLOAT, INT, Array, Scalar, is_supported_dtype
from srcdiff.source.abstract import (
    Abstract,
    Items,
    List,
    Static,
    Tuple,
)
from srcdiff.source.builtin_functions import Builtins
from srcdiff.source.environment import list_key


class Arrays(Builtins):
    """Reads calls that make and view arrays."""

    def dtype_of(self, dtype: Abstract, node: ast.AST) -> str:
        if isinstance(dtype, Static):
            try:
                found = np.dtype(dtype.value)
            except TypeError:
                self.refuse("SD203", node, f"`{dtype.value}` is not a dtype")
            if is_supported_dtype(found):
                return str(found.name)
        self.refuse("SD201", node, "arrays hold floats of 4 or 8 bytes, integers or booleans")

    def new_array(
        self, node: ast.AST, shape: Abstract, fill: Abstract | None, dtype: Abstract, like: Value | None = None
    ) -> Abstract:
        name = self.dtype_of(dtype, node)
        extents = shape.items if isinstance(shape, Tuple) else (shape,)
        sizes = tuple(self.integer(e, node) for e in extents)
        value = None
        if fill is not None:
            number = self.number(fill, node)
            element = Scalar(name) if name in ("float64", "float32", "bool") else INT
            value = self.cast(number, element if name != "float32" else FLOAT)
        return self.alloc(name, sizes, value, like=like)

    def call_zeros(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, Static(0.0), dtype)

    def call_ones(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, Static(1.0), dtype)

    def call_empty(self, node: ast.AST, shape: Abstract, dtype: Abstract = Static(float)) -> Abstract:  # noqa: B008
        return self.new_array(node, shape, None, dtype)

    def call_full(
        self,
        node: ast.AST,
        shape: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        if isinstance(dtype, Static) and dtype.value is None:
            dtype = Static(self.number(fill_value, node).scalar.dtype)
        return self.new_array(node, shape, fill_value, dtype)

    def like(self, node: ast.AST, x: Abstract, fill: Abstract | None, dtype: Abstract) -> Abstract:
        if not (isinstance(x, Value) and isinstance(x.type, Array)):
            self.refuse("SD203", node, f"{self.said(x)} stands where an array is needed")
        same = isinstance(dtype, Static) and dtype.value is None
        kind = Static(x.type.dtype) if same else dtype
        return self.new_array(node, Tuple(self.shape(x)), fill, kind, x if same else None)

    def call_zeros_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, Static(0.0), dtype)

    def call_ones_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, Static(1.0), dtype)

    def call_empty_like(self, node: ast.AST, a: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        return self.like(node, a, None, dtype)

    def call_full_like(
        self,
        node: ast.AST,
        a: Abstract,
        fill_value: Abstract,
        dtype: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        return self.like(node, a, fill_value, dtype)

    def call_copy(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, Value) and isinstance(a.type, Array):
            return self.copy(a)
        if isinstance(a, List):
            return self.list_copy(node, a)
        self.refuse("SD203", node, f"{self.said(a)} stands where an array is needed")

    def call_shape(self, node: ast.AST, a: Abstract) -> Abstract:
        if isinstance(a, Value) and isinstance(a.type, Array):
            return Tuple(self.shape(a))
        self.refuse("SD203", node, f"{self.said(a)} has no shape")

    def call_transpose(self, node: ast.AST, a: Abstract, axes: Abstract = Static(None)) -> Abstract:  # noqa: B008
        if not (isinstance(a, Value) and isinstance(a.type, Array)):
            self.refuse("SD203", node, f"{self.said(a)} cannot be transposed")
        rank = a.type.rank
        if isinstance(axes, Static) and axes.value is None:
            return self.transposed(a, tuple(reversed(range(rank))))
        order = tuple(x.value for x in axes.items if isinstance(x, Static)) if isinstance(axes, Tuple) else ()
        if sorted(o % rank for o in order) != list(range(rank)):
            self.refuse("SD205", node, "the axes must be known when the function is compiled")
        return self.transposed(a, tuple(o % rank for o in order))

    def call_array(self, node: ast.AST, of: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        """`np.array` of numbers in (nested) lists or tuples."""
        if isinstance(of, Value) and isinstance(of.type, Array) and isinstance(dtype, Static) and dtype.value is None:
            return self.copy(of)
        rows = self.nested(of, node)
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

    def call_asarray(self, node: ast.AST, of: Abstract, dtype: Abstract = Static(None)) -> Abstract:  # noqa: B008
        same = isinstance(dtype, Static) and dtype.value is None
        return of if isinstance(of, Value) and isinstance(of.type, Array) and same else self.call_array(node, of, dtype)

    def nested(self, x: Abstract, node: ast.AST) -> Any:
        if isinstance(x, List):
            contents = self.names[list_key(x)]
            if not isinstance(contents, Items):
                self.refuse("SD303", node, "an array of a list that grows at run time is not supported yet")
            return tuple(self.nested(i, node) for i in contents.items)
        if isinstance(x, Tuple):
            return tuple(self.nested(i, node) for i in x.items)
        return x

    def array_copy(self, node: ast.AST, array: Value) -> Abstract:
        return self.copy(array)

    def array_transpose(self, node: ast.AST, array: Value, *axes: Abstract) -> Abstract:
        return self.call_transpose(node, array, Tuple(axes) if axes else Static(None))

    def array_item(self, node: ast.AST, array: Value, *where: Abstract) -> Abstract:
        if len(where) != array.array.rank:
            self.refuse("SD203", node, "`item` needs one index for each axis")
        return self.load(array, tuple(self.integer(w, node) for w in where))


def _flat(rows: Any) -> list[Abstract]:
    if isinstance(rows, tuple):
        return [x for row in rows for x in _flat(row)]
    return [rows]
