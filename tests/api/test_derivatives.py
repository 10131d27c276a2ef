"""The public functions: arguments, types, purity of calls, and changes between calls."""

from __future__ import annotations

import functools
import inspect
import linecache
import math
import os
import pickle
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError, ZeroGradientWarning

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
on_both_backends = pytest.mark.parametrize("backend", BACKENDS)

# Programs that several tests share; each is compiled once for each of its derivatives.


def quadratic(x, y=3.0, z=0.5):
    """With defaults."""
    return x * x * y + z * x


def first_product(a, b):
    return a[0] * b[0] * b[1]


def squares_in_place(a):
    """Writes into its argument."""
    total = 0.0
    for i in range(len(a)):
        a[i] = a[i] * a[i]
        total += a[i] * a[i - 1]
    return total


def weighted_squares(a):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += (i + 2 * j) * a[i, j] * a[i, j]
    return total


class Point(NamedTuple):
    x: float
    y: float


@functools.cache
def gradient_of(function: Callable[..., Any], wrt: Any = 0, backend: str = "python") -> srcdiff.Derivative:
    return srcdiff.grad(function, wrt=wrt, backend=backend)


# ------------------------------------------------------------------------------------------------------ which arguments


@pytest.mark.parametrize("wrt", [1, "y", -2])
def test_wrt_is_a_position_a_name_or_counts_from_the_end(wrt: Any) -> None:
    assert gradient_of(quadratic, wrt)(2.0) == 4.0


@pytest.mark.parametrize("wrt", [("y", 0), [1, "x"], (-2, -3)])
def test_several_arguments_give_a_tuple_in_the_order_asked_for(wrt: Any) -> None:
    assert srcdiff.grad(quadratic, wrt=wrt, backend="python")(2.0) == (4.0, 12.5)


def test_tuple_of_one_argument_gives_a_tuple_of_one() -> None:
    assert gradient_of(quadratic, ("x",))(2.0) == (12.5,)


def test_default_is_the_first_argument() -> None:
    assert gradient_of(quadratic)(2.0) == 12.5


@pytest.mark.parametrize(
    ("wrt", "message"),
    [
        ("w", "no argument `w`; its arguments are x, y, z"),
        (3, "3 arguments, so there is no position 3"),
        (("x", 0), "twice"),
    ],
)
def test_wrt_that_names_no_argument_is_refused_at_once(wrt: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        srcdiff.grad(quadratic, wrt=wrt)


@pytest.mark.parametrize(
    ("positional", "keywords"),
    [
        ((2.0, 5.0, 1.0), {}),
        ((2.0, 5.0), {"z": 1.0}),
        ((), {"z": 1.0, "x": 2.0, "y": 5.0}),
        ((2.0,), {"z": 1.0, "y": 5.0}),
    ],
)
def test_arguments_are_passed_as_to_the_function(positional: tuple[float, ...], keywords: dict[str, float]) -> None:
    assert gradient_of(quadratic)(*positional, **keywords) == 21.0


def test_defaults_stand_for_arguments_left_out() -> None:
    assert gradient_of(quadratic)(2.0, z=1.0) == 13.0


@pytest.mark.parametrize(
    ("positional", "keywords"), [((), {}), ((1.0, 2.0, 3.0, 4.0), {}), ((1.0,), {"w": 2.0}), ((1.0,), {"x": 2.0})]
)
def test_wrong_arguments_are_refused_as_by_the_function(
    positional: tuple[float, ...], keywords: dict[str, float]
) -> None:
    with pytest.raises(TypeError):
        gradient_of(quadratic)(*positional, **keywords)


def test_argument_that_must_be_named_cannot_be_passed_by_position() -> None:
    def scaled(x, *, factor):
        return factor * x

    gradient = srcdiff.grad(scaled, backend="python")

    assert gradient(2.0, factor=3.0) == 3.0
    with pytest.raises(TypeError):
        gradient(2.0, 3.0)


def test_arguments_after_a_star_are_a_tuple() -> None:
    def total(x, *others):
        for other in others:
            x = x * other
        return x

    assert srcdiff.grad(total, wrt="others", backend="python")(2.0, 3.0, 4.0) == (8.0, 6.0)


def test_signature_name_and_docstring_are_those_of_the_function() -> None:
    gradient = gradient_of(quadratic)

    assert inspect.signature(quadratic) == gradient.signature
    said = "The gradient of `quadratic(x, y, z)` with respect to `x`, by srcdiff.\n\nWith defaults."
    assert ("quadratic", said) == (gradient.__name__, gradient.__doc__)
    assert str(inspect.signature(gradient)) == "(x, y=3.0, z=0.5, *, out=None)"
    assert "grad(quadratic, wrt=('x',))" in repr(gradient)


#: Names that generated code uses itself.
TAKEN = ["max", "input", "_", "np", "math", "range", "grown", "overlap", "ValueError", "x_bar", "t"]


@pytest.mark.parametrize("name", TAKEN)
def test_arguments_and_variables_may_have_any_name(name: str, tmp_path: Path) -> None:
    text = f"def f({name}, count):\n    items = []\n    for k in count:\n        items.append({name} * k)\n"
    text += f"        {name} = {name} * {name}\n    count[0] = items[0]\n    return items[1] * items[0] + count[0]\n"
    file = tmp_path / "model.py"
    file.write_text(text)
    namespace: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), namespace)

    # 2 * x**2 * x + x
    assert srcdiff.grad(namespace["f"], backend="python")(3.0, np.array([1.0, 2.0])) == 2.0 * 27.0 + 1.0


# --------------------------------------------------------------------------------------------------- what a gradient is


@on_both_backends
def test_value_and_grad_gives_the_value_in_front(backend: str) -> None:
    value, bar = srcdiff.value_and_grad(quadratic, backend=backend)(2.0)

    assert (13.0, 12.5) == (value, bar)
    assert isinstance(value, float)
    assert isinstance(bar, float)


