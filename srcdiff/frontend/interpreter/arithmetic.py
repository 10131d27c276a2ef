"""Operators: arithmetic on numbers, tuples, lists and arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.diagnostics.naming_objects import instead_of
from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, Object, Record, Static, Text, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.device_names import require_values
from srcdiff.frontend.interpreter.evaluation import call_named, evaluate_lazily
from srcdiff.frontend.interpreter.foreseen import after_operator, before_operator
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import elementwise, lengths_of, promoted_dtype, require_in_range
from srcdiff.frontend.interpreter.number_kinds import (
    as_plain_number,
    is_numpys,
    is_pythons,
    numpys_own,
    pythons_own,
    refuse_truth_values,
    require_exact,
    require_long,
)
from srcdiff.frontend.interpreter.numbers import as_number, as_numbers, is_array
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.tables import OPERATIONS, UNARY, expression
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, COMPLEX, FLOAT, INT, is_complex, is_inexact
from srcdiff.signature.structures import own_methods

BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
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

_OF_INTEGERS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""The operators whose results are integers if the operands are."""


@expression(ast.BinOp)
def binary_operation(reader: Reader, node: ast.BinOp) -> Abstract:
    left = evaluate_lazily(reader, node.left)
    right = evaluate_lazily(reader, node.right)
    return binary(reader, type(node.op), left, right, node)


def is_text(x: Abstract) -> bool:
    return isinstance(x, Text) or (isinstance(x, Static) and isinstance(x.value, str))


