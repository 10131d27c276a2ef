"""Keys of arguments, which contain all that the compiler may know about them, and the descriptions made from keys."""

from __future__ import annotations

import enum
import math
import threading
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.diagnostics.naming_objects import array_of, instead_of
from srcdiff.ir.types import BOOL, COMPLEX, COMPLEX64, FLOAT, INT, Array, Scalar, is_supported_dtype
from srcdiff.signature.descriptions import CONTIGUOUS, NUMPYS, Description
from srcdiff.signature.enums import plain_number
from srcdiff.signature.record_layouts import (
    ARRAYS_OF_RECORDS,
    RECORDS,
    UnusableField,
    record_layout,
)
from srcdiff.signature.structures import Layout, is_plain_class, is_plain_tuple, layout_of

_LARGEST = 2**63 - 1


class Kept:
    """An object that is compiled in. It is equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_NUMBERS = (bool, int, float, complex, np.integer, np.floating, np.complexfloating)
_DTYPES: dict[int, np.dtype[Any]] = {np.dtype(t).num: np.dtype(t) for t in {*np.sctypeDict.values()}}


def key_of(value: Any, *, exact: bool = False) -> Any:
    """The key of an argument for the table of specialisations.

    A description is made from the key alone, so the compiler cannot depend on anything else. `exact` adds the axes of
    length one, if there are any.
    """
    kind = type(value)
    if kind is float or kind is bool or kind is complex:
        return kind
    if kind is int:
        return ("large", value) if is_large(value) else kind
    if isinstance(value, np.ndarray):
        return _key_of_array(value, exact)
    if isinstance(value, enum.Enum):
        return "constant", Kept(value)
    if isinstance(value, np.generic):
        if kind in RECORDS and value.dtype.names is not None:
            return "structured", kind, value.dtype, None, ()
        is_unsigned = kind is np.uint64 and is_large(int(value))
        return ("text", str(value)) if kind is np.str_ else ("unsigned" if is_unsigned else "numpy", kind)
    if isinstance(value, tuple):
        return ("tuple", kind, *[key_of(v, exact=exact) for v in value]) if is_plain_tuple(kind) else ("other", kind)
    if kind is list:
        kinds = frozenset(map(type, value))
        if kinds == {float} or is_stored(value):
            return "list", kinds
    if value is None or kind is str:
        return "text", value
    if isinstance(value, Description):
        return value
    if is_on_device(value):
        dtype, shape, order = layout_on_device(value)
        return "device", kind, dtype, len(shape), order, _units(shape) if exact else ()
    if isinstance(value, int | float):  # of a class that the user defined
        if plain_number(value) is None:
            return "operators", kind
        return key_of(int(value) if isinstance(value, int) else float(value))
    if isinstance(value, type | types.ModuleType | types.FunctionType):
        return "constant", Kept(value)
    layout = layout_of(value)
    if layout is not None:
        keys = _keys_of_parts(value, layout, exact)
        return ("other", kind) if keys is None else ("record", layout, *keys)
    plain: Any = kind
    is_itself = callable(value) or isinstance(value, str) or is_plain_class(plain)
    return ("constant", Kept(value)) if is_itself else ("other", kind)


_opened = threading.local()
"""The instances that are being looked at: one may refer to itself."""


def _keys_of_parts(value: Any, layout: Layout, exact: bool) -> list[Any] | None:
    """The keys of the parts; None for an instance that is part of itself."""
    parts = layout.taken_apart(value)
    if not layout.is_instance:
        return [key_of(v, exact=exact) for v in parts]
    around: set[int] = _opened.__dict__.setdefault("around", set())
    if id(value) in around:
        return None
    around.add(id(value))
    try:
        keys = [key_of(v, exact=exact) for v in parts]
    finally:
        around.discard(id(value))
    return [("constant", Kept(v)) if _is_other(key) else key for key, v in zip(keys, parts, strict=True)]


def _is_other(key: Any) -> bool:
    """Whether nothing is known of a part of an instance: then it is itself, and may not be needed."""
    is_named = isinstance(key, tuple) and bool(key)
    return is_named and (key[0] == "other" or (key[0] == "array" and key[1] is not np.memmap))


def _key_of_array(value: np.ndarray[Any, Any], exact: bool) -> Any:
    kind, dtype = type(value), value.dtype
    order, ones = value.flags.c_contiguous, _units(value.shape) if exact else ()
    if dtype.names is not None and kind in ARRAYS_OF_RECORDS and value.ndim > 0:
        return "structured", kind, dtype, value.ndim, ones
    if kind is np.ndarray and dtype.isnative and dtype.num in _DTYPES:
        number = dtype.num * 64 + value.ndim
        return (number, order, ones) if ones else (number, order)
    return "array", kind, dtype, value.ndim, order, ones


def _key_of_field(kind: type, dtype: np.dtype[Any], rank: int | None, ones: tuple[int, ...]) -> Any:
    """The key of a field of a record, or of a structured array with so many axes."""
    axes = None if rank is None and not dtype.shape else (rank or 0) + len(dtype.shape)
    ones = (*ones, *[(rank or 0) + axis for axis in _units(dtype.shape)])
    base = dtype.base
    if base.names is not None:
        return "structured", np.ndarray if rank is None and axes is not None else kind, base, axes, ones
    if not (is_supported_dtype(base) and base.isnative):
        return "unusable", base
    return ("numpy", base.type) if axes is None else ("field", base, axes, ones)


def _units(shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of length one, which may be broadcast."""
    return tuple([axis for axis, n in enumerate(shape) if n == 1])


