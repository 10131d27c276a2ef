"""Expressions, by a table of their syntax; and conversions of their values: to a number, an integer, a constant."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics import Refusal
from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, Own, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.dictionaries import as_now
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.interpreter.tables import CALLEES, EXPRESSIONS
from srcdiff.ir.nodes import Value


def hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def is_library(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("srcdiff.library")


def evaluate(reader: Reader, node: ast.expr) -> Abstract:
    """The value of an expression. Arrays are computed."""
    return forced(reader, evaluate_lazily(reader, node))


def evaluate_lazily(reader: Reader, node: ast.expr) -> Abstract:
    """The value of an expression. Arrays may not be computed yet."""
    if node in reader.reported:
        raise Refusal(None)
    read = EXPRESSIONS.get(type(node))
    if read is None:
        words = type(node).__name__
        reader.refuse("SD102", node, f"this kind of expression ({words}) is not supported")
    return as_now(reader, read(reader, node))


def constant_value(reader: Reader, node: ast.expr) -> Any:
    return known_value(reader, evaluate(reader, node), "this value", node)


def known_value(reader: Reader, x: Abstract, what: str, node: ast.AST, kind: type = object, help_: str = "") -> Any:
    """The value of a constant. Others are refused, and called `what`."""
    if not (isinstance(x, Static) and isinstance(x.value, kind)):
        reader.refuse("SD205", node, f"{what} must be known at compile time", help_=help_)
    return x.value


def call_value(reader: Reader, function: Abstract, args: list[Abstract], node: ast.AST) -> Abstract:
    return call_with(reader, function, args, {}, node)


def call_with(reader: Reader, function: Abstract, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """The value of a call, by the kind of the callee."""
    function = present(reader, function)
    call = CALLEES.get(type(function))
    if call is None:
        reader.refuse("SD203", node, f"{in_words(reader, function)} cannot be called")
    return call(reader, function, args, keywords, node)


def call_named(reader: Reader, name: str, node: ast.AST, *args: Abstract, **keywords: Abstract) -> Abstract:
    """A function of the library, by its name in NumPy."""
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    return call_with(reader, Own(function), list(args), keywords, node)


def as_array(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    """A list or a tuple as a new array."""
    array = call_value(reader, Own(np.array), [x], node)
    assert isinstance(array, Value)
    return array


def bound_to(
    reader: Reader, signature: inspect.Signature, name: str, args: Sequence[Any], keywords: Keywords, node: ast.AST
) -> inspect.BoundArguments:
    """The arguments of a call by the parameters of a function, which messages name `name`."""
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        reader.refuse("SD304", node, f"`{name}` does not take these arguments: {error}")


def by_position(
    reader: Reader, function: Callable[..., Any], name: str, args: Arguments, keywords: Keywords, node: ast.AST
) -> Arguments:
    """The arguments of a call by position, in the order of the parameters."""
    if not keywords:
        return args
    try:
        signature = inspect.signature(function)
    except ValueError:
        reader.refuse("SD304", node, f"`{name}` does not say which parameters it has", help_="call it without keywords")
    bound = bound_to(reader, signature, name, args, keywords, node)
    if bound.kwargs:
        reader.refuse("SD304", node, f"keyword-only arguments of `{name}` are not supported")
    return list(bound.args)
