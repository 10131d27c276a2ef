"""Intrinsics: the helpers of the library beyond Python and NumPy (`srcdiff.library.language`)."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from srcdiff.frontend.abstract_values import Abstract, Lazy, Size, Static, Tuple
from srcdiff.frontend.array_expressions import Places
from srcdiff.frontend.array_functions import Arrays
from srcdiff.frontend.shapes import ONE
from srcdiff.ir.nodes import Index, Item, Slice, Value
from srcdiff.ir.types import Array
from srcdiff.library import building

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


_TRICKS: dict[type, Any] = {
    type(np.r_): building.rows_joined,
    type(np.c_): building.columns_joined,
    type(np.mgrid): building.dense_grid,
    type(np.ogrid): building.open_grid,
}


class Language(Arrays):
    """Reads calls of the library's own language."""

    def call_value(self, function: Abstract, args: list[Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def index_trick(self, trick: Any, where: ast.expr, node: ast.AST) -> Abstract:
        """`np.r_[...]`, `np.c_[...]`, `np.mgrid[...]` and `np.ogrid[...]`: arrays, numbers and ranges."""
        parts = where.elts if isinstance(where, ast.Tuple) else [where]
        found = [self.range_in(p, node) if isinstance(p, ast.Slice) else self.lazily(p) for p in parts]
        text = any(isinstance(x, Static) and isinstance(x.value, str) for x in found)
        if text or (trick in (np.mgrid, np.ogrid) and not all(isinstance(p, ast.Slice) for p in parts)):
            self.refuse("SD203", node, "only arrays, numbers and ranges are supported here")
        return self.call_value(Static(_TRICKS[type(trick)]), found, node)

    def range_in(self, part: ast.Slice, node: ast.AST) -> Abstract:
        """`start:stop:step`, or with an imaginary number for the step so many numbers, the stop included."""
        start = Static(0) if part.lower is None else self.expr(part.lower)
        if part.upper is None:
            self.refuse("SD203", node, "a range needs an end here")
        stop = self.expr(part.upper)
        if isinstance(part.step, ast.Constant) and isinstance(part.step.value, complex):
            return self.call_value(Static(np.linspace), [start, stop, Static(int(abs(part.step.value)))], node)
        step = Static(1) if part.step is None else self.expr(part.step)
        return self.call_value(Static(np.arange), [start, stop, step], node)

    def call_array_like(self, node: ast.AST, x: Abstract) -> Abstract:
        if self.is_array(x):
            return x
        if isinstance(x, Static) or (isinstance(x, Value) and not (isinstance(x.type, Array) and x.type.rank)):
            return self.lazy(x, node)
        return self.array_of(x, node)

    def call_first_result(self, node: ast.AST, function: Abstract, *args: Abstract) -> Abstract:
        before = self.became_floats
        result = self.call_value(function, list(args), node)
        if self.became_floats != before:
            message = (
                "the function returns integers or floats, and NumPy uses the type of the first result for all of them"
            )
            self.refuse("SD203", node, message, help_="return floats only: `0.0` instead of `0`")
        return result

    def call_counted(self, node: ast.AST, x: Abstract) -> Abstract:
        return Static(self.contents(x) is not None)

    def call_part(
        self,
        node: ast.AST,
        a: Abstract,
        axis: Abstract,
        start: Abstract,
        stop: Abstract,
        step: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        array = self.the_array(a, node)
        bounds = (
            None if isinstance(x, Static) and x.value is None else self.integer(x, node) for x in (start, stop, step)
        )
        return self.view(array, (*self.before(axis, node), Slice(*bounds)))

    def before(self, axis: Abstract, node: ast.AST) -> tuple[Item, ...]:
        return (_WHOLE,) * self.static_integers(axis, node)[0]

    def call_at_axis(self, node: ast.AST, a: Abstract, axis: Abstract, position: Abstract) -> Abstract:
        array = self.the_array(a, node)
        items = self.before(axis, node)
        if self.picks(position):
            return self.read_picked(array, [*items, position], node)
        index = Index(self.integer(position, node))
        if array.array.rank == 1:
            return self.load(array, (index.value,))
        return self.view(array, (*items, index))

    def call_agree(self, node: ast.AST, n: Abstract, m: Abstract, message: Abstract) -> Abstract:
        text = message.value if isinstance(message, Static) else ""
        first, second = self.size_of(n, node), self.size_of(m, node)
        self.require_equal(first, second, lambda: (f"{text}: ", first.value(), " and ", second.value()))
        return Static(None)

    def call_checked_shape(self, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
        lengths = [self.integer(x, node) for x in (shape.items if isinstance(shape, Tuple) else (shape,))]
        self.require_shape(lengths, self.dtype_of(dtype, node))
        return shape

    def call_at_least_zero(self, node: ast.AST, n: Abstract) -> Abstract:
        value = self.integer(n, node)
        if self.is_natural(value):
            return value
        zero = self.const(0)
        return self.apply("where", self.apply("greater", value, zero), value, zero)

    def size_of(self, x: Abstract, node: ast.AST) -> Size:
        value = self.integer(x, node)
        return Size(self.size_key(value), lambda: value)

    def call_check_positions(self, node: ast.AST, positions: Abstract, size: Abstract) -> Abstract:
        self.check_positions(self.lazy(positions, node), self.size_of(size, node))
        return Static(None)

    def call_require_apart(self, node: ast.AST, a: Abstract, values: Abstract) -> Abstract:
        self.require_apart(self.the_array(a, node), values, node)
        return Static(None)

    def call_axes_of_length_one(self, node: ast.AST, a: Abstract) -> Abstract:
        """Those that are known to be; that the others are not is checked, and the caller reads again, exactly."""
        array = self.the_array(a, node)
        found: list[int] = []
        for axis, key in enumerate(self.keys(array)):
            guess = key == ONE or (key[0] == "s" and key[2:] in _PARTS_OF_ONE)
            if guess:
                found.append(axis)
            if self.may_be_one(key):
                self.assumes = not self.exact
                differs = self.apply("not_equal" if guess else "equal", self.dim(array, axis), self.const(1))
                length = "does not have length one" if guess else "has length one"
                text = f"axis {axis} {length}, which is not known at compile time: pass `axis`"
                self.raise_with(differs, ValueError, (text,))
        return Tuple(tuple(Static(axis) for axis in found))

    def call_result_type(self, node: ast.AST, *operands: Abstract) -> Abstract:
        return Static(np.dtype(self.promoted(lambda *x: np.empty(0, np.result_type(*x)), operands, node)))

    def call_view_from_places(self, node: ast.AST, a: Abstract, shape: Abstract, function: Abstract) -> Abstract:
        source = self.lazy(a, node)
        made = self.call_from_places(node, shape, Static(source.dtype), function)
        assert isinstance(made, Lazy)
        self.pending.discard(source)
        made.reads = tuple((array, False) for array, _ in source.reads)
        made.plain = source.plain
        made.view_of = a if isinstance(a, Value) else None
        return made

    def call_from_places(self, node: ast.AST, shape: Abstract, dtype: Abstract, function: Abstract) -> Abstract:
        name = self.dtype_of(dtype, node)
        sizes = [self.size_of(x, node) for x in (shape.items if isinstance(shape, Tuple) else (shape,))]

        def at(places: Places) -> Value:
            return self.as_element(self.number(self.call_value(function, list(places), node), node), name)

        made = self.new_lazy(name, sizes, at, [])
        made.plain = True
        return made

    def call_ufunc_at(
        self,
        node: ast.AST,
        ufunc: Abstract,
        a: Abstract,
        indices: Abstract,
        b: Abstract = Static(1),  # noqa: B008
    ) -> Abstract:
        """`np.add.at`: one after the other, so that what is chosen twice gets both."""
        assert isinstance(ufunc, Static)
        op = _OPERATORS.get(ufunc.value, ufunc.value)
        array = self.the_array(a, node)
        found = indices.items if isinstance(indices, Tuple) else (indices,)
        items = self.items_of(array, list(found), node)
        if all(isinstance(i, Slice | Index) for i in items):
            self.assign_part(array, items, b, node, op)
        else:
            self.write_picked(array, items, b, node, op, one_by_one=True)
        return Static(None)