@on_both_backends
def test_auxiliary_results_come_along(backend: str) -> None:
    def with_everything(x, a, flag):
        b = a.copy()
        b[0] = x * a[0]
        return x * b[0], (b, (len(a), x > 1.0), flag, None)

    a = np.array([2.0, 5.0])
    value, bar = srcdiff.value_and_grad(with_everything, has_aux=True, backend=backend)(3.0, a, "slow")

    assert (18.0, 12.0) == (value[0], bar)
    assert np.array_equal([6.0, 5.0], value[1][0])
    assert ((2, True), "slow", None) == value[1][1:]


def test_grad_with_auxiliary_results_gives_the_gradient_in_front() -> None:
    assert srcdiff.grad(lambda x: (x * x, 3.0 * x), has_aux=True, backend="python")(2.0) == (4.0, 6.0)


@on_both_backends
def test_auxiliary_list_is_a_list(backend: str) -> None:
    def collected(x, n):
        items = [x, x * x]
        pairs = [(k, Point(x * k, 1.0)) for k in range(n)]
        return items[0] * items[1], (items, pairs, [], [[x, 2], [n > 1]], [np.zeros(2) for _ in range(n)])

    bar, (*lists, arrays) = srcdiff.grad(collected, has_aux=True, backend=backend)(2.0, 2)

    assert bar == 12.0
    assert [[2.0, 4.0], [(0, Point(0.0, 1.0)), (1, Point(2.0, 1.0))], [], [[2.0, 2], [True]]] == lists
    assert [(0.0, 0.0), (0.0, 0.0)] == [tuple(a) for a in arrays]


@on_both_backends
def test_differentiable_function_returns_lists(backend: str) -> None:
    def multiples(x, n):
        return [x * k for k in range(n)]

    assert srcdiff.differentiable(multiples, backend=backend)(2.0, 3) == [0.0, 2.0, 4.0]


def test_auxiliary_array_is_as_the_function_left_it() -> None:
    def iterated(x, n):
        a = np.zeros(2)
        for _ in range(n):
            for i in range(2):
                a[i] = a[i] * x + math.sin(a[i] + x)
        return a[0], a

    value, _ = srcdiff.value_and_grad(iterated, has_aux=True, backend="python")(0.5, 4)

    np.testing.assert_allclose(value[1], iterated(0.5, 4)[1], rtol=1e-15)


@pytest.mark.parametrize("result", ["x", "(x, x, x)", "(x, x) if x > 0.0 else (x, x)"])
def test_auxiliary_result_must_be_a_pair(result: str, tmp_path: Path) -> None:
    text = f"def f(x):\n    return {result}\n"
    file = tmp_path / "model.py"
    file.write_text(text)
    namespace: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), namespace)
    gradient = srcdiff.grad(namespace["f"], has_aux=True, backend="python")

    if result.startswith("(x, x) if"):
        assert gradient(1.5) == (1.0, 1.5)
    else:
        with pytest.raises(DifferentiationError, match="SD401"):
            gradient(1.5)


@on_both_backends
def test_gradient_of_a_tuple_is_a_tuple_and_of_a_namedtuple_a_namedtuple(backend: str) -> None:
    def area(p, q):
        return p.x * q[1][0] + p.y * q[0] * q[1][1]

    p_bar, q_bar = srcdiff.grad(area, wrt=(0, 1), backend=backend)(Point(2.0, 3.0), (4.0, (5.0, np.float64(6.0))))

    assert isinstance(p_bar, Point)
    assert Point(5.0, 24.0) == p_bar
    assert (18.0, (2.0, 12.0)) == q_bar


@on_both_backends
def test_gradient_of_a_list_is_a_list(backend: str) -> None:
    def grown_list(items, n):
        for _ in range(n):
            items.append(items[-1] * items[0])
        return items[-1]

    items = [2.0, 3.0]

    bar = srcdiff.grad(grown_list, backend=backend)(items, 2)

    assert [12.0, 4.0] == bar
    assert isinstance(bar, list)
    assert [2.0, 3.0] == items


@on_both_backends
def test_gradient_of_single_precision_is_of_single_precision(backend: str) -> None:
    def total(a, s):
        for i in range(len(a)):
            s = s + a[i] * a[i]
        return s

    bar, s_bar = srcdiff.grad(total, wrt=(0, 1), backend=backend)(np.array([1.5, 2.5], np.float32), np.float32(0.0))

    assert np.float32 == bar.dtype
    assert np.array_equal([3.0, 5.0], bar)
    assert s_bar == 1.0


@pytest.mark.parametrize("number", [3, np.int32(3), np.uint8(3), np.float64(3.0)])
def test_number_to_differentiate_by_is_taken_as_a_float(number: Any) -> None:
    bar = srcdiff.grad(lambda x: x * x / 2, backend="python")(number)

    assert bar == 3.0
    assert isinstance(bar, float)


def test_integers_inside_a_tuple_to_differentiate_by_are_taken_as_floats() -> None:
    assert srcdiff.grad(lambda p: p[0] * p[1], backend="python")((2.0, 3)) == (3.0, 2.0)


