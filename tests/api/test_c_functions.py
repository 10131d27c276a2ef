"""`g.cfunc`: the address of a compiled function that C calls, from any thread, without Python."""

import collections
import ctypes
import inspect
import pickle
import shutil
import subprocess
import threading
from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff

Pair = collections.namedtuple("Pair", "first second")


@dataclass
class Line:
    slope: np.ndarray
    start: float


def misfit(p, t, measured, weight=2.0):
    """A function of a structure of parameters, with a loop, a branch and an exception."""
    line = p["line"]
    if line.start < -100.0:
        raise ValueError("the start is too low")
    total = 0.0
    for k in range(len(t)):
        r = line.slope[0] * t[k] + line.slope[1] * t[k] ** 2 + line.start - measured[k]
        total += weight * r * r if r > 0.0 else r * r
    waves = abs(p["wave"][1] * p["phase"]) ** 2 + p["wave"][0].imag * p["phases"][1].real
    total += p["pair"].first * p["pair"].second[1, 0] + p["list"][1] * p["list"][0] + p["which"][1] * p["count"]
    return total + waves


def example():
    p = {
        "line": Line(np.array([1.0, -0.5]), 0.25),
        "which": np.array([3, 4]),
        "pair": Pair(1.5, np.arange(6.0).reshape(3, 2)),
        "list": [2.0, 3],
        "count": 2,
        "name": "a",
        "none": None,
        "empty": np.zeros(0),
        "wave": np.array([1.0 + 2.0j, 0.5 - 1.0j]),
        "phase": 0.3 + 0.4j,
        "phases": [1j, 2.0 - 1.0j],
    }
    t = np.linspace(0.0, 2.0, 14)[::2]
    return p, t, np.sin(t)


@pytest.fixture(scope="module")
def c_misfit():
    return srcdiff.grad(misfit).cfunc(*example())


def called(c, x, n=None):
    """The memory that a call from C has written. It contains 99 before."""
    x = np.ascontiguousarray(x)
    gradient, value = np.full(c.n, 99.0), np.full(1, 99.0)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (x, gradient, value)]
    return c.ctypes(c.n if n is None else n, *pointers, None), value[0], gradient


@pytest.mark.smoke
def test_value_and_gradient_are_those_of_python(c_misfit):
    p, t, measured = example()
    value, gradient = srcdiff.value_and_grad(misfit, backend="python")(p, t, measured)

    code, c_value, c_gradient = called(c_misfit, c_misfit.flat.x)

    assert 0 == code
    np.testing.assert_allclose(c_value, value, rtol=1e-14)  # sums may be reordered
    np.testing.assert_allclose(c_gradient, c_misfit.flat.ravel(gradient), rtol=1e-14)


def test_gradient_is_right_at_other_points_than_the_example(c_misfit):
    compare = srcdiff.value_and_grad(misfit)
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=c_misfit.n)
        value, gradient = compare(*c_misfit.flat.arguments(x))
        c_value, c_gradient = c_misfit(x)
        np.testing.assert_allclose(c_value, value, rtol=1e-13)
        np.testing.assert_allclose(c_gradient, c_misfit.flat.ravel(gradient), rtol=1e-13)


def test_exception_is_a_return_code_and_nothing_is_written(c_misfit):
    x = c_misfit.flat.x.copy()
    x[c_misfit.flat.slices["p['line'].start"]] = -1000.0

    code, value, gradient = called(c_misfit, x)

    assert (1, 99.0) == (code, value)
    assert np.all(gradient == 99.0)
    with pytest.raises(ValueError, match="the start is too low"):
        c_misfit(x)


def test_wrong_length_and_null_pointers_are_return_codes(c_misfit):
    for n in (0, -1, c_misfit.n - 1, c_misfit.n + 1):
        code, value, gradient = called(c_misfit, c_misfit.flat.x, n)
        assert (-1, 99.0) == (code, value)
        assert np.all(gradient == 99.0)
    memory = (ctypes.c_double * c_misfit.n)()
    for k in range(3):
        pointers = [None if k == j else memory for j in range(3)]
        assert -2 == c_misfit.ctypes(c_misfit.n, *pointers, None)


def test_nan_and_infinity_are_values():
    c = srcdiff.grad(lambda x: x[0] * np.log(x[1])).cfunc(np.ones(2))
    code, value, gradient = called(c, [1.0, -1.0])
    assert 0 == code
    assert np.isnan(value)
    code, value, gradient = called(c, [np.nan, 1.0])
    assert 0 == code
    assert np.isnan(gradient[1])
    code, value, _ = called(c, [1.0, 0.0])
    assert (0, -np.inf) == (code, value)


