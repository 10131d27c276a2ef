"""Tests for exceptions that Python's operations raise, inside a `try` that catches them.

Elsewhere, a division by zero gives infinity or NaN, and so does a function outside of its domain.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.list_elements import is_below
from srcdiff.frontend.interpreter.number_kinds import is_numpys, is_pythons
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import is_inexact

Test = Callable[[Reader, Sequence[Value]], Value]

_DOMAIN = (ValueError, "math domain error")
_RANGE = (OverflowError, "math range error")


def foresees(reader: Reader, kind: type[BaseException]) -> bool:
    """Whether such an exception is caught. Operations inside NumPy's functions do not raise."""
    return bool(reader.context.handlers) and not reader.frame.library and reader.catching(kind) is not None


# -- conditions ------------------------------------------------------------------------------------------------------


def _compared(how: str, bound: float, position: int = 0) -> Test:
    return lambda reader, x: reader.apply(how, x[position], reader.const(bound))


def _joined(primitive: str, tests: Sequence[Test]) -> Test:
    def joined(reader: Reader, x: Sequence[Value]) -> Value:
        return functools.reduce(functools.partial(reader.apply, primitive), [test(reader, x) for test in tests])

    return joined


def _either(*tests: Test) -> Test:
    return _joined("logical_or", tests)


def _all(*tests: Test) -> Test:
    return _joined("logical_and", tests)


def _is(primitive: str, position: int = 0) -> Test:
    return lambda reader, x: reader.apply(primitive, x[position])


def _fraction(position: int = 0) -> Test:
    """Whether a number is not an integer."""
    return lambda reader, x: reader.apply("not_equal", x[position], reader.apply("floor", x[position]))


def _whole(position: int = 0) -> Test:
    return lambda reader, x: reader.apply("equal", x[position], reader.apply("floor", x[position]))


_INFINITE = ((_is("isinf"), *_DOMAIN),)
_NOT_POSITIVE = ((_compared("less_equal", 0.0), *_DOMAIN),)
_BEYOND_ONE = ((_either(_compared("less", -1.0), _compared("greater", 1.0)), *_DOMAIN),)
_POLE = (_all(_compared("less_equal", 0.0), _whole()), *_DOMAIN)


def _overflows(*bounds: float) -> tuple[tuple[Test, type[BaseException], str], ...]:
    beyond = _either(*(_compared("greater" if b > 0 else "less", b) for b in bounds))
    return ((_all(beyond, _is("isfinite")), *_RANGE),)


_OF_MATH: dict[str, tuple[tuple[Test, type[BaseException], str], ...]] = {
    **dict.fromkeys(("sin", "cos", "tan"), _INFINITE),
    **dict.fromkeys(("log", "log2", "log10"), _NOT_POSITIVE),
    **dict.fromkeys(("arcsin", "arccos"), _BEYOND_ONE),
    "sqrt": ((_compared("less", 0.0), *_DOMAIN),),
    "log1p": ((_compared("less_equal", -1.0), *_DOMAIN),),
    "arccosh": ((_compared("less", 1.0), *_DOMAIN),),
    "arctanh": ((_either(_compared("less_equal", -1.0), _compared("greater_equal", 1.0)), *_DOMAIN),),
    "exp": _overflows(709.782712893384),
    "expm1": _overflows(709.782712893384),
    "exp2": _overflows(1024.0 - 2.0**-43),
    "sinh": _overflows(710.4758600739439, -710.4758600739439),
    "cosh": _overflows(710.4758600739439, -710.4758600739439),
    "gamma": (_POLE, (_compared("equal", -math.inf), *_DOMAIN), *_overflows(171.6243769563027)),
    "lgamma": (_POLE, *_overflows(2.5599833278516108e305)),
    "fmod": (
        (
            _either(
                _all(_compared("equal", 0.0, 1), lambda reader, x: _not(reader, _is("isnan")(reader, x))),
                _all(_is("isinf"), lambda reader, x: _not(reader, _is("isnan", 1)(reader, x))),
            ),
            *_DOMAIN,
        ),
    ),
    "float_power": (
        (_all(_compared("less", 0.0), _is("isfinite"), _is("isfinite", 1), _fraction(1)), *_DOMAIN),
        (_all(_compared("equal", 0.0), _compared("less", 0.0, 1), _is("isfinite", 1)), *_DOMAIN),
    ),
}
"""The arguments for which functions of `math` raise, and the exceptions."""

_OVERFLOW_SEEN = frozenset(("float_power", "ldexp"))
"""Functions whose overflow is detected by their result, because no simple test of the arguments finds it."""


def _not(reader: Reader, truth: Value) -> Value:
    return reader.apply("logical_not", truth)


