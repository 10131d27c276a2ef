"""Compiles the generated source with Numba."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.numba import lowering, stages
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME, compiled_undisturbed
from srcdiff.backends.numba.machine_code import MachineCode
from srcdiff.backends.numba.quick_numpy import ProductsByName, quick_numpy
from srcdiff.backends.python import interpreter
from srcdiff.diagnostics import InternalError, progress, timings
from srcdiff.emit import formatting
from srcdiff.ir.primitives import BROUGHT_ALONG
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar
from srcdiff.signature.descriptions import CONTIGUOUS, Description

_LINEAR_ALGEBRA = (" @ ", "np.dot(", "np.linalg.")
_NEEDS_SCIPY = (
    "Numba compiles matrix products and linear algebra through SciPy: install scipy (or `srcdiff[linalg]`); "
    "backend='python' does without"
)

# Keeps NaN and infinity; lets sums be reordered and products be fused with sums.
FASTMATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


def not_compiled(error: Exception) -> Exception:
    """What Numba says of code that srcdiff wrote is a defect of srcdiff."""
    return InternalError(f"Numba does not compile the generated code: {error}")


def load(
    text: str,
    functions: Sequence[str],
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    file: str,
    key: str | None = None,
    *,
    nogil: bool = False,
) -> Any:
    """The last of the functions, compiled: a Numba dispatcher; with a key, its machine code is kept for later.

    With `nogil` it lets go of Python's lock while it runs.
    """
    import numba

    if timings.wanted() or progress.is_wanted():
        stages.listen()
    # Numba copies what BLAS cannot read in place, as NumPy does; nobody can change the code it says this of.
    warnings.filterwarnings("ignore", category=numba.NumbaPerformanceWarning, module="<srcdiff ")
    if any(call in text for call in _LINEAR_ALGEBRA) and importlib.util.find_spec("scipy") is None:
        raise ModuleNotFoundError(_NEEDS_SCIPY)
    compile_ = compiler(options, nogil=nogil)
    namespace = interpreter.load(text, objects, file, ProductsByName(), for_ever=True)
    if namespace.get("np") is np:
        namespace["np"] = quick_numpy(vector_functions=bool(options.get("fastmath", True)))
    if any(name not in BROUGHT_ALONG for name in functions[:-1]):  # other functions are recursive ones
        namespace[functions[-1]].starts_recursion = True
    for name in functions:
        shared = (name, repr(sorted(options.items()))) if name in BROUGHT_ALONG else None
        namespace[name] = _support.get(shared) or compile_(namespace[name])
        if shared is not None:
            _support[shared] = namespace[name]
    function = namespace[functions[-1]]
    if key is not None and hasattr(function, "_cache"):  # without it, Numba has been told not to compile
        function._cache = MachineCode(key)
    return compiled_undisturbed(function)


_support: dict[tuple[str, str] | None, Any] = {}
"""Functions of ours that are written beside the code that calls them, compiled: the same for every module."""


def compiler(options: Mapping[str, Any], *, nogil: bool = False) -> Any:
    """Numba's `njit`, as generated code is compiled by it."""
    import numba

    fastmath = options.get("fastmath", True)
    return numba.njit(
        error_model=options.get("error_model", "numpy"),
        fastmath=set(FASTMATH if fastmath is True else fastmath) if fastmath else False,
        boundscheck=options.get("boundscheck"),
        nogil=nogil,
        pipeline_class=lowering.compiler(vector_functions=bool(fastmath)),
    )


