"""Elementwise functions: on numbers, and on arrays with `out=`, `where=` and `dtype=`."""

from __future__ import annotations

import ast
import cmath
import functools
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Keywords,
    Static,
    Tuple,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.arithmetic import binary, power_of_elements, signed
from srcdiff.frontend.interpreter.array_assignment import assign_array, note_overlap, reads_before_writing, require_cast
from srcdiff.frontend.interpreter.array_conversion import dtype_of
from srcdiff.frontend.interpreter.complex_functions import of_complex
from srcdiff.frontend.interpreter.foreseen import after_math, before_math
from srcdiff.frontend.interpreter.index_arrays import choose_elements
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, elementwise, promoted_dtype
from srcdiff.frontend.interpreter.number_kinds import (
    as_element,
    as_plain_number,
    is_large,
    is_pythons,
    require_exact,
    require_long,
    require_wide,
    unheld,
    whose,
)
from srcdiff.frontend.interpreter.numbers import as_number, is_array, of_large, truth_of
from srcdiff.frontend.source.scopes import has_try
from srcdiff.ir.nodes import Apply, Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import BOOL, COMPLEX, FLOAT, INT, is_complex, is_inexact

_OF_ANY_NUMBER: dict[str, tuple[str, Any]] = {"hypot": ("fabs", 0.0), "gcd": ("absolute", 0), "lcm": ("absolute", 1)}
"""Functions of any number of arguments, with their results for one argument and for none."""


def call_primitive(
    reader: Reader, primitive: str, args: Arguments, keywords: Keywords, node: ast.AST, target: Any = None
) -> Abstract:
    row = PRIMITIVES[primitive]
    if target is not None and any(is_array(a) for a in (*args, *keywords.values())):
        return primitive_on_arrays(reader, primitive, args, keywords, node, target)
    if keywords:
        reader.refuse("SD304", node, f"keyword arguments of `{primitive}` are supported for arrays only")
    if primitive == "power" and len(args) == 3:
        reader.refuse("SD304", node, "`pow` with a modulus is not supported")
    if primitive in ("int", "float") and args and isinstance(args[0], Static) and isinstance(args[0].value, str):
        return number_in_text(reader, {"int": int, "float": float}[primitive], args, node)
    if target in (int, float, bool, abs) and len(args) == 1 and is_large(args[0]):
        return of_large(reader, target, args[0], node)
    if not args and not keywords and target in _OF_NOTHING:
        return Static(target())
    if len(args) != row.arity:
        if primitive == "log" and len(args) == 2:
            top, bottom = (call_primitive(reader, "log", [a], {}, node) for a in args)
            return binary(reader, ast.Div, top, bottom, node)
        if primitive in _OF_ANY_NUMBER and len(args) < 2:
            size, nothing = _OF_ANY_NUMBER[primitive]
            return call_primitive(reader, size, args, {}, node) if args else Static(nothing)
        if primitive in _OF_ANY_NUMBER:
            first = call_primitive(reader, primitive, args[:2], {}, node)
            return call_primitive(reader, primitive, [first, *args[2:]], {}, node)
        reader.refuse("SD304", node, f"`{primitive}` takes {row.arity} arguments, but {len(args)} are given")
    if primitive == "power" and isinstance(target, np.ufunc):
        return power_of_elements(reader, as_number(reader, args[0], node), as_number(reader, args[1], node), node)
    if primitive == "power":
        return binary(reader, ast.Pow, args[0], args[1], node)
    if primitive in ("logical_and", "logical_or"):  # its operands are numbers, true if nonzero
        args = [truth_of(reader, a, node) for a in args]
    values = [as_number(reader, a, node) for a in args]
    if isinstance(target, np.ufunc) and row.result != "bool" and all(v.type == BOOL for v in values):
        return of_truth_values(reader, primitive, values, target, node)
    if isinstance(target, np.ufunc):
        require_long(reader, primitive, values, node)
    if row.result == "float":
        values = [reader.cast(v, FLOAT) if not is_inexact(v.type) else v for v in values]
    if any(is_complex(v.type) for v in values):
        if getattr(target, "__module__", "") == "math":
            help_ = f"use `cmath.{target.__name__}`" if hasattr(cmath, target.__name__) else ""
            reader.refuse("SD203", node, f"`math.{target.__name__}` takes no complex numbers", help_=help_)
        if primitive == "float_power":
            base, exponent = (reader.cast(as_plain_number(reader, v), COMPLEX) for v in values)
            power = as_number(reader, power_of_elements(reader, base, exponent, node), node)
            return whose(reader, target, args, power)
        found = of_complex(reader, primitive, values)
        if found is not None:
            return whose(reader, target, args, found)
    if reader.context.handlers:
        before_math(reader, primitive, target, values)
    if primitive in ("int", "float", "bool"):
        kind = {"int": INT, "float": FLOAT, "bool": BOOL}[primitive]
        if kind == INT:
            require_exact(reader, values[0])
        made = unheld(reader, reader.cast(values[0], kind))
        return whose(reader, target, args, pythons_copy(reader, made, primitive) if target in _OF_PYTHON else made)
    if target is abs and values[0].type == BOOL and not is_pythons(reader, args[0]):
        return values[0]
    if row.result != "bool":
        values = [as_plain_number(reader, v) for v in values]
    result = whose(reader, target, args, reader.apply(primitive, *values))
    if reader.context.handlers:
        after_math(reader, primitive, target, values, result)
    return result


