"""SciPy's optimisers for structured parameters: `minimize`, `least_squares` and `root`, with derivatives by srcdiff.

Each function takes what SciPy's function takes, but parameters are numbers, arrays, tuples, lists, dictionaries and
instances of classes, and derivatives need not be given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from srcdiff.api.derivatives import Derivative, value_and_grad
from srcdiff.api.modes import hessian, hvp, jacobian
from srcdiff.signature.flat_views import FlatView
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import VALUES, parts_of

Function = Callable[..., Any]

_GRADIENTS = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp"}
_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_MATRICES = {"dogleg", "trust-exact"}
_WITHOUT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_ROOTS_WITH_JACOBIAN = {"hybr", "lm"}


class Flat:
    """A function of structured parameters and data, as functions of a vector: its value and its derivatives."""

    def __init__(self, f: Function, x0: Any, args: Sequence[Any], backend: str) -> None:
        self.f, self.backend = f, backend
        self.gradient = value_and_grad(f, backend=backend)
        self.view: FlatView = self.gradient.ravel(x0, *args)
        if not self.view.size:
            raise ValueError("`x0` has no parameters: no number, and no array of floats")

    @functools.cached_property
    def _primal(self) -> Derivative:
        return Derivative(self.f, "primal", 0, backend=self.backend)

    @functools.cached_property
    def _jacobian(self) -> Any:
        return jacobian(self.f, backend=self.backend)

    @functools.cached_property
    def _hessian(self) -> Any:
        return hessian(self.f, backend=self.backend)

    @functools.cached_property
    def _product(self) -> Any:
        return hvp(self.f, backend=self.backend)

    def _called(self, g: Any, args: tuple[Any, ...]) -> Any:
        positional, named = self.gradient.spread(args)
        return g(*positional, **named)

    def value(self, x: Any) -> Any:
        """What the function returns. If it writes to its arguments, it gets copies."""
        args = self.view.arguments(x)
        if self._primal.specialised(args).compiled.writes:
            args = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, args)
        return self._called(self._primal, args)

    def values(self, x: Any) -> np.ndarray[Any, Any]:
        """All numbers that the function returns, as a vector."""
        return _vector(self.value(x))

    def value_and_gradient(self, x: Any) -> tuple[Any, np.ndarray[Any, Any]]:
        value, gradient = self._called(self.gradient, self.view.arguments(x))
        return value, self.view.ravel(gradient)

    def jacobian(self, x: Any) -> np.ndarray[Any, Any]:
        """The matrix of the derivatives of all numbers that the function returns."""
        found = self._called(self._jacobian, self.view.arguments(x))
        rows = [
            self.view.ravel(part.of(found), np.shape(part.value)).reshape(-1, self.view.size)
            for part in VALUES.named(self.value(x), "result")
        ]
        return np.concatenate(rows) if rows else np.zeros((0, self.view.size))

    def hessian(self, x: Any, *last: Any) -> np.ndarray[Any, Any]:
        """The Hessian; `last` stand for the last arguments of the example."""
        args = self.view.arguments(x)
        found = self._called(self._hessian, (*args[: len(args) - len(last)], *last))
        rows = [
            self.view.ravel(block, part.shape).reshape(-1, self.view.size)
            for part, block in self.view.beside(found, _blocks)
        ]
        return np.concatenate(rows)

    def hessian_product(self, x: Any, vector: Any) -> np.ndarray[Any, Any]:
        """The Hessian times a vector."""
        return self.view.ravel(self._product.at(self.view.arguments(x), self.view.unravel(vector)))


def _blocks(of: Any, blocks: Any, name: str) -> Sequence[Any]:
    """The parts of a Hessian that belong to the parts of an argument."""
    return parts_of(blocks) or ()


def _vector(result: Any) -> np.ndarray[Any, Any]:
    leaves = [np.asarray(leaf, dtype=float).reshape(-1) for leaf in VALUES.leaves(result)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


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
    flat = Flat(f, x0, args, backend)
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
        flat = Flat(given["fun"], x0, given.get("args", ()), backend)
        return {"type": given["type"], "fun": flat.values, "jac": flat.jacobian}
    if not isinstance(given, optimize.NonlinearConstraint):
        return given  # of the vector
    if callable(given.jac):
        raise TypeError("the Jacobian of a constraint is computed by srcdiff: do not pass `jac`")
    flat = Flat(given.fun, x0, (), backend)
    value: Any = flat.value(flat.view.x) if takes_hessian else None
    weighted, weights = _weighted(given.fun, value), np.zeros(np.size(value))
    curvature = {} if weighted is None else {"hess": _curvature(Flat(weighted, x0, (weights,), backend))}
    further = {"keep_feasible": given.keep_feasible, "jac": flat.jacobian, **curvature}
    return optimize.NonlinearConstraint(flat.values, given.lb, given.ub, **further)


def _curvature(weighted: Flat) -> Function:
    """The Hessian of the weighted sum of the constraints, as SciPy calls it."""
    return lambda x, weights: weighted.hessian(x, np.array(weights, dtype=float))


def _weighted(fun: Function, value: Any) -> Function | None:
    """The weighted sum of the constraints; None if they are neither a vector nor a number."""

    def sum_of_vector(params: Any, weights: Any) -> Any:
        return np.sum(fun(params) * weights)

    def of_number(params: Any, weights: Any) -> Any:
        return fun(params) * weights[0]

    if isinstance(value, np.ndarray):
        return sum_of_vector if value.ndim == 1 else None
    return of_number if isinstance(value, float | np.floating) else None


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
    flat = Flat(residuals, x0, args, backend)
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
    flat = Flat(f, x0, args, backend)
    jac = {"jac": flat.jacobian} if method.lower() in _ROOTS_WITH_JACOBIAN else {}
    return _with_params(optimize.root(flat.values, flat.view.x, method=method, **jac, **further), flat)


def _bounds(view: FlatView, lower: Any, upper: Any, further: dict[str, Any]) -> dict[str, Any]:
    if lower is None and upper is None:
        return {}
    if "bounds" in further:
        raise TypeError("pass either `bounds`, or `lower` and `upper`")
    return {"bounds": optimize.Bounds(_bound(view, lower, -np.inf), _bound(view, upper, np.inf))}


def _bound(view: FlatView, given: Any, unbounded: float) -> np.ndarray[Any, Any]:
    """The bounds as a vector."""
    placed = np.full(view.size, unbounded)
    for part, bound in view.beside(given, _parts_of_bounds):
        if bound is not None:
            try:
                placed[part.slice] = np.broadcast_to(np.asarray(bound, dtype=float), part.shape).reshape(-1)
            except (TypeError, ValueError):
                raise ValueError(f"the bound of `{part.name}` must be None, or have the shape {part.shape}") from None
    return placed


def _parts_of_bounds(of: Any, bounds: Any, name: str) -> Sequence[Any]:
    """The bounds of the parts of a structure. Keys that a dictionary leaves out have none."""
    layout = layout_of(of)
    parts: Sequence[Any] = parts_of(bounds) or ()
    if layout is not None and layout.is_mapping and isinstance(bounds, dict) and bounds.keys() <= of.keys():
        return [bounds.get(key) for key in layout.names]
    if layout is None or layout.is_mapping or type(bounds) is not type(of) or len(parts) != len(layout.names):
        raise ValueError(f"the bounds of `{name}` must have the structure of the parameters, or be None")
    return layout.taken_apart(bounds)


def _with_params(result: Any, flat: Flat) -> Any:
    result.params, result.view = flat.view.unravel(result.x), flat.view
    return result
