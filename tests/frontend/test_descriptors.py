"""Descriptors that are written in Python: `__get__` and `__set__` of class attributes."""

import dataclasses
import functools

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


class Scaled:
    """Keeps the value under another name, times a factor."""

    def __init__(self, factor):
        self.factor = factor

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.name) * self.factor

    def __set__(self, instance, value):
        setattr(instance, self.name, value * self.factor)


class InDictionary:
    """Keeps the value under the same name, as a data descriptor may."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return instance.__dict__[self.name]

    def __set__(self, instance, value):
        if value < 0.0:
            raise ValueError("negative")
        instance.__dict__[self.name] = value * value


class Norm:
    """Has no attributes, and `__get__` only: an attribute of the instance comes first."""

    def __get__(self, instance, owner=None):
        return np.sqrt(instance.x**2 + instance.w**2)


class Body:
    w = Scaled(3.0)
    x = InDictionary()
    norm = Norm()

    def __init__(self, w, x):
        self.w = w
        self.x = x

    def step(self, dt):
        self.w += dt
        self.x = self.x + self.w * dt


class Adjustable(Scaled):
    pass


class Adjusted:
    w = Adjustable(2.0)

    def __init__(self, w):
        self.w = w


class Heavy(Body):
    @property
    def twice(self):
        return 2.0 * super().w


def numerically(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2.0 * h)


def made(x):
    body = Body(x, 2.0)
    return body.w * body.x * x


def with_norm(x):
    body = Heavy(x, x * x)
    return body.norm + body.twice


def hidden_norm(x):
    body = Body(x, 2.0)
    body.norm = x * x * x
    return body.norm


def stepped(x):
    body = Body(x, 1.0)
    other = body
    for k in range(4):
        if other.w > 30.0 * k:
            body.step(x / 8.0)
        else:
            body.w = other.x * x / 8.0
    return other.w * body.x


def two_bodies(x):
    one, two = Body(x, 1.0), Body(2.0 * x, 0.5)
    one.w, two.w = two.w, one.w
    return one.w * one.w + two.w * two.x


def by_name(x):
    body = Body(x, 2.0)
    setattr(body, "w", getattr(body, "w") * x)  # noqa: B009, B010
    return body.w


@pytest.mark.parametrize("backend", ["python"])
@pytest.mark.parametrize("function", [made, with_norm, hidden_norm, stepped, two_bodies, by_name])
def test_gradient(function, backend):
    found = srcdiff.grad(function, backend=backend)(1.3)
    assert found == pytest.approx(numerically(function, 1.3), rel=1e-6)
    assert srcdiff.value_and_grad(function, backend=backend)(1.3)[0] == pytest.approx(function(1.3))


def test_gradient_with_numba():
    assert srcdiff.grad(stepped)(1.3) == pytest.approx(numerically(stepped, 1.3), rel=1e-6)


@dataclasses.dataclass
class Reading:
    w: float
    x: float = Scaled(2.0)

    @property
    def w(self):
        return self._w * 3.0

    @w.setter
    def w(self, value):
        self._w = value


def test_fields_of_dataclasses_that_the_class_sets():
    def f(x):
        reading = Reading(x, x * x)
        return reading.w * reading.x

    assert srcdiff.grad(f, backend="python")(1.3) == pytest.approx(numerically(f, 1.3), rel=1e-6)


def test_instances_in_lists():
    def f(x):
        bodies = [Body(x * k, 1.0) for k in range(3)]
        for body in bodies:
            body.step(x / 8.0)
        s = 0.0
        for body in bodies:
            s += body.w * body.x
        return s

    assert srcdiff.grad(f, backend="python")(1.3) == pytest.approx(numerically(f, 1.3), rel=1e-6)


def test_gradient_of_an_instance_has_the_attributes_that_are_kept():
    def f(body):
        return body.w * body.w

    found = srcdiff.grad(f, backend="python")(Adjusted(1.5))
    assert vars(found) == {"_w": 24.0}


class Hiding:
    """The attribute is read by the property, so the instance cannot be taken apart by its names."""

    def __init__(self, x):
        self.__dict__["x"] = x

    @property
    def x(self):
        return 2.0 * self.__dict__["x"]


HIDING = Hiding(1.0)


@pytest.mark.parametrize("instance", [Hiding(1.0), Body(1.5, 0.5)])
def test_attributes_that_the_class_hides_are_not_read_from_outside(instance):
    with pytest.raises(DifferentiationError, match="as properties or descriptors: keep the values under other"):
        srcdiff.grad(lambda a: a.x, backend="python")(instance)
    with pytest.raises(DifferentiationError):
        srcdiff.grad(lambda x: HIDING.x * x, backend="python")(1.0)


@pytest.mark.parametrize("packed", [lambda body: body, lambda body: [body], lambda body: {"a": (body, 1.0)}])
def test_attributes_that_the_class_hides_are_not_returned(packed):
    def f(x):
        body = Body(x, x)
        body.step(x)
        return x * x, packed(body)

    def g(x):
        return x * x, packed(Body(x, x))

    with pytest.raises(DifferentiationError, match="whose class hides its attributes"):
        srcdiff.value_and_grad(f, has_aux=True, backend="python")(1.0)
    with pytest.raises(DifferentiationError, match="whose class hides its attributes"):
        srcdiff.value_and_grad(g, has_aux=True, backend="python")(1.0)


class Plain(Body):
    x = Scaled(1.0)


BODY = Plain(1.5, 0.5)


def of_outside(x):
    BODY.step(x)
    return BODY.w * BODY.x


def test_outside_instances_and_arguments_stay_as_they_were():
    def of_argument(body, x):
        body.step(x)
        return body.w * body.x

    def copied(x):
        body = Plain(0.5, 0.7)
        body.step(x)
        return body.w * body.x

    body, before = Plain(0.5, 0.7), dict(vars(BODY))
    kept = dict(vars(body))
    gradient = srcdiff.grad(of_argument, wrt="x", backend="python")
    assert gradient(body, 0.3) == pytest.approx(numerically(copied, 0.3), rel=1e-6)
    assert vars(body) == kept
    first = srcdiff.grad(of_outside, backend="python")(0.3)
    assert vars(BODY) == before
    assert srcdiff.grad(of_outside, backend="python")(0.3) == first


def adjusted(x):
    return Adjusted(x).w * x


def test_a_descriptor_that_changes_between_calls():
    gradient = srcdiff.grad(adjusted, backend="python")
    descriptor = vars(Adjusted)["w"]
    for factor in (2.0, 5.0):
        descriptor.factor = factor
        assert gradient(1.3) == pytest.approx(2.0 * factor**2 * 1.3)
    other = Adjustable(7.0)
    other.__set_name__(Adjusted, "w")
    Adjusted.w, before = other, descriptor
    try:
        assert gradient(1.3) == pytest.approx(2.0 * 49.0 * 1.3)
        Adjustable.__get__ = lambda self, instance, owner=None: getattr(instance, self.name)
        assert gradient(1.3) == pytest.approx(2.0 * 7.0 * 1.3)
    finally:
        if "__get__" in vars(Adjustable):
            del Adjustable.__get__
        Adjusted.w = before


def test_exceptions_of_a_descriptor_are_pythons():
    def f(x):
        return Body(x, x - 2.0).x

    with pytest.raises(ValueError, match="negative"):
        srcdiff.grad(f, backend="python")(1.0)


class Shared:
    """Keeps the value itself: all instances have the same."""

    def __init__(self):
        self.value = 0.0

    def __get__(self, instance, owner=None):
        return self.value

    def __set__(self, instance, value):
        self.value = value


class WithoutAttributes:
    value = 0.0
    __get__, __set__ = Shared.__get__, Shared.__set__


class WithShared:
    w = Shared()
    x = WithoutAttributes()


def test_a_descriptor_that_keeps_the_value_itself():
    def f(x):
        one, two = WithShared(), WithShared()
        one.w = x * x
        return two.w * x

    gradient = srcdiff.grad(f, backend="python")
    assert gradient(2.0) == pytest.approx(12.0)
    assert gradient(3.0) == pytest.approx(27.0)
    assert vars(vars(WithShared)["w"]) == {"value": 0.0}


def test_a_descriptor_without_attributes_that_gets_one_is_refused():
    def f(x):
        one = WithShared()
        one.x = x * x
        return one.x * x

    with pytest.raises(DifferentiationError, match="`WithoutAttributes` without attributes") as error:
        srcdiff.grad(f, backend="python")(2.0)
    assert "assign `value` in `__init__`" in error.value.problems[0].help


def test_a_descriptor_read_from_its_class():
    def f(x):
        return Body.w.factor * x

    assert srcdiff.grad(f, backend="python")(2.0) == 3.0


class OfClass:
    def __get__(self, instance, owner=None):
        return 2.0 if instance is None else 5.0


class Constants:
    two = OfClass()


def test_get_without_an_instance():
    def f(x):
        return Constants.two * x + Constants().two * x * x

    assert srcdiff.grad(f, backend="python")(2.0) == 22.0


def test_descriptors_that_are_compiled_are_refused():
    class Cached:
        f = functools.partialmethod(max, 1.0)

    def f(x):
        return Cached().f(x)

    with pytest.raises(DifferentiationError, match="is a descriptor, which is not supported"):
        srcdiff.grad(f, backend="python")(2.0)
