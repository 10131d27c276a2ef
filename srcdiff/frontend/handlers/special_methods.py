"""Special methods of instances: operators, comparisons, length, elements and `super()`."""

from __future__ import annotations

import ast
import dataclasses
import types
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Lazy,
    Namespace,
    Object,
    Record,
    Static,
    Super,
    Tuple,
    class_of,
    is_instance,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import WHOSE, IsWritten
from srcdiff.frontend.interpreter.comparisons import compare
from srcdiff.frontend.interpreter.evaluation import call_value, evaluate
from srcdiff.frontend.interpreter.instances import call_special, defines, in_class
from srcdiff.frontend.interpreter.number_kinds import is_pythons
from srcdiff.frontend.interpreter.numbers import is_array
from srcdiff.frontend.interpreter.tables import comparison_of, handles_syntax, in_place, operation, subscripts, unary_of
from srcdiff.ir.nodes import Value

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("__eq__", "__eq__"),
    ast.NotEq: ("__ne__", "__ne__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__le__"),
}
_UNARY = {"negative": "__neg__", "positive": "__pos__", "invert": "__invert__"}


def method_of(reader: Reader, x: Abstract, name: str) -> Any:
    """The special method of an instance or a named tuple, if its class defines one in Python."""
    if isinstance(x, Tuple):
        found = in_class(x.kind, name) if x.kind is not None and defines(x, name) else None
    else:
        found = in_class(class_of(x), name) if is_instance(x) else MISSING
    return found if isinstance(found, types.FunctionType) else None


def kind_of(x: Abstract) -> type | None:
    """The class of an instance or a named tuple."""
    return x.kind if isinstance(x, Tuple) else class_of(x) if is_instance(x) else None


def is_declined(x: Abstract) -> bool:
    """Whether a special method returns `NotImplemented`."""
    return isinstance(x, Static) and x.value is NotImplemented


def is_subclass_on_the_right(left: Abstract, right: Abstract) -> bool:
    kinds = kind_of(left), kind_of(right)
    return None not in kinds and kinds[1] is not kinds[0] and issubclass(kinds[1], kinds[0])  # type: ignore[arg-type]


