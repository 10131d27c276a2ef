"""Python's booleans are added as integers, and NumPy's with `or`."""

import numpy as np
import pytest

import srcdiff

THRESHOLD = 0.5


def passed(x, y):
    return ((x > 0.0) + (y > 0.0)) * x


def passed_outside(x):
    return ((x > 0.0) + (x > THRESHOLD)) * x


def both(p):
    return ((p["a"] > 0.0) + (p["b"][0] > 0.0)) * p["a"]


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_code_for_python_numbers_is_not_used_for_numpy_numbers(backend):
    derivative = srcdiff.value_and_grad(passed, backend=backend)

    for _ in range(3):
        assert derivative(2.0, 3.0) == (passed(2.0, 3.0), 2.0)
        with pytest.raises(srcdiff.DifferentiationError, match=r"adds booleans with `or`.*(?s:.)*int\(\.\.\.\)"):
            derivative(2.0, np.float64(3.0))


def test_numbers_from_outside(monkeypatch):
    derivative = srcdiff.value_and_grad(passed_outside, backend="python")

    assert derivative(2.0) == (passed_outside(2.0), 2.0)
    assert derivative(0.25) == (0.25, 1.0)
    monkeypatch.setitem(globals(), "THRESHOLD", np.float64(0.5))
    assert passed_outside(2.0) == 2.0  # True + np.True_ is np.True_

    with pytest.raises(srcdiff.DifferentiationError, match="booleans"):
        derivative(2.0)


def test_numbers_in_structures():
    derivative = srcdiff.value_and_grad(both, backend="python")

    assert derivative({"a": 2.0, "b": (1.0,)})[0] == 4.0
    with pytest.raises(srcdiff.DifferentiationError, match="booleans"):
        derivative({"a": 2.0, "b": (np.float64(1.0),)})


def test_second_derivatives():
    def squared(x, y):
        return passed(x, y) ** 2

    assert srcdiff.hessian(squared, backend="python")(2.0, 3.0) == 8.0
