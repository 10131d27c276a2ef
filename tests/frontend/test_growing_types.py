"""Recursive functions whose argument types keep growing are refused quickly, with their line."""

from __future__ import annotations

import functools
import importlib
import linecache
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


@dataclass
class Node:
    child: Any
    value: float


def nested(t, n):
    return 1.0 if n == 0 else nested((t, 1.0), n - 1)


def doubled(t, n):
    return 1.0 if n == 0 else doubled((t, t), n - 1)


def longer(t, n):
    return t[0] if n == 0 else longer((*t, 1.0), n - 1)


def list_of_lists(t, n):
    return 1.0 if n == 0 else list_of_lists([t, t], n - 1)


def new_list_of_lists(t, n):
    return t[0][0] if n == 0 else new_list_of_lists([[t[0][0], 1.0], [2.0]], n - 1)


def dictionary(t, n):
    return 1.0 if n == 0 else dictionary({"a": t, "b": 1.0}, n - 1)


def instance(t, n):
    return 1.0 if n == 0 else instance(Node(t, 1.0), n - 1)


def even(t, n):
    return 1.0 if n == 0 else odd((t, 1.0), n - 1)


def odd(t, n):
    return 1.0 if n == 0 else even((1.0, t), n - 1)


def pair(t):
    return t, t


def with_helper(t, n):
    return 1.0 if n == 0 else with_helper(pair(t), n - 1)


def more_axes(t, n):
    return np.sum(t) if n == 0 else more_axes(np.array([t, t]), n - 1)


def without_end(t, n):
    return 1.0 + without_end((t, n), n)


def two_calls(t, n):
    if n == 0:
        return 1.0
    a = two_calls((t, 1.0), n - 1)
    b = two_calls((1.0, t), n - 1)
    return a + b


def two_calls_of_which_one_grows(t, n):
    if n == 0:
        return 1.0
    a = two_calls_of_which_one_grows(t, n - 1)
    b = two_calls_of_which_one_grows((t, t), n - 1)
    return a + b


def in_a_loop(t, n):
    s = 1.0
    for i in range(n):
        s += in_a_loop((t, i), n - 1)
    return s


def inner(t, n):
    def visit(u, k):
        return 1.0 if k == 0 else visit((t, u), k - 1)

    return visit(t, n)


def text(t, n):
    def visit(s, k):
        return t if k == 0 else visit(s + "a", k - 1)

    return visit("", n)


def closure(t, n):
    def visit(g, k):
        return g(t) if k == 0 else visit(lambda y: g(y) * 2.0, k - 1)

    return visit(lambda y: y, n)


def closure_of_two_calls(t, n):
    def visit(g, k):
        return g(t) if k == 0 else visit(lambda y: g(g(y)), k - 1)

    return visit(lambda y: y, n)


def default(t, n):
    def visit(k, g):
        return g(t) if k == 0 else visit(k - 1, lambda y, g=g: g(y) * 2.0)

    return visit(n, lambda y: y)


def partial(t, n):
    def visit(g, k):
        return g() if k == 0 else visit(functools.partial(lambda h: h() * 2.0, g), k - 1)

    return visit(lambda: t, n)


def derivative(t, n):
    def visit(g, k):
        return g(t) if k == 0 else visit(srcdiff.grad(g), k - 1)

    return visit(lambda y: y**4, n)


ENDLESS: dict[Callable[..., Any], str] = {
    nested: "`t` has more parts",
    doubled: "`t` has more parts",
    longer: "`t` has more parts",
    list_of_lists: "`t` has more parts",
    new_list_of_lists: "`t` is a new list",
    dictionary: "`t` has more parts",
    instance: "`t` has more parts",
    even: "`t` has more parts",
    with_helper: "`t` has more parts",
    more_axes: "`t` has more axes",
    without_end: "`t` has more parts",
    two_calls: "`t` has more parts",
    two_calls_of_which_one_grows: "`t` has more parts",
    in_a_loop: "`t` has more parts",
    inner: "`u` has more parts",
    text: "`s` is a different constant",
    closure: "`g` is a new function",
    closure_of_two_calls: "`g` is a new function",
    default: "`g` is a new function",
    partial: "`g` is a new function",
    derivative: "`g` is a new function",
}

