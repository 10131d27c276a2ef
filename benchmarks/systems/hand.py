"""The hand-written adjoints of the patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.programs import Program
from benchmarks.systems import RefusedError


def version() -> str:
    return f"numba {numba.__version__}"


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    adjoint = getattr(program.module, "hand", None)
    if adjoint is None:
        raise RefusedError("not written by hand")
    workspace = getattr(program.module, "workspace", lambda *_: ())(*arguments)
    return lambda: adjoint(*arguments, *workspace)


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value), [np.asarray(g) for g in gradients]
