"""iminuit for structured parameters, with gradients by srcdiff."""

from __future__ import annotations

from typing import Any

import numpy as np
from iminuit import Minuit

from srcdiff.bridges.flat_functions import Flat, Function, bound, short_name


class Fit(Minuit):  # type: ignore[misc]
    """An object of iminuit that knows the structure of its parameters. Made by `minuit`."""

    __slots__ = ("flat",)

    flat: Flat

    @property
    def fitted(self) -> Any:
        """The current values of the parameters, with the structure of those that it started from."""
        return self.flat.view.unravel(np.array(self.values))


def minuit(
    f: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    lower: Any = None,
    upper: Any = None,
    errordef: float = Minuit.LEAST_SQUARES,
    backend: str = "numba",
) -> Fit:
    """Make an object of iminuit for a cost function: call `migrad()`, `hesse()`, `minos()` and others.

    Args:
        f: A function of the parameters and of `args` that returns one float.
        x0: The parameters to start from: a number, an array, or a structure of these.
        args: The other arguments of `f`.
        lower: Lower bounds with the structure of the parameters. A bound is a number, an array, or None.
        upper: Upper bounds.
        errordef: How much the cost grows in one standard deviation: 1 for least squares, 0.5 for a negative log
            likelihood.
        backend: As for `srcdiff.grad`.

    Returns:
        An object of iminuit. Its parameters have the names of the keys and attributes that lead to them. Also, `fitted`
        are the parameters with the structure of `x0`.
    """
    flat = Flat(f, x0, args, backend, "iminuit")
    parts = [part for part in flat.view.parts for _ in range(part.size)]
    names = [short_name(name, part.argument) for name, part in zip(flat.view.names, parts, strict=True)]
    names = [_with_index(name, whole) for name, whole in zip(names, flat.view.names, strict=True)]
    fit = Fit(lambda x: float(flat.value(x)), flat.view.x, grad=lambda x: flat.value_and_gradient(x)[1], name=names)
    fit.flat = flat
    fit.errordef = errordef
    low, high = bound(flat.view, lower, -np.inf), bound(flat.view, upper, np.inf)
    fit.limits = [*zip(low, high, strict=True)]
    return fit


def _with_index(name: str, whole: str) -> str:
    """The name of an element of an array with several axes keeps its index: `w[0, 1]`."""
    index = whole[whole.rfind("[") :] if "," in whole else ""
    return f"{name}{index}"
