"""Functions move out of branches: unneeded values are not computed, and derivatives do not change."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

BACKENDS = pytest.mark.parametrize("backend", ["python", "numba"])


def filtered(noise, measured):
    """A state that skips missing values."""
    state, spread, total = 0.0, 1.0, 0.0
    for value in measured:
        spread = spread + noise[0] ** 2
        if np.isnan(value):
            continue
        variance = spread + np.exp(noise[1])
        gain = spread / variance
        error = value - state
        total += np.log(variance) + error * error / variance
        state = state + gain * error
        spread = spread * (1.0 - gain)
    return total


def central_differences(function, x, *rest, small=1e-6):
    rows = np.eye(len(x)) * small
    return np.array([(function(x + r, *rest) - function(x - r, *rest)) / (2 * small) for r in rows])


MEASURED = np.array([0.3, np.nan, 0.9, 1.4, np.nan, 0.2])


@BACKENDS
def test_gradient_is_that_of_the_program(backend):
    noise = np.array([0.3, -0.4])
    gradient = srcdiff.value_and_grad(filtered, backend=backend)

    value, noise_bar = gradient(noise, MEASURED)

    assert "exp_noise_at_1 = np.exp(noise[1])\n    else" in gradient.source  # before the loop, in a branch
    np.testing.assert_allclose(value, filtered(noise, MEASURED), rtol=1e-14)
    np.testing.assert_allclose(noise_bar, central_differences(filtered, noise, MEASURED), rtol=1e-7)
    _, tangent = srcdiff.jvp(filtered, (noise, MEASURED), (np.array([1.0, 0.0]), np.zeros(6)))
    np.testing.assert_allclose(tangent, noise_bar[0], rtol=1e-13)


@BACKENDS
@pytest.mark.parametrize("measured", [np.full(3, np.nan), np.zeros(0)])
def test_element_that_no_iteration_reads_may_be_missing(backend, measured):
    value, noise_bar = srcdiff.value_and_grad(filtered, backend=backend)(np.array([0.3]), measured)

    assert value == 0.0
    np.testing.assert_array_equal(noise_bar, [0.0])


@BACKENDS
def test_element_that_is_missing_where_it_is_read_is_an_error(backend):
    with pytest.raises(IndexError, match="index 1 is out of bounds for axis 0"):
        srcdiff.grad(filtered, backend=backend)(np.array([0.3]), MEASURED)


@BACKENDS
@pytest.mark.parametrize("number", [0.0, -1.0, np.inf, np.nan])
def test_branch_that_no_iteration_takes_contributes_nothing(backend, number):
    """The derivative of the root is infinite at zero, and that of the logarithm is NaN at infinity."""

    def kept(p, x):
        s = 1.0
        for i in range(len(x)):
            if x[i] > 10.0:
                s = s * np.sqrt(p[0]) + np.log(p[0]) * s
            s = s * x[i]
        return s

    with np.errstate(all="ignore"):
        value, p_bar = srcdiff.value_and_grad(kept, backend=backend)(np.array([number]), np.array([2.0, 3.0]))

    assert value == 6.0
    np.testing.assert_array_equal(p_bar, [0.0])


def test_element_that_an_iteration_writes_stays():
    def growing(p, x):
        q = p.copy()
        s = 0.5
        for i in range(len(x)):
            if x[i] > 0.0:
                s = np.sin(q[0]) * s + x[i]
            q[0] = q[0] + s
        return s

    p, x = np.array([0.3]), np.array([0.5, -0.2, 0.4])
    p_bar = srcdiff.grad(growing, backend="python")(p, x)

    np.testing.assert_allclose(p_bar, central_differences(growing, p, x), rtol=1e-8)


def test_view_of_memory_that_an_iteration_writes_stays():
    def growing(p, x):
        q = np.zeros((2, 2))
        q[1, 0] = p[0]
        row = q[1]
        s = 0.5
        for i in range(len(x)):
            if x[i] > 0.0:
                s = np.sin(row[0]) * s + x[i]
            q[1, 0] += s * p[0]
        return s

    p, x = np.array([0.3]), np.array([0.5, -0.2, 0.4])
    p_bar = srcdiff.grad(growing, backend="python")(p, x)

    np.testing.assert_allclose(p_bar, central_differences(growing, p, x), rtol=1e-8)


def test_index_from_the_end_and_branches_in_branches_in_loops_in_loops():
    def nested(p, x, rounds):
        s = 1.0
        for _ in range(rounds):
            for i in range(len(x)):
                if x[i] > 0.0:
                    if i > 0:
                        s = s + np.exp(p[-1] * 0.5) * x[i]
                    else:
                        s = np.tanh(s * p[0])
        return s

    p, x = np.array([0.3, 0.2, -0.7]), np.array([0.5, -0.2, 0.4])
    gradient = srcdiff.grad(nested, backend="python")

    np.testing.assert_allclose(gradient(p, x, 2), central_differences(nested, p, x, 2), rtol=1e-8)
    assert gradient(p, x, 0).tolist() == gradient(p, np.zeros(0), 2).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(IndexError):
        gradient(np.zeros(0), x, 2)


def test_number_needs_no_test_and_sums_stay_without_one():
    def summed(scale, p, x):
        total = 0.0
        for i in range(len(x)):
            if x[i] > 0.0:
                total += np.exp(scale) * x[i] + np.exp(p[0]) * x[i] ** 2
        return total

    gradient = srcdiff.grad(summed, wrt=("scale", "p"), backend="python")

    scale_bar, p_bar = gradient(0.5, np.array([0.2]), np.array([1.0, -2.0, 3.0]))

    np.testing.assert_allclose([scale_bar, p_bar[0]], [4.0 * np.exp(0.5), 10.0 * np.exp(0.2)], rtol=1e-14)
    assert "IndexError" not in gradient.source
    before, _, inside = gradient.source.partition("for i in range")
    assert "np.exp(scale)" in before
    assert "np.exp(p[0])" in inside


def test_second_derivatives():
    def staying(p, x):
        s = 1.0
        for i in range(len(x)):
            if x[i] > 0.0:
                s = s * np.exp(p) + x[i]
        return s

    x = np.array([0.5, -0.2, 0.4])
    hessian = srcdiff.hessian(staying, backend="python")(0.3, x)

    small = 1e-4
    beside = (staying(0.3 + small, x) - 2 * staying(0.3, x) + staying(0.3 - small, x)) / small**2
    np.testing.assert_allclose(hessian, beside, rtol=1e-6)


def test_element_that_one_branch_needs_may_be_missing_in_another():
    def chosen(p, scale, x):
        s = 1.0
        for i in range(len(x)):
            if x[i] > 10.0:
                s = s * np.exp(p[1]) * np.cos(scale)
            elif x[i] > 0.0:
                s = s * np.sin(scale) + np.exp(p[0]) * x[i]
            else:
                s = s - np.exp(p[0] * np.sin(scale))
        return s

    scale, x = np.array([0.7]), np.array([0.5, -0.2, 0.4])
    for p in (np.array([0.3]), np.array([0.3, 0.1])):
        gradient = srcdiff.grad(lambda p, scale, x: chosen(p, scale[0], x), wrt=("p", "scale"), backend="python")

        p_bar, scale_bar = gradient(p, scale, x)

        np.testing.assert_allclose(p_bar, central_differences(chosen, p, scale[0], x), rtol=1e-8, atol=1e-12)
        by_scale = central_differences(lambda s: chosen(p, s[0], x), scale)  # noqa: B023
        np.testing.assert_allclose(scale_bar, by_scale, rtol=1e-8)
