"""Argument types: from values (or what stands for them) to descriptions; and results: from what they are made of."""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_supported_dtype
from srcdiff.source.abstract import CONTIGUOUS, NUMPYS, Abstract, Description, Items, Record, Static, Stored, Tuple
from srcdiff.source.enumerations import plain_number, spelled
from srcdiff.source.structures import is_plain_tuple, layout_of, parts_of

_LARGEST = 2**63 - 1


def describe_argument(value: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """What the compiler has to know about an argument; `exact` adds which axes of arrays have the length one."""
    if isinstance(value, np.generic):
        if value.dtype.name == "float32":
            return Description("value", Scalar("float32"), (NUMPYS,))
        if value.dtype.name == "uint64" and is_large(value.item()):
            message = f"the argument `{name}` is an unsigned integer that needs all 64 bits"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a float")])
        found = describe_argument(value.item(), name, span)
        return Description("value", found.detail, (NUMPYS,)) if found.kind == "value" else found
    match value:
        case Description():
            return value
        case enum.Enum():
            return Description("static", (type(value), value))
        case bool():
            return Description("value", BOOL)
        case int() | float() if plain_number(value) is None:
            message = f"the argument `{name}` is of type {type(value).__name__}, which defines operators of its own"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a plain number")])
        case int():
            return Description("static", (int, int(value))) if is_large(value) else Description("value", INT)
        case float():
            return Description("value", FLOAT)
        case np.ndarray():
            plain = type(value) in (np.ndarray, np.memmap)
            if plain and is_supported_dtype(value.dtype) and value.dtype.isnative:
                order = (CONTIGUOUS,) if value.flags.c_contiguous else ()
                ones = units(value) if exact else ()
                return Description("value", Array(value.dtype.name, value.ndim), (*order, *ones))
        case tuple() if is_plain_tuple(type(value)):
            kind = type(value) if hasattr(value, "_fields") else None
            return Description("tuple", kind, tuple(describe_argument(v, name, span, exact=exact) for v in value))
        case [] if type(value) is list:
            return Description("items")
        case list() if type(value) is list and is_stored(value):
            element = np.result_type(*value) if not all(isinstance(v, bool) for v in value) else np.dtype(bool)
            kind_ = FLOAT if element.kind == "f" else BOOL if element.kind == "b" else INT
            return Description("stored", None, (Description("value", kind_),))
        case None | str() | type() | types.ModuleType():
            return Description("static", (type(value), value))
    if is_on_device(value):
        dtype, shape, in_order = layout_on_device(value)
        if is_supported_dtype(dtype):
            ones_there = tuple(axis for axis, n in enumerate(shape) if n == 1)
            known = ((CONTIGUOUS,) if in_order else ()) + ((Description("units", ones_there),) if exact else ())
            return Description("value", Array(dtype.name, len(shape)), known)
    layout = layout_of(value)
    if layout is not None:
        parts = enumerate(layout.taken_apart(value))
        return Description(
            "record", layout, tuple(describe_argument(v, layout.part(name, k), span, exact=exact) for k, v in parts)
        )
    if callable(value):
        return Description("static", (type(value), value))
    if isinstance(value, dict):
        message = f"the argument `{name}` is a {type(value).__name__} with other keys than texts and integers"
        message = message if type(value) is dict else f"the argument `{name}` is a {type(value).__name__}"
        raise DifferentiationError([Problem("SD201", message, span, help="pass a plain dictionary")])
    what = f"an array of {value.dtype}" if type(value) is np.ndarray else f"of type {type(value).__name__}"
    message = f"the argument `{name}` is {what}"
    if isinstance(value, complex) or (isinstance(value, np.ndarray) and value.dtype.kind == "c"):
        message = f"the argument `{name}` is complex, which is not differentiated yet"
    raise DifferentiationError([Problem("SD201", message, span)])


def is_large(value: int) -> bool:
    """Whether an integer of Python's has no place in 64 bits: then it is compiled in, as a constant is."""
    return not -_LARGEST - 1 <= value <= _LARGEST


def is_stored(values: list[Any]) -> bool:
    """Whether a list is an array at run time: of numbers, which all have a place there."""
    kinds = {type(v) for v in values}
    if not all(issubclass(k, bool | int | float | np.number) for k in kinds):
        return False
    integers = bool(values) and all(issubclass(k, int | np.integer) for k in kinds)
    return not (integers and (is_large(max(values)) or is_large(min(values))))


def is_on_device(value: Any) -> bool:
    """Whether it is an array in the memory of a GPU."""
    return hasattr(value, "__cuda_array_interface__") or getattr(value, "__cuda_ndarray__", False)


def layout_on_device(value: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """The dtype and shape of an array in the memory of a GPU, and whether it is contiguous there."""
    if hasattr(value, "is_c_contiguous"):
        return np.dtype(value.dtype), tuple(value.shape), bool(value.is_c_contiguous())
    interface = value.__cuda_array_interface__
    dtype, shape, strides = np.dtype(interface["typestr"]), tuple(interface["shape"]), interface.get("strides")
    in_order = strides is None or tuple(strides) == tuple(
        dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape))
    )
    return dtype, shape, in_order


