"""BLAS for cached code is found without importing SciPy's linear algebra, which can still be imported later."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy")
pytestmark = pytest.mark.numba

PROGRAM = """
import sys
import numpy as np
import srcdiff

def loss(a, b, x):
    return np.sum((a @ b) ** 2) + (b @ x) @ x

def right(dtype):
    a, b = (np.arange(4).reshape(2, 2).astype(dtype) + k for k in range(2))
    x = np.arange(2).astype(dtype)
    gradient = srcdiff.grad(loss, wrt=("a", "x"))(a, b, x)
    return np.array_equal(gradient[0], 2 * (a @ b) @ b.T) and np.array_equal(gradient[1], (b + b.T) @ x)

"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """The output of a new process that finds the compiled code of an earlier one."""
    folder = tmp_path_factory.mktemp("blas")
    file = folder / "program.py"
    (folder / "cache").mkdir(mode=0o700)
    environment = os.environ | {"SRCDIFF_CACHE_DIR": str(folder / "cache")}
    file.write_text(PROGRAM)

    def run(before, after):
        imported = f"{before}\nfrom program import *\nprint(right(np.float64), right(np.float32))\n{after}"
        command = [sys.executable, "-c", imported]
        given = {"check": True, "capture_output": True, "text": True, "cwd": folder, "env": environment}
        return subprocess.run(command, **given).stdout.splitlines()

    assert run("", "") == ["True True"]
    return run


def test_products_need_no_more_of_scipy(answer):
    assert answer("", "print([m for m in sys.modules if m.startswith('scipy.linalg')])") == ["True True", "[]"]


def test_scipy_can_still_be_imported_afterwards(answer):
    after = (
        "import scipy.linalg\n"
        "import scipy.linalg.cython_blas\n"
        "print(scipy.linalg.cython_blas is sys.modules['scipy.linalg.cython_blas'])\n"
        "print(scipy.linalg.solve(2.0 * np.eye(2), np.ones(2)).tolist(), right(np.float64))\n"
    )
    assert answer("", after) == ["True True", "True", "[0.5, 0.5] True"]


def test_scipy_that_is_there_already_is_used(answer):
    after = "print('scipy.linalg.cython_blas' in sys.modules)"

    assert answer("import scipy.linalg", after) == ["True True", "True"]


def test_where_the_module_is_not_found_numba_looks_for_it(answer):
    before = "from srcdiff.backends.numba import blas\nblas._find = lambda: False"

    assert answer(before, "print('scipy.linalg' in sys.modules)") == ["True True", "True"]
