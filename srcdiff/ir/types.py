"""The types of run-time values: scalars and arrays. Everything else is taken apart before it becomes IR."""

from __future__ import annotations

import numpy as np

from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number: `float64`, `float32`, `complex128`, `complex64`, `int64` or `bool`."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True, slots=True)
class Array:
    """A reference to an array. Its contents are memory, not a value."""

    dtype: str
    rank: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.rank)}]"


@dataclass(frozen=True, slots=True)
class Stack:
    """Values kept by one sweep for the other: scalars, or references to arrays."""

    element: Scalar | Array

    def __str__(self) -> str:
        return f"stack of {self.element}"


Type = Scalar | Array | Stack

FLOAT = Scalar("float64")
FLOAT32 = Scalar("float32")
COMPLEX = Scalar("complex128")
COMPLEX64 = Scalar("complex64")
INT = Scalar("int64")
BOOL = Scalar("bool")

_FLOATS = ("float64", "float32")
_COMPLEX = ("complex128", "complex64")

KEPT = (*_FLOATS, *_COMPLEX, "bool")
"""The dtypes of which an array gives its elements as they are; those of integers are all given as `int64`."""

NEGATIVE = "negative dimensions are not allowed"
TOO_LARGE = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
"""NumPy's message for impossible shapes."""


def is_float(type_: Type) -> bool:
    """Whether the value, or the elements of the array, are floats."""
    return not isinstance(type_, Stack) and type_.dtype in _FLOATS


def is_complex(type_: Type) -> bool:
    """Whether the value, or the elements of the array, are complex numbers."""
    return not isinstance(type_, Stack) and type_.dtype in _COMPLEX


def is_inexact(type_: Type) -> bool:
    """Whether the value, or the elements of the array, are floats or complex numbers: what has derivatives."""
    return is_float(type_) or is_complex(type_)


def scalar_of(dtype: str) -> Scalar:
    """The type of a number that comes out of an array of this dtype; narrow integers widen to `int64`."""
    return Scalar(dtype) if dtype in KEPT else INT


def real_of(type_: Scalar) -> Scalar:
    """The type of the real part."""
    return {COMPLEX: FLOAT, COMPLEX64: FLOAT32}.get(type_, type_)


def widest(type_: Type) -> Scalar:
    """The type of an adjoint or a tangent of a number: as wide as can be."""
    return COMPLEX if is_complex(type_) else FLOAT


def zero_of(type_: Type) -> complex:
    """The zero among the elements of an array of floats, or among numbers of their type."""
    return 0j if is_complex(type_) else 0.0


def element_type(array: Array) -> Scalar:
    """The scalar type of a load from the array; narrow integers widen to `int64`."""
    return scalar_of(array.dtype)


def bytes_of(dtype: str) -> int:
    """How much memory one number takes."""
    return np.dtype(dtype).itemsize


def is_kept_by(array: Array, type_: Scalar) -> bool:
    """Whether a load returns the stored value of this type unchanged; short integers wrap around."""
    return type_.dtype == array.dtype


def join_scalars(*types: Scalar) -> Scalar:
    """The scalar type that holds them all, as Numba promotes: `int64` with `float32` is `float64`."""
    dtypes = {t.dtype for t in types}
    if len(dtypes) == 1:
        return types[0]
    if dtypes & {*_COMPLEX}:
        return COMPLEX64 if dtypes <= {"complex64", "float32"} else COMPLEX
    if dtypes <= {"bool", "int64"}:
        return INT
    return FLOAT


def is_supported_dtype(dtype: np.dtype[np.generic]) -> bool:
    """Floats of 4 and 8 bytes, and complex numbers of two such floats, can be differentiated; booleans are data, and so
    are integers that 64 bits with a sign hold."""
    return dtype.name in (*_FLOATS, *_COMPLEX) or (dtype.kind in "iub" and dtype.name != "uint64")
