"""Compiles the generated source with Numba."""

from __future__ import annotations

import ast
import importlib.util
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.backends.numba import lapack, lowering, stages, threads
from srcdiff.backends.numba.calls_of_python import compiled_call
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME, compiled_undisturbed
from srcdiff.backends.numba.machine_code import MachineCode
from srcdiff.backends.numba.quick_numpy import ProductsByName, quick_builtins, quick_numpy
from srcdiff.backends.numba.scipy_special import compiled_special
from srcdiff.backends.python import interpreter
from srcdiff.backends.python.outlined_loops import Outlining
from srcdiff.diagnostics import InternalError, progress, timings
from srcdiff.emit import formatting
from srcdiff.ir.primitives import BROUGHT_ALONG, THREADS
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar
from srcdiff.library.call_outs import CallOut
from srcdiff.signature.descriptions import CONTIGUOUS, Description

if TYPE_CHECKING:
    from srcdiff.backends.numba.short_lengths import Lengths

_LINEAR_ALGEBRA = (" @ ", "np.dot(", "np.linalg.", "lu_factors(")
_NEEDS_SCIPY = (
    "Numba needs SciPy to compile matrix products and linear algebra: install scipy or `srcdiff[linalg]`, or use "
    "backend='python'"
)

# Keeps NaN and infinity; lets sums be reordered and products be fused with sums.
FASTMATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


def not_compiled(error: Exception) -> Exception:
    """An error of Numba in generated code is a defect of srcdiff."""
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
    lengths: Lengths = (),
) -> Any:
    """The last of the functions, compiled: a Numba dispatcher; with a key, its machine code is kept for later.

    With `nogil` it lets go of Python's lock while it runs. With `lengths` it is compiled for these lengths of its
    arguments, and raises UnfitError for others.
    """
    import numba

    if timings.wanted() or progress.is_wanted():
        stages.listen()
    # Numba copies arrays that BLAS cannot read in place, as NumPy does; users cannot change generated code.
    warnings.filterwarnings("ignore", category=numba.NumbaPerformanceWarning, module="<srcdiff ")
    if any(call in text for call in _LINEAR_ALGEBRA) and importlib.util.find_spec("scipy") is None:
        raise ModuleNotFoundError(_NEEDS_SCIPY)
    compile_ = compiler(options, nogil=nogil)
    outlining = Outlining()
    if f"import {', '.join(THREADS)}" in text:
        objects = {**objects, **threads.functions()}
    namespace = interpreter.load(text, objects, file, _Spelling(outlining), for_ever=True)
    if namespace.get("np", np) is np:  # a text with matrix products may need it without importing it
        namespace["np"] = quick_numpy(vector_functions=bool(options.get("fastmath", True)))
    for name, function in quick_builtins().items():
        namespace.setdefault(name, function)
    for name, thing in objects.items():
        if isinstance(thing, CallOut):
            namespace[name] = compiled_call(thing)
    if "special" in namespace:
        namespace["special"] = compiled_special()
    if any(name not in BROUGHT_ALONG for name in functions[:-1]):  # other functions are recursive ones
        namespace[functions[-1]].starts_recursion = True
    if lengths:
        namespace[functions[-1]].lengths = lengths
    if outlining.functions:
        namespace |= threads.functions()
    for name in [n for n in functions if not outlining.functions or n not in threads.functions()]:
        if name in lapack.OF_FACTORS:
            namespace[name] = getattr(namespace["np"].linalg, name)
            continue
        shared = (name, repr(sorted(options.items()))) if name in BROUGHT_ALONG else None
        namespace[name] = _support.get(shared) or compile_(namespace[name])
        if shared is not None:
            _support[shared] = namespace[name]
    for made in outlining.functions:
        namespace[made.name] = compile_(namespace[made.name])
    function = namespace[functions[-1]]
    if key is not None and hasattr(function, "_cache"):  # without it, compilation is disabled in Numba
        function._cache = MachineCode(key)
    return compiled_undisturbed(function)


