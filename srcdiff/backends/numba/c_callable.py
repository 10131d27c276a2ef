"""Compiled functions that C calls by their address: `int f(n, x, gradient, value, data)`.

The text of such a function for the parameters `{"w": array of 3, "b": number}` and an array of data:

    def c_function(n, x, gradient, value, data):
        if n != 4:
            return -1
        if is_null(x) or is_null(gradient) or is_null(value):
            return -2
        try:
            result = compiled((carray(x, (3,)), carray(element(x, 3), (1,))[0]), carray(pointer(address), (5,)))
        except Exception:
            return 1
        ...
        return 0
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.numba import nested_calls
from srcdiff.backends.numba.interrupts import held_back
from srcdiff.diagnostics.garbage import seldom_collected

OK, RAISED, WRONG_LENGTH, NULL = 0, 1, -1, -2
"""The return codes of the function."""


def text_of(count: int, call: Sequence[str], value: str, stores: Sequence[str], *, catches: bool = True) -> str:
    """The text of the function: `call` are the arguments of the compiled function, `stores` write its gradient."""
    called = f"result = compiled({', '.join(call)})"
    caught = ["    try:", f"        {called}", "    except Exception:", f"        return {RAISED}"]
    lines = [
        "def c_function(n, x, gradient, value, data):",
        f"    if n != {count}:",
        f"        return {WRONG_LENGTH}",
        "    if is_null(x) or is_null(gradient) or is_null(value):",
        f"        return {NULL}",
        *(caught if catches else [f"    {called}"]),
        *(f"    {line}" for line in stores),
        f"    carray(value, (1,))[0] = {value}",
        f"    return {OK}",
    ]
    return "\n".join([*lines, ""])


def parameter(start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """The expression of an array of parameters."""
    is_complex = dtype.kind == "c"
    if not shape:
        return f"np.asarray(np.{dtype}({number(start, is_complex=is_complex)}))"
    array = _complex_array("x", start, shape) if is_complex else f"carray(element(x, {start}), {shape!r})"
    return array if dtype in (np.float64, np.complex128) else f"{array}.astype(np.{dtype})"


def number(start: int, *, is_complex: bool = False) -> str:
    """The expression of a parameter that is one number."""
    return f"{_complex_array('x', start, (1,)) if is_complex else f'carray(element(x, {start}), (1,))'}[0]"


def _complex_array(pointer: str, start: int, shape: tuple[int, ...]) -> str:
    """Pairs of numbers as complex numbers."""
    return f"carray(complex_element({pointer}, {start}), {shape!r})"


def data(name: str, array: np.ndarray[Any, Any]) -> str:
    """The expression of an array whose address has this name."""
    dtype = "bool_" if array.dtype == np.bool_ else str(array.dtype)
    return f"carray(pointer({name}), {array.shape!r}, np.{dtype})"


def store(start: int, gradient: str, shape: tuple[int, ...] | None, *, is_complex: bool = False) -> str:
    """The statement that writes a part of the gradient; there is no shape for a number."""
    size = int(np.prod(shape or (), dtype=np.int64))
    place = f"carray(element(gradient, {start}), ({size},))"
    if is_complex:
        place = _complex_array("gradient", start, (size,))
    if shape is None:
        return f"{place}[0] = {gradient}"
    if shape == ():
        return f"{place}[0] = {gradient}[()]"
    return f"store({place}, {gradient})"


def c_callable(text: str, compiled: Any, objects: Mapping[str, Any]) -> Any:
    """The function of the text, compiled: an object of `numba.cfunc`, with its address."""
    import numba
    from numba import types
    from numba.np.numpy_support import carray

    namespace = {"compiled": compiled, "carray": carray, "np": np, **helpers(), **objects}
    exec(text, namespace)
    double = types.CPointer(types.float64)
    signature = types.int32(types.int64, double, double, double, types.voidptr)
    with held_back(), nested_calls.allowed(), seldom_collected():
        return numba.cfunc(signature, error_model="numpy")(namespace["c_function"])


@functools.cache
def helpers() -> dict[str, Any]:
    """Functions about addresses, for compiled code."""
    import numba
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def element(typing_context: Any, pointer: Any, k: Any) -> Any:
        """The pointer to an element."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.intp)])

        return pointer(pointer, types.intp), generate

    @intrinsic
    def complex_element(typing_context: Any, pointer: Any, k: Any) -> Any:
        """The pointer to a complex number, whose real part is an element."""
        result = types.CPointer(types.complex128)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.intp)])
            return builder.bitcast(place, context.get_value_type(result))

        return result(pointer, types.intp), generate

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        """The pointer with an address."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.uintp), generate

    @intrinsic
    def is_null(typing_context: Any, pointer: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = builder.ptrtoint(args[0], ir.IntType(64))
            return builder.icmp_unsigned("==", number, ir.Constant(ir.IntType(64), 0))

        return types.boolean(pointer), generate

    @numba.njit
    def store(target: Any, values: Any) -> None:
        for k in range(target.size):
            target[k] = values.flat[k]

    return {
        "element": element,
        "complex_element": complex_element,
        "pointer": pointer,
        "is_null": is_null,
        "store": store,
    }
