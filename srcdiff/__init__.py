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
from srcdiff.diagnostics import CompiledDiffersWarning, DifferentiationError, ZeroGradientWarning
from srcdiff.export import export
from srcdiff.inspection import explain, show
from srcdiff.modes import check, hessian, hvp, jacobian, jvp, vjp
from srcdiff.version import __version__

__all__ = [
    "CompiledDiffersWarning",
    "Derivative",
    "DifferentiationError",
    "ZeroGradientWarning",
    "__version__",
    "batched",
    "benchmark",
    "check",
    "cuda",
    "custom_rule",
    "differentiable",
    "explain",
    "export",
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
