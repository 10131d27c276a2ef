"""The kind of numbers: Python's or NumPy's, whose integers and truth values follow different rules."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NoReturn, TypeGuard

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.ir.nodes import Apply, Value
from srcdiff.ir.types import BOOL, INT, KEPT, is_inexact, scalar_of

_WRAP = {"add", "subtract", "multiply", "power", "left_shift", "negative", "square", "invert"}


_OF_TRUTH_VALUES = {
    "add": ("NumPy adds booleans with `or`, Python as integers", "write `int(...)` around them, or use `|`"),
    "subtract": ("NumPy does not subtract booleans, Python does", "write `int(...)` around them, or use `^`"),
    "negative": ("NumPy does not negate booleans, Python takes them as integers", "write `int(...)` around it"),
    "positive": ("NumPy does not negate booleans, Python takes them as integers", "write `int(...)` around it"),
    "invert": ("`~` of a boolean is `not` in NumPy and an integer in Python", "write `not`, or `~int(...)`"),
}


_WIDE = (*KEPT, "int64", "int32")


def is_pythons(reader: Reader, x: Abstract) -> bool:
    """Whether a number is known to be Python's. NumPy's have a type of their own in arithmetic."""
    if isinstance(x, Static):
        return not x.numpys
    if not isinstance(x, Value) or x in reader.numpys:
        return False
    return x in reader.pythons or x in reader.constants or x in reader.counters


def is_numpys(reader: Reader, x: Abstract) -> bool:
    """Whether a number is known to be NumPy's."""
    if isinstance(x, Static):
        return x.numpys
    return isinstance(x, Value) and (x in reader.numpys or x in reader.computed_by_numpy)


def numpys_own(reader: Reader, x: Value) -> Value:
    """Mark a number as computed by NumPy, also if it is folded to a constant."""
    if x in reader.constants:
        reader.numpys.add(x)
    elif reader.operations and getattr(reader.operations[-1], "out", None) is x:
        reader.computed_by_numpy.add(x)
    return x


def pythons_own(reader: Reader, x: Value) -> Value:
    """Mark a number as computed by Python. If it is folded to another number, it keeps the kind of that."""
    if reader.operations and getattr(reader.operations[-1], "out", None) is x:
        reader.pythons.add(x)
    return x


def unheld(reader: Reader, value: Value) -> Value:
    """A converted integer from an array. It no longer has the type of the array."""
    if value not in reader.held:
        return value
    out = Value(INT, value.name)
    reader.add(Apply(out, "int", (value,), span=reader.span))
    return out


def require_long(reader: Reader, primitive: str, values: Sequence[Value], node: ast.AST) -> None:
    """Refuse arithmetic in which short NumPy integers wrap around. With Python integers they keep their type."""
    held = [reader.held.get(v) for v in values]
    if primitive not in _WRAP or not reader.has_numpys or not any(held) or any(is_inexact(v.type) for v in values):
        return
    dtype = np.result_type(*(1 if h is None else np.dtype(h).type(1) for h in held))
    if dtype.kind == "u" or (dtype.itemsize < 4 and primitive != "invert"):
        message = f"arithmetic in {dtype} wraps around, which is not supported"
        reader.refuse("SD201", node, message, help_="convert the element: `int(...)`")


def refuse_truth_values(reader: Reader, primitive: str, node: ast.AST) -> NoReturn:
    """Refuse operations on truth values that differ between Python and NumPy, if they may be NumPy's."""
    message, help_ = _OF_TRUTH_VALUES[primitive]
    unknown = "srcdiff cannot tell here whether this boolean is NumPy's or Python's"
    reader.refuse("SD205", node, f"{message}, and {unknown}", help_=help_)


def is_large(x: Abstract) -> TypeGuard[Static]:
    """Whether it is an integer that does not fit into 64 bits."""
    return isinstance(x, Static) and isinstance(x.value, int) and not -(2**63) <= x.value < 2**63


def require_exact(reader: Reader, value: Value) -> None:
    """Raise if a power of integers, computed as a float, is too large to be exact."""
    if value in reader.powers:
        large = reader.apply("greater", reader.apply("absolute", value), reader.const(2.0**53))
        text = "an integer power is computed as a float here and is not exact beyond 2**53: multiply in a loop"
        reader.raise_if(large, OverflowError, text)


def as_plain_number(reader: Reader, value: Value) -> Value:
    """A truth value in arithmetic is 0 or 1."""
    return reader.cast(value, INT) if value.type == BOOL else value


def whose(reader: Reader, target: Any, args: list[Abstract], result: Value) -> Value:
    """The result of a function. Results of `math` and of builtin functions are known to be Python's numbers."""
    if getattr(target, "__module__", "") not in ("math", "builtins"):
        return result if target is None else numpys_own(reader, result)
    is_same = any(result is a for a in args) or (target is abs and not is_pythons(reader, args[0]))
    return result if is_same else pythons_own(reader, result)


def wrapped(reader: Reader, value: Value, dtype: str) -> Value:
    """A number converted to the dtype of an array. One that does not fit into 32 bits wraps around."""
    if dtype != "int32" or value.type != INT or reader.held.get(value) == "int32":
        return value
    if -(2**31) <= reader.constants.get(value, 2**31) < 2**31:
        return value
    half, whole = reader.const(2**31), reader.const(2**32)
    return reader.apply("subtract", reader.apply("remainder", reader.apply("add", value, half), whole), half)


def as_element(reader: Reader, value: Value, dtype: str) -> Value:
    return reader.cast(value, scalar_of(dtype))


def require_wide(reader: Reader, dtype: str, node: ast.AST) -> None:
    """Refuse results of a dtype that is not supported in arithmetic."""
    if dtype in _WIDE:
        return
    if dtype == "float16":
        message, help_ = "NumPy computes this in float16, which is not supported", "convert with `.astype(float)`"
    elif dtype == "object":
        message, help_ = "an operand is not a number", "check the operands: one of them may be `None`"
    else:
        message = f"the result has the dtype {dtype}, whose arithmetic wraps around"
        help_ = "convert the operands first: `.astype(int)`"
    reader.refuse("SD201", node, message, help_=help_)
