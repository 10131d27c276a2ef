"""Attributes declared as integers stay integers if the derivative is taken with respect to the whole instance."""

import typing
from dataclasses import dataclass

import numba
import numpy as np
import pytest
from numba.experimental import jitclass

import srcdiff

BACKENDS = ["python", "numba"]


class Steps:
    def relaxed(self, u):
        for _ in range(self.steps):
            u = u * self.rate + 1.0
        return u


@dataclass
class Data(Steps):
    rate: float
    steps: int


class Written(Steps):
    steps: "int"

    def __init__(self, rate, steps):
        self.rate, self.steps = rate, steps


class Derived(Written):
    pass


class Undeclared(Steps):
    def __init__(self, rate, steps):
        self.rate, self.steps = rate, steps


class Pair(typing.NamedTuple):
    rate: float
    steps: int


@jitclass([("rate", numba.float64), ("steps", numba.int64)])
class Compiled:
    def __init__(self, rate, steps):
        self.rate, self.steps = rate, steps


def relaxed(model, u):
    for _ in range(model.steps):
        u = u * model.rate + 1.0
    return u


def of_method(model, u):
    return model.relaxed(u)


CASES = [(relaxed, kind) for kind in (Data, Written, Derived, Pair, Compiled)]
CASES += [(of_method, kind) for kind in (Data, Written, Derived)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("function", "kind"), CASES[:2] + CASES[3:])
def test_the_integer_has_no_derivative(function, kind, backend):
    if backend == "numba" and function is of_method:
        pytest.skip("as for the function")
    gradient = srcdiff.grad(function, backend=backend)(kind(0.5, 3), 2.0)
    assert gradient.rate == 3 * 0.5**2 * 2.0 + 1.0 + 2 * 0.5
    assert gradient.steps is None


@pytest.mark.parametrize(("function", "kind"), CASES)
def test_all_modes_take_the_whole_instance(function, kind):
    model = kind(0.5, 3)

    def of_model(m):
        return function(m, 2.0)

    expected = 3 * 0.5**2 * 2.0 + 1.0 + 2 * 0.5
    tangent = srcdiff.grad(of_model, backend="python")(model)
    assert srcdiff.jvp(of_model, (model,), (tangent,), backend="python") == (2.0, expected * expected)
    assert srcdiff.hvp(of_model, backend="python")(model, tangent).rate == (6 * 0.5 * 2.0 + 2.0) * expected
    assert srcdiff.grad(of_model).ravel(model).names == ["m.rate"]
    if kind is not Compiled:
        srcdiff.check(of_model, model, order=2, backend="python")


def test_derivatives_inside_of_functions_take_it():
    def rate_of_change(model, u):
        return srcdiff.grad(relaxed)(model, u).rate

    gradient = srcdiff.grad(rate_of_change, backend="python")(Data(0.5, 3), 2.0)
    assert (gradient.rate, gradient.steps) == (6 * 0.5 * 2.0 + 2.0, None)


def test_integers_of_classes_that_declare_nothing_are_floats():
    assert srcdiff.grad(lambda m: m.rate * m.steps, backend="python")(Undeclared(0.5, 3)).steps == 0.5
    with pytest.raises(srcdiff.DifferentiationError, match="`range` needs integers") as raised:
        srcdiff.grad(relaxed, backend="python")(Undeclared(0.5, 3), 2.0)
    assert "declare the attribute as an integer in its class (`n: int`)" in str(raised.value)
    assert srcdiff.grad(relaxed, wrt="model.rate", backend="python")(Undeclared(0.5, 3), 2.0) == 3.5


class Net:
    def __init__(self, layer, depth):
        self.layer, self.depth, self.scale = layer, depth, 2

    def loss(self, x):
        y = 0.0
        for k in range(self.depth):
            y += self.layer.relaxed(x) * self.scale**k
        return y


@pytest.mark.parametrize("depth", [0, 2])
def test_integers_beside_the_attribute_stay_integers(depth):
    net = Net(Undeclared(0.5, 3), depth)
    slope = 3.5 * (2**depth - 1)
    assert srcdiff.grad(net.loss, wrt="self.layer.rate", backend="python")(2.0) == slope
    assert srcdiff.grad(net.loss, wrt=("self.layer.rate", "x"), backend="python")(2.0) == (slope, slope / 28)
    assert srcdiff.grad(net.loss, wrt="self.scale", backend="python")(2.0) == (2.0 if depth else 0.0)
    with pytest.raises(srcdiff.DifferentiationError, match="`range` needs integers"):
        srcdiff.grad(net.loss, wrt="self.depth", backend="python")(2.0)


def test_an_integer_argument_that_is_a_count_is_explained():
    with pytest.raises(srcdiff.DifferentiationError, match="the derivative is taken with respect to this integer"):
        srcdiff.grad(lambda n: float(len(range(n))), backend="python")(3)


def test_an_integer_attribute_is_an_integer_for_isinstance():
    def halved(m):
        return m.rate * 0.5 if isinstance(m.steps, int) else m.rate

    for kind in (Data, Undeclared):
        assert srcdiff.grad(halved, backend="python")(kind(0.5, 3)).rate == 0.5


def test_arrays_beside_the_integers():
    @dataclass
    class Filter:
        weights: np.ndarray
        order: int
        gains: tuple

        def run(self, x):
            for k in range(self.order):
                x = x * self.weights[k] + self.gains[0]
            return x

    model = Filter(np.array([0.5, 2.0, 3.0]), 2, (0.25, 7))
    gradient = srcdiff.grad(lambda m, x: m.run(x), backend="python")(model, 1.5)
    np.testing.assert_array_equal(gradient.weights, [3.0, 1.0, 0.0])
    assert (gradient.order, gradient.gains) == (None, (3.0, 0.0))
