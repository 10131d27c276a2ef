"""What classes of public packages ask for: classes as values, dataclasses below others, texts, and large objects."""

from __future__ import annotations

import dataclasses
import numbers
import warnings
from dataclasses import InitVar, dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import srcdiff

scipy_stats = pytest.importorskip("scipy.stats")


@dataclass
class Parameters:
    sigma: float
    rate: float = field(default=0.1, metadata={"kind": "market"})
    steps: int = field(default=7, metadata={"kind": "numerical"})
    square: float = field(init=False, default=0.0)

    def __post_init__(self):
        following = getattr(super(), "__post_init__", None)
        if following is not None:
            following()
        self.square = self.sigma**2

    def given(self):
        known = dataclasses.fields(self)
        return {f.name: getattr(self, f.name) for f in known if f.init and f.metadata.get("kind") != "numerical"}


class Checked:
    def __post_init__(self):
        if self.sigma < 0:
            raise ValueError("a negative volatility")


class Model(Parameters, Checked):
    """A class below a dataclass, without a decorator of its own."""

    def price(self, strike):
        return self.priced(strike, **self.given()) + self.square

    @staticmethod
    def priced(strike, sigma, rate):
        return np.exp(-rate) * scipy_stats.norm._cdf(np.log(strike) / sigma)


@dataclass
class Scaled:
    factor: ClassVar[float] = 3.0
    width: float
    scale: InitVar[float]
    unit: InitVar[float] = 2.0
    area: float = 0.0

    def __post_init__(self, scale, unit):
        self.area = self.width * scale * unit * self.factor


class Reported:
    """Describes itself and its warnings by texts."""

    colours: ClassVar = {"red": 31, "bold": 1}

    def described(self, value, names):
        codes = []
        codes.append(str(self.colours["red"]))
        codes.append("1")
        return f"{';'.join(codes)} {', '.join(names)} {'|'.join(f'{n}={value}' for n in names)}"

    def checked(self, x):
        if x > 1.0:
            warnings.warn(self.described(x, ["level", "outflow"]), stacklevel=2)
        return x**2


def is_number(x):
    return issubclass(type(x), numbers.Real) and not issubclass(type(x), bool)


def converted(x):
    if type(x).__module__.startswith("casadi"):
        return x
    return np.asarray(x) if hasattr(x, "__len__") else np.asarray([x])


def are_symbols(values):
    return any([isinstance(v, str) for v in values]) or any(isinstance(values, str) for values in values)


def below_a_dataclass(x):
    return Model(x, 0.2).price(1.3)


def values_for_initialisation(x):
    return Scaled(x, x + 1.0).area + Scaled(width=2.0, scale=x, unit=x).area


def texts(x):
    return Reported().checked(x)


def classes_as_values(x):
    kind = None if are_symbols([x, 2.0]) else float
    return np.array(converted(x), dtype=kind)[0] ** 2 if is_number(x) else 0.0


def functions_are_recognised(x):
    """Arrays are not callable, although their class is."""
    # ruff: noqa: B004
    values = np.array([x, 2.0])
    if hasattr(values, "__call__") or hasattr(x, "__call__") or hasattr(values, "__name__") or hasattr(x, "mro"):
        return x
    return np.sum(values**2)


def rows_of_constants(x):
    limits = np.array([[-1.0, 2.0]] * len(x))
    return np.sum(limits[:, 1] * x**2) + limits[0, 0] * x[0]


PROGRAMS = [below_a_dataclass, values_for_initialisation, classes_as_values, functions_are_recognised]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_derivatives_agree_with_differences(function, backend):
    step = 1e-6
    expected = (function(1.3 + step) - function(1.3 - step)) / (2 * step)
    assert expected == pytest.approx(srcdiff.grad(function, backend=backend)(1.3), rel=1e-8)


