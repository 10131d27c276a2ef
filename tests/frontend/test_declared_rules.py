"""Rules for functions that the user cannot edit: `srcdiff.rule_for`."""

from __future__ import annotations

import functools
import math
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from scipy import special

import srcdiff
from srcdiff.frontend.source.declared_rules import RULES

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def series_j0(x: float) -> float:
    total, term = 0.0, 1.0
    for k in range(1, 40):
        total += term
        term *= -(x * x / 4.0) / (k * k)
    return total


def series_j1(x: float) -> float:
    total, term = 0.0, x / 2.0
    for k in range(1, 40):
        total += term
        term *= -(x * x / 4.0) / (k * (k + 1))
    return total


def j0_adjoint(x: float, out: float, out_bar: float) -> tuple[float]:
    return (-out_bar * special.j1(x),)


def j0_tangent(x: float, out: float, x_dot: float) -> float:
    return -x_dot * special.j1(x)


WAYS: dict[str, dict[str, Any]] = {
    "adjoint": {"adjoint": j0_adjoint},
    "tangent": {"tangent": j0_tangent},
    "neither": {},
}


@numba.njit
def compiled_helper(x: float) -> float:
    return 2.0 * special.j0(x)


def of_number(x: float) -> float:
    return special.j0(x) * compiled_helper(0.5 * x)


def of_number_in_python(x: float) -> float:
    """The same without Numba, which cannot compile the helper."""
    return special.j0(x) * 2.0 * special.j0(0.5 * x)


def of_array(x: Any) -> Any:
    total = np.sum(special.j0(x) ** 2)
    for k in range(len(x)):
        total += x[k] * special.j0(x[k] * x[0])
    return total


def of_stretched(x: Any) -> Any:
    return np.sum(special.j0(x[:, None] - x[1:]) * x[:, None])


def by_map(x: Any) -> Any:
    return sum(map(special.j0, x)) + functools.reduce(lambda s, v: s * special.j0(v), x, 1.0)


def by_choice(x: Any) -> Any:
    function = special.j0 if x[0] > 0.0 else np.sin
    return function(x[0]) * np.sum(np.apply_along_axis(special.j0, 0, x))


