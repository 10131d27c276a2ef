"""Instances of classes: read, called, made, written to, differentiated by, and left as they were."""

import abc
import dataclasses
import functools
import math
import types
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

BACKENDS = ["python", "numba"]
X, Y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 2.0])


class Model:
    """A class that computes in its methods, with all kinds of attributes."""

    scale = 2.0

    def __init__(self, w, b):
        self.w = w
        self.b = 0.5 * b

    def predict(self, x):
        return self.scale * (self.w * x + self.b)

    def loss(self, x, y):
        r = self.predict(x) - y
        return np.sum(r * r) + self.norm

    @property
    def norm(self):
        return np.sqrt(np.sum(self.w**2))

    @staticmethod
    def squared(t):
        return t * t

    @classmethod
    def simple(cls, w):
        return cls(w, 1.0)

    def __call__(self, x):
        return self.predict(x)


class Child(Model):
    def __init__(self, w, b, c):
        super().__init__(w, b)
        self.c = c

    def predict(self, x):
        return super().predict(x) + self.c * self.squared(x)


class Body:
    """A class whose methods assign its attributes."""

    count = 0

    def __init__(self, x, v):
        self.x, self.v, self.t = x, v, 0.0
        self.trace = []

    def step(self, dt):
        self.v -= dt * self.x
        self.x += dt * self.v
        self.t += dt
        self.count += 1
        self.trace.append(self.x)

    @property
    def energy(self):
        return 0.5 * (self.x**2 + self.v**2)

    @energy.setter
    def energy(self, value):
        self.v = np.sqrt(2.0 * value - self.x**2)

    def run(self, dt, n):
        for _ in range(n):
            self.step(dt)
        return self.x * self.t + self.energy


class Vector:
    """A class with operators that return new instances."""

    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return self + -other

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    __rmul__ = __mul__

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __getitem__(self, k):
        return self.x if k == 0 else self.y

    def __lt__(self, other):
        return self @ self < other @ other


@dataclass
class Spring:
    k: float
    rests: list = field(default_factory=list)
    stiff: float = field(init=False)

    def __post_init__(self):
        self.stiff = self.k**2


@dataclass(frozen=True)
class Frozen:
    a: float


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def double(self):
        return 2.0 * self.area()


