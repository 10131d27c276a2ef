"""Implicit functions: roots, fixed points, minima and least squares, with the derivatives of the equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcdiff.api.closures import Programs
from srcdiff.api.jacobians import jacobian
from srcdiff.api.modes import jvp
from srcdiff.api.reverse import differentiable, grad
from srcdiff.library import solvers
from srcdiff.library.language import DERIVATIVES

Function = Callable[..., Any]


def root(
    residual: Function,
    x0: Any,
    *args: Any,
    tol: float = 1e-10,
    maxiter: int = 100,
    linear_solver: str = "dense",
    bands: tuple[int, int] | None = None,
    backend: str = "numba",
) -> Any:
    """The `x` with `residual(x, *args) == 0` that Newton's method finds from `x0`.

    Derivatives are those of the root, by the implicit function theorem: the adjoint is one linear solve and one adjoint
    of the residual, of any order, and the iterations keep nothing. They are with respect to the arguments, and to
    everything else that the residual reads. The root does not depend on `x0`, as long as it is the same root.

    >>> def residual(x, a):
    ...     return x * x - a
    >>> round(root(residual, 1.0, 2.0, backend="python"), 6)
    1.414214
    >>> round(grad(lambda a: root(residual, 1.0, a), backend="python")(2.0), 6)
    0.353553

    Args:
        residual: Takes a number or an array like `x0`, and `args`. It returns as many numbers as it is given.
        x0: Where the search starts.
        *args: Further arguments of the residual: numbers, arrays, and structures of them.
        tol: The search ends after a step that is smaller than `tol` times the largest number of `x`.
        maxiter: The largest number of steps.
        linear_solver: How systems with the Jacobian matrix are solved, by Newton's method and by derivatives. "dense"
            forms the matrix. "gmres" and "cg" need only products with it; "cg" is for matrices that are symmetric and
            positive definite. They do not form the matrix for first and second derivatives, and do
            not notice every singular matrix.
        bands: The number of diagonals below and above the main one, outside of which the Jacobian matrix is zero.
            Then the systems are solved as banded ones.
        backend: As for `grad`; inside a differentiated function, the backend is that of the function.

    Returns:
        The root, a number or an array like `x0`.

    Raises:
        RuntimeError: If the root was not found, or a linear system was not solved.
        ValueError: If the Jacobian matrix is not zero outside of `bands`.
    """
    return _SOLVERS.call(residual, (root, backend, tol, maxiter, linear_solver, bands), x0, *args)


def fixed_point(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float = 1e-10,
    maxiter: int = 10000,
    linear_solver: str = "dense",
    bands: tuple[int, int] | None = None,
    backend: str = "numba",
) -> Any:
    """The `x` with `f(x, *args) == x` that the iteration of `f` reaches from `x0`.

    >>> import math
    >>> round(fixed_point(lambda x, a: math.cos(a * x), 1.0, 1.0, backend="python"), 6)
    0.739085

    Args:
        f: Takes a number or an array like `x0`, and `args`, and returns the like.
        x0: Where the iteration starts.
        *args: Further arguments of `f`.
        tol: The iteration ends when a step is smaller than `tol` times the largest number of `x`.
        maxiter: The largest number of steps.
        linear_solver: As for `root`, with the Jacobian matrix of `x - f(x, *args)`. Only derivatives need it.
        bands: As for `root`.
        backend: As for `root`.

    Returns:
        The fixed point. Its derivatives are as those of `root`.

    Raises:
        RuntimeError: If the iteration did not converge.
    """
    return _SOLVERS.call(f, (fixed_point, backend, tol, maxiter, linear_solver, bands), x0, *args)


def minimize(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float = 1e-8,
    maxiter: int = 1000,
    linear_solver: str = "dense",
    bands: tuple[int, int] | None = None,
    backend: str = "numba",
) -> Any:
    """The `x` at which `f(x, *args)` has a local minimum, found from `x0` by Newton's method.

    >>> round(minimize(lambda x, a: (x - a) ** 4 + x * x, 0.0, 1.0, backend="python"), 6)
    0.410245

    Args:
        f: Takes a number or an array, and `args`, and returns a number.
        x0: Where the search starts.
        *args: Further arguments of `f`.
        tol: The search ends after a step that is smaller than `tol` times the largest number of `x`.
        maxiter: The largest number of steps.
        linear_solver: As for `root`, with the Hessian matrix of `f`.
        bands: As for `root`.
        backend: As for `root`.

    Returns:
        The place of the minimum. Its derivatives are as those of `root`, where the residual is the gradient of `f`.

    Raises:
        RuntimeError: If the minimum was not found.
    """
    return _SOLVERS.call(f, (minimize, backend, tol, maxiter, linear_solver, bands), x0, *args)


def least_squares(
    residuals: Function, x0: Any, *args: Any, tol: float = 1e-10, maxiter: int = 1000, backend: str = "numba"
) -> Any:
    """The `x` that makes the sum of the squares of `residuals(x, *args)` least, by Levenberg and Marquardt.

    >>> import numpy as np
    >>> t, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.1, 4.9])
    >>> def misfit(p, y):
    ...     return p[0] + p[1] * t - y
    >>> [round(float(x), 6) for x in least_squares(misfit, np.zeros(2), y, backend="python")]
    [1.05, 1.95]

    Args:
        residuals: Takes an array like `x0`, and `args`, and returns an array of any length.
        x0: Where the search starts.
        *args: Further arguments of the residuals.
        tol: The search ends after a step that is smaller than `tol` times the largest number of `x`.
        maxiter: The largest number of steps.
        backend: As for `root`.

    Returns:
        The solution. Its derivatives take the second derivatives of the residuals into account.

    Raises:
        RuntimeError: If the solution was not found.
    """
    return _SOLVERS.call(residuals, (least_squares, backend, tol, maxiter), x0, *args)


def _compiled(
    f: Function,
    solve: Any,
    backend: str,
    tol: float,
    maxiter: int,
    linear_solver: str = "dense",
    bands: tuple[int, int] | None = None,
) -> Any:
    """The solver for a function, outside of differentiated functions."""

    def program(x0: Any, *args: Any) -> Any:
        return solve(f, x0, *args, tol=tol, maxiter=maxiter, linear_solver=linear_solver, bands=bands)

    def squares(x0: Any, *args: Any) -> Any:
        return solve(f, x0, *args, tol=tol, maxiter=maxiter)

    return differentiable(squares if solve is least_squares else program, backend=backend)


_SOLVERS = Programs(_compiled)


# their meaning inside a differentiated function
root.__srcdiff_inside__ = (solvers.root, grad, jacobian, jvp)  # type: ignore[attr-defined]
fixed_point.__srcdiff_inside__ = (solvers.fixed_point, grad, jacobian, jvp)  # type: ignore[attr-defined]
minimize.__srcdiff_inside__ = (solvers.minimize, grad, jacobian, jvp)  # type: ignore[attr-defined]
least_squares.__srcdiff_inside__ = (solvers.least_squares, grad, jacobian, jvp)  # type: ignore[attr-defined]
DERIVATIVES.update(grad=grad, jacobian=jacobian, jvp=jvp)
