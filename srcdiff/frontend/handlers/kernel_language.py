"""The language of kernels: thread coordinates, shared memory, barriers and atomic additions.

Names of `numba.cuda` are recognised as names, not as objects: in Numba's simulator the objects only exist while a
kernel runs.
"""

from __future__ import annotations

import ast

from numba.core import types

from srcdiff.diagnostics import Problem
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    DeviceName,
    Keywords,
    Poison,
    Static,
    Tuple,
    is_array_value,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.handlers.builtin_functions import call_int32
from srcdiff.frontend.interpreter.array_conversion import dtype_of
from srcdiff.frontend.interpreter.call_arguments import run_handler
from srcdiff.frontend.interpreter.device_names import coordinate_at_start
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import settle
from srcdiff.frontend.interpreter.numbers import as_integer, as_number
from srcdiff.frontend.interpreter.tables import DEVICE, device, handles_kind
from srcdiff.frontend.source.numba_options import numba_type
from srcdiff.ir.nodes import Alloc, Barrier, Const, CoordinateKind, Store, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_float

_ATOMIC_HELP = (
    "use `cuda.atomic.add`, the only supported atomic operation: its result does not depend on the thread order"
)


_NUMBERS = {"float32": Scalar("float32"), "float64": FLOAT, "bool": BOOL}


@handles_kind(DeviceName)
def call_device(reader: Reader, target: DeviceName, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    name = target.name
    run = DEVICE.get(name)
    if run is None:
        kind = "this atomic operation" if name.startswith("atomic.") else "it"
        help_ = _ATOMIC_HELP if name.startswith("atomic.") else "write it with shared arrays and `cuda.syncthreads()`"
        message = f"`cuda.{name}` cannot be differentiated: there is no adjoint for {kind}"
        reader.refuse("SD502", node, message, help_=help_)
    return run_handler(reader, run, f"cuda.{name}", node, *args, **keywords)


@handles_kind(types.Type)
def call_type_of_numba(
    reader: Reader, target: types.Type, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract | None:
    name = numba_type(target)
    return None if name is None or keywords else call_numba_type(reader, name, args, node)


@device("grid")
def device_grid(reader: Reader, node: ast.AST, ndim: Abstract) -> Abstract:
    return along_axes(reader, "grid", CoordinateKind.GLOBAL_INDEX, ndim, node)


@device("gridsize")
def device_gridsize(reader: Reader, node: ast.AST, ndim: Abstract) -> Abstract:
    return along_axes(reader, "gridsize", CoordinateKind.GLOBAL_SIZE, ndim, node)


def along_axes(reader: Reader, what: str, kind: CoordinateKind, ndim: Abstract, node: ast.AST) -> Abstract:
    if not (isinstance(ndim, Static) and ndim.value in (1, 2, 3)):
        reader.refuse("SD205", node, f"the argument of `cuda.{what}` must be 1, 2 or 3")
    values = tuple(coordinate_at_start(reader, kind, axis) for axis in range(ndim.value))
    return values[0] if ndim.value == 1 else Tuple(values)


@device("syncthreads")
def device_syncthreads(reader: Reader, node: ast.AST) -> Abstract:
    settle(reader)
    reader.add(Barrier(span=reader.span))
    return Static(None)


@device("shared.array")
def device_shared_array(reader: Reader, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
    return device_array(reader, "shared", shape, dtype, node)


@device("local.array")
def device_local_array(reader: Reader, node: ast.AST, shape: Abstract, dtype: Abstract) -> Abstract:
    return device_array(reader, "local", shape, dtype, node)


@device("const.array_like")
def device_const_array_like(reader: Reader, node: ast.AST, ary: Abstract) -> Abstract:
    """An outside array that is never written. The kind of memory makes no difference."""
    return ary


def device_array(reader: Reader, place: str, shape: Abstract, dtype: Abstract, node: ast.AST) -> Abstract:
    """An array of constant size. It is created at the start of the kernel."""
    sizes = shape.items if isinstance(shape, Tuple) else (shape,)
    if not all(isinstance(s, Static) and isinstance(s.value, int) and s.value > 0 for s in sizes):
        what = "the size of an array in a kernel must be a positive constant"
        help_ = "dynamic shared memory, sized at the launch, is not supported: write the size here"
        reader.refuse("SD205", node, what, help_=help_)
    key = (node, reader.path)
    if key not in reader.device_arrays:
        extents = [Value(INT) for _ in sizes]
        for extent, size in zip(extents, sizes, strict=True):
            assert isinstance(size, Static)
            reader.constants[extent] = size.value
            reader.first.append(Const(extent, size.value))
        out = Value(Array(dtype_of(reader, dtype, node), len(sizes)))
        reader.first.append(Alloc(out, tuple(extents), place=place, span=reader.span))
        reader.device_arrays[key] = reader.made(out, tuple(reader.size_key(e) for e in extents))
    return reader.device_arrays[key]


@device("atomic.add")
def device_atomic_add(reader: Reader, node: ast.AST, array: Abstract, index: Abstract, value: Abstract) -> Abstract:
    return atomic_add(reader, "add", array, index, as_number(reader, value, node), node)


@device("atomic.sub")
def device_atomic_sub(reader: Reader, node: ast.AST, array: Abstract, index: Abstract, value: Abstract) -> Abstract:
    return atomic_add(reader, "sub", array, index, reader.apply("negative", as_number(reader, value, node)), node)


def atomic_add(reader: Reader, name: str, array: Abstract, index: Abstract, amount: Value, node: ast.AST) -> Abstract:
    if not is_array_value(array):
        reader.refuse("SD203", node, f"{in_words(reader, array)} is used where an array is needed")
    places = index.items if isinstance(index, Tuple) else (index,)
    if len(places) != array.array.rank:
        message = f"an element of this array needs {array.array.rank} indices, but {len(places)} are given"
        reader.refuse("SD203", node, message)
    indices = tuple(as_integer(reader, p, node) for p in places)
    wanted = (FLOAT if is_float(array.type) else INT) if not is_float(amount.type) or not is_float(array.type) else None
    amount = amount if wanted is None else reader.cast(amount, wanted)
    reader.add(Store(array, indices, amount, adds=True, atomic=True, span=reader.span))
    message = f"the result of `cuda.atomic.{name}` depends on the order of the threads"
    return Poison(Problem("SD502", message, reader.span_of(node), help="do not use its result"))


def call_numba_type(reader: Reader, name: str, args: list[Abstract], node: ast.AST) -> Abstract:
    """`float32(x)`: a number converted to that type."""
    if len(args) != 1:
        reader.refuse("SD304", node, f"`{name}` takes one number")
    if name == "int32":
        return call_int32(reader, node, args[0])
    if name not in ("int64", "intp", *_NUMBERS) and not reader.is_kernel:
        message = f"a conversion to {name} wraps around, which is not supported"
        reader.refuse("SD201", node, message, help_="use `int64` or a float type")
    return reader.cast(as_number(reader, args[0], node), _NUMBERS.get(name, INT))
