"""Calls of functions with rules of users: the implementation replaces the function."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, List, Own, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import call_value, call_with, is_library
from srcdiff.frontend.interpreter.lazy_arrays import example_of
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.number_kinds import as_element, numpys_own
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.outside import outside_name
from srcdiff.frontend.interpreter.tables import handles_kind
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.declared_rules import Declared


def rule_declared_for(reader: Reader, function: Abstract) -> Declared | None:
    """The rule of a user for a function. Inside its own implementation, the function is the original one."""
    if not isinstance(function, Static) or isinstance(function, Own):
        return None
    if not callable(function.value) or isinstance(function.value, type | Declared) or is_library(function.value):
        return None
    reader.guards.add(reader.rules, True)
    row = reader.rules.find(function.value)
    return None if row in reader.context.implemented else row


def as_declared(reader: Reader, function: Abstract) -> Abstract:
    """The function to call, or its rule."""
    row = rule_declared_for(reader, function)
    return function if row is None else Static(row)


def with_instance(reader: Reader, captured: Captured, args: list[Abstract], node: ast.AST) -> list[Abstract]:
    """The arguments of a method's function: the instance comes first."""
    name = ast.copy_location(ast.Name(captured.instance, ast.Load()), node)
    return [outside_name(reader, captured.function, name), *args]


@handles_kind(Declared)
def call_declared(reader: Reader, rule: Declared, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    with reader.within(implemented=reader.context.implemented | {rule}):
        if rule.is_elementwise:
            return call_elementwise(reader, rule, args, keywords, node)
        return forced(reader, call_with(reader, Static(rule.implementation), args, keywords, node))


def call_elementwise(reader: Reader, rule: Declared, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A ufunc: the implementation is called for each element, with the types to which NumPy converts."""
    ufunc: Any = rule.function
    count = "one positional argument" if ufunc.nin == 1 else f"{ufunc.nin} positional arguments"
    if keywords or len(args) != ufunc.nin:
        message = f"`{ufunc.__name__}` has a rule that was declared with `rule_for`, so it takes {count} only"
        reader.refuse("SD304", node, message, help_="assign the result: `y = f(x)` instead of `f(x, out=y)`")
    if ufunc.nout > 1:
        message = f"`{ufunc.__name__}` returns {ufunc.nout} arrays; a rule for such a ufunc is not supported"
        reader.refuse("SD304", node, message, help_="call the implementation itself")
    *taken, given = types_of_loop(reader, ufunc, args, node)
    args = [as_dtype(reader, a, dtype, node) for a, dtype in zip(args, taken, strict=True)]
    function = Static(rule.implementation)
    if any(is_array(a) for a in args):
        over_elements = call_value(reader, Own(np.vectorize), [function, Tuple((Static(given),))], node)
        return forced(reader, call_value(reader, over_elements, args, node))
    result = forced(reader, call_value(reader, function, args, node))
    return numpys_own(reader, as_element(reader, as_number(reader, result, node), given.name))


def types_of_loop(reader: Reader, ufunc: np.ufunc, args: list[Abstract], node: ast.AST) -> tuple[np.dtype[Any], ...]:
    """The types to which NumPy converts the operands of a ufunc, and the type of the result."""
    examples = [example_of(reader, a, node) for a in args]
    given = [type(e) if type(e) in (int, float) else np.asarray(e).dtype for e in examples]
    try:
        return ufunc.resolve_dtypes((*given, None))
    except TypeError as error:
        reader.refuse("SD203", node, str(error).split("\n")[0])


def as_dtype(reader: Reader, x: Abstract, dtype: np.dtype[Any], node: ast.AST) -> Abstract:
    """An operand in the type of the ufunc. Integers may become floats."""
    if is_array(x) or isinstance(x, List | Tuple):
        return forced(reader, call_value(reader, Own(np.asarray), [x, Static(dtype)], node))
    return as_element(reader, as_number(reader, x, node), dtype.name)
