"""Functions that threads call, which are written beside generated kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

cuda: Any = None
"""Replaces Numba's `cuda` in functions that run on a GPU; generated code imports it."""


def block_sum(x: Any) -> Any:
    """The sum over all threads of a block; each thread gets it."""
    parts = cuda.shared.array(1024, np.float64)
    thread = cuda.threadIdx.x
    parts[thread] = x
    cuda.syncthreads()
    width = cuda.blockDim.x
    while width > 1:
        half = (width + 1) // 2
        if thread + half < width:
            parts[thread] += parts[thread + half]
        cuda.syncthreads()
        width = half
    total = parts[0]
    cuda.syncthreads()
    return total
