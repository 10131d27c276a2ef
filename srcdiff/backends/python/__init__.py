"""The backend `python`: the interpreter runs the text."""

from __future__ import annotations

from srcdiff.backends.backend import Backend, Trait
from srcdiff.backends.python.interpreter import load_interpreted
from srcdiff.diagnostics.options import COMPILING, Taken

BACKEND = Backend(
    "python",
    load_interpreted,
    traits=frozenset({Trait.NAMES_AT_RUN_TIME}),
    passes=frozenset({"growing buffers", "product buffers"}),
    options=Taken(COMPILING, refused={"error_model": ("python",)}),
)

__all__ = ["BACKEND"]
