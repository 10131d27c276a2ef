"""The Numba options of a function are part of it: signatures, types of variables, and options."""

import cProfile
import dataclasses
import inspect
import sys

import numba
import numpy as np
import pytest
from numba import float32, float64, int64, njit, uint32, vectorize
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import overload, register_jitable

import srcdiff
from srcdiff.frontend.source.numba_options import told

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
ZERO = pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning")


@njit("float64(int64)")
def whole(n):
    return 2.5 * n


@njit("float64(float64)")
def half(x):
    return 0.5 * x * x


@njit(["int64(int64)", "float64(float64)"])
def either(x):
    return x / 2 * 3


@njit("float32(float64)")
def short(x):
    return x * x / 3


@njit("int64(float64)")
def rounded_down(x):
    return 1.5 * x


@njit("float64(UniTuple(float64, 2), float64)")
def pair(t, x):
    return t[0] * t[1] / x


@njit("float64(float64, int64)")
def powers(x, n):
    return 1.0 if n <= 0 else x * powers(x, n - 1.5)


@njit("float64(float64[::1], int32)")
def repeated(x, n):
    return np.sum(x) * n


@njit(locals={"s": int64})
def cut(x):
    s = 0
    for k in range(3):
        s = s + k * x
    return s + 0.5 * x


@njit(locals={"s": float64, "x": float64, "k": int64})
def same(x):
    s = 0
    for k in range(3):
        s = s + k * x
    return s + 0.5 * x


@njit(locals={"x": int64})
def argument(x):
    return 2.5 * x


@njit(locals={"t": float32})
def single(x):
    t = x / 3.0
    return t * 2.0


@njit(locals={"first": int64})
def unpacked(x):
    first, second = x, x
    return first + second


VALUES = [
    (whole, (2.7,), 0.0),
    (whole, (3,), 0.0),
    (half, (2.7,), 2.7),
    (half, (3,), 3.0),
    (either, (2.5,), 1.5),
    (short, (1.1,), 2.2 / 3),
    (pair, ((2, 3), 4), (0.75, 0.5)),
    (powers, (2.5, 4), 12.0 * 2.5**2 / 4.0),
    (repeated, (np.array([1.0, 2.0]), 3), (3.0, 3.0)),
    (cut, (1.7,), 0.5),
    (same, (1.7,), 3.5),
    (argument, (2.7,), 0.0),
    (single, (1.1,), 2.0 / 3.0),
    (unpacked, (1.7,), 1.0),
]


@ZERO
@pytest.mark.parametrize(("function", "arguments", "gradient"), VALUES, ids=lambda x: getattr(x, "__name__", ""))
def test_values_are_those_of_the_compiled_function(function, arguments, gradient):
    value, bar = srcdiff.value_and_grad(function, backend="python")(*arguments)

    assert value == function(*arguments)
    np.testing.assert_allclose(bar, gradient, rtol=1e-15)


def everything(x, n):
    cuts = whole(x) + cut(x) + argument(x) + unpacked(x)
    keeps = half(x) + same(x) + single(x) + short(x) + pair((x, 2.0), 2) + powers(x, 4)
    return cuts + keeps + x * either(n) + rounded_down(x) * x


@ZERO
@pytest.mark.numba
def test_helpers_compute_in_the_types_declared_to_numba():
    value, bar = srcdiff.value_and_grad(everything)(1.7, 3)
    python = srcdiff.value_and_grad(everything, backend="python")(1.7, 3)

    x = 1.7
    keeps = x + 3.5 + 2.0 / 3.0 + 2.0 * x / 3.0 + 1.0 + 3.0 * x * x + either(3) + rounded_down(x)
    assert value == pytest.approx(everything(1.7, 3), rel=1e-7)  # one of the numbers is of float32
    np.testing.assert_allclose((value, bar), python, rtol=1e-7)
    assert bar == pytest.approx(0.5 + 1.0 + keeps, rel=1e-15)


def test_the_warning_names_the_signature():
    with pytest.warns(
        srcdiff.ZeroGradientWarning, match=r'cast to an integer in line \d+, `@njit\("float64\(int64\)"\)`'
    ):
        srcdiff.grad(whole, backend="python")(2.7)


@ZERO
def test_forward_mode_and_second_derivatives_follow_the_signature():
    assert srcdiff.jvp(whole, (2.7,), (1.0,), backend="python") == (5.0, 0.0)
    assert srcdiff.hessian(half, backend="python")(3.0) == 1.0
    assert srcdiff.grad(srcdiff.grad(whole, backend="python"), backend="python")(2.7) == 0.0
    assert srcdiff.grad(lambda x: x * srcdiff.grad(half)(x), backend="python")(2.0) == 4.0


