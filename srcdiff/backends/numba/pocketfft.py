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


_LETTERS = {"fft": ("Dd", "D"), "rfft_n_even": ("dd", "D"), "rfft_n_odd": ("dd", "D"), "irfft": ("Dd", "d")}
"""The ufuncs, with the types of their arguments and of their result, for numbers of double precision."""


@functools.cache
def _address(symbol: str) -> int:
    """The loop of a ufunc for numbers of one precision, as in `fft.d` or `irfft.f`."""
    name, _, precision = symbol.partition(".")
    taken, given = (
        [np.dtype(k if precision == "d" else {"D": "F", "d": "f"}[k]) for k in letters] for letters in _LETTERS[name]
    )
    try:
        ufunc = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), name)
        struct = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
        known = [struct.types[3 * k : 3 * k + 3] for k in range(struct.ntypes)]
        place = known.index(bytes(kind.num for kind in (*taken, *given)))
        address = int(struct.functions[place] or 0)
    except (ImportError, AttributeError, ValueError):
        raise UnknownLoopsError from None
    if (struct.nin, struct.nout, struct.name) != (2, 1, name.encode()):
        raise UnknownLoopsError
    if not all(_transforms(address, name, taken[0], given[0], n) for n in _TRIED[name]):
        raise UnknownLoopsError
    return address


_TRIED = {"fft": (3, 4), "rfft_n_even": (4,), "rfft_n_odd": (3,), "irfft": (3, 4)}
"""The lengths that loops are tried with."""