def differences(f: Callable[..., Any], x: Any, step: float = 1e-3) -> Any:
    """Central differences of fourth order."""
    shifted = [np.array(x, float) for _ in range(4)]
    slopes = np.empty(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        values = []
        for array, factor in zip(shifted, (-2, -1, 1, 2), strict=True):
            array[...] = x
            array[place] += factor * step
            values.append(f(array if array.ndim else float(array)))
        a, b, c, d = values
        slopes[place] = (a - 8.0 * b + 8.0 * c - d) / (12.0 * step)
    return slopes


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [of_number, of_array, of_stretched, by_map, by_choice], ids=lambda f: f.__name__)
def test_derivatives_agree_with_differences_of_the_function_itself(f: Any, way: str, backend: str) -> None:
    srcdiff.rule_for(special.j0, **WAYS[way])(series_j0)
    srcdiff.rule_for(special.j1)(series_j1)
    x = 1.3 if f is of_number else np.array([0.4, 1.7, 2.9])
    plain = of_number_in_python if f is of_number else f

    value, gradient = srcdiff.value_and_grad(f, backend=backend)(x)
    _, tangent = srcdiff.jvp(f, (x,), (np.ones(3) if np.ndim(x) else 1.0,), backend=backend)

    assert value == pytest.approx(plain(x), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(plain, x), rtol=1e-8, atol=1e-8)  # h^4, and rounding over h
    assert tangent == pytest.approx(np.sum(gradient), rel=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
def test_second_order(way: str, backend: str) -> None:
    srcdiff.rule_for(special.j0, **WAYS[way])(series_j0)
    srcdiff.rule_for(special.j1)(series_j1)
    x = np.array([0.4, 1.7, 2.9])

    found = srcdiff.hessian(of_array, backend=backend)(x)

    gradient = srcdiff.grad(of_array, backend=backend)
    rows = [differences(lambda x, k=k: gradient(x)[k], x) for k in range(3)]
    np.testing.assert_allclose(found, rows, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
def test_ufunc_converts_as_numpy_does(backend: str) -> None:
    srcdiff.rule_for(special.j0, adjoint=j0_adjoint)(series_j0)
    srcdiff.rule_for(special.j1)(series_j1)

    def of_integers(x: float, n: Any) -> Any:
        return x * np.sum(special.j0(n)) + special.j0(2)

    def summed(x: Any) -> Any:
        return np.sum(special.j0(x))

    numbers = np.arange(4)
    single = srcdiff.grad(summed, backend=backend)(np.array([0.5, 1.5], np.float32))

    assert srcdiff.grad(of_integers, backend=backend)(1.5, numbers) == pytest.approx(np.sum(special.j0(numbers)))
    assert srcdiff.grad(summed, backend=backend)(np.zeros(0)).shape == (0,)
    assert srcdiff.grad(summed, backend=backend)(np.zeros((0, 3))).shape == (0, 3)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, -special.j1(np.array([0.5, 1.5])), rtol=1e-6)
    assert np.isnan(srcdiff.grad(summed, backend=backend)(np.array([np.nan]))).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_of_two_arguments_by_position_and_name(backend: str) -> None:
    @srcdiff.rule_for(math.dist, adjoint=lambda p, q, out, out_bar: (out_bar * (p - q) / out, out_bar * (q - p) / out))
    def distance(p: Any, q: Any) -> Any:
        return np.sqrt(np.sum((p - q) ** 2))

    @srcdiff.rule_for(operator.concat)
    def joined(a: Any, b: Any) -> Any:
        return np.concatenate((a, 2.0 * b))

    def f(p: Any, q: Any) -> Any:
        return distance(q=p, p=q) ** 2 + math.dist(p, q) + np.sum(operator.concat(p, q))

    p, q = np.array([1.0, 2.0]), np.array([4.0, 6.0])
    by_p, by_q = srcdiff.grad(f, wrt=("p", "q"), backend=backend)(p, q)

    np.testing.assert_allclose(by_p, 2.0 * (p - q) + (p - q) / 5.0 + 1.0, rtol=1e-14)
    np.testing.assert_allclose(by_q, 2.0 * (q - p) + (q - p) / 5.0 + 2.0, rtol=1e-14)


# -- overriding ------------------------------------------------------------------------------------------------------


def safe_root_adjoint(x: float, out: float, out_bar: float) -> float:
    return 0.5 * out_bar / out if out > 0.0 else 0.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_comes_before_a_built_in_one_and_its_implementation_may_call_the_function(backend: str) -> None:
    def root_through_helper(x: float) -> float:
        return np.sqrt(x)

    @srcdiff.rule_for(np.sqrt, adjoint=safe_root_adjoint)
    def root(x: float) -> float:
        return root_through_helper(x)

    def f(x: Any) -> Any:
        return np.sum(np.sqrt(x)) + root(x[0]) + root_through_helper(x[1])

    assert srcdiff.grad(f, backend=backend)(np.array([0.0, 4.0])).tolist() == [0.0, 0.5]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_is_for_the_users_calls_and_not_for_those_of_the_library(backend: str) -> None:
    srcdiff.rule_for(np.sqrt, adjoint=lambda x, out, out_bar: (100.0 * out_bar,))(np_sqrt)
    srcdiff.rule_for(np.sum)(lambda a: 100.0 * a[0])
    srcdiff.rule_for(np.multiply, adjoint=lambda x, y, out, out_bar: (out_bar, out_bar))(lambda x, y: x * y)

    def f(x: Any) -> Any:
        return np.std(x) + np.linalg.norm(x) + x.sum() + sum(x * x)

    x = np.array([1.0, 2.0, 4.0])

    np.testing.assert_allclose(srcdiff.grad(f, backend=backend)(x), differences(f, x), rtol=1e-9)


def np_sqrt(x: float) -> float:
    return np.sqrt(x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_for_a_method_of_arrays(backend: str) -> None:
    srcdiff.rule_for(np.ndarray.cumsum)(lambda a: 3.0 * a)

    assert srcdiff.grad(lambda x: np.sum(x.cumsum()), backend=backend)(np.ones(2)).tolist() == [3.0, 3.0]
    assert srcdiff.grad(lambda x: np.sum(np.cumsum(x)), backend=backend)(np.ones(2)).tolist() == [2.0, 1.0]


@dataclass
class Model:
    scale: float

    def go(self, x: float) -> float:
        return self.scale * x

    def __call__(self, x: float) -> float:
        return self.scale * x

    @classmethod
    def of_class(cls, x: float) -> float:
        return x


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_for_a_method_of_a_class(backend: str) -> None:
    @srcdiff.rule_for(Model.go)
    def go(self: Model, x: float) -> float:
        return 10.0 * self.scale * x

    assert srcdiff.grad(lambda x, m: m.go(x), backend=backend)(1.5, Model(3.0)) == 30.0


MODEL = Model(3.0)
BOUND = MODEL.go


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_for_a_method_covers_bound_methods_and_callable_instances(backend: str) -> None:
    gradients = [srcdiff.grad(f, backend=backend) for f in (MODEL.go, MODEL, lambda x: BOUND(x), lambda x: MODEL(x))]
    by_class = srcdiff.grad(lambda x: Model.of_class(x), backend=backend)
    assert [*[g(1.5) for g in gradients], by_class(1.5)] == [3.0, 3.0, 3.0, 3.0, 1.0]

    srcdiff.rule_for(Model.go)(lambda self, x: 10.0 * self.scale * x)
    srcdiff.rule_for(Model.__call__)(lambda self, x: 10.0 * self.scale * x)
    srcdiff.rule_for(Model.of_class.__func__)(lambda cls, x: 10.0 * x)

    assert [*[g(1.5) for g in gradients], by_class(1.5)] == [30.0, 30.0, 30.0, 30.0, 10.0]


@pytest.mark.parametrize(
    ("method", "name"), [(BOUND, "Model.go"), (MODEL, "Model.__call__"), (Model.of_class, "Model.of_class.__func__")]
)
def test_rule_for_a_bound_method_is_refused(method: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"takes the function of the class, `{name}`, not a bound method"):
        srcdiff.rule_for(method)


class Unhashable:
    """An instance that srcdiff cannot read, because its class computes attributes."""

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __call__(self, x: float) -> float:
        return 3.0 * x


UNHASHABLE = Unhashable()
DRAW = np.random.default_rng(0).random


@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_that_cannot_be_hashed_and_builtin_methods(backend: str) -> None:
    srcdiff.rule_for(UNHASHABLE)(lambda x: 7.0 * x)
    srcdiff.rule_for(DRAW)(lambda: 0.5)

    assert srcdiff.grad(lambda x: UNHASHABLE(x), backend=backend)(1.5) == 7.0
    assert srcdiff.grad(lambda x: x * DRAW(), backend=backend)(1.5) == 0.5


@numba.njit
def jitted(x: float) -> float:
    return x * x


def readable(x: float) -> float:
    return x * x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [jitted, readable, srcdiff.differentiable(readable)], ids=["jit", "plain", "ours"])
def test_function_with_source_also_where_it_is_differentiated_itself(function: Any, backend: str) -> None:
    gradient, around = srcdiff.grad(function, backend=backend), srcdiff.grad(lambda x: function(x), backend=backend)
    inside = srcdiff.grad(lambda x: srcdiff.grad(function)(x), backend=backend)
    assert (gradient(3.0), around(3.0), inside(3.0)) == (6.0, 6.0, 2.0)

    srcdiff.rule_for(function, adjoint=lambda x, out, out_bar: (x * x * out_bar,))(function)

    assert (gradient(3.0), around(3.0), inside(3.0)) == (9.0, 9.0, 6.0)


def with_syntax_of_its_own(x: float) -> float:
    try:
        return x * x
    except ValueError:
        return x


def test_function_whose_source_is_not_supported() -> None:
    srcdiff.rule_for(with_syntax_of_its_own)(lambda x: x * x)

    assert srcdiff.grad(with_syntax_of_its_own, backend="python")(3.0) == 6.0


# -- never stale -----------------------------------------------------------------------------------------------------


def cube(x: float) -> float:
    return x * x * x


def call_cube(x: float) -> float:
    return cube(x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_that_are_declared_replaced_and_removed_later_are_noticed(backend: str) -> None:
    gradient = srcdiff.grad(call_cube, backend=backend)
    assert gradient(2.0) == 12.0

    srcdiff.rule_for(cube, adjoint=lambda x, out, out_bar: (5.0 * out_bar,))(cube)
    assert gradient(2.0) == 5.0
    srcdiff.rule_for(cube, replace=True)(lambda x: 7.0 * x)
    assert gradient(2.0) == 7.0
    RULES.remove(cube)
    assert gradient(2.0) == 12.0


def of_cubes(x: Any) -> Any:
    return np.array([cube(x[0]), x[1]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_that_are_declared_later_are_noticed_in_all_modes(backend: str) -> None:
    gradient, jacobian = srcdiff.grad(call_cube, backend=backend), srcdiff.jacobian(of_cubes, backend=backend)
    batch, hessian = srcdiff.batched(gradient), srcdiff.hessian(call_cube, backend=backend)
    times, primal = srcdiff.hvp(call_cube, backend=backend), srcdiff.differentiable(call_cube, backend=backend)
    reused = gradient.workspace(2.0)

    def found() -> list[Any]:
        forward = srcdiff.jvp(call_cube, (2.0,), (1.0,), backend=backend)
        (backward,) = srcdiff.vjp(call_cube, 2.0, backend=backend)[1](1.0)
        rows = jacobian(np.array([2.0, 1.0])).tolist()
        second = float(hessian(2.0)), float(times(2.0, 1.0))
        return [batch(np.array([1.0, 2.0])).tolist(), rows, *second, primal(2.0), forward, backward, reused(2.0)]

    assert found() == [[3.0, 12.0], [[12.0, 0.0], [0.0, 1.0]], 12.0, 12.0, 8.0, (8.0, 12.0), 12.0, 12.0]
    srcdiff.rule_for(cube)(lambda x: 5.0 * x * x)
    assert found() == [[10.0, 20.0], [[20.0, 0.0], [0.0, 1.0]], 10.0, 10.0, 20.0, (20.0, 20.0), 20.0, 20.0]


def bar(x: float, out: float, out_bar: float) -> float:
    return 3.0 * cube(x) / x * out_bar


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_for_what_only_the_adjoint_calls_are_noticed(backend: str) -> None:
    srcdiff.rule_for(special.j0, adjoint=bar)(lambda x: x * x * x)
    gradient = srcdiff.grad(lambda x: special.j0(x), backend=backend)
    assert gradient(2.0) == 12.0

    srcdiff.rule_for(cube)(lambda x: 2.0 * x)

    assert gradient(2.0) == 6.0


def test_rules_for_other_functions_change_nothing() -> None:
    gradient = srcdiff.grad(call_cube, backend="python")
    gradient(2.0)
    before = gradient.latest

    srcdiff.rule_for(special.j0)(series_j0)
    gradient(2.0)

    assert gradient.latest is before


PROGRAM = """
import sys
import srcdiff

def h(x):
    return x * x

def f(x):
    return h(x)

if sys.argv[1] == "inlined":
    srcdiff.rule_for(h)(lambda x: 5.0 * x)
if sys.argv[1] == "rule":
    srcdiff.rule_for(h, adjoint=lambda x, out, out_bar: 7.0 * out_bar)(h)
print(srcdiff.grad(f, cache=True)(1.5))
"""


@pytest.mark.numba
def test_cache_on_disk_knows_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    surroundings = {**os.environ, "SRCDIFF_CACHE_DIR": str(tmp_path / "kept"), "NUMBA_CACHE_DIR": str(tmp_path / "n")}

    def run(how: str) -> float:
        made = subprocess.run([sys.executable, file, how], capture_output=True, text=True, env=surroundings, check=True)
        return float(made.stdout)

    assert [run(how) for how in ("none", "inlined", "rule", "none", "inlined")] == [3.0, 5.0, 7.0, 3.0, 5.0]


# -- memory ----------------------------------------------------------------------------------------------------------


def stretch(a: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize("backend", BACKENDS)
def test_implementation_that_writes_to_its_argument_writes_to_that_of_the_caller(backend: str) -> None:
    @srcdiff.rule_for(stretch)
    def doubled(a: Any) -> Any:
        a *= 2.0
        return a

    def f(x: Any) -> Any:
        y = x.copy()
        z = stretch(y)
        z[0] = 5.0 * x[1]
        return np.sum(y * z)

    x = np.array([1.0, 3.0])
    np.testing.assert_allclose(srcdiff.grad(f, backend=backend)(x), [0.0, 50.0 * 3.0 + 8.0 * 3.0], rtol=1e-14)
    assert x.tolist() == [1.0, 3.0]


def test_implementation_with_a_rule_that_shares_memory_is_refused() -> None:
    srcdiff.rule_for(stretch, adjoint=lambda a, out, out_bar: (out_bar,))(lambda a: a)

    with pytest.raises(srcdiff.DifferentiationError, match="returns an argument"):
        srcdiff.grad(lambda x: np.sum(stretch(x)), backend="python")(np.ones(2))


# -- what is refused -------------------------------------------------------------------------------------------------


def test_second_rule_is_an_error() -> None:
    srcdiff.rule_for(cube)(lambda x: x)

    with pytest.raises(ValueError, match="`cube` has a rule already: pass `replace=True`"):
        srcdiff.rule_for(cube)(lambda x: x)


@pytest.mark.parametrize(
    "wrong",
    [3.0, float, srcdiff.grad, srcdiff.grad(cube)],
    ids=["number", "class", "function of srcdiff", "derivative"],
)
def test_only_functions_have_rules(wrong: Any) -> None:
    with pytest.raises(TypeError, match="`rule_for` takes"):
        srcdiff.rule_for(wrong)


def test_implementation_is_a_python_function() -> None:
    with pytest.raises(TypeError, match="is not a Python function"):
        srcdiff.rule_for(cube)(math.sin)


def refused(f: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(f, backend="python")(*args)
    return str(caught.value)


def test_methods_and_keywords_of_a_ufunc_with_a_rule_are_refused() -> None:
    srcdiff.rule_for(np.sqrt)(np_sqrt)
    srcdiff.rule_for(np.modf)(lambda x: (x, x))

    assert "does not cover its method `at`" in refused(lambda x: np.sqrt.at(x, 0) or x[0], np.ones(2))
    assert "takes one positional argument only" in refused(lambda x: np.sum(np.sqrt(x, out=x)), np.ones(2))
    assert "returns 2 arrays" in refused(lambda x: np.modf(x)[0], 1.5)


def test_error_shows_the_lines_that_declare_a_rule() -> None:
    shown = refused(lambda x: special.struve(2, x), 1.5)

    assert "@srcdiff.rule_for(special.struve)\n" in shown
    assert "def struve(x, y): ..." in shown


# -- more programs ---------------------------------------------------------------------------------------------------


def legendre(n: Any, x: float) -> float:
    before, now = 1.0, x
    if n == 0:
        return before
    for k in range(1, int(n)):
        before, now = now, ((2 * k + 1) * x * now - k * before) / (k + 1)
    return now


def with_orders(x: Any, orders: Any) -> Any:
    total = np.sum(special.eval_legendre(3, x)) + np.sum(special.eval_legendre(orders, x[::-2, None]))
    for n in range(4):
        total += special.eval_legendre(n, x[n % 2])
    return total


def until_small(x: Any, n: int) -> Any:
    y, k = x[0], 0
    while k < n:
        y = special.expit(y) * y
        if y < 0.2:
            break
        k += 1
    return y + x[1]


def expit_adjoint(x: float, out: float, out_bar: float) -> float:
    return out_bar * out * (1.0 - out)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("f", "more"),
    [(with_orders, np.arange(4)), (until_small, 0), (until_small, 1), (until_small, 5)],
    ids=["orders", "no iteration", "one iteration", "early exit"],
)
def test_integers_loops_and_early_exits(f: Any, more: Any, backend: str) -> None:
    srcdiff.rule_for(special.eval_legendre)(legendre)
    srcdiff.rule_for(special.expit, adjoint=expit_adjoint, replace=True)(lambda x: 1.0 / (1.0 + np.exp(-x)))
    x = np.array([1.3, 0.4, -0.2])

    gradient = srcdiff.grad(f, backend=backend)(x, more)

    np.testing.assert_allclose(gradient, differences(lambda x: f(x, more), x), rtol=1e-8, atol=1e-9)


def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@pytest.mark.parametrize("mode", [srcdiff.grad, lambda f: lambda x: srcdiff.jvp(f, (x,), (1.0,), backend="python")])
def test_a_rule_that_calls_a_recursive_function_is_refused(mode):
    def cube_adjoint(x, out, out_bar):
        return out_bar * 3.0 * power(x, 2)

    cube = srcdiff.custom_rule(lambda x: x * x * x, adjoint=cube_adjoint)
    with pytest.raises(srcdiff.DifferentiationError, match="`cube_adjoint` calls the recursive function `power`"):
        mode(lambda x: math.sin(cube(x)))(0.7)
