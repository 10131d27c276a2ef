"""The language of kernels: thread coordinates, shared memory, barriers and atomic additions.

Names of `numba.cuda` are known as names, not as objects: in Numba's simulator they exist only while a kernel runs.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from srcdiff.diagnostics import Problem
from srcdiff.frontend.abstract_values import Abstract, DeviceName, Poison, Static, Tuple
from srcdiff.frontend.optionals import Optionals
from srcdiff.ir.nodes import Alloc, Barrier, Const, Coordinate, CoordinateKind, Operation, Store, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_float

_AXES = "xyz"
_PLACES = {
    "threadIdx": CoordinateKind.THREAD_INDEX,
    "blockIdx": CoordinateKind.BLOCK_INDEX,
    "blockDim": CoordinateKind.BLOCK_SIZE,
    "gridDim": CoordinateKind.GRID_SIZE,
}
"""Numba's names for what a thread finds along an axis."""
_ATOMIC_HELP = (
    "use `cuda.atomic.add`, the only supported atomic operation: its result does not depend on the thread order"
)
_WARP = 32
"""Threads in a warp, of every GPU that there is."""
_INSTEAD = {"laneid": "write `cuda.threadIdx.x % cuda.warpsize`, if blocks have threads along one axis"}
_INSTEAD |= {place: f"write `cuda.{place}.x`" for place in _PLACES}
_NUMBERS = {"float32": Scalar("float32"), "float64": FLOAT, "bool": BOOL}


def numba_type(x: Any) -> str | None:
    """The name of the dtype that a type of Numba stands for, such as `numba.float32`."""
    if not type(x).__module__.startswith("numba."):
        return None
    name = str(getattr(x, "name", ""))
    return name if name in ("bool", "float32", "float64") or name.lstrip("u").startswith("int") else None


