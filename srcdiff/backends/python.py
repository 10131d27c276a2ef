"""Runs the generated source as it is: for tests, for debugging, and to step through it."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def load(text: str, objects: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Execute the text; tracebacks and pdb show it under its file name."""
    module = types.ModuleType(f"srcdiff.generated.{file.strip('<>').replace(' ', '_')}")
    sys.modules[module.__name__] = module  # Numba finds recursive functions through their module
    namespace = module.__dict__
    namespace.update(objects)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)
    return namespace


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Division by zero gives infinity or NaN without a warning, as in compiled code."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*(np.float64(a) if type(a) is float else a for a in args))

    return call
