"""Ipopt, by cyipopt, for structured parameters: with gradients, Jacobians and Hessians by srcdiff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cyipopt
import numpy as np

from srcdiff.bridges.flat_functions import Flat, Function, Result, bound

Constraint = tuple[Function, Any, Any]


def minimize(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    lower: Any = None,
    upper: Any = None,
    constraints: Sequence[Constraint] = (),
    options: Mapping[str, Any] | None = None,
    backend: str = "numba",
) -> Result:
    """Minimise a function with constraints by Ipopt, with exact Hessians of the Lagrangian.

    Args:
        f: A function of the parameters and of `args` that returns one float.
        x0: The parameters to start from: a number, an array, or a structure of these.
        args: The other arguments of `f`.
        lower: Lower bounds with the structure of the parameters. A bound is a number, an array, or None.
        upper: Upper bounds.
        constraints: Triples: a function of the parameters that returns a number or a vector, its lower bound and its
            upper bound, which are numbers, vectors, or None.
        options: Options of Ipopt, such as `{"max_iter": 100}`. Without a `print_level`, it prints nothing.
        backend: As for `srcdiff.grad`.

    Returns:
        `params`, the parameters with the structure of `x0`; `x`, the same as a vector; `fun`, the value; `success`,
        `message`, and `view`. `info` is what cyipopt returns.
    """
    program = _Program(Flat(f, x0, args, backend, "Ipopt"), [_Constraint(*one, x0, backend) for one in constraints])
    view = program.flat.view
    problem = cyipopt.Problem(
        n=view.size,
        m=program.count,
        problem_obj=program,
        lb=bound(view, lower, -np.inf),
        ub=bound(view, upper, np.inf),
        cl=np.concatenate([np.zeros(0), *[one.lower for one in program.bounded]]),
        cu=np.concatenate([np.zeros(0), *[one.upper for one in program.bounded]]),
    )
    for name, value in {"print_level": 0, "sb": "yes", **(options or {})}.items():
        problem.add_option(name, value)
    x, info = problem.solve(view.x)
    message = info["status_msg"].decode() if isinstance(info["status_msg"], bytes) else str(info["status_msg"])
    return Result(view, x, float(info["obj_val"]), info["status"] in (0, 1), message, info)


class _Constraint:
    """The values of a constraint between bounds."""

    def __init__(self, fun: Function, lower: Any, upper: Any, x0: Any, backend: str) -> None:
        self.flat = Flat(fun, x0, (), backend, "Ipopt")
        self.size = self.flat.values(self.flat.view.x).size
        self.lower = np.broadcast_to(np.asarray(-np.inf if lower is None else lower, dtype=float), (self.size,))
        self.upper = np.broadcast_to(np.asarray(np.inf if upper is None else upper, dtype=float), (self.size,))
        curvature = self.flat.curvature()
        if curvature is None:
            raise TypeError("a constraint must return one float or a vector")
        self.curvature = curvature


class _Program:
    """The object whose methods cyipopt calls."""

    def __init__(self, flat: Flat, bounded: Sequence[_Constraint]) -> None:
        self.flat, self.bounded = flat, bounded
        self.count = sum(one.size for one in bounded)
        self.latest: tuple[Any, Any] | None = None
        """The latest vector, with its value and gradient."""

    def _value_and_gradient(self, x: Any) -> Any:
        if self.latest is None or not np.array_equal(self.latest[0], x):
            self.latest = x.copy(), self.flat.value_and_gradient(x)
        return self.latest[1]

    def objective(self, x: Any) -> float:
        return float(self._value_and_gradient(x)[0])

    def gradient(self, x: Any) -> Any:
        return self._value_and_gradient(x)[1]

    def constraints(self, x: Any) -> Any:
        return np.concatenate([np.zeros(0), *[one.flat.values(x) for one in self.bounded]])

    def jacobian(self, x: Any) -> Any:
        return np.concatenate([np.zeros(0), *[one.flat.jacobian(x).reshape(-1) for one in self.bounded]])

    def hessianstructure(self) -> Any:
        return np.tril_indices(self.flat.view.size)

    def hessian(self, x: Any, multipliers: Any, factor: float) -> Any:
        found, start = factor * self.flat.hessian(x), 0
        for one in self.bounded:
            found = found + one.curvature(x, multipliers[start : start + one.size])
            start += one.size
        return found[self.hessianstructure()]
