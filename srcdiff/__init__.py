"""srcdiff: derivatives of ordinary Python functions, as source code, compiled by Numba."""

from srcdiff import cuda
from srcdiff.api import (
    Derivative,
    custom_rule,
    differentiable,
    grad,
    source,
    stop_gradient,
    value_and_grad,
)
from srcdiff.batching import batched
from srcdiff.benchmark import benchmark
from srcdiff.diagnostics import DifferentiationError, ZeroGradientWarning
from srcdiff.inspection import explain, show
from srcdiff.modes import check, hessian, hvp, jacobian, jvp, vjp

__version__ = "0.1.0"

__all__ = [
    "Derivative",
    "DifferentiationError",
    "ZeroGradientWarning",
    "batched",
    "benchmark",
    "check",
    "cuda",
    "custom_rule",
    "differentiable",
    "explain",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "show",
    "source",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
