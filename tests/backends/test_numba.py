"""The Numba backend: options, specialisation by types, and the same numbers as the Python backend."""

from __future__ import annotations

import cProfile
import linecache
import math
import pstats
import re
import sys
import traceback
from typing import Any

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba.interrupts import compiled_undisturbed
from srcdiff.backends.numba.numba_cpu import FASTMATH, compiler

pytestmark = pytest.mark.numba


def oscillation(u, rate, steps):
    """Loops, branches, memory and mathematics."""
    total = 0.0
    for _ in range(steps):
        for i in range(1, len(u)):
            if u[i] > u[i - 1]:
                u[i] = u[i] - rate * math.sin(u[i - 1])
            else:
                u[i] = u[i] + rate * u[i - 1] * u[i - 1]
            total += u[i] * u[i]
    return total


POINT = (np.array([0.3, -0.8, 1.7, 0.4]), 0.1, 6)


@pytest.fixture(scope="module")
def compiled() -> srcdiff.Derivative:
    derivative = srcdiff.value_and_grad(oscillation, wrt=("u", "rate"))
    derivative(*POINT)
    return derivative


def test_numbers_are_those_of_the_python_backend(compiled):
    value, (u_bar, rate_bar) = compiled(*POINT)
    expected, (u_expected, rate_expected) = srcdiff.value_and_grad(oscillation, wrt=(0, 1), backend="python")(*POINT)

    # sums and products may be rounded in another order
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(u_bar, u_expected, rtol=1e-13)
    np.testing.assert_allclose(rate_bar, rate_expected, rtol=1e-13)


def test_text_is_that_of_the_python_backend(compiled):
    python = srcdiff.value_and_grad(oscillation, wrt=(0, 1), backend="python").compile(*POINT)

    assert python.source == compiled.source


def test_types_are_those_of_python(compiled):
    value, (u_bar, rate_bar) = compiled(*POINT)

    assert (float, np.ndarray, float) == (type(value), type(u_bar), type(rate_bar))


def test_same_types_are_compiled_once(compiled):
    function = compiled.latest.function
    before = len(function.signatures)

    compiled(np.zeros(7), 0.5, 2)

    assert function is compiled.latest.function
    assert before == len(function.signatures)


def test_calls_do_not_see_each_other(compiled):
    first = compiled(*POINT)
    compiled(np.ones(9), 0.7, 11)
    second = compiled(*POINT)

    assert first[0] == second[0]
    assert np.array_equal(first[1][0], second[1][0])


def test_nan_and_infinity_come_through(compiled):
    value, (u_bar, _) = compiled(np.array([1.0, np.nan, 2.0]), 0.1, 1)

    assert math.isnan(value)
    assert math.isnan(u_bar[1])


def test_mathematics_is_as_fast_as_keeps_nan_and_infinity(compiled):
    assert "nnan" not in FASTMATH
    assert "ninf" not in FASTMATH
    assert set(FASTMATH) == compiled.latest.function.targetoptions["fastmath"]


def test_options_reach_numba():
    derivative = srcdiff.grad(lambda x: x * x, fastmath=False, error_model="python", boundscheck=True)

    assert derivative(3.0) == 6.0
    options = derivative.latest.function.targetoptions
    assert (False, "python", True) == (options["fastmath"], options["error_model"], options["boundscheck"])


def test_compiled_function_is_a_dispatcher_of_the_generated_source(compiled):
    function = compiled.latest.function

    assert isinstance(function, numba.core.registry.CPUDispatcher)
    code = function.py_func.__code__
    assert "".join(linecache.getlines(code.co_filename)) == compiled.source


def test_defect_in_generated_code_is_reported_as_a_bug_of_srcdiff(monkeypatch):
    """Text of our own that Numba cannot type is not the user's mistake."""
    from srcdiff import pipeline
    from srcdiff.passes.manager import Pass

    def broken(state):
        state.module.text = state.module.text.replace("return", "return undefined_by_mistake +")

    monkeypatch.setattr(pipeline, "PASSES", [*pipeline.PASSES, Pass("defect", broken, "break the source")])

    with pytest.raises(Exception, match="defect of srcdiff") as caught:
        srcdiff.grad(lambda x: x * x * x)(1.5)

    assert "numba" not in "".join(traceback.format_exception_only(caught.value))