# -- where they are asked --------------------------------------------------------------------------------------------


def before_math(reader: Reader, primitive: str, target: Any, values: Sequence[Value]) -> None:
    """Raise if a function of `math`, or a conversion to an integer, would raise."""
    if not reader.context.handlers or reader.frame.told is not None:
        return
    module = getattr(target, "__module__", "")
    if primitive == "int" and module in ("math", "builtins") and is_inexact(values[0].type):
        before_rounding(reader, values[0])
    for test, kind, text in _OF_MATH.get(primitive, ()) if module == "math" else ():
        if foresees(reader, kind):
            reader.raise_if(test(reader, values), kind, text)


def after_math(reader: Reader, primitive: str, target: Any, values: Sequence[Value], result: Value) -> None:
    """Raise if a function of `math` has overflowed."""
    if getattr(target, "__module__", "") == "math" and primitive in _OVERFLOW_SEEN:
        require_finite(reader, values, result, "math range error")


def require_finite(reader: Reader, values: Sequence[Value], result: Value, text: str) -> None:
    """Raise if finite operands give infinity."""
    if reader.frame.told is None and foresees(reader, OverflowError):
        overflows = reader.apply("isinf", result)
        for value in values:
            if is_inexact(value.type):
                overflows = reader.apply("logical_and", overflows, reader.apply("isfinite", value))
        reader.raise_if(overflows, OverflowError, text)


def before_rounding(reader: Reader, x: Value) -> None:
    """Raise if a float has no integer part, because it is infinite or NaN."""
    if reader.frame.told is None and is_inexact(x.type):
        if foresees(reader, ValueError):
            reader.raise_if(reader.apply("isnan", x), ValueError, "cannot convert float NaN to integer")
        if foresees(reader, OverflowError):
            reader.raise_if(reader.apply("isinf", x), OverflowError, "cannot convert float infinity to integer")


def before_operator(
    reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, a: Value, b: Value, node: ast.AST
) -> None:
    """Raise if Python would: for a division by zero, or a negative power of zero."""
    if op not in (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow) or not foresees(reader, ZeroDivisionError):
        return
    if op is ast.Pow and reader.constants.get(b, -1) >= 0:
        return
    if op is not ast.Pow and reader.constants.get(b, 0) != 0:
        return
    if not divides_as_python(reader, left, right, node):
        return
    zero = _is_zero(reader, a if op is ast.Pow else b)
    if op is ast.Pow:
        zero = reader.apply("logical_and", zero, reader.apply("less", b, _zero(reader, b)))
        reader.raise_if(zero, ZeroDivisionError, "0.0 cannot be raised to a negative power")
        return
    reader.raise_if(zero, ZeroDivisionError, "division by zero")


def after_operator(
    reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, values: Sequence[Value], result: Value
) -> None:
    """Raise if a power of Python floats has overflowed."""
    of_python = is_pythons(reader, left) and is_pythons(reader, right)
    if op is ast.Pow and of_python and any(is_inexact(v.type) for v in values):
        require_finite(reader, values, result, "Numerical result out of range")


def divides_as_python(reader: Reader, left: Abstract, right: Abstract, node: ast.AST) -> bool:
    """Whether a division by zero raises. With NumPy's numbers it does not, and with Numba it depends on an option."""
    told = reader.frame.told
    if told is not None:
        return told.error_model != "numpy"
    reader.assumes_pythons = True
    if is_pythons(reader, left) and is_pythons(reader, right):
        return True
    if is_numpys(reader, left) or is_numpys(reader, right):
        return False
    message = "whether this division raises depends on whether its operands are Python's numbers or NumPy's"
    help_ = "write `float(...)` around both operands, or test the divisor with `if`"
    reader.refuse("SD205", node, message, help_=help_)


def _zero(reader: Reader, x: Value) -> Value:
    return reader.const(0.0 if is_inexact(x.type) else 0, x.scalar)


def _is_zero(reader: Reader, x: Value) -> Value:
    return reader.apply("equal", x, _zero(reader, x))


def before_index(reader: Reader, array: Value, axis: int, position: Value) -> None:
    """Raise if the index is out of range."""
    if not foresees(reader, IndexError) or axis >= array.array.rank:
        return
    length = reader.dim(array, axis)
    if reader.is_natural(position):
        if is_below(reader, position, length):
            return
        outside = reader.apply("greater_equal", position, length)
    else:
        outside = reader.apply("greater_equal", position, length)
        too_small = reader.apply("less", position, reader.apply("negative", length))
        outside = reader.apply("logical_or", outside, too_small)
    text = f"index is out of bounds for axis {axis}"
    reader.raise_if(outside, IndexError, text)
