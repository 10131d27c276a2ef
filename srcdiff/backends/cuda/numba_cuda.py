"""Compiles the generated source with Numba CUDA, or runs it in Numba's simulator of a GPU."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.resources
import importlib.util
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.cuda.simulator import share_arrays_safely
from srcdiff.backends.numba.interrupts import compiled_undisturbed, held_back, look_at_passes
from srcdiff.backends.python import interpreter
from srcdiff.diagnostics.options import CAPABILITY
from srcdiff.ir.types import Array, Scalar, Type

_INSTALL = (
    "the backend 'cuda' needs numba-cuda: install srcdiff[cuda]. Without a GPU it runs in Numba's simulator if "
    "NUMBA_ENABLE_CUDASIM=1 is set in the environment"
)


@functools.cache
def cuda() -> Any:
    """Numba's `cuda`."""
    require_installed()
    module = importlib.import_module("numba.cuda")
    if is_simulated():
        share_arrays_safely()
    else:
        look_at_passes(importlib.import_module("numba.cuda.core.event"), "numba-cuda:run_pass")
    return module


def require_installed() -> None:
    """Without this package, Numba has an older CUDA target, whose simulator does not work."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise ModuleNotFoundError(_INSTALL)


def is_simulated() -> bool:
    from numba.core import config

    return bool(getattr(config, "ENABLE_CUDASIM", False))


def require_device() -> None:
    """There is a GPU to run on, or the simulator."""
    if not is_simulated() and not cuda().is_available():
        raise RuntimeError(
            "no CUDA device was found; set NUMBA_ENABLE_CUDASIM=1 in the environment to use the simulator, or compile "
            "without a device by `g.ptx(...)` and `g.resources(...)`"
        )
    require_compiler()


@functools.cache
def require_compiler() -> None:
    """Numba CUDA can compile with this NumPy; 0.30 cannot with NumPy 2.5 (github.com/NVIDIA/numba-cuda/issues/907)."""
    if is_simulated():
        return
    cuda()
    try:
        importlib.import_module("numba.cuda.np.npyimpl")
    except AttributeError as error:
        version = importlib.metadata.version("numba-cuda")
        raise RuntimeError(
            f"numba-cuda {version} does not work with NumPy {np.__version__} ({error}): install `numpy<2.5`, or set "
            "NUMBA_ENABLE_CUDASIM=1 in the environment to use the simulator"
        ) from error


# -- NumPy's functions for a thread --------------------------------------------------------------------------------


def _sign(x: Any) -> Any:
    return 1 if x > 0 else -1 if x < 0 else x


def _maximum(x: Any, y: Any) -> Any:
    return x if x >= y or x != x else y


def _minimum(x: Any, y: Any) -> Any:
    return x if x <= y or x != x else y


def _fmax(x: Any, y: Any) -> Any:
    return x if x >= y or y != y else y


def _fmin(x: Any, y: Any) -> Any:
    return x if x <= y or y != y else y


def _square(x: Any) -> Any:
    return x * x


def _reciprocal(x: Any) -> Any:
    return 1 / x


def _cbrt(x: Any) -> Any:
    root = math.pow(abs(x), 1.0 / 3.0)
    if 0.0 < root < math.inf:
        root -= (root - abs(x) / (root * root)) / 3.0  # a step of Newton's for the last digits
    return math.copysign(root, x) if x == x else x


def _exp2(x: Any) -> Any:
    return math.pow(2.0, x)


def _logaddexp(x: Any, y: Any) -> Any:
    if x == y:
        return x + math.log(2.0)
    return x + math.log1p(math.exp(y - x)) if x > y else y + math.log1p(math.exp(x - y))


def _logaddexp2(x: Any, y: Any) -> Any:
    if x == y:
        return x + 1.0
    scale = math.log(2.0)
    difference = abs(x - y) * scale
    return (x if x > y else y) + math.log1p(math.exp(-difference)) / scale


def _sinc(x: Any) -> Any:
    z = math.pi * x
    return math.sin(z) / z if z != 0.0 else 1.0


def _angle(x: Any) -> Any:
    if x != x:
        return x
    return math.pi if math.copysign(1.0, x) < 0.0 else 0.0


def _rint(x: Any) -> Any:
    if not abs(x) < 4503599627370496.0:
        return x
    whole = math.floor(x)
    rest = x - whole
    if rest > 0.5 or (rest == 0.5 and whole % 2 == 1):
        whole += 1
    return math.copysign(float(whole), x)


def _floor(x: Any) -> Any:
    return float(math.floor(x)) if abs(x) < 4503599627370496.0 else x


def _ceil(x: Any) -> Any:
    return float(math.ceil(x)) if abs(x) < 4503599627370496.0 else x


def _trunc(x: Any) -> Any:
    return float(math.trunc(x)) if abs(x) < 4503599627370496.0 else x


def _isfinite(x: Any) -> Any:
    return x - x == 0


def _isposinf(x: Any) -> Any:
    return x == math.inf


def _isneginf(x: Any) -> Any:
    return x == -math.inf


def _signbit(x: Any) -> Any:
    return math.copysign(1.0, x) < 0.0


def _logical_xor(x: Any, y: Any) -> Any:
    return bool(x) != bool(y)


def _gcd(x: Any, y: Any) -> Any:
    x, y = abs(x), abs(y)
    while y:
        x, y = y, x % y
    return x


def _lcm(x: Any, y: Any) -> Any:
    a, b = abs(x), abs(y)
    while b:
        a, b = b, a % b
    return abs(x) // a * abs(y) if a else 0


_DEVICE_FUNCTIONS = (
    _sign, _maximum, _minimum, _fmax, _fmin, _square, _reciprocal, _cbrt, _exp2, _logaddexp, _logaddexp2, _sinc, _angle,
    _rint, _floor, _ceil, _trunc, _isfinite, _isposinf, _isneginf, _signbit, _logical_xor, _gcd,
    _lcm,
)  # fmt: skip
_FROM_MATH = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "float_power": "pow", "power": "pow",
    **{n: n for n in ("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "hypot", "fabs", "copysign", "fmod",
                      "sin", "cos", "tan", "sinh", "cosh", "tanh", "degrees", "radians", "isnan", "isinf", "ldexp",
                      "nextafter")},
}  # fmt: skip


@functools.cache
def device_numpy(cc: tuple[int, int] | None = None) -> Any:
    """The replacement of `np` in kernels, for the present GPU or a compute capability."""
    if is_simulated():
        return np
    module = types.ModuleType("numpy")
    module.__dict__.update(
        nan=math.nan, inf=math.inf, pi=math.pi, float64=np.float64, float32=np.float32, int64=np.int64, bool_=np.bool_
    )
    for kind in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128"):
        setattr(module, kind, getattr(np, kind))
    for name, own in _FROM_MATH.items():
        if hasattr(math, own):
            setattr(module, name, getattr(math, own))
    for function in _DEVICE_FUNCTIONS:
        plain = types.FunctionType(function.__code__, function.__globals__, function.__name__.strip("_"))
        setattr(module, function.__name__.strip("_"), cuda().jit(device=True)(plain))
    return module


# -- loading -------------------------------------------------------------------------------------------------------


def load_kernels(text: str, objects: Mapping[str, Any], file: str, cc: tuple[int, int] | None = None) -> dict[str, Any]:
    """The names that the text defines, as code of a GPU."""
    with held_back():
        cuda()
        names = interpreter.load(text, objects, f"{file[:-1]} kernels>")
        for name in names.keys() - objects.keys():
            names[name] = compiled_undisturbed(names[name])
        names["np"] = device_numpy(cc)
        return names


def load(text: str, kernels: Sequence[str], objects: Mapping[str, Any], device: Any, file: str) -> dict[str, Any]:
    """The names that the text defines: kernels compiled by Numba CUDA, and host code as plain Python."""
    on_gpu = load_kernels(text, objects, file)
    host = interpreter.load(text, objects, file)
    host["device"] = device
    for name, value in list(host.items()):
        if name in kernels:
            host[name] = on_gpu[name]
        elif hasattr(value, "py_func") or type(value).__name__ == "FakeCUDAKernel":
            host[name] = plain(value)
    return host


def plain(kernel: Any) -> Callable[..., Any]:
    """The Python function of a kernel."""
    function: Callable[..., Any] = kernel.py_func if hasattr(kernel, "py_func") else kernel.fn
    return function


# -- machine code, without a GPU ---------------------------------------------------------------------------------------


def numba_type(type_: Type) -> Any:
    """The type of a kernel's parameter; arrays are taken for contiguous."""
    from numba.core import types as kinds

    match type_:
        case Array():
            return kinds.Array(getattr(kinds, "boolean" if type_.dtype == "bool" else type_.dtype), type_.rank, "C")
        case Scalar():
            return kinds.boolean if type_.dtype == "bool" else getattr(kinds, type_.dtype)
    raise TypeError(type_)


