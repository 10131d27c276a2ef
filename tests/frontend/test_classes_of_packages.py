"""What classes of public packages have: metaclasses, defaults of named tuples, attributes that may not exist."""

from __future__ import annotations

import abc
from collections import namedtuple

import numpy as np
import pytest

import srcdiff


class WritesDocumentation(abc.ABCMeta):
    """A metaclass that says only how classes are made."""

    def __new__(cls, name, bases, own):
        own.setdefault("title", name.lower())
        return super().__new__(cls, name, bases, own)

    def described(cls):
        return cls.__name__


class Calls(type):
    def __call__(cls, *args):
        return 3.0


class Distribution(metaclass=WritesDocumentation):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def log_likelihood(self, y):
        return -0.5 * np.sum((y / self.scale) ** 2) - len(y) * np.log(self.scale)


class Singleton(metaclass=Calls):
    pass


class Accessed:
    def __getattr__(self, name):
        return 2.0


class Mixin:
    def half(self):
        return 0.5 * self.width


class Root(Mixin):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.prefix = "pipe_"
        self.given = {"pipe_k": 2.0, "pipe_width": width}


Law = namedtuple("Law", "factor energy reference")
Law.__new__.__defaults__ = (None,)


def rate(law, temperature):
    try:
        scaled = temperature.rescale("kelvin")
    except AttributeError:
        scaled = temperature
    return law.factor * np.exp(-law.energy / scaled) if law.reference is None else scaled


def likelihood(s):
    return Distribution(s).log_likelihood(np.array([0.5, -1.0])) + len(Distribution.title)


def named_parts(x):
    root = Root(x)
    own = {name[len(root.prefix) :]: value for name, value in root.given.items()}
    return own["k"] * own["width"] ** 2 + root.half() * len(root.prefix[:-1])


@pytest.mark.parametrize(
    "function", [likelihood, named_parts, lambda x: rate(Law(2.0, 1.5), x), lambda x: rate(Law(x, 1.5), 3.0)]
)
def test_derivatives_agree_with_differences(function):
    expected = (function(1.3 + 1e-6) - function(1.3 - 1e-6)) / 2e-6
    assert srcdiff.grad(function, backend="python")(1.3) == pytest.approx(expected, rel=1e-7)


def test_defaults_of_named_tuples_are_those_of_the_time_of_the_call():
    gradient = srcdiff.grad(lambda x: rate(Law(x, 0.0), 3.0), backend="python")
    assert gradient(1.3) == 1.0
    Law.__new__.__defaults__ = (1.0,)
    try:
        assert gradient(1.3) == 0.0
    finally:
        Law.__new__.__defaults__ = (None,)


def test_missing_attribute_outside_of_a_try_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="has no attribute `rescale`"):
        srcdiff.grad(lambda x: x.rescale("kelvin"), backend="python")(1.3)


class Angles(np.ndarray):
    def __new__(cls, values):
        return np.asarray(values).view(cls)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * Accessed().width, "defines `__getattr__`"),
        (lambda x: np.sum(Angles([x, 2.0 * x])), "inherits from `numpy.ndarray`"),
        (lambda x: x * Singleton(), "no metaclass"),
    ],
)
def test_refused_classes_are_told_why(function, message):
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(function, backend="python")(1.3)


def test_shape_is_assigned_by_a_view():
    def f(x):
        x.shape = 2, 1
        return np.sum(x)

    with pytest.raises(srcdiff.DifferentiationError, match="reshape"):
        srcdiff.grad(f, backend="python")(np.ones(2))
