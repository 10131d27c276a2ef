"""Argument types: from values (or what stands for them) to descriptions."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_supported_dtype
from srcdiff.source.abstract import Description


def describe_argument(value: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """What the compiler has to know about an argument; `exact` adds which axes of arrays have the length one."""
    if isinstance(value, np.generic):
        if value.dtype.name == "float32":
            return Description("value", Scalar("float32"))
        value = value.item()
    match value:
        case Description():
            return value
        case bool():
            return Description("value", BOOL)
        case int():
            return Description("value", INT)
        case float():
            return Description("value", FLOAT)
        case np.ndarray():
            plain = type(value) in (np.ndarray, np.memmap)
            if plain and is_supported_dtype(value.dtype) and value.dtype.isnative:
                return Description("value", Array(value.dtype.name, value.ndim), units(value) if exact else ())
        case tuple():
            kind = type(value) if hasattr(value, "_fields") else None
            return Description("tuple", kind, tuple(describe_argument(v, name, span, exact=exact) for v in value))
        case list():
            if value and all(isinstance(v, bool | int | float | np.number) for v in value):
                element = np.result_type(*value) if not all(isinstance(v, bool) for v in value) else np.dtype(bool)
                kind_ = FLOAT if element.kind == "f" else BOOL if element.kind == "b" else INT
                return Description("stored", None, (Description("value", kind_),))
        case None | str() | type() | types.ModuleType():
            return Description("static", (type(value), value))
    if callable(value):
        return Description("static", (type(value), value))
    what = f"an array of {value.dtype}" if type(value) is np.ndarray else f"of type {type(value).__name__}"
    message = f"the argument `{name}` is {what}"
    if isinstance(value, complex) or (isinstance(value, np.ndarray) and value.dtype.kind == "c"):
        message = f"the argument `{name}` is complex, which is not differentiated yet"
    raise DifferentiationError([Problem("SD201", message, span)])


def units(value: np.ndarray[Any, Any]) -> tuple[Description, ...]:
    """The axes of length one, which stretch in broadcasting."""
    return (Description("units", tuple(axis for axis, n in enumerate(value.shape) if n == 1)),)


def floats_for_integers(description: Description) -> Description:
    """A number to differentiate by is a float, also where the caller writes `3`."""
    if description.kind == "value" and description.detail == INT:
        return Description("value", FLOAT)
    if description.kind in ("tuple", "stored"):
        return Description(
            description.kind, description.detail, tuple(floats_for_integers(p) for p in description.parts)
        )
    return description