class Disc(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return np.pi * self.r**2

    @functools.cached_property
    def edge(self):
        return 2.0 * np.pi * self.r


# -- programs --------------------------------------------------------------------------------------------------------

MODEL, CHILD, DISC = Model(X * 0.5, 1.0), Child(X * 0.5, 1.0, 0.1), Disc(1.5)


def from_outside(x):
    return MODEL.loss(x, Y) + CHILD(x)[1] * CHILD.norm


def made_inside(w, x):
    return np.sum(Child(w, 2.0, 0.1)(x)) + Model.simple(w).loss(x, Y) + Model.squared(w[0])


def changed_in_a_loop(x, n):
    body = Body(x, 1.0)
    for i in range(n):
        body.step(0.1)
        if body.x > 1.6:
            body.v = -0.5 * body.v
        if i == 3:
            break
    return body.energy + body.t * body.count + sum(body.trace)


def two_names_of_one(x):
    first = Body(x, 2.0)
    second = first
    second.x *= 3.0
    first.v += second.x
    return first.x * second.v


def set_by_a_property(x):
    body = Body(x, 0.0)
    body.energy = 3.0 + x
    return body.v * body.x


def operators(a, b, n):
    p, v = Vector(a, b), Vector(1.0, 0.5 * a)
    for _ in range(n):
        v = -v if p < v else v
        p = p + 0.1 * v - v * 0.01
    return p @ p + p[0] * p[1]


def in_containers(x):
    bodies = [Body(x * k, 1.0) for k in (1.0, 2.0)]
    for body in bodies:
        body.step(0.2)
    shapes = {"disc": Disc(x), "other": (Disc(2.0 * x), 3.0)}
    return bodies[0].x * bodies[1].x + shapes["disc"].double() + shapes["other"][0].edge


def dataclasses_that_compute(x):
    spring = Spring(x)
    spring.rests.append(2.0 * x)
    spring.k += 1.0
    other = dataclasses.replace(spring, k=3.0 * x)
    return spring.stiff * spring.k + sum(spring.rests) * other.stiff


def attribute_of_the_class_until_written(x, n):
    body = Body(x, 1.0)
    for _ in range(n):
        body.count = body.count + x
    return body.count * x + body.x


def attribute_that_comes_later(x, n):
    body = Body(x, 1.0)
    body.total = 0.0
    for k in range(n):
        body.total += body.x * k
        body.last = k * x
    return body.total + body.last


def shared_by_attributes(x):
    owner = types.SimpleNamespace(body=Body(x, 1.0), w=2.0)
    same = owner.body
    same.x = same.x * owner.w
    return owner.body.x**2


PROGRAMS = {
    "from outside": (from_outside, (X,)),
    "made inside": (made_inside, (X * 0.3, X)),
    "changed in a loop": (changed_in_a_loop, (1.3, 6)),
    "not changed, no iteration": (changed_in_a_loop, (1.3, 0)),
    "two names of one": (two_names_of_one, (1.3,)),
    "set by a property": (set_by_a_property, (0.7,)),
    "operators": (operators, (0.4, 0.3, 3)),
    "in containers": (in_containers, (0.8,)),
    "dataclasses that compute": (dataclasses_that_compute, (1.2,)),
    "attribute of the class until written": (attribute_of_the_class_until_written, (1.2, 2)),
    "attribute of the class": (attribute_of_the_class_until_written, (1.2, 0)),
    "attribute that comes later": (attribute_that_comes_later, (1.2, 3)),
    "shared by attributes": (shared_by_attributes, (1.2,)),
    "bound method": (MODEL.loss, (X, Y)),
    "bound method of a subclass": (CHILD.loss, (X, Y)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_both_orders_agree_with_differences(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments, order=2, backend="python")


@pytest.mark.parametrize("name", ["made inside", "changed in a loop", "operators", "in containers", "bound method"])
def test_compiled_derivatives_agree_with_differences(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_mode_agrees_with_reverse_mode(name):
    function, arguments = PROGRAMS[name]
    gradient = srcdiff.grad(function, backend="python")(*arguments)
    dots = (np.ones_like(arguments[0]), *(None for _ in arguments[1:]))
    _, tangent = srcdiff.jvp(function, arguments, dots, backend="python")
    assert np.sum(gradient) == pytest.approx(float(tangent))


# -- instances as arguments --------------------------------------------------------------------------------------------


def of_a_model(model, x):
    return model.loss(x, Y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_has_the_structure_of_the_instance(backend):
    gradient = srcdiff.grad(of_a_model, backend=backend)(MODEL, X)
    assert type(gradient) is Model
    w_bar, b_bar = srcdiff.grad(lambda w, b: Model(w, 2.0 * b).loss(X, Y), wrt=(0, 1), backend=backend)(X * 0.5, 0.5)
    np.testing.assert_allclose(gradient.w, w_bar)
    assert gradient.b == pytest.approx(b_bar)


@pytest.mark.parametrize("wrt", ["self.w", ("self.w", "x"), "self", ("x", "self.b")])
def test_wrt_reaches_into_the_instance_of_a_bound_method(wrt):
    found = srcdiff.grad(MODEL.loss, wrt=wrt, backend="python")(X, Y)
    whole, x_bar = srcdiff.grad(Model.loss, wrt=("self", "x"), backend="python")(MODEL, X, Y)
    expected = {"self.w": whole.w, "self": whole, "x": x_bar, "self.b": whole.b}
    pairs = zip(found, wrt, strict=True) if isinstance(wrt, tuple) else [(found, wrt)]
    for one, name in pairs:
        if name == "self":
            assert vars(one).keys() == vars(expected[name]).keys()
        else:
            np.testing.assert_allclose(one, expected[name])


def test_wrt_reaches_into_an_argument():
    found = srcdiff.value_and_grad(of_a_model, wrt=("model.w", "x"), backend="python")(MODEL, X)
    whole = srcdiff.grad(of_a_model, backend="python")(MODEL, X)
    assert found[0] == pytest.approx(of_a_model(MODEL, X))
    np.testing.assert_allclose(found[1][0], whole.w)


def test_a_part_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="no attribute 'weights'"):
        srcdiff.grad(MODEL.loss, wrt="self.weights", backend="python")(X, Y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_of_a_gradient_call_are_not_visible_to_the_caller(backend):
    body = Body(1.3, 1.0)
    before = {**vars(body), "trace": list(body.trace)}
    gradient = srcdiff.grad(Body.run, backend=backend)(body, 0.1, 4)
    assert vars(body) == before
    step = 1e-6
    ends = [Body(1.3 + s, 1.0).run(0.1, 4) for s in (step, -step)]
    assert gradient.x == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_an_instance_outside_that_is_written_to_stays_as_it_was():
    body = Body(1.3, 1.0)

    def energy(dt):
        for _ in range(3):
            body.step(dt)
        return body.energy

    gradient = srcdiff.grad(energy, backend="python")
    values = gradient(0.1), gradient(0.1)
    assert values[0] == values[1]
    assert (body.x, body.v, body.t, body.trace) == (1.3, 1.0, 0.0, [])
    plain = [Body(1.3, 1.0) for _ in range(2)]
    for one, s in zip(plain, (1e-6, -1e-6), strict=True):
        for _ in range(3):
            one.step(0.1 + s)
    assert values[0] == pytest.approx((plain[0].energy - plain[1].energy) / 2e-6, rel=1e-6)


def test_attributes_are_those_at_the_time_of_the_call():
    model = Model(X, 2.0)
    gradient = srcdiff.grad(model.loss, backend="python")
    first = gradient(X, Y)
    model.w = model.w * 2.0
    assert not np.allclose(first, gradient(X, Y))
    np.testing.assert_allclose(gradient(X, Y), srcdiff.grad(model.loss, backend="python")(X, Y))
    model.extra = 3.0  # another layout
    np.testing.assert_allclose(gradient(X, Y), srcdiff.grad(model.loss, backend="python")(X, Y))


def test_a_method_that_is_replaced_is_noticed(monkeypatch):
    gradient = srcdiff.grad(from_outside, backend="python")
    before = gradient(X)
    monkeypatch.setattr(Model, "scale", 3.0)
    assert not np.allclose(before, gradient(X))
    monkeypatch.setattr(Child, "predict", lambda self, x: x * self.c)
    np.testing.assert_allclose(gradient(X), srcdiff.grad(lambda x: from_outside(x), backend="python")(X))


def test_unused_attributes_may_have_any_type():
    model = Model(X, 2.0)
    model.log, model.numbers, model.itself = open, {1.5: 2.0}, model
    assert np.all(np.isfinite(srcdiff.grad(model.loss, backend="python")(X, Y)))
    assert np.all(np.isfinite(srcdiff.grad(of_a_model, wrt="x", backend="python")(model, X)))


def test_a_namespace_is_a_structure():
    p = types.SimpleNamespace(a=2.0, b=np.array([1.0, 2.0]))
    gradient = srcdiff.grad(lambda p: p.a * np.sum(p.b**2), backend="python")(p)
    assert gradient.a == pytest.approx(5.0)
    np.testing.assert_allclose(gradient.b, [4.0, 8.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_mode_takes_bound_methods_and_callable_instances(backend):
    np.testing.assert_allclose(srcdiff.jacobian(MODEL, backend=backend)(X), np.diag(2.0 * MODEL.w))
    hessian = srcdiff.hessian(MODEL.loss, backend=backend)(X, Y)
    np.testing.assert_allclose(hessian, np.diag(8.0 * MODEL.w**2))
    np.testing.assert_allclose(srcdiff.hvp(MODEL.loss, backend=backend)(X, Y, X), hessian @ X)


# -- what is refused ---------------------------------------------------------------------------------------------------


def either_of_two(x):
    a, b = Body(x, 1.0), Body(2.0 * x, 1.0)
    c = a if x > 1.0 else Body(3.0 * x, 1.0)
    c.step(0.1)
    return a.x + b.x


def frozen_written(x):
    one = Frozen(x)
    one.a = 2.0
    return one.a


def of_another_kind(x):
    x.real = 2.0
    return x


class Own:
    def __init__(self, a):
        self.a = a

    def __getattr__(self, name):
        return 3.0


def with_own_access(x):
    return Own(x).b


def written_by_an_inner_function(x):
    body = Body(x, 1.0)

    def inner(y):
        body.later = y
        return y * y

    return srcdiff.grad(inner)(x) + body.later


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (either_of_two, "either of two instances of `Body`"),
        (of_another_kind, "an attribute of a float cannot be assigned"),
        (with_own_access, "which is not supported"),
        (written_by_an_inner_function, "assigns `later`"),
        (lambda x: Body(x, 1.0).speed, "`Body` has no `speed`; it has x, v, t, trace"),
    ],
)
def test_what_cannot_be_read_is_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(1.5)


def test_writing_to_a_frozen_dataclass_raises_as_in_python():
    with pytest.raises(dataclasses.FrozenInstanceError):
        srcdiff.grad(frozen_written, backend="python")(1.5)


def test_an_attribute_without_a_slot_raises_as_in_python():
    def written(x):
        vector = Vector(x, 1.0)
        vector.z = 3.0
        return vector.x

    with pytest.raises(AttributeError, match="'Vector' object has no attribute 'z'"):
        srcdiff.grad(written, backend="python")(1.5)


def test_an_attribute_that_no_path_has_set_raises_as_in_python():
    def later(x):
        body = Body(x, 1.0)
        if x > 1.0:
            body.extra = x * x
        return body.extra

    gradient = srcdiff.grad(later, backend="python")
    assert gradient(1.5) == pytest.approx(3.0)
    with pytest.raises(AttributeError, match="'Body' object has no attribute 'extra'"):
        gradient(0.5)


# -- identity ----------------------------------------------------------------------------------------------------------


def writes_to_both(x, a, b):
    a.x *= x
    b.x += a.v
    return a.x * b.x


def writes_through_children(x, a, b):
    a.x.x *= x
    return a.x.x * b.x.x


ONE = Body(1.3, 1.0)


def also_from_outside(x, a):
    a.x *= x
    return ONE.x * a.x


LIST = [1.0, 2.0]


def list_also_from_outside(x, values):
    values.append(x)
    return sum(LIST) * x


@pytest.mark.parametrize(
    ("function", "rest", "said"),
    [
        (writes_to_both, lambda one: (one, one), "the same instance of `Body` is passed twice"),
        (writes_through_children, lambda one: (Body(one, 0.0), Body(one, 0.0)), "passed twice"),
        (lambda x, pair: writes_to_both(x, *pair), lambda one: ([one, one],), "passed twice"),
        (also_from_outside, lambda _: (ONE,), "is passed and read from outside"),
        (list_also_from_outside, lambda _: (LIST,), "the same list is passed and read from outside"),
    ],
)
def test_one_instance_in_two_places_is_refused_if_it_is_written_to(function, rest, said):
    gradient = srcdiff.grad(function, backend="python")
    with pytest.raises(DifferentiationError, match=said):
        gradient(2.0, *rest(Body(1.5, 1.0)))


def test_one_instance_in_two_places_may_be_read():
    gradient = srcdiff.grad(lambda a, b: a.r * b.r, wrt=(0, 1), backend="python")
    assert [g.r for g in gradient(DISC, DISC)] == [1.5, 1.5]


def test_whether_attributes_outside_are_one_object_is_asked_at_every_call():
    left, right = types.SimpleNamespace(), types.SimpleNamespace()

    def changed(x):
        left.body.x *= x
        return right.body.x * x

    gradient = srcdiff.value_and_grad(changed, backend="python")
    for is_shared in (True, False, True):
        left.body = Body(2.0, 1.0)
        right.body = left.body if is_shared else Body(2.0, 1.0)
        assert gradient(3.0) == pytest.approx((18.0, 12.0) if is_shared else (6.0, 2.0))


def test_instances_outside_may_refer_to_each_other_and_share_lists():
    left, right, values = Body(2.0, 1.0), Body(3.0, 1.0), [1.0]
    left.other, right.other, left.trace, right.trace = right, left, values, values

    def changed(x):
        left.other.x *= x
        right.other.x *= x
        left.trace.append(x)
        return left.x * right.x + sum(right.trace) + sum(values)

    gradient = srcdiff.value_and_grad(changed, backend="python")
    assert gradient(3.0) == pytest.approx((54.0 + 8.0, 36.0 + 2.0))
    right.trace = [1.0]
    assert gradient(3.0) == pytest.approx((54.0 + 5.0, 36.0 + 1.0))
    assert (left.x, right.x, values) == (2.0, 3.0, [1.0])


class Node:
    following = 5.0

    def __init__(self, value):
        self.value, self.child, self.read = value, types.SimpleNamespace(parent=self), self.get
        self.following = 2.0 * value

    def get(self):
        return self.following


def test_an_instance_that_its_attributes_refer_to_has_an_identity():
    srcdiff.check(lambda x: Node(x).child.parent.following * Node(x).read(), 1.3, backend="python")


# -- names and operators -----------------------------------------------------------------------------------------------


class Private:
    __factor = 2.0

    def __init__(self, w):
        self.__w = w

    def scaled(self, by=1.0):
        self.__w *= by * self.__factor
        return self.__w

    @staticmethod
    def __half(t):
        return t / 2.0

    def half(self):
        return self.__half(self.__w)


class AlsoPrivate(Private):
    def __init__(self, w):
        super().__init__(w)
        self.__w = 3.0 * w

    def both(self):
        return self.__w * self.scaled() * self.half()


class Sum:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Sum(self.x + other.x) if isinstance(other, Sum) else NotImplemented

    def __radd__(self, other):
        return Sum(self.x + 5.0 * other)

    def __iadd__(self, other):
        self.x += 10.0 * other.x
        return self

    def __mul__(self, other):
        return NotImplemented

    def __lt__(self, other):
        return NotImplemented if isinstance(other, Sum) else self.x < other

    def __eq__(self, other):
        return NotImplemented

    __hash__ = None


class Factor:
    def __init__(self, x):
        self.x = x

    def __rmul__(self, other):
        return 7.0 * self.x * other.x

    def __eq__(self, other):
        return True

    __hash__ = None


def in_place(x):
    first, several = Sum(x), [Sum(x)]
    second, holder = first, types.SimpleNamespace(of=Sum(x))
    for _ in range(2):
        first += Sum(x)
    several[0] += first
    holder.of += several[0]
    return second.x * several[0].x + holder.of.x


@dataclass
class Compared:
    a: float
    b: float = field(default=1.0, compare=False)


@dataclass(eq=False)
class ComparedAsAbove(Compared):
    c: float = 0.0


class Remembers:
    def __init__(self, w):
        self.w = w

    @functools.cached_property
    def total(self):
        return np.sum(self.w)

    @functools.cached_property
    def doubled(self):
        return 2.0 * self.w


def remembered(x):
    one = Remembers(x * 1.0)
    before = one.total
    one.w[0] = 5.0
    one.doubled[1] = 3.0 * x[1]
    return one.total * before + np.sum(one.doubled**2)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: AlsoPrivate(x).both(), 1.3),
        (lambda x: Private(2.0).scaled(x), 1.3),
        (in_place, 1.3),
        (lambda x: (x + Sum(x)).x * (Sum(x) * Factor(x)), 1.3),
        (lambda x: x * x if Sum(x) == Factor(x) else x, 1.3),
        (lambda x: x * x if Sum(x) != Factor(x) else x, 1.3),
        (lambda x: x * x if Compared(x, 1.0) == Compared(x, 2.0) else x, 1.3),
        (lambda x: x * x if ComparedAsAbove(x, 1.0, 2.0) == ComparedAsAbove(x, 1.0, 3.0) else x, 1.3),
        (remembered, X),
    ],
)
def test_names_operators_and_cached_properties_mean_what_they_mean_in_python(function, x):
    srcdiff.check(function, x, backend="python")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: (Sum(x) + x).x, "an instance of `Sum` is used where a number is needed"),
        (lambda x: x if Sum(x) < Sum(x) else 2.0 * x, "an instance of `Sum` is used"),
        (lambda x: x if Sum(x) == Sum(x) else 2.0 * x, "an instance of `Sum` is used"),
        (lambda x: Factor(x) * Factor(x), "an instance of `Factor` is used"),
        (lambda x: np.sum((np.array([x, x]) + Sum(x)).x), "NumPy applies this operator to each element"),
        (lambda x: Compared(x, a=2.0 * x).a, "`Compared` needs the fields a, b"),
    ],
)
def test_operators_and_calls_that_fail_in_python_are_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(1.5)


