"""The backend `numba`: Numba compiles the text for the processor that is there."""

from __future__ import annotations

from srcdiff.backends.backend import Backend, Trait
from srcdiff.backends.numba.loading import load_compiled

BACKEND = Backend(
    "numba",
    load_compiled,
    traits=frozenset({Trait.COMPILED, Trait.KEPT_ON_DISK}),
    passes=frozenset({"growing buffers", "product buffers", "shared factors"}),
)

__all__ = ["BACKEND"]
