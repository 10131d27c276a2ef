"""Instances of Numba's `jitclass`: made outside and inside, with methods, properties and fields that are assigned."""

import numba
import numpy as np
import pytest
from numba import float32, float64, int64
from numba.experimental import jitclass

import srcdiff


@jitclass([("a", float64), ("n", int64), ("w", float64[:])])
class Model:
    def __init__(self, a, n, w):
        self.a = a
        self.n = n
        self.w = w

    @property
    def half(self):
        return 0.5 * self.a

    @half.setter
    def half(self, value):
        self.a = 2 * value

    @staticmethod
    def cube(x):
        return x**3

    def step(self, x):
        self.a += x
        self.n = self.n + 1

    def __len__(self):
        return len(self.w)

    def loss(self, x):
        return self.a * x * np.sum(self.w)


@jitclass([("inner", Model.class_type.instance_type), ("scale", float64)])
class Outer:
    def __init__(self, inner, scale):
        self.inner = inner
        self.scale = scale

    def loss(self, x):
        return self.inner.loss(x) * self.scale


@jitclass([("single", float32)])
class Single:
    def __init__(self, single):
        self.single = single


@numba.njit
def stepped(m, x):
    for _ in range(3):
        m.step(x)
    return m.a * m.n + m.half


MODEL = Model(2.0, 3, np.array([1.0, 2.0]))
OUTER = Outer(MODEL, 0.5)


def outside_and_written(x):
    MODEL.step(x)
    MODEL.half = MODEL.half * x
    return MODEL.a * MODEL.n * len(MODEL) * Model.cube(x)


def made_inside(x):
    total = 0.0
    for i in range(4):
        model = Model(x * i, i, np.ones(2) * x)
        model.step(x)
        total += model.loss(x) if isinstance(model, Model) else 0.0
    return total


def truncated(x):
    model = Model(x, 2.7, np.ones(2))
    assigned = Model(x, 0, np.ones(2))
    assigned.n = 3.9
    return model.a * model.n + assigned.a * assigned.n


def shared(x):
    one = Model(x, 1, np.ones(1))
    other = one
    other.a = 3.0 * x
    return one.a * other.a


def written_through_an_array(x):
    w = np.ones(2)
    model = Model(1.0, 1, w)
    w[0] = x
    model.w[1] = x * x
    return np.sum(model.w * w)


FUNCTIONS = [outside_and_written, made_inside, truncated, shared, written_through_an_array, MODEL.loss, OUTER.loss]
FUNCTIONS += [lambda x: stepped(MODEL, x), lambda x: OUTER.inner.a * OUTER.loss(x) ** 2]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_agree_with_differences(function):
    before = MODEL.a, MODEL.n, MODEL.w.copy()
    writes_outside = function in (outside_and_written, FUNCTIONS[-2])  # it has no second derivatives
    srcdiff.check(function, 1.5, order=1 if writes_outside else 2, backend="python")
    assert before[:2] == (MODEL.a, MODEL.n)
    np.testing.assert_array_equal(before[2], MODEL.w)


def test_gradient_by_an_argument_has_its_fields():
    value, gradient = srcdiff.value_and_grad(stepped, backend="numba")(MODEL, 1.5)
    assert 42.25 == value
    assert (6.5, None) == (gradient.a, gradient.n)
    np.testing.assert_array_equal([0.0, 0.0], gradient.w)
    assert 6.5 == srcdiff.grad(stepped, wrt="m.a", backend="python")(MODEL, 1.5)
    np.testing.assert_array_equal([3.0, 3.0], srcdiff.grad(MODEL.loss, wrt="self.w", backend="python")(1.5))


def test_fields_are_those_of_the_call():
    model = Model(2.0, 3, np.array([1.0, 2.0]))
    derivative = srcdiff.grad(stepped, wrt="x")
    outside = srcdiff.grad(lambda x: model.loss(x))
    for a, w in ((2.0, 1.0), (2.0, 1.0), (5.0, 4.0)):
        model.a, model.w = a, np.array([w, 2.0])
        assert 3 * 6 + 1.5 == derivative(model, 1.0)
        assert a * (w + 2.0) == outside(1.0)


def test_the_same_instance_twice_is_refused():
    def both(m, n, x):
        m.a = x
        return m.a * n.a

    assert 2.0 == srcdiff.grad(both, wrt="x", backend="python")(MODEL, Model(2.0, 1, np.ones(1)), 1.0)
    with pytest.raises(srcdiff.DifferentiationError, match="passed twice"):
        srcdiff.grad(both, wrt="x", backend="python")(MODEL, MODEL, 1.0)


def test_fields_in_single_precision_are_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="single precision"):
        srcdiff.grad(lambda x: Single(x).single * x, backend="python")(1.5)