def units(value: np.ndarray[Any, Any]) -> tuple[Description, ...]:
    """The axes of length one, which stretch in broadcasting."""
    return (Description("units", tuple(axis for axis, n in enumerate(value.shape) if n == 1)),)


def floats_for_integers(description: Description) -> Description:
    """A number to differentiate by is a float, also where the caller writes `3`."""
    if description.kind == "value" and description.detail == INT:
        return Description("value", FLOAT, description.parts)
    if description.kind == "static" and _is_integer(description.detail[1]):
        return Description("value", FLOAT)
    if description.kind == "items":
        return Description("stored", None, (Description("value", FLOAT),))
    if description.kind in ("tuple", "record", "stored"):
        return Description(
            description.kind, description.detail, tuple(floats_for_integers(p) for p in description.parts)
        )
    return description


def _is_integer(value: Any) -> bool:
    """Whether a constant is an integer that is a float, too."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023


def type_text(d: Description) -> str:
    """A type as a user writes it.

    >>> type_text(describe_argument((1.0, np.zeros((2, 3)), [1, 2]), "x", None))
    '(float64, float64[:, :], [int64])'
    """
    match d.kind:
        case "value":
            return str(d.detail)
        case "record":
            layout, parts = d.detail, [type_text(p) for p in d.parts]
            if layout.is_dataclass:
                each = ", ".join(f"{n}: {p}" for n, p in zip(layout.names, parts, strict=True))
                return f"{layout.kind.__name__}({each})"
            if layout.kind is list:
                return f"[{', '.join(parts)}]"
            return "{" + ", ".join(f"{n!r}: {p}" for n, p in zip(layout.names, parts, strict=True)) + "}"
        case "tuple":
            name = "" if d.detail is None else d.detail.__name__
            end = "," if len(d.parts) == 1 and not name else ""
            return f"{name}({', '.join(type_text(p) for p in d.parts)}{end})"
        case "stored" | "items":
            return f"[{', '.join(type_text(p) for p in d.parts)}]"
        case "static":
            value = d.detail[1]
            if isinstance(value, enum.Enum):
                return spelled(value)
            return getattr(value, "__qualname__", None) or repr(value)
    return d.kind


def is_passed(d: Description) -> bool:
    """Whether there is something of it at run time."""
    return d.kind not in ("static", "items")


def lists_in(value: Any) -> list[list[Any]]:
    """The lists that an argument is made of."""
    own = [value] if isinstance(value, list) else []
    return own + [found for x in parts_of(value) or () if type(x) is not float for found in lists_in(x)]


def is_rebuilt(d: Description) -> bool:
    """Whether the gradient of such an argument comes in another form than the argument has."""
    return d.kind in ("stored", "record") or (d.kind == "tuple" and any(is_rebuilt(p) for p in d.parts))


def gradient_of_argument(d: Description, argument: Any, gradient: Any) -> Any:
    """The gradient in the form of its argument: lists for arrays that stand for them, dictionaries for tuples."""
    if d.kind == "stored":
        return gradient[: len(argument)].tolist()
    if not is_rebuilt(d):
        return gradient
    parts = argument if d.kind == "tuple" else d.detail.taken_apart(argument)
    items = [gradient_of_argument(*part) for part in zip(d.parts, parts, gradient, strict=True)]
    if d.kind == "record":
        return d.detail.made(items)
    return tuple(items) if d.detail is None else d.detail(*items)


def holds_list(x: Abstract) -> bool:
    """Whether the result of a function is, or contains, what generated code does not return as it is."""
    if isinstance(x, Static):
        return not is_written(x)
    return isinstance(x, Items | Stored | Record) or (isinstance(x, Tuple) and any(holds_list(i) for i in x.items))


def is_written(x: Static) -> bool:
    """Whether generated code returns a constant by writing it: not a function, or a member of an enum."""
    return x.value is None or type(x.value) is str or isinstance(x.value, bool | int | float)


def listed(x: Abstract, result: Any) -> Any:
    """The result with its lists, which come as tuples of known length or as arrays with their length."""
    match x:
        case Static() if not is_written(x):
            return x.value
        case Items():
            return [listed(i, r) for i, r in zip(x.items, result, strict=True)]
        case Stored():
            columns = [_column(array, result[-1]) for array in result[:-1]]
            rows = zip(*columns, strict=True) if columns else (() for _ in range(result[-1]))
            return [_element(x.element, iter(row)) for row in rows]
        case Tuple():
            items = [listed(i, r) for i, r in zip(x.items, result, strict=True)]
            return tuple(items) if x.kind is None else x.kind(*items)
        case Record():
            return x.kind.made([listed(i, r) for i, r in zip(x.items, result, strict=True)])
    return result


def _column(storage: Any, length: int) -> list[Any]:
    """The numbers of an array, or the arrays of a list, of which the first is none of them."""
    return storage[:length].tolist() if isinstance(storage, np.ndarray) else list(storage[1 : length + 1])


def _element(d: Description, parts: Iterator[Any]) -> Any:
    if d.kind == "tuple":
        items = [_element(p, parts) for p in d.parts]
        return tuple(items) if d.detail is None else d.detail(*items)
    if d.kind == "record":
        return d.detail.made([_element(p, parts) for p in d.parts])
    return d.detail[1] if d.kind == "static" else next(parts)