def test_growing_buffer_is_right_beyond_its_first_size():
    def many_iterations(x, limit):
        n = 0
        while x < limit:
            x = x * (1.0 + 1.0 / (10.0 + math.sin(x)))
            n += 1
        return x * n

    python, fast = (srcdiff.grad(many_iterations, backend=backend)(1.0, 1e6) for backend in ("python", "numba"))

    np.testing.assert_allclose(fast, python, rtol=1e-11)  # 145 iterations, each with a few roundings


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 == 1 else half * half


def test_recursion_is_compiled():
    np.testing.assert_allclose(srcdiff.grad(power)(1.1, 13), 13 * 1.1**12, rtol=1e-14)


def test_programs_of_many_blocks_are_compiled_whatever_python_allows():
    """Numba follows `a` from the last block to the first by recursion, with two calls for each block."""
    lines = ["def counted(x):", "    a = x", "    if x > 1.0:", "        a = x + 1.0", "    y = 0"]
    for k in range(250):
        lines += [f"    if x > {k}.0:", "        y += 1"]
    namespace = {}
    exec("\n".join([*lines, "    return a * y"]), namespace)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    try:
        value = compiled_undisturbed(compiler({})(namespace["counted"]))(3.5)
        assert sys.getrecursionlimit() == 500
    finally:
        sys.setrecursionlimit(before)
    assert value == 18.0


def times_counted(statement: str) -> int:
    """The number of places where code with a growing buffer counts references. The loop contains this statement."""
    names: dict[str, Any] = {"np": np, "compiler": compiler({})}
    text = f"""
def grown(array, position):
    larger = np.empty(2 * array.shape[0] + 8)
    for k in range(array.shape[0]):
        larger[k] = array[k]
    return larger
grown = compiler(grown)

def steps(x):
    kept = np.empty(4)
    top = 0
    while x > 1.0:
        {statement}
        kept[top % 4] = x
        top += 1
        x = x * 0.5
    total = 0.0
    for k in range(top):
        total += kept[k % 4]
    return total
steps = compiler(steps)
"""
    exec(text, names)
    assert names["steps"](10.0) == 18.75
    (text,) = names["steps"].inspect_llvm().values()
    return len(re.findall(r"call .*@NRT_incref", text))


def test_buffer_that_is_not_full_costs_no_references():
    plain = times_counted("pass")

    assert times_counted("if top == kept.shape[0]: kept = grown(kept, top)") == plain


def test_list_of_the_caller_stays():
    """The method is looked up in one block and called in another one, in every iteration."""
    names: dict[str, Any] = {"compiler": compiler({})}
    text = """
def fill(kept, n):
    for i in range(n):
        kept.append(1.0 if i % 2 == 0 else 2.0 * i)
fill = compiler(fill)

def empty(n):
    kept = [0.0]
    fill(kept, n)
    other = [5.0]
    fill(other, n)
    total = 0.0
    for i in range(n):
        total += kept.pop() if i % 3 != 1 else 2.0 * kept.pop()
    return total + kept.pop() + other.pop()
empty = compiler(empty)
"""
    exec(text, names)
    values = [1.0 if i % 2 == 0 else 2.0 * i for i in range(1001)][::-1]

    assert names["empty"](1001) == sum(v if i % 3 != 1 else 2.0 * v for i, v in enumerate(values)) + values[0]


def test_list_of_the_caller_costs_no_references():
    names: dict[str, Any] = {"compiler": compiler({})}
    text = """
def fill(kept, n):
    if n > 0:
        fill(kept, n - 1)
        fill(kept, n - 1)
        kept.append(1.0 * n)
        kept.append(2.0)
fill = compiler(fill)
"""
    exec(text, names)
    names["fill"].compile((numba.types.List(numba.float64), numba.int64))
    (llvm,) = names["fill"].inspect_llvm().values()
    own, *_ = (part for part in re.split(r"\n(?=define )", llvm) if part.startswith("define") and "cpython" not in part)

    assert "NRT_incref" not in own


def test_calls_have_names_in_a_profile():
    def square_of_sine(x):
        return math.sin(x) ** 2

    gradient = srcdiff.grad(square_of_sine)
    before = gradient(0.5)
    with cProfile.Profile() as profile:
        assert gradient(0.5) == before
    assert any("square_of_sine" in name for _, _, name in pstats.Stats(profile).stats)
