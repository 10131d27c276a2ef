"""Recursive programs: their derivatives and their kept values, and that each call runs forwards once."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.subset import every

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
RANDOM = np.random.default_rng(7)


def expansion(a, row, used):
    """A determinant by recursion over permutations: an integer array is changed and restored."""
    if row == len(a):
        return 1.0
    total = 0.0
    sign = 1.0
    for column in range(len(a)):
        if used[column] == 0:
            used[column] = 1
            total += sign * a[row, column] * expansion(a, row + 1, used)
            used[column] = 0
            sign = -sign
    return total


def determinant(a):
    return expansion(a, 0, np.zeros(len(a), dtype=np.int64))


def simpson(c, a, b, f_a, f_m, f_b, whole, tolerance, depth):
    """Adaptive quadrature: the depth depends on the data."""
    m = 0.5 * (a + b)
    left_m, right_m = 0.5 * (a + m), 0.5 * (m + b)
    f_l = math.exp(-c * left_m * left_m) * math.sin(3.0 * left_m)
    f_r = math.exp(-c * right_m * right_m) * math.sin(3.0 * right_m)
    left, right = (m - a) / 6.0 * (f_a + 4.0 * f_l + f_m), (b - m) / 6.0 * (f_m + 4.0 * f_r + f_b)
    delta = left + right - whole
    if depth <= 0 or abs(delta) <= 15.0 * tolerance:
        return left + right + delta / 15.0
    return simpson(c, a, m, f_a, f_l, f_m, left, tolerance / 2.0, depth - 1) + simpson(
        c, m, b, f_m, f_r, f_b, right, tolerance / 2.0, depth - 1
    )


def integral(c, a, b):
    f_a, f_m, f_b = [math.exp(-c * t * t) * math.sin(3.0 * t) for t in (a, 0.5 * (a + b), b)]
    return simpson(c, a, b, f_a, f_m, f_b, (b - a) / 6.0 * (f_a + 4.0 * f_m + f_b), 1e-6, 20)


def even(x, n):
    return x if n == 0 else math.sin(odd(x * 1.01, n - 1)) + x * 0.1


def odd(x, n):
    return 0.5 * x * x if n == 0 else math.cos(even(x + 0.01, n - 1)) * x


def mutual(x, n):
    return even(x, n) * odd(x, n)


def transform(real, imaginary):
    """A recursive Fourier transform: its arguments are views, its results are new arrays."""
    n = len(real)
    if n == 1:
        return real.copy(), imaginary.copy()
    even_real, even_imaginary = transform(real[0::2], imaginary[0::2])
    odd_real, odd_imaginary = transform(real[1::2], imaginary[1::2])
    out_real, out_imaginary = np.empty(n), np.empty(n)
    for k in range(n // 2):
        c, s = math.cos(2.0 * math.pi * k / n), -math.sin(2.0 * math.pi * k / n)
        t_real, t_imaginary = c * odd_real[k] - s * odd_imaginary[k], c * odd_imaginary[k] + s * odd_real[k]
        out_real[k], out_imaginary[k] = even_real[k] + t_real, even_imaginary[k] + t_imaginary
        out_real[k + n // 2], out_imaginary[k + n // 2] = even_real[k] - t_real, even_imaginary[k] - t_imaginary
    return out_real, out_imaginary


def spectrum(x):
    real, imaginary = transform(x, np.zeros(len(x)))
    return np.sum((real * real + imaginary * imaginary) ** 2 * np.arange(len(x)))


def merge_sort(a, low, high, work):
    """Sorts in place: two arrays are written into."""
    if high - low < 2:
        return
    middle = (low + high) // 2
    merge_sort(a, low, middle, work)
    merge_sort(a, middle, high, work)
    i, j = low, middle
    for k in range(low, high):
        if j >= high or (i < middle and a[i] <= a[j]):
            work[k] = a[i]
            i += 1
        else:
            work[k] = a[j]
            j += 1
    for k in range(low, high):
        a[k] = work[k]


def sorted_sum(x):
    a = x * x
    before = np.sum(a * np.arange(len(a)))
    merge_sort(a, 0, len(a), np.zeros(len(a)))
    return before + np.sum(a * a * np.arange(1, len(a) + 1))


def potential(points, masses, indices, x, y, middle_x, middle_y, half):
    """The field of masses in a square, by recursion over its quarters."""
    n = len(indices)
    if n == 0:
        return 0.0
    mass, mass_x, mass_y = 0.0, 0.0, 0.0
    for i in indices:
        mass += masses[i]
        mass_x += masses[i] * points[i, 0]
        mass_y += masses[i] * points[i, 1]
    distance = math.sqrt((mass_x / mass - x) ** 2 + (mass_y / mass - y) ** 2 + 0.01)
    if n == 1 or 2.0 * half < 0.7 * distance:
        return mass / distance
    total = 0.0
    for quarter in range(4):
        chosen = np.empty(n, dtype=np.int64)
        count = 0
        for i in indices:
            if (points[i, 0] >= middle_x) == (quarter % 2 == 1) and (points[i, 1] >= middle_y) == (quarter > 1):
                chosen[count] = i
                count += 1
        next_x = middle_x + (half / 2.0 if quarter % 2 else -half / 2.0)
        next_y = middle_y + (half / 2.0 if quarter > 1 else -half / 2.0)
        total += potential(points, masses, chosen[:count], x, y, next_x, next_y, half / 2.0)
    return total


def energy(points, masses):
    total = 0.0
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        total += masses[i] * potential(points, masses, np.arange(len(points)), x, y, 0.0, 0.0, 1.0)
    return total


def ackermann(x, m, n):
    """The argument of a call is the result of another call, and so is its depth."""
    if m == 0:
        return x + 1.0 / (n + 1.0)
    if n == 0:
        return ackermann(x * 0.9, m - 1, 1)
    inner = ackermann(math.sin(x), m, n - 1)
    return ackermann(inner, m - 1, n % 3 + int(inner * 2.0) % 2)


def fill(w, x, n):
    """Writes into an array that it does not read."""
    w[n] = x * 2.0
    if n > 0:
        fill(w, x * 1.5, n - 1)


def overwritten(x):
    """The caller's reverse sweep reads values from before the calls, which overwrite them."""
    w = x.copy()
    first = np.sum(w * w * w)
    fill(w, x[0], 2)
    second = np.sum(w**3)
    fill(w, second, 3)
    return first * second + np.sum(w**2)


