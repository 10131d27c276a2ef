"""How programs are printed: precedence, names, statements and literals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.cuda import thread_routines
from srcdiff.emit import support
from srcdiff.emit.expressions import literal
from srcdiff.emit.write import write_function
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Block, Function, If, Loop, Value
from srcdiff.ir.primitives import BROUGHT_ALONG
from srcdiff.ir.types import BOOL, FLOAT, FLOAT32, INT, Array, Scalar
from srcdiff.rules import special


def printed(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The body of the function as srcdiff prints it, without its imports."""
    lines = srcdiff.source(function, *arguments, mode="primal").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"def {function.__name__}("))
    return [line.removeprefix("    ") for line in lines[start + 1 :]]


def function_of(text: str, folder: Path) -> Callable[..., Any]:
    file = folder / "model.py"
    file.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {"math": math, "np": np}
    exec(compile(text, str(file), "exec"), namespace)
    found: Callable[..., Any] = namespace["f"]
    return found


def written(function: Function) -> list[str]:
    return write_function(function, parameters=function.params).lines


# ----------------------------------------------------------------------------------------------------------- precedence

EXPRESSIONS = [
    "x - (y - z)",
    "x - (y + z)",
    "x + (y + z)",
    "x / (y / z)",
    "x / (y * z)",
    "x * (y / z)",
    "x * (y + z)",
    "(x + y) * (x - z)",
    "-(x + y)",
    "-(x * y)",
    "-x * -y",
    "x - -y",
    "--x",
    "(-x) ** 2",
    "-(x ** 2)",
    "(x ** 2) ** z",
    "x ** (y ** 2)",
    "x ** -2",
    "2.0 ** -x",
    "(-2.0) ** 3 * x",
    "x % (y % z)",
    "(x // y) // z",
    "x // (1.0 + y // z)",
    "(x if x > y else y) * z",
    "x if (y if y > z else z) > x else z",
    "x if x > y else (y if y > z else z)",
    "(x if x > y else y) if x > z else z",
    "x * (x > y)",
    "1.0 if (x > y) == (y > z) else 2.0",
    "1.0 if not (x > y and y > z) else 2.0",
    "1.0 if (x > y or y > z) and z > x else 2.0",
    "1.0 if x > y or y > z and z > x else 2.0",
    "1.0 if not x > y else 2.0",
    "1.0 if (not x > y) == (y > z) else 2.0",
    "abs(x - y) * max(x, y - z)",
]

