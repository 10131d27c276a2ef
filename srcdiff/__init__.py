"""srcdiff: derivatives of ordinary Python functions, as source code, compiled by Numba."""

from srcdiff import cuda
from srcdiff.api.batching import batched
from srcdiff.api.benchmarking import benchmark
from srcdiff.api.checking import check
from srcdiff.api.custom_rules import custom_rule, rule_for, stop_gradient
from srcdiff.api.derivatives import Derivative
from srcdiff.api.differential_equations import odeint
from srcdiff.api.exporting import export
from srcdiff.api.external import external
from srcdiff.api.hessian_products import hvp
from srcdiff.api.implicit import fixed_point, least_squares, minimize, root
from srcdiff.api.inspecting import explain, show
from srcdiff.api.jacobians import hessian, jacobian
from srcdiff.api.modes import jvp, vjp
from srcdiff.api.reverse import differentiable, grad, source, value_and_grad
from srcdiff.api.workspaces import release_memory
from srcdiff.diagnostics import (
    ComparisonSearchWarning,
    CompiledDiffersWarning,
    DifferentiationError,
    EqualityTestWarning,
    ZeroGradientWarning,
)
from srcdiff.signature.complex_pairs import Partials
from srcdiff.version import __version__

__all__ = [
    "ComparisonSearchWarning",
    "CompiledDiffersWarning",
    "Derivative",
    "DifferentiationError",
    "EqualityTestWarning",
    "Partials",
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
    "external",
    "fixed_point",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "least_squares",
    "minimize",
    "odeint",
    "release_memory",
    "root",
    "rule_for",
    "show",
    "source",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