def test_integer_that_is_not_differentiated_stays_one() -> None:
    assert srcdiff.grad(lambda x, n: x * (n // 2), backend="python")(1.0, 7) == 3.0


def test_integer_array_cannot_be_differentiated() -> None:
    with pytest.raises(DifferentiationError, match=r"SD402(.|\n)*astype\(float\)"):
        srcdiff.grad(lambda a: 2.0 * a[0], backend="python")(np.arange(3))


# ----------------------------------------------------------------------------------------------------- memory of arrays


@on_both_backends
def test_arguments_are_left_as_they_were_even_where_the_function_writes_into_them(backend: str) -> None:
    a = np.array([1.0, 2.0, 3.0])

    gradient_of(squares_in_place, backend=backend)(a)

    assert np.array_equal([1.0, 2.0, 3.0], a)


@on_both_backends
def test_array_that_cannot_be_written_is_differentiated_where_the_function_writes(backend: str) -> None:
    a = np.array([1.0, 2.0, 3.0])
    expected = gradient_of(squares_in_place, backend=backend)(a)
    a.setflags(write=False)

    assert np.array_equal(expected, gradient_of(squares_in_place, backend=backend)(a))


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fortran": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "strided": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
}


@on_both_backends
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout_of_an_argument_does_not_matter(layout: str, backend: str) -> None:
    a = np.arange(6.0).reshape(2, 3)
    given = LAYOUTS[layout](a)
    assert np.array_equal(a, given)

    bar = gradient_of(weighted_squares, backend=backend)(given)

    expected = 2.0 * a * (np.arange(2)[:, None] + 2 * np.arange(3))
    assert np.array_equal(expected, bar)


@on_both_backends
def test_strided_argument_that_is_written_is_left_as_it_was(backend: str) -> None:
    whole = np.arange(1.0, 7.0)

    bar = gradient_of(squares_in_place, backend=backend)(whole[::2])

    assert np.array_equal(gradient_of(squares_in_place)(np.array([1.0, 3.0, 5.0])), bar)
    assert np.array_equal(np.arange(1.0, 7.0), whole)


@on_both_backends
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_gradient_of_an_empty_array_is_empty(shape: tuple[int, int], backend: str) -> None:
    assert shape == gradient_of(weighted_squares, backend=backend)(np.zeros(shape)).shape


def test_array_without_dimensions_is_differentiated() -> None:
    bar = srcdiff.grad(lambda a: a[()] * a[()], backend="python")(np.array(3.0))

    assert np.array_equal(np.array(6.0), bar)
    assert () == np.shape(bar)


@on_both_backends
def test_array_passed_twice_has_two_gradients(backend: str) -> None:
    a = np.array([2.0, 3.0])

    bars = gradient_of(first_product, (0, 1), backend)(a, a)

    assert [[6.0, 0.0], [6.0, 4.0]] == [bar.tolist() for bar in bars]


def copies_then_reads(a, b):
    b[0] = a[0] * a[1]
    return b[0] * b[1]


SHARED: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "the same": lambda a: (a, a),
    "overlapping": lambda a: (a[1:], a[:-1]),
    "one inside the other": lambda a: (a, a[1:3]),
    "reversed": lambda a: (a[::-1], a),
}


@on_both_backends
@pytest.mark.parametrize("case", SHARED)
def test_arrays_that_share_memory_are_refused_where_one_is_written(case: str, backend: str) -> None:
    with pytest.raises(DifferentiationError, match="SD403"):
        gradient_of(copies_then_reads, 0, backend)(*SHARED[case](np.array([2.0, 3.0, 4.0, 5.0])))


@on_both_backends
def test_parts_of_one_array_that_do_not_overlap_may_be_written(backend: str) -> None:
    a = np.array([2.0, 3.0, 4.0, 5.0])

    assert np.array_equal([15.0, 10.0], gradient_of(copies_then_reads, 0, backend)(a[:2], a[2:]))


def test_memory_shared_inside_a_tuple_is_refused_by_the_names_of_the_arguments() -> None:
    def first_written(pair):
        pair[0][0] = 2.0 * pair[1][0]
        return pair[0][0] * pair[1][1]

    a = np.array([2.0, 3.0])
    with pytest.raises(DifferentiationError, match=r"`pair\[0\]` and `pair\[1\]`"):
        srcdiff.grad(first_written, backend="python")((a, a))


def test_array_of_foreign_byte_order_is_refused_also_after_a_native_one() -> None:
    gradient = srcdiff.grad(lambda a: a[0] * a[0], backend="python")
    gradient(np.ones(2))

    with pytest.raises(DifferentiationError, match="SD201"):
        gradient(np.ones(2, ">f8"))


def test_asarray_of_an_array_is_the_array_itself() -> None:
    def written(a):
        b = np.asarray(a)
        b[0] = 2.0 * b[1]
        return a[0] * a[1]

    assert np.array_equal([0.0, 12.0], srcdiff.grad(written, backend="python")(np.array([2.0, 3.0])))


@pytest.mark.numba
def test_unsigned_integers_of_an_array_are_whole_numbers_once_converted() -> None:
    def difference(x, u):
        return x * (int(u[0]) - int(u[1]))

    for backend in ("python", "numba"):
        assert srcdiff.grad(difference, backend=backend)(1.0, np.array([1, 2], np.uint8)) == -1.0
    with pytest.raises(DifferentiationError, match="wraps around"):
        srcdiff.grad(lambda x, u: x * (u[0] - u[1]), backend="python")(1.0, np.array([1, 2], np.uint8))


def test_masked_array_is_refused() -> None:
    with pytest.raises(DifferentiationError, match="SD201"):
        srcdiff.grad(lambda a: a[0] * a[1], backend="python")(np.ma.array([1.0, 2.0], mask=[True, False]))


# ---------------------------------------------------------------------------------------- what a function reads outside

SCALE = 2.0
TABLE = np.array([1.0, 2.0])
MODE = "double"
PAIR: Any = (np.array([1.0, 1.0]), 3.0)


def scaled_by_globals(x):
    return x * SCALE * TABLE[0] if MODE == "double" else x