def exponentials(x, n):
    """The adjoint reads the result of the function, and the caller overwrites it."""
    y = np.exp(x * 0.5)
    if n > 0:
        inner = exponentials(x + 0.1, n - 1)
        inner[0] = inner[0] * 2.0
        for k in range(len(y)):
            y[k] *= inner[k]
    return y


def exponential_sum(x, n):
    y = exponentials(x, n)
    y[1] = y[0] * y[1]
    return np.sum(y)


def in_loop(x, n):
    """Calls in a loop with an early exit, and in one of unknown length."""
    total = 0.0
    for k in range(n):
        if total > 3.0:
            break
        total += ackermann(x * (k + 1.0), 2, k % 3)
    while total > 0.5:
        total = total * 0.5 * even(math.cos(x), 3)
    return total * x


PROGRAMS: dict[str, tuple[Any, ...]] = {
    "determinant": (determinant, RANDOM.normal(size=(4, 4))),
    "integral": (integral, 0.7, -1.0, 2.0),
    "mutual": (mutual, 0.3, 9),
    "spectrum": (spectrum, RANDOM.normal(size=16)),
    "sorted_sum": (sorted_sum, np.array([0.3, -1.2, 0.7, 2.1, 0.1, -0.5, 1.4])),
    "energy": (energy, RANDOM.uniform(-1.0, 1.0, (9, 2)), RANDOM.uniform(0.5, 1.0, 9)),
    "ackermann": (ackermann, 0.3, 2, 2),
    "overwritten": (overwritten, np.linspace(0.5, 1.0, 5)),
    "exponential_sum": (exponential_sum, np.array([0.2, -0.4, 0.7]), 3),
    "in_loop": (in_loop, 0.4, 6),
}


@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "python") for name in PROGRAMS), *((name, "numba") for name in every(2, [*PROGRAMS]))],
)
def test_derivatives_agree_with_differences(name: str, backend: str) -> None:
    function, *arguments = PROGRAMS[name]

    srcdiff.check(function, *arguments, backend=backend)


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_are_not_run_again(name: str) -> None:
    function, *arguments = PROGRAMS[name]

    names = re.findall(r"^def (\w+)", srcdiff.source(function, *arguments), re.MULTILINE)

    assert [n for n in names if n.endswith("_adjoint")] == []
    assert [n for n in names if n.endswith("_forward")] != []