def require_no_array(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> None:
    """Refuse an array on the left, because NumPy would call the method of the instance for every element."""
    of_arrays = in_class(class_of(right), "__array_ufunc__") if is_instance(right) else None
    if of_arrays is not None and (isinstance(left, Lazy) or (isinstance(left, Value) and is_array(left))):
        message = "NumPy applies this operator to each element of the array and the instance"
        reader.refuse(
            "SD102", node, message, help_="exchange the operands, or set `__array_ufunc__ = None` in the class"
        )


def require_no_sequence(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> None:
    """Refuse a number of NumPy's on the left of an instance that NumPy would convert to an array of its elements."""
    kind = kind_of(right)
    if kind is None or is_array(left) or not isinstance(left, Value | Static) or reader.frame.library:
        return
    is_sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    if not is_sequence or hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_priority__"):
        return
    reader.assumes_pythons = True
    if not is_pythons(reader, left):
        if WHOSE not in reader.stateful:
            raise IsWritten(WHOSE)
        message = f"NumPy takes `{kind.__name__}` for a sequence, because it defines `__len__` and `__getitem__`"
        message += ", if the number on the left is NumPy's"
        help_ = f"write `float(...)` around the number, or set `__array_ufunc__ = None` in `{kind.__name__}`"
        reader.refuse("SD102", node, message, help_=help_)


@operation(Record, Object, Tuple)
def binary_operator(
    reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST
) -> Abstract | None:
    """`a + b` of instances: `a.__add__(b)`, or `b.__radd__(a)`. A subclass on the right is asked first."""
    require_no_array(reader, left, right, node)
    require_no_sequence(reader, left, right, node)
    ways = [(left, f"__{_BINARY[op]}__", right), (right, f"__r{_BINARY[op]}__", left)]
    kinds = kind_of(left), kind_of(right)
    if kinds[0] is not None and kinds[0] is kinds[1]:
        ways.pop()
    elif is_subclass_on_the_right(left, right) and method_of(reader, right, ways[1][1]) is not method_of(
        reader, left, ways[1][1]
    ):
        ways.reverse()
    for owner, name, other in ways:
        if method_of(reader, owner, name) is not None:
            found = call_special(reader, owner, name, [other], node)
            if not is_declined(found):
                return found
    return None


@in_place(Record, Object, Tuple)
def in_place_operator(
    reader: Reader, op: type[ast.operator], old: Abstract, value: Abstract, node: ast.AST
) -> Abstract | None:
    """`a += b` of an instance that has `__iadd__`."""
    name = f"__i{_BINARY[op]}__"
    found = call_special(reader, old, name, [value], node) if method_of(reader, old, name) is not None else None
    return None if found is None or is_declined(found) else found


@comparison_of(Record, Object, Namespace)
def comparison_operator(
    reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST
) -> Abstract | None:
    """`a < b` of instances: `a.__lt__(b)`, or `b.__gt__(a)`. Two dataclasses are equal if their fields are equal."""
    names = _COMPARE.get(type(op))
    if names is None:
        return membership(reader, op, left, right, node) if isinstance(op, ast.In | ast.NotIn) else None
    require_no_array(reader, left, right, node)
    require_no_sequence(reader, left, right, node)
    ways = [(left, names[0], right), (right, names[1], left)]
    if is_subclass_on_the_right(left, right):
        ways.reverse()
    for owner, name, other in ways:
        found = own_comparison(reader, owner, name, other, node)
        if found is not None:
            return found
    if isinstance(op, ast.NotEq):
        equal = equal_fields(reader, left, right, node)
        return None if equal is None else compare(reader, ast.Eq(), equal, Static(False), node)
    return equal_fields(reader, left, right, node) if isinstance(op, ast.Eq) else None


def membership(reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract | None:
    """`x in a` of an instance: the truth value of `a.__contains__(x)`."""
    if method_of(reader, right, "__contains__") is None:
        return None
    test = ast.NotEq() if isinstance(op, ast.In) else ast.Eq()
    return compare(reader, test, call_special(reader, right, "__contains__", [left], node), Static(False), node)


def own_comparison(reader: Reader, x: Abstract, name: str, other: Abstract, node: ast.AST) -> Abstract | None:
    """The result of a comparison method of the user. Without `__ne__`, `!=` is the negation of `==`."""
    opposite = name == "__ne__" and method_of(reader, x, name) is None
    method = method_of(reader, x, "__eq__" if opposite else name)
    if method is None or method.__code__.co_filename == "<string>":
        return None
    found = call_special(reader, x, "__eq__" if opposite else name, [other], node)
    if is_declined(found):
        return None
    return compare(reader, ast.Eq(), found, Static(False), node) if opposite else found


def equal_fields(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> Abstract | None:
    """Whether the fields of two dataclasses are equal, as in the `__eq__` of `dataclasses`."""
    both = isinstance(left, Record) and isinstance(right, Record) and left.kind.is_instance and right.kind.is_instance
    method = method_of(reader, left, "__eq__")
    if not both or method is None or method.__code__.co_filename != "<string>":
        return None
    assert isinstance(left, Record)
    assert isinstance(right, Record)
    kind = left.kind.kind
    if kind is not right.kind.kind:
        return Static(False)
    writer = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    compared = [left.kind.names.index(f.name) for f in dataclasses.fields(writer) if f.compare]
    sides = [Tuple(tuple(x.items[k] for k in compared)) for x in (left, right)]
    return compare(reader, ast.Eq(), sides[0], sides[1], node)


@unary_of(Record, Object, Tuple)
def unary_operator(reader: Reader, primitive: str, operand: Abstract, node: ast.AST) -> Abstract | None:
    name = _UNARY.get(primitive, "")
    return call_special(reader, operand, name, [], node) if method_of(reader, operand, name) is not None else None


@subscripts(Record, Object)
def element(reader: Reader, base: Abstract, where: ast.expr, node: ast.AST) -> Abstract:
    """`a[i]` of an instance: `a.__getitem__(i)`."""
    if isinstance(where, ast.Slice):
        parts = [Static(None) if x is None else evaluate(reader, x) for x in (where.lower, where.upper, where.step)]
        index = call_value(reader, Static(slice), parts, node)
    else:
        index = evaluate(reader, where)
    return call_special(reader, base, "__getitem__", [index], node)


@handles_syntax(super)
def super_call(reader: Reader, node: ast.Call) -> Abstract | None:
    """`super()` in a method: the class that defines it, and the first argument."""
    frame = reader.frame
    while frame.captured is None and frame.parent is not None:
        frame = frame.parent
    if frame.captured is None or node.keywords or len(node.args) not in (0, 2):
        return None
    if node.args:
        kind, of = (evaluate(reader, a) for a in node.args)
        above = kind.value if isinstance(kind, Static) else None
    else:
        function = frame.captured.function
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        above = cells["__class__"].cell_contents if "__class__" in cells else None
        first = frame.captured.instance or function.__code__.co_varnames[0]
        of = evaluate(reader, ast.copy_location(ast.Name(first, ast.Load()), node))
    if not isinstance(above, type) or not is_instance(of):
        reader.refuse("SD102", node, "`super()` is supported in methods of instances only")
    return Super(of, above)