# -- numbers of NumPy beside sequences ---------------------------------------------------------------------------------


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def __len__(self):
        return 2

    def __getitem__(self, k):
        return (self.first, self.second)[k]

    def __rmul__(self, factor):
        return Pair(factor * factor * self.first, self.second)

    def __gt__(self, number):
        return self.first * self.second > number


class AskedByNumpy(Pair):
    __array_ufunc__ = None


class NamedPair(namedtuple("NamedPair", "first second")):
    def __rmul__(self, factor):
        return NamedPair(factor * self.second, self.first)


def scaled_in_a_loop(x, n):
    scale = 0.5
    for _ in range(n):
        pair = Pair(x, 1.0)
        scale = scale * math.sin(x)
        pair = scale * pair
    return pair.first


def scaled_by_numpy_from_the_second_iteration_on(x, n):
    pair, scale = Pair(x, 1.0), 0.5
    for _ in range(n):
        pair = scale * pair
        scale = np.sin(scale)
    return pair.first


def scaled_on_two_paths(x, sine):
    scale = 0.5 * x if x > 0.0 else x
    if x < 5.0:
        scale = sine(scale)
    return (scale * Pair(x, 1.0)).first


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: (x * Pair(x, 1.0)).first + (0.5 * Pair(x, 1.0)).first, (1.3,)),
        (lambda x: (x * NamedPair(x, 1.0)).first, (1.3,)),
        (lambda x: (np.sin(x) * AskedByNumpy(x, 1.0)).first, (1.3,)),
        (lambda x: x if x < Pair(x, 3.0) else 2.0 * x, (1.3,)),
        (scaled_in_a_loop, (1.3, 3)),
        (lambda x: scaled_on_two_paths(x, math.sin), (1.3,)),
    ],
)
def test_a_number_of_python_asks_a_sequence_on_its_right(function, args):
    srcdiff.check(function, *args, wrt=0, backend="python")


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: (np.sin(x) * Pair(x, 1.0)).first, (1.3,)),
        (lambda x: (x * Pair(x, 1.0)).first, (np.float64(1.3),)),
        (lambda x: (np.pi * x * np.float64(2.0) * NamedPair(x, 1.0)).first, (1.3,)),
        (lambda x: (x[0] * Pair(x[1], 1.0)).first, (X,)),
        (lambda x: x if np.sin(x) < Pair(x, 3.0) else 2.0 * x, (1.3,)),
        (scaled_by_numpy_from_the_second_iteration_on, (1.3, 3)),
        (lambda x: scaled_on_two_paths(x, np.sin), (1.3,)),
    ],
)
def test_a_number_of_numpy_makes_an_array_of_a_sequence_on_its_right(function, args):
    with pytest.raises((AttributeError, ValueError)):  # the array has no attribute, or no truth value
        function(*args)
    with pytest.raises(DifferentiationError, match="for a sequence"):
        srcdiff.grad(function, backend="python")(*args)