class _Spelling(ProductsByName):
    """The text as Numba compiles it."""

    def __init__(self, outlining: Outlining) -> None:
        self.outlining = outlining

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.generic_visit(node)
        made: ast.Module = self.outlining.visit(node)
        made.body += self.outlining.functions
        return made


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
    """The Numba options of the user's functions, for generated code; they can only restrict its defaults."""
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


Body = tuple[dict[str, Any], list[str]]
"""The objects that the body of a function refers to, and its lines; `args` are its arguments."""


def callable_from_compiled_code(
    kind: type, write: Callable[..., Body], parameters_of: Callable[[Any], Any] = lambda x: x
) -> None:
    """Make objects of a class callable from compiled functions of users.

    `write(x, given, types)` returns the body of the function that is called instead: `given` has a description of each
    argument, or the argument itself if it is constant, and `types` their Numba types. `parameters_of` returns a
    derivative with the same parameters; None if arguments are positional only.
    """
    from numba.core import types
    from numba.extending import typeof_impl

    @typeof_impl.register(kind)
    def _type_of(x: Any, context: Any) -> Any:
        with ONE_AT_A_TIME:
            if x.entry is None:
                x.entry = _entry(x, write, parameters_of(x))
                x.entry.stands_for = x
        return types.Dispatcher(x.entry)


def body_of_call(
    compiled: Any, apart: Sequence[tuple[str, str]], passed: Sequence[str], form: str = "{}", checks: Sequence[str] = ()
) -> Body:
    """Check the arguments, call the compiled function, and convert its result by the form."""
    import numba

    lines = [*checks]
    for a, b in apart:
        lines += [f"if overlap({a}, {b}):", "    raise ValueError('arguments share memory')"]
    called = f"compiled({', '.join(passed)})"
    lines += [f"return {called}"] if form == "{}" else [f"result = {called}", f"return {form.format('result')}"]
    return {"compiled": compiled, "overlap": numba.njit(overlap)}, lines


def element_of(type_: Any) -> Any:
    """The type of an element along the first axis of an array."""
    from numba.core import types

    if not isinstance(type_, types.Array) or type_.ndim == 0:
        raise TypeError(f"an argument of the Numba type {type_} cannot be batched")
    if type_.ndim == 1:
        return type_.dtype
    return type_.copy(ndim=type_.ndim - 1, layout="C" if type_.layout == "C" else "A")


def body_of_batch(compiled: Any, passed: Sequence[str], elements: Sequence[Any], batches: Sequence[str]) -> Body:
    """Call the compiled function for each element of batches, and put its results into arrays.

    count = len(args[0])
    result = compiled(args[0][0], args[1])
    out_0 = np.empty((count, result[1].size), result[1].dtype)
    for k in range(count):
        ...
    return out_0.reshape((count,) + result[1].shape)
    """
    from numba import typeof
    from numba.core import types

    known = [elements[int(text[5:-1])] if text.startswith("args[") else typeof(eval(text)) for text in passed]
    compiled.compile(tuple(known))
    result = compiled.overloads[tuple(known)].signature.return_type
    leaves: list[tuple[str, Any]] = []

    def structure(type_: Any, text: str) -> str:
        if isinstance(type_, types.BaseTuple):
            items: Any = type_
            parts = [structure(t, f"{text}[{k}]") for k, t in enumerate(items)]
            return f"({', '.join(parts)},)"
        if not isinstance(type_, types.Array | types.Number | types.Boolean):
            raise TypeError(f"a function whose result has the Numba type {type_} cannot be batched")
        leaves.append((text, type_))
        name = f"out_{len(leaves) - 1}"
        return f"{name}.reshape((count,) + {text}.shape)" if isinstance(type_, types.Array) else f"{name}[:, 0]"

    returned = structure(result, "first")
    call = [f"{text}[{{}}]" if text in batches else text for text in passed]
    lines = [f"count = len({batches[0]})"]
    for other in batches[1:]:
        lines += [f"if len({other}) != count:", "    raise ValueError('batches have different lengths')"]
    lines += ["if count == 0:", "    raise ValueError('the batch is empty')"]
    lines += [f"first = compiled({', '.join(call).format(*['0'] * len(batches))})"]
    stores = []
    for k, (text, type_) in enumerate(leaves):
        size = f"{text}.size" if isinstance(type_, types.Array) else "1"
        dtype = getattr(type_, "dtype", type_)
        lines += [f"out_{k} = np.empty((count, {size}), np.{dtype if str(dtype) != 'bool' else 'bool_'})"]
        own = text.replace("first", "result", 1)
        if isinstance(type_, types.Array):
            stores += [f"if {own}.shape != {text}.shape:", "    raise ValueError('results have different shapes')"]
            stores += [f"for j in range({own}.size):", f"    out_{k}[k, j] = {own}.flat[j]"]
        else:
            stores += [f"out_{k}[k, 0] = {own}"]
    again = ", ".join(call).format(*["k"] * len(batches))
    loop = ["result = first", "if k > 0:", f"    result = compiled({again})", *stores]
    lines += ["for k in range(count):", *(f"    {line}" for line in loop), f"return {returned}"]
    return {"compiled": compiled, "np": np}, lines