@on_both_backends
def test_changed_global_is_seen_at_the_next_call(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = gradient_of(scaled_by_globals, backend=backend)
    found = [gradient(3.0)]
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    found.append(gradient(3.0))
    monkeypatch.setitem(globals(), "TABLE", np.array([10.0]))
    found.append(gradient(3.0))
    TABLE[0] = 20.0
    found.append(gradient(3.0))
    monkeypatch.setitem(globals(), "MODE", "single")
    found.append(gradient(3.0))

    assert [2.0, 5.0, 50.0, 100.0, 1.0] == found


def test_global_that_becomes_another_type_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(scaled_by_globals, backend="python")
    found = [gradient(3.0)]
    monkeypatch.setitem(globals(), "SCALE", 3)
    found.append(gradient(3.0))
    monkeypatch.setitem(globals(), "TABLE", np.array([7]))
    found.append(gradient(3.0))

    assert [2.0, 3.0, 21.0] == found


def test_deleted_global_is_reported_as_not_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(scaled_by_globals, backend="python")
    gradient(3.0)
    monkeypatch.delitem(globals(), "SCALE")

    with pytest.raises(DifferentiationError, match="SD204"):
        gradient(3.0)


def test_array_inside_a_global_tuple_is_seen_as_it_is_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(lambda x: x * PAIR[0][0] * PAIR[1], backend="python")
    found = [gradient(2.0)]
    PAIR[0][0] = 4.0
    found.append(gradient(2.0))
    monkeypatch.setitem(globals(), "PAIR", (np.array([1.0, 1.0]), 7.0))
    found.append(gradient(2.0))
    PAIR[0][0] = 1.0

    assert [3.0, 12.0, 7.0] == found


@on_both_backends
def test_changed_closure_variable_is_seen_at_the_next_call(backend: str) -> None:
    factor: Any = 2.0

    def scaled(x):
        return x * factor

    gradient = srcdiff.grad(scaled, backend=backend)
    found = [gradient(3.0)]
    factor = 5.0
    found.append(gradient(3.0))
    factor = 7
    found.append(gradient(3.0))

    assert [2.0, 5.0, 7.0] == found


class Settings:
    factor = 2.0


settings = types.ModuleType("settings")
settings.factor = 2.0  # type: ignore[attr-defined]


def test_changed_attribute_of_a_module_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(lambda x: x * settings.factor, backend="python")
    found = [gradient(3.0)]
    monkeypatch.setattr(settings, "factor", 5.0)

    assert [2.0, 5.0] == [*found, gradient(3.0)]


def test_changed_attribute_of_a_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(lambda x: x * Settings.factor, backend="python")
    found = [gradient(3.0)]
    monkeypatch.setattr(Settings, "factor", 5.0)

    assert [2.0, 5.0] == [*found, gradient(3.0)]


def helper(x, power=2.0):
    return x**power


def other_helper(x):
    return 5.0 * x


def test_redefined_helper_is_seen_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(lambda x: helper(x), backend="python")
    found = [gradient(3.0)]
    monkeypatch.setitem(globals(), "helper", other_helper)

    assert [6.0, 5.0] == [*found, gradient(3.0)]


def test_changed_default_of_a_helper_is_seen_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(lambda x: helper(x), backend="python")
    found = [gradient(3.0)]
    monkeypatch.setattr(helper, "__defaults__", (3.0,))

    assert [6.0, 27.0] == [*found, gradient(3.0)]


def test_array_from_outside_that_is_written_is_left_as_it_was() -> None:
    def writes(x):
        TABLE[0] = x * x
        return TABLE[0] * TABLE[1]

    assert srcdiff.grad(writes, backend="python")(3.0) == 12.0
    assert np.array_equal([1.0, 2.0], TABLE)


def test_array_from_outside_that_is_an_argument_too_is_refused_where_it_is_written() -> None:
    def writes(a):
        a[0] = a[0] * TABLE[1]
        return a[0] * TABLE[0]

    with pytest.raises(DifferentiationError, match=r"SD403(.|\n)*TABLE"):
        srcdiff.grad(writes, backend="python")(TABLE)


@pytest.fixture(autouse=True)
def _table_restored() -> Any:
    yield
    TABLE[:] = [1.0, 2.0]


# -------------------------------------------------------------------------------------------- flags, functions, lambdas


def chosen(x, mode, limit, double):
    if mode == "cube":
        y = x * x * x
    else:
        y = x * x
    if limit is None:
        limit = 100.0
    if double:
        y = 2.0 * y
    return y if y < limit else limit * x


@on_both_backends
def test_strings_none_and_booleans_choose_the_program(backend: str) -> None:
    gradient = gradient_of(chosen, backend=backend)

    found = [gradient(2.0, *rest) for rest in [("cube", None, False), ("square", None, True), ("cube", 5.0, False)]]

    assert [12.0, 8.0, 5.0] == found


@on_both_backends
def test_functions_as_arguments_are_followed(backend: str) -> None:
    def applied(x, function, other):
        return function(x) * other(x)

    gradient = srcdiff.grad(applied, backend=backend)

    assert gradient(2.0, math.sqrt, lambda t: t * t) == pytest.approx(2.5 * 2.0**1.5, rel=1e-15)
    assert gradient(2.0, helper, numba.njit(other_helper)) == 15.0 * 2.0**2


def test_another_function_at_the_same_address_is_another_one() -> None:
    def applied(x, function):
        return function(x)

    gradient = srcdiff.grad(applied, backend="python")

    def made(factor: float) -> Callable[[float], float]:
        return lambda t: t * factor

    assert [1.0, 2.0, 3.0, 4.0] == [gradient(2.0, made(factor)) for factor in (1.0, 2.0, 3.0, 4.0)]


def test_lambdas_are_told_apart_by_their_place() -> None:
    functions = [lambda x: x * x, lambda x: x * x * x]

    assert [4.0, 12.0] == [srcdiff.grad(f, backend="python")(2.0) for f in functions]


def test_lambda_with_a_condition_is_read() -> None:
    gradient = srcdiff.grad(lambda x: x * x if x > 0.0 else -x, backend="python")

    assert [4.0, -1.0] == [gradient(2.0), gradient(-2.0)]


@on_both_backends
def test_numba_dispatcher_is_differentiated_like_its_function(backend: str) -> None:
    assert srcdiff.grad(numba.njit(quadratic), backend=backend)(2.0) == 12.5


@pytest.mark.parametrize("given", [3.0, math.sin, np.sin, "quadratic"])
def test_what_is_no_python_function_is_refused_at_once(given: Any) -> None:
    with pytest.raises(TypeError, match="is not a Python function"):
        srcdiff.grad(given)


def test_derivative_of_a_derivative_is_right_or_refused() -> None:
    gradient = gradient_of(quadratic)
    try:
        second = srcdiff.grad(gradient, backend="python")(2.0)
    except (DifferentiationError, TypeError):
        return
    assert second == 6.0


def test_derivative_called_by_a_function_is_right_or_refused() -> None:
    gradient = gradient_of(quadratic)
    try:
        found = srcdiff.grad(lambda x: gradient(x) * x, backend="python")(2.0)
    except (DifferentiationError, TypeError):
        return
    assert found == 24.5


def test_function_whose_file_has_changed_since_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x * x\n", str(file), "exec"), namespace)
    file.write_text("def f(x):\n    return x * x * x\n")

    with pytest.raises(DifferentiationError, match="SD103"):
        srcdiff.grad(namespace["f"], backend="python")(2.0)


# -------------------------------------------------------------------------------------------------------- the decorator


@srcdiff.differentiable
def cubed(x, scale=2.0):
    """A cube."""
    return scale * x**3


@srcdiff.differentiable(backend="python", fastmath=False)
def squared(x):
    return x * x


@pytest.mark.numba
def test_decorated_function_runs_compiled_and_has_its_derivatives() -> None:
    assert cubed(2.0) == 16.0
    assert cubed.grad(wrt="scale")(2.0) == 8.0
    assert cubed.value_and_grad()(2.0, scale=1.0) == (8.0, 12.0)
    assert cubed.__doc__ == "A cube."


def test_options_of_the_decorator_hold_for_its_derivatives() -> None:
    assert squared(3.0) == 9.0
    assert squared.grad()(3.0) == 6.0
    assert "python" == squared.grad().backend
    assert "numba" == squared.grad(backend="numba").backend


def test_decorated_function_is_differentiated_like_a_plain_one() -> None:
    assert srcdiff.grad(cubed, backend="python")(2.0) == 24.0
    assert srcdiff.grad(lambda x: squared(x) * x, backend="python")(2.0) == 12.0


def test_compiled_primal_writes_into_its_argument_as_the_function_does() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])

    srcdiff.differentiable(squares_in_place, backend="python")(a)

    squares_in_place(b)
    assert np.array_equal(b, a)