# -- changes between calls ---------------------------------------------------------------------------------------------


class Method:
    def __init__(self, w):
        self.w = w

    def power(self, x, k=2.0, *, factor=1.0):
        return factor * self.w * x**k

    def __call__(self, x):
        return self.power(x)

    def of_all(*args):
        return args[0].w * args[1]


class Above(Method):
    def __call__(self, x):
        return super().__call__(x) * x


def test_defaults_and_special_methods_that_are_replaced_are_noticed(monkeypatch):
    one = Method(2.0)
    power, call = (srcdiff.value_and_grad(f, backend="python") for f in (one.power, one))
    assert (power(3.0)[0], call(3.0)[0]) == (18.0, 18.0)
    monkeypatch.setattr(Method.power, "__defaults__", (3.0,))
    assert (power(3.0)[0], call(3.0)[0]) == (54.0, 54.0)
    monkeypatch.setitem(Method.power.__kwdefaults__, "factor", 0.5)
    assert (power(3.0)[0], call(3.0)[0]) == (27.0, 27.0)
    monkeypatch.setattr(Method, "__call__", lambda self, x: 100.0 * x)
    assert (power(3.0)[0], call(3.0)[0]) == (27.0, 300.0)


class Empty:
    factor = 2.0

    def scaled(self, x):
        return self.factor * x


