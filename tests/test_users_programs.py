"""Programs as people write them: values, gradients, tangents and second derivatives."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.users_programs import PROGRAMS

STEP = 1e-5
COMPILED = [
    *("two_reservoirs", "load_by_basin", "kepler_by_a_class", "truss_by_elements", "bootstrap", "gufunc_of_numba"),
    *("recursion_with_memory", "network_of_objects", "waiting_times", "interval_arithmetic"),
]
"""One program of each kind."""


def of_first(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The Python function, with copies of the data."""
    return lambda x: function(x, *copy.deepcopy(arguments[1:]))


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_derivatives_of_first_and_second_order(function, arguments):
    x, plain = arguments[0], of_first(function, arguments)
    direction = np.cos(1.0 + np.arange(np.size(x))).reshape(np.shape(x)) if np.shape(x) else 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value_and_grad = srcdiff.value_and_grad(function, backend="python")
        value, gradient = value_and_grad(*arguments)
        tangents = tuple(direction if k == 0 else None for k in range(len(arguments)))
        _, tangent = srcdiff.jvp(function, arguments, tangents, backend="python")
        product = srcdiff.hvp(function, backend="python")(*arguments, direction)
    assert value == pytest.approx(plain(x), rel=1e-13)
    slope = (plain(x + STEP * direction) - plain(x - STEP * direction)) / (2 * STEP)
    assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8)
    assert tangent == pytest.approx(np.sum(gradient * direction), rel=1e-11, abs=1e-12)
    ahead, behind = (value_and_grad(x + s * direction, *arguments[1:])[1] for s in (STEP, -STEP))
    expected = (np.asarray(ahead) - np.asarray(behind)) / (2 * STEP)
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-6 * max(1.0, np.max(np.abs(expected))))


@pytest.mark.numba
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_gradients_are_the_same(name):
    function, arguments = next((f, a) for f, a in PROGRAMS if f.__name__ == name)
    expected = srcdiff.grad(function, backend="python")(*arguments)
    np.testing.assert_allclose(srcdiff.grad(function)(*arguments), expected, rtol=1e-12)