def binary(reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    left, right = needed(reader, left, node), needed(reader, right, node)
    if is_text(left) or is_text(right):
        text = OPERATIONS[Text](reader, op, left, right, node)
        if text is not None:
            return text
    for x in (left, right):
        if isinstance(x, Record | Object) or (isinstance(x, Tuple) and x.kind is not None):
            found = OPERATIONS[type(x)](reader, op, left, right, node)
            if found is not None:
                return found
    require_repeatable(reader, op, left, right, node)
    if op not in BINARY:
        return matrix_product(reader, left, right, node)
    primitive, fold = BINARY[op]
    require_values(reader, node, left, right)
    if is_array(left) or is_array(right):
        dtype = promoted_dtype(reader, getattr(np, primitive), (left, right), node)
        require_in_range(reader, left, dtype)
        require_in_range(reader, right, dtype)
        if op is ast.Pow:
            return elementwise(
                reader, (left, right), lambda v: power_of_elements(reader, v[0], v[1], node), dtype, node
            )
        return elementwise(reader, (left, right), lambda v: arithmetic(reader, op, v[0], v[1], node), dtype, node)
    if isinstance(left, Static) and isinstance(right, Static):
        if (left.numpys or right.numpys) and type(left.value) is type(right.value) is bool and op in (ast.Add, ast.Sub):
            refuse_truth_values(reader, primitive, node)
        try:
            result = fold(left.value, right.value)
        except ArithmeticError:
            pass
        except TypeError as error:
            reader.refuse("SD203", node, str(error))
        else:
            return Static(result, left.numpys or right.numpys)
    for group in (left, right):
        if isinstance(group, Tuple) and group.kind is not None:
            require_no_operator(reader, group.kind, fold.__name__, node)
    if isinstance(left, Tuple) and isinstance(right, Tuple) and op is ast.Add:
        return Tuple(left.items + right.items)
    if isinstance(left, Tuple) and isinstance(right, Static) and op is ast.Mult:
        return Tuple(left.items * right.value)
    if isinstance(left, List) or isinstance(right, List):
        of_lists = OPERATIONS[List](reader, op, left, right, node)
        assert of_lists is not None
        return of_lists
    a, b = as_numbers(reader, left, right, node)
    if op in (ast.Div, ast.FloorDiv, ast.Mod):
        before_division(reader, b)
    if reader.context.handlers:
        before_operator(reader, op, left, right, a, b, node)
    if is_pythons(reader, left) and is_pythons(reader, right):
        reader.assumes_pythons |= a.type == b.type == BOOL
        computed = pythons_own(reader, arithmetic(reader, op, a, b, node))
        after_operator(reader, op, left, right, (a, b), computed)
        return computed
    require_long(reader, primitive, (a, b), node)
    if a.type == BOOL and b.type == BOOL and reader.has_numpys:
        if op is ast.Mult:
            return reader.apply("logical_and", a, b)
        if op in (ast.Add, ast.Sub) and reader.frame.told is None:  # Numba adds them as integers
            refuse_truth_values(reader, primitive, node)
    computed = arithmetic(reader, op, a, b, node)
    return numpys_own(reader, computed) if is_numpys(reader, left) or is_numpys(reader, right) else computed


def require_repeatable(reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> None:
    """Refuse to repeat a tuple or a list a number of times that is not an integer."""
    for group, times in ((left, right), (right, left)):
        repeats = op is ast.Mult and isinstance(group, Tuple | List)
        if repeats and isinstance(times, Static) and not isinstance(times.value, int):
            reader.refuse("SD203", node, f"{in_words(reader, group)} cannot be multiplied by {in_words(reader, times)}")


def require_no_operator(reader: Reader, kind: type, name: str, node: ast.AST) -> None:
    """Refuse a named tuple whose class overrides the operator."""
    if own_methods(kind) & {f"__{side}{name}__" for side in ("", "r", "i")}:
        message = f"`{kind.__name__}` defines `__{name}__`, which is not supported"
        reader.refuse("SD102", node, message, help_="write a function for this operation, and call that")


def arithmetic(reader: Reader, op: type[ast.operator], a: Value, b: Value, node: ast.AST) -> Value:
    """Arithmetic of two numbers. Truth values count as 0 and 1."""
    primitive, _ = BINARY[op]
    bitwise = op in (ast.BitAnd, ast.BitOr, ast.BitXor)
    if not (bitwise and a.type == BOOL and b.type == BOOL):
        a, b = as_plain_number(reader, a), as_plain_number(reader, b)
    if primitive == "power" and a.type in (INT, BOOL) and b.type in (INT, BOOL):
        exponent = reader.constants.get(b)
        if exponent is None or exponent < 0:
            power = reader.apply(primitive, reader.cast(a, FLOAT), b)  # Python's int ** negative int is a float
            base = abs(reader.constants.get(a, 3))
            reader.exponents[power] = (b,)
            if exponent is None and base & (base - 1):  # powers of two are exact
                reader.powers.add(power)
            return power
    if primitive == "power" and is_complex(b.type):
        a = reader.cast(a, COMPLEX)  # its logarithm is complex
    if op in (ast.FloorDiv, ast.Mod):
        require_exact(reader, a)
        require_exact(reader, b)
    if (bitwise or op in (ast.LShift, ast.RShift)) and (is_inexact(a.type) or is_inexact(b.type)):
        reader.refuse("SD203", node, "this operator needs integers", help_="convert with `int(...)`")
    result = reader.apply(primitive, a, b)
    if op in _OF_INTEGERS and is_inexact(result.type) and all(v.type == INT or v in reader.exponents for v in (a, b)):
        reader.exponents[result] = (*reader.exponents.get(a, ()), *reader.exponents.get(b, ()))
        reader.powers.add(result)
    return result


def power_of_elements(reader: Reader, base: Value, exponent: Value, node: ast.AST) -> Abstract:
    """A power in an array. NumPy has no negative integer powers of integers there."""
    if is_inexact(base.type) or is_inexact(exponent.type):
        return arithmetic(reader, ast.Pow, base, exponent, node)
    base, exponent = as_plain_number(reader, base), as_plain_number(reader, exponent)
    known = reader.constants.get(exponent)
    if known is None or known < 0:
        negative = reader.apply("less", exponent, reader.const(0))
        reader.raise_if(negative, ValueError, "Integers to negative integer powers are not allowed.")
    return reader.apply("power", base, exponent)


def unary(reader: Reader, primitive: str, operand: Abstract, node: ast.AST) -> Abstract:
    if isinstance(operand, Record | Object | Tuple):
        found = UNARY[type(operand)](reader, primitive, operand, node)
        if found is not None:
            return found
    if is_array(operand):
        dtype = promoted_dtype(reader, getattr(np, primitive), (operand,), node)
        return elementwise(reader, (operand,), lambda v: signed(reader, primitive, v[0], dtype, node), dtype, node)
    value = as_number(reader, operand, node)
    if is_pythons(reader, operand):
        reader.assumes_pythons |= value.type == BOOL
        return pythons_own(reader, signed(reader, primitive, value, "int64", node))
    if value.type == BOOL and reader.has_numpys and (reader.frame.told is None or primitive == "invert"):
        refuse_truth_values(reader, primitive, node)
    require_long(reader, primitive, (value,), node)
    return signed(reader, primitive, value, "int64", node)


def signed(reader: Reader, primitive: str, value: Value, dtype: str, node: ast.AST) -> Value:
    """`-`, `+` or `~` of a number, or `not` if the result is to be a truth value."""
    if primitive == "invert" and dtype == "bool":
        return reader.apply("logical_not", value)
    value = as_plain_number(reader, value)
    if primitive == "invert" and is_inexact(value.type):
        reader.refuse("SD203", node, "this operator needs integers", help_="convert with `int(...)`")
    return reader.apply(primitive, value)


def matrix_product(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    for x in (left, right):
        if not is_array(x) and not isinstance(x, List | Tuple):
            foreign = x.value if isinstance(x, Static) else 0
            is_number = isinstance(foreign, int | float | complex)
            help_ = "use `*` for numbers" if is_number else instead_of(type(foreign))
            reader.refuse("SD203", node, f"`@` of {in_words(reader, x)} is not defined", help_=help_)
    return call_named(reader, "matmul", node, left, right)


def before_division(reader: Reader, divisor: Value) -> None:
    """Raise for a zero divisor, in a function with `error_model='python'`."""
    told = reader.frame.told
    if told is None or told.error_model != "python" or reader.error_model or reader.frame.library:
        return
    if reader.constants.get(divisor, 0) == 0:
        zero = reader.const(0.0 if is_inexact(divisor.type) else 0, divisor.scalar)
        reader.raise_if(reader.apply("equal", divisor, zero), ZeroDivisionError, "division by zero")


def number_of_elements(reader: Reader, array: Value | Lazy) -> Abstract:
    total: Abstract = Static(1)
    for length in lengths_of(reader, array):
        total = binary(reader, ast.Mult, total, length, array)  # type: ignore[arg-type]
    return total