STARTS: dict[Callable[..., Any], Callable[[Any], Any]] = {
    longer: lambda x: (x, x),
    list_of_lists: lambda x: [x],
    new_list_of_lists: lambda x: [[x, x], [x]],
    more_axes: lambda x: np.array([x, x]),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", ENDLESS, ids=lambda f: f.__name__)
def test_types_that_grow_at_run_time_are_refused_with_the_line(function: Callable[..., Any], backend: str) -> None:
    start = STARTS.get(function, lambda x: x)
    gradient = srcdiff.grad(lambda x, n: x * function(start(x), n), backend=backend)
    before = time.process_time()

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        gradient(1.5, 3)

    assert time.process_time() - before < 1.0
    (problem,) = caught.value.problems
    assert problem.code == "SD308"
    assert problem.label.startswith(ENDLESS[function])
    assert problem.span is not None
    assert problem.span.file == __file__
    assert "def " not in problem.span.text
    assert "- 1" in problem.span.text or function is without_end


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function",
    [f for f in ENDLESS if f not in (without_end, in_a_loop, two_calls_of_which_one_grows)],
    ids=lambda f: f.__name__,
)
def test_types_that_grow_a_known_number_of_times_are_read(function: Callable[..., Any], backend: str) -> None:
    start = STARTS.get(function, lambda x: x)

    def value(x):
        return x * function(start(x), 2)

    with np.errstate(all="ignore"):
        expected = (value(1.5 + 1e-6) - value(1.5 - 1e-6)) / 2e-6 if function is not derivative else None
    found = srcdiff.grad(value, backend=backend)(1.5)

    # the central difference is good to about ten digits; x * (x**4)'' is 12 x**3
    np.testing.assert_allclose(found, 36.0 * 1.5**2 if expected is None else expected, rtol=1e-8)


def until_nine(t, x):
    return t[0] * t[1] if len(t) == 9 else until_nine((*t, x), x)


def moved(rest, done, n):
    if len(rest) == 0:
        return done[0]
    return moved(rest[1:], (rest[0] * n, done), n) if n > 0 else 1.0


def counted(t, k):
    return t[0] if k == 0 else counted((t[0] * 2.0, t), k - 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_types_that_stop_growing_are_read(backend: str) -> None:
    assert srcdiff.grad(lambda x: until_nine((x, x), x), backend=backend)(1.5) == 3.0
    assert srcdiff.grad(lambda x, n: moved((x,) * 20, x, n), backend=backend)(1.5, 3) == 3.0
    assert srcdiff.grad(lambda x: counted((x, x), 20), backend=backend)(1.5) == 2.0**20


def helpers(count: int, folder: Path) -> Callable[..., Any]:
    text = "def h0(x):\n    return x * x\n" + "".join(
        f"def h{k}(x):\n    return 1.0 * h{k - 1}(x)\n" for k in range(1, count)
    )
    (folder / f"helpers_{count}.py").write_text(text)
    sys.path.insert(0, str(folder))
    linecache.checkcache()
    module = importlib.import_module(f"helpers_{count}")
    sys.path.remove(str(folder))
    function = getattr(module, f"h{count - 1}")
    assert callable(function)
    return function


def test_calls_that_are_nested_too_deeply_are_refused_with_a_line(tmp_path: Path) -> None:
    assert srcdiff.grad(helpers(20, tmp_path), backend="python")(1.5) == 3.0

    with pytest.raises(srcdiff.DifferentiationError, match="nested too deeply") as caught:
        srcdiff.grad(helpers(200, tmp_path), backend="python")(1.5)

    (problem,) = caught.value.problems
    assert problem.code == "SD308"
    assert problem.span is not None
    assert "return 1.0 * h" in problem.span.text


def test_recursion_through_many_functions_is_refused_with_a_line(tmp_path: Path) -> None:
    ring = "".join(
        f"def r{k}(t, n):\n    return 1.0 if n == 0 else r{(k + 1) % 9}({'(t, 1.0)' if k == 0 else 't'}, n - 1)\n"
        for k in range(9)
    )
    (tmp_path / "ring.py").write_text(ring)
    sys.path.insert(0, str(tmp_path))
    module = importlib.import_module("ring")
    sys.path.remove(str(tmp_path))

    with pytest.raises(srcdiff.DifferentiationError, match="nested too deeply"):
        srcdiff.grad(lambda x, n: x * module.r0(x, n), backend="python")(1.5, 3)
