"""Problems and their places in the user's source. All stages use it; it imports none of them."""

from srcdiff.diagnostics.problem import (
    ComparisonSearchWarning,
    CompiledDiffersWarning,
    ComplexJacobianError,
    DifferentiationError,
    EqualityTestWarning,
    InternalError,
    ListsInJacobianError,
    NotExportedError,
    Problem,
    Refusal,
    ZeroGradientWarning,
)
from srcdiff.diagnostics.render import printable
from srcdiff.diagnostics.span import Span

__all__ = [
    "ComparisonSearchWarning",
    "CompiledDiffersWarning",
    "ComplexJacobianError",
    "DifferentiationError",
    "EqualityTestWarning",
    "InternalError",
    "ListsInJacobianError",
    "NotExportedError",
    "Problem",
    "Refusal",
    "Span",
    "ZeroGradientWarning",
    "printable",
]
