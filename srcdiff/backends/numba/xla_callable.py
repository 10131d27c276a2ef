"""Compiled functions that XLA calls by their address, through its foreign function interface (`jax.ffi`).

XLA passes the address of a call frame, which has the addresses of the arguments and of the results. They are read and
written in place. The text for a function of an array and a number, in a batch of ten arrays:

    def handler(frame):
        if describes_itself(frame):
            return 0
        try:
            for k in range(10):
                result = compiled(carray(pointer(argument(frame, 0) + 24 * k), (3,), np.float64), ...)
                ...
        except Exception:
            return error(frame, raised)
        return 0

The offsets are those of `xla/ffi/api/c_api.h`, version 0.5. XLA promises to keep them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.numba import c_callable, nested_calls
from srcdiff.backends.numba.interrupts import held_back
from srcdiff.diagnostics.garbage import seldom_collected
from srcdiff.quick_dataclasses import dataclass

MAJOR, MINOR = 0, 5


@dataclass(frozen=True)
class Buffer:
    """An argument or a result: its place among them, and whether each element of the batch has its own."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_batch: bool = False

    def address(self, of: str) -> str:
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return f"{of}(frame, {self.place})" + (f" + {size} * k" if self.in_batch else "")

    @property
    def name(self) -> str:
        return "bool_" if self.dtype == np.bool_ else str(self.dtype)


def argument(buffer: Buffer, *, copied: bool) -> str:
    """The expression of an argument of the compiled function; without axes it is a number."""
    address = buffer.address("argument")
    if not buffer.shape:
        kind = "float64" if buffer.dtype.kind == "f" else "int64"
        return f"np.{kind}(carray(pointer({address}), (1,), np.{buffer.name})[0])"
    array = f"carray(pointer({address}), {buffer.shape!r}, np.{buffer.name})"
    return f"{array}.copy()" if copied else array


def store(buffer: Buffer, result: str, *, is_number: bool) -> list[str]:
    """The statements that write a result."""
    address = buffer.address("returned")
    size = int(np.prod(buffer.shape, dtype=np.int64))
    target = f"carray(pointer({address}), ({size},), np.{buffer.name})"
    if is_number:
        return [f"{target}[0] = {result}"]
    return [
        f"if {result}.shape != {buffer.shape!r}:",
        "    return error(frame, other_shape)",
        f"store({target}, {result})",
    ]


def text_of(count: int, call: Sequence[str], stores: Sequence[str]) -> str:
    """The text of the function for a batch of `count` elements."""
    lines = [
        "def handler(frame):",
        "    if describes_itself(frame):",
        "        return 0",
        f"    for k in range({count}):",
        "        try:",
        f"            result = compiled({', '.join(call)})",
        "        except Exception:",
        "            return error(frame, raised)",
        *(f"        {line}" for line in stores),
        "    return 0",
    ]
    return "\n".join([*lines, ""])


def handler(text: str, compiled: Any, objects: Mapping[str, Any]) -> Any:
    """The function of the text, compiled: an object of `numba.cfunc`, with its address."""
    import numba
    from numba import types
    from numba.np.numpy_support import carray

    namespace = {"compiled": compiled, "carray": carray, "np": np, **c_callable.helpers(), **_helpers(), **objects}
    exec(text, namespace)
    with held_back(), nested_calls.allowed(), seldom_collected():
        return numba.cfunc(types.uintp(types.uintp), error_model="numpy")(namespace["handler"])


@functools.cache
def _helpers() -> dict[str, Any]:
    import numba
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic
    from numba.np.numpy_support import carray

    word = ir.IntType(64)
    pointer = c_callable.helpers()["pointer"]

    @intrinsic
    def create_error_intrinsic(typing_context: Any, function: Any, arguments: Any) -> Any:
        """Call `XLA_FFI_Error_Create`, which makes an error."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(word, [word])
            return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

        return types.uintp(types.uintp, types.uintp), generate

    create_error: Any = create_error_intrinsic

    @numba.njit
    def word_at(address: Any) -> Any:
        return carray(pointer(address), (1,), np.uintp)[0]

    @numba.njit
    def argument(frame: Any, k: Any) -> Any:
        """The address of the numbers of an argument: `frame->args.args[k]->data`."""
        return word_at(word_at(word_at(frame + 72) + 8 * k) + 24)

    @numba.njit
    def returned(frame: Any, k: Any) -> Any:
        """The address of the numbers of a result: `frame->rets.rets[k]->data`."""
        return word_at(word_at(word_at(frame + 112) + 8 * k) + 24)

    @numba.njit
    def describes_itself(frame: Any) -> Any:
        """Answer the question for the version, which XLA asks before the first call: `frame->extension_start`."""
        extension = word_at(frame + 8)
        if extension == 0 or carray(pointer(extension + 8), (1,), np.int32)[0] != 1:
            return False
        version = carray(pointer(word_at(extension + 24) + 24), (3,), np.int32)
        version[0], version[1], version[2] = MAJOR, MINOR, 0  # no traits
        return True

    @numba.njit
    def error(frame: Any, message: Any) -> Any:
        """An error with the code INVALID_ARGUMENT: `frame->api->XLA_FFI_Error_Create`."""
        given = np.zeros(4, np.uintp)
        given[0], given[2], given[3] = 28, message, 3
        return create_error(word_at(word_at(frame + 16) + 48), np.uintp(given.ctypes.data))

    return {"argument": argument, "returned": returned, "describes_itself": describes_itself, "error": error}
