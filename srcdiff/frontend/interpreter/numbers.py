"""Conversions of values: to a number, an integer, a truth value."""

from __future__ import annotations

import ast
from typing import Any

from srcdiff.diagnostics.naming_objects import instead_of, is_plain
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Items,
    Lazy,
    List,
    Optional,
    Record,
    Static,
    Stored,
    Tuple,
    is_array_value,
    is_chosen_text,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.device_names import require_values
from srcdiff.frontend.interpreter.dictionaries import as_mapping, is_changing
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.number_kinds import is_large
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, INT, Scalar, is_inexact

NUMBERS = (bool, int, float, complex)


def truth_of(reader: Reader, x: Abstract, node: ast.AST) -> Static | Value:
    """The truth value of a value, as in Python."""
    if isinstance(x, Optional):
        inner = truth_of(reader, x.value, node)
        if isinstance(inner, Static):
            return as_value(reader, x.flag) if inner.value else inner
        return reader.apply("logical_and", as_value(reader, x.flag), inner)
    require_values(reader, node, x)
    x = as_mapping(reader, x) if is_changing(x) else x
    match x:
        case Choice() if is_chosen_text(x):
            result: Static | Value = Static(False)
            for k, option in enumerate(x.options):
                if truth_of(reader, option, node) == Static(True):
                    is_it = reader.apply("equal", x.number, reader.const(k))
                    result = reader.apply("logical_or", as_value(reader, result), is_it)
            return result
        case Static():
            try:
                return Static(bool(x.value))
            except TypeError as error:
                reader.refuse("SD203", node, str(error))
        case Tuple():
            return Static(bool(x.items))
        case Record() if x.kind.is_mapping or not any(hasattr(x.kind.kind, n) for n in ("__bool__", "__len__")):
            return Static(bool(x.items) or not x.kind.is_mapping)
        case List():
            contents = contents_of_list(reader, x)
            if isinstance(contents, Items):
                return Static(bool(contents.items))
            assert isinstance(contents, Stored)
            return reader.apply("greater", contents.length, reader.const(0))
        case Value(type=Scalar(dtype="bool")):
            return x
    if is_array(x):
        message = "the truth value of an array is ambiguous"
        reader.refuse("SD203", node, message, help_="use `np.any(...)` or `np.all(...)`")
    value = as_number(reader, x, node)
    if value.type == BOOL:
        return value
    return reader.apply("not_equal", value, reader.const(0 if value.type == INT else 0.0))


def as_number(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    """A scalar. Arrays are refused here."""
    x = needed(reader, x, node)
    if is_array_value(x):
        if x.array.rank == 0:
            return reader.load(x, ())
        reader.refuse("SD203", node, f"{in_words(reader, x)} is used where a number is needed")
    if isinstance(x, Lazy):
        return as_number(reader, forced(reader, x), node)
    if isinstance(x, Static) and not isinstance(x.value, NUMBERS):
        help_ = "" if is_plain(x.value) else instead_of(type(x.value))
        reader.refuse("SD203", node, f"{in_words(reader, x)} is used where a number is needed", help_=help_)
    return as_value(reader, x, node)


def as_numbers(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> tuple[Value, Value]:
    """Two scalars. An integer constant of more than 64 bits becomes a float if the other is a float, as in Python."""
    for large, other in ((left, right), (right, left)):
        if is_large(large):
            beside = as_number(reader, other, node)
            if is_inexact(beside.type):
                as_float = as_number(reader, of_large(reader, float, large, node), node)
                return (as_float, beside) if large is left else (beside, as_float)
    return as_number(reader, left, node), as_number(reader, right, node)


def of_large(reader: Reader, target: Any, large: Static, node: ast.AST) -> Abstract:
    """A builtin function of an integer that does not fit into 64 bits."""
    try:
        return Static(target(large.value))
    except OverflowError as error:
        reader.raise_always(OverflowError, str(error))


_DIFFERENTIATED = (
    "the derivative is taken with respect to this integer, so it is a float: choose other arguments or attributes by "
    "`wrt`, or declare the attribute as an integer in its class (`n: int`)"
)


def as_integer(reader: Reader, x: Abstract, node: ast.AST, what: str = "an index must be an integer") -> Value:
    value = as_number(reader, x, node)
    if value in reader.exponents and not any(map(reader.catching, (IndexError, OverflowError, TypeError))):
        return integer_of_power(reader, value)
    if is_inexact(value.type):
        help_ = _DIFFERENTIATED if value in reader.whole else "convert it with `int(...)`"
        reader.refuse("SD203", node, what, help_=help_)
    return reader.cast(value, INT)


def integer_of_power(reader: Reader, value: Value) -> Value:
    """The integer that a sum, a product or a quotient of powers is. With a negative exponent, Python has a float."""
    for exponent in dict.fromkeys(reader.exponents[value]):
        is_float = reader.apply("less", exponent, reader.const(0))
        reader.raise_if(is_float, TypeError, "'float' object cannot be interpreted as an integer")
    is_exact = reader.apply("less_equal", reader.apply("absolute", value), reader.const(2.0**53))
    text = "an integer power is computed as a float here and is not exact beyond 2**53"
    reader.raise_if(reader.apply("logical_not", is_exact), OverflowError, text)
    return reader.cast(value, INT)


def is_array(x: Abstract) -> bool:
    return isinstance(x, Lazy) or (is_array_value(x) and x.array.rank > 0)
