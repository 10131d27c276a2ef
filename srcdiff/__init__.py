"""srcdiff: derivatives of ordinary Python functions, as source code, compiled by Numba."""

from srcdiff.api import Derivative, differentiable, grad, source, stop_gradient, value_and_grad
from srcdiff.diagnostics import DifferentiationError

__all__ = [
    "Derivative",
    "DifferentiationError",
    "differentiable",
    "grad",
    "source",
    "stop_gradient",
    "value_and_grad",
]
