"""Calls that go directly to machine code check their arguments as closely as the first call."""

import collections
import dataclasses
import enum
import types

import numpy as np
import pytest

import srcdiff
from srcdiff.api.derivatives import Derivative

Pair = collections.namedtuple("Pair", "a b")


class Kind(enum.Enum):
    LINE = 1
    SQUARE = 2


class Model:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@dataclasses.dataclass
class Point:
    a: float
    b: float


def ran_directly(derivative: Derivative, *args):
    """The result of a call that does not look up its specialisation."""

    def looked_up(*_):
        raise AssertionError("the call was not direct")

    derivative._call = looked_up  # type: ignore[method-assign]
    try:
        return derivative(*args)
    finally:
        del derivative._call


def of_part(p, x):
    return p["w"][0] * p["n"] * x


def chosen(p, x):
    if p.kind is Kind.LINE:
        return p.inner.k * x
    return p.inner.k * x * x


ROWS = {
    # the function, arguments, and other arguments of the same types
    "dictionary": (of_part, [({"w": np.ones(2), "n": k}, 2.0) for k in (3, 4)]),
    "instance": (chosen, [(Model(kind=Kind.LINE, inner=Model(k=k), other=None), 2.0) for k in (3.0, 4.0)]),
    "named tuple": (lambda p, x: p.a * x + p.b, [(Pair(k, 2), 2.0) for k in (3.0, 4.0)]),
    "tuple with a constant": (lambda p, x: p[0] * x if p[1] is None else x, [((k, None), 2.0) for k in (3.0, 4.0)]),
    "list of numbers": (lambda p, x: sum(p) * x, [([1.0] * k, 2.0) for k in (3, 4)]),
    "list of arrays": (lambda p, x: (p[0] + p[1])[1] * x, [([np.full(k, 1.0), np.ones(k)], 2.0) for k in (3, 4)]),
    "slots": (lambda p, x: p.a * x, [(Slots(k), 2.0) for k in (3.0, 4.0)]),
    "records": (
        lambda p, x: p["a"][0] * x,
        [(np.array([(k, "t")], [("a", float), ("n", "U3")]), 2.0) for k in (3.0, 4.0)],
    ),
    "flag and constant": (lambda p, q, x: x * x if p and q is None else x, [(True, None, x) for x in (2.0, 3.0)]),
}


@pytest.mark.parametrize("row", ROWS)
def test_second_call_runs_machine_code_at_once(row):
    function, (first, second) = ROWS[row]
    wrt = (0, 1) if row != "flag and constant" else 2
    derivative = srcdiff.value_and_grad(function, wrt=wrt)
    derivative(*first)
    expected = srcdiff.value_and_grad(function, wrt=wrt, backend="python")(*second)
    assert_same(expected, ran_directly(derivative, *second))


def assert_same(expected, actual):
    assert type(expected) is type(actual) or isinstance(expected, float)
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        expected, actual = list(expected.values()), list(actual.values())
    if isinstance(expected, tuple | list):
        for a, b in zip(expected, actual, strict=True):
            assert_same(a, b)
    elif isinstance(expected, Model):
        assert_same(vars(expected), vars(actual))
    elif isinstance(expected, Slots):
        assert expected.a == actual.a
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(expected, actual)
    else:
        assert expected == actual


def anything(p, x):
    """The result depends on everything in `p`."""
    if isinstance(p, list):
        return x * sum(p)
    if isinstance(p, tuple):
        return x * (100.0 if len(p) > 2 else p[1])
    if isinstance(p, dict):
        return x * (p["a"] if "b" not in p else np.sum(p["b"]) * 10.0)
    if hasattr(p, "extra"):
        return 7.0 * x
    if p is None:
        return 9.0 * x
    return x * np.sum(p.a)


OTHERS = [
    (1.0, 2.0),
    (1.0, 2),
    (1.0, True),
    (1.0, 2.0, 3.0),
    Pair(1.0, 3.0),
    [1.0, 2.0],
    [1, 2],
    [1.0, 2],
    [1.0],
    {"a": 2.0},
    {"a": 2},
    {"a": 2.0, "b": 3.0},
    {"a": 2.0, "b": np.ones(2)},
    {"a": 2.0, "b": np.ones((2, 2), np.float32)},
    {"a": 2.0, "b": np.ones(6)[::2]},
    {"b": 3.0, "a": 2.0},
    collections.OrderedDict(a=5.0),
    Model(a=2.0),
    Model(a=2),
    Model(a=np.float32(2.0)),
    Model(a=np.ones(4)),
    Model(a=2.0, extra=None),
    types.SimpleNamespace(a=4.0),
    Point(3.0, 4.0),
    Slots(6.0),
    None,
]


def test_calls_in_any_order_give_the_results_of_first_calls():
    derivative = srcdiff.grad(anything, wrt="x")
    alone = [srcdiff.grad(anything, wrt="x", backend="python")(p, 2.0) for p in OTHERS]
    order = np.random.default_rng(0).integers(0, len(OTHERS), 200)
    assert [alone[k] for k in order] == [derivative(OTHERS[k], 2.0) for k in order]


def test_added_or_missing_attributes_are_noticed():
    derivative = srcdiff.grad(anything, wrt="x")
    model, point, slots = Model(a=2.0), Point(2.0, 1.0), Slots(2.0)
    for p in (model, point, slots):
        assert [2.0, 2.0] == [derivative(p, 1.0), derivative(p, 1.0)]
    model.extra = 1.0
    assert 7.0 == derivative(model, 1.0)
    del slots.a
    with pytest.raises(srcdiff.DifferentiationError, match="`Slots` has no `a`; it has no attributes"):
        derivative(slots, 1.0)


def test_integers_that_do_not_fit_are_compiled_in():
    derivative = srcdiff.grad(lambda p, x: x * p["n"] if p["n"] < 5 else x, wrt="x")
    assert [3.0, 4.0] == [derivative({"n": 3}, 1.0), derivative({"n": 4}, 1.0)]
    assert 1.0 == derivative({"n": 2**80}, 1.0)


def test_the_same_list_twice_is_noticed_in_any_call():
    derivative = srcdiff.grad(lambda p, q, x: p[0] * q[0] * x, wrt="x")
    one, two = [2.0], [3.0]
    assert [6.0, 6.0] == [derivative(one, two, 1.0), derivative(one, two, 1.0)]
    with pytest.raises(srcdiff.DifferentiationError, match="passed twice"):
        derivative(one, one, 1.0)


def test_arrays_in_dictionaries_that_share_memory_are_noticed_in_any_call():
    def written(p, x):
        p["a"][0] = 2.0 * x
        return p["b"][0] * x

    derivative = srcdiff.grad(written, wrt="x")
    whole = np.ones(4)
    apart = {"a": whole[:2], "b": whole[2:]}
    assert [1.0, 1.0] == [derivative(apart, 1.0), derivative(apart, 1.0)]
    with pytest.raises(srcdiff.DifferentiationError, match="share memory"):
        derivative({"a": whole[:2], "b": whole[1:]}, 1.0)
    np.testing.assert_array_equal(np.ones(4), whole)


def test_an_instance_whose_attributes_are_written_stays_as_it_was():
    def stepped(p, x):
        p.a = p.a + x
        return p.a * x

    derivative = srcdiff.grad(stepped, wrt="x")
    model = Model(a=2.0)
    assert [4.0] * 3 == [derivative(model, 1.0) for _ in range(3)]
    model.a = 5.0
    assert 7.0 == ran_directly(derivative, model, 1.0)
    assert {"a": 5.0} == vars(model)