INTEGER_EXPRESSIONS = [
    "m - (n - k)",
    "m // (7 // k)",
    "m % (n * k)",
    "m * (n % k)",
    "(m + n) << k",
    "m + (n << k)",
    "m << (n << k)",
    "m << (n >> k)",
    "m >> (n >> k)",
    "m >> (n << k)",
    "(m | n) & k",
    "m | n & k",
    "(m ^ n) | k",
    "m ^ (n | k)",
    "~(m + n)",
    "-~m",
    "~-m",
    "(m & n) == k",
    "m & (n == k)",
    "(m + n) & k",
    "(m - n) | k",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_of_floats_keeps_its_meaning(expression: str, tmp_path: Path) -> None:
    function = function_of(f"def f(x, y, z):\n    return {expression}\n", tmp_path)
    run = srcdiff.differentiable(function, backend="python")

    for point in itertools.permutations((1.3, 2.7, 0.6)):
        assert run(*point) == pytest.approx(function(*point), rel=1e-15)


@pytest.mark.parametrize("expression", INTEGER_EXPRESSIONS)
def test_expression_of_integers_keeps_its_meaning(expression: str, tmp_path: Path) -> None:
    function = function_of(f"def f(x, m, n, k):\n    return x * ({expression})\n", tmp_path)
    run = srcdiff.differentiable(function, backend="python")

    for m, n, k in itertools.permutations((1, 2, 3, 6), 3):
        assert run(1.0, m, n, k) == function(1.0, m, n, k)


@pytest.mark.parametrize("expression", ["(k + m) & n", "(k + m) | n", "(k - m) ^ n", "(k + m) << n", "(k - m) >> n"])
def test_sum_inside_a_weaker_operator_is_not_an_augmented_assignment(expression: str, tmp_path: Path) -> None:
    text = f"def f(x, k, m, n):\n    for _ in range(2):\n        k = {expression}\n    return x * k\n"
    function = function_of(text, tmp_path)
    run = srcdiff.differentiable(function, backend="python")

    for k, m, n in itertools.permutations((1, 2, 3, 6), 3):
        assert run(1.0, k, m, n) == function(1.0, k, m, n)


# ----------------------------------------------------------------------------------------------------------- statements


def test_function_keeps_the_users_names_and_statements():
    def newton(a, n):
        y = a
        for k in range(1, n, 2):
            step = (y * y - a) / (2.0 * y)
            if abs(step) > 0.5 * k:
                y -= step
            else:
                y = y - 0.5 * step
        return y

    assert printed(newton, 2.0, 5) == [
        "y = a",
        "for k in range(1, n, 2):",
        "    step = (y * y - a) / (2.0 * y)",
        "    if abs(step) > 0.5 * k:",
        "        y -= step",
        "    else:",
        "        y -= 0.5 * step",
        "return y",
    ]


def test_counter_that_is_not_read_is_an_underscore():
    def repeated(x, n):
        for unused in range(n):
            x = x * x
        return x

    assert printed(repeated, 2.0, 3) == ["for _ in range(n):", "    x *= x", "return x"]


def test_swapped_variables_are_assigned_at_once():
    def alternating(x, y, n):
        for _ in range(n):
            x, y = y, x
        return x

    assert printed(alternating, 1.0, 2.0, 5) == ["for _ in range(n):", "    x, y = y, x", "return x"]


def test_branch_that_does_nothing_is_not_written():
    def clipped(x, y):
        if x > y:
            pass
        else:
            x = y * 2.0
        return x

    assert printed(clipped, 1.0, 2.0) == ["if not x > y:", "    x = y * 2.0", "return x"]


def test_while_stays_a_while():
    def doubled(x, limit):
        while x * x < limit:
            x = x + x
        return x

    assert printed(doubled, 1.0, 50.0) == ["while x * x < limit:", "    x += x", "return x"]


def test_program_without_a_use_for_a_statement_does_not_have_it():
    def idle(x, a):
        for i in range(len(a)):
            a[i] = math.sin(x)
        b = a.copy()
        b[0] = x * 2.0
        return x

    assert "b" not in "".join(printed(idle, 1.0, np.ones(2)))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("np.zeros(n)", "np.zeros(n)"),
        ("np.ones((n, 2))[0]", "np.ones((n, 2))"),
        ("np.full(n, x)", "np.full(n, x, np.float64)"),
        ("np.empty(n)", "np.empty(n)"),
        ("np.zeros_like(a)", "np.zeros_like(a)"),
        ("np.full_like(a, 2.0)", "np.full_like(a, 2.0)"),
        ("np.zeros(n, np.float32)", "np.zeros(n, np.float32)"),
        ("a.copy()", "a.copy()"),
    ],
)
def test_array_is_made_as_the_user_made_it(made: str, expected: str, tmp_path: Path) -> None:
    function = function_of(f"def f(x, a, n):\n    b = {made}\n    b[0] = x\n    return b[0] * b[1]\n", tmp_path)

    assert any(line.endswith(f"= {expected}") for line in printed(function, 1.0, np.ones(3), 3))


def test_second_value_of_a_name_that_is_still_needed_has_a_number():
    builder = Builder()
    x = Value(FLOAT, "x")
    first = builder.apply("sin", x, name="y")
    second = builder.apply("cos", first, name="y")
    product = builder.apply("multiply", first, second, name="y")
    function = Function("f", (x,), Block(tuple(builder.operations), (product, first)))

    assert written(function) == [
        "def f(x):",
        "    y = np.sin(x)",
        "    y_1 = np.cos(y)",
        "    y_1 = y * y_1",
        "    return y_1, y",
    ]


