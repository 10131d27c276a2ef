"""Fourier transforms in compiled code: calls of NumPy's pocketfft, without a dependency and without the interpreter.

NumPy has its transforms as generalised ufuncs in `numpy.fft._pocketfft_umath`. A ufunc is a public struct, which holds
the addresses of its loops in C. Compiled code calls such a loop by a symbol, of which LLVM is told the address when the
code is loaded, so that machine code on disk runs in other processes. The loop takes the strides of arrays: nothing is
copied. Before the first use, a loop is tried on a few numbers.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

PREFIX = "srcdiff.fft."
"""The start of the symbols."""

_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Ufunc(ctypes.Structure):
    """The start of NumPy's `PyUFuncObject`, behind the head that all objects have."""

    _fields_ = (
        *(("nin", ctypes.c_int), ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int)),
        *(("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p))),
        *(("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p)),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )


class UnknownLoopsError(RuntimeError):
    """NumPy's transforms are not where this version of srcdiff looks for them."""

    def __init__(self) -> None:
        super().__init__(f"the Fourier transforms of NumPy {np.__version__} are unknown: use backend='python'")


@functools.cache
def _address(letter: str) -> int:
    """The loop for complex numbers of one precision: `D` or `F`."""
    try:
        ufunc, dtype = importlib.import_module("numpy.fft._pocketfft_umath").fft, np.dtype(letter)
        struct = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
        known = [struct.types[3 * k : 3 * k + 3] for k in range(struct.ntypes)]
        real = np.dtype(letter.lower())
        place = known.index(bytes([dtype.num, real.num, dtype.num]))
        address = int(struct.functions[place] or 0)
    except (ImportError, AttributeError, ValueError):
        raise UnknownLoopsError from None
    if (struct.nin, struct.nout, struct.name) != (2, 1, b"fft") or not _transforms(address, dtype):
        raise UnknownLoopsError
    return address


def _transforms(address: int, dtype: np.dtype[Any]) -> bool:
    """Whether the loop at an address does what is expected, in both directions."""
    given, found = np.array([1.0, 2.0 - 1.0j, 3.0j], dtype), np.empty(3, dtype)
    factor = np.ones(1, dtype.char.lower())
    dimensions = (ctypes.c_ssize_t * 3)(1, 3, 3)
    steps = (ctypes.c_ssize_t * 5)(0, 0, 0, dtype.itemsize, dtype.itemsize)
    arrays = (ctypes.c_void_p * 3)(given.ctypes.data, factor.ctypes.data, found.ctypes.data)
    for is_forward, expected in ((True, np.fft.fft(given)), (False, np.fft.ifft(given, norm="forward"))):
        found[:] = 0.0
        direction = ctypes.c_bool(is_forward)
        _LOOP(address)(arrays, dimensions, steps, ctypes.addressof(direction))
        if not np.allclose(found, expected, rtol=1e-5):
            return False
    return True


@functools.cache
def ensure_known(letter: str) -> None:
    """Tell LLVM where the loop is."""
    import llvmlite.binding as llvm

    llvm.add_symbol(f"{PREFIX}{letter}", _address(letter))


def ensure_all_known(symbols: Iterable[str]) -> None:
    """Tell LLVM where the loops among these symbols are."""
    for symbol in symbols:
        if symbol.startswith(PREFIX):
            ensure_known(symbol.removeprefix(PREFIX))


def transforms(new: Callable[..., Any]) -> types.ModuleType:
    """The replacement of `np.fft` in compiled code; `new` makes an array."""
    from numba.extending import intrinsic

    module = types.ModuleType("numpy.fft")
    module.__dict__["__getattr__"] = functools.partial(getattr, np.fft)
    module.__dict__.update(fft=intrinsic(_forward(new)), ifft=intrinsic(_backward(new)))
    return module


def _forward(new: Callable[..., Any]) -> Callable[..., Any]:
    generate = _generator(new, is_forward=True)

    def fft(typing_context: Any, a: Any) -> Any:
        """`np.fft.fft(a)`."""
        return a.copy(layout="C", readonly=False)(a), generate

    return fft


def _backward(new: Callable[..., Any]) -> Callable[..., Any]:
    generate = _generator(new, is_forward=False)

    def ifft(typing_context: Any, a: Any, n: Any, axis: Any, norm: Any) -> Any:
        """`np.fft.ifft(a, None, -1, "forward")`, which multiplies by no factor."""
        return a.copy(layout="C", readonly=False)(a, n, axis, norm), generate

    return ifft


def _generator(new: Callable[..., Any], *, is_forward: bool) -> Callable[..., Any]:
    """The call of the loop for the rows of an array of one or two axes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir
        from numba.core import cgutils
        from numba.np import arrayobj
        from numba.np.numpy_support import as_dtype

        kind, result = signature.args[0], signature.return_type
        dtype = as_dtype(kind.dtype)
        ensure_known(dtype.char)
        size, byte = cgutils.intp_t, ir.IntType(8).as_pointer()
        given = arrayobj.make_array(kind)(context, builder, value=args[0])
        shape = cgutils.unpack_tuple(builder, given.shape, count=kind.ndim)
        out = new(context, builder, result, shape, False)
        strides = [cgutils.unpack_tuple(builder, a.strides, count=kind.ndim) for a in (given, out)]
        zero, rows = size(0), shape[0] if kind.ndim == 2 else size(1)
        outer = [s[0] if kind.ndim == 2 else zero for s in strides]
        factor = cgutils.alloca_once_value(builder, context.get_value_type(kind.dtype.underlying_float)(1.0))
        direction = cgutils.alloca_once_value(builder, ir.IntType(8)(int(is_forward)))
        arrays = [builder.bitcast(p, byte) for p in (given.data, factor, out.data)]
        places = [
            _placed(builder, values)
            for values in (
                arrays,
                [rows, shape[-1], shape[-1]],
                [outer[0], zero, outer[1], strides[0][-1], strides[1][-1]],
            )
        ]
        type_ = ir.FunctionType(ir.VoidType(), [p.type for p in places] + [byte])
        symbol = f"{PREFIX}{dtype.char}"
        function = builder.module.globals.get(symbol) or ir.Function(builder.module, type_, symbol)
        with builder.if_then(builder.icmp_signed(">", builder.mul(rows, shape[-1]), zero)):
            builder.call(function, [*places, builder.bitcast(direction, byte)])
        return out._getvalue()

    return generate


def _placed(builder: Any, values: list[Any]) -> Any:
    """The values in memory, one after the other."""
    from llvmlite import ir
    from numba.core import cgutils

    place = cgutils.alloca_once(builder, ir.ArrayType(values[0].type, len(values)))
    for k, value in enumerate(values):
        builder.store(value, cgutils.gep_inbounds(builder, place, 0, k))
    return cgutils.gep_inbounds(builder, place, 0, 0)
