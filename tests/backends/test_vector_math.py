"""Vector functions in compiled loops: which ones are called, their results, and that other code is unaffected."""

from __future__ import annotations

import math
import re

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import numba_cpu, vector_math

pytestmark = pytest.mark.numba
needs_library = pytest.mark.skipif(not vector_math.are_used(), reason="there is no libmvec, or Numba uses SVML")

LARGEST_ERROR = 4.0  # in units in the last place: the bound for functions of libmvec in vector_math

# By their names in libm: the spelling in generated code, and the sampled range.
FUNCTIONS = {
    "exp": ("np.exp(x[i])", (-80.0, 80.0)),
    "exp2": ("np.exp2(x[i])", (-100.0, 100.0)),
    "expm1": ("np.expm1(x[i])", (-30.0, 30.0)),
    "log": ("np.log(x[i])", (0.0, 50.0)),
    "log2": ("np.log2(x[i])", (0.0, 50.0)),
    "log10": ("np.log10(x[i])", (0.0, 50.0)),
    "log1p": ("np.log1p(x[i])", (-1.0, 10.0)),
    "sin": ("np.sin(x[i])", (-50.0, 50.0)),
    "cos": ("np.cos(x[i])", (-50.0, 50.0)),
    "tan": ("np.tan(x[i])", (-50.0, 50.0)),
    "asin": ("np.arcsin(x[i])", (-1.0, 1.0)),
    "acos": ("np.arccos(x[i])", (-1.0, 1.0)),
    "atan": ("np.arctan(x[i])", (-20.0, 20.0)),
    "sinh": ("np.sinh(x[i])", (-50.0, 50.0)),
    "cosh": ("np.cosh(x[i])", (-50.0, 50.0)),
    "tanh": ("np.tanh(x[i])", (-5.0, 5.0)),
    "asinh": ("np.arcsinh(x[i])", (-20.0, 20.0)),
    "acosh": ("np.arccosh(x[i])", (1.0, 20.0)),
    "atanh": ("np.arctanh(x[i])", (-1.0, 1.0)),
    "erf": ("math.erf(x[i])", (-2.0, 2.0)),
    "erfc": ("math.erfc(x[i])", (-2.0, 2.0)),
    "atan2": ("np.arctan2(x[i], y[i])", (-20.0, 20.0)),
    "hypot": ("np.hypot(x[i], y[i])", (-20.0, 20.0)),
    "cbrt": ("np.cbrt(x[i])", (-20.0, 20.0)),
    "pow": ("x[i] ** y[i]", (0.0, 9.0)),
}
POSITIONS = {name: k for k, name in enumerate(FUNCTIONS)}

SPECIAL = [0.0, math.inf, math.nan, 0.5, 1.0, 2.0, 1e-310, 1e-40, 1e-5, 20.0, 88.5, 104.0, 710.0, 746.0, 1e30]


def everything(dtype):
    """A compiled function that computes all of them, each in a loop of its own, into the rows of `out`."""
    lines = ["import math", "import numpy as np", "def everything(x, y, out):"]
    for name, position in POSITIONS.items():
        lines += ["    for i in range(x.shape[0]):", f"        out[{position}, i] = {FUNCTIONS[name][0]}"]
    function = numba_cpu.load("\n".join(lines), ["everything"], {}, {}, f"<all functions of {dtype.__name__}>")
    array = numba.typeof(np.zeros(1, dtype))
    function.compile((array, array, numba.typeof(np.zeros((1, 1), dtype))))
    return function


@pytest.fixture(scope="module")
def compiled():
    return {dtype: everything(dtype) for dtype in (np.float64, np.float32)}


def values(function, x, y):
    out = np.empty((len(FUNCTIONS), len(x)), x.dtype)
    function(x, y, out)
    return out


def exact(name, x, y):
    """The values, computed in a longer type."""
    longer = np.longdouble if x.dtype == np.float64 else np.float64
    if name in ("erf", "erfc"):  # NumPy has none; Python's are off by one unit in the last place in the sampled range
        return np.array([getattr(math, name)(v) for v in x.tolist()], longer)
    called = eval(f"lambda x, y, i: {FUNCTIONS[name][0]}", {"np": np})
    with np.errstate(all="ignore"):
        return called(x.astype(longer), y.astype(longer), slice(None))