def test_names_of_builtins_and_keywords_are_not_used():
    builder = Builder()
    x = Value(FLOAT, "x")
    first = builder.apply("sin", x, name="max")
    second = builder.apply("cos", first, name="lambda")
    function = Function("f", (x,), Block(tuple(builder.operations), (first, second)))

    assert written(function) == [
        "def f(x):",
        "    max_1 = np.sin(x)",
        "    lambda_1 = np.cos(max_1)",
        "    return max_1, lambda_1",
    ]


def test_functions_that_are_written_along_have_reserved_names():
    modules = (support, special, thread_routines)
    written = [n for m in modules for n, f in vars(m).items() if getattr(f, "__module__", "") == m.__name__]
    assert set(written) <= BROUGHT_ALONG


def test_functions_of_the_users_may_have_the_names_of_ours():
    def grown(x):
        items = []
        while x < 10.0:
            items.append(x)
            x = x * 1.5
        return sum(items)

    def more_rows(x, n):
        rows = [[x * j for j in range(k + 1)] for k in range(n)]
        rows.append([x])
        rows[0].append(x * x)
        total = sum([sum(row) for row in rows])
        return total if n == 0 else more_rows(x * x, n - 1) + total

    def abs(x):
        return np.abs(x) * x

    for function, arguments in ((grown, (2.0,)), (more_rows, (1.1, 3)), (abs, (-2.0,))):
        compiled = srcdiff.differentiable(function, backend="python")
        assert compiled(*arguments) == pytest.approx(function(*arguments), rel=1e-14)
        srcdiff.check(function, *arguments, backend="python")


def test_value_that_a_loop_carries_has_one_name():
    builder = Builder()
    x, n = Value(FLOAT, "x"), Value(INT, "n")
    zero, one = builder.const(0), builder.const(1)
    carried, out = Value(FLOAT, "total"), Value(FLOAT)
    with builder.block() as body:
        following = builder.apply("add", carried, x)
    inner = Block(tuple(body), (following,))
    builder.add(Loop(Value(INT, "i"), (zero, n, one), (carried,), (x,), None, inner, (out,)))
    function = Function("f", (x, n), Block(tuple(builder.operations), (out,)))

    assert written(function) == [
        "def f(x, n):",
        "    total = x",
        "    for _ in range(n):",
        "        total += x",
        "    return total",
    ]


def test_load_stays_in_front_of_a_store_to_the_same_memory():
    def swapped(a):
        first = a[0]
        a[0] = a[1] * 2.0
        a[1] = first
        return a[0] * a[1]

    run = srcdiff.differentiable(swapped, backend="python")

    assert run(np.array([2.0, 3.0])) == swapped(np.array([2.0, 3.0]))


def test_loads_of_two_elements_that_are_swapped_stay_in_front_of_both_stores():
    def swapped(a, n):
        for i in range(n):
            a[i], a[i + 1] = a[i + 1], a[i]
        return a[0] + 2.0 * a[1] + 4.0 * a[2]

    run = srcdiff.differentiable(swapped, backend="python")

    assert run(np.array([2.0, 3.0, 5.0]), 2) == swapped(np.array([2.0, 3.0, 5.0]), 2)


