"""Products in loops that write into one array: the numbers agree with differences, for all trip counts."""

import numpy as np
import pytest

import srcdiff
from tests import numerical


def recurrent(w, x, steps):
    h = np.zeros(w.shape[0])
    total = 0.0
    for t in range(steps):
        h = np.tanh(w @ h + x) * 0.5 + 0.1 * (h @ w)
        inner = w @ w
        for k in range(len(h)):
            total += h[k] * inner[k, 0]
    return total


def two_at_a_time(w, x, steps):
    total = 0.0
    for t in range(steps):
        first = w @ x
        second = w @ first  # reads the first product while it is written
        third = first @ w
        view = second[::-1]
        for k in range(len(x)):
            total += np.sin(view[k]) * third[k] + first[k] ** 2 * (t + 1)
    return total


def kept_for_later(w, x, steps):
    rows = []
    for t in range(steps):
        rows.append(w @ (x * (t + 1.0)))
    total = 0.0
    for row in rows:
        total += np.sum(row * row) * row[0]
    return total


def overwritten_afterwards(w, x, steps):
    total = 0.0
    for t in range(steps):
        y = w @ x
        y[0] = total
        y *= 2.0
        z = w.T @ y
        total += np.sum(np.sin(z))
    return total


PROGRAMS = [recurrent, two_at_a_time, kept_for_later, overwritten_afterwards]


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_gradient_is_right(function, steps, backend):
    random = np.random.default_rng(9)
    w, x = 0.5 * random.standard_normal((3, 3)), random.standard_normal(3)

    value, actual = srcdiff.value_and_grad(function, wrt=("w", "x"), backend=backend)(w, x, steps)

    assert value == pytest.approx(function(w, x, steps), rel=1e-12)  # sums are added in another order
    expected = [one.value for one in numerical.gradient(function, (w, x, steps), (0, 1))]
    np.testing.assert_allclose([*np.ravel(actual[0]), *actual[1]], expected, rtol=1e-6, atol=1e-7)  # differences


@pytest.mark.parametrize("function", [recurrent, two_at_a_time])
def test_other_forms_agree(function):
    random = np.random.default_rng(10)
    w, x, step = 0.5 * random.standard_normal((3, 3)), random.standard_normal(3), 1e-6
    gradient = srcdiff.grad(function, wrt="x")
    expected = gradient(w, x, 3)
    batches = srcdiff.batched(gradient, over="x", parallel=True)(w, np.stack([x, 2.0 * x]), 3)
    np.testing.assert_allclose(batches[0], expected, rtol=1e-12)
    np.testing.assert_allclose(batches[1], gradient(w, 2.0 * x, 3), rtol=1e-12)
    single = gradient(w.astype(np.float32), x.astype(np.float32), 3)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-3)  # single precision
    product = srcdiff.hvp(function, wrt="x")(w, x, 3, x)
    differences = (gradient(w, x + step * x, 3) - gradient(w, x - step * x, 3)) / (2 * step)
    np.testing.assert_allclose(product, differences, rtol=1e-5, atol=1e-6)  # differences of gradients


def test_no_product_is_allocated_in_the_loop():
    gradient = srcdiff.grad(two_at_a_time)
    gradient(np.eye(2), np.ones(2), 2)
    lines = [line.partition("#")[0] for line in gradient.source.splitlines()]
    assert not any(" @ " in line for line in lines)
    assert any("np.dot(" in line for line in lines)
