"""Refusals of functions that srcdiff cannot read and has no rule for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.diagnostics import Refusal
from srcdiff.diagnostics.naming_objects import declared_as, instead_of_call
from srcdiff.frontend.domain.abstract_values import Abstract, is_array_value
from srcdiff.frontend.domain.reader import Reader


def no_source(reader: Reader, target: Any, args: list[Abstract], node: ast.AST) -> Abstract:
    if not hasattr(target, "__name__"):
        message, help_ = instead_of_call(target)
        reader.refuse("SD302", node, message, help_=help_)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or repr(target)
    module = getattr(target, "__module__", "") or ""
    inner = module.removeprefix("numpy").lstrip(".")
    name = f"{inner}.{name}" if inner and "." not in name and not inner.startswith(("_", "lib")) else name
    if module.startswith("numpy.random") or "numpy.random" in str(type(getattr(target, "__self__", None))):
        short = name.rpartition(".")[2]
        if getattr(np.random, short, None) == target:  # a method of NumPy's hidden generator
            name = f"np.random.{short}"
        reader.refuse(
            "SD302",
            node,
            f"`{name}` draws random numbers",
            help_="draw the numbers outside the function and pass them in",
        )
    rule = declared_as(_spelled(node, name), len(args))
    if module.startswith("numpy") or getattr(np, name, None) is target:
        if any(is_array_value(a) for a in args):
            reader.refuse("SD303", node, f"`np.{name}` is not supported for arrays", help_=rule)
        reader.refuse("SD301", node, f"`np.{name}` has no derivative rule", help_=rule)
    if getattr(builtins, short := getattr(target, "__name__", ""), None) is target:
        name = short
    reason, instead = instead_of_call(target)
    if type(target).__module__.startswith("numba."):
        reason, instead = "", "call the Python function that Numba compiled, with arrays or in a loop"
        name = getattr(target, "__name__", type(target).__name__)
    message = reason or f"`{name}` has no Python source and no derivative rule"
    reader.refuse("SD302", node, message, help_=instead or rule)


def with_rule(
    refusal: Refusal, reader: Reader, args: Sequence[Abstract], keywords: Mapping[str, Abstract], node: ast.AST
) -> Refusal:
    """The refusal of an option of a function, with the rule that can be declared if it says nothing better."""
    problem = refusal.problem
    here = reader.span_of(node)
    if problem is None or problem.code != "SD303" or problem.span not in (reader.span, here):
        return refusal
    rule = declared_as(_spelled(node, ""), len(args), keywords) if isinstance(node, ast.Call) else ""
    return Refusal(replace(problem, span=here, help=problem.help or rule))


def _spelled(node: ast.AST, name: str) -> str:
    """A function, as the user's call spells it."""
    function = node.func if isinstance(node, ast.Call) else None
    return ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else name
