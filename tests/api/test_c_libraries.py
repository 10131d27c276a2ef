"""Exported libraries run in C programs without Python, and give the same numbers as the function in Python."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import srcdiff
from srcdiff.diagnostics import NotExportedError

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = [pytest.mark.numba, pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")]

PROGRAM = """
#include "misfit.h"
#include <stdio.h>

int main(void) {
    double x[MISFIT_SIZE] = {0.1, 1.0, 0.5}, gradient[MISFIT_SIZE] = {7.0, 7.0, 7.0}, value = 7.0;
    int code = 0;
    for (int k = 0; k < 1000; k++) code = misfit(MISFIT_SIZE, x, gradient, &value, NULL);
    printf("%d %.17g %.17g %.17g %.17g\\n", code, value, gradient[0], gradient[1], gradient[2]);
    x[0] = -1.0;
    gradient[0] = value = 7.0;
    code = misfit(MISFIT_SIZE, x, gradient, &value, NULL);
    printf("%d %g %g %d %d\\n", code, value, gradient[0], misfit(2, x, gradient, &value, NULL),
           misfit(3, NULL, gradient, &value, NULL));
    return 0;
}
"""


def misfit(params, t, flags, count):
    """Keeps values in allocated memory, reads data of several dtypes, and raises."""
    if params["rate"] < 0.0:
        raise ValueError("the rate is negative")
    kept = np.zeros(count)
    total = 0.0
    for k in range(count):
        before = kept[k - 1] if k > 0 else 0.0
        kept[k] = np.exp(-params["rate"] * t[k]) * params["size"][0] * np.cos(2.0 * t[k]) + before * params["size"][1]
        if flags[k % len(flags)]:
            total += np.sin(kept[k]) ** 2
    return total


def made(count=4000):
    t, flags = np.linspace(0.0, 1.0, count), np.array([True, False, True])
    return srcdiff.grad(misfit).cfunc({"rate": 0.1, "size": np.array([1.0, 0.5])}, t, flags, count)


def test_a_program_in_c_without_python(tmp_path):
    c = made()
    library = c.export(tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM)
    link = ["main.c", "-o", "main", "-L.", "-lmisfit", "-Wl,-rpath,."]
    subprocess.run([COMPILER, "-Wall", "-Werror", *link], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True, env={})
    first, second = done.stdout.splitlines()

    value, gradient = c(np.array([0.1, 1.0, 0.5]))
    assert int(first.split()[0]) == 0
    np.testing.assert_allclose([float(word) for word in first.split()[1:]], [value, *gradient], rtol=1e-14)
    assert second == "1 7 7 -1 -2"
    needed = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed.lower()
    header = (tmp_path / "misfit.h").read_text()
    assert " *   x[2]  params['size'][1]\n" in header
    assert "#define MISFIT_SIZE 3\n" in header


FORTRAN = """
program main
    use iso_c_binding
    implicit none
    interface
        integer(c_int) function misfit(n, x, gradient, value, data) bind(c)
            import
            integer(c_int64_t), value :: n
            real(c_double), intent(in) :: x(n)
            real(c_double), intent(out) :: gradient(n), value
            type(c_ptr), value :: data
        end function
    end interface
    real(c_double) :: x(3) = [0.1d0, 1.0d0, 0.5d0], gradient(3), value
    integer(c_int) :: code
    code = misfit(3_c_int64_t, x, gradient, value, c_null_ptr)
    print "(i0, 4(1x, es24.16))", code, value, gradient
end program
"""


RUST = """
use std::os::raw::{c_int, c_void};

#[link(name = "misfit")]
extern "C" {
    fn misfit(n: i64, x: *const f64, gradient: *mut f64, value: *mut f64, data: *mut c_void) -> c_int;
}

fn main() {
    let x = [0.1f64, 1.0, 0.5];
    let (mut gradient, mut value) = ([0.0f64; 3], 0.0f64);
    let code = unsafe { misfit(3, x.as_ptr(), gradient.as_mut_ptr(), &mut value, std::ptr::null_mut()) };
    println!("{} {:e} {:e} {:e} {:e}", code, value, gradient[0], gradient[1], gradient[2]);
}
"""
LANGUAGES = {
    "gfortran": ("main.f90", FORTRAN, ["-L.", "-lmisfit", "-Wl,-rpath,."]),
    "rustc": ("main.rs", RUST, ["-L.", "-Clink-arg=-Wl,-rpath,."]),
}


@pytest.mark.parametrize("compiler", LANGUAGES)
def test_a_program_in_another_language(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    c = made()
    c.export(tmp_path)
    file, text, link = LANGUAGES[compiler]
    (tmp_path / file).write_text(text)
    subprocess.run([compiler, file, "-o", "main", *link], cwd=tmp_path, check=True)
    code, *numbers = subprocess.run(
        ["./main"], cwd=tmp_path, capture_output=True, text=True, check=True, env={}
    ).stdout.split()
    value, gradient = c(np.array([0.1, 1.0, 0.5]))
    assert code == "0"
    np.testing.assert_allclose([float(word) for word in numbers], [value, *gradient], rtol=1e-14)


def algebra(p, b):
    """Calls gemm, gemv, dot, potrf, getrf, getri, trsm and gesv."""
    product = np.tanh(b @ p["a"]) @ p["a"][0]
    factor = np.linalg.cholesky(p["a"])
    return (
        np.sum(product) * np.sum(product @ product)
        + np.sum(np.log(np.diag(factor)))
        + b[0] @ np.linalg.inv(p["a"]) @ b[1]
        + b[0] @ np.linalg.solve(p["a"], b[1])
        + np.sum(p["a"] @ np.linalg.solve(b[: b.shape[1]], b[1]))
    )


CALLER = """
#include "algebra.h"
#include <stdio.h>

