"""The table from NumPy's functions and array methods to functions of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import (
    building,
    indices,
    linear_algebra,
    mathematics,
    operators,
    products,
    reductions,
    scans,
    signals,
    sorting,
)

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

STANDARD: dict[Any, Any] = {**mathematics.FUNCTIONS, **operators.FUNCTIONS}
"""By the function of Python's own library."""

_NAMED = (
    *("all", "any", "argmax", "argmin", "argsort", "astype", "choose", "clip", "conj", "conjugate", "cumprod"),
    *("cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted"),
    *("squeeze", "std", "sum", "swapaxes", "take", "trace", "var"),
)

METHODS: dict[str, Any] = {
    **{name: getattr(np, name) for name in _NAMED},
    "compress": indices.compressed,
    "fill": indices.fill,
    "flatten": building.flatten,
    "partition": sorting.partition_in_place,
    "put": indices.put,
    "sort": sorting.sort_in_place,
}
"""By the name of the method; the array is the first argument."""

UFUNC_METHODS: dict[str, Any] = scans.METHODS
"""By the name of the method; the elementwise function is the first argument."""