def test_array_of_a_repeated_row_of_constants():
    actual = srcdiff.grad(rows_of_constants, backend="python")(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal([3.0, 8.0, 12.0], actual)


def test_joined_texts_are_those_of_python():
    with pytest.warns(UserWarning, match="level") as caught:
        gradient = srcdiff.grad(texts, backend="python")(3.0)
    assert 6.0 == gradient
    assert ["31;1 level, outflow level=3.0|outflow=3.0"] == [str(w.message) for w in caught]


def test_join_of_numbers_is_refused():
    def f(x):
        raise ValueError(", ".join([x]))

    with pytest.raises(srcdiff.DifferentiationError, match="`join` needs strings; this element is a float"):
        srcdiff.grad(f, backend="python")(3.0)


def test_any_of_constants_and_numbers():
    def f(x):
        if any([False, x > 1.0]) and all([True, x < 9.0]) and not any([]) and all([]):
            return x**2
        return x

    assert [6.0, 1.0, 1.0] == [srcdiff.grad(f, backend="python")(x) for x in (3.0, 0.5, 10.0)]


class Node:
    """Many instances that refer to each other, as the parts of a figure do."""

    def __init__(self, depth):
        self.children = [Node(depth - 1), Node(depth - 1)] if depth else []
        self.shared = self.children * 2
        self.value = 1.5


class Robot:
    def __init__(self):
        self.drawing = Node(7)
        self.lengths = np.array([1.0, 2.0])


robot = Robot()


def reach(x):
    return np.sum(robot.lengths) * x**2


def deep(x):
    node = robot.drawing.shared[0]
    return node.value * x


def test_large_objects_are_opened_in_part():
    """The attributes of the object itself come first."""
    assert 18.0 == srcdiff.grad(reach, backend="python")(3.0)


def test_parts_that_are_not_opened_are_refused_where_they_are_used():
    with pytest.raises(srcdiff.DifferentiationError, match=r"`robot.drawing` from outside .* too many objects"):
        srcdiff.grad(deep, backend="python")(3.0)


def test_attributes_beside_a_large_one_are_those_of_the_time_of_the_call():
    gradient = srcdiff.grad(reach, backend="python")
    assert 18.0 == gradient(3.0)
    lengths = robot.lengths
    try:
        robot.lengths = np.array([1, 2, 3])
        assert 36.0 == gradient(3.0)
    finally:
        robot.lengths = lengths


PRESSURES = (101325, 22632.5, 5474)


def layer(x):
    return PRESSURES[int(x)] * x**2 / PRESSURES[-int(x)]


def test_tuple_of_integers_and_floats_has_an_index_at_run_time():
    gradient = srcdiff.grad(layer, backend="python")
    for x in (0.5, 1.5, 2.5):
        expected = (layer(x + 1e-6) - layer(x - 1e-6)) / 2e-6
        assert expected == pytest.approx(gradient(x), rel=1e-8)


# -- shapes that are assigned -----------------------------------------------------------------------------------------


class Filter:
    def __init__(self, state):
        self.state = np.atleast_2d(state)
        self.state.shape = len(state), 1

    def update(self, y):
        y = np.atleast_2d(y)
        y.shape = 1, 1
        self.state = self.state * y[0, 0]


def assigned_in_a_class(x):
    filter_ = Filter(np.array([[x], [2.0]]))
    filter_.update(x)
    return np.sum(filter_.state[:, 0] ** 2)


def assigned_to_a_name(x):
    rows = np.arange(6.0) * x
    rows.shape = (2, 3)
    rows[0, 1] = x**3
    rows.shape = -1
    return np.sum(rows**2) * rows[1]


def seen_by_another_name(x):
    rows = np.arange(6.0) * x
    other = rows
    rows.shape = (2, 3)
    return np.sum(other[0] ** 2)


def seen_in_a_list(x):
    rows, kept = np.arange(6.0) * x, []
    for _ in range(int(x) + 1):
        kept.append(rows)
    rows.shape = (2, 3)
    return np.sum(kept[0][0] ** 2)


def seen_in_a_tuple(x):
    rows = np.arange(6.0) * x
    kept = (rows, 1.0)
    rows.shape = (2, 3)
    return np.sum(kept[0][0] ** 2)


def seen_in_an_attribute(x):
    rows = np.arange(6.0) * x
    kept = Filter(np.array([[x]]))
    kept.state = rows
    rows.shape = (2, 3)
    return np.sum(kept.state[0] ** 2)


def in_a_branch(x):
    rows = np.arange(6.0) * x
    if x > 1.0:
        rows.shape = (2, 3)
    return np.sum(rows[0] ** 2)


def of_a_view(x):
    """In NumPy, a view has a shape of its own."""
    rows = np.arange(6.0) * x
    part = rows[:4]
    part.shape = (2, 2)
    part[0, 1] = 3.0 * x
    return np.sum(part[0] ** 2) + rows[1] ** 2


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        rows = np.arange(4.0) * x**k
        rows.shape = (2, 2)
        total += rows[1, 0] ** 2
    return total


def seen_by_the_caller(x):
    def flatten(a):
        a.shape = -1

    rows = np.ones((2, 3)) * x
    flatten(rows)
    return np.sum(rows[1] ** 2)


def of_another_shape(x):
    rows = np.ones((2, 3)) * x
    other = rows
    rows.shape = (3, 2)
    return np.sum(other[2] ** 2)


@pytest.mark.parametrize(
    "function", [assigned_in_a_class, assigned_to_a_name, of_a_view, in_a_loop, in_a_branch], ids=lambda f: f.__name__
)
def test_shape_is_assigned_to_an_array_with_one_name_or_does_not_change(function):
    step = 1e-6
    expected = (function(1.3 + step) - function(1.3 - step)) / (2 * step)
    assert expected == pytest.approx(srcdiff.grad(function, backend="python")(1.3), rel=1e-8)


_SEEN = [seen_by_another_name, seen_in_a_list, seen_in_a_tuple, seen_in_an_attribute]
_SEEN += [seen_by_the_caller, of_another_shape]


@pytest.mark.parametrize("function", _SEEN, ids=lambda f: f.__name__)
def test_shape_that_others_see_change_is_refused(function):
    with pytest.raises((srcdiff.DifferentiationError, ValueError), match=r"shape|copy|path"):
        srcdiff.grad(function, backend="python")(1.3)
