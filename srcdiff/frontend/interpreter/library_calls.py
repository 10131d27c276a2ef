"""Calls of BLAS and LAPACK, calls of NumPy's functions without a rule, and functions that rearrange tuples."""

from __future__ import annotations

import ast
import enum
import math
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from srcdiff.diagnostics import Problem
from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, List, Own, Size, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.array_conversion import the_array
from srcdiff.frontend.interpreter.broadcasting import require_equal, shape_in_words
from srcdiff.frontend.interpreter.evaluation import as_array, call_value
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, axis_size, known_elements
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.ir.nodes import Library, Value
from srcdiff.ir.types import Array, Scalar, is_complex, is_supported_dtype, real_of
from srcdiff.library import linear_algebra
from srcdiff.library.blas_lapack import LibraryCall, log_determinant, opaque

_OPAQUE = frozenset((*("histogram", "i0", "intersect1d", "kaiser", "setdiff1d", "setxor1d", "union1d"),))
"""Functions that return new numbers or arrays. Dtype and rank of a result depend only on those of the arguments."""


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, Array) else 0


def library_call(reader: Reader, call: LibraryCall, args: list[Abstract], node: ast.AST) -> Abstract:
    """A call of BLAS or LAPACK. Equal letters in its shapes are sizes that must agree."""
    taken, given = call.shapes.split("->")
    letters_of = taken.split(",")[: len(args)]  # optional arguments may be missing
    arrays = [
        the_array(reader, a, node) if letters else as_number(reader, a, node)
        for a, letters in zip(args, letters_of, strict=True)
    ]
    sizes: dict[str, Size] = {}
    for array, letters in zip(arrays, letters_of, strict=True):
        for axis, letter in enumerate(letters):
            size = axis_size(reader, array, axis)
            known = sizes.setdefault(letter, size)
            require_equal(reader, known, size, lambda: misfit(reader, arrays, node))
    if reader.context.handlers and reader.catching(np.linalg.LinAlgError) is not None:
        foresee_failure(reader, call, arrays, node)
    of_complex = any(is_complex(a.type) for a in arrays)
    if of_complex and not call.takes_complex:
        message = f"`{call.name}` of complex matrices is not supported"
        reader.refuse("SD303", node, message, help_="use a real matrix of twice the size: `[[Re, -Im], [Im, Re]]`")
    dtypes = {a.type.dtype for a in arrays if isinstance(a.type, Array | Scalar)}
    single = dtypes <= {"float32", "complex64"}
    outs: list[Value] = []
    for k, letters in enumerate(given.split(",")):
        dtype = call.dtypes[k] if call.dtypes else ""
        if dtype == "complex":
            dtype = "complex64" if single else "complex128"
        if dtype in ("", "real"):
            computed = ("complex64" if single else "complex128") if of_complex else "float32" if single else "float64"
            dtype = computed if dtype == "" else real_of(Scalar(computed)).dtype
        out = Value(Array(dtype, len(letters)) if letters else Scalar(dtype))
        outs.append(out)
    span = reader.span if reader.frame.library else reader.span_of(node)
    reader.add(Library(tuple(outs), call.key or call.name, tuple(arrays), span=span))
    for out, letters in zip(outs, given.split(","), strict=True):
        if letters:
            for axis, letter in enumerate(letters):
                sizes.setdefault(letter, Size(("d", out, axis), lambda: reader.const(0)))
            reader.made(out, tuple(sizes[x].key for x in letters))
            reader.contiguous.discard(out)
    return outs[0] if len(outs) == 1 else Tuple(tuple(outs))


def foresee_failure(reader: Reader, call: LibraryCall, arrays: list[Value], node: ast.AST) -> None:
    """Raise if a matrix is singular, or not positive definite, inside a `try` that catches this."""
    if call.name == "cholesky":
        fits = forced(reader, call_value(reader, Own(linear_algebra.is_positive_definite), [arrays[0]], node))
        fails, text = reader.apply("logical_not", as_number(reader, fits, node)), "Matrix is not positive definite"
    elif call.name in ("inv", "solve", "solve_vector"):
        sign = library_call(reader, log_determinant, [arrays[0]], node)
        assert isinstance(sign, Tuple) and isinstance(sign.items[0], Value)
        fails, text = reader.apply("equal", sign.items[0], reader.const(0.0)), "Singular matrix"
    else:
        return
    reader.raise_if(fails, np.linalg.LinAlgError, text)


