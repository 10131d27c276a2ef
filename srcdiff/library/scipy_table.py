"""The table from SciPy's functions to functions of the library. SciPy is not imported here.

A module of SciPy has a module of the library, whose table `FUNCTIONS` has its functions by name. A table is only read
when a function of SciPy is called, so SciPy is already loaded then.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import numpy as np

MODULES: dict[str, str] = {
    "scipy.linalg": "scipy_linalg",
    "scipy.special": "special_functions",
    "scipy.optimize": "scipy_optimize",
    "scipy.interpolate": "scipy_interpolate",
    "scipy.ndimage": "scipy_ndimage",
    "scipy.signal": "scipy_signal",
    "scipy.fft": "scipy_fft",
    "scipy.sparse": "sparse_makers",
    "scipy.sparse.linalg": "sparse_linalg",
    "scipy.integrate": "scipy_integrate",
}
"""By the module of SciPy that users import from."""


def find(target: Any) -> Any:
    """The function of the library for a function of SciPy, or None."""
    module = getattr(target, "__module__", None)
    is_function = isinstance(target, np.ufunc) or type(target).__module__ == "uarray"
    is_scipys = is_function or (isinstance(module, str) and module.partition(".")[0] == "scipy")
    if not is_scipys or "scipy" not in sys.modules:
        return None
    name = getattr(target, "__name__", "")
    for of_scipy, ours in MODULES.items():
        there = sys.modules.get(of_scipy)
        if there is not None and getattr(there, name, None) is target:
            return functions(ours).get(name)
    return None


@functools.cache
def functions(module: str) -> dict[str, Any]:
    """The table of a module of the library."""
    found: dict[str, Any] = importlib.import_module(f"srcdiff.library.{module}").FUNCTIONS
    return found


def takes_complex(function: Any) -> bool:
    """Whether a function of the library supports complex numbers: `TAKES_COMPLEX` of its module lists them."""
    return function in getattr(sys.modules.get(function.__module__), "TAKES_COMPLEX", ())
