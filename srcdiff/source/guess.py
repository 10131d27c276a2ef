"""Argument types where none are given: from annotations, defaults, and how each argument is used."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from srcdiff.ir.types import BOOL, FLOAT, INT, Array
from srcdiff.source.abstract import Description
from srcdiff.source.capture import Captured

_ANNOTATIONS: dict[str, Description] = {
    "float": Description("value", FLOAT),
    "int": Description("value", INT),
    "bool": Description("value", BOOL),
}


def guessed_arguments(captured: Captured, signature: inspect.Signature) -> dict[str, Any]:
    """An example or a description for every parameter."""
    found: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        key = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if key in _ANNOTATIONS:
            found[name] = _ANNOTATIONS[key]
        elif parameter.default is not inspect.Parameter.empty:
            found[name] = parameter.default
        else:
            found[name] = _by_use(captured.node, name)
    return found


def _by_use(function: ast.AST, name: str) -> Any:
    """An array if it is indexed, an integer if it counts, else a float."""
    rank = 0
    counts = False
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and _is(node.value, name):
            rank = max(rank, len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1)
        if isinstance(node, ast.Attribute) and _is(node.value, name) and node.attr in ("shape", "size", "copy", "T"):
            rank = max(rank, 1)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and _is(node.value.value, name):
            axis = node.slice
            if node.value.attr == "shape" and isinstance(axis, ast.Constant) and isinstance(axis.value, int):
                rank = max(rank, axis.value + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and any(_is(a, name) for a in node.args):
            rank = max(rank, 1) if node.func.id == "len" else rank
            counts = counts or node.func.id == "range"
        if isinstance(node, ast.For) and _is(node.iter, name):
            rank = max(rank, 1)
    if rank:
        return Description("value", Array("float64", rank))
    return Description("value", INT if counts else FLOAT)


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
