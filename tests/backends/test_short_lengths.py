"""Machine code for the lengths of short axes at the first call: calls with other lengths are as right as before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.numba.short_lengths import LEAST_NUMBERS, LONGEST, short_lengths

pytestmark = pytest.mark.numba


def features(weights: Any, x: Any) -> Any:
    total = 0.0
    for s in range(x.shape[0]):
        for i in range(weights.shape[0]):
            t = 0.0
            for j in range(x.shape[1]):
                t += weights[i, j] * x[s, j]
            total += max(t, 0.0) ** 2
    return total


def of_features(rows: int, columns: int, samples: int = 200) -> tuple[Any, Any]:
    random = np.random.default_rng(rows + 10 * columns)
    return random.standard_normal((rows, columns)), random.standard_normal((samples, columns))


def version_of(derivative: Any) -> bool:
    """Whether calls run a version for short axes."""
    known = derivative.latest
    return known.version is not None and known.version is not known.function


def expected(weights: Any, x: Any) -> Any:
    return 2.0 * np.maximum(weights @ x.T, 0.0) @ x


def test_first_call_fixes_short_lengths_and_others_are_right() -> None:
    gradient = srcdiff.grad(lambda weights, x: features(weights, x))
    given = of_features(3, 8)
    np.testing.assert_allclose(gradient(*given), expected(*given), rtol=1e-12)
    assert version_of(gradient)
    np.testing.assert_allclose(gradient(*given), expected(*given), rtol=1e-12)
    other = of_features(5, 8)
    np.testing.assert_allclose(gradient(*other), expected(*other), rtol=1e-12)
    assert not version_of(gradient)
    for shape in ((3, 8), (5, 8), (1, 8), (40, 8), (3, 50), (0, 8)):
        again = of_features(*shape)
        np.testing.assert_allclose(gradient(*again), expected(*again), rtol=1e-12)


def test_long_axes_may_change() -> None:
    gradient = srcdiff.grad(lambda weights, x: 2.0 * features(weights, x))
    for samples in (200, 300, 1000, 33, 3, 1, 0):
        given = of_features(3, 8, samples)
        np.testing.assert_allclose(gradient(*given), 2.0 * expected(*given), rtol=1e-12)
    assert version_of(gradient)


def test_views_and_orders_of_arrays_of_these_lengths_are_right() -> None:
    gradient = srcdiff.grad(lambda weights, x: 3.0 * features(weights, x))
    weights, x = of_features(4, 6, 400)
    for form in (lambda a: a, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a[::-1, ::-1]):
        given = form(weights), form(x)
        np.testing.assert_allclose(gradient(*given), 3.0 * expected(*given), rtol=1e-12)


def test_arrays_in_structures_have_short_lengths_too() -> None:
    def loss(p: Any, x: Any) -> Any:
        total = 0.0
        for s in range(x.shape[0]):
            for j in range(p["w"].shape[0]):
                total += np.sin(p["w"][j] * x[s, j]) * p["scale"]
        return total

    gradient = srcdiff.grad(loss)
    for columns in (6, 6, 7, 6):
        p = {"w": np.linspace(0.1, 1.0, columns), "scale": 1.5}
        x = np.random.default_rng(columns).standard_normal((300, columns))
        by_hand = 1.5 * np.sum(x * np.cos(p["w"] * x), axis=0)
        found = gradient(p, x)
        np.testing.assert_allclose(found["w"], by_hand, rtol=1e-12)
        np.testing.assert_allclose(found["scale"], np.sum(np.sin(p["w"] * x)), rtol=1e-12)


def test_nothing_has_run_when_other_lengths_are_noticed() -> None:
    @srcdiff.differentiable
    def shift(x: Any, a: Any) -> Any:
        for i in range(x.shape[0]):
            for j in range(a.shape[0]):
                x[i, j] += a[j]
        return np.sum(x)

    x = np.zeros((400, 4))
    assert shift(x, np.ones(3)) == 1200.0
    assert shift(x, np.ones(2)) == 2000.0  # added once
    np.testing.assert_array_equal(x[0], [2.0, 2.0, 1.0, 0.0])


def test_threads_may_call_with_different_lengths() -> None:
    gradient = srcdiff.grad(lambda weights, x: 5.0 * features(weights, x))
    wrong = []

    def call(rows: int) -> None:
        given = of_features(rows, 8)
        for _ in range(20):
            if not np.allclose(gradient(*given), 5.0 * expected(*given), rtol=1e-12):
                wrong.append(rows)

    threads = [threading.Thread(target=call, args=(rows,)) for rows in (2, 3, 4, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_recursive_functions_are_compiled_for_any_lengths() -> None:
    def product(x: Any) -> Any:
        if x.shape[0] == 1:
            return np.sum(x[0] ** 2)
        half = x.shape[0] // 2
        return product(x[:half]) + 2.0 * product(x[half:])

    x = np.random.default_rng(3).standard_normal((16, 80))
    gradient = srcdiff.grad(product)
    by_rows = np.array([2.0 ** bin(row).count("1") for row in range(16)])[:, None]
    np.testing.assert_allclose(gradient(x), 2.0 * by_rows * x, rtol=1e-12)
    assert not version_of(gradient)


def test_second_derivatives_of_changing_lengths() -> None:
    def loss(w: Any, x: Any) -> Any:
        total = 0.0
        for s in range(x.shape[0]):
            total += np.exp(-(np.sum(w * x[s]) ** 2))
        return total

    hessian = srcdiff.hessian(loss)
    for columns in (3, 4, 3):
        w, x = np.full(columns, 0.3), np.random.default_rng(1).standard_normal((500, columns))
        t = x @ w
        by_hand = (x.T * ((4.0 * t**2 - 2.0) * np.exp(-(t**2)))) @ x
        np.testing.assert_allclose(hessian(w, x), by_hand, rtol=1e-10, atol=1e-10)


def test_tangents_of_changing_lengths() -> None:
    def loss(w: Any, x: Any) -> Any:
        total = 0.0
        for s in range(x.shape[0]):
            for j in range(x.shape[1]):
                total += np.sin(w[j] * x[s, j])
        return total

    for columns in (3, 3, 3, 4, 4, 3):
        w, x = np.full(columns, 0.3), np.random.default_rng(1).standard_normal((400, columns))
        value, tangent = srcdiff.jvp(loss, (w, x), (np.ones(columns), 0.0 * x))
        np.testing.assert_allclose(value, np.sum(np.sin(w * x)), rtol=1e-12)
        np.testing.assert_allclose(tangent, np.sum(x * np.cos(w * x)), rtol=1e-12)


def test_only_calls_with_many_numbers_have_short_axes() -> None:
    long = np.zeros((LEAST_NUMBERS, LONGEST))
    assert short_lengths([long, 1.0, np.zeros((2, 0, 1))]) == (((0,), 1, LONGEST), ((2,), 0, 2))
    assert short_lengths([np.zeros((LEAST_NUMBERS, LONGEST + 1))]) == ()
    assert short_lengths([np.zeros((3, 4))]) == ()
    assert short_lengths([(np.zeros((LEAST_NUMBERS, 2)), (np.zeros(3),))]) == (((0, 0), 1, 2), ((0, 1, 0), 0, 3))


PROGRAM = """
import sys
import numpy as np
import srcdiff
from srcdiff.backends.numba import loading

loading.MOST_VERSIONS = 1

def loss(w, x):
    total = 0.0
    for s in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += np.sin(w[j] * x[s, j])
    return total

n = int(sys.argv[1])
w, x = np.linspace(0.1, 1.0, n), np.linspace(-1.0, 1.0, 400 * n).reshape(400, n)
g = srcdiff.grad(loss)
found = g(w, x)
assert np.allclose(found, np.sum(x * np.cos(w * x), axis=0), rtol=1e-12)
print(g.latest.version is not g.latest.function)
"""


def test_machine_code_on_disk_is_for_a_few_lengths(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    root = Path(srcdiff.__file__).parent.parent
    surroundings = os.environ | {"SRCDIFF_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(root)}

    def run(columns: int) -> str:
        command = [sys.executable, str(file), str(columns)]
        done = subprocess.run(command, capture_output=True, text=True, env=surroundings, check=True)
        return done.stdout.strip()

    assert [run(n) for n in (4, 5, 4)] == ["True", "False", "True"]
