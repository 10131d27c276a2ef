"""Expressions: from syntax to run-time values and compile-time constants."""

from __future__ import annotations

import ast
import enum
import operator
import re
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard

import numpy as np

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.diagnostics.naming_objects import array_of, instead_of, instead_of_attribute, is_plain, named
from srcdiff.frontend.abstract_values import (
    MISSING,
    Abstract,
    Closure,
    DeviceName,
    Enumerate,
    Items,
    Iteration,
    Lazy,
    List,
    Maybe,
    Method,
    Poison,
    Range,
    Record,
    Reversed,
    Slot,
    Static,
    Stored,
    Tuple,
    Zip,
    describe,
    is_device_module,
    leaf_types,
    loosened,
)
from srcdiff.frontend.environment import UNASSIGNED, Frame, list_key
from srcdiff.frontend.guards import (
    Attribute,
    Constant,
    Element,
    Guards,
    Place,
    Summary,
    Variable,
    class_entry,
    made,
    original,
)
from srcdiff.frontend.lists import Lists
from srcdiff.frontend.scopes import is_only_use
from srcdiff.ir.nodes import Apply, Const, Dim, If, Index, Item, NewAxis, Operation, Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_float, is_supported_dtype
from srcdiff.signature.enums import attribute_of, spelled
from srcdiff.signature.structures import Layout, is_key, is_plain_tuple, layout_of, mapping_layout, own_methods

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("power", operator.pow),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("left_shift", operator.lshift),
    ast.RShift: ("right_shift", operator.rshift),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("negative", operator.neg),
    ast.UAdd: ("positive", operator.pos),
    ast.Invert: ("invert", operator.invert),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("less", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
}
_NUMBERS = (bool, int, float)


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A number or an array from the enclosing scope: read anew at every call."""

    place: Place
    name: str
    """The variable that it is, or is part of."""
    path: tuple[Any, ...]
    """Which part."""
    value: Value

    def read(self) -> Any:
        return self.place.read()


class Expressions(Lists):
    """Reads expressions in the current frame."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions: set[ast.AST] = set()
        """`and` and `or` of which only the truth is asked."""
        self.reported: dict[ast.AST, Problem] = {}
        """Syntax outside the language that has been reported already."""
        self.outside: list[Outside] = []
        self.guards = Guards()
        self.powers: set[Value] = set()
        """Floats that are integers in Python, unless an exponent is below zero: powers of integers, and their sums."""

    def call(self, node: ast.Call) -> Abstract:
        raise NotImplementedError

    def call_value(self, function: Abstract, args: list[Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def iteration(self, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        raise NotImplementedError

    def known_length(self, x: Iteration | tuple[Abstract, ...]) -> int | None:
        raise NotImplementedError

    def drained(self, x: Abstract, node: ast.AST) -> Abstract:
        """An iterator as the list of what it gives; anything else as it is."""
        raise NotImplementedError

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Abstract:
        raise NotImplementedError

    def elementwise(
        self,
        operands: Sequence[Abstract],
        combine: Callable[[list[Value]], Abstract],
        dtype: str,
        node: ast.AST,
    ) -> Abstract:
        raise NotImplementedError

    def promoted(self, function: Callable[..., Any], operands: Sequence[Abstract], node: ast.AST) -> str:
        raise NotImplementedError

    def forced(self, x: Abstract) -> Abstract:
        raise NotImplementedError

    def is_array(self, x: Abstract) -> bool:
        raise NotImplementedError

    def picks(self, item: Abstract) -> bool:
        raise NotImplementedError

    def array_of(self, x: Abstract, node: ast.AST) -> Value:
        raise NotImplementedError

    def read_picked(self, array: Value, items: list[Abstract | Item], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def view_of_element(self, array: Value, place: tuple[Value, ...]) -> Value:
        raise NotImplementedError

    def matrix_product(self, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        raise NotImplementedError

    def expr(self, node: ast.expr) -> Abstract:
        """The value of an expression; an array is computed."""
        return self.forced(self.lazily(node))

    def lazily(self, node: ast.expr) -> Abstract:
        """The value of an expression; an array may not be computed yet."""
        if node in self.reported:
            raise Refusal(None)
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            words = type(node).__name__
            self.refuse("SD102", node, f"this kind of expression ({words}) is not supported")
        result: Abstract = method(node)
        return result

    # -- names -------------------------------------------------------------------------------------------------------

    def expr_Constant(self, node: ast.Constant) -> Abstract:
        if isinstance(node.value, complex):
            self.refuse("SD201", node, "complex numbers are not supported", help_="use two floats")
        return Static(node.value)

    def expr_Name(self, node: ast.Name) -> Abstract:
        frame: Frame | None = self.frame
        while frame is not None:
            if node.id in frame.locals:
                key = (frame.number, node.id)
                found = self.names.get(key, MISSING)
                if found is MISSING and key in self.awaited:
                    problem = Problem("SD204", f"`{node.id}` is not assigned on this path", self.span_of(node))
                    self.too_early(problem, UnboundLocalError, UNASSIGNED.format(node.id))
                if isinstance(found, Poison | Maybe) or found is MISSING:
                    found = self.checked(found, node.id, node)
                    self.names[key] = found
                if isinstance(found, Enumerate | Zip | Reversed) and not is_only_use(frame.node, node):
                    message = f"`{node.id}` is an iterator, which can be consumed only once"
                    self.refuse("SD102", node, message, help_="convert it to a list: `list(...)`")
                return found
            if frame.captured is not None:
                return self.outside_name(frame.captured.function, node)
            frame = frame.parent
        self.refuse("SD204", node, f"`{node.id}` is not defined")

    def outside_name(self, function: types.FunctionType, node: ast.Name) -> Abstract:
        place = Variable(function, node.id)
        try:
            value = place.read()
        except NameError as error:
            self.refuse("SD204", node, str(error))
        return self.lift(value, place, node.id, (), node)

    def look_up(self, owner: Any, name: str, node: ast.AST) -> Abstract:
        """An attribute of a module; numbers that have a name in mathematics are constants."""
        place = Attribute(Constant(owner), name)
        found = place.read()
        if type(found) is float and owner.__name__.partition(".")[0] in ("math", "numpy"):
            self.guard(place, found)
            return Static(found)
        return self.lift(found, place, name, (), node)

    def lift(
        self,
        value: Any,
        place: Place,
        name: str,
        path: tuple[Any, ...],
        node: ast.AST,
        held: str | None = None,
    ) -> Abstract:
        """Something that stands outside: numbers and arrays become inputs, the rest is compiled in and guarded.

        What holds others is taken as it is made at this call, and cannot be changed. A part of something else may be
        `held` by it: where that is guarded by how it is `made`, no guard is needed; where it is `fixed`, it cannot
        change while the guard holds, so that also its numbers are compiled in.
        """
        if isinstance(value, enum.Enum):
            if held is None:
                self.guard(place, value)
            return Static(value)
        is_opened = is_plain_tuple(type(value)) if isinstance(value, tuple) else not self.frame.library
        layout = layout_of(value) if is_opened else None
        if layout is not None:
            return self.lift_parts(value, layout, place, name, path, node, held)
        is_number = isinstance(value, np.floating) or type(value) is float
        if type(value) in (np.ndarray, np.memmap) or (is_number and held != "fixed"):
            return self.input_from_outside(value, place, name, path, node)
        numpys = isinstance(value, np.integer | np.bool_)
        is_other = isinstance(value, float | complex | tuple | list | dict | set | np.generic | np.ndarray)
        if is_other and not numpys and not is_number:
            what = "a dictionary with keys other than strings and integers" if type(value) is dict else named(value)
            help_ = _KEYS if type(value) is dict else instead_of(type(value))
            self.refuse("SD201", node, f"`{name}` from outside the function is {what}", help_=help_)
        if held is None:
            self.guard(place, value)
        return Static(value.item() if isinstance(value, np.generic) else value, numpys)

    def guard(self, place: Place, value: Any) -> None:
        """Note what was found outside; what our own functions see does not change."""
        if not self.frame.library:
            self.guards.add(place, value)

    def lift_parts(
        self,
        value: Any,
        layout: Layout,
        place: Place,
        name: str,
        path: tuple[Any, ...],
        node: ast.AST,
        held: str | None,
    ) -> Abstract:
        names = layout.names
        if len(names) > _MANY:
            message = f"`{name}` from outside the function has {len(names)} elements, too many separate inputs"
            instead = "read the values that you need outside the function, and pass them in"
            help_ = instead if layout.is_mapping else "convert it to an array: `np.array(...)`"
            self.refuse("SD201", node, message, help_=help_)
        held = None if held == "fixed" and not isinstance(value, tuple) else held  # only a tuple stays as it is
        if held is None:
            self.guard(Summary(made, place), made(value))
        self.look_at_class(type(value))
        inner = [Attribute(place, str(n)) if layout.is_dataclass else Element(place, n) for n in names]
        each = zip(layout.taken_apart(value), inner, names, strict=True)
        items = tuple(self.lift(v, at, name, (*path, n), node, held or "made") for v, at, n in each)
        if issubclass(layout.kind, tuple | list):
            return Tuple(items, layout.kind if hasattr(value, "_fields") else None)
        return Record(items, layout)

    def look_at_class(self, kind: type) -> None:
        """Guard what the class of a named tuple or a dataclass does."""
        if kind not in (tuple, list, dict, OrderedDict):
            self.guards.add_class(kind)

    def input_from_outside(self, value: Any, place: Place, name: str, path: tuple[Any, ...], node: ast.AST) -> Value:
        for known in self.outside:
            if known.place.key == place.key:
                return known.value
        if isinstance(value, np.ndarray):
            if not is_supported_dtype(value.dtype):
                message, help_ = array_of(value.dtype)
                self.refuse("SD201", node, f"`{name}` is {message}", help_=help_)
            type_: Array | Scalar = Array(value.dtype.name, value.ndim)
        else:
            type_ = Scalar(value.dtype.name) if isinstance(value, np.floating) else FLOAT
        parts = [spelled(p) if isinstance(p, enum.Enum) else str(p) for p in path]
        new = Outside(place, name, path, Value(type_, re.sub(r"\W", "_", "_".join([name, *parts]))))
        self.outside.append(new)
        self.given.add(new.value)
        if type(value) is float:
            self.pythons.add(new.value)
        return new.value

    def expr_NamedExpr(self, node: ast.NamedExpr) -> Abstract:
        value = self.expr(node.value)
        self.assign(node.target, value)
        return value

    def assign(self, target: ast.expr, value: Abstract) -> None:
        raise NotImplementedError

    def expr_Lambda(self, node: ast.Lambda) -> Abstract:
        return self.closure(node)

    def closure(self, node: ast.Lambda | ast.FunctionDef) -> Closure:
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: dict[str, Abstract] = {}
        for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
            defaults[parameter.arg] = self.expr(default)
        for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if keyword_default is not None:
                defaults[parameter.arg] = self.expr(keyword_default)
        return Closure(node, self.frame, defaults)

    # -- operators ---------------------------------------------------------------------------------------------------

    def expr_BinOp(self, node: ast.BinOp) -> Abstract:
        left = self.lazily(node.left)
        right = self.lazily(node.right)
        return self.binary(type(node.op), left, right, node)

    def binary(self, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        if op not in _BINARY:
            return self.matrix_product(left, right, node)
        primitive, fold = _BINARY[op]
        self.require_values(node, left, right)
        if self.is_array(left) or self.is_array(right):
            dtype = self.promoted(getattr(np, primitive), (left, right), node)
            if op is ast.Pow:
                return self.elementwise((left, right), lambda v: self.power_of_elements(v[0], v[1], node), dtype, node)
            return self.elementwise((left, right), lambda v: self.arithmetic(op, v[0], v[1], node), dtype, node)
        if isinstance(left, Static) and isinstance(right, Static):
            if (
                (left.numpys or right.numpys)
                and type(left.value) is type(right.value) is bool
                and op in (ast.Add, ast.Sub)
            ):
                self.refuse_truth_values(primitive, node)
            try:
                result = fold(left.value, right.value)
            except ArithmeticError:
                pass
            except TypeError as error:
                self.refuse("SD203", node, str(error))
            else:
                if isinstance(result, complex):
                    self.refuse("SD201", node, "the result is complex", help_="use two floats")
                return Static(result, left.numpys or right.numpys)
        for group in (left, right):
            if isinstance(group, Tuple) and group.kind is not None:
                self.require_no_operator(group.kind, fold.__name__, node)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and op is ast.Add:
            return Tuple(left.items + right.items)
        if isinstance(left, Tuple) and isinstance(right, Static) and op is ast.Mult:
            return Tuple(left.items * right.value)
        if isinstance(left, List) or isinstance(right, List):
            return self.list_operator(op, left, right, node)
        a, b = self.numbers(left, right, node)
        if op in (ast.Div, ast.FloorDiv, ast.Mod):
            self.before_division(b)
        if self.is_pythons(left) and self.is_pythons(right):
            self.assumes_pythons |= a.type == b.type == BOOL
            return self.pythons_own(self.arithmetic(op, a, b, node))
        self.require_long(primitive, (a, b), node)
        if a.type == BOOL and b.type == BOOL and self.has_numpys:
            if op is ast.Mult:
                return self.apply("logical_and", a, b)
            if op in (ast.Add, ast.Sub):
                self.refuse_truth_values(primitive, node)
        return self.arithmetic(op, a, b, node)

    def before_division(self, divisor: Value) -> None:
        raise NotImplementedError

    def require_no_operator(self, kind: type, name: str, node: ast.AST) -> None:
        """Refuse a named tuple whose class says itself what the operator does."""
        if own_methods(kind) & {f"__{side}{name}__" for side in ("", "r", "i")}:
            message = f"`{kind.__name__}` defines `__{name}__`, which is not supported"
            self.refuse("SD102", node, message, help_="write an ordinary function for it and call that")

    def arithmetic(self, op: type[ast.operator], a: Value, b: Value, node: ast.AST) -> Value:
        """Of two numbers, among which truth values are 0 and 1."""
        primitive, _ = _BINARY[op]
        bitwise = op in (ast.BitAnd, ast.BitOr, ast.BitXor)
        if not (bitwise and a.type == BOOL and b.type == BOOL):
            a, b = self.plain_number(a), self.plain_number(b)
        if primitive == "power" and a.type in (INT, BOOL) and b.type in (INT, BOOL):
            exponent = self.constants.get(b)
            if exponent is None or exponent < 0:
                power = self.apply(primitive, self.cast(a, FLOAT), b)  # Python's int ** negative int is a float
                base = abs(self.constants.get(a, 3))
                if exponent is None and base & (base - 1):  # powers of two are exact
                    self.powers.add(power)
                return power
        if op in (ast.FloorDiv, ast.Mod):
            self.require_exact(a)
            self.require_exact(b)
        if (bitwise or op in (ast.LShift, ast.RShift)) and (is_float(a.type) or is_float(b.type)):
            self.refuse("SD203", node, "this operator needs integers", help_="convert with `int(...)`")
        result = self.apply(primitive, a, b)
        if op in (ast.Add, ast.Sub, ast.Mult) and self.powers & {a, b} and all(self.is_whole(v) for v in (a, b)):
            self.powers.add(result)
        return result

    def is_whole(self, value: Value) -> bool:
        return value.type == INT or value in self.powers

    def require_exact(self, value: Value) -> None:
        """Raise where a power of integers, computed as a float, is so large that it may not be the integer it is."""
        if value in self.powers:
            large = self.apply("greater", self.apply("absolute", value), self.const(2.0**53))
            text = "an integer power is computed as a float here and is not exact beyond 2**53: multiply in a loop"
            self.raise_if(large, OverflowError, text)

    def power_of_elements(self, base: Value, exponent: Value, node: ast.AST) -> Abstract:
        """A power in an array: NumPy has no negative powers of integers there."""
        if is_float(base.type) or is_float(exponent.type):
            return self.arithmetic(ast.Pow, base, exponent, node)
        base, exponent = self.plain_number(base), self.plain_number(exponent)
        known = self.constants.get(exponent)
        if known is None or known < 0:
            negative = self.apply("less", exponent, self.const(0))
            self.raise_if(negative, ValueError, "Integers to negative integer powers are not allowed.")
        return self.apply("power", base, exponent)

    def numbers(self, left: Abstract, right: Abstract, node: ast.AST) -> tuple[Value, Value]:
        """Two scalars; an integer constant of more than 64 bits is a float beside a float, as Python takes it."""
        for large, other in ((left, right), (right, left)):
            if self.is_large(large):
                beside = self.number(other, node)
                if is_float(beside.type):
                    as_float = self.number(self.of_large(float, large, node), node)
                    return (as_float, beside) if large is left else (beside, as_float)
        return self.number(left, node), self.number(right, node)

    def is_large(self, x: Abstract) -> TypeGuard[Static]:
        """Whether it is an integer that has no place in 64 bits."""
        return isinstance(x, Static) and isinstance(x.value, int) and not -(2**63) <= x.value < 2**63

    def of_large(self, target: Any, large: Static, node: ast.AST) -> Abstract:
        raise NotImplementedError

    def plain_number(self, value: Value) -> Value:
        """A truth value in arithmetic is 0 or 1."""
        return self.cast(value, INT) if value.type == BOOL else value

    @property
    def has_numpys(self) -> bool:
        """Whether there are numbers of NumPy with types of their own: not in our functions, nor in what a GPU runs."""
        return not self.frame.library and not self.is_kernel

    def is_pythons(self, x: Abstract) -> bool:
        """Whether a number is known to be Python's own: NumPy's take part in arithmetic with a type of their own."""
        if isinstance(x, Static):
            return not x.numpys
        if not isinstance(x, Value) or x in self.numpys:
            return False
        return x in self.pythons or x in self.constants or x in self.counters

    def numpys_own(self, x: Value) -> Value:
        """A number that NumPy computes, also where it is folded to a constant."""
        if x in self.constants:
            self.numpys.add(x)
        return x

    def pythons_own(self, x: Value) -> Value:
        """A number that Python computes; one that is folded to another stays whose it was."""
        if self.operations and getattr(self.operations[-1], "out", None) is x:
            self.pythons.add(x)
        return x

    def unheld(self, value: Value) -> Value:
        """An integer from an array, converted: it has no longer the type it had there."""
        if value not in self.held:
            return value
        out = Value(INT, value.name)
        self.add(Apply(out, "int", (value,), span=self.span))
        return out

    def require_long(self, primitive: str, values: Sequence[Value], node: ast.AST) -> None:
        """Refuse arithmetic in which short integers of NumPy wrap around: beside Python's they keep their type."""
        held = [self.held.get(v) for v in values]
        if primitive not in _WRAP or not self.has_numpys or not any(held) or any(is_float(v.type) for v in values):
            return
        dtype = np.result_type(*(1 if h is None else np.dtype(h).type(1) for h in held))
        if dtype.kind == "u" or (dtype.itemsize < 4 and primitive != "invert"):
            message = f"arithmetic in {dtype} wraps around, which is not supported"
            self.refuse("SD201", node, message, help_="convert the element: `int(...)`")

    def refuse_truth_values(self, primitive: str, node: ast.AST) -> NoReturn:
        """Refuse what NumPy does with its truth values in another way than Python, where they may be NumPy's."""
        message, help_ = _OF_TRUTH_VALUES[primitive]
        unknown = "srcdiff cannot tell here whether this boolean is NumPy's or Python's"
        self.refuse("SD205", node, f"{message}, and {unknown}", help_=help_)

    def list_operator(self, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        if isinstance(left, List) and isinstance(right, List) and op is ast.Add:
            a, b = self.holding(left), self.holding(right)
            if isinstance(a, Items) and isinstance(b, Items):
                return self.new_list(a.items + b.items)
        if op is ast.Mult and isinstance(left, List):
            a = self.holding(left)
            if isinstance(a, Items) and isinstance(right, Static):
                return self.new_list(a.items * right.value)
            if isinstance(a, Items) and len(a.items) == 1 and isinstance(right, Value):
                return self.repeated(a.items[0], right)
        self.refuse("SD203", node, "this operation on lists is not supported", help_="append in a loop")

    def repeated(self, item: Abstract, times: Value) -> Abstract:
        """`[item] * n` for a number of times known at run time."""
        element = loosened(describe(item))
        types_ = leaf_types(element)
        if types_ is None or any(isinstance(t, Array) for t in types_):
            self.refuse("SD203", None, "a list of these elements cannot be repeated")
        length = self.apply("where", self.apply("greater", times, self.const(0)), times, self.const(0))
        arrays = tuple(
            self.alloc(t.dtype, (length,), leaf)
            for t, leaf in zip(types_, self.leaves(item, element), strict=True)
            if isinstance(t, Scalar)
        )
        return self.new_list(Stored(element, arrays, length))

    def number(self, x: Abstract, node: ast.AST) -> Value:
        """A scalar; arrays here mean whole-array code."""
        if isinstance(x, Value) and isinstance(x.type, Array):
            if x.type.rank == 0:
                return self.load(x, ())
            self.refuse("SD203", node, f"{self.in_words(x)} is used where a number is needed")
        if isinstance(x, Lazy):
            return self.number(self.forced(x), node)
        if isinstance(x, Static) and not isinstance(x.value, _NUMBERS):
            help_ = "" if is_plain(x.value) else instead_of(type(x.value))
            self.refuse("SD203", node, f"{self.in_words(x)} is used where a number is needed", help_=help_)
        return self.value(x, node)

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Abstract:
        if isinstance(node.op, ast.Not):
            truth = self.condition(node.operand)
            if isinstance(truth, Static):
                return Static(not truth.value)
            return self.pythons_own(self.apply("logical_not", truth))
        operand = self.lazily(node.operand)
        primitive, fold = _UNARY[type(node.op)]
        self.require_values(node, operand)
        if isinstance(operand, Static):
            try:
                return Static(fold(operand.value))
            except TypeError as error:
                self.refuse("SD203", node, str(error))
        return self.unary(primitive, operand, node)

    def unary(self, primitive: str, operand: Abstract, node: ast.AST) -> Abstract:
        if self.is_array(operand):
            dtype = self.promoted(getattr(np, primitive), (operand,), node)
            return self.elementwise((operand,), lambda v: self.signed(primitive, v[0], dtype, node), dtype, node)
        value = self.number(operand, node)
        if self.is_pythons(operand):
            self.assumes_pythons |= value.type == BOOL
            return self.pythons_own(self.signed(primitive, value, "int64", node))
        if value.type == BOOL and self.has_numpys:
            self.refuse_truth_values(primitive, node)
        self.require_long(primitive, (value,), node)
        return self.signed(primitive, value, "int64", node)

    def signed(self, primitive: str, value: Value, dtype: str, node: ast.AST) -> Value:
        """`-`, `+` or `~` of a number; the opposite of a truth value where the result is to be one."""
        if primitive == "invert" and dtype == "bool":
            return self.apply("logical_not", value)
        value = self.plain_number(value)
        if primitive == "invert" and is_float(value.type):
            self.refuse("SD203", node, "this operator needs integers", help_="convert with `int(...)`")
        return self.apply(primitive, value)

    def condition(self, node: ast.expr) -> Static | Value:
        """The truth of an expression whose value is used only as a condition."""
        if isinstance(node, ast.BoolOp):
            self.conditions |= set(joined_by_operators(node))
        return self.truth(self.expr(node), node)

    def truth(self, x: Abstract, node: ast.AST) -> Static | Value:
        """Whether Python takes it for true."""
        self.require_values(node, x)
        match x:
            case Static():
                return Static(bool(x.value))
            case Tuple():
                return Static(bool(x.items))
            case Record() if x.kind.is_mapping or not any(hasattr(x.kind.kind, n) for n in ("__bool__", "__len__")):
                return Static(bool(x.items) or not x.kind.is_mapping)
            case List():
                contents = self.holding(x)
                if isinstance(contents, Items):
                    return Static(bool(contents.items))
                assert isinstance(contents, Stored)
                return self.apply("greater", contents.length, self.const(0))
            case Value(type=Scalar(dtype="bool")):
                return x
        if self.is_array(x):
            self.refuse(
                "SD203", node, "the truth value of an array is ambiguous", help_="use `np.any(...)` or `np.all(...)`"
            )
        value = self.number(x, node)
        if value.type == BOOL:
            return value
        return self.apply("not_equal", value, self.const(0 if value.type == INT else 0.0))

    def expr_BoolOp(self, node: ast.BoolOp) -> Abstract:
        result = self.expr(node.values[0])
        for operand in node.values[1:]:
            result = self.short_circuit(isinstance(node.op, ast.And), result, operand, node)
        return result

    def short_circuit(self, is_and: bool, left: Abstract, right: ast.expr, node: ast.AST) -> Abstract:
        truth = self.truth(left, node)
        if isinstance(truth, Static):
            return self.expr(right) if truth.value == is_and else left
        result: list[Abstract] = []
        asked = node in self.conditions

        def evaluate() -> None:
            value = self.expr(right)
            result.append(self.truth(value, right) if asked else value)

        def keep() -> None:
            result.append(truth if asked else left)

        key = (self.frame.number, "%choice")
        self.branch_on(
            truth,
            lambda: self.choose(key, evaluate if is_and else keep, result),
            lambda: self.choose(key, keep if is_and else evaluate, result),
        )
        return self.simplified_choice(self.chosen(key), is_and)

    def choose(self, key: tuple[int, str], side: Callable[[], None], result: list[Abstract]) -> None:
        side()
        self.names[key] = result.pop()

    def simplified_choice(self, chosen: Abstract, is_and: bool) -> Abstract:
        """A branch that only computes one truth value from scalars reads better as `and` or `or`."""
        last = self.operations[-1] if self.operations else None
        if isinstance(chosen, Poison):
            return self.checked(chosen, "the result", None)
        if not (isinstance(last, If) and isinstance(chosen, Value) and chosen.type == BOOL and last.outs == (chosen,)):
            return chosen
        block = last.then if is_and else last.orelse
        if not all(_never_raises(o) for o in block.operations):
            return chosen
        other = last.orelse if is_and else last.then
        if other.yields[0] is not last.condition and self.constants.get(other.yields[0]) is not (not is_and):
            return chosen
        self.operations.pop()
        self.operations.extend(block.operations)
        result = self.apply("logical_and" if is_and else "logical_or", last.condition, block.yields[0])
        both = self.is_pythons(last.condition) and self.is_pythons(block.yields[0])
        return self.pythons_own(result) if both else result

    def expr_IfExp(self, node: ast.IfExp) -> Abstract:
        truth = self.condition(node.test)
        if isinstance(truth, Static):
            return self.expr(node.body if truth.value else node.orelse)
        key = (self.frame.number, "%choice")

        def side(expression: ast.expr) -> None:
            self.names[key] = self.expr(expression)

        self.branch_on(truth, lambda: side(node.body), lambda: side(node.orelse))
        chosen = self.chosen(key)
        return self.checked(chosen, "the result", node)

    def expr_Compare(self, node: ast.Compare) -> Abstract:
        if len(node.ops) > 1 and any(_may_raise(c) for c in node.comparators[1:]):
            return self.compare_in_iteration(node)
        left = self.lazily(node.left)
        result: Abstract | None = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.lazily(right_node)
            test = self.compare(op, left, right, node)
            if result is None:
                result = test
            elif isinstance(result, Static):
                result = test if result.value else result
            elif isinstance(test, Static):
                result = result if test.value else test
            else:
                both = self.is_pythons(result) and self.is_pythons(test)
                result = self.apply("logical_and", self.value(result), self.value(test))
                result = self.pythons_own(result) if both else result
            left = right
        assert result is not None
        return result

    def compare_in_iteration(self, node: ast.Compare) -> Abstract:
        """A chain of comparisons of which the later ones are evaluated only if the earlier ones hold."""
        key = (self.frame.number, "%choice")

        def link(k: int, left: Abstract) -> Abstract:
            right = self.expr(node.comparators[k])
            test = self.compare(node.ops[k], left, right, node)
            if k + 1 == len(node.ops):
                return test
            if isinstance(test, Static):
                return link(k + 1, right) if test.value else test

            def further() -> None:
                self.names[key] = link(k + 1, right)

            def ends() -> None:
                self.names[key] = Static(False)

            self.branch_on(self.value(test), further, ends)
            return self.chosen(key)

        return link(0, self.expr(node.left))

    def compare(self, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        self.require_values(node, left, right)
        if isinstance(op, ast.Is | ast.IsNot):
            return self.identical(left, right, isinstance(op, ast.IsNot), node)
        if isinstance(op, ast.In | ast.NotIn):
            return self.contains(left, right, isinstance(op, ast.NotIn), node)
        primitive, fold = _COMPARE[type(op)]
        if isinstance(left, Static) and isinstance(right, Static):
            try:
                return Static(bool(fold(left.value, right.value)), left.numpys or right.numpys)
            except TypeError as error:
                self.refuse("SD203", node, str(error))
        if isinstance(left, Static) != isinstance(right, Static):
            text = next(x for x in (left, right) if isinstance(x, Static))
            if not isinstance(text.value, _NUMBERS):
                if not isinstance(op, ast.Eq | ast.NotEq):
                    self.refuse("SD203", node, f"{self.in_words(left)} and {self.in_words(right)} cannot be ordered")
                return Static(isinstance(op, ast.NotEq))
        if self.is_array(left) or self.is_array(right):
            return self.elementwise((left, right), lambda v: self.compare(op, v[0], v[1], node), "bool", node)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and isinstance(op, ast.Eq | ast.NotEq):
            return self.equal_tuples(op, left, right, node)
        if isinstance(left, Tuple) and isinstance(right, Tuple):
            return self.ordered_tuples(op, left, right, node)
        result = self.apply(primitive, *self.numbers(left, right, node))
        return self.pythons_own(result) if self.is_pythons(left) and self.is_pythons(right) else result

    def identical(self, left: Abstract, right: Abstract, negated: bool, node: ast.AST) -> Abstract:
        """`is`, where it can be decided: constants, functions, lists, truth values."""
        if isinstance(left, Static) and isinstance(right, Static):
            return Static((left.value is right.value) != negated)
        constant = left if isinstance(left, Static) else right if isinstance(right, Static) else None
        other = right if constant is left else left
        if (
            constant is not None
            and isinstance(constant.value, bool)
            and isinstance(other, Value)
            and other.type == BOOL
        ):
            wanted = constant.value != negated
            return other if wanted else self.apply("logical_not", other)
        if constant is not None and (not isinstance(constant.value, _NUMBERS) or self.is_array(other)):
            return Static(negated)
        lists = [x for x in (left, right) if isinstance(x, List)]
        certain = not any(isinstance(self.names[list_key(x)], Slot) or len(self.perhaps(x)) > 1 for x in lists)
        if left is right or (len(lists) == 2 and certain):
            return Static((left is right) != negated)
        self.refuse(
            "SD205", node, "it is not known here whether two values are the same object", help_="compare with `==`"
        )

    def equal_tuples(self, op: ast.cmpop, left: Tuple, right: Tuple, node: ast.AST) -> Abstract:
        if len(left.items) != len(right.items):
            return Static(isinstance(op, ast.NotEq))
        result: Abstract = Static(True)
        for a, b in zip(left.items, right.items, strict=True):
            test = self.compare(ast.Eq(), a, b, node)
            if isinstance(result, Static) and result.value:
                result = test
            elif not (isinstance(test, Static) and test.value):
                result = self.apply("logical_and", self.value(result), self.value(test))
        if isinstance(op, ast.Eq):
            return result
        return Static(not result.value) if isinstance(result, Static) else self.apply("logical_not", self.value(result))

    def ordered_tuples(self, op: ast.cmpop, left: Tuple, right: Tuple, node: ast.AST) -> Abstract:
        """The first items that differ decide; if none does, the longer tuple is the larger one."""
        result: Abstract = Static(_COMPARE[type(op)][1](len(left.items), len(right.items)))
        strictly = ast.Lt() if isinstance(op, ast.Lt | ast.LtE) else ast.Gt()
        for a, b in reversed(list(zip(left.items, right.items, strict=False))):
            same, decides = self.compare(ast.Eq(), a, b, node), self.compare(strictly, a, b, node)
            if isinstance(same, Static):
                result = result if same.value else decides
            else:
                further = self.apply("logical_and", self.value(same), self.value(result))
                result = self.apply("logical_or", self.value(decides), further)
        return result

    def contains(self, item: Abstract, group: Abstract, negated: bool, node: ast.AST) -> Abstract:
        if isinstance(group, List):
            contents = self.holding(group)
            if isinstance(contents, Items):
                group = Tuple(contents.items)
        if isinstance(group, Record) and group.kind.is_mapping:
            return Static((self.key_position(group, item, node) is None) == negated)
        if isinstance(group, Static) and isinstance(item, Static):
            try:
                return Static((item.value in group.value) != negated)
            except TypeError as error:
                self.refuse("SD203", node, str(error))
        if not isinstance(group, Tuple):
            self.refuse("SD102", node, "`in` is supported for tuples only", help_="compare the elements in a loop")
        result: Abstract = Static(False)
        for other in group.items:
            test = self.compare(ast.Eq(), item, other, node)
            if isinstance(test, Static):
                result = Static(True) if test.value else result
            elif isinstance(result, Static):
                result = result if result.value else test
            else:
                result = self.apply(
                    "logical_or", self.value(result), test if isinstance(test, Value) else self.value(test)
                )
        if not negated:
            return result
        return Static(not result.value) if isinstance(result, Static) else self.apply("logical_not", self.value(result))

    # -- containers --------------------------------------------------------------------------------------------------

    def elements(
        self, nodes: list[ast.expr], read: Callable[[ast.expr], Abstract] | None = None
    ) -> tuple[Abstract, ...]:
        items: list[Abstract] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += self.unpacked(self.lazily(node.value), node)
            else:
                items.append((read or self.expr)(node))
        return tuple(items)

    def unpacked(self, x: Abstract, node: ast.AST) -> tuple[Abstract, ...]:
        """The elements of something whose length is known."""
        x = self.drained(x, node)
        if isinstance(x, List):
            held = self.holding(x)
            if isinstance(held, Items):
                return held.items
        found = self.iteration(x, node)
        if isinstance(found, Iteration):
            known = self.known_length(found)
            if known is None:
                self.refuse("SD205", node, "the number of elements is not known at compile time")
            return tuple(found.element(Static(k)) for k in range(known))
        return found

    def expr_Tuple(self, node: ast.Tuple) -> Abstract:
        return Tuple(self.elements(node.elts, self.lazily if self.frame.library else self.expr))

    def expr_List(self, node: ast.List) -> Abstract:
        return self.new_list(self.elements(node.elts))

    def expr_Dict(self, node: ast.Dict) -> Abstract:
        """A dictionary whose keys are known."""
        found: dict[str | int | enum.Enum, Abstract] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                more = self.expr(value)
                if not (isinstance(more, Record) and more.kind.is_mapping):
                    self.refuse("SD102", value, f"`**` of {self.in_words(more)} is not supported")
                found |= dict(zip(more.kind.names, more.items, strict=True))
                continue
            known = self.expr(key)
            if not (isinstance(known, Static) and is_key(known.value)):
                message = "the keys of a dictionary must be constant strings, integers or enum members"
                self.refuse("SD102", key, message, help_="use a list")
            found[known.value] = self.expr(value)
        return self.dictionary(found)

    def dictionary(self, items: Mapping[str | int | enum.Enum, Abstract]) -> Record:
        return Record(tuple(items.values()), mapping_layout(dict, items))

    def expr_ListComp(self, node: ast.ListComp) -> Abstract:
        return self.comprehension(node)

    # -- attributes and subscripts -----------------------------------------------------------------------------------

    def expr_Attribute(self, node: ast.Attribute) -> Abstract:
        base = self.lazily(node.value)
        match base:
            case Lazy() if node.attr in ("shape", "ndim", "size", "dtype"):
                return self.array_attribute(base, node)
            case Lazy() if node.attr not in _TAKEN_LAZILY:
                base = self.forced(base)
        match base:
            case Static(value=DeviceName() as device):
                return self.device_name(f"{device.name}.{node.attr}", node)
            case Static(value=types.ModuleType() as module) if is_device_module(module):
                return self.device_name(node.attr, node)
            case Static(value=types.ModuleType() as module):
                if not hasattr(module, node.attr):
                    self.refuse(
                        "SD204",
                        node,
                        f"module `{module.__name__}` has no `{node.attr}`",
                        help_="check the spelling",
                    )
                if self.frame.library:
                    return Static(original(module, node.attr))
                return self.look_up(module, node.attr, node)
            case Static(value=np.dtype() as dtype) if node.attr in ("kind", "char", "name", "itemsize", "type"):
                return Static(getattr(dtype, node.attr))
            case Static(value=np.finfo() | np.iinfo() as limits) if hasattr(limits, node.attr):
                found = getattr(limits, node.attr)
                if isinstance(found, np.floating):
                    return self.numpys_own(self.const(found.item(), Scalar(found.dtype.name)))
                return Static(found.item() if isinstance(found, np.generic) else found)
            case Static(value=np.ufunc()) if node.attr in _OF_UFUNCS:
                return Method(base, node.attr)
            case Static(value=enum.EnumType() as owner) if node.attr in owner.__members__:
                return Static(owner.__members__[node.attr])
            case Static(value=enum.Enum() as member):
                return self.member_attribute(member, node)
            case Static(value=type() as owner) if node.attr in vars(owner):
                return self.class_attribute(owner, node.attr, node)
            case Static() if not isinstance(base.value, str):
                self.refuse(
                    "SD203",
                    node,
                    f"attributes of {self.in_words(base)} are not supported",
                    help_=instead_of_attribute(base.value),
                )
            case Record(kind=layout) if layout.is_dataclass:
                return self.dataclass_attribute(base, node)
            case Tuple(kind=kind) if kind is not None and node.attr in kind._fields:  # type: ignore[attr-defined]
                return base.items[kind._fields.index(node.attr)]  # type: ignore[attr-defined]
            case Value(type=Array()):
                return self.array_attribute(base, node)
            case Value(type=Scalar()):
                return self.number_attribute(base, node)
        return Method(base, node.attr)

    def member_attribute(self, member: enum.Enum, node: ast.Attribute) -> Abstract:
        """The name of a member of an enum, or its value, which are constants."""
        try:
            value = attribute_of(member, node.attr)
        except LookupError:
            message = f"`{type(member).__name__}` computes `{node.attr}` itself, which is not supported"
            self.refuse("SD102", node, message, help_="write an ordinary function for it and call that")
        place = Attribute(Constant(member), f"_{node.attr}_")
        self.guard(place, value)
        return self.lift(value, place, node.attr, (), node, "fixed")

    def number_attribute(self, number: Value, node: ast.Attribute) -> Abstract:
        """NumPy's numbers have what arrays have."""
        found: dict[str, Abstract] = {
            "shape": Tuple(()),
            "ndim": Static(0),
            "size": Static(1),
            "dtype": Static(np.dtype(number.scalar.dtype)),
            "T": number,
            "real": number,
        }
        return found.get(node.attr, Method(number, node.attr))

    def dataclass_attribute(self, owner: Record, node: ast.Attribute) -> Abstract:
        """A field; or what its class has, of which a property is computed here."""
        if node.attr in owner.kind.names:
            return owner.items[owner.kind.names.index(node.attr)]
        found = self.attribute_of_class(owner, node.attr, node)
        if isinstance(class_entry(owner.kind.kind, node.attr), staticmethod):
            return found
        if isinstance(found, Static) and isinstance(found.value, property):
            return self.call_value(Static(found.value.fget), [owner], node)
        return Method(owner, node.attr) if isinstance(found, Static) and callable(found.value) else found

    def attribute_of_class(self, owner: Record, name: str, node: ast.AST) -> Abstract:
        """What the class of a dataclass has under a name."""
        kind = owner.kind.kind
        if name in owner.kind.shadowed:
            message = f"this instance of `{kind.__name__}` overrides the attribute `{name}` of its class"
            self.refuse("SD203", node, message, help_=f"make `{name}` a field of `{kind.__name__}`")
        if not any(name in vars(base) for base in kind.__mro__):
            message = f"`{kind.__name__}` has no `{name}`; it has {', '.join(map(str, owner.kind.names))}"
            self.refuse("SD203", node, message)
        return self.class_attribute(kind, name, node)

    def class_attribute(self, kind: type, name: str, node: ast.AST) -> Abstract:
        """What a class, or one above it, has under a name."""
        place = Summary(class_entry, Constant(kind), (name,))
        found = place.read()
        if isinstance(found, staticmethod):
            self.guard(place, found)
            return Static(found.__func__)
        return self.lift(found, place, name, (), node)

    def device_name(self, name: str, node: ast.AST) -> Abstract:
        raise NotImplementedError

    def require_values(self, node: ast.AST, *operands: Abstract) -> None:
        raise NotImplementedError

    def array_attribute(self, array: Value | Lazy, node: ast.Attribute) -> Abstract:
        match node.attr:
            case "shape":
                return Tuple(self.lengths(array))
            case "ndim":
                return Static(array.rank if isinstance(array, Lazy) else array.array.rank)
            case "size":
                return self.size(array)
            case "dtype":
                return Static(np.dtype(array.dtype if isinstance(array, Lazy) else array.array.dtype))
        assert isinstance(array, Value)
        match node.attr:
            case "T":
                return self.transposed(array, tuple(reversed(range(array.array.rank))))
            case "mT" if array.array.rank > 1:
                rank = array.array.rank
                return self.transposed(array, (*range(rank - 2), rank - 1, rank - 2))
            case "real":
                return array
            case "flat":
                return self.call_value(Static(np.ravel), [array], node)
            case "itemsize":
                return Static(np.dtype(array.array.dtype).itemsize)
            case "nbytes":
                itemsize = Static(np.dtype(array.array.dtype).itemsize)
                return self.binary(ast.Mult, self.size(array), itemsize, node)
        return Method(array, node.attr)

    def lengths(self, array: Value | Lazy) -> tuple[Abstract, ...]:
        """The length of each axis; what is known when the function is compiled is a constant."""
        if isinstance(array, Lazy):
            values = [s.value() for s in array.sizes]
        else:
            values = list(self.shape(array))
        return tuple(Static(self.constants[v]) if v in self.constants else v for v in values)

    def size(self, array: Value | Lazy) -> Abstract:
        total: Abstract = Static(1)
        for length in self.lengths(array):
            total = self.binary(ast.Mult, total, length, array)  # type: ignore[arg-type]
        return total

    def expr_Subscript(self, node: ast.Subscript) -> Abstract:
        base = self.lazily(node.value)
        return self.subscript(base, node.slice, node)

    def subscript(self, base: Abstract, where: ast.expr, node: ast.AST) -> Abstract:
        if isinstance(base, Lazy):
            parts = where.elts if isinstance(where, ast.Tuple) else [where]
            if self.frame.library and not any(isinstance(p, ast.Slice | ast.Starred) for p in parts):
                place = self.lazily(where)
                places = place.items if isinstance(place, Tuple) else (place,)
                if len(places) == base.rank and all(self.counts_from_start(p) for p in places):
                    return base.at(tuple(self.integer(p, node) for p in places))
            base = self.forced(base)
        match base:
            case Value(type=Array()):
                items = self.array_items(base, where, node)
                if all(isinstance(i, Index) for i in items) and len(items) == base.array.rank:
                    parts = where.elts if isinstance(where, ast.Tuple) else [where]
                    if any(isinstance(p, ast.Constant) and p.value is ... for p in parts):
                        return self.view_of_element(base, tuple(i.value for i in items if isinstance(i, Index)))
                    return self.load(base, tuple(i.value for i in items if isinstance(i, Index)))
                basic = [i for i in items if isinstance(i, Slice | Index | NewAxis)]
                if len(basic) < len(items):
                    return self.read_picked(base, items, node)
                return self.view(base, tuple(basic))
            case Tuple():
                return self.tuple_item(base, where, node)
            case Record() if base.kind.is_mapping:
                place_of_key = self.key_position(base, self.expr(where), node)
                if place_of_key is None:
                    has = f"it has {', '.join(map(repr, base.kind.names))}" if base.kind.names else "it is empty"
                    message = f"the dictionary has no key {ast.unparse(where)}; {has}"
                    self.refuse("SD203", node, message, help_="define all keys where the dictionary is created")
                return base.items[place_of_key]
            case List():
                return self.list_item(base, where, node)
            case Static(value=str()):
                position = self.expr(where)
                if isinstance(position, Static):
                    return Static(base.value[position.value])
            case Static(value=enum.EnumType() as kind):
                name = self.expr(where)
                if isinstance(name, Static) and name.value in kind.__members__:
                    return Static(kind.__members__[name.value])
                self.refuse("SD203", node, f"`{kind.__name__}` has no member {ast.unparse(where)}")
            case Static() if any(base.value is trick for trick in _INDEX_TRICKS):
                return self.index_trick(base.value, where, node)
        is_object = isinstance(base, Static) and not is_plain(base.value)
        help_ = instead_of(type(base.value)) if is_object and isinstance(base, Static) else ""
        self.refuse("SD203", node, f"{self.in_words(base)} cannot be indexed", help_=help_)

    def index_trick(self, trick: Any, where: ast.expr, node: ast.AST) -> Abstract:
        raise NotImplementedError

    def key_position(self, owner: Record, key: Abstract, node: ast.AST) -> int | None:
        """Where in a dictionary a key is, if it is there."""
        if not isinstance(key, Static):
            message = "the key of a dictionary must be known at compile time"
            self.refuse("SD205", node, message, help_="use a list or an array, which can be indexed at run time")
        return owner.kind.names.index(key.value) if key.value in owner.kind.names else None

    def counts_from_start(self, place: Abstract) -> bool:
        """Whether it is an index that the library counts from the start: it has no others but constants."""
        if isinstance(place, Static):
            return isinstance(place.value, int) and place.value >= 0
        return isinstance(place, Value) and place.type == INT

    def tuple_item(self, base: Tuple, where: ast.expr, node: ast.AST) -> Abstract:
        if isinstance(where, ast.Slice):
            parts = [None if p is None else self.static(p) for p in (where.lower, where.upper, where.step)]
            return Tuple(base.items[slice(*parts)])
        position = self.expr(where)
        if isinstance(position, Static) and isinstance(position.value, int):
            if not -len(base.items) <= position.value < len(base.items):
                self.refuse(
                    "SD203", node, f"index {position.value} is out of range for a tuple of {len(base.items)} elements"
                )
            return base.items[position.value]
        contents = self.stored_copy(base, node)
        return self.element(contents, self.list_position(contents, self.integer(position, node)))

    def stored_copy(self, base: Tuple, node: ast.AST) -> Stored:
        """A tuple of like numbers as an array, to be indexed at run time."""
        kinds = {loosened(describe(i)) for i in base.items}
        if len(kinds) != 1:
            message = "the index of a tuple with elements of different types must be known at compile time"
            self.refuse("SD205", node, message, help_="write a literal, or give all elements the same number type")
        return self.store_items(Items(base.items), kinds.pop())

    def static(self, node: ast.expr) -> Any:
        found = self.expr(node)
        if not isinstance(found, Static):
            self.refuse("SD205", node, "this must be known at compile time")
        return found.value

    def integer(self, x: Abstract, node: ast.AST, what: str = "an index must be an integer") -> Value:
        value = self.number(x, node)
        if is_float(value.type):
            self.refuse("SD203", node, what, help_="convert it with `int(...)`")
        return self.cast(value, INT)

    def list_item(self, base: List, where: ast.expr, node: ast.AST) -> Abstract:
        contents = self.holding(base)
        if isinstance(where, ast.Slice):
            if isinstance(contents, Items):
                parts = [None if p is None else self.static(p) for p in (where.lower, where.upper, where.step)]
                return self.new_list(contents.items[slice(*parts)])
            self.refuse("SD102", node, "a slice of this list is not supported", help_="copy the elements in a loop")
        return self.read_position(base, self.expr(where), node)

    def read_position(self, base: List, position: Abstract, node: ast.AST) -> Abstract:
        contents = self.holding(base)
        if isinstance(contents, Items) and isinstance(position, Static):
            if not -len(contents.items) <= position.value < len(contents.items):
                self.raise_always(IndexError, "list index out of range")
            item: Abstract = contents.items[position.value]
            return item
        return self.read_list(base, self.integer(position, node))

    def array_items(self, array: Value, where: ast.expr, node: ast.AST) -> list[Abstract | Item]:
        """The parts of a subscript: for each axis it speaks of a position, a range, or an array of positions."""
        parts = where.elts if isinstance(where, ast.Tuple) else [where]
        found: list[Abstract | ast.Slice] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                found.append(part)
                continue
            for one in self.elements([part], self.lazily):
                found += one.items if isinstance(one, Tuple) and part is where else (one,)
        return self.items_of(array, found, node)

    def items_of(self, array: Value, found: Sequence[Abstract | ast.Slice], node: ast.AST) -> list[Abstract | Item]:
        found = [self.array_of(i, node) if isinstance(i, Tuple) else i for i in found]
        axes = sum(self.axes_of(i) for i in found)
        if axes > array.array.rank:
            self.refuse("SD203", node, f"{axes} indices are given for an array with {array.array.rank} axes")
        items: list[Abstract | Item] = []
        for item in found:
            if isinstance(item, ast.Slice):
                items.append(Slice(*(self.slice_part(p, node) for p in (item.lower, item.upper, item.step))))
            elif isinstance(item, Static) and item.value is None:
                items.append(NewAxis())
            elif isinstance(item, Static) and item.value is ...:
                items += [Slice(None, None, None)] * (array.array.rank - axes)
            elif isinstance(item, Slice) or self.picks(item):
                items.append(item)
            elif (isinstance(item, Value) and item.type == BOOL) or (
                isinstance(item, Static) and isinstance(item.value, bool)
            ):
                self.refuse("SD203", node, "a boolean is used where an index is needed")
            else:
                items.append(Index(self.integer(item, node)))
        while items and isinstance(items[-1], Slice) and not items[-1].parts():
            items.pop()
        return items if items or array.array.rank == 0 else [Slice(None, None, None)]

    def axes_of(self, item: Abstract | ast.Slice) -> int:
        """How many axes a part of a subscript speaks of."""
        if isinstance(item, Static) and (item.value is None or item.value is ...):
            return 0
        is_mask = isinstance(item, Lazy) and item.dtype == "bool"
        if isinstance(item, Value) and isinstance(item.type, Array) and item.type.dtype == "bool":
            return item.type.rank
        return item.rank if is_mask and isinstance(item, Lazy) else 1

    def slice_part(self, part: ast.expr | None, node: ast.AST) -> Value | None:
        if part is None:
            return None
        found = self.expr(part)
        if isinstance(found, Static) and found.value is None:
            return None
        return self.integer(found, node)

    def dimension(self, array: Value, axis: int) -> Value:
        out = Value(INT)
        self.add(Dim(out, array, axis, span=self.span))
        return out

    def dim(self, array: Value, axis: int) -> Value:
        size = super().dim(array, axis)
        return self.pythons_own(size) if self.operations and isinstance(self.operations[-1], Dim) else size

    def expr_Slice(self, node: ast.Slice) -> Abstract:
        self.refuse("SD102", node, "a slice is only allowed inside brackets")

    def expr_Starred(self, node: ast.Starred) -> Abstract:
        self.refuse("SD102", node, "`*` is not allowed here")

    def expr_Call(self, node: ast.Call) -> Abstract:
        return self.call(node)

    def expr_GeneratorExp(self, node: ast.GeneratorExp) -> Abstract:
        """One that a builtin function goes through at once is a list; any other computes its elements later."""
        if self.frame.library:
            return self.comprehension(node)
        message = "a generator expression must be consumed where it is written"
        self.refuse("SD102", node, message, help_="write a list comprehension: `[... for ...]`")

    @staticmethod
    def range_of(start: Abstract, stop: Abstract, step: Abstract) -> Range:
        return Range(start, stop, step)


def ufunc_of(op: type[ast.operator]) -> np.ufunc:
    """The function of NumPy that an operator is."""
    ufunc: np.ufunc = getattr(np, _BINARY[op][0])
    return ufunc


def _may_raise(node: ast.AST) -> bool:
    """Whether evaluating it may raise or assign something."""
    kinds = (ast.Subscript, ast.Call, ast.NamedExpr, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
    return any(isinstance(n, kinds) for n in ast.walk(node))


def joined_by_operators(node: ast.BoolOp) -> Iterator[ast.BoolOp]:
    """`and` and `or`, with those that are operands of it."""
    yield node
    for operand in node.values:
        if isinstance(operand, ast.BoolOp):
            yield from joined_by_operators(operand)


def _never_raises(operation: Operation) -> bool:
    """Whether it may be computed where Python would not have."""
    if isinstance(operation, Apply):
        return operation.primitive not in ("divide", "floor_divide", "remainder", "power", "left_shift", "right_shift")
    return isinstance(operation, Const)


CHANGED = "changing a dictionary is not supported"
INSTEAD = "make a new dictionary, `{**old, key: value}`, or use separate variables"

_MANY = 100  # elements of what is read from outside
_KEYS = "use strings or integers as keys, or read the values that you need outside the function and pass them in"

_WRAP = {"add", "subtract", "multiply", "power", "left_shift", "negative", "square", "invert"}

_OF_TRUTH_VALUES = {
    "add": ("NumPy adds booleans with `or`, Python as integers", "write `int(...)` around them, or use `|`"),
    "subtract": ("NumPy does not subtract booleans, Python does", "write `int(...)` around them, or use `^`"),
    "negative": ("NumPy does not negate booleans, Python takes them as integers", "write `int(...)` around it"),
    "positive": ("NumPy does not negate booleans, Python takes them as integers", "write `int(...)` around it"),
    "invert": ("`~` of a boolean is `not` in NumPy and an integer in Python", "write `not`, or `~int(...)`"),
}

_INDEX_TRICKS = (np.r_, np.c_, np.mgrid, np.ogrid)

_OF_UFUNCS = {"reduce", "reduceat", "accumulate", "outer", "at"}

_TAKEN_LAZILY = {"sum", "mean", "prod", "max", "min", "var", "std", "any", "all", "argmax", "argmin", "dot", "cumsum"}
"""Methods of arrays that take the array element by element."""
