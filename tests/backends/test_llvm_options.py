"""Options of LLVM: rows of one array in an inner loop are computed as vectors."""

from __future__ import annotations

import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from srcdiff.backends.numba import llvm_options, vector_math

pytestmark = pytest.mark.numba

PROGRAM = '''
import ctypes, math
import numpy as np
import srcdiff
from srcdiff.backends.numba import numba_cpu
import llvmlite.binding as llvm
from numba.core.registry import cpu_target

TEXT = """
import numpy as np
def f(x, steps):
    kept = np.empty((steps, x.shape[0]))
    sines = np.empty((steps, x.shape[0]))
    for step in range(steps):
        row = kept[step]
        for i in range(x.shape[0]):
            t = 0.01 * np.sin(x[i])
            sines[step, i] = t
            row[i] = x[i] + t * x[i]
        x = row
    return x
"""
calls = []
cpu_target.target_context  # Numba names its own functions

@ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
def one_sine(x):
    calls.append(x)
    return math.sin(x)

for name in ("sin", "numba_sin"):
    llvm.add_symbol(name, ctypes.cast(one_sine, ctypes.c_void_p).value)
f = numba_cpu.load(TEXT, ["f"], {}, {}, "<text>")
x = np.linspace(0.0, 1.0, 64)
expected = x
for _ in range(5):
    expected = expected + 0.01 * np.sin(expected) * expected
np.testing.assert_allclose(f(x, 5), expected, rtol=1e-14)
print(len(calls))
'''


@pytest.mark.skipif(not vector_math.are_used(), reason="there is no libmvec, or Numba uses SVML")
@pytest.mark.skipif(llvm.llvm_version_info[0] not in llvm_options._TRIED, reason="LLVM may not have the option")
def test_rows_of_one_array_are_computed_as_vectors():
    said = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout

    assert int(said) == 0, "no sine is computed alone"
