"""NLopt for structured parameters, with gradients by srcdiff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import nlopt
import numpy as np

from srcdiff.bridges.flat_functions import Flat, Function, Result, bound


def minimize(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    algorithm: str = "LD_LBFGS",
    *,
    lower: Any = None,
    upper: Any = None,
    equal: Sequence[Function] = (),
    below: Sequence[Function] = (),
    tolerance: float = 1e-8,
    backend: str = "numba",
    **settings: Any,
) -> Result:
    """Minimise a function by an algorithm of NLopt.

    Args:
        f: A function of the parameters and of `args` that returns one float.
        x0: The parameters to start from: a number, an array, or a structure of these.
        args: The other arguments of `f`.
        algorithm: The name of an algorithm: `"LD_SLSQP"`, `"LD_MMA"`, `"LN_COBYLA"` and others.
        lower: Lower bounds with the structure of the parameters. A bound is a number, an array, or None.
        upper: Upper bounds.
        equal: Functions of the parameters that must be zero. They return a number or an array.
        below: Functions of the parameters that must not be above zero.
        tolerance: How exactly constraints must hold.
        backend: As for `srcdiff.grad`.
        **settings: Settings of NLopt: `xtol_rel=1e-8` calls `set_xtol_rel(1e-8)`. Without any, `xtol_rel` and
            `ftol_rel` are 1e-10.

    Returns:
        `params`, the parameters with the structure of `x0`; `x`, the same as a vector; `fun`, the value; `success`,
        `message`, and `view`. `info` is the object of NLopt.
    """
    flat = Flat(f, x0, args, backend, "NLopt")
    number = getattr(nlopt, algorithm, None)
    if not isinstance(number, int):
        raise ValueError(f"NLopt has no algorithm {algorithm!r}")
    problem = nlopt.opt(number, flat.view.size)
    raised: list[Exception] = []
    problem.set_min_objective(_kept(_objective(flat), raised))
    problem.set_lower_bounds(bound(flat.view, lower, -np.inf))
    problem.set_upper_bounds(bound(flat.view, upper, np.inf))
    for functions, add in ((equal, problem.add_equality_mconstraint), (below, problem.add_inequality_mconstraint)):
        for function in functions:
            one = Flat(function, x0, (), backend, "NLopt")
            add(_kept(_constraint(one), raised), np.full(one.values(one.view.x).size, tolerance))
    for name, value in (settings or {"xtol_rel": 1e-10, "ftol_rel": 1e-10}).items():
        if not hasattr(problem, f"set_{name}"):
            raise TypeError(f"NLopt has no setting {name!r}")
        getattr(problem, f"set_{name}")(value)
    with flat.place():
        try:
            x = problem.optimize(flat.view.x)
        except Exception as error:
            if not raised and problem.get_errmsg():
                error.add_note(problem.get_errmsg())  # NLopt's exceptions have no words
            raise (raised or [error])[0] from None
    code, fun = problem.last_optimize_result(), float(problem.last_optimum_value())
    names = {getattr(nlopt, name): name for name in _RESULTS if hasattr(nlopt, name)}
    return Result(flat.view, x, fun, code in range(1, 5) and bool(np.isfinite(fun)), names.get(code, ""), problem)


_RESULTS = (
    "SUCCESS", "STOPVAL_REACHED", "FTOL_REACHED", "XTOL_REACHED", "MAXEVAL_REACHED", "MAXTIME_REACHED",
    "ROUNDOFF_LIMITED", "FORCED_STOP", "FAILURE",
)  # fmt: skip


def _kept(function: Function, raised: list[Exception]) -> Function:
    """Keep what the function raises: NLopt raises an exception of its own, without a reason."""

    def called(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            raised.append(error)
            raise

    return called


def _objective(flat: Flat) -> Callable[[Any, Any], float]:
    """The function that NLopt calls. If the given array has elements, NLopt needs the gradient."""

    def objective(x: Any, gradient: Any) -> float:
        if not gradient.size:
            return float(flat.value(x))
        value, found = flat.value_and_gradient(x)
        gradient[:] = found
        return float(value)

    return objective


def _constraint(flat: Flat) -> Callable[[Any, Any, Any], None]:
    def constraint(result: Any, x: Any, gradient: Any) -> None:
        values = flat.values(x)
        if gradient.size:
            gradient[:] = flat.jacobian(x)
        result[:] = values

    return constraint