@pytest.mark.parametrize("name", PROGRAMS)
def test_modes_agree(name: str) -> None:
    function, *arguments = PROGRAMS[name]
    x, *others = arguments
    direction = np.cos(np.arange(np.size(x), dtype=float)).reshape(np.shape(x)) if np.ndim(x) else 1.0

    gradient = srcdiff.grad(function, backend="python")(*arguments)
    _, tangent = srcdiff.jvp(lambda v: function(v, *others), (x,), (direction,), backend="python")

    assert np.sum(np.asarray(gradient) * direction) == pytest.approx(tangent, rel=1e-9)


@pytest.mark.parametrize("name", ["determinant", "mutual", "ackermann", "exponential_sum", "sorted_sum"])
def test_second_derivatives_agree_with_differences(name: str) -> None:
    function, *arguments = PROGRAMS[name]
    gradient = srcdiff.grad(function, backend="python")

    srcdiff.check(lambda x: np.sum(np.sin(gradient(x, *arguments[1:]))), arguments[0], backend="python")


def calls_of(function: Any, *arguments: Any) -> dict[str, int]:
    """The functions that the gradient calls, and how often, in Python."""
    gradient = srcdiff.grad(function, backend="python")
    gradient(*arguments)
    count: Counter[str] = Counter()

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith("<srcdiff"):
            count[frame.f_code.co_name] += 1

    sys.setprofile(look)
    try:
        gradient(*arguments)
    finally:
        sys.setprofile(None)
    return {name: times for name, times in count.items() if name.endswith(("_forward", "_reverse", "_adjoint"))}


def tree(x, n):
    return x if n == 0 else x * tree(x, n - 1) * tree(x, n - 1)


def test_gradient_calls_each_function_forwards_once_and_backwards_once() -> None:
    assert calls_of(tree, 0.9, 6) == {"tree_forward": 127, "tree_reverse": 127}


def told(x, n):
    print("call", n)
    return x if n == 0 else math.sin(told(x, n - 1)) * x


def test_function_that_prints_does_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    srcdiff.grad(told, backend="python")(0.5, 3)

    assert capsys.readouterr().out.splitlines() == ["call 3", "call 2", "call 1", "call 0"]


def chain(x, n):
    return x if n == 0 else math.sin(chain(x, n - 1)) + 0.1 * x


@pytest.mark.numba
def test_deep_recursion_costs_in_proportion_to_its_depth() -> None:
    gradient = srcdiff.grad(chain)
    slope, y = 1.0, 0.3
    for _ in range(20_000):
        slope, y = math.cos(y) * slope + 0.1, math.sin(y) + 0.03

    assert gradient(0.3, 20_000) == pytest.approx(slope, rel=1e-9)


def test_leaf_keeps_nothing() -> None:
    source = srcdiff.source(tree, 0.9, 3)
    leaf = source[source.index("if n == 0:") : source.index("else:")]

    assert "append" not in leaf
    assert "np." not in leaf


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_are_kept_may_be_views_of_any_layout(backend: str) -> None:
    def halves(x, n):
        y = np.sin(x) if n % 2 == 0 else np.sin(x.T).T
        return np.sum(y * y) if n == 0 else np.sum(y * x) * halves(y.T * 0.5 + x[0, 0], n - 1)

    srcdiff.check(halves, np.arange(9.0).reshape(3, 3) * 0.1, 3, backend=backend)


def test_lengths_are_kept_instead_of_arrays() -> None:
    source = srcdiff.source(spectrum, np.ones(4))

    assert "kept_arrays" not in source
    assert "kept_integers.append" in source


@pytest.mark.parametrize("backend", BACKENDS)
def test_array_that_a_branch_chooses_among_arguments_has_its_adjoint(backend: str) -> None:
    def choose(x, y, n):
        z = x if n % 2 == 0 else y
        total = 0.0
        for k in range(len(z)):
            total += z[k] * z[k] * (k + n)
        return total if n == 0 else total * choose(y, x, n - 1)

    def both(x):
        return choose(x, x * 2.0 + 1.0, 3)

    srcdiff.check(both, np.array([0.3, 0.5, -0.2]), backend=backend)
