"""The table of `scipy.interpolate`."""

from __future__ import annotations

from typing import Any

from srcdiff.library import basis_splines, grid_interpolation, piecewise_polynomials

FUNCTIONS: dict[str, Any] = {**piecewise_polynomials.MAKERS, **basis_splines.MAKERS, **grid_interpolation.MAKERS}
"""By the name in `scipy.interpolate`."""


def stand_for_scipys() -> None:
    """Register these classes for those of SciPy, whether it is installed or not."""
    for module in (piecewise_polynomials, basis_splines, grid_interpolation):
        module.stand_for_scipys()
