"""The primal, srcdiff and the two tapes, which take the programs without changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import srcdiff
from benchmarks.programs import Program
from srcdiff import tape
from srcdiff.api.benchmarking import compiled_primal, reason_of
from srcdiff.backends.numba import memory_pool

__all__ = ["held_bytes", "notes", "prepare", "reason_of", "to_numpy", "version"]

notes: list[str] = []
"""Remarks on the preparation of the latest call."""

held: list[Any] = []
"""The prepared objects that hold memory between calls."""


def version() -> str:
    return f"srcdiff {srcdiff.__version__}, numba {numba.__version__}, numpy {np.__version__}"


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    notes.clear()
    held.clear()
    memory_pool.release_all()
    if variant == "primal":
        primal, note = compiled_primal(program.primal, arguments)
        if note:
            notes.append(note)
        return lambda: (primal(*arguments), ())
    by_srcdiff = getattr(program.module, "by_srcdiff", None)
    make: dict[str, Callable[..., Any]] = {
        "srcdiff": by_srcdiff or (lambda: srcdiff.value_and_grad(program.primal, wrt=program.wrt)),
        "eager": lambda: tape.eager.value_and_grad(program.primal, program.positions),
        "compiled": lambda: tape.compiled.value_and_grad(program.primal, program.positions),
    }
    differentiated = make[variant]()
    held.append(differentiated)
    return lambda: differentiated(*arguments)


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value), [np.asarray(g) for g in (gradients if isinstance(gradients, tuple) else (gradients,))]


def held_bytes() -> int:
    """The memory that is held between calls: the record of the compiled tape, and srcdiff's memory pool."""
    return sum(getattr(one, "nbytes", 0) for one in held) + memory_pool.held_bytes()