def test_an_integer_result_is_no_float_to_differentiate():
    with pytest.raises(srcdiff.DifferentiationError, match="the result is an integer"):
        srcdiff.grad(rounded_down, backend="python")(2.7)


@pytest.mark.parametrize("argument", [np.ones(2, np.float32), np.ones((2, 2)), 1.5])
def test_what_numba_does_not_convert_is_refused(argument):
    with pytest.raises(TypeError):
        repeated(argument, 3)
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD304.*`float64\(float64\[:\], int32\)`"):
        srcdiff.grad(repeated, backend="python")(argument, 3)
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD304.*(?s:.)*repeated\(x, 3\) \* 2.0"):
        srcdiff.grad(lambda x: repeated(x, 3) * 2.0, backend="python")(argument)


@njit(["float64(float64[::1])", "int64(float64[:])"])
def by_layout(a):
    return a[0] * 1.5


def test_signatures_that_only_the_layout_of_arrays_tells_apart_are_refused():
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD304.*the memory layout decides"):
        srcdiff.grad(by_layout, backend="python")(np.ones(2))


def test_short_integers_raise_where_they_would_wrap_around():
    assert srcdiff.value_and_grad(lambda x: repeated(x, 2**31 - 1), backend="python")(np.ones(1))[0] == 2.0**31 - 1
    with pytest.raises(OverflowError, match="`n` does not fit into int32"):
        srcdiff.grad(repeated, backend="python")(np.ones(2), 2**31)


def test_keywords_are_in_the_order_of_the_parameters():
    assert srcdiff.value_and_grad(lambda x: powers(n=2.9, x=x), backend="python")(3.0) == (powers(3.0, 2.9), 6.0)


# -- options ---------------------------------------------------------------------------------------------------------


@njit(error_model="python")
def raises(x, y):
    return x / y + x // 2.0 + x % 1.5


@njit(error_model="numpy")
def inverse(x):
    return 1.0 / x


@pytest.mark.parametrize("backend", BACKENDS)
def test_division_by_zero_raises_if_a_numba_option_says_so(backend):
    assert srcdiff.value_and_grad(raises, backend=backend)(3.0, 2.0) == (raises(3.0, 2.0), 1.5)
    with pytest.raises(ZeroDivisionError):
        srcdiff.grad(raises, backend=backend)(3.0, 0.0)


def test_division_by_zero_is_a_matter_of_each_function():
    assert srcdiff.grad(raises, backend="python", error_model="numpy")(3.0, 0.0) == np.inf
    assert srcdiff.value_and_grad(lambda x, y: inverse(y) + raises(x, 1.0), backend="python")(3.0, 0.0)[0] == np.inf
    with pytest.raises(ZeroDivisionError):
        srcdiff.grad(lambda x, y: inverse(y) + raises(x, y), backend="python")(3.0, 0.0)


def test_divisions_are_only_checked_if_an_option_says_so():
    checked, plain = (srcdiff.source(f, 3.0, 2.0) for f in (raises, raises.py_func))

    assert checked.count("ZeroDivisionError") == 1  # a division by a constant needs no test
    assert "ZeroDivisionError" not in plain
    assert "OverflowError" not in srcdiff.source(half, 2.0)
    assert srcdiff.source(half, 2.0) == srcdiff.source(half.py_func, 2.0)


@njit(boundscheck=True)
def element(x, k):
    return x[k] * x[k]


@pytest.mark.numba
def test_indices_are_checked_if_a_numba_option_says_so():
    gradient = srcdiff.grad(lambda x, k: 2.0 * element(x, k))

    assert gradient(np.array([1.0, 3.0]), 1).tolist() == [0.0, 12.0]
    with pytest.raises(IndexError):
        gradient(np.array([1.0, 3.0]), 2)


def test_compiled_code_has_the_least_freedom_that_a_function_allows():
    strict, some, free = (njit(fastmath=f)(half.py_func) for f in (False, {"contract", "nnan"}, True))

    def options(*functions):
        exported = srcdiff.export(srcdiff.grad(lambda x: sum([f(x) for f in functions])), None, 1.5)
        return exported.split("fastmath=")[1].split(")")[0]

    assert options(free).startswith("{'arcp', 'contract', 'nsz', 'reassoc'}")
    assert options(free, some).startswith("{'contract'}")
    assert options(free, some, strict).startswith("False")


# -- what is refused -------------------------------------------------------------------------------------------------


class Other(CompilerBase):
    def define_pipelines(self):
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


@njit(pipeline_class=Other)
def otherwise(x):
    return x * x


@njit(locals={"n": uint32})
def without_sign(x):
    n = x
    return 2.5 * n


