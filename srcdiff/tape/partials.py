"""Derivatives of the elementwise functions: one table for both tapes.

A row has the partial derivatives as text, formulas of the arguments `a` and `b` and of the result `y`. The eager tape
evaluates them with the functions of `math` for numbers and of `numpy` for arrays; the compiled tape writes them into
its loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

#: name: partial derivative by `a`
UNARY = {
    "exp": "y",
    "expm1": "y + 1.0",
    "log": "1.0 / a",
    "log2": "1.4426950408889634 / a",
    "log10": "0.4342944819032518 / a",
    "log1p": "1.0 / (1.0 + a)",
    "sqrt": "0.5 / y",
    "sin": "cos(a)",
    "cos": "-sin(a)",
    "tan": "1.0 + y * y",
    "asin": "1.0 / sqrt(1.0 - a * a)",
    "acos": "-1.0 / sqrt(1.0 - a * a)",
    "atan": "1.0 / (1.0 + a * a)",
    "sinh": "cosh(a)",
    "cosh": "sinh(a)",
    "tanh": "1.0 - y * y",
    "asinh": "1.0 / sqrt(a * a + 1.0)",
    "acosh": "1.0 / sqrt(a * a - 1.0)",
    "atanh": "1.0 / (1.0 - a * a)",
    "erf": "1.1283791670955126 * exp(-a * a)",
    "erfc": "-1.1283791670955126 * exp(-a * a)",
}

#: name: partial derivatives by `a` and by `b`; of two equal arguments of a maximum each gets half
BINARY = {
    "power": ("b * power(a, b - 1.0)", "y * log_or_zero(a)"),
    "atan2": ("b / (a * a + b * b)", "-a / (a * a + b * b)"),
    "hypot": ("a / y", "b / y"),
    "maximum": ("(a > b) + 0.5 * (a == b)", "(a < b) + 0.5 * (a == b)"),
    "minimum": ("(a < b) + 0.5 * (a == b)", "(a > b) + 0.5 * (a == b)"),
    "logaddexp": ("exp(a - y)", "exp(b - y)"),
}

#: Other names of the rows, in `math` and in `numpy`.
ALIASES = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "pow": "power",
}


def log_or_zero(a: float) -> float:
    """The logarithm where it is multiplied by a power of `a`, which is zero where the logarithm is infinite."""
    return math.log(a) if a > 0.0 else 0.0


def logaddexp(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


#: What the formulas, and the functions themselves, mean for numbers.
OF_NUMBERS: dict[str, Any] = vars(math) | {
    "power": math.pow,
    "maximum": max,
    "minimum": min,
    "logaddexp": logaddexp,
    "log_or_zero": log_or_zero,
}

#: What they mean for arrays.
OF_ARRAYS: dict[str, Any] = {name: getattr(np, name) for name in (*UNARY, *BINARY) if hasattr(np, name)} | {
    "log_or_zero": lambda a: np.log(np.where(a > 0.0, a, 1.0)),
}


def partial(formula: str, arguments: str, meaning: dict[str, Any]) -> Callable[..., Any]:
    """A formula as a function.

    >>> partial("y * log_or_zero(a)", "a, y", OF_NUMBERS)(0.0, 0.0)
    0.0
    """
    function: Callable[..., Any] = eval(f"lambda {arguments}: {formula}", dict(meaning))
    return function
