"""Derivatives that users declare: `stop_gradient`, `custom_rule` and `rule_for`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcdiff.diagnostics.options import (
    SWITCH,
)
from srcdiff.frontend.source.declared_rules import CustomRule, declare, require_declarable


def stop_gradient(x: Any) -> Any:
    """Return `x`; a derivative treats it as a constant.

    >>> import srcdiff
    >>> float(srcdiff.grad(lambda x: x * srcdiff.stop_gradient(x))(3.0))
    3.0

    Args:
        x: A number, or an array.

    Returns:
        `x` itself.
    """
    return x


stop_gradient.__srcdiff_stop_gradient__ = True  # type: ignore[attr-defined]


def custom_rule(
    f: Callable[..., Any] | None = None,
    *,
    adjoint: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
) -> Any:
    """Declare the derivative of a function. The body of the function is not differentiated.

    Either rule is enough: each is linear in its last arguments, and srcdiff derives the other as its transpose.

    >>> import math, srcdiff
    >>> def cube_root_adjoint(x, out, out_bar):
    ...     return out_bar / (3.0 * out**2)
    >>> @srcdiff.custom_rule(adjoint=cube_root_adjoint)
    ... def cube_root(x):
    ...     return math.cbrt(x)
    >>> float(srcdiff.grad(cube_root)(8.0))
    0.08333333333333333

    Args:
        f: The function; it takes and returns numbers and arrays. Without it, a decorator is returned.
        adjoint: `adjoint(*arguments, out, out_bar)`: from the arguments, the result and the adjoint of the result, it
            returns the adjoint of the argument, or a tuple with one adjoint for each argument.
        tangent: `tangent(*arguments, out, *argument_dots)`: from the arguments, the result and the tangents of the
            arguments, it returns the tangent of the result.

    Returns:
        A function that can be called like `f`, inside and outside of differentiated functions.
    """
    if f is None:
        return lambda function: CustomRule(function, adjoint, tangent)
    return CustomRule(f, adjoint, tangent)


def rule_for(
    function: Callable[..., Any],
    *,
    adjoint: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
    replace: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare the derivative of a function that you cannot edit: one of a library, or one without Python source.

    Use it as a decorator on a Python function that computes the same. In generated code, this implementation stands for
    the function. Without `adjoint` and `tangent`, the implementation itself is differentiated.

    >>> import numpy as np, srcdiff
    >>> from scipy.special import exprel
    >>> @srcdiff.rule_for(exprel, adjoint=lambda x, out, out_bar: out_bar * (np.exp(x) - out) / x)
    ... def relative_exponential(x):
    ...     return np.expm1(x) / x
    >>> float(srcdiff.grad(lambda x: exprel(x))(1.0))
    1.0

    Args:
        function: The function as your code calls it, for example `scipy.special.j0`. If it is a ufunc of NumPy or
            SciPy, the implementation and its rules take numbers, and are called for each element of arrays.
        adjoint: The rule in reverse mode, as for `custom_rule`.
        tangent: The rule in forward mode, as for `custom_rule`.
        replace: Whether the function may have a rule already. Without it, a second rule is an error.

    Returns:
        A decorator. It returns the implementation, with the derivative that is declared.
    """
    SWITCH.checked("replace", replace)
    require_declarable(function)
    return lambda implementation: declare(function, implementation, adjoint, tangent, replace)