def call_unknown(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract | None:
    """A call of a NumPy function without a rule that returns new arrays. It has no derivative."""
    name = getattr(target, "__name__", "")
    if name not in _OPAQUE or getattr(np, name, None) is not target:
        return None
    assert callable(target)
    values: list[Value] = []
    try:
        arguments_ = [("", *opaque_argument(reader, x, values, node)) for x in args]
        arguments_ += [(f"{key}=", *opaque_argument(reader, x, values, node)) for key, x in keywords.items()]
        with np.errstate(all="ignore"):
            by_name = dict(zip(keywords, [example for _, example, _ in arguments_[len(args) :]], strict=True))
            found = target(*[example for _, example, _ in arguments_[: len(args)]], **by_name)
    except Exception:
        return None
    results = found if isinstance(found, tuple) else (found,)
    letters = iter(chr(k) for k in range(ord("a"), ord("a") + 1000))
    taken = ",".join("".join(next(letters) for _ in range(_rank(v))) for v in values)
    given = ",".join("".join(next(letters) for _ in range(np.ndim(r))) for r in results)
    dtypes = tuple(np.asarray(r).dtype.name for r in results)
    if not all(is_supported_dtype(np.dtype(d)) for d in dtypes):
        return None
    text = f"np.{name}({', '.join(key + text for key, _, text in arguments_)})"
    call = opaque(f"np.{name}", text, f"{taken}->{given}", dtypes)
    reader.unknown_calls.append(Problem("SD302", f"Numba cannot compile `np.{name}`", reader.span))
    return library_call(reader, call, list(values), node)


def opaque_argument(reader: Reader, x: Abstract, values: list[Value], node: ast.AST) -> tuple[Any, str]:
    """A value of the kind of an argument, and its spelling. Computed values become operands."""
    match as_array(reader, x, node) if isinstance(x, List) else forced(reader, x):
        case Static(value=enum.Enum()):
            raise NotImplementedError
        case Static(value=None | bool() | int() | str() as constant) if "{" not in str(constant):
            return constant, repr(constant)
        case Static(value=float() as constant) if math.isfinite(constant):
            return constant, repr(constant)
        case Tuple(items=items):
            parts = [opaque_argument(reader, i, values, node) for i in items]
            return tuple(p for p, _ in parts), f"({', '.join(t for _, t in parts)},)"
        case Value(type=Scalar(dtype=dtype) | Array(dtype=dtype)) as value:
            values.append(value)
            example = np.ones((2,) * _rank(value), dtype)
            return example if _rank(value) else example.item(), f"{{{len(values) - 1}}}"
    raise NotImplementedError


def run_structural(reader: Reader, function: Callable[..., Any], args: list[Abstract], node: ast.AST) -> Abstract:
    """A function that only rearranges tuples."""

    def plain(x: Abstract) -> Any:
        if isinstance(x, Tuple) and x.kind is None:
            return tuple(plain(i) for i in x.items)
        if isinstance(x, List) and known_elements(reader, x) is not None:
            return tuple(plain(i) for i in known_elements(reader, x) or ())
        return x.value if isinstance(x, Static) else x

    def abstract(x: Any) -> Abstract:
        if isinstance(x, tuple):
            return Tuple(tuple(abstract(i) for i in x))
        return x if isinstance(x, get_args(Abstract)) else Static(x)

    try:
        return abstract(function(*(plain(a) for a in args)))
    except NotImplementedError as error:
        message, *instead = (str(part) for part in error.args)
        reader.refuse("SD303", node, message, help_="".join(instead))
    except (ValueError, TypeError, IndexError) as error:
        reader.refuse("SD203", node, str(error))


def misfit(reader: Reader, arrays: list[Value], node: ast.AST) -> tuple[str | Value, ...]:
    parts: list[str | Value] = ["shapes do not fit together:"]
    for array in arrays:
        parts += [" ", *shape_in_words(as_lazy(reader, array, node))]
    return tuple(parts)
