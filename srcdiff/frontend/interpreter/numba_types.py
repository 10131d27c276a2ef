"""Conversions to the types that the user declares to Numba."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NoReturn

from numba.core import types

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Optional, Static, Tuple, is_none
from srcdiff.frontend.domain.lattice import describe
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame
from srcdiff.frontend.interpreter.number_kinds import pythons_own
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.numba_options import spelled
from srcdiff.ir.types import BOOL, COMPLEX, FLOAT, FLOAT32, INT, Array
from srcdiff.signature.descriptions import Description

ANY_TYPES = "remove the signature from `@njit`, so that Numba infers the types"


_KINDS = {
    "float64": FLOAT,
    "float32": FLOAT32,
    "complex128": COMPLEX,
    "bool": BOOL,
    **{f"int{n}": INT for n in (8, 16, 32, 64)},
}
"""The supported types of numbers. Shorter integers are checked for overflow."""


def as_declared(reader: Reader, frame: Frame, name: str, value: Abstract) -> Abstract:
    """The assigned value, converted to the declared Numba type of the variable."""
    captured = frame.captured
    if captured is None or captured.told is None:
        return value
    type_ = dict(captured.told.variables).get(name)
    return value if type_ is None else as_told(reader, value, type_, f"`{name}`", captured)


def as_told(reader: Reader, x: Abstract, type_: Any, what: str, captured: Captured) -> Abstract:
    """A value converted to a type of Numba, as Numba does it."""
    parts: Any = type_
    match type_:
        case types.Optional() if not is_none(x) and not isinstance(x, Optional):
            return as_told(reader, x, type_.type, what, captured)
        case types.BaseTuple() if isinstance(x, Tuple):
            items = zip(x.items, parts, strict=True)
            return replace(x, items=tuple(as_told(reader, i, t, what, captured) for i, t in items))
        case types.Number() | types.Boolean():
            return number_told(reader, x, type_, what, captured)
        case types.Array():
            found = describe(x)
            if found.kind == "value" and found != Description("value", Array(str(type_.dtype), type_.ndim)):
                message = f"{what} of `{captured.name}` is declared as {spelled(type_)}, but it is {found.detail}"
                refuse_told(reader, message, f"convert it with `.astype`, or {ANY_TYPES}")
    return x


def number_told(reader: Reader, x: Abstract, type_: Any, what: str, captured: Captured) -> Abstract:
    kind = _KINDS.get(str(type_))
    if kind is None:
        message = f"{what} of `{captured.name}` has the type {type_}, which is not supported"
        refuse_told(reader, message, "use a signed integer type, `float64`, `float32` or `complex128`")
    half = 2 ** (type_.bitwidth - 1) if kind == INT else 0
    if isinstance(x, Static) and kind == COMPLEX and isinstance(x.value, bool | int | float | complex):
        return Static(complex(x.value))
    if isinstance(x, Static) and isinstance(x.value, bool | int | float) and kind in (FLOAT, INT, BOOL):
        if kind == INT and not (math.isfinite(x.value) and -half <= int(x.value) < half):
            reader.raise_always(OverflowError, f"{what} does not fit into {type_}")
        return Static({FLOAT: float, INT: int, BOOL: bool}[kind](x.value))
    value = as_number(reader, present(reader, x), captured.node)
    if value.type != kind:
        value = pythons_own(reader, reader.cast(value, kind))
    if kind == INT and type_.bitwidth < 64 and reader.held.get(value) != str(type_):
        low = reader.apply("less", value, reader.const(-half))
        beyond = reader.apply("logical_or", low, reader.apply("greater_equal", value, reader.const(half)))
        reader.raise_if(beyond, OverflowError, f"{what} does not fit into {type_}")
    return value


def refuse_told(reader: Reader, message: str, help_: str) -> NoReturn:
    raise Refusal(Problem("SD307", message, reader.span, help=help_))
