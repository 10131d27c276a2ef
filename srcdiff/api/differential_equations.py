"""Ordinary differential equations, with derivatives with respect to the start, the times and the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcdiff.api.closures import Programs
from srcdiff.api.jacobians import jacobian
from srcdiff.api.modes import jvp
from srcdiff.api.reverse import differentiable
from srcdiff.library import odes

Function = Callable[..., Any]


def odeint(
    f: Function,
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    method: str = "tsit5",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    adjoint: str = "discrete",
    max_steps: int = 100000,
    bands: tuple[int, int] | None = None,
    backend: str = "numba",
) -> Any:
    """The solution of `y' = f(y, t, *args)` with `y = y0` at `t[0]`, at all times `t`.

    The steps are chosen so that the error of each is about `atol + rtol * abs(y)`, and polynomials give the solution
    inside of them. Derivatives are with respect to `y0`, `t`, `args`, and everything else that `f` reads, in both modes
    and of any order.

    The discrete adjoint is the derivative of the steps as they were taken: their number and their relative lengths are
    constants. It keeps the state after each step. The continuous adjoint solves another equation backwards, with the
    same method and tolerances; it keeps nothing but the solution at the times `t`. Its error is of the size of the
    tolerances.

    >>> import numpy as np
    >>> def decay(y, t, rate):
    ...     return -rate * y
    >>> def end(rate):
    ...     return odeint(decay, 1.0, np.array([0.0, 2.0]), (rate,), backend="python")[-1]
    >>> round(float(end(0.5)), 6), round(differentiable(end, backend="python").grad()(0.5), 5)
    (0.367879, -0.73576)

    Args:
        f: Takes the state, the time and `args`. It returns the slope, as many numbers as the state has.
        y0: The state at the first time: a number, an array of any shape, a tuple with arrays or tuples in it, or a
            dictionary of numbers and arrays. `f` takes and returns the same structure.
        t: The times, an array that increases or decreases.
        args: Further arguments of `f`, in a tuple: numbers, arrays, and structures of them.
        method: `tsit5`, `dopri5`, `dop853` of order eight, or `rodas5p` for stiff equations, which takes the Jacobian
            matrix of `f`.
        rtol: The relative error of a step that is tolerated.
        atol: The absolute error that is tolerated: a number, or one for each element of the state.
        adjoint: `discrete` or `continuous`.
        max_steps: The largest number of steps.
        bands: For `rodas5p`: the number of diagonals below and above the main one, outside of which the Jacobian matrix
            of `f` is zero. Then the linear systems are banded ones.
        backend: As for `grad`; inside a differentiated function, the backend is that of the function.

    Returns:
        The states at the times, in an array whose first axis is that of `t`; or a structure of such arrays.

    Raises:
        ValueError: If the times do not all go in one direction, or the Jacobian matrix is not zero outside of `bands`.
        RuntimeError: If the step became too small, or `max_steps` was reached.
    """
    is_array = hasattr(atol, "shape")
    options = (method, adjoint, max_steps, bands, backend)
    return _SOLVERS.call(f, options, y0, t, args, rtol, atol if is_array else float(atol))


def _compiled(
    f: Function, method: str, adjoint: str, max_steps: int, bands: tuple[int, int] | None, backend: str
) -> Any:
    """The solver for a function, outside of differentiated functions."""

    def program(y0: Any, t: Any, args: Any, rtol: Any, atol: Any) -> Any:
        tolerances = {"rtol": rtol, "atol": atol}
        return odeint(f, y0, t, args, method=method, adjoint=adjoint, max_steps=max_steps, bands=bands, **tolerances)

    return differentiable(program, backend=backend)


_SOLVERS = Programs(_compiled)


# its meaning inside a differentiated function
odeint.__srcdiff_inside__ = (odes.odeint, jacobian, jvp)  # type: ignore[attr-defined]