class Kernels(Optionals):
    """Reads what is said in kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[Operation] = []
        """What stands at the start of a kernel, wherever it was asked for: coordinates, and arrays of constant size."""
        self.coordinates: dict[tuple[CoordinateKind, int], Value] = {}
        self.device_arrays: dict[Any, Value] = {}

    # -- names -------------------------------------------------------------------------------------------------------

    def device_name(self, name: str, node: ast.AST) -> Abstract:
        first, _, rest = name.partition(".")
        if not self.is_kernel or self.units_in_progress:
            where = "in a recursive function" if self.is_kernel else "outside a kernel"
            help_ = "" if self.is_kernel else "differentiate the kernel that calls it with `srcdiff.cuda.kernel`"
            self.refuse("SD502", node, f"`cuda.{name}` is not supported {where}", help_=help_)
        if first in _PLACES and rest in tuple(_AXES):
            return self.coordinate_at_start(_PLACES[first], _AXES.index(rest))
        if name == "warpsize":
            return Static(_WARP)
        return Static(DeviceName(name))

    def require_values(self, node: ast.AST, *operands: Abstract) -> None:
        """Refuse names of `numba.cuda` that are to be called, or have parts, where a value is needed."""
        for x in operands:
            if isinstance(x, Static) and isinstance(x.value, DeviceName):
                help_ = _INSTEAD.get(x.value.name, "call it, or use one of its attributes")
                self.refuse("SD502", node, f"{self.in_words(x)} is used where a value is needed", help_=help_)

    def in_words(self, x: Abstract) -> str:
        if isinstance(x, Static) and isinstance(x.value, DeviceName):
            return f"`cuda.{x.value.name}`"
        return super().in_words(x)

    def coordinate_at_start(self, kind: CoordinateKind, axis: int) -> Value:
        if (kind, axis) not in self.coordinates:
            out = Value(INT)
            self.coordinates[kind, axis] = out
            self.first.append(Coordinate(out, kind, axis, span=self.span))
        return self.coordinates[kind, axis]

    # -- calls -------------------------------------------------------------------------------------------------------

    def call_device(self, name: str, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        method = getattr(self, f"device_{name.replace('.', '_')}", None)
        if method is None:
            kind = "this atomic operation" if name.startswith("atomic.") else "it"
            help_ = (
                _ATOMIC_HELP if name.startswith("atomic.") else "write it with shared arrays and `cuda.syncthreads()`"
            )
            self.refuse(
                "SD502", node, f"`cuda.{name}` cannot be differentiated: there is no adjoint for {kind}", help_=help_
            )
        return self.handled(method, f"cuda.{name}", node, *args, **keywords)

    def handled(self, handler: Any, name: str, node: ast.AST, /, *args: Abstract, **keywords: Abstract) -> Abstract:
        raise NotImplementedError

    def device_grid(self, node: ast.AST, ndim: Abstract) -> Abstract:
        return self.along_axes("grid", CoordinateKind.GLOBAL_INDEX, ndim, node)

    def device_gridsize(self, node: ast.AST, ndim: Abstract) -> Abstract:
        return self.along_axes("gridsize", CoordinateKind.GLOBAL_SIZE, ndim, node)

    def along_axes(self, what: str, kind: CoordinateKind, ndim: Abstract, node: ast.AST) -> Abstract:
        if not (isinstance(ndim, Static) and ndim.value in (1, 2, 3)):
            self.refuse("SD205", node, f"`cuda.{what}` takes 1, 2 or 3")
        values = tuple(self.coordinate_at_start(kind, axis) for axis in range(ndim.value))
        return values[0] if ndim.value == 1 else Tuple(values)

    def device_syncthreads(self, node: ast.AST) -> Abstract:
        self.settle()
        self.add(Barrier(span=self.span))
        return Static(None)

    def device_shared_array(self, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
        return self.device_array("shared", shape, dtype, node)

    def device_local_array(self, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
        return self.device_array("local", shape, dtype, node)

    def device_const_array_like(self, node: ast.AST, ary: Abstract) -> Abstract:
        """An array from outside that nobody writes into: which memory it is in makes no difference."""
        return ary

    def device_array(self, place: str, shape: Abstract, dtype: Abstract, node: ast.AST) -> Abstract:
        """An array of constant size; it stands at the start of the kernel, because it is there from the start."""
        sizes = shape.items if isinstance(shape, Tuple) else (shape,)
        if not all(isinstance(s, Static) and isinstance(s.value, int) and s.value > 0 for s in sizes):
            what = "the size of an array in a kernel must be a positive constant"
            help_ = "dynamic shared memory, sized at the launch, is not supported: write the size here"
            self.refuse("SD205", node, what, help_=help_)
        key = (node, self.path)
        if key not in self.device_arrays:
            extents = [Value(INT) for _ in sizes]
            for extent, size in zip(extents, sizes, strict=True):
                assert isinstance(size, Static)
                self.constants[extent] = size.value
                self.first.append(Const(extent, size.value))
            out = Value(Array(self.dtype_of(dtype, node), len(sizes)))
            self.first.append(Alloc(out, tuple(extents), place=place, span=self.span))
            self.device_arrays[key] = self.made(out, tuple(self.size_key(e) for e in extents))
        return self.device_arrays[key]

    def device_atomic_add(self, node: ast.AST, array: Abstract, index: Abstract, value: Abstract) -> Abstract:
        return self.atomic_add("add", array, index, self.number(value, node), node)

    def device_atomic_sub(self, node: ast.AST, array: Abstract, index: Abstract, value: Abstract) -> Abstract:
        return self.atomic_add("sub", array, index, self.apply("negative", self.number(value, node)), node)

    def atomic_add(self, name: str, array: Abstract, index: Abstract, amount: Value, node: ast.AST) -> Abstract:
        if not (isinstance(array, Value) and isinstance(array.type, Array)):
            self.refuse("SD203", node, f"{self.in_words(array)} is used where an array is needed")
        places = index.items if isinstance(index, Tuple) else (index,)
        if len(places) != array.type.rank:
            self.refuse(
                "SD203", node, f"an element of this array needs {array.type.rank} indices, but {len(places)} are given"
            )
        indices = tuple(self.integer(p, node) for p in places)
        wanted = (
            (FLOAT if is_float(array.type) else INT) if not is_float(amount.type) or not is_float(array.type) else None
        )
        amount = amount if wanted is None else self.cast(amount, wanted)
        self.add(Store(array, indices, amount, adds=True, atomic=True, span=self.span))
        message = f"the result of `cuda.atomic.{name}` depends on the order of the threads"
        return Poison(Problem("SD502", message, self.span_of(node), help="do not use its result"))

    # -- types -------------------------------------------------------------------------------------------------------

    def dtype_of(self, dtype: Abstract, node: ast.AST) -> str:
        known = numba_type(dtype.value) if isinstance(dtype, Static) else None
        return super().dtype_of(dtype if known is None else Static(np.dtype(known)), node)

    def call_numba_type(self, name: str, args: list[Abstract], node: ast.AST) -> Abstract:
        """`float32(x)`: a number as that type."""
        if len(args) != 1:
            self.refuse("SD304", node, f"`{name}` takes one number")
        if name == "int32":
            return self.call_int32(node, args[0])
        if name not in ("int64", "intp", *_NUMBERS) and not self.is_kernel:
            message = f"a conversion to {name} wraps around, which is not supported"
            self.refuse("SD201", node, message, help_="use `int64` or a float type")
        return self.cast(self.number(args[0], node), _NUMBERS.get(name, INT))

    def call_int32(self, node: ast.AST, x: Abstract) -> Abstract:
        """A number as 32 bits hold it; those that threads count with are short."""
        if self.is_array(x):
            return self.call_astype(node, x, Static("int32"))
        value = self.number(self.call_int64(node, x), node)
        return value if self.is_kernel else self.numpys_own(self.wrapped(value, "int32"))