def test_other_arguments_are_bound_at_creation():
    scale = np.array([1.0, 2.0])
    c = srcdiff.grad(lambda x, scale: np.sum(x * scale)).cfunc(np.ones(2), scale)
    scale[:] = 7.0
    assert [1.0, 2.0] == c(np.zeros(2))[1].tolist()


OUTSIDE = np.array([2.0, 3.0])


def test_arrays_from_outside_are_bound_at_creation():
    c = srcdiff.grad(lambda x: np.sum(x * OUTSIDE)).cfunc(np.ones(2))
    assert [2.0, 3.0] == c(np.zeros(2))[1].tolist()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x * x, (3.0,)),
        (lambda x: x * x, (np.float32(3.0),)),
        (lambda x: x * x, (3,)),
        (lambda x: np.sum(x**2), (np.arange(6.0, dtype=np.float32).reshape(2, 3),)),
        (lambda x: np.sum(x**2), (np.arange(6.0).reshape(2, 3).T,)),
        (lambda x: np.sum(x**2), (np.array(2.0),)),
        (lambda x: x[0] * x[1][0], ((2.0, [3.0]),)),
        (lambda x, y: np.sum(x * y), (np.ones((3, 1)), np.arange(4.0))),
        (lambda x, k: np.sum(x[k]), (np.arange(4.0), np.array([True, False, True, True]))),
        (lambda x, k: np.sum(x[k]), (np.arange(4.0), np.array([1, 1, 3], np.int32))),
        (lambda x, flag: x * x if flag else x, (3.0, True)),
        (lambda x, s: x * x if s == "square" else x, (3.0, "square")),
        (lambda x, y, z: x * y["a"] * z[0][1], (3.0, {"a": 2.0}, ((1, 4.0), "s", None))),
        (lambda x, *y, **z: x * y[0] * z["a"], (3.0, 4.0)),
        (lambda x: np.sum(x @ x), (np.arange(4.0).reshape(2, 2),)),
    ],
    ids=range(15),
)
def test_kinds_of_arguments(function, args):
    keywords = {"a": 2.0} if function.__code__.co_flags & inspect.CO_VARKEYWORDS else {}
    g = srcdiff.value_and_grad(function)
    c = g.cfunc(*args, **keywords)
    value, gradient = g(*args, **keywords)
    c_value, c_gradient = c(c.flat.x)
    np.testing.assert_allclose(c_value, value, rtol=1e-7 if c.flat.parts[0].kind == np.float32 else 1e-14)
    np.testing.assert_allclose(c_gradient, c.flat.ravel(gradient), rtol=1e-14)


def test_several_arguments_and_auxiliary_results():
    def f(a, data, b):
        return a * np.sum(b * data), {"seen": b}

    c = srcdiff.grad(f, wrt=("b", "a"), has_aux=True).cfunc(2.0, np.array([1.0, 3.0]), np.array([4.0, 5.0]))
    value, gradient = c([4.0, 5.0, 2.0])
    assert (38.0, [2.0, 6.0, 19.0]) == (value, gradient.tolist())


class Model:
    def __init__(self, w, scale):
        self.w, self.scale, self.name = w, scale, "model"

    def loss(self, t):
        return self.scale * np.sum(self.w * t)


def test_instances_are_parameters_and_data():
    model, other = Model(np.array([1.0, 2.0]), 3.0), Model(np.array([4.0, 5.0]), 6.0)
    c = srcdiff.grad(lambda m, other: m.loss(other.w)).cfunc(model, other)
    value, gradient = c([1.0, 2.0, 3.0])
    assert (42.0, [12.0, 15.0, 14.0]) == (value, gradient.tolist())


def test_function_that_writes_to_its_argument_leaves_the_vector_alone():
    def f(x):
        x[0] = x[0] * x[1]
        return x[0] * x[0]

    c = srcdiff.grad(f).cfunc(np.array([2.0, 3.0]))
    x = np.array([2.0, 3.0])
    code, value, gradient = called(c, x)
    assert (0, 36.0, [36.0, 24.0], [2.0, 3.0]) == (code, value, gradient.tolist(), x.tolist())


def test_derivatives_without_c_function_are_refused():
    with pytest.raises(TypeError, match="compiled by Numba"):
        srcdiff.grad(lambda x: x, backend="python").cfunc(1.0)
    with pytest.raises(ValueError, match="have no parameters"):
        srcdiff.grad(lambda x, y: y).cfunc({"name": "a"}, 1.0)
    with pytest.raises(TypeError, match=r"lists of real and complex numbers, such as that of `z\[0\]`"):
        srcdiff.grad(lambda z: abs(z[0])).cfunc([1j, 1.0])
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.grad(lambda x: eval("x")).cfunc(1.0)