@pytest.mark.parametrize("options", [{"backend": "abacus"}, {"fast": True}])
def test_unknown_option_or_backend_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"`backend` must be |unknown option"):
        srcdiff.grad(quadratic, **options)


# -------------------------------------------------------------------------------------------------------- ahead of time


@pytest.mark.numba
def test_compiled_ahead_of_time_nothing_is_compiled_at_the_call() -> None:
    def total(a, n, scale):
        result = 0.0
        for i in range(n):
            result += scale * a[i] * a[i]
        return result

    gradient = srcdiff.grad(total).compile("float64[::1]", int, 2.0)
    dispatcher = gradient.latest.function
    signatures = list(dispatcher.signatures)

    assert np.array_equal([4.0, 0.0], gradient(np.ones(2), 1, 2.0))
    assert signatures == list(dispatcher.signatures)
    assert len(gradient.specialisations) == 1


@pytest.mark.parametrize(
    "types_or_examples",
    [("float64[:]", "float64"), (np.ones(2), 1.5), (numba.float64[:], numba.float64), ("float64[:]", float)],
)
def test_types_can_be_given_as_text_by_numba_or_by_example(types_or_examples: tuple[Any, ...]) -> None:
    gradient = srcdiff.grad(lambda a, x: a[0] * x, backend="python").compile(*types_or_examples)

    gradient(np.ones(3), 2.0)

    assert len(gradient.specialisations) == 1


def test_string_that_is_an_argument_is_not_taken_for_a_type() -> None:
    gradient = srcdiff.grad(chosen, backend="python").compile(1.0, "interpolated", None, False)

    assert gradient(2.0, "interpolated", None, False) == 4.0


def test_dimensions_and_number_types_are_specialisations_of_their_own() -> None:
    def by_dimensions(a):
        if a.ndim == 2:
            return a[0, 0] * a[0, 0]
        return a[0] * a[0] * a[0]

    gradient = srcdiff.grad(by_dimensions, backend="python")

    assert 12.0 == gradient(np.array([2.0]))[0]
    assert 4.0 == gradient(np.array([[2.0]]))[0, 0]
    assert np.float32 == gradient(np.array([2.0], np.float32)).dtype
    assert len(gradient.specialisations) == 3


# ----------------------------------------------------------------------------------------------------- generated source


def test_source_is_the_same_for_two_derivatives() -> None:
    first, second = (srcdiff.grad(squares_in_place, backend="python").compile("float64[:]").source for _ in range(2))

    assert first == second


def test_source_is_the_same_in_every_process() -> None:
    program = "from tests.golden import all_golden\nfor golden in all_golden(): print(golden.generated())"
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parent.parent.parent,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert texts[0] == texts[1]
    assert texts[0]


def test_source_without_arguments_guesses_their_types() -> None:
    assert srcdiff.source(squares_in_place) == srcdiff.source(squares_in_place, "float64[:]")


def test_source_is_that_of_the_latest_specialisation() -> None:
    gradient = srcdiff.grad(first_product, backend="python")
    gradient(np.ones(2), np.ones(2))

    assert srcdiff.source(first_product, "float64[:]", "float64[:]", with_value=False) == gradient.source


def test_source_of_the_primal_can_be_asked_for() -> None:
    text = srcdiff.source(quadratic, 1.0, mode="primal")

    namespace: dict[str, Any] = {}
    exec(text, namespace)
    assert namespace["quadratic"](2.0, 3.0, 0.5) == 13.0


def test_traceback_of_the_python_backend_shows_generated_lines() -> None:
    def looks_up(a, x):
        return a[3] * x

    gradient = srcdiff.grad(looks_up, wrt="x", backend="python")
    with pytest.raises(IndexError) as caught:
        gradient(np.ones(2), 1.0)

    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.name == "looks_up_grad"
    assert last.line in [line.strip() for line in gradient.source.splitlines()]
    assert linecache.getline(last.filename, last.lineno or 0).strip() == last.line


# --------------------------------------------------------------------------------- stop_gradient, custom_rule, warnings


@on_both_backends
def test_stopped_value_is_a_constant(backend: str) -> None:
    def stopped(x):
        y = srcdiff.stop_gradient(x * x)
        return x * y

    assert srcdiff.value_and_grad(stopped, backend=backend)(2.0) == (8.0, 4.0)
    assert stopped(2.0) == 8.0