def followed(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the user's functions ask for, as options for generated code: no more freedom than it has otherwise."""
    if "fastmath" not in asked:
        return dict(asked)
    return {**asked, "fastmath": set(FASTMATH & asked["fastmath"]) or False}


def _say(context: Any, builder: Any, signature: Any, args: Any, function: Any) -> Any:
    """Call a Python function with a text and a tuple of values, as Numba's own `print` does it."""
    from numba.core import cgutils

    python_api = context.get_python_api(builder)
    environment = context.get_env_manager(builder)
    gil = python_api.gil_ensure()
    called = python_api.unserialize(python_api.serialize_object(function))
    boxed = []
    for type_, value in zip(signature.args, args, strict=True):
        context.nrt.incref(builder, type_, value)
        boxed.append(python_api.from_native_value(type_, value, environment))
    result = python_api.call_function_objargs(called, boxed)
    for item in (called, *boxed, result):
        python_api.decref(item)
    python_api.gil_release(gil)
    with builder.if_then(cgutils.is_null(builder, result), likely=False):
        context.call_conv.return_exc(builder)
    return context.get_dummy_value()


def compiled_code_prints_text() -> None:
    """Let compiled code print formatted texts, which Numba cannot."""
    from numba.core import types
    from numba.extending import intrinsic, overload

    def teach(function: Any) -> None:
        @intrinsic
        def say(typing_context: Any, template: Any, values: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return _say(context, builder, signature, args, formatting.PRINTERS[function])

            return types.none(types.unicode_type, values), generate

        @overload(function)
        def print_values(template: Any, *values: Any) -> Any:
            def implementation(template: Any, *values: Any) -> Any:
                say(template, values)  # type: ignore[call-arg]

            return implementation

    for function in formatting.PRINTERS:
        teach(function)


def callable_from_compiled_code(kind: type, specialise: Callable[..., Any]) -> None:
    """Let users' own compiled functions call objects of the kind: Numba asks for the function at its argument types."""
    from numba.core import types
    from numba.extending import typeof_impl

    def entry_of(derivative: Any) -> Any:
        with ONE_AT_A_TIME:
            if derivative.entry is None:
                derivative.entry = _entry(derivative, specialise)
        return derivative.entry

    @typeof_impl.register(kind)
    def _type_of(derivative: Any, context: Any) -> Any:
        return types.Dispatcher(entry_of(derivative))


def _default(x: Any) -> Any:
    """Stands for a default that is no number."""
    return x


def _entry(derivative: Any, specialise: Callable[..., Any]) -> Any:
    import numba
    from numba.core import types
    from numba.extending import overload

    left_out = numba.njit(_default)
    defaults = {}
    if not derivative.by_name:
        values = derivative.function.__defaults__ or ()
        defaults = dict(zip(derivative.names[len(derivative.names) - len(values) :], values, strict=True))

    def target(*args: Any) -> Any:
        """Stands for the derivative until the argument types are known."""

    def given(k: int, type_: Any) -> Any:
        if isinstance(type_, types.Dispatcher) and type_.dispatcher is left_out:
            return defaults[derivative.names[k]]
        return described(type_)

    @overload(target)
    def choose(*args: Any) -> Any:
        compiled, apart, passed = specialise(derivative, tuple(given(k, a) for k, a in enumerate(args)))
        lines = ["def call(*args: Any) -> Any:"]  # Numba compares the signature with that of `choose`
        for a, b in apart:
            lines += [f"    if overlap({a}, {b}):", "        raise ValueError('arguments share memory')"]
        lines.append(f"    return compiled({', '.join(passed)})")
        namespace = {"compiled": compiled, "overlap": numba.njit(overlap)}
        exec("\n".join(lines), namespace)
        return namespace["call"]

    if derivative.by_name:

        def entry(*args: Any) -> Any:
            return target(*args)

        return numba.njit(entry)
    parameters = [f"{n}=default_{n}" if n in defaults else n for n in derivative.names]
    text = f"def entry({', '.join(parameters)}):\n    return target({', '.join(derivative.names)})\n"
    known = {f"default_{n}": d if isinstance(d, bool | int | float) else left_out for n, d in defaults.items()}
    namespace = {"target": target, **known}
    exec(text, namespace)
    return numba.njit(namespace["entry"])


def overlap(a: Any, b: Any) -> Any:
    """Whether the memory of two arrays may overlap."""
    if a.size == 0 or b.size == 0:
        return False
    a_low = a_high = a.ctypes.data
    for axis in range(a.ndim):
        reach = (a.shape[axis] - 1) * a.strides[axis]
        a_high += max(reach, 0)
        a_low += min(reach, 0)
    b_low = b_high = b.ctypes.data
    for axis in range(b.ndim):
        reach = (b.shape[axis] - 1) * b.strides[axis]
        b_high += max(reach, 0)
        b_low += min(reach, 0)
    return a_low < b_high + b.itemsize and b_low < a_high + a.itemsize


def described(type_: Any) -> Description:
    """What the compiler has to know about an argument of this Numba type."""
    from numba.core import types

    match type_:
        case types.Array():
            known = (CONTIGUOUS,) if type_.layout == "C" else ()
            return Description("value", Array(str(type_.dtype), type_.ndim), known)
        case types.Boolean():
            return Description("value", BOOL)
        case types.Integer():
            return Description("value", INT)
        case types.Float():
            return Description("value", Scalar(str(type_)))
        case types.NoneType():
            return Description("static", (type(None), None))
        case types.Omitted():
            return described_value(type_.value)
        case types.BaseTuple():
            kind = getattr(type_, "instance_class", None) if isinstance(type_, types.BaseNamedTuple) else None
            parts: Any = type_
            return Description("tuple", kind, tuple(described(t) for t in parts))
        case types.Dispatcher():
            return Description("static", (type(type_.dispatcher), type_.dispatcher))
    raise TypeError(f"an argument of the Numba type {type_} cannot be passed to a derivative in compiled code")


def described_value(value: Any) -> Description:
    scalar = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
    return (
        Description("value", scalar)
        if isinstance(value, bool | int | float)
        else Description("static", (type(value), value))
    )
