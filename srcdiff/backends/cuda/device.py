"""The GPU for generated host code: arrays in its memory, and launch configurations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.cuda import numba_cuda
from srcdiff.signature.keys import is_on_device
from srcdiff.signature.trees import TUPLES

THREADS_IN_BLOCK = 128
BLOCKS = 1024
"""The largest number of blocks in a launch: threads loop over further iterations, so more are not useful."""


class Device:
    """The GPU, as a derivative uses it: `threads` in a block, `blocks` at most, on a `stream`.

    Kernels run on the stream, copies on the default stream of CUDA, which synchronises with the others. `memory_limit`
    is the number of bytes of workspace for all threads together: if all iterations at once would need more, fewer
    threads run, and each runs more iterations in sequence.
    """

    def __init__(
        self, *, threads: int | None = None, blocks: int | None = None, memory_limit: int | None = None, stream: Any = 0
    ) -> None:
        simulated = numba_cuda.is_simulated()  # a thread of the simulator is a thread of the CPU
        self.block = (4 if simulated else THREADS_IN_BLOCK) if threads is None else threads
        self.most_blocks = (2 if simulated else BLOCKS) if blocks is None else blocks
        self.memory_limit, self.stream = memory_limit, stream

    # -- launches ----------------------------------------------------------------------------------------------------

    @property
    def alone(self) -> tuple[Any, ...]:
        """One thread."""
        return 1, 1, self.stream

    def shape(self, blocks: int) -> tuple[Any, ...]:
        return blocks, self.block, self.stream

    def grid(self, count: int, bytes_each: int) -> tuple[int, int]:
        """The numbers of blocks and threads for so many iterations, with so much workspace for each thread."""
        blocks = min(max(1, -(-count // self.block)), self.most_blocks)
        limit = self.free_memory() if self.memory_limit is None else self.memory_limit
        if bytes_each and limit is not None:
            fitting = limit // (bytes_each * self.block)
            if fitting < 1:
                raise MemoryError(
                    f"a block of {self.block} threads needs {bytes_each * self.block} bytes of workspace "
                    f"({bytes_each} each), but only {limit} are available: use smaller blocks with `threads=`"
                )
            blocks = min(blocks, fitting)
        return blocks, blocks * self.block

    @staticmethod
    def free_memory() -> int | None:
        """The free memory of the device, less a tenth."""
        if numba_cuda.is_simulated():
            return None
        free, _ = numba_cuda.cuda().current_context().get_memory_info()
        return int(free) * 9 // 10

    # -- arrays ------------------------------------------------------------------------------------------------------

    def empty(self, shape: Any, dtype: Any = np.float64) -> Any:
        return numba_cuda.cuda().device_array(shape, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = np.float64) -> Any:
        array = self.empty(shape, dtype)
        if array.size:
            self.fill(array, value)
        return array

    def zeros(self, shape: Any, dtype: Any = np.float64) -> Any:
        return self.full(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = np.float64) -> Any:
        return self.full(shape, 1, dtype)

    def empty_like(self, array: Any) -> Any:
        return self.empty(array.shape, array.dtype)

    def full_like(self, array: Any, value: Any) -> Any:
        return self.full(array.shape, value, array.dtype)

    def zeros_like(self, array: Any) -> Any:
        return self.full(array.shape, 0, array.dtype)

    def ones_like(self, array: Any) -> Any:
        return self.full(array.shape, 1, array.dtype)

    def copy(self, array: Any) -> Any:
        out = self.empty_like(array)
        if array.size:
            out.copy_to_device(array) if array.is_c_contiguous() else self.put(array, out)
        return out

    def view(self, array: Any, key: Any) -> Any:
        """A part of an array, with new axes where the key has None."""
        return self.other_view(array, lambda shape_of: shape_of[key])

    def transpose(self, array: Any, *axes: int) -> Any:
        """The same memory with its axes in another order; Numba's own would be a copy."""
        return self.other_view(array, lambda shape_of: shape_of.transpose(axes))

    def other_view(self, array: Any, change: Callable[[Any], Any]) -> Any:
        if numba_cuda.is_simulated():
            return type(array)(change(array._ary))
        nothing = np.empty(1, array.dtype)  # strides and places are NumPy's, its memory is not touched
        shape_of = np.lib.stride_tricks.as_strided(nothing, array.shape, array.strides)
        changed = change(shape_of)
        memory = array.gpu_data.view(changed.ctypes.data - shape_of.ctypes.data)
        return type(array)(changed.shape, changed.strides, array.dtype, 0, memory)

    def put(self, source: Any, target: Any) -> None:
        """Copy elements of arrays that are laid out differently."""
        self.each(_routines().copy_elements, source.size, source, target)

    def fill(self, array: Any, value: Any) -> None:
        self.each(_routines().fill, array.size, array.reshape(array.size), array.dtype.type(value))

    def each(self, kernel: Any, count: int, *args: Any) -> None:
        blocks, _ = self.grid(count, 0)
        kernel[self.shape(blocks)](count, *args)

    def grown(self, array: Any, position: int, axis: int) -> Any:
        """The array if it has an element at the position, else a larger one with the same contents."""
        length = array.shape[axis]
        if position < length:
            return array
        shape = list(array.shape)
        shape[axis] = max(2 * length + 8, position + 1)
        larger = self.empty(tuple(shape), array.dtype)
        if array.size:
            self.put(array, larger[tuple(slice(0, n) for n in array.shape)])
        return larger

    # -- sums and products -------------------------------------------------------------------------------------------

    def total(self, sums: Any, row: int) -> Any:
        """The second stage of a sum: the sum of the partial sums of the blocks."""
        out = self.empty(1)
        _routines().add_up[1, self.block, self.stream](sums, row, out)
        return out.copy_to_host()[0]

    def matmul(self, a: Any, b: Any) -> Any:
        """The product of matrices and vectors."""
        if a.shape[a.ndim - 1] != b.shape[0]:
            raise ValueError(f"shapes do not fit together: {a.shape} {b.shape}")
        left = a.reshape(1, a.shape[0]) if a.ndim == 1 else a
        right = b.reshape(b.shape[0], 1) if b.ndim == 1 else b
        out = self.empty((left.shape[0], right.shape[1]), np.result_type(a.dtype, b.dtype))
        if out.size:
            tile = _routines().TILE
            blocks = (-(-out.shape[0] // tile), -(-out.shape[1] // tile))
            _routines().multiply[blocks, (tile, tile), self.stream](left, right, out)
        if a.ndim == 1 and b.ndim == 1:
            return out.copy_to_host()[0, 0]
        return out.reshape(out.size) if a.ndim == 1 or b.ndim == 1 else out

    def on_host(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of NumPy on copies of the arrays, on the host."""
        found = function(*(self.host_array(a) for a in args))
        if isinstance(found, tuple):
            return tuple(self.array(x) if isinstance(x, np.ndarray) else x for x in found)
        return self.array(found) if isinstance(found, np.ndarray) else found

    # -- to and from the host ----------------------------------------------------------------------------------------

    def array(self, value: Any) -> Any:
        """An argument on the device; numbers are unchanged."""
        return TUPLES.map(self._leaf, value)

    @staticmethod
    def _leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return numba_cuda.cuda().to_device(np.ascontiguousarray(value).reshape(value.shape))
        if is_on_device(value):
            return value if hasattr(value, "copy_to_host") else numba_cuda.cuda().as_cuda_array(value)
        if type(value) is float:
            return np.float64(value)  # it divides by zero as compiled code does
        return value

    def host_array(self, value: Any) -> Any:
        return value.copy_to_host() if hasattr(value, "copy_to_host") else value


def as_given(result: Any, example: Any, device: Device) -> Any:
    """Arrays of the device as the kind of array that the example is, if its package has `asarray`.

    Other packages take Numba's device arrays as they are, through `__cuda_array_interface__`.
    """
    if isinstance(result, tuple):
        examples = example if isinstance(example, tuple) else [example] * len(result)
        return TUPLES.remade(result, [as_given(r, e, device) for r, e in zip(result, examples, strict=True)])
    if not hasattr(result, "copy_to_host"):
        return result
    if not is_on_device(example):
        return device.host_array(result)
    if hasattr(example, "copy_to_host"):
        return result
    library = sys.modules.get(type(example).__module__.partition(".")[0])
    make = getattr(library, "asarray", None)  # CuPy and PyTorch
    return result if make is None else make(result)


def kind_of(values: Sequence[Any]) -> Any:
    """An example of the kind of result arrays: on the device if an argument is."""
    return next((x for x in TUPLES.leaves(tuple(values)) if is_on_device(x)), None)


def _routines() -> Any:
    """The kernels that every program uses: they need Numba CUDA to be there."""
    from srcdiff.backends.cuda import device_routines

    return device_routines
