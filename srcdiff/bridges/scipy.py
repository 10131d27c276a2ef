"""SciPy's optimisers for structured parameters: `minimize`, `least_squares` and `root`, with derivatives by srcdiff.

Each function takes what SciPy's function takes, but parameters are numbers, arrays, tuples, lists, dictionaries and
instances of classes, and derivatives need not be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize

from srcdiff.bridges.flat_functions import Flat, Function, bound
from srcdiff.signature.flat_views import FlatView

_GRADIENTS = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp"}
_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_MATRICES = {"dogleg", "trust-exact"}
_WITHOUT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_ROOTS_WITH_JACOBIAN = {"hybr", "lm"}


def minimize(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    *,
    hess: str | None = None,
    lower: Any = None,
    upper: Any = None,
    constraints: Any = (),
    backend: str = "numba",
    **further: Any,
) -> Any:
    """`scipy.optimize.minimize` for structured parameters, with gradients and Hessians by srcdiff.

    >>> def valley(p, a):
    ...     return (1.0 - p["x"]) ** 2 + a * (p["y"] - p["x"] ** 2) ** 2
    >>> found = minimize(valley, {"x": 0.0, "y": 0.0}, (100.0,), method="trust-exact", backend="python")
    >>> {name: round(value, 4) for name, value in found.params.items()}
    {'x': 1.0, 'y': 1.0}

    Args:
        f: A function of the parameters and of `args` that returns one float.
        x0: The parameters to start from.
        args: The other arguments of `f`.
        method: A method of `scipy.optimize.minimize`. It gets the gradient, and the Hessian, if it takes them.
        hess: `"matrix"` or `"product"`: whether a method that takes both gets Hessians, or their products with vectors
            (the default).
        lower: Lower bounds with the structure of the parameters. A bound is a number, an array, or None if there is
            none; None can also stand for a whole structure.
        upper: Upper bounds.
        constraints: One constraint of SciPy, or a sequence of them. Functions in `NonlinearConstraint` and in
            dictionaries take the parameters as `f` does. Their derivatives are computed, if they are not given.
        backend: As for `srcdiff.grad`.
        **further: What else SciPy's function takes. `bounds` and `callback` are about the vector of parameters.

    Returns:
        SciPy's result. Also, `params` are the parameters with the structure of `x0`, and `view` is the view of them as
        a vector: see `Derivative.ravel`.
    """
    for name in ("jac", "hessp"):
        if name in further:
            raise TypeError(f"`{name}` is computed by srcdiff: use `scipy.optimize.minimize` to pass your own")
    if hess not in (None, "matrix", "product"):
        raise ValueError(f"`hess` must be 'matrix' or 'product', not {hess!r}")
    flat = Flat(f, x0, args, backend, "SciPy")
    given = [constraints] if isinstance(constraints, dict) or not isinstance(constraints, Sequence) else constraints
    takes_hessians = isinstance(method, str) and method.lower() == "trust-constr"
    made = [_flat_constraint(one, x0, backend, takes_hessians) for one in given]
    chosen = _derivatives(flat, method, hess, bool(made))
    bounds = _bounds(flat.view, lower, upper, further)
    function = flat.value_and_gradient if chosen else flat.value
    return _with_params(
        optimize.minimize(function, flat.view.x, method=method, constraints=made, **chosen, **bounds, **further), flat
    )


def _derivatives(flat: Flat, method: str | None, hess: str | None, constrained: bool) -> dict[str, Any]:
    """The derivatives that the method takes."""
    name = method.lower() if isinstance(method, str) else "slsqp" if constrained else "bfgs"
    if name in _WITHOUT or name in _GRADIENTS:
        if hess is not None:
            raise ValueError(f"the method {method!r} takes no Hessian")
        return {"jac": True} if name in _GRADIENTS else {}
    if name in _MATRICES:
        if hess == "product":
            raise ValueError(f"the method {method!r} needs the Hessian as a matrix")
        return {"jac": True, "hess": flat.hessian}
    if name in _PRODUCTS:
        return {"jac": True} | ({"hess": flat.hessian} if hess == "matrix" else {"hessp": flat.hessian_product})
    raise ValueError(f"unknown method {method!r}")


def _flat_constraint(given: Any, x0: Any, backend: str, takes_hessian: bool) -> Any:
    """A constraint on the vector, from a constraint on the parameters."""
    if isinstance(given, dict):
        if given.get("jac") is not None:
            raise TypeError("the Jacobian of a constraint is computed by srcdiff: do not pass `jac`")
        flat = Flat(given["fun"], x0, given.get("args", ()), backend, "SciPy")
        return {"type": given["type"], "fun": flat.values, "jac": flat.jacobian}
    if not isinstance(given, optimize.NonlinearConstraint):
        return given  # of the vector
    if callable(given.jac):
        raise TypeError("the Jacobian of a constraint is computed by srcdiff: do not pass `jac`")
    flat = Flat(given.fun, x0, (), backend, "SciPy")
    further: dict[str, Any] = {"keep_feasible": given.keep_feasible, "jac": flat.jacobian}
    curvature = flat.curvature() if takes_hessian else None
    if curvature is not None:
        further["hess"] = curvature
    return optimize.NonlinearConstraint(flat.values, given.lb, given.ub, **further)


def least_squares(
    residuals: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    lower: Any = None,
    upper: Any = None,
    backend: str = "numba",
    **further: Any,
) -> Any:
    """`scipy.optimize.least_squares` for structured parameters, with Jacobians by srcdiff.

    >>> def off(p, t):
    ...     return p["a"] * t - 3.0 * t
    >>> round(least_squares(off, {"a": 1.0}, (np.array([1.0, 2.0]),), backend="python").params["a"], 6)
    3.0

    Args:
        residuals: A function of the parameters and of `args` that returns an array, or a structure of arrays and
            floats.
        x0: The parameters to start from.
        args: The other arguments of `residuals`.
        lower: Lower bounds, as for `minimize`.
        upper: Upper bounds.
        backend: As for `srcdiff.grad`.
        **further: What else SciPy's function takes: `method`, `loss` and others.

    Returns:
        SciPy's result, with `params` and `view` as for `minimize`.
    """
    if "jac" in further:
        raise TypeError("`jac` is computed by srcdiff: use `scipy.optimize.least_squares` to pass your own")
    flat = Flat(residuals, x0, args, backend, "SciPy")
    bounds = _bounds(flat.view, lower, upper, further)
    return _with_params(optimize.least_squares(flat.values, flat.view.x, flat.jacobian, **bounds, **further), flat)


def root(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "hybr",
    *,
    backend: str = "numba",
    **further: Any,
) -> Any:
    """`scipy.optimize.root` for structured unknowns, with Jacobians by srcdiff for the methods that take them.

    >>> found = root(lambda p: {"first": p["x"] + p["y"] - 3.0, "second": p["x"] * p["y"] - 2.0}, {"x": 0.0, "y": 3.0})
    >>> {name: round(value, 6) for name, value in found.params.items()}
    {'x': 1.0, 'y': 2.0}

    Args:
        f: A function of the unknowns and of `args` that returns as many numbers as there are unknowns, in any
            structure.
        x0: The unknowns to start from.
        args: The other arguments of `f`.
        method: A method of `scipy.optimize.root`; `"hybr"` and `"lm"` take Jacobians.
        backend: As for `srcdiff.grad`.
        **further: What else SciPy's function takes.

    Returns:
        SciPy's result, with `params` and `view` as for `minimize`.
    """
    if "jac" in further:
        raise TypeError("`jac` is computed by srcdiff: use `scipy.optimize.root` to pass your own")
    flat = Flat(f, x0, args, backend, "SciPy")
    jac = {"jac": flat.jacobian} if method.lower() in _ROOTS_WITH_JACOBIAN else {}
    return _with_params(optimize.root(flat.values, flat.view.x, method=method, **jac, **further), flat)


def _bounds(view: FlatView, lower: Any, upper: Any, further: dict[str, Any]) -> dict[str, Any]:
    if lower is None and upper is None:
        return {}
    if "bounds" in further:
        raise TypeError("pass either `bounds`, or `lower` and `upper`")
    return {"bounds": optimize.Bounds(bound(view, lower, -np.inf), bound(view, upper, np.inf))}


def _with_params(result: Any, flat: Flat) -> Any:
    result.params, result.view = flat.view.unravel(result.x), flat.view
    return result