def test_an_instance_without_attributes_may_get_some():
    one, two = Empty(), Empty()
    gradients = [srcdiff.grad(f, backend="python") for f in (one.scaled, lambda x: two.scaled(x))]
    assert [gradient(3.0) for gradient in gradients] == [2.0, 2.0]
    one.factor = two.factor = 5.0
    assert [gradient(3.0) for gradient in gradients] == [5.0, 5.0]


def overridden(x, one):
    one.a = x
    return one.a * (one.b + one.extra if hasattr(one, "extra") else 1.0)


def test_dataclass_attributes_that_are_not_fields_are_noticed():
    one = Frozen(1.0)
    read = srcdiff.grad(lambda x: 3.0 * x if hasattr(one, "extra") else x, backend="python")
    assert read(2.0) == 1.0
    object.__setattr__(one, "extra", 2.0)
    assert read(2.0) == 3.0
    with pytest.raises(DifferentiationError, match="has `extra`, which is not a field"):
        srcdiff.grad(lambda x: getattr(one, "extra", x) * x, backend="python")(2.0)
    two = Compared(1.0)
    two.extra = 3.0
    for function in (lambda x: overridden(x, two), overridden):
        with pytest.raises(DifferentiationError, match="has `extra`, which is not a field"):
            srcdiff.grad(function, backend="python")(2.0, *([two] if function is overridden else []))