def _transforms(address: int, name: str, taken: np.dtype[Any], given: np.dtype[Any], n: int) -> bool:
    """Whether the loop at an address does what is expected; `fft` in both directions."""
    numbers = np.array([1.0, 2.0 - 1.0j, 3.0j, -1.5][:n])
    whole = numbers.real if name.startswith("rfft") else numbers
    x = whole[: n // 2 + 1].astype(taken) if name == "irfft" else whole.astype(taken)
    for is_forward in (True, False) if name == "fft" else (True,):
        if name == "fft":
            expected: np.ndarray[Any, Any] = np.fft.fft(x) if is_forward else np.fft.ifft(x, norm="forward")
        else:
            expected = np.fft.irfft(x, n, norm="forward") if name == "irfft" else np.fft.rfft(x)
        found, factor = np.zeros(len(expected), given), np.ones(1, given.char.lower())
        dimensions = (ctypes.c_ssize_t * 3)(1, len(x), len(found))
        steps = (ctypes.c_ssize_t * 5)(0, 0, 0, taken.itemsize, given.itemsize)
        arrays = (ctypes.c_void_p * 3)(x.ctypes.data, factor.ctypes.data, found.ctypes.data)
        direction = ctypes.c_bool(is_forward)
        _LOOP(address)(arrays, dimensions, steps, ctypes.addressof(direction))
        if not np.allclose(found, expected, rtol=1e-5):
            return False
    return True


@functools.cache
def ensure_known(symbol: str) -> None:
    """Tell LLVM where the loop is."""
    import llvmlite.binding as llvm

    llvm.add_symbol(f"{PREFIX}{symbol}", _address(symbol))


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
    made = (_forward(new), _backward(new), _of_reals(new), _to_reals(new))
    module.__dict__.update({function.__name__: intrinsic(function) for function in made})
    return module


def _forward(new: Callable[..., Any]) -> Callable[..., Any]:
    def fft(typing_context: Any, a: Any) -> Any:
        """`np.fft.fft(a)`."""
        return a.copy(layout="C", readonly=False)(a), _generator(new, "fft")

    return fft


def _backward(new: Callable[..., Any]) -> Callable[..., Any]:
    def ifft(typing_context: Any, a: Any, n: Any, axis: Any, norm: Any) -> Any:
        """`np.fft.ifft(a, None, -1, "forward")`, which multiplies by no factor."""
        return a.copy(layout="C", readonly=False)(a, n, axis, norm), _generator(new, "fft", is_forward=False)

    return ifft


def _of_reals(new: Callable[..., Any]) -> Callable[..., Any]:
    def rfft(typing_context: Any, a: Any) -> Any:
        """`np.fft.rfft(a)`."""
        from numba.core import types as kinds

        dtype = kinds.complex64 if a.dtype == kinds.float32 else kinds.complex128
        return a.copy(dtype=dtype, layout="C", readonly=False)(a), _generator(new, "rfft")

    return rfft


def _to_reals(new: Callable[..., Any]) -> Callable[..., Any]:
    def irfft(typing_context: Any, a: Any, n: Any, axis: Any, norm: Any) -> Any:
        """`np.fft.irfft(a, n, -1, "forward")`, which multiplies by no factor."""
        result = a.copy(dtype=a.dtype.underlying_float, layout="C", readonly=False)
        return result(a, n, axis, norm), _generator(new, "irfft")

    return irfft


def _generator(new: Callable[..., Any], name: str, *, is_forward: bool = True) -> Callable[..., Any]:
    """The call of the loop for the rows of an array of one or two axes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir
        from numba.core import cgutils
        from numba.np import arrayobj
        from numba.np.numpy_support import as_dtype

        kind, result = signature.args[0], signature.return_type
        precision = as_dtype(kind.dtype).char.lower()
        size, byte = cgutils.intp_t, ir.IntType(8).as_pointer()
        given = arrayobj.make_array(kind)(context, builder, value=args[0])
        shape = cgutils.unpack_tuple(builder, given.shape, count=kind.ndim)
        length = shape[-1]
        if name == "rfft":
            length = builder.add(builder.lshr(length, size(1)), size(1))
        if name == "irfft":
            length = context.cast(builder, args[1], signature.args[1], _intp())
        out = new(context, builder, result, [*shape[:-1], length], False)
        strides = [cgutils.unpack_tuple(builder, a.strides, count=kind.ndim) for a in (given, out)]
        zero, rows = size(0), shape[0] if kind.ndim == 2 else size(1)
        outer = [s[0] if kind.ndim == 2 else zero for s in strides]
        real = getattr(kind.dtype, "underlying_float", kind.dtype)
        factor = cgutils.alloca_once_value(builder, context.get_value_type(real)(1.0))
        direction = cgutils.alloca_once_value(builder, ir.IntType(8)(int(is_forward)))
        arrays = [builder.bitcast(p, byte) for p in (given.data, factor, out.data)]
        places = [
            _placed(builder, values)
            for values in (
                arrays,
                [rows, shape[-1], length],
                [outer[0], zero, outer[1], strides[0][-1], strides[1][-1]],
            )
        ]
        type_ = ir.FunctionType(ir.VoidType(), [p.type for p in places] + [byte])

        def loop(of: str) -> Any:
            symbol = f"{of}.{precision}"
            ensure_known(symbol)
            found = builder.module.globals.get(f"{PREFIX}{symbol}")
            return found or ir.Function(builder.module, type_, f"{PREFIX}{symbol}")

        if name == "rfft":
            is_odd = builder.trunc(shape[-1], ir.IntType(1))
            function = builder.select(is_odd, loop("rfft_n_odd"), loop("rfft_n_even"))
        else:
            function = loop(name)
        with builder.if_then(builder.icmp_signed(">", builder.mul(rows, shape[-1]), zero)):
            builder.call(function, [*places, builder.bitcast(direction, byte)])
        return out._getvalue()

    return generate


def _intp() -> Any:
    from numba.core import types as kinds

    return kinds.intp


def _placed(builder: Any, values: list[Any]) -> Any:
    """The values in memory, one after the other."""
    from llvmlite import ir
    from numba.core import cgutils

    place = cgutils.alloca_once(builder, ir.ArrayType(values[0].type, len(values)))
    for k, value in enumerate(values):
        builder.store(value, cgutils.gep_inbounds(builder, place, 0, k))
    return cgutils.gep_inbounds(builder, place, 0, 0)
