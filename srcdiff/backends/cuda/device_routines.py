"""The kernels that every program uses: filling, copying, adding up, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda as numba_cuda

from srcdiff.backends.cuda.numba_cuda import is_simulated

cuda: Any = numba_cuda
TILE = 2 if is_simulated() else 16  # a thread of the simulator is a thread of the CPU


@cuda.jit  # type: ignore[untyped-decorator]
def fill(count: Any, array: Any, value: Any) -> None:
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        array[k] = value


@cuda.jit  # type: ignore[untyped-decorator]
def copy_elements(count: Any, source: Any, target: Any) -> None:
    """One after the other, as C counts them."""
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        target.flat[k] = source.flat[k]


@cuda.jit  # type: ignore[untyped-decorator]
def add_up(sums: Any, row: Any, out: Any) -> None:
    """The sum of a row, by one block."""
    parts = cuda.shared.array(1024, np.float64)
    thread = cuda.threadIdx.x
    total = 0.0
    for block in range(thread, sums.shape[1], cuda.blockDim.x):
        total += sums[row, block]
    parts[thread] = total
    cuda.syncthreads()
    if thread == 0:
        total = 0.0
        for k in range(cuda.blockDim.x):
            total += parts[k]
        out[0] = total


@cuda.jit  # type: ignore[untyped-decorator]
def multiply(a: Any, b: Any, out: Any) -> None:
    """A product of matrices, by tiles that the threads of a block share."""
    left = cuda.shared.array((TILE, TILE), np.float64)
    right = cuda.shared.array((TILE, TILE), np.float64)
    i, j = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        left[x, y] = a[i, start + y] if i < a.shape[0] and start + y < a.shape[1] else 0.0
        right[x, y] = b[start + x, j] if start + x < b.shape[0] and j < b.shape[1] else 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[x, k] * right[k, y]
        cuda.syncthreads()
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = total
