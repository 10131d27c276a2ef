"""LLVM vectorises the loops of gradients, also those with kinks, choices and branches."""

from __future__ import annotations

import itertools
import linecache
import math
import re
import textwrap

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba import numba_cpu, vector_math

pytestmark = [
    pytest.mark.numba,
    pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning"),
    pytest.mark.skipif(not vector_math.are_used(), reason="loops that call functions need vector functions"),
]

TERMS = [
    "max(x[i] * y[i], 0.0)",
    "max(0.0, x[i] * y[i])",
    "max(scale * math.exp(x[i]) - y[i], 0.0)",
    "max(x[i], y[i])",
    "max(x[i], y[i], 0.5)",
    "min(x[i] * y[i], 1.0)",
    "min(max(x[i] * y[i], -1.0), 1.0)",
    "max(x[i], 0.0) ** 3",
    "math.sqrt(max(x[i], 0.5))",
    "abs(x[i] * y[i])",
    "np.sign(x[i]) * x[i] * y[i]",
    "np.copysign(x[i], y[i])",
    "np.maximum(x[i], y[i])",
    "np.minimum(x[i] * y[i], scale)",
    "np.fmax(x[i], y[i])",
    "np.fmin(x[i], y[i])",
    "np.clip(x[i] * y[i], -1.0, 1.0)",
    "np.clip(x[i], y[i], scale)",
    "np.minimum(1.0, np.maximum(x[i], y[i]))",
    "np.maximum(0.0, x[i] * y[i]) ** 2",
    "np.heaviside(x[i], 0.5) * y[i]",
    "np.hypot(x[i], y[i])",
    "np.arctan2(x[i], y[i])",
    "np.cbrt(x[i] * y[i])",
    "np.logaddexp(x[i], y[i])",
    "np.where(x[i] > 0.0, x[i] * y[i], scale * x[i])",
    "(x[i] * x[i] if x[i] > 0.0 else y[i])",
    "(x[i] if x[i] > 0.0 else math.exp(x[i]) - 1.0)",
    "(math.log(x[i]) if x[i] > 0.0 else y[i])",
    "(x[i] if np.isfinite(x[i]) else y[i])",
    "(x[i] * x[i] if x[i] > 0.0 and y[i] > 0.0 else y[i])",
    "(x[i] * x[i] if x[i] > 0.0 else y[i] if y[i] > 0.0 else x[i] * y[i])",
]

STATEMENTS = {
    "rectifier": """
        a = x[i] * y[i]
        if a > 0.0:
            total += a
    """,
    "leaky": """
        a = x[i] * y[i]
        if a < 0.0:
            a = 0.1 * a
        total += a * a
    """,
    "huber": """
        a = x[i] - y[i]
        if abs(a) < 1.0:
            total += 0.5 * a * a
        else:
            total += abs(a) - 0.5
    """,
    "clip": """
        a = x[i]
        if a > 1.0:
            a = 1.0
        elif a < -1.0:
            a = -1.0
        total += a * y[i]
    """,
    "minmod": """
        a, b = x[i], y[i]
        if a * b <= 0.0:
            slope = 0.0
        elif abs(a) < abs(b):
            slope = a
        else:
            slope = b
        total += slope * slope
    """,
    "soft_threshold": """
        if x[i] > 0.5:
            b = x[i] - 0.5
        elif x[i] < -0.5:
            b = x[i] + 0.5
        else:
            b = 0.0
        total += b * b * y[i]
    """,
    "between": """
        if 0.0 < x[i] < 1.0:
            total -= x[i] * x[i] * y[i]
    """,
    "exponential": """
        if x[i] > 0.0:
            total += math.exp(-x[i] * y[i])
    """,
}

WHOLE = [
    "np.sum(np.maximum(x * y, 0.0))",
    "np.sum(np.abs(x - y))",
    "np.sum(np.clip(x * y, -1.0, 1.0) ** 2)",
    "np.sum(np.where(x > 0.0, x * x, y))",
    "np.mean(np.maximum(scale * np.exp(x) - y, 0.0))",
    "np.sum(np.select([x < 0.0, x < 1.0], [x, x * x], y))",
]


def program(body):
    text = "def program(x, y, scale):\n" + textwrap.indent(body, "    ")
    file = f"<program {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"math": math, "np": np}
    exec(compile(text, file, "exec"), names)
    return names["program"]


def of_loop(statement):
    body = textwrap.indent(textwrap.dedent(statement).strip(), "    ")
    return f"total = 0.0\nfor i in range(len(x)):\n{body}\nreturn total\n"


BODIES = {
    **{term: of_loop(f"total += {term}") for term in TERMS},
    **{name: of_loop(statement) for name, statement in STATEMENTS.items()},
    **{formula: f"return {formula}\n" for formula in WHOLE},
}
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, np.inf, -np.inf, np.nan)


def vector_loops(function):
    (text,) = function.inspect_llvm().values()
    return re.findall(r"^vector\.body\S*:", text, re.MULTILINE)


