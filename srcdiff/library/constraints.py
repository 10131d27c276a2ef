"""Bounds and constraints of `scipy.optimize`: vectors of limits, and the numbers that are between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library.language import agree, as_tuple, counted, is_array, structural, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.signature.standing_classes import stands_for


@dataclass(frozen=True)
class Box:
    """Stands for `Bounds`."""

    lb: Any
    ub: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return True


@dataclass(frozen=True)
class Linear:
    """Stands for `LinearConstraint`."""

    A: Any
    lb: Any
    ub: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return isinstance(value.A, np.ndarray)


@dataclass(frozen=True)
class Nonlinear:
    """Stands for `NonlinearConstraint`."""

    fun: Any
    lb: Any
    ub: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return True


def box(lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> Any:
    return Box(lb, ub)


def linear(A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> Any:  # noqa: N803 (SciPy's name)
    return Linear(A, lb, ub)


def nonlinear(
    fun: Any,
    lb: Any,
    ub: Any,
    jac: Any = "2-point",
    hess: Any = None,
    keep_feasible: Any = False,
    finite_diff_rel_step: Any = None,
    finite_diff_jac_sparsity: Any = None,
) -> Any:
    """The derivatives are srcdiff's; those that are passed are not needed."""
    return Nonlinear(fun, lb, ub)


def stand_for_scipys() -> None:
    for name, kind in (("Bounds", Box), ("LinearConstraint", Linear), ("NonlinearConstraint", Nonlinear)):
        stands_for("scipy.optimize", name, kind)


def is_none(constraints: Any) -> Any:
    return isinstance(constraints, tuple | list) and counted(constraints) and len(constraints) == 0


def items_of(constraints: Any) -> Any:
    """The constraints, of which there may be one alone."""
    if isinstance(constraints, tuple | list):
        if not counted(constraints):
            unsupported("`constraints` whose number is not known at compile time")
        return constraints
    return (constraints,)


def values_of(constraint: Any, x: Any) -> Any:
    """The numbers of a constraint, as a vector."""
    if isinstance(constraint, dict):
        others = constraint.get("args", ())
        found = constraint["fun"](x, *as_tuple(others))
    elif isinstance(constraint, Linear):
        found = np.atleast_2d(np.asarray(constraint.A)) @ x
    else:
        found = constraint.fun(x)
    values = floats(np.atleast_1d(np.asarray(found)))
    return np.reshape(values, values.size)


def limits_of(constraints: Any, x: Any) -> Any:
    """The least and the largest values that the constraints allow."""
    least, most = [], []
    for c in constraints:
        count = len(values_of(c, x))
        if isinstance(c, dict):
            low, high = np.zeros(count), np.full(count, allowed(c["type"]))
        else:
            low, high = filled(c.lb, count), filled(c.ub, count)
        least.append(low)
        most.append(high)
    return np.concatenate(least), np.concatenate(most)


@structural
def allowed(kind: Any) -> float:
    """The largest value of a constraint of this type. The least one is zero."""
    if kind not in ("eq", "ineq"):
        raise ValueError("the `type` of a constraint is 'eq' or 'ineq'")
    return 0.0 if kind == "eq" else math.inf


def filled(limit: Any, count: Any) -> Any:
    """A limit for each number."""
    found = np.empty(count)
    if is_array(limit):
        agree(len(limit), count, "the limits do not have as many numbers as the constraint")
    found[:] = limit
    return found


def limits(bounds: Any, count: Any) -> Any:
    """The lower and the upper bounds, from pairs with None for no bound, or from an instance of `Bounds`."""
    lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
    if bounds is None:
        return lower, upper
    if isinstance(bounds, Box):
        return filled(bounds.lb, count), filled(bounds.ub, count)
    if not isinstance(bounds, tuple | list) or not counted(bounds):
        unsupported("`bounds` other than a list of pairs or `scipy.optimize.Bounds`")
    agree(len(bounds), count, "The number of bounds is not compatible with the length of `x0`.")
    for i, (low, high) in enumerate(bounds):
        if low is not None:
            lower[i] = low
        if high is not None:
            upper[i] = high
    return lower, upper


def box_of(bounds: Any, count: Any) -> Any:
    """The bounds of `least_squares`: a pair of numbers or arrays, or an instance of `Bounds`."""
    if isinstance(bounds, Box):
        return limits(bounds, count)
    lower, upper = bounds
    return filled(np.asarray(lower), count), filled(np.asarray(upper), count)


MAKERS: dict[str, Any] = {"Bounds": box, "LinearConstraint": linear, "NonlinearConstraint": nonlinear}
"""By the name in `scipy.optimize`."""
