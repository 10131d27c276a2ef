"""The primitives and the formulas of the rule table as functions of numbers: what a row says at given arguments.

Numbers that a function does not have, such as `math.gamma(0.0)`, are NaN, and nothing is raised.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.rules import scipy_functions, shape_derivatives, special
from srcdiff.rules.table import CONSTANTS, Rule, application

_NUMPYS: dict[type, Callable[[Any], Any]] = {float: np.float64, complex: np.complex128}
"""NumPy's numbers divide by zero without an exception."""


def result_of(primitive: str, arguments: Sequence[Any]) -> Any:
    """What the primitive gives for numbers.

    >>> float(result_of("divide", [1.0, 0.0])), result_of("add", [1, 2]), result_of("gamma", [0.0])
    (inf, 3, nan)
    """
    numbers = [_NUMPYS[type(a)](a) if type(a) in _NUMPYS else a for a in arguments]
    try:
        with np.errstate(all="ignore"):
            return _spelled(primitive)(*numbers)
    except (ArithmeticError, ValueError):
        return math.nan


def partial_of(rule: Rule, parameter: str, arguments: Sequence[Any]) -> Any:
    """What the row gives as the derivative with respect to a parameter.

    >>> from srcdiff.rules import RULES
    >>> float(partial_of(RULES["sqrt"], "x", [0.0])), float(partial_of(RULES["multiply"], "x", [2.0, 5.0]))
    (inf, 5.0)
    """
    known = {**dict(zip(rule.parameters, arguments, strict=True)), "out": result_of(rule.name, arguments)}
    for name, formula in rule.let:
        known[name] = _value_of(formula, known)
    is_complex = isinstance(known[parameter], complex)
    return _value_of(rule.partial(parameter, is_complex=is_complex), known)


def _value_of(formula: ast.expr, known: Mapping[str, Any]) -> Any:
    match formula:
        case ast.Name(id=name):
            return known[name] if name in known else CONSTANTS[name]
        case ast.Constant(value=value):
            return value
    primitive, arguments = application(formula)
    return result_of(primitive, [_value_of(a, known) for a in arguments])


@functools.cache
def _spelled(primitive: str) -> Callable[..., Any]:
    """The primitive as Python spells it."""
    arguments = ["first", "second", "third", "fourth", "fifth"][: PRIMITIVES[primitive].arity]
    text = f"lambda {', '.join(arguments)}: {PRIMITIVES[primitive].spelling.format(*arguments)}"
    names = {**vars(special), **vars(scipy_functions), **vars(shape_derivatives), "np": np, "math": math}
    if PRIMITIVES[primitive].library:
        names["special"] = importlib.import_module("scipy.special")
    function: Callable[..., Any] = eval(text, names)
    return function
