"""The programs to differentiate, one module each, in plain Python and NumPy as people write them.

A module has the function (`primal`, which returns one number), the arguments to differentiate by (`WRT`), three sizes
(`SIZES`; `SIZE` says what they count), and `arguments(size)`, the same data every time. It imports only NumPy, so that
every system can read the data in its own environment.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

NAMES = (
    "tiny",
    "recurrence",
    "adaptive_ode",
    "burgers",
    "gauss_seidel",
    "jacobi",
    "lennard_jones",
    "cholesky",
    "sparse_product",
    "bundle_adjustment",
    "barrier",
    "black_scholes",
    "logistic_regression",
    "mlp",
    "gaussian_mixture",
    "lstm",
    "hidden_markov",
    "kalman",
)


@dataclass(frozen=True, slots=True)
class Program:
    """A function to differentiate, with its data."""

    name: str
    about: str
    primal: Callable[..., float]
    wrt: tuple[str, ...]
    size_counts: str
    sizes: tuple[int, ...]
    arguments: Callable[[int], tuple[Any, ...]]
    module: ModuleType

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(inspect.signature(self.primal).parameters)

    @property
    def is_gradient(self) -> bool:
        """Whether the derivative is a gradient, and not a Jacobian or a result computed from gradients."""
        return getattr(self.module, "IS_GRADIENT", True)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the arguments to differentiate."""
        return tuple(self.names.index(name) for name in self.wrt)


def load(name: str) -> Program:
    """The program of this name. Programs of another package have the package in front.

    >>> load("tiny").wrt
    ('x',)
    >>> load("patterns.pay_off").size_counts
    'samples'
    """
    module = importlib.import_module(f"benchmarks.{name}" if "." in name else f"{__name__}.{name}")
    about = (module.__doc__ or "").partition("\n")[0]
    return Program(name, about, module.primal, module.WRT, module.SIZE, module.SIZES, module.arguments, module)