int main(void) {
    static double x[ALGEBRA_SIZE], gradient[ALGEBRA_SIZE], value;
    for (int k = 0; k < ALGEBRA_SIZE; k++)
        if (scanf("%lf", x + k) != 1) return 2;
    int code = algebra(ALGEBRA_SIZE, x, gradient, &value, NULL);
    printf("%d %.17g", code, value);
    for (int k = 0; k < ALGEBRA_SIZE; k++) printf(" %.17g", gradient[k]);
    return 0;
}
"""


def test_linear_algebra_by_the_blas_of_the_machine(tmp_path):
    random = np.random.default_rng(0)
    size = 20
    a, b = random.normal(size=(size, size)), random.normal(size=(30, size))
    c = srcdiff.grad(algebra).cfunc({"a": a + a.T + 30.0 * np.eye(size)}, b)
    try:
        library = c.export(tmp_path)
    except NotExportedError as error:
        if "no BLAS to link" not in str(error):
            raise
        pytest.skip("there is no BLAS (on Debian: apt-get install liblapack-dev)")
    (tmp_path / "main.c").write_text(CALLER)
    link = ["main.c", "-o", "main", "-L.", "-lalgebra", "-Wl,-rpath,."]
    subprocess.run([COMPILER, *link], cwd=tmp_path, check=True)
    text = " ".join(map(repr, c.flat.x.tolist()))
    done = subprocess.run(["./main"], cwd=tmp_path, input=text, capture_output=True, text=True, check=True, env={})
    code, *numbers = done.stdout.split()
    value, gradient = c(c.flat.x)
    assert code == "0"
    np.testing.assert_allclose([float(word) for word in numbers], [value, *gradient], rtol=1e-11)
    needed = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed.lower()


def shapes(p, flat):
    table = (p["a"] * 2.0).reshape(2, 3)
    stacked = table.reshape(-1)[1:] * flat.reshape(3, 2).T.ravel()[1:]
    return np.sum(stacked**2)


def test_arrays_with_other_shapes(tmp_path):
    c = srcdiff.grad(shapes).cfunc({"a": np.linspace(0.5, 2.0, 6)}, np.arange(6.0))
    library = ctypes.CDLL(str(c.export(tmp_path)))
    value, gradient = ctypes.c_double(), np.zeros(c.n)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (c.flat.x, gradient)]
    assert library.shapes(ctypes.c_int64(c.n), *pointers, ctypes.byref(value), None) == 0
    expected, slope = c(c.flat.x)
    np.testing.assert_allclose([value.value, *gradient], [expected, *slope], rtol=1e-13)


def cube(x, y):
    if np.sum(x) > 100.0:
        raise ValueError(f"{np.sum(x)} is too large")  # a message that Python would build
    return np.sum((x - y) ** 3)


def test_two_libraries_in_one_program_of_cpp(tmp_path):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no compiler of C++")
    middle = np.array([1.0, 2.0])
    for name, f in {"square": lambda x, y: np.sum((x - y) ** 2), "cube": cube}.items():
        srcdiff.grad(f).cfunc(np.zeros(2), middle).export(tmp_path, name)
    program = """
    #include "square.h"
    #include "cube.h"
    #include <iostream>
    int main() {
        double x[SQUARE_SIZE] = {2.0, 4.0}, gradient[SQUARE_SIZE], a, b;
        int code = square(2, x, gradient, &a, nullptr) + cube(2, x, gradient, &b, nullptr);
        std::cout << code << " " << a << " " << b << " " << gradient[1] << std::endl;
    }
    """
    (tmp_path / "main.cpp").write_text(program)
    link = ["main.cpp", "-o", "main", "-L.", "-lsquare", "-lcube", "-Wl,-rpath,."]
    subprocess.run([compiler, *link], cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "0 5 9 12\n"


def test_what_needs_python_is_refused_with_a_reason(tmp_path):
    def eigenvalues(x, a):
        return np.sum(np.linalg.eigh(a)[0] * x)

    def printed(x):
        print(x)
        return x * x

    with pytest.raises(NotExportedError, match=r"cannot be a library for C: it calls linear algebra of SciPy"):
        srcdiff.grad(eigenvalues).cfunc(np.ones(3), np.eye(3)).export(tmp_path)
    with pytest.raises(NotExportedError, match=r"it calls Python, or functions that exist only in its process"):
        srcdiff.grad(printed).cfunc(1.0).export(tmp_path)
    with pytest.raises(ValueError, match="'<lambda>' is not a name in C: pass `name`"):
        srcdiff.grad(lambda x: x * x).cfunc(1.0).export(tmp_path)
    for name in ("exp", "double", "main", "index"):
        with pytest.raises(ValueError, match=f"C and its library have the name {name!r}: pass another as `name`"):
            srcdiff.grad(cube).cfunc(np.zeros(2), np.ones(2)).export(tmp_path, name)
    assert not [*tmp_path.iterdir()]