def vector_calls(function):
    """The vector functions that the optimised code calls, itself or through those with a mask."""
    (text,) = function.inspect_llvm().values()
    code = re.sub(r"define [^\n]*@srcdiff\.masked\..*?\n}\n", "", text, flags=re.DOTALL)
    return set(re.findall(r"call [^@\n]*@((?:srcdiff\.masked\.)?_ZGV\w+)\(", code))


def functions_in_library(bits):
    suffix = "f" if bits == 32 else ""
    arity = {name: 2 if "y[i]" in spelling else 1 for name, (spelling, _) in FUNCTIONS.items()}
    return {name for name in FUNCTIONS if vector_math.vector_functions(name + suffix, bits, arity[name], ["+avx2"])}


@needs_library
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_call_every_function_that_the_library_has(compiled, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    suffix = "f" if bits == 32 else ""
    called = {name.partition("_")[2].partition("_")[2].removesuffix(suffix) for name in vector_calls(compiled[dtype])}

    # Numba computes one in float64, and srcdiff composes another
    made = {"tanh"} if bits == 64 else set()
    assert functions_in_library(bits) - {"acosh"} - made == called - {"acosh"}
    assert made <= functions_in_library(bits)
    assert "exp" in called


@needs_library
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_numpy(compiled, name, dtype):
    numbers = np.array([*SPECIAL, *(-v for v in SPECIAL)])
    with np.errstate(over="ignore", under="ignore"):
        x, y = (grid.ravel().astype(dtype) for grid in np.meshgrid(numbers, numbers))
    actual = values(compiled[dtype], x, y)[POSITIONS[name]]
    with np.errstate(all="ignore"):
        expected = exact(name, x, y).astype(dtype)

    assert np.array_equal(np.isnan(expected), np.isnan(actual))
    real = ~np.isnan(expected)
    assert np.array_equal(np.signbit(expected[real]), np.signbit(actual[real]))
    assert np.array_equal(np.isinf(expected), np.isinf(actual))
    finite = np.isfinite(expected)
    units = np.abs(actual[finite] - expected[finite]) / np.spacing(np.abs(expected[finite]))
    assert np.max(units) <= LARGEST_ERROR + 0.5  # the expected value is rounded


@needs_library
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_a_few_units_in_the_last_place(compiled, name, dtype):
    random = np.random.default_rng(3)
    x, y = random.uniform(*FUNCTIONS[name][1], (2, 4096)).astype(dtype)
    actual = values(compiled[dtype], x, y)[POSITIONS[name]]
    expected = exact(name, x, y)

    units = np.abs(actual - expected) / np.spacing(np.abs(expected).astype(dtype))
    assert np.max(units[np.isfinite(units)]) <= LARGEST_ERROR


def surprise(w, x, steps):
    """Several functions, in loops over arrays and in one that cannot be vectorised."""
    z = np.tanh(x * w) + np.sin(x)
    total = np.sum(np.log1p(np.exp(-np.abs(z))) + np.where(z > 0.0, np.log(2.0 + z), np.cos(z) * z))
    state = 0.5
    for _ in range(steps):
        state = math.sin(state + total) + math.cos(state + total)
    return total + state


POINT = (np.linspace(0.1, 2.0, 101), np.linspace(-3.0, 3.0, 101), 4)


@needs_library
def test_gradients_call_vector_functions_and_agree_with_the_python_backend():
    derivative = srcdiff.value_and_grad(surprise)
    value, w_bar = derivative(*POINT)
    expected, w_expected = srcdiff.value_and_grad(surprise, backend="python")(*POINT)

    np.testing.assert_allclose(value, expected, rtol=1e-12)  # the last operations amplify the error of the sum
    np.testing.assert_allclose(w_bar, w_expected, rtol=1e-12, atol=1e-14)
    called = {name.rpartition("_")[2] for name in vector_calls(derivative.latest.function)}
    assert {"exp", "sin", "cos", "log"} <= called


def test_gradients_of_float32_agree_with_the_python_backend():
    w, x, steps = (p.astype(np.float32) if isinstance(p, np.ndarray) else p for p in POINT)
    w_bar = srcdiff.grad(surprise)(w, x, steps)
    expected = srcdiff.grad(surprise, backend="python")(w, x, steps)

    assert w_bar.dtype == np.float32
    np.testing.assert_allclose(w_bar, expected, rtol=1e-3, atol=1e-5)  # a sum of a hundred numbers, and its sine


def entropy(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            total -= x[i] * math.log(x[i])
    return total


@needs_library
def test_branches_call_functions_with_a_mask():
    derivative = srcdiff.grad(entropy)

    for x in (np.linspace(-1.0, 1.0, 41), np.linspace(-2.0, -1.0, 40), np.linspace(1.0, 2.0, 40), np.full(9, np.nan)):
        expected = srcdiff.grad(entropy, backend="python")(x)
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-14, atol=1e-15)  # zero where the logarithm is -1
    called = vector_calls(derivative.latest.function)
    assert called
    assert all(name.startswith("srcdiff.masked.") and name.endswith("_log") for name in called)


@needs_library
def test_vector_registers_spilled_around_calls_are_aligned_on_the_stack():
    sums = [f"    s{k} += np.exp(x[i] + {k}.0) * x[i]" for k in range(6)]
    names = ", ".join(f"s{k}" for k in range(6))
    body = "\n".join(f"    {line}" for line in sums)
    text = (
        f"import numpy as np\ndef f(x):\n    {names} = x[:6]\n    for i in range(len(x)):\n{body}\n    return {names}"
    )
    function = numba_cpu.load(text, ["f"], {}, {}, "<sums>")
    function(np.ones(9))
    (text,) = function.inspect_asm().values()

    assert re.search(r"[xyz]mm\d+, \d+\(%rsp\)", text)
    assert re.search(r"andq\s+\$-(16|32|64), %rsp", text)


def test_two_names_of_a_function_have_the_same_vector_functions():
    lines = ["import math", "import numpy as np", "def both(x, out):", "    for i in range(x.shape[0]):"]
    text = "\n".join([*lines, "        out[i] = np.log2(x[i]) + math.log2(x[i])"])
    x = np.linspace(1.0, 2.0, 40)
    out = np.empty(40)
    numba_cpu.load(text, ["both"], {}, {}, "<both>")(x, out)

    np.testing.assert_allclose(out, 2.0 * np.log2(x), rtol=1e-14)


@needs_library
def test_integers_are_taken_for_floats():
    def growth(x, k):
        total = 0.0
        for i in range(len(k)):
            total += x * np.exp(k[i])
        return total

    derivative = srcdiff.grad(growth)

    np.testing.assert_allclose(derivative(1.0, np.arange(-8, 9)), np.sum(np.exp(np.arange(-8.0, 9.0))), rtol=1e-14)
    assert vector_calls(derivative.latest.function)


def test_strict_mathematics_calls_no_vector_functions():
    derivative = srcdiff.grad(surprise, fastmath=False)
    derivative(*POINT)

    assert set() == vector_calls(derivative.latest.function)


def total_of_exponentials(x):
    total = 0.0
    for i in range(len(x)):
        total += math.exp(x[i])
    return total


def test_functions_of_users_stay_as_they_are():
    theirs = numba.njit(total_of_exponentials, error_model="numpy", fastmath=set(numba_cpu.FASTMATH))
    srcdiff.grad(total_of_exponentials)(np.ones(8))
    theirs(np.ones(8))

    assert set() == vector_calls(theirs)
    assert "_ZGV" not in theirs.inspect_llvm(theirs.signatures[0])


@pytest.fixture
def without_library(monkeypatch):
    vector_math.ensure_loaded.cache_clear()
    monkeypatch.setattr(vector_math, "_LIBRARY", "libmvec_of_another_platform.so")
    yield
    vector_math.ensure_loaded.cache_clear()


@pytest.mark.usefixtures("without_library")
def test_platforms_without_the_library_compile_as_numba_does():
    derivative = srcdiff.grad(total_of_exponentials)
    x = np.linspace(-1.0, 1.0, 64)

    assert not vector_math.are_used()
    np.testing.assert_allclose(derivative(x), np.exp(x), rtol=1e-15)
    function = derivative.latest.function
    assert "_ZGV" not in function.inspect_llvm(function.signatures[0])


@needs_library
def test_machine_code_finds_the_functions_by_name():
    assert vector_math.ensure_loaded() is vector_math.ensure_loaded()
    assert llvm.address_of_symbol("_ZGVbN2v_exp")
