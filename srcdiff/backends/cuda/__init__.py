"""The backend `cuda`: loops become kernels, which Numba CUDA compiles; its passes are here too."""

from __future__ import annotations

from srcdiff.backends.backend import Backend, Trait
from srcdiff.backends.cuda.cuda_spelling import CUDA
from srcdiff.backends.cuda.launch_options import LAUNCHING
from srcdiff.backends.cuda.numba_cuda import require_installed
from srcdiff.backends.cuda.on_device import load_on_device
from srcdiff.diagnostics.options import COMPILING, Taken

BACKEND = Backend(
    "cuda",
    load_on_device,
    traits=frozenset({Trait.KERNELS}),
    passes=frozenset({"kernel extraction"}),
    options=Taken(
        COMPILING | LAUNCHING,
        refused={"error_model": ("python",), "boundscheck": (True,), "parallel": (True,), "deterministic": (False,)},
    ),
    spelling=CUDA,
    require_installed=require_installed,
)

__all__ = ["BACKEND"]
