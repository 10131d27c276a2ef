"""Machine code for GPUs, compiled without a GPU, and the error if Numba CUDA is not installed."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
import srcdiff.cuda
from srcdiff.backends.cuda import numba_cuda
from srcdiff.backends.cuda.numba_cuda import device_numpy
from srcdiff.ir.primitives import PRIMITIVES
from tests.arrays.programs import PROGRAMS
from tests.arrays.rows import NUMPY
from tests.cuda.samples import SAMPLES, Sample

pytest.importorskip("numba_cuda", reason="srcdiff[cuda] is not installed")
pytest.importorskip("cuda.bindings.nvjitlink", reason="the linker of CUDA is not installed")
if numba_cuda.is_simulated():
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

from numba import cuda

compiles = pytest.mark.skipif(NUMPY >= (2, 5), reason="numba-cuda does not work with NumPy 2.5")

_STEP = 1 if "SRCDIFF_TEST_ALL" in os.environ else 4


@compiles
@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("sample", SAMPLES[::_STEP], ids=lambda s: s.name)
def test_batch_becomes_machine_code_without_spills(sample: Sample, cc: tuple[int, int]) -> None:
    derivative = srcdiff.value_and_grad(sample.function, wrt=sample.wrt, backend="cuda")
    batch = srcdiff.batched(derivative, sample.over, shared="sum").compile(*sample.arguments)

    found = batch.resources(cc)

    assert found
    for kernel in found.values():
        assert kernel["machine_code"] > 0
        assert 0 < kernel["registers"] <= 255
        assert kernel["spill_stores"] == kernel["spill_loads"] == 0


@srcdiff.cuda.kernel
def products_of_pairs(x, y):
    i = cuda.grid(1)
    pairs = x.reshape(y.shape[0], 2)
    if i < y.shape[0]:
        y[i] = pairs[i, 0] * pairs[i, 1]


@compiles
@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
def test_reshaping_in_a_thread_becomes_machine_code(cc: tuple[int, int]) -> None:
    sample = next(s for s in SAMPLES if s.name == "in_other_shapes")
    derivative = srcdiff.value_and_grad(sample.function, wrt=sample.wrt, backend="cuda")
    batch = srcdiff.batched(derivative, sample.over).compile(*sample.arguments)
    args, bars = (np.ones(8), np.ones(4)), (np.ones(8), np.ones(4))

    assert all(kernel["machine_code"] > 0 for kernel in batch.resources(cc).values())
    assert "reshape" not in "".join(batch.ptx(cc).values())
    assert products_of_pairs.resources(args, cc=cc)["machine_code"] > 0
    assert products_of_pairs.adjoint.resources(args, bars, cc=cc, launch=(1, 4))["machine_code"] > 0


@compiles
@pytest.mark.parametrize("program", PROGRAMS[5 :: 40 if _STEP > 1 else 1], ids=lambda p: p.name)
def test_array_program_becomes_machine_code(program: Any) -> None:
    derivative = srcdiff.value_and_grad(program.function, wrt=program.wrt, backend="cuda").compile(*program.at[0])

    found = derivative.resources((8, 0))

    assert found
    assert all(kernel["machine_code"] > 0 for kernel in found.values())


@compiles
def test_complex_numbers_become_machine_code() -> None:
    def interference(z, x):
        w = np.exp(1j * x) * np.conj(z) / (2.0 + z * z)
        w[1:] += np.sqrt(z[:-1])
        return np.sum(np.abs(w) + w.imag**2 + np.abs(x.astype(complex)))

    for z, x in ((np.ones(4) + 1j, np.ones(4)), (np.ones(4, np.complex64), np.ones(4, np.float32))):
        code = srcdiff.grad(interference, wrt=("z", "x"), backend="cuda").compile(z, x)
        assert all(kernel["machine_code"] > 0 for kernel in code.resources((8, 0)).values())


@compiles
def test_code_names_the_architecture() -> None:
    def f(x):
        return np.sum(np.exp(x))

    code = srcdiff.grad(f, backend="cuda").compile(np.ones(3)).ptx((9, 0))

    assert all(".target sm_90" in text for text in code.values())


def test_every_function_that_a_kernel_may_call_is_there() -> None:
    real = [p for p in PRIMITIVES.values() if not p.result.startswith("complex") and p.name != "conjugate"]
    called = {p.spelling.partition("(")[0] for p in real if p.spelling.startswith("np.")}

    missing = sorted(name for name in called if not hasattr(device_numpy((8, 0)), name.removeprefix("np.")))

    assert missing == ["np.spacing"]


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e300, -1e300, 1e-300, 5e15, -5e15]
SPECIAL += [math.inf, -math.inf, math.nan, 0.3, 8.0]


@pytest.mark.parametrize("function", numba_cuda._DEVICE_FUNCTIONS, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_function_of_a_thread_is_numpys(function: Callable[..., Any]) -> None:
    """They run as Python, whose `math` raises where a GPU gives infinity or NaN."""
    name = function.__name__.strip("_")
    values: list[Any] = [0, 1, -1, 5, -6, 12, 18] if name in ("gcd", "lcm") else [np.float64(x) for x in SPECIAL]
    for arguments in itertools.product(values, repeat=function.__code__.co_argcount):
        try:
            found = function(*arguments)
        except (OverflowError, ValueError):
            continue

        expected = getattr(np, name)(*arguments)

        np.testing.assert_allclose(float(found), float(expected), rtol=1e-15, err_msg=f"{name}{arguments}")


def test_without_a_gpu_a_call_says_what_to_do() -> None:
    if numba_cuda.cuda().is_available():
        pytest.skip("there is a GPU")

    with pytest.raises(RuntimeError, match="NUMBA_ENABLE_CUDASIM=1"):
        srcdiff.grad(lambda x: x * x, backend="cuda")(2.0)


def test_without_numba_cuda_srcdiff_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ModuleNotFoundError, match=r"install srcdiff\[cuda\]"):
        srcdiff.grad(lambda x: x * x, backend="cuda")


def test_numba_cuda_that_does_not_work_with_numpy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> None:
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    numba_cuda.cuda()
    numba_cuda.require_compiler.cache_clear()
    monkeypatch.setattr(numba_cuda.importlib, "import_module", import_module)

    with pytest.raises(RuntimeError, match=r"numba-cuda .* does not work with NumPy .*: install `numpy<2\.5`"):
        products_of_pairs.ptx((np.ones(8), np.ones(4)), cc=(8, 0))


@pytest.mark.skipif(NUMPY < (2, 5), reason="numba-cuda works with earlier versions of NumPy")
def test_numba_cuda_does_not_work_with_numpy_2_5() -> None:
    with pytest.raises(RuntimeError, match=r"install `numpy<2\.5`"):
        products_of_pairs.ptx((np.ones(8), np.ones(4)), cc=(8, 0))