@pytest.mark.parametrize("name", BODIES)
def test_loops_of_gradients_are_vectorised_and_agree_with_the_python_backend(name):
    function, arguments = program(BODIES[name]), ("x", "y", "scale")
    derivative = srcdiff.value_and_grad(function, wrt=arguments)
    numbers = np.array(list(itertools.product(NUMBERS, NUMBERS)))
    for chosen in (numbers, numbers[np.isfinite(numbers).all(axis=1)]):
        x, y = chosen.T.copy()
        with np.errstate(all="ignore"):
            value, bars = derivative(x, y, 0.7)
            expected, expected_bars = srcdiff.value_and_grad(function, wrt=arguments, backend="python")(x, y, 0.7)

        np.testing.assert_allclose(value, expected, rtol=1e-13)  # sums are in another order
        for actual, bar in zip(bars, expected_bars, strict=True):
            np.testing.assert_allclose(actual, bar, rtol=1e-13, atol=1e-15)
    assert vector_loops(derivative.latest.function)


def stencil_in_steps(u, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1] = u[1:-1] - 0.1 * u[1:-1] * (u[1:-1] - u[:-2]) + 0.05 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = v
    return np.sum(u * u)


def test_loops_beside_the_borders_of_a_stencil_are_vectorised():
    """With Python's `min` and `max` as limits, LLVM vectorised 8 of 11 loops: the gradient was three times slower."""
    u = np.linspace(0.0, 1.0, 37) ** 2
    derivative = srcdiff.grad(stencil_in_steps)

    expected = srcdiff.grad(stencil_in_steps, backend="python")(u, 4)
    np.testing.assert_allclose(derivative(u, 4), expected, rtol=1e-13)  # sums are in another order
    assert len(vector_loops(derivative.latest.function)) >= 10


def many_arrays(x, y, scale):
    a, b, c, d, e = np.empty_like(x), np.empty_like(x), np.empty_like(x), np.empty_like(x), np.empty_like(x)
    for i in range(len(x)):
        a[i] = x[i] * y[i]
        b[i] = a[i] + scale * x[i]
        c[i] = b[i] * y[i]
        d[i] = math.sin(c[i]) * b[i]
        e[i] = d[i] * a[i] - c[i]
    return a, b, c, d, e


def test_new_arrays_need_no_comparison_of_addresses():
    x, y = np.linspace(0.0, 1.0, 37), np.linspace(-1.0, 2.0, 37)
    value, pullback = srcdiff.vjp(many_arrays, x, y, 0.3)
    expected, in_python = srcdiff.vjp(many_arrays, x, y, 0.3, backend="python")
    bars = tuple(np.full(37, 0.5 + k) for k in range(5))

    np.testing.assert_allclose(value, expected, rtol=1e-14)
    for actual, bar in zip(pullback(bars), in_python(bars), strict=True):
        np.testing.assert_allclose(actual, bar, rtol=1e-13)
    text = inspect_new("for i in range(n):\n        a[i] = x[i]\n        b[i] = 2.0 * x[i]\n        c[i] = x[i] + b[i]")
    assert "vector.body" in text
    assert "vector.memcheck" not in text


def inspect_new(loop):
    """The code of a loop over a given array and three new ones."""
    head = "import numpy as np\ndef f(x):\n    n = len(x)\n    a, b, c = np.empty(n), np.empty(n), np.empty(n)\n    "
    function = numba_cpu.load(f"{head}{loop}\n    return a, b, c\n", ["f"], {}, {}, "<new arrays>")
    x = np.arange(5.0)
    a, b, c = function(x)
    assert np.array_equal([a, b, c], [x, 2.0 * x, 3.0 * x])
    (text,) = function.inspect_llvm().values()
    return text


def test_memory_that_is_freed_and_taken_again_holds_what_was_stored_last():
    text = """
import numpy as np
def f(x, steps):
    total = 0.0
    old = np.zeros_like(x)
    for k in range(steps):
        new = np.empty_like(x)
        for i in range(len(x)):
            new[i] = old[i] + x[i]
        first = new[0]
        half = np.empty_like(x)
        for i in range(len(x)):
            half[i] = 0.5 * new[i]
        old = half
        total += first + half[-1]
    return total, old
"""
    names = {}
    exec(text, names)
    function = numba_cpu.load(text, ["f"], {}, {}, "<freed>")
    for size in (3, 5000):  # small ones and large ones have different allocators
        x = np.linspace(1.0, 2.0, size)
        (total, last), (expected, expected_last) = function(x, 20), names["f"](x, 20)

        np.testing.assert_allclose(total, expected, rtol=1e-13)
        np.testing.assert_allclose(last, expected_last, rtol=1e-13)


