"""The spelling of GPU operations in generated text, with `numba.cuda`."""

from __future__ import annotations

from srcdiff.backends.cuda import thread_routines
from srcdiff.emit.spelling import Spelling
from srcdiff.ir.nodes import CoordinateKind

_AXES = "xyz"


def _along_axes(name: str) -> tuple[str, ...]:
    return tuple(f"{name}.{axis}" for axis in _AXES)


def _of_grid(name: str) -> tuple[str, ...]:
    return f"{name}(1)", f"{name}(2)[1]", f"{name}(3)[2]"


_NAMES = {
    CoordinateKind.THREAD_INDEX: _along_axes("threadIdx"),
    CoordinateKind.BLOCK_INDEX: _along_axes("blockIdx"),
    CoordinateKind.BLOCK_SIZE: _along_axes("blockDim"),
    CoordinateKind.GRID_SIZE: _along_axes("gridDim"),
    CoordinateKind.GLOBAL_INDEX: _of_grid("grid"),
    CoordinateKind.GLOBAL_SIZE: _of_grid("gridsize"),
}

CUDA = Spelling(
    arrays="device",
    array_maker=(("from srcdiff.backends.cuda.device import Device",), ("device = Device()",)),
    imports=("from numba import cuda",),
    kernel="@cuda.jit",
    device_function="@cuda.jit(device=True)",
    coordinates={kind: tuple(f"cuda.{name}" for name in names) for kind, names in _NAMES.items()},
    thread_array="cuda.{place}.array({shape}, np.{dtype})",
    barrier="cuda.syncthreads()",
    atomic_add="cuda.atomic.add({array}, {index}, {value})",
    atomic_max="cuda.atomic.max({array}, {index}, {value})",
    support=(thread_routines,),
)


def named(kind: CoordinateKind, axis: int) -> str:
    """The name of a coordinate for users.

    >>> named(CoordinateKind.BLOCK_INDEX, 0), named(CoordinateKind.GLOBAL_INDEX, 1)
    ('blockIdx.x', 'grid(2)[1]')
    """
    return _NAMES[kind][axis]