def ptx(
    text: str,
    kernels: Mapping[str, Sequence[Type]],
    objects: Mapping[str, Any],
    file: str,
    cc: tuple[int, int],
) -> dict[str, str]:
    """The PTX code of each kernel in the text, for a compute capability. Needs no GPU."""
    names = load_kernels(text, objects, file, cc)
    return {name: ptx_of(plain(names[name]), params, cc) for name, params in kernels.items()}


def ptx_of(kernel: Callable[..., Any], params: Sequence[Type], cc: tuple[int, int]) -> str:
    """The code of a kernel for GPUs of the compute capability."""
    if is_simulated():
        raise RuntimeError("the simulator does not compile: unset NUMBA_ENABLE_CUDASIM to compile for a GPU")
    require_compiler()
    with held_back(), _as_if_there(CAPABILITY.checked("cc", cc)):
        return str(cuda().compile_ptx(kernel, tuple(numba_type(t) for t in params), cc=cc)[0])


@contextlib.contextmanager
def _as_if_there(cc: tuple[int, int]) -> Iterator[None]:
    """Functions that kernels call are compiled for the GPU that Numba finds: let it find one."""
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    found = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = found


def _reshaping(code: str, cc: tuple[int, int]) -> list[bytes]:
    """The function that `reshape` calls in a kernel, if it is called: Numba links it when a kernel is launched."""
    if "numba_attempt_nocopy_reshape" not in code:
        return []
    from cuda.bindings import nvrtc

    source = (importlib.resources.files("numba.cuda") / "reshape_funcs.cu").read_bytes()
    options = [f"--gpu-architecture=compute_{cc[0]}{cc[1]}".encode(), b"--relocatable-device-code=true"]
    _, program = nvrtc.nvrtcCreateProgram(source, b"reshape_funcs.cu", 0, [], [])
    nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetPTXSize(program)
    compiled = bytearray(size)
    nvrtc.nvrtcGetPTX(program, compiled)
    nvrtc.nvrtcDestroyProgram(program)
    return [bytes(compiled)]


def resources(code: str, cc: tuple[int, int]) -> dict[str, int]:
    """The resources of the machine code per thread: registers, bytes of local and shared memory, and spills."""
    from cuda.bindings import nvjitlink

    options = [f"-arch=sm_{cc[0]}{cc[1]}", "-verbose"]
    handle = nvjitlink.create(len(options), options)
    try:
        for part in (code.encode(), *_reshaping(code, cc)):
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, part, len(part), "kernel")
        nvjitlink.complete(handle)
        size = nvjitlink.get_info_log_size(handle)
        log = bytearray(size)
        nvjitlink.get_info_log(handle, log)
        machine_code = nvjitlink.get_linked_cubin_size(handle)
    finally:
        nvjitlink.destroy(handle)
    report = log.decode(errors="replace")

    def number(pattern: str) -> int:
        return sum(int(n) for n in re.findall(pattern, report))

    return {
        "registers": max([int(n) for n in re.findall(r"Used (\d+) registers", report)], default=0),
        "stack": number(r"(\d+) bytes stack frame"),
        "shared": number(r"(\d+) bytes smem"),
        "spill_stores": number(r"(\d+) bytes spill stores"),
        "spill_loads": number(r"(\d+) bytes spill loads"),
        "machine_code": machine_code,
    }
