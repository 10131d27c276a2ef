"""Kernels and their adjoints compile to machine code without a GPU, and spill no registers."""

from __future__ import annotations

import importlib.util
import os

import pytest

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)
if importlib.util.find_spec("cuda.bindings.nvjitlink") is None:
    pytest.skip("nvJitLink is not installed", allow_module_level=True)
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

from tests.arrays.rows import NUMPY

if NUMPY >= (2, 5):
    pytest.skip("numba-cuda does not work with NumPy 2.5", allow_module_level=True)

from tests.cuda.machine_code import ARCHITECTURES, resources
from tests.cuda.programs import PROGRAMS, Program

#: Each takes seconds, so these are special cases; `python -m tests.cuda.machine_code` compiles all of them.
CHOSEN = ("saxpy", "strided", "squared_often", "local_polynomial", "block_products", "histogram", "pricing")


@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in CHOSEN], ids=lambda p: p.name)
def test_adjoint_becomes_machine_code_without_spills(program: Program, cc: tuple[int, int]) -> None:
    of_kernel, of_adjoint = resources(program, cc)

    assert of_adjoint["machine_code"] > 0
    assert 0 < of_adjoint["registers"] <= 255
    assert of_kernel["spill_stores"] == of_adjoint["spill_stores"] == 0
    assert of_kernel["shared"] <= of_adjoint["shared"]
