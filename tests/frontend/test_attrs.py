"""Classes of `attrs`: creation, reads and writes; and named tuples whose classes define operators and methods."""

import copy
from typing import NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

attrs = pytest.importorskip("attrs")
attr = pytest.importorskip("attr")


@attrs.define
class Particle:
    position: float
    speed: float
    mass: float = 1.0
    history: list = attrs.field(factory=list)

    def step(self, dt, force):
        self.speed += dt * force / self.mass
        self.position += dt * self.speed
        self.history.append(self.position)

    def energy(self):
        return 0.5 * self.mass * self.speed**2


@attrs.frozen
class Frozen:
    x: float
    w: np.ndarray = attrs.field(factory=lambda: np.ones(2))

    def value(self):
        return self.x**2 * np.sum(self.w)


@attrs.define
class Checked:
    x: float = attrs.field(validator=[attrs.validators.instance_of(float), attrs.validators.lt(9.0)])
    y: float = attrs.field(converter=float, default=1)
    z: float = attrs.field(init=False)

    def __attrs_post_init__(self):
        self.z = self.x * self.y


@attrs.define(kw_only=True)
class Named:
    a: float
    _b: float = attrs.field(default=attrs.Factory(lambda self: 2.0 * self.a, takes_self=True))

    def product(self):
        return self.a * self._b


@attr.s
class Old:
    x = attr.ib()
    y = attr.ib(default=3.0)

    @x.validator
    def _positive(self, attribute, value):
        if value < 0.0:
            raise ValueError("x is negative")


@attrs.define
class Heavy(Particle):
    drag: float = 0.1

    def step(self, dt, force):
        super().step(dt, force - self.drag * self.speed)


def made_inside(x, n):
    p = Particle(0.3, x)
    for _ in range(n):
        p.step(0.1, -p.position)
    return p.energy() + p.history[-1] * p.history[0]


def inherited(x, n):
    p = Heavy(0.3, x, drag=x)
    for _ in range(n):
        p.step(0.1, -p.position)
    return p.energy()


def argument(p, n):
    for _ in range(n):
        p.step(0.1, -p.position)
    return p.energy()


def frozen(x):
    return Frozen(x).value() * Frozen(x, np.array([x, 2.0])).value()


def frozen_argument(p):
    return p.value()


def converted(x):
    c = Checked(x, 2)
    c.y = 3
    return c.z * c.y + c.x


def by_name(x):
    return Named(a=x).product() + Named(a=x, b=1.0).product() + attrs.evolve(Named(a=x), b=x).product()


def old_style(x):
    o = Old(x)
    o.y *= x
    return o.x * o.y * (1.0 if Old(1.0) == Old(1.0) else 0.0)


class Vector(NamedTuple):
    x: float
    y: float

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __abs__(self):
        return np.hypot(self.x, self.y)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    @property
    def norm(self):
        return abs(self)

    @classmethod
    def both(cls, x):
        return cls(x, x)

    @staticmethod
    def zero():
        return Vector(0.0, 0.0)

    def __call__(self, t):
        return self.x + self.y * t


def named_tuples(a, t):
    b = a + a * t - 0.5 * a
    b += Vector.both(t)
    return b @ (-a) / b.norm + abs(a) + a(t) + Vector.zero().x


def in_a_loop(p, v, n):
    for _ in range(n):
        v = v - 0.1 * p
        p = p + v * 0.1
    return p.x + p @ v


PROGRAMS = [
    (made_inside, (0.7, 4)),
    (inherited, (0.7, 4)),
    (argument, (Particle(0.5, 1.0), 3)),
    (frozen, (1.5,)),
    (frozen_argument, (Frozen(1.5),)),
    (converted, (1.5,)),
    (by_name, (1.5,)),
    (old_style, (1.5,)),
    (named_tuples, (Vector(1.0, 2.0), 0.3)),
    (in_a_loop, (Vector(1.0, 2.0), Vector(0.0, 1.0), 5)),
]


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_gradients_are_those_of_differences(function, arguments):
    value, gradient = srcdiff.value_and_grad(function, backend="python")(*arguments)
    assert value == pytest.approx(function(*copy.deepcopy(arguments)), rel=1e-14)
    assert type(gradient) is type(arguments[0])
    srcdiff.check(function, *arguments, backend="python")


def test_a_call_leaves_the_argument_as_it_was():
    p = Particle(0.5, 1.0)
    srcdiff.grad(argument, backend="python")(p, 3)
    assert Particle(0.5, 1.0) == p


def assigns_frozen(x):
    p = Frozen(x)
    p.x = 2.0
    return p.x * x


@pytest.mark.parametrize(
    ("function", "x", "kind", "said"),
    [
        (converted, 10.0, ValueError, "must be <"),
        (old_style, -1.0, ValueError, "x is negative"),
        (assigns_frozen, 1.0, attr.exceptions.FrozenInstanceError, "can't set"),
    ],
)
def test_what_the_class_raises_is_raised(function, x, kind, said):
    with pytest.raises(kind, match=said):
        srcdiff.grad(function, backend="python")(x)


@attrs.define
class Chosen:
    kind: float = attrs.field(validator=attrs.validators.in_([1.0, 2.0]))


def other_validator(x):
    return Chosen(x).kind


def test_other_validators_are_refused():
    with pytest.raises(DifferentiationError, match="of `kind` is not supported"):
        srcdiff.grad(other_validator, backend="python")(1.0)