def describe_argument(value: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """The description of an argument for the compiler; `exact` adds the axes of length one."""
    return described(key_of(value, exact=exact), name, span, exact=exact)


def described(key: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """The description of arguments with this key; `name` is the name of the argument, for messages."""
    match key:
        case Description():
            return key
        case type():
            return Description("value", _PYTHONS[key])
        case int() as number, bool() as order, *ones:
            dtype = _DTYPES[number // 64]
            if is_supported_dtype(dtype):
                return _described_array(dtype, number % 64, order, ones[0] if ones else (), exact)
            raise _refused(name, span, np.ndarray, dtype)
        case "array" | "device" as where, kind, dtype, rank, order, ones:
            if is_supported_dtype(dtype) and (where == "device" or (kind is np.memmap and dtype.isnative)):
                return _described_array(dtype, rank, order, ones, exact)
            raise _refused(name, span, kind, dtype)
        case "numpy", kind if np.dtype(kind).name in _OF_NUMPY:
            return Description("value", _OF_NUMPY[np.dtype(kind).name], (NUMPYS,))
        case "tuple", kind, *parts:
            items = tuple(described(p, name, span, exact=exact) for p in parts)
            return Description("tuple", kind if hasattr(kind, "_fields") else None, items)
        case "list", kinds:
            return Description("stored", None, (Description("value", _element_of(kinds)),)) if kinds else _EMPTY
        case "structured", kind, dtype, rank, ones:
            keys = [_key_of_field(kind, dtype[n], rank, ones) for n in dtype.names]
            whole = record_layout(kind, dtype, rank)
            items = tuple(described(p, whole.part(name, k), span, exact=exact) for k, p in enumerate(keys))
            return Description("record", whole, items)
        case "field", dtype, rank, ones:
            return _described_array(dtype, rank, False, ones, exact)
        case "unusable", dtype:
            return Description("static", (UnusableField, UnusableField(dtype)))
        case "record", layout, *parts:
            items = tuple(described(p, layout.part(name, k), span, exact=exact) for k, p in enumerate(parts))
            return Description("record", layout, items)
        case "operators", kind:
            message = f"the argument `{name}` is a `{kind.__name__}`, which defines its own operators"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a plain number")])
        case "unsigned", _:
            message = f"the argument `{name}` is an unsigned integer that does not fit into int64"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a float")])
        case "flag" | "text" | "large", value:
            return Description("static", (type(value), value))
        case "constant", kept:
            return Description("static", (type(kept.value), kept.value))
    raise _refused(name, span, key[1])


_EMPTY = Description("items")
_PYTHONS = {float: FLOAT, int: INT, bool: BOOL, complex: COMPLEX}
_OF_NUMPY = {
    **{np.dtype(t).name: INT for t in {*np.sctypeDict.values()} if np.dtype(t).kind in "iu"},
    "bool": BOOL,
    "float16": FLOAT,
    "float32": Scalar("float32"),
    "float64": FLOAT,
    "complex64": COMPLEX64,
    "complex128": COMPLEX,
}


def _described_array(dtype: np.dtype[Any], rank: int, order: bool, ones: tuple[int, ...], exact: bool) -> Description:
    known = ((CONTIGUOUS,) if order else ()) + ((Description("units", ones),) if exact else ())
    return Description("value", Array(dtype.name, rank), known)


def _element_of(kinds: frozenset[type]) -> Scalar:
    """The type of the numbers in a list."""
    if kinds == {bool}:
        return BOOL
    element = np.result_type(*(kind(0) for kind in kinds))
    return COMPLEX if element.kind == "c" else FLOAT if element.kind == "f" else BOOL if element.kind == "b" else INT


def _refused(name: str, span: Span | None, kind: type, dtype: np.dtype[Any] | None = None) -> DifferentiationError:
    """Refuse an argument of this type."""
    if kind is np.ndarray:
        assert dtype is not None
        what, help_ = array_of(dtype)
        message = f"the argument `{name}` is {what}, which is not supported"
    elif issubclass(kind, dict):
        what = "a dictionary with keys other than strings and integers"
        message = f"the argument `{name}` is {what if kind is dict else f'an instance of `{kind.__name__}`'}"
        help_ = "use strings or integers as keys" if kind is dict else "pass a plain dictionary: `dict(...)`"
    else:
        message, help_ = (
            f"the argument `{name}` is an instance of `{kind.__name__}`, which is not supported",
            instead_of(kind),
        )
    return DifferentiationError([Problem("SD201", message, span, help=help_)])


def is_large(value: int) -> bool:
    """Whether a Python integer has more than 64 bits. Such an integer is compiled in as a constant."""
    return not -_LARGEST - 1 <= value <= _LARGEST


def is_stored(values: list[Any]) -> bool:
    """Whether a list becomes an array at run time: all of its elements are numbers that an array can hold."""
    kinds = {type(v) for v in values}
    if not all(issubclass(k, _NUMBERS) and not issubclass(k, enum.Enum) for k in kinds):
        return False
    integers = bool(values) and all(issubclass(k, int | np.integer) for k in kinds)
    return not (integers and (is_large(max(values)) or is_large(min(values))))


def is_on_device(value: Any) -> bool:
    """Whether it is an array in GPU memory."""
    return hasattr(value, "__cuda_array_interface__") or getattr(value, "__cuda_ndarray__", False)


def layout_on_device(value: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """The dtype and shape of an array in GPU memory, and whether it is contiguous."""
    if hasattr(value, "is_c_contiguous"):
        return np.dtype(value.dtype), tuple(value.shape), bool(value.is_c_contiguous())
    interface = value.__cuda_array_interface__
    dtype, shape, strides = np.dtype(interface["typestr"]), tuple(interface["shape"]), interface.get("strides")
    in_order = strides is None or tuple(strides) == tuple(
        dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape))
    )
    return dtype, shape, in_order