def test_a_function_whose_only_result_is_an_attribute_is_refused():
    def only_writes(x, body):
        body.x = x * x

    with pytest.raises(DifferentiationError, match=r"returns nothing and assigns `Body\.x`"):
        srcdiff.jvp(only_writes, (2.0, Body(1.0, 1.0)), (1.0, None), backend="python")


def test_a_bound_method_may_use_its_instance_by_super_only():
    srcdiff.check(Above(2.0), 3.0, backend="python")


def test_a_bound_method_without_a_name_for_its_instance_is_refused():
    with pytest.raises(TypeError, match="wrap it in a function or a lambda"):
        srcdiff.grad(Method(2.0).of_all)


# -- objects that are made anew, and their identity ------------------------------------------------------------------


class Unit:
    """A class with many short-lived instances that are written to."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def turned(self, angle):
        return Unit(self.x - angle * self.y, self.y + angle * self.x)

    def normalize(self):
        length = np.sqrt(self.x**2 + self.y**2)
        self.x /= length
        self.y /= length

    def __iter__(self):
        return iter([self.x, self.y])

    def __abs__(self):
        return np.sqrt(self.x**2 + self.y**2)

    def __len__(self):
        return 2


def made_anew_in_a_loop(x, n):
    p = Unit(1.0, x)
    for _ in range(n):
        p = p.turned(x)
        p.normalize()
    return p.x + 2.0 * p.y * len(p) + abs(p) + sum(v * v * v for v in p)


def made_on_both_sides(x):
    p = Unit(x, 1.0) if x > 1.0 else Unit(2.0 * x, x)
    p.normalize()
    return p.x * 3.0 + p.y


def compared_by_identity(x):
    units = [Unit(x, 1.0), Unit(2.0, x)]
    total = 0.0
    for one in units:
        for other in units:
            if one is not other:
                total += one.x * other.y
        one.normalize()
    return total + units[0].x


MADE_ANEW = {
    "in a loop": (made_anew_in_a_loop, (0.3, 3)),
    "in a loop that does not run": (made_anew_in_a_loop, (0.3, 0)),
    "on both sides, first": (made_on_both_sides, (1.5,)),
    "on both sides, second": (made_on_both_sides, (0.5,)),
    "compared by identity": (compared_by_identity, (0.5,)),
}


@pytest.mark.parametrize("name", MADE_ANEW)
def test_objects_that_loops_replace(name):
    function, arguments = MADE_ANEW[name]
    srcdiff.check(function, *arguments, order=2, backend="python")


@pytest.mark.parametrize("name", ["in a loop", "compared by identity"])
def test_objects_that_loops_replace_compiled(name):
    function, arguments = MADE_ANEW[name]
    srcdiff.check(function, *arguments)


def with_another_name(x, n):
    p = Unit(1.0, x)
    first = p
    for _ in range(n):
        p.normalize()
        p = p.turned(x)
    return p.x + first.y


def with_another_name_in_a_list(x, n):
    seen = []
    p = Unit(1.0, x)
    for _ in range(n):
        seen.append(p)
        p = p.turned(x)
        p.normalize()
    return p.x


@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_object_with_another_name_that_a_loop_replaces(n):
    srcdiff.check(with_another_name, 0.3, n, backend="python")


def test_objects_that_a_loop_collects_in_a_list_are_refused():
    with pytest.raises(DifferentiationError):
        srcdiff.grad(with_another_name_in_a_list, backend="python")(0.3, 3)


@dataclass
class Doubling:
    a: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, 2.0 * value)


@dataclass
class Elsewhere:
    a: float

    def __getattribute__(self, name):
        return 4.0 if name == "a" else object.__getattribute__(self, name)


DOUBLING, ELSEWHERE = Doubling(1.0), Elsewhere(1.0)


def writes_with_own_access(x):
    DOUBLING.a = x
    return DOUBLING.a


@pytest.mark.parametrize(
    "function", [writes_with_own_access, lambda x: ELSEWHERE.a * x, lambda x: Elsewhere(x).a, lambda x: Doubling(x).a]
)
def test_classes_that_say_how_their_attributes_are_accessed_are_refused(function):
    with pytest.raises(DifferentiationError, match=r"defines `__[gs]etattr.*__`, which is not supported"):
        srcdiff.grad(function, backend="python")(1.3)


class Damped:
    """An object that counts reads and scales writes."""

    def __init__(self, k, n):
        self.k, self.state, self.reads = k, np.zeros(n), 0

    def __getitem__(self, i):
        self.reads += 1
        return self.state[i]

    def __setitem__(self, i, value):
        self.state[i] = value * self.k

    def __delitem__(self, i):
        self.state[i] = self.k * i

    def __contains__(self, value):
        return value < self.k


class Symmetric:
    def __init__(self, n):
        self.whole = np.zeros((n, n))

    def __getitem__(self, ij):
        i, j = ij
        return self.whole[i, j]

    def __setitem__(self, ij, value):
        i, j = ij
        self.whole[i, j] = value
        self.whole[j, i] = value


class Rows:
    def __init__(self, v):
        self.rows = np.outer(v, v)

    def __getitem__(self, i):
        return self.rows[i]

    def __setitem__(self, i, row):
        self.rows[i] = row


def items_that_methods_read_and_write(k):
    f = Damped(k, 2)
    f[1] = k**3
    f[0] += k
    other = f
    other[1] *= f[0] + 1
    if k * 2 in f:
        f[0] = 7 * k
    if k / 2 in f:
        f[0] = 5 * k
    if 3 * k not in other:
        f[0] -= k
    del other[1]
    return f[0] * f[1] * f.k + f.state[1] * f.reads


def items_with_two_indices(x):
    g = Symmetric(len(x))
    for i in range(len(x)):
        for j in range(i + 1):
            g[i, j] = x[i] * x[j] ** 2
            if i > j:
                g[j, i] += x[j]
    return np.sum(g.whole**2)


def rows_that_are_updated_in_place(x):
    m = Rows(x)
    for i in range(len(x)):
        m[i] += x
        m[i] *= m[0]
    return np.sum(m.rows)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (items_that_methods_read_and_write, 0.7),
        (items_with_two_indices, np.array([0.3, 0.5, 0.9])),
        (rows_that_are_updated_in_place, np.array([0.3, 0.5, 0.9])),
    ],
)
def test_items_of_instances(function, x, backend):
    srcdiff.check(function, x, backend=backend, order=2 if backend == "python" else 1)


def test_items_that_a_class_does_not_define_are_refused():
    class Written:
        def __setitem__(self, i, value):
            self.value = value

    def read(x):
        w = Written()
        w[0] += x
        return w.value

    with pytest.raises(DifferentiationError, match="the elements of an instance of `Written` cannot be assigned"):
        srcdiff.grad(read, backend="python")(1.0)


class Regression:
    def __init__(self, x, y):
        self.x, self.y, self.w, self.strength, self.labels = x, y, np.full(x.shape[1], 0.1), 0.3, [1.0, 2.0]
        self.nested = (np.ones(2), {"offset": 2.5})

    def loss(self, k):
        r = self.x @ self.w - self.y + self.nested[1]["offset"] * self.labels[0]
        return k * np.sum(r * r) + self.strength * np.sum(self.w**2) * self.nested[0][1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_attributes_that_are_not_chosen_have_no_adjoints(backend):
    model = Regression(np.linspace(-1.0, 1.0, 12).reshape(4, 3), np.arange(4.0))
    whole, by_k = srcdiff.grad(Regression.loss, wrt=("self", "k"), backend=backend)(model, 2.0)
    for name in ("w", "strength", "x", "labels") if backend == "python" else ("w",):
        found = srcdiff.grad(model.loss, wrt=f"self.{name}", backend=backend)(2.0)
        np.testing.assert_allclose(found, getattr(whole, name), rtol=1e-12)
    value, (by_w, found_k) = srcdiff.value_and_grad(model.loss, wrt=("self.w", "k"), backend=backend)(2.0)
    np.testing.assert_allclose((value, found_k), (model.loss(2.0), by_k), rtol=1e-12)
    np.testing.assert_allclose(by_w, whole.w, rtol=1e-12)
    arrays, rest = srcdiff.grad(model.loss, wrt="self.nested", backend=backend)(2.0)
    np.testing.assert_allclose(arrays, whole.nested[0])
    assert rest == pytest.approx(whole.nested[1])


def test_data_in_an_instance_costs_no_memory_of_the_gradient():
    model = Regression(np.linspace(-1.0, 1.0, 12).reshape(4, 3), np.arange(4.0))
    assert "self_x_bar" in srcdiff.grad(model.loss, wrt="self").compile(2.0).source
    assert "self_x_bar" not in srcdiff.grad(model.loss, wrt="self.w").compile(2.0).source


class Doubled:
    def __init__(self, a):
        self.a = a

    def __getitem__(self, k):
        if isinstance(k, slice):
            return Doubled(self.a[k] * (2.0 if k.step is None else 3.0))
        return self.a[k]


def slices_of_instances(x, n):
    of = Doubled(x)
    return np.sum(of[1:n].a ** 2) + of[::2][1] * of[-1] + np.sum(of[:-1].a) + np.sum(of[:][0:1].a)


def test_slices_of_instances():
    x = np.arange(6.0)
    assert srcdiff.differentiable(slices_of_instances, backend="python")(x, 4) == slices_of_instances(x, 4)
    srcdiff.check(slices_of_instances, x, 4, backend="python")


class Sequence:
    """NumPy's numbers take its instances for sequences: `np.float64(2.0) * vector` is an array."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return 2

    def __getitem__(self, k):
        return (self.x, self.y)[k]

    def __mul__(self, h):
        return Sequence(h * self.x, h * self.y)

    __rmul__ = __mul__


def times_sequence_in_loop(h):
    t = 0.0
    for k in range(3):
        t += h * k
    return (t * Sequence(h, 2.0)).x


def times_sequence_after_branch(h):
    s = h * h if h > 1.0 else 2.0
    if s > 3.0:
        s = s / 3.0
    v = Sequence(h, 2.0)
    return (max(s, 1.0) * v).x + ((v[0] if h > 1.0 else v[1]) * v).y + (v * np.sin(h)).x


@pytest.mark.parametrize("function", [times_sequence_in_loop, times_sequence_after_branch])
def test_numbers_of_python_are_multiplied_by_the_method_of_a_sequence(function):
    expected = (function(1.3 + 1e-6) - function(1.3 - 1e-6)) / 2e-6
    assert srcdiff.grad(function, backend="python")(1.3) == pytest.approx(expected, rel=1e-7)


def test_numbers_of_numpy_before_a_sequence_are_refused():
    def f(h):
        return (np.sin(h) * Sequence(h, 2.0)).x

    with pytest.raises(AttributeError):
        f(1.3)
    with pytest.raises(srcdiff.DifferentiationError, match="takes `Sequence` for a sequence"):
        srcdiff.grad(f, backend="python")(1.3)