_OF_PYTHON = (float, int)
_OF_NOTHING = (float, int, bool)


def pythons_copy(reader: Reader, value: Value, primitive: str) -> Value:
    """A number of NumPy's as one of Python's, if a `try` may ask which it is: a division by it may raise then."""
    around = (reader.frame.node, *(called.node for called in reader.chain))
    if is_pythons(reader, value) or not (reader.context.handlers or any(map(has_try, around))):
        return value
    out = Value(value.type, value.name)
    reader.add(Apply(out, "float" if primitive == "float" else "positive", (value,), span=reader.span))
    return out


def of_truth_values(reader: Reader, primitive: str, values: list[Value], target: np.ufunc, node: ast.AST) -> Value:
    """An elementwise function of truth values, Python's or NumPy's. NumPy has rules for the type of the result."""
    kind = promoted_dtype(reader, target, values, node)
    require_wide(reader, kind, node)
    if primitive == "invert":
        return signed(reader, primitive, values[0], kind, node)
    return as_element(reader, as_number(reader, call_primitive(reader, primitive, list(values), {}, node), node), kind)


def number_in_text(reader: Reader, kind: type, args: list[Abstract], node: ast.AST) -> Abstract:
    """`float("inf")`, `int("ff", 16)`."""
    if not all(isinstance(a, Static) for a in args):
        reader.refuse("SD205", node, "the text of a number must be known at compile time")
    try:
        return Static(kind(*(a.value for a in args if isinstance(a, Static))))
    except ValueError as error:
        reader.raise_always(ValueError, str(error))
    except TypeError as error:
        reader.refuse("SD203", node, str(error))


def primitive_on_arrays(
    reader: Reader, primitive: str, args: Arguments, keywords: Keywords, node: ast.AST, target: Any
) -> Abstract:
    """An elementwise function of NumPy, with `out=`, `where=` and `dtype=`."""
    if getattr(target, "__module__", "") == "math":
        help_ = f"use `np.{primitive}`"
        reader.refuse("SD203", node, f"`math.{target.__name__}` takes numbers, not arrays", help_=help_)
    if target is bool:
        return truth_of(reader, args[0], node)
    out, where, dtype = (keywords.pop(n, None) for n in ("out", "where", "dtype"))
    if out is None and len(args) == PRIMITIVES[primitive].arity + 1:
        *args, out = args
    if keywords:
        reader.refuse("SD304", node, f"the keyword `{next(iter(keywords))}` of `{primitive}` is not supported")
    kind = promoted_dtype(reader, target, args, node)
    if dtype is not None and not is_none(dtype):
        kind = dtype_of(reader, dtype, node)
        promoted_dtype(reader, functools.partial(target, dtype=kind), args, node)  # check

    def element(values: list[Value]) -> Abstract:
        if primitive == "power":
            return power_of_elements(reader, values[0], values[1], node)
        if primitive == "invert":
            return signed(reader, primitive, values[0], kind, node)
        return call_primitive(reader, primitive, list(values), {}, node)

    result = elementwise(reader, args, element, kind, node)
    if isinstance(out, Tuple) and len(out.items) == 1:
        out = out.items[0]
    if out is None or is_none(out):
        if where is not None and not (isinstance(where, Static) and where.value is True):
            reader.refuse(
                "SD304",
                node,
                "`where` without `out` leaves elements uninitialised",
                help_="use `np.where`, or pass `out`",
            )
        return result
    if not is_array_value(out):
        reader.refuse("SD203", node, f"{in_words(reader, out)} is used where an array is needed")
    require_cast(reader, kind, out, node)
    for operand in (a for a in args if is_array(a)):
        if not reads_before_writing(reader, as_lazy(reader, operand, node), out):
            note_overlap(reader, as_lazy(reader, operand, node), out, node, in_place=True)
    if where is not None:
        result = choose_elements(reader, where, result, out, out.array.dtype, node)
    assign_array(reader, out, result, node)
    return out
