"""lmfit for structured parameters, with Jacobians by srcdiff."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import lmfit
import numpy as np
from lmfit.minimizer import SCALAR_METHODS

from srcdiff.bridges.flat_functions import Flat, Function, bound, short_name


def minimize(
    residuals: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "leastsq",
    *,
    lower: Any = None,
    upper: Any = None,
    fixed: Sequence[str] = (),
    backend: str = "numba",
    **further: Any,
) -> Any:
    """`lmfit.minimize` for structured parameters, with the Jacobian of the residuals by srcdiff.

    Args:
        residuals: A function of the parameters and of `args` that returns an array, or a structure of arrays and
            floats.
        x0: The parameters to start from: a number, an array, or a structure of these.
        args: The other arguments of `residuals`.
        method: A method of lmfit. Those for least squares get the Jacobian. `"cg"`, `"bfgs"`, `"lbfgsb"`, `"newton"`,
            `"tnc"` and `"slsqp"` get the gradient of the sum of squares, unless `reduce_fcn` replaces this sum. The
            others get no derivatives.
        lower: Lower bounds with the structure of the parameters. A bound is a number, an array, or None.
        upper: Upper bounds.
        fixed: Names of parameters that keep their values.
        backend: As for `srcdiff.grad`.
        **further: What else lmfit takes.

    Returns:
        The result of lmfit, with its reports. The names of its parameters are the keys and attributes that lead to
        them, joined by `_`. Also, `fitted` are the parameters with the structure of `x0`, and `view` is their view
        as a vector.
    """
    flat = Flat(residuals, x0, args, backend, "lmfit")
    names = _names(flat)
    unknown = {*fixed} - {*names}
    if unknown:
        raise ValueError(f"there is no parameter {', '.join(sorted(unknown))}: there are {', '.join(names)}")
    params = lmfit.Parameters()
    low, high = bound(flat.view, lower, -np.inf), bound(flat.view, upper, np.inf)
    for k, name in enumerate(names):
        params.add(name, flat.view.x[k], vary=name not in fixed, min=low[k], max=high[k])

    def vector(given: Any) -> Any:
        return np.array([given[name].value for name in names])

    def jacobian(given: Any) -> Any:
        varied = [k for k, name in enumerate(names) if given[name].vary]
        return flat.jacobian(vector(given))[:, varied]

    def gradient(given: Any) -> Any:
        return 2.0 * jacobian(given).T @ flat.values(vector(given))

    if "Dfun" in further or "jac" in further:
        raise TypeError("the Jacobian is computed by srcdiff: use `lmfit.minimize` to pass your own")
    if method.lower().startswith(("leasts", "least_s")):
        further["Dfun"] = jacobian
    elif further.get("reduce_fcn") is None and _takes_gradient(method):
        further["Dfun"] = gradient
    with flat.place():
        result: Any = lmfit.minimize(lambda given: flat.values(vector(given)), params, method=method, **further)
    result.view, result.fitted = flat.view, flat.view.unravel(vector(result.params))
    return result


def _takes_gradient(method: str) -> bool:
    """Whether lmfit calls `scipy.optimize.minimize`, by a beginning of the name that it or SciPy has for the method.

    lmfit drops gradients that the method does not use.
    """
    return any(name.lower().startswith(method.lower()) for names in SCALAR_METHODS.items() for name in names)


def _names(flat: Flat) -> list[str]:
    """Names that lmfit takes: they are used in expressions."""
    found = []
    for part in flat.view.parts:
        for name in part.names():
            short = re.sub(r"\W+", "_", short_name(name.replace(", ", "]["), part.argument, "_"))
            found.append(short if short.isidentifier() else f"{part.argument}_{short}")
    if len({*found}) != len(found):
        found = [f"{name}_{k}" for k, name in enumerate(found)]
    return found
