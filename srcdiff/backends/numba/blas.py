"""BLAS for compiled code from the disk cache, without the rest of SciPy.

Numba finds BLAS through the module `scipy.linalg.cython_blas`, at the first call of each function, and keeps the
address. Importing that module imports all of `scipy.linalg`, which takes as long as the rest of a first call from the
disk cache. So the single module is loaded, Numba looks up the addresses, and the module is removed from `sys.modules`
again, so that a later import of SciPy works as usual.

Numba also imports `scipy.linalg` before it compiles anything, only to see whether it is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from numba import _helperlib

_MODULE = "scipy.linalg.cython_blas"

FUNCTIONS = ("xxdot", "xxgemv", "xxgemm")
"""Numba's functions that call BLAS."""


LIMITING = ctypes.c_int64(0)
"""The address of OpenBLAS's function `int (int)` that sets its number of threads and returns the number before; zero if
no BLAS was used, or it is another one."""


@functools.cache
def look_for_scipy() -> None:
    """Import the module of Numba's that asks for SciPy, without importing SciPy: half of a short first call."""
    from numba.np import linalg

    asked: Any = linalg
    importing, asked.ensure_blas = asked.ensure_blas, _require_scipy
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        asked.ensure_blas = importing


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        raise ImportError("SciPy is required for linear algebra")


@functools.cache
def ensure_found() -> None:
    """Register the addresses of BLAS with Numba. Raises ImportError if there is none."""
    if "scipy.linalg" in sys.modules or not _find():
        from numba.np import linalg

        linalg.ensure_blas()
    LIMITING.value = _limiting()


def _limiting() -> int:
    import scipy

    spec = PathFinder.find_spec(_MODULE, [str(Path(folder) / "linalg") for folder in scipy.__path__])
    if spec is None:
        return 0
    try:  # a search in the module goes on in the libraries that it uses
        function = ctypes.CDLL(spec.origin).openblas_set_num_threads_local
    except (AttributeError, OSError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS use one thread meanwhile, if compiled code has used it."""
    limit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(LIMITING.value) if LIMITING.value else None
    before = limit(1) if limit is not None else 1
    try:
        yield
    finally:
        if limit is not None:
            limit(before)


def _find() -> bool:
    import scipy

    if not _integers_agree(scipy.__config__.CONFIG):
        return False
    spec = PathFinder.find_spec(_MODULE, [str(Path(folder) / "linalg") for folder in scipy.__path__])
    if spec is None or spec.loader is None:
        return False
    module = module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
        _call_with_nothing()
    except (ImportError, OSError):
        return False
    finally:
        sys.modules.pop(_MODULE, None)
    return True


def _integers_agree(scipy_config: Any) -> bool:
    """Whether Numba was built for the integers of SciPy's BLAS, as `numba.np.linalg` requires."""
    try:
        found = bool(scipy_config["Build Dependencies"]["blas"]["cython blas ilp64"])
    except (KeyError, TypeError):
        found = False
    return found == bool(getattr(_helperlib, "LAPACK_BUILD_ILP64", False))


def _call_with_nothing() -> None:
    """Products of empty vectors and matrices: no memory is touched but a number."""
    memory = ctypes.byref(ctypes.c_double())
    none, one, as_it_is = ctypes.c_ssize_t(0), ctypes.c_ssize_t(1), ctypes.c_char(b"n")
    vectors = (ctypes.c_char(0), none, memory, memory, memory)
    vector = (as_it_is, none, none, memory, memory, one, memory, memory, memory)
    matrices = (as_it_is, as_it_is, none, none, none, memory, memory, one, memory, one, memory, memory, one)
    helpers: Any = _helperlib
    for name, arguments in zip(FUNCTIONS, (vectors, vector, matrices), strict=True):
        for kind in (b"s", b"d"):
            ctypes.CFUNCTYPE(ctypes.c_int)(helpers.c_helpers[name])(ctypes.c_char(kind), *arguments)