# --------------------------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x + y", "x += y"),
        ("x - y * z", "x -= y * z"),
        ("x + (y - z)", "x += y - z"),
        ("x - (y - z) * (y + z)", "x -= (y - z) * (y + z)"),
        ("x + y - z", "x = x + y - z"),
        ("x * y", "x *= y"),
        ("x / (y + z)", "x /= y + z"),
        ("x ** 2", "x = x ** 2"),
        ("y - x", "x = y - x"),
    ],
)
def test_augmented_assignment(expression: str, expected: str, tmp_path: Path) -> None:
    text = f"def f(x, y, z, n):\n    for _ in range(n):\n        x = {expression}\n    return x\n"

    assert printed(function_of(text, tmp_path), 1.0, 2.0, 3.0, 4)[1] == f"    {expected}"


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (1.0, FLOAT, "1.0"),
        (-2.5, FLOAT, "-2.5"),
        (3, FLOAT, "3.0"),
        (1e-300, FLOAT, "1e-300"),
        (0.1, FLOAT, "0.1"),
        (math.inf, FLOAT, "np.inf"),
        (-math.inf, FLOAT, "-np.inf"),
        (math.nan, FLOAT, "np.nan"),
        (0.5, FLOAT32, "0.5"),
        (7, INT, "7"),
        (-7, INT, "-7"),
        (True, BOOL, "True"),
        (np.False_, BOOL, "False"),
        (1, BOOL, "True"),
    ],
)
def test_literal(value: Any, type_: Scalar, expected: str) -> None:
    assert literal(value, Value(type_))[0] == expected


@pytest.mark.parametrize("number", [0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789])
def test_literal_is_the_same_number_when_read_again(number: float) -> None:
    assert repr(eval(literal(number, Value(FLOAT))[0])) == repr(number)


def test_array_parameter_is_written_by_its_indices():
    builder = Builder()
    a, i = Value(Array("float64", 2), "a"), Value(INT, "i")
    element = builder.load(a, (i, builder.const(0)))
    builder.store(a, (builder.const(1), i), builder.apply("negative", element), adds=True)
    function = Function("f", (a, i), Block(tuple(builder.operations), ()))

    assert written(function) == ["def f(a, i):", "    a[1, i] -= a[i, 0]"]


# ------------------------------------------------------------------------------------------------------ names of values


def adjoint_text(function: Callable[..., Any], *arguments: Any) -> str:
    """The text of the function for value and gradient."""
    text = srcdiff.source(function, *arguments)
    return text[text.index(f"def {function.__name__}_value_and_grad(") :]


def swing(start: float, steps: int) -> float:
    angle, speed = start, 0.0
    for _ in range(steps):
        speed -= 0.1 * math.sin(angle)
        angle += 0.1 * speed
    return angle * math.sin(angle)


def damped(x: float, rate: float, steps: int) -> float:
    for _ in range(steps):
        x += rate * x * (1.0 - math.tanh(x))
    return x


def root(a: float) -> float:
    y = 1.0
    while abs(y * y - a) > 1e-6:
        y = 0.5 * (y + a / y)
    return y


def left_early(x: float, n: int) -> float:
    total = 0.0
    for i in range(2, n):
        total += math.sin(i * x)
        if total > 1.0:
            break
    return total


def test_variable_keeps_its_name_where_it_starts_as_another() -> None:
    text = adjoint_text(swing, 0.3, 10)

    assert "    angle = start\n" in text
    assert "        angle += 0.1 * speed\n" in text


def test_kept_array_is_named_after_its_value() -> None:
    text = adjoint_text(damped, 0.3, 0.1, 10)

    assert "kept_tanh_x[step] = tanh_x" in text
    assert "kept_rate_times_x[step] = rate_times_x" in text
    assert "kept_value" not in text


def test_length_counter_and_temporary_have_names_of_their_own() -> None:
    text = adjoint_text(damped, 0.3, 0.1, 10)

    assert "trip_count = len(range(steps))" in text
    assert "for step in range(steps):" in text
    assert "turn" not in text.replace("return", "")


def test_temporary_has_another_name_than_a_variable_of_the_user() -> None:
    def hidden(w: np.ndarray, n: int) -> float:
        total = 0.0
        for t in range(n):
            total += (w[t] * 0.3 + 0.1) * (w[t] * 0.3 + 0.1)
        return total

    text = adjoint_text(hidden, np.ones(3), 3)

    assert "t_1" not in text
    assert "value = w[t] * 0.3 + 0.1" in text


