"""Attributes of classes that the function assigns, and those of enum members."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import srcdiff


class Body:
    count = 0
    total = 1.0
    places: Any = None
    weights = np.array([1.0, 2.0])

    def __init__(self, mass):
        self.mass = mass
        type(self).count += 1

    @classmethod
    def grow(cls, by):
        cls.total = cls.total * by
        return cls.total


class Planet(Body):
    pass


def counted(x):
    Body.count = 0
    first, second = Body(x), Body(2.0 * x)
    return first.mass * second.mass * Body.count


def from_a_loop(x):
    Body.total = x
    for k in range(3):
        Body.total = Body.total * x + k
    if Body.total > 1.0:
        Body.total += x
    return Body.total * Body.grow(x)


def inherited(x):
    Planet.total = x * Planet.total
    before = Planet.total * Body.total
    Body.total = 3.0 * x
    return before + Planet.total * Body.total * Planet.grow(2.0)


def shadowed(x):
    one, other = Planet(x), Planet(x)
    one.total = x
    Planet.total = 3.0 * x
    return one.total * other.total * Planet.total


def collected(x):
    Body.places = []
    for k in range(3):
        Body.places.append(x**k)
    Body.weights = Body.weights * x
    return sum(Body.places) * len(Body.places) * np.sum(Body.weights)


def made_new(x):
    if not hasattr(Body, "fresh"):
        Body.fresh = 2.0 * x
    return Body.fresh * x * getattr(Body, "fresh", 0.0)


def through_a_call(x):
    Body(x).__class__.total += x
    return Body.total * x


CASES: list[Any] = [
    (counted, lambda x: 4.0 * x * x),
    (from_a_loop, lambda x: (x**4 + x + 2.0 + x) ** 2 * x),
    (inherited, lambda x: x + 2.0 * x * 3.0 * x * x),
    (shadowed, lambda x: 9.0 * x**3),
    (collected, lambda x: 9.0 * x * (1.0 + x + x * x)),
    (made_new, lambda x: 4.0 * x**3),
    (through_a_call, lambda x: (1.0 + x) * x),
]


@pytest.mark.parametrize(("function", "formula"), CASES, ids=[c[0].__name__ for c in CASES])
def test_assigned_attributes_are_those_of_the_call(function: Any, formula: Any) -> None:
    x, step = 1.3, 1e-5
    before = dict(vars(Body)), dict(vars(Planet))

    value, gradient = srcdiff.value_and_grad(function, backend="python")(x)
    second = srcdiff.grad(srcdiff.grad(function, backend="python"), backend="python")(x)
    tangent = srcdiff.jvp(function, (x,), (1.0,), backend="python")[1]

    ahead, here, behind = (formula(x + k * step) for k in (1, 0, -1))
    assert value == pytest.approx(here, rel=1e-13)
    assert gradient == pytest.approx((ahead - behind) / (2.0 * step), rel=1e-8)
    assert tangent == pytest.approx(gradient, rel=1e-13)
    assert second == pytest.approx((ahead - 2.0 * here + behind) / step**2, rel=1e-4)
    assert before == (dict(vars(Body)), dict(vars(Planet)))


@pytest.mark.numba
def test_compiled_gradients_are_the_same() -> None:
    assert srcdiff.grad(from_a_loop)(1.3) == pytest.approx(srcdiff.grad(from_a_loop, backend="python")(1.3))


def scaled(x):
    Body.count += 1
    return Body.total * x * Body.count


def test_values_are_those_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(scaled, backend="python")

    assert gradient(1.0) == 1.0
    monkeypatch.setattr(Body, "total", 7.0)
    assert gradient(1.0) == 7.0
    monkeypatch.setattr(Body, "count", 2)
    assert gradient(1.0) == 21.0


def replacing_a_method(x):
    Body.grow = lambda by: by
    return x


def on_some_paths(x):
    if x > 100.0:
        Body.sometimes = 1.0
    return x * Body.sometimes


def descend(n, x):
    Body.count += 1
    return x if n == 0 else x * descend(n - 1, x)


def in_recursion(x):
    return descend(3, x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (replacing_a_method, "`grow` of the class `Body` is a method, or becomes one"),
        (on_some_paths, "`sometimes` is an attribute of the class `Body` on some paths only"),
        (in_recursion, "a recursive function uses a class whose attributes are assigned"),
    ],
)
def test_what_is_refused(function: Any, words: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=words):
        srcdiff.grad(function, backend="python")(1.3)


class Material(enum.Enum):
    STEEL = (210.0, 7.8)
    WOOD = (11.0, 0.6)

    def __init__(self, stiffness, density):
        self.stiffness = stiffness
        self.density = density

    @property
    def specific(self):
        return self.stiffness / self.density

    def weight(self, volume):
        return self.density * volume * self.factor()

    @staticmethod
    def factor():
        return 9.81

    @classmethod
    def default(cls):
        return cls.STEEL


def beam(x, material):
    chosen = Material.WOOD if x > 1.0 else material
    return x * x * material.specific + chosen.weight(x) * x + x * Material.default().stiffness


def test_enum_members_have_properties_and_methods() -> None:
    x = 1.3
    expected = 2.0 * x * (11.0 / 0.6 + 0.6 * 9.81) + 210.0

    assert srcdiff.grad(beam, backend="python")(x, Material.WOOD) == pytest.approx(expected, rel=1e-13)
