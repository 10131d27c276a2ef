"""Calls with known argument types go directly to compiled code, and give the same results as the first call."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import srcdiff

BOTH = ["python", pytest.param("numba", marks=pytest.mark.numba)]
FACTOR = 2.0


def weighted(x, s, n):
    return FACTOR * np.sum(x**2) * s**n


@pytest.mark.parametrize("backend", BOTH)
def test_second_calls_of_jvp_equal_the_first(backend, monkeypatch):
    x, dot = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    for given in [(dot, 1.0, None), (dot, None, None), (None, 0.5, None), (None, None, None)]:
        expected = srcdiff.jvp(weighted, (x, 3.0, 2), given, backend="python", cache=False)
        for _ in range(3):
            np.testing.assert_allclose(expected, srcdiff.jvp(weighted, (x, 3.0, 2), given, backend=backend))
    other = np.array([1.0, 2.0, 3.0])
    value, tangent = srcdiff.jvp(weighted, (other, 3.0, 2), (np.ones(3), None, None), backend=backend)
    assert (value, tangent) == (2.0 * 14.0 * 9.0, 2.0 * 12.0 * 9.0)
    assert srcdiff.jvp(weighted, (x, 3, 2), (dot, None, None), backend=backend)[1] == pytest.approx(-54.0)
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert srcdiff.jvp(weighted, (x, 3.0, 2), (dot, None, None), backend=backend)[1] == pytest.approx(-108.0)


@pytest.mark.parametrize("backend", BOTH)
def test_tangents_that_do_not_fit_are_refused_at_every_call(backend):
    x = np.ones(3)
    for _ in range(2):
        assert srcdiff.jvp(weighted, (x, 1.0, 1), (x, None, None), backend=backend)[1] == 12.0
        with pytest.raises(ValueError, match="shape"):
            srcdiff.jvp(weighted, (x, 1.0, 1), (np.ones(2), None, None), backend=backend)
        single = srcdiff.jvp(weighted, (x, 1.0, 1), (np.ones(3, np.float32), None, None), backend=backend)
        lists = srcdiff.jvp(weighted, (x, 1.0, 1), ([1.0, 1.0, 1.0], None, None), backend=backend)
        strided = srcdiff.jvp(weighted, (x, 1.0, 1), (np.ones(6)[::2], None, None), backend=backend)
        assert [12.0] * 3 == [single[1], lists[1], strided[1]]


def written(x, out):
    out[0] = x[0] * x[1]
    x[1] = 5.0
    return x


def itself(x):
    return x


@pytest.mark.parametrize("backend", BOTH)
def test_tangents_are_unchanged_and_not_returned(backend):
    x, dot = np.array([2.0, 3.0]), np.array([1.0, 0.5])
    for _ in range(3):
        value, tangent = srcdiff.jvp(itself, (x,), (dot,), backend=backend)
        assert not np.shares_memory(tangent, dot)
        assert not np.shares_memory(value, x)
        value, tangent = srcdiff.jvp(written, (x, np.zeros(1)), (dot, np.zeros(1)), backend=backend)
        assert (value.tolist(), tangent.tolist()) == ([2.0, 5.0], [1.0, 0.0])
        assert (x.tolist(), dot.tolist()) == ([2.0, 3.0], [1.0, 0.5])


@pytest.mark.parametrize("backend", BOTH)
def test_second_calls_of_hvp_equal_the_first(backend):
    def loss(x, y):
        return np.sum(x**3) * y**2

    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    alone, both = srcdiff.hvp(loss, backend=backend), srcdiff.hvp(loss, ("x", "y"), backend=backend)
    for _ in range(3):
        np.testing.assert_allclose(6.0 * x * v * 4.0, alone(x, 2.0, v))
        x_bar, y_bar = both(x, 2.0, (v, 1.0))
        np.testing.assert_allclose(6.0 * x * v * 4.0 + 3.0 * x**2 * 4.0, x_bar)
        assert y_bar == pytest.approx(3.0 * np.sum(x**2 * v) * 4.0 + 2.0 * 9.0)
        with pytest.raises(ValueError, match="shape"):
            alone(x, 2.0, np.ones(3))


def test_arrays_that_stretch_do_so_in_tangents_too():
    def product(x, y):
        return np.sum(x * y)

    for shape in [(3,), (1,), (3,), (1,)]:
        _, tangent = srcdiff.jvp(product, (np.ones(shape), np.ones(3)), (np.ones(shape), None))
        assert tangent == 3.0


# ------------------------------------------------------------------------------------------ derivatives made once


def test_the_same_derivative_is_made_once():
    assert srcdiff.grad(weighted) is srcdiff.grad(weighted)
    assert srcdiff.grad(weighted) is not srcdiff.grad(itself)
    different = [
        srcdiff.grad(weighted),
        srcdiff.value_and_grad(weighted),
        srcdiff.grad(weighted, "s"),
        srcdiff.grad(weighted, ("x",)),
        srcdiff.grad(weighted, backend="python"),
        srcdiff.grad(weighted, fastmath=False),
        srcdiff.grad(weighted, has_aux=True),
    ]
    assert len({id(derivative) for derivative in different}) == len(different)
    with pytest.raises((TypeError, ValueError)):
        srcdiff.grad(weighted, has_aux=1)
    with pytest.raises((TypeError, ValueError)):
        srcdiff.grad(weighted, True)


def test_cached_derivatives_keep_few_closures_alive():
    kept = []
    for k in range(60):
        data = np.full(10, float(k))

        def closure(x):
            return np.sum(x * data)  # noqa: B023 - called at once

        kept.append(weakref.ref(closure))
        assert srcdiff.grad(closure, backend="python")(1.0) == 10.0 * k
        del closure
    gc.collect()

    assert sum(one() is not None for one in kept) <= 20
