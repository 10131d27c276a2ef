"""Copies by the module `copy`, fields of dataclasses as dictionaries and tuples, and attributes by `__dict__`."""

import copy
import dataclasses
from dataclasses import dataclass, field

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

X = np.array([0.5, 1.2, -0.3])


class Body:
    def __init__(self, mass):
        self.mass, self.places, self.parts = mass, [mass, 2.0], np.ones(2) * mass
        self.named, self.child = {"k": mass}, None

    def move(self):
        self.mass *= 2
        self.parts[0] += self.mass
        self.places[0] = self.mass * 3
        self.named["k"] += self.mass

    def value(self):
        return self.mass + np.sum(self.parts**2) + self.places[0] * self.places[1] + self.named["k"]


def shallow(x):
    body = Body(x[0])
    other = copy.copy(body)
    other.move()
    return body.value() * other.value()


def deep(x):
    body = Body(x[0])
    other = copy.deepcopy(body)
    other.move()
    return body.value() * other.value()


def shared_parts_stay_shared(x):
    first, second = Body(x[0]), Body(x[1])
    first.child = second
    copies = copy.deepcopy([first, second, first])
    copies[0].child.move()
    copies[2].move()
    return copies[1].value() * copies[0].value() + first.value() + second.value()


def an_object_that_refers_to_itself(x):
    body = Body(x[0])
    body.child = body
    other = copy.deepcopy(body)
    other.child.move()
    return other.value() * body.value()


def arrays_and_lists(x):
    whole, items = x.copy(), [x[0], [x[1], x[2]]]
    both = copy.deepcopy((whole, whole, whole[1:]))
    both[0][1] = 5.0
    a, b = copy.copy(items), copy.deepcopy(items)
    a[1][0] = 7.0 * x[0]
    b[1][1] = 3.0 * x[1]
    return np.sum(both[1] ** 2) + np.sum(both[2] ** 2) + items[1][0] * b[1][0] * b[1][1] + a[0]


def in_a_loop(x):
    best, total = Body(x[0]), 0.0
    for k in range(len(x)):
        trial = copy.deepcopy(best)
        trial.move()
        total += trial.value() * x[k]
        best.mass = 0.1 * trial.mass
    return total


@dataclass
class Inner:
    p: float
    q: list = field(default_factory=list)


@dataclass
class Outer:
    a: float
    inner: Inner
    pair: tuple = (1.0, 2.0)


def fields_as_dictionaries_and_tuples(x):
    outer = Outer(x[0], Inner(2 * x[1], [x[2], 1.0]))
    taken, several = dataclasses.asdict(outer), dataclasses.astuple(outer)
    taken["inner"]["q"][0] = 5.0 * x[0]
    outer.a = x[1] ** 3
    outer.inner.p *= 2.0
    named = [getattr(outer.inner, f.name) for f in dataclasses.fields(outer.inner) if f.name != "q"]
    return taken["a"] * taken["inner"]["q"][0] + outer.inner.q[0] * outer.inner.p + several[1][0] * outer.a + sum(named)


class Settings:
    def __init__(self, **given):
        for name, value in given.items():
            setattr(self, name, value)
        self.__dict__.update(given, extra=3.0)

    def total(self):
        return sum(vars(self).values()) + sum(v for k, v in vars(self).items() if k != "rate") + len(self.__dict__)

    def raise_by(self, name, value):
        self.__dict__[name] += value
        seen = self.__dict__
        self.extra = value * value
        return seen["extra"] * seen[name]


def attributes_by_name(x):
    settings = Settings(rate=x[0], scale=2 * x[1])
    changed = settings.raise_by("rate", x[2])
    return settings.rate * settings.scale * settings.total() + changed


def a_copy_of_the_attributes(x):
    settings = Settings(rate=x[0])
    kept, held = dict(settings.__dict__), (vars(settings), 1)
    settings.rate = 7.0 * x[1]
    again = Settings(**vars(settings))
    again.rate *= 2.0
    return kept["rate"] * settings.rate * again.rate * held[0]["rate"]


PROGRAMS = [
    *(shallow, deep, shared_parts_stay_shared, an_object_that_refers_to_itself, arrays_and_lists, in_a_loop),
    *(fields_as_dictionaries_and_tuples, attributes_by_name, a_copy_of_the_attributes),
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_that_copy_have_derivatives_of_both_orders(function):
    srcdiff.check(function, X, backend="python")
    assert srcdiff.value_and_grad(function, backend="python")(X)[0] == pytest.approx(function(X))


def test_a_compiled_program_that_copies():
    srcdiff.check(shared_parts_stay_shared, X, backend="numba")


class Copies:
    def __init__(self, x):
        self.x = x

    def __copy__(self):
        return Copies(2 * self.x)


def test_a_class_that_defines_how_it_is_copied_is_refused_by_name():
    with pytest.raises(DifferentiationError, match="`Copies` defines `__copy__`, which `copy` calls"):
        srcdiff.grad(lambda x: copy.copy(Copies(x)).x, backend="python")(1.0)


@dataclass(frozen=True)
class Frozen:
    a: float
    b: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "b", 2 * self.a)


class ByName:
    def __init__(self, **given):
        for name in given:
            self.__setattr__(name, given[name])

    def squared(self, name):
        return self.__getattribute__(name) ** 2


def test_attributes_are_set_by_the_methods_of_object():
    srcdiff.check(lambda x: Frozen(x).a * Frozen(x).b + ByName(p=x, q=x**3).squared("q"), 1.3, backend="python")
