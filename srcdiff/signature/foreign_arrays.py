"""Arrays of other libraries among the arguments: PyTorch, JAX, Arrow, buffers, and what NumPy can convert.

A function receives an array of NumPy, which shares the memory. A library may have a method of the same name that does
something else: `x.std()` divides by n in NumPy, and by n - 1 in PyTorch. Functions that call such methods are refused
for arrays of that library. An object of an unknown class is taken only if its class has no operators, no elements and
no methods of its own that NumPy's arrays have, too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.signature.keys import is_on_device
from srcdiff.signature.structures import layout_of


@dataclass(frozen=True)
class Kind:
    """A kind of foreign array."""

    name: str
    """The name for messages."""
    array: Callable[[Any], Any]
    """The array of NumPy, in the same memory. Raises the exception of the library if there is none."""
    differing: frozenset[str]
    """The methods and operators that do something else for arrays of NumPy; with `(...)`: if they have arguments."""


def kind_of(value: Any) -> Kind | None:
    """The kind of foreign array; None for what is none, or has a meaning of its own.

    >>> kind_of(memoryview(b"ab")).array(memoryview(b"ab"))
    array([97, 98], dtype=uint8)
    >>> import array
    >>> kind_of(array.array("d", [1.0])) is None  # its `+` appends, and its `*` repeats
    True
    """
    kind: Any = type(value)
    if issubclass(kind, np.ndarray | np.generic | bytes | str | type):
        return None
    for module, belongs, found in _KINDS:
        library = sys.modules.get(module)
        if library is not None and belongs(library, value):
            return found
    return _without_operators(kind) if _has_no_operators(kind) and not _is_structure(value) else None


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHER = ("neg", "abs", "invert", "lt", "le", "eq", "ne", "gt", "ge", "bool", "float", "int", "index", "call")
_ELEMENTS = ("getitem", "setitem", "len", "iter", "contains", "getattr", "getattribute")
_OF_NUMPY = ("array_ufunc", "array_function", "array_wrap")
_OPERATORS = frozenset(
    f"__{name}__"
    for name in (*(way + name for name in _BINARY for way in ("", "r", "i")), *_OTHER, *_ELEMENTS, *_OF_NUMPY)
)
_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__", "__buffer__")


@functools.lru_cache(maxsize=1024)
def _has_no_operators(kind: type) -> bool:
    """Whether instances can be converted, and Python's operators and NumPy's functions do nothing else with them."""
    if not any(hasattr(kind, name) for name in _PROTOCOLS):
        return False
    return not any(name in vars(base) for base in kind.__mro__[:-1] for name in _OPERATORS)


def _is_structure(value: Any) -> bool:
    return is_on_device(value) or layout_of(value) is not None


@functools.lru_cache(maxsize=1024)
def _without_operators(kind: type) -> Kind:
    own = frozenset(name for name in dir(np.ndarray) if not name.startswith("_") and hasattr(kind, name))
    return Kind(f"`{kind.__name__}`", _converted, own)


def _converted(value: Any) -> Any:
    kind = type(value)
    is_by_numpy = hasattr(kind, "__array__") or hasattr(kind, "__array_interface__") or not hasattr(kind, "__dlpack__")
    return np.asarray(value) if is_by_numpy else np.from_dlpack(value)


# -- the libraries that are known ------------------------------------------------------------------------------------


def _is_tensor(torch: Any, value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and not is_on_device(value)


def _of_tensor(value: Any) -> Any:
    forward = sys.modules["torch"].autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(value).tangent is not None:
        raise RuntimeError("Can't call numpy() on Tensor that has a tangent. Use tensor.detach().numpy() instead.")
    return value.numpy()


def _is_of_jax(jax: Any, value: Any) -> bool:
    return isinstance(value, jax.Array)


def _is_of_floats(arrow: Any, value: Any) -> bool:
    return isinstance(value, arrow.Array | arrow.ChunkedArray) and arrow.types.is_floating(value.type)


def _of_arrow(value: Any) -> Any:
    if hasattr(value, "num_chunks"):
        value = value.chunk(0) if value.num_chunks == 1 else value.combine_chunks()
    return value.to_numpy(zero_copy_only=True)  # raises if there are nulls


_EQUAL = ("==", "!=")
_KINDS: tuple[tuple[str, Callable[[Any, Any], bool], Kind], ...] = (
    (
        "torch",
        _is_tensor,
        Kind(
            "PyTorch",
            _of_tensor,
            frozenset({"std", "var", "repeat", "sort", "put", "flatten", "nonzero", "max(...)", "min(...)"}),
        ),
    ),
    ("jax", _is_of_jax, Kind("JAX", np.asarray, frozenset({"sort"}))),
    ("pyarrow", _is_of_floats, Kind("Arrow", _of_arrow, frozenset({"sort", "take", "flatten", *_EQUAL}))),
    ("builtins", lambda _, value: type(value) is memoryview, Kind("`memoryview`", np.asarray, frozenset(_EQUAL))),
)
