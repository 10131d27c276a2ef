"""Jacobians computed for several directions at once equal those of single sweeps."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff.api.fitting import leaves
from srcdiff.api.jacobians import Jacobian

X = np.array([0.7, -1.2, 0.4, 1.9, -0.3])
M = np.array([[2.0, 0.3, -0.1], [0.2, 1.7, 0.4], [0.1, -0.2, 1.4]])


def straight(x):
    return np.sin(x[0]) * x[-1], x[1] * x[2] / x[3]


def elementwise(x):
    return np.exp(-x * x) + x[::-1]


def branches(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0.0:
            t = x[i] ** 3
            if t > 1.0:
                t = t * x[0]
        else:
            t = -2.0 * x[i]
        out[i] = t
    return out


def loop_with_exits(x):
    total, other = 0.0, 1.0
    for i in range(len(x)):
        if x[i] < -1.0:
            continue
        total, other = other * x[i], total + x[i]
        if total * total > 2.0:
            break
    return total, other


def sums_of_sums(x):
    total, other = 0.0, x[0]
    for i in range(len(x)):
        for j in range(i):
            total += x[i] * x[j] * other
        before = total
        for j in range(3):
            total = total * 0.5 + x[j]
        other = other + before * total
    return total, other


def early_return(x):
    for i in range(len(x)):
        if x[i] > 1.0:
            return x[i] * x
    return x


def nothing_runs(x):
    total = x[0]
    for i in range(0):
        total = total * x[i]
    return total * x


def while_less(x):
    y, n = x[0] * x[0], 0
    while y < 50.0:
        y = y * 1.5 + np.sum(x * x)
        n += 1
    return y * x[1:], n


def in_place(x):
    u = x.copy()
    for t in range(3):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1]) * u[i]
    return u


def swapped(x):
    u, new = x.copy(), np.empty(len(x))
    for t in range(3):
        for i in range(len(u)):
            new[i] = math.sin(u[i]) * u[i - 1]
        u, new = new, u
    return u


def chosen_array(x):
    y, z = x * x, np.cos(x)
    best = y
    if x[0] < 0.0:
        best = z
    best[1] = x[2]
    return best, y


def writes_into_its_argument(x):
    x[0] = x[1] * x[2]
    x *= 2.0
    return np.sum(x) * x


def returns_nothing(x, out):
    for i in range(3):
        out[i] += x[i] * x[i + 1]


def kinks(x):
    return np.maximum(x, 0.0) + np.abs(x) * np.where(x > 1.0, x, 2.0)


def ranked(x):
    return np.outer(x, x[:2])[:, :, None] * x[:3]


def reshaped(x):
    return (x[:4] ** 2).reshape(2, 2).T @ np.array([[1.0, x[0]], [2.0, 3.0]])


def reduced(x):
    return np.linalg.norm(x), x.mean(), np.cumsum(x * x), np.sort(x), x.max()


def solved(x):
    a = M + x[0] * np.eye(3)
    return np.linalg.solve(a, x[1:4]), np.linalg.det(a), np.linalg.inv(a) @ a.T


def listed(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0.0:
            found.append(x[i] * x[0])
    return np.array(found)


def constants(x):
    return 1.5, x[0], 3, "name", np.ones(2)


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def recursive(x):
    return power(x[0], 3) * x


def slope_times(x, out, x_dot):
    return 3.0 * x * x * x_dot


cubed = srcdiff.custom_rule(lambda x: x**3, adjoint=slope_times, tangent=slope_times)


def with_a_rule(x):
    return cubed(x[0]) * x[1:3]


def inner_gradient(x):
    return srcdiff.grad(lambda y: np.sum(y**3) * y[0])(x)


def inner_jacobian(x):
    return srcdiff.jacobian(lambda y: y[:2] * np.sum(y * y))(x)


def raises_for_other_sizes(x):
    if len(x) != 5:
        raise ValueError("five numbers")
    return x * x[0]


PROGRAMS = [
    straight, elementwise, branches, sums_of_sums, loop_with_exits, early_return, nothing_runs, while_less, in_place,
    swapped, chosen_array, writes_into_its_argument, kinks, ranked, reshaped, reduced, solved, listed, constants,
    recursive, with_a_rule, inner_gradient, inner_jacobian, raises_for_other_sizes,
]  # fmt: skip


def one_after_the_other(f: Callable[..., Any], *args: Any, wrt: Any = 0, mode: str = "forward") -> Any:
    return Jacobian(f, wrt, mode, None, "python", {}).one_by_one.at(args)


def assert_same(expected: Any, found: Any) -> None:
    assert len(leaves(expected)) == len(leaves(found))
    for one, other in zip(leaves(expected), leaves(found), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-13)  # another order of evaluation


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("directions", [None, 1, 2])
@pytest.mark.parametrize("f", PROGRAMS)
def test_lanes_equal_single_sweeps(f: Callable[..., Any], mode: str, directions: int | None) -> None:
    expected = one_after_the_other(f, X.copy())

    found = srcdiff.jacobian(f, mode=mode, directions=directions, backend="python")(X.copy())

    assert_same(expected, found)


@pytest.mark.numba
@pytest.mark.parametrize("f", [branches, while_less, swapped, solved, reduced, ranked])
def test_lanes_are_compiled(f: Callable[..., Any]) -> None:
    for mode in ("forward", "reverse"):
        assert_same(one_after_the_other(f, X), srcdiff.jacobian(f, mode=mode)(X))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [straight, branches, in_place, while_less, ranked])
def test_jacobians_are_finite_differences(f: Callable[..., Any], mode: str) -> None:
    step = 1e-6
    found = leaves(srcdiff.jacobian(f, mode=mode, backend="python")(X.copy()))
    for j in range(len(X)):
        move = step * np.eye(len(X))[j]
        sides = [leaves(f(X + move)), leaves(f(X - move))]
        for part, high, low in zip(found, *sides, strict=True):
            difference = (np.asarray(high) - np.asarray(low)) / (2.0 * step)
            np.testing.assert_allclose(part[..., j], difference, rtol=1e-6, atol=1e-6)  # of the differences


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_arrays_that_a_function_writes_into_are_results_if_it_returns_nothing(mode: str) -> None:
    out = np.array([1.0, 2.0, 3.0])
    found = srcdiff.jacobian(returns_nothing, ("x", "out"), mode=mode, backend="python")(X, out)
    assert found.keys() == {"out"}
    by_x, by_out = found["out"]
    np.testing.assert_array_equal(by_out, np.eye(3))
    np.testing.assert_allclose(by_x, one_after_the_other(returns_nothing, X, out)["out"], rtol=1e-14)
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_structures_go_in_and_come_out(mode: str | None) -> None:
    def f(p, k, q):
        return {"product": p["w"] * k * q.first[0], "rest": [np.sum(q.second) * p["n"], len(q.first)]}

    p, q = {"w": X[:2], "n": 3.0, "b": 1.5}, Pair(np.array([0.5]), M)
    expected = one_after_the_other(f, p, 2.0, q, wrt=("p", "q", "k"))

    found = srcdiff.jacobian(f, ("p", "q", "k"), mode=mode, backend="python")({**p, "n": 3}, 2, q)

    assert_same(expected, found)
    assert type(found["product"][1]) is Pair
    assert found["rest"][1] is None


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_arguments_have_empty_jacobians(mode: str, shape: tuple[int, ...]) -> None:
    found = srcdiff.jacobian(lambda x: (x * x, 2.0 * np.sum(x)), mode=mode, backend="python")(np.zeros(shape))
    assert [part.shape for part in found] == [(*shape, *shape), shape]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_numbers_have_jacobians_without_axes(mode: str) -> None:
    found = srcdiff.jacobian(lambda x: x * x, mode=mode, backend="python")(3.0)
    assert isinstance(found, np.ndarray)
    assert found.shape == ()
    assert found == 6.0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_single_precision_is_taken(mode: str) -> None:
    x = X.astype(np.float32)
    found = srcdiff.jacobian(branches, mode=mode, backend="python")(x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, one_after_the_other(branches, X), rtol=1e-5, atol=1e-6)  # float32 has 7 digits


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_arguments_need_not_be_contiguous(mode: str) -> None:
    x = np.repeat(X, 2)[::2]
    assert_same(one_after_the_other(in_place, X), srcdiff.jacobian(in_place, mode=mode, backend="python")(x))
    f = lambda a: a @ a  # noqa: E731
    assert_same(one_after_the_other(f, M.T.copy()), srcdiff.jacobian(f, mode=mode, backend="python")(M.T))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_zero_stays_zero(mode: str) -> None:
    found = srcdiff.jacobian(lambda x: np.array([0.0 * np.sqrt(x[0]), x[1]]), mode=mode, backend="python")
    np.testing.assert_array_equal(found(np.array([4.0, 1.0])), [[0.0, 0.0], [0.0, 1.0]])


def test_the_mode_is_the_one_with_fewer_sweeps() -> None:
    def f(x, n):
        return np.sum(x) * np.ones(n)

    jacobian = srcdiff.jacobian(f, backend="python")
    assert jacobian(np.ones(2), 3).shape == (3, 2)
    assert "x_dot" in jacobian.source
    assert jacobian(np.ones(4), 3).shape == (3, 4)
    assert "x_bar" in jacobian.source


@pytest.mark.parametrize(("mode", "name"), [("forward", "_dot"), ("reverse", "_bar")])
def test_the_mode_is_honoured_inside(mode: str, name: str) -> None:
    def f(x):
        return srcdiff.jacobian(lambda y: y * np.sum(y), mode=mode)(x)

    derivative = srcdiff.differentiable(f, backend="python")
    np.testing.assert_allclose(derivative(X), np.sum(X) * np.eye(5) + X[:, None], rtol=1e-14)
    assert name in derivative.source


@pytest.mark.parametrize("outer", ["forward", "reverse"])
@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("f", [branches, while_less, in_place, swapped])
def test_jacobians_of_jacobians(f: Callable[..., Any], inner: str, outer: str) -> None:
    first = srcdiff.jacobian(f, mode=inner, backend="python")
    found = leaves(srcdiff.jacobian(first, mode=outer, backend="python")(X.copy()))
    step = 1e-6
    for j in range(len(X)):
        move = step * np.eye(len(X))[j]
        sides = [leaves(first(X + move)), leaves(first(X - move))]
        for part, high, low in zip(found, *sides, strict=True):
            np.testing.assert_allclose(part[..., j], (high - low) / (2.0 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.numba
@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_batches_of_jacobians(mode: str | None) -> None:
    xs = np.linspace(0.5, 1.5, 15).reshape(3, 5)
    jacobian = srcdiff.jacobian(in_place, mode=mode)
    for parallel in (False, True):
        found = srcdiff.batched(jacobian, parallel=parallel)(xs)
        np.testing.assert_allclose(found, [one_after_the_other(in_place, x) for x in xs], rtol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [elementwise, branches, sums_of_sums, loop_with_exits, in_place, swapped, reduced])
def test_more_directions_than_a_sweep_has(f: Callable[..., Any], mode: str) -> None:
    x = np.linspace(-0.9, 0.95, 37)
    found = srcdiff.jacobian(f, mode=mode, backend="python")
    assert_same(one_after_the_other(f, x), found(x))


def test_a_jacobian_of_few_directions_takes_other_sizes_too() -> None:
    jacobian = srcdiff.jacobian(elementwise, backend="python")
    for size in (2, 3, 9, 2):
        assert_same(one_after_the_other(elementwise, X[:1].repeat(size)), jacobian(X[:1].repeat(size)))
    assert "raise ValueError('this Jacobian is compiled for 2 directions')" in jacobian.source


def test_jacobians_are_pickled() -> None:
    jacobian = srcdiff.jacobian(elementwise, mode="reverse", directions=2, backend="python")
    jacobian(X)
    again = pickle.loads(pickle.dumps(jacobian))
    np.testing.assert_array_equal(again(X), jacobian(X))
    assert again.source == jacobian.source


def test_the_number_of_results_may_depend_on_array_contents() -> None:
    jacobian = srcdiff.jacobian(listed, backend="python")
    for x in (X, -X, np.ones(5), X):
        assert_same(one_after_the_other(listed, x), jacobian(x))


COUNT = 2


def first_ones(x):
    return x[:COUNT] * x[0]


def test_the_number_of_results_may_change_with_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in (None, "reverse"):
        jacobian = srcdiff.jacobian(first_ones, mode=mode, backend="python")
        for count in (2, 3, 1):
            monkeypatch.setitem(globals(), "COUNT", count)
            assert_same(one_after_the_other(first_ones, X), jacobian(X))
