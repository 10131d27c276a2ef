"""Calls of Python functions out of compiled code: arguments become objects, and results are taken out of theirs.

The call holds Python's lock. An exception of the function ends the compiled function, and reaches its caller.
"""

from __future__ import annotations

import functools
from typing import Any

from srcdiff.library.call_outs import CallOut, Kind


@functools.cache
def compiled_call(call: CallOut) -> Any:
    """A compiled function that calls it."""
    import numba
    from numba.core import types
    from numba.extending import intrinsic

    results = [_type_of(kind) for kind in call.results]
    result = results[0] if len(results) == 1 else types.Tuple(tuple(results))

    @intrinsic
    def call_python(typing_context: Any, values: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _generated(context, builder, signature, args[0], call)

        return result(values), generate

    @numba.njit
    def called(*args: Any) -> Any:
        return call_python(args)  # type: ignore[call-arg]

    return called


def _type_of(kind: Kind) -> Any:
    from numba.core import types

    dtype, rank = kind
    element = getattr(types, "boolean" if dtype == "bool" else dtype)
    return types.Array(element, rank, "C") if rank else element


def _generated(context: Any, builder: Any, signature: Any, values: Any, call: CallOut) -> Any:
    """As Numba calls what it does not compile, in its object mode."""
    from numba.core import cgutils

    python_api = context.get_python_api(builder)
    environment = context.get_env_manager(builder)
    lock = python_api.gil_ensure()
    function = python_api.unserialize(python_api.serialize_object(call))
    given = []
    for k, type_ in enumerate(signature.args[0]):
        value = builder.extract_value(values, k)
        context.nrt.incref(builder, type_, value)  # the object takes a reference
        given.append(python_api.from_native_value(type_, value, environment))
    found = python_api.call_function_objargs(function, given)
    for item in (function, *given):
        python_api.decref(item)
    with builder.if_then(cgutils.is_null(builder, found), likely=False):
        python_api.gil_release(lock)
        context.call_conv.return_exc(builder)
    native = python_api.to_native_value(signature.return_type, found)
    python_api.decref(found)
    if native.cleanup is not None:
        native.cleanup()
    python_api.gil_release(lock)
    with builder.if_then(native.is_error, likely=False):
        context.call_conv.return_exc(builder)
    return native.value
