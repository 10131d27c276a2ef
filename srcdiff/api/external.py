"""Functions that differentiated functions call as they are, in Python, with a derivative of the user's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.diagnostics.options import one_of
from srcdiff.ir.types import is_supported_dtype
from srcdiff.library.externals import DIFFERENCES, External

Function = Callable[..., Any]
_DIFFERENCES = one_of(*DIFFERENCES)


def external(
    function: Function | None = None,
    *,
    shape: Any = (),
    dtype: Any = "float64",
    vjp: Function | None = None,
    jvp: Function | None = None,
    differences: str | None = None,
    step: float | None = None,
) -> Any:
    """Any Python function, as a function that differentiated functions can call: a simulator, a solver, a service.

    Generated code calls it as it is, also out of compiled code. It must return the same for the same arguments, and
    its calls may be left out, repeated, or come in another order. Its derivative is what you declare, or is computed by
    differences. Without any of these, it cannot be differentiated.

    >>> import math
    >>> @external(differences="central")
    ... def simulator(x, n):
    ...     return math.exp(x) * n
    >>> from srcdiff import grad
    >>> round(grad(lambda x: simulator(2.0 * x, 3))(0.5), 6)
    16.309691

    Args:
        function: Takes numbers, arrays, constants and tuples of them. Arrays are copies.
        shape: The shape of the result: `()` for a number, or a tuple, where None is any length. Or a function of the
            arguments that returns it: `lambda x, y: x.shape`; srcdiff reads this one. A list of shapes, if the result
            is a tuple of several numbers and arrays.
        dtype: The type of the numbers that it returns.
        vjp: The rule in reverse mode: `vjp(*args, out, out_bar)` returns one adjoint for each argument, as the
            `adjoint` of `custom_rule`. It is called as it is, too. None is zero.
        jvp: The rule in forward mode: `jvp(*args, out, *dots)` takes one tangent for each argument, as the `tangent` of
            `custom_rule`, and returns that of the result. If only one of the two is there, the other mode calls it
            once for each number of the arguments, or of the result.
        differences: `"central"` or `"complex"`, instead of a rule. Central differences have about nine correct digits,
            and cost two calls for each number of an argument that has a derivative. Complex ones have all digits, and
            cost one call: the function must then compute with complex numbers, and be analytic. With `vjp` or `jvp`,
            second derivatives are computed by differences of these.
        step: The step of central differences; the default is 6e-6 times the largest number of the argument, and at
            least 6e-6.

    Returns:
        A function that calls `function`. Its second derivatives are differences of `vjp` or `jvp`, if `differences` is
        there too, or central differences of complex ones. Otherwise they are refused, and so are third derivatives.

    Raises:
        TypeError, ValueError: In a call, if the function returns something of another shape or type.
    """
    if function is None:
        return functools.partial(
            external, shape=shape, dtype=dtype, vjp=vjp, jvp=jvp, differences=differences, step=step
        )
    for name, given in (("function", function), ("vjp", vjp), ("jvp", jvp)):
        if given is not None and not callable(given):
            raise TypeError(f"`{name}` is {given!r}, which is not a function")
    if differences is not None:
        _DIFFERENCES.checked("differences", differences)
    if step is not None and (differences != "central" or not step > 0.0):
        raise ValueError('`step` is a positive number, for `differences="central"`')
    kind = np.dtype(dtype)
    if not is_supported_dtype(kind) or kind.kind == "c":
        raise TypeError(f"results of dtype {kind} are not supported")
    return External(function, _checked_shape(shape), kind.name, vjp, jvp, differences, step)


def _checked_shape(shape: Any) -> Any:
    if callable(shape):
        return shape
    for one in shape if isinstance(shape, list) else [shape]:
        if not isinstance(one, tuple) or not all(n is None or (type(n) is int and n >= 0) for n in one):
            raise TypeError(
                f"`shape` is {shape!r}; pass a tuple of lengths or None, a list of those for several results, or a "
                "function of the arguments"
            )
    return shape
