"""The functions of `scipy.special` in compiled code: calls of those that SciPy has for Cython, by name.

`scipy.special.cython_special` has the address of each function and its C signature. Compiled code calls a symbol, and
LLVM is told the address when the code is loaded: machine code on disk has the name only, and runs in other processes.
The functions change nothing, so that LLVM may move them out of loops, and leave them out.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

PREFIX = "srcdiff.scipy.special."
"""The start of the symbols."""
_PURE = ("memory(none)", "nounwind", "willreturn")
_HELD_BY_POINTER = re.compile(r"void \(double(, double \*)+\)")


@functools.cache
def _capsules() -> dict[str, tuple[str, Any]]:
    """The functions of doubles, by name, with their C signatures."""
    found: dict[str, tuple[str, Any]] = {}
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for mangled, capsule in importlib.import_module("scipy.special.cython_special").__pyx_capi__.items():
        name = re.sub(r"^__pyx_fuse_\d+", "", mangled)
        text = signature(capsule).decode()
        of_doubles = re.fullmatch(r"double \(double(, double)*(, int __pyx_skip_dispatch)?\)", text)
        is_complex = name == "wofz"
        if of_doubles or is_complex or _HELD_BY_POINTER.fullmatch(text):
            found[name] = text, capsule
    return found


def _address(name: str) -> int:
    text, capsule = _capsules()[name]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, text.encode()))


@functools.cache
def ensure_known(name: str) -> None:
    """Tell LLVM where a function is."""
    import llvmlite.binding as llvm

    llvm.add_symbol(f"{PREFIX}{name}", _address(name))


def ensure_all_known(symbols: Iterable[str]) -> None:
    """Tell LLVM where the functions among these symbols are."""
    for symbol in symbols:
        if symbol.startswith(PREFIX) and symbol[len(PREFIX) :] in _capsules():
            ensure_known(symbol[len(PREFIX) :])


class CompiledSpecial(types.ModuleType):
    """`scipy.special` for compiled code: its functions are written at their first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _capsules():
            raise AttributeError(name)
        from numba.extending import intrinsic

        function = intrinsic(_call_of(name))
        setattr(self, name, function)
        return function


@functools.cache
def compiled_special() -> types.ModuleType:
    """The replacement of `special` in compiled code."""
    return CompiledSpecial("special")


def _call_of(name: str) -> Callable[..., Any]:
    text = _capsules()[name][0]
    ensure_known(name)
    if name == "wofz":
        return _complex_function(name)
    if text.startswith("void"):
        return _function_of_several(name, text.count("*"))
    arity = len(re.findall(r"\bdouble\b", text)) - 1
    call = _function(name, arity, "int" in text)
    parameters = ", ".join("xyzuvw"[:arity])
    namespace: dict[str, Any] = {"call": call}  # Numba asks for the names of the parameters
    exec(f"def {name}(typing_context, {parameters}):\n    return call({parameters})\n", namespace)
    result: Callable[..., Any] = namespace[name]
    return result


def _declared(builder: Any, type_: Any, name: str) -> Any:
    from llvmlite import ir

    symbol = f"{PREFIX}{name}"
    function = builder.module.globals.get(symbol) or ir.Function(builder.module, type_, symbol)
    if "*" not in _capsules()[name][0]:
        set.update(function.attributes, _PURE)
    return function


def _function(name: str, arity: int, is_dispatched: bool) -> Callable[..., Any]:
    """Of numbers: a result of singles is a single, as in SciPy."""
    from llvmlite import ir
    from numba.core import types as kinds

    double, integer = ir.DoubleType(), ir.IntType(32)

    def call(*given: Any) -> Any:
        if not all(isinstance(k, kinds.Number | kinds.Boolean) for k in given):
            return None
        floats = {k for k in given if isinstance(k, kinds.Float)}
        result = kinds.float32 if floats == {kinds.float32} else kinds.float64

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            type_ = ir.FunctionType(double, [double] * arity + [integer] * is_dispatched)
            numbers = [context.cast(builder, a, k, kinds.float64) for a, k in zip(args, signature.args, strict=True)]
            found = builder.call(_declared(builder, type_, name), [*numbers, *[integer(1)] * is_dispatched])
            return context.cast(builder, found, kinds.float64, result)

        return result(*given), generate

    return call


def _function_of_several(name: str, count: int) -> Callable[..., Any]:
    """Of a number, with several results, as a tuple."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core import types as kinds

    double = ir.DoubleType()

    def call(typing_context: Any, x: Any) -> Any:
        if not isinstance(x, kinds.Number | kinds.Boolean):
            return None
        kind = kinds.float32 if x == kinds.float32 else kinds.float64
        result = kinds.UniTuple(kind, count)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            type_ = ir.FunctionType(ir.VoidType(), [double] + [double.as_pointer()] * count)
            places = [cgutils.alloca_once(builder, double) for _ in range(count)]
            number = context.cast(builder, args[0], x, kinds.float64)
            builder.call(_declared(builder, type_, name), [number, *places])
            parts = [context.cast(builder, builder.load(p), kinds.float64, kind) for p in places]
            return context.make_tuple(builder, result, parts)

        return result(x), generate

    return call


def _complex_function(name: str) -> Callable[..., Any]:
    """Of a complex number: two doubles are passed and returned in registers, on x86-64 and on AArch64."""
    from llvmlite import ir
    from numba.core import types as kinds

    double, integer = ir.DoubleType(), ir.IntType(32)

    def call(typing_context: Any, z: Any) -> Any:
        if not isinstance(z, kinds.Complex):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            type_ = ir.FunctionType(ir.LiteralStructType([double, double]), [double, double, integer])
            number = context.make_complex(
                builder, kinds.complex128, context.cast(builder, args[0], z, kinds.complex128)
            )
            found = builder.call(_declared(builder, type_, name), [number.real, number.imag, integer(1)])
            result = context.make_complex(builder, kinds.complex128)
            result.real, result.imag = builder.extract_value(found, 0), builder.extract_value(found, 1)
            return result._getvalue()

        return kinds.complex128(z), generate

    return call