def test_array_can_be_stopped() -> None:
    def stopped(a):
        b = srcdiff.stop_gradient(a)
        return a[0] * b[0]

    assert np.array_equal([3.0], srcdiff.grad(stopped, backend="python")(np.array([3.0])))


def softplus_adjoint(x, out, out_bar):
    return out_bar / (1.0 + math.exp(-x))


@srcdiff.custom_rule(adjoint=softplus_adjoint)
def softplus(x):
    """Its value is computed outside of the accepted language."""
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


def product_adjoint(x, n, out, out_bar):
    return 100.0 * out_bar, None


def wrong_adjoint(x, out, out_bar):
    return 3.0 * x * out_bar


@on_both_backends
def test_declared_rule_is_used(backend: str) -> None:
    def loss(x):
        return 2.0 * softplus(3.0 * x)

    assert srcdiff.grad(loss, backend=backend)(0.0) == 3.0
    assert softplus(0.0) == math.log(2.0)


def twice_cube_adjoint(x, out, out_bar):
    return 2.0 * 3.0 * x * x * out_bar


@srcdiff.custom_rule(adjoint=twice_cube_adjoint)
def cube_with_another_rule(x):
    return x * x * x


@on_both_backends
def test_function_with_a_rule_is_differentiated_by_it(backend: str) -> None:
    cube = cube_with_another_rule

    assert srcdiff.grad(cube, backend=backend)(3.0) == 54.0
    assert srcdiff.jvp(cube, (3.0,), (1.0,), backend=backend) == (27.0, 54.0)
    again = pickle.loads(pickle.dumps(srcdiff.differentiable(cube, backend=backend)))
    assert again.grad()(3.0) == 54.0
    assert srcdiff.grad(lambda x: srcdiff.grad(cube)(x) * x, backend=backend)(3.0) == 54.0 + 3.0 * 36.0


def test_differentiable_of_a_derivative_has_derivatives() -> None:
    slope = srcdiff.differentiable(srcdiff.grad(lambda x: x**4), backend="python")

    assert slope(3.0) == 108.0
    assert slope.grad()(2.0) == 48.0
    assert srcdiff.grad(slope, backend="python")(2.0) == 48.0
    assert srcdiff.grad(lambda x: 2.0 * slope(x), backend="python")(2.0) == 96.0


@on_both_backends
def test_numbers_that_are_returned_are_those_of_python(backend: str) -> None:
    value, (gradient, _) = srcdiff.value_and_grad(lambda p: p[0] * p[1] ** 2, backend=backend)((2.0, 3.0))

    assert [float, float] == [type(value), type(gradient)]


def test_declared_rule_returns_none_for_arguments_without_derivative() -> None:
    product = srcdiff.custom_rule(lambda x, n: x * n, adjoint=product_adjoint)

    assert srcdiff.value_and_grad(lambda x: product(x, 3), backend="python")(2.0) == (6.0, 100.0)


def test_check_passes_and_says_what_it_compared() -> None:
    report = srcdiff.check(squares_in_place, np.array([1.0, 2.0, 3.0]), backend="python")

    assert ["a[0]", "a[1]", "a[2]"] == [entry.place for entry in report.entries]
    assert "3 derivatives agree" in str(report)


def test_check_finds_a_wrong_rule_and_names_the_place() -> None:
    square = srcdiff.custom_rule(lambda x: x * x, adjoint=wrong_adjoint)

    def loss(p, a):
        return p[0] + p[1][0] * square(a[1])

    with pytest.raises(AssertionError, match=r"1 of 4 derivatives differ(.|\n)*a\[1\]: derivative 12, differences 8"):
        srcdiff.check(loss, (1.0, (2.0,)), np.array([1.0, 2.0]), backend="python")


def warnings_of(function: Callable[..., Any], *arguments: Any, wrt: Any = 0) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        srcdiff.grad(function, wrt=wrt, backend="python")(*arguments)
    assert {ZeroGradientWarning} >= {one.category for one in caught}
    assert {__file__} >= {one.filename for one in caught}
    return [str(one.message) for one in caught]


def test_unused_argument_is_announced_by_its_name() -> None:
    assert ["the gradient with respect to `y` is zero: it is not used"] == warnings_of(
        lambda x, y: x * x, 2.0, 3.0, wrt=("x", "y")
    )


@pytest.mark.parametrize("cut", ["int(x)", "round(x)", "math.floor(x)", "x // 1.0", "srcdiff.stop_gradient(x)"])
def test_line_that_cuts_the_gradient_is_announced(cut: str, tmp_path: Path) -> None:
    text = f"def f(x):\n    y = {cut}\n    return 2.0 * y\n"
    file = tmp_path / "model.py"
    file.write_text(text)
    namespace: dict[str, Any] = {"math": math, "srcdiff": srcdiff}
    exec(compile(text, str(file), "exec"), namespace)

    (message,) = warnings_of(namespace["f"], 2.5)

    assert "with respect to `x` is zero" in message
    assert f"in line 2, `y = {cut}`" in message


def test_gradient_that_is_zero_by_value_is_not_announced() -> None:
    assert [] == warnings_of(lambda x: x * x, 0.0)


