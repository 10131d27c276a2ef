"""Names of `numba.cuda` in kernels."""

from __future__ import annotations

import ast

from srcdiff.frontend.domain.abstract_values import Abstract, DeviceName, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.ir.nodes import Coordinate, CoordinateKind, Value
from srcdiff.ir.types import INT

_AXES = "xyz"


_PLACES = {
    "threadIdx": CoordinateKind.THREAD_INDEX,
    "blockIdx": CoordinateKind.BLOCK_INDEX,
    "blockDim": CoordinateKind.BLOCK_SIZE,
    "gridDim": CoordinateKind.GRID_SIZE,
}
"""Numba's names for the coordinates of a thread along an axis."""


_WARP = 32
"""The number of threads in a warp, on all current GPUs."""


_INSTEAD = {"laneid": "write `cuda.threadIdx.x % cuda.warpsize`, if blocks have threads along one axis"}
_INSTEAD |= {place: f"write `cuda.{place}.x`" for place in _PLACES}


def device_name(reader: Reader, name: str, node: ast.AST) -> Abstract:
    first, _, rest = name.partition(".")
    if not reader.is_kernel or reader.units_in_progress:
        where = "in a recursive function" if reader.is_kernel else "outside a kernel"
        help_ = "" if reader.is_kernel else "differentiate the kernel that calls it with `srcdiff.cuda.kernel`"
        reader.refuse("SD502", node, f"`cuda.{name}` is not supported {where}", help_=help_)
    if first in _PLACES and rest in tuple(_AXES):
        return coordinate_at_start(reader, _PLACES[first], _AXES.index(rest))
    if name == "warpsize":
        return Static(_WARP)
    return Static(DeviceName(name))


def coordinate_at_start(reader: Reader, kind: CoordinateKind, axis: int) -> Value:
    if (kind, axis) not in reader.coordinates:
        out = Value(INT)
        reader.coordinates[kind, axis] = out
        reader.first.append(Coordinate(out, kind, axis, span=reader.span))
    return reader.coordinates[kind, axis]


def require_values(reader: Reader, node: ast.AST, *operands: Abstract) -> None:
    """Refuse names of `numba.cuda` where a value is needed, if the name is a function or a namespace."""
    for x in operands:
        if isinstance(x, Static) and isinstance(x.value, DeviceName):
            help_ = _INSTEAD.get(x.value.name, "call it, or use one of its attributes")
            reader.refuse("SD502", node, f"{in_words(reader, x)} is used where a value is needed", help_=help_)