@njit(locals={"a": float64[:]})
def other_array(x):
    a = np.ones(2, np.float32) * x
    return a[0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (otherwise, "compiled with `pipeline_class=Other`"),
        (without_sign, "`n` of `without_sign` has the type uint32"),
        (other_array, r"`a` of `other_array` is declared as float64\[:\]"),
    ],
)
def test_what_is_not_followed_is_refused_with_the_line(function, reason):
    argument = np.float32(1.5) if function is other_array else 1.5
    with pytest.raises(srcdiff.DifferentiationError, match=rf"SD307.*{reason}(?s:.)*test_numba_options.py"):
        srcdiff.grad(function, backend="python")(argument)
    with pytest.raises(srcdiff.DifferentiationError, match=f"SD307.*{reason}"):
        srcdiff.grad(lambda x: 2.0 * function(x), backend="python")(argument)


def doubled(x):
    return 2.0 * x


def quartered(x):
    return 0.25 * x


@overload(doubled)
def _tripled(x):
    return lambda x: 3.0 * x


@register_jitable
def halved(x):
    return 0.5 * x


@njit
def replaced(x):
    return doubled(x)


@njit
def as_written(x):
    return halved(x)


@overload(quartered)
def _other_by_layout(x):
    if isinstance(x, numba.types.Array) and x.layout == "C":
        return lambda x: 5.0 * x
    return lambda x: 3.0 * x


@njit
def by_the_layout(x):
    return np.sum(quartered(x))


def test_functions_that_are_others_in_compiled_code_are_read_or_refused():
    assert replaced(1.5) == 4.5
    assert srcdiff.value_and_grad(replaced, backend="python")(1.5) == (4.5, 3.0)
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD307.*`quartered`.*`@overload`"):
        srcdiff.grad(by_the_layout, backend="python")(np.ones(3))
    assert srcdiff.value_and_grad(as_written, backend="python")(1.5) == (0.75, 0.5)
    assert srcdiff.value_and_grad(lambda x: doubled(x), backend="python")(1.5) == (3.0, 2.0)


@vectorize(["float64(float64)"])
def elementwise(x):
    return 2.0 * x


def test_a_ufunc_is_not_a_python_function():
    assert 2.0 == srcdiff.grad(lambda x: elementwise(x), backend="python")(1.5)
    with pytest.raises(TypeError, match="not a Python function"):
        srcdiff.grad(elementwise, backend="python")


def test_a_signature_that_was_added_later_is_refused_where_it_returns_integers():
    added = njit(half.py_func)
    added.compile("int64(float64)")

    assert added(2.7) == 3
    with pytest.raises(srcdiff.DifferentiationError, match="compiled `half` to return int64 here"):
        srcdiff.grad(added, backend="python")(2.7)


# -- what changes between calls --------------------------------------------------------------------------------------


@ZERO
@pytest.mark.parametrize("as_helper", [False, True])
def test_signatures_and_options_are_those_of_now(as_helper):
    changing = numba.njit("float64(int64)")(lambda x: 2.5 * x / x)
    changing.targetoptions["error_model"] = "numpy"
    gradient = srcdiff.value_and_grad((lambda x: changing(x)) if as_helper else changing, backend="python")

    assert gradient(2.7) == (2.5, 0.0)
    changing.disable_compile(False)
    changing.compile("float64(float64)")
    changing.disable_compile()
    assert gradient(2.7)[0] == 2.5
    assert np.isnan(gradient(0.0)[0])
    changing.targetoptions["error_model"] = "python"
    with pytest.raises(ZeroDivisionError):
        gradient(0.0)


def test_options_of_all_decorators_are_followed():
    declared = srcdiff.differentiable(whole)
    rule = srcdiff.custom_rule(whole, adjoint=lambda n, out, out_bar: (out_bar,))

    assert told(whole) == told(declared) == told(rule)
    assert told(njit(whole.py_func)) == dataclasses.replace(told(whole), signatures=None)
    assert told(whole.py_func) is None
    assert told(numba.jit("float64(int64)", forceobj=True)(whole.py_func)) is None


@pytest.mark.numba
def test_function_that_numba_ran_under_a_profiler_is_read():
    @njit
    def profiled(x):
        return x * x * x

    profiler = cProfile.Profile()
    profiler.enable()
    profiled(2.0)
    profiler.disable()

    # Before Python 3.12, which has `sys.monitoring`, Numba changes the function, which is why this is a test.
    is_changed = not profiled.py_func.__code__.co_flags & inspect.CO_OPTIMIZED
    assert is_changed == (sys.version_info < (3, 12))
    assert 12.0 == srcdiff.grad(profiled, backend="python")(2.0)
