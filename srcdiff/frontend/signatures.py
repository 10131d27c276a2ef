"""Argument types: from values to keys, from keys to descriptions; and results: from what they are made of."""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.frontend.abstract_values import (
    CONTIGUOUS,
    INTEGER,
    NUMPYS,
    Abstract,
    Description,
    Items,
    Record,
    Static,
    Stored,
    Tuple,
)
from srcdiff.frontend.objects import array_of, instead_of
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_supported_dtype
from srcdiff.signature.enums import plain_number, spelled
from srcdiff.signature.structures import is_plain_tuple, layout_of, parts_of

_LARGEST = 2**63 - 1


class Kept:
    """An object that is compiled in: it equals itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_NUMBERS = (bool, int, float, np.integer, np.floating)
_DTYPES: dict[int, np.dtype[Any]] = {np.dtype(t).num: np.dtype(t) for t in {*np.sctypeDict.values()}}


def key_of(value: Any, *, exact: bool = False) -> Any:
    """All that the compiler may know about an argument, to look up what was compiled for such arguments.

    A description is made of the key alone, so that nothing is compiled in that the key does not have. `exact` adds
    which axes of arrays have the length one, if any has.
    """
    kind = type(value)
    if kind is float or kind is bool:
        return kind
    if kind is int:
        return ("large", value) if is_large(value) else kind
    if isinstance(value, np.ndarray):
        return _key_of_array(value, exact)
    if isinstance(value, enum.Enum):
        return "constant", Kept(value)
    if isinstance(value, np.generic):
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
    if isinstance(value, int | float):  # of a class of the user's
        if plain_number(value) is None:
            return "operators", kind
        return key_of(int(value) if isinstance(value, int) else float(value))
    layout = layout_of(value)
    if layout is not None:
        return ("record", layout, *[key_of(v, exact=exact) for v in layout.taken_apart(value)])
    is_constant = callable(value) or isinstance(value, type | types.ModuleType | str)
    return ("constant", Kept(value)) if is_constant else ("other", kind)


def _key_of_array(value: np.ndarray[Any, Any], exact: bool) -> Any:
    kind, dtype = type(value), value.dtype
    order, ones = value.flags.c_contiguous, _units(value.shape) if exact else ()
    if kind is np.ndarray and dtype.isnative and dtype.num in _DTYPES:
        number = dtype.num * 64 + value.ndim
        return (number, order, ones) if ones else (number, order)
    return "array", kind, dtype, value.ndim, order, ones


def _units(shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of length one, which stretch in broadcasting."""
    return tuple([axis for axis, n in enumerate(shape) if n == 1])


