"""Complex numbers in order: NumPy compares real parts first, then imaginary parts, and NaN come last."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

random = np.random.default_rng(4)
Z = random.normal(size=6) + 1j * random.normal(size=6)
WEIGHTS = np.arange(1, 7) * (0.3 + 0.2j)


def places(z):
    once = np.sum((np.sort(z) ** 2 * WEIGHTS).real) + np.sum((np.flip(np.sort_complex(z)) * WEIGHTS**2).real)
    w = z * z
    w.sort()
    w[1:].partition(2)
    return once + np.sum((w * w * WEIGHTS).real) + np.partition(z, 2)[2].imag ** 3


def axes(z):
    a = np.outer(z, z)
    columns = np.sum((np.sort(a, axis=0) ** 2 * np.arange(36).reshape(6, 6)).real)
    return columns + np.sum((np.sort(a, axis=None)[1::2] ** 2 * np.arange(18)).imag)


def distinct(z):
    found = np.unique(np.concatenate((z, z[:2])))
    return np.sum((found * found * WEIGHTS).real)


@pytest.mark.parametrize("function", [places, axes, distinct])
def test_derivatives_follow_the_order(function):
    srcdiff.check(function, Z, backend="python")


@pytest.mark.parametrize("function", [places, distinct])
def test_second_derivatives_follow_the_order(function):
    srcdiff.check(function, Z, backend="python", order=2)


@pytest.mark.parametrize("function", [places, distinct])
def test_compiled_gradients_follow_the_order(function):
    expected = srcdiff.grad(function, backend="python")(Z)
    np.testing.assert_allclose(srcdiff.grad(function)(Z), expected, rtol=1e-12)


def test_equal_real_parts_are_ordered_by_imaginary_parts():
    """They stay equal in this program, so the order does not change."""

    def pairs(p, q):
        w = np.sort(np.array([complex(p, q), complex(p, -q), complex(q, p)]))
        return (w[0] * (1 + 2j) + w[1] ** 2).real + w[2].imag

    srcdiff.check(pairs, 0.4, 0.9, wrt=(0, 1), backend="python")


NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.nan, np.inf])


@pytest.mark.parametrize(
    "function",
    [
        np.sort,
        np.sort_complex,
        lambda z: np.partition(z, 1)[1:2],
        lambda z: z[np.argpartition(z, 1)][1:2],
        lambda z: np.unique(z, return_index=True, return_inverse=True, return_counts=True),
    ],
    ids=["sort", "sort_complex", "partition", "argpartition", "unique"],
)
def test_values_are_those_of_numpy(function):
    ours = srcdiff.differentiable(lambda z: function(z), backend="python")
    for trial in range(60):
        z = np.empty(random.integers(2, 7), complex)
        finite = NUMBERS[: 5 if trial % 2 else 7]
        z.real, z.imag = random.choice(finite, len(z)), random.choice(finite, len(z))
        found, expected = ours(z), function(z)
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_unique_takes_all_nan_for_one():
    x = np.array([1.0, np.nan, np.nan, 2.0, 1.0])
    found = srcdiff.differentiable(lambda x: np.unique(x, return_counts=True), backend="python")(x)
    for one, other in zip(found, np.unique(x, return_counts=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_order_of_real_numbers_becomes_complex():
    found = srcdiff.differentiable(lambda x: np.sort_complex(x), backend="python")(np.array([2.0, 1.0]))
    assert found.dtype == complex
    assert list(found) == [1, 2]
