"""A problem is reported once: what could not be read because of it reports nothing."""

import dataclasses

import pytest

import srcdiff
from srcdiff import DifferentiationError


def refused(function):
    with pytest.raises(DifferentiationError) as error:
        srcdiff.grad(function, backend="python")(1.5)
    return [p.message for p in error.value.problems]


HASH = "`hash` has no Python source and no derivative rule"


class Filter:
    def __init__(self, a):
        self.a = a
        self.b = hash(a)
        self.c = self.b + 1.0
        self.d = [self.b, self.c]

    def doubled(self):
        return self.b * 2.0

    def run(self):
        x = self.c + self.doubled()
        y = self.d[0]
        return x + y + self.a


def test_attributes_of_a_refused_init():
    def f(a):
        model = Filter(a)
        s = model.run()
        return s + model.b + model.d[1]

    assert refused(f) == [HASH]


def test_instances_that_meet_behind_branches_and_loops():
    def f(a):
        model = Filter(a) if a > 0.0 else Filter(2.0 * a)
        if a > 1.0:
            model = Filter(a)
        s = 0.0
        for other in [Filter(a * k) for k in range(4)]:
            s += other.run()
        for _ in range(int(a)):
            model = Filter(a)
            s += model.b
        return s + model.run()

    assert refused(f) == [HASH]


class State:
    last = None

    def __init__(self, a):
        self.a = a
        self.here = None

    @property
    def speed(self):
        return self._speed

    @speed.setter
    def speed(self, x):
        self._speed = x

    def step(self, x):
        self.last = hash(x)
        self.here = hash(x)
        self.speed = hash(x)


def test_a_refused_assignment_leaves_no_earlier_value():
    def f(a):
        state = State(a)
        state.step(a)
        y = state.last * 2.0 + state.here * state.a
        z = state.speed + 1.0
        return y + z

    assert refused(f) == [HASH, HASH, HASH]


class Opened:
    def __init__(self, a):
        self.open(a)
        self.z = 2.0 * self.y

    def open(self, a):
        with a:
            self.x = a
        self.y = a


def test_what_follows_a_refused_block_would_have_been_assigned():
    def f(a):
        opened = Opened(a)
        x = opened.x + opened.y
        return x + opened.z

    assert len(refused(f)) == 1


@dataclasses.dataclass
class Point:
    x: float

    def __post_init__(self):
        self.y = hash(self.x)


def test_dataclass_and_a_class_whose_parent_is_refused():
    class Above:
        def __init__(self, a):
            super().__init__(a)
            self.m = a

    class Below(Above):
        def __init__(self, a):
            super().__init__(hash(a))
            self.q = self.m * 2.0

    def f(a):
        p, q = Point(a), Below(a)
        s = p.y + 1.0
        return s + q.q + q.m

    assert refused(f) == [HASH, HASH]


class Plain:
    def __init__(self, a):
        self.a = a


def test_a_missing_attribute_is_reported_at_its_first_use_only():
    def f(a):
        plain = Plain(a)
        x = plain.b + 1.0
        y = plain.b + 2.0
        z = plain.c
        return x + y + z + hash(a)

    assert refused(f) == ["`Plain` has no `b`; it has a", "`Plain` has no `c`; it has a"]


def test_other_problems_are_still_reported_together():
    def f(a):
        model = Filter(a)
        x = model.b
        plain = Plain(a)
        y = plain.b
        return x + y

    assert refused(f) == [HASH, "`Plain` has no `b`; it has a"]


def test_no_refusal_no_change():
    def f(a):
        state = State(a)
        state.speed = a * a
        state.here = a
        return state.speed * state.here

    assert srcdiff.grad(f, backend="python")(1.5) == pytest.approx(3 * 1.5**2)