@pytest.mark.parametrize("question", ["np.isfinite", "math.isfinite", "not np.isinf", "not np.isnan"])
def test_sums_are_asked_for_infinity_and_nan_though_they_may_be_reordered(question):
    function = program(of_loop(f"if {question}(x[i] + y[i] * x[i]):\n    total += y[i]"))
    x, y = np.array(list(itertools.product(NUMBERS, NUMBERS))).T.copy()
    with np.errstate(all="ignore"):
        expected = srcdiff.grad(function, wrt="y", backend="python")(x, y, 1.0)

    assert np.array_equal(expected, srcdiff.grad(function, wrt="y")(x, y, 1.0))


def both(text):
    """A function compiled as generated code is, and the same function in Python."""
    names = {}
    exec(text, names)
    return numba_cpu.load(text, ["f"], {}, {}, f"<{hash(text)}>"), names["f"]


@pytest.mark.parametrize(
    "body",
    [
        "total += v\n        if v > 3.0:\n            total = total + 2.0 * v\n            other -= v",
        "if 0.4 < v < 7.0:\n            total -= 1.0\n        elif v > -3.0:\n            total -= v",
        "if v > other:\n            total += 3.0\n        else:\n            total -= 1.0",
        "if v > 0.5:\n            total += v\n            other = 0.5 * other + total",
        "s = total + v\n        if v > 0.5:\n            total = s\n        other += 0.1 * s",
        "if v < 0.0:\n            continue\n        if v > 2.5:\n            break\n        total += v",
        "if v > 0.0:\n            total = v + v\n        else:\n            total = v",
        "if v > 0.0:\n            total = total + other\n        elif v > -1.0:\n            total = other",
        "if v > 0.0:\n            total, other = other + total, total",
        "for w in x:\n            if w < v:\n                total += w\n            else:\n                other += w",
        "while total < v < 9.0:\n            total += 0.5\n            if total > 1.0:\n                total -= 0.25",
        "t = np.float32(0.5)\n        if v > 1.0:\n            t += np.float32(0.25)\n        total += t",
        "k = i\n        if v > 1.0:\n            k += 3\n        total += k",
        "if v > 0.0:\n            total += i",
        "if v > 0.0:\n            total += 1.0 if v > 1.0 else v * v",
        "if v > 0.0:\n            total = (1.0 if v > 1.0 else v) + total\n        other -= 2.0 if v > 1.0 else total",
    ],
)
def test_sums_that_branches_add_to_are_those_of_python(body):
    head = "import numpy as np\ndef f(x, start):\n    total, other = start, 1.0\n    for i in range(len(x)):"
    compiled, plain = both(f"{head}\n        v = x[i]\n        {body}\n    return total, other\n")
    for size in (0, 1, 50):
        x = np.random.default_rng(4).normal(size=size) * 2.0

        np.testing.assert_allclose(compiled(x, 0.25), plain(x, 0.25), rtol=1e-12)
    for special in (np.nan, np.inf, -0.0):
        np.testing.assert_equal(compiled(np.array([-1.0, special]), -0.0), plain(np.array([-1.0, special]), -0.0))


def test_strict_mathematics_keeps_sums_in_branches():
    text = (
        "def f(x):\n    total = -0.0\n    for v in x:\n        if v > 0.0:\n            total += v\n    return total\n"
    )
    function = numba_cpu.load(text, ["f"], {}, {"fastmath": False}, "<strict>")

    assert np.signbit(function(np.array([-1.0])))
    assert function(np.array([1.0, -1.0, 0.5])) == 1.5
    assert not vector_loops(function)


@pytest.mark.parametrize("fastmath", [True, False])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_signs_and_the_larger_and_the_smaller_of_numbers_are_those_of_numpy(kind, fastmath):
    numbers = np.array(NUMBERS if kind is not np.int64 else (0, 1, -3)).astype(kind)
    x, y = np.array(list(itertools.product(numbers, numbers))).T.copy()
    for name, call in (("sign", "x[i]"), ("maximum", "x[i], y[i]"), ("minimum", "x[i], y[i]"), ("maximum", "0, y[i]")):
        text = f"""
import numpy as np
def f(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.{name}({call})
    return out
"""
        function = numba_cpu.load(text, ["f"], {}, {"fastmath": fastmath}, f"<{name} {call} {kind} {fastmath}>")
        expected = eval(f"np.{name}({call.replace('[i]', '')})", {"np": np, "x": x, "y": y})

        np.testing.assert_array_equal(function(x, y), expected)
        if name == "sign" and not fastmath:
            assert np.array_equal(np.signbit(function(x, y)[x == 0]), np.signbit(expected[x == 0]))


def test_functions_of_users_are_compiled_by_numba_alone():
    theirs = numba.njit(program(of_loop("total += max(x[i], 0.0)")))
    srcdiff.grad(program(of_loop("total += max(x[i], 0.0)")))(np.ones(4), np.ones(4), 1.0)
    theirs(np.ones(4), np.ones(4), 1.0)

    assert type(theirs.overloads[theirs.signatures[0]].library).__module__.startswith("numba.")