def describe_argument(value: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """What the compiler has to know about an argument; `exact` adds which axes of arrays have the length one."""
    return described(key_of(value, exact=exact), name, span, exact=exact)


def described(key: Any, name: str, span: Span | None, *, exact: bool = False) -> Description:
    """The description of arguments that have this key; `name` is what the user calls the argument."""
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
        case "record", layout, *parts:
            items = tuple(described(p, layout.part(name, k), span, exact=exact) for k, p in enumerate(parts))
            return Description("record", layout, items)
        case "operators", kind:
            message = f"the argument `{name}` is of type {kind.__name__}, which defines operators of its own"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a plain number")])
        case "unsigned", _:
            message = f"the argument `{name}` is an unsigned integer that needs all 64 bits"
            raise DifferentiationError([Problem("SD201", message, span, help="pass it as a float")])
        case "flag" | "text" | "large", value:
            return Description("static", (type(value), value))
        case "constant", kept:
            return Description("static", (type(kept.value), kept.value))
    raise _refused(name, span, key[1])


_EMPTY = Description("items")
_PYTHONS = {float: FLOAT, int: INT, bool: BOOL}
_OF_NUMPY = {
    **{np.dtype(t).name: INT for t in {*np.sctypeDict.values()} if np.dtype(t).kind in "iu"},
    "bool": BOOL,
    "float16": FLOAT,
    "float32": Scalar("float32"),
    "float64": FLOAT,
}


def _described_array(dtype: np.dtype[Any], rank: int, order: bool, ones: tuple[int, ...], exact: bool) -> Description:
    known = ((CONTIGUOUS,) if order else ()) + ((Description("units", ones),) if exact else ())
    return Description("value", Array(dtype.name, rank), known)


def _element_of(kinds: frozenset[type]) -> Scalar:
    """The type of the numbers in a list."""
    if kinds == {bool}:
        return BOOL
    element = np.result_type(*(kind(0) for kind in kinds))
    return FLOAT if element.kind == "f" else BOOL if element.kind == "b" else INT


def _refused(name: str, span: Span | None, kind: type, dtype: np.dtype[Any] | None = None) -> DifferentiationError:
    """Of such an argument no derivative is written."""
    if issubclass(kind, complex | np.complexfloating) or (dtype is not None and dtype.kind == "c"):
        message = f"the argument `{name}` is complex, which is not differentiated yet"
        help_ = "pass its real and its imaginary part: `.real`, `.imag`"
    elif kind is np.ndarray:
        assert dtype is not None
        said, help_ = array_of(dtype)
        message = f"the argument `{name}` is {said}"
    elif issubclass(kind, dict):
        message = f"the argument `{name}` is a {kind.__name__}"
        message += " with other keys than texts and integers" if kind is dict else ""
        help_ = "use texts or integers as keys" if kind is dict else "pass a plain dictionary: `dict(...)`"
    else:
        message, help_ = f"the argument `{name}` is an instance of `{kind.__name__}`", instead_of(kind)
    return DifferentiationError([Problem("SD201", message, span, help=help_)])


def is_large(value: int) -> bool:
    """Whether an integer of Python's has no place in 64 bits: then it is compiled in, as a constant is."""
    return not -_LARGEST - 1 <= value <= _LARGEST


def is_stored(values: list[Any]) -> bool:
    """Whether a list is an array at run time: of numbers, which all have a place there."""
    kinds = {type(v) for v in values}
    if not all(issubclass(k, _NUMBERS) and not issubclass(k, enum.Enum) for k in kinds):
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


def to_differentiate_by(description: Description) -> Description:
    """The same as a float to differentiate by; what was given as an integer is known to be."""
    if description.kind == "value" and description.detail == INT:
        return Description("value", FLOAT, (*description.parts, INTEGER))
    if description.kind == "tuple":
        return Description("tuple", description.detail, tuple(map(to_differentiate_by, description.parts)))
    return floats_for_integers(description)


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


@dataclass(frozen=True, slots=True)
class Part:
    """One of the values that the arguments of a function are taken apart into."""

    name: str
    """How users write it: `state['x']`."""
    path: tuple[int, ...]
    """Which argument, which part of it, and so on."""
    value: Abstract

    def of(self, args: Sequence[Any]) -> Any:
        """What it is, for arguments of such types."""
        found: Any = args
        for k in self.path:
            found = (parts_of(found) or ())[k]
        return found


def parts_of_arguments(arguments: Mapping[str, Abstract]) -> Iterator[Part]:
    """All that there is of the arguments at run time."""

    def visit(x: Abstract, name: str, path: tuple[int, ...]) -> Iterator[Part]:
        if isinstance(x, Tuple | Record):
            part = x.kind.part if isinstance(x, Record) else "{}[{}]".format
            for k, item in enumerate(x.items):
                yield from visit(item, part(name, k), (*path, k))
        elif not isinstance(x, Static):
            yield Part(name, path, x)

    for k, (name, x) in enumerate(arguments.items()):
        yield from visit(x, name, (k,))


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


def holds_stored(x: Abstract) -> bool:
    """Whether the result of a function is, or contains, a list whose length is known only when it runs."""
    return isinstance(x, Stored) or (isinstance(x, Tuple | Record | Items) and any(map(holds_stored, x.items)))


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