def test_temporary_is_named_after_its_role() -> None:
    def misfit(w: np.ndarray, x: np.ndarray) -> float:
        total = 0.0
        for i in range(len(x)):
            total += (np.tanh(w[0] * x[i]) - w[1] * x[i]) ** 2
        return total

    text = adjoint_text(misfit, np.ones(2), np.ones(3))

    assert "difference = tanh - w[1] * x[i]" in text
    assert "factor = 2 * difference" in text
    assert "    t = " not in text


def test_name_that_the_user_gives_is_not_that_of_a_temporary() -> None:
    def misfit(difference: np.ndarray, factor: float) -> float:
        total = 0.0
        for i in range(len(difference)):
            total += (np.tanh(difference[i]) - factor * difference[i]) ** 2
        return total

    text = adjoint_text(misfit, np.ones(2), 3.0)

    assert "difference = " not in text
    assert "factor = " not in text


def test_product_of_matrices_is_called_by_its_factors() -> None:
    def misfit(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        return np.sum(np.tanh(x @ w - y)) + np.sum(w * w)

    text = adjoint_text(misfit, np.ones(2), np.ones((3, 2)), np.ones(3))

    assert "x_times_w = x @ w" in text
    assert "product = x.T @ x_times_w_bar" in text
    assert "array" not in text


def test_sign_of_a_product_joins_the_sum() -> None:
    def f(x: float, y: float) -> float:
        return x + -y * x

    def g(x: float, y: float) -> float:
        return x - -(x + y) * y

    def of_integers(x: float, n: int) -> float:
        return x + -n * x

    assert printed(f, 1.0, 2.0) == ["return x - y * x"]
    assert printed(g, 1.0, 2.0) == ["return x + (x + y) * y"]
    assert printed(of_integers, -0.0, 0) == ["return x + -n * x"]  # an integer has no minus zero


def test_constant_stands_on_the_right_of_a_comparison() -> None:
    def f(x: float, n: int, m: int) -> float:
        if 0 < n:
            x = 2.0 * x
        if 0 < m and m < 3:
            x = 3.0 * x
        return x

    lines = printed(f, 1.0, 2, 3)

    assert "if n > 0:" in lines
    assert "if 0 < m and m < 3:" in lines


def test_loop_for_one_element_of_the_border_is_a_branch() -> None:
    def energy(x: np.ndarray) -> float:
        total = 0.0
        for i in range(1, len(x)):
            total += (x[i] - x[i - 1]) ** 2
        return total

    text = adjoint_text(energy, np.ones(5))

    assert "    if n > 1:\n        x_bar[0] -= 2 * (x[1] - x[0])\n" in text
    assert "minimum" not in text
    for n in range(6):
        x = np.arange(float(n)) ** 2  # whole numbers, so that sums are exact in any order
        expected = np.zeros(n)
        expected[1:] += 2.0 * np.diff(x)
        expected[:-1] -= 2.0 * np.diff(x)
        for backend in ("python", "numba"):
            assert np.array_equal(expected, srcdiff.grad(energy, backend=backend)(x))


def test_length_that_the_text_would_repeat_has_a_name() -> None:
    def decay(w: float, x: np.ndarray) -> float:
        u = 0.5
        for i in range(len(x)):
            u -= np.sin(w * u) * x[i]
        return u

    def decay_of_n(n: float, x: np.ndarray) -> float:
        return decay(n, x)

    def loss(w: np.ndarray, a: np.ndarray) -> float:
        total = 0.0
        for i in range(a.shape[0]):
            z = 0.0
            for j in range(a.shape[1]):
                z += a[i, j] * w[j]
            total += np.exp(-z)
        return total / a.shape[0]

    vector, matrix = adjoint_text(decay, 1.5, np.ones(5)), adjoint_text(loss, np.ones(3), np.ones((2, 3)))

    assert "    n = x.shape[0]\n" in vector
    assert 1 == vector.count("x.shape[0]")
    assert "x.shape[0] - 1" in adjoint_text(decay_of_n, 1.5, np.ones(5))  # `n` is a name of the user
    assert "    rows = a.shape[0]\n    columns = a.shape[1]\n    # reverse sweep\n" in matrix


def test_lengths_of_several_vectors_keep_the_names_of_their_arrays() -> None:
    def f(w: np.ndarray, x: np.ndarray) -> float:
        h = np.zeros(len(w))
        for t in range(len(x)):
            h = np.tanh(w * h + x[t])
        return np.sum(h)

    text = adjoint_text(f, np.ones(2), np.ones(3))

    assert "range(x.shape[0] - 1, -1, -1)" in text
    assert "range(w.shape[0])" in text


def test_line_of_the_user_is_quoted_once() -> None:
    def energy(x: np.ndarray) -> float:
        return np.sum((x[1:] - x[:-1]) ** 2)

    assert adjoint_text(energy, np.ones(5)).count("# return") == 1


def test_module_that_is_not_used_is_not_imported() -> None:
    def f(x: float) -> float:
        return x * x

    assert srcdiff.source(f, 1.0).startswith("def f_value_and_grad(x):")


def test_kept_value_that_is_used_once_is_inlined() -> None:
    text = adjoint_text(swing, 0.3, 10)

    assert "np.cos(kept_angle[step])" in text


def test_loop_that_is_left_early_is_reversed_over_its_own_counter() -> None:
    text = adjoint_text(left_early, 0.3, 9)

    assert "for iteration in range(iterations):  # for i in range(2, n):" in text
    assert "        i = 2 + iteration\n" in text


def test_counter_of_the_reverse_sweep_that_is_not_read_runs_forwards() -> None:
    assert "for _ in range(iterations):  # while abs(y * y - a) > 1e-6:" in adjoint_text(root, 2.0)


def test_branch_in_an_else_is_an_elif(tmp_path: Path) -> None:
    text = (
        "def f(x):\n    if x > 1.0:\n        y = x\n    elif x > 0.0:\n        y = x * x\n    else:\n        y = -x\n"
    )
    text += "    return y\n"

    assert [line for line in printed(function_of(text, tmp_path), 1.0) if "if" in line] == [
        "if x > 1.0:",
        "elif x > 0.0:",
    ]


def test_comment_above_a_branch_in_an_else_stays_with_it(tmp_path: Path) -> None:
    text = "def f(x):\n    if x > 1.0:\n        y = x\n    else:\n        # small\n        if x > 0.0:\n"
    text += "            y = x * x\n        else:\n            y = -x\n    return y\n"
    lines = printed(function_of(text, tmp_path), 1.0)

    assert lines[lines.index("    # small") - 1] == "else:"
    assert lines[lines.index("    # small") + 1] == "    if x > 0.0:"


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_division_in_place_by_zero_is_infinite(backend: str) -> None:
    def halved(x: float, n: int) -> float:
        for k in range(n):
            x /= k
        return x

    def divided(a: np.ndarray, n: int) -> float:
        for k in range(n):
            a[k] /= k
        return a[0]

    assert "x /= " in srcdiff.source(halved, 1.0, 2, mode="primal")
    assert "a[k] /= " in srcdiff.source(divided, np.ones(2), 2, mode="primal")
    assert srcdiff.value_and_grad(halved, backend=backend)(1.0, 2) == (math.inf, math.inf)
    assert srcdiff.value_and_grad(divided, backend=backend)(np.ones(2), 2)[0] == math.inf


def test_text_is_the_same_each_time() -> None:
    assert len({srcdiff.source(left_early, 0.3, 9) for _ in range(3)}) == 1


def test_constant_is_no_name() -> None:
    out = Value(FLOAT32)
    build = Builder()
    cast = build.cast(build.const(0.0), FLOAT32)
    build.add(If(Value(BOOL, "c"), Block((), (cast,)), Block((), (cast,)), (out,)))
    operations = tuple(build.operations)
    function = Function("f", (operations[-1].condition,), Block(operations, (out, cast)))  # type: ignore[attr-defined]

    assert [line.strip() for line in written(function)][1] == "t = np.float32(0.0)"
