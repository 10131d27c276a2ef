"""Used by all stages, imports none: where something stands in the user's source, and what is wrong with it."""

from srcdiff.diagnostics.problem import (
    CompiledDiffersWarning,
    DifferentiationError,
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
    "CompiledDiffersWarning",
    "DifferentiationError",
    "InternalError",
    "ListsInJacobianError",
    "NotExportedError",
    "Problem",
    "Refusal",
    "Span",
    "ZeroGradientWarning",
    "printable",
]
