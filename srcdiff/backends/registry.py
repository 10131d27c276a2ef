"""The backends by their names."""

from __future__ import annotations

from srcdiff.backends import cuda, numba, python
from srcdiff.backends.backend import Backend
from srcdiff.diagnostics.options import BACKEND_OPTIONS
from srcdiff.frontend.source.capture import forget_made

BACKENDS: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Let users choose the backend by its name; another one of this name is not used any more."""
    if backend.name in BACKENDS:
        forget_made()
    BACKENDS[backend.name] = backend
    BACKEND_OPTIONS[backend.name] = backend.options


for _backend in (numba.BACKEND, python.BACKEND, cuda.BACKEND):
    register(_backend)
