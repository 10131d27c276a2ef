"""Guesses of argument types from annotations, defaults, and the uses of each argument."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from typing import Any

import numpy as np

from srcdiff.frontend.source.capture import Captured
from srcdiff.ir.types import FLOAT, INT, Array, element_type, is_supported_dtype
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description

_OF_ARRAYS = frozenset({"shape", "size", "ndim", "copy", "sum", "mean", "dot", "max", "min", "reshape", "ravel"})
"""Attributes that only arrays have, or that are only used with arrays."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The guess for an argument: a description or an example, and its reason."""

    value: Any
    why: str


def guesses(captured: Captured, signature: inspect.Signature) -> dict[str, Guess]:
    """The guess for every parameter."""
    hints = _hints(captured.function)
    found: dict[str, Guess] = {}
    for name, parameter in signature.parameters.items():
        described = _annotated(hints.get(name, parameter.annotation), captured.node, name)
        if described is not None:
            found[name] = Guess(described, "its annotation")
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found[name] = Guess((), "default")
        elif parameter.default is not inspect.Parameter.empty:
            found[name] = Guess(parameter.default, "default")
        else:
            found[name] = Guess(_by_use(captured.node, name), "how it is used")
    return found


def guessed_arguments(captured: Captured, signature: inspect.Signature) -> dict[str, Any]:
    """An example or a description for every parameter."""
    return {name: guess.value for name, guess in guesses(captured, signature).items()}


def _hints(function: Any) -> dict[str, Any]:
    """The annotations as objects; as text if a name in them only exists for type checkers."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # the evaluation of an annotation may raise anything
        return dict(getattr(function, "__annotations__", {}))


def _annotated(annotation: Any, function: ast.AST, name: str) -> Description | None:
    """The type of an annotation. The rank of an array is guessed from its uses."""
    if isinstance(annotation, str):
        described = type_of_text(annotation)
        if described is not None:
            return described
        if re.search(r"\bndarray\b|\bNDArray\b", annotation):
            dtype = re.search(r"float32|float64|int64|int32|bool", annotation)
            return _array(dtype[0] if dtype else "float64", function, name)
        return None
    kind = typing.get_origin(annotation) or annotation
    if hasattr(kind, "__value__"):  # an alias of another type, as `NDArray` is since NumPy 2.5
        given = typing.get_args(annotation)
        return _annotated(kind.__value__[given] if given else kind.__value__, function, name)
    if isinstance(kind, type) and issubclass(kind, np.ndarray):
        scalar = next((a for part in typing.get_args(annotation)[1:] for a in typing.get_args(part)), np.float64)
        known = isinstance(scalar, type) and issubclass(scalar, np.generic) and is_supported_dtype(np.dtype(scalar))
        return _array(np.dtype(scalar).name if known else "float64", function, name)
    return type_of_text(getattr(annotation, "__name__", "")) if isinstance(annotation, type) else None


def _array(dtype: str, function: ast.AST, name: str) -> Description:
    return Description("value", Array(dtype, max(1, _rank_by_use(function, name))))


def type_of_text(text: str) -> Description | None:
    """The description of a type in text, `float` or `float64[:, :]`; None if it is unknown."""
    try:
        return described_type(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return None


def described_type(node: ast.expr) -> Description | None:
    """The same for a parsed type. Tuples of types describe tuples."""
    match node:
        case ast.Tuple():
            parts = [described_type(part) for part in node.elts]
            return None if None in parts else Description("tuple", None, tuple(p for p in parts if p is not None))
        case ast.Constant(value=str()):
            return type_of_text(str(node.value))
        case ast.Subscript(value=element, slice=axes):
            dtype, each = _dtype(element), axes.elts if isinstance(axes, ast.Tuple) else [axes]
            if dtype is None or not all(isinstance(a, ast.Slice) for a in each):
                return None
            return Description("value", Array(dtype, len(each)))
    dtype = _dtype(node)
    return None if dtype is None else Description("value", element_type(Array(dtype, 0)))


_SHORT = {"float": "float64", "int": "int64"}


def _dtype(node: ast.expr) -> str | None:
    """The dtype that `float`, `float32` or `np.float32` names."""
    match node:
        case ast.Attribute(value=ast.Name(id="np" | "numpy")):
            name = node.attr
        case ast.Name():
            name = _SHORT.get(node.id, node.id)
        case _:
            return None
    is_one = re.fullmatch(r"(float|int|uint)(8|16|32|64)|bool", name) and is_supported_dtype(np.dtype(name))
    return name if is_one else None


def _by_use(function: ast.AST, name: str) -> Description:
    """An array if it is indexed, an integer if it is used as a count, otherwise a float."""
    rank = _rank_by_use(function, name)
    if rank:
        return Description("value", Array("float64", rank))
    counts = any(
        isinstance(node, ast.Call) and _is(node.func, "range") and any(_is(a, name) for a in node.args)
        for node in ast.walk(function)
    )
    return Description("value", INT if counts else FLOAT)


def _rank_by_use(function: ast.AST, name: str) -> int:
    """The number of axes that the uses of a name need; zero for a number."""
    return max((_rank(node, name) for node in ast.walk(function)), default=0)


def _rank(node: ast.AST, name: str) -> int:
    match node:
        case ast.Subscript(value=of) if _is(of, name):
            return len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
        case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=ast.Constant(value=int(axis))):
            return axis + 1 if _is(of, name) and axis >= 0 else 0
        case ast.Attribute(value=of, attr="T"):
            return 2 if _is(of, name) else 0
        case ast.Attribute(value=of, attr=attribute):
            return int(_is(of, name) and attribute in _OF_ARRAYS)
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):
            return 2 if _is(left, name) else int(_is(right, name))
        case ast.Call(func=ast.Name(id="len"), args=arguments):
            return int(any(_is(a, name) for a in arguments))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=called), args=[first, *_]):
            return int(_is(first, name) and called in ("sum", "mean", "prod", "dot", "max", "min", "zeros_like"))
        case ast.For(iter=of):
            return int(_is(of, name))
    return 0


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