def check_of_shapes(value: str, tangent: str, name: str) -> list[str]:
    """Raise an exception where a tangent has not the shape of its value."""
    return [
        f"if {tangent}.shape != {value}.shape:",
        f"    raise ValueError('the tangent of `{name}` has a different shape')",
    ]


def function_with_body(head: str, body: Body) -> Any:
    """The function with this head: `call(*args)`."""
    names, lines = dict(body[0]), body[1]
    exec("\n    ".join([f"def {head}:", *lines]), names)
    return names[head.partition("(")[0]]


def _with_names(body: Body, names: Sequence[str]) -> Body:
    """The body of a function that has parameters with names."""
    return body[0], [re.sub(r"\bargs\[(\d+)\]", lambda found: names[int(found[1])], line) for line in body[1]]


def _default(x: Any) -> Any:
    """Placeholder for a default that is not a number."""
    return x


def _entry(x: Any, write: Callable[..., Body], derivative: Any) -> Any:
    import numba
    from numba.core import types
    from numba.extending import overload

    left_out = numba.njit(_default)
    by_position = derivative is None or derivative.by_name
    names = () if by_position else derivative.names
    values = () if by_position else derivative.function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))

    def target(*args: Any) -> Any:
        """Stub of the derivative until the argument types are known."""

    def given(k: int, type_: Any) -> Any:
        if isinstance(type_, types.Dispatcher) and type_.dispatcher is left_out:
            return defaults[names[k]]
        return described(type_)

    def body_for(*args: Any) -> Body:
        return write(x, tuple(given(k, a) for k, a in enumerate(args)), args)

    if by_position:

        @overload(target)
        def choose(*args: Any) -> Any:
            return function_with_body("call(*args: Any) -> Any", body_for(*args))  # Numba compares the heads

        def entry(*args: Any) -> Any:
            return target(*args)

        return numba.njit(entry)
    # Parameters with names, and code that Numba puts where the call is: a tuple of arguments would count references.
    head = f"call({', '.join(names)})"
    chosen = {"with_names": lambda *args: function_with_body(head, _with_names(body_for(*args), names))}
    exec(f"def choose({', '.join(names)}):\n    return with_names({', '.join(names)})\n", chosen)
    overload(target, inline="always")(chosen["choose"])
    parameters = [f"{n}=default_{n}" if n in defaults else n for n in names]
    text = f"def entry({', '.join(parameters)}):\n    return target({', '.join(names)})\n"
    known = {f"default_{n}": d if isinstance(d, bool | int | float) else left_out for n, d in defaults.items()}
    namespace = {"target": target, **known}
    exec(text, namespace)
    return numba.njit(namespace["entry"], pipeline_class=lowering.compiler(vector_functions=False))


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
    """The description of an argument of this Numba type."""
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
