"""Call a gradient from C: a C program descends from several starts, in threads, and no Python runs meanwhile."""

import ctypes
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import srcdiff

DESCENT = """
#include <stdint.h>
#include <stdlib.h>

typedef int (*function)(int64_t n, const double *x, double *gradient, double *value, void *data);

int descend(function f, int64_t n, double *x, double *value, double rate, int steps) {
    double *gradient = malloc(n * sizeof(double));
    int code = 0;
    for (int k = 0; k < steps && !code; k++) {
        code = f(n, x, gradient, value, NULL);
        for (int64_t j = 0; j < n && !code; j++) x[j] -= rate * gradient[j];
    }
    free(gradient);
    return code;
}
"""


def misfit(params, t, measured):
    """The difference between a damped oscillation and the measurements."""
    if params["damping"] < 0.0:
        raise ValueError("the damping is negative")
    total = 0.0
    for k in range(len(t)):
        wave = params["size"][0] * np.cos(2.0 * t[k]) + params["size"][1] * np.sin(2.0 * t[k])
        total += (np.exp(-params["damping"] * t[k]) * wave - measured[k]) ** 2
    return total / len(t)


t = np.linspace(0.0, 5.0, 200)
measured = np.exp(-0.3 * t) * (1.5 * np.cos(2.0 * t) - 0.5 * np.sin(2.0 * t))
start = {"size": np.array([1.0, 0.0]), "damping": 0.1}

gradient = srcdiff.grad(misfit)
f = gradient.cfunc(start, t, measured)
print("parameters:", ", ".join(f.flat.names))


def descended(descend, x):
    """The exit code of the C program, and the parameters that it finds from a start."""
    found, value = x.copy(), ctypes.c_double()
    pointer = ctypes.c_void_p(found.ctypes.data)
    code = descend(ctypes.c_void_p(f.address), f.n, pointer, ctypes.byref(value), ctypes.c_double(0.5), 3000)
    return code, found


compiler = shutil.which("cc") or shutil.which("gcc")
if compiler is None:
    print("there is no C compiler here")
else:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "descent.c").write_text(DESCENT)
        library = Path(folder) / "descent.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", f"{folder}/descent.c", "-o", library], check=True)
        descend = ctypes.CDLL(str(library)).descend
    starts = [f.flat.x + 0.1 * k for k in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for code, found in threads.map(lambda x: descended(descend, x), starts):
            params = f.flat.unravel(found)
            print(f"returned {code}: size {params['size'].round(6)}, damping {params['damping']:.6f}")
            assert code == 0
            assert np.allclose(found, [1.5, -0.5, 0.3], atol=1e-6)

    code, left = descended(descend, f.flat.ravel({"size": np.ones(2), "damping": -1.0}))
    print(f"returned {code}: the function has raised an exception, and nothing is written")
    assert code == 1
    assert np.array_equal(left, [1.0, 1.0, -1.0])
