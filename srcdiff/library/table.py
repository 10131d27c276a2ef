"""Which function of the library stands for which of NumPy's, and which of them arrays have as methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import building, indices, linear_algebra, products, reductions, scans, signals, sorting

FUNCTIONS: dict[Any, Any] = {
    **reductions.FUNCTIONS,
    **scans.FUNCTIONS,
    **indices.FUNCTIONS,
    **building.FUNCTIONS,
    **sorting.FUNCTIONS,
    **products.FUNCTIONS,
    **linear_algebra.FUNCTIONS,
    **signals.FUNCTIONS,
}
"""By the function of NumPy."""

METHODS: dict[str, Any] = {
    name: getattr(np, name) for name in ("sum", "nonzero", "dot", "trace", "ravel", "astype", "copy")
}
"""By the name of the method; the array is the first argument."""
