"""The builtin functions of Python."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Callable

import numpy as np

from srcdiff.frontend.abstract_values import (
    MISSING,
    Abstract,
    Enumerate,
    Group,
    Items,
    Iteration,
    Lazy,
    List,
    Range,
    Record,
    Reversed,
    Static,
    Tuple,
    Zip,
    is_complex,
)
from srcdiff.frontend.sequences import Sequences
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar

_WRITE_OUT = "write the dictionary out: `{key: value}`"


class Builtins(Sequences):
    """Reads calls of builtins."""

    def call_stop_gradient(self, node: ast.AST, x: Abstract) -> Abstract:
        if isinstance(x, Static):
            return x
        if isinstance(x, Group):
            return x.remade(self.call_stop_gradient(node, i) for i in x.items)
        if isinstance(x, List):
            handle = self.new_list(())
            self.list_extend(node, handle, x)
            found = self.holding(handle)
            if isinstance(found, Items):
                return self.new_list(tuple(self.call_stop_gradient(node, i) for i in found.items))
            return self.list_without_gradient(handle, node)
        if self.is_array(x):
            dtype = x.dtype if isinstance(x, Lazy) else self.value(x).array.dtype
            made = self.elementwise((x,), lambda v: self.call_stop_gradient(node, v[0]), dtype, node)
            if isinstance(made, Lazy) and isinstance(x, Value):
                made.view_of = x
            return made
        return self.apply("stop_gradient", self.number(x, node))

    def list_without_gradient(self, handle: List, node: ast.AST) -> Abstract:
        """A copy of a list of numbers, taken for constants."""
        found = self.iteration(handle, node)
        assert isinstance(found, Iteration)
        fresh = self.new_list(())
        self.for_each(node, found, lambda item: self.append(fresh, self.call_stop_gradient(node, item), node))
        return fresh

    def call_range(self, node: ast.AST, *args: Abstract) -> Abstract:
        if not 1 <= len(args) <= 3:
            self.refuse("SD304", node, "`range` takes one to three arguments")
        needs = "`range` needs integers"
        if any(isinstance(a, Static) and not isinstance(a.value, int) for a in args):
            self.refuse("SD203", node, needs, help_="convert with `int(...)`")
        args = tuple(a if isinstance(a, Static) else self.integer(a, node, needs) for a in args)
        start, stop, step = (Static(0), args[0], Static(1)) if len(args) == 1 else (*args, Static(1))[:3]
        if isinstance(step, Static) and step.value == 0:
            self.refuse("SD203", node, "the step of `range` is zero")
        return Range(start, stop, step)

    def call_len(self, node: ast.AST, x: Abstract) -> Abstract:
        match x:
            case Value(type=Array()):
                return self.dim(x, 0)
            case Lazy():
                return self.lengths(x)[0]
            case Static():
                return Static(len(x.value))
        found = self.iteration(x, node)
        if not isinstance(found, Iteration):
            return Static(len(found))
        if isinstance(found.length, Value):
            self.naturals.add(found.length)
            if not isinstance(x, Range):  # which takes no memory for its elements
                self.a_length(found.length)
        return found.length

    def call_enumerate(self, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:  # noqa: B008
        return Enumerate(of, start)

    def call_zip(self, node: ast.AST, *of: Abstract, strict: Abstract = Static(False)) -> Abstract:  # noqa: B008
        if not isinstance(strict, Static):
            self.refuse("SD205", node, "`strict` must be known at compile time")
        return Zip(of, bool(strict.value))

    def call_reversed(self, node: ast.AST, of: Abstract) -> Abstract:
        return Reversed(of)

    def call_tuple(self, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:  # noqa: B008
        return Tuple(self.unpacked(of, node))

    def call_list(self, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:  # noqa: B008
        found = self.iteration(of, node)
        if not isinstance(found, Iteration):
            return self.new_list(found)
        if isinstance(found.length, Static) and found.length.value <= 16:
            return self.new_list(tuple(found.element(Static(k)) for k in range(found.length.value)))
        handle = self.new_list(())
        self.for_each(node, found, lambda item: self.append(handle, item, node))
        return handle

    def array_tolist(self, node: ast.AST, array: Value) -> Abstract:
        if array.array.rank > 1:
            message = "`tolist` of an array with several axes is not supported"
            self.refuse("SD102", node, message, help_="loop over the rows: `for row in a`")
        return self.call_list(node, array)

    def call_dict(self, node: ast.AST, /, *of: Abstract, **items: Abstract) -> Abstract:
        """`dict(other, name=value)`."""
        if of and not (len(of) == 1 and isinstance(of[0], Record) and of[0].kind.is_mapping):
            self.refuse("SD102", node, f"a dictionary of {self.in_words(of[0])} is not supported", help_=_WRITE_OUT)
        found: dict[str | int | enum.Enum, Abstract] = {}
        for other in of:
            assert isinstance(other, Record)
            found |= dict(zip(other.kind.names, other.items, strict=True))
        found.update(items)
        return self.dictionary(found)

    def call_slice(self, node: ast.AST, *parts: Abstract) -> Abstract:
        start, stop, step = (Static(None), *parts, Static(None))[:3] if len(parts) == 1 else (*parts, Static(None))[:3]

        def part(x: Abstract) -> Value | None:
            return None if isinstance(x, Static) and x.value is None else self.integer(x, node)

        return Slice(part(start), part(stop), part(step))

    def call_sum(self, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:  # noqa: B008
        if isinstance(of, Value) and isinstance(of.type, Array) and of.type.rank > 1:
            return self.binary(ast.Add, start, self.call_named("sum", node, of, Static(0)), node)
        return self.fold(node, of, start, lambda a, b: self.binary(ast.Add, a, b, node))

    def call_named(self, name: str, node: ast.AST, *args: Abstract, **keywords: Abstract) -> Abstract:
        raise NotImplementedError

    def call_prod(self, node: ast.AST, of: Abstract, *, start: Abstract = Static(1)) -> Abstract:  # noqa: B008
        return self.fold(node, of, start, lambda a, b: self.binary(ast.Mult, a, b, node))

    def call_fsum(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.call_sum(node, of, Static(0.0))

    def smallest(
        self, node: ast.AST, args: tuple[Abstract, ...], op: ast.cmpop, key: Abstract, default: Abstract
    ) -> Abstract:
        """`min` or `max`: the first of the best, each of which is measured by the key once."""
        if not (isinstance(key, Static) and isinstance(key.value, types.BuiltinFunctionType | types.NoneType)):
            args = tuple(self.forced(x) for x in args)  # calls of an iterator's function and of the key would alternate
        of = self.drained(args[0], node) if len(args) == 1 else Tuple(args)
        found = self.iteration(of, node)
        length = found.length if isinstance(found, Iteration) else Static(len(found))
        if default is not MISSING and len(args) > 1:
            self.refuse("SD304", node, "`default` is allowed with a single sequence only, not with several arguments")
        if default is MISSING or (isinstance(length, Static) and length.value > 0):
            return self.best(node, of, op, key)
        if isinstance(length, Static):
            return default
        choice = (self.frame.number, "%choice")

        def side(result: Callable[[], Abstract]) -> None:
            self.names[choice] = result()

        some = self.apply("greater", self.value(length), self.const(0))
        self.branch_on(some, lambda: side(lambda: self.best(node, of, op, key)), lambda: side(lambda: default))
        return self.checked(self.chosen(choice), "the result", node)

    def best(self, node: ast.AST, of: Abstract, op: ast.cmpop, key: Abstract) -> Abstract:
        if isinstance(key, Static) and key.value is None:
            return self.fold(node, of, None, lambda a, b: self.one_of(self.compare(op, b, a, node), b, a, node))

        def measured(x: Abstract) -> Tuple:
            return Tuple((self.forced(self.call_value(key, [x], node)), x))

        def better(a: Abstract, b: Abstract) -> Abstract:
            assert isinstance(a, Tuple)
            other = measured(b)
            return self.one_of(self.compare(op, other.items[0], a.items[0], node), other, a, node)

        result = self.fold(node, of, None, better, measured)
        assert isinstance(result, Tuple)
        return result.items[1]

    def one_of(self, test: Abstract, a: Abstract, b: Abstract, node: ast.AST) -> Abstract:
        """`a if test else b`, both of which are there."""
        if isinstance(test, Static):
            return a if test.value else b
        if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items) and a.kind is b.kind:
            return Tuple(tuple(self.one_of(test, x, y, node) for x, y in zip(a.items, b.items, strict=True)), a.kind)
        if a is b:
            return a
        if self.is_number(a) and self.is_number(b):
            return self.apply("where", self.value(test), self.number(a, node), self.number(b, node))
        choice = (self.frame.number, "%choice")

        def side(x: Abstract) -> None:
            self.names[choice] = x

        self.branch_on(self.value(test), lambda: side(a), lambda: side(b))
        return self.checked(self.chosen(choice), "the result", node)

    def is_number(self, x: Abstract) -> bool:
        if isinstance(x, Value):
            return isinstance(x.type, Scalar)
        return isinstance(x, Static) and isinstance(x.value, bool | int | float)

    def call_max(
        self,
        node: ast.AST,
        *args: Abstract,
        key: Abstract = Static(None),  # noqa: B008
        default: Abstract = MISSING,
    ) -> Abstract:
        return self.smallest(node, args, ast.Gt(), key, default)

    def call_min(
        self,
        node: ast.AST,
        *args: Abstract,
        key: Abstract = Static(None),  # noqa: B008
        default: Abstract = MISSING,
    ) -> Abstract:
        return self.smallest(node, args, ast.Lt(), key, default)

    def call_any(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.fold(node, of, Static(False), lambda a, b: self.logical("logical_or", a, b, node))

    def call_all(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.fold(node, of, Static(True), lambda a, b: self.logical("logical_and", a, b, node))

    def logical(self, primitive: str, a: Abstract, b: Abstract, node: ast.AST) -> Abstract:
        return self.apply(primitive, self.value(self.truth(a, node)), self.value(self.truth(b, node)))

    def call_round(self, node: ast.AST, x: Abstract, ndigits: Abstract = Static(None)) -> Abstract:  # noqa: B008
        if isinstance(ndigits, Static) and ndigits.value is None:
            return self.cast(self.apply("rint", self.cast(self.number(x, node), FLOAT)), INT)
        return self.apply("round", self.cast(self.number(x, node), FLOAT), self.integer(ndigits, node))

    def call_floor(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.apply("floor", self.cast(self.number(x, node), FLOAT)), INT)

    def call_ceil(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.cast(self.apply("ceil", self.cast(self.number(x, node), FLOAT)), INT)

    def call_astype(self, node: ast.AST, a: Abstract, dtype: Abstract) -> Abstract:
        raise NotImplementedError

    def converted(self, x: Abstract, to: Scalar, node: ast.AST) -> Abstract:
        """A number, or an array, of another type."""
        if self.is_array(x):
            return self.call_astype(node, x, Static(to.dtype))
        return self.numpys_own(self.unheld(self.cast(self.number(x, node), to)))

    def call_float32(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.converted(x, Scalar("float32"), node)

    def call_float64(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.converted(x, FLOAT, node)

    def call_int64(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.converted(x, INT, node)

    def call_bool_(self, node: ast.AST, x: Abstract) -> Abstract:
        return self.converted(x, BOOL, node)

    def call_isinstance(self, node: ast.AST, x: Abstract, kinds: Abstract) -> Abstract:
        kinds_ = (
            tuple(k.value for k in kinds.items if isinstance(k, Static))
            if isinstance(kinds, Tuple)
            else ((kinds.value,) if isinstance(kinds, Static) else ())
        )
        if isinstance(x, Static):
            return Static(isinstance(x.value, kinds_))
        is_kind: dict[str, type] = {"float64": float, "float32": np.float32, "int64": int, "bool": bool}
        if isinstance(x, Tuple):
            return Static(any(issubclass(x.kind or tuple, k) for k in kinds_))
        if isinstance(x, Record):
            return Static(issubclass(np.ndarray if is_complex(x) else x.kind.kind, kinds_))
        if isinstance(x, List | Slice):
            return Static((list if isinstance(x, List) else slice) in kinds_)
        if isinstance(x, Value):
            if not isinstance(x.type, Array) and any(k.__module__ == "numpy" for k in kinds_):
                self.refuse("SD205", node, "it is not known here whether this is a number of Python or of NumPy")
            mine = np.ndarray if isinstance(x.type, Array) else is_kind[x.scalar.dtype]
            return Static(issubclass(mine, kinds_))
        self.refuse("SD102", node, "this use of `isinstance` is not supported")

    def call_divmod(self, node: ast.AST, a: Abstract, b: Abstract) -> Abstract:
        return Tuple((self.binary(ast.FloorDiv, a, b, node), self.binary(ast.Mod, a, b, node)))