def test_warning_comes_once_for_a_specialisation() -> None:
    gradient = srcdiff.grad(lambda x, y: x, wrt="y", backend="python")
    with pytest.warns(ZeroGradientWarning):
        gradient(1.0, 2.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient(1.0, 2.0)


# ------------------------------------------------------------------------------------ exceptions, prints, compiled code


class Unphysical(Exception):  # noqa: N818 -- as users name theirs
    pass


def guarded(x):
    assert x < 100.0, "too large"
    if x < 0.0:
        raise Unphysical("below zero")
    return math.sqrt(x)


@on_both_backends
def test_exceptions_of_the_program_are_raised_by_its_gradient(backend: str) -> None:
    gradient = gradient_of(guarded, backend=backend)

    assert gradient(4.0) == 0.25
    with pytest.raises(Unphysical, match="below zero"):
        gradient(-1.0)
    with pytest.raises(AssertionError, match="too large"):
        gradient(200.0)


class Failure(Exception):  # noqa: N818 -- as users name theirs
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def refusing(x, n):
    """Raises in different ways."""
    if x < -4.0:
        raise ValueError("x is negative", 3, x)
    if x < -3.0:
        raise ValueError(f"x is {x:.3f}, not {{{n:>3}}}" + str(n))
    if x < -2.0:
        raise Failure("x is {:.1e}".format(x), n)  # noqa: UP032 -- what is tested
    if x < -1.0:
        raise KeyError((x, "a"), None)
    if x < 0.0:
        raise AssertionError(f"{x=} for {n!r}")
    return x


@on_both_backends
@pytest.mark.parametrize("x", [-4.5, -3.5, -2.5, -1.5, -0.5])
def test_exception_has_the_arguments_that_the_program_gave(x: float, backend: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 -- of whatever kind
        refusing(x, 7)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        gradient_of(refusing, backend=backend)(x, 7)

    assert (expected.type, expected.value.args) == (caught.type, caught.value.args)
    assert str(expected.value) == str(caught.value)
    assert getattr(expected.value, "code", None) == getattr(caught.value, "code", None)


@on_both_backends
def test_prints_happen_once(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    def talkative(x, n):
        print("start", n)
        for k in range(n):
            x = x * x
            print("iteration", k, x)
        return x

    srcdiff.grad(talkative, backend=backend)(2.0, 2)
    sys.stdout.flush()

    assert "start 2\niteration 0 4.0\niteration 1 16.0\n" == capfd.readouterr().out


def talkative(x, n):
    """Prints in different ways."""
    print(f"x = {x:.3f}, twice {2 * x} {n:>5d}|", "end", sep="; ")
    print("plain", x, n, n > 2, "", "{b}")
    print("no line end", end="")
    print(" more", (x, n), [x, "s"], Point(x, 2.0), (n,), flush=True)
    print(f"{x=} {x!r:>8} {n:{n}} {{}} {'q':>3}")
    print("{} {:.2f} {a}".format(n, x, a=3) + str(n))  # noqa: UP032 -- what is tested
    return x * x


@on_both_backends
def test_text_is_printed_as_by_the_function(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    talkative(1.5, 3)
    expected = capsys.readouterr().out

    gradient_of(talkative, backend=backend)(1.5, 3)

    assert expected == capsys.readouterr().out


compiled_gradient = srcdiff.value_and_grad(squares_in_place)


@numba.njit
def descend(a, rate, steps):
    """A user's compiled function that calls the gradient."""
    value = 0.0
    for _ in range(steps):
        value, bar = compiled_gradient(a)
        for i in range(len(a)):
            a[i] -= rate * bar[i]
    return value


@pytest.mark.numba
def test_gradient_is_called_from_compiled_code() -> None:
    a, b = np.array([0.5, 0.6, 0.7]), np.array([0.5, 0.6, 0.7])
    for _ in range(3):
        _, bar = srcdiff.value_and_grad(squares_in_place, backend="python")(b)
        b -= 0.01 * bar

    descend(a, 0.01, 3)

    np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.numba
def test_gradient_is_called_from_compiled_code_with_defaults_and_keywords() -> None:
    gradient = srcdiff.grad(quadratic)

    @numba.njit
    def called(x):
        return gradient(x), gradient(x, z=1.0), gradient(x, 1, 1.0), gradient(z=1.0, x=x)

    assert called(2.0) == (12.5, 13.0, 5.0, 13.0)


@pytest.mark.numba
def test_default_that_is_not_a_number_works_in_compiled_code() -> None:
    def by_mode(x, mode="square", scale=2.0, way=math.sin):
        return scale * (x * x if mode == "square" else way(x))

    gradient = srcdiff.grad(by_mode)

    @numba.njit
    def called(x):
        return gradient(x), gradient(x, scale=3.0)

    @numba.njit
    def wrong(x):
        return gradient(x, 3.0)

    assert called(2.0) == (8.0, 12.0)
    assert wrong(0.0) == gradient(0.0, 3.0)


@pytest.mark.numba
def test_shared_memory_is_refused_in_compiled_code() -> None:
    gradient = srcdiff.grad(copies_then_reads)

    @numba.njit
    def called(a):
        return gradient(a[1:], a[:-1])

    with pytest.raises(ValueError, match="share memory"):
        called(np.ones(3))


@pytest.mark.numba
def test_shared_memory_in_tuples_is_refused_in_compiled_code() -> None:
    def copies(pair, x):
        a, b = pair
        a[0] = b[1] * x
        return a[0] * b[1]

    gradient = srcdiff.grad(copies, wrt="x")

    @numba.njit
    def called(a, b):
        return gradient((a, b), 2.0)

    assert called(np.ones(2), np.full(2, 3.0)) == 9.0
    a = np.ones(2)
    with pytest.raises(ValueError, match="share memory"):
        called(a, a)


def test_problem_is_reported_when_compiled_code_is_compiled() -> None:
    gradient = srcdiff.grad(lambda x: x * nowhere)  # type: ignore[name-defined]  # noqa: F821 -- the problem

    @numba.njit
    def called(x):
        return gradient(x)

    with pytest.raises(Exception, match="SD204"):
        called(1.0)


@pytest.mark.numba
def test_division_by_zero_gives_infinity_unless_asked_otherwise() -> None:
    gradient, strict = srcdiff.grad(lambda x: 1.0 / x), srcdiff.grad(lambda x: 1.0 / x, error_model="python")

    assert gradient(0.0) == -math.inf
    with pytest.raises(ZeroDivisionError):
        strict(0.0)


@pytest.mark.numba
def test_index_errors_are_raised_with_bounds_checks() -> None:
    gradient = srcdiff.grad(lambda a, i: a[i] * a[i], boundscheck=True)

    with pytest.raises(IndexError):
        gradient(np.ones(3), 5)


def _scaled_squares_adjoint(x: Any, k: Any, out: Any, out_bar: Any) -> Any:
    return 2.0 * k * x * out_bar, np.sum(out_bar * x * x)


@srcdiff.custom_rule(adjoint=_scaled_squares_adjoint)
def _scaled_squares(x: Any, k: Any) -> Any:
    y = x.copy()
    for i in range(len(y)):
        y[i] = k * x[i] * x[i]
    return y


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_custom_rule_takes_and_gives_arrays(backend: str) -> None:
    """Also if its arguments and results are overwritten afterwards."""

    def program(x: Any, k: float) -> Any:
        y = _scaled_squares(x, k)
        x[0] = 5.0
        for _ in range(3):
            y = _scaled_squares(y, k) + 0.1 * x
            y[1] *= 0.5
        return np.sum(y)

    def plain(x: Any, k: float) -> Any:
        y = k * x * x
        x[0] = 5.0
        for _ in range(3):
            y = k * y * y + 0.1 * x
            y[1] *= 0.5
        return np.sum(y)

    arguments = np.array([0.5, 0.6, -0.3]), 0.7
    value, (x_bar, k_bar) = srcdiff.value_and_grad(program, wrt=(0, 1), backend=backend)(*arguments)
    expected, (expected_x, expected_k) = srcdiff.value_and_grad(plain, wrt=(0, 1), backend="python")(*arguments)
    assert value == pytest.approx(expected, rel=1e-12)
    assert x_bar == pytest.approx(expected_x, rel=1e-12)
    assert k_bar == pytest.approx(expected_k, rel=1e-12)


# -- calls that go straight to compiled code --------------------------------------------------------------------------


def squares(a):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * a[i]
    return total


def by_two_arrays(a, b):
    total = 0.0
    for i in range(len(a)):
        a[i] = a[i] * b[i]
        total += a[i] * a[i]
    return total


@pytest.mark.numba
def test_calls_with_the_types_of_the_latest_call_skip_the_lookup(monkeypatch) -> None:
    gradient = srcdiff.grad(squares)
    gradient(np.ones(2))
    monkeypatch.setattr(gradient, "_call", None)
    assert [2.0, 4.0, 6.0] == gradient(np.array([1.0, 2.0, 3.0])).tolist()


@pytest.mark.numba
def test_types_in_iteration_are_told_apart(tmp_path) -> None:
    gradient = srcdiff.grad(squares)
    read_only = np.ones(2)
    read_only.flags.writeable = False
    in_file = np.memmap(tmp_path / "numbers", float, "w+", shape=(2,))
    in_file[:] = 1.0
    arrays = [np.ones(2), np.ones(2, np.float32), np.ones(4)[::2], read_only, in_file]
    for _ in range(2):
        for a in arrays:
            result = gradient(a)
            assert (result.dtype, result.tolist()) == (a.dtype, [2.0, 2.0])


@pytest.mark.numba
@pytest.mark.parametrize("wrong", [np.ma.ones(2), np.ones(2, complex), np.ones(2, object), np.ones(2, ">f8"), "3", 1j])
def test_what_was_refused_is_refused_after_a_call_too(wrong) -> None:
    gradient = srcdiff.grad(squares)
    gradient(np.ones(2))
    with pytest.raises(srcdiff.DifferentiationError):
        gradient(wrong)


@pytest.mark.numba
def test_text_is_no_number_after_a_call_with_an_integer() -> None:
    gradient = srcdiff.grad(lambda x: x * x)
    assert 6.0 == gradient(3)
    with pytest.raises(srcdiff.DifferentiationError):
        gradient("3")
    assert (4.0, np.float32(4.0), 4.0, 4.0) == tuple(
        gradient(x) for x in (2.0, np.float32(2), np.int16(2), np.int64(2))
    )


@pytest.mark.numba
def test_arrays_that_share_memory_are_refused_after_a_call_too() -> None:
    gradient = srcdiff.grad(by_two_arrays)
    memory = np.ones(4)
    for _ in range(2):
        assert [2.0, 2.0] == gradient(np.ones(2), np.ones(2)).tolist()
        assert [2.0, 2.0] == gradient(memory[:2], memory[2:]).tolist()
        assert [2.0, 2.0] == gradient(memory[::2], memory[1::2]).tolist()
        for other in (memory, memory[::-1], memory[1:]):
            with pytest.raises(srcdiff.DifferentiationError, match="share memory"):
                gradient(memory, other)


@pytest.mark.numba
def test_numbers_of_arguments_are_counted_after_a_call_too() -> None:
    gradient = srcdiff.grad(lambda x, y=3.0: x * y)
    assert (2.0, 3.0, 5.0, 5.0) == (gradient(1.0, 2.0), gradient(1.0), gradient(1.0, y=5.0), gradient(x=1.0, y=5.0))
    with pytest.raises(TypeError):
        gradient(1.0, 2.0, 3.0)
    with pytest.raises(TypeError):
        gradient()


@pytest.mark.numba
def test_keyword_only_argument_stays_one_after_a_call() -> None:
    def f(x, *, y):
        return x * y

    gradient = srcdiff.grad(f)
    assert 2.0 == gradient(1.0, y=2.0)
    with pytest.raises(TypeError):
        gradient(1.0, 2.0)


@pytest.mark.numba
def test_variables_from_outside_are_read_at_every_call() -> None:
    factor: object = 2.0
    power = 2

    def f(x):
        return factor * x**power

    gradient = srcdiff.grad(f)
    assert [12.0, 12.0] == [gradient(3.0), gradient(3.0)]
    factor = 5.0
    assert 30.0 == gradient(3.0)
    power = 3
    assert 135.0 == gradient(3.0)
    factor = np.float32(2.0)
    assert 54.0 == gradient(3.0)


@pytest.mark.numba
def test_sizes_that_stretch_are_seen_after_a_call_too() -> None:
    gradient = srcdiff.grad(lambda a, b: np.sum(a * b))
    for _ in range(2):
        assert [1.0, 1.0] == gradient(np.ones(2), np.ones(2)).tolist()
        assert [2.0] == gradient(np.ones(1), np.ones(2)).tolist()
        with pytest.raises(ValueError, match="broadcast"):
            gradient(np.ones(3), np.ones(2))
