"""The table from NumPy's functions and array methods to functions of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import (
    arranging,
    bisection,
    building,
    fourier,
    indices,
    joining,
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
    **joining.FUNCTIONS,
    **arranging.FUNCTIONS,
    **sorting.FUNCTIONS,
    **products.FUNCTIONS,
    **linear_algebra.FUNCTIONS,
    **signals.FUNCTIONS,
    **fourier.OF_NUMPY,
}
"""By the function of NumPy."""

_OF_COMPLEX = (
    *("sum", "prod", "mean", "var", "std", "average", "trapezoid", "any", "all", "count_nonzero", "array_equal"),
    *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nancumsum", "nancumprod", "nan_to_num"),
    *("cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "diff", "ediff1d"),
    *("gradient", "isclose", "allclose", "apply_along_axis", "apply_over_axes", "linspace", "logspace", "geomspace"),
    *("tril_indices_from", "triu_indices_from", "diag_indices_from", "piecewise"),
    *("sort", "argsort", "sort_complex", "partition", "argpartition", "unique", "polyfit", "cov", "corrcoef"),
    *("put", "place", "putmask", "put_along_axis", "copyto", "nonzero", "flatnonzero", "argwhere", "take", "compress"),
    *("take_along_axis", "extract", "select", "choose", "fill_diagonal", "tril", "triu", "concatenate", "stack"),
    *("hstack", "vstack", "dstack", "column_stack", "block", "append", "insert", "delete", "resize", "pad"),
    *("diagonal", "diag", "diagflat", "swapaxes", "moveaxis", "rollaxis", "matrix_transpose", "broadcast_arrays"),
    *("squeeze", "atleast_1d", "atleast_2d", "atleast_3d", "flip", "fliplr", "flipud", "rot90", "roll", "tile"),
    *("repeat", "split", "array_split", "hsplit", "vsplit", "dsplit", "meshgrid", "vander", "convolve"),
    *("polyval", "polyadd", "polysub", "polymul", "polyder", "polyint", "trim_zeros", "matmul", "matvec", "vecmat"),
    *("roots", "poly", "correlate", "interp"),
    *("dot", "vdot", "vecdot", "inner", "outer", "tensordot", "einsum", "kron", "cross", "trace"),
)
_OF_COMPLEX_MATRICES = (
    *("solve", "inv", "det", "slogdet", "matrix_power", "multi_dot", "tensorinv", "tensorsolve", "norm", "matmul"),
    *("vector_norm", "matrix_norm", "outer", "tensordot", "cross", "vecdot", "trace", "diagonal", "matrix_transpose"),
    *("cholesky", "eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "qr", "lstsq", "pinv", "matrix_rank", "cond"),
)
_TRANSFORMS = (
    *("fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "fft2", "ifft2", "irfftn", "irfft2", "fftshift", "ifftshift"),
)
TAKES_COMPLEX = frozenset(
    FUNCTIONS[getattr(module, name)]
    for module, names in ((np, _OF_COMPLEX), (np.linalg, _OF_COMPLEX_MATRICES), (np.fft, _TRANSFORMS))
    for name in names
    if getattr(module, name, None) in FUNCTIONS
) | {arranging.sliding_window_view, sorting.sort_in_place, sorting.partition_in_place}
"""The functions that support complex numbers. All others refuse them."""

_SELECTIONS = (np.max, np.min, np.argmax, np.argmin, np.ptp, np.median, np.nanmax, np.nanmin, np.nanargmax)
ORDERS = frozenset(sorting.FUNCTIONS.values()) | {sorting.sort_in_place, sorting.partition_in_place}
"""The functions that compare numbers by size, and rearrange them."""
SELECTS = frozenset(FUNCTIONS[f] for f in (*_SELECTIONS, np.nanargmin, np.nanmedian))
"""The functions that compare numbers by size, and select one of them."""

STANDARD: dict[Any, Any] = {**mathematics.FUNCTIONS, **operators.FUNCTIONS, **bisection.FUNCTIONS}
"""By the function of the standard library."""

_NAMED = (
    *("all", "any", "argmax", "argmin", "argsort", "astype", "choose", "clip", "conj", "conjugate", "cumprod"),
    *("cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted"),
    *("squeeze", "std", "sum", "swapaxes", "take", "trace", "var"),
)

METHODS: dict[str, Any] = {
    **{name: getattr(np, name) for name in _NAMED},
    "compress": indices.compressed,
    "fill": indices.fill,
    "flatten": arranging.flatten,
    "partition": sorting.partition_in_place,
    "put": indices.put,
    "sort": sorting.sort_in_place,
}
"""By the name of the method; the array is the first argument."""

UFUNC_METHODS: dict[str, Any] = scans.METHODS
"""By the name of the method; the elementwise function is the first argument."""