def test_vectors_of_another_kind_are_refused_in_python(c_misfit):
    with pytest.raises(ValueError, match="must have the shape"):
        c_misfit(np.zeros(1))
    with pytest.raises(TypeError, match="real numbers"):
        c_misfit(np.zeros(c_misfit.n, complex))
    assert c_misfit(np.repeat(c_misfit.flat.x, 2)[::2])[0] == c_misfit(c_misfit.flat.x)[0]  # not contiguous
    with pytest.raises(TypeError, match="is valid only in this process"):
        pickle.dumps(c_misfit)


def test_python_threads_get_the_same_numbers(c_misfit):
    expected = c_misfit(c_misfit.flat.x)
    wrong = []

    def work():
        for _ in range(300):
            value, gradient = c_misfit(c_misfit.flat.x)
            if value != expected[0] or not np.array_equal(gradient, expected[1]):
                wrong.append(value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


DESCENT = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*function)(int64_t n, const double *x, double *gradient, double *value, void *data);
typedef struct { function f; int64_t n; double *x; double rate; int steps; int code; double value; } descent;

int run(descent *d) {
    double *gradient = malloc(d->n * sizeof(double));
    for (int k = 0; k < d->steps; k++) {
        d->code = d->f(d->n, d->x, gradient, &d->value, NULL);
        if (d->code) break;
        for (int64_t j = 0; j < d->n; j++) d->x[j] -= d->rate * gradient[j];
    }
    free(gradient);
    return d->code;
}

static void *work(void *d) { run(d); return NULL; }

/* Threads that Python does not know; 77 if one does not end, because it waits for Python. */
int run_threads(descent *all, int count) {
    pthread_t threads[16];
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    for (int k = 0; k < count; k++) pthread_create(&threads[k], NULL, work, &all[k]);
    for (int k = 0; k < count; k++) if (pthread_timedjoin_np(threads[k], NULL, &end)) return 77;
    return 0;
}
"""


class Descent(ctypes.Structure):
    _fields_ = (
        ("f", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("x", ctypes.c_void_p),
        ("rate", ctypes.c_double),
        ("steps", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", ctypes.c_double),
    )


@pytest.fixture(scope="module")
def descent(tmp_path_factory):
    """The library of a C program. `PyDLL` keeps Python's lock during its calls."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc to compile the C program")
    folder = tmp_path_factory.mktemp("c")
    (folder / "descent.c").write_text(DESCENT)
    library = folder / "descent.so"
    command = [compiler, "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-pthread", folder / "descent.c", "-o", library]
    subprocess.run(command, check=True)
    return ctypes.PyDLL(str(library))


def bowl(p, centre):
    distance = np.zeros(len(centre))
    for k in range(len(centre)):
        distance[k] = p["x"][k] - centre[k]
    if p["height"] > 100.0:
        raise ValueError("too high")
    return np.sum(distance**2) + (p["height"] - 1.0) ** 2


@pytest.mark.smoke
def test_c_program_descends_along_the_gradient(descent):
    centre = np.arange(5000.0)  # larger than what Numba takes from Python's small blocks
    c = srcdiff.grad(bowl).cfunc({"x": np.zeros(5000), "height": 0.0}, centre)
    x = c.flat.x.copy()
    state = Descent(c.address, c.n, x.ctypes.data, 0.25, 60, 99, 99.0)

    assert 0 == descent.run(ctypes.byref(state))
    assert state.value < 1e-12
    np.testing.assert_allclose(c.flat.unravel(x)["x"], centre, atol=1e-9)


def test_c_threads_call_it_while_python_holds_its_lock(descent):
    centre = np.arange(5000.0)
    c = srcdiff.grad(bowl).cfunc({"x": np.zeros(5000), "height": 0.0}, centre)
    starts = [c.flat.x + k for k in range(4)]
    starts[3][-1] = 1000.0  # it raises
    states = (Descent * 4)(*(Descent(c.address, c.n, x.ctypes.data, 0.25, 60, 99, 99.0) for x in starts))

    assert 0 == descent.run_threads(states, 4)  # 77 means that it waited for Python
    assert [0, 0, 0, 1] == [state.code for state in states]
    for x in starts[:3]:
        np.testing.assert_allclose(x[:-1], centre, atol=1e-9)
    assert 1000.0 == starts[3][-1]
